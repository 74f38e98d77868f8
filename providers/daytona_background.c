/*
 * daytona_background.c
 *		Scripts in a Daytona sandbox that nobody waits for.
 *
 * A session of the toolbox is made for each.  It lives in the memory of the toolbox
 * and is forgotten when the sandbox stops, so what a script writes and its exit code
 * go to files of the sandbox, and a link there says whose the name is.
 */
#include <string.h>

#include "providers/background.h"
#include "providers/daytona.h"

#define DAYTONA_START_SCRIPT_MS (30 * 1000)
#define DAYTONA_ASK_SCRIPT_MS   (30 * 1000)

/* What the sandbox gets to print a file; it takes milliseconds. */
#define DAYTONA_PRINT_SECONDS 8

/* What the sandbox prints at once, and is not changed by if asked twice. */
static SbxOpWant
daytona_ask_sandbox(SbxOp *op, const char *body, SbxStep *answer)
{
	SbxOpWant want =
	    sbx_daytona_send_toolbox(op, "POST", "/process/execute", body, answer);

	op->request.repeatable = true;
	return want;
}

/* The word that it printed. */
static SbxScriptWord
daytona_read_word(const SbxOp *op, int *exit_code)
{
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	const char *text = sbx_json_string(answer, "result");
	SbxScriptWord word = sbx_script_read_status(text, exit_code);

	json_decref(answer);
	return word;
}

/* It printed none that answers the question. */
static SbxOpWant
daytona_fail_without_word(SbxOp *op)
{
	return op->response.status == 200 ? sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL)
	                                  : sbx_daytona_fail_in_toolbox(op, NULL);
}

/* It printed one that means this; NULL = it did not. */
static SbxOpWant
daytona_fail_by_word(SbxOp *op, const char *code)
{
	return code != NULL ? sbx_steps_fail_response(op, code)
	                    : daytona_fail_without_word(op);
}

/* --- start -------------------------------------------------------------- */

typedef struct SbxDaytonaBackground
{
	SbxDaytonaState state;    /* first */
	SbxBackground background; /* its text is the command as the session will have it */
	const char *claim_body;
	const char *status_body;
	const char *session_body;
	const char *session_path;
	const char *command_body;
} SbxDaytonaBackground;

static SbxStep daytona_background_start;
static SbxStep daytona_background_claim;
static SbxStep daytona_background_claimed;
static SbxStep daytona_background_open;
static SbxStep daytona_background_opened;
static SbxStep daytona_background_compare;
static SbxStep daytona_background_compared;
static SbxStep daytona_background_execute;
static SbxStep daytona_background_executed;
static SbxStep daytona_background_check;
static SbxStep daytona_background_checked;

/* The bodies that its texts go in, as far as there is memory for them. */
static void
daytona_background_write(SbxOp *op)
{
	SbxDaytonaBackground *start = op->state;
	const SbxBackground *background = &start->background;
	const char *session_id = background->started.session_id;

	start->command_body = sbx_daytona_session_body(&op->arena, background->text, true);
	start->session_body =
	    sbx_arena_printf(&op->arena, "{\"sessionId\":\"%s\"}", session_id);
	start->session_path =
	    sbx_arena_printf(&op->arena, "/process/session/%s", session_id);
	start->claim_body = sbx_daytona_command_body(&op->arena, background->claim_text,
	                                             DAYTONA_PRINT_SECONDS);
	start->status_body = sbx_daytona_command_body(&op->arena, background->status_text,
	                                              DAYTONA_PRINT_SECONDS);
}

static SbxBackground *
daytona_background(SbxOp *op)
{
	return &((SbxDaytonaBackground *) op->state)->background;
}

