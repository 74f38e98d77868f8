/*
 * test_e2b_process.c
 *		The stream that tells what a command in an E2B sandbox does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MARK    "\001run-1:"

/* A run whose stream is asked for; 1000 bytes of each stream are kept. */
static Drive
running(void)
{
	SbxRunInput input = plain_run("x");

	e2b_account();
	return e2b_running(&input);
}

static const SbxRunResult *
result_of(const Drive *drive)
{
	static const SbxRunResult none = {.exit_code = -99};

	return drive->op->succeeded ? drive->op->result : &none;
}

static void
gives(const Drive *drive, int exit_code, const char *out, const char *err,
      const char *name)
{
	const SbxRunResult *result = result_of(drive);

	ok(drive->op->succeeded && result->has_exit_code, "%s: is a result", name);
	is_number(result->exit_code, exit_code, "%s: exit code", name);
	ok(result->stdout_length == strlen(out) &&
	       memcmp(result->stdout_length > 0 ? result->stdout_text : "", out,
	              strlen(out)) == 0,
	   "%s: standard output", name);
	ok(result->stderr_length == strlen(err) &&
	       memcmp(result->stderr_length > 0 ? result->stderr_text : "", err,
	              strlen(err)) == 0,
	   "%s: standard error", name);
}

/* One that printed this and was killed is not over: the text behind it is the kill's. */
static void
is_killed(Drive *drive, const char *name)
{
	ok(asks(drive, "POST", E2B_START, "%s: may be running, so it is killed", name) &&
	       strstr(drive->op->request.body + 5, "kill -9") != NULL,
	   "%s: by a text", name);
}

/* --- events --------------------------------------------------------------- */

static void
ends(void)
{
	static const struct
	{
		const char *end;
		int exit_code;
	} rows[] = {
	    {STREAM_END, 0},
	    {"{\"event\":{\"end\":{}}}", 0},
	    {"{ \"event\" : { \"end\" : { \"exitCode\" : 17, \"new\":[1] } } , \"x\":1}",
	     17},
	    {"{\"event\":{\"end\":{\"exitCode\":0}}}", 0},
	    {"{\"event\":{\"end\":{\"exitCode\":255,\"exited\":true}}}", 255},
	};

	section("stream, its end");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = running();
		Stream stream = {0};

		stream_add(&stream, 0, STREAM_START);
		stream_add(&stream, 0, STREAM_ALIVE);
		stream_data(&stream, "stdout", "a", 1);
		stream_add(&stream, 0, STREAM_ALIVE);
		stream_data(&stream, "stderr", "b\n", 2);
		stream_add(&stream, 0, rows[i].end);
		stream_add(&stream, 2, "{}");
		drive_stream(&drive, &stream, 3);
		gives(&drive, rows[i].exit_code, "a", "b\n", rows[i].end);
		ok(result_of(&drive)->output_length == 3 &&
		       memcmp(result_of(&drive)->output, "ab\n", 3) == 0,
		   "both in the order that they came");
		drive_end(&drive);
	}
}

/* What decides stands before the last envelope, which may get lost. */
static void
ends_without_end_of_stream(void)
{
	Drive drive = running();
	Stream stream = {0};

	section("stream, cut off after the end");
	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 1000);
	gives(&drive, 0, "", "", "closed");
	drive_end(&drive);

	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "a", 1);
	stream_add(&stream, 0, STREAM_END);
	drive_feed(&drive, stream.bytes, stream.length, 7);
	stream_free(&stream);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	gives(&drive, 0, "a", "", "reset");
	drive_end(&drive);

	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 0, STREAM_END);
	stream_add(&stream, 1, "zipped");
	drive_stream(&drive, &stream, 1000);
	gives(&drive, 0, "", "", "what comes after the end");
	drive_end(&drive);

	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 2, "{}");
	drive_stream(&drive, &stream, 1000);
	is_killed(&drive, "no end at all");
	drive_end(&drive);
}

typedef struct Broken
{
	const char *name;
	int flags;
	const char *json; /* after the start */
} Broken;

static void
broken(void)
{
	static const Broken rows[] = {
	    {"cut off", 0, NULL},
	    {"no JSON", 0, "garbage"},
	    {"nothing", 0, ""},
	    {"an array", 0, "[]"},
	    {"compressed", 1, "{}"},
	    {"no base64", 0, "{\"event\":{\"data\":{\"stdout\":\"a\"}}}"},
	    {"bad base64", 0, "{\"event\":{\"data\":{\"stdout\":\"a*==\"}}}"},
	    {"exit code as text", 0, "{\"event\":{\"end\":{\"exitCode\":\"0\"}}}"},
	    {"exit code too large", 0, "{\"event\":{\"end\":{\"exitCode\":4294967296}}}"},
	    {"a key twice", 0, "{\"event\":{\"end\":{}},\"event\":{}}"},
	    {"an error later", 2, "{\"error\":{\"code\":\"unavailable\"}}"},
	};

	section("stream, broken");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = running();
		Stream stream = {0};

		stream_add(&stream, 0, STREAM_START);
		if (rows[i].json != NULL)
			stream_add(&stream, rows[i].flags, rows[i].json);
		drive_stream(&drive, &stream, 1000);
		is_killed(&drive, rows[i].name);
		drive_printed(&drive, "", 0);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "%s: fails so",
		      rows[i].name);
		ok(drive.op->failure.request_sent && !drive.op->failure.timed_out,
		   "%s: something was sent", rows[i].name);
		drive_end(&drive);
	}
}

