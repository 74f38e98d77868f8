/*
 * agent37_instance.c
 *		The plane of one Agent37 instance: the files that its template's program serves.
 *
 * The key opens all files of the instance, so it goes nowhere but to the address that
 * follows from the id.  A request there would wake an instance that sleeps, which costs:
 * only one that runs gets any.
 */
#include <string.h>

#include "providers/agent37.h"

/* The program at the address starts some time after the instance. */
#define AGENT37_SERVICE_WAIT_MS (30 * 1000)

static SbxStep agent37_open_look;
static SbxStep agent37_open_looked;
static SbxStep agent37_opened;
static SbxStep agent37_file_looked;

SbxOpWant
sbx_agent37_open(SbxOp *op, SbxStep *opened)
{
	SbxAgent37State *state = op->state;

	state->opened = opened;
	return agent37_open_look(op);
}

static SbxOpWant
agent37_open_look(SbxOp *op)
{
	return sbx_agent37_look(op, agent37_open_looked);
}

static SbxOpWant
agent37_open_looked(SbxOp *op)
{
	return sbx_steps_looked(op, agent37_open_look, agent37_opened);
}

/* --- where? --------------------------------------------------------------- */

/* NULL = all is well, else why it cannot be used. */
static const char *
agent37_learn_url(SbxOp *op, const json_t *instance)
{
	SbxAgent37State *state = op->state;
	const char *url = sbx_json_string(instance, "url");
	size_t length = url == NULL ? 0 : strlen(url);

	state->instance_url =
	    state->fixed_url != NULL
	        ? sbx_arena_printf(&op->arena, "%s/%s", state->fixed_url, op->sandbox_id)
	        : sbx_arena_printf(&op->arena, "https://%s.agent37.app", op->sandbox_id);
	while (length > 0 && url[length - 1] == '/')
		length--;
	if (length == 0)
		return "NO_FILE_SERVICE";
	return state->instance_url != NULL && strlen(state->instance_url) == length &&
	               strncmp(state->instance_url, url, length) == 0
	           ? NULL
	           : "INSTANCE_URL_REFUSED";
}

static SbxOpWant
agent37_opened(SbxOp *op)
{
	SbxAgent37State *state = op->state;
	json_t *instance;
	SbxSandboxState found;
	const char *obstacle;

	if (op->response.status == 404)
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	instance = sbx_agent37_take_instance(op);
	if (instance == NULL)
		return SBX_OP_WANT_NOTHING;
	found = sbx_agent37_state(instance);
	obstacle = agent37_learn_url(op, instance);
	json_decref(instance);
	if (found == SBX_STATE_FAILED || found == SBX_STATE_GONE)
		return sbx_steps_fail_response(op, found == SBX_STATE_GONE ? "SANDBOX_GONE"
		                                                           : "SANDBOX_FAILED");
	if (found != SBX_STATE_STARTED)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	return obstacle == NULL ? state->opened(op)
	                        : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, obstacle);
}

/* --- requests ------------------------------------------------------------- */

/*
 * The same bytes to the same place: a second delivery does no harm.  The length is always
 * said: the provider's proxy stores a body without one as an empty file.
 */
SbxOpWant
sbx_agent37_send_file(SbxOp *op, const char *path, const char *bytes, size_t length,
                      SbxStep *answer)
{
	SbxAgent37State *state = op->state;
	const char *encoded = sbx_arena_url_encode(&op->arena, path);
	const char *url;

	if (encoded == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	url = sbx_arena_printf(&op->arena, "%s/v1/files/content?path=%s%s",
	                       state->instance_url, encoded,
	                       bytes == NULL ? "&disposition=attachment" : "");
	sbx_steps_request(op, bytes == NULL ? "GET" : "PUT", url, 0);
	sbx_steps_header(op, "X-Agent37-Key", "", state->api_key);
	return sbx_steps_send(op, bytes == NULL ? NULL : "application/octet-stream", bytes,
	                      length, answer);
}

/* --- refusals ------------------------------------------------------------- */

/* What is in front of the instance has no text of its own but one word. */
static const char *
agent37_edge_code(const SbxOp *op, const char *error)
{
	if (strcmp(error, "ip_not_allowed") == 0)
		return "IP_NOT_ALLOWED";
	if (strcmp(error, "instance_suspended") == 0)
		return "INSUFFICIENT_BALANCE";
	return op->response.status == 404 || op->response.status >= 500
	           ? "NO_FILE_SERVICE"
	           : sbx_steps_status_code(op);
}

static const char *
agent37_file_code(SbxOp *op)
{
	static const struct
	{
		int status;
		const char *error;
		const char *code;
	} rows[] = {
	    {400, "validation_error", "INVALID_FILE_PATH"},
	    {400, "not_a_directory", "INVALID_FILE_PATH"},
	    {403, "forbidden", "FILE_ACCESS_DENIED"},
	    {404, "file_not_found", "FILE_NOT_FOUND"},
	    {404, "not_found", "FILE_NOT_FOUND"},
	    {413, "payload_too_large", "FILE_TOO_LARGE"},
	};
	bool edge;
	const char *error = sbx_agent37_error(op, &edge);

	if (error != NULL && edge)
		return agent37_edge_code(op, error);
	for (size_t i = 0; error != NULL && i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		if (rows[i].status == op->response.status && strcmp(rows[i].error, error) == 0)
			return rows[i].code;
	}

	/* Without a code it is the template's own program that answers. */
	return error == NULL && (op->response.status == 404 || op->response.status >= 500)
	           ? "NO_FILE_SERVICE"
	           : sbx_steps_status_code(op);
}

SbxOpWant
sbx_agent37_file_refused(SbxOp *op, SbxStep *again)
{
	SbxSteps *steps = op->state;
	const char *code;

	/* That nobody answers may be told again; that a connection broke may not pass. */
	if (op->response.status == 0)
		return sbx_steps_fail_response(op, NULL);
	code = agent37_file_code(op);
	sbx_steps_note(op, code);
	if (op->response.status == 404 && code != NULL &&
	    strcmp(code, "NO_FILE_SERVICE") == 0)
	{
		steps->tidying = true;
		return sbx_agent37_look(op, agent37_file_looked);
	}
	if (!sbx_steps_is_passing(op) || steps->waited_ms >= AGENT37_SERVICE_WAIT_MS)
		return sbx_steps_fail_noted(op, code);
	return sbx_steps_wait(op, again);
}

/*
 * Nothing at the address: because there is no instance any more, or because its template
 * has a program of its own there, which may say so in the same words?
 */
static SbxOpWant
agent37_file_looked(SbxOp *op)
{
	SbxSteps *steps = op->state;

	return sbx_steps_fail_noted(
	    op, op->response.status == 404 ? "SANDBOX_GONE" : steps->noted.provider_code);
}

/* A number that is not ours is a file that is not ours. */
SbxOpWant
sbx_agent37_file_stored(SbxOp *op, size_t length, SbxStep *stored)
{
	json_t *answer = sbx_steps_object(op, false);
	int64_t size = -1;
	bool told = sbx_json_integer(answer, "size", &size);

	json_decref(answer);
	if (!told)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "NO_FILE_SERVICE");
	if (size < 0 || (uint64_t) size != length)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "UPLOAD_INCOMPLETE");
	return stored(op);
}
