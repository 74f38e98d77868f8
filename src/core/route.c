/*
 * route.c
 *		Filter and rank: which pool gets the request, and why the others do not.
 */
#include "core/route.h"

/* Weights of the balanced strategy; they add up to 1. */
#define COST_WEIGHT        0.35
#define LATENCY_WEIGHT     0.25
#define RELIABILITY_WEIGHT 0.40

static bool
declares(const SbxProfile *profile, const char *capability)
{
	for (int i = 0; i < profile->capability_count; i++)
	{
		if (strcmp(profile->capabilities[i], capability) == 0)
			return true;
	}
	return false;
}

static void
filter_capabilities(const SbxRequest *request, const SbxProfile *profile,
                    SbxVerdict *verdict)
{
	for (int i = 0; i < request->required_count; i++)
	{
		if (!declares(profile, request->required[i]))
			sbx_route_reject(verdict,
			                 psprintf("CAPABILITY_REQUIRED:%s", request->required[i]));
	}
	for (int i = 0; i < request->forbidden_count; i++)
	{
		if (declares(profile, request->forbidden[i]))
			sbx_route_reject(
			    verdict, psprintf("CAPABILITY_FORBIDDEN:%s", request->forbidden[i]));
	}
}

static void
filter_resources(const SbxResources *requested, const SbxResources *declared,
                 SbxVerdict *verdict)
{
	if (requested->cpu > declared->cpu)
		sbx_route_reject(verdict, "RESOURCE_CPU");
	if (requested->memory_mb > declared->memory_mb)
		sbx_route_reject(verdict, "RESOURCE_MEMORY");
	if (requested->disk_mb > declared->disk_mb)
		sbx_route_reject(verdict, "RESOURCE_DISK");
	if (requested->gpu > declared->gpu)
		sbx_route_reject(verdict, "RESOURCE_GPU");
}

void
sbx_route_filter(const SbxRequest *request, const SbxPool *pool, SbxVerdict *verdict)
{
	if (request->provider_id != NULL && strcmp(request->provider_id, pool->id) != 0)
		sbx_route_reject(verdict, "PROVIDER_ID");
	if (!pool->enabled)
		sbx_route_reject(verdict, "PROVIDER_DISABLED");
	filter_capabilities(request, &pool->profile, verdict);
	filter_resources(&request->resources, &pool->profile.resources, verdict);
}

void
sbx_route_reject(SbxVerdict *verdict, const char *code)
{
	verdict->rejections = lappend(verdict->rejections, unconstify(char *, code));
}

void
sbx_route_filter_signals(SbxVerdict *verdict)
{
	if (!verdict->pool->signals.available)
		sbx_route_reject(verdict, "AVAILABILITY");
}

static double
latency_of(const SbxSignals *signals, SbxLatencyObjective objective)
{
	return objective == SBX_OBJECTIVE_READY ? signals->ready_latency_ms
	                                        : signals->cold_start_latency_ms;
}

/* The smallest and largest of each signal over the eligible pools. */
typedef struct Ranges
{
	double min_cost;
	double max_cost;
	double min_latency;
	double max_latency;
	double min_rate;
	double max_rate;
} Ranges;

static Ranges
find_ranges(const SbxRequest *request, const SbxVerdict *verdicts, int count)
{
	Ranges ranges = {0};
	bool first = true;

	for (int i = 0; i < count; i++)
	{
		const SbxSignals *signals = &verdicts[i].pool->signals;
		double latency = latency_of(signals, request->objective);

		if (!sbx_verdict_eligible(&verdicts[i]))
			continue;
		if (first || signals->estimated_cost < ranges.min_cost)
			ranges.min_cost = signals->estimated_cost;
		if (first || signals->estimated_cost > ranges.max_cost)
			ranges.max_cost = signals->estimated_cost;
		if (first || latency < ranges.min_latency)
			ranges.min_latency = latency;
		if (first || latency > ranges.max_latency)
			ranges.max_latency = latency;
		if (first || signals->completion_rate < ranges.min_rate)
			ranges.min_rate = signals->completion_rate;
		if (first || signals->completion_rate > ranges.max_rate)
			ranges.max_rate = signals->completion_rate;
		first = false;
	}
	return ranges;
}

