--
-- ROUTING
-- The request language, the filter, the ranking.
--
\set VERBOSITY terse
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
CREATE FUNCTION regress_request(request text) RETURNS text LANGUAGE sql AS
	$$ SELECT regress_try(format('SELECT * FROM sbx_route(%L)', request)) $$;
-- "id>id>id" of the eligible pools in order.
CREATE FUNCTION regress_order(request jsonb) RETURNS text LANGUAGE sql AS
	$$ SELECT COALESCE(string_agg(id, ' > ' ORDER BY n), '-') FROM sbx_route(request) WITH ORDINALITY r(id, n) $$;
-- The codes of one pool.
CREATE FUNCTION regress_codes(pool text, request jsonb) RETURNS text LANGUAGE sql AS
	$$ SELECT CASE WHEN eligible THEN 'eligible' ELSE array_to_string(rejections, ' ') END
	   FROM sbx_route_explain(request) WHERE provider_id = pool $$;

--
-- Without any pool
--
SELECT * FROM sbx_route();
SELECT * FROM sbx_route_explain();

SELECT sbx_register_provider('one', 'daytona', '{}',
	'{"capabilities":["syncExec","pty","ourOwn"],"resources":{"cpu":2.5,"memoryMb":4096,"diskMb":10240,"gpu":1}}'),
	sbx_set_credential('one', 'k');
\pset format unaligned
\pset tuples_only on

