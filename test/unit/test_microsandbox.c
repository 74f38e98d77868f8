/*
 * test_microsandbox.c
 *		The control plane of Microsandbox, exchange by exchange.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MADE    SBX_ALLOCATION_MADE

#define MICRO_BUSY "{\"error\":{\"code\":\"invalid_state_transition\"}}"

/* --- launch --------------------------------------------------------------- */

static Drive
launching(bool detached)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	input.detached = detached;
	drive_start(&drive, sbx_kind_microsandbox.launch(micro_account(), &input));
	return drive;
}

static void
waiting(void)
{
	Drive drive = launching(false);

	section("microsandbox, launch");
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	asks(&drive, "GET", MICRO_SANDBOX, "does it run?");
	drive_answer(&drive, 200, MICRO_DTO("created"));
	pauses(&drive, 500, "not yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	pauses(&drive, 500, "trouble passes");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: it runs");
	drive_end(&drive);

	drive = launching(false);
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("failed"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", MADE,
	      "must fire: it never will");
	is_text(drive.op->sandbox_id, MICRO_ID, "and it is there");
	drive_end(&drive);

	drive = launching(false);
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", MADE,
	      "must fire: it has stopped");
	drive_end(&drive);

	drive = launching(true);
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_STARTING,
	   "detached: nobody waits");
	drive_end(&drive);
}

static void
input_refused(void)
{
	static const SbxPair bad[] = {{"sandbox.x", "y"},
	                              {"microsandbox.x", "y"},
	                              {"service.x", "y"},
	                              {"", "y"},
	                              {"x", "\xff"}};
	static const SbxPair bad_env[] = {{"", "y"}, {"A=B", "y"}, {"A", "\xff"}};
	static const SbxPair good = {"sandboxes", "y"};
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("microsandbox, input");
	for (size_t i = 0; i < 5; i++)
	{
		input = plain_input();
		input.labels = &bad[i];
		input.label_count = 1;
		drive_start(&drive, sbx_kind_microsandbox.launch(micro_account(), &input));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: label %zu", i);
		ok(i == 4 || !sbx_kind_microsandbox.carries_label(bad[i].key, bad[i].value),
		   "must fire: which routing knows before, %zu", i);
		drive_end(&drive);
	}
	for (size_t i = 0; i < 3; i++)
	{
		input = plain_input();
		input.env = &bad_env[i];
		input.env_count = 1;
		drive_start(&drive, sbx_kind_microsandbox.launch(micro_account(), &input));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: variable %zu", i);
		drive_end(&drive);
	}
	input = plain_input();
	input.labels = &good;
	input.label_count = 1;
	drive_start(&drive, sbx_kind_microsandbox.launch(micro_account(), &input));
	asks(&drive, "POST", MICRO_API "?start=true", "must not fire: a label of ours");
	ok(sbx_kind_microsandbox.carries_label(good.key, good.value),
	   "must not fire: in routing");
	drive_end(&drive);
	micro_account();
	account_text(&account, "pullPolicy", "often");
	is_text(sbx_kind_microsandbox.check_settings(account.settings), "pullPolicy",
	        "must fire: a policy that is none");
	account_text(&account, "pullPolicy", "never");
	is_text(sbx_kind_microsandbox.check_settings(account.settings), NULL,
	        "must not fire: one that is");
}

/* --- looking -------------------------------------------------------------- */

static Drive
asked(SbxOp *(*make)(const SbxAccount *, const SbxTarget *, int64_t))
{
	Drive drive;

	drive_start(&drive, make(micro_account(), &micro_target, 1000));
	return drive;
}

