/*
 * test_e2b_background.c
 *		Scripts in an E2B sandbox that nobody waits for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static const SbxScriptTarget script = {
    .session_id = "run-1", .command_id = "c", .max_stream = 5};

/* A start whose claim is asked for. */
static Drive
claiming_for(const char *command)
{
	SbxRunInput input = plain_run(command);
	Drive drive =
	    e2b_opened(sbx_kind_e2b.start_script(e2b_account(), &e2b_target, &input));

	drive_answer(&drive, 204, "");
	return drive;
}

static Drive
claiming(void)
{
	return claiming_for("sleep 1");
}

/* The same, after an answer. */
static Drive
claimed(const char *status)
{
	Drive drive = claiming();

	drive_printed(&drive, status, 0);
	return drive;
}

static void
is_started(const Drive *drive, bool reconciled, const char *name)
{
	const SbxStartedScript *started = drive->op->result;

	if (!ok(drive->op->succeeded, "%s: started", name))
		return;
	is_text(started->session_id, "run-1", "%s: session", name);
	is_number((int64_t) strlen(started->command_id), 16, "%s: command", name);
	ok(started->reconciled == reconciled, "%s: %s", name,
	   reconciled ? "was there" : "is new");
}

/* Only the start of the stream is of interest. */
static void
spawned(Drive *drive)
{
	Stream stream = {0};

	stream_add(&stream, 0, STREAM_START);
	ok(!drive_feed(drive, stream.bytes, stream.length, 5), "the start is enough");
	stream_free(&stream);
	drive_answer(drive, 200, "");
}

static void
start(void)
{
	SbxRunInput input = plain_run("sleep 1");
	Drive drive;

	section("start script");
	drive_start(&drive, sbx_kind_e2b.start_script(e2b_account(), &e2b_target, &input));
	asks(&drive, "GET", E2B_SANDBOX, "where is it?");
	drive_answer(&drive, 200, E2B_DTO("running"));
	asks(&drive, "POST", E2B_API "/v2/sandboxes/" E2B_ID "/connect",
	     "it gets a lifetime");
	is_text(drive.op->request.body, "{\"timeout\":1800}", "of half an hour");
	drive_answer(&drive, 200, "{}");
	asks(&drive, "POST", E2B_START, "the session is claimed");
	ok(strstr(drive.op->request.body + 5, "/tmp/.sbx-run-run-1.claim") != NULL,
	   "by a link");
	drive_printed(&drive, "new\n", 0);
	asks(&drive, "POST", E2B_START, "the script");
	is_secret_kept(&drive, "script");
	ok(sent_header(drive.op, "Connect-Timeout-Ms") == NULL, "which nobody ends");
	ok(strstr(drive.op->request.body + 5, "sleep 1") != NULL, "is its text");
	spawned(&drive);
	is_started(&drive, false, "new");
	drive_end(&drive);
}

static void
claims(void)
{
	static const char *const garbage[] = {"newer\n", "", "\n", "256\n", "claimed\nx"};
	Drive drive;

	section("claim");
	drive = claimed("claimed\n");
	asks(&drive, "POST", E2B_START, "ours without a trace: it is started");
	spawned(&drive);
	is_started(&drive, true, "claimed");
	drive_end(&drive);
	drive = claimed("running\n");
	is_started(&drive, true, "running");
	drive_end(&drive);
	drive = claimed("3\n");
	is_started(&drive, true, "over");
	drive_end(&drive);
	drive = claimed("lost\n");
	is_started(&drive, true, "lost");
	drive_end(&drive);
	drive = claimed("another\n");
	fails(&drive, SBX_PHASE_REMOTE, 200, "SESSION_IN_USE", UNKNOWN, "another's");
	drive_end(&drive);
	drive = claimed("nothing\n");
	fails(&drive, SBX_PHASE_REMOTE, 200, "TMP_NOT_WRITABLE", UNKNOWN,
	      "no place for a claim");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
	{
		drive = claimed(garbage[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "no word: %zu", i);
		drive_end(&drive);
	}
	drive = claiming();
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "refused");
	drive_end(&drive);
	drive = claiming();
	drive_answer(&drive, 502, "");
	asks(&drive, "GET", E2B_SANDBOX, "502: the control plane is asked");
	drive_answer(&drive, 200, E2B_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 502, "NOT_STARTED", UNKNOWN, "paused");
	drive_end(&drive);
}

static void
looks_twice_more(Drive *drive, const char *printed)
{
	for (int i = 0; i < 2; i++)
	{
		pauses(drive, 1000, "not there yet, or not seen");
		drive_pause_over(drive);
		drive_printed(drive, printed, 0);
	}
}

/* An answer is lost: what is in the sandbox tells. */
static void
reconciled(void)
{
	static const struct
	{
		const char *printed;
		bool there;
	} rows[] = {{"running\n", true},  {"0\n", true},        {"255\n", true},
	            {"claimed\n", false}, {"nothing\n", false}, {"lost\n", true},
	            {"another\n", false}, {"256\n", false},     {"garbage", false}};
	Stream stream = {0};
	Drive drive;

	section("reconcile");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = claiming();
		drive_printed(&drive, "new\n", 0);
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		asks(&drive, "POST", E2B_START, "it is looked for");
		drive_printed(&drive, rows[i].printed, 0);
		if (rows[i].there)
			is_started(&drive, true, "there");
		else
		{
			looks_twice_more(&drive, rows[i].printed);
			fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "status %zu", i);
		}
		drive_end(&drive);
	}
	drive = claiming();
	drive_printed(&drive, "new\n", 0);
	drive_answer(&drive, 429, "");
	asks(&drive, "POST", E2B_START, "429: it is looked for");
	drive_answer(&drive, 429, "");
	looks_twice_more(&drive, "claimed\n");
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", UNKNOWN, "429");
	drive_end(&drive);
	drive = claiming();
	drive_printed(&drive, "new\n", 0);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	drive_printed(&drive, "claimed\n", 0);
	drive_pause_over(&drive);
	drive_printed(&drive, "running\n", 0);
	is_started(&drive, true, "there at the second look");
	drive_end(&drive);
	drive = claiming();
	drive_printed(&drive, "new\n", 0);
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "a refusal");
	drive_end(&drive);
	drive = claiming();
	drive_printed(&drive, "new\n", 0);
	stream_add(&stream, 2, "{\"error\":{\"code\":\"invalid_argument\"}}");
	drive_stream(&drive, &stream, 100);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "an error frame");
	drive_end(&drive);
	drive = claiming();
	drive_printed(&drive, "new\n", 0);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, UNKNOWN, "it never left");
	drive_end(&drive);
}

