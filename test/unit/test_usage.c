/*
 * test_usage.c
 *		What an account uses, by its listing: exact, or none.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define DAYTONA_LIST API "/sandbox?limit=200&sort=createdAt&order=asc"
#define E2B_LIST     E2B_API "/v2/sandboxes?state=running&limit=100&order=asc"
#define VERCEL_LIST                                                                    \
	VERCEL_API "/v2/sandboxes?teamId=team_1&project=prj_1&limit=50&sortBy=createdAt"   \
	           "&sortOrder=asc&status=running"
#define TIMEOUT 5000

/* --- all kinds by one table --------------------------------------------------- */

typedef struct Kind
{
	const char *name;
	const SbxProviderKind *kind;
	const char *url;
	const char *item;      /* of an id, and the sizes as text */
	const char *page;      /* of the items */
	const char *next_page; /* the same with the cursor of another; or headers */
	double mib;            /* of one of memory or disk */
	const char *cursor; /* how the next page is asked for; NULL = there are no pages */
	int max_pages;
	const char
	    *second; /* a listing that follows, of the others; NULL = there is none */
	const char *missing; /* a page whose item lacks a size */
	bool disk_untold;
} Kind;

static const Kind kinds[] = {
    {"daytona", &sbx_kind_daytona, DAYTONA_LIST,
     "{\"id\":\"%s\",\"cpu\":%s,\"memory\":%s,\"disk\":%s}",
     "{\"items\":[%s],\"nextCursor\":null}", "{\"items\":[%s],\"nextCursor\":\"%s\"}",
     1024, "&cursor=", 500, NULL,
     "{\"items\":[{\"id\":\"a\",\"cpu\":1,\"disk\":1}],\"nextCursor\":null}", false},
    {"e2b", &sbx_kind_e2b, E2B_LIST,
     "{\"sandboxID\":\"%s\",\"cpuCount\":%s,\"memoryMB\":%s,\"diskSizeMB\":%s}", "[%s]",
     NULL, 1, "&nextToken=", 1000, NULL,
     "[{\"sandboxID\":\"a\",\"cpuCount\":1,\"memoryMB\":1}]", false},
    {"vercel", &sbx_kind_vercel, VERCEL_LIST,
     "{\"name\":\"%s\",\"status\":\"running\",\"vcpus\":%s,\"memory\":%s,\"other\":%s}",
     "{\"sandboxes\":[%s],\"pagination\":{\"next\":null}}",
     "{\"sandboxes\":[%s],\"pagination\":{\"next\":\"%s\"}}", 1, "&cursor=", 400,
     "&status=stopping",
     "{\"sandboxes\":[{\"name\":\"a\",\"vcpus\":1}],\"pagination\":{\"next\":null}}",
     true},
    {"agent37", &sbx_kind_agent37, AGENT37_LIST,
     "{\"id\":\"%s\",\"resources\":{\"cpu\":%s,\"memory\":%s,\"disk\":%s}}",
     "{\"data\":[%s]}", NULL, 1024, NULL, 1, NULL,
     "{\"data\":[{\"id\":\"a\",\"resources\":{\"cpu\":1,\"memory\":1}}]}", false},
};

static const SbxAccount *
account_of(const Kind *kind)
{
	if (kind->kind == &sbx_kind_e2b)
		return e2b_account();
	if (kind->kind == &sbx_kind_vercel)
		return vercel_account();
	return kind->kind == &sbx_kind_agent37 ? agent37_account()
	                                       : account_reset(&account);
}

static Drive
reading(const Kind *kind)
{
	Drive drive;

	drive_start(&drive, kind->kind->usage(account_of(kind), TIMEOUT));
	return drive;
}

static char text[200 * 1024];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static const char *
item(const Kind *kind, const char *id, const char *cpu, const char *memory,
     const char *disk)
{
	static char buffer[4][500];
	static int next = 0;
	char *item = buffer[next++ % 4];

	snprintf(item, sizeof(buffer[0]), kind->item, id, cpu, memory, disk);
	return item;
}

/* Of what is asked for after the last page of a listing there is nothing. */
static void
answer_second(const Kind *kind, Drive *drive)
{
	if (kind->second == NULL || drive->want != SBX_OP_WANT_HTTP ||
	    strstr(drive->op->request.url, kind->second) == NULL)
		return;
	snprintf(text, sizeof(text), kind->page, "");
	drive_answer(drive, 200, text);
}

