/*
 * test_daytona_toolbox.c
 *		Where the toolbox is, where the key may go, and what its refusals mean.
 */
#include <stdio.h>

#include "unit.h"

static void
toolbox_rule(const char *api, const char *toolbox, bool allowed)
{
	SbxLaunchInput input = plain_input();
	char body[1000];
	Drive drive;

	account_reset(&account);
	account_text(&account, "apiUrl", api);
	snprintf(body, sizeof(body), "{\"id\":\"" ID "\",\"toolboxProxyUrl\":\"%s\"}",
	         toolbox);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	drive_answer(&drive, 200, body);
	if (allowed)
		ok(drive.want == SBX_OP_WANT_HTTP, "%s may send the key to %s", api, toolbox);
	else
		fails(&drive, SBX_PHASE_PROTOCOL, 200, "TOOLBOX_HOST_REFUSED",
		      SBX_ALLOCATION_MADE, "%s must not send the key to %s", api, toolbox);
	drive_end(&drive);
}

static void
toolbox_rules(void)
{
	static const char cloud[] = "https://app.daytona.io/api";

	section("toolbox address");
	toolbox_rule(cloud, "https://proxy.app.daytona.io/toolbox", true);
	toolbox_rule(cloud, "https://app.daytona.io/toolbox", true);
	toolbox_rule(cloud, "HTTPS://PROXY.DAYTONA.IO/toolbox/", true);
	toolbox_rule(cloud, "https://daytona.io", true);
	toolbox_rule(cloud, "https://eu.daytona.io:8443/toolbox", true);
	toolbox_rule(cloud, "http://app.daytona.io/toolbox", false);
	toolbox_rule(cloud, "http://proxy.app.daytona.io/toolbox", false);
	toolbox_rule(cloud, "https://evil.example/toolbox", false);
	toolbox_rule(cloud, "https://app.daytona.io.evil.example/", false);
	toolbox_rule(cloud, "https://evildaytona.io/toolbox", false);
	toolbox_rule(cloud, "https://daytona.io.", false);
	toolbox_rule(cloud, "https://a..daytona.io", true);
	toolbox_rule(cloud, "https://io", false);
	toolbox_rule(cloud, "https://daytona.io@evil.example/", false);
	toolbox_rule(cloud, "https://user@app.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example\\\\.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example#.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example?.daytona.io/", false);
	toolbox_rule(cloud, "https://evil.example%2f.daytona.io/", false);
	toolbox_rule(cloud, "https://ev il.daytona.io/", false);
	toolbox_rule(cloud, "https://\xc3\xa4.daytona.io/", false);
	toolbox_rule(cloud, "https://app.daytona.io/toolbox?x=", false);
	toolbox_rule(cloud, "https://app.daytona.io:0/", false);
	toolbox_rule(cloud, "https://app.daytona.io:65536/", false);
	toolbox_rule(cloud, "https://app.daytona.io:443a/", false);
	toolbox_rule(cloud, "https://app.daytona.io:/", false);
	toolbox_rule(cloud, "https:///toolbox", false);
	toolbox_rule(cloud, "https://", false);
	toolbox_rule(cloud, "//app.daytona.io/", false);
	toolbox_rule(cloud, "ftp://app.daytona.io/", false);
	toolbox_rule(cloud, "toolbox", false);

	toolbox_rule("https://app.daytona.io./api", "https://app.daytona.io./", true);
	toolbox_rule("https://app.daytona.io./api", "https://evil.io./", false);
	toolbox_rule("https://app.daytona..io/api", "https://evil..io/", false);

	toolbox_rule("https://10.0.0.1/api", "https://10.0.0.1/toolbox", true);
	toolbox_rule("https://10.0.0.1/api", "https://9.0.0.1/toolbox", false);
	toolbox_rule("https://[::1]:3000/api", "https://[::1]:4000/toolbox", true);
	toolbox_rule("https://[::1]/api", "https://[::2]/toolbox", false);
	toolbox_rule("https://[::ffff:1.2.3.4]/", "https://[::fffe:1.2.3.4]/", false);
	toolbox_rule("https://[::1]/api", "https://[::1/toolbox", false);
	toolbox_rule("https://daytona/api", "https://daytona/toolbox", true);
	toolbox_rule("https://daytona/api", "https://proxy.daytona/toolbox", false);

	toolbox_rule("http://localhost:3000/api", "http://localhost:4000/toolbox", true);
	toolbox_rule("http://localhost:3000/api", "https://localhost/toolbox", true);
	toolbox_rule("http://localhost:3000/api", "http://127.0.0.1:4000/toolbox", false);
	toolbox_rule("http://127.0.0.1:3000/api", "http://127.0.0.1:4000/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test:80/toolbox", true);
	toolbox_rule("http://api.x.test/api", "http://box.x.test:81/toolbox", false);
}

