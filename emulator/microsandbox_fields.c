/*
 * microsandbox_fields.c
 *		What a create may say of a sandbox.
 *
 * What is not known is refused: nothing that a client relies on is ignored.
 */
#include "microsandbox.h"

#include <string.h>

#define NAME_MAXIMUM    128
#define SLUG_MINIMUM    3
#define SLUG_MAXIMUM    63
#define WORKDIR_MAXIMUM 200
#define VCPUS_MAXIMUM   255

#define LETTERS_AND_DIGITS                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool
is_integer_within(const json_t *value, int64_t least, int64_t most)
{
	return json_is_integer(value) && json_integer_value(value) >= least &&
	       json_integer_value(value) <= most;
}

static bool
is_nothing(const json_t *value)
{
	return value == NULL || json_is_null(value);
}

static bool
text_or_nothing(const json_t *value)
{
	return is_nothing(value) || emu_is_plain_string(value);
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
	return json_is_object(object);
}

static bool
is_one_of(const json_t *value, const char *const *words)
{
	const char *text = emu_is_plain_string(value) ? json_string_value(value) : "";

	while (*words != NULL && strcmp(*words, text) != 0)
		words++;
	return *words != NULL;
}

bool
microsandbox_name_valid(const char *name)
{
	return strspn(name, LETTERS_AND_DIGITS) > 0 &&
	       name[strspn(name, LETTERS_AND_DIGITS ".-_")] == '\0' &&
	       strlen(name) <= NAME_MAXIMUM;
}

/*
 * Each check answers with what is wrong, NULL if nothing is.
 */

static const char *
check_name(const json_t *value)
{
	return emu_is_plain_string(value) &&
	               microsandbox_name_valid(json_string_value(value))
	           ? NULL
	           : "name must be of 1 to 128 letters, digits, '.', '-' and '_', the "
	             "first "
	             "a letter or a digit";
}

static const char *
check_slug(const json_t *value)
{
	const char *slug = emu_is_plain_string(value) ? json_string_value(value) : "";
	size_t length = strlen(slug);

	return length >= SLUG_MINIMUM && length <= SLUG_MAXIMUM &&
	               slug[strspn(slug, "abcdefghijklmnopqrstuvwxyz0123456789-")] ==
	                   '\0' &&
	               *slug != '-' && slug[length - 1] != '-' && strstr(slug, "--") == NULL
	           ? NULL
	           : "slug must be of 3 to 63 small letters, digits and single hyphens";
}

static const char *
check_image(const json_t *value)
{
	static const char *const members[] = {"type", "reference", NULL};
	static const char *const types[] = {"oci", NULL};
	const json_t *reference = json_object_get(value, "reference");

	return has_only(value, members) &&
	               is_one_of(json_object_get(value, "type"), types) &&
	               emu_is_plain_string(reference) && json_string_length(reference) > 0
	           ? NULL
	           : "image must have the type oci and a reference";
}

static const char *
check_resources(const json_t *value)
{
	static const char *const members[] = {"vcpus", "memory_mib", "disk_size_mib", NULL};
	const json_t *disk = json_object_get(value, "disk_size_mib");

	return has_only(value, members) &&
	               is_integer_within(json_object_get(value, "vcpus"), 1,
	                                 VCPUS_MAXIMUM) &&
	               is_integer_within(json_object_get(value, "memory_mib"), 1,
	                                 UINT32_MAX) &&
	               (is_nothing(disk) || is_integer_within(disk, 1, UINT32_MAX))
	           ? NULL
	           : "resources must have vcpus, memory_mib and perhaps disk_size_mib";
}

static const char *
check_runtime(const json_t *value)
{
	static const char *const members[] = {"workdir", "shell", "scripts",   "entrypoint",
	                                      "cmd",     "user",  "log_level", NULL};
	static const char *const texts[] = {"workdir", "shell", "user", "log_level", NULL};
	const json_t *workdir = json_object_get(value, "workdir");

	if (!has_only(value, members))
		return "runtime has a member that is not known";
	for (size_t i = 0; texts[i] != NULL; i++)
		if (!text_or_nothing(json_object_get(value, texts[i])))
			return "runtime: workdir, shell, user and log_level must be strings";
	return is_nothing(workdir) || (*json_string_value(workdir) == '/' &&
	                               json_string_length(workdir) <= WORKDIR_MAXIMUM)
	           ? NULL
	           : "runtime.workdir must be an absolute path";
}

static const char *
check_environment(const json_t *value)
{
	static const char *const members[] = {"key", "value", NULL};
	size_t index;
	json_t *pair;

	json_array_foreach (value, index, pair)
	{
		const json_t *key = json_object_get(pair, "key");

		if (!has_only(pair, members) || !emu_is_plain_string(key) ||
		    json_string_length(key) == 0 ||
		    strchr(json_string_value(key), '=') != NULL ||
		    !emu_is_plain_string(json_object_get(pair, "value")))
			return "env must be a list of pairs, a key and a value";
	}
	return json_is_array(value) ? NULL : "env must be a list";
}

