-- Rows as the schema 0003 holds them: a statement that another took the place of, with evidence, a link and terms.

UPDATE scopes SET memories = 2 WHERE id = 1;

INSERT INTO memories (tenant, id, scope, number, text, kind, slot, subject, attribute, single, negated, details, origin, rule, version,
                      valid_from, valid_to, recorded_at, closed_at, closed_by, closed_rule, happened_start, happened_end, grain, pinned, state) VALUES
  ('acme', 'mem_old', 1, 1, 'We use Go.', 'fact', 'we/language', 'we', 'language', {yes}, {no}, '{"values":["Go"]}', 'user', 'verb', 1,
   1767225600, 1767225650, 1767225600, 1767225650, 'mem_new', 'same_slot', NULL, NULL, NULL, {no}, 'superseded'),
  ('acme', 'mem_new', 1, 2, 'We use Rust.', 'decision', 'we/language', 'we', 'language', {yes}, {no}, '{"values":["Rust"],"terms":["rust"]}', 'user', 'verb', 1,
   1767225650, NULL, 1767225650, NULL, NULL, NULL, 1767225600, 1767312000, 'day', {yes}, 'active');

INSERT INTO evidence (tenant, memory, lineage, position, start, length, at) VALUES ('acme', 'mem_new', 1, 4, 0, 12, 1767225650);

INSERT INTO links (tenant, source, target, kind, rule, at) VALUES ('acme', 'mem_new', 'mem_old', 'reverses', 'same_slot', 1767225650);

INSERT INTO memory_terms (scope, term, memory, number, tenant) VALUES (1, 'rust', 'mem_new', 2, 'acme');
