/*
 * test_microsandbox_agent.c
 *		Scripts and files of a Microsandbox sandbox, over its agent's socket.
 */
#include <stdio.h>
#include <stdlib.h>

#include "providers/microsandbox_frame.h"
#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static Drive
running(void)
{
	SbxRunInput input = plain_run("echo it's");
	Drive drive;

	drive_start(&drive, micro_run(&input));
	return drive;
}

static int
messages(const Drive *drive)
{
	int count = 0;

	for (const SbxMessage *said = drive->op->request.said; said != NULL;
	     said = said->next)
		count++;
	return count;
}

static bool
said(const Drive *drive, const char *words)
{
	for (const SbxMessage *message = drive->op->request.said; message != NULL;
	     message = message->next)
	{
		if (memmem(message->bytes, message->length, words, strlen(words)) != NULL)
			return true;
	}
	return false;
}

static bool
said_hex(const Drive *drive, const char *digits)
{
	Stream stream = micro_hex(digits);
	bool found = false;

	for (const SbxMessage *message = drive->op->request.said; message != NULL;
	     message = message->next)
		found |= memmem(message->bytes, message->length, stream.bytes, stream.length) !=
		         NULL;
	stream_free(&stream);
	return found;
}

/* --- what is said --------------------------------------------------------- */

/* The provider's own client: the same keys in the same order, a text of ours. */
static void
request(void)
{
	Stream greeting = micro_hex(
	    "1000000020000000"
	    "000000670000000000a361760761746a636f72652e72656164796170584da46c626f6f745f7469"
	    "6d655f6e731a08f0d1806c696e69745f74696d655f6e731a00b71b006d72656164795f74696d65"
	    "5f6e731a0aba95006d6167656e745f76657273696f6e66302e362e3134");
	Drive drive = running();
	const SbxMessage *message;

	section("microsandbox, request");
	asks(&drive, "GET", MICRO_AGENT, "a socket to the agent");
	ok(drive.op->request.talk != NULL && !drive.op->request.repeatable, "once");
	is_text(sent_header(drive.op, "Authorization"), "Bearer msb_key", "with the key");
	is_number(drive.op->request.alarm_ms, 10000, "time for the first words");
	is_number(messages(&drive), 0, "the agent speaks first");
	ok(drive_feed(&drive, greeting.bytes, greeting.length, 11), "must not fire: ready");
	is_number(messages(&drive), 2, "the command and the end of its input");
	is_number(drive.op->request.alarm_ms, 5000, "from now on its own time counts");
	message = drive.op->request.said;
	ok(memcmp(message->bytes + 4,
	          "\x10\0\0\0\2\xa3\x61v\x07\x61t\x71"
	          "core.exec.request\x61p",
	          30) == 0,
	   "the first id that is ours, the start of a session");
	ok(said_hex(&drive, "a963636d64672f62696e2f7368646172677382622d63"),
	   "a shell and two arguments");
	ok(said_hex(&drive,
	            "63656e768063637764f66475736572f663747479f464726f7773181864636f6c"
	            "73185067726c696d69747380"),
	   "and the rest as recorded");
	ok(said(&drive, "echo it") && said(&drive, "run-1"), "its text");
	ok(said_hex(&drive, "636f72652e657865632e737464696e617047a1646461746140"),
	   "input that is empty");
	stream_free(&greeting);
	drive_end(&drive);
}

/* --- what is heard -------------------------------------------------------- */

static void
result(void)
{
	const SbxRunResult *got;

	section("microsandbox, result");
	for (size_t piece = 1; piece < 400; piece += 13)
	{
		Drive drive = running();
		Stream stream = micro_greeting();

		micro_frame(&stream, "core.exec.started", 0, NULL, NULL, 0);
		micro_frame(&stream, "core.exec.stdout", 0, "data", "out\n\001run-1:7\002", 13);
		micro_frame(&stream, "core.exec.stdin.error", 0, NULL, NULL, 0);
		micro_frame(&stream, "core.something.new", 0, NULL, NULL, 0);
		micro_frame(&stream, "core.exec.stderr", 0, "data", "err\n\001run-1:7\002", 13);
		drive_talk(&drive, &stream, piece);
		got = drive.op->result;
		ok(drive.op->succeeded && got->has_exit_code && got->exit_code == 7 &&
		       got->stdout_length == 4 && memcmp(got->stdout_text, "out\n", 4) == 0 &&
		       got->stderr_length == 4 && memcmp(got->stderr_text, "err\n", 4) == 0,
		   "its mark ends it, in pieces of %zu", piece);
		drive_end(&drive);
	}
	{
		Drive drive = running();

		drive_talk_printed(&drive, "no mark", 3);
		got = drive.op->result;
		ok(drive.op->succeeded && got->exit_code == 3 && got->stdout_length == 7,
		   "or the agent's word");
		drive_end(&drive);
	}
	{
		Drive drive = running();
		Stream stream = micro_greeting();

		micro_frame(&stream, "core.exec.stdout", 0, "data", "\001run-1:0\002", 9);
		micro_frame(&stream, "core.exec.stderr", 0, "data", "\001run-1:0\002", 9);
		drive_feed(&drive, stream.bytes, stream.length, 9);
		stream_free(&stream);
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		ok(drive.op->succeeded, "must not fire: what breaks after the mark is no loss");
		drive_end(&drive);
	}
}

