--
-- REGISTRATION
-- Provider pools: what is accepted, what is refused (SB013) and with which path.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_plain, regress_sbx_chief;
RESET client_min_messages;

-- Runs one statement and says how it ended.
CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	-- a failing row would show who runs the test
	RETURN state || ' ' || message || COALESCE(E'\n    ' || NULLIF(substring(detail, '^(?!Failing row).*'), ''), '')
		|| COALESCE(E'\n    HINT: ' || NULLIF(hint, ''), '');
END $$;
-- Registers under a name of its own and takes the row away again.
CREATE FUNCTION regress_register(settings text, capabilities text DEFAULT NULL,
	signals text DEFAULT NULL, capacity text DEFAULT NULL, kind text DEFAULT 'daytona') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	result := regress_try(format('SELECT sbx_register_provider(%L, %L, %L, %L, %L, %L)',
		'p', kind, settings, capabilities, signals, capacity));
	DELETE FROM sbx_provider WHERE id = 'p';
	RETURN result;
END $$;

--
-- The kinds
--
SELECT kind, operations, credential FROM sbx_provider_kinds();
SELECT s.key, s.value ->> 'type' AS type, s.value ->> 'required' AS required,
	   s.value ->> 'superuser' AS superuser, s.value ->> 'minimum' AS minimum,
	   s.value ->> 'maximum' AS maximum
FROM sbx_provider_kinds() k, jsonb_each(k.settings) s
WHERE kind = 'daytona' ORDER BY s.key COLLATE "C";
SELECT count(*) AS without_description
FROM sbx_provider_kinds() k, jsonb_each(k.settings || k.credential) s
WHERE COALESCE(s.value ->> 'description', '') = '';

\pset format unaligned
\pset tuples_only on
--
-- Id
--
-- Rule: [A-Za-z0-9][A-Za-z0-9._-]{0,62}.  must not fire
SELECT id, regress_try(format('SELECT sbx_register_provider(%L, %L)', id, 'daytona'))
FROM (VALUES ('a'), ('Z'), ('0'), ('a.b_c-D9'), ('a.'), ('0-'), (repeat('x', 63))) v(id);
SELECT id FROM sbx_provider ORDER BY id;
DELETE FROM sbx_provider;
-- must fire
SELECT id, regress_try(format('SELECT sbx_register_provider(%L, %L)', id, 'daytona'))
FROM (VALUES (''), ('.a'), ('_a'), ('-a'), ('a b'), ('a/b'), ('a:b'), (E'a\n'), ('ä'),
	  (repeat('x', 64)), (NULL)) v(id);

--
-- Kind
--
SELECT kind, regress_try(format('SELECT sbx_register_provider(%L, %L)', 'p', kind))
FROM (VALUES ('daytona'), ('daytonna'), ('Daytona'), ('dytona'), ('kubernetes'), (''), (NULL)) v(kind);
-- Rule: kinds that are not built are not known: no half-registered pools of theirs.
SELECT regress_try($$SELECT sbx_register_provider('p2', 'nowhere')$$), regress_try($$SELECT sbx_register_provider('p2', 'e2b')$$);
DELETE FROM sbx_provider;

--
-- Settings
--
-- must not fire: each field at the ends of its range
SELECT settings, regress_register(settings) FROM (VALUES
	('{}'), (NULL),
	('{"apiUrl":"https://api.example.com/v1"}'), ('{"apiUrl":"http://localhost:3000"}'),
	('{"apiUrl":"https://[2001:db8::1]:8443/api/"}'),
	('{"snapshot":"s"}'), ('{"image":"debian:12"}'), ('{"image":null,"snapshot":"s"}'),
	('{"target":"eu"}'), ('{"homeDir":"/home/daytona"}'),
	('{"createTimeoutSeconds":1}'), ('{"createTimeoutSeconds":86400}'), ('{"createTimeoutSeconds":60.0}'),
	('{"createParams":{}}'), ('{"createParams":null}'),
	('{"createParams":{"autoStopInterval":0,"autoArchiveInterval":0,"autoDeleteInterval":-1}}'),
	('{"createParams":{"autoStopInterval":2147483647,"autoArchiveInterval":2147483647,"autoDeleteInterval":2147483647}}'),
	('{"image":"i","createParams":{"cpu":1,"memory":1,"disk":1}}'),
	('{"image":"i","createParams":{"cpu":4096,"memory":2147483647,"disk":2147483647}}'),
	('{"createParams":{"public":true,"networkBlockAll":false,"networkAllowList":"10.0.0.0/8","user":"u"}}')
) v(settings);

