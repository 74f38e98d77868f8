/*
 * acquire.c
 *		From a plan to sandboxes that exist: attempts, fallback, and what a failure
 *		leaves behind.
 *
 * However many are wanted, there is one way: a round launches all that are missing on
 * the next candidate, at once.  Each has its entry in the pending list before its
 * first byte is sent, so whatever breaks in between, what may exist is destroyed.
 */
#include "flow/acquire.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "core/classify.h"
#include "flow/candidates.h"
#include "flow/failure.h"
#include "flow/progress.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/event.h"
#include "observe/hook.h"
#include "store/mapping.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/jsonb.h"

/*
 * How long the failing statement itself looks for what an unknown outcome may
 * have left behind; after that it is abort cleanup's.
 */
#define RESOLVE_MS 5000

/* Time to destroy what nobody will get. */
#define WITHDRAW_MS 10000

/* Abort cleanup's own operation: the real limit is its budget. */
#define ABORT_DESTROY_MS 60000

/* --- how many ------------------------------------------------------------------- */

static int max_launches = 100;

void
sbx_acquire_define_gucs(void)
{
	DefineCustomIntVariable("sbx_router.max_launches_per_statement",
	                        "Sets how many sandboxes one statement may launch.", NULL,
	                        &max_launches, 100, 1, 10000, PGC_SUSET, 0, NULL, NULL,
	                        NULL);
}

void
sbx_acquire_admit(int count)
{
	static TimestampTz statement = 0;
	static int admitted = 0;

	if (statement != GetCurrentStatementStartTimestamp())
	{
		statement = GetCurrentStatementStartTimestamp();
		admitted = 0;
	}
	if (count > max_launches - admitted)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		                errmsg("too many sandboxes for one statement"),
		                errdetail("A statement may launch %d.", max_launches),
		                errhint("The setting \"%s\" says how many.",
		                        "sbx_router.max_launches_per_statement")));
	admitted += count;
}

/* --- what the provider is asked for ------------------------------------------------ */

static void
build_input(const SbxAcquisitions *all, SbxAcquisition *member)
{
	const SbxRequest *request = all->plan->request;
	SbxLaunchInput *input = &member->input;
	SbxPair *labels = sbx_session_wire_pairs(request->labels, request->label_count,
	                                         SBX_ROUTER_LABELS);
	int count = request->label_count;

	labels[count++] = (SbxPair){SBX_LABEL_ID, member->id};
	labels[count++] = (SbxPair){"sbx-router-db", sbx_mapping_database_label()};
	if (member->launch_token != NULL)
		labels[count++] = (SbxPair){SBX_LABEL_LAUNCH, member->launch_token};
	if (request->name != NULL)
		labels[count++] = (SbxPair){SBX_LABEL_NAME, sbx_session_to_utf8(request->name)};
	input->unique_name = member->id;
	input->labels = labels;
	input->label_count = count;
	input->env = sbx_session_wire_pairs(request->env, request->env_count, 0);
	input->env_count = request->env_count;
	input->create_timeout_ms = request->create_timeout_ms;
	input->detached = all->detached;
	input->launch_token = member->launch_token;
}

/* --- what must not stay ------------------------------------------------------------- */

static SbxOp *
make_destroy(const SbxAcquisition *member, int64 timeout_ms)
{
	const char *sandbox_id = member->launch->sandbox_id;
	SbxTarget target = {*sandbox_id == '\0' ? NULL : sandbox_id, member->id,
	                    member->launch_token};

	return sbx_session_hold(member->access.provider->kind->destroy(
	                            &member->access.account, &target, timeout_ms),
	                        member->access.credential);
}

static void
tell_destroyed(const SbxAcquisition *member, bool succeeded)
{
	sbx_event_emit(SBX_EVENT_CLEANUP_FINISHED, member->id,
	               member->access.provider->pool.id, 0, NULL, SBX_UNSET,
	               succeeded ? SBX_TRUE : SBX_FALSE);
}

/*
 * Destroy what their launches have made or may have made, with interrupts enabled.
 * Where nothing is left the pending entry is dropped; others are the abort's, too.
 */
