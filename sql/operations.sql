--
-- OPERATIONS
-- Detached provisioning, readiness, find, start, stop, scripts in the background,
-- files: arguments, and what goes wrong without any network.
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
-- The same in short: what gets as far as the look-up of the sandbox passed the checks
-- of its arguments.
CREATE FUNCTION regress_check(statement text, VARIADIC arguments text[]) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN outcome LIKE 'SB010 sandbox %' THEN 'passed'
		   ELSE replace(outcome, E'\n   ', '') END
	FROM regress_try(format(statement, VARIADIC arguments)) outcome
$$;
CREATE ROLE regress_sbx_owner;
CREATE ROLE regress_sbx_stranger;
-- Nobody listens on port 1.  There is a credential for the first pool only.
SELECT count(sbx_register_provider(id, 'daytona', '{"apiUrl":"http://127.0.0.1:1/api"}')) FROM (VALUES ('refused'), ('keyless')) v(id);
SELECT sbx_set_credential('refused', 'k');
SET sbx_router.allow_private_addresses = on;
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner) VALUES
	('sbx_00000000000000000000000000000001', 'refused', 'mine', 'starting', '{}', quote_ident(current_user)::regrole),
	('sbx_00000000000000000000000000000002', 'keyless', 'mine', 'starting', '{}', quote_ident(current_user)::regrole),
	('sbx_00000000000000000000000000000003', 'refused', 'theirs', 'starting', '{}', 'regress_sbx_owner');
CREATE TABLE regress_calls (n int, call text);
INSERT INTO regress_calls VALUES
	(1, 'SELECT sbx_wait_ready(%L)'), (2, 'SELECT sbx_start(%L)'), (3, 'SELECT sbx_stop(%L)'),
	(4, 'SELECT sbx_run_script(%L, ''true'', session => ''s'')'), (5, 'SELECT sbx_start_script(%L, ''true'')'),
	(6, 'SELECT sbx_script_status(%L, ''s'', ''c'')'), (7, 'SELECT sbx_script_logs(%L, ''s'', ''c'')'),
	(8, 'SELECT sbx_upload(%L, ''file'', ''content'')'), (9, 'SELECT sbx_download(%L, ''file'')');
GRANT SELECT ON regress_calls TO regress_sbx_stranger;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_sbx_stranger;
\pset format unaligned
\pset tuples_only on

--
-- Which sandbox
--
-- SB010, always in the same words.  must fire: malformed, unknown, somebody else's
SET ROLE regress_sbx_stranger;
SELECT call, outcome, string_agg(what, ', ') FROM regress_calls,
	 (VALUES ('malformed', 'bad!'), ('unknown', 'sbx_0123456789abcdef0123456789abcdef'), ('theirs', 'sbx_00000000000000000000000000000003'),
	  ('of another', 'sbx_00000000000000000000000000000001')) v(what, id),
	 LATERAL replace(regress_try(format(call, id)), id, '<id>') outcome
GROUP BY n, call, outcome ORDER BY n, outcome;
RESET ROLE;
-- SB011.  must fire
SELECT call, regress_try(format(call, 'sbx_00000000000000000000000000000002')) FROM regress_calls ORDER BY n;
-- Rule: NULL in, NULL out ...
SELECT sbx_wait_ready(NULL) IS NULL, sbx_start(NULL) IS NULL, sbx_stop(NULL) IS NULL, sbx_start_script(NULL, 'true') IS NULL,
	   sbx_script_logs(NULL, 's', 'c') IS NULL, sbx_script_logs('x', NULL, 'c') IS NULL, sbx_script_logs('x', 's', NULL) IS NULL,
	   sbx_upload(NULL, 'p', '') IS NULL, sbx_upload('x', NULL, '') IS NULL, sbx_upload('x', 'p', NULL) IS NULL,
	   sbx_download(NULL, 'p') IS NULL, sbx_download('x', NULL) IS NULL;
-- ... but not where NULL says that a script is still running.  must fire
SELECT call, regress_try(call) FROM (VALUES
	('SELECT sbx_script_status(NULL, ''s'', ''c'')'), ('SELECT sbx_script_status(''x'', NULL, ''c'')'),
	('SELECT sbx_script_status(''x'', ''s'', NULL)')) v(call);

--
-- sbx_provision_detached: the checks of sbx_provision
--
-- must fire
SELECT regress_try($$SELECT sbx_provision_detached(NULL)$$);
SELECT regress_try($$SELECT sbx_provision_detached('{"x":1}')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{"placement":{"authority":"fleet"}}')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{"idempotencyKey":"k"}')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{}', 'nobody')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{}', NULL, 'bad')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{}', NULL, 'sbx_00000000000000000000000000000001')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{"providerId":"nobody"}')$$);
-- Rule: nothing was launched, and one's own id is free again.
SELECT regress_try($$SELECT sbx_provision_detached(id => 'sbx_0123456789abcdef0123456789abcdef')$$);
SELECT regress_try($$SELECT sbx_provision_detached(id => 'sbx_0123456789abcdef0123456789abcdef')$$);
SELECT count(*) FROM sbx_mapping WHERE id = 'sbx_0123456789abcdef0123456789abcdef';

