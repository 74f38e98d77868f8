/*
 * adapter.c
 *		Target: a provider's answers, to every operation of its kind.
 *
 * The input chooses an operation, and what comes back for each of its requests: any
 * status, headers and body, a stream in pieces, or a failure of the transport.  When it is
 * used up the operation's time is over.  Which kind: FUZZ_KIND.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/json.h"
#include "operations.h"

/* More requests than any operation makes before its time is over. */
#define MAX_STEPS 20000

typedef struct Exchange
{
	int status; /* 0 = none */
	bool sent;
} Exchange;

typedef struct Course
{
	const FuzzOperation *operation;
	SbxOp *op;
	FuzzInput *input;
	bool create_unknown; /* a sandbox may be there that nothing is known of */
	bool script_sent;    /* the script may run, or have run */
	int pauses;          /* in a row */
} Course;

/* --- what is asked for ---------------------------------------------------- */

static bool
contains(const char *bytes, size_t length, const char *text)
{
	return bytes != NULL && memmem(bytes, length, text, strlen(text)) != NULL;
}

/* Keys go to hosts of the account and their siblings only. */
static void
check_host(const SbxHttpRequest *request)
{
	const char *host = strstr(request->url, "://");
	size_t length;
	bool has_key = false;

	fuzz_check(host != NULL && strncasecmp(request->url, "http", 4) == 0, "address %s",
	           request->url);
	host += 3;
	length = strcspn(host, "/?#");
	for (int i = 0; i < request->header_count; i++)
		has_key = has_key || strstr(request->headers[i].value, FUZZ_KEY) != NULL;
	fuzz_check(memchr(host, '@', length) == NULL, "a user in %s", request->url);
	fuzz_check(length > strlen(FUZZ_HOST) &&
	               strncasecmp(host + length - strlen(FUZZ_HOST), FUZZ_HOST,
	                           strlen(FUZZ_HOST)) == 0,
	           "%s to %s", has_key ? "the key" : "a request", request->url);
}

static void
check_request(const SbxHttpRequest *request)
{
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	bool known = false;

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		known = known || strcmp(request->method, methods[i]) == 0;
	fuzz_check(known, "method %s", request->method);
	for (const char *byte = request->url; *byte != '\0'; byte++)
		fuzz_check((unsigned char) *byte > ' ' && *byte != 0x7f, "address with 0x%02x",
		           (unsigned char) *byte);
	fuzz_check(strstr(request->url, FUZZ_KEY) == NULL, "the key in %s", request->url);
	check_host(request);
	fuzz_check(request->header_count <= SBX_MAX_HEADERS, "headers");
	for (int i = 0; i < request->header_count; i++)
	{
		fuzz_check(strpbrk(request->headers[i].value, "\r\n") == NULL, "header value");
		fuzz_touch_text(request->headers[i].name);
		fuzz_touch_text(request->headers[i].prefix);
	}
	if (request->body != NULL)
		fuzz_touch(request->body, request->body_length);
	fuzz_check(!contains(request->body, request->body_length, FUZZ_KEY),
	           "key in a body");
	fuzz_check((request->take_body == NULL && request->talk == NULL) ||
	               !request->repeatable,
	           "a stream that may be repeated");
	fuzz_check(request->talk == NULL || request->alarm_ms > 0,
	           "a WebSocket that nobody watches");
	fuzz_check(request->timeout_ms >= 0, "a time below zero");
}

static bool
said_contains(const SbxHttpRequest *request, const char *text)
{
	for (const SbxMessage *said = request->said; said != NULL; said = said->next)
	{
		if (contains(said->bytes, said->length, text))
			return true;
	}
	return false;
}

/*
 * Does it make a sandbox, or deliver the script?  What is said over a WebSocket is known
 * only afterwards.
 */
static bool
acts(const Course *course, const SbxHttpRequest *request)
{
	if (course->operation->launches)
		return strcmp(request->method, "POST") == 0 && !request->repeatable;
	return course->operation->runs &&
	       (contains(request->body, request->body_length,
	                 "script-of-the-fuzzer-4711") ||
	        said_contains(request, "script-of-the-fuzzer-4711"));
}

