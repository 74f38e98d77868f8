/*
 * test_websocket.c
 *		The client's side of a WebSocket, byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/websocket.h"
#include "unit.h"

/* The key and the answer to it that RFC 6455 has as its example. */
#define NONCE  "the sample nonce"
#define KEY    "dGhlIHNhbXBsZSBub25jZQ=="
#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

#define HEAD(accept)                                                                   \
	"HTTP/1.1 101 Switching Protocols\r\n"                                             \
	"Upgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\n"                        \
	"Sec-WebSocket-Accept: " accept "\r\n"

#define GOOD HEAD(ACCEPT) "\r\n"

typedef struct Heard
{
	char bytes[400];
	size_t length;
	size_t enough_at; /* so many bytes are enough; 0 = never */
	bool no_random;
} Heard;

static Heard heard;

static bool
take(void *owner, const char *bytes, size_t length)
{
	Heard *to = owner;

	if (length <= sizeof(to->bytes) - to->length)
		memcpy(to->bytes + to->length, bytes, length);
	to->length += length;
	return to->enough_at == 0 || to->length < to->enough_at;
}

static bool
not_random(void *owner, unsigned char *bytes, size_t length)
{
	const char *text = length == 4 ? "\1\2\3\4" : NONCE;

	memcpy(bytes, text, length);
	return !((Heard *) owner)->no_random;
}

static const SbxWebSocketEvents events = {.take = take, .secret_bytes = not_random};

/* One that has asked. */
static SbxWebSocket *
asked(void)
{
	SbxWebSocket *socket;

	memset(&heard, 0, sizeof(heard));
	socket = sbx_websocket_create(&events, &heard);
	if (socket == NULL)
		return NULL;
	if (sbx_websocket_ask(socket, "https://host.invalid:8/v1/a?b=c#d", "A: b\r\n"))
		return socket;
	sbx_websocket_free(socket);
	return NULL;
}

/* Takes along what waits, which has to stay where it is. */
static size_t
collect(SbxWebSocket *socket, char *bytes, size_t size)
{
	size_t total = 0;
	const char *pending;
	size_t length;

	while ((pending = sbx_websocket_pending(socket, &length)) != NULL)
	{
		size_t part = length > 1000 ? 1000 : length;

		if (total + part <= size)
			memcpy(bytes + total, pending, part);
		total += part;
		sbx_websocket_sent(socket, part);
	}
	return total;
}

/* In pieces, in memory of just their length. */
static void
receive(SbxWebSocket *socket, const char *bytes, size_t length, size_t piece)
{
	for (size_t at = 0; at < length; at += piece)
	{
		size_t part = length - at < piece ? length - at : piece;
		char *copy = malloc(part);

		if (copy == NULL)
			return;
		memcpy(copy, bytes + at, part);
		sbx_websocket_receive(socket, copy, part);
		free(copy);
	}
}

static SbxWebSocket *
talking(void)
{
	SbxWebSocket *socket = asked();

	if (socket == NULL)
		return NULL;
	(void) collect(socket, NULL, 0);
	receive(socket, GOOD, strlen(GOOD), 1000);
	return socket;
}

/* --- opening --------------------------------------------------------------- */

