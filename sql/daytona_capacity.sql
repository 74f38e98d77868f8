--
-- DAYTONA_CAPACITY
-- How full a Daytona account is, for display: the limits that an operator sets, and the
-- summary of an inventory against them.
--
\set VERBOSITY terse
\pset format unaligned
\pset tuples_only on
SET search_path = public, pg_temp;
CREATE FUNCTION pg_temp.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	state text; message text; detail text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
	RETURN state || ' ' || message || COALESCE(' ' || NULLIF(detail, ''), '');
END $$;
-- "cpu=250 memory=unset ...; defects": the limit, or why there is none.
CREATE FUNCTION pg_temp.limits(limits text) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(d || '=' || COALESCE(p -> 'limits' ->> d, '') || CASE p -> 'provenance' ->> d WHEN 'configured' THEN '' ELSE p -> 'provenance' ->> d END, ' ' ORDER BY n)
		|| COALESCE('; ' || (SELECT string_agg((e ->> 'path') || ' ' || (e ->> 'reason'), ', ' ORDER BY n)
			FROM jsonb_array_elements(p -> 'defects') WITH ORDINALITY x(e, n)), '')
	FROM sbx_parse_daytona_capacity_limits(limits) p, unnest('{cpu,memory,disk,sandboxes}'::text[]) WITH ORDINALITY d(d, n)
	GROUP BY p $$;
CREATE FUNCTION pg_temp.summary(inventory jsonb, limits jsonb DEFAULT NULL, workspace text DEFAULT NULL) RETURNS jsonb LANGUAGE sql AS
	$$ SELECT sbx_summarize_daytona_capacity(inventory, limits, workspace, '2026-07-01 12:00:00+00') $$;
