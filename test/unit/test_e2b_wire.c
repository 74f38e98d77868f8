/*
 * test_e2b_wire.c
 *		Our requests beside those that E2B's own client sent, in two versions.
 *
 * Each recording of data/e2b.json is either made again, from the same inputs, and
 * compared in every part, or listed below as nothing that we do.  Where we differ on
 * purpose, the table says what we send and why; a row that no longer differs fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

typedef enum Part
{
	METHOD,
	HOST,
	PATH,
	QUERY,
	API_KEY,
	TOKEN,
	USER,
	TYPE,
	PROTOCOL,
	LIFETIME,
	KEEPALIVE,
	SANDBOX_ID,
	PORT,
	BODY,
	PARTS,
	NOT_OURS
} Part;

static const char *const part_names[] = {
    "method", "host",     "path",     "query",     "key",     "token", "user",
    "type",   "protocol", "lifetime", "keepalive", "sandbox", "port",  "body"};

static const char *const headers[PARTS] = {
    [API_KEY] = "x-api-key",
    [TOKEN] = "x-access-token",
    [USER] = "authorization",
    [TYPE] = "content-type",
    [PROTOCOL] = "connect-protocol-version",
    [LIFETIME] = "connect-timeout-ms",
    [KEEPALIVE] = "keepalive-ping-interval",
    [SANDBOX_ID] = "e2b-sandbox-id",
    [PORT] = "e2b-sandbox-port",
};

typedef struct Difference
{
	const char *recording;
	Part part;
	const char *ours; /* one '*' stands for any text; NULL = we send none */
	const char *why;
} Difference;

#define NEWER "2.51.0 "
#define OLDER "2.35.3 "

#define MINIMAL "{\"templateID\":\"base\",\"timeout\":300}"
#define SAID    "the lifetime is said, whatever the provider's default is"
#define FULL                                                                           \
	"{\"templateID\":\"my-team/tpl:v2\",\"timeout\":1801,\"metadata\":{\"purpose\":"   \
	"\"a b&c=d\",\"sbx\":\"sbx_0123\",\"uni\":\"\xc3\xa9\"},\"envVars\":{\"A\":\"1\"," \
	"\"MULTI\":\"x\\ny\"},\"allow_internet_access\":false,\"autoPause\":true}"
#define NO_NETWORK "there are no settings for the network and for resuming by itself"
#define FILTER                                                                         \
	"metadata=app%252520name%3Da%252520b%252526c%25253Dd%25252F%2525C3%2525A9%26k%"    \
	"3D100%252525&"
#define ALL   "state=running%2Cpaused&limit=100&order=asc"
#define PAGES "large pages in a stable order; the comma encoded"
#define SHELL                                                                          \
	"{\"process\":{\"cmd\":\"/bin/"                                                    \
	"bash\",\"args\":[\"-l\",\"-c\",\"*\"]},\"stdin\":false}"
#define WRAPPED                                                                        \
	"directory, variables and script go to a child shell, as with every other "        \
	"provider"
#define ONE_BODY "what is left out means the same"
#define ONE_PATH "the newer address for every version of the server"

