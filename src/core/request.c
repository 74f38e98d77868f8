/*
 * request.c
 *		request jsonb -> SbxRequest, strictly validated.
 *
 * Objects are read in the order in which the request language lists their keys,
 * so that of several faults the first in that order is the one reported; unknown
 * keys of an object come before its members.
 */
#include "core/request.h"

#include "core/jsonwalk.h"
#include "utils/numeric.h"

/*
 * Longest create timeout accepted: a day.  No provider holds a create for longer
 * than minutes; the bound keeps milliseconds far from overflow.
 */
#define SBX_MAX_CREATE_TIMEOUT_SECONDS 86400

/* Longest idempotency key. */
#define SBX_MAX_IDEMPOTENCY_KEY 255

#define RESERVED_LABEL_PREFIX "sbx-router-"

SbxDeclared *
sbx_declared_create(MemoryContext context)
{
	SbxDeclared *declared = MemoryContextAlloc(context, sizeof(SbxDeclared));

	declared->capabilities = sbx_names_create(context);
	declared->texts = sbx_names_create(context);
	declared->images = sbx_names_create(context);
	declared->claims = sbx_names_create(context);
	for (int i = 0; i < sbx_capability_count; i++)
		(void) sbx_names_intern(declared->capabilities, sbx_capability_names[i]);
	return declared;
}

/*
 * Longest value of a claim.  Known ones are words and small numbers; every text that
 * is interned stays as long as the registrations do, and 1e300 has 301 digits.
 */
#define SBX_MAX_CLAIMED_VALUE 64

/* No key holds a control character, which therefore ends it. */
static char *
join_claim(const JsonbValue *key, char type, const char *value, int length)
{
	int key_length = key->val.string.len;
	char *claim;

	if (length > SBX_MAX_CLAIMED_VALUE)
		return NULL;
	claim = palloc(key_length + length + 3);
	memcpy(claim, key->val.string.val, key_length);
	claim[key_length] = '\001';
	claim[key_length + 1] = type;
	memcpy(claim + key_length + 2, value, length);
	claim[key_length + 2 + length] = '\0';
	return claim;
}

char *
sbx_network_claim(const JsonbValue *key, const JsonbValue *value)
{
	char *number;
	char *claim;

	switch (value->type)
	{
		case jbvString:
			return join_claim(key, '"', value->val.string.val, value->val.string.len);
		case jbvBool:
			return join_claim(key, value->val.boolean ? 't' : 'f', "", 0);
		case jbvNumeric:
			number = numeric_normalize(value->val.numeric);
			claim = join_claim(key, '0', number, strlen(number));
			pfree(number);
			return claim;
		default:
			return NULL;
	}
}

/* --- lists ---------------------------------------------------------------- */

static void
read_names(const SbxPath *path, const JsonbValue *value, const SbxNames *known,
           SbxNameList *list)
{
	list->names = sbx_jsonb_texts(path, value, &list->count);
	if (list->count == 0)
		return;
	list->numbers = palloc(sizeof(int) * list->count);
	for (int i = 0; i < list->count; i++)
		list->numbers[i] = sbx_names_find(known, list->names[i]);
}

/*
 * A name that neither the builtin list nor any pool knows is refused: a misspelt
 * forbidden capability must not pass silently.
 */
static void
read_capabilities(const SbxPath *path, const JsonbValue *value,
                  const SbxDeclared *declared, SbxNameList *list)
{
	read_names(path, value, declared->capabilities, list);
	for (int i = 0; i < list->count; i++)
	{
		if (!sbx_is_capability_name(list->names[i]))
			sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
		if (list->numbers[i] < 0)
			sbx_refuse(path, SBX_REASON_UNKNOWN_NAME,
			           sbx_error_nearest_hint(list->names[i],
			                                  sbx_names_all(declared->capabilities),
			                                  sbx_names_count(declared->capabilities)));
	}
}

/* --- the parts, in the order of the language --------------------------------- */

static void
read_resources(const SbxPath *path, const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"cpu", "memoryMb", "diskMb", "gpu"};
	JsonbValue member[lengthof(keys)];
	SbxResources *resources = &request->resources;

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	resources->cpu = sbx_jsonb_double(SBX_MEMBER(path, keys[0]), &member[0], 0);
	resources->memory_mb = sbx_jsonb_int64(SBX_MEMBER(path, keys[1]), &member[1], 0);
	resources->disk_mb = sbx_jsonb_int64(SBX_MEMBER(path, keys[2]), &member[2], 0);
	resources->gpu = sbx_jsonb_int64(SBX_MEMBER(path, keys[3]), &member[3], 0);
}

