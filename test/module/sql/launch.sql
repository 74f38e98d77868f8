--
-- LAUNCH
-- Rule: a kind that cannot carry a field of the launch rejects a request that uses the
-- field, and no other.  must fire / must not fire
--
CREATE EXTENSION sbx_router_test;
SELECT request, carries_env, carries_timeout, max_labels, sbx_test_launch(request::jsonb, carries_env, carries_timeout, true, max_labels, false) AS rejections
FROM (VALUES
	('{"launch":{"env":{"A":"1"}}}', false, true, -1), ('{"launch":{"env":{"A":"1"}}}', true, false, 0), ('{"launch":{"env":{}}}', false, true, -1), ('{"launch":{"env":null}}', false, true, -1), ('{}', false, false, 0),
	('{"launch":{"createTimeoutSeconds":60}}', true, false, -1), ('{"launch":{"createTimeoutSeconds":60}}', false, true, 0), ('{"launch":{"createTimeoutSeconds":null}}', true, false, -1),
	('{"launch":{"labels":{"a":"1","b":"2"}}}', true, true, 1), ('{"launch":{"labels":{"a":"1","b":"2"}}}', false, false, 2), ('{"launch":{"labels":{"a":"1","b":"2"}}}', true, true, -1),
	('{"launch":{"labels":{"a":"1"}}}', true, true, 0), ('{"launch":{"labels":{}}}', true, true, 0),
	('{"launch":{"env":{"A":"1"},"labels":{"a":"1"},"createTimeoutSeconds":60}}', false, false, 0), ('{"launch":{"env":{"A":"1"},"labels":{"a":"1"},"createTimeoutSeconds":60}}', true, true, 1)) v(request, carries_env, carries_timeout, max_labels);
-- Rule: a detached launch goes only to kinds that can.  must fire / must not fire
SELECT can_detach, detached, sbx_test_launch('{}', true, true, can_detach, -1, detached) AS rejections
FROM (VALUES (false, true), (true, true), (false, false), (true, false)) v(can_detach, detached);
-- Rule: its place is after what the launch carries and before the capabilities.
SELECT sbx_test_launch('{"providerId":"another","requires":{"requiredCapabilities":["pty"]},"launch":{"env":{"A":"1"}}}', false, true, false, -1, true) AS rejections;
-- Rule: what the kind cannot carry comes before what the pool does not declare.
SELECT sbx_test_launch('{"resources":{"cpu":1},"launch":{"env":{"A":"1"}}}', false, true, false, -1, true) AS rejections;
-- Rule: nor does it get a variable or a label that it cannot carry.  must fire / must not fire
SELECT request, max_env, sbx_test_carries(request::jsonb, max_env) AS rejections
FROM (VALUES
	('{"launch":{"env":{"a":"1"}}}', -1), ('{"launch":{"env":{"A":"1"}}}', -1), ('{"launch":{"env":{"A":"1","b":"1"}}}', -1), ('{"launch":{"env":{}}}', 1), ('{}', 1),
	('{"launch":{"env":{"A":"1","B":"1"}}}', 1), ('{"launch":{"env":{"A":"1","B":"1"}}}', 2), ('{"launch":{"env":{"A":"1","B":"1"}}}', -1),
	('{"launch":{"env":{"A":"1"}}}', 0), ('{"launch":{"env":{}}}', 0),
	('{"launch":{"labels":{"A":"1"}}}', -1), ('{"launch":{"labels":{"a":"1"}}}', -1), ('{"launch":{"labels":{"a":"1","b":"long"}}}', -1), ('{"launch":{"labels":{"a":"1","b":"lon"}}}', -1),
	('{"launch":{"labels":{"A":"1"},"env":{"a":"1"}}}', -1)) v(request, max_env);
-- Rule: the name of a request is a label, where there are labels.  must fire / must not fire
SELECT request, max_labels, sbx_test_launch(request::jsonb, true, true, true, max_labels, false) AS rejections
FROM (VALUES
	('{"launch":{"name":"n","labels":{"a":"1"}}}', 1), ('{"launch":{"name":"n","labels":{"a":"1"}}}', 2), ('{"launch":{"labels":{"a":"1"}}}', 1), ('{"launch":{"name":"n"}}', 0)) v(request, max_labels);
