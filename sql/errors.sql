--
-- ERRORS
-- What goes wrong without any network, or with a port that nobody listens on.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_owner, regress_sbx_stranger;
RESET client_min_messages;

CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN state || ' ' || message || COALESCE(E'\n    ' || NULLIF(detail, ''), '')
		|| COALESCE(E'\n    HINT: ' || NULLIF(hint, ''), '');
END $$;
\pset format unaligned
\pset tuples_only on

--
-- SB003: nowhere to go
--
-- Rule: no pool at all: how to register one.
SELECT regress_try($$SELECT sbx_provision()$$);
-- Rule: pools, but none fits: every pool with all its codes, by id.
SELECT count(sbx_register_provider(id, 'daytona')) FROM (VALUES ('b'), ('a'), ('B')) v(id);
SELECT regress_try($$SELECT sbx_provision('{"providerId":"a","resources":{"cpu":1},"requires":{"requiredCapabilities":["pty"]}}')$$);
-- Rule: missing credentials alone are SB003 too.
SELECT regress_try($$SELECT sbx_provision()$$);
SELECT regress_try($$SELECT sbx_provision('{"providerId":"nobody"}')$$);
-- Rule: sbx_route just has no rows then.  must not fire
SELECT count(*) FROM sbx_route();

--
-- SB001 for arguments
--
SELECT sbx_set_credential('a', 'k');
-- must fire
SELECT id, regress_try(format('SELECT sbx_provision(%L, NULL, %L)', '{}', id))
FROM (VALUES (''), ('x'), ('sbx_'), ('sbx_0123456789abcdef0123456789abcde'), ('sbx_0123456789abcdef0123456789abcdef0'),
	  ('sbx_0123456789ABCDEF0123456789abcdef'), (E'sbx_0123456789abcdef0123456789abcdef\n')) v(id);
-- Rule: an id that is in use, whosesoever it is.
CREATE ROLE regress_sbx_owner;
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner) VALUES
	('sbx_00000000000000000000000000000001', 'a', 'mine', 'started', '{}', quote_ident(current_user)::regrole),
	('sbx_00000000000000000000000000000002', 'b', 'mine', 'started', '{}', quote_ident(current_user)::regrole),
	('sbx_00000000000000000000000000000003', 'a', 'theirs', 'started', '{}', 'regress_sbx_owner');
SELECT regress_try($$SELECT sbx_provision('{}', NULL, 'sbx_00000000000000000000000000000001')$$);
SELECT regress_try($$SELECT sbx_provision('{}', NULL, 'sbx_00000000000000000000000000000003')$$);
-- Rule: a policy's defaults are part of the request, so an unknown policy comes first;
-- then a malformed request, one that is not routed, one that asks for what is not built,
-- and the id.
SELECT regress_try($$SELECT sbx_provision('{"x":1}', 'policy', 'bad')$$);
SELECT sbx_set_policy('policy');
SELECT request, regress_try(format('SELECT sbx_provision(%L, %L, %L)', request, 'policy', 'bad')) FROM (VALUES
	('{"x":1}'), ('{"placement":{"authority":"fleet"},"idempotencyKey":"k"}'), ('{"idempotencyKey":"k"}'), ('{}')) v(request);
SELECT sbx_drop_policy('policy');

--
-- SB010: unknown sandbox, always in the same words
--
CREATE ROLE regress_sbx_stranger;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_sbx_stranger;
SET ROLE regress_sbx_stranger;
-- must fire: malformed, unknown, somebody else's
SELECT call, replace(regress_try(format(call, id)), id, '<id>')
FROM (VALUES ('SELECT sbx_get(%L)'), ('SELECT sbx_destroy(%L)'), ('SELECT sbx_run_script(%L, ''true'')')) c(call),
	 (VALUES ('bad!'), ('sbx_'), ('sbx_0123456789ABCDEF0123456789ABCDEF'), ('sbx_0123456789abcdef0123456789abcdef'),
	  ('sbx_00000000000000000000000000000003')) v(id);