static void
read_image(const SbxPath *path, const JsonbValue *object, const SbxDeclared *declared,
           SbxRequest *request)
{
	static const char *const keys[] = {"identity", "requiredBinaries"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	request->image_identity = sbx_jsonb_text(SBX_MEMBER(path, keys[0]), &member[0]);
	if (request->image_identity != NULL)
		request->image_number =
		    sbx_names_find(declared->images, request->image_identity);
	read_names(SBX_MEMBER(path, keys[1]), &member[1], declared->texts,
	           &request->binaries);
}

static void
read_need(const JsonbValue *key, const JsonbValue *value, const SbxDeclared *declared,
          SbxNetworkNeed *need)
{
	char *claim = sbx_network_claim(key, value);

	need->key = pnstrdup(key->val.string.val, key->val.string.len);
	need->value = *value;
	need->is_claim = claim != NULL;
	need->number = claim == NULL ? -1 : sbx_names_find(declared->claims, claim);
}

static void
read_network(const SbxPath *path, const JsonbValue *object, const SbxDeclared *declared,
             SbxRequest *request)
{
	JsonbValue key;
	JsonbValue item;
	SbxWalk walk;
	int n = 0;

	sbx_jsonb_any_object(path, object);
	if (object->type == jbvNull)
		return;
	request->network = palloc(sizeof(SbxNetworkNeed) *
	                          (JsonContainerSize(object->val.binary.data) + 1));
	sbx_walk_start(&walk, object->val.binary.data);
	while (sbx_walk_member(&walk, &key, &item))
	{
		/* null equals absence: no need */
		if (item.type != jbvNull)
			read_need(&key, &item, declared, &request->network[n++]);
	}
	request->network_count = n;
}

static void
read_timeout(const SbxPath *path, const JsonbValue *object, const SbxDeclared *declared,
             SbxRequest *request)
{
	static const char *const keys[] = {"semantics", "granularityMs",
	                                   "maxReadyLatencyMs", "requiredSandboxLifetimeMs",
	                                   "completionBudgetMs"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	read_names(SBX_MEMBER(path, keys[0]), &member[0], declared->texts,
	           &request->semantics);
	request->granularity_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[1]), &member[1], -1);
	request->max_ready_latency_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[2]), &member[2], -1);
	request->required_lifetime_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[3]), &member[3], -1);
	request->completion_budget_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[4]), &member[4], -1);
}

static void
read_capability_needs(const SbxPath *path, const JsonbValue *member,
                      const SbxDeclared *declared, SbxRequest *request)
{
	const SbxPath *forbidden_path = SBX_MEMBER(path, "forbiddenCapabilities");

	read_capabilities(SBX_MEMBER(path, "requiredCapabilities"), &member[0], declared,
	                  &request->required);
	read_capabilities(forbidden_path, &member[1], declared, &request->forbidden);
	for (int i = 0; i < request->forbidden.count; i++)
	{
		for (int j = 0; j < request->required.count; j++)
		{
			if (request->forbidden.numbers[i] == request->required.numbers[j])
				sbx_refuse(forbidden_path, SBX_REASON_CONFLICT, NULL);
		}
	}
}

static void
read_requirements(const SbxPath *path, const JsonbValue *object,
                  const SbxDeclared *declared, SbxRequest *request)
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

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	read_capability_needs(path, member, declared, request);
	read_image(SBX_MEMBER(path, "image"), &member[2], declared, request);

	/* A requirement of "unknown" isolation would mean nothing. */
	request->isolation = sbx_jsonb_word(SBX_MEMBER(path, "isolation"), &member[3],
	                                    sbx_isolation_names, SBX_ISOLATION_UNKNOWN, -1);
	request->egress = sbx_jsonb_word(SBX_MEMBER(path, "egress"), &member[4],
	                                 sbx_egress_names, sbx_egress_count, -1);
	request->durability =
	    sbx_jsonb_word(SBX_MEMBER(path, "stateDurability"), &member[5],
	                   sbx_durability_names, sbx_durability_count, -1);
	read_names(SBX_MEMBER(path, "restrictions"), &member[6], declared->texts,
	           &request->restrictions);
	read_network(SBX_MEMBER(path, "network"), &member[7], declared, request);
	read_timeout(SBX_MEMBER(path, "timeout"), &member[8], declared, request);
}

static void
read_region(const SbxPath *path, const JsonbValue *object, const SbxDeclared *declared,
            SbxRequest *request)
{
	static const char *const keys[] = {"preferred", "required"};
	const SbxPath *preferred_path = SBX_MEMBER(path, keys[0]);
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	read_names(preferred_path, &member[0], declared->texts,
	           &request->preferred_regions);
	request->region_required =
	    sbx_jsonb_bool(SBX_MEMBER(path, keys[1]), &member[1], false);
	if (request->region_required && request->preferred_regions.count == 0)
		sbx_refuse(preferred_path, SBX_REASON_MISSING, NULL);
}

static void
read_routing(const SbxPath *path, const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"strategy", "latencyObjective",
	                                   "acquisitionFallback", "maxAcquisitionAttempts"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	request->strategy =
	    sbx_jsonb_word(SBX_MEMBER(path, keys[0]), &member[0], sbx_strategy_names,
	                   SBX_STRATEGY_COUNT, SBX_STRATEGY_BALANCED);
	request->objective =
	    sbx_jsonb_word(SBX_MEMBER(path, keys[1]), &member[1], sbx_objective_names,
	                   SBX_OBJECTIVE_COUNT, SBX_OBJECTIVE_READY);
	request->fallback_allowed =
	    sbx_jsonb_word(SBX_MEMBER(path, keys[2]), &member[2], sbx_fallback_names,
	                   sbx_fallback_count, 0) == 0;
	request->max_attempts = SBX_DEFAULT_ATTEMPTS;
	if (member[3].type != jbvNull)
		request->max_attempts =
		    sbx_jsonb_range(SBX_MEMBER(path, keys[3]), &member[3], 1, SBX_MAX_ATTEMPTS);
}

