#include "gpu/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "gemm/error.h"

namespace gemmtune {

std::vector<std::string> nvrtc_paths() {
  if (const char* exact = std::getenv("GEMMTUNE_NVRTC"); exact && *exact) return {exact};
  std::vector<std::string> folders;
  if (const char* home = std::getenv("CUDA_HOME"); home && *home)
    folders.push_back(std::string(home) + "/lib64/");
  folders.push_back("/usr/local/cuda/lib64/");
  if (std::strlen(GEMMTUNE_TOOLKIT_DIR) > 0) folders.push_back(std::string(GEMMTUNE_TOOLKIT_DIR) + "/lib/");
  folders.push_back("");  // wherever the loader looks
  std::vector<std::string> paths;
  // CUDA 13 anywhere before the unversioned name, which may be an older toolkit's.
  for (const char* file : {"libnvrtc.so.13", "libnvrtc.so"})
    for (const std::string& folder : folders) paths.push_back(folder + file);
  return paths;
}

Nvrtc::Nvrtc() : library_(nvrtc_paths()) {
  if (const char* exact = std::getenv("GEMMTUNE_NVRTC"); !library_ && exact && *exact)
    throw EnvironmentError(
        fmt::format("NVRTC not found: GEMMTUNE_NVRTC names {}, which cannot be loaded; correct or "
                    "unset it",
                    exact));
  if (!library_)
    throw EnvironmentError(
        "NVRTC not found (libnvrtc.so.13): set CUDA_HOME to a CUDA 13 toolkit or run scripts/toolkit.sh");
  bool complete =
      library_.load(Version, "nvrtcVersion") &&
      library_.load(GetNumSupportedArchs, "nvrtcGetNumSupportedArchs") &&
      library_.load(GetSupportedArchs, "nvrtcGetSupportedArchs") &&
      library_.load(CreateProgram, "nvrtcCreateProgram") &&
      library_.load(DestroyProgram, "nvrtcDestroyProgram") &&
      library_.load(CompileProgram, "nvrtcCompileProgram") &&
      library_.load(GetProgramLogSize, "nvrtcGetProgramLogSize") &&
      library_.load(GetProgramLog, "nvrtcGetProgramLog") && library_.load(GetPTXSize, "nvrtcGetPTXSize") &&
      library_.load(GetPTX, "nvrtcGetPTX") && library_.load(GetCUBINSize, "nvrtcGetCUBINSize") &&
      library_.load(GetCUBIN, "nvrtcGetCUBIN") && library_.load(GetErrorString, "nvrtcGetErrorString");
  if (!complete)
    throw EnvironmentError(fmt::format(
        "{} lacks functions that CUDA 13 has: set CUDA_HOME to a CUDA 13 toolkit", library_.path()));
  int major = 0, minor = 0;
  Version(&major, &minor);
  version_ = fmt::format("{}.{}", major, minor);
  // NVRTC opens its builtins by bare name and has no search path of its own: outside the loader's folders it
  // finds them only if they are loaded already.
  if (size_t slash = library_.path().rfind('/'); slash != std::string::npos)
    builtins_ = DynamicLibrary({library_.path().substr(0, slash) + "/libnvrtc-builtins.so." + version_});
  // The patch level, which nvrtcVersion does not tell, stands in the head of every PTX text:
  // "Cuda compilation tools, release 13.0, V13.0.88". It belongs into the key of a cubin.
  CompileResult empty = compile({"", "extern \"C\" __global__ void empty() {}", "sm_90"});
  if (empty.log.find("libnvrtc-builtins") != std::string::npos)
    throw EnvironmentError(
        fmt::format("{} does not find its libnvrtc-builtins.so.{}: put it into the same folder",
                    library_.path(), version_));
  size_t at = empty.ptx.find(", V");
  if (at != std::string::npos)
    version_ = empty.ptx.substr(at + 3, empty.ptx.find_first_not_of("0123456789.", at + 3) - at - 3);
}

bool Nvrtc::supports(const std::string& target) const {
  int count = 0;
  GetNumSupportedArchs(&count);
  std::vector<int> known(static_cast<size_t>(count));
  GetSupportedArchs(known.data());
  return std::ranges::find(known, std::atoi(target.c_str() + 3)) != known.end();
}

CompileResult Nvrtc::compile(const CompileRequest& request) const {
  CompileResult result;
  result.key = request.key;
  auto start = std::chrono::steady_clock::now();
  nvrtcProgram raw = nullptr;
  nvrtcResult status = CreateProgram(&raw, request.source.c_str(), "variant.cu", 0, nullptr, nullptr);
  auto destroy = [this](nvrtcProgram program) { DestroyProgram(&program); };
  std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, decltype(destroy)> program(raw, destroy);

  std::vector<std::string> options = {"--gpu-architecture=" + request.target};
  std::istringstream words{std::string(compile_options())};
  for (std::string word; words >> word;) options.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());

