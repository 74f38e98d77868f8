/*
 * microsandbox_list.c
 *		Listings of Microsandbox sandboxes: those with some labels, and what all of them use.
 */
#include <string.h>

#include "providers/inventory.h"
#include "providers/microsandbox.h"

/* For a listing from its first page to its last. */
#define MICROSANDBOX_FIND_TIMEOUT_MS (30 * 1000)

/* More pages than this are no listing: 100,000 sandboxes. */
#define MICROSANDBOX_MAX_PAGES 1000

/* --- pages ---------------------------------------------------------------- */

/* Operations that list start their own state with this one. */
typedef struct SbxMicrosandboxList
{
	SbxMicrosandboxState state; /* first */
	const char *url;            /* of the first page */
	SbxPages pages;

	/* Takes one item, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *item);
} SbxMicrosandboxList;

static SbxStep microsandbox_list_answered;

static SbxOpWant
microsandbox_list_page(SbxOp *op)
{
	SbxMicrosandboxList *list = op->state;
	const char *cursor = sbx_steps_cursor(op, &list->pages);
	const char *url = list->url;

	if (cursor != NULL)
		url = sbx_arena_printf(&op->arena, "%s&cursor=%s", list->url, cursor);
	return sbx_microsandbox_send(op, "GET", url, NULL, microsandbox_list_answered);
}

static SbxOpWant
microsandbox_list_answered(SbxOp *op)
{
	SbxMicrosandboxList *list = op->state;

	return sbx_steps_page_answered(op, &list->pages);
}

/*
 * False = it is neither a text nor absent, it is absent though there is more, or there is
 * no memory.
 */
static bool
microsandbox_take_cursor(SbxOp *op, const json_t *page, const char **cursor)
{
	const json_t *next = json_object_get(page, "next_cursor");
	bool is_text = json_is_string(next);

	*cursor = NULL;
	if (next != NULL && !json_is_null(next) && !is_text)
		return false;
	if (!is_text || json_string_length(next) == 0)
		return !json_is_true(json_object_get(page, "has_more"));
	*cursor = sbx_steps_copy_string(op, page, "next_cursor");
	return *cursor != NULL;
}

static bool
microsandbox_list_take(SbxOp *op, const char **cursor)
{
	SbxMicrosandboxList *list = op->state;
	json_t *page = sbx_steps_object(op, false);
	const json_t *items = json_object_get(page, "data");
	bool taken = json_is_array(items) && microsandbox_take_cursor(op, page, cursor);

	for (size_t i = 0; taken && i < json_array_size(items); i++)
	{
		const json_t *item = json_array_get(items, i);
		const char *id = sbx_json_string(item, "id");

		taken = sbx_microsandbox_valid_id(id) && list->take(op, id, item);
	}
	json_decref(page);
	return taken;
}

static SbxOp *
microsandbox_make_list(const SbxAccount *account, const char *operation,
                       size_t state_size,
                       bool (*take)(SbxOp *op, const char *id, const json_t *item),
                       SbxStep *listed, int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_microsandbox_make_op(account, operation, microsandbox_list_page, state_size,
	                             MICROSANDBOX_ARENA_SMALL, timeout_ms);
	SbxMicrosandboxList *list;

	if (op == NULL)
		return NULL;
	list = op->state;
	list->take = take;
	list->url = sbx_arena_printf(&op->arena, "%s?limit=100", list->state.api_url);
	sbx_steps_pages(op, &list->pages, MICROSANDBOX_MAX_PAGES, microsandbox_list_page,
	                microsandbox_list_take, listed);
	return op;
}

/* --- find ----------------------------------------------------------------- */

typedef struct SbxMicrosandboxFind
{
	SbxMicrosandboxList list; /* first */
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxMicrosandboxFind;

static bool
microsandbox_find_take(SbxOp *op, const char *id, const json_t *item)
{
	SbxMicrosandboxFind *find = op->state;

	(void) id;
	return sbx_steps_add_found(op, &find->found, sbx_microsandbox_facts(op, item));
}

static SbxOpWant
microsandbox_find_listed(SbxOp *op)
{
	SbxMicrosandboxFind *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

/* The labels, as JSON; false = one of them is no UTF-8, or no memory. */
static bool
microsandbox_filter(SbxOp *op, const SbxPair *labels, int label_count)
{
	SbxMicrosandboxList *list = op->state;
	json_t *pairs = sbx_steps_json_pairs(labels, label_count);
	const char *text = pairs == NULL ? NULL : sbx_json_print(&op->arena, pairs);

	json_decref(pairs);
	text = text == NULL ? NULL : sbx_arena_url_encode(&op->arena, text);
	if (text == NULL)
		return false;
	list->url = sbx_arena_printf(&op->arena, "%s&labels=%s", list->url, text);
	return true;
}

SbxOp *
sbx_microsandbox_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op = microsandbox_make_list(account, "find", sizeof(SbxMicrosandboxFind),
	                                   microsandbox_find_take, microsandbox_find_listed,
	                                   MICROSANDBOX_FIND_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	if (label_count > 0 && !microsandbox_filter(op, labels, label_count))
		((SbxMicrosandboxState *) op->state)->steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

/* --- usage ---------------------------------------------------------------- */

typedef struct SbxMicrosandboxUsage
{
	SbxMicrosandboxList list; /* first */
	SbxInventory inventory;
	SbxUsage usage;
} SbxMicrosandboxUsage;

/*
 * What a sandbox was made from is not there from the start, and its disk only if somebody
 * asked for a size.  What is not told is not nothing: then there is no sum.
 */
static bool
microsandbox_usage_take(SbxOp *op, const char *id, const json_t *item)
{
	static const SbxInventoryKeys keys = {"vcpus", "memory_mib", "disk_size_mib", 1,
	                                      true};
	SbxMicrosandboxUsage *usage = op->state;
	const json_t *spec = json_object_get(item, "spec");
	const json_t *resources = json_object_get(spec, "resources");
	bool is_there = spec != NULL && !json_is_null(spec);

	return (!is_there || json_is_object(resources)) &&
	       sbx_inventory_add(op, &usage->inventory, &keys, id, resources);
}

static SbxOpWant
microsandbox_usage_listed(SbxOp *op)
{
	SbxMicrosandboxUsage *usage = op->state;

	if (!sbx_inventory_sum(&usage->inventory, &usage->usage))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
	return sbx_op_succeed(op, &usage->usage);
}

/* In all states, as the provider's own limit counts them. */
SbxOp *
sbx_microsandbox_usage(const SbxAccount *account, int64_t timeout_ms)
{
	SbxOp *op = microsandbox_make_list(
	    account, "capacity", sizeof(SbxMicrosandboxUsage), microsandbox_usage_take,
	    microsandbox_usage_listed, timeout_ms);

	if (op == NULL)
		return NULL;
	((SbxMicrosandboxList *) op->state)->pages.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}
