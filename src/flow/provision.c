/*
 * provision.c
 *		sbx_provision: from a request to a sandbox that accepts commands; and
 *		sbx_provision_detached: to one that may still be starting.
 *
 * The order is what makes it safe: lock of the id, entry in the pending list,
 * first byte, mapping row, commit.  Whatever breaks in between, the entry knows
 * what may exist at the provider and destroys it.
 */
#include "compat.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "core/classify.h"
#include "flow/cleanup.h"
#include "flow/failure.h"
#include "flow/plan.h"
#include "flow/session.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/event.h"
#include "observe/hook.h"
#include "store/mapping.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

/*
 * How long the failing statement itself looks for what an unknown outcome may
 * have left behind; after that it is abort cleanup's.
 */
#define RESOLVE_MS 5000

/* Time to destroy a sandbox that could not be recorded. */
#define DESTROY_UNRECORDED_MS 10000

/* Abort cleanup's own operation: the real limit is its budget. */
#define ABORT_DESTROY_MS 60000

/* One call of sbx_provision. */
typedef struct Provisioning
{
	bool detached; /* do not wait until it is ready */
	char *id;
	char *launch_token; /* NULL = the id is fresh, so nobody else can have it */
	SbxPlan *plan;
	SbxLaunchInput input;

	/* The attempt under way. */
	int attempt; /* from 1 */
	SbxAccess access;
	SbxPending *pending;
	SbxOp *launch; /* owned by pending */

	StringInfoData failed; /* earlier attempts, as members of a JSON array */
} Provisioning;

/* --- ids ------------------------------------------------------------------------ */

static char *
new_id(void)
{
	return psprintf("sbx_%s", sbx_session_random_hex(16));
}

/*
 * sbx_new_id() returns sbx_id
 *		From the strong random source.
 */
PG_FUNCTION_INFO_V1(sbx_new_id);
Datum
sbx_new_id(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(CStringGetTextDatum(new_id()));
}

static void
check_id(const char *given)
{
	if (given != NULL && !sbx_is_sandbox_id(given))
		sbx_error_document(SBX_DOCUMENT_ARGUMENT, "id", SBX_REASON_BAD_FORMAT,
		                   _("Use sbx_new_id() to make one."));
}

/* The caller's id, or a fresh one; locked and not in use. */
static char *
claim_id(const char *given)
{
	char *id = given == NULL ? new_id() : pstrdup(given);

	/* The look-up has to come after the lock. */
	if (!sbx_mapping_lock(id) || sbx_mapping_exists(id))
		sbx_error_document(SBX_DOCUMENT_ARGUMENT, "id", SBX_REASON_IN_USE,
		                   _("Use sbx_new_id() to make one."));
	return id;
}

/* --- what the provider is asked for ------------------------------------------------ */

static void
build_input(Provisioning *provisioning)
{
	const SbxRequest *request = provisioning->plan->request;
	SbxLaunchInput *input = &provisioning->input;
	SbxPair *labels = sbx_session_wire_pairs(request->labels, request->label_count,
	                                         SBX_ROUTER_LABELS);
	int count = request->label_count;

	labels[count++] = (SbxPair){SBX_LABEL_ID, provisioning->id};
	labels[count++] = (SbxPair){"sbx-router-db", sbx_mapping_database_label()};
	if (provisioning->launch_token != NULL)
		labels[count++] = (SbxPair){SBX_LABEL_LAUNCH, provisioning->launch_token};
	if (request->name != NULL)
		labels[count++] =
		    (SbxPair){"sbx-router-name", sbx_session_to_utf8(request->name)};
	input->unique_name = provisioning->id;
	input->labels = labels;
	input->label_count = count;
	input->env = sbx_session_wire_pairs(request->env, request->env_count, 0);
	input->env_count = request->env_count;
	input->create_timeout_ms = request->create_timeout_ms;
	input->detached = provisioning->detached;
	input->launch_token = provisioning->launch_token;
}

/* --- after a launch that failed ------------------------------------------------------ */

/*
 * A destroy of what the launch may have made, with interrupts enabled; true =
 * nothing is left.  Drops the pending entry then.
 */
