/*
 * unit_agent37.c
 *		What the tests of the Agent37 adapter share.
 */
#include <stdio.h>

#include "unit.h"

const SbxTarget agent37_target = {.sandbox_id = AGENT37_ID};

const SbxAccount *
agent37_account(void)
{
	memset(&account, 0, sizeof(account));
	account.fields = sbx_kind_agent37.settings;
	account.credentials[0] = "api-key";
	account.account.settings = account.settings;
	account.account.credentials = account.credentials;
	return &account.account;
}

Drive
agent37_opened(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	drive_answer(&drive, 200, AGENT37_DTO("running"));
	return drive;
}

Drive
agent37_running(const SbxRunInput *input)
{
	Drive drive;

	drive_start(&drive,
	            sbx_kind_agent37.run_script(&account.account, &agent37_target, input));
	return drive;
}

/* Each plane takes the key in a header of its own. */
void
is_agent37_key_kept(const Drive *drive, const char *name)
{
	const SbxHttpRequest *request = &drive->op->request;
	bool is_hosting =
	    strncmp(request->url, AGENT37_API "/", strlen(AGENT37_API) + 1) == 0;
	bool is_instance = strncmp(request->url, AGENT37_FILES, strlen(AGENT37_FILES)) == 0;

	ok(is_hosting || is_instance, "%s: to an address of the provider", name);
	is_text(sent_header(drive->op, "Authorization"),
	        is_hosting ? "Bearer api-key" : NULL, "%s: bearer", name);
	is_text(sent_header(drive->op, "X-Agent37-Key"), is_instance ? "api-key" : NULL,
	        "%s: key", name);
}
