#include "db/queries.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace gemmtune {
namespace {

constexpr const char* kRankedColumns =
    "SELECT t.id, c.family, t.arch, c.text, k.key, t.outcome, t.validated_by, t.median_us, "
    "t.relative_spread, "
    "t.predicted_us, t.model, t.bound_by, t.created_at, t.finalist, t.graph_us, t.launch_bound ";
constexpr const char* kRankedJoins =
    " t JOIN config c ON c.id = t.config_id LEFT JOIN kernel k ON k.id = t.kernel_id ";

RankedTrial read_ranked(Statement& row) {
  RankedTrial trial;
  trial.trial_id = row.integer(0);
  trial.family = row.text(1);
  trial.arch = row.text(2);
  trial.config = row.text(3);
  trial.kernel_key = row.text(4);
  trial.outcome = parse_outcome(row.text(5)).value();
  for (ValidatedBy by : {ValidatedBy::gpu, ValidatedBy::emulator})
    if (name(by) == row.text(6)) trial.validated_by = by;
  trial.median_us = row.maybe_real(7);
  trial.relative_spread = row.maybe_real(8);
  trial.predicted_us = row.maybe_real(9);
  trial.model = row.text(10);
  trial.bound_by = row.text(11);
  trial.created_at = row.text(12);
  trial.finalist = row.integer(13) != 0;
  trial.launch_cost = launch_cost(row, 14);
  return trial;
}

std::string ranked_sql(const char* from, const char* rest) {
  return std::string(kRankedColumns) + "FROM " + from + kRankedJoins + rest;
}

/// The statements of one answer, prepared once and run per problem and device.
class BestQuery {
 public:
  BestQuery(Store& store, const BestFilter& filter)
      : store_(store),
        filter_(filter),
        counts_(store.connection(),
                "SELECT outcome, sum(trials) FROM outcome_count WHERE problem_id = ? AND device_id = ? "
                "AND (regime = '' OR (regime = ? AND warm = ?)) GROUP BY outcome HAVING sum(trials) > 0"),
        due_(store.connection(),
             "SELECT 1 FROM winner_due WHERE problem_id = ? AND device_id = ? AND regime = ? AND warm = ?"),
        by_id_(store.connection(), ranked_sql("trial", "WHERE t.id = ?")),
        measured_(store.connection(),
                  ranked_sql("rankable",
                             "WHERE t.problem_id = ? AND t.device_id = ? AND t.regime = ? AND t.protocol = ? "
                             "AND t.warm = ? ORDER BY t.finalist DESC, t.median_us, t.id LIMIT ?")),
        predicted_(store.connection(),
                   ranked_sql("trial",
                              "WHERE t.problem_id = ? AND t.device_id = ? AND t.predicted_us IS NOT NULL "
                              "AND t.outcome IN ('ok', 'compiled') ORDER BY t.predicted_us, t.id LIMIT ?")) {}

  BestAnswer answer(int64_t problem_id, const Problem& problem, int64_t device_id,
                    const DeviceRecord& device) {
    BestAnswer answer;
    answer.problem = problem;
    answer.device_id = device_id;
    answer.device = device;
    answer.regime = filter_.timing.regime;
    answer.warm_l2 = filter_.timing.warm_l2;
    const std::string regime(name(answer.regime));
    const bool warm = filter_.timing.warm_l2;
    counts_.bind(problem_id, device_id, regime, warm);
    while (counts_.step()) answer.counts[parse_outcome(counts_.text(0)).value()] = counts_.integer(1);
    answer.due = due_.bind(problem_id, device_id, regime, warm).step();
    add_winner(answer);
    add_measured(answer, problem_id, regime);
    if (answer.basis == Basis::none) add_predicted(answer, problem_id);
    return answer;
  }

 private:
  void add_winner(BestAnswer& answer) {
    answer.winner = store_.winner(answer.problem, answer.device_id, filter_.timing);
    if (!answer.winner) return;
    by_id_.bind(answer.winner->trial_id).step();
    answer.top.push_back(read_ranked(by_id_));
    answer.basis = Basis::measured;
  }

