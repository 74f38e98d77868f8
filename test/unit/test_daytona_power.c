/*
 * test_daytona_power.c
 *		Starting and stopping.
 */
#include "unit.h"

static const SbxTarget by_id = {.sandbox_id = ID, .unique_name = NAME};

typedef SbxOp *
Maker(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms);

/* An operation whose first look is out. */
static Drive
looking(Maker *make)
{
	Drive drive;

	drive_start(&drive, make(account_reset(&account), &by_id, 0));
	return drive;
}

/* A start, or a stop, that is asked for. */
static Drive
starting(void)
{
	Drive drive = looking(sbx_kind_daytona.start);

	drive_answer(&drive, 200, DTO("stopped"));
	return drive;
}

static Drive
stopping(void)
{
	Drive drive = looking(sbx_kind_daytona.stop);

	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

static void
ends_as(const Drive *drive, SbxSandboxState expected, const char *what)
{
	const SbxSandboxFacts *facts = drive->op->result;

	if (ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		is_number(facts->state, expected, "%s: state", what);
}

/* --- both ---------------------------------------------------------------- */

static void
look_ends(Maker *make, int status, const char *body, SbxPhase phase, const char *code)
{
	Drive drive = looking(make);

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s: %d %.60s",
	      drive.op->operation, status, body);
	drive_end(&drive);
}

static void
look_goes_on(Maker *make, int status, const char *code)
{
	Drive drive = looking(make);

	if (status == 0)
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	else
		drive_answer(&drive, status, "");
	pauses(&drive, 100, "%s: %d", drive.op->operation, status);
	drive_pause_over(&drive);
	asks(&drive, "GET", SANDBOX, "%s: %d: looked at again", drive.op->operation,
	     status);
	drive_expire(&drive);
	fails(&drive, status == 0 ? SBX_PHASE_RECEIVE : SBX_PHASE_REMOTE, status, code,
	      SBX_ALLOCATION_UNKNOWN, "%s: %d to the end", drive.op->operation, status);
	drive_end(&drive);
}

static void
looks(Maker *make, const char *name)
{
	static const char *const bad[] = {"a/b", "..", "", "a b", "a?b"};
	Drive drive = looking(make);

	section(name);
	asks(&drive, "GET", SANDBOX, "looks first");
	is_text(drive.op->operation, name, "operation name");
	is_number(drive.op->timeout_ms, 90000, "default time");
	drive_end(&drive);
	drive_start(&drive, make(account_reset(&account), &by_id, 1234));
	is_number(drive.op->timeout_ms, 1234, "the call's time");
	drive_end(&drive);
	drive_start(&drive, make(&account.account, &(SbxTarget){.unique_name = NAME}, 0));
	asks(&drive, "GET", API "/sandbox/" NAME, "by name");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		drive_start(&drive,
		            make(&account.account, &(SbxTarget){.sandbox_id = bad[i]}, 0));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "id '%s'", bad[i]);
		drive_end(&drive);
	}

	look_ends(make, 200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE");
	look_ends(make, 200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE");
	look_ends(make, 200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED");
	look_ends(make, 200, DTO("build_failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED");
	look_ends(make, 401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED");
	look_ends(make, 403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN");
	look_ends(make, 400, "{}", SBX_PHASE_REMOTE, NULL);
	look_ends(make, 200, "<html>", SBX_PHASE_PROTOCOL, NULL);
	look_ends(make, 200, "{\"state\":\"stopped\"}", SBX_PHASE_PROTOCOL, NULL);
	look_ends(make, 200, "{\"id\":\"other\",\"state\":\"stopped\"}", SBX_PHASE_PROTOCOL,
	          NULL);
	look_goes_on(make, 0, NULL);
	look_goes_on(make, 408, NULL);
	look_goes_on(make, 429, "RATE_LIMITED");
	look_goes_on(make, 500, NULL);
	look_goes_on(make, 502, NULL);

	drive = looking(make);
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "too large");
	drive_end(&drive);
	drive = looking(make);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "time over");
	ok(drive.op->failure.timed_out, "and that is said");
	drive_end(&drive);
	drive = looking(make);
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("stopping"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "trouble that has passed is forgotten");
	drive_end(&drive);
}

/* What comes back when it was asked for, other than success. */
static void
refused(Drive (*ask)(void), const char *url)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} ends[] = {{404, "{}", "SANDBOX_GONE"},
	            {401, "{}", "UNAUTHORIZED"},
	            {403, "{}", "FORBIDDEN"},
	            {422, "{}", NULL},
	            {302, "", NULL}},
	  again[] = {{409, "{\"message\":\"Sandbox state change in progress\"}", "BUSY"},
	             {408, "{}", NULL},
	             {429, "{}", "RATE_LIMITED"},
	             {500, "", NULL},
	             {502, "", NULL}};
	const char *state = strstr(url, "/start") != NULL ? DTO("stopped") : DTO("started");
	Drive drive;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = ask();
		drive_answer(&drive, ends[i].status, ends[i].body);
		fails(&drive, SBX_PHASE_REMOTE, ends[i].status, ends[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d ends it", ends[i].status);
		ok(drive.op->failure.request_sent, "it was asked for");
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
	{
		drive = ask();
		for (int attempt = 0; attempt < 5; attempt++)
		{
			drive_answer(&drive, again[i].status, again[i].body);
			pauses(&drive, 100, "%d does not", again[i].status);
			drive_pause_over(&drive);
			asks(&drive, "GET", SANDBOX, "the state decides");
			drive_answer(&drive, 200, state);
			asks(&drive, "POST", url, "asked for again");
		}
		drive_expire(&drive);
		fails(&drive, SBX_PHASE_REMOTE, again[i].status, again[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d to the end of time", again[i].status);
		ok(drive.op->failure.timed_out, "which is said");
		drive_end(&drive);
	}

	/* A bad request may be one of a moment ago; three in a row are a verdict. */
	drive = ask();
	for (int attempt = 1; attempt <= 3; attempt++)
	{
		drive_answer(&drive, 400, "{\"message\":\"Sandbox is not in a valid state\"}");
		if (attempt == 3)
			break;
		pauses(&drive, 100, "400, attempt %d", attempt);
		drive_pause_over(&drive);
		drive_answer(&drive, 200, state);
		asks(&drive, "POST", url, "400, asked for again");
	}
	fails(&drive, SBX_PHASE_REMOTE, 400, NULL, SBX_ALLOCATION_UNKNOWN,
	      "400, the third");
	drive_end(&drive);
	drive = ask();
	for (int attempt = 1; attempt <= 5; attempt++)
	{
		drive_answer(&drive, 400, "{}");
		drive_pause_over(&drive);
		drive_answer(&drive, 200, DTO("stopping"));
		pauses(&drive, 100, "400 while it changes");
		drive_pause_over(&drive);
		drive_answer(&drive, 200, state);
		asks(&drive, "POST", url, "400 while it changes is no verdict");
	}
	drive_end(&drive);

	drive = ask();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	pauses(&drive, 100, "no connection");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN, "to the end");
	ok(!drive.op->failure.request_sent, "never asked for");
	drive_end(&drive);
	drive = ask();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	pauses(&drive, 100, "a lost answer");
	drive_pause_over(&drive);
	asks(&drive, "GET", SANDBOX, "a lost answer: the state decides");
	drive_end(&drive);
	drive = ask();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "time over");
	ok(drive.op->failure.timed_out, "asked for, and time over");
	drive_end(&drive);
}

/* --- start --------------------------------------------------------------- */

static void
ready_now(Drive *drive, const char *what)
{
	asks(drive, "GET", SANDBOX, "%s: waits until ready", what);
	drive_answer(drive, 200, DTO("started"));
	asks(drive, "POST", SANDBOX_BOX "/process/execute", "%s: probed", what);
	drive_answer(drive, 200, "{\"exitCode\":0}");
	ends_as(drive, SBX_STATE_STARTED, what);
}

static void
start_path(void)
{
	static const char *const stopped[] = {DTO("stopped"), DTO("archived"),
	                                      DTO("paused")};
	static const char *const on_its_way[] = {DTO("started"), DTO("starting"),
	                                         DTO("restoring"), DTO("unknown")};
	Drive drive;

	section("start");
	for (size_t i = 0; i < sizeof(stopped) / sizeof(stopped[0]); i++)
	{
		drive = looking(sbx_kind_daytona.start);
		drive_answer(&drive, 200, stopped[i]);
		asks(&drive, "POST", SANDBOX "/start", "asked for");
		ok(drive.op->request.body == NULL && !drive.op->request.repeatable,
		   "no body, at most once");
		is_number(drive.op->request.timeout_ms, 40000, "held back for 30 s");
		drive_recorded(&drive, "start");
		ready_now(&drive, "started");
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(on_its_way) / sizeof(on_its_way[0]); i++)
	{
		drive = looking(sbx_kind_daytona.start);
		drive_answer(&drive, 200, on_its_way[i]);
		ready_now(&drive, "not asked for what is on its way");
		ok(!drive.op->failure.request_sent, "nothing was changed");
		drive_end(&drive);
	}

	drive = looking(sbx_kind_daytona.start);
	drive_answer(&drive, 200, DTO("archiving"));
	pauses(&drive, 100, "still stopping: later");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("archived"));
	asks(&drive, "POST", SANDBOX "/start", "stopped at last: asked for");
	drive_answer(&drive, 204, "");
	ready_now(&drive, "any success");
	drive_end(&drive);

	drive = starting();
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 200, DTO("stopped"));
	pauses(&drive, 100, "the state is a moment old");
	drive_pause_over(&drive);
	ready_now(&drive, "the old state");
	drive_end(&drive);

	drive = starting();
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 200, DTO("error"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", SBX_ALLOCATION_UNKNOWN,
	      "failed after the start");
	drive_end(&drive);
	drive = starting();
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 200, DTO("started"));
	for (int i = 0; i < 3; i++)
	{
		drive_answer(&drive, 502, "");
		if (i < 2)
			drive_pause_over(&drive);
	}
	fails(&drive, SBX_PHASE_REMOTE, 502, "NOT_READY", SBX_ALLOCATION_UNKNOWN,
	      "a start has to end ready");
	drive_end(&drive);
	drive = starting();
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 200, DTO("starting"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "not to be ready in time is a failure here");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "with its flags");
	drive_end(&drive);
}