--
-- The request language: each refused request beside an accepted one
--
SELECT request, regress_request(request) FROM (VALUES
	-- the document
	('{}'), ('[]'), ('"x"'), ('1'), ('null'),
	('{"resource":{}}'), ('{"nothingLikeIt":1}'), ('{"Resources":{}}'), ('{"":1}'),
	-- resources
	('{"resources":{}}'), ('{"resources":null}'), ('{"resources":[]}'), ('{"resources":1}'),
	('{"resources":{"memory":1}}'), ('{"resources":{"memoryMB":1}}'),
	('{"resources":{"cpu":0}}'), ('{"resources":{"cpu":0.25}}'), ('{"resources":{"cpu":null}}'),
	('{"resources":{"cpu":-0.25}}'), ('{"resources":{"cpu":"2"}}'), ('{"resources":{"cpu":1e308}}'), ('{"resources":{"cpu":1e309}}'),
	('{"resources":{"memoryMb":4096}}'), ('{"resources":{"memoryMb":4096.0}}'), ('{"resources":{"memoryMb":0.5}}'),
	('{"resources":{"memoryMb":-1}}'), ('{"resources":{"memoryMb":true}}'), ('{"resources":{"memoryMb":1e15}}'), ('{"resources":{"memoryMb":1e16}}'),
	('{"resources":{"diskMb":1}}'), ('{"resources":{"diskMb":1.1}}'), ('{"resources":{"diskMb":-1}}'),
	('{"resources":{"gpu":1}}'), ('{"resources":{"gpu":0.5}}'), ('{"resources":{"gpu":1e999}}'), ('{"resources":{"gpu":-1e999}}'),
	-- requires: capability lists
	('{"requires":{}}'), ('{"requires":null}'), ('{"requires":"pty"}'), ('{"requires":{"capabilities":["pty"]}}'),
	('{"requires":{"requiredCapabilities":[]}}'), ('{"requires":{"requiredCapabilities":null}}'),
	('{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"requiredCapabilities":["ourOwn"]}}'),
	('{"requires":{"requiredCapabilities":"pty"}}'), ('{"requires":{"requiredCapabilities":{}}}'),
	('{"requires":{"requiredCapabilities":[1]}}'), ('{"requires":{"requiredCapabilities":[null]}}'), ('{"requires":{"requiredCapabilities":[["pty"]]}}'),
	('{"requires":{"requiredCapabilities":["pty","pty"]}}'), ('{"requires":{"requiredCapabilities":[""]}}'),
	('{"requires":{"requiredCapabilities":["a-b"]}}'), ('{"requires":{"requiredCapabilities":["1pty"]}}'), ('{"requires":{"requiredCapabilities":["p\u0009ty"]}}'),
	('{"requires":{"requiredCapabilities":["ptyy"]}}'), ('{"requires":{"requiredCapabilities":["ourown"]}}'), ('{"requires":{"requiredCapabilities":["PTY"]}}'),
	('{"requires":{"requiredCapabilities":["zzzzzzzz"]}}'),
	('{"requires":{"forbiddenCapabilities":["gpu"]}}'), ('{"requires":{"forbiddenCapabilities":["gpus"]}}'),
	('{"requires":{"forbiddenCapabilities":["nestedUserNamespace"]}}'),
	('{"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["gpu"]}}'),
	('{"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["gpu","pty"]}}'),
	('{"requires":{"forbiddenCapabilities":["gpu","gpu"]}}'),
	-- routing
	('{"routing":{}}'), ('{"routing":null}'), ('{"routing":[]}'), ('{"routing":{"strateg":"cost"}}'),
	('{"routing":{"strategy":"cost"}}'), ('{"routing":{"strategy":"latency"}}'), ('{"routing":{"strategy":"reliability"}}'),
	('{"routing":{"strategy":"balanced"}}'), ('{"routing":{"strategy":null}}'),
	('{"routing":{"strategy":"costs"}}'), ('{"routing":{"strategy":"COST"}}'), ('{"routing":{"strategy":""}}'), ('{"routing":{"strategy":1}}'), ('{"routing":{"strategy":"cheapest"}}'),
	('{"routing":{"latencyObjective":"ready"}}'), ('{"routing":{"latencyObjective":"coldStart"}}'),
	('{"routing":{"latencyObjective":"coldstart"}}'), ('{"routing":{"latencyObjective":["ready"]}}'),
	-- providerId
	('{"providerId":"one"}'), ('{"providerId":null}'), ('{"providerId":"nobody"}'), ('{"providerId":""}'), ('{"providerId":1}'), ('{"providerId":"a\nb"}'),
	-- launch
	('{"launch":{}}'), ('{"launch":null}'), ('{"launch":[]}'), ('{"launch":{"envs":{}}}'),
	('{"launch":{"name":"job 7"}}'), ('{"launch":{"name":""}}'), ('{"launch":{"name":7}}'), ('{"launch":{"name":"a\u0001"}}'), ('{"launch":{"name":"a\u007f"}}'),
	('{"launch":{"env":{}}}'), ('{"launch":{"env":{"A":"b","_x9":"c"}}}'), ('{"launch":{"env":[]}}'), ('{"launch":{"env":{"A":1}}}'),
	('{"launch":{"env":{"9A":"b"}}}'), ('{"launch":{"env":{"A-B":"b"}}}'), ('{"launch":{"env":{"":"b"}}}'), ('{"launch":{"env":{"A":""}}}'), ('{"launch":{"env":{"A":"x\ny"}}}'),
	('{"launch":{"labels":{"requestedBy":"app","a.b/c":"x"}}}'), ('{"launch":{"labels":["a"]}}'), ('{"launch":{"labels":{"a":true}}}'), ('{"launch":{"labels":{"a":""}}}'), ('{"launch":{"labels":{"":"a"}}}'),
	('{"launch":{"labels":{"sbx-router-id":"x"}}}'), ('{"launch":{"labels":{"sbx-router-":"x"}}}'), ('{"launch":{"labels":{"sbx-router":"x"}}}'), ('{"launch":{"labels":{"SBX-ROUTER-ID":"x"}}}'),
	('{"launch":{"createTimeoutSeconds":1}}'), ('{"launch":{"createTimeoutSeconds":86400}}'), ('{"launch":{"createTimeoutSeconds":86401}}'), ('{"launch":{"createTimeoutSeconds":0}}'), ('{"launch":{"createTimeoutSeconds":-1}}'), ('{"launch":{"createTimeoutSeconds":1.5}}'), ('{"launch":{"createTimeoutSeconds":"1"}}'), ('{"launch":{"createTimeoutSeconds":1e999}}')
) v(request);
-- Rule: at most 64 entries, 256 KiB, 16 levels (of which "request", "requires" and
-- "network" are three).
SELECT n, regress_request((SELECT jsonb_build_object('launch', jsonb_build_object('labels', jsonb_object_agg('l' || i, 'x')))::text FROM generate_series(1, n) i)),
	regress_request((SELECT jsonb_build_object('launch', jsonb_build_object('env', jsonb_object_agg('E' || i, 'x')))::text FROM generate_series(1, n) i)),
	regress_request((SELECT jsonb_build_object('requires', jsonb_build_object('forbiddenCapabilities', jsonb_agg('c' || i)))::text FROM generate_series(1, n) i))
