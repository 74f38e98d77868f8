--
-- ADMISSION
-- Rule: what cannot be a measurement is not read.  must fire / must not fire
--
SELECT capacity, readable, sbx_test_obstacle(capacity::jsonb, readable) AS reason FROM (VALUES
	('{"limits":{"sandboxes":5}}', false), ('{"limits":{"sandboxes":5}}', true), ('{}', false), ('{}', true), ('{"limits":{}}', true), ('{"limits":null}', true),
	('{"demand":{"cpu":1}}', true), ('{"limits":{"cpu":0}}', true), ('{"limits":{"cpu":0},"demand":{"cpu":0}}', true), ('{"limits":{"memory":1}}', true),
	('{"limits":{"memory":1},"demand":{"memory":1}}', true), ('{"limits":{"disk":1}}', true), ('{"limits":{"disk":1},"demand":{"disk":1}}', true),
	('{"limits":{"cpu":1,"disk":1},"demand":{"disk":1}}', true), ('{"limits":{"cpu":1,"disk":1},"demand":{"disk":1,"cpu":1}}', true),
	('{"limits":{"sandboxes":5},"demand":{"sandboxes":null}}', true)) v(capacity, readable);
-- Rule: what the provider does not tell (NaN) makes all unknown, if it has a limit.  must fire / must not fire
SELECT capacity, used, sbx_test_measure(capacity::jsonb, used) AS measured FROM (VALUES
	('{"limits":{"disk":9},"demand":{"disk":1}}', '{1,2,NaN,4}'::double precision[]), ('{"limits":{"disk":9},"demand":{"disk":1}}', '{1,2,3,4}'),
	('{"limits":{"sandboxes":9}}', '{1,2,NaN,4}'), ('{"limits":{"sandboxes":9,"disk":9},"demand":{"disk":1}}', '{1,2,NaN,4}'),
	('{"limits":{"cpu":1,"sandboxes":9},"demand":{"cpu":1}}', '{1,NaN,NaN,4}'), ('{"limits":{"cpu":1,"sandboxes":9},"demand":{"cpu":1}}', '{NaN,2,3,4}')) v(capacity, used);
