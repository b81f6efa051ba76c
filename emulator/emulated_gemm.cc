#include "emulator/emulated_gemm.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>

namespace gemmtune {
namespace {

constexpr uint64_t kSeed = 20240229;
// What the output holds before a launch; guard bands around it are the emulator's own. NaNs first, in every
// output type: what is never written, or only added to, cannot pass. Later launches find numbers
// (48.5, 3.13), which show what is only added to if there is no NaN.
constexpr uint8_t kNaNs = 0xff, kNumbers = 0x42;

std::vector<float> filled(const FillRecipe& recipe, uint64_t seed, int64_t count, DType type) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = rounded(fill_value(recipe, seed, static_cast<uint64_t>(i)), type);
  return values;
}

std::vector<uint8_t> encoded(const std::vector<float>& values, DType type) {
  std::vector<uint8_t> bytes(values.size() * static_cast<size_t>(size_bytes(type)));
  for (size_t i = 0; i < values.size(); ++i) {
    if (type == DType::f32) {
      std::memcpy(&bytes[4 * i], &values[i], 4);
    } else {
      uint16_t bits = type == DType::f16 ? to_f16_bits(values[i]) : to_bf16_bits(values[i]);
      std::memcpy(&bytes[2 * i], &bits, 2);
    }
  }
  return bytes;
}

float decoded(const std::vector<uint8_t>& bytes, size_t index, DType type) {
  if (type == DType::f32) {
    float value;
    std::memcpy(&value, &bytes[4 * index], 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, &bytes[2 * index], 2);
  return type == DType::f16 ? from_f16_bits(bits) : from_bf16_bits(bits);
}

emulator::TensorType tensor_type(DType type) {
  return type == DType::f16    ? emulator::TensorType::f16
         : type == DType::bf16 ? emulator::TensorType::bf16
                               : emulator::TensorType::f32;
}

/// Raw parameter bytes of a plan, each at its natural alignment (tensor maps: 64). `blackwell`: how a tensor
/// map looks.
std::vector<uint8_t> parameter_bytes(const LaunchPlan& plan, const std::map<Operand, uint64_t>& addresses,
                                     bool blackwell) {
  std::vector<uint8_t> bytes;
  auto put = [&](const void* data, size_t size, size_t align) {
    bytes.resize((bytes.size() + align - 1) / align * align);
    const auto* from = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), from, from + size);
  };
  for (const KernelArg& arg : plan.args)
    std::visit(
        [&](const auto& value) {
          using Arg = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<Arg, TensorMapSpec>) {
            emulator::TensorMap map;
            map.type = tensor_type(value.type);
            map.rank = static_cast<uint32_t>(value.rank);
            map.address = addresses.at(value.operand);
            map.dims = value.dims;
            map.strides_bytes = value.strides_bytes;
            map.box = value.box;
            map.swizzle = static_cast<emulator::TensorSwizzle>(value.swizzle);
            emulator::TensorMapBytes encoded_map = emulator::encode_tensor_map(map, blackwell);
            put(encoded_map.data(), encoded_map.size(), 64);
          } else if constexpr (std::is_same_v<Arg, PointerArg>) {
            uint64_t address = addresses.at(value.operand);
            put(&address, sizeof address, alignof(uint64_t));
          } else {
            put(&value, sizeof value, alignof(Arg));
          }
        },
        arg);
  return bytes;
}

}  // namespace

emulator::LaunchConfig planned_launch(emulator::LaunchConfig how, const Variant& v, const LaunchPlan& plan,
                                      const std::map<Operand, uint64_t>& addresses) {
  how.kernel = v.family->entry();
  how.grid = plan.grid;
  how.block = plan.block;
  how.cluster = plan.cluster;
  how.preferred_cluster = plan.preferred_cluster;
  how.dynamic_smem_bytes = static_cast<uint32_t>(plan.dynamic_smem_bytes);
  how.params = parameter_bytes(plan, addresses, v.arch->has_tcgen05);
  return how;
}

