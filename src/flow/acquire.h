/*
 * acquire.h
 *		From a plan to sandboxes that exist: attempts, fallback, and what a failure
 *		leaves behind.
 */
#ifndef SBX_ACQUIRE_H
#define SBX_ACQUIRE_H

#include "compat.h"

#include "flow/cleanup.h"
#include "flow/plan.h"
#include "flow/session.h"
#include "lib/stringinfo.h"

/* One sandbox that is wanted. */
typedef struct SbxAcquisition
{
	char *id;
	char *launch_token; /* NULL = the id is fresh, so nobody else can have it */
	SbxLaunchInput input;
	bool acquired;

	/* The attempt under way. */
	int attempt; /* from 1 */
	SbxAccess access;
	SbxPending *pending;
	SbxOp *launch; /* owned by pending */

	StringInfoData failed; /* earlier attempts, as members of a JSON array */
} SbxAcquisition;

/* Those of one call, by one plan: all of them or none. */
typedef struct SbxAcquisitions
{
	bool detached; /* do not wait until they are ready */
	SbxPlan *plan;
	SbxAcquisition *members;
	int count;
	SbxFailure failure; /* of the last attempt that failed */
} SbxAcquisitions;

/* Called by _PG_init. */
extern void sbx_acquire_define_gucs(void);

/* Raises 54000 when the statement launches more than the setting allows with these. */
extern void sbx_acquire_admit(int count);

/*
 * Launch all of them at once, each on the best candidate and on the next ones where
 * nothing can have been allocated and the policy's classifier says so.  The ids are
 * locked.  Raises SB005 when a launch failed for good, SB006 when no candidate or attempt
 * is left, after the others were destroyed, and SB004 when no account has room for them;
 * SB011 and 42501 as sbx_session_access.
 */
extern void sbx_acquire(SbxAcquisitions *all);

/* Destroy those that exist, while the transaction lives. */
extern void sbx_acquire_withdraw(SbxAcquisitions *all);

#endif /* SBX_ACQUIRE_H */
