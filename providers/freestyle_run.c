/*
 * freestyle_run.c
 *		Running a script in a machine of Freestyle's.
 *
 * The provider ends a command at its time and answers without an exit code.  That is the
 * last resort: the text ends its script itself, and then says so.  The text also keeps what
 * the script prints to what is wanted of it, because the provider keeps no answer that is
 * too long, and then nobody knows how the script has ended.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_RUN_TIMEOUT_MS (30 * 60 * 1000)

/* So much longer than the script's time is the command's, which has to end it and tell. */
#define FREESTYLE_COMMAND_EXTRA_MS 5000

/* Of more the provider wants to be asked otherwise, which older machines cannot. */
#define FREESTYLE_COMMAND_SHORT_MS (300 * 1000)

/*
 * Time for the answer beyond the command's own, and for all that comes before and after;
 * of which some is kept to kill a command whose answer does not come.
 */
#define FREESTYLE_ANSWER_EXTRA_MS (15 * 1000)
#define FREESTYLE_RUN_EXTRA_MS    (120 * 1000)
#define FREESTYLE_KEPT_MS         (30 * 1000)
#define FREESTYLE_KILL_MS         (10 * 1000)

/* As permissions are written there, in decimal: only for its user, who may run it. */
#define FREESTYLE_MODE_PRIVATE "448"

typedef struct SbxFreestyleRun
{
	SbxFreestyleWriter writer; /* first; its file is a long script's */
	const char *run_id;
	const char *body;
	const char *kill_body;
	int64_t command_ms;
	size_t max_stream;
	bool timed_out;
} SbxFreestyleRun;

static SbxStep freestyle_run_start;
static SbxStep freestyle_run_opened;
static SbxStep freestyle_run_execute;
static SbxStep freestyle_run_executed;
static SbxStep freestyle_run_killed;

/* --- what is sent ------------------------------------------------------------ */

/* The command's own time; of a script whose time is just short enough it is no longer. */
static int64_t
freestyle_command_ms(int64_t script_ms)
{
	int64_t limit = script_ms <= FREESTYLE_COMMAND_SHORT_MS ? FREESTYLE_COMMAND_SHORT_MS
	                                                        : FREESTYLE_SCRIPT_MAX_MS;

	return script_ms < limit - FREESTYLE_COMMAND_EXTRA_MS
	           ? script_ms + FREESTYLE_COMMAND_EXTRA_MS
	           : limit;
}

/* The texts, as far as there is memory for them. */
static void
freestyle_run_write(SbxOp *op, const SbxRunInput *given, int64_t script_ms)
{
	SbxFreestyleRun *run = op->state;
	SbxFreestyleFile *file = &run->writer.file;
	SbxRunInput input = *given;
	const char *text;

	input.timeout_ms = script_ms;
	run->run_id = sbx_arena_strdup(&op->arena, input.run_id);
	text = sbx_script_bounded_text(&op->arena, &input);
	if (text == NULL || run->run_id == NULL || !sbx_json_is_text(text))
		return;
	if (strlen(text) > FREESTYLE_COMMAND_MAX)
	{
		file->path = sbx_script_stored_path(&op->arena, run->run_id);
		file->bytes = sbx_script_stored_text(&op->arena, run->run_id, text);
		file->length = file->bytes == NULL ? 0 : strlen(file->bytes);
		file->mode = FREESTYLE_MODE_PRIVATE;
		file->stored = freestyle_run_execute;
		text = sbx_script_source_text(&op->arena, run->run_id);
	}
	run->body = sbx_freestyle_exec_body(op, text, run->command_ms);
	run->kill_body = sbx_freestyle_exec_body(
	    op, sbx_script_kill_text(&op->arena, run->run_id), FREESTYLE_KILL_MS);
}

