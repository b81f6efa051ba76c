// Each pitfall as a small edit of a working kernel's PTX: the emulator must catch it and name it. The
// unchanged kernels are clean (gemm_kernels_test.cc), so a finding here comes from the edit.
#include <gtest/gtest.h>

#include "tests/emulator/gemm_runner.h"

namespace gemmtune::emulator {
namespace {

enum class Kernel { cg1, cg2, sm90 };

struct Mutant {
  const char* name;
  Kernel kernel;
  const char* from;
  const char* to;
  int occurrence;         ///< which one is replaced, from 1; 0: all
  const char* diagnosis;  ///< must occur in the report
};

const Mutant kMutants[] = {
    {"PhaseFlippedEveryIteration", Kernel::cg1, "and.b32  \t%r63, %r66, 1;", "and.b32  \t%r63, %r128, 1;", 1,
     "before the TMA load"},
    {"TooManyBytesExpected", Kernel::cg1, "mov.b32 \t%r93, 32768;", "mov.b32 \t%r93, 32784;", 1,
     "0 of 1 arrivals and 16 transaction bytes are missing"},
    {"TooFewBytesExpected", Kernel::cg1, "mov.b32 \t%r93, 32768;", "mov.b32 \t%r93, 32752;", 1,
     "-16 transaction bytes are missing"},
    {"EmptyBarriersNotArmed", Kernel::cg1, "not.b32 \t%r104, %r103;", "mov.b32 \t%r104, %r103;", 1,
     "for parity 0; it is in phase 0 (parity 0), 1 of 1 arrivals"},
    {"AccumulatorNotCleared", Kernel::cg1, "or.b32  \t%r81, %r131, %r128;", "mov.b32 \t%r81, 1;", 1,
     "which nothing has written since its allocation"},
    {"ProducerDoesNotWait", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r90], %r91;\n\t@!p bra AGAIN;", "", 1,
     "may still read: nobody waited"},
    {"ConsumerDoesNotWait", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r20], %r63;\n\t@!p bra AGAIN;", "", 1,
     "has landed: nobody waited"},
    {"EpilogueDoesNotWait", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r109], %r133;\n\t@!p bra AGAIN;", "", 1,
     "is known to be complete"},
    {"WaitLdMissing", Kernel::cg1, "tcgen05.wait::ld.sync.aligned;", "", 1, "tcgen05.wait::ld is missing"},
    {"NeverFreed", Kernel::cg1, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;", "", 1,
     "were never freed"},
    {"FreedTwice", Kernel::cg1, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;",
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122; "
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;",
     1, "freed twice"},
    {"SparseBitInDescriptor", Kernel::cg1, "136314896", "136314900", 1, "sparse (bit 2) is set"},
    {"InstructionWithWrongM", Kernel::cg1, "136314896", "270532624", 1,
     "M = 256 is not legal for cta_group::1"},
    {"DescriptorWithoutVersion", Kernel::cg1, "4611756662049538048", "4611686293305360384", 0,
     "bits 46-48 are 0x0"},
    {"Layout32ByteAtoms", Kernel::cg1, "4611756662049538048", "2305913652835844096", 1,
     "128B swizzle is layout 2"},
    {"SecondAllocationCannotSucceed", Kernel::cg1,
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     "{ .reg .b32 n; mov.b32 n, 512; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw+98368], n; "
     "}",
     1, "tcgen05.alloc of 512 columns cannot succeed: 128 of 512 are taken"},
    {"AllocationAfterRelinquish", Kernel::cg1, "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; { .reg .b32 n; mov.b32 n, 32; "
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw+98368], n; }",
     1, "after tcgen05.relinquish_alloc_permit"},
    {"LanesOfAnotherWarp", Kernel::cg1, "and.b32  \t%r119, %r118, 6291456;", "mov.b32 \t%r119, 0;", 1,
     "may only touch lanes"},
    {"BaseNotAligned", Kernel::cg1, "mov.u32 \t%r124, %r123;", "add.u32 \t%r124, %r123, 64;", 1,
     "is not aligned to 128 bytes"},
    {"CommitMissing", Kernel::cg1,
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r84];", "", 1, "deadlock"},
    {"BarrierNotInitialised", Kernel::cg1, "mbarrier.init.shared::cta.b64", "// ", 7, "is not initialised"},
    {"ArrivesTwice", Kernel::cg1, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r101], %r93;",
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r101], %r93; mbarrier.arrive.shared::cta.b64 _, "
     "[%r101];",
     1, "more arrivals than the barrier was initialised for"},
    {"EveryLaneMultiplies", Kernel::cg1, "selp.u32 %r60, 1, 0, p;", "mov.u32 %r60, 1;", 1,
     "issued by 32 lanes"},
    {"CoordinateOffTheGrid", Kernel::cg1, "add.s32 \t%r125, %r125, 64;", "add.s32 \t%r125, %r125, 65;", 1,
     "is not a multiple of 16 bytes"},
    {"CommitWithoutThePeer", Kernel::cg2, "mov.b16 \t%rs1, 3;", "mov.b16 \t%rs1, 1;", 1, "deadlock"},
    {"OddCtaNeverToldOfTheEnd", Kernel::cg2, "mov.b16 \t%rs2, 3;", "mov.b16 \t%rs2, 1;", 1, "rank 1, warp 2"},
    {"BarrierOfTheOddCta", Kernel::cg2, "-16778216;", "-1000;", 1, "deadlock"},
    {"BytesOfOneCtaOnly", Kernel::cg2, "49152;", "24576;", 2, "transaction bytes are missing"},
    {"ProxyFenceMissing", Kernel::sm90, "fence.proxy.async.shared::cta;", "", 1,
     "no fence.proxy.async followed"},
    {"StageReleasedTooEarly", Kernel::sm90, "wgmma.wait_group.sync.aligned 0;",
     "wgmma.wait_group.sync.aligned 1;", 1, "may still read"},
    {"StoreNotWaitedFor", Kernel::sm90, "cp.async.bulk.wait_group.read 0;", "", 1,
     "exits without cp.async.bulk.wait_group"},
    {"OneWarpForgetsTheBarrier", Kernel::sm90, "bar.sync 1, 128;", "bar.sync 1, 160;", 1,
     "128 of 160 threads have arrived"},
};

