/*
 * microsandbox_power.c
 *		Looking at a Microsandbox sandbox, starting and stopping it.
 */
#include <string.h>

#include "providers/microsandbox.h"

#define MICROSANDBOX_GET_TIMEOUT_MS   (10 * 1000)
#define MICROSANDBOX_POWER_TIMEOUT_MS (90 * 1000)

/* --- get ------------------------------------------------------------------ */

static SbxStep microsandbox_get_start;
static SbxStep microsandbox_get_answered;

SbxOp *
sbx_microsandbox_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op = sbx_microsandbox_make_op(
	    account, "get", microsandbox_get_start, sizeof(SbxMicrosandboxState),
	    MICROSANDBOX_ARENA_SMALL, MICROSANDBOX_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_microsandbox_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_get_start(SbxOp *op)
{
	return sbx_microsandbox_look(op, microsandbox_get_answered);
}

static SbxOpWant
microsandbox_get_answered(SbxOp *op)
{
	SbxSandboxFacts *facts;
	json_t *sandbox;

	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_succeed_gone(op);
	sandbox = sbx_microsandbox_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_microsandbox_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}

/* --- waiting until it runs ------------------------------------------------- */

static SbxOp *
microsandbox_make_wait(const SbxAccount *account, const char *operation,
                       SbxStep *first_step, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = sbx_microsandbox_make_op(
	    account, operation, first_step, sizeof(SbxMicrosandboxWait),
	    MICROSANDBOX_ARENA_SMALL,
	    timeout_ms > 0 ? timeout_ms : MICROSANDBOX_POWER_TIMEOUT_MS);

	if (op != NULL)
		sbx_microsandbox_set_target(op, target);
	return op;
}

SbxOp *
sbx_microsandbox_wait_ready(const SbxAccount *account, const SbxTarget *target,
                            int64_t timeout_ms)
{
	SbxOp *op = microsandbox_make_wait(account, "waitReady", sbx_microsandbox_await,
	                                   target, timeout_ms);

	if (op == NULL)
		return NULL;
	((SbxSteps *) op->state)->unready_is_result = true;
	return sbx_steps_made(op);
}

/* --- start ---------------------------------------------------------------- */

static SbxStep microsandbox_start_send;
static SbxStep microsandbox_start_answered;

SbxOp *
sbx_microsandbox_start(const SbxAccount *account, const SbxTarget *target,
                       int64_t timeout_ms)
{
	SbxOp *op = microsandbox_make_wait(account, "start", microsandbox_start_send,
	                                   target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
microsandbox_change(SbxOp *op, const char *verb, SbxStep *answer)
{
	SbxMicrosandboxState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/%s", state->url, verb);

	return sbx_microsandbox_send(op, "POST", url, "{}", answer);
}

static SbxOpWant
microsandbox_start_send(SbxOp *op)
{
	return microsandbox_change(op, "start", microsandbox_start_answered);
}

/*
 * 409 is one that runs or is about to, or one that is on its way to a stop: looking tells,
 * and once it has stopped it is told again.
 */
static SbxOpWant
microsandbox_start_answered(SbxOp *op)
{
	SbxMicrosandboxWait *wait = op->state;

	wait->state.steps.acted |= sbx_steps_may_have_arrived(op);
	wait->restart = NULL;
	if (sbx_steps_is_success(op))
	{
		wait->stopped_is_passing = true;
		return sbx_microsandbox_await(op);
	}
	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (sbx_microsandbox_has_code(op, "invalid_state_transition"))
	{
		wait->restart = microsandbox_start_send;
		return sbx_microsandbox_await(op);
	}
	if (!sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sbx_steps_note(op, sbx_steps_status_code(op));
	return sbx_steps_wait(op, microsandbox_start_send);
}

/* --- stop ----------------------------------------------------------------- */

static SbxStep microsandbox_stop_look;
static SbxStep microsandbox_stop_looked;
static SbxStep microsandbox_stop_answered;

SbxOp *
sbx_microsandbox_stop(const SbxAccount *account, const SbxTarget *target,
                      int64_t timeout_ms)
{
	SbxOp *op = microsandbox_make_wait(account, "stop", microsandbox_stop_look, target,
	                                   timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
microsandbox_stop_look(SbxOp *op)
{
	return sbx_microsandbox_look(op, microsandbox_stop_looked);
}

/* An ephemeral one would be gone. */
static SbxOpWant
microsandbox_stop_judge(SbxOp *op, const json_t *sandbox)
{
	SbxSandboxFacts *facts = sbx_microsandbox_facts(op, sandbox);

	if (facts == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	switch (facts->state)
	{
		case SBX_STATE_STOPPED:
			return sbx_op_succeed(op, facts);
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_STOPPING:
			return sbx_steps_wait(op, microsandbox_stop_look);
		default:
			break;
	}
	if (json_is_true(json_object_get(sandbox, "ephemeral")))
		return sbx_steps_fail_response(op, "STOP_WOULD_DESTROY");
	return facts->state == SBX_STATE_STARTED
	           ? microsandbox_change(op, "stop", microsandbox_stop_answered)
	           : sbx_steps_wait(op, microsandbox_stop_look);
}

static SbxOpWant
microsandbox_stop_looked(SbxOp *op)
{
	json_t *sandbox;
	SbxOpWant want;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, microsandbox_stop_look);
	}
	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_microsandbox_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	want = microsandbox_stop_judge(op, sandbox);
	json_decref(sandbox);
	return want;
}

static SbxOpWant
microsandbox_stop_answered(SbxOp *op)
{
	SbxMicrosandboxState *state = op->state;
	bool busy = sbx_microsandbox_has_code(op, "invalid_state_transition");

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	if (sbx_steps_is_success(op))
		return sbx_steps_wait(op, microsandbox_stop_look);
	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (!busy && !sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sbx_steps_note(op, busy ? "BUSY" : sbx_steps_status_code(op));
	return sbx_steps_wait(op, microsandbox_stop_look);
}
