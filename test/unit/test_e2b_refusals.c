/*
 * test_e2b_refusals.c
 *		What a refused create of an E2B sandbox proves about the allocation.
 *
 * The default is "unknown".  Each refusal that proves more stands here beside a
 * neighbour that looks alike and proves nothing.
 */
#include <stdlib.h>

#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MADE    SBX_ALLOCATION_MADE

#define RETRY    "Retry-After: 1\r\n"
#define CAPACITY "{\"error_code\":\"sandbox_capacity_unavailable\"}"
#define NO_NODE  "{\"error_code\":\"sandbox_no_compatible_node\"}"

static Drive
creating(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.launch(e2b_account(), &input));
	return drive;
}

typedef struct Refusal
{
	int status;
	const char *headers;
	const char *body;
	const char *code;
	SbxAllocation allocation;
} Refusal;

static const Refusal at_the_door[] = {
    {400, "", "{\"code\":400,\"message\":\"bad template\"}", "BAD_REQUEST", NONE},
    {401, "", "{}", "UNAUTHORIZED", NONE},
    {403, "", "", "FORBIDDEN", NONE},
    {404, "", "<html>", "TEMPLATE_NOT_FOUND", NONE},
    {402, "", "{}", NULL, UNKNOWN},
    {405, "", "{}", NULL, UNKNOWN},
    {410, "", "{\"code\":404}", NULL, UNKNOWN},
    {413, "", "", NULL, UNKNOWN},
    {415, "", "", NULL, UNKNOWN},
};

static const Refusal too_many[] = {
    {429, RETRY, "{}", "RATE_LIMITED", NONE},
    {429, "retry-after: 1\r\n", "{}", "RATE_LIMITED", NONE},
    {429, "ratelimit-reset: 1\r\n", "", "RATE_LIMITED", NONE},
    {429, "", "{\"message\":\"maximum number of sandboxes (20)\"}", "CAPACITY", NONE},
    {429, "X-Retry-After: 1\r\n", "", "CAPACITY", NONE},
    {429, "", "{\"message\":\"Retry-After: 1\"}", "CAPACITY", NONE},
    {428, RETRY, "{}", NULL, UNKNOWN},
    {503, RETRY, "{}", NULL, UNKNOWN},
    {500, RETRY, "{}", NULL, UNKNOWN},
};

static const Refusal no_room[] = {
    {503, "", CAPACITY, "CAPACITY", NONE},
    {503, RETRY, CAPACITY, "CAPACITY", NONE},
    {503, "", NO_NODE, "CAPACITY", NONE},
    {500, "", CAPACITY, NULL, UNKNOWN},
    {500, "", NO_NODE, NULL, UNKNOWN},
    {502, "", CAPACITY, NULL, UNKNOWN},
    {504, "", NO_NODE, NULL, UNKNOWN},
    {503, "", "{}", NULL, UNKNOWN},
    {503, "", "", NULL, UNKNOWN},
    {503, "", "sandbox_capacity_unavailable", NULL, UNKNOWN},
    {503, "", "[" CAPACITY "]", NULL, UNKNOWN},
    {503, "", "{\"message\":\"sandbox_capacity_unavailable\"}", NULL, UNKNOWN},
    {503, "", "{\"error_code\":\"sandbox_capacity\"}", NULL, UNKNOWN},
    {503, "", "{\"error_code\":\"sandbox_capacity_unavailable2\"}", NULL, UNKNOWN},
    {503, "", "{\"error_code\":\"SANDBOX_CAPACITY_UNAVAILABLE\"}", NULL, UNKNOWN},
    {503, "", "{\"error_code\":[\"sandbox_capacity_unavailable\"]}", NULL, UNKNOWN},
    {503, "", "{\"error_code\":\"sandbox_capacity_unavailable\"", NULL, UNKNOWN},
    {503, "", "{\"error_code\":\"sandbox_create_failed\"}", NULL, UNKNOWN},
};

static const Refusal nothing_proven[] = {
    {408, "", "", NULL, UNKNOWN},
    {409, "", "{\"error_code\":\"idempotency_in_progress\"}", NULL, UNKNOWN},
    {409, "", "{\"error_code\":\"idempotency_request_mismatch\"}", NULL, UNKNOWN},
    {422, "", "{\"error_code\":\"idempotency_outcome_unknown\"}", NULL, UNKNOWN},
    {500, "", "{\"error_code\":\"sandbox_create_failed\"}", NULL, UNKNOWN},
    {500, "", "{\"error_code\":\"internal_server_error\"}", NULL, UNKNOWN},
    {500, "", "", NULL, UNKNOWN},
    {502, "", "", NULL, UNKNOWN},
    {504, "", "{\"error_code\":\"sandbox_placement_timeout\"}", NULL, UNKNOWN},
    {504, "", "", NULL, UNKNOWN},
    {100, "", "", NULL, UNKNOWN},
    {302, "Location: https://x.invalid/\r\n", "", NULL, UNKNOWN},
};

