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
SELECT fingerprint, owner, headers, body, at, erased FROM idempotency WHERE slot = :slot;

-- name: idempotency_begin
INSERT INTO idempotency (slot, tenant, fingerprint, owner, at) VALUES (:slot, :tenant, :fingerprint, :owner, :at)
ON CONFLICT DO NOTHING;

-- name: idempotency_finish
INSERT INTO idempotency (slot, tenant, lineage, fingerprint, headers, body, at)
VALUES (:slot, :tenant, :lineage, :fingerprint, :headers, :body, :at)
ON CONFLICT (slot) DO UPDATE SET owner = NULL, lineage = excluded.lineage, headers = excluded.headers, body = excluded.body,
  at = excluded.at;

-- name: idempotency_drop
DELETE FROM idempotency WHERE slot = :slot;

-- name: idempotency_drop_unfinished
DELETE FROM idempotency WHERE slot = :slot AND owner = :owner;

-- name: idempotency_expire
DELETE FROM idempotency WHERE at < :before;

-- The event log: frames of streams ------------------------------------------------------------------------------------

-- name: frames_add
-- A batch whose writing was not known to have succeeded comes again, perhaps with more behind it.
INSERT INTO frames (stream, number, data, at) VALUES (:stream, :number, :data, :at)
ON CONFLICT (stream, number) DO UPDATE SET data = excluded.data, at = excluded.at;

-- name: frames_after
-- A batch bears the number of its first frame: the one before may hold the frame that is asked for.
SELECT number, data FROM frames WHERE stream = :stream
  AND number >= COALESCE((SELECT max(number) FROM frames WHERE stream = :stream AND number <= :number + 1), 0) ORDER BY number;

-- name: frames_news @sqlite
-- What came to many streams since: `wanted` is a list of stream (in hexadecimal) and the number of the last frame known.
SELECT f.stream, f.number, f.data FROM json_each(:wanted) w
JOIN frames f ON f.stream = unhex(w.value ->> 0) AND f.number > (w.value ->> 1) ORDER BY f.stream, f.number;

-- name: frames_news @postgres
SELECT f.stream, f.number, f.data FROM json_array_elements(CAST(:wanted AS json)) w
JOIN frames f ON f.stream = decode(w ->> 0, 'hex') AND f.number > CAST(w ->> 1 AS bigint) ORDER BY f.stream, f.number;

-- name: frames_drop
DELETE FROM frames WHERE stream = :stream;

-- name: frames_expire
DELETE FROM frames WHERE at < :before;

-- Works: responses and runs ---------------------------------------------------------------------------------------------

-- name: works_begin
INSERT INTO works (tenant, id, kind, status, owner, session_id, body, at, updated_at)
VALUES (:tenant, :id, :kind, :status, :owner, :session_id, :body, :at, :at)
ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, owner = excluded.owner, body = excluded.body,
  session_id = COALESCE(excluded.session_id, works.session_id), updated_at = excluded.updated_at;

-- name: works_finish
INSERT INTO works (tenant, id, kind, status, session_id, lineage, first, last, chain, body, at, updated_at)
VALUES (:tenant, :id, :kind, :status, :session_id, :lineage, :first, :last, :chain, :body, :at, :at)
ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, owner = NULL, body = excluded.body,
  session_id = COALESCE(excluded.session_id, works.session_id), lineage = excluded.lineage, first = excluded.first,
  last = excluded.last, chain = excluded.chain, updated_at = excluded.updated_at;

-- name: works_get
SELECT id, kind, status, owner, stopping, steers, session_id, lineage, first, last, chain, body, at, updated_at FROM works
WHERE tenant = :tenant AND id = :id AND kind = :kind;

-- name: works_under_way
SELECT tenant, id, owner, updated_at FROM works WHERE owner IS NOT NULL;

-- name: works_stop
UPDATE works SET stopping = TRUE WHERE tenant = :tenant AND id = :id AND owner IS NOT NULL;

-- name: works_to_stop
SELECT tenant, id FROM works WHERE owner = :owner AND stopping = TRUE;

-- name: works_steer
UPDATE works SET steers = COALESCE(steers, '') || :line
WHERE tenant = :tenant AND id = :id AND owner IS NOT NULL AND status = 'running' AND stopping = FALSE;

-- name: works_steered
SELECT tenant, id, steers FROM works WHERE owner = :owner AND steers IS NOT NULL;

-- name: works_amend
UPDATE works SET body = :body WHERE tenant = :tenant AND id = :id;

-- name: works_delete
DELETE FROM works WHERE tenant = :tenant AND id = :id;

-- name: works_of_lineage
-- One that left nothing in the transcript, since it was stopped or failed, is known by its session.
SELECT id FROM works WHERE tenant = :tenant AND lineage = :lineage
UNION SELECT w.id FROM sessions s JOIN works w ON w.tenant = s.tenant AND w.session_id = s.id
WHERE s.tenant = :tenant AND s.lineage = :lineage AND w.lineage IS NULL;

-- name: works_hush
UPDATE works SET steers = NULL WHERE tenant = :tenant AND id = :id AND owner IS NULL;

-- name: works_owners
SELECT DISTINCT owner FROM works WHERE owner IS NOT NULL;

-- name: works_interrupt
UPDATE works SET status = 'interrupted', owner = NULL, updated_at = :at WHERE owner = :owner;

-- name: works_lost
-- What is under way in a process that knows nothing of it: its end could not be written down.
UPDATE works SET status = 'interrupted', owner = NULL, updated_at = :at WHERE tenant = :tenant AND id = :id AND owner = :owner;

-- name: works_expire
DELETE FROM works WHERE kind = :kind AND owner IS NULL AND updated_at < :before;

-- Scopes and channels -------------------------------------------------------------------------------------------------

-- name: scopes_find
SELECT id, passages, memories, erasures, changes FROM scopes WHERE tenant = :tenant AND kind = :kind AND name = :name;

-- name: scopes_add
INSERT INTO scopes (tenant, kind, name) VALUES (:tenant, :kind, :name)
ON CONFLICT (tenant, kind, name) DO UPDATE SET name = excluded.name RETURNING id, passages, memories;

-- name: scopes_grow
UPDATE scopes SET passages = passages + :more WHERE id = :scope AND tenant = :tenant RETURNING passages;

-- name: scopes_change
UPDATE scopes SET changes = changes + 1 WHERE id = :scope AND tenant = :tenant;

-- name: scopes_change_around
UPDATE scopes SET changes = changes + 1 WHERE id = (SELECT scope FROM lineages WHERE id = :lineage AND tenant = :tenant) AND tenant = :tenant;

-- name: scopes_drop
DELETE FROM scopes WHERE id = :scope AND tenant = :tenant AND kind = 'lineage';

-- name: channels_find
SELECT l.root FROM channels c JOIN lineages l ON l.id = c.lineage WHERE c.tenant = :tenant AND c.session_key = :session_key;

-- name: channels_set
INSERT INTO channels (tenant, session_key, lineage) VALUES (:tenant, :session_key, :lineage)
ON CONFLICT (tenant, session_key) DO UPDATE SET lineage = excluded.lineage;

