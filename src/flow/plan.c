/*
 * plan.c
 *		Where a request would go now: the same evidence for provisioning and for
 *		explaining.
 */
#include "flow/plan.h"

#include <limits.h>

#include "core/merge.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "store/credential.h"
#include "utils/json.h"

/* --- judging -------------------------------------------------------------------- */

/* Stage by stage: a pool rejected by one stage is not asked by the next. */
static void
judge_registered(SbxPlan *plan)
{
	const SbxRegistry *registry = plan->registry;

	for (int i = 0; i < registry->count; i++)
	{
		SbxVerdict *verdict = &plan->verdicts[i];
		const SbxPool *pool = &registry->providers[i].pool;

		verdict->pool = pool;
		verdict->index = i;
		sbx_route_filter(&plan->routing, pool, verdict);
		if (verdict->eligible && sbx_credential_find(pool->id) == NULL)
			sbx_route_reject(&plan->routing, verdict, SBX_RULE_CREDENTIALS);
		if (verdict->eligible)
			sbx_route_filter_signals(&plan->routing, verdict);
		verdict->place = plan->places == NULL ? 0 : plan->places[i];
		if (verdict->eligible)
			sbx_route_filter_order(&plan->routing, verdict);
	}
}

/* explain may be asked of a plan that was made without: SB003 needs every code. */
static void
judge(SbxPlan *plan, bool explain, int wanted)
{
	plan->routing.explain = explain;
	plan->verdicts = palloc0(sizeof(SbxVerdict) * (plan->count + 1));
	judge_registered(plan);
	plan->eligible =
	    sbx_route_rank(&plan->routing, plan->verdicts, plan->count, wanted);
}

/* Places of pools in the policy's order; what is not registered any more is noted. */
static void
read_order(SbxPlan *plan)
{
	int count;
	char **ids = sbx_policy_order(plan->policy, &count);

	if (ids == NULL)
		return;
	plan->routing.ordered = true;
	plan->places = palloc0(sizeof(int) * (plan->count + 1));
	plan->vanished = palloc(sizeof(char *) * (count + 1));
	for (int i = 0; i < count; i++)
	{
		int index = sbx_registry_index(plan->registry, ids[i]);

		if (index >= 0)
			plan->places[index] = i + 1;
		else
			plan->vanished[plan->vanished_count++] = ids[i];
	}
}

SbxPlan *
sbx_plan_make(Jsonb *request, const char *policy, bool detached, bool explain,
              int wanted)
{
	SbxPlan *plan = palloc0(sizeof(SbxPlan));

	plan->policy = sbx_policy_resolve(policy);
	plan->registry = sbx_registry_get();
	plan->count = plan->registry->count;
	plan->request_jsonb =
	    plan->policy == NULL || plan->policy->request_defaults == NULL
	        ? request
	        : sbx_jsonb_merge(plan->policy->request_defaults, request);
	plan->request = sbx_request_parse(plan->request_jsonb, plan->registry->declared);
	sbx_request_check_routable(plan->request);
	plan->routing.request = plan->request;
	plan->routing.detached = detached;
	read_order(plan);

	/* What is full is skipped: any of them may be attempted. */
	if (wanted == SBX_WANTED_ATTEMPTS)
		wanted = plan->routing.ordered ? INT_MAX : plan->request->max_attempts;
	judge(plan, explain, wanted);
	return plan;
}

/* --- pools given as JSON ------------------------------------------------------------ */

static void
parse_pool(const SbxPath *path, const JsonbValue *object, SbxDeclared *declared,
           SbxPool *pool)
{
	static const char *const keys[] = {"id",   "enabled",  "capabilities", "signals",
	                                   "kind", "settings", "capacity"};
	JsonbValue member[lengthof(keys)];
	char *id;

	if (object->type == jbvNull)
		sbx_refuse(path, SBX_REASON_WRONG_TYPE, NULL);
	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	id = sbx_jsonb_text(SBX_MEMBER(path, "id"), &member[0]);
	if (id == NULL)
		sbx_refuse(SBX_MEMBER(path, "id"), SBX_REASON_MISSING, NULL);
	if (!sbx_is_provider_id(id))
		sbx_refuse(SBX_MEMBER(path, "id"), SBX_REASON_BAD_FORMAT, NULL);
	pool->id = id;
	pool->enabled = sbx_jsonb_bool(SBX_MEMBER(path, "enabled"), &member[1], true);
	sbx_profile_parse(path, &member[2], declared, &pool->profile);
	sbx_signals_parse(path, &member[3], &pool->signals);
}

static int
compare_pools(const void *a, const void *b)
{
	const SbxPool *const *left = a;
	const SbxPool *const *right = b;

	return strcmp((*left)->id, (*right)->id);
}

/* A duplicate is refused at the place of its second appearance. */
static void
refuse_duplicates(const SbxPool *pools, int count)
{
	const SbxPool **sorted = palloc(sizeof(SbxPool *) * (count + 1));
	const SbxPool *second = NULL;

	for (int i = 0; i < count; i++)
		sorted[i] = &pools[i];
	qsort(sorted, count, sizeof(SbxPool *), compare_pools);
	for (int i = 1; i < count; i++)
	{
		if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0)
		{
			const SbxPool *later = Max(sorted[i - 1], sorted[i]);

			second = second == NULL ? later : Min(second, later);
		}
	}
	if (second != NULL)
		sbx_error_document(SBX_DOCUMENT_PROVIDER,
		                   psprintf("providers[%d].id", (int) (second - pools)),
		                   SBX_REASON_DUPLICATE, NULL);
}

