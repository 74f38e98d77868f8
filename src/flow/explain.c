/*
 * explain.c
 *		Routing without the launch: sbx_route, sbx_route_explain and their kin.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "flow/candidates.h"
#include "flow/plan.h"
#include "flow/session.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"

#define EXPLAIN_COLUMNS 11

static Jsonb *
jsonb_argument(FunctionCallInfo fcinfo, int n, SbxDocument document, const char *path)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(document, path, SBX_REASON_MISSING, NULL);
	return PG_GETARG_JSONB_P(n);
}

static Jsonb *
request_argument(FunctionCallInfo fcinfo, int n)
{
	return jsonb_argument(fcinfo, n, SBX_DOCUMENT_REQUEST, "request");
}

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

static void
put_text(ReturnSetInfo *result, const char *line)
{
	Datum value = CStringGetTextDatum(line);
	bool is_null = false;

	tuplestore_putvalues(result->setResult, result->setDesc, &value, &is_null);
}

/*
 * sbx_route(request jsonb, policy text) returns setof text
 *		Ids of the eligible pools, best first.  No network.
 */
PG_FUNCTION_INFO_V1(sbx_route);
Datum
sbx_route(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;
	SbxPlan *plan;
	SbxCall call;

	sbx_session_begin(&call);
	plan = sbx_plan_make(request_argument(fcinfo, 0), text_argument(fcinfo, 1), false,
	                     false, INT_MAX);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	for (int i = 0; i < plan->eligible; i++)
		put_text(result, plan->verdicts[i].pool->id);
	sbx_session_end(&call);
	return (Datum) 0;
}

/*
 * sbx_check_request(request jsonb) returns jsonb
 *		The request with every default filled in.  Raises SB001 and SB002.
 */
PG_FUNCTION_INFO_V1(sbx_check_request);
Datum
sbx_check_request(PG_FUNCTION_ARGS)
{
	SbxRequest *request;

	request =
	    sbx_request_parse(request_argument(fcinfo, 0), sbx_registry_get()->declared);
	sbx_request_check_routable(request);
	PG_RETURN_JSONB_P(sbx_request_normalize(request));
}

/* --- rows -------------------------------------------------------------------- */

