/*
 * profile.h
 *		What a pool declares: capability profile and signals, from jsonb.
 */
#ifndef SBX_PROFILE_H
#define SBX_PROFILE_H

#include "core/request.h"

typedef struct SbxProfile
{
	char **capabilities;
	int capability_count;
	SbxResources resources; /* absent dimension = 0 */
} SbxProfile;

typedef struct SbxSignals
{
	double estimated_cost;
	double cold_start_latency_ms;
	double ready_latency_ms;
	double completion_rate; /* completionWithinBudgetRate, 0..1 */
	bool available;
} SbxSignals;

/*
 * Parse and validate a registration's documents; NULL means not given, which
 * gives the defaults.  Raise SB013 naming the path below "provider".
 */
extern void sbx_profile_parse(Jsonb *jsonb, SbxProfile *profile);
extern void sbx_signals_parse(Jsonb *jsonb, SbxSignals *signals);

/* Validate only: nothing reads a pool's capacity yet. */
extern void sbx_capacity_check(Jsonb *jsonb);

#endif /* SBX_PROFILE_H */
