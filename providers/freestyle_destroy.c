/*
 * freestyle_destroy.c
 *		Deleting a machine of Freestyle's, also one that may never have been made.
 *
 * A delete may be answered before the machine is gone, so it is looked at afterwards.  Of
 * one whose id nobody has told only the slug is known, which somebody else can have by now:
 * whose it is, its metadata says.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_DESTROY_TIMEOUT_MS (120 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never need
 * a second arena block.  Its state and its URLs have to fit in here.
 */
#define FREESTYLE_ARENA_DESTROY (16 * 1024)

typedef struct SbxFreestyleDestroy
{
	SbxFreestyleState state; /* first */
	const char *slug;

	/* A delete.  One that was accepted, to be answered later, and then refused has not. */
	bool may_have_worked;
} SbxFreestyleDestroy;

static SbxStep freestyle_destroy_start;
static SbxStep freestyle_destroy_look_up;
static SbxStep freestyle_destroy_looked_up;
static SbxStep freestyle_destroy_delete;
static SbxStep freestyle_destroy_deleted;
static SbxStep freestyle_destroy_look;
static SbxStep freestyle_destroy_looked;

SbxOp *
sbx_freestyle_destroy(const SbxAccount *account, const SbxTarget *target,
                      int64_t timeout_ms)
{
	SbxOp *op = sbx_freestyle_make_op(
	    account, "destroy", freestyle_destroy_start, sizeof(SbxFreestyleDestroy),
	    FREESTYLE_ARENA_DESTROY,
	    timeout_ms > 0 ? timeout_ms : FREESTYLE_DESTROY_TIMEOUT_MS);
	SbxFreestyleDestroy *destroy;

	if (op == NULL)
		return NULL;
	destroy = op->state;
	destroy->slug = sbx_freestyle_slug(&op->arena, target->unique_name);
	if (target->unique_name != NULL)
		destroy->state.unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
	if (target->launch_token != NULL)
		destroy->state.launch_token =
		    sbx_arena_strdup(&op->arena, target->launch_token);
	if (target->sandbox_id != NULL)
		sbx_freestyle_set_target(op, target);
	return sbx_steps_made(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
freestyle_destroy_start(SbxOp *op)
{
	SbxFreestyleDestroy *destroy = op->state;
	SbxFreestyleState *state = &destroy->state;

	if (op->sandbox_id[0] != '\0')
	{
		if (!sbx_steps_valid_id(op->sandbox_id))
			return sbx_steps_refuse(op);
		sbx_freestyle_point_at(op, op->sandbox_id);
		return freestyle_destroy_delete(op);
	}
	if (destroy->slug == NULL)
		return sbx_steps_refuse(op);
	state->vm_url =
	    sbx_arena_printf(&op->arena, "%s/%s", state->vms_url, destroy->slug);
	return freestyle_destroy_look_up(op);
}

/* After a delete that may have worked, that nothing is there is its success. */
static SbxOpWant
freestyle_destroy_done(SbxOp *op)
{
	SbxFreestyleDestroy *destroy = op->state;

	return sbx_steps_destroyed(op, destroy->may_have_worked ? SBX_DESTROY_DONE
	                                                        : SBX_DESTROY_WAS_GONE);
}

/* --- by its slug -------------------------------------------------------------- */

static SbxOpWant
freestyle_destroy_look_up(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_destroy_looked_up);
}

/*
 * Slugs are unique: while another launch has it, ours is not there.  A machine that is
 * being made in the background may not be there yet, so its absence is no proof: only the
 * end of time ends it.
 */
static SbxOpWant
freestyle_destroy_looked_up(SbxOp *op)
{
	SbxFreestyleDestroy *destroy = op->state;
	SbxFreestyleState *state = &destroy->state;
	SbxOwner owner = SBX_OWNER_STRANGER;
	json_t *vm;
	bool is_there;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, freestyle_destroy_look_up);
	state->steps.trouble = 0;
	if (sbx_freestyle_not_found(op))
	{
		sbx_steps_note(op, "NOT_FOUND_YET");
		return sbx_steps_retry(op, freestyle_destroy_look_up);
	}
	if (!sbx_steps_is_success(op))
		return sbx_freestyle_fail(op);
	vm = sbx_steps_object(op, false);
	is_there = sbx_steps_valid_id(sbx_json_string(vm, "id"));
	if (is_there)
		owner = sbx_steps_owner(json_object_get(vm, "metadata"), state->unique_name,
		                        state->launch_token);
	if (owner == SBX_OWNER_OURS)
		sbx_freestyle_point_at(op, sbx_json_string(vm, "id"));
	json_decref(vm);
	if (!is_there)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	if (owner == SBX_OWNER_STRANGER)
		return sbx_steps_fail_response(op, "NOT_OURS");
	return owner == SBX_OWNER_OURS ? freestyle_destroy_delete(op)
	                               : freestyle_destroy_done(op);
}

/* --- by its id ---------------------------------------------------------------- */

static SbxOpWant
freestyle_destroy_delete(SbxOp *op)
{
	SbxFreestyleState *state = op->state;

	return sbx_freestyle_call(op, "DELETE", state->vm_url, NULL,
	                          freestyle_destroy_deleted);
}

static SbxOpWant
freestyle_destroy_deleted(SbxOp *op)
{
	SbxFreestyleDestroy *destroy = op->state;
	SbxSteps *steps = op->state;

	destroy->may_have_worked |= sbx_steps_may_have_worked(op);
	steps->acted |= destroy->may_have_worked;
	if (sbx_freestyle_not_found(op))
		return freestyle_destroy_done(op);
	if (sbx_steps_is_success(op))
	{
		steps->trouble = 0;
		return freestyle_destroy_look(op);
	}
	if (op->response.status == 409)
	{
		steps->trouble = 0;
		sbx_steps_note(op, "BUSY");
		return sbx_steps_retry(op, freestyle_destroy_delete);
	}
	if (!sbx_steps_is_passing(op) && !op->response.too_large)
		return sbx_freestyle_fail(op);
	return sbx_steps_retry_after_trouble(op, freestyle_destroy_delete);
}

static SbxOpWant
freestyle_destroy_look(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_destroy_looked);
}

static SbxOpWant
freestyle_destroy_looked(SbxOp *op)
{
	SbxSteps *steps = op->state;
	json_t *vm;

	if (sbx_freestyle_not_found(op))
		return freestyle_destroy_done(op);
	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, freestyle_destroy_look);
	vm = sbx_freestyle_take(op);
	if (vm == NULL)
		return SBX_OP_WANT_NOTHING;
	json_decref(vm);
	steps->trouble = 0;
	sbx_steps_note(op, "STILL_THERE");
	return sbx_steps_retry(op, freestyle_destroy_look);
}
