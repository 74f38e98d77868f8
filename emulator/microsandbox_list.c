/*
 * microsandbox_list.c
 *		GET /v1/sandboxes, with a filter by labels, and in pages.
 *
 * The newest come first.  A cursor is the number of the last one of a page, so
 * what comes and goes meanwhile does not move the rest.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

#define LIMIT_DEFAULT 20
#define LIMIT_MAXIMUM 100

typedef struct Query
{
	size_t limit;
	uint64_t before; /* the number of a sandbox, 0 = none */
	json_t *labels;  /* NULL: any */
} Query;

static bool
read_number(const char *text, uint64_t least, uint64_t most, uint64_t *number)
{
	char *end;

	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && *end == '\0' && *number >= least &&
	       *number <= most;
}

static bool
read_cursor(const char *text, uint64_t *number)
{
	EmuText decoded = {0};
	bool good = emu_text_unbase64(&decoded, text, strlen(text)) && decoded.length > 0 &&
	            read_number(decoded.data, 1, UINT64_MAX, number);

	emu_text_free(&decoded);
	return good;
}

static json_t *
read_labels(const char *text)
{
	json_t *labels = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *name;
	json_t *value;

	json_object_foreach (labels, name, value)
		if (!json_is_string(value))
		{
			json_decref(labels);
			return NULL;
		}
	if (json_is_object(labels))
		return labels;
	json_decref(labels);
	return NULL;
}

static const char *
read_query(EmuRequest *request, Query *query)
{
	char *limit = emu_request_parameter(request, "limit");
	char *cursor = emu_request_parameter(request, "cursor");
	char *labels = emu_request_parameter(request, "labels");
	const char *problem = NULL;
	uint64_t number = LIMIT_DEFAULT;

	if (limit != NULL && !read_number(limit, 1, LIMIT_MAXIMUM, &number))
		problem = "limit must be between 1 and 100";
	query->limit = (size_t) number;
	if (cursor != NULL && !read_cursor(cursor, &query->before))
		problem = "cursor is not one of a page before";
	if (labels != NULL && (query->labels = read_labels(labels)) == NULL)
		problem = "labels must be a JSON object of strings";
	free(limit);
	free(cursor);
	free(labels);
	return problem;
}

static bool
matches(const Query *query, const EmuSandbox *sandbox)
{
	json_t *labels;
	const char *name;
	json_t *value;
	bool all = true;

	if (query->before != 0 && sandbox->serial >= query->before)
		return false;
	if (query->labels == NULL)
		return true;
	labels = json_loads(sandbox->labels, JSON_ALLOW_NUL, NULL);
	json_object_foreach (query->labels, name, value)
		all = all && json_equal(value, json_object_get(labels, name));
	json_decref(labels);
	return all;
}

static void
write_next(EmuText *body, const EmuSandbox *last)
{
	EmuText number = {0};
	EmuText cursor = {0};

	emu_json_member_raw(body, "has_more", last != NULL ? "true" : "false");
	if (last != NULL)
	{
		emu_text_format(&number, "%llu", (unsigned long long) last->serial);
		emu_text_base64(&cursor, number.data, number.length);
	}
	emu_json_member(body, "next_cursor", cursor.data);
	emu_text_free(&number);
	emu_text_free(&cursor);
}

static void
answer(EmuRequest *request, EmuAccount *account, const Query *query)
{
	size_t count;
	EmuSandbox **listed =
	    emu_account_listed(account, microsandbox_config.list_lag, &count);
	const EmuSandbox *last = NULL;
	EmuText body = {0};
	size_t shown = 0;
	size_t i = 0;

	emu_text_add(&body, "{\"data\":[");
	for (; i < count && shown <= query->limit; i++)
	{
		if (!matches(query, listed[i]) || ++shown > query->limit)
			continue;
		if (shown > 1)
			emu_text_add(&body, ",");
		microsandbox_write(&body, listed[i]);
		last = listed[i];
	}
	emu_text_add(&body, "]");
	write_next(&body, shown > query->limit ? last : NULL);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
	free(listed);
}

void
microsandbox_list(EmuRequest *request, EmuAccount *account)
{
	Query query = {0};
	const char *problem = read_query(request, &query);

	if (problem != NULL)
		microsandbox_invalid(request, "%s", problem);
	else
		answer(request, account, &query);
	json_decref(query.labels);
}
