/*
 * agent37_fields.c
 *		What a create may say of an instance, and what may be changed later.
 *
 * What is not known is refused: nothing that a client relies on is ignored.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

#define USER_LIMIT        200
#define NAME_LIMIT        60
#define METADATA_LIMIT    4096 /* bytes of JSON */
#define VARIABLE_COUNT    32
#define VARIABLE_LIMIT    4096
#define IDLE_MAXIMUM      86400
#define PUBLIC_PORT_COUNT 20

/* Characters, not bytes. */
static size_t
text_length(const char *text)
{
	size_t length = 0;

	for (; *text != '\0'; text++)
		if ((*text & 0xC0) != 0x80)
			length++;
	return length;
}

static bool
is_integer_within(const json_t *value, int64_t least, int64_t most)
{
	return json_is_integer(value) && json_integer_value(value) >= least &&
	       json_integer_value(value) <= most;
}

/* True if the object has no member but these; the list ends with NULL. */
static bool
has_only(const json_t *object, const char *const *names)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) object, name, value)
	{
		size_t i = 0;

		while (names[i] != NULL && strcmp(names[i], name) != 0)
			i++;
		if (names[i] == NULL)
			return false;
	}
	return true;
}

static bool
check_template(EmuRequest *request, const char *name, const json_t *value)
{
	(void) name;
	if (!emu_is_plain_string(value) ||
	    !agent37_template_valid(json_string_value(value)))
		agent37_invalid(request,
		                "template must be a name, or name@version; it is no image");
	else if (!agent37_template_known(json_string_value(value)))
		agent37_invalid(request, "unknown template \"%.200s\"",
		                json_string_value(value));
	else
		return true;
	return false;
}

/*
 * Resources: GB, and vCPUs
 */

static const struct
{
	int cpu;
	int memory;
	int disk; /* if the create names none */
	int disk_maximum;
} shapes[] = {{2, 4, 4, 12}, {4, 8, 6, 20}, {8, 16, 12, 40}};

#define SHAPE_COUNT  (sizeof(shapes) / sizeof(shapes[0]))
#define DISK_MINIMUM 2

/* The place of the shape; SHAPE_COUNT if there is none like it. */
static size_t
shape_of(const json_t *resources)
{
	const json_t *cpu = json_object_get(resources, "cpu");
	const json_t *memory = json_object_get(resources, "memory");
	size_t i = 0;

	while (i < SHAPE_COUNT &&
	       (!is_integer_within(cpu, shapes[i].cpu, shapes[i].cpu) ||
	        !is_integer_within(memory, shapes[i].memory, shapes[i].memory)))
		i++;
	return i;
}

static bool
check_resources(EmuRequest *request, const char *name, const json_t *value)
{
	static const char *const members[] = {"cpu", "memory", "disk", NULL};
	const json_t *disk = json_object_get(value, "disk");
	size_t shape = shape_of(value);

	(void) name;
	if (!json_is_object(value) || !has_only(value, members) || shape == SHAPE_COUNT)
		agent37_invalid(request, "resources must be 2/4, 4/8 or 8/16 vCPU and GB");
	else if (disk != NULL &&
	         !is_integer_within(disk, DISK_MINIMUM, shapes[shape].disk_maximum))
		agent37_invalid(request, "resources.disk must be between %d and %d GB",
		                DISK_MINIMUM, shapes[shape].disk_maximum);
	else
		return true;
	return false;
}

EmuResources
agent37_resources(const json_t *body)
{
	const json_t *resources = json_object_get(body, "resources");
	const json_t *disk = json_object_get(resources, "disk");
	size_t shape = resources != NULL ? shape_of(resources) : 0;

	return (EmuResources){
	    shapes[shape].cpu,
	    shapes[shape].memory,
	    disk != NULL ? (double) json_integer_value(disk) : shapes[shape].disk,
	};
}

static bool
check_type(EmuRequest *request, const char *name, const json_t *value)
{
	const char *type = emu_is_plain_string(value) ? json_string_value(value) : "";

	(void) name;
	if (strcmp(type, "dedicated") == 0)
		return true;
	if (strcmp(type, "shared") == 0)
		agent37_fail(request, 403, "shared_unavailable",
		             "shared instances are not enabled for this workspace");
	else
		agent37_invalid(request, "type must be dedicated or shared");
	return false;
}

static bool
check_label(EmuRequest *request, const char *name, const json_t *value)
{
	size_t limit = strcmp(name, "user") == 0 ? USER_LIMIT : NAME_LIMIT;

	if (emu_is_plain_string(value) && text_length(json_string_value(value)) <= limit)
		return true;
	agent37_invalid(request, "%s must be a string of at most %zu characters", name,
	                limit);
	return false;
}

static bool
check_metadata(EmuRequest *request, const char *name, const json_t *value)
{
	char *text = json_is_object(value) ? json_dumps(value, JSON_COMPACT) : NULL;
	bool good = text != NULL && strlen(text) <= METADATA_LIMIT;

	(void) name;
	if (!good)
		agent37_invalid(request, "metadata must be an object of at most %d bytes",
		                METADATA_LIMIT);
	free(text);
	return good;
}

/*
 * Variables
 */

static bool
variable_name_valid(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return *name >= 'A' && *name <= 'Z' && name[strspn(name, letters)] == '\0';
}

