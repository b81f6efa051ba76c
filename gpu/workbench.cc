#include "gpu/workbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace gemmtune {
namespace {

constexpr unsigned kFillGrid = 1024, kThreads = 256;

/// Launches a support kernel on a one-dimensional grid.
template <class... Args>
void launch(CUfunction function, unsigned grid, CUstream stream, Args... args) {
  void* pointers[] = {&args...};
  CUlaunchConfig config{};
  config.gridDimX = grid;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = kThreads;
  config.hStream = stream;
  check(CudaDriver::get().LaunchKernelEx(&config, function, pointers, nullptr), "cuLaunchKernelEx(support)");
}

struct Sizes {
  int64_t a, b, d;  // elements
  explicit Sizes(const Shape& s) : a(s.m * s.k), b(s.n * s.k), d(s.m * s.n) {}
};

void fill_operand(const SupportKernels& kernels, CUstream stream, CUdeviceptr address, int64_t count,
                  DType type, const FillRecipe& r, uint64_t seed) {
  launch(kernels.fill, kFillGrid, stream, address, static_cast<long long>(count), static_cast<int>(type),
         r.kind, seed, r.density, r.range);
}

// Bytes that fill an output before a launch. 0xff.. is a NaN in every output type: an element that is never
// written, or only added to, cannot pass. 0x42.. is a number in each (48.5, 3.13), which no sum of ours is.
constexpr unsigned char kNaNs = 0xff, kNumbers = 0x42;

}  // namespace

GuardedBuffer::GuardedBuffer(int64_t bytes, CUstream stream)
    : memory_(static_cast<size_t>(2 * kGuardBytes + (bytes + 255) / 256 * 256)), bytes_(bytes) {
  check(CudaDriver::get().MemsetD8Async(memory_.address(), kPattern, memory_.bytes(), stream),
        "cuMemsetD8Async");
}

SupportKernels::SupportKernels(const std::string& cubin) : module_(cubin) {
  fill = module_.function("fill");
  reference_exact = module_.function("reference_exact");
  reference_bound = module_.function("reference_bound");
  compare_exact = module_.function("compare_exact");
  compare_bound = module_.function("compare_bound");
  check_guard = module_.function("check_guard");
  canary_gemm = module_.function("canary_gemm");
}

CheckSet::CheckSet(const SupportKernels& kernels, CUstream stream, const Problem& problem, float alpha,
                   float beta, Fill fill, uint64_t seed)
    : kernels_(kernels), stream_(stream), problem_(problem), fill_(fill) {
  const Shape& s = problem.shape;
  const ProblemClass& cls = problem.cls;
  Sizes sizes(s);
  int in = size_bytes(cls.in), out = size_bytes(cls.out);
  a_ = GuardedBuffer(sizes.a * in, stream);
  b_ = GuardedBuffer(sizes.b * in, stream);
  d_ = GuardedBuffer(sizes.d * out, stream);
  FillRecipe r = operand_recipe(fill, problem);
  fill_operand(kernels, stream, a_.address(), sizes.a, cls.in, r, seed);
  fill_operand(kernels, stream, b_.address(), sizes.b, cls.in, r, seed + 1);
  if (cls.beta) {
    c_ = GuardedBuffer(sizes.d * out, stream);
    fill_operand(kernels, stream, c_.address(), sizes.d, cls.out, c_recipe(fill), seed + 2);
  }
  bool bound = fill == Fill::normal;
  expected_ = DeviceBuffer(static_cast<size_t>(sizes.d * (bound ? 4 : out)));
  if (bound) magnitude_ = DeviceBuffer(static_cast<size_t>(sizes.d * 4));
  if (bound) repeat_ = DeviceBuffer(static_cast<size_t>(sizes.d * out));
  scratch_ = DeviceBuffer(256);

  long long a_m = cls.a_major == Major::k ? s.k : 1, a_k = cls.a_major == Major::k ? 1 : s.m;
  long long b_n = cls.b_major == Major::k ? s.k : 1, b_k = cls.b_major == Major::k ? 1 : s.n;
  // Twins of kTileM and kTileN in support.cu.
  unsigned grid = static_cast<unsigned>((s.m + 63) / 64 * ((s.n + 127) / 128));
  launch(bound ? kernels.reference_bound : kernels.reference_exact, grid, stream, a_.address(), a_m, a_k,
         b_.address(), b_n, b_k, c_.bytes() ? c_.address() : CUdeviceptr{0}, expected_.address(),
         magnitude_.address(), static_cast<int>(s.m), static_cast<int>(s.n), static_cast<int>(s.k),
         static_cast<int>(cls.in), static_cast<int>(cls.out), alpha, cls.beta ? beta : 0.0f);
}

