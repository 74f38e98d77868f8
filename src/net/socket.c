/*
 * socket.c
 *		An exchange over a WebSocket: libcurl connects, then it is driven by hand.
 *
 * No call waits.  What TLS has read ahead is not seen by an epoll set, so everything is read
 * until libcurl says that there is no more for now.
 */
#include "net/socket.h"

#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "net/libcurl.h"

/* An answer to the request that takes longer is none. */
#define MAX_OPENING_MS 10000

/* A record of TLS, which can be taken off the connection before it is asked for. */
#define MAX_READ_AHEAD (16 * 1024)

/* Reads and writes in a row: the backend has to look up now and then. */
#define MAX_TURNS   16
#define BUFFER_SIZE (16 * 1024)

/* --- what the operation wants ---------------------------------------------- */

static void
take_alarm(SbxTransfer *transfer)
{
	SbxHttpRequest *request = &transfer->op->request;

	if (request->alarm_ms > 0)
		transfer->socket->alarm_at = sbx_libcurl_now() + request->alarm_ms;
	request->alarm_ms = 0;
}

static bool
take_bytes(void *owner, const char *bytes, size_t length)
{
	SbxTransfer *transfer = owner;
	bool more = transfer->op->request.talk(transfer->op, bytes, length);

	take_alarm(transfer);
	return more;
}

static bool
take_random(void *owner, unsigned char *bytes, size_t length)
{
	return pg_strong_random(bytes, length);
}

/* One by one: what waits here costs nothing more. */
static bool
say_next(SbxTransfer *transfer)
{
	SbxHttpRequest *request = &transfer->op->request;
	SbxSocket *socket = transfer->socket;

	const SbxMessage *message = request->said;

	if (!socket->is_open || message == NULL ||
	    !sbx_websocket_is_quiet(socket->websocket))
		return true;
	request->said = message->next;
	return sbx_websocket_say(socket->websocket, message->bytes, message->length);
}

/* --- opening --------------------------------------------------------------- */

/* The lines of a request; they hold a key, so whoever frees them wipes them. */
static char *
header_lines(const SbxHttpRequest *request, size_t *size)
{
	char *lines;
	char *end;

	*size = 1;
	for (int i = 0; i < request->header_count; i++)
		*size += strlen(request->headers[i].name) + strlen(request->headers[i].prefix) +
		         strlen(request->headers[i].value) + 4;
	lines = malloc(*size);
	if (lines == NULL)
		return NULL;
	end = lines;
	*end = '\0';
	for (int i = 0; i < request->header_count; i++)
		end += snprintf(end, *size - (end - lines), "%s: %s%s\r\n",
		                request->headers[i].name, request->headers[i].prefix,
		                request->headers[i].value);
	return lines;
}

static bool
ask(SbxTransfer *transfer)
{
	const SbxHttpRequest *request = &transfer->op->request;
	size_t size;
	char *lines = header_lines(request, &size);
	bool asked = lines != NULL &&
	             sbx_websocket_ask(transfer->socket->websocket, request->url, lines);

	if (lines != NULL)
		explicit_bzero(lines, size);
	free(lines);
	return asked;
}

bool
sbx_socket_open(SbxTransfer *transfer, int64 now)
{
	static const SbxWebSocketEvents events = {.take = take_bytes,
	                                          .secret_bytes = take_random};
	SbxSocket *socket = calloc(1, sizeof(*socket));

	if (socket == NULL)
		return false;
	transfer->socket = socket;
	socket->alarm_at = -1;
	socket->limit = Min(transfer->exchange_deadline, now + MAX_OPENING_MS);
	socket->websocket = sbx_websocket_create(&events, transfer);
	return socket->websocket != NULL &&
	       curl_easy_getinfo(transfer->easy, CURLINFO_ACTIVESOCKET,
	                         &socket->descriptor) == CURLE_OK &&
	       socket->descriptor != CURL_SOCKET_BAD && ask(transfer);
}

void
sbx_socket_free(SbxSocket *socket)
{
	if (socket == NULL)
		return;
	sbx_websocket_free(socket->websocket);
	free(socket);
}

/* --- in and out ------------------------------------------------------------ */

static bool
is_over(const SbxSocket *socket)
{
	SbxWebSocketState state = sbx_websocket_state(socket->websocket);

	return socket->enough ||
	       (state != SBX_WEBSOCKET_OPENING && state != SBX_WEBSOCKET_OPEN);
}

/* The alarm's or the limit's, whichever comes first. */
static int64
next_time(const SbxSocket *socket)
{
	return socket->alarm_at >= 0 ? Min(socket->limit, socket->alarm_at) : socket->limit;
}

/* Unread bytes, which are left where they are while the other side takes none of ours. */
static bool
has_more(const SbxSocket *socket)
{
	return socket->more && !sbx_websocket_is_swamped(socket->websocket);
}

/*
 * What has come in time counts, however late it is looked at: so what waits when the time is
 * found to be over is read first.  Somebody who goes on talking cannot put it off.
 */
static void
note_late(SbxSocket *socket, int64 now)
{
	bool late = now >= next_time(socket);
	int waiting = 0;

	if (late && !socket->late && ioctl(socket->descriptor, FIONREAD, &waiting) == 0)
		socket->late_bytes = (size_t) waiting + MAX_READ_AHEAD;
	socket->late = late;
}

static bool
is_due(const SbxSocket *socket, int64 time, int64 now)
{
	return now >= time && (!has_more(socket) || socket->late_bytes == 0);
}

