/*
 * e2b_process.c
 *		Commands in an E2B sandbox: a stream of messages that tell what one does.
 *
 * A stream ends when nobody holds the command's output open any more.  A script that
 * leaves something in the background would keep it open for as long as that lives, so
 * its text says itself when it is over: it prints a mark on both streams.
 */
#include <limits.h>
#include <string.h>

#include "providers/e2b.h"

/* Time for the answer beyond the command's own. */
#define E2B_STREAM_EXTRA_MS (10 * 1000)

/* The daemon takes ten digits.  No sandbox lives for these four months. */
#define E2B_LIFETIME_MAX_MS INT64_C(9999999999)

/* A mark is this, the mark's text, a colon, the exit code, and the last one. */
#define MARK_START '\001'
#define MARK_END   '\002'

/* --- what it writes ------------------------------------------------------- */

static void
e2b_keep(SbxOp *op, int stream, const char *bytes, size_t length)
{
	SbxScriptOutput *output = &((SbxE2bCommand *) op->state)->process.output;
	SbxScriptStream *kept = stream == 0 ? &output->out : &output->err;

	sbx_script_append(&op->arena, &output->both, bytes,
	                  sbx_script_append(&op->arena, kept, bytes, length));
}

/* The byte of the mark at that place; after the colon come digits. */
static bool
e2b_mark_goes_on(const SbxE2bProcess *process, int stream, char byte)
{
	size_t at = process->marked[stream];
	size_t length = strlen(process->mark);

	if (at == 0)
		return byte == MARK_START;
	if (at <= length)
		return byte == process->mark[at - 1];
	if (at == length + 1)
		return byte == ':';
	return (byte >= '0' && byte <= '9' && at < length + 5) ||
	       (byte == MARK_END && at > length + 2);
}

/* What looked like a mark and is none belongs to the output after all. */
static void
e2b_unmark(SbxOp *op, int stream)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	size_t at = process->marked[stream];
	size_t length = strlen(process->mark);
	char start = MARK_START;
	char digits[4];
	int count = 0;

	process->marked[stream] = 0;
	if (at == 0)
		return;
	e2b_keep(op, stream, &start, 1);
	e2b_keep(op, stream, process->mark, at - 1 < length ? at - 1 : length);
	if (at > length + 1)
		e2b_keep(op, stream, ":", 1);
	for (size_t i = length + 2; i < at && count < 4; i++)
		count++;
	for (int i = count, code = process->mark_code[stream]; i > 0; i--, code /= 10)
		digits[i - 1] = (char) ('0' + code % 10);
	e2b_keep(op, stream, digits, (size_t) count);
}

static void
e2b_take_marked_byte(SbxOp *op, int stream, char byte)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	size_t length = strlen(process->mark);

	if (!e2b_mark_goes_on(process, stream, byte))
	{
		e2b_unmark(op, stream);
		if (byte != MARK_START)
		{
			e2b_keep(op, stream, &byte, 1);
			return;
		}
	}
	if (byte == MARK_END && process->marked[stream] > length + 2)
	{
		process->has_mark[stream] = true;
		return;
	}
	if (process->marked[stream] == 0)
		process->mark_code[stream] = 0;
	if (process->marked[stream] >= length + 2)
		process->mark_code[stream] = process->mark_code[stream] * 10 + (byte - '0');
	process->marked[stream]++;
}

/* After its mark a stream is somebody else's. */
static void
e2b_take_bytes(SbxOp *op, int stream, const char *bytes, size_t length)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	if (process->mark == NULL)
	{
		e2b_keep(op, stream, bytes, length);
		return;
	}
	while (length > 0 && !process->has_mark[stream])
	{
		const char *next =
		    process->marked[stream] > 0 ? bytes : memchr(bytes, MARK_START, length);
		size_t plain = next == NULL ? length : (size_t) (next - bytes);

		e2b_keep(op, stream, bytes, plain);
		bytes += plain;
		length -= plain;
		if (length > 0)
		{
			e2b_take_marked_byte(op, stream, *bytes);
			bytes++;
			length--;
		}
	}
}

