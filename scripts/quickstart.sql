-- The SQL part of scripts/quickstart.  :emulator is where the emulator listens.
\pset footer off
\pset pager off
\pset linestyle ascii
\pset border 1
\set ECHO none
\set settings '{"apiUrl":"' :emulator '/daytona/api"}'

\echo
\echo '-- Two pools of one provider: a small one, and a larger and dearer one.'
\o /dev/null
\set ECHO queries
SELECT sbx_register_provider('daytona-small', 'daytona', :'settings',
         '{"resources":{"cpu":2,"memoryMb":4096}}', '{"estimatedCost":0.05}');
SELECT sbx_register_provider('daytona-large', 'daytona', :'settings',
         '{"resources":{"cpu":8,"memoryMb":16384}}', '{"estimatedCost":0.20}');
SELECT sbx_set_credential('daytona-small', 'dtn_quickstart'),
       sbx_set_credential('daytona-large', 'dtn_quickstart');
\set ECHO none
\o

\echo
\echo '-- Which pool wins, and why?'
\set ECHO queries
SELECT position, provider_id, eligible, score, cost_part, reason FROM sbx_route_explain('{}');
SELECT position, provider_id, eligible, rejections, reason
  FROM sbx_route_explain('{"resources":{"cpu":4}}');
\set ECHO none

\echo '-- Provision a sandbox, run a script in it, look at it, destroy it.'
\set ECHO queries
SELECT sbx_provision('{"resources":{"cpu":4},"launch":{"name":"hello"}}') AS id \gset
\set ECHO none
\echo '  id =' :id
\echo
\set ECHO queries
SELECT * FROM sbx_run_script(:'id', 'echo hello from $(uname -s)');
SELECT id, provider_id, name, labels, state FROM sbx_sandboxes;
SELECT sbx_destroy(:'id');
SELECT count(*) AS sandboxes_left FROM sbx_sandboxes;
\set ECHO none

\echo '-- All six systems, each where the emulator has it; of the pools before none is left.'
\o /dev/null
\set ECHO queries
SELECT sbx_unregister_provider(id) FROM sbx_provider;
SELECT sbx_register_provider(kind, kind, replace(settings, 'EMULATOR', :'emulator')::jsonb,
         '{"resources":{"cpu":2,"memoryMb":4096}}', jsonb_build_object('estimatedCost', cost))
  FROM (VALUES
    ('daytona',      0.06, '{"apiUrl":"EMULATOR/daytona/api"}'),
    ('e2b',          0.05, '{"apiUrl":"EMULATOR/e2b","sandboxUrl":"EMULATOR/e2b-envd"}'),
    ('vercel',       0.04, '{"apiUrl":"EMULATOR/vercel"}'),
    ('agent37',      0.08, '{"apiUrl":"EMULATOR/agent37","instanceUrl":"EMULATOR/agent37-instance"}'),
    ('freestyle',    0.03, '{"apiUrl":"EMULATOR/freestyle"}'),
    ('microsandbox', 0.07, '{"apiUrl":"EMULATOR/microsandbox","image":"alpine"}')
  ) AS pool(kind, cost, settings);
SELECT sbx_set_credential(id, 'quickstart') FROM sbx_provider WHERE kind <> 'vercel';
SELECT sbx_set_credential('vercel', '{"token":"quickstart","teamId":"team_1","projectId":"prj_1"}');
\set ECHO none
\o

\echo
\echo '-- In which order would they be asked?'
\set ECHO queries
SELECT position, provider_id, score::numeric(3, 2), reason
  FROM sbx_route_explain('{"resources":{"cpu":2},"routing":{"strategy":"cost"}}');
\set ECHO none

\echo '-- A sandbox on each of them, a script in all of them at the same time, and away.'
\o /dev/null
\set ECHO queries
CREATE TEMPORARY TABLE fleet AS
  SELECT id AS provider, sbx_provision(jsonb_build_object('providerId', id)) AS sandbox FROM sbx_provider;
\set ECHO none
\o
\set ECHO queries
SELECT provider, exit_code, output
  FROM sbx_run_script_many((SELECT array_agg(sandbox::text) FROM fleet), 'echo $((6 * 7)) from $(uname -s)') AS ran
  JOIN fleet ON fleet.sandbox = ran.id ORDER BY provider;
SELECT count(*) FILTER (WHERE destroyed) AS destroyed, count(error_code) AS failed
  FROM sbx_destroy_many((SELECT array_agg(sandbox::text) FROM fleet));
\set ECHO none
