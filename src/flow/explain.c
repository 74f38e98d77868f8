/*
 * explain.c
 *		sbx_route and sbx_route_explain: the decision without the launch.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "flow/plan.h"
#include "flow/session.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

#define EXPLAIN_COLUMNS 11

static Jsonb *
request_argument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_REQUEST, "request", SBX_REASON_MISSING, NULL);
	return PG_GETARG_JSONB_P(n);
}

static char *
text_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
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
	plan = sbx_plan_make(request_argument(fcinfo, 0), text_argument(fcinfo, 1));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	for (int i = 0; i < plan->eligible; i++)
	{
		Datum value = CStringGetTextDatum(plan->verdicts[i].pool->id);
		bool is_null = false;

		tuplestore_putvalues(result->setResult, result->setDesc, &value, &is_null);
	}
	sbx_session_end(&call);
	return (Datum) 0;
}

static Datum
rejections_array(const SbxVerdict *verdict)
{
	int count = list_length(verdict->rejections);
	Datum *codes = palloc(sizeof(Datum) * (count + 1));
	ListCell *cell;

	foreach (cell, verdict->rejections)
		codes[foreach_current_index(cell)] = CStringGetTextDatum(lfirst(cell));
	return PointerGetDatum(
	    construct_array(codes, count, TEXTOID, -1, false, TYPALIGN_INT));
}

static void
push_pair(JsonbParseState **state, char *key, JsonbValue *value)
{
	JsonbValue name = {.type = jbvString};

	name.val.string.val = key;
	name.val.string.len = strlen(key);
	pushJsonbValue(state, WJB_KEY, &name);
	pushJsonbValue(state, WJB_VALUE, value);
}

static void
push_number(JsonbParseState **state, char *key, double number)
{
	JsonbValue value = {.type = jbvNumeric};

	value.val.numeric =
	    DatumGetNumeric(DirectFunctionCall1(float8_numeric, Float8GetDatum(number)));
	push_pair(state, key, &value);
}

/* The signals that ranking used: registered ones and defaults. */
static Datum
signals_jsonb(const SbxSignals *signals)
{
	JsonbParseState *state = NULL;
	JsonbValue available = {.type = jbvBool};

	available.val.boolean = signals->available;
	pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	push_number(&state, "estimatedCost", signals->estimated_cost);
	push_number(&state, "coldStartLatencyMs", signals->cold_start_latency_ms);
	push_number(&state, "readyLatencyMs", signals->ready_latency_ms);
	push_number(&state, "completionWithinBudgetRate", signals->completion_rate);
	push_pair(&state, "available", &available);
	return JsonbPGetDatum(
	    JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL)));
}

/* Why an eligible pool has its place; ties are settled by id. */
static char *
reason_for_place(const SbxPlan *plan, const SbxVerdict *verdict)
{
	const char *strategy = sbx_strategy_names[plan->request->strategy];
	const SbxVerdict *best = &plan->verdicts[0];

	if (plan->eligible == 1)
		return pstrdup("the only eligible provider");
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
	StringInfoData words;
	ListCell *cell;

	if (sbx_verdict_eligible(verdict))
		return reason_for_place(plan, verdict);
	initStringInfo(&words);
	foreach (cell, verdict->rejections)
	{
		if (words.len > 0)
			appendStringInfoString(&words, "; ");
		appendStringInfoString(&words, sbx_plan_describe(plan, verdict, lfirst(cell)));
	}
	return words.data;
}

static void
explain_row(const SbxPlan *plan, const SbxVerdict *verdict, ReturnSetInfo *result)
{
	bool eligible = sbx_verdict_eligible(verdict);
	Datum values[EXPLAIN_COLUMNS] = {0};
	bool nulls[EXPLAIN_COLUMNS] = {false};

	values[0] = Int32GetDatum(verdict->position);
	nulls[0] = !eligible;
	values[1] = CStringGetTextDatum(verdict->pool->id);
	values[2] = BoolGetDatum(eligible);
	values[3] = rejections_array(verdict);
	values[4] = Float8GetDatum(verdict->score);
	values[5] = Float8GetDatum(verdict->cost_part);
	values[6] = Float8GetDatum(verdict->latency_part);
	values[7] = Float8GetDatum(verdict->reliability_part);
	for (int i = 4; i <= 7; i++)
		nulls[i] = !eligible;
	values[8] = signals_jsonb(&verdict->pool->signals);
	nulls[9] = true; /* capacity: not read */
	values[10] = CStringGetTextDatum(reason(plan, verdict));
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * sbx_route_explain(request jsonb, policy text, detached boolean,
 *					 read_capacity boolean) returns setof record
 *		One row per registered pool: eligible ones first by position, then the
 *		rejected by id.  No network.
 */
PG_FUNCTION_INFO_V1(sbx_route_explain);
Datum
sbx_route_explain(PG_FUNCTION_ARGS)
{
	SbxPlan *plan;
	SbxCall call;

	sbx_session_begin(&call);
	if (!PG_ARGISNULL(2) && PG_GETARG_BOOL(2))
		sbx_error_not_built("detached");
	if (!PG_ARGISNULL(3) && PG_GETARG_BOOL(3))
		sbx_error_not_built("read_capacity");
	plan = sbx_plan_make(request_argument(fcinfo, 0), text_argument(fcinfo, 1));
	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < plan->count; i++)
		explain_row(plan, &plan->verdicts[i], (ReturnSetInfo *) fcinfo->resultinfo);
	sbx_session_end(&call);
	return (Datum) 0;
}
