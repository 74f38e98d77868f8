/*
 * provision.c
 *		sbx_provision: from a request to a sandbox that accepts commands;
 *		sbx_provision_detached: to one that may still be starting; and
 *		sbx_provision_many: to any number of them at once.
 *
 * The order is what makes it safe: locks of the ids, entries in the pending list,
 * first byte, mapping rows, commit.  Whatever breaks in between, the entries know
 * what may exist at the provider, and it is destroyed.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "core/jsonlook.h"
#include "flow/acquire.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "observe/catch.h"
#include "observe/error.h"
#include "observe/event.h"
#include "store/mapping.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

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

/* --- the mapping row -------------------------------------------------------------------- */

static Jsonb *
member_of(Jsonb *object, const char *key)
{
	JsonbValue value;

	sbx_look_member(sbx_look_root(object), key, &value);
	return value.type == jbvNull ? NULL : JsonbValueToJsonb(&value);
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
launched_state(const SbxAcquisitions *all, const SbxAcquisition *member)
{
	const SbxSandboxFacts *facts = member->launch->result;

	return all->detached && facts->state != SBX_STATE_STARTED ? "starting" : "started";
}

static void
build_mapping(const SbxAcquisitions *all, const SbxAcquisition *member,
              SbxMapping *mapping)
{
	Jsonb *launch = member_of(all->plan->request_jsonb, "launch");
	Jsonb *labels = member_of(launch, "labels");

	memset(mapping, 0, sizeof(*mapping));
	mapping->id = member->id;
	mapping->provider_id = member->access.provider->pool.id;

	/* A copy: the row outlives the launch when a trigger makes writing it fail. */
	mapping->provider_sandbox_id = pstrdup(member->launch->sandbox_id);
	mapping->name = all->plan->request->name;
	mapping->labels =
	    labels != NULL
	        ? labels
	        : DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum("{}")));
	mapping->state = launched_state(all, member);
	mapping->request = without_env(all->plan->request_jsonb);
	mapping->env = member_of(launch, "env");
	mapping->launch_token = member->launch_token;
	mapping->owner = GetUserId();
}

/*
 * The sandboxes exist but one cannot be recorded: destroy them while the transaction
 * still lives, then raise what went wrong.
 */
static void
fail_mapping(SbxAcquisitions *all, const SbxAcquisition *member, ErrorData *error)
{
	sbx_event_emit(SBX_EVENT_MAPPING_FAILED, member->id,
	               member->access.provider->pool.id, member->attempt, NULL, SBX_UNSET,
	               SBX_UNSET);
	if (!sbx_error_is_interrupt(error->sqlerrcode))
		sbx_acquire_withdraw(all);
	ReThrowError(error);
}

typedef struct Recording
{
	const SbxAcquisitions *all;
	const SbxAcquisition *member;
} Recording;

static void
insert_mapping(void *arg)
{
	const Recording *recording = arg;
	SbxMapping mapping;

	build_mapping(recording->all, recording->member, &mapping);
	sbx_mapping_insert(&mapping);
}

static void
record(SbxAcquisitions *all, const SbxAcquisition *member)
{
	Recording recording = {all, member};
	ErrorData *error = sbx_catch(insert_mapping, &recording);

	if (error != NULL)
		fail_mapping(all, member, error);
}

/* --- the main line ------------------------------------------------------------------------ */

/* Where the request would go. */
static SbxPlan *
route(FunctionCallInfo fcinfo, const char *policy, bool detached)
{
	if (PG_ARGISNULL(0))
		sbx_error_document(SBX_DOCUMENT_REQUEST, "request", SBX_REASON_MISSING, NULL);
	return sbx_plan_make(PG_GETARG_JSONB_P(0), policy, detached, false,
	                     SBX_WANTED_ATTEMPTS);
}

/* There has to be a candidate. */
static void
check_eligible(const SbxPlan *plan)
{
	if (plan->eligible == 0)
	{
		sbx_event_emit(SBX_EVENT_ROUTE_REFUSED, NULL, NULL, 0, NULL, SBX_UNSET,
		               SBX_UNSET);
		sbx_plan_refuse(plan);
	}
	for (int i = 0; i < plan->vanished_count; i++)
		sbx_event_emit(SBX_EVENT_ORDER_IGNORED, NULL, plan->vanished[i], 0, NULL,
		               SBX_UNSET, SBX_UNSET);
	sbx_event_emit(SBX_EVENT_ROUTE_PLANNED, NULL, plan->verdicts[0].pool->id, 0, NULL,
	               SBX_UNSET, SBX_UNSET);
}

