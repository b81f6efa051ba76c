-- The results database, version 2. This file is always the newest schema; db/migration_NNN.sql leads from version
-- NNN-1 to NNN (db/schema.h). Rules that must hold whoever writes are constraints and triggers here, not C++.
-- Times are NULL where there is none, TRUE/FALSE are 1/0, timestamps are UTC text (2025-01-31T12:00:00.000Z).

PRAGMA application_id = 1195724116;  -- "GEMT"
PRAGMA user_version = 2;

-- Who ran trials. A new driver on the same GPU is a new row: its times are not comparable without saying so.
CREATE TABLE device (
  id               INTEGER PRIMARY KEY,
  uuid             TEXT NOT NULL,            -- '' for static work and the emulator
  name             TEXT NOT NULL,            -- 'NVIDIA H200', 'emulator', 'none'
  arch             TEXT NOT NULL,            -- 'sm_90a'
  sm_count         INTEGER NOT NULL,
  l2_bytes         INTEGER NOT NULL,
  max_sm_clock_khz INTEGER NOT NULL,
  driver_version   TEXT NOT NULL,
  UNIQUE (uuid, name, arch, driver_version)
);

CREATE TABLE toolchain (
  id       INTEGER PRIMARY KEY,
  compiler TEXT NOT NULL,
  version  TEXT NOT NULL,
  UNIQUE (compiler, version)
);

CREATE TABLE problem (
  id    INTEGER PRIMARY KEY,
  class TEXT NOT NULL,                       -- canonical: 'bf16-f32-kk-beta' = in, out, major-ness of A and B
  m     INTEGER NOT NULL CHECK (m > 0),
  n     INTEGER NOT NULL CHECK (n > 0),
  k     INTEGER NOT NULL CHECK (k > 0),
  flop  REAL GENERATED ALWAYS AS (2.0 * m * n * k) VIRTUAL,
  -- A and B read once (2-byte inputs), C written once and, with beta, read once.
  compulsory_bytes REAL GENERATED ALWAYS AS (
    2.0 * m * k + 2.0 * n * k + 1.0 * m * n * CASE WHEN class LIKE '%-f32-%' THEN 4 ELSE 2 END
                                            * CASE WHEN class LIKE '%-beta'  THEN 2 ELSE 1 END) VIRTUAL,
  UNIQUE (class, m, n, k)
);

-- A family's knob values. `json` holds the same as an object, for queries: json_extract(json, '$.stages').
CREATE TABLE config (
  id     INTEGER PRIMARY KEY,
  family TEXT NOT NULL,
  text   TEXT NOT NULL,                      -- canonical: 'stages=4,tile_k=64'
  json   TEXT NOT NULL CHECK (json_valid(json)),
  UNIQUE (family, text)
);

-- Compiled kernels, the cubin cache. `key` is the hash of everything that goes in, so equal keys mean equal cubins.
CREATE TABLE kernel (
  id                 INTEGER PRIMARY KEY,
  key                TEXT NOT NULL UNIQUE CHECK (key <> ''),
  config_id          INTEGER NOT NULL REFERENCES config,
  arch               TEXT NOT NULL,
  problem_class      TEXT NOT NULL,
  toolchain_id       INTEGER NOT NULL REFERENCES toolchain,
  ok                 INTEGER NOT NULL CHECK (ok IN (0, 1)),
  registers          INTEGER NOT NULL,
  spill_store_bytes  INTEGER NOT NULL,
  spill_load_bytes   INTEGER NOT NULL,
  stack_bytes        INTEGER NOT NULL,
  static_smem_bytes  INTEGER NOT NULL,
  dynamic_smem_bytes INTEGER NOT NULL,
  tmem_columns       INTEGER NOT NULL,
  mma                INTEGER NOT NULL,       -- instruction counts in the PTX text
  tma_load           INTEGER NOT NULL,
  tma_store          INTEGER NOT NULL,
  commits            INTEGER NOT NULL,
  mbarrier_wait      INTEGER NOT NULL,
  tmem_load          INTEGER NOT NULL,
  tmem_alloc         INTEGER NOT NULL,
  compile_ms         REAL NOT NULL,
  log                TEXT NOT NULL,
  created_at         TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  cubin_sha256       TEXT,
  cubin              BLOB,                   -- last: columns behind a large blob are slow to reach
  ptx                TEXT,                   -- what the emulator runs; NULL in rows older than version 2
  CHECK ((cubin IS NULL) = (cubin_sha256 IS NULL)),
  CHECK (ok OR cubin IS NULL)                -- a kept kernel may lose its cubin to pruning; a failed one has none
);
CREATE INDEX kernel_by_config ON kernel (config_id);

