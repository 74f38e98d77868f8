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

/* --- find --------------------------------------------------------------- */

#define PAGE "?limit=200&sort=createdAt&order=asc"

static Drive
finding(const SbxPair *labels, int count)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.find(account_reset(&account), labels, count));
	return drive;
}

static Drive
finding_all(void)
{
	return finding(NULL, 0);
}

static const SbxFindResult *
found(const Drive *drive, int count, const char *what)
{
	const SbxFindResult *result = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return NULL;
	is_number(result->count, count, "%s: %d", what, count);
	return result;
}

static void
find_requests(void)
{
	static const SbxPair odd[] = {{"a&b=c", "\"\\ %\n\xe2\x82\xac"}};
	static const SbxPair bad[] = {{"a", "\xff"}};
	Drive drive = finding_all();

	section("find");
	asks(&drive, "GET", API "/sandbox" PAGE, "without labels: all");
	ok(drive.op->request.repeatable, "a plain read");
	is_number(drive.op->request.timeout_ms, 10000, "one page is bounded");
	is_number(drive.op->timeout_ms, 30000, "and so are all");
	is_text(drive.op->operation, "find", "operation name");
	drive_end(&drive);

	drive = finding(odd, 1);
	asks(&drive, "GET",
	     API "/sandbox?limit=200&labels=%7B%22a%26b%3Dc%22%3A%22%5C%22%5C%5C%20%25%5Cn"
	         "%E2%82%AC%22%7D&sort=createdAt&order=asc",
	     "labels are one JSON object, encoded");
	drive_end(&drive);
	drive = finding(bad, 1);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
	      "a label that is not UTF-8: nothing is sent");
	drive_end(&drive);
	account_reset(&account);
	account.credentials[0] = NULL;
	drive_start(&drive, sbx_kind_daytona.find(&account.account, NULL, 0));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no key");
	drive_end(&drive);
}

#define ITEM(id, more)      "{\"id\":\"" id "\"" more "}"
#define ITEMS(items)        "{\"items\":[" items "],\"nextCursor\":null}"
#define MORE(items, cursor) "{\"items\":[" items "],\"nextCursor\":\"" cursor "\"}"

static void
find_pages(void)
{
	const SbxFindResult *result;
	Drive drive = finding_all();

	section("find pages");
	drive_recorded(&drive, "inventory");
	drive_recorded(&drive, "inventory_page_2");
	result = found(&drive, 3, "recorded pages");
	if (result != NULL)
	{
		is_number(result->sandboxes[0].state, SBX_STATE_STARTED, "state");
		is_text(result->sandboxes[0].name, "n1", "name");
		is_text(result->sandboxes[0].created_at, "2026-12-01T10:00:00.000Z", "time");
		is_number(result->sandboxes[0].label_count, 1, "labels");
		is_number(result->sandboxes[1].state, SBX_STATE_STOPPED, "archived is there");
		is_text(result->sandboxes[2].name, "n3", "second page");
	}
	drive_end(&drive);

	drive = finding_all();
	drive_answer(&drive, 200, ITEMS(""));
	found(&drive, 0, "none");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 200, MORE("", "c/+1"));
	asks(&drive, "GET", API "/sandbox" PAGE "&cursor=c%2F%2B1",
	     "an empty page is not the end; cursors are encoded");
	drive_answer(&drive, 200, ITEMS(ITEM("a", "")));
	found(&drive, 1, "behind an empty page");
	drive_end(&drive);

	drive = finding_all();
	drive_answer(&drive, 200, MORE(ITEM("b", "") "," ITEM("a", ""), "1"));
	drive_answer(&drive, 200, MORE(ITEM("a", "") "," ITEM("a", ""), "2"));
	drive_answer(&drive, 200, ITEMS(ITEM("c", "") "," ITEM("b", "")));
	result = found(&drive, 3, "each one once");
	for (int i = 0; result != NULL && i < 3; i++)
		is_text(result->sandboxes[i].sandbox_id, (const char *[]){"a", "b", "c"}[i],
		        "number %d", i);
	drive_end(&drive);

	drive = finding_all();
	drive_answer(&drive, 200,
	             ITEMS(ITEM("a", ",\"state\":\"destroyed\",\"name\":5,\"labels\":[]")));
	result = found(&drive, 1, "odd members");
	ok(result != NULL && result->sandboxes[0].state == SBX_STATE_GONE &&
	       result->sandboxes[0].name == NULL && result->sandboxes[0].label_count == 0,
	   "are absent");
	drive_end(&drive);
}