-- must fire: shape
SELECT settings, regress_register(settings) FROM (VALUES
	('[]'), ('"x"'), ('null'), ('1'), ('{"snapshots":"s"}'), ('{"apiurl":"https://x"}'),
	('{"nothingLikeIt":1}'), ('{"createParam":{}}'), ('{"cpu":1}'),
	('{"createParams":[]}'), ('{"createParams":"x"}'),
	('{"createParams":{"autoStopIntervall":1}}'), ('{"createParams":{"snapshot":"s"}}'),
	('{"createParams.cpu":1}')
) v(settings);
-- must fire: URL
SELECT settings, regress_register(settings) FROM (VALUES
	('{"apiUrl":""}'), ('{"apiUrl":1}'), ('{"apiUrl":"api.example.com"}'), ('{"apiUrl":"ftp://x"}'),
	('{"apiUrl":"file:///etc/passwd"}'), ('{"apiUrl":"https://"}'), ('{"apiUrl":"https:///x"}'),
	('{"apiUrl":"https://user:pw@x"}'), ('{"apiUrl":"https://x?y"}'), ('{"apiUrl":"https://x#y"}'),
	('{"apiUrl":"https://x y"}'), ('{"apiUrl":"https://x\\y"}'), ('{"apiUrl":"https://x\ny"}')
) v(settings);
SELECT length, regress_register(jsonb_build_object('apiUrl', 'https://' || repeat('x', length - 8))::text)
FROM (VALUES (2048), (2049)) v(length);
-- must fire: type, range, combinations
SELECT settings, regress_register(settings) FROM (VALUES
	('{"snapshot":1}'), ('{"snapshot":""}'), ('{"snapshot":"a\u0001"}'), ('{"image":["x"]}'),
	('{"image":"i","snapshot":"s"}'), ('{"image":"a b"}'),
	('{"target":true}'), ('{"homeDir":{}}'),
	('{"createTimeoutSeconds":0}'), ('{"createTimeoutSeconds":86401}'), ('{"createTimeoutSeconds":1.5}'),
	('{"createTimeoutSeconds":"60"}'), ('{"createTimeoutSeconds":1e400}'), ('{"createTimeoutSeconds":-1}'),
	('{"createParams":{"autoStopInterval":-1}}'), ('{"createParams":{"autoStopInterval":2147483648}}'),
	('{"createParams":{"autoArchiveInterval":-1}}'), ('{"createParams":{"autoDeleteInterval":-2}}'),
	('{"image":"i","createParams":{"cpu":0}}'), ('{"image":"i","createParams":{"cpu":4097}}'),
	('{"image":"i","createParams":{"cpu":0.5}}'),
	('{"createParams":{"cpu":1}}'), ('{"snapshot":"s","createParams":{"memory":1}}'), ('{"createParams":{"disk":1}}'),
	('{"createParams":{"public":"yes"}}'), ('{"createParams":{"networkBlockAll":1}}'),
	('{"createParams":{"networkAllowList":[]}}'), ('{"createParams":{"user":""}}')
) v(settings);
-- The settings of e2b.  must not fire
SELECT settings, regress_register(settings, kind => 'e2b') FROM (VALUES
	('{}'), ('{"apiUrl":"https://api.example.com","sandboxUrl":"https://box.example.com"}'),
	('{"domain":"e2b.dev"}'), ('{"domain":"a-1.example"}'), ('{"domain":null}'),
	('{"template":"base"}'), ('{"template":"team/agent:v2"}'), ('{"timeoutSeconds":1}'), ('{"timeoutSeconds":86400}'),
	('{"allowInternetAccess":false,"autoPause":true,"user":"root","createTimeoutSeconds":90}')) v(settings);
