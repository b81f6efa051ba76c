// Migrations, and the rules that the schema itself keeps, whoever writes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "db/check.h"
#include "tests/db/fixture.h"

namespace gemmtune {
namespace {

const Schema kVersion1{1,
                       "PRAGMA application_id = 1195724116; PRAGMA user_version = 1;"
                       "CREATE TABLE parent (id INTEGER PRIMARY KEY, name TEXT);"
                       "CREATE TABLE child (id INTEGER PRIMARY KEY, parent_id INTEGER REFERENCES parent);"
                       "INSERT INTO parent VALUES (1, 'a'); INSERT INTO child VALUES (7, 1);",
                       {}};
const Migration kTo2{2, "ALTER TABLE parent ADD COLUMN age INTEGER DEFAULT 5;"};
// Rebuilds a table that others refer to, as changing a constraint needs.
const Migration kTo3{
    3,
    "CREATE TABLE parent_new (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> ''), age INTEGER);"
    "INSERT INTO parent_new SELECT * FROM parent; DROP TABLE parent;"
    "ALTER TABLE parent_new RENAME TO parent;"};

class SchemaTest : public DbTest {};

TEST_F(SchemaTest, MigratesInOrderAndKeepsRows) {
  { open_database(path(), OpenMode::read_write_create, kVersion1); }
  Connection c = open_database(path(), OpenMode::read_write_create, Schema{3, "", {kTo2, kTo3}});
  EXPECT_EQ(query_integer(c, "PRAGMA user_version"), 3);
  EXPECT_EQ(query_integer(c, "SELECT p.age FROM child c JOIN parent p ON p.id = c.parent_id WHERE c.id = 7"),
            5);
  EXPECT_THROW(c.execute("INSERT INTO parent VALUES (2, '', 1)"), ConstraintError);
  EXPECT_THROW(c.execute("INSERT INTO child VALUES (8, 99)"), ConstraintError);  // foreign keys are on again
}

TEST_F(SchemaTest, FailedMigrationLeavesTheOldVersion) {
  { open_database(path(), OpenMode::read_write_create, kVersion1); }
  Migration broken{3, "DROP TABLE parent;"};  // leaves a child without its parent
  EXPECT_THROW(open_database(path(), OpenMode::read_write_create, Schema{3, "", {kTo2, broken}}),
               EnvironmentError);
  Migration syntax{3, "CREATE TABLE x (y); NONSENSE;"};
  EXPECT_THROW(open_database(path(), OpenMode::read_write_create, Schema{3, "", {kTo2, syntax}}),
               EnvironmentError);
  Connection c = open_database(path(), OpenMode::read_write_create, kVersion1);
  EXPECT_EQ(query_integer(c, "PRAGMA user_version"), 1);
  EXPECT_EQ(query_integer(c, "SELECT count(*) FROM pragma_table_info('parent')"), 2);
}

TEST_F(SchemaTest, MissingMigrationIsNamed) {
  { open_database(path(), OpenMode::read_write_create, kVersion1); }
  std::string message = message_of<EnvironmentError>([&] {
    open_database(path(), OpenMode::read_write_create, Schema{3, "", {kTo3}});
  });
  EXPECT_NE(message.find("version 1 cannot be brought to 3"), std::string::npos) << message;
}

TEST_F(SchemaTest, ReadOnlyDoesNotMigrate) {
  { open_database(path(), OpenMode::read_write_create, kVersion1); }
  std::string message = message_of<EnvironmentError>([&] {
    open_database(path(), OpenMode::read_only, Schema{2, "", {kTo2}});
  });
  EXPECT_NE(message.find("upgrades"), std::string::npos) << message;
}

TEST_F(SchemaTest, EmbeddedMigrationsReachTheCurrentVersion) {
  const Schema& schema = current_schema();
  EXPECT_GE(schema.version, 1);
  EXPECT_EQ(schema.migrations.size(), static_cast<size_t>(schema.version - 1));
  for (size_t i = 0; i < schema.migrations.size(); ++i)
    EXPECT_EQ(schema.migrations[i].version, static_cast<int>(i) + 2);
}

/// The schema that version 2 of the file had, with a winner, its tie and a failed trial.
std::string version_2() {
  std::ifstream file(GEMMTUNE_SOURCE_DIR "/tests/data/schemas/version_2.sql");
  return std::string(std::istreambuf_iterator<char>(file), {}) + R"(
    INSERT INTO device VALUES (1, 'GPU-1', 'NVIDIA H200', 'sm_90a', 132, 1, 1, 'x');
    INSERT INTO problem VALUES (1, 'bf16-bf16-kk', 64, 64, 64);
    INSERT INTO config VALUES (1, 'f', 'a=1', '{}'), (2, 'f', 'a=2', '{}'), (3, 'f', 'a=3', '{}');
    INSERT INTO trial (id, problem_id, device_id, config_id, arch, regime, protocol, warm, outcome, stage, message,
                       validated_by, validation, wall_ms)
      VALUES (1, 1, 1, 1, 'sm_90a', 'burst', 'p1', 0, 'ok', 'done', '', 'gpu', '[{}]', 1),
             (2, 1, 1, 2, 'sm_90a', 'burst', 'p1', 0, 'ok', 'done', '', 'gpu', '[{}]', 1),
             (3, 1, 1, 3, 'sm_90a', NULL, NULL, 0, 'compile_failed', 'compile', '', 'none', '[]', 1);
    INSERT INTO sample VALUES (1, 0, 10, 1, 0, 1, 0, 0, 0, 0), (2, 0, 10.1, 1, 0, 1, 0, 0, 0, 0);
    UPDATE trial SET median_us = 10, relative_spread = 0, finalist = 1 WHERE id = 1;
    UPDATE trial SET median_us = 10.1, relative_spread = 0, finalist = 1 WHERE id = 2;
    INSERT INTO winner (id, problem_id, device_id, regime, trial_id, evidence) VALUES (5, 1, 1, 'burst', 1, 'seen');
    INSERT INTO winner_tie VALUES (5, 0, 1), (5, 1, 2);
    DELETE FROM winner_due;)";
}

TEST_F(SchemaTest, OlderVersionsBecomeTheNewestSchema) {
  auto objects = [](Connection& c) {
    std::string all;
    Statement row(
        c,
        "SELECT m.type, m.name, i.name, i.type FROM sqlite_schema m LEFT JOIN pragma_table_info(m.name) i "
        "ORDER BY m.type, m.name, i.cid");
    while (row.step()) all += row.text(0) + " " + row.text(1) + "." + row.text(2) + " " + row.text(3) + "\n";
    Statement text(c, "SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view') ORDER BY name");
    while (text.step()) all += text.text(0) + ": " + text.text(1) + "\n";
    return all;
  };
  std::string fresh;
  {
    Connection c = open_database(path("fresh.db"), OpenMode::read_write_create);
    fresh = objects(c);
  }
  for (int version : {1, 2}) {
    std::string file = path(fmt::format("{}.db", version));
    {
      Connection c = open_database(file, OpenMode::read_write_create, Schema{2, version_2(), {}});
      if (version == 1) {
        c.execute("ALTER TABLE kernel DROP COLUMN ptx");
        c.execute("PRAGMA user_version = 1");
      }
      ASSERT_NE(objects(c), fresh);
    }
    Store store(file);
    Connection& c = store.connection();
    EXPECT_EQ(objects(c), fresh) << version;
    EXPECT_EQ(query_integer(c, "PRAGMA user_version"), current_schema().version);
    std::optional<Winner> winner = store.winner({{}, {64, 64, 64}}, 1, {});
    ASSERT_TRUE(winner);
    EXPECT_EQ(winner->trial_id, 1);
    EXPECT_EQ(winner->final_rounds, 1);
    EXPECT_EQ(winner->ties.size(), 2u);
    EXPECT_DOUBLE_EQ(winner->ties[1].ratio.low, 1.01);
    EXPECT_EQ(query_integer(c, "SELECT sum(trials) FROM outcome_count WHERE warm = 0"), 3);
    EXPECT_EQ(query_integer(c, "SELECT count(*) FROM winner_due"), 0);
    EXPECT_EQ(query_integer(c, "SELECT count(*) FROM sample WHERE mark = ''"), 2);
  }
}

/// One ok trial (1), one failed (2), one ok without a time (3), one ok on another problem (4).
class RulesTest : public SchemaTest {
 protected:
  RulesTest() : store_(path()), device_(store_.device_id(h200())) {
    store_.record_trial(ok_trial(problem(), "stages=4", {10, 11, 12}), device_);
    store_.record_trial(failed_trial(problem(), "stages=5", Outcome::wrong_result), device_);
    Trial untimed = ok_trial(problem(), "stages=6", {});
    untimed.measurement.reset();
    store_.record_trial(untimed, device_);
    store_.record_trial(ok_trial(problem(64), "stages=4", {10}), device_);
  }
  void refused(const std::string& sql, const std::string& reason) {
    std::string message = message_of<ConstraintError>([&] { store_.connection().execute(sql); });
    EXPECT_NE(message.find(reason), std::string::npos) << sql << "\n" << message;
  }
  std::string winner_sql(int trial) {
    return "INSERT INTO winner (problem_id, device_id, regime, warm, trial_id, final_rounds, evidence) "
           "VALUES (1, 1, 'burst', 0, " +
           std::to_string(trial) + ", 0, '')";
  }
  int64_t winners() { return query_integer(store_.connection(), "SELECT count(*) FROM winner"); }

