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
 * Sandboxes that are looked up before the first is asked for something.  Many more than
 * the engine has under way, so that a slow one holds up no others and connections are
 * kept.
 */
#define BATCH 1000

typedef struct Batch
{
	const SbxManyWork *work;
	SbxMember **opened; /* those that could be */
	SbxProgress *progress;
} Batch;

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
	if (member->work->check != NULL)
		member->work->check(&member->sandbox, member->work->arg);
}

/* Tell what came of it, and forget it. */
static void
take_member(SbxMember *member, const Batch *batch)
{
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	batch->work->take(member, batch->work->arg);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(member->context);
	member->context = NULL;
	member->op = NULL;
}

/* --- for the engine: one whose turn has come, one that has ended ----------------------- */

static SbxOp *
begin_member(void *arg, int index)
{
	Batch *batch = arg;
	SbxMember *member = batch->opened[index];
	MemoryContext caller = MemoryContextSwitchTo(member->context);

	member->op = sbx_session_hold(batch->work->make(&member->sandbox, batch->work->arg),
	                              member->sandbox.access.credential);
	MemoryContextSwitchTo(caller);
	return member->op;
}

static void
end_member(void *arg, int index)
{
	Batch *batch = arg;
	SbxMember *member = batch->opened[index];

	if (!member->op->succeeded)
		fail_member(member, SBX_ERRCODE_PROVIDER_RUNTIME,
		            sbx_failure_message(member->op, member->id));
	if (batch->work->at_once)
		take_member(member, batch);
}

static void
tell_progress(void *arg, int finished, int failed)
{
	sbx_progress_tell(((Batch *) arg)->progress, finished, failed);
}

/* --- a batch ------------------------------------------------------------------------ */

static void
run_batch(SbxMember *members, int count, const SbxManyWork *work, SbxProgress *progress)
{
	Batch batch = {work, palloc(sizeof(SbxMember *) * count), progress};
	MemoryContext caller = CurrentMemoryContext;
	int opened = 0;

	for (int i = 0; i < count; i++)
	{
		SbxMember *member = &members[i];

		CHECK_FOR_INTERRUPTS();
		member->context = AllocSetContextCreate(
		    CurrentMemoryContext, "sbx_router sandbox", ALLOCSET_SMALL_SIZES);
		MemoryContextSwitchTo(member->context);
		sbx_many_try(member, open_sandbox);
		MemoryContextSwitchTo(caller);
		if (member->error_code == NULL)
			batch.opened[opened++] = member;
	}
	sbx_session_run_work(
	    &(SbxEngineWork){opened, &batch, begin_member, end_member, tell_progress});
	for (int i = 0; i < count; i++)
	{
		if (members[i].context != NULL)
			take_member(&members[i], &batch);
		progress->failed += members[i].error_code != NULL;
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
		{
			members[i].id = ids[first + i];
			members[i].work = work;
			members[i].number = first + i;
		}
		run_batch(members, count, work, &progress);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
}