-- "used/limit ratio level provenance" of one dimension; null is "-".
CREATE FUNCTION pg_temp.total(summary jsonb, dimension text) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s/%s ratio %s %s (%s)', COALESCE(t ->> 'used', '-'), COALESCE(t ->> 'limit', '-'), COALESCE(t ->> 'ratio', '-'), t ->> 'level', t ->> 'provenance')
	FROM (SELECT summary #> ARRAY['totals', dimension]) x(t) $$;
-- n sandboxes of 1 vCPU, 1 GiB, 1 GiB.
CREATE FUNCTION pg_temp.sandboxes(n integer) RETURNS jsonb LANGUAGE sql AS
	$$ SELECT COALESCE(jsonb_agg('{"state":"started","cpu":1,"memory":1,"disk":1}'::jsonb), '[]') FROM generate_series(1, n) $$;

--
-- sbx_parse_daytona_capacity_limits()
--
-- Rule: the result, whole.
SELECT jsonb_pretty(sbx_parse_daytona_capacity_limits('{"cpu":250,"memory":null,"disk":-1,"gpu":1}'));

-- Rule: a finite JSON number above 0 is a limit.  must not fire: each is accepted as it is
SELECT limits, pg_temp.limits(limits) FROM (VALUES
	('{"cpu":250,"memory":512000,"disk":1000000,"sandboxes":50}'), ('{"cpu":0.1}'), ('{"cpu":1e-300}'), ('{"cpu":2.50}'), ('{"cpu":1E3}'),
	('{"sandboxes":9007199254740993}'), ('{"cpu":0.30000000000000004}'), ('{"\u0063pu":4}'), (E' \n{ "cpu" :\t4 }\r\n')) v(limits);
SELECT 'largest double', sbx_parse_daytona_capacity_limits('{"cpu":1.7976931348623157e308}') #>> '{limits,cpu}' = (1.7976931348623157e308::numeric)::text;
-- Rule: nothing said is "unset", and no defect.
SELECT quote_nullable(limits), pg_temp.limits(limits) FROM (VALUES
	(NULL), (''), (' '), (E' \t\r\n'), ('{}'), ('{"cpu":null}'), ('{"cpu":null,"memory":null,"disk":null,"sandboxes":null}')) v(limits);
-- must fire: anything else takes the limit of that dimension away, and no other
SELECT limits, pg_temp.limits(limits) FROM (VALUES
	('{"memory":1,"cpu":0}'), ('{"memory":1,"cpu":-0}'), ('{"memory":1,"cpu":0.0e5}'), ('{"memory":1,"cpu":-1}'), ('{"memory":1,"cpu":-1e-300}'),
	('{"memory":1,"cpu":1e400}'), ('{"memory":1,"cpu":-1e400}'), ('{"memory":1,"cpu":1e999999999}'), ('{"memory":1,"cpu":1e-400}'),
	('{"memory":1,"cpu":"250"}'), ('{"memory":1,"cpu":""}'), ('{"memory":1,"cpu":true}'), ('{"memory":1,"cpu":false}'),
	('{"memory":1,"cpu":[]}'), ('{"memory":1,"cpu":[250]}'), ('{"memory":1,"cpu":{}}'), ('{"memory":1,"cpu":{"cpu":250}}'),
	('{"cpu":0,"memory":"1","disk":-1,"sandboxes":1e400}')) v(limits);
-- must fire: unknown keys, which come before the faults of the known
SELECT limits, pg_temp.limits(limits) FROM (VALUES
	('{"cpu":250,"cpus":1}'), ('{"CPU":250}'), ('{"cpu ":250}'), ('{"":1,"cpu":250}'), ('{"memoryMb":null}'), ('{"disk":0,"b":{"cpu":1},"a":[{"memory":2}]}'),
	('{"cpu\u0000":1}'), ('{"cp\u00fc":1}')) v(limits);
-- must fire: a key that is there twice, whatever it says
SELECT limits, pg_temp.limits(limits) FROM (VALUES
	('{"cpu":250,"cpu":250}'), ('{"cpu":null,"cpu":250}'), ('{"cpu":250,"cpu":null}'), ('{"cpu":0,"cpu":250,"cpu":-1}'), ('{"\u0063pu":1,"cpu":2}')) v(limits);
-- must not fire: the same key further inside is another one
SELECT pg_temp.limits('{"cpu":250,"x":{"cpu":1,"memory":5}}');
-- must fire: no JSON object
SELECT limits, pg_temp.limits(limits) FROM (VALUES
	('null'), ('[]'), ('[{"cpu":250}]'), ('250'), ('"cpu"'), ('true'), ('"{\"cpu\":250}"'),
	('{'), ('{"cpu":250'), ('{"cpu":250}}'), ('{"cpu":250} {"cpu":250}'), ('{"cpu":250,}'), ('{"cpu"}'), ('{cpu:250}'), ('{''cpu'':250}'), ('cpu=250'),
	('{"cpu":0250}'), ('{"cpu":+250}'), ('{"cpu":.5}'), ('{"cpu":5.}'), ('{"cpu":0x10}'), ('{"cpu":NaN}'), ('{"cpu":Infinity}'), ('{"cpu":250,"x":1e}'),
	('{"cpu":250,"x":"\ud800"}'), ('{"cpu":250,"x":"\u12"}'), ('{"cpu":250,"x":"\q"}'), (E'{"cpu":250,"x":"\t"}'), (E'{"cpu":250}\u00a0'), (E'\u00a0'), ('x')) v(limits);
-- Rule: depth, size and number of members have bounds.  must not fire / must fire
SELECT what, pg_temp.limits(limits) FROM (VALUES
	('16 deep', '{"cpu":250,"x":' || repeat('[', 15) || repeat(']', 15) || '}'),
	('17 deep', '{"cpu":250,"x":' || repeat('[', 16) || repeat(']', 16) || '}'),
	('as wide as deep', '{"cpu":250,"x":[' || repeat('[],', 100) || '[]]}'),
	('brackets in a text', '{"cpu":250,"x":"' || repeat('[{', 100) || '"}'),
	('100000 deep', '{"cpu":250,"x":' || repeat('[', 100000) || repeat(']', 100000) || '}'),
	('200000 deep, without an end', repeat('{"":', 50000) || repeat('[', 50000)),
	('256 kB', '{"cpu":250}' || repeat(' ', 262144 - 11)),
	('256 kB and a byte', '{"cpu":250}' || repeat(' ', 262144 - 10)),
	('blank, however long', repeat(' ', 300000)),
	('a number of 200000 digits', '{"memory":1,"cpu":' || repeat('9', 200000) || '}'),
	('a number of 200000 digits that is small', '{"memory":1,"cpu":1.' || repeat('0', 200000) || '}')) v(what, limits);
SELECT n, regexp_replace(pg_temp.limits('{"cpu":250,' || (SELECT string_agg('"x' || i || '":1', ',') FROM generate_series(2, n) i) || '}'), ', .*, ', ' ... ')
FROM (VALUES (63), (64), (65), (1000)) v(n);

SELECT n, regexp_replace(pg_temp.limits('{' || (SELECT string_agg('"x' || i || '":1', ',') FROM generate_series(1, n) i) || '}'), ', .*, ', ' ... ')
FROM (VALUES (64), (65)) v(n);

--
-- sbx_summarize_daytona_capacity()
--
-- Rule: the result, whole.
SELECT jsonb_pretty(pg_temp.summary('[{"id":"a","name":"one","state":"started","cpu":2,"memory":4,"disk":10,"labels":{"workspace":"acme"},"lastActivityAt":"2026-07-01T11:29:30Z"},
	{"id":"b","name":"two","state":"stopped","cpu":1,"memory":1.5,"disk":3,"labels":{"workspace":"other"},"lastActivityAt":"2026-07-01T10:00:00Z"}]',
	sbx_parse_daytona_capacity_limits('{"cpu":10,"memory":6000,"disk":0}'), 'acme'));
