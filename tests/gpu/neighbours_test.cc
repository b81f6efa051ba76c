// Who counts as computing beside us; needs no GPU.
#include "gpu/neighbours.h"

#include <gtest/gtest.h>

namespace gemmtune {
namespace {

using Pids = std::vector<unsigned>;
constexpr auto kNobodyBusy = [] { return std::optional<Pids>(Pids()); };

struct NeighboursTest : testing::Test {
  // The driver knows us as 71; 5 was there before.
  Neighbours neighbours{{5}, {5, 71}, 4242};
  Neighbours::Time now = Neighbours::Time() + std::chrono::hours(1);
};

TEST_F(NeighboursTest, WeAreNoNeighbours) {
  EXPECT_FALSE(neighbours.computing(now, {71, 4242}, std::nullopt));
  EXPECT_FALSE(neighbours.computing(now, {71}, Pids{71}));
}

TEST_F(NeighboursTest, AnIdleContextTakesNothing) {
  EXPECT_FALSE(neighbours.computing(now, {5, 71}, kNobodyBusy()));
  EXPECT_TRUE(neighbours.computing(now, {5, 71}, Pids{71, 5}));
}

TEST_F(NeighboursTest, WithoutUtilizationAContextIsEnough) {
  EXPECT_TRUE(neighbours.computing(now, {5, 71}, std::nullopt));
}

TEST_F(NeighboursTest, ANewProcessIsSuspectUntilUtilizationCanKnowIt) {
  EXPECT_TRUE(neighbours.computing(now, {71, 9}, kNobodyBusy()));
  now += Neighbours::kMemory / 2;
  EXPECT_TRUE(neighbours.computing(now, {71, 9}, kNobodyBusy()));
  now += Neighbours::kMemory;
  EXPECT_FALSE(neighbours.computing(now, {71, 9}, kNobodyBusy()));
  EXPECT_TRUE(neighbours.computing(now, {71, 9}, Pids{9}));
}

}  // namespace
}  // namespace gemmtune
