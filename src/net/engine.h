/*
 * engine.h
 *		Drives any number of operations at once over one libcurl multi handle.
 *
 * The engine knows bytes, sockets and time; it knows nothing about sandboxes.
 */
#ifndef SBX_NET_ENGINE_H
#define SBX_NET_ENGINE_H

#include "compat.h"

#include "net/op.h"

/* The caller's limits; read for every request. */
typedef struct SbxEngineSettings
{
	size_t max_response; /* bytes of body, unless the request says otherwise */
	bool allow_private_addresses;
	bool allow_http;     /* plain http to other hosts than loopback */
	const char *ca_file; /* "" = libcurl's default store */
	const char *proxy;   /* "" = none, whatever the environment says */
	bool trace;          /* a LOG line for each exchange */
} SbxEngineSettings;

typedef struct SbxEngine SbxEngine;

/*
 * Make an engine.  It lives as long as the backend: there is no way to destroy
 * one, because tearing libcurl down can block for seconds.  Raises an ERROR when
 * the libcurl that was loaded cannot be used.
 */
extern SbxEngine *sbx_engine_create(void);

/*
 * Is a run in progress?  True also inside a backend that is being terminated in
 * the middle of one, because termination does not unwind the stack.
 */
extern bool sbx_engine_is_busy(const SbxEngine *engine);

/*
 * Told now and then while a run goes on, and may raise: how many have finished, and
 * how many of these have failed.
 */
typedef void SbxEngineReport(void *arg, int finished, int failed);

/*
 * What to run.  Whatever is called here may raise, which abandons all, but must not get
 * to this engine again: no SQL of others.
 */
typedef struct SbxEngineWork
{
	int count;
	void *arg;

	/* Operation `index`, whose turn has come.  It stays as long as the run, or "end". */
	SbxOp *(*begin)(void *arg, int index);

	/* It has finished, and the engine does not look at it again.  May be NULL. */
	void (*end)(void *arg, int index);
	SbxEngineReport *report; /* may be NULL */
} SbxEngineWork;

/*
 * Run operations until each has finished or its time is over.  A hundred are under way at
 * once, in their order: the time of each starts with its turn.  Honours cancel,
 * statement_timeout and termination, which are raised by the server itself as ever; all
 * transfers are then abandoned.
 */
extern void sbx_engine_run(SbxEngine *engine, const SbxEngineWork *work,
                           const SbxEngineSettings *settings);

/*
 * The same for transaction abort: raises nothing, takes no interrupts and ends
 * after budget_ms, or hurried_ms once a cancel or terminate is pending.
 * Operations that have not finished then are failed as expired.  Returns the
 * milliseconds that are left.
 */
extern int64 sbx_engine_run_aborting(SbxEngine *engine, const SbxEngineWork *work,
                                     const SbxEngineSettings *settings, int64 budget_ms,
                                     int64 hurried_ms);

#endif /* SBX_NET_ENGINE_H */
