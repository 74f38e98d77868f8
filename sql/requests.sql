--
-- REQUESTS
-- The request language: every refused request beside its nearest accepted neighbour,
-- the normal form, and the builder.
--
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
-- How a statement ended: its SQLSTATE, and path, reason and hint of the fault.
CREATE FUNCTION regress_try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text; hint text; fault jsonb;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	fault := CASE WHEN detail LIKE '{%' THEN detail::jsonb END;
	-- DETAIL and MESSAGE agree, or all is shown.
	IF fault ?& '{path,reason}' AND fault - '{path,reason}'::text[] = '{}'
		AND starts_with(message, format('"%s" ', fault ->> 'path')) THEN
		message := format('%s %s', fault ->> 'path', fault ->> 'reason');
	ELSE
		message := message || COALESCE(' ' || NULLIF(detail, ''), '');
	END IF;
	RETURN format('%s %s%s', state, message, ' HINT: ' || NULLIF(hint, ''));
END $$;
CREATE FUNCTION regress_request(request text) RETURNS text LANGUAGE sql AS
	$$ SELECT regress_try(format('SELECT sbx_route(%L)', request)) $$;

-- Capabilities that only pools know: an enabled one and a disabled one.
SELECT sbx_register_provider('on', 'daytona', '{}', '{"capabilities":["ourOwn"]}'),
	sbx_register_provider('off', 'daytona', '{}', '{"capabilities":["hiddenOwn"]}'),
	sbx_update_provider('off', enabled => false);
SELECT sbx_register_provider('many', 'daytona', '{}', (SELECT jsonb_build_object('capabilities', jsonb_agg('c' || i)) FROM generate_series(1, 64) i)),
	sbx_register_provider('long', 'daytona', '{}', jsonb_build_object('capabilities', jsonb_build_array(repeat('c', 63))));

-- bad is refused, good is the nearest request that is not.  NULL = see above.
CREATE TEMP TABLE pair (n int GENERATED ALWAYS AS IDENTITY, bad text, good text, shown text);
-- the document
INSERT INTO pair (bad, good) VALUES
	('[]', '{}'), ('"x"', NULL), ('1', NULL), ('null', NULL), ('[{}]', NULL),
	('{"resource":{}}', '{"resources":{}}'), ('{"Resources":{}}', NULL), ('{"nothingLikeIt":1}', '{}'), ('{"":1}', NULL),
	('{"providerID":"on"}', '{"providerId":"on"}'), ('{"idempotencykey":"k"}', '{"idempotencyKey":"k"}');
-- resources
INSERT INTO pair (bad, good) VALUES
	('{"resources":[]}', '{"resources":{}}'), ('{"resources":1}', '{"resources":null}'), ('{"resources":"cpu"}', NULL), ('{"resources":true}', NULL),
	('{"resources":{"memory":1}}', '{"resources":{"memoryMb":1}}'), ('{"resources":{"memoryMB":1}}', NULL), ('{"resources":{"cpus":1}}', '{"resources":{"cpu":1}}'),
	('{"resources":{"storageInGigabytes":1}}', '{"resources":{"diskMb":1}}'),
	('{"resources":{"cpu":-0.25}}', '{"resources":{"cpu":0.25}}'), ('{"resources":{"cpu":-1e-400}}', '{"resources":{"cpu":1e-300}}'), ('{"resources":{"cpu":"2"}}', '{"resources":{"cpu":2}}'), ('{"resources":{"cpu":[2]}}', '{"resources":{"cpu":null}}'),
	('{"resources":{"cpu":true}}', '{"resources":{"cpu":0}}'), ('{"resources":{"cpu":1e309}}', '{"resources":{"cpu":1e308}}'), ('{"resources":{"cpu":1e400}}', NULL), ('{"resources":{"cpu":-1e400}}', NULL),
	('{"resources":{"memoryMb":0.5}}', '{"resources":{"memoryMb":0}}'), ('{"resources":{"memoryMb":4096.5}}', '{"resources":{"memoryMb":4096.0}}'), ('{"resources":{"memoryMb":0.99999999999999999999}}', '{"resources":{"memoryMb":1.00000000000000000000}}'),
	('{"resources":{"memoryMb":-1}}', '{"resources":{"memoryMb":1}}'), ('{"resources":{"memoryMb":-0.5}}', '{"resources":{"memoryMb":-0.0}}'), ('{"resources":{"memoryMb":"4096"}}', '{"resources":{"memoryMb":null}}'), ('{"resources":{"memoryMb":true}}', NULL),
	('{"resources":{"memoryMb":9007199254740993}}', '{"resources":{"memoryMb":9007199254740992}}'), ('{"resources":{"memoryMb":9007199254740991.5}}', '{"resources":{"memoryMb":9007199254740991}}'), ('{"resources":{"memoryMb":1e16}}', '{"resources":{"memoryMb":1e15}}'), ('{"resources":{"memoryMb":1e400}}', NULL), ('{"resources":{"memoryMb":1e-400}}', NULL),
	('{"resources":{"diskMb":1.1}}', '{"resources":{"diskMb":1e1}}'), ('{"resources":{"diskMb":-1}}', '{"resources":{"diskMb":0}}'), ('{"resources":{"diskMb":9007199254740994}}', '{"resources":{"diskMb":9007199254740992}}'), ('{"resources":{"diskMb":[]}}', '{"resources":{"diskMb":null}}'), ('{"resources":{"diskMb":1e400}}', NULL),
	('{"resources":{"gpu":0.5}}', '{"resources":{"gpu":1}}'), ('{"resources":{"gpu":-1}}', '{"resources":{"gpu":0}}'), ('{"resources":{"gpu":1e400}}', '{"resources":{"gpu":1e2}}'), ('{"resources":{"gpu":{}}}', '{"resources":{"gpu":null}}');
