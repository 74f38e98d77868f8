/*
 * inventory.h
 *		What an account uses, added up from a listing of its sandboxes.
 *
 * A sum decides whether more is launched there, so it is exact or it is none: a sandbox
 * whose sizes are not what the interface promises makes the whole reading malformed.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_INVENTORY_H
#define SBX_INVENTORY_H

#include "net/json.h"
#include "providers/provider.h"

/* The code of a failure for what a listing says and cannot be read. */
#define SBX_CODE_MALFORMED "MALFORMED"

/* Where an item of a listing has its sizes. */
typedef struct SbxInventoryKeys
{
	const char *cpu; /* in vCPU */
	const char *memory;
	const char *disk;
	double mib; /* so many MiB is one of memory or disk */
} SbxInventoryKeys;

typedef struct SbxInventoryItem
{
	const char *id;
	double cpu;
	double memory_mib;
	double disk_mib;
	const char *shown; /* as JSON, for SbxUsage; NULL = not asked for */
} SbxInventoryItem;

/* What the pages have shown so far; zeroed is none. */
typedef struct SbxInventory
{
	SbxInventoryItem *items;
	int count;
	int size; /* room */
} SbxInventory;

/*
 * One more, of that id.  False = one of its sizes is missing, no number, negative or not
 * finite, or there is no memory.
 */
extern bool
sbx_inventory_add(SbxOp *op, SbxInventory *inventory, const SbxInventoryKeys *keys,
                  const char *id, const json_t *item);

/*
 * Keep these members of the item that was added last, as they are, for people to see.
 * keys end with NULL.  False = no memory.
 */
extern bool sbx_inventory_show(SbxOp *op, SbxInventory *inventory,
                               const char *const *keys, const json_t *item);

/*
 * The same for an item of which nothing else is known: it counts nothing, and no size is
 * looked at.
 */
extern bool
sbx_inventory_add_unread(SbxOp *op, SbxInventory *inventory, const char *id);

/* Each sandbox once, by id.  False = a sum is not finite, or there is no memory. */
extern bool sbx_inventory_sum(SbxOp *op, SbxInventory *inventory, SbxUsage *usage);

#endif /* SBX_INVENTORY_H */