-- name: channels_begin
INSERT INTO channels (tenant, session_key, lineage) VALUES (:tenant, :session_key, :lineage) ON CONFLICT DO NOTHING;

-- Lineages and sessions -----------------------------------------------------------------------------------------------

-- name: lineages_find
SELECT l.id, l.root, l.tip, l.scope, l.session_key, l.system_prompt, l.next_position, l.compacted_to, l.state, l.chain, l.branches, l.erasures,
       t.parent_id AS parent, c.passages AS scope_size, c.memories AS scope_memories,
       c.erasures AS scope_erasures, c.changes AS scope_changes,
       (l.session_key IS NOT NULL AND EXISTS (SELECT 1 FROM lineages o WHERE o.scope = l.scope AND o.id <> l.id AND o.tenant = l.tenant))
       OR (c.memories > 0 AND EXISTS (SELECT 1 FROM memories m WHERE m.scope = l.scope AND m.version = 0 AND m.tenant = l.tenant)) AS shared
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
VALUES (:tenant, :root, :root, :scope, :session_key, :system_prompt, :at) ON CONFLICT (tenant, root) DO NOTHING RETURNING id;

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

-- name: conversations_get
SELECT l.id, l.root, l.metadata, r.started_at FROM sessions s JOIN lineages l ON l.id = s.lineage
JOIN sessions r ON r.tenant = l.tenant AND r.id = l.root WHERE s.tenant = :tenant AND s.id = :id;

-- name: conversations_describe
UPDATE lineages SET metadata = :metadata, system_prompt = COALESCE(:system_prompt, system_prompt)
WHERE id = :lineage AND tenant = :tenant;

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

-- name: sessions_preview
UPDATE sessions SET preview = :preview WHERE tenant = :tenant AND id = :id;

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
INSERT INTO messages (tenant, lineage, position, session_id, role, body, tokens, counted_by, digest, chain, finish_reason, origin,
  at)
VALUES (:tenant, :lineage, :position, :session_id, :role, :body, :tokens, :counted_by, :digest, :chain, :finish_reason, :origin, :at);

-- name: messages_live
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND position > :after AND position < :before AND tenant = :tenant ORDER BY position;

-- name: messages_between
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND tenant = :tenant AND position BETWEEN :first AND :last ORDER BY position;

-- name: messages_following
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant AND position >= :position ORDER BY position LIMIT :limit;

-- name: messages_backwards
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant AND position <= :position ORDER BY position DESC LIMIT :limit;

-- name: messages_page
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position LIMIT :limit OFFSET :offset;

-- name: messages_page_latest
SELECT position, session_id, body, tokens, counted_by, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND tenant = :tenant ORDER BY position DESC LIMIT :limit OFFSET :offset;

-- name: messages_page_branch
SELECT m.position, m.session_id, m.body, m.tokens, m.counted_by, m.finish_reason, m.at, m.erased, m.origin FROM messages m
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
INSERT INTO messages (tenant, lineage, position, session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at, erased,
  origin)
SELECT tenant, :copy, position, :session_id, role, body, tokens, counted_by, digest, chain, finish_reason, at, erased, origin FROM messages
WHERE lineage = :lineage AND branch = 0 AND position <= :upto AND tenant = :tenant ORDER BY position;

-- name: messages_chain
SELECT chain FROM messages WHERE lineage = :lineage AND branch = 0 AND position = :position AND tenant = :tenant;

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
INSERT INTO compactions (lineage, upto, state, at) SELECT :copy, upto, state, at FROM compactions
WHERE lineage = :lineage AND upto <= :upto;

-- Passages: what can be found again -----------------------------------------------------------------------------------

-- name: passages_add
INSERT INTO passages (scope, number, tenant, lineage, position, start, length, words, vector)
VALUES (:scope, :number, :tenant, :lineage, :position, :start, :length, :words, :vector);

-- name: passages_embed
UPDATE passages SET vector = :vector WHERE scope = :scope AND number = :number AND tenant = :tenant;

-- name: passages_of_lineage
SELECT count(*) AS n FROM passages WHERE lineage = :lineage AND position <= :upto AND tenant = :tenant;

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
WHERE p.lineage = :lineage AND m.branch = 0 AND p.position <= :upto AND p.tenant = :tenant;

-- name: passages_since
SELECT number, words, lineage, position, length, vector FROM passages
WHERE scope = :scope AND tenant = :tenant AND number > :number ORDER BY number LIMIT :limit;

-- name: passages_texts @sqlite
-- With what the whole message states: where, which memory, and whether there is more to say about it (`core.records.Recalled.told`).
SELECT p.number, p.start, p.length, m.position, m.session_id, m.role, m.origin, m.body, m.tokens, m.counted_by, m.at, (
  SELECT json_group_array(json_array(e.start, e.length, n.number, n.id, CASE WHEN n.state <> 'active' OR n.rule = 'change_of_mind'
    OR EXISTS (SELECT 1 FROM links l WHERE l.tenant = n.tenant AND l.source = n.id)
    OR EXISTS (SELECT 1 FROM links l WHERE l.tenant = n.tenant AND l.target = n.id) THEN 2 ELSE n.grain IS NOT NULL END))
  FROM evidence e INDEXED BY evidence_by_place CROSS JOIN memories n ON n.tenant = e.tenant AND n.id = e.memory
  WHERE e.lineage = p.lineage AND e.position = p.position AND n.scope = p.scope AND n.tenant = p.tenant
) AS stated
FROM passages p JOIN messages m ON m.lineage = p.lineage AND m.position = p.position
WHERE p.scope = :scope AND p.tenant = :tenant AND m.branch = 0 AND p.number IN (SELECT value FROM json_each(:numbers));

-- name: passages_texts @postgres
SELECT p.number, p.start, p.length, m.position, m.session_id, m.role, m.origin, m.body, m.tokens, m.counted_by, m.at, (
  SELECT coalesce(json_agg(json_build_array(e.start, e.length, n.number, n.id, CASE WHEN n.state <> 'active' OR n.rule = 'change_of_mind'
    OR EXISTS (SELECT 1 FROM links l WHERE l.tenant = n.tenant AND l.source = n.id)
    OR EXISTS (SELECT 1 FROM links l WHERE l.tenant = n.tenant AND l.target = n.id) THEN 2 WHEN n.grain IS NOT NULL THEN 1 ELSE 0 END)), '[]')::text
  FROM evidence e JOIN memories n ON n.tenant = e.tenant AND n.id = e.memory
  WHERE e.lineage = p.lineage AND e.position = p.position AND n.scope = p.scope AND n.tenant = p.tenant
) AS stated
FROM passages p JOIN messages m ON m.lineage = p.lineage AND m.position = p.position
WHERE p.scope = :scope AND p.tenant = :tenant AND m.branch = 0
  AND p.number IN (SELECT value::bigint FROM json_array_elements_text(:numbers ::json));

-- Memories: the ledger of what was stated ------------------------------------------------------------------------------

