/*
 * microsandbox_destroy.c
 *		Deleting a Microsandbox sandbox, also one of which only its name is known.
 *
 * A name can be somebody else's by now, so a sandbox that was found by its name is looked
 * at, and deleted by its UUID.
 */
#include <string.h>

#include "providers/microsandbox.h"

#define MICROSANDBOX_DESTROY_TIMEOUT_MS (60 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never need
 * a second arena block.  Its state and its URLs have to fit in here.
 */
#define MICROSANDBOX_ARENA_DESTROY (16 * 1024)

typedef struct SbxMicrosandboxDestroy
{
	SbxMicrosandboxState state; /* first */
	const char *unique_name;
	const char *launch_token; /* NULL = none */
	const char *name_url;     /* of the one that has the unique name */
	bool stopped;             /* it was told to stop */
} SbxMicrosandboxDestroy;

static SbxStep microsandbox_destroy_start;
static SbxStep microsandbox_destroy_look_up;
static SbxStep microsandbox_destroy_looked_up;
static SbxStep microsandbox_destroy_delete;
static SbxStep microsandbox_destroy_deleted;
static SbxStep microsandbox_destroy_stopped;

SbxOp *
sbx_microsandbox_destroy(const SbxAccount *account, const SbxTarget *target,
                         int64_t timeout_ms)
{
	SbxMicrosandboxDestroy *destroy;
	SbxOp *op;

	if (timeout_ms <= 0)
		timeout_ms = MICROSANDBOX_DESTROY_TIMEOUT_MS;
	op = sbx_microsandbox_make_op(account, "destroy", microsandbox_destroy_start,
	                              sizeof(SbxMicrosandboxDestroy),
	                              MICROSANDBOX_ARENA_DESTROY, timeout_ms);
	if (op == NULL)
		return NULL;
	destroy = op->state;
	if (target->unique_name != NULL && sbx_steps_valid_id(target->unique_name))
	{
		destroy->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
		destroy->name_url = sbx_arena_printf(
		    &op->arena, "%s/by-name/%s", destroy->state.api_url, target->unique_name);
	}
	if (target->launch_token != NULL)
		destroy->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);
	if (target->sandbox_id != NULL)
		sbx_microsandbox_set_target(op, target);
	return sbx_steps_made(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
microsandbox_destroy_start(SbxOp *op)
{
	SbxMicrosandboxDestroy *destroy = op->state;

	if (op->sandbox_id[0] == '\0')
		return destroy->name_url == NULL ? sbx_steps_refuse(op)
		                                 : microsandbox_destroy_look_up(op);
	if (!sbx_microsandbox_valid_id(op->sandbox_id))
		return sbx_steps_refuse(op);
	sbx_microsandbox_point_at(op, op->sandbox_id);
	return microsandbox_destroy_delete(op);
}

/* --- by its name ------------------------------------------------------------ */

static SbxOpWant
microsandbox_destroy_look_up(SbxOp *op)
{
	SbxMicrosandboxDestroy *destroy = op->state;

	return sbx_microsandbox_send(op, "GET", destroy->name_url, NULL,
	                             microsandbox_destroy_looked_up);
}

/* A lost create can still be under way: only the end of time ends that. */
static SbxOpWant
microsandbox_destroy_not_yet(SbxOp *op)
{
	sbx_steps_note(op, "NOT_FOUND_YET");
	return sbx_steps_retry(op, microsandbox_destroy_look_up);
}

/*
 * Its labels tell whose it is.  While they are not there yet, which can be long for one that
 * waits for a free place, the name does: a launch without a token has one that was drawn for
 * it alone.  A name that was used before may be anybody's.
 */
static SbxOpWant
microsandbox_destroy_judge(SbxOp *op, const json_t *sandbox)
{
	SbxMicrosandboxDestroy *destroy = op->state;
	const json_t *spec = json_object_get(sandbox, "spec");
	const char *id = sbx_json_string(sandbox, "id");
	const char *name = sbx_json_string(sandbox, "name");
	bool told = spec != NULL && !json_is_null(spec);

	if (!sbx_microsandbox_valid_id(id) || name == NULL ||
	    strcmp(name, destroy->unique_name) != 0)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	if (!told && destroy->launch_token != NULL)
		return microsandbox_destroy_not_yet(op);
	switch (told ? sbx_steps_owner(json_object_get(spec, "labels"),
	                               destroy->unique_name, destroy->launch_token)
	             : SBX_OWNER_OURS)
	{
		case SBX_OWNER_OURS:
			sbx_microsandbox_point_at(op, id);
			return microsandbox_destroy_delete(op);
		case SBX_OWNER_ANOTHER:
			return sbx_steps_destroyed(op, SBX_DESTROY_WAS_GONE);
		case SBX_OWNER_STRANGER:
			break;
	}
	return sbx_steps_fail_response(op, "NOT_OURS");
}

static SbxOpWant
microsandbox_destroy_looked_up(SbxOp *op)
{
	SbxMicrosandboxDestroy *destroy = op->state;
	json_t *sandbox;
	SbxOpWant want;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, microsandbox_destroy_look_up);
	destroy->state.steps.trouble = 0;
	if (sbx_microsandbox_is_gone(op))
		return microsandbox_destroy_not_yet(op);
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sandbox = sbx_steps_object(op, false);
	want = microsandbox_destroy_judge(op, sandbox);
	json_decref(sandbox);
	return want;
}

/* --- by its UUID ------------------------------------------------------------ */

/* It need not be stopped for that. */
static SbxOpWant
microsandbox_destroy_delete(SbxOp *op)
{
	SbxMicrosandboxState *state = op->state;

	return sbx_microsandbox_send(op, "DELETE", state->url, NULL,
	                             microsandbox_destroy_deleted);
}

/* Should one be refused for its state after all, it is told to stop, once. */
static SbxOpWant
microsandbox_destroy_busy(SbxOp *op)
{
	SbxMicrosandboxDestroy *destroy = op->state;
	const char *url;

	destroy->state.steps.trouble = 0;
	sbx_steps_note(op, "BUSY");
	if (destroy->stopped)
		return sbx_steps_retry(op, microsandbox_destroy_delete);
	destroy->stopped = true;
	url = sbx_arena_printf(&op->arena, "%s/stop", destroy->state.url);
	return sbx_microsandbox_send(op, "POST", url, "{}", microsandbox_destroy_stopped);
}

static SbxOpWant
microsandbox_destroy_stopped(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_arrived(op);
	return sbx_steps_retry(op, microsandbox_destroy_delete);
}

/* "Not found" after a try is success. */
static SbxOpWant
microsandbox_destroy_deleted(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->acted |= sbx_steps_may_have_worked(op);
	if (sbx_steps_is_success(op))
		return sbx_steps_destroyed(op, SBX_DESTROY_DONE);
	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_nothing_left(op);
	if (op->response.status == 409)
		return microsandbox_destroy_busy(op);
	if (!sbx_steps_is_passing(op) && !op->response.too_large)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	return sbx_steps_retry_after_trouble(op, microsandbox_destroy_delete);
}