SELECT regress_try($$SELECT sbx_get('')$$);
RESET ROLE;
-- Rule: NULL in, NULL out.
SELECT sbx_get(NULL) IS NULL, sbx_destroy(NULL) IS NULL, sbx_run_script(NULL, 'true') IS NULL;

--
-- SB011: no credential for a sandbox that exists
--
-- must fire
SELECT regress_try($$SELECT sbx_get('sbx_00000000000000000000000000000002')$$);
SELECT regress_try($$SELECT sbx_destroy('sbx_00000000000000000000000000000002')$$);
SELECT regress_try($$SELECT sbx_run_script('sbx_00000000000000000000000000000002', 'true')$$);
-- ... and the rows are still there
SELECT id, provider_id FROM sbx_sandboxes ORDER BY id;

--
-- Arguments of sbx_run_script.  What is valid gets as far as SB010.
--
\set unknown 'sbx_0123456789abcdef0123456789abcdef'
SELECT env, regress_try(format('SELECT sbx_run_script(%L, ''true'', %L)', :'unknown', env)) FROM (VALUES
	('{}'), (NULL), ('{"A":"b"}'), ('{"_a9":""}'), ('{"A":"two\nlines\t"}'),
	('[]'), ('null'), ('"x"'), ('{"A":1}'), ('{"A":null}'), ('{"A":{}}'), ('{"9A":"b"}'), ('{"A-B":"b"}'), ('{"A B":"b"}'), ('{"":"b"}')) v(env);
SELECT n, regress_try(format('SELECT sbx_run_script(%L, ''true'', %L)', :'unknown',
	(SELECT jsonb_object_agg('E' || i, 'x') FROM generate_series(1, n) i))) FROM (VALUES (64), (65)) v(n);
SELECT cwd, regress_try(format('SELECT sbx_run_script(%L, ''true'', cwd => %L)', :'unknown', cwd)) FROM (VALUES
	('/'), ('/home/me'), ('/with space'), (NULL), (''), ('relative'), ('~'), (E'/a\nb'), (E'/a\x01')) v(cwd);
SELECT timeout, regress_try(format('SELECT sbx_run_script(%L, ''true'', timeout => %L)', :'unknown', timeout)) FROM (VALUES
	('1 ms'), ('1 s'), ('24:00'), ('1 day'), (NULL),
	('0'), ('-1 s'), ('999 us'), ('24:00:00.001'), ('1 day 1 s'), ('1 mon'), ('-1 mon 30 days'), ('1000000 years'), ('-1000000 years')) v(timeout);
SELECT command, regress_try(format('SELECT sbx_run_script(%L, %L)', :'unknown', command)) FROM (VALUES
	('true'), (E'#!/bin/sh\necho "two lines"\n'), (' '), (''), (NULL)) v(command);
SELECT n, regress_try(format('SELECT sbx_run_script(%L, %L)', :'unknown', repeat('x', n))) FROM (VALUES (1048576), (1048577)) v(n);
SELECT session, regress_try(format('SELECT sbx_run_script(%L, ''true'', session => %L)', :'unknown', session)) FROM (VALUES
	(NULL), ('s'), ('entrypoint'), ('a b')) v(session);
-- Rule: of several faults the first argument's is named.
SELECT regress_try(format('SELECT sbx_run_script(%L, '''', ''[]'', '''', ''0'', ''s'')', 'x'));
SELECT regress_try(format('SELECT sbx_run_script(%L, ''true'', ''[]'', '''', ''0'', ''s'')', 'x'));
SELECT regress_try(format('SELECT sbx_run_script(%L, ''true'', ''{}'', '''', ''0'', ''s'')', 'x'));
SELECT regress_try(format('SELECT sbx_run_script(%L, ''true'', ''{}'', ''/'', ''0'', ''a b'')', 'x'));
SELECT regress_try(format('SELECT sbx_run_script(%L, ''true'', ''{}'', ''/'', ''1 s'', ''a b'')', 'x'));

