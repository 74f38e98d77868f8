/*
 * test_freestyle_wire.c
 *		Our requests beside those of Freestyle's own client (0.2.17).
 *
 * Each exchange of data/freestyle.json is either made again and compared in every part, or
 * listed as nothing that we do.  Where we differ on purpose, the table says what we send
 * and why; a row that no longer differs fails.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

typedef Drive Sender(void);

static const SbxTarget by_slug = {.unique_name = NAME};

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
	static const SbxPair labels[] = {{"sbx-router-id", FREESTYLE_SLUG},
	                                 {"sbx-router-db", "db1"},
	                                 {"sbx-router-name", "job-7"}};
	SbxLaunchInput input = {
	    .unique_name = NAME, .labels = labels, .label_count = 3, .env = labels};

	account_text(&account, "snapshot", "freestyle/ubuntu");
	account_integer(&account, "ttlSeconds", 3600);
	account_integer(&account, "autoDeleteSeconds", 600);
	return begin(sbx_kind_freestyle.launch(&account.account, &input));
}

static Drive
send_create_plain(void)
{
	SbxLaunchInput input = plain_input();

	return begin(sbx_kind_freestyle.launch(&account.account, &input));
}

static Drive
send_create_closed(void)
{
	account_boolean(&account, "internet", false);
	return send_create_plain();
}

static Drive
send_create_snapshot(void)
{
	account_text(&account, "snapshot", "no-such-snapshot");
	return send_create_plain();
}

static Drive
polled(Drive drive)
{
	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_create_poll(void)
{
	return polled(send_create_plain());
}

static Drive
send_create_poll_by_header(void)
{
	Drive drive = send_create_plain();

	drive_headed(&drive, 202, "x-freestyle-background-request-id: ri 2/x\r\n", "{}");
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_list(void)
{
	return begin(sbx_kind_freestyle.find(&account.account, NULL, 0));
}

static Drive
send_list_next(void)
{
	Drive drive = send_list();

	drive_answer(&drive, 200, FREESTYLE_LIST(FREESTYLE_DTO("running"), "2"));
	return drive;
}

static Drive
send_list_labels(void)
{
	static const SbxPair labels[] = {{"sbx-router-id", FREESTYLE_SLUG},
	                                 {"sbx-router-db", "db1"}};

	return begin(sbx_kind_freestyle.find(&account.account, labels, 2));
}

static Drive
send_list_odd(void)
{
	static const SbxPair labels[] = {{"k", "a b"}, {"c", "d%&=+\xc3\xa9"}};

	return begin(sbx_kind_freestyle.find(&account.account, labels, 2));
}

static Drive
send_list_none(void)
{
	static const SbxPair labels[] = {{"sbx-router-id", "none"}};

	return begin(sbx_kind_freestyle.find(&account.account, labels, 1));
}

static Drive
send_list_poll(void)
{
	return polled(send_list());
}

static Drive
send_list_anew(void)
{
	Drive drive = send_list_poll();

	drive_headed(&drive, 500, FREESTYLE_OF,
	             FREESTYLE_ERROR("BACKGROUND_RESULT_UNSTORABLE"));
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_get(void)
{
	return begin(sbx_kind_freestyle.get(&account.account, &freestyle_target));
}

static Drive
send_get_slug(void)
{
	return begin(sbx_kind_freestyle.destroy(&account.account, &by_slug, 0));
}

static Drive
send_run(void)
{
	SbxRunInput input = plain_run("echo hi");

	return freestyle_opened(
	    sbx_kind_freestyle.run_script(&account.account, &freestyle_target, &input));
}

static Drive
send_run_poll(void)
{
	return polled(send_run());
}

static Drive
uploading(const char *path, const char *bytes, size_t length)
{
	SbxUploadInput input = {
	    .path = path, .bytes = bytes, .length = length, .boundary = "x"};

	return freestyle_opened(
	    sbx_kind_freestyle.upload(&account.account, &freestyle_target, &input));
}

static Drive
send_write(void)
{
	return uploading("/tmp/a.bin", "\0\1\2\377", 4);
}

static Drive
send_write_odd(void)
{
	return uploading("/tmp/up load/\xc3\xbc+&#.bin", "", 0);
}

static Drive
send_large(size_t length)
{
	char *bytes = calloc(length, 1);
	Drive drive =
	    uploading(length > 8 << 20 ? "/tmp/big" : "/tmp/eight", bytes, length);

	free(bytes);
	return drive;
}

static Drive
send_write_eight(void)
{
	return send_large(8 << 20);
}

static Drive
send_begin(void)
{
	return send_large(9 << 20);
}

static Drive
send_piece(void)
{
	Drive drive = send_begin();

	drive_answer(&drive, 200, "{\"uploadId\":\"up-1\",\"receivedBytes\":0}");
	return drive;
}

static Drive
send_second_piece(void)
{
	Drive drive = send_piece();

	drive_answer(&drive, 200, "{\"uploadId\":\"up-1\",\"receivedBytes\":8388608}");
	return drive;
}

static Drive
send_piece_look(void)
{
	Drive drive = send_second_piece();

	drive_answer(&drive, 503, "");
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_commit(void)
{
	Drive drive = send_piece();

	drive_answer(&drive, 200, "{\"uploadId\":\"up-1\",\"receivedBytes\":9437184}");
	return drive;
}

static Drive
send_drop(void)
{
	Drive drive = send_second_piece();

	drive_answer(&drive, 400, "{}");
	return drive;
}

static Drive
send_stat(void)
{
	Drive drive = send_write();

	drive_answer(&drive, 204, "");
	return drive;
}

static Drive
downloading(const char *path)
{
	return freestyle_opened(
	    sbx_kind_freestyle.download(&account.account, &freestyle_target, path, 100));
}

static Drive
send_read(void)
{
	return downloading("/tmp/a.bin");
}

static Drive
send_read_missing(void)
{
	return downloading("/no");
}

static Drive
send_pause(void)
{
	return freestyle_opened(
	    sbx_kind_freestyle.stop(&account.account, &freestyle_target, 0));
}

static Drive
send_start(void)
{
	Drive drive =
	    begin(sbx_kind_freestyle.start(&account.account, &freestyle_target, 0));

	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	return drive;
}

static Drive
send_delete(void)
{
	return begin(sbx_kind_freestyle.destroy(&account.account, &freestyle_target, 0));
}

#define WHOLE                                                                          \
	"{\"slug\":\"" FREESTYLE_SLUG "\",\"displayName\":\"job-7\",\"snapshotId\":"       \
	"\"freestyle/ubuntu\",\"metadata\":{\"sbx-router-id\":\"" FREESTYLE_SLUG           \
	"\",\"sbx-router-db\":\"db1\",\"sbx-router-name\":\"job-7\"},"                     \
	"\"idleTimeoutSeconds\":-1,\"autoDeleteSeconds\":600,\"ttlSeconds\":3600,"         \
	"\"automaticRestart\":false,\"firewall\":{\"rules\":[{\"action\":\"allow\","       \
	"\"source\":{},\"destination\":{\"public\":true}}]}}"
#define ALWAYS(more)                                                                   \
	"{\"slug\":\"" FREESTYLE_SLUG "\"," more "\"metadata\":{},"                        \
	"\"idleTimeoutSeconds\":-1,\"automaticRestart\":false,"                            \
	"\"firewall\":{\"rules\":["
#define OPEN                                                                           \
	ALWAYS("")                                                                         \
	"{\"action\":\"allow\",\"source\":{},\"destination\":{\"public\":true}}]}}"
#define SAID  "what the account would decide otherwise is always said"
#define EXEC  "{\"command\":\"*\",\"timeoutMs\":10000}"
#define TEXT  "the text ends its script itself; directory and variables are in it"
#define PAGE  "/v5/vms?limit=100&offset=0"
#define PAGES "pages are always asked for"
#define FILES "/v5/vms/" FREESTYLE_ID "/fs/"
#define SUM   "its size is looked at afterwards instead"

static const struct
{
	const char *name;
	Sender *send;     /* NULL = nothing that we do */
	const char *path; /* of ours where it differs */
	const char *body; /* one '*' is any text */
	const char *why;
} rows[] = {
    {"create", send_create, NULL, WHOLE, "the name is a label, too"},
    {"create.internet-off", send_create_closed, NULL, ALWAYS("") "]}}", SAID},
    {"create.internet-https-only", NULL, NULL, NULL, "the internet is on or off"},
    {"create.nulls", NULL, NULL, NULL, "what is not set is left out"},
    {"create.201", send_create_plain, NULL, OPEN, SAID},
    {"create.publish-port", NULL, NULL, NULL, "there is no setting for ports"},
    {"create.background (1 of 3)", send_create_plain, NULL, OPEN, SAID},
    {"create.background (2 of 3)", send_create_poll, NULL, NULL, NULL},
    {"create.background (3 of 3)", send_create_poll, NULL, NULL, NULL},
    {"create.background.header-only (1 of 2)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.header-only (2 of 2)", send_create_poll_by_header, NULL, NULL,
     NULL},
    {"create.background.no-id", send_create_plain, NULL, OPEN, SAID},
    {"create.background.stored-error (1 of 2)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.stored-error (2 of 2)", send_create_poll, NULL, NULL, NULL},
    {"create.background.stored-503 (1 of 2)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.stored-503 (2 of 2)", send_create_poll, NULL, NULL, NULL},
    {"create.background.poll-503 (1 of 3)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.poll-503 (2 of 3)", send_create_poll, NULL, NULL, NULL},
    {"create.background.poll-503 (3 of 3)", send_create_poll, NULL, NULL, NULL},
    {"create.background.poll-500 (1 of 2)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.poll-500 (2 of 2)", send_create_poll, NULL, NULL, NULL},
    {"create.background.poll-404 (1 of 2)", send_create_plain, NULL, OPEN, SAID},
    {"create.background.poll-404 (2 of 2)", send_create_poll, NULL, NULL, NULL},
    {"create.background.foreign-resultUrl", send_create_plain, NULL, OPEN, SAID},
    {"create.background.foreign-resultUrl (second origin)", NULL, NULL, NULL,
     "the key goes nowhere else"},
    {"list", send_list, PAGE, NULL, PAGES},
    {"list.filter", send_list_labels,
     "/v5/vms?limit=100&offset=0&metadata=sbx-router-id%3A" FREESTYLE_SLUG
     "%2Csbx-router-db%3Adb1",
     NULL, "there is nothing but labels to look for"},
    {"list.filter.odd", send_list_odd, PAGE, NULL,
     "what has no escape is looked at here"},
    {"list.slug", NULL, NULL, NULL, "a slug is as good as an id"},
    {"list.paged (1 of 2)", send_list, PAGE, NULL, "a page has 100 rows"},
    {"list.paged (2 of 2)", send_list_next, "/v5/vms?limit=100&offset=1", NULL,
     "a page has 100 rows"},
    {"list.empty", send_list_none,
     "/v5/vms?limit=100&offset=0&metadata=sbx-router-id%3Anone", NULL, PAGES},
    {"list.background.unstorable (1 of 3)", send_list, PAGE, NULL, PAGES},
    {"list.background.unstorable (2 of 3)", send_list_poll, NULL, NULL, NULL},
    {"list.background.unstorable (3 of 3)", send_list_anew, PAGE, NULL, PAGES},
    {"get", send_get, NULL, NULL, NULL},
    {"get.slug", send_get_slug, NULL, NULL, NULL},
    {"get.odd-slug", NULL, NULL, NULL, "no slug of ours needs an escape"},
    {"snapshot.get", NULL, NULL, NULL, "snapshots are the account's own affair"},
    {"exec.string", send_run, NULL, EXEC, TEXT},
    {"exec", send_run, NULL, EXEC, TEXT},
    {"exec.linux-user", send_run, NULL, EXEC, TEXT},
    {"exec.nonzero", send_run, NULL, EXEC, TEXT},
    {"exec.timeout", send_run, NULL, EXEC, TEXT},
    {"exec.background (1 of 3)", send_run, NULL, EXEC, TEXT},
    {"exec.background (2 of 3)", send_run_poll, NULL, NULL, NULL},
    {"exec.background (3 of 3)", send_run_poll, NULL, NULL, NULL},
    {"exec.background.unstorable (1 of 2)", send_run, NULL, EXEC, TEXT},
    {"exec.background.unstorable (2 of 2)", send_run_poll, NULL, NULL, NULL},
    {"fs.write", send_write, FILES "write?path=%2Ftmp%2Fa.bin", NULL, SUM},
    {"fs.write.odd-path", send_write_odd,
     FILES "write?path=%2Ftmp%2Fup%20load%2F%C3%BC%2B%26%23.bin", NULL, SUM},
    {"fs.read", send_read, NULL, NULL, NULL},
    {"fs.read.range", NULL, NULL, NULL, "files are read whole"},
    {"fs.mkdir", NULL, NULL, NULL, "a command makes all directories on the way"},
    {"fs.dir", NULL, NULL, NULL, "there is no such operation"},
    {"fs.stat", send_stat, NULL, NULL, NULL},
    {"fs.exists", NULL, NULL, NULL, "its size says more"},
    {"fs.remove", NULL, NULL, NULL, "there is no such operation"},
    {"fs.upload (1 of 5)", send_begin, NULL, "{\"path\":\"/tmp/big\",\"size\":9437184}",
     SUM},
    {"fs.upload (2 of 5)", send_piece, NULL, NULL, NULL},
    {"fs.upload (3 of 5)", NULL, NULL, NULL, "pieces are larger"},
    {"fs.upload (4 of 5)", send_second_piece, NULL, NULL, NULL},
    {"fs.upload (5 of 5)", send_commit, NULL, NULL, NULL},
    {"fs.upload.retry (1 of 6)", send_begin, NULL,
     "{\"path\":\"/tmp/big\",\"size\":9437184}", SUM},
    {"fs.upload.retry (2 of 6)", send_piece, NULL, NULL, NULL},
    {"fs.upload.retry (3 of 6)", send_second_piece, NULL, NULL, NULL},
    {"fs.upload.retry (4 of 6)", send_piece_look, NULL, NULL, NULL},
    {"fs.upload.retry (5 of 6)", send_second_piece, NULL, NULL, NULL},
    {"fs.upload.retry (6 of 6)", send_commit, NULL, NULL, NULL},
    {"fs.upload.abort (1 of 4)", send_begin, NULL,
     "{\"path\":\"/tmp/big\",\"size\":9437184}", SUM},
    {"fs.upload.abort (2 of 4)", send_piece, NULL, NULL, NULL},
    {"fs.upload.abort (3 of 4)", send_second_piece, NULL, NULL, NULL},
    {"fs.upload.abort (4 of 4)", send_drop, NULL, NULL, NULL},
    {"fs.write.8MiB", send_write_eight, FILES "write?path=%2Ftmp%2Feight", NULL, SUM},
    {"pause", send_pause, NULL, NULL, NULL},
    {"start", send_start, NULL, NULL, NULL},
    {"update", NULL, NULL, NULL, "nothing of a machine is changed"},
    {"resize", NULL, NULL, NULL, "nothing of a machine is changed"},
    {"snapshot", NULL, NULL, NULL, "snapshots are the account's own affair"},
    {"delete", send_delete, NULL, NULL, NULL},
    {"delete.slug", NULL, NULL, NULL, "whose it is, is looked at before"},
    {"err.create.401", send_create_plain, NULL, OPEN, SAID},
    {"err.create.403", send_create_plain, NULL, OPEN, SAID},
    {"err.create.429-limit", send_create_plain, NULL, OPEN, SAID},
    {"err.create.429-rate", send_create_plain, NULL, OPEN, SAID},
    {"err.create.400", send_create_plain, NULL, OPEN, SAID},
    {"err.create.404-snapshot", send_create_snapshot, NULL,
     ALWAYS("\"snapshotId\":\"no-such-snapshot\",") "*", SAID},
    {"err.create.409-slug", send_create_plain, NULL, OPEN, SAID},
    {"err.create.500", send_create_plain, NULL, OPEN, SAID},
    {"err.create.502-html", send_create_plain, NULL, OPEN, SAID},
    {"err.create.reset", send_create_plain, NULL, OPEN, SAID},
    {"err.get.404", send_get, NULL, NULL, NULL},
    {"err.delete.404", send_delete, NULL, NULL, NULL},
    {"err.start.409", send_start, NULL, NULL, NULL},
    {"err.exec.404", send_run, NULL, EXEC, TEXT},
    {"err.exec.400", send_run, NULL, EXEC, TEXT},
    {"err.exec.agent", send_run, NULL, EXEC, TEXT},
    {"err.fs.read.404", send_read_missing, NULL, NULL, NULL},
    {"identity.exec", NULL, NULL, NULL, "there is one key, of the team"},
    {"identity.get", NULL, NULL, NULL, "there is one key, of the team"},
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
	else if (!ok(matches(ours, expected) && theirs != NULL && strcmp(ours, theirs) != 0,
	             "%s: another %s, because %s", rows[row].name, part, rows[row].why))
		printf("#      got: %s\n", ours);
}

