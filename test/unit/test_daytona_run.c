/*
 * test_daytona_run.c
 *		Running a script: the exchanges, the kill, the streams.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static Account account;

static SbxRunInput
plain_run(const char *command)
{
	SbxRunInput input = {.run_id = "run-1",
	                     .command = command,
	                     .command_length = strlen(command),
	                     .timeout_ms = 5000,
	                     .max_stream = 1000};

	return input;
}

static SbxOp *
make_run(const SbxRunInput *input)
{
	SbxTarget target = {.sandbox_id = ID};

	return sbx_kind_daytona.run_script(account_reset(&account), &target, input);
}

/* A run whose session is being made. */
static Drive
opening(size_t max_stream)
{
	SbxRunInput input = plain_run("echo out; echo err >&2");
	Drive drive;

	input.max_stream = max_stream;
	drive_start(&drive, make_run(&input));
	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

/* One whose command is out. */
static Drive
running_with(size_t max_stream)
{
	Drive drive = opening(max_stream);

	drive_answer(&drive, 201, "");
	return drive;
}

static Drive
running(void)
{
	return running_with(1000);
}

/* --- requests ----------------------------------------------------------- */

static void
check_recorded(const Drive *drive, const char *name)
{
	const json_t *recorded = golden(name);
	const json_t *headers = json_object_get(recorded, "headers");
	char url[1000];

	snprintf(url, sizeof(url), "https://toolbox.recorder.invalid%s",
	         sbx_json_string(recorded, "path"));
	asks(drive, sbx_json_string(recorded, "method"), url, "%s: recorded request", name);
	is_text(sent_header(drive->op, "Authorization"),
	        sbx_json_string(headers, "authorization"), "%s: recorded key", name);
	is_text(sent_header(drive->op, "Content-Type"),
	        sbx_json_string(headers, "content-type"), "%s: recorded content type",
	        name);
	is_text(sent_header(drive->op, "X-Daytona-SDK-Version"),
	        sbx_json_string(headers, "x-daytona-sdk-version"),
	        "%s: recorded version, which decides the shape of the output", name);
}

static void
recorded_requests(void)
{
	char *body =
	    json_dumps(json_object_get(golden("session_create"), "body"), JSON_COMPACT);
	char *answer = json_dumps(json_object_get(golden("session_exec"), "answer"), 0);
	Drive drive = opening(1000);
	const SbxRunResult *result;
	json_t *sent;

	section("run");
	check_recorded(&drive, "session_create");
	is_text(drive.op->request.body, body, "session_create: recorded body");
	ok(drive.op->request.repeatable, "the session's name is ours: may be repeated");
	drive_answer(&drive, 201, "");
	check_recorded(&drive, "session_exec");
	sent = sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	ok(json_object_size(sent) == 2 &&
	       json_is_false(json_object_get(sent, "runAsync")) &&
	       sbx_json_string(sent, "command") != NULL,
	   "session_exec: recorded members");
	json_decref(sent);
	ok(!drive.op->request.repeatable, "the command is delivered at most once");
	ok(drive.op->request.chunked, "chunked, so that the proxy cannot replay it");
	is_number(drive.op->request.timeout_ms, 5000, "the command's lifetime");
	is_number(drive.op->timeout_ms, 65000, "the operation has time left to kill it");
	is_number((int64_t) drive.op->request.max_response, 8000 + 1024 * 1024,
	          "room for both streams and the log, escaped");
	drive_answer(&drive, 200, answer);
	check_recorded(&drive, "session_delete");
	is_number(drive.op->request.timeout_ms, 10000, "tidying is bounded");
	drive_answer(&drive, 204, "");
	ok(drive.op->succeeded, "done");
	result = drive.op->result;
	is_text(result->stdout_text, "out\n", "stdout");
	is_text(result->stderr_text, "err\n", "stderr");
	is_text(result->output, "out\nerr\n", "output without framing");
	ok(result->has_exit_code && result->exit_code == 0 && !result->truncated,
	   "exit code");
	drive_end(&drive);
	free(body);
	free(answer);
}

static void
refused_run(const SbxRunInput *input, const char *what)
{
	Drive drive;

	drive_start(&drive, make_run(input));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "%s", what);
	drive_end(&drive);
}

