/*
 * server.c
 *		The HTTP side: listening, reading requests, sending answers.
 *
 * libmicrohttpd's threads call in here with complete requests.  An answer
 * that has to wait costs no thread: its connection is suspended, and a timer
 * or an event of the reactor resumes it.  libmicrohttpd does not look at a
 * suspended connection, so the reactor also watches whether the client has
 * gone meanwhile.
 */
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control.h"
#include "faults.h"
#include "provider.h"
#include "requestlog.h"
#include "websocket.h"

/* Larger than any file that is sent here; JSON and base64 swell it. */
#define BODY_LIMIT ((size_t) 160 << 20)

/*
 * Room for request headers; a listing query carries labels as JSON.  Not
 * more, because libmicrohttpd clears all of it after each request.
 */
#define CONNECTION_MEMORY (32 * 1024)

/* How many slices per second a slow body is cut into. */
#define SLICES_PER_SECOND 20

/* One per client connection. */
typedef struct Connection
{
	uint64_t number;
	unsigned requests;
} Connection;

static struct
{
	EmuServerOptions options;
	struct MHD_Daemon *daemon;   /* the one that listens now */
	struct MHD_Daemon **retired; /* still serve their old connections */
	size_t retired_count;
	struct sockaddr_storage address;
	socklen_t address_length;
	uint64_t connections;
	EmuRequest *suspended;
	EmuTimer refusal;
	int64_t refusal_ms;
	bool stopping;
} server;

static bool server_listen(void);

const char *
emu_request_scheme(EmuRequest *request)
{
	(void) request;
	return server.options.tls_certificate != NULL ? "https" : "http";
}

void
emu_server_origin(EmuRequest *request, EmuText *text)
{
	const char *host = emu_request_header(request, "Host");

	emu_text_add(text, emu_request_scheme(request));
	emu_text_add(text, "://");
	emu_text_add(text, host != NULL ? host : "127.0.0.1");
}

/*
 * Suspending and resuming
 */

static int
request_socket(EmuRequest *request)
{
	return MHD_get_connection_info(request->connection,
	                               MHD_CONNECTION_INFO_CONNECTION_FD)
	    ->connect_fd;
}

static void
request_unlist(EmuRequest *request)
{
	if (request->previous_suspended != NULL)
		request->previous_suspended->next_suspended = request->next_suspended;
	else
		server.suspended = request->next_suspended;
	if (request->next_suspended != NULL)
		request->next_suspended->previous_suspended = request->previous_suspended;
	request->next_suspended = request->previous_suspended = NULL;
	request->suspended = false;
	emu_timer_stop(&request->timer);
	emu_watch_stop(&request->watch);
}

static void
request_resume(void *owner)
{
	EmuRequest *request = owner;

	if (!request->suspended)
		return;
	request_unlist(request);
	MHD_resume_connection(request->connection);
}

static void
request_abandon(EmuRequest *request)
{
	void (*forget)(void *owner) = request->forget;

	request->forget = NULL;
	request->abandoned = true;
	if (forget != NULL)
		forget(request->owner);
	request_resume(request);
}

static void
request_client_gone(void *owner, uint32_t events)
{
	(void) events;
	request_abandon(owner);
}

/* At the end of the emulator nothing is held any more. */
static void
request_suspend(EmuRequest *request)
{
	if (server.stopping)
		request->abandoned = true;
	if (request->suspended || server.stopping)
		return;
	request->suspended = true;
	request->next_suspended = server.suspended;
	if (server.suspended != NULL)
		server.suspended->previous_suspended = request;
	server.suspended = request;
	MHD_suspend_connection(request->connection);
	emu_watch_start(&request->watch, request_socket(request), EPOLLRDHUP,
	                request_client_gone, request);
}

static void
request_suspend_for(EmuRequest *request, int64_t ms)
{
	request_suspend(request);
	if (request->suspended && ms != EMU_HOLD_FOREVER)
		emu_timer_start(&request->timer, ms, request_resume, request);
}

void
emu_server_abandon_all(const EmuRequest *spare)
{
	EmuRequest *next;

	for (EmuRequest *request = server.suspended; request != NULL; request = next)
	{
		next = request->next_suspended;
		if (spare == NULL || request != spare)
			request_abandon(request);
	}
}

/*
 * The answer is given: send it now, later, or never.  Whoever gave it is done
 * with it, except with one that is streamed; if a fault takes the place of
 * that one, it is told so.
 */
