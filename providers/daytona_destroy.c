/*
 * daytona_destroy.c
 *		Deleting a Daytona sandbox, also one of which only the name is known.
 *
 * Calling a failure success leaks a sandbox, and calling a success failure keeps
 * a dead one on the books.  So only an answer about this sandbox counts.
 */
#include <string.h>

#include "providers/daytona.h"

#define DAYTONA_DESTROY_TIMEOUT_MS (60 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never
 * need a second arena block.  Its state and three URLs have to fit in here.
 */
#define DAYTONA_ARENA_DESTROY (16 * 1024)

typedef struct SbxDaytonaDestroy
{
	SbxDaytonaState state; /* first */
	const char *unique_name;
	const char *launch_token; /* NULL = none */
	bool by_name;             /* it was looked for under its name */
} SbxDaytonaDestroy;

static SbxStep daytona_destroy_start;
static SbxStep daytona_destroy_look_up;
static SbxStep daytona_destroy_looked_up;
static SbxStep daytona_destroy_delete;
static SbxStep daytona_destroy_deleted;
static SbxStep daytona_destroy_look_for_moved;
static SbxStep daytona_destroy_looked_for_moved;
static SbxStep daytona_destroy_check;
static SbxStep daytona_destroy_checked;

SbxOp *
sbx_daytona_destroy(const SbxAccount *account, const SbxTarget *target,
                    int64_t timeout_ms)
{
	SbxOp *op;
	SbxDaytonaDestroy *destroy;

	if (timeout_ms <= 0)
		timeout_ms = DAYTONA_DESTROY_TIMEOUT_MS;
	op = sbx_daytona_make_op(account, "destroy", daytona_destroy_start,
	                         sizeof(SbxDaytonaDestroy), DAYTONA_ARENA_DESTROY,
	                         timeout_ms);
	if (op == NULL)
		return NULL;
	destroy = op->state;
	if (target->unique_name != NULL)
		destroy->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
	if (target->launch_token != NULL)
		destroy->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);

	/* An id too long to keep cannot be one of ours. */
	if (target->sandbox_id != NULL && !sbx_steps_valid_id(target->sandbox_id))
		destroy->state.steps.step = sbx_steps_refuse;
	else if (target->sandbox_id != NULL)
		memcpy(op->sandbox_id, target->sandbox_id, strlen(target->sandbox_id) + 1);
	return sbx_steps_made(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
daytona_destroy_start(SbxOp *op)
{
	SbxDaytonaDestroy *destroy = op->state;
	const char *id = op->sandbox_id[0] != '\0' ? op->sandbox_id : destroy->unique_name;

	if (!sbx_steps_valid_id(id))
		return sbx_steps_refuse(op);
	sbx_daytona_point_at(op, id);
	destroy->by_name = id != op->sandbox_id;
	return destroy->by_name ? daytona_destroy_look_up(op) : daytona_destroy_delete(op);
}

/*
 * A start may have made it anew under another id that nobody heard of; its name has
 * stayed.
 */
static SbxOpWant
daytona_destroy_not_found(SbxOp *op)
{
	SbxDaytonaDestroy *destroy = op->state;

	if (destroy->by_name || !sbx_steps_valid_id(destroy->unique_name))
		return sbx_steps_nothing_left(op);
	destroy->by_name = true;
	op->sandbox_id[0] = '\0';
	sbx_daytona_point_at(op, destroy->unique_name);
	return daytona_destroy_look_for_moved(op);
}

static SbxOpWant
daytona_destroy_look_for_moved(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_destroy_looked_for_moved);
}