static SbxPool *
parse_pools(Jsonb *providers, SbxDeclared *declared, int *count)
{
	JsonbIterator *iterator = JsonbIteratorInit(&providers->root);
	JsonbValue item;
	SbxPool *pools;

	if (!JB_ROOT_IS_ARRAY(providers) || JB_ROOT_IS_SCALAR(providers))
		sbx_error_document(SBX_DOCUMENT_PROVIDER, "providers", SBX_REASON_WRONG_TYPE,
		                   NULL);
	pools = palloc0(sizeof(SbxPool) * (JB_ROOT_COUNT(providers) + 1));
	*count = 0;
	(void) JsonbIteratorNext(&iterator, &item, true);
	while (JsonbIteratorNext(&iterator, &item, true) != WJB_END_ARRAY)
	{
		const SbxPath path = {SBX_DOCUMENT_PROVIDER, NULL,
		                      psprintf("providers[%d]", *count)};

		CHECK_FOR_INTERRUPTS();
		parse_pool(&path, &item, declared, &pools[*count]);
		(*count)++;
	}
	refuse_duplicates(pools, *count);
	return pools;
}

SbxPlan *
sbx_plan_make_for(Jsonb *request, Jsonb *providers)
{
	SbxPlan *plan = palloc0(sizeof(SbxPlan));
	SbxDeclared *declared = sbx_declared_create(CurrentMemoryContext);
	SbxPool *pools = parse_pools(providers, declared, &plan->count);

	plan->request_jsonb = request;
	plan->request = sbx_request_parse(request, declared);
	sbx_request_check_routable(plan->request);
	plan->routing.request = plan->request;
	plan->routing.explain = true;
	plan->verdicts = palloc0(sizeof(SbxVerdict) * (plan->count + 1));
	for (int i = 0; i < plan->count; i++)
	{
		SbxVerdict *verdict = &plan->verdicts[i];

		verdict->pool = &pools[i];
		verdict->index = i;
		sbx_route_filter(&plan->routing, &pools[i], verdict);
		if (verdict->eligible)
			sbx_route_filter_signals(&plan->routing, verdict);
	}
	plan->eligible =
	    sbx_route_rank(&plan->routing, plan->verdicts, plan->count, plan->count);
	return plan;
}

/* --- the outcome --------------------------------------------------------------------- */

const SbxProvider *
sbx_plan_provider(const SbxPlan *plan, const SbxVerdict *verdict)
{
	return &plan->registry->providers[verdict->index];
}

static void
append_codes(StringInfo json, const SbxPlan *plan, const SbxVerdict *verdict)
{
	escape_json(json, verdict->pool->id);
	appendStringInfoString(json, ":[");
	for (int i = 0; i < verdict->rejection_count; i++)
	{
		if (i > 0)
			appendStringInfoChar(json, ',');
		escape_json(json, sbx_route_code(plan->request, &verdict->rejections[i]));
	}
	appendStringInfoChar(json, ']');
}

void
sbx_plan_refuse(const SbxPlan *plan)
{
	SbxPlan explained = *plan;
	StringInfoData json;
	StringInfoData detail;

	if (!plan->routing.explain)
		judge(&explained, true, plan->count);
	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < explained.count; i++)
	{
		if (i > 0)
			appendStringInfoChar(&json, ',');
		append_codes(&json, plan, &explained.verdicts[i]);
	}
	appendStringInfoChar(&json, '}');
	sbx_detail_open(&detail);
	sbx_detail_raw(&detail, "rejections", json.data);
	sbx_detail_close(&detail);
	ereport(
	    ERROR,
	    (errcode(SBX_ERRCODE_NO_ELIGIBLE_PROVIDER),
	     errmsg("no eligible provider for this request"),
	     errdetail_internal("%s", detail.data),
	     plan->count == 0
	         ? errhint("Use sbx_register_provider() to register a provider.")
	         : errhint(
	               "Use sbx_route_explain() to see the reason for each provider.")));
}

/* A registration that is enabled and still may not be used. */
static bool
is_unusable(const SbxPlan *plan, const SbxVerdict *verdict,
            const SbxRejection *rejection)
{
	return rejection->rule == SBX_RULE_PROVIDER_DISABLED && plan->registry != NULL &&
	       sbx_plan_provider(plan, verdict)->enabled;
}

char *
sbx_plan_words(const SbxPlan *plan, const SbxVerdict *verdict)
{
	StringInfoData words;

	initStringInfo(&words);
	for (int i = 0; i < verdict->rejection_count; i++)
	{
		const SbxRejection *rejection = &verdict->rejections[i];

		if (words.len > 0)
			appendStringInfoString(&words, "; ");
		appendStringInfoString(
		    &words, is_unusable(plan, verdict, rejection)
		                ? "registration is not usable: its registrar is no superuser"
		                : sbx_route_words(plan->request, verdict->pool, rejection));
	}
	return words.data;
}
