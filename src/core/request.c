/*
 * request.c
 *		request jsonb -> SbxRequest, strictly validated.
 *
 * Objects are read in the order in which the request language lists their keys,
 * so that of several faults the first in that order is the one reported; unknown
 * keys of an object come before its members.
 */
#include "core/request.h"

#define REQUEST SBX_DOCUMENT_REQUEST

/*
 * Longest create timeout accepted: a day.  No provider holds a create for longer
 * than minutes; the bound keeps milliseconds far from overflow.
 */
#define SBX_MAX_CREATE_TIMEOUT_SECONDS 86400

static void
read_resources(const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"cpu", "memoryMb", "diskMb", "gpu"};
	JsonbValue member[lengthof(keys)];
	SbxResources *resources = &request->resources;

	sbx_jsonb_members(REQUEST, "request.resources", object, keys, lengthof(keys),
	                  member, NULL);
	resources->cpu = sbx_jsonb_double(REQUEST, "request.resources.cpu", &member[0], 0);
	resources->memory_mb =
	    sbx_jsonb_int64(REQUEST, "request.resources.memoryMb", &member[1], 0);
	resources->disk_mb =
	    sbx_jsonb_int64(REQUEST, "request.resources.diskMb", &member[2], 0);
	resources->gpu = sbx_jsonb_int64(REQUEST, "request.resources.gpu", &member[3], 0);
}

/*
 * A name that neither the builtin list nor any pool knows is refused: a misspelt
 * forbidden capability must not pass silently.
 */
static void
check_known(const char *path, const char *name, const SbxNames *declared)
{
	char *hint;

	for (int i = 0; i < sbx_capability_count; i++)
	{
		if (strcmp(name, sbx_capability_names[i]) == 0)
			return;
	}
	for (int i = 0; i < declared->count; i++)
	{
		if (strcmp(name, declared->names[i]) == 0)
			return;
	}
	hint = sbx_error_nearest_hint(name, declared->names, declared->count);
	if (hint == NULL)
		hint = sbx_error_nearest_hint(name, sbx_capability_names, sbx_capability_count);
	sbx_error_document(REQUEST, path, SBX_REASON_UNKNOWN_NAME, hint);
}

static char **
read_capabilities(const char *path, const JsonbValue *value, const SbxNames *declared,
                  int *count)
{
	char **names = sbx_jsonb_texts(REQUEST, path, value, count);

	for (int i = 0; i < *count; i++)
	{
		if (!sbx_is_capability_name(names[i]))
			sbx_error_document(REQUEST, path, SBX_REASON_BAD_FORMAT, NULL);
		check_known(path, names[i], declared);
	}
	return names;
}

static void
refuse_if_present(const char *path, const JsonbValue *value)
{
	if (value->type != jbvNull)
		sbx_error_not_built(path);
}

static void
read_requirements(const JsonbValue *object, const SbxNames *declared,
                  SbxRequest *request)
{
	static const char *const keys[] = {"requiredCapabilities",
	                                   "forbiddenCapabilities",
	                                   "image",
	                                   "isolation",
	                                   "egress",
	                                   "stateDurability",
	                                   "restrictions",
	                                   "network",
	                                   "timeout"};
	JsonbValue member[lengthof(keys)];
	const char *forbidden_path = "request.requires.forbiddenCapabilities";

	sbx_jsonb_members(REQUEST, "request.requires", object, keys, lengthof(keys), member,
	                  NULL);
	request->required =
	    read_capabilities("request.requires.requiredCapabilities", &member[0], declared,
	                      &request->required_count);
	request->forbidden = read_capabilities(forbidden_path, &member[1], declared,
	                                       &request->forbidden_count);
	for (int i = 0; i < request->forbidden_count; i++)
	{
		for (int j = 0; j < request->required_count; j++)
		{
			if (strcmp(request->forbidden[i], request->required[j]) == 0)
				sbx_error_document(REQUEST, forbidden_path, SBX_REASON_CONFLICT, NULL);
		}
	}
	for (size_t i = 2; i < lengthof(keys); i++)
		refuse_if_present(sbx_jsonb_path("request.requires", keys[i]), &member[i]);
}

