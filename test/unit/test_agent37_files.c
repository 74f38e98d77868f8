/*
 * test_agent37_files.c
 *		Files of an Agent37 instance, and where the key goes for them.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN  SBX_ALLOCATION_UNKNOWN
#define ATTACHED "Content-Disposition: attachment; filename=\"a\"\r\n"

static SbxOp *
upload(const char *path)
{
	SbxUploadInput input = {
	    .path = path, .bytes = "a\0\xff", .length = 3, .boundary = "x"};

	return sbx_kind_agent37.upload(&account.account, &agent37_target, &input);
}

static SbxOp *
download(const char *path)
{
	return sbx_kind_agent37.download(&account.account, &agent37_target, path, 100);
}

static void
addresses(void)
{
	static const struct
	{
		const char *url;  /* as JSON */
		const char *code; /* NULL = it is used */
	} rows[] = {{"\"" AGENT37_URL "\"", NULL},
	            {"\"" AGENT37_URL "//\"", NULL},
	            {"null", "NO_FILE_SERVICE"},
	            {"\"\"", "NO_FILE_SERVICE"},
	            {"7", "NO_FILE_SERVICE"},
	            {"\"http://" AGENT37_ID ".agent37.app\"", "INSTANCE_URL_REFUSED"},
	            {"\"https://other.agent37.app\"", "INSTANCE_URL_REFUSED"},
	            {"\"" AGENT37_URL ".evil.invalid\"", "INSTANCE_URL_REFUSED"},
	            {"\"" AGENT37_URL "@evil.invalid\"", "INSTANCE_URL_REFUSED"},
	            {"\"" AGENT37_URL ":8080\"", "INSTANCE_URL_REFUSED"},
	            {"\"" AGENT37_URL "/x\"", "INSTANCE_URL_REFUSED"},
	            {"\"https://evil.invalid/" AGENT37_ID ".agent37.app\"",
	             "INSTANCE_URL_REFUSED"}};
	Drive drive;

	section("Agent37 address");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		char object[500] = "{\"id\":\"" AGENT37_ID "\",\"status\":\"running\",\"url\":";

		strcat(strcat(object, rows[i].url), "}");
		agent37_account();
		drive_start(&drive, download("/a"));
		drive_answer(&drive, 200, object);
		if (rows[i].code == NULL)
			asks(&drive, "GET", AGENT37_FILES "%2Fa&disposition=attachment",
			     "must not fire: %s", rows[i].url);
		else
			fails(&drive, SBX_PHASE_PROTOCOL, 200, rows[i].code, UNKNOWN,
			      "must fire: %s", rows[i].url);
		drive_end(&drive);
	}
	agent37_account();
	account_text(&account, "instanceUrl", "https://i.invalid/x/");
	drive_start(&drive, download("/a"));
	drive_answer(&drive, 200,
	             AGENT37_OBJECT("running", "\"https://i.invalid/x/" AGENT37_ID "\""));
	asks(&drive, "GET",
	     "https://i.invalid/x/" AGENT37_ID
	     "/v1/files/content?path=%2Fa&disposition=attachment",
	     "the configured base");
	drive_end(&drive);
	drive_start(&drive, download("/a"));
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "INSTANCE_URL_REFUSED", UNKNOWN,
	      "and then no other");
	drive_end(&drive);
}

static void
states(void)
{
	static const struct
	{
		const char *object;
		const char *code;
	} rows[] = {{AGENT37_DTO("sleeping"), "NOT_STARTED"},
	            {AGENT37_DTO("stopped"), "NOT_STARTED"},
	            {AGENT37_DTO("waking"), "NOT_STARTED"},
	            {AGENT37_DTO("failed"), "SANDBOX_FAILED"},
	            {AGENT37_DTO("deleting"), "SANDBOX_GONE"}};

	section("Agent37 files, not running");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive;

		agent37_account();
		drive_start(&drive, upload("/a"));
		drive_answer(&drive, 200, rows[i].object);
		fails(&drive, SBX_PHASE_REMOTE, 200, rows[i].code, UNKNOWN,
		      "nothing is woken: %.45s", rows[i].object);
		drive_end(&drive);
	}
}