/* --- what it is told ------------------------------------------------------ */

static bool
e2b_take_data(SbxOp *op, const json_t *data)
{
	static const char *const streams[] = {"stdout", "stderr"};

	for (int i = 0; i < 2; i++)
	{
		size_t text_length;
		size_t length;
		const char *text = sbx_json_string_length(data, streams[i], &text_length);
		char *bytes;

		if (text == NULL)
			continue;

		/* In place: the document is dropped after this, and bytes are fewer. */
		bytes = (char *) text;
		if (!sbx_base64_decode(text, text_length, bytes, &length))
			return false;
		e2b_take_bytes(op, i, bytes, length);
	}
	return !op->arena.out_of_memory;
}

/* A zero is left out; one that a signal killed has -1. */
static bool
e2b_take_end(SbxE2bProcess *process, const json_t *end)
{
	int64_t exit_code = 0;

	if (json_object_get(end, "exitCode") != NULL &&
	    (!sbx_json_integer(end, "exitCode", &exit_code) || exit_code < INT_MIN ||
	     exit_code > INT_MAX))
		return false;
	process->ended = true;
	process->killed = exit_code < 0;
	process->exit_code = (int) exit_code;
	return true;
}

static void
e2b_take_error(SbxE2bProcess *process, const json_t *message)
{
	const json_t *error = json_object_get(message, "error");
	const char *code = sbx_json_string(error, "code");

	process->has_error = error != NULL;
	process->too_late = code != NULL && strcmp(code, "deadline_exceeded") == 0;
}

static bool
e2b_take_event(SbxOp *op, SbxE2bProcess *process, const json_t *message)
{
	const json_t *event = json_object_get(message, "event");
	const json_t *data = json_object_get(event, "data");
	const json_t *end = json_object_get(event, "end");

	if (json_is_object(json_object_get(event, "start")))
		process->started = true;
	if (data != NULL)
		return e2b_take_data(op, data);
	return end == NULL || e2b_take_end(process, end);
}

/*
 * One message of the stream; false = no more of it is wanted.  The end was told when
 * both streams were over: what follows it decides nothing any more.
 */
static bool
e2b_take_message(SbxOp *op, int flags, const char *json, size_t length)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	json_t *message;
	bool valid;

	if (process->ended)
		return true;
	message = sbx_json_parse(json, length, false);
	valid = json_is_object(message);
	if (valid && (flags & SBX_CONNECT_END_OF_STREAM) != 0)
		e2b_take_error(process, message);
	else if (valid)
		valid = e2b_take_event(op, process, message);
	json_decref(message);
	process->garbled |= !valid;
	if (!valid || (process->keep_running && process->started))
		return false;
	return process->mark == NULL || !process->has_mark[0] || !process->has_mark[1];
}

static bool
e2b_take_body(SbxOp *op, const char *bytes, size_t length)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	bool more = sbx_connect_read(op, &process->reader, bytes, length, e2b_take_message);

	process->garbled |= process->reader.malformed && !process->ended;
	return more;
}

/* --- starting one --------------------------------------------------------- */

bool
sbx_e2b_can_carry(const char *text)
{
	json_t *string = json_string(text);
	bool valid = string != NULL;

	json_decref(string);
	return valid;
}

/*
 * A login shell, as the provider's own client uses: what the template sets up for one
 * is there.
 */
static const char *
e2b_process_body(SbxOp *op, const char *text)
{
	json_t *process = sbx_json_new_object();
	json_t *body = sbx_json_new_object();
	json_t *args = json_array();
	const char *printed = NULL;
	int failed = 0;

	failed |= json_array_append_new(args, json_string("-l"));
	failed |= json_array_append_new(args, json_string("-c"));
	failed |= json_array_append_new(args, json_string(text));
	failed |= json_object_set_new(process, "cmd", json_string("/bin/bash"));
	failed |= json_object_set_new(process, "args", args);
	failed |= json_object_set_new(body, "process", process);
	failed |= json_object_set_new(body, "stdin", json_false());
	if (failed == 0)
		printed = sbx_json_print(&op->arena, body);
	json_decref(body);
	return printed;
}

