/*
 * ndjson.c
 *		Streams of JSON, one value a line.
 */
#include "providers/ndjson.h"

#include <string.h>

/*
 * A line repeats the command with its script, at most 128 KiB, or has a piece of output;
 * escapes can make six bytes of one.
 */
#define NDJSON_MAX_LINE ((size_t) 4 * 1024 * 1024)

static bool
ndjson_append(SbxOp *op, SbxNdjsonReader *reader, const char *bytes, size_t length)
{
	size_t size = reader->size == 0 ? 1024 : reader->size;
	char *bigger;

	if (length >= NDJSON_MAX_LINE - reader->length)
		return false;
	while (size <= reader->length + length)
		size *= 2;
	if (size > reader->size)
	{
		bigger = sbx_arena_alloc(&op->arena, size);
		if (bigger == NULL)
			return false;
		if (reader->length > 0)
			memcpy(bigger, reader->line, reader->length);
		reader->line = bigger;
		reader->size = size;
	}
	if (length > 0)
		memcpy(reader->line + reader->length, bytes, length);
	reader->length += length;
	reader->line[reader->length] = '\0';
	return true;
}

/* Blank lines are none. */
static bool
ndjson_end_line(SbxOp *op, SbxNdjsonReader *reader, SbxNdjsonTake *take)
{
	size_t length = reader->length;

	reader->length = 0;
	if (length > 0 && reader->line[length - 1] == '\r')
		length--;
	if (length == 0)
		return true;
	reader->line[length] = '\0';
	return take(op, reader->line, length);
}

bool
sbx_ndjson_read(SbxOp *op, SbxNdjsonReader *reader, const char *bytes, size_t length,
                SbxNdjsonTake *take)
{
	while (length > 0 && !reader->malformed)
	{
		const char *end = memchr(bytes, '\n', length);
		size_t part = end == NULL ? length : (size_t) (end - bytes);

		if (!ndjson_append(op, reader, bytes, part))
		{
			reader->malformed = true;
			break;
		}
		if (end == NULL)
			break;
		bytes += part + 1;
		length -= part + 1;
		if (!ndjson_end_line(op, reader, take))
			return false;
	}
	return !reader->malformed;
}

bool
sbx_ndjson_finish(SbxOp *op, SbxNdjsonReader *reader, SbxNdjsonTake *take)
{
	return !reader->malformed && ndjson_end_line(op, reader, take);
}
