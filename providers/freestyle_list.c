/*
 * freestyle_list.c
 *		The list of an account's machines at Freestyle, page by page: those with some labels,
 *		and what all of them use.
 *
 * A page is a number of rows from an offset, so what is made or deleted meanwhile moves the
 * rest, and one can be missed.  Only a list whose rows are all different, and as many as it
 * says on every page, is all there is.  One that is not is read once more.
 */
#include <stdlib.h>
#include <string.h>

#include "providers/freestyle.h"
#include "providers/inventory.h"

#define FREESTYLE_FIND_TIMEOUT_MS (30 * 1000)

#define FREESTYLE_PAGE "100"

/* More pages than this are no list. */
#define FREESTYLE_MAX_PAGES 1000

/* How often a list that has moved is read anew. */
#define FREESTYLE_RESTARTS 1

/* Operations that list start their own state with this one. */
typedef struct SbxFreestyleList
{
	SbxFreestyleState state; /* first */
	const char *filter;      /* of the addresses, "" or "&..." */
	SbxPages pages;

	const char **ids; /* of all rows so far */
	size_t count;
	size_t size; /* room */
	int64_t total;
	bool moved;
	int restarts;

	/* Takes one row, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *vm);
	void (*forget)(SbxOp *op); /* what it has taken */
} SbxFreestyleList;

static SbxStep freestyle_list_answered;

/* --- pages ------------------------------------------------------------------ */

static SbxOpWant
freestyle_list_page(SbxOp *op)
{
	SbxFreestyleList *list = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s?limit=" FREESTYLE_PAGE "&offset=%zu%s",
	                     list->state.vms_url, list->count, list->filter);

	return sbx_freestyle_send(op, "GET", url, NULL, freestyle_list_answered);
}

static bool
freestyle_list_add_id(SbxOp *op, const char *id)
{
	SbxFreestyleList *list = op->state;

	if (list->count == list->size)
	{
		size_t size = list->size == 0 ? 128 : list->size * 2;
		const char **bigger = sbx_arena_alloc(&op->arena, size * sizeof(const char *));

		if (bigger == NULL)
			return false;
		if (list->count > 0)
			memcpy(bigger, list->ids, list->count * sizeof(const char *));
		list->ids = bigger;
		list->size = size;
	}
	list->ids[list->count] = sbx_arena_strdup(&op->arena, id);
	return list->ids[list->count++] != NULL;
}

static int
freestyle_compare_ids(const void *left, const void *right)
{
	return strcmp(*(const char *const *) left, *(const char *const *) right);
}

static bool
freestyle_has_repeated_id(SbxFreestyleList *list)
{
	if (list->count > 0)
		qsort(list->ids, list->count, sizeof(const char *), freestyle_compare_ids);
	for (size_t i = 1; i < list->count; i++)
	{
		if (strcmp(list->ids[i - 1], list->ids[i]) == 0)
			return true;
	}
	return false;
}

static bool
freestyle_list_take_rows(SbxOp *op, const json_t *rows)
{
	SbxFreestyleList *list = op->state;
	bool taken = true;

	for (size_t i = 0; taken && i < json_array_size(rows); i++)
	{
		const json_t *vm = json_array_get(rows, i);
		const char *id = sbx_json_string(vm, "id");

		taken = sbx_steps_valid_id(id) && freestyle_list_add_id(op, id) &&
		        list->take(op, id, vm);
	}
	return taken;
}

/* Does what has come so far fit together?  An empty page before the end does not. */
static bool
freestyle_list_fits(SbxFreestyleList *list, bool is_first, int64_t total, size_t rows)
{
	if (is_first)
		list->total = total;
	return total == list->total && list->count <= (uint64_t) total &&
	       (rows > 0 || list->count == (uint64_t) total) &&
	       (list->count < (uint64_t) total || !freestyle_has_repeated_id(list));
}

/* The cursor is the offset; the list ends with as many rows as it says there are. */
static bool
freestyle_list_take(SbxOp *op, const char **cursor)
{
	SbxFreestyleList *list = op->state;
	json_t *page = sbx_steps_object(op, false);
	const json_t *rows = json_object_get(page, "vms");
	size_t row_count = json_array_size(rows);
	int64_t total = -1;
	bool is_first = list->count == 0;
	bool taken = json_is_array(rows) && sbx_json_integer(page, "totalCount", &total) &&
	             total >= 0 && freestyle_list_take_rows(op, rows);

	json_decref(page);
	*cursor = NULL;
	if (!taken)
		return false;
	list->moved = !freestyle_list_fits(list, is_first, total, row_count);
	if (list->moved)
		return false;
	if (list->count < (uint64_t) total)
		*cursor = sbx_arena_printf(&op->arena, "%zu", list->count);
	return true;
}

/* One that has moved again is no answer, but nothing is wrong with it either. */
static SbxOpWant
freestyle_list_answered(SbxOp *op)
{
	SbxFreestyleList *list = op->state;
	SbxOpWant want = sbx_steps_page_answered(op, &list->pages);

	if (!list->moved)
		return want;
	list->moved = false;
	if (list->restarts++ == FREESTYLE_RESTARTS)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "LIST_CHANGED");
	list->count = 0;
	list->pages.behind = 0;
	list->forget(op);
	return freestyle_list_page(op);
}

