--
-- ROUTING
-- The filter, the ranking, and how they are explained.  The request language itself is
-- in "requests".
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
SELECT * FROM sbx_route_explain_text();

-- Rule: what is not built says so.  must fire / must not fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_provision('{"idempotencyKey":"k"}')$$), ($$SELECT sbx_provision('{"idempotencyKey":null,"providerId":"nobody"}')$$), ($$SELECT sbx_route('{"idempotencyKey":"k"}')$$)) v(statement);
-- Rule: a policy has to exist; its defaults are part of the request, so the request is
-- judged after that.  must fire / must not fire
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_route('{}', 'defoult')$$), ($$SELECT sbx_route('{}', NULL)$$), ($$SELECT sbx_route('{"x":1}', 'defoult')$$),
	($$SELECT sbx_route_explain('{}', 'defoult')$$), ($$SELECT sbx_route_explain_text('{}', 'defoult')$$), ($$SELECT sbx_provision('{}', 'defoult')$$)) v(statement);
SELECT sbx_set_policy('default', request_defaults => '{"providerId":"one"}');
SELECT statement, regress_try(statement) FROM (VALUES
	($$SELECT sbx_route('{}', 'defoult')$$), ($$SELECT sbx_route('{}', 'default')$$), ($$SELECT sbx_route('{"x":1}', 'default')$$),
	($$SELECT sbx_route_explain('{}', 'default')$$), ($$SELECT sbx_route_explain_text('{}', 'default')$$), ($$SELECT sbx_provision('{"providerId":"nobody"}', 'default')$$)) v(statement);
SELECT sbx_drop_policy('default');

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
--
-- Rule by rule
--
-- Each pool just meets the request, or misses it by one.  The same decision for pools
-- given as JSON and for registered ones.
CREATE FUNCTION regress_judge(request jsonb, capabilities jsonb, signals jsonb DEFAULT '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	pure text; registered text;
BEGIN
	SELECT CASE WHEN eligible THEN 'eligible' ELSE array_to_string(rejections, ' ') END INTO pure
	FROM sbx_route_providers(request, jsonb_build_array(jsonb_build_object('id', 'bare', 'capabilities', capabilities, 'signals', signals)));
	UPDATE sbx_provider SET capabilities = $2, signals = $3 WHERE id = 'bare';
	registered := regress_codes('bare', request);
	RETURN CASE WHEN pure = registered THEN pure ELSE format('JSON: %s, registered: %s', pure, registered) END;
END $$;
-- image: equal, undeclared never matches; every binary, in the order of the request
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"requires":{"image":{"identity":"agent-v4"}}}', '{"image":{"identity":"agent-v4"}}'), ('{"requires":{"image":{"identity":"agent-v4"}}}', '{"image":{"identity":"agent-v5"}}'), ('{"requires":{"image":{"identity":"agent-v4"}}}', '{"image":{"identity":"Agent-v4"}}'),
	('{"requires":{"image":{"identity":"agent-v4"}}}', '{"image":{}}'), ('{"requires":{"image":{"identity":"agent-v4"}}}', '{}'), ('{"requires":{"image":{"identity":"agent-v4"}}}', NULL), ('{"requires":{"image":{"identity":"agent-v4"}}}', '{"image":{"binaries":["agent-v4"]}}'),
	('{"requires":{"image":{}}}', '{}'), ('{"requires":{"image":{"requiredBinaries":[]}}}', '{}'),
	('{"requires":{"image":{"requiredBinaries":["node","git"]}}}', '{"image":{"binaries":["git","cargo","node"]}}'), ('{"requires":{"image":{"requiredBinaries":["node","git"]}}}', '{"image":{"binaries":["git"]}}'),
	('{"requires":{"image":{"requiredBinaries":["node","git"]}}}', '{"image":{"binaries":["Node"]}}'), ('{"requires":{"image":{"requiredBinaries":["git","node"]}}}', '{}'), ('{"requires":{"image":{"identity":"i","requiredBinaries":["node"]}}}', '{"image":{"identity":"j","binaries":["nod"]}}')) v(request, capabilities);
