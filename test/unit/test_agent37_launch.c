/*
 * test_agent37_launch.c
 *		Making Agent37 instances: what is asked for, what is refused before, and what comes
 *		after the create.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define NONE SBX_ALLOCATION_NONE
#define MADE SBX_ALLOCATION_MADE

static Drive
launching(const SbxLaunchInput *input)
{
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.launch(&account.account, input));
	return drive;
}

static void
bodies(void)
{
	static const SbxPair pairs[] = {{"A", "1"}, {"B_2", "x\ny\xc3\xa9"}};
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("Agent37 launch");
	agent37_account();
	drive = launching(&input);
	asks(&drive, "POST", AGENT37_LIST, "one request");
	is_text(drive.op->request.body, "{\"name\":\"" NAME "\"}",
	        "with a name for people");
	ok(!drive.op->request.repeatable, "never delivered twice");
	is_number(drive.op->timeout_ms, 300000, "a cold host takes minutes");
	is_number(drive.op->request.timeout_ms, 0, "all of the time for it");
	is_agent37_key_kept(&drive, "launch");
	drive_end(&drive);
	account_text(&account, "template", "my-agent@2");
	account_integer(&account, "resources.cpu", 4);
	account_integer(&account, "resources.memory", 8);
	account_integer(&account, "resources.disk", 20);
	account_text(&account, "type", "dedicated");
	account_boolean(&account, "autoSleep", true);
	account_integer(&account, "idleTimeoutSeconds", 600);
	account_integer(&account, "createTimeoutSeconds", 20);
	input.labels = pairs;
	input.label_count = 2;
	input.env = pairs;
	input.env_count = 2;
	drive = launching(&input);
	is_text(
	    drive.op->request.body,
	    "{\"template\":\"my-agent@2\",\"resources\":{\"cpu\":4,\"memory\":8,\"disk\":"
	    "20},\"type\":\"dedicated\",\"auto_sleep\":true,\"idle_timeout_seconds\":600,"
	    "\"name\":\"" NAME "\",\"metadata\":{\"A\":\"1\",\"B_2\":\"x\\ny\xc3\xa9\"},"
	    "\"env\":{\"A\":\"1\",\"B_2\":\"x\\ny\xc3\xa9\"}}",
	    "everything");
	is_number(drive.op->timeout_ms, 20000, "the setting's time");
	drive_end(&drive);
}

static void
variables(void)
{
	static char long_value[2 * 4097 + 1];
	static const struct
	{
		const char *key;
		bool valid;
	} rows[] = {{"A", true},
	            {"A_1", true},
	            {"a", false},
	            {"Ab", false},
	            {"_A", false},
	            {"1A", false},
	            {"", false},
	            {"A-B", false},
	            {"AGENT37_INSTANCE_ID", false},
	            {"OPENCLAW_GATEWAY_PORT", false},
	            {"AGENT37_INSTANCE_IDS", true}};
	SbxPair many[33];
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("Agent37 launch, variables");
	agent37_account();
	input.env = many;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		many[0] = (SbxPair){rows[i].key, "v"};
		input.env_count = 1;
		drive = launching(&input);
		if (rows[i].valid)
			asks(&drive, "POST", AGENT37_LIST, "must not fire: %s", rows[i].key);
		else
			fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: %s", rows[i].key);
		drive_end(&drive);
	}
	for (int i = 0; i < 33; i++)
		many[i] = (SbxPair){"A", "v"};
	for (input.env_count = 32; input.env_count <= 33; input.env_count++)
	{
		drive = launching(&input);
		ok((drive.want == SBX_OP_WANT_HTTP) == (input.env_count == 32), "%d of them",
		   input.env_count);
		drive_end(&drive);
	}
	input.env_count = 1;
	many[0].value = long_value;
	for (int i = 0; i < 4097; i++)
		memcpy(long_value + 2 * i, "\xc3\xa9", 2);
	drive = launching(&input);
	ok(drive.want == SBX_OP_WANT_NOTHING, "must fire: 4097 characters");
	drive_end(&drive);
	long_value[2 * 4096] = '\0';
	drive = launching(&input);
	ok(drive.want == SBX_OP_WANT_HTTP, "must not fire: 4096 characters");
	drive_end(&drive);
	input.env_count = 0;
	input.create_timeout_ms = 1;
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "a time limit for the create");
	drive_end(&drive);
	input.create_timeout_ms = 0;
	account.credentials[0] = "a\r\nX: y";
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "a key with a line break");
	drive_end(&drive);
}

static void
settings(void)
{
	static const struct
	{
		int64_t cpu, memory, disk;
		const char *offender;
	} rows[] = {{0, 0, 0, NULL},
	            {2, 4, 0, NULL},
	            {2, 4, 12, NULL},
	            {2, 4, 13, "resources.disk"},
	            {4, 8, 20, NULL},
	            {8, 16, 40, NULL},
	            {4, 8, 21, "resources.disk"},
	            {2, 8, 0, "resources.memory"},
	            {2, 0, 0, "resources.memory"},
	            {0, 4, 0, "resources.cpu"},
	            {3, 4, 0, "resources.cpu"},
	            {0, 0, 4, "resources.disk"}};

	section("Agent37 settings");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		agent37_account();
		if (rows[i].cpu)
			account_integer(&account, "resources.cpu", rows[i].cpu);
		if (rows[i].memory)
			account_integer(&account, "resources.memory", rows[i].memory);
		if (rows[i].disk)
			account_integer(&account, "resources.disk", rows[i].disk);
		is_text(sbx_kind_agent37.check_settings(account.settings), rows[i].offender,
		        "%d/%d/%d", (int) rows[i].cpu, (int) rows[i].memory,
		        (int) rows[i].disk);
	}
	agent37_account();
	account_integer(&account, "idleTimeoutSeconds", 60);
	is_text(sbx_kind_agent37.check_settings(account.settings), "idleTimeoutSeconds",
	        "must fire: nothing to sleep");
	account_boolean(&account, "autoSleep", true);
	is_text(sbx_kind_agent37.check_settings(account.settings), NULL,
	        "must not fire: with autoSleep");
	account_text(&account, "homeDir", "home");
	is_text(sbx_kind_agent37.check_settings(account.settings), "homeDir", "relative");
	account_text(&account, "homeDir", "/home/user");
	account_text(&account, "type", "other");
	is_text(sbx_kind_agent37.check_settings(account.settings), "type", "a type");
}

/* Whose instance does the answer describe? */
static void
owners(void)
{
	static const struct
	{
		const char *metadata;
		bool ours;
	} rows[] = {{"{\"sbx-router-id\":\"" NAME "\"}", true},
	            {"null", true},
	            {"{}", true},
	            {"{\"sbx-router-id\":5}", true},
	            {"{\"sbx-router-id\":\"sbx_other\"}", false}};
	SbxLaunchInput input = plain_input();

	section("Agent37 launch, whose");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char object[200];
		Drive drive;

		agent37_account();
		drive = launching(&input);
		snprintf(object, sizeof(object),
		         "{\"id\":\"" AGENT37_ID "\",\"status\":\"running\",\"metadata\":%s}",
		         rows[i].metadata);
		drive_answer(&drive, 201, object);
		if (rows[i].ours)
			asks(&drive, "POST", AGENT37_EXEC, "must not fire: %s", rows[i].metadata);
		else
			fails(&drive, SBX_PHASE_PROTOCOL, 201, NULL, SBX_ALLOCATION_UNKNOWN,
			      "must fire: %s", rows[i].metadata);
		is_text(drive.op->sandbox_id, rows[i].ours ? AGENT37_ID : "",
		        "what is not ours is never deleted");
		drive_end(&drive);
	}
}

