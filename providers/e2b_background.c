/*
 * e2b_background.c
 *		Scripts in an E2B sandbox that nobody waits for.
 *
 * The daemon forgets a command soon after its end, and drops output that nobody reads.
 * So a script's output and exit code go to files in the sandbox, and a directory there
 * says whose a session is.
 */
#include <string.h>

#include "providers/e2b.h"

#define E2B_START_SCRIPT_MS (30 * 1000)
#define E2B_ASK_SCRIPT_MS   (30 * 1000)

/* What the sandbox gets to print a file; it takes milliseconds. */
#define E2B_PRINT_MS 8000

/* More than any of these texts prints. */
#define E2B_STATUS_MAX 256

/* A script that is started without a lifetime gets as long as one that is waited for. */
#define E2B_BACKGROUND_LIFETIME_S (30 * 60)

typedef struct SbxE2bBackground
{
	SbxE2bCommand command; /* first */
	const char *fingerprint;
	const char *text;
	const char *claim_text;
	const char *status_text;
	const char *log_texts[2];
	size_t max_stream;
	SbxScriptOutput output;
	SbxStartedScript started;
	SbxScriptStatus status;
} SbxE2bBackground;

static SbxStep e2b_background_start;
static SbxStep e2b_background_extend;
static SbxStep e2b_background_extended;
static SbxStep e2b_background_claimed;
static SbxStep e2b_background_stored;
static SbxStep e2b_background_spawned;
static SbxStep e2b_background_checked;
static SbxStep e2b_status_start;
static SbxStep e2b_status_ask;
static SbxStep e2b_status_read;
static SbxStep e2b_logs_start;
static SbxStep e2b_logs_ask;
static SbxStep e2b_logs_read_out;
static SbxStep e2b_logs_read_err;

/* What the last text printed; NULL = it did not run to its end. */
static const char *
e2b_printed(SbxOp *op, int *exit_code)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	if (process->garbled || !sbx_e2b_has_ended(op, exit_code))
		return NULL;
	if (process->output.out.bytes == NULL)
		return "";
	process->output.out.bytes[process->output.out.length] = '\0';
	return process->output.out.bytes;
}

/* --- start ---------------------------------------------------------------- */

SbxOp *
sbx_e2b_start_script(const SbxAccount *account, const SbxTarget *target,
                     const SbxRunInput *input)
{
	SbxOp *op = sbx_e2b_make_op(account, "startScript", e2b_background_start,
	                            sizeof(SbxE2bBackground), E2B_ARENA_SMALL,
	                            input->timeout_ms > 0 ? input->timeout_ms
	                                                  : E2B_START_SCRIPT_MS);
	SbxE2bBackground *background;

	if (op == NULL)
		return NULL;
	background = op->state;
	sbx_e2b_set_target(op, target);
	if (sbx_script_valid(input) && sbx_steps_valid_id(input->run_id))
	{
		background->text = sbx_script_background_text(&op->arena, input);
		background->status_text = sbx_script_status_text(&op->arena, input->run_id);
		background->started.session_id = sbx_arena_strdup(&op->arena, input->run_id);
	}
	if (background->text != NULL)
	{
		background->fingerprint = sbx_script_fingerprint(&op->arena, background->text);
		background->claim_text =
		    sbx_script_claim_text(&op->arena, input->run_id, background->fingerprint);
		background->started.command_id = background->fingerprint;
	}
	if (background->claim_text == NULL || !sbx_e2b_can_carry(background->text))
		background->command.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_background_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_background_extend);
}

static SbxOpWant
e2b_background_extend(SbxOp *op)
{
	SbxE2bState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/timeout", state->control_url);
	int64_t seconds = state->lifetime_s > E2B_BACKGROUND_LIFETIME_S
	                      ? state->lifetime_s
	                      : E2B_BACKGROUND_LIFETIME_S;
	const char *body =
	    sbx_arena_printf(&op->arena, "{\"timeout\":%lld}", (long long) seconds);
	SbxOpWant want = sbx_e2b_send(op, "POST", url, body, e2b_background_extended);

	op->request.repeatable = true;
	return want;
}

