/*
 * vercel_list.c
 *		Lists of sandboxes and of sessions, with filters, orders and pages.
 *
 * The order is by the text of the sort value, numbers being written so that
 * text order is number order, and then by creation.  So a cursor is simply a
 * place in that order.
 */
#include "vercel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIMIT_MAXIMUM 50
#define LIMIT_DEFAULT 20

typedef enum SortKey
{
	SORT_CREATED,
	SORT_NAME,
	SORT_STATUS,
	SORT_SNAPSHOT
} SortKey;

static const char *const sort_names[] = {"createdAt", "name", "statusUpdatedAt",
                                         "currentSnapshotId"};

#define SORT_COUNT (sizeof(sort_names) / sizeof(sort_names[0]))

#define VALUE_SIZE 160

typedef struct Query
{
	int limit;
	SortKey sort;
	bool ascending;
	char *name;   /* of the sessions' sandbox, or NULL, as are the next */
	char *prefix; /* of the name */
	char *status;
	char *tag; /* key:value */
	char cursor_value[VALUE_SIZE];
	uint64_t cursor_serial; /* of the last one of the page before, or 0 */
	EmuText problem;
} Query;

/*
 * Parameters
 */

static void
complain(Query *query, const char *problem)
{
	if (query->problem.length == 0)
		emu_text_format(&query->problem, "Invalid request: %s.", problem);
}

static void
read_text(char **place, const char *value)
{
	free(*place);
	*place = emu_strdup(value);
}

static void
read_limit(Query *query, const char *value)
{
	char *end;
	long limit = strtol(value, &end, 10);

	if (*value == '\0' || *end != '\0' || limit < 1 || limit > LIMIT_MAXIMUM)
		complain(query, "`limit` should be between 1 and 50");
	else
		query->limit = (int) limit;
}

static void
read_sort(Query *query, const char *value)
{
	for (size_t i = 0; i < SORT_COUNT; i++)
		if (strcmp(value, sort_names[i]) == 0)
		{
			query->sort = (SortKey) i;
			return;
		}
	complain(query, "`sortBy` should be createdAt, name, statusUpdatedAt or "
	                "currentSnapshotId");
}

static void
read_order(Query *query, const char *value)
{
	query->ascending = strcmp(value, "asc") == 0;
	if (!query->ascending && strcmp(value, "desc") != 0)
		complain(query, "`sortOrder` should be asc or desc");
}

static void
read_status(Query *query, const char *value)
{
	static const char *const known[] = {"running", "stopping", "stopped"};

	read_text(&query->status, value);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(value, known[i]) == 0)
			return;
	complain(query, "`status` should be running, stopping or stopped");
}

static void
read_tag(Query *query, const char *value)
{
	if (query->tag != NULL)
		complain(query, "only one of `tags` is supported");
	if (strchr(value, ':') == NULL || *value == ':')
		complain(query, "`tags` should be key:value");
	read_text(&query->tag, value);
}

/*
 * A cursor is without a meaning to clients: the serial number of the last
 * item, and the value it was sorted by.
 */
static void
read_cursor(Query *query, const char *value)
{
	EmuText decoded = {0};
	unsigned long long serial = 0;
	int read = 0;

	if (!emu_text_unbase64(&decoded, value, strlen(value)) || decoded.length == 0 ||
	    sscanf(decoded.data, "%llu:%n", &serial, &read) != 1 || read == 0 ||
	    serial == 0)
		complain(query, "`cursor` is not one of a page before");
	else
		snprintf(query->cursor_value, VALUE_SIZE, "%s", decoded.data + read);
	query->cursor_serial = serial;
	emu_text_free(&decoded);
}

static void
read_common_parameter(void *context, const char *name, const char *value)
{
	Query *query = context;

	if (strcmp(name, "limit") == 0)
		read_limit(query, value);
	else if (strcmp(name, "sortOrder") == 0)
		read_order(query, value);
	else if (strcmp(name, "cursor") == 0)
		read_cursor(query, value);
}

static void
read_sandbox_parameter(void *context, const char *name, const char *value)
{
	Query *query = context;

	if (strcmp(name, "sortBy") == 0)
		read_sort(query, value);
	else if (strcmp(name, "namePrefix") == 0)
		read_text(&query->prefix, value);
	else if (strcmp(name, "status") == 0)
		read_status(query, value);
	else if (strcmp(name, "tags") == 0)
		read_tag(query, value);
	else
		read_common_parameter(context, name, value);
}

static void
read_session_parameter(void *context, const char *name, const char *value)
{
	Query *query = context;

	if (strcmp(name, "name") == 0)
		read_text(&query->name, value);
	else
		read_common_parameter(context, name, value);
}

static void
check_combination(Query *query)
{
	if (query->prefix != NULL && query->sort != SORT_NAME)
		complain(query, "`namePrefix` is only valid with `sortBy=name`");
	if (query->status != NULL && query->sort != SORT_CREATED)
		complain(query, "`status` is only valid with `sortBy=createdAt`");
}

static void
query_free(Query *query)
{
	free(query->name);
	free(query->prefix);
	free(query->status);
	free(query->tag);
	emu_text_free(&query->problem);
}

/*
 * Items
 */

typedef struct Item
{
	EmuSandbox *sandbox;
	VercelSession *session; /* NULL in a list of sandboxes */
	uint64_t serial;
	char value[VALUE_SIZE];
} Item;

typedef struct Items
{
	Item *list;
	size_t count;
	size_t capacity;
} Items;

