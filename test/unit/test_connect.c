/*
 * test_connect.c
 *		Envelopes and base64, byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/base64.h"
#include "providers/connect.h"
#include "unit.h"

static char taken[400]; /* "<flags>:<text>;" of each message */
static int enough_after;
static int taken_count;

static SbxOpWant
nothing(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

static bool
take(SbxOp *op, int flags, const char *json, size_t length)
{
	size_t end = strlen(taken);

	(void) op;
	ok(strlen(json) == length, "a message ends where it ends");
	snprintf(taken + end, sizeof(taken) - end, "%d:%s;", flags, json);
	taken_count++;
	return taken_count != enough_after;
}

/* All of a stream in pieces, in memory of just their length. */
static bool
read_in_pieces(const Stream *stream, size_t piece, SbxConnectReader *reader)
{
	SbxOp *op = sbx_op_create("test", nothing, 8, 256, 1000);
	bool more = true;

	taken[0] = '\0';
	taken_count = 0;
	memset(reader, 0, sizeof(*reader));
	for (size_t at = 0; at < stream->length && more; at += piece)
	{
		size_t length = stream->length - at < piece ? stream->length - at : piece;
		char *copy = malloc(length);

		memcpy(copy, stream->bytes + at, length);
		more = sbx_connect_read(op, reader, copy, length, take);
		free(copy);
	}
	reader->message = NULL;
	sbx_op_free(op);
	return more;
}

static void
pieces(void)
{
	Stream stream = {0};
	SbxConnectReader reader;

	section("envelopes");
	enough_after = 0;
	stream_add(&stream, 0, "{\"a\":1}");
	stream_add(&stream, 0, "");
	stream_add(&stream, 0, "x");
	stream_add(&stream, 2, "{}");
	stream_add(&stream, 0, "");
	for (size_t piece = 1; piece <= stream.length; piece++)
	{
		ok(read_in_pieces(&stream, piece, &reader), "pieces of %zu bytes", piece);
		is_text(taken, "0:{\"a\":1};0:;0:x;2:{};0:;", "all of them");
	}
	for (size_t length = 0; length < stream.length; length++)
	{
		Stream head = {.bytes = stream.bytes, .length = length};

		ok(read_in_pieces(&head, 100, &reader) && !reader.malformed && taken_count < 5,
		   "cut after %zu bytes", length);
	}
	enough_after = 3;
	ok(!read_in_pieces(&stream, 100, &reader) && taken_count == 3, "enough is enough");
	ok(!reader.malformed, "and no fault");
	enough_after = 0;
	stream_free(&stream);
}

static void
malformed(void)
{
	static const struct
	{
		const char *name;
		char head[5];
		bool valid;
	} rows[] = {
	    {"compressed", {1, 0, 0, 0, 0}, false},
	    {"compressed end", {3, 0, 0, 0, 2}, false},
	    {"1 MiB with its NUL", {0, 0, 0x0f, (char) 0xff, (char) 0xff}, true},
	    {"1 MiB", {0, 0, 0x10, 0, 0}, false},
	    {"4 GiB", {0, (char) 0xff, (char) 0xff, (char) 0xff, (char) 0xff}, false}};
	SbxConnectReader reader;

	section("malformed envelope");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (size_t piece = 1; piece <= 5; piece += 2)
		{
			char copy[5];
			Stream stream = {.bytes = copy, .length = 5};

			memcpy(copy, rows[i].head, 5);
			ok(read_in_pieces(&stream, piece, &reader) == rows[i].valid &&
			       reader.malformed == !rows[i].valid,
			   "%s", rows[i].name);
		}
	}
}

static void
envelope(void)
{
	SbxArena arena;
	size_t length;
	const char *bytes;
	char *text = malloc(70001);

	section("envelope written");
	memset(text, 'x', 70000);
	text[70000] = '\0';
	sbx_arena_init(&arena, 64, 200000);
	bytes = sbx_connect_envelope(&arena, "{}", &length);
	ok(length == 7 && memcmp(bytes, "\0\0\0\0\2{}", 7) == 0, "short");
	bytes = sbx_connect_envelope(&arena, "", &length);
	ok(length == 5 && memcmp(bytes, "\0\0\0\0\0", 5) == 0, "empty");
	bytes = sbx_connect_envelope(&arena, text, &length);
	ok(length == 70005 && memcmp(bytes, "\0\0\1\x11\x70x", 6) == 0, "long");
	sbx_arena_free(&arena);
	free(text);
}

/* --- base64 --------------------------------------------------------------- */

static void
base64(void)
{
	static const char *const texts[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
	                                    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	static const char *const bad[] = {
	    "Z",    "Zg",   "Zg=",   "Zm9vY", "====", "=m9v",   "Z===",       "Zg==Zg==",
	    "Zm=v", "Z g=", "Zm9\n", "Zm8-",  "Zm_v", "Zm9v\n", "\xc3\xa9==", "Zm9v===="};
	SbxArena arena;
	char bytes[800];
	char all[300];
	size_t length;

	section("base64");
	sbx_arena_init(&arena, 64, 1000000);
	for (size_t i = 0; i < 7; i++)
	{
		is_text(sbx_base64_encode(&arena, "foobar", i), texts[i], "%zu bytes", i);
		ok(sbx_base64_decode(texts[i], strlen(texts[i]), bytes, &length) &&
		       length == i && memcmp(bytes, "foobar", i) == 0,
		   "%zu bytes back", i);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!sbx_base64_decode(bad[i], strlen(bad[i]), bytes, &length), "not %zu", i);
	ok(!sbx_base64_decode("Zm\0v", 4, bytes, &length), "nor a byte 0");
	ok(!sbx_base64_decode("Zm9=", 4, bytes, &length) &&
	       !sbx_base64_decode("Zh==", 4, bytes, &length),
	   "nor bits that no byte has");
	for (int i = 0; i < 300; i++)
		all[i] = (char) (i * 7);
	for (size_t i = 0; i <= 300; i++)
	{
		char *text = sbx_base64_encode(&arena, all, i);
		size_t text_length = strlen(text);

		if (!sbx_base64_decode(text, text_length, text, &length) || length != i ||
		    memcmp(text, all, i) != 0)
			ok(false, "%zu bytes of all kinds, in place", i);
	}
	ok(true, "all lengths");
	sbx_arena_free(&arena);
}

void
test_connect(void)
{
	pieces();
	malformed();
	envelope();
	base64();
}
