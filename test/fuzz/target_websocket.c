/*
 * target_websocket.c
 *		Target: what a server says on a WebSocket, from its first byte, however it is split.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/websocket.h"

/* The answer to the key that not_secret() makes, in which the rest can follow. */
#define GOOD                                                                           \
	"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"                  \
	"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

/* What came out of it, as one number. */
typedef struct Heard
{
	uint64_t sum;
	size_t length;
	size_t enough_at; /* 0 = never */
	SbxWebSocketState state;
	int status;
} Heard;

static bool
take(void *owner, const char *bytes, size_t length)
{
	Heard *heard = owner;

	for (size_t i = 0; i < length; i++)
	{
		if (heard->enough_at > 0 && heard->length >= heard->enough_at)
			break;
		heard->sum = (heard->sum ^ (unsigned char) bytes[i]) * 1099511628211u;
		heard->length++;
	}
	fuzz_check(length > 0, "nothing is not taken");
	return heard->enough_at == 0 || heard->length < heard->enough_at;
}

static bool
not_secret(void *owner, unsigned char *bytes, size_t length)
{
	(void) owner;
	memcpy(bytes, "the sample nonce", length);
	return true;
}

static void
send_all(SbxWebSocket *socket)
{
	const char *pending;
	size_t length;

	while ((pending = sbx_websocket_pending(socket, &length)) != NULL)
	{
		fuzz_touch(pending, length);
		sbx_websocket_sent(socket, length);
	}
}

/* In pieces of these sizes, again and again; 0 = all the rest. */
static Heard
hear(const char *bytes, size_t length, const uint8_t *sizes, size_t count,
     size_t enough_at)
{
	static const SbxWebSocketEvents events = {.take = take, .secret_bytes = not_secret};
	Heard heard = {.enough_at = enough_at};
	SbxWebSocket *socket = sbx_websocket_create(&events, &heard);
	size_t done = 0;

	if (socket == NULL || !sbx_websocket_ask(socket, "http://h/", ""))
		abort();
	for (size_t i = 0; done < length; i++)
	{
		size_t piece = count > 0 ? sizes[i % count] : 0;
		char *copy;

		if (piece == 0 || piece > length - done)
			piece = length - done;
		copy = malloc(piece);
		if (copy == NULL)
			abort();
		memcpy(copy, bytes + done, piece);
		sbx_websocket_receive(socket, copy, piece);
		free(copy);
		done += piece;
		if (i % 3 == 0 && sbx_websocket_state(socket) == SBX_WEBSOCKET_OPEN)
			(void) sbx_websocket_say(socket, "word", 4);
		send_all(socket);
	}
	heard.state = sbx_websocket_state(socket);
	heard.status = sbx_websocket_status(socket);
	fuzz_check(heard.length == 0 || heard.status == 101, "heard before it was open");
	if (heard.status != 0)
		fuzz_touch_text(sbx_websocket_headers(socket));
	sbx_websocket_free(socket);
	return heard;
}

/* The first byte says whether the input is everything or what follows a good answer. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput input = {data, size};
	uint8_t choice = fuzz_byte(&input);
	size_t enough_at = fuzz_byte(&input);
	uint8_t sizes[4];
	size_t length;
	char *bytes;
	Heard at_once;
	Heard in_pieces;

	for (size_t i = 0; i < sizeof(sizes); i++)
		sizes[i] = fuzz_byte(&input);
	bytes = fuzz_bytes(&input, input.left, &length);
	if (choice % 4 != 0)
	{
		bytes = realloc(bytes, length + sizeof(GOOD));
		if (bytes == NULL)
			abort();
		memmove(bytes + sizeof(GOOD) - 1, bytes, length);
		memcpy(bytes, GOOD, sizeof(GOOD) - 1);
		length += sizeof(GOOD) - 1;
	}
	at_once = hear(bytes, length, NULL, 0, enough_at);
	in_pieces = hear(bytes, length, sizes, sizeof(sizes), enough_at);
	fuzz_check(at_once.sum == in_pieces.sum && at_once.length == in_pieces.length,
	           "how it is split matters: %zu bytes, in pieces %zu", at_once.length,
	           in_pieces.length);
	fuzz_check(at_once.state == in_pieces.state && at_once.status == in_pieces.status,
	           "how it is split matters: state %d, in pieces %d", (int) at_once.state,
	           (int) in_pieces.state);
	free(bytes);
	return 0;
}
