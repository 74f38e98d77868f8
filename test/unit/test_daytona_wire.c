/*
 * test_daytona_wire.c
 *		Our requests beside those that the provider's own client sent.
 *
 * Each recording of data/daytona.json is either made again, from the same inputs, and
 * compared in every part, or listed below as nothing that we do.  Where we differ on
 * purpose, the table says what we send and why; a row that no longer differs fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

/* --- where we differ, and why -------------------------------------------- */

typedef enum Part
{
	METHOD,
	PATH,
	QUERY,
	AUTHORIZATION,
	ACCEPT,
	CONTENT_TYPE,
	VERSION,
	BODY,
	PARTS,
	NOT_OURS
} Part;

static const char *const part_names[] = {"method",        "path",   "query",
                                         "authorization", "accept", "content type",
                                         "version",       "body"};

typedef struct Difference
{
	const char *recording;
	Part part;
	const char *ours; /* one '*' stands for any text; NULL = we send none */
	const char *why;
} Difference;

#define BOUNDARY "--------------------------99d464e808ff3ca573bc047a"
#define COMMAND  "c0ffee00-0000-4000-8000-000000000002"
#define LABELS                                                                         \
	"labels=%7B%22sbx%22%3A%22sbx_0123%22%2C%22k%22%3A%22a%20b%2F%C3%BC%22%7D"
#define CURSOR                                                                         \
	"cursor=eyJzb3J0VmFsdWUiOiIyMDI2LTEyLTAxVDEwOjAwOjAxLjAwMFoiLCJpZCI6IjIifQ%3D%3D"
#define FIND   "limit=200&" LABELS "&sort=createdAt&order=asc"
#define ALL    "limit=200&sort=createdAt&order=asc"
#define SCRIPT "{\"command\":\"*\",\"runAsync\":false}"

#define NO_STATES                                                                      \
	"large pages in a stable order; every state, since ours may be in any; blanks as " \
	"%20"
#define WRAPPED                                                                        \
	"directory, variables and script go to a child shell: an `exit` must not end the " \
	"session's own"
#define NO_FORM  "there is no body, so it has no type"
#define ONE_KIND "every answer is asked for as JSON"
#define NEWEST   "one version for all, because it decides the shape of answers"
#define NO_ENV                                                                         \
	"only our own texts are run in one shot: they need no directory and no variables"
#define BY_GET                                                                         \
	"a plain GET has a status for a file that is missing, and no form to take apart"
#define OLD(name, why)                                                                 \
	{                                                                                  \
		"0.180.0 " name, VERSION, "0.205.1", why                                       \
	}

