/*
 * event.h
 *		Structured events: what routing and cleanup did, kept in the session.
 *
 * A ring of fixed size without allocation, so that events can be recorded during
 * transaction abort.  Events never carry provider text or credentials.
 */
#ifndef SBX_EVENT_H
#define SBX_EVENT_H

#include "compat.h"

#include "utils/timestamp.h"

typedef enum SbxEventName
{
	SBX_EVENT_ROUTE_PLANNED,
	SBX_EVENT_ROUTE_REFUSED,
	SBX_EVENT_ORDER_IGNORED, /* the policy's order names a pool that is not registered */
	SBX_EVENT_CAPACITY_SKIPPED,
	SBX_EVENT_ATTEMPT_STARTED,
	SBX_EVENT_ATTEMPT_FAILED,
	SBX_EVENT_ATTEMPT_SUCCEEDED,
	SBX_EVENT_MAPPING_FAILED,
	SBX_EVENT_CLEANUP_FINISHED,
	SBX_EVENT_DESTROY_FINISHED
} SbxEventName;

/* Optional members: NULL, 0 and SBX_UNSET mean that an event has none. */
typedef enum SbxTristate
{
	SBX_UNSET,
	SBX_FALSE,
	SBX_TRUE
} SbxTristate;

typedef struct SbxEvent
{
	SbxEventName name;
	TimestampTz at;
	Oid role; /* who was acting: events are shown to it and its members */
	char sbx_id[40];
	char provider_id[64];
	int attempt;
	char code[65]; /* [A-Z][A-Z0-9_]{0,63} */
	SbxTristate retryable;
	SbxTristate succeeded;
} SbxEvent;

/* Never fails. */
extern void sbx_event_emit(SbxEventName name, const char *sbx_id,
                           const char *provider_id, int attempt, const char *code,
                           SbxTristate retryable, SbxTristate succeeded);

/* The events kept, oldest first: index 0 .. sbx_event_count() - 1. */
extern int sbx_event_count(void);
extern const SbxEvent *sbx_event_get(int index);
extern const char *sbx_event_name(SbxEventName name);

#endif /* SBX_EVENT_H */
