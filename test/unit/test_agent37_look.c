/*
 * test_agent37_look.c
 *		Looking at one Agent37 instance and at all of them.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static Drive
getting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.get(agent37_account(), &agent37_target));
	return drive;
}

static void
get(void)
{
	static const struct
	{
		const char *object;
		SbxSandboxState state;
	} words[] = {
	    {AGENT37_DTO("running"), SBX_STATE_STARTED},
	    {AGENT37_DTO("stopping"), SBX_STATE_STOPPING},
	    {AGENT37_DTO("stopped"), SBX_STATE_STOPPED},
	    {AGENT37_DTO("sleeping"), SBX_STATE_STOPPED},
	    {AGENT37_DTO("failed"), SBX_STATE_FAILED},
	    {AGENT37_DTO("deleting"), SBX_STATE_GONE},
	    {AGENT37_DTO("waking"), SBX_STATE_STARTING},
	    {AGENT37_DTO("Running"), SBX_STATE_STARTING},
	};
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} bad[] = {
	    {200, "{\"id\":\"other\",\"status\":\"running\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"id\":\"" AGENT37_ID "\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"id\":\"" AGENT37_ID "\",\"status\":\"\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL},
	    {403, AGENT37_ERROR("ip_not_allowed"), SBX_PHASE_REMOTE, "IP_NOT_ALLOWED"},
	    {500, "", SBX_PHASE_REMOTE, NULL}};
	const SbxSandboxFacts *facts;
	Drive drive = getting();

	section("Agent37 get");
	asks(&drive, "GET", AGENT37_INSTANCE, "one request");
	is_agent37_key_kept(&drive, "get");
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	facts = drive.op->result;
	is_text(facts->sandbox_id, AGENT37_ID, "id");
	is_text(facts->name, "n", "name");
	is_text(facts->created_at, "2026-06-12T00:00:00Z", "epoch seconds");
	is_number(facts->label_count, 2, "metadata");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		drive = getting();
		drive_answer(&drive, 200, words[i].object);
		facts = drive.op->result;
		is_number(facts->state, words[i].state, "%.45s", words[i].object);
		drive_end(&drive);
	}
	drive = getting();
	drive_answer(&drive, 404, AGENT37_ERROR("not_found"));
	facts = drive.op->result;
	ok(drive.op->succeeded && facts->state == SBX_STATE_GONE, "gone");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		drive = getting();
		drive_answer(&drive, bad[i].status, bad[i].body);
		fails(&drive, bad[i].phase, bad[i].status, bad[i].code, UNKNOWN, "%d %s",
		      bad[i].status, bad[i].body);
		drive_end(&drive);
	}
	{
		static const SbxTarget odd[] = {
		    {.sandbox_id = "a/b"}, {.sandbox_id = ".."}, {.unique_name = NAME}};

		for (size_t i = 0; i < 3; i++)
		{
			drive_start(&drive, sbx_kind_agent37.get(agent37_account(), &odd[i]));
			fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
			      "an id that is none");
			drive_end(&drive);
		}
	}
}

/* --- lists ------------------------------------------------------------------- */

#define ITEM(id, status, metadata)                                                     \
	"{\"id\":\"" id "\",\"status\":\"" status                                          \
	"\",\"resources\":{\"cpu\":2,\"memory\":4,\"disk\":6},\"metadata\":" metadata "}"

static Drive
listing(bool usage, int label_count)
{
	static const SbxPair labels[] = {{"k", "v"}, {"l", "w"}};
	Drive drive;

	drive_start(&drive,
	            usage ? sbx_kind_agent37.usage(agent37_account(), 5000)
	                  : sbx_kind_agent37.find(agent37_account(), labels, label_count));
	return drive;
}

static const char *const incomplete[] = {
    "[]",
    "{}",
    "{\"data\":{}}",
    "{\"data\":[],\"next\":\"c\"}",
    "{\"data\":[],\"next\":7}",
    "{\"data\":[{}]}",
    "{\"data\":[{\"id\":\"a/b\"}]}",
    "<html>",
};

static void
lists(void)
{
	static const char all[] =
	    "{\"data\":[" ITEM("b", "sleeping", "{\"k\":\"v\",\"l\":\"w\"}") "," ITEM(
	        "a", "running", "{\"k\":\"v\"}") "," ITEM("c", "failed", "null") "],"
	                                                                         "\"next\":"
	                                                                         "null}";
	static const int counts[] = {3, 2, 1};
	const SbxUsage *usage;
	Drive drive;

	section("Agent37 find");
	for (int i = 0; i < 3; i++)
	{
		drive = listing(false, i);
		asks(&drive, "GET", AGENT37_LIST, "no filter is sent");
		drive_answer(&drive, 200, all);
		is_number(((const SbxFindResult *) drive.op->result)->count, counts[i],
		          "with %d labels", i);
		drive_end(&drive);
	}
	section("Agent37 usage");
	drive = listing(true, 0);
	drive_answer(&drive, 200, all);
	usage = drive.op->result;
	ok(drive.op->succeeded, "added up");
	is_number(usage->sandboxes, 3, "each takes a place");
	is_number((int64_t) usage->cpu, 4, "one that sleeps has no CPU");
	is_number((int64_t) usage->memory_mib, 8192, "nor memory, of which one is a GiB");
	is_number((int64_t) usage->disk_mib, 18432, "but its disk");
	drive_end(&drive);
	drive = listing(true, 0);
	drive_answer(&drive, 200, "{\"data\":[{\"id\":\"a\",\"status\":\"stopped\"}]}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", UNKNOWN, "no size, no sum");
	drive_end(&drive);
	section("Agent37 list, incomplete");
	for (size_t i = 0; i < sizeof(incomplete) / sizeof(incomplete[0]); i++)
	{
		drive = listing(false, 0);
		drive_answer(&drive, 200, incomplete[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "find: %s",
		      incomplete[i]);
		drive_end(&drive);
		drive = listing(true, 0);
		drive_answer(&drive, 200, incomplete[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", UNKNOWN, "usage: %s",
		      incomplete[i]);
		drive_end(&drive);
	}
}

void
test_agent37_look(void)
{
	get();
	lists();
}
