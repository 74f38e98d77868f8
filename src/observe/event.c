/*
 * event.c
 *		Structured events: what routing and cleanup did, kept in the session.
 */
#include "observe/event.h"

#include "miscadmin.h"

/*
 * Enough for a few statements that try ten pools each; 256 events of about 220
 * bytes are 56 KiB, touched only as far as used.
 */
#define SBX_EVENT_RING 256

static SbxEvent ring[SBX_EVENT_RING];
static uint64 emitted = 0;

/* In the order of SbxEventName. */
static const char *const event_names[] = {
    "route.planned",    "route.refused",   "order.ignored",     "capacity.skipped",
    "attempt.started",  "attempt.failed",  "attempt.succeeded", "mapping.failed",
    "cleanup.finished", "destroy.finished"};

void
sbx_event_emit(SbxEventName name, const char *sbx_id, const char *provider_id,
               int attempt, const char *code, SbxTristate retryable,
               SbxTristate succeeded)
{
	SbxEvent *event = &ring[emitted % SBX_EVENT_RING];

	event->name = name;
	event->at = GetCurrentTimestamp();
	event->role = GetUserId();
	strlcpy(event->sbx_id, sbx_id == NULL ? "" : sbx_id, sizeof(event->sbx_id));
	strlcpy(event->provider_id, provider_id == NULL ? "" : provider_id,
	        sizeof(event->provider_id));
	event->attempt = attempt;
	strlcpy(event->code, code == NULL ? "" : code, sizeof(event->code));
	event->retryable = retryable;
	event->succeeded = succeeded;
	emitted++;
}

int
sbx_event_count(void)
{
	return (int) Min(emitted, SBX_EVENT_RING);
}

const SbxEvent *
sbx_event_get(int index)
{
	uint64 first = emitted > SBX_EVENT_RING ? emitted - SBX_EVENT_RING : 0;

	return &ring[(first + index) % SBX_EVENT_RING];
}

const char *
sbx_event_name(SbxEventName name)
{
	return event_names[name];
}
