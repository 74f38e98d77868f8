/*
 * cleanup.h
 *		What was launched and is not committed yet: destroyed when the
 *		(sub)transaction that launched it does not commit.
 */
#ifndef SBX_CLEANUP_H
#define SBX_CLEANUP_H

#include "compat.h"

#include "net/op.h"
#include "store/credential.h"

/* One acquisition of the current transaction. */
typedef struct SbxPending SbxPending;

/*
 * Enter an acquisition, before the first byte of it is sent.  Takes over both
 * operations: the launch, which learns the provider's id, and a destroy by unique
 * name, made now because nothing can be made during abort.  Pins the credential.
 * NULL operations mean out of memory: raises 53200.
 */
extern SbxPending *
sbx_cleanup_expect(const char *sbx_id, const char *provider_id, SbxOp *launch,
                   SbxOp *destroy, SbxCredential *credential);

/* The acquisition of this transaction with that id; NULL when there is none. */
extern SbxPending *sbx_cleanup_find(const char *sbx_id);

/* The sandbox has this id at the provider now. */
extern void sbx_cleanup_moved(SbxPending *pending, const char *sandbox_id);

/* Nothing is or can be left at the provider: drop the entry. */
extern void sbx_cleanup_resolved(SbxPending *pending);

/* Called at the start of every SQL function: a new statement, a new budget. */
extern void sbx_cleanup_new_call(void);

#endif /* SBX_CLEANUP_H */
