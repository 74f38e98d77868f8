-- The SQL part of scripts/quickstart.  :api is the emulator's Daytona endpoint.
\pset footer off
\pset pager off
\pset linestyle ascii
\pset border 1
\set ECHO none
\set settings '{"apiUrl":"' :api '"}'

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
