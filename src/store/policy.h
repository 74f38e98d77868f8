/*
 * policy.h
 *		sbx_policy rows: what a caller can plug into routing, by name.
 */
#ifndef SBX_POLICY_H
#define SBX_POLICY_H

#include "compat.h"

#include "utils/array.h"
#include "utils/jsonb.h"
#include "utils/timestamp.h"

/* Time to read an account's capacity, where nobody says otherwise. */
#define SBX_CAPACITY_TIMEOUT_MS 5000

/* What is built of a policy; NULL = the policy has none. */
typedef struct SbxPolicy
{
	char *name;
	ArrayType *provider_order; /* ids as text, the first one first */
	Interval *capacity_timeout;
	Jsonb *request_defaults;
	char *classifier; /* "schema.name" */
	Oid registered_by;
} SbxPolicy;

/* Called by _PG_init. */
extern void sbx_policy_define_gucs(void);

/*
 * The policy of a call: the one named by its argument, else the one of the setting
 * sbx_router.policy, else NULL.  Raises SB013 when there is none of that name.
 * Policies behave like catalogs: the newest committed state and one's own changes,
 * whatever the transaction's snapshot.  Allocated in the current context.
 */
extern SbxPolicy *sbx_policy_resolve(const char *argument);

/* The ids of its provider order, NULL and *count 0 without one. */
extern char **sbx_policy_order(const SbxPolicy *policy, int *count);

/* Time that each account may take to be read, in ms; policy may be NULL. */
extern int64 sbx_policy_capacity_ms(const SbxPolicy *policy);

/* Make a policy, or replace the whole row of that name. */
extern void sbx_policy_write(const SbxPolicy *policy);

/* Raises SB013 when there is none. */
extern void sbx_policy_delete(const char *name);

#endif /* SBX_POLICY_H */