-- name: scopes_remember
UPDATE scopes SET memories = memories + :more WHERE id = :scope AND tenant = :tenant RETURNING memories;

-- name: memories_add
INSERT INTO memories (tenant, id, scope, number, text, kind, slot, subject, attribute, single, negated, details, origin, rule, version,
                      valid_from, valid_to, recorded_at, closed_at, closed_by, closed_rule, happened_start, happened_end, grain, pinned, state)
VALUES (:tenant, :id, :scope, :number, :text, :kind, :slot, :subject, :attribute, :single, :negated, :details, :origin, :rule, :version,
        :valid_from, :valid_to, :recorded_at, :closed_at, :closed_by, :closed_rule, :happened_start, :happened_end, :grain, :pinned, :state);

-- name: memory_terms_add @sqlite
INSERT INTO memory_terms (scope, term, number, tenant, closed) SELECT :scope, j.value, :number, :tenant, :closed FROM json_each(:terms) j WHERE TRUE
ON CONFLICT DO NOTHING;

-- name: memory_terms_add @postgres
INSERT INTO memory_terms (scope, term, number, tenant, closed)
SELECT :scope, j.value, :number, :tenant, :closed FROM json_array_elements_text(:terms ::json) j ON CONFLICT DO NOTHING;

-- name: memory_terms_close @sqlite
UPDATE memory_terms SET closed = :closed WHERE scope = :scope AND tenant = :tenant
  AND number = (SELECT m.number FROM memories m WHERE m.tenant = :tenant AND m.id = :memory AND m.scope = :scope)
  AND term IN (SELECT j.value FROM memories m CROSS JOIN json_each(m.details, '$.terms') j WHERE m.tenant = :tenant AND m.id = :memory);

-- name: memory_terms_close @postgres
UPDATE memory_terms SET closed = :closed WHERE scope = :scope AND tenant = :tenant
  AND number = (SELECT m.number FROM memories m WHERE m.tenant = :tenant AND m.id = :memory AND m.scope = :scope);

-- name: sessions_of_lineage
SELECT id FROM sessions WHERE lineage = :lineage AND tenant = :tenant;

-- name: memories_any_closed
SELECT 1 FROM memory_terms WHERE scope = :scope AND closed AND tenant = :tenant LIMIT 1;

-- name: memories_closed_with @sqlite
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_each(:terms) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value AND t.closed LIMIT 100)) BETWEEN 1 AND 99
), sharing AS (
  SELECT t.number, count(*) AS n FROM telling CROSS JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term AND t.closed
  GROUP BY t.number ORDER BY n DESC, t.number DESC LIMIT :limit
)
SELECT m.id, m.text, m.subject, m.attribute, m.details, m.recorded_at FROM sharing i
CROSS JOIN memories m INDEXED BY memories_by_number ON m.scope = :scope AND m.number = i.number WHERE m.tenant = :tenant;

-- name: memories_closed_with @postgres
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_array_elements_text(:terms ::json) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value AND t.closed LIMIT 100) many) BETWEEN 1 AND 99
), sharing AS (
  SELECT t.number, count(*) AS n FROM telling JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term AND t.closed
  GROUP BY t.number ORDER BY n DESC, t.number DESC LIMIT :limit
)
SELECT m.id, m.text, m.subject, m.attribute, m.details, m.recorded_at FROM sharing i
JOIN memories m ON m.scope = :scope AND m.number = i.number WHERE m.tenant = :tenant;

-- name: evidence_add
INSERT INTO evidence (tenant, memory, lineage, position, start, length, at)
VALUES (:tenant, :memory, :lineage, :position, :start, :length, :at) ON CONFLICT DO NOTHING;

-- name: links_add
INSERT INTO links (tenant, source, target, kind, rule, at) VALUES (:tenant, :source, :target, :kind, :rule, :at) ON CONFLICT DO NOTHING;

-- name: evidence_foremost @sqlite
-- Whether there is none before one of these (memory, lineage, position, start), as `evidence_first` looks for it.
SELECT 1 FROM json_each(:places) j WHERE NOT EXISTS (
  SELECT 1 FROM evidence f CROSS JOIN messages y ON y.lineage = f.lineage AND y.position = f.position
  WHERE f.tenant = :tenant AND f.memory = json_extract(j.value, '$[0]') AND y.branch = 0
    AND (f.lineage, f.position, f.start) < (json_extract(j.value, '$[1]'), json_extract(j.value, '$[2]'), json_extract(j.value, '$[3]'))) LIMIT 1;

-- name: evidence_foremost @postgres
SELECT 1 FROM json_array_elements(:places ::json) j WHERE NOT EXISTS (
  SELECT 1 FROM evidence f JOIN messages y ON y.lineage = f.lineage AND y.position = f.position
  WHERE f.tenant = :tenant AND f.memory = j.value ->> 0 AND y.branch = 0
    AND (f.lineage, f.position, f.start) < ((j.value ->> 1)::bigint, (j.value ->> 2)::bigint, (j.value ->> 3)::bigint)) LIMIT 1;

-- name: memories_close
UPDATE memories SET state = :state, valid_to = CASE WHEN valid_from > :until THEN valid_from ELSE :until END,
  closed_at = :at, closed_by = :closed_by, closed_rule = :rule
WHERE tenant = :tenant AND id = :id AND scope = :scope AND state = 'active';

-- name: memories_reopen
UPDATE memories SET state = 'active', valid_to = NULL, closed_at = NULL, closed_by = NULL, closed_rule = NULL
WHERE tenant = :tenant AND id = :id AND scope = :scope AND state <> 'active';

-- name: memories_reclose
UPDATE memories SET closed_by = :closed_by WHERE tenant = :tenant AND id = :id AND scope = :scope;

-- name: links_drop_closing
DELETE FROM links WHERE tenant = :tenant AND target = :id AND kind <> 'cause';

-- name: memories_pin
UPDATE memories SET pinned = :pinned WHERE tenant = :tenant AND id = :id AND scope = :scope;

-- name: memories_get
SELECT * FROM memories WHERE tenant = :tenant AND id = :id AND scope = :scope;

-- name: memories_text
SELECT text FROM memories WHERE tenant = :tenant AND id = :id;

-- name: memories_page
SELECT * FROM memories m
WHERE m.scope = :scope AND m.tenant = :tenant AND (:kind = '' OR m.kind = :kind) AND (:slot = '' OR m.slot = :slot)
  AND (:origin = '' OR m.origin = :origin) AND (:state = '' OR m.state = :state) AND (:pattern = '' OR lower(m.text) LIKE :pattern ESCAPE '!')
  AND m.recorded_at >= :since AND m.recorded_at < :until
  AND (:as_of < 0 OR (m.valid_from <= :as_of AND (m.valid_to IS NULL OR m.valid_to > :as_of)))
  AND (:session_id = '' OR EXISTS (SELECT 1 FROM evidence e JOIN sessions s ON s.lineage = e.lineage AND s.tenant = e.tenant
                                   WHERE e.tenant = m.tenant AND e.memory = m.id AND s.id = :session_id))
  AND (:after = '' OR (m.recorded_at, m.number) < (SELECT a.recorded_at, a.number FROM memories a
                                               WHERE a.tenant = :tenant AND a.id = :after AND a.scope = :scope))
