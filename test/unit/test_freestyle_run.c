/*
 * test_freestyle_run.c
 *		Running a script in a Freestyle machine: what is sent, and every end it can have.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define NONE SBX_ALLOCATION_UNKNOWN

static bool
sends(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

static bool
kills(const Drive *drive)
{
	return sends(drive, "kill -9 ") && sends(drive, "/tmp/.sbx-run-run-1") &&
	       sends(drive, "\"timeoutMs\":10000") &&
	       strcmp(drive->op->request.url, FREESTYLE_EXEC) == 0;
}

/* --- before -------------------------------------------------------------------------------- */

static void
opening(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{200, FREESTYLE_DTO("paused"), "NOT_STARTED"},
	            {200, FREESTYLE_DTO("pausing"), "NOT_STARTED"},
	            {200, FREESTYLE_DTO("stopped"), "NOT_STARTED"},
	            {404, FREESTYLE_GONE, "SANDBOX_GONE"},
	            {401, "{}", "UNAUTHORIZED"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		SbxRunInput input = plain_run("x");
		Drive drive;

		drive_start(&drive, sbx_kind_freestyle.run_script(freestyle_account(),
		                                                  &freestyle_target, &input));
		asks(&drive, "GET", FREESTYLE_VM, "it is looked at before");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, NONE,
		      "nothing is woken: %s", rows[i].body);
		drive_end(&drive);
	}
}

static void
sent(void)
{
	Drive drive = freestyle_running("echo hi");

	asks(&drive, "POST", FREESTYLE_EXEC, "a command");
	ok(sends(&drive, "echo hi") && sends(&drive, "sbx_time=5.000"),
	   "the text ends its script itself");
	ok(sends(&drive, "\"timeoutMs\":10000"), "a little before the provider does");
	ok(!drive.op->request.repeatable, "it is delivered once");
	is_text(sent_header(drive.op, "X-Freestyle-Background-After-Secs"), "5",
	        "it may be answered later");
	is_freestyle_key_kept(&drive, "run");
	is_number(drive.op->request.timeout_ms, 25000, "its answer has time");
	drive_end(&drive);
}

static void
times(void)
{
	static const struct
	{
		int64_t script_ms;
		const char *sent;
	} rows[] = {
	    {1, "\"timeoutMs\":5001}"},        {294999, "\"timeoutMs\":299999}"},
	    {296000, "\"timeoutMs\":300000}"}, {300000, "\"timeoutMs\":300000}"},
	    {300001, "\"timeoutMs\":305001}"}, {86400000, "\"timeoutMs\":86400000}"},
	    {0, "\"timeoutMs\":1805000}"}};
	SbxRunInput input = plain_run("x");
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		input.timeout_ms = rows[i].script_ms;
		drive = freestyle_opened(sbx_kind_freestyle.run_script(
		    freestyle_account(), &freestyle_target, &input));
		ok(sends(&drive, rows[i].sent), "%lld ms: %s", (long long) rows[i].script_ms,
		   rows[i].sent);
		drive_end(&drive);
	}
	input.timeout_ms = 86400001;
	drive_start(&drive, sbx_kind_freestyle.run_script(freestyle_account(),
	                                                  &freestyle_target, &input));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "more is refused");
	drive_end(&drive);
}

static void
refused(void)
{
	static const SbxPair bad = {"A-B", "x"};
	SbxRunInput input = plain_run("\xff");
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.run_script(freestyle_account(),
	                                                  &freestyle_target, &input));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no UTF-8");
	drive_end(&drive);
	input = plain_run("x");
	input.env = &bad;
	input.env_count = 1;
	drive_start(&drive, sbx_kind_freestyle.run_script(freestyle_account(),
	                                                  &freestyle_target, &input));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no variable's name");
	drive_end(&drive);
}

/* --- a long one -------------------------------------------------------------------------- */

static Drive
running_long(size_t length)
{
	char *command = calloc(length + 1, 1);
	Drive drive;

	memset(command, 'x', length);
	drive = freestyle_running(command);
	free(command);
	return drive;
}

