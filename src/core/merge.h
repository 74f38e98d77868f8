/*
 * merge.h
 *		A request over the defaults of a policy.
 */
#ifndef SBX_MERGE_H
#define SBX_MERGE_H

#include "compat.h"

#include "utils/jsonb.h"

/*
 * The request with the defaults filled in: objects are merged per key at every depth,
 * everything else is the request's where the request has the key, an explicit null
 * included (it takes a default away).  Either may be NULL.  A request that is no
 * object is returned as it is: whoever parses it says what is wrong.
 */
extern Jsonb *sbx_jsonb_merge(Jsonb *defaults, Jsonb *request);

#endif /* SBX_MERGE_H */
