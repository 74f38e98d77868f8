/*
 * engine.c
 *		Drives any number of operations at once over one libcurl multi handle.
 *
 * What keeps this safe inside a backend:
 *	- Nothing that can raise runs while libcurl is on the stack.  Callbacks set
 *	  flags; interrupts are taken in the loop, between calls.
 *	- All signals are blocked around libcurl calls, because a resolver thread
 *	  inherits the mask of the moment and must never run a server's handler.
 *	- libcurl's sockets live in an inner epoll set, which is one member of a wait
 *	  set that is kept: waiting allocates nothing, so it works during abort.
 *	- An easy handle serves one request and is removed where it was added.  The
 *	  multi handle is never cleaned up: that can block for as long as a name
 *	  server is silent.
 */
#include "net/engine.h"

#include <curl/curl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "net/address.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/* Idle connections kept; more would hold descriptors that the server needs. */
#define MAX_IDLE_CONNECTIONS 8L

/* Sockets in use at once; further requests queue inside libcurl. */
#define MAX_CONNECTIONS 100L

/* Response headers: real ones are below 4 KiB. */
#define MAX_RESPONSE_HEADERS (64 * 1024)

/* Part of the deadline that connecting may use. */
#define MAX_CONNECT_MS 10000

/* Wake up at least this often, whatever libcurl and the operations ask for. */
#define MAX_WAIT_MS 1000

/*
 * A connection idle for longer may have been closed by the peer.  Requests that
 * must not be delivered twice use only fresher ones.
 */
#define MAX_IDLE_SECONDS      60L
#define MAX_IDLE_SECONDS_ONCE 15L

#define EPOLL_BATCH 16

/* One operation under way. */
typedef struct Transfer
{
	SbxOp *op;
	SbxEngine *engine;
	CURL *easy; /* NULL when no exchange is under way */
	struct curl_slist *header_lines;
	int64 deadline; /* of the whole operation, monotonic ms */
	int64 wake_at;  /* end of a pause; -1 = not pausing */
	bool finished;

	/* State of the exchange; changed by libcurl's callbacks. */
	size_t body_sent; /* request bytes handed to libcurl */
	char *headers;
	size_t headers_length;
	char *body;
	size_t body_length;
	size_t body_size;
	size_t max_body;
	bool too_large;
	bool out_of_memory;
	bool sent_before;   /* op->anything_sent before this exchange */
	bool denied;        /* our own rules forbid the address */
	bool resent;        /* libcurl sent the request again by itself */
	bool loopback_only; /* plain http: no other address will do */
	bool plain_http;
} Transfer;

struct SbxEngine
{
	CURLM *multi;
	int epoll_fd;
	WaitEventSet *wait_set;
	int64 timer_at; /* libcurl's timer, monotonic ms; -1 = none */
	bool busy;
	bool aborting;
	const SbxEngineSettings *settings;
	Transfer *transfers;
	int count;
};

static int open_sockets = 0;

static int64
monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* --- libcurl, process-wide ------------------------------------------------ */

/* Allocators that wipe: request headers and bodies carry credentials. */
static void
wiping_free(void *pointer)
{
	if (pointer != NULL)
	{
		explicit_bzero(pointer, malloc_usable_size(pointer));
		free(pointer);
	}
}

static void *
wiping_realloc(void *pointer, size_t size)
{
	void *bigger;
	size_t old_size;

	if (pointer == NULL)
		return malloc(size);
	old_size = malloc_usable_size(pointer);
	if (size <= old_size && size >= old_size / 2)
		return pointer;
	bigger = malloc(size);
	if (bigger == NULL)
		return NULL;
	memcpy(bigger, pointer, Min(size, old_size));
	wiping_free(pointer);
	return bigger;
}

