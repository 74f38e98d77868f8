/*
 * test_vercel_list.c
 *		Finding Vercel sandboxes: which filter is sent, what is looked at again, and pages.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define LIST        VERCEL_API "/v2/sandboxes?teamId=team_1&project=prj_1&limit=50&"
#define BY_NAME     LIST "sortBy=name&sortOrder=asc&namePrefix=sbx_"
#define BY_TAG(tag) LIST "sortBy=createdAt&sortOrder=asc&tags=" tag
#define PAGE(rows, next)                                                               \
	"{\"sandboxes\":[" rows "],\"pagination\":{\"count\":1,\"next\":" next "}}"

static Drive
finding(const SbxPair *labels, int count)
{
	Drive drive;

	drive_start(&drive, sbx_kind_vercel.find(vercel_account(), labels, count));
	return drive;
}

/* One filter at most, which must not be read in two ways; the rest is looked at here. */
static void
filters(void)
{
	static const struct
	{
		SbxPair labels[3];
		int count;
		const char *url;
		const char *what;
	} rows[] = {
	    {{{0}}, 0, BY_NAME, "without labels: by name"},
	    {{{"k", "v"}}, 1, BY_TAG("k%3Av"), "one tag"},
	    {{{"a", "1"}, {"b", "2"}}, 2, BY_TAG("a%3A1"), "of two the first"},
	    {{{"a", "1"}, {"sbx-router-id", NAME}},
	     2,
	     BY_TAG("sbx-router-id%3A" NAME),
	     "the router's own, which few have"},
	    {{{"url", "http://x"}}, 1, BY_NAME, "must fire: a value with a colon"},
	    {{{"a:b", "1"}}, 1, BY_NAME, "must fire: a key with a colon"},
	    {{{"url", "a:b"}, {"k", "v"}},
	     2,
	     BY_TAG("k%3Av"),
	     "must not fire: another one without"},
	    {{{"k", "a b&c=d+%"}}, 1, BY_TAG("k%3Aa%20b%26c%3Dd%2B%25"), "it is encoded"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = finding(rows[i].labels, rows[i].count);

		asks(&drive, "GET", rows[i].url, "%s", rows[i].what);
		drive_end(&drive);
	}
	{
		static const SbxPair odd = {"k", "\xff"};
		Drive drive = finding(&odd, 1);

		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "what is no text");
		drive_end(&drive);
	}
}