static bool
destroy_now(Provisioning *provisioning, int64 timeout_ms)
{
	const SbxProviderKind *kind = provisioning->access.provider->kind;
	const char *sandbox_id = provisioning->launch->sandbox_id;
	SbxTarget target = {*sandbox_id == '\0' ? NULL : sandbox_id, provisioning->id,
	                    provisioning->launch_token};
	SbxOp *destroy;
	bool succeeded;

	destroy = sbx_session_hold(
	    kind->destroy(&provisioning->access.account, &target, timeout_ms),
	    provisioning->access.credential);
	sbx_session_run(destroy);
	succeeded = destroy->succeeded;
	if (!succeeded)
		return false;
	sbx_event_emit(SBX_EVENT_CLEANUP_FINISHED, provisioning->id,
	               provisioning->access.provider->pool.id, 0, NULL, SBX_UNSET,
	               SBX_TRUE);
	sbx_cleanup_resolved(provisioning->pending);
	return true;
}

/* The sanitised facts that a classifier gets. */
static Jsonb *
describe_failure(const Provisioning *provisioning, const SbxFailure *failure)
{
	StringInfoData json;

	sbx_detail_open(&json);
	sbx_detail_text(&json, "providerId", provisioning->access.provider->pool.id);
	sbx_detail_text(&json, "kind", provisioning->access.provider->kind->name);
	sbx_detail_text(&json, "operation", "launch");
	sbx_detail_text(&json, "phase", sbx_phase_name(failure->phase));
	sbx_detail_raw(&json, "requestSent", failure->request_sent ? "true" : "false");
	sbx_detail_raw(&json, "httpStatus",
	               failure->http_status == 0 ? "null"
	                                         : psprintf("%d", failure->http_status));
	if (failure->provider_code == NULL)
		sbx_detail_raw(&json, "providerCode", "null");
	sbx_detail_text(&json, "providerCode", failure->provider_code);
	sbx_detail_text(&json, "allocation", sbx_allocation_name(failure->allocation));
	return DatumGetJsonbP(
	    DirectFunctionCall1(jsonb_in, CStringGetDatum(sbx_detail_close(&json))));
}

/*
 * What the policy's classifier makes of it.  It may only narrow: nothing is tried
 * elsewhere unless it is proven that nothing was allocated here.
 */
static void
classify(const Provisioning *provisioning, const SbxFailure *failure,
         SbxClassification *classification)
{
	const SbxPolicy *policy = provisioning->plan->policy;
	Jsonb *answer = NULL;

	if (policy != NULL && policy->classifier != NULL &&
	    !sbx_hook_call(policy->classifier, policy->registered_by,
	                   describe_failure(provisioning, failure), &answer))
		answer = NULL;
	sbx_classification_read(answer, classification);
	classification->retryable &= failure->allocation == SBX_ALLOCATION_NONE;
}

/* Nothing may be left of a failed attempt before the next one, or the error. */
static void
clean_up_attempt(Provisioning *provisioning, const SbxFailure *failure)
{
	if (failure->allocation == SBX_ALLOCATION_NONE)
		sbx_cleanup_resolved(provisioning->pending);
	else
		(void) destroy_now(provisioning, RESOLVE_MS);
}

static void
note_failed(Provisioning *provisioning, const char *code)
{
	StringInfoData json;

	sbx_detail_open(&json);
	sbx_detail_text(&json, "providerId", provisioning->access.provider->pool.id);
	sbx_detail_text(&json, "code", code);
	if (provisioning->failed.len > 0)
		appendStringInfoChar(&provisioning->failed, ',');
	appendStringInfoString(&provisioning->failed, sbx_detail_close(&json));
}

/*
 * After a launch that failed: returns when the next candidate may be tried, else
 * raises SB005 (terminal) or SB006 (no candidate or attempt is left).
 */
static void
after_failure(Provisioning *provisioning, bool is_last)
{
	const char *provider_id = provisioning->access.provider->pool.id;
	SbxFailure failure = provisioning->launch->failure;
	SbxClassification classification;

	clean_up_attempt(provisioning, &failure);
	classify(provisioning, &failure, &classification);
	sbx_event_emit(SBX_EVENT_ATTEMPT_FAILED, provisioning->id, provider_id,
	               provisioning->attempt, classification.code,
	               classification.retryable ? SBX_TRUE : SBX_FALSE, SBX_UNSET);
	if (!classification.retryable)
		sbx_failure_launch(provider_id, &failure, classification.code);
	note_failed(provisioning, classification.code);
	if (is_last)
		sbx_failure_exhausted(provisioning->failed.data, provisioning->attempt,
		                      &failure);
}

