#include "search/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "gemm/error.h"
#include "gemm/suggest.h"
#include "kernel_templates/render.h"
#include "search/roofline.h"

namespace gemmtune {
namespace {

std::vector<Config> propose_random(const StrategyInput& in) {
  std::mt19937_64 random(in.seed);
  std::set<Config> seen;
  std::vector<Config> chosen;
  for (int miss = 0; static_cast<int>(chosen.size()) < in.trials && miss < 200;) {
    std::optional<Config> config = in.space.sample(random);
    if (!config) break;
    if (!seen.insert(*config).second) {
      ++miss;
      continue;
    }
    chosen.push_back(*config);
  }
  return chosen;
}

std::vector<Config> propose_exhaustive(const StrategyInput& in) {
  std::vector<Config> chosen;
  in.space.for_each([&](const Config& config) {
    chosen.push_back(config);
    return static_cast<int>(chosen.size()) < in.trials;
  });
  return chosen;
}

/// Draws many legal configurations, orders them by tile_cost, improves the best by single-knob steps, and
/// takes the cheapest few of every tile plan, so that one plan's near-copies do not fill the list.
std::vector<Config> propose_ranked(const StrategyInput& in) {
  constexpr int kDraws = 3000;
  constexpr size_t kPerPlan = 2;
  std::mt19937_64 random(in.seed);
  const Space& space = in.space;
  auto cost = [&](const Config& c) {
    return tile_cost(space.family().tile(c, in.problem.cls), in.problem, in.device);
  };

  std::map<Config, double> pool;
  Config fallback = space.family().default_config();
  if (space.legal(fallback)) pool[fallback] = cost(fallback);
  for (int i = 0; i < kDraws; ++i) {
    std::optional<Config> config = space.sample(random);
    if (!config) break;
    // The estimate does not see launch parameters: they start from their defaults, the steps below vary them.
    Config plain = compiled_part(space.family(), *config);
    if (!space.legal(plain)) plain = *config;
    pool.try_emplace(plain, cost(plain));
  }
  // The estimate is worth a few percent at best: within 2 % the config with fewer knobs off their default
  // goes first.
  auto away = [&](const Config& c) {
    int count = 0;
    for (size_t i = 0; i < c.values.size(); ++i)
      count += c.values[i] != space.family().knobs()[i].default_value;
    return count;
  };
  struct Ranked {
    int step, away;
    Config config;
    auto operator<=>(const Ranked&) const = default;
  };
  auto ordered = [&] {
    std::vector<Ranked> list;
    for (const auto& [config, value] : pool)
      list.push_back({static_cast<int>(std::log(value) / std::log(1.02)), away(config), config});
    std::ranges::sort(list);
    return list;
  };
  for (int round = 0; round < 3; ++round) {
    auto best = ordered();
    best.resize(std::min<size_t>(best.size(), 24));
    for (const auto& [step, off, config] : best)
      for (size_t knob = 0; knob < space.values().size(); ++knob)
        for (int choice : space.values()[knob]) {
          Config neighbour = config;
          neighbour.values[knob] = choice;
          if (!pool.contains(neighbour) && space.legal(neighbour)) pool[neighbour] = cost(neighbour);
        }
  }

  std::vector<Config> chosen;
  std::map<std::array<int, 6>, size_t> taken;
  std::vector<Config> spare;
  for (const auto& [step, off, config] : ordered()) {
    TileShape t = space.family().tile(config, in.problem.cls);
    size_t& count =
        taken[{t.tile_m, t.tile_n, t.tile_k, t.cluster_m * 16 + t.cluster_n, t.persistent, t.threads}];
    if (static_cast<int>(chosen.size()) == in.trials) break;
    if (count < kPerPlan) {
      ++count;
      chosen.push_back(config);
    } else {
      spare.push_back(config);
    }
  }
  for (const Config& config : spare)
    if (static_cast<int>(chosen.size()) < in.trials) chosen.push_back(config);
  return chosen;
}

constexpr std::array<Strategy, 3> kStrategies = {{
    {"ranked", "the configurations that a coarse cost estimate puts first, a few of each tile plan",
     propose_ranked},
    {"random", "uniformly drawn legal configurations", propose_random},
    {"exhaustive", "every legal configuration in order, up to --trials", propose_exhaustive},
}};

}  // namespace

std::span<const Strategy> strategies() { return kStrategies; }

const Strategy& find_strategy(std::string_view name) {
  std::vector<std::string> known;
  for (const Strategy& strategy : kStrategies) {
    if (strategy.name == name) return strategy;
    known.emplace_back(strategy.name);
  }
  throw UsageError(fmt::format("unknown strategy '{}'{}: one of {}", name, did_you_mean(name, known),
                               fmt::join(known, ", ")));
}

}  // namespace gemmtune
