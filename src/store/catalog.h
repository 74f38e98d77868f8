/*
 * catalog.h
 *		The extension's own objects, and fixed statements on its tables.
 *
 * The only place that changes the current user: its statements run as the owner
 * of the extension under a safe search_path, and their text is constant.
 */
#ifndef SBX_CATALOG_H
#define SBX_CATALOG_H

#include "compat.h"

#include "executor/spi.h"
#include "utils/rel.h"

#define SBX_STATEMENT_MAX_ARGS 11

/*
 * A statement whose plan is kept.  In the text %1$s stands for the quoted schema
 * of the extension.
 */
typedef struct SbxStatement
{
	const char *text;
	int arg_count;
	Oid arg_types[SBX_STATEMENT_MAX_ARGS];

	/* Filled at first use. */
	SPIPlanPtr plan;
	uint64 generation;
} SbxStatement;

/* What was in force before, to go back to. */
typedef struct SbxCatalogScope
{
	MemoryContext caller_context;
	Oid user;
	int security_context;
	int guc_level;
} SbxCatalogScope;

/* OID of one of the extension's relations.  Raises 42704 without the extension. */
extern Oid sbx_catalog_relation(const char *name);

/* Is this relation the extension's own of that name? */
extern bool sbx_catalog_is_own(Oid relid, const char *name);

/* Version of the SQL objects that are installed here.  Raises as above. */
extern char *sbx_catalog_extension_version(void);

/*
 * Between the two the caller is the owner of the extension and connected to SPI.
 * An ERROR in between needs nothing of its own: (sub)transaction abort restores
 * user, search_path and SPI.
 */
extern void sbx_catalog_begin(SbxCatalogScope *scope);

/*
 * The same before writing to one of our tables.  Raises 55000 when somebody's trigger
 * there would run with the owner's rights.
 */
extern void sbx_catalog_begin_write(SbxCatalogScope *scope, const char *table);
extern void sbx_catalog_end(SbxCatalogScope *scope);

/*
 * Execute with SPI, seeing what was committed by now and what this command did so
 * far.  Returns SPI's result code; raises when it is a failure.
 */
extern int
sbx_catalog_execute(SbxStatement *statement, Datum *values, const char *nulls);

/*
 * Raises 55000 when a trigger on one of our relations is not a plain one of a
 * superuser's.
 */
extern void sbx_catalog_refuse_triggers(Relation relation);

/*
 * After a statement that did nothing: make a new plan next time if a rule emptied this
 * one.  Such a plan depends on nothing any more, so no change of the table would.
 */
extern void sbx_catalog_forget_empty_plan(SbxStatement *statement);

/* The same under the newest snapshot, for look-ups that follow a lock. */
extern int
sbx_catalog_execute_latest(SbxStatement *statement, Datum *values, const char *nulls);

/*
 * Columns of the row SPI returned, copied to the caller's context; NULL for SQL
 * NULL.
 */
extern char *sbx_catalog_text(SbxCatalogScope *scope, int row, int column);
extern Datum
sbx_catalog_datum(SbxCatalogScope *scope, int row, int column, bool *is_null);

#endif /* SBX_CATALOG_H */
