// The reference kernel that judges every variant is itself checked, on the CPU, element by element.
#include <cmath>
#include <random>

#include "gpu/cuda_driver.h"
#include "gpu/embedded.h"
#include "gpu/workbench.h"
#include "tests/gpu/gpu_fixture.h"

namespace gemmtune {
namespace {

class Reference : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(make_context());
    std::string source;
    for (const auto& file : gpu_embedded())
      if (file.name == "kernels/support.cu") source = file.text;
    CompileResult compiled =
        Nvrtc().compile({"", source, "sm_" + std::to_string(gpu_.cc_major) + std::to_string(gpu_.cc_minor)});
    ASSERT_TRUE(compiled.ok) << compiled.log;
    module_ = Module(compiled.cubin);
  }

  template <class T>
  DeviceBuffer upload(const std::vector<T>& values) {
    DeviceBuffer buffer(values.size() * sizeof(T));
    check(CudaDriver::get().MemcpyHtoD(buffer.address(), values.data(), buffer.bytes()), "upload");
    return buffer;
  }

  Module module_;
};

TEST_F(Reference, EqualsTheCpuForEveryClass) {
  const CudaDriver& cuda = CudaDriver::get();
  std::mt19937 random(5);
  const int m = 70, n = 131, k = 83;
  for (DType in : {DType::f16, DType::bf16})
    for (DType out : {DType::f16, DType::bf16, DType::f32})
      for (int majors = 0; majors < 4; ++majors)
        for (float beta : {0.0f, 0.5f}) {
          bool a_k_major = majors & 1, b_k_major = majors & 2;
          auto encode = [&](int value, DType type) {
            return type == DType::f16 ? to_f16_bits(static_cast<float>(value))
                                      : to_bf16_bits(static_cast<float>(value));
          };
          std::vector<int> a(m * k), b(n * k), c(m * n);
          for (int& v : a) v = static_cast<int>(random() % 41) - 20;
          for (int& v : b) v = static_cast<int>(random() % 41) - 20;
          for (int& v : c) v = static_cast<int>(random() % 21) - 10;
          std::vector<uint16_t> ab(m * k), bb(n * k);
          for (int i = 0; i < m * k; ++i) ab[i] = encode(a[i], in);
          for (int i = 0; i < n * k; ++i) bb[i] = encode(b[i], in);
          std::vector<float> c32(c.begin(), c.end());
          std::vector<uint16_t> c16(m * n);
          for (int i = 0; i < m * n; ++i) c16[i] = encode(c[i], out);
          DeviceBuffer da = upload(ab), db = upload(bb), dc = out == DType::f32 ? upload(c32) : upload(c16);
          DeviceBuffer expected(m * n * 4);
          long long a_m = a_k_major ? k : 1, a_k = a_k_major ? 1 : m, b_n = b_k_major ? k : 1,
                    b_k = b_k_major ? 1 : n;
          CUdeviceptr pa = da.address(), pb = db.address(), pc = dc.address(), pe = expected.address(),
                      pm = 0;
          int mm = m, nn = n, kk = k, in_type = static_cast<int>(in), out_type = static_cast<int>(out);
          float alpha = -2.0f, beta_value = beta;
          void* args[] = {&pa, &a_m, &a_k, &pb, &b_n,     &b_k,      &pc,    &pe,
                          &pm, &mm,  &nn,  &kk, &in_type, &out_type, &alpha, &beta_value};
          CUlaunchConfig config{};
          config.gridDimX = static_cast<unsigned>((m + 63) / 64 * ((n + 127) / 128));
          config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
          config.blockDimX = 256;
          check(cuda.LaunchKernelEx(&config, module_.function("reference_exact"), args, nullptr), "launch");
          check(cuda.CtxSynchronize(), "sync");
          std::vector<float> got32(m * n);
          std::vector<uint16_t> got16(m * n);
          if (out == DType::f32) {
            check(cuda.MemcpyDtoH(got32.data(), pe, got32.size() * 4), "download");
          } else {
            check(cuda.MemcpyDtoH(got16.data(), pe, got16.size() * 2), "download");
          }
          for (int row = 0; row < m; ++row)
            for (int column = 0; column < n; ++column) {
              int64_t sum = 0;
              for (int i = 0; i < k; ++i) sum += int64_t{a[row * a_m + i * a_k]} * b[column * b_n + i * b_k];
              int at = row * n + column;
              float want = alpha * static_cast<float>(sum);
              if (beta != 0) want = std::fma(beta, static_cast<float>(c[at]), want);
              if (out == DType::f32) {
                ASSERT_EQ(got32[at], want) << row << "," << column;
              } else {
                ASSERT_EQ(got16[at], out == DType::f16 ? to_f16_bits(want) : to_bf16_bits(want))
                    << row << "," << column;
              }
            }
        }
}

}  // namespace
}  // namespace gemmtune
