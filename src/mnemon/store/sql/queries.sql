-- Every statement, by name. `@sqlite` or `@postgres` behind a name marks a wording that only one of them understands.
-- Parameters are written :name. Tenant and scope are part of every look-up; the repositories add them, never their callers.

-- API keys ------------------------------------------------------------------------------------------------------------

-- name: keys_all
SELECT id, tenant, name, hash, requests_per_minute, concurrency, created_at, revoked_at FROM api_keys ORDER BY id;

-- name: keys_add
INSERT INTO api_keys (tenant, name, hash, requests_per_minute, concurrency, created_at)
VALUES (:tenant, :name, :hash, :requests_per_minute, :concurrency, :at)
ON CONFLICT DO NOTHING;

-- name: keys_revoke
UPDATE api_keys SET revoked_at = :at WHERE name = :name AND revoked_at IS NULL;

-- Leases --------------------------------------------------------------------------------------------------------------

-- name: leases_take
INSERT INTO leases (tenant, name, owner, token) VALUES (:tenant, :name, :owner, :token) ON CONFLICT DO NOTHING;

-- name: leases_find @sqlite
SELECT owner, token FROM leases WHERE tenant = :tenant AND name = :name;

-- name: leases_find @postgres
SELECT owner, token FROM leases WHERE tenant = :tenant AND name = :name FOR UPDATE;

-- name: leases_steal
UPDATE leases SET owner = :owner, token = :token WHERE tenant = :tenant AND name = :name AND token = :old;

-- name: leases_drop
DELETE FROM leases WHERE tenant = :tenant AND name = :name AND token = :token;

-- Idempotency ---------------------------------------------------------------------------------------------------------

-- name: idempotency_find
SELECT fingerprint, owner, headers, body, at FROM idempotency WHERE slot = :slot;

-- name: idempotency_begin
INSERT INTO idempotency (slot, tenant, fingerprint, owner, at) VALUES (:slot, :tenant, :fingerprint, :owner, :at)
ON CONFLICT DO NOTHING;

-- name: idempotency_finish
INSERT INTO idempotency (slot, tenant, lineage, fingerprint, headers, body, at)
VALUES (:slot, :tenant, :lineage, :fingerprint, :headers, :body, :at)
ON CONFLICT (slot) DO UPDATE SET owner = NULL, lineage = excluded.lineage, headers = excluded.headers, body = excluded.body;

-- name: idempotency_drop
DELETE FROM idempotency WHERE slot = :slot;

-- name: idempotency_drop_unfinished
DELETE FROM idempotency WHERE slot = :slot AND owner = :owner;

-- name: idempotency_expire
DELETE FROM idempotency WHERE at < :before;

-- name: frames_add
INSERT INTO frames (slot, number, data) VALUES (:slot, :number, :data);

-- name: frames_after
SELECT number, data FROM frames WHERE slot = :slot AND number >= :number ORDER BY number;

-- name: frames_drop
DELETE FROM frames WHERE slot = :slot;

-- Scopes and channels -------------------------------------------------------------------------------------------------

-- name: scopes_find
SELECT id, passages FROM scopes WHERE tenant = :tenant AND kind = :kind AND name = :name;

-- name: scopes_add
INSERT INTO scopes (tenant, kind, name) VALUES (:tenant, :kind, :name)
ON CONFLICT (tenant, kind, name) DO UPDATE SET name = excluded.name RETURNING id, passages;

-- name: scopes_grow
UPDATE scopes SET passages = passages + :more WHERE id = :scope AND tenant = :tenant RETURNING passages;

-- name: scopes_drop
DELETE FROM scopes WHERE id = :scope AND tenant = :tenant AND kind = 'lineage';

-- name: scopes_busy
SELECT 1 AS yes FROM lineages WHERE scope = :scope AND tenant = :tenant AND id <> :lineage LIMIT 1;

-- name: channels_find
SELECT l.root FROM channels c JOIN lineages l ON l.id = c.lineage WHERE c.tenant = :tenant AND c.session_key = :session_key;

