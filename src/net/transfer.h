/*
 * transfer.h
 *		One HTTP exchange of an operation: how it is sent, and what came back.
 *
 * Private to the engine.  Callbacks of libcurl set flags here; nothing in them may
 * raise, allocate with palloc or take interrupts.
 */
#ifndef SBX_NET_TRANSFER_H
#define SBX_NET_TRANSFER_H

#include "net/engine.h"

#include <curl/curl.h>

#include "portability/instr_time.h"

typedef struct SbxSocket SbxSocket;

/* The sockets of an engine, those of kept connections included. */
typedef struct SbxConnections
{
	int open;
	int *private_sockets; /* those whose address is not public */
	int private_count;
	int private_size; /* room */
} SbxConnections;

/*
 * An address is checked when somebody connects to it.  So once private ones are allowed no
 * longer, nothing may go over a connection to one that was made before.  For an engine that
 * has nothing under way.
 */
extern void sbx_connections_hang_up_private(const SbxConnections *connections);

/* One operation under way. */
typedef struct SbxTransfer
{
	SbxOp *op;
	CURLM *multi;
	const SbxEngineSettings *settings;
	SbxConnections *connections; /* of all exchanges */
	bool aborting;               /* no socket may be refused for want of descriptors */
	CURL *easy;                  /* NULL when no exchange is under way */
	struct curl_slist *header_lines;
	SbxSocket *socket; /* NULL = the exchange is none over a WebSocket, or not yet */
	CURLSH *alone;     /* the connections that only a WebSocket sees */
	int64 begun;       /* the whole operation, monotonic ms */
	int64 deadline;    /* of it */
	int64 exchange_deadline;
	int64 wake_at; /* end of a pause; -1 = not pausing */
	bool finished;
	bool failed; /* finished without success */
	bool ended;  /* the caller was told; op may be gone */
	bool queued; /* its exchange waits for a descriptor */

	/* State of the exchange; changed by libcurl's callbacks. */
	size_t body_sent; /* request bytes handed to libcurl */
	char *headers;
	size_t headers_length;
	char *body;
	size_t body_length;
	size_t body_size;
	size_t max_body;
	bool too_large;
	bool enough; /* the operation wants no more of a stream */
	bool out_of_memory;
	bool sent_before;   /* op->anything_sent before this exchange */
	bool denied;        /* our own rules forbid the address */
	bool no_descriptor; /* the server has none left for a socket */
	bool crowded;       /* that has happened to this operation before */
	bool resent;        /* libcurl sent the request again by itself */
	bool loopback_only; /* plain http: no other address will do */
	bool plain_http;

	/* For the trace.  libcurl's own time of the first byte may be that of a request. */
	instr_time started;
	instr_time answered; /* zero until the first byte of an answer */
} SbxTransfer;

/* Start the exchange that the operation asked for; false = it cannot be sent. */
extern bool sbx_transfer_start(SbxTransfer *transfer, int64 now);

/* What came back, or did not, as the operation's response. */
extern void sbx_transfer_record(SbxTransfer *transfer, CURLcode code);

/* The same for a request that could not even be handed to libcurl. */
extern void sbx_transfer_record_not_sent(SbxTransfer *transfer);

/* Remove the easy handle, where there is one, from where it was added. */
extern void sbx_transfer_release(SbxTransfer *transfer);

#endif /* SBX_NET_TRANSFER_H */
