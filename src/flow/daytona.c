/*
 * daytona.c
 *		What operators look at to see how full a Daytona account is.  Nothing is read
 *		from the network, and nothing decided.
 */
#include "compat.h"

#include "core/daytonalimits.h"
#include "core/daytonasummary.h"
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
