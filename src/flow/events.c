/*
 * events.c
 *		sbx_recent_events: what routing and cleanup did in this session.
 */
#include "compat.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "observe/event.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

/* The members of an event that have no column of their own. */
static Datum
detail_jsonb(const SbxEvent *event)
{
	StringInfoData json;

	sbx_detail_open(&json);
	sbx_detail_text(&json, "code", event->code[0] == '\0' ? NULL : event->code);
	if (event->retryable != SBX_UNSET)
		sbx_detail_raw(&json, "retryable",
		               event->retryable == SBX_TRUE ? "true" : "false");
	if (event->succeeded != SBX_UNSET)
		sbx_detail_raw(&json, "succeeded",
		               event->succeeded == SBX_TRUE ? "true" : "false");
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(sbx_detail_close(&json)));
}

/*
 * sbx_recent_events() returns setof (at, event, sbx_id, provider_id, attempt,
 *									  detail)
 *		The latest events of this session, oldest first.
 */
PG_FUNCTION_INFO_V1(sbx_recent_events);
Datum
sbx_recent_events(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result;

	InitMaterializedSRF(fcinfo, 0);
	result = (ReturnSetInfo *) fcinfo->resultinfo;
	for (int i = 0; i < sbx_event_count(); i++)
	{
		const SbxEvent *event = sbx_event_get(i);
		Datum values[6];
		bool nulls[6] = {false};

		if (!has_privs_of_role(GetUserId(), event->role))
			continue;
		values[0] = TimestampTzGetDatum(event->at);
		values[1] = CStringGetTextDatum(sbx_event_name(event->name));
		values[2] = CStringGetTextDatum(event->sbx_id);
		nulls[2] = event->sbx_id[0] == '\0';
		values[3] = CStringGetTextDatum(event->provider_id);
		nulls[3] = event->provider_id[0] == '\0';
		values[4] = Int32GetDatum(event->attempt);
		nulls[4] = event->attempt == 0;
		values[5] = detail_jsonb(event);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}
