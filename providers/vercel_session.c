/*
 * vercel_session.c
 *		What an answer says about a Vercel sandbox, and its session.
 */
#include <string.h>
#include <time.h>

#include "providers/vercel.h"

/* --- descriptions --------------------------------------------------------- */

SbxSandboxState
sbx_vercel_state_of(const char *word)
{
	static const SbxStateWord words[] = {{"running", SBX_STATE_STARTED},
	                                     {"stopping", SBX_STATE_STOPPING},
	                                     {"snapshotting", SBX_STATE_STOPPING},
	                                     {"stopped", SBX_STATE_STOPPED},
	                                     {"failed", SBX_STATE_FAILED},
	                                     {"aborted", SBX_STATE_FAILED},
	                                     {0}};

	return sbx_steps_state(words, word, false);
}

/* The session of an answer, if it is the one that the sandbox has now; or NULL. */
static const json_t *
vercel_session(const json_t *answer)
{
	const json_t *session = json_object_get(answer, "session");
	const char *id = sbx_json_string(session, "id");
	const char *current =
	    sbx_json_string(json_object_get(answer, "sandbox"), "currentSessionId");

	return id != NULL && (current == NULL || strcmp(id, current) == 0) ? session : NULL;
}

SbxSandboxState
sbx_vercel_state(const json_t *answer)
{
	const json_t *session = vercel_session(answer);

	return sbx_vercel_state_of(sbx_json_string(
	    session != NULL ? session : json_object_get(answer, "sandbox"), "status"));
}

SbxOwner
sbx_vercel_owner(SbxOp *op, const json_t *sandbox)
{
	SbxVercelState *state = op->state;

	if (state->unique_name == NULL)
		return SBX_OWNER_OURS;
	return sbx_steps_owner(json_object_get(sandbox, "tags"), state->unique_name,
	                       state->launch_token);
}

/* Milliseconds since 1970 as everybody else writes a time; NULL = it is none. */
static const char *
vercel_time(SbxOp *op, const json_t *sandbox)
{
	int64_t at_ms;
	time_t at;
	struct tm date;

	if (!sbx_json_integer(sandbox, "createdAt", &at_ms) || at_ms < 0 ||
	    at_ms > INT64_C(253402300799999))
		return NULL;
	at = (time_t) (at_ms / 1000);
	if (gmtime_r(&at, &date) == NULL)
		return NULL;
	return sbx_arena_printf(&op->arena, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
	                        date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
	                        date.tm_hour, date.tm_min, date.tm_sec,
	                        (int) (at_ms % 1000));
}

SbxSandboxFacts *
sbx_vercel_facts(SbxOp *op, const json_t *sandbox, SbxSandboxState state)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, sandbox, "name");
	facts->name = facts->sandbox_id;
	facts->state = state;
	facts->created_at = vercel_time(op, sandbox);
	return sbx_steps_take_labels(op, json_object_get(sandbox, "tags"), facts) ? facts
	                                                                          : NULL;
}

bool
sbx_vercel_learn_session(SbxOp *op, const json_t *answer)
{
	SbxVercelState *state = op->state;
	const char *id =
	    sbx_json_string(json_object_get(answer, "sandbox"), "currentSessionId");

	if (id == NULL)
		id = sbx_json_string(json_object_get(answer, "session"), "id");
	if (!sbx_steps_valid_id(id))
		return false;
	memcpy(state->session_id, id, strlen(id) + 1);
	return true;
}

json_t *
sbx_vercel_take(SbxOp *op)
{
	json_t *answer;
	const char *name;

	if (!sbx_steps_is_success(op))
	{
		sbx_steps_fail_response(op, sbx_steps_status_code(op));
		return NULL;
	}
	answer = sbx_steps_object(op, false);
	name = sbx_json_string(json_object_get(answer, "sandbox"), "name");
	if (name != NULL && strcmp(name, op->sandbox_id) == 0)
		return answer;
	json_decref(answer);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return NULL;
}

/* Names are unique: while another launch has it, ours is not there. */
json_t *
sbx_vercel_take_ours(SbxOp *op)
{
	json_t *answer;

	if (sbx_steps_is_absent(op))
	{
		sbx_steps_fail_response(op, "SANDBOX_GONE");
		return NULL;
	}
	answer = sbx_vercel_take(op);
	if (answer == NULL)
		return NULL;
	switch (sbx_vercel_owner(op, json_object_get(answer, "sandbox")))
	{
		case SBX_OWNER_OURS:
			return answer;
		case SBX_OWNER_ANOTHER:
			sbx_steps_fail_response(op, "SANDBOX_GONE");
			break;
		case SBX_OWNER_STRANGER:
			sbx_steps_fail_response(op, "NOT_OURS");
			break;
	}
	json_decref(answer);
	return NULL;
}

