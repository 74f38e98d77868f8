/*
 * route.h
 *		Filter and rank: which pool gets the request, and why the others do not.
 */
#ifndef SBX_ROUTE_H
#define SBX_ROUTE_H

#include "core/profile.h"

/* What a kind can carry in a launch; only registered pools have one. */
typedef struct SbxLaunchAbility
{
	bool create_timeout;
	bool detached;
	int max_env;    /* variables; 0 = none at all, -1 = no limit */
	int max_labels; /* the caller's, and one for a name if it has one; -1 = no limit */

	/* One of them, in UTF-8; NULL = any. */
	bool (*carries_variable)(const char *name, const char *value);
	bool (*carries_label)(const char *key, const char *value);
} SbxLaunchAbility;

/* A pool as routing sees it. */
typedef struct SbxPool
{
	const char *id;
	bool enabled;
	const SbxLaunchAbility *launch; /* NULL = not asked about */
	SbxProfile profile;
	SbxSignals signals;
} SbxPool;

/* The rules, in the order in which a pool's rejections are reported. */
typedef enum SbxRule
{
	SBX_RULE_PROVIDER_ID,
	SBX_RULE_PROVIDER_DISABLED,
	SBX_RULE_LAUNCH_FIELD, /* subject: SbxLaunchField */
	SBX_RULE_DETACHED_LAUNCH,
	SBX_RULE_CAPABILITY_REQUIRED, /* subject: index into the request's list */
	SBX_RULE_CAPABILITY_FORBIDDEN,
	SBX_RULE_RESOURCE_CPU,
	SBX_RULE_RESOURCE_MEMORY,
	SBX_RULE_RESOURCE_DISK,
	SBX_RULE_RESOURCE_GPU,
	SBX_RULE_IMAGE_IDENTITY,
	SBX_RULE_IMAGE_BINARIES,
	SBX_RULE_ISOLATION,
	SBX_RULE_EGRESS,
	SBX_RULE_STATE_DURABILITY,
	SBX_RULE_RESTRICTION,
	SBX_RULE_NETWORK,
	SBX_RULE_TIMEOUT_SEMANTICS,
	SBX_RULE_TIMEOUT_GRANULARITY,
	SBX_RULE_SANDBOX_LIFETIME,
	SBX_RULE_REGION,
	SBX_RULE_CREDENTIALS,
	SBX_RULE_AVAILABILITY,
	SBX_RULE_READY_LATENCY,
	SBX_RULE_PROVIDER_ORDER
} SbxRule;

typedef enum SbxLaunchField
{
	SBX_LAUNCH_ENV,
	SBX_LAUNCH_LABELS,
	SBX_LAUNCH_CREATE_TIMEOUT
} SbxLaunchField;

typedef struct SbxRejection
{
	uint8 rule;
	uint8 subject;
} SbxRejection;

/* What routing decided about one pool. */
typedef struct SbxVerdict
{
	const SbxPool *pool;
	int index; /* which pool of the array */
	bool eligible;
	int position;             /* 1 is best; 0 = not eligible, or not asked for */
	SbxRejection *rejections; /* all that apply, if they were asked for */
	int rejection_count;
	int place; /* in the policy's order, from 1; 0 = it has none */
	double score;
	double cost_part;
	double latency_part;
	double reliability_part;
} SbxVerdict;

/* How a decision is made. */
typedef struct SbxRouting
{
	const SbxRequest *request;
	bool detached;
	bool ordered; /* by the verdicts' places, and not by the request's strategy */
	bool explain; /* every rejection of every pool, not just whether there is one */
} SbxRouting;

/* Declared facts: fills verdict->eligible and, when explaining, the rejections. */
extern void
sbx_route_filter(const SbxRouting *routing, const SbxPool *pool, SbxVerdict *verdict);

/* A rejection found by somebody else (credentials). */
extern void
sbx_route_reject(const SbxRouting *routing, SbxVerdict *verdict, SbxRule rule);

/* Signals: availability, and time to ready. */
extern void sbx_route_filter_signals(const SbxRouting *routing, SbxVerdict *verdict);

/* An order of the policy's is the only way to a pool. */
extern void sbx_route_filter_order(const SbxRouting *routing, SbxVerdict *verdict);

/*
 * Order verdicts: the best `wanted` eligible ones come first, in order, with
 * position, and score and parts unless the policy has an order.  When explaining, all do, followed by the rejected by
 * id.  Returns how many are eligible.
 */
extern int
sbx_route_rank(const SbxRouting *routing, SbxVerdict *verdicts, int count, int wanted);

/* Do two eligible pools differ in nothing but their ids? */
extern bool
sbx_route_tied(const SbxRequest *request, const SbxVerdict *a, const SbxVerdict *b);

/* "RESOURCE_CPU", "IMAGE_BINARIES:node", ... */
extern char *sbx_route_code(const SbxRequest *request, const SbxRejection *rejection);

/* The same in words, for people; untranslated. */
extern char *sbx_route_words(const SbxRequest *request, const SbxPool *pool,
                             const SbxRejection *rejection);

#endif /* SBX_ROUTE_H */
