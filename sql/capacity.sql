--
-- CAPACITY
-- What accounts have room for: measurements and why there is none, the views, the order
-- of a policy and admission.  Readers are SQL functions here: nothing goes out.
--
\set VERBOSITY terse
\pset format unaligned
\pset footer off
-- left behind by a run that did not get to its end
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_sbx_operator, regress_sbx_reader;
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
	RETURN state || ' ' || message || COALESCE(E'\n    ' || NULLIF(detail, ''), '') || COALESCE(E'\n    HINT: ' || NULLIF(hint, ''), '');
END $$;

-- What a reader answers is what the table says.
CREATE TABLE regress_answer (provider_id text PRIMARY KEY, answer jsonb);
CREATE FUNCTION regress_reader(provider_id text) RETURNS jsonb LANGUAGE sql
	AS 'SELECT answer FROM public.regress_answer a WHERE a.provider_id = regress_reader.provider_id';
CREATE FUNCTION regress_answers(id text, reply jsonb) RETURNS void LANGUAGE sql
	AS 'INSERT INTO public.regress_answer VALUES (id, reply) ON CONFLICT (provider_id) DO UPDATE SET answer = excluded.answer';
CREATE FUNCTION regress_hangs(provider_id text) RETURNS jsonb LANGUAGE sql
	AS $$SELECT pg_catalog.to_jsonb(pg_catalog.pg_sleep(600)::text)$$;
CREATE FUNCTION regress_fails(provider_id text) RETURNS jsonb LANGUAGE plpgsql
	AS $$BEGIN RAISE EXCEPTION 'the secret of %', provider_id; END$$;
CREATE FUNCTION regress_wrong(provider_id text) RETURNS text LANGUAGE sql AS $$SELECT 'text'$$;
CREATE FUNCTION regress_set(provider_id text) RETURNS SETOF jsonb LANGUAGE sql AS $$SELECT '{}'::jsonb$$;

--
-- Registering a reader
--
-- Rule: a function schema.name(text) that returns jsonb.  must fire / must not fire
SELECT reader, regress_try(format('SELECT sbx_register_provider(%L, %L, capacity => %L)', 'one', 'daytona', jsonb_build_object('reader', reader)))
FROM (VALUES ('regress_reader'), ('public.regress_none'), ('public.regress_wrong'), ('public.regress_set'), ('public.regress_reader(text)'),
	('nowhere.regress_reader'), ('public.regress_reader')) v(reader);
SELECT regress_try($$UPDATE sbx_provider SET capacity = '{"reader":"public.regress_none"}'$$);
SELECT sbx_unregister_provider('one');

