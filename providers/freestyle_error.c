/*
 * freestyle_error.c
 *		What Freestyle's refusals mean.
 *
 * The provider's codes are few and general: only together with the status, and with what
 * was asked for, do they say something.
 */
#include <string.h>

#include "providers/freestyle.h"

/*
 * The first row that fits counts.  409 of a create is a slug that is taken, or no room, or
 * anything else that stands against it; a rule of the firewall can be found wrong when the
 * machine runs already.  So there, and wherever a request was judged, what has the slug is
 * looked at.  What is not listed proves nothing.
 */
static const SbxFreestyleRefusal freestyle_refusals[] = {
    /* The work is done, its answer was too long to be kept. */
    {0, "BACKGROUND_RESULT_UNSTORABLE", SBX_ALLOCATION_UNKNOWN, true,
     "RESULT_UNSTORABLE"},

    /* Of a command whose time is longer than an older machine can keep. */
    {0, "AGENT_UNSUPPORTED", SBX_ALLOCATION_UNKNOWN, true, "AGENT_UNSUPPORTED"},

    {400, NULL, SBX_ALLOCATION_NONE, true, "BAD_REQUEST"},
    {401, NULL, SBX_ALLOCATION_NONE, false, SBX_CODE_UNAUTHORIZED},
    {403, NULL, SBX_ALLOCATION_NONE, false, "FORBIDDEN"},

    /* Of a create it is the snapshot that is not found. */
    {404, "NOT_FOUND", SBX_ALLOCATION_NONE, false, "NOT_FOUND"},
    {404, "ROUTE_NOT_FOUND", SBX_ALLOCATION_NONE, false, "ROUTE_NOT_FOUND"},

    {409, NULL, SBX_ALLOCATION_NONE, true, "CONFLICT"},
    {422, NULL, SBX_ALLOCATION_NONE, true, "BAD_REQUEST"},

    /* What the plan or the month allows is used up: waiting a second does not help. */
    {429, "LIMIT_EXCEEDED", SBX_ALLOCATION_NONE, false, "CAPACITY"},
    {429, NULL, SBX_ALLOCATION_NONE, false, "RATE_LIMITED"},

    /* An outage of the provider's, no fault of the key. */
    {503, "KEY_RESOLVER_UNAVAILABLE", SBX_ALLOCATION_UNKNOWN, false,
     "KEY_RESOLVER_UNAVAILABLE"},
};

static const SbxFreestyleRefusal freestyle_unlisted = {0, NULL, SBX_ALLOCATION_UNKNOWN,
                                                       false, NULL};

const SbxFreestyleRefusal *
sbx_freestyle_refusal(const SbxOp *op)
{
	json_t *answer = sbx_steps_object(op, false);
	const char *error = sbx_json_string(answer, "code");
	const SbxFreestyleRefusal *found = &freestyle_unlisted;

	for (size_t i = 0; op->response.status >= 400 && found == &freestyle_unlisted &&
	                   i < sizeof(freestyle_refusals) / sizeof(freestyle_refusals[0]);
	     i++)
	{
		const SbxFreestyleRefusal *refusal = &freestyle_refusals[i];

		if ((refusal->status == 0 || refusal->status == op->response.status) &&
		    (refusal->error == NULL ||
		     (error != NULL && strcmp(refusal->error, error) == 0)))
			found = refusal;
	}
	json_decref(answer);
	return found;
}

const char *
sbx_freestyle_code(const SbxOp *op)
{
	const SbxFreestyleState *state = op->state;

	return op->response.status == 0 ? state->lost : sbx_freestyle_refusal(op)->code;
}

bool
sbx_freestyle_not_found(const SbxOp *op)
{
	const char *code = sbx_freestyle_code(op);

	return code != NULL && strcmp(code, "NOT_FOUND") == 0;
}

SbxOpWant
sbx_freestyle_fail(SbxOp *op)
{
	return sbx_steps_fail_response(op, sbx_freestyle_code(op));
}
