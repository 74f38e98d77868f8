/*
 * agent37_hosting.c
 *		The frame of all operations of Agent37, and the plane that runs its instances.
 */
#include <string.h>

#include "providers/agent37.h"

#define AGENT37_API_URL "https://api.agent37.com"

/* No single exchange may eat the whole budget of an operation that can retry. */
#define AGENT37_EXCHANGE_MS (20 * 1000)

/* Longer than every code there is. */
#define AGENT37_ERROR_MAX 64

/* --- the frame of an operation -------------------------------------------- */

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_agent37_make_op(const SbxAccount *account, const char *operation,
                    SbxStep *first_step, size_t state_size, size_t first_block,
                    int64_t timeout_ms)
{
	const SbxFieldValue *api = &account->settings[AGENT37_SET_API_URL];
	const SbxFieldValue *instances = &account->settings[AGENT37_SET_INSTANCE_URL];
	SbxOp *op =
	    sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	SbxAgent37State *state;
	const char *api_url;

	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_key = account->credentials[0];
	api_url = sbx_steps_base_url(op, api->is_set ? api->text : AGENT37_API_URL);
	state->instances_url = sbx_arena_printf(&op->arena, "%s/v1/instances", api_url);
	if (instances->is_set)
		state->fixed_url = sbx_steps_base_url(op, instances->text);
	if (state->api_key == NULL)
		state->steps.step = sbx_steps_refuse;
	return op;
}

void
sbx_agent37_point_at(SbxOp *op, const char *id)
{
	SbxAgent37State *state = op->state;

	memmove(op->sandbox_id, id, strlen(id) + 1); /* it may be that very text */
	state->control_url =
	    sbx_arena_printf(&op->arena, "%s/%s", state->instances_url, id);
}

void
sbx_agent37_set_target(SbxOp *op, const SbxTarget *target)
{
	if (sbx_steps_valid_id(target->sandbox_id))
		sbx_agent37_point_at(op, target->sandbox_id);
	else
		((SbxAgent37State *) op->state)->steps.step = sbx_steps_refuse;
}

/* --- requests ------------------------------------------------------------- */

SbxOpWant
sbx_agent37_send(SbxOp *op, const char *method, const char *url, const char *body,
                 SbxStep *answer)
{
	SbxAgent37State *state = op->state;

	sbx_steps_request(op, method, url, AGENT37_EXCHANGE_MS);
	sbx_steps_header(op, "Authorization", "Bearer ", state->api_key);
	return sbx_steps_send_json(op, body, answer);
}

SbxOpWant
sbx_agent37_look(SbxOp *op, SbxStep *answer)
{
	SbxAgent37State *state = op->state;

	return sbx_agent37_send(op, "GET", state->control_url, NULL, answer);
}

SbxOpWant
sbx_agent37_list(SbxOp *op, SbxStep *answer)
{
	SbxAgent37State *state = op->state;

	return sbx_agent37_send(op, "GET", state->instances_url, NULL, answer);
}

/* Any other member is refused. */
const char *
sbx_agent37_exec_body(SbxOp *op, const char *text)
{
	json_t *body = sbx_json_new_object();
	const char *printed = NULL;

	if (text != NULL && json_object_set_new(body, "command", json_string(text)) == 0)
		printed = sbx_json_print(&op->arena, body);
	json_decref(body);
	return printed;
}

SbxOpWant
sbx_agent37_exec(SbxOp *op, const char *body, SbxStep *answer)
{
	SbxAgent37State *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/exec", state->control_url);

	if (body == NULL)
		return sbx_steps_fail(op, SBX_PHASE_NONE, NULL);
	return sbx_agent37_send(op, "POST", url, body, answer);
}

/* --- refusals ------------------------------------------------------------- */

const char *
sbx_agent37_error(SbxOp *op, bool *edge)
{
	json_t *answer = sbx_steps_object(op, false);
	const char *flat = sbx_json_string(answer, "error");
	const char *code =
	    flat != NULL ? flat : sbx_json_string(json_object_get(answer, "error"), "code");

	*edge = flat != NULL;
	if (code != NULL)
		code = sbx_arena_strndup(&op->arena, code, strnlen(code, AGENT37_ERROR_MAX));
	json_decref(answer);
	return code;
}

typedef struct Agent37Refusal
{
	int status;
	const char *error;
	SbxAllocation allocation; /* what it proves when a create is answered so */
	const char *code;
} Agent37Refusal;

/*
 * The provider's code counts, and it has to come with its own status: 409 alone has four
 * meanings, and a body alone may be anybody's.  What is not listed proves nothing.
 */
