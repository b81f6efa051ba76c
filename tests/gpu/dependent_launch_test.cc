// Programmatic dependent launch on the device: D of one GEMM is A of the next, which starts before the first
// has ended.
#include <algorithm>

#include "gpu/cuda_driver.h"
#include "gpu/launcher.h"
#include "tests/gpu/gpu_fixture.h"

namespace gemmtune {
namespace {

constexpr int kM = 512, kN = 512, kK = 2048;  // the first takes long and leaves most SMs free
constexpr int kRepeats = 20;

class DependentLaunch : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_NO_FATAL_FAILURE(make_context());
    ASSERT_EQ(CudaDriver::get().StreamCreate(&stream_, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  }

  static DeviceBuffer upload(const std::vector<uint16_t>& values) {
    DeviceBuffer buffer(values.size() * 2);
    check(CudaDriver::get().MemcpyHtoD(buffer.address(), values.data(), buffer.bytes()), "upload");
    return buffer;
  }

  /// Repeats (of kRepeats) in which an element of the second result is not from the first one's results: A
  /// and B are ones, B of the second is the identity, so all must be kK.
  int stale_repeats(const Variant& v, const std::string& source) {
    const CudaDriver& cuda = CudaDriver::get();
    Module module(compile(v, source).cubin);
    CUfunction function = module.function(std::string(v.family->entry()).c_str());
    std::vector<uint16_t> identity(kN * kN, 0);
    for (int i = 0; i < kN; ++i) identity[static_cast<size_t>(i * (kN + 1))] = to_f16_bits(1);
    DeviceBuffer a = upload(std::vector<uint16_t>(kM * kK, to_f16_bits(1))),
                 b = upload(std::vector<uint16_t>(kN * kK, to_f16_bits(1))), b2 = upload(identity);
    DeviceBuffer d(2 * kM * kN), d2(2 * kM * kN);
    auto plan = [&](int k) {
      return v.family->plan(v.config, v.cls, *v.arch, {kM, kN, k}, {gpu_.record.sm_count, 0}, 1, 0);
    };
    EXPECT_TRUE(plan(kN).programmatic);
    configure(function, plan(kK));
    PreparedLaunch first(function, plan(kK), {a.address(), b.address(), 0, d.address(), 0});
    PreparedLaunch second(function, plan(kN), {d.address(), b2.address(), 0, d2.address(), 0});
    int stale = 0;
    std::vector<uint16_t> got(kM * kN);
    for (int i = 0; i < kRepeats; ++i) {
      check(cuda.MemsetD8Async(d.address(), 0, d.bytes(), stream_), "memset");
      first.run(stream_);
      second.run(stream_);
      check(cuda.StreamSynchronize(stream_), "kernels");
      check(cuda.MemcpyDtoH(got.data(), d2.address(), d2.bytes()), "download");
      stale += std::ranges::any_of(got, [](uint16_t bits) { return from_f16_bits(bits) != kK; });
    }
    return stale;
  }

  CUstream stream_ = nullptr;
};

TEST_F(DependentLaunch, ReadsWhatTheLaunchBeforeWrote) {
  Variant v = variant("pdl=yes", {DType::f16, DType::f16});
  const std::string good = render(v);
  EXPECT_EQ(stale_repeats(v, good), 0);
  // Without its wait it does start early and reads too early.
  EXPECT_GT(stale_repeats(v, replaced(good, "griddepcontrol.wait;", "")), 0);
}

}  // namespace
}  // namespace gemmtune