static void
freestyle_list_prepare(SbxOp *op,
                       bool (*take)(SbxOp *op, const char *id, const json_t *vm),
                       void (*forget)(SbxOp *op), SbxStep *listed)
{
	SbxFreestyleList *list = op->state;

	list->filter = "";
	list->take = take;
	list->forget = forget;
	sbx_steps_pages(op, &list->pages, FREESTYLE_MAX_PAGES, freestyle_list_page,
	                freestyle_list_take, listed);
}

/* --- find ------------------------------------------------------------------- */

typedef struct SbxFreestyleFind
{
	SbxFreestyleList list; /* first */
	SbxPair *labels;       /* that it must have */
	int label_count;
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxFreestyleFind;

/* The provider's filter is looked at once more: it may understand it otherwise. */
static bool
freestyle_find_take(SbxOp *op, const char *id, const json_t *vm)
{
	SbxFreestyleFind *find = op->state;

	(void) id;
	return !sbx_steps_has_labels(json_object_get(vm, "metadata"), find->labels,
	                             find->label_count) ||
	       sbx_steps_add_found(op, &find->found, sbx_freestyle_facts(op, vm));
}

static void
freestyle_find_forget(SbxOp *op)
{
	SbxFreestyleFind *find = op->state;

	find->found.count = 0;
}

static SbxOpWant
freestyle_find_listed(SbxOp *op)
{
	SbxFreestyleFind *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

/*
 * A colon, a comma or a blank cannot be written there: only labels whose texts need no
 * encoding at all are filtered by.
 */
static bool
freestyle_is_plain(const char *text)
{
	return *text != '\0' && text[strspn(text, SBX_NAME_BYTES)] == '\0';
}

static const char *
freestyle_find_filter(SbxOp *op, const SbxPair *labels, int label_count)
{
	const char *filter = "";

	for (int i = 0; i < label_count && filter != NULL; i++)
	{
		if (freestyle_is_plain(labels[i].key) && freestyle_is_plain(labels[i].value))
			filter = sbx_arena_printf(&op->arena, "%s%s%s%%3A%s", filter,
			                          *filter == '\0' ? "&metadata=" : "%2C",
			                          labels[i].key, labels[i].value);
	}
	return filter;
}

SbxOp *
sbx_freestyle_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op = sbx_freestyle_make_op(account, "find", freestyle_list_page,
	                                  sizeof(SbxFreestyleFind), FREESTYLE_ARENA_SMALL,
	                                  FREESTYLE_FIND_TIMEOUT_MS);
	SbxFreestyleFind *find;

	if (op == NULL)
		return NULL;
	find = op->state;
	freestyle_list_prepare(op, freestyle_find_take, freestyle_find_forget,
	                       freestyle_find_listed);
	find->list.filter = freestyle_find_filter(op, labels, label_count);
	find->labels = sbx_steps_copy_pairs(op, labels, label_count);
	find->label_count = label_count;
	return sbx_steps_made(op);
}

/* --- usage ------------------------------------------------------------------ */

typedef struct SbxFreestyleUsage
{
	SbxFreestyleList list; /* first */
	SbxInventory inventory;
	int64_t idle; /* rows that take no place among those that run */
	SbxUsage usage;
} SbxFreestyleUsage;

/*
 * One that does not run has given back its CPU, its memory and its place, and keeps its
 * disk.  A state that is not known could be either.
 */
static bool
freestyle_usage_take(SbxOp *op, const char *id, const json_t *vm)
{
	static const SbxInventoryKeys keys = {"cpu", "memory", "storage", 1, false};
	SbxFreestyleUsage *usage = op->state;
	SbxSandboxState found;

	if (!sbx_freestyle_state(vm, &found) ||
	    !sbx_inventory_add(op, &usage->inventory, &keys, id,
	                       json_object_get(vm, "resources")))
		return false;
	if (found == SBX_STATE_STOPPED)
	{
		sbx_inventory_disk_only(&usage->inventory);
		usage->idle++;
	}
	return true;
}

static void
freestyle_usage_forget(SbxOp *op)
{
	SbxFreestyleUsage *usage = op->state;

	usage->inventory.count = 0;
	usage->idle = 0;
}

static SbxOpWant
freestyle_usage_listed(SbxOp *op)
{
	SbxFreestyleUsage *usage = op->state;

	if (!sbx_inventory_sum(&usage->inventory, &usage->usage))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
	usage->usage.sandboxes -= usage->idle;
	return sbx_op_succeed(op, &usage->usage);
}

SbxOp *
sbx_freestyle_usage(const SbxAccount *account, int64_t timeout_ms)
{
	SbxOp *op = sbx_freestyle_make_op(account, "capacity", freestyle_list_page,
	                                  sizeof(SbxFreestyleUsage), FREESTYLE_ARENA_SMALL,
	                                  timeout_ms);

	if (op == NULL)
		return NULL;
	freestyle_list_prepare(op, freestyle_usage_take, freestyle_usage_forget,
	                       freestyle_usage_listed);
	((SbxFreestyleList *) op->state)->pages.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}
