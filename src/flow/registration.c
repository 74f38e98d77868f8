/*
 * registration.c
 *		Provider registrations from SQL, and the check that every row passes.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/jsonlook.h"
#include "flow/rows.h"
#include "flow/seam.h"
#include "flow/session.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "store/catalog.h"
#include "store/registry.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/json.h"
#include "utils/jsonb.h"

#define READER_PATH "provider.capacity.reader"

static char *
required_text(FunctionCallInfo fcinfo, int n, const char *path)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_PROVIDER, path, SBX_REASON_MISSING, NULL);
	return text_to_cstring(PG_GETARG_TEXT_PP(n));
}

static Jsonb *
optional_jsonb(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_JSONB_P(n);
}

static Jsonb *
empty_object(void)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
}

/*
 * As a row is checked: what the role that answers for it may do now.  A dump may not have
 * all of it yet.
 */
static void
check_reader(const SbxProvider *provider, bool restoring)
{
	if (provider->capacity.reader != NULL)
		sbx_seam_check(SBX_DOCUMENT_PROVIDER, READER_PATH, provider->capacity.reader,
		               TEXTOID, provider->registered_by, restoring);
}

static void
check_written(const SbxProvider *provider)
{
	sbx_registry_check_written(provider);
	check_reader(provider, false);
}

/*
 * sbx_register_provider(id text, kind text, settings, capabilities, signals,
 *						 capacity jsonb) returns void
 *		Errors: SB013 naming the path, 42501 for an endpoint override by a role
 *		that is not superuser.
 */
PG_FUNCTION_INFO_V1(sbx_register_provider);
Datum
sbx_register_provider(PG_FUNCTION_ARGS)
{
	SbxRegistration registration = {0};
	SbxProvider provider;

	sbx_rows_refuse_write("sbx_register_provider()");
	registration.id = required_text(fcinfo, 0, "provider.id");
	registration.kind = required_text(fcinfo, 1, "provider.kind");
	registration.enabled = true;
	registration.settings = PG_ARGISNULL(2) ? empty_object() : PG_GETARG_JSONB_P(2);
	registration.capabilities = optional_jsonb(fcinfo, 3);
	registration.signals = optional_jsonb(fcinfo, 4);
	registration.capacity = optional_jsonb(fcinfo, 5);
	registration.registered_by = GetUserId();

	/* The row's trigger checks again; here the error has no context of ours. */
	sbx_registry_parse(&registration, sbx_declared_create(CurrentMemoryContext),
	                   &provider);
	check_written(&provider);
	sbx_registry_insert(&registration);
	PG_RETURN_VOID();
}

static SbxRegistration *
existing(const char *id)
{
	SbxRegistration *registration = sbx_registry_read_for_update(id);

	if (registration == NULL)
		sbx_error_document(SBX_DOCUMENT_PROVIDER, "provider.id",
		                   SBX_REASON_UNKNOWN_NAME,
		                   _("Use sbx_register_provider() to register it first."));
	return registration;
}

/*
 * sbx_update_provider(id text, enabled boolean, settings, capabilities, signals,
 *					   capacity jsonb) returns void
 *		NULL leaves a part as it is; a document replaces the whole.  The caller
 *		becomes the role that answers for the registration; to take over one with a
 *		reader he has to give its capacity.
 */
PG_FUNCTION_INFO_V1(sbx_update_provider);
Datum
sbx_update_provider(PG_FUNCTION_ARGS)
{
	SbxRegistration *registration;
	SbxProvider provider;

	sbx_rows_refuse_write("sbx_update_provider()");
	registration = existing(required_text(fcinfo, 0, "provider.id"));
	if (!PG_ARGISNULL(1))
		registration->enabled = PG_GETARG_BOOL(1);
	if (!PG_ARGISNULL(2))
		registration->settings = PG_GETARG_JSONB_P(2);
	if (!PG_ARGISNULL(3))
		registration->capabilities = PG_GETARG_JSONB_P(3);
	if (!PG_ARGISNULL(4))
		registration->signals = PG_GETARG_JSONB_P(4);
	if (!PG_ARGISNULL(5))
		registration->capacity = PG_GETARG_JSONB_P(5);
	sbx_registry_parse(registration, sbx_declared_create(CurrentMemoryContext),
	                   &provider);
	if (PG_ARGISNULL(5))
		sbx_seam_refuse_lent(SBX_DOCUMENT_PROVIDER, READER_PATH,
		                     provider.capacity.reader, GetUserId(),
		                     provider.capacity.reader, registration->registered_by);
	registration->registered_by = provider.registered_by = GetUserId();
	check_written(&provider);
	sbx_registry_update(registration);
	PG_RETURN_VOID();
}

/*
 * sbx_unregister_provider(id text) returns void
 *		Errors: SB013 when there is none, or while it has sandboxes.
 */
PG_FUNCTION_INFO_V1(sbx_unregister_provider);
Datum
sbx_unregister_provider(PG_FUNCTION_ARGS)
{
	char *id = text_to_cstring(PG_GETARG_TEXT_PP(0));

	sbx_rows_refuse_write("sbx_unregister_provider()");
	if (!sbx_registry_delete(id))
		(void) existing(id);

	/* Not for whatever is registered under this id next. */
	sbx_credential_clear(id);
	PG_RETURN_VOID();
}

/* --- the trigger ---------------------------------------------------------------- */

/* The reader that a document of a row names; a row that was valid once. */
static char *
reader_of(Jsonb *capacity)
{
	JsonbValue reader;

	sbx_look_member(sbx_look_root(capacity), "reader", &reader);
	return sbx_look_text(&reader);
}

