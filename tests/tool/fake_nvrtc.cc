// A stand-in for libnvrtc.so (GEMMTUNE_NVRTC names it): compiles anything at once, and fails on demand, so
// that tests see what a sweep does when the compiler breaks. Environment: FAKE_NVRTC_ABORT and
// FAKE_NVRTC_FAIL name a text; a source that has it kills the process or does not compile.
// FAKE_NVRTC_HANG: text of a source whose compilation never ends; FAKE_NVRTC_EAT: one that takes all memory
// there is. FAKE_NVRTC_LEAK_KIB: memory lost by each compilation. FAKE_NVRTC_DELAY_MS: time of each
// compilation. FAKE_NVRTC_LOG: file that gets a line for each compilation.
#include <nvrtc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

struct _nvrtcProgram {
  std::string source, log;
};

namespace {

constexpr char kPtx[] = "// Cuda compilation tools, release 13.0, V13.0.1\n.version 9.0\n";
constexpr char kCubin[] = "fake cubin";
constexpr char kPtxasLog[] =
    "ptxas info : 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info : Used 40 registers, used 1 barriers\n";

bool source_has(const nvrtcProgram program, const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' && program->source.find(text) != std::string::npos;
}

nvrtcResult give(const char* text, size_t size, char* out) {
  std::memcpy(out, text, size);
  return NVRTC_SUCCESS;
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 90;
  archs[1] = 100;
  archs[2] = 103;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                               const char* const*, const char* const*) {
  *program = new _nvrtcProgram{source, ""};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  bool kernel = program->source.find("namespace knob") != std::string::npos;
  if (const char* path = std::getenv("FAKE_NVRTC_LOG"); path != nullptr && kernel)
    if (FILE* file = std::fopen(path, "a")) {
      std::fputs("compiled\n", file);
      std::fclose(file);
    }
  if (const char* delay = std::getenv("FAKE_NVRTC_DELAY_MS"); delay != nullptr && kernel)
    ::usleep(static_cast<useconds_t>(std::atoi(delay)) * 1000);
  if (source_has(program, "FAKE_NVRTC_ABORT")) std::abort();
  while (source_has(program, "FAKE_NVRTC_HANG")) ::sleep(1000);
  while (source_has(program, "FAKE_NVRTC_EAT"))
    if (std::malloc(64u << 20) == nullptr) std::abort();
  if (const char* leak = std::getenv("FAKE_NVRTC_LEAK_KIB"); leak != nullptr && kernel) {
    static void* lost;
    lost = std::malloc(static_cast<size_t>(std::atoi(leak)) << 10);
    std::memset(lost, 1, static_cast<size_t>(std::atoi(leak)) << 10);
  }
  bool fails = source_has(program, "FAKE_NVRTC_FAIL");
  program->log = fails ? "variant.cu(1): error: the test wants this to fail" : kPtxasLog;
  return fails ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* size) {
  *size = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  return give(program->log.c_str(), program->log.size() + 1, log);
}
nvrtcResult nvrtcGetPTXSize(nvrtcProgram, size_t* size) {
  *size = sizeof kPtx;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetPTX(nvrtcProgram, char* ptx) { return give(kPtx, sizeof kPtx, ptx); }
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t* size) {
  *size = sizeof kCubin;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char* cubin) { return give(kCubin, sizeof kCubin, cubin); }
const char* nvrtcGetErrorString(nvrtcResult) { return "fake"; }

}  // extern "C"
