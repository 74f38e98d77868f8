/*
 * agent37_list.c
 *		The list of an account's Agent37 instances: those with some labels, and what all of
 *		them use.  It is one answer, and the provider filters nothing.
 */
#include <string.h>

#include "providers/agent37.h"
#include "providers/inventory.h"

#define AGENT37_FIND_TIMEOUT_MS (30 * 1000)

/* Operations that list start their own state with this one. */
typedef struct SbxAgent37List
{
	SbxAgent37State state; /* first */
	SbxPages pages;

	/* Takes one instance, whose id is valid; false = it is not what it has to be. */
	bool (*take)(SbxOp *op, const char *id, const json_t *instance);
} SbxAgent37List;

static SbxStep agent37_list_answered;

static SbxOpWant
agent37_list_page(SbxOp *op)
{
	return sbx_agent37_list(op, agent37_list_answered);
}

static SbxOpWant
agent37_list_answered(SbxOp *op)
{
	SbxAgent37List *list = op->state;

	return sbx_steps_page_answered(op, &list->pages);
}

static bool
agent37_list_take(SbxOp *op, const char **cursor)
{
	SbxAgent37List *list = op->state;
	json_t *instances = sbx_agent37_take_list(op);
	bool taken = instances != NULL;

	for (size_t i = 0; taken && i < json_array_size(instances); i++)
	{
		const json_t *instance = json_array_get(instances, i);
		const char *id = sbx_json_string(instance, "id");

		taken = sbx_steps_valid_id(id) && list->take(op, id, instance);
	}
	json_decref(instances);
	*cursor = NULL;
	return taken;
}

static void
agent37_list_prepare(SbxOp *op,
                     bool (*take)(SbxOp *op, const char *id, const json_t *instance),
                     SbxStep *listed)
{
	SbxAgent37List *list = op->state;

	list->take = take;
	sbx_steps_pages(op, &list->pages, 2, agent37_list_page, agent37_list_take, listed);
}

/* --- find ----------------------------------------------------------------- */

typedef struct SbxAgent37Find
{
	SbxAgent37List list; /* first */
	SbxPair *labels;     /* that it must have */
	int label_count;
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxAgent37Find;

static bool
agent37_find_take(SbxOp *op, const char *id, const json_t *instance)
{
	SbxAgent37Find *find = op->state;

	(void) id;
	return !sbx_steps_has_labels(json_object_get(instance, "metadata"), find->labels,
	                             find->label_count) ||
	       sbx_steps_add_found(op, &find->found, sbx_agent37_facts(op, instance));
}

static SbxOpWant
agent37_find_listed(SbxOp *op)
{
	SbxAgent37Find *find = op->state;

	sbx_steps_settle_found(&find->found, &find->result);
	return sbx_op_succeed(op, &find->result);
}

SbxOp *
sbx_agent37_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op =
	    sbx_agent37_make_op(account, "find", agent37_list_page, sizeof(SbxAgent37Find),
	                        AGENT37_ARENA_SMALL, AGENT37_FIND_TIMEOUT_MS);
	SbxAgent37Find *find;

	if (op == NULL)
		return NULL;
	find = op->state;
	agent37_list_prepare(op, agent37_find_take, agent37_find_listed);
	find->labels = sbx_steps_copy_pairs(op, labels, label_count);
	find->label_count = label_count;
	return sbx_steps_made(op);
}

/* --- usage ---------------------------------------------------------------- */

typedef struct SbxAgent37Usage
{
	SbxAgent37List list; /* first */
	SbxInventory inventory;
	SbxUsage usage;
} SbxAgent37Usage;

/*
 * Every instance that is listed takes a place, whatever its state.  One that is stopped or
 * asleep has given back its CPU and memory, and keeps its disk.
 */
static bool
agent37_usage_take(SbxOp *op, const char *id, const json_t *instance)
{
	static const SbxInventoryKeys keys = {"cpu", "memory", "disk", 1024, false};
	SbxAgent37Usage *usage = op->state;

	if (!sbx_inventory_add(op, &usage->inventory, &keys, id,
	                       json_object_get(instance, "resources")))
		return false;
	if (sbx_agent37_state(instance) == SBX_STATE_STOPPED)
		sbx_inventory_disk_only(&usage->inventory);
	return true;
}

static SbxOpWant
agent37_usage_listed(SbxOp *op)
{
	SbxAgent37Usage *usage = op->state;

	return sbx_inventory_sum(&usage->inventory, &usage->usage)
	           ? sbx_op_succeed(op, &usage->usage)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, SBX_CODE_MALFORMED);
}

SbxOp *
sbx_agent37_usage(const SbxAccount *account, int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_agent37_make_op(account, "capacity", agent37_list_page,
	                        sizeof(SbxAgent37Usage), AGENT37_ARENA_SMALL, timeout_ms);

	if (op == NULL)
		return NULL;
	agent37_list_prepare(op, agent37_usage_take, agent37_usage_listed);
	((SbxAgent37List *) op->state)->pages.malformed_code = SBX_CODE_MALFORMED;
	return sbx_steps_made(op);
}
