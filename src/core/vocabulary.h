/*
 * vocabulary.h
 *		The words of the request language: capability names and enumerations.
 */
#ifndef SBX_VOCABULARY_H
#define SBX_VOCABULARY_H

#include "compat.h"

typedef enum SbxStrategy
{
	SBX_STRATEGY_COST,
	SBX_STRATEGY_LATENCY,
	SBX_STRATEGY_RELIABILITY,
	SBX_STRATEGY_BALANCED,
	SBX_STRATEGY_COUNT
} SbxStrategy;

typedef enum SbxLatencyObjective
{
	SBX_OBJECTIVE_COLD_START,
	SBX_OBJECTIVE_READY,
	SBX_OBJECTIVE_COUNT
} SbxLatencyObjective;

extern const char *const sbx_strategy_names[SBX_STRATEGY_COUNT];
extern const char *const sbx_objective_names[SBX_OBJECTIVE_COUNT];
/* The index of "unknown", which a pool may say and no request may ask for. */
#define SBX_ISOLATION_UNKNOWN 3

extern const char *const sbx_isolation_names[];
extern const int sbx_isolation_count;
extern const char *const sbx_egress_names[];
extern const int sbx_egress_count;
extern const char *const sbx_fallback_names[]; /* the default first */
extern const int sbx_fallback_count;
extern const char *const sbx_authority_names[]; /* the one that routes first */
extern const int sbx_authority_count;
extern const char *const sbx_durability_names[];
extern const int sbx_durability_count;

/* Capability names that every installation knows; pools may declare others. */
extern const char *const sbx_capability_names[];
extern const int sbx_capability_count;

/* What a pool without a declaration advertises. */
extern const char *const sbx_default_capabilities[];
extern const int sbx_default_capability_count;

/* Is it [A-Za-z][A-Za-z0-9]{0,62} ?  The rule for capability names. */
extern bool sbx_is_capability_name(const char *name);

/* Is it [A-Za-z0-9][A-Za-z0-9._-]{0,62} ?  The rule for provider ids. */
extern bool sbx_is_provider_id(const char *id);

/* Is it sbx_ and 32 lower-case hex digits? */
extern bool sbx_is_sandbox_id(const char *id);

/* "sbx_", 32 hex digits, and the terminating NUL. */
#define SBX_ID_LENGTH 36

#endif /* SBX_VOCABULARY_H */
