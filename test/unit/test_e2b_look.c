/*
 * test_e2b_look.c
 *		Making E2B sandboxes and looking at them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE

/* --- launch --------------------------------------------------------------- */

static Drive
launching(const SbxLaunchInput *input)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.launch(&account.account, input));
	return drive;
}

void
test_e2b_launch(void)
{
	static const SbxPair pairs[] = {{"A", "1"}, {"B", "x\ny\xc3\xa9"}};
	static const SbxPair bad[] = {{"A", "\xff"}};
	SbxLaunchInput input = plain_input();
	const SbxSandboxFacts *facts;
	Drive drive;

	section("launch");
	e2b_account();
	drive = launching(&input);
	asks(&drive, "POST", E2B_API "/v2/sandboxes", "one request");
	is_text(drive.op->request.body, "{\"templateID\":\"base\",\"timeout\":300}",
	        "with a lifetime, whatever the provider's default is");
	is_text(sent_header(drive.op, "X-API-KEY"), "api-key", "the key");
	is_text(sent_header(drive.op, "Content-Type"), "application/json", "JSON");
	ok(!drive.op->request.repeatable, "never delivered twice");
	is_number(drive.op->timeout_ms, 120000, "the provider has 70 s: we wait longer");
	is_number(drive.op->request.timeout_ms, 0, "all of the time for it");
	drive_answer(&drive, 201,
	             "{\"sandboxID\":\"" E2B_ID "\",\"envdAccessToken\":\"t\"}");
	ok(drive.op->succeeded, "answered when it runs");
	facts = drive.op->result;
	is_text(drive.op->sandbox_id, E2B_ID, "its id");
	is_text(facts->sandbox_id, E2B_ID, "also in the facts");
	is_number(facts->state, SBX_STATE_STARTED, "started");
	drive_end(&drive);

	account_text(&account, "template", "team/tpl:v2");
	account_integer(&account, "timeoutSeconds", 1801);
	account_boolean(&account, "allowInternetAccess", false);
	account_boolean(&account, "autoPause", true);
	account_integer(&account, "createTimeoutSeconds", 200);
	input.labels = pairs;
	input.label_count = 2;
	input.env = pairs;
	input.env_count = 1;
	drive = launching(&input);
	is_text(
	    drive.op->request.body,
	    "{\"templateID\":\"team/tpl:v2\",\"timeout\":1801,\"metadata\":{\"A\":\"1\","
	    "\"B\":\"x\\ny\xc3\xa9\"},\"envVars\":{\"A\":\"1\"},"
	    "\"allow_internet_access\":false,\"autoPause\":true}",
	    "everything");
	is_number(drive.op->timeout_ms, 200000, "the setting's time");
	drive_end(&drive);
	input.create_timeout_ms = 5000;
	drive = launching(&input);
	is_number(drive.op->timeout_ms, 5000, "the caller's time before the setting's");
	drive_end(&drive);

	input.env = bad;
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "a variable that is not UTF-8");
	drive_end(&drive);
	input.env_count = 0;
	input.labels = bad;
	input.label_count = 1;
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "a label that is not UTF-8");
	ok(!drive.op->failure.request_sent, "nothing is sent");
	drive_end(&drive);

	account.credentials[0] = NULL;
	input.label_count = 0;
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "no key");
	drive_end(&drive);
	account.credentials[0] = "a\r\nX: y";
	drive = launching(&input);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "a key with a line break");
	drive_end(&drive);
}

/* --- get ------------------------------------------------------------------ */

static Drive
getting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.get(e2b_account(), &e2b_target));
	return drive;
}

