/*
 * table.h
 *		Hash table from strings to pointers.
 *
 * Every look-up on the path of a request goes through one of these, so that
 * a million sandboxes cost as much per request as one.
 */
#ifndef EMU_TABLE_H
#define EMU_TABLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct EmuTableEntry EmuTableEntry;

typedef struct EmuTable
{
	EmuTableEntry **buckets;
	size_t bucket_count; /* a power of two, or 0 before first use */
	size_t count;
} EmuTable;

extern uint64_t emu_hash(const char *data, size_t length);
extern void *emu_table_get(const EmuTable *table, const char *key);
extern void emu_table_put(EmuTable *table, const char *key, void *value);
extern void *emu_table_remove(EmuTable *table, const char *key);

/* Forgets all keys; values go to release unless it is NULL. */
extern void emu_table_clear(EmuTable *table, void (*release)(void *value));

#endif