static void
initialize_libcurl(void)
{
	static bool initialized = false;
	const curl_version_info_data *version;

	if (initialized)
		return;
	if (curl_global_init_mem(CURL_GLOBAL_ALL, malloc, wiping_free, wiping_realloc,
	                         strdup, calloc) != CURLE_OK)
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
		                errmsg("could not initialize libcurl")));

	version = curl_version_info(CURLVERSION_NOW);
	if (version->version_num < LIBCURL_VERSION_NUM)
		ereport(ERROR,
		        (errcode(ERRCODE_SYSTEM_ERROR), errmsg("libcurl is too old"),
		         errdetail("This library was built with libcurl %s, but %s was loaded.",
		                   LIBCURL_VERSION, version->version)));
	if ((version->features & CURL_VERSION_SSL) == 0 ||
	    (version->features & CURL_VERSION_ASYNCHDNS) == 0)
		ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR),
		                errmsg("libcurl %s cannot be used", version->version),
		                errdetail("It lacks TLS or asynchronous name resolution.")));
	initialized = true;
}

static void
block_signals(sigset_t *saved)
{
	sigprocmask(SIG_SETMASK, &BlockSig, saved);
}

static void
restore_signals(const sigset_t *saved)
{
	sigprocmask(SIG_SETMASK, saved, NULL);
}

/* --- callbacks: no palloc, no report, no interrupts ------------------------ */

static int
socket_callback(CURL *easy, curl_socket_t socket, int what, void *arg, void *socket_arg)
{
	SbxEngine *engine = arg;
	struct epoll_event event = {0};

	if (what == CURL_POLL_REMOVE)
	{
		/* libcurl may have closed it already; then it left the set by itself. */
		(void) epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, socket, &event);
		return 0;
	}
	event.data.fd = socket;
	if (what & CURL_POLL_IN)
		event.events |= EPOLLIN;
	if (what & CURL_POLL_OUT)
		event.events |= EPOLLOUT;
	if (epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, socket, &event) != 0 &&
	    epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, socket, &event) != 0)
		return -1;
	return 0;
}

static int
timer_callback(CURLM *multi, long timeout_ms, void *arg)
{
	SbxEngine *engine = arg;

	engine->timer_at = timeout_ms < 0 ? -1 : monotonic_ms() + timeout_ms;
	return 0;
}

static bool
address_allowed(const Transfer *transfer, const struct sockaddr *address)
{
	SbxAddressClass class = sbx_address_classify(address);

	if (transfer->loopback_only && class != SBX_ADDRESS_LOOPBACK)
		return false;
	return class == SBX_ADDRESS_PUBLIC ||
	       transfer->engine->settings->allow_private_addresses;
}

/*
 * Have bytes of the request itself left?  Through a proxy, the size counts what was
 * said to open the tunnel, too; then the time counts at which sending was done.
 */
static bool
has_left(const Transfer *transfer)
{
	const SbxEngineSettings *settings = transfer->engine->settings;
	curl_off_t pretransfer = 0;
	long request_size = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer);
	curl_easy_getinfo(transfer->easy, CURLINFO_REQUEST_SIZE, &request_size);
	if (pretransfer > 0 || transfer->body_sent > 0)
		return true;
	return request_size > 0 && (settings->proxy[0] == '\0' || transfer->plain_http);
}

static curl_socket_t
open_socket_callback(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	Transfer *transfer = arg;
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
	if (transfer->engine->aborting)
		ReserveExternalFD();
	else if (!AcquireExternalFD())
		return CURL_SOCKET_BAD;

	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd < 0)
	{
		ReleaseExternalFD();
		return CURL_SOCKET_BAD;
	}
	open_sockets++;
	return fd;
}

/* Runs long after the operation is gone, so it may look at nothing of it. */
static int
close_socket_callback(void *arg, curl_socket_t socket)
{
	ReleaseExternalFD();
	open_sockets--;
	return close(socket);
}