EmulatedGemm::EmulatedGemm(const Problem& problem, Fill fill, float alpha, float beta)
    : problem_(problem), fill_(fill), alpha_(alpha), beta_(beta) {
  const auto& [cls, shape] = problem;
  FillRecipe recipe = operand_recipe(fill, problem);
  std::vector<float> a = filled(recipe, kSeed, shape.m * shape.k, cls.in);
  std::vector<float> b = filled(recipe, kSeed + 1, shape.n * shape.k, cls.in);
  std::vector<float> c;
  if (cls.beta) c = filled(c_recipe(fill), kSeed + 2, shape.m * shape.n, cls.out);
  reference_ = reference_gemm(problem, a, b, c, alpha, beta);
  size_t in_size = static_cast<size_t>(size_bytes(cls.in)),
         out_size = static_cast<size_t>(size_bytes(cls.out));
  size_t d_bytes = static_cast<size_t>(shape.m * shape.n) * out_size;
  bytes_ = {{Operand::a, static_cast<size_t>(shape.m * shape.k) * in_size},
            {Operand::b, static_cast<size_t>(shape.n * shape.k) * in_size},
            {Operand::c, cls.beta ? d_bytes : 0},
            {Operand::d, d_bytes}};
  addresses_ = {{Operand::a, upload(a, cls.in)},
                {Operand::b, upload(b, cls.in)},
                {Operand::c, cls.beta ? upload(c, cls.out) : 0},
                {Operand::d, device_.allocate(d_bytes)},
                {Operand::workspace, 0}};
}

uint64_t EmulatedGemm::upload(const std::vector<float>& values, DType type) {
  std::vector<uint8_t> bytes = encoded(values, type);
  uint64_t address = device_.allocate(bytes.size());
  device_.copy_in(address, bytes);
  return address;
}

emulator::LaunchResult EmulatedGemm::launch(emulator::Module& module, const Variant& v, int sm_count,
                                            emulator::LaunchConfig how) {
  TileShape tile = v.family->tile(v.config, v.cls);
  int clusters = std::max(1, sm_count / (tile.cluster_m * tile.cluster_n));
  LaunchPlan plan =
      v.family->plan(v.config, v.cls, *v.arch, problem_.shape, {sm_count, clusters}, alpha_, beta_);
  if (plan.workspace_bytes > workspace_bytes_) {
    // Zero before the first launch only: later ones rely on what the kernel leaves behind.
    workspace_bytes_ = plan.workspace_bytes;
    addresses_[Operand::workspace] = device_.allocate(static_cast<uint64_t>(workspace_bytes_));
    device_.fill(addresses_.at(Operand::workspace), 0, static_cast<uint64_t>(workspace_bytes_));
  }
  how = planned_launch(std::move(how), v, plan, addresses_);
  how.sm_count = sm_count;
  how.tmem_from_top = true;  // finds kernels that forget to add the allocation's base
  device_.fill(addresses_.at(Operand::d), launches_++ == 0 ? kNaNs : kNumbers, bytes_.at(Operand::d));
  if (!plan.programmatic) return device_.launch(module, how);
  // The second starts while the first still runs.
  std::array<emulator::StreamLaunch, 2> stream = {{{&module, how, false}, {&module, how, true}}};
  std::vector<emulator::LaunchResult> results = device_.launch_stream(stream);
  return results.back();
}

std::vector<uint8_t> EmulatedGemm::bytes(Operand operand) const {
  std::vector<uint8_t> bytes(bytes_.at(operand));
  if (!bytes.empty()) device_.copy_out(addresses_.at(operand), bytes);
  return bytes;
}

ValidationCase EmulatedGemm::compare(const std::vector<uint8_t>& got) const {
  ValidationCase result;
  result.fill = fill_;
  result.shape = problem_.shape;
  result.elements = problem_.shape.m * problem_.shape.n;
  const Reference& want = reference_;
  DType out = problem_.cls.out;
  double slope = error_slope(problem_.shape.k);
  double half_step = out == DType::f16 ? 0x1p-11 : out == DType::bf16 ? 0x1p-8 : 0x1p-24;
  double smallest = out == DType::f16 ? 0x1p-25 : 0x1p-134;
  for (size_t i = 0; i < want.value.size(); ++i) {
    float value = decoded(got, i, out);
    bool exact = result.fill != Fill::normal;
    double target = exact ? rounded(want.value[i], out) : want.value[i];
    double error =
        value == target ? 0 : std::fabs(double(value) - target);  // infinities of one sign are equal
    double accumulated = exact ? 0 : slope * want.magnitude[i];
    double bound = exact ? 0 : accumulated + half_step * (std::fabs(target) + accumulated) + smallest;
    bool wrong = !(error <= bound);
    if (std::isnan(error)) error = INFINITY;
    result.max_abs_error = std::max(result.max_abs_error, error);
    if (!exact) result.max_error_over_bound = std::max(result.max_error_over_bound, error / bound);
    if (!wrong) continue;
    if (result.mismatches++ == 0) {
      int64_t n = problem_.shape.n, at = static_cast<int64_t>(i);
      result.first_mismatch =
          fmt::format("row {}, column {}: got {}, want {}", at / n, at % n, value, target);
    }
  }
  return result;
}

}  // namespace gemmtune
