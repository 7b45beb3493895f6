-- Rows as the schema 0001 holds them: one lineage of two sessions under a key, one without, old branches, and all that hangs on them.
-- {blob:…} is a byte string in hexadecimal, written by the test in each dialect's own way.

INSERT INTO api_keys (tenant, name, hash, requests_per_minute, concurrency, created_at, revoked_at) VALUES
  ('acme', 'acme', {blob:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}, 60, 4, 1767225600.5, NULL),
  ('acme', 'old ☕', {blob:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752}, NULL, NULL, 1767225601, 1767225700);

INSERT INTO scopes (tenant, kind, name, passages) VALUES ('acme', 'key', 'agent:主:dm', 3), ('acme', 'lineage', 'alone', 1);

INSERT INTO lineages (tenant, root, tip, scope, session_key, system_prompt, next_position, compacted_to, state, chain, branches, last_active) VALUES
  ('acme', 'repo:acme/backend', 'sess_child', 1, 'agent:主:dm', 'Be brief.', 6, 2,
   '[{"position":1,"role":"user","at":1767225600.0,"kind":"fact","text":"My name is Alex.","score":1.7}]', {blob:05050505}, 1, 1767225900.25),
  ('acme', 'alone', 'alone', 2, NULL, NULL, 2, 0, '[]', {blob:06060606}, 0, 1767225800);

INSERT INTO sessions (tenant, id, lineage, parent_id, source, title, model, user_id, user_name, chat_id, chat_name, chat_type, thread_id,
                      started_at, ended_at, end_reason, message_count, tool_call_count, input_tokens, output_tokens, cache_read_tokens,
                      reasoning_tokens, api_call_count, preview) VALUES
  ('acme', 'repo:acme/backend', 1, NULL, 'api', 'Backend', 'mnemon', '42', 'Zoë', 'c1', 'general', 'group', 't1',
   1767225600, 1767225700, 'compression', 4, 1, 100, 50, 10, 5, 2, 'My name is Alex.'),
  ('acme', 'sess_child', 1, 'repo:acme/backend', 'api', NULL, 'mnemon', NULL, NULL, NULL, NULL, NULL, NULL,
   1767225700, NULL, NULL, 1, 0, 20, 10, 0, 0, 1, NULL),
  ('acme', 'alone', 2, NULL, 'cli', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1767225800, NULL, NULL, 1, 0, 0, 0, 0, 0, 0, NULL);

INSERT INTO channels (tenant, session_key, lineage) VALUES ('acme', 'agent:主:dm', 1);

INSERT INTO messages (tenant, lineage, position, branch, session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at) VALUES
  ('acme', 1, 1, 0, 'repo:acme/backend', 'user', '{"role":"user","content":"My name is Alex."}', 9, 'cl100k_base', {blob:01}, {blob:01}, NULL, 1767225600),
  ('acme', 1, 2, 0, 'repo:acme/backend', 'assistant', '{"role":"assistant","content":"Hello \u0000 Alex ☕"}', 9, NULL, {blob:02}, {blob:02}, 'stop', 1767225601),
  ('acme', 1, 3, 1, 'repo:acme/backend', 'user', '{"role":"user","content":"edited away"}', NULL, NULL, {blob:03}, {blob:03}, NULL, 1767225602),
  ('acme', 1, 4, 0, 'repo:acme/backend', 'user', '{"role":"user","content":"We use Rust."}', 8, NULL, {blob:04}, {blob:04}, NULL, 1767225650),
  ('acme', 1, 5, 0, 'sess_child', 'assistant', '{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}',
   20, NULL, {blob:05}, {blob:05050505}, 'tool_calls', 1767225900.25),
  ('acme', 2, 1, 0, 'alone', 'user', '{"role":"user","content":"The zebra is mine."}', NULL, NULL, {blob:06}, {blob:06060606}, NULL, 1767225800);

INSERT INTO branches (lineage, number, start, at) VALUES (1, 1, 3, 1767225650);

INSERT INTO compactions (lineage, upto, state, at) VALUES
  (1, 2, '[{"position":1,"role":"user","at":1767225600.0,"kind":"fact","text":"My name is Alex.","score":1.7}]', 1767225700);

INSERT INTO passages (scope, number, tenant, lineage, position, start, length, words) VALUES
  (1, 1, 'acme', 1, 1, 0, 16, 'name alex'), (1, 2, 'acme', 1, 2, 0, 14, 'hello alex'), (1, 3, 'acme', 1, 4, 0, 12, 'use rust'),
  (2, 1, 'acme', 2, 1, 0, 18, 'zebra mine');

INSERT INTO leases (tenant, name, owner, token) VALUES ('acme', 'alone', 12345, 'turn_of_a_dead_process');

INSERT INTO idempotency (slot, tenant, lineage, fingerprint, owner, headers, body, at) VALUES
  ({blob:aa}, 'acme', 1, {blob:bb}, NULL, '{"session_id":"sess_child"}', {blob:00ff00}, 1767225900),
  ({blob:ab}, 'acme', NULL, {blob:bb}, 12345, NULL, NULL, 1767225900);

INSERT INTO frames (slot, number, data) VALUES ({blob:ab}, 1, {blob:646174613a20310a0a});

INSERT INTO receipts (tenant, id, lineage, body, at) VALUES
  ('acme', 'rcpt_1', 1, '{"id":"rcpt_1","prompt":{"recalled":[{"score":1.0,"evidence":{"session_id":"repo:acme/backend","position":1,"start":11,"length":4}}]}}',
   1767225900);
