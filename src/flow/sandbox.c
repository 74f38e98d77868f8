/*
 * sandbox.c
 *		A sandbox that exists, and one operation on it.
 */
#include "flow/sandbox.h"

#include "flow/cleanup.h"
#include "flow/failure.h"
#include "observe/error.h"

void
sbx_sandbox_open(const char *id, SbxSandbox *sandbox)
{
	const SbxProvider *provider;

	sandbox->mapping = sbx_mapping_get(id);
	provider = sbx_registry_find(sandbox->mapping->provider_id);
	if (provider == NULL)
		ereport(ERROR, (errcode(SBX_ERRCODE_INVALID_REGISTRATION),
		                errmsg("provider \"%s\" is not registered",
		                       sandbox->mapping->provider_id)));
	sbx_session_access(provider, &sandbox->access);
	sandbox->kind = provider->kind;
	sandbox->target.sandbox_id = sandbox->mapping->provider_sandbox_id;
	sandbox->target.unique_name = id;
	sandbox->target.launch_token = sandbox->mapping->launch_token;
	sandbox->longest_script = false;
}

void
sbx_sandbox_check_supported(const SbxProviderKind *kind, bool supported,
                            const char *function)
{
	StringInfoData detail;

	if (supported)
		return;
	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "kind", kind->name);
	sbx_detail_text(&detail, "function", function);
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_OPERATION_UNSUPPORTED),
	         errmsg("provider kind \"%s\" does not support %s", kind->name, function),
	         errdetail_internal("%s", detail.data)));
}

/* A start may have made the sandbox anew, under another id. */
static void
follow(const SbxSandbox *sandbox, const SbxOp *op)
{
	SbxPending *pending = sbx_cleanup_find(sandbox->mapping->id);

	if (pending != NULL && op->sandbox_id[0] != '\0')
		sbx_cleanup_moved(pending, op->sandbox_id);
}

SbxOp *
sbx_sandbox_run(SbxSandbox *sandbox, SbxOp *op)
{
	sbx_session_hold(op, sandbox->access.credential);
	PG_TRY();
	{
		sbx_session_run(op);
	}
	PG_FINALLY();
	{
		follow(sandbox, op);
	}
	PG_END_TRY();
	if (!op->succeeded)
		sbx_failure_runtime(sandbox->access.provider->pool.id, sandbox->mapping->id, op,
		                    sandbox->longest_script);
	return op;
}

const char *
sbx_sandbox_state_name(SbxSandboxState state)
{
	switch (state)
	{
		case SBX_STATE_STARTING:
			return "starting";
		case SBX_STATE_STARTED:
			return "started";
		case SBX_STATE_STOPPING:
			return "stopping";
		case SBX_STATE_STOPPED:
			return "stopped";
		case SBX_STATE_FAILED:
			return "failed";
		case SBX_STATE_GONE:
			return "gone";
	}
	return NULL;
}
