/*
 * transfer.c
 *		One HTTP exchange of an operation: how it is sent, and what came back.
 */
#include "net/transfer.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/address.h"
#include "net/libcurl.h"
#include "net/socket.h"
#include "storage/fd.h"

/* Response headers: real ones are below 4 KiB. */
#define MAX_RESPONSE_HEADERS (64 * 1024)

/* Part of the deadline that connecting may use. */
#define MAX_CONNECT_MS 10000

/*
 * A connection idle for longer may have been closed by the peer.  Requests that
 * must not be delivered twice use only fresher ones.
 */
#define MAX_IDLE_SECONDS      60L
#define MAX_IDLE_SECONDS_ONCE 15L

/* --- connections ------------------------------------------------------------ */

/* False = no memory. */
static bool
note_private(SbxConnections *connections, int socket)
{
	if (connections->private_count == connections->private_size)
	{
		int size = connections->private_size == 0 ? 16 : 2 * connections->private_size;
		int *bigger = realloc(connections->private_sockets, sizeof(int) * size);

		if (bigger == NULL)
			return false;
		connections->private_sockets = bigger;
		connections->private_size = size;
	}
	connections->private_sockets[connections->private_count++] = socket;
	return true;
}

static void
forget_private(SbxConnections *connections, int socket)
{
	for (int i = 0; i < connections->private_count; i++)
	{
		if (connections->private_sockets[i] != socket)
			continue;
		connections->private_sockets[i] =
		    connections->private_sockets[--connections->private_count];
		return;
	}
}

/* libcurl finds that they are dead when it looks for one to use again. */
void
sbx_connections_hang_up_private(const SbxConnections *connections)
{
	for (int i = 0; i < connections->private_count; i++)
		(void) shutdown(connections->private_sockets[i], SHUT_RDWR);
}

/* --- callbacks: no palloc, no report, no interrupts ------------------------ */

static bool
address_allowed(const SbxTransfer *transfer, const struct sockaddr *address)
{
	SbxAddressClass class = sbx_address_classify(address);

	if (transfer->loopback_only && class != SBX_ADDRESS_LOOPBACK)
		return false;
	return class == SBX_ADDRESS_PUBLIC || transfer->settings->allow_private_addresses;
}

/*
 * Have bytes of the request itself left?  Through a proxy, the size counts what was
 * said to open the tunnel, too; then the time counts at which sending was done.  What goes
 * over a WebSocket we send ourselves.
 */
static bool
has_left(const SbxTransfer *transfer)
{
	const SbxEngineSettings *settings = transfer->settings;
	curl_off_t pretransfer = 0;
	long request_size = 0;

	if (sbx_socket_wanted(transfer))
		return transfer->body_sent > 0;
	curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer);
	curl_easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &request_size);
	if (pretransfer > 0 || transfer->body_sent > 0)
		return true;
	return request_size > 0 && (settings->proxy[0] == '\0' || transfer->plain_http);
}

/* Runs long after the operation is gone, so it may look at nothing of it. */
static int
close_socket_callback(void *arg, curl_socket_t socket)
{
	SbxConnections *connections = arg;

	connections->open--;
	forget_private(connections, socket);
	ReleaseExternalFD();
	return close(socket);
}

static curl_socket_t
open_socket_callback(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	SbxTransfer *transfer = arg;
	bool is_public = sbx_address_classify(&address->addr) == SBX_ADDRESS_PUBLIC;
	int fd;

	if (purpose != CURLSOCKTYPE_IPCXN || !address_allowed(transfer, &address->addr))
	{
		transfer->denied = true;
		return CURL_SOCKET_BAD;
	}

	/* A second socket after that: the connection died, libcurl wants to send again. */
	if (has_left(transfer))
	{
		if (!transfer->op->request.repeatable)
			return CURL_SOCKET_BAD;
		transfer->resent = true;
	}

	/* fd.c must know of every descriptor; during abort it must not refuse. */
	if (transfer->aborting)
		ReserveExternalFD();
	else if (!AcquireExternalFD())
	{
		transfer->no_descriptor = true;
		return CURL_SOCKET_BAD;
	}

	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd < 0)
	{
		transfer->no_descriptor = errno == EMFILE || errno == ENFILE;
		ReleaseExternalFD();
		return CURL_SOCKET_BAD;
	}
	transfer->connections->open++;
	if (!is_public && !note_private(transfer->connections, fd))
	{
		(void) close_socket_callback(transfer->connections, fd);
		return CURL_SOCKET_BAD;
	}
	return fd;
}

