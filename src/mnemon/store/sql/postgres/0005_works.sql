-- What clients ask for by a name of its own: responses and runs.
CREATE TABLE works (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  owner BIGINT,
  stopping BOOLEAN NOT NULL DEFAULT FALSE,
  session_id TEXT,
  lineage BIGINT REFERENCES lineages (id) ON DELETE CASCADE,
  first BIGINT,
  last BIGINT,
  chain BYTEA,
  body TEXT NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  updated_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (tenant, id)
);
CREATE INDEX works_by_lineage ON works (lineage);
CREATE INDEX works_under_way ON works (owner) WHERE owner IS NOT NULL;
CREATE INDEX works_by_age ON works (kind, updated_at);

-- One log for the frames of every stream. What was in the old one belonged to requests in flight.
DROP TABLE frames;
CREATE TABLE frames (
  stream BYTEA NOT NULL,
  number BIGINT NOT NULL,
  data BYTEA NOT NULL,
  at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (stream, number)
);
CREATE INDEX frames_by_age ON frames (at);
