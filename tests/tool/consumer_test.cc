// A foreign project uses an exported header: database, real export, CMake, compiler, answers beside the
// database.
#include "db/queries.h"
#include "tests/tool/shell.h"

namespace gemmtune {
namespace {

/// The generator of this build: the default one may be make, and make may be missing.
const std::string kConfigure = "cmake -G \"$(sed -n 's/^CMAKE_GENERATOR:INTERNAL=//p' " GEMMTUNE_BINARY_DIR
                               "/CMakeCache.txt)\" -S $SOURCE/examples/consumer -B build";

TEST(Consumer, AnswersAsTheDatabaseDoes) {
  Shell shell;
  make_winners(shell.path("winners.db"));
  Ran exported = shell.run("gemmtune export --db winners.db --format header --output winners.h");
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_EQ(exported.out, "");
  EXPECT_EQ(exported.err, "3 winners exported to winners.h\n");
  Ran built = shell.run(kConfigure +
                        " -DWINNERS_HEADER=$PWD/winners.h"
                        " -DCMAKE_CXX_FLAGS=-Werror && cmake --build build");
  ASSERT_EQ(built.status, 0) << built.out << built.err;

  Store store(shell.path("winners.db"), OpenMode::read_only);
  BestFilter filter;
  filter.cls = ProblemClass();
  std::vector<BestAnswer> answers = best(store, filter);
  size_t winners = 0;
  for (const BestAnswer& answer : answers) {
    if (!answer.winner) continue;
    ++winners;
    const RankedTrial& trial = answer.top.front();
    std::string shape = to_string(answer.problem.shape);
    Ran ran = shell.run("build/consumer " + shape);
    EXPECT_EQ(ran.status, 0);
    EXPECT_TRUE(
        ran.out.starts_with(fmt::format("{}: exact: sm90_gemm {}, {:.2f} us measured on NVIDIA H200\n", shape,
                                        trial.config, *trial.median_us)))
        << ran.out;
  }
  EXPECT_EQ(winners, 2u);

  Ran miss = shell.run("build/consumer 100x8192x8192 4096x4096x4097 1x4096x4096");
  std::vector<std::string> lines = lines_of(miss.out);
  ASSERT_EQ(lines.size(), 5u) << miss.out;
  EXPECT_TRUE(lines[0].starts_with("100x8192x8192: nearest_m, tuned for M = 128: sm90_gemm stages=6,"))
      << lines[0];
  EXPECT_TRUE(lines[1].starts_with("  stages 6, ")) << lines[1];
  EXPECT_EQ(lines[2], "4096x4096x4097: none: no winner for this N and K");
  // Compiled, never a winner: the table must answer with another M.
  EXPECT_TRUE(lines[3].starts_with("1x4096x4096: nearest_m, tuned for M = 4096: ")) << lines[3];
  EXPECT_TRUE(lines[4].starts_with("  stages 4, ")) << lines[4];

  EXPECT_EQ(shell.run("build/consumer 4096x4096").status, 2);
}

TEST(Consumer, SaysWhatIsMissing) {
  Shell shell;
  Ran none = shell.run(kConfigure);
  EXPECT_NE(none.status, 0);
  EXPECT_NE(none.err.find("pass -DWINNERS_HEADER=FILE"), std::string::npos) << none.err;
}

}  // namespace
}  // namespace gemmtune
