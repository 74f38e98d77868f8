/*
 * freestyle_vm.c
 *		Descriptions of a machine of Freestyle's, and what becomes of it.
 *
 * A paused one wakes by itself from a command, a file, or a packet, which costs.  Here
 * nothing is woken by the way: it is looked at before, and only a start starts it.  Between
 * the two it may change, so a state is no promise.
 */
#include <string.h>

#include "providers/freestyle.h"

static SbxStep freestyle_open_look;
static SbxStep freestyle_open_looked;
static SbxStep freestyle_opened;
static SbxStep freestyle_awaited;
static SbxStep freestyle_explained;

/* --- descriptions --------------------------------------------------------- */

bool
sbx_freestyle_state(const json_t *vm, SbxSandboxState *found)
{
	static const SbxStateWord words[] = {{"running", SBX_STATE_STARTED},
	                                     {"pausing", SBX_STATE_STOPPING},
	                                     {"paused", SBX_STATE_STOPPED},
	                                     {"stopped", SBX_STATE_STOPPED},
	                                     {0}};
	const char *word = sbx_json_string(vm, "state");

	*found = sbx_steps_state(words, word, false);
	return *found != SBX_STATE_STARTING ||
	       (word != NULL && strcmp(word, "starting") == 0);
}

SbxSandboxFacts *
sbx_freestyle_facts(SbxOp *op, const json_t *vm)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, vm, "id");
	sbx_freestyle_state(vm, &facts->state);
	facts->name = sbx_steps_copy_string(op, vm, "slug");
	facts->created_at = sbx_steps_copy_string(op, vm, "createdAt");
	return sbx_steps_take_labels(op, json_object_get(vm, "metadata"), facts) ? facts
	                                                                         : NULL;
}

/* A web page of something else may come with a success, too. */
json_t *
sbx_freestyle_take(SbxOp *op)
{
	json_t *vm;
	const char *id;
	const char *word;

	if (!sbx_steps_is_success(op))
	{
		sbx_freestyle_fail(op);
		return NULL;
	}
	vm = sbx_steps_object(op, false);
	id = sbx_json_string(vm, "id");
	word = sbx_json_string(vm, "state");
	if (id != NULL && strcmp(id, op->sandbox_id) == 0 && word != NULL && *word != '\0')
		return vm;
	json_decref(vm);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return NULL;
}

/* --- does it run? ----------------------------------------------------------- */

SbxOpWant
sbx_freestyle_open(SbxOp *op, SbxStep *opened)
{
	SbxFreestyleState *state = op->state;

	state->opened = opened;
	return freestyle_open_look(op);
}

static SbxOpWant
freestyle_open_look(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_open_looked);
}

static SbxOpWant
freestyle_open_looked(SbxOp *op)
{
	return sbx_steps_looked(op, freestyle_open_look, freestyle_opened);
}

static SbxOpWant
freestyle_opened(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	SbxSandboxState found;
	json_t *vm;

	if (sbx_freestyle_not_found(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	vm = sbx_freestyle_take(op);
	if (vm == NULL)
		return SBX_OP_WANT_NOTHING;
	sbx_freestyle_state(vm, &found);
	json_decref(vm);
	return found == SBX_STATE_STARTED ? state->opened(op)
	                                  : sbx_steps_fail_response(op, "NOT_STARTED");
}

/* --- waiting until it does --------------------------------------------------- */

SbxOpWant
sbx_freestyle_await(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_awaited);
}

SbxOpWant
sbx_freestyle_await_from(SbxOp *op, const json_t *vm)
{
	SbxSandboxState found;

	sbx_freestyle_state(vm, &found);
	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, sbx_freestyle_facts(op, vm));
		case SBX_STATE_STARTING:
			return sbx_steps_wait(op, sbx_freestyle_await);
		default:
			return sbx_steps_fail_response(op, "NOT_STARTED");
	}
}

static SbxOpWant
freestyle_awaited(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	json_t *vm;
	SbxOpWant want;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_freestyle_code(op));
		return sbx_steps_wait(op, sbx_freestyle_await);
	}
	if (sbx_freestyle_not_found(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	vm = sbx_freestyle_take(op);
	if (vm == NULL)
		return SBX_OP_WANT_NOTHING;

	/* What went wrong before is not why it is not there yet. */
	memset(&state->steps.noted, 0, sizeof(state->steps.noted));
	want = sbx_freestyle_await_from(op, vm);
	json_decref(vm);
	return want;
}

/* --- why it was refused ------------------------------------------------------- */

SbxOpWant
sbx_freestyle_explain(SbxOp *op, const char *code)
{
	SbxFreestyleState *state = op->state;

	sbx_steps_note(op, code);
	state->steps.tidying = true;
	return sbx_freestyle_look(op, freestyle_explained);
}

static SbxOpWant
freestyle_explained(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	const char *code = state->steps.noted.provider_code;
	SbxSandboxState found = SBX_STATE_STARTED;
	json_t *vm = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;

	if (sbx_freestyle_not_found(op))
		code = "SANDBOX_GONE";
	else if (vm != NULL)
		sbx_freestyle_state(vm, &found);
	if (found != SBX_STATE_STARTED)
		code = "NOT_STARTED";
	json_decref(vm);
	return sbx_steps_fail_noted(op, code);
}
