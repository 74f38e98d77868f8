/*
 * route.c
 *		Filter and rank: which pool gets the request, and why the others do not.
 */
#include "core/route.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/numeric.h"

/* Weights of the balanced strategy; they add up to 1. */
#define COST_WEIGHT        0.35
#define LATENCY_WEIGHT     0.25
#define RELIABILITY_WEIGHT 0.40

/* --- rejections ------------------------------------------------------------- */

static void
append_rejection(SbxVerdict *verdict, SbxRule rule, int subject)
{
	int n = verdict->rejection_count;

	/* Room doubles at 4, 8, 16, ...: most pools fail by a rule or two. */
	if (verdict->rejections == NULL)
		verdict->rejections = palloc(sizeof(SbxRejection) * 4);
	else if (n >= 4 && (n & (n - 1)) == 0)
		verdict->rejections =
		    repalloc(verdict->rejections, sizeof(SbxRejection) * n * 2);
	verdict->rejections[n].rule = rule;
	verdict->rejections[n].subject = subject;
	verdict->rejection_count++;
}

/* Note a rejection; true = nobody wants to hear of more. */
static bool
rejected(const SbxRouting *routing, SbxVerdict *verdict, SbxRule rule, int subject)
{
	verdict->eligible = false;
	if (!routing->explain)
		return true;
	append_rejection(verdict, rule, subject);
	return false;
}

void
sbx_route_reject(const SbxRouting *routing, SbxVerdict *verdict, SbxRule rule)
{
	(void) rejected(routing, verdict, rule, 0);
}

#define REJECT_IF(condition, rule, subject)                                            \
	do                                                                                 \
	{                                                                                  \
		if ((condition) && rejected(routing, verdict, (rule), (subject)))              \
			return;                                                                    \
	} while (0)

/* --- declared facts, in the order of the rules -------------------------------- */

/* As it would be sent: characters count, not bytes of whatever the database is in. */
static const char *
wire_text(const char *text)
{
	return pg_server_to_any(text, strlen(text), PG_UTF8);
}

static bool
carries_each(bool (*carries)(const char *key, const char *value), const SbxText *pairs,
             int count)
{
	for (int i = 0; carries != NULL && i < count; i++)
	{
		if (!carries(wire_text(pairs[i].key), wire_text(pairs[i].value)))
			return false;
	}
	return true;
}

static bool
carries_env(const SbxLaunchAbility *launch, const SbxRequest *request)
{
	return (request->env_count == 0 || launch->max_env < 0 ||
	        request->env_count <= launch->max_env) &&
	       carries_each(launch->carries_variable, request->env, request->env_count);
}

static bool
carries_labels(const SbxLaunchAbility *launch, const SbxRequest *request)
{
	int count = request->label_count + (request->name != NULL ? 1 : 0);

	return (request->label_count == 0 || launch->max_labels < 0 ||
	        count <= launch->max_labels) &&
	       carries_each(launch->carries_label, request->labels, request->label_count);
}

static void
filter_launch(const SbxRouting *routing, const SbxLaunchAbility *launch,
              SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;

	REJECT_IF(!carries_env(launch, request), SBX_RULE_LAUNCH_FIELD, SBX_LAUNCH_ENV);
	REJECT_IF(!carries_labels(launch, request), SBX_RULE_LAUNCH_FIELD,
	          SBX_LAUNCH_LABELS);
	REJECT_IF(request->create_timeout_ms > 0 && !launch->create_timeout,
	          SBX_RULE_LAUNCH_FIELD, SBX_LAUNCH_CREATE_TIMEOUT);
	REJECT_IF(routing->detached && !launch->detached, SBX_RULE_DETACHED_LAUNCH, 0);
}

static void
filter_capabilities(const SbxRouting *routing, const SbxProfile *profile,
                    SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;

	for (int i = 0; i < request->required.count; i++)
		REJECT_IF(
		    !sbx_set_contains(&profile->capabilities, request->required.numbers[i]),
		    SBX_RULE_CAPABILITY_REQUIRED, i);
	for (int i = 0; i < request->forbidden.count; i++)
		REJECT_IF(
		    sbx_set_contains(&profile->capabilities, request->forbidden.numbers[i]),
		    SBX_RULE_CAPABILITY_FORBIDDEN, i);
}

