/*
 * e2b_list.c
 *		GET /v2/sandboxes with filters and pages, and GET /sandboxes.
 */
#include "e2b.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_MAXIMUM 100

typedef struct Query
{
	int limit;
	bool running;
	bool paused;
	bool ascending;
	json_t *metadata;      /* object of strings, or NULL */
	char *template;        /* id or alias, or NULL */
	int64_t started_after; /* milliseconds */
	uint64_t after;        /* serial of the last one of the page before, or 0 */
	bool after_ascending;  /* the order of the page before */
	EmuText problem;
} Query;

/*
 * Filters
 */

/* As a strict server does it: what is no escape is an error. */
static bool
unescape(EmuText *text, const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (data[i] == '%' &&
		    (i + 2 >= length || !isxdigit((unsigned char) data[i + 1]) ||
		     !isxdigit((unsigned char) data[i + 2])))
			return false;
	emu_text_unescape_url(text, data, length, true);
	return true;
}

static bool
read_pair(Query *query, const char *pair, size_t length)
{
	const char *equals = memchr(pair, '=', length);
	size_t name_length = equals != NULL ? (size_t) (equals - pair) : 0;
	EmuText name = {0};
	EmuText value = {0};
	bool good = equals != NULL && unescape(&name, pair, name_length) &&
	            unescape(&value, equals + 1, length - name_length - 1);

	if (good)
		good = json_object_set_new(query->metadata, name.data,
		                           json_stringn(value.data, value.length)) == 0;
	emu_text_free(&name);
	emu_text_free(&value);
	return good;
}

/*
 * The filter is escaped three times: as a value of the query, which is undone
 * already, as a whole, and each key and value by itself.
 */
static void
read_metadata(Query *query, const char *value)
{
	EmuText whole = {0};
	const char *place;
	bool good = unescape(&whole, value, strlen(value));

	json_decref(query->metadata);
	query->metadata = json_object();
	for (place = whole.data; good; place++)
	{
		size_t length = strcspn(place, "&");

		good = read_pair(query, place, length);
		place += length;
		if (*place == '\0')
			break;
	}
	if (!good)
		emu_text_add(&query->problem, "Invalid metadata filter");
	emu_text_free(&whole);
}

static void
read_states(Query *query, const char *value)
{
	query->running = query->paused = false;
	for (;;)
	{
		size_t length = strcspn(value, ",");

		if (length == 7 && strncmp(value, "running", 7) == 0)
			query->running = true;
		else if (length == 6 && strncmp(value, "paused", 6) == 0)
			query->paused = true;
		else
			emu_text_add(&query->problem,
			             "parameter \"state\" must be of running and paused");
		value += length;
		if (*value++ == '\0')
			return;
	}
}

static void
read_limit(Query *query, const char *value)
{
	char *end;
	long limit = strtol(value, &end, 10);

	if (*value == '\0' || *end != '\0' || limit < 1 || limit > LIMIT_MAXIMUM)
		emu_text_add(&query->problem, "parameter \"limit\" must be between 1 and 100");
	else
		query->limit = (int) limit;
}

static void
read_started_after(Query *query, const char *value)
{
	struct tm parts = {0};
	const char *rest = strptime(value, "%Y-%m-%dT%H:%M:%S", &parts);
	double fraction = 0;

	if (rest != NULL && *rest == '.')
	{
		char *end;

		fraction = strtod(rest, &end);
		rest = end;
	}
	if (rest == NULL || strcmp(rest, "Z") != 0)
		emu_text_add(&query->problem,
		             "parameter \"startedAfter\" must be a time in UTC");
	else
		query->started_after =
		    (int64_t) timegm(&parts) * 1000 + (int64_t) (fraction * 1000);
}

/*
 * A token: a time, which nobody looks at, the order and the place in it.  To
 * clients it is without a meaning.
 */
static void
write_token(EmuRequest *request, const Query *query, const EmuSandbox *last)
{
	EmuText token = {0};
	EmuText encoded = {0};

	emu_text_time(&token, last->created_ms);
	emu_text_format(&token, "__%s__%llu", query->ascending ? "asc" : "desc",
	                (unsigned long long) last->serial);
	emu_text_base64(&encoded, token.data, token.length);
	emu_answer_header(request, "X-Next-Token", encoded.data);
	emu_text_free(&token);
	emu_text_free(&encoded);
}

static void
read_token(Query *query, const char *value)
{
	EmuText token = {0};
	char order[8] = "";
	unsigned long long serial = 0;

	if (!emu_text_unbase64(&token, value, strlen(value)) || token.length == 0 ||
	    sscanf(token.data, "%*24[0-9TZ:.-]__%7[a-z]__%llu", order, &serial) != 2 ||
	    serial == 0)
		emu_text_add(&query->problem, "Invalid next token");
	query->after = serial;
	query->after_ascending = strcmp(order, "asc") == 0;
	emu_text_free(&token);
}

