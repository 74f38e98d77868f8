/*
 * e2b_power.c
 *		Pausing and resuming an E2B sandbox, and waiting for one that resumes.
 *
 * A paused sandbox keeps memory and files, and is stopped as far as anybody can tell.
 */
#include <string.h>

#include "providers/e2b.h"

#define E2B_POWER_TIMEOUT_MS  (90 * 1000)
#define E2B_POWER_EXCHANGE_MS (75 * 1000)

typedef struct SbxE2bPower
{
	SbxE2bState state; /* first */
	SbxSandboxFacts *facts;
} SbxE2bPower;

static SbxStep e2b_ready_look;
static SbxStep e2b_ready_looked;
static SbxStep e2b_ready_asked;
static SbxStep e2b_start_send;
static SbxStep e2b_start_answered;
static SbxStep e2b_stop_send;
static SbxStep e2b_stop_answered;
static SbxStep e2b_stop_look;
static SbxStep e2b_stop_looked;

static SbxOp *
e2b_make_power_op(const SbxAccount *account, const char *operation, SbxStep *first_step,
                  const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = sbx_e2b_make_op(account, operation, first_step, sizeof(SbxE2bPower),
	                            E2B_ARENA_SMALL,
	                            timeout_ms > 0 ? timeout_ms : E2B_POWER_TIMEOUT_MS);

	if (op != NULL)
		sbx_e2b_set_target(op, target);
	return op;
}

/* --- waiting until it takes commands --------------------------------------- */

SbxOp *
sbx_e2b_wait_ready(const SbxAccount *account, const SbxTarget *target,
                   int64_t timeout_ms)
{
	SbxOp *op =
	    e2b_make_power_op(account, "waitReady", e2b_ready_look, target, timeout_ms);

	if (op == NULL)
		return NULL;
	((SbxSteps *) op->state)->unready_is_result = true;
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_ready_look(SbxOp *op)
{
	return sbx_e2b_look(op, e2b_ready_looked);
}

static SbxOpWant
e2b_ready_looked(SbxOp *op)
{
	SbxE2bPower *power = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool usable;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, e2b_ready_look);
	}
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_e2b_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;

	/* What went wrong before is not why it is not ready. */
	memset(&power->state.steps.noted, 0, sizeof(power->state.steps.noted));
	found = sbx_e2b_sandbox_state(sandbox);
	usable = sbx_e2b_learn_envd(op, sandbox);
	sbx_steps_allow_unready(op, sandbox, sbx_e2b_facts);
	if (found == SBX_STATE_STARTED)
		power->facts = sbx_e2b_facts(op, sandbox);
	json_decref(sandbox);
	if (found == SBX_STATE_STOPPED)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	if (found != SBX_STATE_STARTED)
		return sbx_steps_wait(op, e2b_ready_look);
	if (!usable)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return sbx_e2b_send_envd(op, "GET", "/health", NULL, NULL, 0, e2b_ready_asked);
}

static SbxOpWant
e2b_ready_asked(SbxOp *op)
{
	SbxE2bPower *power = op->state;

	if (sbx_steps_is_success(op))
		return sbx_op_succeed(op, power->facts);
	sbx_steps_note(op, "NOT_READY");
	return sbx_steps_is_passing(op) ? sbx_steps_wait(op, e2b_ready_look)
	                                : sbx_steps_fail_response(op, "NOT_READY");
}

/* --- start ---------------------------------------------------------------- */

SbxOp *
sbx_e2b_start(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = e2b_make_power_op(account, "start", e2b_start_send, target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
e2b_start_send(SbxOp *op)
{
	SbxE2bState *state = op->state;
	SbxOpWant want = sbx_e2b_connect(op, state->lifetime_s, e2b_start_answered);

	op->request.timeout_ms = E2B_POWER_EXCHANGE_MS;
	return want;
}

static SbxOpWant
e2b_start_answered(SbxOp *op)
{
	SbxE2bState *state = op->state;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	if (sbx_steps_is_success(op))
		return e2b_ready_look(op);
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");

	/* A running sandbox takes a place, and there may be none. */
	if (op->response.status == 429 && !sbx_e2b_tells_when(op))
		return sbx_steps_fail_response(op, "CAPACITY");
	if (op->response.status != 409 && !sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sbx_steps_note(op, op->response.status == 409 ? "BUSY" : sbx_steps_status_code(op));
	return sbx_steps_wait(op, e2b_start_send);
}

/* --- stop ----------------------------------------------------------------- */

SbxOp *
sbx_e2b_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = e2b_make_power_op(account, "stop", e2b_stop_look, target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
e2b_stop_look(SbxOp *op)
{
	return sbx_e2b_look(op, e2b_stop_looked);
}

static SbxOpWant
e2b_stop_looked(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, e2b_stop_look);
	}
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_e2b_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_e2b_facts(op, sandbox);
	json_decref(sandbox);
	if (facts == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	switch (facts->state)
	{
		case SBX_STATE_STOPPED:
			return sbx_op_succeed(op, facts);
		case SBX_STATE_STARTED:
			return sbx_steps_ask(op, e2b_stop_look, e2b_stop_send);
		default:
			return sbx_steps_wait(op, e2b_stop_look);
	}
}

static SbxOpWant
e2b_stop_send(SbxOp *op)
{
	SbxE2bState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/pause", state->control_url);
	SbxOpWant want = sbx_e2b_send(op, "POST", url, "{}", e2b_stop_answered);

	op->request.timeout_ms = E2B_POWER_EXCHANGE_MS;
	return want;
}

/* 409 is one that is paused already, or in between: looking tells. */
static SbxOpWant
e2b_stop_answered(SbxOp *op)
{
	SbxE2bState *state = op->state;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	state->steps.accepted = sbx_steps_is_success(op);
	if (state->steps.accepted)
		return e2b_stop_look(op);
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (op->response.status != 409 && !sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sbx_steps_note(op, op->response.status == 409 ? "BUSY" : sbx_steps_status_code(op));
	return sbx_steps_wait(op, e2b_stop_look);
}
