/*
 * test_daytona_run.c
 *		Running a script: the exchanges, the kill, the streams.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

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
requests(void)
{
	Drive drive = opening(1000);
	const SbxRunResult *result;

	section("run");
	ok(drive.op->request.repeatable, "the session's name is ours: may be repeated");
	drive_recorded(&drive, "session_create");
	ok(!drive.op->request.repeatable, "the command is delivered at most once");
	ok(drive.op->request.chunked, "chunked, so that the proxy cannot replay it");
	is_number(drive.op->request.timeout_ms, 5000, "the command's lifetime");
	is_number(drive.op->timeout_ms, 65000, "the operation has time left to kill it");
	is_number((int64_t) drive.op->request.max_response, 8000 + 1024 * 1024,
	          "room for both streams and the log, escaped");
	drive_recorded(&drive, "session_exec");
	is_number(drive.op->request.timeout_ms, 10000, "tidying is bounded");
	drive_recorded(&drive, "session_delete");
	ok(drive.op->succeeded, "done");
	result = drive.op->result;
	is_text(result->stdout_text, "out\n", "stdout");
	is_text(result->stderr_text, "err\n", "stderr");
	is_text(result->output, "out\nerr\n", "output without framing");
	ok(result->has_exit_code && result->exit_code == 0 && !result->truncated,
	   "exit code");
	drive_end(&drive);
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
	drive_answer_always(&drive, status, body);
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
	drive_answer_always(&drive, 0, NULL);
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
	drive_answer_always(&drive, 500, "");
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
	is_text(
	    drive->op->request.body,
	    "{\"command\":\"sbx_pid=; sbx_try=0; while [ -z \\\"$sbx_pid\\\" ] && "
	    "[ \\\"$sbx_try\\\" -lt 10 ] && sbx_pid=$(cat /tmp/.sbx-run-run-1); do "
	    "[ -n \\\"$sbx_pid\\\" ] || sleep 0.1 2>/dev/null || { sleep 1; sbx_try=9; }; "
	    "sbx_try=$((sbx_try + 1)); done; [ -n \\\"$sbx_pid\\\" ] && "
	    "rm -f /tmp/.sbx-run-run-1 && kill -9 \\\"-$sbx_pid\\\"\",\"timeout\":5}",
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

void
test_daytona_run(void)
{
	requests();
	impossible_runs();
	before_the_session();
	session_answers();
	timeouts();
	command_answers();
	gone_sandbox();
	tidying_up();
}
