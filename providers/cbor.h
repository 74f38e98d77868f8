/*
 * cbor.h
 *		Items of CBOR (RFC 8949), as far as agents speak it.
 *
 * Reading is bounded: what is nested deeper or has more items than anything known, is of
 * indefinite length or tagged is refused, and nothing is copied or allocated.  libcbor reads and writes the
 * single items.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_CBOR_H
#define SBX_CBOR_H

#include "net/op.h"

/* --- reading -------------------------------------------------------------- */

typedef enum SbxCborType
{
	SBX_CBOR_UNSIGNED,
	SBX_CBOR_NEGATIVE, /* the value is -1 - number */
	SBX_CBOR_BYTES,
	SBX_CBOR_TEXT,
	SBX_CBOR_ARRAY,
	SBX_CBOR_MAP,
	SBX_CBOR_BOOLEAN,
	SBX_CBOR_OTHER /* null, undefined, a float */
} SbxCborType;

/* An item in place: valid as long as what was read. */
typedef struct SbxCborItem
{
	SbxCborType type;
	uint64_t number;   /* also of a boolean, 0 or 1 */
	const char *bytes; /* of bytes and text: they do not end with a NUL */
	size_t length;
	uint64_t count;    /* items of an array, pairs of a map */
	const char *start; /* of the whole item */
	const char *inside;
	const char *end;
} SbxCborItem;

/* Exactly one item, with all that is in it; false = it is something else. */
extern bool sbx_cbor_read(const char *bytes, size_t length, SbxCborItem *item);

/* The value of a text key of a map; false = absent, or this is no map. */
extern bool sbx_cbor_find(const SbxCborItem *map, const char *key, SbxCborItem *value);

/* Is it this text? */
extern bool sbx_cbor_is_text(const SbxCborItem *item, const char *text);

/* False = it is no number, or it does not fit. */
extern bool sbx_cbor_integer(const SbxCborItem *item, int64_t *value);

/* --- writing -------------------------------------------------------------- */

/*
 * Grows in the arena, whose flag tells that memory was short; nothing is written then.
 */
typedef struct SbxCborWriter
{
	SbxArena *arena;
	char *bytes;
	size_t length;
	size_t size;
} SbxCborWriter;

/* Bytes as they are, which may be no CBOR. */
extern void sbx_cbor_append(SbxCborWriter *writer, const char *bytes, size_t length);

extern void sbx_cbor_write_map(SbxCborWriter *writer, size_t pairs);
extern void sbx_cbor_write_array(SbxCborWriter *writer, size_t items);
extern void sbx_cbor_write_unsigned(SbxCborWriter *writer, uint64_t number);
extern void sbx_cbor_write_boolean(SbxCborWriter *writer, bool value);
extern void sbx_cbor_write_text(SbxCborWriter *writer, const char *text);
extern void
sbx_cbor_write_bytes(SbxCborWriter *writer, const char *bytes, size_t length);

/* NULL is null. */
extern void sbx_cbor_write_optional(SbxCborWriter *writer, const char *text);

#endif /* SBX_CBOR_H */
