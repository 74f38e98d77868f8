/*
 * test_agent37_run.c
 *		Running scripts in an Agent37 instance.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define ANSWER(code, out, err, truncated)                                              \
	"{" code "\"stdout\":\"" out "\",\"stderr\":\"" err "\",\"truncated\":" truncated  \
	"}"

static Drive
running(const char *command)
{
	SbxRunInput input = plain_run(command);

	agent37_account();
	return agent37_running(&input);
}

static void
request(void)
{
	static const struct
	{
		int64_t asked;
		const char *watched;
		int64_t exchange;
	} times[] = {{1, "sbx_time=0.001;", 20001},
	             {1500, "sbx_time=1.500; sbx_seconds=2;", 21500},
	             {270000, "sbx_time=270.000;", 290000}};
	static const int64_t refused[] = {-1, 0, 270001, INT64_MAX};
	Drive drive = running("echo hi");
	json_t *body =
	    sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);

	section("Agent37 run");
	asks(&drive, "POST", AGENT37_EXEC, "one request");
	ok(json_object_size(body) == 1 && json_is_string(json_object_get(body, "command")),
	   "a command and no other member");
	ok(!drive.op->request.repeatable, "never delivered twice");
	is_agent37_key_kept(&drive, "run");
	json_decref(body);
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
	{
		SbxRunInput input = plain_run("x");

		input.timeout_ms = times[i].asked;
		agent37_account();
		drive = agent37_running(&input);
		ok(strstr(drive.op->request.body, times[i].watched) != NULL, "%lld ms: %s",
		   (long long) times[i].asked, times[i].watched);
		is_number(drive.op->request.timeout_ms, times[i].exchange,
		          "the answer is waited for longer");
		ok(drive.op->timeout_ms >= times[i].exchange + 10000,
		   "and there is time to kill");
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		SbxRunInput input = plain_run("x");

		input.timeout_ms = refused[i];
		agent37_account();
		drive = agent37_running(&input);
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
		      "%lld ms cannot be kept: nothing is sent", (long long) refused[i]);
		drive_end(&drive);
	}
	{
		SbxRunInput input = plain_run("\xff");

		agent37_account();
		drive = agent37_running(&input);
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no UTF-8");
		drive_end(&drive);
	}
}

static void
results(void)
{
	static const struct
	{
		const char *answer;
		bool known;
		int code;
		const char *output;
		bool truncated;
	} rows[] = {
	    {ANSWER("\"exit_code\":2,", "partial", "boom", "false"), true, 2,
	     "partial\nboom", false},
	    {ANSWER("\"exit_code\":0,", "a\\u0000", "", "true"), true, 0, "a", true},
	    {ANSWER("", "a", "", "false"), false, 0, "a", false},
	    {ANSWER("\"exit_code\":null,", "", "", "false"), false, 0, "", false},
	    {"{\"exit_code\":127}", true, 127, "", false},
	    {ANSWER("\"exit_code\":137,", "", "sbx-out-of-time:run-2\\n", "false"), true,
	     137, "sbx-out-of-time:run-2\n", false},
	};
	Drive drive;

	section("Agent37 run, results");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		const SbxRunResult *result;

		drive = running("x");
		drive_answer(&drive, 200, rows[i].answer);
		if (!ok(drive.op->succeeded, "%s", rows[i].answer))
			continue;
		result = drive.op->result;
		ok(result->has_exit_code == rows[i].known &&
		       (!rows[i].known || result->exit_code == rows[i].code),
		   "exit code");
		ok(strncmp(result->output, rows[i].output, strlen(rows[i].output)) == 0,
		   "output");
		ok(result->truncated == rows[i].truncated, "truncated");
		drive_end(&drive);
	}
	drive = running("x");
	drive_answer(&drive, 200,
	             ANSWER("\"exit_code\":137,", "", "sbx-out-of-time:run-1\\n", "false"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "TIMEOUT", UNKNOWN, "must fire: out of time");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "it says so");
	drive_end(&drive);
}

/* Where the script may run its group is killed; nothing is ever run again. */
static void
lost(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {502, AGENT37_ERROR("provisioning_failed"), SBX_PHASE_REMOTE,
	     "PROVISIONING_FAILED"},
	    {502, AGENT37_EDGE("container_unavailable"), SBX_PHASE_REMOTE, NULL},
	    {503, "", SBX_PHASE_REMOTE, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"exit_code\":\"0\"}", SBX_PHASE_PROTOCOL, NULL},
	};
	Drive drive;

	section("Agent37 run, lost");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = running("x");
		drive_answer(&drive, rows[i].status, rows[i].body);
		asks(&drive, "POST", AGENT37_EXEC, "%d %s", rows[i].status, rows[i].body);
		ok(strstr(drive.op->request.body, "kill -9") != NULL, "its group is killed");
		drive_answer(&drive, 200, "{\"exit_code\":0}");
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, UNKNOWN,
		      "and the outcome is not known");
		ok(drive.op->failure.request_sent, "was sent");
		drive_end(&drive);
	}
	drive = running("x");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_answer(&drive, 200, "{\"exit_code\":0}");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", UNKNOWN, "killed late");
	drive_end(&drive);
	drive = running("x");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	drive_answer(&drive, 200, "{\"exit_code\":1}");
	fails(&drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT_NOT_KILLED", UNKNOWN,
	      "nothing was found to kill");
	drive_end(&drive);
	drive = running("x");
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, UNKNOWN, "must not fire: it never left");
	ok(!drive.op->failure.request_sent, "and nothing was sent");
	drive_end(&drive);
}