static const Difference differences[] = {
    {"create_from_image", BODY, "{\"name\":\"" NAME "\",*",
     "always with a unique name, by which a lost create is found"},
    {"create_detached", BODY,
     "{\"name\":\"job-2\",*,\"target\":\"us\",\"autoStopInterval\":5}",
     "a detached launch has all parameters, as any other"},
    {"list", QUERY, FIND, NO_STATES},
    {"list_page_2", QUERY, FIND "&" CURSOR, NO_STATES},
    {"inventory", QUERY, ALL, NO_STATES},
    {"inventory_page_2", QUERY, ALL "&" CURSOR, NO_STATES},
    {"session_exec", BODY, SCRIPT, WRAPPED},
    {"session_exec_async", BODY, "{\"command\":\"*\",\"runAsync\":true}",
     WRAPPED "; nothing is ever typed, so there is no echo to suppress"},
    {"session_delete", ACCEPT, "application/json", ONE_KIND},
    {"execute", BODY, "{\"command\":\"true\",\"timeout\":10}", NO_ENV},
    {"execute_timeout", BODY, "{\"command\":\"*\",\"timeout\":8}", NO_ENV},
    {"upload", BODY,
     "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n"
     "/tmp/a.txt\r\n--" BOUNDARY "\r\nContent-Disposition: form-data; "
     "name=\"files[0].file\"; filename=\"file\"\r\n"
     "Content-Type: application/octet-stream\r\n\r\nhello\r\n--" BOUNDARY "--\r\n",
     "the name and type of the part are constants: the path counts, and needs no "
     "quoting where it stands"},
    {"download", METHOD, "GET", BY_GET},
    {"download", PATH, "/toolbox/" ID "/files/download", BY_GET},
    {"download", QUERY, "path=%2Ftmp%2Fa.txt", BY_GET},
    {"download", ACCEPT, "*/*", BY_GET},
    {"download", CONTENT_TYPE, NULL, BY_GET},
    {"download", BODY, NULL, BY_GET},
    {"download_missing", METHOD, "GET", BY_GET},
    {"download_missing", PATH, "/toolbox/" ID "/files/download", BY_GET},
    {"download_missing", QUERY, "path=%2Ftmp%2Fmissing.txt", BY_GET},
    {"download_missing", ACCEPT, "*/*", BY_GET},
    {"download_missing", CONTENT_TYPE, NULL, BY_GET},
    {"download_missing", BODY, NULL, BY_GET},
    {"stop", CONTENT_TYPE, NULL, NO_FORM},
    {"start", CONTENT_TYPE, NULL, NO_FORM},
    OLD("create_from_snapshot", NEWEST),
    OLD("create_from_snapshot_look_1", NEWEST),
    OLD("create_from_snapshot_look_2", NEWEST),
    OLD("list", NEWEST),
    {"0.180.0 list", QUERY, FIND, NO_STATES},
    OLD("list_page_2", NEWEST),
    {"0.180.0 list_page_2", QUERY, FIND "&" CURSOR, NO_STATES},
    OLD("home_dir", NEWEST),
    OLD("session_create", NEWEST),
    {"0.180.0 session_create", ACCEPT, "application/json", ONE_KIND},
    OLD("session_exec", NEWEST),
    {"0.180.0 session_exec", BODY, SCRIPT, WRAPPED},
    OLD("execute", NEWEST),
    {"0.180.0 execute", BODY, "{\"command\":\"true\",\"timeout\":10}", NO_ENV},
    OLD("destroy", NEWEST),

    {"session_command_status", NOT_OURS, NULL,
     "a session forgets its commands when the sandbox stops; ours are in files"},
    {"session_command_logs", NOT_OURS, NULL,
     "a session forgets its log when the sandbox stops; ours is in files"},
    {"session_command_logs_follow", NOT_OURS, NULL, "a statement returns once"},
    {"set_autostop", NOT_OURS, NULL, "set at launch, not changed later"},
    {"set_ttl", NOT_OURS, NULL, "no lifetime beyond what launch sets"},
    {"refresh_activity", NOT_OURS, NULL, "every request to the toolbox is activity"},
    {"preview_url", NOT_OURS, NULL, "ports are not the router's"},
    {"signed_preview_url", NOT_OURS, NULL, "ports are not the router's"},
    {"pause", NOT_OURS, NULL, "only virtual machines can be paused"},
    {"pause_look", NOT_OURS, NULL, "only virtual machines can be paused"},
    {"get_with_jwt", NOT_OURS, NULL, "keys belong to one organization: no header"},
    {"event_socket_1", NOT_OURS, NULL, "states are asked for, not listened to"},
    {"event_socket_2", NOT_OURS, NULL, "states are asked for, not listened to"},
};

#define DIFFERENCES (sizeof(differences) / sizeof(differences[0]))

static const Difference *
difference(const char *recording, Part part)
{
	for (size_t i = 0; i < DIFFERENCES; i++)
	{
		if (strcmp(differences[i].recording, recording) == 0 &&
		    differences[i].part == part)
			return &differences[i];
	}
	return NULL;
}

/* --- the same inputs ------------------------------------------------------ */

static const SbxTarget target = {.sandbox_id = ID};

static Drive
send_create(const char *name, const SbxPair *label, bool detached)
{
	static const SbxPair env[] = {{"A", "1"}};
	SbxLaunchInput input = {.unique_name = name,
	                        .labels = label,
	                        .label_count = label != NULL,
	                        .env = env,
	                        .env_count = label != NULL && !detached,
	                        .detached = detached};
	Drive drive;

	account_text(&account, "snapshot", "base-2cpu");
	account_text(&account, "target", "us");
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	return drive;
}

