/*
 * vercel_run.c
 *		Running a script in a Vercel sandbox.
 *
 * The provider ends a command at its time, but only the shell that it started: what that
 * started has a process group of its own, which is killed by a command of its own.
 */
#include <string.h>

#include "providers/vercel.h"

#define VERCEL_RUN_TIMEOUT_MS (30 * 60 * 1000)

/* After the script's own time there must be enough left to kill it. */
#define VERCEL_RUN_EXTRA_MS (60 * 1000)

/* What the sandbox gets to kill a script; it takes milliseconds. */
#define VERCEL_KILL_MS 5000

typedef struct SbxVercelRun
{
	SbxVercelCommand command; /* first */
	const char *run_id;
	const char *text;         /* as it is sent in a command */
	SbxVercelArchive archive; /* the script, when it is too long for that */
	const char *kill_text;
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
} SbxVercelRun;

static SbxStep vercel_run_start;
static SbxStep vercel_run_opened;
static SbxStep vercel_run_stored;
static SbxStep vercel_run_executed;
static SbxStep vercel_run_killed;
static void vercel_run_write(SbxOp *op, const SbxRunInput *input);

SbxOp *
sbx_vercel_run_script(const SbxAccount *account, const SbxTarget *target,
                      const SbxRunInput *input)
{
	int64_t timeout_ms =
	    input->timeout_ms > 0 ? input->timeout_ms : VERCEL_RUN_TIMEOUT_MS;
	SbxVercelRun *run;
	SbxOp *op;

	if (timeout_ms > INT64_MAX - VERCEL_RUN_EXTRA_MS)
		timeout_ms = INT64_MAX - VERCEL_RUN_EXTRA_MS;
	op =
	    sbx_vercel_make_op(account, "runScript", vercel_run_start, sizeof(SbxVercelRun),
	                       VERCEL_ARENA_SMALL, timeout_ms + VERCEL_RUN_EXTRA_MS);
	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->command.state.steps.timeout_code = "TIMEOUT";
	sbx_vercel_set_target(op, target);
	if (sbx_script_valid(input))
		vercel_run_write(op, input);
	if (run->text == NULL || run->kill_text == NULL || !sbx_json_is_text(run->text))
		run->command.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

/* A long script goes through a file. */
static void
vercel_run_write(SbxOp *op, const SbxRunInput *input)
{
	SbxVercelRun *run = op->state;
	const char *path;
	const char *text;

	run->run_id = sbx_arena_strdup(&op->arena, input->run_id);
	run->kill_text = sbx_script_kill_text(&op->arena, input->run_id);
	run->text = sbx_script_marked_text(&op->arena, input);
	if (run->text == NULL || !sbx_script_is_long(run->text) ||
	    !sbx_json_is_text(run->text))
		return;
	path = sbx_script_stored_path(&op->arena, input->run_id);
	text = sbx_script_stored_text(&op->arena, input->run_id, run->text);
	run->text = sbx_script_source_text(&op->arena, input->run_id);
	if (text == NULL || path == NULL ||
	    !sbx_vercel_pack(op, path, text, strlen(text), &run->archive))
		run->text = NULL;
}

static SbxOpWant
vercel_run_start(SbxOp *op)
{
	return sbx_vercel_open(op, vercel_run_opened);
}

static SbxOpWant
vercel_run_execute(SbxOp *op)
{
	SbxVercelRun *run = op->state;

	return sbx_vercel_execute(op, run->text, run->timeout_ms, run->max_stream,
	                          run->run_id, vercel_run_executed);
}

static SbxOpWant
vercel_run_opened(SbxOp *op)
{
	SbxVercelRun *run = op->state;

	return run->archive.bytes == NULL
	           ? vercel_run_execute(op)
	           : sbx_vercel_send_archive(op, &run->archive, vercel_run_stored);
}

static SbxOpWant
vercel_run_stored(SbxOp *op)
{
	return sbx_steps_is_success(op)
	           ? vercel_run_execute(op)
	           : sbx_vercel_fail_in_session(op, sbx_steps_status_code(op));
}

/* --- what came out of it -------------------------------------------------- */

/* Only a refusal proves that the script did not start. */
static bool
vercel_may_be_running(const SbxOp *op)
{
	return sbx_steps_is_success(op) ||
	       (!sbx_steps_is_refusal(op) && op->response.status != 429);
}

static bool
vercel_was_killed(const SbxOp *op)
{
	const SbxVercelProcess *process = &((SbxVercelCommand *) op->state)->process;

	return !process->garbled && !process->has_error &&
	       !sbx_marks_complete(&process->marked) && process->ended &&
	       process->exit_code == VERCEL_EXIT_KILLED;
}

static SbxOpWant
vercel_run_kill(SbxOp *op)
{
	SbxVercelRun *run = op->state;

	run->command.state.steps.tidying = true;
	return sbx_vercel_execute(op, run->kill_text, VERCEL_KILL_MS, 0, NULL,
	                          vercel_run_killed);
}

static SbxOpWant
vercel_run_executed(SbxOp *op)
{
	SbxVercelRun *run = op->state;
	SbxSteps *steps = op->state;
	int exit_code;
	bool has_ended = sbx_vercel_has_ended(op, &exit_code);
	bool may_be_running = vercel_may_be_running(op);

	steps->acted = sbx_steps_may_have_arrived(op);
	run->timed_out = op->response.timed_out || op->expired || vercel_was_killed(op);
	if (has_ended && !vercel_was_killed(op))
		return sbx_op_succeed(
		    op, sbx_marks_result(&op->arena, &run->command.process.marked, exit_code));
	if (run->timed_out)
	{
		sbx_steps_note(op, "TIMEOUT_NOT_KILLED");
		steps->noted.timed_out = true;
	}
	else
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		if (op->response.status == 200)
			steps->noted.phase = SBX_PHASE_PROTOCOL;
	}
	return may_be_running ? vercel_run_kill(op) : sbx_vercel_fail_noted_in_session(op);
}

/*
 * Without a group of its own the script was the shell's, which the provider ended itself:
 * "no such group" confirms a timeout as well.  So does a session that is over, and with it
 * everything in it; of a script that had time left it took the end along.  Anything else
 * confirms nothing.
 */
static SbxOpWant
vercel_run_killed(SbxOp *op)
{
	SbxVercelRun *run = op->state;
	SbxSteps *steps = op->state;
	bool is_over = op->response.status == 410;
	int exit_code;

	if (run->timed_out &&
	    (is_over || (sbx_vercel_has_ended(op, &exit_code) && !vercel_was_killed(op))))
		steps->noted.provider_code = "TIMEOUT";
	else if (is_over)
		steps->noted.provider_code = "SCRIPT_LOST";
	return sbx_vercel_fail_noted_in_session(op);
}
