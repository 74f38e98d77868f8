/*
 * builder.c
 *		sbx_request: a request from named arguments, for people who do not like to
 *		write JSON.
 *
 * It only builds; whoever takes the request checks it, so that there is one place for
 * each rule.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/jsonwrite.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

typedef enum ArgumentType
{
	ARGUMENT_NUMERIC,
	ARGUMENT_INT8,
	ARGUMENT_INT4,
	ARGUMENT_TEXT,
	ARGUMENT_TEXTS,
	ARGUMENT_BOOL,
	ARGUMENT_JSONB,
	ARGUMENT_MS,     /* an interval as milliseconds */
	ARGUMENT_SECONDS /* an interval as seconds */
} ArgumentType;

/* A member that an argument becomes; in the order of the request's objects. */
typedef struct Member
{
	const char *object; /* NULL = of the request itself */
	const char *inner;  /* an object inside that; NULL = none */
	const char *key;
	int argument;
	ArgumentType type;
} Member;

static const Member members[] = {
    {"resources", NULL, "cpu", 0, ARGUMENT_NUMERIC},
    {"resources", NULL, "memoryMb", 1, ARGUMENT_INT8},
    {"resources", NULL, "diskMb", 2, ARGUMENT_INT8},
    {"resources", NULL, "gpu", 3, ARGUMENT_INT8},
    {"requires", NULL, "requiredCapabilities", 4, ARGUMENT_TEXTS},
    {"requires", NULL, "forbiddenCapabilities", 5, ARGUMENT_TEXTS},
    {"requires", NULL, "isolation", 8, ARGUMENT_TEXT},
    {"requires", NULL, "egress", 9, ARGUMENT_TEXT},
    {"requires", NULL, "stateDurability", 10, ARGUMENT_TEXT},
    {"requires", NULL, "restrictions", 11, ARGUMENT_TEXTS},
    {"requires", NULL, "network", 12, ARGUMENT_JSONB},
    {"requires", "image", "identity", 6, ARGUMENT_TEXT},
    {"requires", "image", "requiredBinaries", 7, ARGUMENT_TEXTS},
    {"requires", "timeout", "semantics", 13, ARGUMENT_TEXTS},
    {"requires", "timeout", "granularityMs", 14, ARGUMENT_MS},
    {"requires", "timeout", "maxReadyLatencyMs", 15, ARGUMENT_MS},
    {"requires", "timeout", "requiredSandboxLifetimeMs", 16, ARGUMENT_MS},
    {"requires", "timeout", "completionBudgetMs", 17, ARGUMENT_MS},
    {"region", NULL, "preferred", 18, ARGUMENT_TEXTS},
    {"region", NULL, "required", 19, ARGUMENT_BOOL},
    {"routing", NULL, "strategy", 20, ARGUMENT_TEXT},
    {"routing", NULL, "latencyObjective", 21, ARGUMENT_TEXT},
    {"routing", NULL, "acquisitionFallback", 22, ARGUMENT_TEXT},
    {"routing", NULL, "maxAcquisitionAttempts", 23, ARGUMENT_INT4},
    {NULL, NULL, "providerId", 24, ARGUMENT_TEXT},
    {"launch", NULL, "name", 25, ARGUMENT_TEXT},
    {"launch", NULL, "env", 26, ARGUMENT_JSONB},
    {"launch", NULL, "labels", 27, ARGUMENT_JSONB},
    {"launch", NULL, "createTimeoutSeconds", 28, ARGUMENT_SECONDS},
    {NULL, NULL, "idempotencyKey", 29, ARGUMENT_TEXT},
};

static void
push_text_array(JsonbParseState **state, const char *key, ArrayType *array)
{
	Datum *elements;
	bool *nulls;
	int count;
	JsonbValue name = {.type = jbvString};

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
		        (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
		         errmsg("argument for \"%s\" must be a one-dimensional array", key)));
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls,
	                  &count);
	name.val.string.val = unconstify(char *, key);
	name.val.string.len = strlen(key);
	pushJsonbValue(state, WJB_KEY, &name);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue element = {.type = jbvNull};

		if (!nulls[i])
		{
			element.type = jbvString;
			element.val.string.val = TextDatumGetCString(elements[i]);
			element.val.string.len = strlen(element.val.string.val);
		}
		pushJsonbValue(state, WJB_ELEM, &element);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

