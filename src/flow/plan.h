/*
 * plan.h
 *		Where a request would go now: the same evidence for provisioning and for
 *		explaining.
 */
#ifndef SBX_PLAN_H
#define SBX_PLAN_H

#include "core/route.h"
#include "store/policy.h"
#include "store/registry.h"

typedef struct SbxPlan
{
	Jsonb *request_jsonb; /* with the policy's defaults */
	SbxRequest *request;
	SbxRouting routing;
	const SbxPolicy *policy;     /* NULL = none */
	const SbxRegistry *registry; /* NULL for pools that are not registered */
	SbxVerdict *verdicts;        /* the best first, see sbx_route_rank() */
	int count;
	int eligible;
	int *places; /* of the registered pools in the policy's order; NULL = no order */
	char **vanished; /* ids of the policy's order that are not registered */
	int vanished_count;
} SbxPlan;

/*
 * Judge every registered pool for a request.  Raises SB001, SB002, and SB013 for an
 * unknown policy.  The best `wanted` pools come first; explain asks for all of them
 * and every rejection.
 */
extern SbxPlan *sbx_plan_make(Jsonb *request, const char *policy, bool detached,
                              bool explain, int wanted);

/* wanted: as many as the request may attempt. */
#define SBX_WANTED_ATTEMPTS 0

/* The same for pools given as JSON: no registry, no credentials, no policy. */
extern SbxPlan *sbx_plan_make_for(Jsonb *request, Jsonb *providers);

/* The registered pool of a verdict. */
extern const SbxProvider *
sbx_plan_provider(const SbxPlan *plan, const SbxVerdict *verdict);

/* SB003 with every pool's rejections. */
extern void sbx_plan_refuse(const SbxPlan *plan) pg_attribute_noreturn();

/* All rejections of a verdict in words, for people. */
extern char *sbx_plan_words(const SbxPlan *plan, const SbxVerdict *verdict);

#endif /* SBX_PLAN_H */