SELECT length, regress_register(jsonb_build_object('domain', repeat('x', length))::text, kind => 'e2b') FROM (VALUES (253), (254)) v(length);
-- must fire
SELECT settings, regress_register(settings, kind => 'e2b') FROM (VALUES
	('{"snapshot":"s"}'), ('{"templates":"base"}'), ('{"template":"a b"}'), ('{"template":""}'),
	('{"domain":"e2b.app/x"}'), ('{"domain":"key@evil.example"}'), ('{"domain":"e2b.app:8080"}'), ('{"domain":"E2B.app"}'), ('{"domain":".app"}'), ('{"domain":"-app"}'), ('{"domain":""}'), ('{"domain":1}'),
	('{"sandboxUrl":"box.example.com"}'), ('{"timeoutSeconds":0}'), ('{"timeoutSeconds":86401}'), ('{"timeoutSeconds":1.5}'),
	('{"allowInternetAccess":"no"}'), ('{"autoPause":1}'), ('{"user":"a b"}'), ('{"createTimeoutSeconds":0}')) v(settings);
SELECT regress_register('{"apiKey":"s3cr3t"}', kind => 'e2b');
-- Rule: a credential never goes into the settings.  must fire; the value is not shown
SELECT regress_register('{"apiKey":"s3cr3t"}');
SELECT regress_register('{"apiKey":null}');
-- Rule: no larger than 256 KiB.
SELECT size, regress_register(jsonb_build_object('snapshot', repeat('x', size))::text)
FROM (VALUES (200000), (262144)) v(size);

--
-- Capabilities
--
-- must not fire
SELECT capabilities, regress_register('{}', capabilities) FROM (VALUES
	('{}'), ('{"capabilities":[]}'), ('{"capabilities":null}'), ('{"capabilities":["pty","brandNew1"]}'),
	('{"resources":{"cpu":0.5,"memoryMb":1,"diskMb":0,"gpu":8}}'), ('{"resources":null}'),
	('{"regions":["eu-west"],"image":{"identity":"i","binaries":["node"]}}'),
	('{"isolation":"none"}'), ('{"isolation":"process"}'), ('{"isolation":"strong"}'), ('{"isolation":"unknown"}'),
	('{"egress":"none"}'), ('{"egress":"allowlist"}'), ('{"egress":"open"}'),
	('{"stateDurability":"ephemeral"}'), ('{"stateDurability":"persistent"}'),
	('{"restrictions":["no-host-network"]}'), ('{"network":{"ipv6":true,"any":[1,{"x":null}]}}'),
	('{"timeout":{"semantics":["command-lifetime"],"granularityMs":0,"maxSandboxLifetimeMs":null}}')
) v(capabilities);
-- must fire
SELECT capabilities, regress_register('{}', capabilities) FROM (VALUES
	('[]'), ('null'), ('{"capabilites":[]}'), ('{"capabilities":"pty"}'), ('{"capabilities":[1]}'),
	('{"capabilities":[null]}'), ('{"capabilities":[["pty"]]}'), ('{"capabilities":["pty","pty"]}'),
	('{"capabilities":[""]}'), ('{"capabilities":["1x"]}'), ('{"capabilities":["a-b"]}'), ('{"capabilities":{}}'),
	('{"resources":[]}'), ('{"resources":{"memory":1}}'), ('{"resources":{"cpu":-1}}'), ('{"resources":{"cpu":"1"}}'),
	('{"resources":{"cpu":1e999}}'), ('{"resources":{"memoryMb":1.5}}'), ('{"resources":{"diskMb":-1}}'),
	('{"resources":{"gpu":0.5}}'), ('{"resources":{"gpu":1e17}}'),
	('{"regions":"eu"}'), ('{"regions":["a","a"]}'),
	('{"image":"i"}'), ('{"image":{"id":"i"}}'), ('{"image":{"identity":""}}'), ('{"image":{"binaries":"node"}}'),
	('{"isolation":"stron"}'), ('{"isolation":"STRONG"}'), ('{"isolation":1}'), ('{"egress":"opne"}'), ('{"egress":""}'),
	('{"stateDurability":"durable"}'), ('{"restrictions":[1]}'), ('{"network":[]}'),
	('{"timeout":{"granularityMs":-1}}'), ('{"timeout":{"granularityMs":0.5}}'), ('{"timeout":{"semantics":"x"}}'),
	('{"timeout":{"maxSandboxLifetimeMs":"x"}}'), ('{"timeout":{"lifetime":1}}')
) v(capabilities);
-- Rule: names are at most 63 bytes, lists at most 64 long.
SELECT n, regress_register('{}', jsonb_build_object('capabilities', jsonb_build_array(repeat('x', n)))::text)
FROM (VALUES (63), (64)) v(n);
SELECT n, regress_register('{}', (SELECT jsonb_build_object('capabilities', jsonb_agg('c' || i))::text FROM generate_series(1, n) i))
FROM (VALUES (64), (65)) v(n);
SELECT n, regress_register('{}', (SELECT jsonb_build_object('network', jsonb_object_agg('c' || i, i))::text FROM generate_series(1, n) i))
FROM (VALUES (64), (65)) v(n);
-- Rule: nested at most 16 deep (of which the document and "network" are two).
SELECT n, regress_register('{}', '{"network":{"x":' || repeat('[', n - 2) || repeat(']', n - 2) || '}}')
FROM (VALUES (16), (17)) v(n);