static void
request_settle(EmuRequest *request)
{
	void (*forget)(void *owner) =
	    request->answer.delivery == EMU_DELIVER_STREAMED ? request->forget : NULL;
	int64_t hold;

	if (request->fault != NULL)
		emu_fault_after_work(request);
	if (request->answer.delivery != EMU_DELIVER_STREAMED)
	{
		request->forget = NULL;
		if (forget != NULL)
			forget(request->owner);
	}
	hold = request->answer.hold_ms;
	if (request->provider != NULL && hold != EMU_HOLD_FOREVER)
		hold += server.options.latency_ms;
	if (hold > 0)
		request_suspend_for(request, hold);
	else
		request_resume(request);
}

void
emu_request_finish(EmuRequest *request)
{
	if (request->finished != NULL)
		request->finished(request);
	else
		request_settle(request);
}

void
emu_request_finish_waiting(EmuRequest *request)
{
	if (request->suspended)
		request_settle(request);
}

/*
 * Streaming
 */

static void
stream_wake(EmuRequest *request)
{
	if (!request->stream_waits)
		return;
	request->stream_waits = false;
	request_resume(request);
}

void
emu_stream_add(EmuRequest *request, const char *data, size_t length)
{
	emu_text_append(&request->answer.body, data, length);
	stream_wake(request);
}

void
emu_stream_end(EmuRequest *request)
{
	request->forget = NULL;
	request->stream_ended = true;
	stream_wake(request);
}

/* The client sees the end of the connection in the middle of the answer. */
void
emu_stream_break(EmuRequest *request)
{
	request->forget = NULL;
	request->abandoned = true;
	request->stream_waits = false;
	request_resume(request);
}

/* Gives out what there is; if that is nothing yet, the connection waits. */
static ssize_t
stream_read(void *owner, uint64_t position, char *buffer, size_t size)
{
	EmuRequest *request = owner;
	const EmuText *body = &request->answer.body;
	ssize_t count = 0;

	emu_lock();
	if (request->abandoned || server.stopping)
		count = MHD_CONTENT_READER_END_WITH_ERROR;
	else if (position < body->length)
	{
		count =
		    (ssize_t) (body->length - position < size ? body->length - position : size);
		memcpy(buffer, body->data + position, (size_t) count);
	}
	else if (request->stream_ended)
		count = MHD_CONTENT_READER_END_OF_STREAM;
	else
	{
		request->stream_waits = true;
		request_suspend(request);
	}
	emu_unlock();
	return count;
}

/*
 * Sending
 */

static void
request_pause(EmuRequest *request, int64_t ms)
{
	emu_lock();
	request_suspend_for(request, ms);
	emu_unlock();
}

/* Gives out the body of an answer whose delivery is a fault. */
static ssize_t
answer_read(void *owner, uint64_t position, char *buffer, size_t size)
{
	EmuRequest *request = owner;
	EmuAnswer *answer = &request->answer;
	uint64_t left = position < answer->body.length ? answer->body.length - position : 0;
	size_t slice = (size_t) (answer->delivery_bytes / SLICES_PER_SECOND + 1);

	if (request->abandoned || server.stopping)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	switch (answer->delivery)
	{
		case EMU_DELIVER_STALLED:
			request_pause(request, EMU_HOLD_FOREVER);
			return 0;
		case EMU_DELIVER_TRUNCATED:
			if (position >= (uint64_t) answer->delivery_bytes)
				return MHD_CONTENT_READER_END_WITH_ERROR;
			if (left > (uint64_t) answer->delivery_bytes - position)
				left = (uint64_t) answer->delivery_bytes - position;
			break;
		case EMU_DELIVER_SLOW:
			if (emu_clock_ms() < request->read_pause_until)
			{
				request_pause(request, request->read_pause_until - emu_clock_ms() + 1);
				return 0;
			}
			request->read_pause_until = emu_clock_ms() + 1000 / SLICES_PER_SECOND;
			if (left > slice)
				left = slice;
			break;
		case EMU_DELIVER_ENDLESS:
			if (left == 0)
			{
				memset(buffer, 'a', size);
				return (ssize_t) size;
			}
			break;
		default:
			break;
	}
	if (left > size)
		left = size;
	if (left == 0)
		return MHD_CONTENT_READER_END_OF_STREAM;
	memcpy(buffer, answer->body.data + position, left);
	return (ssize_t) left;
}

