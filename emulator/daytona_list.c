/*
 * daytona_list.c
 *		GET /sandbox: the listing with filters and a cursor.
 */
#include "daytona.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LIMIT_DEFAULT 100
#define LIMIT_MAXIMUM 200

typedef enum SortKey
{
	SORT_NAME,
	SORT_CPU,
	SORT_MEMORY,
	SORT_DISK,
	SORT_ACTIVITY,
	SORT_CREATED
} SortKey;

static const char *const sort_names[] = {
    "name", "cpu", "memoryGib", "diskGib", "lastActivityAt", "createdAt",
};

/* Every state that there is makes a legal filter, also those never reached here. */
static const char *const known_states[] = {
    "creating",         "restoring",     "destroying",        "started",
    "stopped",          "starting",      "stopping",          "error",
    "build_failed",     "pending_build", "building_snapshot", "unknown",
    "pulling_snapshot", "archived",      "archiving",         "resizing",
    "snapshotting",     "forking",       "pausing",           "paused",
    "resuming",
};

#define STATE_COUNT (sizeof(known_states) / sizeof(known_states[0]))

typedef struct Query
{
	int limit;
	bool filter_states;
	bool states[STATE_COUNT];
	json_t *labels;
	char *id_prefix;
	char *name_prefix;
	double least[3]; /* cpu, memory, disk; negative: no bound */
	double most[3];
	SortKey sort;
	bool ascending;
	json_t *cursor; /* {"sortValue", "id"} of the last item before */
	EmuText problem;
} Query;

static void
read_limit(Query *query, const char *value)
{
	char *end;
	long limit = strtol(value, &end, 10);

	if (*value == '\0' || *end != '\0' || limit < 1 || limit > LIMIT_MAXIMUM)
		emu_text_add(&query->problem,
		             "limit must not be less than 1 or greater than 200");
	else
		query->limit = (int) limit;
}

static void
read_state(Query *query, const char *value)
{
	for (size_t i = 0; i < STATE_COUNT; i++)
		if (strcmp(value, known_states[i]) == 0)
		{
			query->filter_states = query->states[i] = true;
			return;
		}
	emu_text_format(&query->problem,
	                "each value in states must be one of the known states, "
	                "not %s",
	                value);
}

static void
read_labels(Query *query, const char *value)
{
	const char *name;
	json_t *text;

	json_decref(query->labels);
	query->labels = json_loads(value, 0, NULL);
	if (!json_is_object(query->labels))
		emu_text_add(&query->problem, "Invalid labels JSON");
	json_object_foreach (query->labels, name, text)
		if (!json_is_string(text))
			emu_text_format(&query->problem, "label %s must be a string", name);
}

static void
read_sort(Query *query, const char *value)
{
	for (size_t i = 0; i < sizeof(sort_names) / sizeof(sort_names[0]); i++)
		if (strcmp(value, sort_names[i]) == 0)
		{
			query->sort = (SortKey) i;
			return;
		}
	emu_text_add(&query->problem, "sort must be one of the known fields");
}

static void
read_cursor(Query *query, const char *value)
{
	EmuText decoded = {0};

	json_decref(query->cursor);
	query->cursor = emu_text_unbase64(&decoded, value, strlen(value))
	                    ? json_loadb(decoded.data, decoded.length, 0, NULL)
	                    : NULL;
	emu_text_free(&decoded);
	if (!json_is_string(json_object_get(query->cursor, "id")) ||
	    !json_is_string(json_object_get(query->cursor, "sortValue")))
		emu_text_add(&query->problem, "Invalid cursor");
}

static bool
read_bound(Query *query, const char *name, const char *value)
{
	static const char *const names[] = {"Cpu", "MemoryGiB", "DiskGiB"};
	double *bounds = strncmp(name, "min", 3) == 0   ? query->least
	                 : strncmp(name, "max", 3) == 0 ? query->most
	                                                : NULL;

	for (size_t i = 0; bounds != NULL && i < 3; i++)
		if (strcmp(name + 3, names[i]) == 0)
		{
			bounds[i] = atof(value);
			return true;
		}
	return false;
}