static void
refused_all(const char *name, const Refusal *rows, size_t count)
{
	section(name);
	for (size_t i = 0; i < count; i++)
	{
		Drive drive = creating();

		drive_headed(&drive, rows[i].status, rows[i].headers, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "%d %.14s %s", rows[i].status, rows[i].headers,
		      rows[i].body);
		is_text(drive.op->sandbox_id, "", "no id");
		drive_end(&drive);
	}
}

#define REFUSED(name, rows) refused_all(name, rows, sizeof(rows) / sizeof(rows[0]))

/* An answer that never came proves nothing, unless the question never left. */
static void
no_answer(void)
{
	static const struct
	{
		SbxPhase phase;
		bool sent;
		bool timed_out;
		SbxAllocation allocation;
	} rows[] = {{SBX_PHASE_CONNECT, false, false, NONE},
	            {SBX_PHASE_CONNECT, false, true, NONE},
	            {SBX_PHASE_TLS, false, false, NONE},
	            {SBX_PHASE_SEND, false, false, NONE},
	            {SBX_PHASE_SEND, true, false, UNKNOWN},
	            {SBX_PHASE_RECEIVE, true, false, UNKNOWN},
	            {SBX_PHASE_RECEIVE, true, true, UNKNOWN}};

	section("create, no answer");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = creating();

		drive_no_answer(&drive, rows[i].phase, rows[i].sent, rows[i].timed_out);
		fails(&drive, rows[i].phase, 0, NULL, rows[i].allocation, "%s, %ssent",
		      sbx_phase_name(rows[i].phase), rows[i].sent ? "" : "not ");
		drive_end(&drive);
	}
}

static void
expired(void)
{
	Drive drive = creating();

	section("create, out of time");
	drive_expire(&drive);
	is_number(drive.op->failure.allocation, UNKNOWN, "proves nothing");
	ok(drive.op->failure.timed_out && !drive.op->succeeded, "is a timeout");
	drive_end(&drive);
	drive = creating();
	drive.op->expired = true;
	drive_answer(&drive, 201, E2B_DTO("running"));
	ok(drive.op->succeeded, "an answer at the last moment counts");
	drive_end(&drive);
}

/* A sandbox was made, but which? */
static void
unreadable(void)
{
	static const char *const bodies[] = {"",
	                                     "{",
	                                     "[]",
	                                     "{}",
	                                     "<html>",
	                                     "{\"sandboxID\":5}",
	                                     "{\"sandboxID\":\"\"}",
	                                     "{\"sandboxId\":\"iabc\"}",
	                                     "{\"sandboxID\":\"a/b\"}",
	                                     "{\"sandboxID\":\"..\"}",
	                                     "{\"sandboxID\":\"-a\"}",
	                                     "{\"sandboxID\":\"iA\"}",
	                                     "{\"sandboxID\":\"i.b\"}",
	                                     "{\"sandboxID\":\"i\\u0000b\"}",
	                                     "{\"sandboxID\":\"i\",\"sandboxID\":\"j\"}",
	                                     "{\"sandboxID\":\"iabc\""};
	char *body = malloc(400);
	Drive drive;

	section("create, unreadable");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		drive = creating();
		drive_answer(&drive, 201, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 201, NULL, UNKNOWN, "201 %s", bodies[i]);
		is_text(drive.op->sandbox_id, "", "no id");
		drive_end(&drive);
	}
	for (int length = 255; length <= 256; length++)
	{
		strcpy(body, "{\"sandboxID\":\"");
		memset(body + 14, 'i', (size_t) length);
		strcpy(body + 14 + length, "\"}");
		drive = creating();
		drive_answer(&drive, 201, body);
		ok(drive.op->succeeded == (length == 255), "an id of %d bytes", length);
		drive_end(&drive);
	}
	free(body);
	drive = creating();
	drive_answer(&drive, 201, "{\"sandboxID\":\"iabc-6532622b\"}");
	ok(drive.op->succeeded, "an id of the older form");
	is_text(drive.op->sandbox_id, "iabc-6532622b", "is kept");
	drive_end(&drive);
}

void
test_e2b_refusals(void)
{
	REFUSED("refused: at the door", at_the_door);
	REFUSED("refused: too many", too_many);
	REFUSED("refused: no room", no_room);
	REFUSED("refused: proves nothing", nothing_proven);
	no_answer();
	expired();
	unreadable();
}