FROM (VALUES (64), (65)) v(n);
SELECT n, regress_request(jsonb_build_object('launch', jsonb_build_object('name', repeat('x', n)))::text)
FROM (VALUES (261000), (262144)) v(n);
SELECT n, regress_request('{"requires":{"network":{"x":' || repeat('[', n - 3) || repeat(']', n - 3) || '}}}')
FROM (VALUES (16), (17)) v(n);
SELECT regress_try('SELECT * FROM sbx_route(NULL)');
SELECT regress_try('SELECT * FROM sbx_route_explain(NULL)');
SELECT regress_try('SELECT sbx_provision(NULL)');

-- Rule: of several faults the first in the order of the language is named, an
-- object's unknown keys before its members.
SELECT request, regress_request(request) FROM (VALUES
	('{"routing":{"strategy":1},"resources":{"cpu":-1},"launch":{"name":1}}'),
	('{"routing":{"strategy":1},"launch":{"name":1}}'),
	('{"launch":{"name":1},"providerId":1}'),
	('{"resources":{"gpu":-1,"cpu":-1,"zzz":1}}'),
	('{"resources":{"gpu":-1,"cpu":-1}}'),
	('{"zzz":1,"resources":{"cpu":-1}}'),
	('{"launch":{"createTimeoutSeconds":0,"labels":[],"env":[],"name":1}}'),
	('{"launch":{"createTimeoutSeconds":0,"labels":[],"env":[]}}'),
	('{"launch":{"createTimeoutSeconds":0,"labels":[]}}'),
	('{"requires":{"forbiddenCapabilities":["x-"],"requiredCapabilities":["y-"]}}'),
	('{"requires":{"requiredCapabilities":["noSuchThing"]},"routing":{"strategy":1}}')
) v(request);

-- Rule: parts of the language that are not built say so, null is absence.
SELECT request, regress_request(request) FROM (VALUES
	('{"region":{"preferred":["eu-west"]}}'), ('{"region":null}'),
	('{"placement":{"authority":"provider"}}'), ('{"placement":null}'),
	('{"idempotencyKey":"order-4711"}'), ('{"idempotencyKey":null}'),
	('{"requires":{"image":{"identity":"i"}}}'), ('{"requires":{"image":null}}'),
	('{"requires":{"isolation":"strong"}}'), ('{"requires":{"egress":"open"}}'), ('{"requires":{"stateDurability":"persistent"}}'),
	('{"requires":{"restrictions":["x"]}}'), ('{"requires":{"network":{"ipv6":true}}}'), ('{"requires":{"timeout":{"granularityMs":1}}}'),
	('{"requires":{"isolation":null,"egress":null,"stateDurability":null,"restrictions":null,"network":null,"timeout":null}}'),
	('{"routing":{"acquisitionFallback":"forbidden"}}'), ('{"routing":{"maxAcquisitionAttempts":1}}'),
	('{"routing":{"acquisitionFallback":null,"maxAcquisitionAttempts":null}}')
) v(request);
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_route('{}', 'default')$$), ($$SELECT sbx_route('{}', NULL)$$), ($$SELECT sbx_route('{"x":1}', 'default')$$),
	($$SELECT sbx_route_explain('{}', 'default')$$), ($$SELECT sbx_provision('{}', 'default')$$),
	($$SELECT sbx_route_explain(detached => true)$$), ($$SELECT sbx_route_explain(detached => false)$$), ($$SELECT sbx_route_explain(detached => NULL)$$),
	($$SELECT sbx_route_explain(read_capacity => true)$$), ($$SELECT sbx_route_explain(read_capacity => false)$$)
) v(statement);

