// Runs the GEMM kernels of tests/emulator/kernels and compares every element with a sum formed on the host.
#pragma once

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "emulator/emulator.h"
#include "emulator/program.h"
#include "gemm/dtype.h"

namespace gemmtune::emulator {

inline std::string read_text(const std::string& name) {
  std::ifstream file(std::string(GEMMTUNE_SOURCE_DIR) + "/tests/emulator/kernels/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct GemmCase {
  std::string ptx;  ///< text
  bool is_sm90 = false;
  uint32_t cta_group = 1;
  uint32_t m = 256, n = 256, k = 640;
  Schedule schedule;
  bool tmem_from_top = false;
  bool normal_fill = false;  ///< else small integers
  uint64_t instruction_limit = 0;
  uint32_t smem_bytes = 0;  ///< 0: what the kernel needs
  uint32_t box_k = 64;      ///< depth of the tensor maps' boxes
};

struct GemmResult {
  LaunchResult launch;
  int64_t wrong = 0;
  std::vector<float> c;
  std::string text() const { return launch.text() + std::to_string(wrong) + " elements wrong"; }
};

template <class T>
std::span<const uint8_t> as_bytes_of(const std::vector<T>& v) {
  return {reinterpret_cast<const uint8_t*>(v.data()), v.size() * sizeof(T)};
}

inline GemmResult run_gemm(const GemmCase& g) {
  Module module(g.ptx);
  Device device;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> a(size_t{g.m} * g.k), b(size_t{g.n} * g.k);
  auto fill = [&](std::vector<float>& v, std::vector<uint16_t>& bits) {
    for (size_t i = 0; i < v.size(); ++i) {
      float x = g.normal_fill ? normal(random) : static_cast<float>(static_cast<int>(random() % 7) - 3);
      bits.push_back(g.is_sm90 ? to_bf16_bits(x) : to_f16_bits(x));
      v[i] = g.is_sm90 ? from_bf16_bits(bits.back()) : from_f16_bits(bits.back());
    }
  };
  std::vector<uint16_t> a_bits, b_bits;
  fill(a, a_bits);
  fill(b, b_bits);
  uint64_t at_a = device.allocate(a_bits.size() * 2), at_b = device.allocate(b_bits.size() * 2),
           at_c = device.allocate(uint64_t{g.m} * g.n * 4);
  device.copy_in(at_a, as_bytes_of(a_bits));
  device.copy_in(at_b, as_bytes_of(b_bits));

  auto operand_map = [&](uint64_t address, uint32_t rows, uint32_t box_rows) {
    TensorMap map;
    map.type = g.is_sm90 ? TensorType::bf16 : TensorType::f16;
    map.address = address;
    map.dims = {g.k, rows};
    map.strides_bytes = {g.k * 2ull};
    map.box = {g.box_k, box_rows};
    map.swizzle = TensorSwizzle::b128;
    return encode_tensor_map(map);
  };
  LaunchConfig config;
  config.kernel = "gemm";
  config.schedule = g.schedule;
  config.tmem_from_top = g.tmem_from_top;
  config.livelock_instructions = 200'000;
  config.instruction_limit = g.instruction_limit;
  const Function& function = *module.program().find_entry("gemm");
  config.params.resize(function.param_bytes);
  auto put = [&](size_t index, const void* value, size_t bytes) {
    std::memcpy(config.params.data() + function.params[index].offset, value, bytes);
  };
  if (g.is_sm90) {
    config.grid = {g.m / 64, g.n / 64, 1};
    config.block = {256, 1, 1};
    config.dynamic_smem_bytes = 4 * 8192 + 64 * 64 * 4 + 32;
    auto map_a = operand_map(at_a, g.m, 64), map_b = operand_map(at_b, g.n, 64);
    TensorMap out;
    out.type = TensorType::f32;
    out.address = at_c;
    out.dims = {g.n, g.m};
    out.strides_bytes = {g.n * 4ull};
    out.box = {64, 64};
    auto map_c = encode_tensor_map(out);
    put(0, map_a.data(), 128);
    put(1, map_b.data(), 128);
    put(2, map_c.data(), 128);
    put(3, &g.k, 4);
  } else {
    config.grid = {g.m / 128, g.n / 128, 1};
    config.block = {192, 1, 1};
    config.cluster = {g.cta_group, 1, 1};
    config.dynamic_smem_bytes = 3 * (16384 + 16384 / g.cta_group) + 64;
    auto map_a = operand_map(at_a, g.m, 128), map_b = operand_map(at_b, g.n, 128 / g.cta_group);
    put(0, map_a.data(), 128);
    put(1, map_b.data(), 128);
    put(2, &at_c, 8);
    put(3, &g.n, 4);
    put(4, &g.k, 4);
  }
  if (g.smem_bytes) config.dynamic_smem_bytes = g.smem_bytes;
  GemmResult result;
  result.launch = device.launch(module, config);
  result.c.resize(size_t{g.m} * g.n);
  device.copy_out(at_c, {reinterpret_cast<uint8_t*>(result.c.data()), result.c.size() * 4});
  for (uint32_t i = 0; i < g.m; ++i)
    for (uint32_t j = 0; j < g.n; ++j) {
      double sum = 0, magnitude = 0;
      for (uint32_t p = 0; p < g.k; ++p) {
        double term = double(a[size_t{i} * g.k + p]) * double(b[size_t{j} * g.k + p]);
        sum += term;
        magnitude += std::fabs(term);
      }
      float got = result.c[size_t{i} * g.n + j];
      bool ok = g.normal_fill ? std::fabs(got - sum) <= 1e-5 * magnitude : got == static_cast<float>(sum);
      if (!ok) ++result.wrong;
    }
  return result;
}

inline GemmCase sm100_case(uint32_t cta_group, Schedule schedule = {}) {
  GemmCase g;
  g.ptx = read_text(cta_group == 1 ? "sm100_gemm_cg1.ptx" : "sm100_gemm_cg2.ptx");
  g.cta_group = cta_group;
  g.schedule = schedule;
  return g;
}

inline GemmCase sm90_case(Schedule schedule = {}) {
  GemmCase g;
  g.ptx = read_text("sm90_gemm.ptx");
  g.is_sm90 = true;
  g.m = g.n = 128;
  g.k = 320;
  g.schedule = schedule;
  return g;
}

inline const Schedule kSchedules[] = {{SchedulePolicy::eager, 0},
                                      {SchedulePolicy::lazy, 0},
                                      {SchedulePolicy::random, 1},
                                      {SchedulePolicy::random, 2},
                                      {SchedulePolicy::random, 3}};

}  // namespace gemmtune::emulator
