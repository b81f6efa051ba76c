// NVRTC, loaded at run time: CUDA source to PTX and cubin, with what ptxas says of the result.
#pragma once

#include <nvrtc.h>

#include <string>
#include <vector>

#include "gpu/dynamic_library.h"
#include "search/compiler.h"

namespace gemmtune {

class Nvrtc {
 public:
  /// Looks in $CUDA_HOME/lib64, /usr/local/cuda/lib64, the build's toolkit folder, then where the loader
  /// looks. Throws EnvironmentError that says what to do if there is none.
  Nvrtc();

  std::string version() const { return version_; }  ///< "13.0.88"
  const std::string& path() const { return library_.path(); }
  /// Whether this NVRTC can target the architecture.
  bool supports(const std::string& target) const;

  /// `request.target` is exact ("sm_100a"). Never throws for a bad source: `ok` is false and the log says
  /// why.
  CompileResult compile(const CompileRequest& request) const;

 private:
  DynamicLibrary library_, builtins_;
  std::string version_;
  decltype(&::nvrtcVersion) Version;
  decltype(&::nvrtcGetNumSupportedArchs) GetNumSupportedArchs;
  decltype(&::nvrtcGetSupportedArchs) GetSupportedArchs;
  decltype(&::nvrtcCreateProgram) CreateProgram;
  decltype(&::nvrtcDestroyProgram) DestroyProgram;
  decltype(&::nvrtcCompileProgram) CompileProgram;
  decltype(&::nvrtcGetProgramLogSize) GetProgramLogSize;
  decltype(&::nvrtcGetProgramLog) GetProgramLog;
  decltype(&::nvrtcGetPTXSize) GetPTXSize;
  decltype(&::nvrtcGetPTX) GetPTX;
  decltype(&::nvrtcGetCUBINSize) GetCUBINSize;
  decltype(&::nvrtcGetCUBIN) GetCUBIN;
  decltype(&::nvrtcGetErrorString) GetErrorString;
};

/// Candidate files, in order.
std::vector<std::string> nvrtc_paths();

/// Registers, spills, stack and static shared memory out of ptxas' -v messages. False if they are not there.
bool parse_ptxas_log(const std::string& log, StaticEvidence& evidence);

/// Static instruction counts of a PTX text.
InstructionCounts count_instructions(const std::string& ptx);

}  // namespace gemmtune
