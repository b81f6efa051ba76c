// The vendor library, loaded at run time and optional: its own algorithms for a problem, as launches that are
// validated and timed like ours. Used inside the GPU worker.
//
// The handful of functions and constants needed are declared here by their documented C interface (cuBLASLt
// API reference), so that no cuBLAS header is needed to build; they are the same in versions 12 and 13.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gemm/problem.h"
#include "gpu/cuda_driver.h"
#include "gpu/dynamic_library.h"
#include "gpu/launcher.h"
#include "search/executor.h"

namespace gemmtune {

/// As much as our kernels may have (protocol p1).
inline constexpr int64_t kLibraryWorkspaceBytes = 128ll << 20;

/// Function table of cuBLASLt. `$GEMMTUNE_CUBLASLT` names the one file to use.
class CublasLt {
 public:
  /// Empty (false) where there is none; problem() says why.
  CublasLt();
  explicit operator bool() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }
  const std::string& path() const { return library_.path(); }
  /// "13.0.2"
  std::string version() const;

 private:
  friend class LibraryGemm;
  using Status = int;  // 0: success
  /// cublasLtMatmulAlgo_t: opaque, 64 bytes.
  struct Algo {
    std::array<uint64_t, 8> data;
  };
  /// cublasLtMatmulHeuristicResult_t
  struct HeuristicResult {
    Algo algo;
    size_t workspace_bytes;
    Status state;
    float waves;
    int reserved[4];
  };
  static_assert(sizeof(HeuristicResult) == 96);

  DynamicLibrary library_;
  std::string problem_;
  size_t (*get_version_)() = nullptr;
  const char* (*status_name_)(Status) = nullptr;
  Status (*create_)(void**) = nullptr;
  Status (*destroy_)(void*) = nullptr;
  Status (*desc_create_)(void**, int compute_type, int scale_type) = nullptr;
  Status (*desc_set_)(void*, int attribute, const void*, size_t) = nullptr;
  Status (*desc_destroy_)(void*) = nullptr;
  Status (*layout_create_)(void**, int type, uint64_t rows, uint64_t columns, int64_t ld) = nullptr;
  Status (*layout_destroy_)(void*) = nullptr;
  Status (*preference_create_)(void**) = nullptr;
  Status (*preference_set_)(void*, int attribute, const void*, size_t) = nullptr;
  Status (*preference_destroy_)(void*) = nullptr;
  Status (*heuristic_)(void* handle, void* desc, void* a, void* b, void* c, void* d, void* preference,
                       int requested, HeuristicResult*, int* returned) = nullptr;
  Status (*algo_get_)(const Algo*, int attribute, void*, size_t, size_t* written) = nullptr;
  Status (*matmul_)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout, const void* b,
                    void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,
                    const Algo*, void* workspace, size_t workspace_bytes, CUstream) = nullptr;
};

/// One problem as the library sees it, and what it would run. Lives as long as its launches.
class LibraryGemm {
 public:
  /// Asks for `at_most` algorithms; there may be none. Throws CudaError where the library refuses.
  LibraryGemm(const CublasLt& library, const Problem& problem, float alpha, float beta, int at_most);
  ~LibraryGemm();
  LibraryGemm(const LibraryGemm&) = delete;

  /// In the library's order of preference.
  const std::vector<LibraryAlgorithm>& algorithms() const { return algorithms_; }
  std::unique_ptr<Launch> launch(size_t algorithm, const OperandAddresses& operands) const;

 private:
  class LibraryLaunch;
  void check_status(CublasLt::Status status, const char* call) const;
  void* layout(DType type, int64_t rows, int64_t columns) const;

  const CublasLt& library_;
  float alpha_, beta_;
  void *handle_ = nullptr, *desc_ = nullptr, *first_ = nullptr, *second_ = nullptr, *out_ = nullptr;
  std::vector<CublasLt::Algo> algos_;
  std::vector<LibraryAlgorithm> algorithms_;
  DeviceBuffer workspace_;  ///< the largest that any of them asks for; launches never overlap
};

}  // namespace gemmtune
