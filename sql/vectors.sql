--
-- VECTORS
-- Requests with their pools and the rows or the error that they must give, one
-- document {"request","providers","expect"} a line.
--
\set VERBOSITY terse
CREATE TEMP TABLE vector (n int GENERATED ALWAYS AS IDENTITY, doc jsonb);
\copy vector (doc) FROM PROGRAM 'cat "$PG_ABS_SRCDIR"/test/data/routing-vectors.jsonl' WITH (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')
-- What sbx_route_providers makes of one, in the shape of "expect".
CREATE FUNCTION pg_temp.decide(vector jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
	result jsonb; state text; detail text;
BEGIN
	SELECT jsonb_build_object('rows', COALESCE(jsonb_agg(jsonb_build_object('provider_id', provider_id,
			'eligible', eligible, 'position', position, 'rejections', rejections, 'score', score) ORDER BY n), '[]'))
	INTO result
	FROM ROWS FROM (sbx_route_providers(vector -> 'request', vector -> 'providers')) WITH ORDINALITY
		r(position, provider_id, eligible, rejections, score, cost_part, latency_part, reliability_part, signals, capacity, reason, n);
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, detail = PG_EXCEPTION_DETAIL;
	RETURN jsonb_build_object('error', jsonb_build_object('sqlstate', state,
		'path', CASE WHEN detail <> '' THEN detail::jsonb -> 'path' END));
END $$;
-- Rows in order, everything equal but scores, which may differ by 1e-12.
CREATE FUNCTION pg_temp.matches(actual jsonb, expected jsonb) RETURNS boolean LANGUAGE sql AS $$
	SELECT CASE WHEN expected ? 'error' OR actual ? 'error' THEN actual = expected
		ELSE (SELECT count(*) = count(a) AND count(*) = count(e) AND COALESCE(bool_and(
				a - 'score' = e - 'score' AND
				((a ->> 'score') IS NULL) = ((e ->> 'score') IS NULL) AND
				COALESCE(abs((a ->> 'score')::float8 - (e ->> 'score')::float8) <= 1e-12, true)), true)
			FROM ROWS FROM (jsonb_array_elements(actual -> 'rows'), jsonb_array_elements(expected -> 'rows')) r(a, e)) END $$;

CREATE TEMP TABLE decided AS SELECT n, doc -> 'expect' AS expected, pg_temp.decide(doc) AS actual FROM vector;
-- Rule: every vector is met.
SELECT count(*) AS vectors, count(*) FILTER (WHERE pg_temp.matches(actual, expected)) AS met,
	   count(*) FILTER (WHERE expected ? 'error') AS errors,
	   sum(jsonb_array_length(expected -> 'rows')) AS rows
FROM decided;
SELECT n, expected, actual FROM decided WHERE pg_temp.matches(actual, expected) IS NOT TRUE ORDER BY n;

-- Rule: the comparison can fail.  must fire: every expectation that was tampered with
-- is noticed, whatever was changed in it.
CREATE TEMP TABLE tampered AS
SELECT n, change, actual, CASE change
	WHEN 'row left out' THEN expected #- '{rows,-1}'
	WHEN 'row added' THEN jsonb_insert(expected, '{rows,-1}', expected #> '{rows,0}', true)
	WHEN 'no rows' THEN '{"rows":[]}'
	WHEN 'order' THEN jsonb_set(jsonb_set(expected, '{rows,0}', expected #> '{rows,-1}'), '{rows,-1}', expected #> '{rows,0}')
	WHEN 'id' THEN jsonb_set(expected, '{rows,0,provider_id}', to_jsonb((expected #>> '{rows,0,provider_id}') || 'x'))
	WHEN 'position' THEN jsonb_set(expected, '{rows,0,position}', '7')
	WHEN 'no position' THEN jsonb_set(expected, '{rows,0,position}', 'null')
	WHEN 'eligible' THEN jsonb_set(expected, '{rows,0,eligible}', to_jsonb(NOT (expected #> '{rows,0,eligible}')::boolean))
	WHEN 'code added' THEN jsonb_insert(expected, '{rows,-1,rejections,0}', '"X"')
	WHEN 'code left out' THEN expected #- '{rows,-1,rejections,-1}'
	WHEN 'codes swapped' THEN jsonb_insert(expected #- '{rows,-1,rejections,-1}', '{rows,-1,rejections,0}', expected #> '{rows,-1,rejections,-1}')
	WHEN 'score' THEN jsonb_set(expected, '{rows,0,score}', to_jsonb((expected #>> '{rows,0,score}')::numeric + 0.0000000001))
	WHEN 'no score' THEN jsonb_set(expected, '{rows,0,score}', 'null')
	WHEN 'error' THEN '{"error":{"sqlstate":"SB001","path":"request"}}'
	WHEN 'sqlstate' THEN jsonb_set(expected, '{error,sqlstate}', '"SB003"')
	WHEN 'path' THEN jsonb_set(expected, '{error,path}', '"request.x"')
	WHEN 'no error' THEN '{"rows":[]}' END AS expected
FROM decided d,
	LATERAL (SELECT count(*) AS rows, count(*) FILTER (WHERE (r ->> 'eligible')::boolean) AS eligible
			 FROM jsonb_array_elements(d.expected -> 'rows') r) c,
	(VALUES ('row left out'), ('row added'), ('no rows'), ('order'), ('id'), ('position'), ('no position'), ('eligible'),
		('code added'), ('code left out'), ('codes swapped'), ('score'), ('no score'), ('error'), ('sqlstate'), ('path'), ('no error')) v(change)
WHERE CASE WHEN change IN ('sqlstate', 'path', 'no error') THEN d.expected ? 'error'
	WHEN d.expected ? 'error' THEN false
	WHEN change = 'order' THEN rows > 1
	WHEN change IN ('position', 'no position', 'score', 'no score') THEN eligible > 0
	WHEN change = 'code left out' THEN eligible < rows
	WHEN change = 'codes swapped' THEN jsonb_array_length(d.expected #> '{rows,-1,rejections}') > 1
	ELSE rows > 0 END;
SELECT change, count(*) > 5 AS tried, count(*) FILTER (WHERE pg_temp.matches(actual, expected) IS NOT TRUE) = count(*) AS noticed
FROM tampered GROUP BY change ORDER BY change COLLATE "C";
-- must not fire: a score that is off by less than the tolerance
SELECT bool_and(pg_temp.matches(actual, jsonb_set(expected, '{rows,0,score}', to_jsonb((expected #>> '{rows,0,score}')::numeric + 0.0000000000001)))) AS tolerated
FROM decided WHERE expected #> '{rows,0,score}' IS NOT NULL;
DISCARD TEMP;
