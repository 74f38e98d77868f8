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
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
		                errmsg("extension \"%s\" is not installed in this database",
		                       "sbx_router"),
		                errhint("Use CREATE EXTENSION to install it.")));
	*schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	*owner = ((Form_pg_extension) GETSTRUCT(tuple))->extowner;
	systable_endscan(scan);
	table_close(extensions, AccessShareLock);
}

static void
ensure_catalog(void)
{
	static bool registered = false;
	Oid schema;

	if (!registered)
	{
		CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
		CacheRegisterSyscacheCallback(NAMESPACEOID, schema_changed, (Datum) 0);
		registered = true;
	}
	AcceptInvalidationMessages();
	if (catalog.valid)
		return;

	find_extension(&schema, &catalog.owner);
	strlcpy(catalog.schema, quote_identifier(get_namespace_name(schema)),
	        sizeof(catalog.schema));
	catalog.schema_oid = schema;
	catalog.mapping_relid = get_relname_relid("sbx_mapping", schema);
	catalog.generation++;
	catalog.valid = true;
}

const char *
sbx_catalog_schema(void)
{
	ensure_catalog();
	return catalog.schema;
}

bool
sbx_catalog_is_own(Oid relid, const char *name)
{
	ensure_catalog();
	return get_relname_relid(name, catalog.schema_oid) == relid;
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
	if (statement->plan != NULL)
	{
		SPI_freeplan(statement->plan);
		statement->plan = NULL;
	}
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