/* A page; with a cursor if another follows. */
static void
answer(const Kind *kind, Drive *drive, const char *items, const char *cursor)
{
	char headers[100] = "";

	if (cursor == NULL)
		snprintf(text, sizeof(text), kind->page, items);
	else if (kind->next_page != NULL)
		snprintf(text, sizeof(text), kind->next_page, items, cursor);
	else
	{
		snprintf(text, sizeof(text), kind->page, items);
		snprintf(headers, sizeof(headers), "X-Next-Token: %s\r\n", cursor);
	}
	drive_headed(drive, 200, headers, text);
	if (cursor == NULL)
		answer_second(kind, drive);
}

#pragma GCC diagnostic pop

static void
uses(const Drive *drive, double cpu, double memory, double disk, int64_t sandboxes,
     const char *what)
{
	const SbxUsage *usage = drive->op->result;

	if (!ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what))
		return;
	ok(usage->cpu == cpu, "%s: %g vCPU", what, cpu);
	ok(usage->memory_mib == memory, "%s: %g MiB of memory", what, memory);
	if (!usage->disk_untold)
		ok(usage->disk_mib == disk, "%s: %g MiB of disk", what, disk);
	is_number(usage->sandboxes, sandboxes, "%s: sandboxes", what);
}

static void
is_malformed(const Drive *drive, const char *what)
{
	fails(drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", SBX_ALLOCATION_UNKNOWN, "%s",
	      what);
}

/* --- sums ---------------------------------------------------------------------- */

static void
sums(const Kind *kind)
{
	char items[2000];
	char next[300];
	double mib = kind->mib;
	Drive drive = reading(kind);

	asks(&drive, "GET", kind->url, "all of the account, and nothing else is asked");
	ok(drive.op->request.repeatable && drive.op->request.body == NULL, "a plain read");
	is_number(drive.op->timeout_ms, TIMEOUT, "the caller's time, for all pages");
	is_text(drive.op->operation, "capacity", "operation name");
	answer(kind, &drive, "", NULL);
	uses(&drive, 0, 0, 0, 0, "must fire: an empty account uses nothing");
	ok(((const SbxUsage *) drive.op->result)->disk_untold == kind->disk_untold,
	   "whether disks are told");
	drive_end(&drive);

	drive = reading(kind);
	snprintf(items, sizeof(items), "%s,%s", item(kind, "a", "1", "2", "3"),
	         item(kind, "b", "0.5", "1.5", "0"));
	answer(kind, &drive, items, NULL);
	uses(&drive, 1.5, 3.5 * mib, 3 * mib, 2, "must fire: sandboxes add up");
	drive_end(&drive);
	if (kind->cursor == NULL)
		return;

	drive = reading(kind);
	snprintf(items, sizeof(items), "%s,%s", item(kind, "a", "1", "2", "3"),
	         item(kind, "b", "0.5", "1.5", "0"));
	answer(kind, &drive, items, "next/1");
	snprintf(next, sizeof(next), "%s%snext%%2F1", kind->url, kind->cursor);
	asks(&drive, "GET", next, "the next page");
	snprintf(items, sizeof(items), "%s,%s", item(kind, "b", "0.5", "1.5", "0"),
	         item(kind, "c", "4", "0", "10"));
	answer(kind, &drive, items, NULL);
	uses(&drive, 5.5, 3.5 * mib, 13 * mib, 3,
	     "must fire: pages add up, and each sandbox counts once");
	drive_end(&drive);
}

static void
states(void)
{
	Drive drive = reading(&kinds[0]);

	drive_answer(
	    &drive, 200,
	    "{\"items\":["
	    "{\"id\":\"a\",\"state\":\"archived\",\"cpu\":1,\"memory\":1,\"disk\":1},"
	    "{\"id\":\"b\",\"state\":\"error\",\"cpu\":1,\"memory\":1,\"disk\":1},"
	    "{\"id\":\"c\",\"state\":\"destroying\",\"cpu\":1,\"memory\":1,\"disk\":1},"
	    "{\"id\":\"d\",\"cpu\":1,\"memory\":1,\"disk\":1}],\"nextCursor\":null}");
	uses(&drive, 4, 4096, 4096, 4, "every state counts, and none");
	drive_end(&drive);
}

