/*
 * test_freestyle_background.c
 *		Answers of Freestyle's that come later: to every call, and what asking for them
 *		can meet.
 */
#include <stdio.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN

/* A create that goes on without us, and whose answer is asked for. */
static Drive
polling(void)
{
	Drive drive = freestyle_creating();

	drive_answer(&drive, 202, FREESTYLE_LATER);
	drive_pause_over(&drive);
	return drive;
}

/* --- where the answer is --------------------------------------------------------- */

static const struct
{
	const char *name;
	const char *headers;
	const char *body;
	const char *url; /* that is asked; NULL = none */
	const char *code;
} locators[] = {
    {"address", "", "{\"resultUrl\":\"/v5/background-requests/ri-1\"}",
     FREESTYLE_RESULT, NULL},
    {"header", FREESTYLE_OF, "", FREESTYLE_RESULT, NULL},
    {"id", "", "{\"requestId\":\"ri-1\"}", FREESTYLE_RESULT, NULL},
    {"the header before the id", FREESTYLE_OF, "{\"requestId\":\"ri-2\"}",
     FREESTYLE_RESULT, NULL},
    {"the address before both", FREESTYLE_OF,
     "{\"requestId\":\"ri-2\",\"resultUrl\":\"/v5/background-requests/ri-3\"}",
     FREESTYLE_API "/v5/background-requests/ri-3", NULL},
    {"our own address, whole", "",
     "{\"resultUrl\":\"" FREESTYLE_API "/v5/background-requests/ri-1\"}",
     FREESTYLE_RESULT, NULL},
    {"an id that needs encoding", "", "{\"requestId\":\"a/b?c\"}",
     FREESTYLE_API "/v5/background-requests/a%2Fb%3Fc", NULL},
    {"null address", FREESTYLE_OF, "{\"resultUrl\":null}", FREESTYLE_RESULT, NULL},
    {"another host", FREESTYLE_OF,
     "{\"resultUrl\":\"https://evil.example/v5/background-requests/ri-1\"}", NULL,
     "RESULT_URL_REFUSED"},
    {"a host that begins like ours", FREESTYLE_OF,
     "{\"resultUrl\":\"" FREESTYLE_API ".evil.example/v5/background-requests/ri-1\"}",
     NULL, "RESULT_URL_REFUSED"},
    {"a user before a host", FREESTYLE_OF,
     "{\"resultUrl\":\"" FREESTYLE_API "@evil.example/v5/background-requests/ri-1\"}",
     NULL, "RESULT_URL_REFUSED"},
    {"two slashes", FREESTYLE_OF,
     "{\"resultUrl\":\"//evil.example/v5/background-requests/ri-1\"}", NULL,
     "RESULT_URL_REFUSED"},
    {"another path", FREESTYLE_OF, "{\"resultUrl\":\"/v5/vms/vm-1\"}", NULL,
     "RESULT_URL_REFUSED"},
    {"a path that climbs", FREESTYLE_OF,
     "{\"resultUrl\":\"/v5/background-requests/../vms\"}", NULL, "RESULT_URL_REFUSED"},
    {"a query", FREESTYLE_OF, "{\"resultUrl\":\"/v5/background-requests/ri-1?x=1\"}",
     NULL, "RESULT_URL_REFUSED"},
    {"a fragment", FREESTYLE_OF, "{\"resultUrl\":\"/v5/background-requests/ri-1#x\"}",
     NULL, "RESULT_URL_REFUSED"},
    {"no id in it", FREESTYLE_OF, "{\"resultUrl\":\"/v5/background-requests/\"}", NULL,
     "RESULT_URL_REFUSED"},
    {"nothing", "", "{}", NULL, "RESULT_URL_MISSING"},
    {"a page", "", "<html>", NULL, "RESULT_URL_MISSING"},
    {"an empty id", "", "{\"requestId\":\"\"}", NULL, "RESULT_URL_MISSING"},
    {"a dot name", "", "{\"requestId\":\"..\"}", NULL, "RESULT_URL_MISSING"},
};

static void
where(void)
{
	for (size_t i = 0; i < sizeof(locators) / sizeof(locators[0]); i++)
	{
		Drive drive = freestyle_creating();

		drive_headed(&drive, 202, locators[i].headers, locators[i].body);
		if (locators[i].url == NULL)
		{
			fails(&drive, SBX_PHASE_PROTOCOL, 0, locators[i].code, UNKNOWN,
			      "%s: nothing is asked", locators[i].name);
			ok(drive.op->failure.request_sent, "%s: it goes on", locators[i].name);
		}
		else
		{
			pauses(&drive, 500, "%s: a pause", locators[i].name);
			drive_pause_over(&drive);
			asks(&drive, "GET", locators[i].url, "%s: is asked for", locators[i].name);
			is_freestyle_key_kept(&drive, locators[i].name);
			is_text(sent_header(drive.op, "X-Freestyle-Background-After-Secs"), NULL,
			        "%s: and answered at once", locators[i].name);
		}
		drive_end(&drive);
	}
}