/* --- what comes back -------------------------------------------------------- */

static const int statuses[] = {200, 201, 202, 204, 200, 200, 400, 401,
                               403, 404, 408, 409, 410, 412, 422, 429,
                               500, 502, 503, 504, 301, 307, 299, 599};

/* Only the first three can come.  The last of them says whose the answer is. */
#define STORED "X-Freestyle-Background-Request-Id: ri-1\r\n"
static const char *const headers[] = {"", "Content-Type: application/json\r\n",
                                      ("Retry-After: 1\r\n" STORED)};

/* A stream is taken as it comes; what is left afterwards is nothing. */
static void
feed(SbxOp *op, const char *bytes, size_t length, size_t piece)
{
	bool (*take)(SbxOp * op, const char *bytes, size_t length) =
	    op->request.talk != NULL ? op->request.talk : op->request.take_body;
	bool more = true;

	if (piece == 0)
		piece = length;
	for (size_t at = 0; at < length && more; at += piece)
	{
		size_t part = length - at < piece ? length - at : piece;
		char *copy = malloc(part);

		if (copy == NULL)
			abort();
		memcpy(copy, bytes + at, part);
		more = take(op, copy, part);
		free(copy);
	}
	if (more && op->request.talk != NULL && length % 2 == 1)
		(void) op->request.talk(op, NULL, 0);
	for (const SbxMessage *said = op->request.said; said != NULL; said = said->next)
		fuzz_touch(said->bytes, said->length);
	fuzz_check(!said_contains(&op->request, FUZZ_KEY), "the key in a message");
}

static char *
read_body(FuzzInput *input, size_t *length)
{
	size_t wanted = fuzz_byte(input);

	wanted |= (size_t) fuzz_byte(input) << 8;
	return fuzz_bytes(input, wanted, length);
}

/* Fills in the response; the caller frees body and headers when the step is done. */
static Exchange
respond(Course *course)
{
	SbxOp *op = course->op;
	SbxHttpResponse *response = &op->response;
	uint8_t how = fuzz_byte(course->input);
	size_t length;
	char *body = NULL;
	bool fails = how >= 0xC0;
	int status = statuses[how % (sizeof(statuses) / sizeof(statuses[0]))];
	bool streams;

	if (op->request.talk != NULL && how % 2 == 0)
		status = 101;
	streams = (op->request.take_body != NULL && (fails || status == 200)) ||
	          (op->request.talk != NULL && (fails || status == 101));
	memset(response, 0, sizeof(*response));
	if (!fails || streams)
		body = read_body(course->input, &length);
	if (streams)
	{
		feed(op, body, length, fuzz_byte(course->input));
		length = 0;
		body[0] = '\0';
	}
	if (fails)
	{
		free(body);
		response->failed_phase = SBX_PHASE_CONNECT + how % 5;
		response->request_sent = response->failed_phase >= SBX_PHASE_SEND;
		response->timed_out = (how & 8) != 0;
		response->too_large = response->request_sent && (how & 16) != 0;
		response->denied = !response->request_sent && (how & 16) != 0;
		return (Exchange){0, response->request_sent};
	}
	response->status = status;
	response->request_sent = true;
	response->headers = headers[how >> 6];
	response->body = body;
	response->body_length = length;
	return (Exchange){status, true};
}

/* --- the course of an operation --------------------------------------------- */

/* Afterwards nobody may look at the answer any more. */
static SbxOpWant
advance(Course *course)
{
	SbxOp *op = course->op;
	char *body = (char *) op->response.body;
	SbxOpWant want = op->advance(op);

	free(body);
	memset(&op->response, 0, sizeof(op->response));
	fuzz_check(memchr(op->sandbox_id, '\0', sizeof(op->sandbox_id)) != NULL,
	           "the id has no end");
	fuzz_check(strpbrk(op->sandbox_id, "/?#%\\ \t\r\n\"'") == NULL, "the id %s",
	           op->sandbox_id);
	return want;
}

static void
remember(Course *course, bool acted, Exchange exchange)
{
	bool refused = exchange.status >= 400 && exchange.status < 500;

	if (!acted || !exchange.sent || refused)
		return;
	course->script_sent = true;
	course->create_unknown = exchange.status == 0 || exchange.status < 300;
}

