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
#include <sys/epoll.h>
#include <unistd.h>

#include "miscadmin.h"
#include "net/libcurl.h"
#include "net/quietly.h"
#include "net/socket.h"
#include "net/trace.h"
#include "net/transfer.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"
#include "utils/wait_event.h"

/*
 * Connections kept by a backend that does one thing at a time; more would hold
 * descriptors that the server needs.
 */
#define MAX_KEPT_CONNECTIONS 8

/* Operations under way at once, each with a socket at most; others wait their turn. */
#define MAX_UNDER_WAY 100

/* How soon to look whether another operation has given a descriptor back. */
#define DESCRIPTOR_WAIT_MS 20

/* Wake up at least this often, whatever libcurl and the operations ask for. */
#define MAX_WAIT_MS 1000

#define EPOLL_BATCH 16

struct SbxEngine
{
	CURLM *multi;
	int epoll_fd;
	WaitEventSet *wait_set;
	int64 timer_at; /* libcurl's timer, monotonic ms; -1 = none */
	int64 limit;    /* no operation goes on beyond */
	long max_kept;  /* connections, those in use included */
	SbxConnections connections;
	int descriptors; /* so many the server gives; 0 = it has refused none */
	bool busy;
	bool aborting;
	const SbxEngineWork *work;
	SbxTransfer *transfers;
	int started; /* so many of them, in their order */
};

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
	event.data.u64 = (uint32) socket;
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

	engine->timer_at = timeout_ms < 0 ? -1 : sbx_libcurl_now() + timeout_ms;
	return 0;
}

/*
 * A connection that is a WebSocket is watched by us.  Its events say whose it is, in the
 * half of their word that libcurl's leave empty.
 */
static bool
watch_socket(const SbxEngine *engine, const SbxTransfer *transfer)
{
	struct epoll_event event = {.events = EPOLLIN};
	int socket = transfer->socket->descriptor;

	if (transfer->socket->wants_room)
		event.events |= EPOLLOUT;

	/* Whoever is swamped listens only when he can speak again. */
	if (sbx_websocket_is_swamped(transfer->socket->websocket))
		event.events &= ~EPOLLIN;
	event.data.u64 =
	    (uint64) (transfer - engine->transfers + 1) << 32 | (uint32) socket;
	return epoll_ctl(engine->epoll_fd, EPOLL_CTL_MOD, socket, &event) == 0 ||
	       epoll_ctl(engine->epoll_fd, EPOLL_CTL_ADD, socket, &event) == 0;
}

/* Whatever becomes of the connection, it is nobody's WebSocket any more. */
static void
release(const SbxEngine *engine, SbxTransfer *transfer)
{
	struct epoll_event event = {0};

	if (transfer->socket != NULL)
		(void) epoll_ctl(engine->epoll_fd, EPOLL_CTL_DEL, transfer->socket->descriptor,
		                 &event);
	sbx_transfer_release(transfer);
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
	curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long) MAX_UNDER_WAY);
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

	sbx_libcurl_initialize();
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

static void
finish(SbxTransfer *transfer)
{
	transfer->finished = true;
	transfer->failed = !transfer->op->succeeded;
	transfer->wake_at = -1;
	free(transfer->headers);
	free(transfer->body);
	transfer->headers = NULL;
	transfer->body = NULL;
	transfer->body_size = 0;
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
}

/*
 * Would an exchange that starts now get a connection?  What waits in libcurl instead of
 * here would have its time run before it has begun.
 */
static bool
has_room(const SbxEngine *engine)
{
	int exchanges = 0;

	if (engine->descriptors == 0)
		return true;
	for (int i = 0; i < engine->started; i++)
		exchanges += engine->transfers[i].easy != NULL;
	return exchanges < engine->descriptors;
}

static void
queue_exchange(SbxTransfer *transfer, int64 now)
{
	transfer->queued = true;
	transfer->wake_at = now + DESCRIPTOR_WAIT_MS;
}

/* True = the exchange is under way, or waits for its turn. */
static bool
start_exchange(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	if (!has_room(engine))
	{
		queue_exchange(transfer, now);
		return true;
	}
	if (sbx_transfer_start(transfer, now))
		return true;
	sbx_transfer_record_not_sent(transfer);
	sbx_trace_exchange(transfer, false);
	return false;
}

