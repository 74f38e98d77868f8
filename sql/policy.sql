--
-- POLICY
-- Policies: what is accepted, what is refused (SB013) and with which path; who may use
-- them; defaults of requests; the classifier that is shipped.
--
\set VERBOSITY terse
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_author, regress_sbx_other, regress_sbx_nobody;
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
-- The same through the function and through DML, which are to say the same: shown once.
CREATE FUNCTION regress_policy(name text, request_defaults jsonb DEFAULT NULL, classifier text DEFAULT NULL)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	by_function text; by_insert text; by_update text;
BEGIN
	by_function := regress_try(format('SELECT sbx_set_policy(%L, request_defaults => %L, classifier => %L)',
		name, request_defaults, classifier));
	DELETE FROM sbx_policy;
	by_insert := regress_try(format('INSERT INTO sbx_policy (name, request_defaults, classifier) VALUES (%L, %L, %L)',
		name, request_defaults, classifier));
	DELETE FROM sbx_policy;
	INSERT INTO sbx_policy (name) VALUES ('other');
	by_update := regress_try(format('UPDATE sbx_policy SET name = %L, request_defaults = %L, classifier = %L',
		name, request_defaults, classifier));
	DELETE FROM sbx_policy;
	IF by_function = by_insert AND by_function = by_update THEN
		RETURN by_function;
	END IF;
	RETURN format(E'function: %s\nINSERT: %s\nUPDATE: %s', by_function, by_insert, by_update);
END $$;
\pset format unaligned
\pset tuples_only on

--
-- Name
--
-- Rule: [A-Za-z0-9][A-Za-z0-9._-]{0,62}.  must not fire
SELECT name, regress_policy(name) FROM (VALUES ('a'), ('Z'), ('0'), ('a.b_c-D9'), ('a.'), (repeat('x', 63))) v(name);
-- must fire
SELECT name, regress_policy(name) FROM (VALUES (''), ('.a'), ('_a'), ('-a'), ('a b'), ('a/b'), (E'a\n'), ('ä'),
	(repeat('x', 64)), (NULL)) v(name);

--
-- Parts that are not built
--
-- must fire (0A000)
SELECT argument, regress_try(format('SELECT sbx_set_policy(%L, %s => %L)', 'p', argument, value)),
	   regress_try(format('INSERT INTO sbx_policy (name, %s) VALUES (%L, %L)', argument, 'p', value))
FROM (VALUES ('signals_resolver', 'public.f'), ('readiness', 'public.f'), ('observer', '')) v(argument, value);
INSERT INTO sbx_policy (name) VALUES ('p');
SELECT regress_try($$UPDATE sbx_policy SET readiness = 'public.f'$$);
-- must not fire
SELECT regress_try($$SELECT sbx_set_policy('p', NULL, NULL, NULL, NULL, NULL, NULL, NULL)$$);
SELECT regress_try($$UPDATE sbx_policy SET readiness = NULL$$);
DELETE FROM sbx_policy;

--
-- Defaults of requests
--
-- Rule: an object that is a valid request by itself.  must not fire
SELECT defaults, regress_policy('p', defaults) FROM (VALUES
	('{}'::jsonb), (NULL), ('{"resources":{"cpu":0.5}}'), ('{"resources":null}'),
	('{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"network":{"ipv6":true}}}'),
	('{"region":{"preferred":["eu"],"required":true}}'), ('{"routing":{"strategy":"cost","maxAcquisitionAttempts":10}}'),
	('{"launch":{"labels":{"a":"b"},"createTimeoutSeconds":60}}'), ('{"providerId":"not-registered"}'),
	('{"placement":{"authority":"fleet"}}')) v(defaults);
