/*
 * test_daytona_files.c
 *		Files up and down, byte for byte.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define EXECUTE SANDBOX_BOX "/process/execute"
#define UPLOAD  SANDBOX_BOX "/files/bulk-upload"
#define HOME    SANDBOX_BOX "/user-home-dir"

static const SbxTarget target = {.sandbox_id = ID};

static SbxOp *
make_upload(const char *path, const char *bytes, size_t length)
{
	SbxUploadInput input = {
	    .path = path, .bytes = bytes, .length = length, .boundary = "xyz-1"};

	return sbx_kind_daytona.upload(&account.account, &target, &input);
}

/* An upload whose form is out. */
static Drive
uploading(const char *path, const char *bytes, size_t length)
{
	account_reset(&account);
	return opened(make_upload(path, bytes, length));
}

static Drive
uploading_hello(void)
{
	return uploading("/a", "hello", 5);
}

static Drive
downloading(const char *path, size_t max_bytes)
{
	return opened(
	    sbx_kind_daytona.download(account_reset(&account), &target, path, max_bytes));
}

static void
is_uploaded(const Drive *drive, const char *what)
{
	ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s", what);
}

/* --- up: the form -------------------------------------------------------- */

#define HEAD(path)                                                                     \
	"--xyz-1\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n" path   \
	"\r\n--xyz-1\r\nContent-Disposition: form-data; name=\"files[0].file\"; "          \
	"filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n"
#define TAIL "\r\n--xyz-1--\r\n"

static void
form_is(const Drive *drive, const char *head, const char *bytes, size_t length,
        const char *what)
{
	const SbxHttpRequest *request = &drive->op->request;
	size_t head_length = strlen(head);
	size_t tail_length = strlen(TAIL);

	ok(request->body_length == head_length + length + tail_length &&
	       memcmp(request->body, head, head_length) == 0 &&
	       memcmp(request->body + head_length, bytes, length) == 0 &&
	       memcmp(request->body + head_length + length, TAIL, tail_length) == 0,
	   "%s", what);
}

static void
forms(void)
{
	static const char like_a_boundary[] =
	    "--xyz-2\r\n\r\n--xyz--\r\n--XYZ-1-\n--xyz-\r\n--";
	char all[256];
	Drive drive = uploading_hello();

	section("upload");
	asks(&drive, "POST", UPLOAD, "one form");
	is_text(sent_header(drive.op, "Content-Type"),
	        "multipart/form-data; boundary=xyz-1", "its type");
	ok(drive.op->request.repeatable, "the same bytes to the same place");
	is_number(drive.op->request.timeout_ms, 0, "may take all the time there is");
	is_number(drive.op->timeout_ms, 600000, "which is");
	is_text(drive.op->operation, "upload", "operation name");
	form_is(&drive, HEAD("/a"), "hello", 5, "path, then content");
	drive_end(&drive);

	drive = uploading("/a", "", 0);
	form_is(&drive, HEAD("/a"), "", 0, "an empty file");
	drive_answer(&drive, 200, "{\"files\":[{\"path\":\"/a\",\"bytes\":0}]}");
	is_uploaded(&drive, "an empty file is one");
	drive_end(&drive);
	drive = uploading("/a", NULL, 0);
	form_is(&drive, HEAD("/a"), "", 0, "no bytes at all");
	drive_end(&drive);
	for (int i = 0; i < 256; i++)
		all[i] = (char) i;
	drive = uploading("/a", all, 256);
	form_is(&drive, HEAD("/a"), all, 256, "every byte value");
	drive_end(&drive);
	drive = uploading("/a", like_a_boundary, sizeof(like_a_boundary) - 1);
	form_is(&drive, HEAD("/a"), like_a_boundary, sizeof(like_a_boundary) - 1,
	        "what only looks like the form's end stays as it is");
	drive_end(&drive);
	drive = uploading("/x y/\"%41'\\;\xc3\xa4\t", "hello", 5);
	form_is(&drive, HEAD("/x y/\"%41'\\;\xc3\xa4\t"), "hello", 5,
	        "a path needs no quoting in a part's content");
	drive_end(&drive);
}

