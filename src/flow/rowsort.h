/*
 * rowsort.h
 *		Rows that come in any order and are wanted in that of their numbers.
 */
#ifndef SBX_ROWSORT_H
#define SBX_ROWSORT_H

#include "compat.h"

#include "nodes/execnodes.h"

typedef struct SbxRowSort SbxRowSort;

/* For the result of a set-returning function in materialize mode. */
extern SbxRowSort *sbx_row_sort_begin(ReturnSetInfo *result);

/* A copy of a row of the result; beyond work_mem it goes to a temporary file. */
extern void
sbx_row_sort_put(SbxRowSort *sort, int number, const Datum *values, const bool *nulls);

/* All of them become the result. */
extern void sbx_row_sort_finish(SbxRowSort *sort);

#endif /* SBX_ROWSORT_H */