static void
total_running(void)
{
	static const struct
	{
		const char *header;
		int64_t sandboxes;
		const char *what;
	} totals[] = {{"X-Total-Running: 7\r\n", 7, "must fire: more than are listed"},
	              {"X-Total-Running: 0\r\n", 1, "must not fire: fewer"},
	              {"X-Total-Running: -7\r\n", 1, "must not fire: a negative one"},
	              {"X-Total-Running: 7.5\r\n", 1, "must not fire: a fraction"},
	              {"X-Total-Running: many\r\n", 1, "must not fire: a word"},
	              {"X-Total-Running: 99999999999999999999\r\n", 1,
	               "must not fire: one that is no number of ours"},
	              {"X-Total-Running:\r\n", 1, "must not fire: an empty one"}};
	const Kind *kind = &kinds[1];
	Drive drive;

	for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
	{
		char page[300];

		drive = reading(kind);
		snprintf(page, sizeof(page), "[%s]", item(kind, "a", "2", "512", "1024"));
		drive_headed(&drive, 200, totals[i].header, page);
		uses(&drive, 2, 512, 1024, totals[i].sandboxes, totals[i].what);
		drive_end(&drive);
	}

	drive = reading(kind);
	drive_headed(&drive, 200, "X-Next-Token: t\r\nX-Total-Running: 2\r\n", "[]");
	drive_headed(&drive, 200, "X-Total-Running: 9\r\n", "[]");
	uses(&drive, 0, 0, 0, 2, "the total is that of the first page");
	drive_end(&drive);
}

/* --- malformed ----------------------------------------------------------------- */

static void
sizes(const Kind *kind)
{
	static const char *const bad[] = {"\"1\"", "null", "-1",    "-0.5", "true",
	                                  "{}",    "[]",   "1e999", "\"\""};
	static const char *const good[] = {"0", "1", "0.5", "1e3", "-0.0", "1E+2"};
	char what[100];

	for (int field = 0; field < (kind->disk_untold ? 2 : 3); field++)
	{
		const char *size[3] = {"1", "1", "1"};

		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		{
			Drive drive = reading(kind);

			size[field] = bad[i];
			snprintf(what, sizeof(what), "must fire: size %d is %s", field, bad[i]);
			answer(kind, &drive, item(kind, "a", size[0], size[1], size[2]), NULL);
			is_malformed(&drive, what);
			drive_end(&drive);
		}
		for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		{
			Drive drive = reading(kind);

			size[field] = good[i];
			answer(kind, &drive, item(kind, "a", size[0], size[1], size[2]), NULL);
			ok(drive.op->succeeded, "must not fire: size %d is %s", field, good[i]);
			drive_end(&drive);
		}
	}
}

static void
shapes(const Kind *kind)
{
	static const char *const items[] = {"5", "null", "[]", "{}", "\"a\""};
	static const char *const bodies[] = {
	    "", "<html>", "5", "null", "{\"items\":5}", "{\"items\":[]", "[{}"};

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++)
	{
		Drive drive = reading(kind);

		answer(kind, &drive, items[i], NULL);
		is_malformed(&drive, items[i]);
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		Drive drive = reading(kind);

		drive_answer(&drive, 200, bodies[i]);
		is_malformed(&drive, bodies[i]);
		drive_end(&drive);
	}
	{
		Drive drive = reading(kind);

		drive_answer(&drive, 200, kind->missing);
		is_malformed(&drive, "must fire: a size is missing");
		drive_end(&drive);
	}
}

/* 501 sandboxes, one of which may be bad; on one page. */
static void
crowd(const Kind *kind, const char *bad, const char *what)
{
	char *items = malloc(100 * 1024);
	size_t length = 0;
	Drive drive = reading(kind);

	for (int i = 0; i <= 500; i++)
	{
		char id[20];

		snprintf(id, sizeof(id), "s%d", i);
		length += (size_t) snprintf(items + length, 100 * 1024 - length, "%s%s",
		                            i == 0 ? "" : ",",
		                            item(kind, id, "1", i == 333 ? bad : "2", "3"));
	}
	answer(kind, &drive, items, NULL);
	if (strcmp(bad, "2") == 0)
		uses(&drive, 501, 1002 * kind->mib, 1503 * kind->mib, 501, what);
	else
		is_malformed(&drive, what);
	drive_end(&drive);
	free(items);
}

