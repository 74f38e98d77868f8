/*
 * freestyle_list.c
 *		GET /v5/vms: filters, pages and counts.
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

typedef struct Filter
{
	char *state; /* each of the texts NULL: any */
	char *slug;
	char *snapshot;
	char *metadata; /* key:value pairs, commas between them */
	long limit;
	long offset;
} Filter;

static void
filter_free(Filter *filter)
{
	free(filter->state);
	free(filter->slug);
	free(filter->snapshot);
	free(filter->metadata);
}

/* False if it is not a number of at least `least`. */
static bool
read_number(EmuRequest *request, const char *name, long least, long *number)
{
	char *text = emu_request_parameter(request, name);
	char *end = text;
	long value = text != NULL ? strtol(text, &end, 10) : *number;
	bool good = text == NULL || (*text != '\0' && *end == '\0' && value >= least);

	free(text);
	if (good)
		*number = value;
	return good;
}

static bool
state_known(const char *state)
{
	for (int i = 0; i < FREESTYLE_STATE_COUNT; i++)
		if (strcmp(freestyle_state_names[i], state) == 0)
			return true;
	return false;
}

static bool
filter_read(EmuRequest *request, Filter *filter)
{
	filter->state = emu_request_parameter(request, "state");
	filter->slug = emu_request_parameter(request, "slug");
	filter->snapshot = emu_request_parameter(request, "snapshotId");
	filter->metadata = emu_request_parameter(request, "metadata");
	filter->limit = (long) freestyle_config.page_size;
	if (!read_number(request, "limit", 1, &filter->limit) ||
	    !read_number(request, "offset", 0, &filter->offset))
		freestyle_invalid(request, "limit and offset must be numbers");
	else if (filter->state != NULL && !state_known(filter->state))
		freestyle_invalid(request, "unknown state");
	else
		return true;
	return false;
}

/* Spaces around are no part of it: there is no way to write them. */
static char *
trimmed(const char *text, size_t length)
{
	while (length > 0 && *text == ' ')
	{
		text++;
		length--;
	}
	while (length > 0 && text[length - 1] == ' ')
		length--;
	return emu_strndup(text, length);
}

static bool
pair_matches(const FreestyleVm *vm, const char *pair, size_t length)
{
	const char *colon = memchr(pair, ':', length);
	char *name;
	char *value;
	const char *has;
	bool matches;

	if (colon == NULL)
		return false;
	name = trimmed(pair, (size_t) (colon - pair));
	value = trimmed(colon + 1, length - (size_t) (colon + 1 - pair));
	has = json_string_value(json_object_get(vm->metadata, name));
	matches = has != NULL && strcmp(has, value) == 0;
	free(name);
	free(value);
	return matches;
}

static bool
metadata_matches(const FreestyleVm *vm, const char *pairs)
{
	while (*pairs != '\0')
	{
		size_t length = strcspn(pairs, ",");

		if (!pair_matches(vm, pairs, length))
			return false;
		pairs += length;
		if (*pairs == ',')
			pairs++;
	}
	return true;
}

static bool
matches(const EmuSandbox *sandbox, const Filter *filter)
{
	const FreestyleVm *vm = freestyle_vm(sandbox);
	const char *state = freestyle_state_names[freestyle_shown_state(sandbox)];

	if (filter->state != NULL && strcmp(filter->state, state) != 0)
		return false;
	if (filter->slug != NULL &&
	    (vm->slug == NULL || strcmp(filter->slug, vm->slug) != 0))
		return false;
	if (filter->snapshot != NULL && strcmp(filter->snapshot, vm->snapshot_id) != 0 &&
	    (vm->snapshot_slug == NULL || strcmp(filter->snapshot, vm->snapshot_slug) != 0))
		return false;
	return filter->metadata == NULL || metadata_matches(vm, filter->metadata);
}

/* Those that do not match are taken out; returns how many are left. */
static size_t
select_matching(EmuSandbox **listed, size_t count, const Filter *filter)
{
	int64_t surfaced = emu_wall_ms() - freestyle_config.surface_delay;
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (listed[i]->created_ms <= surfaced && matches(listed[i], filter))
			listed[kept++] = listed[i];
	return kept;
}

static void
write_counts(EmuText *body, EmuSandbox **listed, size_t count)
{
	static const FreestyleState order[] = {FREESTYLE_RUNNING, FREESTYLE_STARTING,
	                                       FREESTYLE_PAUSING, FREESTYLE_PAUSED,
	                                       FREESTYLE_STOPPED};
	int64_t counts[FREESTYLE_STATE_COUNT] = {0};

	for (size_t i = 0; i < count; i++)
		counts[freestyle_shown_state(listed[i])]++;
	emu_json_member_integer(body, "totalCount", (int64_t) count);
	for (size_t i = 0; i < FREESTYLE_STATE_COUNT; i++)
	{
		EmuText name = {0};

		emu_text_format(&name, "%sCount", freestyle_state_names[order[i]]);
		emu_json_member_integer(body, name.data, counts[order[i]]);
		emu_text_free(&name);
	}
}

static void
answer_page(EmuRequest *request, EmuSandbox **listed, size_t count,
            const Filter *filter)
{
	size_t begin = (size_t) filter->offset < count ? (size_t) filter->offset : count;
	long limit = filter->limit < freestyle_config.page_size
	                 ? filter->limit
	                 : (long) freestyle_config.page_size;
	size_t end = count - begin < (size_t) limit ? count : begin + (size_t) limit;
	EmuText body = {0};

	emu_text_add(&body, "{\"vms\":[");
	for (size_t i = begin; i < end; i++)
	{
		if (i > begin)
			emu_text_add(&body, ",");
		freestyle_write(&body, listed[i]);
	}
	emu_text_add(&body, "]");
	write_counts(&body, listed, count);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/* Newest first.  The counts are of all that match, not of the page. */
void
freestyle_list(EmuRequest *request, EmuAccount *account)
{
	Filter filter = {0};
	size_t count;
	EmuSandbox **listed;

	if (filter_read(request, &filter))
	{
		listed = emu_account_listed(account, freestyle_config.list_lag, &count);
		count = select_matching(listed, count, &filter);
		answer_page(request, listed, count, &filter);
		free(listed);
	}
	filter_free(&filter);
}