  Store store_;
  int64_t device_;
};

TEST_F(RulesTest, OnlyOkValidatedMeasuredTrialsWin) {
  for (int trial : {2, 3, 4, 99}) refused(winner_sql(trial), "a winner needs");
  store_.connection().execute(winner_sql(1));
  for (int trial : {2, 3, 4}) {
    refused("UPDATE winner SET trial_id = " + std::to_string(trial), "a winner needs");
    refused("INSERT INTO winner_tie VALUES (1, 0, " + std::to_string(trial) + ", 1, 1)", "a tie needs");
  }
  store_.connection().execute("INSERT INTO winner_tie VALUES (1, 0, 1, 1, 1)");
}

TEST_F(RulesTest, WinnersNeedEvidenceNotOnlyAWord) {
  store_.connection().execute("UPDATE trial SET validation = '[]' WHERE id = 1");
  refused(winner_sql(1), "a winner needs");
}

TEST_F(RulesTest, ATrialThatFailsLaterLosesItsCrown) {
  store_.connection().execute(winner_sql(1));
  store_.connection().execute("INSERT INTO winner_tie VALUES (1, 0, 1, 1, 1)");
  store_.update_validation(1, Outcome::wrong_result, "row 3", {ValidatedBy::gpu, {}});
  EXPECT_EQ(winners(), 0);
  EXPECT_EQ(query_integer(store_.connection(), "SELECT count(*) FROM winner_tie"), 0);
  EXPECT_EQ(query_integer(store_.connection(), "SELECT count(*) FROM winner_due"), 2);  // trials 1 and 4
  EXPECT_TRUE(check_integrity(store_).empty());
}

TEST_F(RulesTest, TimesComeFromSamplesOfAGpuOnly) {
  refused("UPDATE trial SET median_us = 3, relative_spread = 0 WHERE id = 3", "without samples");
  refused(
      "INSERT INTO trial (problem_id, device_id, config_id, arch, regime, protocol, warm, outcome, stage, "
      "message, "
      "validated_by, validation, median_us, relative_spread, wall_ms) VALUES (1, 1, 1, 'x', 'burst', 'p1', "
      "0, "
      "'compiled', '', '', 'none', '[]', 3, 0, 0)",
      "derived from samples");
  EXPECT_THROW(store_.record_trial(ok_trial(problem(), "stages=4", {10}), store_.device_id(no_device())),
               ConstraintError);
}

TEST_F(RulesTest, ImpossibleTimesAreRefused) {
  for (const char* bad : {"0", "-1", "9e999", "NULL", "'x'"}) {
    SCOPED_TRACE(bad);
    EXPECT_THROW(store_.connection().execute("INSERT INTO sample VALUES (1, 9, " + std::string(bad) +
                                             ", 1, 1, 0, 1, 1, 1, 1, '')"),
                 ConstraintError);
  }
  for (const char* bad : {"0", "-1", "9e999"})
    EXPECT_THROW(
        store_.connection().execute("UPDATE trial SET median_us = " + std::string(bad) + " WHERE id = 1"),
        ConstraintError);
}

TEST_F(RulesTest, WordsAreChecked) {
  refused("UPDATE trial SET outcome = 'fine' WHERE id = 1", "CHECK");
  refused("UPDATE trial SET regime = 'idle' WHERE id = 1", "CHECK");
  refused("UPDATE trial SET validated_by = 'hope' WHERE id = 1", "CHECK");
  refused("UPDATE trial SET validated_by = 'none' WHERE id = 1", "CHECK");  // ok and not validated
  for (Outcome outcome : kAllOutcomes)
    store_.connection().execute("UPDATE trial SET outcome = '" + std::string(name(outcome)) +
                                "' WHERE id = 1");
}

TEST_F(RulesTest, ForeignKeysHold) {
  refused("DELETE FROM problem WHERE id = 1", "FOREIGN KEY");
  refused("DELETE FROM device WHERE id = 1", "FOREIGN KEY");
  store_.connection().execute("DELETE FROM trial WHERE id = 1");
  EXPECT_EQ(query_integer(store_.connection(), "SELECT count(*) FROM sample WHERE trial_id = 1"), 0);
  EXPECT_TRUE(check_integrity(store_).empty());
}

TEST_F(RulesTest, RatesAreComputedInSql) {
  Problem classes[] = {{parse_problem_class("f16-f32-mk-beta"), {640, 128, 256}},
                       {parse_problem_class("bf16-f32-kk"), {2147483647, 2147483647, 2147483647}}};
  for (const Problem& p : classes) {
    store_.record_trial(ok_trial(p, "stages=4", {25}), device_);
    Statement row(store_.connection(),
                  "SELECT tflops, compulsory_gb_per_s FROM trial_rates WHERE m = ? AND median_us = 25");
    ASSERT_TRUE(row.bind(p.shape.m).step());
    EXPECT_DOUBLE_EQ(row.real(0), flop(p.shape) / 25 / 1e6);
    EXPECT_DOUBLE_EQ(row.real(1), compulsory_bytes(p) / 25 / 1e3);
  }
  Statement untimed(store_.connection(), "SELECT tflops FROM trial_rates WHERE trial_id = 3");
  ASSERT_TRUE(untimed.step());
  EXPECT_TRUE(untimed.is_null(0));
}

TEST_F(RulesTest, KnobsAreQueryable) {
  EXPECT_EQ(query_integer(store_.connection(),
                          "SELECT count(*) FROM config WHERE json_extract(json, '$.stages') > 4"),
            2);
}

}  // namespace
}  // namespace gemmtune
