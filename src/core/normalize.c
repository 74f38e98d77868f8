/*
 * normalize.c
 *		A request with every default filled in, as jsonb.
 *
 * What has a default is always there; what has none (requires.isolation, providerId,
 * ...) is there when the request gave it.
 */
#include "core/request.h"

#include "utils/builtins.h"

static void
push_key(JsonbParseState **state, const char *key)
{
	JsonbValue value = {.type = jbvString};

	value.val.string.val = unconstify(char *, key);
	value.val.string.len = strlen(key);
	pushJsonbValue(state, WJB_KEY, &value);
}

static void
push_text(JsonbParseState **state, const char *key, const char *text_value)
{
	JsonbValue value = {.type = jbvString};

	if (text_value == NULL)
		return;
	push_key(state, key);
	value.val.string.val = unconstify(char *, text_value);
	value.val.string.len = strlen(text_value);
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
push_number(JsonbParseState **state, const char *key, Datum numeric)
{
	JsonbValue value = {.type = jbvNumeric};

	push_key(state, key);
	value.val.numeric = DatumGetNumeric(numeric);
	pushJsonbValue(state, WJB_VALUE, &value);
}

/* Absent is -1, unless 0 or more is always given. */
static void
push_int64(JsonbParseState **state, const char *key, int64 number)
{
	if (number >= 0)
		push_number(state, key,
		            DirectFunctionCall1(int8_numeric, Int64GetDatum(number)));
}

static void
push_double(JsonbParseState **state, const char *key, double number)
{
	push_number(state, key,
	            DirectFunctionCall1(float8_numeric, Float8GetDatum(number)));
}

static void
push_bool(JsonbParseState **state, const char *key, bool boolean)
{
	JsonbValue value = {.type = jbvBool};

	push_key(state, key);
	value.val.boolean = boolean;
	pushJsonbValue(state, WJB_VALUE, &value);
}

static void
push_word(JsonbParseState **state, const char *key, const char *const *words, int word)
{
	if (word >= 0)
		push_text(state, key, words[word]);
}

static void
push_names(JsonbParseState **state, const char *key, const SbxNameList *list)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_ARRAY, NULL);
	for (int i = 0; i < list->count; i++)
	{
		JsonbValue value = {.type = jbvString};

		value.val.string.val = list->names[i];
		value.val.string.len = strlen(list->names[i]);
		pushJsonbValue(state, WJB_ELEM, &value);
	}
	pushJsonbValue(state, WJB_END_ARRAY, NULL);
}

static void
push_pairs(JsonbParseState **state, const char *key, const SbxText *pairs, int count)
{
	push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < count; i++)
		push_text(state, pairs[i].key, pairs[i].value);
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

static void
begin_object(JsonbParseState **state, const char *key)
{
	if (key != NULL)
		push_key(state, key);
	pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);
}

static void
end_object(JsonbParseState **state)
{
	pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

static void
push_resources(JsonbParseState **state, const SbxResources *resources)
{
	begin_object(state, "resources");
	push_double(state, "cpu", resources->cpu);
	push_int64(state, "memoryMb", resources->memory_mb);
	push_int64(state, "diskMb", resources->disk_mb);
	push_int64(state, "gpu", resources->gpu);
	end_object(state);
}

static void
push_network(JsonbParseState **state, const SbxRequest *request)
{
	begin_object(state, "network");
	for (int i = 0; i < request->network_count; i++)
	{
		push_key(state, request->network[i].key);
		pushJsonbValue(state, WJB_VALUE, &request->network[i].value);
	}
	end_object(state);
}

static void
push_requirements(JsonbParseState **state, const SbxRequest *request)
{
	begin_object(state, "requires");
	push_names(state, "requiredCapabilities", &request->required);
	push_names(state, "forbiddenCapabilities", &request->forbidden);
	begin_object(state, "image");
	push_text(state, "identity", request->image_identity);
	push_names(state, "requiredBinaries", &request->binaries);
	end_object(state);
	push_word(state, "isolation", sbx_isolation_names, request->isolation);
	push_word(state, "egress", sbx_egress_names, request->egress);
	push_word(state, "stateDurability", sbx_durability_names, request->durability);
	push_names(state, "restrictions", &request->restrictions);
	push_network(state, request);
	begin_object(state, "timeout");
	push_names(state, "semantics", &request->semantics);
	push_int64(state, "granularityMs", request->granularity_ms);
	push_int64(state, "maxReadyLatencyMs", request->max_ready_latency_ms);
	push_int64(state, "requiredSandboxLifetimeMs", request->required_lifetime_ms);
	push_int64(state, "completionBudgetMs", request->completion_budget_ms);
	end_object(state);
	end_object(state);
}

static void
push_routing(JsonbParseState **state, const SbxRequest *request)
{
	begin_object(state, "region");
	push_names(state, "preferred", &request->preferred_regions);
	push_bool(state, "required", request->region_required);
	end_object(state);
	begin_object(state, "routing");
	push_word(state, "strategy", sbx_strategy_names, request->strategy);
	push_word(state, "latencyObjective", sbx_objective_names, request->objective);
	push_word(state, "acquisitionFallback", sbx_fallback_names,
	          request->fallback_allowed ? 0 : 1);
	push_int64(state, "maxAcquisitionAttempts", request->max_attempts);
	end_object(state);
	begin_object(state, "placement");
	push_text(state, "authority", sbx_authority_names[0]);
	end_object(state);
	push_text(state, "providerId", request->provider_id);
}

static void
push_launch(JsonbParseState **state, const SbxRequest *request)
{
	begin_object(state, "launch");
	push_text(state, "name", request->name);
	push_pairs(state, "env", request->env, request->env_count);
	push_pairs(state, "labels", request->labels, request->label_count);
	if (request->create_timeout_ms > 0)
		push_int64(state, "createTimeoutSeconds", request->create_timeout_ms / 1000);
	end_object(state);
	push_text(state, "idempotencyKey", request->idempotency_key);
}

Jsonb *
sbx_request_normalize(const SbxRequest *request)
{
	JsonbParseState *state = NULL;

	begin_object(&state, NULL);
	push_resources(&state, &request->resources);
	push_requirements(&state, request);
	push_routing(&state, request);
	push_launch(&state, request);
	return JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
}
