#include "search/stopping.h"

#include <gtest/gtest.h>

namespace gemmtune {
namespace {

SampleList timed(std::initializer_list<double> screen, std::initializer_list<double> final = {}) {
  SampleList list;
  for (double us : screen) list.push_back({us, 1, 0, false, 0, 0, 0, 0});
  for (double us : final) list.push_back({us, 1, 0, true, 0, 0, 0, 0});
  return list;
}

SampleList repeated(double us, size_t screen, size_t final = 0) {
  SampleList list;
  for (size_t i = 0; i < screen + final; ++i)
    list.push_back({us, 1, static_cast<int>(i), i >= screen, 0, 0, 0, 0});
  return list;
}

/// Final rounds whose times alternate around `us` by the share `spread`.
SampleList wavering(double us, double spread, size_t final) {
  SampleList list = repeated(us, kScreenRounds, final);
  for (size_t i = kScreenRounds; i < list.size(); ++i) list[i].time_us *= 1 + (i % 2 == 0 ? spread : -spread);
  return list;
}

SampleList marked(SampleList list) {
  for (Sample& sample : list) sample.mark = SampleMark::throttled;
  return list;
}

using Indices = std::vector<size_t>;

TEST(Screening, EveryCandidateGetsAFirstLookBeforeAnyIsDropped) {
  std::vector<SampleList> lists = {repeated(10, 3), repeated(99, 2), {}};
  EXPECT_EQ(to_screen(lists), (Indices{1, 2}));
}

TEST(Screening, ClearlySlowerLeavesAndTheRestGoOn) {
  std::vector<SampleList> lists = {repeated(10, 3), repeated(10.9, 3), repeated(11.2, 3)};
  EXPECT_EQ(to_screen(lists), (Indices{0, 1}));
  lists = {repeated(10, kScreenRounds), repeated(10.9, kScreenRounds), repeated(11.2, 3)};
  EXPECT_TRUE(to_screen(lists).empty());
}

// One lucky sample does not keep a candidate in, one unlucky sample does not throw it out: medians decide.
TEST(Screening, JudgesByMedian) {
  std::vector<SampleList> lists = {timed({10, 10, 10}), timed({5, 20, 20}), timed({10, 10, 40})};
  EXPECT_EQ(to_screen(lists), (Indices{0, 2}));
}

TEST(Finals, TakeThoseNearTheBestAndStop) {
  std::vector<SampleList> lists = {repeated(10, kScreenRounds), repeated(10.3, kScreenRounds),
                                   repeated(11, kScreenRounds)};
  EXPECT_EQ(to_finish(lists), (Indices{0, 1}));
  // One that came later is measured beside the best, not alone.
  lists[0] = repeated(10, kScreenRounds, kFinalRounds);
  EXPECT_EQ(to_finish(lists), (Indices{0, 1}));
  lists[1] = repeated(10.3, kScreenRounds, kFinalRounds);
  EXPECT_TRUE(to_finish(lists).empty());
}

TEST(Finals, RoundsOfAnotherDayAreNoPairs) {
  std::vector<SampleList> lists = {repeated(10, kScreenRounds, kFinalRounds),
                                   repeated(10.1, kScreenRounds, kFinalRounds)};
  EXPECT_TRUE(to_finish(lists).empty());
  for (Sample& sample : lists[1]) sample.round += 1000;
  EXPECT_EQ(to_finish(lists), (Indices{1, 0}));
}

TEST(Finals, GoOnUntilSeparatedOrTheBudgetIsSpent) {
  // 2 % apart and noisy: neither a sure tie nor surely slower.
  std::vector<SampleList> lists = {repeated(10, kScreenRounds, kFinalRounds),
                                   wavering(10.2, 0.01, kFinalRounds), repeated(10.3, kScreenRounds, 12)};
  EXPECT_EQ(to_finish(lists), (Indices{1, 0})) << "the third is surely slower";
  lists[0] = repeated(10, kScreenRounds, kMaxFinalRounds);
  lists[1] = wavering(10.2, 0.01, kMaxFinalRounds);
  EXPECT_TRUE(to_finish(lists).empty());
  lists[1] = wavering(10.2, 0.01, kMaxFinalRounds - 1);
  EXPECT_EQ(to_finish(lists), (Indices{1, 0}));
  lists[1] = wavering(10.05, 0.001, kFinalRounds);
  EXPECT_TRUE(to_finish(lists).empty()) << "a sure tie needs no more";
}

TEST(Finals, AloneTooGetTheirRounds) {
  std::vector<SampleList> lists = {repeated(10, kScreenRounds, kFinalRounds - 1)};
  EXPECT_EQ(to_finish(lists), (Indices{0}));
  lists = {repeated(10, kScreenRounds, kFinalRounds)};
  EXPECT_TRUE(to_finish(lists).empty());
}

// Stored, never counted: a candidate with nothing else begins again.
TEST(Marks, DoNotCountAnywhere) {
  std::vector<SampleList> lists = {repeated(10, 3), marked(repeated(10, 30))};
  EXPECT_EQ(to_screen(lists), (Indices{1}));
  EXPECT_EQ(finalists(lists), (Indices{0}));
  SampleList list = repeated(10, kScreenRounds, 3);
  SampleList hot = marked(repeated(20, 0, kFinalRounds));
  list.insert(list.end(), hot.begin(), hot.end());
  EXPECT_EQ(to_finish(std::vector<SampleList>{list}), (Indices{0}));
  Measurement m;
  m.samples = list;
  EXPECT_EQ(m.counting_times_us(), (std::vector<double>{10, 10, 10}));
  m.samples = hot;
  EXPECT_EQ(m.median_us(), 0);
  EXPECT_FALSE(m.has_final_rounds());
}

TEST(Sustained, PairsWithTheReferenceUntilDecided) {
  std::vector<SampleList> lists(3);
  EXPECT_EQ(to_sustain(lists), (Indices{1, 0}));
  auto block = [&](size_t i, int round, double us) { lists[i].push_back({us, 1, round, true, 0, 0, 0, 0}); };
  block(1, 0, 11), block(0, 0, 10);
  EXPECT_EQ(to_sustain(lists), (Indices{2, 0})) << "each in its turn";
  for (int round = 1; round < 12; ++round)
    block(round % 2 == 0 ? 1 : 2, round, round % 2 == 0 ? 11 : 10.2 + 0.1 * (round % 4 - 2)),
        block(0, round, 10);
  EXPECT_EQ(to_sustain(lists), (Indices{2, 0})) << "the first is surely slower after six, the other is not";
  for (int round = 12; round < 16; ++round) block(2, round, 10.2 + 0.1 * (round % 2)), block(0, round, 10);
  EXPECT_TRUE(to_sustain(lists).empty()) << "the budget is spent";
  EXPECT_EQ(to_sustain(std::vector<SampleList>{repeated(10, 0, 5)}), (Indices{0}));
  EXPECT_TRUE(to_sustain(std::vector<SampleList>{repeated(10, 0, 6)}).empty());
}

TEST(Sustained, TheFastestFinalistsOfTheBurst) {
  std::vector<SampleList> lists(6, repeated(10, kScreenRounds, kFinalRounds));
  lists[3] = repeated(9.9, kScreenRounds, kFinalRounds);
  lists[5] = repeated(20, kScreenRounds);
  Indices chosen = to_measure_sustained(lists);
  EXPECT_EQ(chosen.size(), kMaxSustained);
  EXPECT_EQ(chosen.front(), 3u);
}

TEST(Clock, SettlesWhenFiveReadingsAgree) {
  std::vector<int> rising = {345000, 1200000, 1755000, 1980000, 1980000, 1980000, 1965000};
  EXPECT_FALSE(clock_is_settled(rising));
  rising.push_back(1980000);
  EXPECT_TRUE(clock_is_settled(rising));
  rising.push_back(1500000);
  EXPECT_FALSE(clock_is_settled(rising));
  EXPECT_FALSE(clock_is_settled(std::vector<int>(9, 0)));
  EXPECT_FALSE(clock_is_settled({}));
}

TEST(Finals, AreLimited) {
  std::vector<SampleList> lists(20, repeated(10, kScreenRounds));
  EXPECT_EQ(to_finish(lists).size(), kMaxFinalists);
}

TEST(Finals, NothingToDoWithoutCandidates) {
  EXPECT_TRUE(to_screen({}).empty());
  EXPECT_TRUE(to_finish({}).empty());
}

// The screening chose the finalists; their fresh samples alone count afterwards.
TEST(Median, CountsFinalRoundsAloneWhereThereAreAny) {
  Measurement m;
  m.samples = timed({1, 2, 3});
  EXPECT_DOUBLE_EQ(m.median_us(), 2);
  m.samples = timed({1, 2, 3}, {10, 20});
  EXPECT_DOUBLE_EQ(m.median_us(), 15);
}

}  // namespace
}  // namespace gemmtune
