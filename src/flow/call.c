/*
 * call.c
 *		Arguments and results of the functions that people call.
 */
#include "flow/call.h"

#include "core/isotime.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

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
	int64 ms;

	if (PG_ARGISNULL(n))
		return absent;
	if (!sbx_isotime_interval_ms(PG_GETARG_INTERVAL_P(n), &ms))
		sbx_call_refuse(name, SBX_REASON_OUT_OF_RANGE);
	return ms;
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

const SbxProvider *
sbx_call_find_provider(const SbxRegistry *registry, const char *id, const char *name)
{
	int index = sbx_registry_index(registry, id);

	if (index < 0)
		sbx_error_document(SBX_DOCUMENT_PROVIDER, name, SBX_REASON_UNKNOWN_NAME,
		                   _("Use sbx_register_provider() to register it first."));
	return &registry->providers[index];
}

const SbxProvider *
sbx_call_provider(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_PROVIDER, "provider", SBX_REASON_MISSING, NULL);
	return sbx_call_find_provider(sbx_registry_get(),
	                              text_to_cstring(PG_GETARG_TEXT_PP(n)), "provider");
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
