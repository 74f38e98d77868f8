/*
 * operations.h
 *		Every operation of a provider kind, made from an input, and its result looked at.
 */
#ifndef SBX_FUZZ_OPERATIONS_H
#define SBX_FUZZ_OPERATIONS_H

#include "fuzz.h"
#include "providers/provider.h"

/*
 * Known texts: what must not come out, and what must not be sent twice.  No id can hold
 * the key.
 */
#define FUZZ_KEY    "key!of!the!fuzzer"
#define FUZZ_SCRIPT "echo script-of-the-fuzzer-4711"
#define FUZZ_HOST   ".recorder.invalid"
#define FUZZ_NAME   "sbx_0123456789abcdef0123456789abcdef"
#define FUZZ_ID     "4f3c1d2e-8a77-4b3c-9d10-6f2f0c1a9b55"

typedef struct FuzzOperation
{
	const char *name;

	/* NULL = this kind has no such operation. */
	SbxOp *(*make)(const SbxProviderKind *kind, const SbxAccount *account,
	               FuzzInput *input);
	void (*look_at)(const void *result);
	bool launches; /* makes a sandbox */
	bool runs;     /* delivers FUZZ_SCRIPT, which must run once */
} FuzzOperation;

extern const FuzzOperation fuzz_operations[];
extern const int fuzz_operation_count;

/* Settings and credentials of a kind: what it needs, and every address. */
extern const SbxAccount *fuzz_account(const SbxProviderKind *kind);

#endif /* SBX_FUZZ_OPERATIONS_H */