/* "Not run" is proven by an error in place of a start, and by nothing else. */
static void
not_started(void)
{
	Drive drive = running();
	Stream stream = {0};

	section("stream, no start");
	stream_add(&stream, 2,
	           "{\"error\":{\"code\":\"invalid_argument\",\"message\":\"x\"}}");
	drive_stream(&drive, &stream, 1);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NOT_RUN", UNKNOWN, "an error");
	drive_end(&drive);
}

static void
nothing_said(void)
{
	Drive drive = running();
	Stream stream = {0};

	section("stream, no start and no reason");
	drive_stream(&drive, &stream, 1);
	is_killed(&drive, "an empty stream");
	drive_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
	      "an empty stream says nothing");
	drive_end(&drive);

	drive = running();
	drive_answer(&drive, 200, "<html>");
	is_killed(&drive, "a page");
	drive_end(&drive);

	drive = running();
	stream_add(&stream, 2, "{}");
	drive_stream(&drive, &stream, 1);
	is_killed(&drive, "an end without an error");
	drive_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "nor does that");
	drive_end(&drive);
}

static void
too_late(void)
{
	static const struct
	{
		const char *name;
		int flags;
		const char *json;
	} rows[] = {{"stream cancelled", 2, "{\"error\":{\"code\":\"deadline_exceeded\"}}"},
	            {"shell killed", 0, STREAM_KILLED}};

	section("stream, out of time");
	for (size_t i = 0; i < 4; i++)
	{
		Drive drive = running();
		Stream stream = {0};
		bool killed = i < 2;

		stream_add(&stream, 0, STREAM_START);
		stream_add(&stream, rows[i % 2].flags, rows[i % 2].json);
		drive_stream(&drive, &stream, 5);
		is_killed(&drive, rows[i % 2].name);
		if (killed)
			drive_printed(&drive, "", 1);
		else
			drive_answer(&drive, 500, "");
		fails(&drive, SBX_PHASE_REMOTE, 200, killed ? "TIMEOUT" : "TIMEOUT_NOT_KILLED",
		      UNKNOWN, "%s: and that is %s", rows[i % 2].name,
		      killed ? "confirmed" : "not confirmed");
		ok(drive.op->failure.timed_out, "%s: timed out", rows[i % 2].name);
		drive_end(&drive);
	}
}

/* Pieces are cut anywhere, also within a character. */
static void
characters(void)
{
	static const char text[] = "h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!";
	Drive drive = running();
	Stream stream = {0};

	section("stream, characters");
	stream_add(&stream, 0, STREAM_START);
	for (size_t i = 0; i < strlen(text); i++)
	{
		stream_data(&stream, "stdout", text + i, 1);
		stream_data(&stream, "stderr", "e", 1);
	}
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 11);
	gives(&drive, 0, text, "eeeeeeeeeee", "cut");
	drive_end(&drive);

	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "a\0\xff\n", 4);
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 1000);
	ok(drive.op->succeeded && result_of(&drive)->stdout_length == 4 &&
	       memcmp(result_of(&drive)->stdout_text, "a\0\xff\n", 4) == 0,
	   "bytes that are no text");
	drive_end(&drive);
}

/* --- the mark ------------------------------------------------------------- */

static Drive
marked(const char *out, const char *err, size_t piece, bool end)
{
	Drive drive = running();
	Stream stream = {0};

	stream_add(&stream, 0, STREAM_START);
	for (size_t i = 0; i < strlen(out); i += piece)
		stream_data(&stream, "stdout", out + i,
		            strlen(out) - i < piece ? strlen(out) - i : piece);
	for (size_t i = 0; i < strlen(err); i += piece)
		stream_data(&stream, "stderr", err + i,
		            strlen(err) - i < piece ? strlen(err) - i : piece);
	if (end)
		stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 4096);
	return drive;
}