static void
impossible_runs(void)
{
	static const SbxPair bad_names[] = {
	    {"A;rm -rf /", "1"}, {"1A", "1"}, {"", "1"}, {"A=B", "1"}, {"A\nB", "1"}};
	static const SbxPair bad_value[] = {{"A", "\xff"}};
	SbxRunInput input;

	section("impossible run");
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++)
	{
		input = plain_run("x");
		input.env = &bad_names[i];
		input.env_count = 1;
		refused_run(&input, "a variable's name is not quoted, so it is checked");
	}
	input = plain_run("x");
	input.env = bad_value;
	input.env_count = 1;
	refused_run(&input, "a value that is not UTF-8");
	input = plain_run("x\0y");
	input.command_length = 3;
	refused_run(&input, "a byte 0, which no shell takes");
	input = plain_run("\xff");
	refused_run(&input, "a command that is not UTF-8");
	input = plain_run("x");
	input.cwd = "-";
	refused_run(&input, "a directory that is not absolute");
	input = plain_run("x");
	input.run_id = "a/b";
	refused_run(&input, "a run id that is a path");

	input = plain_run("x");
	input.timeout_ms = INT64_MAX;
	input.max_stream = SIZE_MAX;
	{
		Drive drive;

		drive_start(&drive, make_run(&input));
		ok(drive.op->timeout_ms == INT64_MAX, "an endless time does not overflow");
		drive_answer(&drive, 200, DTO("started"));
		drive_answer(&drive, 201, "");
		ok(drive.op->request.max_response == SIZE_MAX, "nor do endless streams");
		drive_end(&drive);
	}
}

/* --- before the command ------------------------------------------------- */

static void
found(int status, const char *body, SbxPhase phase, const char *code, const char *what)
{
	SbxRunInput input = plain_run("x");
	Drive drive;

	drive_start(&drive, make_run(&input));
	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s", what);
	drive_end(&drive);
}