-- isolation: a floor; "unknown" is not weak, it satisfies nothing
SELECT floor AS "asked \ declared", string_agg(regress_judge(jsonb_build_object('requires', jsonb_build_object('isolation', floor)),
	jsonb_build_object('isolation', declared)), ' | ' ORDER BY n) AS "none | process | strong | unknown | nothing"
FROM unnest('{none,process,strong,NULL}'::text[]) WITH ORDINALITY f(floor, m), unnest('{none,process,strong,unknown,NULL}'::text[]) WITH ORDINALITY d(declared, n) GROUP BY floor, m ORDER BY m;
-- egress: exactly that class
SELECT floor, string_agg(regress_judge(jsonb_build_object('requires', jsonb_build_object('egress', floor)),
	jsonb_build_object('egress', declared)), ' | ' ORDER BY n) AS "none | allowlist | open | nothing"
FROM unnest('{none,allowlist,open,NULL}'::text[]) WITH ORDINALITY f(floor, m), unnest('{none,allowlist,open,NULL}'::text[]) WITH ORDINALITY d(declared, n) GROUP BY floor, m ORDER BY m;
-- state durability: a floor
SELECT floor, string_agg(regress_judge(jsonb_build_object('requires', jsonb_build_object('stateDurability', floor)),
	jsonb_build_object('stateDurability', declared)), ' | ' ORDER BY n) AS "ephemeral | persistent | nothing"
FROM unnest('{ephemeral,persistent,NULL}'::text[]) WITH ORDINALITY f(floor, m), unnest('{ephemeral,persistent,NULL}'::text[]) WITH ORDINALITY d(declared, n) GROUP BY floor, m ORDER BY m;
-- restrictions: a subset of what the pool declares
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"requires":{"restrictions":["b","a"]}}', '{"restrictions":["a","b","c"]}'), ('{"requires":{"restrictions":["b","a"]}}', '{"restrictions":["c"]}'), ('{"requires":{"restrictions":["b","a"]}}', '{"restrictions":["b"]}'),
	('{"requires":{"restrictions":["b","a"]}}', '{}'), ('{"requires":{"restrictions":[]}}', '{"restrictions":["a"]}'), ('{"requires":{"restrictions":["b"]}}', '{"regions":["b"],"image":{"identity":"b","binaries":["b"]},"timeout":{"semantics":["b"]}}')) v(request, capabilities);
-- network: every key equal in type and value; missed keys in the order of jsonb, shorter
-- first, then bytes
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"requires":{"network":{"ipv6":true}}}', '{"network":{"ipv6":true,"mtu":1500}}'), ('{"requires":{"network":{"ipv6":true}}}', '{"network":{"ipv6":false}}'), ('{"requires":{"network":{"ipv6":true}}}', '{"network":{"ipv6":"true"}}'), ('{"requires":{"network":{"ipv6":true}}}', '{"network":{"IPv6":true}}'),
	('{"requires":{"network":{"ipv6":true}}}', '{"network":{"ipv6":null}}'), ('{"requires":{"network":{"ipv6":true}}}', '{"network":{}}'), ('{"requires":{"network":{"ipv6":true}}}', '{}'), ('{"requires":{"network":{"ipv6":true}}}', '{"network":{"ipv6":[true]}}'),
	('{"requires":{"network":{"ipv6":null}}}', '{}'), ('{"requires":{"network":{"ipv6":null}}}', '{"network":{"ipv6":true}}'), ('{"requires":{"network":{}}}', '{}'),
	('{"requires":{"network":{"mtu":1500}}}', '{"network":{"mtu":1500.0}}'), ('{"requires":{"network":{"mtu":1500}}}', '{"network":{"mtu":15e2}}'), ('{"requires":{"network":{"mtu":1500}}}', '{"network":{"mtu":1501}}'), ('{"requires":{"network":{"mtu":1500}}}', '{"network":{"mtu":"1500"}}'), ('{"requires":{"network":{"mtu":0}}}', '{"network":{"mtu":false}}'),
	('{"requires":{"network":{"big":9007199254740993}}}', '{"network":{"big":9007199254740992}}'), ('{"requires":{"network":{"small":0.1}}}', '{"network":{"small":0.10}}'),
	('{"requires":{"network":{"dns":"a"}}}', '{"network":{"dns":"a"}}'), ('{"requires":{"network":{"dns":"a"}}}', '{"network":{"dns":"ab"}}'), ('{"requires":{"network":{"dns":"a"}}}', '{"network":{"dns":"A"}}'),
	('{"requires":{"network":{"dns":["a","b"]}}}', '{"network":{"dns":["a","b"]}}'), ('{"requires":{"network":{"dns":["a","b"]}}}', '{"network":{"dns":["b","a"]}}'), ('{"requires":{"network":{"dns":[]}}}', '{"network":{"dns":{}}}'), ('{"requires":{"network":{"dns":[]}}}', '{"network":{"dns":[]}}'), ('{"requires":{"network":{"dns":["a"]}}}', '{"network":{"dns":"a"}}'),
	('{"requires":{"network":{"x":{"a":1,"b":{"c":null}}}}}', '{"network":{"x":{"b":{"c":null},"a":1.0}}}'), ('{"requires":{"network":{"x":{"a":1}}}}', '{"network":{"x":{"a":1,"b":2}}}'), ('{"requires":{"network":{"x":{"a":{"b":null}}}}}', '{"network":{"x":{"a":{}}}}'),
	('{"requires":{"network":{"zz":1,"a":1,"bbb":1,"B":1}}}', '{}'), ('{"requires":{"network":{"zz":1,"a":1,"bbb":1,"B":1}}}', '{"network":{"a":1,"bbb":1}}')) v(request, capabilities);