static void
impossible(void)
{
	static const char *const paths[] = {"", "/a\r\nb", "/a\nb", "\r", "a\n"};
	static const char *const boundaries[] = {"", "a b", "a\"", "a\r\n", "a/b", NULL};
	Drive drive;

	section("files: impossible");
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
	{
		account_reset(&account);
		drive_start(&drive, make_upload(paths[i], "x", 1));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
		      "upload to path %zu", i);
		drive_end(&drive);
		drive_start(&drive,
		            sbx_kind_daytona.download(&account.account, &target, paths[i], 1));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
		      "download of path %zu", i);
		drive_end(&drive);
	}
	for (size_t i = 0; boundaries[i] != NULL; i++)
	{
		SbxUploadInput input = {
		    .path = "/a", .bytes = "x", .length = 1, .boundary = boundaries[i]};

		drive_start(&drive, sbx_kind_daytona.upload(&account.account, &target, &input));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "boundary %zu", i);
		drive_end(&drive);
	}
}

/* --- up: what came of it ------------------------------------------------- */

static void
told(void)
{
	static const struct
	{
		int status;
		const char *body;
		bool complete;
	} rows[] = {{200, "{\"files\":[{\"path\":\"/a\",\"bytes\":5}]}", true},
	            {201, "{\"files\":[{\"bytes\":5}]}", true},
	            {200, "{\"files\":[{\"path\":\"/a\",\"bytes\":4}]}", false},
	            {200, "{\"files\":[{\"path\":\"/a\",\"bytes\":6}]}", false},
	            {200, "{\"files\":[{\"path\":\"/a\",\"bytes\":0}]}", false},
	            {200, "{\"files\":[{\"path\":\"/a\",\"bytes\":-5}]}", false},
	            {200, "{\"files\":[{\"path\":\"/a\",\"bytes\":4294967301}]}", false}};
	Drive drive;

	section("upload: told");
	drive = uploading("/tmp/a.txt", "hello", 5);
	drive_recorded(&drive, "upload");
	is_uploaded(&drive, "as recorded");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = uploading_hello();
		drive_answer(&drive, rows[i].status, rows[i].body);
		if (rows[i].complete)
			is_uploaded(&drive, rows[i].body);
		else
			fails(&drive, SBX_PHASE_PROTOCOL, rows[i].status, "UPLOAD_INCOMPLETE",
			      SBX_ALLOCATION_UNKNOWN, "%s", rows[i].body);
		drive_end(&drive);
	}
}

/* An upload whose answer did not tell the number of bytes: they are counted. */
static Drive
counting(void)
{
	Drive drive = uploading_hello();

	drive_answer(&drive, 200, "");
	return drive;
}

