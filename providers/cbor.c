/*
 * cbor.c
 *		Items of CBOR (RFC 8949), as far as agents speak it.
 */
#include "providers/cbor.h"

#include <cbor.h>
#include <string.h>

/* Known messages nest three deep. */
#define MAX_DEPTH 8

/* All items of a message together: known ones have below fifty. */
#define MAX_ITEMS 1000

/* The longest head of an item. */
#define MAX_HEAD 9

/* --- reading -------------------------------------------------------------- */

/* What a callback has made of an item. */
typedef struct Head
{
	SbxCborItem item;
	bool known; /* false = of a kind that is refused */
} Head;

static void
set(void *context, SbxCborType type, uint64_t number)
{
	Head *head = context;

	head->known = true;
	head->item.type = type;
	head->item.number = number;
}

static void
take_unsigned8(void *context, uint8_t number)
{
	set(context, SBX_CBOR_UNSIGNED, number);
}

static void
take_unsigned16(void *context, uint16_t number)
{
	set(context, SBX_CBOR_UNSIGNED, number);
}

static void
take_unsigned32(void *context, uint32_t number)
{
	set(context, SBX_CBOR_UNSIGNED, number);
}

static void
take_unsigned64(void *context, uint64_t number)
{
	set(context, SBX_CBOR_UNSIGNED, number);
}

static void
take_negative8(void *context, uint8_t number)
{
	set(context, SBX_CBOR_NEGATIVE, number);
}

static void
take_negative16(void *context, uint16_t number)
{
	set(context, SBX_CBOR_NEGATIVE, number);
}

static void
take_negative32(void *context, uint32_t number)
{
	set(context, SBX_CBOR_NEGATIVE, number);
}

static void
take_negative64(void *context, uint64_t number)
{
	set(context, SBX_CBOR_NEGATIVE, number);
}

static void
take_bytes(void *context, cbor_data bytes, size_t length)
{
	set(context, SBX_CBOR_BYTES, 0);
	((Head *) context)->item.bytes = (const char *) bytes;
	((Head *) context)->item.length = length;
}

static void
take_text(void *context, cbor_data bytes, size_t length)
{
	take_bytes(context, bytes, length);
	((Head *) context)->item.type = SBX_CBOR_TEXT;
}

static void
take_array(void *context, size_t count)
{
	set(context, SBX_CBOR_ARRAY, 0);
	((Head *) context)->item.count = count;
}

static void
take_map(void *context, size_t count)
{
	set(context, SBX_CBOR_MAP, 0);
	((Head *) context)->item.count = count;
}

static void
take_boolean(void *context, bool value)
{
	set(context, SBX_CBOR_BOOLEAN, value);
}

static void
take_other(void *context)
{
	set(context, SBX_CBOR_OTHER, 0);
}

static void
take_float(void *context, float value)
{
	(void) value;
	set(context, SBX_CBOR_OTHER, 0);
}

static void
take_double(void *context, double value)
{
	(void) value;
	set(context, SBX_CBOR_OTHER, 0);
}

/* Indefinite lengths and tags stay unknown. */
static const struct cbor_callbacks callbacks = {
    .uint8 = take_unsigned8,
    .uint16 = take_unsigned16,
    .uint32 = take_unsigned32,
    .uint64 = take_unsigned64,
    .negint8 = take_negative8,
    .negint16 = take_negative16,
    .negint32 = take_negative32,
    .negint64 = take_negative64,
    .byte_string = take_bytes,
    .byte_string_start = cbor_null_byte_string_start_callback,
    .string = take_text,
    .string_start = cbor_null_string_start_callback,
    .array_start = take_array,
    .indef_array_start = cbor_null_indef_array_start_callback,
    .map_start = take_map,
    .indef_map_start = cbor_null_indef_map_start_callback,
    .indef_break = cbor_null_indef_break_callback,
    .tag = cbor_null_tag_callback,
    .boolean = take_boolean,
    .null = take_other,
    .undefined = take_other,
    .float2 = take_float,
    .float4 = take_float,
    .float8 = take_double,
};

/* One item without what is in it. */
static bool
read_head(const char *at, const char *end, SbxCborItem *item)
{
	struct cbor_decoder_result result;
	Head head = {0};

	if (at == end)
		return false;
	result = cbor_stream_decode((cbor_data) at, (size_t) (end - at), &callbacks, &head);
	if (result.status != CBOR_DECODER_FINISHED || !head.known)
		return false;
	*item = head.item;
	item->start = at;
	item->inside = at + result.read;
	item->end = item->inside;
	return true;
}

/* All of it, however deep, as long as there are no more items than are allowed. */
static bool
read_whole(const char *at, const char *end, int depth, int *allowed, SbxCborItem *item)
{
	uint64_t left;

	if (--*allowed < 0 || !read_head(at, end, item))
		return false;
	if (item->type != SBX_CBOR_ARRAY && item->type != SBX_CBOR_MAP)
		return true;
	if (depth == MAX_DEPTH || item->count > MAX_ITEMS)
		return false;
	left = item->type == SBX_CBOR_MAP ? 2 * item->count : item->count;
	for (; left > 0; left--)
	{
		SbxCborItem member;

		if (!read_whole(item->end, end, depth + 1, allowed, &member))
			return false;
		item->end = member.end;
	}
	return true;
}