--
-- Signals
--
-- must not fire
SELECT signals, regress_register('{}', NULL, signals) FROM (VALUES
	('{}'), ('{"estimatedCost":0}'), ('{"estimatedCost":1e300,"coldStartLatencyMs":0.5,"readyLatencyMs":0}'),
	('{"completionWithinBudgetRate":0}'), ('{"completionWithinBudgetRate":1}'), ('{"available":false}'), ('{"available":null}')
) v(signals);
-- must fire
SELECT signals, regress_register('{}', NULL, signals) FROM (VALUES
	('[]'), ('{"cost":1}'), ('{"estimatedCosts":1}'), ('{"estimatedCost":-0.001}'), ('{"estimatedCost":"0.12"}'),
	('{"estimatedCost":1e309}'), ('{"coldStartLatencyMs":-1}'), ('{"readyLatencyMs":true}'),
	('{"completionWithinBudgetRate":1.0000001}'), ('{"completionWithinBudgetRate":-0.1}'), ('{"available":"yes"}'), ('{"available":1}')
) v(signals);

--
-- Capacity
--
-- must not fire
SELECT capacity, regress_register('{}', NULL, NULL, capacity) FROM (VALUES
	('{}'), ('{"limits":{},"demand":{}}'), ('{"limits":{"cpu":250,"memory":512000,"disk":1000000,"sandboxes":50}}'),
	('{"demand":{"cpu":0.5,"memory":4096,"disk":10240,"sandboxes":1}}'), ('{"limits":null,"reader":null}')
) v(capacity);
-- must fire
SELECT capacity, regress_register('{}', NULL, NULL, capacity) FROM (VALUES
	('[]'), ('{"limit":{}}'), ('{"limits":[]}'), ('{"limits":{"memoryMb":1}}'), ('{"limits":{"cpu":-1}}'),
	('{"limits":{"sandboxes":"50"}}'), ('{"demand":{"disk":-1}}'), ('{"demand":{"memory":1e999}}'), ('{"reader":""}'), ('{"reader":1}')
) v(capacity);

-- Rule: of several faults the first in order is named: id, kind, settings,
-- capabilities, signals, capacity; unknown keys of an object before its members.
SELECT regress_try($$SELECT sbx_register_provider('.', 'x', '[]', '[]', '[]', '[]')$$);
SELECT regress_try($$SELECT sbx_register_provider('p', 'x', '[]', '[]', '[]', '[]')$$);
SELECT regress_try($$SELECT sbx_register_provider('p', 'daytona', '[]', '[]', '[]', '[]')$$);
SELECT regress_try($$SELECT sbx_register_provider('p', 'daytona', '{}', '[]', '[]', '[]')$$);
SELECT regress_try($$SELECT sbx_register_provider('p', 'daytona', '{}', '{}', '[]', '[]')$$);
SELECT regress_try($$SELECT sbx_register_provider('p', 'daytona', '{}', '{}', '{}', '[]')$$);
SELECT regress_register('{"apiUrl":1,"zzz":1}');
SELECT count(*) AS left_behind FROM sbx_provider;

