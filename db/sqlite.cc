#include "db/sqlite.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gemmtune {
namespace fs = std::filesystem;

namespace {

/// Bytes of a file, 0 where there is none.
uintmax_t file_size_or_zero(const std::string& path) {
  std::error_code none;
  uintmax_t size = fs::file_size(path, none);
  return none ? 0 : size;
}

/// SQLite's URI syntax reserves '?', '#' and '%'.
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (char c : fs::absolute(path).string()) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

}  // namespace

void Connection::RemoveFolder::operator()(std::string* folder) const {
  std::error_code ignored;
  fs::remove_all(*folder, ignored);
  delete folder;
}

Connection::Connection(std::string path, OpenMode mode, int busy_timeout_ms)
    : path_(std::move(path)), mode_(mode), busy_timeout_ms_(busy_timeout_ms) {
  std::error_code none;
  if (fs::is_directory(path_, none))
    throw EnvironmentError(
        fmt::format("database {}: is a folder; name a file, for example {}/gemmtune.db", path_, path_));
  mode_ == OpenMode::read_only ? open_for_reading() : open_for_writing();
}

int Connection::try_open(const std::string& file_or_uri, int flags) {
  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(file_or_uri.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                             nullptr);
  db_.reset(raw);
  if (code != SQLITE_OK) return code;
  sqlite3_busy_timeout(raw, busy_timeout_ms_);
  // Opening reads nothing: the first query finds out whether this is a database that we may read.
  return sqlite3_exec(raw, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
}

void Connection::open_for_writing() {
  fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty() && !fs::exists(folder))
    throw EnvironmentError(
        fmt::format("database {}: the folder {} does not exist; create it or choose another --db", path_,
                    folder.string()));
  check(try_open(path_, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE), "open");
  // Without write permission SQLite silently opens for reading.
  if (sqlite3_db_readonly(db_.get(), "main") == 1) check(SQLITE_READONLY, "open");
}

void Connection::open_for_reading() {
  if (!fs::exists(path_))
    throw EnvironmentError(
        fmt::format("database {}: no such file; `gemmtune sweep` creates it, --db names another", path_));
  int code = try_open(path_, SQLITE_OPEN_READONLY);
  int primary = code & 0xff;
  if (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) {
    // A WAL database wants its shared-memory file, which cannot be made in a read-only folder. With no WAL
    // content the file alone is the whole truth and, in a folder nobody can write, nobody changes it. With
    // content, immutable mode would silently leave out what was committed last, so read a private copy of
    // both files.
    if (file_size_or_zero(path_ + "-wal") == 0) {
      code = try_open(immutable_uri(path_), SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    } else {
      std::string pattern = (fs::temp_directory_path() / "gemmtune-read-XXXXXX").string();
      if (!mkdtemp(pattern.data())) check(SQLITE_CANTOPEN, "open");
      copy_folder_.reset(new std::string(pattern));
      std::error_code failed;
      fs::copy_file(path_, pattern + "/copy.db", failed);
      if (!failed) fs::copy_file(path_ + "-wal", pattern + "/copy.db-wal", failed);
      if (failed)
        throw EnvironmentError(
            fmt::format("database {}: cannot be read from its read-only folder, and a copy into {} "
                        "failed ({}); copy it and its -wal to a writable folder",
                        path_, pattern, failed.message()));
      std::error_code ignored;  // the originals may be read-only; SQLite recovers the copy by writing to it
      for (const char* name : {"/copy.db", "/copy.db-wal"})
        fs::permissions(pattern + name, fs::perms::owner_write, fs::perm_options::add, ignored);
      code = try_open(pattern + "/copy.db", SQLITE_OPEN_READWRITE);
      if (code == SQLITE_OK) execute("PRAGMA query_only = ON");
    }
  }
  check(code, "open");
}

void Connection::check(int code, std::string_view doing) const {
  int primary = code & 0xff;
  if (primary == SQLITE_OK || primary == SQLITE_ROW || primary == SQLITE_DONE) return;
  std::string detail = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(code);
  auto fail = [&](std::string_view what) {
    return EnvironmentError(fmt::format("database {}: {}", path_, what));
  };
  switch (primary) {
    case SQLITE_CONSTRAINT:
      throw ConstraintError(fmt::format("database {}: {}: {}", path_, doing, detail));
    case SQLITE_NOTADB:
      throw fail("the file is not a SQLite database; choose another --db or move it away");
    case SQLITE_CORRUPT:
      throw fail(fmt::format(
          "the file is damaged ({}); restore a copy, or rescue what is left with `sqlite3 FILE .recover`",
          detail));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw fail(fmt::format(
          "another gemmtune (or SQLite tool) holds it for longer than {} s; wait for it or stop it",
          busy_timeout_ms_ / 1000.0));
    case SQLITE_READONLY:
      throw fail(
          "cannot be written (file or folder is read-only); make both writable or choose another --db");
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      throw fail(
          "cannot be opened or created; check the permissions of file and folder or choose another --db");
    case SQLITE_FULL:
      throw fail("the disk is full; free space and run the same command again, it resumes");
    case SQLITE_PROTOCOL:
      throw fail("file locks do not work here (a network file system?); put the database on a local disk");
    case SQLITE_IOERR:
      throw fail(fmt::format("{} failed ({}); check the disk, and keep the database off network file systems",
                             doing, detail));
    case SQLITE_NOMEM:
      throw fail("out of memory");
    default:
      throw fail(fmt::format("{} failed: {}", doing, detail));
  }
}

void Connection::execute(const std::string& sql) {
  check(sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr), "execute");
}

