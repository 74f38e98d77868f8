/*
 * profile.c
 *		What a pool declares: capability profile and signals, from jsonb.
 */
#include "core/profile.h"

#include "core/jsonwalk.h"
#include "core/jsonwrite.h"

/* --- sets ------------------------------------------------------------------- */

static int
compare_numbers(const void *a, const void *b)
{
	int left = *(const int *) a;
	int right = *(const int *) b;

	return left < right ? -1 : (left > right ? 1 : 0);
}

bool
sbx_set_contains_large(const SbxSet *set, int number)
{
	return set->count > 0 && bsearch(&number, set->members, set->count, sizeof(int),
	                                 compare_numbers) != NULL;
}

/* The set of some names, which become known. */
static void
fill_set(char *const *names, int count, SbxNames *known, SbxSet *set)
{
	int numbers[SBX_MAX_MEMBERS];

	set->bits = 0;
	set->members = NULL;
	set->count = 0;
	for (int i = 0; i < count; i++)
	{
		int number = sbx_names_intern(known, names[i]);

		if (number < SBX_SET_BITS)
			set->bits |= UINT64CONST(1) << number;
		else
			numbers[set->count++] = number;
	}
	if (set->count == 0)
		return;
	set->members = palloc(sizeof(int) * set->count);
	memcpy(set->members, numbers, sizeof(int) * set->count);
	qsort(set->members, set->count, sizeof(int), compare_numbers);
}

/* Parsing happens in a context that lives as long as the registrations do. */
static void
free_texts(char **texts, int count)
{
	for (int i = 0; i < count; i++)
		pfree(texts[i]);
	if (texts != NULL)
		pfree(texts);
}

static void
read_set(const SbxPath *path, const JsonbValue *value, SbxNames *texts, SbxSet *set)
{
	int count;
	char **names = sbx_jsonb_texts(path, value, &count);

	fill_set(names, count, texts, set);
	free_texts(names, count);
}

static void
read_capability_names(const SbxPath *path, const JsonbValue *value, SbxNames *known,
                      SbxSet *set)
{
	int count;
	char **names;

	if (value->type == jbvNull)
	{
		fill_set((char **) sbx_default_capabilities, sbx_default_capability_count,
		         known, set);
		return;
	}
	names = sbx_jsonb_texts(path, value, &count);
	for (int i = 0; i < count; i++)
	{
		if (!sbx_is_capability_name(names[i]))
			sbx_refuse(path, SBX_REASON_BAD_FORMAT, NULL);
	}
	fill_set(names, count, known, set);
	free_texts(names, count);
}

/* --- the profile ---------------------------------------------------------------- */

static void
read_resources(const SbxPath *path, const JsonbValue *object, SbxResources *resources)
{
	static const char *const keys[] = {"cpu", "memoryMb", "diskMb", "gpu"};
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	resources->cpu = sbx_jsonb_double(SBX_MEMBER(path, keys[0]), &member[0], 0);
	resources->memory_mb = sbx_jsonb_int64(SBX_MEMBER(path, keys[1]), &member[1], 0);
	resources->disk_mb = sbx_jsonb_int64(SBX_MEMBER(path, keys[2]), &member[2], 0);
	resources->gpu = sbx_jsonb_int64(SBX_MEMBER(path, keys[3]), &member[3], 0);
}

static void
read_image(const SbxPath *path, const JsonbValue *object, SbxDeclared *declared,
           SbxProfile *profile)
{
	static const char *const keys[] = {"identity", "binaries"};
	JsonbValue member[lengthof(keys)];
	char *identity;

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, NULL);
	identity = sbx_jsonb_text(SBX_MEMBER(path, keys[0]), &member[0]);
	profile->image_number =
	    identity == NULL ? -1 : sbx_names_intern(declared->images, identity);
	read_set(SBX_MEMBER(path, keys[1]), &member[1], declared->texts,
	         &profile->binaries);
}

/*
 * An absent lifetime is unknown and satisfies no requirement; null is unbounded and
 * satisfies every one.  The easiest rule to break.
 */
static void
read_timeout(const SbxPath *path, const JsonbValue *object, SbxNames *texts,
             SbxProfile *profile)
{
	static const char *const keys[] = {"semantics", "granularityMs",
	                                   "maxSandboxLifetimeMs"};
	JsonbValue member[lengthof(keys)];
	bool present[lengthof(keys)];

	sbx_jsonb_members(path, object, keys, lengthof(keys), member, present);
	read_set(SBX_MEMBER(path, keys[0]), &member[0], texts, &profile->semantics);
	profile->granularity_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[1]), &member[1], -1);
	profile->max_lifetime_ms =
	    sbx_jsonb_int64(SBX_MEMBER(path, keys[2]), &member[2],
	                    present[2] ? SBX_LIFETIME_UNBOUNDED : SBX_LIFETIME_UNKNOWN);
}