/* From now on it is the operation's time that counts, and its alarm's. */
static void
note_opened(SbxTransfer *transfer)
{
	SbxSocket *socket = transfer->socket;

	if (socket->is_open || sbx_websocket_state(socket->websocket) != SBX_WEBSOCKET_OPEN)
		return;
	socket->is_open = true;
	socket->limit = transfer->exchange_deadline;
	if (socket->alarm_at < 0)
		take_alarm(transfer);
}

static void
receive(SbxTransfer *transfer)
{
	SbxSocket *socket = transfer->socket;
	char buffer[BUFFER_SIZE];

	socket->more = true;
	for (int i = 0; i < MAX_TURNS && !is_over(socket) && !socket->ended; i++)
	{
		size_t length = 0;
		CURLcode code;

		if (sbx_websocket_is_swamped(socket->websocket))
			return;
		code = curl_easy_recv(transfer->easy, buffer, sizeof(buffer), &length);
		socket->more = code != CURLE_AGAIN;
		if (code == CURLE_AGAIN)
			return;
		socket->ended = code != CURLE_OK || length == 0;
		if (socket->ended)
			return;
		if (INSTR_TIME_IS_ZERO(transfer->answered))
			INSTR_TIME_SET_CURRENT(transfer->answered);
		socket->late_bytes -= Min(length, socket->late_bytes);
		sbx_websocket_receive(socket->websocket, buffer, length);
		socket->enough = socket->enough || sbx_websocket_had_enough(socket->websocket);
		note_opened(transfer);
	}
}

static void
ring_alarm(SbxTransfer *transfer, int64 now)
{
	SbxSocket *socket = transfer->socket;

	if (is_over(socket) || socket->ended || socket->alarm_at < 0 ||
	    !is_due(socket, socket->alarm_at, now))
		return;
	socket->alarm_at = -1;
	socket->enough = !take_bytes(transfer, NULL, 0);
}

/* CURLE_OK = all that can be sent for now was. */
static CURLcode
send_pending(SbxTransfer *transfer)
{
	SbxSocket *socket = transfer->socket;

	socket->wants_room = false;
	for (int i = 0; i < MAX_TURNS; i++)
	{
		size_t length;
		size_t sent = 0;
		const char *bytes;
		CURLcode code;

		if (!say_next(transfer))
			return CURLE_OUT_OF_MEMORY;
		bytes = sbx_websocket_pending(socket->websocket, &length);
		if (bytes == NULL)
			return CURLE_OK;
		code = curl_easy_send(transfer->easy, bytes, length, &sent);
		if (code == CURLE_AGAIN)
			break;
		if (code != CURLE_OK)
			return CURLE_SEND_ERROR;
		sbx_websocket_sent(socket->websocket, sent);
		transfer->body_sent += sent;
	}
	socket->wants_room = true;
	return CURLE_OK;
}

/* Why an exchange is over; CURLE_AGAIN = it is not. */
static CURLcode
outcome(SbxTransfer *transfer)
{
	SbxSocket *socket = transfer->socket;

	if (socket->enough)
		return CURLE_OK;
	switch (sbx_websocket_state(socket->websocket))
	{
		case SBX_WEBSOCKET_REFUSED:
		case SBX_WEBSOCKET_CLOSED:
			return CURLE_OK;
		case SBX_WEBSOCKET_BROKEN:
			transfer->too_large = sbx_websocket_too_large(socket->websocket);
			return CURLE_WEIRD_SERVER_REPLY;
		case SBX_WEBSOCKET_OPENING:
		case SBX_WEBSOCKET_OPEN:
			break;
	}
	return socket->ended ? CURLE_RECV_ERROR : CURLE_AGAIN;
}

bool
sbx_socket_serve(SbxTransfer *transfer, int64 now, CURLcode *code)
{
	SbxSocket *socket = transfer->socket;
	CURLcode sent = CURLE_OK;
	sigset_t saved;

	socket->ready = false;
	sbx_libcurl_block_signals(&saved);

	note_late(socket, now);
	receive(transfer);
	ring_alarm(transfer, now);
	if (!is_over(socket) && !socket->ended)
		sent = send_pending(transfer);

	/* Who closes the door on what we say may have said why. */
	if (sent != CURLE_OK)
		receive(transfer);
	sbx_libcurl_restore_signals(&saved);

	*code = outcome(transfer);
	if (*code == CURLE_AGAIN && sent != CURLE_OK)
		*code = sent;
	if (*code == CURLE_AGAIN && is_due(socket, socket->limit, now))
		*code = CURLE_OPERATION_TIMEDOUT;
	return *code != CURLE_AGAIN;
}

int64
sbx_socket_wake(const SbxSocket *socket)
{
	return has_more(socket) ? 0 : next_time(socket);
}

/* The answer's lines become the transfer's: they stay when the socket goes. */
void
sbx_socket_record(SbxTransfer *transfer, SbxHttpResponse *response)
{
	const SbxSocket *socket = transfer->socket;

	free(transfer->headers);
	transfer->headers = strdup(sbx_websocket_headers(socket->websocket));
	response->status = sbx_websocket_status(socket->websocket);
	response->headers = transfer->headers != NULL ? transfer->headers : "";
	response->body = "";
	response->closed = !socket->enough &&
	                   sbx_websocket_state(socket->websocket) == SBX_WEBSOCKET_CLOSED;
}
