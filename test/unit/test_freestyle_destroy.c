/*
 * test_freestyle_destroy.c
 *		Deleting a Freestyle machine: by its id, and by its slug when nobody told the id.
 */
#include <stdlib.h>

#include "unit.h"

#define NONE SBX_ALLOCATION_UNKNOWN

static Drive
deleting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.destroy(freestyle_account(),
	                                               &freestyle_target, 60000));
	return drive;
}

static Drive
looking_up(const char *token)
{
	SbxTarget target = {.unique_name = NAME, .launch_token = token};
	Drive drive;

	drive_start(&drive,
	            sbx_kind_freestyle.destroy(freestyle_account(), &target, 60000));
	return drive;
}

static bool
ended(const Drive *drive, SbxDestroyResult result)
{
	return drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded &&
	       *(SbxDestroyResult *) drive->op->result == result;
}

/* --- by its id ------------------------------------------------------------------------- */

static void
by_id(void)
{
	Drive drive = deleting();

	asks(&drive, "DELETE", FREESTYLE_VM, "deleted");
	ok(drive.op->request.repeatable, "as often as it takes");
	is_freestyle_key_kept(&drive, "delete");
	drive_answer(&drive, 204, "");
	asks(&drive, "GET", FREESTYLE_VM, "is it gone?");
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	pauses(&drive, 200, "must fire: not yet");
	drive_pause_over(&drive);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(ended(&drive, SBX_DESTROY_DONE), "now it is");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(ended(&drive, SBX_DESTROY_WAS_GONE), "it was gone");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 500, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(ended(&drive, SBX_DESTROY_DONE), "gone after trouble: that was us");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 429, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(ended(&drive, SBX_DESTROY_WAS_GONE), "gone after a throttled one: it was not");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out &&
	       strcmp(drive.op->failure.provider_code, "STILL_THERE") == 0,
	   "must fire: a success that deletes nothing is none");
	drive_end(&drive);
}

static void
refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{401, FREESTYLE_ERROR("INVALID_API_KEY"), "UNAUTHORIZED"},
	            {403, "{}", "FORBIDDEN"},
	            {404, "<html>", NULL},
	            {404, FREESTYLE_ERROR("ROUTE_NOT_FOUND"), "ROUTE_NOT_FOUND"},
	            {400, "{}", "BAD_REQUEST"}};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = deleting();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, NONE,
		      "must fire: %d %s is not gone", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = deleting();
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE,
	      "must fire: nor when nobody may look");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 409, FREESTYLE_ERROR("CONFLICT"));
	pauses(&drive, 200, "busy: later");
	drive_pause_over(&drive);
	asks(&drive, "DELETE", FREESTYLE_VM, "once more");
	drive_end(&drive);
	drive = deleting();
	for (int i = 0; i < 8 && drive.want != SBX_OP_WANT_NOTHING; i++)
	{
		drive_answer(&drive, 503, "");
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
	}
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, NONE, "too much trouble is the end");
	drive_end(&drive);
}

/* --- by its slug --------------------------------------------------------------------------- */

#define LAUNCHED(token)                                                                \
	"{\"id\":\"" FREESTYLE_ID "\",\"state\":\"running\",\"slug\":\"" FREESTYLE_SLUG    \
	"\",\"metadata\":{\"sbx-router-id\":\"" NAME "\",\"sbx-router-launch\":\"" token   \
	"\"}}"

static void
by_slug(void)
{
	Drive drive = looking_up(NULL);

	asks(&drive, "GET", FREESTYLE_BY_SLUG, "looked up");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	pauses(&drive, 200, "must fire: it may be there later");
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_BY_SLUG, "once more");
	drive_answer(&drive, 200, FREESTYLE_DTO("starting"));
	asks(&drive, "DELETE", FREESTYLE_VM, "found, and deleted by its id");
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(ended(&drive, SBX_DESTROY_DONE), "must not fire: now its absence counts");
	drive_end(&drive);
	drive = looking_up(NULL);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	drive_expire(&drive);
	ok(!drive.op->succeeded &&
	       strcmp(drive.op->failure.provider_code, "NOT_FOUND_YET") == 0,
	   "time is over, and nothing is proven");
	drive_end(&drive);
}

