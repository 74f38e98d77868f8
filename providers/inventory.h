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

/* Where an item of a listing has its sizes. */
typedef struct SbxInventoryKeys
{
	const char *cpu; /* in vCPU */
	const char *memory;
	const char *disk; /* NULL = the provider says nothing of it */
	double mib;       /* so many MiB is one of memory or disk */
	bool may_lack;    /* an item need not tell all: of that there is no sum then */
} SbxInventoryKeys;

typedef struct SbxInventoryItem
{
	const char *id;
	double cpu;
	double memory_mib;
	double disk_mib;
	const char *shown; /* as JSON; NULL = its sizes were read instead */
} SbxInventoryItem;

/* What the pages have shown so far; zeroed is none. */
typedef struct SbxInventory
{
	SbxInventoryItem *items;
	int count;
	int size; /* room */
	bool cpu_untold;
	bool memory_untold;
	bool disk_untold;
} SbxInventory;

/*
 * One more, of that id.  False = one of its sizes is missing (unless the keys say that it
 * may be), no number, negative or not finite, or there is no memory.
 */
extern bool
sbx_inventory_add(SbxOp *op, SbxInventory *inventory, const SbxInventoryKeys *keys,
                  const char *id, const json_t *item);

/* The one added last has only its disk: it does not run. */
extern void sbx_inventory_disk_only(SbxInventory *inventory);

/*
 * The same for people to look at: these members of it as they are, and no size is looked
 * at.  members end with NULL.  False = there is no memory.
 */
extern bool
sbx_inventory_show(SbxOp *op, SbxInventory *inventory, const char *const *members,
                   const char *id, const json_t *item);

/* Each sandbox once, by id.  False = a sum is not finite. */
extern bool sbx_inventory_sum(SbxInventory *inventory, SbxUsage *usage);

/* All that are shown, each once, as a JSON array; NULL = there is no memory. */
extern char *sbx_inventory_print(SbxOp *op, SbxInventory *inventory);

#endif /* SBX_INVENTORY_H */
