/*
 * profile.h
 *		What a pool declares: capability profile and signals, from jsonb.
 */
#ifndef SBX_PROFILE_H
#define SBX_PROFILE_H

#include "core/request.h"

/*
 * A set of interned texts.  Most installations know fewer than 64 of them, so that a
 * set is one word, which stands where the pool stands; the rest is a sorted array.
 */
#define SBX_SET_BITS 64

typedef struct SbxSet
{
	uint64 bits;  /* numbers below SBX_SET_BITS */
	int *members; /* the others */
	int count;    /* of members */
} SbxSet;

static inline bool
sbx_set_contains(const SbxSet *set, int number)
{
	if (number < 0)
		return false;
	if (number < SBX_SET_BITS)
		return (set->bits & (UINT64CONST(1) << number)) != 0;
	for (int i = 0; i < set->count && set->members[i] <= number; i++)
	{
		if (set->members[i] == number)
			return true;
	}
	return false;
}

/* capabilities.timeout.maxSandboxLifetimeMs */
#define SBX_LIFETIME_UNKNOWN   (-1)         /* absent */
#define SBX_LIFETIME_UNBOUNDED PG_INT64_MAX /* JSON null */

typedef struct SbxProfile
{
	SbxSet capabilities;
	SbxResources resources; /* absent dimension = 0 */
	SbxSet regions;
	int image_number; /* -1 = undeclared */
	SbxSet binaries;
	int isolation; /* -1 = undeclared; may be SBX_ISOLATION_UNKNOWN */
	int egress;
	int durability;
	SbxSet restrictions;
	SbxSet claims;  /* of network: keys with their values */
	Jsonb *network; /* NULL = none; a copy in the pool's context */
	SbxSet semantics;
	int64 granularity_ms; /* -1 = undeclared */
	int64 max_lifetime_ms;
} SbxProfile;

typedef struct SbxSignals
{
	double estimated_cost;
	double cold_start_latency_ms;
	double ready_latency_ms;
	double completion_rate; /* completionWithinBudgetRate, 0..1 */
	bool available;
	Jsonb *document; /* all of them, defaults included: what explain shows */
} SbxSignals;

/*
 * Parse and validate a pool's documents; an absent value (jbvNull) gives the
 * defaults.  path is the pool's own ("provider", "providers[0]").  Raise SB013.
 * What is kept is allocated in the current memory context; texts are interned.
 */
extern void sbx_profile_parse(const SbxPath *path, const JsonbValue *document,
                              SbxDeclared *declared, SbxProfile *profile);
extern void
sbx_signals_parse(const SbxPath *path, const JsonbValue *document, SbxSignals *signals);

/* Validate only: nothing reads a pool's capacity yet. */
extern void sbx_capacity_check(const SbxPath *path, const JsonbValue *document);

#endif /* SBX_PROFILE_H */