static size_t
read_callback(char *buffer, size_t size, size_t count, void *arg)
{
	Transfer *transfer = arg;
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
	Transfer *transfer = arg;
	size_t length = size * count;
	char *bigger;

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

static size_t
write_callback(char *buffer, size_t size, size_t count, void *arg)
{
	Transfer *transfer = arg;
	size_t length = size * count;

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

/* --- making an engine ------------------------------------------------------ */

static WaitEventSet *
create_wait_set(int epoll_fd)
{
	WaitEventSet *set = sbx_create_wait_event_set(3);

	AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	if (IsUnderPostmaster)
		AddWaitEventToSet(set, WL_POSTMASTER_DEATH, PGINVALID_SOCKET, NULL, NULL);
	AddWaitEventToSet(set, WL_SOCKET_READABLE, epoll_fd, NULL, NULL);
	return set;
}

static CURLM *
create_multi(SbxEngine *engine)
{
	CURLM *multi = curl_multi_init();

	if (multi == NULL)
		return NULL;
	curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, socket_callback);
	curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, engine);
	curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer_callback);
	curl_multi_setopt(multi, CURLMOPT_TIMERDATA, engine);
	curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, MAX_IDLE_CONNECTIONS);
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, MAX_CONNECTIONS);
	curl_multi_setopt(multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	return multi;
}

static void
discard_engine(SbxEngine *engine)
{
	if (engine->wait_set != NULL)
		FreeWaitEventSet(engine->wait_set);
	if (engine->epoll_fd >= 0)
		close(engine->epoll_fd);
	ReleaseExternalFD();
	pfree(engine);
}

/* The wait set may raise, for want of descriptors; the multi handle is made last. */
static void
make_wait_set(SbxEngine *engine)
{
	PG_TRY();
	{
		engine->wait_set = create_wait_set(engine->epoll_fd);
	}
	PG_CATCH();
	{
		discard_engine(engine);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

SbxEngine *
sbx_engine_create(void)
{
	SbxEngine *engine;

	initialize_libcurl();
	if (!AcquireExternalFD())
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
		                errmsg("could not create a network engine: %m")));
	engine = MemoryContextAllocZero(TopMemoryContext, sizeof(SbxEngine));
	engine->timer_at = -1;
	engine->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->epoll_fd >= 0)
	{
		make_wait_set(engine);
		engine->multi = create_multi(engine);
	}
	if (engine->multi == NULL)
	{
		discard_engine(engine);
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_RESOURCES),
		                errmsg("could not create a network engine")));
	}
	return engine;
}

bool
sbx_engine_is_busy(const SbxEngine *engine)
{
	return engine->busy;
}

int
sbx_engine_open_sockets(void)
{
	return open_sockets;
}

/* --- one request ------------------------------------------------------------ */

/* "Name: value" lines; the buffer is wiped, libcurl's own copies when freed. */
static bool
add_header_line(Transfer *transfer, const char *name, const char *prefix,
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
build_headers(Transfer *transfer)
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
 * https always; http only where asked for, or to this host.  A name that merely
 * resolves to loopback does not count until the socket is opened.
 */
static bool
scheme_allowed(Transfer *transfer, const char *url)
{
	transfer->loopback_only = false;
	transfer->plain_http = strncmp(url, "http://", 7) == 0;
	if (strncmp(url, "https://", 8) == 0)
		return true;
	if (!transfer->plain_http)
		return false;
	transfer->loopback_only = !transfer->engine->settings->allow_http;
	return true;
}

static CURLcode
set_body(Transfer *transfer)
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
set_delivery(Transfer *transfer)
{
	const SbxHttpRequest *request = &transfer->op->request;

	if (request->repeatable)
		return curl_easy_setopt(transfer->easy, CURLOPT_MAXAGE_CONN, MAX_IDLE_SECONDS);
	if (request->body == NULL)
		return curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
	return curl_easy_setopt(transfer->easy, CURLOPT_MAXAGE_CONN, MAX_IDLE_SECONDS_ONCE);
}

static CURLcode
set_limits(Transfer *transfer, int64 now)
{
	const SbxHttpRequest *request = &transfer->op->request;
	CURL *easy = transfer->easy;
	int64 timeout = transfer->deadline - now;
	CURLcode code;

	if (request->timeout_ms > 0)
		timeout = Min(timeout, request->timeout_ms);
	timeout = Max(timeout, 1);
	transfer->max_body = request->max_response > 0
	                         ? request->max_response
	                         : transfer->engine->settings->max_response;
	code = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long) Min(timeout, INT_MAX));
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
		                        (long) Min(timeout, MAX_CONNECT_MS));
	if (code == CURLE_OK)
		code = curl_easy_setopt(easy, CURLOPT_MAXFILESIZE_LARGE,
		                        (curl_off_t) transfer->max_body);
	return code;
}

