/*
 * daytona_list.c
 *		Listings of Daytona sandboxes: those with some labels, and what all of them use.
 */
#include <string.h>

#include "providers/daytona.h"
#include "providers/inventory.h"

/* For a listing from its first page to its last. */
#define DAYTONA_FIND_TIMEOUT_MS (30 * 1000)

/* The largest page that the provider gives. */
#define DAYTONA_PAGE "200"

/* More pages than this are no listing: 100,000 sandboxes. */
#define DAYTONA_MAX_PAGES 500

/* Attempts to read one page. */
#define DAYTONA_PAGE_TRIES    3
#define DAYTONA_PAGE_PAUSE_MS 250

/* --- pages -------------------------------------------------------------- */

/* Operations that list start their own state with this one. */
typedef struct SbxDaytonaList
{
	SbxDaytonaState state; /* first */
	const char *url;       /* of the first page */
	const char **cursors;  /* of all pages but the first */
	int pages;             /* that are behind */
	int tries;             /* at the page that is wanted now */

	/* Takes one item, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *item);
	SbxStep *listed;            /* what comes after the last page */
	const char *malformed_code; /* of a page that is not what it has to be */
} SbxDaytonaList;

static SbxStep daytona_list_page;
static SbxStep daytona_list_answered;

/*
 * By the time of their creation: in the provider's own order, by activity, sandboxes
 * move between pages while these are read.
 */
static const char *
daytona_list_url(SbxOp *op, const SbxPair *labels, int label_count)
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

static void
daytona_list_prepare(SbxOp *op, const SbxPair *labels, int label_count)
{
	SbxDaytonaList *list = op->state;

	list->url = daytona_list_url(op, labels, label_count);
	list->cursors =
	    sbx_arena_alloc(&op->arena, (DAYTONA_MAX_PAGES - 1) * sizeof(const char *));
	if (list->url == NULL)
		list->state.steps.step = sbx_steps_refuse;
}

static SbxOpWant
daytona_list_page(SbxOp *op)
{
	SbxDaytonaList *list = op->state;
	const char *url = list->url;

	if (list->pages > 0)
		url = sbx_arena_printf(
		    &op->arena, "%s&cursor=%s", list->url,
		    sbx_arena_url_encode(&op->arena, list->cursors[list->pages - 1]));
	return sbx_daytona_send(op, "GET", url, NULL, daytona_list_answered);
}

/*
 * {"items":[...],"nextCursor":text or null}.  What is unreadable fails as a whole: a
 * list that silently lacks some would be taken for all there is.  A page may be empty
 * and not the last.
 */
static bool
daytona_list_take(SbxOp *op, const json_t *page, const char **cursor)
{
	SbxDaytonaList *list = op->state;
	const json_t *items = json_object_get(page, "items");
	const json_t *next = json_object_get(page, "nextCursor");

	if (!json_is_array(items) || !(json_is_null(next) || json_is_string(next)))
		return false;
	for (size_t i = 0; i < json_array_size(items); i++)
	{
		const json_t *item = json_array_get(items, i);
		const char *id = sbx_json_string(item, "id");

		if (!sbx_steps_valid_id(id) || !list->take(op, id, item))
			return false;
	}
	*cursor = json_string_value(next);
	return true;
}

static SbxOpWant
daytona_list_answered(SbxOp *op)
{
	SbxDaytonaList *list = op->state;
	const char *cursor = NULL;
	json_t *page;
	bool taken;
	bool more;
	bool goes_on;

	if (sbx_steps_is_passing(op) && ++list->tries < DAYTONA_PAGE_TRIES)
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_pause(op, DAYTONA_PAGE_PAUSE_MS, daytona_list_page);
	}
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	list->tries = 0;
	memset(&list->state.steps.noted, 0, sizeof(list->state.steps.noted));

	page = sbx_steps_object(op, false);
	taken = daytona_list_take(op, page, &cursor);
	more = taken && cursor != NULL;
	goes_on = more && sbx_steps_next_page(op, list->cursors, &list->pages,
	                                      DAYTONA_MAX_PAGES - 1, cursor);
	json_decref(page);
	if (!taken)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, list->malformed_code);
	if (!more)
		return list->listed(op);
	return goes_on ? daytona_list_page(op)
	               : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/* --- find --------------------------------------------------------------- */

typedef struct SbxDaytonaFind
{
	SbxDaytonaList list; /* first */
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxDaytonaFind;

static bool
daytona_find_take(SbxOp *op, const char *id, const json_t *item)
{
	SbxDaytonaFind *find = op->state;

	(void) id;
	return sbx_steps_add_found(op, &find->found, sbx_daytona_facts(op, item));
}

static SbxOpWant
daytona_find_listed(SbxOp *op)
{
	SbxDaytonaFind *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

SbxOp *
sbx_daytona_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "find", daytona_list_page, sizeof(SbxDaytonaFind),
	                        DAYTONA_ARENA_SMALL, DAYTONA_FIND_TIMEOUT_MS);
	SbxDaytonaFind *find;

	if (op == NULL)
		return NULL;
	find = op->state;
	daytona_list_prepare(op, labels, label_count);
	find->list.take = daytona_find_take;
	find->list.listed = daytona_find_listed;
	return sbx_steps_made(op);
}

/* --- usage -------------------------------------------------------------- */

typedef struct SbxDaytonaUsage
{
	SbxDaytonaList list; /* first */
	SbxInventory inventory;
	SbxUsage usage;
} SbxDaytonaUsage;

/*
 * Every sandbox counts, whatever its state.  The provider reserves nothing for some
 * states, so this may say too much, and never too little.
 */
static bool
daytona_usage_take(SbxOp *op, const char *id, const json_t *item)
{
	static const SbxInventoryKeys keys = {"cpu", "memory", "disk", 1024};
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_add(op, &usage->inventory, &keys, id, item);
}

static bool
daytona_usage_show(SbxOp *op, const char *id, const json_t *item)
{
	static const char *const shown[] = {"id",     "name",           "state",
	                                    "cpu",    "memory",         "disk",
	                                    "labels", "lastActivityAt", NULL};
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_add_unread(op, &usage->inventory, id) &&
	       sbx_inventory_show(op, &usage->inventory, shown, item);
}

static SbxOpWant
daytona_usage_listed(SbxOp *op)
{
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_sum(op, &usage->inventory, &usage->usage)
	           ? sbx_op_succeed(op, &usage->usage)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
}

SbxOp *
sbx_daytona_usage(const SbxAccount *account, bool show, int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "capacity", daytona_list_page,
	                        sizeof(SbxDaytonaUsage), DAYTONA_ARENA_SMALL, timeout_ms);
	SbxDaytonaUsage *usage;

	if (op == NULL)
		return NULL;
	usage = op->state;
	daytona_list_prepare(op, NULL, 0);
	usage->list.take = show ? daytona_usage_show : daytona_usage_take;
	usage->list.listed = daytona_usage_listed;
	usage->list.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}
