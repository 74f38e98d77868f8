/*
 * unit_freestyle.c
 *		What the tests of the Freestyle adapter share.
 */
#include "unit.h"

const SbxTarget freestyle_target = {.sandbox_id = FREESTYLE_ID};

const SbxAccount *
freestyle_account(void)
{
	memset(&account, 0, sizeof(account));
	account.fields = sbx_kind_freestyle.settings;
	account.credentials[0] = "api-key";
	account.account.settings = account.settings;
	account.account.credentials = account.credentials;
	return &account.account;
}

Drive
freestyle_creating(void)
{
	static const SbxPair labels[] = {{"sbx-router-id", NAME}};
	SbxLaunchInput input = plain_input();
	Drive drive;

	input.labels = labels;
	input.label_count = 1;
	drive_start(&drive, sbx_kind_freestyle.launch(freestyle_account(), &input));
	return drive;
}

Drive
freestyle_opened(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	drive_answer(&drive, 200, FREESTYLE_DTO("running"));
	return drive;
}

Drive
freestyle_running(const char *command)
{
	SbxRunInput input = plain_run(command);

	return freestyle_opened(
	    sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target, &input));
}

void
is_freestyle_key_kept(const Drive *drive, const char *name)
{
	ok(drive->want == SBX_OP_WANT_HTTP &&
	       strncmp(drive->op->request.url, FREESTYLE_API "/v5/",
	               strlen(FREESTYLE_API "/v5/")) == 0,
	   "%s: to the provider", name);
	is_text(sent_header(drive->op, "Authorization"), "Bearer api-key", "%s: bearer",
	        name);
}
