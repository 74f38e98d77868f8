/*
 * sandbox.h
 *		A sandbox that exists, and one operation on it.
 */
#ifndef SBX_SANDBOX_H
#define SBX_SANDBOX_H

#include "flow/session.h"
#include "store/mapping.h"

/* All that is needed to talk to it. */
typedef struct SbxSandbox
{
	SbxMapping *mapping;
	SbxAccess access;
	SbxTarget target;
	const SbxProviderKind *kind;
	bool
	    longest_script; /* the script of a run has as much time as the kind gives one */
} SbxSandbox;

/* Raises SB010, SB011, SB013, 42501. */
extern void sbx_sandbox_open(const char *id, SbxSandbox *sandbox);

/*
 * Raises SB012 unless the kind has the operation.  function is e.g. "sbx_start()".
 */
extern void sbx_sandbox_check_supported(const SbxProviderKind *kind, bool supported,
                                        const char *function);

/*
 * Run an operation to its end and return it; raises SB008 when it failed.  What it
 * says about the sandbox's id at the provider is kept for the abort of this
 * transaction, if that is to destroy the sandbox.
 */
extern SbxOp *sbx_sandbox_run(SbxSandbox *sandbox, SbxOp *op);

/* "starting", "started", ... */
extern const char *sbx_sandbox_state_name(SbxSandboxState state);

#endif /* SBX_SANDBOX_H */
