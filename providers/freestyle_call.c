/*
 * freestyle_call.c
 *		Calls to Freestyle, and answers that come later.
 *
 * A call that takes longer than it may is answered 202, and goes on.  Its real answer,
 * status and all, is stored under the id of the request and can be asked for.  Asking can
 * go wrong, too, with the same statuses: an error is that of the call only if it says whose
 * it is, in a header.
 *
 * The provider's own client follows whatever address such an answer gives, with the key.
 * Here only the id in it counts: the key goes nowhere but to the address that was set.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_API_URL "https://api.freestyle.sh"
#define FREESTYLE_RESULTS "/v5/background-requests/"

/* Carried by what is asked for, and by answers of calls that went on without us. */
#define FREESTYLE_AFTER_HEADER "X-Freestyle-Background-After-Secs"
#define FREESTYLE_ID_HEADER    "X-Freestyle-Background-Request-Id"

/* After so many seconds a call that takes its time is answered 202. */
#define FREESTYLE_AFTER_SECONDS "5"

/* No single exchange may eat the whole budget of an operation that can retry. */
#define FREESTYLE_EXCHANGE_MS (20 * 1000)

/* From looking soon to looking as often as the provider's own client does. */
#define FREESTYLE_POLL_MS     500
#define FREESTYLE_POLL_MAX_MS 2000

/* Longer than every id there is. */
#define FREESTYLE_REQUEST_ID_MAX 200

static SbxStep freestyle_answered;
static SbxStep freestyle_poll;
static SbxStep freestyle_polled;

/* --- the frame of an operation -------------------------------------------- */

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_freestyle_make_op(const SbxAccount *account, const char *operation,
                      SbxStep *first_step, size_t state_size, size_t first_block,
                      int64_t timeout_ms)
{
	const SbxFieldValue *api = &account->settings[FREESTYLE_SET_API_URL];
	SbxOp *op =
	    sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	SbxFreestyleState *state;

	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_key = account->credentials[0];
	state->api_url =
	    sbx_steps_base_url(op, api->is_set ? api->text : FREESTYLE_API_URL);
	state->vms_url = sbx_arena_printf(&op->arena, "%s/v5/vms", state->api_url);
	if (state->api_key == NULL)
		state->steps.step = sbx_steps_refuse;
	return op;
}

void
sbx_freestyle_point_at(SbxOp *op, const char *id)
{
	SbxFreestyleState *state = op->state;

	memmove(op->sandbox_id, id, strlen(id) + 1); /* it may be that very text */
	state->vm_url = sbx_arena_printf(&op->arena, "%s/%s", state->vms_url, id);
}

void
sbx_freestyle_set_target(SbxOp *op, const SbxTarget *target)
{
	if (sbx_steps_valid_id(target->sandbox_id))
		sbx_freestyle_point_at(op, target->sandbox_id);
	else
		((SbxFreestyleState *) op->state)->steps.step = sbx_steps_refuse;
}

#define FREESTYLE_SLUG_MAX   63
#define FREESTYLE_SLUG_BYTES "abcdefghijklmnopqrstuvwxyz0123456789-"

/* It knows no underscore, and no hyphen at its ends or beside another. */
const char *
sbx_freestyle_slug(SbxArena *arena, const char *unique_name)
{
	size_t length = unique_name == NULL ? 0 : strlen(unique_name);
	char *slug;

	if (length == 0 || length > FREESTYLE_SLUG_MAX)
		return NULL;
	slug = sbx_arena_strdup(arena, unique_name);
	for (size_t i = 0; slug != NULL && i < length; i++)
	{
		if (slug[i] == '_')
			slug[i] = '-';
	}
	if (slug == NULL || slug[strspn(slug, FREESTYLE_SLUG_BYTES)] != '\0' ||
	    slug[0] == '-' || slug[length - 1] == '-' || strstr(slug, "--") != NULL)
		return NULL;
	return slug;
}

/* --- requests ------------------------------------------------------------- */

static SbxOpWant
freestyle_request(SbxOp *op, const char *method, const char *url,
                  const char *content_type, SbxStep *next)
{
	SbxFreestyleState *state = op->state;

	sbx_steps_request(op, method, url, FREESTYLE_EXCHANGE_MS);
	sbx_steps_header(op, "Authorization", "Bearer ", state->api_key);
	return sbx_steps_send(op, content_type, NULL, 0, next);
}