static size_t
read_callback(char *buffer, size_t size, size_t count, void *arg)
{
	SbxTransfer *transfer = arg;
	size_t rest = transfer->op->request.body_length - transfer->body_sent;
	size_t length = Min(size * count, rest);

	memcpy(buffer, transfer->op->request.body + transfer->body_sent, length);
	transfer->body_sent += length;
	return length;
}

/* A body that cannot be rewound is a request that cannot be sent twice. */
static int
refuse_seek_callback(void *arg, curl_off_t offset, int origin)
{
	return CURL_SEEKFUNC_FAIL;
}

static size_t
header_callback(char *buffer, size_t size, size_t count, void *arg)
{
	SbxTransfer *transfer = arg;
	size_t length = size * count;
	char *bigger;

	if (INSTR_TIME_IS_ZERO(transfer->answered))
		INSTR_TIME_SET_CURRENT(transfer->answered);

	/* A new status line: what came before belonged to an interim answer. */
	if (length >= 5 && memcmp(buffer, "HTTP/", 5) == 0)
	{
		transfer->headers_length = 0;
		return length;
	}
	if (transfer->headers_length + length > MAX_RESPONSE_HEADERS)
	{
		transfer->too_large = true;
		return 0;
	}
	bigger = realloc(transfer->headers, transfer->headers_length + length + 1);
	if (bigger == NULL)
	{
		transfer->out_of_memory = true;
		return 0;
	}
	transfer->headers = bigger;
	memcpy(bigger + transfer->headers_length, buffer, length);
	transfer->headers_length += length;
	bigger[transfer->headers_length] = '\0';
	return length;
}

/* Only what answers the question is a stream; an error has a body like any other. */
static bool
is_stream(const SbxTransfer *transfer)
{
	long status = 0;

	if (transfer->op->request.take_body == NULL)
		return false;
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	return status == 200;
}

static size_t
write_callback(char *buffer, size_t size, size_t count, void *arg)
{
	SbxTransfer *transfer = arg;
	size_t length = size * count;

	if (is_stream(transfer))
	{
		transfer->enough =
		    !transfer->op->request.take_body(transfer->op, buffer, length);
		return transfer->enough ? 0 : length;
	}
	if (length > transfer->max_body - transfer->body_length)
	{
		transfer->too_large = true;
		return 0;
	}
	if (transfer->body_length + length + 1 > transfer->body_size)
	{
		size_t new_size = Max(transfer->body_size * 2, 4096);
		char *bigger;

		new_size = Max(new_size, transfer->body_length + length + 1);
		bigger = realloc(transfer->body, new_size);
		if (bigger == NULL)
		{
			transfer->out_of_memory = true;
			return 0;
		}
		transfer->body = bigger;
		transfer->body_size = new_size;
	}
	memcpy(transfer->body + transfer->body_length, buffer, length);
	transfer->body_length += length;
	transfer->body[transfer->body_length] = '\0';
	return length;
}

/* --- one request ------------------------------------------------------------ */

/* "Name: value" lines; the buffer is wiped, libcurl's own copies when freed. */
static bool
add_header_line(SbxTransfer *transfer, const char *name, const char *prefix,
                const char *value)
{
	size_t size = strlen(name) + strlen(prefix) + strlen(value) + 3;
	char *line = malloc(size);
	struct curl_slist *longer;

	if (line == NULL)
		return false;

	/* libcurl's notation: "Name:" leaves a header of its own out. */
	if (*prefix == '\0' && *value == '\0')
		snprintf(line, size, "%s:", name);
	else
		snprintf(line, size, "%s: %s%s", name, prefix, value);
	longer = curl_slist_append(transfer->header_lines, line);
	explicit_bzero(line, size);
	free(line);
	if (longer == NULL)
		return false;
	transfer->header_lines = longer;
	return true;
}

