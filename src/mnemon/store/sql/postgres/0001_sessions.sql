CREATE TABLE api_keys (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT NOT NULL,
  name TEXT NOT NULL UNIQUE,
  hash BYTEA NOT NULL UNIQUE,
  requests_per_minute BIGINT,
  concurrency BIGINT,
  created_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION
);

CREATE TABLE scopes (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  passages BIGINT NOT NULL DEFAULT 0,
  UNIQUE (tenant, kind, name)
);

CREATE TABLE lineages (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  tip TEXT NOT NULL,
  scope BIGINT NOT NULL REFERENCES scopes (id),
  session_key TEXT,
  system_prompt TEXT,
  next_position BIGINT NOT NULL DEFAULT 1,
  compacted_to BIGINT NOT NULL DEFAULT 0,
  state TEXT NOT NULL DEFAULT '[]',
  chain BYTEA NOT NULL DEFAULT '',
  branches BIGINT NOT NULL DEFAULT 0,
  last_active DOUBLE PRECISION NOT NULL,
  UNIQUE (tenant, root)
);
CREATE INDEX lineages_by_activity ON lineages (tenant, last_active DESC);
CREATE INDEX lineages_by_key ON lineages (tenant, session_key, last_active DESC);
CREATE INDEX lineages_by_scope ON lineages (scope);

CREATE TABLE sessions (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
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
  started_at DOUBLE PRECISION NOT NULL,
  ended_at DOUBLE PRECISION,
  end_reason TEXT,
  message_count BIGINT NOT NULL DEFAULT 0,
  tool_call_count BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cache_read_tokens BIGINT NOT NULL DEFAULT 0,
  reasoning_tokens BIGINT NOT NULL DEFAULT 0,
  api_call_count BIGINT NOT NULL DEFAULT 0,
  preview TEXT,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_by_lineage ON sessions (lineage);
CREATE INDEX sessions_by_parent ON sessions (tenant, parent_id);

CREATE TABLE channels (
  tenant TEXT NOT NULL,
  session_key TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  PRIMARY KEY (tenant, session_key)
);
CREATE INDEX channels_by_lineage ON channels (lineage);

CREATE TABLE messages (
  tenant TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  branch BIGINT NOT NULL DEFAULT 0,
  session_id TEXT NOT NULL,
  role TEXT NOT NULL,
  body TEXT NOT NULL,
  tokens BIGINT,
  counted_by TEXT,
  digest BYTEA NOT NULL,
  chain BYTEA NOT NULL,
  finish_reason TEXT,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (lineage, position)
);

CREATE TABLE branches (
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  start BIGINT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (lineage, number)
);

CREATE TABLE compactions (
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  upto BIGINT NOT NULL,
  state TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (lineage, upto)
);

CREATE TABLE passages (
  scope BIGINT NOT NULL REFERENCES scopes (id),
  number BIGINT NOT NULL,
  tenant TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  start BIGINT NOT NULL,
  length BIGINT NOT NULL,
  words TEXT NOT NULL,
  PRIMARY KEY (scope, number)
);
CREATE INDEX passages_by_lineage ON passages (lineage);

CREATE TABLE leases (
  tenant TEXT NOT NULL,
  name TEXT NOT NULL,
  owner BIGINT NOT NULL,
  token TEXT NOT NULL,
  PRIMARY KEY (tenant, name)
);

CREATE TABLE idempotency (
  slot BYTEA PRIMARY KEY,
  tenant TEXT NOT NULL,
  lineage BIGINT REFERENCES lineages (id) ON DELETE CASCADE,
  fingerprint BYTEA NOT NULL,
  owner BIGINT,
  headers TEXT,
  body BYTEA,
  at DOUBLE PRECISION NOT NULL
);
CREATE INDEX idempotency_by_age ON idempotency (at);
CREATE INDEX idempotency_by_lineage ON idempotency (lineage);

CREATE TABLE frames (
  slot BYTEA NOT NULL REFERENCES idempotency (slot) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  data BYTEA NOT NULL,
  PRIMARY KEY (slot, number)
);

CREATE TABLE receipts (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  body TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX receipts_by_lineage ON receipts (lineage);
