// Each pitfall as a small edit of a working kernel's PTX: the emulator must catch it and name it. The
// unchanged kernels are clean (gemm_kernels_test.cc), so a finding here comes from the edit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "tests/emulator/gemm_runner.h"

namespace gemmtune::emulator {
namespace {

enum class Kernel { cg1, cg2, sm90 };

struct Mutant {
  const char* name;
  const char* pitfall;
  Kernel kernel;
  const char* from;
  const char* to;
  int occurrence;         ///< which one is replaced, from 1; 0: all
  const char* diagnosis;  ///< must occur in the report
};

/// Legal PTX with other numbers: only the comparison with the reference shows it.
const char* const kWrongResult = "elements wrong";

const Mutant kMutants[] = {
    {"PhaseFlippedEveryIteration", "Parity flipped every iteration instead of every lap", Kernel::cg1,
     "and.b32  \t%r63, %r66, 1;", "and.b32  \t%r63, %r128, 1;", 1, "before the TMA load"},
    {"TooManyBytesExpected", "expect_tx counts more bytes than TMA delivers", Kernel::cg1,
     "mov.b32 \t%r93, 32768;", "mov.b32 \t%r93, 32784;", 1,
     "0 of 1 arrivals and 16 transaction bytes are missing"},
    {"TooFewBytesExpected", "expect_tx counts fewer bytes than TMA delivers", Kernel::cg1,
     "mov.b32 \t%r93, 32768;", "mov.b32 \t%r93, 32752;", 1, "-16 transaction bytes are missing"},
    {"EmptyBarriersNotArmed", "Producer starts at parity 0 on fresh empty barriers", Kernel::cg1,
     "not.b32 \t%r104, %r103;", "mov.b32 \t%r104, %r103;", 1,
     "for parity 0; it is in phase 0 (parity 0), 1 of 1 arrivals"},
    {"AccumulatorNotCleared", "Accumulate left on for the first MMA of a tile", Kernel::cg1,
     "or.b32  \t%r81, %r131, %r128;", "mov.b32 \t%r81, 1;", 1,
     "which nothing has written since its allocation"},
    {"ProducerDoesNotWait", "Producer does not wait for the stage to be free", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r90], %r91;\n\t@!p bra AGAIN;", "", 1,
     "may still read: nobody waited"},
    {"ConsumerDoesNotWait", "MMA does not wait for the stage to be full", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r20], %r63;\n\t@!p bra AGAIN;", "", 1,
     "has landed: nobody waited"},
    {"EpilogueDoesNotWait", "Epilogue does not wait for the accumulator", Kernel::cg1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r109], %r133;\n\t@!p bra AGAIN;", "", 1,
     "is known to be complete"},
    {"WaitLdMissing", "tcgen05.wait::ld missing", Kernel::cg1, "tcgen05.wait::ld.sync.aligned;", "", 1,
     "tcgen05.wait::ld is missing"},
    {"NeverFreed", "Tensor memory never freed", Kernel::cg1,
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;", "", 1, "were never freed"},
    {"FreedTwice", "Tensor memory freed twice", Kernel::cg1,
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;",
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122; "
     "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, %r122;",
     1, "freed twice"},
    {"SparseBitInDescriptor", "Instruction descriptor with the sparse bit", Kernel::cg1, "136314896",
     "136314900", 1, "sparse (bit 2) is set"},
    {"InstructionWithWrongM", "M of a CTA pair in a one-CTA instruction", Kernel::cg1, "136314896",
     "270532624", 1, "M = 256 is not legal for cta_group::1"},
    {"DescriptorWithoutVersion", "Version bit 46 missing in the matrix descriptor", Kernel::cg1,
     "4611756662049538048", "4611686293305360384", 0, "bits 46-48 are 0x0"},
    {"Layout32ByteAtoms", "Hopper's layout code in Blackwell's field", Kernel::cg1, "4611756662049538048",
     "2305913652835844096", 1, "128B swizzle is layout 2"},
    {"SecondAllocationCannotSucceed", "More columns asked for than are left", Kernel::cg1,
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     "{ .reg .b32 n; mov.b32 n, 512; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw+98368], n; "
     "}",
     1, "tcgen05.alloc of 512 columns cannot succeed: 128 of 512 are taken"},
    {"AllocationAfterRelinquish", "Allocation after relinquish_alloc_permit", Kernel::cg1,
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
     "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; { .reg .b32 n; mov.b32 n, 32; "
     "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [raw+98368], n; }",
     1, "after tcgen05.relinquish_alloc_permit"},
    {"LanesOfAnotherWarp", "Epilogue warp reads the lanes of another quarter", Kernel::cg1,
     "and.b32  \t%r119, %r118, 6291456;", "mov.b32 \t%r119, 0;", 1, "may only touch lanes"},
    {"BaseNotAligned", "Shared-memory stage not aligned", Kernel::cg1, "mov.u32 \t%r124, %r123;",
     "add.u32 \t%r124, %r123, 64;", 1, "is not aligned to 128 bytes"},
    {"CommitMissing", "Stage never released: commit missing", Kernel::cg1,
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r84];", "", 1, "deadlock"},
    {"BarrierNotInitialised", "One barrier not initialised", Kernel::cg1, "mbarrier.init.shared::cta.b64",
     "// ", 7, "is not initialised"},
    {"ArrivesTwice", "More arrivals than the barrier counts", Kernel::cg1,
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r101], %r93;",
     "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r101], %r93; mbarrier.arrive.shared::cta.b64 _, "
     "[%r101];",
     1, "more arrivals than the barrier was initialised for"},
    {"EveryLaneMultiplies", "All lanes issue the MMA: election missing", Kernel::cg1,
     "selp.u32 %r60, 1, 0, p;", "mov.u32 %r60, 1;", 1, "issued by 32 lanes"},
    {"CoordinateOffTheGrid", "K coordinate off the 16-byte grid", Kernel::cg1, "add.s32 \t%r125, %r125, 64;",
     "add.s32 \t%r125, %r125, 65;", 1, "is not a multiple of 16 bytes"},
    {"CommitWithoutThePeer", "Commit without the peer: the follower's stages are never released", Kernel::cg2,
     "mov.b16 \t%rs1, 3;", "mov.b16 \t%rs1, 1;", 1, "deadlock"},
    {"OddCtaNeverToldOfTheEnd", "Last commit without the peer: its epilogue waits for ever", Kernel::cg2,
     "mov.b16 \t%rs2, 3;", "mov.b16 \t%rs2, 1;", 1, "rank 1, warp 2"},
    {"BarrierOfTheOddCta", "Odd CTA signals its own full barrier, which nobody waits for", Kernel::cg2,
     "-16778216;", "-1000;", 1, "deadlock"},
    {"BytesOfOneCtaOnly", "Expected bytes of one CTA where both load", Kernel::cg2, "49152;", "24576;", 2,
     "transaction bytes are missing"},
    {"ProxyFenceMissing", "No proxy fence between st.shared and the TMA store", Kernel::sm90,
     "fence.proxy.async.shared::cta;", "", 1, "no fence.proxy.async followed"},
    {"StageReleasedTooEarly", "Stage released before its wgmma has read it", Kernel::sm90,
     "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;", 1, "may still read"},
    {"StoreNotWaitedFor", "CTA exits without waiting for its TMA store", Kernel::sm90,
     "cp.async.bulk.wait_group.read 0;", "", 1, "exits without cp.async.bulk.wait_group"},
    {"OneWarpForgetsTheBarrier", "A warp missing at the named barrier", Kernel::sm90, "bar.sync 1, 128;",
     "bar.sync 1, 160;", 1, "128 of 160 threads have arrived"},
    {"FencesAfterTheWaitMissing", "No tcgen05.fence::after_thread_sync before tcgen05.ld", Kernel::cg1,
     "tcgen05.fence::after_thread_sync;", "", 3, "without tcgen05.fence::after_thread_sync"},
    {"FenceBeforeTheBarrierMissing", "No tcgen05.fence::before_thread_sync between the last load and dealloc",
     Kernel::cg1, "tcgen05.fence::before_thread_sync;", "", 2,
     "no tcgen05.fence::before_thread_sync follows the tcgen05.ld"},
    {"FreedWhileOthersRead", "No barrier between the epilogue's loads and dealloc", Kernel::cg1,
     "bar.sync \t0;", "", 2, "frees tensor memory that"},
    {"AddressReadTooEarly", "No barrier between tcgen05.alloc and the reads of the address", Kernel::cg1,
     "bar.sync \t0;", "nanosleep.u32 64;", 1, "no barrier orders the two"},
    {"TooFewColumns", "Fewer columns allocated than the accumulator has", Kernel::cg1, "mov.b32 \t%r38, 128;",
     "mov.b32 \t%r38, 64;", 1, "are not allocated"},
    {"StageReleasedAtTheWrongBarrier", "Commit arrives at the full barrier instead of the empty one",
     Kernel::cg1, "add.s32 \t%r84, %r20, 24;", "mov.b32 \t%r84, %r20;", 1, "deadlock"},
    {"ConsumerParityFlipped", "Consumer starts at parity 1: it passes before the first load", Kernel::cg1,
     "and.b32  \t%r63, %r66, 1;", "not.b32 \t%r63, %r66; and.b32 \t%r63, %r63, 1;", 1,
     "has landed: nobody waited"},
    {"BothOperandsInOnePlace", "B loaded over A", Kernel::cg1, "add.s32 \t%r98, %r94, 49152;",
     "mov.b32 \t%r98, %r94;", 1, "fills and nobody has waited for"},
    {"MapMisplaced", "Tensor map not on its 64 bytes", Kernel::cg1, "mov.u64 \t%rd1, %rd6;",
     "add.u64 \t%rd1, %rd6, 16;", 1, "is not aligned to 64 bytes"},
    {"RasterRunsOffM", "Raster runs off M: tiles beyond the last row, others skipped", Kernel::cg1,
     "shl.b32 \t%r5, %r59, 7;", "shl.b32 \t%r5, %r59, 8;", 1, "past the end of the allocation"},
    {"RasterSkipsTiles", "Raster does one column of tiles twice and skips another", Kernel::cg1,
     "mov.u32 \t%r6, %ctaid.y;", "mov.u32 \t%r6, 0;", 1, kWrongResult},
    {"StepOfKMissed", "A stage's last K step left out", Kernel::cg1, "setp.ne.s32 \t%p8, %r131, 4;",
     "setp.ne.s32 \t%p8, %r131, 3;", 1, kWrongResult},
    {"StrideOfAnotherSwizzle", "SBO of the 64-byte swizzle with 128-byte rows", Kernel::cg1,
     "4611756662049538048", "4611756524610584576", 0, kWrongResult},
    {"AdvanceByElements", "Descriptor advanced by elements instead of 16-byte units", Kernel::cg1,
     "add.s32 \t%r129, %r129, 2;", "add.s32 \t%r129, %r129, 16;", 1, kWrongResult},
    {"PeerLeavesEarly", "No cluster barrier at the end: a CTA exits while its peer still uses it",
     Kernel::cg2, "barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;",
     "setp.eq.u32 %p18, %r42, 1; @%p18 ret; setp.ne.s32 %p18, %r2, 1;", 3, "has exited"},
    {"PeerNotReady", "No cluster barrier between the inits and the peer's first use", Kernel::cg2,
     "barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;", "", 0,
     "for a peer no cluster barrier, orders the two"},
    {"OddCtaWaitsToo", "The odd CTA of a pair waits for stages too; only the leader is told of them",
     Kernel::cg2, "setp.ne.s32 \t%p6, %r42, 0;", "setp.ne.s32 \t%p6, %r42, %r42;", 1, "deadlock"},
    {"PeersBytesNotCounted", "Odd CTA loads without .cta_group::2 onto the leader's barrier", Kernel::cg2,
     "mbarrier::complete_tx::bytes.cta_group::2", "mbarrier::complete_tx::bytes", 0,
     "without .cta_group::2 the signal goes to the destination's CTA"},
    {"CopyBeforeTheOthersWrote", "No barrier between the fences and the TMA store", Kernel::sm90,
     "bar.sync 1, 128;", "nanosleep.u32 64;", 1, "no barrier orders the two"},
    {"OneThreadFences", "Proxy fence by the storing thread only", Kernel::sm90,
     "fence.proxy.async.shared::cta;", "@%p14 bra NOFENCE; fence.proxy.async.shared::cta; NOFENCE:", 1,
     "no fence.proxy.async followed"},
    {"StageNeverReleased", "Consumer never arrives at the empty barrier", Kernel::sm90,
     "mbarrier.arrive.shared::cta.b64 _, [%r51];", "", 1, "deadlock"},
    {"StoreNotCommitted", "TMA store without commit_group", Kernel::sm90, "cp.async.bulk.commit_group;", "",
     1, "never committed to a group"},
    {"AccumulatorReadTooEarly", "No wgmma.wait_group before the accumulator is used", Kernel::sm90,
     "wgmma.wait_group.sync.aligned 0;", "", 1, "wgmma.wait_group is missing"},
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