-- requires: capabilities
INSERT INTO pair (bad, good) VALUES
	('{"requires":"pty"}', '{"requires":{}}'), ('{"requires":[]}', '{"requires":null}'), ('{"requires":{"capabilities":["pty"]}}', '{"requires":{"requiredCapabilities":["pty"]}}'),
	('{"requires":{"requiredCapability":["pty"]}}', NULL), ('{"requires":{"forbidenCapabilities":["pty"]}}', '{"requires":{"forbiddenCapabilities":["pty"]}}'), ('{"requires":{"stateDurabilty":"ephemeral"}}', '{"requires":{"stateDurability":"ephemeral"}}'),
	('{"requires":{"requiredCapabilities":"pty"}}', '{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"requiredCapabilities":{}}}', '{"requires":{"requiredCapabilities":[]}}'), ('{"requires":{"requiredCapabilities":true}}', '{"requires":{"requiredCapabilities":null}}'),
	('{"requires":{"requiredCapabilities":[1]}}', '{"requires":{"requiredCapabilities":["gpu"]}}'), ('{"requires":{"requiredCapabilities":[null]}}', NULL), ('{"requires":{"requiredCapabilities":[["pty"]]}}', NULL), ('{"requires":{"requiredCapabilities":["pty",{}]}}', '{"requires":{"requiredCapabilities":["pty"]}}'),
	('{"requires":{"requiredCapabilities":["pty","pty"]}}', '{"requires":{"requiredCapabilities":["pty","gpu"]}}'), ('{"requires":{"requiredCapabilities":["pty","gpu","pty"]}}', NULL),
	('{"requires":{"requiredCapabilities":[""]}}', '{"requires":{"requiredCapabilities":[]}}'), ('{"requires":{"requiredCapabilities":["p\u0009ty"]}}', '{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"requiredCapabilities":["pty\n"]}}', NULL), ('{"requires":{"requiredCapabilities":["pty "]}}', NULL),
	('{"requires":{"requiredCapabilities":["a-b"]}}', NULL), ('{"requires":{"requiredCapabilities":["1pty"]}}', NULL), ('{"requires":{"requiredCapabilities":["our_own"]}}', '{"requires":{"requiredCapabilities":["ourOwn"]}}'),
	('{"requires":{"requiredCapabilities":["ptyy"]}}', '{"requires":{"requiredCapabilities":["pty"]}}'), ('{"requires":{"requiredCapabilities":["PTY"]}}', NULL), ('{"requires":{"requiredCapabilities":["ourown"]}}', '{"requires":{"requiredCapabilities":["ourOwn"]}}'), ('{"requires":{"requiredCapabilities":["hiddenown"]}}', '{"requires":{"requiredCapabilities":["hiddenOwn"]}}'),
	('{"requires":{"requiredCapabilities":["somethingElseAltogether"]}}', '{"requires":{"requiredCapabilities":["unattendedEnrollment"]}}'),
	('{"requires":{"forbiddenCapabilities":["nestedUserNamespace"]}}', '{"requires":{"forbiddenCapabilities":["nestedUserNamespaces"]}}'), ('{"requires":{"forbiddenCapabilities":["hiddenOwns"]}}', '{"requires":{"forbiddenCapabilities":["hiddenOwn"]}}'), ('{"requires":{"forbiddenCapabilities":["gpus"]}}', '{"requires":{"forbiddenCapabilities":["gpu"]}}'),
	('{"requires":{"forbiddenCapabilities":["gpu","gpu"]}}', NULL), ('{"requires":{"forbiddenCapabilities":[""]}}', '{"requires":{"forbiddenCapabilities":[]}}'), ('{"requires":{"forbiddenCapabilities":[false]}}', '{"requires":{"forbiddenCapabilities":null}}'), ('{"requires":{"forbiddenCapabilities":"gpu"}}', NULL),
	('{"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["gpu","pty"]}}', '{"requires":{"requiredCapabilities":["pty"],"forbiddenCapabilities":["gpu","lifecycle"]}}'), ('{"requires":{"requiredCapabilities":["syncExec","ourOwn"],"forbiddenCapabilities":["ourOwn"]}}', NULL);
-- requires: image
INSERT INTO pair (bad, good) VALUES
	('{"requires":{"image":"i"}}', '{"requires":{"image":{}}}'), ('{"requires":{"image":[]}}', '{"requires":{"image":null}}'), ('{"requires":{"image":{"id":"i"}}}', '{"requires":{"image":{"identity":"i"}}}'), ('{"requires":{"image":{"identityy":"i"}}}', NULL), ('{"requires":{"image":{"binaries":["node"]}}}', '{"requires":{"image":{"requiredBinaries":["node"]}}}'), ('{"requires":{"image":{"requiredBinary":["node"]}}}', NULL),
	('{"requires":{"image":{"identity":""}}}', '{"requires":{"image":{"identity":" "}}}'), ('{"requires":{"image":{"identity":1}}}', '{"requires":{"image":{"identity":null}}}'), ('{"requires":{"image":{"identity":"a\u001fb"}}}', '{"requires":{"image":{"identity":"a\u0020b"}}}'), ('{"requires":{"image":{"identity":["i"]}}}', NULL),
	('{"requires":{"image":{"requiredBinaries":"node"}}}', '{"requires":{"image":{"requiredBinaries":["node"]}}}'), ('{"requires":{"image":{"requiredBinaries":["node","node"]}}}', '{"requires":{"image":{"requiredBinaries":["node","Node"]}}}'), ('{"requires":{"image":{"requiredBinaries":[""]}}}', '{"requires":{"image":{"requiredBinaries":[]}}}'), ('{"requires":{"image":{"requiredBinaries":[null]}}}', '{"requires":{"image":{"requiredBinaries":null}}}'), ('{"requires":{"image":{"requiredBinaries":["a\u007f"]}}}', '{"requires":{"image":{"requiredBinaries":["a~"]}}}');
-- requires: words, restrictions
INSERT INTO pair (bad, good) VALUES
	('{"requires":{"isolation":"stong"}}', '{"requires":{"isolation":"strong"}}'), ('{"requires":{"isolation":"STRONG"}}', NULL), ('{"requires":{"isolation":"unknown"}}', '{"requires":{"isolation":"none"}}'), ('{"requires":{"isolation":"microvm"}}', '{"requires":{"isolation":"process"}}'), ('{"requires":{"isolation":""}}', NULL), ('{"requires":{"isolation":2}}', '{"requires":{"isolation":null}}'), ('{"requires":{"isolation":["strong"]}}', NULL),
	('{"requires":{"egress":"allow-list"}}', '{"requires":{"egress":"allowlist"}}'), ('{"requires":{"egress":"opne"}}', '{"requires":{"egress":"open"}}'), ('{"requires":{"egress":"None"}}', '{"requires":{"egress":"none"}}'), ('{"requires":{"egress":false}}', '{"requires":{"egress":null}}'), ('{"requires":{"egress":""}}', NULL),
	('{"requires":{"stateDurability":"durable"}}', '{"requires":{"stateDurability":"persistent"}}'), ('{"requires":{"stateDurability":"persistant"}}', NULL), ('{"requires":{"stateDurability":"Ephemeral"}}', '{"requires":{"stateDurability":"ephemeral"}}'), ('{"requires":{"stateDurability":{}}}', '{"requires":{"stateDurability":null}}'), ('{"requires":{"stateDurability":""}}', NULL),
	('{"requires":{"restrictions":"x"}}', '{"requires":{"restrictions":["x"]}}'), ('{"requires":{"restrictions":["x","x"]}}', '{"requires":{"restrictions":["x","X"]}}'), ('{"requires":{"restrictions":[""]}}', '{"requires":{"restrictions":[]}}'), ('{"requires":{"restrictions":[1]}}', '{"requires":{"restrictions":null}}'), ('{"requires":{"restrictions":["a\u0001"]}}', NULL),
	('{"requires":{"network":[]}}', '{"requires":{"network":{}}}'), ('{"requires":{"network":"ipv6"}}', '{"requires":{"network":null}}'), ('{"requires":{"network":{"":1}}}', '{"requires":{"network":{"x":[1,{"y":null}],"z":null}}}'), ('{"requires":{"network":{"a\u0001":1}}}', NULL);
