/*
 * script.c
 *		Scripts in a sandbox: sbx_run_script waits for the end; sbx_start_script
 *		does not, and sbx_script_status and sbx_script_logs ask later.
 */
#include "compat.h"

#include "flow/call.h"
#include "flow/many.h"
#include "flow/rowsort.h"
#include "flow/sandbox.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

/* Lifetime of a script when the caller gives none: half an hour. */
#define DEFAULT_SCRIPT_MS (30 * 60 * 1000)

/* Stands for a lifetime that the caller leaves to us until the kind is known. */
#define LONGEST_SCRIPT 0

/* Time to start one in the background; it runs on its own then. */
#define DEFAULT_START_MS (30 * 1000)

/* Longest script: far above what people write. */
#define MAX_SCRIPT_BYTES (1024 * 1024)

/* Longest id of a command: a provider's own, most often a UUID. */
#define MAX_COMMAND_ID 128

/* --- arguments ---------------------------------------------------------------------- */

static void
script_command(FunctionCallInfo fcinfo, int n, SbxRunInput *input)
{
	if (PG_ARGISNULL(n))
		sbx_call_refuse("command", SBX_REASON_MISSING);
	input->command = sbx_session_to_utf8(text_to_cstring(PG_GETARG_TEXT_PP(n)));
	input->command_length = strlen(input->command);
	if (input->command_length == 0)
		sbx_call_refuse("command", SBX_REASON_EMPTY);
	if (input->command_length > MAX_SCRIPT_BYTES)
		sbx_call_refuse("command", SBX_REASON_TOO_LARGE);
}

static void
script_env(FunctionCallInfo fcinfo, int n, SbxRunInput *input)
{
	const SbxPath *path = SBX_CALL_PATH("env");
	JsonbValue root;
	SbxText *pairs;
	int count;

	if (PG_ARGISNULL(n))
		return;
	sbx_jsonb_document(path, PG_GETARG_JSONB_P(n), &root);
	pairs = sbx_jsonb_pairs(path, &root, true, &count);
	for (int i = 0; i < count; i++)
	{
		if (!sbx_is_environment_name(pairs[i].key))
			sbx_refuse(SBX_MEMBER(path, pairs[i].key), SBX_REASON_BAD_FORMAT, NULL);
	}
	input->env = sbx_session_wire_pairs(pairs, count, 0);
	input->env_count = count;
}

static void
script_cwd(FunctionCallInfo fcinfo, int n, SbxRunInput *input)
{
	char *cwd;

	if (PG_ARGISNULL(n))
		return;
	cwd = text_to_cstring(PG_GETARG_TEXT_PP(n));
	sbx_check_text(SBX_CALL_PATH("cwd"), cwd);
	if (cwd[0] != '/')
		sbx_call_refuse("cwd", SBX_REASON_BAD_FORMAT);
	input->cwd = sbx_session_to_utf8(cwd);
}

/* The arguments command, env, cwd, timeout, from 1; the caller reads the session. */
static void
script_input(FunctionCallInfo fcinfo, int64 default_ms, SbxRunInput *input)
{
	memset(input, 0, sizeof(*input));
	script_command(fcinfo, 1, input);
	script_env(fcinfo, 2, input);
	script_cwd(fcinfo, 3, input);
	input->timeout_ms = sbx_call_ms(fcinfo, 4, "timeout", default_ms);
	input->max_stream = sbx_session_max_script_output();
}

/*
 * A script that is waited for lives as long as was asked for, or else as long as can be;
 * a provider that ends it earlier is not asked at all.
 */
