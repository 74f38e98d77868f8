/*
 * test_daytona_background.c
 *		Starting a script that nobody waits for, once and only once.
 */
#include <stdlib.h>

#include "unit.h"

#define SESSIONS SANDBOX_BOX "/process/session"
#define SESSION  SESSIONS "/run-1"
#define EXECUTE  SANDBOX_BOX "/process/execute"
#define CLEARED  "{\"exitCode\":0,\"result\":\"\"}"

static const SbxTarget target = {.sandbox_id = ID};

/* One whose session is being made. */
static Drive
opening(void)
{
	SbxRunInput input = plain_run("sleep 1");

	return opened(
	    sbx_kind_daytona.start_script(account_reset(&account), &target, &input));
}

/* One whose session is new: an earlier script's files are removed. */
static Drive
clearing(void)
{
	Drive drive = opening();

	drive_answer(&drive, 201, "");
	return drive;
}

/* One whose command is out. */
static Drive
executing(void)
{
	Drive drive = clearing();

	drive_answer(&drive, 200, CLEARED);
	return drive;
}

/* One whose answer was lost: the session is looked into. */
static Drive
comparing(void)
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
is_started(const Drive *drive, const char *command_id, bool reconciled,
           const char *what)
{
	const SbxStartedScript *result = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return;
	is_text(result->session_id, "run-1", "%s: session", what);
	is_text(result->command_id, command_id, "%s: command", what);
	ok(result->reconciled == reconciled, "%s: %s", what,
	   reconciled ? "was there" : "is new");
}

/* Answers the same to every look into the session. */
static void
answer_looks(Drive *drive, int status, const char *body)
{
	for (int i = 1; i <= 3; i++)
	{
		asks(drive, "GET", SESSION, "look %d", i);
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
	Drive drive = opening();

	section("start script");
	asks(&drive, "POST", SESSIONS, "a session of its own");
	is_text(drive.op->request.body, "{\"sessionId\":\"run-1\"}", "of the run's name");
	ok(drive.op->request.repeatable, "may be repeated: what is there is looked into");
	is_number(drive.op->timeout_ms, 5000, "the input's time bounds the start");
	is_text(drive.op->operation, "startScript", "operation name");
	drive_recorded(&drive, "session_create");
	asks(&drive, "POST", EXECUTE, "what an earlier one left is removed");
	ok(strstr(drive.op->request.body, "rm -f") != NULL && drive.op->request.repeatable,
	   "twice does no harm");
	drive_answer(&drive, 200, CLEARED);
	asks(&drive, "POST", SESSION "/exec", "executed");
	ok(!drive.op->request.repeatable && drive.op->request.chunked,
	   "at most once, and no proxy can replay it");
	is_number(drive.op->request.timeout_ms, 10000, "nobody waits for its end");
	drive_recorded(&drive, "session_exec_async");
	is_started(&drive, "c0ffee00-0000-4000-8000-000000000002", false, "started");
	drive_end(&drive);

	input.timeout_ms = 0;
	drive_start(&drive,
	            sbx_kind_daytona.start_script(&account.account, &target, &input));
	is_number(drive.op->timeout_ms, 30000, "default time");
	drive_end(&drive);
	drive = executing();
	drive_answer(&drive, 200, "{\"cmdId\":\"c9\"}");
	is_started(&drive, "c9", false, "another success");
	drive_end(&drive);
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

/* --- before the command -------------------------------------------------- */

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
		ok(!drive.op->failure.request_sent || drive.op->failure.http_status != 0,
		   "the command was not sent");
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

/* Nothing has started, and the shell of the new session must not stay. */
static void
gives_up(Drive *drive, SbxPhase phase, int status, const char *code, const char *what)
{
	asks(drive, "DELETE", SESSION, "%s: the session is dropped", what);
	drive_answer(drive, 204, "");
	fails(drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s", what);
}

static void
not_cleared(void)
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
	    {200, "{\"exitCode\":1,\"result\":\"rm: cannot remove\"}", SBX_PHASE_PROTOCOL,
	     NULL},
	    {200, "{\"exitCode\":-1,\"result\":\"\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	section("start script: old files");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = clearing();
		drive_answer(&drive, rows[i].status, rows[i].body);
		gives_up(&drive, rows[i].phase, rows[i].status, rows[i].code, rows[i].body);
		drive_end(&drive);
	}
	drive = clearing();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	gives_up(&drive, SBX_PHASE_CONNECT, 0, NULL, "no connection");
	drive_end(&drive);
	drive = clearing();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
	drive = clearing();
	drive_answer(&drive, 401, "{}");
	asks(&drive, "DELETE", SESSION, "401: the session is dropped");
	drive_answer(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401: the control plane is asked");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
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
		gives_up(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, rows[i].body);
		drive_end(&drive);
	}
	drive = executing();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	gives_up(&drive, SBX_PHASE_CONNECT, 0, NULL, "never sent");
	ok(!drive.op->failure.request_sent, "never sent: and that is said");
	drive_end(&drive);
	drive = executing();
	drive_answer(&drive, 400, "{}");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_REMOTE, 400, NULL, SBX_ALLOCATION_UNKNOWN,
	      "dropping it fails: the refusal is told");
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
		int status;
		const char *body;
	} rows[] = {{0, ""},
	            {408, "{}"},
	            {500, ""},
	            {502, ""},
	            {504, ""},
	            {202, "<html>"},
	            {202, "{}"},
	            {202, "{\"cmdId\":5}"},
	            {202, "{\"cmdId\":\"\"}"},
	            {202, "{\"cmdId\":\"a/b\"}"},
	            {204, ""}};
	char *one = session_with("", NULL);

	section("start script: doubt");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = executing();

		if (rows[i].status == 0)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		else
			drive_answer(&drive, rows[i].status, rows[i].body);
		asks(&drive, "GET", SESSION, "%d %s: the session knows", rows[i].status,
		     rows[i].body);
		drive_answer(&drive, 200, one);
		is_started(&drive, "c1", true, "found");
		drive_end(&drive);
	}
	free(one);
}

