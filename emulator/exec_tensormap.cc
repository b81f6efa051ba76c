// tensormap.replace and tensormap.cp_fenceproxy: maps that device code changes (ptx-facts 1.3, 3.3).
#include <fmt/format.h>

#include "emulator/exec_bulk.h"

namespace gemmtune::emulator {
namespace {

enum Field : uint32_t {
  kAddress,
  kRank,
  kBox,
  kDim,
  kGlobalStride,
  kElementStride,
  kElementType,
  kInterleave,
  kSwizzle,
  kFill
};
const std::initializer_list<std::string_view> kFields = {
    "global_address", "rank",     "box_dim",           "global_dim",   "global_stride",
    "element_stride", "elemtype", "interleave_layout", "swizzle_mode", "fill_mode"};

/// mod: [0] field, [1] ordinal, [2] shared. Operands: map, value.
Action replace(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int lane = first_lane(mask);
  uint64_t address = lane_address(w, in.ops[0], lane);
  if (in.mod[2]) address = kSharedWindow | plain_shared(address);
  uint8_t* bytes = generic_place(w, lane, address, 128, true);
  TensorMap map;
  // Fields are replaced one by one, so an inconsistent state in between is allowed.
  std::string why = decode_tensor_map(bytes, map);
  if (why == "these 128 bytes are no encoded tensor map") throw Fault(Check::tensor_map, why);
  uint64_t v = lane_value(w, in.ops[1], lane);
  uint32_t i = in.mod[1];
  switch (in.mod[0]) {
    case kAddress:
      map.address = v;
      break;
    case kRank:
      map.rank = static_cast<uint32_t>(v) + 1;
      break;
    case kBox:
      map.box[i] = static_cast<uint32_t>(v);
      break;
    case kDim:
      map.dims[i] = v == 0 ? 1ull << 32 : v;
      break;
    case kGlobalStride:
      map.strides_bytes[i] = v;
      break;
    case kElementStride:
      map.element_strides[i] = static_cast<uint32_t>(v);
      break;
    case kElementType: {
      // The instruction counts otherwise than cuda.h from here on: .f32.ftz, .f64, .bf16, .tf32, .tf32.ftz, 4
      // and 6 bits.
      static constexpr TensorType kFrom8[] = {
          TensorType::f32_ftz,  TensorType::f64,       TensorType::bf16,       TensorType::tf32,
          TensorType::tf32_ftz, TensorType::u4_align8, TensorType::u4_align16, TensorType::u6_align16};
      if (v > 15) throw Fault(Check::tensor_map, fmt::format("element type {} is not 0 to 15", v));
      map.type = v < 8 ? static_cast<TensorType>(v) : kFrom8[v - 8];
      break;
    }
    case kInterleave:
      map.interleave = static_cast<TensorInterleave>(v);
      break;
    case kSwizzle:
      map.swizzle = static_cast<TensorSwizzle>(v);
      break;
    default:
      map.nan_fill = v != 0;
      break;
  }
  TensorMapBytes out;
  try {
    out = encode_tensor_map(map);
  } catch (const std::invalid_argument& error) {
    throw Fault(Check::tensor_map, error.what());
  }
  std::memcpy(bytes, out.data(), 128);
  return Action::next;
}

/// Copies 128 bytes from shared to global memory with a tensormap proxy fence.
Action copy_map(Warp& w, Fragment& f, const Instr& in, Mask mask) {
  if (!aligned(w, f, mask)) return Action::wait;
  int lane = first_lane(mask);
  SharedPlace src = shared_place(w, lane_address(w, in.ops[1], lane), 128, true);
  uint64_t target = lane_address(w, in.ops[0], lane);
  std::memcpy(global_place(w, target, 128, true), src.cta->smem.data() + src.offset, 128);
  note_global_write(w, lane, target, 128);
  // It is a release by itself.
  w.global_fences->tensormap[static_cast<size_t>(lane)] = static_cast<uint32_t>(++w.cta->cluster->tick);
  ++w.cta->cluster->tick;
  return Action::next;
}

}  // namespace

void decode_tensormap(Decode& d) {
  if (d.take("cp_fenceproxy")) {
    d.need_one_of({"global"});
    d.need_one_of({"shared::cta"});
    d.need_one_of({"tensormap::generic"});
    d.need_one_of({"release"});
    d.drop({"cta", "cluster", "gpu", "sys", "sync", "aligned"});
    d.need_count(3, 3);
    d.address(d.parsed(0));
    d.address(d.parsed(1));
    if (d.immediate(d.parsed(2)) != 128) d.fail("the size must be 128");
    d.out.run = copy_map;
    return;
  }
  d.need_one_of({"replace"});
  d.need_one_of({"tile"});
  d.out.mod[0] = static_cast<uint32_t>(d.need_one_of(kFields));
  d.out.mod[2] = d.take_one_of({"global", "shared::cta", "shared"}) >= 1;
  d.need_one_of({"b1024"});
  ScalarType t = d.need_type();
  bool ordinal = d.out.mod[0] >= kBox && d.out.mod[0] <= kElementStride;
  d.need_count(ordinal ? 3 : 2, ordinal ? 3 : 2);
  if (ordinal) {
    int64_t i = d.immediate(d.parsed(1));
    if (i < 0 || i >= (d.out.mod[0] == kGlobalStride ? 4 : 5)) d.fail("the ordinal is out of range");
    d.out.mod[1] = static_cast<uint32_t>(i);
  }
  d.address(d.parsed(0));
  d.src(d.parsed(d.count() - 1), size_bytes(t));
  d.out.run = replace;
}

Action check_tensor_map_address(Warp& w, Fragment&, const Instr& in, Mask mask) {
  int lane = first_lane(mask);
  uint64_t address = lane_address(w, in.ops[0], lane);
  // prefetch.param.tensormap takes an offset in the parameters.
  map_at(w, lane, address >> kWindowShift ? address : kParamWindow | address);
  return Action::next;
}

}  // namespace gemmtune::emulator