/* A part whose signal is the same everywhere says nothing: 1 for every pool. */
static double
part(double distance, double min, double max)
{
	return max == min ? 1.0 : distance / (max - min);
}

static void
score(const SbxRequest *request, const Ranges *ranges, SbxVerdict *verdict)
{
	const SbxSignals *signals = &verdict->pool->signals;
	double latency = latency_of(signals, request->objective);

	verdict->cost_part = part(ranges->max_cost - signals->estimated_cost,
	                          ranges->min_cost, ranges->max_cost);
	verdict->latency_part =
	    part(ranges->max_latency - latency, ranges->min_latency, ranges->max_latency);
	verdict->reliability_part = part(signals->completion_rate - ranges->min_rate,
	                                 ranges->min_rate, ranges->max_rate);
	switch (request->strategy)
	{
		case SBX_STRATEGY_COST:
			verdict->score = verdict->cost_part;
			break;
		case SBX_STRATEGY_LATENCY:
			verdict->score = verdict->latency_part;
			break;
		case SBX_STRATEGY_RELIABILITY:
			verdict->score = verdict->reliability_part;
			break;
		case SBX_STRATEGY_BALANCED:
		case SBX_STRATEGY_COUNT:
			verdict->score = COST_WEIGHT * verdict->cost_part +
			                 LATENCY_WEIGHT * verdict->latency_part +
			                 RELIABILITY_WEIGHT * verdict->reliability_part;
			break;
	}
}

static int
compare_doubles(double a, double b)
{
	return a < b ? -1 : (a > b ? 1 : 0);
}

/* A single-signal strategy orders by the raw signal, not by the rounded part. */
static int
compare_by_strategy(const SbxRequest *request, const SbxVerdict *a, const SbxVerdict *b)
{
	const SbxSignals *sa = &a->pool->signals;
	const SbxSignals *sb = &b->pool->signals;

	switch (request->strategy)
	{
		case SBX_STRATEGY_COST:
			return compare_doubles(sa->estimated_cost, sb->estimated_cost);
		case SBX_STRATEGY_LATENCY:
			return compare_doubles(latency_of(sa, request->objective),
			                       latency_of(sb, request->objective));
		case SBX_STRATEGY_RELIABILITY:
			return compare_doubles(sb->completion_rate, sa->completion_rate);
		case SBX_STRATEGY_BALANCED:
		case SBX_STRATEGY_COUNT:
			break;
	}
	return compare_doubles(b->score, a->score);
}

bool
sbx_route_tied(const SbxRequest *request, const SbxVerdict *a, const SbxVerdict *b)
{
	return compare_by_strategy(request, a, b) == 0;
}

/* Ties go by the bytes of the id: never by collation, never by registration order. */
static int
compare_verdicts(const void *left, const void *right, void *arg)
{
	const SbxVerdict *a = left;
	const SbxVerdict *b = right;
	int order = 0;

	if (sbx_verdict_eligible(a) != sbx_verdict_eligible(b))
		return sbx_verdict_eligible(a) ? -1 : 1;
	if (sbx_verdict_eligible(a))
		order = compare_by_strategy(arg, a, b);
	return order != 0 ? order : strcmp(a->pool->id, b->pool->id);
}

int
sbx_route_rank(const SbxRequest *request, SbxVerdict *verdicts, int count)
{
	Ranges ranges = find_ranges(request, verdicts, count);
	int eligible = 0;

	for (int i = 0; i < count; i++)
	{
		if (sbx_verdict_eligible(&verdicts[i]))
			score(request, &ranges, &verdicts[i]);
	}
	qsort_arg(verdicts, count, sizeof(SbxVerdict), compare_verdicts,
	          unconstify(SbxRequest *, request));
	while (eligible < count && sbx_verdict_eligible(&verdicts[eligible]))
	{
		verdicts[eligible].position = eligible + 1;
		eligible++;
	}
	return eligible;
}
