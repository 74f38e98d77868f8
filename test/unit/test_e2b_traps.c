/*
 * test_e2b_traps.c
 *		What E2B does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE

static Drive
creating(void)
{
	static const SbxPair env[] = {{"A", "1"}};
	SbxLaunchInput input = plain_input();
	Drive drive;

	input.env = env;
	input.env_count = 1;
	e2b_account();
	account_boolean(&account, "allowInternetAccess", false);
	drive_start(&drive, sbx_kind_e2b.launch(&account.account, &input));
	return drive;
}

static Drive
running(void)
{
	SbxRunInput input = plain_run("x");

	input.timeout_ms = 600000;
	e2b_account();
	return e2b_running(&input);
}

static Drive
looking(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.get(e2b_account(), &e2b_target));
	return drive;
}

static Drive
killing(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.destroy(e2b_account(), &e2b_target, 0));
	return drive;
}

static const char *
body_of(const Drive *drive)
{
	return drive->op->request.body;
}

static void
create(void)
{
	Drive drive = creating();

	section("trap 1");
	ok(strstr(body_of(&drive), "\"timeout\":300") != NULL, "a lifetime is always said");
	drive_end(&drive);
	drive = running();
	is_text(sent_header(drive.op, "Connect-Timeout-Ms"), "600000",
	        "a command's is in milliseconds");
	drive_end(&drive);

	section("trap 5");
	drive = creating();
	drive_answer(&drive, 429, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 429, "CAPACITY", NONE, "429 is a full account");
	drive_end(&drive);
	drive = creating();
	drive_headed(&drive, 429, "Retry-After: 1\r\n", "{}");
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", NONE,
	      "or too many requests, which are told when to come back");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 503, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, UNKNOWN, "a bare 503 proves nothing");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 503, "{\"error_code\":\"sandbox_no_compatible_node\"}");
	fails(&drive, SBX_PHASE_REMOTE, 503, "CAPACITY", NONE, "one with a code does");
	drive_end(&drive);

	section("trap 6");
	drive = creating();
	ok(drive.op->timeout_ms >= 80000, "longer than the provider works on it");
	ok(!drive.op->request.repeatable, "never delivered twice");
	ok(sent_header(drive.op, "Idempotency-Key") == NULL,
	   "no key that would replay an error");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "no answer proves nothing");
	drive_end(&drive);

	section("trap 7");
	drive = creating();
	ok(strstr(body_of(&drive), "\"envVars\":{") != NULL, "variables have a name here");
	ok(strstr(body_of(&drive), "\"allow_internet_access\":false") != NULL,
	   "the internet is in snake case");
	ok(strstr(body_of(&drive), "\"templateID\":") != NULL, "ids are in capitals");
	drive_answer(&drive, 201, "{\"sandboxId\":\"iabc\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 201, NULL, UNKNOWN, "in answers, too");
	drive_end(&drive);
}

static void
commands(void)
{
	Stream stream = {0};
	Drive drive = running();

	section("trap 2");
	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 100);
	ok(drive.op->succeeded && ((const SbxRunResult *) drive.op->result)->exit_code == 0,
	   "an exit code that is absent is 0");
	drive_end(&drive);
	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_add(&stream, 0, STREAM_KILLED);
	drive_stream(&drive, &stream, 100);
	drive_printed(&drive, "", 1);
	fails(&drive, SBX_PHASE_REMOTE, 200, "TIMEOUT", UNKNOWN, "-1 is a timeout");
	drive_end(&drive);
	drive = running();
	stream_add(&stream, 2, "{\"error\":{\"code\":\"not_found\"}}");
	drive_stream(&drive, &stream, 100);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NOT_RUN", UNKNOWN,
	      "200 with an error is a failure");
	drive_end(&drive);

	section("trap 3");
	drive = running();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	ok(strstr(body_of(&drive) + 5, "kill -9") != NULL,
	   "a dropped stream leaves it running: the group is killed");
	drive_end(&drive);
	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "\001run-1:0\002", 10);
	stream_data(&stream, "stderr", "\001run-1:0\002", 10);
	drive_stream(&drive, &stream, 100);
	ok(drive.op->succeeded, "what is left in the background holds nobody up");
	drive_end(&drive);

	section("trap 11");
	drive = e2b_opened(sbx_kind_e2b.run_script(
	    e2b_account(), &e2b_target,
	    &(SbxRunInput){
	        .run_id = "r", .command = "x", .command_length = 1, .timeout_ms = 600000}));
	asks(&drive, "POST", E2B_API "/v2/sandboxes/" E2B_ID "/connect",
	     "the sandbox is made to outlive it, and never to end earlier");
	is_text(body_of(&drive), "{\"timeout\":660}", "by a minute");
	drive_end(&drive);

	section("trap 13");
	drive = running();
	ok(strstr(body_of(&drive) + 5, "\"stdin\":false") != NULL, "nothing to read");
	drive_end(&drive);

	section("trap 14");
	drive = running();
	stream_add(&stream, 0, STREAM_START);
	stream_data(&stream, "stdout", "\xc3", 1);
	stream_data(&stream, "stderr", "e", 1);
	stream_data(&stream, "stdout", "\xa9", 1);
	stream_add(&stream, 0, STREAM_END);
	drive_stream(&drive, &stream, 100);
	ok(drive.op->succeeded &&
	       memcmp(((const SbxRunResult *) drive.op->result)->stdout_text, "\xc3\xa9",
	              2) == 0,
	   "a character in two pieces is whole in its own stream");
	drive_end(&drive);
}

static void
background(void)
{
	SbxRunInput input = plain_run("x");
	Drive drive =
	    e2b_opened(sbx_kind_e2b.start_script(e2b_account(), &e2b_target, &input));

	section("trap 15");
	drive_answer(&drive, 204, "");
	drive_printed(&drive, "new\n", 0);
	ok(strstr(body_of(&drive) + 5, "$sbx_pid.out") != NULL &&
	       strstr(body_of(&drive) + 5, "$sbx_pid.exit") != NULL,
	   "output and exit code that nobody waits for go to files");
	drive_end(&drive);

	section("trap 16");
	drive = running();
	ok(strstr(body_of(&drive) + 5, "[\"-l\",\"-c\",") != NULL,
	   "a login shell, so that what the template sets up is there");
	drive_end(&drive);
}

static void
looks(void)
{
	static const SbxPair odd = {"a b", "&"};
	Drive drive;

	section("trap 4");
	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), &odd, 1));
	asks(&drive, "GET",
	     E2B_API "/v2/sandboxes?metadata=a%252520b%3D%252526&state=running%2Cpaused"
	             "&limit=100&order=asc",
	     "a filter is encoded three times, and paused ones are asked for");
	drive_end(&drive);

	section("trap 8");
	drive = e2b_opened(sbx_kind_e2b.download(e2b_account(), &e2b_target, "a", 9));
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 404, "FILE_NOT_FOUND", UNKNOWN,
	      "404 in the sandbox is the file's");
	drive_end(&drive);
	drive = e2b_opened(sbx_kind_e2b.download(e2b_account(), &e2b_target, "a", 9));
	drive_answer(&drive, 502, "");
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 502, "SANDBOX_GONE", UNKNOWN,
	      "502 is the sandbox's");
	drive_end(&drive);
	drive = e2b_opened(sbx_kind_e2b.run_script(
	    e2b_account(), &e2b_target,
	    &(SbxRunInput){.run_id = "r", .command = "x", .command_length = 1}));
	drive_answer(&drive, 404, "");
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", UNKNOWN,
	      "404 for a lifetime, asked for by connecting, is one that is gone");
	drive_end(&drive);

	section("trap 10");
	drive = looking();
	asks(&drive, "GET", E2B_SANDBOX, "a look resumes nothing");
	drive_end(&drive);

	section("trap 12");
	drive = e2b_opened(sbx_kind_e2b.download(e2b_account(), &e2b_target, "a", 9));
	asks(&drive, "GET", E2B_ENVD "/files?path=a", "no domain is the configured one");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_e2b.download(e2b_account(), &e2b_target, "a", 9));
	drive_answer(&drive, 200,
	             "{\"sandboxID\":\"" E2B_ID
	             "\",\"state\":\"running\",\"domain\":\"own.test\"}");
	asks(&drive, "GET", "https://49983-" E2B_ID ".own.test/files?path=a",
	     "a sandbox can have its own, read anew each time");
	drive_end(&drive);

	section("trap 17");
	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), NULL, 0));
	drive_headed(&drive, 200, "x-next-token: t\r\n", "[]");
	asks(&drive, "GET",
	     E2B_API "/v2/sandboxes?state=running%2Cpaused&limit=100&order=asc&nextToken=t",
	     "the next page is in a header, in any case");
	drive_end(&drive);
}

static void
destroy(void)
{
	Drive drive = killing();

	section("trap 9");
	drive_answer(&drive, 404, "");
	ok(drive.op->succeeded, "404 is success");
	drive_end(&drive);
	for (int i = 0; i < 2; i++)
	{
		drive = killing();
		drive_answer(&drive, i == 0 ? 409 : 429, "");
		pauses(&drive, 200, "%d is not", i == 0 ? 409 : 429);
		drive_end(&drive);
	}
}

void
test_e2b_traps(void)
{
	create();
	commands();
	background();
	looks();
	destroy();
}