static bool
vercel_error_matches(const SbxOp *op, const char *key, const char *text, bool whole)
{
	json_t *answer = sbx_steps_object(op, false);
	const char *found = sbx_json_string(json_object_get(answer, "error"), key);
	bool matches = found != NULL &&
	               (whole ? strcmp(found, text) == 0 : strstr(found, text) != NULL);

	json_decref(answer);
	return matches;
}

bool
sbx_vercel_error_is(const SbxOp *op, const char *code)
{
	return vercel_error_matches(op, "code", code, true);
}

bool
sbx_vercel_error_says(const SbxOp *op, const char *words)
{
	return vercel_error_matches(op, "message", words, false);
}

bool
sbx_vercel_is_throttled(const SbxOp *op)
{
	json_t *answer = sbx_steps_object(op, false);
	bool tells_limit =
	    json_object_get(json_object_get(answer, "error"), "limit") != NULL;

	json_decref(answer);
	return op->response.status == 429 && tells_limit;
}

/* --- sessions ------------------------------------------------------------- */

static SbxStep vercel_open_look;
static SbxStep vercel_open_looked;
static SbxStep vercel_opened;
static SbxStep vercel_confirmed;
static SbxStep vercel_awaited;

SbxOpWant
sbx_vercel_open(SbxOp *op, SbxStep *opened)
{
	SbxVercelState *state = op->state;

	state->opened = opened;
	return vercel_open_look(op);
}

static SbxOpWant
vercel_open_look(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_open_looked);
}

static SbxOpWant
vercel_open_looked(SbxOp *op)
{
	return sbx_steps_looked(op, vercel_open_look, vercel_opened);
}

static SbxOpWant
vercel_opened(SbxOp *op)
{
	SbxVercelState *state = op->state;
	json_t *answer = sbx_vercel_take_ours(op);
	bool is_started;
	bool usable;

	if (answer == NULL)
		return SBX_OP_WANT_NOTHING;
	is_started = sbx_vercel_state(answer) == SBX_STATE_STARTED;
	usable = sbx_vercel_learn_session(op, answer);
	json_decref(answer);
	if (!is_started)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	return usable ? state->opened(op) : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

SbxOpWant
sbx_vercel_fail_in_session(SbxOp *op, const char *code)
{
	sbx_steps_note(op, code);
	return sbx_vercel_fail_noted_in_session(op);
}

/*
 * 410 is a session that is over, 422 one that is about to be.  404 can be anything that
 * the request names, also the session.
 */
SbxOpWant
sbx_vercel_fail_noted_in_session(SbxOp *op)
{
	SbxVercelState *state = op->state;

	switch (state->steps.noted.http_status)
	{
		case 404:
			state->steps.tidying = true;
			return sbx_vercel_look(op, vercel_confirmed);
		case 410:
		case 422:
			return sbx_steps_fail_noted(op, "NOT_STARTED");
	}
	return sbx_steps_fail_noted(op, state->steps.noted.provider_code);
}

static SbxOpWant
vercel_confirmed(SbxOp *op)
{
	SbxVercelState *state = op->state;
	json_t *answer;
	const char *current;
	bool is_over;

	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_noted(op, "SANDBOX_GONE");
	answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	current = sbx_json_string(json_object_get(answer, "sandbox"), "currentSessionId");
	is_over = answer != NULL &&
	          (sbx_vercel_state(answer) != SBX_STATE_STARTED ||
	           (current != NULL && strcmp(current, state->session_id) != 0));
	json_decref(answer);
	return sbx_steps_fail_noted(op, is_over ? "NOT_STARTED"
	                                        : state->steps.noted.provider_code);
}

SbxOpWant
sbx_vercel_await(SbxOp *op)
{
	return sbx_vercel_send_session(op, "GET", "", NULL, vercel_awaited);
}

static SbxOpWant
vercel_awaited(SbxOp *op)
{
	SbxVercelState *state = op->state;
	const json_t *session;
	json_t *answer;
	const char *id;
	SbxSandboxState found;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, sbx_vercel_await);
	}
	if (!sbx_steps_is_success(op))
		return sbx_steps_fail_response(op, op->response.status == 404
		                                       ? "SANDBOX_GONE"
		                                       : sbx_steps_status_code(op));
	memset(&state->steps.noted, 0, sizeof(state->steps.noted));
	answer = sbx_steps_object(op, false);
	session = json_object_get(answer, "session");
	id = sbx_json_string(session, "id");
	found = sbx_vercel_state_of(sbx_json_string(session, "status"));
	if (id == NULL || strcmp(id, state->session_id) != 0)
	{
		json_decref(answer);
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	}
	json_decref(answer);
	switch (found)
	{
		case SBX_STATE_STARTED:
			state->facts->state = SBX_STATE_STARTED;
			return sbx_op_succeed(op, state->facts);
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_STOPPING:
		case SBX_STATE_STOPPED:
			return sbx_steps_fail_response(op, "NOT_STARTED");
		default:
			return sbx_steps_wait(op, sbx_vercel_await);
	}
}
