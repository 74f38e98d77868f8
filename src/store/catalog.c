/*
 * catalog.c
 *		The extension's own objects, and fixed statements on its tables.
 */
#include "store/catalog.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_proc.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* Where the extension is; looked up once, until something is invalidated. */
static struct
{
	bool valid;
	Oid owner;
	Oid schema_oid;
	Oid mapping_relid;
	char schema[NAMEDATALEN * 2 + 3]; /* quoted */
	uint64 generation;                /* changes with every look-up */
} catalog;

/* DROP EXTENSION drops the table; its invalidation is ours. */
static void
relation_changed(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == catalog.mapping_relid)
		catalog.valid = false;
}

/* ALTER SCHEMA ... RENAME changes no relation. */
static void
schema_changed(Datum arg, int cache, uint32 hash)
{
	catalog.valid = false;
}

static void report_missing(void) pg_attribute_noreturn();

static void
report_missing(void)
{
	ereport(ERROR,
	        (errcode(ERRCODE_UNDEFINED_OBJECT),
	         errmsg("extension \"%s\" is not installed in this database", "sbx_router"),
	         errhint("Use CREATE EXTENSION to install it.")));
}

static void
find_extension(Oid *schema, Oid *owner)
{
	Relation extensions = table_open(ExtensionRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;

	ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ,
	            CStringGetDatum("sbx_router"));
	scan = systable_beginscan(extensions, ExtensionNameIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		report_missing();
	*schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	*owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(extensions, AccessShareLock);
}

/*
 * Look up again after an invalidation, of which most have nothing to do with us (any
 * new schema is one).  Plans stay as long as their text does: one may be executing
 * right now, further up the stack.
 */
static void
look_up(void)
{
	Oid schema;
	char *name;
	char quoted[sizeof(catalog.schema)];

	find_extension(&schema, &catalog.owner);
	name = get_namespace_name(schema);
	if (name == NULL)
		report_missing();
	strlcpy(quoted, quote_identifier(name), sizeof(quoted));
	if (strcmp(quoted, catalog.schema) != 0)
		catalog.generation++;
	strlcpy(catalog.schema, quoted, sizeof(catalog.schema));
	catalog.schema_oid = schema;
	catalog.mapping_relid = get_relname_relid("sbx_mapping", schema);
}

static void
ensure_catalog(void)
{
	static bool registered = false;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, schema_changed, (Datum) 0);
		registered = true;
	}
	AcceptInvalidationMessages();

	/* The look-up reads messages itself: what changes meanwhile clears the flag. */
	while (!catalog.valid)
	{
		catalog.valid = true;
		PG_TRY();
		{
			look_up();
		}
		PG_CATCH();
		{
			catalog.valid = false;
			PG_RE_THROW();
		}
		PG_END_TRY();
	}
}

Oid
sbx_catalog_relation(const char *name)
{
	ensure_catalog();
	return get_relname_relid(name, catalog.schema_oid);
}

bool
sbx_catalog_is_own(Oid relid, const char *name)
{
	return sbx_catalog_relation(name) == relid;
}

char *
sbx_catalog_extension_version(void)
{
	static SbxStatement select_version = {
	    "SELECT extversion FROM pg_catalog.pg_extension"
	    " WHERE extname OPERATOR(pg_catalog.=) 'sbx_router'"};
	SbxCatalogScope scope;
	char *version;

	sbx_catalog_begin(&scope);
	if (sbx_catalog_execute(&select_version, NULL, NULL) != SPI_OK_SELECT ||
	    SPI_processed != 1)
		report_missing();
	version = sbx_catalog_text(&scope, 0, 1);
	sbx_catalog_end(&scope);
	return version;
}