static bool
build_headers(SbxTransfer *transfer)
{
	const SbxHttpRequest *request = &transfer->op->request;
	bool has_type = false;

	for (int i = 0; i < request->header_count; i++)
	{
		const SbxHeader *header = &request->headers[i];

		has_type = has_type || strcasecmp(header->name, "Content-Type") == 0;
		if (!add_header_line(transfer, header->name, header->prefix, header->value))
			return false;
	}
	if (!has_type && !add_header_line(transfer, "Content-Type", "", ""))
		return false;
	if (request->chunked && request->body != NULL &&
	    !add_header_line(transfer, "Transfer-Encoding", "", "chunked"))
		return false;
	return add_header_line(transfer, "Expect", "", "");
}

/*
 * https always, in letters of any case; http only where asked for, or to this host.  A name that merely
 * resolves to loopback does not count until the socket is opened.
 */
static bool
scheme_allowed(SbxTransfer *transfer, const char *url)
{
	transfer->loopback_only = false;
	transfer->plain_http = sbx_ascii_equal(url, "http://", 7);
	if (sbx_ascii_equal(url, "https://", 8))
		return true;
	if (!transfer->plain_http)
		return false;
	transfer->loopback_only = !transfer->settings->allow_http;
	return true;
}

static CURLcode
set_body(SbxTransfer *transfer)
{
	const SbxHttpRequest *request = &transfer->op->request;
	CURL *easy = transfer->easy;
	CURLcode code;

	if (request->body == NULL)
	{
		if (strcmp(request->method, "GET") == 0)
			return curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
		if (strcmp(request->method, "POST") != 0)
			return curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	}
	code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
	if (code == CURLE_OK && strcmp(request->method, "POST") != 0)
		code = curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
	if (code == CURLE_OK && !(request->chunked && request->body != NULL))
		code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
		                        (curl_off_t) request->body_length);
	if (code != CURLE_OK)
		return code;

	if (request->body == NULL)
		return curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
	if (request->repeatable && !request->chunked)
		return curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
	code = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_callback);
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_READDATA, transfer);
	if (code == CURLE_OK && !request->repeatable)
		code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, refuse_seek_callback);
	return code;
}

/*
 * One delivery.  When a reused connection dies before the answer, libcurl sends
 * the request again by itself, POST included.  A body that cannot be rewound
 * stops that; a request without a body goes on a connection of its own; and no
 * socket is opened for a second delivery (open_socket_callback).
 */
static CURLcode
set_delivery(SbxTransfer *transfer)
{
	const SbxHttpRequest *request = &transfer->op->request;

	if (request->repeatable)
		return curl_easy_setopt(transfer->easy, CURLOPT_MAXAGE_CONN, MAX_IDLE_SECONDS);
	if (request->body == NULL)
		return curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
	return curl_easy_setopt(transfer->easy, CURLOPT_MAXAGE_CONN, MAX_IDLE_SECONDS_ONCE);
}

static CURLcode
set_limits(SbxTransfer *transfer, int64 now)
{
	const SbxHttpRequest *request = &transfer->op->request;
	CURL *easy = transfer->easy;
	int64 timeout = transfer->deadline - now;
	CURLcode code;

	if (request->timeout_ms > 0)
		timeout = Min(timeout, request->timeout_ms);
	timeout = Max(timeout, 1);
	transfer->exchange_deadline = now + timeout;
	transfer->max_body = request->max_response > 0 ? request->max_response
	                                               : transfer->settings->max_response;
	code = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) Min(timeout, INT_MAX));
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
		                        (long) Min(timeout, MAX_CONNECT_MS));
	if (code == CURLE_OK && request->take_body == NULL)
		code = curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE,
		                        (curl_off_t) transfer->max_body);
	return code;
}

/*
 * Only a connection: the request for a WebSocket is ours to send, directly or through a
 * tunnel.  libcurl takes it for one that nobody uses and would close it for its age, or for
 * what has arrived on it, when another exchange looks for a connection; so none does where
 * this one is.  But only among all others can it take the place of one that is kept.
 */
static CURLcode
set_connect_only(SbxTransfer *transfer)
{
	CURL *easy = transfer->easy;
	CURLcode code = curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);

	if (code == CURLE_OK && transfer->settings->proxy[0] != '\0')
		code = curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
	if (code != CURLE_OK || transfer->crowded)
		return code;
	transfer->alone = curl_share_init();
	if (transfer->alone == NULL ||
	    curl_share_setopt(transfer->alone, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) !=
	        CURLSHE_OK)
		return CURLE_OUT_OF_MEMORY;
	return curl_easy_setopt(easy, CURLOPT_SHARE, transfer->alone);
}

