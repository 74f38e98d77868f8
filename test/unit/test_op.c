/*
 * test_op.c
 *		Arena, request headers, response headers, URL encoding.
 */
#include "unit.h"

static SbxOpWant
nothing(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

static SbxOp *
new_op(void)
{
	return sbx_op_create("test", nothing, 8, 256, 1000);
}

static void
arena_rules(void)
{
	SbxArena arena;
	char *first;
	char *second;

	section("arena");
	sbx_arena_init(&arena, 64, 1024);
	first = sbx_arena_alloc(&arena, 1);
	second = sbx_arena_alloc(&arena, 1);
	ok((uintptr_t) first % 16 == 0 && (uintptr_t) second % 16 == 0, "aligned for all");
	ok(second - first == 16, "both from the block reserved at first");
	is_number(*first, 0, "memory is zeroed");
	is_text(sbx_arena_strdup(&arena, "abc"), "abc", "strdup copies");
	is_text(sbx_arena_strndup(&arena, "abc", 2), "ab", "strndup ends the copy");
	is_text(sbx_arena_printf(&arena, "%d-%s", 7, "x"), "7-x", "printf");
	ok(sbx_arena_strndup(&arena, NULL, 0) != NULL, "nothing is copied from nowhere");
	ok(sbx_arena_alloc(&arena, 900) != NULL, "a large piece gets a block of its own");
	ok(!arena.out_of_memory, "within the limit nothing is flagged");
	ok(sbx_arena_alloc(&arena, 200) == NULL, "over the limit there is nothing");
	ok(arena.out_of_memory, "and that is flagged");
	ok(sbx_arena_alloc(&arena, 1) == NULL, "the flag is sticky");
	sbx_arena_free(&arena);

	sbx_arena_init(&arena, 0, SIZE_MAX);
	ok(sbx_arena_alloc(&arena, SIZE_MAX) == NULL, "SIZE_MAX does not wrap around");
	sbx_arena_free(&arena);
	sbx_arena_init(&arena, 0, SIZE_MAX);
	ok(sbx_arena_strndup(&arena, "", SIZE_MAX) == NULL && arena.out_of_memory,
	   "a length of SIZE_MAX does not wrap around");
	sbx_arena_free(&arena);

	unit_mallocs_left = 0;
	sbx_arena_init(&arena, 64, 1024);
	ok(arena.out_of_memory, "no memory for the first block is a flag, not an exit");
	unit_mallocs_left = -1;
	sbx_arena_free(&arena);
}

static void
creation_without_memory(void)
{
	section("op");
	for (long left = 0; left < 2; left++)
	{
		unit_mallocs_left = left;
		ok(new_op() == NULL, "no operation after %ld allocations", left);
	}
	unit_mallocs_left = -1;
	sbx_op_free(NULL);
}

static void
header_rules(void)
{
	static const char *const bad[][3] = {
	    {"A b", "", "v"},    {"A:", "", "v"},        {"", "", "v"},
	    {"A\r\nB", "", "v"}, {"A", "", "v\r\nB: c"}, {"A", "", "v\n"},
	    {"A", "x\r", "v"},   {"A", "", "v\x7f"},     {"A", "", "v\x01"},
	    {"A", "", NULL},     {NULL, "", "v"},        {"\xc3\xa4", "", "v"},
	};
	SbxOp *op = new_op();

	section("header");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		sbx_op_request(op, "GET", "https://x/", true);
		op->succeeded = true;
		ok(!sbx_op_header(op, bad[i][0], bad[i][1], bad[i][2]) && !op->succeeded &&
		       op->request.header_count == 0,
		   "injection %zu is refused", i);
	}
	sbx_op_request(op, "GET", "https://x/", true);
	ok(sbx_op_header(op, "X-a.b_c~1", "Bearer ", "v \xc3\xa4 w"),
	   "a token and a value with blanks and UTF-8 pass");
	is_text(sent_header(op, "x-a.b_c~1"), "Bearer v \xc3\xa4 w", "prefix and value");
	for (int i = 1; i < SBX_MAX_HEADERS; i++)
		sbx_op_header(op, "A", "", "v");
	ok(!sbx_op_header(op, "A", "", "v"), "one header too many is refused");
	sbx_op_request(op, "GET", "https://x/", true);
	is_number(op->request.header_count, 0, "a new request starts empty");
	sbx_op_free(op);
}