--
-- Filter
--
-- Rule: exact fit passes, a little more does not; 0 and absent never reject.
SELECT request, regress_codes('one', request::jsonb) FROM (VALUES
	('{"resources":{"cpu":2.5,"memoryMb":4096,"diskMb":10240,"gpu":1}}'),
	('{"resources":{"cpu":2.500000001}}'), ('{"resources":{"memoryMb":4097}}'),
	('{"resources":{"diskMb":10241}}'), ('{"resources":{"gpu":2}}'),
	('{"resources":{"gpu":2,"diskMb":10241,"memoryMb":4097,"cpu":3}}'),
	('{"resources":{"cpu":0,"memoryMb":0,"diskMb":0,"gpu":0}}')) v(request);
SELECT sbx_register_provider('bare', 'daytona'), sbx_set_credential('bare', 'k');
-- Rule: a pool without a declaration has no resources, and syncExec and
-- fileTransfer; a declared list replaces these.
SELECT request, regress_codes('bare', request::jsonb), regress_codes('one', request::jsonb) FROM (VALUES
	('{}'), ('{"resources":{"cpu":0.001}}'), ('{"resources":{"memoryMb":1}}'), ('{"resources":{"diskMb":1}}'), ('{"resources":{"gpu":1}}'),
	('{"requires":{"requiredCapabilities":["syncExec","fileTransfer"]}}'),
	('{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"requiredCapabilities":["ourOwn"]}}'),
	('{"requires":{"forbiddenCapabilities":["pty"]}}'), ('{"requires":{"forbiddenCapabilities":["fileTransfer"]}}')) v(request);
-- Rule: several capabilities are listed in the order of the request.
SELECT request, regress_codes('bare', request::jsonb) FROM (VALUES
	('{"requires":{"requiredCapabilities":["tailnet","pty","syncExec","asyncExec"]}}'),
	('{"requires":{"forbiddenCapabilities":["fileTransfer","pty","syncExec"]}}')) v(request);
-- Rule: providerId is compared byte by byte.
SELECT request, regress_codes('bare', request::jsonb), regress_codes('one', request::jsonb) FROM (VALUES
	('{"providerId":"bare"}'), ('{"providerId":"Bare"}'), ('{"providerId":"bar"}')) v(request);