/* Parameters it does not know are ignored, as by the real server. */
static void
read_parameter(void *context, const char *name, const char *value)
{
	Query *query = context;

	if (strcmp(name, "limit") == 0)
		read_limit(query, value);
	else if (strcmp(name, "states") == 0)
		read_state(query, value);
	else if (strcmp(name, "labels") == 0)
		read_labels(query, value);
	else if (strcmp(name, "sort") == 0)
		read_sort(query, value);
	else if (strcmp(name, "cursor") == 0)
		read_cursor(query, value);
	else if (strcmp(name, "order") == 0)
	{
		query->ascending = strcmp(value, "asc") == 0;
		if (!query->ascending && strcmp(value, "desc") != 0)
			emu_text_add(&query->problem, "order must be asc or desc");
	}
	else if (strcmp(name, "id") == 0)
	{
		free(query->id_prefix);
		query->id_prefix = emu_strdup(value);
	}
	else if (strcmp(name, "name") == 0)
	{
		free(query->name_prefix);
		query->name_prefix = emu_strdup(value);
	}
	else
		read_bound(query, name, value);
}

static void
query_free(Query *query)
{
	json_decref(query->labels);
	json_decref(query->cursor);
	free(query->id_prefix);
	free(query->name_prefix);
	emu_text_free(&query->problem);
}

/*
 * Which sandboxes
 */

static bool
labels_match(const Query *query, const EmuSandbox *sandbox)
{
	json_t *labels;
	const char *name;
	json_t *wanted;
	bool match = true;

	if (json_object_size(query->labels) == 0)
		return true;
	labels = json_loads(sandbox->labels, 0, NULL);
	json_object_foreach (query->labels, name, wanted)
		match = match && json_equal(json_object_get(labels, name), wanted);
	json_decref(labels);
	return match;
}

static bool
state_matches(const Query *query, const EmuSandbox *sandbox)
{
	const char *state =
	    daytona_state_names[daytona_listed_state(daytona_details(sandbox))];

	for (size_t i = 0; query->filter_states && i < STATE_COUNT; i++)
		if (query->states[i] && strcmp(state, known_states[i]) == 0)
			return true;
	return !query->filter_states;
}

static bool
sizes_match(const Query *query, const EmuSandbox *sandbox)
{
	double sizes[3] = {
	    sandbox->resources.cpu,
	    sandbox->resources.memory,
	    sandbox->resources.disk,
	};

	for (int i = 0; i < 3; i++)
		if ((query->least[i] >= 0 && sizes[i] < query->least[i]) ||
		    (query->most[i] >= 0 && sizes[i] > query->most[i]))
			return false;
	return true;
}

static bool
prefix_matches(const char *prefix, const char *text)
{
	return prefix == NULL || strncasecmp(prefix, text, strlen(prefix)) == 0;
}

static bool
sandbox_matches(const Query *query, const EmuSandbox *sandbox)
{
	return state_matches(query, sandbox) && sizes_match(query, sandbox) &&
	       prefix_matches(query->id_prefix, sandbox->id) &&
	       prefix_matches(query->name_prefix, sandbox->name) &&
	       labels_match(query, sandbox);
}

/*
 * Order: by the text of the sort value, numbers being written so that text
 * order is number order, and then by id.  So a cursor is simply a place.
 */

typedef struct Item
{
	EmuSandbox *sandbox;
	char value[64];
} Item;

typedef struct Items
{
	Item *list;
	size_t count;
} Items;