static void
destroy_now(SbxAcquisition **members, int count, int64 timeout_ms, bool tell_failure)
{
	SbxOp **ops = palloc(sizeof(SbxOp *) * (count + 1));

	for (int i = 0; i < count; i++)
		ops[i] = make_destroy(members[i], timeout_ms);
	sbx_session_run_many(ops, count, NULL, NULL);
	for (int i = 0; i < count; i++)
	{
		if (ops[i]->succeeded || tell_failure)
			tell_destroyed(members[i], ops[i]->succeeded);
		if (ops[i]->succeeded)
			sbx_cleanup_resolved(members[i]->pending);
	}
	pfree(ops);
}

/* A trigger on the table of mappings may have destroyed one before us. */
void
sbx_acquire_withdraw(SbxAcquisitions *all)
{
	SbxAcquisition **members = palloc(sizeof(SbxAcquisition *) * (all->count + 1));
	int count = 0;

	for (int i = 0; i < all->count; i++)
	{
		SbxAcquisition *member = &all->members[i];

		if (member->acquired && sbx_cleanup_find(member->id) != NULL)
			members[count++] = member;
		member->acquired = false;
	}
	destroy_now(members, count, WITHDRAW_MS, true);
	pfree(members);
}

/* --- after launches that failed ------------------------------------------------------ */

