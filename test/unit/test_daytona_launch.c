/*
 * test_daytona_launch.c
 *		Launch: requests, waiting, what each refusal proves, where the key goes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static Account account;

static const SbxPair no_pairs[1];

static SbxLaunchInput
plain_input(void)
{
	SbxLaunchInput input = {.unique_name = NAME, .labels = no_pairs, .env = no_pairs};

	return input;
}

/* A launch whose create request is out. */
static Drive
launched(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.launch(account_reset(&account), &input));
	return drive;
}

/* One whose sandbox has an id, and whose first look is out. */
static Drive
created(void)
{
	Drive drive = launched();

	drive_answer(&drive, 200, DTO("creating"));
	return drive;
}

/* One whose sandbox is started, and whose first probe is out. */
static Drive
started(void)
{
	Drive drive = created();

	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

/* --- requests ----------------------------------------------------------- */

static void
check_golden_headers(const SbxOp *op, const json_t *recorded)
{
	const char *name;
	json_t *value;

	json_object_foreach (json_object_get(recorded, "headers"), name, value)
		is_text(sent_header(op, name), json_string_value(value), "recorded header %s",
		        name);
	is_text(sent_header(op, "User-Agent"), "sbx_router/1.0", "our own user agent");
	is_text(sent_header(op, "X-Daytona-Source"), "sbx_router", "our own source");
}

static void
check_golden_url(const SbxOp *op, const json_t *recorded)
{
	char url[1000];

	snprintf(url, sizeof(url), "https://%s.recorder.invalid%s",
	         strcmp(sbx_json_string(recorded, "plane"), "control") == 0 ? "api"
	                                                                    : "toolbox",
	         sbx_json_string(recorded, "path"));
	is_text(op->request.method, sbx_json_string(recorded, "method"), "recorded method");
	is_text(op->request.url, url, "recorded URL");
}

static void
create_from_snapshot(void)
{
	static const SbxPair labels[] = {{"sbx", "sbx_0123"}};
	static const SbxPair env[] = {{"A", "1"}};
	const json_t *recorded = golden("create_from_snapshot");
	char *body = json_dumps(json_object_get(recorded, "body"), JSON_COMPACT);
	SbxLaunchInput input = {.unique_name = "job-1",
	                        .labels = labels,
	                        .label_count = 1,
	                        .env = env,
	                        .env_count = 1};
	Drive drive;

	section("create from snapshot");
	account_reset(&account);
	account_text(&account, "snapshot", "base-2cpu");
	account_text(&account, "target", "us");
	account_integer(&account, "createParams.autoStopInterval", 5);
	account_integer(&account, "createParams.autoArchiveInterval", 60);
	account_integer(&account, "createParams.autoDeleteInterval", 0);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	check_golden_url(drive.op, recorded);
	check_golden_headers(drive.op, recorded);
	is_text(drive.op->request.body, body, "recorded body, byte for byte");
	is_number((int64_t) drive.op->request.body_length, (int64_t) strlen(body),
	          "length");
	ok(!drive.op->request.repeatable, "delivered at most once");
	is_number(drive.op->request.timeout_ms, 0, "may take all the time there is");
	is_text(drive.op->operation, "launch", "operation name");
	drive_end(&drive);
	free(body);
}

static void
create_from_image(void)
{
	const json_t *recorded = golden("create_from_image");
	char *body = json_dumps(json_object_get(recorded, "body"), JSON_COMPACT);
	SbxLaunchInput input = plain_input();
	json_t *sent;
	char *text;
	Drive drive;

	section("create from image");
	account_reset(&account);
	account_text(&account, "image", "debian:12");
	account_text(&account, "target", "us");
	account_integer(&account, "createParams.cpu", 2);
	account_integer(&account, "createParams.memory", 4);
	account_integer(&account, "createParams.disk", 8);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	sent = sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	is_text(sbx_json_string(sent, "name"), NAME, "carries the unique name");
	json_object_del(sent, "name");
	text = json_dumps(sent, JSON_COMPACT);
	is_text(text, body, "otherwise the recorded body, byte for byte");
	drive_end(&drive);
	json_decref(sent);
	free(text);
	free(body);
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

/* --- waiting until ready ------------------------------------------------ */

static void
ready_path(void)
{
	const SbxSandboxFacts *facts;
	Drive drive = launched();

	section("ready");
	drive_answer(&drive, 200, DTO("started"));
	is_text(drive.op->sandbox_id, ID, "the id is there at once");
	asks(&drive, "GET", SANDBOX,
	     "started in the create's answer is not believed; asked again without a pause");
	ok(drive.op->request.repeatable && drive.op->request.body == NULL, "a plain read");
	drive_answer(&drive, 200, DTO("CREATING"));
	pauses(&drive, 100, "still creating");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("Started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "started in any case: probed");
	is_text(drive.op->request.body, "{\"command\":\"true\",\"timeout\":10}", "probe");
	ok(drive.op->request.repeatable, "a probe may be repeated");
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded, "ready");
	facts = drive.op->result;
	is_number(facts->state, SBX_STATE_STARTED, "state");
	is_text(facts->name, NAME, "name");
	is_text(facts->created_at, "2026-12-01T10:00:00.000Z", "time");
	is_number(facts->label_count, 2, "labels");
	is_text(facts->labels[1].value, "v", "a label");
	drive_end(&drive);
}

static void
poll_schedule(void)
{
	Drive drive = created();
	int64_t sum = 0;
	int64_t last = 0;
	bool fast = true;
	bool grows = true;

	section("poll schedule");
	for (int i = 0; i < 100; i++)
	{
		drive_answer(&drive, 200, DTO("creating"));
		if (sum < 5000)
			fast &= drive.op->pause_ms == 100;
		else
			grows &= drive.op->pause_ms >= last && drive.op->pause_ms <= 1000;
		sum += drive.op->pause_ms;
		last = drive.op->pause_ms;
		drive_pause_over(&drive);
	}
	ok(fast, "every 100 ms for 5 s");
	ok(grows && last == 1000, "then slower, up to 1 s");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "no end: a sandbox exists");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent,
	   "and time is over");
	drive_end(&drive);
}

