/*
 * route.h
 *		Filter and rank: which pool gets the request, and why the others do not.
 */
#ifndef SBX_ROUTE_H
#define SBX_ROUTE_H

#include "core/profile.h"

#include "nodes/pg_list.h"

/* A pool as routing sees it. */
typedef struct SbxPool
{
	const char *id;
	bool enabled;
	SbxProfile profile;
	SbxSignals signals;
} SbxPool;

/* What routing decided about one pool. */
typedef struct SbxVerdict
{
	const SbxPool *pool;
	int index;        /* the caller's own: which pool of its array */
	int position;     /* 1 is best; 0 = not eligible */
	List *rejections; /* of char *, in the order of the rules */
	double score;
	double cost_part;
	double latency_part;
	double reliability_part;
} SbxVerdict;

#define sbx_verdict_eligible(verdict) ((verdict)->rejections == NIL)

/* Declared facts only: every code that applies, in the order of the rules. */
extern void
sbx_route_filter(const SbxRequest *request, const SbxPool *pool, SbxVerdict *verdict);

/* A rejection found by somebody else (credentials). */
extern void sbx_route_reject(SbxVerdict *verdict, const char *code);

/* Signals: rejects a pool that says it is not available. */
extern void sbx_route_filter_signals(SbxVerdict *verdict);

/* Do two eligible pools differ in nothing but their ids? */
extern bool
sbx_route_tied(const SbxRequest *request, const SbxVerdict *a, const SbxVerdict *b);

/*
 * Order verdicts: eligible ones first by position, then the rejected by id.
 * Fills position, score and parts of the eligible.  Returns how many are
 * eligible.
 */
extern int sbx_route_rank(const SbxRequest *request, SbxVerdict *verdicts, int count);

#endif /* SBX_ROUTE_H */
