/*
 * agent37_run.c
 *		Running a script in an Agent37 instance.
 *
 * One request, which lasts as long as the command.  Nothing ends a command early, not
 * even a broken connection, so the text ends its script itself.  The provider gives up on
 * a command after 280 s, with an answer that proves nothing: no text may last that long.
 */
#include <string.h>

#include "providers/agent37.h"

/* Time for the answer beyond the script's own, and to kill one whose answer is lost. */
#define AGENT37_ANSWER_EXTRA_MS (20 * 1000)
#define AGENT37_RUN_EXTRA_MS    (120 * 1000)
#define AGENT37_KILL_MS         (10 * 1000)

/* Two streams of 512 KB, of which a control byte takes six in JSON. */
#define AGENT37_ANSWER_MAX ((size_t) 8 * 1024 * 1024)

typedef struct SbxAgent37Run
{
	SbxAgent37State state; /* first */
	const char *run_id;
	const char *text; /* of a long script, which goes through a file */
	const char *body;
	const char *kill_body;
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
} SbxAgent37Run;

static SbxStep agent37_run_start;
static SbxStep agent37_run_store;
static SbxStep agent37_run_answered;
static SbxStep agent37_run_execute;
static SbxStep agent37_run_executed;
static SbxStep agent37_run_killed;
static SbxStep agent37_run_looked;

/* The texts, as far as there is memory for them. */
static void
agent37_run_write(SbxOp *op, const SbxRunInput *given)
{
	SbxAgent37Run *run = op->state;
	SbxRunInput input = *given;
	const char *text;

	input.timeout_ms = run->timeout_ms;
	run->run_id = sbx_arena_strdup(&op->arena, input.run_id);
	text = sbx_script_bounded_text(&op->arena, &input);
	if (text == NULL || run->run_id == NULL)
		return;
	if (sbx_script_is_long(text))
	{
		run->text = sbx_script_stored_text(&op->arena, run->run_id, text);
		text = sbx_script_source_text(&op->arena, run->run_id);
	}
	run->body = sbx_agent37_exec_body(op, text);
	run->kill_body =
	    sbx_agent37_exec_body(op, sbx_script_kill_text(&op->arena, run->run_id));
}

