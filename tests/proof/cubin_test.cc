#include "tests/proof/cubin.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "gpu/nvrtc.h"
#include "kernel_templates/render.h"

namespace gemmtune {
namespace {

std::string cubin_of(const ArchSpec& arch) {
  const KernelFamily& family = family_for(arch);
  Variant v{&family, &arch, {}, family.default_config()};
  CompileResult compiled = Nvrtc().compile({"", render(v), std::string(arch.name)});
  EXPECT_TRUE(compiled.ok) << compiled.log;
  return compiled.cubin;
}

TEST(CubinTarget, IsTheArchitectureAskedForOfEachOne) {
  for (const ArchSpec& arch : archs()) EXPECT_EQ(cubin_target(cubin_of(arch)), arch.name);
}

TEST(CubinTarget, HeaderAndNoteMustAgree) {
  std::string cubin = cubin_of(find_arch("sm_100a"));
  constexpr size_t kFlags = 48;  // e_flags of an ELF64 header
  ASSERT_EQ(static_cast<unsigned char>(cubin[kFlags + 1]), 100);
  cubin[kFlags + 1] = 103;
  EXPECT_EQ(cubin_target(cubin), "sm_103 by its header, sm_100a by its note");
}

TEST(CubinTarget, OfWhatIsNone) {
  EXPECT_EQ(cubin_target(""), "");
  EXPECT_EQ(cubin_target(std::string(100, '\0')), "");
  std::string cubin = cubin_of(find_arch("sm_100a"));
  EXPECT_EQ(cubin_target(cubin.substr(0, 63)), "");
  EXPECT_EQ(cubin_target(cubin.substr(0, 64)), "sm_100");  // the note is cut off
}

TEST(SassCounts, TellWhatIsNotAsDesigned) {
  InstructionCounts designed{4, 2, 0, 2, 5, 1, 2}, sass = designed;
  EXPECT_EQ(sass_fault(designed, 0, sass), "");
  sass.mbarrier_wait = 16;
  EXPECT_EQ(sass_fault(designed, 6, sass), "");
  sass.mma = 8;
  EXPECT_EQ(sass_fault(designed, 0, sass), "SASS: 8 UTCHMMA, designed 4; 16 TRYWAIT, designed 5 to 10");
}

TEST(SassCounts, NeedAKernel) {
  if (nvdisasm_path().empty()) GTEST_SKIP() << "no nvdisasm: set GEMMTUNE_NVDISASM or CUDA_HOME";
  EXPECT_THROW(count_sass("no cubin"), std::runtime_error);
}

}  // namespace
}  // namespace gemmtune
