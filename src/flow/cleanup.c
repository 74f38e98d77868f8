/*
 * cleanup.c
 *		What was launched and is not committed yet: destroyed when the
 *		(sub)transaction that launched it does not commit.
 *
 * The transaction callbacks only mark.  The work is done from the resource
 * release callback, after locks are released, so that nobody waits for our
 * network.  There everything that can fail is forbidden: no catalog, no SPI, no
 * palloc that matters.  Operations and the second engine were made before the
 * launch; the rest is malloc'ed by libcurl and may fail without raising.
 *
 * Entries are dropped only at COMMIT and PREPARE, where an error would be a
 * PANIC: dropping is free() and munmap().
 */
#include "flow/cleanup.h"

#include "access/xact.h"
#include "flow/session.h"
#include "miscadmin.h"
#include "net/quietly.h"
#include "observe/error.h"
#include "observe/event.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/* Time left once a cancel or terminate is pending. */
#define HURRIED_MS 500

struct SbxPending
{
	SbxPending *next;
	SubTransactionId subid; /* lives and dies with it */
	bool armed;             /* its (sub)transaction is being aborted */
	char sbx_id[40];
	char provider_id[64];
	SbxOp *launch;
	SbxOp *destroy;
	SbxCredential *credential;
	SbxEngineSettings settings; /* those of the launch; strings are its own */
};

static SbxPending *pending_list = NULL;

/* Anything armed?  The release callback runs for every resource owner. */
static bool armed = false;

/*
 * What is left of the budget of this unwinding; -1 = none has begun.  An unwinding
 * does not outlast its statement.
 */
static int64 budget_ms = -1;
static TimestampTz budget_statement = 0;

/*
 * Within a statement, levels that unwind together follow each other at once; what
 * comes later than this after the last clean-up is an unwinding of its own.
 */
#define SAME_UNWINDING_MS 50

static TimestampTz last_cleanup = 0;

/* Was the backend between statements?  A client that vanishes then is another story. */
static bool budget_idle = false;

static void
discard(SbxPending *pending)
{
	sbx_op_free(pending->launch);
	sbx_op_free(pending->destroy);
	if (pending->credential != NULL)
		sbx_credential_unpin(pending->credential);
	free(unconstify(char *, pending->settings.ca_file));
	free(unconstify(char *, pending->settings.proxy));
	free(pending);
}

/* --- reports: also from inside an abort, so they swallow their own failure ----- */

static void
warn_left_over(void *arg)
{
	const SbxPending *pending = arg;
	StringInfoData detail;
	const char *sandbox = pending->destroy->sandbox_id;

	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "sbxId", pending->sbx_id);
	sbx_detail_text(&detail, "providerId", pending->provider_id);
	sbx_detail_text(&detail, "providerSandboxId", *sandbox == '\0' ? NULL : sandbox);
	sbx_detail_close(&detail);
	ereport(WARNING,
	        (errcode(SBX_ERRCODE_PROVIDER_RUNTIME),
	         *sandbox == '\0'
	             ? errmsg("could not confirm that sandbox \"%s\" was not created",
	                      pending->sbx_id)
	             : errmsg("could not destroy sandbox \"%s\"", pending->sbx_id),
	         errdetail_internal("%s", detail.data),
	         errhint("Look for this name at the provider and delete it there."),
	         errhidestmt(true), errhidecontext(true)));
}

static void
report(SbxPending *pending)
{
	ErrorContextCallback *saved = error_context_stack;

	sbx_event_emit(SBX_EVENT_CLEANUP_FINISHED, pending->sbx_id, pending->provider_id, 0,
	               pending->destroy->failure.provider_code, SBX_UNSET,
	               pending->destroy->succeeded ? SBX_TRUE : SBX_FALSE);
	if (pending->destroy->succeeded)
		return;

	/* Not the context of a PL/pgSQL statement that is being rolled back. */
	error_context_stack = NULL;
	if (!sbx_quietly(warn_left_over, pending))
		write_stderr(
		    "sbx_router: could not destroy sandbox \"%s\" at provider \"%s\"\n",
		    pending->sbx_id, pending->provider_id);
	error_context_stack = saved;
}

/* --- the work ------------------------------------------------------------------- */

static bool
same_settings(const SbxEngineSettings *a, const SbxEngineSettings *b)
{
	return a->max_response == b->max_response && a->allow_http == b->allow_http &&
	       a->allow_private_addresses == b->allow_private_addresses &&
	       a->trace == b->trace && strcmp(a->ca_file, b->ca_file) == 0 &&
	       strcmp(a->proxy, b->proxy) == 0;
}

/*
 * What is destroyed in one run: a list, because nothing can be allocated, and all of
 * it, so that one that hangs holds up no others.
 */
typedef struct Batch
{
	SbxPending *first;
	SbxPending *next; /* whose turn it is */
	int count;
} Batch;

/*
 * Unlink the armed entries that were launched under the same settings.  What was never
 * sent needs no network and is dropped here.
 */
static void
take_armed(Batch *batch)
{
	SbxPending **link = &pending_list;
	SbxPending **last = &batch->first;

	batch->first = NULL;
	batch->count = 0;
	while (*link != NULL)
	{
		SbxPending *pending = *link;

		if (!pending->armed ||
		    (batch->first != NULL &&
		     !same_settings(&pending->settings, &batch->first->settings)))
		{
			link = &pending->next;
			continue;
		}
		*link = pending->next;
		if (!pending->launch->anything_sent)
		{
			discard(pending);
			continue;
		}
		memcpy(pending->destroy->sandbox_id, pending->launch->sandbox_id,
		       sizeof(pending->destroy->sandbox_id));
		pending->next = NULL;
		*last = pending;
		last = &pending->next;
		batch->count++;
	}
	batch->next = batch->first;
}

