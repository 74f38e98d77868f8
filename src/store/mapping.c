/*
 * mapping.c
 *		sbx_mapping rows: which sandbox our id stands for, and whose it is.
 */
#include "store/mapping.h"

#include "access/table.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "core/vocabulary.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "storage/lock.h"
#include "store/catalog.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"

static SbxStatement insert_row = {
    "INSERT INTO %1$s.sbx_mapping (id, provider_id, provider_sandbox_id, name, labels,"
    " state, request, env_hash, launch_token, owner) VALUES ($1, $2, $3, $4, $5, $6,"
    " $7, pg_catalog.sha256(pg_catalog.convert_to($8::pg_catalog.text, 'UTF8')), $9,"
    " $10)",
    10,
    {TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, JSONBOID, JSONBOID, TEXTOID,
     REGROLEOID}};

static SbxStatement select_row = {
    "SELECT provider_id, provider_sandbox_id, name, labels, state, owner, created_at,"
    " launch_token"
    " FROM %1$s.sbx_mapping WHERE id OPERATOR(pg_catalog.=) $1",
    1,
    {TEXTOID}};

static SbxStatement update_row = {
    "UPDATE %1$s.sbx_mapping SET state = $2, provider_sandbox_id = $3"
    " WHERE id OPERATOR(pg_catalog.=) $1",
    3,
    {TEXTOID, TEXTOID, TEXTOID}};

/* One of each provider id, by the place where it stands in the array. */
static SbxStatement select_ids = {
    "SELECT s.place, m.id, m.owner"
    " FROM pg_catalog.unnest($2) WITH ORDINALITY AS s (id, place)"
    " JOIN %1$s.sbx_mapping m ON m.provider_sandbox_id OPERATOR(pg_catalog.=) s.id"
    " WHERE m.provider_id OPERATOR(pg_catalog.=) $1",
    2,
    {TEXTOID, TEXTARRAYOID}};

static SbxStatement delete_row = {
    "DELETE FROM %1$s.sbx_mapping WHERE id OPERATOR(pg_catalog.=) $1", 1, {TEXTOID}};

static SbxStatement select_installation = {
    "SELECT installation_id FROM %1$s.sbx_installation"};

/*
 * The lock class of sandbox ids: a fourth field that the advisory lock functions
 * of SQL cannot produce (they use 1 and 2), so that nobody can take our locks.
 */
#define SBX_LOCK_CLASS 0x5B58

bool
sbx_mapping_lock(const char *id)
{
	LOCKTAG tag;
	char half[9] = {0};
	uint32 high;
	uint32 low;

	memcpy(half, id + 4, 8);
	high = (uint32) strtoul(half, NULL, 16);
	memcpy(half, id + 12, 8);
	low = (uint32) strtoul(half, NULL, 16);
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, high, low, SBX_LOCK_CLASS);
	return LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_OK;
}

bool
sbx_mapping_exists(const char *id)
{
	Datum value = CStringGetTextDatum(id);
	SbxCatalogScope scope;
	bool found;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute_latest(&select_row, &value, NULL);
	found = SPI_processed > 0;
	sbx_catalog_end(&scope);
	return found;
}

/* False when there is no such row. */
static bool
read_row(const char *id, SbxMapping *mapping)
{
	Datum value = CStringGetTextDatum(id);
	SbxCatalogScope scope;
	bool is_null;
	bool found;

	memset(mapping, 0, sizeof(*mapping));
	sbx_catalog_begin(&scope);
	sbx_catalog_execute(&select_row, &value, NULL);
	found = SPI_processed > 0;
	if (found)
	{
		mapping->id = id;
		mapping->provider_id = sbx_catalog_text(&scope, 0, 1);
		mapping->provider_sandbox_id = sbx_catalog_text(&scope, 0, 2);
		mapping->name = sbx_catalog_text(&scope, 0, 3);
		mapping->labels = DatumGetJsonbP(sbx_catalog_datum(&scope, 0, 4, &is_null));
		mapping->state = sbx_catalog_text(&scope, 0, 5);
		mapping->owner = DatumGetObjectId(sbx_catalog_datum(&scope, 0, 6, &is_null));
		mapping->created_at =
		    DatumGetTimestampTz(sbx_catalog_datum(&scope, 0, 7, &is_null));
		mapping->launch_token = sbx_catalog_text(&scope, 0, 8);
	}
	sbx_catalog_end(&scope);
	return found;
}

/* --- recording --------------------------------------------------------------- */

static void
refuse_row(const SbxMapping *mapping, const char *detail) pg_attribute_noreturn();

static void
refuse_row(const SbxMapping *mapping, const char *detail)
{
	ereport(ERROR, (errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
	                errmsg("sandbox \"%s\" was not recorded", mapping->id),
	                errdetail(detail, "sbx_mapping")));
}

/* Is there a trigger that can change a row before it is inserted? */
static bool
may_be_changed(void)
{
	Relation relation =
	    table_open(sbx_catalog_relation("sbx_mapping"), AccessShareLock);
	bool has_trigger =
	    relation->trigdesc != NULL && relation->trigdesc->trig_insert_before_row;

	table_close(relation, NoLock);
	return has_trigger;
}

static bool
is_recorded(const SbxMapping *mapping)
{
	SbxMapping row;

	return read_row(mapping->id, &row) &&
	       strcmp(row.provider_id, mapping->provider_id) == 0 &&
	       strcmp(row.provider_sandbox_id, mapping->provider_sandbox_id) == 0;
}