/* JSON has no NaN and no infinity: as text, as to_jsonb() does; then it is refused. */
static void
push_number(JsonbParseState **state, const char *key, Numeric number)
{
	if (numeric_is_nan(number) || numeric_is_inf(number))
		sbx_push_text(
		    state, key,
		    DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number))));
	else
		sbx_push_numeric(state, key, number);
}

/* Exact, so that a fraction of a millisecond is refused instead of lost. */
static void
push_interval(JsonbParseState **state, const char *key, Datum interval, int factor)
{
	Datum seconds =
	    DirectFunctionCall2(extract_interval, CStringGetTextDatum("epoch"), interval);
	Datum scaled = DirectFunctionCall2(
	    numeric_mul, seconds, DirectFunctionCall1(int4_numeric, Int32GetDatum(factor)));

	sbx_push_numeric(state, key,
	                 DatumGetNumeric(DirectFunctionCall1(numeric_trim_scale, scaled)));
}

static void
push_argument(JsonbParseState **state, FunctionCallInfo fcinfo, const Member *member)
{
	Datum value = PG_GETARG_DATUM(member->argument);

	switch (member->type)
	{
		case ARGUMENT_NUMERIC:
			push_number(state, member->key, DatumGetNumeric(value));
			break;
		case ARGUMENT_INT8:
			sbx_push_int64(state, member->key, DatumGetInt64(value));
			break;
		case ARGUMENT_INT4:
			sbx_push_int64(state, member->key, DatumGetInt32(value));
			break;
		case ARGUMENT_TEXT:
			sbx_push_text(state, member->key, TextDatumGetCString(value));
			break;
		case ARGUMENT_TEXTS:
			push_text_array(state, member->key, DatumGetArrayTypeP(value));
			break;
		case ARGUMENT_BOOL:
			sbx_push_bool(state, member->key, DatumGetBool(value));
			break;
		case ARGUMENT_JSONB:
			sbx_push_jsonb(state, member->key, DatumGetJsonbP(value));
			break;
		case ARGUMENT_MS:
			push_interval(state, member->key, value, 1000);
			break;
		case ARGUMENT_SECONDS:
			push_interval(state, member->key, value, 1);
			break;
	}
}

/* Open or close an object when the next member is in another one than the last. */
static void
move_to(JsonbParseState **state, const char **current, const char *wanted)
{
	if (*current == wanted ||
	    (*current != NULL && wanted != NULL && strcmp(*current, wanted) == 0))
		return;
	if (*current != NULL)
		sbx_push_end(state);
	if (wanted != NULL)
		sbx_push_begin(state, wanted);
	*current = wanted;
}

/*
 * sbx_request(cpu numeric, memory_mb bigint, ...) returns jsonb
 *		One argument for each key of the request language; NULL leaves it out.
 */
PG_FUNCTION_INFO_V1(sbx_request);
Datum
sbx_request(PG_FUNCTION_ARGS)
{
	JsonbParseState *state = NULL;
	const char *object = NULL;
	const char *inner = NULL;

	sbx_push_begin(&state, NULL);
	for (size_t i = 0; i < lengthof(members); i++)
	{
		const Member *member = &members[i];

		if (PG_ARGISNULL(member->argument))
			continue;
		if (inner != NULL &&
		    (member->inner == NULL || strcmp(inner, member->inner) != 0))
			move_to(&state, &inner, NULL);
		move_to(&state, &object, member->object);
		move_to(&state, &inner, member->inner);
		push_argument(&state, fcinfo, member);
	}
	move_to(&state, &inner, NULL);
	move_to(&state, &object, NULL);
	PG_RETURN_JSONB_P(sbx_push_finish(&state));
}