/* --- what is in the session? --------------------------------------------- */

static void
reconciled(void)
{
	char *one = session_with("", NULL);
	char *two = session_with("", "sleep 1");
	char *twice = session_with("", "");
	char *other = session_with("sleep 1", NULL);
	const char *const others[] = {two, twice, other};
	Drive drive = comparing();

	section("start script: lost answer");
	drive_answer(&drive, 200, "{\"sessionId\":\"run-1\",\"commands\":[]}");
	pauses(&drive, 1000, "not there yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	pauses(&drive, 1000, "not seen");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, one);
	is_started(&drive, "c1", true, "there at the third look");
	drive_end(&drive);

	for (size_t i = 0; i < 3; i++)
	{
		drive = comparing();
		answer_looks(&drive, 200, others[i]);
		fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
		      "case %zu: exactly one that says the same, or none is adopted", i);
		ok(drive.op->failure.request_sent, "case %zu: it may be running", i);
		drive_end(&drive);
	}
	drive = comparing();
	answer_looks(&drive, 200, "{\"sessionId\":\"run-1\",\"commands\":[]}");
	gives_up(&drive, SBX_PHASE_RECEIVE, 0, NULL, "none");
	drive_end(&drive);
	drive = comparing();
	answer_looks(&drive, 502, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "never seen: it may be running, so nothing is dropped");
	drive_end(&drive);
	drive = comparing();
	answer_looks(&drive, 200, "{\"commands\":{}}");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "commands of another type: not seen");
	drive_end(&drive);
	drive = comparing();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "time over");
	drive_end(&drive);
	free(one);
	free(two);
	free(twice);
	free(other);
}

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
used_again(void)
{
	char *one = session_with("", NULL);
	char *two = session_with("", "sleep 1");
	char *other = session_with("sleep 1", NULL);
	Drive drive = in_old_session();

	section("start script: used again");
	asks(&drive, "GET", SESSION, "409: what is in it?");
	ok(drive.op->request.max_response > strlen(one), "the text fits");
	drive_answer(&drive, 200, one);
	is_started(&drive, "c1", true, "the same input: what is there");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, other);
	fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", SBX_ALLOCATION_UNKNOWN,
	      "another text");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, two);
	fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", SBX_ALLOCATION_UNKNOWN,
	      "two commands");
	drive_end(&drive);

	/* Made by a start that got no further. */
	drive = in_old_session();
	drive_answer(&drive, 200, "{\"commands\":[]}");
	asks(&drive, "POST", EXECUTE, "an empty one is used");
	drive_answer(&drive, 200, CLEARED);
	asks(&drive, "POST", SESSION "/exec", "an empty one: executed");
	drive_answer(&drive, 202, "{\"cmdId\":\"c1\"}");
	is_started(&drive, "c1", false, "in an empty session");
	drive_end(&drive);
	drive = in_old_session();
	drive_answer(&drive, 200, "{\"commands\":[]}");
	drive_answer(&drive, 200, CLEARED);
	drive_answer(&drive, 400, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 400, NULL, SBX_ALLOCATION_UNKNOWN,
	      "refused: a session that is not ours alone is not dropped");
	drive_end(&drive);

	drive = in_old_session();
	answer_looks(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, NULL, SBX_ALLOCATION_UNKNOWN, "vanished");
	drive_end(&drive);
	drive = in_old_session();
	answer_looks(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401: the control plane is asked");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = in_old_session();
	answer_looks(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "web page");
	drive_end(&drive);
	free(one);
	free(two);
	free(other);
}

void
test_daytona_background(void)
{
	path();
	impossible();
	session_refused();
	not_cleared();
	command_refused();
	command_doubtful();
	reconciled();
	almost_ours();
	used_again();
}
