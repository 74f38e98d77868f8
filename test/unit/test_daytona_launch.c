/*
 * test_daytona_launch.c
 *		Launch: the create request, what its answer proves, detached launch.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

/* --- requests (the recorded ones are test_daytona_wire.c's) --------------- */

static void
create_request(void)
{
	Drive drive = launched();

	section("create");
	asks(&drive, "POST", API "/sandbox", "one request");
	is_number((int64_t) drive.op->request.body_length,
	          (int64_t) strlen(drive.op->request.body), "its length");
	ok(!drive.op->request.repeatable, "delivered at most once");
	is_number(drive.op->request.timeout_ms, 0, "may take all the time there is");
	is_text(drive.op->operation, "launch", "operation name");
	is_text(sent_header(drive.op, "User-Agent"), "sbx_router/1.0", "our user agent");
	is_text(sent_header(drive.op, "X-Daytona-Source"), "sbx_router", "our source");
	drive_end(&drive);
}

static void
create_with_everything(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("create with all parameters");
	account_reset(&account);
	account_text(&account, "apiUrl", API "/");
	account_text(&account, "createParams.user", "root");
	account_text(&account, "createParams.networkAllowList", "10.0.0.0/8");
	account_boolean(&account, "createParams.networkBlockAll", false);
	account_boolean(&account, "createParams.public", true);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	asks(&drive, "POST", API "/sandbox", "one trailing slash of the base is dropped");
	is_text(drive.op->request.body,
	        "{\"name\":\"" NAME "\",\"user\":\"root\",\"env\":{},"
	        "\"labels\":{\"code-toolbox-language\":\"python\"},\"public\":true,"
	        "\"networkBlockAll\":false,\"networkAllowList\":\"10.0.0.0/8\"}",
	        "names without the group, false is sent");
	drive_end(&drive);

	account_reset(&account);
	account.settings[0].is_set = false;
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	asks(&drive, "POST", "https://app.daytona.io/api/sandbox", "default base");
	is_number(drive.op->timeout_ms, 60000, "default time");
	drive_end(&drive);

	account_integer(&account, "createTimeoutSeconds", 90);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	is_number(drive.op->timeout_ms, 90000, "the setting's time");
	drive_end(&drive);
	input.create_timeout_ms = 1234;
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	is_number(drive.op->timeout_ms, 1234, "the call's time wins");
	drive_end(&drive);
}

/* --- input that can never be carried ------------------------------------ */

static void
refused_input(const SbxLaunchInput *input, const char *what)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.launch(&account.account, input));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "%s: nothing is sent",
	      what);
	ok(!drive.op->failure.request_sent, "%s: and that is said", what);
	drive_end(&drive);
}

static void
impossible_input(void)
{
	static const SbxPair bad_utf8[] = {{"A", "\xff"}};
	static const SbxPair bad_key[] = {{"\xff", "v"}};
	SbxLaunchInput input = plain_input();

	section("impossible launch");
	account_reset(&account);
	account.credentials[0] = NULL;
	refused_input(&input, "no key");
	account_reset(&account);
	account.credentials[0] = "key\r\nX-Evil: 1";
	refused_input(&input, "line break in the key");

	account_reset(&account);
	input.env = bad_utf8;
	input.env_count = 1;
	refused_input(&input, "env value that is not UTF-8");
	input = plain_input();
	input.labels = bad_key;
	input.label_count = 1;
	refused_input(&input, "label name that is not UTF-8");
	input = plain_input();
	input.unique_name = "a/b";
	refused_input(&input, "name that is no path segment");

	input = plain_input();
	account_text(&account, "snapshot", "s");
	account_text(&account, "image", "i");
	refused_input(&input, "snapshot and image");
	account_reset(&account);
	account_integer(&account, "createParams.disk", 3);
	refused_input(&input, "size of a snapshot");
}

static const char *
checked(void)
{
	return sbx_kind_daytona.check_settings(account.settings);
}

