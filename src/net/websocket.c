/*
 * websocket.c
 *		The client's side of a WebSocket (RFC 6455): bytes in, bytes out.
 *
 * The handshake is ours, the frames are wslay's.
 */
#include "net/websocket.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wslay/wslay.h>

#include "net/base64.h"

/* The constant of RFC 6455 that the answer to a key is made with. */
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

#define KEY_BYTES 16

/* Room for what waits to be sent: a request has to fit, a message goes through it. */
#define PENDING_SIZE (32 * 1024)

/* The head of an answer: real ones are below 4 KiB. */
#define MAX_HEAD (64 * 1024)

/* So many messages that wait are more than a pong and one of ours. */
#define SWAMPED 16

struct SbxWebSocket
{
	const SbxWebSocketEvents *events;
	void *owner;
	SbxWebSocketState state;
	SbxArena arena; /* of the handshake */
	const char *accept;
	wslay_event_context_ptr frames;

	/* The answer to the request; its head ends with a NUL. */
	char *head;
	size_t head_length;
	const char *headers;
	int status;
	bool too_large;

	/* What the connection brought and nobody has looked at yet. */
	const char *arrived;
	size_t arrived_length;

	bool in_binary; /* the message that is coming */
	bool in_frame;  /* of the kind that is taken */
	bool goodbye;   /* its frame has begun */
	bool enough;

	size_t pending_length;
	size_t pending_sent;
	char pending[PENDING_SIZE];
};

/* --- frames --------------------------------------------------------------- */