/* Nothing of a listing that cannot be read to its end is returned. */
static void
find_is_no_list(const char *body, const char *what)
{
	for (int page = 1; page <= 2; page++)
	{
		Drive drive = finding_all();

		if (page == 2)
			drive_answer(&drive, 200, MORE(ITEM("first", ""), "next"));
		drive_answer(&drive, 200, body);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
		      "page %d: %s", page, what);
		drive_end(&drive);
	}
}

static void
find_garbage(void)
{
	char body[600];
	char id[300];

	section("find garbage");
	find_is_no_list("", "empty");
	find_is_no_list("<html>", "web page");
	find_is_no_list("[]", "array");
	find_is_no_list("{}", "no members");
	find_is_no_list("{\"nextCursor\":null}", "no items");
	find_is_no_list("{\"items\":[]}", "no cursor");
	find_is_no_list("{\"items\":{},\"nextCursor\":null}", "items of another type");
	find_is_no_list("{\"items\":null,\"nextCursor\":null}", "null items");
	find_is_no_list("{\"items\":[],\"nextCursor\":5}", "cursor of another type");
	find_is_no_list("{\"items\":[],\"nextCursor\":\"\"}", "empty cursor");
	find_is_no_list(ITEMS("5"), "an item of another type");
	find_is_no_list(ITEMS("null"), "a null item");
	find_is_no_list(ITEMS("{}"), "an item without an id");
	find_is_no_list(ITEMS(ITEM("", "")), "an empty id");
	find_is_no_list(ITEMS("{\"id\":5}"), "an id of another type");
	find_is_no_list(ITEMS(ITEM("a/b", "")), "an id with a slash");
	find_is_no_list(ITEMS(ITEM("..", "")), "an id that is a path");
	find_is_no_list(ITEMS(ITEM("a", "") "," ITEM("a b", "")), "one bad item of two");
	find_is_no_list(ITEMS(ITEM("a", ",\"x\":\"\\u0000\"")), "a byte 0");
	find_is_no_list("{\"items\":[],\"nextCursor\":null", "cut off");
	for (int length = 255; length <= 256; length++)
	{
		Drive drive = finding_all();

		memset(id, 'a', sizeof(id));
		id[length] = '\0';
		snprintf(body, sizeof(body),
		         "{\"items\":[{\"id\":\"%s\"}],\"nextCursor\":null}", id);
		drive_answer(&drive, 200, body);
		ok(drive.op->succeeded == (length == 255), "an id of %d bytes", length);
		drive_end(&drive);
	}
}

static void
find_cursors(void)
{
	char body[100];
	Drive drive = finding_all();

	section("find cursors");
	drive_answer(&drive, 200, MORE("", "x"));
	drive_answer(&drive, 200, MORE("", "x"));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "the same again");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 200, MORE("", "x"));
	drive_answer(&drive, 200, MORE("", "y"));
	drive_answer(&drive, 200, MORE("", "x"));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "one from before");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 200, MORE("", "x"));
	drive_answer(&drive, 200, MORE("", "X"));
	ok(drive.want == SBX_OP_WANT_HTTP, "case counts");
	drive_end(&drive);

	for (int pages = 500; pages <= 501; pages++)
	{
		drive = finding_all();
		for (int i = 1; i < pages && drive.want == SBX_OP_WANT_HTTP; i++)
		{
			snprintf(body, sizeof(body), "{\"items\":[],\"nextCursor\":\"%d\"}", i);
			drive_answer(&drive, 200, body);
		}
		if (drive.want == SBX_OP_WANT_HTTP)
			drive_answer(&drive, 200, ITEMS(""));
		ok(drive.op->succeeded == (pages == 500), "a listing of %d pages", pages);
		drive_end(&drive);
	}
}

