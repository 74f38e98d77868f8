/*
 * names.c
 *		Texts as small numbers: equal texts, equal numbers.
 */
#include "core/names.h"

#include "common/hashfn.h"

typedef struct NameEntry
{
	const char *name;
	int number;
	char status;
} NameEntry;

#define SH_PREFIX            names
#define SH_ELEMENT_TYPE      NameEntry
#define SH_KEY_TYPE          const char *
#define SH_KEY               name
#define SH_HASH_KEY(tb, key) hash_bytes((const unsigned char *) (key), strlen(key))
#define SH_EQUAL(tb, a, b)   (strcmp(a, b) == 0)
#define SH_SCOPE             static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct SbxNames
{
	MemoryContext context;
	names_hash *table;
	const char **all;
	int count;
	int size;
};

/* Most installations know a few dozen names. */
#define INITIAL_SIZE 64

SbxNames *
sbx_names_create(MemoryContext context)
{
	SbxNames *names = MemoryContextAllocZero(context, sizeof(SbxNames));

	names->context = context;
	names->table = names_create(context, INITIAL_SIZE, NULL);
	names->size = INITIAL_SIZE;
	names->all = MemoryContextAlloc(context, sizeof(char *) * INITIAL_SIZE);
	return names;
}

int
sbx_names_intern(SbxNames *names, const char *name)
{
	NameEntry *entry;
	bool found;

	entry = names_lookup(names->table, name);
	if (entry != NULL)
		return entry->number;
	name = MemoryContextStrdup(names->context, name);
	entry = names_insert(names->table, name, &found);
	entry->number = names->count;
	if (names->count == names->size)
	{
		names->size *= 2;
		names->all = repalloc(names->all, sizeof(char *) * names->size);
	}
	names->all[names->count] = name;
	return names->count++;
}

int
sbx_names_find(const SbxNames *names, const char *name)
{
	NameEntry *entry = names_lookup(names->table, name);

	return entry == NULL ? -1 : entry->number;
}

int
sbx_names_count(const SbxNames *names)
{
	return names->count;
}

const char *const *
sbx_names_all(const SbxNames *names)
{
	return names->all;
}
