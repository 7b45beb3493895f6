-- What left nothing in the transcript goes with its session all the same.
CREATE INDEX works_by_session ON works (tenant, session_id) WHERE lineage IS NULL;
