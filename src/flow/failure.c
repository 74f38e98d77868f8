/*
 * failure.c
 *		Failures of operations as errors of SQL.
 *
 * Only facts of closed sets go out: phase, HTTP status, the adapter's own codes.
 */
#include "flow/failure.h"

#include "observe/error.h"

static const char *
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

typedef struct Advice
{
	const char *code;      /* an adapter's constant */
	const char *operation; /* whose failure it is about; NULL = any */
	const char *hint;
} Advice;

static const Advice advice_for_codes[] = {
    {"TIMEOUT", "runScript",
     gettext_noop(
         "The script was killed.  Use the argument \"timeout\" to give it more "
         "time.")},
    {"TIMEOUT_NOT_KILLED", "runScript",
     gettext_noop("The script may still be running.")},
    {"SANDBOX_GONE", NULL,
     gettext_noop("The provider has no such sandbox any more.  Use sbx_destroy() to "
                  "forget it.")},
    {"SANDBOX_FAILED", NULL,
     gettext_noop("The provider says that the sandbox failed.  Use sbx_destroy() to "
                  "remove it.")},
    {"NOT_STARTED", NULL,
     gettext_noop(
         "Use sbx_start() to start it, or sbx_wait_ready() while it is starting.")},
    {"STOP_WOULD_DESTROY", NULL,
     gettext_noop("The provider deletes this sandbox as soon as it is stopped.  Use "
                  "sbx_destroy() where that is wanted.")},
    {"NOTHING_KEPT", NULL,
     gettext_noop(
         "Nothing was kept of this sandbox when it stopped.  Use sbx_destroy() "
         "to remove it.")},
    {"SESSION_IN_USE", NULL,
     gettext_noop("Another script has that session.  Use another name, or none.")},
    {"TMP_NOT_WRITABLE", NULL,
     gettext_noop("What such a script writes is kept in /tmp of the sandbox, where "
                  "nothing can be written.  It was not started.")},
    {"SCRIPT_LOST", NULL,
     gettext_noop(
         "The sandbox was stopped while the script was running: how the script "
         "ended cannot be found out.")},
    {"SCRIPT_UNKNOWN", NULL,
     gettext_noop("Use both ids that sbx_start_script() returned for this sandbox.")},
    {"FILE_NOT_FOUND", NULL,
     gettext_noop("There is no file of that path in the sandbox.")},
    {"FILE_ACCESS_DENIED", NULL,
     gettext_noop("The user inside the sandbox has no access to that path.")},
    {"INVALID_FILE_PATH", NULL,
     gettext_noop("The path cannot be that of a file in the sandbox.")},
    {"FILE_TOO_LARGE", NULL,
     gettext_noop("The setting \"sbx_router.max_file_size\" says how large a file may "
                  "be.")},
    {"NO_FILE_SERVICE", NULL,
     gettext_noop(
         "Nothing at the sandbox's own address serves files.  Templates of the "
         "provider's have a service for them.")},
    {"INSTANCE_URL_REFUSED", NULL,
     gettext_noop(
         "The provider names an address for this sandbox to which the key is "
         "not sent.  The setting \"instanceUrl\" of the registration says which "
         "are right.")},
    {"HOME_UNKNOWN", NULL,
     gettext_noop("The provider does not tell the home directory.  Use an absolute "
                  "path.")},
};

/* NULL = nothing better to say than the facts. */
static const char *
hint_for_code(const char *operation, const char *code)
{
	if (code == NULL)
		return NULL;
	for (size_t i = 0; i < lengthof(advice_for_codes); i++)
	{
		const Advice *advice = &advice_for_codes[i];

		if (strcmp(advice->code, code) == 0 &&
		    (advice->operation == NULL || strcmp(advice->operation, operation) == 0))
			return _(advice->hint);
	}
	return NULL;
}

/*
 * Advice for people: one or two sentences made from the sanitised facts.  Never
 * NULL.
 */
static const char *
failure_hint(const char *operation, const SbxFailure *failure)
{
	const char *hint = hint_for_code(operation, failure->provider_code);

	if (hint != NULL)
		return hint;
	hint = hint_for_phase(failure);

	if (failure->http_status != 0)
		hint = psprintf(_("%s  HTTP status: %d."), hint, failure->http_status);
	if (failure->provider_code != NULL)
		hint = psprintf(_("%s  Code: %s."), hint, failure->provider_code);
	if (failure->retry_after > 0)
		hint = psprintf(_("%s  The provider asks for a pause of %d s before the next "
		                  "try."),
		                hint, failure->retry_after);
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
	         errhint("%s", failure_hint("launch", failure))));
}