/// Rows of docs/emulator-mutants.md, which is written where GEMMTUNE_MUTANT_TABLE says.
class Table : public testing::Environment {
 public:
  static std::map<std::string, std::string>& found() {
    static std::map<std::string, std::string> rows;
    return rows;
  }
  void TearDown() override {
    const char* path = std::getenv("GEMMTUNE_MUTANT_TABLE");
    if (!path) return;
    std::ofstream out(path);
    out << "# Mutants\n\nEach row is a small edit of a working kernel of `tests/emulator/kernels`, and what "
           "the "
           "emulator says of it (`tests/emulator/mutants_test.cc`).\nWritten by\n\n"
           "    GEMMTUNE_MUTANT_TABLE=docs/emulator-mutants.md build/tests/emulator_tests "
           "--gtest_filter='*Mutants*'\n\n| pitfall | kernel | edit | diagnosis |\n|---|---|---|---|\n";
    for (const Mutant& m : kMutants)
      out << "| " << m.pitfall << " | "
          << (m.kernel == Kernel::cg1   ? "tcgen05, one CTA"
              : m.kernel == Kernel::cg2 ? "tcgen05, pair"
                                        : "wgmma")
          << " | " << code(m.from) << " → " << (*m.to ? code(m.to) : "nothing") << " | " << found()[m.name]
          << " |\n";
  }

