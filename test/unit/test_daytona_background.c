/*
 * test_daytona_background.c
 *		Starting a script that nobody waits for, once and only once.
 */
#include <stdlib.h>

#include "unit.h"

#define SESSIONS     SANDBOX_BOX "/process/session"
#define SESSION      SESSIONS "/run-1"
#define EXECUTE      SANDBOX_BOX "/process/execute"
#define PRINTS(text) "{\"exitCode\":0,\"result\":\"" text "\\n\"}"

static const SbxTarget target = {.sandbox_id = ID};

/* One whose name is being claimed. */
static Drive
claiming(void)
{
	SbxRunInput input = plain_run("sleep 1");

	return opened(
	    sbx_kind_daytona.start_script(account_reset(&account), &target, &input));
}

/* One whose session is being made. */
static Drive
opening(void)
{
	Drive drive = claiming();

	drive_answer(&drive, 200, PRINTS("new"));
	return drive;
}

/* One whose command is out. */
static Drive
executing(void)
{
	Drive drive = opening();

	drive_answer(&drive, 201, "");
	return drive;
}

/* One whose answer was lost: its files are asked. */
static Drive
checking(void)
{
	Drive drive = executing();

	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	return drive;
}

/* One whose session was there before. */
static Drive
in_old_session(void)
{
	Drive drive = opening();

	drive_answer(&drive, 409, "{\"message\":\"session already exists\"}");
	return drive;
}

/* The text of the command, as a session has it. */
static char *
our_command(void)
{
	Drive drive = executing();
	json_t *body =
	    sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	char *text = strdup(sbx_json_string(body, "command"));

	json_decref(body);
	drive_end(&drive);
	return text;
}

/* A session with up to two commands; NULL ends them, "" is ours. */
static char *
session_with(const char *first, const char *second)
{
	char *ours = our_command();
	json_t *commands = json_array();
	const char *const texts[] = {first, second};
	json_t *session;
	char *text;

	for (int i = 0; i < 2 && texts[i] != NULL; i++)
		json_array_append_new(commands,
		                      json_pack("{s:s,s:s}", "id", i == 0 ? "c1" : "c2",
		                                "command", texts[i][0] ? texts[i] : ours));
	session = json_pack("{s:s,s:o}", "sessionId", "run-1", "commands", commands);
	text = json_dumps(session, 0);
	json_decref(session);
	free(ours);
	return text;
}

static void
is_started(const Drive *drive, bool reconciled, const char *what)
{
	const SbxStartedScript *result = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return;
	is_text(result->session_id, "run-1", "%s: session", what);
	is_number((int64_t) strspn(result->command_id, "0123456789abcdef"), 16,
	          "%s: command", what);
	ok(result->reconciled == reconciled, "%s: %s", what,
	   reconciled ? "was there" : "is new");
}

/* Answers the same to every question that is asked three times. */
static void
answer_looks(Drive *drive, const char *method, const char *url, int status,
             const char *body)
{
	for (int i = 1; i <= 3; i++)
	{
		asks(drive, method, url, "look %d", i);
		drive_answer(drive, status, body);
		if (i == 3)
			break;
		pauses(drive, 1000, "look %d decides nothing", i);
		drive_pause_over(drive);
	}
}

/* --- the way ------------------------------------------------------------- */