static void
request(void)
{
	static const struct
	{
		const char *url;
		const char *first_lines;
	} rows[] = {
	    {"https://h.invalid/a?b#c", "GET /a?b HTTP/1.1\r\nHost: h.invalid\r\n"},
	    {"http://h.invalid:81/", "GET / HTTP/1.1\r\nHost: h.invalid:81\r\n"},
	    {"http://[::1]:81", "GET / HTTP/1.1\r\nHost: [::1]:81\r\n"},
	    {"http://h?b", "GET /?b HTTP/1.1\r\nHost: h\r\n"},
	};
	char sent[2000];
	size_t length;
	SbxWebSocket *socket = asked();
	char *lines = malloc(40000);

	section("websocket, request");
	length = collect(socket, sent, sizeof(sent) - 1);
	sent[length] = '\0';
	is_text(sent,
	        "GET /v1/a?b=c HTTP/1.1\r\nHost: host.invalid:8\r\nConnection: Upgrade\r\n"
	        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
	        "Sec-WebSocket-Key: " KEY "\r\nA: b\r\n\r\n",
	        "as RFC 6455 wants it");
	sbx_websocket_free(socket);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		socket = sbx_websocket_create(&events, &heard);
		ok(sbx_websocket_ask(socket, rows[i].url, ""), "%s", rows[i].url);
		length = collect(socket, sent, sizeof(sent) - 1);
		sent[length] = '\0';
		ok(strncmp(sent, rows[i].first_lines, strlen(rows[i].first_lines)) == 0,
		   "host and target of %s", rows[i].url);
		sbx_websocket_free(socket);
	}

	memset(lines, 'x', 39999);
	lines[39999] = '\0';
	socket = sbx_websocket_create(&events, &heard);
	ok(!sbx_websocket_ask(socket, "http://h/", lines), "one that is too long is none");
	ok(!sbx_websocket_ask(socket, "h/", ""), "nor one without a scheme");
	heard.no_random = true;
	ok(!sbx_websocket_ask(socket, "http://h/", ""), "nor one without a secret key");
	sbx_websocket_free(socket);
	free(lines);
}