/* Plays the second socket, which kills: it succeeds. */
static void
is_killed(Drive *drive, bool works)
{
	asks(drive, "GET", MICRO_AGENT, "a socket to kill it");
	drive_talk_printed(drive, "", works ? 0 : 1);
}

static void
before_it_runs(void)
{
	static const struct
	{
		int status;
		const char *code;
	} rows[] = {{401, "UNAUTHORIZED"},
	            {404, "SANDBOX_GONE"},
	            {409, "NOT_STARTED"},
	            {429, "RATE_LIMITED"},
	            {500, NULL}};
	Drive drive;

	section("microsandbox, before it runs");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = running();
		drive_answer(&drive, rows[i].status, "");
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN,
		      "must not fire: nothing to kill after %d", rows[i].status);
		drive_end(&drive);
	}
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, UNKNOWN, "nor when nobody was there");
	drive_end(&drive);
	drive = running();
	ok(!drive.op->request.talk(drive.op, NULL, 0), "an agent that says nothing");
	drive_answer(&drive, 101, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "is given up");
	ok(drive.op->failure.timed_out && !drive.op->failure.request_sent, "in time");
	drive_end(&drive);
	drive = running();
	{
		Stream stream = micro_hex("0000000100000005");

		micro_frame(&stream, "core.ready", 0, NULL, NULL, 0);
		drive_talk(&drive, &stream, 1000);
	}
	fails(&drive, SBX_PHASE_PROTOCOL, 0, NULL, UNKNOWN, "no greeting is none");
	drive_end(&drive);
	drive = running();
	{
		Stream stream = micro_greeting();

		micro_frame(&stream, "core.exec.failed", 1, NULL, NULL, 0);
		drive_talk(&drive, &stream, 1000);
	}
	fails(&drive, SBX_PHASE_PROTOCOL, 0, "NOT_RUN", UNKNOWN,
	      "what could not be started does not run");
	drive_end(&drive);
}

/* A frame with an empty payload and that id. */
static void
foreign_frame(Stream *stream, const char *id)
{
	size_t before = stream->length;
	Stream number = micro_hex(id);

	micro_frame(stream, "core.exec.stdout", 0, NULL, NULL, 0);
	memcpy(stream->bytes + before + 4, number.bytes, 4);
	stream_free(&number);
}

