/*
 * daytona_background.c
 *		Scripts in a Daytona sandbox that nobody waits for.
 *
 * A session of the toolbox is made for each.  It lives in the memory of the toolbox
 * and is forgotten when the sandbox stops, so what a script writes and its exit code
 * are kept in files of the sandbox, too.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "providers/daytona.h"
#include "providers/script.h"

#define DAYTONA_START_SCRIPT_MS (30 * 1000)
#define DAYTONA_ASK_SCRIPT_MS   (30 * 1000)

/* What the sandbox gets to print a file; it takes milliseconds. */
#define DAYTONA_PRINT_SECONDS 8

/* Looks for a command whose answer was lost. */
#define DAYTONA_RECONCILE_TRIES    3
#define DAYTONA_RECONCILE_PAUSE_MS 1000

/* --- start -------------------------------------------------------------- */

typedef struct SbxDaytonaBackground
{
	SbxDaytonaState state; /* first */
	const char *session_id;
	const char *session_body;
	const char *session_path;
	const char *command; /* as the session will have it */
	const char *command_body;
	const char *clear_body;
	int tries;
	bool was_there; /* the session, before this start */
	SbxStartedScript result;
} SbxDaytonaBackground;

static SbxDaytonaStep daytona_background_start;
static SbxDaytonaStep daytona_background_open;
static SbxDaytonaStep daytona_background_opened;
static SbxDaytonaStep daytona_background_clear;
static SbxDaytonaStep daytona_background_cleared;
static SbxDaytonaStep daytona_background_execute;
static SbxDaytonaStep daytona_background_executed;
static SbxDaytonaStep daytona_background_compare;
static SbxDaytonaStep daytona_background_compared;
static SbxDaytonaStep daytona_background_give_up;
static SbxDaytonaStep daytona_background_dropped;

SbxOp *
sbx_daytona_start_script(const SbxAccount *account, const SbxTarget *target,
                         const SbxRunInput *input)
{
	SbxOp *op = sbx_daytona_make_op(account, "startScript", daytona_background_start,
	                                sizeof(SbxDaytonaBackground), DAYTONA_ARENA_SMALL,
	                                input->timeout_ms > 0 ? input->timeout_ms
	                                                      : DAYTONA_START_SCRIPT_MS);
	SbxDaytonaBackground *background;

	if (op == NULL)
		return NULL;
	background = op->state;
	sbx_daytona_set_target(op, target);
	if (sbx_script_valid(input) && sbx_daytona_valid_id(input->run_id))
	{
		background->session_id = sbx_arena_strdup(&op->arena, input->run_id);
		background->session_body =
		    sbx_arena_printf(&op->arena, "{\"sessionId\":\"%s\"}", input->run_id);
		background->session_path =
		    sbx_arena_printf(&op->arena, "/process/session/%s", input->run_id);
		background->command = sbx_script_background_text(&op->arena, input);
		background->command_body =
		    sbx_daytona_session_body(&op->arena, background->command, true);
		background->clear_body = sbx_daytona_command_body(
		    &op->arena, sbx_script_clear_text(&op->arena, input->run_id),
		    DAYTONA_PRINT_SECONDS);
	}
	if (background->command_body == NULL || background->clear_body == NULL)
		background->state.step = sbx_daytona_refuse;
	return sbx_daytona_made_op(op);
}

static SbxOpWant
daytona_background_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_background_open);
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
	SbxDaytonaBackground *background = op->state;

	if (sbx_daytona_is_success(op))
		return daytona_background_clear(op);
	if (op->response.status != 409)
		return sbx_daytona_fail_in_toolbox(op, NULL);
	background->was_there = true;
	return daytona_background_compare(op);
}

/*
 * An earlier script of a session of that name has left its files.  They must be gone
 * before the new one is there: its status would be the old one's.
 */
static SbxOpWant
daytona_background_clear(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	SbxOpWant want =
	    sbx_daytona_send_toolbox(op, "POST", "/process/execute", background->clear_body,
	                             daytona_background_cleared);

	op->request.repeatable = true;
	return want;
}

static SbxOpWant
daytona_background_cleared(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	json_t *answer = op->response.status == 200 ? sbx_daytona_object(op, true) : NULL;
	int64_t exit_code;
	bool cleared = sbx_json_integer(answer, "exitCode", &exit_code) && exit_code == 0;

	json_decref(answer);
	if (cleared)
		return daytona_background_execute(op);
	sbx_daytona_note(op, sbx_daytona_toolbox_has_no_sandbox(op) ? "NOT_STARTED" : NULL);
	if (op->response.status == 200)
		state->noted.phase = SBX_PHASE_PROTOCOL;
	return daytona_background_give_up(op);
}

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
	return want;
}