static void
freestyle_expect(SbxFreestyleState *state, SbxStep *answer)
{
	state->answer = answer;
	state->answer_by_ms = 0;
	state->lost = NULL;
}

/* Reads, deletes and writes to a place may be delivered twice; a POST may not. */
SbxOpWant
sbx_freestyle_send(SbxOp *op, const char *method, const char *url, const char *body,
                   SbxStep *answer)
{
	SbxFreestyleState *state = op->state;
	SbxOpWant want = freestyle_request(
	    op, method, url, body == NULL ? NULL : "application/json", freestyle_answered);

	op->request.body = body;
	op->request.body_length = body == NULL ? 0 : strlen(body);
	freestyle_expect(state, answer);
	return want;
}

SbxOpWant
sbx_freestyle_send_bytes(SbxOp *op, const char *method, const char *url,
                         const char *bytes, size_t length, SbxStep *answer)
{
	SbxFreestyleState *state = op->state;
	SbxOpWant want = freestyle_request(op, method, url, "application/octet-stream",
	                                   freestyle_answered);

	op->request.body = bytes;
	op->request.body_length = length;
	freestyle_expect(state, answer);
	return want;
}

SbxOpWant
sbx_freestyle_call(SbxOp *op, const char *method, const char *url, const char *body,
                   SbxStep *answer)
{
	SbxOpWant want = sbx_freestyle_send(op, method, url, body, answer);

	if (want == SBX_OP_WANT_HTTP &&
	    !sbx_op_header(op, FREESTYLE_AFTER_HEADER, "", FREESTYLE_AFTER_SECONDS))
		return sbx_steps_refuse(op);
	return want;
}

SbxOpWant
sbx_freestyle_look(SbxOp *op, SbxStep *answer)
{
	SbxFreestyleState *state = op->state;

	return sbx_freestyle_send(op, "GET", state->vm_url, NULL, answer);
}

/* The time is always said: it is 30 s else. */
const char *
sbx_freestyle_exec_body(SbxOp *op, const char *text, int64_t command_ms)
{
	json_t *body = sbx_json_new_object();
	const char *printed = NULL;

	if (text != NULL && json_object_set_new(body, "command", json_string(text)) == 0 &&
	    json_object_set_new(body, "timeoutMs", json_integer(command_ms)) == 0)
		printed = sbx_json_print(&op->arena, body);
	json_decref(body);
	return printed;
}

SbxOpWant
sbx_freestyle_exec(SbxOp *op, const char *body, SbxStep *answer)
{
	SbxFreestyleState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/exec-await", state->vm_url);

	return sbx_freestyle_call(op, "POST", url, body, answer);
}

/* --- where the real answer is ----------------------------------------------- */

/* What follows "<scheme>://<host>"; the text itself when it does not begin so. */
static const char *
freestyle_path_of(const char *url)
{
	const char *host = strstr(url, "://");

	return host == NULL ? url : host + 3 + strcspn(host + 3, "/");
}

/* The id in an address of this very provider; NULL = it is another one's, or none. */
static const char *
freestyle_id_in_url(const SbxFreestyleState *state, const char *url)
{
	size_t base = strlen(state->api_url);
	size_t origin = (size_t) (freestyle_path_of(state->api_url) - state->api_url);
	const char *id = url;

	if (strncmp(url, state->api_url, base) == 0)
		id += base;
	else if (strncmp(url, state->api_url, origin) == 0)
		id += origin;
	if (strncmp(id, FREESTYLE_RESULTS, strlen(FREESTYLE_RESULTS)) != 0)
		return NULL;
	id += strlen(FREESTYLE_RESULTS);
	return sbx_script_valid_name(id) ? id : NULL;
}