static void
while_it_runs(void)
{
	Drive drive = running();
	Stream stream = micro_greeting();

	section("microsandbox, while it runs");
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	ok(!drive.op->request.talk(drive.op, NULL, 0), "its time is over");
	drive_answer(&drive, 101, "");
	is_killed(&drive, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", UNKNOWN, "must fire: killed");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "its facts");
	drive_end(&drive);

	drive = running();
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	ok(!drive.op->request.talk(drive.op, NULL, 0), "its time is over");
	drive_answer(&drive, 101, "");
	drive_answer(&drive, 500, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", UNKNOWN,
	      "must fire: perhaps not killed");
	drive_end(&drive);

	drive = running();
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	is_killed(&drive, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: a lost connection");
	drive_end(&drive);

	drive = running();
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	drive_answer(&drive, 101, "");
	is_killed(&drive, false);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: an early goodbye");
	drive_end(&drive);
	stream_free(&stream);

	drive = running();
	stream = micro_greeting();
	micro_frame(&stream, "core.exec.stdout", 0, "other", "x", 1);
	drive_talk(&drive, &stream, 1000);
	is_killed(&drive, true);
	fails(&drive, SBX_PHASE_PROTOCOL, 0, NULL, UNKNOWN, "must fire: garbage");
	drive_end(&drive);

	drive = running();
	stream = micro_greeting();
	foreign_frame(&stream, "00000002");
	drive_talk(&drive, &stream, 1000);
	is_killed(&drive, true);
	fails(&drive, SBX_PHASE_PROTOCOL, 0, NULL, UNKNOWN,
	      "must fire: output of somebody else's command");
	drive_end(&drive);

	drive = running();
	stream = micro_greeting();
	foreign_frame(&stream, "00000000");
	micro_exited(&stream, 0);
	drive_talk(&drive, &stream, 1000);
	ok(drive.op->succeeded, "must not fire: what the agent says about itself");
	drive_end(&drive);
}

/* --- long texts ----------------------------------------------------------- */

static void
long_text(void)
{
	char *command = malloc(600001);
	SbxRunInput input;
	Drive drive;
	Stream stream = micro_greeting();

	section("microsandbox, long");
	memset(command, 'x', 600000);
	command[600000] = '\0';
	input = plain_run(command);
	drive_start(&drive, micro_run(&input));
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	stream_free(&stream);
	ok(said(&drive, "cat >\"$1\"") && said(&drive, "/tmp/.sbx-run-run-1.sh"),
	   "it goes through a file");
	ok(messages(&drive) > 3, "in pieces");
	drive_answer(&drive, 101, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: not stored");
	drive_end(&drive);

	drive_start(&drive, micro_run(&input));
	drive_talk_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "NOT_RUN", UNKNOWN, "must fire: nor so");
	drive_end(&drive);

	drive_start(&drive, micro_run(&input));
	drive_talk_printed(&drive, "", 0);
	asks(&drive, "GET", MICRO_AGENT, "then it runs");
	drive_talk_printed(&drive, "y", 0);
	ok(drive.op->succeeded, "must not fire: stored");
	drive_end(&drive);
	free(command);
}

/* --- files ---------------------------------------------------------------- */

static const struct
{
	int exit_code;
	const char *code;
} file_codes[] = {{64, "FILE_NOT_FOUND"},
                  {65, "INVALID_FILE_PATH"},
                  {66, "FILE_ACCESS_DENIED"},
                  {67, "UPLOAD_INCOMPLETE"},
                  {1, NULL}};

static Drive
downloading(size_t max_bytes)
{
	Drive drive;

	drive_start(&drive, sbx_kind_microsandbox.download(micro_account(), &micro_target,
	                                                   "a b/c", max_bytes));
	return drive;
}

/* What waits to be sent needs no more than the content twice. */
static void
large_file(const Stream *greeting)
{
	SbxUploadInput input = {.path = "x", .length = 20 << 20};
	Drive drive;

	input.bytes = calloc(1, input.length);
	drive_start(&drive,
	            sbx_kind_microsandbox.upload(micro_account(), &micro_target, &input));
	drive_feed(&drive, greeting->bytes, greeting->length, 1000);
	is_number(messages(&drive), 82, "eighty pieces of a large one");
	ok(drive.op->arena.used < input.length * 3 + (2 << 20),
	   "must not fire: little memory is lost (%zu)", drive.op->arena.used);
	drive_end(&drive);
	free((char *) input.bytes);
}

static void
files(void)
{
	SbxUploadInput input = {.path = "a b/c", .bytes = "con\0tent", .length = 8};
	Stream stream = micro_greeting();
	const SbxFileContent *content;
	Drive drive;

	section("microsandbox, files");
	drive_start(&drive,
	            sbx_kind_microsandbox.upload(micro_account(), &micro_target, &input));
	asks(&drive, "GET", MICRO_AGENT, "a command writes it");
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	ok(said(&drive, "a b/c"), "at that path");
	is_number(messages(&drive), 3, "command, content, end of the content");
	ok(memcmp(drive.op->request.said->next->bytes +
	              drive.op->request.said->next->length - 8,
	          "con\0tent", 8) == 0,
	   "byte for byte");
	drive_end(&drive);
	drive_start(&drive,
	            sbx_kind_microsandbox.upload(micro_account(), &micro_target, &input));
	drive_talk_printed(&drive, "", 0);
	ok(drive.op->succeeded, "must not fire: written");
	drive_end(&drive);
	large_file(&stream);
	for (size_t i = 0; i < sizeof(file_codes) / sizeof(file_codes[0]); i++)
	{
		drive = downloading(100);
		drive_talk_printed(&drive, "", file_codes[i].exit_code);
		fails(&drive, SBX_PHASE_REMOTE, 101, file_codes[i].code, UNKNOWN,
		      "must fire: exit code %d", file_codes[i].exit_code);
		drive_end(&drive);
	}

	drive = downloading(7);
	drive_talk_printed(&drive, "content", 0);
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 7 &&
	       memcmp(content->bytes, "content", 7) == 0,
	   "must not fire: all of it");
	drive_end(&drive);
	drive = downloading(7);
	drive_talk_printed(&drive, "", 0);
	ok(drive.op->succeeded && ((SbxFileContent *) drive.op->result)->length == 0,
	   "must not fire: nothing in it");
	drive_end(&drive);
	drive = downloading(6);
	drive_talk_printed(&drive, "content", 0);
	fails(&drive, SBX_PHASE_REMOTE, 101, "FILE_TOO_LARGE", UNKNOWN,
	      "must fire: a byte more");
	drive_end(&drive);
	drive = downloading(5);
	micro_frame(&stream, "core.exec.stdout", 0, "data", "content", 7);
	ok(!drive_feed(&drive, stream.bytes, stream.length, 1000),
	   "more is not waited for");
	drive_end(&drive);
	stream_free(&stream);
}

/* --- in the background ---------------------------------------------------- */

static void
background(void)
{
	static const SbxScriptTarget target = {
	    .session_id = "run-1", .command_id = "c1", .max_stream = 100};
	SbxRunInput input = plain_run("sleep 9");
	const SbxStartedScript *started;
	Drive drive;

	section("microsandbox, background");
	drive_start(&drive, sbx_kind_microsandbox.start_script(micro_account(),
	                                                       &micro_target, &input));
	drive_talk_printed(&drive, "new\n", 0);
	asks(&drive, "GET", MICRO_AGENT, "claimed, then started");
	drive_talk_printed(&drive, "", 0);
	started = drive.op->result;
	ok(drive.op->succeeded && !started->reconciled, "must not fire: started");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_microsandbox.start_script(micro_account(),
	                                                       &micro_target, &input));
	drive_talk_printed(&drive, "running\n", 0);
	started = drive.op->result;
	ok(drive.op->succeeded && started->reconciled, "it runs already");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.start_script(micro_account(),
	                                                       &micro_target, &input));
	drive_talk_printed(&drive, "another\n", 0);
	fails(&drive, SBX_PHASE_REMOTE, 101, "SESSION_IN_USE", UNKNOWN,
	      "must fire: not ours");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_microsandbox.start_script(micro_account(),
	                                                       &micro_target, &input));
	drive_talk_printed(&drive, "new\n", 0);
	{
		Stream stream = micro_greeting();

		drive_feed(&drive, stream.bytes, stream.length, 1000);
		stream_free(&stream);
	}
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	asks(&drive, "GET", MICRO_AGENT, "has it begun?");
	drive_talk_printed(&drive, "claimed\n", 0);
	pauses(&drive, 1000, "not yet");
	drive_pause_over(&drive);
	drive_talk_printed(&drive, "7\n", 0);
	ok(drive.op->succeeded, "must not fire: it has, and has ended");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_microsandbox.script_status(micro_account(),
	                                                        &micro_target, &target));
	drive_talk_printed(&drive, "7\n", 0);
	ok(drive.op->succeeded && ((SbxScriptStatus *) drive.op->result)->exit_code == 7,
	   "its exit code");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.script_status(micro_account(),
	                                                        &micro_target, &target));
	drive_talk_printed(&drive, "lost\n", 0);
	fails(&drive, SBX_PHASE_REMOTE, 101, "SCRIPT_LOST", UNKNOWN, "must fire: lost");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.script_logs(micro_account(),
	                                                      &micro_target, &target));
	drive_talk_printed(&drive, "out", 0);
	drive_talk_printed(&drive, "err", 0);
	ok(drive.op->succeeded && ((SbxRunResult *) drive.op->result)->output_length == 7,
	   "both streams");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.script_logs(micro_account(),
	                                                      &micro_target, &target));
	drive_talk_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_REMOTE, 101, "SCRIPT_UNKNOWN", UNKNOWN,
	      "must fire: unknown");
	drive_end(&drive);
}

void
test_microsandbox_agent(void)
{
	request();
	result();
	before_it_runs();
	while_it_runs();
	long_text();
	files();
	background();
}