ORDER BY m.recorded_at DESC, m.number DESC LIMIT :limit;

-- name: memories_of_slot
SELECT * FROM memories WHERE scope = :scope AND slot = :slot AND slot <> '' AND tenant = :tenant ORDER BY valid_from, recorded_at, number;

-- name: memories_by_ids @sqlite
SELECT m.* FROM json_each(:ids) j CROSS JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope ORDER BY m.recorded_at, m.number;

-- name: memories_by_ids @postgres
SELECT m.* FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope ORDER BY m.recorded_at, m.number;

-- name: memories_open @sqlite
SELECT m.id, m.number, m.text, m.kind, m.rule, m.subject, m.attribute, m.single, m.negated, m.details, m.origin, m.recorded_at,
  m.happened_start, m.happened_end, m.grain
FROM json_each(:ids) j CROSS JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope AND m.state = 'active';

-- name: memories_open @postgres
SELECT m.id, m.number, m.text, m.kind, m.rule, m.subject, m.attribute, m.single, m.negated, m.details, m.origin, m.recorded_at,
  m.happened_start, m.happened_end, m.grain
FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope AND m.state = 'active';

-- name: memories_standing @sqlite
SELECT m.number, m.id FROM json_each(:numbers) j CROSS JOIN memories m INDEXED BY memories_by_number
  ON m.scope = :scope AND m.number = j.value AND m.state = 'active' WHERE m.tenant = :tenant;

-- name: memories_standing @postgres
SELECT m.number, m.id FROM json_array_elements_text(:numbers ::json) j JOIN memories m
  ON m.scope = :scope AND m.number = j.value::bigint AND m.state = 'active' WHERE m.tenant = :tenant;

-- name: memories_near @sqlite
-- (why, numbers as JSON): a list to a row, since a row for each would take longer to hand over than to find.
SELECT j.value AS why, (SELECT json_group_array(n.number) FROM (
  SELECT t.number FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value AND t.tenant = :tenant ORDER BY t.number DESC LIMIT :common) n
  HAVING count(*) BETWEEN 1 AND :common - 1)
FROM json_each(:terms) j
UNION ALL SELECT j.value, (SELECT json_group_array(m.number) FROM memories m
  WHERE m.scope = :scope AND m.slot = j.value AND m.slot <> '' AND m.state = 'active' AND m.tenant = :tenant)
FROM json_each(:slots) j
UNION ALL SELECT '<', json_group_array(m.number) FROM (
  SELECT e.memory AS id FROM evidence e WHERE e.lineage = :lineage AND e.tenant = :tenant ORDER BY e.position DESC, e.start DESC LIMIT :recent) n
CROSS JOIN memories m ON m.tenant = :tenant AND m.id = n.id AND m.scope = :scope
UNION ALL SELECT '*', json_group_array(number) FROM (
  SELECT number FROM memories WHERE scope = :scope AND state = 'active' AND tenant = :tenant ORDER BY recorded_at DESC, number DESC LIMIT :newest)
UNION ALL SELECT '*', json_group_array(number) FROM (
  SELECT number FROM memories WHERE scope = :scope AND kind = 'decision' AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :newest);

-- name: memories_near @postgres
SELECT j.value AS why, (SELECT json_agg(n.number)::text FROM (
  SELECT t.number FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value AND t.tenant = :tenant ORDER BY t.number DESC LIMIT :common) n
  HAVING count(*) < :common) AS numbers
FROM json_array_elements_text(:terms ::json) j
UNION ALL SELECT j.value, (SELECT json_agg(m.number)::text FROM memories m
  WHERE m.scope = :scope AND m.slot = j.value AND m.slot <> '' AND m.state = 'active' AND m.tenant = :tenant)
FROM json_array_elements_text(:slots ::json) j
UNION ALL SELECT '<', json_agg(m.number)::text FROM (
  SELECT e.memory AS id FROM evidence e WHERE e.lineage = :lineage AND e.tenant = :tenant ORDER BY e.position DESC, e.start DESC LIMIT :recent) n
JOIN memories m ON m.tenant = :tenant AND m.id = n.id AND m.scope = :scope
UNION ALL SELECT '*', json_agg(a.number)::text FROM (
  SELECT number FROM memories WHERE scope = :scope AND state = 'active' AND tenant = :tenant ORDER BY recorded_at DESC, number DESC LIMIT :newest) a
UNION ALL SELECT '*', json_agg(b.number)::text FROM (
  SELECT number FROM memories WHERE scope = :scope AND kind = 'decision' AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :newest) b;

-- name: memories_sharing @sqlite
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_each(:terms) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value LIMIT 100)) < 100
), sharing AS (
  SELECT t.number, count(*) AS n FROM telling CROSS JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term GROUP BY t.number
)
SELECT m.*, i.n FROM sharing i CROSS JOIN memories m INDEXED BY memories_by_number ON m.scope = :scope AND m.number = i.number WHERE m.tenant = :tenant
ORDER BY i.n DESC, m.recorded_at DESC, m.number DESC LIMIT :limit;

-- name: memories_sharing @postgres
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_array_elements_text(:terms ::json) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value LIMIT 100) many) < 100
), sharing AS (
  SELECT t.number, count(*) AS n FROM telling JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term GROUP BY t.number
)
SELECT m.*, i.n FROM sharing i JOIN memories m ON m.scope = :scope AND m.number = i.number WHERE m.tenant = :tenant
ORDER BY i.n DESC, m.recorded_at DESC, m.number DESC LIMIT :limit;

-- name: memories_in_slots @sqlite
SELECT m.* FROM json_each(:slots) j CROSS JOIN memories m ON m.scope = :scope AND m.slot = j.value WHERE m.slot <> '' AND m.tenant = :tenant
ORDER BY m.recorded_at DESC, m.number DESC LIMIT :limit;

-- name: memories_in_slots @postgres
SELECT m.* FROM json_array_elements_text(:slots ::json) j JOIN memories m ON m.scope = :scope AND m.slot = j.value WHERE m.slot <> '' AND m.tenant = :tenant
ORDER BY m.recorded_at DESC, m.number DESC LIMIT :limit;

-- name: memories_called @sqlite
-- Everything that may belong to a question, in one look: what the passages found for it state, and what comes along by itself.
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_each(:terms) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value LIMIT 100)) < 100
)
SELECT 'words' AS why, m.id, m.number, s.id AS session_id, e.position, e.start, e.length,
  m.state = 'active' AND m.rule <> 'change_of_mind' AND (m.grain IS NULL OR NOT :dated)
  AND NOT EXISTS (SELECT 1 FROM links l WHERE l.tenant = m.tenant AND l.source = m.id)
  AND NOT EXISTS (SELECT 1 FROM links l WHERE l.tenant = m.tenant AND l.target = m.id) AS plain
