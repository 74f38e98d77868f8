/*
 * test_agent37_wire.c
 *		Our requests beside those that a client of Agent37 builds.
 *
 * Each exchange of data/agent37.json is either made again, from the same inputs, and
 * compared in every part, or listed as nothing that we do.  Where we differ on purpose,
 * the table says what we send and why; a row that no longer differs fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

typedef Drive Sender(void);

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static const SbxTarget gone = {.sandbox_id = "zz12cd34ef"};

static Drive
send_create(void)
{
	SbxLaunchInput input = plain_input();

	input.unique_name = NULL;
	return begin(sbx_kind_agent37.launch(&account.account, &input));
}

static Drive
send_create_full(void)
{
	static const SbxPair labels[] = {
	    {"requestedBy", "sbx"}, {"sbx.id", "sbx_00000000000000000000000000000001"}};
	static const SbxPair env[] = {{"SANDBOX_AGENT_ID", "agent-1"}};
	SbxLaunchInput input = {.unique_name = "sbx-run",
	                        .labels = labels,
	                        .label_count = 2,
	                        .env = env,
	                        .env_count = 1};

	account_text(&account, "template", "my-agent@2");
	account_integer(&account, "resources.cpu", 4);
	account_integer(&account, "resources.memory", 8);
	account_integer(&account, "resources.disk", 20);
	account_text(&account, "type", "dedicated");
	account_boolean(&account, "autoSleep", true);
	account_integer(&account, "idleTimeoutSeconds", 600);
	return begin(sbx_kind_agent37.launch(&account.account, &input));
}

static Drive
send_create_large(void)
{
	account_integer(&account, "resources.cpu", 8);
	account_integer(&account, "resources.memory", 16);
	return send_create();
}

static Drive
send_list(void)
{
	return begin(sbx_kind_agent37.find(&account.account, NULL, 0));
}

static Drive
send_get(void)
{
	return begin(sbx_kind_agent37.get(&account.account, &agent37_target));
}

static Drive
send_get_gone(void)
{
	return begin(sbx_kind_agent37.get(&account.account, &gone));
}

static Drive
send_run(void)
{
	SbxRunInput input = plain_run("ls");

	return agent37_running(&input);
}

static Drive
send_upload(void)
{
	SbxUploadInput input = {.path = "/home/node/a dir/a.txt",
	                        .bytes = "hello",
	                        .length = 5,
	                        .boundary = "x"};

	return agent37_opened(
	    sbx_kind_agent37.upload(&account.account, &agent37_target, &input));
}

static Drive
send_download(void)
{
	return agent37_opened(sbx_kind_agent37.download(&account.account, &agent37_target,
	                                                "/home/node/a.txt", 100));
}

static Drive
send_stop(void)
{
	return begin(sbx_kind_agent37.stop(&account.account, &agent37_target, 0));
}

static Drive
send_start(void)
{
	return begin(sbx_kind_agent37.start(&account.account, &agent37_target, 0));
}

static Drive
send_destroy(void)
{
	return begin(sbx_kind_agent37.destroy(&account.account, &agent37_target, 0));
}

#define WRAPPED                                                                        \
	"the text ends its script itself; directory and variables as with all providers"
#define EXEC "{\"command\":\"*\"}"

static const struct
{
	const char *name;
	Sender *send;     /* NULL = nothing that we do */
	const char *path; /* of ours where it differs; one '*' is any text */
	const char *body;
	const char *why;
} rows[] = {
    {"launch minimal", send_create, NULL, NULL, NULL},
    {"launch full", send_create_full, NULL,
     "{\"template\":\"my-agent@2\",\"resources\":{\"cpu\":4,\"memory\":8,\"disk\":20},"
     "\"type\":\"dedicated\",\"auto_sleep\":true,\"idle_timeout_seconds\":600,\"name\":"
     "\"sbx-run\",\"metadata\":{\"requestedBy\":\"sbx\",\"sbx.id\":"
     "\"sbx_00000000000000000000000000000001\"},\"env\":{\"SANDBOX_AGENT_ID\":"
     "\"agent-1\"}}",
     "there are no settings for budgets, public ports and users"},
    {"launch rejected: key", send_create, NULL, NULL, NULL},
    {"launch rejected: wallet", send_create, NULL, NULL, NULL},
    {"launch rejected: shape above tier", send_create_large, NULL, NULL, NULL},
    {"launch rejected: instance quota", send_create, NULL, NULL, NULL},
    {"launch rejected: no host", send_create, NULL, NULL, NULL},
    {"launch failed after provisioning began", send_create, NULL, NULL, NULL},
    {"list (label filter and count are client-side)", send_list, NULL, NULL, NULL},
    {"get by id", send_get, NULL, NULL, NULL},
    {"get by id: gone", send_get_gone, NULL, NULL, NULL},
    {"run script (cwd and env composed into the command)", send_run, NULL, EXEC,
     WRAPPED},
    {"run script: output over 512 KB", send_run, NULL, EXEC, WRAPPED},
    {"run script: instance not running", send_run, NULL, EXEC, WRAPPED},
    {"run script: 280 s cap reached", send_run, NULL, EXEC, WRAPPED},
    {"run script: flat transport error", send_run, NULL, EXEC, WRAPPED},
    {"upload file", send_upload,
     "/v1/files/content?path=%2Fhome%2Fnode%2Fa%20dir%2Fa.txt", NULL,
     "a blank is encoded as everywhere, which means the same"},
    {"download file", send_download, NULL, NULL, NULL},
    {"upload file, no instance url: exec fallback (cap 262144 bytes)", NULL, NULL, NULL,
     "one way for files, or none"},
    {"stop", send_stop, NULL, NULL, NULL},
    {"start", send_start, NULL, NULL, NULL},
    {"stop during checkpoint: retried once after 250 ms (request 1 of 2)", send_stop,
     NULL, NULL, NULL},
    {"stop during checkpoint: retried once after 250 ms (request 2 of 2)", send_stop,
     NULL, NULL, NULL},
    {"container logs", NULL, NULL, NULL, "they are the template's own, no script's"},
    {"destroy", send_destroy, NULL, NULL, NULL},
    {"destroy again: gone", send_destroy, NULL, NULL, NULL},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* --- comparing -------------------------------------------------------------- */

static bool
matches(const char *text, const char *pattern)
{
	const char *star = strchr(pattern, '*');
	size_t head = star == NULL ? 0 : (size_t) (star - pattern);
	size_t tail = star == NULL ? 0 : strlen(star + 1);

	if (star == NULL || text == NULL)
		return text != NULL && strcmp(text, pattern) == 0;
	return strlen(text) >= head + tail && strncmp(text, pattern, head) == 0 &&
	       strcmp(text + strlen(text) - tail, star + 1) == 0;
}

/* The same, or different as the row says. */
static void
compare_part(size_t row, const char *part, const char *ours, const char *theirs,
             const char *expected)
{
	if (expected == NULL)
		is_text(ours, theirs, "%s: %s as recorded", rows[row].name, part);
	else
		ok(matches(ours, expected) && (theirs == NULL || strcmp(ours, theirs) != 0),
		   "%s: another %s, because %s", rows[row].name, part, rows[row].why);
}

static void
compare_headers(const char *name, const SbxOp *op, const json_t *recorded)
{
	static const char *const headers[] = {"authorization", "x-agent37-key",
	                                      "content-type"};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		is_text(sent_header(op, headers[i]),
		        sbx_json_string(json_object_get(recorded, "headers"), headers[i]),
		        "%s: %s as recorded", name, headers[i]);
}

static void
compare(size_t row, const json_t *recorded)
{
	const char *host = strcmp(sbx_json_string(recorded, "host"), "instance") == 0
	                       ? AGENT37_URL
	                       : AGENT37_API;
	const SbxHttpRequest *request;
	char *body = NULL;
	Drive drive;

	agent37_account();
	account.credentials[0] = "<credential>";
	drive = rows[row].send();
	request = &drive.op->request;
	if (request->body != NULL)
		body = strndup(request->body, request->body_length);
	is_text(request->method, sbx_json_string(recorded, "method"), "%s: method",
	        rows[row].name);
	ok(strncmp(request->url, host, strlen(host)) == 0, "%s: host", rows[row].name);
	compare_part(row, "path", request->url + strlen(host),
	             sbx_json_string(recorded, "path"), rows[row].path);
	compare_part(row, "body", body, sbx_json_string(recorded, "body"), rows[row].body);
	compare_headers(rows[row].name, drive.op, recorded);
	free(body);
	drive_end(&drive);
}

void
test_agent37_wire(void)
{
	char path[4096];
	json_t *all;

	section("Agent37 wire");
	snprintf(path, sizeof(path), "%s/agent37.json", getenv("UNIT_DATA"));
	all = json_load_file(path, 0, NULL);
	is_number((int64_t) json_object_size(all), ROWS, "all that was recorded");
	for (size_t i = 0; i < ROWS; i++)
	{
		const json_t *recorded = json_object_get(all, rows[i].name);

		if (ok(recorded != NULL, "%s: is recorded at all", rows[i].name) &&
		    rows[i].send != NULL)
			compare(i, recorded);
	}
	json_decref(all);
}