-- timeout: semantics, granularity (coarser than asked for, or undeclared, misses)
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"requires":{"timeout":{"semantics":["sandbox-lifetime","command-lifetime"]}}}', '{"timeout":{"semantics":["command-lifetime","request-deadline","sandbox-lifetime"]}}'), ('{"requires":{"timeout":{"semantics":["sandbox-lifetime","command-lifetime"]}}}', '{"timeout":{"semantics":["command-lifetime"]}}'),
	('{"requires":{"timeout":{"semantics":["sandbox-lifetime","command-lifetime"]}}}', '{"timeout":{}}'), ('{"requires":{"timeout":{"semantics":[]}}}', '{}'),
	('{"requires":{"timeout":{"granularityMs":1000}}}', '{"timeout":{"granularityMs":1000}}'), ('{"requires":{"timeout":{"granularityMs":1000}}}', '{"timeout":{"granularityMs":1001}}'), ('{"requires":{"timeout":{"granularityMs":1000}}}', '{"timeout":{"granularityMs":1}}'),
	('{"requires":{"timeout":{"granularityMs":1000}}}', '{"timeout":{}}'), ('{"requires":{"timeout":{"granularityMs":1000}}}', '{"timeout":{"granularityMs":null}}'), ('{"requires":{"timeout":{"granularityMs":1000}}}', '{}'),
	('{"requires":{"timeout":{"granularityMs":0}}}', '{"timeout":{"granularityMs":0}}'), ('{"requires":{"timeout":{"granularityMs":0}}}', '{"timeout":{"granularityMs":1}}'), ('{"requires":{"timeout":{"granularityMs":null}}}', '{}')) v(request, capabilities);
-- sandbox lifetime: a number is a ceiling that may be reached, null is unbounded, absent
-- is unknown and misses everything that is asked for
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1800000}}}', '{"timeout":{"maxSandboxLifetimeMs":1800000}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1800001}}}', '{"timeout":{"maxSandboxLifetimeMs":1800000}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":9007199254740992}}}', '{"timeout":{"maxSandboxLifetimeMs":null}}'),
	('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}', '{"timeout":{}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}', '{"timeout":null}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}', '{}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}', NULL), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}', '{"timeout":{"maxSandboxLifetimeMs":0}}'),
	('{"requires":{"timeout":{"requiredSandboxLifetimeMs":0}}}', '{"timeout":{"maxSandboxLifetimeMs":0}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":0}}}', '{"timeout":{}}'),
	('{"requires":{"timeout":{"requiredSandboxLifetimeMs":null}}}', '{"timeout":{}}'), ('{"requires":{"timeout":{}}}', '{"timeout":{"maxSandboxLifetimeMs":0}}'), ('{"requires":{"timeout":{"completionBudgetMs":1}}}', '{}')) v(request, capabilities);
