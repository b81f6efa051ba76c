// Tensor copies that tests/hardware does not hold form by form: every reduction, and the loads with
// .cta_group, which only sm_100a has. The box lies inside the tensor, so shared and global memory differ by
// an index map only.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emulator/form_expansion.h"
#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

/// A tensor of 32-bit words and a box in it, index 0 innermost.
struct Boxed {
  int rank;
  std::array<uint32_t, 5> dims{}, box{}, at{};
};

Boxed boxed(int rank) {
  switch (rank) {
    case 1:
      return {1, {64}, {32}, {8}};
    case 2:
      return {2, {16, 6}, {8, 3}, {4, 2}};
    case 3:
      return {3, {8, 4, 3}, {4, 2, 2}, {4, 1, 1}};
    case 4:
      return {4, {8, 3, 3, 2}, {4, 2, 2, 1}, {4, 1, 1, 1}};
    default:
      return {5, {4, 3, 2, 2, 2}, {4, 2, 1, 2, 1}, {0, 1, 1, 0, 1}};
  }
}

uint32_t words(const std::array<uint32_t, 5>& extent, int rank) {
  uint32_t n = 1;
  for (int i = 0; i < rank; ++i) n *= extent[static_cast<size_t>(i)];
  return n;
}

/// Word of the tensor that holds word `i` of the box.
uint32_t tensor_word(const Boxed& b, uint32_t i) {
  uint32_t out = 0, pitch = 1;
  for (size_t d = 0; d < static_cast<size_t>(b.rank); ++d) {
    out += (i % b.box[d] + b.at[d]) * pitch;
    i /= b.box[d];
    pitch *= b.dims[d];
  }
  return out;
}

TensorMapBytes map_of(const Boxed& b, uint64_t address) {
  TensorMap map;
  map.type = TensorType::u32;
  map.rank = static_cast<uint32_t>(b.rank);
  map.address = address;
  uint64_t pitch = 4;
  for (size_t d = 0; d < static_cast<size_t>(b.rank); ++d) {
    map.dims[d] = b.dims[d];
    map.box[d] = b.box[d];
    pitch *= b.dims[d];
    if (d < 4) map.strides_bytes[d] = pitch;
  }
  return encode_tensor_map(map);
}

int rank_of(const std::string& form) {
  for (int rank = 1; rank <= 5; ++rank)
    if (has_qualifier(form, std::to_string(rank) + "d")) return rank;
  return 0;
}

std::string coordinates(const Boxed& b) {
  std::string out = "{";
  for (int i = 0; i < b.rank; ++i) out += (i ? ", " : "") + std::to_string(b.at[static_cast<size_t>(i)]);
  return out + "}";
}

uint32_t reduced(const std::string& form, uint32_t old, uint32_t b) {
  if (has_qualifier(form, "add")) return old + b;
  if (has_qualifier(form, "min")) return std::min(old, b);
  if (has_qualifier(form, "max")) return std::max(old, b);
  if (has_qualifier(form, "inc")) return old >= b ? 0 : old + 1;
  if (has_qualifier(form, "dec")) return old == 0 || old > b ? b : old - 1;
  if (has_qualifier(form, "and")) return old & b;
  if (has_qualifier(form, "or")) return old | b;
  return old ^ b;
}

uint32_t word(uint32_t i) { return i % 5 == 0 ? 0 : i * 2654435761u; }

void check_reduction(const std::string& form) {
  Boxed b = boxed(rank_of(form));
  uint32_t n = words(b.dims, b.rank), m = words(b.box, b.rank);
  std::vector<uint32_t> tensor(n), box(128);
  for (uint32_t i = 0; i < n; ++i) tensor[i] = word(i + 3);
  for (uint32_t i = 0; i < 128; ++i) box[i] = word(i * 3 + 1);
  for (uint32_t i = 0; i < m; i += 7) box[i] = tensor[tensor_word(b, i)];
  PtxRun run;
  run.params = ".param .u64 in, .param .align 64 .b8 map[128]";
  run.smem_bytes = 512;
  run.body = R"(
  .reg .b64 i, m, o, pol; .reg .b32 s, t, v, tid; .reg .pred one;
  ld.param.u64 i, [in]; mov.u64 m, map; cvta.param.u64 m, m; mov.u32 s, raw; mov.u32 tid, %tid.x; mov.u64 pol, 0x12F0000000000000;
  setp.eq.u32 one, tid, 0; mul.wide.u32 o, tid, 4; add.u64 i, i, o; ld.global.u32 v, [i]; mad.lo.u32 t, tid, 4, s; st.shared.u32 [t], v;
  fence.proxy.async.shared::cta; bar.sync 0;
  @one )" + form +
             " [m, " + coordinates(b) + "], [s]" + (has_qualifier(form, "L2::cache_hint") ? ", pol" : "") +
             R"(;
  @one cp.async.bulk.commit_group; @one cp.async.bulk.wait_group 0;)";
  Device device;
  uint64_t address = make_buffer(device, tensor);
  LaunchResult r = run.run(device, {make_buffer(device, box), map_of(b, address)});
  ASSERT_TRUE(r.clean()) << form << "\n" << r.text();
  std::vector<uint32_t> want = tensor;
  for (uint32_t i = 0; i < std::min(m, 32u); ++i)
    want[tensor_word(b, i)] = reduced(form, want[tensor_word(b, i)], box[i]);
  EXPECT_EQ(read_buffer<uint32_t>(device, address, n), want) << form;
}