static void
overflow(const Kind *kind)
{
	char items[400];
	Drive drive = reading(kind);

	snprintf(items, sizeof(items), "%s,%s", item(kind, "a", "1.7e308", "0", "0"),
	         item(kind, "b", "1.7e308", "0", "0"));
	answer(kind, &drive, items, NULL);
	is_malformed(&drive, "must fire: a sum that is not finite");
	drive_end(&drive);
}

/* --- listings that do not end ----------------------------------------------------- */

static void
endless(const Kind *kind)
{
	Drive drive = reading(kind);
	int pages = 0;
	char cursor[20];

	answer(kind, &drive, "", "x");
	answer(kind, &drive, "", "y");
	answer(kind, &drive, "", "x");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "must fire: a cursor comes again");
	drive_end(&drive);

	drive = reading(kind);
	while (drive.want == SBX_OP_WANT_HTTP && pages < 2000)
	{
		snprintf(cursor, sizeof(cursor), "c%d", pages++);
		answer(kind, &drive, "", cursor);
	}
	is_number(pages, kind->max_pages,
	          "must fire: pages without end are not read for ever");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "and are no listing");
	drive_end(&drive);
}

static void
trouble(const Kind *kind)
{
	Drive drive = reading(kind);

	drive_answer(&drive, 503, "");
	pauses(&drive, 250, "a page is asked for again");
	drive_pause_over(&drive);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	drive_pause_over(&drive);
	answer(kind, &drive, item(kind, "a", "1", "1", "1"), NULL);
	uses(&drive, 1, kind->mib, kind->mib, 1, "must not fire: trouble that passes");
	drive_end(&drive);

	drive = reading(kind);
	for (int i = 0; i < 3; i++)
	{
		drive_answer(&drive, 500, "");
		if (i < 2)
			drive_pause_over(&drive);
	}
	fails(&drive, SBX_PHASE_REMOTE, 500, NULL, SBX_ALLOCATION_UNKNOWN,
	      "must fire: trouble that stays");
	drive_end(&drive);

	drive = reading(kind);
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN,
	      "must fire: a key that is refused, once");
	drive_end(&drive);

	drive = reading(kind);
	if (kind->cursor != NULL)
		answer(kind, &drive, item(kind, "a", "1", "1", "1"), "next");
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.timed_out,
	   "must fire: what was read in time is no result");
	drive_end(&drive);
}

/* --- shown ------------------------------------------------------------------------ */

static void
shown(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.inventory(account_reset(&account), TIMEOUT));
	drive_answer(&drive, 200,
	             "{\"items\":[{\"id\":\"b\",\"cpu\":\"2\",\"env\":{\"KEY\":\"secret\"},"
	             "\"labels\":{\"workspace\":\"w\"}},{\"id\":\"a\",\"memory\":-1}],"
	             "\"nextCursor\":null}");
	ok(drive.op->succeeded, "sizes are shown as they are");
	if (drive.op->succeeded)
		is_text(drive.op->result,
		        "[{\"id\":\"a\",\"memory\":-1},"
		        "{\"id\":\"b\",\"cpu\":\"2\",\"labels\":{\"workspace\":\"w\"}}]",
		        "some members, and no others");
	drive_end(&drive);

	drive_start(&drive, sbx_kind_daytona.inventory(account_reset(&account), TIMEOUT));
	drive_answer(&drive, 200, "{\"items\":[],\"nextCursor\":null}");
	if (ok(drive.op->succeeded, "none"))
		is_text(drive.op->result, "[]", "are an empty array");
	drive_end(&drive);
}

void
test_usage(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		char name[40];

		snprintf(name, sizeof(name), "usage, %s", kinds[i].name);
		section(name);
		sums(&kinds[i]);
		sizes(&kinds[i]);
		shapes(&kinds[i]);
		crowd(&kinds[i], "2", "must not fire: 501 good ones");
		crowd(&kinds[i], "\"2\"", "must fire: one malformed among 500 good ones");
		overflow(&kinds[i]);
		if (kinds[i].cursor != NULL)
			endless(&kinds[i]);
		trouble(&kinds[i]);
	}
	section("usage");
	states();
	total_running();
	shown();
}