static void
filter_resources(const SbxRouting *routing, const SbxResources *declared,
                 SbxVerdict *verdict)
{
	const SbxResources *requested = &routing->request->resources;

	REJECT_IF(requested->cpu > declared->cpu, SBX_RULE_RESOURCE_CPU, 0);
	REJECT_IF(requested->memory_mb > declared->memory_mb, SBX_RULE_RESOURCE_MEMORY, 0);
	REJECT_IF(requested->disk_mb > declared->disk_mb, SBX_RULE_RESOURCE_DISK, 0);
	REJECT_IF(requested->gpu > declared->gpu, SBX_RULE_RESOURCE_GPU, 0);
}

static pg_attribute_always_inline void
filter_set(const SbxRouting *routing, const SbxNameList *needed, const SbxSet *declared,
           SbxRule rule, SbxVerdict *verdict)
{
	for (int i = 0; i < needed->count; i++)
		REJECT_IF(!sbx_set_contains(declared, needed->numbers[i]), rule, i);
}

static void
filter_classes(const SbxRouting *routing, const SbxProfile *profile,
               SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;

	/* Floors; "unknown" and undeclared (-1) reach none. */
	REJECT_IF(request->isolation >= 0 && (profile->isolation < request->isolation ||
	                                      profile->isolation == SBX_ISOLATION_UNKNOWN),
	          SBX_RULE_ISOLATION, 0);
	REJECT_IF(request->egress >= 0 && profile->egress != request->egress,
	          SBX_RULE_EGRESS, 0);
	REJECT_IF(request->durability >= 0 && profile->durability < request->durability,
	          SBX_RULE_STATE_DURABILITY, 0);
}

static bool
equal_values(JsonbValue *a, JsonbValue *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type)
	{
		case jbvString:
			return a->val.string.len == b->val.string.len &&
			       memcmp(a->val.string.val, b->val.string.val, a->val.string.len) == 0;
		case jbvNumeric:
			return DatumGetBool(DirectFunctionCall2(numeric_eq,
			                                        NumericGetDatum(a->val.numeric),
			                                        NumericGetDatum(b->val.numeric)));
		case jbvBool:
			return a->val.boolean == b->val.boolean;
		case jbvBinary:
			return compareJsonbContainers(a->val.binary.data, b->val.binary.data) == 0;
		default:
			return false;
	}
}

/* The long way, for lists and objects: kept apart from the fast one. */
static pg_noinline bool
declares_value(const SbxProfile *profile, const SbxNetworkNeed *need)
{
	JsonbValue declared;
	JsonbValue wanted = need->value;

	return profile->network != NULL &&
	       getKeyJsonValueFromContainer(&profile->network->root, need->key,
	                                    strlen(need->key), &declared) != NULL &&
	       equal_values(&wanted, &declared);
}

static bool
declares_network(const SbxProfile *profile, const SbxNetworkNeed *need)
{
	return need->is_claim ? sbx_set_contains(&profile->claims, need->number)
	                      : declares_value(profile, need);
}

static void
filter_network(const SbxRouting *routing, const SbxProfile *profile,
               SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;

	for (int i = 0; i < request->network_count; i++)
		REJECT_IF(!declares_network(profile, &request->network[i]), SBX_RULE_NETWORK,
		          i);
}

static void
filter_timeout(const SbxRouting *routing, const SbxProfile *profile,
               SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;

	filter_set(routing, &request->semantics, &profile->semantics,
	           SBX_RULE_TIMEOUT_SEMANTICS, verdict);
	REJECT_IF(request->granularity_ms >= 0 &&
	              (profile->granularity_ms < 0 ||
	               profile->granularity_ms > request->granularity_ms),
	          SBX_RULE_TIMEOUT_GRANULARITY, 0);

	/* Unknown is smaller than everything, unbounded larger. */
	REJECT_IF(request->required_lifetime_ms >= 0 &&
	              profile->max_lifetime_ms < request->required_lifetime_ms,
	          SBX_RULE_SANDBOX_LIFETIME, 0);
}

/* Any overlap will do. */
static bool
offers_region(const SbxRequest *request, const SbxProfile *profile)
{
	for (int i = 0; i < request->preferred_regions.count; i++)
	{
		if (sbx_set_contains(&profile->regions, request->preferred_regions.numbers[i]))
			return true;
	}
	return false;
}

