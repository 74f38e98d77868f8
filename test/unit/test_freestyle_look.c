/*
 * test_freestyle_look.c
 *		Looking at one Freestyle machine, at those with some labels, and at what all use.
 */
#include <stdlib.h>

#include "unit.h"

#define NONE SBX_ALLOCATION_UNKNOWN

/* --- one --------------------------------------------------------------------------- */

static Drive
getting(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.get(freestyle_account(), &freestyle_target));
	return drive;
}

static void
states(void)
{
	static const struct
	{
		const char *body;
		SbxSandboxState state;
	} rows[] = {{FREESTYLE_DTO("starting"), SBX_STATE_STARTING},
	            {FREESTYLE_DTO("running"), SBX_STATE_STARTED},
	            {FREESTYLE_DTO("pausing"), SBX_STATE_STOPPING},
	            {FREESTYLE_DTO("paused"), SBX_STATE_STOPPED},
	            {FREESTYLE_DTO("stopped"), SBX_STATE_STOPPED},
	            {FREESTYLE_DTO("hovering"), SBX_STATE_STARTING}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = getting();
		const SbxSandboxFacts *facts;

		asks(&drive, "GET", FREESTYLE_VM, "it is looked at");
		is_freestyle_key_kept(&drive, "get");
		drive_answer(&drive, 200, rows[i].body);
		facts = drive.op->result;
		ok(drive.op->succeeded && facts->state == rows[i].state, "%s", rows[i].body);
		drive_end(&drive);
	}
}

static void
gone(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {404, "<html>", SBX_PHASE_REMOTE, NULL},
	    {404, FREESTYLE_ERROR("ROUTE_NOT_FOUND"), SBX_PHASE_REMOTE, "ROUTE_NOT_FOUND"},
	    {401, FREESTYLE_GONE, SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	    {403, FREESTYLE_GONE, SBX_PHASE_REMOTE, "FORBIDDEN"},
	    {500, FREESTYLE_GONE, SBX_PHASE_REMOTE, NULL},
	    {200, FREESTYLE_ROW("vm-2", "running", ""), SBX_PHASE_PROTOCOL, NULL},
	    {200, "{\"id\":\"" FREESTYLE_ID "\"}", SBX_PHASE_PROTOCOL, NULL},
	    {200, "<html>", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive = getting();

	drive_answer(&drive, 404, FREESTYLE_GONE);
	ok(drive.op->succeeded &&
	       ((SbxSandboxFacts *) drive.op->result)->state == SBX_STATE_GONE,
	   "must fire: the provider says that it is not there");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = getting();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, NONE,
		      "must not fire: %d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
}

/* --- those with some labels ----------------------------------------------------------- */

#define ROW(id) FREESTYLE_ROW(id, "running", "")

static Drive
finding(const SbxPair *labels, int count)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.find(freestyle_account(), labels, count));
	return drive;
}

static int
found(const Drive *drive)
{
	return drive->op->succeeded ? ((SbxFindResult *) drive->op->result)->count : -1;
}

static void
pages(void)
{
	Drive drive = finding(NULL, 0);

	asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=0", "from the first row");
	drive_answer(&drive, 200, FREESTYLE_LIST(ROW("vm-1") "," ROW("vm-2"), "3"));
	asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=2",
	     "and on by the rows that came");
	drive_answer(&drive, 503, "");
	pauses(&drive, 250, "trouble passes");
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=2", "the same page");
	drive_answer(&drive, 200, FREESTYLE_LIST(ROW("vm-3"), "3"));
	is_number(found(&drive), 3, "all of them");
	drive_end(&drive);
	drive = finding(NULL, 0);
	drive_answer(&drive, 200, FREESTYLE_LIST("", "0"));
	is_number(found(&drive), 0, "none at all");
	drive_end(&drive);
}

static void
filters(void)
{
	static const SbxPair ours[] = {{"sbx-router-id", NAME}, {"k", "v"}};
	static const SbxPair odd[] = {{"a:b", "v"}, {"a", "v,w"}, {"a", " v"}, {"a", ""}};
	static const SbxPair other = {"k", "w"};
	Drive drive = finding(ours, 2);

	asks(&drive, "GET",
	     FREESTYLE_VMS "?limit=100&offset=0&metadata=sbx-router-id%3A" NAME "%2Ck%3Av",
	     "the provider looks for plain ones");
	drive_answer(&drive, 200, FREESTYLE_LIST(ROW("vm-1"), "1"));
	is_number(found(&drive), 1, "must fire: it has both");
	drive_end(&drive);
	drive = finding(&other, 1);
	drive_answer(&drive, 200, FREESTYLE_LIST(ROW("vm-1"), "1"));
	is_number(found(&drive), 0, "must not fire: whatever the provider took it for");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
	{
		drive = finding(&odd[i], 1);
		asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=0",
		     "what has no escape is not asked for: %s=%s", odd[i].key, odd[i].value);
		drive_end(&drive);
	}
}

/* --- a list that moves ------------------------------------------------------------------ */

