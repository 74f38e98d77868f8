/*
 * daytona_list.c
 *		Listings of Daytona sandboxes: those with some labels, and what all of them use.
 */
#include "providers/daytona.h"
#include "providers/inventory.h"

/* For a listing from its first page to its last. */
#define DAYTONA_FIND_TIMEOUT_MS (30 * 1000)

/* The largest page that the provider gives. */
#define DAYTONA_PAGE "200"

/* More pages than this are no listing: 100,000 sandboxes. */
#define DAYTONA_MAX_PAGES 500

/* --- pages -------------------------------------------------------------- */

/* Operations that list start their own state with this one. */
typedef struct SbxDaytonaList
{
	SbxDaytonaState state; /* first */
	const char *url;       /* of the first page */
	SbxPages pages;

	/* Takes one item, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *item);
} SbxDaytonaList;

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

static SbxOpWant
daytona_list_page(SbxOp *op)
{
	SbxDaytonaList *list = op->state;
	const char *cursor = sbx_steps_cursor(op, &list->pages);
	const char *url = list->url;

	if (cursor != NULL)
		url = sbx_arena_printf(&op->arena, "%s&cursor=%s", list->url, cursor);
	return sbx_daytona_send(op, "GET", url, NULL, daytona_list_answered);
}

static SbxOpWant
daytona_list_answered(SbxOp *op)
{
	SbxDaytonaList *list = op->state;

	return sbx_steps_page_answered(op, &list->pages);
}

/* Of an item without a valid id, or of which take wants nothing, the page is none. */
static bool
daytona_list_take_items(SbxOp *op, const json_t *items)
{
	SbxDaytonaList *list = op->state;

	for (size_t i = 0; i < json_array_size(items); i++)
	{
		const json_t *item = json_array_get(items, i);
		const char *id = sbx_json_string(item, "id");

		if (!sbx_steps_valid_id(id) || !list->take(op, id, item))
			return false;
	}
	return true;
}

/* {"items":[...],"nextCursor":text or null}; a page may be empty and not the last. */
static bool
daytona_list_take(SbxOp *op, const char **cursor)
{
	json_t *page = sbx_steps_object(op, false);
	const json_t *items = json_object_get(page, "items");
	const json_t *next = json_object_get(page, "nextCursor");
	bool taken = json_is_array(items) && (json_is_null(next) || json_is_string(next)) &&
	             daytona_list_take_items(op, items);

	if (taken)
		*cursor = sbx_steps_copy_string(op, page, "nextCursor");
	json_decref(page);
	return taken;
}

static void
daytona_list_prepare(SbxOp *op, const SbxPair *labels, int label_count,
                     bool (*take)(SbxOp *op, const char *id, const json_t *item),
                     SbxStep *listed)
{
	SbxDaytonaList *list = op->state;

	list->url = daytona_list_url(op, labels, label_count);
	list->take = take;
	sbx_steps_pages(op, &list->pages, DAYTONA_MAX_PAGES, daytona_list_page,
	                daytona_list_take, listed);
	if (list->url == NULL)
		list->state.steps.step = sbx_steps_refuse;
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

	if (op == NULL)
		return NULL;
	daytona_list_prepare(op, labels, label_count, daytona_find_take,
	                     daytona_find_listed);
	return sbx_steps_made(op);
}

/* --- usage and inventory ------------------------------------------------ */

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
	static const SbxInventoryKeys keys = {"cpu", "memory", "disk", 1024, false};
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_add(op, &usage->inventory, &keys, id, item);
}

static SbxOpWant
daytona_usage_listed(SbxOp *op)
{
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_sum(&usage->inventory, &usage->usage)
	           ? sbx_op_succeed(op, &usage->usage)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
}

static bool
daytona_inventory_take(SbxOp *op, const char *id, const json_t *item)
{
	static const char *const members[] = {"id",     "name",           "state",
	                                      "cpu",    "memory",         "disk",
	                                      "labels", "lastActivityAt", NULL};
	SbxDaytonaUsage *usage = op->state;

	return sbx_inventory_show(op, &usage->inventory, members, id, item);
}

static SbxOpWant
daytona_inventory_listed(SbxOp *op)
{
	SbxDaytonaUsage *usage = op->state;

	return sbx_op_succeed(op, sbx_inventory_print(op, &usage->inventory));
}

/* Both are "capacity" to people. */
static SbxOp *
daytona_make_usage(const SbxAccount *account, int64_t timeout_ms,
                   bool (*take)(SbxOp *op, const char *id, const json_t *item),
                   SbxStep *listed)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "capacity", daytona_list_page,
	                        sizeof(SbxDaytonaUsage), DAYTONA_ARENA_SMALL, timeout_ms);

	if (op == NULL)
		return NULL;
	daytona_list_prepare(op, NULL, 0, take, listed);
	((SbxDaytonaList *) op->state)->pages.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}

SbxOp *
sbx_daytona_usage(const SbxAccount *account, int64_t timeout_ms)
{
	return daytona_make_usage(account, timeout_ms, daytona_usage_take,
	                          daytona_usage_listed);
}

SbxOp *
sbx_daytona_inventory(const SbxAccount *account, int64_t timeout_ms)
{
	return daytona_make_usage(account, timeout_ms, daytona_inventory_take,
	                          daytona_inventory_listed);
}
