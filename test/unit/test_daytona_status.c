/*
 * test_daytona_status.c
 *		Asking about a script that nobody waits for: has it ended, what did it write?
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define SESSION SANDBOX_BOX "/process/session/run-1"
#define EXECUTE SANDBOX_BOX "/process/execute"

static const SbxTarget target = {.sandbox_id = ID};

static const SbxScriptTarget *
script_of(size_t max_stream)
{
	static SbxScriptTarget script = {.session_id = "run-1", .command_id = "c1"};

	script.max_stream = max_stream;
	return &script;
}

static Drive
asking_status(void)
{
	return opened(sbx_kind_daytona.script_status(account_reset(&account), &target,
	                                             script_of(100)));
}

/* One that the sandbox has answered with this. */
static Drive
told(const char *result)
{
	Drive drive = asking_status();
	json_t *object = json_pack("{s:i,s:s}", "exitCode", 0, "result", result);
	char *body = json_dumps(object, 0);

	drive_answer(&drive, 200, body);
	free(body);
	json_decref(object);
	return drive;
}

static void
status_is(const Drive *drive, bool has_ended, int exit_code, const char *what)
{
	const SbxScriptStatus *status = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return;
	ok(status->has_ended == has_ended, "%s: %s", what, has_ended ? "ended" : "runs");
	if (has_ended)
		is_number(status->exit_code, exit_code, "%s: exit code", what);
}

/* --- status -------------------------------------------------------------- */

static void
ended(void)
{
	static const struct
	{
		const char *result;
		int exit_code;
	} rows[] = {{"0\n", 0}, {"3", 3}, {"255\n", 255}, {"012\n", 12}, {"000", 0}};
	static const struct
	{
		int status;
		const char *body;
	} closings[] = {{204, ""}, {404, "{}"}, {500, ""}, {401, "{}"}};
	Drive drive = asking_status();

	section("status: ended");
	asks(&drive, "POST", EXECUTE, "the sandbox is asked");
	ok(drive.op->request.repeatable, "a plain read");
	is_number(drive.op->timeout_ms, 30000, "time");
	is_text(drive.op->operation, "scriptStatus", "operation name");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = told(rows[i].result);
		asks(&drive, "DELETE", SESSION, "ended: its shell is not needed any more");
		drive_answer(&drive, 204, "");
		status_is(&drive, true, rows[i].exit_code, rows[i].result);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(closings) / sizeof(closings[0]); i++)
	{
		drive = told("3\n");
		drive_answer(&drive, closings[i].status, closings[i].body);
		status_is(&drive, true, 3, "whatever tidying up meets");
		drive_end(&drive);
	}
	drive = told("3\n");
	drive_expire(&drive);
	status_is(&drive, true, 3, "time over while tidying up");
	drive_end(&drive);
	drive = told("3\n");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	status_is(&drive, true, 3, "no answer while tidying up");
	drive_end(&drive);
}

/* A result that is no status. */
static void
garbage(const char *result, size_t length)
{
	json_t *object = json_pack("{s:i,s:s%}", "exitCode", 0, "result", result, length);
	char *body = json_dumps(object, 0);
	Drive drive = asking_status();

	drive_answer(&drive, 200, body);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "%s", body);
	drive_end(&drive);
	free(body);
	json_decref(object);
}

static void
words(void)
{
	static const char *const bad[] = {"256\n",  "-1\n",       "12a\n",
	                                  "0123\n", "",           "\n",
	                                  " 3\n",   "+3",         "3\n\n",
	                                  "3\r\n",  "0x1",        "1e1",
	                                  "3 4\n",  "run",        "lostx",
	                                  "new\n",  "running\nx", "RUNNING",
	                                  "no",     "nothing ",   "99999999999999999999"};
	static const struct
	{
		const char *word;
		const char *code;
	} ends[] = {{"lost\n", "SCRIPT_LOST"},
	            {"nothing\n", "SCRIPT_UNKNOWN"},
	            {"another\n", "SCRIPT_UNKNOWN"}};
	Drive drive;

	section("status: words");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		garbage(bad[i], strlen(bad[i]));
	garbage("3\0", 2);
	garbage("lost\0x", 6);
	drive = told("running\n");
	status_is(&drive, false, 0, "runs");
	drive_end(&drive);
	drive = told("bash: warning: setlocale: 3\nrunning\n");
	status_is(&drive, false, 0, "what a shell said before does not count");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
	{
		drive = told(ends[i].word);
		fails(&drive, SBX_PHASE_REMOTE, 200, ends[i].code, SBX_ALLOCATION_UNKNOWN, "%s",
		      ends[i].word);
		drive_end(&drive);
	}
}

