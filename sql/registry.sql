--
-- REGISTRY
-- Registrations behave like catalogs: every session keeps them parsed, and every call
-- sees the newest committed state and its own changes.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_chief;
RESET client_min_messages;
\pset format unaligned
\pset tuples_only on
CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text; context text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
	RETURN state || ' ' || message || COALESCE(E'\n    ' || NULLIF(detail, ''), '')
		|| COALESCE(E'\n    HINT: ' || NULLIF(hint, ''), '') || COALESCE(E'\n    CONTEXT: ' || substring(context, 'registration of provider "[^"]*"'), '');
END $$;
-- All pools as routing sees them: id, and its cost.  VOLATILE, as the functions are.
CREATE FUNCTION regress_pools() RETURNS text LANGUAGE sql VOLATILE AS
	$$ SELECT COALESCE(string_agg(format('%s=%s%s', provider_id, signals -> 'estimatedCost', CASE WHEN rejections @> '{PROVIDER_DISABLED}' THEN ' off' END), ' ' ORDER BY provider_id COLLATE "C"), '-')
	   FROM public.sbx_route_explain() $$;

--
-- One's own changes
--
SELECT regress_pools();
-- Rule: seen by the next call, of the same transaction or the same statement.
BEGIN;
SELECT sbx_register_provider('a', 'daytona');
SELECT regress_pools();
SELECT sbx_update_provider('a', signals => '{"estimatedCost":2}');
SELECT regress_pools();
SELECT regress_pools(), sbx_register_provider('b', 'daytona'), regress_pools(), sbx_update_provider('b', enabled => false), regress_pools(), sbx_unregister_provider('b'), regress_pools();
SELECT i, CASE i % 2 WHEN 1 THEN sbx_register_provider('loop', 'daytona') ELSE sbx_unregister_provider('loop') END, regress_pools() FROM generate_series(1, 4) i;
COMMIT;
SELECT regress_pools();
-- Rule: written by hand, at the end of the statement, as everything else.
INSERT INTO sbx_provider (id, kind) VALUES ('hand', 'daytona'), ('hand2', 'daytona');
SELECT regress_pools();
WITH w AS (UPDATE sbx_provider SET signals = '{"estimatedCost":3}' WHERE id ~ '^hand' RETURNING id) SELECT count(*) FROM w;
SELECT regress_pools();
UPDATE sbx_provider SET id = 'mano' WHERE id = 'hand2';
SELECT regress_pools();
DELETE FROM sbx_provider WHERE id = 'mano';
SELECT regress_pools();
MERGE INTO sbx_provider p USING (VALUES ('hand', 4), ('merged', 5)) v(id, cost) ON p.id = v.id
	WHEN MATCHED THEN UPDATE SET signals = jsonb_build_object('estimatedCost', cost)
	WHEN NOT MATCHED THEN INSERT (id, kind, signals) VALUES (v.id, 'daytona', jsonb_build_object('estimatedCost', cost));
SELECT regress_pools();
INSERT INTO sbx_provider (id, kind) VALUES ('merged', 'daytona') ON CONFLICT (id) DO UPDATE SET signals = '{"estimatedCost":6}';
SELECT regress_pools();
COPY sbx_provider (id, kind, signals) FROM stdin;
copied	daytona	{"estimatedCost":7}
\.
SELECT regress_pools();
DO $$ BEGIN
	DELETE FROM sbx_provider WHERE id = 'copied';
	RAISE NOTICE '%', regress_pools();
	UPDATE sbx_provider SET enabled = false WHERE id = 'merged';
	RAISE NOTICE '%', regress_pools();
