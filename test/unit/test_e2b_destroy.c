/*
 * test_e2b_destroy.c
 *		Ending an E2B sandbox; its files, which end with it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

/* --- files ---------------------------------------------------------------- */

static Drive
uploading(const char *path)
{
	SbxUploadInput input = {
	    .path = path, .bytes = "a\0\xff", .length = 3, .boundary = "x"};

	return e2b_opened(sbx_kind_e2b.upload(e2b_account(), &e2b_target, &input));
}

static Drive
downloading(const char *path)
{
	return e2b_opened(sbx_kind_e2b.download(e2b_account(), &e2b_target, path, 100));
}

static void
files(void)
{
	static const struct
	{
		int status;
		const char *code;
	} rows[] = {{400, "INVALID_FILE_PATH"},
	            {401, "UNAUTHORIZED"},
	            {403, "FILE_ACCESS_DENIED"},
	            {404, "FILE_NOT_FOUND"},
	            {429, "RATE_LIMITED"},
	            {507, "DISK_FULL"},
	            {500, NULL}};
	static const char *const nothing[] = {
	    "", "[]", "{}", "<html>", "[1]", "[{}]", "[{\"path\":1}]"};
	const SbxFileContent *content;
	Drive drive = uploading("/home/user/a b\xc3\xa9&=.txt");

	section("upload");
	asks(&drive, "POST", E2B_ENVD "/files?path=%2Fhome%2Fuser%2Fa%20b%C3%A9%26%3D.txt",
	     "the path");
	is_text(sent_header(drive.op, "Content-Type"), "application/octet-stream", "raw");
	ok(drive.op->request.body_length == 3 &&
	       memcmp(drive.op->request.body, "a\0\xff", 3) == 0,
	   "byte for byte");
	ok(drive.op->request.repeatable, "no harm twice");
	is_secret_kept(&drive, "upload");
	drive_answer(&drive, 200, "[{\"path\":\"/home/user/a\",\"name\":\"a\"}]");
	ok(drive.op->succeeded, "must not fire: done");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++)
	{
		drive = uploading("a");
		drive_answer(&drive, 200, nothing[i]);
		fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
		      "must fire: a success that tells of no file: %s", nothing[i]);
		ok(drive.op->failure.request_sent, "and it may be there");
		drive_end(&drive);
	}
	drive_start(&drive, sbx_kind_e2b.download(e2b_account(), &e2b_target, "", 100));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no path");
	drive_end(&drive);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = uploading("a");
		drive_answer(&drive, rows[i].status, "");
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN,
		      "upload %d", rows[i].status);
		ok(drive.op->failure.request_sent, "was sent");
		drive_end(&drive);
		drive = downloading("a");
		drive_answer(&drive, rows[i].status, "");
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN,
		      "download %d", rows[i].status);
		drive_end(&drive);
	}

	section("download");
	drive = downloading("a b");
	asks(&drive, "GET", E2B_ENVD "/files?path=a%20b", "the path");
	is_number((int64_t) drive.op->request.max_response, 65536,
	          "room for a refusal, however small the file may be");
	drive_answer_bytes(&drive, 200, "a\0b", 3);
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 3 &&
	       memcmp(content->bytes, "a\0b", 3) == 0,
	   "byte for byte");
	drive_end(&drive);
	drive = downloading("a");
	drive_answer(&drive, 200, "");
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 0, "an empty one");
	drive_end(&drive);
	drive = downloading("a");
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, "FILE_TOO_LARGE", UNKNOWN, "too large");
	drive_end(&drive);
	{
		char bytes[102];

		memset(bytes, 'x', sizeof(bytes) - 1);
		bytes[101] = '\0';
		drive = downloading("a");
		drive_answer(&drive, 200, bytes);
		fails(&drive, SBX_PHASE_REMOTE, 200, "FILE_TOO_LARGE", UNKNOWN, "one too many");
		drive_end(&drive);
		drive = downloading("a");
		drive_answer(&drive, 200, bytes + 1);
		ok(drive.op->succeeded, "just as many");
		drive_end(&drive);
	}
}