-- name: channels_set
INSERT INTO channels (tenant, session_key, lineage) VALUES (:tenant, :session_key, :lineage)
ON CONFLICT (tenant, session_key) DO UPDATE SET lineage = excluded.lineage;

-- name: channels_begin
INSERT INTO channels (tenant, session_key, lineage) VALUES (:tenant, :session_key, :lineage) ON CONFLICT DO NOTHING;

-- Lineages and sessions -----------------------------------------------------------------------------------------------

-- name: lineages_find
SELECT l.id, l.root, l.tip, l.scope, l.session_key, l.system_prompt, l.next_position, l.compacted_to, l.state, l.chain, l.branches,
       t.parent_id AS parent, c.passages AS scope_size
FROM sessions s JOIN lineages l ON l.id = s.lineage JOIN sessions t ON t.tenant = l.tenant AND t.id = l.tip JOIN scopes c ON c.id = l.scope
WHERE s.tenant = :tenant AND s.id = :id;

-- name: lineages_root
SELECT l.root FROM sessions s JOIN lineages l ON l.id = s.lineage WHERE s.tenant = :tenant AND s.id = :id;

-- name: lineages_hold @sqlite
SELECT id FROM lineages WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_hold @postgres
SELECT id FROM lineages WHERE id = :lineage AND tenant = :tenant FOR UPDATE;

-- name: lineages_add
INSERT INTO lineages (tenant, root, tip, scope, session_key, system_prompt, last_active)
VALUES (:tenant, :root, :root, :scope, :session_key, :system_prompt, :at) RETURNING id;

-- name: lineages_advance
UPDATE lineages SET next_position = :next_position, chain = :chain, last_active = :at WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_compact
UPDATE lineages SET tip = :tip, compacted_to = :upto, state = :state WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_rewind
UPDATE lineages SET compacted_to = :upto, state = :state, branches = branches + 1 WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_branch
UPDATE lineages SET branches = branches + 1 WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_bind
UPDATE lineages SET session_key = :session_key, scope = :scope WHERE id = :lineage AND tenant = :tenant AND session_key IS NULL;

-- name: lineages_restore
UPDATE lineages SET compacted_to = :upto, state = :state, next_position = :next_position, chain = :chain
WHERE id = :lineage AND tenant = :tenant;

-- name: lineages_drop
DELETE FROM lineages WHERE id = :lineage AND tenant = :tenant;

-- name: sessions_add
INSERT INTO sessions (tenant, id, lineage, parent_id, source, title, model, user_id, user_name, chat_id, chat_name, chat_type, thread_id,
                      started_at)
VALUES (:tenant, :id, :lineage, :parent_id, :source, :title, :model, :user_id, :user_name, :chat_id, :chat_name, :chat_type, :thread_id,
        :at)
ON CONFLICT DO NOTHING;

-- name: sessions_continue
INSERT INTO sessions (tenant, id, lineage, parent_id, source, title, model, user_id, user_name, chat_id, chat_name, chat_type, thread_id,
                      started_at)
SELECT tenant, :id, lineage, id, source, title, model, user_id, user_name, chat_id, chat_name, chat_type, thread_id, :at
FROM sessions WHERE tenant = :tenant AND id = :parent_id;

-- name: sessions_end
UPDATE sessions SET ended_at = :at, end_reason = :end_reason WHERE tenant = :tenant AND id = :id;

-- name: sessions_count
UPDATE sessions SET
  message_count = message_count + :messages, tool_call_count = tool_call_count + :tool_calls,
  input_tokens = input_tokens + :input_tokens, output_tokens = output_tokens + :output_tokens,
  cache_read_tokens = cache_read_tokens + :cache_read_tokens, reasoning_tokens = reasoning_tokens + :reasoning_tokens,
  api_call_count = api_call_count + :calls, model = COALESCE(:model, model), preview = COALESCE(preview, :preview)
WHERE tenant = :tenant AND id = :id;

