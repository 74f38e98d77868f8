/*
 * connect.c
 *		Streams of the Connect protocol, JSON codec.
 */
#include "providers/connect.h"

#include <string.h>

/* Output comes in pieces of 32 KiB, which base64 makes 43 KiB of. */
#define CONNECT_MAX_MESSAGE ((size_t) 1024 * 1024)

#define CONNECT_COMPRESSED 0x01

/* --- envelopes ------------------------------------------------------------ */

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

/* --- base64 --------------------------------------------------------------- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
base64_value(char digit)
{
	const char *found = digit == '\0' ? NULL : strchr(base64_digits, digit);

	return found == NULL ? -1 : (int) (found - base64_digits);
}

bool
sbx_base64_decode(const char *text, size_t text_length, char *bytes, size_t *length)
{
	size_t padding = 0;

	*length = 0;
	if (text_length % 4 != 0)
		return false;
	while (padding < 2 && padding < text_length &&
	       text[text_length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < text_length; i += 4)
	{
		bool is_last = i + 4 == text_length;
		uint32_t group = 0;

		for (size_t j = 0; j < 4; j++)
		{
			bool padded = is_last && j >= 4 - padding;
			int value = padded ? 0 : base64_value(text[i + j]);

			if (value < 0)
				return false;
			group = group << 6 | (uint32_t) value;
		}

		/* Bits that nothing says must be zero: there is one way to write some bytes. */
		if (is_last && (group & ((1u << 8 * padding) - 1)) != 0)
			return false;
		for (size_t j = 0; j < (is_last ? 3 - padding : 3); j++)
			bytes[(*length)++] = (char) (group >> (16 - 8 * j));
	}
	return true;
}

char *
sbx_base64_encode(SbxArena *arena, const char *bytes, size_t length)
{
	char *text = sbx_arena_alloc(arena, (length + 2) / 3 * 4 + 1);
	char *end = text;

	if (text == NULL)
		return NULL;
	for (size_t i = 0; i < length; i += 3)
	{
		size_t left = length - i;
		uint32_t group = (uint32_t) (unsigned char) bytes[i] << 16;

		if (left > 1)
			group |= (uint32_t) (unsigned char) bytes[i + 1] << 8;
		if (left > 2)
			group |= (uint32_t) (unsigned char) bytes[i + 2];
		*end++ = base64_digits[group >> 18 & 63];
		*end++ = base64_digits[group >> 12 & 63];
		*end++ = left > 1 ? base64_digits[group >> 6 & 63] : '=';
		*end++ = left > 2 ? base64_digits[group & 63] : '=';
	}
	*end = '\0';
	return text;
}