static void
acquire_and_record(SbxAcquisitions *all)
{
	sbx_acquire(all);
	for (int i = 0; i < all->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		record(all, &all->members[i]);
	}
}

/* The arguments are request, policy, id. */
static Datum
provision(FunctionCallInfo fcinfo, bool detached, const char *function)
{
	SbxAcquisition member = {0};
	SbxAcquisitions all = {.detached = detached, .members = &member, .count = 1};
	SbxCall call;
	char *policy = PG_ARGISNULL(1) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(1));
	char *given = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));

	sbx_session_begin(&call);
	sbx_session_refuse_effects(function);
	all.plan = route(fcinfo, policy, detached);
	if (all.plan->request->idempotency_key != NULL)
		sbx_error_not_built("request.idempotencyKey");
	check_id(given);
	check_eligible(all.plan);
	sbx_acquire_admit(1);
	member.id = claim_id(given);

	/* The caller may use the id again, here or in another database. */
	if (given != NULL)
		member.launch_token = sbx_session_random_hex(8);
	acquire_and_record(&all);
	sbx_session_end(&call);
	PG_RETURN_DATUM(CStringGetTextDatum(member.id));
}

/*
 * sbx_provision(request jsonb, policy text, id text) returns sbx_id
 *		Launches on the best eligible pool and waits until the sandbox accepts
 *		commands; falls back to the next one only where nothing can have been
 *		allocated and the policy's classifier says so.  The sandbox belongs to the
 *		transaction: if that does not commit, the sandbox is destroyed.
 *
 *		Errors: SB001 invalid request or id, SB002 placement that bypasses routing,
 *		SB003 no eligible provider, SB004 no account with room, SB005 launch failed for good, SB006 attempts
 *		exhausted, SB011 incomplete credential, SB013 unknown policy, 42501 unusable
 *		registration, 25006 read-only transaction or recovery, 54000 more than
 *		sbx_router.max_launches_per_statement, 0A000 parts of the request language
 *		not built.
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

/* What names a single sandbox cannot be said of many. */
static void
check_for_many(const SbxRequest *request)
{
	if (request->idempotency_key != NULL)
		sbx_error_document(SBX_DOCUMENT_REQUEST, "request.idempotencyKey",
		                   SBX_REASON_FORBIDDEN, NULL);
	if (request->name != NULL)
		sbx_error_document(SBX_DOCUMENT_REQUEST, "request.launch.name",
		                   SBX_REASON_FORBIDDEN, NULL);
}

static int
count_argument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		sbx_error_document(SBX_DOCUMENT_ARGUMENT, "count", SBX_REASON_MISSING, NULL);
	if (PG_GETARG_INT32(n) < 0)
		sbx_error_document(SBX_DOCUMENT_ARGUMENT, "count", SBX_REASON_NEGATIVE, NULL);
	return PG_GETARG_INT32(n);
}

static void
put_ids(ReturnSetInfo *result, const SbxAcquisitions *all)
{
	for (int i = 0; i < all->count; i++)
	{
		Datum value = CStringGetTextDatum(all->members[i].id);
		bool is_null = false;

		tuplestore_putvalues(result->setResult, result->setDesc, &value, &is_null);
	}
}

/*
 * sbx_provision_many(request jsonb, count integer, policy text) returns setof sbx_id
 *		So many sandboxes for one request, launched at the same time: all of them, or
 *		an error and none.  Each is routed as sbx_provision would; a launch that fails
 *		goes to the next candidate by itself.  All ids are locked before the first
 *		launch.  What was launched is destroyed when one fails for good or cannot be
 *		recorded.
 *
 *		Errors: as sbx_provision, and SB001 for an idempotencyKey or a launch.name in
 *		the request, or a negative count.
 */
PG_FUNCTION_INFO_V1(sbx_provision_many);
Datum
sbx_provision_many(PG_FUNCTION_ARGS)
{
	SbxAcquisitions all = {0};
	SbxCall call;
	char *policy = PG_ARGISNULL(2) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(2));

	sbx_session_begin(&call);
	sbx_session_refuse_effects("sbx_provision_many()");
	all.plan = route(fcinfo, policy, false);
	check_for_many(all.plan->request);
	all.count = count_argument(fcinfo, 1);
	check_eligible(all.plan);
	sbx_acquire_admit(all.count);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (all.count > 0)
	{
		all.members = palloc0(sizeof(SbxAcquisition) * all.count);
		for (int i = 0; i < all.count; i++)
			all.members[i].id = claim_id(NULL);
		acquire_and_record(&all);
	}
	put_ids((ReturnSetInfo *) fcinfo->resultinfo, &all);
	sbx_session_end(&call);
	return (Datum) 0;
}
