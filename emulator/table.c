/*
 * table.c
 *		Hash table from strings to pointers.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include "text.h"

struct EmuTableEntry
{
	EmuTableEntry *next;
	uint64_t hash;
	void *value;
	char key[];
};

/* FNV-1a with a final mix, so that the low bits are usable as a bucket. */
uint64_t
emu_hash(const char *data, size_t length)
{
	uint64_t hash = UINT64_C(0xCBF29CE484222325);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char) data[i]) * UINT64_C(0x100000001B3);
	hash ^= hash >> 32;
	hash *= UINT64_C(0xD6E8FEB86659FD93);
	return hash ^ (hash >> 32);
}

static EmuTableEntry **
table_place(const EmuTable *table, const char *key, uint64_t hash)
{
	EmuTableEntry **place = &table->buckets[hash & (table->bucket_count - 1)];

	while (*place != NULL &&
	       ((*place)->hash != hash || strcmp((*place)->key, key) != 0))
		place = &(*place)->next;
	return place;
}

static void
table_grow(EmuTable *table)
{
	size_t old_count = table->bucket_count;
	EmuTableEntry **old_buckets = table->buckets;

	table->bucket_count = old_count > 0 ? old_count * 2 : 16;
	table->buckets = emu_alloc(table->bucket_count * sizeof(EmuTableEntry *));
	for (size_t i = 0; i < old_count; i++)
	{
		EmuTableEntry *next;

		for (EmuTableEntry *entry = old_buckets[i]; entry != NULL; entry = next)
		{
			size_t bucket = entry->hash & (table->bucket_count - 1);

			next = entry->next;
			entry->next = table->buckets[bucket];
			table->buckets[bucket] = entry;
		}
	}
	free(old_buckets);
}

void *
emu_table_get(const EmuTable *table, const char *key)
{
	EmuTableEntry *entry;

	if (table->count == 0)
		return NULL;
	entry = *table_place(table, key, emu_hash(key, strlen(key)));
	return entry != NULL ? entry->value : NULL;
}

void
emu_table_put(EmuTable *table, const char *key, void *value)
{
	size_t length = strlen(key);
	uint64_t hash = emu_hash(key, length);
	EmuTableEntry **place;

	if (table->count >= table->bucket_count)
		table_grow(table);
	place = table_place(table, key, hash);
	if (*place == NULL)
	{
		*place = emu_alloc(sizeof(EmuTableEntry) + length + 1);
		(*place)->hash = hash;
		memcpy((*place)->key, key, length + 1);
		table->count++;
	}
	(*place)->value = value;
}

void *
emu_table_remove(EmuTable *table, const char *key)
{
	EmuTableEntry **place;
	EmuTableEntry *entry;
	void *value;

	if (table->count == 0)
		return NULL;
	place = table_place(table, key, emu_hash(key, strlen(key)));
	entry = *place;
	if (entry == NULL)
		return NULL;
	value = entry->value;
	*place = entry->next;
	free(entry);
	table->count--;
	return value;
}

void
emu_table_clear(EmuTable *table, void (*release)(void *value))
{
	for (size_t i = 0; i < table->bucket_count; i++)
	{
		EmuTableEntry *next;

		for (EmuTableEntry *entry = table->buckets[i]; entry != NULL; entry = next)
		{
			next = entry->next;
			if (release != NULL)
				release(entry->value);
			free(entry);
		}
	}
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}
