/*
 * freestyle_fields.c
 *		What a create and an update may say of a VM.
 *
 * What is not known is refused: nothing that a client relies on is ignored.
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

#define SLUG_LIMIT     63
#define METADATA_COUNT 64
#define METADATA_LIMIT 63
#define WINDOW_MAXIMUM (INT64_C(10) * 366 * 86400)

/* Characters, not bytes. */
size_t
freestyle_text_length(const char *text)
{
	size_t length = 0;

	for (; *text != '\0'; text++)
		if ((*text & 0xC0) != 0x80)
			length++;
	return length;
}

static bool
is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static bool
slug_valid(const char *slug)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	size_t length = strlen(slug);

	return length >= 1 && length <= SLUG_LIMIT && slug[strspn(slug, letters)] == '\0' &&
	       *slug != '-' && slug[length - 1] != '-' && strstr(slug, "--") == NULL;
}

static bool
check_slug(EmuRequest *request, const char *name, const json_t *value)
{
	if (is_text(value) && slug_valid(json_string_value(value)))
		return true;
	freestyle_invalid(
	    request, "%s must be 1 to 63 lower case letters, digits and single hyphens",
	    name);
	return false;
}

static bool
check_text(EmuRequest *request, const char *name, const json_t *value)
{
	if (!is_text(value))
		freestyle_invalid(request, "%s must be a string", name);
	return is_text(value);
}

static bool
check_flag(EmuRequest *request, const char *name, const json_t *value)
{
	if (!json_is_boolean(value))
		freestyle_invalid(request, "%s must be a boolean", name);
	return json_is_boolean(value);
}

/* Seconds, -1 for none; only what does not run may be given no time at all. */
static bool
check_window(EmuRequest *request, const char *name, const json_t *value)
{
	bool may_be_zero = strcmp(name, "autoDeleteSeconds") == 0;
	int64_t seconds = json_integer_value(value);

	if (!json_is_integer(value) || seconds < FREESTYLE_NO_WINDOW ||
	    (seconds == 0 && !may_be_zero) || seconds > WINDOW_MAXIMUM)
		freestyle_invalid(request, "%s must be a number of seconds, or -1", name);
	else if (may_be_zero && freestyle_config.auto_delete_cap >= 0 &&
	         seconds > freestyle_config.auto_delete_cap)
		freestyle_invalid(request, "%s is longer than the plan allows", name);
	else
		return true;
	return false;
}

static bool
check_metadata(EmuRequest *request, const char *name, const json_t *value)
{
	const char *key;
	json_t *text;
	bool good = json_is_object(value) && json_object_size(value) <= METADATA_COUNT;

	json_object_foreach ((json_t *) (uintptr_t) value, key, text)
		good = good && freestyle_text_length(key) >= 1 &&
		       freestyle_text_length(key) <= METADATA_LIMIT && is_text(text) &&
		       freestyle_text_length(json_string_value(text)) <= METADATA_LIMIT;
	if (!good)
		freestyle_invalid(request,
		                  "%s must be at most %d strings of at most %d characters",
		                  name, METADATA_COUNT, METADATA_LIMIT);
	return good;
}

static bool
check_nothing(EmuRequest *request, const char *name, const json_t *value)
{
	(void) request;
	(void) name;
	(void) value;
	return true;
}

static bool
refuse_unless_empty(EmuRequest *request, const char *name, const json_t *value)
{
	(void) name;
	if (json_is_array(value) && json_array_size(value) == 0)
		return true;
	freestyle_not_emulated(request);
	return false;
}

static const struct
{
	const char *name;
	bool (*check)(EmuRequest *request, const char *name, const json_t *value);
	bool changeable;
} fields[] = {
    {"slug", check_slug, true},
    {"reassignSlug", check_flag, true},
    {"displayName", check_text, true},
    {"snapshotId", check_text, false},
    {"metadata", check_metadata, true},
    {"idleTimeoutSeconds", check_window, true},
    {"autoDeleteSeconds", check_window, true},
    {"ttlSeconds", check_window, true},
    {"maxRunSeconds", check_window, true},
    {"maxRunTotalSeconds", check_window, true},
    {"automaticRestart", check_flag, true},
    {"firewall", check_nothing, false}, /* looked at when the VM could be made */
    {"placement", refuse_unless_empty, false},
    {"vpcs", refuse_unless_empty, false},
    {"networks", refuse_unless_empty, false},
    {"tls", refuse_unless_empty, false},
};

#define FIELD_COUNT (sizeof(fields) / sizeof(fields[0]))

static bool
check_all(EmuRequest *request, const json_t *body, bool update)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) body, name, value)
	{
		size_t i = 0;

		while (i < FIELD_COUNT &&
		       (strcmp(fields[i].name, name) != 0 || (update && !fields[i].changeable)))
			i++;
		if (i == FIELD_COUNT)
		{
			freestyle_invalid(request, "unknown field \"%.100s\"", name);
			return false;
		}
		if (!update && json_is_null(value))
			continue;

		/* An empty slug takes it away. */
		if (update && fields[i].check == check_slug && json_is_string(value) &&
		    json_string_length(value) == 0)
			continue;
		if (!fields[i].check(request, name, value))
			return false;
	}
	if (!json_is_true(json_object_get(body, "reassignSlug")) ||
	    json_is_string(json_object_get(body, "slug")))
		return true;
	freestyle_invalid(request, "reassignSlug needs a slug");
	return false;
}

bool
freestyle_check_create(EmuRequest *request, const json_t *body)
{
	return check_all(request, body, false);
}

bool
freestyle_check_update(EmuRequest *request, const json_t *body)
{
	return check_all(request, body, true);
}

/* What is not mentioned stays. */
void
freestyle_take_windows(FreestyleWindows *windows, const json_t *body)
{
	const struct
	{
		const char *name;
		int64_t *place;
	} names[] = {
	    {"idleTimeoutSeconds", &windows->idle},
	    {"autoDeleteSeconds", &windows->auto_delete},
	    {"ttlSeconds", &windows->ttl},
	    {"maxRunSeconds", &windows->max_run},
	    {"maxRunTotalSeconds", &windows->max_run_total},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		const json_t *value = json_object_get(body, names[i].name);

		if (json_is_integer(value))
			*names[i].place = json_integer_value(value);
	}
}
