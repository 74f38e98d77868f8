/*
 * daytona_run.c
 *		Running a script in a Daytona sandbox.
 *
 * Each run gets a session of its own in the toolbox, deleted when it is over.  The
 * script is in a process group of its own, so that what it leaves in the background
 * survives that, and is killed by its group when it has to be.  The toolbox sources a
 * command in the session's own shell and notes the exit code afterwards.  If that shell
 * ended, the note would never be written and the call would last until its time is over;
 * what sbx_script_text() makes cannot end it.  A shell that cannot start anything,
 * because the sandbox is full of processes, loses its note all the same.
 */
#include <string.h>

#include "providers/daytona.h"
#include "providers/script.h"

#define DAYTONA_RUN_TIMEOUT_MS (30 * 60 * 1000)

/* After the run's own time there must be enough left to kill it. */
#define DAYTONA_RUN_EXTRA_MS (60 * 1000)

/* What the sandbox gets to kill a script; it takes milliseconds. */
#define DAYTONA_KILL_SECONDS 5

/* --- what came out of it ------------------------------------------------ */

/* Which stream the marker at this place opens: 1, 2, or 0 for no marker. */
static int
daytona_marker(const char *bytes, size_t length)
{
	if (length < 3 || bytes[0] != bytes[1] || bytes[1] != bytes[2])
		return 0;
	return bytes[0] == 1 || bytes[0] == 2 ? bytes[0] : 0;
}

/*
 * Take a framed log apart.  Three bytes 01 or three bytes 02 mark what follows,
 * up to the next marker, as standard output or standard error; what stands before
 * the first marker belongs to neither.  output->both gets the kept parts of both
 * in their order.  False, and nothing is changed, when there is no marker at all.
 */
static bool
daytona_demux(SbxArena *arena, const char *framed, size_t length, size_t maximum,
              SbxScriptOutput *output)
{
	SbxScriptOutput found = {sbx_script_open_stream(arena, length, SIZE_MAX - 1),
	                         sbx_script_open_stream(arena, length, maximum),
	                         sbx_script_open_stream(arena, length, maximum)};
	SbxScriptStream *current = NULL;
	size_t start = 0;

	for (size_t here = 0; here <= length; here++)
	{
		int marker = daytona_marker(framed + here, length - here);

		if (marker == 0 && here < length)
			continue;
		if (current != NULL)
		{
			size_t kept = sbx_script_keep(current, framed + start, here - start);

			sbx_script_keep(&found.both, framed + start, kept);
		}
		if (marker == 0)
			break;
		current = marker == 1 ? &found.out : &found.err;
		start = here + 3;
		here += 2;
	}
	if (current == NULL)
		return false;
	*output = found;
	return true;
}

/*
 * The log alone has the order of both streams; "stdout" and "stderr", where given,
 * count more than what was cut out of it.  Any of the three may be missing.  NULL
 * when the answer is malformed or memory is short.
 */
static SbxRunResult *
daytona_run_result(SbxOp *op, const json_t *answer, size_t maximum)
{
	SbxRunResult *result = sbx_arena_alloc(&op->arena, sizeof(*result));
	SbxScriptOutput output = {0};
	bool ordered = false;
	bool separate;
	size_t length;
	const char *log = sbx_json_string_length(answer, "output", &length);

	if (result == NULL || answer == NULL ||
	    !sbx_script_take_exit_code(answer, "exitCode", result))
		return NULL;
	if (log != NULL)
		ordered = daytona_demux(&op->arena, log, length, maximum, &output);
	separate =
	    sbx_script_take_stream(&op->arena, answer, "stdout", maximum, &output.out);
	separate |=
	    sbx_script_take_stream(&op->arena, answer, "stderr", maximum, &output.err);

	/* A log without any marker is the older shape: both streams, unframed. */
	if (!ordered && !separate)
		sbx_script_take_stream(&op->arena, answer, "output", maximum, &output.both);
	else if (!ordered)
		sbx_script_join(&op->arena, &output);
	sbx_script_store(&output, result);
	return op->arena.out_of_memory ? NULL : result;
}

