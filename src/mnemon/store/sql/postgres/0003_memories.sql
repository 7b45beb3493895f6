ALTER TABLE scopes ADD COLUMN memories BIGINT NOT NULL DEFAULT 0;

CREATE TABLE memories (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  scope BIGINT NOT NULL REFERENCES scopes (id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  text TEXT NOT NULL,
  kind TEXT NOT NULL,
  slot TEXT NOT NULL,
  subject TEXT NOT NULL,
  attribute TEXT NOT NULL,
  single BOOLEAN NOT NULL,
  negated BOOLEAN NOT NULL,
  details TEXT NOT NULL,
  origin TEXT NOT NULL,
  rule TEXT NOT NULL,
  version BIGINT NOT NULL,
  valid_from DOUBLE PRECISION NOT NULL,
  valid_to DOUBLE PRECISION,
  recorded_at DOUBLE PRECISION NOT NULL,
  closed_at DOUBLE PRECISION,
  closed_by TEXT,
  closed_rule TEXT,
  happened_start DOUBLE PRECISION,
  happened_end DOUBLE PRECISION,
  grain TEXT,
  pinned BOOLEAN NOT NULL DEFAULT FALSE,
  state TEXT NOT NULL DEFAULT 'active',
  PRIMARY KEY (tenant, id)
);
CREATE INDEX memories_by_age ON memories (scope, recorded_at DESC, number DESC);
CREATE INDEX memories_by_slot ON memories (scope, slot) WHERE slot <> '';
CREATE INDEX memories_by_closer ON memories (scope, closed_by) WHERE closed_by IS NOT NULL;
CREATE INDEX memories_by_kind ON memories (scope, kind, recorded_at DESC, number DESC);
CREATE INDEX memories_by_hand ON memories (scope) WHERE version = 0;
CREATE INDEX memories_pinned ON memories (scope, recorded_at DESC, number DESC) WHERE pinned AND state = 'active';

CREATE TABLE evidence (
  tenant TEXT NOT NULL,
  memory TEXT NOT NULL,
  lineage BIGINT NOT NULL REFERENCES lineages (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  start BIGINT NOT NULL,
  length BIGINT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (tenant, memory, lineage, position, start),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);
CREATE INDEX evidence_by_place ON evidence (lineage, position, start);

CREATE TABLE links (
  tenant TEXT NOT NULL,
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  kind TEXT NOT NULL,
  rule TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (tenant, source, kind, target),
  FOREIGN KEY (tenant, source) REFERENCES memories (tenant, id) ON DELETE CASCADE,
  FOREIGN KEY (tenant, target) REFERENCES memories (tenant, id) ON DELETE CASCADE
);
CREATE INDEX links_by_target ON links (tenant, target, kind);

CREATE TABLE memory_terms (
  scope BIGINT NOT NULL,
  term TEXT NOT NULL,
  memory TEXT NOT NULL,
  number BIGINT NOT NULL,
  tenant TEXT NOT NULL,
  PRIMARY KEY (scope, term, memory),
  FOREIGN KEY (tenant, memory) REFERENCES memories (tenant, id) ON DELETE CASCADE
);
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant, memory);