-- Rule: it never says that a create would succeed, nor healthy where nothing is known.
SELECT summary ->> 'provisioningCheck', summary ->> 'level' FROM (VALUES
	(pg_temp.summary('[]')), (pg_temp.summary('[]', '{"cpu":1}')), (pg_temp.summary(pg_temp.sandboxes(1), '{"cpu":1}')), (pg_temp.summary('[5]', '[]'))) v(summary);

-- Rule: 0.80 is a warning, 0.95 critical.  must not fire: just below / must fire: exactly, and above
SELECT n, limits, pg_temp.total(s, 'sandboxes'), s ->> 'level' AS level
FROM (VALUES (0, 100), (79, 100), (80, 100), (81, 100), (94, 100), (95, 100), (96, 100), (100, 100), (101, 100), (300, 100), (4, 5), (19, 20)) v(n, limits),
	pg_temp.summary(pg_temp.sandboxes(n), jsonb_build_object('sandboxes', limits)) s;
SELECT cpu, pg_temp.total(pg_temp.summary(jsonb_build_array(jsonb_build_object('cpu', cpu)), '{"cpu":1}'), 'cpu')
FROM (VALUES (0.7999999999999999), (0.8), (0.9499999999999999), (0.95)) v(cpu);
-- Rule: decimals add up as on paper: 8 times 0.1 is 0.8, and not less.
SELECT n, pg_temp.total(pg_temp.summary((SELECT jsonb_agg('{"cpu":0.1}'::jsonb) FROM generate_series(1, n)), '{"cpu":1}'), 'cpu')
FROM (VALUES (3), (7), (8), (9), (10)) v(n);
-- Rule: the worst known level is that of all; what is unknown hides nothing.
SELECT limits, pg_temp.summary(pg_temp.sandboxes(8), limits::jsonb) ->> 'level' FROM (VALUES
	('{}'), ('{"cpu":100}'), ('{"cpu":10}'), ('{"cpu":8}'), ('{"cpu":100,"disk":8200}'), ('{"cpu":10,"disk":8192}'), ('{"cpu":10,"disk":100000}'),
	('{"cpu":0,"disk":100000}'), ('{"cpu":"8"}'), ('{"cpu":0}'), ('{"cpu":8,"disk":-1}')) v(limits);
-- Rule: memory and disk are given in GiB and shown in MiB.
SELECT d, pg_temp.total(pg_temp.summary('[{"cpu":1,"memory":1.5,"disk":2}]', '{"cpu":10,"memory":1920,"disk":2048}'), d)
FROM unnest('{cpu,memory,disk,sandboxes}'::text[]) d;

-- Rule: limits are the parser's result or what it reads, with the same outcome.
SELECT limits, count(DISTINCT s -> 'totals') AS outcomes, min(pg_temp.total(s, 'cpu')), min(pg_temp.total(s, 'memory'))
FROM (VALUES ('{}'), ('{"cpu":10}'), ('{"cpu":10,"memory":null}'), ('{"cpu":0,"memory":1000}'), ('{"cpu":-1}'), ('{"cpu":"10"}'), ('{"cpu":1e400}'), ('{"cpu":1e-400}'), ('{"cpu":[]}'),
		('{"cpu":10,"x":1}'), ('[]'), ('10'), ('null'), ('"cpu"')) v(limits),
	LATERAL (VALUES (pg_temp.summary('[{"cpu":5,"memory":1,"disk":1}]', limits::jsonb)),
		(pg_temp.summary('[{"cpu":5,"memory":1,"disk":1}]', sbx_parse_daytona_capacity_limits(limits)))) s(s)