SbxOp *
sbx_daytona_start_script(const SbxAccount *account, const SbxTarget *target,
                         const SbxRunInput *input)
{
	SbxOp *op = sbx_daytona_make_op(account, "startScript", daytona_background_start,
	                                sizeof(SbxDaytonaBackground), DAYTONA_ARENA_SMALL,
	                                input->timeout_ms > 0 ? input->timeout_ms
	                                                      : DAYTONA_START_SCRIPT_MS);
	SbxBackground *background;

	if (op == NULL)
		return NULL;
	background = daytona_background(op);
	background->deliver = daytona_background_open;
	background->look = daytona_background_check;
	background->give_up = sbx_daytona_fail_noted_in_toolbox;
	background->fail = daytona_fail_by_word;
	sbx_daytona_set_target(op, target);
	if (sbx_background_write(&op->arena, background, input))
		daytona_background_write(op);
	else
		((SbxSteps *) op->state)->step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_background_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_background_claim);
}

static SbxOpWant
daytona_background_claim(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;

	return daytona_ask_sandbox(op, background->claim_body, daytona_background_claimed);
}

static SbxOpWant
daytona_background_claimed(SbxOp *op)
{
	int exit_code;

	return sbx_background_claimed(op, daytona_background(op),
	                              daytona_read_word(op, &exit_code));
}

static SbxOpWant
daytona_background_open(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	SbxOpWant want =
	    sbx_daytona_send_toolbox(op, "POST", "/process/session",
	                             background->session_body, daytona_background_opened);

	/* A second delivery finds the first one's, which is looked into then. */
	op->request.repeatable = true;
	return want;
}

static SbxOpWant
daytona_background_opened(SbxOp *op)
{
	if (sbx_steps_is_success(op))
		return daytona_background_execute(op);
	return op->response.status == 409 ? daytona_background_compare(op)
	                                  : sbx_daytona_fail_in_toolbox(op, NULL);
}

/* --- what is in the session? --------------------------------------------- */

static SbxOpWant
daytona_background_compare(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	size_t length = strlen(background->command_body);
	SbxOpWant want = sbx_daytona_send_toolbox(op, "GET", background->session_path, NULL,
	                                          daytona_background_compared);

	/* The text comes back, perhaps escaped otherwise than it went. */
	if (length < SIZE_MAX / 16)
		op->request.max_response = 8 * length + 1024 * 1024;
	return want;
}

/* Does one of its commands say word for word what is to be started? */
static bool
daytona_background_is_in(const SbxOp *op, const json_t *commands)
{
	const char *wanted = ((SbxDaytonaBackground *) op->state)->background.text;
	size_t index;
	json_t *command;

	json_array_foreach ((json_t *) commands, index, command)
	{
		size_t length;
		const char *text = sbx_json_string_length(command, "command", &length);

		if (text != NULL && strlen(wanted) == length &&
		    memcmp(text, wanted, length) == 0)
			return true;
	}
	return false;
}

/* The name is ours; a session of that name that somebody else has put to use is not. */
static SbxOpWant
daytona_background_compared(SbxOp *op)
{
	SbxBackground *background = daytona_background(op);
	json_t *session = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	const json_t *commands = json_object_get(session, "commands");
	bool known = json_is_array(commands);
	bool is_empty = json_array_size(commands) == 0;
	bool is_in = daytona_background_is_in(op, commands);

	json_decref(session);
	if (is_in)
		return sbx_background_found(op, background);
	if (known && is_empty)
		return daytona_background_execute(op);
	if (known)
		return sbx_steps_fail_response(op, "SESSION_IN_USE");
	if (sbx_steps_is_passing(op) && ++background->looks < SBX_SCRIPT_LOOKS)
		return sbx_steps_pause(op, SBX_SCRIPT_LOOK_PAUSE_MS,
		                       daytona_background_compare);
	return daytona_fail_without_word(op);
}

/* --- the command --------------------------------------------------------- */

static SbxOpWant
daytona_background_execute(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	const char *path =
	    sbx_arena_printf(&op->arena, "%s/exec", background->session_path);
	SbxOpWant want = sbx_daytona_send_toolbox(
	    op, "POST", path, background->command_body, daytona_background_executed);

	/* The proxy in between replays a small body that has a Content-Length. */
	op->request.chunked = true;
	background->background.looks = 0;
	return want;
}

