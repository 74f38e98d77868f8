/*
 * test_ndjson.c
 *		Streams of JSON, one value a line: cut anywhere, and what is no line.
 */
#include <stdlib.h>

#include "providers/ndjson.h"
#include "unit.h"

/* What was taken: the lines, one after the other, each with a '|' behind it. */
static char taken[256];
static int lines;
static int enough; /* after so many no more is wanted; 0 = never */

static bool
take(SbxOp *op, const char *json, size_t length)
{
	(void) op;
	if (strlen(taken) + length + 2 < sizeof(taken))
	{
		strncat(taken, json, length);
		strcat(taken, "|");
	}
	lines++;
	return lines != enough;
}

static SbxOpWant
nothing(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

static SbxOp *
begin(void)
{
	taken[0] = '\0';
	lines = 0;
	enough = 0;
	return sbx_op_create("test", nothing, 1, 64, 0);
}

/* In pieces of that many bytes. */
static bool
read_in_pieces(SbxOp *op, SbxNdjsonReader *reader, const char *bytes, size_t length,
               size_t piece)
{
	bool more = true;

	for (size_t at = 0; at < length && more; at += piece)
	{
		size_t part = length - at < piece ? length - at : piece;
		char *copy = malloc(part);

		memcpy(copy, bytes + at, part);
		more = sbx_ndjson_read(op, reader, copy, part, take);
		free(copy);
	}
	return more;
}

static void
pieces(void)
{
	static const char stream[] =
	    "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\"}\n\n\r\n1\r\n[\n{}";
	static const char expected[] = "{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\"}|1|[|";

	for (size_t piece = 1; piece <= sizeof(stream); piece++)
	{
		SbxNdjsonReader reader = {0};
		SbxOp *op = begin();

		ok(read_in_pieces(op, &reader, stream, strlen(stream), piece),
		   "more is wanted");
		is_text(taken, expected, "in pieces of %zu", piece);
		ok(sbx_ndjson_finish(op, &reader, take), "the end");
		is_number(lines, 4, "the last line has no end of its own");
		sbx_op_free(op);
	}

	/* Cut in two at every byte. */
	for (size_t cut = 0; cut <= strlen(stream); cut++)
	{
		SbxNdjsonReader reader = {0};
		SbxOp *op = begin();

		(void) sbx_ndjson_read(op, &reader, stream, cut, take);
		(void) sbx_ndjson_read(op, &reader, stream + cut, strlen(stream) - cut, take);
		is_text(taken, expected, "cut after %zu", cut);
		sbx_op_free(op);
	}
}

/* Bytes are taken as they are: whether they are JSON is the taker's to say. */
static void
bytes(void)
{
	static const struct
	{
		const char *stream;
		size_t length;
		int lines;
	} rows[] = {{"a\0b\n", 4, 1}, {"\xff\xfe\n", 3, 1}, {"\n\n\n", 3, 0},
	            {"\r\n", 2, 0},   {"\r\r\n", 3, 1},     {" \n", 2, 1},
	            {"a\rb\n", 4, 1}, {"", 0, 0},           {"a", 1, 1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		SbxNdjsonReader reader = {0};
		SbxOp *op = begin();

		ok(sbx_ndjson_read(op, &reader, rows[i].stream, rows[i].length, take) &&
		       sbx_ndjson_finish(op, &reader, take),
		   "row %zu is read", i);
		is_number(lines, rows[i].lines, "row %zu: lines", i);
		sbx_op_free(op);
	}
}

static void
stopping(void)
{
	SbxNdjsonReader reader = {0};
	SbxOp *op = begin();

	enough = 2;
	ok(!sbx_ndjson_read(op, &reader, "1\n2\n3\n", 6, take), "must fire: enough");
	is_text(taken, "1|2|", "no line more");
	ok(!reader.malformed, "which is no fault of the stream");
	sbx_op_free(op);
}

/* A line that never ends must not take all memory. */
static void
long_lines(void)
{
	const size_t limit = (size_t) 4 * 1024 * 1024;
	char *text = malloc(limit + 2);

	memset(text, 'x', limit + 1);
	for (int over = 0; over < 2; over++)
	{
		for (int whole = 0; whole < 2; whole++)
		{
			size_t length = limit - 1 + (size_t) over;
			SbxNdjsonReader reader = {0};
			SbxOp *op = begin();
			bool more;

			text[length] = '\n';
			more = read_in_pieces(op, &reader, text, length + 1,
			                      whole ? length + 1 : 65536);
			ok(more == !over && reader.malformed == over && lines == !over,
			   "%s: a line of %zu bytes", over ? "must fire" : "must not fire", length);
			ok(!over || (!sbx_ndjson_read(op, &reader, "1\n", 2, take) &&
			             !sbx_ndjson_finish(op, &reader, take) && lines == 0),
			   "and nothing after it counts");
			text[length] = 'x';
			sbx_op_free(op);
		}
	}
	free(text);
}

static void
memory(void)
{
	SbxNdjsonReader reader = {0};
	SbxOp *op;

	unit_arena_limit = 512;
	op = begin();
	unit_arena_limit = 0;
	ok(!sbx_ndjson_read(op, &reader, "1\n", 2, take) && reader.malformed && lines == 0,
	   "must fire: no memory for a line");
	sbx_op_free(op);
}

void
test_ndjson(void)
{
	section("lines of JSON");
	pieces();
	bytes();
	stopping();
	long_lines();
	memory();
}
