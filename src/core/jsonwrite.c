/*
 * jsonwrite.c
 *		Building jsonb documents member by member.
 */
#include "core/jsonwrite.h"

#include <math.h>

#include "common/shortest_dec.h"
#include "utils/builtins.h"

static void
push_string(JsonbParseState **state, JsonbIteratorToken token, const char *string)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, string);
	value.val.string.len = strlen(string);
	pushJsonbValue(state, token, &value);
}

static void
push_key(JsonbParseState **state, const char *key)
{
	if (key != NULL)
		push_string(state, WJB_KEY, key);
}

void
sbx_push_begin(JsonbParseState **state, const char *key)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
}

void
sbx_push_end(JsonbParseState **state)
{
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

void
sbx_push_begin_array(JsonbParseState **state, const char *key)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
}

void
sbx_push_end_array(JsonbParseState **state)
{
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

void
sbx_push_text(JsonbParseState **state, const char *key, const char *string)
{
	if (string == NULL)
		return;
	push_key(state, key);
	push_string(state, WJB_VALUE, string);
}

void
sbx_push_texts(JsonbParseState **state, const char *key, char *const *strings,
               int count)
{
	sbx_push_begin_array(state, key);
	for (int i = 0; i < count; i++)
		push_string(state, WJB_ELEM, strings[i]);
	sbx_push_end_array(state);
}

void
sbx_push_numeric(JsonbParseState **state, const char *key, Numeric number)
{
	JsonbValue value = {.type = jbvNumeric};

	value.val.numeric = number;
	sbx_push_value(state, key, &value);
}

void
sbx_push_int64(JsonbParseState **state, const char *key, int64 number)
{
	sbx_push_numeric(
	    state, key,
	    DatumGetNumeric(DirectFunctionCall1(int8_numeric, Int64GetDatum(number))));
}

/* The plain cast keeps 15 digits only. */
Numeric
sbx_double_numeric(double number)
{
	char digits[DOUBLE_SHORTEST_DECIMAL_LEN];

	Assert(isfinite(number));
	(void) double_to_shortest_decimal_buf(number, digits);
	return DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(digits),
	                                           ObjectIdGetDatum(InvalidOid),
	                                           Int32GetDatum(-1)));
}

void
sbx_push_double(JsonbParseState **state, const char *key, double number)
{
	sbx_push_numeric(state, key, sbx_double_numeric(number));
}

void
sbx_push_bool(JsonbParseState **state, const char *key, bool boolean)
{
	JsonbValue value = {.type = jbvBool};

	value.val.boolean = boolean;
	sbx_push_value(state, key, &value);
}

void
sbx_push_value(JsonbParseState **state, const char *key, const JsonbValue *value)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_VALUE, unconstify(JsonbValue *, value));
}

void
sbx_push_jsonb(JsonbParseState **state, const char *key, Jsonb *jsonb)
{
	JsonbValue value;

	JsonbToJsonbValue(jsonb, &value);
	sbx_push_value(state, key, &value);
}

Jsonb *
sbx_push_finish(JsonbParseState **state)
{
	return JsonbValueToJsonb(pushJsonbValue(state, WJB_END_OBJECT, NULL));
}