static bool
variable_reserved(const char *name)
{
	static const char *const reserved[] = {
	    "AGENT37_INSTANCE_ID",   "AGENT37_RUNTIME_IMAGE_REF",
	    "AGENT37_AGENT_TYPE",    "AGENT37_GATEWAY_PORT",
	    "OPENCLAW_GATEWAY_PORT", "OPENCLAW_CONTROL_UI_INSTANCE_ORIGIN",
	};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strcmp(name, reserved[i]) == 0)
			return true;
	return false;
}

static bool
check_variable(EmuRequest *request, const char *name, const json_t *value)
{
	if (!variable_name_valid(name))
		agent37_invalid(request,
		                "env: \"%.100s\" must be of uppercase letters, digits and "
		                "underscores, the first a letter",
		                name);
	else if (variable_reserved(name))
		agent37_invalid(request, "env: %s is reserved", name);
	else if (!emu_is_plain_string(value) ||
	         text_length(json_string_value(value)) > VARIABLE_LIMIT)
		agent37_invalid(request,
		                "env: %.100s must be a string of at most %d characters", name,
		                VARIABLE_LIMIT);
	else
		return true;
	return false;
}

static bool
check_environment(EmuRequest *request, const char *name, const json_t *value)
{
	const char *variable;
	json_t *text;

	(void) name;
	if (!json_is_object(value) || json_object_size(value) > VARIABLE_COUNT)
	{
		agent37_invalid(request, "env must be an object of at most %d strings",
		                VARIABLE_COUNT);
		return false;
	}
	json_object_foreach ((json_t *) (uintptr_t) value, variable, text)
		if (!check_variable(request, variable, text))
			return false;
	return true;
}

/*
 * The rest
 */

static bool
check_budget(EmuRequest *request, const char *name, const json_t *value)
{
	static const char *const members[] = {"monthly_cap_micros", "credit_micros", NULL};
	bool good = json_is_object(value) && has_only(value, members);

	(void) name;
	for (size_t i = 0; members[i] != NULL; i++)
	{
		const json_t *amount = json_object_get(value, members[i]);

		good = good && (amount == NULL || is_integer_within(amount, 0, INT64_MAX));
	}
	if (!good)
		agent37_invalid(request, "budget has two amounts, in micros");
	return good;
}

static bool
check_auto_sleep(EmuRequest *request, const char *name, const json_t *value)
{
	if (!json_is_boolean(value))
		agent37_invalid(request, "%s must be a boolean", name);
	return json_is_boolean(value);
}

static bool
check_idle_timeout(EmuRequest *request, const char *name, const json_t *value)
{
	if (is_integer_within(value, agent37_config.idle_minimum, IDLE_MAXIMUM))
		return true;
	agent37_invalid(request, "%s must be between %lld and %d", name,
	                (long long) agent37_config.idle_minimum, IDLE_MAXIMUM);
	return false;
}

static bool
port_reserved(int64_t port)
{
	static const int reserved[] = {3737, 9119, 7681, 8080, 6080, 7890, 22022};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (port == reserved[i])
			return true;
	return false;
}

static bool
check_public_ports(EmuRequest *request, const char *name, const json_t *value)
{
	static const char *const members[] = {"port", "prefix", NULL};
	size_t index;
	json_t *entry;
	bool good = json_is_array(value) && json_array_size(value) <= PUBLIC_PORT_COUNT;

	json_array_foreach (value, index, entry)
	{
		const json_t *port = json_object_get(entry, "port");
		const json_t *prefix = json_object_get(entry, "prefix");

		good = good && has_only(entry, members) && is_integer_within(port, 1, 65535) &&
		       !port_reserved(json_integer_value(port)) &&
		       (prefix == NULL || emu_is_plain_string(prefix));
	}
	if (!good)
		agent37_invalid(request, "%s must be a list of at most %d free ports", name,
		                PUBLIC_PORT_COUNT);
	return good;
}

static const struct
{
	const char *name;
	bool (*check)(EmuRequest *request, const char *name, const json_t *value);
	bool changeable;
	bool nullable; /* in a change: null takes it away */
} fields[] = {
    {"template", check_template, false, false},
    {"resources", check_resources, false, false},
    {"type", check_type, false, false},
    {"user", check_label, true, true},
    {"name", check_label, true, true},
    {"metadata", check_metadata, true, true},
    {"env", check_environment, false, false},
    {"budget", check_budget, false, false},
    {"auto_sleep", check_auto_sleep, true, false},
    {"idle_timeout_seconds", check_idle_timeout, true, false},
    {"public_ports", check_public_ports, false, false},
};

static bool
check_all(EmuRequest *request, const json_t *body, bool change)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) body, name, value)
	{
		size_t i = 0;

		while (i < sizeof(fields) / sizeof(fields[0]) &&
		       (strcmp(fields[i].name, name) != 0 || (change && !fields[i].changeable)))
			i++;
		if (i == sizeof(fields) / sizeof(fields[0]))
		{
			agent37_invalid(request, "\"%.100s\" is not a field of this request", name);
			return false;
		}
		if (change && fields[i].nullable && json_is_null(value))
			continue;
		if (!fields[i].check(request, name, value))
			return false;
	}
	return true;
}

bool
agent37_check_create(EmuRequest *request, const json_t *body)
{
	if (!check_all(request, body, false))
		return false;
	if (json_object_get(body, "idle_timeout_seconds") == NULL ||
	    json_is_true(json_object_get(body, "auto_sleep")))
		return true;
	agent37_invalid(request, "idle_timeout_seconds needs auto_sleep");
	return false;
}

bool
agent37_check_change(EmuRequest *request, const json_t *body)
{
	return check_all(request, body, true);
}
