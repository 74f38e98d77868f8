/*
 * profile.h
 *		What a pool declares: capability profile and signals, from jsonb.
 */
#ifndef SBX_PROFILE_H
#define SBX_PROFILE_H

#include "core/request.h"

/*
 * A set of interned texts.  Most installations know fewer than 64 of them, so that
 * asking is a look at a word that stands in the pool itself.
 */
#define SBX_SET_BITS 64

typedef struct SbxSet
{
	uint64 bits;  /* numbers below SBX_SET_BITS */
	int *members; /* the others, sorted */
	int count;    /* of members */
} SbxSet;

/* Is a number from SBX_SET_BITS on in the set? */
extern bool sbx_set_contains_large(const SbxSet *set, int number);

/* -1, which no pool declares, is in no set. */
static inline bool
sbx_set_contains(const SbxSet *set, int number)
{
	if (number >= SBX_SET_BITS)
		return sbx_set_contains_large(set, number);
	return number >= 0 && (set->bits & (UINT64CONST(1) << number)) != 0;
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

#endif /* SBX_PROFILE_H */
