/*
 * test_e2b_process.c
 *		A command's stream: what it writes, its end, and its mark.
 */
#include <stdio.h>

#include "unit.h"

#define MARK(code) "\001run-1:" code "\002"

static SbxRunInput
input_of(size_t max_stream)
{
	SbxRunInput input = {.run_id = "run-1",
	                     .command = "true",
	                     .command_length = 4,
	                     .timeout_ms = 5000,
	                     .max_stream = max_stream};

	return input;
}

static Drive
running(size_t max_stream)
{
	SbxRunInput input = input_of(max_stream);

	e2b_account();
	return e2b_running(&input);
}

/* What came of a command that wrote this; -1 = no exit code. */
static void
gives(const char *out, const char *err, size_t max_stream, size_t piece,
      const char *kept, int exit_code, bool truncated, const char *what)
{
	Drive drive = running(max_stream);
	Stream stream = {0};
	const SbxRunResult *result;

	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 0, STREAM_ALIVE);
	if (*out != '\0')
		stream_data(&stream, "stdout", out, strlen(out));
	if (*err != '\0')
		stream_data(&stream, "stderr", err, strlen(err));
	stream_add(&stream, 0, STREAM_END);
	stream_add(&stream, 2, "{}");
	drive_stream(&drive, &stream, piece);
	result = drive.op->result;
	if (ok(drive.op->succeeded, "%s: a result", what))
	{
		is_text(result->stdout_text == NULL ? "" : result->stdout_text, kept,
		        "%s: output", what);
		is_number(result->exit_code, exit_code, "%s: exit code", what);
		ok(result->truncated == truncated, "%s: cut or not", what);
	}
	drive_end(&drive);
}

static void
streams(void)
{
	Drive drive = running(1000);

	section("E2B, process");
	asks(&drive, "POST", E2B_START, "a stream is asked for");
	is_secret_kept(&drive, "start");
	is_text(sent_header(drive.op, "Connect-Timeout-Ms"), "5000",
	        "the lifetime of the command");
	ok(!drive.op->request.repeatable, "delivered at most once");
	drive_end(&drive);
	for (size_t piece = 1; piece < 40; piece += 6)
		gives("text" MARK("3"), MARK("3"), 1000, piece, "text", 3, false,
		      "in small pieces");
	gives("text", "", 1000, 1000, "text", 0, false,
	      "no mark: an exit code left out is 0");
	gives("a\001b\001run-1" MARK("255"), MARK("255"), 1000, 1, "a\001b\001run-1", 255,
	      false, "what only starts like a mark");
	gives("\001run-1:x\001run-1:12345\002" MARK("0"), MARK("0"), 1000, 3,
	      "\001run-1:x\001run-1:12345\002", 0, false, "no code, and no such code");
	gives("\001run-2:1\002" MARK("4"), MARK("4"), 1000, 5, "\001run-2:1\002", 4, false,
	      "another run's mark");
	gives("\001run-1:00", "", 1000, 7, "\001run-1:00", 0, false,
	      "a mark that never ends");
	gives("0123456789" MARK("7"), MARK("7"), 10, 4, "0123456789", 7, false,
	      "just fits");
	gives("0123456789a" MARK("7"), MARK("7"), 10, 4, "0123456789", 7, true,
	      "one too many");
	gives("012345678\303\244" MARK("7"), MARK("7"), 10, 1, "012345678", 7, true,
	      "cut between characters");
}

/* Whoever holds the output open: with both marks it is over. */
static void
marks(void)
{
	Drive drive = running(1000);
	Stream stream = {0};

	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "x" MARK("5"), 1 + sizeof(MARK("5")) - 1);
	ok(drive_feed(&drive, stream.bytes, stream.length, 1000), "one mark is not enough");
	stream_free(&stream);
	stream_data(&stream, "stderr", MARK("5"), sizeof(MARK("5")) - 1);
	ok(!drive_feed(&drive, stream.bytes, stream.length, 1000), "two are");
	stream_free(&stream);
	drive_answer(&drive, 200, "");
	ok(drive.op->succeeded && ((SbxRunResult *) drive.op->result)->exit_code == 5,
	   "and have the exit code");
	drive_end(&drive);
}

/* A stream that tells nothing certain: the script's group is killed, then it fails. */
static void
kills(const char *const *messages, const int *flags, int status, const char *code,
      const char *what)
{
	Drive drive = running(1000);
	Stream stream = {0};

	for (int i = 0; messages[i] != NULL; i++)
		stream_add(&stream, flags[i], messages[i]);
	if (stream.length > 0)
		drive_feed(&drive, stream.bytes, stream.length, 1000);
	stream_free(&stream);
	drive_answer(&drive, status, "");
	asks(&drive, "POST", E2B_START, "%s: the group is killed", what);
	drive_printed(&drive, "", 0);
	ok(!drive.op->succeeded, "%s: no result", what);
	is_text(drive.op->failure.provider_code, code, "%s: code", what);
	drive_end(&drive);
}

static void
endings(void)
{
	static const int flags[] = {0, 0, 0, 0};
	static const int last[] = {0, 2};
	Drive drive;
	Stream stream = {0};

	kills((const char *const[]){STREAM_START, STREAM_KILLED, NULL}, flags, 200,
	      "TIMEOUT", "killed at its time");
	kills((const char *const[]){STREAM_START,
	                            "{\"error\":{\"code\":\"deadline_exceeded\"}}", NULL},
	      last, 200, "TIMEOUT", "its time is over");
	kills((const char *const[]){STREAM_START, NULL}, flags, 200, NULL,
	      "the stream breaks off");
	kills((const char *const[]){STREAM_START, "{\"event\":[", NULL}, flags, 200, NULL,
	      "garbage");
	kills((const char *const[]){STREAM_START,
	                            "{\"event\":{\"data\":{\"stdout\":\"A\"}}}", NULL},
	      flags, 200, NULL, "no base64");
	kills((const char *const[]){STREAM_START,
	                            "{\"event\":{\"end\":{\"exitCode\":\"0\"}}}", NULL},
	      flags, 200, NULL, "an exit code that is none");
	kills((const char *const[]){NULL}, flags, 500, NULL, "500: it may run");

	/* Refused before it started: there is nothing to kill. */
	drive = running(1000);
	stream_add(&stream, 2, "{\"error\":{\"code\":\"invalid_argument\"}}");
	drive_stream(&drive, &stream, 1000);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NOT_RUN", SBX_ALLOCATION_UNKNOWN,
	      "told why not");
	drive_end(&drive);

	/* Gone or paused: the control plane knows which. */
	drive = running(1000);
	drive_answer(&drive, 502, "");
	asks(&drive, "POST", E2B_START, "502: killed, in case");
	drive_answer(&drive, 502, "");
	asks(&drive, "GET", E2B_SANDBOX, "502: the control plane is asked");
	is_secret_kept(&drive, "look");
	drive_answer(&drive, 404, "");
	is_text(drive.op->failure.provider_code, "SANDBOX_GONE", "502: gone");
	drive_end(&drive);
}

void
test_e2b_process(void)
{
	streams();
	marks();
	endings();
}