static void
start_capacity(void)
{
	static const struct
	{
		int status;
		const char *message;
		bool capacity;
	} rows[] = {{400, "Total CPU limit exceeded. Maximum allowed: 10.", true},
	            {403, "Total memory limit exceeded.", true},
	            {400, "Total disk limit exceeded.", true},
	            {400, "No available runners", true},
	            {500, "No available runners", false},
	            {409, "Total CPU limit exceeded.", false},
	            {400, "Sandbox is not in a valid state", false},
	            {403, "Access denied", false}};

	section("start: capacity");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char body[200];
		Drive drive = starting();

		strcpy(body, "{\"message\":\"");
		strcat(body, rows[i].message);
		strcat(body, "\"}");
		drive_answer(&drive, rows[i].status, body);
		if (rows[i].capacity)
			fails(&drive, SBX_PHASE_REMOTE, rows[i].status, "CAPACITY",
			      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].message);
		else
			ok(drive.want == SBX_OP_WANT_PAUSE ||
			       strcmp(drive.op->failure.provider_code, "CAPACITY") != 0,
			   "%d %s", rows[i].status, rows[i].message);
		drive_end(&drive);
	}
}

#define OTHER         "other-1"
#define MOVED(labels) "{\"id\":\"" OTHER "\",\"labels\":{" labels "}}"