OperandAddresses CheckSet::addresses() const {
  return {a_.address(), b_.address(), c_.bytes() ? c_.address() : CUdeviceptr{0}, d_.address(), 0};
}

std::string CheckSet::mismatch_text(uint64_t index) const {
  auto element = [&](CUdeviceptr base, DType type) {
    uint32_t bits = 0;
    size_t size = static_cast<size_t>(size_bytes(type));
    check(CudaDriver::get().MemcpyDtoH(&bits, base + index * size, size), "cuMemcpyDtoH");
    return type == DType::f32    ? std::bit_cast<float>(bits)
           : type == DType::bf16 ? from_bf16_bits(static_cast<uint16_t>(bits))
                                 : from_f16_bits(static_cast<uint16_t>(bits));
  };
  auto text = [](float value) { return std::isnan(value) ? std::string("NaN") : fmt::format("{}", value); };
  uint64_t n = static_cast<uint64_t>(problem_.shape.n);
  return fmt::format(
      "row {}, column {}: got {}, want {}", index / n, index % n,
      text(element(d_.address(), problem_.cls.out)),
      text(element(expected_.address(), fill_ == Fill::normal ? DType::f32 : problem_.cls.out)));
}

CheckSet::Verdict CheckSet::compare(Against against) const {
  const CudaDriver& cuda = CudaDriver::get();
  long long count = problem_.shape.m * problem_.shape.n;
  int out = static_cast<int>(problem_.cls.out);
  Verdict verdict;
  check(cuda.StreamSynchronize(stream_), "kernel");  // a fault is the kernel's, not the copy's
  check(cuda.MemcpyHtoD(scratch_.address(), &verdict, sizeof verdict), "cuMemcpyHtoD");
  if (against == Against::reference && fill_ == Fill::normal) {
    launch(kernels_.compare_bound, kFillGrid, stream_, d_.address(), expected_.address(),
           magnitude_.address(), count, out, static_cast<float>(error_slope(problem_.shape.k)),
           scratch_.address());
  } else {
    const DeviceBuffer& want = against == Against::reference ? expected_ : repeat_;
    launch(kernels_.compare_exact, kFillGrid, stream_, d_.address(), want.address(), count, out,
           scratch_.address());
  }
  check(cuda.StreamSynchronize(stream_), "kernel");
  check(cuda.MemcpyDtoH(&verdict, scratch_.address(), sizeof verdict), "cuMemcpyDtoH");
  return verdict;
}

bool CheckSet::guards_intact() const {
  const CudaDriver& cuda = CudaDriver::get();
  uint64_t damaged = 0;
  check(cuda.MemcpyHtoD(scratch_.address(), &damaged, sizeof damaged), "cuMemcpyHtoD");
  for (const GuardedBuffer* buffer : {&a_, &b_, &c_, &d_}) {
    if (buffer->bytes() == 0) continue;
    launch(kernels_.check_guard, 16, stream_, buffer->front_guard(),
           static_cast<long long>(GuardedBuffer::kGuardBytes), unsigned{GuardedBuffer::kPattern},
           scratch_.address());
    launch(kernels_.check_guard, 16, stream_, buffer->back_guard(),
           static_cast<long long>(buffer->back_guard_bytes()), unsigned{GuardedBuffer::kPattern},
           scratch_.address());
  }
  check(cuda.StreamSynchronize(stream_), "guards");
  check(cuda.MemcpyDtoH(&damaged, scratch_.address(), sizeof damaged), "cuMemcpyDtoH");
  return damaged == 0;
}

