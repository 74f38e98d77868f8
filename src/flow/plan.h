/*
 * plan.h
 *		Where a request would go now: the same evidence for provisioning and for
 *		explaining.
 */
#ifndef SBX_PLAN_H
#define SBX_PLAN_H

#include "core/route.h"
#include "store/registry.h"

typedef struct SbxPlan
{
	SbxRequest *request;
	SbxProvider *providers;
	int count;
	SbxVerdict *verdicts; /* eligible ones first, then the rejected by id */
	int eligible;
} SbxPlan;

/*
 * Parse the request and judge every registered pool.  Raises SB001 and 0A000.
 * policy names a row of policies, none of which exist yet: non-NULL is 0A000.
 */
extern SbxPlan *sbx_plan_make(Jsonb *request, const char *policy);

/* The pool of a verdict. */
extern const SbxProvider *
sbx_plan_provider(const SbxPlan *plan, const SbxVerdict *verdict);

/* SB003 with every pool's rejections. */
extern void sbx_plan_refuse(const SbxPlan *plan) pg_attribute_noreturn();

/* One rejection in words, for people. */
extern char *
sbx_plan_describe(const SbxPlan *plan, const SbxVerdict *verdict, const char *code);

#endif /* SBX_PLAN_H */
