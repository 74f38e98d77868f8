/*
 * microsandbox_run.c
 *		Running a script in a Microsandbox sandbox.
 *
 * Leaving the socket kills the shell that the agent started.  What that started has a
 * process group of its own, which is killed by a command of its own.
 */
#include "providers/microsandbox.h"

#define MICROSANDBOX_RUN_TIMEOUT_MS (30 * 60 * 1000)

/* After the script's own time there must be enough left to kill it. */
#define MICROSANDBOX_RUN_EXTRA_MS (60 * 1000)

/* What the sandbox gets to kill a script; it takes milliseconds. */
#define MICROSANDBOX_KILL_MS 5000

typedef struct SbxMicrosandboxRun
{
	SbxMicrosandboxCommand command; /* first */
	const char *run_id;
	const char *text;
	const char *kill_text;
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
} SbxMicrosandboxRun;

static SbxStep microsandbox_run_start;
static SbxStep microsandbox_run_stored;
static SbxStep microsandbox_run_executed;
static SbxStep microsandbox_run_killed;

SbxOp *
sbx_microsandbox_run_script(const SbxAccount *account, const SbxTarget *target,
                            const SbxRunInput *input)
{
	int64_t timeout_ms =
	    input->timeout_ms > 0 ? input->timeout_ms : MICROSANDBOX_RUN_TIMEOUT_MS;
	SbxMicrosandboxRun *run;
	SbxOp *op;

	if (timeout_ms > INT64_MAX - MICROSANDBOX_RUN_EXTRA_MS)
		timeout_ms = INT64_MAX - MICROSANDBOX_RUN_EXTRA_MS;
	op = sbx_microsandbox_make_op(account, "runScript", microsandbox_run_start,
	                              sizeof(SbxMicrosandboxRun), MICROSANDBOX_ARENA_SMALL,
	                              timeout_ms + MICROSANDBOX_RUN_EXTRA_MS);
	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->command.state.steps.timeout_code = "TIMEOUT";
	sbx_microsandbox_set_target(op, target);
	if (sbx_script_valid(input))
	{
		run->run_id = sbx_arena_strdup(&op->arena, input->run_id);
		run->text = sbx_script_marked_text(&op->arena, input);
		run->kill_text = sbx_script_kill_text(&op->arena, input->run_id);
	}
	if (run->text == NULL || run->kill_text == NULL || !sbx_json_is_text(run->text))
		run->command.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_run_execute(SbxOp *op, const char *text)
{
	SbxMicrosandboxRun *run = op->state;
	SbxMicrosandboxCommandLine line = {.text = text,
	                                   .timeout_ms = run->timeout_ms,
	                                   .max_stream = run->max_stream,
	                                   .mark = run->run_id};

	return text == NULL
	           ? sbx_steps_fail(op, SBX_PHASE_NONE, NULL)
	           : sbx_microsandbox_execute(op, &line, microsandbox_run_executed);
}

static SbxOpWant
microsandbox_run_start(SbxOp *op)
{
	SbxMicrosandboxRun *run = op->state;

	return sbx_microsandbox_is_long(run->text)
	           ? sbx_microsandbox_store(op, run->run_id, run->text,
	                                    microsandbox_run_stored)
	           : microsandbox_run_execute(op, run->text);
}

static SbxOpWant
microsandbox_run_stored(SbxOp *op)
{
	SbxMicrosandboxRun *run = op->state;
	int exit_code;

	if (!sbx_microsandbox_has_ended(op, &exit_code))
		return sbx_microsandbox_fail_exec(op, NULL);
	if (exit_code != 0)
		return sbx_microsandbox_fail_exec(op, "NOT_RUN");
	return microsandbox_run_execute(op, sbx_microsandbox_stored_text(op, run->run_id));
}

/* --- what came out of it ---------------------------------------------------- */

static SbxOpWant
microsandbox_run_kill(SbxOp *op)
{
	SbxMicrosandboxRun *run = op->state;
	SbxMicrosandboxCommandLine line = {.text = run->kill_text,
	                                   .timeout_ms = MICROSANDBOX_KILL_MS};

	run->command.state.steps.tidying = true;
	return sbx_microsandbox_execute(op, &line, microsandbox_run_killed);
}

/* Only what was asked of the agent can be running, unless it said no. */
static SbxOpWant
microsandbox_run_executed(SbxOp *op)
{
	SbxMicrosandboxRun *run = op->state;
	const SbxMicrosandboxExec *exec = &run->command.exec;
	SbxSteps *steps = op->state;
	int exit_code;

	steps->acted = exec->asked;
	if (sbx_microsandbox_has_ended(op, &exit_code))
		return sbx_op_succeed(
		    op, sbx_marks_result(&op->arena, &run->command.exec.marked, exit_code));
	if (!exec->asked || exec->not_run)
		return sbx_microsandbox_fail_exec(op, NULL);
	run->timed_out = exec->timed_out || op->response.timed_out || op->expired;
	sbx_microsandbox_note_exec(op, run->timed_out ? "TIMEOUT_NOT_KILLED" : NULL);
	steps->noted.timed_out |= run->timed_out;
	return microsandbox_run_kill(op);
}

/*
 * Without a group of its own the script was the shell's, which the agent has killed:
 * "no such group" confirms a timeout as well.  Anything else does not.
 */
static SbxOpWant
microsandbox_run_killed(SbxOp *op)
{
	SbxMicrosandboxRun *run = op->state;
	SbxSteps *steps = op->state;
	int exit_code;

	if (run->timed_out && sbx_microsandbox_has_ended(op, &exit_code))
		steps->noted.provider_code = "TIMEOUT";
	return sbx_steps_fail_noted(op, steps->noted.provider_code);
}
