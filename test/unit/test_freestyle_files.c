/*
 * test_freestyle_files.c
 *		Files of a Freestyle machine, up and down.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define NONE  SBX_ALLOCATION_UNKNOWN
#define WRITE FREESTYLE_VM "/fs/write?path="
#define STAT  FREESTYLE_VM "/fs/stat?path="
#define READ  FREESTYLE_VM "/fs/read?path="

static Drive
uploading(const char *path)
{
	SbxUploadInput input = {
	    .path = path, .bytes = "hello", .length = 5, .boundary = "x"};

	return freestyle_opened(
	    sbx_kind_freestyle.upload(freestyle_account(), &freestyle_target, &input));
}

static Drive
downloading(const char *path)
{
	return freestyle_opened(
	    sbx_kind_freestyle.download(freestyle_account(), &freestyle_target, path, 10));
}

/* --- paths --------------------------------------------------------------------------- */

static void
paths(void)
{
	static const char *const bad[] = {"",      "/",       ".",        "a/..",
	                                  "/../a", "/a/../b", "/a/b/../", "/\xff"};
	Drive drive = uploading("a b+c");

	asks(&drive, "PUT", WRITE "%2Fhome%2Fubuntu%2Fa%20b%2Bc",
	     "a relative one starts at the home directory, and a plus is encoded");
	drive_end(&drive);
	account_text(&account, "homeDir", "/root");
	drive = freestyle_opened(
	    sbx_kind_freestyle.download(&account.account, &freestyle_target, "a", 10));
	asks(&drive, "GET", READ "%2Froot%2Fa", "which can be set");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		drive_start(&drive, sbx_kind_freestyle.download(freestyle_account(),
		                                                &freestyle_target, bad[i], 10));
		fails(&drive, SBX_PHASE_NONE, 0, "INVALID_FILE_PATH", SBX_ALLOCATION_NONE,
		      "must fire: \"%s\"", bad[i]);
		drive_end(&drive);
	}
	drive = downloading("/a..b/...");
	asks(&drive, "GET", READ "%2Fa..b%2F...", "must not fire: dots of a name");
	drive_end(&drive);
}

/* --- up ---------------------------------------------------------------------------------- */

static void
up(void)
{
	Drive drive = uploading("/tmp/a");

	asks(&drive, "PUT", WRITE "%2Ftmp%2Fa", "in one piece");
	ok(drive.op->request.body_length == 5 &&
	       memcmp(drive.op->request.body, "hello", 5) == 0,
	   "its bytes");
	ok(drive.op->request.repeatable, "the same once more does no harm");
	is_freestyle_key_kept(&drive, "upload");
	drive_answer(&drive, 204, "");
	asks(&drive, "GET", STAT "%2Ftmp%2Fa", "is it there?");
	drive_answer(&drive, 200, "{\"size\":5,\"isFile\":true}");
	ok(drive.op->succeeded, "must not fire: all of it");
	drive_end(&drive);
	drive = uploading("/tmp/a");
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 200, "{\"size\":4}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", NONE,
	      "must fire: a part of it");
	drive_end(&drive);
	drive = uploading("/tmp/a");
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	fails(&drive, SBX_PHASE_REMOTE, 404, "UPLOAD_INCOMPLETE", NONE,
	      "must fire: a success that left nothing");
	drive_end(&drive);
	drive = uploading("/tmp/a");
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 200, "{}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, NONE, "nobody knows");
	drive_end(&drive);
}

static void
parents(void)
{
	Drive drive = uploading("/tmp/it's/b/a");

	drive_answer(&drive, 404, FREESTYLE_GONE);
	asks(&drive, "POST", FREESTYLE_EXEC, "must fire: refused for lack of directories");
	ok(strstr(drive.op->request.body, "mkdir -p -- '/tmp/it'\\\\''s/b/'") != NULL,
	   "which a command makes");
	drive_answer(&drive, 200, "{\"statusCode\":0}");
	asks(&drive, "PUT", WRITE "%2Ftmp%2Fit%27s%2Fb%2Fa", "and once more");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	asks(&drive, "GET", FREESTYLE_VM, "but no third time");
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	fails(&drive, SBX_PHASE_REMOTE, 404, "NOT_FOUND", NONE, "it could not be written");
	drive_end(&drive);
	drive = uploading("/tmp/a");
	drive_answer(&drive, 404, FREESTYLE_GONE);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	drive_answer(&drive, 404, FREESTYLE_GONE);
	fails(&drive, SBX_PHASE_REMOTE, 404, "SANDBOX_GONE", NONE,
	      "it was the machine that is not there");
	drive_end(&drive);
	drive = uploading("/tmp/a");
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE,
	      "must not fire: refused for something else");
	drive_end(&drive);
}

