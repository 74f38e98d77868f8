/*
 * e2b_background.c
 *		Scripts in an E2B sandbox that nobody waits for.
 *
 * The daemon forgets a command soon after its end, and drops output that nobody reads.
 * So a script's output and exit code go to files in the sandbox, and a link there says
 * whose a name is.
 */
#include <string.h>

#include "providers/background.h"
#include "providers/e2b.h"

#define E2B_START_SCRIPT_MS (30 * 1000)
#define E2B_ASK_SCRIPT_MS   (30 * 1000)

/* What the sandbox gets to print a file; it takes milliseconds. */
#define E2B_PRINT_MS 8000

/* More than any of these texts prints. */
#define E2B_STATUS_MAX 4096

/* Nobody says how long it will run: as long as one that is waited for, at least. */
#define E2B_BACKGROUND_LIFETIME_S (30 * 60)

typedef struct SbxE2bBackground
{
	SbxE2bCommand command; /* first */
	SbxBackground background;
	const char *status_text;
	const char *log_texts[2];
	size_t max_stream;
	SbxScriptOutput output;
	SbxScriptStatus status;
} SbxE2bBackground;

static SbxStep e2b_background_start;
static SbxStep e2b_background_extend;
static SbxStep e2b_background_extended;
static SbxStep e2b_background_claimed;
static SbxStep e2b_background_spawn;
static SbxStep e2b_background_stored;
static SbxStep e2b_background_spawned;
static SbxStep e2b_background_check;
static SbxStep e2b_background_checked;
static SbxStep e2b_status_start;
static SbxStep e2b_status_ask;
static SbxStep e2b_status_read;
static SbxStep e2b_logs_start;
static SbxStep e2b_logs_ask;
static SbxStep e2b_logs_read_out;
static SbxStep e2b_logs_read_err;

static SbxBackground *
e2b_background(SbxOp *op)
{
	return &((SbxE2bBackground *) op->state)->background;
}

/* What the last text printed; NULL = it did not run to its end. */
static const char *
e2b_printed(SbxOp *op, int *exit_code)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	if (process->garbled || !sbx_e2b_has_ended(op, exit_code))
		return NULL;
	if (process->marked.output.out.bytes == NULL)
		return "";
	process->marked.output.out.bytes[process->marked.output.out.length] = '\0';
	return process->marked.output.out.bytes;
}

/* The word that it printed. */
static SbxScriptWord
e2b_read_word(SbxOp *op, int *exit_code)
{
	const char *printed = e2b_printed(op, exit_code);

	return sbx_script_read_status(printed, exit_code);
}

/* It printed a word that means this; NULL = none that answers the question. */
static SbxOpWant
e2b_fail_by_word(SbxOp *op, const char *code)
{
	int exit_code;

	if (code != NULL)
		return sbx_steps_fail_response(op, code);
	return e2b_printed(op, &exit_code) == NULL
	           ? sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op))
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
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
	SbxBackground *background;

	if (op == NULL)
		return NULL;
	background = e2b_background(op);
	background->deliver = e2b_background_spawn;
	background->look = e2b_background_check;
	background->give_up = sbx_e2b_fail_noted_in_envd;
	background->fail = e2b_fail_by_word;
	sbx_e2b_set_target(op, target);
	if (!sbx_background_write(&op->arena, background, input))
		((SbxSteps *) op->state)->step = sbx_steps_refuse;
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
	return sbx_e2b_extend(op, E2B_BACKGROUND_LIFETIME_S, e2b_background_extended);
}

static SbxOpWant
e2b_background_extended(SbxOp *op)
{
	return sbx_e2b_execute(op, e2b_background(op)->claim_text, E2B_PRINT_MS,
	                       E2B_STATUS_MAX, NULL, e2b_background_claimed);
}

static SbxOpWant
e2b_background_spawn(SbxOp *op)
{
	const SbxBackground *background = e2b_background(op);

	return sbx_script_is_long(background->text)
	           ? sbx_e2b_store(op, background->started.session_id, background->text,
	                           e2b_background_stored)
	           : sbx_e2b_spawn(op, background->text, e2b_background_spawned);
}

static SbxOpWant
e2b_background_stored(SbxOp *op)
{
	const SbxStartedScript *started = &e2b_background(op)->started;

	if (!sbx_steps_is_success(op))
		return sbx_e2b_fail_in_envd(op, sbx_steps_status_code(op));
	return sbx_e2b_spawn(op, sbx_script_source_text(&op->arena, started->session_id),
	                     e2b_background_spawned);
}

static SbxOpWant
e2b_background_claimed(SbxOp *op)
{
	int exit_code;

	return sbx_background_claimed(op, e2b_background(op),
	                              e2b_read_word(op, &exit_code));
}

/* What may have started it has, if its files say so. */
static SbxOpWant
e2b_background_spawned(SbxOp *op)
{
	const SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	SbxSteps *steps = op->state;

	steps->acted = sbx_steps_may_have_arrived(op);
	if (op->response.status == 200 && process->started)
		return sbx_op_succeed(op, &e2b_background(op)->started);
	sbx_steps_note(op, sbx_steps_status_code(op));
	if (steps->noted.http_status == 200)
		steps->noted.phase = SBX_PHASE_PROTOCOL;

	/* Told that there is nothing to run: then it does not. */
	if (sbx_steps_is_refusal(op) || (op->response.status == 200 && process->has_error))
		return sbx_e2b_fail_noted_in_envd(op);
	return e2b_background_check(op);
}

static SbxOpWant
e2b_background_check(SbxOp *op)
{
	return sbx_e2b_execute(op, e2b_background(op)->status_text, E2B_PRINT_MS,
	                       E2B_STATUS_MAX, NULL, e2b_background_checked);
}

static SbxOpWant
e2b_background_checked(SbxOp *op)
{
	int exit_code;

	return sbx_background_looked(op, e2b_background(op), e2b_read_word(op, &exit_code));
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
	if (!sbx_background_valid_target(script))
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
	    sbx_script_status_text(&op->arena, script->session_id, script->command_id);
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
	SbxScriptStatus *status = &((SbxE2bBackground *) op->state)->status;
	SbxScriptWord word = e2b_read_word(op, &status->exit_code);

	status->has_ended = word == SBX_SCRIPT_ENDED;
	return status->has_ended || word == SBX_SCRIPT_IS_RUNNING ||
	               word == SBX_SCRIPT_IS_CLAIMED
	           ? sbx_op_succeed(op, status)
	           : e2b_fail_by_word(op, sbx_script_status_code(word));
}

/* --- logs ----------------------------------------------------------------- */

SbxOp *
sbx_e2b_script_logs(const SbxAccount *account, const SbxTarget *target,
                    const SbxScriptTarget *script)
{
	SbxOp *op = e2b_make_ask(account, "scriptLogs", e2b_logs_start, target, script);
	SbxE2bBackground *background;

	if (op == NULL)
		return NULL;
	background = op->state;
	background->max_stream = script->max_stream;
	for (int i = 0; i < 2; i++)
		background->log_texts[i] = sbx_background_log_text(&op->arena, script, i == 1);
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

/* A command that failed found no such script.  NULL = "want" says how that ends. */
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
		return &background->command.process.marked.output.out;
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

	if (stream == NULL)
		return want;
	background->output.err = *stream;
	return sbx_background_logs_read(op, &background->output);
}
