-- A term's memories by their numbers, with no look at the memory for each of its terms.
CREATE INDEX memories_by_number ON memories (scope, number, state);

ALTER TABLE memory_terms DROP COLUMN memory;
ALTER TABLE memory_terms ADD PRIMARY KEY (scope, term, number);
CREATE INDEX memory_terms_by_number ON memory_terms (scope, number);

CREATE OR REPLACE FUNCTION memories_forget_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM memory_terms WHERE scope = OLD.scope AND number = OLD.number;
  RETURN NULL;
END
$$;
CREATE TRIGGER memories_forget_terms AFTER DELETE ON memories FOR EACH ROW EXECUTE FUNCTION memories_forget_terms();