-- requires: timeout
INSERT INTO pair (bad, good) VALUES
	('{"requires":{"timeout":1000}}', '{"requires":{"timeout":{}}}'), ('{"requires":{"timeout":[]}}', '{"requires":{"timeout":null}}'), ('{"requires":{"timeout":{"granularity":1}}}', '{"requires":{"timeout":{"granularityMs":1}}}'), ('{"requires":{"timeout":{"maxSandboxLifetimeMs":1}}}', '{"requires":{"timeout":{"requiredSandboxLifetimeMs":1}}}'), ('{"requires":{"timeout":{"maxReadyLatency":1}}}', '{"requires":{"timeout":{"maxReadyLatencyMs":1}}}'), ('{"requires":{"timeout":{"seconds":1}}}', NULL),
	('{"requires":{"timeout":{"semantics":"command-lifetime"}}}', '{"requires":{"timeout":{"semantics":["command-lifetime"]}}}'), ('{"requires":{"timeout":{"semantics":["x","x"]}}}', '{"requires":{"timeout":{"semantics":["x"]}}}'), ('{"requires":{"timeout":{"semantics":[""]}}}', '{"requires":{"timeout":{"semantics":[]}}}'), ('{"requires":{"timeout":{"semantics":[{}]}}}', '{"requires":{"timeout":{"semantics":null}}}'),
	('{"requires":{"timeout":{"granularityMs":0.5}}}', '{"requires":{"timeout":{"granularityMs":0}}}'), ('{"requires":{"timeout":{"granularityMs":-1}}}', '{"requires":{"timeout":{"granularityMs":null}}}'), ('{"requires":{"timeout":{"granularityMs":"1000"}}}', NULL), ('{"requires":{"timeout":{"granularityMs":1e400}}}', '{"requires":{"timeout":{"granularityMs":1e4}}}'),
	('{"requires":{"timeout":{"maxReadyLatencyMs":1.5}}}', '{"requires":{"timeout":{"maxReadyLatencyMs":0}}}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":-30000}}}', '{"requires":{"timeout":{"maxReadyLatencyMs":30000}}}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":"30 s"}}}', '{"requires":{"timeout":{"maxReadyLatencyMs":null}}}'), ('{"requires":{"timeout":{"maxReadyLatencyMs":1e17}}}', NULL),
	('{"requires":{"timeout":{"requiredSandboxLifetimeMs":0.001}}}', '{"requires":{"timeout":{"requiredSandboxLifetimeMs":0}}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":-1}}}', '{"requires":{"timeout":{"requiredSandboxLifetimeMs":null}}}'), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":[1]}}}', NULL), ('{"requires":{"timeout":{"requiredSandboxLifetimeMs":9007199254740993}}}', '{"requires":{"timeout":{"requiredSandboxLifetimeMs":9007199254740992}}}'),
	('{"requires":{"timeout":{"completionBudgetMs":1.5}}}', '{"requires":{"timeout":{"completionBudgetMs":1}}}'), ('{"requires":{"timeout":{"completionBudgetMs":-1}}}', '{"requires":{"timeout":{"completionBudgetMs":0}}}'), ('{"requires":{"timeout":{"completionBudgetMs":false}}}', '{"requires":{"timeout":{"completionBudgetMs":null}}}'), ('{"requires":{"timeout":{"completionBudgetMs":-1e400}}}', NULL);
-- region
INSERT INTO pair (bad, good) VALUES
	('{"region":"eu-west"}', '{"region":{"preferred":["eu-west"]}}'), ('{"region":["eu-west"]}', NULL), ('{"region":true}', '{"region":null}'), ('{"region":{"prefered":["eu"]}}', '{"region":{"preferred":["eu"]}}'), ('{"region":{"require":true}}', '{"region":{"required":false}}'), ('{"region":{"name":"eu"}}', '{"region":{}}'),
	('{"region":{"preferred":"eu"}}', '{"region":{"preferred":["eu"]}}'), ('{"region":{"preferred":["eu","eu"]}}', '{"region":{"preferred":["eu","us"]}}'), ('{"region":{"preferred":[""]}}', '{"region":{"preferred":[]}}'), ('{"region":{"preferred":[1]}}', '{"region":{"preferred":null}}'), ('{"region":{"preferred":["e\u000au"]}}', NULL),
	 ('{"region":{"preferred":["eu"],"required":"true"}}', '{"region":{"preferred":["eu"],"required":true}}'), ('{"region":{"required":1}}', '{"region":{"required":null}}'),
	('{"region":{"required":true}}', '{"region":{"required":false}}'), ('{"region":{"required":true,"preferred":[]}}', '{"region":{"required":false,"preferred":[]}}'), ('{"region":{"required":true,"preferred":null}}', '{"region":{"required":true,"preferred":["x"]}}');
-- routing
INSERT INTO pair (bad, good) VALUES
	('{"routing":"cost"}', '{"routing":{"strategy":"cost"}}'), ('{"routing":[]}', '{"routing":{}}'), ('{"routing":0}', '{"routing":null}'), ('{"routing":{"strateg":"cost"}}', '{"routing":{"strategy":"cost"}}'), ('{"routing":{"latencyObjectives":"ready"}}', '{"routing":{"latencyObjective":"ready"}}'), ('{"routing":{"maxAttempts":1}}', '{"routing":{"maxAcquisitionAttempts":1}}'), ('{"routing":{"policy":"x"}}', NULL),
	('{"routing":{"strategy":"costs"}}', '{"routing":{"strategy":"cost"}}'), ('{"routing":{"strategy":"Latency"}}', '{"routing":{"strategy":"latency"}}'), ('{"routing":{"strategy":"relability"}}', '{"routing":{"strategy":"reliability"}}'), ('{"routing":{"strategy":"cheapest"}}', '{"routing":{"strategy":"balanced"}}'), ('{"routing":{"strategy":""}}', '{"routing":{"strategy":null}}'), ('{"routing":{"strategy":1}}', NULL), ('{"routing":{"strategy":["cost"]}}', NULL), ('{"routing":{"strategy":"cost\n"}}', NULL),
	('{"routing":{"latencyObjective":"coldstart"}}', '{"routing":{"latencyObjective":"coldStart"}}'), ('{"routing":{"latencyObjective":"readyLatencyMs"}}', '{"routing":{"latencyObjective":"ready"}}'), ('{"routing":{"latencyObjective":{}}}', '{"routing":{"latencyObjective":null}}'),
	('{"routing":{"acquisitionFallback":"forbiden"}}', '{"routing":{"acquisitionFallback":"forbidden"}}'), ('{"routing":{"acquisitionFallback":"never"}}', '{"routing":{"acquisitionFallback":"allowed"}}'), ('{"routing":{"acquisitionFallback":false}}', '{"routing":{"acquisitionFallback":null}}'), ('{"routing":{"acquisitionFallback":""}}', NULL),
	('{"routing":{"maxAcquisitionAttempts":0}}', '{"routing":{"maxAcquisitionAttempts":1}}'), ('{"routing":{"maxAcquisitionAttempts":11}}', '{"routing":{"maxAcquisitionAttempts":10}}'), ('{"routing":{"maxAcquisitionAttempts":1e9}}', '{"routing":{"maxAcquisitionAttempts":1e1}}'), ('{"routing":{"maxAcquisitionAttempts":2.5}}', '{"routing":{"maxAcquisitionAttempts":2.0}}'), ('{"routing":{"maxAcquisitionAttempts":10.00000000000000000001}}', '{"routing":{"maxAcquisitionAttempts":10.0}}'), ('{"routing":{"maxAcquisitionAttempts":"3"}}', '{"routing":{"maxAcquisitionAttempts":3}}'), ('{"routing":{"maxAcquisitionAttempts":true}}', '{"routing":{"maxAcquisitionAttempts":null}}'), ('{"routing":{"maxAcquisitionAttempts":1e400}}', NULL);
