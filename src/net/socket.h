/*
 * socket.h
 *		An exchange over a WebSocket: libcurl connects, then it is driven by hand.
 *
 * Private to the engine, like the transfer that it belongs to.
 */
#ifndef SBX_NET_SOCKET_H
#define SBX_NET_SOCKET_H

#include "net/transfer.h"
#include "net/websocket.h"

struct SbxSocket
{
	SbxWebSocket *websocket;
	curl_socket_t descriptor;
	int64 limit;       /* of the exchange, or of the answer to its request */
	int64 alarm_at;    /* the operation's; -1 = none */
	size_t late_bytes; /* that had come when either was found to be over */
	bool late;         /* is it? */
	bool is_open;      /* as a WebSocket */
	bool ready;        /* something has happened on the connection */
	bool more;         /* what has arrived was not read to its end */
	bool wants_room;   /* something waits until the connection takes more */
	bool enough;       /* for the operation */
	bool ended;        /* the connection */
};

/* Has the operation asked for one? */
static inline bool
sbx_socket_wanted(const SbxTransfer *transfer)
{
	return transfer->op->request.talk != NULL;
}

/* The connection stands: ask for a WebSocket.  False = that cannot be done. */
extern bool sbx_socket_open(SbxTransfer *transfer, int64 now);

/*
 * Whatever can be done without waiting.  True = the exchange is over, with that code: then
 * CURLE_OK means that there is a status.
 */
extern bool sbx_socket_serve(SbxTransfer *transfer, int64 now, CURLcode *code);

/* When it has to be served though nothing happens. */
extern int64 sbx_socket_wake(const SbxSocket *socket);

/* Status, headers and how it ended, for an exchange that is over with CURLE_OK. */
extern void sbx_socket_record(SbxTransfer *transfer, SbxHttpResponse *response);

extern void sbx_socket_free(SbxSocket *socket);

#endif /* SBX_NET_SOCKET_H */
