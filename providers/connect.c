/*
 * connect.c
 *		Streams of the Connect protocol, JSON codec.
 */
#include "providers/connect.h"

#include <string.h>

/* Output comes in pieces of 32 KiB, which base64 makes 43 KiB of. */
#define CONNECT_MAX_MESSAGE ((size_t) 1024 * 1024)

#define CONNECT_COMPRESSED 0x01

char *
sbx_connect_envelope(SbxArena *arena, const char *json, size_t *envelope_length)
{
	size_t length = strlen(json);
	char *envelope;

	if (length > UINT32_MAX)
		return NULL;
	envelope = sbx_arena_alloc(arena, length + 5);
	if (envelope == NULL)
		return NULL;
	envelope[0] = 0;
	envelope[1] = (char) (length >> 24);
	envelope[2] = (char) (length >> 16);
	envelope[3] = (char) (length >> 8);
	envelope[4] = (char) length;
	memcpy(envelope + 5, json, length);
	*envelope_length = length + 5;
	return envelope;
}

static size_t
connect_expected(const SbxConnectReader *reader)
{
	return (size_t) reader->head[1] << 24 | (size_t) reader->head[2] << 16 |
	       (size_t) reader->head[3] << 8 | (size_t) reader->head[4];
}

/* Room for the message that the head announces, NUL included. */
static bool
connect_make_room(SbxOp *op, SbxConnectReader *reader)
{
	size_t expected = connect_expected(reader);
	size_t needed = expected + 1;
	size_t size = reader->message_size == 0 ? 8192 : reader->message_size;

	if ((reader->head[0] & CONNECT_COMPRESSED) != 0 || expected >= CONNECT_MAX_MESSAGE)
		return false;
	if (needed <= reader->message_size)
		return true;
	while (size < needed)
		size *= 2;
	reader->message = sbx_arena_alloc(&op->arena, size);
	reader->message_size = reader->message == NULL ? 0 : size;
	return reader->message != NULL;
}

/* Move what is still needed from one to the other; returns how much that was. */
static size_t
connect_fill(char *to, size_t have, size_t needed, const char *from, size_t length)
{
	size_t part = needed - have < length ? needed - have : length;

	if (part > 0)
		memcpy(to + have, from, part);
	return part;
}

bool
sbx_connect_read(SbxOp *op, SbxConnectReader *reader, const char *bytes, size_t length,
                 SbxConnectTake *take)
{
	while (length > 0 && !reader->malformed)
	{
		size_t part = connect_fill((char *) reader->head, reader->head_length,
		                           sizeof(reader->head), bytes, length);

		bytes += part;
		length -= part;
		reader->head_length += part;
		if (reader->head_length < sizeof(reader->head))
			break;
		if (!connect_make_room(op, reader))
		{
			reader->malformed = true;
			break;
		}
		part = connect_fill(reader->message, reader->message_length,
		                    connect_expected(reader), bytes, length);
		bytes += part;
		length -= part;
		reader->message_length += part;
		if (reader->message_length < connect_expected(reader))
			break;
		reader->message[reader->message_length] = '\0';
		part = reader->message_length;
		reader->head_length = 0;
		reader->message_length = 0;
		if (!take(op, reader->head[0], reader->message, part))
			return false;
	}
	return !reader->malformed;
}