void
sbx_route_filter(const SbxRouting *routing, const SbxPool *pool, SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;
	const SbxProfile *profile = &pool->profile;

/* Each group stops by itself; after one that rejected there is no use in the next. */
#define UNLESS_DONE                                                                    \
	if (!verdict->eligible && !routing->explain)                                       \
	return

	verdict->eligible = true;
	REJECT_IF(request->provider_id != NULL &&
	              strcmp(request->provider_id, pool->id) != 0,
	          SBX_RULE_PROVIDER_ID, 0);
	REJECT_IF(!pool->enabled, SBX_RULE_PROVIDER_DISABLED, 0);
	if (pool->launch != NULL)
		filter_launch(routing, pool->launch, verdict);
	UNLESS_DONE;
	filter_capabilities(routing, profile, verdict);
	UNLESS_DONE;
	filter_resources(routing, &profile->resources, verdict);
	UNLESS_DONE;
	REJECT_IF(request->image_identity != NULL &&
	              (request->image_number < 0 ||
	               profile->image_number != request->image_number),
	          SBX_RULE_IMAGE_IDENTITY, 0);
	filter_set(routing, &request->binaries, &profile->binaries, SBX_RULE_IMAGE_BINARIES,
	           verdict);
	UNLESS_DONE;
	filter_classes(routing, profile, verdict);
	UNLESS_DONE;
	filter_set(routing, &request->restrictions, &profile->restrictions,
	           SBX_RULE_RESTRICTION, verdict);
	UNLESS_DONE;
	filter_network(routing, profile, verdict);
	UNLESS_DONE;
	filter_timeout(routing, profile, verdict);
	UNLESS_DONE;
	REJECT_IF(request->region_required && !offers_region(request, profile),
	          SBX_RULE_REGION, 0);
#undef UNLESS_DONE
}

void
sbx_route_filter_signals(const SbxRouting *routing, SbxVerdict *verdict)
{
	const SbxRequest *request = routing->request;
	const SbxSignals *signals = &verdict->pool->signals;

	REJECT_IF(!signals->available, SBX_RULE_AVAILABILITY, 0);
	REJECT_IF(request->max_ready_latency_ms >= 0 &&
	              signals->ready_latency_ms > request->max_ready_latency_ms,
	          SBX_RULE_READY_LATENCY, 0);
}

void
sbx_route_filter_order(const SbxRouting *routing, SbxVerdict *verdict)
{
	REJECT_IF(routing->ordered && verdict->place == 0, SBX_RULE_PROVIDER_ORDER, 0);
}

/* --- rank ------------------------------------------------------------------------ */

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

		if (!verdicts[i].eligible)
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
	const SbxRouting *routing = arg;
	const SbxVerdict *a = left;
	const SbxVerdict *b = right;
	int order = 0;

	if (a->eligible != b->eligible)
		return a->eligible ? -1 : 1;
	if (a->eligible)
		order = routing->ordered ? a->place - b->place
		                         : compare_by_strategy(routing->request, a, b);
	return order != 0 ? order : strcmp(a->pool->id, b->pool->id);
}

/*
 * Move the best few to the front, in order, without sorting the rest: each eligible
 * one is inserted into a short list, if it belongs there.
 */
static void
select_best(SbxRouting *routing, SbxVerdict *verdicts, int count, int wanted)
{
	SbxVerdict best[SBX_MAX_ATTEMPTS];
	int found = 0;

	for (int i = 0; i < count; i++)
	{
		int place = found;

		if (!verdicts[i].eligible)
			continue;
		while (place > 0 &&
		       compare_verdicts(&verdicts[i], &best[place - 1], routing) < 0)
			place--;
		if (place >= wanted)
			continue;
		if (found < wanted)
			found++;
		memmove(&best[place + 1], &best[place],
		        sizeof(SbxVerdict) * (found - place - 1));
		best[place] = verdicts[i];
	}
	/* cppcheck-suppress uninitvar ; as many as were found have been set */
	memcpy(verdicts, best, sizeof(SbxVerdict) * found);
}

/*
 * Move the eligible ones to the front.  Both parts keep their order: registered pools
 * come sorted by id, so that sorting the rejected finds nothing to do.
 */
static void
move_eligible(SbxVerdict *verdicts, int count)
{
	SbxVerdict *others =
	    palloc_extended(sizeof(SbxVerdict) * (count + 1), MCXT_ALLOC_HUGE);
	int front = 0;
	int back = 0;

	for (int i = 0; i < count; i++)
	{
		if (verdicts[i].eligible)
			verdicts[front++] = verdicts[i];
		else
			others[back++] = verdicts[i];
	}
	memcpy(&verdicts[front], others, sizeof(SbxVerdict) * back);
	pfree(others);
}