GROUP BY limits ORDER BY limits COLLATE "C";
-- must fire: bounds are the same, too
SELECT what, pg_temp.total(pg_temp.summary('[]', limits::jsonb), 'cpu') FROM (VALUES
	('16 deep', '{"cpu":250,"x":' || repeat('[', 15) || repeat(']', 15) || '}'),
	('17 deep', '{"cpu":250,"x":' || repeat('[', 16) || repeat(']', 16) || '}'),
	('large', '{"cpu":250,"x":"' || repeat('x', 262144) || '"}'),
	('64 members', '{"cpu":250,' || (SELECT string_agg('"x' || i || '":1', ',') FROM generate_series(2, 64) i) || '}'),
	('65 members', '{"cpu":250,' || (SELECT string_agg('"x' || i || '":1', ',') FROM generate_series(2, 65) i) || '}')) v(what, limits);
-- Rule: a result that was tampered with has no limit that is none.  must not fire / must fire
SELECT limits, pg_temp.total(pg_temp.summary('[{"cpu":5}]', limits::jsonb), 'cpu') FROM (VALUES
	('{"limits":{"cpu":10},"provenance":{"cpu":"configured"}}'), ('{"limits":{"cpu":10},"provenance":{}}'), ('{"limits":{"cpu":10},"provenance":null}'),
	('{"limits":{"cpu":10}}'), ('{"limits":{"cpu":0},"provenance":{"cpu":"configured"}}'), ('{"limits":{"cpu":"10"},"provenance":{"cpu":"configured"}}'),
	('{"limits":{},"provenance":{"cpu":"configured"}}'), ('{"limits":{},"provenance":{"cpu":"invalid"}}'), ('{"limits":[],"provenance":[]}'), ('{"provenance":"cpu"}'),
	('{"limits":{"cpu":null},"provenance":{"cpu":"invalid"}}'), ('{"limits":{"cpu":1e400},"provenance":{"cpu":"unset"}}')) v(limits);

-- Rule: what can be no size counts 0, a number in a text counts; either is coerced.
-- must not fire: sizes
SELECT item, pg_temp.total(s, 'cpu'), s ->> 'coerced' FROM (VALUES
	('{"cpu":2,"memory":1,"disk":1}'), ('{"cpu":0,"memory":1,"disk":1}'), ('{"cpu":0.25,"memory":1,"disk":1}'), ('{"cpu":2,"memory":1,"disk":1,"gpu":"x"}')) v(item),
	pg_temp.summary(jsonb_build_array(item::jsonb)) s;
-- must fire
SELECT item, pg_temp.total(s, 'cpu'), s ->> 'coerced', s #>> '{totals,sandboxes,used}' FROM (VALUES
	('{"memory":1,"disk":1}'), ('{"cpu":null,"memory":1,"disk":1}'), ('{"cpu":-1,"memory":1,"disk":1}'), ('{"cpu":-1e-400,"memory":1,"disk":1}'), ('{"cpu":1e400,"memory":1,"disk":1}'), ('{"cpu":-1e400,"memory":1,"disk":1}'),
	('{"cpu":true,"memory":1,"disk":1}'), ('{"cpu":[2],"memory":1,"disk":1}'), ('{"cpu":{"cpu":2},"memory":1,"disk":1}'),
	('{"cpu":"2","memory":1,"disk":1}'), ('{"cpu":"2.5e1","memory":1,"disk":1}'), ('{"cpu":"0","memory":1,"disk":1}'), ('{"cpu":"-2","memory":1,"disk":1}'), ('{"cpu":"1e400","memory":1,"disk":1}'),
	('{"cpu":"","memory":1,"disk":1}'), ('{"cpu":" 2","memory":1,"disk":1}'), ('{"cpu":"2 vCPU","memory":1,"disk":1}'), ('{"cpu":"0x10","memory":1,"disk":1}'), ('{"cpu":"Infinity","memory":1,"disk":1}'), ('{"cpu":"NaN","memory":1,"disk":1}'), ('{"cpu":"+2","memory":1,"disk":1}'),
	('{}'), ('null'), ('5'), ('"a"'), ('true'), ('[]'), ('[{"cpu":2}]')) v(item),
	pg_temp.summary(jsonb_build_array(item::jsonb)) s;