FROM json_each(:places) j CROSS JOIN sessions s ON s.tenant = :tenant AND s.id = json_extract(j.value, '$[0]')
CROSS JOIN evidence e INDEXED BY evidence_by_place ON e.lineage = s.lineage AND e.position = json_extract(j.value, '$[1]')
CROSS JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory WHERE m.tenant = :tenant AND m.scope = :scope
UNION ALL SELECT 'pinned', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT id FROM memories WHERE scope = :scope AND pinned AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :pinned)
UNION ALL SELECT 'slot', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT m.id FROM json_each(:slots) j CROSS JOIN memories m ON m.scope = :scope AND m.slot = j.value WHERE m.slot <> '' AND m.tenant = :tenant
  ORDER BY m.recorded_at DESC, m.number DESC LIMIT :most)
UNION ALL SELECT 'instruction', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT id FROM memories WHERE scope = :scope AND kind = 'instruction' AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :instructions)
UNION ALL SELECT 'kind', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT id FROM memories WHERE scope = :scope AND kind = :kind AND state <> 'retracted' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :most)
UNION ALL SELECT 'period', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT id FROM memories INDEXED BY memories_by_number WHERE :newest > 0 AND scope = :scope AND recorded_at >= :since AND state <> 'retracted'
    AND tenant = :tenant ORDER BY number DESC LIMIT :newest)
UNION ALL SELECT 'terms', id, 0, '', 0, 0, 0, 0 FROM (
  SELECT m.id FROM (
    SELECT t.number FROM telling CROSS JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term
    WHERE t.tenant = :tenant GROUP BY t.number HAVING count(*) >= :shared ORDER BY count(*) DESC, t.number DESC LIMIT :most) n
  CROSS JOIN memories m INDEXED BY memories_by_number ON m.scope = :scope AND m.number = n.number WHERE m.tenant = :tenant);

-- name: memories_called @postgres
WITH telling AS MATERIALIZED (
  SELECT j.value AS term FROM json_array_elements_text(:terms ::json) j
  WHERE (SELECT count(*) FROM (SELECT 1 FROM memory_terms t WHERE t.scope = :scope AND t.term = j.value LIMIT 100) many) < 100
)
SELECT 'words' AS why, m.id, m.number, s.id AS session_id, e.position, e.start, e.length,
  m.state = 'active' AND m.rule <> 'change_of_mind' AND (m.grain IS NULL OR NOT :dated)
  AND NOT EXISTS (SELECT 1 FROM links l WHERE l.tenant = m.tenant AND l.source = m.id)
  AND NOT EXISTS (SELECT 1 FROM links l WHERE l.tenant = m.tenant AND l.target = m.id) AS plain
FROM json_array_elements(:places ::json) j JOIN sessions s ON s.tenant = :tenant AND s.id = j.value->>0
JOIN evidence e ON e.lineage = s.lineage AND e.position = (j.value->>1)::bigint
JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory WHERE m.tenant = :tenant AND m.scope = :scope
UNION ALL SELECT 'pinned', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT id FROM memories WHERE scope = :scope AND pinned AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :pinned) a
UNION ALL SELECT 'slot', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT m.id FROM json_array_elements_text(:slots ::json) j JOIN memories m ON m.scope = :scope AND m.slot = j.value WHERE m.slot <> '' AND m.tenant = :tenant
  ORDER BY m.recorded_at DESC, m.number DESC LIMIT :most) b
UNION ALL SELECT 'instruction', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT id FROM memories WHERE scope = :scope AND kind = 'instruction' AND state = 'active' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :instructions) c
UNION ALL SELECT 'kind', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT id FROM memories WHERE scope = :scope AND kind = :kind AND state <> 'retracted' AND tenant = :tenant
  ORDER BY recorded_at DESC, number DESC LIMIT :most) e
UNION ALL SELECT 'period', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT id FROM memories WHERE :newest > 0 AND scope = :scope AND recorded_at >= :since AND state <> 'retracted' AND tenant = :tenant
  ORDER BY number DESC LIMIT :newest) g
UNION ALL SELECT 'terms', id, 0, '', 0, 0, 0, FALSE FROM (
  SELECT m.id FROM (
    SELECT t.number, count(*) AS shared FROM telling JOIN memory_terms t ON t.scope = :scope AND t.term = telling.term
    WHERE t.tenant = :tenant GROUP BY t.number HAVING count(*) >= :shared ORDER BY 2 DESC, 1 DESC LIMIT :most) n
  JOIN memories m ON m.scope = :scope AND m.number = n.number WHERE m.tenant = :tenant ORDER BY n.shared DESC, n.number DESC) f;

-- name: memories_closings @sqlite
-- What closed these, what closed that, and so on up to what holds now.
WITH RECURSIVE chain (id) AS (
  SELECT value FROM json_each(:ids)
  UNION SELECT m.closed_by FROM chain c JOIN memories m ON m.tenant = :tenant AND m.id = c.id AND m.scope = :scope
  WHERE m.closed_by IS NOT NULL
)
SELECT m.id, m.closed_by FROM chain c JOIN memories m ON m.tenant = :tenant AND m.id = c.id AND m.scope = :scope WHERE m.closed_by IS NOT NULL;

-- name: evidence_first @sqlite
SELECT e.memory, e.lineage, e.position, e.start, e.length, e.at, x.session_id, x.role, x.body
FROM json_each(:ids) j CROSS JOIN memories m ON m.tenant = :tenant AND m.id = j.value
CROSS JOIN evidence e ON e.tenant = m.tenant AND e.memory = m.id AND (e.lineage, e.position, e.start) = (
  SELECT f.lineage, f.position, f.start FROM evidence f CROSS JOIN messages y ON y.lineage = f.lineage AND y.position = f.position
  WHERE f.tenant = m.tenant AND f.memory = m.id AND y.branch = 0 ORDER BY f.lineage, f.position, f.start LIMIT 1)
CROSS JOIN messages x ON x.lineage = e.lineage AND x.position = e.position WHERE m.scope = :scope;

-- name: memories_history
WITH RECURSIVE after (id) AS (
  SELECT m.id FROM memories m WHERE m.tenant = :tenant AND m.id = :id AND m.scope = :scope
  UNION SELECT m.closed_by FROM after a JOIN memories m ON m.tenant = :tenant AND m.id = a.id AND m.scope = :scope
  WHERE m.closed_by IS NOT NULL
), whole (id) AS (
  SELECT id FROM after
  UNION SELECT m.id FROM whole w JOIN memories m ON m.scope = :scope AND m.closed_by = w.id AND m.closed_by IS NOT NULL
  WHERE m.tenant = :tenant
)
SELECT m.* FROM memories m WHERE m.tenant = :tenant AND m.scope = :scope AND m.id IN (SELECT id FROM whole) ORDER BY m.recorded_at, m.number;

-- name: links_of @sqlite
SELECT l.source, l.target, l.kind, l.rule, l.at FROM json_each(:ids) j CROSS JOIN links l ON l.tenant = :tenant AND l.source = j.value
CROSS JOIN memories m ON m.tenant = l.tenant AND m.id = l.source WHERE m.scope = :scope
UNION SELECT l.source, l.target, l.kind, l.rule, l.at FROM json_each(:ids) j CROSS JOIN links l INDEXED BY links_by_target ON l.tenant = :tenant AND l.target = j.value
CROSS JOIN memories m ON m.tenant = l.tenant AND m.id = l.target WHERE m.scope = :scope
ORDER BY 5, 1, 2, 3;