static void
get(void)
{
	static const struct
	{
		const char *dto;
		SbxSandboxState state;
	} rows[] = {
	    {MICRO_DTO("created"), SBX_STATE_STOPPED},
	    {MICRO_DTO("starting"), SBX_STATE_STARTING},
	    {MICRO_DTO("running"), SBX_STATE_STARTED},
	    {MICRO_DTO("stopping"), SBX_STATE_STOPPING},
	    {MICRO_DTO("stopped"), SBX_STATE_STOPPED},
	    {MICRO_DTO("failed"), SBX_STATE_FAILED},
	    {MICRO_DTO("something new"), SBX_STATE_STARTING},
	};
	SbxTarget by_name = {.unique_name = NAME};
	SbxTarget wrong = {.sandbox_id = "demo"};
	Drive drive;

	section("microsandbox, get");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive_start(&drive, sbx_kind_microsandbox.get(micro_account(), &micro_target));
		asks(&drive, "GET", MICRO_SANDBOX, "one look");
		drive_answer(&drive, 200, rows[i].dto);
		is_number(((SbxSandboxFacts *) drive.op->result)->state, rows[i].state,
		          "state %zu", i);
		drive_end(&drive);
	}
	drive_start(&drive, sbx_kind_microsandbox.get(micro_account(), &micro_target));
	drive_micro(&drive, "get by name, missing");
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_GONE,
	   "must not fire: gone is an answer");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.get(micro_account(), &micro_target));
	drive_answer(&drive, 404, "<html>");
	fails(&drive, SBX_PHASE_REMOTE, 404, NULL, UNKNOWN,
	      "must fire: somebody else's 404");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.get(micro_account(), &by_name));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: a name is no id");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.get(micro_account(), &wrong));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: nor is any text");
	drive_end(&drive);
}

static void
find(void)
{
	static const SbxPair label = {"requestedBy", "sbx"};
	const SbxFindResult *result;
	Drive drive;

	section("microsandbox, find");
	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), &label, 1));
	asks(&drive, "GET",
	     MICRO_API "?limit=100&labels=%7B%22requestedBy%22%3A%22sbx%22%7D",
	     "the labels as JSON");
	drive_answer(&drive, 200,
	             "{\"data\":[" MICRO_DTO("running") "],\"next_cursor\":\"MQ==\"}");
	asks(&drive, "GET",
	     MICRO_API
	     "?limit=100&labels=%7B%22requestedBy%22%3A%22sbx%22%7D&cursor=MQ%3D%3D",
	     "the next page");
	drive_answer(&drive, 200,
	             "{\"data\":[" MICRO_DTO("stopped") "],\"next_cursor\":null}");
	result = drive.op->result;
	ok(drive.op->succeeded && result->count == 1, "each once");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	asks(&drive, "GET", MICRO_API "?limit=100", "all of them");
	drive_answer(&drive, 200, "{\"data\":[],\"next_cursor\":\"a\"}");
	drive_answer(&drive, 200, "{\"data\":[],\"next_cursor\":\"a\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "must fire: round and round");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	drive_answer(&drive, 200, "{\"data\":{}}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "must fire: no list");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	drive_answer(&drive, 200, "{\"data\":[],\"next_cursor\":7}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "must fire: no cursor");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	drive_answer(&drive, 200, "{\"data\":[],\"has_more\":true,\"next_cursor\":null}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
	      "must fire: more, and no way to it");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	drive_answer(&drive, 200, "{\"data\":[],\"has_more\":false,\"next_cursor\":null}");
	ok(drive.op->succeeded, "must not fire: no more");
	drive_end(&drive);
}

/* The reading of a listing that has this item. */
static Drive
used(const char *item)
{
	Drive drive;
	char page[1000];

	drive_start(&drive, sbx_kind_microsandbox.usage(micro_account(), 1000));
	snprintf(page, sizeof(page), "{\"data\":[%s]}", item);
	drive_answer(&drive, 200, page);
	return drive;
}

static void
usage(void)
{
	static const char *const malformed[] = {
	    "{\"id\":\"" MICRO_ID "\",\"spec\":[]}",
	    "{\"id\":\"" MICRO_ID "\",\"spec\":{}}",
	    "{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":null}}",
	    "{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":{\"vcpus\":\"2\"}}}",
	    "{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":{\"vcpus\":-2}}}",
	    "{\"spec\":null}"};
	const SbxUsage *sum;
	Drive drive;

	section("microsandbox, usage");
	drive_start(&drive, sbx_kind_microsandbox.usage(micro_account(), 1000));
	asks(&drive, "GET", MICRO_API "?limit=100", "in all states");
	drive_answer(&drive, 200,
	             "{\"data\":[{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":"
	             "{\"vcpus\":2,\"memory_mib\":512,\"disk_size_mib\":4096}}}]}");
	sum = drive.op->result;
	ok(drive.op->succeeded && sum->cpu == 2 && sum->memory_mib == 512 &&
	       sum->disk_mib == 4096 && sum->sandboxes == 1,
	   "must not fire: added up");
	drive_end(&drive);
	drive = used(MICRO_DTO("running"));
	sum = drive.op->result;
	ok(drive.op->succeeded && sum->cpu == 2 && sum->memory_mib == 1024 &&
	       sum->sandboxes == 1 && !sum->cpu_untold && !sum->memory_untold,
	   "must not fire: without a size of its disk the rest counts");
	ok(sum->disk_untold, "must fire: of disks there is no sum");
	drive_end(&drive);
	drive = used("{\"id\":\"" MICRO_ID "\",\"spec\":null}");
	sum = drive.op->result;
	ok(drive.op->succeeded && sum->sandboxes == 1,
	   "must not fire: nothing told yet, but it is one");
	ok(sum->cpu_untold && sum->memory_untold && sum->disk_untold,
	   "must fire: of nothing else there is a sum");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
	{
		drive = used(malformed[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", UNKNOWN, "must fire: %s",
		      malformed[i]);
		drive_end(&drive);
	}
}

/* --- power ---------------------------------------------------------------- */

static void
ready(void)
{
	Drive drive = asked(sbx_kind_microsandbox.wait_ready);

	section("microsandbox, ready");
	asks(&drive, "GET", MICRO_SANDBOX, "look");
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	pauses(&drive, 500, "again");
	drive_expire(&drive);
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_STARTING,
	   "must not fire: not yet");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.wait_ready);
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN,
	      "must fire: not by itself");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.wait_ready);
	drive_answer(&drive, 404, MICRO_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", UNKNOWN, "must fire: gone");
	drive_end(&drive);
}

