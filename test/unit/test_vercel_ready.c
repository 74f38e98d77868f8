/*
 * test_vercel_ready.c
 *		Waiting for a Vercel sandbox: after its create, when asked for, after a start, and
 *		until a stop is done.
 */
#include <stdlib.h>

#include "unit.h"

#define LOOK    VERCEL_SESSION "?teamId=team_1"
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MADE    SBX_ALLOCATION_MADE
#define AWAITED_OF(id, state)                                                          \
	"{\"session\":{\"id\":\"" id "\",\"status\":\"" state "\"}}"
#define AWAITED(state) AWAITED_OF("sbx_SESSION1", state)
#define STOPPED        VERCEL_DTO_OF(VERCEL_ROW("stopped", ""), "stopped")

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static Drive
waiting(void)
{
	return begin(sbx_kind_vercel.wait_ready(vercel_account(), &vercel_target, 0));
}

/* A launch whose create was answered so. */
static Drive
answered(const char *answer)
{
	SbxLaunchInput input = plain_input();
	Drive drive = begin(sbx_kind_vercel.launch(vercel_account(), &input));

	drive_answer(&drive, 200, answer);
	return drive;
}

static bool
is_ready(const Drive *drive, SbxSandboxState state, const char *name)
{
	return ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded &&
	              ((const SbxSandboxFacts *) drive->op->result)->state == state,
	          "%s", name);
}