/* Only what may take its time can be answered later: files and looks are not asked so. */
static void
compare_headers(const char *name, const SbxOp *op, const json_t *recorded)
{
	const json_t *headers = json_object_get(recorded, "headers");
	const char *later = "x-freestyle-background-after-secs";
	bool takes_time = strcmp(op->request.method, "GET") != 0 &&
	                  strstr(op->request.url, "/fs/") == NULL;

	is_text(sent_header(op, "authorization"), "Bearer <credential>",
	        "%s: authorization", name);
	is_text(sbx_json_string(headers, "authorization"), "Bearer <credential>",
	        "%s: authorization as recorded", name);
	is_text(sent_header(op, "content-type"), sbx_json_string(headers, "content-type"),
	        "%s: media type as recorded", name);
	is_text(sent_header(op, later), takes_time ? sbx_json_string(headers, later) : NULL,
	        "%s: later", name);
}

static void
compare(size_t row, const json_t *recorded)
{
	const char *name = rows[row].name;
	const SbxHttpRequest *request;
	int64_t omitted;
	char *body = NULL;
	Drive drive;

	freestyle_account();
	account.credentials[0] = "<credential>";
	drive = rows[row].send();
	request = &drive.op->request;
	if (!ok(drive.want == SBX_OP_WANT_HTTP, "%s: is sent", name))
		return drive_end(&drive);
	is_text(request->method, sbx_json_string(recorded, "method"), "%s: method", name);
	ok(strncmp(request->url, FREESTYLE_API, strlen(FREESTYLE_API)) == 0, "%s: host",
	   name);
	compare_part(row, "path", request->url + strlen(FREESTYLE_API),
	             sbx_json_string(recorded, "path"), rows[row].path);
	if (request->body != NULL && sbx_json_string(recorded, "body") != NULL)
		body = strndup(request->body, request->body_length);
	compare_part(row, "body", body, sbx_json_string(recorded, "body"), rows[row].body);
	if (sbx_json_string(recorded, "base64") != NULL)
		ok(request->body != NULL && (request->body_length == 0 ||
		                             memcmp(request->body, "\0\1\2\377", 4) == 0),
		   "%s: bytes as recorded", name);
	if (sbx_json_integer(recorded, "omittedBytes", &omitted))
		ok(request->body != NULL, "%s: has bytes", name);
	compare_headers(name, drive.op, recorded);
	free(body);
	drive_end(&drive);
}

void
test_freestyle_wire(void)
{
	char path[4096];
	json_t *all;

	section("Freestyle wire");
	snprintf(path, sizeof(path), "%s/freestyle.json", getenv("UNIT_DATA"));
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
