-- What a client says about a conversation: a JSON object.
ALTER TABLE lineages ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