  if (status == NVRTC_SUCCESS)
    status = CompileProgram(program.get(), static_cast<int>(pointers.size()), pointers.data());
  result.compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();

  auto text = [&](auto get_size, auto get) {
    size_t size = 0;
    std::string out;
    if (get_size(program.get(), &size) != NVRTC_SUCCESS || size == 0) return out;
    out.resize(size);
    get(program.get(), out.data());
    return out;
  };
  auto c_text = [&](auto get_size, auto get) {
    std::string out = text(get_size, get);
    return out.substr(0, out.find('\0'));
  };
  result.log = c_text(GetProgramLogSize, GetProgramLog);
  if (status != NVRTC_SUCCESS) {
    if (result.log.empty()) result.log = GetErrorString(status);
    return result;
  }
  result.ptx = c_text(GetPTXSize, GetPTX);
  result.cubin = text(GetCUBINSize, GetCUBIN);
  result.evidence.counts = count_instructions(result.ptx);
  if (!parse_ptxas_log(result.log, result.evidence)) {
    result.log = "ptxas reported no register counts:\n" + result.log;
    return result;
  }
  result.ok = !result.cubin.empty();
  return result;
}

bool parse_ptxas_log(const std::string& log, StaticEvidence& evidence) {
  // ptxas -v prints "N bytes stack frame, N bytes spill stores, N bytes spill loads" and
  // "Used N registers, used N barriers[, N bytes smem]".
  auto number_before = [&](std::string_view words, int& value) {
    size_t at = log.find(words);
    if (at == std::string::npos) return false;
    size_t begin = log.find_last_not_of("0123456789", at - 1);
    begin = begin == std::string::npos ? 0 : begin + 1;
    if (begin == at) return false;
    value = std::atoi(log.c_str() + begin);
    return true;
  };
  number_before(" bytes smem", evidence.static_smem_bytes);
  return number_before(" bytes stack frame", evidence.stack_bytes) &&
         number_before(" bytes spill stores", evidence.spill_store_bytes) &&
         number_before(" bytes spill loads", evidence.spill_load_bytes) &&
         number_before(" registers", evidence.registers);
}

InstructionCounts count_instructions(const std::string& ptx) {
  InstructionCounts counts;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//")) continue;
    auto has = [&](std::string_view text) { return line.find(text) != std::string::npos; };
    if (has("tcgen05.mma") || has("wgmma.mma_async")) ++counts.mma;
    if (has("cp.async.bulk.tensor"))
      ++(has(".global.shared::cta") || has("cp.reduce") ? counts.tma_store : counts.tma_load);
    if (has("tcgen05.commit")) ++counts.commit;
    if (has("mbarrier.try_wait") || has("mbarrier.test_wait")) ++counts.mbarrier_wait;
    if (has("tcgen05.ld")) ++counts.tmem_load;
    if (has("tcgen05.alloc")) ++counts.tmem_alloc;
  }
  return counts;
}

}  // namespace gemmtune