static void
long_script(void)
{
	Drive drive = running_long(50 * 1024);
	size_t length;
	char answer[40];

	asks(&drive, "POST", FREESTYLE_EXEC, "must not fire: one that fits");
	drive_end(&drive);
	drive = running_long(60 * 1024);
	asks(&drive, "PUT",
	     FREESTYLE_VM "/fs/write?path=%2Ftmp%2F.sbx-run-run-1.sh&mode=448",
	     "must fire: through a file, for its user alone");
	length = drive.op->request.body_length;
	drive_answer(&drive, 204, "");
	asks(&drive, "GET", FREESTYLE_VM "/fs/stat?path=%2Ftmp%2F.sbx-run-run-1.sh",
	     "whose size is looked at");
	snprintf(answer, sizeof(answer), "{\"size\":%zu}", length);
	drive_answer(&drive, 200, answer);
	asks(&drive, "POST", FREESTYLE_EXEC, "and which is then run");
	ok(sends(&drive, "{\"command\":\". /tmp/.sbx-run-run-1.sh\""), "by its name");
	drive_end(&drive);
	drive = running_long(60 * 1024);
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 200, "{\"size\":1}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", NONE,
	      "a piece of a script is not run");
	drive_end(&drive);
}

/* --- results -------------------------------------------------------------------------------- */

static void
results(void)
{
	Drive drive = freestyle_running("x");
	const SbxRunResult *result;

	drive_answer(&drive, 200,
	             "{\"stdout\":\"out\",\"stderr\":\"err\\u0000\",\"statusCode\":3}");
	result = drive.op->result;
	if (ok(drive.op->succeeded, "a code that is not zero is a result"))
	{
		ok(result->has_exit_code && result->exit_code == 3, "its exit code");
		ok(result->stdout_length == 3 && result->stderr_length == 4, "its streams");
		is_text(result->output, "out\nerr", "both, a line each");
		ok(!result->truncated, "whole");
	}
	drive_end(&drive);
	drive = freestyle_running("x");
	drive_answer(&drive, 200, "{\"statusCode\":0}");
	ok(drive.op->succeeded, "one that says nothing");
	drive_end(&drive);
	drive = freestyle_running("x");
	drive_answer(&drive, 200,
	             "{\"stdout\":null,\"stderr\":\"sbx-out-of-time:run-1\\n\","
	             "\"statusCode\":137}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "TIMEOUT", NONE,
	      "must fire: it has ended itself, out of time");
	ok(drive.op->failure.timed_out, "and says so");
	drive_end(&drive);
	drive = freestyle_running("x");
	drive_answer(&drive, 200, "{\"statusCode\":137}");
	ok(drive.op->succeeded, "must not fire: somebody else killed it");
	drive_end(&drive);
}

static void
truncated(void)
{
	SbxRunInput input = plain_run("x");
	const SbxRunResult *result;
	Drive drive;

	input.max_stream = 3;
	drive = freestyle_opened(
	    sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target, &input));
	ok(sends(&drive, "head -c 4"), "one byte more than is wanted shows a cut");
	drive_answer(&drive, 200, "{\"stdout\":\"abcd\",\"statusCode\":0}");
	result = drive.op->result;
	ok(drive.op->succeeded && result->stdout_length == 3 && result->truncated,
	   "which is told");
	drive_end(&drive);
}

/* --- no results ---------------------------------------------------------------------------- */

/* The end of a script that was killed for lack of an answer. */
static void
killed(Drive drive, const char *name, SbxPhase phase, int status, const char *code,
       const char *code_when_confirmed)
{
	ok(kills(&drive), "%s: what may run is killed", name);
	ok(drive.op->request.repeatable, "%s: which may be said twice", name);
	if (code_when_confirmed != NULL)
		drive_answer(&drive, 200, "{\"statusCode\":0}");
	else
		drive_answer(&drive, 200, "{\"statusCode\":1}");
	fails(&drive, phase, status,
	      code_when_confirmed != NULL ? code_when_confirmed : code, NONE, "%s", name);
	drive_end(&drive);
}

