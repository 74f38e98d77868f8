/*
 * test_cbor.c
 *		CBOR items and the frames of Microsandbox's agent, byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>

#include "providers/microsandbox_frame.h"
#include "unit.h"

/* --- reading -------------------------------------------------------------- */

/* In memory of just its length. */
static bool
reads(const char *digits, SbxCborItem *item, char **memory)
{
	Stream stream = micro_hex(digits);
	char *copy = malloc(stream.length);

	memcpy(copy, stream.bytes, stream.length);
	*memory = copy;
	stream_free(&stream);
	return sbx_cbor_read(copy, strlen(digits) / 2, item);
}

static void
items(void)
{
	static const struct
	{
		const char *digits;
		bool valid;
	} rows[] = {
	    {"00", true},
	    {"1bffffffffffffffff", true},
	    {"20", true},
	    {"f6", true},
	    {"fb7ff0000000000000", true},
	    {"43616263", true},
	    {"6161", true},
	    {"83010203", true},
	    {"a2616101616202", true},
	    {"8181818181818100", true},
	    /* Must not be taken: too deep, cut, longer than one, and what nobody sends. */
	    {"81818181818181818100", false},
	    {"", false},
	    {"18", false},
	    {"436162", false},
	    {"830102", false},
	    {"a1616101ff", false},
	    {"a16161", false},
	    {"0000", false},
	    {"c000", false},
	    {"9f00ff", false},
	    {"bf616100ff", false},
	    {"5f4161ff", false},
	    {"ff", false},
	    {"1c", false},
	    {"5bffffffffffffffff", false},
	    {"9bffffffffffffffff", false},
	    {"bb7fffffffffffffff", false},
	    {"9a0010000000", false},
	};

	section("cbor, items");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		SbxCborItem item;
		char *memory;

		is_number(reads(rows[i].digits, &item, &memory), rows[i].valid, "%s %s",
		          rows[i].valid ? "must not fire:" : "must fire:", rows[i].digits);
		free(memory);
	}
}

static void
members(void)
{
	SbxCborItem map;
	SbxCborItem value;
	int64_t number;
	char *memory;

	section("cbor, members");
	ok(reads("a4"
	         "6161"
	         "01"
	         "616d"
	         "a1616102"
	         "6162"
	         "3903e7"
	         "6163"
	         "1bffffffffffffffff",
	         &map, &memory),
	   "a map");
	ok(sbx_cbor_find(&map, "a", &value) && sbx_cbor_integer(&value, &number) &&
	       number == 1,
	   "the outer one of a name");
	ok(sbx_cbor_find(&map, "m", &value) && sbx_cbor_find(&value, "a", &value) &&
	       sbx_cbor_integer(&value, &number) && number == 2,
	   "the inner one");
	ok(sbx_cbor_find(&map, "b", &value) && sbx_cbor_integer(&value, &number) &&
	       number == -1000,
	   "a negative number");
	ok(sbx_cbor_find(&map, "c", &value) && !sbx_cbor_integer(&value, &number),
	   "must fire: a number that does not fit");
	ok(!sbx_cbor_find(&map, "x", &value), "must fire: none of that name");
	ok(sbx_cbor_find(&map, "a", &value) && !sbx_cbor_find(&value, "a", &value),
	   "must fire: a number has no members");
	free(memory);
}

/* More items than any message has. */
static void
many(void)
{
	Stream stream = micro_hex("9903e8");
	SbxCborItem item;

	section("cbor, many");
	stream.bytes = realloc(stream.bytes, 1003);
	memset(stream.bytes + 3, 0, 1000);
	ok(!sbx_cbor_read(stream.bytes, 1003, &item), "must fire: a thousand");
	stream.bytes[2] = (char) 0xe7;
	ok(sbx_cbor_read(stream.bytes, 1002, &item), "must not fire: one less");
	stream_free(&stream);
}

/* --- frames --------------------------------------------------------------- */

static char taken[1000]; /* "<id>/<flags>/<type>;" of each */
static int enough_after;
static int taken_count;

static SbxOpWant
nothing(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

static bool
take(SbxOp *op, const SbxMicrosandboxFrame *frame)
{
	size_t end = strlen(taken);

	(void) op;
	snprintf(taken + end, sizeof(taken) - end, "%u/%u/%.*s;", frame->id, frame->flags,
	         (int) frame->type.length, frame->type.bytes);
	return ++taken_count != enough_after;
}

static bool
read_in_pieces(const Stream *stream, size_t piece, SbxMicrosandboxReader *reader)
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
		more = sbx_microsandbox_read(op, reader, copy, length, take);
		free(copy);
	}
	sbx_op_free(op);
	return more;
}

/* A range and two frames. */
#define TWO                                                                            \
	"0000000100000005"                                                                 \
	"00000010"                                                                         \
	"0000000000"                                                                       \
	"a361760761746161617041a0"                                                         \
	"00000010"                                                                         \
	"0000000301"                                                                       \
	"a361760761746162617041a0"

