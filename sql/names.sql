--
-- NAMES
-- Names and network values of which there are many: a pool keeps the first 64 in one
-- place and the others in another.  Each rule is asked on both sides of that border.
--
\set VERBOSITY terse
-- One pool for each number, which declares just that one of everything.
CREATE TABLE regress_pools AS SELECT jsonb_agg(jsonb_build_object('id', 'p' || i, 'capabilities', jsonb_build_object(
		'capabilities', jsonb_build_array('cap' || i),
		'regions', jsonb_build_array('region' || i),
		'image', jsonb_build_object('identity', 'image' || i, 'binaries', jsonb_build_array('bin' || i)),
		'restrictions', jsonb_build_array('restriction' || i),
		'network', jsonb_build_object('key' || i, i, 'all', true),
		'timeout', jsonb_build_object('semantics', jsonb_build_array('semantics' || i))))) AS pools
	FROM generate_series(1, 300) i;
-- Who is eligible.
CREATE FUNCTION regress_eligible(request text) RETURNS text LANGUAGE sql AS
	$$ SELECT COALESCE(string_agg(r.provider_id, ' ' ORDER BY r.position), '-')
	   FROM regress_pools, sbx_route_providers(request::jsonb, pools) r WHERE r.eligible $$;

-- Rule: a request finds the one pool that declares the name, wherever the name is kept.
SELECT part, string_agg(DISTINCT CASE WHEN regress_eligible(format(request, i)) = 'p' || i THEN 'found' ELSE 'missed ' || i END, ' ') AS outcome
FROM (VALUES
	('capability', '{"requires":{"requiredCapabilities":["cap%1$s"]}}'),
	('region', '{"region":{"preferred":["region%1$s"],"required":true}}'),
	('image', '{"requires":{"image":{"identity":"image%1$s"}}}'),
	('binary', '{"requires":{"image":{"requiredBinaries":["bin%1$s"]}}}'),
	('restriction', '{"requires":{"restrictions":["restriction%1$s"]}}'),
	('network', '{"requires":{"network":{"key%1$s":%1$s}}}'),
	('network, another way to write it', '{"requires":{"network":{"key%1$s":%1$s.000}}}'),
	('semantics', '{"requires":{"timeout":{"semantics":["semantics%1$s"]}}}')) v(part, request),
	(VALUES (1), (15), (16), (52), (63), (64), (65), (66), (299), (300)) n(i)
GROUP BY part ORDER BY part;
-- Rule: what only others declare, or nobody, does not count.
SELECT request, regress_eligible(request) FROM (VALUES
	('{"requires":{"image":{"identity":"image1","requiredBinaries":["bin2"]}}}'), ('{"requires":{"image":{"identity":"image1","requiredBinaries":["bin1"]}}}'),
	('{"requires":{"image":{"identity":"image300","requiredBinaries":["bin299"]}}}'), ('{"requires":{"image":{"identity":"image300","requiredBinaries":["bin300"]}}}'),
	('{"requires":{"image":{"identity":"bin1"}}}'), ('{"requires":{"image":{"requiredBinaries":["image1"]}}}'),
	('{"requires":{"restrictions":["region300"]}}'), ('{"requires":{"restrictions":["restriction300","restriction299"]}}'),
	('{"requires":{"network":{"key1":2}}}'), ('{"requires":{"network":{"key300":301}}}'),
	('{"requires":{"network":{"key300":300,"all":true}}}'), ('{"requires":{"network":{"key300":300,"all":false}}}'),
	('{"requires":{"network":{"nobody":300}}}')) v(request);
-- Rule: forbidden is the opposite of required.
SELECT i, (SELECT count(*) FROM regress_pools, sbx_route_providers(format('{"requires":{"forbiddenCapabilities":["cap%s"]}}', i)::jsonb, pools) r WHERE r.eligible)
FROM (VALUES (1), (52), (53), (300)) n(i);