static void
poll_ends(int status, const char *body, SbxPhase phase, const char *code,
          const char *what)
{
	Drive drive = created();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_MADE, "%s", what);
	drive_end(&drive);
}

static void
poll_goes_on(int status, const char *body, const char *what)
{
	Drive drive = created();

	drive_answer(&drive, status, body);
	pauses(&drive, 100, "%s", what);
	drive_pause_over(&drive);
	asks(&drive, "GET", SANDBOX, "%s: and looked again", what);
	drive_end(&drive);
}

static void
poll_answers(void)
{
	Drive drive;

	section("poll");
	poll_ends(200, DTO("error"), SBX_PHASE_REMOTE, "SANDBOX_FAILED", "error");
	poll_ends(200, DTO("build_failed"), SBX_PHASE_REMOTE, "SANDBOX_FAILED",
	          "build_failed");
	poll_ends(200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroyed");
	poll_ends(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE", "destroying");
	poll_ends(404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE", "404 after create");
	poll_ends(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED", "401");
	poll_ends(403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN", "403");
	poll_ends(400, "{}", SBX_PHASE_REMOTE, NULL, "400");
	poll_ends(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	poll_ends(200, "{\"id\":\"other\",\"state\":\"started\"}", SBX_PHASE_PROTOCOL, NULL,
	          "another sandbox");
	poll_goes_on(200, DTO("unknown"), "unknown");
	poll_goes_on(200, DTO("startedish"), "a state that only starts like started");
	poll_goes_on(200, DTO(""), "empty state");
	poll_goes_on(200, "{\"id\":\"" ID "\"}", "no state");
	poll_goes_on(200, "{\"id\":\"" ID "\",\"state\":5}", "state of another type");
	poll_goes_on(200, DTO("stopped"), "stopped");
	poll_goes_on(500, "", "500");
	poll_goes_on(502, "", "502");
	poll_goes_on(429, "{}", "429");

	drive = created();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	pauses(&drive, 100, "refused connection");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	pauses(&drive, 100, "timeout of one look");
	drive_pause_over(&drive);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "the end names the last trouble");
	drive_end(&drive);

	drive = created();
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("creating"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "trouble that has passed is forgotten");
	drive_end(&drive);

	drive = created();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_MADE,
	      "an answer too large stays too large: no second look");
	drive_end(&drive);
}

static void
probe_fails_at_once(int status, const char *body, SbxPhase phase, const char *code,
                    const char *what)
{
	Drive drive = started();

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_MADE, "%s: no second try", what);
	drive_end(&drive);
}

static void
probe_answers(void)
{
	Drive drive = started();

	section("probe");
	drive_answer(&drive, 502, "");
	pauses(&drive, 250, "first 502");
	drive_pause_over(&drive);
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "second try");
	drive_answer(&drive, 400,
	             "{\"message\":\"bad: no IP address found. Is the Sandbox started?\"}");
	pauses(&drive, 250, "400 without an address yet");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, "NOT_READY", SBX_ALLOCATION_MADE,
	      "three tries, no fourth");
	ok(drive.op->failure.request_sent, "the create was sent all the same");
	drive_end(&drive);

	drive = started();
	for (int i = 0; i < 2; i++)
	{
		drive_answer(&drive, 200, "{\"exitCode\":-1,\"result\":\"\"}");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 200, "{\"exitCode\":0}");
	ok(drive.op->succeeded, "could not start twice, then could");
	drive_end(&drive);

	drive = started();
	drive_answer(&drive, 502, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 502, "NOT_READY", SBX_ALLOCATION_MADE,
	      "time over while probing");
	drive_end(&drive);

	probe_fails_at_once(401, "{}", SBX_PHASE_REMOTE, "NOT_READY", "401");
	probe_fails_at_once(404, "{}", SBX_PHASE_REMOTE, "NOT_READY", "404");
	probe_fails_at_once(400, "{\"message\":\"bad\"}", SBX_PHASE_REMOTE, "NOT_READY",
	                    "400 of another kind");
	probe_fails_at_once(200, "<html>", SBX_PHASE_PROTOCOL, NULL, "web page");
	probe_fails_at_once(200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, NULL,
	                    "exit code as text");
	probe_fails_at_once(200, "{}", SBX_PHASE_PROTOCOL, NULL, "no exit code");
}

/* --- what a refused create proves --------------------------------------- */

static void
refusal(int status, const char *message, const char *code, SbxAllocation allocation)
{
	json_t *object = json_pack("{s:i,s:s}", "statusCode", status, "message", message);
	char *body = json_dumps(object, 0);
	Drive drive = launched();

	drive_answer(&drive, status, body);
	fails(&drive, SBX_PHASE_REMOTE, status, code, allocation, "%d %s", status, message);
	is_text(drive.op->sandbox_id, "", "no id");
	drive_end(&drive);
	free(body);
	json_decref(object);
}

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static void
capacity_refusals(void)
{
	static const char *const texts[] = {
	    "Total CPU limit exceeded. Maximum allowed: 10.",
	    "Total memory limit exceeded.", "Total disk limit exceeded. x",
	    "Total GPU limit exceeded.", "No available runners"};

	section("refused: capacity");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		refusal(400, texts[i], "CAPACITY", NONE);
		refusal(403, texts[i], "CAPACITY", NONE);
		refusal(500, texts[i], NULL, UNKNOWN);
		refusal(409, texts[i], NULL, UNKNOWN);
	}
	refusal(400, "total cpu limit exceeded.", NULL, UNKNOWN);
	refusal(400, "Was: Total CPU limit exceeded.", NULL, UNKNOWN);
	refusal(400, "Total CPU limit", NULL, UNKNOWN);
	refusal(403, "total cpu", "FORBIDDEN", NONE);
}

