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
void
test_daytona_toolbox(void)
{
	toolbox_rules();
	toolbox_sources();
}
