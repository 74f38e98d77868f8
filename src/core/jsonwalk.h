/*
 * jsonwalk.h
 *		The members of a jsonb container, one after the other.
 *
 * The server's iterator allocates for every container, and knows nesting that nobody
 * here asks for.  Without it, reading a request takes 2.5 times as long.
 */
#ifndef SBX_JSONWALK_H
#define SBX_JSONWALK_H

#include "compat.h"

#include "utils/jsonb.h"

typedef struct SbxWalk
{
	JsonbContainer *container;
	int count; /* members */
	int next;
	const char *data;    /* what the offsets count from */
	uint32 key_offset;   /* of the next member */
	uint32 value_offset; /* the same */
} SbxWalk;

/*
 * Start at the first member.  The values that follow point into the container, and
 * containers inside are jbvBinary.
 */
extern void sbx_walk_start(SbxWalk *walk, JsonbContainer *container);

/* The next element of an array; false = no more. */
extern bool sbx_walk_element(SbxWalk *walk, JsonbValue *value);

/* The next member of an object, in the order of the jsonb; false = no more. */
extern bool sbx_walk_member(SbxWalk *walk, JsonbValue *key, JsonbValue *value);

/* Are there more than this many containers inside each other?  This one counts. */
extern bool sbx_walk_is_deeper(const JsonbContainer *container, int limit);

#endif /* SBX_JSONWALK_H */
