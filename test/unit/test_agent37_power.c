/*
 * test_agent37_power.c
 *		Starting and stopping Agent37 instances.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define START   AGENT37_INSTANCE "/start"
#define STOP    AGENT37_INSTANCE "/stop"
#define WORKED  "{\"exit_code\":0}"

static Drive
starting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.start(agent37_account(), &agent37_target, 0));
	return drive;
}

static Drive
stopping(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.stop(agent37_account(), &agent37_target, 0));
	return drive;
}

static Drive
waiting(void)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_agent37.wait_ready(agent37_account(), &agent37_target, 0));
	return drive;
}

static bool
is_state(const Drive *drive, SbxSandboxState state)
{
	return drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded &&
	       ((const SbxSandboxFacts *) drive->op->result)->state == state;
}

static void
start(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} refused[] = {{409, AGENT37_ERROR("capacity_unavailable"), "CAPACITY"},
	               {402, AGENT37_ERROR("insufficient_balance"), "INSUFFICIENT_BALANCE"},
	               {404, AGENT37_ERROR("not_found"), "SANDBOX_GONE"},
	               {401, AGENT37_ERROR("invalid_api_key"), "UNAUTHORIZED"}};
	Drive drive = starting();

	section("Agent37 start");
	asks(&drive, "POST", START, "it is asked for");
	ok(drive.op->request.body == NULL && sent_header(drive.op, "Content-Type") == NULL,
	   "without a body");
	ok(drive.op->request.repeatable, "twice does no harm");
	is_agent37_key_kept(&drive, "start");
	drive_answer(&drive, 200, "{\"id\":\"x\",\"status\":\"running\"}");
	asks(&drive, "GET", AGENT37_INSTANCE, "the answer has the state to come");
	drive_answer(&drive, 200, AGENT37_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	asks(&drive, "POST", AGENT37_EXEC, "a command is tried");
	drive_answer(&drive, 200, WORKED);
	ok(is_state(&drive, SBX_STATE_STARTED), "started");
	drive_end(&drive);
	drive = starting();
	drive_answer(&drive, 409, AGENT37_ERROR("try_again"));
	drive_pause_over(&drive);
	asks(&drive, "POST", START, "busy: again");
	drive_answer(&drive, 400, AGENT37_ERROR("invalid_request"));
	asks(&drive, "GET", AGENT37_INSTANCE, "a state that does not fit: it is looked at");
	drive_answer(&drive, 200, AGENT37_DTO("stopped"));
	drive_pause_over(&drive);
	asks(&drive, "POST", START, "stopped meanwhile: again");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		drive = starting();
		drive_answer(&drive, refused[i].status, refused[i].body);
		fails(&drive, SBX_PHASE_REMOTE, refused[i].status, refused[i].code, UNKNOWN,
		      "%s", refused[i].body);
		drive_end(&drive);
	}
}

static void
stop(void)
{
	Drive drive = stopping();

	section("Agent37 stop");
	asks(&drive, "POST", STOP, "it is asked for");
	drive_answer(&drive, 409, AGENT37_ERROR("try_again"));
	drive_pause_over(&drive);
	asks(&drive, "POST", STOP, "a checkpoint is written: again");
	drive_answer(&drive, 200, "{}");
	asks(&drive, "GET", AGENT37_INSTANCE, "an answer without a state is no stop");
	drive_answer(&drive, 200, AGENT37_DTO("stopping"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AGENT37_DTO("stopped"));
	ok(is_state(&drive, SBX_STATE_STOPPED), "stopped");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 400, AGENT37_ERROR("invalid_request"));
	drive_answer(&drive, 200, AGENT37_DTO("failed"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", UNKNOWN, "one that failed");
	drive_end(&drive);
	drive = stopping();
	drive_answer(&drive, 409, AGENT37_ERROR("instance_limit_reached"));
	fails(&drive, SBX_PHASE_REMOTE, 409, "CAPACITY", UNKNOWN, "another 409 is final");
	drive_end(&drive);
	drive = stopping();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	drive_pause_over(&drive);
	asks(&drive, "POST", STOP, "a lost answer: again");
	drive_end(&drive);
}

static void
wait_ready(void)
{
	static const struct
	{
		const char *object;
		const char *code;
	} ends[] = {{AGENT37_DTO("stopped"), "NOT_STARTED"},
	            {AGENT37_DTO("sleeping"), "NOT_STARTED"},
	            {AGENT37_DTO("failed"), "SANDBOX_FAILED"},
	            {AGENT37_DTO("deleted"), "SANDBOX_GONE"}};
	Drive drive;

	section("Agent37 wait");
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = waiting();
		drive_answer(&drive, 200, ends[i].object);
		fails(&drive, SBX_PHASE_REMOTE, 200, ends[i].code, UNKNOWN, "%.45s",
		      ends[i].object);
		drive_end(&drive);
	}
	drive = waiting();
	drive_answer(&drive, 200, AGENT37_DTO("waking"));
	drive_expire(&drive);
	ok(is_state(&drive, SBX_STATE_STARTING), "not yet is a result");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	drive_answer(&drive, 200, "{\"exit_code\":126}");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	drive_answer(&drive, 200, WORKED);
	ok(is_state(&drive, SBX_STATE_STARTED), "once a command works");
	drive_end(&drive);
}

void
test_agent37_power(void)
{
	start();
	stop();
	wait_ready();
}
