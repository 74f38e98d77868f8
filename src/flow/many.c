/*
 * many.c
 *		The same operation on many sandboxes at once.
 */
#include "flow/many.h"

#include "catalog/pg_type.h"
#include "flow/call.h"
#include "flow/failure.h"
#include "flow/progress.h"
#include "miscadmin.h"
#include "observe/catch.h"
#include "observe/error.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/*
 * Operations made at once: what they have brought stays in memory until all have ended.
 * Many more than the engine has under way, so that a slow one holds up no others and
 * connections are kept.
 */
#define BATCH 1000

/* --- one of them -------------------------------------------------------------------- */

static void
fail_member(SbxMember *member, int sqlerrcode, const char *message)
{
	member->error_code = pstrdup(unpack_sql_state(sqlerrcode));
	member->error_message = message;
}

void
sbx_many_try(SbxMember *member, void (*body)(void *member))
{
	ErrorData *error = sbx_catch(body, member);

	if (error == NULL)
		return;
	if (sbx_error_is_interrupt(error->sqlerrcode))
		ReThrowError(error);
	fail_member(member, error->sqlerrcode, error->message);
}

static void
open_sandbox(void *arg)
{
	SbxMember *member = arg;

	sbx_sandbox_open(member->id, &member->sandbox);
}

/* --- a batch ------------------------------------------------------------------------ */

static void
run_batch(SbxMember *members, int count, const SbxManyWork *work, SbxProgress *progress)
{
	SbxOp **ops = palloc(sizeof(SbxOp *) * count);
	int op_count = 0;

	for (int i = 0; i < count; i++)
	{
		SbxMember *member = &members[i];

		CHECK_FOR_INTERRUPTS();
		sbx_many_try(member, open_sandbox);
		if (member->error_code != NULL)
			continue;
		member->op = sbx_session_hold(work->make(&member->sandbox, work->arg),
		                              member->sandbox.access.credential);
		ops[op_count++] = member->op;
	}
	sbx_session_run_many(ops, op_count, sbx_progress_tell, progress);
	for (int i = 0; i < count; i++)
	{
		SbxMember *member = &members[i];

		if (member->op != NULL && !member->op->succeeded)
			fail_member(member, SBX_ERRCODE_PROVIDER_RUNTIME,
			            sbx_failure_message(member->op, member->id));
		work->take(member, work->arg);
		progress->failed += member->error_code != NULL;
	}
	progress->done += count;
}

static char **
read_ids(ArrayType *array, int *count)
{
	Datum *elements;
	bool *nulls;
	char **ids;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls,
	                  count);
	ids = palloc(sizeof(char *) * (*count + 1));
	for (int i = 0; i < *count; i++)
	{
		if (nulls[i])
			sbx_call_refuse("ids", SBX_REASON_MISSING);
		ids[i] = TextDatumGetCString(elements[i]);
	}
	return ids;
}

void
sbx_many_run(ArrayType *array, const SbxManyWork *work)
{
	SbxProgress progress = {.last = GetCurrentTimestamp()};
	char **ids = read_ids(array, &progress.total);
	MemoryContext context = AllocSetContextCreate(
	    CurrentMemoryContext, "sbx_router batch", ALLOCSET_DEFAULT_SIZES);

	for (int first = 0; first < progress.total; first += BATCH)
	{
		MemoryContext caller = MemoryContextSwitchTo(context);
		int count = Min(BATCH, progress.total - first);
		SbxMember *members = palloc0(sizeof(SbxMember) * count);

		for (int i = 0; i < count; i++)
			members[i].id = ids[first + i];
		run_batch(members, count, work, &progress);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
}