/* Asked for in their order. */
static SbxOp *
begin_destroy(void *arg, int index)
{
	Batch *batch = arg;
	SbxPending *pending = batch->next;

	batch->next = pending->next;
	return pending->destroy;
}

static void
destroy_batch(Batch *batch)
{
	const SbxEngineWork work = {
	    .count = batch->count, .arg = batch, .begin = begin_destroy};
	SbxEngine *engine = sbx_session_abort_engine();

	if (engine != NULL)
		budget_ms = sbx_engine_run_aborting(engine, &work, &batch->first->settings,
		                                    budget_ms, Min(budget_ms, HURRIED_MS));
	while (batch->first != NULL)
	{
		SbxPending *pending = batch->first;

		batch->first = pending->next;
		report(pending);
		discard(pending);
	}
}

static void
release_callback(ResourceReleasePhase phase, bool is_commit, bool is_top_level,
                 void *arg)
{
	Batch batch;

	if (!armed || phase != RESOURCE_RELEASE_AFTER_LOCKS || is_commit)
		return;
	armed = false;
	for (take_armed(&batch); batch.count > 0; take_armed(&batch))
		destroy_batch(&batch);
	last_cleanup = GetCurrentTimestamp();
}

/* --- marking ---------------------------------------------------------------------- */

static void
arm(SbxPending *pending)
{
	bool idle = debug_query_string == NULL;

	pending->armed = true;
	armed = true;
	if (budget_ms < 0 || budget_idle != idle ||
	    budget_statement != GetCurrentStatementStartTimestamp() ||
	    (last_cleanup != 0 &&
	     TimestampDifferenceExceeds(last_cleanup, GetCurrentTimestamp(),
	                                SAME_UNWINDING_MS)))
	{
		budget_ms = sbx_abort_cleanup_timeout;
		last_cleanup = 0;
	}
	budget_statement = GetCurrentStatementStartTimestamp();
	budget_idle = idle;
}

static void
drop_all(void)
{
	while (pending_list != NULL)
	{
		SbxPending *pending = pending_list;

		pending_list = pending->next;
		discard(pending);
	}
}

static void
transaction_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_ABORT:
			for (SbxPending *pending = pending_list; pending != NULL;
			     pending = pending->next)
				arm(pending);
			break;
		case XACT_EVENT_PRE_PREPARE:
			if (pending_list != NULL)
				ereport(WARNING,
				        (errmsg("sandboxes of a prepared transaction outlive ROLLBACK "
				                "PREPARED"),
				         errdetail("Nothing of this session is left then to destroy "
				                   "them.")));
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			drop_all();
			break;
		default:
			break;
	}
}

static void
subtransaction_callback(SubXactEvent event, SubTransactionId subid,
                        SubTransactionId parent_subid, void *arg)
{
	if (event == SUBXACT_EVENT_START_SUB)
		budget_ms = -1;
	for (SbxPending *pending = pending_list; pending != NULL; pending = pending->next)
	{
		if (pending->subid != subid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			pending->subid = parent_subid;
		else if (event == SUBXACT_EVENT_ABORT_SUB)
			arm(pending);
	}
}

/* --- entries ------------------------------------------------------------------------ */

void
sbx_cleanup_new_call(void)
{
	budget_ms = -1;
}

static void
register_callbacks(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(transaction_callback, NULL);
	RegisterSubXactCallback(subtransaction_callback, NULL);
	RegisterResourceReleaseCallback(release_callback, NULL);
	registered = true;
}

/*
 * The settings of the launch, because those of the moment of a ROLLBACK may be
 * others: a function that opened an address with SET is over by then.
 */
static bool
keep_settings(SbxPending *pending)
{
	pending->settings = *sbx_session_settings();
	pending->settings.ca_file = strdup(pending->settings.ca_file);
	pending->settings.proxy = strdup(pending->settings.proxy);
	return pending->settings.ca_file != NULL && pending->settings.proxy != NULL;
}

SbxPending *
sbx_cleanup_expect(const char *sbx_id, const char *provider_id, SbxOp *launch,
                   SbxOp *destroy, SbxCredential *credential)
{
	SbxPending *pending = calloc(1, sizeof(SbxPending));

	if (pending == NULL || launch == NULL || destroy == NULL || !keep_settings(pending))
	{
		if (pending != NULL)
		{
			free(unconstify(char *, pending->settings.ca_file));
			free(unconstify(char *, pending->settings.proxy));
		}
		free(pending);
		sbx_op_free(launch);
		sbx_op_free(destroy);
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	}
	pending->launch = launch;
	pending->destroy = destroy;
	pending->credential = credential;
	sbx_credential_pin(credential);
	strlcpy(pending->sbx_id, sbx_id, sizeof(pending->sbx_id));
	strlcpy(pending->provider_id, provider_id, sizeof(pending->provider_id));
	pending->subid = GetCurrentSubTransactionId();

	register_callbacks();
	pending->next = pending_list;
	pending_list = pending;
	return pending;
}

SbxPending *
sbx_cleanup_find(const char *sbx_id)
{
	SbxPending *pending = pending_list;

	while (pending != NULL && strcmp(pending->sbx_id, sbx_id) != 0)
		pending = pending->next;
	return pending;
}

void
sbx_cleanup_moved(SbxPending *pending, const char *sandbox_id)
{
	strlcpy(pending->launch->sandbox_id, sandbox_id,
	        sizeof(pending->launch->sandbox_id));
}

void
sbx_cleanup_resolved(SbxPending *pending)
{
	SbxPending **link = &pending_list;

	while (*link != NULL && *link != pending)
		link = &(*link)->next;
	if (*link == NULL)
		return;
	*link = pending->next;
	discard(pending);
}