static void
e2b_reset_process(SbxOp *op, size_t max_stream, const char *mark)
{
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;
	char *message = process->reader.message;
	size_t message_size = process->reader.message_size;

	memset(process, 0, sizeof(*process));
	process->reader.message = message;
	process->reader.message_size = message_size;
	process->mark = mark;
	process->output.out.maximum = max_stream;
	process->output.err.maximum = max_stream;
	process->output.both.maximum =
	    max_stream < SIZE_MAX / 2 ? 2 * max_stream : SIZE_MAX;
}

static SbxOpWant
e2b_start_process(SbxOp *op, const char *text, int64_t timeout_ms, SbxStep *answer)
{
	const char *body = e2b_process_body(op, text);
	int64_t lifetime_ms =
	    timeout_ms < E2B_LIFETIME_MAX_MS ? timeout_ms : E2B_LIFETIME_MAX_MS;
	size_t length = 0;
	char *envelope =
	    body == NULL ? NULL : sbx_connect_envelope(&op->arena, body, &length);
	SbxOpWant want;

	if (envelope == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	want = sbx_e2b_send_envd(op, "POST", "/process.Process/Start",
	                         "application/connect+json", envelope, length, answer);
	if (want == SBX_OP_WANT_NOTHING)
		return want;
	if (!sbx_op_header(op, "Connect-Protocol-Version", "", "1") ||
	    !sbx_op_header(op, "Keepalive-Ping-Interval", "", "50") ||
	    (timeout_ms > 0 &&
	     !sbx_op_header(op, "Connect-Timeout-Ms", "",
	                    sbx_arena_printf(&op->arena, "%lld", (long long) lifetime_ms))))
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	op->request.take_body = e2b_take_body;
	op->request.timeout_ms = timeout_ms > 0 ? timeout_ms + E2B_STREAM_EXTRA_MS : 0;
	return want;
}

SbxOpWant
sbx_e2b_execute(SbxOp *op, const char *text, int64_t timeout_ms, size_t max_stream,
                const char *mark, SbxStep *answer)
{
	e2b_reset_process(op, max_stream, mark);
	return e2b_start_process(op, text, timeout_ms, answer);
}

SbxOpWant
sbx_e2b_spawn(SbxOp *op, const char *text, SbxStep *answer)
{
	e2b_reset_process(op, 0, NULL);
	((SbxE2bCommand *) op->state)->process.keep_running = true;
	return e2b_start_process(op, text, 0, answer);
}

/* --- long ones ------------------------------------------------------------ */

SbxOpWant
sbx_e2b_store(SbxOp *op, const char *run_id, const char *text, SbxStep *answer)
{
	const char *path = sbx_script_stored_path(&op->arena, run_id);
	const char *bytes = sbx_script_stored_text(&op->arena, run_id, text);
	const char *encoded;
	const char *url;

	if (path == NULL || bytes == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	encoded = sbx_arena_url_encode(&op->arena, path);
	if (encoded == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	url = sbx_arena_printf(&op->arena, "/files?path=%s", encoded);
	return sbx_e2b_send_envd(op, "POST", url, "application/octet-stream", bytes,
	                         strlen(bytes), answer);
}

/* --- how it ended --------------------------------------------------------- */

/*
 * The mark's word counts, or the end's, also if the connection broke right after it.
 * What looked like the start of a mark is output.
 */
bool
sbx_e2b_has_ended(SbxOp *op, int *exit_code)
{
	const SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	for (int i = 0; i < 2; i++)
	{
		if (process->mark != NULL && !process->has_mark[i])
			e2b_unmark(op, i);
	}
	if (process->has_mark[0] && process->has_mark[1])
	{
		*exit_code = process->mark_code[0];
		return true;
	}
	*exit_code = process->exit_code;
	return process->ended && !process->killed;
}