static Drive
answered(int status, const char *body)
{
	Drive drive = freestyle_running("x");

	drive_answer(&drive, status, body);
	return drive;
}

static Drive
unanswered(SbxPhase phase, bool timed_out)
{
	Drive drive = freestyle_running("x");

	drive_no_answer(&drive, phase, true, timed_out);
	return drive;
}

static void
lost(void)
{
	Drive drive;

	killed(answered(200, "{\"stdout\":\"a\",\"statusCode\":null}"),
	       "no code: the provider ended it", SBX_PHASE_REMOTE, 200, "TIMEOUT", NULL);
	killed(answered(200, "{}"), "no code at all", SBX_PHASE_REMOTE, 200, "TIMEOUT",
	       NULL);
	killed(answered(500, FREESTYLE_ERROR("INTERNAL_ERROR")), "500", SBX_PHASE_REMOTE,
	       500, NULL, NULL);
	killed(answered(200, "<html>"), "a page", SBX_PHASE_PROTOCOL, 200, NULL, NULL);
	killed(answered(200, "{\"statusCode\":\"0\"}"), "a code that is a text",
	       SBX_PHASE_PROTOCOL, 200, NULL, NULL);
	killed(unanswered(SBX_PHASE_RECEIVE, false), "no answer", SBX_PHASE_RECEIVE, 0,
	       NULL, NULL);
	killed(unanswered(SBX_PHASE_RECEIVE, true), "no answer in time, not killed",
	       SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", NULL);
	killed(unanswered(SBX_PHASE_RECEIVE, true), "no answer in time, killed",
	       SBX_PHASE_RECEIVE, 0, NULL, "TIMEOUT");
	drive = freestyle_running("x");
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	killed(drive, "too long an answer proves no end", SBX_PHASE_RECEIVE, 0,
	       "OUTPUT_TOO_LARGE", NULL);
	drive = freestyle_running("x");
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, NONE, "it never left: nothing is killed");
	drive_end(&drive);
	drive = answered(500, FREESTYLE_ERROR("BACKGROUND_RESULT_UNSTORABLE"));
	fails(&drive, SBX_PHASE_REMOTE, 500, "OUTPUT_TOO_LARGE", NONE,
	      "it has run, its output is lost: neither killed nor run again");
	drive_end(&drive);
}

/* Asked for an answer that is never there, until it is asked no more. */
static Drive
promised(int64_t script_ms)
{
	SbxRunInput input = plain_run("x");
	Drive drive;

	input.timeout_ms = script_ms;
	drive = freestyle_opened(
	    sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target, &input));
	drive_answer(&drive, 202, FREESTYLE_LATER);
	while (drive.want == SBX_OP_WANT_PAUSE &&
	       drive.op->elapsed_ms < drive.op->timeout_ms)
	{
		drive_pause_over(&drive);
		if (strcmp(drive.op->request.url, FREESTYLE_RESULT) != 0)
			break;
		drive_answer(&drive, 202, FREESTYLE_LATER);
	}
	return drive;
}

static void
never_there(void)
{
	static const int64_t times[] = {1, 5000, 300000, 86400000};
	Drive drive;

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
	{
		drive = promised(times[i]);
		ok(drive.op->elapsed_ms >= times[i] &&
		       drive.op->elapsed_ms <= drive.op->timeout_ms - 20000,
		   "%lld ms: it had its time, and there is some for a kill",
		   (long long) times[i]);
		killed(drive, "an answer that never comes, killed", SBX_PHASE_PROTOCOL, 0, NULL,
		       "TIMEOUT");
		killed(promised(times[i]), "an answer that never comes, not killed",
		       SBX_PHASE_PROTOCOL, 0, "TIMEOUT_NOT_KILLED", NULL);
	}
	drive = promised(5000);
	ok(kills(&drive), "must fire: as long as there is time for its end");
	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_headed(&drive, 200, FREESTYLE_OF, "{\"statusCode\":0}");
	fails(&drive, SBX_PHASE_PROTOCOL, 0, "TIMEOUT", NONE,
	      "must not fire: what asking for the kill meets is not why it failed");
	drive_end(&drive);
	drive = freestyle_running("x");
	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive.op->elapsed_ms = 24000;
	drive_pause_over(&drive);
	drive_headed(&drive, 200, FREESTYLE_OF, "{\"statusCode\":3}");
	ok(drive.op->succeeded, "must not fire: it came in the last moment");
	drive_end(&drive);
	drive = freestyle_running("x");
	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive.op->elapsed_ms = 24000;
	drive_pause_over(&drive);
	ok(drive.op->request.timeout_ms <= 1000, "nor is the asking longer than the rest");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	ok(kills(&drive), "must fire: an asking that hangs at the end");
	drive_end(&drive);
}

