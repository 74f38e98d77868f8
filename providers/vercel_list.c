/*
 * vercel_list.c
 *		Listings of Vercel sandboxes: those with some tags, and what all of them use.
 *
 * A listing is of one project.  Which ways of sorting and filtering may be combined is
 * narrow: names need the order by name, states the order by creation, and of tags there is
 * one at most; whatever else is asked for is looked at here.
 */
#include <string.h>

#include "providers/inventory.h"
#include "providers/vercel.h"

/* For a listing from its first page to its last. */
#define VERCEL_FIND_TIMEOUT_MS (30 * 1000)

/* The largest page that the provider gives. */
#define VERCEL_PAGE "50"

/* More pages than this are no listing: 20,000 sandboxes. */
#define VERCEL_MAX_PAGES 400

/* --- pages ---------------------------------------------------------------- */

/* Operations that list start their own state with this one. */
typedef struct SbxVercelList
{
	SbxVercelState state; /* first */
	const char *url;      /* of the first page */
	SbxPages pages;

	/* Takes one item, which has a name; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *name, const json_t *item);
} SbxVercelList;

static SbxStep vercel_list_answered;

static SbxOpWant
vercel_list_page(SbxOp *op)
{
	SbxVercelList *list = op->state;
	const char *cursor = sbx_steps_cursor(op, &list->pages);
	const char *url = list->url;

	if (cursor != NULL)
		url = sbx_arena_printf(&op->arena, "%s&cursor=%s", list->url, cursor);
	return sbx_vercel_send(op, "GET", url, NULL, vercel_list_answered);
}

static SbxOpWant
vercel_list_answered(SbxOp *op)
{
	SbxVercelList *list = op->state;

	return sbx_steps_page_answered(op, &list->pages);
}

/* The last page says so: its next cursor is null. */
static bool
vercel_list_take(SbxOp *op, const char **cursor)
{
	SbxVercelList *list = op->state;
	json_t *page = sbx_steps_object(op, false);
	const json_t *items = json_object_get(page, "sandboxes");
	const json_t *next = json_object_get(json_object_get(page, "pagination"), "next");
	bool taken = json_is_array(items) && (json_is_null(next) || json_is_string(next));

	for (size_t i = 0; taken && i < json_array_size(items); i++)
	{
		const json_t *item = json_array_get(items, i);
		const char *name = sbx_json_string(item, "name");

		taken = name != NULL && *name != '\0' && list->take(op, name, item);
	}
	*cursor = taken && json_is_string(next)
	              ? sbx_arena_strdup(&op->arena, json_string_value(next))
	              : NULL;
	taken = taken && (*cursor != NULL || json_is_null(next));
	json_decref(page);
	return taken;
}

/* query: what follows the team and the project, or NULL when there is no memory. */
static void
vercel_list_prepare(SbxOp *op, const char *query,
                    bool (*take)(SbxOp *op, const char *name, const json_t *item),
                    SbxStep *listed)
{
	SbxVercelList *list = op->state;
	SbxVercelState *state = &list->state;

	memset(&list->pages, 0, sizeof(list->pages));
	list->take = take;
	if (query != NULL)
		list->url = sbx_arena_printf(&op->arena, "%s/v2/sandboxes?%s&project=%s&%s",
		                             state->api_url, state->team_query,
		                             state->project_query, query);
	sbx_steps_pages(op, &list->pages, VERCEL_MAX_PAGES, vercel_list_page,
	                vercel_list_take, listed);
}

/* --- find ----------------------------------------------------------------- */

typedef struct SbxVercelFind
{
	SbxVercelList list; /* first */
	SbxPair *labels;
	int label_count;
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxVercelFind;

/* A project holds sandboxes that no router made: those are nobody's to find. */
static bool
vercel_find_take(SbxOp *op, const char *name, const json_t *item)
{
	SbxVercelFind *find = op->state;

	if (!sbx_vercel_valid_name(name) ||
	    !sbx_steps_has_labels(json_object_get(item, "tags"), find->labels,
	                          find->label_count))
		return true;
	return sbx_steps_add_found(
	    op, &find->found,
	    sbx_vercel_facts(op, item,
	                     sbx_vercel_state_of(sbx_json_string(item, "status"))));
}

static SbxOpWant
vercel_find_listed(SbxOp *op)
{
	SbxVercelFind *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

/*
 * The tag that the provider filters by: the router's own, which few have, or the first.
 * With a second colon, where would it find the end of the key?  Such a one is looked at
 * here only.
 */
static const SbxPair *
vercel_best_tag(const SbxPair *labels, int label_count)
{
	const SbxPair *best = NULL;

	for (int i = 0; i < label_count; i++)
	{
		if (strcmp(labels[i].key, SBX_LABEL_ID) == 0)
			return &labels[i];
		if (best == NULL && strchr(labels[i].key, ':') == NULL &&
		    strchr(labels[i].value, ':') == NULL)
			best = &labels[i];
	}
	return best;
}

static const char *
vercel_find_query(SbxOp *op, const SbxPair *labels, int label_count)
{
	const SbxPair *tag = vercel_best_tag(labels, label_count);
	const char *filter;

	if (tag == NULL)
		return "limit=" VERCEL_PAGE "&sortBy=name&sortOrder=asc&namePrefix=sbx_";
	filter = sbx_arena_printf(&op->arena, "%s:%s", tag->key, tag->value);
	if (filter != NULL)
		filter = sbx_arena_url_encode(&op->arena, filter);
	if (filter == NULL)
		return NULL;
	return sbx_arena_printf(
	    &op->arena, "limit=" VERCEL_PAGE "&sortBy=createdAt&sortOrder=asc&tags=%s",
	    filter);
}

static bool
vercel_copy_labels(SbxOp *op, const SbxPair *labels, int label_count)
{
	SbxVercelFind *find = op->state;

	find->labels = sbx_steps_copy_pairs(op, labels, label_count);
	if (find->labels == NULL)
		return false;
	for (int i = 0; i < label_count; i++)
	{
		if (!sbx_json_is_text(labels[i].key) || !sbx_json_is_text(labels[i].value))
			return false;
	}
	find->label_count = label_count;
	return true;
}

SbxOp *
sbx_vercel_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op =
	    sbx_vercel_make_op(account, "find", vercel_list_page, sizeof(SbxVercelFind),
	                       VERCEL_ARENA_SMALL, VERCEL_FIND_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	vercel_list_prepare(op, vercel_find_query(op, labels, label_count),
	                    vercel_find_take, vercel_find_listed);
	if (!vercel_copy_labels(op, labels, label_count))
		((SbxSteps *) op->state)->step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

/* --- usage ---------------------------------------------------------------- */

typedef struct SbxVercelUsage
{
	SbxVercelList list; /* first */
	SbxInventory inventory;
	SbxUsage usage;
} SbxVercelUsage;

static SbxStep vercel_usage_listed;
static SbxStep vercel_usage_complete;

#define VERCEL_USAGE_QUERY(status)                                                     \
	"limit=" VERCEL_PAGE "&sortBy=createdAt&sortOrder=asc&status=" status

/* What has ended takes no place; a state that is not known does. */
static bool
vercel_usage_take(SbxOp *op, const char *name, const json_t *item)
{
	static const SbxInventoryKeys keys = {"vcpus", "memory", NULL, 1, false};
	SbxVercelUsage *usage = op->state;

	switch (sbx_vercel_state_of(sbx_json_string(item, "status")))
	{
		case SBX_STATE_STOPPED:
		case SBX_STATE_FAILED:
			return true;
		default:
			return sbx_inventory_add(op, &usage->inventory, &keys, name, item);
	}
}

static void
vercel_usage_prepare(SbxOp *op, const char *query, SbxStep *listed)
{
	vercel_list_prepare(op, query, vercel_usage_take, listed);
	((SbxVercelList *) op->state)->pages.malformed_code = SBX_CODE_MALFORMED;
}

/* Those that run come first: one that stops in between is then seen twice, not never. */
static SbxOpWant
vercel_usage_listed(SbxOp *op)
{
	vercel_usage_prepare(op, VERCEL_USAGE_QUERY("stopping"), vercel_usage_complete);
	return vercel_list_page(op);
}

static SbxOpWant
vercel_usage_complete(SbxOp *op)
{
	SbxVercelUsage *usage = op->state;

	if (!sbx_inventory_sum(&usage->inventory, &usage->usage))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
	usage->usage.disk_untold = true;
	return sbx_op_succeed(op, &usage->usage);
}

SbxOp *
sbx_vercel_usage(const SbxAccount *account, int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_vercel_make_op(account, "capacity", vercel_list_page,
	                       sizeof(SbxVercelUsage), VERCEL_ARENA_SMALL, timeout_ms);

	if (op == NULL)
		return NULL;
	vercel_usage_prepare(op, VERCEL_USAGE_QUERY("running"), vercel_usage_listed);
	return sbx_steps_made(op);
}