static void
read_network(const SbxPath *path, const JsonbValue *object, SbxNames *known,
             SbxProfile *profile)
{
	char *claims[SBX_MAX_MEMBERS];
	JsonbValue key;
	JsonbValue item;
	SbxWalk walk;
	int count = 0;

	sbx_jsonb_any_object(path, object);
	if (object->type == jbvNull)
	{
		profile->network = NULL;
		fill_set(NULL, 0, known, &profile->claims);
		return;
	}
	profile->network = JsonbValueToJsonb(unconstify(JsonbValue *, object));
	sbx_walk_start(&walk, &profile->network->root);
	while (sbx_walk_member(&walk, &key, &item))
	{
		if ((claims[count] = sbx_network_claim(&key, &item)) != NULL)
			count++;
	}
	fill_set(claims, count, known, &profile->claims);
	for (int i = 0; i < count; i++)
		pfree(claims[i]);
}

void
sbx_profile_parse(const SbxPath *pool, const JsonbValue *document,
                  SbxDeclared *declared, SbxProfile *profile)
{
	static const char *const keys[] = {
	    "capabilities", "resources",       "regions",      "image",   "isolation",
	    "egress",       "stateDurability", "restrictions", "network", "timeout"};
	const SbxPath *path = SBX_MEMBER(pool, "capabilities");
	SbxNames *texts = declared->texts;
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, document, keys, lengthof(keys), member, NULL);
	read_capability_names(SBX_MEMBER(path, keys[0]), &member[0], declared->capabilities,
	                      &profile->capabilities);
	read_resources(SBX_MEMBER(path, keys[1]), &member[1], &profile->resources);
	read_set(SBX_MEMBER(path, keys[2]), &member[2], texts, &profile->regions);
	read_image(SBX_MEMBER(path, keys[3]), &member[3], declared, profile);
	profile->isolation = sbx_jsonb_word(SBX_MEMBER(path, keys[4]), &member[4],
	                                    sbx_isolation_names, sbx_isolation_count, -1);
	profile->egress = sbx_jsonb_word(SBX_MEMBER(path, keys[5]), &member[5],
	                                 sbx_egress_names, sbx_egress_count, -1);
	profile->durability =
	    sbx_jsonb_word(SBX_MEMBER(path, keys[6]), &member[6], sbx_durability_names,
	                   sbx_durability_count, -1);
	read_set(SBX_MEMBER(path, keys[7]), &member[7], texts, &profile->restrictions);
	read_network(SBX_MEMBER(path, keys[8]), &member[8], declared->claims, profile);
	read_timeout(SBX_MEMBER(path, keys[9]), &member[9], texts, profile);
}

/* --- signals ----------------------------------------------------------------------- */

static Jsonb *
signals_document(const SbxSignals *signals)
{
	JsonbParseState *state = NULL;

	sbx_push_begin(&state, NULL);
	sbx_push_double(&state, "estimatedCost", signals->estimated_cost);
	sbx_push_double(&state, "coldStartLatencyMs", signals->cold_start_latency_ms);
	sbx_push_double(&state, "readyLatencyMs", signals->ready_latency_ms);
	sbx_push_double(&state, "completionWithinBudgetRate", signals->completion_rate);
	sbx_push_bool(&state, "available", signals->available);
	return sbx_push_finish(&state);
}

void
sbx_signals_parse(const SbxPath *pool, const JsonbValue *document, SbxSignals *signals)
{
	static const char *const keys[] = {"estimatedCost", "coldStartLatencyMs",
	                                   "readyLatencyMs", "completionWithinBudgetRate",
	                                   "available"};
	const SbxPath *path = SBX_MEMBER(pool, "signals");
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, document, keys, lengthof(keys), member, NULL);

	/* The defaults are equal placeholders: they prefer no pool. */
	signals->estimated_cost =
	    sbx_jsonb_double(SBX_MEMBER(path, keys[0]), &member[0], 1);
	signals->cold_start_latency_ms =
	    sbx_jsonb_double(SBX_MEMBER(path, keys[1]), &member[1], 1);
	signals->ready_latency_ms =
	    sbx_jsonb_double(SBX_MEMBER(path, keys[2]), &member[2], 1);
	signals->completion_rate =
	    sbx_jsonb_double(SBX_MEMBER(path, keys[3]), &member[3], 1);
	if (signals->completion_rate > 1)
		sbx_refuse(SBX_MEMBER(path, keys[3]), SBX_REASON_OUT_OF_RANGE, NULL);
	signals->available = sbx_jsonb_bool(SBX_MEMBER(path, keys[4]), &member[4], true);
	signals->document = signals_document(signals);
}
