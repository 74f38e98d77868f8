/*
 * reactor.c
 *		One thread for everything that happens later.
 */
#include "reactor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "text.h"

#define WATCH_BUCKETS  4096 /* a power of two */
#define EVENTS_AT_ONCE 64

static pthread_mutex_t world_lock = PTHREAD_MUTEX_INITIALIZER;

static struct
{
	pthread_t thread;
	int epoll;
	int wake; /* eventfd: the first timer changed */
	bool stopping;

	EmuTimer **heap;
	size_t heap_count;
	size_t heap_capacity;

	EmuWatch *watches[WATCH_BUCKETS];
	uint64_t last_serial;
} reactor;

void
emu_lock(void)
{
	pthread_mutex_lock(&world_lock);
}

void
emu_unlock(void)
{
	pthread_mutex_unlock(&world_lock);
}

static void
reactor_wake(void)
{
	uint64_t one = 1;

	if (write(reactor.wake, &one, sizeof(one)) < 0)
		return; /* counter full: it is awake already */
}

/* Timers: a binary heap, each timer knowing its place for cheap removal. */

static void
heap_set(size_t place, EmuTimer *timer)
{
	reactor.heap[place] = timer;
	timer->slot = place + 1;
}

static void
heap_rise(size_t place, EmuTimer *timer)
{
	while (place > 0)
	{
		size_t parent = (place - 1) / 2;

		if (reactor.heap[parent]->due <= timer->due)
			break;
		heap_set(place, reactor.heap[parent]);
		place = parent;
	}
	heap_set(place, timer);
}

static void
heap_sink(size_t place, EmuTimer *timer)
{
	for (;;)
	{
		size_t child = place * 2 + 1;

		if (child >= reactor.heap_count)
			break;
		if (child + 1 < reactor.heap_count &&
		    reactor.heap[child + 1]->due < reactor.heap[child]->due)
			child++;
		if (timer->due <= reactor.heap[child]->due)
			break;
		heap_set(place, reactor.heap[child]);
		place = child;
	}
	heap_set(place, timer);
}

void
emu_timer_stop(EmuTimer *timer)
{
	size_t place = timer->slot - 1;
	EmuTimer *last;

	if (timer->slot == 0)
		return;
	timer->slot = 0;
	last = reactor.heap[--reactor.heap_count];
	if (last == timer)
		return;
	if (place > 0 && reactor.heap[(place - 1) / 2]->due > last->due)
		heap_rise(place, last);
	else
		heap_sink(place, last);
}

void
emu_timer_start(EmuTimer *timer, int64_t delay_ms, void (*fire)(void *owner),
                void *owner)
{
	emu_timer_stop(timer);
	timer->due = emu_clock_ms() + delay_ms;
	timer->fire = fire;
	timer->owner = owner;
	if (reactor.heap_count == reactor.heap_capacity)
	{
		reactor.heap_capacity =
		    reactor.heap_capacity > 0 ? reactor.heap_capacity * 2 : 64;
		reactor.heap =
		    emu_realloc(reactor.heap, reactor.heap_capacity * sizeof(EmuTimer *));
	}
	heap_rise(reactor.heap_count++, timer);
	if (reactor.heap[0] == timer)
		reactor_wake();
}

static void
reactor_fire_timers(void)
{
	int64_t now = emu_clock_ms();

	while (reactor.heap_count > 0 && reactor.heap[0]->due <= now)
	{
		EmuTimer *timer = reactor.heap[0];

		emu_timer_stop(timer);
		timer->fire(timer->owner);
	}
}

/* Watches */

static EmuWatch **
watch_place(uint64_t serial)
{
	EmuWatch **place = &reactor.watches[serial & (WATCH_BUCKETS - 1)];

	while (*place != NULL && (*place)->serial != serial)
		place = &(*place)->next;
	return place;
}

bool
emu_watch_start(EmuWatch *watch, int fd, uint32_t events,
                void (*ready)(void *owner, uint32_t events), void *owner)
{
	struct epoll_event event = {.events = events};
	EmuWatch **bucket;

	emu_watch_stop(watch);
	event.data.u64 = reactor.last_serial + 1;
	if (epoll_ctl(reactor.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
		return false;
	watch->serial = ++reactor.last_serial;
	watch->fd = fd;
	watch->ready = ready;
	watch->owner = owner;
	bucket = &reactor.watches[watch->serial & (WATCH_BUCKETS - 1)];
	watch->next = *bucket;
	*bucket = watch;
	return true;
}

void
emu_watch_change(EmuWatch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events};

	if (watch->serial == 0)
		return;
	event.data.u64 = watch->serial;
	epoll_ctl(reactor.epoll, EPOLL_CTL_MOD, watch->fd, &event);
}

void
emu_watch_stop(EmuWatch *watch)
{
	if (watch->serial == 0)
		return;
	epoll_ctl(reactor.epoll, EPOLL_CTL_DEL, watch->fd, NULL);
	*watch_place(watch->serial) = watch->next;
	watch->serial = 0;
}

static int
reactor_patience(void)
{
	int64_t left;

	if (reactor.heap_count == 0)
		return -1;
	left = reactor.heap[0]->due - emu_clock_ms();
	return left < 0 ? 0 : left > 60000 ? 60000 : (int) left;
}

static void *
reactor_run(void *unused)
{
	struct epoll_event events[EVENTS_AT_ONCE];

	(void) unused;
	emu_lock();
	while (!reactor.stopping)
	{
		int patience = reactor_patience();
		int count;

		emu_unlock();
		count = epoll_wait(reactor.epoll, events, EVENTS_AT_ONCE, patience);
		emu_lock();
		for (int i = 0; i < count; i++)
		{
			EmuWatch *watch = *watch_place(events[i].data.u64);

			if (events[i].data.u64 == 0)
			{
				uint64_t counter;

				if (read(reactor.wake, &counter, sizeof(counter)) < 0)
					continue;
			}
			else if (watch != NULL)
				watch->ready(watch->owner, events[i].events);
		}
		reactor_fire_timers();
	}
	emu_unlock();
	return NULL;
}

bool
emu_reactor_start(void)
{
	struct epoll_event event = {.events = EPOLLIN};

	reactor.epoll = epoll_create1(EPOLL_CLOEXEC);
	reactor.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return reactor.epoll >= 0 && reactor.wake >= 0 &&
	       epoll_ctl(reactor.epoll, EPOLL_CTL_ADD, reactor.wake, &event) == 0 &&
	       pthread_create(&reactor.thread, NULL, reactor_run, NULL) == 0;
}

void
emu_reactor_stop(void)
{
	emu_lock();
	reactor.stopping = true;
	reactor_wake();
	emu_unlock();
	pthread_join(reactor.thread, NULL);
}
