// The compiler as the search sees it.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "search/trial.h"

namespace gemmtune {

/// What goes in. The key covers all of it.
struct CompileRequest {
  std::string key;
  std::string source;
  std::string target;  ///< "sm_100a"
};

/// What comes out. `ok` false: `log` says why (an error of the source, a crash of the compiler, the
/// deadline).
struct CompileResult {
  std::string key;
  bool ok = false;
  std::string cubin, ptx, log;
  StaticEvidence evidence;  ///< without dynamic_smem_bytes and tmem_columns, which the plan knows
  double compile_ms = 0;
};

/// Compiles in the background on several workers. Not thread-safe: one caller.
class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual Toolchain toolchain() const = 0;
  /// Queues a request. Requests start in the order given.
  virtual void submit(CompileRequest request) = 0;
  /// Blocks until the request with this key is finished and hands its result over. It must have been
  /// submitted.
  virtual CompileResult take(const std::string& key) = 0;
  /// Waits up to `patience` for something to finish; true if anything did. For progress displays.
  virtual bool poll(std::chrono::milliseconds patience) = 0;
};

/// Identity of a compilation.
std::string compile_key(const std::string& source, const std::string& target, const Toolchain& toolchain);

/// Options for every compilation, part of the key.
std::string_view compile_options();

}  // namespace gemmtune