--
-- Duplicates and updates
--
\pset format aligned
\pset tuples_only off
SELECT sbx_register_provider('p', 'daytona', '{"snapshot":"s"}', '{"resources":{"cpu":1}}',
	'{"estimatedCost":2}', '{"limits":{"cpu":3}}');
\set VERBOSITY default
-- Rule: an id is registered once; ids differ by case.  must fire / must not fire
SELECT sbx_register_provider('p', 'daytona', '{"snapshot":"other"}');
SELECT sbx_register_provider('P', 'daytona');
-- Rule: NULL leaves a part as it is; a document replaces the whole.
SELECT sbx_update_provider('p');
SELECT id, kind, enabled, settings, capabilities, signals, capacity FROM sbx_provider ORDER BY id;
SELECT sbx_update_provider('p', false);
SELECT sbx_update_provider('p', settings => '{"target":"eu"}');
SELECT sbx_update_provider('p', capabilities => '{"isolation":"strong"}');
SELECT id, kind, enabled, settings, capabilities, signals, capacity FROM sbx_provider ORDER BY id;
SELECT sbx_update_provider('p', true, '{}', '{}', '{}', '{}');
SELECT id, kind, enabled, settings, capabilities, signals, capacity FROM sbx_provider ORDER BY id;
-- Rule: an invalid update changes nothing.  must fire
SELECT sbx_update_provider('p', false, signals => '{"estimatedCost":-1}');
SELECT sbx_update_provider('p', false, settings => '{"snapshot":"s","image":"i"}');
SELECT id, enabled, settings, signals FROM sbx_provider WHERE id = 'p';
-- Rule: there must be one.  must fire
SELECT sbx_update_provider('q', false);
SELECT sbx_update_provider(NULL, false);
SELECT sbx_unregister_provider('q');
SELECT sbx_unregister_provider('');
-- must not fire
SELECT sbx_unregister_provider('P');
-- Rule: not while it has sandboxes.  must fire / must not fire
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	VALUES ('sbx_00000000000000000000000000000001', 'p', 'x', 'started', '{}', quote_ident(current_user)::regrole);
SELECT sbx_unregister_provider('p');
DELETE FROM sbx_provider WHERE id = 'p';
SELECT sbx_update_provider('p', enabled => false);
SELECT sbx_update_provider('p', enabled => true);
DELETE FROM sbx_mapping;
SELECT sbx_unregister_provider('p');
SELECT count(*) AS registered FROM sbx_provider;
-- Rule: registrations are transactional.
BEGIN;
SELECT sbx_register_provider('t', 'daytona');
SELECT count(*) FROM sbx_route_explain();
ROLLBACK;
SELECT count(*) FROM sbx_route_explain();

--
-- Written by hand: the same checks
--
INSERT INTO sbx_provider (id, kind) VALUES ('hand', 'daytona');
SELECT id, enabled, settings, capabilities, signals, capacity, registered_by = quote_ident(current_user)::regrole AS mine
FROM sbx_provider;
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
-- must fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$INSERT INTO sbx_provider (id, kind) VALUES ('.', 'daytona')$$),
	($$INSERT INTO sbx_provider (id, kind) VALUES (NULL, 'daytona')$$),
	($$INSERT INTO sbx_provider (id, kind) VALUES ('x', NULL)$$),
	($$INSERT INTO sbx_provider (id, kind) VALUES ('x', 'daytonna')$$),
	($$INSERT INTO sbx_provider (id, kind, settings) VALUES ('x', 'daytona', NULL)$$),
	($$INSERT INTO sbx_provider (id, kind, settings) VALUES ('x', 'daytona', '{"apiKey":"k"}')$$),
	($$INSERT INTO sbx_provider (id, kind, enabled) VALUES ('x', 'daytona', NULL)$$),
	($$INSERT INTO sbx_provider (id, kind) VALUES ('hand', 'daytona')$$),
	($$UPDATE sbx_provider SET id = 'a b'$$),
	($$UPDATE sbx_provider SET kind = 'e2c'$$),
	($$UPDATE sbx_provider SET settings = '{"snapshots":1}'$$),
	($$UPDATE sbx_provider SET settings = NULL$$),
	($$UPDATE sbx_provider SET capabilities = '{"isolation":"weak"}'$$),
	($$UPDATE sbx_provider SET signals = '{"available":1}'$$),
	($$UPDATE sbx_provider SET capacity = '{"limits":{"cpu":-1}}'$$),
	($$UPDATE sbx_provider SET capacity = 'null'$$)) v(statement);