/* What may have started it has, if its files say so. */
static SbxOpWant
daytona_background_executed(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	json_t *answer;
	bool named;

	background->state.steps.acted = sbx_steps_may_have_arrived(op);
	if (sbx_steps_is_success(op))
	{
		answer = sbx_steps_object(op, false);
		named = sbx_steps_valid_id(sbx_json_string(answer, "cmdId"));
		json_decref(answer);
		if (named)
			return sbx_op_succeed(op, &background->background.started);
	}
	sbx_steps_note(op, sbx_daytona_toolbox_has_no_sandbox(op) ? "NOT_STARTED" : NULL);
	return sbx_steps_is_refusal(op) ? sbx_daytona_fail_noted_in_toolbox(op)
	                                : daytona_background_check(op);
}

static SbxOpWant
daytona_background_check(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;

	return daytona_ask_sandbox(op, background->status_body, daytona_background_checked);
}

static SbxOpWant
daytona_background_checked(SbxOp *op)
{
	int exit_code;

	return sbx_background_looked(op, daytona_background(op),
	                             daytona_read_word(op, &exit_code));
}

/* --- asking about one --------------------------------------------------- */

typedef struct SbxDaytonaAsk
{
	SbxDaytonaState state; /* first */
	const char *bodies[2]; /* the texts that ask */
	const char *session_path;
	SbxScriptStatus status;
	size_t max_stream;
	SbxScriptOutput output;
} SbxDaytonaAsk;

static SbxStep daytona_status_start;
static SbxStep daytona_status_ask;
static SbxStep daytona_status_read;
static SbxStep daytona_status_looked;
static SbxStep daytona_status_closed;
static SbxStep daytona_logs_start;
static SbxStep daytona_logs_ask;
static SbxStep daytona_logs_read_out;
static SbxStep daytona_logs_read_err;

/* One without texts: refused, unless the ids can be written into some. */
static SbxOp *
daytona_make_ask(const SbxAccount *account, const char *operation, SbxStep *first_step,
                 const SbxTarget *target, const SbxScriptTarget *script)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, operation, first_step, sizeof(SbxDaytonaAsk),
	                        DAYTONA_ARENA_SMALL, DAYTONA_ASK_SCRIPT_MS);

	if (op == NULL)
		return NULL;
	sbx_daytona_set_target(op, target);
	if (!sbx_background_valid_target(script))
		((SbxDaytonaAsk *) op->state)->state.steps.step = sbx_steps_refuse;
	return op;
}

/* --- status ------------------------------------------------------------- */

SbxOp *
sbx_daytona_script_status(const SbxAccount *account, const SbxTarget *target,
                          const SbxScriptTarget *script)
{
	SbxOp *op =
	    daytona_make_ask(account, "scriptStatus", daytona_status_start, target, script);
	SbxDaytonaAsk *ask;

	if (op == NULL)
		return NULL;
	ask = op->state;
	ask->bodies[0] = sbx_daytona_command_body(
	    &op->arena,
	    sbx_script_status_text(&op->arena, script->session_id, script->command_id),
	    DAYTONA_PRINT_SECONDS);
	ask->session_path =
	    sbx_arena_printf(&op->arena, "/process/session/%s", script->session_id);
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_status_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_status_ask);
}

static SbxOpWant
daytona_status_ask(SbxOp *op)
{
	return daytona_ask_sandbox(op, ((SbxDaytonaAsk *) op->state)->bodies[0],
	                           daytona_status_read);
}

static SbxOpWant
daytona_status_read(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	SbxScriptWord word = daytona_read_word(op, &ask->status.exit_code);

	if (word == SBX_SCRIPT_IS_RUNNING)
		return sbx_op_succeed(op, &ask->status);
	if (word == SBX_SCRIPT_IS_CLAIMED)
		return sbx_daytona_send_toolbox(op, "GET", ask->session_path, NULL,
		                                daytona_status_looked);
	if (word != SBX_SCRIPT_ENDED)
		return daytona_fail_by_word(op, sbx_script_status_code(word));

	/* Its exit code is kept: the shell of its session is not needed. */
	ask->status.has_ended = true;
	ask->state.steps.result = &ask->status;
	ask->state.steps.tidying = true;
	return sbx_daytona_send_toolbox(op, "DELETE", ask->session_path, NULL,
	                                daytona_status_closed);
}

