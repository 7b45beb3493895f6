ALTER TABLE passages ADD COLUMN vector BYTEA;

-- Replies are marked among their words from now on.
UPDATE passages SET words = words || ' !reply'
WHERE EXISTS (SELECT 1 FROM messages m WHERE m.lineage = passages.lineage AND m.position = passages.position AND m.role <> 'user');
