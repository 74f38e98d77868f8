/*
 * e2b_list.c
 *		Listings of E2B sandboxes: those with some labels, and what all of them use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b.h"
#include "providers/inventory.h"

/* For a listing from its first page to its last. */
#define E2B_FIND_TIMEOUT_MS (30 * 1000)

/* More pages than this are no listing: 100,000 sandboxes. */
#define E2B_MAX_PAGES 1000

/* --- pages ---------------------------------------------------------------- */

/* Operations that list start their own state with this one. */
typedef struct SbxE2bList
{
	SbxE2bState state; /* first */
	const char *url;   /* of the first page */
	SbxPages pages;

	/* Takes one item, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *item);
} SbxE2bList;

static SbxStep e2b_list_answered;

static SbxOpWant
e2b_list_page(SbxOp *op)
{
	SbxE2bList *list = op->state;
	const char *token = sbx_steps_cursor(op, &list->pages);
	const char *url = list->url;

	if (token != NULL)
		url = sbx_arena_printf(&op->arena, "%s&nextToken=%s", list->url, token);
	return sbx_e2b_send(op, "GET", url, NULL, e2b_list_answered);
}

static SbxOpWant
e2b_list_answered(SbxOp *op)
{
	SbxE2bList *list = op->state;

	return sbx_steps_page_answered(op, &list->pages);
}

/* The answer is an array, the token of the next page a header. */
static bool
e2b_list_take(SbxOp *op, const char **token)
{
	SbxE2bList *list = op->state;
	json_t *page = sbx_json_parse(op->response.body, op->response.body_length, false);
	bool taken = json_is_array(page);

	for (size_t i = 0; taken && i < json_array_size(page); i++)
	{
		const json_t *item = json_array_get(page, i);
		const char *id = sbx_json_string(item, "sandboxID");

		taken = sbx_e2b_valid_id(id) && list->take(op, id, item);
	}
	json_decref(page);
	*token = sbx_op_response_header(op, "X-Next-Token");
	if (*token != NULL && **token == '\0')
		*token = NULL;
	return taken;
}

static void
e2b_list_prepare(SbxOp *op, const char *url,
                 bool (*take)(SbxOp *op, const char *id, const json_t *item),
                 SbxStep *listed)
{
	SbxE2bList *list = op->state;

	list->url = url;
	list->take = take;
	sbx_steps_pages(op, &list->pages, E2B_MAX_PAGES, e2b_list_page, e2b_list_take,
	                listed);
	if (list->url == NULL)
		list->state.steps.step = sbx_steps_refuse;
}

/* --- find ----------------------------------------------------------------- */

typedef struct SbxE2bFind
{
	SbxE2bList list; /* first */
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxE2bFind;

static bool
e2b_find_take(SbxOp *op, const char *id, const json_t *item)
{
	SbxE2bFind *find = op->state;

	(void) id;
	return sbx_steps_add_found(op, &find->found, sbx_e2b_facts(op, item));
}

static SbxOpWant
e2b_find_listed(SbxOp *op)
{
	SbxE2bFind *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

SbxOp *
sbx_e2b_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op = sbx_e2b_make_op(account, "find", e2b_list_page, sizeof(SbxE2bFind),
	                            E2B_ARENA_SMALL, E2B_FIND_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	e2b_list_prepare(op, sbx_e2b_list_url(op, labels, label_count), e2b_find_take,
	                 e2b_find_listed);
	return sbx_steps_made(op);
}

/* --- usage ---------------------------------------------------------------- */

typedef struct SbxE2bUsage
{
	SbxE2bList list; /* first */
	SbxInventory inventory;
	int64_t total_running; /* what the first page says */
	SbxUsage usage;
} SbxE2bUsage;

/*
 * The total of the first page counts what is not listed yet, too.  It is a hint of the
 * provider's: one that is no number says nothing.
 */
static void
e2b_usage_read_total(SbxOp *op)
{
	SbxE2bUsage *usage = op->state;
	const char *text = sbx_op_response_header(op, "X-Total-Running");
	char *end;
	long long total;

	if (text == NULL || text[strspn(text, "0123456789")] != '\0' || *text == '\0')
		return;
	errno = 0;
	total = strtoll(text, &end, 10);
	if (errno == 0)
		usage->total_running = total;
}

static bool
e2b_usage_take(SbxOp *op, const char *id, const json_t *item)
{
	static const SbxInventoryKeys keys = {"cpuCount", "memoryMB", "diskSizeMB", 1,
	                                      false};
	SbxE2bUsage *usage = op->state;

	return sbx_inventory_add(op, &usage->inventory, &keys, id, item);
}

static SbxOpWant
e2b_usage_listed(SbxOp *op)
{
	SbxE2bUsage *usage = op->state;

	if (!sbx_inventory_sum(&usage->inventory, &usage->usage))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
	if (usage->usage.sandboxes < usage->total_running)
		usage->usage.sandboxes = usage->total_running;
	return sbx_op_succeed(op, &usage->usage);
}

static SbxStep e2b_usage_first_page;

static SbxOpWant
e2b_usage_start(SbxOp *op)
{
	SbxE2bUsage *usage = op->state;

	return sbx_e2b_send(op, "GET", usage->list.url, NULL, e2b_usage_first_page);
}

static SbxOpWant
e2b_usage_first_page(SbxOp *op)
{
	e2b_usage_read_total(op);
	return e2b_list_answered(op);
}

/* Those that run: what is paused takes no place. */
SbxOp *
sbx_e2b_usage(const SbxAccount *account, int64_t timeout_ms)
{
	SbxOp *op = sbx_e2b_make_op(account, "capacity", e2b_usage_start,
	                            sizeof(SbxE2bUsage), E2B_ARENA_SMALL, timeout_ms);
	SbxE2bList *list;

	if (op == NULL)
		return NULL;
	list = op->state;
	e2b_list_prepare(
	    op,
	    sbx_arena_printf(&op->arena,
	                     "%s/v2/sandboxes?state=running&limit=100&order=asc",
	                     list->state.api_url),
	    e2b_usage_take, e2b_usage_listed);
	list->pages.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}