static void
refused(void)
{
	Drive drive;

	section("Agent37 run, refused");
	drive = running("x");
	drive_answer(&drive, 400, AGENT37_ERROR("invalid_request"));
	asks(&drive, "GET", AGENT37_INSTANCE, "does it run?");
	drive_answer(&drive, 200, AGENT37_DTO("sleeping"));
	fails(&drive, SBX_PHASE_REMOTE, 400, "NOT_STARTED", UNKNOWN, "it sleeps");
	drive_end(&drive);
	drive = running("x");
	drive_answer(&drive, 400, AGENT37_ERROR("invalid_request"));
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	fails(&drive, SBX_PHASE_REMOTE, 400, "BAD_REQUEST", UNKNOWN, "it does run");
	drive_end(&drive);
	drive = running("x");
	drive_answer(&drive, 404, AGENT37_ERROR("not_found"));
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", UNKNOWN, "it is gone");
	drive_end(&drive);
	drive = running("x");
	drive_answer(&drive, 401, AGENT37_ERROR("invalid_api_key"));
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "a key");
	drive_end(&drive);
}

/* What no argument can hold goes through a file. */
static void
long_script(void)
{
	size_t length = 200000;
	char *command = malloc(length + 1);
	char answer[100];
	SbxRunInput input;
	size_t stored;
	Drive drive;

	section("Agent37 run, long");
	memset(command, 'a', length);
	command[length] = '\0';
	input = plain_run(command);
	agent37_account();
	drive = agent37_running(&input);
	asks(&drive, "GET", AGENT37_INSTANCE, "where are its files?");
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	asks(&drive, "PUT", AGENT37_FILES "%2Ftmp%2F.sbx-run-run-1.sh", "it is stored");
	is_agent37_key_kept(&drive, "long");
	stored = drive.op->request.body_length;
	ok(stored > length, "all of it");
	snprintf(answer, sizeof(answer), "{\"size\":%zu}", stored);
	drive_answer(&drive, 200, answer);
	asks(&drive, "POST", AGENT37_EXEC, "and run");
	is_text(drive.op->request.body, "{\"command\":\". /tmp/.sbx-run-run-1.sh\"}",
	        "by its name");
	drive_end(&drive);
	drive = agent37_running(&input);
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	drive_answer(&drive, 200, "{\"size\":0}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", UNKNOWN,
	      "what is not whole is not run");
	drive_end(&drive);
	drive = agent37_running(&input);
	drive_answer(&drive, 200, AGENT37_OBJECT("running", "null"));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NO_FILE_SERVICE", UNKNOWN, "no files");
	drive_end(&drive);
	free(command);
}

void
test_agent37_run(void)
{
	request();
	results();
	lost();
	refused();
	long_script();
}
