/*
 * policy.c
 *		sbx_policy rows: what a caller can plug into routing, by name.
 */
#include "store/policy.h"

#include "catalog/pg_type.h"
#include "core/isotime.h"
#include "observe/error.h"
#include "store/catalog.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#define POLICY SBX_DOCUMENT_POLICY

static char *default_policy = NULL;

static SbxStatement select_one = {
    "SELECT name, provider_order, capacity_timeout, request_defaults, classifier,"
    " registered_by FROM %1$s.sbx_policy WHERE name OPERATOR(pg_catalog.=) $1",
    1,
    {TEXTOID}};

static SbxStatement select_names = {"SELECT name FROM %1$s.sbx_policy ORDER BY name"};

/* The whole row: what is not given is not kept. */
static SbxStatement write_row = {
    "INSERT INTO %1$s.sbx_policy (name, provider_order, capacity_timeout,"
    " request_defaults, classifier, registered_by)"
    " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO UPDATE SET"
    " provider_order = excluded.provider_order,"
    " capacity_timeout = excluded.capacity_timeout,"
    " request_defaults = excluded.request_defaults,"
    " classifier = excluded.classifier,"
    " signals_resolver = excluded.signals_resolver,"
    " readiness = excluded.readiness,"
    " observer = excluded.observer,"
    " registered_by = excluded.registered_by",
    6,
    {TEXTOID, TEXTARRAYOID, INTERVALOID, JSONBOID, TEXTOID, REGROLEOID}};

static SbxStatement delete_row = {
    "DELETE FROM %1$s.sbx_policy WHERE name OPERATOR(pg_catalog.=) $1", 1, {TEXTOID}};

void
sbx_policy_define_gucs(void)
{
	DefineCustomStringVariable(
	    "sbx_router.policy", "Policy of calls that name no policy themselves.",
	    "Empty means none.", &default_policy, "", PGC_USERSET, 0, NULL, NULL, NULL);
}

/* --- reading ---------------------------------------------------------------- */

/* A value that is passed by reference; NULL for SQL NULL. */
static void *
read_pointer(SbxCatalogScope *scope, int column)
{
	bool is_null;
	Datum value = sbx_catalog_datum(scope, 0, column, &is_null);

	return is_null ? NULL : DatumGetPointer(value);
}

static SbxPolicy *
read_row(SbxCatalogScope *scope)
{
	SbxPolicy *policy = MemoryContextAlloc(scope->caller_context, sizeof(SbxPolicy));
	bool is_null;

	policy->name = sbx_catalog_text(scope, 0, 1);
	policy->provider_order = read_pointer(scope, 2);
	policy->capacity_timeout = read_pointer(scope, 3);
	policy->request_defaults = read_pointer(scope, 4);
	policy->classifier = sbx_catalog_text(scope, 0, 5);
	policy->registered_by = DatumGetObjectId(sbx_catalog_datum(scope, 0, 6, &is_null));
	return policy;
}

static SbxPolicy *
find(const char *name)
{
	Datum value = CStringGetTextDatum(name);
	SbxPolicy *policy = NULL;
	SbxCatalogScope scope;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute_latest(&select_one, &value, NULL);
	if (SPI_processed > 0)
		policy = read_row(&scope);
	sbx_catalog_end(&scope);
	return policy;
}

/* "Perhaps you meant ...", or NULL. */
static char *
nearest_hint(const char *name)
{
	SbxCatalogScope scope;
	const char **names;
	int count;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute_latest(&select_names, NULL, NULL);
	count = (int) SPI_processed;
	names = MemoryContextAlloc(scope.caller_context, sizeof(char *) * (count + 1));
	for (int i = 0; i < count; i++)
		names[i] = sbx_catalog_text(&scope, i, 1);
	sbx_catalog_end(&scope);
	return sbx_error_nearest_hint(name, names, count);
}

SbxPolicy *
sbx_policy_resolve(const char *argument)
{
	bool by_setting = argument == NULL;
	const char *name = by_setting ? default_policy : argument;
	SbxPolicy *policy;
	char *hint;

	if (name == NULL || (by_setting && *name == '\0'))
		return NULL;
	policy = find(name);
	if (policy != NULL)
		return policy;
	hint = nearest_hint(name);
	if (hint == NULL)
		hint = _("Use sbx_set_policy() to make a policy.");
	if (by_setting)
		hint = psprintf(_("The setting \"sbx_router.policy\" names it.  %s"), hint);
	sbx_error_document(POLICY, "policy", SBX_REASON_UNKNOWN_NAME, hint);
}

char **
sbx_policy_order(const SbxPolicy *policy, int *count)
{
	Datum *elements;
	char **ids;

	*count = 0;
	if (policy == NULL || policy->provider_order == NULL)
		return NULL;
	deconstruct_array(policy->provider_order, TEXTOID, -1, false, TYPALIGN_INT,
	                  &elements, NULL, count);
	ids = palloc(sizeof(char *) * (*count + 1));
	for (int i = 0; i < *count; i++)
		ids[i] = TextDatumGetCString(elements[i]);
	return ids;
}

int64
sbx_policy_capacity_ms(const SbxPolicy *policy)
{
	int64 ms;

	if (policy == NULL || policy->capacity_timeout == NULL ||
	    !sbx_isotime_interval_ms(policy->capacity_timeout, &ms))
		return SBX_CAPACITY_TIMEOUT_MS;
	return ms;
}

/* --- writing ------------------------------------------------------------------ */

static void
set_pointer(Datum *values, char *nulls, int i, const void *pointer)
{
	values[i] = PointerGetDatum(pointer);
	nulls[i] = pointer == NULL ? 'n' : ' ';
}

void
sbx_policy_write(const SbxPolicy *policy)
{
	SbxCatalogScope scope;
	Datum values[6];
	char nulls[] = "      ";

	values[0] = CStringGetTextDatum(policy->name);
	set_pointer(values, nulls, 1, policy->provider_order);
	set_pointer(values, nulls, 2, policy->capacity_timeout);
	set_pointer(values, nulls, 3, policy->request_defaults);
	set_pointer(values, nulls, 4,
	            policy->classifier == NULL ? NULL
	                                       : cstring_to_text(policy->classifier));
	values[5] = ObjectIdGetDatum(policy->registered_by);

	sbx_catalog_begin_write(&scope, "sbx_policy");
	sbx_catalog_execute(&write_row, values, nulls);
	sbx_catalog_end(&scope);
}

void
sbx_policy_delete(const char *name)
{
	Datum value = CStringGetTextDatum(name);
	SbxCatalogScope scope;
	bool deleted;

	sbx_catalog_begin_write(&scope, "sbx_policy");
	sbx_catalog_execute(&delete_row, &value, NULL);
	deleted = SPI_processed > 0;
	sbx_catalog_end(&scope);
	if (!deleted)
		sbx_error_document(POLICY, "policy.name", SBX_REASON_UNKNOWN_NAME,
		                   nearest_hint(name));
}