-- region: any overlap, and only when it is required
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"region":{"preferred":["eu","us"],"required":true}}', '{"regions":["ap","us"]}'), ('{"region":{"preferred":["eu","us"],"required":true}}', '{"regions":["ap"]}'), ('{"region":{"preferred":["eu","us"],"required":true}}', '{"regions":["EU"]}'),
	('{"region":{"preferred":["eu","us"],"required":true}}', '{"regions":[]}'), ('{"region":{"preferred":["eu","us"],"required":true}}', '{}'),
	('{"region":{"preferred":["eu","us"],"required":false}}', '{"regions":["ap"]}'), ('{"region":{"preferred":["eu","us"]}}', '{}')) v(request, capabilities);
-- signals: available, ready in time; both are said
SELECT request, signals, regress_judge(request::jsonb, '{}', signals::jsonb) FROM (VALUES
	('{"requires":{"timeout":{"maxReadyLatencyMs":12000}}}', '{"readyLatencyMs":12000}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":12000}}}', '{"readyLatencyMs":12000.001}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":12000}}}', '{"readyLatencyMs":11999,"coldStartLatencyMs":99999}'),
	('{"requires":{"timeout":{"maxReadyLatencyMs":1}}}', '{}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":0}}}', '{}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":0}}}', '{"readyLatencyMs":0}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":null}}}', '{"readyLatencyMs":1e300}'),
	('{}', '{"available":false}'), ('{}', '{"available":true}'), ('{}', '{"available":null}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":1}}}', '{"available":false,"readyLatencyMs":2}')) v(request, signals);
-- resources: what is declared is enough; a fraction more is not
SELECT request, capabilities, regress_judge(request::jsonb, capabilities::jsonb) FROM (VALUES
	('{"resources":{"cpu":0.1}}', '{"resources":{"cpu":0.1}}'), ('{"resources":{"cpu":0.30000000000000004}}', '{"resources":{"cpu":0.3}}'), ('{"resources":{"memoryMb":9007199254740992}}', '{"resources":{"memoryMb":9007199254740991}}'),
	('{"resources":{"cpu":1,"memoryMb":1,"diskMb":1,"gpu":1}}', '{"resources":{"cpu":1,"diskMb":1}}'), ('{"resources":{"gpu":1}}', '{"resources":{"gpu":null}}')) v(request, capabilities);

-- Rule: all codes that apply, in this order.  Every requirement at once against a pool
-- that meets none; signals are not asked then.
SELECT unnest(rejections) FROM sbx_route_providers('{"providerId":"other","resources":{"cpu":1,"memoryMb":1,"diskMb":1,"gpu":1},
	"requires":{"requiredCapabilities":["tailnet","pty"],"forbiddenCapabilities":["syncExec","gpu","fileTransfer"],"image":{"identity":"i","requiredBinaries":["z","a"]},
		"isolation":"none","egress":"none","stateDurability":"ephemeral","restrictions":["z","a"],"network":{"zz":1,"a":1},
		"timeout":{"semantics":["z","a"],"granularityMs":1,"requiredSandboxLifetimeMs":1,"maxReadyLatencyMs":0}},"region":{"preferred":["eu"],"required":true}}',
	'[{"id":"bare","enabled":false,"signals":{"available":false}}]');