static void
before_the_session(void)
{
	SbxRunInput input = plain_run("x");
	SbxTarget target = {.unique_name = NAME};
	Drive drive;

	section("run: look");
	found(404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE", "404");
	found(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroying");
	found(200, DTO("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED", "stopped");
	found(200, DTO("creating"), SBX_PHASE_REMOTE, "NOT_STARTED", "creating");
	found(200, DTO("error"), SBX_PHASE_REMOTE, "NOT_STARTED", "error");
	found(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", "401 of the control plane");
	found(500, "", SBX_PHASE_REMOTE, NULL, "500");
	found(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	found(200,
	      "{\"id\":\"" ID "\",\"state\":\"started\","
	      "\"toolboxProxyUrl\":\"https://evil.example/\"}",
	      SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED", "toolbox elsewhere");

	drive_start(&drive, make_run(&input));
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN, "no connection");
	ok(!drive.op->failure.request_sent, "the command was not sent");
	drive_end(&drive);

	drive_start(&drive, make_run(&input));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", SBX_ALLOCATION_UNKNOWN,
	      "time over before the command");
	drive_end(&drive);

	drive_start(&drive, make_run(&input));
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	asks(&drive, "GET", SANDBOX "/toolbox-proxy-url", "address asked for");
	drive_answer(&drive, 200, "{\"url\":\"" TOOLBOX "\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/session", "and used");
	drive_end(&drive);
	for (int i = 0; i < 3; i++)
	{
		static const char *const bodies[] = {"{\"url\":\"http://x/\"}", "{}", "<html>"};

		drive_start(&drive, make_run(&input));
		drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, i == 0 ? "TOOLBOX_HOST_REFUSED" : NULL,
		      SBX_ALLOCATION_UNKNOWN, "bad address %d", i);
		drive_end(&drive);
	}
	drive_start(&drive, make_run(&input));
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	drive_answer(&drive, 500, "");
	fails(&drive, SBX_PHASE_REMOTE, 500, NULL, SBX_ALLOCATION_UNKNOWN, "no address");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_daytona.run_script(&account.account, &target, &input));
	asks(&drive, "GET", API "/sandbox/" NAME, "by name");
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/session", "goes on with the id");
	drive_end(&drive);
}

static void
session_answers(void)
{
	Drive drive = opening(1000);

	section("run: session");
	drive_answer(&drive, 409, "{}");
	asks(&drive, "POST", SANDBOX_BOX "/process/session/run-1/exec",
	     "409 is our own earlier delivery");
	drive_end(&drive);

	drive = opening(1000);
	drive_answer(&drive, 400, "{\"message\":\"no IP address found. Is the Sandbox\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, "NOT_STARTED", SBX_ALLOCATION_UNKNOWN,
	      "400 without an address");
	drive_end(&drive);
	drive = opening(1000);
	drive_answer(&drive, 400, "{\"message\":\"bad\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, NULL, SBX_ALLOCATION_UNKNOWN, "other 400");
	drive_end(&drive);
	drive = opening(1000);
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 404, NULL, SBX_ALLOCATION_UNKNOWN,
	      "404 of the toolbox does not prove that the sandbox is gone");
	drive_end(&drive);
	drive = opening(1000);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "never sent: nothing to tidy up");
	drive_end(&drive);
	drive = opening(1000);
	drive_answer(&drive, 502, "");
	asks(&drive, "DELETE", SANDBOX_BOX "/process/session/run-1",
	     "502: it may have been made, so it is deleted");
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 502, NULL, SBX_ALLOCATION_UNKNOWN,
	      "and the 502 is what is reported");
	drive_end(&drive);
	drive = opening(1000);
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

/* The request that kills the script's group. */
static void
kills(const Drive *drive, const char *what)
{
	asks(drive, "POST", SANDBOX_BOX "/process/execute", "%s: the group is killed",
	     what);
	is_text(drive->op->request.body,
	        "{\"command\":\"sbx_pid=$(cat /tmp/.run-1) && [ -n \\\"$sbx_pid\\\" ] && "
	        "rm -f /tmp/.run-1 && kill -9 \\\"-$sbx_pid\\\"\",\"timeout\":5}",
	        "%s: by its id", what);
	ok(drive->op->request.repeatable, "%s: twice does no harm", what);
}

/* --- after the command -------------------------------------------------- */

static void
timeouts(void)
{
	Drive drive = running();

	section("run: timeout");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	kills(&drive, "the command is killed, not only forgotten");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	asks(&drive, "DELETE", SANDBOX_BOX "/process/session/run-1", "its session ends");
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", SBX_ALLOCATION_UNKNOWN, "killed");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "flags");
	drive_end(&drive);

	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_answer(&drive, 200, "{\"exitCode\":1,\"result\":\"\"}");
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", SBX_ALLOCATION_UNKNOWN,
	      "no group of its own: it dies with the session");
	drive_end(&drive);

	for (int i = 0; i < 4; i++)
	{
		drive = running();
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		if (i == 0)
			drive_answer(&drive, 502, "");
		else if (i == 1)
			drive_answer(&drive, 200, "<html>");
		else if (i == 2)
			drive_answer(&drive, 200, "{}");
		else
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		drive_answer(&drive, 204, "");
		fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED",
		      SBX_ALLOCATION_UNKNOWN, "nobody says that it was killed: %d", i);
		drive_end(&drive);
	}

	for (int i = 0; i < 3; i++)
	{
		drive = running();
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		drive_answer(&drive, 200, "{\"exitCode\":1,\"result\":\"\"}");
		if (i == 0)
			drive_answer(&drive, 502, "");
		else if (i == 1)
			drive_answer(&drive, 404, "{}");
		else
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED",
		      SBX_ALLOCATION_UNKNOWN, "not known to be killed: %d", i);
		ok(drive.op->failure.timed_out, "a timeout all the same");
		drive_end(&drive);
	}

	drive = running();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", SBX_ALLOCATION_UNKNOWN,
	      "no time left to kill it");
	drive_end(&drive);
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", SBX_ALLOCATION_UNKNOWN,
	      "time over while killing it");
	drive_end(&drive);
}

/* may_be_running is false for a refusal, after which there is nothing to kill. */
static void
command_fails(int status, const char *body, SbxPhase phase, const char *code,
              bool may_be_running, const char *what)
{
	Drive drive = running();

	drive_answer(&drive, status, body);
	if (may_be_running)
	{
		kills(&drive, what);
		drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	}
	asks(&drive, "DELETE", SANDBOX_BOX "/process/session/run-1", "%s: tidied up", what);
	drive_answer(&drive, 204, "");
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s", what);
	ok(drive.op->failure.request_sent, "%s: the command may have run", what);
	drive_end(&drive);
}