-- placement: the shape; what follows from it is below
INSERT INTO pair (bad, good) VALUES
	('{"placement":"provider"}', '{"placement":{"authority":"provider"}}'), ('{"placement":[]}', '{"placement":{}}'), ('{"placement":1}', '{"placement":null}'), ('{"placement":{"authorty":"fleet"}}', '{"placement":{"authority":null}}'), ('{"placement":{"nodeAffinty":"n"}}', '{"placement":{"nodeAffinity":null}}'),
	('{"placement":{"authority":"flet"}}', '{"placement":{"authority":"provider","nodeAffinity":null}}'), ('{"placement":{"authority":"Provider"}}', NULL), ('{"placement":{"authority":"cluster"}}', NULL), ('{"placement":{"authority":""}}', NULL), ('{"placement":{"authority":0}}', NULL), ('{"placement":{"authority":["none"]}}', NULL);
-- providerId
INSERT INTO pair (bad, good) VALUES
	('{"providerId":""}', '{"providerId":"nobody"}'), ('{"providerId":1}', '{"providerId":null}'), ('{"providerId":["on"]}', '{"providerId":"on"}'), ('{"providerId":"a\nb"}', '{"providerId":"a-b"}'), ('{"providerId":"a\u007f"}', NULL);
-- launch
INSERT INTO pair (bad, good) VALUES
	('{"launch":[]}', '{"launch":{}}'), ('{"launch":"job"}', '{"launch":null}'), ('{"launch":{"envs":{}}}', '{"launch":{"env":{}}}'), ('{"launch":{"label":{}}}', '{"launch":{"labels":{}}}'), ('{"launch":{"timeout":1}}', '{"launch":{"createTimeoutSeconds":1}}'), ('{"launch":{"createTimeoutSecond":1}}', NULL), ('{"launch":{"image":"x"}}', NULL),
	('{"launch":{"name":""}}', '{"launch":{"name":" "}}'), ('{"launch":{"name":7}}', '{"launch":{"name":"7"}}'), ('{"launch":{"name":["x"]}}', '{"launch":{"name":null}}'), ('{"launch":{"name":"a\u0001"}}', '{"launch":{"name":"a b"}}'), ('{"launch":{"name":"a\u007f"}}', NULL), ('{"launch":{"name":"\t"}}', NULL),
	('{"launch":{"env":[]}}', '{"launch":{"env":{}}}'), ('{"launch":{"env":"A=b"}}', '{"launch":{"env":null}}'), ('{"launch":{"env":{"A":1}}}', '{"launch":{"env":{"A":"1"}}}'), ('{"launch":{"env":{"A":null}}}', NULL), ('{"launch":{"env":{"A":{}}}}', NULL), ('{"launch":{"env":{"A":["x"]}}}', NULL), ('{"launch":{"env":{"A":true}}}', NULL),
	('{"launch":{"env":{"9A":"b"}}}', '{"launch":{"env":{"A9":"b"}}}'), ('{"launch":{"env":{"A-B":"b"}}}', '{"launch":{"env":{"A_B":"b","_":"c","_x9":"d","path":"e"}}}'), ('{"launch":{"env":{"A.B":"b"}}}', NULL), ('{"launch":{"env":{"A B":"b"}}}', NULL), ('{"launch":{"env":{"A=B":"b"}}}', NULL), ('{"launch":{"env":{"":"b"}}}', NULL), ('{"launch":{"env":{"A\n":"b"}}}', NULL),
	('{"launch":{"env":{"A":""}}}', '{"launch":{"env":{"A":" "}}}'), ('{"launch":{"env":{"A":"x\ny"}}}', '{"launch":{"env":{"A":"x\\ny"}}}'), ('{"launch":{"env":{"A":"\u001b[0m"}}}', NULL),
	('{"launch":{"labels":["a"]}}', '{"launch":{"labels":{"requestedBy":"app","a.b/c d":"x"}}}'), ('{"launch":{"labels":"a"}}', '{"launch":{"labels":null}}'), ('{"launch":{"labels":{"a":true}}}', '{"launch":{"labels":{"a":"true"}}}'), ('{"launch":{"labels":{"a":null}}}', NULL), ('{"launch":{"labels":{"a":""}}}', NULL), ('{"launch":{"labels":{"":"a"}}}', NULL), ('{"launch":{"labels":{"a\t":"b"}}}', NULL), ('{"launch":{"labels":{"a":"b\r"}}}', NULL),
	('{"launch":{"labels":{"sbx-router-id":"x"}}}', '{"launch":{"labels":{"sbx-router":"x"}}}'), ('{"launch":{"labels":{"sbx-router-":"x"}}}', '{"launch":{"labels":{"SBX-ROUTER-ID":"x","my-sbx-router-id":"x"}}}'), ('{"launch":{"labels":{"sbx-router-anything":"x"}}}', NULL),
	('{"launch":{"createTimeoutSeconds":0}}', '{"launch":{"createTimeoutSeconds":1}}'), ('{"launch":{"createTimeoutSeconds":86401}}', '{"launch":{"createTimeoutSeconds":86400}}'), ('{"launch":{"createTimeoutSeconds":1.5}}', '{"launch":{"createTimeoutSeconds":1.0}}'), ('{"launch":{"createTimeoutSeconds":"120"}}', '{"launch":{"createTimeoutSeconds":120}}'), ('{"launch":{"createTimeoutSeconds":[]}}', '{"launch":{"createTimeoutSeconds":null}}'), ('{"launch":{"createTimeoutSeconds":1e400}}', NULL), ('{"launch":{"createTimeoutSeconds":86400.00000000000000001}}', NULL);
-- idempotencyKey: 1..255 printable ASCII
INSERT INTO pair (bad, good) VALUES
	('{"idempotencyKey":""}', '{"idempotencyKey":" "}'), ('{"idempotencyKey":1}', '{"idempotencyKey":"1"}'), ('{"idempotencyKey":{}}', '{"idempotencyKey":null}'), ('{"idempotencyKey":"a\tb"}', '{"idempotencyKey":"a~b"}'), ('{"idempotencyKey":"a\u007f"}', NULL), ('{"idempotencyKey":"é"}', '{"idempotencyKey":"e"}');
