/*
 * classify.c
 *		What a failed launch means: the answer of a classifier, and the one we ship.
 */
#include "core/classify.h"

static JsonbValue *
member(Jsonb *object, const char *key, JsonbValue *found)
{
	return getKeyJsonValueFromContainer(&object->root, key, strlen(key), found);
}

/* Is it [A-Z][A-Z0-9_]{0,63} ? */
static bool
is_code(const char *text, int length)
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
set_code_from(Jsonb *object, const char *key, SbxClassification *classification)
{
	JsonbValue value;

	if (member(object, key, &value) == NULL || value.type != jbvString ||
	    !is_code(value.val.string.val, value.val.string.len))
		return;

	/* Nothing ends it: strlcpy() would read on to measure it. */
	memcpy(classification->code, value.val.string.val, value.val.string.len);
	classification->code[value.val.string.len] = '\0';
}

void
sbx_classification_read(Jsonb *answer, SbxClassification *classification)
{
	JsonbValue value;

	set(classification, SBX_CODE_OUTCOME_UNKNOWN, false);
	if (answer == NULL || !JB_ROOT_IS_OBJECT(answer))
		return;
	set_code_from(answer, "code", classification);
	classification->retryable = member(answer, "retryable", &value) != NULL &&
	                            value.type == jbvBool && value.val.boolean;
}

static bool
is_text(Jsonb *object, const char *key, const char *text)
{
	JsonbValue value;

	return member(object, key, &value) != NULL && value.type == jbvString &&
	       value.val.string.len == strlen(text) &&
	       memcmp(value.val.string.val, text, value.val.string.len) == 0;
}

void
sbx_classify_proven(Jsonb *failure, SbxClassification *classification)
{
	JsonbValue sent;

	set(classification, SBX_CODE_OUTCOME_UNKNOWN, false);

	/* A failure without these facts proves nothing. */
	if (!JB_ROOT_IS_OBJECT(failure) || !is_text(failure, "allocation", "none") ||
	    member(failure, "requestSent", &sent) == NULL || sent.type != jbvBool)
		return;
	if (is_text(failure, "providerCode", "CAPACITY"))
		set(classification, "PROVIDER_CAPACITY_PRE_ALLOCATION", true);
	else if (!sent.val.boolean)
		set(classification, "PROVIDER_UNREACHABLE", true);
	else
		set_code_from(failure, "providerCode", classification);
}