static int
item_compare(const Item *one, const char *value, uint64_t serial)
{
	int order = strcmp(one->value, value);

	return order != 0 ? order : one->serial < serial ? -1 : one->serial > serial;
}

static int
by_value(const void *left, const void *right)
{
	const Item *other = right;

	return item_compare(left, other->value, other->serial);
}

static int
by_value_descending(const void *left, const void *right)
{
	return by_value(right, left);
}

static void
items_add(Items *items, const Query *query, const Item *item)
{
	int order = item_compare(item, query->cursor_value, query->cursor_serial);

	if (query->cursor_serial != 0 && (query->ascending ? order <= 0 : order >= 0))
		return;
	if (items->count == items->capacity)
	{
		items->capacity = items->capacity * 2 + 64;
		items->list = emu_realloc(items->list, items->capacity * sizeof(Item));
	}
	items->list[items->count++] = *item;
}

static bool
tag_matches(const char *tag, const EmuSandbox *sandbox)
{
	size_t length = strcspn(tag, ":");
	char *name = emu_strndup(tag, length);
	json_t *labels = json_loads(sandbox->labels, JSON_ALLOW_NUL, NULL);
	const char *value = json_string_value(json_object_get(labels, name));
	bool match = value != NULL && strcmp(value, tag + length + 1) == 0;

	free(name);
	json_decref(labels);
	return match;
}

static void
add_sandbox(Items *items, const Query *query, EmuSandbox *sandbox)
{
	const VercelSandbox *details = vercel_details(sandbox);
	Item item = {.sandbox = sandbox, .serial = sandbox->serial};

	if ((query->status != NULL && strcmp(query->status, vercel_status(sandbox)) != 0) ||
	    (query->prefix != NULL &&
	     strncmp(query->prefix, details->name, strlen(query->prefix)) != 0) ||
	    (query->tag != NULL && !tag_matches(query->tag, sandbox)))
		return;
	if (query->sort == SORT_NAME)
		snprintf(item.value, VALUE_SIZE, "%s", details->name);
	else if (query->sort == SORT_STATUS)
		snprintf(item.value, VALUE_SIZE, "%020lld", (long long) details->status_ms);
	else if (query->sort == SORT_SNAPSHOT)
		snprintf(item.value, VALUE_SIZE, "%s", details->snapshot);
	items_add(items, query, &item);
}

static void
add_sessions(Items *items, const Query *query, EmuSandbox *sandbox)
{
	const VercelSandbox *details = vercel_details(sandbox);

	if (query->name != NULL && strcmp(query->name, details->name) != 0)
		return;
	for (VercelSession *session = details->current; session != NULL;
	     session = session->earlier)
	{
		Item item = {.sandbox = sandbox, .session = session, .serial = session->serial};

		items_add(items, query, &item);
	}
}

static void
items_collect(Items *items, const Query *query, EmuAccount *account,
              void (*add)(Items *items, const Query *query, EmuSandbox *sandbox))
{
	size_t count;
	EmuSandbox **listed = emu_account_listed(account, vercel_config.list_lag, &count);

	for (size_t i = 0; i < count; i++)
		add(items, query, listed[i]);
	free(listed);
	if (items->count > 0)
		qsort(items->list, items->count, sizeof(Item),
		      query->ascending ? by_value : by_value_descending);
}

/*
 * The answer
 */

static void
write_pagination(EmuText *body, size_t shown, const Item *last)
{
	EmuText cursor = {0};
	EmuText encoded = {0};

	emu_json_key(body, "pagination");
	emu_text_add(body, "{");
	emu_json_member_integer(body, "count", (int64_t) shown);
	if (last != NULL)
	{
		emu_text_format(&cursor, "%llu:%s", (unsigned long long) last->serial,
		                last->value);
		emu_text_base64(&encoded, cursor.data, cursor.length);
	}
	emu_json_member(body, "next", encoded.data);
	emu_text_add(body, "}");
	emu_text_free(&cursor);
	emu_text_free(&encoded);
}

static void
answer_items(EmuRequest *request, const Query *query, const Items *items,
             const char *member)
{
	size_t shown =
	    items->count < (size_t) query->limit ? items->count : (size_t) query->limit;
	EmuText body = {0};

	emu_text_format(&body, "{\"%s\":[", member);
	for (size_t i = 0; i < shown; i++)
	{
		if (i > 0)
			emu_text_add(&body, ",");
		if (items->list[i].session != NULL)
			vercel_write_session(&body, items->list[i].session);
		else
			vercel_write_sandbox(&body, items->list[i].sandbox);
	}
	emu_text_add(&body, "]");
	write_pagination(&body, shown,
	                 shown < items->count ? &items->list[shown - 1] : NULL);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

static void
answer_list(EmuRequest *request, EmuAccount *account, const char *member,
            void (*read)(void *context, const char *name, const char *value),
            void (*add)(Items *items, const Query *query, EmuSandbox *sandbox))
{
	Query query = {.limit = LIMIT_DEFAULT};
	Items items = {0};

	emu_request_each_parameter(request, read, &query);
	check_combination(&query);
	if (query.problem.length > 0)
		vercel_refuse(request, 400, query.problem.data);
	else
	{
		items_collect(&items, &query, account, add);
		answer_items(request, &query, &items, member);
		free(items.list);
	}
	query_free(&query);
}

void
vercel_list_sandboxes(EmuRequest *request, EmuAccount *account)
{
	answer_list(request, account, "sandboxes", read_sandbox_parameter, add_sandbox);
}

void
vercel_list_sessions(EmuRequest *request, EmuAccount *account)
{
	answer_list(request, account, "sessions", read_session_parameter, add_sessions);
}