/* What the create's own answer says. */
static void
creates(void)
{
	static const struct
	{
		const char *answer;
		SbxPhase phase;
		const char *code;
		SbxAllocation allocation;
	} rows[] = {
	    {VERCEL_DTO("failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", MADE},
	    {VERCEL_DTO("aborted"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", MADE},
	    {VERCEL_DTO("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED", MADE},
	    {"{\"sandbox\":{\"name\":\"" NAME "\"}}", SBX_PHASE_PROTOCOL, NULL, MADE},
	    {"{\"sandbox\":{\"name\":\"" NAME "\",\"currentSessionId\":\"a/b\"}}",
	     SBX_PHASE_PROTOCOL, NULL, MADE},
	    {"{\"sandbox\":{\"name\":\"sbx_other\",\"currentSessionId\":\"s\"}}",
	     SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	    {"{\"sandbox\":{\"name\":5}}", SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	    {"{\"sandbox\":[]}", SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	    {"{}", SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	    {"<html>", SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	    {"", SBX_PHASE_PROTOCOL, NULL, UNKNOWN},
	};
	Drive drive = answered(VERCEL_DTO("running"));

	is_ready(&drive, SBX_STATE_STARTED, "it runs at once");
	is_text(drive.op->sandbox_id, NAME, "its name is its id");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = answered(rows[i].answer);
		fails(&drive, rows[i].phase, 200, rows[i].code, rows[i].allocation, "%s",
		      rows[i].answer);
		is_text(drive.op->sandbox_id, rows[i].allocation == MADE ? NAME : "",
		        "known only where it is proven");
		drive_end(&drive);
	}
}

/* A session that is pending is looked at until it runs. */
static void
pending(void)
{
	static const struct
	{
		int status;
		const char *answer;
		SbxPhase phase;
		const char *code;
	} ends[] = {
	    {200, AWAITED("failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED"},
	    {200, AWAITED("aborted"), SBX_PHASE_REMOTE, "SANDBOX_FAILED"},
	    {200, AWAITED("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {200, AWAITED("stopping"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {200, AWAITED_OF("sbx_OTHER", "running"), SBX_PHASE_PROTOCOL, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE"},
	    {401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	};
	Drive drive = answered(VERCEL_DTO("pending"));

	is_text(drive.op->sandbox_id, NAME, "it is known before it runs");
	pauses(&drive, 100, "not yet");
	drive_pause_over(&drive);
	asks(&drive, "GET", LOOK, "the session is looked at, which resumes nothing");
	drive_answer(&drive, 200, AWAITED("pending"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AWAITED("dreaming"));
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 429, "{}");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AWAITED("running"));
	is_ready(&drive, SBX_STATE_STARTED, "must fire: it runs");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = answered(VERCEL_DTO("pending"));
		drive_pause_over(&drive);
		drive_answer(&drive, ends[i].status, ends[i].answer);
		fails(&drive, ends[i].phase, ends[i].status, ends[i].code, MADE,
		      "must not fire: %d %s", ends[i].status, ends[i].answer);
		drive_end(&drive);
	}
	drive = answered(VERCEL_DTO("pending"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AWAITED("pending"));
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out &&
	       drive.op->failure.allocation == MADE,
	   "must not fire: the time is over");
	drive_end(&drive);
}

/* Asked for, "not yet" is a result as well. */
static void
asked_for(void)
{
	static const struct
	{
		int status;
		const char *answer;
		const char *code;
	} ends[] = {
	    {404, "{}", "SANDBOX_GONE"},
	    {200, VERCEL_DTO("stopped"), "NOT_STARTED"},
	    {200, VERCEL_DTO("stopping"), "NOT_STARTED"},
	    {200, VERCEL_DTO("failed"), "SANDBOX_FAILED"},
	    {200, "{\"sandbox\":{\"name\":\"" NAME "\"}}", "NOT_OURS"},
	    {403, "{}", "FORBIDDEN"},
	};
	Drive drive = waiting();

	asks(&drive, "GET", VERCEL_SANDBOX, "looked at");
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	is_ready(&drive, SBX_STATE_STARTED, "must fire: it runs");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = waiting();
		drive_answer(&drive, ends[i].status, ends[i].answer);
		fails(&drive, SBX_PHASE_REMOTE, ends[i].status, ends[i].code, UNKNOWN,
		      "must not fire: %s", ends[i].code);
		drive_end(&drive);
	}
	drive = waiting();
	drive_answer(&drive, 502, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, VERCEL_DTO("pending"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AWAITED("pending"));
	drive_expire(&drive);
	is_ready(&drive, SBX_STATE_STARTING, "not yet");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 502, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 502, NULL, UNKNOWN,
	      "must not fire: it was never seen");
	drive_end(&drive);
}

static Drive
starting(void)
{
	Drive drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));

	drive_answer(&drive, 200, STOPPED);
	asks(&drive, "GET", VERCEL_SANDBOX "&resume=true", "a resume is asked for");
	return drive;
}

static void
starts(void)
{
	static const struct
	{
		int status;
		const char *answer;
		const char *code; /* NULL = it is looked at again */
	} rows[] = {{410, "{}", "NOTHING_KEPT"},
	            {402, "{}", "CAPACITY"},
	            {429, "{}", "CAPACITY"},
	            {401, "{}", "UNAUTHORIZED"},
	            {404, "{}", "SANDBOX_GONE"},
	            {429, "{\"error\":{\"limit\":{}}}", NULL},
	            {409, "{}", NULL},
	            {422, "{}", NULL},
	            {500, "", NULL}};
	Drive drive = starting();

	drive_answer(&drive, 200, VERCEL_DTO("running"));
	is_ready(&drive, SBX_STATE_STARTED, "it runs at once");
	drive_end(&drive);
	drive = starting();
	drive_answer(&drive, 200, VERCEL_DTO("pending"));
	drive_pause_over(&drive);
	asks(&drive, "GET", LOOK, "its new session is waited for");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = starting();
		drive_answer(&drive, rows[i].status, rows[i].answer);
		if (rows[i].code != NULL)
			fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN,
			      "must not fire: %d", rows[i].status);
		else
		{
			drive_pause_over(&drive);
			asks(&drive, "GET", VERCEL_SANDBOX,
			     "%d: looked at before it is asked again", rows[i].status);
		}
		drive_end(&drive);
	}
	drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));
	drive_answer(&drive, 200, VERCEL_DTO_OF(VERCEL_ROW("stopping", ""), "stopping"));
	drive_pause_over(&drive);
	asks(&drive, "GET", VERCEL_SANDBOX, "one that stops is waited for");
	drive_end(&drive);
}

static void
stops(void)
{
	static const struct
	{
		int status;
		bool again;
	} rows[] = {{200, true},  {404, true},  {409, true}, {410, true},
	            {422, true},  {429, true},  {500, true}, {400, false},
	            {401, false}, {403, false}, {307, false}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive;

		vercel_account();
		account_boolean(&account, "persistent", true);
		drive = begin(sbx_kind_vercel.stop(&account.account, &vercel_target, 0));
		drive_answer(&drive, 200, VERCEL_DTO("running"));
		asks(&drive, "POST", VERCEL_SESSION "/stop?teamId=team_1", "its session");
		drive_answer(&drive, rows[i].status, "{}");
		if (rows[i].again)
		{
			if (drive.want == SBX_OP_WANT_PAUSE)
				drive_pause_over(&drive);
			asks(&drive, "GET", VERCEL_SANDBOX, "%d: what is there now?",
			     rows[i].status);
			drive_answer(&drive, 200, STOPPED);
			is_ready(&drive, SBX_STATE_STOPPED, "must fire: stopped");
		}
		else
			ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded,
			   "must not fire: %d", rows[i].status);
		drive_end(&drive);
	}
}

static void
stops_in_vain(void)
{
	vercel_account();
	account_boolean(&account, "persistent", true);
	is_in_vain(begin(sbx_kind_vercel.stop(&account.account, &vercel_target, 0)),
	           VERCEL_DTO("running"), "a stop");
}

void
test_vercel_ready(void)
{
	section("Vercel create");
	creates();
	section("Vercel, pending");
	pending();
	section("Vercel wait");
	asked_for();
	section("Vercel start");
	starts();
	section("Vercel stop");
	stops();
	stops_in_vain();
}
