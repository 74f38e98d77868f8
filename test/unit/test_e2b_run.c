/*
 * test_e2b_run.c
 *		Running a script in an E2B sandbox, exchange by exchange.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

/* What the shell is given by the envelope that was sent; the caller frees it. */
static char *
sent_text(const Drive *drive)
{
	const SbxHttpRequest *request = &drive->op->request;
	json_t *body = sbx_json_parse(request->body + 5, request->body_length - 5, false);
	const json_t *process = json_object_get(body, "process");
	const json_t *args = json_object_get(process, "args");
	char *text = strdup(json_string_value(json_array_get(args, 2)));

	is_text(sbx_json_string(process, "cmd"), "/bin/bash", "a shell");
	is_text(json_string_value(json_array_get(args, 0)), "-l", "for a login");
	is_text(json_string_value(json_array_get(args, 1)), "-c", "of a text");
	ok(json_is_false(json_object_get(body, "stdin")), "with nothing to read");
	is_number((unsigned char) request->body[3] << 8 | (unsigned char) request->body[4] |
	              (unsigned char) request->body[2] << 16,
	          (int64_t) request->body_length - 5, "one envelope");
	json_decref(body);
	return text;
}

static Drive
running(void)
{
	SbxRunInput input = plain_run("echo it's");

	e2b_account();
	return e2b_running(&input);
}

static void
steps(void)
{
	SbxRunInput input = plain_run("echo it's");
	Stream stream = {0};
	const SbxRunResult *result;
	Drive drive;
	char *text;

	section("run");
	e2b_account();
	drive_start(&drive, sbx_kind_e2b.run_script(&account.account, &e2b_target, &input));
	asks(&drive, "GET", E2B_SANDBOX, "where is it?");
	drive_answer(&drive, 200, E2B_DTO("running"));
	asks(&drive, "POST", E2B_API "/v2/sandboxes/" E2B_ID "/connect",
	     "it has to outlive the script");
	is_text(drive.op->request.body, "{\"timeout\":300}", "by its lifetime");
	ok(drive.op->request.repeatable, "no harm twice");
	is_secret_kept(&drive, "timeout");
	drive_answer(&drive, 204, "");
	asks(&drive, "POST", E2B_START, "the script");
	ok(!drive.op->request.repeatable && drive.op->request.take_body != NULL, "once");
	is_secret_kept(&drive, "script");
	is_text(sent_header(drive.op, "Connect-Timeout-Ms"), "5000", "milliseconds here");
	is_text(sent_header(drive.op, "Content-Type"), "application/connect+json", "type");
	is_text(sent_header(drive.op, "Connect-Protocol-Version"), "1", "version");
	is_text(sent_header(drive.op, "Keepalive-Ping-Interval"), "50", "never zero");
	is_number(drive.op->request.timeout_ms, 15000, "time for the answer");
	text = sent_text(&drive);
	ok(strstr(text, "echo it") != NULL && strstr(text, "run-1") != NULL, "its text");
	free(text);
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "it's\n\001run-1:0\002", 15);
	stream_data(&stream, "stderr", "\001run-1:0\002", 10);
	drive_stream(&drive, &stream, 9);
	ok(drive.op->succeeded, "done");
	result = drive.op->result;
	ok(result->stdout_length == 5 && memcmp(result->stdout_text, "it's\n", 5) == 0 &&
	       result->has_exit_code && result->exit_code == 0 && !result->truncated,
	   "its result");
	drive_end(&drive);
}

