/*
 * bench.c
 *		How long the routing core takes, measured inside a backend.
 */
#include "compat.h"

#include "core/route.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

/*
 * Iterations are measured in rounds, and the fastest one counts: on a machine that does
 * other things, too, it is the one least disturbed.
 */
#define ROUNDS 50

/* A kind that carries everything: its rules are asked, and none rejects. */
static const SbxLaunchAbility carries_all = {
    .max_env = -1, .create_timeout = true, .detached = true, .max_labels = -1};

static void
read_pool(const JsonbValue *object, SbxDeclared *declared, SbxPool *pool)
{
	static const char *const keys[] = {"id", "enabled", "capabilities", "signals"};
	const SbxPath path = {SBX_DOCUMENT_PROVIDER, NULL, "provider"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(&path, object, keys, lengthof(keys), member, NULL);
	pool->id = sbx_jsonb_text(SBX_MEMBER(&path, keys[0]), &member[0]);
	if (pool->id == NULL)
		sbx_refuse(SBX_MEMBER(&path, keys[0]), SBX_REASON_MISSING, NULL);
	pool->enabled = sbx_jsonb_bool(SBX_MEMBER(&path, keys[1]), &member[1], true);
	pool->launch = &carries_all;
	sbx_profile_parse(&path, &member[2], declared, &pool->profile);
	sbx_signals_parse(&path, &member[3], &pool->signals);
}

static SbxPool *
read_pools(Jsonb *providers, SbxDeclared *declared, int *count)
{
	JsonbIterator *iterator = JsonbIteratorInit(&providers->root);
	JsonbValue item;
	SbxPool *pools;

	if (!JB_ROOT_IS_ARRAY(providers) || JB_ROOT_IS_SCALAR(providers))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		                errmsg("providers must be a JSON array")));
	pools = MemoryContextAllocHuge(CurrentMemoryContext,
	                               sizeof(SbxPool) * (JB_ROOT_COUNT(providers) + 1));
	*count = 0;
	(void) JsonbIteratorNext(&iterator, &item, true);
	while (JsonbIteratorNext(&iterator, &item, true) != WJB_END_ARRAY)
		read_pool(&item, declared, &pools[(*count)++]);
	return pools;
}

typedef struct Decision
{
	SbxRouting routing;
	const SbxPool *pools;
	int count;
	int wanted;
} Decision;

/* What provisioning does with its pools, credentials aside. */
static void
decide(void *arg)
{
	const Decision *decision = arg;
	const SbxRouting *routing = &decision->routing;
	SbxVerdict *verdicts = palloc0(sizeof(SbxVerdict) * (decision->count + 1));

	for (int i = 0; i < decision->count; i++)
	{
		SbxVerdict *verdict = &verdicts[i];

		verdict->pool = &decision->pools[i];
		verdict->index = i;
		sbx_route_filter(routing, verdict->pool, verdict);
		if (verdict->eligible)
			sbx_route_filter_signals(routing, verdict);
	}
	(void) sbx_route_rank(routing, verdicts, decision->count, decision->wanted);
}

static int
positive_argument(int value, const char *name)
{
	if (value < 1)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
		                errmsg("%s must be positive", name)));
	return value;
}

/*
 * Nanoseconds for one call of work, which allocates in a context that is emptied
 * after every call, as the server does.
 */
static double
measure(void (*work)(void *), void *arg, int iterations)
{
	MemoryContext scratch = AllocSetContextCreate(
	    CurrentMemoryContext, "sbx_router_test iteration", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(scratch);
	int size = Max(iterations / ROUNDS, 1);
	double fastest = 0;

	for (int done = 0; done < iterations; done += size)
	{
		instr_time start;
		instr_time end;

		CHECK_FOR_INTERRUPTS();
		INSTR_TIME_SET_CURRENT(start);
		for (int i = 0; i < size; i++)
		{
			work(arg);
			MemoryContextReset(scratch);
		}
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, start);
		if (done == 0 || INSTR_TIME_GET_DOUBLE(end) < fastest)
			fastest = INSTR_TIME_GET_DOUBLE(end);
	}
	MemoryContextSwitchTo(caller);
	return fastest * 1e9 / size;
}

/*
 * sbx_bench_route(request jsonb, providers jsonb, iterations integer,
 *				   wanted integer) returns double precision
 *		Nanoseconds for one decision.
 */
PG_FUNCTION_INFO_V1(sbx_bench_route);
Datum
sbx_bench_route(PG_FUNCTION_ARGS)
{
	int iterations = positive_argument(PG_GETARG_INT32(2), "iterations");
	SbxDeclared *declared = sbx_declared_create(CurrentMemoryContext);
	Decision decision = {0};

	decision.wanted = positive_argument(PG_GETARG_INT32(3), "wanted");
	decision.pools = read_pools(PG_GETARG_JSONB_P(1), declared, &decision.count);
	decision.routing.request = sbx_request_parse(PG_GETARG_JSONB_P(0), declared);
	PG_RETURN_FLOAT8(measure(decide, &decision, iterations));
}

typedef struct Reading
{
	Jsonb *request;
	const SbxDeclared *declared;
} Reading;

static void
read_request(void *arg)
{
	const Reading *reading = arg;

	(void) sbx_request_parse(reading->request, reading->declared);
}

/*
 * sbx_bench_parse_request(request jsonb, iterations integer)
 *		returns double precision
 *		Nanoseconds for reading one request.
 */
PG_FUNCTION_INFO_V1(sbx_bench_parse_request);
Datum
sbx_bench_parse_request(PG_FUNCTION_ARGS)
{
	int iterations = positive_argument(PG_GETARG_INT32(1), "iterations");
	Reading reading;

	reading.request = PG_GETARG_JSONB_P(0);
	reading.declared = sbx_declared_create(CurrentMemoryContext);
	PG_RETURN_FLOAT8(measure(read_request, &reading, iterations));
}