static void
toolbox_sources(void)
{
	Drive drive = launched();

	section("toolbox address from");
	drive_answer(&drive, 200, "{\"id\":\"" ID "\"}");
	drive_answer(&drive, 200, DTO("started"));
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "the later description");
	drive_end(&drive);

	drive = launched();
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"toolboxProxyUrl\":null}");
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	asks(&drive, "GET", SANDBOX "/toolbox-proxy-url", "its own resource");
	drive_answer(&drive, 503, "");
	pauses(&drive, 100, "which may be away");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	drive_answer(&drive, 200, "{\"url\":\"" TOOLBOX "//\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "slashes at its end are cut");
	drive_end(&drive);

	for (int i = 0; i < 3; i++)
	{
		static const char *const bodies[] = {"{\"url\":\"https://evil.example/\"}",
		                                     "{}", "<html>"};

		drive = launched();
		drive_answer(&drive, 200, "{\"id\":\"" ID "\"}");
		drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, i == 0 ? "TOOLBOX_HOST_REFUSED" : NULL,
		      SBX_ALLOCATION_MADE, "bad answer %d", i);
		drive_end(&drive);
	}

	drive = created();
	drive_answer(&drive, 200,
	             "{\"id\":\"" ID "\",\"state\":\"started\","
	             "\"toolboxProxyUrl\":\"https://other.recorder.invalid/\"}");
	asks(&drive, "POST", SANDBOX_BOX "/process/execute", "the first answer, for good");
	drive_end(&drive);
}
/* --- opening it ----------------------------------------------------------- */

/* Every operation inside a sandbox; they all begin with the same look. */
static SbxOp *
make_inside(int which, const SbxTarget *target)
{
	static const SbxScriptTarget script = {
	    .session_id = "run-1", .command_id = "c1", .max_stream = 10};
	static const SbxUploadInput upload = {
	    .path = "/a", .bytes = "x", .length = 1, .boundary = "b"};
	SbxRunInput run = plain_run("x");

	account_reset(&account);
	switch (which)
	{
		case 0:
			return sbx_kind_daytona.run_script(&account.account, target, &run);
		case 1:
			return sbx_kind_daytona.start_script(&account.account, target, &run);
		case 2:
			return sbx_kind_daytona.script_status(&account.account, target, &script);
		case 3:
			return sbx_kind_daytona.script_logs(&account.account, target, &script);
		case 4:
			return sbx_kind_daytona.upload(&account.account, target, &upload);
		default:
			return sbx_kind_daytona.download(&account.account, target, "/a", 10);
	}
}

#define INSIDE 6

static Drive
looking(int which)
{
	SbxTarget target = {.sandbox_id = ID};
	Drive drive;

	drive_start(&drive, make_inside(which, &target));
	return drive;
}