/* The eligible by rank; the rejected by id, if anybody looks at them. */
static void
order_all(SbxRouting *routing, SbxVerdict *verdicts, int count, int eligible)
{
	move_eligible(verdicts, count);
	qsort_arg(verdicts, eligible, sizeof(SbxVerdict), compare_verdicts, routing);
	if (routing->explain)
		qsort_arg(&verdicts[eligible], count - eligible, sizeof(SbxVerdict),
		          compare_verdicts, routing);
}

int
sbx_route_rank(const SbxRouting *routing, SbxVerdict *verdicts, int count, int wanted)
{
	const SbxRequest *request = routing->request;
	SbxRouting *how = unconstify(SbxRouting *, routing);
	Ranges ranges = find_ranges(request, verdicts, count);
	int eligible = 0;

	for (int i = 0; i < count; i++)
	{
		if (!verdicts[i].eligible)
			continue;
		if (!routing->ordered)
			score(request, &ranges, &verdicts[i]);
		eligible++;
	}
	if (!routing->explain && wanted <= SBX_MAX_ATTEMPTS)
		select_best(how, verdicts, count, wanted);
	else
		order_all(how, verdicts, count, eligible);
	for (int i = 0; i < Min(eligible, routing->explain ? eligible : wanted); i++)
		verdicts[i].position = i + 1;
	return eligible;
}

/* --- codes and words ---------------------------------------------------------------- */

static const char *const launch_field_names[] = {"env", "labels",
                                                 "createTimeoutSeconds"};

/* What a rule with a subject is about; NULL for one without. */
static const char *
subject_of(const SbxRequest *request, const SbxRejection *rejection)
{
	int i = rejection->subject;

	switch ((SbxRule) rejection->rule)
	{
		case SBX_RULE_LAUNCH_FIELD:
			return launch_field_names[i];
		case SBX_RULE_CAPABILITY_REQUIRED:
			return request->required.names[i];
		case SBX_RULE_CAPABILITY_FORBIDDEN:
			return request->forbidden.names[i];
		case SBX_RULE_IMAGE_BINARIES:
			return request->binaries.names[i];
		case SBX_RULE_RESTRICTION:
			return request->restrictions.names[i];
		case SBX_RULE_NETWORK:
			return request->network[i].key;
		case SBX_RULE_TIMEOUT_SEMANTICS:
			return request->semantics.names[i];
		default:
			return NULL;
	}
}

/* In the order of SbxRule. */
static const char *const rule_codes[] = {
    "PROVIDER_ID",
    "PROVIDER_DISABLED",
    "LAUNCH_FIELD",
    "DETACHED_LAUNCH",
    "CAPABILITY_REQUIRED",
    "CAPABILITY_FORBIDDEN",
    "RESOURCE_CPU",
    "RESOURCE_MEMORY",
    "RESOURCE_DISK",
    "RESOURCE_GPU",
    "IMAGE_IDENTITY",
    "IMAGE_BINARIES",
    "ISOLATION",
    "EGRESS",
    "STATE_DURABILITY",
    "RESTRICTION",
    "NETWORK",
    "TIMEOUT_SEMANTICS",
    "TIMEOUT_GRANULARITY",
    "SANDBOX_LIFETIME",
    "REGION",
    "CREDENTIALS",
    "AVAILABILITY",
    "READY_LATENCY",
    "PROVIDER_ORDER",
};

char *
sbx_route_code(const SbxRequest *request, const SbxRejection *rejection)
{
	const char *subject = subject_of(request, rejection);

	StaticAssertStmt(lengthof(rule_codes) == SBX_RULE_PROVIDER_ORDER + 1,
	                 "a code for every rule");
	if (subject == NULL)
		return pstrdup(rule_codes[rejection->rule]);
	return psprintf("%s:%s", rule_codes[rejection->rule], subject);
}

/* What it declares; nothing is not the class "none". */
static const char *
declared_words(const char *const *words, int word)
{
	return word < 0 ? "does not declare its"
	                : psprintf("declares \"%s\" as its", words[word]);
}

static char *
resource_words(const char *what, const char *unit, int64 declared, int64 asked)
{
	return psprintf("declares " INT64_FORMAT
	                " %s of %s, request asks for " INT64_FORMAT,
	                declared, unit, what, asked);
}

static char *
class_words(const SbxRequest *request, const SbxProfile *profile, SbxRule rule)
{
	switch (rule)
	{
		case SBX_RULE_ISOLATION:
			return psprintf("%s isolation, request asks for \"%s\"",
			                declared_words(sbx_isolation_names, profile->isolation),
			                sbx_isolation_names[request->isolation]);
		case SBX_RULE_EGRESS:
			return psprintf("%s egress, request asks for \"%s\"",
			                declared_words(sbx_egress_names, profile->egress),
			                sbx_egress_names[request->egress]);
		default:
			return psprintf("%s state durability, request asks for \"%s\"",
			                declared_words(sbx_durability_names, profile->durability),
			                sbx_durability_names[request->durability]);
	}
}