/* The kernel refuses a long argument, whoever waits for it. */
static void
long_script(void)
{
	size_t length = 125 * 1024;
	char *command = malloc(length + 1);
	Drive drive;

	section("start script, long");
	memset(command, '#', length);
	command[length] = '\0';
	drive = claiming_for(command);
	drive_printed(&drive, "new\n", 0);
	asks(&drive, "POST", E2B_ENVD "/files?path=%2Ftmp%2F.sbx-run-run-1.sh",
	     "a file first");
	ok(drive.op->request.body_length > length, "with the text");
	drive_answer(&drive, 200, "[]");
	asks(&drive, "POST", E2B_START, "then it is started");
	ok(drive.op->request.body_length < 200, "by its name");
	spawned(&drive);
	is_started(&drive, false, "long");
	drive_end(&drive);
	drive = claiming_for(command);
	drive_printed(&drive, "new\n", 0);
	drive_answer(&drive, 507, "");
	fails(&drive, SBX_PHASE_REMOTE, 507, NULL, UNKNOWN, "no room for it");
	drive_end(&drive);
	free(command);
}

static Drive
asking(void)
{
	return e2b_opened(sbx_kind_e2b.script_status(e2b_account(), &e2b_target, &script));
}

static void
status(void)
{
	static const struct
	{
		const char *printed;
		bool has_ended;
		int exit_code;
	} words[] = {{"0\n", true, 0},
	             {"17\n", true, 17},
	             {"255\n", true, 255},
	             {"running\n", false, -1},
	             {"claimed\n", false, -1}};
	static const struct
	{
		const char *printed;
		SbxPhase phase;
		const char *code;
	} failures[] = {{"lost\n", SBX_PHASE_REMOTE, "SCRIPT_LOST"},
	                {"nothing\n", SBX_PHASE_REMOTE, "SCRIPT_UNKNOWN"},
	                {"256\n", SBX_PHASE_PROTOCOL, NULL},
	                {"-1\n", SBX_PHASE_PROTOCOL, NULL},
	                {"running away\n", SBX_PHASE_PROTOCOL, NULL},
	                {"0\nmotd\n", SBX_PHASE_PROTOCOL, NULL},
	                {"", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	section("status");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		const SbxScriptStatus *answer;

		drive = asking();
		asks(&drive, "POST", E2B_START, "a text is run");
		drive_printed(&drive, words[i].printed, 0);
		answer = drive.op->result;
		ok(drive.op->succeeded && answer->has_ended == words[i].has_ended &&
		       (!answer->has_ended || answer->exit_code == words[i].exit_code),
		   "word %zu", i);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
	{
		drive = asking();
		drive_printed(&drive, failures[i].printed, 0);
		fails(&drive, failures[i].phase, 200, failures[i].code, UNKNOWN,
		      "no status %zu", i);
		drive_end(&drive);
	}
	drive = asking();
	drive_answer(&drive, 429, "");
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", UNKNOWN, "429");
	drive_end(&drive);
	drive = asking();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "no answer");
	drive_end(&drive);
}

static Drive
reading(void)
{
	return e2b_opened(sbx_kind_e2b.script_logs(e2b_account(), &e2b_target, &script));
}

static void
logs(void)
{
	const SbxRunResult *result;
	Drive drive = reading();

	section("logs");
	ok(strstr(drive.op->request.body + 5, "head -c 6 /tmp/.sbx-run-run-1.out") != NULL,
	   "one byte more than is kept");
	drive_printed(&drive, "12345", 0);
	ok(strstr(drive.op->request.body + 5, "head -c 6 /tmp/.sbx-run-run-1.err") != NULL,
	   "then errors");
	drive_printed(&drive, "", 0);
	result = drive.op->result;
	ok(drive.op->succeeded && result->stdout_length == 5 && !result->truncated &&
	       result->stderr_length == 0 && !result->has_exit_code,
	   "what just fits");
	drive_end(&drive);
	drive = reading();
	drive_printed(&drive, "123456", 0);
	drive_printed(&drive, "e", 0);
	result = drive.op->result;
	ok(drive.op->succeeded && result->stdout_length == 5 && result->truncated, "cut");
	ok(result->output_length == 7 && memcmp(result->output, "12345\ne", 7) == 0,
	   "both");
	drive_end(&drive);
	drive = reading();
	drive_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_REMOTE, 200, "SCRIPT_UNKNOWN", UNKNOWN, "no such script");
	drive_end(&drive);
	drive = reading();
	drive_printed(&drive, "1", 0);
	drive_answer(&drive, 502, "");
	asks(&drive, "GET", E2B_SANDBOX, "gone in between?");
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 502, "SANDBOX_GONE", UNKNOWN, "gone");
	drive_end(&drive);
}

void
test_e2b_background(void)
{
	start();
	claims();
	reconciled();
	long_script();
	status();
	logs();
}
