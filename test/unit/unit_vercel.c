/*
 * unit_vercel.c
 *		What the tests of the Vercel adapter share.
 */
#include "unit.h"

const SbxTarget vercel_target = {.sandbox_id = NAME, .unique_name = NAME};

const SbxAccount *
vercel_account(void)
{
	memset(&account, 0, sizeof(account));
	account.fields = sbx_kind_vercel.settings;
	account.credentials[0] = "secret";
	account.credentials[1] = "team_1";
	account.credentials[2] = "prj_1";
	account.account.settings = account.settings;
	account.account.credentials = account.credentials;
	return &account.account;
}

Drive
vercel_opened(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	return drive;
}

Drive
vercel_ran(const SbxRunInput *input, const char *lines, size_t piece, int status)
{
	Drive drive = vercel_opened(
	    sbx_kind_vercel.run_script(vercel_account(), &vercel_target, input));

	drive_feed(&drive, lines, strlen(lines), piece);
	if (status == 0)
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	else
		drive_answer(&drive, status, "");
	return drive;
}
