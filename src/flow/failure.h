/*
 * failure.h
 *		Failures of operations as errors of SQL.
 */
#ifndef SBX_FAILURE_H
#define SBX_FAILURE_H

#include "compat.h"

#include "net/op.h"

/*
 * A launch that failed for good: SB005, DETAIL {"code","providerId","allocation"}.
 * code is the classifier's.
 */
extern void sbx_failure_launch(const char *provider_id, const SbxFailure *failure,
                               const char *code) pg_attribute_noreturn();

/*
 * No candidate or attempt is left: SB006, DETAIL {"attempts":[{"providerId","code"}],
 * "skipped":{"id":"EXHAUSTED"}}.  attempts are the members of that array, skipped those
 * of that object; failure is the last one.
 */
extern void sbx_failure_exhausted(const char *attempts, const char *skipped, int count,
                                  const SbxFailure *failure) pg_attribute_noreturn();

/*
 * No account has room, and nothing was launched: SB004, DETAIL {"code":
 * "PROVIDER_CAPACITY_EXHAUSTED","rejections":{"id":"EXHAUSTED"}}.
 */
extern void sbx_failure_capacity(const char *rejections) pg_attribute_noreturn();

/* The message alone of the error that follows. */
extern char *sbx_failure_message(const SbxOp *op, const char *sbx_id);

/*
 * An operation on a sandbox that failed: SB008, DETAIL {"providerId","operation"},
 * and "code" where the adapter has one.  sbx_id is NULL where it is about no single one.
 * longest_script: more time cannot be given to a script there.
 */
extern void
sbx_failure_runtime(const char *provider_id, const char *sbx_id, const SbxOp *op,
                    bool longest_script) pg_attribute_noreturn();

#endif /* SBX_FAILURE_H */