static const struct
{
	const char *name;
	const char *first;
	const char *second; /* NULL = the first one is enough */
} moves[] = {
    {"an empty page before the end", FREESTYLE_LIST(ROW("vm-1"), "2"),
     FREESTYLE_LIST("", "2")},
    {"one that comes twice", FREESTYLE_LIST(ROW("vm-1"), "2"),
     FREESTYLE_LIST(ROW("vm-1"), "2")},
    {"another total", FREESTYLE_LIST(ROW("vm-1"), "3"),
     FREESTYLE_LIST(ROW("vm-2"), "2")},
    {"more rows than there are", FREESTYLE_LIST(ROW("vm-1") "," ROW("vm-2"), "1"),
     NULL},
};

static void
moved(Drive *drive, size_t i)
{
	drive_answer(drive, 200, moves[i].first);
	if (moves[i].second != NULL)
		drive_answer(drive, 200, moves[i].second);
}

static void
moving(void)
{
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
	{
		Drive drive = finding(NULL, 0);

		moved(&drive, i);
		asks(&drive, "GET", FREESTYLE_VMS "?limit=100&offset=0", "%s: read anew",
		     moves[i].name);
		drive_answer(&drive, 200, FREESTYLE_LIST(ROW("vm-9"), "1"));
		is_number(found(&drive), 1, "%s: what came before is forgotten", moves[i].name);
		drive_end(&drive);
		drive = finding(NULL, 0);
		moved(&drive, i);
		moved(&drive, i);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "LIST_CHANGED", NONE,
		      "%s: never an answer that is too short", moves[i].name);
		drive_end(&drive);
	}
}

static void
unreadable(void)
{
	static const char *const bodies[] = {
	    "{\"vms\":[]}",
	    "{\"totalCount\":0}",
	    "{\"vms\":{},\"totalCount\":0}",
	    "{\"vms\":[],\"totalCount\":\"0\"}",
	    "{\"vms\":[],\"totalCount\":-1}",
	    "{\"vms\":[{\"state\":\"running\"}],\"totalCount\":1}",
	    "{\"vms\":[{\"id\":\"../x\"}],\"totalCount\":1}",
	    "[]",
	    "<html>"};

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		Drive drive = finding(NULL, 0);

		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, NONE, "no list: %s", bodies[i]);
		drive_end(&drive);
	}
}

/* --- what all use ------------------------------------------------------------------------ */

#define SIZED(id, state, sizes)                                                        \
	"{\"id\":\"" id "\",\"state\":\"" state "\",\"resources\":{" sizes "}}"
#define SIZES "\"cpu\":2,\"memory\":4096,\"storage\":16384"

static Drive using(const char *body)
{
	Drive drive;

	drive_start(&drive, sbx_kind_freestyle.usage(freestyle_account(), 5000));
	drive_answer(&drive, 200, body);
	return drive;
}

static void
usage(void)
{
	Drive drive = using(FREESTYLE_LIST(
	    SIZED("vm-1", "running", SIZES) "," SIZED("vm-2", "starting", SIZES) "," SIZED(
	        "vm-3", "pausing", SIZES) "," SIZED("vm-4", "paused",
	                                            SIZES) "," SIZED("vm-5", "stopped",
	                                                             SIZES),
	    "5"));
	const SbxUsage *result = drive.op->result;

	if (ok(drive.op->succeeded, "what it uses"))
	{
		is_number(result->sandboxes, 3, "those that run, start or are being paused");
		is_number((int64_t) result->cpu, 6, "their vCPUs");
		is_number((int64_t) result->memory_mib, 3 * 4096, "their memory in MiB");
		is_number((int64_t) result->disk_mib, 5 * 16384, "everybody's disk");
		ok(!result->disk_untold, "which is told");
	}
	drive_end(&drive);
	drive = using(FREESTYLE_LIST("", "0"));
	ok(drive.op->succeeded && ((SbxUsage *) drive.op->result)->sandboxes == 0,
	   "nothing at all");
	drive_end(&drive);
}

static void
malformed(void)
{
	static const char *const rows[] = {
	    SIZED("vm-1", "hovering", SIZES),
	    SIZED("vm-1", "running", "\"cpu\":2,\"memory\":4096"),
	    SIZED("vm-1", "running", "\"cpu\":-2,\"memory\":4096,\"storage\":1"),
	    SIZED("vm-1", "running", "\"cpu\":\"2\",\"memory\":4096,\"storage\":1"),
	    SIZED("vm-1", "paused", "\"cpu\":2,\"memory\":null,\"storage\":1"),
	    "{\"id\":\"vm-1\",\"state\":\"running\"}"};
	Drive drive;
	char body[500];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		strcat(strcat(strcpy(body, "{\"vms\":["), rows[i]), "],\"totalCount\":1}");
		drive = using(body);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", NONE, "must fire: %s",
		      rows[i]);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
	{
		drive = using(moves[i].first);
		if (moves[i].second != NULL)
			drive_answer(&drive, 200, moves[i].second);
		moved(&drive, i);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "LIST_CHANGED", NONE,
		      "must not fire: %s", moves[i].name);
		drive_end(&drive);
	}
}

void
test_freestyle_look(void)
{
	section("Freestyle look");
	states();
	gone();
	pages();
	filters();
	moving();
	unreadable();
	usage();
	malformed();
}