static const Difference differences[] = {
    {NEWER "create (minimal)", BODY, MINIMAL, SAID},
    {NEWER "create (metadata, envs, timeout, network, lifecycle)", BODY, FULL,
     NO_NETWORK},
    {NEWER "create refused: team concurrency quota", BODY, MINIMAL, SAID},
    {NEWER "create rate limited, retried by SDK (request 1 of 2)", BODY, MINIMAL, SAID},
    {NEWER "create rate limited, retried by SDK (request 2 of 2)", BODY, MINIMAL, SAID},
    {NEWER "create: bad key", BODY, MINIMAL, SAID},
    {NEWER "create: no capacity", BODY, MINIMAL, SAID},
    {NEWER "create: unknown template", BODY,
     "{\"templateID\":\"nope\",\"timeout\":300}", SAID},
    {NEWER "list by metadata, page 1", QUERY, FILTER ALL, PAGES},
    {NEWER "list by metadata, page 2", QUERY,
     FILTER ALL "&nextToken=MjAyNi0xMi0wMVQxMDowMDowMFpfX2liYmI%3D", PAGES},
    {NEWER "list, no filter", QUERY, ALL, PAGES},
    {NEWER "pause keepMemory=true", BODY, "{}", ONE_BODY},
    {NEWER "connect: gone", BODY, "{\"timeout\":300}", SAID},
    {NEWER "run foreground", BODY, SHELL, WRAPPED},
    {NEWER "run: non-zero exit", BODY, SHELL, WRAPPED},
    {NEWER "run: killed by signal", BODY, SHELL, WRAPPED},
    {NEWER "run: deadline frame", BODY, SHELL, WRAPPED},
    {NEWER "run: error before start", BODY, SHELL, WRAPPED},
    {NEWER "run: sandbox gone", BODY, SHELL, WRAPPED},
    {NEWER "run: bad envd token", BODY, SHELL, WRAPPED},
    {NEWER "run: proxy 429", BODY, SHELL, WRAPPED},
    {NEWER "run: EOS without end event", BODY, SHELL, WRAPPED},
    {NEWER "run: end event, no EOS frame", BODY, SHELL, WRAPPED},
    {NEWER "run: connection reset mid-stream (request 1 of 2)", BODY, SHELL, WRAPPED},
    {NEWER "run with timeoutMs 0", BODY, SHELL, WRAPPED},
    {NEWER "run as user root", BODY, SHELL, WRAPPED},
    {NEWER "run background (client keeps stream open)", BODY, SHELL, WRAPPED},
    {NEWER "run on sandbox whose create answer had a domain", BODY, SHELL, WRAPPED},
    {NEWER "file upload (multipart, default)", TYPE, "application/octet-stream",
     "the bytes alone need no boundary that is not in them"},
    {NEWER "file upload (multipart, default)", BODY, "hello\n",
     "the bytes alone need no boundary that is not in them"},
    {OLDER "create (minimal)", PATH, "/v2/sandboxes", ONE_PATH},
    {OLDER "create (minimal)", BODY, MINIMAL, ONE_BODY},
    {OLDER "create (metadata, envs, timeout, network, lifecycle)", PATH,
     "/v2/sandboxes", ONE_PATH},
    {OLDER "create (metadata, envs, timeout, network, lifecycle)", BODY, FULL,
     NO_NETWORK},
    {OLDER "create rate limited: not retried", PATH, "/v2/sandboxes", ONE_PATH},
    {OLDER "create rate limited: not retried", BODY, MINIMAL, ONE_BODY},
    {OLDER "pause", BODY, "{}", ONE_BODY},
    {OLDER "connect/resume", PATH, "/v2/sandboxes/" E2B_ID "/connect", ONE_PATH},

    {NEWER "set timeout", NOT_OURS, NULL,
     "it counts from now, and would cut the time of a sandbox that has more: connect"},
    {NEWER "list running (capacity)", NOT_OURS, NULL,
     "sandboxes are counted by the router, not by a listing"},
    {NEWER "process list", NOT_OURS, NULL, "files in the sandbox say what runs"},
    {NEWER "process connect by pid", NOT_OURS, NULL, "a statement returns once"},
    {NEWER "process connect: gone", NOT_OURS, NULL, "a statement returns once"},
    {NEWER "process kill", NOT_OURS, NULL,
     "it kills one process; a text of ours kills the group"},
    {NEWER "process kill: gone", NOT_OURS, NULL,
     "it kills one process; a text of ours kills the group"},
    {NEWER "run, envd 0.3.0 (default user header)", NOT_OURS, NULL,
     "daemons as old as that need the user in the settings"},
    {NEWER "download, envd 0.3.0 (username query)", NOT_OURS, NULL,
     "daemons as old as that need the user in the settings"},
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

static const SbxTarget gone = {.sandbox_id = "igone"};

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static Drive
send_create(void)
{
	SbxLaunchInput input = plain_input();

	return begin(sbx_kind_e2b.launch(&account.account, &input));
}

static Drive
send_create_nope(void)
{
	account_text(&account, "template", "nope");
	return send_create();
}

static Drive
send_create_full(void)
{
	static const SbxPair labels[] = {
	    {"purpose", "a b&c=d"}, {"sbx", "sbx_0123"}, {"uni", "\xc3\xa9"}};
	static const SbxPair env[] = {{"A", "1"}, {"MULTI", "x\ny"}};
	SbxLaunchInput input = {
	    .labels = labels, .label_count = 3, .env = env, .env_count = 2};

	account_text(&account, "template", "my-team/tpl:v2");
	account_integer(&account, "timeoutSeconds", 1801);
	account_boolean(&account, "allowInternetAccess", false);
	account_boolean(&account, "autoPause", true);
	return begin(sbx_kind_e2b.launch(&account.account, &input));
}

static Drive
send_list(void)
{
	static const SbxPair labels[] = {{"app name", "a b&c=d/\xc3\xa9"}, {"k", "100%"}};

	return begin(sbx_kind_e2b.find(&account.account, labels, 2));
}

static Drive
send_list_page_2(void)
{
	Drive drive = send_list();

	drive_headed(&drive, 200, "x-next-token: MjAyNi0xMi0wMVQxMDowMDowMFpfX2liYmI=\r\n",
	             "[]");
	return drive;
}

static Drive
send_list_all(void)
{
	return begin(sbx_kind_e2b.find(&account.account, NULL, 0));
}

static Drive
send_get(void)
{
	return begin(sbx_kind_e2b.get(&account.account, &e2b_target));
}

static Drive
send_get_gone(void)
{
	return begin(sbx_kind_e2b.get(&account.account, &gone));
}

static Drive
send_pause(void)
{
	return e2b_opened(sbx_kind_e2b.stop(&account.account, &e2b_target, 0));
}

static Drive
send_connect(void)
{
	account_integer(&account, "timeoutSeconds", 1800);
	return begin(sbx_kind_e2b.start(&account.account, &e2b_target, 0));
}

static Drive
send_connect_gone(void)
{
	return begin(sbx_kind_e2b.start(&account.account, &gone, 0));
}

static Drive
send_kill(void)
{
	return begin(sbx_kind_e2b.destroy(&account.account, &e2b_target, 0));
}

static Drive
send_kill_gone(void)
{
	return begin(sbx_kind_e2b.destroy(&account.account, &gone, 0));
}

static Drive
send_timed_run(const char *command, int64_t timeout_ms)
{
	SbxRunInput input = plain_run(command);

	input.timeout_ms = timeout_ms;
	return e2b_running(&input);
}

static Drive
send_run(void)
{
	return send_timed_run("true", 60000);
}

static Drive
send_run_foreground(void)
{
	static const SbxPair env[] = {{"MODE", "t"}};
	SbxRunInput input = plain_run("echo hello \xc3\xa9; echo warn >&2");

	input.env = env;
	input.env_count = 1;
	input.cwd = "/home/user";
	input.timeout_ms = 1234;
	return e2b_running(&input);
}

static Drive
send_run_500(void)
{
	return send_timed_run("sleep 99", 500);
}

static Drive
send_run_default(void)
{
	return send_timed_run("sleep 5", 0);
}

static Drive
send_run_as_root(void)
{
	account_text(&account, "user", "root");
	return send_run();
}

static Drive
send_run_domain(void)
{
	SbxRunInput input = plain_run("true");
	Drive drive;

	input.timeout_ms = 60000;
	drive = begin(sbx_kind_e2b.run_script(&account.account, &e2b_target, &input));
	drive_answer(&drive, 200,
	             "{\"sandboxID\":\"" E2B_ID "\",\"state\":\"running\",\"domain\":"
	             "\"sbx.example.test\",\"envdAccessToken\":\"<credential>\"}");
	drive_answer(&drive, 204, "");
	return drive;
}

static Drive
send_spawn(void)
{
	SbxRunInput input = plain_run("true");
	Drive drive =
	    e2b_opened(sbx_kind_e2b.start_script(&account.account, &e2b_target, &input));

	drive_answer(&drive, 204, "");
	drive_printed(&drive, "new\n", 0);
	return drive;
}

static Drive
send_health(void)
{
	return e2b_opened(sbx_kind_e2b.wait_ready(&account.account, &e2b_target, 0));
}

static Drive
upload_of(const char *bytes, size_t length)
{
	SbxUploadInput input = {.path = "/home/user/a b.txt",
	                        .bytes = bytes,
	                        .length = length,
	                        .boundary = "x"};

	return e2b_opened(sbx_kind_e2b.upload(&account.account, &e2b_target, &input));
}

static Drive
send_upload(void)
{
	return upload_of("hello\n", 6);
}

static Drive
send_upload_bytes(void)
{
	return upload_of("\0\1\2\xff", 4);
}

static Drive
download_of(const char *path)
{
	return e2b_opened(sbx_kind_e2b.download(&account.account, &e2b_target, path, 100));
}

static Drive
send_download(void)
{
	return download_of("/home/user/a b.txt");
}

static Drive
send_download_bytes(void)
{
	return download_of("/home/user/bin");
}

static Drive
send_download_missing(void)
{
	return download_of("/nope");
}

static const struct
{
	const char *recording; /* without the version */
	Drive (*send)(void);
} senders[] = {
    {"create (minimal)", send_create},
    {"create (metadata, envs, timeout, network, lifecycle)", send_create_full},
    {"create refused: team concurrency quota", send_create},
    {"create rate limited, retried by SDK (request 1 of 2)", send_create},
    {"create rate limited, retried by SDK (request 2 of 2)", send_create},
    {"create rate limited: not retried", send_create},
    {"create: bad key", send_create},
    {"create: no capacity", send_create},
    {"create: unknown template", send_create_nope},
    {"list by metadata, page 1", send_list},
    {"list by metadata, page 2", send_list_page_2},
    {"list, no filter", send_list_all},
    {"get", send_get},
    {"get: gone", send_get_gone},
    {"pause", send_pause},
    {"pause keepMemory=true", send_pause},
    {"pause: already paused", send_pause},
    {"connect/resume", send_connect},
    {"connect: gone", send_connect_gone},
    {"kill", send_kill},
    {"kill: already gone", send_kill_gone},
    {"run foreground", send_run_foreground},
    {"run: non-zero exit", send_run},
    {"run: killed by signal", send_run},
    {"run: deadline frame", send_run_500},
    {"run: error before start", send_run},
    {"run: sandbox gone", send_run},
    {"run: bad envd token", send_run},
    {"run: proxy 429", send_run},
    {"run: EOS without end event", send_run},
    {"run: end event, no EOS frame", send_run},
    {"run: connection reset mid-stream (request 1 of 2)", send_run},
    {"run: connection reset mid-stream (request 2 of 2)", send_health},
    {"run with timeoutMs 0", send_spawn},
    {"run as user root", send_run_as_root},
    {"run background (client keeps stream open)", send_run_default},
    {"run on sandbox whose create answer had a domain", send_run_domain},
    {"file upload (multipart, default)", send_upload},
    {"file upload (octet-stream)", send_upload_bytes},
    {"file download text", send_download},
    {"file download bytes", send_download_bytes},
    {"file download: missing", send_download_missing},
    {"health", send_health},
    {"health: gone", send_health},
};

/* --- comparing ------------------------------------------------------------ */

/* Bytes that are no text are written in hex, as the recordings do. */
static char *
sent_body(const SbxHttpRequest *request)
{
	const char *bytes = request->body;
	size_t length = request->body_length;
	char *text;

	if (bytes == NULL)
		return NULL;
	if (request->take_body != NULL)
		return strndup(bytes + 5, length - 5);
	if (memchr(bytes, '\0', length) == NULL)
		return strndup(bytes, length);
	text = malloc(2 * length + 1);
	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", (unsigned char) bytes[i]);
	return text;
}

static void
recorded_parts(const json_t *recorded, char *parts[PARTS])
{
	const char *path = sbx_json_string(recorded, "path");
	const json_t *body = json_object_get(recorded, "body");
	size_t length = strcspn(path, "?");

	memset(parts, 0, PARTS * sizeof(char *));
	parts[METHOD] = strdup(sbx_json_string(recorded, "method"));
	parts[HOST] = strdup(sbx_json_string(recorded, "host"));
	parts[PATH] = strndup(path, length);
	if (path[length] == '?')
		parts[QUERY] = strdup(path + length + 1);
	for (int part = 0; part < PARTS; part++)
	{
		const char *value =
		    headers[part] == NULL
		        ? NULL
		        : sbx_json_string(json_object_get(recorded, "headers"), headers[part]);

		if (value != NULL)
			parts[part] = strdup(value);
	}
	if (json_is_object(body))
		parts[BODY] = strdup(sbx_json_string(body, "hex"));
	else if (json_is_string(body))
		parts[BODY] = strdup(json_string_value(body));
}

static void
sent_parts(const SbxOp *op, char *parts[PARTS])
{
	const char *host = op->request.url + strlen("https://");
	const char *path = host + strcspn(host, "/");
	size_t length = strcspn(path, "?");

	memset(parts, 0, PARTS * sizeof(char *));
	parts[METHOD] = strdup(op->request.method);
	parts[HOST] = strndup(host, (size_t) (path - host));
	parts[PATH] = strndup(path, length);
	if (path[length] == '?')
		parts[QUERY] = strdup(path + length + 1);
	for (int part = 0; part < PARTS; part++)
	{
		const char *value =
		    headers[part] == NULL ? NULL : sent_header(op, headers[part]);

		/* Each plane's own secret has the same name in the recordings. */
		if (value != NULL && ((part == API_KEY && strcmp(value, "api-key") == 0) ||
		                      (part == TOKEN && strcmp(value, "envd-token") == 0)))
			value = "<credential>";
		if (value != NULL)
			parts[part] = strdup(value);
	}
	parts[BODY] = sent_body(&op->request);
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

	if (star == NULL || text == NULL)
		return same(text, pattern);
	head = (size_t) (star - pattern);
	tail = strlen(star + 1);
	return strlen(text) >= head + tail && strncmp(text, pattern, head) == 0 &&
	       strcmp(text + strlen(text) - tail, star + 1) == 0;
}

static void
compare(const char *recording, const json_t *recorded, Drive (*send)(void))
{
	char *theirs[PARTS];
	char *ours[PARTS];
	Drive drive;

	e2b_account();
	drive = send();
	ok(drive.want == SBX_OP_WANT_HTTP, "%s: is sent", recording);
	recorded_parts(recorded, theirs);
	sent_parts(drive.op, ours);
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
		free(ours[part]);
		free(theirs[part]);
	}
	drive_end(&drive);
}