static void
other_refusals(void)
{
	section("refused");
	refusal(401, "Unauthorized", "UNAUTHORIZED", NONE);
	refusal(403, "Access denied", "FORBIDDEN", NONE);
	refusal(429, "ThrottlerException: Too Many Requests", "RATE_LIMITED", NONE);
	refusal(404, "Region not found", "REGION_NOT_FOUND", NONE);
	refusal(404, "Cannot POST /sandbox", NULL, UNKNOWN);
	refusal(409, "Sandbox with name job-1 already exists", "NAME_CONFLICT", UNKNOWN);
	refusal(409, "Sandbox state change in progress", NULL, UNKNOWN);
	refusal(400, "CPU 9 exceeds maximum allowed per sandbox (4)", "SIZE_NOT_ALLOWED",
	        NONE);
	refusal(400, "Only ephemeral sandboxes are permitted", "EPHEMERAL_ONLY", NONE);
	refusal(400, "Snapshot base-2cpu not found", "SNAPSHOT_NOT_FOUND", NONE);
	refusal(404, "Snapshot base-2cpu not found", NULL, UNKNOWN);
	refusal(400, "Volume base not found", NULL, UNKNOWN);
	refusal(400, "Snapshot x is not available in region eu", "SNAPSHOT_NOT_IN_REGION",
	        NONE);
	refusal(400, "Organization x does not have a default region", "NO_DEFAULT_REGION",
	        NONE);
	refusal(400, "", NULL, UNKNOWN);
	refusal(400, "name must be a string", NULL, UNKNOWN);
	refusal(500, "Internal server error", NULL, UNKNOWN);
	refusal(502, "", NULL, UNKNOWN);
	refusal(408, "", NULL, UNKNOWN);
	refusal(302, "", NULL, UNKNOWN);

	section("refused: failed to start wins");
	refusal(400, "Sandbox failed to start: image pull failed", "START_FAILED", UNKNOWN);
	refusal(400, "Sandbox failed to start: No available runners", "START_FAILED",
	        UNKNOWN);
	refusal(400, "Total CPU limit exceeded. Sandbox failed to start: x", "START_FAILED",
	        UNKNOWN);
	refusal(400, "Snapshot Sandbox failed to start: x not found", "START_FAILED",
	        UNKNOWN);
	refusal(403, "Sandbox failed to start: x", "START_FAILED", UNKNOWN);
	refusal(400, "Sandbox failed", NULL, UNKNOWN);
}