/* Claimed, and not begun: its session tells whether it ever will. */
static void
not_begun(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, "{\"message\":\"session not found\"}", "SCRIPT_LOST"},
	            {404, "{\"message\":\"sandbox container not found\"}", "NOT_STARTED"},
	            {400, "{\"message\":\"no IP address found\"}", "NOT_STARTED"},
	            {400, "{}", NULL},
	            {502, "", NULL}};
	Drive drive = told("claimed\n");

	section("status: not begun");
	asks(&drive, "GET", SESSION, "is its session there?");
	drive_answer(&drive, 200, "{\"sessionId\":\"run-1\",\"commands\":[]}");
	status_is(&drive, false, 0, "it will begin");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = told("claimed\n");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
}

static void
files_fail(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":0}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":0,\"result\":0}", SBX_PHASE_PROTOCOL, NULL},
	    {400, "{\"message\":\"no IP address found\"}", SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {404, "{\"message\":\"sandbox container not found\"}", SBX_PHASE_REMOTE,
	     "NOT_STARTED"},
	    {408, "{}", SBX_PHASE_REMOTE, NULL},
	    {502, "", SBX_PHASE_REMOTE, NULL}};
	Drive drive;

	section("status: files");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = asking_status();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = asking_status();
	drive_answer(&drive, 401, "{}");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = asking_status();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

static void
impossible(void)
{
	static const SbxScriptTarget bad[] = {
	    {"a/b", "c1", 1},   {"run-1", "c/1", 1}, {"", "c1", 1},
	    {"run-1", "..", 1}, {"a.b", "c1", 1},    {"run-1", "c.1", 1},
	    {NULL, "c1", 1},    {"run-1", NULL, 1},  {"a b", "c1", 1}};
	Drive drive;

	section("asking: impossible");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		drive_start(&drive, sbx_kind_daytona.script_status(account_reset(&account),
		                                                   &target, &bad[i]));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "status %zu", i);
		drive_end(&drive);
		drive_start(&drive,
		            sbx_kind_daytona.script_logs(&account.account, &target, &bad[i]));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "logs %zu", i);
		drive_end(&drive);
	}
}

/* --- logs ---------------------------------------------------------------- */

static Drive
reading_out(size_t max_stream)
{
	return opened(sbx_kind_daytona.script_logs(account_reset(&account), &target,
	                                           script_of(max_stream)));
}

static bool
is_stream(const char *bytes, size_t length, const char *expected,
          size_t expected_length)
{
	return bytes != NULL && length == expected_length &&
	       memcmp(bytes, expected, length) == 0 && bytes[length] == '\0';
}

#define RESULT(text) "{\"exitCode\":0,\"result\":\"" text "\"}"
#define MISSING      "{\"exitCode\":1,\"result\":\"\"}"

static void
log_is(size_t max_stream, const char *out_body, const char *err_body, const char *out,
       const char *err, const char *both, bool truncated, const char *what)
{
	Drive drive = reading_out(max_stream);
	const SbxRunResult *result;

	drive_answer(&drive, 200, out_body);
	drive_answer(&drive, 200, err_body);
	result = drive.op->result;
	if (ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded, "%s", what))
	{
		ok(is_stream(result->stdout_text, result->stdout_length, out, strlen(out)),
		   "%s: out", what);
		ok(is_stream(result->stderr_text, result->stderr_length, err, strlen(err)),
		   "%s: err", what);
		ok(is_stream(result->output, result->output_length, both, strlen(both)),
		   "%s: both", what);
		ok(result->truncated == truncated && !result->has_exit_code, "%s: flags", what);
	}
	drive_end(&drive);
}

static void
log_requests(void)
{
	Drive drive = reading_out(100);

	section("logs");
	is_text(drive.op->operation, "scriptLogs", "operation name");
	asks(&drive, "POST", EXECUTE, "standard output");
	is_text(
	    drive.op->request.body,
	    "{\"command\":\"[ \\\"$(readlink /tmp/.sbx-run-run-1.claim)\\\" = c1 ] && "
	    "{ head -c 101 /tmp/.sbx-run-run-1.out 2>/dev/null || :; }\",\"timeout\":8}",
	    "one byte more than is kept");
	is_number((int64_t) drive.op->request.max_response, 800 + 64 * 1024, "room for it");
	ok(drive.op->request.repeatable, "a plain read");
	drive_answer(&drive, 200, RESULT("a"));
	asks(&drive, "POST", EXECUTE, "standard error");
	is_text(
	    drive.op->request.body,
	    "{\"command\":\"[ \\\"$(readlink /tmp/.sbx-run-run-1.claim)\\\" = c1 ] && "
	    "{ head -c 101 /tmp/.sbx-run-run-1.err 2>/dev/null || :; }\",\"timeout\":8}",
	    "its file");
	drive_end(&drive);
	drive = reading_out(SIZE_MAX);
	ok(drive.op->request.max_response == SIZE_MAX,
	   "an endless limit does not overflow");
	drive_end(&drive);
}