static void
find_fails(int status, SbxPhase phase, const char *code, const char *what)
{
	Drive drive = finding_all();

	drive_answer(&drive, status, "{}");
	fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s: at once", what);
	drive_end(&drive);
}

static void
find_trouble(void)
{
	static const int passing[] = {0, 408, 429, 500, 502, 503};
	Drive drive;

	section("find trouble");
	find_fails(401, SBX_PHASE_REMOTE, "UNAUTHORIZED", "401");
	find_fails(403, SBX_PHASE_REMOTE, "FORBIDDEN", "403");
	find_fails(400, SBX_PHASE_REMOTE, NULL, "400");
	find_fails(404, SBX_PHASE_REMOTE, NULL, "404");
	find_fails(302, SBX_PHASE_REMOTE, NULL, "302");
	find_fails(204, SBX_PHASE_REMOTE, NULL, "204");

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
	{
		const char *code = passing[i] == 429 ? "RATE_LIMITED" : NULL;

		drive = finding_all();
		drive_answer(&drive, 200, MORE(ITEM("a", ""), "n"));
		for (int attempt = 1; attempt <= 3; attempt++)
		{
			if (passing[i] == 0)
				drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
			else
				drive_answer(&drive, passing[i], "");
			if (attempt == 3)
				break;
			pauses(&drive, 250, "%d: attempt %d", passing[i], attempt);
			drive_pause_over(&drive);
			asks(&drive, "GET", API "/sandbox" PAGE "&cursor=n", "the same page again");
		}
		fails(&drive, passing[i] == 0 ? SBX_PHASE_RECEIVE : SBX_PHASE_REMOTE,
		      passing[i], code, SBX_ALLOCATION_UNKNOWN, "three attempts, no fourth");
		drive_end(&drive);
	}

	drive = finding_all();
	for (int page = 0; page < 3; page++)
	{
		char body[100];

		for (int i = 0; i < 2; i++)
		{
			drive_answer(&drive, 500, "");
			drive_pause_over(&drive);
		}
		snprintf(body, sizeof(body), "{\"items\":[],\"nextCursor\":\"%d\"}", page);
		drive_answer(&drive, 200, page < 2 ? body : ITEMS(""));
	}
	found(&drive, 0, "each page has its own attempts");
	drive_end(&drive);

	drive = finding_all();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "a page that is too large: it will be so again");
	drive_end(&drive);
}

static void
find_expiry(void)
{
	Drive drive = {.op = sbx_kind_daytona.find(account_reset(&account), NULL, 0)};

	section("find, time over");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "before all");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 200, MORE(ITEM("a", ""), "n"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "second page");
	ok(drive.op->failure.timed_out, "half a list is no result");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 429, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", SBX_ALLOCATION_UNKNOWN,
	      "while pausing: the reason is told");
	drive_end(&drive);
	drive = finding_all();
	drive_answer(&drive, 500, "");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, MORE("", "n"));
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "trouble that has passed is forgotten");
	drive_end(&drive);
	drive = finding_all();
	drive.op->expired = true;
	drive_answer(&drive, 200, ITEMS(""));
	found(&drive, 0, "together with the last page");
	drive_end(&drive);
}

void
test_daytona_look(void)
{
	get_states();
	get_answers();
	find_requests();
	find_pages();
	find_garbage();
	find_cursors();
	find_trouble();
	find_expiry();
}
