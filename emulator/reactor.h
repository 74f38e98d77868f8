/*
 * reactor.h
 *		One thread for everything that happens later: timers, the sockets of
 *		the guests, and clients that go away while their answer is held.
 *
 * All state of the emulator is guarded by one lock.  The threads of the HTTP
 * server take it around the handling of a request, the reactor around each
 * callback; both hold it for microseconds and never while waiting.  Callbacks
 * are therefore free to touch anything and are never run concurrently.
 */
#ifndef EMU_REACTOR_H
#define EMU_REACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

extern void emu_lock(void);
extern void emu_unlock(void);

/* A timer lives inside its owner, which must stop it before going away. */
typedef struct EmuTimer
{
	int64_t due;
	size_t slot; /* place in the heap plus one, 0 = not armed */
	void (*fire)(void *owner);
	void *owner;
} EmuTimer;

extern void emu_timer_start(EmuTimer *timer, int64_t delay_ms,
                            void (*fire)(void *owner), void *owner);
extern void emu_timer_stop(EmuTimer *timer);

/*
 * A watched descriptor.  Events are matched to watches by serial number, so
 * an event that was fetched before its watch was stopped finds nobody.
 */
typedef struct EmuWatch
{
	uint64_t serial; /* 0 = not watching */
	int fd;
	void (*ready)(void *owner, uint32_t events);
	void *owner;
	struct EmuWatch *next;
} EmuWatch;

extern bool emu_watch_start(EmuWatch *watch, int fd, uint32_t events,
                            void (*ready)(void *owner, uint32_t events), void *owner);
extern void emu_watch_change(EmuWatch *watch, uint32_t events);
extern void emu_watch_stop(EmuWatch *watch);

extern bool emu_reactor_start(void);
extern void emu_reactor_stop(void);

#endif