static void
response_header_rules(void)
{
	SbxOp *op = new_op();

	section("response header");
	op->response.headers = "HTTP/1.1 429 Too Many\r\nRetry-After-x: 1\r\n"
	                       "retry-AFTER:  12 \t\r\nRetry-After: 13\r\nEmpty:\r\n\r\n";
	is_text(sbx_op_response_header(op, "Retry-After"), "12",
	        "the first, whatever its case, trimmed; not one that only starts so");
	is_text(sbx_op_response_header(op, "Empty"), "", "empty is not absent");
	is_text(sbx_op_response_header(op, "Retry"), NULL, "absent");
	op->response.headers = NULL;
	is_text(sbx_op_response_header(op, "Retry-After"), NULL, "no headers at all");
	op->response.headers = "Retry-After";
	is_text(sbx_op_response_header(op, "Retry-After"), NULL, "a line without a colon");
	sbx_op_free(op);
}

static void
retry_after_rules(void)
{
	static const struct
	{
		const char *name;
		int status;
		const char *headers;
		int seconds;
	} rows[] = {
	    {"must fire: seconds", 429, "retry-AFTER: 17 \r\n", 17},
	    {"must fire: of a server in trouble", 503, "X: 1\r\nRetry-After:5\r\n", 5},
	    {"must fire: the longest of several limits", 429,
	     "Retry-After-sandbox-create: 3\r\nRetry-After-authenticated: 9\r\n", 9},
	    {"must fire: the longest that is read", 429, "Retry-After: 999999\r\n", 999999},
	    {"must not fire: longer than anybody waits", 429, "Retry-After: 1000000\r\n",
	     0},
	    {"must not fire: a date", 429, "Retry-After: Fri, 31 Dec 2027 23:59:59 GMT\r\n",
	     0},
	    {"must not fire: below zero", 429, "Retry-After: -1\r\n", 0},
	    {"must not fire: a fraction", 429, "Retry-After: 1.5\r\n", 0},
	    {"must not fire: nothing", 429, "Retry-After:\r\n", 0},
	    {"must not fire: another name", 429, "Retry-Afterwards: 17\r\n", 0},
	    {"must not fire: no colon", 429, "Retry-After", 0},
	    {"must not fire: a success", 202, "Retry-After: 17\r\n", 0},
	    {"must not fire: no headers", 429, NULL, 0},
	};
	SbxOp *op = new_op();

	section("retry-after");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		op->response.status = rows[i].status;
		op->response.headers = rows[i].headers;
		is_number(sbx_op_retry_after(op), rows[i].seconds, "%s", rows[i].name);
		sbx_op_fail_response(op, NULL, SBX_ALLOCATION_NONE);
		is_number(op->failure.retry_after, rows[i].seconds, "as its failure says");
	}
	sbx_op_free(op);
}

static void
encoding_rules(void)
{
	SbxOp *op = new_op();

	section("encoding");
	is_text(sbx_arena_url_encode(&op->arena, "aZ0-._~"), "aZ0-._~",
	        "unreserved is kept");
	is_text(sbx_arena_url_encode(&op->arena, "a/b?c%\xc3\xa4 "),
	        "a%2Fb%3Fc%25%C3%A4%20", "everything else is encoded");
	is_text(sbx_arena_url_encode(&op->arena, ""), "", "empty");
	ok(sbx_ascii_equal("ABC", "abd", 2) && !sbx_ascii_equal("ABC", "abd", 3),
	   "compared up to the length");
	ok(!sbx_ascii_equal("ab", "abc", 3) && sbx_ascii_equal("ab", "AB", 99),
	   "compared up to the end");
	ok(!sbx_ascii_equal("\xc4", "\xe4", 1) && !sbx_ascii_equal("[", "{", 1),
	   "only ASCII letters have a case");
	sbx_op_free(op);
}