void
sbx_failure_capacity(const char *rejections)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "code", "PROVIDER_CAPACITY_EXHAUSTED");
	sbx_detail_raw(&detail, "rejections", psprintf("{%s}", rejections));
	sbx_detail_close(&detail);
	ereport(ERROR, (errcode(SBX_ERRCODE_CAPACITY_EXHAUSTED),
	                errmsg("no provider has room for this request"),
	                errdetail_internal("%s", detail.data),
	                errhint("Use sbx_capacity() to see how much room each has.")));
}

void
sbx_failure_exhausted(const char *attempts, const char *skipped, int count,
                      const SbxFailure *failure)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_raw(&detail, "attempts", psprintf("[%s]", attempts));
	sbx_detail_raw(&detail, "skipped", psprintf("{%s}", skipped));
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_ATTEMPTS_EXHAUSTED),
	         errmsg_plural("could not launch a sandbox in %d attempt",
	                       "could not launch a sandbox in %d attempts", count, count),
	         errdetail_internal("%s", detail.data),
	         errhint("%s", failure_hint("launch", failure))));
}

typedef struct OperationWords
{
	const char *operation; /* as operations name themselves */
	const char *message;   /* a whole sentence, for translators */
} OperationWords;

/* %s is the sandbox; for find and capacity the provider. */
static const OperationWords operation_words[] = {
    {"get", gettext_noop("could not read the state of sandbox \"%s\"")},
    {"waitReady", gettext_noop("could not wait until sandbox \"%s\" is ready")},
    {"find", gettext_noop("could not find sandboxes at provider \"%s\"")},
    {"start", gettext_noop("could not start sandbox \"%s\"")},
    {"stop", gettext_noop("could not stop sandbox \"%s\"")},
    {"runScript", gettext_noop("could not run a script in sandbox \"%s\"")},
    {"startScript", gettext_noop("could not start a script in sandbox \"%s\"")},
    {"scriptStatus",
     gettext_noop("could not read the status of a script in sandbox \"%s\"")},
    {"scriptLogs",
     gettext_noop("could not read the output of a script in sandbox \"%s\"")},
    {"upload", gettext_noop("could not upload a file to sandbox \"%s\"")},
    {"download", gettext_noop("could not download a file from sandbox \"%s\"")},
    {"capacity", gettext_noop("could not read the capacity of provider \"%s\"")},
    {"destroy", gettext_noop("could not destroy sandbox \"%s\"")},
};

static const char *
runtime_message(const SbxOp *op)
{
	if (strcmp(op->operation, "runScript") == 0 && op->failure.timed_out &&
	    op->failure.provider_code != NULL)
		return _("script in sandbox \"%s\" did not finish in time");
	for (size_t i = 0; i < lengthof(operation_words); i++)
	{
		if (strcmp(operation_words[i].operation, op->operation) == 0)
			return _(operation_words[i].message);
	}
	elog(ERROR, "unknown operation \"%s\"", op->operation);
}

char *
sbx_failure_message(const SbxOp *op, const char *sbx_id)
{
	return psprintf(runtime_message(op), sbx_id);
}

void
sbx_failure_runtime(const char *provider_id, const char *sbx_id, const SbxOp *op,
                    bool longest_script)
{
	const char *code = op->failure.provider_code;
	const char *hint = failure_hint(op->operation, &op->failure);
	StringInfoData detail;

	if (longest_script && code != NULL && strcmp(code, "TIMEOUT") == 0)
		hint = _("The script was killed.  It had as much time as this kind of provider "
		         "gives a script.");

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "providerId", provider_id);
	sbx_detail_text(&detail, "operation", op->operation);
	sbx_detail_text(&detail, "code", code);
	sbx_detail_close(&detail);
	ereport(ERROR,
	        (errcode(SBX_ERRCODE_PROVIDER_RUNTIME),
	         errmsg_internal(
	             "%s", sbx_failure_message(op, sbx_id == NULL ? provider_id : sbx_id)),
	         errdetail_internal("%s", detail.data), errhint("%s", hint)));
}
