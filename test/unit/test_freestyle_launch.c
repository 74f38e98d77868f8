/*
 * test_freestyle_launch.c
 *		Making a Freestyle machine: what is sent, what is refused, and until it runs.
 */
#include <stdlib.h>

#include "unit.h"

static Drive
launching(SbxLaunchInput input)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.launch(&account.account, &input));
	return drive;
}

static bool
sends(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

static bool
is_refused(SbxLaunchInput input)
{
	Drive drive = launching(input);
	bool refused = drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded &&
	               drive.op->failure.phase == SBX_PHASE_NONE &&
	               drive.op->failure.allocation == SBX_ALLOCATION_NONE;

	drive_end(&drive);
	return refused;
}

/* --- what cannot be carried ------------------------------------------------------ */

static SbxLaunchInput
labelled(const SbxPair *labels, int count)
{
	SbxLaunchInput input = plain_input();

	input.labels = labels;
	input.label_count = count;
	return input;
}

static void
labels(void)
{
	SbxPair label = {"k", "v"};
	SbxPair many[65];
	char longest[64];
	char too_long[65];
	char keys[65][4];

	freestyle_account();
	memset(longest, 'x', sizeof(longest));
	longest[63] = '\0';
	memset(too_long, 'x', sizeof(too_long));
	too_long[64] = '\0';
	label.value = longest;
	ok(!is_refused(labelled(&label, 1)), "must not fire: a value of 63 characters");
	label.value = too_long;
	ok(is_refused(labelled(&label, 1)), "must fire: one of 64");
	label = (SbxPair){too_long, "v"};
	ok(is_refused(labelled(&label, 1)), "must fire: a key of 64");
	label = (SbxPair){"k", ""};
	ok(is_refused(labelled(&label, 1)), "must fire: an empty value");
	label = (SbxPair){"", "v"};
	ok(is_refused(labelled(&label, 1)), "must fire: an empty key");
	label = (SbxPair){"k", "\xff"};
	ok(is_refused(labelled(&label, 1)), "must fire: no UTF-8");
	for (int i = 0; i < 65; i++)
	{
		keys[i][0] = 'k';
		keys[i][1] = (char) ('0' + i / 10);
		keys[i][2] = (char) ('0' + i % 10);
		keys[i][3] = '\0';
		many[i] = (SbxPair){keys[i], "v"};
	}
	ok(!is_refused(labelled(many, 64)), "must not fire: 64 labels");
	ok(is_refused(labelled(many, 65)), "must fire: 65");
}

static void
names(void)
{
	SbxPair name = {"sbx-router-name", "job-7"};
	char too_long[70];
	SbxLaunchInput input = labelled(&name, 1);
	Drive drive;

	freestyle_account();
	drive = launching(input);
	ok(sends(&drive, "\"displayName\":\"job-7\"") &&
	       sends(&drive, "\"metadata\":{\"sbx-router-name\":\"job-7\"}"),
	   "a name is shown, and a label");
	drive_end(&drive);
	memset(too_long, 'n', sizeof(too_long));
	too_long[69] = '\0';
	name.value = too_long;
	drive = launching(input);
	ok(sends(&drive, "\"displayName\":\"nnn") && sends(&drive, "\"metadata\":{}"),
	   "one that is too long for a label is only shown");
	drive_end(&drive);
	input = plain_input();
	input.unique_name = "Sbx_1";
	ok(is_refused(input), "must fire: no slug has capitals");
	input.unique_name = "sbx__1";
	ok(is_refused(input), "must fire: nor two hyphens in a row");
	input.unique_name = "sbx_";
	ok(is_refused(input), "must fire: nor one at its end");
	input.unique_name = too_long;
	ok(is_refused(input), "must fire: nor more than 63 characters");
	input.unique_name = "sbx_1";
	ok(!is_refused(input), "must not fire: one like ours");
}

static void
environment(void)
{
	static const SbxPair env = {"A", "b"};
	SbxLaunchInput input = plain_input();

	freestyle_account();
	input.env = &env;
	input.env_count = 1;
	ok(is_refused(input), "must fire: there is no environment at launch");
	is_number(sbx_kind_freestyle.max_launch_env, 0, "and the kind says so");
	account.credentials[0] = NULL;
	ok(is_refused(plain_input()), "must fire: no key");
}

/* --- settings ---------------------------------------------------------------------- */

static void
settings(void)
{
	Drive drive;

	freestyle_account();
	drive = launching(plain_input());
	ok(sends(&drive, "\"destination\":{\"public\":true}"), "the internet by default");
	ok(!sends(&drive, "snapshotId") && !sends(&drive, "ttlSeconds") &&
	       !sends(&drive, "autoDeleteSeconds"),
	   "what is not set is not sent");
	is_text(sent_header(drive.op, "X-Freestyle-Background-After-Secs"), "5",
	        "it may be answered later");
	ok(!drive.op->request.repeatable, "it is delivered once");
	drive_end(&drive);
	account_integer(&account, "idleTimeoutSeconds", 60);
	account_integer(&account, "ttlSeconds", 3600);
	account_integer(&account, "autoDeleteSeconds", 0);
	account_boolean(&account, "internet", false);
	account_text(&account, "snapshot", "sh-1");
	account_text(&account, "apiUrl", "https://other.example/base/");
	drive = launching(plain_input());
	asks(&drive, "POST", "https://other.example/base/v5/vms", "to the address set");
	ok(sends(&drive, "\"idleTimeoutSeconds\":60,\"autoDeleteSeconds\":0,"
	                 "\"ttlSeconds\":3600,"),
	   "windows as they are set");
	ok(sends(&drive, "\"firewall\":{\"rules\":[]}"), "without the internet");
	ok(sends(&drive, "\"snapshotId\":\"sh-1\""), "the snapshot that is set");
	drive_end(&drive);
	freestyle_account();
	account_text(&account, "homeDir", "home");
	is_text(sbx_kind_freestyle.check_settings(account.settings), "homeDir",
	        "must fire: a home directory that is no path");
	account_text(&account, "homeDir", "/root");
	is_text(sbx_kind_freestyle.check_settings(account.settings), NULL,
	        "must not fire: one that is");
}

/* --- until it runs ------------------------------------------------------------------ */

static void
readiness(void)
{
	Drive drive = freestyle_creating();
	const SbxSandboxFacts *facts;

	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	facts = drive.op->result;
	if (ok(drive.op->succeeded && facts != NULL, "one that runs is ready"))
	{
		is_text(facts->sandbox_id, FREESTYLE_ID, "its id");
		is_text(facts->name, FREESTYLE_SLUG, "its slug");
		is_text(facts->created_at, "2026-09-20T10:00:00Z", "when it was made");
		is_number(facts->label_count, 2, "its labels");
	}
	drive_end(&drive);
	drive = freestyle_creating();
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	is_text(drive.op->sandbox_id, FREESTYLE_ID, "the id is known at once");
	pauses(&drive, 100, "one that starts is waited for");
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_VM, "it is looked at");
	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "until it runs");
	drive_end(&drive);
}

static void
failures(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{200, FREESTYLE_DTO("stopped"), "NOT_STARTED"},
	            {200, FREESTYLE_DTO("paused"), "NOT_STARTED"},
	            {404, FREESTYLE_GONE, "SANDBOX_GONE"},
	            {401, "{}", "UNAUTHORIZED"}};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = freestyle_creating();
		drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
		drive_pause_over(&drive);
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_MADE, "while it starts: %d %s", rows[i].status,
		      rows[i].code);
		drive_end(&drive);
	}
	drive = freestyle_creating();
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out &&
	       drive.op->failure.allocation == SBX_ALLOCATION_MADE,
	   "time is over: it is there");
	drive_end(&drive);
	drive = freestyle_creating();
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", SBX_ALLOCATION_MADE,
	      "one that does not run when it is made");
	drive_end(&drive);
}

void
test_freestyle_launch(void)
{
	section("Freestyle launch");
	labels();
	names();
	environment();
	settings();
	readiness();
	failures();
}
