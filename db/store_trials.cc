// Trials and their samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "db/record_json.h"
#include "db/store.h"

namespace gemmtune {
namespace {

constexpr std::string_view kTrialColumns =
    "SELECT t.id, p.class, p.m, p.n, p.k, c.family, t.arch, c.text, k.key, t.outcome, t.stage, t.message, "
    "t.validated_by, t.validation, t.regime, t.protocol, t.warm, t.predicted_us, t.model, t.bound_by, "
    "t.wall_ms, "
    "t.device_id, t.sweep_id, t.created_at, t.graph_us, t.launch_bound FROM trial t JOIN problem p ON p.id = "
    "t.problem_id "
    "JOIN config c ON c.id = t.config_id LEFT JOIN kernel k ON k.id = t.kernel_id ";

/// Timed this way; or failed before timing, which another way of timing would not change.
constexpr std::string_view kFinished =
    "FROM trial t JOIN config c ON c.id = t.config_id LEFT JOIN kernel k ON k.id = t.kernel_id "
    "WHERE t.problem_id = ?1 AND t.device_id = ?2 AND (?3 IS NULL "
    "OR (t.regime = ?3 AND t.protocol = ?4 AND t.warm = ?5) "
    "OR (t.regime IS NULL AND t.outcome NOT IN ('ok', 'compiled'))) ";

bool is_time(double us) { return std::isfinite(us) && us > 0; }

void check_samples(std::span<const Sample> samples) {
  for (const Sample& sample : samples)
    if (!is_time(sample.time_us))
      throw std::invalid_argument(fmt::format("a sample of {} us is no time", sample.time_us));
}

void check_trial(const Trial& trial) {
  if (trial.outcome == Outcome::ok && !trial.validation.passed())
    throw std::invalid_argument("outcome ok without a passed validation");
  if (trial.measurement) check_samples(trial.measurement->samples);
  if (trial.prediction && (!is_time(trial.prediction->time_us) || trial.prediction->model.empty()))
    throw std::invalid_argument(fmt::format("a prediction of {} us by model '{}' is none",
                                            trial.prediction->time_us, trial.prediction->model));
}

ValidatedBy parse_validated_by(std::string_view text) {
  for (ValidatedBy by : {ValidatedBy::gpu, ValidatedBy::emulator})
    if (name(by) == text) return by;
  return ValidatedBy::none;
}

std::optional<std::string> regime_text(const std::optional<Timing>& timing) {
  return timing ? std::optional(std::string(name(timing->regime))) : std::nullopt;
}

void bind_finished(Statement& query, int64_t problem, int64_t device, const std::optional<Timing>& timing) {
  query.bind(problem, device, regime_text(timing), timing ? timing->protocol : "", timing && timing->warm_l2);
}

}  // namespace

Store::Recorded Store::record_trial(const Trial& trial, int64_t device_id, int64_t sweep_id) {
  check_trial(trial);
  Transaction transaction(connection_);
  std::optional<int64_t> kernel;
  if (!trial.kernel_key.empty()) {
    kernel = kernel_id(trial.kernel_key);
    if (!kernel)
      throw std::invalid_argument(fmt::format("kernel {} is not stored: put_kernel first", trial.kernel_key));
  }
  int64_t problem = problem_id(trial.problem), config = config_id(trial.family, trial.config);
  std::optional<std::string> regime, protocol, model, bound_by;
  std::optional<double> predicted_us;
  if (trial.measurement) {
    regime = name(trial.measurement->regime);
    protocol = trial.measurement->protocol;
  }
  if (trial.prediction) {
    predicted_us = trial.prediction->time_us;
    model = trial.prediction->model;
    bound_by = trial.prediction->bound_by;
  }
  bool warm = trial.measurement && trial.measurement->warm_l2;
  Statement(connection_,
            "INSERT INTO trial (problem_id, device_id, config_id, arch, kernel_id, sweep_id, regime, "
            "protocol, warm, "
            "outcome, stage, message, validated_by, validation, predicted_us, model, bound_by, wall_ms) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (problem_id, device_id, config_id, arch, ifnull(kernel_id, 0), ifnull(regime, ''), "
            "ifnull(protocol, ''), warm) DO NOTHING")
      .bind(problem, device_id, config, trial.arch, kernel, sweep_id ? std::optional(sweep_id) : std::nullopt,
            regime, protocol, warm, name(trial.outcome), trial.stage, trial.message,
            name(trial.validation.by), validation_to_json(trial.validation.cases), predicted_us, model,
            bound_by, trial.wall_ms)
      .run();
  if (connection_.changes() == 0) {
    Statement existing(
        connection_,
        "SELECT id FROM trial WHERE problem_id = ? AND device_id = ? AND config_id = ? AND arch = ? AND "
        "ifnull(kernel_id, 0) = ? AND ifnull(regime, '') = ? AND ifnull(protocol, '') = ? AND warm = ?");
    existing.bind(problem, device_id, config, trial.arch, kernel.value_or(0), regime.value_or(""),
                  protocol.value_or(""), warm);
    existing.step();
    return {existing.integer(0), false};
  }
  int64_t id = connection_.last_insert_rowid();
  if (trial.measurement && !trial.measurement->samples.empty()) {
    insert_samples(id, trial.measurement->samples, 0);
    update_median(id, *trial.measurement);
  }
  transaction.commit();
  return {id, true};
}

void Store::insert_samples(int64_t trial_id, std::span<const Sample> samples, int first_index) {
  Statement insert(connection_, "INSERT INTO sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const Sample& s : samples)
    insert
        .bind(trial_id, first_index++, s.time_us, s.launches, s.round, s.final_round, s.sm_clock_khz,
              s.power_mw, s.temperature_c, static_cast<int64_t>(s.event_reasons), name(s.mark))
        .run();
}

void Store::update_median(int64_t trial_id, const Measurement& measurement) {
  double median = measurement.median_us();
  std::optional<double> median_us, spread;  // NULL while every sample is marked
  if (median > 0) median_us = median, spread = measurement.relative_spread();
  Statement(connection_, "UPDATE trial SET median_us = ?2, relative_spread = ?3, finalist = ?4 WHERE id = ?1")
      .bind(trial_id, median_us, spread, measurement.has_final_rounds())
      .run();
}

std::optional<LaunchCost> launch_cost(const Statement& row, int column) {
  if (row.is_null(column)) return std::nullopt;
  return LaunchCost{row.real(column), row.integer(column + 1) != 0};
}

void Store::put_launch_cost(int64_t trial_id, const LaunchCost& cost) {
  Statement(connection_, "UPDATE trial SET graph_us = ?2, launch_bound = ?3 WHERE id = ?1")
      .bind(trial_id, cost.graph_us, cost.launch_bound)
      .run();
}

void Store::append_samples(int64_t trial_id, std::span<const Sample> added) {
  check_samples(added);
  if (added.empty()) return;
  Transaction transaction(connection_);
  Statement timed(connection_, "SELECT 1 FROM trial WHERE id = ? AND regime IS NOT NULL");
  if (!timed.bind(trial_id).step()) throw std::invalid_argument(fmt::format("no timed trial {}", trial_id));
  timed.reset();
  Measurement all;
  all.samples = samples(trial_id);
  insert_samples(trial_id, added, static_cast<int>(all.samples.size()));
  all.samples.insert(all.samples.end(), added.begin(), added.end());
  update_median(trial_id, all);
  transaction.commit();
}

void Store::update_validation(int64_t trial_id, Outcome outcome, const std::string& message,
                              const Validation& validation) {
  if (outcome == Outcome::ok && !validation.passed())
    throw std::invalid_argument("outcome ok without a passed validation");
  Transaction transaction(connection_);
  Statement(connection_,
            "UPDATE trial SET outcome = ?2, message = ?3, validated_by = ?4, validation = ?5 WHERE id = ?1")
      .bind(trial_id, name(outcome), message, name(validation.by), validation_to_json(validation.cases))
      .run();
  transaction.commit();
}

std::set<VariantKey> Store::finished_trials(const Problem& problem, int64_t device_id,
                                            const std::optional<Timing>& timing) {
  std::set<VariantKey> finished;
  std::optional<int64_t> id = find_problem(problem);
  if (!id) return finished;
  Statement query(connection_, fmt::format("SELECT t.arch, c.family, c.text, k.key {}", kFinished));
  bind_finished(query, *id, device_id, timing);
  while (query.step()) finished.insert({query.text(0), query.text(1), query.text(2), query.text(3)});
  return finished;
}

bool Store::has_trial(const Problem& problem, int64_t device_id, const std::optional<Timing>& timing,
                      const VariantKey& v) {
  std::optional<int64_t> id = find_problem(problem);
  if (!id) return false;
  Statement query(
      connection_,
      fmt::format("SELECT 1 {} AND t.arch = ?6 AND t.config_id = (SELECT id FROM config WHERE family = ?7 "
                  "AND text = ?8) AND ifnull(k.key, '') = ?9",
                  kFinished));
  bind_finished(query, *id, device_id, timing);
  query.bind_value(6, v.arch);
  query.bind_value(7, v.family);
  query.bind_value(8, v.config);
  query.bind_value(9, v.kernel_key);
  return query.step();
}

std::vector<Sample> Store::samples(int64_t trial_id) {
  std::vector<Sample> samples;
  Statement row(
      connection_,
      "SELECT time_us, launches, round, final_round, sm_clock_khz, power_mw, temperature_c, event_reasons, "
      "mark FROM sample WHERE trial_id = ? ORDER BY idx");
  row.bind(trial_id);
  while (row.step())
    samples.push_back({row.real(0), row.small(1), row.small(2), row.small(3) != 0, row.small(4), row.small(5),
                       row.small(6), static_cast<uint64_t>(row.integer(7)), parse_sample_mark(row.text(8))});
  return samples;
}

StoredTrial Store::read_trial(Statement& row) {
  StoredTrial stored;
  Trial& t = stored.trial;
  stored.id = row.integer(0);
  t.problem = {parse_problem_class(row.text(1)), {row.integer(2), row.integer(3), row.integer(4)}};
  t.family = row.text(5);
  t.arch = row.text(6);
  t.config = row.text(7);
  t.kernel_key = row.text(8);
  t.outcome = parse_outcome(row.text(9)).value();  // the CHECK constraint lists the same words
  t.stage = row.text(10);
  t.message = row.text(11);
  t.validation = {parse_validated_by(row.text(12)), validation_from_json(row.text(13))};
  if (!row.is_null(14))
    t.measurement =
        Measurement{row.text(15), parse_regime(row.text(14)), row.integer(16) != 0, samples(stored.id)};
  if (!row.is_null(17)) t.prediction = Prediction{row.text(18), row.real(17), row.text(19)};
  t.wall_ms = row.real(20);
  stored.device_id = row.integer(21);
  stored.sweep_id = row.integer(22);
  stored.created_at = row.text(23);
  stored.launch_cost = launch_cost(row, 24);
  return stored;
}

std::vector<StoredTrial> Store::trials(const TrialFilter& filter) {
  std::vector<StoredTrial> result;
  std::optional<int64_t> problem;
  if (filter.problem && !(problem = find_problem(*filter.problem))) return result;
  std::string where;
  auto restrict = [&](bool wanted, const char* condition) {
    if (wanted) where += fmt::format("{} {}", where.empty() ? "WHERE" : " AND", condition);
  };
  restrict(problem.has_value(), "t.problem_id = ?1");
  restrict(filter.arch.has_value(), "t.arch = ?2");
  restrict(filter.device_id.has_value(), "t.device_id = ?3");
  restrict(filter.timing.has_value(), "t.regime = ?4 AND t.protocol = ?7 AND t.warm = ?8");
  restrict(filter.outcome.has_value(), "t.outcome = ?5");
  restrict(filter.sweep_id.has_value(), "t.sweep_id = ?6");
  // The last condition makes all eight parameters exist.
  Statement row(connection_, fmt::format("{} {} {} ?8 IS ?8 ORDER BY t.id", kTrialColumns, where,
                                         where.empty() ? "WHERE" : " AND"));
  row.bind(problem, filter.arch, filter.device_id, regime_text(filter.timing),
           filter.outcome ? std::optional(std::string(name(*filter.outcome))) : std::nullopt, filter.sweep_id,
           filter.timing ? filter.timing->protocol : "", filter.timing && filter.timing->warm_l2);
  while (row.step()) result.push_back(read_trial(row));
  return result;
}

std::optional<StoredTrial> Store::trial(int64_t id) {
  Statement row(connection_, fmt::format("{} WHERE t.id = ?", kTrialColumns));
  if (!row.bind(id).step()) return std::nullopt;
  return read_trial(row);
}

}  // namespace gemmtune