/* --- the steps ---------------------------------------------------------- */

typedef struct SbxDaytonaRun
{
	SbxDaytonaState state; /* first */
	const char *run_id;
	const char *session_body;
	const char *command_body;
	const char *kill_body;

	/* Built early: killing must not need memory. */
	const char *kill_url;
	const char *session_url;
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
	bool kill_answered; /* the sandbox was asked to kill the script, and answered */
} SbxDaytonaRun;

static SbxStep daytona_run_start;
static SbxStep daytona_run_open;
static SbxStep daytona_run_opened;
static SbxStep daytona_run_execute;
static SbxStep daytona_run_executed;
static SbxStep daytona_run_kill;
static SbxStep daytona_run_killed;
static SbxStep daytona_run_close;
static SbxStep daytona_run_closed;

/* NULL when the text is not UTF-8 or memory is short. */
const char *
sbx_daytona_session_body(SbxArena *arena, const char *command, bool in_background)
{
	json_t *body = sbx_json_new_object();
	const char *text = NULL;

	if (command != NULL &&
	    json_object_set_new(body, "command", json_string(command)) == 0 &&
	    json_object_set_new(body, "runAsync", json_boolean(in_background)) == 0)
		text = sbx_json_print(arena, body);
	json_decref(body);
	return text;
}

SbxOp *
sbx_daytona_run_script(const SbxAccount *account, const SbxTarget *target,
                       const SbxRunInput *input)
{
	int64_t timeout_ms =
	    input->timeout_ms > 0 ? input->timeout_ms : DAYTONA_RUN_TIMEOUT_MS;
	SbxOp *op;
	SbxDaytonaRun *run;

	if (timeout_ms > INT64_MAX - DAYTONA_RUN_EXTRA_MS)
		timeout_ms = INT64_MAX - DAYTONA_RUN_EXTRA_MS;
	op = sbx_daytona_make_op(account, "runScript", daytona_run_start,
	                         sizeof(SbxDaytonaRun), DAYTONA_ARENA_SMALL,
	                         timeout_ms + DAYTONA_RUN_EXTRA_MS);
	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->state.steps.timeout_code = "TIMEOUT";
	sbx_daytona_set_target(op, target);
	if (sbx_script_valid(input))
	{
		run->run_id = sbx_arena_strdup(&op->arena, input->run_id);
		run->session_body =
		    sbx_arena_printf(&op->arena, "{\"sessionId\":\"%s\"}", input->run_id);
		run->command_body = sbx_daytona_session_body(
		    &op->arena, sbx_script_text(&op->arena, input), false);
		run->kill_body = sbx_daytona_command_body(
		    &op->arena, sbx_script_kill_text(&op->arena, run->run_id),
		    DAYTONA_KILL_SECONDS);
	}
	if (run->command_body == NULL || run->kill_body == NULL)
		run->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_run_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_run_open);
}

static SbxOpWant
daytona_run_open(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	SbxOpWant want;

	run->session_url = sbx_arena_printf(&op->arena, "%s/process/session/%s",
	                                    run->state.toolbox_url, run->run_id);
	run->kill_url =
	    sbx_arena_printf(&op->arena, "%s/process/execute", run->state.toolbox_url);
	want = sbx_daytona_send_toolbox(op, "POST", "/process/session", run->session_body,
	                                daytona_run_opened);

	/* The name is ours alone, so a second delivery finds the first one's. */
	op->request.repeatable = true;
	return want;
}

static SbxOpWant
daytona_run_opened(SbxOp *op)
{
	/* 409: it exists, so an earlier delivery of this very request arrived. */
	if (sbx_steps_is_success(op) || op->response.status == 409)
		return daytona_run_execute(op);

	/* The session may have been made all the same: a shell that would stay. */
	if (sbx_steps_is_passing(op) && sbx_steps_may_have_arrived(op))
	{
		sbx_steps_note(op, NULL);
		return daytona_run_close(op);
	}
	return sbx_daytona_fail_in_toolbox(op, NULL);
}

