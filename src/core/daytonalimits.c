/*
 * daytonalimits.c
 *		What an operator says that a Daytona account may use.
 *
 * Text is not read through jsonb: its input function raises, and keeps only the last one
 * of two equal keys.
 */
#include "core/daytonalimits.h"

#include <math.h>

#include "common/jsonapi.h"
#include "core/jsonlook.h"
#include "core/jsonwalk.h"
#include "core/jsonwrite.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"

const char *const sbx_provenance_names[] = {"unset", "configured", "invalid"};

#define LIMITS_PATH "limits"

/* An object of limits while its members come in. */
typedef struct Reading
{
	SbxDaytonaLimits *limits;
	bool seen[SBX_DIMENSIONS];
	SbxReason reasons[SBX_DIMENSIONS]; /* of what is invalid */
	int members;
} Reading;

static void
reset(SbxDaytonaLimits *limits)
{
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		limits->limit[i] = NAN;
		limits->provenance[i] = SBX_PROVENANCE_UNSET;
	}
	limits->defect_count = 0;
}

static void
start_reading(SbxDaytonaLimits *limits, Reading *reading)
{
	reset(limits);
	memset(reading, 0, sizeof(Reading));
	reading->limits = limits;
}

static void
add_defect(SbxDaytonaLimits *limits, const char *key, SbxReason reason)
{
	SbxDefect *defect = &limits->defects[limits->defect_count++];

	Assert(limits->defect_count <= SBX_MAX_MEMBERS);
	defect->path =
	    key == NULL ? pstrdup(LIMITS_PATH) : psprintf("%s.%s", LIMITS_PATH, key);
	defect->reason = reason;
}

/* The document is none: nothing that it may say about a dimension counts. */
static void
invalidate(SbxDaytonaLimits *limits, SbxReason reason)
{
	reset(limits);
	for (int i = 0; i < SBX_DIMENSIONS; i++)
		limits->provenance[i] = SBX_PROVENANCE_INVALID;
	add_defect(limits, NULL, reason);
}

/* --- members ------------------------------------------------------------------- */

static bool
is_limit(enum jbvType type, double number, SbxReason *reason)
{
	if (type != jbvNumeric)
		*reason = SBX_REASON_WRONG_TYPE;
	else if (!isfinite(number))
		*reason = SBX_REASON_NOT_FINITE;
	else if (number < 0)
		*reason = SBX_REASON_NEGATIVE;
	else if (number == 0)
		*reason = SBX_REASON_OUT_OF_RANGE;
	else
		return true;
	return false;
}

/* One member; number counts if the type is jbvNumeric. */
static void
take_member(Reading *reading, const char *key, enum jbvType type, double number)
{
	SbxDaytonaLimits *limits = reading->limits;
	int i = sbx_dimension_find(key);

	if (++reading->members > SBX_MAX_MEMBERS)
		return;
	if (i < 0)
	{
		add_defect(limits, key, SBX_REASON_UNKNOWN_KEY);
		return;
	}
	limits->limit[i] = NAN;
	if (reading->seen[i])
	{
		limits->provenance[i] = SBX_PROVENANCE_INVALID;
		reading->reasons[i] = SBX_REASON_DUPLICATE;
	}
	else if (is_limit(type, number, &reading->reasons[i]))
	{
		limits->limit[i] = number;
		limits->provenance[i] = SBX_PROVENANCE_CONFIGURED;
	}
	else if (type != jbvNull)
		limits->provenance[i] = SBX_PROVENANCE_INVALID;
	reading->seen[i] = true;
}

/* Unknown keys come before the faults of the known, as in every document. */
static void
finish_reading(Reading *reading)
{
	SbxDaytonaLimits *limits = reading->limits;

	if (reading->members > SBX_MAX_MEMBERS)
	{
		invalidate(limits, SBX_REASON_TOO_MANY);
		return;
	}
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (limits->provenance[i] == SBX_PROVENANCE_INVALID)
			add_defect(limits, sbx_dimension_names[i], reading->reasons[i]);
	}
}

/* --- from text ------------------------------------------------------------------ */

static JsonLexContext *
lex(const char *text, bool unescape)
{
	return sbx_json_lexer(unconstify(char *, text), strlen(text), unescape);
}

/* +1, -1: the token opens or closes a container. */
static int
token_step(const JsonLexContext *tokens)
{
	switch (tokens->token_type)
	{
		case JSON_TOKEN_OBJECT_START:
		case JSON_TOKEN_ARRAY_START:
			return 1;
		case JSON_TOKEN_OBJECT_END:
		case JSON_TOKEN_ARRAY_END:
			return -1;
		default:
			return 0;
	}
}

/* The parser recurses, and raises when it gets too deep: this is asked before. */
static bool
is_too_deep(const char *text)
{
	JsonLexContext *tokens = lex(text, false);
	int depth = 0;

	while (depth <= SBX_MAX_NESTING && json_lex(tokens) == JSON_SUCCESS &&
	       tokens->token_type != JSON_TOKEN_END)
		depth += token_step(tokens);
	return depth > SBX_MAX_NESTING;
}

/*
 * In an encoding other than UTF-8 the lexer raises for an escape of a character that the
 * encoding lacks.  No limit needs an escape.
 */
static bool
is_json(const char *text)
{
	if (GetDatabaseEncoding() != PG_UTF8 && strstr(text, "\\u") != NULL)
		return false;
	return pg_parse_json(lex(text, true), &nullSemAction) == JSON_SUCCESS;
}

static void
take_token(Reading *reading, const char *key, const JsonLexContext *tokens)
{
	if (tokens->token_type == JSON_TOKEN_NUMBER)
		take_member(reading, key, jbvNumeric, strtod(tokens->token_start, NULL));
	else if (tokens->token_type == JSON_TOKEN_NULL)
		take_member(reading, key, jbvNull, 0);
	else
		take_member(reading, key, jbvString, 0);
}

