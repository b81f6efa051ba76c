#include "emulator/emulator_executor.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "emulator/emulator.h"
#include "gemm/fill.h"
#include "search/proxy_shapes.h"

namespace gemmtune {
namespace {

// Few SMs keep "more tiles than CTAs" small; still two clusters at once, and some CTAs without a cluster.
constexpr int kSmCount = 16;
int sm_count(const TileShape& tile) { return std::max(6, 2 * tile.cluster_m * tile.cluster_n); }

constexpr uint64_t kSeed = 20240229;
// What nothing may write to: fresh emulated memory has guard bands of its own, which the emulator checks.
constexpr uint8_t kPoison = 0xff;  // a NaN in every output type

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

/// Raw parameter bytes of a plan, each at its natural alignment (tensor maps: 64).
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

/// Compares as the GPU does: integer fills bit for bit, the normal fill within its bound.
void judge(const std::vector<uint8_t>& got, const Reference& want, const Problem& problem,
           ValidationCase& result) {
  DType out = problem.cls.out;
  double slope = error_slope(problem.shape.k);
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
      int64_t n = problem.shape.n, at = static_cast<int64_t>(i);
      result.first_mismatch =
          fmt::format("row {}, column {}: got {}, want {}", at / n, at % n, value, target);
    }
  }
}

}  // namespace

EmulatorExecutor::EmulatorExecutor(const ArchSpec& arch) {
  device_.name = "emulator";
  device_.arch = arch.name;
  device_.sm_count = kSmCount;
  device_.driver_version = fmt::format("emulator {}", emulator::kVersion);
}

StepResult EmulatorExecutor::begin_problem(const Problem& problem, float alpha, float beta) {
  problem_ = problem;
  alpha_ = alpha;
  beta_ = beta;
  loaded_.clear();
  return {};
}

StepResult EmulatorExecutor::prepare(int handle, const Variant& variant, const CompiledKernel& kernel) {
  loaded_[handle] = {variant, kernel.ptx};
  return {};
}

ValidationResult EmulatorExecutor::validate(int handle) {
  const Loaded& loaded = loaded_.at(handle);
  const KernelFamily& family = *loaded.variant.family;
  std::string identity = fmt::format("{} {} {} {}", to_string(loaded.variant.cls),
                                     to_text(family.knobs(), loaded.variant.config), alpha_, beta_);
  auto found = proven_.find(identity);
  if (found == proven_.end()) found = proven_.emplace(identity, prove(loaded)).first;
  return found->second;
}

SampleResult EmulatorExecutor::sample(int, Regime) {
  return {{Outcome::launch_failed, "the emulator takes no times"}, {}};
}

ValidationResult EmulatorExecutor::prove(const Loaded& loaded) const {
  const Variant& v = loaded.variant;
  ValidationResult result;
  result.validation.by = ValidatedBy::emulator;
  auto fail = [&](Outcome outcome, std::string message) {
    result.outcome = outcome;
    result.message = std::move(message);
    return result;
  };
  std::optional<emulator::Module> module;
  try {
    module.emplace(loaded.ptx);
  } catch (const emulator::PtxError& error) {
    return fail(Outcome::launch_failed,
                fmt::format("the emulator does not understand the PTX: {}", error.what()));
  }
  TileShape tile = v.family->tile(v.config, v.cls);
  int sms = sm_count(tile), clusters = sms / (tile.cluster_m * tile.cluster_n);
  using emulator::SchedulePolicy;
  const emulator::Schedule schedules[] = {{SchedulePolicy::eager, 0}, {SchedulePolicy::random, kSeed}};
  for (const Shape& shape : proxy_shapes(tile, v.cls, sms))
    for (Fill fill : kAllFills) {
      Problem problem{v.cls, shape};
      FillRecipe recipe = operand_recipe(fill, problem);
      std::vector<float> a = filled(recipe, kSeed, shape.m * shape.k, v.cls.in);
      std::vector<float> b = filled(recipe, kSeed + 1, shape.n * shape.k, v.cls.in);
      std::vector<float> c;
      if (v.cls.beta) c = filled(c_recipe(fill), kSeed + 2, shape.m * shape.n, v.cls.out);
      Reference want = reference_gemm(problem, a, b, c, alpha_, beta_);

      emulator::Device device;
      auto upload = [&](const std::vector<float>& values, DType type) {
        std::vector<uint8_t> bytes = encoded(values, type);
        uint64_t address = device.allocate(bytes.size());
        device.copy_in(address, bytes);
        return address;
      };
      size_t d_bytes = static_cast<size_t>(shape.m * shape.n) * static_cast<size_t>(size_bytes(v.cls.out));
      uint64_t d = device.allocate(d_bytes);
      std::map<Operand, uint64_t> addresses = {{Operand::a, upload(a, v.cls.in)},
                                               {Operand::b, upload(b, v.cls.in)},
                                               {Operand::c, v.cls.beta ? upload(c, v.cls.out) : 0},
                                               {Operand::d, d}};
      LaunchPlan plan = v.family->plan(v.config, v.cls, *v.arch, shape, {sms, clusters}, alpha_, beta_);
      emulator::LaunchConfig launch;
      launch.kernel = v.family->entry();
      launch.grid = plan.grid;
      launch.block = plan.block;
      launch.cluster = plan.cluster;
      launch.dynamic_smem_bytes = static_cast<uint32_t>(plan.dynamic_smem_bytes);
      launch.params = parameter_bytes(plan, addresses, v.arch->has_tcgen05);
      launch.sm_count = sms;
      launch.tmem_from_top = true;  // finds kernels that forget to add the allocation's base

      ValidationCase one;
      one.fill = fill;
      one.shape = shape;
      one.elements = shape.m * shape.n;
      std::vector<uint8_t> first;
      for (const emulator::Schedule& schedule : schedules) {
        device.fill(d, kPoison, d_bytes);
        launch.schedule = schedule;
        emulator::LaunchResult ran = device.launch(*module, launch);
        if (!ran.clean()) {
          std::string text =
              ran.diagnoses.empty() ? "did not complete" : emulator::to_string(ran.diagnoses.front());
          bool hung = !ran.diagnoses.empty() && (ran.diagnoses.front().check == emulator::Check::deadlock ||
                                                 ran.diagnoses.front().check == emulator::Check::livelock);
          return fail(hung ? Outcome::timed_out : Outcome::crashed,
                      fmt::format("{} fill at {}, schedule {}: {}", name(fill), to_string(shape),
                                  emulator::name(schedule.policy), text));
        }
        std::vector<uint8_t> bytes(d_bytes);
        device.copy_out(d, bytes);
        if (first.empty()) {
          judge(bytes, want, problem, one);
          first = std::move(bytes);
        } else {
          one.repeatable = bytes == first;
        }
      }
      result.validation.cases.push_back(one);
      if (!one.passed())
        return fail(
            one.mismatches > 0 ? Outcome::wrong_result : Outcome::unstable,
            fmt::format("{} fill at {}: {}", name(fill), to_string(shape),
                        one.mismatches > 0 ? fmt::format("{} of {} elements wrong, first {}", one.mismatches,
                                                         one.elements, one.first_mismatch)
                                           : std::string("two schedules gave different bits")));
    }
  return result;
}

}  // namespace gemmtune