static void
command_answers(void)
{
	Drive drive;

	section("run: command");
	command_fails(404, "{}", SBX_PHASE_REMOTE, NULL, false, "404");
	command_fails(400, "{}", SBX_PHASE_REMOTE, NULL, false, "400");
	command_fails(400, "{\"message\":\"no IP address found\"}", SBX_PHASE_REMOTE,
	              "NOT_STARTED", false, "400 without an address");
	command_fails(408, "{}", SBX_PHASE_REMOTE, NULL, true, "408");
	command_fails(502, "", SBX_PHASE_REMOTE, NULL, true, "502");
	command_fails(202, "{\"cmdId\":\"x\"}", SBX_PHASE_REMOTE, NULL, true,
	              "202 of another mode");
	command_fails(200, "<html>", SBX_PHASE_PROTOCOL, NULL, true, "web page");
	command_fails(200, "[]", SBX_PHASE_PROTOCOL, NULL, true, "list");
	command_fails(200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, NULL, true,
	              "text exit code");
	command_fails(200, "{\"exitCode\":0.5}", SBX_PHASE_PROTOCOL, NULL, true,
	              "half exit code");
	command_fails(200, "{\"exitCode\":4294967296}", SBX_PHASE_PROTOCOL, NULL, true,
	              "huge exit code");
	command_fails(200, "{\"exitCode\":0,\"exitCode\":1}", SBX_PHASE_PROTOCOL, NULL,
	              true, "two exit codes");

	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	kills(&drive, "reset");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	asks(&drive, "DELETE", SANDBOX_BOX "/process/session/run-1", "reset: killed");
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "reset is no timeout, its outcome is not known");
	ok(!drive.op->failure.timed_out, "not timed out");
	drive_end(&drive);

	drive = running();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	kills(&drive, "too large");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "OUTPUT_TOO_LARGE", SBX_ALLOCATION_UNKNOWN,
	      "too large");
	drive_end(&drive);

	drive = running();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN, "not sent");
	ok(!drive.op->failure.request_sent, "the command has not run");
	drive_end(&drive);
}

static void
gone_sandbox(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, "{}", "SANDBOX_GONE"},
	            {200, DTO("destroying"), "SANDBOX_GONE"},
	            {200, DTO("destroyed"), "SANDBOX_GONE"},
	            {200, DTO("started"), NULL},
	            {200, "<html>", NULL},
	            {401, "{}", NULL},
	            {500, "", NULL}};
	Drive drive;

	section("run: 401 of the toolbox");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = running();
		drive_answer(&drive, 401, "{}");
		drive_answer(&drive, 401, "{}");
		asks(&drive, "GET", SANDBOX, "the control plane decides");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 401, rows[i].code, SBX_ALLOCATION_UNKNOWN,
		      "command, control plane says %d %.60s", rows[i].status, rows[i].body);
		drive_end(&drive);

		drive = opening(1000);
		drive_answer(&drive, 401, "{}");
		asks(&drive, "GET", SANDBOX, "the control plane decides");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 401, rows[i].code, SBX_ALLOCATION_UNKNOWN,
		      "session, control plane says %d", rows[i].status);
		drive_end(&drive);
	}
	drive = opening(1000);
	drive_answer(&drive, 401, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 401, NULL, SBX_ALLOCATION_UNKNOWN,
	      "no time to ask");
	drive_end(&drive);
}

static void
tidying_up(void)
{
	Drive drive;

	section("run: success");
	for (int i = 0; i < 4; i++)
	{
		drive = running();
		drive_answer(&drive, 200, "{\"exitCode\":3,\"stdout\":\"x\"}");
		if (i == 0)
			drive_answer(&drive, 500, "");
		else if (i == 1)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		else if (i == 2)
			drive_expire(&drive);
		else
			drive_answer(&drive, 404, "<html>");
		ok(drive.op->succeeded &&
		       ((const SbxRunResult *) drive.op->result)->exit_code == 3,
		   "stays one whatever tidying up meets: %d", i);
		drive_end(&drive);
	}
	drive = running();
	drive.op->arena.limit = drive.op->arena.used;
	drive_answer(&drive, 200, "{\"exitCode\":3}");
	kills(&drive, "no memory for the result");
	drive_answer(&drive, 502, "");
	asks(&drive, "DELETE", SANDBOX_BOX "/process/session/run-1",
	     "no memory for the result: tidied up all the same");
	drive_answer(&drive, 204, "");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "but it is no success");
	drive_end(&drive);
	drive = running();
	drive.op->expired = true;
	drive_answer(&drive, 200, "{\"exitCode\":3}");
	ok(drive.op->succeeded, "also when the answer came with the last step");
	drive_end(&drive);
}

