-- Scheduled prompts, and every time that they were due.
CREATE TABLE jobs (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  body TEXT NOT NULL,
  state TEXT NOT NULL,
  enabled INTEGER NOT NULL,
  next_run_at REAL,
  times INTEGER,
  completed INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0,
  paused_at REAL,
  paused_reason TEXT,
  last_run_at REAL,
  last_status TEXT,
  last_error TEXT,
  last_delivery_error TEXT,
  created_at REAL NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_due ON jobs (next_run_at) WHERE next_run_at IS NOT NULL;

CREATE TABLE occurrences (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  planned REAL,
  at REAL NOT NULL,
  status TEXT NOT NULL,
  owner INTEGER,
  token INTEGER NOT NULL DEFAULT 0,
  deaths INTEGER NOT NULL DEFAULT 0,
  claimed_at REAL,
  started_at REAL,
  finished_at REAL,
  session_id TEXT,
  lineage INTEGER,
  first INTEGER,
  last INTEGER,
  receipt TEXT,
  usage TEXT,
  error TEXT,
  delivery TEXT NOT NULL DEFAULT '',
  delivery_at REAL,
  deliveries TEXT NOT NULL DEFAULT '[]',
  PRIMARY KEY (tenant, id),
  UNIQUE (tenant, job, planned),
  FOREIGN KEY (tenant, job) REFERENCES jobs (tenant, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX occurrences_of_job ON occurrences (tenant, job, at);
CREATE INDEX occurrences_waiting ON occurrences (at) WHERE status = 'queued';
CREATE INDEX occurrences_open ON occurrences (tenant, job) WHERE finished_at IS NULL;
CREATE INDEX occurrences_to_deliver ON occurrences (delivery_at) WHERE delivery_at IS NOT NULL;

-- Whose words a message holds: a job's prompt is not what a user said.
ALTER TABLE messages ADD COLUMN origin TEXT NOT NULL DEFAULT '';