-- Rule: items are counted, not sizes.
SELECT s ->> 'coerced', s #>> '{totals,sandboxes,used}', s -> 'states', pg_temp.total(s, 'cpu') FROM pg_temp.summary(
	'[{},{"cpu":"1","memory":"1","disk":"1","state":"started"},{"cpu":1,"memory":1,"disk":1,"state":"started"},7]') s;

-- Rule: a sum that no number holds makes its dimension unknown, and no other.
-- must not fire: a large sum / must fire: one that is too large
SELECT what, s #>> '{totals,cpu,level}', s #> '{totals,cpu,ratio}', s #> '{totals,cpu,used}' = 'null' AS used_is_null, s #>> '{totals,sandboxes,level}', s ->> 'level', s ->> 'coerced'
FROM (VALUES ('large', '[{"cpu":8e307,"memory":0,"disk":0},{"cpu":8e307,"memory":0,"disk":0}]'), ('too large', '[{"cpu":1e308,"memory":0,"disk":0},{"cpu":1e308,"memory":0,"disk":0}]')) v(what, inventory),
	pg_temp.summary(inventory::jsonb, '{"cpu":1.6e308,"sandboxes":10}') s;
SELECT pg_temp.total(s, 'memory'), s #> '{workspace,sandboxes,0,memory}' FROM pg_temp.summary('[{"cpu":1,"memory":1e308,"disk":1,"labels":{"workspace":"w"}}]', '{"memory":1000}', 'w') s;
SELECT s #>> '{totals,cpu,level}', s #> '{totals,cpu,ratio}' FROM pg_temp.summary('[{"cpu":1e300}]', '{"cpu":1e-300}') s;

-- Rule: a state is a word; anything else is "other".  must not fire / must fire
SELECT pg_temp.summary(jsonb_agg(jsonb_build_object('state', state))) -> 'states' FROM (VALUES
	('started'), ('started'), ('pending_build'), ('a'), ('_'), (repeat('a', 32)), ('other')) v(state);
SELECT inventory, pg_temp.summary(inventory::jsonb) -> 'states' FROM (VALUES
	('[{"state":"Started"}]'), ('[{"state":""}]'), ('[{"state":"a b"}]'), ('[{"state":"a-b"}]'), ('[{"state":"a1"}]'), ('[{"state":"st\u00e4rted"}]'), ('[{"state":"started\n"}]'),
	('[{"state":"' || repeat('a', 33) || '"}]'), ('[{"state":null}]'), ('[{"state":5}]'), ('[{"state":["started"]}]'), ('[{}]'), ('[null]'), ('[]')) v(inventory);
SELECT count(*), sum(value::integer) FROM jsonb_each(pg_temp.summary((SELECT jsonb_agg(jsonb_build_object('state', translate(i::text, '0123456789', 'abcdefghij'))) FROM generate_series(1, 100) i)) -> 'states');

-- Rule: only sandboxes with the caller's label are listed; all of them count.
CREATE TABLE pg_temp.inventory AS SELECT '[
	{"id":"mine","state":"started","cpu":1,"memory":1,"disk":1,"labels":{"workspace":"acme"}},
	{"id":"mine-too","state":"stopped","cpu":1,"memory":1,"disk":1,"labels":{"team":"x","workspace":"acme"}},
	{"id":"by-team","state":"stopped","cpu":1,"memory":1,"disk":1,"labels":{"team":"x=y","workspace":"ACME"}},
	{"id":"longer","cpu":1,"memory":1,"disk":1,"labels":{"workspace":"acme2"}},
	{"id":"shorter","cpu":1,"memory":1,"disk":1,"labels":{"workspace":"acm"}},
	{"id":"number","cpu":1,"memory":1,"disk":1,"labels":{"workspace":5}},
	{"id":"inside","cpu":1,"memory":1,"disk":1,"labels":{"x":{"workspace":"acme"}}},
	{"id":"list","cpu":1,"memory":1,"disk":1,"labels":["workspace","acme"]},
	{"id":"in-a-list","cpu":1,"memory":1,"disk":1,"labels":{"workspace":["acme"]}},
	{"id":"text","cpu":1,"memory":1,"disk":1,"labels":"workspace=acme"},
	{"id":"empty","cpu":1,"memory":1,"disk":1,"labels":{"workspace":"","":"no key"}},
	{"id":"none","cpu":1,"memory":1,"disk":1,"labels":{}},
	{"id":"no-labels","cpu":1,"memory":1,"disk":1,"workspace":"acme"},
	{"id":"null","cpu":1,"memory":1,"disk":1,"labels":{"workspace":null}},
	"acme"]'::jsonb AS inventory;
