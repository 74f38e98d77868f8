/*
 * websocket.c
 *		WebSockets: the handshake, and messages in both directions.
 *
 * libmicrohttpd sends the handshake and then hands the connection over; from
 * then on the reactor watches it and wslay frames and unframes the messages.
 * Until it is handed over a socket belongs to its request, afterwards to
 * itself.
 *
 * What wslay writes goes to an outbox at once, and from there to the client as
 * fast as it takes it.  So a place in the stream is known as soon as something
 * is sent, and the stream can be made to break there.
 */
#include "websocket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <wslay/wslay.h>

#include "faults.h"
#include "provider.h"

/* The constant of RFC 6455 that the accept key is made with. */
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

/* A key is 16 bytes in base64. */
#define KEY_LENGTH 24

/* The longest message a client may send. */
#define MESSAGE_LIMIT ((uint64_t) 16 << 20)

#define PING_TEXT "are you there"

/* How long a client has to answer a goodbye. */
#define GOODBYE_MS 2000

/* An outbox is not moved up for less than this. */
#define OUTBOX_SLACK ((size_t) 1 << 20)

typedef struct Break
{
	uint64_t place; /* in the stream */
	EmuWebSocketBreak kind;
	int64_t ms;
} Break;

struct EmuWebSocket
{
	EmuWebSocket *next; /* of those that are open */
	EmuWebSocket *previous;
	const EmuWebSocketEvents *events;
	void *owner; /* NULL once it is not interested any more */
	char *accept;
	wslay_event_context_ptr frames;
	struct MHD_UpgradeResponseHandle *upgrade; /* NULL until it is open */
	int fd;
	int carrier; /* a duplicate of what carries it, if that is TLS, else -1 */
	EmuWatch watch;
	EmuTimer goodbye;
	EmuText arrived; /* came together with the request */
	EmuText outbox;
	size_t outbox_sent; /* of the outbox, as far as it has not been moved up */
	uint64_t sent;      /* of the stream, ever */
	Break *breaks;      /* in the order of their places */
	size_t break_count;
	EmuTimer pause;
	bool pausing;
	bool silent;         /* nothing is sent any more */
	bool closing;        /* a goodbye is in the outbox */
	bool goodbye_begins; /* the client has it, and time to answer */
};

static EmuWebSocket *open_sockets;
static bool ending;

/*
 * Opening
 */

/* Does a header's list of words contain this one? */
static bool
header_has(EmuRequest *request, const char *name, const char *word)
{
	const char *value = emu_request_header(request, name);

	while (value != NULL && *value != '\0')
	{
		size_t length = strcspn(value, ", ");

		if (length == strlen(word) && strncasecmp(value, word, length) == 0)
			return true;
		value += length;
		value += strspn(value, ", ");
	}
	return false;
}

bool
emu_websocket_wanted(EmuRequest *request)
{
	return header_has(request, "Upgrade", "websocket");
}

static char *
accept_key(const char *key)
{
	unsigned char digest[SHA_DIGEST_LENGTH];
	EmuText text = {0};
	EmuText encoded = {0};

	emu_text_add(&text, key);
	emu_text_add(&text, ACCEPT_GUID);
	SHA1((const unsigned char *) text.data, text.length, digest);
	emu_text_base64(&encoded, (const char *) digest, sizeof(digest));
	emu_text_free(&text);
	return encoded.data;
}

