/*
 * test_daytona_detached.c
 *		A launch that does not wait for its sandbox.
 */
#include "unit.h"

#define BY_NAME API "/sandbox/" NAME

static Drive
detached_with(const char *token)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	input.detached = true;
	input.launch_token = token;
	drive_start(&drive, sbx_kind_daytona.launch(account_reset(&account), &input));
	return drive;
}

static Drive
detached(void)
{
	return detached_with(NULL);
}

/* One whose answer was lost: it is looked up. */
static Drive
looking_up(const char *token)
{
	Drive drive = detached_with(token);

	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	return drive;
}

static void
launched_as(const Drive *drive, SbxSandboxState expected, const char *what)
{
	const SbxSandboxFacts *facts = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return;
	is_number(facts->state, expected, "%s: state", what);
	is_text(facts->sandbox_id, ID, "%s: id", what);
	is_text(drive->op->sandbox_id, ID, "%s: id of the operation", what);
}

static void
answered(void)
{
	Drive drive = detached();

	section("detached");
	asks(&drive, "POST", API "/sandbox", "created");
	is_number(drive.op->request.timeout_ms, 15000, "an answer can be held back longer");
	is_number(drive.op->timeout_ms, 60000, "there is time to look it up");
	ok(!drive.op->request.repeatable, "at most once");
	drive_answer(&drive, 200, DTO("creating"));
	launched_as(&drive, SBX_STATE_STARTING, "done as soon as the id is known");
	is_text(((SbxSandboxFacts *) drive.op->result)->name, NAME, "its facts");
	drive_end(&drive);

	drive = detached();
	drive_answer(&drive, 200, DTO("pending_build"));
	launched_as(&drive, SBX_STATE_STARTING, "being built");
	drive_end(&drive);
	drive = detached();
	drive_answer(&drive, 200, DTO("started"));
	launched_as(&drive, SBX_STATE_STARTED, "started already");
	drive_end(&drive);
	drive = detached();
	drive.op->expired = true;
	drive_answer(&drive, 200, DTO("creating"));
	launched_as(&drive, SBX_STATE_STARTING, "together with the end of the time");
	drive_end(&drive);
}

static void
answer_fails(int status, const char *body, SbxPhase phase, const char *code,
             SbxAllocation allocation)
{
	Drive drive = detached();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, allocation, "%d %.60s", status, body);
	is_text(drive.op->sandbox_id, allocation == SBX_ALLOCATION_MADE ? ID : "",
	        "its id");
	drive_end(&drive);
}

static void
not_answered_well(void)
{
	section("detached, refused");
	answer_fails(200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED",
	             SBX_ALLOCATION_MADE);
	answer_fails(200, DTO("build_failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED",
	             SBX_ALLOCATION_MADE);
	answer_fails(200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE",
	             SBX_ALLOCATION_MADE);
	answer_fails(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE",
	             SBX_ALLOCATION_MADE);
	answer_fails(200,
	             "{\"id\":\"" ID "\",\"toolboxProxyUrl\":\"https://evil.example/\"}",
	             SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED", SBX_ALLOCATION_MADE);
	answer_fails(200, "<html>", SBX_PHASE_PROTOCOL, NULL, SBX_ALLOCATION_UNKNOWN);
	answer_fails(200, "{\"id\":\"" ID "\",\"name\":\"other\"}", SBX_PHASE_PROTOCOL,
	             NULL, SBX_ALLOCATION_UNKNOWN);
	answer_fails(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", SBX_ALLOCATION_NONE);
	answer_fails(400, "{\"message\":\"No available runners\"}", SBX_PHASE_REMOTE,
	             "CAPACITY", SBX_ALLOCATION_NONE);
	answer_fails(409, "{\"message\":\"Sandbox with name x already exists\"}",
	             SBX_PHASE_REMOTE, "NAME_CONFLICT", SBX_ALLOCATION_UNKNOWN);
	answer_fails(408, "{}", SBX_PHASE_REMOTE, NULL, SBX_ALLOCATION_UNKNOWN);
	answer_fails(500, "", SBX_PHASE_REMOTE, NULL, SBX_ALLOCATION_UNKNOWN);
	answer_fails(502, "", SBX_PHASE_REMOTE, NULL, SBX_ALLOCATION_UNKNOWN);
}

static void
lost_answers(void)
{
	static const SbxPhase phases[] = {SBX_PHASE_SEND, SBX_PHASE_RECEIVE};
	Drive drive;

	section("detached, no answer");
	for (size_t i = 0; i < 2; i++)
	{
		drive = detached();
		drive_no_answer(&drive, phases[i], true, i == 1);
		asks(&drive, "GET", BY_NAME, "%s: looked up", sbx_phase_name(phases[i]));
		drive_answer(&drive, 200, DTO("creating"));
		launched_as(&drive, SBX_STATE_STARTING, "found");
		drive_end(&drive);
	}
	drive = detached();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	asks(&drive, "GET", BY_NAME, "an answer that is too large: looked up");
	drive_end(&drive);
	drive = detached();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_NONE,
	      "never sent: nothing was made");
	drive_end(&drive);

	drive = looking_up(NULL);
	for (int i = 0; i < 3; i++)
	{
		asks(&drive, "GET", BY_NAME, "looked up");
		if (i == 0)
			drive_answer(&drive, 404, "{}");
		else if (i == 1)
			drive_answer(&drive, 503, "");
		else
			drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
		pauses(&drive, 100, "no proof: again");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 200, DTO("started"));
	launched_as(&drive, SBX_STATE_STARTED, "there at last");
	drive_end(&drive);

	drive = looking_up(NULL);
	drive_answer(&drive, 404, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "not there to the end: the lost answer is the reason");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "flags");
	is_text(drive.op->sandbox_id, "", "no id");
	drive_end(&drive);
	drive = looking_up(NULL);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "time over while looking");
	drive_end(&drive);
	drive = detached();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "time over while creating");
	drive_end(&drive);
}

