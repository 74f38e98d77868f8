/*
 * e2b_run.c
 *		Running a script in an E2B sandbox.
 *
 * The daemon ends a command at its time, but only the shell that it started: what that
 * started has a process group of its own, which is killed by a command of its own.
 */
#include <limits.h>
#include <string.h>

#include "providers/e2b.h"

#define E2B_RUN_TIMEOUT_MS (30 * 60 * 1000)

/* After the script's own time there must be enough left to kill it. */
#define E2B_RUN_EXTRA_MS (60 * 1000)

/* The sandbox has to outlive the script. */
#define E2B_LIFETIME_EXTRA_S 60

/* What the sandbox gets to kill a script; it takes milliseconds. */
#define E2B_KILL_MS 5000

typedef struct SbxE2bRun
{
	SbxE2bCommand command; /* first */
	const char *run_id;
	const char *text;
	const char *kill_text;
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
} SbxE2bRun;

static SbxStep e2b_run_start;
static SbxStep e2b_run_extend;
static SbxStep e2b_run_extended;
static SbxStep e2b_run_stored;
static SbxStep e2b_run_executed;
static SbxStep e2b_run_killed;

SbxOp *
sbx_e2b_run_script(const SbxAccount *account, const SbxTarget *target,
                   const SbxRunInput *input)
{
	int64_t timeout_ms = input->timeout_ms > 0 ? input->timeout_ms : E2B_RUN_TIMEOUT_MS;
	SbxE2bRun *run;
	SbxOp *op;

	if (timeout_ms > INT64_MAX - E2B_RUN_EXTRA_MS)
		timeout_ms = INT64_MAX - E2B_RUN_EXTRA_MS;
	op = sbx_e2b_make_op(account, "runScript", e2b_run_start, sizeof(SbxE2bRun),
	                     E2B_ARENA_SMALL, timeout_ms + E2B_RUN_EXTRA_MS);
	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->command.state.steps.timeout_code = "TIMEOUT";
	sbx_e2b_set_target(op, target);
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
e2b_run_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_run_extend);
}

/* A sandbox whose time is over takes the script with it. */
static SbxOpWant
e2b_run_extend(SbxOp *op)
{
	SbxE2bRun *run = op->state;

	return sbx_e2b_extend(op, (run->timeout_ms + 999) / 1000 + E2B_LIFETIME_EXTRA_S,
	                      e2b_run_extended);
}

static SbxOpWant
e2b_run_execute(SbxOp *op, const char *text)
{
	SbxE2bRun *run = op->state;

	return sbx_e2b_execute(op, text, run->timeout_ms, run->max_stream, run->run_id,
	                       e2b_run_executed);
}

static SbxOpWant
e2b_run_extended(SbxOp *op)
{
	SbxE2bRun *run = op->state;

	return sbx_script_is_long(run->text)
	           ? sbx_e2b_store(op, run->run_id, run->text, e2b_run_stored)
	           : e2b_run_execute(op, run->text);
}

static SbxOpWant
e2b_run_stored(SbxOp *op)
{
	SbxE2bRun *run = op->state;

	if (!sbx_steps_is_success(op))
		return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	return e2b_run_execute(op, sbx_script_source_text(&op->arena, run->run_id));
}

/* --- what came out of it -------------------------------------------------- */

/* Only a refusal proves that the script did not start. */
static bool
e2b_may_be_running(const SbxOp *op)
{
	const SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	int status = op->response.status;

	if (status == 0)
		return sbx_steps_may_have_arrived(op);
	if (status == 200)
		return process->started || !process->has_error;
	return status == 408 || status >= 500;
}

/*
 * At the end of its time a command is killed and the stream cancelled at the same
 * moment: either can be what is told.
 */
static bool
e2b_ran_out_of_time(const SbxOp *op)
{
	const SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	return op->response.timed_out || op->expired || process->too_late ||
	       (process->ended && process->killed);
}

static SbxOpWant
e2b_run_kill(SbxOp *op)
{
	SbxE2bRun *run = op->state;

	run->command.state.steps.tidying = true;
	return sbx_e2b_execute(op, run->kill_text, E2B_KILL_MS, 0, NULL, e2b_run_killed);
}

static SbxOpWant
e2b_run_executed(SbxOp *op)
{
	SbxE2bRun *run = op->state;
	SbxSteps *steps = op->state;
	int exit_code;

	steps->acted = sbx_steps_may_have_arrived(op);
	if (!run->command.process.garbled && sbx_e2b_has_ended(op, &exit_code))
		return sbx_op_succeed(
		    op, sbx_marks_result(&op->arena, &run->command.process.marked, exit_code));
	run->timed_out = e2b_ran_out_of_time(op);
	if (run->timed_out)
	{
		sbx_steps_note(op, "TIMEOUT_NOT_KILLED");
		steps->noted.timed_out = true;
	}
	else if (op->response.status != 200)
		sbx_steps_note(op, NULL);
	else
	{
		/* The stream broke off, or said why there is none: only that proves it. */
		sbx_steps_note(op, e2b_may_be_running(op) ? NULL : "NOT_RUN");
		steps->noted.phase = SBX_PHASE_PROTOCOL;
	}
	return e2b_may_be_running(op) ? e2b_run_kill(op) : sbx_e2b_fail_noted_in_envd(op);
}

/*
 * Without a group of its own the script was the shell's, which the daemon ended
 * itself: "no such group" confirms a timeout as well.  Anything else does not.
 */
static SbxOpWant
e2b_run_killed(SbxOp *op)
{
	SbxE2bRun *run = op->state;
	SbxSteps *steps = op->state;
	int exit_code;

	if (run->timed_out && sbx_e2b_has_ended(op, &exit_code))
		steps->noted.provider_code = "TIMEOUT";
	return sbx_e2b_fail_noted_in_envd(op);
}