--
-- Times.  must not fire up to the day, must fire outside
--
\set unknown 'sbx_0123456789abcdef0123456789abcdef'
SELECT timeout, regress_check('SELECT sbx_wait_ready(%L, %L)', :'unknown', timeout),
	   regress_check('SELECT sbx_start_script(%L, ''true'', timeout => %L)', :'unknown', timeout) FROM (VALUES
	('1 ms'), ('1 s'), ('1 day'), (NULL),
	('0'), ('-1 s'), ('999 us'), ('24:00:00.001'), ('1 mon'), ('-1000000 years')) v(timeout);

--
-- Names of sessions
--
SELECT name, regress_check('SELECT sbx_run_script(%L, ''true'', session => %L)', :'unknown', name),
	   regress_check('SELECT sbx_start_script(%L, ''true'', session => %L)', :'unknown', name),
	   regress_check('SELECT sbx_script_status(%L, %L, ''c'')', :'unknown', name),
	   regress_check('SELECT sbx_script_logs(%L, %L, ''c'')', :'unknown', name)
FROM (VALUES ('s'), ('A-b_9'), ('-'), ('Entrypoint'), ('entrypoint2'), (repeat('x', 64)),
	  (''), ('entrypoint'), (repeat('x', 65)), ('a b'), ('a.b'), ('a/b'), ('..'), ('ž'), (E'a\nb'), ('%2e'), ('*')) v(name);
-- Rule: a session is optional where a script is started.  must not fire
SELECT regress_check('SELECT sbx_run_script(%L, ''true'', session => NULL)', :'unknown'),
	   regress_check('SELECT sbx_start_script(%L, ''true'', session => NULL)', :'unknown');
-- Ids of commands: the provider's own, so longer ones and any word.
SELECT left(id, 20), length(id), regress_check('SELECT sbx_script_status(%L, ''s'', %L)', :'unknown', id),
	   regress_check('SELECT sbx_script_logs(%L, ''s'', %L)', :'unknown', id)
FROM (VALUES ('c'), ('0b5a7c9d-1111-4222-8333-444455556666'), ('1234'), ('entrypoint'), (repeat('x', 128)),
	  (''), (repeat('x', 129)), ('a/b'), ('..'), ('a b'), (E'a\n')) v(id);

--
-- sbx_start_script: the rules of sbx_run_script
--
SELECT env, regress_check('SELECT sbx_start_script(%L, ''true'', %L)', :'unknown', env) FROM (VALUES
	('{}'), (NULL), ('{"A":"b"}'), ('[]'), ('{"A":1}'), ('{"9A":"b"}')) v(env);
SELECT cwd, regress_check('SELECT sbx_start_script(%L, ''true'', cwd => %L)', :'unknown', cwd) FROM (VALUES
	('/'), (NULL), (''), ('relative'), (E'/a\nb')) v(cwd);
SELECT command, regress_check('SELECT sbx_start_script(%L, %L)', :'unknown', command) FROM (VALUES ('true'), (''), (NULL)) v(command);
SELECT n, regress_check('SELECT sbx_start_script(%L, %L)', :'unknown', repeat('x', n)) FROM (VALUES (1048576), (1048577)) v(n);

--
-- Files
--
SELECT left(path, 20), octet_length(path), regress_check('SELECT sbx_upload(%L, %L, ''x'')', :'unknown', path),
	   regress_check('SELECT sbx_download(%L, %L)', :'unknown', path)
FROM (VALUES ('file'), ('/tmp/file'), ('a b'), ('~'), ('../x'), ('žluťoučký 🐘'), (repeat('x', 4096)), (repeat('ž', 2048)),
	  (''), (repeat('x', 4097)), (repeat('ž', 2049)), (E'a\nb'), (E'\x01'), (E'a\x7f')) v(path);
-- Rule: what is longer than sbx_router.max_file_size is refused, what is just as long
-- is not, stored compressed or not.
SET sbx_router.max_file_size = '8kB';
CREATE TABLE regress_files (n int, content bytea);
INSERT INTO regress_files SELECT n, convert_to(repeat('x', n), 'UTF8') FROM (VALUES (0), (1), (8192), (8193), (10000000)) v(n);
SELECT n, regress_try(format('SELECT sbx_upload(%L, ''file'', content) FROM regress_files WHERE n = %s', :'unknown', n)) FROM regress_files ORDER BY n;
RESET sbx_router.max_file_size;
-- must not fire
SELECT n, regress_check('SELECT sbx_upload(%L, ''file'', content) FROM regress_files WHERE n = %s', :'unknown', n::text) FROM regress_files ORDER BY n;
DROP TABLE regress_files;

