\echo Use "CREATE EXTENSION sbx_router_test" to load this file. \quit

CREATE FUNCTION sbx_bench_route(request jsonb, providers jsonb, iterations integer, wanted integer)
	RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_bench_route(jsonb, jsonb, integer, integer)
	IS 'nanoseconds for one routing decision: filter all pools, select the best wanted';

CREATE FUNCTION sbx_bench_parse_request(request jsonb, iterations integer)
	RETURNS double precision
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_bench_parse_request(jsonb, integer)
	IS 'nanoseconds for reading one request';

CREATE FUNCTION sbx_test_launch(request jsonb, carries_env boolean, carries_timeout boolean, can_detach boolean, max_labels integer, detached boolean)
	RETURNS text[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_test_launch(jsonb, boolean, boolean, boolean, integer, boolean)
	IS 'rejections by a pool whose kind carries just that in a launch; max_labels -1 is no limit';

CREATE FUNCTION sbx_test_isotime(iso8601 text) RETURNS timestamptz
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_test_isotime(text) IS 'a time as providers write it; NULL = malformed';

CREATE FUNCTION sbx_test_obstacle(capacity jsonb, readable boolean) RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_test_obstacle(jsonb, boolean) IS 'why there is no measurement of an account; NULL = it is read';

CREATE FUNCTION sbx_test_carries(request jsonb, max_env integer) RETURNS text[]
	AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
COMMENT ON FUNCTION sbx_test_carries(jsonb, integer)
	IS 'rejections by a pool whose kind carries variables in upper case and short labels in lower case';

CREATE FUNCTION sbx_test_measure(capacity jsonb, used double precision[]) RETURNS text
	AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
COMMENT ON FUNCTION sbx_test_measure(jsonb, double precision[])
	IS 'headroom after a reading of cpu, memory, disk and sandboxes, or why it is unknown';
