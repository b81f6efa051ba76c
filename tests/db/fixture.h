// A database in a folder of its own, and records to put in.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "db/store.h"
#include "tests/temp_folder.h"

namespace gemmtune {

class DbTest : public testing::Test {
 protected:
  std::string path(const std::string& name = "t.db") const { return (folder_ / name).string(); }

  TempFolder temp_;
  std::filesystem::path folder_ = temp_.path();
};

/// The message of the error that `action` throws, or "no error".
template <class Error, class Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

inline DeviceRecord h200(const std::string& uuid = "GPU-1") {
  return {uuid, "NVIDIA H200", "sm_90a", 132, 50 << 20, 1'980'000, "580.95"};
}
inline DeviceRecord no_device(const std::string& arch = "sm_100a") { return {"", "none", arch, 0, 0, 0, ""}; }

inline Problem problem(int64_t m = 4096, int64_t n = 4096, int64_t k = 4096) { return {{}, {m, n, k}}; }

inline Validation passed_validation(ValidatedBy by = ValidatedBy::gpu) {
  return {by, {{Fill::sharp, {4096, 4096, 4096}, 1 << 24, 0, 0, 0, true, true, ""}}};
}

inline CompiledKernel kernel(const std::string& key, const std::string& config,
                             const std::string& arch = "sm_90a") {
  CompiledKernel k;
  k.key = key;
  k.family = "sm90_gemm";
  k.arch = arch;
  k.problem_class = "bf16-bf16-kk";
  k.config = config;
  k.toolchain = {"nvrtc", "13.0.88"};
  k.ok = true;
  k.cubin = std::string(
      "\x7f"
      "ELF\0bytes",
      10);
  k.evidence = {168, 1, 2, 3, 4, 5, 6, {1, 2, 3, 4, 5, 6, 7}};
  k.compile_ms = 231.5;
  k.log = "ptxas info";
  return k;
}

/// An untimed trial without a kernel.
inline Trial failed_trial(const Problem& problem, const std::string& config, Outcome outcome) {
  Trial t;
  t.problem = problem;
  t.family = "sm90_gemm";
  t.arch = "sm_90a";
  t.config = config;
  t.outcome = outcome;
  t.stage = "compile";
  t.message = "why";
  return t;
}

/// Validated and timed with the given samples.
inline Trial ok_trial(const Problem& problem, const std::string& config, const std::vector<double>& times_us,
                      Regime regime = Regime::burst) {
  Trial t = failed_trial(problem, config, Outcome::ok);
  t.stage = "done";
  t.message.clear();
  t.validation = passed_validation();
  t.measurement = Measurement{"p1", regime, false, {}};
  for (double us : times_us) t.measurement->samples.push_back({us, 10, 1, false, 1'500'000, 650'000, 60, 0});
  return t;
}

}  // namespace gemmtune