static void
refusals_without_text(void)
{
	static const char *const bodies[] = {"",
	                                     "<html>",
	                                     "{}",
	                                     "{\"message\":5}",
	                                     "[\"Total CPU limit exceeded.\"]",
	                                     "{\"error\":\"Total CPU limit exceeded.\"}"};

	section("refused without a message");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		Drive drive = launched();

		drive_answer(&drive, 400, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 400, NULL, UNKNOWN, "400 %s", bodies[i]);
		drive_end(&drive);
		drive = launched();
		drive_answer(&drive, 401, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE, "401 %s", bodies[i]);
		drive_end(&drive);
	}
}

static void
recorded_refusals(void)
{
	static const struct
	{
		const char *name;
		const char *code;
		SbxAllocation allocation;
	} rows[] = {{"create_quota", "CAPACITY", NONE},
	            {"create_unauthorized", "UNAUTHORIZED", NONE},
	            {"create_name_conflict", "NAME_CONFLICT", UNKNOWN},
	            {"create_rate_limited", "RATE_LIMITED", NONE},
	            {"create_failed_to_start", "START_FAILED", UNKNOWN}};

	section("recorded refusal");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		const json_t *recorded = golden(rows[i].name);
		char *body = json_dumps(json_object_get(recorded, "answer"), 0);
		int64_t status = 0;
		Drive drive = launched();

		sbx_json_integer(recorded, "status", &status);
		drive_answer(&drive, (int) status, body);
		fails(&drive, SBX_PHASE_REMOTE, (int) status, rows[i].code, rows[i].allocation,
		      "%s", rows[i].name);
		drive_end(&drive);
		free(body);
	}
}

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

