/*
 * runtime.c
 *		The life of a sandbox that exists: sbx_get, sbx_wait_ready, sbx_start,
 *		sbx_stop, sbx_destroy, sbx_destroy_many.
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "flow/call.h"
#include "flow/cleanup.h"
#include "flow/many.h"
#include "flow/sandbox.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/event.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

/* Time to wait until a sandbox is ready when the caller gives none. */
#define DEFAULT_READY_MS (2 * 60 * 1000)

/* Starting and stopping may move a whole disk: above the minute that providers promise. */
#define START_MS (2 * 60 * 1000)
#define STOP_MS  (2 * 60 * 1000)

/* Destroying may have to wait for a create or start to settle: up to a minute. */
#define DESTROY_MS 90000

static SbxSandboxState
state_of(const SbxOp *op)
{
	return ((const SbxSandboxFacts *) op->result)->state;
}

/* --- sbx_get -------------------------------------------------------------------- */

/*
 * sbx_get(id text) returns record
 *		What was recorded, with the state at the provider now ("gone" when it
 *		says there is no such sandbox).  Changes nothing.
 *
 *		Errors: SB008, SB010, SB011.
 */
PG_FUNCTION_INFO_V1(sbx_get);
Datum
sbx_get(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxCall call;
	SbxOp *op;
	Datum values[7];
	bool nulls[7] = {false};

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_get()");
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	op = sandbox.kind->get(&sandbox.access.account, &sandbox.target);
	op = sbx_sandbox_run(&sandbox, op);

	values[0] = CStringGetTextDatum(sandbox.mapping->id);
	values[1] = CStringGetTextDatum(sandbox.mapping->provider_id);
	values[2] = CStringGetTextDatum(sandbox.mapping->provider_sandbox_id);
	nulls[3] = sandbox.mapping->name == NULL;
	values[3] = nulls[3] ? (Datum) 0 : CStringGetTextDatum(sandbox.mapping->name);
	values[4] = JsonbPGetDatum(sandbox.mapping->labels);
	values[5] = CStringGetTextDatum(sbx_sandbox_state_name(state_of(op)));
	values[6] = TimestampTzGetDatum(sandbox.mapping->created_at);
	sbx_session_end(&call);
	PG_RETURN_DATUM(sbx_call_row(fcinfo, values, nulls));
}

/* --- what a sandbox turned into ----------------------------------------------------- */

/*
 * Keep the state, and the provider's id where it is another one now.  Nothing is
 * written where nothing changed: a row lock would last as long as the transaction.
 */
static void
record_state(const SbxSandbox *sandbox, const SbxOp *op)
{
	const SbxMapping *mapping = sandbox->mapping;
	const char *state = sbx_sandbox_state_name(state_of(op));
	const char *sandbox_id =
	    op->sandbox_id[0] == '\0' ? mapping->provider_sandbox_id : op->sandbox_id;

	if (strcmp(state, mapping->state) != 0 ||
	    strcmp(sandbox_id, mapping->provider_sandbox_id) != 0)
		sbx_mapping_update(mapping->id, state, sandbox_id);
}

/*
 * sbx_wait_ready(id text, timeout interval) returns boolean
 *		true = the sandbox accepts commands, false = not yet when the time (from
 *		1 ms to a day, NULL = 2 min) was over.  Remembers that it is started
 *		where the transaction may write, and only waits where it may not.
 *
 *		Errors: SB001 timeout out of range, SB008 the provider failed or the
 *		sandbox will not be ready by itself (DETAIL code NOT_STARTED,
 *		SANDBOX_FAILED or SANDBOX_GONE), SB010, SB011.
 */
PG_FUNCTION_INFO_V1(sbx_wait_ready);
Datum
sbx_wait_ready(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxCall call;
	SbxOp *op;
	int64 timeout_ms;
	bool ready;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_wait_ready()");
	timeout_ms = sbx_call_ms(fcinfo, 1, "timeout", DEFAULT_READY_MS);
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->wait_ready != NULL,
	                            "sbx_wait_ready()");
	op = sandbox.kind->wait_ready(&sandbox.access.account, &sandbox.target, timeout_ms);
	op = sbx_sandbox_run(&sandbox, op);
	ready = state_of(op) == SBX_STATE_STARTED;
	if (ready && !XactReadOnly && !RecoveryInProgress())
		record_state(&sandbox, op);
	sbx_session_end(&call);
	PG_RETURN_BOOL(ready);
}

/* --- sbx_start, sbx_stop -------------------------------------------------------------- */

typedef SbxOp *(*LifecycleMaker)(const SbxAccount *account, const SbxTarget *target,
                                 int64_t timeout_ms);

static void
change_state(SbxSandbox *sandbox, LifecycleMaker make, int64 timeout_ms,
             const char *function)
{
	SbxOp *op;

	sbx_sandbox_check_supported(sandbox->kind, make != NULL, function);
	op = make(&sandbox->access.account, &sandbox->target, timeout_ms);
	record_state(sandbox, sbx_sandbox_run(sandbox, op));
}