static void
not_told(void)
{
	static const char *const bodies[] = {"",
	                                     "{}",
	                                     "<html>",
	                                     "{\"files\":[]}",
	                                     "{\"files\":{}}",
	                                     "{\"files\":[{}]}",
	                                     "{\"files\":[{\"bytes\":\"5\"}]}",
	                                     "{\"files\":[{\"bytes\":5.0}]}",
	                                     "{\"files\":[{\"bytes\":null}]}"};
	static const struct
	{
		int status;
		const char *body;
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {200, "{\"exitCode\":1,\"result\":\"\"}", SBX_PHASE_PROTOCOL,
	     "UPLOAD_INCOMPLETE"},
	    {200, "{\"exitCode\":-1,\"result\":\"\"}", SBX_PHASE_PROTOCOL,
	     "UPLOAD_INCOMPLETE"},
	    {200, "{\"exitCode\":\"0\"}", SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE"},
	    {200, "{}", SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE"},
	    {200, "<html>", SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE"},
	    {400, "{\"message\":\"no IP address found\"}", SBX_PHASE_REMOTE, "NOT_STARTED"},
	    {404, "{}", SBX_PHASE_REMOTE, NULL},
	    {408, "{}", SBX_PHASE_REMOTE, NULL},
	    {502, "", SBX_PHASE_REMOTE, NULL}};
	Drive drive;

	section("upload: not told");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		drive = uploading_hello();
		drive_answer(&drive, 200, bodies[i]);
		asks(&drive, "POST", EXECUTE, "%s: counted", bodies[i]);
		is_text(drive.op->request.body,
		        "{\"command\":\"test -f '/a' && test \\\"$(wc -c <'/a')\\\" -eq "
		        "5\",\"timeout\":8}",
		        "so");
		ok(drive.op->request.repeatable, "a plain read");
		drive_answer(&drive, 200, "{\"exitCode\":0,\"result\":\"\"}");
		is_uploaded(&drive, "complete");
		drive_end(&drive);
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = counting();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "counted: %d %s", rows[i].status, rows[i].body);
		ok(drive.op->failure.request_sent, "the file may be there");
		drive_end(&drive);
	}
	drive = counting();
	drive_answer(&drive, 401, "{}");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = counting();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);

	/* A path in no known encoding cannot be written into a command. */
	drive = uploading("/\xff", "hello", 5);
	asks(&drive, "POST", UPLOAD, "a path that is not UTF-8");
	drive_answer(&drive, 200, "{\"files\":[{\"bytes\":5}]}");
	is_uploaded(&drive, "a path that is not UTF-8");
	drive_end(&drive);
	drive = uploading("/\xff", "hello", 5);
	drive_answer(&drive, 200, "");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", SBX_ALLOCATION_UNKNOWN,
	      "one that cannot be counted is not called complete");
	drive_end(&drive);
}

static void
upload_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {
	    {400, "{\"errors\":[\"no space left on device\"],\"files\":[]}", NULL},
	    {400, "{\"errors\":[\"x\"],\"files\":[{\"path\":\"/a\",\"bytes\":5}]}", NULL},
	    {400, "{}", NULL},
	    {400, "{\"code\":\"INVALID_FILE_PATH\"}", "INVALID_FILE_PATH"},
	    {400, "{\"code\":\"FILE_ACCESS_DENIED\"}", "FILE_ACCESS_DENIED"},
	    {400, "{\"code\":\"SOMETHING_NEW\"}", NULL},
	    {400, "{\"message\":\"no IP address found\"}", "NOT_STARTED"},
	    {404, "{\"message\":\"sandbox container not found\"}", "NOT_STARTED"},
	    {403, "{}", "FILE_ACCESS_DENIED"},
	    {408, "{}", NULL},
	    {409, "{}", NULL},
	    {429, "{}", NULL},
	    {500, "", NULL},
	    {502, "", NULL}};
	Drive drive;

	section("upload: refused");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = uploading_hello();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		ok(drive.op->failure.request_sent, "a part of it may be there");
		drive_end(&drive);
	}
	for (int sent = 0; sent < 2; sent++)
	{
		drive = uploading_hello();
		drive_no_answer(&drive, sent ? SBX_PHASE_SEND : SBX_PHASE_CONNECT, sent, false);
		fails(&drive, sent ? SBX_PHASE_SEND : SBX_PHASE_CONNECT, 0, NULL,
		      SBX_ALLOCATION_UNKNOWN, "no answer");
		ok(drive.op->failure.request_sent == sent, "says whether it was sent");
		drive_end(&drive);
	}
	drive = uploading_hello();
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

/* --- where? -------------------------------------------------------------- */

