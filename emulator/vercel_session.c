/*
 * vercel_session.c
 *		Sessions: from being asked for to their end.
 */
#include "vercel.h"

#include <stdlib.h>
#include <string.h>

static EmuTable sessions; /* id -> VercelSession, until a reset */
static uint64_t last_serial;

static void
set_state(VercelSession *session, VercelState state)
{
	session->state = state;
	session->updated_ms = emu_wall_ms();
	vercel_details(session->sandbox)->status_ms = session->updated_ms;
}

bool
vercel_session_over(const VercelSession *session)
{
	return session->state == VERCEL_STOPPED || session->state == VERCEL_FAILED;
}

/* Of the same token and team, and of a sandbox that still has an entry. */
VercelSession *
vercel_session_by_id(const char *owner, const char *id)
{
	VercelSession *session = emu_table_get(&sessions, id);
	const VercelSandbox *details =
	    session != NULL ? vercel_details(session->sandbox) : NULL;

	return details != NULL && session->sandbox->keeps_entry &&
	               strcmp(details->owner, owner) == 0
	           ? session
	           : NULL;
}

/* Answers itself and returns false if nothing can be done in the session now. */
bool
vercel_session_usable(EmuRequest *request, const VercelSession *session)
{
	if (session->state == VERCEL_STOPPING || vercel_details(session->sandbox)->deleting)
		vercel_refuse(request, 422, "Sandbox is stopping");
	else if (vercel_session_over(session))
		vercel_refuse(request, 410,
		              "Sandbox has stopped execution and is no longer available.");
	else if (session->state == VERCEL_PENDING)
		vercel_refuse_as(request, 422, "sandbox_pending", "Sandbox is not ready yet");
	else
		return true;
	return false;
}

/*
 * The beginning
 */

/*
 * For a moment it is in the state that its first answer tells of; then
 * vercel_session_start takes over.
 */
VercelSession *
vercel_session_new(EmuSandbox *sandbox)
{
	VercelSandbox *details = vercel_details(sandbox);
	VercelSession *session = emu_alloc(sizeof(VercelSession));
	EmuResources resources = {details->vcpus,
	                          (double) details->vcpus * VERCEL_MEMORY_PER_CPU, 0};

	vercel_make_id(session->id, "sbx_");
	session->sandbox = sandbox;
	session->serial = ++last_serial;
	session->earlier = details->current;
	session->vcpus = details->vcpus;
	session->timeout_ms = details->timeout_ms;
	session->requested_ms = emu_wall_ms();
	session->network_policy = json_incref(details->network_policy);
	if (details->persistent || details->current == NULL)
		strcpy(session->source_snapshot, details->snapshot);
	details->current = session;
	emu_table_put(&sessions, session->id, session);
	sandbox->expired_ms = 0;
	emu_sandbox_reserve(sandbox, &resources);
	emu_sandbox_hold_slot(sandbox, true);
	set_state(session, vercel_config.start_delay > 0 ? VERCEL_PENDING
	                   : vercel_config.start_fails   ? VERCEL_FAILED
	                                                 : VERCEL_RUNNING);
	if (session->state == VERCEL_RUNNING)
		session->started_ms = session->requested_ms;
	return session;
}

/* A sandbox that does not persist has nothing left then but its entry. */
static void
lifetime_struck(void *owner)
{
	VercelSession *session = owner;
	VercelSandbox *details = vercel_details(session->sandbox);

	vercel_session_end(session);
	if (!details->persistent)
		session->sandbox->expired_ms = emu_wall_ms();
}

static void
started(void *owner)
{
	VercelSession *session = owner;

	if (vercel_config.start_fails)
	{
		set_state(session, VERCEL_PENDING);
		vercel_session_end(session);
		set_state(session, VERCEL_FAILED);
		return;
	}
	set_state(session, VERCEL_RUNNING);
	session->started_ms = session->updated_ms;
	emu_timer_start(&session->lifetime, session->timeout_ms, lifetime_struck, session);
}

/* `hold_ms` is how long its first answer is held. */
void
vercel_session_start(VercelSession *session, int64_t hold_ms)
{
	int64_t delay = hold_ms + vercel_config.start_delay;

	if (delay == 0)
	{
		started(session);
		return;
	}
	session->started_ms = 0;
	set_state(session, VERCEL_PENDING);
	emu_timer_start(&session->settle, delay, started, session);
}

/* False if it would live longer than any may. */
bool
vercel_session_extend(VercelSession *session, int64_t more_ms)
{
	int64_t timeout = session->timeout_ms + more_ms;

	if (timeout > vercel_config.maximum_timeout)
		return false;
	session->timeout_ms = timeout;
	session->updated_ms = emu_wall_ms();
	emu_timer_start(&session->lifetime,
	                session->started_ms + timeout - session->updated_ms,
	                lifetime_struck, session);
	return true;
}

/*
 * The end
 */

/* The files of a sandbox that does not persist go with its processes. */
static void
machine_off(VercelSession *session)
{
	EmuSandbox *sandbox = session->sandbox;

	if (sandbox->guest != NULL && vercel_details(sandbox)->persistent)
		emu_guest_stop(sandbox->guest);
	else if (sandbox->guest != NULL)
	{
		emu_guest_destroy(sandbox->guest);
		sandbox->guest = NULL;
	}
	vercel_commands_clear(session);
}

/* It is on its way; vercel_session_settle brings it to its end. */
void
vercel_session_stop(VercelSession *session)
{
	emu_timer_stop(&session->lifetime);
	emu_timer_stop(&session->settle);
	machine_off(session);
	set_state(session, VERCEL_STOPPING);
	session->stop_requested_ms = session->updated_ms;
}

static void
stopped(void *owner)
{
	vercel_session_end(owner);
}

void
vercel_session_settle(VercelSession *session, int64_t delay_ms)
{
	if (delay_ms > 0)
		emu_timer_start(&session->settle, delay_ms, stopped, session);
	else
		vercel_session_end(session);
}

/* At once, from whatever state it is in. */
void
vercel_session_end(VercelSession *session)
{
	static const EmuResources nothing = {0, 0, 0};
	VercelSandbox *details = vercel_details(session->sandbox);

	if (vercel_session_over(session))
		return;
	if (session->state != VERCEL_STOPPING)
		vercel_session_stop(session);
	emu_timer_stop(&session->settle);
	set_state(session, VERCEL_STOPPED);
	session->stopped_ms = session->updated_ms;
	if (details->persistent)
		vercel_make_id(details->snapshot, "snap_");
	emu_sandbox_reserve(session->sandbox, &nothing);
	emu_sandbox_hold_slot(session->sandbox, false);
}

void
vercel_session_free(VercelSession *session)
{
	emu_timer_stop(&session->lifetime);
	emu_timer_stop(&session->settle);
	vercel_commands_clear(session);
	emu_table_remove(&sessions, session->id);
	json_decref(session->network_policy);
	free(session);
}
