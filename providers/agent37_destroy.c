/*
 * agent37_destroy.c
 *		Deleting an Agent37 instance, also one of which only its metadata is known.
 *
 * An instance lives, and costs, until it is deleted: calling a failure success leaks it
 * for good.
 */
#include <string.h>

#include "providers/agent37.h"

/* A delete takes up to 7 s; what is under way meanwhile has to be waited for. */
#define AGENT37_DESTROY_TIMEOUT_MS (90 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never need
 * a second arena block.  Its state and its URLs have to fit in here.
 */
#define AGENT37_ARENA_DESTROY (16 * 1024)

typedef struct SbxAgent37Destroy
{
	SbxAgent37State state; /* first */
	const char *unique_name;
	const char *launch_token; /* NULL = none */
} SbxAgent37Destroy;

static SbxStep agent37_destroy_start;
static SbxStep agent37_destroy_look_up;
static SbxStep agent37_destroy_looked_up;
static SbxStep agent37_destroy_delete;
static SbxStep agent37_destroy_deleted;

SbxOp *
sbx_agent37_destroy(const SbxAccount *account, const SbxTarget *target,
                    int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_agent37_make_op(account, "destroy", agent37_destroy_start,
	                        sizeof(SbxAgent37Destroy), AGENT37_ARENA_DESTROY,
	                        timeout_ms > 0 ? timeout_ms : AGENT37_DESTROY_TIMEOUT_MS);
	SbxAgent37Destroy *destroy;

	if (op == NULL)
		return NULL;
	destroy = op->state;
	if (target->unique_name != NULL)
		destroy->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
	if (target->launch_token != NULL)
		destroy->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);
	if (target->sandbox_id != NULL)
		sbx_agent37_set_target(op, target);
	return sbx_steps_made(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
agent37_destroy_start(SbxOp *op)
{
	SbxAgent37Destroy *destroy = op->state;

	if (op->sandbox_id[0] == '\0')
		return destroy->unique_name == NULL ? sbx_steps_refuse(op)
		                                    : agent37_destroy_look_up(op);
	if (!sbx_steps_valid_id(op->sandbox_id))
		return sbx_steps_refuse(op);
	sbx_agent37_point_at(op, op->sandbox_id);
	return agent37_destroy_delete(op);
}

/* --- by its metadata -------------------------------------------------------- */

static SbxOpWant
agent37_destroy_look_up(SbxOp *op)
{
	return sbx_agent37_list(op, agent37_destroy_looked_up);
}

/* The one that this very launch made, whatever became of it; NULL = it is not there. */
static const char *
agent37_destroy_find(const SbxAgent37Destroy *destroy, const json_t *instances)
{
	for (size_t i = 0; i < json_array_size(instances); i++)
	{
		const json_t *instance = json_array_get(instances, i);
		const char *id = sbx_json_string(instance, "id");

		if (sbx_steps_valid_id(id) &&
		    sbx_steps_owner(json_object_get(instance, "metadata"), destroy->unique_name,
		                    destroy->launch_token) == SBX_OWNER_OURS)
			return id;
	}
	return NULL;
}

/*
 * Nobody promises that one is listed while it is being made, so its absence is no proof:
 * only the end of time ends it.
 */
static SbxOpWant
agent37_destroy_looked_up(SbxOp *op)
{
	SbxAgent37Destroy *destroy = op->state;
	json_t *instances;
	const char *found;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, agent37_destroy_look_up);
	destroy->state.steps.trouble = 0;
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	instances = sbx_agent37_take_list(op);
	if (instances == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	found = agent37_destroy_find(destroy, instances);
	if (found != NULL)
		sbx_agent37_point_at(op, found);
	json_decref(instances);
	if (found != NULL)
		return agent37_destroy_delete(op);
	sbx_steps_note(op, "NOT_FOUND_YET");
	return sbx_steps_retry(op, agent37_destroy_look_up);
}

/* --- by its id -------------------------------------------------------------- */

static SbxOpWant
agent37_destroy_delete(SbxOp *op)
{
	SbxAgent37State *state = op->state;

	return sbx_agent37_send(op, "DELETE", state->control_url, NULL,
	                        agent37_destroy_deleted);
}

/* A wrong address may answer everything with a web page. */
static bool
agent37_says_deleted(SbxOp *op)
{
	json_t *answer = sbx_steps_is_success(op) ? sbx_steps_object(op, false) : NULL;
	bool says = json_is_true(json_object_get(answer, "deleted"));

	json_decref(answer);
	return says;
}

/* 409 is one on its way from state to state.  "Not found" after a try is success. */
static SbxOpWant
agent37_destroy_deleted(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_worked(op);
	if (agent37_says_deleted(op))
		return sbx_steps_destroyed(op, SBX_DESTROY_DONE);
	if (sbx_steps_is_absent(op))
		return sbx_steps_nothing_left(op);
	if (op->response.status == 409)
	{
		steps->trouble = 0;
		sbx_steps_note(op, "BUSY");
		return sbx_steps_retry(op, agent37_destroy_delete);
	}
	if (!sbx_steps_is_passing(op) && !op->response.too_large &&
	    !sbx_steps_is_success(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	return sbx_steps_retry_after_trouble(op, agent37_destroy_delete);
}
