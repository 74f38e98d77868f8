/*
 * microsandbox_background.c
 *		Scripts in a Microsandbox sandbox that nobody waits for.
 *
 * The provider keeps no record of a command.  So a script's output and exit code go to
 * files in the sandbox, and a link there says whose a name is.  It goes on when the socket
 * is closed, because the command that the agent knows of has ended by then.
 */
#include "providers/background.h"
#include "providers/microsandbox.h"

#define MICROSANDBOX_START_SCRIPT_MS (30 * 1000)
#define MICROSANDBOX_ASK_SCRIPT_MS   (30 * 1000)

/* What the sandbox gets to print a file; it takes milliseconds. */
#define MICROSANDBOX_PRINT_MS 8000

/* More than any of these texts prints. */
#define MICROSANDBOX_STATUS_MAX 4096

typedef struct SbxMicrosandboxBackground
{
	SbxMicrosandboxCommand command; /* first */
	SbxBackground background;
	const char *status_text;
	const char *log_texts[2];
	size_t max_stream;
	SbxScriptOutput output;
	SbxScriptStatus status;
} SbxMicrosandboxBackground;

static SbxStep microsandbox_background_start;
static SbxStep microsandbox_background_claimed;
static SbxStep microsandbox_background_deliver;
static SbxStep microsandbox_background_stored;
static SbxStep microsandbox_background_spawned;
static SbxStep microsandbox_background_check;
static SbxStep microsandbox_background_checked;
static SbxStep microsandbox_background_give_up;
static SbxStep microsandbox_status_ask;
static SbxStep microsandbox_status_read;
static SbxStep microsandbox_logs_ask;
static SbxStep microsandbox_logs_read_out;
static SbxStep microsandbox_logs_read_err;

static SbxBackground *
microsandbox_background(SbxOp *op)
{
	return &((SbxMicrosandboxBackground *) op->state)->background;
}

/* Run a text that prints something short, or a log. */
static SbxOpWant
microsandbox_print(SbxOp *op, const char *text, size_t max_stream, SbxStep *answer)
{
	SbxMicrosandboxCommandLine line = {
	    .text = text, .timeout_ms = MICROSANDBOX_PRINT_MS, .max_stream = max_stream};

	return sbx_microsandbox_execute(op, &line, answer);
}

/* The word that it printed. */
static SbxScriptWord
microsandbox_read_word(SbxOp *op, int *exit_code)
{
	const char *printed = sbx_microsandbox_printed(op, exit_code);

	return sbx_script_read_status(printed, exit_code);
}