/* The members of a well-formed object, whose first token was read. */
static void
read_tokens(JsonLexContext *tokens, Reading *reading)
{
	char *key = NULL;
	int depth = 1;

	while (json_lex(tokens) == JSON_SUCCESS && tokens->token_type != JSON_TOKEN_END)
	{
		int step = token_step(tokens);

		if (depth == 1 && step >= 0)
		{
			if (tokens->token_type == JSON_TOKEN_COMMA)
				key = NULL;
			else if (key == NULL)
				key = pstrdup(tokens->strval->data);
			else if (tokens->token_type != JSON_TOKEN_COLON)
				take_token(reading, key, tokens);
		}
		depth += step;
	}
}

void
sbx_daytona_limits_parse(const char *text, SbxDaytonaLimits *limits)
{
	JsonLexContext *tokens;
	Reading reading;

	start_reading(limits, &reading);
	if (text == NULL || text[strspn(text, " \t\n\r\f\v")] == '\0')
		return;
	if (strlen(text) > SBX_MAX_DOCUMENT)
	{
		invalidate(limits, SBX_REASON_TOO_LARGE);
		return;
	}
	if (is_too_deep(text))
	{
		invalidate(limits, SBX_REASON_TOO_DEEP);
		return;
	}
	if (!is_json(text))
	{
		invalidate(limits, SBX_REASON_BAD_FORMAT);
		return;
	}
	tokens = lex(text, true);
	(void) json_lex(tokens);
	if (tokens->token_type != JSON_TOKEN_OBJECT_START)
	{
		invalidate(limits, SBX_REASON_WRONG_TYPE);
		return;
	}
	read_tokens(tokens, &reading);
	finish_reading(&reading);
}

/* --- from a document -------------------------------------------------------------- */

static void
take_value(Reading *reading, const char *key, const JsonbValue *value)
{
	double number = 0;

	if (value->type == jbvNumeric)
		number = DatumGetFloat8(DirectFunctionCall1(
		    numeric_float8_no_overflow, NumericGetDatum(value->val.numeric)));
	take_member(reading, key, value->type, number);
}

static void
read_object(JsonbContainer *object, Reading *reading)
{
	JsonbValue key;
	JsonbValue value;
	SbxWalk walk;

	sbx_walk_start(&walk, object);
	while (sbx_walk_member(&walk, &key, &value) && reading->members <= SBX_MAX_MEMBERS)
		take_value(reading, pnstrdup(key.val.string.val, key.val.string.len), &value);
	finish_reading(reading);
}

static JsonbContainer *
object_member(JsonbContainer *container, const char *key)
{
	JsonbValue value;

	sbx_look_member(container, key, &value);
	return sbx_look_object(&value);
}

/* A limit counts if it is one; an invalid one has none there, so its word is taken. */
static void
read_result(JsonbContainer *result, Reading *reading)
{
	SbxDaytonaLimits *limits = reading->limits;
	JsonbContainer *object = object_member(result, LIMITS_PATH);
	JsonbContainer *provenance = object_member(result, "provenance");
	JsonbValue value;

	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		const char *key = sbx_dimension_names[i];

		if (sbx_look_member(object, key, &value))
			take_value(reading, key, &value);
		sbx_look_member(provenance, key, &value);
		if (limits->provenance[i] == SBX_PROVENANCE_UNSET &&
		    sbx_look_is_text(&value, sbx_provenance_names[SBX_PROVENANCE_INVALID]))
			limits->provenance[i] = SBX_PROVENANCE_INVALID;
	}
}

void
sbx_daytona_limits_read(Jsonb *document, SbxDaytonaLimits *limits)
{
	Reading reading;

	start_reading(limits, &reading);
	if (document == NULL)
		return;
	if (VARSIZE_ANY_EXHDR(document) > SBX_MAX_DOCUMENT)
		invalidate(limits, SBX_REASON_TOO_LARGE);
	else if (sbx_walk_is_deeper(&document->root, SBX_MAX_NESTING))
		invalidate(limits, SBX_REASON_TOO_DEEP);
	else if (!JB_ROOT_IS_OBJECT(document))
		invalidate(limits, SBX_REASON_WRONG_TYPE);
	else if (sbx_look_member(&document->root, "provenance", &(JsonbValue){0}))
		read_result(&document->root, &reading);
	else
		read_object(&document->root, &reading);
}

/* --- as a document ------------------------------------------------------------------ */

Jsonb *
sbx_daytona_limits_document(const SbxDaytonaLimits *limits)
{
	JsonbParseState *state = NULL;

	sbx_push_begin(&state, NULL);
	sbx_push_begin(&state, LIMITS_PATH);
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (limits->provenance[i] == SBX_PROVENANCE_CONFIGURED)
			sbx_push_double(&state, sbx_dimension_names[i], limits->limit[i]);
	}
	sbx_push_end(&state);
	sbx_push_begin(&state, "provenance");
	for (int i = 0; i < SBX_DIMENSIONS; i++)
		sbx_push_text(&state, sbx_dimension_names[i],
		              sbx_provenance_names[limits->provenance[i]]);
	sbx_push_end(&state);
	sbx_push_begin_array(&state, "defects");
	for (int i = 0; i < limits->defect_count; i++)
	{
		sbx_push_begin(&state, NULL);
		sbx_push_text(&state, "path", limits->defects[i].path);
		sbx_push_text(&state, "reason", sbx_error_reason(limits->defects[i].reason));
		sbx_push_end(&state);
	}
	sbx_push_end_array(&state);
	return sbx_push_finish(&state);
}