static void
start(void)
{
	Drive drive = asked(sbx_kind_microsandbox.start);

	section("microsandbox, start");
	asks(&drive, "POST", MICRO_SANDBOX "/start", "at once");
	is_text(drive.op->request.body, "{}", "an empty object");
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	asks(&drive, "GET", MICRO_SANDBOX, "does it run?");
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	pauses(&drive, 500, "not started yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: it does");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.start);
	drive_answer(&drive, 409, MICRO_BUSY);
	asks(&drive, "GET", MICRO_SANDBOX, "it may run already");
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: it did");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.start);
	drive_answer(&drive, 409, MICRO_BUSY);
	drive_answer(&drive, 200, MICRO_DTO("stopping"));
	pauses(&drive, 500, "on its way to a stop");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	pauses(&drive, 100, "stopped by now");
	drive_pause_over(&drive);
	asks(&drive, "POST", MICRO_SANDBOX "/start", "told again");
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: it runs after its stop");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.start);
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN,
	      "must fire: stopped after its start");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.start);
	drive_answer(&drive, 409, MICRO_BUSY);
	drive_answer(&drive, 200, MICRO_DTO("failed"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", UNKNOWN,
	      "must fire: failed");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.start);
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "must fire: refused");
	drive_end(&drive);
}

static void
stop(void)
{
	Drive drive = asked(sbx_kind_microsandbox.stop);

	section("microsandbox, stop");
	asks(&drive, "GET", MICRO_SANDBOX, "may it be stopped?");
	drive_answer(&drive, 200, MICRO_DTO("running"));
	asks(&drive, "POST", MICRO_SANDBOX "/stop", "stop");
	drive_answer(&drive, 200, MICRO_DTO("stopping"));
	pauses(&drive, 100, "that takes a moment");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("stopping"));
	pauses(&drive, 100, "not yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	ok(drive.op->succeeded, "must not fire: stopped");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.stop);
	for (int i = 0; i < 3; i++)
	{
		drive_answer(&drive, 200, MICRO_DTO("running"));
		drive_answer(&drive, 200, MICRO_DTO("running"));
		pauses(&drive, 100, "must fire: one that does not stop is not told in a hurry");
		drive_pause_over(&drive);
	}
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.stop);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID "\",\"status\":\"running\",\"ephemeral\":true}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "STOP_WOULD_DESTROY", UNKNOWN,
	      "must fire: it would be gone");
	drive_end(&drive);
	drive = asked(sbx_kind_microsandbox.stop);
	drive_answer(&drive, 200, MICRO_DTO("running"));
	drive_answer(&drive, 409, MICRO_BUSY);
	pauses(&drive, 100, "must not fire: busy");
	drive_end(&drive);
}

/* --- destroy -------------------------------------------------------------- */

static Drive
destroyed(const char *id, const char *name, const char *token)
{
	SbxTarget target = {.sandbox_id = id, .unique_name = name, .launch_token = token};
	Drive drive;

	drive_start(&drive, sbx_kind_microsandbox.destroy(micro_account(), &target, 60000));
	return drive;
}