static Datum
rejections_array(const SbxPlan *plan, const SbxVerdict *verdict)
{
	int count = verdict->rejection_count;
	Datum *codes = palloc(sizeof(Datum) * (count + 1));

	for (int i = 0; i < count; i++)
		codes[i] =
		    CStringGetTextDatum(sbx_route_code(plan->request, &verdict->rejections[i]));
	return PointerGetDatum(
	    construct_array(codes, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Preferred regions filter and score nothing unless required: show the match. */
static const char *
region_words(const SbxPlan *plan, const SbxVerdict *verdict)
{
	const SbxNameList *preferred = &plan->request->preferred_regions;

	for (int i = 0; i < preferred->count; i++)
	{
		if (sbx_set_contains(&verdict->pool->profile.regions, preferred->numbers[i]))
			return psprintf("; offers region \"%s\"", preferred->names[i]);
	}
	return preferred->count > 0 ? "; offers no preferred region" : "";
}

/* Under a policy's order. */
static char *
order_words(const SbxPlan *plan, const SbxVerdict *verdict)
{
	if (verdict->position == 1)
		return psprintf("first of %d eligible providers in the policy's order",
		                plan->eligible);
	return psprintf("behind \"%s\" in the policy's order",
	                plan->verdicts[verdict->position - 2].pool->id);
}

/* Why an eligible pool has its place; ties are settled by id. */
static char *
place_words(const SbxPlan *plan, const SbxVerdict *verdict)
{
	const char *strategy = sbx_strategy_names[plan->request->strategy];
	const SbxVerdict *best = &plan->verdicts[0];

	if (plan->eligible == 1)
		return pstrdup("the only eligible provider");
	if (plan->routing.ordered)
		return order_words(plan, verdict);
	if (verdict == best && sbx_route_tied(plan->request, best, best + 1))
		return psprintf("tied for best of %d eligible providers by %s, first by id",
		                plan->eligible, strategy);
	if (verdict == best)
		return psprintf("best of %d eligible providers by %s", plan->eligible,
		                strategy);
	if (sbx_route_tied(plan->request, best, verdict))
		return psprintf("tied with \"%s\" by %s, later by id", best->pool->id,
		                strategy);
	return psprintf("behind \"%s\" by %s", best->pool->id, strategy);
}

static char *
reason(const SbxPlan *plan, const SbxVerdict *verdict)
{
	if (!verdict->eligible)
		return sbx_plan_words(plan, verdict);
	return psprintf("%s%s", place_words(plan, verdict), region_words(plan, verdict));
}

static void
explain_row(const SbxPlan *plan, const SbxVerdict *verdict,
            const SbxAdmission *admissions, ReturnSetInfo *result)
{
	Datum values[EXPLAIN_COLUMNS] = {0};
	bool nulls[EXPLAIN_COLUMNS] = {false};

	values[0] = Int32GetDatum(verdict->position);
	nulls[0] = !verdict->eligible;
	values[1] = CStringGetTextDatum(verdict->pool->id);
	values[2] = BoolGetDatum(verdict->eligible);
	values[3] = rejections_array(plan, verdict);
	values[4] = Float8GetDatum(verdict->score);
	values[5] = Float8GetDatum(verdict->cost_part);
	values[6] = Float8GetDatum(verdict->latency_part);
	values[7] = Float8GetDatum(verdict->reliability_part);
	for (int i = 4; i <= 7; i++)
		nulls[i] = !verdict->eligible || plan->routing.ordered;
	values[8] = JsonbPGetDatum(verdict->pool->signals.document);
	nulls[9] = admissions == NULL || !verdict->eligible;
	if (!nulls[9])
		values[9] =
		    CStringGetTextDatum(sbx_admission_names[admissions[verdict->position - 1]]);
	values[10] = CStringGetTextDatum(reason(plan, verdict));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

static void
explain_rows(const SbxPlan *plan, const SbxAdmission *admissions,
             FunctionCallInfo fcinfo)
{
	MemoryContext row_context = AllocSetContextCreate(
	    CurrentMemoryContext, "sbx_router explain row", ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;

	InitMaterializedSRF(fcinfo, 0);
	caller = MemoryContextSwitchTo(row_context);
	for (int i = 0; i < plan->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		explain_row(plan, &plan->verdicts[i], admissions,
		            (ReturnSetInfo *) fcinfo->resultinfo);
		MemoryContextReset(row_context);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(row_context);
}

/*
 * sbx_route_explain(request jsonb, policy text, detached boolean,
 *					 read_capacity boolean) returns setof record
 *		One row per registered pool: eligible ones first by position, then the
 *		rejected by id.  Under a policy's order there are no scores.
 *
 *		No network, unless read_capacity: then, under such an order, the accounts of
 *		the eligible pools are read, and capacity is ADMIT, EXHAUSTED or UNKNOWN.
 */
PG_FUNCTION_INFO_V1(sbx_route_explain);
Datum
sbx_route_explain(PG_FUNCTION_ARGS)
{
	SbxPlan *plan;
	SbxAdmission *admissions = NULL;
	SbxCall call;
	bool detached = !PG_ARGISNULL(2) && PG_GETARG_BOOL(2);

	sbx_session_begin(&call);
	plan = sbx_plan_make(request_argument(fcinfo, 0), text_argument(fcinfo, 1),
	                     detached, true, INT_MAX);
	if (!PG_ARGISNULL(3) && PG_GETARG_BOOL(3))
		admissions = sbx_candidates_admissions(plan, 1);
	explain_rows(plan, admissions, fcinfo);
	sbx_session_end(&call);
	return (Datum) 0;
}

/*
 * sbx_route_providers(request jsonb, providers jsonb) returns setof record
 *		The same rows for pools given as a JSON array of {"id", "enabled",
 *		"capabilities", "signals"}.  Pure: credentials and policies play no part.
 */
PG_FUNCTION_INFO_V1(sbx_route_providers);
Datum
sbx_route_providers(PG_FUNCTION_ARGS)
{
	explain_rows(sbx_plan_make_for(
	                 request_argument(fcinfo, 0),
	                 jsonb_argument(fcinfo, 1, SBX_DOCUMENT_PROVIDER, "providers")),
	             NULL, fcinfo);
	return (Datum) 0;
}

/* --- for people -------------------------------------------------------------------- */

/* Width of a number. */
static int
digits(int number)
{
	int width = 1;

	while ((number /= 10) > 0)
		width++;
	return width;
}

static int
widest_id(const SbxPlan *plan)
{
	int width = 0;

	for (int i = 0; i < plan->count; i++)
		width = Max(width, (int) strlen(plan->verdicts[i].pool->id));
	return width;
}

/* The pool, and what gave it its place. */
static char *
place_text(const SbxPlan *plan, const SbxVerdict *verdict, int width)
{
	if (plan->routing.ordered)
		return pstrdup(verdict->pool->id);
	return psprintf("%-*s  score=%.3f  (cost=%.3f latency=%.3f reliability=%.3f)",
	                width, verdict->pool->id, verdict->score, verdict->cost_part,
	                verdict->latency_part, verdict->reliability_part);
}

static void
put_eligible(const SbxPlan *plan, const SbxVerdict *verdict, int width,
             ReturnSetInfo *result)
{
	const SbxSignals *signals = &verdict->pool->signals;

	put_text(result, psprintf("%s %*d. %s", verdict->position == 1 ? "->" : "  ",
	                          digits(plan->eligible), verdict->position,
	                          place_text(plan, verdict, width)));
	put_text(
	    result,
	    psprintf("        Signals: cost %.15g, cold start %.15g ms, ready %.15g ms, "
	             "completion %.15g",
	             signals->estimated_cost, signals->cold_start_latency_ms,
	             signals->ready_latency_ms, signals->completion_rate));
	if (plan->request->preferred_regions.count > 0)
		put_text(result,
		         psprintf("        Region: %s", region_words(plan, verdict) + 2));
}

static void
put_rejected(const SbxPlan *plan, const SbxVerdict *verdict, ReturnSetInfo *result)
{
	put_text(result, psprintf("   x  %s", verdict->pool->id));
	for (int i = 0; i < verdict->rejection_count; i++)
	{
		SbxVerdict one = *verdict;

		one.rejections = &verdict->rejections[i];
		one.rejection_count = 1;
		put_text(result,
		         psprintf("        %s: %s",
		                  sbx_route_code(plan->request, &verdict->rejections[i]),
		                  sbx_plan_words(plan, &one)));
	}
}

/* What the pools are in order by. */
static const char *
rule_words(const SbxPlan *plan)
{
	if (plan->routing.ordered)
		return "the policy's order";
	return psprintf("%s (%s)", sbx_strategy_names[plan->request->strategy],
	                plan->request->objective == SBX_OBJECTIVE_READY ? "time to ready"
	                                                                : "cold start");
}

/*
 * sbx_route_explain_text(request jsonb, policy text) returns setof text
 *		The same as sbx_route_explain, as a plan to read: winner first, each rejected
 *		pool with its reasons in words.
 */
PG_FUNCTION_INFO_V1(sbx_route_explain_text);
Datum
sbx_route_explain_text(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;
	SbxPlan *plan;
	SbxCall call;
	int width;

	sbx_session_begin(&call);
	plan = sbx_plan_make(request_argument(fcinfo, 0), text_argument(fcinfo, 1), false,
	                     true, INT_MAX);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	width = widest_id(plan);
	put_text(result, psprintf("Route by %s  (eligible=%d of %d)", rule_words(plan),
	                          plan->eligible, plan->count));
	if (plan->policy != NULL)
		put_text(result, psprintf("  Policy: %s", plan->policy->name));
	for (int i = 0; i < plan->count; i++)
	{
		if (plan->verdicts[i].eligible)
			put_eligible(plan, &plan->verdicts[i], width, result);
		else
			put_rejected(plan, &plan->verdicts[i], result);
	}
	sbx_session_end(&call);
	return (Datum) 0;
}
