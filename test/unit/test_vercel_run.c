/*
 * test_vercel_run.c
 *		Scripts in a Vercel sandbox: what a stream of lines tells, and what it does not.
 */
#include <stdlib.h>

#include "unit.h"

#define CMD VERCEL_SESSION "/cmd?teamId=team_1"

static void
pieces(void)
{
	static const char lines[] = VERCEL_BEGUN VERCEL_OUT("h\xc3\xa9\\ud83d\\ude00\\n")
	    VERCEL_ERR("w") VERCEL_MARKED("3");
	SbxRunInput input = plain_run("x");

	for (size_t piece = 1; piece <= sizeof(lines); piece++)
	{
		Drive drive = vercel_ran(&input, lines, piece, 200);
		const SbxRunResult *result = drive.op->result;

		ok(drive.op->succeeded && result->exit_code == 3 && !result->truncated &&
		       result->stdout_length == 8 &&
		       memcmp(result->stdout_text, "h\xc3\xa9\xf0\x9f\x98\x80\n", 8) == 0 &&
		       result->stderr_length == 1,
		   "in pieces of %zu", piece);
		drive_end(&drive);
	}
}

static void
results(void)
{
	static const struct
	{
		const char *lines;
		int exit_code;
		const char *what;
	} rows[] = {
	    {VERCEL_BEGUN VERCEL_MARKED("137"), 137, "a genuine 137"},
	    {VERCEL_BEGUN VERCEL_MARKED("137") VERCEL_END("137"), 137,
	     "with its last line"},
	    {VERCEL_BEGUN VERCEL_END("127"), 127, "no shell, so no mark"},
	    {VERCEL_BEGUN "{\"beat\":1}\n\n" VERCEL_END("0"), 0, "lines of another kind"},
	    {VERCEL_BEGUN "{\"command\":{\"exitCode\":5}}", 5, "the last line has no end"},
	    {VERCEL_BEGUN VERCEL_END("6") "{\"stream\":\"error\",\"data\":{}}\nx\n", 6,
	     "what follows the end decides nothing"},
	    {VERCEL_BEGUN VERCEL_OUT("\\u0000") VERCEL_END("0"), 0, "NUL is output"},
	    {VERCEL_BEGUN "{\"stream\":\"other\",\"data\":\"x\"}\n" VERCEL_END("0"), 0,
	     "another stream"},
	};
	SbxRunInput input = plain_run("x");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = vercel_ran(&input, rows[i].lines, 7, 200);

		ok(drive.op->succeeded &&
		       ((SbxRunResult *) drive.op->result)->exit_code == rows[i].exit_code,
		   "a result: %s", rows[i].what);
		drive_end(&drive);
	}
}

