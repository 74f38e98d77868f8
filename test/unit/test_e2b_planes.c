/*
 * test_e2b_planes.c
 *		Where requests go, and which secret goes with them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

/* A download's look was answered with this domain, a text or NULL as JSON. */
static Drive
located(const char *domain)
{
	char body[600];
	Drive drive;

	snprintf(body, sizeof(body),
	         "{\"sandboxID\":\"" E2B_ID "\",\"state\":\"running\","
	         "\"envdAccessToken\":\"envd-token\",\"domain\":%s}",
	         domain);
	drive_start(&drive, sbx_kind_e2b.download(&account.account, &e2b_target, "a", 10));
	drive_answer(&drive, 200, body);
	return drive;
}

static void
hosts(void)
{
	static const struct
	{
		const char *domain;
		const char *host;
	} rows[] = {
	    {"null", "https://sandbox.e2b.app"},
	    {"\"\"", "https://sandbox.e2b.app"},
	    {"5", "https://sandbox.e2b.app"},
	    {"\"e2b.app\"", "https://sandbox.e2b.app"},
	    {"\"e2b.dev\"", "https://sandbox.e2b.dev"},
	    {"\"e2b.pro\"", "https://sandbox.e2b.pro"},
	    {"\"e2b-staging.dev\"", "https://sandbox.e2b-staging.dev"},
	    {"\"sbx.example.test\"", "https://49983-" E2B_ID ".sbx.example.test"},
	    {"\"xe2b.app\"", "https://49983-" E2B_ID ".xe2b.app"},
	    {"\"e2b.app.example\"", "https://49983-" E2B_ID ".e2b.app.example"},
	};

	section("host");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char url[200];
		Drive drive;

		e2b_account();
		drive = located(rows[i].domain);
		snprintf(url, sizeof(url), "%s/files?path=a", rows[i].host);
		asks(&drive, "GET", url, "domain %s", rows[i].domain);
		is_text(sent_header(drive.op, "E2b-Sandbox-Id"), E2B_ID, "the sandbox's id");
		is_text(sent_header(drive.op, "E2b-Sandbox-Port"), "49983", "and port");
		is_secret_kept(&drive, rows[i].domain);
		drive_end(&drive);
	}
}

/* What an answer says must not become another host, port, path or user. */
static void
hostile_hosts(void)
{
	static const char *const domains[] = {
	    "\"evil.test/\"",  "\"evil.test#\"",      "\"evil.test?\"",
	    "\"a@evil.test\"", "\"evil.test:80\"",    "\"evil.test\\\\\"",
	    "\"evil test\"",   "\"evil.test\\r\\n\"", "\"EVIL.test\"",
	    "\".evil.test\"",  "\"-evil.test\"",      "\"[::1]\"",
	    "\"%65vil.test\"", "\"\xc3\xa9vil.test\""};
	char text[300];
	Drive drive;

	section("hostile host");
	for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++)
	{
		e2b_account();
		drive = located(domains[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "%s", domains[i]);
		drive_end(&drive);
	}
	memset(text, 'a', sizeof(text));
	memcpy(text, "\"", 1);
	strcpy(text + 250, "\"");
	drive = located(text);
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "too long");
	drive_end(&drive);
}

static void
configured(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	section("configured");
	e2b_account();
	account_text(&account, "domain", "own.example");
	drive_start(&drive, sbx_kind_e2b.launch(&account.account, &input));
	asks(&drive, "POST", "https://api.own.example/v2/sandboxes", "the domain's API");
	drive_end(&drive);
	drive = located("null");
	asks(&drive, "GET", "https://49983-" E2B_ID ".own.example/files?path=a",
	     "the domain's sandboxes");
	drive_end(&drive);
	drive = located("\"team.example\"");
	asks(&drive, "GET", "https://49983-" E2B_ID ".team.example/files?path=a",
	     "what the sandbox says counts more");
	drive_end(&drive);

	account_text(&account, "apiUrl", "https://api.example/base/");
	account_text(&account, "sandboxUrl", "http://localhost:9/");
	drive_start(&drive, sbx_kind_e2b.launch(&account.account, &input));
	asks(&drive, "POST", "https://api.example/base/v2/sandboxes", "an API's address");
	drive_end(&drive);
	drive = located("\"team.example\"");
	asks(&drive, "GET", "http://localhost:9/files?path=a", "one for all sandboxes");
	drive_end(&drive);
	drive = located("\"evil.test/\"");
	asks(&drive, "GET", "http://localhost:9/files?path=a", "whatever they say");
	drive_end(&drive);
}

static void
tokens(void)
{
	Drive drive;

	section("token");
	e2b_account();
	drive_start(&drive, sbx_kind_e2b.download(&account.account, &e2b_target, "a", 10));
	is_secret_kept(&drive, "look");
	drive_answer(&drive, 200, "{\"sandboxID\":\"" E2B_ID "\",\"state\":\"running\"}");
	ok(sent_header(drive.op, "X-Access-Token") == NULL &&
	       sent_header(drive.op, "X-API-KEY") == NULL,
	   "without a token there is none, and no key instead");
	ok(sent_header(drive.op, "Authorization") == NULL, "no user, either");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_e2b.download(&account.account, &e2b_target, "a", 10));
	drive_answer(&drive, 200,
	             "{\"sandboxID\":\"" E2B_ID "\",\"state\":\"running\","
	             "\"envdAccessToken\":\"a\\r\\nX: y\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "one with a line break");
	drive_end(&drive);

	account_text(&account, "user", "root");
	drive = located("null");
	is_text(sent_header(drive.op, "Authorization"),
	        "Basic cm9vdDo=", "a user, without a password");
	drive_end(&drive);
}

/* 502 is the proxy's word for one that is gone, paused, or whose daemon is down. */
static void
bad_gateway(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, "{}", "SANDBOX_GONE"},
	            {200, E2B_DTO("paused"), "NOT_STARTED"},
	            {200, E2B_DTO("running"), NULL},
	            {200, "garbage", NULL},
	            {500, "", NULL},
	            {0, "", NULL}};
	Drive drive;

	section("502");
	e2b_account();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = located("null");
		drive_answer(&drive, 502, "{\"port\":49983}");
		asks(&drive, "GET", E2B_SANDBOX, "the control plane knows");
		is_secret_kept(&drive, "502");
		if (rows[i].status == 0)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		else
			drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 502, rows[i].code, UNKNOWN, "then %d",
		      rows[i].status);
		drive_end(&drive);
	}
	drive = located("null");
	drive_answer(&drive, 502, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 502, NULL, UNKNOWN, "then no time");
	drive_end(&drive);
	drive = located("null");
	drive_answer(&drive, 503, "");
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, UNKNOWN, "503 is not 502");
	drive_end(&drive);
}

void
test_e2b_planes(void)
{
	hosts();
	hostile_hosts();
	configured();
	tokens();
	bad_gateway();
}