/* Where the request may go, and how it is protected on the way. */
static CURLcode
set_safety(SbxTransfer *transfer)
{
	const SbxEngineSettings *settings = transfer->settings;
	CURL *easy = transfer->easy;
	CURLcode code = CURLE_OK;

#define SET(option, value)                                                             \
	if (code == CURLE_OK)                                                              \
	code = curl_easy_setopt(easy, option, value)

	SET(CURLOPT_PROTOCOLS_STR, "http,https");
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_PROXY, settings->proxy);
	SET(CURLOPT_NOPROXY, "");
	SET(CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
	SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long) CURL_SSLVERSION_TLSv1_2);

	/* Without a directory of certificates, the store is parsed once per backend. */
	SET(CURLOPT_CAPATH, (char *) NULL);
	if (settings->ca_file[0] != '\0')
	{
		SET(CURLOPT_CAINFO, settings->ca_file);
	}
	SET(CURLOPT_OPENSOCKETFUNCTION, open_socket_callback);
	SET(CURLOPT_OPENSOCKETDATA, transfer);
	SET(CURLOPT_CLOSESOCKETFUNCTION, close_socket_callback);
	SET(CURLOPT_CLOSESOCKETDATA, transfer->connections);
	return code;
}

static CURLcode
set_basics(SbxTransfer *transfer)
{
	CURL *easy = transfer->easy;
	CURLcode code = CURLE_OK;

	SET(CURLOPT_URL, transfer->op->request.url);
	SET(CURLOPT_HTTPHEADER, transfer->header_lines);
	SET(CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_QUICK_EXIT, 1L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_HEADERFUNCTION, header_callback);
	SET(CURLOPT_HEADERDATA, transfer);
	SET(CURLOPT_WRITEFUNCTION, write_callback);
	SET(CURLOPT_WRITEDATA, transfer);
	SET(CURLOPT_PRIVATE, transfer);
#undef SET
	return code;
}

void
sbx_transfer_release(SbxTransfer *transfer)
{
	sigset_t saved;

	if (transfer->easy != NULL)
	{
		sbx_libcurl_block_signals(&saved);
		curl_multi_remove_handle(transfer->multi, transfer->easy);
		curl_easy_cleanup(transfer->easy);
		if (transfer->alone != NULL)
			curl_share_cleanup(transfer->alone);
		sbx_libcurl_restore_signals(&saved);
		transfer->easy = NULL;
		transfer->alone = NULL;
	}
	sbx_socket_free(transfer->socket);
	transfer->socket = NULL;
	curl_slist_free_all(transfer->header_lines);
	transfer->header_lines = NULL;
}

/* All of the request that libcurl has to know. */
static CURLcode
set_request(SbxTransfer *transfer)
{
	CURLcode code;

	if (sbx_socket_wanted(transfer))
		return set_connect_only(transfer);
	code = set_body(transfer);
	return code == CURLE_OK ? set_delivery(transfer) : code;
}

/* Start the exchange that the operation asked for; false = it cannot be sent. */
bool
sbx_transfer_start(SbxTransfer *transfer, int64 now)
{
	sigset_t saved;
	CURLcode code;
	CURLMcode multi_code = CURLM_INTERNAL_ERROR;

	transfer->body_sent = 0;
	transfer->headers_length = 0;
	transfer->body_length = 0;
	transfer->too_large = false;
	transfer->enough = false;
	transfer->out_of_memory = false;
	transfer->denied = false;
	transfer->no_descriptor = false;
	transfer->resent = false;
	INSTR_TIME_SET_CURRENT(transfer->started);
	INSTR_TIME_SET_ZERO(transfer->answered);
	if (!scheme_allowed(transfer, transfer->op->request.url))
		return false;

	sbx_libcurl_block_signals(&saved);
	transfer->easy = curl_easy_init();
	if (transfer->easy != NULL && build_headers(transfer))
	{
		code = set_basics(transfer);
		if (code == CURLE_OK)
			code = set_safety(transfer);
		if (code == CURLE_OK)
			code = set_limits(transfer, now);
		if (code == CURLE_OK)
			code = set_request(transfer);
		if (code == CURLE_OK)
			multi_code = curl_multi_add_handle(transfer->multi, transfer->easy);
	}
	sbx_libcurl_restore_signals(&saved);

	if (multi_code == CURLM_OK)
	{
		transfer->sent_before = transfer->op->anything_sent;
		transfer->op->anything_sent = true;
		return true;
	}
	sbx_transfer_release(transfer);
	return false;
}