/* The sanitised facts that a classifier gets. */
static Jsonb *
describe_failure(const SbxAcquisition *member, const SbxFailure *failure)
{
	StringInfoData json;

	sbx_detail_open(&json);
	sbx_detail_text(&json, "providerId", member->access.provider->pool.id);
	sbx_detail_text(&json, "kind", member->access.provider->kind->name);
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
classify(const SbxPolicy *policy, const SbxAcquisition *member,
         const SbxFailure *failure, SbxClassification *classification)
{
	Jsonb *answer = NULL;

	if (policy != NULL && policy->classifier != NULL)
	{
		const SbxHook hook = {policy->classifier, JSONBOID, policy->registered_by, 0};
		Jsonb *facts = describe_failure(member, failure);

		(void) sbx_hook_call(&hook, JsonbPGetDatum(facts), &answer);
	}
	sbx_classification_read(answer, classification);
	classification->retryable &= failure->allocation == SBX_ALLOCATION_NONE;
}

/* Nothing may be left of failed attempts before the next ones, or the error. */
static void
clean_up_attempts(SbxAcquisition **members, int count)
{
	SbxAcquisition **unknown = palloc(sizeof(SbxAcquisition *) * (count + 1));
	int unknown_count = 0;

	for (int i = 0; i < count; i++)
	{
		if (members[i]->launch->failure.allocation == SBX_ALLOCATION_NONE)
			sbx_cleanup_resolved(members[i]->pending);
		else
			unknown[unknown_count++] = members[i];
	}
	destroy_now(unknown, unknown_count, RESOLVE_MS, false);
	pfree(unknown);
}

static void
note_failed(SbxAcquisition *member, const char *code)
{
	StringInfoData json;

	sbx_detail_open(&json);
	sbx_detail_text(&json, "providerId", member->access.provider->pool.id);
	sbx_detail_text(&json, "code", code);
	if (member->failed.len > 0)
		appendStringInfoChar(&member->failed, ',');
	appendStringInfoString(&member->failed, sbx_detail_close(&json));
}

/* What becomes of one whose attempt failed. */
typedef struct Verdict
{
	SbxAcquisition *member;
	SbxFailure failure;
	SbxClassification classification;
} Verdict;

static void
judge(const SbxPolicy *policy, Verdict *verdict)
{
	SbxAcquisition *member = verdict->member;
	SbxClassification *classification = &verdict->classification;

	classify(policy, member, &verdict->failure, classification);
	sbx_event_emit(SBX_EVENT_ATTEMPT_FAILED, member->id,
	               member->access.provider->pool.id, member->attempt,
	               classification->code,
	               classification->retryable ? SBX_TRUE : SBX_FALSE, SBX_UNSET);
	if (classification->retryable)
		note_failed(member, classification->code);
}

/* No candidate or attempt is left. */
static void
give_up(SbxAcquisitions *all, const SbxAcquisition *member,
        const SbxCandidates *candidates)
{
	sbx_acquire_withdraw(all);
	sbx_failure_exhausted(member->failed.data, candidates->skipped.data,
	                      member->attempt, &all->failure);
}

/* Returns when the next candidate may be tried, else raises SB005: one is terminal. */
static void
after_failures(SbxAcquisitions *all, SbxAcquisition **members, int count)
{
	Verdict *verdicts = palloc0(sizeof(Verdict) * count);
	const Verdict *terminal = NULL;

	/* The launches go with their entries. */
	for (int i = 0; i < count; i++)
	{
		verdicts[i].member = members[i];
		verdicts[i].failure = members[i]->launch->failure;
	}
	all->failure = verdicts[0].failure;
	clean_up_attempts(members, count);
	for (int i = 0; i < count; i++)
	{
		judge(all->plan->policy, &verdicts[i]);
		if (terminal == NULL && !verdicts[i].classification.retryable)
			terminal = &verdicts[i];
	}
	if (terminal != NULL)
	{
		sbx_acquire_withdraw(all);
		sbx_failure_launch(terminal->member->access.provider->pool.id,
		                   &terminal->failure, terminal->classification.code);
	}
	pfree(verdicts);
}

/* --- the main line -------------------------------------------------------------------- */

static void
prepare(SbxAcquisition *member, const SbxProvider *provider)
{
	SbxTarget by_name = {NULL, member->id, member->launch_token};
	SbxOp *destroy;

	member->attempt++;
	sbx_session_access(provider, &member->access);
	member->launch = provider->kind->launch(&member->access.account, &member->input);
	destroy =
	    provider->kind->destroy(&member->access.account, &by_name, ABORT_DESTROY_MS);
	member->pending = sbx_cleanup_expect(member->id, provider->pool.id, member->launch,
	                                     destroy, member->access.credential);
	sbx_event_emit(SBX_EVENT_ATTEMPT_STARTED, member->id, provider->pool.id,
	               member->attempt, NULL, SBX_UNSET, SBX_UNSET);
}

static void
run_launches(const SbxAcquisitions *all, SbxAcquisition **members, int count)
{
	SbxProgress progress = {
	    .total = all->count, .done = all->count - count, .last = GetCurrentTimestamp()};
	SbxOp **launches = palloc(sizeof(SbxOp *) * count);

	for (int i = 0; i < count; i++)
		launches[i] = members[i]->launch;
	sbx_session_run_many(launches, count, all->count > 1 ? sbx_progress_tell : NULL,
	                     &progress);
	pfree(launches);
}

/* One attempt of each that is missing; afterwards these are the members that failed. */
static int
launch_missing(const SbxAcquisitions *all, const SbxProvider *provider,
               SbxAcquisition **members)
{
	int count = 0;
	int failed = 0;

	for (int i = 0; i < all->count; i++)
	{
		if (all->members[i].acquired)
			continue;
		CHECK_FOR_INTERRUPTS();
		members[count++] = &all->members[i];
		prepare(&all->members[i], provider);
	}
	run_launches(all, members, count);
	for (int i = 0; i < count; i++)
	{
		SbxAcquisition *member = members[i];

		member->acquired = member->launch->succeeded;
		if (member->acquired)
			sbx_event_emit(SBX_EVENT_ATTEMPT_SUCCEEDED, member->id, provider->pool.id,
			               member->attempt, NULL, SBX_UNSET, SBX_UNSET);
		else
			members[failed++] = member;
	}
	return failed;
}

static void
prepare_all(SbxAcquisitions *all)
{
	sbx_session_prepare_engines();
	for (int i = 0; i < all->count; i++)
	{
		build_input(all, &all->members[i]);
		initStringInfo(&all->members[i].failed);
	}
}

void
sbx_acquire(SbxAcquisitions *all)
{
	const SbxPlan *plan = all->plan;
	int attempts = plan->request->fallback_allowed ? plan->request->max_attempts : 1;
	SbxAcquisition **members = palloc(sizeof(SbxAcquisition *) * all->count);
	int missing = all->count;
	SbxCandidates candidates;

	prepare_all(all);
	sbx_candidates_start(&candidates, plan);
	for (int i = 0; i < attempts; i++)
	{
		const SbxProvider *provider = sbx_candidates_next(
		    &candidates, missing, all->count == 1 ? all->members[0].id : NULL);

		if (provider == NULL && i == 0)
			sbx_failure_capacity(candidates.skipped.data);
		if (provider == NULL)
			break;
		missing = launch_missing(all, provider, members);
		if (missing == 0)
			break;
		after_failures(all, members, missing);
	}
	if (missing > 0)
		give_up(all, members[0], &candidates);
	pfree(members);
}