static void
whose(void)
{
	static const struct
	{
		const char *name;
		const char *token;
		const char *found;
		const char *outcome; /* NULL = it is deleted */
	} rows[] = {
	    {"ours", "token", LAUNCHED("token"), NULL},
	    {"another launch's", "token", LAUNCHED("other"), "gone"},
	    {"another launch's, ours has no token", NULL, LAUNCHED("other"), "gone"},
	    {"one without a token", "token", FREESTYLE_DTO("running"), "gone"},
	    {"a stranger's", NULL,
	     "{\"id\":\"vm-2\",\"state\":\"running\",\"slug\":\"" FREESTYLE_SLUG
	     "\",\"metadata\":{}}",
	     "NOT_OURS"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = looking_up(rows[i].token);

		drive_answer(&drive, 200, rows[i].found);
		if (rows[i].outcome == NULL)
			asks(&drive, "DELETE", FREESTYLE_VM, "must fire: %s", rows[i].name);
		else if (strcmp(rows[i].outcome, "gone") == 0)
			ok(ended(&drive, SBX_DESTROY_WAS_GONE), "must not fire: %s", rows[i].name);
		else
			fails(&drive, SBX_PHASE_REMOTE, 200, rows[i].outcome, NONE,
			      "must not fire: %s", rows[i].name);
		drive_end(&drive);
	}
}

static void
told_later(void)
{
	SbxTarget target = {.unique_name = NAME};
	SbxOp *op = sbx_kind_freestyle.destroy(freestyle_account(), &target, 60000);
	Drive drive;

	strcpy(op->sandbox_id, FREESTYLE_ID);
	drive_start(&drive, op);
	asks(&drive, "DELETE", FREESTYLE_VM, "an id that was written to it counts");
	drive_end(&drive);
	op = sbx_kind_freestyle.destroy(freestyle_account(), &target, 60000);
	strcpy(op->sandbox_id, "../x");
	drive_start(&drive, op);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "if it is one");
	drive_end(&drive);
	target.unique_name = "Not-A-Slug";
	drive_start(&drive,
	            sbx_kind_freestyle.destroy(freestyle_account(), &target, 60000));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
	      "a name that no slug can be made of");
	drive_end(&drive);
}

/* Prepared before the launch, used in an abort callback. */
static void
one_block(void)
{
	Drive drive = deleting();
	const void *block = drive.op->arena.blocks;

	for (int i = 0; i < 200; i++)
	{
		drive_answer(&drive, 409, FREESTYLE_ERROR("CONFLICT"));
		drive_pause_over(&drive);
	}
	ok(drive.op->arena.blocks == block, "however long it takes, one block is enough");
	drive_end(&drive);
	drive = looking_up(NULL);
	block = drive.op->arena.blocks;
	for (int i = 0; i < 200; i++)
	{
		drive_answer(&drive, 404, FREESTYLE_GONE);
		drive_pause_over(&drive);
	}
	ok(drive.op->arena.blocks == block, "also when looking up");
	drive_end(&drive);
	drive = deleting();
	block = drive.op->arena.blocks;
	for (int i = 0; i < 40; i++)
	{
		drive_answer(&drive, 202, FREESTYLE_LATER);
		drive_pause_over(&drive);
		drive_headed(&drive, 409, FREESTYLE_OF, FREESTYLE_ERROR("CONFLICT"));
		drive_pause_over(&drive);
	}
	asks(&drive, "DELETE", FREESTYLE_VM, "later, and later");
	ok(drive.op->arena.blocks == block,
	   "also for as many answers that come later as there is time for");
	drive_end(&drive);
}

void
test_freestyle_destroy(void)
{
	section("Freestyle destroy");
	by_id();
	refused();
	by_slug();
	whose();
	told_later();
	one_block();
}