/* It printed a word that means this; NULL = none that answers the question. */
static SbxOpWant
microsandbox_fail_by_word(SbxOp *op, const char *code)
{
	int exit_code;

	if (code != NULL)
		return sbx_steps_fail(op, SBX_PHASE_REMOTE, code);
	return sbx_microsandbox_printed(op, &exit_code) == NULL
	           ? sbx_microsandbox_fail_exec(op, NULL)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* --- start ---------------------------------------------------------------- */

SbxOp *
sbx_microsandbox_start_script(const SbxAccount *account, const SbxTarget *target,
                              const SbxRunInput *input)
{
	SbxOp *op = sbx_microsandbox_make_op(
	    account, "startScript", microsandbox_background_start,
	    sizeof(SbxMicrosandboxBackground), MICROSANDBOX_ARENA_SMALL,
	    input->timeout_ms > 0 ? input->timeout_ms : MICROSANDBOX_START_SCRIPT_MS);
	SbxBackground *background;

	if (op == NULL)
		return NULL;
	background = microsandbox_background(op);
	background->deliver = microsandbox_background_deliver;
	background->look = microsandbox_background_check;
	background->give_up = microsandbox_background_give_up;
	background->fail = microsandbox_fail_by_word;
	sbx_microsandbox_set_target(op, target);
	if (!sbx_background_write(&op->arena, background, input))
		((SbxSteps *) op->state)->step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_background_start(SbxOp *op)
{
	return microsandbox_print(op, microsandbox_background(op)->claim_text,
	                          MICROSANDBOX_STATUS_MAX, microsandbox_background_claimed);
}

/* Nothing of it may hold the command's streams: they would keep it from ending. */
static SbxOpWant
microsandbox_background_spawn(SbxOp *op, const char *text)
{
	SbxMicrosandboxCommandLine line = {.text =
	                                       "sh -c \"$1\" </dev/null >/dev/null 2>&1 &",
	                                   .argument = text,
	                                   .timeout_ms = MICROSANDBOX_PRINT_MS};

	return text == NULL
	           ? sbx_steps_fail(op, SBX_PHASE_NONE, NULL)
	           : sbx_microsandbox_execute(op, &line, microsandbox_background_spawned);
}

static SbxOpWant
microsandbox_background_deliver(SbxOp *op)
{
	const SbxBackground *background = microsandbox_background(op);

	return sbx_microsandbox_is_long(background->text)
	           ? sbx_microsandbox_store(op, background->started.session_id,
	                                    background->text,
	                                    microsandbox_background_stored)
	           : microsandbox_background_spawn(op, background->text);
}

static SbxOpWant
microsandbox_background_stored(SbxOp *op)
{
	const SbxStartedScript *started = &microsandbox_background(op)->started;
	int exit_code;

	if (!sbx_microsandbox_has_ended(op, &exit_code))
		return sbx_microsandbox_fail_exec(op, NULL);
	if (exit_code != 0)
		return sbx_steps_fail(op, SBX_PHASE_REMOTE, "NOT_RUN");
	return microsandbox_background_spawn(
	    op, sbx_microsandbox_stored_text(op, started->session_id));
}

static SbxOpWant
microsandbox_background_claimed(SbxOp *op)
{
	int exit_code;

	return sbx_background_claimed(op, microsandbox_background(op),
	                              microsandbox_read_word(op, &exit_code));
}

/* What may have started it has, if its files say so. */
static SbxOpWant
microsandbox_background_spawned(SbxOp *op)
{
	const SbxMicrosandboxExec *exec = &((SbxMicrosandboxCommand *) op->state)->exec;
	SbxSteps *steps = op->state;
	int exit_code;

	steps->acted = exec->asked;
	if (sbx_microsandbox_has_ended(op, &exit_code))
		return exit_code == 0
		           ? sbx_op_succeed(op, &microsandbox_background(op)->started)
		           : sbx_steps_fail(op, SBX_PHASE_REMOTE, "NOT_RUN");
	if (!exec->asked || exec->not_run)
		return sbx_microsandbox_fail_exec(op, NULL);
	sbx_microsandbox_note_exec(op, NULL);
	return microsandbox_background_check(op);
}

static SbxOpWant
microsandbox_background_check(SbxOp *op)
{
	return microsandbox_print(op, microsandbox_background(op)->status_text,
	                          MICROSANDBOX_STATUS_MAX, microsandbox_background_checked);
}

static SbxOpWant
microsandbox_background_checked(SbxOp *op)
{
	int exit_code;

	return sbx_background_looked(op, microsandbox_background(op),
	                             microsandbox_read_word(op, &exit_code));
}

static SbxOpWant
microsandbox_background_give_up(SbxOp *op)
{
	SbxSteps *steps = op->state;

	return sbx_steps_fail_noted(op, steps->noted.provider_code);
}

/* --- status --------------------------------------------------------------- */

static SbxOp *
microsandbox_make_ask(const SbxAccount *account, const char *operation,
                      SbxStep *first_step, const SbxTarget *target,
                      const SbxScriptTarget *script)
{
	SbxOp *op = sbx_microsandbox_make_op(
	    account, operation, first_step, sizeof(SbxMicrosandboxBackground),
	    MICROSANDBOX_ARENA_SMALL, MICROSANDBOX_ASK_SCRIPT_MS);

	if (op == NULL)
		return NULL;
	sbx_microsandbox_set_target(op, target);
	if (!sbx_background_valid_target(script))
		((SbxMicrosandboxState *) op->state)->steps.step = sbx_steps_refuse;
	return op;
}

SbxOp *
sbx_microsandbox_script_status(const SbxAccount *account, const SbxTarget *target,
                               const SbxScriptTarget *script)
{
	SbxOp *op = microsandbox_make_ask(account, "scriptStatus", microsandbox_status_ask,
	                                  target, script);

	if (op == NULL)
		return NULL;
	((SbxMicrosandboxBackground *) op->state)->status_text =
	    sbx_script_status_text(&op->arena, script->session_id, script->command_id);
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_status_ask(SbxOp *op)
{
	SbxMicrosandboxBackground *background = op->state;

	return microsandbox_print(op, background->status_text, MICROSANDBOX_STATUS_MAX,
	                          microsandbox_status_read);
}

static SbxOpWant
microsandbox_status_read(SbxOp *op)
{
	SbxScriptStatus *status = &((SbxMicrosandboxBackground *) op->state)->status;
	SbxScriptWord word = microsandbox_read_word(op, &status->exit_code);

	status->has_ended = word == SBX_SCRIPT_ENDED;
	return status->has_ended || word == SBX_SCRIPT_IS_RUNNING ||
	               word == SBX_SCRIPT_IS_CLAIMED
	           ? sbx_op_succeed(op, status)
	           : microsandbox_fail_by_word(op, sbx_script_status_code(word));
}

/* --- logs ----------------------------------------------------------------- */

SbxOp *
sbx_microsandbox_script_logs(const SbxAccount *account, const SbxTarget *target,
                             const SbxScriptTarget *script)
{
	SbxOp *op = microsandbox_make_ask(account, "scriptLogs", microsandbox_logs_ask,
	                                  target, script);
	SbxMicrosandboxBackground *background;

	if (op == NULL)
		return NULL;
	background = op->state;
	background->max_stream = script->max_stream;
	for (int i = 0; i < 2; i++)
		background->log_texts[i] = sbx_background_log_text(&op->arena, script, i == 1);
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_logs_ask(SbxOp *op)
{
	SbxMicrosandboxBackground *background = op->state;

	return microsandbox_print(op, background->log_texts[0], background->max_stream,
	                          microsandbox_logs_read_out);
}

/* A command that failed found no such script.  NULL = "want" says how that ends. */
static const SbxScriptStream *
microsandbox_logs_take(SbxOp *op, SbxOpWant *want)
{
	SbxMicrosandboxBackground *background = op->state;
	int exit_code;

	if (sbx_microsandbox_printed(op, &exit_code) == NULL)
		*want = sbx_microsandbox_fail_exec(op, NULL);
	else if (exit_code != 0)
		*want = sbx_steps_fail(op, SBX_PHASE_REMOTE, "SCRIPT_UNKNOWN");
	else
		return &background->command.exec.marked.output.out;
	return NULL;
}

static SbxOpWant
microsandbox_logs_read_out(SbxOp *op)
{
	SbxMicrosandboxBackground *background = op->state;
	SbxOpWant want;
	const SbxScriptStream *stream = microsandbox_logs_take(op, &want);

	if (stream == NULL)
		return want;
	background->output.out = *stream;
	return microsandbox_print(op, background->log_texts[1], background->max_stream,
	                          microsandbox_logs_read_err);
}

static SbxOpWant
microsandbox_logs_read_err(SbxOp *op)
{
	SbxMicrosandboxBackground *background = op->state;
	SbxOpWant want;
	const SbxScriptStream *stream = microsandbox_logs_take(op, &want);

	if (stream == NULL)
		return want;
	background->output.err = *stream;
	return sbx_background_logs_read(op, &background->output);
}