static struct MHD_Response *
answer_response(EmuRequest *request)
{
	EmuAnswer *answer = &request->answer;
	size_t length = answer->body.length;

	if (request->websocket != NULL && answer->status == 101)
		return emu_websocket_response(request->websocket);
	if (answer->delivery == EMU_DELIVER_STREAMED)
		return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536, stream_read,
		                                         request, NULL);
	if (answer->delivery != EMU_DELIVER_PLAIN)
		return MHD_create_response_from_callback(
		    answer->delivery == EMU_DELIVER_ENDLESS ? MHD_SIZE_UNKNOWN : length, 65536,
		    answer_read, request, NULL);
	return MHD_create_response_from_buffer(length, emu_text_steal(&answer->body),
	                                       MHD_RESPMEM_MUST_FREE);
}

static void
answer_add_headers(struct MHD_Response *response, EmuAnswer *answer)
{
	char *line;
	char *rest = answer->headers.data;

	if (answer->content_type != NULL)
		MHD_add_response_header(response, "Content-Type", answer->content_type);
	while (rest != NULL && (line = strsep(&rest, "\n")) != NULL)
	{
		char *colon = strchr(line, ':');

		if (colon == NULL)
			continue;
		*colon = '\0';
		MHD_add_response_header(response, line, colon + 2);
	}
}

/*
 * A header that does not fit into the connection's memory is written to the
 * socket directly, waiting at most two seconds for a client that reads slowly.
 */
static void
answer_write_huge_header(EmuRequest *request)
{
	EmuText text = {0};
	size_t sent = 0;
	struct pollfd ready = {request_socket(request), POLLOUT, 0};

	emu_text_format(&text,
	                "HTTP/1.1 %d OK\r\nContent-Type: application/json\r\n"
	                "Content-Length: %zu\r\nX-Huge: ",
	                request->answer.status, request->answer.body.length);
	emu_text_fill(&text, 'a', (size_t) request->answer.delivery_bytes);
	emu_text_add(&text, "\r\n\r\n");
	emu_text_append(&text, request->answer.body.data, request->answer.body.length);
	while (sent < text.length && poll(&ready, 1, 2000) > 0)
	{
		ssize_t count = send(ready.fd, text.data + sent, text.length - sent,
		                     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count < 0 && errno != EAGAIN)
			break;
		if (count > 0)
			sent += (size_t) count;
	}
	emu_text_free(&text);
}

/*
 * libmicrohttpd closes a connection by the book, which the client would see
 * as an orderly end.  Taking the socket's peer away first makes the kernel
 * send a reset.
 */
static enum MHD_Result
request_reset(EmuRequest *request)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};

	/* If it fails the client was faster, and the connection is gone too. */
	(void) !connect(request_socket(request), &nobody, sizeof(nobody));
	return MHD_NO;
}

static enum MHD_Result
request_deliver(EmuRequest *request)
{
	struct MHD_Response *response;
	enum MHD_Result result;

	if (request->abandoned || request->answer.delivery == EMU_DELIVER_CLOSE)
		return MHD_NO;
	if (request->answer.delivery == EMU_DELIVER_RESET)
		return request_reset(request);
	if (request->answer.delivery == EMU_DELIVER_HUGE_HEADER)
	{
		answer_write_huge_header(request);
		return MHD_NO;
	}
	response = answer_response(request);
	answer_add_headers(response, &request->answer);
	result = MHD_queue_response(request->connection, (unsigned) request->answer.status,
	                            response);
	MHD_destroy_response(response);
	return result;
}

/*
 * Receiving
 */

static void *
request_begin(void *context, const char *target, struct MHD_Connection *connection)
{
	EmuRequest *request = emu_alloc(sizeof(EmuRequest));
	const char *query = strchr(target, '?');

	(void) context;
	(void) connection;
	request->target = emu_strdup(target);
	request->path =
	    emu_strndup(target, query != NULL ? (size_t) (query - target) : strlen(target));
	request->query = query != NULL ? request->target + (query - target) + 1 : "";
	return request;
}

static enum MHD_Result
request_headers_read(EmuRequest *request, struct MHD_Connection *connection,
                     const char *method)
{
	Connection *line =
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
	        ->socket_context;
	enum MHD_Result result = MHD_YES;

	request->connection = connection;
	request->connection_number = line->number;
	request->connection_request = ++line->requests;
	request->method = method;
	request->provider = emu_provider_by_path(request->path);
	if (request->provider == NULL)
		return MHD_YES;
	emu_lock();
	request->operation = request->provider->classify(request);
	emu_faults_match_early(request);
	if (emu_fault_resets_before_read(request))
	{
		emu_requestlog_record(request);
		result = request_reset(request);
	}
	emu_unlock();
	return result;
}

