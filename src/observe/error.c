/*
 * error.c
 *		SQLSTATEs of class SB and the reports that go with them.
 */
#include "observe/error.h"

#include "utils/builtins.h"
#include "utils/varlena.h"
#include "utils/json.h"

typedef struct SbxReasonWords
{
	const char *token; /* in DETAIL */
	const char *words; /* after the path, in MESSAGE */
} SbxReasonWords;

/* In the order of SbxReason. */
static const SbxReasonWords reason_words[] = {
    {"unknown_key", gettext_noop("is not a known key")},
    {"wrong_type", gettext_noop("has the wrong type")},
    {"missing", gettext_noop("is required")},
    {"empty", gettext_noop("must not be empty")},
    {"control_character", gettext_noop("must not contain control characters")},
    {"duplicate", gettext_noop("names a member twice")},
    {"negative", gettext_noop("must not be negative")},
    {"not_finite", gettext_noop("must be a finite number")},
    {"not_integer", gettext_noop("must be a whole number")},
    {"out_of_range", gettext_noop("is out of range")},
    {"too_many", gettext_noop("has too many members")},
    {"too_large", gettext_noop("is too large")},
    {"too_deep", gettext_noop("is nested too deeply")},
    {"bad_format", gettext_noop("is not well formed")},
    {"unknown_name", gettext_noop("names something that is not known")},
    {"conflict", gettext_noop("contradicts another value")},
    {"reserved", gettext_noop("is reserved")},
    {"in_use", gettext_noop("is already in use")},
    {"secret", gettext_noop("must not hold a credential")},
    {"forbidden", gettext_noop("is not allowed for this role")},
};

/* Longest name compared for a hint: longer ones are no near misses of ours. */
#define SBX_HINT_MAX_LENGTH 64

void
sbx_detail_open(StringInfo detail)
{
	initStringInfo(detail);
	appendStringInfoChar(detail, '{');
}

static void
detail_key(StringInfo detail, const char *key)
{
	if (detail->data[detail->len - 1] != '{')
		appendStringInfoChar(detail, ',');
	escape_json(detail, key);
	appendStringInfoChar(detail, ':');
}

void
sbx_detail_text(StringInfo detail, const char *key, const char *value)
{
	if (value == NULL)
		return;
	detail_key(detail, key);
	escape_json(detail, value);
}

void
sbx_detail_raw(StringInfo detail, const char *key, const char *json)
{
	detail_key(detail, key);
	appendStringInfoString(detail, json);
}

char *
sbx_detail_close(StringInfo detail)
{
	appendStringInfoChar(detail, '}');
	return detail->data;
}

const char *
sbx_error_reason(SbxReason reason)
{
	Assert((size_t) reason < lengthof(reason_words));
	return reason_words[reason].token;
}

void
sbx_error_document(SbxDocument document, const char *path, SbxReason reason,
                   const char *hint)
{
	const SbxReasonWords *words = &reason_words[reason];
	StringInfoData detail;
	int code;

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "path", path);
	sbx_detail_text(&detail, "reason", sbx_error_reason(reason));
	sbx_detail_close(&detail);

	code = (document == SBX_DOCUMENT_REQUEST || document == SBX_DOCUMENT_ARGUMENT)
	           ? SBX_ERRCODE_INVALID_REQUEST
	           : SBX_ERRCODE_INVALID_REGISTRATION;

	ereport(ERROR, (errcode(code), errmsg("\"%s\" %s", path, _(words->words)),
	                errdetail_internal("%s", detail.data),
	                hint != NULL ? errhint("%s", hint) : 0));
	pg_unreachable();
}

bool
sbx_error_is_interrupt(int sqlerrcode)
{
	switch (sqlerrcode)
	{
		case ERRCODE_QUERY_CANCELED:
		case ERRCODE_ADMIN_SHUTDOWN:
		case ERRCODE_CRASH_SHUTDOWN:
		case ERRCODE_CANNOT_CONNECT_NOW:
		case ERRCODE_DATABASE_DROPPED:
		case ERRCODE_IDLE_SESSION_TIMEOUT:
			return true;
	}
	return false;
}

void
sbx_error_not_built(const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
	                errmsg("\"%s\" is not supported yet", what)));
	pg_unreachable();
}

char *
sbx_error_nearest_hint(const char *given, const char *const *names, int count)
{
	int given_length = strlen(given);
	int best_distance;
	const char *best = NULL;

	if (given_length == 0 || given_length > SBX_HINT_MAX_LENGTH)
		return NULL;

	for (int i = 0; i < count; i++)
	{
		if (pg_strcasecmp(given, names[i]) == 0)
			return psprintf(_("Perhaps you meant \"%s\"."), names[i]);
	}

	/* A third of the letters wrong is still a slip of the pen; more is not. */
	best_distance = Max(given_length / 3, 1) + 1;
	for (int i = 0; i < count; i++)
	{
		int length = strlen(names[i]);
		int distance;

		if (length > SBX_HINT_MAX_LENGTH)
			continue;
		distance = varstr_levenshtein_less_equal(given, given_length, names[i], length,
		                                         1, 1, 1, best_distance - 1, true);
		if (distance < best_distance)
		{
			best_distance = distance;
			best = names[i];
		}
	}
	return best == NULL ? NULL : psprintf(_("Perhaps you meant \"%s\"."), best);
}
