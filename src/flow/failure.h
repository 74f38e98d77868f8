/*
 * failure.h
 *		Failures of operations as errors of SQL.
 */
#ifndef SBX_FAILURE_H
#define SBX_FAILURE_H

#include "compat.h"

#include "net/op.h"

/*
 * Advice for people: one or two sentences made from the sanitised facts.  Never
 * NULL.
 */
extern char *sbx_failure_hint(const SbxFailure *failure);

/*
 * A launch that failed for good: SB005, DETAIL {"code","providerId","allocation"}.
 */
extern void sbx_failure_launch(const char *provider_id, const SbxFailure *failure)
    pg_attribute_noreturn();

/*
 * An operation on a sandbox that failed: SB008, DETAIL {"providerId","operation"},
 * and "code" where the adapter has one.
 */
extern void sbx_failure_runtime(const char *provider_id, const char *sbx_id,
                                const SbxOp *op) pg_attribute_noreturn();

#endif /* SBX_FAILURE_H */