-- how many, how large, how deep
INSERT INTO pair (shown, bad, good)
SELECT what || ': 65 members',
	replace(shape, '*', (SELECT string_agg(format(member, i), ',') FROM generate_series(1, 65) i)),
	replace(shape, '*', (SELECT string_agg(format(member, i), ',') FROM generate_series(1, 64) i))
FROM (VALUES (1, 'labels', '{"launch":{"labels":{*}}}', '"l%s":"x"'), (2, 'env', '{"launch":{"env":{*}}}', '"E%s":"x"'), (3, 'binaries', '{"requires":{"image":{"requiredBinaries":[*]}}}', '"b%s"'),
	(4, 'restrictions', '{"requires":{"restrictions":[*]}}', '"r%s"'), (5, 'network', '{"requires":{"network":{*}}}', '"n%s":true'), (6, 'semantics', '{"requires":{"timeout":{"semantics":[*]}}}', '"s%s"'),
	(7, 'regions', '{"region":{"preferred":[*]}}', '"r%s"')) v(n, what, shape, member) ORDER BY n;
INSERT INTO pair (shown, bad, good) VALUES
	('capabilities: 65 members', replace('{"requires":{"requiredCapabilities":[*]}}', '*', (SELECT string_agg(format('"c%s"', i), ',') FROM generate_series(1, 65) i)), replace('{"requires":{"requiredCapabilities":[*]}}', '*', (SELECT string_agg(format('"c%s"', i), ',') FROM generate_series(1, 64) i))),
	('forbidden capabilities: 65 members', replace('{"requires":{"forbiddenCapabilities":[*]}}', '*', (SELECT string_agg(format('"c%s"', i), ',') FROM generate_series(1, 65) i)), replace('{"requires":{"forbiddenCapabilities":[*]}}', '*', (SELECT string_agg(format('"c%s"', i), ',') FROM generate_series(1, 64) i))),
	('idempotencyKey: 256 characters', '{"idempotencyKey":"' || repeat('k', 256) || '"}', '{"idempotencyKey":"' || repeat('k', 255) || '"}'),
	('capability name: 64 characters', '{"requires":{"requiredCapabilities":["' || repeat('c', 64) || '"]}}', '{"requires":{"requiredCapabilities":["' || repeat('c', 63) || '"]}}'),
	('network: 17 levels', '{"requires":{"network":{"x":' || repeat('[', 14) || repeat(']', 14) || '}}}', '{"requires":{"network":{"x":' || repeat('[', 13) || repeat(']', 13) || '}}}'),
	('network: 17 levels of objects', '{"requires":{"network":{"x":' || repeat('{"y":', 14) || '1' || repeat('}', 14) || '}}}', '{"requires":{"network":{"x":' || repeat('{"y":', 13) || '1' || repeat('}', 13) || '}}}'),
	('17 levels in the wrong place', repeat('[', 17) || repeat(']', 17), NULL),
	('more than 256 KiB', '{"launch":{"name":"' || repeat('x', 256 * 1024) || '"}}', '{"launch":{"name":"' || repeat('x', 255 * 1024) || '"}}'),
	('more than 256 KiB in unknown keys', '{"' || repeat('x', 1000) || '":"' || repeat('x', 256 * 1024) || '"}', NULL);

-- Rule: each is refused with the path, the reason and, for a near miss, help; its
-- neighbour is not.
SELECT COALESCE(shown, bad) || '  ' || regress_request(bad) || CASE WHEN good IS NULL THEN '' ELSE E'\n    beside '
	|| CASE WHEN shown IS NULL THEN good ELSE 'a little less' END || '  ' || regress_request(good) END
FROM pair ORDER BY n;
SELECT count(*) > 250 AS refused, count(good) > 150 AS accepted FROM pair;
-- Rule: all entry points say the same.  Nothing is called that could launch.
CREATE TEMP TABLE entry (call text);
INSERT INTO entry VALUES ('SELECT sbx_route(%L)'), ('SELECT sbx_route_explain(%L)'), ('SELECT sbx_route_explain(%L, detached => true)'),
	('SELECT sbx_route_explain_text(%L)'), ('SELECT sbx_check_request(%L)'), ('SELECT sbx_provision(%L)'),
	($$SELECT sbx_route_providers(%L, (SELECT jsonb_agg(jsonb_build_object('id', id, 'enabled', enabled, 'capabilities', capabilities)) FROM sbx_provider))$$);
SELECT call, count(*) > 250, count(*) FILTER (WHERE said IS DISTINCT FROM expected) AS others,
	   min(format('%s: %s', left(bad, 100), said)) FILTER (WHERE said IS DISTINCT FROM expected) AS example
FROM entry, pair, LATERAL (SELECT regress_try(format(call, bad)) AS said, regress_request(bad) AS expected) s
GROUP BY call ORDER BY call COLLATE "C";
-- ... the same for the accepted ones: no pool has a credential here, so sbx_provision gets
-- as far as SB003, or refuses what is not built.
SELECT call, said, count(*) > 4
FROM entry, pair, LATERAL (SELECT left(regress_try(format(call, good)), 5) COLLATE "C" AS said) s
WHERE good IS NOT NULL GROUP BY call, said ORDER BY call COLLATE "C", said;

--
-- Order of faults
--
-- Rule: of several faults the first in the order of the language is named, an object's
-- unknown keys before its members.  Here in that order; every two of them together.
CREATE TEMP TABLE fault (n int GENERATED ALWAYS AS IDENTITY, path text[], value jsonb);
INSERT INTO fault (path, value) VALUES
	('{zzz}', '1'),
	('{resources,zzz}', '1'), ('{resources,cpu}', '-1'), ('{resources,memoryMb}', '0.5'), ('{resources,diskMb}', '"1"'), ('{resources,gpu}', '1e400'),
	('{requires,zzz}', '1'), ('{requires,requiredCapabilities}', '["noSuchThing"]'), ('{requires,forbiddenCapabilities}', '[""]'),
	('{requires,image,zzz}', '1'), ('{requires,image,identity}', '1'), ('{requires,image,requiredBinaries}', '[1]'),
	('{requires,isolation}', '"zzz"'), ('{requires,egress}', '"zzz"'), ('{requires,stateDurability}', '"zzz"'), ('{requires,restrictions}', '["x","x"]'), ('{requires,network}', '[]'),
	('{requires,timeout,zzz}', '1'), ('{requires,timeout,semantics}', '1'), ('{requires,timeout,granularityMs}', '-1'), ('{requires,timeout,maxReadyLatencyMs}', '-1'), ('{requires,timeout,requiredSandboxLifetimeMs}', '-1'), ('{requires,timeout,completionBudgetMs}', '-1'),
	('{region,zzz}', '1'), ('{region,preferred}', '[1]'), ('{region,required}', '1'),
	('{routing,zzz}', '1'), ('{routing,strategy}', '1'), ('{routing,latencyObjective}', '1'), ('{routing,acquisitionFallback}', '1'), ('{routing,maxAcquisitionAttempts}', '0'),
	('{placement,zzz}', '1'), ('{placement,authority}', '"zzz"'),
	('{providerId}', '1'),
	('{launch,zzz}', '1'), ('{launch,name}', '1'), ('{launch,env}', '[]'), ('{launch,labels}', '[]'), ('{launch,createTimeoutSeconds}', '0'),
	('{idempotencyKey}', '""');