static void
look_ends(int status, const char *body, SbxPhase phase, const char *code)
{
	for (int which = 0; which < INSIDE; which++)
	{
		Drive drive = looking(which);

		drive_answer_always(&drive, status, body);
		fails(&drive, phase, status, code, SBX_ALLOCATION_UNKNOWN, "%s: %d %.60s",
		      drive.op->operation, status, body);
		drive_end(&drive);
	}
}

static void
open_looks(void)
{
	section("open");
	look_ends(404, "{}", SBX_PHASE_REMOTE, "SANDBOX_GONE");
	look_ends(200, DTO("destroying"), SBX_PHASE_REMOTE, "SANDBOX_GONE");
	look_ends(200, DTO("destroyed"), SBX_PHASE_REMOTE, "SANDBOX_GONE");
	look_ends(200, DTO("stopped"), SBX_PHASE_REMOTE, "NOT_STARTED");
	look_ends(200, DTO("stopping"), SBX_PHASE_REMOTE, "NOT_STARTED");
	look_ends(200, DTO("creating"), SBX_PHASE_REMOTE, "NOT_STARTED");
	look_ends(200, DTO("error"), SBX_PHASE_REMOTE, "NOT_STARTED");
	look_ends(401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED");
	look_ends(403, "{}", SBX_PHASE_REMOTE, "FORBIDDEN");
	look_ends(409, "{}", SBX_PHASE_REMOTE, NULL);
	look_ends(429, "{}", SBX_PHASE_REMOTE, "RATE_LIMITED");
	look_ends(500, "", SBX_PHASE_REMOTE, NULL);
	look_ends(200, "<html>", SBX_PHASE_PROTOCOL, NULL);
	look_ends(200, "{\"id\":5}", SBX_PHASE_PROTOCOL, NULL);
	look_ends(200, "{\"id\":\"other\",\"state\":\"started\"}", SBX_PHASE_PROTOCOL,
	          NULL);
	look_ends(200,
	          "{\"id\":\"" ID "\",\"state\":\"started\","
	          "\"toolboxProxyUrl\":\"https://evil.example/\"}",
	          SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
}

static void
open_without_answer(void)
{
	char long_id[258];

	memset(long_id, 'a', 256);
	long_id[256] = '\0';
	section("open");
	for (int which = 0; which < INSIDE; which++)
	{
		const char *timeout_code = which == 0 ? "TIMEOUT" : NULL;
		const char *const bad[] = {"a/b", "", "..", "a b", "a?b", long_id, NULL};
		Drive drive = looking(which);
		const char *name = drive.op->operation;

		asks(&drive, "GET", SANDBOX, "%s: looks first", name);
		drive_answer_always(&drive, 0, NULL);
		fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN,
		      "%s: no connection", name);
		ok(!drive.op->failure.request_sent, "%s: nothing was sent", name);
		drive_end(&drive);
		drive = looking(which);
		drive_expire(&drive);
		fails(&drive, SBX_PHASE_RECEIVE, 0, timeout_code, SBX_ALLOCATION_UNKNOWN,
		      "%s: time over", name);
		ok(drive.op->failure.timed_out, "%s: and that is said", name);
		drive_end(&drive);
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		{
			SbxTarget target = {.sandbox_id = bad[i]};

			drive_start(&drive, make_inside(which, &target));
			fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "%s: id %.10s",
			      name, bad[i] ? bad[i] : "and name unknown");
			drive_end(&drive);
		}
	}
}