static void
read_routing(const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"strategy", "latencyObjective",
	                                   "acquisitionFallback", "maxAcquisitionAttempts"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(REQUEST, "request.routing", object, keys, lengthof(keys), member,
	                  NULL);
	request->strategy =
	    sbx_jsonb_word(REQUEST, "request.routing.strategy", &member[0],
	                   sbx_strategy_names, SBX_STRATEGY_COUNT, SBX_STRATEGY_BALANCED);
	request->objective =
	    sbx_jsonb_word(REQUEST, "request.routing.latencyObjective", &member[1],
	                   sbx_objective_names, SBX_OBJECTIVE_COUNT, SBX_OBJECTIVE_READY);
	for (size_t i = 2; i < lengthof(keys); i++)
		refuse_if_present(sbx_jsonb_path("request.routing", keys[i]), &member[i]);
}

static void
read_env(const JsonbValue *value, SbxRequest *request)
{
	request->env = sbx_jsonb_pairs(REQUEST, "request.launch.env", value, false,
	                               &request->env_count);
	for (int i = 0; i < request->env_count; i++)
	{
		if (!sbx_is_environment_name(request->env[i].key))
			sbx_error_document(
			    REQUEST, sbx_jsonb_path("request.launch.env", request->env[i].key),
			    SBX_REASON_BAD_FORMAT, NULL);
	}
}

static void
read_labels(const JsonbValue *value, SbxRequest *request)
{
	request->labels = sbx_jsonb_pairs(REQUEST, "request.launch.labels", value, false,
	                                  &request->label_count);
	for (int i = 0; i < request->label_count; i++)
	{
		if (strncmp(request->labels[i].key, "sbx-router-", strlen("sbx-router-")) == 0)
			sbx_error_document(
			    REQUEST,
			    sbx_jsonb_path("request.launch.labels", request->labels[i].key),
			    SBX_REASON_RESERVED, NULL);
	}
}

static void
read_launch(const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"name", "env", "labels", "createTimeoutSeconds"};
	const char *timeout_path = "request.launch.createTimeoutSeconds";
	JsonbValue member[lengthof(keys)];
	int64 seconds;

	sbx_jsonb_members(REQUEST, "request.launch", object, keys, lengthof(keys), member,
	                  NULL);
	request->name = sbx_jsonb_text(REQUEST, "request.launch.name", &member[0]);
	read_env(&member[1], request);
	read_labels(&member[2], request);
	seconds = sbx_jsonb_int64(REQUEST, timeout_path, &member[3], 0);
	if (member[3].type != jbvNull &&
	    (seconds < 1 || seconds > SBX_MAX_CREATE_TIMEOUT_SECONDS))
		sbx_error_document(REQUEST, timeout_path, SBX_REASON_OUT_OF_RANGE, NULL);
	request->create_timeout_ms = seconds * 1000;
}

SbxRequest *
sbx_request_parse(Jsonb *jsonb, const SbxNames *declared)
{
	static const char *const keys[] = {"resources", "requires",      "region",
	                                   "routing",   "placement",     "providerId",
	                                   "launch",    "idempotencyKey"};
	JsonbValue root;
	JsonbValue member[lengthof(keys)];
	SbxRequest *request = palloc0(sizeof(SbxRequest));

	sbx_jsonb_document(REQUEST, "request", jsonb, &root);
	sbx_jsonb_members(REQUEST, "request", &root, keys, lengthof(keys), member, NULL);
	read_resources(&member[0], request);
	read_requirements(&member[1], declared, request);
	refuse_if_present("request.region", &member[2]);
	read_routing(&member[3], request);
	refuse_if_present("request.placement", &member[4]);
	request->provider_id = sbx_jsonb_text(REQUEST, "request.providerId", &member[5]);
	read_launch(&member[6], request);
	refuse_if_present("request.idempotencyKey", &member[7]);
	return request;
}