static void
destroy(void)
{
	Drive drive = destroyed(MICRO_ID, NULL, NULL);

	section("microsandbox, destroy");
	asks(&drive, "DELETE", MICRO_SANDBOX, "by its UUID, and nothing before");
	drive_micro(&drive, "remove (0.6.16 and later: by id)");
	ok(drive.op->succeeded &&
	       *(SbxDestroyResult *) drive.op->result == SBX_DESTROY_DONE,
	   "done");
	drive_end(&drive);
	drive = destroyed(MICRO_ID, NULL, NULL);
	drive_micro(&drive, "remove, already gone (0.6.16 and later)");
	ok(drive.op->succeeded &&
	       *(SbxDestroyResult *) drive.op->result == SBX_DESTROY_WAS_GONE,
	   "it was gone");
	drive_end(&drive);
	drive = destroyed(MICRO_ID, NULL, NULL);
	drive_answer(&drive, 404, "not here");
	fails(&drive, SBX_PHASE_REMOTE, 404, NULL, UNKNOWN,
	      "must fire: somebody else's 404 is no proof");
	drive_end(&drive);
	drive = destroyed(MICRO_ID, NULL, NULL);
	drive_answer(&drive, 502, "");
	pauses(&drive, 200, "trouble");
	drive_pause_over(&drive);
	drive_answer(&drive, 404, MICRO_GONE);
	ok(drive.op->succeeded &&
	       *(SbxDestroyResult *) drive.op->result == SBX_DESTROY_DONE,
	   "the first try did it");
	drive_end(&drive);
	drive = destroyed(MICRO_ID, NULL, NULL);
	drive_answer(&drive, 409, "{}");
	asks(&drive, "POST", MICRO_SANDBOX "/stop", "one that has to be stopped first");
	drive_answer(&drive, 200, MICRO_DTO("stopping"));
	pauses(&drive, 200, "a while");
	drive_pause_over(&drive);
	asks(&drive, "DELETE", MICRO_SANDBOX, "again");
	drive_answer(&drive, 409, "{}");
	pauses(&drive, 300, "told to stop once only");
	drive_end(&drive);
}

static void
destroy_by_name(void)
{
	static const char untold[] =
	    "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME "\",\"spec\":null}";
	Drive drive = destroyed(NULL, NAME, NULL);

	section("microsandbox, destroy by name");
	asks(&drive, "GET", MICRO_API "/by-name/" NAME, "whose is it?");
	drive_answer(&drive, 404, MICRO_GONE);
	pauses(&drive, 200, "must not fire: the create may be under way");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MICRO_DTO("running"));
	asks(&drive, "DELETE", MICRO_SANDBOX, "must fire: ours, by its UUID");
	drive_end(&drive);
	drive = destroyed(NULL, NAME, NULL);
	drive_answer(&drive, 200, untold);
	asks(&drive, "DELETE", MICRO_SANDBOX,
	     "must fire: without labels yet, but of a name that was drawn for it");
	drive_end(&drive);
	drive = destroyed(NULL, NAME, "token");
	drive_answer(&drive, 200, untold);
	pauses(&drive, 200, "must not fire: a name that was given may be anybody's");
	drive_pause_over(&drive);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME
	             "\",\"spec\":{\"labels\":{\"sbx-router-id\":\"" NAME
	             "\",\"sbx-router-launch\":\"token\"}}}");
	asks(&drive, "DELETE", MICRO_SANDBOX, "must fire: its labels say that it is ours");
	drive_end(&drive);
	drive = destroyed(NULL, NAME, NULL);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID "\",\"name\":\"other\",\"spec\":null}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
	      "must not fire: one of another name");
	drive_end(&drive);
	drive = destroyed(NULL, NAME, "token");
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded &&
	       *(SbxDestroyResult *) drive.op->result == SBX_DESTROY_WAS_GONE,
	   "must not fire: another launch's");
	drive_end(&drive);
	drive = destroyed(NULL, NAME, NULL);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME
	             "\",\"spec\":{\"labels\":{}}}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", UNKNOWN,
	      "must not fire: a stranger's");
	drive_end(&drive);
	drive = destroyed(NULL, NULL, NULL);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: nothing known");
	drive_end(&drive);
}

void
test_microsandbox(void)
{
	waiting();
	input_refused();
	get();
	find();
	usage();
	ready();
	start();
	stop();
	destroy();
	destroy_by_name();
}
