// `gemmtune db info` and `gemmtune db check`: what is in the file, and whether it can be believed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "db/store.h"

namespace gemmtune {

struct DatabaseInfo {
  std::string path;
  int64_t file_bytes = 0;  ///< with the write-ahead log
  int64_t cubin_bytes = 0;
  int schema_version = 0;
  std::string sqlite_version;
  int64_t problems = 0, devices = 0, configs = 0, kernels = 0, trials = 0, samples = 0, winners = 0,
          winners_due = 0, sweeps = 0, unfinished_sweeps = 0;
  std::vector<Toolchain> toolchains;
  std::map<Outcome, int64_t> outcomes;
  std::string first_trial_at, last_trial_at;  ///< empty without trials
};

DatabaseInfo database_info(Store& store);

/// One line per finding, empty when all is well: SQLite's own checks, foreign keys, and what our constraints
/// and triggers should have kept true (medians match samples, counts match trials, winners are the best that
/// is eligible, cubins match their hash). Reads everything.
std::vector<std::string> check_integrity(Store& store);

}  // namespace gemmtune
