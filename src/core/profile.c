/*
 * profile.c
 *		What a pool declares: capability profile and signals, from jsonb.
 *
 * Every declared fact is validated when it is written, also those that no
 * request can ask about yet, so that rows written today stay valid.
 */
#include "core/profile.h"

#define PROVIDER SBX_DOCUMENT_PROVIDER

static void
read_resources(const JsonbValue *object, SbxResources *resources)
{
	static const char *const keys[] = {"cpu", "memoryMb", "diskMb", "gpu"};
	const char *path = "provider.capabilities.resources";
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(PROVIDER, path, object, keys, lengthof(keys), member, NULL);
	resources->cpu =
	    sbx_jsonb_double(PROVIDER, sbx_jsonb_path(path, "cpu"), &member[0], 0);
	resources->memory_mb =
	    sbx_jsonb_int64(PROVIDER, sbx_jsonb_path(path, "memoryMb"), &member[1], 0);
	resources->disk_mb =
	    sbx_jsonb_int64(PROVIDER, sbx_jsonb_path(path, "diskMb"), &member[2], 0);
	resources->gpu =
	    sbx_jsonb_int64(PROVIDER, sbx_jsonb_path(path, "gpu"), &member[3], 0);
}

static void
read_capability_names(const JsonbValue *value, SbxProfile *profile)
{
	const char *path = "provider.capabilities.capabilities";

	if (value->type == jbvNull)
	{
		profile->capabilities = (char **) sbx_default_capabilities;
		profile->capability_count = sbx_default_capability_count;
		return;
	}
	profile->capabilities =
	    sbx_jsonb_texts(PROVIDER, path, value, &profile->capability_count);
	for (int i = 0; i < profile->capability_count; i++)
	{
		if (!sbx_is_capability_name(profile->capabilities[i]))
			sbx_error_document(PROVIDER, path, SBX_REASON_BAD_FORMAT, NULL);
	}
}

static void
check_image(const JsonbValue *object)
{
	static const char *const keys[] = {"identity", "binaries"};
	JsonbValue member[lengthof(keys)];
	int count;

	sbx_jsonb_members(PROVIDER, "provider.capabilities.image", object, keys,
	                  lengthof(keys), member, NULL);
	(void) sbx_jsonb_text(PROVIDER, "provider.capabilities.image.identity", &member[0]);
	(void) sbx_jsonb_texts(PROVIDER, "provider.capabilities.image.binaries", &member[1],
	                       &count);
}

static void
check_timeout(const JsonbValue *object)
{
	static const char *const keys[] = {"semantics", "granularityMs",
	                                   "maxSandboxLifetimeMs"};
	const char *path = "provider.capabilities.timeout";
	JsonbValue member[lengthof(keys)];
	int count;

	sbx_jsonb_members(PROVIDER, path, object, keys, lengthof(keys), member, NULL);
	(void) sbx_jsonb_texts(PROVIDER, sbx_jsonb_path(path, "semantics"), &member[0],
	                       &count);
	(void) sbx_jsonb_int64(PROVIDER, sbx_jsonb_path(path, "granularityMs"), &member[1],
	                       0);
	(void) sbx_jsonb_int64(PROVIDER, sbx_jsonb_path(path, "maxSandboxLifetimeMs"),
	                       &member[2], 0);
}

static void
check_network(const JsonbValue *object)
{
	const char *path = "provider.capabilities.network";

	if (object->type == jbvNull)
		return;
	if (object->type != jbvBinary || !JsonContainerIsObject(object->val.binary.data))
		sbx_error_document(PROVIDER, path, SBX_REASON_WRONG_TYPE, NULL);
	if (JsonContainerSize(object->val.binary.data) > SBX_MAX_MEMBERS)
		sbx_error_document(PROVIDER, path, SBX_REASON_TOO_MANY, NULL);
}

