/*
 * sbx_router.c
 *		Module entry: settings, nothing else.  Network and callbacks are set up at
 *		first use.
 */
#include "compat.h"

#include "flow/acquire.h"
#include "flow/progress.h"
#include "flow/secret.h"
#include "flow/session.h"
#include "miscadmin.h"
#include "store/credential.h"
#include "store/policy.h"
#include "utils/guc.h"

SBX_MODULE_MAGIC;

void _PG_init(void);

void
_PG_init(void)
{
	if (IsBinaryUpgrade)
		return;
	sbx_session_define_gucs();
	sbx_credential_define_gucs();
	sbx_policy_define_gucs();
	sbx_progress_define_gucs();
	sbx_acquire_define_gucs();
	sbx_secret_install_hook();
	MarkGUCPrefixReserved("sbx_router");
}
