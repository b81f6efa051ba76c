// Every shape, repetition and packing of tcgen05.ld and .st, every shape of tcgen05.cp, and the spellings of
// alloc and commit, against the fragment and lane tables of ptx-facts 4.5 and 4.6.
#include <gtest/gtest.h>

#include <utility>

#include "tests/emulator/form_expansion.h"
#include "tests/emulator/ptx_runner.h"

namespace gemmtune::emulator {
namespace {

constexpr uint32_t kColumns = 512, kSecondHalf = 256;  ///< column offset of 16x32bx2's second half

struct Access {
  std::string shape;
  uint32_t registers = 0;
  bool packed = false;
};

Access access_of(const std::string& form) {
  Access a;
  a.packed = form.find("pack::16b") != std::string::npos;
  for (const char* shape : {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"})
    if (has_qualifier(form, shape)) a.shape = shape;
  for (uint32_t n = 1; n <= 128; n *= 2)
    if (has_qualifier(form, "x" + std::to_string(n)))
      a.registers = n * (a.shape == "16x128b" ? 2 : a.shape == "16x256b" ? 4 : 1);
  return a;
}

/// Row and column of register i in lane t; ptx-facts 4.5.
std::pair<uint32_t, uint32_t> place(const Access& a, uint32_t t, uint32_t i) {
  if (a.shape == "32x32b") return {t, i};
  if (a.shape == "16x64b") return {t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * i};
  if (a.shape == "16x128b") return {t / 4 + 8 * (i & 1), (t & 3) + 4 * (i >> 1)};
  if (a.shape == "16x256b") return {t / 4 + 8 * (i >> 1 & 1), (i & 1) + 2 * (t & 3) + 8 * (i >> 2)};
  return {t & 15, i};
}

/// Column in tensor memory; a packed register holds two neighbours, the second half of 16x32bx2 lies apart.
uint32_t column_of(const Access& a, uint32_t t, uint32_t column) {
  return column * (a.packed ? 2 : 1) + (a.shape == "16x32bx2" && t >= 16 ? kSecondHalf : 0);
}

const char* const kBegin = R"(
  .reg .b64 out, o; .reg .b32 lane, tm, at, v, i, j, c<128>, r<128>; .reg .pred p; .shared .align 4 .b32 address;
  ld.param.u64 out, [out_param]; mov.u32 lane, %laneid;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [address], 512;
  ld.shared.u32 tm, [address];
)";

/// All 512 columns of 32 lanes: `value` of (lane, column), which the PTX in `compute` leaves in c0 for column
/// i.
std::string fill(const std::string& compute) {
  return "mov.u32 i, 0; mov.u32 at, tm;\nALL: " + compute +
         " tcgen05.st.sync.aligned.32x32b.x1.b32 [at], {c0}; add.u32 at, at, 1; add.u32 i, i, 1; setp.lt.u32 "
         "p, i, 512;"
         " @p bra ALL; tcgen05.wait::st.sync.aligned;\n";
}

std::string address(const Access& a, bool is_load, size_t n) {
  std::string tail = a.shape == "16x32bx2" ? ", " + std::to_string(kSecondHalf) : "";
  std::string list = register_list("r", n);
  return is_load ? list + ", [tm]" + tail : "[tm]" + tail + ", " + list;
}

std::vector<uint32_t> run(const std::string& body, size_t words) {
  Device device;
  PtxRun run;
  run.target = "sm_100a";
  run.smem_bytes = 64;
  run.params = ".param .u64 out_param";
  run.body = kBegin + body + "tcgen05.dealloc.cta_group::1.sync.aligned.b32 tm, 512;";
  uint64_t out = device.allocate(words * 4);
  LaunchResult r = run.run(device, {out});
  EXPECT_TRUE(r.clean() && r.diagnoses.empty()) << r.text();
  return read_buffer<uint32_t>(device, out, words);
}

uint32_t value(uint32_t row, uint32_t column) { return row * 1000 + column + 7; }

void check_load(const std::string& form) {
  Access a = access_of(form);
  std::string body = fill("mad.lo.u32 c0, lane, 1000, i; add.u32 c0, c0, 7;");
  body += form + " " + address(a, true, a.registers) + ";\ntcgen05.wait::ld.sync.aligned;\n";
  body += "mul.wide.u32 o, lane, 512; add.u64 out, out, o;\n";
  for (uint32_t i = 0; i < a.registers; ++i)
    body += "st.global.u32 [out+" + std::to_string(4 * i) + "], r" + std::to_string(i) + ";\n";
  auto got = run(body, 32 * 128);
  int wrong = 0;
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t i = 0; i < a.registers; ++i) {
      auto [row, column] = place(a, t, i);
      uint32_t c = column_of(a, t, column);
      uint32_t want = a.packed ? (value(row, c) & 0xffff) | value(row, c + 1) << 16 : value(row, c);
      wrong += got[t * 128 + i] != want;
    }
  EXPECT_EQ(wrong, 0) << form;
}

void check_store(const std::string& form) {
  Access a = access_of(form);
  std::string body = fill("mov.u32 c0, 0;");
  for (uint32_t i = 0; i < a.registers; ++i)
    body +=
        "mad.lo.u32 r" + std::to_string(i) + ", lane, 0x10100, " + std::to_string(i * 0x30001 + 5) + ";\n";
  body += form + " " + address(a, false, a.registers) + ";\ntcgen05.wait::st.sync.aligned;\n";
  body +=
      "mul.wide.u32 o, lane, 2048; add.u64 out, out, o; mov.u32 i, 0; mov.u32 at, tm;\nBACK: "
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {c0}, [at]; tcgen05.wait::ld.sync.aligned; st.global.u32 [out], "
      "c0; "
      "add.u64 out, out, 4; add.u32 at, at, 1; add.u32 i, i, 1; setp.lt.u32 p, i, 512; @p bra BACK;\n";
  auto got = run(body, 32 * kColumns);
  std::vector<uint32_t> want(32 * kColumns, 0);
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t i = 0; i < a.registers; ++i) {
      auto [row, column] = place(a, t, i);
      uint32_t at = row * kColumns + column_of(a, t, column), v = t * 0x10100 + i * 0x30001 + 5;
      want[at] = a.packed ? v & 0xffff : v;
      if (a.packed) want[at + 1] = v >> 16;
    }
  EXPECT_EQ(got, want) << form;
}

TEST(TensorMemoryForms, Loads) {
  for (const std::string& form : forms_of("tcgen05.ld")) check_load(form);
}
TEST(TensorMemoryForms, Stores) {
  for (const std::string& form : forms_of("tcgen05.st")) check_store(form);
}

// --- cp, alloc, commit: one kernel for each pair of spellings, in each group size ---

/// Lanes that row r of the source reaches; ptx-facts 4.6.
std::vector<uint32_t> lanes_of(const std::string& form, uint32_t r) {
  if (has_qualifier(form, "4x256b")) return {32 * r};
  if (has_qualifier(form, "32x128b")) return {r, r + 32, r + 64, r + 96};
  if (has_qualifier(form, "warpx2::02_13")) return {r, r + 64};
  if (has_qualifier(form, "warpx2::01_23"))
    return r < 32 ? std::vector{r, r + 32} : std::vector{r + 32, r + 64};
  return {r};
}

/// Copies rows of 32-bit words (row * 16 + word + 1000 * rank) into tensor memory of each CTA of the group.
void check_copy(const std::string& form, const std::string& alloc, const std::string& commit) {
  uint32_t group = has_qualifier(form, "cta_group::2") ? 2 : 1;
  std::string g = "cta_group::" + std::to_string(group);
  bool multicast = has_qualifier(commit, "multicast::cluster"),
       plain_address = !has_qualifier(commit, "shared::cluster");
  uint32_t rows = has_qualifier(form, "4x256b")    ? 4
                  : has_qualifier(form, "64x128b") ? 64
                  : has_qualifier(form, "32x128b") ? 32
                                                   : 128;
  uint32_t words = form.find("256b") != std::string::npos ? 8 : 4;
  PtxRun run;
  run.target = "sm_100a";
  run.grid = run.cluster = {group, 1, 1};
  run.block = {128, 1, 1};
  run.smem_bytes = 8192;
  run.params = ".param .u64 out_param";
  // Unswizzled source: 16-byte units of eight rows follow each other; LBO 2048 to the second unit of a row,
  // SBO 128.
  run.body = R"(
  .reg .b64 out, o, d, ga, gb; .reg .b32 s, tid, warp, rank, tm, t, v, bar, where, r<8>; .reg .b16 mask; .reg .pred p, q, one, lead, wait;
  .shared .align 8 .b64 barrier; .shared .align 4 .b32 address;
  ld.param.u64 out, [out_param]; mov.u32 s, raw; mov.u32 tid, %tid.x; shr.u32 warp, tid, 5; mov.u32 rank, %cluster_ctarank;
  mov.u32 bar, barrier; mov.u32 where, address; mov.b16 mask, )" +
             std::to_string(group == 2 ? 3 : 1) + R"(;
  cvt.u64.u32 ga, where; cvta.shared.u64 ga, ga; cvt.u64.u32 gb, bar; cvta.shared.u64 gb, gb;
  setp.eq.u32 one, tid, 0; setp.eq.and.u32 lead, rank, 0, one; setp.eq.u32 q, warp, 0;
  @one mbarrier.init.shared::cta.b64 [bar], 1; @one fence.mbarrier_init.release.cluster;
  mul.lo.u32 v, rank, 1000; mad.lo.u32 v, tid, 16, v; shl.b32 t, tid, 4; add.u32 t, t, s;
  add.u32 r0, v, 0; add.u32 r1, v, 1; add.u32 r2, v, 2; add.u32 r3, v, 3; st.shared.v4.u32 [t], {r0, r1, r2, r3};
  add.u32 r0, v, 4; add.u32 r1, v, 5; add.u32 r2, v, 6; add.u32 r3, v, 7; st.shared.v4.u32 [t+2048], {r0, r1, r2, r3};
  fence.proxy.async; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @!q bra READY;
  )" + alloc +
             (has_qualifier(alloc, "shared::cta") ? " [where], 32;" : " [ga], 32;") + R"(