bool
sbx_cbor_read(const char *bytes, size_t length, SbxCborItem *item)
{
	int allowed = MAX_ITEMS;

	return read_whole(bytes, bytes + length, 0, &allowed, item) &&
	       item->end == bytes + length;
}

bool
sbx_cbor_is_text(const SbxCborItem *item, const char *text)
{
	return item->type == SBX_CBOR_TEXT && item->length == strlen(text) &&
	       memcmp(item->bytes, text, item->length) == 0;
}

bool
sbx_cbor_find(const SbxCborItem *map, const char *key, SbxCborItem *value)
{
	const char *at = map->inside;
	int allowed = MAX_ITEMS;

	if (map->type != SBX_CBOR_MAP)
		return false;
	for (uint64_t i = 0; i < map->count; i++)
	{
		SbxCborItem name;

		if (!read_whole(at, map->end, 0, &allowed, &name) ||
		    !read_whole(name.end, map->end, 0, &allowed, value))
			return false;
		if (sbx_cbor_is_text(&name, key))
			return true;
		at = value->end;
	}
	return false;
}

bool
sbx_cbor_integer(const SbxCborItem *item, int64_t *value)
{
	if ((item->type != SBX_CBOR_UNSIGNED && item->type != SBX_CBOR_NEGATIVE) ||
	    item->number > INT64_MAX)
		return false;
	*value = item->type == SBX_CBOR_UNSIGNED ? (int64_t) item->number
	                                         : -1 - (int64_t) item->number;
	return true;
}

/* --- writing -------------------------------------------------------------- */

/* Where so many more bytes can be put; NULL = no memory. */
static unsigned char *
make_room(SbxCborWriter *writer, size_t length)
{
	size_t size = writer->size == 0 ? 256 : writer->size;
	char *bigger;

	if (writer->arena->out_of_memory || length > SIZE_MAX / 4)
		return NULL;

	/* What is long is the last of a message, so that room for more would be waste. */
	if (size - writer->length < length)
		size = 2 * size > writer->length + length ? 2 * size : writer->length + length;
	if (size > writer->size)
	{
		bigger = sbx_arena_alloc(writer->arena, size);
		if (bigger == NULL)
			return NULL;
		if (writer->length > 0)
			memcpy(bigger, writer->bytes, writer->length);
		writer->bytes = bigger;
		writer->size = size;
	}
	return (unsigned char *) writer->bytes + writer->length;
}

void
sbx_cbor_append(SbxCborWriter *writer, const char *bytes, size_t length)
{
	unsigned char *room = make_room(writer, length);

	if (room == NULL)
		return;
	if (length > 0)
		memcpy(room, bytes, length);
	writer->length += length;
}

typedef size_t Encode(size_t number, unsigned char *bytes, size_t size);

static bool
write_head(SbxCborWriter *writer, Encode *encode, size_t number)
{
	unsigned char *room = make_room(writer, MAX_HEAD);

	if (room == NULL)
		return false;
	writer->length += encode(number, room, MAX_HEAD);
	return true;
}

static void
write_string(SbxCborWriter *writer, Encode *encode, const char *bytes, size_t length)
{
	if (write_head(writer, encode, length))
		sbx_cbor_append(writer, bytes, length);
}

void
sbx_cbor_write_map(SbxCborWriter *writer, size_t pairs)
{
	write_head(writer, cbor_encode_map_start, pairs);
}

void
sbx_cbor_write_array(SbxCborWriter *writer, size_t items)
{
	write_head(writer, cbor_encode_array_start, items);
}

void
sbx_cbor_write_unsigned(SbxCborWriter *writer, uint64_t number)
{
	unsigned char *room = make_room(writer, MAX_HEAD);

	if (room != NULL)
		writer->length += cbor_encode_uint(number, room, MAX_HEAD);
}

void
sbx_cbor_write_boolean(SbxCborWriter *writer, bool value)
{
	unsigned char *room = make_room(writer, MAX_HEAD);

	if (room != NULL)
		writer->length += cbor_encode_bool(value, room, MAX_HEAD);
}

void
sbx_cbor_write_text(SbxCborWriter *writer, const char *text)
{
	write_string(writer, cbor_encode_string_start, text, strlen(text));
}

void
sbx_cbor_write_bytes(SbxCborWriter *writer, const char *bytes, size_t length)
{
	write_string(writer, cbor_encode_bytestring_start, bytes, length);
}

void
sbx_cbor_write_optional(SbxCborWriter *writer, const char *text)
{
	unsigned char *room;

	if (text != NULL)
	{
		sbx_cbor_write_text(writer, text);
		return;
	}
	room = make_room(writer, MAX_HEAD);
	if (room != NULL)
		writer->length += cbor_encode_null(room, MAX_HEAD);
}