static SbxOpWant
daytona_destroy_looked_for_moved(SbxOp *op)
{
	SbxDaytonaDestroy *destroy = op->state;
	json_t *sandbox;
	bool is_ours;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, daytona_destroy_look_for_moved);
	destroy->state.steps.trouble = 0;
	if (sbx_steps_is_absent(op))
		return sbx_steps_nothing_left(op);
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	is_ours = sbx_steps_owner(json_object_get(sandbox, "labels"), destroy->unique_name,
	                          destroy->launch_token) == SBX_OWNER_OURS &&
	          sbx_daytona_sandbox_state(sandbox) != SBX_STATE_GONE;
	if (is_ours)
		sbx_daytona_adopt(op, sandbox);
	json_decref(sandbox);
	return is_ours ? daytona_destroy_delete(op) : sbx_steps_nothing_left(op);
}

static SbxOpWant
daytona_destroy_look_up(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_destroy_looked_up);
}

/*
 * "Does not exist" is no proof here: the create whose outcome is unknown may
 * still be on its way, and look-ups are cached.  Only the end of time ends it.
 */
static SbxOpWant
daytona_destroy_looked_up(SbxOp *op)
{
	SbxDaytonaDestroy *destroy = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	SbxOwner owner;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, daytona_destroy_look_up);
	destroy->state.steps.trouble = 0;
	if (op->response.status == 404)
	{
		sbx_steps_note(op, "NOT_FOUND_YET");
		return sbx_steps_retry(op, daytona_destroy_look_up);
	}
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;

	owner = sbx_steps_owner(json_object_get(sandbox, "labels"), destroy->unique_name,
	                        destroy->launch_token);
	found = sbx_daytona_sandbox_state(sandbox);
	if (owner == SBX_OWNER_OURS)
		sbx_daytona_adopt(op, sandbox);
	json_decref(sandbox);
	if (owner == SBX_OWNER_STRANGER)
		return sbx_steps_fail_response(op, "NOT_OURS");

	/* Names are unique: while another launch has it, ours made nothing. */
	if (owner == SBX_OWNER_ANOTHER)
		return sbx_steps_destroyed(op, SBX_DESTROY_WAS_GONE);
	if (found == SBX_STATE_GONE)
		return sbx_steps_destroyed(op, SBX_DESTROY_DONE);
	return daytona_destroy_delete(op);
}

static SbxOpWant
daytona_destroy_delete(SbxOp *op)
{
	SbxDaytonaState *state = op->state;

	return sbx_daytona_send(op, "DELETE", state->sandbox_url, NULL,
	                        daytona_destroy_deleted);
}

static SbxOpWant
daytona_destroy_deleted(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	int status = op->response.status;

	state->steps.acted |= sbx_steps_may_have_worked(op);
	if (sbx_steps_is_absent(op))
		return daytona_destroy_not_found(op);
	if (sbx_steps_is_success(op))
	{
		json_t *sandbox = sbx_daytona_sandbox(op);
		bool confirmed = sandbox != NULL;

		json_decref(sandbox);
		return confirmed ? sbx_steps_destroyed(op, SBX_DESTROY_DONE)
		                 : daytona_destroy_check(op);
	}

	/* Still being made or changed by somebody: nothing was deleted, yet. */
	if (status == 409)
	{
		state->steps.trouble = 0;
		sbx_steps_note(op, "BUSY");
		return sbx_steps_retry(op, daytona_destroy_delete);
	}
	if (sbx_steps_is_passing(op) || op->response.too_large)
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return daytona_destroy_check(op);
	}
	if (status == 400 && sbx_daytona_message_has(op, "fork"))
		return sbx_steps_fail_response(op, "HAS_FORKS");
	return sbx_steps_fail_response(op, sbx_steps_status_code(op));
}

/* The delete's own answer decides nothing: ask what is there now. */
static SbxOpWant
daytona_destroy_check(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_destroy_checked);
}

static SbxOpWant
daytona_destroy_checked(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxState found;

	if (sbx_steps_is_absent(op))
		return daytona_destroy_not_found(op);
	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, daytona_destroy_delete);
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	found = sbx_daytona_sandbox_state(sandbox);
	json_decref(sandbox);
	if (found == SBX_STATE_GONE)
		return sbx_steps_destroyed(op, SBX_DESTROY_DONE);
	return sbx_steps_retry(op, daytona_destroy_delete);
}
