-- Cold and warm L2 get winners of their own; samples can be marked; launch-bound rows are known. Tables are copied
-- aside and made anew: a constraint that changes has no other way, and a renamed table would rename itself in every
-- trigger that speaks of it.
ALTER TABLE sample ADD COLUMN mark TEXT NOT NULL DEFAULT '' CHECK (mark IN ('', 'throttled', 'contended'));
ALTER TABLE trial ADD COLUMN graph_us REAL CHECK (graph_us > 0 AND graph_us < 1e12);
ALTER TABLE trial ADD COLUMN launch_bound INTEGER CHECK (launch_bound IS NULL OR (launch_bound IN (0, 1) AND graph_us IS NOT NULL));

DROP TRIGGER winner_inserted;
DROP TRIGGER winner_updated;
DROP TRIGGER winner_tie_inserted;
DROP TRIGGER trial_dethroned;
DROP TRIGGER winner_due_insert;
DROP TRIGGER winner_due_update;
DROP TRIGGER winner_due_delete;
DROP TRIGGER outcome_count_insert;
DROP TRIGGER outcome_count_delete;
DROP TRIGGER outcome_count_update;

CREATE TEMP TABLE old_winner AS
  SELECT w.*, t.warm,
         (SELECT count(*) FROM sample WHERE trial_id = t.id AND final_round) AS final_rounds
  FROM winner w JOIN trial t ON t.id = w.trial_id;
CREATE TEMP TABLE old_tie AS SELECT * FROM winner_tie;
CREATE TEMP TABLE old_due AS SELECT * FROM winner_due;
DROP TABLE winner_tie;
DROP TABLE winner;
DROP TABLE winner_due;
DROP TABLE outcome_count;

CREATE TABLE winner (
  id         INTEGER PRIMARY KEY,
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL CHECK (regime IN ('burst', 'sustained')),
  warm       INTEGER NOT NULL CHECK (warm IN (0, 1)),
  trial_id   INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  ratio_low  REAL,                           -- 95 % interval of (best outside the tie set) / winner; NULL: none
  ratio_high REAL,
  final_rounds INTEGER NOT NULL,             -- counting final samples behind it; 0: the screening alone chose
  evidence   TEXT NOT NULL,
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE (problem_id, device_id, regime, warm),
  CHECK ((ratio_low IS NULL) = (ratio_high IS NULL)),
  CHECK (ratio_low IS NULL OR (ratio_low > 0 AND ratio_low <= ratio_high))
);
CREATE INDEX winner_by_trial ON winner (trial_id);
CREATE INDEX winner_by_device ON winner (device_id);
CREATE TABLE winner_tie (
  winner_id INTEGER NOT NULL REFERENCES winner ON DELETE CASCADE,
  rank      INTEGER NOT NULL,                -- 0 = best median
  trial_id  INTEGER NOT NULL REFERENCES trial ON DELETE CASCADE,
  ratio_low  REAL NOT NULL,                  -- 95 % interval of its time / the winner's
  ratio_high REAL NOT NULL,
  PRIMARY KEY (winner_id, rank),
  UNIQUE (winner_id, trial_id)
) WITHOUT ROWID;
CREATE INDEX winner_tie_by_trial ON winner_tie (trial_id);
CREATE TABLE winner_due (
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL,
  warm       INTEGER NOT NULL,
  PRIMARY KEY (problem_id, device_id, regime, warm)
) WITHOUT ROWID;
CREATE TABLE outcome_count (
  problem_id INTEGER NOT NULL REFERENCES problem,
  device_id  INTEGER NOT NULL REFERENCES device,
  regime     TEXT NOT NULL,                  -- '' where timing was not reached
  warm       INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  trials     INTEGER NOT NULL,
  PRIMARY KEY (problem_id, device_id, regime, warm, outcome)
) WITHOUT ROWID;

INSERT INTO winner (id, problem_id, device_id, regime, warm, trial_id, ratio_low, ratio_high, final_rounds, evidence,
                    updated_at)
  SELECT id, problem_id, device_id, regime, warm, trial_id, ratio_low, ratio_high, final_rounds, evidence, updated_at
  FROM old_winner;
-- Intervals of ties were not kept: until its winner is chosen again a tie is as far off as its median says.
INSERT INTO winner_tie
  SELECT o.winner_id, o.rank, o.trial_id, t.median_us / b.median_us, t.median_us / b.median_us
  FROM old_tie o JOIN winner w ON w.id = o.winner_id JOIN trial t ON t.id = o.trial_id JOIN trial b ON b.id = w.trial_id;