static void
bound_script(const SbxSandbox *sandbox, SbxRunInput *input)
{
	int64 longest = sandbox->kind->max_script_ms;
	StringInfoData detail;

	if (input->timeout_ms == LONGEST_SCRIPT)
		input->timeout_ms =
		    longest > 0 ? Min(longest, DEFAULT_SCRIPT_MS) : DEFAULT_SCRIPT_MS;
	if (longest == 0 || input->timeout_ms <= longest)
		return;
	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "kind", sandbox->kind->name);
	sbx_detail_raw(&detail, "longestMs", psprintf(INT64_FORMAT, longest));
	sbx_detail_close(&detail);
	ereport(ERROR, (errcode(SBX_ERRCODE_OPERATION_UNSUPPORTED),
	                errmsg("provider kind \"%s\" does not support scripts of more than "
	                       "%d seconds",
	                       sandbox->kind->name, (int) (longest / 1000)),
	                errdetail_internal("%s", detail.data)));
}

static char *
new_run_id(void)
{
	return psprintf("sbx-run-%s", sbx_session_random_hex(8));
}

/* --- results -------------------------------------------------------------------------- */

/* The columns output, stdout, stderr. */
static void
stream_values(const SbxRunResult *result, Datum *values)
{
	values[0] =
	    PointerGetDatum(sbx_session_output_text(result->output, result->output_length));
	values[1] = PointerGetDatum(
	    sbx_session_output_text(result->stdout_text, result->stdout_length));
	values[2] = PointerGetDatum(
	    sbx_session_output_text(result->stderr_text, result->stderr_length));
}

/* --- sbx_run_script ----------------------------------------------------------------- */

/*
 * sbx_run_script(id text, command text, env jsonb, cwd text, timeout interval,
 *				  session text) returns record
 *		Runs the script in a shell of its own and waits for its end.  A non-zero
 *		exit code is a result.  timeout is the lifetime of the script (from 1 ms to
 *		a day, NULL = 30 min, or what the provider can do): when it is over the
 *		script is killed and the call fails.  session: the working directory and the exported variables that
 *		the last run of that name in this sandbox left are there again; env and
 *		cwd of this call come after them.
 *
 *		Errors: SB001 invalid argument, SB008 the provider failed or the script
 *		ran out of time (DETAIL code TIMEOUT), SB010 unknown sandbox, SB011 no
 *		credential, SB012 timeout is longer than the provider lets a script run,
 *		25006 read-only transaction or recovery.
 */
PG_FUNCTION_INFO_V1(sbx_run_script);
Datum
sbx_run_script(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
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
	script_input(fcinfo, LONGEST_SCRIPT, &input);
	input.session = sbx_call_session_name(fcinfo, 5, "session");
	input.run_id = new_run_id();
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	bound_script(&sandbox, &input);
	sandbox.longest_script = input.timeout_ms == sandbox.kind->max_script_ms;
	op = sandbox.kind->run_script(&sandbox.access.account, &sandbox.target, &input);
	result = sbx_sandbox_run(&sandbox, op)->result;

	stream_values(result, values);
	values[3] = Int32GetDatum(result->exit_code);
	nulls[3] = !result->has_exit_code;
	values[4] = BoolGetDatum(result->truncated);
	sbx_session_end(&call);
	PG_RETURN_DATUM(sbx_call_row(fcinfo, values, nulls));
}

/* --- sbx_run_script_many -------------------------------------------------------------- */

#define MANY_COLUMNS 8

typedef struct ManyScripts
{
	SbxRunInput input; /* but for its run id, which each has for itself */
	SbxRowSort *rows;
} ManyScripts;

static SbxOp *
make_script(SbxSandbox *sandbox, void *arg)
{
	SbxRunInput input = ((ManyScripts *) arg)->input;

	input.run_id = new_run_id();
	bound_script(sandbox, &input);

	/* cppcheck-suppress returnDanglingLifetime ; operations copy what they need */
	return sandbox->kind->run_script(&sandbox->access.account, &sandbox->target,
	                                 &input);
}

static void
check_script(const SbxSandbox *sandbox, void *arg)
{
	SbxRunInput input = ((ManyScripts *) arg)->input;

	bound_script(sandbox, &input);
}