-- ... and against one that meets them all
SELECT eligible, rejections FROM sbx_route_providers('{"providerId":"full","resources":{"cpu":1,"memoryMb":1,"diskMb":1,"gpu":1},
	"requires":{"requiredCapabilities":["tailnet","pty"],"forbiddenCapabilities":["syncExec","gpu","fileTransfer"],"image":{"identity":"i","requiredBinaries":["z","a"]},
		"isolation":"none","egress":"none","stateDurability":"ephemeral","restrictions":["z","a"],"network":{"zz":1,"a":1},
		"timeout":{"semantics":["z","a"],"granularityMs":1,"requiredSandboxLifetimeMs":1,"maxReadyLatencyMs":0}},"region":{"preferred":["eu"],"required":true}}',
	'[{"id":"full","capabilities":{"capabilities":["pty","tailnet"],"resources":{"cpu":1,"memoryMb":1,"diskMb":1,"gpu":1},"image":{"identity":"i","binaries":["a","z"]},"isolation":"strong",
		"egress":"none","stateDurability":"persistent","restrictions":["a","z"],"network":{"a":1,"zz":1},"timeout":{"semantics":["a","z"],"granularityMs":1,"maxSandboxLifetimeMs":1},"regions":["eu"]},
		"signals":{"readyLatencyMs":0}}]');
-- Rule: 64 names in every list are 64 codes each, none lost.
SELECT count(*), count(DISTINCT code), min(code COLLATE "C"), max(code COLLATE "C")
FROM (SELECT unnest(rejections) AS code FROM sbx_route_providers(
	(SELECT jsonb_build_object('requires', jsonb_build_object('restrictions', jsonb_agg('r' || i), 'image', jsonb_build_object('requiredBinaries', jsonb_agg('b' || i)),
		'network', jsonb_object_agg('n' || i, i), 'timeout', jsonb_build_object('semantics', jsonb_agg('s' || i)))) FROM generate_series(1, 64) i), '[{"id":"a"}]')) s;

-- Rule: what a launch cannot carry, and a detached launch, are facts about the kind: for
-- registered pools only.  "daytona" carries all of them; the module sbx_router_test asks
-- kinds that do not.  must not fire
UPDATE sbx_provider SET capabilities = NULL, signals = NULL WHERE id = 'bare';
SELECT regress_codes('bare', (SELECT jsonb_build_object('launch', jsonb_build_object('name', 'n', 'env', jsonb_object_agg('E' || i, 'x'), 'labels', jsonb_object_agg('l' || i, 'x'), 'createTimeoutSeconds', 60)) FROM generate_series(1, 64) i));
SELECT provider_id, rejections, reason FROM sbx_route_explain(detached => true) WHERE provider_id = 'bare';
SELECT provider_id, rejections, reason FROM sbx_route_explain(detached => false) WHERE provider_id = 'bare';
SELECT provider_id, rejections FROM sbx_route_explain(detached => NULL) WHERE provider_id = 'bare';
SELECT eligible, rejections FROM sbx_route_providers('{"launch":{"env":{"A":"b"},"labels":{"a":"b"},"createTimeoutSeconds":1}}', '[{"id":"a","kind":"no such kind"}]');
DROP FUNCTION regress_judge(jsonb, jsonb, jsonb);

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

--
-- As a text to read
--
DELETE FROM sbx_provider;
SELECT sbx_clear_credentials();
\pset format unaligned
\pset tuples_only on
-- Rule: without a pool, only the headline.
SELECT * FROM sbx_route_explain_text();
SELECT sbx_register_provider(id, 'daytona', '{}', capabilities::jsonb, signals::jsonb), sbx_set_credential(id, 'k') FROM (VALUES
	('primary-eu', '{"capabilities":["pty"],"resources":{"cpu":8,"memoryMb":16384},"regions":["eu-west"]}', '{"estimatedCost":0.12,"coldStartLatencyMs":850,"readyLatencyMs":12000,"completionWithinBudgetRate":0.999}'),
	('us', '{"capabilities":["pty"],"resources":{"cpu":8,"memoryMb":16384},"regions":["us-east"]}', '{"estimatedCost":0.08,"readyLatencyMs":20000}'),
	('gpu-box', '{"capabilities":["pty","gpu"],"resources":{"cpu":4,"memoryMb":8192,"gpu":1}}', '{"estimatedCost":2}'),
	('small', '{"resources":{"cpu":1,"memoryMb":512,"diskMb":1024},"isolation":"unknown"}', NULL), ('asleep', NULL, '{"available":false}'), ('off', NULL, NULL), ('locked', NULL, NULL)) v(id, capabilities, signals);