/* Each may still run: it is killed before the failure is told. */
static void
no_results(void)
{
	static const struct
	{
		const char *lines;
		int status;
		const char *code;
		const char *what;
	} rows[] = {
	    {VERCEL_BEGUN VERCEL_END("137"), 200, "TIMEOUT", "killed at its time"},
	    {VERCEL_BEGUN VERCEL_OUT("x"), 200, NULL, "a stream that is cut"},
	    {"{\"command\":{\"exitCode\":null}}", 200, NULL, "plain JSON: nobody waited"},
	    {VERCEL_BEGUN "{\"stream\":\"error\",\"data\":{\"code\":\"c\"}}\n", 200, NULL,
	     "an error in the stream"},
	    {VERCEL_BEGUN "x\n" VERCEL_END("0"), 200, NULL, "a line that is none"},
	    {VERCEL_BEGUN VERCEL_OUT("\xff") VERCEL_END("0"), 200, NULL, "bad UTF-8"},
	    {VERCEL_BEGUN "{\"stream\":\"stdout\",\"data\":5}\n" VERCEL_END("0"), 200, NULL,
	     "output that is no text"},
	    {VERCEL_BEGUN VERCEL_END("\"0\""), 200, NULL, "an exit code that is a text"},
	    {VERCEL_BEGUN VERCEL_END("0.5"), 200, NULL, "half an exit code"},
	    {VERCEL_BEGUN VERCEL_END("2147483648"), 200, NULL, "one out of range"},
	    {VERCEL_BEGUN VERCEL_END("1e400"), 200, NULL, "one that is no number"},
	    {VERCEL_BEGUN "[" VERCEL_END("0"), 200, NULL, "a line that is cut"},
	    {VERCEL_BEGUN "{\"command\":{\"exitCode\":0},\"command\":{}}\n", 200, NULL,
	     "a line that says it twice"},
	    {VERCEL_BEGUN VERCEL_OUT("\\u0001run-1:0\\u0002") VERCEL_OUT("x"), 200, NULL,
	     "a mark on one stream alone"},
	    {VERCEL_BEGUN VERCEL_OUT("\\u0001run-2:0\\u0002")
	         VERCEL_ERR("\\u0001run-2:0\\u0002"),
	     200, NULL, "the marks of another run"},
	    {VERCEL_BEGUN, 0, NULL, "a broken connection"},
	    {"", 500, NULL, "a server error"},
	};
	SbxRunInput input = plain_run("x");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = vercel_ran(&input, rows[i].lines, 7, rows[i].status);

		ok(drive.want == SBX_OP_WANT_HTTP &&
		       strstr(drive.op->request.body, "kill -9") != NULL,
		   "%s: it is killed", rows[i].what);
		drive_feed(&drive, VERCEL_END("0"), strlen(VERCEL_END("0")), 7);
		drive_answer(&drive, 200, "");
		ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded, "%s: no result",
		   rows[i].what);
		is_text(drive.op->failure.provider_code, rows[i].code, "%s: its code",
		        rows[i].what);
		ok(drive.op->failure.request_sent, "%s: it may have run", rows[i].what);
		drive_end(&drive);
	}
}

/* The sandbox's time is over, or somebody stopped it. */
static void
sessions_that_end(void)
{
	static const struct
	{
		const char *lines;
		int killed; /* the answer to the command that kills */
		const char *code;
		const char *what;
	} rows[] = {
	    {"{\"stream\":\"error\",\"data\":{\"code\":\"sandbox_stream_closed\"}}\n", 410,
	     "SCRIPT_LOST", "must fire: the session is over, and the script with it"},
	    {VERCEL_BEGUN VERCEL_OUT("x"), 410, "SCRIPT_LOST",
	     "must fire: after a cut stream"},
	    {VERCEL_BEGUN VERCEL_END("137"), 410, "TIMEOUT",
	     "must not fire: it was out of time before"},
	    {VERCEL_BEGUN VERCEL_END("137"), 422, "TIMEOUT_NOT_KILLED",
	     "must not fire: the session is not over yet"},
	    {VERCEL_BEGUN VERCEL_END("137"), 500, "TIMEOUT_NOT_KILLED",
	     "must not fire: nobody knows"},
	    {VERCEL_BEGUN VERCEL_OUT("x"), 200, NULL, "must not fire: the session goes on"},
	    {VERCEL_BEGUN VERCEL_OUT("x"), 404, NULL, "must not fire: nothing is told"},
	};
	SbxRunInput input = plain_run("x");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = vercel_ran(&input, rows[i].lines, 7, 200);

		drive_answer(&drive, rows[i].killed, "{}");
		ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded, "%s: fails",
		   rows[i].what);
		is_text(drive.op->failure.provider_code, rows[i].code, "%s", rows[i].what);
		drive_end(&drive);
	}
}

static void
refused(void)
{
	SbxRunInput input = plain_run("x");
	Drive drive = vercel_ran(&input, "", 1, 410);

	fails(&drive, SBX_PHASE_REMOTE, 410, "NOT_STARTED", SBX_ALLOCATION_UNKNOWN,
	      "a session that is over");
	drive_end(&drive);
	drive = vercel_ran(&input, "", 1, 422);
	fails(&drive, SBX_PHASE_REMOTE, 422, "NOT_STARTED", SBX_ALLOCATION_UNKNOWN,
	      "one that is about to be");
	drive_end(&drive);
	drive = vercel_ran(&input, "", 1, 404);
	asks(&drive, "GET", VERCEL_SANDBOX, "404 can be anything: looked at");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
}

void
test_vercel_run(void)
{
	section("Vercel run");
	pieces();
	results();
	no_results();
	sessions_that_end();
	refused();
}