-- must not fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$INSERT INTO sbx_provider (id, kind, settings) VALUES ('x', 'daytona', '{"snapshot":"s"}')$$),
	($$UPDATE sbx_provider SET id = 'y' WHERE id = 'x'$$),
	($$UPDATE sbx_provider SET capabilities = NULL, signals = NULL, capacity = NULL$$),
	($$DELETE FROM sbx_provider WHERE id = 'y'$$)) v(statement);
COPY sbx_provider (id, kind, settings) FROM stdin;
copied	daytona	{"snapshot":"s"}
\.
COPY sbx_provider (id, kind, settings) FROM stdin;
copied2	daytona	{"snapshot":1}
\.
SELECT id FROM sbx_provider ORDER BY id;
DELETE FROM sbx_provider;

--
-- Who answers for a row
--
CREATE ROLE regress_sbx_plain;
CREATE ROLE regress_sbx_chief SUPERUSER;
GRANT SELECT, INSERT, UPDATE, DELETE ON sbx_provider TO regress_sbx_plain;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO regress_sbx_plain;
-- Rule: a role that is not superuser only ever names itself.  must fire: all rows
-- say regress_sbx_plain, whatever it wrote
SET ROLE regress_sbx_plain;
INSERT INTO sbx_provider (id, kind, registered_by) VALUES ('forged', 'daytona', 'regress_sbx_chief');
INSERT INTO sbx_provider (id, kind) VALUES ('plain', 'daytona');
UPDATE sbx_provider SET registered_by = 'regress_sbx_chief' WHERE id = 'plain';
SELECT sbx_register_provider('by-function', 'daytona');
RESET ROLE;
SELECT id, registered_by FROM sbx_provider ORDER BY id;
-- must not fire: a superuser may name another role, or leave it as it is
UPDATE sbx_provider SET registered_by = 'regress_sbx_chief' WHERE id = 'forged';
UPDATE sbx_provider SET enabled = false WHERE id = 'plain';
INSERT INTO sbx_provider (id, kind, registered_by) VALUES ('restored', 'daytona', 'regress_sbx_plain');
SELECT sbx_update_provider('by-function', enabled => false);
SELECT id, registered_by = quote_ident(current_user)::regrole AS mine, CASE WHEN registered_by <> quote_ident(current_user)::regrole THEN registered_by END
FROM sbx_provider ORDER BY id;
-- Rule: who changes a row answers for it from then on.
SET ROLE regress_sbx_plain;
UPDATE sbx_provider SET enabled = true WHERE id = 'forged';
SELECT sbx_update_provider('by-function', enabled => true);
RESET ROLE;
SELECT id, registered_by FROM sbx_provider WHERE id IN ('forged', 'by-function') ORDER BY id;
DELETE FROM sbx_provider;

-- Rule: another endpoint needs a superuser, by function and by hand.
SET ROLE regress_sbx_plain;
-- must fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_register_provider('x', 'daytona', '{"apiUrl":"https://evil.example"}')$$),
	($$INSERT INTO sbx_provider (id, kind, settings) VALUES ('x', 'daytona', '{"apiUrl":"https://evil.example"}')$$),
	($$INSERT INTO sbx_provider (id, kind, settings, registered_by) VALUES ('x', 'daytona', '{"apiUrl":"https://evil.example"}', 'regress_sbx_chief')$$),
	($$SELECT sbx_register_provider('x', 'e2b', '{"domain":"evil.example"}')$$),
	($$SELECT sbx_register_provider('x', 'e2b', '{"sandboxUrl":"https://evil.example"}')$$)) v(statement);
