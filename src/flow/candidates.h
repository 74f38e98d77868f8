/*
 * candidates.h
 *		The pools of a plan, one after the other: by rank, or in the policy's order as
 *		far as they have room.
 */
#ifndef SBX_CANDIDATES_H
#define SBX_CANDIDATES_H

#include "compat.h"

#include "flow/plan.h"
#include "lib/stringinfo.h"

typedef struct SbxCandidates
{
	const SbxPlan *plan;
	int next;               /* index of the verdict that comes next */
	StringInfoData skipped; /* members of a JSON object: "id":"EXHAUSTED" */
} SbxCandidates;

extern void sbx_candidates_start(SbxCandidates *candidates, const SbxPlan *plan);

/*
 * The next pool to launch so many sandboxes on; NULL = none is left.  Under a policy's
 * order its capacity has been read just now and they fit; the ones that were passed over
 * are noted as skipped, with an event that names sbx_id, which may be NULL.
 *
 * The first one is read alone: mostly it has room.  If it has none, all the others are
 * read at once.
 */
extern const SbxProvider *
sbx_candidates_next(SbxCandidates *candidates, int count, const char *sbx_id);

/* What sbx_route_explain shows of every eligible pool; NULL without an order. */
extern SbxAdmission *sbx_candidates_admissions(const SbxPlan *plan, int count);

#endif /* SBX_CANDIDATES_H */
