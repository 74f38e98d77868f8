/*
 * microsandbox_agent.c
 *		Commands in a Microsandbox sandbox: a socket to the agent inside for each.
 *
 * The agent kills what it started for a socket that is closed: who leaves ends his
 * command.  Files go this way, too: the agent's own way to them names no reasons that a
 * program could read, and knows no home directory.
 */
#include <limits.h>
#include <string.h>

#include "providers/microsandbox.h"

/* For the agent's first words, once the socket is open. */
#define GREETING_MS (10 * 1000)

/* Beyond what the command has: connecting, the first words, the last ones. */
#define EXCHANGE_EXTRA_MS (30 * 1000)

/* A command reads what it is given in pieces of this size. */
#define INPUT_PIECE ((size_t) 256 * 1024)

/*
 * The kernel refuses a single argument of 128 KiB.  Something is left for what starts
 * the shell.
 */
#define ARGUMENT_MAX ((size_t) 120 * 1024)

/* What a sandbox gets to store a text. */
#define STORE_MS (60 * 1000)

/* What an exec has first: whoever runs commands starts with it. */
static SbxMicrosandboxExec *
exec_of(SbxOp *op)
{
	return &((SbxMicrosandboxCommand *) op->state)->exec;
}

/* --- what is said ----------------------------------------------------------- */

/* False = no memory, or too long for a frame. */
static bool
say(SbxOp *op, unsigned flags, const char *type, const SbxCborWriter *payload)
{
	SbxMicrosandboxExec *exec = exec_of(op);
	size_t length = 0;
	char *frame = sbx_microsandbox_frame(&op->arena, exec->id, flags, exec->version,
	                                     type, payload, &length);

	if (frame == NULL)
		return false;
	sbx_op_say(op, frame, length);
	return !op->arena.out_of_memory;
}

/* The keys and their order are those of the provider's own client. */
static bool
say_request(SbxOp *op)
{
	const SbxMicrosandboxCommandLine *line = &exec_of(op)->line;
	SbxCborWriter payload = {.arena = &op->arena};

	sbx_cbor_write_map(&payload, 9);
	sbx_cbor_write_text(&payload, "cmd");
	sbx_cbor_write_text(&payload, "/bin/sh");
	sbx_cbor_write_text(&payload, "args");
	sbx_cbor_write_array(&payload, line->argument == NULL ? 2 : 4);
	sbx_cbor_write_text(&payload, "-c");
	sbx_cbor_write_text(&payload, line->text);
	if (line->argument != NULL)
	{
		sbx_cbor_write_text(&payload, "sh");
		sbx_cbor_write_text(&payload, line->argument);
	}
	sbx_cbor_write_text(&payload, "env");
	sbx_cbor_write_array(&payload, 0);
	sbx_cbor_write_text(&payload, "cwd");
	sbx_cbor_write_optional(&payload, NULL);
	sbx_cbor_write_text(&payload, "user");
	sbx_cbor_write_optional(&payload, NULL);
	sbx_cbor_write_text(&payload, "tty");
	sbx_cbor_write_boolean(&payload, false);
	sbx_cbor_write_text(&payload, "rows");
	sbx_cbor_write_unsigned(&payload, 24);
	sbx_cbor_write_text(&payload, "cols");
	sbx_cbor_write_unsigned(&payload, 80);
	sbx_cbor_write_text(&payload, "rlimits");
	sbx_cbor_write_array(&payload, 0);
	return say(op, MICROSANDBOX_START, "core.exec.request", &payload);
}

static bool
say_input(SbxOp *op, const char *bytes, size_t length)
{
	SbxCborWriter payload = {.arena = &op->arena};

	sbx_cbor_write_map(&payload, 1);
	sbx_cbor_write_text(&payload, "data");
	sbx_cbor_write_bytes(&payload, bytes, length);
	return say(op, 0, "core.exec.stdin", &payload);
}

/* Standard input stays open until nothing is said on it: who reads would wait for ever. */
static bool
say_all_input(SbxOp *op)
{
	const SbxMicrosandboxCommandLine *line = &exec_of(op)->line;

	for (size_t at = 0; at < line->input_length; at += INPUT_PIECE)
	{
		size_t left = line->input_length - at;

		if (!say_input(op, line->input + at, left < INPUT_PIECE ? left : INPUT_PIECE))
			return false;
	}
	return say_input(op, "", 0);
}

