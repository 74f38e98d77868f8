/*
 * test_daytona_ready.c
 *		Waiting until a sandbox is ready: after a launch, and by itself.
 */
#include <stdio.h>

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

	probe_fails_at_once(403, "{}", SBX_PHASE_REMOTE, "NOT_READY", "403");
	probe_fails_at_once(404, "{}", SBX_PHASE_REMOTE, "NOT_READY", "404");
	probe_fails_at_once(400, "{\"message\":\"bad\"}", SBX_PHASE_REMOTE, "NOT_READY",
	                    "400 of another kind");
	probe_fails_at_once(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	probe_fails_at_once(200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, NULL,
	                    "exit code as text");
	probe_fails_at_once(200, "{}", SBX_PHASE_PROTOCOL, NULL, "no exit code");
}

/* --- by itself ------------------------------------------------------------ */

static Drive
waiting_for(const SbxTarget *target)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_daytona.wait_ready(account_reset(&account), target, 0));
	return drive;
}

static Drive
waiting(void)
{
	return waiting_for(&(SbxTarget){.sandbox_id = ID});
}

/* One whose probe is out. */
static Drive
wait_probing(void)
{
	Drive drive = waiting();

	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

/* Ended well, and says that it is ready, or that it is not yet. */
static void
waited(const Drive *drive, SbxSandboxState expected, const char *what)
{
	const SbxSandboxFacts *facts = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s: a result",
	        what))
		return;
	is_number(facts->state, expected, "%s: state", what);
	is_text(facts->sandbox_id, ID, "%s: id", what);
	is_text(drive->op->sandbox_id, ID, "%s: id of the operation", what);
}

static void
wait_path(void)
{
	SbxTarget target = {.sandbox_id = ID};
	Drive drive = waiting();

	section("wait");
	asks(&drive, "GET", SANDBOX, "looked at first");
	is_number(drive.op->timeout_ms, 90000, "default time");
	is_text(drive.op->operation, "waitReady", "operation name");
	drive_answer(&drive, 200, DTO("creating"));
	pauses(&drive, 100, "not yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "probed");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	waited(&drive, SBX_STATE_STARTED, "ready");
	is_text(((SbxSandboxFacts *) drive.op->result)->name, NAME, "with its facts");
	drive_end(&drive);

	drive_start(&drive,
	            sbx_kind_daytona.wait_ready(account_reset(&account), &target, 1234));
	is_number(drive.op->timeout_ms, 1234, "the call's time");
	drive_end(&drive);

	drive = waiting_for(&(SbxTarget){.unique_name = NAME});
	asks(&drive, "GET", API "/sandbox/" NAME, "by name");
	drive_answer(&drive, 200, DTO("creating"));
	is_text(drive.op->sandbox_id, ID, "its id is learnt");
	drive_pause_over(&drive);
	asks(&drive, "GET", SANDBOX, "and used");
	drive_end(&drive);

	drive = waiting_for(&(SbxTarget){.sandbox_id = "a/b"});
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "an id with a slash");
	drive_end(&drive);
}

static void
wait_ends(int status, const char *body, SbxPhase phase, const char *code,
          const char *what)
{
	Drive drive = waiting();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s", what);
	drive_end(&drive);

	/* Also when it was on its way before. */
	drive = waiting();
	drive_answer(&drive, 200, DTO("creating"));
	drive_pause_over(&drive);
	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s, later", what);
	drive_end(&drive);
}

