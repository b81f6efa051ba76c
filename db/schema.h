// Opens a database of the right version: creates the schema in a new file, migrates an older one, refuses a
// newer one and files of other programs.
#pragma once

#include <string>
#include <vector>

#include "db/sqlite.h"

namespace gemmtune {

/// "GEMT": PRAGMA application_id, so that `file` and we recognise our own.
inline constexpr int kApplicationId = 0x47454D54;

/// SQL that leads from version - 1 to version.
struct Migration {
  int version;
  std::string sql;
};

/// What a file is brought to. Tests pass their own.
struct Schema {
  int version;
  std::string sql;  ///< the newest schema, for new files; sets application_id and user_version
  std::vector<Migration> migrations;  ///< ascending versions
};

/// db/schema.sql and db/migration_*.sql as embedded in the binary.
const Schema& current_schema();

/// Opens, creates or migrates, each in one transaction. Throws EnvironmentError.
Connection open_database(const std::string& path, OpenMode mode, const Schema& schema = current_schema(),
                         int busy_timeout_ms = kBusyTimeoutMs);

}  // namespace gemmtune