static void
answers(void)
{
	static const struct
	{
		const char *name;
		const char *answer;
		SbxWebSocketState state;
		int status;
	} rows[] = {
	    {"must not fire: as it has to be", GOOD, SBX_WEBSOCKET_OPEN, 101},
	    {"must not fire: an interim answer first",
	     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" GOOD, SBX_WEBSOCKET_OPEN, 101},
	    {"must not fire: half of it", HEAD(ACCEPT), SBX_WEBSOCKET_OPENING, 0},
	    {"must fire: wrong key", HEAD("s3pPLMBiTxaQ9kYGzzhZRbK+xOp=") "\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: the key in another case",
	     HEAD("S3pPLMBiTxaQ9kYGzzhZRbK+xOo=") "\r\n", SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: more than the key", HEAD(ACCEPT "x") "\r\n", SBX_WEBSOCKET_BROKEN,
	     0},
	    {"must fire: no key",
	     "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: another protocol",
	     "HTTP/1.1 101 x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n"
	     "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: no upgrade",
	     "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrades\r\n"
	     "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: an extension that nobody asked for",
	     HEAD(ACCEPT) "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: a subprotocol that nobody asked for",
	     HEAD(ACCEPT) "Sec-WebSocket-Protocol: x\r\n\r\n", SBX_WEBSOCKET_BROKEN, 0},
	    {"must not fire: its lists on several lines",
	     "HTTP/1.1 101 x\r\nConnection: keep-alive\r\nUpgrade: h2c\r\n"
	     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
	     "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	     SBX_WEBSOCKET_OPEN, 101},
	    {"must fire: no upgrade on several lines",
	     "HTTP/1.1 101 x\r\nConnection: keep-alive\r\nUpgrade: websocket\r\n"
	     "Connection: close\r\nSec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: an upgrade of older HTTP",
	     "HTTP/1.0 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	     "Sec-WebSocket-Accept: " ACCEPT "\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: newer HTTP than asked for", "HTTP/2 401 x\r\n\r\n",
	     SBX_WEBSOCKET_BROKEN, 0},
	    {"a refusal of older HTTP", "HTTP/1.0 502 x\r\n\r\n", SBX_WEBSOCKET_REFUSED,
	     502},
	    {"must fire: no HTTP", "SSH-2.0-x\r\n\r\n", SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: no status", "HTTP/1.1 1a1 x\r\n\r\n", SBX_WEBSOCKET_BROKEN, 0},
	    {"must fire: four digits", "HTTP/1.1 4011\r\n\r\n", SBX_WEBSOCKET_BROKEN, 0},
	    {"refused without a key", "HTTP/1.1 401\r\n\r\n", SBX_WEBSOCKET_REFUSED, 401},
	    {"refused with a body", "HTTP/1.1 409 Conflict\r\nContent-Length: 9\r\n\r\n{}",
	     SBX_WEBSOCKET_REFUSED, 409},
	    {"a success of another kind is a refusal", "HTTP/1.1 200 OK\r\nX: y\r\n\r\n",
	     SBX_WEBSOCKET_REFUSED, 200},
	};

	section("websocket, answers");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (size_t piece = 1; piece < 2000; piece = piece * 3 + 4)
		{
			SbxWebSocket *socket = asked();

			receive(socket, rows[i].answer, strlen(rows[i].answer), piece);
			is_number(sbx_websocket_state(socket), rows[i].state, "%s (pieces of %zu)",
			          rows[i].name, piece);
			is_number(sbx_websocket_status(socket), rows[i].status, "its status");
			sbx_websocket_free(socket);
		}
	}
}

static void
long_answers(void)
{
	SbxWebSocket *socket = asked();
	char line[1024];
	size_t length;

	section("websocket, long answers");
	memset(line, 'x', sizeof(line));
	receive(socket, "HTTP/1.1 200 OK\r\nX: ", 20, 20);
	for (int i = 0; i < 63; i++)
		receive(socket, line, sizeof(line), sizeof(line));
	is_number(sbx_websocket_state(socket), SBX_WEBSOCKET_OPENING,
	          "must not fire: 63 KiB");
	receive(socket, line, sizeof(line), sizeof(line));
	is_number(sbx_websocket_state(socket), SBX_WEBSOCKET_BROKEN, "must fire: 64 KiB");
	ok(sbx_websocket_too_large(socket), "and it says so");
	sbx_websocket_free(socket);

	socket = asked();
	receive(socket, "HTTP/1.1 404 x\r\nX: y\r\nRetry-After: 7\r\n\r\nbody", 44, 44);
	ok(sbx_header_find(sbx_websocket_headers(socket), "retry-after", &length) != NULL &&
	       length == 1,
	   "the lines of a refusal");
	ok(strstr(sbx_websocket_headers(socket), "body") == NULL, "and no more");
	sbx_websocket_free(socket);

	socket = asked();
	receive(socket, "HTTP/1.1 404 x\r\nX: \0y\r\n\r\n", 25, 25);
	is_number(sbx_websocket_state(socket), SBX_WEBSOCKET_BROKEN,
	          "must fire: a byte 0 in the head");
	sbx_websocket_free(socket);
}

/* --- what comes ------------------------------------------------------------ */

/* A frame of the server, with what it holds. */
#define BINARY "\x82"
#define TEXT   "\x81"
#define PART   "\x02" /* of a binary message */
#define REST   "\x80"
#define PING   "\x89"
#define PONG   "\x8a"
#define CLOSE  "\x88"

static void
frames(void)
{
	static const struct
	{
		const char *name;
		const char *bytes;
		size_t length;
		const char *heard;
		SbxWebSocketState state;
	} rows[] = {
#define ROW(name, bytes, heard, state) {name, bytes, sizeof(bytes) - 1, heard, state}
	    ROW("one message",
	        BINARY "\x03"
	               "abc",
	        "abc", SBX_WEBSOCKET_OPEN),
	    ROW("two are one stream",
	        BINARY "\x03"
	               "abc" BINARY "\x02"
	               "de",
	        "abcde", SBX_WEBSOCKET_OPEN),
	    ROW("one without bytes", BINARY "\0" BINARY "\1x", "x", SBX_WEBSOCKET_OPEN),
	    ROW("in parts, a ping between them",
	        PART "\2ab" PING "\1p" REST "\2"
	             "cd",
	        "abcd", SBX_WEBSOCKET_OPEN),
	    ROW("text is not for us",
	        TEXT "\2no" BINARY "\1y"
	             "\x01\1n" REST "\1n",
	        "y", SBX_WEBSOCKET_OPEN),
	    ROW("a pong nobody asked for", PONG "\1x" BINARY "\1y", "y",
	        SBX_WEBSOCKET_OPEN),
	    ROW("a goodbye",
	        BINARY "\1y" CLOSE "\2\x03\xe8" BINARY "\1"
	               "n",
	        "y", SBX_WEBSOCKET_CLOSED),
	    ROW("a goodbye without a word", CLOSE "\0", "", SBX_WEBSOCKET_CLOSED),
	    ROW("a goodbye in words that are none", CLOSE "\x05\x03\xe8\xf7\xfc\xe8", "",
	        SBX_WEBSOCKET_CLOSED),
	    ROW("a goodbye that has only begun", CLOSE "\x48HT", "", SBX_WEBSOCKET_CLOSED),
	    ROW("must fire: masked", BINARY "\x81\1\1\1\1x", "", SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: an extension's bit", "\xc2\1x", "", SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: an unknown kind", "\x83\1x", "", SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: the rest of nothing", REST "\1x", "", SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: a message inside another", PART "\1a" BINARY "\1b", "a",
	        SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: a ping in parts", "\x09\1x", "", SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: a ping that is too long", PING "\x7e\x01\x00", "",
	        SBX_WEBSOCKET_BROKEN),
	    ROW("must fire: a length below zero",
	        BINARY "\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "", SBX_WEBSOCKET_BROKEN),
	    ROW("a goodbye of one byte is one", CLOSE "\1x", "", SBX_WEBSOCKET_CLOSED),
	    ROW("must not fire: a message as long as can be",
	        BINARY "\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"
	               "abc",
	        "abc", SBX_WEBSOCKET_OPEN),
	};

	section("websocket, frames");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		for (size_t piece = 1; piece <= rows[i].length; piece++)
		{
			SbxWebSocket *socket = talking();

			receive(socket, rows[i].bytes, rows[i].length, piece);
			is_number(sbx_websocket_state(socket), rows[i].state, "%s (pieces of %zu)",
			          rows[i].name, piece);
			ok(heard.length == strlen(rows[i].heard) &&
			       memcmp(heard.bytes, rows[i].heard, heard.length) == 0,
			   "what is heard of it");
			sbx_websocket_free(socket);
		}
	}
}

/* The first frame may come together with the answer to the request. */
static void
at_once(void)
{
	static const char both[] = GOOD BINARY "\x03"
	                                       "abc";

	section("websocket, head and frame");
	for (size_t piece = 1; piece < sizeof(both); piece++)
	{
		SbxWebSocket *socket = asked();

		receive(socket, both, sizeof(both) - 1, piece);
		ok(heard.length == 3 && memcmp(heard.bytes, "abc", 3) == 0,
		   "in pieces of %zu bytes", piece);
		sbx_websocket_free(socket);
	}
}

static void
enough(void)
{
	SbxWebSocket *socket = talking();

	section("websocket, enough");
	heard.enough_at = 3;
	receive(socket, BINARY "\2ab", 4, 4);
	ok(!sbx_websocket_had_enough(socket), "must not fire: not yet");
	receive(socket, BINARY "\2cd" BINARY "\2ef", 8, 8);
	ok(sbx_websocket_had_enough(socket), "must fire: now");
	receive(socket, BINARY "\2gh", 4, 4);
	is_number((int64_t) heard.length, 4, "nothing is taken after that");
	sbx_websocket_free(socket);
}

/* --- what is said ---------------------------------------------------------- */

/* Is this one masked frame of that kind, and does it hold these bytes? */
static bool
is_frame(const char *frame, size_t frame_length, unsigned kind, const char *bytes,
         size_t length)
{
	const unsigned char *head = (const unsigned char *) frame;
	size_t start = length < 126 ? 2 : length < 65536 ? 4 : 10;
	size_t said = length < 126 ? head[1] & 0x7f : 0;

	for (size_t i = 2; i < start; i++)
		said = said << 8 | head[i];
	if (frame_length != start + 4 + length || head[0] != kind ||
	    (head[1] & 0x80) == 0 || said != length ||
	    memcmp(frame + start, "\1\2\3\4", 4) != 0)
		return false;
	for (size_t i = 0; i < length; i++)
	{
		if ((char) (frame[start + 4 + i] ^ (char) (1 + i % 4)) != bytes[i])
			return false;
	}
	return true;
}

static void
said(void)
{
	static const size_t sizes[] = {0, 1, 125, 126, 65535, 65536, 3 << 20};
	char *bytes = malloc(4 << 20);
	char *frame = malloc(4 << 20);
	SbxWebSocket *socket;
	size_t length;

	section("websocket, said");
	for (size_t i = 0; i < 4 << 20; i++)
		bytes[i] = (char) (i * 7);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		socket = talking();
		ok(sbx_websocket_is_quiet(socket), "nothing yet");
		ok(sbx_websocket_say(socket, bytes, sizes[i]), "%zu bytes", sizes[i]);
		ok(!sbx_websocket_is_quiet(socket), "something waits");
		length = collect(socket, frame, 4 << 20);
		ok(is_frame(frame, length, 0x82, bytes, sizes[i]), "are one masked frame");
		ok(sbx_websocket_is_quiet(socket), "nothing waits any more");
		sbx_websocket_free(socket);
	}
	socket = talking();
	heard.no_random = true;
	sbx_websocket_say(socket, "x", 1);
	length = collect(socket, frame, 100);
	is_number((int64_t) length, 0, "must fire: without a secret mask nothing is said");
	is_number(sbx_websocket_state(socket), SBX_WEBSOCKET_BROKEN, "and it is over");
	sbx_websocket_free(socket);
	socket = asked();
	ok(!sbx_websocket_say(socket, "x", 1), "must fire: nor before it is open");
	sbx_websocket_free(socket);
	free(bytes);
	free(frame);
}

static void
pings(void)
{
	SbxWebSocket *socket = talking();
	char frame[200];
	size_t length;

	section("websocket, pings");
	receive(socket, PING "\3abc", 5, 2);
	length = collect(socket, frame, sizeof(frame));
	ok(is_frame(frame, length, 0x8a, "abc", 3), "are answered in their words");
	for (int i = 0; i < 16; i++)
		receive(socket, PING "\0", 2, 2);
	ok(!sbx_websocket_is_swamped(socket), "must not fire: sixteen");
	receive(socket, PING "\0", 2, 2);
	ok(sbx_websocket_is_swamped(socket), "must fire: more are too many");
	(void) collect(socket, NULL, 0);
	ok(!sbx_websocket_is_swamped(socket), "must not fire: once they are answered");
	sbx_websocket_free(socket);
}

/* Whatever allocation fails: it is over, and nothing is lost. */
static void
no_memory(void)
{
	long left = 0;
	bool finished = false;

	section("websocket, no memory");
	for (; left < 100 && !finished; left++)
	{
		SbxWebSocket *socket;

		unit_mallocs_left = left;
		socket = asked();
		if (socket != NULL)
		{
			static const char answer[] = GOOD BINARY "\1x" PING "\1y" CLOSE "\0";

			sbx_websocket_receive(socket, answer, sizeof(answer) - 1);
			finished = sbx_websocket_state(socket) == SBX_WEBSOCKET_CLOSED &&
			           heard.length == 1;
		}
		unit_mallocs_left = -1;
		sbx_websocket_free(socket);
	}
	ok(finished && left >= 3, "every allocation in its turn (%ld)", left);
}

void
test_websocket(void)
{
	request();
	answers();
	long_answers();
	frames();
	at_once();
	enough();
	said();
	pings();
	no_memory();
}
