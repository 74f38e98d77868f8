/*
 * test_e2b_power.c
 *		Pausing, resuming and waiting for an E2B sandbox.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define CONNECT E2B_API "/v2/sandboxes/" E2B_ID "/connect"
#define HEALTH  E2B_ENVD "/health"

static Drive
waiting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.wait_ready(e2b_account(), &e2b_target, 60000));
	return drive;
}

static Drive
starting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.start(e2b_account(), &e2b_target, 0));
	return drive;
}

static Drive
stopping(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.stop(e2b_account(), &e2b_target, 0));
	return drive;
}

static SbxSandboxState
state_of(const Drive *drive)
{
	return drive->op->succeeded ? ((const SbxSandboxFacts *) drive->op->result)->state
	                            : SBX_STATE_FAILED;
}

static void
wait_ready(void)
{
	Drive drive = waiting();

	section("wait");
	asks(&drive, "GET", E2B_SANDBOX, "looks first");
	drive_answer(&drive, 503, "");
	pauses(&drive, 100, "trouble may pass");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, E2B_DTO("resuming"));
	pauses(&drive, 100, "another state, too");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, E2B_DTO("running"));
	asks(&drive, "GET", HEALTH, "then the daemon is asked");
	is_secret_kept(&drive, "health");
	drive_answer(&drive, 502, "");
	pauses(&drive, 100, "which is not there yet");
	drive_pause_over(&drive);
	asks(&drive, "GET", E2B_SANDBOX, "so from the start");
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 204, "");
	is_number(state_of(&drive), SBX_STATE_STARTED, "ready");
	drive_end(&drive);
}

static void
wait_fails(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {{404, "", SBX_PHASE_REMOTE, "SANDBOX_GONE"},
	            {200, E2B_DTO("paused"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	            {401, "", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	            {200, "{}", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	section("wait fails");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = waiting();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, UNKNOWN, "%d %s",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = waiting();
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "NOT_READY", UNKNOWN, "the daemon refuses");
	drive_end(&drive);

	drive = waiting();
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 502, "");
	drive_expire(&drive);
	is_number(state_of(&drive), SBX_STATE_STARTING, "no time: not ready is the result");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 503, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, UNKNOWN, "never seen is no result");
	ok(drive.op->failure.timed_out, "but a timeout");
	drive_end(&drive);
}

static void
start(void)
{
	static const int running[] = {200, 201};
	Drive drive;

	section("start");
	for (size_t i = 0; i < 2; i++)
	{
		drive = starting();
		asks(&drive, "POST", CONNECT, "one request for running and paused ones");
		is_text(drive.op->request.body, "{\"timeout\":300}", "with the lifetime");
		ok(drive.op->request.repeatable, "which may be repeated");
		is_secret_kept(&drive, "start");
		drive_answer(&drive, running[i], E2B_DTO("running"));
		asks(&drive, "GET", E2B_SANDBOX, "where it is");
		drive_answer(&drive, 200, E2B_DTO("running"));
		asks(&drive, "GET", HEALTH, "is it ready?");
		drive_answer(&drive, 204, "");
		is_number(state_of(&drive), SBX_STATE_STARTED, "started");
		is_text(drive.op->sandbox_id, E2B_ID, "the id stays");
		drive_end(&drive);
	}
}

static void
start_fails(void)
{
	static const struct
	{
		int status;
		const char *headers;
		const char *code;
	} rows[] = {{404, "", "SANDBOX_GONE"}, {429, "", "CAPACITY"},
	            {401, "", "UNAUTHORIZED"}, {403, "", "FORBIDDEN"},
	            {400, "", NULL},           {302, "", NULL}};
	static const struct
	{
		int status;
		const char *headers;
		const char *code;
		int pause_ms;
	} again[] = {{409, "", "BUSY", 100},
	             {429, "Retry-After: 1\r\n", "RATE_LIMITED", 1000},
	             {429, "RateLimit-Reset: 1\r\n", "RATE_LIMITED", 100},
	             {503, "", NULL, 100},
	             {504, "", NULL, 100}};
	Drive drive;

	section("start fails");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = starting();
		drive_headed(&drive, rows[i].status, rows[i].headers, "");
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN, "%d",
		      rows[i].status);
		drive_end(&drive);
	}
	section("start is tried again");
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
	{
		drive = starting();
		drive_headed(&drive, again[i].status, again[i].headers, "");
		pauses(&drive, again[i].pause_ms, "%d %.12s", again[i].status,
		       again[i].headers);
		drive_pause_over(&drive);
		asks(&drive, "POST", CONNECT, "once more");
		drive_expire(&drive);
		fails(&drive, SBX_PHASE_REMOTE, again[i].status, again[i].code, UNKNOWN,
		      "no time: the reason is %d", again[i].status);
		ok(drive.op->failure.timed_out, "and the time");
		drive_end(&drive);
	}
	drive = starting();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	pauses(&drive, 100, "an answer that was lost");
	drive_end(&drive);
	drive = starting();
	drive_answer(&drive, 201, "");
	drive_answer(&drive, 200, E2B_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN,
	      "paused by somebody else");
	drive_end(&drive);
}

static void
stop(void)
{
	static const int again[] = {409, 503, 500, 429};
	Drive drive = stopping();

	section("stop");
	asks(&drive, "GET", E2B_SANDBOX, "looks first");
	drive_answer(&drive, 200, E2B_DTO("running"));
	asks(&drive, "POST", E2B_SANDBOX "/pause", "pauses");
	is_text(drive.op->request.body, "{}", "with its memory");
	ok(!drive.op->request.repeatable, "once");
	drive_answer(&drive, 204, "");
	asks(&drive, "GET", E2B_SANDBOX, "is it?");
	drive_answer(&drive, 200, E2B_DTO("paused"));
	is_number(state_of(&drive), SBX_STATE_STOPPED, "stopped");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 200, E2B_DTO("paused"));
	is_number(state_of(&drive), SBX_STATE_STOPPED, "one that is paused already");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
	{
		drive = stopping();
		drive_answer(&drive, 200, E2B_DTO("running"));
		drive_answer(&drive, again[i], "");
		pauses(&drive, 100, "%d: looks again", again[i]);
		drive_pause_over(&drive);
		asks(&drive, "GET", E2B_SANDBOX, "which tells");
		drive_answer(&drive, 200, E2B_DTO("paused"));
		is_number(state_of(&drive), SBX_STATE_STOPPED, "%d: stopped", again[i]);
		drive_end(&drive);
	}
}

static void
stop_fails(void)
{
	Drive drive = stopping();

	section("stop fails");
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", UNKNOWN, "gone");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 403, "");
	fails(&drive, SBX_PHASE_REMOTE, 403, "FORBIDDEN", UNKNOWN, "forbidden");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", UNKNOWN, "gone meanwhile");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "refused");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 200, E2B_DTO("running"));
	drive_answer(&drive, 409, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 409, "BUSY", UNKNOWN, "busy until the end");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent,
	   "may have worked");
	drive_end(&drive);
}

void
test_e2b_power(void)
{
	wait_ready();
	wait_fails();
	start();
	start_fails();
	stop();
	stop_fails();
	is_in_vain(stopping(), E2B_DTO("running"), "a stop");
}