/* The create is answered; then a command has to work. */
static void
readiness(void)
{
	SbxLaunchInput input = plain_input();
	const SbxSandboxFacts *facts;
	Drive drive;

	section("Agent37 launch, until it is ready");
	agent37_account();
	drive = launching(&input);
	drive_answer(&drive, 201, AGENT37_DTO("running"));
	is_text(drive.op->sandbox_id, AGENT37_ID, "its id at once");
	asks(&drive, "POST", AGENT37_EXEC, "a command is tried");
	is_text(drive.op->request.body, "{\"command\":\"true\"}", "and nothing else");
	ok(drive.op->request.repeatable, "that does no harm");
	drive_answer(&drive, 400, AGENT37_ERROR("invalid_request"));
	pauses(&drive, 100, "not yet");
	drive_pause_over(&drive);
	asks(&drive, "GET", AGENT37_INSTANCE, "it is looked at");
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	drive_answer(&drive, 502, AGENT37_EDGE("container_unavailable"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	drive_answer(&drive, 200, "{\"exit_code\":0}");
	facts = drive.op->result;
	ok(drive.op->succeeded && facts->state == SBX_STATE_STARTED, "ready");
	is_text(facts->created_at, "2026-06-12T00:00:00Z", "when it was made");
	drive_end(&drive);
	drive = launching(&input);
	drive_answer(&drive, 201, AGENT37_DTO("provisioning"));
	asks(&drive, "GET", AGENT37_INSTANCE, "one that does not run yet");
	drive_answer(&drive, 200, AGENT37_DTO("failed"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", MADE, "and never will");
	drive_end(&drive);
	drive = launching(&input);
	drive_answer(&drive, 201, AGENT37_DTO("running"));
	drive_answer(&drive, 401, AGENT37_ERROR("invalid_api_key"));
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", MADE, "refused");
	drive_end(&drive);
	drive = launching(&input);
	drive_answer(&drive, 201, AGENT37_DTO("running"));
	drive_answer(&drive, 503, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 503, "NOT_READY", MADE, "until the end of time");
	drive_end(&drive);
}

void
test_agent37_launch(void)
{
	bodies();
	variables();
	settings();
	owners();
	readiness();
}
