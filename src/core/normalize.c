/*
 * normalize.c
 *		A request with every default filled in, as jsonb.
 *
 * What has a default is always there; what has none (requires.isolation, providerId,
 * ...) is there when the request gave it.
 */
#include "core/jsonwrite.h"
#include "core/request.h"

/* Absent is -1. */
static void
push_limit(JsonbParseState **state, const char *key, int64 number)
{
	if (number >= 0)
		sbx_push_int64(state, key, number);
}

static void
push_word(JsonbParseState **state, const char *key, const char *const *words, int word)
{
	if (word >= 0)
		sbx_push_text(state, key, words[word]);
}

static void
push_names(JsonbParseState **state, const char *key, const SbxNameList *list)
{
	sbx_push_texts(state, key, list->names, list->count);
}

static void
push_pairs(JsonbParseState **state, const char *key, const SbxText *pairs, int count)
{
	sbx_push_begin(state, key);
	for (int i = 0; i < count; i++)
		sbx_push_text(state, pairs[i].key, pairs[i].value);
	sbx_push_end(state);
}

static void
push_resources(JsonbParseState **state, const SbxResources *resources)
{
	sbx_push_begin(state, "resources");
	sbx_push_double(state, "cpu", resources->cpu);
	push_limit(state, "memoryMb", resources->memory_mb);
	push_limit(state, "diskMb", resources->disk_mb);
	push_limit(state, "gpu", resources->gpu);
	sbx_push_end(state);
}

static void
push_network(JsonbParseState **state, const SbxRequest *request)
{
	sbx_push_begin(state, "network");
	for (int i = 0; i < request->network_count; i++)
	{
		sbx_push_value(state, request->network[i].key, &request->network[i].value);
	}
	sbx_push_end(state);
}

static void
push_requirements(JsonbParseState **state, const SbxRequest *request)
{
	sbx_push_begin(state, "requires");
	push_names(state, "requiredCapabilities", &request->required);
	push_names(state, "forbiddenCapabilities", &request->forbidden);
	sbx_push_begin(state, "image");
	sbx_push_text(state, "identity", request->image_identity);
	push_names(state, "requiredBinaries", &request->binaries);
	sbx_push_end(state);
	push_word(state, "isolation", sbx_isolation_names, request->isolation);
	push_word(state, "egress", sbx_egress_names, request->egress);
	push_word(state, "stateDurability", sbx_durability_names, request->durability);
	push_names(state, "restrictions", &request->restrictions);
	push_network(state, request);
	sbx_push_begin(state, "timeout");
	push_names(state, "semantics", &request->semantics);
	push_limit(state, "granularityMs", request->granularity_ms);
	push_limit(state, "maxReadyLatencyMs", request->max_ready_latency_ms);
	push_limit(state, "requiredSandboxLifetimeMs", request->required_lifetime_ms);
	push_limit(state, "completionBudgetMs", request->completion_budget_ms);
	sbx_push_end(state);
	sbx_push_end(state);
}

static void
push_routing(JsonbParseState **state, const SbxRequest *request)
{
	sbx_push_begin(state, "region");
	push_names(state, "preferred", &request->preferred_regions);
	sbx_push_bool(state, "required", request->region_required);
	sbx_push_end(state);
	sbx_push_begin(state, "routing");
	push_word(state, "strategy", sbx_strategy_names, request->strategy);
	push_word(state, "latencyObjective", sbx_objective_names, request->objective);
	push_word(state, "acquisitionFallback", sbx_fallback_names,
	          request->fallback_allowed ? 0 : 1);
	push_limit(state, "maxAcquisitionAttempts", request->max_attempts);
	sbx_push_end(state);
	sbx_push_begin(state, "placement");
	sbx_push_text(state, "authority", sbx_authority_names[0]);
	sbx_push_end(state);
	sbx_push_text(state, "providerId", request->provider_id);
}

static void
push_launch(JsonbParseState **state, const SbxRequest *request)
{
	sbx_push_begin(state, "launch");
	sbx_push_text(state, "name", request->name);
	push_pairs(state, "env", request->env, request->env_count);
	push_pairs(state, "labels", request->labels, request->label_count);
	if (request->create_timeout_ms > 0)
		push_limit(state, "createTimeoutSeconds", request->create_timeout_ms / 1000);
	sbx_push_end(state);
	sbx_push_text(state, "idempotencyKey", request->idempotency_key);
}

Jsonb *
sbx_request_normalize(const SbxRequest *request)
{
	JsonbParseState *state = NULL;

	sbx_push_begin(&state, NULL);
	push_resources(&state, &request->resources);
	push_requirements(&state, request);
	push_routing(&state, request);
	push_launch(&state, request);
	return sbx_push_finish(&state);
}
