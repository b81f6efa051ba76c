#include "search/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "gemm/error.h"
#include "kernel_templates/render.h"

namespace gemmtune {
namespace {

class Planner {
 public:
  Planner(const SweepOptions& options, const Toolchain& toolchain, Journal& journal)
      : o_(options), toolchain_(toolchain), journal_(journal) {}

  SweepPlan plan(const DeviceSpec& device, bool with_incumbents) const {
    SweepPlan plan;
    for (const ListedShape& listed : o_.shapes) {
      PlannedProblem planned{listed, {o_.cls, listed.shape}, {}};
      Space space(*o_.family, *o_.arch, o_.cls, listed.shape, o_.restrictions);
      for (const Config& config :
           o_.strategy->propose({space, planned.problem, device, o_.trials, o_.search_seed}))
        planned.candidates.push_back(candidate(config));
      if (planned.candidates.empty()) {
        std::vector<Space::Rejection> why = space.rejections(2000, o_.search_seed);
        plan.skipped.push_back(fmt::format("{}: no legal configuration ({})", to_string(listed.shape),
                                           why.empty() ? "the space is empty" : why.front().example));
        continue;
      }
      if (with_incumbents) add_incumbents(planned);
      plan.problems.push_back(std::move(planned));
    }
    return plan;
  }

 private:
  Candidate candidate(const Config& config) const {
    Candidate candidate;
    candidate.variant = {o_.family, o_.arch, o_.cls, config};
    candidate.config_text = to_text(o_.family->knobs(), config);
    candidate.key = compile_key(render(candidate.variant), std::string(o_.arch->name), toolchain_);
    return candidate;
  }

  void add_incumbents(PlannedProblem& planned) const {
    for (Regime regime : {Regime::burst, o_.regime}) {
      std::optional<Journal::Incumbent> stored = journal_.incumbent(planned.problem, o_.timing(regime));
      if (!stored || stored->family != o_.family->name()) continue;
      try {
        Candidate known = candidate(parse_config(o_.family->knobs(), stored->config));
        if (std::ranges::find(planned.candidates, known.config_text, &Candidate::config_text) ==
            planned.candidates.end())
          planned.candidates.push_back(std::move(known));
      } catch (const UsageError&) {
        // A value that this version no longer declares: it cannot be run again.
      }
    }
  }

  const SweepOptions& o_;
  const Toolchain& toolchain_;
  Journal& journal_;
};

}  // namespace

Trial untried(const Problem& problem, const Candidate& candidate) {
  Trial trial;
  trial.problem = problem;
  trial.family = candidate.variant.family->name();
  trial.arch = candidate.variant.arch->name;
  trial.config = candidate.config_text;
  trial.kernel_key = candidate.key;
  return trial;
}

SweepPlan plan_sweep(const SweepOptions& options, const Toolchain& toolchain, const Executor* executor,
                     Journal& journal) {
  const DeviceSpec* device = executor != nullptr ? find_device_spec(executor->device().name) : nullptr;
  if (device == nullptr) device = find_device_spec(options.arch->reference_device);
  return Planner(options, toolchain, journal).plan(*device, executor != nullptr && executor->takes_times());
}

}  // namespace gemmtune