static void
mark(void)
{
	Drive drive;
	Stream stream = {0};

	section("mark");
	for (size_t piece = 1; piece < 14; piece++)
	{
		drive = marked("out" MARK "17\002more", "err" MARK "17\002", piece, false);
		gives(&drive, 17, "out", "err", "split");
		drive_end(&drive);
	}

	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "o" MARK "0\002", 10);
	ok(drive_feed(&drive, stream.bytes, stream.length, 1000), "one mark is not enough");
	stream_free(&stream);
	stream_data(&stream, "stderr", MARK "0\002", 9);
	ok(!drive_feed(&drive, stream.bytes, stream.length, 1000), "two are");
	stream_free(&stream);
	drive_answer(&drive, 200, "");
	gives(&drive, 0, "o", "", "without an end");
	drive_end(&drive);

	drive = marked("o" MARK "3\002x", "e", 100, true);
	gives(&drive, 0, "o", "e", "on one stream, and an end");
	drive_end(&drive);
	drive = marked("o" MARK "3\002", "e", 100, false);
	is_killed(&drive, "on one stream alone");
	drive_end(&drive);
}

/* What is no mark is output, to the last byte. */
static void
false_marks(void)
{
	static const char *const texts[] = {
	    "\001",
	    "\001\001",
	    "a\001b",
	    MARK,
	    MARK "1",
	    MARK "255",
	    MARK "007x",
	    MARK "1234\002",
	    MARK "\002",
	    MARK "1\001",
	    MARK "-1\002",
	    "\001run-2:1\002",
	    "\001run-11:1\002",
	    "run-1:1\002",
	    "\001run-" MARK "x",
	    MARK "12" MARK "00",
	    "\002\002",
	};

	section("false mark");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		for (size_t piece = 1; piece < 30; piece += 14)
		{
			char both[100];
			Drive drive = marked(texts[i], texts[i], piece, true);

			gives(&drive, 0, texts[i], texts[i], "alone");
			drive_end(&drive);
			snprintf(both, sizeof(both), "%s" MARK "9\002", texts[i]);
			drive = marked(both, both, piece, false);
			gives(&drive, 9, texts[i], texts[i], "before a true one");
			drive_end(&drive);
		}
	}
}

static void
digits(void)
{
	static const struct
	{
		const char *text;
		int exit_code;
	} rows[] = {{"0", 0}, {"1", 1}, {"09", 9}, {"000", 0}, {"137", 137}, {"255", 255}};

	section("mark's digits");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char text[30];
		Drive drive;

		snprintf(text, sizeof(text), MARK "%s\002", rows[i].text);
		drive = marked(text, text, 1, false);
		gives(&drive, rows[i].exit_code, "", "", rows[i].text);
		drive_end(&drive);
	}
}

/* --- limits --------------------------------------------------------------- */

/* Wherever the pieces are cut. */
static void
cut_character(void)
{
	static char text[1500];

	section("stream, cut character");
	memset(text, 'x', 999);
	strcpy(text + 999, "\xc3\xa9yyy" MARK "4\002");
	for (size_t piece = 100; piece <= 1500; piece += 700)
	{
		Drive drive = marked(text, MARK "4\002", piece, false);

		is_number((int64_t) result_of(&drive)->stdout_length, 999,
		          "cut before a character that does not fit");
		ok(result_of(&drive)->truncated, "and says so");
		is_number(result_of(&drive)->exit_code, 4, "the mark behind it still counts");
		drive_end(&drive);
	}
}

static void
limits(void)
{
	static char text[1500];
	Drive drive;
	size_t used = 0;

	section("stream, limits");
	memset(text, 'x', 1000);
	drive = marked(text, "", 100, true);
	is_number((int64_t) result_of(&drive)->stdout_length, 1000, "what just fits");
	ok(drive.op->succeeded && !result_of(&drive)->truncated, "is not cut");
	drive_end(&drive);

	drive = running();
	for (int i = 0; i < 2000; i++)
	{
		Stream stream = {0};

		stream_data(&stream, i % 2 == 0 ? "stdout" : "stderr", text, 1000);
		drive_feed(&drive, stream.bytes, stream.length, 4000);
		stream_free(&stream);
		if (i == 10)
			used = drive.op->arena.used;
	}
	is_number((int64_t) drive.op->arena.used, (int64_t) used,
	          "output that is not kept takes no memory");
	drive_end(&drive);
}

/* A message is as long as the longest piece of output, and no longer. */
static void
long_message(void)
{
	static char text[40000];
	Drive drive = running();
	Stream stream = {0};
	const char head[5] = {0, 0x7f, 0, 0, 0};

	section("stream, long message");
	memset(text, 'x', 32768);
	stream_data(&stream, "stdout", text, 32768);
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 777);
	ok(drive.op->succeeded && result_of(&drive)->stdout_length == 1000,
	   "32 KiB at once");
	drive_end(&drive);
	drive = running();
	ok(!drive_feed(&drive, head, 5, 5), "2 GiB are not waited for");
	drive_answer(&drive, 200, "");
	is_killed(&drive, "2 GiB");
	drive_end(&drive);
}

void
test_e2b_process(void)
{
	ends();
	ends_without_end_of_stream();
	broken();
	not_started();
	nothing_said();
	too_late();
	characters();
	mark();
	false_marks();
	digits();
	limits();
	cut_character();
	long_message();
}
