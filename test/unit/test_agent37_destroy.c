/*
 * test_agent37_destroy.c
 *		Deleting Agent37 instances, by id and by metadata.
 */
#include <stdlib.h>
#include <string.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define DELETED "{\"id\":\"x\",\"deleted\":true}"

static Drive
deleting(void)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_agent37.destroy(agent37_account(), &agent37_target, 0));
	return drive;
}

static void
is_destroyed(const Drive *drive, SbxDestroyResult expected, const char *name)
{
	if (ok(drive->op->succeeded, "%s: is success", name))
		is_number(*(const SbxDestroyResult *) drive->op->result, expected, "%s: result",
		          name);
}

static void
by_id(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxDestroyResult then; /* what 404 says afterwards */
	} again[] = {{409, AGENT37_ERROR("try_again"), SBX_DESTROY_WAS_GONE},
	             {429, "", SBX_DESTROY_WAS_GONE},
	             {500, "", SBX_DESTROY_DONE},
	             {502, AGENT37_ERROR("provisioning_failed"), SBX_DESTROY_DONE},
	             {200, "<html>", SBX_DESTROY_DONE},
	             {200, "{\"deleted\":false}", SBX_DESTROY_DONE}};
	Drive drive = deleting();

	section("Agent37 destroy");
	asks(&drive, "DELETE", AGENT37_INSTANCE, "one request");
	ok(drive.op->request.repeatable, "that may be repeated");
	is_agent37_key_kept(&drive, "destroy");
	drive_answer(&drive, 200, DELETED);
	is_destroyed(&drive, SBX_DESTROY_DONE, "200");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 404, AGENT37_ERROR("not_found"));
	is_destroyed(&drive, SBX_DESTROY_WAS_GONE, "404");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
	{
		drive = deleting();
		drive_answer(&drive, again[i].status, again[i].body);
		pauses(&drive, 200, "%d %s: again", again[i].status, again[i].body);
		drive_pause_over(&drive);
		drive_answer(&drive, 404, "");
		is_destroyed(&drive, again[i].then, again[i].body);
		drive_end(&drive);
	}
	drive = deleting();
	drive_answer(&drive, 401, AGENT37_ERROR("invalid_api_key"));
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "a key");
	drive_end(&drive);
	drive = deleting();
	for (int i = 0; i < 7; i++)
	{
		drive_answer(&drive, 200, "<html>");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 200, "<html>");
	ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded,
	   "must not fire: pages that mean nothing are no deletion");
	drive_end(&drive);
}

#define ITEM(id, status, labels)                                                       \
	"{\"id\":\"" id "\",\"status\":\"" status "\",\"metadata\":" labels "}"
#define OURS         "\"sbx-router-id\":\"" NAME "\""
#define TOKEN(token) "\"sbx-router-launch\":\"" token "\""
#define DATA(items)  "{\"data\":[" items "]}"

static Drive
looking_up(void)
{
	SbxTarget target = {.unique_name = NAME, .launch_token = "t1"};
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.destroy(agent37_account(), &target, 0));
	return drive;
}

static void
by_metadata(void)
{
	static const struct
	{
		const char *list;
		bool ours;
	} rows[] = {{DATA(ITEM("a", "running", "{" OURS "," TOKEN("t1") "}")), true},
	            {DATA(ITEM("a", "failed", "{" OURS "," TOKEN("t1") "}")), true},
	            {DATA(ITEM("a", "provisioning", "{" OURS "," TOKEN("t1") "}")), true},
	            {DATA(ITEM("b", "running", "{" OURS "," TOKEN("t2") "}") "," ITEM(
	                 "a", "running", "{" OURS "," TOKEN("t1") "}")),
	             true},
	            {DATA(ITEM("a", "running", "{" OURS "," TOKEN("t2") "}")), false},
	            {DATA(ITEM("a", "running", "{" OURS "}")), false},
	            {DATA(ITEM("a", "running", "{" TOKEN("t1") "}")), false},
	            {DATA(ITEM("a", "running", "null")), false},
	            {DATA(ITEM("a/b", "running", "{" OURS "," TOKEN("t1") "}")), false},
	            {DATA("{\"id\":\"a\",\"name\":\"" NAME "\"}"), false},
	            {DATA(""), false}};
	Drive drive;

	section("Agent37 destroy by metadata");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = looking_up();
		asks(&drive, "GET", AGENT37_LIST, "it is looked up");
		drive_answer(&drive, 200, rows[i].list);
		if (rows[i].ours)
		{
			asks(&drive, "DELETE", AGENT37_LIST "/a", "must fire: %s", rows[i].list);
			drive_answer(&drive, 200, DELETED);
			is_destroyed(&drive, SBX_DESTROY_DONE, "ours");
		}
		else
		{
			pauses(&drive, 200, "must not fire: %s", rows[i].list);
			drive_pause_over(&drive);
			asks(&drive, "GET", AGENT37_LIST, "it may still be under way");
			drive_expire(&drive);
			fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_FOUND_YET", UNKNOWN,
			      "absence is no proof");
		}
		drive_end(&drive);
	}
	drive = looking_up();
	drive_answer(&drive, 200, "{\"data\":[],\"next\":\"c\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "a list that is not all");
	drive_end(&drive);
	drive = looking_up();
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "refused");
	drive_end(&drive);
}

/* The id may be written into the operation after it was made. */
static void
late_id(void)
{
	SbxTarget target = {.unique_name = NAME, .launch_token = "t1"};
	SbxOp *op = sbx_kind_agent37.destroy(agent37_account(), &target, 0);
	Drive drive;

	section("Agent37 destroy, id written later");
	strcpy(op->sandbox_id, "late");
	drive_start(&drive, op);
	asks(&drive, "DELETE", AGENT37_LIST "/late", "is used");
	drive_end(&drive);
	op = sbx_kind_agent37.destroy(agent37_account(), &target, 0);
	strcpy(op->sandbox_id, "../x");
	drive_start(&drive, op);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "but not any");
	drive_end(&drive);
}

void
test_agent37_destroy(void)
{
	by_id();
	by_metadata();
	late_id();
}
