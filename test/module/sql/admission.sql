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
