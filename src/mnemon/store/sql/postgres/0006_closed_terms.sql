-- Replies repeat what users said. What of it does not hold any more is found by its terms, without a look at what holds.
ALTER TABLE memory_terms ADD COLUMN closed BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE memory_terms SET closed = TRUE
WHERE EXISTS (SELECT 1 FROM memories m WHERE m.tenant = memory_terms.tenant AND m.id = memory_terms.memory AND m.state <> 'active');
CREATE INDEX memory_terms_closed ON memory_terms (scope, term) WHERE closed;
