#include "gpu/cublaslt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace gemmtune {
namespace {

// cudaDataType (library_types.h), cublasComputeType_t and cublasOperation_t (cublas_api.h).
constexpr int kReal32 = 0, kReal16 = 2, kRealBf16 = 14;
constexpr int kComputeFloat32 = 68;
constexpr int32_t kNotTransposed = 0, kTransposed = 1;
// cublasLtMatmulDescAttributes_t and cublasLtMatmulPreferenceAttributes_t.
constexpr int kDescTransA = 3, kDescTransB = 4, kPreferenceMaxWorkspace = 1;
// cublasLtMatmulAlgoConfigAttributes_t; each is 32 bits.
constexpr int kAlgoId = 0, kAlgoTile = 1, kAlgoSplitK = 2, kAlgoStages = 6;

int data_type(DType type) { return type == DType::f16 ? kReal16 : type == DType::bf16 ? kRealBf16 : kReal32; }

std::vector<std::string> paths() {
  if (const char* chosen = std::getenv("GEMMTUNE_CUBLASLT"); chosen && *chosen) return {chosen};
  std::vector<std::string> paths;
  for (const char* version : {"13", "12"}) {
    std::string file = fmt::format("libcublasLt.so.{}", version);
    if (const char* home = std::getenv("CUDA_HOME"); home && *home)
      paths.push_back(fmt::format("{}/lib64/{}", home, file));
    paths.push_back("/usr/local/cuda/lib64/" + file);
    paths.push_back(file);
  }
  paths.push_back("libcublasLt.so");
  return paths;
}

}  // namespace

CublasLt::CublasLt() : library_(paths()) {
  if (!library_) {
    problem_ = fmt::format("cuBLASLt not found (tried {}): GEMMTUNE_CUBLASLT=FILE names one",
                           fmt::join(paths(), ", "));
    return;
  }
  auto load = [&](auto& function, const char* name) {
    if (!library_.load(function, name) && problem_.empty())
      problem_ = fmt::format("{} lacks {}: not a usable cuBLASLt", library_.path(), name);
  };
  load(get_version_, "cublasLtGetVersion");
  load(status_name_, "cublasLtGetStatusName");
  load(create_, "cublasLtCreate");
  load(destroy_, "cublasLtDestroy");
  load(desc_create_, "cublasLtMatmulDescCreate");
  load(desc_set_, "cublasLtMatmulDescSetAttribute");
  load(desc_destroy_, "cublasLtMatmulDescDestroy");
  load(layout_create_, "cublasLtMatrixLayoutCreate");
  load(layout_destroy_, "cublasLtMatrixLayoutDestroy");
  load(preference_create_, "cublasLtMatmulPreferenceCreate");
  load(preference_set_, "cublasLtMatmulPreferenceSetAttribute");
  load(preference_destroy_, "cublasLtMatmulPreferenceDestroy");
  load(heuristic_, "cublasLtMatmulAlgoGetHeuristic");
  load(algo_get_, "cublasLtMatmulAlgoConfigGetAttribute");
  load(matmul_, "cublasLtMatmul");
}

