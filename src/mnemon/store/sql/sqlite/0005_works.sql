-- What clients ask for by a name of its own: responses and runs.
CREATE TABLE works (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  owner INTEGER,
  stopping INTEGER NOT NULL DEFAULT 0,
  session_id TEXT,
  lineage INTEGER REFERENCES lineages (id) ON DELETE CASCADE,
  first INTEGER,
  last INTEGER,
  chain BLOB,
  body TEXT NOT NULL,
  at REAL NOT NULL,
  updated_at REAL NOT NULL,
  PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX works_by_lineage ON works (lineage);
CREATE INDEX works_under_way ON works (owner) WHERE owner IS NOT NULL;
CREATE INDEX works_by_age ON works (kind, updated_at);

-- One log for the frames of every stream. What was in the old one belonged to requests in flight.
DROP TABLE frames;
CREATE TABLE frames (
  stream BLOB NOT NULL,
  number INTEGER NOT NULL,
  data BLOB NOT NULL,
  at REAL NOT NULL,
  PRIMARY KEY (stream, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX frames_by_age ON frames (at);