TEST(TensorCopyForms, Reductions) {
  int count = 0;
  for (const std::string& form : forms_of("cp.reduce.async.bulk.tensor")) {
    ASSERT_LE(words(boxed(rank_of(form)).box, rank_of(form)), 32u);  // one word a lane
    check_reduction(form);
    ++count;
  }
  EXPECT_EQ(count, 160);
}

/// The odd CTA of a pair issues; with .cta_group::2 the even CTA's barrier is signalled (ptx-facts 1.3).
void check_load(const std::string& form) {
  Boxed b = boxed(rank_of(form));
  uint32_t n = words(b.dims, b.rank), m = words(b.box, b.rank), bytes = 4 * m;
  bool multicast = has_qualifier(form, "multicast::cluster"), pair = has_qualifier(form, "cta_group::2");
  std::vector<uint32_t> tensor(n);
  for (uint32_t i = 0; i < n; ++i) tensor[i] = word(i + 3);
  uint32_t even = pair ? bytes * (multicast ? 2 : 1) : multicast ? bytes : 0, odd = pair ? 0 : bytes;
  PtxRun run;
  run.target = "sm_100a";
  run.grid = run.cluster = {2, 1, 1};
  run.params = ".param .u64 out, .param .align 64 .b8 map[128]";
  run.smem_bytes = 512;
  run.body = R"(
  .reg .b64 o, m, x, pol; .reg .b32 s, t, v, tid, rank, bar, to, tx; .reg .b16 mask; .reg .pred one, send, p, even, none;
  .shared .align 8 .b64 barrier;
  ld.param.u64 o, [out]; mov.u64 m, map; cvta.param.u64 m, m; mov.u32 s, raw; mov.u32 tid, %tid.x; mov.u32 rank, %cluster_ctarank;
  mov.u32 bar, barrier; mov.b16 mask, 3; mov.u64 pol, 0x12F0000000000000; setp.eq.u32 one, tid, 0; setp.eq.and.u32 send, rank, 1, one;
  setp.eq.u32 even, rank, 0; selp.u32 tx, )" +
             std::to_string(even) + ", " + std::to_string(odd) + R"(, even; setp.eq.u32 none, tx, 0;
  mad.lo.u32 t, tid, 4, s; st.shared.u32 [t], 0x55; fence.proxy.async.shared::cta;
  @one mbarrier.init.shared::cta.b64 [bar], 1; @one fence.mbarrier_init.release.cluster;
  @one mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], tx;
  mapa.shared::cluster.u32 to, bar, )" +
             (pair ? "0" : "1") + R"(;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @send )" + form +
             " [s], [m, " + coordinates(b) + "], [to]" + (multicast ? ", mask" : "") +
             (has_qualifier(form, "L2::cache_hint") ? ", pol" : "") + R"(;
W: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra W;
  barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  ld.shared.u32 v, [t]; mad.lo.u32 t, rank, 32, tid; mul.wide.u32 x, t, 4; add.u64 o, o, x; st.global.u32 [o], v;)";
  // What the even CTA's wait covers of the odd one's memory, the emulator's race check cannot know.
  Device device;
  uint64_t out = device.allocate(256);
  LaunchResult r = run.run(device, {out, map_of(b, make_buffer(device, tensor))});
  ASSERT_TRUE(r.completed) << form << "\n" << r.text();
  std::vector<uint32_t> want(64, 0x55);
  for (uint32_t i = 0; i < m; ++i)
    for (uint32_t cta = multicast ? 0 : 1; cta < 2; ++cta) want[cta * 32 + i] = tensor[tensor_word(b, i)];
  EXPECT_EQ(read_buffer<uint32_t>(device, out, 64), want) << form;
}

TEST(TensorCopyForms, LoadsOfCtaGroups) {
  int count = 0;
  for (const std::string& form : forms_of("cp.async.bulk.tensor"))
    if (has_qualifier(form, "cta_group::1") || has_qualifier(form, "cta_group::2")) {
      check_load(form);
      ++count;
    }
  EXPECT_EQ(count, 80);
}

}  // namespace
}  // namespace gemmtune::emulator