/* An address counts before an id, and one that is not right before none. */
static const char *
freestyle_find_id(SbxOp *op, const json_t *answer)
{
	SbxFreestyleState *state = op->state;
	const char *url = sbx_json_string(answer, "resultUrl");
	const char *id;

	if (url != NULL)
	{
		id = freestyle_id_in_url(state, url);
		if (id == NULL)
			state->lost = "RESULT_URL_REFUSED";
		return id;
	}
	id = sbx_op_response_header(op, FREESTYLE_ID_HEADER);
	if (id == NULL)
		id = sbx_json_string(answer, "requestId");
	if (id != NULL && *id != '\0' && strlen(id) <= FREESTYLE_REQUEST_ID_MAX &&
	    strcmp(id, ".") != 0 && strcmp(id, "..") != 0)
		return id;
	state->lost = "RESULT_URL_MISSING";
	return NULL;
}

static const char *
freestyle_result_url(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	json_t *answer = sbx_steps_object(op, false);
	const char *id = freestyle_find_id(op, answer);
	const char *encoded = id == NULL ? NULL : sbx_arena_url_encode(&op->arena, id);

	json_decref(answer);
	return encoded == NULL ? NULL
	                       : sbx_arena_printf(&op->arena, "%s" FREESTYLE_RESULTS "%s",
	                                          state->api_url, encoded);
}

/* --- asking for it ----------------------------------------------------------- */

/* Nobody will ever know what became of the call, which was carried out. */
static SbxOpWant
freestyle_lose(SbxOp *op, const char *why)
{
	SbxFreestyleState *state = op->state;

	state->lost = why;
	op->response.status = 0;
	op->response.failed_phase = SBX_PHASE_PROTOCOL;
	op->response.request_sent = true;
	return state->answer(op);
}

/* What is left of the time that the answer has; false = it has as much as there is. */
static bool
freestyle_rest(const SbxOp *op, int64_t *rest)
{
	const SbxFreestyleState *state = op->state;

	*rest = state->answer_by_ms - op->elapsed_ms;
	return state->answer_by_ms > 0;
}

static SbxOpWant
freestyle_poll_later(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	int64_t pause_ms = state->poll_ms;
	int64_t rest;

	if (freestyle_rest(op, &rest) && rest < pause_ms)
		pause_ms = rest > 0 ? rest : 0;
	return sbx_steps_pause(op, pause_ms, freestyle_poll);
}

static SbxOpWant
freestyle_answered(SbxOp *op)
{
	SbxFreestyleState *state = op->state;

	if (op->response.status != 202)
		return state->answer(op);
	state->steps.acted |= strcmp(op->request.method, "GET") != 0;
	state->result_url = freestyle_result_url(op);
	if (state->result_url == NULL)
		return freestyle_lose(op, state->lost);
	state->poll_ms = FREESTYLE_POLL_MS;
	return freestyle_poll_later(op);
}

/* The answer may be as long as the call's own. */
static SbxOpWant
freestyle_poll(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	int64_t rest;
	size_t max_response = op->request.max_response;
	SbxOpWant want =
	    freestyle_request(op, "GET", state->result_url, NULL, freestyle_polled);

	op->request.max_response = max_response;
	if (freestyle_rest(op, &rest) && rest < op->request.timeout_ms)
		op->request.timeout_ms = rest > 0 ? rest : 1;
	return want;
}

static SbxOpWant
freestyle_poll_again(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	int64_t rest;

	if (freestyle_rest(op, &rest) && rest <= 0)
	{
		op->response.timed_out = true;
		return freestyle_lose(op, "RESULT_LOST");
	}
	state->poll_ms += state->poll_ms / 2;
	if (state->poll_ms > FREESTYLE_POLL_MAX_MS)
		state->poll_ms = FREESTYLE_POLL_MAX_MS;
	return freestyle_poll_later(op);
}

static SbxOpWant
freestyle_polled(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	int status = op->response.status;

	if (status == 202)
		return freestyle_poll_again(op);
	if (sbx_steps_is_success(op) || op->response.too_large ||
	    (status != 0 && sbx_op_response_header(op, FREESTYLE_ID_HEADER) != NULL))
		return state->answer(op);

	/*
	 * What is in front of the provider says such things; 500 is the provider itself.  What
	 * was noted before is the better reason.
	 */
	if (sbx_steps_is_passing(op) && status != 500)
	{
		if (state->steps.noted.phase == SBX_PHASE_NONE)
			sbx_steps_note(op, sbx_steps_status_code(op));
		return freestyle_poll_again(op);
	}
	return freestyle_lose(op, "RESULT_LOST");
}
