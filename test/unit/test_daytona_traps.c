/*
 * test_daytona_traps.c
 *		What this provider does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include <stdlib.h>

#include "unit.h"

static const SbxTarget by_id = {.sandbox_id = ID};
static const SbxTarget by_name = {.unique_name = NAME};

static void
create(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive = launched();

	section("trap 1");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "a timeout of a create proves nothing");
	drive_end(&drive);
	input.detached = true;
	drive_start(&drive, sbx_kind_daytona.launch(account_reset(&account), &input));
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	asks(&drive, "GET", API "/sandbox/" NAME, "the name finds what was made");
	drive_end(&drive);

	section("trap 2");
	drive = launched();
	drive_answer(&drive, 400, "{\"message\":\"Total CPU limit exceeded.\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, "CAPACITY", SBX_ALLOCATION_NONE,
	      "400 can be a lack of capacity");
	drive_end(&drive);
	drive = launched();
	drive_answer(&drive, 400, "{\"message\":\"Snapshot x not found\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, "SNAPSHOT_NOT_FOUND", SBX_ALLOCATION_NONE,
	      "400 can be a bad request");
	drive_end(&drive);
	drive = launched();
	drive_answer(
	    &drive, 400,
	    "{\"message\":\"Sandbox failed to start: Total CPU limit exceeded.\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, "START_FAILED", SBX_ALLOCATION_UNKNOWN,
	      "400 can be a sandbox that was made");
	drive_end(&drive);
	drive = launched();
	drive_answer(&drive, 400, "{\"message\":\"something else\"}");
	fails(&drive, SBX_PHASE_REMOTE, 400, NULL, SBX_ALLOCATION_UNKNOWN,
	      "400 with another text is unknown");
	drive_end(&drive);

	section("trap 6");
	for (int detached = 0; detached < 2; detached++)
	{
		input = plain_input();
		input.detached = detached;
		account_reset(&account);
		account_text(&account, "snapshot", "mine");
		drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
		drive_answer(&drive, 400, "{\"message\":\"Snapshot mine not found\"}");
		fails(&drive, SBX_PHASE_REMOTE, 400, "SNAPSHOT_NOT_FOUND", SBX_ALLOCATION_NONE,
		      "no other snapshot is taken for a missing one, detached %d", detached);
		drive_end(&drive);
	}
	drive = launched();
	drive_answer(&drive, 404, "{\"message\":\"Region not found\"}");
	fails(&drive, SBX_PHASE_REMOTE, 404, "REGION_NOT_FOUND", SBX_ALLOCATION_NONE,
	      "404 is the region, not the snapshot");
	drive_end(&drive);

	section("trap 7");
	account_reset(&account);
	account_text(&account, "image", "debian:12");
	account_integer(&account, "createParams.memory", 4);
	account_integer(&account, "createParams.autoStopInterval", 5);
	input = plain_input();
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	ok(strstr(drive.op->request.body, "\"memory\":4,\"autoStopInterval\":5") != NULL,
	   "GiB and minutes are sent as declared");
	drive_end(&drive);

	section("trap 10");
	drive = launched();
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "GET", SANDBOX, "a create's own state is not believed");
	drive_answer(&drive, 200, DTO("unknown"));
	pauses(&drive, 100, "unknown is no error");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 502, "");
	pauses(&drive, 250, "started is not ready");
	drive_end(&drive);

	section("trap 14");
	drive = launched();
	drive_answer(&drive, 200, "<!doctype html><html></html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "200 with a web page is no sandbox");
	drive_end(&drive);
}

static void
lifecycle(void)
{
	Drive drive;

	section("trap 3");
	drive_start(&drive,
	            sbx_kind_daytona.destroy(account_reset(&account), &by_id, 60000));
	drive_recorded(&drive, "destroy_conflict");
	pauses(&drive, 200, "delete right after create is 409 and retried");
	drive_pause_over(&drive);
	asks(&drive, "DELETE", SANDBOX, "neither failure nor success");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_daytona.stop(account_reset(&account), &by_id, 0));
	drive_answer(&drive, 200,
	             "{\"id\":\"" ID "\",\"state\":\"started\",\"autoDeleteInterval\":0}");
	fails(&drive, SBX_PHASE_NONE, 200, "STOP_WOULD_DESTROY", SBX_ALLOCATION_UNKNOWN,
	      "stop on an ephemeral sandbox is refused");
	drive_end(&drive);

	section("trap 8");
	drive_start(&drive, sbx_kind_daytona.find(account_reset(&account),
	                                          (SbxPair[]){{"k", "v"}, {"l", "w"}}, 2));
	asks(&drive, "GET",
	     API "/sandbox?limit=200&labels=%7B%22k%22%3A%22v%22%2C%22l%22%3A%22w%22%7D"
	         "&sort=createdAt&order=asc",
	     "labels are one JSON string; states are not filtered");
	drive_end(&drive);

	section("trap 12");
	drive_start(&drive, sbx_kind_daytona.destroy(account_reset(&account), &by_name, 0));
	asks(&drive, "GET", API "/sandbox/" NAME, "absence is not looked for in a listing");
	drive_answer(&drive, 404, "{}");
	pauses(&drive, 200, "nor proven by one look");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_daytona.find(account_reset(&account), NULL, 0));
	ok(strstr(drive.op->request.url, "sort=createdAt&order=asc") != NULL,
	   "pages are in a stable order");
	drive_answer(&drive, 200, "{\"items\":[{\"id\":\"a\"}],\"nextCursor\":\"c\"}");
	drive_answer(&drive, 200, "{\"items\":[{\"id\":\"a\"}],\"nextCursor\":null}");
	is_number(((SbxFindResult *) drive.op->result)->count, 1, "repeats count once");
	drive_end(&drive);
}

static void
scripts(void)
{
	SbxRunInput input = plain_run("exit 3");
	Drive drive;
	json_t *body;

	section("trap 4");
	drive =
	    opened(sbx_kind_daytona.run_script(account_reset(&account), &by_id, &input));
	drive_recorded(&drive, "session_create");
	body = sbx_json_parse(drive.op->request.body, drive.op->request.body_length, false);
	ok(strstr(sbx_json_string(body, "command"),
	          "exec $sbx_group \"$sbx_shell\" -c '") != NULL,
	   "`exit` ends a child, not the session's shell");
	json_decref(body);
	section("trap 13");
	ok(drive.op->request.chunked && !drive.op->request.repeatable,
	   "a body without a length is not replayed by the proxy");
	section("trap 4");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "a timeout kills the command");
	drive_end(&drive);
	drive =
	    opened(sbx_kind_daytona.run_script(account_reset(&account), &by_id, &input));

	section("trap 9");
	drive_answer(&drive, 201, "");
	asks(&drive, "POST", SANDBOX_BOX "/process/session/run-1/exec", "201 is a session");
	drive_recorded(&drive, "session_exec");
	drive_answer(&drive, 204, "");
	ok(drive.op->succeeded, "204 is a session's end");
	section("trap 4");
	is_text(((SbxRunResult *) drive.op->result)->output, "out\nerr\n",
	        "no framing in the output");
	drive_end(&drive);
	section("trap 9");
	drive = opened(sbx_kind_daytona.download(account_reset(&account), &by_id, "/a", 9));
	asks(&drive, "GET", SANDBOX_BOX "/files/download?path=%2Fa",
	     "no bulk download, whose status says nothing");
	drive_end(&drive);

	section("trap 5");
	drive =
	    opened(sbx_kind_daytona.run_script(account_reset(&account), &by_id, &input));
	drive_answer(&drive, 401, "{}");
	asks(&drive, "GET", SANDBOX, "401 of the toolbox is no verdict on the key");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "the sandbox is gone");
	drive_end(&drive);
	drive_start(&drive,
	            sbx_kind_daytona.run_script(account_reset(&account), &by_id, &input));
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN,
	      "a bad key is tried once, and not in a loop");
	drive_end(&drive);

	section("trap 11");
	drive_start(&drive, sbx_kind_daytona.script_status(
	                        account_reset(&account), &by_id,
	                        &(SbxScriptTarget){.session_id = "s", .command_id = "c"}));
	drive_answer(&drive, 200, DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", SBX_ALLOCATION_UNKNOWN,
	      "a script does not keep its sandbox from stopping, and that is told");
	drive_end(&drive);
	drive = opened(sbx_kind_daytona.script_status(
	    account_reset(&account), &by_id,
	    &(SbxScriptTarget){.session_id = "s", .command_id = "c"}));
	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"lost\\n\"}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "SCRIPT_LOST", SBX_ALLOCATION_UNKNOWN,
	      "also after another start");
	drive_end(&drive);
}

void
test_daytona_traps(void)
{
	create();
	lifecycle();
	scripts();
}
