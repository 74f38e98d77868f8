/*
 * daytona_look.c
 *		Looking at Daytona sandboxes: at one, or at all that have some labels.
 */
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

static SbxStep daytona_get_start;
static SbxStep daytona_get_answered;

SbxOp *
sbx_daytona_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "get", daytona_get_start, sizeof(SbxDaytonaState),
	                        DAYTONA_ARENA_SMALL, DAYTONA_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_daytona_set_target(op, target);
	return sbx_steps_made(op);
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
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxDaytonaFind;

static SbxStep daytona_find_page;
static SbxStep daytona_find_listed;

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
	object = sbx_steps_json_pairs(labels, label_count);
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
		find->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
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

/*
 * {"items":[...],"nextCursor":text or null}.  What is unreadable fails as a whole: a
 * list that silently lacks some would be taken for all there is.  A page may be empty
 * and not the last.
 */
static bool
daytona_find_take(SbxOp *op, const json_t *page, const char **cursor)
{
	SbxDaytonaFind *find = op->state;
	const json_t *items = json_object_get(page, "items");
	const json_t *next = json_object_get(page, "nextCursor");

	if (!json_is_array(items) || !(json_is_null(next) || json_is_string(next)))
		return false;
	for (size_t i = 0; i < json_array_size(items); i++)
	{
		const json_t *item = json_array_get(items, i);

		if (!sbx_steps_valid_id(sbx_json_string(item, "id")) ||
		    !sbx_steps_add_found(op, &find->found, sbx_daytona_facts(op, item)))
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

	if (sbx_steps_is_passing(op) && ++find->tries < DAYTONA_PAGE_TRIES)
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_pause(op, DAYTONA_PAGE_PAUSE_MS, daytona_find_page);
	}
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	find->tries = 0;
	memset(&find->state.steps.noted, 0, sizeof(find->state.steps.noted));

	page = sbx_steps_object(op, false);
	valid = daytona_find_take(op, page, &cursor);
	more = valid && cursor != NULL;
	if (more)
		valid = sbx_steps_next_page(op, find->cursors, &find->pages,
		                            DAYTONA_MAX_PAGES - 1, cursor);
	json_decref(page);
	if (!valid)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	if (more)
		return daytona_find_page(op);
	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}