--
-- Where effects are not allowed: refused before anything else is looked at
--
\set bad_request '{"x":1}'
-- 25006.  must fire
BEGIN READ ONLY;
SELECT regress_try(format('SELECT sbx_provision(%L)', :'bad_request'));
SELECT regress_try($$SELECT sbx_run_script('x', '')$$);
SELECT regress_try($$SELECT sbx_destroy('x')$$);
SELECT regress_try($$SELECT sbx_register_provider('ro', 'daytona')$$);
SELECT regress_try($$SELECT sbx_update_provider('a', false)$$);
SELECT regress_try($$SELECT sbx_unregister_provider('B')$$);
-- must not fire
SELECT regress_try($$SELECT sbx_get('x')$$);
SELECT regress_try($$SELECT sbx_set_credential('a', 'k')$$);
SELECT regress_try($$SELECT sbx_new_id()$$);
SELECT regress_try($$SELECT * FROM sbx_recent_events()$$);
COMMIT;
-- security-restricted operations.  must fire
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_provision('{"x":1}') AS id;
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_destroy('x') AS gone;
CREATE MATERIALIZED VIEW regress_matview AS SELECT (sbx_run_script('x', '')).exit_code;
CREATE FUNCTION regress_immutable(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN sbx_provision($1::jsonb); END $$;
CREATE TABLE regress_table (request text);
INSERT INTO regress_table SELECT '{"x":1}' FROM generate_series(1, 1000);
CREATE INDEX ON regress_table (regress_immutable(request));
-- must not fire: the same, elsewhere, gets as far as the request
SELECT regress_try('SELECT regress_immutable(request) FROM regress_table LIMIT 1');
-- in a parallel plan.  must fire
CREATE FUNCTION regress_parallel(text) RETURNS text PARALLEL SAFE LANGUAGE plpgsql COST 100000 AS
	$$ BEGIN RETURN sbx_provision($1::jsonb); END $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
ANALYZE regress_table;
SELECT count(regress_parallel(request)) FROM regress_table;
-- must not fire: parallelism is avoided where the function is called directly
SELECT count(sbx_provision(request::jsonb)) FROM regress_table;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
DROP TABLE regress_table;
DROP FUNCTION regress_immutable(text), regress_parallel(text);

--
-- SB005: a launch that fails
--
DELETE FROM sbx_mapping;
SELECT sbx_clear_credentials();
\c -
\set VERBOSITY default
\pset format unaligned
\pset tuples_only on
SELECT count(*) FROM sbx_recent_events();
-- Rule: nobody listens there: proven that nothing was made.
SELECT sbx_register_provider('refused', 'daytona', '{"apiUrl":"http://127.0.0.1:1/api"}');
SELECT sbx_set_credential('refused', 's3cr3t');
SET sbx_router.allow_private_addresses = on;
SELECT sbx_provision('{"providerId":"refused"}');
-- Rule: loopback is refused where private addresses are not allowed.
SET sbx_router.allow_private_addresses = off;
SELECT sbx_provision('{"providerId":"refused"}');
-- Rule: and every other address that is not public, without a packet being sent.
SELECT sbx_register_provider(id, 'daytona', jsonb_build_object('apiUrl', url)), sbx_set_credential(id, 'k') FROM (VALUES
	('metadata', 'https://169.254.169.254/'), ('private', 'https://10.0.0.1'), ('shared', 'https://100.64.0.1'),
	('docs', 'https://192.0.2.1'), ('six', 'https://[fd00::1]'), ('mapped', 'https://[::ffff:127.0.0.1]:1'),
	('http', 'http://192.0.2.1/')) v(id, url);
\set VERBOSITY terse
SELECT id, regress_try(format('SELECT sbx_provision(%L)', jsonb_build_object('providerId', id)))
FROM (VALUES ('metadata'), ('private'), ('shared'), ('docs'), ('six'), ('mapped')) v(id);
-- Rule: plain http goes to loopback only.
SELECT regress_try($$SELECT sbx_provision('{"providerId":"http"}')$$);
SET sbx_router.allow_private_addresses = on;
SELECT regress_try($$SELECT sbx_provision('{"providerId":"http"}')$$);
-- Rule: one's own id is free again.
SELECT regress_try($$SELECT sbx_provision('{"providerId":"refused"}', id => 'sbx_0123456789abcdef0123456789abcdef')$$);
SELECT regress_try($$SELECT sbx_provision('{"providerId":"refused"}', id => 'sbx_0123456789abcdef0123456789abcdef')$$);
-- Rule: a transaction goes on after a savepoint.
BEGIN;
SAVEPOINT s;
SELECT sbx_provision('{"providerId":"refused"}');
ROLLBACK TO SAVEPOINT s;
SELECT count(*) FROM sbx_mapping;
COMMIT;
-- Rule: nothing is left, and only superusers loosen the rules.
SELECT count(*) FROM sbx_mapping;
SET ROLE regress_sbx_stranger;
SET sbx_router.allow_private_addresses = on;
SET sbx_router.allow_http = on;
SET sbx_router.proxy = 'http://127.0.0.1:1';
SET sbx_router.ca_file = '/dev/null';
SET sbx_router.max_response = '1MB';
SET sbx_router.abort_cleanup_timeout = '1s';
RESET ROLE;
-- Rule: the same for operations on a sandbox: SB008, and the row stays.
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner) VALUES
	('sbx_00000000000000000000000000000001', 'refused', 'p', 'started', '{}', quote_ident(current_user)::regrole);