-- must fire
SELECT defaults, regress_policy('p', defaults) FROM (VALUES
	('[]'::jsonb), ('null'), ('"x"'), ('1'), ('{"resourcs":{}}'), ('{"resources":{"cpus":1}}'), ('{"resources":[]}'),
	('{"resources":{"cpu":-1}}'), ('{"resources":{"gpu":0.5}}'), ('{"resources":{"memoryMb":"1"}}'),
	('{"requires":{"requiredCapabilities":["pty","pty"]}}'), ('{"requires":{"requiredCapabilities":["no such"]}}'),
	('{"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["pty"]}}'),
	('{"requires":{"isolation":"Strong"}}'), ('{"region":{"required":true}}'), ('{"routing":{"strategy":"cheap"}}'),
	('{"routing":{"maxAcquisitionAttempts":0}}'), ('{"routing":{"maxAcquisitionAttempts":11}}'),
	('{"placement":{"authority":"me"}}'), ('{"launch":{"labels":{"sbx-router-id":"x"}}}'), ('{"launch":{"env":{"1":"x"}}}'),
	('{"idempotencyKey":""}')) v(defaults);
SELECT regress_policy('p', jsonb_build_object('launch', jsonb_build_object('env', jsonb_build_object('A', repeat('x', size)))))
FROM (VALUES (200000), (262144)) v(size);

-- Rule: a capability has to be known, as in a request.  must fire
SELECT sbx_register_provider('a', 'daytona');
SELECT regress_policy('p', '{"requires":{"requiredCapabilities":["ptyy"]}}');
SELECT regress_policy('p', '{"requires":{"forbiddenCapabilities":["homeMade"]}}');
-- must not fire: a pool declares it, enabled or not
SELECT sbx_register_provider('b', 'daytona', capabilities => '{"capabilities":["homeMade"]}');
SELECT regress_policy('p', '{"requires":{"forbiddenCapabilities":["homeMade"]}}');
SELECT sbx_update_provider('b', false);
SELECT regress_policy('p', '{"requires":{"forbiddenCapabilities":["homeMade"]}}');
DELETE FROM sbx_provider;
-- Rule: but a dump may have a policy whose pools are not there yet, or not any more: as a
-- row a superuser may write any name that is well formed, and nothing else.
SELECT regress_try($$SELECT sbx_set_policy('p', request_defaults => '{"requires":{"forbiddenCapabilities":["homeMade"]}}')$$);
SELECT regress_try($$INSERT INTO sbx_policy (name, request_defaults) VALUES ('p', '{"requires":{"forbiddenCapabilities":["homeMade"]}}')$$);
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{"requires":{"forbiddenCapabilities":["home made"]}}'$$);
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{"requires":{"forbiddenCapabilities":["homeMade","homeMade"]}}'$$);
-- and it does not pass silently: must fire
SELECT regress_try($$SELECT sbx_route('{}', 'p')$$);
DELETE FROM sbx_policy;

