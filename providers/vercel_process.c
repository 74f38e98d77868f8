/*
 * vercel_process.c
 *		Commands in a Vercel sandbox: a stream of lines that tell what one does.
 *
 * The first line is the command as it started, then come pieces of its output, and the last
 * line is the command with its exit code.  A stream that ends otherwise tells nothing.
 *
 * At the end of its time a command is killed, which is told as exit code 137.  So is a
 * script that ends with 137 itself.  What tells them apart is the script's own mark
 * (providers/marks.h): whoever was killed has not printed it.  How long the command took
 * would not do: that is optional, and can be short of the limit or beyond it.
 *
 * The media type of an answer is not looked at: it comes with parameters or without, and
 * every line has to prove itself anyway.
 */
#include <limits.h>
#include <string.h>

#include "providers/vercel.h"

/* Time for the answer beyond the command's own. */
#define VERCEL_STREAM_EXTRA_MS (10 * 1000)

/* The provider takes no shorter time than this. */
#define VERCEL_COMMAND_MIN_MS 100

/* --- what it is told ------------------------------------------------------ */

static bool
vercel_take_command(SbxVercelProcess *process, const json_t *command)
{
	int64_t exit_code;

	process->started = true;
	if (!json_is_integer(json_object_get(command, "exitCode")))
		return true;
	if (!sbx_json_integer(command, "exitCode", &exit_code) || exit_code < INT_MIN ||
	    exit_code > INT_MAX)
		return false;
	process->ended = true;
	process->exit_code = (int) exit_code;
	return true;
}

static void
vercel_take_output(SbxOp *op, SbxVercelProcess *process, const json_t *line,
                   const char *stream)
{
	size_t length;
	const char *data = sbx_json_string_length(line, "data", &length);

	if (strcmp(stream, "error") == 0)
		process->has_error = true;
	else if (data == NULL)
		process->garbled = true;
	else if (strcmp(stream, "stdout") == 0 || strcmp(stream, "stderr") == 0)
		sbx_marks_take(&op->arena, &process->marked,
		               strcmp(stream, "stdout") == 0 ? 0 : 1, data, length);
}

/*
 * One line; false = no more of the stream is wanted.  Lines of another kind are nothing to
 * us.  The end was told when both streams were over: what follows decides nothing.
 */
static bool
vercel_take_line(SbxOp *op, const char *json, size_t length)
{
	SbxVercelProcess *process = &((SbxVercelCommand *) op->state)->process;
	const json_t *command;
	const char *stream;
	json_t *line;

	if (process->ended)
		return true;
	line = sbx_json_parse(json, length, true);
	command = json_object_get(line, "command");
	stream = sbx_json_string(line, "stream");
	if (!json_is_object(line))
		process->garbled = true;
	else if (command != NULL)
		process->garbled |= !vercel_take_command(process, command);
	else if (stream != NULL)
		vercel_take_output(op, process, line, stream);
	json_decref(line);
	process->garbled |= op->arena.out_of_memory;
	return !process->garbled && !process->has_error &&
	       !sbx_marks_complete(&process->marked);
}

static bool
vercel_take_body(SbxOp *op, const char *bytes, size_t length)
{
	SbxVercelProcess *process = &((SbxVercelCommand *) op->state)->process;
	bool more = sbx_ndjson_read(op, &process->reader, bytes, length, vercel_take_line);

	process->garbled |= process->reader.malformed && !process->ended;
	return more;
}

/* --- starting one --------------------------------------------------------- */

/* Members in the order in which the provider's own client sends them. */
static const char *
vercel_command_body(SbxOp *op, const char *text, int64_t timeout_ms)
{
	json_t *body = sbx_json_new_object();
	json_t *args = json_array();
	const char *printed = NULL;
	int failed = 0;

	failed |= json_array_append_new(args, json_string("-c"));
	failed |= json_array_append_new(args, json_string(text));
	failed |= json_object_set_new(body, "command", json_string("sh"));
	failed |= json_object_set_new(body, "args", args);
	failed |= json_object_set_new(body, "env", sbx_json_new_object());
	failed |= json_object_set_new(body, "sudo", json_false());
	failed |= json_object_set_new(body, "wait", json_true());
	failed |= json_object_set_new(body, "logs", json_true());
	failed |= json_object_set_new(body, "timeout", json_integer(timeout_ms));
	if (failed == 0)
		printed = sbx_json_print(&op->arena, body);
	json_decref(body);
	return printed;
}

static void
vercel_reset_process(SbxVercelProcess *process, size_t max_stream, const char *mark)
{
	SbxNdjsonReader reader = process->reader;

	memset(process, 0, sizeof(*process));
	process->reader.line = reader.line;
	process->reader.size = reader.size;
	sbx_marks_open(&process->marked, max_stream, mark);
}

SbxOpWant
sbx_vercel_execute(SbxOp *op, const char *text, int64_t timeout_ms, size_t max_stream,
                   const char *mark, SbxStep *answer)
{
	const char *body;
	SbxOpWant want;

	if (timeout_ms < VERCEL_COMMAND_MIN_MS)
		timeout_ms = VERCEL_COMMAND_MIN_MS;
	vercel_reset_process(&((SbxVercelCommand *) op->state)->process, max_stream, mark);
	body = vercel_command_body(op, text, timeout_ms);
	if (body == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	want = sbx_vercel_send_session(op, "POST", "/cmd", body, answer);
	op->request.take_body = vercel_take_body;
	op->request.timeout_ms = timeout_ms + VERCEL_STREAM_EXTRA_MS;
	return want;
}

/* --- how it ended --------------------------------------------------------- */

/*
 * The mark's word counts, or the last line's, also if the connection broke right after it.
 * A line that was cut is none.
 */
bool
sbx_vercel_has_ended(SbxOp *op, int *exit_code)
{
	SbxVercelProcess *process = &((SbxVercelCommand *) op->state)->process;

	if (!process->garbled)
		sbx_ndjson_finish(op, &process->reader, vercel_take_line);
	if (process->garbled || process->has_error)
		return false;
	if (sbx_marks_settle(&op->arena, &process->marked, exit_code))
		return true;
	*exit_code = process->exit_code;
	return process->ended;
}
