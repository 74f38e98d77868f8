/*
 * vercel_fields.c
 *		What a sandbox is told to be: the members of a create and of an update.
 *
 * A member that is not known is an error, so that a misspelt one is not
 * silently without effect.
 */
#include "vercel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_LIMIT      128
#define IMAGE_LIMIT     255
#define TAG_COUNT       5
#define TAG_VALUE_LIMIT 256
#define PORT_COUNT      15
#define VCPUS_LIMIT     32

static char problem_text[512];

/*
 * What is wrong with a value, NULL if nothing is
 */

static const char *
text_problem(const json_t *value)
{
	return emu_is_plain_string(value) && json_string_length(value) > 0
	           ? NULL
	           : "should be a string that is not empty";
}

static const char *
name_problem(const json_t *value)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                              "0123456789_-";
	const char *name = json_string_value(value);

	if (text_problem(value) != NULL || strlen(name) > NAME_LIMIT ||
	    name[strspn(name, letters)] != '\0')
		return "should match ^[a-zA-Z0-9_-]{1,128}$";
	return NULL;
}

static const char *
flag_problem(const json_t *value)
{
	return json_is_boolean(value) ? NULL : "should be a boolean";
}

static const char *
ports_problem(const json_t *value)
{
	size_t index;
	json_t *port;
	bool good = json_is_array(value) && json_array_size(value) <= PORT_COUNT;

	json_array_foreach ((json_t *) (uintptr_t) value, index, port)
		good = good && json_is_integer(port) && json_integer_value(port) >= 1024 &&
		       json_integer_value(port) <= 65535;
	return good ? NULL : "should be at most 15 integers between 1024 and 65535";
}

static const char *
timeout_problem(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 1000 &&
	               json_integer_value(value) <= vercel_config.maximum_timeout
	           ? NULL
	           : "should be an integer between 1000 and the plan's maximum";
}

static const char *
resources_problem(const json_t *value)
{
	const json_t *vcpus = json_object_get(value, "vcpus");
	const json_t *memory = json_object_get(value, "memory");
	json_int_t count = json_integer_value(vcpus);

	if (!json_is_integer(vcpus) || count < 1 || count > VCPUS_LIMIT ||
	    (count != 1 && count % 2 != 0))
		return "should have vcpus, which are 1 or an even number up to 32";
	if (memory != NULL && (!json_is_integer(memory) ||
	                       json_integer_value(memory) != count * VERCEL_MEMORY_PER_CPU))
		return "should have 2048 MB of memory per vcpu";
	return NULL;
}

static const char *
image_problem(const json_t *value)
{
	return text_problem(value) == NULL && json_string_length(value) <= IMAGE_LIMIT
	           ? NULL
	           : "should be a string of 1 to 255 characters";
}

static const char *
runtime_problem(const json_t *value)
{
	static const char *const runtimes[] = {"node22", "node24", "node26", "python3.13"};
	const char *name = json_is_string(value) ? json_string_value(value) : "";

	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (strcmp(name, runtimes[i]) == 0)
			return NULL;
	return "should be one of node22, node24, node26, python3.13";
}

const char *
vercel_strings_problem(const json_t *value)
{
	EmuEnvironment environment = {0};
	bool good = json_is_object(value) && emu_environment_set_json(&environment, value);

	emu_environment_free(&environment);
	return good ? NULL : "should be an object of strings under names of variables";
}

static const char *
tags_problem(const json_t *value)
{
	const char *name;
	json_t *text;
	bool good = json_is_object(value) && json_object_size(value) <= TAG_COUNT;

	json_object_foreach ((json_t *) (uintptr_t) value, name, text)
		good =
		    good && json_is_string(text) && json_string_length(text) <= TAG_VALUE_LIMIT;
	return good ? NULL : "should be at most 5 strings of at most 256 characters";
}

static const char *
source_problem(const json_t *value)
{
	const char *type = json_string_value(json_object_get(value, "type"));
	const char *wanted = type == NULL                    ? NULL
	                     : strcmp(type, "snapshot") == 0 ? "snapshotId"
	                     : strcmp(type, "git") == 0 || strcmp(type, "tarball") == 0
	                         ? "url"
	                         : NULL;

	return wanted != NULL && text_problem(json_object_get(value, wanted)) == NULL
	           ? NULL
	           : "should be a git, tarball or snapshot source";
}

static bool
list_of_strings(const json_t *list)
{
	size_t index;
	json_t *entry;
	bool good = list == NULL || json_is_array(list);

	json_array_foreach ((json_t *) (uintptr_t) list, index, entry)
		good = good && json_is_string(entry);
	return good;
}

const char *
vercel_network_policy_problem(const json_t *value)
{
	const json_t *mode = json_object_get(value, "mode");
	const json_t *allow = json_object_get(value, "allow");
	const json_t *subnets = json_object_get(value, "subnets");
	bool named =
	    json_is_string(mode) && (strcmp(json_string_value(mode), "allow-all") == 0 ||
	                             strcmp(json_string_value(mode), "deny-all") == 0);

	if (!json_is_object(value) || (mode != NULL && !named) ||
	    (mode == NULL && allow == NULL && subnets == NULL) ||
	    (subnets != NULL && !json_is_object(subnets)) ||
	    (!json_is_object(allow) && !list_of_strings(allow)) ||
	    !list_of_strings(json_object_get(subnets, "allow")) ||
	    !list_of_strings(json_object_get(subnets, "deny")))
		return "should have the mode allow-all or deny-all, or allow, or subnets";
	return NULL;
}

static const char *
regions_problem(const json_t *value)
{
	return json_is_array(value) && list_of_strings(value)
	           ? NULL
	           : "should be an array of regions";
}

static const char *
duration_problem(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 0
	           ? NULL
	           : "should be an integer of at least 0";
}