SELECT regress_try($$SELECT sbx_get('sbx_00000000000000000000000000000001')$$);
SELECT regress_try($$SELECT sbx_run_script('sbx_00000000000000000000000000000001', 'true')$$);
SET statement_timeout = '10s';
SELECT regress_try($$SELECT sbx_destroy('sbx_00000000000000000000000000000001')$$);
RESET statement_timeout;
SELECT id, state FROM sbx_mapping;
DELETE FROM sbx_mapping;
-- Rule: no route is planned where there is none; the event says so.
SELECT regress_try($$SELECT sbx_provision('{"providerId":"nobody"}')$$);
-- Rule: the events of all that, in order.  An id where a launch was tried, the same
-- in its events.
\pset format aligned
\pset tuples_only off
SELECT event, provider_id, attempt, detail, sbx_id IS NOT NULL AS has_id,
	   CASE WHEN sbx_id IS NOT NULL THEN dense_rank() OVER (PARTITION BY sbx_id IS NULL ORDER BY first) END AS launch
FROM (SELECT *, min(n) OVER (PARTITION BY sbx_id) AS first
	  FROM sbx_recent_events() WITH ORDINALITY e(at, event, sbx_id, provider_id, attempt, detail, n)) s
ORDER BY n;
SELECT bool_and(at <= clock_timestamp()) AND bool_and(at >= pg_postmaster_start_time()) AS sane,
	   count(*) FILTER (WHERE at < previous) AS out_of_order
FROM (SELECT at, lag(at) OVER (ORDER BY n) AS previous
	  FROM sbx_recent_events() WITH ORDINALITY e(at, event, sbx_id, provider_id, attempt, detail, n)) s;
-- Rule: at most 256 are kept, the latest.
DO $$ BEGIN FOR i IN 1..300 LOOP
	BEGIN PERFORM sbx_provision('{"providerId":"nobody"}'); EXCEPTION WHEN SQLSTATE 'SB003' THEN NULL; END;
END LOOP; END $$;
SELECT event, count(*) FROM sbx_recent_events() GROUP BY event;

SELECT sbx_clear_credentials();
DELETE FROM sbx_provider;
DROP OWNED BY regress_sbx_stranger, regress_sbx_owner;
DROP ROLE regress_sbx_stranger, regress_sbx_owner;
DROP FUNCTION regress_try(text);