CREATE TABLE sweep (
  id           INTEGER PRIMARY KEY,
  command_line TEXT NOT NULL,
  seed         INTEGER NOT NULL,             -- 64 bits, shown as signed
  tool_version TEXT NOT NULL,
  started_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  finished_at  TEXT                          -- NULL: running, interrupted or killed
);

CREATE TABLE trial (
  id           INTEGER PRIMARY KEY,
  problem_id   INTEGER NOT NULL REFERENCES problem,
  device_id    INTEGER NOT NULL REFERENCES device,
  config_id    INTEGER NOT NULL REFERENCES config,
  arch         TEXT NOT NULL,
  kernel_id    INTEGER REFERENCES kernel,    -- NULL: nothing was compiled
  sweep_id     INTEGER REFERENCES sweep,
  regime       TEXT CHECK (regime IN ('burst', 'sustained')),   -- NULL: timing was not reached
  protocol     TEXT,
  warm         INTEGER NOT NULL CHECK (warm IN (0, 1)),
  outcome      TEXT NOT NULL CHECK (outcome IN ('ok', 'compiled', 'compile_failed', 'rejected_static',
                 'launch_failed', 'wrong_result', 'timed_out', 'crashed', 'unstable')),
  stage        TEXT NOT NULL,
  message      TEXT NOT NULL,
  validated_by TEXT NOT NULL CHECK (validated_by IN ('none', 'gpu', 'emulator')),
  validation   TEXT NOT NULL CHECK (json_valid(validation)),    -- array of cases: fill, shape, errors
  -- Derived from the samples and stored for the index; the triggers below let nothing else in. A finalist has samples
  -- of final rounds, and its median is theirs alone.
  median_us       REAL CHECK (median_us > 0 AND median_us < 1e12),
  relative_spread REAL CHECK (relative_spread >= 0),
  finalist        INTEGER NOT NULL DEFAULT 0 CHECK (finalist IN (0, 1)),
  predicted_us REAL CHECK (predicted_us > 0 AND predicted_us < 1e12),
  model        TEXT,
  bound_by     TEXT,
  wall_ms      REAL NOT NULL,
  created_at   TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  CHECK ((regime IS NULL) = (protocol IS NULL)),
  CHECK (median_us IS NULL OR regime IS NOT NULL),
  CHECK ((median_us IS NULL) = (relative_spread IS NULL)),
  CHECK ((predicted_us IS NULL) = (model IS NULL)),
  CHECK (outcome <> 'ok' OR validated_by <> 'none')
);