static void
stored_late(void)
{
	char *command = calloc(60 * 1024 + 1, 1);
	size_t length;
	char answer[40];
	Drive drive;

	memset(command, 'x', 60 * 1024);
	for (int i = 0; i < 2; i++)
	{
		drive = freestyle_running(command);
		length = drive.op->request.body_length;
		drive_answer(&drive, 204, "");
		drive.op->elapsed_ms = drive.op->timeout_ms - (i == 0 ? 35000 : 25000);
		snprintf(answer, sizeof(answer), "{\"size\":%zu}", length);
		drive_answer(&drive, 200, answer);
		if (i == 0)
			ok(strcmp(drive.op->request.url, FREESTYLE_EXEC) == 0 &&
			       drive.op->request.timeout_ms == 5000,
			   "must not fire: what is left, but for the kill");
		else
			fails(&drive, SBX_PHASE_NONE, 200, "TIMEOUT", NONE,
			      "must fire: with no time for a kill it is not begun");
		drive_end(&drive);
	}
	free(command);
}

static void
refusals(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{400, FREESTYLE_ERROR("AGENT_UNSUPPORTED"), "AGENT_UNSUPPORTED"},
	            {400, FREESTYLE_ERROR("BAD_REQUEST"), "BAD_REQUEST"},
	            {401, FREESTYLE_ERROR("INVALID_API_KEY"), "UNAUTHORIZED"},
	            {403, "{}", "FORBIDDEN"},
	            {429, FREESTYLE_ERROR("LIMIT_EXCEEDED"), "CAPACITY"},
	            {429, "", "RATE_LIMITED"}};
	static const struct
	{
		int status; /* of the command */
		int look_status;
		const char *look;
		const char *code;
	} looks[] = {{404, 404, FREESTYLE_GONE, "SANDBOX_GONE"},
	             {404, 200, FREESTYLE_DTO("running"), "NOT_FOUND"},
	             {404, 503, "", "NOT_FOUND"},
	             {409, 200, FREESTYLE_DTO("pausing"), "NOT_STARTED"},
	             {409, 200, FREESTYLE_DTO("running"), "CONFLICT"},
	             {409, 404, FREESTYLE_GONE, "SANDBOX_GONE"},
	             {409, 404, "<html>", "CONFLICT"}};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = answered(rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, NONE,
		      "it did not start: %d %s", rows[i].status, rows[i].code);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
	{
		drive = answered(looks[i].status, looks[i].status == 404
		                                      ? FREESTYLE_GONE
		                                      : FREESTYLE_ERROR("CONFLICT"));
		asks(&drive, "GET", FREESTYLE_VM, "%d is looked into", looks[i].status);
		drive_answer(&drive, looks[i].look_status, looks[i].look);
		fails(&drive, SBX_PHASE_REMOTE, looks[i].status, looks[i].code, NONE,
		      "%d, then %d", looks[i].status, looks[i].look_status);
		drive_end(&drive);
	}
}

void
test_freestyle_run(void)
{
	section("Freestyle run");
	opening();
	sent();
	times();
	refused();
	long_script();
	results();
	truncated();
	lost();
	never_there();
	stored_late();
	refusals();
}