/* --- what is heard ---------------------------------------------------------- */

/* The agent's first frame: whatever it tells, it is ready. */
static bool
take_ready(SbxOp *op, const SbxMicrosandboxFrame *frame)
{
	SbxMicrosandboxExec *exec = exec_of(op);

	if (frame->id != 0 || !sbx_cbor_is_text(&frame->type, "core.ready"))
	{
		exec->garbled = true;
		return false;
	}
	exec->id = exec->reader.first_id;
	exec->version =
	    frame->version < MICROSANDBOX_VERSION ? frame->version : MICROSANDBOX_VERSION;
	exec->asked = say_request(op) && say_all_input(op);
	sbx_op_alarm(op, exec->line.timeout_ms);
	return exec->asked;
}

static bool
take_output(SbxOp *op, int stream, const SbxMicrosandboxFrame *frame)
{
	SbxMicrosandboxExec *exec = exec_of(op);
	SbxCborItem data;

	if (!sbx_cbor_find(&frame->payload, "data", &data) || data.type != SBX_CBOR_BYTES)
	{
		exec->garbled = true;
		return false;
	}
	sbx_marks_take(&op->arena, &exec->marked, stream, data.bytes, data.length);
	if (op->arena.out_of_memory || sbx_marks_complete(&exec->marked))
		return false;
	return !exec->line.full_is_enough || !exec->marked.output.out.cut;
}

static bool
take_exited(SbxOp *op, const SbxMicrosandboxFrame *frame)
{
	SbxMicrosandboxExec *exec = exec_of(op);
	SbxCborItem code;
	int64_t value;

	exec->exited = sbx_cbor_find(&frame->payload, "code", &code) &&
	               sbx_cbor_integer(&code, &value) && value >= INT_MIN &&
	               value <= INT_MAX;
	exec->garbled = !exec->exited;
	if (exec->exited)
		exec->exit_code = (int) value;
	return false;
}

/*
 * Of a frame that is not known only its being the last one means something.  What tells of
 * its input is no matter of ours: a command need not read all of it.  Nothing else was asked
 * for on this socket, so that another id is a mistake; 0 is the agent's own.
 */
static bool
take_frame(SbxOp *op, const SbxMicrosandboxFrame *frame)
{
	SbxMicrosandboxExec *exec = exec_of(op);

	if (!exec->asked)
		return take_ready(op, frame);
	if (frame->id != exec->id)
	{
		exec->garbled = frame->id != 0;
		return !exec->garbled;
	}
	if (sbx_cbor_is_text(&frame->type, "core.exec.stdout"))
		return take_output(op, 0, frame);
	if (sbx_cbor_is_text(&frame->type, "core.exec.stderr"))
		return take_output(op, 1, frame);
	if (sbx_cbor_is_text(&frame->type, "core.exec.exited"))
		return take_exited(op, frame);
	exec->started |= sbx_cbor_is_text(&frame->type, "core.exec.started");
	exec->not_run |= sbx_cbor_is_text(&frame->type, "core.exec.failed");
	return (frame->flags & MICROSANDBOX_TERMINAL) == 0;
}

/* An alarm has no bytes: the command's time is over, or the agent has no words for us. */
static bool
talk(SbxOp *op, const char *bytes, size_t length)
{
	SbxMicrosandboxExec *exec = exec_of(op);
	bool more;

	if (length == 0)
	{
		exec->timed_out = true;
		return false;
	}
	more = sbx_microsandbox_read(op, &exec->reader, bytes, length, take_frame);
	exec->garbled |= exec->reader.malformed;
	return more;
}

/* --- a command -------------------------------------------------------------- */

static void
reset(SbxMicrosandboxExec *exec, const SbxMicrosandboxCommandLine *line)
{
	char *frame = exec->reader.frame;
	size_t frame_size = exec->reader.frame_size;

	memset(exec, 0, sizeof(*exec));
	exec->reader.frame = frame;
	exec->reader.frame_size = frame_size;
	exec->line = *line;
	sbx_marks_open(&exec->marked, line->max_stream, line->mark);
}