static void
below_a_base(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	freestyle_account();
	account_text(&account, "apiUrl", "http://localhost:8080/base");
	drive_start(&drive, sbx_kind_freestyle.launch(&account.account, &input));
	drive_answer(
	    &drive, 202,
	    "{\"resultUrl\":\"http://localhost:8080/v5/background-requests/ri-1\"}");
	drive_pause_over(&drive);
	asks(&drive, "GET", "http://localhost:8080/base/v5/background-requests/ri-1",
	     "a path follows the address that is set");
	drive_end(&drive);
}

/* --- what asking meets ------------------------------------------------------------- */

static void
until_it_is_there(void)
{
	Drive drive = polling();

	drive_answer(&drive, 202, "{\"requestId\":\"ri-1\"}");
	pauses(&drive, 750, "it runs still: asked again, later");
	drive_pause_over(&drive);
	drive_headed(&drive, 202, FREESTYLE_OF, "");
	pauses(&drive, 1125, "and later");
	for (int i = 0; i < 5; i++)
	{
		drive_pause_over(&drive);
		drive_answer(&drive, 202, "{\"resultUrl\":\"https://evil.example/x\"}");
	}
	pauses(&drive, 2000, "but no later than that");
	drive_pause_over(&drive);
	asks(&drive, "GET", FREESTYLE_RESULT, "at the same place");
	drive_headed(&drive, 201, FREESTYLE_OF, FREESTYLE_DTO("running"));
	ok(drive.op->succeeded, "the real answer");
	is_text(drive.op->sandbox_id, FREESTYLE_ID, "with its id");
	drive_end(&drive);
}

static const struct
{
	const char *name;
	int status;
	const char *headers;
	const char *body;
	const char *code;    /* of the failure */
	SbxPhase phase;      /* NONE = it is asked for again */
	int reported_status; /* of the failure */
	SbxAllocation allocation;
} answers[] = {
    {"its own 503", 503, FREESTYLE_OF, FREESTYLE_ERROR("UNAVAILABLE"), NULL,
     SBX_PHASE_REMOTE, 503, UNKNOWN},
    {"503 of the asking", 503, "", FREESTYLE_ERROR("UNAVAILABLE"), NULL, SBX_PHASE_NONE,
     0, UNKNOWN},
    {"its own 429", 429, FREESTYLE_OF, FREESTYLE_ERROR("LIMIT_EXCEEDED"), "CAPACITY",
     SBX_PHASE_REMOTE, 429, SBX_ALLOCATION_NONE},
    {"429 of the asking", 429, "", FREESTYLE_ERROR("LIMIT_EXCEEDED"), NULL,
     SBX_PHASE_NONE, 0, UNKNOWN},
    {"408 of the asking", 408, "", "", NULL, SBX_PHASE_NONE, 0, UNKNOWN},
    {"502 of the asking", 502, "", "<html>", NULL, SBX_PHASE_NONE, 0, UNKNOWN},
    {"504 of the asking", 504, "", "", NULL, SBX_PHASE_NONE, 0, UNKNOWN},
    {"its own 404", 404, FREESTYLE_OF, FREESTYLE_GONE, "SNAPSHOT_NOT_FOUND",
     SBX_PHASE_REMOTE, 404, SBX_ALLOCATION_NONE},
    {"404 of the asking", 404, "", FREESTYLE_GONE, "RESULT_LOST", SBX_PHASE_PROTOCOL, 0,
     UNKNOWN},
    {"its own 401", 401, FREESTYLE_OF, FREESTYLE_ERROR("INVALID_API_KEY"),
     "UNAUTHORIZED", SBX_PHASE_REMOTE, 401, SBX_ALLOCATION_NONE},
    {"401 of the asking", 401, "", FREESTYLE_ERROR("INVALID_API_KEY"), "RESULT_LOST",
     SBX_PHASE_PROTOCOL, 0, UNKNOWN},
    {"403 of the asking", 403, "", "{}", "RESULT_LOST", SBX_PHASE_PROTOCOL, 0, UNKNOWN},
    {"its own 500", 500, FREESTYLE_OF, FREESTYLE_ERROR("INTERNAL_ERROR"), NULL,
     SBX_PHASE_REMOTE, 500, UNKNOWN},
    {"500 of the asking", 500, "", FREESTYLE_ERROR("INTERNAL_ERROR"), "RESULT_LOST",
     SBX_PHASE_PROTOCOL, 0, UNKNOWN},
    {"a redirect", 307, "Location: https://evil.example/\r\n", "", "RESULT_LOST",
     SBX_PHASE_PROTOCOL, 0, UNKNOWN},
};

