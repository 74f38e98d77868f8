/*
 * test_vercel_launch.c
 *		What a refused create of Vercel's proves, row by row, and what is never sent.
 */
#include <stdlib.h>

#include "unit.h"

#define CREATE       VERCEL_API "/v3/sandboxes?teamId=team_1"
#define ERROR(words) "{\"error\":{\"code\":\"x\",\"message\":\"" words "\"}}"

static Drive
launching(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	drive_start(&drive, sbx_kind_vercel.launch(vercel_account(), &input));
	return drive;
}

static void
refusals(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
		SbxAllocation allocation;
	} rows[] = {
	    {400, ERROR("bad ports"), "BAD_REQUEST", SBX_ALLOCATION_NONE},
	    {401, "{}", "UNAUTHORIZED", SBX_ALLOCATION_NONE},
	    {402, "{}", "CAPACITY", SBX_ALLOCATION_NONE},
	    {403, "{}", "FORBIDDEN", SBX_ALLOCATION_NONE},
	    {404, "{}", "PROJECT_NOT_FOUND", SBX_ALLOCATION_NONE},
	    {410, "{}", "SNAPSHOT_NOT_FOUND", SBX_ALLOCATION_NONE},
	    {422, "{}", "BAD_REQUEST", SBX_ALLOCATION_NONE},
	    {429, "{}", "CAPACITY", SBX_ALLOCATION_NONE},
	    {429, "{\"error\":{\"limit\":{}}}", "RATE_LIMITED", SBX_ALLOCATION_NONE},
	    {500, "{}", NULL, SBX_ALLOCATION_UNKNOWN},
	    {502, "", NULL, SBX_ALLOCATION_UNKNOWN},
	    {408, "", NULL, SBX_ALLOCATION_UNKNOWN},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = launching();

		asks(&drive, "POST", CREATE, "row %zu", i);
		ok(!drive.op->request.repeatable, "it is delivered once");
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "status %d, row %zu", rows[i].status, i);
		drive_end(&drive);
	}
}

static void
name_taken(void)
{
	static const struct
	{
		int status;
		const char *body;
		SbxAllocation allocation;
		const char *what;
	} looks[] = {
	    {404, "{}", SBX_ALLOCATION_UNKNOWN, "not there"},
	    {500, "", SBX_ALLOCATION_UNKNOWN, "trouble"},
	    {200, "{\"sandbox\":{\"name\":\"" NAME "\"}}", SBX_ALLOCATION_NONE,
	     "a stranger's"},
	};
	Drive drive = launching();

	drive_answer(&drive, 400, ERROR("A sandbox with the name 'x' already exists."));
	asks(&drive, "GET", VERCEL_SANDBOX, "must fire: what has our name is looked at");
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	ok(drive.op->succeeded, "an earlier delivery of this launch has made it");
	is_text(drive.op->sandbox_id, NAME, "and it is ours");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++)
	{
		drive = launching();
		drive_answer(&drive, 400, ERROR("x already exists"));
		drive_answer(&drive, looks[i].status, looks[i].body);
		fails(&drive, SBX_PHASE_REMOTE, 400, "NAME_CONFLICT", looks[i].allocation,
		      "must not fire: %s", looks[i].what);
		is_text(drive.op->sandbox_id, "", "nothing is taken");
		drive_end(&drive);
	}
}

static void
never_sent(void)
{
	static char long_value[258];
	static const SbxPair six[] = {{"a", ""}, {"b", ""}, {"c", ""},
	                              {"d", ""}, {"e", ""}, {"f", ""}};
	static const SbxPair colon = {"a:b", "v"};
	SbxPair large = {"a", long_value};
	SbxLaunchInput input = plain_input();
	Drive drive;

	memset(long_value, 'x', 257);
	for (int i = 0; i < 6; i++)
	{
		input = plain_input();
		if (i < 2)
			input.labels = six, input.label_count = i == 0 ? 6 : 5;
		else if (i < 4)
		{
			long_value[256] = i == 2 ? 'x' : '\0';
			input.labels = &large, input.label_count = 1;
		}
		else if (i == 4)
			input.labels = &colon, input.label_count = 1;
		else
			input.unique_name = "other_0123";
		drive_start(&drive, sbx_kind_vercel.launch(vercel_account(), &input));
		if (i == 1 || i == 3)
			ok(drive.want == SBX_OP_WANT_HTTP, "must not fire: input %d", i);
		else
			fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
			      "must fire: input %d is not sent", i);
		drive_end(&drive);
	}
}

static void
name_too_long(void)
{
	static char long_name[258];
	SbxPair name = {"sbx-router-name", long_name};
	SbxLaunchInput input = plain_input();
	Drive drive;

	memset(long_name, 'n', 257);
	input.labels = &name;
	input.label_count = 1;
	drive_start(&drive, sbx_kind_vercel.launch(vercel_account(), &input));
	ok(drive.want == SBX_OP_WANT_HTTP && strstr(drive.op->request.body, "nnn") == NULL,
	   "must fire: a name that no tag can hold is left out");
	drive_end(&drive);
	long_name[256] = '\0';
	drive_start(&drive, sbx_kind_vercel.launch(vercel_account(), &input));
	ok(drive.want == SBX_OP_WANT_HTTP && strstr(drive.op->request.body, "nnn") != NULL,
	   "must not fire: one that fits");
	drive_end(&drive);
}

void
test_vercel_launch(void)
{
	section("Vercel launch");
	refusals();
	name_taken();
	never_sent();
	name_too_long();
}