static void
setting_combinations(void)
{
	static const char *const sizes[] = {"createParams.cpu", "createParams.memory",
	                                    "createParams.disk"};

	section("settings");
	account_reset(&account);
	is_text(checked(), NULL, "neither snapshot nor image is fine");
	account_text(&account, "snapshot", "s");
	is_text(checked(), NULL, "a snapshot is fine");
	account_text(&account, "image", "i");
	is_text(checked(), "image", "an image beside a snapshot is not");
	for (size_t i = 0; i < 3; i++)
	{
		account_reset(&account);
		account_integer(&account, sizes[i], 1);
		is_text(checked(), sizes[i], "%s without an image", sizes[i]);
		account_text(&account, "snapshot", "s");
		is_text(checked(), sizes[i], "%s with a snapshot", sizes[i]);
		account_reset(&account);
		account_integer(&account, sizes[i], 1);
		account_text(&account, "image", "debian:12");
		is_text(checked(), NULL, "%s with an image is fine", sizes[i]);
	}

	for (const SbxField *field = sbx_kind_daytona.settings; field->name != NULL;
	     field++)
	{
		if (strcmp(field->name, "image") == 0)
			ok(field->type == SBX_FIELD_WORD, "a blank would be build file syntax");
	}
	ok(sbx_provider_kind_find("daytona") == &sbx_kind_daytona, "the kind is found");
	ok(sbx_provider_kind_find("dayton") == NULL, "not by a part of its name");
	for (int i = 0; sbx_kind_daytona.settings[i].name != NULL; i++)
		ok(i < SBX_MAX_SETTINGS && sbx_kind_daytona.settings[i].description != NULL &&
		       sbx_kind_daytona.settings[i].needs_superuser == (i == 0),
		   "%s is declared; only apiUrl needs superuser",
		   sbx_kind_daytona.settings[i].name);
}
/* --- the answer to the create ------------------------------------------- */

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static void
transport_failures(void)
{
	static const SbxPhase phases[] = {SBX_PHASE_CONNECT, SBX_PHASE_TLS, SBX_PHASE_SEND,
	                                  SBX_PHASE_RECEIVE};
	Drive drive;

	section("create without an answer");
	for (int i = 0; i < 8; i++)
	{
		bool sent = i >= 4;

		drive = launched();
		drive_no_answer(&drive, phases[i % 4], sent, false);
		fails(&drive, phases[i % 4], 0, NULL, sent ? UNKNOWN : NONE, "%s, %s",
		      sbx_phase_name(phases[i % 4]), sent ? "sent" : "not sent");
		ok(drive.op->failure.request_sent == sent, "says whether it was sent");
		drive_end(&drive);
	}
	drive = launched();
	drive_no_answer(&drive, SBX_PHASE_NONE, false, false);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN,
	      "an empty report proves nothing");
	drive_end(&drive);
	drive = launched();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "timeout: the common case");
	ok(drive.op->failure.timed_out, "is called a timeout");
	drive_end(&drive);
}

static void
malformed_successes(void)
{
	char long_id[400];
	char body[600];
	static const char *const bodies[] = {
	    "",
	    "<!doctype html><html><body>dashboard</body></html>",
	    "[]",
	    "{}",
	    "\"" ID "\"",
	    "{\"id\":\"\"}",
	    "{\"id\":null}",
	    "{\"id\":5}",
	    "{\"id\":[\"" ID "\"]}",
	    "{\"id\":\"a/b\"}",
	    "{\"id\":\"..\"}",
	    "{\"id\":\".\"}",
	    "{\"id\":\"a\\nb\"}",
	    "{\"id\":\"a?b\"}",
	    "{\"id\":\"a%2fb\"}",
	    "{\"id\":\"a\\u0000b\"}",
	    "{\"id\":\"\xc3\xa4\"}",
	    "{\"id\":\"a\",\"id\":\"b\"}",
	    "{\"id\":\"" ID "\",\"x\":\"\\u0000\"}",
	    "{\"id\":\"" ID "\",\"x\":[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]}",
	    "{\"id\":\"" ID "\"",
	    "{\"id\":\"" ID "\"}x",
	};
	Drive drive;

	section("200 that names no sandbox");
	drive = launched();
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"name\":\"another\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "a sandbox of another name");
	is_text(drive.op->sandbox_id, "", "is not adopted");
	drive_end(&drive);
	drive = launched();
	drive_answer(&drive, 200, "{\"id\":\"" ID "\"}");
	asks(&drive, "GET", SANDBOX, "a sandbox without a name is");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		drive = launched();
		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "case %zu: %.40s", i,
		      bodies[i]);
		is_text(drive.op->sandbox_id, "", "case %zu: no id", i);
		drive_end(&drive);
	}
	for (int length = 255; length <= 256; length++)
	{
		memset(long_id, 'a', sizeof(long_id));
		long_id[length] = '\0';
		snprintf(body, sizeof(body), "{\"id\":\"%s\"}", long_id);
		drive = launched();
		drive_answer(&drive, 200, body);
		is_number((int64_t) strlen(drive.op->sandbox_id), length == 255 ? 255 : 0,
		          "id of %d bytes", length);
		drive_end(&drive);
	}
}

/* --- expiry ------------------------------------------------------------- */

static void
expiry(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive = {.op = sbx_kind_daytona.launch(account_reset(&account), &input)};

	section("time over");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "before the first step");
	ok(drive.op->failure.timed_out && !drive.op->failure.request_sent, "nothing sent");
	drive_end(&drive);

	drive = launched();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "the create is out");
	drive_end(&drive);

	drive = launched();
	drive.op->expired = true;
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, true);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, NONE, "still connecting");
	drive_end(&drive);

	drive = launched();
	drive.op->expired = true;
	drive_answer(&drive, 200, DTO("creating"));
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "together with the create's answer");
	is_text(drive.op->sandbox_id, ID, "whose id is not lost");
	drive_end(&drive);

	drive = created();
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE, "first look is out");
	drive_end(&drive);

	drive = started();
	drive.op->expired = true;
	drive_answer(&drive, 200, "{\"exitCode\":0}");
	ok(drive.op->succeeded, "together with the last answer: a success");
	drive_end(&drive);
}

void
test_daytona_launch(void)
{
	create_request();
	create_with_everything();
	impossible_input();
	setting_combinations();
	transport_failures();
	malformed_successes();
	expiry();
}