static void
path(void)
{
	SbxRunInput input = plain_run("sleep 1");
	Drive drive = claiming();

	section("start script");
	asks(&drive, "POST", EXECUTE, "its name is claimed");
	ok(strstr(drive.op->request.body, "ln -sn ") != NULL &&
	       drive.op->request.repeatable,
	   "twice does no harm");
	is_number(drive.op->timeout_ms, 5000, "the input's time bounds the start");
	is_text(drive.op->operation, "startScript", "operation name");
	drive_answer(&drive, 200, PRINTS("new"));
	asks(&drive, "POST", SESSIONS, "a session of its own");
	is_text(drive.op->request.body, "{\"sessionId\":\"run-1\"}", "of the run's name");
	ok(drive.op->request.repeatable, "may be repeated: what is there is looked into");
	drive_recorded(&drive, "session_create");
	asks(&drive, "POST", SESSION "/exec", "executed");
	ok(!drive.op->request.repeatable && drive.op->request.chunked,
	   "at most once, and no proxy can replay it");
	is_number(drive.op->request.timeout_ms, 10000, "nobody waits for its end");
	drive_recorded(&drive, "session_exec_async");
	is_started(&drive, false, "started");
	drive_end(&drive);

	input.timeout_ms = 0;
	drive_start(&drive,
	            sbx_kind_daytona.start_script(&account.account, &target, &input));
	is_number(drive.op->timeout_ms, 30000, "default time");
	drive_end(&drive);
	drive = executing();
	drive_answer(&drive, 200, "{\"cmdId\":\"c9\"}");
	is_started(&drive, false, "another success");
	drive_end(&drive);
}

/* The name of a script is told by its text and all that it gets. */
static void
fingerprints(void)
{
	static const SbxPair pair[] = {{"A", "1"}};
	SbxRunInput inputs[5];
	const char *ids[5];
	Drive drives[5];

	section("start script: fingerprint");
	for (int i = 0; i < 5; i++)
		inputs[i] = plain_run("sleep 1");
	inputs[1].timeout_ms = 77;
	inputs[2].command = "sleep 2";
	inputs[3].cwd = "/";
	inputs[4].env = pair;
	inputs[4].env_count = 1;
	for (int i = 0; i < 5; i++)
	{
		drives[i] = opened(sbx_kind_daytona.start_script(account_reset(&account),
		                                                 &target, &inputs[i]));
		drive_answer(&drives[i], 200, PRINTS("running"));
		is_started(&drives[i], true, "running");
		ids[i] = ((SbxStartedScript *) drives[i].op->result)->command_id;
		if (i == 1)
			is_text(ids[1], ids[0],
			        "the same: the time of the start is not part of it");
		else if (i > 1)
			ok(strcmp(ids[i], ids[0]) != 0, "input %d is another", i);
	}
	for (int i = 0; i < 5; i++)
		drive_end(&drives[i]);
}

static void
impossible(void)
{
	static const SbxPair bad_name[] = {{"A;b", "1"}};
	SbxRunInput inputs[6];

	section("start script: impossible");
	for (int i = 0; i < 6; i++)
		inputs[i] = plain_run("x");
	inputs[0].run_id = "a/b";
	inputs[1].run_id = "";
	inputs[2].command = "\xff";
	inputs[3].cwd = "relative";
	inputs[4].session = "a b";
	inputs[5].env = bad_name;
	inputs[5].env_count = 1;
	for (int i = 0; i < 6; i++)
	{
		Drive drive;

		drive_start(&drive, sbx_kind_daytona.start_script(account_reset(&account),
		                                                  &target, &inputs[i]));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "input %d", i);
		drive_end(&drive);
	}
}

/* --- whose is the name? --------------------------------------------------- */

