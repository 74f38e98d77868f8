/*
 * test_connect.c
 *		Streams of the Connect protocol, and base64.
 */
#include <stdlib.h>

#include "providers/connect.h"
#include "unit.h"

typedef struct Seen
{
	int count;
	int flags[4];
	char text[4][64];
	int enough; /* after so many; 0 = never */
} Seen;

static Seen seen;

static bool
take(SbxOp *op, int flags, const char *json, size_t length)
{
	(void) op;
	if (seen.count < 4 && length < sizeof(seen.text[0]))
	{
		seen.flags[seen.count] = flags;
		memcpy(seen.text[seen.count], json, length + 1);
	}
	seen.count++;
	return seen.count != seen.enough;
}

/* Read bytes in two parts, each exactly as long as it is. */
static bool
read_split(const char *bytes, size_t length, size_t split)
{
	SbxOp op = {0};
	SbxConnectReader reader = {0};
	bool more = true;

	sbx_arena_init(&op.arena, 64, 4 * 1024 * 1024);
	for (int part = 0; part < 2 && more; part++)
	{
		size_t size = part == 0 ? split : length - split;
		char *copy = malloc(size + (size == 0));

		memcpy(copy, bytes + (part == 0 ? 0 : split), size);
		more = sbx_connect_read(&op, &reader, copy, size, take);
		free(copy);
	}
	sbx_arena_free(&op.arena);
	return more;
}

static void
envelopes(void)
{
	static const char stream[] = "\0\0\0\0\3{1}\0\0\0\0\5{two}\2\0\0\0\2{}";
	SbxArena arena;
	size_t length;
	char *envelope;
	int wrong = 0;

	section("connect");
	for (size_t split = 0; split < sizeof(stream); split++)
	{
		memset(&seen, 0, sizeof(seen));
		wrong += !read_split(stream, sizeof(stream) - 1, split) || seen.count != 3 ||
		         strcmp(seen.text[0], "{1}") != 0 ||
		         strcmp(seen.text[1], "{two}") != 0 ||
		         strcmp(seen.text[2], "{}") != 0 || seen.flags[1] != 0 ||
		         seen.flags[2] != SBX_CONNECT_END_OF_STREAM;
	}
	is_number(wrong, 0, "three messages, split anywhere");
	memset(&seen, 0, sizeof(seen));
	seen.enough = 2;
	ok(!read_split(stream, sizeof(stream) - 1, 0) && seen.count == 2,
	   "until it is enough");
	memset(&seen, 0, sizeof(seen));
	ok(read_split("\0\0\0\0\3{1", 7, 3) && seen.count == 0, "half a message is none");
	ok(!read_split("\1\0\0\0\3{1}", 8, 0) && seen.count == 0,
	   "compressed: not asked for");
	ok(!read_split("\0\377\377\377\377{", 6, 0) && seen.count == 0, "longer than any");
	sbx_arena_init(&arena, 64, 1024);
	envelope = sbx_connect_envelope(&arena, "{\"a\":1}", &length);
	ok(length == 12 && memcmp(envelope, "\0\0\0\0\7{\"a\":1}", 12) == 0, "written");
	sbx_arena_free(&arena);
}

static void
base64(void)
{
	static const char *const broken[] = {"A",    "AB",   "ABC",  "A===", "AB=C",
	                                     "====", "AB C", "AB,=", "AB-_"};
	SbxArena arena;
	char bytes[256];
	char back[400];
	size_t length;
	int wrong = 0;

	for (int i = 0; i < 256; i++)
		bytes[i] = (char) i;
	sbx_arena_init(&arena, 64, 1024 * 1024);
	for (size_t size = 0; size <= sizeof(bytes); size++)
	{
		char *text = sbx_base64_encode(&arena, bytes, size);

		wrong += !sbx_base64_decode(text, strlen(text), back, &length) ||
		         length != size || memcmp(back, bytes, size) != 0;
	}
	is_number(wrong, 0, "base64: there and back, every length");
	is_text(sbx_base64_encode(&arena, "user:", 5),
	        "dXNlcjo=", "base64: as everybody's");
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		ok(!sbx_base64_decode(broken[i], strlen(broken[i]), back, &length),
		   "base64: \"%s\" is none", broken[i]);
	sbx_arena_free(&arena);
}

void
test_connect(void)
{
	envelopes();
	base64();
}