static Drive
send_create_from_snapshot(void)
{
	static const SbxPair label = {"sbx", "sbx_0123"};

	account_integer(&account, "createParams.autoStopInterval", 5);
	account_integer(&account, "createParams.autoArchiveInterval", 60);
	account_integer(&account, "createParams.autoDeleteInterval", 0);
	return send_create("job-1", &label, false);
}

static Drive
send_look_1(void)
{
	Drive drive = send_create_from_snapshot();

	drive_recorded(&drive, "create_from_snapshot");
	return drive;
}

static Drive
send_look_2(void)
{
	Drive drive = send_look_1();

	drive_recorded(&drive, "create_from_snapshot_look_1");
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_create_from_image(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	account_text(&account, "image", "debian:12");
	account_text(&account, "target", "us");
	account_integer(&account, "createParams.cpu", 2);
	account_integer(&account, "createParams.memory", 4);
	account_integer(&account, "createParams.disk", 8);
	drive_start(&drive, sbx_kind_daytona.launch(&account.account, &input));
	return drive;
}

static Drive
send_create_detached(void)
{
	static const SbxPair label = {"k", "v"};

	account_integer(&account, "createParams.autoStopInterval", 5);
	return send_create("job-2", &label, true);
}

static Drive
send_plain_create(void)
{
	return send_create("job-1", NULL, false);
}

static Drive
send_probe(void)
{
	Drive drive = send_look_2();

	drive_recorded(&drive, "create_from_snapshot_look_2");
	return drive;
}

static Drive
send_get_of(const char *id)
{
	SbxTarget one = {.sandbox_id = id};
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.get(&account.account, &one));
	return drive;
}

static Drive
send_get(void)
{
	return send_get_of(ID);
}

static Drive
send_get_gone(void)
{
	return send_get_of("nope");
}

static Drive
send_toolbox_proxy_url(void)
{
	Drive drive = send_plain_create();

	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"name\":\"job-1\"}");
	drive_answer(&drive, 200, "{\"id\":\"" ID "\",\"state\":\"started\"}");
	return drive;
}

static Drive
send_list(void)
{
	static const SbxPair labels[] = {{"sbx", "sbx_0123"}, {"k", "a b/\xc3\xbc"}};
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.find(&account.account, labels, 2));
	return drive;
}

static Drive
send_list_page_2(void)
{
	Drive drive = send_list();

	drive_recorded(&drive, "list");
	return drive;
}

static Drive
send_inventory(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.find(&account.account, NULL, 0));
	return drive;
}

static Drive
send_inventory_page_2(void)
{
	Drive drive = send_inventory();

	drive_recorded(&drive, "inventory");
	return drive;
}

static Drive
send_session_create(void)
{
	static const SbxPair env[] = {{"A", "1"}};
	SbxRunInput input = plain_run("echo out; echo err >&2");

	input.env = env;
	input.env_count = 1;
	input.cwd = "/tmp";
	return opened(sbx_kind_daytona.run_script(&account.account, &target, &input));
}

static Drive
send_session_exec(void)
{
	Drive drive = send_session_create();

	drive_recorded(&drive, "session_create");
	return drive;
}

static Drive
send_session_delete(void)
{
	Drive drive = send_session_exec();

	drive_recorded(&drive, "session_exec");
	return drive;
}

static Drive
start_script(void)
{
	SbxRunInput input = plain_run("sleep 1");

	Drive drive =
	    opened(sbx_kind_daytona.start_script(&account.account, &target, &input));

	drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"new\\n\"}");
	return drive;
}

static Drive
send_session_exec_async(void)
{
	Drive drive = start_script();

	drive_recorded(&drive, "session_create");
	return drive;
}

static Drive
send_session_get(void)
{
	Drive drive = start_script();

	drive_answer(&drive, 409, "{}");
	return drive;
}

static Drive
send_status_text(void)
{
	SbxScriptTarget script = {.session_id = "run-1", .command_id = COMMAND};

	return opened(sbx_kind_daytona.script_status(&account.account, &target, &script));
}

static Drive
send_upload(void)
{
	SbxUploadInput input = {
	    .path = "/tmp/a.txt", .bytes = "hello", .length = 5, .boundary = BOUNDARY};

	return opened(sbx_kind_daytona.upload(&account.account, &target, &input));
}