SELECT quote_nullable(workspace), s #> '{workspace,label}', jsonb_path_query_array(s, '$.workspace.sandboxes[*].id'), s #>> '{totals,sandboxes,used}', s #>> '{totals,cpu,used}'
FROM pg_temp.inventory, (VALUES (NULL), (''), ('acme'), ('workspace=acme'), ('ACME'), ('acm'), ('nobody'), ('team=x'), ('team=x=y'), ('team'), ('5'), ('null'), ('workspace=5'), ('workspace='), ('='), ('=no key'), ('x=acme'), ('%'), ('acme '), ('workspace = acme')) v(workspace),
	pg_temp.summary(inventory, NULL, workspace) s;
-- Rule: nothing of another's sandbox is anywhere in the result.  must not fire / must fire
SELECT workspace, s::text ~ 'mine-secret' AS mine, s::text ~ 'other-secret' AS others
FROM (VALUES (NULL), ('mine'), ('other'), ('nobody')) v(workspace),
	pg_temp.summary('[{"id":"mine-secret-1","name":"mine-secret-2","state":"started","cpu":"1","labels":{"workspace":"mine"},"lastActivityAt":"mine-secret-3"},
		{"id":"other-secret-1","name":"other-secret-2","state":"other-secret-3","cpu":"other-secret-4","labels":{"workspace":"other","x":"other-secret-5"},"lastActivityAt":"other-secret-6"}]', NULL, workspace) s;
