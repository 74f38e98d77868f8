/*
 * e2b_process.c
 *		Commands in an E2B sandbox: a stream of messages that tell what one does.
 *
 * A stream ends when nobody holds the command's output open any more: what a script leaves
 * in the background does.  So a script says itself when it is over (providers/marks.h).
 */
#include <limits.h>
#include <string.h>

#include "net/base64.h"
#include "providers/e2b.h"

/* Time for the answer beyond the command's own. */
#define E2B_STREAM_EXTRA_MS (10 * 1000)

/* The daemon takes ten digits.  No sandbox lives for these four months. */
#define E2B_LIFETIME_MAX_MS INT64_C(9999999999)

/* --- what it is told ------------------------------------------------------ */

static bool
e2b_take_data(SbxOp *op, SbxE2bProcess *process, const json_t *data)
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
		sbx_marks_take(&op->arena, &process->marked, i, bytes, length);
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
		return e2b_take_data(op, process, data);
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
	return !sbx_marks_complete(&process->marked);
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
	sbx_marks_open(&process->marked, max_stream, mark);
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
	SbxE2bProcess *process = &((SbxE2bCommand *) op->state)->process;

	if (sbx_marks_settle(&op->arena, &process->marked, exit_code))
		return true;
	*exit_code = process->exit_code;
	return process->ended && !process->killed;
}
