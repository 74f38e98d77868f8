/*
 * rowsort.c
 *		Rows that come in any order and are wanted in that of their numbers.
 *
 * The server's own sort, on the number as one more column in front.
 */
#include "flow/rowsort.h"

#include "access/tupdesc.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "utils/tuplesort.h"

struct SbxRowSort
{
	ReturnSetInfo *result;
	TupleDesc numbered; /* a row of the result, behind its number */
	Tuplesortstate *sort;
};

static TupleDesc
with_number(TupleDesc row)
{
	TupleDesc numbered = CreateTemplateTupleDesc(row->natts + 1);

	TupleDescInitEntry(numbered, 1, "number", INT4OID, -1, 0);
	for (int i = 1; i <= row->natts; i++)
		TupleDescCopyEntry(numbered, i + 1, row, i);
	return numbered;
}

SbxRowSort *
sbx_row_sort_begin(ReturnSetInfo *result)
{
	SbxRowSort *sort = palloc(sizeof(SbxRowSort));
	AttrNumber column = 1;
	Oid less = Int4LessOperator;
	Oid collation = InvalidOid;
	bool nulls_first = false;

	sort->result = result;
	sort->numbered = with_number(result->setDesc);
	sort->sort = tuplesort_begin_heap(sort->numbered, 1, &column, &less, &collation,
	                                  &nulls_first, work_mem, NULL, TUPLESORT_NONE);
	return sort;
}

void
sbx_row_sort_put(SbxRowSort *sort, int number, const Datum *values, const bool *nulls)
{
	int columns = sort->result->setDesc->natts;
	TupleTableSlot *slot = MakeSingleTupleTableSlot(sort->numbered, &TTSOpsVirtual);

	slot->tts_values[0] = Int32GetDatum(number);
	slot->tts_isnull[0] = false;
	memcpy(&slot->tts_values[1], values, sizeof(Datum) * columns);
	memcpy(&slot->tts_isnull[1], nulls, sizeof(bool) * columns);
	tuplesort_puttupleslot(sort->sort, ExecStoreVirtualTuple(slot));
	ExecDropSingleTupleTableSlot(slot);
}

void
sbx_row_sort_finish(SbxRowSort *sort)
{
	ReturnSetInfo *result = sort->result;
	TupleTableSlot *slot =
	    MakeSingleTupleTableSlot(sort->numbered, &TTSOpsMinimalTuple);

	tuplesort_performsort(sort->sort);
	while (tuplesort_gettupleslot(sort->sort, true, false, slot, NULL))
	{
		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		tuplestore_putvalues(result->setResult, result->setDesc, &slot->tts_values[1],
		                     &slot->tts_isnull[1]);
	}
	ExecDropSingleTupleTableSlot(slot);
	tuplesort_end(sort->sort);
}