static Drive (*sender_of(const char *recording))(void)
{
	const char *blank = strchr(recording, ' ');

	for (size_t i = 0; i < sizeof(senders) / sizeof(senders[0]) && blank != NULL; i++)
	{
		if (strcmp(senders[i].recording, blank + 1) == 0)
			return senders[i].send;
	}
	return NULL;
}

void
test_e2b_wire(void)
{
	char path[4096];
	json_t *all;
	const char *recording;
	json_t *value;

	section("E2B wire");
	snprintf(path, sizeof(path), "%s/e2b.json", getenv("UNIT_DATA"));
	all = json_load_file(path, 0, NULL);
	json_object_foreach (all, recording, value)
	{
		const Difference *row = difference(recording, NOT_OURS);
		Drive (*send)(void) = sender_of(recording);

		if (row == NULL && ok(send != NULL, "%s: is an operation of ours", recording))
			compare(recording, value, send);
		else if (row != NULL)
			ok(send == NULL, "%s: not an operation of ours: %s", recording, row->why);
	}
	for (size_t i = 0; i < DIFFERENCES; i++)
	{
		if (json_object_get(all, differences[i].recording) == NULL)
			ok(false, "%s: is recorded at all", differences[i].recording);
	}
	is_number((int64_t) json_object_size(all), 57, "all that was recorded");
	json_decref(all);
}