/* Started under another id; whose is it? */
static void
start_moved(void)
{
	static const struct
	{
		const char *body;
		bool taken;
	} rows[] = {
	    {MOVED("\"sbx-router-id\":\"" NAME "\""), true},
	    {MOVED("\"sbx-router-id\":\"" NAME "\",\"sbx-router-launch\":\"t\""), false},
	    {MOVED("\"sbx-router-id\":\"" NAME "x\""), false},
	    {MOVED("\"sbx-router-id\":5"), false},
	    {MOVED(""), false},
	    {"{\"id\":\"" OTHER "\"}", false},
	    {"{\"id\":\"a/b\",\"labels\":{\"sbx-router-id\":\"" NAME "\"}}", false},
	    {"<html>", false},
	    {"", false}};
	Drive drive;

	section("start: another id");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = starting();
		drive_answer(&drive, 200, rows[i].body);
		asks(&drive, "GET", rows[i].taken ? API "/sandbox/" OTHER : SANDBOX, "%s: %s",
		     rows[i].body, rows[i].taken ? "taken" : "not taken");
		is_text(drive.op->sandbox_id, rows[i].taken ? OTHER : ID, "id");
		drive_end(&drive);
	}

	drive = starting();
	drive_answer(&drive, 200, rows[0].body);
	drive_answer(&drive, 200,
	             "{\"id\":\"" OTHER
	             "\",\"state\":\"started\",\"toolboxProxyUrl\":\"" TOOLBOX "\"}");
	asks(&drive, "POST", TOOLBOX "/" OTHER "/process/execute", "its own toolbox");
	drive_answer(&drive, 200, "{\"exitCode\":0}");
	ends_as(&drive, SBX_STATE_STARTED, "moved");
	is_text(((SbxSandboxFacts *) drive.op->result)->sandbox_id, OTHER, "facts, too");
	drive_end(&drive);

	/* Without a name of ours nothing can be told apart. */
	drive_start(&drive, sbx_kind_daytona.start(account_reset(&account),
	                                           &(SbxTarget){.sandbox_id = ID}, 0));
	drive_answer(&drive, 200, DTO("stopped"));
	drive_answer(&drive, 200, rows[0].body);
	asks(&drive, "GET", SANDBOX, "the name is not known: not taken");
	drive_end(&drive);
}