static void
claims(void)
{
	static const char *const found[] = {PRINTS("running"), PRINTS("lost"), PRINTS("0"),
	                                    PRINTS("255")};
	Drive drive;

	section("start script: claim");
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
	{
		drive = claiming();
		drive_answer(&drive, 200, found[i]);
		is_started(&drive, true, found[i]);
		drive_end(&drive);
	}
	drive = claiming();
	drive_answer(&drive, 200, PRINTS("claimed"));
	asks(&drive, "POST", SESSIONS, "ours without a trace goes on");
	drive_answer(&drive, 201, "");
	asks(&drive, "POST", SESSION "/exec", "it may be delivered twice");
	drive_answer(&drive, 202, "{\"cmdId\":\"c1\"}");
	is_started(&drive, true, "claimed");
	drive_end(&drive);
	drive = claiming();
	drive_answer(&drive, 200, PRINTS("another"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", SBX_ALLOCATION_UNKNOWN,
	      "another's");
	drive_end(&drive);
	drive = claiming();
	drive_answer(&drive, 200, PRINTS("nothing"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "TMP_NOT_WRITABLE", SBX_ALLOCATION_UNKNOWN,
	      "no place for a claim");
	drive_end(&drive);
}

static void
not_claimed(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {400, "{}", SBX_PHASE_REMOTE, NULL},
	    {404, "{}", SBX_PHASE_REMOTE, NULL},
	    {408, "{}", SBX_PHASE_REMOTE, NULL},
	    {429, "{}", SBX_PHASE_REMOTE, NULL},
	    {502, "", SBX_PHASE_REMOTE, NULL},
	    {400, "{\"message\":\"no IP address found\"}", SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {404, "{\"message\":\"sandbox container not found\"}", SBX_PHASE_REMOTE,
	     "NOT_STARTED"},
	    {200, "{\"exitCode\":-1,\"result\":\"\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, PRINTS("newer"), SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":0,\"result\":5}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	section("start script: no claim");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = claiming();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = claiming();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "no answer");
	drive_end(&drive);
	drive = claiming();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
	drive = claiming();
	drive_answer(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401: the control plane is asked");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
}

/* --- the session --------------------------------------------------------- */

static void
session_refused(void)
{
	static const int statuses[] = {400, 404, 408, 429, 500, 502};
	Drive drive;

	section("start script: session");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
	{
		drive = opening();
		drive_answer(&drive, statuses[i], "");
		fails(&drive, SBX_PHASE_REMOTE, statuses[i], NULL, SBX_ALLOCATION_UNKNOWN, "%d",
		      statuses[i]);
		drive_end(&drive);
	}
	drive = opening();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "no answer");
	drive_end(&drive);
	drive = opening();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

/* --- the command --------------------------------------------------------- */

static void
command_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{400, "{}", NULL},
	            {400, "{\"message\":\"no IP address found\"}", "NOT_STARTED"},
	            {404, "{\"message\":\"session not found\"}", NULL},
	            {404, "{\"message\":\"sandbox container not found\"}", "NOT_STARTED"},
	            {409, "{}", NULL},
	            {422, "{}", NULL}};
	Drive drive;

	section("start script: command");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = executing();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = executing();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN, "never sent");
	ok(!drive.op->failure.request_sent, "never sent: and that is said");
	drive_end(&drive);
	drive = executing();
	drive_answer(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401: the control plane is asked");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = executing();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "time over");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent,
	   "time over: it may be running");
	drive_end(&drive);
}

/* What may have started it is looked for, whatever came back. */
static void
command_doubtful(void)
{
	static const struct
	{
		SbxHttpResponse response;
		const char *what;
	} rows[] = {
	    {{.failed_phase = SBX_PHASE_RECEIVE, .request_sent = true}, "no answer"},
	    {{.failed_phase = SBX_PHASE_RECEIVE, .request_sent = true, .too_large = true},
	     "an answer that is too long"},
	    {{.status = 202,
	      .failed_phase = SBX_PHASE_RECEIVE,
	      .request_sent = true,
	      .too_large = true},
	     "one that is too long and says 202"},
	    {{.status = 302, .request_sent = true}, "another place"},
	    {{.status = 408, .request_sent = true}, "408"},
	    {{.status = 429, .request_sent = true}, "429"},
	    {{.status = 500, .request_sent = true}, "500"},
	    {{.status = 504, .request_sent = true}, "504"}};
	static const char *const unnamed[] = {
	    "<html>", "{}", "", "{\"cmdId\":5}", "{\"cmdId\":\"\"}", "{\"cmdId\":\"a/b\"}"};
	Drive drive;

	section("start script: doubt");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = executing();
		drive_response(&drive, rows[i].response);
		asks(&drive, "POST", EXECUTE, "%s: its files know", rows[i].what);
		drive_answer(&drive, 200, PRINTS("running"));
		is_started(&drive, true, rows[i].what);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(unnamed) / sizeof(unnamed[0]); i++)
	{
		drive = executing();
		drive_answer(&drive, 202, unnamed[i]);
		asks(&drive, "POST", EXECUTE, "202 %s: its files know", unnamed[i]);
		drive_answer(&drive, 200, PRINTS("0"));
		is_started(&drive, true, unnamed[i]);
		drive_end(&drive);
	}
}

static void
reconciled(void)
{
	static const char *const none[] = {PRINTS("claimed"), PRINTS("nothing"),
	                                   PRINTS("another"), "<html>", "{}"};
	Drive drive = checking();

	section("start script: lost answer");
	ok(drive.op->request.repeatable, "asking changes nothing");
	drive_answer(&drive, 200, PRINTS("claimed"));
	pauses(&drive, 1000, "not there yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	pauses(&drive, 1000, "not seen");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, PRINTS("lost"));
	is_started(&drive, true, "there at the third look");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
	{
		drive = checking();
		answer_looks(&drive, "POST", EXECUTE, 200, none[i]);
		fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "%s",
		      none[i]);
		ok(drive.op->failure.request_sent, "%s: it may be running", none[i]);
		drive_end(&drive);
	}
	drive = checking();
	answer_looks(&drive, "POST", EXECUTE, 502, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "never seen");
	drive_end(&drive);
	drive = checking();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "time over");
	drive_end(&drive);
}