static void
item_value(char *value, size_t size, SortKey key, const EmuSandbox *sandbox)
{
	switch (key)
	{
		case SORT_NAME:
			snprintf(value, size, "%s", sandbox->name);
			break;
		case SORT_CPU:
			snprintf(value, size, "%020.3f", sandbox->resources.cpu);
			break;
		case SORT_MEMORY:
			snprintf(value, size, "%020.3f", sandbox->resources.memory);
			break;
		case SORT_DISK:
			snprintf(value, size, "%020.3f", sandbox->resources.disk);
			break;
		case SORT_ACTIVITY:
			snprintf(value, size, "%020lld",
			         (long long) daytona_details(sandbox)->activity_ms);
			break;
		case SORT_CREATED:
			snprintf(value, size, "%020llu", (unsigned long long) sandbox->serial);
			break;
	}
}

static int
item_compare(const void *left, const void *right)
{
	const Item *one = left;
	const Item *other = right;
	int order = strcmp(one->value, other->value);

	return order != 0 ? order : strcmp(one->sandbox->id, other->sandbox->id);
}

static int
item_compare_descending(const void *left, const void *right)
{
	return item_compare(right, left);
}

static bool
after_cursor(const Query *query, const Item *item)
{
	int order;

	if (query->cursor == NULL)
		return true;
	order = strcmp(item->value,
	               json_string_value(json_object_get(query->cursor, "sortValue")));
	if (order == 0)
		order = strcmp(item->sandbox->id,
		               json_string_value(json_object_get(query->cursor, "id")));
	return query->ascending ? order > 0 : order < 0;
}

static void
items_add(Items *items, const Query *query, EmuSandbox *sandbox)
{
	Item item = {.sandbox = sandbox};

	if (!sandbox_matches(query, sandbox))
		return;
	item_value(item.value, sizeof(item.value), query->sort, sandbox);
	if (!after_cursor(query, &item))
		return;
	items->list[items->count++] = item;
}

static void
items_collect(Items *items, const Query *query, EmuAccount *account)
{
	size_t count;
	EmuSandbox **listed = emu_account_listed(account, daytona_config.list_lag, &count);

	items->list = emu_alloc((count + 1) * sizeof(Item));
	for (size_t i = 0; i < count; i++)
		items_add(items, query, listed[i]);
	free(listed);
	if (items->count > 0)
		qsort(items->list, items->count, sizeof(Item),
		      query->ascending ? item_compare : item_compare_descending);
}

static void
write_cursor(EmuText *body, const Item *last)
{
	EmuText cursor = {0};
	EmuText encoded = {0};

	emu_text_add(&cursor, "{");
	emu_json_member(&cursor, "sortValue", last->value);
	emu_json_member(&cursor, "id", last->sandbox->id);
	emu_text_add(&cursor, "}");
	emu_text_base64(&encoded, cursor.data, cursor.length);
	emu_json_member(body, "nextCursor", encoded.data);
	emu_text_free(&cursor);
	emu_text_free(&encoded);
}

static void
answer_items(EmuRequest *request, const Query *query, const Items *items)
{
	size_t shown =
	    items->count < (size_t) query->limit ? items->count : (size_t) query->limit;
	EmuText body = {0};

	emu_text_add(&body, "{\"items\":[");
	for (size_t i = 0; i < shown; i++)
	{
		if (i > 0)
			emu_text_add(&body, ",");
		daytona_write(&body, request, items->list[i].sandbox, true);
	}
	emu_text_add(&body, "]");
	if (shown < items->count)
		write_cursor(&body, &items->list[shown - 1]);
	else
		emu_json_member_raw(&body, "nextCursor", "null");
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

void
daytona_list(EmuRequest *request, EmuAccount *account)
{
	Query query = {
	    .limit = LIMIT_DEFAULT,
	    .least = {-1, -1, -1},
	    .most = {-1, -1, -1},
	    .sort = SORT_ACTIVITY,
	};
	Items items = {0};

	emu_request_each_parameter(request, read_parameter, &query);
	if (query.problem.length > 0)
		daytona_refuse(request, 400, query.problem.data);
	else
	{
		items_collect(&items, &query, account);
		answer_items(request, &query, &items);
		free(items.list);
	}
	query_free(&query);
}