static void
pieces(void)
{
	Stream stream = micro_hex(TWO);
	SbxMicrosandboxReader reader;

	section("agent, pieces");
	stream.bytes[11] = 17;
	stream.bytes[11 + 21] = 17;
	for (size_t piece = 1; piece <= stream.length; piece++)
	{
		ok(read_in_pieces(&stream, piece, &reader) && !reader.malformed,
		   "pieces of %zu", piece);
		is_text(taken, "0/0/a;3/1/b;", "both frames");
	}
	is_number(reader.first_id, 1, "the range starts");
	is_number(reader.end_id, 5, "and ends");
	enough_after = 1;
	ok(!read_in_pieces(&stream, 100, &reader) && !reader.malformed, "enough");
	is_text(taken, "0/0/a;", "of one");
	enough_after = 0;
	stream_free(&stream);
}

/* What is a range of ours, and its first id that can be used. */
static void
ranges(void)
{
	static const struct
	{
		const char *bytes;
		uint32_t first_id; /* 0 = no range */
	} rows[] = {
	    {"0000000001ffffff", 1}, /* the first client's; 0 is the agent's own */
	    {"01ffffff03fffffe", 0x1ffffff},
	    {"fffffffeffffffff", 0xfffffffe},
	    {"0000000100000002", 1},
	    {"0000000000400001", 1}, /* longer than any frame of an older agent */
	    {"0000000000400000", 0},
	    {"0000000000000005", 0},
	    {"0040000000400000", 0},
	    {"0000000000000001", 0},
	    {"0000000000000000", 0},
	    {"0200000001ffffff", 0},
	};

	section("agent, ranges");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Stream stream = micro_hex(rows[i].bytes);
		SbxMicrosandboxReader reader;
		bool is_range = read_in_pieces(&stream, 3, &reader);

		is_number(is_range ? reader.first_id : 0, rows[i].first_id, "%s fire: %s",
		          rows[i].first_id > 0 ? "must not" : "must", rows[i].bytes);
		stream_free(&stream);
	}
}

static void
malformed(void)
{
	static const char *const rows[] = {
	    /* Older agents: an offset and the length of their first frame. */
	    "0000000000000067",
	    "1000000000000067",
	    /* No ids for us. */
	    "0000000500000005",
	    /* Too short, too long. */
	    "000000010000000500000004",
	    "000000010000000500400001",
	    /* No map; no version, type or payload; a payload that is none. */
	    "0000000100000005000000060000000000f6",
	    "0000000100000005000000060000000000a0",
	    "00000001000000050000000d0000000000a261746161617041a0",
	    "00000001000000050000000d0000000000a261760761704100",
	    "0000000100000005000000100000000000a361760761744161617041a0",
	    "00000001000000050000000f0000000000a3617607617461616170f6",
	    "0000000100000005000000110000000000a361760761746161617042a0a0",
	    "0000000100000005000000110000000000a361762061746161617041a0",
	};

	section("agent, malformed");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Stream stream = micro_hex(rows[i]);
		SbxMicrosandboxReader reader;
		size_t left = stream.length > 12 ? stream.length - 12 : 0;

		/* The length that is announced is that of what follows. */
		if (left > 0)
			stream.bytes[11] = (char) left;
		ok(!read_in_pieces(&stream, 3, &reader) && reader.malformed, "must fire: %s",
		   rows[i]);
		is_text(taken, "", "nothing is taken");
		stream_free(&stream);
	}
}

static void
writing(void)
{
	SbxArena arena;
	SbxCborWriter payload = {.arena = &arena};
	Stream expected = micro_hex("000000281000000000a3617607617471636f72652e657865632e73"
	                            "746172746564617048a163706964191092");
	size_t length = 0;
	char *frame;
	char *large;

	section("agent, writing");
	sbx_arena_init(&arena, 64, 64 * 1024 * 1024);
	sbx_cbor_write_map(&payload, 1);
	sbx_cbor_write_text(&payload, "pid");
	sbx_cbor_write_unsigned(&payload, 4242);
	frame = sbx_microsandbox_frame(&arena, 0x10000000, 0, 7, "core.exec.started",
	                               &payload, &length);
	ok(length == expected.length && memcmp(frame, expected.bytes, length) == 0,
	   "as the provider's own client does");
	stream_free(&expected);

	large = calloc(1, 4 << 20);
	sbx_cbor_write_bytes(&payload, large, 4 << 20);
	ok(sbx_microsandbox_frame(&arena, 1, 0, 7, "x", &payload, &length) == NULL,
	   "must fire: more than a frame can hold");
	free(large);
	sbx_arena_free(&arena);
}

void
test_cbor(void)
{
	items();
	members();
	many();
	pieces();
	ranges();
	malformed();
	writing();
}