static void
get(void)
{
	static const struct
	{
		const char *word;
		SbxSandboxState state;
	} words[] = {{E2B_DTO("running"), SBX_STATE_STARTED},
	             {E2B_DTO("paused"), SBX_STATE_STOPPED},
	             {E2B_DTO("Running"), SBX_STATE_STARTING},
	             {E2B_DTO("snapshotting"), SBX_STATE_STARTING},
	             {"{\"sandboxID\":\"" E2B_ID "\"}", SBX_STATE_STARTING}};
	const SbxSandboxFacts *facts;
	Drive drive = getting();

	section("get");
	asks(&drive, "GET", E2B_SANDBOX, "looks, and never connects");
	ok(drive.op->request.repeatable && drive.op->request.body == NULL, "a read");
	drive_answer(&drive, 200, E2B_DTO("running"));
	facts = drive.op->result;
	is_text(facts->sandbox_id, E2B_ID, "id");
	is_text(facts->created_at, "2026-12-01T10:00:00.5Z", "time");
	is_number(facts->label_count, 2, "labels");
	is_text(facts->labels[1].key, "k", "a label's key");
	is_text(facts->labels[1].value, "v", "a label's value");
	ok(facts->name == NULL, "there are no names");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		drive = getting();
		drive_answer(&drive, 200, words[i].word);
		ok(drive.op->succeeded, "is read");
		facts = drive.op->result;
		is_number(facts->state, words[i].state, "%s", words[i].word);
		drive_end(&drive);
	}
	drive = getting();
	drive_answer(&drive, 404, "{}");
	ok(drive.op->succeeded, "one that is gone is an answer");
	facts = drive.op->result;
	is_number(facts->state, SBX_STATE_GONE, "gone");
	drive_end(&drive);
}

static void
get_fails(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {{401, "", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	            {403, "", SBX_PHASE_REMOTE, "FORBIDDEN"},
	            {429, "", SBX_PHASE_REMOTE, "RATE_LIMITED"},
	            {500, "", SBX_PHASE_REMOTE, NULL},
	            {204, "", SBX_PHASE_REMOTE, NULL},
	            {200, "", SBX_PHASE_PROTOCOL, NULL},
	            {200, "[]", SBX_PHASE_PROTOCOL, NULL},
	            {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	            {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	            {200, "{\"sandboxID\":\"iother\",\"state\":\"running\"}",
	             SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	section("get fails");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = getting();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, UNKNOWN, "%d %s",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = getting();
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out, "out of time");
	drive_end(&drive);
}

static void
malformed_ids(void)
{
	static const char *const ids[] = {NULL, "",    "../x", "a/b",  "a?b",  "a b",
	                                  "-a", "ABC", "a.b",  "a%2F", "\xff", "a\n",
	                                  "..", "a_b", "a@b",  "a:b"};

	section("malformed id");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
	{
		SbxTarget target = {.sandbox_id = ids[i]};
		SbxScriptTarget script = {.session_id = "run-1", .command_id = "c"};
		SbxRunInput run = plain_run("x");
		SbxUploadInput upload = {.path = "a", .bytes = "", .boundary = "b"};
		const SbxAccount *with = e2b_account();
		SbxOp *ops[] = {sbx_kind_e2b.get(with, &target),
		                sbx_kind_e2b.wait_ready(with, &target, 0),
		                sbx_kind_e2b.start(with, &target, 0),
		                sbx_kind_e2b.stop(with, &target, 0),
		                sbx_kind_e2b.run_script(with, &target, &run),
		                sbx_kind_e2b.start_script(with, &target, &run),
		                sbx_kind_e2b.script_status(with, &target, &script),
		                sbx_kind_e2b.script_logs(with, &target, &script),
		                sbx_kind_e2b.upload(with, &target, &upload),
		                sbx_kind_e2b.download(with, &target, "a", 10),
		                sbx_kind_e2b.destroy(with, &target, 0)};

		for (size_t j = 0; j < sizeof(ops) / sizeof(ops[0]); j++)
		{
			Drive drive;

			drive_start(&drive, ops[j]);
			fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "%s: is not sent",
			      drive.op->operation);
			drive_end(&drive);
		}
	}
}

/* --- find ----------------------------------------------------------------- */

#define FIRST                                                                          \
	E2B_API "/v2/sandboxes?metadata=k%3Dv&state=running%2Cpaused&limit=100&order=asc"

static Drive
finding(void)
{
	static const SbxPair label = {"k", "v"};
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), &label, 1));
	return drive;
}

