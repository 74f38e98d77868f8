/*
 * daytona.c
 *		What operators look at to see how full a Daytona account is.  Nothing is decided
 *		here: admission has its own, strict reading.
 */
#include "compat.h"

#include "core/daytonalimits.h"
#include "core/daytonasummary.h"
#include "core/jsonwrite.h"
#include "flow/call.h"
#include "flow/failure.h"
#include "flow/sandbox.h"
#include "miscadmin.h"
#include "store/policy.h"
#include "utils/builtins.h"

static void
require_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_ARGUMENT, name, SBX_REASON_MISSING, NULL);
}

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/*
 * sbx_parse_daytona_capacity_limits(limits text) returns jsonb
 *		{"limits","provenance","defects"} of JSON text {"cpu","memory","disk",
 *		"sandboxes"} in vCPU, MiB, MiB and count.  A defect takes the limit away and is
 *		reported; never raises.
 */
PG_FUNCTION_INFO_V1(sbx_parse_daytona_capacity_limits);
Datum
sbx_parse_daytona_capacity_limits(PG_FUNCTION_ARGS)
{
	SbxDaytonaLimits limits;

	sbx_daytona_limits_parse(text_argument(fcinfo, 0), &limits);
	PG_RETURN_JSONB_P(sbx_daytona_limits_document(&limits));
}

/*
 * sbx_summarize_daytona_capacity(inventory jsonb, limits jsonb, workspace text,
 *								  now timestamptz) returns jsonb
 *		Totals of all sandboxes against the limits, and those of one workspace with
 *		their idle times; sizes are in the units of the limits.  Says nothing about
 *		whether a create would succeed.  Raises SB001 for an inventory that is no list.
 */
PG_FUNCTION_INFO_V1(sbx_summarize_daytona_capacity);
Datum
sbx_summarize_daytona_capacity(PG_FUNCTION_ARGS)
{
	require_argument(fcinfo, 0, "inventory");
	require_argument(fcinfo, 3, "now");
	PG_RETURN_JSONB_P(sbx_daytona_summarize(
	    PG_GETARG_JSONB_P(0), PG_ARGISNULL(1) ? NULL : PG_GETARG_JSONB_P(1),
	    text_argument(fcinfo, 2), PG_GETARG_TIMESTAMPTZ(3)));
}

/* --- the same, live ----------------------------------------------------------------- */

/* What the registration says, as an operator would write it. */
static Jsonb *
configured_limits(const SbxCapacity *capacity)
{
	JsonbParseState *state = NULL;

	sbx_push_begin(&state, NULL);
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (capacity->limits[i] != SBX_NOT_CONFIGURED)
			sbx_push_double(&state, sbx_dimension_names[i], capacity->limits[i]);
	}
	return sbx_push_finish(&state);
}

static Jsonb *
read_inventory(const SbxProvider *provider, int64 timeout_ms)
{
	SbxAccess access;
	SbxOp *op;

	sbx_session_access(provider, &access);
	op = sbx_session_hold(provider->kind->inventory(&access.account, timeout_ms),
	                      access.credential);
	sbx_session_run(op);
	if (!op->succeeded)
		sbx_failure_runtime(provider->pool.id, NULL, op, false);
	return DatumGetJsonbP(DirectFunctionCall1(
	    jsonb_in,
	    CStringGetDatum(text_to_cstring(sbx_session_provider_text(op->result)))));
}

/*
 * sbx_daytona_capacity(provider text, workspace text, timeout interval) returns jsonb
 *		sbx_summarize_daytona_capacity() of the account's sandboxes now and the limits of
 *		its registration; timeout is for the whole listing (5 s).
 *		Errors: SB008 the listing cannot be read, SB011, SB012 not a Daytona provider,
 *		SB013 unknown provider, SB001 timeout.
 */
PG_FUNCTION_INFO_V1(sbx_daytona_capacity);
Datum
sbx_daytona_capacity(PG_FUNCTION_ARGS)
{
	const SbxProvider *provider;
	Jsonb *summary;
	SbxCall call;

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_daytona_capacity()");
	provider = sbx_call_provider(fcinfo, 0);
	sbx_sandbox_check_supported(provider->kind, provider->kind == &sbx_kind_daytona,
	                            "sbx_daytona_capacity()");
	summary = sbx_daytona_summarize(
	    read_inventory(provider,
	                   sbx_call_ms(fcinfo, 2, "timeout", SBX_CAPACITY_TIMEOUT_MS)),
	    configured_limits(&provider->capacity), text_argument(fcinfo, 1),
	    GetCurrentTimestamp());
	sbx_session_end(&call);
	PG_RETURN_JSONB_P(summary);
}
