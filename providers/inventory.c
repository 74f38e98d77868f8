/*
 * inventory.c
 *		What an account uses, added up from a listing of its sandboxes.
 */
#include "providers/inventory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One more, of that id and nothing else; NULL = no memory. */
static SbxInventoryItem *
append(SbxOp *op, SbxInventory *inventory, const char *id)
{
	SbxInventoryItem *added;

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
	added = &inventory->items[inventory->count];
	memset(added, 0, sizeof(*added));
	added->id = sbx_arena_strdup(&op->arena, id);
	if (added->id == NULL)
		return NULL;
	inventory->count++;
	return added;
}

/* A text that looks like a number is none: nobody knows what wrote it. */
static bool
read_size(const json_t *item, const char *key, double *size, bool *untold)
{
	const json_t *value = json_object_get(item, key);

	if (untold != NULL && (value == NULL || json_is_null(value)))
	{
		*untold = true;
		return true;
	}
	if (!json_is_number(value))
		return false;
	*size = json_number_value(value);
	return isfinite(*size) && *size >= 0;
}

bool
sbx_inventory_add(SbxOp *op, SbxInventory *inventory, const SbxInventoryKeys *keys,
                  const char *id, const json_t *item)
{
	SbxInventoryItem *added = append(op, inventory, id);
	bool lacks = keys->may_lack;

	if (added == NULL ||
	    !read_size(item, keys->cpu, &added->cpu,
	               lacks ? &inventory->cpu_untold : NULL) ||
	    !read_size(item, keys->memory, &added->memory_mib,
	               lacks ? &inventory->memory_untold : NULL) ||
	    (keys->disk != NULL && !read_size(item, keys->disk, &added->disk_mib,
	                                      lacks ? &inventory->disk_untold : NULL)))
		return false;
	added->memory_mib *= keys->mib;
	added->disk_mib *= keys->mib;
	return true;
}

void
sbx_inventory_disk_only(SbxInventory *inventory)
{
	inventory->items[inventory->count - 1].cpu = 0;
	inventory->items[inventory->count - 1].memory_mib = 0;
}

bool
sbx_inventory_show(SbxOp *op, SbxInventory *inventory, const char *const *members,
                   const char *id, const json_t *item)
{
	SbxInventoryItem *added = append(op, inventory, id);
	json_t *shown = sbx_json_new_object();
	bool complete = added != NULL && shown != NULL;

	for (; complete && *members != NULL; members++)
	{
		json_t *value = json_object_get(item, *members);

		complete = value == NULL || json_object_set(shown, *members, value) == 0;
	}
	if (complete)
		added->shown = sbx_json_print(&op->arena, shown);
	json_decref(shown);
	return complete && added->shown != NULL;
}

static int
compare_ids(const void *left, const void *right)
{
	return strcmp(((const SbxInventoryItem *) left)->id,
	              ((const SbxInventoryItem *) right)->id);
}

/* One can be on two pages, if something before it was deleted in between. */
static void
settle(SbxInventory *inventory)
{
	int kept = 0;

	if (inventory->count > 0)
		qsort(inventory->items, (size_t) inventory->count, sizeof(SbxInventoryItem),
		      compare_ids);
	for (int i = 0; i < inventory->count; i++)
	{
		if (kept == 0 ||
		    compare_ids(&inventory->items[kept - 1], &inventory->items[i]) != 0)
			inventory->items[kept++] = inventory->items[i];
	}
	inventory->count = kept;
}

bool
sbx_inventory_sum(SbxInventory *inventory, SbxUsage *usage)
{
	settle(inventory);
	for (int i = 0; i < inventory->count; i++)
	{
		usage->cpu += inventory->items[i].cpu;
		usage->memory_mib += inventory->items[i].memory_mib;
		usage->disk_mib += inventory->items[i].disk_mib;
	}
	usage->cpu_untold |= inventory->cpu_untold;
	usage->memory_untold |= inventory->memory_untold;
	usage->disk_untold |= inventory->disk_untold;
	usage->sandboxes = inventory->count;
	return isfinite(usage->cpu) && isfinite(usage->memory_mib) &&
	       isfinite(usage->disk_mib);
}

char *
sbx_inventory_print(SbxOp *op, SbxInventory *inventory)
{
	size_t length = 2;
	char *text;
	char *end;

	settle(inventory);
	for (int i = 0; i < inventory->count; i++)
		length += strlen(inventory->items[i].shown) + 1;
	text = end = sbx_arena_alloc(&op->arena, length + 1);
	if (text == NULL)
		return NULL;
	*end++ = '[';
	for (int i = 0; i < inventory->count; i++)
	{
		size_t size = strlen(inventory->items[i].shown);

		if (i > 0)
			*end++ = ',';
		memcpy(end, inventory->items[i].shown, size);
		end += size;
	}
	*end++ = ']';
	*end = '\0';
	return text;
}
