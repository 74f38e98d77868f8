/*
 * freestyle_firewall.c
 *		The rules of a create: what they must be, and how they are shown.
 */
#include "freestyle.h"

#include <stdio.h>
#include <string.h>

#define DESCRIPTION_LIMIT 1024

static char problem_text[256];

static bool
is_name(const json_t *value)
{
	return json_is_string(value) && json_string_length(value) > 0;
}

static bool
is_port(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= 1 &&
	       json_integer_value(value) <= 65535;
}

static bool
is_protocol(const json_t *value)
{
	static const char *const protocols[] = {"tcp", "udp", "icmp"};

	for (size_t i = 0; json_is_string(value) && i < 3; i++)
		if (strcmp(json_string_value(value), protocols[i]) == 0)
			return true;
	return false;
}

/* Who it is; without any of these it is the VM that is made. */
static bool
has_identity(const json_t *endpoint)
{
	static const char *const names[] = {"vmId", "vpcId", "tunnelId", "cidr", "public"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (json_object_get(endpoint, names[i]) != NULL)
			return true;
	return false;
}

static const char *
members_problem(const json_t *endpoint)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) endpoint, name, value)
	{
		if (strcmp(name, "vmId") == 0 || strcmp(name, "vpcId") == 0 ||
		    strcmp(name, "tunnelId") == 0 || strcmp(name, "cidr") == 0)
		{
			if (!is_name(value))
				return "has an identity that is no string";
		}
		else if (strcmp(name, "public") == 0)
		{
			if (!json_is_true(value))
				return "has a public that is not true";
		}
		else if (strcmp(name, "port") == 0)
		{
			if (!is_port(value))
				return "has a port that is none";
		}
		else if (strcmp(name, "protocol") == 0)
		{
			if (!is_protocol(value))
				return "has a protocol that is none";
		}
		else
			return "has an unknown field";
	}
	return NULL;
}

static const char *
endpoint_problem(const json_t *endpoint)
{
	const char *protocol = json_string_value(json_object_get(endpoint, "protocol"));
	const char *problem;

	if (!json_is_object(endpoint))
		return "must be an object";
	problem = members_problem(endpoint);
	if (problem != NULL)
		return problem;
	if (json_object_get(endpoint, "port") != NULL &&
	    (protocol == NULL || strcmp(protocol, "icmp") == 0))
		return "has a port without tcp or udp";
	if (json_object_get(endpoint, "public") != NULL &&
	    (json_object_get(endpoint, "vmId") != NULL ||
	     json_object_get(endpoint, "vpcId") != NULL ||
	     json_object_get(endpoint, "tunnelId") != NULL))
		return "is public and something else";
	return NULL;
}

static const char *
rule_problem(const json_t *rule)
{
	const char *action = json_string_value(json_object_get(rule, "action"));
	const json_t *description = json_object_get(rule, "description");
	const json_t *source = json_object_get(rule, "source");
	const json_t *destination = json_object_get(rule, "destination");
	size_t known = description != NULL ? 4 : 3;
	const char *problem;

	if (!json_is_object(rule))
		return "a rule must be an object";
	if (action == NULL || strcmp(action, "allow") != 0)
		return "the action of a rule must be allow";
	if (description != NULL &&
	    (!json_is_string(description) ||
	     freestyle_text_length(json_string_value(description)) > DESCRIPTION_LIMIT))
		return "a description must be a string of at most 1024 characters";
	problem = endpoint_problem(source);
	if (problem == NULL)
		problem = endpoint_problem(destination);
	if (problem != NULL)
	{
		snprintf(problem_text, sizeof(problem_text), "an end of a rule %s", problem);
		return problem_text;
	}
	if (json_object_size(rule) != known)
		return "a rule has an unknown field";
	if (has_identity(source) == has_identity(destination))
		return "exactly one end of a rule must be without identity";
	return NULL;
}

const char *
freestyle_firewall_problem(const json_t *firewall)
{
	const json_t *rules = json_object_get(firewall, "rules");
	size_t index;
	json_t *rule;

	if (!json_is_object(firewall))
		return "firewall is required, and must be an object";
	if (!json_is_array(rules) || json_object_size(firewall) != 1)
		return "firewall must have rules, and nothing else";
	json_array_foreach ((json_t *) (uintptr_t) rules, index, rule)
	{
		const char *problem = rule_problem(rule);

		if (problem != NULL)
			return problem;
	}
	return NULL;
}

/* The end without identity gets that of the VM. */
static json_t *
rule_shown(const json_t *rule, const char *vm_id)
{
	json_t *shown = json_deep_copy(rule);
	const char *end =
	    has_identity(json_object_get(rule, "source")) ? "destination" : "source";
	EmuText now = {0};
	char id[EMU_UUID_SIZE];

	emu_uuid(id);
	emu_text_time(&now, emu_wall_ms());
	json_object_set_new(shown, "id", json_sprintf("fw-%s", id));
	json_object_set_new(json_object_get(shown, end), "vmId", json_string(vm_id));
	json_object_set_new(shown, "dependencies",
	                    json_pack("[{s:s,s:s}]", "kind", "vm", "id", vm_id));
	json_object_set_new(shown, "createdAt", json_string(now.data));
	json_object_set_new(shown, "updatedAt", json_string(now.data));
	emu_text_free(&now);
	return shown;
}

json_t *
freestyle_firewall_shown(const json_t *firewall, const char *vm_id)
{
	json_t *shown = json_array();
	size_t index;
	json_t *rule;

	json_array_foreach (json_object_get(firewall, "rules"), index, rule)
		json_array_append_new(shown, rule_shown(rule, vm_id));
	return shown;
}