static void
relative_paths(void)
{
	static const struct
	{
		const char *setting;
		int status;
		const char *body;
		const char *home; /* NULL = it fails */
		SbxPhase phase;
		const char *code;
	} rows[] = {
	    {NULL, 200, "{\"dir\":\"/home/x\"}", "/home/x", 0, NULL},
	    {"/set", 200, "{\"dir\":\"/home/x\"}", "/home/x", 0, NULL},
	    {"/set", 200, "{\"dir\":\"\"}", "/set", 0, NULL},
	    {"/set", 200, "{\"dir\":\"rel\"}", "/set", 0, NULL},
	    {"/set", 200, "{\"dir\":5}", "/set", 0, NULL},
	    {"/set", 200, "<html>", "/set", 0, NULL},
	    {"/set", 404, "{}", "/set", 0, NULL},
	    {"/set", 500, "", "/set", 0, NULL},
	    {"/set", 401, "{}", "/set", 0, NULL},
	    {"set", 500, "", NULL, SBX_PHASE_REMOTE, NULL},
	    {NULL, 200, "{\"dir\":\"/a\\nb\"}", NULL, SBX_PHASE_PROTOCOL, "HOME_UNKNOWN"},
	    {NULL, 200, "{\"dir\":\"rel\"}", NULL, SBX_PHASE_PROTOCOL, "HOME_UNKNOWN"},
	    {NULL, 200, "{}", NULL, SBX_PHASE_PROTOCOL, "HOME_UNKNOWN"},
	    {NULL, 200, "<html>", NULL, SBX_PHASE_PROTOCOL, "HOME_UNKNOWN"},
	    {NULL, 404, "{}", NULL, SBX_PHASE_REMOTE, NULL},
	    {NULL, 502, "", NULL, SBX_PHASE_REMOTE, NULL},
	    {NULL, 400, "{\"message\":\"no IP address found\"}", NULL, SBX_PHASE_REMOTE,
	     "NOT_STARTED"}};
	Drive drive;

	section("relative path");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		account_reset(&account);
		if (rows[i].setting != NULL)
			account_text(&account, "homeDir", rows[i].setting);
		drive = opened(make_upload("d/a", "x", 1));
		asks(&drive, "GET", HOME, "case %zu: where is home?", i);
		drive_answer(&drive, rows[i].status, rows[i].body);
		if (rows[i].home != NULL)
		{
			char part[100];

			snprintf(part, sizeof(part), "\r\n\r\n%s/d/a\r\n", rows[i].home);
			asks(&drive, "POST", UPLOAD, "case %zu: uploaded", i);
			ok(memmem(drive.op->request.body, drive.op->request.body_length, part,
			          strlen(part)) != NULL,
			   "case %zu: to %s", i, rows[i].home);
		}
		else
			fails(&drive, rows[i].phase, rows[i].status, rows[i].code,
			      SBX_ALLOCATION_UNKNOWN, "case %zu", i);
		drive_end(&drive);
	}
	drive = downloading("a b", 9);
	drive_recorded(&drive, "home_dir");
	asks(&drive, "GET", SANDBOX_BOX "/files/download?path=%2Fhome%2Fdaytona%2Fa%20b",
	     "a download's, too");
	drive_end(&drive);
	drive = downloading("a", 9);
	drive_answer(&drive, 401, "{}");
	drive_answer(&drive, 404, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "SANDBOX_GONE", SBX_ALLOCATION_UNKNOWN,
	      "gone");
	drive_end(&drive);
	drive = downloading("a", 9);
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

/* --- down ---------------------------------------------------------------- */

static void
downloaded(void)
{
	static const char *const texts[] = {"hello", "", "{\"code\":\"FILE_NOT_FOUND\"}"};
	const SbxFileContent *content;
	char all[256];
	Drive drive = downloading("/x y/%41+\xc3\xa4&b=?#", 99);

	section("download");
	asks(&drive, "GET",
	     SANDBOX_BOX "/files/download?path=%2Fx%20y%2F%2541%2B%C3%A4%26b%3D%3F%23",
	     "the path is encoded");
	is_text(drive.op->operation, "download", "operation name");
	ok(drive.op->request.repeatable, "a plain read");
	is_number(drive.op->request.timeout_ms, 0, "may take all the time there is");
	drive_end(&drive);

	for (int i = 0; i < 256; i++)
		all[i] = (char) i;
	drive = downloading("/a", 256);
	drive_answer_bytes(&drive, 200, all, 256);
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 256 &&
	       memcmp(content->bytes, all, 256) == 0,
	   "every byte value, exactly full");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		drive = downloading("/a", 99);
		drive_answer(&drive, 200, texts[i]);
		content = drive.op->result;
		ok(drive.op->succeeded && content->length == strlen(texts[i]) &&
		       strcmp(content->bytes, texts[i]) == 0,
		   "'%s' is content", texts[i]);
		drive_end(&drive);
	}
}

