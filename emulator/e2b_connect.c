/*
 * e2b_connect.c
 *		The Connect protocol with JSON messages, as envd speaks it.
 *
 * A call with one answer is an ordinary POST of JSON, and its errors have a
 * status.  A call whose answer is a stream carries each message in an envelope
 * of five bytes before it: flags and a length.  Its status is 200 whatever
 * happens; how it ended is told by the last envelope.
 */
#include "e2b.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ENVELOPE_SIZE 5

static const struct
{
	const char *code;
	int status;
} statuses[] = {
    {"invalid_argument", 400},  {"failed_precondition", 400}, {"unauthenticated", 401},
    {"permission_denied", 403}, {"not_found", 404},           {"aborted", 409},
    {"already_exists", 409},    {"resource_exhausted", 429},  {"unimplemented", 501},
    {"unavailable", 503},       {"deadline_exceeded", 504},
};

static int
code_status(const char *code)
{
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if (strcmp(statuses[i].code, code) == 0)
			return statuses[i].status;
	return 500;
}

/*
 * Writing
 */

void
e2b_frame_add(EmuText *text, unsigned char flags, const EmuText *message)
{
	size_t length = message->length;
	char head[ENVELOPE_SIZE] = {
	    (char) flags,         (char) (length >> 24), (char) (length >> 16),
	    (char) (length >> 8), (char) length,
	};

	emu_text_append(text, head, sizeof(head));
	emu_text_append(text, message->data, length);
}

static void
write_error(EmuText *text, const char *code, const char *message)
{
	emu_text_add(text, "{");
	emu_json_member(text, "code", code);
	emu_json_member(text, "message", message);
	emu_text_add(text, "}");
}

/* The last envelope of a stream; without a code all went well. */
void
e2b_frame_end(EmuText *text, const char *code, const char *message)
{
	EmuText end = {0};

	emu_text_add(&end, "{");
	if (code != NULL)
	{
		emu_json_key(&end, "error");
		write_error(&end, code, message);
	}
	emu_text_add(&end, "}");
	e2b_frame_add(text, E2B_FRAME_END, &end);
	emu_text_free(&end);
}

/* An error before the first message. */
void
e2b_stream_refuse(EmuRequest *request, const char *code, const char *message)
{
	EmuText body = {0};

	e2b_frame_end(&body, code, message);
	emu_answer(request, 200, E2B_STREAM_TYPE, &body);
	emu_answer_header(request, "Connect-Accept-Encoding", "gzip");
}

void
e2b_unary_answer(EmuRequest *request, EmuText *message)
{
	emu_answer(request, 200, "application/json", message);
}

void
e2b_unary_refuse(EmuRequest *request, const char *code, const char *message)
{
	EmuText body = {0};

	write_error(&body, code, message);
	emu_answer(request, code_status(code), "application/json", &body);
}

void
e2b_unary_refuse_format(EmuRequest *request, const char *code, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	e2b_unary_refuse(request, code, message);
}

/*
 * Reading
 */

/* False if this is not a request of the protocol at all, which is answered. */
static bool
check_request(EmuRequest *request, const char *type)
{
	const char *given = emu_request_header(request, "Content-Type");
	size_t length = given != NULL ? strcspn(given, "; ") : 0;

	if (strcmp(request->method, "POST") != 0)
	{
		emu_answer_empty(request, 405);
		emu_answer_header(request, "Allow", "POST");
	}
	else if (length != strlen(type) || strncasecmp(given, type, length) != 0)
	{
		emu_answer_empty(request, 415);
		emu_answer_header(request, "Accept-Post", type);
	}
	else
		return true;
	return false;
}

static bool
version_known(EmuRequest *request)
{
	const char *version = emu_request_header(request, "Connect-Protocol-Version");

	return version == NULL || strcmp(version, "1") == 0;
}

static size_t
envelope_length(const EmuText *body)
{
	const unsigned char *head = (const unsigned char *) body->data;

	return (size_t) head[1] << 24 | (size_t) head[2] << 16 | (size_t) head[3] << 8 |
	       head[4];
}

/* What is wrong with the envelope, and the code for it; NULL if nothing is. */
static const char *
envelope_problem(const EmuText *body, const char **code)
{
	*code = "invalid_argument";
	if (body->length == 0)
	{
		*code = "unimplemented";
		return "unary request has zero messages";
	}
	if (body->length < ENVELOPE_SIZE)
		return "protocol error: incomplete envelope: unexpected EOF";
	if (body->length - ENVELOPE_SIZE < envelope_length(body))
		return "protocol error: promised more bytes in enveloped message than there "
		       "are";
	if (body->data[0] & 1)
	{
		*code = "internal";
		return "protocol error: sent compressed message without compression support";
	}
	if (body->data[0] != 0)
		return "protocol error: invalid envelope flags";
	if (body->length - ENVELOPE_SIZE > envelope_length(body))
	{
		*code = "unimplemented";
		return "unary request has multiple messages";
	}
	return NULL;
}

static json_t *
parse(const char *data, size_t length)
{
	json_t *message = json_loadb(data, length, JSON_ALLOW_NUL, NULL);

	if (json_is_object(message))
		return message;
	json_decref(message);
	return NULL;
}

/* The one message of a call whose answer is a stream; NULL once refused. */
json_t *
e2b_stream_message(EmuRequest *request)
{
	const char *code;
	const char *problem;
	json_t *message = NULL;

	if (!check_request(request, E2B_STREAM_TYPE))
		return NULL;
	problem = envelope_problem(&request->body, &code);
	if (!version_known(request))
		e2b_stream_refuse(request, "invalid_argument",
		                  "connect-protocol-version must be \"1\"");
	else if (problem != NULL)
		e2b_stream_refuse(request, code, problem);
	else if ((message = parse(request->body.data + ENVELOPE_SIZE,
	                          request->body.length - ENVELOPE_SIZE)) == NULL)
		e2b_stream_refuse(request, "invalid_argument",
		                  "unmarshal message: proto: syntax error");
	return message;
}

/* The same for a call with one answer. */
json_t *
e2b_unary_message(EmuRequest *request)
{
	json_t *message = NULL;

	if (!check_request(request, "application/json"))
		return NULL;
	if (!version_known(request))
		e2b_unary_refuse(request, "invalid_argument",
		                 "connect-protocol-version must be \"1\"");
	else if (request->body.length == 0)
		return json_object();
	else if ((message = parse(request->body.data, request->body.length)) == NULL)
		e2b_unary_refuse(request, "invalid_argument",
		                 "unmarshal message: proto: syntax error");
	return message;
}

int64_t
e2b_stream_timeout(EmuRequest *request)
{
	const char *text = emu_request_header(request, "Connect-Timeout-Ms");

	if (text == NULL)
		return 0;
	if (*text == '\0' || strlen(text) > 10 || text[strspn(text, "0123456789")] != '\0')
		return -1;
	return atoll(text);
}
