/*
 * agent37_power.c
 *		Starting and stopping an Agent37 instance.
 *
 * Both may be asked for again: of one that is there already the provider says so.  Its
 * answer has the state that is on its way, so the instance is looked at afterwards.
 */
#include <string.h>

#include "providers/agent37.h"

#define AGENT37_POWER_TIMEOUT_MS (120 * 1000)

static SbxStep agent37_start_send;
static SbxStep agent37_start_answered;
static SbxStep agent37_start_again;
static SbxStep agent37_stop_send;
static SbxStep agent37_stop_answered;
static SbxStep agent37_stop_look;
static SbxStep agent37_stop_looked;

static SbxOp *
agent37_make_power_op(const SbxAccount *account, const char *operation,
                      SbxStep *first_step, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = sbx_agent37_make_op(
	    account, operation, first_step, sizeof(SbxAgent37Wait), AGENT37_ARENA_SMALL,
	    timeout_ms > 0 ? timeout_ms : AGENT37_POWER_TIMEOUT_MS);

	if (op != NULL)
		sbx_agent37_set_target(op, target);
	return op;
}

SbxOp *
sbx_agent37_wait_ready(const SbxAccount *account, const SbxTarget *target,
                       int64_t timeout_ms)
{
	SbxOp *op = agent37_make_power_op(account, "waitReady", sbx_agent37_ready_look,
	                                  target, timeout_ms);

	if (op == NULL)
		return NULL;
	((SbxSteps *) op->state)->unready_is_result = true;
	return sbx_steps_made(op);
}

/* The provider works on one of these for minutes, if a disk has to move. */
static SbxOpWant
agent37_send_power(SbxOp *op, const char *verb, SbxStep *answer)
{
	SbxAgent37State *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/%s", state->control_url, verb);
	SbxOpWant want = sbx_agent37_send(op, "POST", url, NULL, answer);

	op->request.repeatable = true;
	op->request.timeout_ms = 0;
	return want;
}

/*
 * After anything but success; "look" is for a state that does not fit, which is answered
 * with 400.
 */
static SbxOpWant
agent37_power_refused(SbxOp *op, SbxStep *again, SbxStep *look)
{
	SbxAllocation allocation;
	const char *code = sbx_agent37_error_code(op, &allocation);
	bool busy = code != NULL && strcmp(code, "BUSY") == 0;

	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (op->response.status == 400)
	{
		sbx_steps_note(op, code);
		return look(op);
	}
	if (!busy && !sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, code);
	sbx_steps_note(op, code);
	return sbx_steps_wait(op, again);
}

/* --- start ---------------------------------------------------------------- */

SbxOp *
sbx_agent37_start(const SbxAccount *account, const SbxTarget *target,
                  int64_t timeout_ms)
{
	SbxOp *op =
	    agent37_make_power_op(account, "start", agent37_start_send, target, timeout_ms);

	if (op == NULL)
		return NULL;
	((SbxAgent37Wait *) op->state)->stopped = agent37_start_again;
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_start_send(SbxOp *op)
{
	return agent37_send_power(op, "start", agent37_start_answered);
}

static SbxOpWant
agent37_start_answered(SbxOp *op)
{
	SbxAgent37State *state = op->state;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	return sbx_steps_is_success(op)
	           ? sbx_agent37_ready_look(op)
	           : agent37_power_refused(op, agent37_start_send, sbx_agent37_ready_look);
}

/* It is not running yet, or was stopping when it was asked. */
static SbxOpWant
agent37_start_again(SbxOp *op)
{
	return sbx_steps_wait(op, agent37_start_send);
}

/* --- stop ----------------------------------------------------------------- */

SbxOp *
sbx_agent37_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op =
	    agent37_make_power_op(account, "stop", agent37_stop_send, target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
agent37_stop_send(SbxOp *op)
{
	return agent37_send_power(op, "stop", agent37_stop_answered);
}

static SbxOpWant
agent37_stop_answered(SbxOp *op)
{
	SbxAgent37State *state = op->state;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	return sbx_steps_is_success(op)
	           ? agent37_stop_look(op)
	           : agent37_power_refused(op, agent37_stop_send, agent37_stop_look);
}

static SbxOpWant
agent37_stop_look(SbxOp *op)
{
	return sbx_agent37_look(op, agent37_stop_looked);
}

/* One that runs was on its way there when it was asked, or shows the stop later. */
static SbxOpWant
agent37_stop_judge(SbxOp *op, SbxSandboxFacts *facts)
{
	switch (facts->state)
	{
		case SBX_STATE_STOPPED:
			return sbx_op_succeed(op, facts);
		case SBX_STATE_STARTED:
			return sbx_steps_wait(op, agent37_stop_send);
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_GONE:
			return sbx_steps_fail_response(op, "SANDBOX_GONE");
		default:
			return sbx_steps_wait(op, agent37_stop_look);
	}
}

static SbxOpWant
agent37_stop_looked(SbxOp *op)
{
	json_t *instance;
	SbxSandboxFacts *facts;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, agent37_stop_look);
	}
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	instance = sbx_agent37_take_instance(op);
	if (instance == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_agent37_facts(op, instance);
	json_decref(instance);
	return facts == NULL ? sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL)
	                     : agent37_stop_judge(op, facts);
}