 private:
  static std::string code(std::string text) {
    std::string out;
    for (char c : text) {
      bool space = c == ' ' || c == '\t' || c == '\n';
      if (c == '|') out += '\\';
      if (!space)
        out += c;
      else if (!out.empty() && out.back() != ' ')
        out += ' ';
    }
    return "`" + out + "`";
  }
};
testing::Environment* const kTable = testing::AddGlobalTestEnvironment(new Table);

/// The finding that names it: severity, check and message, without place.
std::string row_of(const GemmResult& r, const std::string& diagnosis) {
  if (diagnosis == kWrongResult) return "wrong result, nothing else";
  for (const Diagnosis& d : r.launch.diagnoses)
    if (to_string(d).find(diagnosis) != std::string::npos) {
      // Of a deadlock, the line that names it, or who waits at a barrier of the pipeline.
      std::string line, message = d.message.substr(0, d.message.find('\n'));
      std::stringstream lines(d.message.substr(std::min(d.message.size(), message.size() + 1)));
      bool exact = false;
      for (std::string more; !exact && std::getline(lines, more); line = more) {
        exact = more.find(diagnosis) != std::string::npos;
        if (!exact && (more.find("waits on mbarrier") == std::string::npos || !line.empty())) more = line;
      }
      if (!line.empty()) message += line.substr(3);
      return std::string(name(d.severity)) + ": " + std::string(name(d.check)) + ": " + message;
    }
  return "";
}

