/*
 * classify.h
 *		What a failed launch means: the answer of a classifier, and the one we ship.
 */
#ifndef SBX_CLASSIFY_H
#define SBX_CLASSIFY_H

#include "compat.h"

#include "utils/jsonb.h"

/* What stands where nothing better is known. */
#define SBX_CODE_OUTCOME_UNKNOWN "PROVIDER_LAUNCH_OUTCOME_UNKNOWN"

/* A code is [A-Z][A-Z0-9_]{0,63}; the longest one. */
#define SBX_MAX_CODE 64

extern bool sbx_is_code(const char *text, int length);

typedef struct SbxClassification
{
	char code[SBX_MAX_CODE + 1];
	bool retryable;
} SbxClassification;

/*
 * The answer {"code","retryable"} of a classifier; NULL is the answer of one that has
 * none.  Only a boolean true is retryable, and a code that is none of ours becomes
 * SBX_CODE_OUTCOME_UNKNOWN.  Whether the failure may be retried at all is not decided
 * here.
 */
extern void sbx_classification_read(Jsonb *answer, SbxClassification *classification);

/*
 * The shipped classifier: of the failures that prove that nothing was allocated, a
 * refusal for capacity and a request that never left are retryable, nothing else.
 */
extern void sbx_classify_proven(Jsonb *failure, SbxClassification *classification);

#endif /* SBX_CLASSIFY_H */