/* --- where the key goes ------------------------------------------------- */

static void
toolbox_rule(const char *api, const char *toolbox, bool allowed)
{
	SbxLaunchInput input = plain_input();
	char body[1000];
	Drive drive;

	account_reset(&account);
	account_text(&account, "apiUrl", api);
	snprintf(body, sizeof(body), "{\"id\":\"" ID "\",\"toolboxProxyUrl\":\"%s\"}",
	         toolbox);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	drive_answer(&drive, 200, body);
	if (allowed)
		ok(drive.want == SBX_OP_WANT_HTTP, "%s may send the key to %s", api, toolbox);
	else
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "TOOLBOX_HOST_REFUSED",
		      SBX_ALLOCATION_MADE, "%s must not send the key to %s", api, toolbox);
	drive_end(&drive);
}

static void
toolbox_rules(void)
{
	static const char cloud[] = "https://app.daytona.io/api";

	section("toolbox address");
	toolbox_rule(cloud, "https://proxy.app.daytona.io/toolbox", true);
	toolbox_rule(cloud, "https://app.daytona.io/toolbox", true);
	toolbox_rule(cloud, "HTTPS://PROXY.DAYTONA.IO/toolbox/", true);
	toolbox_rule(cloud, "https://daytona.io", true);
	toolbox_rule(cloud, "https://eu.daytona.io:8443/toolbox", true);
	toolbox_rule(cloud, "http://app.daytona.io/toolbox", false);
	toolbox_rule(cloud, "http://proxy.app.daytona.io/toolbox", false);
	toolbox_rule(cloud, "https://evil.example/toolbox", false);
	toolbox_rule(cloud, "https://app.daytona.io.evil.example/", false);
	toolbox_rule(cloud, "https://evildaytona.io/toolbox", false);
	toolbox_rule(cloud, "https://daytona.io.", false);
	toolbox_rule(cloud, "https://a..daytona.io", true);
	toolbox_rule(cloud, "https://io", false);
	toolbox_rule(cloud, "https://daytona.io@evil.example/", false);
	toolbox_rule(cloud, "https://user@app.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example\\\\.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example#.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example?.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example%2f.daytona.io/", false);
	toolbox_rule(cloud, "https://ev il.daytona.io/", false);
	toolbox_rule(cloud, "https://\xc3\xa4.daytona.io/", false);
	toolbox_rule(cloud, "https://app.daytona.io/toolbox?x=", false);
	toolbox_rule(cloud, "https://app.daytona.io:0/", false);
	toolbox_rule(cloud, "https://app.daytona.io:65536/", false);
	toolbox_rule(cloud, "https://app.daytona.io:443a/", false);
	toolbox_rule(cloud, "https://app.daytona.io:/", false);
	toolbox_rule(cloud, "https:///toolbox", false);
	toolbox_rule(cloud, "https://", false);
	toolbox_rule(cloud, "//app.daytona.io/", false);
	toolbox_rule(cloud, "ftp://app.daytona.io/", false);
	toolbox_rule(cloud, "toolbox", false);

	toolbox_rule("https://app.daytona.io./api", "https://app.daytona.io./", true);
	toolbox_rule("https://app.daytona.io./api", "https://evil.io./", false);
	toolbox_rule("https://app.daytona..io/api", "https://evil..io/", false);

	toolbox_rule("https://10.0.0.1/api", "https://10.0.0.1/toolbox", true);
	toolbox_rule("https://10.0.0.1/api", "https://9.0.0.1/toolbox", false);
	toolbox_rule("https://[::1]:3000/api", "https://[::1]:4000/toolbox", true);
	toolbox_rule("https://[::1]/api", "https://[::2]/toolbox", false);
	toolbox_rule("https://[::ffff:1.2.3.4]/", "https://[::fffe:1.2.3.4]/", false);
	toolbox_rule("https://[::1]/api", "https://[::1/toolbox", false);
	toolbox_rule("https://daytona/api", "https://daytona/toolbox", true);
	toolbox_rule("https://daytona/api", "https://proxy.daytona/toolbox", false);

	toolbox_rule("http://localhost:3000/api", "http://localhost:4000/toolbox", true);
	toolbox_rule("http://localhost:3000/api", "https://localhost/toolbox", true);
	toolbox_rule("http://localhost:3000/api", "http://127.0.0.1:4000/toolbox", false);
	toolbox_rule("http://127.0.0.1:3000/api", "http://127.0.0.1:4000/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test:80/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test:81/toolbox", false);
}