/*
 * Any concrete affinity bypasses routing, whatever its shape: it is another
 * system's business.
 */
static void
read_placement(const SbxPath *path, const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"authority", "nodeAffinity"};
	JsonbValue member[lengthof(keys)];
	int authority;

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	authority = sbx_jsonb_word(SBX_MEMBER(path, keys[0]), &member[0],
	                           sbx_authority_names, sbx_authority_count, 0);
	request->routable = authority == 0 && member[1].type == jbvNull;
}

static void
read_env(const SbxPath *path, const JsonbValue *value, SbxRequest *request)
{
	request->env = sbx_jsonb_pairs(path, value, false, &request->env_count);
	for (int i = 0; i < request->env_count; i++)
	{
		if (!sbx_is_environment_name(request->env[i].key))
			sbx_refuse(SBX_MEMBER(path, request->env[i].key), SBX_REASON_BAD_FORMAT,
			           NULL);
	}
}

static void
read_labels(const SbxPath *path, const JsonbValue *value, SbxRequest *request)
{
	request->labels = sbx_jsonb_pairs(path, value, false, &request->label_count);
	for (int i = 0; i < request->label_count; i++)
	{
		if (strncmp(request->labels[i].key, RESERVED_LABEL_PREFIX,
		            strlen(RESERVED_LABEL_PREFIX)) == 0)
			sbx_refuse(SBX_MEMBER(path, request->labels[i].key), SBX_REASON_RESERVED,
			           NULL);
	}
}

static void
read_launch(const SbxPath *path, const JsonbValue *object, SbxRequest *request)
{
	static const char *const keys[] = {"name", "env", "labels", "createTimeoutSeconds"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	request->name = sbx_jsonb_text(SBX_MEMBER(path, keys[0]), &member[0]);
	read_env(SBX_MEMBER(path, keys[1]), &member[1], request);
	read_labels(SBX_MEMBER(path, keys[2]), &member[2], request);
	if (member[3].type != jbvNull)
		request->create_timeout_ms =
		    sbx_jsonb_range(SBX_MEMBER(path, keys[3]), &member[3], 1,
		                    SBX_MAX_CREATE_TIMEOUT_SECONDS) *
		    1000;
}

static void
read_idempotency_key(const SbxPath *path, const JsonbValue *value, SbxRequest *request)
{
	request->idempotency_key = sbx_jsonb_text(path, value);
	if (request->idempotency_key == NULL)
		return;
	if (strlen(request->idempotency_key) > SBX_MAX_IDEMPOTENCY_KEY)
		sbx_refuse(path, SBX_REASON_TOO_LARGE, NULL);
	for (const char *c = request->idempotency_key; *c != '\0'; c++)
	{
		if (*c < ' ' || *c > '~')
			sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
	}
}

SbxRequest *
sbx_request_parse_at(const SbxPath *path, Jsonb *jsonb, const SbxDeclared *declared)
{
	static const char *const keys[] = {"resources", "requires",      "region",
	                                   "routing",   "placement",     "providerId",
	                                   "launch",    "idempotencyKey"};
	JsonbValue document;
	JsonbValue member[lengthof(keys)];
	SbxRequest *request = palloc0(sizeof(SbxRequest));

	request->image_number = -1;
	sbx_jsonb_document(path, jsonb, &document);
	sbx_jsonb_members(path, &document, keys, lengthof(keys), member, NULL);
	read_resources(SBX_MEMBER(path, keys[0]), &member[0], request);
	read_requirements(SBX_MEMBER(path, keys[1]), &member[1], declared, request);
	read_region(SBX_MEMBER(path, keys[2]), &member[2], declared, request);
	read_routing(SBX_MEMBER(path, keys[3]), &member[3], request);
	read_placement(SBX_MEMBER(path, keys[4]), &member[4], request);
	request->provider_id = sbx_jsonb_text(SBX_MEMBER(path, keys[5]), &member[5]);
	read_launch(SBX_MEMBER(path, keys[6]), &member[6], request);
	read_idempotency_key(SBX_MEMBER(path, keys[7]), &member[7], request);
	return request;
}

SbxRequest *
sbx_request_parse(Jsonb *jsonb, const SbxDeclared *declared)
{
	const SbxPath path = {SBX_DOCUMENT_REQUEST, NULL, "request"};

	return sbx_request_parse_at(&path, jsonb, declared);
}

void
sbx_request_check_routable(const SbxRequest *request)
{
	if (!request->routable)
		ereport(ERROR,
		        (errcode(SBX_ERRCODE_ROUTING_NOT_APPLICABLE),
		         errmsg("this request's placement bypasses routing"),
		         errhint("Only the placement authority \"provider\" without a node "
		                 "affinity is routed.")));
}
