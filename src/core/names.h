/*
 * names.h
 *		Texts as small numbers: equal texts, equal numbers.
 *
 * What pools declare is interned once, when a pool is parsed; a request is looked up
 * once; from then on routing compares numbers.
 */
#ifndef SBX_NAMES_H
#define SBX_NAMES_H

#include "compat.h"

typedef struct SbxNames SbxNames;

/* An empty table that lives in a memory context. */
extern SbxNames *sbx_names_create(MemoryContext context);

/* The number of a text, which is added when it is new.  Numbers start at 0. */
extern int sbx_names_intern(SbxNames *names, const char *name);

/* The number of a text; -1 when nobody interned it. */
extern int sbx_names_find(const SbxNames *names, const char *name);

extern int sbx_names_count(const SbxNames *names);

/* All of them, by number. */
extern const char *const *sbx_names_all(const SbxNames *names);

#endif /* SBX_NAMES_H */