static Drive
send_home_dir(void)
{
	return opened(sbx_kind_daytona.download(&account.account, &target, "a.txt", 100));
}

static Drive
send_download(void)
{
	return opened(
	    sbx_kind_daytona.download(&account.account, &target, "/tmp/a.txt", 100));
}

static Drive
send_download_missing(void)
{
	return opened(
	    sbx_kind_daytona.download(&account.account, &target, "/tmp/missing.txt", 100));
}

static Drive
send_stop(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.stop(&account.account, &target, 0));
	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

static Drive
send_stop_look_1(void)
{
	Drive drive = send_stop();

	drive_recorded(&drive, "stop");
	return drive;
}

static Drive
send_stop_look_2(void)
{
	Drive drive = send_stop_look_1();

	drive_recorded(&drive, "stop_look_1");
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_start(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.start(&account.account, &target, 0));
	drive_answer(&drive, 200, DTO("stopped"));
	return drive;
}

static Drive
send_destroy(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.destroy(&account.account, &target, 0));
	return drive;
}

static const struct
{
	const char *recording;
	Drive (*send)(void);
} senders[] = {
    {"create_from_snapshot", send_create_from_snapshot},
    {"create_from_snapshot_look_1", send_look_1},
    {"create_from_snapshot_look_2", send_look_2},
    {"create_from_image", send_create_from_image},
    {"create_detached", send_create_detached},
    {"create_quota", send_plain_create},
    {"create_unauthorized", send_plain_create},
    {"create_name_conflict", send_plain_create},
    {"create_rate_limited", send_plain_create},
    {"create_failed_to_start", send_plain_create},
    {"get", send_get},
    {"get_gone", send_get_gone},
    {"toolbox_proxy_url", send_toolbox_proxy_url},
    {"list", send_list},
    {"list_page_2", send_list_page_2},
    {"inventory", send_inventory},
    {"inventory_page_2", send_inventory_page_2},
    {"session_create", send_session_create},
    {"session_exec", send_session_exec},
    {"session_exec_async", send_session_exec_async},
    {"session_get", send_session_get},
    {"session_delete", send_session_delete},
    {"execute", send_probe},
    {"execute_timeout", send_status_text},
    {"home_dir", send_home_dir},
    {"upload", send_upload},
    {"download", send_download},
    {"download_missing", send_download_missing},
    {"stop", send_stop},
    {"stop_look_1", send_stop_look_1},
    {"stop_look_2", send_stop_look_2},
    {"start", send_start},
    {"destroy", send_destroy},
    {"destroy_conflict", send_destroy},
    {"destroy_gone", send_destroy},
};

/* --- comparing ------------------------------------------------------------ */

/* Text is taken as it is, anything else as JSON; NULL = there is none. */
static char *
body_text(const json_t *body)
{
	if (json_is_null(body))
		return NULL;
	return json_is_string(body) ? strdup(json_string_value(body))
	                            : json_dumps(body, JSON_COMPACT);
}

/* The parts of a recording, those that are missing NULL; freed by free_parts(). */
static void
recorded_parts(const json_t *recorded, char *parts[PARTS])
{
	static const char *const headers[] = {
	    [AUTHORIZATION] = "authorization",
	    [ACCEPT] = "accept",
	    [CONTENT_TYPE] = "content-type",
	    [VERSION] = "x-daytona-sdk-version",
	};
	const char *path = sbx_json_string(recorded, "path");
	size_t length = strcspn(path, "?");

	memset(parts, 0, PARTS * sizeof(char *));
	parts[METHOD] = strdup(sbx_json_string(recorded, "method"));
	parts[PATH] = strndup(path, length);
	if (path[length] == '?')
		parts[QUERY] = strdup(path + length + 1);
	for (int part = AUTHORIZATION; part <= VERSION; part++)
	{
		const char *value =
		    sbx_json_string(json_object_get(recorded, "headers"), headers[part]);

		parts[part] = value == NULL ? NULL : strdup(value);
	}
	parts[BODY] = body_text(json_object_get(recorded, "body"));
}