static void
ending_rules(void)
{
	Drive drive = {.op = new_op(), .want = SBX_OP_WANT_NOTHING};
	SbxOp *op = drive.op;

	section("ending");
	op->response.failed_phase = SBX_PHASE_TLS;
	sbx_op_fail_response(op, NULL, SBX_ALLOCATION_NONE);
	fails(&drive, SBX_PHASE_TLS, 0, NULL, SBX_ALLOCATION_NONE,
	      "trouble keeps its phase");
	op->response.failed_phase = SBX_PHASE_NONE;
	sbx_op_fail_response(op, NULL, SBX_ALLOCATION_UNKNOWN);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "no answer and no phase is no answer");
	op->response.status = 500;
	op->response.request_sent = true;
	sbx_op_fail_response(op, "X", SBX_ALLOCATION_MADE);
	fails(&drive, SBX_PHASE_REMOTE, 500, "X", SBX_ALLOCATION_MADE,
	      "a status is remote");
	ok(op->failure.request_sent && !op->failure.timed_out, "facts are copied");
	op->expired = true;
	sbx_op_fail(op, SBX_PHASE_NONE, NULL, SBX_ALLOCATION_NONE);
	ok(op->failure.timed_out, "an expired operation timed out");
	sbx_op_succeed(op, op);
	ok(op->succeeded && op->result == op && op->failure.http_status == 0,
	   "success leaves no failure behind");
	is_number(sbx_op_pause(op, 7), SBX_OP_WANT_PAUSE, "a pause");
	is_text(sbx_phase_name(SBX_PHASE_PROTOCOL), "protocol", "phase name");
	is_text(sbx_phase_name((SbxPhase) 99), "unknown", "no phase name");
	is_text(sbx_allocation_name(SBX_ALLOCATION_NONE), "none", "allocation name");
	sbx_op_free(op);
}

static bool
hears_nothing(SbxOp *op, const char *bytes, size_t length)
{
	(void) op;
	(void) bytes;
	(void) length;
	return true;
}

static void
saying_rules(void)
{
	SbxOp *op = new_op();
	const SbxMessage *said;

	section("saying");
	sbx_op_request(op, "GET", "https://a.invalid", false);
	op->request.talk = hears_nothing;
	ok(op->request.said == NULL && op->request.alarm_ms == 0, "nothing at first");
	sbx_op_say(op, "one", 3);
	sbx_op_say(op, "", 0);
	sbx_op_say(op, "three", 5);
	said = op->request.said;
	ok(said->length == 3 && said->next->length == 0 && said->next->next->length == 5 &&
	       said->next->next->next == NULL,
	   "messages in their order, an empty one, too");

	/* As a driver does, who has sent all there was. */
	op->request.said = NULL;
	sbx_op_say(op, "four", 4);
	ok(op->request.said->length == 4 && op->request.said->next == NULL,
	   "what was sent does not come back");
	sbx_op_alarm(op, 70);
	sbx_op_alarm(op, 50);
	is_number(op->request.alarm_ms, 50, "the last alarm counts");
	sbx_op_alarm(op, 0);
	is_number(op->request.alarm_ms, 1, "at once is an alarm, and none is not");
	op->arena.limit = op->arena.used;
	sbx_op_say(op, "five", 4);
	ok(op->arena.out_of_memory && op->request.said->next == NULL,
	   "without memory nothing is said, and that is known");
	sbx_op_request(op, "GET", "https://a.invalid", false);
	ok(op->request.said == NULL && op->request.talk == NULL, "a new request has none");
	sbx_op_free(op);
}

void
test_op(void)
{
	arena_rules();
	creation_without_memory();
	header_rules();
	response_header_rules();
	retry_after_rules();
	encoding_rules();
	ending_rules();
	saying_rules();
}
