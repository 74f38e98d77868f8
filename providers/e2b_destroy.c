/*
 * e2b_destroy.c
 *		Ending an E2B sandbox, also one of which only its labels are known.
 *
 * Calling a failure success leaks a sandbox until its lifetime is over, and calling a
 * success failure keeps a dead one on the books.
 */
#include <string.h>

#include "providers/e2b.h"

#define E2B_DESTROY_TIMEOUT_MS (60 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never need
 * a second arena block.  Its state and its URLs have to fit in here.
 */
#define E2B_ARENA_DESTROY (16 * 1024)

typedef struct SbxE2bDestroy
{
	SbxE2bState state; /* first */
	const char *unique_name;
	const char *launch_token; /* NULL = none */
	const char *list_url;     /* of those that have the unique name as a label */
} SbxE2bDestroy;

static SbxStep e2b_destroy_start;
static SbxStep e2b_destroy_look_up;
static SbxStep e2b_destroy_looked_up;
static SbxStep e2b_destroy_kill;
static SbxStep e2b_destroy_killed;

SbxOp *
sbx_e2b_destroy(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxE2bDestroy *destroy;
	SbxOp *op;

	if (timeout_ms <= 0)
		timeout_ms = E2B_DESTROY_TIMEOUT_MS;
	op = sbx_e2b_make_op(account, "destroy", e2b_destroy_start, sizeof(SbxE2bDestroy),
	                     E2B_ARENA_DESTROY, timeout_ms);
	if (op == NULL)
		return NULL;
	destroy = op->state;
	if (target->unique_name != NULL)
	{
		SbxPair label = {SBX_LABEL_ID, target->unique_name};

		destroy->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
		destroy->list_url = sbx_e2b_list_url(op, &label, 1);
	}
	if (target->launch_token != NULL)
		destroy->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);
	if (target->sandbox_id != NULL)
		sbx_e2b_set_target(op, target);
	return sbx_steps_made(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
e2b_destroy_start(SbxOp *op)
{
	SbxE2bDestroy *destroy = op->state;

	if (op->sandbox_id[0] == '\0')
		return destroy->list_url == NULL ? sbx_steps_refuse(op)
		                                 : e2b_destroy_look_up(op);
	if (!sbx_e2b_valid_id(op->sandbox_id))
		return sbx_steps_refuse(op);
	sbx_e2b_point_at(op, op->sandbox_id);
	return e2b_destroy_kill(op);
}

static SbxOpWant
e2b_destroy_look_up(SbxOp *op)
{
	SbxE2bDestroy *destroy = op->state;

	return sbx_e2b_send(op, "GET", destroy->list_url, NULL, e2b_destroy_looked_up);
}

/* The one that this very launch made; NULL = it is not there. */
static const json_t *
e2b_destroy_find(const SbxE2bDestroy *destroy, const json_t *page)
{
	for (size_t i = 0; i < json_array_size(page); i++)
	{
		const json_t *item = json_array_get(page, i);

		if (sbx_e2b_valid_id(sbx_json_string(item, "sandboxID")) &&
		    sbx_steps_owner(json_object_get(item, "metadata"), destroy->unique_name,
		                    destroy->launch_token) == SBX_OWNER_OURS)
			return item;
	}
	return NULL;
}

/*
 * One that is being made is in no listing, so its absence is no proof: only the end of
 * time ends it.  Labels are not unique, and another launch of the name says nothing.
 */
static SbxOpWant
e2b_destroy_looked_up(SbxOp *op)
{
	SbxE2bDestroy *destroy = op->state;
	const json_t *found;
	json_t *page;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, e2b_destroy_look_up);
	destroy->state.steps.trouble = 0;
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	page = sbx_json_parse(op->response.body, op->response.body_length, false);
	if (!json_is_array(page))
	{
		json_decref(page);
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	}
	found = e2b_destroy_find(destroy, page);
	if (found != NULL)
		sbx_e2b_point_at(op, sbx_json_string(found, "sandboxID"));
	json_decref(page);
	if (found != NULL)
		return e2b_destroy_kill(op);
	sbx_steps_note(op, "NOT_FOUND_YET");
	return sbx_steps_retry(op, e2b_destroy_look_up);
}

static SbxOpWant
e2b_destroy_kill(SbxOp *op)
{
	SbxE2bState *state = op->state;

	return sbx_e2b_send(op, "DELETE", state->control_url, NULL, e2b_destroy_killed);
}

/* 409 is one on its way from paused to running; "not found" after a try is success. */
static SbxOpWant
e2b_destroy_killed(SbxOp *op)
{
	SbxE2bDestroy *destroy = op->state;
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_worked(op);
	if (sbx_steps_is_success(op))
		return sbx_steps_destroyed(op, SBX_DESTROY_DONE);
	if (sbx_steps_is_absent(op))
		return sbx_steps_nothing_left(op);
	if (op->response.status == 409)
	{
		destroy->state.steps.trouble = 0;
		sbx_steps_note(op, "BUSY");
		return sbx_steps_retry(op, e2b_destroy_kill);
	}
	if (!sbx_steps_is_passing(op) && !op->response.too_large)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	return sbx_steps_retry_after_trouble(op, e2b_destroy_kill);
}