/* --- what came back ---------------------------------------------------------- */

/* Could the other side have acted?  Anything but a clear no counts as yes. */
static bool
was_request_sent(const SbxTransfer *transfer, CURLcode code)
{
	if (has_left(transfer))
		return true;
	if (sbx_socket_wanted(transfer))
		return false;
	switch (code)
	{
		case CURLE_URL_MALFORMAT:
		case CURLE_UNSUPPORTED_PROTOCOL:
		case CURLE_COULDNT_RESOLVE_HOST:
		case CURLE_COULDNT_RESOLVE_PROXY:
		case CURLE_COULDNT_CONNECT:
		case CURLE_SSL_CONNECT_ERROR:
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_PROXY:
		case CURLE_OPERATION_TIMEDOUT:
		case CURLE_ABORTED_BY_CALLBACK:
			return false;
		default:

			/* A tunnel that a proxy refuses is an answer, but not the provider's. */
			return transfer->settings->proxy[0] == '\0' || transfer->plain_http;
	}
}

static SbxPhase
phase_of(CURL *easy, CURLcode code, bool request_sent)
{
	curl_off_t connect = 0;

	switch (code)
	{
		case CURLE_PEER_FAILED_VERIFICATION:
		case CURLE_SSL_CONNECT_ERROR:
		case CURLE_SSL_CACERT_BADFILE:
		case CURLE_SSL_CERTPROBLEM:
		case CURLE_SSL_CIPHER:
		case CURLE_SSL_ISSUER_ERROR:
			return SBX_PHASE_TLS;
		case CURLE_SEND_ERROR:
		case CURLE_SEND_FAIL_REWIND:
			return SBX_PHASE_SEND;
		case CURLE_WEIRD_SERVER_REPLY:
		case CURLE_UNSUPPORTED_PROTOCOL:
		case CURLE_BAD_CONTENT_ENCODING:
			return SBX_PHASE_PROTOCOL;
		default:
			break;
	}
	if (request_sent)
		return SBX_PHASE_RECEIVE;

	/* Connected but nothing sent: the handshake was what took the time. */
	curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect);
	return connect > 0 ? SBX_PHASE_TLS : SBX_PHASE_CONNECT;
}

void
sbx_transfer_record(SbxTransfer *transfer, CURLcode code)
{
	SbxHttpResponse *response = &transfer->op->response;
	long status = 0;

	/* We ended it ourselves. */
	if (code == CURLE_WRITE_ERROR && transfer->enough)
		code = CURLE_OK;
	memset(response, 0, sizeof(*response));
	response->request_sent = was_request_sent(transfer, code);
	transfer->op->anything_sent = transfer->sent_before || response->request_sent;
	response->denied = transfer->denied && !response->request_sent;
	response->timed_out = code == CURLE_OPERATION_TIMEDOUT;
	response->resent = transfer->resent;
	response->too_large = transfer->too_large || code == CURLE_FILESIZE_EXCEEDED;
	if (transfer->socket != NULL && code == CURLE_OK)
	{
		sbx_socket_record(transfer, response);
		return;
	}
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (code != CURLE_OK || status == 0)
	{
		response->failed_phase = phase_of(transfer->easy, code, response->request_sent);
		return;
	}
	response->request_sent = true;
	transfer->op->anything_sent = true;
	response->status = (int) status;
	response->headers = transfer->headers_length > 0 ? transfer->headers : "";
	response->body = transfer->body_length > 0 ? transfer->body : "";
	response->body_length = transfer->body_length;
}

/* A request that could not even be handed to libcurl. */
void
sbx_transfer_record_not_sent(SbxTransfer *transfer)
{
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
	transfer->op->response.failed_phase = SBX_PHASE_CONNECT;
}