SbxOp *
sbx_agent37_run_script(const SbxAccount *account, const SbxTarget *target,
                       const SbxRunInput *input)
{
	bool can_be_kept =
	    input->timeout_ms > 0 && input->timeout_ms <= AGENT37_SCRIPT_MAX_MS;
	int64_t timeout_ms = can_be_kept ? input->timeout_ms : AGENT37_SCRIPT_MAX_MS;
	SbxOp *op = sbx_agent37_make_op(account, "runScript", agent37_run_start,
	                                sizeof(SbxAgent37Run), AGENT37_ARENA_SMALL,
	                                timeout_ms + AGENT37_RUN_EXTRA_MS);
	SbxAgent37Run *run;

	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->state.steps.timeout_code = "TIMEOUT";
	sbx_agent37_set_target(op, target);
	if (sbx_script_valid(input))
		agent37_run_write(op, input);
	if (run->body == NULL || run->kill_body == NULL || !can_be_kept)
		run->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_run_start(SbxOp *op)
{
	SbxAgent37Run *run = op->state;

	return run->text != NULL ? sbx_agent37_open(op, agent37_run_store)
	                         : agent37_run_execute(op);
}

/* --- through a file --------------------------------------------------------- */

static SbxOpWant
agent37_run_store(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	const char *path = sbx_script_stored_path(&op->arena, run->run_id);
	SbxOpWant want;

	if (path == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	want = sbx_agent37_send_file(op, path, run->text, strlen(run->text),
	                             agent37_run_answered);
	op->request.timeout_ms = AGENT37_RUN_EXTRA_MS / 2;
	return want;
}

static SbxOpWant
agent37_run_answered(SbxOp *op)
{
	SbxAgent37Run *run = op->state;

	return sbx_steps_is_success(op)
	           ? sbx_agent37_file_stored(op, strlen(run->text), agent37_run_execute)
	           : sbx_agent37_file_refused(op, agent37_run_store);
}

/* --- the script ------------------------------------------------------------- */

static SbxOpWant
agent37_run_execute(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	SbxOpWant want = sbx_agent37_exec(op, run->body, agent37_run_executed);

	op->request.timeout_ms = run->timeout_ms + AGENT37_ANSWER_EXTRA_MS;
	op->request.max_response = AGENT37_ANSWER_MAX;
	return want;
}

/*
 * NULL when the answer is malformed or memory is short.  What the provider has cut out is
 * missing in the middle of a stream.
 */
static SbxRunResult *
agent37_run_result(SbxOp *op, const json_t *answer, size_t maximum)
{
	SbxRunResult *result = sbx_arena_alloc(&op->arena, sizeof(*result));
	SbxScriptOutput output = {0};

	if (result == NULL || answer == NULL ||
	    !sbx_script_take_exit_code(answer, "exit_code", result))
		return NULL;
	sbx_script_take_stream(&op->arena, answer, "stdout", maximum, &output.out);
	sbx_script_take_stream(&op->arena, answer, "stderr", maximum, &output.err);
	sbx_script_join(&op->arena, &output);
	sbx_script_store(&output, result);
	result->truncated |= json_is_true(json_object_get(answer, "truncated"));
	return op->arena.out_of_memory ? NULL : result;
}

/* Only a refusal proves that the script did not start. */
static bool
agent37_may_be_running(const SbxOp *op)
{
	int status = op->response.status;

	if (status == 0)
		return sbx_steps_may_have_arrived(op);
	return status < 400 || status == 408 || status >= 500;
}

/* Its own end is lost, but not what ends it: another command. */
static SbxOpWant
agent37_run_kill(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	SbxOpWant want;

	run->state.steps.tidying = true;
	want = sbx_agent37_exec(op, run->kill_body, agent37_run_killed);
	op->request.repeatable = true;
	op->request.timeout_ms = AGENT37_KILL_MS;
	return want;
}

static SbxOpWant
agent37_run_failed(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	SbxSteps *steps = op->state;
	SbxAllocation allocation;

	run->timed_out =
	    op->response.status == 0 && (op->response.timed_out || op->expired);
	if (run->timed_out)
		sbx_steps_note(op, "TIMEOUT_NOT_KILLED");
	else if (op->response.too_large)
		sbx_steps_note(op, "OUTPUT_TOO_LARGE");
	else
		sbx_steps_note(op, sbx_agent37_error_code(op, &allocation));
	if (sbx_steps_is_success(op))
		steps->noted.phase = SBX_PHASE_PROTOCOL;
	if (agent37_may_be_running(op))
		return agent37_run_kill(op);
	if (op->response.status == 404)
		return sbx_steps_fail_noted(op, "SANDBOX_GONE");
	if (op->response.status != 400)
		return sbx_steps_fail_noted(op, steps->noted.provider_code);

	/* Refused: because it does not run? */
	steps->tidying = true;
	return sbx_agent37_look(op, agent37_run_looked);
}

static SbxOpWant
agent37_run_executed(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	SbxSteps *steps = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	SbxRunResult *result =
	    answer == NULL ? NULL : agent37_run_result(op, answer, run->max_stream);

	json_decref(answer);
	steps->acted = sbx_steps_may_have_arrived(op);
	if (result == NULL)
		return agent37_run_failed(op);
	if (!sbx_script_ran_out_of_time(&op->arena, result, run->run_id))
		return sbx_op_succeed(op, result);
	sbx_steps_fail_response(op, "TIMEOUT");
	op->failure.timed_out = true;
	return SBX_OP_WANT_NOTHING;
}

/* That there was nothing to kill is no confirmation: without a group nothing is found. */
static SbxOpWant
agent37_run_killed(SbxOp *op)
{
	SbxAgent37Run *run = op->state;
	SbxSteps *steps = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	int64_t exit_code = -1;
	bool killed = sbx_json_integer(answer, "exit_code", &exit_code) && exit_code == 0;

	json_decref(answer);
	return sbx_steps_fail_noted(
	    op, run->timed_out && killed ? "TIMEOUT" : steps->noted.provider_code);
}

static SbxOpWant
agent37_run_looked(SbxOp *op)
{
	SbxSteps *steps = op->state;
	json_t *instance = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	bool runs = sbx_agent37_state(instance) == SBX_STATE_STARTED;

	json_decref(instance);
	if (op->response.status == 404)
		return sbx_steps_fail_noted(op, "SANDBOX_GONE");
	return sbx_steps_fail_noted(op, runs ? steps->noted.provider_code : "NOT_STARTED");
}