-- name: memories_closings @postgres
WITH RECURSIVE chain (id) AS (
  SELECT value FROM json_array_elements_text(:ids ::json)
  UNION SELECT m.closed_by FROM chain c JOIN memories m ON m.tenant = :tenant AND m.id = c.id AND m.scope = :scope
  WHERE m.closed_by IS NOT NULL
)
SELECT m.id, m.closed_by FROM chain c JOIN memories m ON m.tenant = :tenant AND m.id = c.id AND m.scope = :scope WHERE m.closed_by IS NOT NULL;

-- name: evidence_first @postgres
SELECT e.memory, e.lineage, e.position, e.start, e.length, e.at, x.session_id, x.role, x.body
FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.tenant = :tenant AND m.id = j.value
JOIN evidence e ON e.tenant = m.tenant AND e.memory = m.id AND (e.lineage, e.position, e.start) = (
  SELECT f.lineage, f.position, f.start FROM evidence f JOIN messages y ON y.lineage = f.lineage AND y.position = f.position
  WHERE f.tenant = m.tenant AND f.memory = m.id AND y.branch = 0 ORDER BY f.lineage, f.position, f.start LIMIT 1)
JOIN messages x ON x.lineage = e.lineage AND x.position = e.position WHERE m.scope = :scope;

-- name: links_of @postgres
SELECT l.source, l.target, l.kind, l.rule, l.at FROM json_array_elements_text(:ids ::json) j JOIN links l ON l.tenant = :tenant AND l.source = j.value
JOIN memories m ON m.tenant = l.tenant AND m.id = l.source WHERE m.scope = :scope
UNION SELECT l.source, l.target, l.kind, l.rule, l.at FROM json_array_elements_text(:ids ::json) j JOIN links l ON l.tenant = :tenant AND l.target = j.value
JOIN memories m ON m.tenant = l.tenant AND m.id = l.target WHERE m.scope = :scope
ORDER BY 5, 1, 2, 3;

-- name: links_causes
WITH RECURSIVE chain (source, target, rule, at, steps) AS (
  SELECT l.source, l.target, l.rule, l.at, 0 FROM memories m JOIN links l ON l.tenant = m.tenant AND l.target = m.id
  WHERE m.tenant = :tenant AND m.id = :id AND m.scope = :scope AND l.kind = 'cause'
  UNION SELECT l.source, l.target, l.rule, l.at, c.steps + 1 FROM chain c
  JOIN links l ON l.tenant = :tenant AND l.target = c.source AND l.kind = 'cause' WHERE c.steps < 100
)
SELECT source, target, 'cause' AS kind, rule, at FROM chain ORDER BY steps, at, source, target;

-- name: links_reversals
SELECT l.source, l.target, l.kind, l.rule, l.at FROM memories m JOIN links l ON l.tenant = m.tenant AND l.source = m.id
WHERE m.scope = :scope AND m.tenant = :tenant AND l.kind = 'reverses' ORDER BY l.at DESC, l.source, l.target LIMIT :limit;

-- name: evidence_shown @sqlite
-- Evidence on an old branch is not shown: that message was taken back.
SELECT e.memory, e.lineage, e.position, e.start, e.length, e.at, x.session_id, x.role, x.body
FROM json_each(:ids) j CROSS JOIN memories m ON m.tenant = :tenant AND m.id = j.value CROSS JOIN evidence e ON e.tenant = m.tenant AND e.memory = m.id
CROSS JOIN messages x ON x.lineage = e.lineage AND x.position = e.position WHERE m.scope = :scope AND x.branch = 0
ORDER BY e.at, e.lineage, e.position, e.start;

-- name: evidence_shown @postgres
SELECT e.memory, e.lineage, e.position, e.start, e.length, e.at, x.session_id, x.role, x.body
FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.tenant = :tenant AND m.id = j.value JOIN evidence e ON e.tenant = m.tenant AND e.memory = m.id
JOIN messages x ON x.lineage = e.lineage AND x.position = e.position WHERE m.scope = :scope AND x.branch = 0
ORDER BY e.at, e.lineage, e.position, e.start;

-- name: memories_said_at @sqlite
SELECT m.*, e.lineage, e.position, e.start, e.length, e.at
FROM json_each(:positions) j CROSS JOIN evidence e INDEXED BY evidence_by_place ON e.lineage = :lineage AND e.position = j.value
CROSS JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory WHERE m.tenant = :tenant AND m.scope = :scope
ORDER BY e.position, e.start, m.number;

-- name: memories_said_at @postgres
SELECT m.*, e.lineage, e.position, e.start, e.length, e.at
FROM json_array_elements_text(:positions ::json) j JOIN evidence e ON e.lineage = :lineage AND e.position = j.value::bigint
JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory WHERE m.tenant = :tenant AND m.scope = :scope
ORDER BY e.position, e.start, m.number;

-- name: evidence_of_messages
SELECT e.memory, e.lineage, e.position, e.start FROM evidence e JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory
WHERE e.lineage = :lineage AND e.position >= :first AND e.position <= :last AND e.tenant = :tenant AND m.scope = :scope;

-- name: evidence_between
SELECT e.memory, e.lineage, e.position, e.start FROM memories m JOIN evidence e ON e.tenant = m.tenant AND e.memory = m.id
WHERE m.scope = :scope AND m.tenant = :tenant AND e.at >= :since AND e.at < :until;

-- name: evidence_counts @sqlite
SELECT m.id, m.version, (SELECT count(*) FROM evidence e WHERE e.tenant = m.tenant AND e.memory = m.id) AS n
FROM json_each(:ids) j CROSS JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope;

-- name: evidence_counts @postgres
SELECT m.id, m.version, (SELECT count(*) FROM evidence e WHERE e.tenant = m.tenant AND e.memory = m.id) AS n
FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.tenant = :tenant AND m.id = j.value WHERE m.scope = :scope;

-- name: evidence_drop
DELETE FROM evidence WHERE tenant = :tenant AND memory = :memory AND lineage = :lineage AND position = :position AND start = :start;

-- name: memories_drop
DELETE FROM memories WHERE tenant = :tenant AND id = :id AND scope = :scope;

-- name: memories_clear
DELETE FROM memories WHERE scope = :scope AND tenant = :tenant;

-- name: memories_closed_by @sqlite
SELECT m.* FROM json_each(:ids) j CROSS JOIN memories m ON m.scope = :scope AND m.closed_by = j.value WHERE m.closed_by IS NOT NULL AND m.tenant = :tenant;

-- name: memories_closed_by @postgres
SELECT m.* FROM json_array_elements_text(:ids ::json) j JOIN memories m ON m.scope = :scope AND m.closed_by = j.value WHERE m.closed_by IS NOT NULL AND m.tenant = :tenant;