static char *
time_words(const SbxRequest *request, const SbxPool *pool, SbxRule rule)
{
	const SbxProfile *profile = &pool->profile;

	switch (rule)
	{
		case SBX_RULE_TIMEOUT_GRANULARITY:
			if (profile->granularity_ms < 0)
				return pstrdup("declares no timeout granularity");
			return psprintf("timeout granularity of " INT64_FORMAT
			                " ms is coarser than " INT64_FORMAT " ms",
			                profile->granularity_ms, request->granularity_ms);
		case SBX_RULE_SANDBOX_LIFETIME:
			if (profile->max_lifetime_ms < 0)
				return pstrdup("does not say how long a sandbox may live");
			return psprintf("sandboxes live " INT64_FORMAT
			                " ms at most, request needs " INT64_FORMAT " ms",
			                profile->max_lifetime_ms, request->required_lifetime_ms);
		default:
			return psprintf(
			    "is ready after %.15g ms, request allows " INT64_FORMAT " ms",
			    pool->signals.ready_latency_ms, request->max_ready_latency_ms);
	}
}

char *
sbx_route_words(const SbxRequest *request, const SbxPool *pool,
                const SbxRejection *rejection)
{
	const SbxResources *asked = &request->resources;
	const SbxResources *has = &pool->profile.resources;
	const char *subject = subject_of(request, rejection);

	switch ((SbxRule) rejection->rule)
	{
		case SBX_RULE_PROVIDER_ID:
			return psprintf("request asks for provider \"%s\"", request->provider_id);
		case SBX_RULE_PROVIDER_DISABLED:
			return pstrdup("registration is disabled");
		case SBX_RULE_LAUNCH_FIELD:
			return psprintf("cannot carry launch.%s of this request", subject);
		case SBX_RULE_DETACHED_LAUNCH:
			return pstrdup("cannot launch detached");
		case SBX_RULE_CAPABILITY_REQUIRED:
			return psprintf("does not declare capability \"%s\"", subject);
		case SBX_RULE_CAPABILITY_FORBIDDEN:
			return psprintf("declares forbidden capability \"%s\"", subject);
		case SBX_RULE_RESOURCE_CPU:
			return psprintf("declares %.15g vCPU, request asks for %.15g", has->cpu,
			                asked->cpu);
		case SBX_RULE_RESOURCE_MEMORY:
			return resource_words("memory", "MiB", has->memory_mb, asked->memory_mb);
		case SBX_RULE_RESOURCE_DISK:
			return resource_words("disk", "MiB", has->disk_mb, asked->disk_mb);
		case SBX_RULE_RESOURCE_GPU:
			return psprintf("declares a GPU count of " INT64_FORMAT
			                ", request asks for " INT64_FORMAT,
			                has->gpu, asked->gpu);
		case SBX_RULE_IMAGE_IDENTITY:
			return psprintf("does not declare image \"%s\"", request->image_identity);
		case SBX_RULE_IMAGE_BINARIES:
			return psprintf("image does not declare binary \"%s\"", subject);
		case SBX_RULE_ISOLATION:
		case SBX_RULE_EGRESS:
		case SBX_RULE_STATE_DURABILITY:
			return class_words(request, &pool->profile, rejection->rule);
		case SBX_RULE_RESTRICTION:
			return psprintf("does not declare restriction \"%s\"", subject);
		case SBX_RULE_NETWORK:
			return psprintf("does not declare network \"%s\" with the value asked for",
			                subject);
		case SBX_RULE_TIMEOUT_SEMANTICS:
			return psprintf("does not declare timeout semantics \"%s\"", subject);
		case SBX_RULE_TIMEOUT_GRANULARITY:
		case SBX_RULE_SANDBOX_LIFETIME:
		case SBX_RULE_READY_LATENCY:
			return time_words(request, pool, rejection->rule);
		case SBX_RULE_REGION:
			return pstrdup("declares none of the regions that the request needs");
		case SBX_RULE_CREDENTIALS:
			return pstrdup("no credential in this session");
		case SBX_RULE_AVAILABILITY:
			return pstrdup("signals say that it is not available");
		case SBX_RULE_PROVIDER_ORDER:
			return pstrdup("the policy's order does not name it");
	}
	return NULL; /* not reached: every rule has its words */
}
