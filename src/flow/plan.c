/*
 * plan.c
 *		Where a request would go now: the same evidence for provisioning and for
 *		explaining.
 */
#include "flow/plan.h"

#include "lib/stringinfo.h"
#include "store/credential.h"
#include "utils/json.h"

/* Every capability name that some pool declares, enabled or not. */
static SbxNames
declared_capabilities(const SbxProvider *providers, int count)
{
	SbxNames declared = {NULL, 0};
	const char **names;
	int total = 0;

	for (int i = 0; i < count; i++)
		total += providers[i].pool.profile.capability_count;
	names = palloc(sizeof(char *) * (total + 1));
	for (int i = 0; i < count; i++)
	{
		const SbxProfile *profile = &providers[i].pool.profile;

		for (int j = 0; j < profile->capability_count; j++)
			names[declared.count++] = profile->capabilities[j];
	}
	declared.names = names;
	return declared;
}

/* Stage by stage: a pool rejected by one stage is not asked by the next. */
static void
judge(const SbxPlan *plan, int i)
{
	SbxVerdict *verdict = &plan->verdicts[i];
	const SbxPool *pool = &plan->providers[i].pool;

	verdict->pool = pool;
	verdict->index = i;
	sbx_route_filter(plan->request, pool, verdict);
	if (sbx_verdict_eligible(verdict) && sbx_credential_find(pool->id) == NULL)
		sbx_route_reject(verdict, "CREDENTIALS");
	if (sbx_verdict_eligible(verdict))
		sbx_route_filter_signals(verdict);
}

SbxPlan *
sbx_plan_make(Jsonb *request, const char *policy)
{
	SbxPlan *plan = palloc0(sizeof(SbxPlan));
	SbxNames declared;

	plan->providers = sbx_registry_load(&plan->count);
	for (int i = 0; i < plan->count; i++)
		plan->providers[i].pool.enabled &= sbx_registry_is_usable(&plan->providers[i]);
	declared = declared_capabilities(plan->providers, plan->count);
	plan->request = sbx_request_parse(request, &declared);
	if (policy != NULL)
		sbx_error_not_built("policy");

	plan->verdicts = palloc0(sizeof(SbxVerdict) * (plan->count + 1));
	for (int i = 0; i < plan->count; i++)
		judge(plan, i);
	plan->eligible = sbx_route_rank(plan->request, plan->verdicts, plan->count);
	return plan;
}

const SbxProvider *
sbx_plan_provider(const SbxPlan *plan, const SbxVerdict *verdict)
{
	return &plan->providers[verdict->index];
}

static char *
rejections_json(const SbxPlan *plan)
{
	StringInfoData json;

	initStringInfo(&json);
	appendStringInfoChar(&json, '{');
	for (int i = 0; i < plan->count; i++)
	{
		ListCell *cell;

		if (i > 0)
			appendStringInfoChar(&json, ',');
		escape_json(&json, plan->verdicts[i].pool->id);
		appendStringInfoString(&json, ":[");
		foreach (cell, plan->verdicts[i].rejections)
		{
			if (cell != list_head(plan->verdicts[i].rejections))
				appendStringInfoChar(&json, ',');
			escape_json(&json, lfirst(cell));
		}
		appendStringInfoChar(&json, ']');
	}
	appendStringInfoChar(&json, '}');
	return json.data;
}

void
sbx_plan_refuse(const SbxPlan *plan)
{
	StringInfoData detail;

	sbx_detail_open(&detail);
	sbx_detail_raw(&detail, "rejections", rejections_json(plan));
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

/* The part of a code after its colon. */
static const char *
subject(const char *code)
{
	const char *colon = strchr(code, ':');

	return colon == NULL ? "" : colon + 1;
}

char *
sbx_plan_describe(const SbxPlan *plan, const SbxVerdict *verdict, const char *code)
{
	const SbxResources *asked = &plan->request->resources;
	const SbxResources *has = &verdict->pool->profile.resources;

	if (strcmp(code, "PROVIDER_ID") == 0)
		return psprintf("request asks for provider \"%s\"", plan->request->provider_id);
	if (strcmp(code, "PROVIDER_DISABLED") == 0)
		return pstrdup(!sbx_registry_is_usable(sbx_plan_provider(plan, verdict))
		                   ? "registration is not usable: its registrar is no superuser"
		                   : "registration is disabled");
	if (strncmp(code, "CAPABILITY_REQUIRED:", 20) == 0)
		return psprintf("does not declare capability \"%s\"", subject(code));
	if (strncmp(code, "CAPABILITY_FORBIDDEN:", 21) == 0)
		return psprintf("declares forbidden capability \"%s\"", subject(code));
	if (strcmp(code, "RESOURCE_CPU") == 0)
		return psprintf("declares %g vCPU, request asks for %g", has->cpu, asked->cpu);
	if (strcmp(code, "RESOURCE_MEMORY") == 0)
		return psprintf("declares " INT64_FORMAT
		                " MiB of memory, request asks for " INT64_FORMAT,
		                has->memory_mb, asked->memory_mb);
	if (strcmp(code, "RESOURCE_DISK") == 0)
		return psprintf("declares " INT64_FORMAT
		                " MiB of disk, request asks for " INT64_FORMAT,
		                has->disk_mb, asked->disk_mb);
	if (strcmp(code, "RESOURCE_GPU") == 0)
		return psprintf("declares a GPU count of " INT64_FORMAT
		                ", request asks for " INT64_FORMAT,
		                has->gpu, asked->gpu);
	if (strcmp(code, "CREDENTIALS") == 0)
		return pstrdup("no credential in this session");
	if (strcmp(code, "AVAILABILITY") == 0)
		return pstrdup("signals say that it is not available");
	return pstrdup(code);
}