/* Where the request may go, and how it is protected on the way. */
static CURLcode
set_safety(Transfer *transfer)
{
	const SbxEngineSettings *settings = transfer->engine->settings;
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
	SET(CURLOPT_CLOSESOCKETDATA, (void *) NULL);
	return code;
}

static CURLcode
set_basics(Transfer *transfer)
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

static void
release_exchange(Transfer *transfer)
{
	sigset_t saved;

	if (transfer->easy != NULL)
	{
		block_signals(&saved);
		curl_multi_remove_handle(transfer->engine->multi, transfer->easy);
		curl_easy_cleanup(transfer->easy);
		restore_signals(&saved);
		transfer->easy = NULL;
	}
	curl_slist_free_all(transfer->header_lines);
	transfer->header_lines = NULL;
}

/* Start the exchange that the operation asked for; false = it cannot be sent. */
static bool
start_exchange(Transfer *transfer, int64 now)
{
	sigset_t saved;
	CURLcode code;
	CURLMcode multi_code = CURLM_INTERNAL_ERROR;

	transfer->body_sent = 0;
	transfer->headers_length = 0;
	transfer->body_length = 0;
	transfer->too_large = false;
	transfer->out_of_memory = false;
	transfer->denied = false;
	transfer->resent = false;
	if (!scheme_allowed(transfer, transfer->op->request.url))
		return false;

	block_signals(&saved);
	transfer->easy = curl_easy_init();
	if (transfer->easy != NULL && build_headers(transfer))
	{
		code = set_basics(transfer);
		if (code == CURLE_OK)
			code = set_safety(transfer);
		if (code == CURLE_OK)
			code = set_limits(transfer, now);
		if (code == CURLE_OK)
			code = set_body(transfer);
		if (code == CURLE_OK)
			code = set_delivery(transfer);
		if (code == CURLE_OK)
			multi_code = curl_multi_add_handle(transfer->engine->multi, transfer->easy);
	}
	restore_signals(&saved);

	if (multi_code == CURLM_OK)
	{
		transfer->sent_before = transfer->op->anything_sent;
		transfer->op->anything_sent = true;
		return true;
	}
	release_exchange(transfer);
	return false;
}

/* --- what came back ---------------------------------------------------------- */