--
-- Classifier
--
CREATE SCHEMA regress_app;
CREATE SCHEMA "Regress ""app""";
CREATE FUNCTION regress_app.classify(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app."Classify it"(failure jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN failure; END $$;
CREATE FUNCTION "Regress ""app"""."a.b"(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.overloaded(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.overloaded(json) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1::jsonb $$;
CREATE FUNCTION regress_app.overloaded(jsonb, int) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.of_text(text) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1::jsonb $$;
CREATE FUNCTION regress_app.of_two(jsonb, jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.of_none() RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
CREATE FUNCTION regress_app.of_any(anyelement) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
CREATE FUNCTION regress_app.to_text(jsonb) RETURNS text LANGUAGE sql AS $$ SELECT $1::text $$;
CREATE FUNCTION regress_app.to_set(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.to_table(jsonb) RETURNS TABLE (x jsonb) LANGUAGE sql AS $$ SELECT $1 $$;
CREATE FUNCTION regress_app.to_out(failure jsonb, OUT answer jsonb) LANGUAGE sql AS $$ SELECT failure $$;
CREATE PROCEDURE regress_app.procedure(INOUT x jsonb) LANGUAGE sql AS $$ SELECT x $$;
CREATE AGGREGATE regress_app.aggregate(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb);
-- must not fire
SELECT classifier, regress_policy('p', NULL, classifier) FROM (VALUES
	('regress_app.classify'), ('Regress_App.CLASSIFY'), ('"regress_app"."classify"'), (' regress_app . classify '),
	('regress_app."Classify it"'), ('"Regress ""app"""."a.b"'), ('regress_app.overloaded'), ('regress_app.to_out'),
	('public.sbx_classify_proven')) v(classifier);
-- must fire: form
SELECT classifier, regress_policy('p', NULL, classifier) FROM (VALUES
	(''), (' '), ('.'), ('classify'), ('"regress_app.classify"'), ('regress_app.'), ('.classify'), ('a.regress_app.classify'),
	('regress_app.classify(jsonb)'), ('regress_app.classify; DROP TABLE sbx_policy'), ('"regress_app".classify"'), ('regress_app."classify'),
	('regress_app,classify'), (repeat('x', 300) || '.f')) v(classifier);
-- must fire: no such function
SELECT classifier, regress_policy('p', NULL, classifier) FROM (VALUES
	('regress_app.nobody'), ('nobody.classify'), ('regress_app."Classify"'), ('pg_temp.classify'), ('regress_app.of_text'), ('regress_app.of_two'), ('regress_app.of_none'),
	('regress_app.of_any'), ('regress_app.to_text'), ('regress_app.to_set'), ('regress_app.to_table'), ('regress_app.procedure'),
	('regress_app.aggregate'), ('pg_catalog.jsonb_array_length')) v(classifier);

-- must fire: a temporary schema is somebody else's tomorrow
CREATE FUNCTION pg_temp.classify(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT $1 $$;
SELECT split_part(regress_policy('p', NULL, pg_my_temp_schema()::regnamespace || '.classify'), E'\n', 1);

--
-- Whole rows
--
-- Rule: setting a policy replaces the whole row.
SELECT sbx_set_policy('p', request_defaults => '{"providerId":"a"}', classifier => 'regress_app.classify');
SELECT * FROM (SELECT name, request_defaults, classifier, registered_by = quote_ident(current_user)::regrole FROM sbx_policy) s;
SELECT sbx_set_policy('p', classifier => 'public.sbx_classify_proven');
SELECT name, request_defaults, classifier FROM sbx_policy;
SELECT sbx_set_policy('p');
SELECT name, request_defaults, classifier FROM sbx_policy;
-- Rule: two INSERTs of one name are no replacement.  must fire
SELECT regress_try($$INSERT INTO sbx_policy (name) VALUES ('p')$$);
-- Rule: nothing is dropped but what is there.  must fire / must not fire
SELECT regress_try($$SELECT sbx_drop_policy('pp')$$);
SELECT regress_try($$SELECT sbx_drop_policy('nothing-like-it')$$);
SELECT regress_try($$SELECT sbx_drop_policy('p')$$);
SELECT regress_try($$SELECT sbx_drop_policy('p')$$);
SELECT count(*) FROM sbx_policy;
-- Rule: not in a transaction that is read-only.  must fire
BEGIN READ ONLY;
SELECT regress_try($$SELECT sbx_set_policy('p')$$);
SELECT regress_try($$SELECT sbx_drop_policy('p')$$);
ROLLBACK;
-- Rule: one's own changes count at once, and are undone.
BEGIN;
SELECT sbx_set_policy('mine', request_defaults => '{"providerId":"a"}');
SELECT regress_try($$SELECT sbx_route('{}', 'mine')$$);
ROLLBACK;
SELECT regress_try($$SELECT sbx_route('{}', 'mine')$$);
-- Rule: the trigger is of that table and nothing else.  must fire (39P01)
SELECT sbx_policy_check();
CREATE TABLE regress_other (name text);
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_policy_check();
SELECT left(regress_try($$INSERT INTO regress_other VALUES ('x')$$), 5);
DROP TABLE regress_other;
CREATE TABLE regress_other (LIKE sbx_policy);
CREATE TRIGGER t BEFORE INSERT ON regress_other FOR EACH ROW EXECUTE FUNCTION sbx_policy_check();
SELECT left(regress_try($$INSERT INTO regress_other (name) VALUES ('x')$$), 5);
DROP TABLE regress_other;
CREATE TRIGGER t BEFORE DELETE ON sbx_policy FOR EACH ROW EXECUTE FUNCTION sbx_policy_check();
INSERT INTO sbx_policy (name) VALUES ('p');
SELECT left(regress_try('DELETE FROM sbx_policy'), 5);
DROP TRIGGER t ON sbx_policy;
CREATE TRIGGER t BEFORE INSERT ON sbx_provider FOR EACH ROW EXECUTE FUNCTION sbx_policy_check();
SELECT left(regress_try($$INSERT INTO sbx_provider (id, kind) VALUES ('x', 'daytona')$$), 5);
DROP TRIGGER t ON sbx_provider;
CREATE TRIGGER t BEFORE INSERT ON sbx_policy FOR EACH ROW EXECUTE FUNCTION sbx_provider_check();
SELECT left(regress_try($$INSERT INTO sbx_policy (name) VALUES ('x')$$), 5);
DROP TRIGGER t ON sbx_policy;
DELETE FROM sbx_policy;
-- Rule: COPY passes the same check.  must not fire / must fire
COPY sbx_policy (name, classifier) FROM stdin;
copied	regress_app.classify
\.
COPY sbx_policy (name, classifier) FROM stdin;
bad	regress_app.nobody
\.
SELECT name, classifier FROM sbx_policy;
DELETE FROM sbx_policy;

--
-- Which policy
--
SELECT sbx_register_provider('a', 'daytona', capabilities => '{"network":{"ipv6":true,"mtu":1500}}');
SELECT sbx_register_provider('b', 'daytona', capabilities => '{"capabilities":["pty"],"network":{"ipv6":true,"mtu":9000}}');
SELECT sbx_set_credential('a', 'k'), sbx_set_credential('b', 'k');
SELECT sbx_set_policy('only-a', request_defaults => '{"providerId":"a"}');
SELECT sbx_set_policy('only-b', request_defaults => '{"providerId":"b"}');
-- Rule: the argument, else the setting, else none.
SELECT string_agg(r, ' ') FROM sbx_route() r;
SELECT string_agg(r, ' ') FROM sbx_route('{}', 'only-a') r;
SET sbx_router.policy = 'only-b';
SELECT string_agg(r, ' ') FROM sbx_route() r;
SELECT string_agg(r, ' ') FROM sbx_route('{}', 'only-a') r;
SELECT provider_id, rejections FROM sbx_route_explain();
SET sbx_router.policy = '';
SELECT string_agg(r, ' ') FROM sbx_route() r;
-- Rule: a policy that is not there is SB013.  must fire
SELECT policy, regress_try(format('SELECT sbx_route(''{}'', %L)', policy)) FROM (VALUES
	('only-c'), ('Only-a'), ('something else'), ('')) v(policy);
SELECT regress_try($$SELECT sbx_route_explain('{}', 'only-c')$$);
SELECT regress_try($$SELECT sbx_provision('{}', 'only-c')$$);
SET sbx_router.policy = 'only-c';
SELECT regress_try('SELECT sbx_route()');
SET sbx_router.policy = 'something else';
SELECT regress_try('SELECT sbx_provision()');
-- must not fire
SELECT regress_try($$SELECT sbx_route('{}', 'only-a')$$);
RESET sbx_router.policy;

--
-- Defaults and requests
--
-- Runs with these defaults; names the pools.
CREATE FUNCTION regress_merge(defaults jsonb, request jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM sbx_set_policy('merged', request_defaults => defaults);
	RETURN COALESCE((SELECT string_agg(r, ' ') FROM sbx_route(request, 'merged') r), 'none');
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
SELECT defaults, request, regress_merge(defaults, request) FROM (VALUES
	-- a scalar: the request's, the default where there is none, none where it is null
	('{"providerId":"a"}'::jsonb, '{}'::jsonb), ('{"providerId":"a"}', '{"providerId":"b"}'), ('{"providerId":"a"}', '{"providerId":null}'),
	('{"providerId":null}', '{"providerId":"b"}'), ('{}', '{"providerId":"b"}'), (NULL, '{"providerId":"b"}'),
	-- objects: key by key, at every depth
	('{"providerId":"a"}', '{"resources":{"cpu":0}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{}'), ('{"requires":{"network":{"mtu":1500}}}', '{"requires":{}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"requires":{"network":{}}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"requires":{"network":{"ipv6":true}}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"requires":{"network":{"ipv6":true,"mtu":9000}}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"requires":{"network":null}}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"requires":null}'),
	-- lists: replaced
	('{"requires":{"requiredCapabilities":["pty"]}}', '{}'),
	('{"requires":{"requiredCapabilities":["pty"]}}', '{"requires":{"requiredCapabilities":["syncExec"]}}'),
	('{"requires":{"requiredCapabilities":["pty"]}}', '{"requires":{"requiredCapabilities":[]}}'),
	('{"requires":{"requiredCapabilities":["pty"]}}', '{"requires":{"requiredCapabilities":null}}'),
	('{"requires":{"requiredCapabilities":["pty"]}}', '{"requires":{"network":{"mtu":9000}}}')) v(defaults, request);
-- Rule: what comes out has to be a valid request.  must fire
SELECT defaults, request, regress_merge(defaults, request) FROM (VALUES
	('{"requires":{"requiredCapabilities":["pty"]}}'::jsonb, '{"requires":{"forbiddenCapabilities":["pty"]}}'::jsonb),
	('{"region":{"preferred":["eu"],"required":true}}', '{"region":{"preferred":null}}'),
	('{"providerId":"a"}', '[]'), ('{"providerId":"a"}', 'null'), ('{"providerId":"a"}', '"x"'), ('{"providerId":"a"}', '{"providerid":"b"}'),
	('{"resources":{"cpu":1}}', '{"resources":5}'), ('{"resources":{"cpu":1}}', '{"resources":{"cpu":"x"}}'),
	('{"launch":{"env":{"A":"1"}}}', '{"launch":{"env":{"A":null}}}')) v(defaults, request);
-- Rule: a placement by default bypasses routing, too; the request can take it back.
SELECT regress_merge('{"placement":{"authority":"fleet"}}', '{}');
SELECT regress_merge('{"placement":{"authority":"fleet"}}', '{"placement":null}');

--
-- Who
--
CREATE ROLE regress_sbx_author;
CREATE ROLE regress_sbx_other;
CREATE ROLE regress_sbx_nobody;
DELETE FROM sbx_policy;
-- Rule: nobody has anything but the function over JSON.  must fire / must not fire
SET ROLE regress_sbx_nobody;
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_set_policy('p')$$), ($$SELECT sbx_drop_policy('p')$$), ('SELECT sbx_policy_check()'), ('SELECT * FROM sbx_policy'),
	($$INSERT INTO sbx_policy (name) VALUES ('p')$$), ('UPDATE sbx_policy SET classifier = NULL'), ('DELETE FROM sbx_policy'), ('TRUNCATE sbx_policy'),
	($$SELECT sbx_classify_proven('{}')$$), ($$SET sbx_router.policy = 'p'$$)) v(statement);
RESET sbx_router.policy;
RESET ROLE;
GRANT EXECUTE ON FUNCTION sbx_set_policy(text, text[], interval, jsonb, text, text, text, text), sbx_drop_policy(text)
	TO regress_sbx_author, regress_sbx_other;
GRANT SELECT, INSERT, UPDATE, DELETE ON sbx_policy TO regress_sbx_author, regress_sbx_other;
-- Rule: the registering role has to have the privilege to call the classifier.  must fire
SET ROLE regress_sbx_author;
SELECT regress_policy('p', NULL, 'regress_app.classify');
RESET ROLE;
GRANT USAGE ON SCHEMA regress_app TO regress_sbx_author, regress_sbx_other;
REVOKE EXECUTE ON FUNCTION regress_app.classify(jsonb) FROM PUBLIC;
SET ROLE regress_sbx_author;
SELECT regress_policy('p', NULL, 'regress_app.classify');
RESET ROLE;
-- must not fire
GRANT EXECUTE ON FUNCTION regress_app.classify(jsonb) TO regress_sbx_author;
SET ROLE regress_sbx_author;
SELECT regress_policy('p', NULL, 'regress_app.classify');
-- Rule: who is not superuser answers for what he writes, and names nobody else.
SELECT sbx_set_policy('by-function', classifier => 'regress_app.classify');
INSERT INTO sbx_policy (name, classifier, registered_by) VALUES ('by-insert', 'regress_app.classify', 'pg_monitor');
SELECT name, registered_by FROM sbx_policy ORDER BY name;
-- must fire: the next one to touch it becomes the registrar, and may not call it
SET ROLE regress_sbx_other;
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{}'$$);
SELECT regress_try($$SELECT sbx_set_policy('by-insert', classifier => 'regress_app.classify')$$);
-- must not fire
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{}', classifier = NULL WHERE name = 'by-insert'$$);
SELECT name, registered_by FROM sbx_policy ORDER BY name;
SELECT regress_try($$UPDATE sbx_policy SET registered_by = 'regress_sbx_author' WHERE name = 'by-insert'$$);
SELECT regress_try($$SELECT sbx_set_policy('by-insert')$$);
SELECT name, registered_by FROM sbx_policy ORDER BY name;
-- Rule: what a dump may have, others may not.  must fire
DELETE FROM sbx_policy;
RESET ROLE;
SELECT sbx_clear_credentials();
DELETE FROM sbx_provider;
SET ROLE regress_sbx_other;
SELECT regress_policy('p', '{"requires":{"forbiddenCapabilities":["homeMade"]}}');
RESET ROLE;
-- Rule: a superuser may name another role, which has to be able to call it.
SELECT regress_try($$INSERT INTO sbx_policy (name, classifier, registered_by) VALUES ('p', 'regress_app.classify', 'regress_sbx_author')$$);
SELECT regress_try($$INSERT INTO sbx_policy (name, classifier, registered_by) VALUES ('q', 'regress_app.classify', 'regress_sbx_other')$$);
SELECT regress_try($$INSERT INTO sbx_policy (name, registered_by) VALUES ('r', NULL)$$);
SELECT name, registered_by = quote_ident(current_user)::regrole AS mine FROM sbx_policy ORDER BY name;
-- Rule: a trigger of somebody else does not get the owner's rights.  must fire
GRANT TRIGGER ON sbx_policy TO regress_sbx_author;
GRANT CREATE ON SCHEMA regress_app TO regress_sbx_author;
SET ROLE regress_sbx_author;
CREATE FUNCTION regress_app.spy() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$;
CREATE TRIGGER spy BEFORE INSERT ON sbx_policy FOR EACH ROW EXECUTE FUNCTION regress_app.spy();
RESET ROLE;
SELECT regress_try($$SELECT sbx_set_policy('spied')$$);
SELECT regress_try($$SELECT sbx_drop_policy('p')$$);
DROP TRIGGER spy ON sbx_policy;
-- must not fire
SELECT regress_try($$SELECT sbx_set_policy('spied')$$);
DELETE FROM sbx_policy;

--
-- sbx_classify_proven
--
-- Rule: a refusal for capacity, and a request that never left, where nothing was
-- allocated.  must fire
SELECT failure, sbx_classify_proven(failure) FROM (VALUES
	('{"providerId":"a","kind":"daytona","operation":"launch","phase":"remote","requestSent":true,"httpStatus":400,"providerCode":"CAPACITY","allocation":"none"}'::jsonb),
	('{"providerId":"a","kind":"daytona","operation":"launch","phase":"connect","requestSent":false,"httpStatus":null,"providerCode":null,"allocation":"none"}'),
	('{"requestSent":true,"providerCode":"CAPACITY","allocation":"none"}'), ('{"requestSent":false,"allocation":"none"}'),
	('{"requestSent":false,"providerCode":"CAPACITY","allocation":"none"}')) v(failure);
-- must not fire: something may have been allocated
SELECT failure, sbx_classify_proven(failure) FROM (VALUES
	('{"requestSent":true,"providerCode":"CAPACITY","allocation":"unknown"}'::jsonb), ('{"requestSent":true,"providerCode":"CAPACITY","allocation":"made"}'),
	('{"requestSent":false,"allocation":"unknown"}'), ('{"requestSent":false,"allocation":"made"}'), ('{"requestSent":true,"providerCode":"UNAUTHORIZED","allocation":"unknown"}'),
	('{"requestSent":true,"providerCode":"CAPACITY"}'), ('{"requestSent":false}'), ('{"requestSent":false,"allocation":null}'),
	('{"requestSent":false,"allocation":"None"}'), ('{"requestSent":false,"allocation":"none "}'), ('{"requestSent":false,"allocation":["none"]}'), ('{"requestSent":false,"allocation":true}')) v(failure);
-- must not fire: another refusal; its code where it has one
SELECT failure, sbx_classify_proven(failure) FROM (VALUES
	('{"requestSent":true,"providerCode":"UNAUTHORIZED","httpStatus":401,"allocation":"none"}'::jsonb), ('{"requestSent":true,"providerCode":"RATE_LIMITED","allocation":"none"}'),
	('{"requestSent":true,"providerCode":"CAPACITY_X","allocation":"none"}'), ('{"requestSent":true,"providerCode":"XCAPACITY","allocation":"none"}'),
	('{"requestSent":true,"providerCode":null,"allocation":"none"}'), ('{"requestSent":true,"allocation":"none"}'), ('{"requestSent":true,"providerCode":"","allocation":"none"}'),
	('{"requestSent":true,"providerCode":"capacity","allocation":"none"}'), ('{"requestSent":true,"providerCode":"NO WAY","allocation":"none"}'),
	('{"requestSent":true,"providerCode":"_A","allocation":"none"}'), ('{"requestSent":true,"providerCode":"9A","allocation":"none"}'), ('{"requestSent":true,"providerCode":"A9_","allocation":"none"}'),
	('{"requestSent":true,"providerCode":5,"allocation":"none"}')) v(failure);
SELECT length, sbx_classify_proven(jsonb_build_object('requestSent', true, 'allocation', 'none', 'providerCode', repeat('X', length))) ->> 'code' = repeat('X', length)
FROM (VALUES (64), (65)) v(length);
-- must not fire: not well formed
SELECT failure, sbx_classify_proven(failure) FROM (VALUES
	('{}'::jsonb), ('[]'), ('null'), ('1'), ('true'), ('"none"'), ('{"allocation":"none"}'), ('{"allocation":"none","requestSent":null}'), ('{"allocation":"none","requestSent":"false"}'),
	('{"allocation":"none","requestSent":0}'), ('{"allocation":"none","providerCode":"CAPACITY"}'), ('[{"allocation":"none","requestSent":false}]'),
	('{"failure":{"allocation":"none","requestSent":false}}')) v(failure);
SELECT sbx_classify_proven(NULL) IS NULL;

\set VERBOSITY terse
SET client_min_messages = warning;
DROP OWNED BY regress_sbx_author, regress_sbx_other, regress_sbx_nobody;
DROP ROLE regress_sbx_author, regress_sbx_other, regress_sbx_nobody;
DROP SCHEMA regress_app CASCADE;
DROP SCHEMA "Regress ""app""" CASCADE;
RESET client_min_messages;
DROP FUNCTION regress_merge(jsonb, jsonb), regress_policy(text, jsonb, text), regress_try(text);