-- name: sessions_identify
UPDATE sessions SET
  user_id = COALESCE(:user_id, user_id), user_name = COALESCE(:user_name, user_name), chat_id = COALESCE(:chat_id, chat_id),
  chat_name = COALESCE(:chat_name, chat_name), chat_type = COALESCE(:chat_type, chat_type), thread_id = COALESCE(:thread_id, thread_id)
WHERE tenant = :tenant AND id = :id;

-- name: sessions_get
SELECT s.*, l.session_key, l.root, l.tip, l.branches, l.last_active, l.system_prompt IS NOT NULL AS has_system_prompt
FROM sessions s JOIN lineages l ON l.id = s.lineage WHERE s.tenant = :tenant AND s.id = :id;

-- name: sessions_list
SELECT s.*, l.session_key, l.root, l.tip, l.branches, l.last_active, l.system_prompt IS NOT NULL AS has_system_prompt,
       r.preview AS root_preview, r.started_at AS root_started_at,
       (SELECT sum(x.message_count) FROM sessions x WHERE x.lineage = l.id) AS messages_in_all
FROM lineages l JOIN sessions s ON s.tenant = l.tenant AND s.id = l.tip JOIN sessions r ON r.tenant = l.tenant AND r.id = l.root
WHERE l.tenant = :tenant AND (:source = '' OR s.source = :source) AND (:session_key = '' OR l.session_key = :session_key)
ORDER BY l.last_active DESC, l.id DESC LIMIT :limit OFFSET :offset;

-- name: sessions_list_with_children
SELECT s.*, l.session_key, l.root, l.tip, l.branches, l.last_active, l.system_prompt IS NOT NULL AS has_system_prompt,
       s.preview AS root_preview, s.started_at AS root_started_at, s.message_count AS messages_in_all
FROM lineages l JOIN sessions s ON s.lineage = l.id
WHERE l.tenant = :tenant AND (:source = '' OR s.source = :source) AND (:session_key = '' OR l.session_key = :session_key)
ORDER BY l.last_active DESC, s.started_at DESC, s.id LIMIT :limit OFFSET :offset;

-- name: sessions_rename
UPDATE sessions SET title = :title WHERE tenant = :tenant AND id = :id;

-- name: sessions_orphan
UPDATE sessions SET parent_id = NULL
WHERE tenant = :tenant AND lineage <> :lineage
  AND parent_id IN (SELECT id FROM sessions WHERE tenant = :tenant AND lineage = :lineage);

-- Messages ------------------------------------------------------------------------------------------------------------

-- name: messages_add
INSERT INTO messages (tenant, lineage, position, session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at)
VALUES (:tenant, :lineage, :position, :session_id, :role, :body, :tokens, :counted_by, :digest, :chain, :finish_reason, :at);

-- name: messages_live
SELECT position, session_id, body, tokens, counted_by, finish_reason, at FROM messages
WHERE lineage = :lineage AND branch = 0 AND position > :after AND tenant = :tenant ORDER BY position;

-- name: messages_page
SELECT position, session_id, body, tokens, counted_by, finish_reason, at FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position LIMIT :limit OFFSET :offset;

-- name: messages_page_latest
SELECT position, session_id, body, tokens, counted_by, finish_reason, at FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position DESC LIMIT :limit OFFSET :offset;

-- name: messages_page_branch
SELECT m.position, m.session_id, m.body, m.tokens, m.counted_by, m.finish_reason, m.at FROM messages m
JOIN branches b ON b.lineage = m.lineage AND b.number = :branch
WHERE m.lineage = :lineage AND m.tenant = :tenant
  AND (m.branch = b.number OR (m.position < b.start AND (m.branch = 0 OR m.branch > b.number)))
ORDER BY m.position LIMIT :limit OFFSET :offset;

-- name: messages_body
SELECT m.body FROM sessions s JOIN messages m ON m.lineage = s.lineage AND m.position = :position
WHERE s.tenant = :tenant AND s.id = :session_id;

-- name: messages_count
SELECT count(*) AS n FROM messages WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant;