void
sbx_catalog_begin(SbxCatalogScope *scope)
{
	ensure_catalog();
	scope->caller_context = CurrentMemoryContext;
	GetUserIdAndSecContext(&scope->user, &scope->security_context);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");

	/* NOFORCE_RLS: the owner manages everybody's rows, superuser or not. */
	SetUserIdAndSecContext(catalog.owner, scope->security_context |
	                                          SECURITY_LOCAL_USERID_CHANGE |
	                                          SECURITY_NOFORCE_RLS);
	scope->guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET,
	                         PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * A trigger runs as whoever writes the row, and our writer is the owner of the
 * extension.  A role that has nothing but TRIGGER on the table (GRANT ALL includes it)
 * must not get the owner's rights that way.  So only plain triggers are accepted: a
 * function that a superuser answers for, without a WHEN condition or arguments, which
 * are the trigger's creator's.
 */
static bool
is_trusted(const Trigger *trigger)
{
	HeapTuple tuple;
	Oid owner;

	if (trigger->tgqual != NULL || trigger->tgnargs > 0)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(trigger->tgfoid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", trigger->tgfoid);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return owner == catalog.owner || superuser_arg(owner);
}

void
sbx_catalog_refuse_triggers(Relation relation)
{
	TriggerDesc *triggers = relation->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];

		if (trigger->tgisinternal || trigger->tgenabled == TRIGGER_DISABLED ||
		    is_trusted(trigger))
			continue;
		ereport(
		    ERROR,
		    (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
		     errmsg("trigger \"%s\" on table \"%s\" is not trusted", trigger->tgname,
		            RelationGetRelationName(relation)),
		     errdetail("It would run with the rights of the owner of the extension."),
		     errhint("Use a trigger without WHEN and arguments, whose function a "
		             "superuser owns.")));
	}
}

void
sbx_catalog_begin_write(SbxCatalogScope *scope, const char *table)
{
	Relation relation;

	ensure_catalog();

	/* Locked first: CREATE TRIGGER cannot come in between. */
	relation =
	    table_open(get_relname_relid(table, catalog.schema_oid), RowExclusiveLock);
	sbx_catalog_refuse_triggers(relation);
	table_close(relation, NoLock);
	sbx_catalog_begin(scope);
}

void
sbx_catalog_end(SbxCatalogScope *scope)
{
	AtEOXact_GUC(false, scope->guc_level);
	SetUserIdAndSecContext(scope->user, scope->security_context);
	SPI_finish();
	MemoryContextSwitchTo(scope->caller_context);
}

static SPIPlanPtr
kept_plan(SbxStatement *statement)
{
	char *sql;

	if (statement->plan != NULL && statement->generation == catalog.generation)
		return statement->plan;

	/*
	 * The schema has another name now.  The old plan may be executing, so it is left:
	 * some kilobytes for each time that somebody renames the schema.
	 */
	sql = psprintf(statement->text, catalog.schema);
	statement->plan = SPI_prepare(sql, statement->arg_count, statement->arg_types);
	if (statement->plan == NULL)
		elog(ERROR, "SPI_prepare failed: %s", SPI_result_code_string(SPI_result));
	SPI_keepplan(statement->plan);
	statement->generation = catalog.generation;
	return statement->plan;
}

static int
checked(int code)
{
	if (code < 0)
		elog(ERROR, "SPI failed: %s", SPI_result_code_string(code));
	return code;
}

void
sbx_catalog_forget_empty_plan(SbxStatement *statement)
{
	ListCell *cell;

	foreach (cell, SPI_plan_get_plan_sources(statement->plan))
	{
		const CachedPlanSource *source = lfirst(cell);

		if (source->query_list == NIL)
		{
			statement->plan = NULL;
			return;
		}
	}
}

int
sbx_catalog_execute(SbxStatement *statement, Datum *values, const char *nulls)
{
	return checked(SPI_execute_plan(kept_plan(statement), values, nulls, false, 0));
}

int
sbx_catalog_execute_latest(SbxStatement *statement, Datum *values, const char *nulls)
{
	return checked(SPI_execute_snapshot(kept_plan(statement), values, nulls,
	                                    GetLatestSnapshot(), InvalidSnapshot, true,
	                                    true, 0));
}

Datum
sbx_catalog_datum(SbxCatalogScope *scope, int row, int column, bool *is_null)
{
	TupleDesc descriptor = SPI_tuptable->tupdesc;
	Form_pg_attribute attribute = TupleDescAttr(descriptor, column - 1);
	MemoryContext spi_context;
	Datum value;

	value = SPI_getbinval(SPI_tuptable->vals[row], descriptor, column, is_null);
	if (*is_null)
		return (Datum) 0;
	spi_context = MemoryContextSwitchTo(scope->caller_context);

	/* Detoasted, so that callers can look at jsonb and text directly. */
	if (attribute->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, attribute->attbyval, attribute->attlen);
	MemoryContextSwitchTo(spi_context);
	return value;
}

char *
sbx_catalog_text(SbxCatalogScope *scope, int row, int column)
{
	MemoryContext spi_context;
	char *value;
	char *copy = NULL;

	value = SPI_getvalue(SPI_tuptable->vals[row], SPI_tuptable->tupdesc, column);
	spi_context = MemoryContextSwitchTo(scope->caller_context);
	if (value != NULL)
		copy = pstrdup(value);
	MemoryContextSwitchTo(spi_context);
	return copy;
}
