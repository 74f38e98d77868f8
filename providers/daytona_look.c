/*
 * daytona_look.c
 *		Looking at Daytona sandboxes: at one, or at all that have some labels.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/daytona.h"

#define DAYTONA_GET_TIMEOUT_MS (10 * 1000)

/* For a listing from its first page to its last. */
#define DAYTONA_FIND_TIMEOUT_MS (30 * 1000)

/* The largest page that the provider gives. */
#define DAYTONA_PAGE "200"

/* More pages than this are no listing: 100,000 sandboxes. */
#define DAYTONA_MAX_PAGES 500

/* Attempts to read one page. */
#define DAYTONA_PAGE_TRIES    3
#define DAYTONA_PAGE_PAUSE_MS 250

/* --- get ---------------------------------------------------------------- */

static SbxDaytonaStep daytona_get_start;
static SbxDaytonaStep daytona_get_answered;

SbxOp *
sbx_daytona_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "get", daytona_get_start, sizeof(SbxDaytonaState),
	                        DAYTONA_ARENA_SMALL, DAYTONA_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_daytona_set_target(op, target);
	return sbx_daytona_made_op(op);
}

static SbxOpWant
daytona_get_start(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_get_answered);
}

/* "No such sandbox" is an answer to the question, not a failure to ask it. */
static SbxOpWant
daytona_get_answered(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (op->response.status == 404)
	{
		facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
		if (facts != NULL)
			facts->state = SBX_STATE_GONE;
		return sbx_op_succeed(op, facts);
	}
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	sbx_daytona_adopt(op, sandbox);
	facts = sbx_daytona_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}

/* --- find --------------------------------------------------------------- */

typedef struct SbxDaytonaFind
{
	SbxDaytonaState state; /* first */
	const char *url;       /* of the first page */
	const char **cursors;  /* of all pages but the first */
	int pages;             /* that are behind */
	int tries;             /* at the page that is wanted now */
	SbxSandboxFacts *found;
	int count;
	int size; /* of found */
	SbxFindResult result;
} SbxDaytonaFind;

static SbxDaytonaStep daytona_find_page;
static SbxDaytonaStep daytona_find_listed;

/*
 * By the time of their creation: in the provider's own order, by activity, sandboxes
 * move between pages while these are read.
 */
static const char *
daytona_find_url(SbxOp *op, const SbxPair *labels, int label_count)
{
	SbxDaytonaState *state = op->state;
	json_t *object;
	const char *text;

	if (label_count == 0)
		return sbx_arena_printf(
		    &op->arena, "%s/sandbox?limit=" DAYTONA_PAGE "&sort=createdAt&order=asc",
		    state->api_url);
	object = sbx_daytona_pairs(labels, label_count);
	if (object == NULL)
		return NULL;
	text = sbx_json_print(&op->arena, object);
	json_decref(object);
	if (text != NULL)
		text = sbx_arena_url_encode(&op->arena, text);
	if (text == NULL)
		return NULL;
	return sbx_arena_printf(&op->arena,
	                        "%s/sandbox?limit=" DAYTONA_PAGE
	                        "&labels=%s&sort=createdAt&order=asc",
	                        state->api_url, text);
}

SbxOp *
sbx_daytona_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "find", daytona_find_page, sizeof(SbxDaytonaFind),
	                        DAYTONA_ARENA_SMALL, DAYTONA_FIND_TIMEOUT_MS);
	SbxDaytonaFind *find;

	if (op == NULL)
		return NULL;
	find = op->state;
	find->url = daytona_find_url(op, labels, label_count);
	find->cursors =
	    sbx_arena_alloc(&op->arena, (DAYTONA_MAX_PAGES - 1) * sizeof(const char *));
	if (find->url == NULL)
		find->state.step = sbx_daytona_refuse;
	return sbx_daytona_made_op(op);
}

static SbxOpWant
daytona_find_page(SbxOp *op)
{
	SbxDaytonaFind *find = op->state;
	const char *url = find->url;

	if (find->pages > 0)
		url = sbx_arena_printf(
		    &op->arena, "%s&cursor=%s", find->url,
		    sbx_arena_url_encode(&op->arena, find->cursors[find->pages - 1]));
	return sbx_daytona_send(op, "GET", url, NULL, daytona_find_listed);
}