/* A create that was answered "later" can be refused later. */
static void
settle(Course *course, Exchange exchange)
{
	const char *sent = course->op->response.headers;

	if (exchange.status >= 400 && exchange.status < 500 && strstr(sent, STORED) != NULL)
		course->create_unknown = false;
}

static SbxOpWant
exchange(Course *course)
{
	const SbxHttpRequest *request = &course->op->request;
	bool asks_for_result = strstr(request->url, "/background-requests/") != NULL;
	bool had_been_sent = course->script_sent;
	bool acted;
	Exchange answered;

	check_request(request);
	acted = acts(course, request);
	answered = respond(course);
	acted = acted || (request->talk != NULL && acts(course, request));
	fuzz_check(!acted || !had_been_sent, "%s: sent once more after it may have arrived",
	           course->operation->name);
	remember(course, acted, answered);
	if (asks_for_result)
		settle(course, answered);
	course->pauses = 0;
	return advance(course);
}

/* What was under way then may have arrived. */
static SbxOpWant
expire(Course *course, bool under_way)
{
	SbxOpWant want;

	if (under_way && acts(course, &course->op->request))
		course->create_unknown = true;
	course->op->expired = true;
	course->op->response.timed_out = true;
	course->op->response.failed_phase = SBX_PHASE_RECEIVE;
	course->op->response.request_sent = under_way;
	want = advance(course);
	fuzz_check(want == SBX_OP_WANT_NOTHING, "%s goes on when its time is over",
	           course->operation->name);
	return want;
}

static void
check_failure(const Course *course)
{
	const SbxFailure *failure = &course->op->failure;

	fuzz_check(failure->phase <= SBX_PHASE_REMOTE, "phase %d", (int) failure->phase);
	fuzz_check(failure->allocation <= SBX_ALLOCATION_MADE, "allocation");
	fuzz_check(failure->http_status == 0 ||
	               (failure->http_status >= 100 && failure->http_status <= 999),
	           "status %d", failure->http_status);
	if (failure->provider_code != NULL)
		fuzz_check(
		    strspn(failure->provider_code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
		        strlen(failure->provider_code),
		    "code %s", failure->provider_code);
	fuzz_check(!course->operation->launches || !course->create_unknown ||
	               failure->allocation != SBX_ALLOCATION_NONE,
	           "a create that may have worked is said to have made nothing");
}

static void
run(Course *course)
{
	SbxOpWant want = advance(course);
	int steps = 0;

	while (want != SBX_OP_WANT_NOTHING)
	{
		fuzz_check(++steps < MAX_STEPS, "%s does not end", course->operation->name);
		if (course->input->left == 0)
			want = expire(course, want == SBX_OP_WANT_HTTP);
		else if (want == SBX_OP_WANT_HTTP)
			want = exchange(course);
		else
		{
			fuzz_check(course->op->pause_ms >= 0 && course->op->pause_ms <= 60000,
			           "a pause of %lld ms", (long long) course->op->pause_ms);
			fuzz_check(++course->pauses < 100, "%s only pauses",
			           course->operation->name);
			course->op->elapsed_ms += course->op->pause_ms;
			course->op->rest_ms = course->op->timeout_ms - course->op->elapsed_ms;
			want = advance(course);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const SbxProviderKind *kind = NULL;
	FuzzInput input = {data, size};
	Course course = {.input = &input};

	if (kind == NULL)
	{
		sbx_json_init();
		kind = sbx_provider_kind_find(FUZZ_KIND);
		fuzz_check(kind != NULL, "no kind %s", FUZZ_KIND);
	}

	/* Fuzzers see what they are compared with: what was put in may come out. */
	if (contains((const char *) data, size, FUZZ_KEY))
		return 0;
	course.operation = &fuzz_operations[fuzz_byte(&input) % fuzz_operation_count];
	course.op = course.operation->make(kind, fuzz_account(kind), &input);
	if (course.op == NULL)
		return 0;
	run(&course);
	if (course.op->succeeded)
		course.operation->look_at(course.op->result);
	else
		check_failure(&course);
	sbx_op_free(course.op);
	return 0;
}