/* What is sent leaves at once.  With TLS this is no TCP socket, and stays as it is. */
static void
set_no_delay(int fd)
{
	int yes = 1;

	(void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

static ssize_t
frames_read(wslay_event_context_ptr frames, uint8_t *data, size_t size, int flags,
            void *context)
{
	EmuWebSocket *socket = context;
	size_t first = socket->arrived.length < size ? socket->arrived.length : size;
	ssize_t count;

	(void) flags;
	if (first > 0)
	{
		memcpy(data, socket->arrived.data, first);
		memmove(socket->arrived.data, socket->arrived.data + first,
		        socket->arrived.length - first);
		socket->arrived.length -= first;
		return (ssize_t) first;
	}
	count = recv(socket->fd, data, size, MSG_DONTWAIT);
	if (count > 0)
		return count;
	wslay_event_set_error(frames, count < 0 && (errno == EAGAIN || errno == EINTR)
	                                  ? WSLAY_ERR_WOULDBLOCK
	                                  : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t
frames_write(wslay_event_context_ptr frames, const uint8_t *data, size_t size,
             int flags, void *context)
{
	EmuWebSocket *socket = context;

	(void) frames;
	(void) flags;
	emu_text_append(&socket->outbox, (const char *) data, size);
	return (ssize_t) size;
}

static void
frames_message(wslay_event_context_ptr frames,
               const struct wslay_event_on_msg_recv_arg *message, void *context)
{
	EmuWebSocket *socket = context;

	(void) frames;
	if (socket->owner != NULL && socket->events->message != NULL &&
	    !wslay_is_ctrl_frame(message->opcode))
		socket->events->message(socket->owner, message->opcode == WSLAY_BINARY_FRAME,
		                        (const char *) message->msg, message->msg_length);
}

EmuWebSocket *
emu_websocket_accept(EmuRequest *request, const EmuWebSocketEvents *events, void *owner)
{
	static const struct wslay_event_callbacks callbacks = {
	    .recv_callback = frames_read,
	    .send_callback = frames_write,
	    .on_msg_recv_callback = frames_message,
	};
	const char *key = emu_request_header(request, "Sec-WebSocket-Key");
	const char *version = emu_request_header(request, "Sec-WebSocket-Version");
	EmuWebSocket *socket;

	if (!emu_websocket_wanted(request) ||
	    !header_has(request, "Connection", "Upgrade") || key == NULL ||
	    strlen(key) != KEY_LENGTH || version == NULL || strcmp(version, "13") != 0)
	{
		request->provider->refuse(request, 400, "not a WebSocket handshake");
		emu_answer_header(request, "Sec-WebSocket-Version", "13");
		return NULL;
	}
	socket = emu_alloc(sizeof(EmuWebSocket));
	socket->events = events;
	socket->owner = owner;
	socket->accept = accept_key(key);
	socket->fd = -1;
	if (wslay_event_context_server_init(&socket->frames, &callbacks, socket) != 0)
		abort(); /* out of memory */
	wslay_event_config_set_max_recv_msg_length(socket->frames, MESSAGE_LIMIT);
	emu_answer_empty(request, 101);
	request->websocket = socket;
	return socket;
}

/*
 * Open
 */

static void
socket_free(EmuWebSocket *socket)
{
	void *owner = socket->owner;
	const EmuWebSocketEvents *events = socket->events;

	emu_timer_stop(&socket->goodbye);
	emu_timer_stop(&socket->pause);
	wslay_event_context_free(socket->frames);
	emu_text_free(&socket->arrived);
	emu_text_free(&socket->outbox);
	free(socket->breaks);
	free(socket->accept);
	free(socket);
	if (owner != NULL)
		events->closed(owner);
}

/*
 * The connection goes back to libmicrohttpd, which closes it.  With TLS it
 * relays for us, and if it sees the end of our side before it is told that
 * this is all, it waits for the client to say something.  So it gets to see
 * the end of the client's side as well; through a descriptor of our own, as
 * its own may be closed by then.
 */
static void
give_back(struct MHD_UpgradeResponseHandle *upgrade, int carrier)
{
	MHD_upgrade_action(upgrade, MHD_UPGRADE_ACTION_CLOSE);
	if (carrier < 0)
		return;
	shutdown(carrier, SHUT_RD);
	close(carrier);
}

static void
socket_end(EmuWebSocket *socket)
{
	struct MHD_UpgradeResponseHandle *upgrade = socket->upgrade;
	int carrier = socket->carrier;

	emu_watch_stop(&socket->watch);
	if (socket->previous != NULL)
		socket->previous->next = socket->next;
	else
		open_sockets = socket->next;
	if (socket->next != NULL)
		socket->next->previous = socket->previous;
	socket_free(socket);
	give_back(upgrade, carrier);
}

static void
goodbye_unanswered(void *owner)
{
	socket_end(owner);
}

static void
pause_over(void *owner)
{
	EmuWebSocket *socket = owner;

	socket->pausing = false;
	emu_watch_change(&socket->watch, EPOLLIN | EPOLLOUT);
}

/*
 * Without its peer the kernel sends a reset when the socket is closed.  That
 * is the carrier, whose duplicate we have if it is not ours itself.
 */
static void
socket_reset(EmuWebSocket *socket)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	(void) !connect(socket->carrier >= 0 ? socket->carrier : socket->fd, &nobody,
	                sizeof(nobody));
}

/* The stream has come to the place of its first break; false if it ends here. */
static bool
break_take(EmuWebSocket *socket)
{
	Break here = socket->breaks[0];

	socket->break_count--;
	memmove(socket->breaks, socket->breaks + 1, socket->break_count * sizeof(Break));
	switch (here.kind)
	{
		case EMU_WEBSOCKET_PAUSE:
			socket->pausing = true;
			emu_timer_start(&socket->pause, here.ms, pause_over, socket);
			return true;
		case EMU_WEBSOCKET_SILENCE:
			socket->silent = true;
			return true;
		case EMU_WEBSOCKET_RESET:
			socket_reset(socket);
			return false;
		case EMU_WEBSOCKET_END:
			break;
	}
	return false;
}

static bool
has_to_write(const EmuWebSocket *socket)
{
	return !socket->pausing && !socket->silent &&
	       (socket->outbox_sent < socket->outbox.length ||
	        (socket->break_count > 0 && socket->breaks[0].place == socket->sent));
}

static void
outbox_move_up(EmuWebSocket *socket)
{
	EmuText *outbox = &socket->outbox;

	if (socket->outbox_sent == outbox->length)
		emu_text_free(outbox);
	else if (socket->outbox_sent >= OUTBOX_SLACK)
	{
		outbox->length -= socket->outbox_sent;
		memmove(outbox->data, outbox->data + socket->outbox_sent, outbox->length);
	}
	else
		return;
	socket->outbox_sent = 0;
}

/* False if the connection is over. */
static bool
socket_write(EmuWebSocket *socket)
{
	while (has_to_write(socket))
	{
		size_t left = socket->outbox.length - socket->outbox_sent;
		ssize_t count;

		if (socket->break_count > 0 && socket->breaks[0].place - socket->sent < left)
			left = (size_t) (socket->breaks[0].place - socket->sent);
		if (left == 0)
		{
			if (!break_take(socket))
				return false;
			continue;
		}
		count = send(socket->fd, socket->outbox.data + socket->outbox_sent, left,
		             MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count < 0)
			return errno == EAGAIN || errno == EINTR;
		socket->outbox_sent += (size_t) count;
		socket->sent += (uint64_t) count;
	}
	outbox_move_up(socket);
	if (socket->closing && !socket->goodbye_begins && socket->outbox.length == 0)
	{
		socket->goodbye_begins = true;
		emu_timer_start(&socket->goodbye, GOODBYE_MS, goodbye_unanswered, socket);
	}
	return true;
}

/* After a goodbye wslay wants neither; what is in the outbox goes first. */
static bool
is_over(EmuWebSocket *socket)
{
	return !wslay_event_want_read(socket->frames) &&
	       !wslay_event_want_write(socket->frames) && !socket->pausing &&
	       !has_to_write(socket);
}

static void
socket_serve(EmuWebSocket *socket, bool readable)
{
	if ((readable && wslay_event_recv(socket->frames) != 0) ||
	    wslay_event_send(socket->frames) != 0 || !socket_write(socket) ||
	    is_over(socket))
		socket_end(socket);
	else
		emu_watch_change(&socket->watch,
		                 has_to_write(socket) ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void
socket_ready(void *owner, uint32_t events)
{
	socket_serve(owner, (events & ~(uint32_t) EPOLLOUT) != 0);
}

/*
 * In a thread of libmicrohttpd: the handshake is sent.  It will say that the
 * request is over while it holds a lock that it also needs to take the
 * connection back, so nothing may be left to be done for it then.
 */
static void
socket_opened(void *context, struct MHD_Connection *connection, void *state,
              const char *extra, size_t extra_length, MHD_socket fd,
              struct MHD_UpgradeResponseHandle *upgrade)
{
	EmuWebSocket *socket = context;
	EmuRequest *request = state;
	int carrier = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
	                  ->connect_fd;

	emu_lock();
	emu_fault_release(request);
	request->websocket = NULL;
	request->handed_over = true;
	socket->upgrade = upgrade;
	socket->fd = fd;
	socket->carrier = carrier != fd ? fcntl(carrier, F_DUPFD_CLOEXEC, 0) : -1;
	emu_text_append(&socket->arrived, extra, extra_length);
	set_no_delay(fd);
	socket->next = open_sockets;
	if (socket->next != NULL)
		socket->next->previous = socket;
	open_sockets = socket;
	if (!ending && emu_watch_start(&socket->watch, fd, EPOLLIN, socket_ready, socket))
		socket_serve(socket, extra_length > 0);
	else
		socket_end(socket);
	emu_unlock();
}

struct MHD_Response *
emu_websocket_response(EmuWebSocket *socket)
{
	struct MHD_Response *response =
	    MHD_create_response_for_upgrade(socket_opened, socket);

	MHD_add_response_header(response, "Upgrade", "websocket");
	MHD_add_response_header(response, "Sec-WebSocket-Accept", socket->accept);
	return response;
}

/* Nothing but a client that has said goodbye already keeps it from the outbox. */
static void
send_queued(EmuWebSocket *socket)
{
	(void) wslay_event_send(socket->frames);
	emu_watch_change(&socket->watch, EPOLLIN | EPOLLOUT);
}

static void
queue_message(EmuWebSocket *socket, uint8_t opcode, const char *data, size_t length)
{
	struct wslay_event_msg message = {
	    .opcode = opcode,
	    .msg = (const uint8_t *) data,
	    .msg_length = length,
	};

	(void) wslay_event_queue_msg(socket->frames, &message);
}

void
emu_websocket_send(EmuWebSocket *socket, bool binary, const char *data, size_t length)
{
	queue_message(socket, binary ? WSLAY_BINARY_FRAME : WSLAY_TEXT_FRAME, data, length);
	send_queued(socket);
}

void
emu_websocket_ping(EmuWebSocket *socket)
{
	queue_message(socket, WSLAY_PING, PING_TEXT, sizeof(PING_TEXT) - 1);
	send_queued(socket);
}

/* A message on its way out in pieces. */
typedef struct Pieces
{
	const char *data;
	size_t left;
	size_t size; /* of a piece */
	bool ping;   /* between two of them */
} Pieces;

static ssize_t
read_piece(wslay_event_context_ptr frames, uint8_t *buffer, size_t room,
           const union wslay_event_msg_source *source, int *end, void *context)
{
	Pieces *pieces = source->data;
	size_t length = pieces->size < room ? pieces->size : room;

	if (length > pieces->left)
		length = pieces->left;
	memcpy(buffer, pieces->data, length);
	pieces->data += length;
	pieces->left -= length;
	*end = pieces->left == 0;
	if (pieces->ping && !*end)
		queue_message(context, WSLAY_PING, PING_TEXT, sizeof(PING_TEXT) - 1);
	(void) frames;
	return (ssize_t) length;
}

void
emu_websocket_send_in_pieces(EmuWebSocket *socket, const char *data, size_t length,
                             size_t size, bool ping)
{
	Pieces pieces = {data, length, size, ping};
	struct wslay_event_fragmented_msg message = {
	    .opcode = WSLAY_BINARY_FRAME,
	    .source.data = &pieces,
	    .read_callback = read_piece,
	};

	(void) wslay_event_queue_fragmented_msg(socket->frames, &message);
	send_queued(socket);
}

uint64_t
emu_websocket_place(const EmuWebSocket *socket)
{
	return socket->sent + (socket->outbox.length - socket->outbox_sent);
}

void
emu_websocket_break(EmuWebSocket *socket, uint64_t place, EmuWebSocketBreak kind,
                    int64_t ms)
{
	socket->breaks =
	    emu_realloc(socket->breaks, (socket->break_count + 1) * sizeof(Break));
	socket->breaks[socket->break_count++] = (Break){place, kind, ms};
	emu_watch_change(&socket->watch, EPOLLIN | EPOLLOUT);
}

void
emu_websocket_close(EmuWebSocket *socket, uint16_t code)
{
	socket->owner = NULL;
	socket->closing = true;
	wslay_event_queue_close(socket->frames, code, NULL, 0);
	send_queued(socket);
}

/*
 * Over
 */

void
emu_websocket_drop(EmuWebSocket *socket)
{
	socket_free(socket);
}

void
emu_websockets_end(void)
{
	ending = true;
	while (open_sockets != NULL)
		socket_end(open_sockets);
}