/* Its id is unknown there: it may have been started under another one, unheard of. */
static void
start_by_name(void)
{
	static const SbxTarget with_token = {
	    .sandbox_id = ID, .unique_name = NAME, .launch_token = "t"};
	static const char *const strangers[] = {
	    MOVED(""), MOVED("\"sbx-router-id\":\"" NAME "x\""),
	    MOVED("\"sbx-router-id\":\"" NAME "\",\"sbx-router-launch\":\"t\"")};
	static const char *const garbage[] = {
	    "{\"id\":\"a/b\",\"labels\":{\"sbx-router-id\":\"" NAME "\"}}", "<html>"};
	Drive drive = looking(sbx_kind_daytona.start);

	section("start: by name");
	drive_answer(&drive, 404, "{}");
	asks(&drive, "GET", API "/sandbox/" NAME, "its name is looked for");
	drive_answer(&drive, 200,
	             "{\"id\":\"" OTHER "\",\"state\":\"stopped\",\"labels\":{"
	             "\"sbx-router-id\":\"" NAME "\"}}");
	asks(&drive, "POST", API "/sandbox/" OTHER "/start", "and is ours");
	is_text(drive.op->sandbox_id, OTHER, "its id counts from now on");
	drive_end(&drive);

	drive = looking(sbx_kind_daytona.start);
	drive_answer(&drive, 404, "{}");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "nor its name");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
	{
		drive = looking(sbx_kind_daytona.start);
		drive_answer(&drive, 404, "{}");
		drive_answer(&drive, 200, strangers[i]);
		fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
		      "another's: %zu", i);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
	{
		drive = looking(sbx_kind_daytona.start);
		drive_answer(&drive, 404, "{}");
		drive_answer(&drive, 200, garbage[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
		      "not known to be gone: %zu", i);
		drive_end(&drive);
	}
	drive_start(&drive,
	            sbx_kind_daytona.start(account_reset(&account), &with_token, 0));
	drive_answer(&drive, 404, "{}");
	drive_answer(&drive, 200,
	             "{\"id\":\"" OTHER "\",\"state\":\"stopped\",\"labels\":{"
	             "\"sbx-router-id\":\"" NAME "\",\"sbx-router-launch\":\"t\"}}");
	asks(&drive, "POST", API "/sandbox/" OTHER "/start", "of the same launch");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_daytona.start(account_reset(&account),
	                                           &(SbxTarget){.sandbox_id = ID}, 0));
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "without a name");
	drive_end(&drive);
	look_ends(sbx_kind_daytona.stop, 404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE");
}

/* --- stop ---------------------------------------------------------------- */

#define KEPT(state, minutes)                                                           \
	"{\"id\":\"" ID "\",\"state\":\"" state "\",\"autoDeleteInterval\":" minutes "}"

