/*
 * e2b_stream.c
 *		The events of a process on their way to one client.
 *
 * Normally they are sent as they come.  If a fault has been chosen for the
 * request there must be something to spoil, so they are collected: those of a
 * run until its end, of a start the first one.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>

/* envd reads its pipes in pieces of this size. */
#define PIECE ((size_t) 32768)

/* The names Go has for signals. */
static const char *const signal_names[] = {
    [1] = "hangup",
    [2] = "interrupt",
    [3] = "quit",
    [4] = "illegal instruction",
    [5] = "trace/breakpoint trap",
    [6] = "aborted",
    [7] = "bus error",
    [8] = "floating point exception",
    [9] = "killed",
    [10] = "user defined signal 1",
    [11] = "segmentation fault",
    [12] = "user defined signal 2",
    [13] = "broken pipe",
    [14] = "alarm clock",
    [15] = "terminated",
};

static void
stream_free(E2bStream *stream)
{
	E2bStream **place = stream->head;

	while (*place != stream)
		place = &(*place)->next;
	*place = stream->next;
	emu_timer_stop(&stream->keepalive);
	emu_timer_stop(&stream->deadline);
	emu_text_free(&stream->frames);
	free(stream);
}

/* The client has gone: the process does not care. */
static void
stream_forget(void *owner)
{
	stream_free(owner);
}

E2bStream *
e2b_stream_new(E2bStream **head, EmuRequest *request, int64_t keepalive_ms)
{
	E2bStream *stream = emu_alloc(sizeof(E2bStream));

	stream->head = head;
	stream->next = *head;
	*head = stream;
	stream->request = request;
	stream->keepalive_ms = keepalive_ms;
	stream->collected = request->fault != NULL;
	emu_request_wait(request, stream_forget, stream);
	return stream;
}

static void
stream_expired(void *owner)
{
	e2b_stream_finish(owner, "deadline_exceeded", "context deadline exceeded");
}

/* Who only watches is no longer told of the process after that long. */
void
e2b_stream_limit(E2bStream *stream, int64_t timeout_ms)
{
	if (timeout_ms > 0)
		emu_timer_start(&stream->deadline, timeout_ms, stream_expired, stream);
}

/*
 * Sending
 */

static void stream_idle(void *owner);

static void
stream_event(E2bStream *stream, const EmuText *event)
{
	EmuText message = {0};
	EmuText frame = {0};

	emu_text_add(&message, "{\"event\":");
	emu_text_append(&message, event->data, event->length);
	emu_text_add(&message, "}");
	e2b_frame_add(&frame, 0, &message);
	if (stream->collected)
		emu_text_append(&stream->frames, frame.data, frame.length);
	else
		emu_stream_add(stream->request, frame.data, frame.length);
	emu_text_free(&message);
	emu_text_free(&frame);
	emu_timer_start(&stream->keepalive, stream->keepalive_ms, stream_idle, stream);
}

static void
stream_idle(void *owner)
{
	EmuText event = {0};

	emu_text_add(&event, "{\"keepalive\":{}}");
	stream_event(owner, &event);
	emu_text_free(&event);
}

/* Answers with all that was collected. */
static void
stream_deliver(E2bStream *stream)
{
	EmuRequest *request = stream->request;

	emu_answer(request, 200, E2B_STREAM_TYPE, &stream->frames);
	emu_answer_header(request, "Connect-Accept-Encoding", "gzip");
	stream_free(stream);
	emu_request_finish_waiting(request);
}

void
e2b_stream_begin(E2bStream *stream, int pid)
{
	EmuRequest *request = stream->request;
	EmuText event = {0};

	stream->begun = true;
	if (!stream->collected)
	{
		emu_answer_stream(request, 200, E2B_STREAM_TYPE, stream_forget, stream);
		emu_answer_header(request, "Connect-Accept-Encoding", "gzip");
	}
	emu_text_format(&event, "{\"start\":{\"pid\":%d}}", pid);
	stream_event(stream, &event);
	emu_text_free(&event);
	if (!stream->collected)
		emu_request_finish_waiting(request);
	else if (request->fault != NULL && request->operation == EMU_OP_START)
		stream_deliver(stream);
}

void
e2b_stream_data(E2bStream *stream, bool errors, const char *data, size_t length)
{
	while (length > 0)
	{
		size_t piece = length < PIECE ? length : PIECE;
		EmuText event = {0};

		emu_text_format(&event, "{\"data\":{\"%s\":\"", errors ? "stderr" : "stdout");
		emu_text_base64(&event, data, piece);
		emu_text_add(&event, "\"}}");
		stream_event(stream, &event);
		emu_text_free(&event);
		data += piece;
		length -= piece;
	}
}

static void
write_status(EmuText *text, int code, int signal_number)
{
	const char *name =
	    signal_number < (int) (sizeof(signal_names) / sizeof(signal_names[0]))
	        ? signal_names[signal_number]
	        : NULL;

	if (signal_number == 0)
		emu_text_format(text, "exit status %d", code);
	else if (name != NULL)
		emu_text_format(text, "signal: %s", name);
	else
		emu_text_format(text, "signal: signal %d", signal_number);
}

/*
 * Values of zero are left out, as in all JSON of that kind; and its writer
 * puts a space here or none, so that nobody relies on either.
 */
void
e2b_stream_exit(E2bStream *stream, int code, int signal_number)
{
	const char *space = emu_random() & 1 ? " " : "";
	EmuText event = {0};
	EmuText status = {0};

	write_status(&status, code, signal_number);
	emu_text_add(&event, "{\"end\":{");
	if (signal_number != 0 || code != 0)
		emu_text_format(&event, "\"exitCode\":%s%d,%s", space,
		                signal_number != 0 ? -1 : code, space);
	if (signal_number == 0)
		emu_text_format(&event, "\"exited\":%strue,%s", space, space);
	emu_text_format(&event, "\"status\":%s\"%s\"", space, status.data);
	if (signal_number != 0 || code != 0)
		emu_text_format(&event, ",%s\"error\":%s\"%s\"", space, space, status.data);
	emu_text_add(&event, "}}");
	stream_event(stream, &event);
	emu_text_free(&event);
	emu_text_free(&status);
}

/* Nothing comes after this; without a code all went well. */
void
e2b_stream_finish(E2bStream *stream, const char *error_code, const char *message)
{
	EmuRequest *request = stream->request;
	EmuText end = {0};

	e2b_frame_end(&end, error_code, message);
	if (stream->collected || !stream->begun)
	{
		emu_text_append(&stream->frames, end.data, end.length);
		stream_deliver(stream);
	}
	else
	{
		emu_stream_add(request, end.data, end.length);
		stream_free(stream);
		emu_stream_end(request);
	}
	emu_text_free(&end);
}

/* The sandbox has gone, and with it the connection to it. */
void
e2b_stream_break(E2bStream *stream, const char *sandbox_id)
{
	EmuRequest *request = stream->request;
	bool begun = stream->begun && !stream->collected;

	stream_free(stream);
	if (begun)
		emu_stream_break(request);
	else
	{
		e2b_answer_gone(request, sandbox_id);
		emu_request_finish_waiting(request);
	}
}