-- Rule: what is listed is text where text belongs, and null otherwise; sizes are what was counted, in the units of the totals.
SELECT jsonb_array_elements(pg_temp.summary('[{"id":5,"name":["x"],"state":7,"cpu":"2","memory":-1,"disk":0.5,"lastActivityAt":5,"labels":{"workspace":"w"}},
	{"id":"a","name":"","state":"started","cpu":1,"memory":2,"disk":3,"lastActivityAt":"yesterday","labels":{"workspace":"w"},"env":{"KEY":"secret"}}]', NULL, 'w') #> '{workspace,sandboxes}');

-- Rule: longest idle first, unknown last, then by id.
SELECT x ->> 'id', x -> 'idleMinutes' FROM jsonb_array_elements(pg_temp.summary((SELECT jsonb_agg(jsonb_build_object('id', id, 'lastActivityAt', at, 'labels', '{"workspace":"w"}'::jsonb)) FROM (VALUES
	('z', NULL), ('b', '2026-07-01T11:00:00Z'), ('a', '2026-07-01T11:00:00Z'), ('Z', '2026-07-01T11:00:00Z'), ('ab', '2026-07-01T11:00:00Z'), (NULL, '2026-07-01T11:00:00Z'), ('new', '2026-07-01T12:00:00Z'), ('old', '2025-07-01T12:00:00Z'), ('c', 'x')) v(id, at)),
	NULL, 'w') #> '{workspace,sandboxes}') WITH ORDINALITY e(x, n) ORDER BY n;
-- Rule: what is the same by that stays in the order of the inventory.
SELECT string_agg(x ->> 'name', ' ' ORDER BY n) FROM jsonb_array_elements(pg_temp.summary((SELECT jsonb_agg(jsonb_build_object('id', (i % 3)::text, 'name', i::text, 'labels', '{"workspace":"w"}'::jsonb) ORDER BY i) FROM generate_series(1, 40) i),
	NULL, 'w') #> '{workspace,sandboxes}') WITH ORDINALITY e(x, n);
CREATE FUNCTION pg_temp.idle(at text, "now" timestamptz DEFAULT '2026-07-01 12:00:00+00') RETURNS text LANGUAGE sql AS $$
	SELECT sbx_summarize_daytona_capacity(jsonb_build_array(jsonb_build_object('lastActivityAt', at, 'labels', '{"workspace":"w"}'::jsonb)), NULL, 'w', "now")
		#> '{workspace,sandboxes,0,idleMinutes}' $$;
-- Rule: whole minutes; never negative.  must not fire: well-formed times
SELECT at, pg_temp.idle(at) FROM (VALUES
	('2026-07-01T12:00:00Z'), ('2026-07-01T11:59:00.001Z'), ('2026-07-01T11:59:00Z'), ('2026-07-01T11:58:00.0000001Z'), ('2026-07-01T13:59:00+02:00'), ('2026-07-01T06:29:00-05:30'),
	('2026-07-01T12:00:01Z'), ('9999-12-31T23:59:59Z'), ('2024-02-29T12:00:00Z'), ('0001-01-01T00:00:00Z')) v(at);
-- must fire: malformed ones
SELECT quote_nullable(at), pg_temp.idle(at) FROM (VALUES
	(NULL), (''), ('yesterday'), ('now'), ('infinity'), ('2026-07-01'), ('2026-07-01T11:00'), ('2026-07-01T11:00:00'), ('2026-07-01 11:00:00Z'), ('2026-07-01T11:00:00z'), ('2026-07-01T11:00:00+0200'), ('2026-07-01T11:00:00ZZ'),
	(' 2026-07-01T11:00:00Z'), ('2026-02-29T11:00:00Z'), ('2026-13-01T11:00:00Z'), ('2026-07-01T24:00:00Z'), ('2026-07-01T11:00:60Z'), ('2026-07-01T11:00:00.Z'), ('0000-01-01T00:00:00Z'), ('1782900000'), (repeat('2', 100000))) v(at)
WHERE length(at) < 100 OR at IS NULL OR pg_temp.idle(at) IS DISTINCT FROM 'null';
-- Rule: no time that the server knows overflows.
SELECT what, pg_temp.idle('0001-01-01T00:00:00Z', "now"), pg_temp.idle('9999-12-31T23:59:59Z', "now")
FROM (VALUES ('first', '4714-11-24 00:00:00+00 BC'::timestamptz), ('last', '294276-12-31 23:59:59.999999+00')) v(what, "now");

--
-- Arguments
--
-- Rule: the inventory is a list or a page with one.  must not fire / must fire
SELECT inventory, pg_temp.try(format('SELECT sbx_summarize_daytona_capacity(%L, NULL, NULL, now())', inventory)) FROM (VALUES
	('[]'), ('[{}]'), ('{"items":[]}'), ('{"items":[{}],"total":1,"page":1,"nextCursor":null}')) v(inventory);
SELECT inventory, pg_temp.try(format('SELECT sbx_summarize_daytona_capacity(%L, NULL, NULL, now())', inventory)) FROM (VALUES
	('{}'), ('{"items":null}'), ('{"items":{}}'), ('{"items":5}'), ('{"items":"[]"}'), ('{"sandboxes":[]}'), ('{"id":"a","cpu":1}'), ('null'), ('5'), ('"[]"'), ('true')) v(inventory);
-- Rule: a page counts like its items.
SELECT pg_temp.summary('[{"cpu":3,"state":"started"}]') = pg_temp.summary('{"items":[{"cpu":3,"state":"started"}],"total":7}');
-- Rule: inventory and now are required, limits and workspace are not.  must fire / must not fire
SELECT statement, pg_temp.try(statement) FROM (VALUES
	($$SELECT sbx_summarize_daytona_capacity(NULL, '{}', 'w', now())$$), ($$SELECT sbx_summarize_daytona_capacity('[]', '{}', 'w', NULL)$$), ($$SELECT sbx_summarize_daytona_capacity(NULL, NULL, NULL, NULL)$$),
	($$SELECT sbx_summarize_daytona_capacity('[]', '{}', 'w', 'infinity')$$), ($$SELECT sbx_summarize_daytona_capacity('[]', '{}', 'w', '-infinity')$$),
	($$SELECT sbx_summarize_daytona_capacity('[]', NULL, NULL, now())$$), ($$SELECT sbx_parse_daytona_capacity_limits(NULL)$$)) v(statement);
SELECT d, pg_temp.total(pg_temp.summary('[{"cpu":1,"memory":1,"disk":1}]', NULL), d) FROM unnest('{cpu,memory,disk,sandboxes}'::text[]) d;

-- Rule: many, deep and odd items are read all the same.
SELECT s #>> '{totals,sandboxes,used}', s #>> '{totals,cpu,used}', s #>> '{totals,memory,used}', jsonb_array_length(s #> '{workspace,sandboxes}')
FROM pg_temp.summary((SELECT jsonb_agg(jsonb_build_object('id', i, 'cpu', 0.5, 'memory', 0.1, 'disk', 1, 'labels', jsonb_build_object('workspace', (i % 2)::text))) FROM generate_series(1, 5000) i), NULL, '1') s;
SELECT s #>> '{totals,sandboxes,used}', jsonb_array_length(s #> '{workspace,sandboxes}')
FROM pg_temp.summary((SELECT jsonb_agg('{"labels":{"workspace":"w"}}'::jsonb) FROM generate_series(1, 100)), NULL, 'w') s;
SELECT pg_temp.total(pg_temp.summary(('[' || repeat('[', 1000) || repeat(']', 1000) || ',{"cpu":4,"x":' || repeat('{"x":', 1000) || '1' || repeat('}', 1000) || '}]')::jsonb), 'cpu');

--
-- Whoever calls, however the session is set up
--
-- Rule: the settings of a session change nothing.
CREATE TABLE pg_temp.outcome (n int, summary jsonb);
PREPARE summarize AS INSERT INTO pg_temp.outcome SELECT $1, public.sbx_summarize_daytona_capacity('[{"cpu":1.5,"lastActivityAt":"2026-07-01T11:00:00Z","labels":{"workspace":"w"}}]', '{"cpu":2}', 'w', '2026-07-01 12:00:00.5+00');
EXECUTE summarize(1);
SET TimeZone = 'Asia/Kolkata';
EXECUTE summarize(2);
SET DateStyle = 'German';
EXECUTE summarize(3);
SET extra_float_digits = -15;
EXECUTE summarize(4);
RESET TimeZone;
RESET DateStyle;
RESET extra_float_digits;
SELECT count(*), count(DISTINCT summary), min(summary ->> 'measuredAt') FROM pg_temp.outcome;
-- Rule: nothing on the search_path is called, and an empty one does.
CREATE SCHEMA regress_decoy;
CREATE FUNCTION regress_decoy.trap(numeric, numeric) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy operator used'; END $$;
CREATE OPERATOR regress_decoy.+ (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = regress_decoy.trap);
CREATE OPERATOR regress_decoy.* (LEFTARG = numeric, RIGHTARG = numeric, FUNCTION = regress_decoy.trap);
CREATE FUNCTION regress_decoy.sbx_parse_daytona_capacity_limits(text) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'decoy function used'; END $$;
SET search_path = regress_decoy, pg_catalog;
-- the decoys do shadow: must fire
SELECT 1::numeric + 1::numeric;
SELECT sbx_parse_daytona_capacity_limits('{}');
-- must not fire
SELECT public.sbx_summarize_daytona_capacity('[{"cpu":1,"memory":1,"disk":1},{"cpu":1,"memory":1,"disk":1}]', public.sbx_parse_daytona_capacity_limits('{"memory":4096}'), NULL, '2026-07-01 12:00:00+00') #> '{totals,memory}';
SET search_path = '';
SELECT public.sbx_summarize_daytona_capacity('[{"cpu":1,"memory":1,"disk":1}]', public.sbx_parse_daytona_capacity_limits('{"memory":4096}'), NULL, '2026-07-01 12:00:00+00') #> '{totals,memory}';
SET search_path = public, pg_temp;
SET client_min_messages = warning;
DROP SCHEMA regress_decoy CASCADE;
RESET client_min_messages;
-- Rule: they are immutable and work in a parallel worker.
SET force_parallel_mode = on;
SELECT sbx_parse_daytona_capacity_limits('{"cpu":0}') -> 'defects', sbx_summarize_daytona_capacity('[{"cpu":9}]', '{"cpu":10}', NULL, '2026-07-01 12:00:00+00') ->> 'level';
SELECT pg_temp.try($$SELECT sbx_summarize_daytona_capacity('5', '{}', NULL, now())$$);
RESET force_parallel_mode;
CREATE TABLE pg_temp.indexed (limits text);
CREATE INDEX ON pg_temp.indexed ((sbx_parse_daytona_capacity_limits(limits)));

-- Rule: an encoding that lacks a character makes no difference but for escapes, which
-- the server's lexer would raise for.  must not fire / must fire
SET client_min_messages = warning;
DROP DATABASE IF EXISTS regress_sbx_latin1;
CREATE DATABASE regress_sbx_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C';
SELECT current_database() AS home \gset
\c regress_sbx_latin1
\encoding UTF8
SET client_min_messages = warning;
CREATE EXTENSION sbx_router;
SELECT sbx_parse_daytona_capacity_limits('{"cpu":250,"ü":1}');
SELECT sbx_parse_daytona_capacity_limits('{"cpu":250,"\u20ac":1}');
\c :home
SET client_min_messages = warning;
DROP DATABASE regress_sbx_latin1;
