/*
 * test_agent37_traps.c
 *		What Agent37 does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE

static Drive
creating(const SbxPair *env)
{
	static const SbxPair labels[] = {{"sbx-router-id", NAME}};
	SbxLaunchInput input = plain_input();
	Drive drive;

	input.labels = labels;
	input.label_count = 1;
	input.env = env;
	input.env_count = env == NULL ? 0 : 1;
	drive_start(&drive, sbx_kind_agent37.launch(agent37_account(), &input));
	return drive;
}

static Drive
running(int64_t timeout_ms)
{
	SbxRunInput input = plain_run("x");

	input.timeout_ms = timeout_ms;
	agent37_account();
	return agent37_running(&input);
}

static Drive
uploading(const char *object)
{
	SbxUploadInput input = {
	    .path = "a", .bytes = "hello", .length = 5, .boundary = "x"};
	Drive drive;

	drive_start(&drive,
	            sbx_kind_agent37.upload(agent37_account(), &agent37_target, &input));
	drive_answer(&drive, 200, object);
	return drive;
}

static bool
sends(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

static void
creates(void)
{
	static const SbxPair lower = {"lower", "x"};
	Drive drive = creating(NULL);

	section("Agent37: a create that is given up leaks an instance");
	ok(sends(&drive, "\"metadata\":{\"sbx-router-id\":\"" NAME "\"}"),
	   "its metadata finds it");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "it is not said to be none");
	drive_end(&drive);
	section("Agent37: provisioning_failed is not nothing");
	drive = creating(NULL);
	drive_answer(&drive, 502, AGENT37_ERROR("provisioning_failed"));
	fails(&drive, SBX_PHASE_REMOTE, 502, "PROVISIONING_FAILED", UNKNOWN, "of a create");
	drive_end(&drive);
	section("Agent37: lower-case variables");
	drive = creating(&lower);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "refused at a create");
	drive_end(&drive);
	{
		SbxRunInput input = plain_run("x");

		input.env = &lower;
		input.env_count = 1;
		drive = agent37_running(&input);
		ok(sends(&drive, "export lower="), "must not fire: fine in a script");
		drive_end(&drive);
	}
	section("Agent37: a name is no key");
	{
		SbxTarget target = {.unique_name = NAME};

		drive_start(&drive, sbx_kind_agent37.destroy(agent37_account(), &target, 0));
		drive_answer(&drive, 200,
		             "{\"data\":[{\"id\":\"a\",\"name\":\"" NAME
		             "\",\"metadata\":{}}]}");
		ok(drive.want == SBX_OP_WANT_PAUSE, "nothing is deleted by it");
		drive_end(&drive);
	}
}

static void
commands(void)
{
	Drive drive = running(1000);

	section("Agent37: a timeout of the request is none of the command");
	ok(sends(&drive, "sbx_time=1.000;"), "the text has it");
	ok(drive.op->request.timeout_ms > 1000, "the request waits longer");
	drive_end(&drive);
	section("Agent37: 280 s");
	drive = running(280000);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
	      "no script may last that long");
	drive_end(&drive);
	drive = running(270000);
	drive_answer(&drive, 502, AGENT37_ERROR("provisioning_failed"));
	ok(sends(&drive, "kill -9"), "what may run is killed, and not run again");
	drive_end(&drive);
	section("Agent37: output without its middle");
	drive = running(1000);
	drive_answer(&drive, 200,
	             "{\"exit_code\":0,\"stdout\":\"a...z\",\"truncated\":true}");
	ok(drive.op->succeeded && ((const SbxRunResult *) drive.op->result)->truncated,
	   "is told");
	drive_end(&drive);
	section("Agent37: no exit code");
	drive = running(1000);
	drive_answer(&drive, 200, "{\"stdout\":\"\"}");
	ok(drive.op->succeeded && !((const SbxRunResult *) drive.op->result)->has_exit_code,
	   "is not 0");
	drive_end(&drive);
	section("Agent37: /root");
	drive = running(1000);
	ok(!sends(&drive, "/root") && !sends(&drive, "cd "), "no directory is assumed");
	drive_end(&drive);
}

static void
files(void)
{
	Drive drive = uploading(AGENT37_DTO("running"));

	section("Agent37: bodies without a length are stored as nothing");
	ok(!drive.op->request.chunked && drive.op->request.body_length == 5, "it has one");
	drive_answer(&drive, 200, "{\"size\":0}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", UNKNOWN,
	      "and what was stored is compared");
	drive_end(&drive);
	section("Agent37: one key, two headers");
	drive = uploading(AGENT37_DTO("running"));
	is_agent37_key_kept(&drive, "instance");
	drive_end(&drive);
	drive = running(1);
	is_agent37_key_kept(&drive, "hosting");
	drive_end(&drive);
	section("Agent37: no address");
	drive = uploading(AGENT37_OBJECT("running", "null"));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NO_FILE_SERVICE", UNKNOWN, "is told");
	drive_end(&drive);
	section("Agent37: files wake and bill");
	drive = uploading(AGENT37_DTO("sleeping"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN, "not unasked");
	drive_end(&drive);
}

static void
answers(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("Agent37: /health is answered without the instance");
	drive_start(&drive, sbx_kind_agent37.launch(agent37_account(), &input));
	drive_answer(&drive, 201, AGENT37_DTO("running"));
	asks(&drive, "POST", AGENT37_EXEC, "a command is what proves it");
	drive_end(&drive);
	section("Agent37: a list that is not all");
	drive_start(&drive, sbx_kind_agent37.find(agent37_account(), NULL, 0));
	drive_answer(&drive, 200, "{\"data\":[],\"next\":\"x\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "is none");
	drive_end(&drive);
	section("Agent37: GB and MiB");
	drive_start(&drive, sbx_kind_agent37.usage(agent37_account(), 0));
	drive_answer(&drive, 200, "{\"data\":[" AGENT37_DTO("running") "]}");
	ok(((const SbxUsage *) drive.op->result)->memory_mib == 4096, "4 is 4096 MiB");
	drive_end(&drive);
	section("Agent37: the answer has the state to come");
	drive_start(&drive, sbx_kind_agent37.stop(agent37_account(), &agent37_target, 0));
	drive_answer(&drive, 200, "{\"status\":\"stopped\"}");
	asks(&drive, "GET", AGENT37_INSTANCE, "it is looked at");
	drive_end(&drive);
	section("Agent37: texts have secrets");
	drive = creating(NULL);
	drive_answer(&drive, 403, AGENT37_ERROR("ip_not_allowed"));
	is_text(drive.op->failure.provider_code, "IP_NOT_ALLOWED", "only the code is kept");
	drive_end(&drive);
	section("Agent37: four meanings of 409");
	for (int i = 0; i < 4; i++)
	{
		static const char *const errors[] = {AGENT37_ERROR("instance_limit_reached"),
		                                     AGENT37_ERROR("capacity_unavailable"),
		                                     AGENT37_ERROR("try_again"),
		                                     AGENT37_ERROR("file_exists")};

		drive = creating(NULL);
		drive_answer(&drive, 409, errors[i]);
		is_number(drive.op->failure.allocation, i == 0 ? NONE : UNKNOWN, "%s",
		          errors[i]);
		drive_end(&drive);
	}
}

void
test_agent37_traps(void)
{
	creates();
	commands();
	files();
	answers();
}