/* Could the other side have acted?  Anything but a clear no counts as yes. */
static bool
was_request_sent(const Transfer *transfer, CURLcode code)
{
	if (has_left(transfer))
		return true;
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
			return transfer->engine->settings->proxy[0] == '\0' || transfer->plain_http;
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

static void
record_outcome(Transfer *transfer, CURLcode code)
{
	SbxHttpResponse *response = &transfer->op->response;
	long status = 0;

	memset(response, 0, sizeof(*response));
	response->request_sent = was_request_sent(transfer, code);
	transfer->op->anything_sent = transfer->sent_before || response->request_sent;
	response->denied = transfer->denied && !response->request_sent;
	response->timed_out = code == CURLE_OPERATION_TIMEDOUT;
	response->resent = transfer->resent;
	response->too_large = transfer->too_large || code == CURLE_FILESIZE_EXCEEDED;
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

static void step(Transfer *transfer, int64 now);

/* A request that could not even be handed to libcurl. */
static void
record_not_sent(Transfer *transfer)
{
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
	transfer->op->response.failed_phase = SBX_PHASE_CONNECT;
}

static void
finish(Transfer *transfer)
{
	transfer->finished = true;
	transfer->wake_at = -1;
	free(transfer->headers);
	free(transfer->body);
	transfer->headers = NULL;
	transfer->body = NULL;
	transfer->body_size = 0;
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
}

/* Let the operation look at its response and do what it asks for next. */
static void
step(Transfer *transfer, int64 now)
{
	SbxOp *op = transfer->op;

	for (;;)
	{
		switch (op->advance(op))
		{
			case SBX_OP_WANT_HTTP:
				if (op->expired)
					break;
				if (start_exchange(transfer, now))
					return;
				record_not_sent(transfer);
				continue;
			case SBX_OP_WANT_PAUSE:
				if (op->expired)
					break;
				transfer->wake_at = now + Max(op->pause_ms, 0);
				return;
			case SBX_OP_WANT_NOTHING:
				finish(transfer);
				return;
		}

		/* An expired operation that wants more is a bug; fail it all the same. */
		(void) sbx_op_fail(op, SBX_PHASE_PROTOCOL, NULL, SBX_ALLOCATION_UNKNOWN);
		finish(transfer);
		return;
	}
}

static void
complete_exchange(Transfer *transfer, CURLcode code, int64 now)
{
	record_outcome(transfer, code);
	release_exchange(transfer);
	step(transfer, now);
}

/* The operation's time is over: the last step, with what is known by now. */
static void
expire(Transfer *transfer, int64 now)
{
	transfer->op->expired = true;
	if (transfer->easy != NULL)
	{
		complete_exchange(transfer, CURLE_OPERATION_TIMEDOUT, now);
		return;
	}
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
	transfer->op->response.timed_out = true;
	transfer->op->response.failed_phase = SBX_PHASE_RECEIVE;
	step(transfer, now);
}

/* --- the loop ----------------------------------------------------------------- */

static void
perform_sockets(SbxEngine *engine)
{
	struct epoll_event events[EPOLL_BATCH];
	sigset_t saved;
	int running;
	int ready = epoll_wait(engine->epoll_fd, events, EPOLL_BATCH, 0);

	block_signals(&saved);
	for (int i = 0; i < ready; i++)
	{
		int mask = 0;

		if (events[i].events & EPOLLIN)
			mask |= CURL_CSELECT_IN;
		if (events[i].events & EPOLLOUT)
			mask |= CURL_CSELECT_OUT;
		if (events[i].events & (EPOLLERR | EPOLLHUP))
			mask |= CURL_CSELECT_ERR;
		curl_multi_socket_action(engine->multi, events[i].data.fd, mask, &running);
	}
	if (engine->timer_at >= 0 && engine->timer_at <= monotonic_ms())
	{
		engine->timer_at = -1;
		curl_multi_socket_action(engine->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	restore_signals(&saved);
}

static void
collect_exchanges(SbxEngine *engine)
{
	CURLMsg *message;
	int queued;

	while ((message = curl_multi_info_read(engine->multi, &queued)) != NULL)
	{
		Transfer *transfer = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &transfer);
		complete_exchange(transfer, message->data.result, monotonic_ms());
	}
}

/* Pauses that are over and operations whose time is over; true = all finished. */
static bool
advance_by_time(SbxEngine *engine)
{
	int64 now = monotonic_ms();
	bool all_finished = true;

	for (int i = 0; i < engine->count; i++)
	{
		Transfer *transfer = &engine->transfers[i];

		if (!transfer->finished && now >= transfer->deadline)
			expire(transfer, now);
		else if (!transfer->finished && transfer->wake_at >= 0 &&
		         now >= transfer->wake_at)
		{
			transfer->wake_at = -1;
			step(transfer, now);
		}
		all_finished = all_finished && transfer->finished;
	}
	return all_finished;
}

static int64
next_wake(const SbxEngine *engine)
{
	int64 now = monotonic_ms();
	int64 wake = now + MAX_WAIT_MS;

	if (engine->timer_at >= 0)
		wake = Min(wake, engine->timer_at);
	for (int i = 0; i < engine->count; i++)
	{
		const Transfer *transfer = &engine->transfers[i];

		if (transfer->finished)
			continue;
		wake = Min(wake, transfer->deadline);
		if (transfer->wake_at >= 0)
			wake = Min(wake, transfer->wake_at);
	}
	return Max(wake - now, 0);
}

/* Wait for something to happen; false = the postmaster is gone. */
static bool
wait_for_events(SbxEngine *engine)
{
	WaitEvent events[3];
	int count = WaitEventSetWait(engine->wait_set, next_wake(engine), events,
	                             lengthof(events), PG_WAIT_EXTENSION);

	for (int i = 0; i < count; i++)
	{
		if (events[i].events & WL_POSTMASTER_DEATH)
			return false;
		if (events[i].events & WL_LATCH_SET)
			ResetLatch(MyLatch);
	}
	return true;
}

static bool
begin_run(SbxEngine *engine, SbxOp **ops, int count, const SbxEngineSettings *settings)
{
	int64 now = monotonic_ms();

	engine->transfers = calloc(count, sizeof(Transfer));
	if (engine->transfers == NULL)
		return false;
	engine->busy = true;
	engine->settings = settings;
	engine->count = count;
	for (int i = 0; i < count; i++)
	{
		engine->transfers[i].op = ops[i];
		engine->transfers[i].engine = engine;
		engine->transfers[i].wake_at = -1;
		engine->transfers[i].deadline = now + ops[i]->timeout_ms;
	}
	return true;
}

static void
end_run(SbxEngine *engine)
{
	for (int i = 0; i < engine->count; i++)
	{
		Transfer *transfer = &engine->transfers[i];

		/* Abandoned: remember whether the other side may have heard of it. */
		if (transfer->easy != NULL)
			record_outcome(transfer, CURLE_ABORTED_BY_CALLBACK);
		release_exchange(transfer);
		if (!transfer->finished)
			finish(transfer);
	}
	free(engine->transfers);
	engine->transfers = NULL;
	engine->count = 0;
	engine->settings = NULL;
	engine->busy = false;
}

static void
start_all(SbxEngine *engine)
{
	for (int i = 0; i < engine->count; i++)
		step(&engine->transfers[i], monotonic_ms());
}

static void
drive(SbxEngine *engine)
{
	start_all(engine);
	while (!advance_by_time(engine))
	{
		CHECK_FOR_INTERRUPTS();
		if (!wait_for_events(engine))
			proc_exit(1);
		CHECK_FOR_INTERRUPTS();
		perform_sockets(engine);
		collect_exchanges(engine);
	}
}

void
sbx_engine_run(SbxEngine *engine, SbxOp **ops, int count,
               const SbxEngineSettings *settings)
{
	Assert(!engine->busy);
	engine->aborting = false;
	if (!begin_run(engine, ops, count, settings))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	PG_TRY();
	{
		drive(engine);
	}
	PG_FINALLY();
	{
		end_run(engine);
	}
	PG_END_TRY();
}

/* Bring every deadline forward to now + rest. */
static void
limit_deadlines(SbxEngine *engine, int64 rest)
{
	int64 limit = monotonic_ms() + rest;

	for (int i = 0; i < engine->count; i++)
		engine->transfers[i].deadline = Min(engine->transfers[i].deadline, limit);
}

static void
drive_aborting(SbxEngine *engine, int64 budget_ms, int64 hurried_ms)
{
	bool hurried = false;

	limit_deadlines(engine, budget_ms);
	start_all(engine);
	while (!advance_by_time(engine))
	{
		if (!hurried && (QueryCancelPending || ProcDiePending))
		{
			limit_deadlines(engine, hurried_ms);
			hurried = true;
		}

		/* The postmaster is gone: no time for manners, and proc_exit is forbidden. */
		if (!wait_for_events(engine))
			limit_deadlines(engine, 0);
		perform_sockets(engine);
		collect_exchanges(engine);
	}
}

int64
sbx_engine_run_aborting(SbxEngine *engine, SbxOp **ops, int count,
                        const SbxEngineSettings *settings, int64 budget_ms,
                        int64 hurried_ms)
{
	int64 started = monotonic_ms();
	MemoryContext context = CurrentMemoryContext;
	uint32 interrupt_holdoff = InterruptHoldoffCount;
	uint32 cancel_holdoff = QueryCancelHoldoffCount;

	engine->aborting = true;
	if (engine->busy || !begin_run(engine, ops, count, settings))
		return 0;
	PG_TRY();
	{
		drive_aborting(engine, budget_ms, hurried_ms);
	}
	PG_CATCH();
	{
		/*
		 * Only a failing epoll_wait gets here; abort must go on regardless, with the
		 * holdoff counts that an ERROR resets.
		 */
		InterruptHoldoffCount = interrupt_holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	end_run(engine);

	/* The waits may have consumed a wake-up that somebody else needs. */
	SetLatch(MyLatch);
	return monotonic_ms() - started;
}