void
sbx_profile_parse(Jsonb *jsonb, SbxProfile *profile)
{
	static const char *const keys[] = {
	    "capabilities", "resources",       "regions",      "image",   "isolation",
	    "egress",       "stateDurability", "restrictions", "network", "timeout"};
	const char *path = "provider.capabilities";
	JsonbValue root = {.type = jbvNull};
	JsonbValue member[lengthof(keys)];
	int count;

	memset(profile, 0, sizeof(*profile));
	if (jsonb != NULL)
		sbx_jsonb_document(PROVIDER, path, jsonb, &root);
	sbx_jsonb_members(PROVIDER, path, &root, keys, lengthof(keys), member, NULL);
	read_capability_names(&member[0], profile);
	read_resources(&member[1], &profile->resources);
	(void) sbx_jsonb_texts(PROVIDER, sbx_jsonb_path(path, "regions"), &member[2],
	                       &count);
	check_image(&member[3]);
	(void) sbx_jsonb_word(PROVIDER, sbx_jsonb_path(path, "isolation"), &member[4],
	                      sbx_isolation_names, sbx_isolation_count, -1);
	(void) sbx_jsonb_word(PROVIDER, sbx_jsonb_path(path, "egress"), &member[5],
	                      sbx_egress_names, sbx_egress_count, -1);
	(void) sbx_jsonb_word(PROVIDER, sbx_jsonb_path(path, "stateDurability"), &member[6],
	                      sbx_durability_names, sbx_durability_count, -1);
	(void) sbx_jsonb_texts(PROVIDER, sbx_jsonb_path(path, "restrictions"), &member[7],
	                       &count);
	check_network(&member[8]);
	check_timeout(&member[9]);
}

void
sbx_signals_parse(Jsonb *jsonb, SbxSignals *signals)
{
	static const char *const keys[] = {"estimatedCost", "coldStartLatencyMs",
	                                   "readyLatencyMs", "completionWithinBudgetRate",
	                                   "available"};
	const char *path = "provider.signals";
	const char *rate_path = "provider.signals.completionWithinBudgetRate";
	JsonbValue root = {.type = jbvNull};
	JsonbValue member[lengthof(keys)];

	if (jsonb != NULL)
		sbx_jsonb_document(PROVIDER, path, jsonb, &root);
	sbx_jsonb_members(PROVIDER, path, &root, keys, lengthof(keys), member, NULL);

	/* The defaults are equal placeholders: they prefer no pool. */
	signals->estimated_cost = sbx_jsonb_double(
	    PROVIDER, sbx_jsonb_path(path, "estimatedCost"), &member[0], 1);
	signals->cold_start_latency_ms = sbx_jsonb_double(
	    PROVIDER, sbx_jsonb_path(path, "coldStartLatencyMs"), &member[1], 1);
	signals->ready_latency_ms = sbx_jsonb_double(
	    PROVIDER, sbx_jsonb_path(path, "readyLatencyMs"), &member[2], 1);
	signals->completion_rate = sbx_jsonb_double(PROVIDER, rate_path, &member[3], 1);
	if (signals->completion_rate > 1)
		sbx_error_document(PROVIDER, rate_path, SBX_REASON_OUT_OF_RANGE, NULL);
	signals->available =
	    sbx_jsonb_bool(PROVIDER, sbx_jsonb_path(path, "available"), &member[4], true);
}

static void
check_dimensions(const char *path, const JsonbValue *object)
{
	static const char *const keys[] = {"cpu", "memory", "disk", "sandboxes"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(PROVIDER, path, object, keys, lengthof(keys), member, NULL);
	for (size_t i = 0; i < lengthof(keys); i++)
		(void) sbx_jsonb_double(PROVIDER, sbx_jsonb_path(path, keys[i]), &member[i], 0);
}

void
sbx_capacity_check(Jsonb *jsonb)
{
	static const char *const keys[] = {"limits", "demand", "reader"};
	const char *path = "provider.capacity";
	JsonbValue root = {.type = jbvNull};
	JsonbValue member[lengthof(keys)];

	if (jsonb != NULL)
		sbx_jsonb_document(PROVIDER, path, jsonb, &root);
	sbx_jsonb_members(PROVIDER, path, &root, keys, lengthof(keys), member, NULL);
	check_dimensions(sbx_jsonb_path(path, "limits"), &member[0]);
	check_dimensions(sbx_jsonb_path(path, "demand"), &member[1]);
	(void) sbx_jsonb_text(PROVIDER, sbx_jsonb_path(path, "reader"), &member[2]);
	if (member[2].type != jbvNull)
		sbx_error_not_built("provider.capacity.reader");
}