static SbxOpWant
daytona_run_execute(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/exec", run->session_url);
	SbxOpWant want =
	    sbx_daytona_send(op, "POST", url, run->command_body, daytona_run_executed);

	op->request.timeout_ms = run->timeout_ms;

	/* The proxy in between replays a small body that has a Content-Length. */
	op->request.chunked = true;

	/* The framed log and both streams; in JSON a control byte takes six. */
	op->request.max_response = SIZE_MAX;
	if (run->max_stream < SIZE_MAX / 16)
		op->request.max_response = 8 * run->max_stream + 1024 * 1024;
	return want;
}

/* Only a refusal proves that the script did not start. */
static bool
daytona_may_be_running(const SbxOp *op)
{
	int status = op->response.status;

	if (status == 0)
		return sbx_steps_may_have_arrived(op);
	return status < 400 || status == 408 || status >= 500;
}

/*
 * Whatever came back, it is only noted here: the session is deleted first.  The
 * answer is gone by then, so the result is copied out of it now.
 */
static SbxOpWant
daytona_run_executed(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	SbxDaytonaState *state = op->state;

	state->steps.acted = sbx_steps_may_have_arrived(op);
	run->timed_out =
	    op->response.status == 0 && (op->response.timed_out || op->expired);
	if (run->timed_out)
		sbx_steps_note(op, "TIMEOUT_NOT_KILLED");
	else if (op->response.too_large)
		sbx_steps_note(op, "OUTPUT_TOO_LARGE");
	else if (op->response.status != 200)
		sbx_steps_note(op,
		               sbx_daytona_toolbox_has_no_sandbox(op) ? "NOT_STARTED" : NULL);
	else
	{
		json_t *answer = sbx_steps_object(op, true);

		state->steps.result = daytona_run_result(op, answer, run->max_stream);
		json_decref(answer);
		if (state->steps.result == NULL)
		{
			sbx_steps_note(op, NULL);
			state->steps.noted.phase = SBX_PHASE_PROTOCOL;
		}
	}
	if (state->steps.result == NULL && daytona_may_be_running(op))
		return daytona_run_kill(op);
	return daytona_run_close(op);
}

/*
 * No result, so the script may still be running.  Its group is not the session's,
 * so it is killed by a command of its own.
 */
static SbxOpWant
daytona_run_kill(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	SbxOpWant want;

	run->state.steps.tidying = true;
	want =
	    sbx_daytona_send(op, "POST", run->kill_url, run->kill_body, daytona_run_killed);
	op->request.repeatable = true;
	return want;
}

/*
 * Any answer will do: an exit code other than 0 says that there is no such group,
 * and then the script is the session's, which is deleted next.
 */
static SbxOpWant
daytona_run_killed(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	int64_t exit_code;

	run->kill_answered =
	    answer != NULL && sbx_json_integer(answer, "exitCode", &exit_code);
	json_decref(answer);
	return daytona_run_close(op);
}

/* Deleting the session ends its shell, and a script that has no group of its own. */
static SbxOpWant
daytona_run_close(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;

	run->state.steps.tidying = true;
	return sbx_daytona_send(op, "DELETE", run->session_url, NULL, daytona_run_closed);
}

/*
 * A result in hand is not spoilt by a failed clean-up.  A timeout is different:
 * unless both the kill and the delete were confirmed, the script may still be
 * running, and the caller has to hear that.  (404 is no confirmation: a restarted toolbox has
 * forgotten the session, not necessarily its processes.)
 */
static SbxOpWant
daytona_run_closed(SbxOp *op)
{
	SbxDaytonaRun *run = op->state;
	SbxDaytonaState *state = op->state;

	if (state->steps.result != NULL)
		return sbx_op_succeed(op, state->steps.result);
	if (run->timed_out && run->kill_answered && sbx_steps_is_success(op))
		state->steps.noted.provider_code = "TIMEOUT";
	return sbx_daytona_fail_noted_in_toolbox(op);
}