-- name: messages_digests
SELECT position, digest, chain FROM messages WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position;

-- name: messages_archive
UPDATE messages SET branch = :branch WHERE lineage = :lineage AND branch = 0 AND position >= :start AND tenant = :tenant;

-- name: messages_copy
INSERT INTO messages (tenant, lineage, position, session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at)
SELECT tenant, :copy, position, :session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position;

-- name: branches_add
INSERT INTO branches (lineage, number, start, at) VALUES (:lineage, :number, :start, :at);

-- name: compactions_add
INSERT INTO compactions (lineage, upto, state, at) VALUES (:lineage, :upto, :state, :at)
ON CONFLICT (lineage, upto) DO UPDATE SET state = excluded.state, at = excluded.at;

-- name: compactions_before
SELECT upto, state FROM compactions WHERE lineage = :lineage AND upto < :position ORDER BY upto DESC LIMIT 1;

-- name: compactions_drop_from
DELETE FROM compactions WHERE lineage = :lineage AND upto >= :position;

-- name: compactions_copy
INSERT INTO compactions (lineage, upto, state, at) SELECT :copy, upto, state, at FROM compactions WHERE lineage = :lineage;

-- Passages: what can be found again -----------------------------------------------------------------------------------

-- name: passages_add
INSERT INTO passages (scope, number, tenant, lineage, position, start, length, words, vector)
VALUES (:scope, :number, :tenant, :lineage, :position, :start, :length, :words, :vector);

-- name: passages_embed
UPDATE passages SET vector = :vector WHERE scope = :scope AND number = :number AND tenant = :tenant;

-- name: passages_of_lineage
SELECT count(*) AS n FROM passages WHERE lineage = :lineage AND tenant = :tenant;

-- name: passages_move
INSERT INTO passages (scope, number, tenant, lineage, position, start, length, words, vector)
SELECT :scope, :base + row_number() OVER (ORDER BY scope, number), tenant, lineage, position, start, length, words, vector
FROM passages WHERE lineage = :lineage AND tenant = :tenant;

-- name: passages_moved
DELETE FROM passages WHERE scope <> :scope AND tenant = :tenant AND lineage = :lineage;

-- name: passages_copy
INSERT INTO passages (scope, number, tenant, lineage, position, start, length, words, vector)
SELECT :scope, :base + row_number() OVER (ORDER BY p.scope, p.number), p.tenant, :copy, p.position, p.start, p.length, p.words, p.vector
FROM passages p JOIN messages m ON m.lineage = p.lineage AND m.position = p.position
WHERE p.lineage = :lineage AND m.branch = 0 AND p.tenant = :tenant;

-- name: passages_since
SELECT number, words, lineage, position, length, vector FROM passages
WHERE scope = :scope AND tenant = :tenant AND number > :number ORDER BY number LIMIT :limit;

-- name: passages_texts @sqlite
SELECT p.number, p.start, p.length, m.position, m.session_id, m.role, m.body, m.tokens, m.counted_by, m.at
FROM passages p JOIN messages m ON m.lineage = p.lineage AND m.position = p.position
WHERE p.scope = :scope AND p.tenant = :tenant AND m.branch = 0 AND p.number IN (SELECT value FROM json_each(:numbers));

-- name: passages_texts @postgres
SELECT p.number, p.start, p.length, m.position, m.session_id, m.role, m.body, m.tokens, m.counted_by, m.at
FROM passages p JOIN messages m ON m.lineage = p.lineage AND m.position = p.position
WHERE p.scope = :scope AND p.tenant = :tenant AND m.branch = 0
  AND p.number IN (SELECT value::bigint FROM json_array_elements_text(:numbers ::json));

-- Receipts ------------------------------------------------------------------------------------------------------------

-- name: receipts_add
INSERT INTO receipts (tenant, id, lineage, body, at) VALUES (:tenant, :id, :lineage, :body, :at);

-- name: receipts_get
SELECT body, at FROM receipts WHERE tenant = :tenant AND id = :id;
