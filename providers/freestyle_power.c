/*
 * freestyle_power.c
 *		Starting and pausing a machine of Freestyle's, and waiting for one that starts.
 *
 * There is no stop.  A pause keeps memory and files and takes the machine off the bill; so
 * that is what stopping is here.  What the provider answers to a request for the state that
 * is reached already is not known, so it is looked at before each.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_POWER_TIMEOUT_MS (120 * 1000)

/* Every power operation's own state. */
typedef struct SbxFreestylePower
{
	SbxFreestyleState state; /* first */
	SbxSandboxState wanted;
	const char *verb;
	bool deletes_at_stop; /* by the setting */
	bool refused;         /* it was asked for, and answered 409 */
} SbxFreestylePower;

static SbxStep freestyle_ready_look;
static SbxStep freestyle_ready_looked;
static SbxStep freestyle_power_look;
static SbxStep freestyle_power_looked;
static SbxStep freestyle_power_answered;
static SbxStep freestyle_stop_start;

static SbxOp *
freestyle_make_power_op(const SbxAccount *account, const char *operation,
                        SbxStep *first_step, const SbxTarget *target,
                        int64_t timeout_ms)
{
	const SbxFieldValue *auto_delete = &account->settings[FREESTYLE_SET_AUTO_DELETE];
	SbxOp *op =
	    sbx_freestyle_make_op(account, operation, first_step, sizeof(SbxFreestylePower),
	                          FREESTYLE_ARENA_SMALL,
	                          timeout_ms > 0 ? timeout_ms : FREESTYLE_POWER_TIMEOUT_MS);
	SbxFreestylePower *power;

	if (op == NULL)
		return NULL;
	power = op->state;
	power->deletes_at_stop = auto_delete->is_set && auto_delete->integer == 0;
	sbx_freestyle_set_target(op, target);
	return op;
}

/*
 * What a look says, as the facts, and the rest of it in *vm, which the caller owns.  False =
 * there is nothing to go on with, and *want is how it ends or is asked again.
 */
static bool
freestyle_power_take(SbxOp *op, SbxStep *look, json_t **vm, SbxOpWant *want)
{
	SbxFreestyleState *state = op->state;

	*want = SBX_OP_WANT_NOTHING;
	if (sbx_steps_is_passing(op))
	{
		/* A refusal of what was asked for is the better reason. */
		if (state->steps.noted.phase == SBX_PHASE_NONE)
			sbx_steps_note(op, sbx_freestyle_code(op));
		*want = sbx_steps_wait(op, look);
		return false;
	}
	if (sbx_freestyle_not_found(op))
	{
		sbx_steps_fail_response(op, "SANDBOX_GONE");
		return false;
	}
	*vm = sbx_freestyle_take(op);
	if (*vm == NULL)
		return false;
	state->facts = sbx_freestyle_facts(op, *vm);
	if (state->facts != NULL)
		return true;
	json_decref(*vm);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return false;
}

/* --- waiting until it takes commands ---------------------------------------- */

SbxOp *
sbx_freestyle_wait_ready(const SbxAccount *account, const SbxTarget *target,
                         int64_t timeout_ms)
{
	SbxOp *op = freestyle_make_power_op(account, "waitReady", freestyle_ready_look,
	                                    target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
freestyle_ready_look(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_ready_looked);
}

/* Once it was seen, "not yet" can be the result. */
static SbxOpWant
freestyle_ready_looked(SbxOp *op)
{
	SbxFreestyleState *state = op->state;
	json_t *vm;
	SbxOpWant want;

	if (!freestyle_power_take(op, freestyle_ready_look, &vm, &want))
		return want;
	json_decref(vm);
	switch (state->facts->state)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, state->facts);
		case SBX_STATE_STARTING:
			state->steps.result = state->facts;
			return sbx_steps_wait(op, sbx_freestyle_await);
		default:
			return sbx_steps_fail_response(op, "NOT_STARTED");
	}
}

/* --- start and stop ---------------------------------------------------------- */