-- name: memories_of_lineage
SELECT DISTINCT m.* FROM evidence e JOIN messages x ON x.lineage = e.lineage AND x.position = e.position
JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory
WHERE e.lineage = :lineage AND x.branch = 0 AND x.position <= :upto AND m.tenant = :tenant AND m.scope = :scope;

-- name: evidence_of_lineage
SELECT e.memory, e.lineage, e.position, e.start, e.length, e.at FROM evidence e
JOIN messages x ON x.lineage = e.lineage AND x.position = e.position
WHERE e.lineage = :lineage AND x.branch = 0 AND x.position <= :upto AND e.tenant = :tenant;

-- name: memories_move
UPDATE memories SET scope = :to, number = number + :base WHERE scope = :scope AND tenant = :tenant;

-- name: memory_terms_move
UPDATE memory_terms SET scope = :to, number = number + :base WHERE scope = :scope AND tenant = :tenant;

-- name: memories_doubled
SELECT m.* FROM memories m JOIN (
  SELECT slot FROM memories WHERE scope = :scope AND slot <> '' AND state = 'active' AND single = :single AND tenant = :tenant
  GROUP BY slot HAVING count(*) > 1
) d ON d.slot = m.slot
WHERE m.scope = :scope AND m.slot <> '' AND m.state = 'active' AND m.single = :single AND m.tenant = :tenant
ORDER BY m.slot, m.valid_from, m.recorded_at, m.number;

-- Receipts ------------------------------------------------------------------------------------------------------------

-- name: receipts_add
INSERT INTO receipts (tenant, id, lineage, body, at) VALUES (:tenant, :id, :lineage, :body, :at);

-- name: receipts_get
SELECT body, at FROM receipts WHERE tenant = :tenant AND id = :id;

-- Erasures: what is deleted on demand -----------------------------------------------------------------------------------

-- name: erasures_hold @sqlite
SELECT id, root, session_key FROM lineages WHERE scope = :scope AND tenant = :tenant ORDER BY id;

-- name: erasures_hold @postgres
SELECT id, root, session_key FROM lineages WHERE scope = :scope AND tenant = :tenant ORDER BY id FOR UPDATE;

-- name: erasures_lineages
SELECT id, root, session_key FROM lineages WHERE scope = :scope AND tenant = :tenant ORDER BY id;

-- name: erasures_messages
SELECT m.lineage, m.position, m.session_id, m.role, m.body, m.at, m.erased, m.origin FROM messages m
WHERE m.lineage = :lineage AND m.position >= :first AND m.position <= :last AND m.tenant = :tenant ORDER BY m.position;

-- name: erasures_between
SELECT m.lineage, m.position, m.session_id, m.role, m.body, m.at, m.erased, m.origin FROM lineages l JOIN messages m ON m.lineage = l.id
WHERE l.scope = :scope AND l.tenant = :tenant AND m.at >= :since AND m.at < :until ORDER BY m.lineage, m.position;

-- name: erasures_holding @sqlite
SELECT m.lineage, m.position, m.session_id, m.role, m.body, m.at, m.erased, m.origin FROM lineages l JOIN messages m ON m.lineage = l.id
WHERE l.scope = :scope AND l.tenant = :tenant AND instr(m.body, :words) > 0 ORDER BY m.lineage, m.position;

-- name: erasures_holding @postgres
SELECT m.lineage, m.position, m.session_id, m.role, m.body, m.at, m.erased, m.origin FROM lineages l JOIN messages m ON m.lineage = l.id
WHERE l.scope = :scope AND l.tenant = :tenant AND strpos(m.body, :words) > 0 ORDER BY m.lineage, m.position;

-- name: erasures_evidence
SELECT e.memory, e.lineage, e.position, e.start, e.length FROM evidence e JOIN memories m ON m.tenant = e.tenant AND m.id = e.memory
WHERE e.lineage = :lineage AND e.position >= :first AND e.position <= :last AND e.tenant = :tenant AND m.scope = :scope;

-- name: erasures_by_hand
SELECT * FROM memories WHERE scope = :scope AND version = 0 AND recorded_at >= :since AND recorded_at < :until AND tenant = :tenant
ORDER BY recorded_at, id;

-- name: erasures_reword
UPDATE messages SET body = :body, erased = :erased WHERE lineage = :lineage AND position = :position AND tenant = :tenant;

-- name: erasures_passages
DELETE FROM passages WHERE lineage = :lineage AND position = :position AND tenant = :tenant;

-- name: erasures_state
SELECT state FROM lineages WHERE id = :lineage AND tenant = :tenant;

-- name: erasures_states
SELECT upto, state FROM compactions WHERE lineage = :lineage ORDER BY upto;

-- name: erasures_restate
UPDATE lineages SET state = :state WHERE id = :lineage AND tenant = :tenant;

-- name: erasures_restate_old
UPDATE compactions SET state = :state WHERE lineage = :lineage AND upto = :upto;

-- name: erasures_previews
SELECT id, preview FROM sessions WHERE lineage = :lineage AND tenant = :tenant AND preview IS NOT NULL;

-- name: erasures_records @sqlite
UPDATE idempotency SET headers = '{}', body = x'', erased = TRUE WHERE lineage = :lineage AND tenant = :tenant AND owner IS NULL;

-- name: erasures_records @postgres
UPDATE idempotency SET headers = '{}', body = '', erased = TRUE WHERE lineage = :lineage AND tenant = :tenant AND owner IS NULL;

-- name: erasures_lineage
UPDATE lineages SET erasures = erasures + 1 WHERE id = :lineage AND tenant = :tenant;

-- name: erasures_scope
UPDATE scopes SET erasures = erasures + 1 WHERE id = :scope AND tenant = :tenant;

-- name: sweeps_add
INSERT INTO sweeps (at) VALUES (:at);

-- name: sweeps_waiting
SELECT max(id) AS id FROM sweeps;

-- name: sweeps_done
DELETE FROM sweeps WHERE id <= :id;

-- name: scope_of_memory
SELECT scope FROM memories WHERE tenant = :tenant AND id = :id;

-- name: texts_anywhere @sqlite
SELECT EXISTS (SELECT 1 FROM messages WHERE instr(body, :words) > 0) OR EXISTS (SELECT 1 FROM memories WHERE instr(text, :words) > 0)
  OR EXISTS (SELECT 1 FROM lineages WHERE instr(COALESCE(system_prompt, ''), :words) > 0 OR instr(state, :words) > 0)
  OR EXISTS (SELECT 1 FROM idempotency WHERE instr(CAST(COALESCE(body, x'') AS TEXT), :words) > 0) AS yes;

-- name: texts_anywhere @postgres
SELECT EXISTS (SELECT 1 FROM messages WHERE strpos(body, :words) > 0) OR EXISTS (SELECT 1 FROM memories WHERE strpos(text, :words) > 0)
  OR EXISTS (SELECT 1 FROM lineages WHERE strpos(COALESCE(system_prompt, ''), :words) > 0 OR strpos(state, :words) > 0) AS yes;