static void
wait_never_ready(void)
{
	Drive drive;

	section("wait: never ready");
	wait_ends(200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", "error");
	wait_ends(200, DTO("build_failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED",
	          "build_failed");
	wait_ends(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroying");
	wait_ends(200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroyed");
	wait_ends(404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE", "404");
	wait_ends(200, DTO("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED", "stopped");
	wait_ends(200, DTO("stopping"), SBX_PHASE_REMOTE, "NOT_STARTED", "stopping");
	wait_ends(200, DTO("archived"), SBX_PHASE_REMOTE, "NOT_STARTED", "archived");
	wait_ends(200, DTO("paused"), SBX_PHASE_REMOTE, "NOT_STARTED", "paused");
	wait_ends(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", "401");
	wait_ends(403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN", "403");
	wait_ends(400, "{}", SBX_PHASE_REMOTE, NULL, "400");
	wait_ends(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	wait_ends(200, "{\"id\":\"other\",\"state\":\"started\"}", SBX_PHASE_PROTOCOL, NULL,
	          "another sandbox");

	drive = waiting();
	drive_answer(&drive, 200,
	             "{\"id\":\"" ID "\",\"toolboxProxyUrl\":\"https://evil.example/\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "TOOLBOX_HOST_REFUSED",
	      SBX_ALLOCATION_UNKNOWN, "toolbox elsewhere");
	drive_end(&drive);
}

static void
wait_not_yet(void)
{
	static const char *const states[] = {"creating", "restoring", "unknown", "resuming",
	                                     "brand_new"};
	Drive drive;

	section("wait: not yet");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
	{
		char body[500];

		snprintf(body, sizeof(body), "{\"id\":\"" ID "\",\"state\":\"%s\"}", states[i]);
		drive = waiting();
		drive_answer(&drive, 200, body);
		pauses(&drive, 100, "%s", states[i]);
		drive_expire(&drive);
		waited(&drive, SBX_STATE_STARTING, states[i]);
		drive_end(&drive);
	}

	/* Without one look there is nothing to say. */
	drive = waiting();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "never seen");
	ok(drive.op->failure.timed_out, "never seen: time over");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 503, "");
	pauses(&drive, 100, "503");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	pauses(&drive, 100, "no connection");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "only trouble: the last of it is told");
	drive_end(&drive);
	drive = waiting();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "too large");
	drive_end(&drive);

	/* Seen, then trouble: still a result. */
	drive = waiting();
	drive_answer(&drive, 200, DTO("creating"));
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	drive_expire(&drive);
	waited(&drive, SBX_STATE_STARTING, "seen once");
	drive_end(&drive);
	drive = waiting();
	drive.op->expired = true;
	drive_answer(&drive, 200, DTO("started"));
	waited(&drive, SBX_STATE_STARTING, "started with the last step, not probed");
	drive_end(&drive);
}

static void
wait_probes(void)
{
	Drive drive = wait_probing();

	section("wait: probe");
	for (int round = 0; round < 3; round++)
	{
		for (int i = 1; i <= 3; i++)
		{
			asks(&drive, "POST", SANDBOX_BOX "/process/execute", "probe %d", i);
			if (i == 1)
				drive_answer(&drive, 502, "");
			else if (i == 2)
				drive_answer(&drive, 404,
				             "{\"message\":\"sandbox container not found\"}");
			else
				drive_answer(&drive, 400, "{\"message\":\"no IP address found\"}");
			if (i < 3)
				pauses(&drive, 250, "then again");
			else
				pauses(&drive, 100, "looked at again instead of given up");
			drive_pause_over(&drive);
		}
		asks(&drive, "GET", SANDBOX, "round %d: is it still started?", round);
		drive_answer(&drive, 200, DTO("started"));
	}
	drive_answer(&drive, 200, "{\"exitCode\":0}");
	waited(&drive, SBX_STATE_STARTED, "at last");
	drive_end(&drive);

	drive = wait_probing();
	for (int i = 0; i < 3; i++)
	{
		drive_answer(&drive, 502, "");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 200, DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", SBX_ALLOCATION_UNKNOWN,
	      "stopped meanwhile");
	drive_end(&drive);

	drive = wait_probing();
	drive_expire(&drive);
	waited(&drive, SBX_STATE_STARTING, "time over while probing");
	drive_end(&drive);
	drive = wait_probing();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_expire(&drive);
	waited(&drive, SBX_STATE_STARTING, "time over between probes");
	drive_end(&drive);

	drive = wait_probing();
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "web page");
	drive_end(&drive);
	drive = wait_probing();
	drive_answer(&drive, 403, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 403, "NOT_READY", SBX_ALLOCATION_UNKNOWN, "403");
	drive_end(&drive);
}

/* The toolbox says 401 of what it does not know; the control plane knows. */
static void
wait_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, "{}", "SANDBOX_GONE"},
	            {200, DTO("destroying"), "SANDBOX_GONE"},
	            {200, DTO("started"), "NOT_READY"},
	            {401, "{}", "NOT_READY"},
	            {500, "", "NOT_READY"}};

	section("wait: 401 of the toolbox");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = wait_probing();

		drive_answer(&drive, 401, "{}");
		asks(&drive, "GET", SANDBOX, "the control plane is asked");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 401, rows[i].code, SBX_ALLOCATION_UNKNOWN,
		      "it says %d %.60s", rows[i].status, rows[i].body);
		drive_end(&drive);

		drive = started();
		drive_answer(&drive, 401, "{}");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 401, rows[i].code, SBX_ALLOCATION_MADE,
		      "in a launch: %d %.60s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
}

static void
wait_located(void)
{
	static const char bare[] = "{\"id\":\"" ID "\",\"state\":\"started\"}";
	Drive drive = waiting();

	section("wait: toolbox address");
	drive_answer(&drive, 200, bare);
	asks(&drive, "GET", SANDBOX "/toolbox-proxy-url", "asked for");
	drive_answer(&drive, 502, "");
	pauses(&drive, 100, "no answer: looked at again");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, bare);
	drive_answer(&drive, 200, "{\"url\":\"" TOOLBOX "\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "and used");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 200, bare);
	drive_answer(&drive, 200, "{\"url\":\"https://evil.example/\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "TOOLBOX_HOST_REFUSED",
	      SBX_ALLOCATION_UNKNOWN, "elsewhere");
	drive_end(&drive);
	drive = waiting();
	drive_answer(&drive, 200, bare);
	drive_expire(&drive);
	waited(&drive, SBX_STATE_STARTING, "time over while asking for it");
	drive_end(&drive);
}

void
test_daytona_ready(void)
{
	ready_path();
	poll_schedule();
	poll_answers();
	probe_answers();
	wait_path();
	wait_never_ready();
	wait_not_yet();
	wait_probes();
	wait_refused();
	wait_located();
}
