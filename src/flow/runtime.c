/*
 * runtime.c
 *		Operations on a sandbox that exists: sbx_get, sbx_run_script, sbx_destroy.
 */
#include "compat.h"

#include "flow/cleanup.h"
#include "flow/failure.h"
#include "flow/session.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/event.h"
#include "store/mapping.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

/* Budget of a read of one sandbox. */
#define GET_MS 10000

/* Destroying may have to wait for a create or start to settle: up to a minute. */
#define DESTROY_MS 90000

/* Lifetime of a script when the caller gives none: half an hour. */
#define DEFAULT_SCRIPT_MS (30 * 60 * 1000)

/* Longest lifetime accepted: a day. */
#define MAX_SCRIPT_MS ((int64) 24 * 60 * 60 * 1000)

/* Longest script: far above what people write, far below max_response. */
#define MAX_SCRIPT_BYTES (1024 * 1024)

/* An existing sandbox with all that is needed to talk to it. */
typedef struct Sandbox
{
	SbxMapping *mapping;
	SbxAccess access;
	SbxTarget target;
} Sandbox;

/* Raises SB010, SB011, 42501. */
static void
open_sandbox(const char *id, Sandbox *sandbox)
{
	const SbxProvider *provider;

	sandbox->mapping = sbx_mapping_get(id);
	provider = sbx_registry_find(sandbox->mapping->provider_id);
	if (provider == NULL)
		ereport(ERROR, (errcode(SBX_ERRCODE_INVALID_REGISTRATION),
		                errmsg("provider \"%s\" is not registered",
		                       sandbox->mapping->provider_id)));
	sbx_session_access(provider, &sandbox->access);
	sandbox->target.sandbox_id = sandbox->mapping->provider_sandbox_id;
	sandbox->target.unique_name = id;
	sandbox->target.launch_token = NULL;
}

/* Run to the end; raises SB008 when it failed. */
static SbxOp *
run(Sandbox *sandbox, SbxOp *op)
{
	sbx_session_hold(op, sandbox->access.credential);
	sbx_session_run(op);
	if (!op->succeeded)
		sbx_failure_runtime(sandbox->access.provider->pool.id, sandbox->mapping->id,
		                    op);
	return op;
}

static Datum
record_datum(FunctionCallInfo fcinfo, Datum *values, bool *nulls)
{
	TupleDesc descriptor;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	return HeapTupleGetDatum(
	    heap_form_tuple(BlessTupleDesc(descriptor), values, nulls));
}

/* --- sbx_get -------------------------------------------------------------------- */

static const char *
state_name(SbxSandboxState state)
{
	switch (state)
	{
		case SBX_STATE_STARTING:
			return "starting";
		case SBX_STATE_STARTED:
			return "started";
		case SBX_STATE_STOPPING:
			return "stopping";
		case SBX_STATE_STOPPED:
			return "stopped";
		case SBX_STATE_FAILED:
			return "failed";
		case SBX_STATE_GONE:
			return "gone";
	}
	return NULL;
}

/*
 * sbx_get(id text) returns record
 *		What was recorded, with the state at the provider now ("gone" when it
 *		says there is no such sandbox).  Changes nothing.
 */