static void
times(void)
{
	static const struct
	{
		int64_t timeout_ms;
		const char *body;
		const char *header;
	} rows[] = {{1, "{\"timeout\":300}", "1"},
	            {240000, "{\"timeout\":300}", "240000"},
	            {240001, "{\"timeout\":301}", "240001"},
	            {3600000, "{\"timeout\":3660}", "3600000"},
	            {0, "{\"timeout\":1860}", "1800000"},
	            {INT64_C(9999999999), "{\"timeout\":10000060}", "9999999999"},
	            {INT64_C(10000000000), "{\"timeout\":10000060}", "9999999999"},
	            {INT64_MAX, "{\"timeout\":9223372036854776}", "9999999999"}};

	section("run, times");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		SbxRunInput input = plain_run("x");
		Drive drive;

		input.timeout_ms = rows[i].timeout_ms;
		drive = e2b_opened(sbx_kind_e2b.run_script(e2b_account(), &e2b_target, &input));
		if (i < 7)
			is_text(drive.op->request.body, rows[i].body, "lifetime of the sandbox");
		ok(drive.op->timeout_ms > 0, "no overflow");
		drive_answer(&drive, 204, "");
		is_text(sent_header(drive.op, "Connect-Timeout-Ms"), rows[i].header,
		        "lifetime of the script, at most ten digits");
		drive_end(&drive);
	}
}

static void
before(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} looks[] = {{404, "", SBX_PHASE_REMOTE, "SANDBOX_GONE"},
	             {401, "", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	             {500, "", SBX_PHASE_REMOTE, NULL},
	             {200, "[]", SBX_PHASE_PROTOCOL, NULL},
	             {200, E2B_DTO("paused"), SBX_PHASE_REMOTE, "NOT_STARTED"},
	             {200, E2B_DTO("x"), SBX_PHASE_REMOTE, "NOT_STARTED"}};
	static const struct
	{
		int status;
		const char *code;
	} timeouts[] = {{404, "SANDBOX_GONE"}, {409, NULL}, {429, "RATE_LIMITED"},
	                {400, NULL},           {500, NULL}, {403, "FORBIDDEN"}};
	SbxRunInput input = plain_run("x");
	Drive drive;

	section("run, before it");
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
	{
		drive_start(&drive,
		            sbx_kind_e2b.run_script(e2b_account(), &e2b_target, &input));
		drive_answer_always(&drive, looks[i].status, looks[i].body);
		fails(&drive, looks[i].phase, looks[i].status, looks[i].code, UNKNOWN,
		      "look: %d %s", looks[i].status, looks[i].body);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++)
	{
		drive = e2b_opened(sbx_kind_e2b.run_script(e2b_account(), &e2b_target, &input));
		drive_answer(&drive, timeouts[i].status, "");
		fails(&drive, SBX_PHASE_REMOTE, timeouts[i].status, timeouts[i].code, UNKNOWN,
		      "lifetime: %d", timeouts[i].status);
		drive_end(&drive);
	}
}

/* Only a refusal proves that nothing runs. */
static void
refused(void)
{
	static const struct
	{
		int status;
		const char *code;
		bool may_run;
	} rows[] = {{400, NULL, false}, {401, NULL, false}, {403, NULL, false},
	            {404, NULL, false}, {409, NULL, false}, {415, NULL, false},
	            {429, NULL, false}, {408, NULL, true},  {500, NULL, true},
	            {503, NULL, true},  {504, NULL, true}};
	Drive drive;

	section("run, refused");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = running();
		drive_answer(&drive, rows[i].status, "");
		if (rows[i].may_run)
		{
			asks(&drive, "POST", E2B_START, "%d: it is killed", rows[i].status);
			drive_printed(&drive, "", 0);
		}
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN, "%d",
		      rows[i].status);
		drive_end(&drive);
	}
	drive = running();
	drive_answer(&drive, 502, "");
	asks(&drive, "POST", E2B_START, "502: it is killed");
	drive_answer(&drive, 502, "");
	asks(&drive, "GET", E2B_SANDBOX, "502: the control plane is asked");
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 502, "SANDBOX_GONE", UNKNOWN, "502: gone");
	drive_end(&drive);
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, UNKNOWN, "it never left");
	drive_end(&drive);
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	asks(&drive, "POST", E2B_START, "a reset: it is killed");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "a reset");
	ok(drive.op->failure.request_sent, "was sent");
	drive_end(&drive);
}