void CheckSet::fill_output(unsigned char byte) const {
  check(CudaDriver::get().MemsetD8Async(d_.address(), byte, static_cast<size_t>(d_.bytes()), stream_),
        "cuMemsetD8Async");
}

ValidationCase CheckSet::judge(const Launch& run) {
  fill_output(kNaNs);
  run.run(stream_);
  Verdict verdict = compare(Against::reference);

  ValidationCase result;
  result.fill = fill_;
  result.shape = problem_.shape;
  result.elements = problem_.shape.m * problem_.shape.n;
  result.mismatches = static_cast<int64_t>(verdict.mismatches);
  result.max_abs_error = std::bit_cast<float>(verdict.max_abs_error);
  result.max_error_over_bound = std::bit_cast<float>(verdict.max_over_bound);
  if (verdict.mismatches > 0) result.first_mismatch = mismatch_text(verdict.first);
  if (verdict.mismatches == 0) {
    // The integer fills have one right answer; of the normal fill the first launch's is the one to repeat.
    Against first = Against::reference;
    if (fill_ == Fill::normal) {
      check(CudaDriver::get().MemcpyDtoDAsync(repeat_.address(), d_.address(), repeat_.bytes(), stream_),
            "cuMemcpyDtoDAsync");
      first = Against::first_launch;
    }
    // What is added to an output that is no NaN shows here, and so does an element no longer written.
    fill_output(kNumbers);
    run.run(stream_);
    result.repeatable = compare(first).mismatches == 0;
    // As timing launches it: onto what the last launch left, in the output and in the workspace.
    run.run(stream_);
    result.repeatable = compare(first).mismatches == 0 && result.repeatable;
  }
  result.guards_intact = guards_intact();
  return result;
}

std::string CheckSet::recheck(const Launch& run) {
  fill_output(kNaNs);
  run.run(stream_);
  Verdict verdict = compare(Against::reference);
  return verdict.mismatches == 0
             ? ""
             : fmt::format("{} of {} elements, first {}", verdict.mismatches,
                           problem_.shape.m * problem_.shape.n, mismatch_text(verdict.first));
}

TimingSets::TimingSets(const SupportKernels& kernels, CUstream stream, const Problem& problem,
                       int64_t l2_bytes, uint64_t seed) {
  Sizes sizes(problem.shape);
  int in = size_bytes(problem.cls.in), out = size_bytes(problem.cls.out);
  int64_t set_bytes = (sizes.a + sizes.b) * in + sizes.d * out * (problem.cls.beta ? 2 : 1);
  int64_t target = std::max<int64_t>(256ll << 20, 2 * l2_bytes);
  int64_t count = std::max<int64_t>(2, (target + set_bytes - 1) / set_bytes);
  FillRecipe normal{2, 0, 0};
  for (int64_t i = 0; i < count; ++i) {
    auto allocate = [&](int64_t bytes) {
      buffers_.emplace_back(static_cast<size_t>(bytes));
      return buffers_.back().address();
    };
    OperandAddresses set;
    set.a = allocate(sizes.a * in);
    set.b = allocate(sizes.b * in);
    set.d = allocate(sizes.d * out);
    uint64_t base = seed + static_cast<uint64_t>(3 * i);
    fill_operand(kernels, stream, set.a, sizes.a, problem.cls.in, normal, base);
    fill_operand(kernels, stream, set.b, sizes.b, problem.cls.in, normal, base + 1);
    if (problem.cls.beta) {
      set.c = allocate(sizes.d * out);
      fill_operand(kernels, stream, set.c, sizes.d, problem.cls.out, normal, base + 2);
    }
    sets_.push_back(set);
  }
  check(CudaDriver::get().StreamSynchronize(stream), "fill");
}

}  // namespace gemmtune
