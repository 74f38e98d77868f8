/*
 * test_freestyle_power.c
 *		Starting and pausing a Freestyle machine, and waiting for one that starts.
 */
#include <stdlib.h>

#include "unit.h"

#define NONE SBX_ALLOCATION_UNKNOWN

static Drive
starting(const char *state)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_freestyle.start(freestyle_account(), &freestyle_target, 0));
	drive_answer(&drive, 200, state);
	return drive;
}

static Drive
stopping(const char *state)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_freestyle.stop(freestyle_account(), &freestyle_target, 0));
	drive_answer(&drive, 200, state);
	return drive;
}

static Drive
waiting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.wait_ready(freestyle_account(),
	                                                  &freestyle_target, 1000));
	return drive;
}

/* --- start ----------------------------------------------------------------------------- */

static void
start(void)
{
	Drive drive = starting(FREESTYLE_DTO("running"));

	ok(drive.op->succeeded, "must not fire: it runs already");
	drive_end(&drive);
	drive = starting(FREESTYLE_DTO("paused"));
	asks(&drive, "POST", FREESTYLE_VM "/start", "must fire: it is paused");
	is_text(drive.op->request.body, "{}", "with an empty object");
	ok(!drive.op->request.repeatable, "once");
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	asks(&drive, "GET", FREESTYLE_VM, "looked at afterwards");
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	pauses(&drive, 100, "until it runs");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "it runs");
	drive_end(&drive);
	drive = starting(FREESTYLE_DTO("pausing"));
	pauses(&drive, 100, "one that is being paused is waited for");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("stopped"));
	asks(&drive, "POST", FREESTYLE_VM "/start", "and started then");
	drive_end(&drive);
}

static void
start_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{429, FREESTYLE_ERROR("LIMIT_EXCEEDED"), "CAPACITY"},
	            {401, FREESTYLE_ERROR("INVALID_API_KEY"), "UNAUTHORIZED"},
	            {403, "{}", "FORBIDDEN"},
	            {404, FREESTYLE_GONE, "SANDBOX_GONE"},
	            {400, "{}", "BAD_REQUEST"}};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = starting(FREESTYLE_DTO("paused"));
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, NONE, "%d %s",
		      rows[i].status, rows[i].code);
		drive_end(&drive);
	}
	drive = starting(FREESTYLE_DTO("paused"));
	drive_answer(&drive, 429, FREESTYLE_ERROR("RATE_LIMITED"));
	pauses(&drive, 200, "too many requests: later");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	asks(&drive, "POST", FREESTYLE_VM "/start",
	     "once more, when it is seen not to run");
	drive_end(&drive);
}

static void
start_conflict(void)
{
	Drive drive = starting(FREESTYLE_DTO("paused"));

	drive_answer(&drive, 409, FREESTYLE_ERROR("CONFLICT"));
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_VM, "409 is looked into");
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 409, "CONFLICT", NONE,
	      "must fire: it is on its way nowhere");
	drive_end(&drive);
	drive = starting(FREESTYLE_DTO("paused"));
	drive_answer(&drive, 409, FREESTYLE_ERROR("CONFLICT"));
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 409, "CONFLICT", NONE,
	      "must fire: with the status of the refusal, whatever a look has met");
	drive_end(&drive);
	drive = starting(FREESTYLE_DTO("paused"));
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	drive_answer(&drive, 503, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, NONE,
	      "must not fire: without a refusal that is the reason");
	drive_end(&drive);
	drive = starting(FREESTYLE_DTO("paused"));
	drive_answer(&drive, 409, FREESTYLE_ERROR("CONFLICT"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "must not fire: somebody else started it");
	drive_end(&drive);
}

/* --- stop ------------------------------------------------------------------------------ */

static void
stop(void)
{
	Drive drive = stopping(FREESTYLE_DTO("paused"));

	ok(drive.op->succeeded, "must not fire: it is paused already");
	drive_end(&drive);
	drive = stopping(FREESTYLE_DTO("stopped"));
	ok(drive.op->succeeded, "must not fire: it is off");
	drive_end(&drive);
	drive = stopping(FREESTYLE_DTO("running"));
	asks(&drive, "POST", FREESTYLE_VM "/pause", "must fire: it runs");
	drive_answer(&drive, 200, FREESTYLE_DTO("pausing"));
	drive_answer(&drive, 200, FREESTYLE_DTO("pausing"));
	pauses(&drive, 100, "until it is paused");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_STOPPED,
	   "it is");
	drive_end(&drive);
	drive = stopping(FREESTYLE_DTO("running"));
	drive_answer(&drive, 200, FREESTYLE_DTO("pausing"));
	drive_answer(&drive, 404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", NONE, "or gone");
	drive_end(&drive);
}

static void
stop_would_destroy(void)
{
	Drive drive;

	freestyle_account();
	account_integer(&account, "autoDeleteSeconds", 0);
	drive_start(&drive,
	            sbx_kind_freestyle.stop(&account.account, &freestyle_target, 0));
	fails(&drive, SBX_PHASE_NONE, 0, "STOP_WOULD_DESTROY", NONE,
	      "must fire: by the setting, before anything is sent");
	drive_end(&drive);
	drive =
	    stopping(FREESTYLE_ROW(FREESTYLE_ID, "running", ",\"autoDeleteSeconds\":0"));
	fails(&drive, SBX_PHASE_NONE, 200, "STOP_WOULD_DESTROY", NONE,
	      "must fire: by what it says itself");
	drive_end(&drive);
	drive =
	    stopping(FREESTYLE_ROW(FREESTYLE_ID, "running", ",\"autoDeleteSeconds\":60"));
	asks(&drive, "POST", FREESTYLE_VM "/pause", "must not fire: there is time");
	drive_end(&drive);
	drive = starting(FREESTYLE_ROW(FREESTYLE_ID, "paused", ",\"autoDeleteSeconds\":0"));
	asks(&drive, "POST", FREESTYLE_VM "/start", "must not fire: of a start");
	drive_end(&drive);
}

/* What it has done can take a moment to be seen. */
static void
shown_late(void)
{
	Drive drive = starting(FREESTYLE_DTO("paused"));

	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	pauses(&drive, 200, "must not fire: it is looked at before it is asked again");
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_VM, "must not fire: nothing is sent");
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "must not fire: it runs");
	drive_end(&drive);
}

/* --- wait -------------------------------------------------------------------------------- */

static void
wait_until_ready(void)
{
	Drive drive = waiting();

	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "it runs");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	drive_expire(&drive);
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_STARTING,
	   "time is over: it starts still");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 503, "");
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out,
	   "time is over, and it was never seen");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", NONE, "one that is paused");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", NONE, "one that is gone");
	drive_end(&drive);
}

void
test_freestyle_power(void)
{
	section("Freestyle power");
	start();
	start_refused();
	start_conflict();
	stop();
	stop_would_destroy();
	is_in_vain(starting(FREESTYLE_DTO("paused")), FREESTYLE_DTO("paused"), "a start");
	is_in_vain(stopping(FREESTYLE_DTO("running")), FREESTYLE_DTO("running"), "a pause");
	shown_late();
	wait_until_ready();
}
