/*
 * test_vercel_destroy.c
 *		Deleting Vercel sandboxes: whose one is, and when it is really gone.
 */
#include <stdlib.h>

#include "unit.h"

#define DELETE_URL VERCEL_SANDBOX "&deleteOrphanSnapshots=true"

/* A sandbox with a time of creation and tags of its own. */
#define SEEN(created, tags)                                                            \
	"{\"sandbox\":{\"name\":\"" NAME "\",\"status\":\"running\"" created tags "}}"
#define MADE(ms) ",\"createdAt\":" ms
#define OURS     ",\"tags\":{\"sbx-router-id\":\"" NAME "\"}"
#define LAUNCH(text)                                                                   \
	",\"tags\":{\"sbx-router-id\":\"" NAME "\",\"sbx-router-launch\":\"" text "\"}"

static Drive
destroying(const char *sandbox_id, const char *unique_name, const char *token)
{
	SbxTarget target = {sandbox_id, unique_name, token};
	Drive drive;

	drive_start(&drive, sbx_kind_vercel.destroy(vercel_account(), &target, 0));
	return drive;
}

static void
is_destroyed(const Drive *drive, SbxDestroyResult expected, const char *name)
{
	if (ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded, "%s: is success",
	       name))
		is_number(*(const SbxDestroyResult *) drive->op->result, expected, "%s: result",
		          name);
}

/* Of what is looked at first. */
static void
owners(void)
{
	static const struct
	{
		const char *token;
		const char *seen;
		const char *what;
		bool is_ours;
		bool is_stranger;
	} rows[] = {
	    {NULL, SEEN(MADE("1"), OURS), "ours", true, false},
	    {"t1", SEEN(MADE("1"), LAUNCH("t1")), "of this launch", true, false},
	    {"t1", SEEN(MADE("1"), LAUNCH("t2")), "of another launch", false, false},
	    {"t1", SEEN(MADE("1"), OURS), "of a launch without a token", false, false},
	    {NULL, SEEN(MADE("1"), LAUNCH("t1")), "of one with a token", false, false},
	    {NULL, SEEN(MADE("1"), ""), "without tags", false, true},
	    {NULL, SEEN(MADE("1"), ",\"tags\":[]"), "tags that are none", false, true},
	    {NULL, SEEN(MADE("1"), ",\"tags\":{\"sbx-router-id\":\"sbx_1\"}"),
	     "with another id", false, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = destroying(NAME, NAME, rows[i].token);

		asks(&drive, "GET", VERCEL_SANDBOX, "%s: looked at first", rows[i].what);
		drive_answer(&drive, 200, rows[i].seen);
		if (rows[i].is_ours)
			asks(&drive, "DELETE", DELETE_URL, "must fire: %s", rows[i].what);
		else if (rows[i].is_stranger)
			fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", SBX_ALLOCATION_UNKNOWN,
			      "must not fire: %s", rows[i].what);
		else
			is_destroyed(&drive, SBX_DESTROY_WAS_GONE, rows[i].what);
		drive_end(&drive);
	}
}

