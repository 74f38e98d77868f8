/*
 * call.c
 *		Arguments and results of the functions that people call.
 */
#include "flow/call.h"

#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* Longest time that anything here may take: a day. */
#define MAX_MS ((int64) 24 * 60 * 60 * 1000)

#define MAX_SESSION_NAME 64

/* A session of this name is the provider's own. */
#define RESERVED_SESSION_NAME "entrypoint"

void
sbx_call_refuse(const char *name, SbxReason reason)
{
	sbx_error_document(SBX_DOCUMENT_ARGUMENT, name, reason, NULL);
}

int64
sbx_call_ms(FunctionCallInfo fcinfo, int n, const char *name, int64 absent)
{
	Interval *interval;
	double ms;

	if (PG_ARGISNULL(n))
		return absent;
	interval = PG_GETARG_INTERVAL_P(n);
	ms = interval->time / 1000.0 +
	     ((double) interval->month * DAYS_PER_MONTH + interval->day) * SECS_PER_DAY *
	         1000.0;
	if (!(ms >= 1) || ms > MAX_MS)
		sbx_call_refuse(name, SBX_REASON_OUT_OF_RANGE);
	return (int64) ms;
}

char *
sbx_call_word(FunctionCallInfo fcinfo, int n, const char *name, size_t most)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
	char *value;
	size_t length;

	if (PG_ARGISNULL(n))
		return NULL;
	value = text_to_cstring(PG_GETARG_TEXT_PP(n));
	length = strlen(value);
	if (length == 0)
		sbx_call_refuse(name, SBX_REASON_EMPTY);
	if (length > most)
		sbx_call_refuse(name, SBX_REASON_TOO_LARGE);
	if (strspn(value, allowed) != length)
		sbx_call_refuse(name, SBX_REASON_BAD_FORMAT);
	return value;
}

char *
sbx_call_session_name(FunctionCallInfo fcinfo, int n, const char *name)
{
	char *value = sbx_call_word(fcinfo, n, name, MAX_SESSION_NAME);

	if (value != NULL && strcmp(value, RESERVED_SESSION_NAME) == 0)
		sbx_call_refuse(name, SBX_REASON_RESERVED);
	return value;
}

Datum
sbx_call_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(
	    heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}