/* Let the operation look at its response and do what it asks for next. */
static void
step(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	SbxOp *op = transfer->op;

	op->elapsed_ms = now - transfer->begun;
	op->rest_ms = transfer->deadline - now;
	for (;;)
	{
		switch (op->advance(op))
		{
			case SBX_OP_WANT_HTTP:
				if (op->expired)
					break;
				if (start_exchange(engine, transfer, now))
					return;
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
start_time(const SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	transfer->begun = now;
	transfer->deadline = Min(now + transfer->op->timeout_ms, engine->limit);
}

/* The time of an operation starts with its first exchange. */
static void
start_queued(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	transfer->queued = false;
	if (!transfer->op->anything_sent)
		start_time(engine, transfer, now);
	if (!start_exchange(engine, transfer, now))
		step(engine, transfer, now);
}

/*
 * What many do at once must not fail because they are many: an exchange that got no
 * descriptor is started again later, as long as the engine has open sockets: those in use
 * will be given back, and libcurl closes a kept connection for a new one.  Without any it
 * has failed.
 */
static bool
can_start_again(const SbxEngine *engine, const SbxTransfer *transfer)
{
	const SbxOp *op = transfer->op;

	return transfer->no_descriptor && op->response.status == 0 &&
	       !op->response.request_sent && !op->expired && engine->connections.open > 0;
}

/* No more connections than there are descriptors; 0 = the server has refused none. */
static void
limit_descriptors(SbxEngine *engine, int descriptors)
{
	engine->descriptors = descriptors;
	curl_multi_setopt(engine->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
	                  (long) (descriptors > 0 ? descriptors : MAX_UNDER_WAY));
}

static void
complete_exchange(SbxEngine *engine, SbxTransfer *transfer, CURLcode code, int64 now)
{
	sbx_transfer_record(transfer, code);
	if (can_start_again(engine, transfer))
	{
		release(engine, transfer);
		transfer->op->anything_sent = transfer->sent_before;
		transfer->crowded = true;
		limit_descriptors(engine, engine->connections.open);
		queue_exchange(transfer, now);
		return;
	}
	sbx_trace_exchange(transfer, false);
	release(engine, transfer);
	step(engine, transfer, now);
}

/* Do what can be done on a WebSocket now, and wait for what can be done next. */
static void
serve_socket(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	CURLcode code;

	if (sbx_socket_serve(transfer, now, &code))
		complete_exchange(engine, transfer, code, now);
	else if (!watch_socket(engine, transfer))
		complete_exchange(engine, transfer, CURLE_FAILED_INIT, now);
}

/* libcurl is done with the connection: from now on it is ours. */
static void
open_socket(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	sigset_t saved;
	bool opened;

	sbx_libcurl_block_signals(&saved);
	opened = sbx_socket_open(transfer, now);
	sbx_libcurl_restore_signals(&saved);
	if (opened)
		serve_socket(engine, transfer, now);
	else
		complete_exchange(engine, transfer, CURLE_FAILED_INIT, now);
}

/* The operation's time is over: the last step, with what is known by now. */
static void
expire(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	transfer->op->expired = true;
	transfer->queued = false;
	if (transfer->easy != NULL)
	{
		complete_exchange(engine, transfer, CURLE_OPERATION_TIMEDOUT, now);
		return;
	}
	memset(&transfer->op->response, 0, sizeof(SbxHttpResponse));
	transfer->op->response.timed_out = true;
	transfer->op->response.failed_phase = SBX_PHASE_RECEIVE;
	step(engine, transfer, now);
}

/* --- the loop ----------------------------------------------------------------- */

static void
perform_sockets(SbxEngine *engine)
{
	struct epoll_event events[EPOLL_BATCH];
	sigset_t saved;
	int running;
	int ready = epoll_wait(engine->epoll_fd, events, EPOLL_BATCH, 0);

	sbx_libcurl_block_signals(&saved);
	for (int i = 0; i < ready; i++)
	{
		uint32 owner = events[i].data.u64 >> 32;
		int mask = 0;

		if (owner > 0)
		{
			engine->transfers[owner - 1].socket->ready = true;
			continue;
		}
		if (events[i].events & EPOLLIN)
			mask |= CURL_CSELECT_IN;
		if (events[i].events & EPOLLOUT)
			mask |= CURL_CSELECT_OUT;
		if (events[i].events & (EPOLLERR | EPOLLHUP))
			mask |= CURL_CSELECT_ERR;
		curl_multi_socket_action(engine->multi, (int) (uint32) events[i].data.u64, mask,
		                         &running);
	}
	if (engine->timer_at >= 0 && engine->timer_at <= sbx_libcurl_now())
	{
		engine->timer_at = -1;
		curl_multi_socket_action(engine->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	sbx_libcurl_restore_signals(&saved);
}

static void
collect_exchanges(SbxEngine *engine)
{
	CURLMsg *message;
	int queued;

	while ((message = curl_multi_info_read(engine->multi, &queued)) != NULL)
	{
		SbxTransfer *transfer = NULL;

		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **) &transfer);
		if (message->data.result == CURLE_OK && sbx_socket_wanted(transfer))
			open_socket(engine, transfer, sbx_libcurl_now());
		else
			complete_exchange(engine, transfer, message->data.result,
			                  sbx_libcurl_now());
	}
}

/* The time of an operation starts when it does. */
static void
start_next(SbxEngine *engine)
{
	SbxTransfer *transfer = &engine->transfers[engine->started];
	int64 now;

	/* It may raise: only what has an operation has been started. */
	transfer->op = engine->work->begin(engine->work->arg, engine->started);
	engine->started++;
	now = sbx_libcurl_now();
	start_time(engine, transfer, now);
	if (now < transfer->deadline)
		step(engine, transfer, now);
	else
		expire(engine, transfer, now);
}

/*
 * As many connections are kept as there are operations to use them: while many are under
 * way, each finds its own again, and with the last ones the surplus goes.  libcurl's
 * limit counts those in use, too; each connection that gets free closes at most one.
 */
static void
limit_kept(SbxEngine *engine, int wanted)
{
	long kept = Max(MAX_KEPT_CONNECTIONS, Min(wanted, MAX_UNDER_WAY));

	if (kept == engine->max_kept)
		return;
	curl_multi_setopt(engine->multi, CURLMOPT_MAXCONNECTS, kept);
	engine->max_kept = kept;
}

static void
advance_one(SbxEngine *engine, SbxTransfer *transfer, int64 now)
{
	bool has_begun = !transfer->queued || transfer->op->anything_sent;

	if (now >= (has_begun ? transfer->deadline : engine->limit))
		expire(engine, transfer, now);
	else if (transfer->socket != NULL &&
	         (transfer->socket->ready || now >= sbx_socket_wake(transfer->socket)))
		serve_socket(engine, transfer, now);
	else if (transfer->wake_at >= 0 && now >= transfer->wake_at)
	{
		transfer->wake_at = -1;
		if (transfer->queued)
			start_queued(engine, transfer, now);
		else
			step(engine, transfer, now);
	}
}

/*
 * Pauses that are over, WebSockets that have something, and operations whose time is over;
 * then those whose turn it is,
 * unless some are waiting for descriptors already.  True = all finished.
 */
static bool
advance_by_time(SbxEngine *engine)
{
	int64 now = sbx_libcurl_now();
	int under_way = 0;
	bool any_queued = false;

	for (int i = 0; i < engine->started; i++)
	{
		SbxTransfer *transfer = &engine->transfers[i];

		if (!transfer->finished)
			advance_one(engine, transfer, now);
		under_way += !transfer->finished;
		any_queued = any_queued || transfer->queued;
	}
	while (!any_queued && under_way < MAX_UNDER_WAY &&
	       engine->started < engine->work->count && has_room(engine))
	{
		start_next(engine);
		under_way += !engine->transfers[engine->started - 1].finished;
	}
	limit_kept(engine, under_way + engine->work->count - engine->started);
	return under_way == 0;
}

static int64
next_wake(const SbxEngine *engine)
{
	int64 now = sbx_libcurl_now();
	int64 wake = now + MAX_WAIT_MS;

	if (engine->timer_at >= 0)
		wake = Min(wake, engine->timer_at);
	for (int i = 0; i < engine->started; i++)
	{
		const SbxTransfer *transfer = &engine->transfers[i];

		if (transfer->finished)
			continue;
		if (!transfer->queued)
			wake = Min(wake, transfer->deadline);
		if (transfer->wake_at >= 0)
			wake = Min(wake, transfer->wake_at);
		if (transfer->socket != NULL)
			wake = Min(wake, sbx_socket_wake(transfer->socket));
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
begin_run(SbxEngine *engine, const SbxEngineWork *work,
          const SbxEngineSettings *settings)
{
	engine->transfers = calloc(work->count, sizeof(SbxTransfer));
	if (engine->transfers == NULL)
		return false;
	engine->busy = true;
	engine->work = work;
	engine->started = 0;
	engine->limit = PG_INT64_MAX;
	limit_descriptors(engine, 0);
	if (!settings->allow_private_addresses)
		sbx_connections_hang_up_private(&engine->connections);
	for (int i = 0; i < work->count; i++)
	{
		engine->transfers[i].multi = engine->multi;
		engine->transfers[i].settings = settings;
		engine->transfers[i].connections = &engine->connections;
		engine->transfers[i].aborting = engine->aborting;
		engine->transfers[i].wake_at = -1;
	}
	return true;
}

static void
end_run(SbxEngine *engine)
{
	for (int i = 0; i < engine->started; i++)
	{
		SbxTransfer *transfer = &engine->transfers[i];

		if (transfer->finished)
			continue;
		release(engine, transfer);
		finish(transfer);
	}
	free(engine->transfers);
	engine->transfers = NULL;
	engine->work = NULL;
	engine->busy = false;
}

static bool
is_abandoned(const SbxTransfer *transfer)
{
	return !transfer->finished && transfer->easy != NULL;
}

static void
trace_abandoned(void *arg)
{
	const SbxEngine *engine = arg;

	for (int i = 0; i < engine->started; i++)
		if (is_abandoned(&engine->transfers[i]))
			sbx_trace_exchange(&engine->transfers[i], true);
}

/* Remember of what is given up whether the other side may have heard of it. */
static void
abandon(SbxEngine *engine)
{
	for (int i = 0; i < engine->started; i++)
		if (is_abandoned(&engine->transfers[i]))
			sbx_transfer_record(&engine->transfers[i], CURLE_ABORTED_BY_CALLBACK);
}

/* Writing to the log may raise; the run ends all the same. */
static void
leave_run(SbxEngine *engine)
{
	abandon(engine);
	PG_TRY();
	{
		trace_abandoned(engine);
	}
	PG_FINALLY();
	{
		end_run(engine);
	}
	PG_END_TRY();
}

/* What an operation notes of an attempt that it repeats is no failure yet. */
static void
tell(const SbxEngine *engine)
{
	int finished = 0;
	int failed = 0;

	for (int i = 0; i < engine->started; i++)
	{
		const SbxTransfer *transfer = &engine->transfers[i];

		finished += transfer->finished;
		failed += transfer->failed;
	}
	engine->work->report(engine->work->arg, finished, failed);
}

/* Those that have finished meanwhile. */
static void
hand_over(SbxEngine *engine)
{
	for (int i = 0; i < engine->started; i++)
	{
		SbxTransfer *transfer = &engine->transfers[i];

		if (!transfer->finished || transfer->ended)
			continue;
		transfer->ended = true;
		transfer->op = NULL;
		engine->work->end(engine->work->arg, i);
	}
}

static void
drive(SbxEngine *engine)
{
	for (;;)
	{
		bool finished = advance_by_time(engine);

		if (engine->work->end != NULL)
			hand_over(engine);
		if (finished)
			return;
		CHECK_FOR_INTERRUPTS();
		if (engine->work->report != NULL)
			tell(engine);
		if (!wait_for_events(engine))
			proc_exit(1);
		CHECK_FOR_INTERRUPTS();
		perform_sockets(engine);
		collect_exchanges(engine);
	}
}

void
sbx_engine_run(SbxEngine *engine, const SbxEngineWork *work,
               const SbxEngineSettings *settings)
{
	if (engine->busy)
		elog(ERROR, "the network engine is in use");
	engine->aborting = false;
	if (!begin_run(engine, work, settings))
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	PG_TRY();
	{
		drive(engine);
	}
	PG_FINALLY();
	{
		leave_run(engine);
	}
	PG_END_TRY();
}

/* Bring every deadline forward to now + rest, those to come too. */
static void
limit_deadlines(SbxEngine *engine, int64 rest)
{
	engine->limit = Min(engine->limit, sbx_libcurl_now() + rest);
	for (int i = 0; i < engine->started; i++)
		engine->transfers[i].deadline =
		    Min(engine->transfers[i].deadline, engine->limit);
}

typedef struct AbortingDrive
{
	SbxEngine *engine;
	int64 budget_ms;
	int64 hurried_ms;
} AbortingDrive;

static void
drive_aborting(void *arg)
{
	const AbortingDrive *drive = arg;
	SbxEngine *engine = drive->engine;
	bool hurried = false;

	limit_deadlines(engine, drive->budget_ms);
	while (!advance_by_time(engine))
	{
		if (!hurried && (QueryCancelPending || ProcDiePending))
		{
			limit_deadlines(engine, drive->hurried_ms);
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
sbx_engine_run_aborting(SbxEngine *engine, const SbxEngineWork *work,
                        const SbxEngineSettings *settings, int64 budget_ms,
                        int64 hurried_ms)
{
	AbortingDrive drive = {engine, budget_ms, hurried_ms};

	if (engine->busy)
		return budget_ms;
	engine->aborting = true;
	if (!begin_run(engine, work, settings))
		return budget_ms;

	/* A failing epoll_wait raises, or a line for the log; abort must go on regardless. */
	sbx_quietly(drive_aborting, &drive);
	abandon(engine);
	sbx_quietly(trace_abandoned, engine);
	end_run(engine);

	/* The waits may have consumed a wake-up that somebody else needs. */
	SetLatch(MyLatch);
	return Max(engine->limit - sbx_libcurl_now(), 0);
}