PG_FUNCTION_INFO_V1(sbx_get);
Datum
sbx_get(PG_FUNCTION_ARGS)
{
	Sandbox sandbox;
	SbxCall call;
	SbxOp *op;
	Datum values[7];
	bool nulls[7] = {false};

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_get()");
	open_sandbox(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	op = sandbox.access.provider->kind->get(&sandbox.access.account, &sandbox.target);
	op = run(&sandbox, op);

	values[0] = CStringGetTextDatum(sandbox.mapping->id);
	values[1] = CStringGetTextDatum(sandbox.mapping->provider_id);
	values[2] = CStringGetTextDatum(sandbox.mapping->provider_sandbox_id);
	nulls[3] = sandbox.mapping->name == NULL;
	values[3] = nulls[3] ? (Datum) 0 : CStringGetTextDatum(sandbox.mapping->name);
	values[4] = JsonbPGetDatum(sandbox.mapping->labels);
	values[5] =
	    CStringGetTextDatum(state_name(((SbxSandboxFacts *) op->result)->state));
	values[6] = TimestampTzGetDatum(sandbox.mapping->created_at);
	sbx_session_end(&call);
	PG_RETURN_DATUM(record_datum(fcinfo, values, nulls));
}

/* --- sbx_run_script ----------------------------------------------------------------- */

static void
refuse_argument(const char *path, SbxReason reason)
{
	sbx_error_document(SBX_DOCUMENT_ARGUMENT, path, reason, NULL);
}

/* An interval as milliseconds; a month has 30 days, as everywhere in intervals. */
static int64
script_timeout(FunctionCallInfo fcinfo, int n)
{
	Interval *interval;
	double ms;

	if (PG_ARGISNULL(n))
		return DEFAULT_SCRIPT_MS;
	interval = PG_GETARG_INTERVAL_P(n);
	ms = interval->time / 1000.0 +
	     ((double) interval->month * DAYS_PER_MONTH + interval->day) * SECS_PER_DAY *
	         1000.0;
	if (!(ms >= 1) || ms > MAX_SCRIPT_MS)
		refuse_argument("timeout", SBX_REASON_OUT_OF_RANGE);
	return (int64) ms;
}

static void
script_env(FunctionCallInfo fcinfo, int n, SbxRunInput *input)
{
	const SbxPath path = {SBX_DOCUMENT_ARGUMENT, NULL, "env"};
	JsonbValue root;
	SbxText *pairs;
	SbxPair *env;
	int count;

	if (PG_ARGISNULL(n))
		return;
	sbx_jsonb_document(&path, PG_GETARG_JSONB_P(n), &root);
	pairs = sbx_jsonb_pairs(&path, &root, true, &count);
	env = palloc(sizeof(SbxPair) * (count + 1));
	for (int i = 0; i < count; i++)
	{
		if (!sbx_is_environment_name(pairs[i].key))
			sbx_refuse(SBX_MEMBER(&path, pairs[i].key), SBX_REASON_BAD_FORMAT, NULL);
		env[i].key = pairs[i].key;
		env[i].value = sbx_session_to_utf8(pairs[i].value);
	}
	input->env = env;
	input->env_count = count;
}

static void
script_input(FunctionCallInfo fcinfo, SbxRunInput *input)
{
	unsigned char random[8];
	char *run_id = palloc(32);

	memset(input, 0, sizeof(*input));
	if (PG_ARGISNULL(1))
		refuse_argument("command", SBX_REASON_MISSING);
	input->command = sbx_session_to_utf8(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	input->command_length = strlen(input->command);
	if (input->command_length == 0)
		refuse_argument("command", SBX_REASON_EMPTY);
	if (input->command_length > MAX_SCRIPT_BYTES)
		refuse_argument("command", SBX_REASON_TOO_LARGE);
	script_env(fcinfo, 2, input);
	if (!PG_ARGISNULL(3))
	{
		char *cwd = text_to_cstring(PG_GETARG_TEXT_PP(3));

		sbx_check_text(&(const SbxPath){SBX_DOCUMENT_ARGUMENT, NULL, "cwd"}, cwd);
		if (cwd[0] != '/')
			refuse_argument("cwd", SBX_REASON_BAD_FORMAT);
		input->cwd = sbx_session_to_utf8(cwd);
	}
	input->timeout_ms = script_timeout(fcinfo, 4);
	if (!PG_ARGISNULL(5))
		sbx_error_not_built("session");
	if (!pg_strong_random(random, sizeof(random)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
		                errmsg("could not generate a random run id")));
	snprintf(run_id, 32, "sbx-run-%02x%02x%02x%02x%02x%02x%02x%02x", random[0],
	         random[1], random[2], random[3], random[4], random[5], random[6],
	         random[7]);
	input->run_id = run_id;
	input->max_stream = sbx_session_max_script_output();
}

/*
 * sbx_run_script(id text, command text, env jsonb, cwd text, timeout interval,
 *				  session text) returns record
 *		Runs the script in a shell of its own and waits for its end.  A non-zero
 *		exit code is a result.  timeout is the lifetime of the script: when it is
 *		over the script is killed and the call fails.
 *
 *		Errors: SB001 invalid argument, SB008 the provider failed or the script
 *		ran out of time (DETAIL code TIMEOUT), SB010 unknown sandbox, SB011 no
 *		credential, 25006 read-only transaction or recovery.
 */
PG_FUNCTION_INFO_V1(sbx_run_script);
Datum
sbx_run_script(PG_FUNCTION_ARGS)
{
	Sandbox sandbox;
	SbxRunInput input;
	SbxRunResult *result;
	SbxCall call;
	SbxOp *op;
	Datum values[5];
	bool nulls[5] = {false};

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_run_script()");
	script_input(fcinfo, &input);
	open_sandbox(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	op = sandbox.access.provider->kind->run_script(&sandbox.access.account,
	                                               &sandbox.target, &input);
	result = run(&sandbox, op)->result;

	values[0] =
	    PointerGetDatum(sbx_session_output_text(result->output, result->output_length));
	values[1] = PointerGetDatum(
	    sbx_session_output_text(result->stdout_text, result->stdout_length));
	values[2] = PointerGetDatum(
	    sbx_session_output_text(result->stderr_text, result->stderr_length));
	values[3] = Int32GetDatum(result->exit_code);
	nulls[3] = !result->has_exit_code;
	values[4] = BoolGetDatum(result->truncated);
	sbx_session_end(&call);
	PG_RETURN_DATUM(record_datum(fcinfo, values, nulls));
}

/* --- sbx_destroy ----------------------------------------------------------------------- */

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
	char *id = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Sandbox sandbox;
	SbxPending *pending;
	SbxCall call;
	SbxOp *op;
	bool was_there;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_destroy()");
	open_sandbox(id, &sandbox);
	op = sandbox.access.provider->kind->destroy(&sandbox.access.account,
	                                            &sandbox.target, DESTROY_MS);
	op = run(&sandbox, op);
	was_there = *(SbxDestroyResult *) op->result == SBX_DESTROY_DONE;

	/* Made by this very transaction: nothing is left for its abort to destroy. */
	pending = sbx_cleanup_find(id);
	if (pending != NULL)
		sbx_cleanup_resolved(pending);
	sbx_event_emit(SBX_EVENT_DESTROY_FINISHED, id, sandbox.mapping->provider_id, 0,
	               NULL, SBX_UNSET, SBX_TRUE);
	sbx_mapping_delete(id);
	sbx_session_end(&call);
	PG_RETURN_BOOL(was_there);
}