static void
what_it_meets(void)
{
	Drive drive;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
	{
		drive = polling();
		drive_headed(&drive, answers[i].status, answers[i].headers, answers[i].body);
		if (answers[i].phase == SBX_PHASE_NONE)
		{
			pauses(&drive, 750, "%s: asked again", answers[i].name);
			drive_pause_over(&drive);
			drive_headed(&drive, 200, FREESTYLE_OF, FREESTYLE_DTO("running"));
			ok(drive.op->succeeded, "%s: it is there after all", answers[i].name);
		}
		else
			fails(&drive, answers[i].phase, answers[i].reported_status, answers[i].code,
			      answers[i].allocation, "%s", answers[i].name);
		drive_end(&drive);
	}
	drive = polling();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	pauses(&drive, 750, "no connection: asked again");
	drive_expire(&drive);
	ok(!drive.op->succeeded && drive.op->failure.allocation == UNKNOWN &&
	       drive.op->failure.request_sent && drive.op->failure.timed_out,
	   "time is over: unknown, and it was sent");
	drive_end(&drive);
}

/* --- every call ---------------------------------------------------------------------- */

static SbxOp *
make_get(void)
{
	return sbx_kind_freestyle.get(freestyle_account(), &freestyle_target);
}

static SbxOp *
make_find(void)
{
	return sbx_kind_freestyle.find(freestyle_account(), NULL, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_freestyle.start(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
make_stop(void)
{
	return sbx_kind_freestyle.stop(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("x");

	return sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target,
	                                     &input);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {
	    .path = "/tmp/a", .bytes = "hello", .length = 5, .boundary = "x"};

	return sbx_kind_freestyle.upload(freestyle_account(), &freestyle_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_freestyle.download(freestyle_account(), &freestyle_target, "/tmp/a",
	                                   100);
}

static SbxOp *
make_destroy(void)
{
	return sbx_kind_freestyle.destroy(freestyle_account(), &freestyle_target, 0);
}

typedef struct Course
{
	const char *name;
	SbxOp *(*make)(void);
	struct
	{
		int status;
		const char *body;
	} answers[4];
} Course;

/* Each of these answers comes later. */
static const Course courses[] = {
    {"get", make_get, {{200, FREESTYLE_DTO("running")}}},
    {"find", make_find, {{200, FREESTYLE_LIST(FREESTYLE_DTO("running"), "1")}}},
    {"start",
     make_start,
     {{200, FREESTYLE_DTO("paused")},
      {200, FREESTYLE_DTO("starting")},
      {200, FREESTYLE_DTO("running")}}},
    {"stop",
     make_stop,
     {{200, FREESTYLE_DTO("running")},
      {200, FREESTYLE_DTO("pausing")},
      {200, FREESTYLE_DTO("paused")}}},
    {"run",
     make_run,
     {{200, FREESTYLE_DTO("running")}, {200, "{\"statusCode\":0,\"stdout\":\"a\"}"}}},
    {"upload",
     make_upload,
     {{200, FREESTYLE_DTO("running")}, {204, ""}, {200, "{\"size\":5}"}}},
    {"download", make_download, {{200, FREESTYLE_DTO("running")}, {200, "hello"}}},
    {"destroy", make_destroy, {{204, ""}, {404, FREESTYLE_GONE}}},
};

static void
every_call(void)
{
	for (size_t i = 0; i < sizeof(courses) / sizeof(courses[0]); i++)
	{
		const Course *course = &courses[i];
		int polls = 0;
		Drive drive;

		drive_start(&drive, course->make());
		for (int j = 0; j < 4 && course->answers[j].status != 0; j++)
		{
			while (drive.want == SBX_OP_WANT_PAUSE)
				drive_pause_over(&drive);
			drive_answer(&drive, 202, FREESTYLE_LATER);
			drive_pause_over(&drive);
			polls += strcmp(drive.op->request.url, FREESTYLE_RESULT) == 0;
			drive_headed(&drive, course->answers[j].status, FREESTYLE_OF,
			             course->answers[j].body);
		}
		ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded,
		   "%s: all its answers can come later (%d)", course->name, polls);
		drive_end(&drive);
	}
}

void
test_freestyle_background(void)
{
	section("Freestyle, later");
	where();
	below_a_base();
	until_it_is_there();
	what_it_meets();
	every_call();
}