SbxOp *
sbx_freestyle_run_script(const SbxAccount *account, const SbxTarget *target,
                         const SbxRunInput *input)
{
	bool can_be_kept = input->timeout_ms <= FREESTYLE_SCRIPT_MAX_MS;
	int64_t script_ms = input->timeout_ms > 0 && can_be_kept ? input->timeout_ms
	                                                         : FREESTYLE_RUN_TIMEOUT_MS;
	int64_t command_ms = freestyle_command_ms(script_ms);
	SbxOp *op = sbx_freestyle_make_op(account, "runScript", freestyle_run_start,
	                                  sizeof(SbxFreestyleRun), FREESTYLE_ARENA_SMALL,
	                                  command_ms + FREESTYLE_RUN_EXTRA_MS);
	SbxFreestyleRun *run;

	if (op == NULL)
		return NULL;
	run = op->state;
	run->command_ms = command_ms;
	run->max_stream = input->max_stream;
	run->writer.state.steps.timeout_code = "TIMEOUT";
	sbx_freestyle_set_target(op, target);
	if (sbx_script_valid(input))
		freestyle_run_write(op, input, script_ms);
	if (run->body == NULL || run->kill_body == NULL || !can_be_kept)
		run->writer.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
freestyle_run_start(SbxOp *op)
{
	return sbx_freestyle_open(op, freestyle_run_opened);
}

static SbxOpWant
freestyle_run_opened(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;

	return run->writer.file.path != NULL ? sbx_freestyle_store(op)
	                                     : freestyle_run_execute(op);
}

/* Until when its answer is waited for, if it began now; less if much time has gone. */
static int64_t
freestyle_run_end_ms(const SbxOp *op)
{
	const SbxFreestyleRun *run = op->state;
	int64_t last_ms = op->timeout_ms - FREESTYLE_KEPT_MS;
	int64_t end_ms = op->elapsed_ms + run->command_ms + FREESTYLE_ANSWER_EXTRA_MS;

	return end_ms < last_ms ? end_ms : last_ms;
}

static SbxOpWant
freestyle_run_too_late(SbxOp *op)
{
	sbx_steps_fail(op, SBX_PHASE_NONE, "TIMEOUT");
	op->failure.timed_out = true;
	return SBX_OP_WANT_NOTHING;
}

/* Two streams, of which a control byte takes six in JSON. */
static SbxOpWant
freestyle_run_execute(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;
	int64_t end_ms = freestyle_run_end_ms(op);
	SbxOpWant want;

	if (end_ms <= op->elapsed_ms)
		return freestyle_run_too_late(op);
	want = sbx_freestyle_exec(op, run->body, freestyle_run_executed);
	run->writer.state.answer_by_ms = end_ms;
	op->request.timeout_ms = end_ms - op->elapsed_ms;
	op->request.max_response = SIZE_MAX;
	if (run->max_stream < SIZE_MAX / 16)
		op->request.max_response = 12 * run->max_stream + 64 * 1024;
	return want;
}

/* --- what came out of it ------------------------------------------------------ */

/* NULL when the answer is malformed or memory is short. */
static SbxRunResult *
freestyle_run_result(SbxOp *op, size_t maximum)
{
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	SbxRunResult *result = sbx_arena_alloc(&op->arena, sizeof(*result));
	SbxScriptOutput output = {0};
	bool right = answer != NULL && result != NULL &&
	             sbx_script_take_exit_code(answer, "statusCode", result);

	if (right)
	{
		sbx_script_take_stream(&op->arena, answer, "stdout", maximum, &output.out);
		sbx_script_take_stream(&op->arena, answer, "stderr", maximum, &output.err);
		sbx_script_join(&op->arena, &output);
		sbx_script_store(&output, result);
	}
	json_decref(answer);
	return right && !op->arena.out_of_memory ? result : NULL;
}

/*
 * Only a refusal proves that the script did not start.  409 is a machine that changes its
 * state, or went away: then there is nothing to kill.
 */
static bool
freestyle_may_be_running(const SbxOp *op)
{
	int status = op->response.status;

	if (status == 0)
		return sbx_steps_may_have_arrived(op);
	return status < 400 || status == 408 || status >= 500;
}

/* Its own end is lost, but not what ends it: another command. */
static SbxOpWant
freestyle_run_kill(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;
	SbxOpWant want;

	run->writer.state.steps.tidying = true;
	want = sbx_freestyle_exec(op, run->kill_body, freestyle_run_killed);
	op->request.repeatable = true;
	op->request.timeout_ms = FREESTYLE_KILL_MS;
	return want;
}

static SbxOpWant
freestyle_run_failed(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;
	SbxSteps *steps = op->state;
	const char *code = sbx_freestyle_code(op);

	/* It has ended, nobody knows how; it is not run again. */
	if (code != NULL && strcmp(code, "RESULT_UNSTORABLE") == 0)
		return sbx_steps_fail_response(op, "OUTPUT_TOO_LARGE");
	run->timed_out =
	    op->response.status == 0 && (op->response.timed_out || op->expired);
	if (run->timed_out)
		code = "TIMEOUT_NOT_KILLED";
	else if (op->response.too_large)
		code = "OUTPUT_TOO_LARGE";
	sbx_steps_note(op, code);
	if (sbx_steps_is_success(op))
		steps->noted.phase = SBX_PHASE_PROTOCOL;
	if (freestyle_may_be_running(op))
		return freestyle_run_kill(op);
	if (op->response.status == 404 || op->response.status == 409)
		return sbx_freestyle_explain(op, code);
	return sbx_steps_fail_noted(op, code);
}

static SbxOpWant
freestyle_run_out_of_time(SbxOp *op)
{
	sbx_steps_fail_response(op, "TIMEOUT");
	op->failure.timed_out = true;
	return SBX_OP_WANT_NOTHING;
}

/*
 * Without an exit code the provider has ended the command.  It says that what the command
 * started has ended, too; what has a group of its own is killed all the same.
 */
static SbxOpWant
freestyle_run_executed(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;
	SbxSteps *steps = op->state;
	SbxRunResult *result = freestyle_run_result(op, run->max_stream);

	steps->acted |= sbx_steps_may_have_arrived(op);
	if (result == NULL)
		return freestyle_run_failed(op);
	if (!result->has_exit_code)
	{
		run->timed_out = true;
		sbx_steps_note(op, "TIMEOUT");
		steps->noted.timed_out = true;
		return freestyle_run_kill(op);
	}
	return sbx_script_ran_out_of_time(&op->arena, result, run->run_id)
	           ? freestyle_run_out_of_time(op)
	           : sbx_op_succeed(op, result);
}

/* That there was nothing to kill is no confirmation: without a group nothing is found. */
static SbxOpWant
freestyle_run_killed(SbxOp *op)
{
	SbxFreestyleRun *run = op->state;
	SbxSteps *steps = op->state;
	SbxRunResult *result = freestyle_run_result(op, 0);
	bool killed = result != NULL && result->has_exit_code && result->exit_code == 0;

	return sbx_steps_fail_noted(
	    op, run->timed_out && killed ? "TIMEOUT" : steps->noted.provider_code);
}