-- jsonb_set makes no parents.
CREATE FUNCTION pg_temp.put(document jsonb, path text[], value jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT CASE cardinality(path) WHEN 1 THEN document || jsonb_build_object(path[1], value)
		ELSE document || jsonb_build_object(path[1], pg_temp.put(COALESCE(document -> path[1], '{}'), path[2:], value)) END $$;
SELECT count(*) AS two, count(*) FILTER (WHERE said NOT LIKE 'SB001 ' || first_path || ' %') AS wrong,
	   min(format('%s and %s: %s', first_path, second_path, said)) FILTER (WHERE said NOT LIKE 'SB001 ' || first_path || ' %') AS example
FROM (SELECT 'request.' || array_to_string(a.path, '.') AS first_path, 'request.' || array_to_string(b.path, '.') AS second_path,
			 regress_request(pg_temp.put(pg_temp.put('{}', b.path, b.value), a.path, a.value)::text) AS said
	  FROM fault a JOIN fault b ON a.n < b.n) s;
-- the whole document comes before everything in it
SELECT regress_request('{"zzz":"' || repeat('x', 256 * 1024) || '"}');
SELECT regress_request('{"zzz":' || repeat('[', 17) || repeat(']', 17) || '}');
-- region.required without preferred stands where "preferred" does
SELECT regress_request('{"region":{"required":true},"routing":{"strategy":1}}');
SELECT regress_request('{"region":{"required":true},"resources":{"cpu":-1}}');

--
-- Placement
--
-- Rule: everything but the provider's own placement is SB002; a node affinity of any
-- kind is one.  must fire / must not fire
SELECT request, regress_request(request) FROM (VALUES
	('{"placement":{"authority":"none"}}'), ('{"placement":{"authority":"fleet"}}'), ('{"placement":{"nodeAffinity":"node-1"}}'), ('{"placement":{"nodeAffinity":{"zone":"a"}}}'),
	('{"placement":{"nodeAffinity":""}}'), ('{"placement":{"nodeAffinity":false}}'), ('{"placement":{"nodeAffinity":0}}'), ('{"placement":{"nodeAffinity":[]}}'),
	('{"placement":{"authority":"provider","nodeAffinity":"n"}}'), ('{"placement":{"authority":"fleet","nodeAffinity":null}}'),
	('{"placement":{"authority":"provider","nodeAffinity":null}}'), ('{"placement":{"authority":null,"nodeAffinity":null}}'), ('{"placement":{}}')) v(request);
-- Rule: every SB001 beats SB002.
SELECT count(*) AS tried, count(*) FILTER (WHERE said NOT LIKE 'SB001 request.%') AS others
FROM (SELECT regress_request(pg_temp.put(pg_temp.put('{}', '{placement,nodeAffinity}', '"n"'), path, value)::text) AS said FROM fault) s;
SELECT regress_request('{"placement":{"authority":"fleet"},"requires":{"forbiddenCapabilities":["gpus"]}}');
SELECT regress_request('{"placement":{"authority":"fleet"},"region":{"required":true}}');
-- Rule: and SB002 comes before everything else: no pool fits here, a used id, ...
SELECT call, regress_try(format(call, '{"placement":{"authority":"fleet"},"providerId":"nobody"}')) FROM entry ORDER BY call COLLATE "C";
SELECT regress_try($$SELECT sbx_provision('{"placement":{"authority":"none"},"idempotencyKey":"k"}', NULL, 'bad')$$);

--
-- NULL and absence
--
-- Rule: SQL NULL is no request.  must fire
SELECT call, regress_try(replace(call, '%L', 'NULL')) FROM entry ORDER BY call COLLATE "C";
-- Rule: JSON null equals absence, at every depth.
SELECT sbx_check_request('{"resources":null,"requires":null,"region":null,"routing":null,"placement":null,"providerId":null,"launch":null,"idempotencyKey":null}')
	= sbx_check_request('{}');
SELECT sbx_check_request('{"resources":{"cpu":null,"memoryMb":null,"diskMb":null,"gpu":null},
	"requires":{"requiredCapabilities":null,"forbiddenCapabilities":null,"image":{"identity":null,"requiredBinaries":null},"isolation":null,"egress":null,
		"stateDurability":null,"restrictions":null,"network":{"x":null},"timeout":{"semantics":null,"granularityMs":null,"maxReadyLatencyMs":null,"requiredSandboxLifetimeMs":null,"completionBudgetMs":null}},
	"region":{"preferred":null,"required":null},"routing":{"strategy":null,"latencyObjective":null,"acquisitionFallback":null,"maxAcquisitionAttempts":null},
	"placement":{"authority":null,"nodeAffinity":null},"launch":{"name":null,"env":null,"labels":null,"createTimeoutSeconds":null}}')
	= sbx_check_request('{}');

--
-- Names that pools declare
--
-- Rule: known is what the builtin list or some registered pool declares, enabled or not;
-- a misspelt forbidden capability does not pass silently.
SELECT regress_request('{"requires":{"forbiddenCapabilities":["hiddenOwn"]}}');
SELECT sbx_unregister_provider('off');
SELECT regress_request('{"requires":{"forbiddenCapabilities":["hiddenOwn"]}}');
SELECT regress_request('{"requires":{"requiredCapabilities":["hiddenOwn"]}}');
SELECT sbx_update_provider('on', capabilities => '{"capabilities":["hiddenOwn"]}');
SELECT regress_request('{"requires":{"forbiddenCapabilities":["hiddenOwn"]}}');
SELECT regress_request('{"requires":{"forbiddenCapabilities":["ourOwn"]}}');
-- must not fire: every builtin name, by either list
SELECT name, regress_request(format('{"requires":{"requiredCapabilities":["%s"]}}', name)), regress_request(format('{"requires":{"forbiddenCapabilities":["%s"]}}', name))
FROM unnest('{pty,publicPorts,nestedUserNamespaces,asyncExec,reattach,detachedLaunch,warmLease,lifecycle,snapshots,persistentHandle,streamingLogs,syncExec,fileTransfer,tailnet,longRunningProcess,stablePid,processRestart,unattendedEnrollment,gpu}'::text[]) name;
-- Rule: pools given as JSON are a world of their own.
SELECT regress_try($$SELECT sbx_route_providers('{"requires":{"requiredCapabilities":["hiddenOwn"]}}', '[]')$$);
SELECT regress_try($$SELECT sbx_route_providers('{"requires":{"requiredCapabilities":["theirOwn"]}}', '[{"id":"a","enabled":false,"capabilities":{"capabilities":["theirOwn"]}}]')$$);
SELECT regress_request('{"requires":{"requiredCapabilities":["theirOwn"]}}');
-- as above
SELECT sbx_update_provider('on', capabilities => '{"capabilities":["ourOwn","hiddenOwn"]}');

--
-- The normal form
--
-- Rule: every default is filled in.
SELECT jsonb_pretty(sbx_check_request('{}'));
-- Rule: what was given stays as it is.
SELECT jsonb_pretty(sbx_check_request('{
	"resources":{"cpu":0.5,"memoryMb":8192.0,"diskMb":1e4,"gpu":1},
	"requires":{"requiredCapabilities":["publicPorts","pty"],"forbiddenCapabilities":["nestedUserNamespaces"],"image":{"identity":"agent-v4","requiredBinaries":["node","git"]},
		"isolation":"none","egress":"none","stateDurability":"ephemeral","restrictions":["b","a"],"network":{"ipv6":true,"mtu":1500.0,"dns":{"search":null,"servers":["1.1.1.1"]}},
		"timeout":{"semantics":["command-lifetime"],"granularityMs":0,"maxReadyLatencyMs":0,"requiredSandboxLifetimeMs":0,"completionBudgetMs":0}},
	"region":{"preferred":["us","eu"],"required":true},
	"routing":{"strategy":"cost","latencyObjective":"coldStart","acquisitionFallback":"forbidden","maxAcquisitionAttempts":10},
	"placement":{"authority":"provider","nodeAffinity":null},"providerId":"on",
	"launch":{"name":"job 7","env":{"A":"b"},"labels":{"requestedBy":"app"},"createTimeoutSeconds":120},"idempotencyKey":"order-4711"}'));
-- Rule: no digit is lost: the normal form asks for exactly what the request asks for.
SELECT cpu, sbx_check_request(format('{"resources":{"cpu":%s}}', cpu)::jsonb) #>> '{resources,cpu}' AS checked
FROM (VALUES ('2.5'), ('2.5000000000000004'), ('0.1'), ('0.30000000000000004'), ('123456789.12345678')) v(cpu);
-- Rule: it is a request, and its own normal form; routing decides the same on it.
SELECT count(*) > 150 AS tried, count(*) FILTER (WHERE sbx_check_request(sbx_check_request(good::jsonb)) <> sbx_check_request(good::jsonb)) AS not_idempotent
FROM pair WHERE good IS NOT NULL;
SELECT count(*) > 150 AS tried, count(*) FILTER (WHERE
	(SELECT jsonb_agg(to_jsonb(e)) FROM sbx_route_explain(good::jsonb) e) <> (SELECT jsonb_agg(to_jsonb(e)) FROM sbx_route_explain(sbx_check_request(good::jsonb)) e)) AS decided_otherwise
FROM pair WHERE good IS NOT NULL;

--
-- The builder
--
-- Rule: without arguments, the request that asks for nothing.
SELECT sbx_request();
-- Rule: each argument has its place.
SELECT jsonb_pretty(sbx_request(cpu => 0.5, memory_mb => 8192, disk_mb => 10240, gpu => 1,
	required_capabilities => '{pty,publicPorts}', forbidden_capabilities => '{nestedUserNamespaces}',
	image_identity => 'agent-v4', required_binaries => '{node}', isolation => 'strong', egress => 'allowlist', state_durability => 'persistent',
	restrictions => '{no-host-network}', network => '{"ipv6":true}', timeout_semantics => '{command-lifetime}', timeout_granularity => '1 s',
	max_ready_latency => '30 s', required_sandbox_lifetime => '30 min', completion_budget => '00:30', preferred_regions => '{eu-west}', region_required => true,
	strategy => 'balanced', latency_objective => 'ready', acquisition_fallback => 'allowed', max_acquisition_attempts => 3, provider_id => 'primary-eu',
	name => 'job-7', env => '{"A":"b"}', labels => '{"requestedBy":"app"}', create_timeout => '2 min', idempotency_key => 'order-4711'));
SELECT sbx_request(cpu => 0.5, memory_mb => 8192, disk_mb => 10240, gpu => 1,
	required_capabilities => '{pty,publicPorts}', forbidden_capabilities => '{nestedUserNamespaces}',
	image_identity => 'agent-v4', required_binaries => '{node}', isolation => 'strong', egress => 'allowlist', state_durability => 'persistent',
	restrictions => '{no-host-network}', network => '{"ipv6":true}', timeout_semantics => '{command-lifetime}', timeout_granularity => '1 s',
	max_ready_latency => '30 s', required_sandbox_lifetime => '30 min', completion_budget => '00:30', preferred_regions => '{eu-west}', region_required => true,
	strategy => 'balanced', latency_objective => 'ready', acquisition_fallback => 'allowed', max_acquisition_attempts => 3, provider_id => 'primary-eu',
	name => 'job-7', env => '{"A":"b"}', labels => '{"requestedBy":"app"}', create_timeout => '2 min', idempotency_key => 'order-4711')
	= '{"resources":{"cpu":0.5,"memoryMb":8192,"diskMb":10240,"gpu":1},
	"requires":{"requiredCapabilities":["pty","publicPorts"],"forbiddenCapabilities":["nestedUserNamespaces"],"image":{"identity":"agent-v4","requiredBinaries":["node"]},
		"isolation":"strong","egress":"allowlist","stateDurability":"persistent","restrictions":["no-host-network"],"network":{"ipv6":true},
		"timeout":{"semantics":["command-lifetime"],"granularityMs":1000,"maxReadyLatencyMs":30000,"requiredSandboxLifetimeMs":1800000,"completionBudgetMs":1800000}},
	"region":{"preferred":["eu-west"],"required":true},"routing":{"strategy":"balanced","latencyObjective":"ready","acquisitionFallback":"allowed","maxAcquisitionAttempts":3},
	"providerId":"primary-eu","launch":{"name":"job-7","env":{"A":"b"},"labels":{"requestedBy":"app"},"createTimeoutSeconds":120},"idempotencyKey":"order-4711"}'::jsonb AS as_by_hand;
-- each alone; NULL leaves it out
SELECT call, built, built = hand::jsonb AS as_by_hand FROM (VALUES
	(sbx_request(cpu => 2.50), 'cpu', '{"resources":{"cpu":2.50}}'), (sbx_request(memory_mb => 1), 'memory_mb', '{"resources":{"memoryMb":1}}'), (sbx_request(disk_mb => 0), 'disk_mb', '{"resources":{"diskMb":0}}'), (sbx_request(gpu => -1), 'gpu', '{"resources":{"gpu":-1}}'),
	(sbx_request(required_capabilities => '{}'), 'required_capabilities', '{"requires":{"requiredCapabilities":[]}}'), (sbx_request(forbidden_capabilities => '{gpu}'), 'forbidden_capabilities', '{"requires":{"forbiddenCapabilities":["gpu"]}}'),
	(sbx_request(image_identity => 'i'), 'image_identity', '{"requires":{"image":{"identity":"i"}}}'), (sbx_request(required_binaries => '{"a b",c}'), 'required_binaries', '{"requires":{"image":{"requiredBinaries":["a b","c"]}}}'),
	(sbx_request(isolation => 'x'), 'isolation', '{"requires":{"isolation":"x"}}'), (sbx_request(egress => 'none'), 'egress', '{"requires":{"egress":"none"}}'), (sbx_request(state_durability => 'ephemeral'), 'state_durability', '{"requires":{"stateDurability":"ephemeral"}}'),
	(sbx_request(restrictions => '{x}'), 'restrictions', '{"requires":{"restrictions":["x"]}}'), (sbx_request(network => '{"a":{"b":null}}'), 'network', '{"requires":{"network":{"a":{"b":null}}}}'), (sbx_request(network => '[1]'), 'network', '{"requires":{"network":[1]}}'),
	(sbx_request(timeout_semantics => '{x}'), 'timeout_semantics', '{"requires":{"timeout":{"semantics":["x"]}}}'), (sbx_request(timeout_granularity => '1 ms'), 'timeout_granularity', '{"requires":{"timeout":{"granularityMs":1}}}'),
	(sbx_request(max_ready_latency => '1 us'), 'max_ready_latency', '{"requires":{"timeout":{"maxReadyLatencyMs":0.001}}}'), (sbx_request(required_sandbox_lifetime => '1 day'), 'required_sandbox_lifetime', '{"requires":{"timeout":{"requiredSandboxLifetimeMs":86400000}}}'), (sbx_request(completion_budget => '-1 s'), 'completion_budget', '{"requires":{"timeout":{"completionBudgetMs":-1000}}}'),
	(sbx_request(preferred_regions => '{eu,us}'), 'preferred_regions', '{"region":{"preferred":["eu","us"]}}'), (sbx_request(region_required => false), 'region_required', '{"region":{"required":false}}'),
	(sbx_request(strategy => 'cost'), 'strategy', '{"routing":{"strategy":"cost"}}'), (sbx_request(latency_objective => 'coldStart'), 'latency_objective', '{"routing":{"latencyObjective":"coldStart"}}'), (sbx_request(acquisition_fallback => 'forbidden'), 'acquisition_fallback', '{"routing":{"acquisitionFallback":"forbidden"}}'), (sbx_request(max_acquisition_attempts => 10), 'max_acquisition_attempts', '{"routing":{"maxAcquisitionAttempts":10}}'),
	(sbx_request(provider_id => ''), 'provider_id', '{"providerId":""}'), (sbx_request(name => E'tab\t'), 'name', '{"launch":{"name":"tab\t"}}'), (sbx_request(env => '{"A":null}'), 'env', '{"launch":{"env":{"A":null}}}'), (sbx_request(env => '{}'), 'env', '{"launch":{"env":{}}}'),
	(sbx_request(labels => '{"a":null}'), 'labels', '{"launch":{"labels":{"a":null}}}'), (sbx_request(create_timeout => '1.5 s'), 'create_timeout', '{"launch":{"createTimeoutSeconds":1.5}}'), (sbx_request(idempotency_key => 'k'), 'idempotency_key', '{"idempotencyKey":"k"}'),
	(sbx_request(required_capabilities => '{pty,NULL}'), 'a NULL in a list', '{"requires":{"requiredCapabilities":["pty",null]}}'), (sbx_request(NULL, NULL, name => NULL), 'nothing', '{}')) v(built, call, hand);
-- Rule: it builds, and does not judge: the request is checked where it is used.
SELECT regress_try($$SELECT sbx_route(sbx_request(cpu => 2, required_capabilities => '{pty}', strategy => 'cost'))$$);
SELECT statement, regress_try(format('SELECT sbx_route(%s)', statement)) FROM (VALUES
	($$sbx_request(max_ready_latency => '1 us')$$), ($$sbx_request(isolation => 'x')$$), ($$sbx_request(env => '{"A":null}')$$), ($$sbx_request(required_capabilities => '{pty,NULL}')$$),
	($$sbx_request(region_required => true)$$), ($$sbx_request(cpu => 'NaN')$$), ($$sbx_request(cpu => 'Infinity')$$)) v(statement);
-- Rule: what it builds is JSON, which survives a dump.
SELECT built, built::text::jsonb = built AS survives FROM (VALUES (sbx_request(cpu => 'NaN')), (sbx_request(cpu => 'Infinity')), (sbx_request(cpu => '-Infinity')), (sbx_request(cpu => 1e300)), (sbx_request(name => E'"\\\t'))) v(built);
-- Rule: IMMUTABLE and PARALLEL SAFE, and it is so: in an index, whatever the search_path
-- holds, and in a worker.
CREATE TABLE regress_job (cpu numeric, memory bigint, length interval);
INSERT INTO regress_job SELECT i, i * 1024, i * interval '1 min' FROM generate_series(1, 1000) i;
CREATE INDEX ON regress_job (sbx_request(cpu => cpu, memory_mb => memory, completion_budget => length));
CREATE SCHEMA regress_decoy;
CREATE FUNCTION regress_decoy.trap(numeric, int) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy used'; END $$;
CREATE OPERATOR regress_decoy.* (LEFTARG = numeric, RIGHTARG = int, FUNCTION = regress_decoy.trap);
CREATE FUNCTION regress_decoy.equal(jsonb, jsonb) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy used'; END $$;
CREATE OPERATOR regress_decoy.= (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = regress_decoy.equal);
CREATE FUNCTION regress_decoy.jsonb_build_object(VARIADIC "any") RETURNS jsonb LANGUAGE internal AS 'jsonb_build_object_noargs';
CREATE FUNCTION regress_decoy.jsonb_strip_nulls(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy used'; END $$;
CREATE FUNCTION regress_decoy.trim_scale(numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy used'; END $$;
SET search_path = regress_decoy, public, pg_catalog;
-- the decoys do shadow: must fire
SELECT 2.0 * 1;
-- must not fire
SELECT public.sbx_request(cpu => 1, network => '{}', completion_budget => '1 s', create_timeout => '1 s');
SELECT count(public.sbx_request(cpu => cpu, completion_budget => length)) FROM public.regress_job;
SET enable_seqscan = off;
SELECT cpu FROM public.regress_job
WHERE public.sbx_request(cpu => cpu, memory_mb => memory, completion_budget => length) OPERATOR(pg_catalog.=) '{"resources":{"cpu":7,"memoryMb":7168},"requires":{"timeout":{"completionBudgetMs":420000}}}';
RESET enable_seqscan;
RESET search_path;
SET force_parallel_mode = on;
SELECT count(DISTINCT sbx_request(cpu => cpu, completion_budget => length)) FROM regress_job;
EXPLAIN (COSTS off) SELECT sbx_request(cpu => cpu) FROM regress_job;
RESET force_parallel_mode;
DROP TABLE regress_job;
-- Rule: an operator of its own schema is no better: made where a decoy was waiting.
SET client_min_messages = warning;
BEGIN;
DROP EXTENSION sbx_router;
CREATE EXTENSION sbx_router SCHEMA regress_decoy;
SELECT regress_decoy.sbx_request(cpu => 1, completion_budget => '1 s');
ROLLBACK;
RESET client_min_messages;
SET client_min_messages = warning;
DROP SCHEMA regress_decoy CASCADE;
RESET client_min_messages;

DISCARD TEMP;
DELETE FROM sbx_provider;
DROP FUNCTION regress_request(text), regress_try(text);
