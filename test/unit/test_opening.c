/*
 * test_opening.c
 *		Whoever runs a script or moves a file has a look at the sandbox before.  To look
 *		again does no harm, so a moment of trouble must not fail what has not even begun.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

typedef struct Opening
{
	const char *name;
	const SbxProviderKind *kind;
	const SbxAccount *(*account)(void);
	const SbxTarget *target;
	const char *runs;    /* what a look says then */
	const char *refused; /* its code for 401 */
} Opening;

static const SbxAccount *
daytona_account(void)
{
	return account_reset(&account);
}

static Drive
opening(const Opening *row, bool upload)
{
	const SbxUploadInput input = {
	    .path = "/tmp/a", .bytes = "x", .length = 1, .boundary = "b"};
	const SbxAccount *whose = row->account();
	Drive drive;

	drive_start(&drive, upload ? row->kind->upload(whose, row->target, &input)
	                           : row->kind->download(whose, row->target, "/tmp/a", 9));
	return drive;
}

static bool
looks(const Drive *drive, const char *url)
{
	return drive->want == SBX_OP_WANT_HTTP &&
	       strcmp(drive->op->request.url, url) == 0 &&
	       strcmp(drive->op->request.method, "GET") == 0;
}

static void
trouble_passes(const Opening *row, bool upload, const char *url)
{
	Drive drive = opening(row, upload);

	drive_answer(&drive, 503, "");
	ok(drive.want == SBX_OP_WANT_PAUSE, "%s: must fire: 503 is waited for", row->name);
	drive_pause_over(&drive);
	ok(looks(&drive, url), "%s: and looked again", row->name);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	ok(drive.want == SBX_OP_WANT_PAUSE, "%s: must fire: so is an answer that is lost",
	   row->name);
	drive_pause_over(&drive);
	drive_answer(&drive, 200, row->runs);
	ok(drive.want == SBX_OP_WANT_HTTP && !looks(&drive, url), "%s: then it goes on",
	   row->name);
	drive_expire(&drive);
	is_number(drive.op->failure.http_status, 0, "%s: and that trouble is forgotten",
	          row->name);
	drive_end(&drive);
}

static void
trouble_stays(const Opening *row, bool upload)
{
	Drive drive = opening(row, upload);
	int looked = 0;

	while (drive.want == SBX_OP_WANT_HTTP && looked < 100)
	{
		drive_answer(&drive, 503, "");
		looked++;
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
	}
	is_number(looked, 8, "%s: must not fire: not for ever", row->name);
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, SBX_ALLOCATION_UNKNOWN,
	      "%s: and fails with its reason", row->name);
	drive_end(&drive);
}

static void
others(const Opening *row, bool upload)
{
	Drive drive = opening(row, upload);

	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, row->refused, SBX_ALLOCATION_UNKNOWN,
	      "%s: must not fire: a refusal", row->name);
	drive_end(&drive);
	drive = opening(row, upload);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "%s: must not fire: one that took all of its time", row->name);
	drive_end(&drive);
}

void
test_opening(void)
{
	static const SbxTarget daytona = {.sandbox_id = ID};
	const Opening rows[] = {
	    {"daytona", &sbx_kind_daytona, daytona_account, &daytona, DTO("started"),
	     "UNAUTHORIZED"},
	    {"e2b", &sbx_kind_e2b, e2b_account, &e2b_target, E2B_DTO("running"),
	     "UNAUTHORIZED"},
	    {"vercel", &sbx_kind_vercel, vercel_account, &vercel_target,
	     VERCEL_DTO("running"), "UNAUTHORIZED"},
	    {"agent37", &sbx_kind_agent37, agent37_account, &agent37_target,
	     AGENT37_DTO("running"), "UNAUTHORIZED"},
	    {"freestyle", &sbx_kind_freestyle, freestyle_account, &freestyle_target,
	     FREESTYLE_DTO("running"), "UNAUTHORIZED"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (int upload = 0; upload < 2; upload++)
		{
			Drive drive = opening(&rows[i], upload);
			char *url = strdup(drive.op->request.url);

			drive_end(&drive);
			section(upload ? "before an upload" : "before a download");
			trouble_passes(&rows[i], upload, url);
			trouble_stays(&rows[i], upload);
			others(&rows[i], upload);
			free(url);
		}
	}
}