#define FOUND(labels)                                                                  \
	"{\"id\":\"" ID "\",\"state\":\"started\",\"labels\":{" labels "}}"
#define OWNER "\"sbx-router-id\":\"" NAME "\""

/* What has the name is only ours if it says so. */
static void
found_by_name(void)
{
	static const struct
	{
		const char *token;
		const char *body;
		bool ours;
	} rows[] = {{NULL, FOUND(OWNER), true},
	            {"t1", FOUND(OWNER ",\"sbx-router-launch\":\"t1\""), true},
	            {"t1", FOUND(OWNER ",\"sbx-router-launch\":\"t2\""), false},
	            {"t1", FOUND(OWNER), false},
	            {NULL, FOUND(OWNER ",\"sbx-router-launch\":\"t1\""), false},
	            {NULL, FOUND("\"sbx-router-id\":\"x\""), false},
	            {NULL, FOUND(""), false},
	            {NULL, "{\"id\":\"" ID "\"}", false}};
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
		SbxAllocation allocation;
	} ends[] = {
	    {401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN},
	    {403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN", SBX_ALLOCATION_UNKNOWN},
	    {400, "{}", SBX_PHASE_REMOTE, NULL, SBX_ALLOCATION_UNKNOWN},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL, SBX_ALLOCATION_UNKNOWN},
	    {200, "{\"id\":\"a/b\"}", SBX_PHASE_PROTOCOL, NULL, SBX_ALLOCATION_UNKNOWN},
	    {200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", SBX_ALLOCATION_MADE},
	    {200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE",
	     SBX_ALLOCATION_MADE}};
	Drive drive;

	section("detached, looked up");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = looking_up(rows[i].token);
		drive_answer(&drive, 200, rows[i].body);
		if (rows[i].ours)
			launched_as(&drive, SBX_STATE_STARTED, rows[i].body);
		else
		{
			fails(&drive, SBX_PHASE_RECEIVE, 0, "NAME_CONFLICT", SBX_ALLOCATION_UNKNOWN,
			      "%zu: not ours", i);
			is_text(drive.op->sandbox_id, "", "%zu: its id is not taken", i);
		}
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = looking_up(NULL);
		drive_answer(&drive, ends[i].status, ends[i].body);
		fails(&drive, ends[i].phase, ends[i].status, ends[i].code, ends[i].allocation,
		      "%d %.60s", ends[i].status, ends[i].body);
		drive_end(&drive);
	}
}

/* Who waits looks nothing up: the caller has more time and more to do. */
static void
neighbour(void)
{
	Drive drive = launched();

	section("not detached");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "a lost answer ends it");
	drive_end(&drive);
	drive = launched();
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "GET", SANDBOX, "and an answer does not");
	drive_end(&drive);
}

void
test_daytona_detached(void)
{
	answered();
	not_answered_well();
	lost_answers();
	found_by_name();
	neighbour();
}
