#include "db/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "db/embedded.h"

namespace gemmtune {
namespace {

constexpr std::string_view kMigrationPrefix = "migration_";
constexpr std::string_view kVersionPragma = "PRAGMA user_version = ";

int leading_integer(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Schema load_embedded() {
  Schema schema;
  for (const auto& [name, text] : db_embedded()) {
    if (name == "schema.sql") {
      schema.sql = text;
      size_t pragma = text.find(kVersionPragma);
      schema.version =
          pragma == std::string_view::npos ? 0 : leading_integer(text.substr(pragma + kVersionPragma.size()));
    } else if (name.starts_with(kMigrationPrefix)) {
      schema.migrations.push_back({leading_integer(name.substr(kMigrationPrefix.size())), std::string(text)});
    }
  }
  std::ranges::sort(schema.migrations, {}, &Migration::version);
  return schema;
}

int user_version(Connection& connection) {
  return static_cast<int>(query_integer(connection, "PRAGMA user_version"));
}

bool is_empty(Connection& connection) {
  return query_integer(connection, "SELECT count(*) FROM sqlite_schema") == 0;
}

void refuse_strangers(Connection& connection) {
  if (is_empty(connection)) return;
  if (query_integer(connection, "PRAGMA application_id") != kApplicationId)
    throw EnvironmentError(fmt::format(
        "database {}: holds the tables of another program; choose another --db", connection.path()));
}

void refuse_newer(Connection& connection, const Schema& schema) {
  int version = user_version(connection);
  if (version > schema.version)
    throw EnvironmentError(
        fmt::format("database {}: written by a newer gemmtune (schema version {}, this one knows {}); "
                    "update gemmtune or choose another --db",
                    connection.path(), version, schema.version));
}

/// WAL: readers are never blocked by the writer, and a commit is one append. The switch needs the file for
/// itself and does not wait for it as other statements do, so two tools that create the same file at once try
/// again here.
void enter_wal(Connection& connection) {
  for (int attempt = 0;; ++attempt) {
    try {
      Statement pragma(connection, "PRAGMA journal_mode = WAL");
      if (pragma.step() && pragma.text(0) == "wal") return;
      throw EnvironmentError(
          fmt::format("database {}: this file system offers no shared memory for SQLite's write-ahead "
                      "log (a network file system?); put the database on a local disk",
                      connection.path()));
    } catch (const EnvironmentError&) {
      // Only a busy file is worth another try.
      if (attempt == 50 || (sqlite3_errcode(connection.handle()) & 0xff) != SQLITE_BUSY) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

/// All steps in one transaction: a killed migration leaves the old version.
void migrate(Connection& connection, const Schema& schema) {
  // Rebuilding a table drops rows that others refer to; the check before COMMIT covers what ON would have.
  connection.execute("PRAGMA foreign_keys = OFF");
  Transaction transaction(connection);
  for (int version = user_version(connection) + 1; version <= schema.version; ++version) {
    auto found = std::ranges::find(schema.migrations, version, &Migration::version);
    if (found == schema.migrations.end())
      throw EnvironmentError(
          fmt::format("database {}: schema version {} cannot be brought to {} by this gemmtune",
                      connection.path(), version - 1, schema.version));
    connection.execute(found->sql);
    connection.execute(fmt::format("PRAGMA user_version = {}", version));
  }
  if (Statement(connection, "PRAGMA foreign_key_check").step())
    throw EnvironmentError(
        fmt::format("database {}: has rows without their parents, not migrated; run `gemmtune db check`",
                    connection.path()));
  transaction.commit();
}

}  // namespace

const Schema& current_schema() {
  static const Schema schema = load_embedded();
  return schema;
}

Connection open_database(const std::string& path, OpenMode mode, const Schema& schema, int busy_timeout_ms) {
  Connection connection(path, mode, busy_timeout_ms);
  refuse_strangers(connection);
  refuse_newer(connection, schema);
  if (mode == OpenMode::read_only) {
    if (is_empty(connection))
      throw EnvironmentError(fmt::format("database {}: is empty; `gemmtune sweep` fills it", path));
    if (user_version(connection) < schema.version)
      throw EnvironmentError(
          fmt::format("database {}: has schema version {}, this gemmtune needs {}; run `gemmtune db "
                      "check` on it with write permission, which upgrades it",
                      path, user_version(connection), schema.version));
    return connection;
  }
  enter_wal(connection);
  // NORMAL, not FULL: in WAL mode a commit that returned survives the death of the process (kill -9
  // included), because the log is in the page cache by then. FULL would add an fsync per trial and protects
  // only against power loss, after which NORMAL keeps the file consistent too and may lack the last trials.
  connection.execute("PRAGMA synchronous = NORMAL");
  if (is_empty(connection)) {
    Transaction transaction(connection);
    if (is_empty(connection)) connection.execute(schema.sql);  // another process may have been first
    transaction.commit();
  }
  if (user_version(connection) < schema.version) migrate(connection, schema);
  connection.execute("PRAGMA foreign_keys = ON");
  return connection;
}

}  // namespace gemmtune