static void
log_streams(void)
{
	Drive drive = reading_out(3);
	const SbxRunResult *result;

	section("logs");
	log_is(9, RESULT("a\\n"), RESULT("b\\n"), "a\n", "b\n", "a\nb\n", false, "both");
	log_is(9, RESULT("a"), RESULT("b"), "a", "b", "a\nb", false, "no line ends");
	log_is(9, RESULT(""), RESULT(""), "", "", "", false, "nothing yet");
	log_is(3, RESULT("abc"), RESULT(""), "abc", "", "abc", false, "exactly full");
	log_is(3, RESULT("abcd"), RESULT(""), "abc", "", "abc", true, "cut");
	log_is(3, RESULT("a"), RESULT("abcd"), "a", "abc", "a\nabc", true, "errors cut");
	log_is(3, RESULT("ab\xc3\xa4"), RESULT(""), "ab", "", "ab", true,
	       "not within a character");
	log_is(3, RESULT("abc\xef\xbf\xbd"), RESULT(""), "abc", "", "abc", true,
	       "half a character at the cut arrives as a replacement, and goes");
	log_is(0, RESULT("a"), RESULT(""), "", "", "", true, "nothing is kept");
	log_is(9, RESULT("\xef\xbf\xbd"), RESULT(""), "\xef\xbf\xbd", "", "\xef\xbf\xbd",
	       false, "an invalid byte arrives as a replacement");

	drive_answer(&drive, 200, RESULT("a\\u0000b"));
	drive_answer(&drive, 200, RESULT("\\u0000"));
	result = drive.op->result;
	ok(drive.op->succeeded &&
	       is_stream(result->stdout_text, result->stdout_length, "a\0b", 3) &&
	       is_stream(result->stderr_text, result->stderr_length, "\0", 1),
	   "a byte 0 is kept");
	drive_end(&drive);
}

static void
log_fails(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"result\":\"a\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":0}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":\"0\",\"result\":\"a\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exitCode\":-1,\"result\":\"\"}", SBX_PHASE_PROTOCOL, NULL},
	    {400, "{\"message\":\"no IP address found\"}", SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {404, "{}", SBX_PHASE_REMOTE, NULL},
	    {408, "{}", SBX_PHASE_REMOTE, NULL},
	    {502, "", SBX_PHASE_REMOTE, NULL}};
	Drive drive;

	section("logs: failure");
	for (int which = 0; which < 2; which++)
	{
		const char *stream = which == 0 ? "out" : "err";

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		{
			drive = reading_out(9);
			if (which == 1)
				drive_answer(&drive, 200, RESULT("a"));
			drive_answer(&drive, rows[i].status, rows[i].body);
			fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
			      SBX_ALLOCATION_UNKNOWN, "%s: %d %s", stream, rows[i].status,
			      rows[i].body);
			drive_end(&drive);
		}
		drive = reading_out(9);
		if (which == 1)
			drive_answer(&drive, 200, RESULT("a"));
		drive_answer(&drive, 200, MISSING);
		fails(&drive, SBX_PHASE_REMOTE, 200, "SCRIPT_UNKNOWN", SBX_ALLOCATION_UNKNOWN,
		      "%s: no such script", stream);
		drive_end(&drive);
		drive = reading_out(9);
		if (which == 1)
			drive_answer(&drive, 200, RESULT("a"));
		drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
		                                         .request_sent = true,
		                                         .too_large = true});
		fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
		      "%s: too large", stream);
		drive_end(&drive);
		drive = reading_out(9);
		if (which == 1)
			drive_answer(&drive, 200, RESULT("a"));
		drive_expire(&drive);
		ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded &&
		       drive.op->failure.timed_out,
		   "%s: time over", stream);
		drive_end(&drive);
	}
}

void
test_daytona_status(void)
{
	ended();
	words();
	not_begun();
	files_fail();
	impossible();
	log_requests();
	log_streams();
	log_fails();
}