static void
looked_at_again(void)
{
	static const SbxPair labels[] = {{"k", "v"}, {"url", "a:b"}};
	static const struct
	{
		const char *row;
		int count;
		const char *what;
	} rows[] = {
	    {"{\"name\":\"sbx_1\",\"tags\":{\"k\":\"v\",\"url\":\"a:b\"}}", 1,
	     "must fire: both"},
	    {"{\"name\":\"sbx_1\",\"tags\":{\"k\":\"v\"}}", 0, "one of them"},
	    {"{\"name\":\"sbx_1\",\"tags\":{\"k\":\"v\",\"url\":\"a\"}}", 0,
	     "another value"},
	    {"{\"name\":\"sbx_1\",\"tags\":{\"k\":\"v\",\"url\":5}}", 0, "no text"},
	    {"{\"name\":\"sbx_1\",\"tags\":[]}", 0, "tags that are none"},
	    {"{\"name\":\"sbx_1\"}", 0, "no tags"},
	    {"{\"name\":\"mine\",\"tags\":{\"k\":\"v\",\"url\":\"a:b\"}}", 0,
	     "another's name"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = finding(labels, 2);
		char page[500];

		snprintf(page, sizeof(page), PAGE("%s", "null"), rows[i].row);
		drive_answer(&drive, 200, page);
		if (ok(drive.op->succeeded, "%s: a listing", rows[i].what))
			is_number(((const SbxFindResult *) drive.op->result)->count, rows[i].count,
			          "%s%s", rows[i].count == 0 ? "must not fire: " : "",
			          rows[i].what);
		drive_end(&drive);
	}
}

static void
pages(void)
{
	static const char *const malformed[] = {
	    "",
	    "<html>",
	    "[]",
	    "{}",
	    "{\"sandboxes\":[]}",
	    "{\"sandboxes\":{},\"pagination\":{\"next\":null}}",
	    "{\"sandboxes\":[],\"pagination\":{}}",
	    PAGE("", "5"),
	    PAGE("", "\"\""),
	    PAGE("{}", "null"),
	    PAGE("{\"name\":\"\"}", "null"),
	    PAGE("{\"name\":5}", "null"),
	    PAGE("5", "null"),
	};
	const SbxFindResult *found;
	Drive drive = finding(NULL, 0);

	drive_answer(&drive, 200, PAGE(VERCEL_ROW("running", ""), "\"a/b=\""));
	asks(&drive, "GET", BY_NAME "&cursor=a%2Fb%3D", "the next page");
	drive_answer(&drive, 200,
	             PAGE(VERCEL_ROW("stopped", "") ",{\"name\":\"sbx_0\"}", "null"));
	found = drive.op->result;
	ok(drive.op->succeeded && found->count == 2, "each sandbox once");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
	{
		drive = finding(NULL, 0);
		drive_answer(&drive, 200, malformed[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
		      "must fire: no listing: %s", malformed[i]);
		drive_end(&drive);
	}
	drive = finding(NULL, 0);
	drive_answer(&drive, 200, PAGE("", "\"x\""));
	drive_answer(&drive, 200, PAGE("", "\"y\""));
	drive_answer(&drive, 200, PAGE("", "\"x\""));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "must fire: a cursor comes again");
	drive_end(&drive);
	drive = finding(NULL, 0);
	for (int i = 0; i < 1000 && drive.want == SBX_OP_WANT_HTTP; i++)
	{
		char page[100];

		snprintf(page, sizeof(page), PAGE("", "\"c%d\""), i);
		drive_answer(&drive, 200, page);
	}
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "must fire: pages without end");
	drive_end(&drive);
	drive = finding(NULL, 0);
	drive_answer(&drive, 200, PAGE(VERCEL_ROW("running", ""), "\"x\""));
	drive_answer(&drive, 403, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 403, "FORBIDDEN", SBX_ALLOCATION_UNKNOWN,
	      "must fire: part of a listing is none");
	drive_end(&drive);
}

/* States of a listing, and times. */
static void
descriptions(void)
{
	static const struct
	{
		const char *members;
		SbxSandboxState state;
		const char *created_at;
	} rows[] = {
	    {"\"status\":\"running\",\"createdAt\":1790000000123", SBX_STATE_STARTED,
	     "2026-09-21T14:13:20.123Z"},
	    {"\"status\":\"stopping\",\"createdAt\":-1", SBX_STATE_STOPPING, NULL},
	    {"\"status\":\"snapshotting\",\"createdAt\":1.5", SBX_STATE_STOPPING, NULL},
	    {"\"status\":\"stopped\",\"createdAt\":\"1\"", SBX_STATE_STOPPED, NULL},
	    {"\"status\":\"failed\",\"createdAt\":9223372036854775807", SBX_STATE_FAILED,
	     NULL},
	    {"\"status\":\"aborted\"", SBX_STATE_FAILED, NULL},
	    {"\"status\":\"pending\"", SBX_STATE_STARTING, NULL},
	    {"\"status\":\"dreaming\"", SBX_STATE_STARTING, NULL},
	    {"\"status\":5", SBX_STATE_STARTING, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = finding(NULL, 0);
		const SbxSandboxFacts *facts;
		char page[300];

		snprintf(page, sizeof(page), PAGE("{\"name\":\"sbx_1\",%s}", "null"),
		         rows[i].members);
		drive_answer(&drive, 200, page);
		if (ok(drive.op->succeeded, "%s", rows[i].members))
		{
			facts = ((const SbxFindResult *) drive.op->result)->sandboxes;
			is_number(facts->state, rows[i].state, "%s: state", rows[i].members);
			is_text(facts->created_at, rows[i].created_at, "%s: time", rows[i].members);
		}
		drive_end(&drive);
	}
}

void
test_vercel_list(void)
{
	section("Vercel find");
	filters();
	looked_at_again();
	pages();
	descriptions();
}