/* --- destroy by id -------------------------------------------------------- */

static Drive
killing(void)
{
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.destroy(e2b_account(), &e2b_target, 0));
	return drive;
}

static void
is_destroyed(const Drive *drive, SbxDestroyResult expected, const char *name)
{
	if (ok(drive->op->succeeded, "%s: is success", name))
		is_number(*(const SbxDestroyResult *) drive->op->result, expected, "%s: result",
		          name);
}

/* What a refusal asks for, between our own pause and the longest that is waited. */
static void
after_the_pause_asked_for(void)
{
	static const struct
	{
		const char *name;
		const char *headers;
		int rest_ms;
		int pause_ms;
	} rows[] = {
	    {"must fire: longer than ours", "Retry-After: 3\r\n", 60000, 3000},
	    {"must fire: 20 s at most", "Retry-After: 86400\r\n", 60000, 20000},
	    {"must fire: half of what is left", "Retry-After: 3\r\n", 2000, 1000},
	    {"must not fire: less than ours is left", "Retry-After: 3\r\n", 300, 200},
	    {"must not fire: shorter than ours", "Retry-After: 0\r\n", 60000, 200},
	    {"must not fire: it does not ask", "X: 3\r\n", 60000, 200},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = killing();

		drive.op->elapsed_ms = drive.op->timeout_ms - rows[i].rest_ms;
		drive_headed(&drive, 429, rows[i].headers, "");
		pauses(&drive, rows[i].pause_ms, "%s", rows[i].name);
		drive_end(&drive);
	}
}

static void
by_id(void)
{
	static const int again[] = {409, 429, 500, 503, 408};
	static const int refused[] = {400, 401, 403, 302};
	Drive drive = killing();

	section("destroy");
	asks(&drive, "DELETE", E2B_SANDBOX, "one request");
	ok(drive.op->request.repeatable && drive.op->request.body == NULL,
	   "without a body");
	is_secret_kept(&drive, "destroy");
	drive_answer(&drive, 204, "");
	is_destroyed(&drive, SBX_DESTROY_DONE, "204");
	drive_end(&drive);
	drive = killing();
	drive_answer(&drive, 404, "");
	is_destroyed(&drive, SBX_DESTROY_WAS_GONE, "404");
	drive_end(&drive);
	drive = killing();
	drive_response(&drive, (SbxHttpResponse){.status = 404, .resent = true});
	is_destroyed(&drive, SBX_DESTROY_DONE, "404 of one that was sent twice");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
	{
		drive = killing();
		drive_answer(&drive, again[i], "");
		pauses(&drive, 200, "%d: again", again[i]);
		drive_pause_over(&drive);
		asks(&drive, "DELETE", E2B_SANDBOX, "%d: the same", again[i]);
		drive_answer(&drive, 404, "");
		is_destroyed(&drive,
		             again[i] == 429 || again[i] == 409 ? SBX_DESTROY_WAS_GONE
		                                                : SBX_DESTROY_DONE,
		             "404 after it");
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
	{
		drive = killing();
		drive_answer(&drive, refused[i], "");
		ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded &&
		       drive.op->failure.http_status == refused[i],
		   "%d: fails", refused[i]);
		drive_end(&drive);
	}
	drive = killing();
	drive_answer(&drive, 409, "");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 409, "BUSY", UNKNOWN, "busy until the end");
	drive_end(&drive);
	drive = killing();
	for (int i = 0; i < 3; i++)
	{
		drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
		drive_pause_over(&drive);
	}
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, UNKNOWN, "nobody is there");
	drive_end(&drive);
	drive = killing();
	for (int i = 0; i < 7; i++)
	{
		drive_answer(&drive, 500, "");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 500, "");
	fails(&drive, SBX_PHASE_REMOTE, 500, NULL, UNKNOWN, "trouble eight times in a row");
	drive_end(&drive);
}

/* --- destroy by label ----------------------------------------------------- */

#define LISTING                                                                        \
	E2B_API "/v2/sandboxes?metadata=sbx-router-id%3D" LISTED                           \
	        "&state=running%2Cpaused&limit=100&order=asc"