END $$;
-- Rule: ROLLBACK undoes it, for routing too.
BEGIN;
SELECT sbx_unregister_provider('merged'), regress_pools();
UPDATE sbx_provider SET signals = '{"estimatedCost":8}';
SELECT regress_pools();
ROLLBACK;
SELECT regress_pools();
-- Rule: so does ROLLBACK TO, at every depth; RELEASE keeps it.
BEGIN;
UPDATE sbx_provider SET signals = '{"estimatedCost":10}' WHERE id = 'a';
SAVEPOINT one;
UPDATE sbx_provider SET signals = '{"estimatedCost":11}' WHERE id = 'a';
SELECT regress_pools();
SAVEPOINT two;
DELETE FROM sbx_provider WHERE id = 'a';
SELECT regress_pools();
ROLLBACK TO two;
SELECT regress_pools();
DELETE FROM sbx_provider WHERE id = 'hand';
RELEASE two;
SELECT regress_pools();
ROLLBACK TO one;
SELECT regress_pools();
-- undone unseen
SAVEPOINT three;
DELETE FROM sbx_provider;
ROLLBACK TO three;
SELECT regress_pools();
COMMIT;
SELECT regress_pools();
-- Rule: and an exception that is caught.
DO $$ BEGIN
	BEGIN
		DELETE FROM sbx_provider;
		RAISE NOTICE '%', regress_pools();
		RAISE EXCEPTION 'undo';
	EXCEPTION WHEN raise_exception THEN
		RAISE NOTICE '%', regress_pools();
	END;
	RAISE NOTICE '%', regress_pools();
END $$;
-- an error in the reading itself leaves nothing behind
BEGIN;
SELECT regress_pools();
DELETE FROM sbx_provider;
SAVEPOINT s;
SELECT sbx_route('{"x":1}');
ROLLBACK TO s;
SELECT regress_pools();
ROLLBACK;
SELECT regress_pools();
-- Rule: TRUNCATE, too, fires no row trigger and is seen.
BEGIN;
TRUNCATE sbx_provider CASCADE;
SELECT regress_pools();
SELECT sbx_register_provider('after', 'daytona');
SELECT regress_pools();
ROLLBACK;
SELECT regress_pools();
-- Rule: as in a replica, where ordinary triggers do not fire.
BEGIN;
SET LOCAL session_replication_role = replica;
INSERT INTO sbx_provider (id, kind, registered_by) VALUES ('replicated', 'daytona', quote_ident(current_user)::regrole);
SELECT regress_pools();
UPDATE sbx_provider SET signals = '{"estimatedCost":12}' WHERE id = 'replicated';
SELECT regress_pools();
DELETE FROM sbx_provider WHERE id = 'hand';
SELECT regress_pools();
ROLLBACK;
SELECT regress_pools();
-- Rule: the table may move.
VACUUM FULL sbx_provider;
SELECT regress_pools();
BEGIN;
CLUSTER sbx_provider USING sbx_provider_pkey;
UPDATE sbx_provider SET signals = '{"estimatedCost":13}' WHERE id = 'a';
SELECT regress_pools();
ROLLBACK;
SELECT regress_pools();
-- Rule: one's own triggers see what they fire for, whatever their names.
CREATE FUNCTION regress_see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '%: %', TG_NAME, regress_pools(); RETURN NULL; END $$;
CREATE TRIGGER a_first AFTER UPDATE ON sbx_provider FOR EACH ROW EXECUTE FUNCTION regress_see();
CREATE TRIGGER z_last AFTER UPDATE ON sbx_provider FOR EACH ROW EXECUTE FUNCTION regress_see();
CREATE TRIGGER z_statement AFTER UPDATE ON sbx_provider FOR EACH STATEMENT EXECUTE FUNCTION regress_see();
SELECT regress_pools();
UPDATE sbx_provider SET signals = '{"estimatedCost":14}' WHERE id = 'a';
SELECT regress_pools();
DROP TRIGGER a_first ON sbx_provider;
DROP TRIGGER z_last ON sbx_provider;
DROP TRIGGER z_statement ON sbx_provider;
DROP FUNCTION regress_see();
-- Rule: a cursor shows what was when it was opened; the next call what is.
BEGIN;
DECLARE c CURSOR FOR SELECT provider_id, signals -> 'estimatedCost' FROM sbx_route_explain();
FETCH 1 FROM c;
DELETE FROM sbx_provider;
FETCH ALL FROM c;
SELECT regress_pools();
ROLLBACK;
-- Rule: every function sees the same.
BEGIN;
UPDATE sbx_provider SET capabilities = '{"capabilities":["brandNew"]}' WHERE id = 'a';
SELECT sbx_set_credential('a', 'k');
SELECT regress_try(format(call, '{"requires":{"requiredCapabilities":["brandNew"]}}')) FROM (VALUES ('SELECT sbx_route(%L)'), ('SELECT sbx_route_explain(%L)'), ('SELECT sbx_route_explain_text(%L)'), ('SELECT sbx_check_request(%L)')) v(call);
ROLLBACK;
SELECT regress_try(format(call, '{"requires":{"requiredCapabilities":["brandNew"]}}')) FROM (VALUES ('SELECT sbx_route(%L)'), ('SELECT sbx_route_explain(%L)'), ('SELECT sbx_route_explain_text(%L)'), ('SELECT sbx_check_request(%L)')) v(call);
SELECT sbx_clear_credentials();