static enum MHD_Result
request_body_read(EmuRequest *request, const char *data, size_t *size)
{
	int64_t rate = emu_fault_read_rate(request);
	size_t taken = *size;

	if (rate > 0)
	{
		size_t slice = (size_t) (rate / SLICES_PER_SECOND + 1);

		if (taken > slice)
			taken = slice;
		request_pause(request, 1000 / SLICES_PER_SECOND);
	}
	if (request->body.length + taken > BODY_LIMIT)
		request->body_too_large = true;
	else
		emu_text_append(&request->body, data, taken);
	*size -= taken;
	return request->abandoned ? MHD_NO : MHD_YES;
}

static bool
request_unpack_body(EmuRequest *request)
{
	const char *encoding = emu_request_header(request, "Content-Encoding");
	EmuText unpacked = {0};

	if (encoding == NULL || strcasecmp(encoding, "gzip") != 0)
		return true;
	if (!emu_text_gunzip(&unpacked, request->body.data, request->body.length,
	                     BODY_LIMIT))
	{
		emu_text_free(&unpacked);
		return false;
	}
	emu_text_free(&request->body);
	request->body = unpacked;
	return true;
}

static void
request_handle(EmuRequest *request)
{
	bool unpacked = request_unpack_body(request);
	EmuText problem = {0};

	if (strncmp(request->path, EMU_CONTROL_PREFIX, strlen(EMU_CONTROL_PREFIX)) == 0)
		emu_control_handle(request);
	else if (request->provider == NULL)
	{
		emu_text_add(&problem,
		             "{\"message\":\"no provider is emulated at this path\"}");
		emu_answer_json(request, 404, &problem);
	}
	else
	{
		request->operation = request->provider->classify(request);
		emu_requestlog_record(request);
		emu_faults_match(request);
		if (request->fault != NULL)
			emu_fault_instead_of_work(request);
		if (request->answer.given)
			return;
		if (request->body_too_large)
			request->provider->refuse(request, 413, "request entity too large");
		else if (!unpacked)
			request->provider->refuse(request, 400,
			                          "the body is not what its encoding says");
		else
			request->provider->handle(request);
	}
}

/*
 * The connection is suspended while the lock is still held: whoever is to
 * answer needs the lock, so cannot resume what is not suspended yet.  Tells
 * whether it was suspended, which may already be over when the caller looks.
 */
static bool
request_dispatch(EmuRequest *request)
{
	bool suspended;

	emu_lock();
	request->dispatched = true;
	request_handle(request);
	if (request->answer.given)
		request_settle(request);
	else
		request_suspend(request);
	suspended = request->suspended;
	emu_unlock();
	return suspended;
}

static enum MHD_Result
server_call(void *context, struct MHD_Connection *connection, const char *url,
            const char *method, const char *version, const char *data, size_t *size,
            void **state)
{
	EmuRequest *request = *state;

	(void) context;
	(void) url;
	(void) version;
	if (request->connection == NULL)
		return request_headers_read(request, connection, method);
	if (*size > 0)
		return request_body_read(request, data, size);
	if (!request->dispatched && !request->abandoned && request_dispatch(request))
		return MHD_YES;
	return request_deliver(request);
}

/* Nobody may wait for it or know it any more. */
static void
request_detach(EmuRequest *request)
{
	emu_lock();
	if (request->suspended)
		request_unlist(request);
	if (request->forget != NULL)
		request->forget(request->owner);
	if (request->websocket != NULL)
		emu_websocket_drop(request->websocket);
	emu_fault_release(request);
	emu_unlock();
}

/*
 * After a WebSocket libmicrohttpd calls this with a lock of its own held, under
 * which ours must not be taken; such a request has been detached long ago.
 */
static void
server_request_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
	EmuRequest *request = *state;

	(void) context;
	(void) connection;
	(void) code;
	if (request == NULL)
		return;
	*state = NULL;
	if (!request->handed_over)
		request_detach(request);
	emu_text_free(&request->body);
	emu_text_free(&request->answer.body);
	emu_text_free(&request->answer.headers);
	free(request->target);
	free(request->path);
	free(request);
}

static void
server_connection_changed(void *context, struct MHD_Connection *connection,
                          void **state, enum MHD_ConnectionNotificationCode code)
{
	(void) context;
	(void) connection;
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
	{
		Connection *line = emu_alloc(sizeof(Connection));

		line->number = __atomic_add_fetch(&server.connections, 1, __ATOMIC_RELAXED);
		*state = line;
	}
	else
	{
		free(*state);
		*state = NULL;
	}
}

/* Paths are kept as they were sent and unescaped segment by segment. */
static size_t
server_keep_escapes(void *context, struct MHD_Connection *connection, char *string)
{
	(void) context;
	(void) connection;
	return strlen(string);
}