/* Of what is looked at after the delete. */
static void
afterwards(void)
{
	static const struct
	{
		const char *unique_name;
		const char *seen;
		const char *what;
		bool is_gone;
	} rows[] = {
	    {NAME, SEEN(MADE("1"), OURS), "still there", false},
	    {NAME, SEEN(MADE("1"), ""), "still there, without its tags", false},
	    {NAME, SEEN(MADE("2"), OURS), "made again by a second delivery of its create",
	     false},
	    {NAME, SEEN("", OURS), "still there, without a time", false},
	    {NULL, SEEN(MADE("1"), ""), "still there, known by its name alone", false},
	    {NAME, SEEN(MADE("2"), LAUNCH("t2")), "another launch has the name", true},
	    {NAME, SEEN(MADE("2"), ""), "somebody else has the name", true},
	    {NULL, SEEN(MADE("2"), OURS), "another one, known by its name alone", true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = destroying(NAME, rows[i].unique_name, NULL);

		drive_answer(&drive, 200, SEEN(MADE("1"), OURS));
		drive_answer(&drive, 200, "{}");
		asks(&drive, "GET", VERCEL_SANDBOX, "%s: looked at again", rows[i].what);
		drive_answer(&drive, 200, rows[i].seen);
		if (rows[i].is_gone)
			is_destroyed(&drive, SBX_DESTROY_DONE, rows[i].what);
		else
		{
			pauses(&drive, 200, "must not fire: %s", rows[i].what);
			drive_pause_over(&drive);
			asks(&drive, "DELETE", DELETE_URL, "%s: deleted again", rows[i].what);
		}
		drive_end(&drive);
	}
}

/* A create may be under way: that nothing is there proves nothing, until time is over. */
static void
unknown_launches(void)
{
	Drive drive = destroying(NULL, NAME, NULL);

	for (int i = 0; i < 20; i++)
	{
		drive_answer(&drive, 404, i % 2 == 0 ? "{}" : "<html>");
		drive_pause_over(&drive);
	}
	asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: not there yet");
	drive_answer(&drive, 200, SEEN(MADE("1"), OURS));
	asks(&drive, "DELETE", DELETE_URL, "must fire: it appears");
	drive_answer(&drive, 200, "{}");
	drive_answer(&drive, 404, "{}");
	is_destroyed(&drive, SBX_DESTROY_DONE, "then it is gone");
	drive_end(&drive);
	drive = destroying(NULL, NAME, NULL);
	drive_answer(&drive, 404, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 404, "NOT_FOUND_YET", SBX_ALLOCATION_UNKNOWN,
	      "must fire: the time is over");
	drive_end(&drive);
	drive = destroying(NAME, NAME, NULL);
	drive_answer(&drive, 404, "{}");
	is_destroyed(&drive, SBX_DESTROY_WAS_GONE, "one that the provider has told of");
	drive_end(&drive);
}

static void
answers(void)
{
	static const struct
	{
		int status;
		bool again;
		SbxDestroyResult then; /* what 404 says afterwards */
	} rows[] = {{200, true, SBX_DESTROY_DONE},      {404, true, SBX_DESTROY_WAS_GONE},
	            {410, true, SBX_DESTROY_WAS_GONE},  {409, true, SBX_DESTROY_WAS_GONE},
	            {422, true, SBX_DESTROY_WAS_GONE},  {429, true, SBX_DESTROY_WAS_GONE},
	            {500, true, SBX_DESTROY_DONE},      {502, true, SBX_DESTROY_DONE},
	            {400, false, SBX_DESTROY_WAS_GONE}, {401, false, SBX_DESTROY_WAS_GONE},
	            {403, false, SBX_DESTROY_WAS_GONE}, {307, false, SBX_DESTROY_WAS_GONE}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = destroying(NAME, NAME, NULL);

		drive_answer(&drive, 200, SEEN(MADE("1"), OURS));
		drive_answer(&drive, rows[i].status, "<html>");
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
		if (!rows[i].again)
			ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded &&
			       drive.op->failure.http_status == rows[i].status,
			   "must not fire: %d is a refusal", rows[i].status);
		else
		{
			asks(&drive, "GET", VERCEL_SANDBOX, "%d proves nothing", rows[i].status);
			drive_answer(&drive, 404, "{}");
			is_destroyed(&drive, rows[i].then, "what is there afterwards counts");
		}
		drive_end(&drive);
	}
}

/* Only what the router names is ever touched. */
static void
names(void)
{
	static const char *const rows[] = {"other",   "",      "sbx_a/b",  "sbx_..",
	                                   "sbx_a?x", "SBX_a", "sbx_a%2f", "sbx_\xc3\xa9"};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = destroying(rows[i], NULL, NULL);

		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "must fire: \"%s\"",
		      rows[i]);
		drive_end(&drive);
	}
}

void
test_vercel_destroy(void)
{
	section("Vercel destroy");
	owners();
	afterwards();
	unknown_launches();
	answers();
	names();
}
