/*
 * rows.h
 *		What functions and triggers that write registrations share.
 */
#ifndef SBX_ROWS_H
#define SBX_ROWS_H

#include "compat.h"

#include "commands/trigger.h"
#include "observe/error.h"
#include "utils/jsonb.h"

/* Registrations are rows: refuse in the function's own name, e.g. "sbx_f()". */
extern void sbx_rows_refuse_write(const char *function);

/* The row that a check trigger looks at. */
typedef struct SbxRow
{
	TriggerData *trigger;
	HeapTuple tuple;
	SbxDocument document; /* what errors are about, */
	const char *path;     /* and the start of their paths */
} SbxRow;

/*
 * The new row of a BEFORE INSERT OR UPDATE trigger.  Anybody's trigger may call our
 * functions with any row: raises 39P01 for every table but our own of that name.
 */
extern void sbx_rows_open(FunctionCallInfo fcinfo, const char *table,
                          const char *function, SbxRow *row);

/* A column of it; the second form refuses NULL, the third gives NULL for it. */
extern Datum sbx_rows_column(const SbxRow *row, const char *name, bool *is_null);
extern char *sbx_rows_required_text(const SbxRow *row, const char *name);
extern char *sbx_rows_text(const SbxRow *row, const char *name);
extern Jsonb *sbx_rows_jsonb(const SbxRow *row, const char *name);

/* The row as it was before an UPDATE; false = this is an INSERT. */
extern bool sbx_rows_former(const SbxRow *row, SbxRow *former);

/*
 * Who answers for the row: a role that is not superuser can only name itself, because
 * what a row may do counts by this column.
 */
extern Oid sbx_rows_settle_registrar(SbxRow *row);

#endif /* SBX_ROWS_H */