-- "No trial twice". The key is everything that can change the result: what was asked (problem), what ran (config,
-- architecture and, because a template or compiler may change under the same config, the kernel's content key), where
-- (device with driver) and how it was timed. Leave one out and a stale row answers for something that was never run.
CREATE UNIQUE INDEX trial_once ON trial (problem_id, device_id, config_id, arch, ifnull(kernel_id, 0),
                                         ifnull(regime, ''), ifnull(protocol, ''), warm);
CREATE INDEX trial_fastest ON trial (problem_id, device_id, regime, protocol, warm, finalist DESC, median_us)
  WHERE outcome = 'ok' AND median_us IS NOT NULL;
CREATE INDEX trial_predicted ON trial (problem_id, device_id, predicted_us)
  WHERE predicted_us IS NOT NULL AND outcome IN ('ok', 'compiled');
CREATE INDEX trial_by_kernel ON trial (kernel_id) WHERE kernel_id IS NOT NULL;   -- for the foreign keys
CREATE INDEX trial_by_sweep ON trial (sweep_id) WHERE sweep_id IS NOT NULL;

-- Every timed batch, raw.
CREATE TABLE sample (
  trial_id      INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  idx           INTEGER NOT NULL,
  time_us       REAL NOT NULL CHECK (time_us > 0 AND time_us < 1e12),
  launches      INTEGER NOT NULL,
  round         INTEGER NOT NULL,
  final_round   INTEGER NOT NULL CHECK (final_round IN (0, 1)),  -- fresh re-measurement of finalists
  sm_clock_khz  INTEGER NOT NULL,
  power_mw      INTEGER NOT NULL,
  temperature_c INTEGER NOT NULL,
  event_reasons INTEGER NOT NULL,            -- NVML bit mask, 64 bits
  PRIMARY KEY (trial_id, idx)
) WITHOUT ROWID;

-- The stored answer per problem, device and regime (db/winners.h computes it).
CREATE TABLE winner (
  id         INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL CHECK (regime IN ('burst', 'sustained')),
  trial_id   INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  ratio_low  REAL,                           -- 95 % interval of (best outside the tie set) / winner; NULL: none
  ratio_high REAL,
  evidence   TEXT NOT NULL,
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE (problem_id, device_id, regime),
  CHECK ((ratio_low IS NULL) = (ratio_high IS NULL)),
  CHECK (ratio_low IS NULL OR (ratio_low > 0 AND ratio_low <= ratio_high))
);
CREATE INDEX winner_by_trial ON winner (trial_id);
CREATE INDEX winner_by_device ON winner (device_id);

CREATE TABLE winner_tie (
  winner_id INTEGER NOT NULL REFERENCES winner ON DELETE CASCADE,
  rank      INTEGER NOT NULL,                -- 0 = best median
  trial_id  INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  PRIMARY KEY (winner_id, rank),
  UNIQUE (winner_id, trial_id)
) WITHOUT ROWID;
CREATE INDEX winner_tie_by_trial ON winner_tie (trial_id);

-- Winners to recompute, because trials came in since. Filled by triggers in the transaction that changes a trial, so
-- that a tool killed before it recomputes leaves a note instead of a stale answer.
CREATE TABLE winner_due (
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL,
  PRIMARY KEY (problem_id, device_id, regime)
) WITHOUT ROWID;

-- Trials per outcome, kept by triggers: counting a million rows would take longer than `best` may.
CREATE TABLE outcome_count (
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL,                  -- '' where timing was not reached
  outcome    TEXT NOT NULL,
  trials     INTEGER NOT NULL,
  PRIMARY KEY (problem_id, device_id, regime, outcome)
) WITHOUT ROWID;

-- Trials that may be ranked by time: validated, measured, and not overtaken by a later trial of the same configuration
-- with another kernel (the template or compiler changed) or by a later wrong result.
CREATE VIEW rankable AS
SELECT t.* FROM trial t
WHERE t.outcome = 'ok' AND t.median_us IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM trial newer
    WHERE newer.problem_id = t.problem_id AND newer.device_id = t.device_id AND newer.config_id = t.config_id
      AND newer.arch = t.arch AND newer.id > t.id AND newer.outcome <> 'compiled'
      AND ifnull(newer.regime, t.regime) = t.regime
      AND (newer.kernel_id IS NOT t.kernel_id OR newer.outcome = 'wrong_result'));

-- Every trial in the words of the command line, with its rates where it has a measured time.
CREATE VIEW trial_rates AS
SELECT t.id AS trial_id, p.class, p.m, p.n, p.k, c.family, t.arch, c.text AS config, d.name AS device, t.regime,
       t.protocol, t.warm, t.outcome, t.validated_by, t.median_us, t.predicted_us,
       p.flop / t.median_us / 1e6 AS tflops,
       p.compulsory_bytes / t.median_us / 1e3 AS compulsory_gb_per_s
FROM trial t JOIN problem p ON p.id = t.problem_id JOIN config c ON c.id = t.config_id
             JOIN device d ON d.id = t.device_id;

-- A time is the median of stored samples from a real device: never inserted, never a prediction.
CREATE TRIGGER trial_inserted_without_time BEFORE INSERT ON trial WHEN NEW.median_us IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'median_us is derived from samples: insert the trial first'); END;

CREATE TRIGGER trial_time_needs_samples BEFORE UPDATE OF median_us ON trial
WHEN NEW.median_us IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sample WHERE trial_id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'median_us without samples'); END;

CREATE TRIGGER trial_time_needs_gpu BEFORE UPDATE OF median_us ON trial
WHEN NEW.median_us IS NOT NULL AND (SELECT name FROM device WHERE id = NEW.device_id) IN ('emulator', 'none')
BEGIN SELECT RAISE(ABORT, 'a measured time needs a GPU'); END;