static void
read_parameter(void *context, const char *name, const char *value)
{
	Query *query = context;

	if (strcmp(name, "metadata") == 0)
		read_metadata(query, value);
	else if (strcmp(name, "state") == 0)
		read_states(query, value);
	else if (strcmp(name, "limit") == 0)
		read_limit(query, value);
	else if (strcmp(name, "nextToken") == 0)
		read_token(query, value);
	else if (strcmp(name, "startedAfter") == 0)
		read_started_after(query, value);
	else if (strcmp(name, "order") == 0)
	{
		query->ascending = strcmp(value, "asc") == 0;
		if (!query->ascending && strcmp(value, "desc") != 0)
			emu_text_add(&query->problem, "parameter \"order\" must be asc or desc");
	}
	else if (strcmp(name, "template") == 0)
	{
		free(query->template);
		query->template = emu_strdup(value);
	}
}

/* The first version knows one filter, and only what runs. */
static void
read_first_parameter(void *context, const char *name, const char *value)
{
	if (strcmp(name, "metadata") == 0)
		read_metadata(context, value);
}

/*
 * Which sandboxes
 */

static bool
metadata_matches(const Query *query, const EmuSandbox *sandbox)
{
	json_t *labels;
	const char *name;
	json_t *wanted;
	bool match = true;

	if (json_object_size(query->metadata) == 0)
		return true;
	labels = json_loads(sandbox->labels, JSON_ALLOW_NUL, NULL);
	json_object_foreach (query->metadata, name, wanted)
		match = match && json_equal(json_object_get(labels, name), wanted);
	json_decref(labels);
	return match;
}

static bool
matches(const Query *query, const EmuSandbox *sandbox)
{
	const E2bSandbox *details = e2b_details(sandbox);

	if (details->state == E2B_STARTING ||
	    !(e2b_shown_running(sandbox) ? query->running : query->paused) ||
	    sandbox->created_ms < query->started_after)
		return false;
	if (query->template != NULL && strcmp(query->template, details->template_id) != 0 &&
	    strcmp(query->template, details->alias) != 0)
		return false;
	return metadata_matches(query, sandbox);
}

typedef struct Items
{
	EmuSandbox **list;
	size_t count;
	size_t running;
} Items;

static void
items_reverse(Items *items)
{
	for (size_t i = 0; i < items->count / 2; i++)
	{
		EmuSandbox *sandbox = items->list[i];

		items->list[i] = items->list[items->count - 1 - i];
		items->list[items->count - 1 - i] = sandbox;
	}
}

static void
items_collect(Items *items, const Query *query, EmuAccount *account)
{
	size_t count;

	items->list = emu_account_listed(account, e2b_config.list_lag, &count);
	for (size_t i = 0; i < count; i++)
		if (matches(query, items->list[i]))
		{
			items->list[items->count++] = items->list[i];
			if (e2b_shown_running(items->list[i]))
				items->running++;
		}
	if (query->ascending)
		items_reverse(items);
}

/* The place of the first that the page before did not have. */
static size_t
items_start(const Items *items, const Query *query)
{
	size_t start = 0;

	while (query->after > 0 && start < items->count &&
	       (query->ascending ? items->list[start]->serial <= query->after
	                         : items->list[start]->serial >= query->after))
		start++;
	return start;
}

static void
answer_items(EmuRequest *request, const Query *query, const Items *items)
{
	size_t start = items_start(items, query);
	size_t end = query->limit > 0 && items->count - start > (size_t) query->limit
	                 ? start + (size_t) query->limit
	                 : items->count;
	EmuText body = {0};
	char running[24];

	emu_text_add(&body, "[");
	for (size_t i = start; i < end; i++)
	{
		if (i > start)
			emu_text_add(&body, ",");
		e2b_write(&body, items->list[i], true);
	}
	emu_text_add(&body, "]");
	emu_answer_json(request, 200, &body);
	if (end < items->count)
		write_token(request, query, items->list[end - 1]);
	if (query->limit > 0 && query->running && query->after == 0)
	{
		snprintf(running, sizeof(running), "%zu", items->running);
		emu_answer_header(request, "X-Total-Running", running);
	}
}

void
e2b_list(EmuRequest *request, EmuAccount *account, bool second_version)
{
	Query query = {
	    .limit = second_version ? LIMIT_MAXIMUM : 0,
	    .running = true,
	    .paused = second_version,
	};
	Items items = {0};

	emu_request_each_parameter(
	    request, second_version ? read_parameter : read_first_parameter, &query);
	if (query.problem.length == 0 && query.after > 0 &&
	    query.after_ascending != query.ascending)
		emu_text_add(&query.problem, "the next token is of a list in another order");
	if (query.problem.length > 0)
		e2b_refuse(request, 400, query.problem.data);
	else
	{
		items_collect(&items, &query, account);
		answer_items(request, &query, &items);
		free(items.list);
	}
	json_decref(query.metadata);
	free(query.template);
	emu_text_free(&query.problem);
}