-- must not fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_register_provider('e', 'e2b', '{"template":"t"}')$$), ($$SELECT sbx_unregister_provider('e')$$),
	($$SELECT sbx_register_provider('x', 'daytona', '{"apiUrl":null}')$$)) v(statement);
-- must fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_update_provider('x', settings => '{"apiUrl":"https://evil.example"}')$$),
	($$UPDATE sbx_provider SET settings = '{"apiUrl":"https://evil.example"}', registered_by = 'regress_sbx_chief'$$)) v(statement);
-- must not fire: a superuser does it ...
SET ROLE regress_sbx_chief;
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_update_provider('x', settings => '{"apiUrl":"https://good.example"}')$$),
	($$INSERT INTO sbx_provider (id, kind, settings) VALUES ('y', 'daytona', '{"apiUrl":"https://good.example"}')$$)) v(statement);
-- must fire: ... and nobody else takes over a row that has one, not even unchanged
SET ROLE regress_sbx_plain;
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_update_provider('x', enabled => false)$$),
	($$UPDATE sbx_provider SET enabled = false WHERE id = 'x'$$)) v(statement);
RESET ROLE;
SELECT id, enabled, settings, registered_by FROM sbx_provider ORDER BY id;
-- Rule: refused at use when the registrar is no superuser any more; the caller
-- being one does not help.
SELECT sbx_set_credential('x', 'key');
ALTER ROLE regress_sbx_chief NOSUPERUSER;
SELECT regress_try($$SELECT sbx_provision('{"providerId":"x"}')$$);
INSERT INTO sbx_mapping (id, provider_id, provider_sandbox_id, state, request, owner)
	VALUES ('sbx_00000000000000000000000000000001', 'x', 'x', 'started', '{}', quote_ident(current_user)::regrole);
SELECT regress_try($$SELECT sbx_get('sbx_00000000000000000000000000000001')$$);
SELECT regress_try($$SELECT sbx_destroy('sbx_00000000000000000000000000000001')$$);
SELECT regress_try($$SELECT sbx_run_script('sbx_00000000000000000000000000000001', 'true')$$);
-- must not fire: the rest of the registry is not held up
SELECT provider_id, rejections, reason FROM sbx_route_explain();
-- Rule: the code has its place among the others.
SELECT provider_id, rejections FROM sbx_route_explain('{"providerId":"x","requires":{"requiredCapabilities":["pty"]}}');
-- Rule: a superuser may still write the row, as a restore does; it stays unusable.
SELECT regress_try($$UPDATE sbx_provider SET enabled = false WHERE id = 'x'$$);
SELECT regress_try($$UPDATE sbx_provider SET enabled = true WHERE id = 'x'$$);
SELECT regress_try($$INSERT INTO sbx_provider (id, kind, settings, registered_by) VALUES ('restored', 'daytona', '{"apiUrl":"https://good.example"}', 'regress_sbx_plain')$$);
SELECT sbx_set_credential('restored', 'key');
SELECT regress_try($$SELECT sbx_provision('{"providerId":"restored"}')$$);
DELETE FROM sbx_provider WHERE id = 'restored';
SELECT regress_try($$SELECT sbx_unregister_provider('y')$$);
-- Rule: the same when that role is gone.
DELETE FROM sbx_mapping;
DROP ROLE regress_sbx_chief;
SELECT regress_try($$SELECT sbx_provision('{"providerId":"x"}')$$);
-- must not fire: a superuser takes it over
SELECT regress_try($$SELECT sbx_update_provider('x', enabled => true)$$);
SELECT registered_by = quote_ident(current_user)::regrole AS mine FROM sbx_provider WHERE id = 'x';

DELETE FROM sbx_provider;
DROP OWNED BY regress_sbx_plain;
DROP ROLE regress_sbx_plain;
DROP FUNCTION regress_register(text, text, text, text, text), regress_try(text);
