/*
 * test_freestyle_traps.c
 *		What Freestyle does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE

static bool
sends(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

static Drive
refused(int status, const char *body)
{
	Drive drive = freestyle_creating();

	drive_answer(&drive, status, body);
	return drive;
}

static void
what_a_refusal_means(void)
{
	Drive drive = refused(409, FREESTYLE_ERROR("CONFLICT"));

	section("Freestyle: 409 of a create is no slug that is taken by itself");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 409, "CAPACITY", NONE, "nothing has it: no room");
	drive_end(&drive);
	section("Freestyle: 404 of a create is the snapshot");
	drive = refused(404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 404, "SNAPSHOT_NOT_FOUND", NONE, "nothing is gone");
	drive_end(&drive);
	section("Freestyle: 429 has two meanings");
	drive = refused(429, FREESTYLE_ERROR("LIMIT_EXCEEDED"));
	fails(&drive, SBX_PHASE_REMOTE, 429, "CAPACITY", NONE, "nobody waits for a month");
	drive_end(&drive);
	drive = refused(429, FREESTYLE_ERROR("RATE_LIMITED"));
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", NONE, "the other one");
	drive_end(&drive);
	section("Freestyle: reads work on an account that is blocked");
	drive = refused(403, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 403, "FORBIDDEN", NONE, "a create says it");
	drive_end(&drive);
}

static void
later(void)
{
	Drive drive = refused(202, FREESTYLE_LATER);

	section("Freestyle: 202 is no success");
	ok(drive.want == SBX_OP_WANT_PAUSE && !drive.op->succeeded, "it goes on");
	drive_pause_over(&drive);
	section("Freestyle: an error of the asking is not the create's");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_PROTOCOL, 0, "RESULT_LOST", UNKNOWN, "nothing is proven");
	drive_end(&drive);
	section("Freestyle: two 503 differ by one header");
	drive = refused(202, FREESTYLE_LATER);
	drive_pause_over(&drive);
	drive_answer(&drive, 503, "");
	ok(drive.want == SBX_OP_WANT_PAUSE, "without it: asked again");
	drive_pause_over(&drive);
	drive_headed(&drive, 503, FREESTYLE_OF, "");
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, UNKNOWN, "with it: the create's own");
	drive_end(&drive);
	section("Freestyle: an answer elsewhere would get the key");
	drive =
	    refused(202, "{\"requestId\":\"ri-1\",\"resultUrl\":"
	                 "\"http://other-origin.example/v5/background-requests/ri-1\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 0, "RESULT_URL_REFUSED", UNKNOWN,
	      "nothing goes there");
	drive_end(&drive);
	section("Freestyle: to hang up cancels nothing");
	drive = freestyle_creating();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "a create goes on");
	drive_end(&drive);
}

static void
what_is_said(void)
{
	static const SbxPair label = {"firewall", "{\"rules\":[]}"};
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("Freestyle: a wrong rule is found after the boot");
	drive = refused(400, FREESTYLE_ERROR("BAD_REQUEST"));
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	fails(&drive, SBX_PHASE_REMOTE, 400, "BAD_REQUEST", SBX_ALLOCATION_MADE,
	      "what was made is known, and destroyed");
	is_text(drive.op->sandbox_id, FREESTYLE_ID, "by its id");
	drive_end(&drive);
	input.labels = &label;
	input.label_count = 1;
	freestyle_account();
	drive_start(&drive, sbx_kind_freestyle.launch(&account.account, &input));
	ok(sends(&drive, "\"firewall\":{\"rules\":[{\"action\":\"allow\",\"source\":{},"
	                 "\"destination\":{\"public\":true}}]}}"),
	   "nothing of the caller's is in the rules");
	drive_end(&drive);
	section("Freestyle: no rule is no network");
	account_boolean(&account, "internet", false);
	drive_start(&drive, sbx_kind_freestyle.launch(&account.account, &input));
	ok(sends(&drive, "\"firewall\":{\"rules\":[]}}"),
	   "which is only sent when it is set");
	drive_end(&drive);
	drive = freestyle_creating();
	section("Freestyle: a slug has no underscore");
	ok(sends(&drive, "{\"slug\":\"" FREESTYLE_SLUG "\""), "it has hyphens");
	ok(!sends(&drive, "reassignSlug"), "and is never taken from its holder");
	section("Freestyle: what is left out may not mean never");
	ok(sends(&drive, "\"idleTimeoutSeconds\":-1"), "never is said");
	section("Freestyle: a machine starts again after a crash");
	ok(sends(&drive, "\"automaticRestart\":false"), "this one does not");
	section("Freestyle: a create has no size");
	ok(!sends(&drive, "cpu") && !sends(&drive, "memory"), "the snapshot has it");
	section("Freestyle: a create is answered with 201");
	drive_answer(&drive, 201, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "or with 200");
	drive_end(&drive);
}

static void
windows(void)
{
	Drive drive;

	section("Freestyle: some windows delete");
	freestyle_account();
	account_integer(&account, "autoDeleteSeconds", 0);
	drive_start(&drive,
	            sbx_kind_freestyle.stop(&account.account, &freestyle_target, 0));
	fails(&drive, SBX_PHASE_NONE, 0, "STOP_WOULD_DESTROY", UNKNOWN,
	      "a stop that would is refused");
	drive_end(&drive);
	section("Freestyle: a paused machine wakes by itself");
	drive_start(&drive, sbx_kind_freestyle.download(freestyle_account(),
	                                                &freestyle_target, "/a", 10));
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN, "not by us");
	drive_end(&drive);
}

static void
scripts(void)
{
	char *command = calloc(70 * 1024, 1);
	SbxRunInput input = plain_run("x");
	Drive drive = freestyle_running("x");

	section("Freestyle: no exit code is the timeout");
	drive_answer(&drive, 200, "{\"stdout\":\"before\",\"statusCode\":null}");
	drive_answer(&drive, 200, "{\"statusCode\":1}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "TIMEOUT", UNKNOWN, "and no success");
	ok(drive.op->failure.timed_out, "out of time");
	drive_end(&drive);
	section("Freestyle: a command has 30 s unless it says otherwise");
	drive = freestyle_running("x");
	ok(sends(&drive, "\"timeoutMs\":"), "it always says");
	drive_end(&drive);
	section("Freestyle: 64 KiB for a command");
	memset(command, 'x', 70 * 1024 - 1);
	drive = freestyle_running(command);
	ok(strstr(drive.op->request.url, "/fs/write?") != NULL, "more goes through a file");
	section("Freestyle: permissions are decimal");
	ok(strstr(drive.op->request.url, "&mode=448") != NULL, "0700");
	drive_end(&drive);
	free(command);
	section("Freestyle: no directory of a command");
	input.cwd = "/it's";
	drive = freestyle_opened(
	    sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target, &input));
	ok(!sends(&drive, "\"cwd\"") && sends(&drive, "|| exit $?; "), "it is in the text");
	drive_end(&drive);
	section("Freestyle: a result that cannot be kept");
	drive = freestyle_running("x");
	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive_pause_over(&drive);
	drive_headed(&drive, 500, FREESTYLE_OF,
	             FREESTYLE_ERROR("BACKGROUND_RESULT_UNSTORABLE"));
	fails(&drive, SBX_PHASE_REMOTE, 500, "OUTPUT_TOO_LARGE", UNKNOWN,
	      "it has run, and is not run again");
	drive_end(&drive);
}

static void
lists(void)
{
	SbxUploadInput input = {.path = "/a+b", .bytes = "x", .length = 1, .boundary = "x"};
	Drive drive;

	section("Freestyle: a plus in a path");
	drive = freestyle_opened(
	    sbx_kind_freestyle.upload(freestyle_account(), &freestyle_target, &input));
	ok(strstr(drive.op->request.url, "path=%2Fa%2Bb") != NULL, "is encoded");
	drive_end(&drive);
	section("Freestyle: sizes are MiB");
	drive_start(&drive, sbx_kind_freestyle.usage(freestyle_account(), 1000));
	drive_answer(&drive, 200, FREESTYLE_LIST(FREESTYLE_DTO("running"), "2"));
	section("Freestyle: pages by the rows that came");
	asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=1", "not by the limit");
	drive_answer(&drive, 200, FREESTYLE_LIST("", "2"));
	asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=0",
	     "and no list before it is whole");
	drive_answer(&drive, 200, FREESTYLE_LIST(FREESTYLE_DTO("running"), "1"));
	ok(drive.op->succeeded && ((SbxUsage *) drive.op->result)->memory_mib == 8192 &&
	       ((SbxUsage *) drive.op->result)->disk_mib == 32768,
	   "as they are");
	drive_end(&drive);
}

void
test_freestyle_traps(void)
{
	what_a_refusal_means();
	later();
	what_is_said();
	windows();
	scripts();
	lists();
}