Statement::Statement(Connection& connection, std::string_view sql) : connection_(connection) {
  sqlite3_stmt* raw = nullptr;
  int code = sqlite3_prepare_v2(connection.handle(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  stmt_.reset(raw);
  connection.check(code, sql);
}

void Statement::bind_value(int index, int64_t value) {
  connection_.check(sqlite3_bind_int64(stmt_.get(), index, value), "bind");
}

void Statement::bind_value(int index, double value) {
  if (!std::isfinite(value))
    throw std::invalid_argument(
        fmt::format("parameter {} of '{}' is {}", index, sqlite3_sql(stmt_.get()), value));
  connection_.check(sqlite3_bind_double(stmt_.get(), index, value), "bind");
}

void Statement::bind_value(int index, std::string_view value) {
  // A null pointer would bind NULL; an empty text is not NULL.
  const char* data = value.empty() ? "" : value.data();
  connection_.check(
      sqlite3_bind_text64(stmt_.get(), index, data, value.size(), SQLITE_TRANSIENT, SQLITE_UTF8), "bind");
}

void Statement::bind_value(int index, Blob value) {
  const char* data = value.bytes.empty() ? "" : value.bytes.data();
  connection_.check(sqlite3_bind_blob64(stmt_.get(), index, data, value.bytes.size(), SQLITE_TRANSIENT),
                    "bind");
}

void Statement::bind_value(int index, std::nullopt_t) {
  connection_.check(sqlite3_bind_null(stmt_.get(), index), "bind");
}

bool Statement::step() {
  int code = sqlite3_step(stmt_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(stmt_.get());  // also releases the read lock
  connection_.check(code, sqlite3_sql(stmt_.get()));
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() { sqlite3_reset(stmt_.get()); }

std::string Statement::text(int column) const {
  auto data = reinterpret_cast<const char*>(sqlite3_column_text(stmt_.get(), column));
  return data ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(stmt_.get(), column)))
              : std::string();
}

std::string Statement::blob(int column) const {
  auto data = static_cast<const char*>(sqlite3_column_blob(stmt_.get(), column));
  return data ? std::string(data, static_cast<size_t>(sqlite3_column_bytes(stmt_.get(), column)))
              : std::string();
}

std::optional<double> Statement::maybe_real(int column) const {
  return is_null(column) ? std::nullopt : std::optional(real(column));
}

std::optional<int64_t> Statement::maybe_integer(int column) const {
  return is_null(column) ? std::nullopt : std::optional(integer(column));
}

std::optional<std::string> Statement::maybe_text(int column) const {
  return is_null(column) ? std::nullopt : std::optional(text(column));
}

int64_t query_integer(Connection& connection, std::string_view sql) {
  Statement query(connection, sql);
  return query.step() ? query.integer(0) : 0;
}

Transaction::Transaction(Connection& connection)
    : connection_(connection), open_(sqlite3_get_autocommit(connection.handle()) != 0) {
  if (open_) connection_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  // The error that led here may already have rolled back (disk full does).
  if (open_ && sqlite3_get_autocommit(connection_.handle()) == 0)
    sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}

void Transaction::commit() {
  if (open_) connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace gemmtune