-- Rule: order of the codes, all that apply.
SELECT sbx_update_provider('bare', enabled => false);
SELECT regress_codes('bare', '{"providerId":"one","resources":{"cpu":1,"memoryMb":1,"diskMb":1,"gpu":1},
	"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["syncExec"]}}');
-- Rule: a disabled pool is not asked for its credential or signals ...
SELECT sbx_clear_credentials('bare');
SELECT sbx_update_provider('bare', signals => '{"available":false}');
SELECT regress_codes('bare', '{}');
-- ... one that passes so far is asked for its credential, then for its signals.
SELECT sbx_update_provider('bare', enabled => true);
SELECT regress_codes('bare', '{}');
SELECT sbx_set_credential('bare', 'k');
SELECT regress_codes('bare', '{}');
SELECT sbx_update_provider('bare', signals => '{"available":true}');
SELECT regress_codes('bare', '{}');
-- Rule: rejected rows come last, by id in bytes; their scores are NULL, the signals
-- are shown; each code has its sentence.
SELECT sbx_register_provider('B', 'daytona'), sbx_register_provider('a', 'daytona'), sbx_register_provider('b', 'daytona');
\pset format aligned
\pset tuples_only off
\x on
SELECT * FROM sbx_route_explain('{"providerId":"one","resources":{"cpu":1},"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["fileTransfer"]}}');
\x off
SELECT position, provider_id, eligible, rejections, reason FROM sbx_route_explain();
SELECT provider_id, reason FROM sbx_route_explain('{"resources":{"cpu":100,"memoryMb":100000,"diskMb":100000,"gpu":9}}') WHERE provider_id = 'one';
DELETE FROM sbx_provider;
SELECT sbx_clear_credentials();

--
-- Rank
--
-- Rule: cost ascending, latency ascending, reliability descending; parts and the
-- balanced score (0.35 c + 0.25 l + 0.40 r) over the eligible pools.
--
--            cost  ready  cold  rate     c = (5-cost)/4  l = (300-ready)/200  r = (rate-0.5)/0.5
-- cheap      1     300    10    0.5      1               0                    0
-- fast       5     100    90    0.75     0               1                    0.5
-- solid      3     200    50    1        0.5             0.5                  1
--
-- balanced: cheap 0.35*1 + 0 + 0            = 0.35
--           fast  0 + 0.25*1 + 0.40*0.5     = 0.45
--           solid 0.175 + 0.125 + 0.40      = 0.70
-- coldStart: l = (90-cold)/80: cheap 1, fast 0, solid 0.5;
--            cheap 0.35 + 0.25 = 0.60, fast 0.20, solid 0.70
-- "dear" and "asleep" are not eligible, and have no influence on the ranges.
SELECT sbx_register_provider(id, 'daytona', '{}', NULL, signals::jsonb), sbx_set_credential(id, 'k') FROM (VALUES
	('solid', '{"estimatedCost":3,"readyLatencyMs":200,"coldStartLatencyMs":50,"completionWithinBudgetRate":1}'),
	('fast', '{"estimatedCost":5,"readyLatencyMs":100,"coldStartLatencyMs":90,"completionWithinBudgetRate":0.75}'),
	('cheap', '{"estimatedCost":1,"readyLatencyMs":300,"coldStartLatencyMs":10,"completionWithinBudgetRate":0.5}'),
	('asleep', '{"estimatedCost":0,"readyLatencyMs":0,"completionWithinBudgetRate":0,"available":false}'),
	('dear', '{"estimatedCost":1000,"readyLatencyMs":1000,"completionWithinBudgetRate":0}')) v(id, signals);
SELECT sbx_update_provider('dear', enabled => false);
SELECT strategy, objective, e.position, e.provider_id, round(e.score::numeric, 12) AS score, e.cost_part, e.latency_part, e.reliability_part, e.reason
FROM (VALUES ('balanced', 'ready'), ('balanced', 'coldStart'), ('cost', 'ready'), ('latency', 'ready'),
	  ('latency', 'coldStart'), ('reliability', 'ready')) v(strategy, objective),
	LATERAL sbx_route_explain(jsonb_build_object('routing', jsonb_build_object('strategy', strategy, 'latencyObjective', objective))) e
WHERE e.eligible;
-- Rule: the defaults are balanced and ready.
SELECT regress_order('{}'), regress_order('{"routing":{"strategy":"balanced","latencyObjective":"ready"}}'),
	   regress_order('{"routing":{"latencyObjective":"coldStart"}}');
-- Rule: sbx_route says the same as sbx_route_explain.
SELECT strategy, regress_order(jsonb_build_object('routing', jsonb_build_object('strategy', strategy)))
FROM (VALUES ('cost'), ('latency'), ('reliability')) v(strategy);
-- Rule: a pool that is alone has every part 1.
SELECT position, provider_id, score, cost_part, latency_part, reliability_part, reason
FROM sbx_route_explain('{"providerId":"fast"}') WHERE eligible;
-- Rule: default signals are 1, 1, 1, 1, true.
SELECT sbx_register_provider('plain', 'daytona', '{}', NULL, '{"readyLatencyMs":7}');
SELECT signals FROM sbx_route_explain() WHERE provider_id = 'plain';
SELECT sbx_update_provider('plain', signals => '{}');
SELECT signals FROM sbx_route_explain() WHERE provider_id = 'plain';
SELECT sbx_unregister_provider('plain');
-- Rule: a single-signal strategy orders by the signal itself, where the parts round
-- to the same number: 1 and 1 + 2^-52 over a range of 1e300.
SELECT sbx_register_provider(id, 'daytona', '{}', NULL, jsonb_build_object('estimatedCost', cost)), sbx_set_credential(id, 'k')
FROM (VALUES ('y-one', 1::numeric), ('x-one-and-a-bit', 1.0000000000000002), ('z-huge', 1e300)) v(id, cost);
SELECT provider_id, cost_part FROM sbx_route_explain('{"routing":{"strategy":"cost"}}')
WHERE eligible AND provider_id ~ '-';
SELECT sbx_unregister_provider(id) FROM (VALUES ('y-one'), ('x-one-and-a-bit'), ('z-huge')) v(id);

-- Rule: ties go by the bytes of the id, capitals before small letters, digits
-- before both; never by collation, never by order of registration.
DELETE FROM sbx_provider;
SELECT sbx_clear_credentials();
SELECT count(sbx_register_provider(id, 'daytona')), count(sbx_set_credential(id, 'k'))
FROM (VALUES ('b'), ('a'), ('B'), ('A'), ('a.b'), ('a-b'), ('a_b'), ('ab'), ('aB'), ('9'), ('10'), ('z'), ('Z')) v(id);
SELECT strategy, regress_order(jsonb_build_object('routing', jsonb_build_object('strategy', strategy)))
FROM (VALUES ('balanced'), ('cost'), ('latency'), ('reliability')) v(strategy);
-- the same for those that are rejected
SELECT string_agg(provider_id, ' ' ORDER BY n) FROM sbx_route_explain('{"providerId":"nobody"}')
	WITH ORDINALITY e("position", provider_id, eligible, rejections, score, cost_part, latency_part, reliability_part, signals, capacity, reason, n);
-- Rule: the tie is in the signal, not in the id: must not fire
SELECT sbx_update_provider('z', signals => '{"estimatedCost":0.5}');
SELECT regress_order('{"routing":{"strategy":"cost"}}');
SELECT regress_order('{"routing":{"strategy":"latency"}}');

-- Rule: registrations behave like catalogs: one's own changes are seen at once,
-- also under REPEATABLE READ, and rolled back ones are not.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT regress_order('{"providerId":"a"}');
SELECT sbx_update_provider('a', enabled => false);
SELECT regress_order('{"providerId":"a"}');
ROLLBACK;
SELECT regress_order('{"providerId":"a"}');
-- Rule: routing writes nothing: it works in a read-only transaction.
BEGIN READ ONLY;
SELECT regress_order('{"providerId":"a"}');
SELECT count(*) FROM sbx_route_explain();
COMMIT;

-- Rule: the functions compose: lateral over a table of requests, in a prepared
-- statement, in a view.
PREPARE best(jsonb) AS SELECT id FROM sbx_route($1) id LIMIT 1;
EXECUTE best('{"routing":{"strategy":"cost"}}');
EXECUTE best('{"providerId":"b"}');
DEALLOCATE best;
CREATE VIEW regress_view AS SELECT provider_id FROM sbx_route_explain('{"providerId":"B"}') WHERE eligible;
SELECT * FROM regress_view;
DROP VIEW regress_view;

DELETE FROM sbx_provider;
DROP FUNCTION regress_codes(text, jsonb), regress_order(jsonb), regress_request(text), regress_try(text);
