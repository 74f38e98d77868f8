/*
 * launch.c
 *		What a kind can carry in a launch, asked of kinds made up by the test.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/route.h"
#include "utils/array.h"
#include "utils/builtins.h"

/* The rejection codes of a pool that declares nothing, with that ability. */
static Datum
rejections(Jsonb *request, const SbxLaunchAbility *launch, bool detached)
{
	static const SbxSignals signals = {.available = true};
	SbxDeclared *declared = sbx_declared_create(CurrentMemoryContext);
	SbxPool pool = {.id = "pool", .enabled = true, .launch = launch};
	SbxRouting routing = {.detached = detached, .explain = true};
	SbxVerdict verdict = {.pool = &pool};
	Datum *codes;

	pool.signals = signals;
	routing.request = sbx_request_parse(request, declared);
	sbx_route_filter(&routing, &pool, &verdict);
	codes = palloc(sizeof(Datum) * (verdict.rejection_count + 1));
	for (int i = 0; i < verdict.rejection_count; i++)
		codes[i] = CStringGetTextDatum(
		    sbx_route_code(routing.request, &verdict.rejections[i]));
	return PointerGetDatum(construct_array(codes, verdict.rejection_count, TEXTOID, -1,
	                                       false, TYPALIGN_INT));
}

/*
 * sbx_test_launch(request jsonb, carries_env boolean, carries_timeout boolean,
 *				   can_detach boolean, max_labels integer, detached boolean)
 *		returns text[]
 *		The rejection codes of a pool that declares nothing and whose kind carries
 *		just that; max_labels -1 is no limit.
 */
PG_FUNCTION_INFO_V1(sbx_test_launch);
Datum
sbx_test_launch(PG_FUNCTION_ARGS)
{
	const SbxLaunchAbility launch = {.max_env = PG_GETARG_BOOL(1) ? -1 : 0,
	                                 .create_timeout = PG_GETARG_BOOL(2),
	                                 .detached = PG_GETARG_BOOL(3),
	                                 .max_labels = PG_GETARG_INT32(4)};

	PG_RETURN_DATUM(rejections(PG_GETARG_JSONB_P(0), &launch, PG_GETARG_BOOL(5)));
}

/* Made up: names in upper case, and keys in lower case with short values. */
static bool
carries_upper_case(const char *name, const char *value)
{
	return *name >= 'A' && *name <= 'Z';
}

static bool
carries_short(const char *key, const char *value)
{
	return *key >= 'a' && *key <= 'z' && strlen(value) < 4;
}

/*
 * sbx_test_carries(request jsonb, max_env integer) returns text[]
 *		The same of a kind that carries variables in upper case, max_env of them (-1 = no
 *		limit), and labels in lower case with values of less than 4 bytes.
 */
PG_FUNCTION_INFO_V1(sbx_test_carries);
Datum
sbx_test_carries(PG_FUNCTION_ARGS)
{
	const SbxLaunchAbility launch = {.max_env = PG_GETARG_INT32(1),
	                                 .max_labels = -1,
	                                 .carries_variable = carries_upper_case,
	                                 .carries_label = carries_short};

	PG_RETURN_DATUM(rejections(PG_GETARG_JSONB_P(0), &launch, false));
}