SELECT sbx_update_provider('off', enabled => false);
SELECT sbx_clear_credentials('locked');
-- Rule: winner first, its signals and parts; each rejected pool with each code in words.
SELECT * FROM sbx_route_explain_text('{"resources":{"cpu":2.5,"memoryMb":4096},"requires":{"requiredCapabilities":["pty"]},"region":{"preferred":["eu-west"]}}');
SELECT * FROM sbx_route_explain_text('{"routing":{"strategy":"latency","latencyObjective":"coldStart"}}');
WITH text AS (SELECT * FROM sbx_route_explain_text('{"providerId":"small","resources":{"cpu":2.5,"memoryMb":513,"diskMb":1025,"gpu":1},
	"requires":{"requiredCapabilities":["tailnet"],"forbiddenCapabilities":["syncExec"],"image":{"identity":"i","requiredBinaries":["node"]},"isolation":"none","egress":"open","stateDurability":"persistent",
		"restrictions":["r"],"network":{"ipv6":true},"timeout":{"semantics":["command-lifetime"],"granularityMs":1000,"requiredSandboxLifetimeMs":1}},"region":{"preferred":["eu-west"],"required":true}}') WITH ORDINALITY t(line, n))
SELECT line FROM text WHERE n >= (SELECT n FROM text WHERE line ~ ' x +small$') ORDER BY n LIMIT 19;
-- Rule: a preferred region that is not required is shown, and counts for nothing.
SELECT position, provider_id, score, reason FROM sbx_route_explain('{"region":{"preferred":["us-east","eu-west"]},"resources":{"cpu":5},"routing":{"strategy":"cost"}}') WHERE eligible;
SELECT position, provider_id, score, reason FROM sbx_route_explain('{"region":{"preferred":["ap"]},"resources":{"cpu":5},"routing":{"strategy":"cost"}}') WHERE eligible;
SELECT position, provider_id, score, reason FROM sbx_route_explain('{"resources":{"cpu":5},"routing":{"strategy":"cost"}}') WHERE eligible;
SELECT * FROM sbx_route_explain_text('{"requires":{"timeout":{"maxReadyLatencyMs":1000}},"providerId":"us"}') WITH ORDINALITY t(line, n) ORDER BY n LIMIT 3;
-- Rule: the policy is named; its defaults count.
SELECT sbx_set_policy('cheap', request_defaults => '{"routing":{"strategy":"cost"},"providerId":"us"}');
SELECT line FROM sbx_route_explain_text('{}', 'cheap') WITH ORDINALITY t(line, n) ORDER BY n LIMIT 3;
SELECT sbx_drop_policy('cheap');
-- Rule: it says what sbx_route_explain says: the same pools in the same order.
SELECT array_agg(substring(line, '^(?:->|  ) +\d+\. (\S+)') ORDER BY n) FILTER (WHERE line ~ '^(->|  ) +\d+\. ') AS eligible,
	   array_agg(substring(line, '^ +x +(\S+)$') ORDER BY n) FILTER (WHERE line ~ '^ +x +\S+$') AS rejected
FROM sbx_route_explain_text('{"resources":{"cpu":2}}') WITH ORDINALITY t(line, n);
SELECT array_agg(provider_id ORDER BY n) FILTER (WHERE eligible) AS eligible, array_agg(provider_id ORDER BY n) FILTER (WHERE NOT eligible) AS rejected
FROM ROWS FROM (sbx_route_explain('{"resources":{"cpu":2}}')) WITH ORDINALITY e("position", provider_id, eligible, rejections, score, cost_part, latency_part, reliability_part, signals, capacity, reason, n);
-- Rule: aligned, however many there are: ids and scores stand in one column each.
DELETE FROM sbx_provider;
SELECT count(sbx_register_provider(id, 'daytona')), count(sbx_set_credential(id, 'k')) FROM (SELECT repeat('p', i) AS id FROM generate_series(1, 12) i) p;
SELECT count(*) AS lines, count(DISTINCT strpos(line, 'p')) AS id_columns, count(DISTINCT strpos(line, 'score')) AS score_columns
FROM sbx_route_explain_text() line WHERE line ~ 'score';

--
-- Pools given as JSON
--
-- Rule: an array of pools; what is wrong is named by its place.  must fire
SELECT pools, regress_try(format('SELECT sbx_route_providers(%L, %L)', '{}', pools)) FROM (VALUES
	('{}'), ('"a"'), ('1'), ('null'), ('[1]'), ('[null]'), ('[[]]'), ('["a"]'), ('[{}]'), ('[{"id":null}]'), ('[{"id":""}]'), ('[{"id":1}]'), ('[{"id":"a b"}]'), ('[{"id":".a"}]'),
	('[{"id":"a"},{"id":"b"},{"id":"a"}]'), ('[{"id":"a"},{"id":"a"},{"id":"a"}]'), ('[{"id":"b"},{"id":"a"},{"id":"a"},{"id":"b"}]'),
	('[{"id":"a"},{"id":"b","enable":true}]'), ('[{"id":"a","registered_by":"x"}]'), ('[{"id":"a","enabled":"yes"}]'), ('[{"id":"a","enabled":1}]'),
	('[{"id":"a","capabilities":[]}]'), ('[{"id":"a","capabilities":{"capabilites":[]}}]'), ('[{"id":"a","capabilities":{"isolation":"stron"}}]'), ('[{"id":"a"},{"id":"b","capabilities":{"timeout":{"maxSandboxLifetimeMs":-1}}}]'), ('[{"id":"a","capabilities":{"capabilities":["a-b"]}}]'),
	('[{"id":"a","signals":1}]'), ('[{"id":"a","signals":{"estimatedCost":-1}}]'), ('[{"id":"a","signals":{"completionWithinBudgetRate":1.1}}]'), ('[{"id":"a","signals":{"readyLatencyMs":1e400}}]'), ('[{"id":"a","signals":{"cost":1}}]'),
	('[{"id":"a","enabled":1,"zzz":1}]'), ('[{"id":"a","signals":1,"capabilities":1}]'), ('[{"id":"b","signals":1},{"id":1}]')) v(pools);
SELECT regress_try($$SELECT sbx_route_providers('{}', NULL)$$);
-- must not fire
SELECT pools, regress_try(format('SELECT sbx_route_providers(%L, %L)', '{}', pools)) FROM (VALUES
	('[]'), ('[{"id":"a"}]'), ('[{"id":"a","enabled":null,"capabilities":null,"signals":null}]'), ('[{"id":"a","kind":1,"settings":"x","capacity":[]}]'), ('[{"id":"a"},{"id":"A"}]')) v(pools);
-- Rule: of a faulty request and faulty pools the pools are named: which names are known
-- depends on them.
SELECT regress_try($$SELECT sbx_route_providers('{"x":1}', '[{"id":"a","x":1}]')$$);
-- Rule: credentials, policies and registrations play no part.
SELECT sbx_set_policy('other', request_defaults => '{"providerId":"nobody"}');
SET sbx_router.policy = 'other';
SELECT position, provider_id, eligible, rejections FROM sbx_route_providers('{}', '[{"id":"not-registered"},{"id":"p","enabled":false}]');
SELECT count(*) FROM sbx_route();
RESET sbx_router.policy;
SELECT sbx_drop_policy('other');
-- Rule: it says what sbx_route_explain says of the same pools with credentials, column
-- by column.
DELETE FROM sbx_provider;
SELECT count(sbx_register_provider(id, 'daytona', '{}', capabilities, signals)), count(sbx_set_credential(id, 'k'))
FROM (SELECT format('%s%s', chr(97 + i % 26), i) AS id,
		jsonb_build_object('resources', jsonb_build_object('cpu', i % 5, 'memoryMb', i % 7 * 1024), 'isolation', ('{none,process,strong,unknown}'::text[])[i % 4 + 1], 'regions', jsonb_build_array('r' || i % 3)) AS capabilities,
		jsonb_build_object('estimatedCost', i % 4, 'readyLatencyMs', i % 6 * 10, 'completionWithinBudgetRate', i % 3 / 2.0, 'available', i % 11 <> 0) AS signals
	FROM generate_series(1, 100) i) p;
UPDATE sbx_provider SET enabled = false WHERE id LIKE '%9';
CREATE TEMP TABLE request (request jsonb);
INSERT INTO request VALUES ('{}'), ('{"resources":{"cpu":2}}'), ('{"resources":{"cpu":3,"memoryMb":4096},"routing":{"strategy":"cost"}}'), ('{"requires":{"isolation":"process"},"routing":{"strategy":"latency"}}'),
	('{"region":{"preferred":["r1"],"required":true},"routing":{"strategy":"reliability"}}'), ('{"region":{"preferred":["r1"]},"requires":{"timeout":{"maxReadyLatencyMs":20}}}'), ('{"providerId":"c2"}'), ('{"providerId":"nobody"}');
CREATE TEMP TABLE pools AS SELECT jsonb_agg(to_jsonb(p) - 'registered_by' ORDER BY md5(id) COLLATE "C") AS pools FROM sbx_provider p;
SELECT request, count(*), count(*) FILTER (WHERE a IS DISTINCT FROM b) AS different, count(*) FILTER (WHERE a LIKE '%"eligible": true%') AS eligible
FROM request, LATERAL (
	SELECT COALESCE(x.n, y.n) AS n, x.row AS a, y.row AS b
	FROM (SELECT n, to_jsonb(e)::text AS row FROM (SELECT row_number() OVER () AS n, * FROM sbx_route_explain(request)) e) x
	FULL JOIN (SELECT n, to_jsonb(e)::text AS row FROM (SELECT row_number() OVER () AS n, r.* FROM pools, sbx_route_providers(request, pools) r) e) y ON x.n = y.n) z
GROUP BY request ORDER BY request::text COLLATE "C";
-- Rule: IMMUTABLE and PARALLEL SAFE: in an index, and in a worker.
CREATE FUNCTION regress_winner(request jsonb, pools jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
	$$ SELECT provider_id FROM sbx_route_providers(request, pools) WHERE position = 1 $$;
CREATE TABLE regress_job (request jsonb, pools jsonb);
INSERT INTO regress_job SELECT request, pools FROM request, pools;
CREATE INDEX ON regress_job (regress_winner(request, pools));
SET enable_seqscan = off;
SELECT request FROM regress_job WHERE regress_winner(request, pools) = 'c2';
RESET enable_seqscan;
SET force_parallel_mode = on;
EXPLAIN (COSTS off) SELECT r.provider_id FROM regress_job, LATERAL sbx_route_providers(request, pools) r;
SELECT count(*), count(*) FILTER (WHERE r.eligible) FROM regress_job, LATERAL sbx_route_providers(request, pools) r;
RESET force_parallel_mode;
SELECT count(*), count(*) FILTER (WHERE r.eligible) FROM regress_job, LATERAL sbx_route_providers(request, pools) r;
DROP TABLE regress_job;
DROP FUNCTION regress_winner(jsonb, jsonb);
-- Rule: 10,000 pools are no problem; the duplicate among them is found.
SELECT count(*), count(*) FILTER (WHERE eligible), min(provider_id COLLATE "C") FILTER (WHERE position = 1), bool_and((position IS NULL) = (score IS NULL)),
	   count(DISTINCT position), max(position)
FROM sbx_route_providers('{"resources":{"cpu":2},"routing":{"strategy":"cost"}}', (SELECT jsonb_agg(jsonb_build_object('id', 'p' || i, 'capabilities', jsonb_build_object('resources', jsonb_build_object('cpu', i % 4)),
	'signals', jsonb_build_object('estimatedCost', (i * 7919) % 10007))) FROM generate_series(1, 10000) i));
SELECT regress_try(format('SELECT sbx_route_providers(%L, %L)', '{}', (SELECT jsonb_agg(jsonb_build_object('id', 'p' || i % 9999)) FROM generate_series(1, 10000) i)));
DISCARD TEMP;

DELETE FROM sbx_provider;
DROP FUNCTION regress_codes(text, jsonb), regress_order(jsonb), regress_try(text);