READY: tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  ld.shared.u32 tm, [address];
  mov.u32 t, 77; mov.u32 v, tm; shl.b32 r1, warp, 21; add.u32 v, v, r1;
  tcgen05.st.sync.aligned.32x32b.x8.b32 [v], {t, t, t, t, t, t, t, t}; tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  shr.u32 t, s, 4; and.b32 t, t, 0x3fff; cvt.u64.u32 d, t; or.b64 d, d, 0x0000400800800000;
  @!lead bra SENT;
  )" + form + " [tm], d;\n  " +
             commit + (plain_address ? " [gb]" : " [bar]") + (multicast ? ", mask" : "") + R"(;
SENT: setp.eq.u32 wait, rank, 0;
)" + (multicast ? "  setp.eq.u32 wait, rank, rank;\n" : "") +
             R"(
  @!wait bra OVER;
W: mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0; @!p bra W;
OVER: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; tcgen05.fence::after_thread_sync;
  tcgen05.ld.sync.aligned.32x32b.x8.b32 {r0, r1, r2, r3, r4, r5, r6, r7}, [v]; tcgen05.wait::ld.sync.aligned;
  mad.lo.u32 t, rank, 128, tid; mul.wide.u32 o, t, 32; add.u64 out, out, o;
  st.global.v4.u32 [out], {r0, r1, r2, r3}; st.global.v4.u32 [out+16], {r4, r5, r6, r7};
  tcgen05.fence::before_thread_sync; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
  @!q bra X; tcgen05.relinquish_alloc_permit.)" +
             g + ".sync.aligned; tcgen05.dealloc." + g + R"(.sync.aligned.b32 tm, 32;