/* --- streams ------------------------------------------------------------ */

static const SbxRunResult *
result_of(Drive *drive, size_t max_stream, const char *body)
{
	*drive = running_with(max_stream);
	drive_answer(drive, 200, body);
	drive_answer(drive, 204, "");
	return drive->op->succeeded ? drive->op->result : NULL;
}

static bool
is_stream(const char *bytes, size_t length, const char *expected)
{
	if (expected == NULL)
		return bytes == NULL && length == 0;
	return bytes != NULL && length == strlen(expected) &&
	       memcmp(bytes, expected, length) == 0 && bytes[length] == '\0';
}

static void
streams(size_t max_stream, const char *body, const char *out, const char *err,
        const char *both, bool truncated, const char *what)
{
	Drive drive;
	const SbxRunResult *result = result_of(&drive, max_stream, body);

	ok(result != NULL && is_stream(result->stdout_text, result->stdout_length, out) &&
	       is_stream(result->stderr_text, result->stderr_length, err) &&
	       is_stream(result->output, result->output_length, both) &&
	       result->truncated == truncated,
	   "%s", what);
	if (result != NULL && !is_stream(result->output, result->output_length, both))
		printf("# output: %s\n", result->output ? result->output : "(null)");
	drive_end(&drive);
}

#define M1 "\\u0001\\u0001\\u0001"
#define M2 "\\u0002\\u0002\\u0002"

static void
framing(void)
{
	section("framed log");
	streams(99, "{\"output\":\"" M1 "a\\n" M2 "b\\n" M1 "c\\n\"}", "a\nc\n", "b\n",
	        "a\nb\nc\n", false, "in the order they were written");
	streams(99, "{\"output\":\"lost" M1 "a\"}", "a", "", "a", false,
	        "what stands before the first marker is dropped");
	streams(99, "{\"output\":\"" M1 "\"}", "", "", "", false, "a marker at the end");
	streams(99, "{\"output\":\"" M1 M2 M1 "\"}", "", "", "", false, "only markers");
	streams(99, "{\"output\":\"" M2 "e" M1 "\"}", "", "e", "e", false,
	        "a marker at the start and one at the end");
	streams(99, "{\"output\":\"" M1 "a\\u0001\\u0001b\"}",
	        "a\x01\x01"
	        "b",
	        "",
	        "a\x01\x01"
	        "b",
	        false, "two bytes are no marker");
	streams(99, "{\"output\":\"" M1 "a\\u0001\\u0002\\u0001\\u0002\"}",
	        "a\x01\x02\x01\x02", "", "a\x01\x02\x01\x02", false,
	        "mixed bytes are none");
	streams(99, "{\"output\":\"" M1 "\\u0001x\"}", "\x01x", "", "\x01x", false,
	        "of four bytes the first three");
	streams(99, "{\"output\":\"" M1 "a\\u0003\\u0003\\u0003\"}", "a\x03\x03\x03", "",
	        "a\x03\x03\x03", false, "other bytes are none");
	streams(99, "{\"output\":\"plain\"}", NULL, NULL, "plain", false,
	        "without any marker it is the unframed shape, not nothing");
	streams(4, "{\"output\":\"plain\"}", NULL, NULL, "plai", true, "which is cut too");
	streams(99, "{\"output\":\"\"}", NULL, NULL, "", false, "empty");
	streams(99, "{\"output\":\"\\u0001\\u0001\"}", NULL, NULL, "\x01\x01", false,
	        "shorter than a marker");
	streams(99, "{\"output\":\"" M1 "f\",\"stdout\":\"own\",\"stderr\":\"\"}", "own",
	        "", "f", false, "the provider's own streams win");
	streams(99, "{\"output\":\"x\",\"stdout\":\"a\",\"stderr\":\"b\"}", "a", "b",
	        "a\nb", false,
	        "an unframed log beside streams is not trusted for their order");
}