static void
timeout(void)
{
	Drive drive = running();
	char *text;

	section("run, timeout");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	asks(&drive, "POST", E2B_START, "its group is killed");
	text = sent_text(&drive);
	ok(strstr(text, "kill -9 \"-$sbx_pid\"") != NULL, "by number");
	free(text);
	is_text(sent_header(drive.op, "Connect-Timeout-Ms"), "5000", "in its own time");
	drive_printed(&drive, "", 0);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", UNKNOWN, "killed");
	ok(drive.op->failure.timed_out, "a timeout");
	drive_end(&drive);

	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", UNKNOWN, "nothing left to kill");
	drive_end(&drive);
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_answer(&drive, 429, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", UNKNOWN, "not confirmed");
	drive_end(&drive);
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", UNKNOWN,
	      "no time for it");
	drive_end(&drive);
	drive = running();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out &&
	       drive.op->failure.request_sent,
	   "no time at all");
	drive_end(&drive);
}

/* The kernel refuses a long argument. */
static void
through_a_file(void)
{
	size_t length = 125 * 1024;
	char *command = malloc(length + 1);
	SbxRunInput input;
	Drive drive;
	char *text;

	section("run, long script");
	memset(command, '#', length);
	command[length] = '\0';
	input = plain_run(command);
	e2b_account();
	drive = e2b_running(&input);
	asks(&drive, "POST", E2B_ENVD "/files?path=%2Ftmp%2F.sbx-run-run-1.sh",
	     "is a file first");
	is_secret_kept(&drive, "file");
	is_text(sent_header(drive.op, "Content-Type"), "application/octet-stream", "raw");
	ok(strncmp(drive.op->request.body, "rm -f /tmp/.sbx-run-run-1.sh; ", 22) == 0 &&
	       strlen(drive.op->request.body) == drive.op->request.body_length &&
	       strstr(drive.op->request.body, command) != NULL,
	   "that removes itself");
	drive_answer(&drive, 200, "[]");
	asks(&drive, "POST", E2B_START, "then it is run");
	text = sent_text(&drive);
	is_text(text, ". /tmp/.sbx-run-run-1.sh", "by its name");
	free(text);
	drive_printed(&drive, "", 3);
	ok(drive.op->succeeded && ((const SbxRunResult *) drive.op->result)->exit_code == 3,
	   "its result");
	drive_end(&drive);
	drive = e2b_running(&input);
	drive_answer(&drive, 507, "");
	fails(&drive, SBX_PHASE_REMOTE, 507, NULL, UNKNOWN, "no room for it");
	drive_end(&drive);
	free(command);
}

static void
impossible(void)
{
	static const SbxPair bad_value[] = {{"A", "\xff"}};
	static const SbxPair bad_name[] = {{"A;B", "x"}};
	SbxRunInput inputs[6];

	section("impossible run");
	for (size_t i = 0; i < 6; i++)
		inputs[i] = plain_run("x");
	inputs[0].run_id = "a/b";
	inputs[1].cwd = "relative";
	inputs[2].env = bad_name;
	inputs[2].env_count = 1;
	inputs[3].session = "a/b";
	inputs[4] = plain_run("\xff");
	inputs[5].env = bad_value;
	inputs[5].env_count = 1;
	for (size_t i = 0; i < 6; i++)
	{
		Drive drive;

		drive_start(&drive,
		            sbx_kind_e2b.run_script(e2b_account(), &e2b_target, &inputs[i]));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
		      "run %zu: nothing is sent", i);
		drive_end(&drive);
		drive_start(&drive,
		            sbx_kind_e2b.start_script(e2b_account(), &e2b_target, &inputs[i]));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
		      "start %zu: nothing is sent", i);
		drive_end(&drive);
	}
}

void
test_e2b_run(void)
{
	steps();
	times();
	before();
	refused();
	timeout();
	through_a_file();
	impossible();
}
