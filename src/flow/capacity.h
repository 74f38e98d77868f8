/*
 * capacity.h
 *		How much room accounts have: read fresh, all at once.
 */
#ifndef SBX_FLOW_CAPACITY_H
#define SBX_FLOW_CAPACITY_H

#include "compat.h"

#include "core/admission.h"
#include "store/registry.h"

/*
 * One measurement for each of them.  Accounts are read at the same time, each within that
 * time; custom readers are SQL functions and run one after the other before that.  What
 * goes wrong with an account is its reason to be unknown.  Raises only what the server
 * raises: cancels, lack of memory, a CA file that cannot be read.
 */
extern void sbx_capacity_read(const SbxProvider *const *providers, int count,
                              int64 timeout_ms, SbxMeasurement *measurements);

#endif /* SBX_FLOW_CAPACITY_H */