/*
 * Listening
 */

static struct MHD_Daemon *
server_start_daemon(int listener)
{
	bool tls = server.options.tls_certificate != NULL;
	unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
	                 MHD_ALLOW_UPGRADE | MHD_USE_ITC | (tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem options[4] = {{MHD_OPTION_END, 0, NULL}};
	int count = 0;

	if (tls)
	{
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
		                                           server.options.tls_certificate};
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0,
		                                           server.options.tls_key};
	}
	if (server.options.threads > 1)
		options[count++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE,
		                                           server.options.threads, NULL};
	options[count] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
	return MHD_start_daemon(
	    flags, 0, NULL, NULL, server_call, NULL, MHD_OPTION_LISTEN_SOCKET, listener,
	    MHD_OPTION_URI_LOG_CALLBACK, request_begin, NULL, MHD_OPTION_UNESCAPE_CALLBACK,
	    server_keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED,
	    server_request_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
	    server_connection_changed, NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t) CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT, 16000u,
	    MHD_OPTION_ARRAY, options, MHD_OPTION_END);
}

static bool
server_listen(void)
{
	int listener =
	    socket(server.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	if (listener < 0)
		return false;
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *) &server.address, server.address_length) !=
	        0 ||
	    listen(listener, 1024) != 0)
	{
		close(listener);
		return false;
	}
	getsockname(listener, (struct sockaddr *) &server.address, &server.address_length);
	server.daemon = server_start_daemon(listener);
	if (server.daemon == NULL)
		close(listener);
	return server.daemon != NULL;
}

static int
server_port(void)
{
	return ntohs(server.address.ss_family == AF_INET6
	                 ? ((struct sockaddr_in6 *) &server.address)->sin6_port
	                 : ((struct sockaddr_in *) &server.address)->sin_port);
}

int
emu_server_start(const EmuServerOptions *options)
{
	struct addrinfo hints = {
	    .ai_socktype = SOCK_STREAM,
	    .ai_flags = AI_NUMERICHOST | AI_PASSIVE,
	};
	struct addrinfo *found;
	char port[16];
	int number = -1;

	server.options = *options;
	snprintf(port, sizeof(port), "%d", options->port);
	if (getaddrinfo(options->host, port, &hints, &found) != 0)
	{
		fprintf(stderr, "sbx_emulator: \"%s\" is not an IP address\n", options->host);
		return -1;
	}
	memcpy(&server.address, found->ai_addr, found->ai_addrlen);
	server.address_length = found->ai_addrlen;
	freeaddrinfo(found);
	emu_lock();
	if (server_listen())
		number = server_port();
	emu_unlock();
	if (number < 0)
		fprintf(stderr, "sbx_emulator: could not listen on %s port %d%s: %s\n",
		        options->host, options->port,
		        options->tls_certificate != NULL ? " with this certificate and key"
		                                         : "",
		        strerror(errno));
	return number;
}

/*
 * A listener that is closed cannot be opened again inside its daemon: the
 * old daemon goes on serving the connections it has, a new one listens.
 */
static void
server_listen_again(void *unused)
{
	(void) unused;
	if (!server.stopping && !server_listen())
		emu_timer_start(&server.refusal, 50, server_listen_again, NULL);
}

static void
server_retire_daemon(void)
{
	MHD_socket listener = MHD_quiesce_daemon(server.daemon);

	if (listener != MHD_INVALID_SOCKET)
		close(listener);
	server.retired = emu_realloc(server.retired, (server.retired_count + 1) *
	                                                 sizeof(struct MHD_Daemon *));
	server.retired[server.retired_count++] = server.daemon;
	server.daemon = NULL;
}

static void
server_stop_listening(void *unused)
{
	(void) unused;
	if (server.stopping)
		return;
	if (server.daemon != NULL)
		server_retire_daemon();
	emu_timer_start(&server.refusal, server.refusal_ms, server_listen_again, NULL);
}

/* In the reactor: a daemon cannot be quiesced from one of its own threads. */
void
emu_server_refuse(int64_t ms)
{
	server.refusal_ms = ms;
	emu_timer_start(&server.refusal, 0, server_stop_listening, NULL);
}

void
emu_server_stop(void)
{
	emu_lock();
	server.stopping = true;
	emu_timer_stop(&server.refusal);
	emu_server_abandon_all(NULL);
	emu_websockets_end();
	emu_unlock();
	if (server.daemon != NULL)
		MHD_stop_daemon(server.daemon);
	for (size_t i = 0; i < server.retired_count; i++)
		MHD_stop_daemon(server.retired[i]);
	free(server.retired);
}
