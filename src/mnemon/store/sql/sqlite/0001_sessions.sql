CREATE TABLE api_keys (
  id INTEGER PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE,
  hash BLOB NOT NULL UNIQUE,
  requests_per_minute INTEGER,
  concurrency INTEGER,
  created_at REAL NOT NULL,
  revoked_at REAL
) STRICT;

CREATE TABLE scopes (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  passages INTEGER NOT NULL DEFAULT 0,
  UNIQUE (tenant, kind, name)
) STRICT;

CREATE TABLE lineages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  tip TEXT NOT NULL,
  scope INTEGER NOT NULL REFERENCES scopes (id),
  session_key TEXT,
  system_prompt TEXT,
  next_position INTEGER NOT NULL DEFAULT 1,
  compacted_to INTEGER NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT '[]',
  chain BLOB NOT NULL DEFAULT x'',
  branches INTEGER NOT NULL DEFAULT 0,
  last_active REAL NOT NULL,
  UNIQUE (tenant, root)
) STRICT;
CREATE INDEX lineages_by_activity ON lineages (tenant, last_active DESC);
CREATE INDEX lineages_by_key ON lineages (tenant, session_key, last_active DESC);
CREATE INDEX lineages_by_scope ON lineages (scope);

CREATE TABLE sessions (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  parent_id TEXT,
  source TEXT NOT NULL,
  title TEXT,
  model TEXT,
  user_id TEXT,
  user_name TEXT,
  chat_id TEXT,
  chat_name TEXT,
  chat_type TEXT,
  thread_id TEXT,
  started_at REAL NOT NULL,
  ended_at REAL,
  end_reason TEXT,
  message_count INTEGER NOT NULL DEFAULT 0,
  tool_call_count INTEGER NOT NULL DEFAULT 0,
  input_tokens INTEGER NOT NULL DEFAULT 0,
  output_tokens INTEGER NOT NULL DEFAULT 0,
  cache_read_tokens INTEGER NOT NULL DEFAULT 0,
  reasoning_tokens INTEGER NOT NULL DEFAULT 0,
  api_call_count INTEGER NOT NULL DEFAULT 0,
  preview TEXT,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_lineage ON sessions (lineage);
CREATE INDEX sessions_by_parent ON sessions (tenant, parent_id);

CREATE TABLE channels (
  tenant TEXT NOT NULL,
  session_key TEXT NOT NULL,
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  PRIMARY KEY (tenant, session_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX channels_by_lineage ON channels (lineage);

CREATE TABLE messages (
  tenant TEXT NOT NULL,
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  branch INTEGER NOT NULL DEFAULT 0,
  session_id TEXT NOT NULL,
  role TEXT NOT NULL,
  body TEXT NOT NULL,
  tokens INTEGER,
  counted_by TEXT,
  digest BLOB NOT NULL,
  chain BLOB NOT NULL,
  finish_reason TEXT,
  at REAL NOT NULL,
  PRIMARY KEY (lineage, position)
) STRICT;

CREATE TABLE branches (
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  start INTEGER NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (lineage, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE compactions (
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  upto INTEGER NOT NULL,
  state TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (lineage, upto)
) STRICT, WITHOUT ROWID;

CREATE TABLE passages (
  scope INTEGER NOT NULL REFERENCES scopes (id),
  number INTEGER NOT NULL,
  tenant TEXT NOT NULL,
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  start INTEGER NOT NULL,
  length INTEGER NOT NULL,
  words TEXT NOT NULL,
  PRIMARY KEY (scope, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX passages_by_lineage ON passages (lineage);

CREATE TABLE leases (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  owner INTEGER NOT NULL,
  token TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  slot BLOB PRIMARY KEY,
  tenant TEXT NOT NULL,
  lineage INTEGER REFERENCES lineages (id) ON DELETE CASCADE,
  fingerprint BLOB NOT NULL,
  owner INTEGER,
  headers TEXT,
  body BLOB,
  at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency (at);
CREATE INDEX idempotency_by_lineage ON idempotency (lineage);

CREATE TABLE frames (
  slot BLOB NOT NULL REFERENCES idempotency (slot) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (slot, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  lineage INTEGER NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  body TEXT NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_lineage ON receipts (lineage);