/* The same of a request; a host other than the plane's is in the path. */
static void
sent_parts(const SbxOp *op, const char *plane, char *parts[PARTS])
{
	static const char *const headers[] = {
	    [AUTHORIZATION] = "Authorization",
	    [ACCEPT] = "Accept",
	    [CONTENT_TYPE] = "Content-Type",
	    [VERSION] = "X-Daytona-SDK-Version",
	};
	char host[100];
	const char *path = op->request.url;
	size_t length;

	memset(parts, 0, PARTS * sizeof(char *));
	snprintf(host, sizeof(host), "https://%s.recorder.invalid",
	         strcmp(plane, "control") == 0 ? "api" : "toolbox");
	if (strncmp(path, host, strlen(host)) == 0)
		path += strlen(host);
	length = strcspn(path, "?");
	parts[METHOD] = strdup(op->request.method);
	parts[PATH] = strndup(path, length);
	if (path[length] == '?')
		parts[QUERY] = strdup(path + length + 1);
	for (int part = AUTHORIZATION; part <= VERSION; part++)
	{
		const char *value = sent_header(op, headers[part]);

		parts[part] = value == NULL ? NULL : strdup(value);
	}
	if (op->request.body != NULL)
		parts[BODY] = strndup(op->request.body, op->request.body_length);
}

static void
free_parts(char *parts[PARTS])
{
	for (int part = 0; part < PARTS; part++)
		free(parts[part]);
}

static bool
same(const char *left, const char *right)
{
	return left == NULL || right == NULL ? left == right : strcmp(left, right) == 0;
}

static bool
matches(const char *text, const char *pattern)
{
	const char *star = pattern == NULL ? NULL : strchr(pattern, '*');
	size_t head;
	size_t tail;

	if (star == NULL || text == NULL || strcmp(pattern, "*/*") == 0)
		return same(text, pattern);
	head = (size_t) (star - pattern);
	tail = strlen(star + 1);
	return strlen(text) >= head + tail && strncmp(text, pattern, head) == 0 &&
	       strcmp(text + strlen(text) - tail, star + 1) == 0;
}

static void
compare(const char *recording, Drive (*send)(void))
{
	const json_t *recorded = golden(recording);
	char *theirs[PARTS];
	char *ours[PARTS];
	Drive drive;

	account_reset(&account);
	drive = send();
	ok(drive.want == SBX_OP_WANT_HTTP, "%s: is sent", recording);
	recorded_parts(recorded, theirs);
	sent_parts(drive.op, sbx_json_string(recorded, "plane"), ours);
	for (int part = 0; part < PARTS; part++)
	{
		const Difference *row = difference(recording, (Part) part);

		if (row == NULL)
			is_text(ours[part], theirs[part], "%s: %s as recorded", recording,
			        part_names[part]);
		else if (!ok(matches(ours[part], row->ours) && !same(ours[part], theirs[part]),
		             "%s: another %s, because %s", recording, part_names[part],
		             row->why))
			printf("#      got: %s\n# recorded: %s\n",
			       ours[part] ? ours[part] : "(null)",
			       theirs[part] ? theirs[part] : "(null)");
	}
	free_parts(theirs);
	free_parts(ours);
	drive_end(&drive);
}

/* What an older client sent is compared with what sends the newer one's. */
static Drive (*sender_of(const char *recording))(void)
{
	if (strncmp(recording, "0.180.0 ", 8) == 0)
		recording += 8;
	for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]); i++)
	{
		if (strcmp(senders[i].recording, recording) == 0)
			return senders[i].send;
	}
	return NULL;
}

void
test_daytona_wire(void)
{
	const char *recording;
	json_t *value;

	section("wire");
	json_object_foreach ((json_t *) golden_all(), recording, value)
	{
		const Difference *row = difference(recording, NOT_OURS);
		Drive (*send)(void) = sender_of(recording);

		if (row == NULL && ok(send != NULL, "%s: is an operation of ours", recording))
			compare(recording, send);
		else if (row != NULL)
			ok(send == NULL, "%s: not an operation of ours: %s", recording, row->why);
	}
	for (size_t i = 0; i < DIFFERENCES; i++)
	{
		if (json_object_get(golden_all(), differences[i].recording) == NULL)
			ok(false, "%s: is recorded at all", differences[i].recording);
	}
	is_number((int64_t) json_object_size(golden_all()), 58, "all that was recorded");
}