/* --- the mapping row -------------------------------------------------------------------- */

static Jsonb *
member_of(Jsonb *object, const char *key)
{
	JsonbValue value;

	if (object == NULL || !JB_ROOT_IS_OBJECT(object) ||
	    getKeyJsonValueFromContainer(&object->root, key, strlen(key), &value) == NULL ||
	    value.type == jbvNull)
		return NULL;
	return JsonbValueToJsonb(&value);
}

/* The request as it is kept: launch.env may hold secrets and is left out. */
static Jsonb *
without_env(Jsonb *request)
{
	Datum keys[2] = {CStringGetTextDatum("launch"), CStringGetTextDatum("env")};
	ArrayType *path = construct_array(keys, 2, TEXTOID, -1, false, TYPALIGN_INT);

	return DatumGetJsonbP(DirectFunctionCall2(
	    jsonb_delete_path, JsonbPGetDatum(request), PointerGetDatum(path)));
}

/* A launch that waits is over when the sandbox is ready; a detached one may be. */
static const char *
launched_state(const Provisioning *provisioning)
{
	const SbxSandboxFacts *facts = provisioning->launch->result;

	return provisioning->detached && facts->state != SBX_STATE_STARTED ? "starting"
	                                                                   : "started";
}

static void
build_mapping(const Provisioning *provisioning, SbxMapping *mapping)
{
	Jsonb *launch = member_of(provisioning->plan->request_jsonb, "launch");
	Jsonb *labels = member_of(launch, "labels");

	memset(mapping, 0, sizeof(*mapping));
	mapping->id = provisioning->id;
	mapping->provider_id = provisioning->access.provider->pool.id;
	mapping->provider_sandbox_id = provisioning->launch->sandbox_id;
	mapping->name = provisioning->plan->request->name;
	mapping->labels =
	    labels != NULL
	        ? labels
	        : DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	mapping->state = launched_state(provisioning);
	mapping->request = without_env(provisioning->plan->request_jsonb);
	mapping->env = member_of(launch, "env");
	mapping->launch_token = provisioning->launch_token;
	mapping->owner = GetUserId();
}

/*
 * The sandbox exists but cannot be recorded: destroy it while the transaction
 * still lives, then raise what went wrong.  A trigger on the table may have
 * destroyed it before us: then the entry is gone, and the launch with it.
 */
static void
fail_mapping(Provisioning *provisioning, ErrorData *error)
{
	const char *provider_id = provisioning->access.provider->pool.id;

	sbx_event_emit(SBX_EVENT_MAPPING_FAILED, provisioning->id, provider_id,
	               provisioning->attempt, NULL, SBX_UNSET, SBX_UNSET);
	if (sbx_cleanup_find(provisioning->id) != NULL &&
	    !sbx_error_is_interrupt(error->sqlerrcode) &&
	    !destroy_now(provisioning, DESTROY_UNRECORDED_MS))
		sbx_event_emit(SBX_EVENT_CLEANUP_FINISHED, provisioning->id, provider_id, 0,
		               NULL, SBX_UNSET, SBX_FALSE);
	ReThrowError(error);
}

static void
record(Provisioning *provisioning)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	SbxMapping mapping;
	ErrorData *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		build_mapping(provisioning, &mapping);
		sbx_mapping_insert(&mapping);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error != NULL)
		fail_mapping(provisioning, error);
}

/* --- the main line ------------------------------------------------------------------------ */

static void
route(Provisioning *provisioning, Jsonb *request, const char *policy,
      const char *given_id)
{
	SbxPlan *plan = sbx_plan_make(request, policy, provisioning->detached, false,
	                              SBX_WANTED_ATTEMPTS);

	provisioning->plan = plan;
	if (plan->request->idempotency_key != NULL)
		sbx_error_not_built("request.idempotencyKey");
	check_id(given_id);
	if (plan->eligible == 0)
	{
		sbx_event_emit(SBX_EVENT_ROUTE_REFUSED, NULL, NULL, 0, NULL, SBX_UNSET,
		               SBX_UNSET);
		sbx_plan_refuse(plan);
	}
	sbx_event_emit(SBX_EVENT_ROUTE_PLANNED, NULL, plan->verdicts[0].pool->id, 0, NULL,
	               SBX_UNSET, SBX_UNSET);
}