static void
open_located(void)
{
	static const char bare[] = "{\"id\":\"" ID "\",\"state\":\"started\"}";
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {{404, "{}", SBX_PHASE_REMOTE, NULL},
	            {401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	            {503, "", SBX_PHASE_REMOTE, NULL},
	            {200, "{}", SBX_PHASE_PROTOCOL, NULL},
	            {200, "{\"url\":5}", SBX_PHASE_PROTOCOL, NULL},
	            {200, "{\"url\":\"\"}", SBX_PHASE_PROTOCOL, NULL},
	            {200, "{\"url\":\"https://x.example/\"}", SBX_PHASE_PROTOCOL,
	             "TOOLBOX_HOST_REFUSED"}};

	section("open: address");
	for (int which = 0; which < INSIDE; which++)
	{
		Drive drive = looking(which);

		drive_answer(&drive, 200, bare);
		asks(&drive, "GET", SANDBOX "/toolbox-proxy-url", "%s: is asked for",
		     drive.op->operation);
		drive_answer(&drive, 200, "{\"url\":\"" TOOLBOX "/\"}");
		ok(drive.want == SBX_OP_WANT_HTTP &&
		       strncmp(drive.op->request.url, SANDBOX_BOX "/",
		               strlen(SANDBOX_BOX "/")) == 0,
		   "%s: and used", drive.op->operation);
		drive_end(&drive);
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		{
			drive = looking(which);
			drive_answer(&drive, 200, bare);
			drive_answer_always(&drive, rows[i].status, rows[i].body);
			fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
			      SBX_ALLOCATION_UNKNOWN, "%s: %d %s", drive.op->operation,
			      rows[i].status, rows[i].body);
			drive_end(&drive);
		}
	}
}

/* --- refusals, the same for all ------------------------------------------- */

static void
refused_inside(int which, int status, const char *body, const char *code)
{
	SbxTarget target = {.sandbox_id = ID};
	Drive drive = opened(make_inside(which, &target));

	drive_answer(&drive, status, body);

	/* To these a 404 first means that the session is lost. */
	if (status == 404 && drive.want == SBX_OP_WANT_HTTP)
		drive_answer(&drive, status, body);
	fails(&drive, SBX_PHASE_REMOTE, status, code, SBX_ALLOCATION_UNKNOWN, "%s: %d %s",
	      drive.op->operation, status, body);
	drive_end(&drive);
}

static void
refusals(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, "{}", "SANDBOX_GONE"},
	            {200, DTO("destroying"), "SANDBOX_GONE"},
	            {200, DTO("destroyed"), "SANDBOX_GONE"},
	            {200, DTO("started"), NULL},
	            {200, "<html>", NULL},
	            {401, "{}", NULL},
	            {500, "", NULL}};
	SbxTarget target = {.sandbox_id = ID};

	section("toolbox refuses");
	for (int which = 0; which < INSIDE; which++)
	{
		Drive drive;

		refused_inside(which, 400,
		               "{\"message\":\"bad request: no IP address found. Is the "
		               "Sandbox started?\"}",
		               "NOT_STARTED");

		refused_inside(which, 404, "{\"message\":\"sandbox container not found\"}",
		               "NOT_STARTED");
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		{
			drive = opened(make_inside(which, &target));
			drive_answer(&drive, 401, "{}");
			asks(&drive, "GET", SANDBOX, "%s: 401: the control plane decides",
			     drive.op->operation);
			drive_answer(&drive, rows[i].status, rows[i].body);
			fails(&drive, SBX_PHASE_REMOTE, 401, rows[i].code, SBX_ALLOCATION_UNKNOWN,
			      "%s: 401, control plane says %d %.60s", drive.op->operation,
			      rows[i].status, rows[i].body);
			drive_end(&drive);
		}
		drive = opened(make_inside(which, &target));
		drive_answer(&drive, 401, "{}");
		drive_expire(&drive);
		fails(&drive, SBX_PHASE_REMOTE, 401, NULL, SBX_ALLOCATION_UNKNOWN,
		      "%s: 401, no time to ask", drive.op->operation);
		drive_end(&drive);
		drive = opened(make_inside(which, &target));
		drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
		fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN,
		      "%s: no connection", drive.op->operation);
		drive_end(&drive);
	}
}

void
test_daytona_toolbox(void)
{
	toolbox_rules();
	toolbox_sources();
	open_looks();
	open_without_answer();
	open_located();
	refusals();
}