/* --- up, in pieces --------------------------------------------------------------------------- */

#define PIECES       FREESTYLE_VM "/fs/uploads"
#define PIECE(at)    PIECES "/up-1?offset=" at
#define RECEIVED(at) "{\"uploadId\":\"up-1\",\"receivedBytes\":" at "}"

static Drive
uploading_large(size_t length)
{
	char *bytes = calloc(length, 1);
	SbxUploadInput input = {
	    .path = "/tmp/a", .bytes = bytes, .length = length, .boundary = "x"};
	Drive drive = freestyle_opened(
	    sbx_kind_freestyle.upload(freestyle_account(), &freestyle_target, &input));

	free(bytes);
	return drive;
}

/* 40 MiB, of which the session was begun. */
static Drive
begun(void)
{
	Drive drive = uploading_large(40 << 20);

	drive_answer(&drive, 200, RECEIVED("0"));
	return drive;
}

static void
pieces(void)
{
	Drive drive = uploading_large(8 << 20);

	asks(&drive, "PUT", WRITE "%2Ftmp%2Fa", "must not fire: 8 MiB");
	drive_end(&drive);
	drive = uploading_large((8 << 20) + 1);
	asks(&drive, "POST", PIECES, "must fire: a byte more");
	is_text(drive.op->request.body, "{\"path\":\"/tmp/a\",\"size\":8388609}",
	        "how large it will be");
	drive_end(&drive);
	drive = begun();
	asks(&drive, "PUT", PIECE("0"), "the first piece");
	is_number((int64_t) drive.op->request.body_length, 16 << 20, "of 16 MiB");
	ok(!drive.op->request.repeatable, "once");
	drive_answer(&drive, 200, RECEIVED("1000"));
	asks(&drive, "PUT", PIECE("1000"), "on from what has arrived");
	drive_answer(&drive, 200, RECEIVED("16778216"));
	asks(&drive, "PUT", PIECE("16778216"), "and on");
	drive_answer(&drive, 200, RECEIVED("33555432"));
	is_number((int64_t) drive.op->request.body_length, 8387608, "what is left");
	drive_answer(&drive, 200, RECEIVED("41943040"));
	asks(&drive, "POST", PIECES "/up-1/commit", "the last request");
	drive_answer(&drive, 204, "");
	asks(&drive, "GET", STAT "%2Ftmp%2Fa", "is it there?");
	drive_answer(&drive, 200, "{\"size\":41943040}");
	ok(drive.op->succeeded, "it is");
	drive_end(&drive);
}

static void
pieces_again(void)
{
	Drive drive = begun();

	drive_answer(&drive, 503, "");
	pauses(&drive, 500, "trouble: a pause");
	drive_pause_over(&drive);
	asks(&drive, "GET", PIECES "/up-1", "has it arrived?");
	drive_answer(&drive, 200, RECEIVED("16777216"));
	asks(&drive, "PUT", PIECE("16777216"), "must fire: it has, and is not sent again");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	pauses(&drive, 500, "progress was made: patience anew");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, RECEIVED("16777216"));
	asks(&drive, "PUT", PIECE("16777216"), "must not fire: it has not");
	for (int i = 0; i < 4; i++)
	{
		drive_answer(&drive, 503, "");
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
		if (i < 3)
			drive_answer(&drive, 200, RECEIVED("16777216"));
	}
	asks(&drive, "DELETE", PIECES "/up-1", "at last it is dropped");
	drive_answer(&drive, 500, "");
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, NONE, "with the reason");
	drive_end(&drive);
}