/*
 * sbx_start(id text) returns void
 *		Starts a stopped sandbox and waits, up to 2 min, until it accepts commands.
 *		One that is started already is success.  The sandbox stays started when
 *		the transaction is rolled back.
 *
 *		Errors: SB008, SB010, SB011, 25006 read-only transaction or recovery.
 */
PG_FUNCTION_INFO_V1(sbx_start);
Datum
sbx_start(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxCall call;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_start()");
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	change_state(&sandbox, sandbox.kind->start, START_MS, "sbx_start()");
	sbx_session_end(&call);
	PG_RETURN_VOID();
}

/*
 * sbx_stop(id text) returns void
 *		Stops a sandbox and waits, up to 2 min, until it is stopped.  One that is
 *		stopped already is success.  It stays stopped when the transaction is
 *		rolled back.
 *
 *		Errors: SB008 (DETAIL code STOP_WOULD_DESTROY where it would be gone then),
 *		SB010, SB011, 25006 read-only transaction or recovery.
 */
PG_FUNCTION_INFO_V1(sbx_stop);
Datum
sbx_stop(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxCall call;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_stop()");
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	change_state(&sandbox, sandbox.kind->stop, STOP_MS, "sbx_stop()");
	sbx_session_end(&call);
	PG_RETURN_VOID();
}

/* --- sbx_destroy ----------------------------------------------------------------------- */

/* It is gone, by the provider's word. */
static void
record_destroyed(const SbxSandbox *sandbox)
{
	const SbxMapping *mapping = sandbox->mapping;
	SbxPending *pending = sbx_cleanup_find(mapping->id);

	/* Made by this very transaction: nothing is left for its abort to destroy. */
	if (pending != NULL)
		sbx_cleanup_resolved(pending);
	sbx_event_emit(SBX_EVENT_DESTROY_FINISHED, mapping->id, mapping->provider_id, 0,
	               NULL, SBX_UNSET, SBX_TRUE);
	sbx_mapping_delete(mapping->id);
}

/* Just now, or before? */
static bool
was_destroyed(const SbxOp *op)
{
	return *(const SbxDestroyResult *) op->result == SBX_DESTROY_DONE;
}

/*
 * sbx_destroy(id text) returns boolean
 *		true = destroyed now, false = the provider says it was gone; both delete
 *		the mapping.  A failure keeps it, so that the call can be repeated.
 *
 *		Errors: SB008, SB010, SB011, 25006.
 */
PG_FUNCTION_INFO_V1(sbx_destroy);
Datum
sbx_destroy(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxCall call;
	SbxOp *op;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_destroy()");
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	op = sandbox.kind->destroy(&sandbox.access.account, &sandbox.target, DESTROY_MS);
	op = sbx_sandbox_run(&sandbox, op);
	record_destroyed(&sandbox);
	sbx_session_end(&call);
	PG_RETURN_BOOL(was_destroyed(op));
}

/* --- sbx_destroy_many ------------------------------------------------------------------ */

static SbxOp *
make_destroy(SbxSandbox *sandbox, void *arg)
{
	return sandbox->kind->destroy(&sandbox->access.account, &sandbox->target,
	                              DESTROY_MS);
}

static void
record_member(void *arg)
{
	const SbxMember *member = arg;

	record_destroyed(&member->sandbox);
}

static void
put_destroyed(SbxMember *member, void *arg)
{
	ReturnSetInfo *result = arg;
	Datum values[4] = {CStringGetTextDatum(member->id)};
	bool nulls[4] = {false, true, true, true};

	/* The sandbox is gone; that its mapping cannot go is the error of this one. */
	if (member->error_code == NULL)
		sbx_many_try(member, record_member);
	if (member->error_code != NULL)
	{
		values[2] = CStringGetTextDatum(member->error_code);
		values[3] = CStringGetTextDatum(member->error_message);
		nulls[2] = nulls[3] = false;
	}
	else
	{
		values[1] = BoolGetDatum(was_destroyed(member->op));
		nulls[1] = false;
	}
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/*
 * sbx_destroy_many(ids text[]) returns setof record (id text, destroyed boolean,
 *					error_code text, error_message text)
 *		sbx_destroy for many at once: a row for each id, in their order.  What goes
 *		wrong with one stands in its row and keeps its mapping, so that the call
 *		can be repeated, and does not touch the others: also what the deletion of
 *		the mapping raises, such as a trigger's error.  Then the sandbox is gone all
 *		the same.
 *
 *		Errors: SB001 a NULL among the ids, 25006.
 */
PG_FUNCTION_INFO_V1(sbx_destroy_many);
Datum
sbx_destroy_many(PG_FUNCTION_ARGS)
{
	SbxManyWork work = {make_destroy, NULL, put_destroyed, fcinfo->resultinfo};
	SbxCall call;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_destroy_many()");
	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		sbx_call_refuse("ids", SBX_REASON_MISSING);
	sbx_many_run(PG_GETARG_ARRAYTYPE_P(0), &work);
	sbx_session_end(&call);
	return (Datum) 0;
}