static const Agent37Refusal agent37_refusals[] = {
    {400, "invalid_request", SBX_ALLOCATION_NONE, "BAD_REQUEST"},
    {401, "invalid_api_key", SBX_ALLOCATION_NONE, SBX_CODE_UNAUTHORIZED},
    {402, "insufficient_balance", SBX_ALLOCATION_NONE, "INSUFFICIENT_BALANCE"},
    {403, "ip_not_allowed", SBX_ALLOCATION_NONE, "IP_NOT_ALLOWED"},
    {403, "shared_unavailable", SBX_ALLOCATION_NONE, "SHARED_UNAVAILABLE"},
    {403, "tier_limit", SBX_ALLOCATION_NONE, "TIER_LIMIT"},
    {404, "not_found", SBX_ALLOCATION_NONE, "NOT_FOUND"},
    {429, "rate_limited", SBX_ALLOCATION_NONE, "RATE_LIMITED"},

    /* The account is full, or all hosts are. */
    {409, "instance_limit_reached", SBX_ALLOCATION_NONE, "CAPACITY"},
    {503, "no_capacity", SBX_ALLOCATION_NONE, "CAPACITY"},

    /* Of a start; nobody promises what they mean of a create. */
    {409, "capacity_unavailable", SBX_ALLOCATION_UNKNOWN, "CAPACITY"},
    {409, "try_again", SBX_ALLOCATION_UNKNOWN, "BUSY"},

    /*
     * Of a create: an instance that failed may be left behind.  Of an exec: the command
     * may have run, up to the time after which the provider gives up on it.
     */
    {500, "provisioning_failed", SBX_ALLOCATION_UNKNOWN, "PROVISIONING_FAILED"},
    {502, "provisioning_failed", SBX_ALLOCATION_UNKNOWN, "PROVISIONING_FAILED"},
};

const char *
sbx_agent37_error_code(SbxOp *op, SbxAllocation *allocation)
{
	bool edge;
	const char *error = sbx_agent37_error(op, &edge);

	*allocation = SBX_ALLOCATION_UNKNOWN;
	for (size_t i = 0; i < sizeof(agent37_refusals) / sizeof(agent37_refusals[0]); i++)
	{
		const Agent37Refusal *refusal = &agent37_refusals[i];

		if (error == NULL || refusal->status != op->response.status ||
		    strcmp(refusal->error, error) != 0)
			continue;
		*allocation = refusal->allocation;
		return refusal->code;
	}
	return sbx_steps_status_code(op);
}

SbxOpWant
sbx_agent37_fail(SbxOp *op)
{
	SbxAllocation allocation;

	return sbx_steps_fail_response(op, sbx_agent37_error_code(op, &allocation));
}

/* --- descriptions --------------------------------------------------------- */

SbxSandboxState
sbx_agent37_state(const json_t *instance)
{
	static const SbxStateWord words[] = {
	    {"running", SBX_STATE_STARTED}, {"stopping", SBX_STATE_STOPPING},
	    {"stopped", SBX_STATE_STOPPED}, {"sleeping", SBX_STATE_STOPPED},
	    {"failed", SBX_STATE_FAILED},   {"deleting", SBX_STATE_GONE},
	    {"deleted", SBX_STATE_GONE},    {0}};

	return sbx_steps_state(words, sbx_json_string(instance, "status"), false);
}

SbxSandboxFacts *
sbx_agent37_facts(SbxOp *op, const json_t *instance)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
	int64_t created;

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, instance, "id");
	facts->state = sbx_agent37_state(instance);
	facts->name = sbx_steps_copy_string(op, instance, "name");
	if (sbx_json_integer(instance, "created", &created))
		facts->created_at = sbx_steps_time_text(op, created);
	return sbx_steps_take_labels(op, json_object_get(instance, "metadata"), facts)
	           ? facts
	           : NULL;
}

json_t *
sbx_agent37_take_instance(SbxOp *op)
{
	json_t *instance;
	const char *id;
	const char *status;

	if (op->response.status != 200)
	{
		sbx_agent37_fail(op);
		return NULL;
	}
	instance = sbx_steps_object(op, false);
	id = sbx_json_string(instance, "id");
	status = sbx_json_string(instance, "status");
	if (id != NULL && strcmp(id, op->sandbox_id) == 0 && status != NULL &&
	    *status != '\0')
		return instance;
	json_decref(instance);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return NULL;
}

/* There are no pages today; one that announces another is not all there is. */
json_t *
sbx_agent37_take_list(SbxOp *op)
{
	json_t *answer = sbx_steps_object(op, false);
	const json_t *next = json_object_get(answer, "next");
	json_t *data = json_object_get(answer, "data");

	data = json_is_array(data) && (next == NULL || json_is_null(next))
	           ? json_incref(data)
	           : NULL;
	json_decref(answer);
	return data;
}