/* --- what is in a session that was there? --------------------------------- */

/* A text that only begins like ours is another. */
static void
almost_ours(void)
{
	char *ours = our_command();
	size_t length = strlen(ours);
	json_t *body;
	char *text;
	Drive drive;

	section("start script: almost");
	for (int i = 0; i < 4; i++)
	{
		char *bytes = malloc(length + 3);
		size_t size = length;

		memcpy(bytes, ours, length + 1);
		if (i == 0)
			size--;
		else if (i == 1)
			bytes[size++] = ' ';
		else if (i == 2)
			bytes[0] = 'S';
		else
		{
			bytes[size++] = '\0';
			bytes[size++] = 'x';
		}
		body = json_pack("{s:[{s:s,s:s%}]}", "commands", "id", "c1", "command", bytes,
		                 size);
		text = json_dumps(body, 0);
		drive = in_old_session();
		drive_answer(&drive, 200, text);
		fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", SBX_ALLOCATION_UNKNOWN,
		      "case %d", i);
		drive_end(&drive);
		free(text);
		free(bytes);
		json_decref(body);
	}
	free(ours);
}

static void
old_session(void)
{
	char *one = session_with("", NULL);
	char *two = session_with("sleep 1", "");
	char *other = session_with("sleep 1", NULL);
	Drive drive = in_old_session();

	section("start script: old session");
	asks(&drive, "GET", SESSION, "409: what is in it?");
	ok(drive.op->request.max_response > strlen(one), "the text fits");
	drive_answer(&drive, 200, one);
	is_started(&drive, true, "the same input: what is there");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, two);
	is_started(&drive, true, "behind another");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, other);
	fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", SBX_ALLOCATION_UNKNOWN,
	      "another text");
	drive_end(&drive);

	/* Made by a start that got no further. */
	drive = in_old_session();
	drive_answer(&drive, 200, "{\"commands\":[]}");
	asks(&drive, "POST", SESSION "/exec", "an empty one is used");
	drive_answer(&drive, 202, "{\"cmdId\":\"c1\"}");
	is_started(&drive, false, "in an empty session");
	drive_end(&drive);

	drive = in_old_session();
	answer_looks(&drive, "GET", SESSION, 503, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, SBX_ALLOCATION_UNKNOWN, "never seen");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, NULL, SBX_ALLOCATION_UNKNOWN, "vanished");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401: the control plane is asked");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "web page");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, "{\"commands\":{}}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "commands of another type");
	drive_end(&drive);
	free(one);
	free(two);
	free(other);
}

void
test_daytona_background(void)
{
	path();
	fingerprints();
	impossible();
	claims();
	not_claimed();
	session_refused();
	command_refused();
	command_doubtful();
	reconciled();
	almost_ours();
	old_session();
}