/* One that is named by an answer; false when that has no usable name. */
static bool
daytona_background_name(SbxOp *op, const json_t *answer, const char *key)
{
	SbxDaytonaBackground *background = op->state;
	const char *id = sbx_json_string(answer, key);

	if (!sbx_daytona_valid_id(id))
		return false;
	background->result.session_id = background->session_id;
	background->result.command_id = sbx_arena_strdup(&op->arena, id);
	return true;
}

static SbxOpWant
daytona_background_executed(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	SbxDaytonaState *state = op->state;
	json_t *answer;
	bool named;

	state->acted = sbx_daytona_may_have_arrived(op);
	if (sbx_daytona_is_success(op))
	{
		answer = sbx_daytona_object(op, false);
		named = daytona_background_name(op, answer, "cmdId");
		json_decref(answer);
		if (named)
			return sbx_op_succeed(op, &background->result);
	}
	sbx_daytona_note(op, sbx_daytona_toolbox_has_no_sandbox(op) ? "NOT_STARTED" : NULL);

	/* It may be running, and we have no name for it: the session has. */
	if (sbx_daytona_is_success(op) || (sbx_daytona_is_passing(op) && state->acted))
		return daytona_background_compare(op);
	return daytona_background_give_up(op);
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

/*
 * Ours is adopted only if it is the only one there, and says word for word what was to
 * be started.
 */
static const json_t *
daytona_background_find(const SbxOp *op, const json_t *session, size_t *count)
{
	const SbxDaytonaBackground *background = op->state;
	const json_t *commands = json_object_get(session, "commands");
	const json_t *command = json_array_get(commands, 0);
	size_t length;
	const char *text = sbx_json_string_length(command, "command", &length);

	*count = json_array_size(commands);
	return *count == 1 && text != NULL && strlen(background->command) == length &&
	               memcmp(text, background->command, length) == 0
	           ? command
	           : NULL;
}

/*
 * Nothing runs, for the reason noted.  An empty session that we made is dropped: it
 * has a shell, and nothing can start in it any more.
 */
static SbxOpWant
daytona_background_give_up(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;

	if (background->was_there)
		return sbx_daytona_fail_noted_in_toolbox(op);
	background->state.tidying = true;
	return sbx_daytona_send_toolbox(op, "DELETE", background->session_path, NULL,
	                                daytona_background_dropped);
}

static SbxOpWant
daytona_background_compared(SbxOp *op)
{
	SbxDaytonaBackground *background = op->state;
	json_t *session = op->response.status == 200 ? sbx_daytona_object(op, true) : NULL;
	size_t count = 0;
	const json_t *command = daytona_background_find(op, session, &count);
	bool known = session != NULL && json_is_array(json_object_get(session, "commands"));
	bool named = command != NULL && daytona_background_name(op, command, "id");

	json_decref(session);
	if (named)
	{
		background->result.reconciled = true;
		return sbx_op_succeed(op, &background->result);
	}
	if (known && !background->state.acted)
		return count == 0 ? daytona_background_clear(op)
		                  : sbx_daytona_fail_response(op, "SESSION_IN_USE");

	/* Not yet there, or not seen: an answer was lost a moment ago. */
	if (++background->tries < DAYTONA_RECONCILE_TRIES)
		return sbx_daytona_pause(op, DAYTONA_RECONCILE_PAUSE_MS,
		                         daytona_background_compare);
	if (!background->state.acted)
		return op->response.status == 200
		           ? sbx_daytona_fail(op, SBX_PHASE_PROTOCOL, NULL)
		           : sbx_daytona_fail_in_toolbox(op, NULL);
	return known && count == 0 ? daytona_background_give_up(op)
	                           : sbx_daytona_fail_noted_in_toolbox(op);
}

static SbxOpWant
daytona_background_dropped(SbxOp *op)
{
	return sbx_daytona_fail_noted_in_toolbox(op);
}

/* --- asking about one --------------------------------------------------- */

typedef struct SbxDaytonaAsk
{
	SbxDaytonaState state; /* first */
	const char *session_path;
	const char *command_path;
	SbxDaytonaStep *answered; /* what comes after the session's word */
	bool session_lost;        /* the toolbox does not know the session or the command */
	bool has_exit_code;       /* the session's word for its end */
	int64_t exit_code;

	const char *status_body;
	SbxScriptStatus status;

	/* For logs: a request for each stream. */
	const char *out_body;
	const char *err_body;
	size_t max_stream;
	SbxScriptOutput output;
} SbxDaytonaAsk;

static SbxDaytonaStep daytona_ask_start;
static SbxDaytonaStep daytona_ask_session;
static SbxDaytonaStep daytona_ask_answered;
static SbxDaytonaStep daytona_status_answered;
static SbxDaytonaStep daytona_status_read;
static SbxDaytonaStep daytona_status_closed;
static SbxDaytonaStep daytona_logs_answered;
static SbxDaytonaStep daytona_logs_read_out;
static SbxDaytonaStep daytona_logs_read_err;

static SbxOp *
daytona_make_ask(const SbxAccount *account, const char *operation,
                 SbxDaytonaStep *answered, const SbxTarget *target,
                 const SbxScriptTarget *script)
{
	SbxOp *op = sbx_daytona_make_op(account, operation, daytona_ask_start,
	                                sizeof(SbxDaytonaAsk), DAYTONA_ARENA_SMALL,
	                                DAYTONA_ASK_SCRIPT_MS);
	SbxDaytonaAsk *ask;

	if (op == NULL)
		return NULL;
	ask = op->state;
	ask->answered = answered;
	sbx_daytona_set_target(op, target);
	if (!sbx_daytona_valid_id(script->session_id) ||
	    !sbx_daytona_valid_id(script->command_id))
	{
		ask->state.step = sbx_daytona_refuse;
		return op;
	}
	ask->session_path =
	    sbx_arena_printf(&op->arena, "/process/session/%s", script->session_id);
	ask->command_path = sbx_arena_printf(&op->arena, "%s/command/%s", ask->session_path,
	                                     script->command_id);
	return op;
}

static SbxOpWant
daytona_ask_start(SbxOp *op)
{
	return sbx_daytona_open_toolbox(op, daytona_ask_session);
}

static SbxOpWant
daytona_ask_session(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	return sbx_daytona_send_toolbox(op, "GET", ask->command_path, NULL,
	                                daytona_ask_answered);
}

static SbxOpWant
daytona_ask_answered(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	json_t *answer;
	bool valid;

	if (op->response.status == 404)
	{
		ask->session_lost = true;
		return ask->answered(op);
	}
	if (op->response.status != 200)
		return sbx_daytona_fail_in_toolbox(op, NULL);
	answer = sbx_daytona_object(op, true);
	valid = answer != NULL;
	ask->has_exit_code = sbx_json_integer(answer, "exitCode", &ask->exit_code) &&
	                     ask->exit_code >= 0 && ask->exit_code <= 255;
	json_decref(answer);
	return valid ? ask->answered(op) : sbx_daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* What the sandbox prints at once, and is not changed by. */
static SbxOpWant
daytona_ask_sandbox(SbxOp *op, const char *body, SbxDaytonaStep *answer)
{
	SbxOpWant want =
	    sbx_daytona_send_toolbox(op, "POST", "/process/execute", body, answer);

	op->request.repeatable = true;
	return want;
}

/* --- status ------------------------------------------------------------- */

SbxOp *
sbx_daytona_script_status(const SbxAccount *account, const SbxTarget *target,
                          const SbxScriptTarget *script)
{
	SbxOp *op = daytona_make_ask(account, "scriptStatus", daytona_status_answered,
	                             target, script);
	SbxDaytonaAsk *ask;

	if (op == NULL)
		return NULL;
	ask = op->state;
	if (ask->command_path != NULL)
		ask->status_body = sbx_daytona_command_body(
		    &op->arena, sbx_script_status_text(&op->arena, script->session_id),
		    DAYTONA_PRINT_SECONDS);
	return sbx_daytona_made_op(op);
}

/* It is over, and its exit code is in a file: its shell is not needed any more. */
static SbxOpWant
daytona_status_ended(SbxOp *op, int64_t exit_code)
{
	SbxDaytonaAsk *ask = op->state;

	ask->status.has_ended = true;
	ask->status.exit_code = (int) exit_code;
	if (ask->session_lost)
		return sbx_op_succeed(op, &ask->status);
	ask->state.result = &ask->status;
	ask->state.tidying = true;
	return sbx_daytona_send_toolbox(op, "DELETE", ask->session_path, NULL,
	                                daytona_status_closed);
}

static SbxOpWant
daytona_status_closed(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	return sbx_op_succeed(op, &ask->status);
}

/*
 * Without an exit code it runs, or the shell that was to note one is gone.  The files
 * beside the script tell.
 */
static SbxOpWant
daytona_status_answered(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	return ask->has_exit_code
	           ? daytona_status_ended(op, ask->exit_code)
	           : daytona_ask_sandbox(op, ask->status_body, daytona_status_read);
}

/* One to three digits and a line break, at most 255; -1 = something else. */
static int
daytona_read_exit_code(const char *text)
{
	char *end;
	long code;

	if (*text < '0' || *text > '9')
		return -1;
	code = strtol(text, &end, 10);
	if (end - text > 3 || code > 255 || (*end != '\0' && strcmp(end, "\n") != 0))
		return -1;
	return (int) code;
}

static bool
daytona_is_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) == 0 &&
	       (text[length] == '\0' || strcmp(text + length, "\n") == 0);
}

