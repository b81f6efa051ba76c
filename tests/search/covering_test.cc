#include "search/covering.h"

#include <gtest/gtest.h>

#include <set>

namespace gemmtune {
namespace {

struct CoveringTest : testing::Test {
  const ArchSpec& arch = find_arch("sm_90a");
  const KernelFamily& family = family_for(arch);
  Restrictions few;
  CoveringTest() {
    for (std::string_view text :
         {"stages=2,3", "tile_k=32,64", "swizzle_a=64B,128B", "swizzle_b=128B", "tile_n=64,128",
          "tile_m=64,128", "cluster_m=1,2", "cluster_n=1", "raster=m", "raster_group=1", "prefetch=0",
          "l2_a=normal", "l2_b=normal", "pdl=no"})
      add_restriction(family, text, few);
  }
};

/// Every pair of values that a legal config has, by walking all of them.
std::set<std::vector<int>> pairs_of(const std::vector<int>& row) {
  std::set<std::vector<int>> pairs;
  for (size_t i = 0; i < row.size(); ++i)
    for (size_t j = i + 1; j < row.size(); ++j)
      pairs.insert({static_cast<int>(i), row[i], static_cast<int>(j), row[j]});
  return pairs;
}

TEST_F(CoveringTest, HasEveryLegalPairAndIsSmall) {
  Space space(family, arch, {}, std::nullopt, few);
  std::vector<ExtraFactor> extra = {{"schedule", 3}};
  CoveringSample sample =
      covering_sample([&](const std::vector<int>&) -> const Space& { return space; }, extra, 2, 7);
  std::set<std::vector<int>> possible, covered;
  space.for_each([&](const Config& config) {
    for (int schedule = 0; schedule < 3; ++schedule) {
      std::vector<int> row = config.values;
      row.push_back(schedule);
      possible.merge(pairs_of(row));
    }
    return true;
  });
  for (const CoveringRow& r : sample.rows) {
    EXPECT_TRUE(space.legal(r.config));
    std::vector<int> row = r.config.values;
    row.push_back(r.extra[0]);
    covered.merge(pairs_of(row));
  }
  EXPECT_EQ(covered, possible);
  EXPECT_EQ(sample.combinations, static_cast<int64_t>(possible.size()));
  EXPECT_GT(space.count(), static_cast<int64_t>(3 * sample.rows.size()));
  EXPECT_LE(sample.rows.size(), 20u);
}

TEST_F(CoveringTest, SameSeedSameSample) {
  Space space(family, arch, {}, std::nullopt, few);
  auto of = [&](const std::vector<int>&) -> const Space& { return space; };
  auto texts = [&](uint64_t seed) {
    std::string all;
    for (const CoveringRow& row : covering_sample(of, {}, 2, seed).rows)
      all += to_text(family.knobs(), row.config) + "\n";
    return all;
  };
  EXPECT_EQ(texts(1), texts(1));
  EXPECT_NE(texts(1), texts(2));
}

}  // namespace
}  // namespace gemmtune