static void
toolbox_sources(void)
{
	Drive drive = launched();

	section("toolbox address from");
	drive_answer(&drive, 200, "{\"id\":\"" ID "\"}");
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "the later description");
	drive_end(&drive);

	drive = launched();
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"toolboxProxyUrl\":null}");
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	asks(&drive, "GET", SANDBOX "/toolbox-proxy-url", "its own resource");
	check_golden_url(drive.op, golden("toolbox_proxy_url"));
	drive_answer(&drive, 503, "");
	pauses(&drive, 100, "which may be away");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	drive_answer(&drive, 200, "{\"url\":\"" TOOLBOX "//\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "slashes at its end are cut");
	drive_end(&drive);

	for (int i = 0; i < 3; i++)
	{
		static const char *const bodies[] = {"{\"url\":\"https://evil.example/\"}",
		                                     "{}", "<html>"};

		drive = launched();
		drive_answer(&drive, 200, "{\"id\":\"" ID "\"}");
		drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, i == 0 ? "TOOLBOX_HOST_REFUSED" : NULL,
		      SBX_ALLOCATION_MADE, "bad answer %d", i);
		drive_end(&drive);
	}

	drive = created();
	drive_answer(&drive, 200,
	             "{\"id\":\"" ID "\",\"state\":\"started\","
	             "\"toolboxProxyUrl\":\"https://other.recorder.invalid/\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "the first answer, for good");
	drive_end(&drive);
}

void
test_daytona_launch(void)
{
	create_from_snapshot();
	create_from_image();
	create_with_everything();
	impossible_input();
	setting_combinations();
	ready_path();
	poll_schedule();
	poll_answers();
	probe_answers();
	capacity_refusals();
	other_refusals();
	refusals_without_text();
	recorded_refusals();
	transport_failures();
	malformed_successes();
	expiry();
	toolbox_rules();
	toolbox_sources();
}

/* --- get ---------------------------------------------------------------- */

static Drive
getting(const char *id, const char *name)
{
	SbxTarget target = {.sandbox_id = id, .unique_name = name};
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.get(account_reset(&account), &target));
	return drive;
}

static void
get_state(const char *word, SbxSandboxState expected)
{
	char body[300];
	Drive drive = getting(ID, NULL);

	snprintf(body, sizeof(body), "{\"id\":\"" ID "\",\"state\":\"%s\"}", word);
	drive_answer(&drive, 200, body);
	ok(drive.op->succeeded, "%s: success", word);
	if (drive.op->succeeded)
		is_number(((SbxSandboxFacts *) drive.op->result)->state, expected, "%s", word);
	drive_end(&drive);
}