static SbxOpWant
daytona_status_read(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	json_t *answer = op->response.status == 200 ? sbx_daytona_object(op, false) : NULL;
	const char *text = sbx_json_string(answer, "result");
	int exit_code = text == NULL ? -1 : daytona_read_exit_code(text);
	bool running = text != NULL && daytona_is_word(text, SBX_SCRIPT_RUNNING);
	bool lost = text != NULL && daytona_is_word(text, SBX_SCRIPT_LOST);
	bool nothing = text != NULL && daytona_is_word(text, SBX_SCRIPT_NOTHING);

	json_decref(answer);
	if (op->response.status != 200)
		return sbx_daytona_fail_in_toolbox(op, NULL);
	if (exit_code >= 0)
		return daytona_status_ended(op, exit_code);

	/* The session has it, and it has not got far enough to leave a trace. */
	if (running || (nothing && !ask->session_lost))
		return sbx_op_succeed(op, &ask->status);
	if (lost)
		return sbx_daytona_fail_response(op, "SCRIPT_LOST");
	if (nothing)
		return sbx_daytona_fail_response(op, "SCRIPT_UNKNOWN");
	return sbx_daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* --- logs --------------------------------------------------------------- */

/* One byte more than is kept shows that something was cut. */
static const char *
daytona_log_body(SbxOp *op, const SbxScriptTarget *script, bool of_errors)
{
	size_t maximum = script->max_stream < SIZE_MAX ? script->max_stream + 1 : SIZE_MAX;

	return sbx_daytona_command_body(
	    &op->arena,
	    sbx_script_log_text(&op->arena, script->session_id, of_errors, maximum),
	    DAYTONA_PRINT_SECONDS);
}

SbxOp *
sbx_daytona_script_logs(const SbxAccount *account, const SbxTarget *target,
                        const SbxScriptTarget *script)
{
	SbxOp *op =
	    daytona_make_ask(account, "scriptLogs", daytona_logs_answered, target, script);
	SbxDaytonaAsk *ask;

	if (op == NULL)
		return NULL;
	ask = op->state;
	ask->max_stream = script->max_stream;
	if (ask->command_path != NULL)
	{
		ask->out_body = daytona_log_body(op, script, false);
		ask->err_body = daytona_log_body(op, script, true);
	}
	return sbx_daytona_made_op(op);
}

static SbxOpWant
daytona_logs_ask(SbxOp *op, const char *body, SbxDaytonaStep *answer)
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
daytona_logs_answered(SbxOp *op)
{
	return daytona_logs_ask(op, ((SbxDaytonaAsk *) op->state)->out_body,
	                        daytona_logs_read_out);
}

/*
 * A stream out of the answer.  A command that failed found no file: then there is no
 * such script, or the session has it and has not got to it yet.  (A negative exit code
 * is none: nothing was run.)  False = the operation has failed.
 */
static bool
daytona_logs_take(SbxOp *op, SbxScriptStream *stream)
{
	SbxDaytonaAsk *ask = op->state;
	json_t *answer = op->response.status == 200 ? sbx_daytona_object(op, true) : NULL;
	size_t length = 0;
	const char *bytes = sbx_json_string_length(answer, "result", &length);
	int64_t exit_code;
	bool valid = bytes != NULL && sbx_json_integer(answer, "exitCode", &exit_code) &&
	             exit_code >= 0;
	bool there = valid && exit_code == 0;

	*stream = sbx_script_open_stream(&op->arena, there ? length : 0, ask->max_stream);
	if (there)
		sbx_script_keep(stream, bytes, length);
	json_decref(answer);
	if (there || (valid && !ask->session_lost))
		return true;
	if (op->response.status != 200)
		sbx_daytona_fail_in_toolbox(op, NULL);
	else if (valid)
		sbx_daytona_fail_response(op, "SCRIPT_UNKNOWN");
	else
		sbx_daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return false;
}

static SbxOpWant
daytona_logs_read_out(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;

	return daytona_logs_take(op, &ask->output.out)
	           ? daytona_logs_ask(op, ask->err_body, daytona_logs_read_err)
	           : SBX_OP_WANT_NOTHING;
}

static SbxOpWant
daytona_logs_read_err(SbxOp *op)
{
	SbxDaytonaAsk *ask = op->state;
	SbxRunResult *result;

	if (!daytona_logs_take(op, &ask->output.err))
		return SBX_OP_WANT_NOTHING;
	sbx_script_join(&op->arena, &ask->output);
	result = sbx_arena_alloc(&op->arena, sizeof(*result));
	if (result != NULL)
		sbx_script_store(&ask->output, result);
	return sbx_op_succeed(op, result);
}