void
sbx_mapping_insert(const SbxMapping *mapping)
{
	SbxCatalogScope scope;
	Datum values[10];
	uint64 rows;
	char nulls[] = "          ";

	values[0] = CStringGetTextDatum(mapping->id);
	values[1] = CStringGetTextDatum(mapping->provider_id);
	values[2] = CStringGetTextDatum(mapping->provider_sandbox_id);
	values[3] = mapping->name == NULL ? (Datum) 0 : CStringGetTextDatum(mapping->name);
	nulls[3] = mapping->name == NULL ? 'n' : ' ';
	values[4] = JsonbPGetDatum(mapping->labels);
	values[5] = CStringGetTextDatum(mapping->state);
	values[6] = JsonbPGetDatum(mapping->request);
	values[7] = mapping->env == NULL ? (Datum) 0 : JsonbPGetDatum(mapping->env);
	nulls[7] = mapping->env == NULL ? 'n' : ' ';
	values[8] = mapping->launch_token == NULL
	                ? (Datum) 0
	                : CStringGetTextDatum(mapping->launch_token);
	nulls[8] = mapping->launch_token == NULL ? 'n' : ' ';
	values[9] = ObjectIdGetDatum(mapping->owner);

	sbx_catalog_begin_write(&scope, "sbx_mapping");
	sbx_catalog_execute(&insert_row, values, nulls);
	rows = SPI_processed;
	sbx_catalog_end(&scope);

	/* The sandbox must not stay when nothing leads to it. */
	if (rows != 1)
	{
		sbx_catalog_forget_empty_plan(&insert_row);
		refuse_row(mapping, gettext_noop("A trigger or rule on table \"%s\" suppressed "
		                                 "the row."));
	}
	if (may_be_changed() && !is_recorded(mapping))
		refuse_row(mapping, gettext_noop("A trigger on table \"%s\" gave the row "
		                                 "another id."));

	/*
	 * Whatever synchronous_commit says, the client must not hear of a sandbox whose row
	 * a crash can take away.
	 */
	ForceSyncCommit();
}

SbxMapping *
sbx_mapping_get(const char *id)
{
	SbxMapping *mapping = palloc(sizeof(SbxMapping));
	StringInfoData detail;

	if (sbx_is_sandbox_id(id) && read_row(id, mapping) &&
	    has_privs_of_role(GetUserId(), mapping->owner))
		return mapping;
	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "sbxId", id);
	sbx_detail_close(&detail);
	ereport(ERROR, (errcode(SBX_ERRCODE_UNKNOWN_SANDBOX),
	                errmsg("sandbox \"%s\" does not exist", id),
	                errdetail_internal("%s", detail.data)));
}

void
sbx_mapping_update(const char *id, const char *state, const char *provider_sandbox_id)
{
	Datum values[3] = {CStringGetTextDatum(id), CStringGetTextDatum(state),
	                   CStringGetTextDatum(provider_sandbox_id)};
	SbxCatalogScope scope;

	sbx_catalog_begin_write(&scope, "sbx_mapping");
	sbx_catalog_execute(&update_row, values, NULL);

	if (SPI_processed == 0)
		sbx_catalog_forget_empty_plan(&update_row);
	sbx_catalog_end(&scope);

	/* It may be another sandbox at the provider by now. */
	ForceSyncCommit();
}

void
sbx_mapping_delete(const char *id)
{
	Datum value = CStringGetTextDatum(id);
	SbxCatalogScope scope;

	sbx_catalog_begin_write(&scope, "sbx_mapping");
	sbx_catalog_execute(&delete_row, &value, NULL);
	if (SPI_processed == 0)
		sbx_catalog_forget_empty_plan(&delete_row);
	sbx_catalog_end(&scope);
}

static Datum
text_array(const char *const *texts, int count)
{
	Datum *elements = palloc(sizeof(Datum) * (count + 1));

	for (int i = 0; i < count; i++)
		elements[i] = CStringGetTextDatum(texts[i]);
	return PointerGetDatum(
	    construct_array(elements, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Row n of select_ids. */
static void
keep_own_id(SbxCatalogScope *scope, uint64 n, const char **ids)
{
	bool is_null;
	int64 place = DatumGetInt64(sbx_catalog_datum(scope, n, 1, &is_null));
	Oid owner = DatumGetObjectId(sbx_catalog_datum(scope, n, 3, &is_null));

	if (has_privs_of_role(scope->user, owner))
		ids[place - 1] = sbx_catalog_text(scope, n, 2);
}

const char **
sbx_mapping_find(const char *provider_id, const char *const *sandbox_ids, int count)
{
	const char **ids = palloc0(sizeof(char *) * (count + 1));
	Datum values[2] = {CStringGetTextDatum(provider_id),
	                   text_array(sandbox_ids, count)};
	SbxCatalogScope scope;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute(&select_ids, values, NULL);
	for (uint64 n = 0; n < SPI_processed; n++)
	{
		CHECK_FOR_INTERRUPTS();
		keep_own_id(&scope, n, ids);
	}
	sbx_catalog_end(&scope);
	return ids;
}

/*
 * The database and cluster of now, not those stored at installation: a copy of
 * the database must not mark its sandboxes as the original's.
 */
char *
sbx_mapping_database_label(void)
{
	SbxCatalogScope scope;
	char *installation = NULL;

	sbx_catalog_begin(&scope);
	sbx_catalog_execute(&select_installation, NULL, NULL);
	if (SPI_processed > 0)
		installation = sbx_catalog_text(&scope, 0, 1);
	sbx_catalog_end(&scope);
	if (installation == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		                errmsg("table \"%s\" is empty", "sbx_installation"),
		                errhint("Recreate the extension.")));
	return psprintf("%s-%u-%016llx", installation, MyDatabaseId,
	                (unsigned long long) GetSystemIdentifier());
}