INSERT INTO winner_due SELECT problem_id, device_id, regime, 0 FROM old_due;
INSERT INTO outcome_count
  SELECT problem_id, device_id, ifnull(regime, ''), warm, outcome, count(*) FROM trial GROUP BY 1, 2, 3, 4, 5;
DROP TABLE old_winner;
DROP TABLE old_tie;
DROP TABLE old_due;

CREATE TRIGGER winner_inserted BEFORE INSERT ON winner
WHEN NOT EXISTS (SELECT 1 FROM trial t WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND json_array_length(t.validation) > 0 AND t.median_us IS NOT NULL
                   AND t.problem_id = NEW.problem_id AND t.device_id = NEW.device_id AND t.regime = NEW.regime
                   AND t.warm = NEW.warm)
BEGIN SELECT RAISE(ABORT, 'a winner needs an ok, validated, measured trial of its problem, device and timing'); END;
CREATE TRIGGER winner_updated BEFORE UPDATE ON winner
WHEN NOT EXISTS (SELECT 1 FROM trial t WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND json_array_length(t.validation) > 0 AND t.median_us IS NOT NULL
                   AND t.problem_id = NEW.problem_id AND t.device_id = NEW.device_id AND t.regime = NEW.regime
                   AND t.warm = NEW.warm)
BEGIN SELECT RAISE(ABORT, 'a winner needs an ok, validated, measured trial of its problem, device and timing'); END;
CREATE TRIGGER winner_tie_inserted BEFORE INSERT ON winner_tie
WHEN NOT EXISTS (SELECT 1 FROM trial t JOIN winner w ON w.id = NEW.winner_id
                 WHERE t.id = NEW.trial_id AND t.outcome = 'ok' AND t.validated_by <> 'none'
                   AND t.median_us IS NOT NULL AND t.problem_id = w.problem_id AND t.device_id = w.device_id
                   AND t.regime = w.regime AND t.warm = w.warm)
BEGIN SELECT RAISE(ABORT, 'a tie needs an ok, validated, measured trial of the winner''s problem, device, timing'); END;
CREATE TRIGGER trial_dethroned AFTER UPDATE OF outcome, validated_by, validation, median_us ON trial
WHEN NEW.outcome <> 'ok' OR NEW.validated_by = 'none' OR json_array_length(NEW.validation) = 0
  OR NEW.median_us IS NULL
BEGIN
  DELETE FROM winner WHERE trial_id = NEW.id;
  DELETE FROM winner_tie WHERE trial_id = NEW.id;
END;
CREATE TRIGGER winner_due_insert AFTER INSERT ON trial WHEN NEW.outcome <> 'compiled'
BEGIN
  INSERT OR IGNORE INTO winner_due
    SELECT problem_id, device_id, regime, warm FROM winner
    WHERE problem_id = NEW.problem_id AND device_id = NEW.device_id
      AND (NEW.regime IS NULL OR (regime = NEW.regime AND warm = NEW.warm));
END;
CREATE TRIGGER winner_due_update AFTER UPDATE OF outcome, validated_by, validation, median_us ON trial
WHEN NEW.regime IS NOT NULL
BEGIN INSERT OR IGNORE INTO winner_due VALUES (NEW.problem_id, NEW.device_id, NEW.regime, NEW.warm); END;
CREATE TRIGGER winner_due_delete AFTER DELETE ON trial WHEN OLD.median_us IS NOT NULL
BEGIN INSERT OR IGNORE INTO winner_due VALUES (OLD.problem_id, OLD.device_id, OLD.regime, OLD.warm); END;
CREATE TRIGGER outcome_count_insert AFTER INSERT ON trial
BEGIN
  INSERT INTO outcome_count VALUES (NEW.problem_id, NEW.device_id, ifnull(NEW.regime, ''), NEW.warm, NEW.outcome, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;
CREATE TRIGGER outcome_count_delete AFTER DELETE ON trial
BEGIN
  UPDATE outcome_count SET trials = trials - 1
    WHERE problem_id = OLD.problem_id AND device_id = OLD.device_id AND regime = ifnull(OLD.regime, '')
      AND warm = OLD.warm AND outcome = OLD.outcome;
END;
CREATE TRIGGER outcome_count_update AFTER UPDATE OF outcome ON trial WHEN NEW.outcome <> OLD.outcome
BEGIN
  UPDATE outcome_count SET trials = trials - 1
    WHERE problem_id = OLD.problem_id AND device_id = OLD.device_id AND regime = ifnull(OLD.regime, '')
      AND warm = OLD.warm AND outcome = OLD.outcome;
  INSERT INTO outcome_count VALUES (NEW.problem_id, NEW.device_id, ifnull(NEW.regime, ''), NEW.warm, NEW.outcome, 1)
    ON CONFLICT DO UPDATE SET trials = trials + 1;
END;
