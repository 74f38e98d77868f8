/*
 * classify.c
 *		What a failed launch means: the answer of a classifier, and the one we ship.
 */
#include "core/classify.h"

#include "core/jsonlook.h"

bool
sbx_is_code(const char *text, int length)
{
	if (length < 1 || length > SBX_MAX_CODE || text[0] < 'A' || text[0] > 'Z')
		return false;
	for (int i = 1; i < length; i++)
	{
		if (!((text[i] >= 'A' && text[i] <= 'Z') ||
		      (text[i] >= '0' && text[i] <= '9') || text[i] == '_'))
			return false;
	}
	return true;
}

static void
set(SbxClassification *classification, const char *code, bool retryable)
{
	strlcpy(classification->code, code, sizeof(classification->code));
	classification->retryable = retryable;
}

/* The code at a key, where there is one that is well formed. */
static void
set_code_from(JsonbContainer *object, const char *key,
              SbxClassification *classification)
{
	JsonbValue value;

	sbx_look_member(object, key, &value);
	if (value.type != jbvString ||
	    !sbx_is_code(value.val.string.val, value.val.string.len))
		return;

	/* Nothing ends it: strlcpy() would read on to measure it. */
	memcpy(classification->code, value.val.string.val, value.val.string.len);
	classification->code[value.val.string.len] = '\0';
}

void
sbx_classification_read(Jsonb *answer, SbxClassification *classification)
{
	JsonbContainer *object = sbx_look_root(answer);
	JsonbValue value;

	set(classification, SBX_CODE_OUTCOME_UNKNOWN, false);
	set_code_from(object, "code", classification);
	sbx_look_member(object, "retryable", &value);
	classification->retryable = value.type == jbvBool && value.val.boolean;
}

static bool
is_text(JsonbContainer *object, const char *key, const char *text)
{
	JsonbValue value;

	sbx_look_member(object, key, &value);
	return sbx_look_is_text(&value, text);
}

void
sbx_classify_proven(Jsonb *document, SbxClassification *classification)
{
	JsonbContainer *failure = sbx_look_root(document);
	JsonbValue sent;

	set(classification, SBX_CODE_OUTCOME_UNKNOWN, false);

	/* A failure without these facts proves nothing. */
	sbx_look_member(failure, "requestSent", &sent);
	if (!is_text(failure, "allocation", "none") || sent.type != jbvBool)
		return;
	if (is_text(failure, "providerCode", "CAPACITY"))
		set(classification, "PROVIDER_CAPACITY_PRE_ALLOCATION", true);
	else if (!sent.val.boolean)
		set(classification, "PROVIDER_UNREACHABLE", true);
	else
		set_code_from(failure, "providerCode", classification);
}