/// Empty if the text does not occur that often.
std::string edited(std::string text, const Mutant& m) {
  std::string from = m.from;
  size_t at = 0;
  int seen = 0;
  bool changed = false;
  while ((at = text.find(from, at)) != std::string::npos) {
    ++seen;
    if (m.occurrence && seen != m.occurrence) {
      at += from.size();
      continue;
    }
    text.replace(at, from.size(), m.to);
    at += std::strlen(m.to);
    changed = true;
    if (m.occurrence) break;
  }
  return changed ? text : "";
}

/// For failure messages: not the bytes of the pointers.
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class Mutants : public testing::TestWithParam<Mutant> {};

TEST_P(Mutants, IsCaughtAndNamed) {
  const Mutant& m = GetParam();
  std::string reports;
  bool named = false;
  for (const Schedule& s : {kSchedules[0], kSchedules[1], kSchedules[2]}) {
    GemmCase g = m.kernel == Kernel::sm90 ? sm90_case(s) : sm100_case(m.kernel == Kernel::cg1 ? 1 : 2, s);
    g.ptx = edited(g.ptx, m);
    ASSERT_FALSE(g.ptx.empty()) << "the text to edit is gone: " << m.from;
    GemmResult r = run_gemm(g);
    EXPECT_FALSE(r.launch.diagnoses.empty()) << "schedule " << name(s.policy);
    named |= r.launch.text().find(m.diagnosis) != std::string::npos;
    reports += std::string(name(s.policy)) + ":\n" + r.text() + "\n";
  }
  EXPECT_TRUE(named) << reports;
}

INSTANTIATE_TEST_SUITE_P(Table, Mutants, testing::ValuesIn(kMutants),
                         [](const auto& info) { return std::string(info.param.name); });

// try_wait may return false at any time; only `random` does so.
TEST(Mutants, WaitWithoutALoop) {
  GemmCase g = sm100_case(1);
  g.ptx = edited(g.ptx, {"", Kernel::cg1, "@!p bra AGAIN;", "", 2, ""});
  bool caught = false;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    g.schedule = {SchedulePolicy::random, seed};
    caught |= run_gemm(g).launch.text().find("nobody waited") != std::string::npos;
  }
  EXPECT_TRUE(caught);
}

TEST(Mutants, SharedMemoryTooSmallForTheStages) {
  GemmCase g = sm100_case(1);
  g.smem_bytes = 2 * 32768 + 64;
  GemmResult r = run_gemm(g);
  EXPECT_NE(r.launch.text().find("lies outside"), std::string::npos) << r.text();
}

TEST(Mutants, TwoCtaGroupsInOneKernelDoNotLoad) {
  std::string text = edited(read_text("sm100_gemm_cg1.ptx"), {"", Kernel::cg1, "tcgen05.dealloc.cta_group::1",
                                                              "tcgen05.dealloc.cta_group::2", 1, ""});
  try {
    Module module(text);
    FAIL();
  } catch (const PtxError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot mix cta_group::1 and cta_group::2"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace gemmtune::emulator