std::string CublasLt::version() const {
  size_t v = get_version_();  // 120901 is 12.9.1
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

void LibraryGemm::check_status(CublasLt::Status status, const char* call) const {
  if (status != 0)
    throw CudaError{CUDA_ERROR_INVALID_VALUE, fmt::format("{}: {}", call, library_.status_name_(status))};
}

void* LibraryGemm::layout(DType type, int64_t rows, int64_t columns) const {
  void* layout = nullptr;
  check_status(library_.layout_create_(&layout, data_type(type), static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  return layout;
}

class LibraryGemm::LibraryLaunch final : public Launch {
 public:
  LibraryLaunch(const LibraryGemm& gemm, size_t algorithm, const OperandAddresses& operands)
      : gemm_(gemm), algorithm_(algorithm), operands_(operands) {}

  void run(CUstream stream) const override {
    auto pointer = [](CUdeviceptr address) { return reinterpret_cast<void*>(address); };
    // Its first matrix is our B (see the constructor). Without beta it does not read C, but wants an address.
    CUdeviceptr c = operands_.c != 0 ? operands_.c : operands_.d;
    gemm_.check_status(
        gemm_.library_.matmul_(gemm_.handle_, gemm_.desc_, &gemm_.alpha_, pointer(operands_.b), gemm_.first_,
                               pointer(operands_.a), gemm_.second_, &gemm_.beta_, pointer(c), gemm_.out_,
                               pointer(operands_.d), gemm_.out_, &gemm_.algos_[algorithm_],
                               pointer(gemm_.workspace_.address()), gemm_.workspace_.bytes(), stream),
        "cublasLtMatmul");
  }

 private:
  const LibraryGemm& gemm_;
  size_t algorithm_;
  OperandAddresses operands_;
};

// The library's matrices are column-major. A row-major D[M,N] is its column-major D'[N,M] = B' x A', so its
// first operand is our B and its second our A. K contiguous makes our B a column-major [K,N], to be
// transposed, and our A a column-major [K,M], taken as it is; with the other dimension contiguous it is the
// other way round.
LibraryGemm::LibraryGemm(const CublasLt& library, const Problem& problem, float alpha, float beta,
                         int at_most)
    : library_(library), alpha_(alpha), beta_(problem.cls.beta ? beta : 0.0f) {
  const auto& [m, n, k] = problem.shape;
  const ProblemClass& cls = problem.cls;
  check_status(library_.create_(&handle_), "cublasLtCreate");
  check_status(library_.desc_create_(&desc_, kComputeFloat32, kReal32), "cublasLtMatmulDescCreate");
  bool b_k = cls.b_major == Major::k, a_k = cls.a_major == Major::k;
  int32_t first = b_k ? kTransposed : kNotTransposed, second = a_k ? kNotTransposed : kTransposed;
  check_status(library_.desc_set_(desc_, kDescTransA, &first, sizeof first),
               "cublasLtMatmulDescSetAttribute");
  check_status(library_.desc_set_(desc_, kDescTransB, &second, sizeof second),
               "cublasLtMatmulDescSetAttribute");
  first_ = b_k ? layout(cls.in, k, n) : layout(cls.in, n, k);
  second_ = a_k ? layout(cls.in, k, m) : layout(cls.in, m, k);
  out_ = layout(cls.out, n, m);

  void* preference = nullptr;
  check_status(library_.preference_create_(&preference), "cublasLtMatmulPreferenceCreate");
  uint64_t limit = kLibraryWorkspaceBytes;
  CublasLt::Status status =
      library_.preference_set_(preference, kPreferenceMaxWorkspace, &limit, sizeof limit);
  std::vector<CublasLt::HeuristicResult> found(static_cast<size_t>(at_most));
  int returned = 0;
  if (status == 0)
    status = library_.heuristic_(handle_, desc_, first_, second_, out_, out_, preference, at_most,
                                 found.data(), &returned);
  library_.preference_destroy_(preference);
  check_status(status, "cublasLtMatmulAlgoGetHeuristic");

  size_t workspace = 0;
  for (int i = 0; i < returned; ++i) {
    const CublasLt::HeuristicResult& result = found[static_cast<size_t>(i)];
    if (result.state != 0) continue;
    auto attribute = [&](int which) {
      int32_t value = -1;
      size_t written = 0;
      return library_.algo_get_(&result.algo, which, &value, sizeof value, &written) == 0 ? value : -1;
    };
    algos_.push_back(result.algo);
    algorithms_.push_back({fmt::format("algo {}, tile {}, stages {}, split-K {}", attribute(kAlgoId),
                                       attribute(kAlgoTile), attribute(kAlgoStages), attribute(kAlgoSplitK)),
                           static_cast<int64_t>(result.workspace_bytes)});
    workspace = std::max(workspace, result.workspace_bytes);
  }
  if (workspace > 0) workspace_ = DeviceBuffer(workspace);
}

LibraryGemm::~LibraryGemm() {
  for (void* layout : {first_, second_, out_})
    if (layout != nullptr) library_.layout_destroy_(layout);
  if (desc_ != nullptr) library_.desc_destroy_(desc_);
  if (handle_ != nullptr) library_.destroy_(handle_);
}

std::unique_ptr<Launch> LibraryGemm::launch(size_t algorithm, const OperandAddresses& operands) const {
  return std::make_unique<LibraryLaunch>(*this, algorithm, operands);
}

}  // namespace gemmtune
