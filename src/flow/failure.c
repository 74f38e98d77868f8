/*
 * failure.c
 *		Failures of operations as errors of SQL.
 *
 * Only facts of closed sets go out: phase, HTTP status, the adapter's own codes.
 */
#include "flow/failure.h"

#include "observe/error.h"

static char *
hint_for_phase(const SbxFailure *failure)
{
	switch (failure->phase)
	{
		case SBX_PHASE_NONE:
			return _("The request could not be made for this provider.");
		case SBX_PHASE_CONNECT:
			if (failure->denied)
				return _("The address is not allowed.  The settings "
				         "\"sbx_router.allow_private_addresses\" and "
				         "\"sbx_router.allow_http\" say which are.");
			return failure->timed_out ? _("The provider could not be reached in time.")
			                          : _("The provider could not be reached.");
		case SBX_PHASE_TLS:
			return _("No secure connection to the provider could be made.  The setting "
			         "\"sbx_router.ca_file\" names other CA certificates.");
		case SBX_PHASE_SEND:
			return _("The connection broke while the request was sent.");
		case SBX_PHASE_RECEIVE:
			return failure->timed_out
			           ? _("The provider did not answer in time.")
			           : _("The connection broke before the answer was complete.");
		case SBX_PHASE_PROTOCOL:
			return _("The provider's answer is not what its interface promises.");
		case SBX_PHASE_REMOTE:
			break;
	}
	return failure->timed_out ? _("The provider did not finish in time.")
	                          : _("The provider reported a failure.");
}

static char *
hint_for_timeout(const char *code)
{
	if (code != NULL && strcmp(code, "TIMEOUT") == 0)
		return _("The script was killed.  Use the argument \"timeout\" to give it more "
		         "time.");
	if (code != NULL && strcmp(code, "TIMEOUT_NOT_KILLED") == 0)
		return _("The script may still be running.");
	return NULL;
}

/*
 * Advice for people: one or two sentences made from the sanitised facts.  Never
 * NULL.
 */
static char *
failure_hint(const SbxFailure *failure)
{
	char *hint = hint_for_timeout(failure->provider_code);

	if (hint != NULL)
		return hint;
	hint = hint_for_phase(failure);

	if (failure->http_status != 0)
		hint = psprintf(_("%s  HTTP status: %d."), hint, failure->http_status);
	if (failure->provider_code != NULL)
		hint = psprintf(_("%s  Code: %s."), hint, failure->provider_code);
	return hint;
}

void
sbx_failure_launch(const char *provider_id, const SbxFailure *failure, const char *code)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "code", code);
	sbx_detail_text(&detail, "providerId", provider_id);
	sbx_detail_text(&detail, "allocation", sbx_allocation_name(failure->allocation));
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_PROVISIONING_FAILED),
	         errmsg("could not launch a sandbox at provider \"%s\"", provider_id),
	         errdetail_internal("%s", detail.data),
	         errhint("%s", failure_hint(failure))));
}

void
sbx_failure_exhausted(const char *attempts, int count, const SbxFailure *failure)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_raw(&detail, "attempts", psprintf("[%s]", attempts));
	sbx_detail_raw(&detail, "skipped", "{}");
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_ATTEMPTS_EXHAUSTED),
	         errmsg_plural("could not launch a sandbox in %d attempt",
	                       "could not launch a sandbox in %d attempts", count, count),
	         errdetail_internal("%s", detail.data),
	         errhint("%s", failure_hint(failure))));
}

/* "could not run a script in" and its kin: whole sentences, for translators. */
static const char *
runtime_message(const SbxOp *op)
{
	if (strcmp(op->operation, "runScript") == 0)
		return op->failure.timed_out && op->failure.provider_code != NULL
		           ? gettext_noop("script in sandbox \"%s\" did not finish in time")
		           : gettext_noop("could not run a script in sandbox \"%s\"");
	if (strcmp(op->operation, "destroy") == 0)
		return gettext_noop("could not destroy sandbox \"%s\"");
	return gettext_noop("could not read the state of sandbox \"%s\"");
}

void
sbx_failure_runtime(const char *provider_id, const char *sbx_id, const SbxOp *op)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "providerId", provider_id);
	sbx_detail_text(&detail, "operation", op->operation);
	sbx_detail_text(&detail, "code", op->failure.provider_code);
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_PROVIDER_RUNTIME), errmsg(runtime_message(op), sbx_id),
	         errdetail_internal("%s", detail.data),
	         errhint("%s", failure_hint(&op->failure))));
}