static void
refuse_lent_reader(const SbxRow *row, const SbxProvider *provider)
{
	SbxRow former;
	bool is_null;

	if (sbx_rows_former(row, &former))
		sbx_seam_refuse_lent(
		    SBX_DOCUMENT_PROVIDER, READER_PATH, provider->capacity.reader,
		    provider->registered_by, reader_of(sbx_rows_jsonb(&former, "capacity")),
		    DatumGetObjectId(sbx_rows_column(&former, "registered_by", &is_null)));
}

/*
 * sbx_provider_check() returns trigger
 *		However a row is written, it passes the same checks as through the
 *		functions.
 */
PG_FUNCTION_INFO_V1(sbx_provider_check);
Datum
sbx_provider_check(PG_FUNCTION_ARGS)
{
	SbxRow row = {.document = SBX_DOCUMENT_PROVIDER, .path = "provider"};
	SbxRegistration registration = {0};
	SbxProvider provider;
	bool is_null;

	sbx_rows_open(fcinfo, "sbx_provider", "sbx_provider_check", &row);

	/* Already now: another AFTER trigger may come before ours and ask for routes. */
	CacheInvalidateRelcache(((TriggerData *) fcinfo->context)->tg_relation);
	registration.id = sbx_rows_required_text(&row, "id");
	registration.kind = sbx_rows_required_text(&row, "kind");
	registration.enabled = DatumGetBool(sbx_rows_column(&row, "enabled", &is_null));
	registration.settings = sbx_rows_jsonb(&row, "settings");
	if (registration.settings == NULL)
		sbx_error_document(SBX_DOCUMENT_PROVIDER, "provider.settings",
		                   SBX_REASON_MISSING, NULL);
	registration.capabilities = sbx_rows_jsonb(&row, "capabilities");
	registration.signals = sbx_rows_jsonb(&row, "signals");
	registration.capacity = sbx_rows_jsonb(&row, "capacity");
	registration.registered_by = sbx_rows_settle_registrar(&row);
	sbx_registry_parse(&registration, sbx_declared_create(CurrentMemoryContext),
	                   &provider);

	/*
	 * A superuser may write what no longer counts: a dump has to be restorable, and
	 * such a pool can be switched off.  It is refused where it is used.
	 */
	if (!superuser())
	{
		refuse_lent_reader(&row, &provider);
		check_written(&provider);
	}
	else
		check_reader(&provider, true);
	return PointerGetDatum(row.tuple);
}

/*
 * sbx_provider_changed() returns trigger
 *		Tells every backend that a registration changed.  A row trigger that always
 *		fires, because statement triggers do not in a logical replication worker.
 */
PG_FUNCTION_INFO_V1(sbx_provider_changed);
Datum
sbx_provider_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_AFTER(trigger->tg_event) ||
	    !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
	    !sbx_catalog_is_own(RelationGetRelid(trigger->tg_relation), "sbx_provider"))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		                errmsg("function \"%s\" can only be used by its own trigger",
		                       "sbx_provider_changed")));
	CacheInvalidateRelcache(trigger->tg_relation);
	return PointerGetDatum(NULL);
}

/* --- sbx_provider_kinds ----------------------------------------------------------- */

static const char *
type_name(SbxFieldType type)
{
	switch (type)
	{
		case SBX_FIELD_TEXT:
		case SBX_FIELD_WORD:
			return "text";
		case SBX_FIELD_HOST:
			return "host";
		case SBX_FIELD_URL:
			return "url";
		case SBX_FIELD_INTEGER:
			return "integer";
		case SBX_FIELD_BOOLEAN:
			return "boolean";
	}
	return NULL;
}

/* {"apiKey":{"type":"text","required":true,"description":"..."},...} */
static Datum
fields_jsonb(const SbxField *fields)
{
	StringInfoData json;

	sbx_detail_open(&json);
	for (int i = 0; fields[i].name != NULL; i++)
	{
		StringInfoData field;

		sbx_detail_open(&field);
		sbx_detail_text(&field, "type", type_name(fields[i].type));
		sbx_detail_raw(&field, "required", fields[i].required ? "true" : "false");
		if (fields[i].needs_superuser)
			sbx_detail_raw(&field, "superuser", "true");
		if (fields[i].type == SBX_FIELD_INTEGER)
		{
			sbx_detail_raw(&field, "minimum",
			               psprintf(INT64_FORMAT, (int64) fields[i].minimum));
			sbx_detail_raw(&field, "maximum",
			               psprintf(INT64_FORMAT, (int64) fields[i].maximum));
		}
		sbx_detail_text(&field, "description", fields[i].description);
		sbx_detail_raw(&json, fields[i].name, sbx_detail_close(&field));
	}
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(sbx_detail_close(&json)));
}

static Datum
operations_array(const SbxProviderKind *kind)
{
	Datum names[SBX_MAX_KEYS];
	int count = 0;

	while (count < SBX_MAX_KEYS && kind->operations[count] != NULL)
	{
		names[count] = CStringGetTextDatum(kind->operations[count]);
		count++;
	}
	return PointerGetDatum(
	    construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/*
 * sbx_provider_kinds() returns setof (kind, operations, settings, credential)
 *		Straight from the declarations of the adapters.
 */
PG_FUNCTION_INFO_V1(sbx_provider_kinds_sql);
Datum
sbx_provider_kinds_sql(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;

	InitMaterializedSRF(fcinfo, 0);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	for (int i = 0; sbx_provider_kinds[i] != NULL; i++)
	{
		const SbxProviderKind *kind = sbx_provider_kinds[i];
		bool nulls[4] = {false};
		Datum values[4];

		values[0] = CStringGetTextDatum(kind->name);
		values[1] = operations_array(kind);
		values[2] = fields_jsonb(kind->settings);
		values[3] = fields_jsonb(kind->credentials);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