static bool
daytona_find_add(SbxOp *op, const json_t *item)
{
	SbxDaytonaFind *find = op->state;
	SbxSandboxFacts *facts;

	if (!sbx_daytona_valid_id(sbx_json_string(item, "id")))
		return false;
	if (find->count == find->size)
	{
		int size = find->size == 0 ? 64 : find->size * 2;
		SbxSandboxFacts *bigger =
		    sbx_arena_alloc(&op->arena, (size_t) size * sizeof(SbxSandboxFacts));

		if (bigger == NULL)
			return false;
		if (find->count > 0)
			memcpy(bigger, find->found, (size_t) find->count * sizeof(SbxSandboxFacts));
		find->found = bigger;
		find->size = size;
	}
	facts = sbx_daytona_facts(op, item);

	/* They will be sorted by their ids, also when there was no memory for one. */
	if (facts == NULL || facts->sandbox_id == NULL)
		return false;
	find->found[find->count++] = *facts;
	return true;
}

/* A cursor that comes back would go round for ever. */
static bool
daytona_find_next(SbxOp *op, const char *cursor)
{
	SbxDaytonaFind *find = op->state;

	for (int i = 0; i < find->pages; i++)
	{
		if (strcmp(find->cursors[i], cursor) == 0)
			return false;
	}
	if (*cursor == '\0' || find->pages == DAYTONA_MAX_PAGES - 1)
		return false;
	find->cursors[find->pages] = sbx_arena_strdup(&op->arena, cursor);
	return find->cursors[find->pages++] != NULL;
}

static int
daytona_compare_ids(const void *left, const void *right)
{
	return strcmp(((const SbxSandboxFacts *) left)->sandbox_id,
	              ((const SbxSandboxFacts *) right)->sandbox_id);
}

/* One can be on two pages, if something before it was deleted in between. */
static SbxOpWant
daytona_find_done(SbxOp *op)
{
	SbxDaytonaFind *find = op->state;
	int kept = 0;

	if (find->count > 0)
		qsort(find->found, (size_t) find->count, sizeof(SbxSandboxFacts),
		      daytona_compare_ids);
	for (int i = 0; i < find->count; i++)
	{
		if (kept == 0 ||
		    daytona_compare_ids(&find->found[kept - 1], &find->found[i]) != 0)
			find->found[kept++] = find->found[i];
	}
	find->result.sandboxes = find->found;
	find->result.count = kept;
	return sbx_op_succeed(op, &find->result);
}

/*
 * {"items":[...],"nextCursor":text or null}.  What is unreadable fails as a whole: a
 * list that silently lacks some would be taken for all there is.  A page may be empty
 * and not the last.
 */
static bool
daytona_find_take(SbxOp *op, const json_t *page, const char **cursor)
{
	const json_t *items = json_object_get(page, "items");
	const json_t *next = json_object_get(page, "nextCursor");

	if (!json_is_array(items) || !(json_is_null(next) || json_is_string(next)))
		return false;
	for (size_t i = 0; i < json_array_size(items); i++)
	{
		if (!daytona_find_add(op, json_array_get(items, i)))
			return false;
	}
	*cursor = json_string_value(next);
	return true;
}

static SbxOpWant
daytona_find_listed(SbxOp *op)
{
	SbxDaytonaFind *find = op->state;
	const char *cursor = NULL;
	json_t *page;
	bool more;
	bool valid;

	if (sbx_daytona_is_passing(op) && ++find->tries < DAYTONA_PAGE_TRIES)
	{
		sbx_daytona_note(op, sbx_daytona_status_code(op));
		return sbx_daytona_pause(op, DAYTONA_PAGE_PAUSE_MS, daytona_find_page);
	}
	if (op->response.status != 200)
		return sbx_daytona_fail_response(op, sbx_daytona_status_code(op));
	find->tries = 0;
	memset(&find->state.noted, 0, sizeof(find->state.noted));

	page = sbx_daytona_object(op, false);
	valid = daytona_find_take(op, page, &cursor);
	more = valid && cursor != NULL;
	if (more)
		valid = daytona_find_next(op, cursor);
	json_decref(page);
	if (!valid)
		return sbx_daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return more ? daytona_find_page(op) : daytona_find_done(op);
}