/* One attempt: true = there is a sandbox, which accepts commands unless detached. */
static bool
launch(Provisioning *provisioning, const SbxProvider *provider)
{
	SbxTarget by_name = {NULL, provisioning->id, provisioning->launch_token};
	SbxOp *destroy;

	sbx_session_access(provider, &provisioning->access);
	provisioning->launch =
	    provider->kind->launch(&provisioning->access.account, &provisioning->input);
	destroy = provider->kind->destroy(&provisioning->access.account, &by_name,
	                                  ABORT_DESTROY_MS);
	provisioning->pending =
	    sbx_cleanup_expect(provisioning->id, provider->pool.id, provisioning->launch,
	                       destroy, provisioning->access.credential);

	sbx_event_emit(SBX_EVENT_ATTEMPT_STARTED, provisioning->id, provider->pool.id,
	               provisioning->attempt, NULL, SBX_UNSET, SBX_UNSET);
	sbx_session_run(provisioning->launch);
	if (!provisioning->launch->succeeded)
		return false;
	sbx_event_emit(SBX_EVENT_ATTEMPT_SUCCEEDED, provisioning->id, provider->pool.id,
	               provisioning->attempt, NULL, SBX_UNSET, SBX_UNSET);
	return true;
}

/* Attempt the candidates in order, as many as the request allows. */
static void
acquire(Provisioning *provisioning)
{
	const SbxPlan *plan = provisioning->plan;
	int bound = plan->request->fallback_allowed ? plan->request->max_attempts : 1;
	int last = Min(bound, plan->eligible);

	build_input(provisioning);
	sbx_session_prepare_engines();
	initStringInfo(&provisioning->failed);
	for (int i = 0; i < last; i++)
	{
		CHECK_FOR_INTERRUPTS();
		provisioning->attempt = i + 1;
		if (launch(provisioning, sbx_plan_provider(plan, &plan->verdicts[i])))
			return;
		after_failure(provisioning, i + 1 == last);
	}
}

/* Both functions; the arguments are request, policy, id. */
static Datum
provision(FunctionCallInfo fcinfo, bool detached, const char *function)
{
	Provisioning provisioning = {.detached = detached};
	SbxCall call;
	char *policy = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *given = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));

	sbx_session_begin(&call);
	sbx_session_refuse_effects(function);
	if (PG_ARGISNULL(0))
		sbx_error_document(SBX_DOCUMENT_REQUEST, "request", SBX_REASON_MISSING, NULL);
	route(&provisioning, PG_GETARG_JSONB_P(0), policy, given);
	provisioning.id = claim_id(given);

	/* The caller may use the id again, here or in another database. */
	if (given != NULL)
		provisioning.launch_token = sbx_session_random_hex(8);
	acquire(&provisioning);
	record(&provisioning);
	sbx_session_end(&call);
	PG_RETURN_DATUM(CStringGetTextDatum(provisioning.id));
}

/*
 * sbx_provision(request jsonb, policy text, id text) returns sbx_id
 *		Launches on the best eligible pool and waits until the sandbox accepts
 *		commands; falls back to the next one only where nothing can have been
 *		allocated and the policy's classifier says so.  The sandbox belongs to the
 *		transaction: if that does not commit, the sandbox is destroyed.
 *
 *		Errors: SB001 invalid request or id, SB002 placement that bypasses routing,
 *		SB003 no eligible provider, SB005 launch failed for good, SB006 attempts
 *		exhausted, SB011 incomplete credential, SB013 unknown policy, 42501 unusable
 *		registration, 25006 read-only transaction or recovery, 0A000 parts of
 *		the request language not built.
 */
PG_FUNCTION_INFO_V1(sbx_provision);
Datum
sbx_provision(PG_FUNCTION_ARGS)
{
	return provision(fcinfo, false, "sbx_provision()");
}

/*
 * sbx_provision_detached(request jsonb, policy text, id text) returns sbx_id
 *		The same, but returns as soon as the sandbox has a durable id at the
 *		provider; sbx_wait_ready() tells when it accepts commands.  Only pools
 *		whose kind can launch that way are eligible.
 *
 *		Errors: as sbx_provision.
 */
PG_FUNCTION_INFO_V1(sbx_provision_detached);
Datum
sbx_provision_detached(PG_FUNCTION_ARGS)
{
	return provision(fcinfo, true, "sbx_provision_detached()");
}
