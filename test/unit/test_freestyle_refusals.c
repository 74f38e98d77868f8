/*
 * test_freestyle_refusals.c
 *		What a refused create of a Freestyle machine proves about the allocation.
 *
 * The default is "unknown".  Each refusal that proves more stands here beside a
 * neighbour that looks alike and proves nothing.  Some prove it only together with what
 * has the slug then.
 */
#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MADE    SBX_ALLOCATION_MADE

/* --- rows that are the end ---------------------------------------------------- */

static const struct
{
	int status;
	const char *body;
	const char *code;
	SbxAllocation allocation;
} rows[] = {
    {401, FREESTYLE_ERROR("INVALID_API_KEY"), "UNAUTHORIZED", NONE},
    {401, FREESTYLE_ERROR("MISSING_CREDENTIALS"), "UNAUTHORIZED", NONE},
    {500, FREESTYLE_ERROR("INVALID_API_KEY"), NULL, UNKNOWN},
    {403, FREESTYLE_ERROR("ACCOUNT_BLOCKED"), "FORBIDDEN", NONE},
    {404, FREESTYLE_ERROR("NOT_FOUND"), "SNAPSHOT_NOT_FOUND", NONE},
    {404, FREESTYLE_ERROR("ROUTE_NOT_FOUND"), "ROUTE_NOT_FOUND", NONE},
    {404, "<html>", NULL, UNKNOWN},
    {404, "{\"message\":\"NOT_FOUND\"}", NULL, UNKNOWN},
    {404, "{\"code\":[\"NOT_FOUND\"]}", NULL, UNKNOWN},
    {500, FREESTYLE_ERROR("NOT_FOUND"), NULL, UNKNOWN},
    {429, FREESTYLE_ERROR("LIMIT_EXCEEDED"), "CAPACITY", NONE},
    {503, FREESTYLE_ERROR("LIMIT_EXCEEDED"), NULL, UNKNOWN},
    {429, FREESTYLE_ERROR("RATE_LIMITED"), "RATE_LIMITED", NONE},
    {429, "", "RATE_LIMITED", NONE},
    {503, FREESTYLE_ERROR("KEY_RESOLVER_UNAVAILABLE"), "KEY_RESOLVER_UNAVAILABLE",
     UNKNOWN},
    {500, FREESTYLE_ERROR("INTERNAL_ERROR"), NULL, UNKNOWN},
    {502, "<html>", NULL, UNKNOWN},
    {302, "", NULL, UNKNOWN},
    {418, FREESTYLE_ERROR("SOMETHING_NEW"), NULL, UNKNOWN},
};

static void
ends(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = freestyle_creating();

		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "%d %s", rows[i].status, rows[i].body);
		is_text(drive.op->sandbox_id, "", "no id");
		drive_end(&drive);
	}
}

/* --- rows that depend on what has the slug -------------------------------------- */

#define STRANGER                                                                       \
	"{\"id\":\"vm-2\",\"state\":\"running\",\"slug\":\"" FREESTYLE_SLUG                \
	"\",\"metadata\":{}}"

static const struct
{
	int status;
	const char *error;
	int look_status; /* of the look by the slug */
	const char *look;
	const char *code;
	SbxAllocation allocation;
} looks[] = {
    {400, "BAD_REQUEST", 404, FREESTYLE_GONE, "BAD_REQUEST", NONE},
    {400, "BAD_REQUEST", 200, FREESTYLE_DTO("running"), "BAD_REQUEST", MADE},
    {400, "BAD_REQUEST", 404, "<html>", "BAD_REQUEST", UNKNOWN},
    {400, "BAD_REQUEST", 503, "", "BAD_REQUEST", UNKNOWN},
    {422, "X", 404, FREESTYLE_GONE, "BAD_REQUEST", NONE},
    {409, "CONFLICT", 404, FREESTYLE_GONE, "CAPACITY", NONE},
    {409, "CONFLICT", 200, STRANGER, "NAME_CONFLICT", NONE},
    {409, "CONFLICT", 200, FREESTYLE_DTO("running"), "CONFLICT", MADE},
    {409, "CONFLICT", 401, FREESTYLE_ERROR("INVALID_API_KEY"), "CONFLICT", UNKNOWN},
    {409, "CONFLICT", 200, "{}", "CONFLICT", UNKNOWN},
    {400, "AGENT_UNSUPPORTED", 404, FREESTYLE_GONE, "AGENT_UNSUPPORTED", UNKNOWN},
    {500, "BACKGROUND_RESULT_UNSTORABLE", 404, FREESTYLE_GONE, "RESULT_UNSTORABLE",
     UNKNOWN},
    {500, "BACKGROUND_RESULT_UNSTORABLE", 200, STRANGER, "NAME_CONFLICT", UNKNOWN},
};

static void
looks_at_the_slug(void)
{
	char body[200];
	Drive drive;

	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
	{
		drive = freestyle_creating();
		strcpy(body, "{\"code\":\"");
		strcat(strcat(body, looks[i].error), "\"}");
		drive_answer(&drive, looks[i].status, body);
		asks(&drive, "GET", FREESTYLE_BY_SLUG, "%d %s: what has the slug?",
		     looks[i].status, looks[i].error);
		drive_answer(&drive, looks[i].look_status, looks[i].look);
		fails(&drive, SBX_PHASE_REMOTE, looks[i].status, looks[i].code,
		      looks[i].allocation, "%d %s, then %d", looks[i].status, looks[i].error,
		      looks[i].look_status);
		is_text(drive.op->sandbox_id, looks[i].allocation == MADE ? FREESTYLE_ID : "",
		        "its id, if it was made");
		drive_end(&drive);
	}
	drive = freestyle_creating();
	drive_answer(&drive, 500, FREESTYLE_ERROR("BACKGROUND_RESULT_UNSTORABLE"));
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded,
	   "work that is done is a success, once it is found");
	drive_end(&drive);
}

void
test_freestyle_refusals(void)
{
	Drive drive;

	section("Freestyle create, refused");
	ends();
	looks_at_the_slug();
	drive = freestyle_creating();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, NONE, "must not fire: it never left");
	drive_end(&drive);
	drive = freestyle_creating();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: no answer");
	drive_end(&drive);
	drive = freestyle_creating();
	drive_answer(&drive, 200, "{\"id\":\"../x\",\"slug\":\"" FREESTYLE_SLUG "\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "an id that is none");
	drive_end(&drive);
	drive = freestyle_creating();
	drive_answer(&drive, 200, "{\"id\":\"vm-1\",\"slug\":\"another\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "another slug");
	drive_end(&drive);
	drive = freestyle_creating();
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "no answer of the provider");
	drive_end(&drive);
}