TEST_P(Mutants, IsCaughtAndNamed) {
  const Mutant& m = GetParam();
  std::string reports;
  bool named = false;
  for (const Schedule& s : {kSchedules[0], kSchedules[1], kSchedules[2]}) {
    GemmCase g = m.kernel == Kernel::sm90 ? sm90_case(s) : sm100_case(m.kernel == Kernel::cg1 ? 1 : 2, s);
    g.ptx = edited(g.ptx, m);
    ASSERT_FALSE(g.ptx.empty()) << "the text to edit is gone: " << m.from;
    GemmResult r = run_gemm(g);
    if (m.diagnosis == kWrongResult)
      EXPECT_GT(r.wrong, 0) << "schedule " << name(s.policy);
    else
      EXPECT_FALSE(r.launch.diagnoses.empty()) << "schedule " << name(s.policy);
    std::string row = row_of(r, m.diagnosis);
    if (!row.empty()) {
      named = true;
      Table::found().try_emplace(m.name, row);
    }
    reports += std::string(name(s.policy)) + ":\n" + r.text() + "\n";
  }
  EXPECT_TRUE(named) << reports;
}

INSTANTIATE_TEST_SUITE_P(Table, Mutants, testing::ValuesIn(kMutants),
                         [](const auto& info) { return std::string(info.param.name); });