static void
pieces_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {{400, FREESTYLE_ERROR("BAD_REQUEST"), SBX_PHASE_REMOTE, "BAD_REQUEST"},
	            {401, "{}", SBX_PHASE_REMOTE, "UNAUTHORIZED"},
	            {200, RECEIVED("0"), SBX_PHASE_PROTOCOL, NULL},
	            {200, RECEIVED("-1"), SBX_PHASE_PROTOCOL, NULL},
	            {200, RECEIVED("16777217"), SBX_PHASE_PROTOCOL, NULL},
	            {200, RECEIVED("41943040"), SBX_PHASE_PROTOCOL, NULL},
	            {200, RECEIVED("41943041"), SBX_PHASE_PROTOCOL, NULL},
	            {200, "{}", SBX_PHASE_PROTOCOL, NULL}};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = begun();
		drive_answer(&drive, rows[i].status, rows[i].body);
		asks(&drive, "DELETE", PIECES "/up-1", "%d %s: dropped", rows[i].status,
		     rows[i].body);
		drive_answer(&drive, 204, "");
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code, NONE, "%d %s",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = uploading_large(9 << 20);
	drive_answer(&drive, 200, "{\"uploadId\":\"../x\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, NONE, "an id that is none");
	drive_end(&drive);
}

/* --- down ---------------------------------------------------------------------------------- */

static void
down(void)
{
	Drive drive = downloading("/tmp/a");
	const SbxFileContent *content;

	asks(&drive, "GET", READ "%2Ftmp%2Fa", "its bytes");
	is_text(sent_header(drive.op, "Accept-Encoding"), "identity", "as they are");
	drive_answer_bytes(&drive, 200, "a\0b", 3);
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 3 &&
	       memcmp(content->bytes, "a\0b", 3) == 0,
	   "a NUL and all");
	drive_end(&drive);
	drive = downloading("/tmp/a");
	drive_answer(&drive, 200, "0123456789");
	ok(drive.op->succeeded, "must not fire: as many as may be");
	drive_end(&drive);
	drive = downloading("/tmp/a");
	drive_answer(&drive, 200, "0123456789x");
	fails(&drive, SBX_PHASE_REMOTE, 200, "FILE_TOO_LARGE", NONE, "must fire: one more");
	drive_end(&drive);
	drive = downloading("/tmp/a");
	drive_headed(&drive, 200, "Content-Type: text/html; charset=x\r\n", "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, NONE, "a page is no file");
	drive_end(&drive);
}

static void
down_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		int look_status;
		const char *look;
		const char *code;
	} rows[] = {
	    {404, FREESTYLE_GONE, 200, FREESTYLE_DTO("running"), "FILE_NOT_FOUND"},
	    {404, FREESTYLE_GONE, 404, FREESTYLE_GONE, "SANDBOX_GONE"},
	    {404, FREESTYLE_GONE, 200, FREESTYLE_DTO("paused"), "NOT_STARTED"},
	    {404, "<html>", 200, FREESTYLE_DTO("running"), NULL},
	    {400, "{}", 200, FREESTYLE_DTO("running"), "INVALID_FILE_PATH"},
	    {403, "{}", 200, FREESTYLE_DTO("running"), "FORBIDDEN"},
	    {409, "{}", 200, FREESTYLE_DTO("pausing"), "NOT_STARTED"},
	};
	Drive drive;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = downloading("/tmp/a");
		drive_answer(&drive, rows[i].status, rows[i].body);
		asks(&drive, "GET", FREESTYLE_VM, "%d is looked into", rows[i].status);
		drive_answer(&drive, rows[i].look_status, rows[i].look);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, NONE, "%d %s, %d",
		      rows[i].status, rows[i].body, rows[i].look_status);
		drive_end(&drive);
	}
	drive = downloading("/tmp/a");
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE, "the key");
	drive_end(&drive);
	drive_start(&drive, sbx_kind_freestyle.download(freestyle_account(),
	                                                &freestyle_target, "/tmp/a", 10));
	drive_answer(&drive, 200, FREESTYLE_DTO("paused"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", NONE, "nothing is woken");
	drive_end(&drive);
}

void
test_freestyle_files(void)
{
	section("Freestyle files");
	paths();
	up();
	parents();
	pieces();
	pieces_again();
	pieces_refused();
	down();
	down_refused();
}