CREATE TRIGGER winner_inserted BEFORE INSERT ON winner
WHEN NOT EXISTS (SELECT 1 FROM trial t WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND json_array_length(t.validation) > 0 AND t.median_us IS NOT NULL
                   AND t.problem_id = NEW.problem_id AND t.device_id = NEW.device_id AND t.regime = NEW.regime)
BEGIN SELECT RAISE(ABORT, 'a winner needs an ok, validated, measured trial of its problem, device and regime'); END;

CREATE TRIGGER winner_updated BEFORE UPDATE ON winner
WHEN NOT EXISTS (SELECT 1 FROM trial t WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND json_array_length(t.validation) > 0 AND t.median_us IS NOT NULL
                   AND t.problem_id = NEW.problem_id AND t.device_id = NEW.device_id AND t.regime = NEW.regime)
BEGIN SELECT RAISE(ABORT, 'a winner needs an ok, validated, measured trial of its problem, device and regime'); END;

CREATE TRIGGER winner_tie_inserted BEFORE INSERT ON winner_tie
WHEN NOT EXISTS (SELECT 1 FROM trial t JOIN winner w ON w.id = NEW.winner_id
                 WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND t.median_us IS NOT NULL AND t.problem_id = w.problem_id AND t.device_id = w.device_id
                   AND t.regime = w.regime)
BEGIN SELECT RAISE(ABORT, 'a tie needs an ok, validated, measured trial of the winner''s problem, device, regime'); END;

-- A trial that loses its standing (a later validation fails) takes its crown along.
CREATE TRIGGER trial_dethroned AFTER UPDATE OF outcome, validated_by, validation, median_us ON trial
WHEN NEW.outcome <> 'ok' OR NEW.validated_by = 'none' OR json_array_length(NEW.validation) = 0
  OR NEW.median_us IS NULL
BEGIN
  DELETE FROM winner WHERE trial_id = NEW.id;
  DELETE FROM winner_tie WHERE trial_id = NEW.id;
END;

-- Inserting an untimed failure can overtake an older trial (view rankable), in any regime that has a winner.
CREATE TRIGGER winner_due_insert AFTER INSERT ON trial WHEN NEW.outcome <> 'compiled'
BEGIN
  INSERT OR IGNORE INTO winner_due
    SELECT problem_id, device_id, regime FROM winner
    WHERE problem_id = NEW.problem_id AND device_id = NEW.device_id AND regime = ifnull(NEW.regime, regime);
END;
CREATE TRIGGER winner_due_update AFTER UPDATE OF outcome, validated_by, validation, median_us ON trial
WHEN NEW.regime IS NOT NULL
BEGIN INSERT OR IGNORE INTO winner_due VALUES (NEW.problem_id, NEW.device_id, NEW.regime); END;
CREATE TRIGGER winner_due_delete AFTER DELETE ON trial WHEN OLD.median_us IS NOT NULL
BEGIN INSERT OR IGNORE INTO winner_due VALUES (OLD.problem_id, OLD.device_id, OLD.regime); END;

CREATE TRIGGER outcome_count_insert AFTER INSERT ON trial
BEGIN
  INSERT INTO outcome_count VALUES (NEW.problem_id, NEW.device_id, ifnull(NEW.regime, ''), NEW.outcome, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;
CREATE TRIGGER outcome_count_delete AFTER DELETE ON trial
BEGIN
  UPDATE outcome_count SET trials = trials - 1
    WHERE problem_id = OLD.problem_id AND device_id = OLD.device_id AND regime = ifnull(OLD.regime, '')
      AND outcome = OLD.outcome;
END;
CREATE TRIGGER outcome_count_update AFTER UPDATE OF outcome ON trial WHEN NEW.outcome <> OLD.outcome
BEGIN
  UPDATE outcome_count SET trials = trials - 1
    WHERE problem_id = OLD.problem_id AND device_id = OLD.device_id AND regime = ifnull(OLD.regime, '')
      AND outcome = OLD.outcome;
  INSERT INTO outcome_count VALUES (NEW.problem_id, NEW.device_id, ifnull(NEW.regime, ''), NEW.outcome, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;