/* A log of 5 lines with the marker moved through every position. */
static void
every_position(void)
{
	static const char text[] = "abc\n\xc3\xa4\xe2\x82\xac\n";
	char body[200];
	int wrong = 0;

	section("framed log");
	for (size_t i = 0; i < sizeof(text); i++)
	{
		Drive drive;
		const SbxRunResult *result;

		/* Only between characters: JSON cannot carry half of one. */
		if (i < sizeof(text) - 1 && ((unsigned char) text[i] & 0xC0) == 0x80)
			continue;
		snprintf(body, sizeof(body), "{\"output\":\"" M1 "%.*s" M2 "%s\"}", (int) i,
		         text, text + i);
		for (char *byte = body; *byte != '\0'; byte++)
		{
			if (*byte == '\n')
				*byte = '|';
		}
		result = result_of(&drive, 99, body);
		if (result == NULL || result->stdout_length != i ||
		    result->stderr_length != sizeof(text) - 1 - i ||
		    result->output_length != sizeof(text) - 1)
			wrong++;
		drive_end(&drive);
	}
	is_number(wrong, 0, "a marker at every position");
}

static void
joining(void)
{
	section("joined streams");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"b\"}", "a", "b", "a\nb", false,
	        "a line break between them");
	streams(99, "{\"stdout\":\"a\\n\",\"stderr\":\"b\"}", "a\n", "b", "a\nb", false,
	        "unless the first ends with one");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"\\nb\"}", "a", "\nb", "a\nb", false,
	        "or the second begins with one");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"\"}", "a", "", "a", false,
	        "or there is no second");
	streams(99, "{\"stdout\":\"\",\"stderr\":\"b\"}", "", "b", "b", false, "or first");
	streams(99, "{\"stderr\":\"b\"}", NULL, "b", "b", false, "one of them is absent");
	streams(99, "{\"stdout\":null,\"stderr\":5}", NULL, NULL, NULL, false,
	        "absent or of another type");
	streams(99, "{}", NULL, NULL, NULL, false, "nothing at all");
}

static void
cutting(void)
{
	section("cut streams");
	streams(3, "{\"stdout\":\"abc\"}", "abc", NULL, "abc", false, "exactly full");
	streams(3, "{\"stdout\":\"abcd\"}", "abc", NULL, "abc", true, "one byte over");
	streams(3, "{\"stdout\":\"ab\xc3\xa4\"}", "ab", NULL, "ab", true,
	        "not within two bytes");
	streams(4,
	        "{\"stdout\":\"ab\xc3\xa4"
	        "c\"}",
	        "ab\xc3\xa4", NULL, "ab\xc3\xa4", true, "but behind them");
	streams(3, "{\"stdout\":\"\xf0\x9f\x98\x80\"}", "", NULL, "", true,
	        "not within four bytes");
	streams(0, "{\"stdout\":\"a\"}", "", NULL, "", true, "nothing is kept of it");
	streams(3, "{\"stdout\":\"abcd\",\"stderr\":\"e\"}", "abc", "e", "abc\ne", true,
	        "the other stream stays whole");
	streams(3, "{\"output\":\"" M1 "ab" M2 "x" M1 "cdef" M2 "y" M1 "gh\"}", "abc", "xy",
	        "abxcy", true, "in the log each stream has its own limit");
	streams(3, "{\"output\":\"" M1 "ab\xc3\xa4" M1 "c\"}", "ab", "", "ab", true,
	        "a cut stream does not go on behind the cut");
}

static void
exit_codes(void)
{
	Drive drive;
	const SbxRunResult *result;

	section("exit code");
	result = result_of(&drive, 9, "{\"stdout\":\"\"}");
	ok(result != NULL && !result->has_exit_code, "absent is not known, never 0");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":null}");
	ok(result != NULL && !result->has_exit_code, "null neither");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":-1}");
	ok(result != NULL && result->has_exit_code && result->exit_code == -1, "negative");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":0,\"stdout\":\"a\\u0000b\"}");
	ok(result != NULL && result->stdout_length == 3 && result->stdout_text[1] == '\0' &&
	       result->output_length == 3,
	   "a byte 0 in a stream is kept");
	drive_end(&drive);
}

void
test_daytona_run(void)
{
	recorded_requests();
	impossible_runs();
	before_the_session();
	session_answers();
	timeouts();
	command_answers();
	gone_sandbox();
	tidying_up();
	framing();
	every_position();
	joining();
	cutting();
	exit_codes();
}
