// SQLite with owned handles: a connection, a statement, a transaction. Knows nothing of trials. A failing
// environment (not a database, locked, read-only, disk full ...) is an EnvironmentError of one line with the
// path and what to do; a broken constraint is a ConstraintError, our own bug. One connection belongs to one
// thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "gemm/error.h"

namespace gemmtune {

/// A CHECK, UNIQUE, foreign key or trigger of the schema refused a row.
struct ConstraintError : std::logic_error {
  using std::logic_error::logic_error;
};

enum class OpenMode {
  read_write_create,
  read_only,  ///< works on read-only files and folders, also beside the WAL that a killed writer left
};

/// How long a writer waits for another one. Our transactions take milliseconds, so longer means that it
/// hangs.
inline constexpr int kBusyTimeoutMs = 10'000;

class Connection {
 public:
  Connection(std::string path, OpenMode mode, int busy_timeout_ms = kBusyTimeoutMs);
  Connection(Connection&&) noexcept = default;
  Connection& operator=(Connection&&) noexcept = default;

  /// One or more statements without parameters or results.
  void execute(const std::string& sql);
  int64_t last_insert_rowid() const { return sqlite3_last_insert_rowid(db_.get()); }
  /// Rows changed by the last INSERT, UPDATE or DELETE.
  int64_t changes() const { return sqlite3_changes64(db_.get()); }

  sqlite3* handle() const { return db_.get(); }
  const std::string& path() const { return path_; }
  OpenMode mode() const { return mode_; }
  /// Throws what `code` means for this file; returns on SQLITE_OK, ROW and DONE.
  void check(int code, std::string_view doing) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  /// Removes a folder with everything in it.
  struct RemoveFolder {
    void operator()(std::string* folder) const;
  };
  int try_open(const std::string& file_or_uri, int flags);
  void open_for_writing();
  void open_for_reading();

  std::string path_;
  OpenMode mode_;
  int busy_timeout_ms_;
  std::unique_ptr<std::string, RemoveFolder> copy_folder_;  ///< see open_for_reading; outlives the handle
  std::unique_ptr<sqlite3, Close> db_;
};

/// Bytes bound as a blob.
struct Blob {
  std::string_view bytes;
};

class Statement {
 public:
  Statement(Connection& connection, std::string_view sql);

  /// Binds ?1, ?2, ... in order, from the first.
  template <class... Values>
  Statement& bind(const Values&... values) {
    reset();
    int index = 0;
    (bind_value(++index, values), ...);
    return *this;
  }
  void bind_value(int index, int64_t value);
  void bind_value(int index, int value) { bind_value(index, int64_t{value}); }
  void bind_value(int index, bool value) { bind_value(index, int64_t{value}); }
  /// NaN and infinity throw std::invalid_argument: SQLite would store NULL and Inf, and neither is a time.
  void bind_value(int index, double value);
  void bind_value(int index, std::string_view value);
  void bind_value(int index, const std::string& value) { bind_value(index, std::string_view(value)); }
  void bind_value(int index, const char* value) { bind_value(index, std::string_view(value)); }
  void bind_value(int index, Blob value);
  void bind_value(int index, std::nullopt_t);
  template <class Value>
  void bind_value(int index, const std::optional<Value>& value) {
    value ? bind_value(index, *value) : bind_value(index, std::nullopt);
  }

  /// True: a row to read. After false the statement can be bound again.
  bool step();
  /// For statements without result rows.
  void run();
  void reset();

  bool is_null(int column) const { return sqlite3_column_type(stmt_.get(), column) == SQLITE_NULL; }
  int64_t integer(int column) const { return sqlite3_column_int64(stmt_.get(), column); }
  int small(int column) const { return sqlite3_column_int(stmt_.get(), column); }
  double real(int column) const { return sqlite3_column_double(stmt_.get(), column); }
  std::string text(int column) const;
  std::string blob(int column) const;
  std::optional<double> maybe_real(int column) const;
  std::optional<int64_t> maybe_integer(int column) const;
  std::optional<std::string> maybe_text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }
  };
  Connection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
};

/// First column of the first row, 0 where there is none.
int64_t query_integer(Connection& connection, std::string_view sql);

/// A write. BEGIN IMMEDIATE takes the write lock at once, waiting for other writers: a transaction that
/// starts as a reader and writes later fails at once when another one wrote in between. Rolls back unless
/// committed. Inside a running transaction it joins that one, whose end decides.
class Transaction {
 public:
  explicit Transaction(Connection& connection);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection& connection_;
  bool open_;
};

}  // namespace gemmtune
