/*
 * websocket.h
 *		The client's side of a WebSocket (RFC 6455): bytes in, bytes out.
 *
 * Knows no connection: whoever has one hands over what it brings and takes along what
 * waits to be sent.  No extensions, no subprotocol.  Only binary messages are taken, as one
 * stream; pings are answered.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_NET_WEBSOCKET_H
#define SBX_NET_WEBSOCKET_H

#include "net/op.h"

typedef enum SbxWebSocketState
{
	SBX_WEBSOCKET_OPENING, /* the answer to the request is not there yet */
	SBX_WEBSOCKET_OPEN,
	SBX_WEBSOCKET_REFUSED, /* answered with another status than 101 */
	SBX_WEBSOCKET_CLOSED,  /* the other side has said goodbye */
	SBX_WEBSOCKET_BROKEN   /* what it said is no WebSocket, or there is no memory */
} SbxWebSocketState;

typedef struct SbxWebSocketEvents
{
	/* Bytes of binary messages; false = no more of them is wanted. */
	bool (*take)(void *owner, const char *bytes, size_t length);

	/* As many bytes that nobody can guess; false = there are none. */
	bool (*secret_bytes)(void *owner, unsigned char *bytes, size_t length);
} SbxWebSocketEvents;

typedef struct SbxWebSocket SbxWebSocket;

/* NULL = no memory. */
extern SbxWebSocket *
sbx_websocket_create(const SbxWebSocketEvents *events, void *owner);

/* Wipes what it holds. */
extern void sbx_websocket_free(SbxWebSocket *socket);

/*
 * Writes the request: for that URL (absolute and encoded), with these header lines, each
 * with its line break.  False = it is too long, or there is no memory.
 */
extern bool
sbx_websocket_ask(SbxWebSocket *socket, const char *url, const char *header_lines);

/*
 * Takes what the connection brought.  Once no more is wanted, or the state says that it is
 * over, the rest is ignored.
 */
extern void
sbx_websocket_receive(SbxWebSocket *socket, const char *bytes, size_t length);

/* One binary message, copied.  False = no memory, or not open. */
extern bool sbx_websocket_say(SbxWebSocket *socket, const char *bytes, size_t length);

/*
 * What waits to be sent, in place; it stays as it is until all of it was sent, because TLS
 * wants the same bytes again.  NULL = nothing.
 */
extern const char *sbx_websocket_pending(SbxWebSocket *socket, size_t *length);
extern void sbx_websocket_sent(SbxWebSocket *socket, size_t length);

/* Is everything that was said pending or sent? */
extern bool sbx_websocket_is_quiet(const SbxWebSocket *socket);

/*
 * Do more answers to pings wait to be sent than anybody needs?  Then it is better not to
 * listen for a while.
 */
extern bool sbx_websocket_is_swamped(const SbxWebSocket *socket);

extern SbxWebSocketState sbx_websocket_state(const SbxWebSocket *socket);

/* Was "no more" the answer to some bytes? */
extern bool sbx_websocket_had_enough(const SbxWebSocket *socket);

/* Of the answer to the request: 0 = there is none yet; lines as in SbxHttpResponse. */
extern int sbx_websocket_status(const SbxWebSocket *socket);
extern const char *sbx_websocket_headers(const SbxWebSocket *socket);

/* Is the answer so long that it was not read to its end? */
extern bool sbx_websocket_too_large(const SbxWebSocket *socket);

#endif /* SBX_NET_WEBSOCKET_H */