-- Jobs ----------------------------------------------------------------------------------------------------------------

-- name: jobs_add
INSERT INTO jobs (tenant, id, body, state, enabled, next_run_at, times, created_at)
VALUES (:tenant, :id, :body, 'scheduled', TRUE, :next_run_at, :times, :at);

-- name: jobs_get
SELECT * FROM jobs WHERE tenant = :tenant AND id = :id;

-- name: jobs_hold @sqlite
SELECT * FROM jobs WHERE tenant = :tenant AND id = :id;

-- name: jobs_hold @postgres
SELECT * FROM jobs WHERE tenant = :tenant AND id = :id FOR UPDATE;

-- name: jobs_list
SELECT * FROM jobs WHERE tenant = :tenant AND (enabled OR :all_of_them) ORDER BY created_at, id LIMIT :limit OFFSET :offset;

-- name: jobs_delete
DELETE FROM jobs WHERE tenant = :tenant AND id = :id;

-- name: jobs_save
UPDATE jobs SET body = :body, state = :state, enabled = :enabled, next_run_at = :next_run_at, times = :times, completed = :completed,
  failures = :failures, paused_at = :paused_at, paused_reason = :paused_reason, last_run_at = :last_run_at, last_status = :last_status,
  last_error = :last_error
WHERE tenant = :tenant AND id = :id;

-- name: jobs_due
-- Those whose instant has come, the oldest first.
SELECT tenant, id FROM jobs WHERE next_run_at <= :now ORDER BY next_run_at, tenant, id LIMIT :limit;

-- name: jobs_next
SELECT min(next_run_at) AS at FROM jobs WHERE next_run_at IS NOT NULL;

-- name: jobs_advance
-- To the next instant, by whoever is first to see that this one has come.
UPDATE jobs SET next_run_at = :following WHERE tenant = :tenant AND id = :id AND next_run_at = :planned;

-- name: jobs_undelivered
UPDATE jobs SET last_delivery_error = :error WHERE tenant = :tenant AND id = :id;

-- name: occurrences_add
INSERT INTO occurrences (tenant, id, job, planned, at, status, finished_at, error)
VALUES (:tenant, :id, :job, :planned, :at, :status, :finished_at, :error) ON CONFLICT (tenant, job, planned) DO NOTHING;

-- name: occurrences_open @sqlite
-- What of a job waits or is under way.
SELECT count(*) AS open, count(CASE WHEN status = 'queued' THEN 1 END) AS waiting FROM occurrences INDEXED BY occurrences_open
WHERE tenant = :tenant AND job = :job AND finished_at IS NULL;

-- name: occurrences_open @postgres
SELECT count(*) AS open, count(CASE WHEN status = 'queued' THEN 1 END) AS waiting FROM occurrences
WHERE tenant = :tenant AND job = :job AND finished_at IS NULL;

-- name: occurrences_waiting @sqlite
-- What may begin: of each job one at a time.
SELECT o.tenant, o.id, o.job, o.planned, o.token, o.deaths FROM occurrences o
WHERE o.status = 'queued' AND NOT EXISTS (
  SELECT 1 FROM occurrences x INDEXED BY occurrences_open WHERE x.tenant = o.tenant AND x.job = o.job AND x.finished_at IS NULL AND x.owner IS NOT NULL)
ORDER BY o.at, o.id LIMIT :limit;

-- name: occurrences_waiting @postgres
SELECT o.tenant, o.id, o.job, o.planned, o.token, o.deaths FROM occurrences o
WHERE o.status = 'queued' AND NOT EXISTS (
  SELECT 1 FROM occurrences x WHERE x.tenant = o.tenant AND x.job = o.job AND x.finished_at IS NULL AND x.owner IS NOT NULL)
ORDER BY o.at, o.id LIMIT :limit;

-- name: occurrences_claim
UPDATE occurrences SET status = 'running', owner = :owner, token = token + 1, claimed_at = :at, started_at = NULL
WHERE tenant = :tenant AND id = :id AND status = 'queued' AND token = :token;

-- name: occurrences_begun
UPDATE occurrences SET started_at = :at, session_id = :session_id
WHERE tenant = :tenant AND id = :id AND owner = :owner AND token = :token;

-- name: occurrences_end
-- Only by whoever has it: an owner that was thought dead and is not comes too late.
UPDATE occurrences SET status = :status, owner = NULL, finished_at = :at, session_id = coalesce(:session_id, session_id),
  lineage = :lineage, first = :first, last = :last, receipt = :receipt, usage = :usage, error = :error, delivery = :delivery,
  delivery_at = CASE WHEN :delivery = 'pending' THEN :at END
WHERE tenant = :tenant AND id = :id AND owner = :owner AND token = :token;

-- name: occurrences_release
UPDATE occurrences SET status = 'queued', owner = NULL, deaths = deaths + :deaths
WHERE tenant = :tenant AND id = :id AND owner = :owner AND token = :token;

-- name: occurrences_withdraw @sqlite
-- What of a job's plan has not begun will not.
UPDATE occurrences INDEXED BY occurrences_open SET status = 'skipped', finished_at = :at, error = :error
WHERE tenant = :tenant AND job = :job AND finished_at IS NULL AND status = 'queued' AND planned IS NOT NULL;

-- name: occurrences_withdraw @postgres
UPDATE occurrences SET status = 'skipped', finished_at = :at, error = :error
WHERE tenant = :tenant AND job = :job AND finished_at IS NULL AND status = 'queued' AND planned IS NOT NULL;

-- name: occurrences_owners
SELECT DISTINCT owner FROM occurrences WHERE finished_at IS NULL AND owner IS NOT NULL;

-- name: occurrences_of_owner
SELECT tenant, id, job, planned, token, deaths FROM occurrences WHERE finished_at IS NULL AND owner = :owner ORDER BY tenant, job, id;

-- name: occurrences_page
SELECT o.*, m.body AS said FROM occurrences o
LEFT JOIN messages m ON m.lineage = o.lineage AND m.position = o.last AND m.tenant = o.tenant
WHERE o.tenant = :tenant AND o.job = :job ORDER BY o.at DESC, o.id DESC LIMIT :limit OFFSET :offset;

-- name: occurrences_get
SELECT o.*, m.body AS said FROM occurrences o
LEFT JOIN messages m ON m.lineage = o.lineage AND m.position = o.last AND m.tenant = o.tenant
WHERE o.tenant = :tenant AND o.id = :id;

-- name: occurrences_to_deliver
SELECT tenant, id, delivery_at FROM occurrences WHERE delivery_at <= :now ORDER BY delivery_at LIMIT :limit;

-- name: occurrences_next_delivery
SELECT min(delivery_at) AS at FROM occurrences WHERE delivery_at IS NOT NULL;

-- name: occurrences_take_delivery
UPDATE occurrences SET delivery_at = :until WHERE tenant = :tenant AND id = :id AND delivery_at = :at;

-- name: occurrences_delivered
UPDATE occurrences SET delivery = :delivery, delivery_at = :again, deliveries = :deliveries WHERE tenant = :tenant AND id = :id;
