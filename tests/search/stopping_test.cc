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
  for (size_t i = 0; i < screen + final; ++i) list.push_back({us, 1, 0, i >= screen, 0, 0, 0, 0});
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
  lists[0] = repeated(10, kScreenRounds, kFinalRounds);
  EXPECT_EQ(to_finish(lists), (Indices{1}));
  lists[1] = repeated(10.3, kScreenRounds, kFinalRounds);
  EXPECT_TRUE(to_finish(lists).empty());
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