static SbxOpWant
e2b_background_extended(SbxOp *op)
{
	SbxE2bBackground *background = op->state;

	if (op->response.status == 404)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	if (!sbx_steps_is_success(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	return sbx_e2b_execute(op, background->claim_text, E2B_PRINT_MS, E2B_STATUS_MAX,
	                       NULL, e2b_background_claimed);
}

static SbxOpWant
e2b_background_spawn(SbxOp *op)
{
	SbxE2bBackground *background = op->state;

	return sbx_e2b_is_long(background->text)
	           ? sbx_e2b_store(op, background->started.session_id, background->text,
	                           e2b_background_stored)
	           : sbx_e2b_spawn(op, background->text, e2b_background_spawned);
}

static SbxOpWant
e2b_background_stored(SbxOp *op)
{
	SbxE2bBackground *background = op->state;

	if (!sbx_steps_is_success(op))
		return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	return sbx_e2b_spawn(op, sbx_e2b_stored_text(op, background->started.session_id),
	                     e2b_background_spawned);
}

/*
 * Whose is the session?  Ours without a trace is one whose start was lost; the text
 * itself sees to it that it runs once.
 */
static SbxOpWant
e2b_background_claimed(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	int exit_code;
	const char *printed = e2b_printed(op, &exit_code);
	const char *rest;

	if (printed == NULL)
		return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	if (strcmp(printed, "new\n") == 0)
		return e2b_background_spawn(op);
	rest = strchr(printed, '\n');
	if (rest == NULL || (size_t) (rest - printed) != strlen(background->fingerprint) ||
	    strncmp(printed, background->fingerprint, (size_t) (rest - printed)) != 0)
		return sbx_steps_fail_response(op, "SESSION_IN_USE");
	background->started.reconciled = true;
	return sbx_script_read_status(rest + 1, &exit_code) == SBX_SCRIPT_IS_CLAIMED
	           ? e2b_background_spawn(op)
	           : sbx_op_succeed(op, &background->started);
}

static SbxOpWant
e2b_background_spawned(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	const SbxE2bProcess *process = &background->command.process;
	SbxSteps *steps = op->state;

	steps->acted = sbx_steps_may_have_arrived(op);
	if (op->response.status == 200 && process->started)
		return sbx_op_succeed(op, &background->started);
	sbx_steps_note(op, sbx_steps_status_code(op));
	if (steps->noted.phase == SBX_PHASE_NONE || steps->noted.http_status == 200)
		steps->noted.phase = SBX_PHASE_PROTOCOL;

	/* Refused, or told that there is nothing to run: then it does not. */
	if ((op->response.status == 200 && process->has_error) ||
	    (op->response.status != 200 && !sbx_steps_is_passing(op)) || !steps->acted)
		return sbx_e2b_fail_noted_in_envd(op);
	return sbx_e2b_execute(op, background->status_text, E2B_PRINT_MS, E2B_STATUS_MAX,
	                       NULL, e2b_background_checked);
}

static SbxOpWant
e2b_background_checked(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	int exit_code;
	const char *printed = e2b_printed(op, &exit_code);
	SbxScriptWord word = printed == NULL ? SBX_SCRIPT_GARBAGE
	                                     : sbx_script_read_status(printed, &exit_code);

	if (word != SBX_SCRIPT_ENDED && word != SBX_SCRIPT_IS_RUNNING)
		return sbx_e2b_fail_noted_in_envd(op);
	background->started.reconciled = true;
	return sbx_op_succeed(op, &background->started);
}

/* --- status --------------------------------------------------------------- */

static SbxOp *
e2b_make_ask(const SbxAccount *account, const char *operation, SbxStep *first_step,
             const SbxTarget *target, const SbxScriptTarget *script)
{
	SbxOp *op =
	    sbx_e2b_make_op(account, operation, first_step, sizeof(SbxE2bBackground),
	                    E2B_ARENA_SMALL, E2B_ASK_SCRIPT_MS);

	if (op == NULL)
		return NULL;
	sbx_e2b_set_target(op, target);
	if (!sbx_steps_valid_id(script->session_id))
		((SbxE2bState *) op->state)->steps.step = sbx_steps_refuse;
	return op;
}

SbxOp *
sbx_e2b_script_status(const SbxAccount *account, const SbxTarget *target,
                      const SbxScriptTarget *script)
{
	SbxOp *op = e2b_make_ask(account, "scriptStatus", e2b_status_start, target, script);

	if (op == NULL)
		return NULL;
	((SbxE2bBackground *) op->state)->status_text =
	    sbx_script_status_text(&op->arena, script->session_id);
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_status_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_status_ask);
}

static SbxOpWant
e2b_status_ask(SbxOp *op)
{
	SbxE2bBackground *background = op->state;

	return sbx_e2b_execute(op, background->status_text, E2B_PRINT_MS, E2B_STATUS_MAX,
	                       NULL, e2b_status_read);
}

static SbxOpWant
e2b_status_read(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	SbxScriptStatus *status = &background->status;
	int exit_code;
	const char *printed = e2b_printed(op, &exit_code);

	if (printed == NULL)
		return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	switch (sbx_script_read_status(printed, &status->exit_code))
	{
		case SBX_SCRIPT_ENDED:
			status->has_ended = true;
			return sbx_op_succeed(op, status);
		case SBX_SCRIPT_IS_RUNNING:
		case SBX_SCRIPT_IS_CLAIMED:
			return sbx_op_succeed(op, status);
		case SBX_SCRIPT_IS_LOST:
			return sbx_steps_fail_response(op, "SCRIPT_LOST");
		case SBX_SCRIPT_IS_NOTHING:
			return sbx_steps_fail_response(op, "SCRIPT_UNKNOWN");
		case SBX_SCRIPT_GARBAGE:
			break;
	}
	return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* --- logs ----------------------------------------------------------------- */

SbxOp *
sbx_e2b_script_logs(const SbxAccount *account, const SbxTarget *target,
                    const SbxScriptTarget *script)
{
	SbxOp *op = e2b_make_ask(account, "scriptLogs", e2b_logs_start, target, script);
	SbxE2bBackground *background;
	size_t maximum = script->max_stream < SIZE_MAX ? script->max_stream + 1 : SIZE_MAX;

	if (op == NULL)
		return NULL;
	background = op->state;
	background->max_stream = script->max_stream;

	/* One byte more than is kept shows that something was cut. */
	for (int i = 0; i < 2; i++)
		background->log_texts[i] =
		    sbx_script_log_text(&op->arena, script->session_id, i == 1, maximum);
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_logs_start(SbxOp *op)
{
	return sbx_e2b_open(op, e2b_logs_ask);
}

static SbxOpWant
e2b_logs_ask(SbxOp *op)
{
	SbxE2bBackground *background = op->state;

	return sbx_e2b_execute(op, background->log_texts[0], E2B_PRINT_MS,
	                       background->max_stream, NULL, e2b_logs_read_out);
}

/* A command that failed found no file.  NULL = "want" says how that ends. */
static const SbxScriptStream *
e2b_logs_take(SbxOp *op, SbxOpWant *want)
{
	SbxE2bBackground *background = op->state;
	int exit_code;

	if (e2b_printed(op, &exit_code) == NULL)
		*want = sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	else if (exit_code != 0)
		*want = sbx_steps_fail_response(op, "SCRIPT_UNKNOWN");
	else
		return &background->command.process.output.out;
	return NULL;
}

static SbxOpWant
e2b_logs_read_out(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	SbxOpWant want;
	const SbxScriptStream *stream = e2b_logs_take(op, &want);

	if (stream == NULL)
		return want;
	background->output.out = *stream;
	return sbx_e2b_execute(op, background->log_texts[1], E2B_PRINT_MS,
	                       background->max_stream, NULL, e2b_logs_read_err);
}

static SbxOpWant
e2b_logs_read_err(SbxOp *op)
{
	SbxE2bBackground *background = op->state;
	SbxOpWant want;
	const SbxScriptStream *stream = e2b_logs_take(op, &want);
	SbxRunResult *result;

	if (stream == NULL)
		return want;
	background->output.err = *stream;
	sbx_script_join(&op->arena, &background->output);
	result = sbx_arena_alloc(&op->arena, sizeof(*result));
	if (result != NULL)
		sbx_script_store(&background->output, result);
	return sbx_op_succeed(op, result);
}