static void
get_states(void)
{
	static const char *const starting[] = {"creating",
	                                       "restoring",
	                                       "starting",
	                                       "pending_build",
	                                       "building_snapshot",
	                                       "unknown",
	                                       "pulling_snapshot",
	                                       "resuming",
	                                       "resizing",
	                                       "forking",
	                                       "snapshotting",
	                                       "brand_new",
	                                       "",
	                                       "gone",
	                                       "starte",
	                                       "startedx"};

	section("get state");
	for (size_t i = 0; i < sizeof(starting) / sizeof(starting[0]); i++)
		get_state(starting[i], SBX_STATE_STARTING);
	get_state("started", SBX_STATE_STARTED);
	get_state("STARTED", SBX_STATE_STARTED);
	get_state("stopped", SBX_STATE_STOPPED);
	get_state("archived", SBX_STATE_STOPPED);
	get_state("paused", SBX_STATE_STOPPED);
	get_state("stopping", SBX_STATE_STOPPING);
	get_state("archiving", SBX_STATE_STOPPING);
	get_state("pausing", SBX_STATE_STOPPING);
	get_state("error", SBX_STATE_FAILED);
	get_state("build_failed", SBX_STATE_FAILED);
	get_state("destroyed", SBX_STATE_GONE);
	get_state("destroying", SBX_STATE_GONE);
}

static void
get_fails(int status, const char *body, SbxPhase phase, const char *code)
{
	Drive drive = getting(ID, NULL);

	drive_answer(&drive, status, body);
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%d %s", status, body);
	drive_end(&drive);
}

static void
get_answers(void)
{
	char *body = json_dumps(json_object_get(golden("get_gone"), "answer"), 0);
	const SbxSandboxFacts *facts;
	Drive drive = getting(ID, NULL);

	section("get");
	check_golden_url(drive.op, golden("get"));
	check_golden_headers(drive.op, golden("get"));
	drive_answer(&drive, 404, body);
	ok(drive.op->succeeded, "404 is an answer");
	facts = drive.op->result;
	ok(facts->state == SBX_STATE_GONE && facts->label_count == 0,
	   "gone, without facts");
	drive_end(&drive);
	free(body);

	drive = getting(NULL, NAME);
	asks(&drive, "GET", API "/sandbox/" NAME, "by name");
	drive_answer(&drive, 200,
	             "{\"id\":\"" ID "\",\"labels\":{\"a\":\"1\",\"b\":2,\"c\":\"\"}}");
	is_text(drive.op->sandbox_id, ID, "learns the id");
	facts = drive.op->result;
	is_number(facts->label_count, 2, "labels that are text");
	ok(facts->name == NULL && facts->created_at == NULL, "absent facts are NULL");
	drive_end(&drive);

	drive = getting(ID, NULL);
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"labels\":[1],\"name\":5}");
	facts = drive.op->result;
	ok(drive.op->succeeded && facts->label_count == 0 && facts->name == NULL,
	   "members of another type are absent");
	drive_end(&drive);

	get_fails(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED");
	get_fails(403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN");
	get_fails(429, "{}", SBX_PHASE_REMOTE, "RATE_LIMITED");
	get_fails(500, "", SBX_PHASE_REMOTE, NULL);
	get_fails(200, "<html>", SBX_PHASE_PROTOCOL, NULL);
	get_fails(200, "{\"id\":\"other\"}", SBX_PHASE_PROTOCOL, NULL);

	drive = getting(ID, NULL);
	drive_no_answer(&drive, SBX_PHASE_TLS, false, false);
	fails(&drive, SBX_PHASE_TLS, 0, NULL, SBX_ALLOCATION_UNKNOWN, "transport");
	drive_end(&drive);
	drive = getting(ID, NULL);
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
	drive = getting("../x", NULL);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "an id that is a path");
	drive_end(&drive);
	drive = getting(NULL, NULL);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no target");
	drive_end(&drive);
}

void
test_daytona_get(void)
{
	get_states();
	get_answers();
}