static void
up(void)
{
	static const struct
	{
		const char *path;
		const char *url;
	} paths[] = {{"/home/node/a b&=\xc3\xa9+.txt",
	              AGENT37_FILES "%2Fhome%2Fnode%2Fa%20b%26%3D%C3%A9%2B.txt"},
	             {"d/a", AGENT37_FILES "%2Fhome%2Fnode%2Fd%2Fa"}};
	Drive drive;

	section("Agent37 upload");
	for (size_t i = 0; i < 2; i++)
	{
		agent37_account();
		drive = agent37_opened(upload(paths[i].path));
		asks(&drive, "PUT", paths[i].url, "%s", paths[i].path);
		ok(!drive.op->request.chunked && drive.op->request.body_length == 3,
		   "with a length");
		is_text(sent_header(drive.op, "Content-Type"), "application/octet-stream",
		        "bytes");
		is_agent37_key_kept(&drive, "upload");
		drive_answer(&drive, 200, "{\"size\":3}");
		ok(drive.op->succeeded, "done");
		drive_end(&drive);
	}
	account_text(&account, "homeDir", "/home/user");
	drive = agent37_opened(upload("a"));
	asks(&drive, "PUT", AGENT37_FILES "%2Fhome%2Fuser%2Fa", "another home");
	drive_answer(&drive, 200, "{\"size\":0}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "UPLOAD_INCOMPLETE", UNKNOWN,
	      "must fire: an empty file instead of ours");
	drive_end(&drive);
	drive = agent37_opened(upload("a"));
	drive_answer(&drive, 200, "welcome to my program");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NO_FILE_SERVICE", UNKNOWN,
	      "must fire: nobody who stores files");
	drive_end(&drive);
	drive_start(&drive, upload(""));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no path");
	drive_end(&drive);
}

static void
down(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} rows[] = {{404, AGENT37_ERROR("file_not_found"), "FILE_NOT_FOUND"},
	            {400, AGENT37_ERROR("validation_error"), "INVALID_FILE_PATH"},
	            {401, AGENT37_EDGE("invalid_api_key"), "UNAUTHORIZED"},
	            {402, AGENT37_EDGE("instance_suspended"), "INSUFFICIENT_BALANCE"},
	            {403, AGENT37_EDGE("ip_not_allowed"), "IP_NOT_ALLOWED"},
	            {413, AGENT37_ERROR("payload_too_large"), "FILE_TOO_LARGE"}};
	const SbxFileContent *content;
	Drive drive;

	section("Agent37 download");
	agent37_account();
	drive = agent37_opened(download("/a"));
	is_agent37_key_kept(&drive, "download");
	is_number((int64_t) drive.op->request.max_response, 65536, "room for a refusal");
	drive_headed(&drive, 200, ATTACHED, "hello");
	content = drive.op->result;
	ok(drive.op->succeeded && content->length == 5, "byte for byte");
	drive_end(&drive);
	drive = agent37_opened(download("/a"));
	drive_headed(&drive, 200, "Content-Type: text/html\r\n", "hello");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "NO_FILE_SERVICE", UNKNOWN,
	      "must fire: a page is no file");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = agent37_opened(download("/a"));
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code, UNKNOWN, "%d %s",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
	drive = agent37_opened(download("/a"));
	for (int i = 0; i < 200 && drive.want != SBX_OP_WANT_NOTHING; i++)
	{
		drive_answer(&drive, 502, AGENT37_EDGE("upstream_unreachable"));
		if (i == 0)
			ok(drive.want == SBX_OP_WANT_PAUSE, "its program starts later: again");
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
	}
	fails(&drive, SBX_PHASE_REMOTE, 502, "NO_FILE_SERVICE", UNKNOWN,
	      "but not for ever");
	drive_end(&drive);
	drive = agent37_opened(download("/a"));
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	fails(&drive, SBX_PHASE_RECEIVE, 0, "FILE_TOO_LARGE", UNKNOWN, "too large");
	drive_end(&drive);
}

/* Nothing at the address, as the edge says it, and as a program of the template's may. */
static void
nobody(void)
{
	static const char *const answers[] = {AGENT37_EDGE("not_found"), "<html>", ""};
	static const struct
	{
		int status;
		const char *body;
		const char *code;
	} looks[] = {{404, AGENT37_ERROR("not_found"), "SANDBOX_GONE"},
	             {200, AGENT37_DTO("running"), "NO_FILE_SERVICE"},
	             {503, "", "NO_FILE_SERVICE"}};

	section("Agent37 files, nobody there");
	for (size_t i = 0; i < 9; i++)
	{
		Drive drive;

		agent37_account();
		drive = agent37_opened(i % 2 == 0 ? download("/a") : upload("/a"));
		drive_answer(&drive, 404, answers[i / 3]);
		asks(&drive, "GET", AGENT37_INSTANCE, "\"%s\": is the instance there?",
		     answers[i / 3]);
		drive_answer(&drive, looks[i % 3].status, looks[i % 3].body);
		fails(&drive, SBX_PHASE_REMOTE, 404, looks[i % 3].code, UNKNOWN,
		      "\"%s\", then %d", answers[i / 3], looks[i % 3].status);
		drive_end(&drive);
	}
}

void
test_agent37_files(void)
{
	addresses();
	states();
	up();
	down();
	nobody();
}