SbxOpWant
sbx_microsandbox_execute(SbxOp *op, const SbxMicrosandboxCommandLine *line,
                         SbxStep *answer)
{
	SbxMicrosandboxState *state = op->state;
	SbxOpWant want;

	reset(exec_of(op), line);
	want = sbx_microsandbox_send(
	    op, "GET", sbx_arena_printf(&op->arena, "%s/agent", state->url), NULL, answer);
	op->request.repeatable = false;
	op->request.talk = talk;
	op->request.timeout_ms = line->timeout_ms < INT64_MAX - EXCHANGE_EXTRA_MS
	                             ? line->timeout_ms + EXCHANGE_EXTRA_MS
	                             : INT64_MAX;
	sbx_op_alarm(op, GREETING_MS);
	return want;
}

bool
sbx_microsandbox_is_long(const char *text)
{
	return strlen(text) > ARGUMENT_MAX;
}

/* A shell reads all of a file before it does the first thing in it. */
SbxOpWant
sbx_microsandbox_store(SbxOp *op, const char *run_id, const char *text, SbxStep *answer)
{
	const char *path = sbx_arena_printf(&op->arena, SBX_SCRIPT_FILE "%s.sh", run_id);
	SbxMicrosandboxCommandLine line = {
	    .text = "umask 077; cat >\"$1\"", .argument = path, .timeout_ms = STORE_MS};

	if (path == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	line.input = sbx_arena_printf(&op->arena, "rm -f %s; %s", path, text);
	if (line.input == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	line.input_length = strlen(line.input);
	return sbx_microsandbox_execute(op, &line, answer);
}

const char *
sbx_microsandbox_stored_text(SbxOp *op, const char *run_id)
{
	return sbx_arena_printf(&op->arena, ". " SBX_SCRIPT_FILE "%s.sh", run_id);
}

/* --- how it ended ----------------------------------------------------------- */

/*
 * The mark's word counts, or the agent's, also if the connection broke right after it.
 * A code below zero is no program's.
 */
bool
sbx_microsandbox_has_ended(SbxOp *op, int *exit_code)
{
	SbxMicrosandboxExec *exec = exec_of(op);

	if (exec->garbled)
		return false;
	if (sbx_marks_settle(&op->arena, &exec->marked, exit_code))
		return true;
	*exit_code = exec->exit_code;
	return exec->exited && exec->exit_code >= 0;
}

const char *
sbx_microsandbox_printed(SbxOp *op, int *exit_code)
{
	SbxScriptStream *out = &exec_of(op)->marked.output.out;

	if (!sbx_microsandbox_has_ended(op, exit_code))
		return NULL;
	if (out->bytes == NULL)
		return "";
	out->bytes[out->length] = '\0';
	return out->bytes;
}

/* Before the socket stands the status tells; afterwards only what the agent said. */
static const char *
refusal_code(const SbxOp *op)
{
	switch (op->response.status)
	{
		case 404:
			return "SANDBOX_GONE";
		case 409:
			return "NOT_STARTED";
	}
	return sbx_steps_status_code(op);
}

void
sbx_microsandbox_note_exec(SbxOp *op, const char *code)
{
	SbxMicrosandboxExec *exec = exec_of(op);
	SbxSteps *steps = op->state;

	if (code == NULL)
		code = exec->not_run ? "NOT_RUN" : refusal_code(op);
	sbx_steps_note(op, code);
	if (op->response.status != 101)
		return;

	/* That it became a socket is no failure: what was said on it is. */
	steps->noted.http_status = 0;
	steps->noted.request_sent = exec->asked;
	steps->noted.phase =
	    exec->garbled || exec->not_run ? SBX_PHASE_PROTOCOL : SBX_PHASE_RECEIVE;
	steps->noted.timed_out |= exec->timed_out;
}

SbxOpWant
sbx_microsandbox_fail_exec(SbxOp *op, const char *code)
{
	SbxSteps *steps = op->state;

	sbx_microsandbox_note_exec(op, code);
	return sbx_steps_fail_noted(op, steps->noted.provider_code);
}
