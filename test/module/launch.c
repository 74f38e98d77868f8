/*
 * launch.c
 *		What a kind can carry in a launch, asked of kinds made up by the test.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/route.h"
#include "utils/array.h"
#include "utils/builtins.h"

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
	static const SbxSignals signals = {.available = true};
	SbxLaunchAbility launch = {.env = PG_GETARG_BOOL(1),
	                           .create_timeout = PG_GETARG_BOOL(2),
	                           .detached = PG_GETARG_BOOL(3),
	                           .max_labels = PG_GETARG_INT32(4)};
	SbxDeclared *declared = sbx_declared_create(CurrentMemoryContext);
	SbxPool pool = {.id = "pool", .enabled = true, .launch = &launch};
	SbxRouting routing = {.detached = PG_GETARG_BOOL(5), .explain = true};
	SbxVerdict verdict = {.pool = &pool};
	Datum *codes;

	pool.signals = signals;
	routing.request = sbx_request_parse(PG_GETARG_JSONB_P(0), declared);
	sbx_route_filter(&routing, &pool, &verdict);
	codes = palloc(sizeof(Datum) * (verdict.rejection_count + 1));
	for (int i = 0; i < verdict.rejection_count; i++)
		codes[i] = CStringGetTextDatum(
		    sbx_route_code(routing.request, &verdict.rejections[i]));
	PG_RETURN_ARRAYTYPE_P(construct_array(codes, verdict.rejection_count, TEXTOID, -1,
	                                      false, TYPALIGN_INT));
}
