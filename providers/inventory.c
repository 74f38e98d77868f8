/*
 * inventory.c
 *		What an account uses, added up from a listing of its sandboxes.
 */
#include "providers/inventory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static SbxInventoryItem *
next_item(SbxOp *op, SbxInventory *inventory)
{
	if (inventory->count == inventory->size)
	{
		int size = inventory->size == 0 ? 64 : inventory->size * 2;
		SbxInventoryItem *bigger =
		    sbx_arena_alloc(&op->arena, (size_t) size * sizeof(SbxInventoryItem));

		if (bigger == NULL)
			return NULL;
		if (inventory->count > 0)
			memcpy(bigger, inventory->items,
			       (size_t) inventory->count * sizeof(SbxInventoryItem));
		inventory->items = bigger;
		inventory->size = size;
	}
	return &inventory->items[inventory->count];
}

/* A text that looks like a number is none: nobody knows what wrote it. */
static bool
read_size(const json_t *item, const char *key, double *size)
{
	const json_t *value = json_object_get(item, key);

	if (!json_is_number(value))
		return false;
	*size = json_number_value(value);
	return isfinite(*size) && *size >= 0;
}

bool
sbx_inventory_add(SbxOp *op, SbxInventory *inventory, const SbxInventoryKeys *keys,
                  const char *id, const json_t *item)
{
	SbxInventoryItem *added;

	if (!sbx_inventory_add_unread(op, inventory, id))
		return false;
	added = &inventory->items[inventory->count - 1];
	if (!read_size(item, keys->cpu, &added->cpu) ||
	    !read_size(item, keys->memory, &added->memory_mib) ||
	    !read_size(item, keys->disk, &added->disk_mib))
		return false;
	added->memory_mib *= keys->mib;
	added->disk_mib *= keys->mib;
	return true;
}

bool
sbx_inventory_add_unread(SbxOp *op, SbxInventory *inventory, const char *id)
{
	SbxInventoryItem *added = next_item(op, inventory);

	if (added == NULL)
		return false;
	memset(added, 0, sizeof(*added));
	added->id = sbx_arena_strdup(&op->arena, id);
	if (added->id == NULL)
		return false;
	inventory->count++;
	return true;
}

bool
sbx_inventory_show(SbxOp *op, SbxInventory *inventory, const char *const *keys,
                   const json_t *item)
{
	json_t *shown = sbx_json_new_object();
	const char *text = NULL;
	bool complete = shown != NULL;

	for (; complete && *keys != NULL; keys++)
	{
		json_t *value = json_object_get(item, *keys);

		complete = value == NULL || json_object_set(shown, *keys, value) == 0;
	}
	if (complete)
		text = sbx_json_print(&op->arena, shown);
	json_decref(shown);
	inventory->items[inventory->count - 1].shown = text;
	return text != NULL;
}

static int
compare_ids(const void *left, const void *right)
{
	return strcmp(((const SbxInventoryItem *) left)->id,
	              ((const SbxInventoryItem *) right)->id);
}

/* All that are shown, as a JSON array; "[]" when none is. */
static const char *
print_shown(SbxOp *op, const SbxInventory *inventory)
{
	size_t length = 2;
	char *text;
	char *end;

	for (int i = 0; i < inventory->count; i++)
		length += inventory->items[i].shown == NULL
		              ? 0
		              : strlen(inventory->items[i].shown) + 1;
	text = end = sbx_arena_alloc(&op->arena, length + 1);
	if (text == NULL)
		return NULL;
	*end++ = '[';
	for (int i = 0; i < inventory->count; i++)
	{
		const char *shown = inventory->items[i].shown;

		if (shown == NULL)
			continue;
		if (end > text + 1)
			*end++ = ',';
		memcpy(end, shown, strlen(shown));
		end += strlen(shown);
	}
	*end++ = ']';
	*end = '\0';
	return text;
}

bool
sbx_inventory_sum(SbxOp *op, SbxInventory *inventory, SbxUsage *usage)
{
	int kept = 0;

	/* One can be on two pages, if something before it was deleted in between. */
	if (inventory->count > 0)
		qsort(inventory->items, (size_t) inventory->count, sizeof(SbxInventoryItem),
		      compare_ids);
	for (int i = 0; i < inventory->count; i++)
	{
		const SbxInventoryItem *item = &inventory->items[i];

		if (kept > 0 && compare_ids(&inventory->items[kept - 1], item) == 0)
			continue;
		usage->cpu += item->cpu;
		usage->memory_mib += item->memory_mib;
		usage->disk_mib += item->disk_mib;
		inventory->items[kept++] = *item;
	}
	inventory->count = kept;
	usage->sandboxes = kept;
	usage->shown = print_shown(op, inventory);
	return usage->shown != NULL && isfinite(usage->cpu) &&
	       isfinite(usage->memory_mib) && isfinite(usage->disk_mib);
}