static void
stop_path(void)
{
	static const char *const stopped[] = {DTO("stopped"), DTO("archived"),
	                                      DTO("paused")};
	Drive drive = stopping();

	section("stop");
	asks(&drive, "POST", SANDBOX "/stop?force=false", "asked for");
	ok(drive.op->request.body == NULL && !drive.op->request.repeatable,
	   "no body, at most once");
	is_number(drive.op->request.timeout_ms, 40000, "held back");
	drive_recorded(&drive, "stop");
	drive_recorded(&drive, "stop_look_1");
	pauses(&drive, 100, "accepted is not stopped");
	drive_pause_over(&drive);
	drive_recorded(&drive, "stop_look_2");
	ends_as(&drive, SBX_STATE_STOPPED, "stopped");
	is_text(((SbxSandboxFacts *) drive.op->result)->sandbox_id, ID, "its facts");
	drive_end(&drive);

	for (size_t i = 0; i < sizeof(stopped) / sizeof(stopped[0]); i++)
	{
		drive = looking(sbx_kind_daytona.stop);
		drive_answer(&drive, 200, stopped[i]);
		ends_as(&drive, SBX_STATE_STOPPED, "stopped already");
		drive_end(&drive);
	}
	drive = looking(sbx_kind_daytona.stop);
	drive_answer(&drive, 200, DTO("creating"));
	pauses(&drive, 100, "not started yet: later");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "POST", SANDBOX "/stop?force=false", "then asked for");
	drive_answer(&drive, 200, "<html>");
	for (int i = 0; i < 3; i++)
	{
		asks(&drive, "GET", SANDBOX, "accepted: looked at");
		drive_answer(&drive, 200, DTO("started"));
		pauses(&drive, 100, "not asked for again while the old state shows");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone is not stopped");
	drive_end(&drive);

	drive = stopping();
	drive_answer(&drive, 409, "{}");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 200, DTO("stopping"));
	drive_answer(&drive, 200, DTO("stopping"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "accepted, too slow: the conflict before is forgotten");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "flags");
	drive_end(&drive);

	/* A lost answer may have been a yes. */
	drive = stopping();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("stopped"));
	ends_as(&drive, SBX_STATE_STOPPED, "the answer was lost");
	drive_end(&drive);
}

static void
stop_ephemeral(void)
{
	static const struct
	{
		const char *body;
		bool refused;
	} rows[] = {{KEPT("started", "0"), true},      {KEPT("started", "-1"), false},
	            {KEPT("started", "1"), false},     {KEPT("started", "null"), false},
	            {KEPT("started", "\"0\""), false}, {DTO("started"), false}};
	Drive drive;

	section("stop: ephemeral");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = looking(sbx_kind_daytona.stop);
		drive_answer(&drive, 200, rows[i].body);
		if (!rows[i].refused)
			asks(&drive, "POST", SANDBOX "/stop?force=false", "%s", rows[i].body);
		else
			fails(&drive, SBX_PHASE_NONE, 200, "STOP_WOULD_DESTROY",
			      SBX_ALLOCATION_UNKNOWN, "%s: refused", rows[i].body);
		drive_end(&drive);
	}
	drive = looking(sbx_kind_daytona.stop);
	drive_answer(&drive, 200, KEPT("stopping", "0"));
	pauses(&drive, 100, "somebody else stops it");
	drive_pause_over(&drive);
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "which destroys it");
	drive_end(&drive);
}

/* Trouble in a row; then, if the sandbox is seen in between, that much once more. */
static void
gives_up(Maker *make, bool sent, int most)
{
	SbxPhase phase = sent ? SBX_PHASE_RECEIVE : SBX_PHASE_CONNECT;

	for (int seen = 0; seen < 2; seen++)
	{
		Drive drive = looking(make);
		int count = 0;

		if (seen)
		{
			for (int i = 1; i < most; i++)
			{
				drive_no_answer(&drive, phase, sent, false);
				drive_pause_over(&drive);
			}
			drive_answer(&drive, 200, DTO("stopping"));
			drive_pause_over(&drive);
		}
		while (drive.want != SBX_OP_WANT_NOTHING && count < 100)
		{
			drive_no_answer(&drive, phase, sent, false);
			count++;
			if (drive.want == SBX_OP_WANT_PAUSE)
				drive_pause_over(&drive);
		}
		is_number(count, most, "%s: %s%s", drive.op->operation,
		          sent ? "no answer" : "nobody there", seen ? ", counted anew" : "");
		fails(&drive, phase, 0, NULL, SBX_ALLOCATION_UNKNOWN, "%s: is given up",
		      drive.op->operation);
		drive_end(&drive);
	}
}

void
test_daytona_power(void)
{
	gives_up(sbx_kind_daytona.start, false, 4);
	gives_up(sbx_kind_daytona.start, true, 20);
	gives_up(sbx_kind_daytona.stop, false, 4);
	gives_up(sbx_kind_daytona.stop, true, 20);
	looks(sbx_kind_daytona.start, "start");
	refused(starting, SANDBOX "/start");
	start_path();
	start_capacity();
	start_moved();
	start_by_name();
	looks(sbx_kind_daytona.stop, "stop");
	refused(stopping, SANDBOX "/stop?force=false");
	stop_path();
	stop_ephemeral();
}