SbxOp *
sbx_freestyle_start(const SbxAccount *account, const SbxTarget *target,
                    int64_t timeout_ms)
{
	SbxOp *op = freestyle_make_power_op(account, "start", freestyle_power_look, target,
	                                    timeout_ms);
	SbxFreestylePower *power;

	if (op == NULL)
		return NULL;
	power = op->state;
	power->wanted = SBX_STATE_STARTED;
	power->verb = "start";
	return sbx_steps_made(op);
}

SbxOp *
sbx_freestyle_stop(const SbxAccount *account, const SbxTarget *target,
                   int64_t timeout_ms)
{
	SbxOp *op = freestyle_make_power_op(account, "stop", freestyle_stop_start, target,
	                                    timeout_ms);
	SbxFreestylePower *power;

	if (op == NULL)
		return NULL;
	power = op->state;
	power->wanted = SBX_STATE_STOPPED;
	power->verb = "pause";
	return sbx_steps_made(op);
}

static SbxOpWant
freestyle_stop_start(SbxOp *op)
{
	SbxFreestylePower *power = op->state;

	return power->deletes_at_stop
	           ? sbx_steps_fail(op, SBX_PHASE_NONE, "STOP_WOULD_DESTROY")
	           : freestyle_power_look(op);
}

static SbxOpWant
freestyle_power_look(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_power_looked);
}

/* Delivered once: what a second one does to a machine that has changed is not known. */
static SbxOpWant
freestyle_power_send(SbxOp *op)
{
	SbxFreestylePower *power = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/%s", power->state.vm_url, power->verb);
	SbxOpWant want =
	    sbx_freestyle_call(op, "POST", url, "{}", freestyle_power_answered);

	op->request.timeout_ms = 0;
	return want;
}

/* The setting may have come after the machine: what it says itself counts. */
static bool
freestyle_would_destroy(const SbxFreestylePower *power, const json_t *vm)
{
	int64_t seconds = -1;

	return power->wanted == SBX_STATE_STOPPED &&
	       sbx_json_integer(vm, "autoDeleteSeconds", &seconds) && seconds == 0;
}

static SbxOpWant
freestyle_power_looked(SbxOp *op)
{
	SbxFreestylePower *power = op->state;
	SbxFreestyleState *state = &power->state;
	SbxSandboxState found;
	bool would_destroy;
	json_t *vm;
	SbxOpWant want;

	if (!freestyle_power_take(op, freestyle_power_look, &vm, &want))
		return want;
	found = state->facts->state;
	would_destroy = freestyle_would_destroy(power, vm);
	json_decref(vm);
	if (found == power->wanted)
		return sbx_op_succeed(op, state->facts);
	if (found == SBX_STATE_STARTING || found == SBX_STATE_STOPPING)
		return sbx_steps_wait(op, freestyle_power_look);
	if (would_destroy)
		return sbx_steps_fail(op, SBX_PHASE_NONE, "STOP_WOULD_DESTROY");

	/* Not on its way anywhere, and refused: its budget is spent, or something like it. */
	return power->refused
	           ? sbx_steps_fail_noted(op, "CONFLICT")
	           : sbx_steps_ask(op, freestyle_power_look, freestyle_power_send);
}

/* Whatever it says, looking tells; but a refusal that lasts is the end. */
static SbxOpWant
freestyle_power_answered(SbxOp *op)
{
	SbxFreestylePower *power = op->state;
	const char *code = sbx_freestyle_code(op);

	power->state.steps.acted |= sbx_steps_may_have_arrived(op);
	power->state.steps.accepted = sbx_steps_is_success(op);
	if (power->state.steps.accepted)
	{
		memset(&power->state.steps.noted, 0, sizeof(power->state.steps.noted));
		return freestyle_power_look(op);
	}
	if (sbx_freestyle_not_found(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	power->refused = op->response.status == 409;
	if (!power->refused &&
	    (!sbx_steps_is_passing(op) || (code != NULL && strcmp(code, "CAPACITY") == 0)))
		return sbx_steps_fail_response(op, code);
	sbx_steps_note(op, code);
	return sbx_steps_retry(op, freestyle_power_look);
}
