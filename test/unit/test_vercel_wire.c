/*
 * test_vercel_wire.c
 *		Our requests beside those that Vercel's own client sent, in two versions.
 *
 * Each recording of data/vercel.json is either made again and compared in every part, or
 * listed as nothing that we do.  Where we differ on purpose, the row says what we send and
 * why; one that no longer differs fails.  Names of sandboxes there are the router's: the
 * client chooses them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "net/base64.h"
#include "unit.h"

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

	return begin(sbx_kind_vercel.launch(&account.account, &input));
}

static Drive
send_create_full(void)
{
	static const SbxPair tags[] = {{"owner", "sbxr"}, {"job", "j-1"}};
	static const SbxPair env = {"A", "b"};
	SbxLaunchInput input = plain_input();

	input.labels = tags;
	input.label_count = 2;
	input.env = &env;
	input.env_count = 1;
	account_integer(&account, "timeoutSeconds", 600);
	account_integer(&account, "vcpus", 2);
	account_text(&account, "networkPolicy", "deny-all");
	return begin(sbx_kind_vercel.launch(&account.account, &input));
}

static Drive
send_create_runtime(void)
{
	account_text(&account, "runtime", "node24");
	return send_create();
}

static Drive
send_create_oidc(void)
{
	static const char token[] = "h.eyJvd25lcl9pZCI6InRlYW1fRlJPTVRPS0VOIn0.s";

	account.credentials[0] = token;
	return send_create();
}

static Drive
send_get(void)
{
	return begin(sbx_kind_vercel.get(&account.account, &vercel_target));
}

static Drive
send_await(void)
{
	Drive drive = send_create();

	drive_answer(&drive, 200, VERCEL_DTO("pending"));
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_next_page(void)
{
	Drive drive = begin(sbx_kind_vercel.find(&account.account, NULL, 0));

	drive_answer(
	    &drive, 200,
	    "{\"sandboxes\":[],\"pagination\":{\"next\":\"b3BhcXVlLWN1cnNvcg==\"}}");
	return drive;
}

static Drive
send_resume(void)
{
	Drive drive = begin(sbx_kind_vercel.start(&account.account, &vercel_target, 0));

	drive_answer(&drive, 200, VERCEL_DTO("stopped"));
	return drive;
}

static Drive
send_list_all(void)
{
	return begin(sbx_kind_vercel.find(&account.account, NULL, 0));
}

static Drive
send_list_tag(void)
{
	static const SbxPair label = {"owner", "sbxr"};

	return begin(sbx_kind_vercel.find(&account.account, &label, 1));
}

static Drive
send_run(void)
{
	SbxRunInput input = plain_run("echo hi");

	input.timeout_ms = 30000;
	return vercel_opened(
	    sbx_kind_vercel.run_script(&account.account, &vercel_target, &input));
}

static Drive
send_true(void)
{
	SbxRunInput input = plain_run("true");

	input.timeout_ms = 30000;
	return vercel_opened(
	    sbx_kind_vercel.run_script(&account.account, &vercel_target, &input));
}

static Drive
send_stop(void)
{
	account_boolean(&account, "persistent", true);
	return vercel_opened(sbx_kind_vercel.stop(&account.account, &vercel_target, 0));
}

static Drive
send_file(const char *path, const char *bytes)
{
	SbxUploadInput input = {.path = path, .bytes = bytes, .length = strlen(bytes)};

	return vercel_opened(
	    sbx_kind_vercel.upload(&account.account, &vercel_target, &input));
}

static Drive
send_read(void)
{
	return vercel_opened(
	    sbx_kind_vercel.download(&account.account, &vercel_target, "/tmp/a.bin", 10));
}

static Drive
send_read_missing(void)
{
	return vercel_opened(
	    sbx_kind_vercel.download(&account.account, &vercel_target, "/missing", 10));
}

static Drive
send_delete(void)
{
	return vercel_opened(sbx_kind_vercel.destroy(&account.account, &vercel_target, 0));
}

#define PROJECT "{\"projectId\":\"prj_TESTPROJECT\",\"ports\":[],"
#define MINIMAL PROJECT "\"timeout\":300000,\"name\":\"" NAME "\",\"persistent\":false}"
#define LIST    "/api/v2/sandboxes?teamId=team_TESTTEAM&project=prj_TESTPROJECT&limit=50&"
#define DELETE_ORPHANS                                                                 \
	"/api/v2/sandboxes/" NAME                                                          \
	"?teamId=team_TESTTEAM&projectId=prj_TESTPROJECT&deleteOrphanSnapshots=true"
#define RUN                                                                            \
	"{\"command\":\"sh\",\"args\":[\"-c\",\"*\"],\"env\":{},\"sudo\":false,\"wait\":"  \
	"true,\"logs\":true,\"timeout\":30000}"
#define SAID    "what costs is said, whatever the provider's defaults are"
#define WRAPPED "directory, variables and script go to a child shell, as everywhere"

#define NOT_AGAIN "what was sent may have worked: it is not sent again"
#define NO_RESUME "only sbx_start() starts a machine, which bills"

static const struct
{
	const char *recording;
	Drive (*send)(void); /* NULL = nothing that we do */
	const char *path;    /* ours, or NULL = as recorded */
	const char *body;    /* the same; one '*' stands for any text */
	const char *why;
} rows[] = {
    {"3.5.0 create", send_create_full, NULL,
     PROJECT
     "\"timeout\":600000,\"resources\":{\"vcpus\":2},\"name\":\"" NAME
     "\",\"persistent\":false,\"networkPolicy\":{\"mode\":\"deny-all\"},\"env\":{"
     "\"A\":\"b\"},\"tags\":{\"owner\":\"sbxr\",\"job\":\"j-1\"}}",
     "there is no setting for ports"},
    {"3.5.0 create.minimal", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.500", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.name-taken", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 create.oidc-token", send_create_oidc, NULL, MINIMAL, SAID},
    {"3.5.0 create.runtime", send_create_runtime, NULL,
     PROJECT "\"timeout\":300000,\"runtime\":\"node24\",\"name\":\"" NAME
             "\",\"persistent\":false}",
     SAID},
    {"3.5.0 get", send_get, NULL, NULL, NULL},
    {"3.5.0 get.resume", send_resume, NULL, NULL, NULL},
    {"3.5.0 list.namePrefix", send_list_all,
     LIST "sortBy=name&sortOrder=asc&namePrefix=sbx_", NULL, "a stable order"},
    {"3.5.0 list.tag", send_list_tag,
     LIST "sortBy=createdAt&sortOrder=asc&tags=owner%3Asbxr", NULL,
     "large pages in a stable order"},
    {"3.5.0 cmd.wait", send_run, NULL, RUN, WRAPPED},
    {"3.5.0 cmd.stream-error", send_run, NULL, RUN, WRAPPED},
    {"3.5.0 stop", send_stop, NULL, NULL, NULL},
    {"3.5.0 fs.read", send_read, NULL, NULL, NULL},
    {"3.5.0 delete", send_delete, DELETE_ORPHANS, NULL, "nothing of it stays"},
    {"3.5.0 err.delete.404", send_delete, DELETE_ORPHANS, NULL, "nothing of it stays"},
    {"3.5.0 list", send_list_all, LIST "sortBy=name&sortOrder=asc&namePrefix=sbx_",
     NULL, "only the router's, in large pages and a stable order"},
    {"3.5.0 list (2)", send_next_page,
     LIST "sortBy=name&sortOrder=asc&namePrefix=sbx_&cursor=b3BhcXVlLWN1cnNvcg%3D%3D",
     NULL, "only the router's, in large pages and a stable order"},
    {"3.5.0 fs.read.missing", send_read_missing, NULL, NULL, NULL},
    {"3.1.0 err.cmd.422-stopping (3)", send_await, NULL, NULL, NULL},
    {"3.5.0 err.create.401", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.403", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.429.retry-after-1", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.429.retry-after-60", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 err.create.reset", send_create, NULL, MINIMAL, SAID},
    {"3.5.0 cmd.wait.minimal", send_true, NULL, RUN, WRAPPED},
    {"3.5.0 cmd.410-resume (2)", send_true, NULL, RUN, WRAPPED},
    {"3.5.0 err.cmd.500 (2)", send_true, NULL, RUN, WRAPPED},
    {"3.5.0 err.cmd.422-stopping (2)", send_true, NULL, RUN, WRAPPED},
    {"3.5.0 err.cmd.ndjson-charset (2)", send_true, NULL, RUN, WRAPPED},
    {"3.1.0 err.cmd.422-stopping (2)", send_true, NULL, RUN, WRAPPED},
    {"3.5.0 cmd.410-resume", send_get, NULL, NULL, NULL},
    {"3.5.0 err.cmd.500", send_get, NULL, NULL, NULL},
    {"3.5.0 err.cmd.422-stopping", send_get, NULL, NULL, NULL},
    {"3.5.0 err.cmd.ndjson-charset", send_get, NULL, NULL, NULL},
    {"3.1.0 err.cmd.422-stopping", send_get, NULL, NULL, NULL},
    {"3.5.0 fs.write", NULL, NULL, NULL, "compared block by block below"},
    {"3.5.0 fs.write.longpath", NULL, NULL, NULL, "compared block by block below"},

    {"3.5.0 err.get.404", NULL, NULL, NULL,
     "a sandbox with a name that is not the router's is not asked about"},
    {"3.5.0 create.from-snapshot", NULL, NULL, NULL,
     "there is no setting for snapshots: images are what pools differ in"},
    {"3.5.0 create.custom-network", NULL, NULL, NULL,
     "there is no setting for rules of the network beyond all and none"},
    {"3.1.0 list.two-tags", NULL, NULL, NULL,
     "newer servers take one tag; the others are compared here"},
    {"3.5.0 err.create.429.retry-after-1 (2)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.create.429.retry-after-1 (3)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.create.500 (2)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.create.500 (3)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.create.reset (2)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.create.reset (3)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.cmd.500 (3)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 err.cmd.500 (4)", NULL, NULL, NULL, NOT_AGAIN},
    {"3.5.0 cmd.410-resume (3)", NULL, NULL, NULL, NO_RESUME},
    {"3.5.0 cmd.410-resume (4)", NULL, NULL, NULL, NO_RESUME},
    {"3.5.0 err.cmd.422-stopping (3)", NULL, NULL, NULL, NO_RESUME},
    {"3.5.0 err.cmd.422-stopping (4)", NULL, NULL, NULL, NO_RESUME},
    {"3.1.0 err.cmd.422-stopping (4)", NULL, NULL, NULL, NO_RESUME},
    {"3.1.0 err.cmd.422-stopping (5)", NULL, NULL, NULL, NO_RESUME},
    {"3.5.0 sessions.list", NULL, NULL, NULL,
     "the history of a sandbox is nobody's question; its session of now is in its "
     "description"},
    {"3.5.0 cmd.detached", NULL, NULL, NULL,
     "a start whose answer is lost could not be found again"},
    {"3.5.0 cmd.get", NULL, NULL, NULL, "commands are waited for"},
    {"3.5.0 cmd.get.wait", NULL, NULL, NULL,
     "it blocks until the end; the stream of the command does it with its output"},
    {"3.5.0 cmd.logs", NULL, NULL, NULL, "the stream of the command has its output"},
    {"3.5.0 cmd.kill", NULL, NULL, NULL,
     "it kills one process; a text of ours kills the group"},
    {"3.5.0 fs.mkdir", NULL, NULL, NULL,
     "the extraction of an archive makes the directories"},
    {"3.5.0 extend-timeout", NULL, NULL, NULL,
     "the lifetime is the registration's, and said in the create"},
    {"3.5.0 update", NULL, NULL, NULL,
     "nothing about a sandbox changes after its create"},
    {"3.5.0 snapshot", NULL, NULL, NULL, "it stops the sandbox"},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static bool
matches(const char *text, const char *pattern)
{
	const char *star = pattern == NULL ? NULL : strchr(pattern, '*');
	size_t tail;

	if (text == NULL || star == NULL)
		return text == NULL || pattern == NULL ? text == pattern
		                                       : strcmp(text, pattern) == 0;
	tail = strlen(star + 1);
	return strncmp(text, pattern, (size_t) (star - pattern)) == 0 &&
	       strlen(text) >= tail && strcmp(text + strlen(text) - tail, star + 1) == 0;
}

static void
wire_account(void)
{
	vercel_account();
	account.credentials[0] = "<credential>";
	account.credentials[1] = "team_TESTTEAM";
	account.credentials[2] = "prj_TESTPROJECT";
}

static void
compare(size_t row, const json_t *recorded)
{
	const char *name = rows[row].recording;
	const char *path = sbx_json_string(recorded, "path");
	const char *body = sbx_json_string(recorded, "body");
	const json_t *headers = json_object_get(recorded, "headers");
	const SbxHttpRequest *request;
	Drive drive;

	wire_account();
	drive = rows[row].send();
	request = &drive.op->request;
	if (!ok(drive.want == SBX_OP_WANT_HTTP && recorded != NULL, "%s: is sent", name))
		return;
	is_text(request->method, sbx_json_string(recorded, "method"), "%s: method", name);
	is_text(request->url + strlen("https://vercel.com"),
	        rows[row].path != NULL ? rows[row].path : path, "%s: path", name);
	is_text(sent_header(drive.op, "content-type"),
	        sbx_json_string(headers, "content-type"), "%s: media type", name);
	if (rows[row].send != send_create_oidc)
		is_text(sent_header(drive.op, "authorization"),
		        sbx_json_string(headers, "authorization"), "%s: key", name);
	ok(matches(request->body, rows[row].body != NULL ? rows[row].body : body),
	   "%s: body %s", name, request->body != NULL ? request->body : "(none)");
	if (rows[row].why != NULL)
		ok((rows[row].path != NULL && strcmp(rows[row].path, path) != 0) ||
		       (rows[row].body != NULL && strcmp(rows[row].body, body) != 0),
		   "%s: differs, because %s", name, rows[row].why);
	drive_end(&drive);
}

/* --- archives --------------------------------------------------------------- */

static void
unpack(const void *packed, size_t length, unsigned char *bytes, size_t size)
{
	z_stream stream = {.next_in = (unsigned char *) packed,
	                   .avail_in = (uInt) length,
	                   .next_out = bytes,
	                   .avail_out = (uInt) size};

	memset(bytes, 0, size);
	inflateInit2(&stream, MAX_WBITS + 16);
	ok(inflate(&stream, Z_FINISH) == Z_STREAM_END, "a whole gzip stream");
	inflateEnd(&stream);
}

/* Times differ, there is no clock here, and the checksum with them. */
static void
forget_times(unsigned char *bytes, size_t size)
{
	for (size_t at = 0; at + 512 <= size; at += 512)
	{
		if (memcmp(bytes + at + 257, "ustar", 5) == 0)
			memset(bytes + at + 136, 0, 20);
	}
}

static void
archive(const json_t *recorded, const char *path, const char *content, size_t same)
{
	unsigned char theirs[8192];
	unsigned char ours[8192];
	const char *text = sbx_json_string(json_object_get(recorded, "body"), "base64");
	char packed[4096];
	size_t length = 0;
	Drive drive;

	wire_account();
	drive = send_file(path, content);
	asks(&drive, "POST",
	     VERCEL_API "/v2/sandboxes/sessions/sbx_SESSION1/fs/write?teamId=team_TESTTEAM",
	     "an archive");
	is_text(sent_header(drive.op, "authorization"), "Bearer <credential>", "key");
	is_text(sent_header(drive.op, "content-type"), "application/gzip", "media type");
	is_text(sent_header(drive.op, "x-cwd"), "/", "extracted at the root");
	ok(drive.op->request.repeatable, "which does no harm when it comes twice");
	sbx_base64_decode(text, strlen(text), packed, &length);
	unpack(packed, length, theirs, sizeof(theirs));
	unpack(drive.op->request.body, drive.op->request.body_length, ours, sizeof(ours));
	forget_times(theirs, sizeof(theirs));
	forget_times(ours, sizeof(ours));
	ok(memcmp(ours, theirs, same) == 0, "%.20s: as recorded for %zu bytes", path, same);
	drive_end(&drive);
}

void
test_vercel_wire(void)
{
	char path[4096];
	char long_path[256];
	json_t *all;

	section("Vercel wire");
	snprintf(path, sizeof(path), "%s/vercel.json", getenv("UNIT_DATA"));
	all = json_load_file(path, 0, NULL);
	is_number((int64_t) json_object_size(all), ROWS, "all that was recorded");
	for (size_t i = 0; i < ROWS; i++)
	{
		const json_t *recorded = json_object_get(all, rows[i].recording);

		if (ok(recorded != NULL, "%s: is recorded", rows[i].recording) &&
		    rows[i].send != NULL)
			compare(i, recorded);
	}
	snprintf(long_path, sizeof(long_path), "/tmp/%0120d/%0120d", 0, 0);
	memset(long_path + 5, 'd', 120);
	memset(long_path + 126, 'f', 120);
	archive(json_object_get(all, "3.5.0 fs.write"), "/tmp/dir/a.txt", "hello", 1024);
	archive(json_object_get(all, "3.5.0 fs.write.longpath"), long_path, "x", 3072);
	json_decref(all);
}