static void
find(void)
{
	static const SbxPair odd[] = {{"app name", "a b&c=d/\xc3\xa9"}, {"k", "100%"}};
	static const SbxPair bad = {"k", ""};
	const SbxFindResult *found;
	Drive drive = finding();

	section("find");
	asks(&drive, "GET", FIRST, "first page");
	drive_headed(
	    &drive, 200, "X-Next-Token: a b+/=\r\n",
	    "[" E2B_DTO("running") ",{\"sandboxID\":\"ib\",\"state\":\"paused\"}]");
	asks(&drive, "GET", FIRST "&nextToken=a%20b%2B%2F%3D", "second page");
	drive_headed(&drive, 200, "x-next-token: second\r\n",
	             "[{\"sandboxID\":\"ib\"},{\"sandboxID\":\"ia\"}]");
	asks(&drive, "GET", FIRST "&nextToken=second", "third page");
	drive_headed(&drive, 200, "X-Next-Token: \r\n", "[]");
	found = drive.op->result;
	is_number(drive.op->succeeded ? found->count : -1, 3, "each one once");
	is_text(found->sandboxes[2].sandbox_id, "ib", "one of them");
	is_number(found->sandboxes[0].label_count,
	          2 * (found->sandboxes[0].label_count > 0), "labels");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), odd, 2));
	asks(&drive, "GET",
	     E2B_API "/v2/sandboxes?metadata=app%252520name%3Da%252520b%252526c%25253Dd"
	             "%25252F%2525C3%2525A9%26k%3D100%252525&state=running%2Cpaused"
	             "&limit=100&order=asc",
	     "encoded three times");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), NULL, 0));
	asks(&drive, "GET",
	     E2B_API "/v2/sandboxes?state=running%2Cpaused&limit=100&order=asc",
	     "an empty filter is left out");
	drive_answer(&drive, 200, "[]");
	found = drive.op->result;
	is_number(drive.op->succeeded ? found->count : -1, 0, "none");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), &bad, 1));
	asks(&drive, "GET",
	     E2B_API
	     "/v2/sandboxes?metadata=k%3D&state=running%2Cpaused&limit=100&order=asc",
	     "an empty value");
	drive_end(&drive);
}

/* A listing never shrinks: what cannot be read to its end fails. */
static void
find_fails(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {{400, "", SBX_PHASE_REMOTE, NULL},
	            {401, "", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	            {404, "", SBX_PHASE_REMOTE, NULL},
	            {204, "", SBX_PHASE_REMOTE, NULL},
	            {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	            {200, "", SBX_PHASE_PROTOCOL, NULL},
	            {200, "[{}]", SBX_PHASE_PROTOCOL, NULL},
	            {200, "[null]", SBX_PHASE_PROTOCOL, NULL},
	            {200, "[{\"sandboxID\":\"../x\"}]", SBX_PHASE_PROTOCOL, NULL},
	            {200, "[{\"sandboxID\":\"ia\"}", SBX_PHASE_PROTOCOL, NULL}};
	char token[40];
	Drive drive;

	section("find fails");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = finding();
		drive_headed(&drive, 200, "X-Next-Token: t\r\n", "[]");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, UNKNOWN, "%d %s",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = finding();
	drive_headed(&drive, 200, "X-Next-Token: t\r\n", "[]");
	drive_headed(&drive, 200, "X-Next-Token: u\r\n", "[]");
	drive_headed(&drive, 200, "X-Next-Token: t\r\n", "[]");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "round in a circle");
	drive_end(&drive);

	drive = finding();
	for (int i = 0; i < 1000 && drive.want == SBX_OP_WANT_HTTP; i++)
	{
		snprintf(token, sizeof(token), "X-Next-Token: t%d\r\n", i);
		drive_headed(&drive, 200, token, "[]");
	}
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "no end");
	drive_end(&drive);

	drive = finding();
	for (int i = 0; i < 2; i++)
	{
		drive_answer(&drive, i == 0 ? 503 : 429, "");
		pauses(&drive, 250, "trouble is met again");
		drive_pause_over(&drive);
		asks(&drive, "GET", FIRST, "the same page");
	}
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "three times is enough");
	drive_end(&drive);
	drive = finding();
	drive_headed(&drive, 200, "X-Next-Token: t\r\n", "[]");
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out, "half of it is none");
	drive_end(&drive);
}

void
test_e2b_look(void)
{
	get();
	get_fails();
	malformed_ids();
	find();
	find_fails();
}
