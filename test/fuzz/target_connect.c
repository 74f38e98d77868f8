/*
 * target_connect.c
 *		Target: streams of the Connect protocol, however they are split; and base64.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/base64.h"
#include "providers/connect.h"

/* What came out of a stream, as one number, and how much. */
typedef struct Heard
{
	uint64_t sum;
	int messages;
	int enough_after; /* negative = never */
} Heard;

static Heard heard;

static void
hear(const void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		heard.sum = (heard.sum ^ ((const unsigned char *) bytes)[i]) * 1099511628211u;
}

static bool
take(SbxOp *op, int flags, const char *json, size_t length)
{
	(void) op;
	hear(&flags, sizeof(flags));
	hear(&length, sizeof(length));
	hear(json, length);
	fuzz_check(json[length] == '\0', "a message does not end with a NUL");
	return ++heard.messages != heard.enough_after;
}

static SbxOpWant
nothing(SbxOp *op)
{
	return sbx_op_succeed(op, NULL);
}

/* In pieces of these sizes, again and again; 0 = all the rest. */
static Heard
read_in_pieces(const char *bytes, size_t length, const uint8_t *sizes, size_t count,
               int enough_after, bool *whole)
{
	SbxOp *op = sbx_op_create("fuzz", nothing, 1, 4096, 1000);
	SbxConnectReader reader = {0};
	size_t done = 0;

	memset(&heard, 0, sizeof(heard));
	heard.enough_after = enough_after;
	*whole = true;
	for (size_t i = 0; *whole && done < length; i++)
	{
		size_t piece = count > 0 ? sizes[i % count] : 0;
		char *copy;

		if (piece == 0 || piece > length - done)
			piece = length - done;
		copy = malloc(piece);
		if (copy == NULL)
			abort();
		memcpy(copy, bytes + done, piece);
		*whole = sbx_connect_read(op, &reader, copy, piece, take);
		free(copy);
		done += piece;
	}
	sbx_op_free(op);
	return heard;
}

static void
check_base64(const char *text, size_t length)
{
	SbxArena arena;
	char *bytes = malloc(length + 1);
	char *again;
	size_t decoded;

	if (bytes == NULL)
		abort();
	sbx_arena_init(&arena, 4096, 64 << 20);
	if (sbx_base64_decode(text, length, bytes, &decoded))
	{
		fuzz_check(decoded <= length, "base64 grows");
		fuzz_touch(bytes, decoded);
		again = sbx_base64_encode(&arena, bytes, decoded);
		fuzz_check(again != NULL && strlen(again) == length &&
		               memcmp(again, text, length) == 0,
		           "base64 that is not the only way to write these bytes");
	}
	sbx_arena_free(&arena);
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput input = {data, size};
	uint8_t sizes[4];
	int enough_after = fuzz_byte(&input) % 8 - 1;
	size_t length;
	bool whole;
	bool split_whole;
	char *bytes;
	Heard at_once;
	Heard in_pieces;

	for (size_t i = 0; i < sizeof(sizes); i++)
		sizes[i] = fuzz_byte(&input);
	bytes = fuzz_bytes(&input, input.left, &length);
	at_once = read_in_pieces(bytes, length, NULL, 0, enough_after, &whole);
	in_pieces =
	    read_in_pieces(bytes, length, sizes, sizeof(sizes), enough_after, &split_whole);
	fuzz_check(at_once.sum == in_pieces.sum && at_once.messages == in_pieces.messages &&
	               whole == split_whole,
	           "how a stream is split matters: %d messages, in pieces %d",
	           at_once.messages, in_pieces.messages);
	check_base64(bytes, length);
	free(bytes);
	return 0;
}