static void
too_large(void)
{
	Drive drive = downloading("/a", 5);

	section("download: too large");
	ok(drive.op->request.max_response >= 4096, "there is room for a refusal's text");
	drive_answer(&drive, 200, "123456");
	fails(&drive, SBX_PHASE_REMOTE, 200, "FILE_TOO_LARGE", SBX_ALLOCATION_UNKNOWN,
	      "one byte too many");
	ok(drive.op->result == NULL, "nothing of it is kept");
	drive_end(&drive);
	drive = downloading("/a", 5);
	drive_answer(&drive, 200, "12345");
	ok(drive.op->succeeded, "exactly full");
	drive_end(&drive);
	drive = downloading("/a", 0);
	drive_answer(&drive, 200, "1");
	fails(&drive, SBX_PHASE_REMOTE, 200, "FILE_TOO_LARGE", SBX_ALLOCATION_UNKNOWN,
	      "of no bytes at all one is too many");
	drive_end(&drive);
	drive = downloading("/a", 0);
	drive_answer(&drive, 200, "");
	ok(drive.op->succeeded, "none are not");
	drive_end(&drive);
	drive = downloading("/a", 100000);
	is_number((int64_t) drive.op->request.max_response, 100000, "no more is read");
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, "FILE_TOO_LARGE", SBX_ALLOCATION_UNKNOWN,
	      "cut off by the driver");
	drive_end(&drive);
}

static void
download_refused(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {
	    {404, "{\"statusCode\":404,\"code\":\"FILE_NOT_FOUND\"}", "FILE_NOT_FOUND"},
	    {404, "{}", "FILE_NOT_FOUND"},
	    {404, "", "FILE_NOT_FOUND"},
	    {403, "{}", "FILE_ACCESS_DENIED"},
	    {403, "{\"code\":\"FILE_ACCESS_DENIED\"}", "FILE_ACCESS_DENIED"},
	    {400, "{}", "INVALID_FILE_PATH"},
	    {400, "{\"code\":\"INVALID_FILE_PATH\"}", "INVALID_FILE_PATH"},
	    {400, "{\"code\":\"FILE_NOT_FOUND\"}", "FILE_NOT_FOUND"},
	    {400, "{\"code\":\"FILE_READ_FAILED\"}", "INVALID_FILE_PATH"},
	    {500, "{\"code\":\"FILE_READ_FAILED\"}", NULL},
	    {500, "{\"code\":\"FILE_ACCESS_DENIED\"}", "FILE_ACCESS_DENIED"},
	    {404, "{\"code\":5}", "FILE_NOT_FOUND"},
	    {404, "{\"code\":\"file_not_found\"}", "FILE_NOT_FOUND"},
	    {400, "{\"message\":\"no IP address found\"}", "NOT_STARTED"},
	    {404, "{\"message\":\"sandbox container not found\"}", "NOT_STARTED"},
	    {408, "{}", NULL},
	    {429, "{}", NULL},
	    {206, "hel", NULL},
	    {302, "", NULL},
	    {502, "", NULL}};
	Drive drive;

	section("download: refused");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = downloading("/a", 5);
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      SBX_ALLOCATION_UNKNOWN, "%d %s", rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = downloading("/a", 5);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "broken off");
	drive_end(&drive);
	drive = downloading("/a", 5);
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->failure.timed_out, "time over");
	drive_end(&drive);
}

void
test_daytona_files(void)
{
	forms();
	impossible();
	told();
	not_told();
	upload_refused();
	relative_paths();
	downloaded();
	too_large();
	download_refused();
}
