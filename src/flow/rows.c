/*
 * rows.c
 *		What functions and triggers that write registrations share.
 */
#include "flow/rows.h"

#include "access/htup_details.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "store/catalog.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/rel.h"

void
sbx_rows_refuse_write(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandDuringRecovery(function);
	PreventCommandIfParallelMode(function);
}

void
sbx_rows_open(FunctionCallInfo fcinfo, const char *table, const char *function,
              SbxRow *row)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
	    !TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
	    TRIGGER_FIRED_BY_DELETE(trigger->tg_event) ||
	    !sbx_catalog_is_own(RelationGetRelid(trigger->tg_relation), table))
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
		                errmsg("function \"%s\" can only be used by its own trigger",
		                       function)));
	row->trigger = trigger;
	row->tuple = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple
	                                                        : trigger->tg_trigtuple;
}

static int
column_number(const SbxRow *row, const char *name)
{
	Relation relation = row->trigger->tg_relation;
	int number = SPI_fnumber(RelationGetDescr(relation), name);

	if (number <= 0)
		elog(ERROR, "table \"%s\" has no column \"%s\"",
		     RelationGetRelationName(relation), name);
	return number;
}

Datum
sbx_rows_column(const SbxRow *row, const char *name, bool *is_null)
{
	return heap_getattr(row->tuple, column_number(row, name),
	                    RelationGetDescr(row->trigger->tg_relation), is_null);
}

char *
sbx_rows_text(const SbxRow *row, const char *name)
{
	bool is_null;
	Datum value = sbx_rows_column(row, name, &is_null);

	return is_null ? NULL : TextDatumGetCString(value);
}

char *
sbx_rows_required_text(const SbxRow *row, const char *name)
{
	char *value = sbx_rows_text(row, name);

	if (value == NULL)
		sbx_error_document(row->document, psprintf("%s.%s", row->path, name),
		                   SBX_REASON_MISSING, NULL);
	return value;
}

Jsonb *
sbx_rows_jsonb(const SbxRow *row, const char *name)
{
	bool is_null;
	Datum value = sbx_rows_column(row, name, &is_null);

	return is_null ? NULL : DatumGetJsonbP(value);
}

bool
sbx_rows_former(const SbxRow *row, SbxRow *former)
{
	if (!TRIGGER_FIRED_BY_UPDATE(row->trigger->tg_event))
		return false;
	*former = *row;
	former->tuple = row->trigger->tg_trigtuple;
	return true;
}

Oid
sbx_rows_settle_registrar(SbxRow *row)
{
	int number = column_number(row, "registered_by");
	bool is_null;
	Datum value = sbx_rows_column(row, "registered_by", &is_null);

	if (!is_null && superuser())
		return DatumGetObjectId(value);
	value = ObjectIdGetDatum(GetUserId());
	is_null = false;
	row->tuple = heap_modify_tuple_by_cols(row->tuple,
	                                       RelationGetDescr(row->trigger->tg_relation),
	                                       1, &number, &value, &is_null);
	return GetUserId();
}