--
-- Rows that are not valid
--
-- Rule: such a row can only come past the trigger; it names itself, and what is asked
-- afterwards is as if nothing had been.  must fire
SET session_replication_role = replica;
INSERT INTO sbx_provider (id, kind, signals, registered_by) VALUES ('broken', 'daytona', '{"estimatedCost":-1}', quote_ident(current_user)::regrole);
RESET session_replication_role;
SELECT call, regress_try(call) FROM (VALUES ('SELECT sbx_route()'), ('SELECT sbx_route_explain()'), ('SELECT sbx_route_explain_text()'), ($$SELECT sbx_check_request('{}')$$), ('SELECT sbx_provision()')) v(call);
SELECT regress_try('SELECT sbx_route()');
-- must not fire: pools given as JSON
SELECT regress_try($$SELECT sbx_route_providers('{}', '[{"id":"a"}]')$$);
-- Rule: it is mended as any other, by the function or by hand.
BEGIN;
SELECT sbx_update_provider('broken', signals => '{"estimatedCost":1}');
SELECT regress_pools();
ROLLBACK;
SELECT regress_try('SELECT sbx_route()');
BEGIN;
SELECT sbx_unregister_provider('broken');
SELECT regress_pools();
ROLLBACK;
UPDATE sbx_provider SET signals = '{}' WHERE id = 'broken';
SELECT regress_pools();
-- the same for its kind, its id, its settings, its documents; one at a time
CREATE FUNCTION regress_break(change text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	broken text; mended text;
BEGIN
	BEGIN
		SET LOCAL session_replication_role = replica;
		EXECUTE 'UPDATE sbx_provider SET ' || change || ' WHERE id = ''broken''';
		broken := regress_try('SELECT sbx_route()');
		RAISE EXCEPTION 'undo';
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	mended := regress_try('SELECT sbx_route()');
	RETURN broken || E'\n    then ' || mended;
END $$;
SELECT change, regress_break(change) FROM (VALUES ($$kind = 'kubernetes'$$), ($$id = 'a b'$$), ($$settings = '{"snapshots":1}'$$), ($$settings = '{"apiKey":"s3cr3t"}'$$), ($$capabilities = '[]'$$), ($$capabilities = '{"isolation":"weak"}'$$),
	($$capabilities = '{"timeout":{"maxSandboxLifetimeMs":1.5}}'$$), ($$signals = '{"completionWithinBudgetRate":2}'$$), ($$capacity = '{"limits":{"cpu":-1}}'$$), ($$capabilities = '{"capabilities":["fine"]}'$$)) v(change);
-- Rule: of several the first by id.
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE sbx_provider SET signals = '[]';
SELECT regress_try('SELECT sbx_route()');
ROLLBACK;
SELECT regress_pools();

--
-- Who answers for a row
--
-- Rule: an endpoint counts only while its registrar is superuser, which is asked for at
-- every call: no row changes with it.
DELETE FROM sbx_provider;
CREATE ROLE regress_sbx_chief SUPERUSER;
SET ROLE regress_sbx_chief;
SELECT sbx_register_provider('elsewhere', 'daytona', '{"apiUrl":"https://api.example"}'), sbx_register_provider('usual', 'daytona');
RESET ROLE;
SELECT sbx_set_credential('elsewhere', 'k'), sbx_set_credential('usual', 'k');
SELECT provider_id, eligible, reason FROM sbx_route_explain();
ALTER ROLE regress_sbx_chief NOSUPERUSER;
SELECT provider_id, rejections, reason FROM sbx_route_explain();
SELECT * FROM sbx_route();
ALTER ROLE regress_sbx_chief SUPERUSER;
SELECT * FROM sbx_route();
BEGIN;
ALTER ROLE regress_sbx_chief NOSUPERUSER;
SELECT * FROM sbx_route();
ROLLBACK;
SELECT * FROM sbx_route();
SELECT line FROM sbx_route_explain_text() line WHERE line !~ 'Signals';
ALTER ROLE regress_sbx_chief NOSUPERUSER;
SELECT line FROM sbx_route_explain_text() line WHERE line !~ 'Signals';
-- Rule: disabled stays disabled, whoever answers for it.
UPDATE sbx_provider SET enabled = false WHERE id = 'elsewhere';
SELECT reason FROM sbx_route_explain() WHERE provider_id = 'elsewhere';
-- Rule: a role that is gone is no superuser.
UPDATE sbx_provider SET enabled = true, registered_by = 'regress_sbx_chief' WHERE id = 'elsewhere';
DROP ROLE regress_sbx_chief;
SELECT provider_id, rejections FROM sbx_route_explain();
UPDATE sbx_provider SET registered_by = quote_ident(current_user)::regrole WHERE id = 'elsewhere';
SELECT * FROM sbx_route();
SELECT sbx_clear_credentials();

--
-- The extension itself
--
-- Rule: registrations go with the extension and come with it, in one session.
SELECT regress_pools();
DROP FUNCTION regress_pools();
BEGIN;
DROP EXTENSION sbx_router;
CREATE EXTENSION sbx_router;
SELECT count(*) FROM sbx_route_explain();
SELECT sbx_register_provider('second', 'daytona');
SELECT provider_id FROM sbx_route_explain();
SAVEPOINT s;
DROP EXTENSION sbx_router;
CREATE EXTENSION sbx_router;
SELECT sbx_register_provider('third', 'daytona');
SELECT provider_id FROM sbx_route_explain();
ROLLBACK TO s;
SELECT provider_id FROM sbx_route_explain();
ROLLBACK;
SELECT provider_id FROM sbx_route_explain();
-- Rule: the schema may be renamed, and renamed back.
BEGIN;
ALTER SCHEMA public RENAME TO regress_home;
SELECT provider_id FROM regress_home.sbx_route_explain();
UPDATE regress_home.sbx_provider SET signals = '{"estimatedCost":20}' WHERE id = 'usual';
SELECT provider_id, signals -> 'estimatedCost' FROM regress_home.sbx_route_explain();
SELECT regress_home.sbx_update_provider('usual', signals => '{"estimatedCost":21}');
SELECT provider_id, signals -> 'estimatedCost' FROM regress_home.sbx_route_explain();
ROLLBACK;
SELECT provider_id, signals -> 'estimatedCost' FROM sbx_route_explain();
-- Rule: a new session begins with what there is.
\c -
SELECT provider_id, signals -> 'estimatedCost' FROM public.sbx_route_explain();

--
-- Many
--
-- Rule: 10,000 registrations are read once, and kept.
DELETE FROM sbx_provider;
INSERT INTO sbx_provider (id, kind, signals) SELECT 'p' || i, 'daytona', jsonb_build_object('estimatedCost', i) FROM generate_series(1, 10000) i;
SELECT count(*), count(*) FILTER (WHERE rejections = '{CREDENTIALS}') FROM sbx_route_explain();
SELECT sbx_set_credential('p' || i, 'k') FROM generate_series(2, 5) i;
SELECT * FROM sbx_route('{"routing":{"strategy":"cost"}}');
UPDATE sbx_provider SET signals = '{"estimatedCost":4.5}' WHERE id = 'p2';
SELECT * FROM sbx_route('{"routing":{"strategy":"cost"}}');
SELECT count(*), bool_and(winner = 'p3') FROM (SELECT (SELECT provider_id FROM sbx_route_explain(jsonb_build_object('routing', '{"strategy":"cost"}'::jsonb, 'idempotencyKey', 'k' || i)) WHERE position = 1) AS winner FROM generate_series(1, 2) i) s;
SELECT sbx_clear_credentials();
SET client_min_messages = warning;
TRUNCATE sbx_provider CASCADE;
RESET client_min_messages;
SELECT count(*) FROM sbx_route_explain();
DROP FUNCTION regress_break(text), regress_try(text);