static void
put_script(SbxMember *member, void *arg)
{
	Datum values[MANY_COLUMNS] = {CStringGetTextDatum(member->id)};
	bool nulls[MANY_COLUMNS] = {false, true, true, true, true, true, true, true};

	if (member->error_code != NULL)
	{
		values[6] = CStringGetTextDatum(member->error_code);
		values[7] = CStringGetTextDatum(member->error_message);
		nulls[6] = nulls[7] = false;
	}
	else
	{
		const SbxRunResult *run = member->op->result;

		stream_values(run, &values[1]);
		values[4] = Int32GetDatum(run->exit_code);
		values[5] = BoolGetDatum(run->truncated);
		memset(&nulls[1], 0, sizeof(bool) * 5);
		nulls[4] = !run->has_exit_code;
	}
	sbx_row_sort_put(((ManyScripts *) arg)->rows, member->number, values, nulls);
}

/*
 * sbx_run_script_many(ids text[], command text, env jsonb, cwd text, timeout interval,
 *					   session text) returns setof record (id text, output text,
 *					   stdout text, stderr text, exit_code integer,
 *					   truncated boolean, error_code text, error_message text)
 *		The same script in many sandboxes at once: a row for each id, in their
 *		order.  What goes wrong with one stands in its row (error_code is the
 *		SQLSTATE that sbx_run_script would have raised), and does not touch the
 *		others.  The arguments are those of sbx_run_script.
 *
 *		Errors: SB001 invalid argument or a NULL among the ids, 25006.
 */
PG_FUNCTION_INFO_V1(sbx_run_script_many);
Datum
sbx_run_script_many(PG_FUNCTION_ARGS)
{
	ManyScripts scripts;
	SbxManyWork work = {make_script, check_script, put_script, &scripts,
	                    .at_once = true};
	SbxCall call;

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_run_script_many()");
	InitMaterializedSRF(fcinfo, 0);
	if (PG_ARGISNULL(0))
		sbx_call_refuse("ids", SBX_REASON_MISSING);
	script_input(fcinfo, LONGEST_SCRIPT, &scripts.input);
	scripts.input.session = sbx_call_session_name(fcinfo, 5, "session");
	scripts.rows = sbx_row_sort_begin((ReturnSetInfo *) fcinfo->resultinfo);
	sbx_many_run(PG_GETARG_ARRAYTYPE_P(0), &work);
	sbx_row_sort_finish(scripts.rows);
	sbx_session_end(&call);
	return (Datum) 0;
}

/* --- in the background ---------------------------------------------------------------- */

/*
 * sbx_start_script(id text, command text, env jsonb, cwd text, timeout interval,
 *					session text) returns record (session_id text, command_id text,
 *					reconciled boolean)
 *		Starts the script and does not wait for its end.  timeout bounds the
 *		starting alone (from 1 ms to a day, NULL = 30 s).  session names it, so
 *		that a lost answer can be asked for again: the same script in the same
 *		session is found, not started twice, and reconciled is true; also when it
 *		has ended.  In its sandbox the name is that script's for good.  Without a
 *		session every call starts another.  What was started stays when the
 *		transaction is rolled back.
 *
 *		Errors: SB001 invalid argument, SB008 the provider failed, the session has
 *		another script (DETAIL code SESSION_IN_USE), or nothing can be kept in /tmp
 *		of the sandbox (TMP_NOT_WRITABLE); SB010, SB011, 25006.
 */
PG_FUNCTION_INFO_V1(sbx_start_script);
Datum
sbx_start_script(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxRunInput input;
	SbxStartedScript *started;
	SbxCall call;
	SbxOp *op;
	Datum values[3];
	bool nulls[3] = {false};

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_start_script()");
	script_input(fcinfo, DEFAULT_START_MS, &input);
	input.run_id = sbx_call_session_name(fcinfo, 5, "session");
	if (input.run_id == NULL)
		input.run_id = new_run_id();
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->start_script != NULL,
	                            "sbx_start_script()");
	op = sandbox.kind->start_script(&sandbox.access.account, &sandbox.target, &input);
	started = sbx_sandbox_run(&sandbox, op)->result;

	values[0] = PointerGetDatum(sbx_session_provider_text(started->session_id));
	values[1] = PointerGetDatum(sbx_session_provider_text(started->command_id));
	values[2] = BoolGetDatum(started->reconciled);
	sbx_session_end(&call);
	PG_RETURN_DATUM(sbx_call_row(fcinfo, values, nulls));
}