-- Rule: a pool with as many names as are allowed has all of them, and no other; the
-- second pool's are beyond the border.
CREATE FUNCTION regress_large(letter text, n integer) RETURNS jsonb LANGUAGE sql AS
	$$ SELECT jsonb_build_object('id', letter, 'capabilities', jsonb_build_object('restrictions', jsonb_agg(letter || i)))
	   FROM generate_series(1, n) i $$;
SELECT n, r.provider_id, letter, count(*) FILTER (WHERE eligible) AS eligible, min(i) FILTER (WHERE NOT eligible) AS first_rejected
FROM (VALUES (1), (63), (64)) v(n), generate_series(1, 65) i, (VALUES ('a'), ('b')) l(letter),
	LATERAL sbx_route_providers(jsonb_build_object('requires', jsonb_build_object('restrictions', jsonb_build_array(letter || i))),
		jsonb_build_array(regress_large('a', 64), regress_large('b', n))) r
GROUP BY n, r.provider_id, letter ORDER BY n, r.provider_id, letter;

-- Rule: network values are equal when jsonb says so, whatever they are.
SELECT declared, wanted, regress_equal, declared::jsonb = wanted::jsonb AS jsonb_says
FROM (VALUES
	('1', '1.0'), ('1', '1e0'), ('1', '2'), ('1', '"1"'), ('1', 'true'), ('0', '-0.0'), ('0', 'false'),
	('100', '1e2'), ('1e-7', '0.0000001'), ('1e70', '1' || repeat('0', 70)), ('1e70', '1e71'), ('1e70', '1e70'),
	('1e63', '1e63'), ('1e63', '1e64'), ('0.' || repeat('3', 80), '0.' || repeat('3', 80) || '0'), ('0.' || repeat('3', 80), '0.' || repeat('3', 79) || '4'),
	('true', 'true'), ('true', 'false'), ('false', 'false'), ('"true"', 'true'), ('"t"', 'true'),
	('"a"', '"a"'), ('"a"', '"A"'), ('"0"', '0'),
	('[1,2]', '[1.0,2]'), ('[1,2]', '[2,1]'), ('[]', '[]'), ('[]', '{}'), ('{"a":[1]}', '{"a":[1.0]}'), ('{"a":[1]}', '{"a":1}'), ('[]', '"[]"')) v(declared, wanted),
	LATERAL (SELECT eligible AS regress_equal FROM sbx_route_providers(
		format('{"requires":{"network":{"key":%s}}}', wanted)::jsonb,
		format('[{"id":"one","capabilities":{"network":{"key":%s}}}]', declared)::jsonb)) r;
-- Rule: key and value do not run into each other.
SELECT declared, wanted, eligible FROM (VALUES
	('{"ab":"c"}', '{"a":"bc"}'), ('{"ab":"c"}', '{"ab":"c"}'), ('{"a\"b":"c"}', '{"a":"b\"c"}'), ('{"at":true}', '{"a":true}')) v(declared, wanted),
	LATERAL sbx_route_providers(jsonb_build_object('requires', jsonb_build_object('network', wanted::jsonb)),
		jsonb_build_array(jsonb_build_object('id', 'one', 'capabilities', jsonb_build_object('network', declared::jsonb))));

-- Rule: reading finds every member of a container of any size, in any place.
SELECT size, count(*) FILTER (WHERE found) AS found
FROM (VALUES (1), (31), (32), (33), (63), (64)) v(size), generate_series(1, size) i,
	LATERAL (SELECT eligible AS found FROM sbx_route_providers(
		jsonb_build_object('requires', jsonb_build_object('network', jsonb_build_object('key' || i, repeat('x', i)))),
		jsonb_build_array(jsonb_build_object('id', 'one', 'capabilities', jsonb_build_object('network',
			(SELECT jsonb_object_agg('key' || n, repeat('x', n)) FROM generate_series(1, size) n)))))) r
GROUP BY size ORDER BY size;