// try_wait may return false at any time; only `random` does so.
TEST(Mutants, WaitWithoutALoop) {
  GemmCase g = sm100_case(1);
  g.ptx = edited(g.ptx, {"", "", Kernel::cg1, "@!p bra AGAIN;", "", 2, ""});
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

TEST(Mutants, MoreStagesThanSharedMemoryHas) {
  GemmCase g = sm100_case(1);
  g.smem_bytes = 8 * 32768;
  GemmResult r = run_gemm(g);
  EXPECT_NE(r.launch.text().find("262144 bytes of shared memory exceed 232448"), std::string::npos)
      << r.text();
}

// A commit that never reaches the follower does not matter until a stage is used again: three steps pass.
TEST(Mutants, ShortKHidesTheMissingCommit) {
  GemmCase g = sm100_case(2);
  g.k = 3 * 64;
  g.ptx = edited(g.ptx, {"", "", Kernel::cg2, "mov.b16 \t%rs1, 3;", "mov.b16 \t%rs1, 1;", 1, ""});
  GemmResult r = run_gemm(g);
  EXPECT_TRUE(r.launch.clean() && r.wrong == 0) << r.text();
  g.k = 4 * 64;
  EXPECT_NE(run_gemm(g).launch.text().find("deadlock"), std::string::npos);
}

// A tile of 16 halves is narrower than the 128-byte span: rows lie a span apart, and half the bytes come.
TEST(Mutants, SixteenDeepTileWithThe128ByteSwizzle) {
  GemmCase g = sm100_case(1);
  g.box_k = 16;
  GemmResult r = run_gemm(g);
  EXPECT_NE(r.launch.text().find("24576 transaction bytes are missing"), std::string::npos) << r.text();
}

TEST(Mutants, TwoCtaGroupsInOneKernelDoNotLoad) {
  std::string text =
      edited(read_text("sm100_gemm_cg1.ptx"),
             {"", "", Kernel::cg1, "tcgen05.dealloc.cta_group::1", "tcgen05.dealloc.cta_group::2", 1, ""});
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