--
-- sbx_find
--
-- must fire
SELECT regress_try($$SELECT * FROM sbx_find(NULL, '{}')$$);
SELECT regress_try($$SELECT * FROM sbx_find('nobody', '{}')$$);
SELECT regress_try($$SELECT * FROM sbx_find('keyless', '{}')$$);
SELECT labels, regress_try(format('SELECT * FROM sbx_find(''keyless'', %L)', labels)) FROM (VALUES
	(NULL), ('null'), ('[]'), ('"x"'), ('{"a":1}'), ('{"a":null}'), ('{"a":{}}'), ('{"a":""}'), ('{"":"b"}'), ('{"a":"b\n"}')) v(labels);
SELECT n, regress_try(format('SELECT * FROM sbx_find(''keyless'', %L)',
	(SELECT jsonb_object_agg('l' || i, 'x') FROM generate_series(1, n) i))) FROM (VALUES (64), (65)) v(n);
-- must not fire: gets as far as the credential
SELECT labels, regress_try(format('SELECT * FROM sbx_find(''keyless'', %L)', labels)) FROM (VALUES
	('{}'), ('{"a":"b"}'), ('{"sbx-router-id":"x"}'), ('{"ž":"🐘"}')) v(labels);
-- Rule: a faulty provider is named before faulty labels.
SELECT regress_try($$SELECT * FROM sbx_find('nobody', '[]')$$);

--
-- Where effects are not allowed: refused before anything else is looked at
--
-- 25006.  must fire
BEGIN READ ONLY;
SELECT call, regress_try(call) FROM (VALUES
	('SELECT sbx_provision_detached(''{"x":1}'')'), ('SELECT sbx_start(''x'')'), ('SELECT sbx_stop(''x'')'),
	('SELECT sbx_start_script(''x'', '''')'), ('SELECT sbx_upload(''x'', '''', '''')')) v(call);
-- must not fire
SELECT call, regress_try(call) FROM (VALUES
	('SELECT sbx_wait_ready(''x'')'), ('SELECT sbx_script_status(''x'', ''s'', ''c'')'), ('SELECT sbx_script_logs(''x'', ''s'', ''c'')'),
	('SELECT sbx_download(''x'', ''p'')'), ('SELECT * FROM sbx_find(''nobody'', ''{}'')')) v(call);
COMMIT;
-- security-restricted operations.  must fire
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_provision_detached('{"x":1}') AS id;
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_start('x')::text AS nothing;
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_stop('x')::text AS nothing;
CREATE MATERIALIZED VIEW regress_matview AS SELECT (sbx_start_script('x', '')).session_id;
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_upload('x', '', '')::text AS nothing;
-- must not fire
CREATE MATERIALIZED VIEW regress_matview AS SELECT sbx_download('x', 'p') AS content;
CREATE MATERIALIZED VIEW regress_matview AS SELECT * FROM sbx_find('nobody', '{}');
-- Parallel workers.  must fire: all of them
CREATE TABLE regress_table AS SELECT 'x' AS id FROM generate_series(1, 1000);
CREATE FUNCTION regress_parallel(call text) RETURNS text PARALLEL SAFE LANGUAGE plpgsql COST 100000 AS
	$$ BEGIN EXECUTE call; RETURN NULL; END $$;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
SET parallel_leader_participation = off;
ANALYZE regress_table;
SELECT call, regress_try(format('SELECT count(regress_parallel(%L)) FROM regress_table WHERE id = ''x''', call)) FROM (VALUES
	('SELECT sbx_provision_detached()'), ('SELECT sbx_wait_ready(''x'')'), ('SELECT * FROM sbx_find(''x'', ''{}'')'),
	('SELECT sbx_start(''x'')'), ('SELECT sbx_stop(''x'')'), ('SELECT sbx_start_script(''x'', ''true'')'),
	('SELECT sbx_script_status(''x'', ''s'', ''c'')'), ('SELECT sbx_script_logs(''x'', ''s'', ''c'')'),
	('SELECT sbx_upload(''x'', ''p'', '''')'), ('SELECT sbx_download(''x'', ''p'')')) v(call);
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
RESET parallel_leader_participation;
DROP TABLE regress_table;
DROP FUNCTION regress_parallel(text);

--
-- SB008: nobody listens.  must fire: in whole sentences, and the row stays as it is
--
SELECT call, regress_try(format(call, 'sbx_00000000000000000000000000000001')) FROM regress_calls WHERE n > 3 ORDER BY n;
SELECT regress_try($$SELECT sbx_wait_ready('sbx_00000000000000000000000000000001', '200 ms')$$);
SELECT regress_try($$SELECT * FROM sbx_find('refused', '{}')$$);
SET sbx_router.allow_private_addresses = off;
SELECT regress_try($$SELECT * FROM sbx_find('refused', '{}')$$);
SELECT id, provider_sandbox_id, state FROM sbx_mapping ORDER BY id;

SELECT sbx_clear_credentials();
DELETE FROM sbx_mapping;
DELETE FROM sbx_provider;
DROP TABLE regress_calls;
DROP OWNED BY regress_sbx_stranger, regress_sbx_owner;
DROP ROLE regress_sbx_stranger, regress_sbx_owner;
DROP FUNCTION regress_try(text), regress_check(text, text[]);
