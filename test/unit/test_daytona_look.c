/*
 * test_daytona_look.c
 *		Looking at one sandbox, and finding all that have some labels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

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
	const SbxSandboxFacts *facts;
	Drive drive = getting(ID, NULL);

	section("get");
	drive_recorded(&drive, "get_gone");
	ok(drive.op->succeeded, "404 is an answer");
	facts = drive.op->result;
	ok(facts->state == SBX_STATE_GONE && facts->label_count == 0,
	   "gone, without facts");
	drive_end(&drive);

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
test_daytona_look(void)
{
	get_states();
	get_answers();
}
