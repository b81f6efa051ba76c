// The rows that trials refer to: devices, toolchains, problems, configs, sweeps, kernels, and the winners.
// Trials themselves are in store_trials.cc.
#include "db/store.h"

#include <fmt/format.h>

#include "db/record_json.h"
#include "gemm/sha256.h"

namespace gemmtune {
namespace {

/// Looks first: reading does not wait for a writer. `insert` must not fail on a row that another process
/// added meanwhile.
template <class... Values>
int64_t find_or_insert(Connection& connection, std::string_view find, std::string_view insert,
                       const Values&... values) {
  for (bool inserted : {false, true}) {
    Statement query(connection, find);
    if (query.bind(values...).step()) return query.integer(0);
    if (!inserted) Statement(connection, insert).bind(values...).run();
  }
  throw std::logic_error(fmt::format("inserted, not found: {}", insert));
}

}  // namespace

int64_t Store::device_id(const DeviceRecord& d) {
  Transaction transaction(connection_);
  Statement find(connection_,
                 "SELECT id FROM device WHERE uuid = ? AND name = ? AND arch = ? AND driver_version = ? "
                 "AND sm_count = ? AND l2_bytes = ? AND max_sm_clock_khz = ?");
  find.bind(d.uuid, d.name, d.arch, d.driver_version, d.sm_count, d.l2_bytes, d.max_sm_clock_khz);
  if (find.step()) return find.integer(0);
  Statement upsert(
      connection_,
      "INSERT INTO device (uuid, name, arch, driver_version, sm_count, l2_bytes, max_sm_clock_khz) "
      "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (uuid, name, arch, driver_version) DO UPDATE SET "
      "sm_count = excluded.sm_count, l2_bytes = excluded.l2_bytes, "
      "max_sm_clock_khz = excluded.max_sm_clock_khz RETURNING id");
  upsert.bind(d.uuid, d.name, d.arch, d.driver_version, d.sm_count, d.l2_bytes, d.max_sm_clock_khz);
  upsert.step();
  int64_t id = upsert.integer(0);
  upsert.reset();
  transaction.commit();
  return id;
}

int64_t Store::toolchain_id(const Toolchain& t) {
  return find_or_insert(connection_, "SELECT id FROM toolchain WHERE compiler = ? AND version = ?",
                        "INSERT INTO toolchain (compiler, version) VALUES (?, ?) ON CONFLICT DO NOTHING",
                        t.compiler, t.version);
}

int64_t Store::problem_id(const Problem& p) {
  return find_or_insert(connection_, "SELECT id FROM problem WHERE class = ? AND m = ? AND n = ? AND k = ?",
                        "INSERT INTO problem (class, m, n, k) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                        to_string(p.cls), p.shape.m, p.shape.n, p.shape.k);
}

std::optional<int64_t> Store::find_problem(const Problem& p) {
  Statement query(connection_, "SELECT id FROM problem WHERE class = ? AND m = ? AND n = ? AND k = ?");
  query.bind(to_string(p.cls), p.shape.m, p.shape.n, p.shape.k);
  return query.step() ? std::optional(query.integer(0)) : std::nullopt;
}

int64_t Store::config_id(std::string_view family, std::string_view config) {
  Statement query(connection_, "SELECT id FROM config WHERE family = ? AND text = ?");
  if (query.bind(family, config).step()) return query.integer(0);
  Statement(connection_, "INSERT INTO config (family, text, json) VALUES (?, ?, ?) ON CONFLICT DO NOTHING")
      .bind(family, config, config_to_json(config))
      .run();
  query.bind(family, config).step();
  return query.integer(0);
}

DeviceRecord Store::device(int64_t id) {
  Statement query(connection_,
                  "SELECT uuid, name, arch, sm_count, l2_bytes, max_sm_clock_khz, driver_version FROM device "
                  "WHERE id = ?");
  if (!query.bind(id).step()) throw std::invalid_argument(fmt::format("no device {}", id));
  return {query.text(0),    query.text(1),  query.text(2), query.small(3),
          query.integer(4), query.small(5), query.text(6)};
}

std::vector<int64_t> Store::device_ids() {
  std::vector<int64_t> ids;
  Statement query(connection_, "SELECT id FROM device ORDER BY id");
  while (query.step()) ids.push_back(query.integer(0));
  return ids;
}

int64_t Store::start_sweep(std::string_view command_line, uint64_t seed, std::string_view tool_version) {
  Statement(connection_, "INSERT INTO sweep (command_line, seed, tool_version) VALUES (?, ?, ?)")
      .bind(command_line, static_cast<int64_t>(seed), tool_version)
      .run();
  return connection_.last_insert_rowid();
}

void Store::finish_sweep(int64_t sweep_id) {
  Statement(connection_, "UPDATE sweep SET finished_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?")
      .bind(sweep_id)
      .run();
}

std::optional<int64_t> Store::kernel_id(std::string_view key) {
  Statement query(connection_, "SELECT id FROM kernel WHERE key = ?");
  return query.bind(key).step() ? std::optional(query.integer(0)) : std::nullopt;
}

bool Store::has_kernel(std::string_view key, bool with_ptx) {
  Statement query(connection_,
                  "SELECT 1 FROM kernel WHERE key = ? AND (NOT ok OR (cubin_sha256 IS NOT NULL AND "
                  "(NOT ? OR ptx IS NOT NULL)))");
  return query.bind(key, with_ptx).step();
}

std::optional<CompiledKernel> Store::find_kernel(std::string_view key) {
  Statement row(
      connection_,
      "SELECT k.key, c.family, k.arch, k.problem_class, c.text, t.compiler, t.version, k.ok, k.registers, "
      "k.spill_store_bytes, k.spill_load_bytes, k.stack_bytes, k.static_smem_bytes, k.dynamic_smem_bytes, "
      "k.tmem_columns, k.mma, k.tma_load, k.tma_store, k.commits, k.mbarrier_wait, k.tmem_load, "
      "k.tmem_alloc, k.compile_ms, k.log, k.cubin_sha256, k.cubin, k.ptx "
      "FROM kernel k JOIN config c ON c.id = k.config_id JOIN toolchain t ON t.id = k.toolchain_id "
      "WHERE k.key = ?");
  if (!row.bind(key).step()) return std::nullopt;
  CompiledKernel kernel;
  kernel.key = row.text(0);
  kernel.family = row.text(1);
  kernel.arch = row.text(2);
  kernel.problem_class = row.text(3);
  kernel.config = row.text(4);
  kernel.toolchain = {row.text(5), row.text(6)};
  kernel.ok = row.integer(7) != 0;
  StaticEvidence& e = kernel.evidence;
  int column = 8;
  for (int* field :
       {&e.registers, &e.spill_store_bytes, &e.spill_load_bytes, &e.stack_bytes, &e.static_smem_bytes,
        &e.dynamic_smem_bytes, &e.tmem_columns, &e.counts.mma, &e.counts.tma_load, &e.counts.tma_store,
        &e.counts.commit, &e.counts.mbarrier_wait, &e.counts.tmem_load, &e.counts.tmem_alloc})
    *field = row.small(column++);
  kernel.compile_ms = row.real(22);
  kernel.log = row.text(23);
  kernel.cubin = row.blob(25);
  kernel.ptx = row.text(26);
  if (kernel.ok && (row.is_null(25) || sha256_hex(kernel.cubin) != row.text(24))) return std::nullopt;
  return kernel;
}

void Store::put_kernel(const CompiledKernel& kernel) {
  Transaction transaction(connection_);
  const StaticEvidence& e = kernel.evidence;
  std::optional<Blob> cubin;
  std::optional<std::string> hash, ptx;
  if (!kernel.ptx.empty()) ptx = kernel.ptx;
  if (kernel.ok) {
    cubin = Blob{kernel.cubin};
    hash = sha256_hex(kernel.cubin);
  }
  // Everything but the log, the time and the bytes is a function of the key; ids stay, because trials refer
  // to them.
  Statement(
      connection_,
      "INSERT INTO kernel (key, config_id, arch, problem_class, toolchain_id, ok, registers, "
      "spill_store_bytes, "
      "spill_load_bytes, stack_bytes, static_smem_bytes, dynamic_smem_bytes, tmem_columns, mma, tma_load, "
      "tma_store, commits, mbarrier_wait, tmem_load, tmem_alloc, compile_ms, log, cubin_sha256, cubin, "
      "ptx) "
      "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
      "ON CONFLICT (key) DO UPDATE SET ok = excluded.ok, registers = excluded.registers, "
      "spill_store_bytes = excluded.spill_store_bytes, spill_load_bytes = excluded.spill_load_bytes, "
      "stack_bytes = excluded.stack_bytes, static_smem_bytes = excluded.static_smem_bytes, "
      "dynamic_smem_bytes = excluded.dynamic_smem_bytes, tmem_columns = excluded.tmem_columns, "
      "mma = excluded.mma, tma_load = excluded.tma_load, tma_store = excluded.tma_store, "
      "commits = excluded.commits, mbarrier_wait = excluded.mbarrier_wait, tmem_load = excluded.tmem_load, "
      "tmem_alloc = excluded.tmem_alloc, compile_ms = excluded.compile_ms, log = excluded.log, "
      "cubin_sha256 = excluded.cubin_sha256, cubin = excluded.cubin, ptx = excluded.ptx")
      .bind(kernel.key, config_id(kernel.family, kernel.config), kernel.arch, kernel.problem_class,
            toolchain_id(kernel.toolchain), kernel.ok, e.registers, e.spill_store_bytes, e.spill_load_bytes,
            e.stack_bytes, e.static_smem_bytes, e.dynamic_smem_bytes, e.tmem_columns, e.counts.mma,
            e.counts.tma_load, e.counts.tma_store, e.counts.commit, e.counts.mbarrier_wait,
            e.counts.tmem_load, e.counts.tmem_alloc, kernel.compile_ms, kernel.log, hash, cubin, ptx)
      .run();
  transaction.commit();
}

void Store::put_winner(const Winner& winner, int64_t device_id) {
  Transaction transaction(connection_);
  int64_t problem = problem_id(winner.problem);
  Statement upsert(
      connection_,
      "INSERT INTO winner (problem_id, device_id, regime, warm, trial_id, ratio_low, ratio_high, "
      "final_rounds, evidence) VALUES (?, ?, ?, ?, ?, nullif(?, 0.0), nullif(?, 0.0), ?, ?) "
      "ON CONFLICT (problem_id, device_id, regime, warm) DO UPDATE SET "
      "trial_id = excluded.trial_id, ratio_low = excluded.ratio_low, ratio_high = excluded.ratio_high, "
      "final_rounds = excluded.final_rounds, evidence = excluded.evidence, updated_at = "
      "strftime('%Y-%m-%dT%H:%M:%fZ', 'now') RETURNING id");
  upsert
      .bind(problem, device_id, name(winner.regime), winner.warm_l2, winner.trial_id, winner.ratio_low,
            winner.ratio_high, winner.final_rounds, winner.evidence)
      .step();
  int64_t id = upsert.integer(0);
  upsert.reset();
  Statement(connection_, "DELETE FROM winner_tie WHERE winner_id = ?").bind(id).run();
  Statement tie(connection_, "INSERT INTO winner_tie VALUES (?, ?, ?, ?, ?)");
  int rank = 0;
  for (const Tie& t : winner.ties) tie.bind(id, rank++, t.trial_id, t.ratio.low, t.ratio.high).run();
  Statement(connection_,
            "DELETE FROM winner_due WHERE problem_id = ? AND device_id = ? AND regime = ? AND warm = ?")
      .bind(problem, device_id, name(winner.regime), winner.warm_l2)
      .run();
  transaction.commit();
}

void Store::set_winner_evidence(const Winner& winner, int64_t device_id, const std::string& evidence) {
  Statement(connection_,
            "UPDATE winner SET evidence = ?6 WHERE problem_id = ?1 AND device_id = ?2 AND regime = ?3 AND "
            "warm = ?4 AND trial_id = ?5")
      .bind(problem_id(winner.problem), device_id, name(winner.regime), winner.warm_l2, winner.trial_id,
            evidence)
      .run();
}

void Store::drop_winner(const Problem& problem, int64_t device_id, const Timing& timing) {
  Transaction transaction(connection_);
  for (const char* table : {"winner", "winner_due"})
    Statement(connection_,
              fmt::format("DELETE FROM {} WHERE problem_id = ? AND device_id = ? AND regime = ? AND warm = ?",
                          table))
        .bind(problem_id(problem), device_id, name(timing.regime), timing.warm_l2)
        .run();
  transaction.commit();
}

std::optional<Winner> Store::winner(const Problem& problem, int64_t device_id, const Timing& timing) {
  // A winner of another protocol is none of this timing.
  Statement row(
      connection_,
      "SELECT w.id, d.uuid, w.trial_id, t.median_us, w.ratio_low, w.ratio_high, w.final_rounds, "
      "w.evidence, w.updated_at FROM winner w JOIN problem p ON p.id = w.problem_id JOIN device d ON d.id = "
      "w.device_id JOIN trial t ON t.id = w.trial_id "
      "WHERE p.class = ? AND p.m = ? AND p.n = ? AND p.k = ? AND w.device_id = ? AND w.regime = ? "
      "AND w.warm = ? AND t.protocol = ?");
  row.bind(to_string(problem.cls), problem.shape.m, problem.shape.n, problem.shape.k, device_id,
           name(timing.regime), timing.warm_l2, timing.protocol);
  if (!row.step()) return std::nullopt;
  Winner winner;
  winner.problem = problem;
  winner.device_uuid = row.text(1);
  winner.regime = timing.regime;
  winner.warm_l2 = timing.warm_l2;
  winner.trial_id = row.integer(2);
  winner.median_us = row.real(3);
  winner.ties = ties(row.integer(0));
  winner.ratio_low = row.real(4);
  winner.ratio_high = row.real(5);
  winner.final_rounds = row.small(6);
  winner.evidence = row.text(7);
  winner.updated_at = row.text(8);
  return winner;
}

std::vector<Tie> Store::ties(int64_t winner_id) {
  std::vector<Tie> ties;
  Statement row(connection_,
                "SELECT trial_id, ratio_low, ratio_high FROM winner_tie WHERE winner_id = ? ORDER BY rank");
  row.bind(winner_id);
  while (row.step()) ties.push_back({row.integer(0), {row.real(1), row.real(2)}});
  return ties;
}

}  // namespace gemmtune