  void add_measured(BestAnswer& answer, int64_t problem_id, const std::string& regime) {
    const Timing& timing = filter_.timing;
    measured_.bind(problem_id, answer.device_id, regime, timing.protocol, timing.warm_l2, filter_.top + 1);
    while (measured_.step()) {
      answer.basis = Basis::measured;
      if (answer.winner && answer.winner->trial_id == measured_.integer(0)) continue;
      answer.top.push_back(read_ranked(measured_));
    }
    trim(answer);
    if (!answer.winner) return;
    for (RankedTrial& trial : answer.top)
      if (auto tie = std::ranges::find(answer.winner->ties, trial.trial_id, &Tie::trial_id);
          tie != answer.winner->ties.end())
        trial.tie = tie->ratio;
  }

  void add_predicted(BestAnswer& answer, int64_t problem_id) {
    predicted_.bind(problem_id, answer.device_id, filter_.top);
    while (predicted_.step()) answer.top.push_back(read_ranked(predicted_));
    if (!answer.top.empty()) answer.basis = Basis::predicted;
  }

  void trim(BestAnswer& answer) const {
    if (answer.top.size() > static_cast<size_t>(filter_.top))
      answer.top.resize(static_cast<size_t>(filter_.top));
  }

  Store& store_;
  const BestFilter& filter_;
  Statement counts_, due_, by_id_, measured_, predicted_;
};

/// Devices that the filter admits.
std::map<int64_t, DeviceRecord> wanted_devices(Store& store, const BestFilter& filter) {
  std::map<int64_t, DeviceRecord> devices;
  for (int64_t id : store.device_ids()) {
    DeviceRecord device = store.device(id);
    if (filter.arch && device.arch != *filter.arch) continue;
    if (filter.device_uuid && device.uuid != *filter.device_uuid) continue;
    if (filter.device_name && device.name != *filter.device_name) continue;
    devices.emplace(id, std::move(device));
  }
  return devices;
}

}  // namespace

std::string_view name(Basis basis) {
  return basis == Basis::measured ? "measured" : basis == Basis::predicted ? "predicted" : "none";
}

std::vector<BestAnswer> best(Store& store, const BestFilter& filter) {
  std::map<int64_t, DeviceRecord> devices = wanted_devices(store, filter);
  std::set<Problem> asked(filter.problems.begin(), filter.problems.end());
  std::set<Problem> missing = asked;
  std::vector<BestAnswer> answers;
  BestQuery query(store, filter);
  // One row per problem and device that has trials.
  Statement pair(store.connection(),
                 "SELECT DISTINCT p.id, p.class, p.m, p.n, p.k, o.device_id FROM outcome_count o "
                 "JOIN problem p ON p.id = o.problem_id WHERE o.trials > 0");
  while (pair.step()) {
    auto device = devices.find(pair.integer(5));
    Problem problem{parse_problem_class(pair.text(1)), {pair.integer(2), pair.integer(3), pair.integer(4)}};
    if (device == devices.end() || (!asked.empty() && !asked.contains(problem))) continue;
    if (filter.cls && problem.cls != *filter.cls) continue;
    answers.push_back(query.answer(pair.integer(0), problem, device->first, device->second));
    missing.erase(problem);
  }
  for (const Problem& problem : missing) {
    answers.emplace_back();
    answers.back().problem = problem;
    answers.back().regime = filter.timing.regime;
  }
  std::ranges::sort(answers, {},
                    [](const BestAnswer& a) { return std::tuple(a.problem, a.basis, a.device_id); });
  // Trials of the emulator, or only compiled, say nothing beside a time from elsewhere.
  std::optional<Problem> answered;
  std::erase_if(answers, [&](const BestAnswer& a) {
    if (a.basis != Basis::none) answered = a.problem;
    return a.basis == Basis::none && answered == a.problem && !a.device.takes_times();
  });
  return answers;
}

}  // namespace gemmtune