static const char *
check_labels(const json_t *value)
{
	static const char *const reserved[] = {"sandbox.", "microsandbox.", "service."};
	const char *key;
	json_t *label;

	json_object_foreach ((json_t *) (uintptr_t) value, key, label)
	{
		if (*key == '\0' || !json_is_string(label))
			return "labels must be strings under keys that are not empty";
		for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
			if (strncmp(key, reserved[i], strlen(reserved[i])) == 0)
				return "labels: sandbox., microsandbox. and service. are reserved";
	}
	return json_is_object(value) ? NULL : "labels must be an object";
}

static const char *
check_network(const json_t *value)
{
	static const char *const members[] = {"enabled", "strict", NULL};
	const json_t *strict = json_object_get(value, "strict");

	return has_only(value, members) &&
	               json_is_boolean(json_object_get(value, "enabled")) &&
	               (strict == NULL || json_is_boolean(strict))
	           ? NULL
	           : "network has enabled and strict only";
}

static const char *
check_lifecycle(const json_t *value)
{
	static const char *const members[] = {"ephemeral", "max_duration_secs",
	                                      "idle_timeout_secs", NULL};
	const json_t *ephemeral = json_object_get(value, "ephemeral");
	bool good =
	    has_only(value, members) && (ephemeral == NULL || json_is_boolean(ephemeral));

	for (size_t i = 1; good && members[i] != NULL; i++)
	{
		const json_t *seconds = json_object_get(value, members[i]);

		good = is_nothing(seconds) || is_integer_within(seconds, 1, UINT32_MAX);
	}
	return good ? NULL : "lifecycle has ephemeral, and two numbers of seconds";
}

static const char *
check_pull_policy(const json_t *value)
{
	static const char *const policies[] = {"if_missing", "always", "never", NULL};

	return is_one_of(value, policies)
	           ? NULL
	           : "pull_policy must be if_missing, always or never";
}

static const char *
check_registry(const json_t *value)
{
	static const char *const modes[] = {"auto", "anonymous", "specific", "inline",
	                                    NULL};

	return is_one_of(json_object_get(value, "mode"), modes)
	           ? NULL
	           : "registry.mode must be auto, anonymous, specific or inline";
}

static const char *
check_text(const json_t *value)
{
	return emu_is_plain_string(value) ? NULL : "security_profile must be a string";
}

static const char *
check_anything(const json_t *value)
{
	(void) value;
	return NULL;
}

static const char *
check_empty_list(const json_t *value)
{
	return json_is_array(value) && json_array_size(value) == 0
	           ? NULL
	           : "rlimits, mounts and patches are not emulated";
}

static const struct
{
	const char *name;
	const char *(*check)(const json_t *value);
	bool required;
} fields[] = {
    {"name", check_name, true},
    {"image", check_image, true},
    {"slug", check_slug, false},
    {"resources", check_resources, false},
    {"runtime", check_runtime, false},
    {"env", check_environment, false},
    {"labels", check_labels, false},
    {"rlimits", check_empty_list, false},
    {"mounts", check_empty_list, false},
    {"patches", check_empty_list, false},
    {"network", check_network, false},
    {"init", check_anything, false},
    {"pull_policy", check_pull_policy, false},
    {"security_profile", check_text, false},
    {"lifecycle", check_lifecycle, false},
    {"registry", check_registry, false},
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

static const char *
check_all(const json_t *body)
{
	const char *names[FIELD_COUNT + 1] = {NULL};

	for (size_t i = 0; i < FIELD_COUNT; i++)
	{
		const json_t *value = json_object_get(body, fields[i].name);
		const char *problem =
		    value != NULL || fields[i].required ? fields[i].check(value) : NULL;

		if (problem != NULL)
			return problem;
		names[i] = fields[i].name;
	}
	return has_only(body, names) ? NULL : "the body has a member that is not known";
}

/* Above what the organization may have. */
static bool
is_too_large(const json_t *resources)
{
	return json_integer_value(json_object_get(resources, "vcpus")) >
	           microsandbox_config.cpu_maximum ||
	       json_integer_value(json_object_get(resources, "memory_mib")) >
	           microsandbox_config.memory_maximum ||
	       json_integer_value(json_object_get(resources, "disk_size_mib")) >
	           microsandbox_config.disk_maximum;
}

/* Answers itself if it is not as it must be. */
bool
microsandbox_check_create(EmuRequest *request, const json_t *body)
{
	const char *problem = check_all(body);

	if (problem != NULL)
		microsandbox_invalid(request, "%s", problem);
	else if (is_too_large(json_object_get(body, "resources")))
		microsandbox_fail(request, 400, "invalid_sandbox_config",
		                  "no sandbox may be as large");
	else
		return true;
	return false;
}