--
-- Measurements
--
SELECT sbx_register_provider('a', 'daytona', capacity => '{"reader":"public.regress_reader","limits":{"cpu":100,"memory":1000,"sandboxes":10},"demand":{"cpu":2,"memory":100}}');
-- Rule: resource and used are the reader's to say, the rest may be the registration's;
-- what is given has to be right.  must not fire
CREATE FUNCTION regress_measure(reply jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM regress_answers('a', reply);
	RETURN QUERY SELECT concat_ws(' ', status, reason, resource, used, "limit", unit, headroom, required) FROM sbx_capacity('{a}');
END $$;
SELECT reply, regress_measure(reply) FROM (VALUES
	('{"status":"known","resources":[{"resource":"cpu","used":5}]}'::jsonb),
	('{"status":"known","resources":[{"resource":"sandboxes","used":3},{"resource":"cpu","used":0.5}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5,"limit":10,"required":1,"unit":"vCPU","headroom":5}]}'),
	('{"status":"known","resources":[{"resource":"disk","used":5,"limit":10,"required":1,"unit":"MiB"}]}'),
	('{"status":"known","resources":[{"resource":"memory","used":1500}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":0.3,"limit":0.7,"headroom":0.4}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5,"limit":null,"unit":null}],"note":"more is ignored"}'),
	('{"status":"unknown","reason":"MAINTENANCE"}'),
	('{"status":"unknown","reason":"LIMIT_NOT_CONFIGURED"}')) v(reply);
-- must fire: never zero, never a guess
SELECT reply, regress_measure(reply) FROM (VALUES
	(NULL::jsonb), ('null'), ('5'), ('[]'), ('{}'), ('{"status":"known"}'), ('{"status":"known","resources":[]}'), ('{"status":"known","resources":{}}'),
	('{"status":"known","resources":"cpu"}'), ('{"status":"known","resources":["cpu"]}'), ('{"status":"Known","resources":[{"resource":"cpu","used":5}]}'),
	('{"status":"known","resources":[{"resource":"cpu"}]}'), ('{"status":"known","resources":[{"used":5}]}'),
	('{"status":"known","resources":[{"resource":"gpu","used":5}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":"5"}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":-1}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":null}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":1e400}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":5,"limit":"10"}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5,"limit":-10}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":5,"required":-1}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5,"unit":"MiB"}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":5,"unit":5}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5,"headroom":96}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":5,"headroom":"95"}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5},{"resource":"cpu","used":5}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":5},{"resource":"memory","used":"5"}]}'),
	('{"status":"known","resources":[{"resource":"disk","used":5}]}'), ('{"status":"known","resources":[{"resource":"disk","used":5,"limit":10}]}'),
	('{"status":"unknown"}'), ('{"status":"unknown","reason":5}'), ('{"status":"unknown","reason":""}'), ('{"status":"unknown","reason":"no room"}'),
	('{"status":"unknown","reason":"_X"}')) v(reply);

-- Rule: an account that nobody can read has its reason, and no other waits for it.
SELECT sbx_register_provider('fails', 'e2b', capacity => '{"reader":"public.regress_fails"}'),
	   sbx_register_provider('hangs', 'e2b', capacity => '{"reader":"public.regress_hangs"}'),
	   sbx_register_provider('no-credential', 'e2b', capacity => '{"limits":{"sandboxes":5}}'),
	   sbx_register_provider('no-demand', 'daytona', capacity => '{"limits":{"cpu":5}}'),
	   sbx_register_provider('no-limit', 'daytona', capacity => '{"demand":{"cpu":5}}'),
	   sbx_register_provider('nothing', 'daytona');
SELECT regress_answers('a', '{"status":"known","resources":[{"resource":"cpu","used":5},{"resource":"sandboxes","used":1}]}');
SELECT provider_id, status, reason, resource FROM sbx_capacity(timeout => '100 ms');
SELECT provider_id, status, reason, resource FROM sbx_capacity('{nothing,a,nothing}', NULL);
SELECT regress_try(statement) FROM (VALUES
	($$SELECT * FROM sbx_capacity('{a,nobody}')$$), ($$SELECT * FROM sbx_capacity('{a,NULL}')$$), ($$SELECT * FROM sbx_capacity(timeout => '0 s')$$),
	($$SELECT * FROM sbx_capacity(timeout => '2 days')$$), ($$SELECT * FROM sbx_capacity('{}')$$)) v(statement);
-- Rule: a cancel that is the reader's own end is nobody else's.  must not fire
SELECT pg_sleep(0.01), 'the session goes on' FROM sbx_capacity('{hangs}', '50 ms');
-- must fire: a reader that asks another one has no more time for it
CREATE FUNCTION regress_nested(provider_id text) RETURNS jsonb LANGUAGE sql
	AS $$SELECT pg_catalog.jsonb_build_object('status', 'unknown', 'reason', (SELECT reason FROM public.sbx_capacity('{hangs}', '1 min')))$$;
SELECT sbx_register_provider('nested', 'e2b', capacity => '{"reader":"public.regress_nested"}');
SET statement_timeout = '30 s';
SELECT reason FROM sbx_capacity('{nested}', '100 ms');
RESET statement_timeout;
-- must not fire: nor less than its own
CREATE OR REPLACE FUNCTION regress_nested(provider_id text) RETURNS jsonb LANGUAGE sql
	AS $$SELECT pg_catalog.jsonb_build_object('status', 'unknown', 'reason', 'AFTER_' || (SELECT reason FROM public.sbx_capacity('{hangs}', '50 ms')))$$;
SELECT reason FROM sbx_capacity('{nested}', '1 min');
-- must fire: and its own goes on afterwards
CREATE OR REPLACE FUNCTION regress_nested(provider_id text) RETURNS jsonb LANGUAGE plpgsql
	AS $$BEGIN PERFORM public.sbx_capacity('{hangs}', '50 ms'); PERFORM pg_catalog.pg_sleep(600); END$$;
SET statement_timeout = '30 s';
SELECT reason FROM sbx_capacity('{nested}', '300 ms');
RESET statement_timeout;
-- must not fire: a cancel that came too late for the reader, which was busy and then failed
CREATE OR REPLACE FUNCTION regress_nested(provider_id text) RETURNS jsonb LANGUAGE sql
	AS $$SELECT pg_catalog.to_jsonb(1 / (pg_catalog.length(pg_catalog.sha512(pg_catalog.convert_to(pg_catalog.rpad(provider_id, 30000000), 'UTF8'))) - 64))$$;
SELECT pg_sleep(0.01), 'the session goes on' FROM sbx_capacity('{nested}', '20 ms');
-- must fire: the statement's own time is over
SET statement_timeout = '50 ms';
SELECT * FROM sbx_capacity('{hangs}', '1 min');
RESET statement_timeout;
-- must not fire: where the reader was is not told; where its caller was is
SET statement_timeout = '50 ms';
DO $$
DECLARE
	message text; context text;
BEGIN
	PERFORM sbx_capacity('{hangs}', '1 min');
EXCEPTION WHEN query_canceled THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, context = PG_EXCEPTION_CONTEXT;
	RAISE NOTICE '% | %', message, context;
END $$;
RESET statement_timeout;
-- Rule: reading takes no transaction id, and may be done read-only.  must not fire
BEGIN READ ONLY;
SELECT count(*) FROM sbx_capacity('{a,fails,no-credential}');
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_transaction_id;
COMMIT;
SELECT sbx_unregister_provider(id) FROM sbx_provider WHERE id <> 'a' ORDER BY id;

--
-- The views
--
SELECT provider_id, resource, used, "limit" FROM sbx_capacity_now;
-- Rule: warning from 80 %, critical from 95 % or when nothing fits.
CREATE FUNCTION regress_headroom(reply jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM regress_answers('a', reply);
	RETURN QUERY SELECT concat_ws(' ', h.status, h.reason, h.tightest_resource, round(h.percent_used::numeric, 3), h.level, h.launches) FROM sbx_headroom h;
END $$;
SELECT reply -> 'resources' AS resources, regress_headroom(reply) FROM (VALUES
	('{"status":"known","resources":[{"resource":"cpu","used":0}]}'::jsonb),
	('{"status":"known","resources":[{"resource":"cpu","used":79.999}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":80}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":94.999}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":95}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":98}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":98.001}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":100}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":150}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":10},{"resource":"memory","used":700}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":90},{"resource":"memory","used":700}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":90},{"resource":"memory","used":700,"required":301}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":0,"limit":0}]}'), ('{"status":"known","resources":[{"resource":"cpu","used":5,"required":0}]}'),
	('{"status":"known","resources":[{"resource":"disk","used":5,"limit":10,"required":0}]}'),
	('{"status":"known","resources":[{"resource":"cpu","used":0,"limit":1e300,"required":1e-300}]}'),
	('{"status":"unknown","reason":"MAINTENANCE"}')) v(reply);

-- Rule: what is no finite number says nothing.  must fire
SELECT v.*, l.* FROM (VALUES ('NaN'::float8, 10::float8, 1::float8), (1, 'NaN', 1), (1, 10, 'NaN'), ('Infinity', 10, 1), ('-Infinity', 10, 1),
	(1, 'Infinity', 1), (1, 10, 'Infinity'), ('Infinity', 'Infinity', 1), (NULL, 10, 1)) v(used, "limit", required), sbx_capacity_level(used, "limit", required) l;
-- must not fire
SELECT * FROM sbx_capacity_level(1, 10, 1);
-- Rule: whole numbers give no fractions that are not there, and nothing overflows.
SELECT percent_used FROM sbx_capacity_level(11, 10, 1) UNION ALL SELECT percent_used FROM sbx_capacity_level(1e307, 1e308, 1);

--
-- The order of a policy
--
SELECT sbx_register_provider('b', 'daytona', capacity => '{"reader":"public.regress_reader","limits":{"sandboxes":10}}'),
	   sbx_register_provider('c', 'e2b', capacity => '{"reader":"public.regress_reader","limits":{"cpu":100,"memory":1000,"disk":1000,"sandboxes":10},"demand":{"cpu":1,"memory":1,"disk":1}}'),
	   sbx_register_provider('unlisted', 'daytona');
SELECT sbx_set_credential(id, 'key') FROM sbx_provider;
-- must fire
SELECT "order", regress_try(format('SELECT sbx_set_policy(%L, provider_order => %L)', 'p', "order")),
	   regress_try(format('INSERT INTO sbx_policy (name, provider_order) VALUES (%L, %L)', 'p', "order"))
FROM (VALUES ('{}'), ('{a,no body}'), ('{a,b,a}'), ('{a,NULL}'), ('{{a,b}}'), ('{""}')) v("order");
SELECT regress_try(format('SELECT sbx_set_policy(%L, provider_order => %L)', 'p', "order")) FROM (VALUES ('{a,nobody}'), ('{a,B}')) v("order");
-- must not fire: a dump may name what was unregistered since, and only superusers restore one
INSERT INTO sbx_policy (name, provider_order) VALUES ('restored', '{a,nobody}');
SELECT sbx_route(policy => 'restored');
DELETE FROM sbx_policy WHERE name = 'restored';
SELECT regress_try(format('SELECT sbx_set_policy(%L, capacity_timeout => %L)', 'p', timeout)) FROM (VALUES ('0 s'), ('-1 s'), ('2 days')) v(timeout);
-- must not fire
SELECT sbx_set_policy('p', provider_order => '{c,b,a}', capacity_timeout => '1 min');
SELECT name, provider_order, capacity_timeout FROM sbx_policy;
-- Rule: the order replaces the ranking, and is the only way to a pool.
SELECT sbx_route(policy => 'p');
SELECT "position", provider_id, eligible, rejections, score, capacity, reason FROM sbx_route_explain(policy => 'p');
SELECT * FROM sbx_route_explain_text(policy => 'p');
SELECT "position", provider_id, rejections FROM sbx_route_explain('{"providerId":"unlisted"}', 'p');
SELECT regress_try($$SELECT sbx_provision('{"providerId":"unlisted"}', 'p')$$);
-- must not fire: without the policy the strategy decides
SELECT "position", provider_id, rejections, score FROM sbx_route_explain();
-- Rule: what vanishes from the registrations later is passed over, with an event.
SELECT sbx_register_provider('gone', 'daytona');
SELECT sbx_set_policy('q', provider_order => '{gone,a}');
SELECT sbx_unregister_provider('gone');
SELECT sbx_route(policy => 'q');
SELECT regress_answers('a', '{"status":"unknown","reason":"MAINTENANCE"}');
SELECT regress_try($$SELECT sbx_provision(policy => 'q')$$);
SELECT event, provider_id, detail FROM sbx_recent_events() WITH ORDINALITY ORDER BY ordinality DESC LIMIT 3;

--
-- Admission
--
-- Rule: in every dimension that is reported the greater of demand and request has to fit.
CREATE FUNCTION regress_admit(request jsonb, used_cpu float8, used_memory float8, used_disk float8, used_sandboxes float8) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	PERFORM regress_answers('c', jsonb_build_object('status', 'known', 'resources', jsonb_build_array(
		jsonb_build_object('resource', 'cpu', 'used', used_cpu), jsonb_build_object('resource', 'memory', 'used', used_memory),
		jsonb_build_object('resource', 'disk', 'used', used_disk), jsonb_build_object('resource', 'sandboxes', 'used', used_sandboxes))));
	RETURN (SELECT capacity FROM sbx_route_explain(request, 'p', read_capacity => true) WHERE provider_id = 'c');
END $$;
SELECT count(sbx_update_provider(id, capabilities => '{"resources":{"cpu":1000,"memoryMb":100000,"diskMb":100000}}')) FROM sbx_provider;
SELECT what, request, regress_admit(request, cpu, memory, disk, sandboxes) FROM (VALUES
	('empty', '{}'::jsonb, 0, 0, 0, 0), ('exact fit of the demand', '{}', 99, 999, 999, 9),
	('one over: cpu', '{}', 99.001, 0, 0, 0), ('one over: memory', '{}', 0, 999.5, 0, 0), ('one over: disk', '{}', 0, 0, 1000, 0),
	('full: sandboxes', '{}', 0, 0, 0, 10), ('negative headroom', '{}', 0, 0, 0, 11),
	('exact fit of the request', '{"resources":{"cpu":50,"memoryMb":500,"diskMb":500}}', 50, 500, 500, 9),
	('one over: requested cpu', '{"resources":{"cpu":50.5}}', 50, 0, 0, 0), ('one over: requested memory', '{"resources":{"memoryMb":501}}', 0, 500, 0, 0),
	('one over: requested disk', '{"resources":{"diskMb":501}}', 0, 0, 500, 0),
	('less is requested than is needed', '{"resources":{"cpu":0.5}}', 99.5, 0, 0, 0)) v(what, request, cpu, memory, disk, sandboxes);
-- Rule: a dimension that is not reported admits everything; nothing reported admits nobody.
SELECT regress_answers('c', '{"status":"known","resources":[{"resource":"sandboxes","used":9}]}');
SELECT regress_answers('b', '{"status":"unknown","reason":"MAINTENANCE"}');
SELECT provider_id, capacity FROM sbx_route_explain('{"resources":{"cpu":1000}}', 'p', read_capacity => true);
-- must not fire: without an order nothing is read
SELECT provider_id, capacity FROM sbx_route_explain(read_capacity => true);
-- Rule: nobody has room: SB004, with each one's reason; nothing is an attempt.
SELECT regress_answers('c', '{"status":"known","resources":[{"resource":"sandboxes","used":10}]}');
SELECT regress_answers('a', '{"status":"known","resources":[{"resource":"cpu","used":99}]}');
SELECT regress_try($$SELECT sbx_provision('{}', 'p')$$);
SELECT regress_try($$SELECT sbx_provision_detached('{}', 'p')$$);
SELECT regress_try($$SELECT * FROM sbx_provision_many('{}', 3, 'p')$$);
SELECT event, provider_id, attempt, detail FROM (SELECT * FROM sbx_recent_events() WITH ORDINALITY ORDER BY ordinality DESC LIMIT 4) e ORDER BY ordinality;
-- Rule: a pool that is asked for is the only one, and never spills over.
SELECT regress_try($$SELECT sbx_provision('{"providerId":"c"}', 'p')$$);
-- Rule: many need room for all of them, in one account.
SELECT regress_answers('a', '{"status":"unknown","reason":"MAINTENANCE"}');
SELECT regress_answers('c', '{"status":"known","resources":[{"resource":"sandboxes","used":8}]}');
SELECT regress_try($$SELECT * FROM sbx_provision_many('{}', 3, 'p')$$);

--
-- Who may
--
CREATE ROLE regress_sbx_reader;
CREATE ROLE regress_sbx_operator;
SET ROLE regress_sbx_operator;
SELECT * FROM sbx_capacity();
SELECT * FROM sbx_capacity_now;
SELECT * FROM sbx_headroom;
RESET ROLE;
GRANT SELECT ON sbx_headroom TO regress_sbx_operator;
GRANT EXECUTE ON FUNCTION sbx_capacity TO regress_sbx_operator;
-- Rule: a reader runs with the rights of the role that registered it, and with no others.
CREATE FUNCTION regress_who(provider_id text) RETURNS jsonb LANGUAGE sql
	AS $$SELECT pg_catalog.jsonb_build_object('status', 'unknown', 'reason', pg_catalog.upper(current_user))$$;
UPDATE sbx_provider SET capacity = '{"reader":"public.regress_who"}', registered_by = 'regress_sbx_reader' WHERE id = 'a';
SET ROLE regress_sbx_operator;
SELECT provider_id, status, reason, level, launches FROM sbx_headroom ORDER BY 1;
RESET ROLE;
-- must fire: nobody lends his rights to a reader of somebody else's by the way
SELECT regress_try($$SELECT sbx_update_provider('a', enabled => false)$$);
SELECT regress_try($$SELECT sbx_update_provider('a', signals => '{}')$$);
-- must not fire: a row written by a superuser stays the other's
UPDATE sbx_provider SET enabled = true WHERE id = 'a';
SELECT registered_by, provider_id, reason FROM sbx_capacity('{a}'), sbx_provider WHERE id = 'a';
-- must fire: the same of rows that are written directly, which go over to who writes them
GRANT SELECT, UPDATE ON sbx_provider, sbx_policy TO regress_sbx_operator;
SELECT sbx_set_policy('lent', classifier => 'public.sbx_classify_proven');
SET ROLE regress_sbx_operator;
SELECT regress_try($$UPDATE sbx_provider SET enabled = false WHERE id = 'a'$$);
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{}' WHERE name = 'lent'$$);
-- must not fire: without the function there is nothing to lend
SELECT regress_try($$UPDATE sbx_policy SET classifier = NULL WHERE name = 'lent'$$);
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = '{}', classifier = 'public.sbx_classify_proven' WHERE name = 'lent'$$);
SELECT regress_try($$UPDATE sbx_policy SET request_defaults = NULL WHERE name = 'lent'$$);
RESET ROLE;
SELECT name, classifier, registered_by FROM sbx_policy WHERE name = 'lent';
REVOKE EXECUTE ON FUNCTION regress_who FROM PUBLIC;
SELECT provider_id, reason FROM sbx_headroom WHERE provider_id = 'a';
-- must not fire: who gives it takes it over, and without a reader there is nothing to lend
SELECT sbx_update_provider('a', capacity => '{"reader":"public.regress_reader"}');
SELECT registered_by = quote_ident(current_user)::regrole AS mine FROM sbx_provider WHERE id = 'a';
SELECT sbx_update_provider('a', enabled => true);
UPDATE sbx_provider SET capacity = NULL, registered_by = 'regress_sbx_reader' WHERE id = 'a';
SELECT sbx_update_provider('a', enabled => true);
SELECT registered_by = quote_ident(current_user)::regrole AS mine FROM sbx_provider WHERE id = 'a';

DROP OWNED BY regress_sbx_operator;
DELETE FROM sbx_policy;
DELETE FROM sbx_provider;
DROP ROLE regress_sbx_operator, regress_sbx_reader;
DROP TABLE regress_answer;
DROP FUNCTION regress_try, regress_reader, regress_answers, regress_hangs, regress_fails, regress_wrong, regress_set, regress_measure, regress_headroom, regress_admit, regress_who, regress_nested;