static const char *
retention_problem(const json_t *value)
{
	const json_t *count = json_object_get(value, "count");

	return json_is_integer(count) && json_integer_value(count) >= 1 &&
	               json_integer_value(count) <= 10
	           ? NULL
	           : "should have a count between 1 and 10";
}

static const char *
object_problem(const json_t *value)
{
	return json_is_object(value) ? NULL : "should be an object";
}

/*
 * Members
 */

#define FOR_CREATE 1
#define FOR_UPDATE 2

static const struct Field
{
	const char *name;
	int used;
	const char *(*problem)(const json_t *value);
} fields[] = {
    {"projectId", FOR_CREATE, text_problem},
    {"name", FOR_CREATE, name_problem},
    {"image", FOR_CREATE, image_problem},
    {"runtime", FOR_CREATE, runtime_problem},
    {"source", FOR_CREATE, source_problem},
    {"env", FOR_CREATE, vercel_strings_problem},
    {"ports", FOR_CREATE | FOR_UPDATE, ports_problem},
    {"timeout", FOR_CREATE | FOR_UPDATE, timeout_problem},
    {"resources", FOR_CREATE | FOR_UPDATE, resources_problem},
    {"persistent", FOR_CREATE | FOR_UPDATE, flag_problem},
    {"tags", FOR_CREATE | FOR_UPDATE, tags_problem},
    {"networkPolicy", FOR_CREATE | FOR_UPDATE, vercel_network_policy_problem},
    {"networkId", FOR_CREATE | FOR_UPDATE, text_problem},
    {"region", FOR_CREATE | FOR_UPDATE, text_problem},
    {"failoverRegions", FOR_CREATE | FOR_UPDATE, regions_problem},
    {"snapshotExpiration", FOR_CREATE | FOR_UPDATE, duration_problem},
    {"keepLastSnapshots", FOR_CREATE | FOR_UPDATE, retention_problem},
    {"mounts", FOR_CREATE | FOR_UPDATE, object_problem},
    {"currentSnapshotId", FOR_UPDATE, text_problem},
};

static const struct Field *
field_of(const char *name, int used)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if ((fields[i].used & used) != 0 && strcmp(fields[i].name, name) == 0)
			return &fields[i];
	return NULL;
}

static const char *
members_problem(const json_t *body, int used)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) body, name, value)
	{
		const struct Field *field = field_of(name, used);
		const char *problem = field != NULL ? field->problem(value) : NULL;

		if (field == NULL)
			snprintf(problem_text, sizeof(problem_text),
			         "Invalid request: should NOT have additional property `%.100s`.",
			         name);
		else if (problem != NULL)
			snprintf(problem_text, sizeof(problem_text), "Invalid request: `%s` %s.",
			         name, problem);
		else
			continue;
		return problem_text;
	}
	return NULL;
}

static bool
fails_over_to_itself(const json_t *body)
{
	const char *region = json_string_value(json_object_get(body, "region"));
	size_t index;
	json_t *other;

	json_array_foreach (json_object_get(body, "failoverRegions"), index, other)
		if (strcmp(json_string_value(other), region != NULL ? region : VERCEL_REGION) ==
		    0)
			return true;
	return false;
}

const char *
vercel_create_problem(const json_t *body, bool legacy)
{
	const char *problem = members_problem(body, FOR_CREATE);
	bool runtime = json_object_get(body, "runtime") != NULL;

	if (problem != NULL)
		return problem;
	if (runtime && !legacy)
		return "Invalid request: should NOT have additional property `runtime`.";
	if (runtime && json_object_get(body, "image") != NULL)
		return "Invalid request: `runtime` and `image` exclude each other.";
	if (fails_over_to_itself(body))
		return "Invalid request: `failoverRegions` must not contain `region`.";
	return NULL;
}

const char *
vercel_update_problem(const json_t *body)
{
	return members_problem(body, FOR_UPDATE);
}

/*
 * Taking over
 */

static void
apply_json(json_t **place, const json_t *body, const char *name)
{
	json_t *value = json_object_get(body, name);

	if (value == NULL)
		return;
	json_decref(*place);
	*place = json_incref(value);
}

static void
apply_text(char **place, const json_t *body, const char *name)
{
	const char *value = json_string_value(json_object_get(body, name));

	if (value == NULL)
		return;
	free(*place);
	*place = emu_strdup(value);
}

/* What is shown again as it was given, and has no other effect here. */
static void
apply_options(VercelSandbox *details, const json_t *body)
{
	static const char *const names[] = {"failoverRegions", "networkId",
	                                    "snapshotExpiration", "keepLastSnapshots",
	                                    "mounts"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(body, names[i]) != NULL)
			json_object_set(details->options, names[i],
			                json_object_get(body, names[i]));
}

void
vercel_apply(VercelSandbox *details, const json_t *body)
{
	const json_t *timeout = json_object_get(body, "timeout");
	const json_t *vcpus = json_object_get(json_object_get(body, "resources"), "vcpus");
	const json_t *persistent = json_object_get(body, "persistent");
	const char *snapshot =
	    json_string_value(json_object_get(body, "currentSnapshotId"));

	if (timeout != NULL)
		details->timeout_ms = json_integer_value(timeout);
	if (vcpus != NULL)
		details->vcpus = (int) json_integer_value(vcpus);
	if (persistent != NULL)
		details->persistent = json_is_true(persistent);
	if (snapshot != NULL)
		snprintf(details->snapshot, sizeof(details->snapshot), "%s", snapshot);
	apply_text(&details->region, body, "region");
	apply_json(&details->environment, body, "env");
	apply_json(&details->ports, body, "ports");
	apply_json(&details->network_policy, body, "networkPolicy");
	apply_options(details, body);
}
