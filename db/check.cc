#include "db/check.h"

#include <fmt/format.h>

#include <filesystem>

#include "db/record_json.h"
#include "gemm/sha256.h"

namespace gemmtune {
namespace {

/// A query that finds nothing in a sound database. Its first column names the row.
struct Invariant {
  const char* finding;
  const char* sql;
};

constexpr Invariant kInvariants[] = {
    {"trial {}: the stored median is not that of its samples",
     // As Measurement::median_us: the middle sample, or the mean of the two, of the final rounds if there are
     // any.
     "SELECT t.id FROM trial t WHERE t.median_us IS NOT NULL AND abs(t.median_us - ifnull((SELECT "
     "avg(time_us) FROM "
     "(SELECT time_us, row_number() OVER (ORDER BY time_us) AS r, count(*) OVER () AS n FROM sample "
     "WHERE trial_id = t.id AND final_round = t.finalist AND mark = '') "
     "WHERE r IN ((n + 1) / 2, (n + 2) / 2)), 0)) > 1e-9 * t.median_us"},
    {"trial {}: its mark as a finalist does not fit its samples",
     "SELECT t.id FROM trial t WHERE t.median_us IS NOT NULL AND t.finalist <> "
     "EXISTS (SELECT 1 FROM sample WHERE trial_id = t.id AND final_round AND mark = '')"},
    {"trial {}: has samples that count but no median",
     "SELECT t.id FROM trial t WHERE t.median_us IS NULL AND EXISTS (SELECT 1 FROM sample WHERE trial_id = "
     "t.id AND mark = '')"},
    {"trial {}: a measured time on a device that has none",
     "SELECT t.id FROM trial t JOIN device d ON d.id = t.device_id WHERE t.median_us IS NOT NULL "
     "AND d.name IN ('emulator', 'none')"},
    {"trial {}: kernel and trial differ in family, architecture or problem class",
     "SELECT t.id FROM trial t JOIN kernel k ON k.id = t.kernel_id JOIN problem p ON p.id = t.problem_id "
     "JOIN config c ON c.id = t.config_id JOIN config kc ON kc.id = k.config_id "
     "WHERE k.arch <> t.arch OR k.problem_class <> p.class OR kc.family <> c.family"},
    {"winner {}: its trial is not ok, validated and measured for this problem, device and timing",
     "SELECT w.id FROM winner w JOIN trial t ON t.id = w.trial_id WHERE t.outcome <> 'ok' OR t.validated_by "
     "= 'none' "
     "OR json_array_length(t.validation) = 0 OR t.median_us IS NULL OR t.problem_id <> w.problem_id "
     "OR t.device_id <> w.device_id OR t.regime <> w.regime OR t.warm <> w.warm"},
    {"winner {}: its trial is not in its own tie set",
     "SELECT w.id FROM winner w WHERE NOT EXISTS (SELECT 1 FROM winner_tie WHERE winner_id = w.id "
     "AND trial_id = w.trial_id)"},
    {"winner {}: a rankable trial is faster than its whole tie set, and it is not marked as due",
     "SELECT w.id FROM winner w JOIN trial t ON t.id = w.trial_id WHERE EXISTS (SELECT 1 FROM rankable r "
     "WHERE r.problem_id = w.problem_id AND r.device_id = w.device_id AND r.regime = w.regime "
     "AND r.protocol = t.protocol AND r.warm = t.warm AND r.finalist >= t.finalist AND r.median_us < (SELECT "
     "min(x.median_us) FROM "
     "winner_tie y "
     "JOIN trial x ON x.id = y.trial_id WHERE y.winner_id = w.id)) AND NOT EXISTS (SELECT 1 FROM winner_due "
     "d "
     "WHERE d.problem_id = w.problem_id AND d.device_id = w.device_id AND d.regime = w.regime AND d.warm = "
     "w.warm)"},
    {"problem {}: kept outcome counts differ from its trials",
     "SELECT problem_id FROM (SELECT problem_id, device_id, regime, warm, outcome, trials FROM "
     "outcome_count UNION ALL SELECT problem_id, device_id, ifnull(regime, ''), warm, outcome, -count(*) "
     "FROM "
     "trial GROUP BY 1, 2, 3, 4, 5) "
     "GROUP BY problem_id, device_id, regime, warm, outcome HAVING sum(trials) <> 0"},
};

void check_evidence(Store& store, std::vector<std::string>& findings) {
  Statement row(store.connection(), "SELECT id, validation FROM trial WHERE outcome = 'ok'");
  while (row.step()) {
    try {
      Validation validation{ValidatedBy::gpu, validation_from_json(row.text(1))};
      if (!validation.passed())
        findings.push_back(fmt::format("trial {}: ok, but its evidence does not pass", row.integer(0)));
    } catch (const std::exception& e) {
      findings.push_back(fmt::format("trial {}: {}", row.integer(0), e.what()));
    }
  }
}

void check_cubins(Store& store, std::vector<std::string>& findings) {
  Statement row(store.connection(), "SELECT id, cubin_sha256, cubin FROM kernel WHERE cubin IS NOT NULL");
  while (row.step())
    if (sha256_hex(row.blob(2)) != row.text(1))
      findings.push_back(
          fmt::format("kernel {}: the cubin is damaged (it will be compiled again)", row.integer(0)));
}

}  // namespace

DatabaseInfo database_info(Store& store) {
  Connection& c = store.connection();
  DatabaseInfo info;
  info.path = c.path();
  for (const char* suffix : {"", "-wal"}) {
    std::error_code none;
    uintmax_t bytes = std::filesystem::file_size(c.path() + suffix, none);
    if (!none) info.file_bytes += static_cast<int64_t>(bytes);
  }
  info.cubin_bytes = query_integer(c, "SELECT ifnull(sum(length(cubin)), 0) FROM kernel");
  info.schema_version = static_cast<int>(query_integer(c, "PRAGMA user_version"));
  info.sqlite_version = sqlite3_libversion();
  info.problems = query_integer(c, "SELECT count(*) FROM problem");
  info.devices = query_integer(c, "SELECT count(*) FROM device");
  info.configs = query_integer(c, "SELECT count(*) FROM config");
  info.kernels = query_integer(c, "SELECT count(*) FROM kernel");
  info.trials = query_integer(c, "SELECT ifnull(sum(trials), 0) FROM outcome_count");
  info.samples = query_integer(c, "SELECT count(*) FROM sample");
  info.winners = query_integer(c, "SELECT count(*) FROM winner");
  info.winners_due = query_integer(c, "SELECT count(*) FROM winner_due");
  info.sweeps = query_integer(c, "SELECT count(*) FROM sweep");
  info.unfinished_sweeps = query_integer(c, "SELECT count(*) FROM sweep WHERE finished_at IS NULL");
  Statement toolchain(c, "SELECT compiler, version FROM toolchain ORDER BY id");
  while (toolchain.step()) info.toolchains.push_back({toolchain.text(0), toolchain.text(1)});
  Statement outcome(c,
                    "SELECT outcome, sum(trials) FROM outcome_count GROUP BY outcome HAVING sum(trials) > 0");
  while (outcome.step()) info.outcomes[parse_outcome(outcome.text(0)).value()] = outcome.integer(1);
  // Ids ascend with time.
  Statement first(c, "SELECT created_at FROM trial ORDER BY id LIMIT 1");
  if (first.step()) info.first_trial_at = first.text(0);
  Statement last(c, "SELECT created_at FROM trial ORDER BY id DESC LIMIT 1");
  if (last.step()) info.last_trial_at = last.text(0);
  return info;
}

std::vector<std::string> check_integrity(Store& store) {
  std::vector<std::string> findings;
  Statement sqlite(store.connection(), "PRAGMA integrity_check");
  while (sqlite.step())
    if (sqlite.text(0) != "ok") findings.push_back(sqlite.text(0));
  Statement keys(store.connection(), "PRAGMA foreign_key_check");
  while (keys.step())
    findings.push_back(
        fmt::format("{} {}: refers to a missing row of {}", keys.text(0), keys.integer(1), keys.text(2)));
  for (const Invariant& invariant : kInvariants) {
    Statement row(store.connection(), invariant.sql);
    while (row.step()) findings.push_back(fmt::format(fmt::runtime(invariant.finding), row.integer(0)));
  }
  check_evidence(store, findings);
  check_cubins(store, findings);
  return findings;
}

}  // namespace gemmtune