/* It has left no trace yet.  Without its session it never will. */
static SbxOpWant
daytona_status_looked(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	if (sbx_steps_is_success(op))
		return sbx_op_succeed(op, &ask->status);
	return sbx_daytona_fail_in_toolbox(
	    op, op->response.status == 404 && !sbx_daytona_toolbox_has_no_sandbox(op)
	            ? "SCRIPT_LOST"
	            : NULL);
}

static SbxOpWant
daytona_status_closed(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	return sbx_op_succeed(op, &ask->status);
}

/* --- logs --------------------------------------------------------------- */

static const char *
daytona_log_body(SbxOp *op, const SbxScriptTarget *script, bool of_errors)
{
	return sbx_daytona_command_body(
	    &op->arena, sbx_background_log_text(&op->arena, script, of_errors),
	    DAYTONA_PRINT_SECONDS);
}

SbxOp *
sbx_daytona_script_logs(const SbxAccount *account, const SbxTarget *target,
                        const SbxScriptTarget *script)
{
	SbxOp *op =
	    daytona_make_ask(account, "scriptLogs", daytona_logs_start, target, script);
	SbxDaytonaAsk *ask;

	if (op == NULL)
		return NULL;
	ask = op->state;
	ask->max_stream = script->max_stream;
	ask->bodies[0] = daytona_log_body(op, script, false);
	ask->bodies[1] = daytona_log_body(op, script, true);
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_logs_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_logs_ask);
}

static SbxOpWant
daytona_logs_request(SbxOp *op, const char *body, SbxStep *answer)
{
	SbxDaytonaAsk *ask = op->state;
	SbxOpWant want = daytona_ask_sandbox(op, body, answer);

	/* In JSON a control byte takes six. */
	op->request.max_response = SIZE_MAX;
	if (ask->max_stream < SIZE_MAX / 16)
		op->request.max_response = 8 * ask->max_stream + 64 * 1024;
	return want;
}

static SbxOpWant
daytona_logs_ask(SbxOp *op)
{
	return daytona_logs_request(op, ((SbxDaytonaAsk *) op->state)->bodies[0],
	                            daytona_logs_read_out);
}

/*
 * A stream out of the answer.  A command that failed found no such script.  (A negative
 * exit code is none: nothing was run.)  False = "want" says how that ends.
 */
static bool
daytona_logs_take(SbxOp *op, SbxScriptStream *stream, SbxOpWant *want)
{
	SbxDaytonaAsk *ask = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	size_t length = 0;
	const char *bytes = sbx_json_string_length(answer, "result", &length);
	int64_t exit_code = -1;
	bool there = bytes != NULL && sbx_json_integer(answer, "exitCode", &exit_code) &&
	             exit_code == 0;

	*stream = sbx_script_open_stream(&op->arena, there ? length : 0, ask->max_stream);
	if (there)
		sbx_script_keep(stream, bytes, length);
	else
		*want = bytes != NULL && exit_code > 0
		            ? sbx_steps_fail_response(op, "SCRIPT_UNKNOWN")
		            : daytona_fail_without_word(op);
	json_decref(answer);
	return there;
}

static SbxOpWant
daytona_logs_read_out(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	SbxOpWant want;

	return daytona_logs_take(op, &ask->output.out, &want)
	           ? daytona_logs_request(op, ask->bodies[1], daytona_logs_read_err)
	           : want;
}

static SbxOpWant
daytona_logs_read_err(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	SbxOpWant want;

	return daytona_logs_take(op, &ask->output.err, &want)
	           ? sbx_background_logs_read(op, &ask->output)
	           : want;
}