X:)";
  Device device;
  uint64_t out = device.allocate(group * 4096);
  LaunchResult r = run.run(device, {out});
  ASSERT_TRUE(r.clean()) << form << ", " << commit << "\n" << r.text();
  std::vector<uint32_t> want(group * 1024, 77);
  for (uint32_t cta = 0; cta < group; ++cta)
    for (uint32_t row = 0; row < rows; ++row)
      for (uint32_t lane : lanes_of(form, row))
        for (uint32_t w = 0; w < words; ++w) want[cta * 1024 + lane * 8 + w] = 1000 * cta + 16 * row + w;
  EXPECT_EQ(read_buffer<uint32_t>(device, out, group * 1024), want) << form << ", " << commit;
}

TEST(TensorMemoryForms, CopiesAllocationsAndCommits) {
  for (const char* group : {"cta_group::1", "cta_group::2"}) {
    auto of_group = [&](const char* prefix) {
      std::vector<std::string> out;
      for (std::string& form : forms_of(prefix))
        if (has_qualifier(form, group)) out.push_back(std::move(form));
      return out;
    };
    auto copies = of_group("tcgen05.cp"), allocations = of_group("tcgen05.alloc"),
         commits = of_group("tcgen05.commit");
    for (size_t i = 0; i < copies.size(); ++i)
      check_copy(copies[i], allocations[i % allocations.size()], commits[i % commits.size()]);
  }
}

}  // namespace
}  // namespace gemmtune::emulator
