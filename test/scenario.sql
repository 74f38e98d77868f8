-- The life of a sandbox, from SQL: the same file for every provider kind.
--
--   psql -X -q -v kind=daytona -v settings='{"apiUrl":"..."}' -v credential=... -v lines=16384 <test/scenario.sql
--
-- lines: how many of 64 bytes the kind's output can have.  What it prints is compared with
-- test/scenario.out after ids were masked (t/015_scenario.pl); a kind without scripts in the
-- background leaves that part out.  Registers a pool "scenario" and removes it again.
\pset footer off
\pset pager off
\pset linestyle ascii
\pset border 1
\set ECHO none
\o /dev/null
SELECT sbx_register_provider('scenario', :'kind', :'settings');
SELECT sbx_set_credential('scenario', :'credential');
SELECT set_config('scenario.lines', :'lines', false);
SELECT 'startScript' = ANY (operations) AS background FROM sbx_provider_kinds() k WHERE k.kind = :'kind' \gset

-- The exit code of a script in the background, or NULL after a minute.
CREATE FUNCTION pg_temp.wait_end(id text, session_id text, command_id text) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
	exit_code integer;
	began timestamptz := clock_timestamp();
BEGIN
	LOOP
		exit_code := sbx_script_status(id, session_id, command_id);
		EXIT WHEN exit_code IS NOT NULL OR clock_timestamp() > began + interval '1 min';
		PERFORM pg_sleep(0.05);
	END LOOP;
	RETURN exit_code;
END $$;
\o

\echo '-- Created with labels and environment'
\set ECHO queries
SELECT sbx_provision('{"launch":{"name":"scenario","labels":{"purpose":"scenario"},"env":{"GIVEN":"at launch"}}}') AS id \gset
SELECT provider_id, name, labels, state FROM sbx_get(:'id');
SELECT provider_id, name, labels, state FROM sbx_sandboxes WHERE id = :'id';
\set ECHO none

\echo '-- Found by its labels'
\set ECHO queries
SELECT sbx_id = :'id' AS is_ours, provider_sandbox_id = (SELECT provider_sandbox_id FROM sbx_mapping WHERE id = :'id') AS same_id,
       labels ->> 'purpose' AS purpose, state, created_at BETWEEN now() - interval '1 hour' AND now() + interval '1 hour' AS recent
  FROM sbx_find('scenario', '{"purpose":"scenario"}');
SELECT count(*) FROM sbx_find('scenario', '{"purpose":"another"}');
\set ECHO none

\echo '-- Scripts'
\set ECHO queries
SELECT stdout, stderr, exit_code, truncated
  FROM sbx_run_script(:'id', 'pwd; echo "$GIVEN, $NOW"; echo trouble >&2', env => '{"NOW":"in the call"}', cwd => '/tmp');
SELECT stdout, stderr, exit_code FROM sbx_run_script(:'id', 'echo before; (exit 3)');
SELECT exit_code FROM sbx_run_script(:'id', 'no-such-command');
SELECT exit_code FROM sbx_run_script(:'id', 'sleep 1000', timeout => '1 s');
SELECT stdout FROM sbx_run_script(:'id', 'echo still here');
SELECT stdout FROM sbx_run_script(:'id', 'cd /tmp && export KEPT=kept; echo first', session => 'work');
SELECT stdout FROM sbx_run_script(:'id', 'pwd; echo $KEPT', session => 'work');
SELECT truncated, stdout = (SELECT string_agg(lpad(i::text, 63, '0') || E'\n', '' ORDER BY i) FROM generate_series(1, current_setting('scenario.lines')::integer) i) AS same
  FROM sbx_run_script(:'id', 'awk ''BEGIN { for (i = 1; i <= ENVIRON["LAST"]; i++) printf "%063d\n", i }''',
                      env => jsonb_build_object('LAST', current_setting('scenario.lines')));
\set ECHO none

\echo '-- All 256 byte values, up and down'
\set ECHO queries
CREATE TEMP TABLE bytes AS SELECT string_agg(set_byte('\x00', 0, i), '' ORDER BY i) AS content FROM generate_series(0, 255) i;
SELECT sbx_upload(:'id', '/tmp/scenario/folder/bytes', content) FROM bytes;
SELECT stdout FROM sbx_run_script(:'id', 'wc -c </tmp/scenario/folder/bytes');
SELECT sbx_download(:'id', '/tmp/scenario/folder/bytes') = content AS same FROM bytes;
SELECT sbx_upload(:'id', 'in-the-home-directory', 'kept');
SELECT stdout FROM sbx_run_script(:'id', 'cat "$HOME/in-the-home-directory"; echo');
SELECT sbx_download(:'id', '/tmp/scenario/folder/missing');
\set ECHO none

\if :background
\echo '-- A script in the background'
\set ECHO queries
CREATE TEMP TABLE started AS
SELECT * FROM sbx_start_script(:'id', 'until [ -f /tmp/go ]; do sleep 0.05; done; echo gone; (exit 5)', session => 'scenario');
SELECT session_id, reconciled, sbx_script_status(:'id', session_id, command_id) IS NULL AS running FROM started;
SELECT again.command_id = started.command_id AS same, again.reconciled
  FROM started, sbx_start_script(:'id', 'until [ -f /tmp/go ]; do sleep 0.05; done; echo gone; (exit 5)', session => 'scenario') again;
SELECT sbx_start_script(:'id', 'another', session => 'scenario');
SELECT exit_code FROM sbx_run_script(:'id', 'touch /tmp/go');
SELECT pg_temp.wait_end(:'id', session_id, command_id) FROM started;
SELECT stdout, stderr, truncated FROM started, sbx_script_logs(:'id', session_id, command_id);
\set ECHO none

\endif
\echo '-- Stopped and started'
\set ECHO queries
SELECT sbx_stop(:'id');
SELECT state FROM sbx_get(:'id');
SELECT sbx_run_script(:'id', 'true');
SELECT sbx_start(:'id');
SELECT state FROM sbx_get(:'id');
SELECT convert_from(sbx_download(:'id', 'in-the-home-directory'), 'UTF8');
\set ECHO none

\echo '-- Destroyed, once'
\set ECHO queries
SELECT sbx_destroy(:'id');
SELECT sbx_destroy(:'id');
SELECT sbx_run_script(:'id', 'true');
SELECT sbx_get('sbx_00000000000000000000000000000000');
\set ECHO none

\echo '-- Not committed, not kept'
\set ECHO queries
BEGIN;
SELECT sbx_provision('{"launch":{"labels":{"purpose":"scenario"}}}') IS NOT NULL AS made;
ROLLBACK;
SELECT count(*) FROM sbx_find('scenario', '{"purpose":"scenario"}');
SELECT count(*) FROM sbx_sandboxes;
\set ECHO none

\o /dev/null
SELECT sbx_clear_credentials('scenario');
SELECT sbx_unregister_provider('scenario');