static ssize_t
frames_read(wslay_event_context_ptr frames, uint8_t *bytes, size_t size, int flags,
            void *arg)
{
	SbxWebSocket *socket = arg;
	size_t length = socket->arrived_length < size ? socket->arrived_length : size;

	(void) flags;
	if (length == 0 || socket->enough)
	{
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(bytes, socket->arrived, length);
	socket->arrived += length;
	socket->arrived_length -= length;
	return (ssize_t) length;
}

static ssize_t
frames_write(wslay_event_context_ptr frames, const uint8_t *bytes, size_t size,
             int flags, void *arg)
{
	SbxWebSocket *socket = arg;
	size_t room = PENDING_SIZE - socket->pending_length;
	size_t length = room < size ? room : size;

	(void) flags;
	if (length == 0)
	{
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(socket->pending + socket->pending_length, bytes, length);
	socket->pending_length += length;
	return (ssize_t) length;
}

static int
frames_mask(wslay_event_context_ptr frames, uint8_t *mask, size_t length, void *arg)
{
	SbxWebSocket *socket = arg;

	if (socket->events->secret_bytes(socket->owner, mask, length))
		return 0;
	wslay_event_set_error(frames, WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

/* A frame that continues is of the kind of the message that it belongs to. */
static void
frames_begin(wslay_event_context_ptr frames,
             const struct wslay_event_on_frame_recv_start_arg *frame, void *arg)
{
	SbxWebSocket *socket = arg;

	(void) frames;
	if (!wslay_is_ctrl_frame(frame->opcode) &&
	    frame->opcode != WSLAY_CONTINUATION_FRAME)
		socket->in_binary = frame->opcode == WSLAY_BINARY_FRAME;
	socket->in_frame = !wslay_is_ctrl_frame(frame->opcode) && socket->in_binary;
	socket->goodbye |= frame->opcode == WSLAY_CONNECTION_CLOSE;
}

static void
frames_chunk(wslay_event_context_ptr frames,
             const struct wslay_event_on_frame_recv_chunk_arg *chunk, void *arg)
{
	SbxWebSocket *socket = arg;

	(void) frames;
	if (socket->in_frame && !socket->enough && chunk->data_length > 0)
		socket->enough = !socket->events->take(
		    socket->owner, (const char *) chunk->data, chunk->data_length);
}

/* Nothing of a message is kept: it can be as long as it likes. */
static bool
begin_frames(SbxWebSocket *socket)
{
	static const struct wslay_event_callbacks callbacks = {
	    .recv_callback = frames_read,
	    .send_callback = frames_write,
	    .genmask_callback = frames_mask,
	    .on_frame_recv_start_callback = frames_begin,
	    .on_frame_recv_chunk_callback = frames_chunk,
	};

	if (wslay_event_context_client_init(&socket->frames, &callbacks, socket) != 0)
	{
		socket->frames = NULL;
		return false;
	}
	wslay_event_config_set_no_buffering(socket->frames, 1);
	wslay_event_config_set_max_recv_msg_length(socket->frames, INT64_MAX);
	return true;
}

/*
 * What breaks a rule ends reading, and so does a goodbye, whatever it says: wslay looks at
 * its words or not, as the network cuts them.
 */
static void
receive_frames(SbxWebSocket *socket)
{
	int result = wslay_event_recv(socket->frames);

	if (socket->enough)
		return;
	if (socket->goodbye)
		socket->state = SBX_WEBSOCKET_CLOSED;
	else if (result != 0 || !wslay_event_get_read_enabled(socket->frames))
		socket->state = SBX_WEBSOCKET_BROKEN;
}

/* --- the handshake -------------------------------------------------------- */

SbxWebSocket *
sbx_websocket_create(const SbxWebSocketEvents *events, void *owner)
{
	SbxWebSocket *socket = calloc(1, sizeof(*socket));

	if (socket == NULL)
		return NULL;
	socket->events = events;
	socket->owner = owner;
	sbx_arena_init(&socket->arena, 0, 4096);
	if (begin_frames(socket))
		return socket;
	sbx_websocket_free(socket);
	return NULL;
}

void
sbx_websocket_free(SbxWebSocket *socket)
{
	if (socket == NULL)
		return;
	if (socket->frames != NULL)
		wslay_event_context_free(socket->frames);
	sbx_arena_free(&socket->arena);
	free(socket->head);
	explicit_bzero(socket, sizeof(*socket));
	free(socket);
}

/* What the other side has to make of a key. */
static const char *
accept_of(SbxArena *arena, const char *key)
{
	unsigned char digest[SHA_DIGEST_LENGTH];
	const char *text = sbx_arena_printf(arena, "%s" ACCEPT_GUID, key);

	if (text == NULL)
		return NULL;
	SHA1((const unsigned char *) text, strlen(text), digest);
	return sbx_base64_encode(arena, (const char *) digest, sizeof(digest));
}

/* The request in the room for what waits; false = it does not fit. */
static bool
write_request(SbxWebSocket *socket, const char *url, const char *key,
              const char *header_lines)
{
	const char *host = strstr(url, "://");
	size_t host_length;
	const char *target;
	int length;

	if (host == NULL)
		return false;
	host += 3;
	host_length = strcspn(host, "/?#");
	target = host + host_length;
	if (host_length > PENDING_SIZE)
		return false;
	length = snprintf(socket->pending, PENDING_SIZE,
	                  "GET %s%.*s HTTP/1.1\r\n"
	                  "Host: %.*s\r\n"
	                  "Connection: Upgrade\r\n"
	                  "Upgrade: websocket\r\n"
	                  "Sec-WebSocket-Version: 13\r\n"
	                  "Sec-WebSocket-Key: %s\r\n"
	                  "%s\r\n",
	                  *target == '/' ? "" : "/", (int) strcspn(target, "#"), target,
	                  (int) host_length, host, key, header_lines);
	if (length < 0 || length >= PENDING_SIZE)
		return false;
	socket->pending_length = (size_t) length;
	return true;
}

bool
sbx_websocket_ask(SbxWebSocket *socket, const char *url, const char *header_lines)
{
	unsigned char bytes[KEY_BYTES];
	const char *key;

	if (!socket->events->secret_bytes(socket->owner, bytes, sizeof(bytes)))
		return false;
	key = sbx_base64_encode(&socket->arena, (const char *) bytes, sizeof(bytes));
	if (key == NULL)
		return false;
	socket->accept = accept_of(&socket->arena, key);
	return socket->accept != NULL && write_request(socket, url, key, header_lines);
}

/*
 * "HTTP/1.1 101 ..."; 0 = it is nothing of the kind.  Somebody on the way may still refuse
 * in the words of 1.0, which knows no upgrade.
 */
static int
read_status(const char *line)
{
	int status = 0;

	if (strncmp(line, "HTTP/1.", 7) != 0 || (line[7] != '0' && line[7] != '1') ||
	    line[8] != ' ')
		return 0;
	for (int i = 9; i < 12; i++)
	{
		if (line[i] < '0' || line[i] > '9')
			return 0;
		status = status * 10 + (line[i] - '0');
	}
	if (line[12] != ' ' && line[12] != '\r')
		return 0;
	return status == 101 && line[7] == '0' ? 0 : status;
}

/* Is this word one of the list's, which commas separate? */
static bool
list_has(const char *list, size_t length, const char *word)
{
	size_t word_length = strlen(word);
	const char *end = list + length;

	while (list < end)
	{
		size_t part = strcspn(list, ", \t\r\n");

		if (part == word_length && sbx_ascii_equal(list, word, part))
			return true;
		list += part;
		list += strspn(list, ", \t");
	}
	return false;
}

/* A list can be spread over several lines of its name. */
static bool
header_has(const char *lines, const char *name, const char *word)
{
	size_t length;
	const char *value;

	while ((value = sbx_header_find(lines, name, &length)) != NULL)
	{
		if (list_has(value, length, word))
			return true;
		lines = value + length;
	}
	return false;
}

/* We asked for no extension and no protocol: who names one does not talk to us. */
static bool
is_accepted(const SbxWebSocket *socket)
{
	size_t length;
	const char *accept =
	    sbx_header_find(socket->headers, "Sec-WebSocket-Accept", &length);

	return accept != NULL && length == strlen(socket->accept) &&
	       memcmp(accept, socket->accept, length) == 0 &&
	       header_has(socket->headers, "Upgrade", "websocket") &&
	       header_has(socket->headers, "Connection", "upgrade") &&
	       sbx_header_find(socket->headers, "Sec-WebSocket-Extensions", &length) ==
	           NULL &&
	       sbx_header_find(socket->headers, "Sec-WebSocket-Protocol", &length) == NULL;
}

/* A whole head.  Interim answers announce another one. */
static void
take_head(SbxWebSocket *socket)
{
	int status = read_status(socket->head);

	if (status >= 100 && status < 200 && status != 101)
	{
		socket->head_length = 0;
		return;
	}
	socket->status = status;
	socket->headers = strstr(socket->head, "\r\n") + 2;
	if (status == 101 && is_accepted(socket))
		socket->state = SBX_WEBSOCKET_OPEN;
	else if (status >= 200)
		socket->state = SBX_WEBSOCKET_REFUSED;
	else
	{
		socket->status = 0;
		socket->state = SBX_WEBSOCKET_BROKEN;
	}
}

static bool
make_head_room(SbxWebSocket *socket)
{
	if (socket->head == NULL)
		socket->head = malloc(MAX_HEAD + 1);
	return socket->head != NULL;
}

/* Byte by byte: what follows the head is not part of it. */
static void
receive_head(SbxWebSocket *socket)
{
	if (!make_head_room(socket))
	{
		socket->state = SBX_WEBSOCKET_BROKEN;
		return;
	}
	while (socket->state == SBX_WEBSOCKET_OPENING && socket->arrived_length > 0)
	{
		char byte = *socket->arrived;

		if (socket->head_length == MAX_HEAD || byte == '\0')
		{
			socket->too_large = byte != '\0';
			socket->state = SBX_WEBSOCKET_BROKEN;
			return;
		}
		socket->head[socket->head_length++] = byte;
		socket->head[socket->head_length] = '\0';
		socket->arrived++;
		socket->arrived_length--;
		if (socket->head_length >= 4 &&
		    memcmp(socket->head + socket->head_length - 4, "\r\n\r\n", 4) == 0)
			take_head(socket);
	}
}

/* --- in and out ----------------------------------------------------------- */

void
sbx_websocket_receive(SbxWebSocket *socket, const char *bytes, size_t length)
{
	socket->arrived = bytes;
	socket->arrived_length = length;
	if (socket->state == SBX_WEBSOCKET_OPENING)
		receive_head(socket);
	if (socket->state == SBX_WEBSOCKET_OPEN && !socket->enough &&
	    socket->arrived_length > 0)
		receive_frames(socket);
	socket->arrived = NULL;
	socket->arrived_length = 0;
}

bool
sbx_websocket_say(SbxWebSocket *socket, const char *bytes, size_t length)
{
	struct wslay_event_msg message = {
	    .opcode = WSLAY_BINARY_FRAME,
	    .msg = (const uint8_t *) bytes,
	    .msg_length = length,
	};

	return socket->state == SBX_WEBSOCKET_OPEN &&
	       wslay_event_queue_msg(socket->frames, &message) == 0;
}

const char *
sbx_websocket_pending(SbxWebSocket *socket, size_t *length)
{
	if (socket->pending_sent == socket->pending_length)
	{
		socket->pending_sent = 0;
		socket->pending_length = 0;
		if (socket->state == SBX_WEBSOCKET_OPEN &&
		    wslay_event_send(socket->frames) != 0)
			socket->state = SBX_WEBSOCKET_BROKEN;
	}
	*length = socket->pending_length - socket->pending_sent;
	return *length == 0 ? NULL : socket->pending + socket->pending_sent;
}

void
sbx_websocket_sent(SbxWebSocket *socket, size_t length)
{
	socket->pending_sent += length;
}

bool
sbx_websocket_is_quiet(const SbxWebSocket *socket)
{
	return wslay_event_get_queued_msg_count(socket->frames) == 0;
}

bool
sbx_websocket_is_swamped(const SbxWebSocket *socket)
{
	return wslay_event_get_queued_msg_count(socket->frames) > SWAMPED;
}

SbxWebSocketState
sbx_websocket_state(const SbxWebSocket *socket)
{
	return socket->state;
}

bool
sbx_websocket_had_enough(const SbxWebSocket *socket)
{
	return socket->enough;
}

int
sbx_websocket_status(const SbxWebSocket *socket)
{
	return socket->status;
}

const char *
sbx_websocket_headers(const SbxWebSocket *socket)
{
	return socket->headers;
}

bool
sbx_websocket_too_large(const SbxWebSocket *socket)
{
	return socket->too_large;
}
