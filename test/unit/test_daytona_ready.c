/*
 * test_daytona_ready.c
 *		Waiting until a sandbox is ready: after a launch, and by itself.
 */
#include "unit.h"

static void
ready_path(void)
{
	const SbxSandboxFacts *facts;
	Drive drive = launched();

	section("ready");
	drive_answer(&drive, 200, DTO("started"));
	is_text(drive.op->sandbox_id, ID, "the id is there at once");
	asks(&drive, "GET", SANDBOX,
	     "started in the create's answer is not believed; asked again without a pause");
	ok(drive.op->request.repeatable && drive.op->request.body == NULL, "a plain read");
	drive_answer(&drive, 200, DTO("CREATING"));
	pauses(&drive, 100, "still creating");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("Started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "started in any case: probed");
	is_text(drive.op->request.body, "{\"command\":\"true\",\"timeout\":10}", "probe");
	ok(drive.op->request.repeatable, "a probe may be repeated");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded, "ready");
	facts = drive.op->result;
	is_number(facts->state, SBX_STATE_STARTED, "state");
	is_text(facts->name, NAME, "name");
	is_text(facts->created_at, "2026-12-01T10:00:00.000Z", "time");
	is_number(facts->label_count, 2, "labels");
	is_text(facts->labels[1].value, "v", "a label");
	drive_end(&drive);
}

static void
poll_schedule(void)
{
	Drive drive = created();
	int64_t sum = 0;
	int64_t last = 0;
	bool fast = true;
	bool grows = true;

	section("poll schedule");
	for (int i = 0; i < 100; i++)
	{
		drive_answer(&drive, 200, DTO("creating"));
		if (sum < 5000)
			fast &= drive.op->pause_ms == 100;
		else
			grows &= drive.op->pause_ms >= last && drive.op->pause_ms <= 1000;
		sum += drive.op->pause_ms;
		last = drive.op->pause_ms;
		drive_pause_over(&drive);
	}
	ok(fast, "every 100 ms for 5 s");
	ok(grows && last == 1000, "then slower, up to 1 s");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "no end: a sandbox exists");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent,
	   "and time is over");
	drive_end(&drive);
}

static void
poll_ends(int status, const char *body, SbxPhase phase, const char *code,
          const char *what)
{
	Drive drive = created();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_MADE, "%s", what);
	drive_end(&drive);
}

static void
poll_goes_on(int status, const char *body, const char *what)
{
	Drive drive = created();

	drive_answer(&drive, status, body);
	pauses(&drive, 100, "%s", what);
	drive_pause_over(&drive);
	asks(&drive, "GET", SANDBOX, "%s: and looked again", what);
	drive_end(&drive);
}

static void
poll_answers(void)
{
	Drive drive;

	section("poll");
	poll_ends(200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", "error");
	poll_ends(200, DTO("build_failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED",
	          "build_failed");
	poll_ends(200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroyed");
	poll_ends(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroying");
	poll_ends(404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE", "404 after create");
	poll_ends(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", "401");
	poll_ends(403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN", "403");
	poll_ends(400, "{}", SBX_PHASE_REMOTE, NULL, "400");
	poll_ends(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	poll_ends(200, "{\"id\":\"other\",\"state\":\"started\"}", SBX_PHASE_PROTOCOL, NULL,
	          "another sandbox");
	poll_goes_on(200, DTO("unknown"), "unknown");
	poll_goes_on(200, DTO("startedish"), "a state that only starts like started");
	poll_goes_on(200, DTO(""), "empty state");
	poll_goes_on(200, "{\"id\":\"" ID "\"}", "no state");
	poll_goes_on(200, "{\"id\":\"" ID "\",\"state\":5}", "state of another type");
	poll_goes_on(200, DTO("stopped"), "stopped");
	poll_goes_on(500, "", "500");
	poll_goes_on(502, "", "502");
	poll_goes_on(429, "{}", "429");

	drive = created();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	pauses(&drive, 100, "refused connection");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	pauses(&drive, 100, "timeout of one look");
	drive_pause_over(&drive);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "the end names the last trouble");
	drive_end(&drive);

	drive = created();
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("creating"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "trouble that has passed is forgotten");
	drive_end(&drive);

	drive = created();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "an answer too large stays too large: no second look");
	drive_end(&drive);
}

static void
probe_fails_at_once(int status, const char *body, SbxPhase phase, const char *code,
                    const char *what)
{
	Drive drive = started();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_MADE, "%s: no second try", what);
	drive_end(&drive);
}

static void
probe_answers(void)
{
	Drive drive = started();

	section("probe");
	drive_answer(&drive, 502, "");
	pauses(&drive, 250, "first 502");
	drive_pause_over(&drive);
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "second try");
	drive_answer(&drive, 400,
	             "{\"message\":\"bad: no IP address found. Is the Sandbox started?\"}");
	pauses(&drive, 250, "400 without an address yet");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, "NOT_READY", SBX_ALLOCATION_MADE,
	      "three tries, no fourth");
	ok(drive.op->failure.request_sent, "the create was sent all the same");
	drive_end(&drive);

	drive = started();
	for (int i = 0; i < 2; i++)
	{
		drive_answer(&drive, 200, "{\"exitCode\":-1,\"result\":\"\"}");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 200, "{\"exitCode\":0}");
	ok(drive.op->succeeded, "could not start twice, then could");
	drive_end(&drive);

	drive = started();
	drive_answer(&drive, 502, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 502, "NOT_READY", SBX_ALLOCATION_MADE,
	      "time over while probing");
	drive_end(&drive);

	probe_fails_at_once(401, "{}", SBX_PHASE_REMOTE, "NOT_READY", "401");
	probe_fails_at_once(404, "{}", SBX_PHASE_REMOTE, "NOT_READY", "404");
	probe_fails_at_once(400, "{\"message\":\"bad\"}", SBX_PHASE_REMOTE, "NOT_READY",
	                    "400 of another kind");
	probe_fails_at_once(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	probe_fails_at_once(200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, NULL,
	                    "exit code as text");
	probe_fails_at_once(200, "{}", SBX_PHASE_PROTOCOL, NULL, "no exit code");
}
void
test_daytona_ready(void)
{
	ready_path();
	poll_schedule();
	poll_answers();
	probe_answers();
}
