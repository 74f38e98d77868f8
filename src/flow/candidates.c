/*
 * candidates.c
 *		The pools of a plan, one after the other: by rank, or in the policy's order as
 *		far as they have room.
 */
#include "flow/candidates.h"

#include "flow/capacity.h"
#include "observe/event.h"
#include "utils/json.h"

void
sbx_candidates_start(SbxCandidates *candidates, const SbxPlan *plan)
{
	candidates->plan = plan;
	candidates->next = 0;
	initStringInfo(&candidates->skipped);
}

/* Do so many fit into each of these pools, by what is read now? */
static SbxAdmission *
read_admissions(const SbxPlan *plan, int first, int end, int count)
{
	int pools = end - first;
	const SbxProvider **providers = palloc(sizeof(SbxProvider *) * (pools + 1));
	SbxMeasurement *measurements = palloc0(sizeof(SbxMeasurement) * (pools + 1));
	SbxAdmission *admissions = palloc(sizeof(SbxAdmission) * (pools + 1));

	for (int i = 0; i < pools; i++)
		providers[i] = sbx_plan_provider(plan, &plan->verdicts[first + i]);
	sbx_capacity_read(providers, pools, sbx_policy_capacity_ms(plan->policy),
	                  measurements);
	for (int i = 0; i < pools; i++)
		admissions[i] = sbx_admission_decide(&measurements[i], plan->request, count);
	return admissions;
}

static void
skip(SbxCandidates *candidates, const char *id, SbxAdmission admission,
     const char *sbx_id)
{
	const char *code = sbx_admission_names[admission];

	if (candidates->skipped.len > 0)
		appendStringInfoChar(&candidates->skipped, ',');
	escape_json(&candidates->skipped, id);
	appendStringInfo(&candidates->skipped, ":\"%s\"", code);
	sbx_event_emit(SBX_EVENT_CAPACITY_SKIPPED, sbx_id, id, 0, code, SBX_UNSET,
	               SBX_UNSET);
}

/* The first with room of those from next up to end; NULL = all of these are skipped. */
static const SbxProvider *
first_with_room(SbxCandidates *candidates, int end, int count, const char *sbx_id)
{
	const SbxPlan *plan = candidates->plan;
	SbxAdmission *admissions = read_admissions(plan, candidates->next, end, count);

	for (int i = 0; candidates->next < end; i++)
	{
		const SbxVerdict *verdict = &plan->verdicts[candidates->next++];

		if (admissions[i] == SBX_ADMIT)
			return sbx_plan_provider(plan, verdict);
		skip(candidates, verdict->pool->id, admissions[i], sbx_id);
	}
	return NULL;
}

const SbxProvider *
sbx_candidates_next(SbxCandidates *candidates, int count, const char *sbx_id)
{
	const SbxPlan *plan = candidates->plan;
	const SbxProvider *found;

	if (candidates->next == plan->eligible)
		return NULL;
	if (!plan->routing.ordered)
		return sbx_plan_provider(plan, &plan->verdicts[candidates->next++]);
	found = first_with_room(candidates, candidates->next + 1, count, sbx_id);
	if (found == NULL && candidates->next < plan->eligible)
		found = first_with_room(candidates, plan->eligible, count, sbx_id);
	return found;
}

SbxAdmission *
sbx_candidates_admissions(const SbxPlan *plan, int count)
{
	return plan->routing.ordered ? read_admissions(plan, 0, plan->eligible, count)
	                             : NULL;
}