/* The arguments session_id and command_id, from 1. */
static void
script_target(FunctionCallInfo fcinfo, SbxScriptTarget *script)
{
	script->session_id = sbx_call_session_name(fcinfo, 1, "session_id");
	if (script->session_id == NULL)
		sbx_call_refuse("session_id", SBX_REASON_MISSING);
	script->command_id = sbx_call_word(fcinfo, 2, "command_id", MAX_COMMAND_ID);
	if (script->command_id == NULL)
		sbx_call_refuse("command_id", SBX_REASON_MISSING);
	script->max_stream = sbx_session_max_script_output();
}

/*
 * sbx_script_status(id text, session_id text, command_id text) returns integer
 *		The exit code of a script that sbx_start_script() started; NULL = it is
 *		still running.  Because NULL says that, it is not the answer to a NULL
 *		argument: that is refused.
 *
 *		Errors: SB001 malformed or missing argument, SB008 the provider failed, or
 *		the script can never end any more (DETAIL code SCRIPT_LOST) or is not known
 *		there (SCRIPT_UNKNOWN), SB010, SB011.
 */
PG_FUNCTION_INFO_V1(sbx_script_status);
Datum
sbx_script_status(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxScriptTarget script;
	SbxScriptStatus *status;
	SbxCall call;
	SbxOp *op;

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_script_status()");
	if (PG_ARGISNULL(0))
		sbx_call_refuse("id", SBX_REASON_MISSING);
	script_target(fcinfo, &script);
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->script_status != NULL,
	                            "sbx_script_status()");
	op = sandbox.kind->script_status(&sandbox.access.account, &sandbox.target, &script);
	status = sbx_sandbox_run(&sandbox, op)->result;
	sbx_session_end(&call);
	if (!status->has_ended)
		PG_RETURN_NULL();
	PG_RETURN_INT32(status->exit_code);
}

/*
 * sbx_script_logs(id text, session_id text, command_id text) returns record
 *		(output text, stdout text, stderr text, truncated boolean)
 *		What the script has written so far.  Whether it is complete is said by
 *		sbx_script_status() alone.
 *
 *		Errors: SB001 malformed argument, SB008 (DETAIL code SCRIPT_UNKNOWN where
 *		the script is not known), SB010, SB011.
 */
PG_FUNCTION_INFO_V1(sbx_script_logs);
Datum
sbx_script_logs(PG_FUNCTION_ARGS)
{
	SbxSandbox sandbox;
	SbxScriptTarget script;
	SbxRunResult *result;
	SbxCall call;
	SbxOp *op;
	Datum values[4];
	bool nulls[4] = {false};

	sbx_session_begin(&call);
	PreventCommandIfParallelMode("sbx_script_logs()");
	script_target(fcinfo, &script);
	sbx_sandbox_open(text_to_cstring(PG_GETARG_TEXT_PP(0)), &sandbox);
	sbx_sandbox_check_supported(sandbox.kind, sandbox.kind->script_logs != NULL,
	                            "sbx_script_logs()");
	op = sandbox.kind->script_logs(&sandbox.access.account, &sandbox.target, &script);
	result = sbx_sandbox_run(&sandbox, op)->result;

	stream_values(result, values);
	values[3] = BoolGetDatum(result->truncated);
	sbx_session_end(&call);
	PG_RETURN_DATUM(sbx_call_row(fcinfo, values, nulls));
}