#define LISTED           "sbx_0123456789abcdef0123456789abcdef"
#define ITEM(id, labels) "{\"sandboxID\":\"" id "\",\"metadata\":{" labels "}}"
#define OURS             "\"sbx-router-id\":\"" NAME "\""
#define TOKEN(token)     "\"sbx-router-launch\":\"" token "\""

static Drive
looking_up(const char *token)
{
	SbxTarget target = {.unique_name = NAME, .launch_token = token};
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.destroy(e2b_account(), &target, 0));
	return drive;
}

static void
by_label(void)
{
	static const struct
	{
		const char *token;
		const char *page;
		bool ours;
	} rows[] = {
	    {"t1", "[" ITEM("ia", OURS "," TOKEN("t1")) "]", true},
	    {"t1",
	     "[" ITEM("ib", OURS "," TOKEN("t2")) "," ITEM("ia", OURS "," TOKEN("t1")) "]",
	     true},
	    {NULL, "[" ITEM("ia", OURS) "]", true},
	    {"t1", "[" ITEM("ia", OURS "," TOKEN("t2")) "]", false},
	    {"t1", "[" ITEM("ia", OURS) "]", false},
	    {NULL, "[" ITEM("ia", OURS "," TOKEN("t1")) "]", false},
	    {"t1", "[" ITEM("ia", TOKEN("t1")) "]", false},
	    {"t1", "[" ITEM("ia", "\"sbx-router-id\":\"x\"," TOKEN("t1")) "]", false},
	    {"t1", "[" ITEM("../x", OURS "," TOKEN("t1")) "]", false},
	    {"t1", "[{\"sandboxID\":\"ia\"}]", false},
	    {"t1", "[null, 5]", false},
	    {"t1", "[]", false},
	};
	Drive drive;

	section("destroy by label");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = looking_up(rows[i].token);
		asks(&drive, "GET", LISTING, "it is looked up");
		drive_answer(&drive, 200, rows[i].page);
		if (rows[i].ours)
		{
			asks(&drive, "DELETE", E2B_API "/sandboxes/ia", "%s", rows[i].page);
			is_text(drive.op->sandbox_id, "ia", "its id");
			drive_answer(&drive, 204, "");
			is_destroyed(&drive, SBX_DESTROY_DONE, "ours");
		}
		else
		{
			pauses(&drive, 200, "%s: not there yet", rows[i].page);
			drive_pause_over(&drive);
			asks(&drive, "GET", LISTING, "a lost create can be under way");
			drive_expire(&drive);
			fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_FOUND_YET", UNKNOWN,
			      "its absence is no proof");
			is_text(drive.op->sandbox_id, "", "no id");
		}
		drive_end(&drive);
	}
	drive = looking_up("t1");
	drive_answer(&drive, 401, "");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", UNKNOWN, "refused");
	drive_end(&drive);
	drive = looking_up("t1");
	drive_answer(&drive, 200, "{}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "no list");
	drive_end(&drive);
	drive = looking_up("t1");
	drive_answer(&drive, 503, "");
	pauses(&drive, 200, "trouble may pass");
	drive_end(&drive);
}

/* The id may be written into the operation after it was made. */
static void
late_id(void)
{
	SbxTarget target = {.unique_name = NAME, .launch_token = "t1"};
	SbxOp *op = sbx_kind_e2b.destroy(e2b_account(), &target, 0);
	Drive drive;

	section("destroy, id written later");
	strcpy(op->sandbox_id, "ilate");
	drive_start(&drive, op);
	asks(&drive, "DELETE", E2B_API "/sandboxes/ilate", "is used");
	drive_end(&drive);
	op = sbx_kind_e2b.destroy(e2b_account(), &target, 0);
	strcpy(op->sandbox_id, "../x");
	drive_start(&drive, op);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "but not any");
	drive_end(&drive);
}

void
test_e2b_destroy(void)
{
	by_id();
	after_the_pause_asked_for();
	by_label();
	late_id();
}

void
test_e2b_files(void)
{
	files();
}
