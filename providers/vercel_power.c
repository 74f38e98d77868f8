/*
 * vercel_power.c
 *		Starting and stopping a Vercel sandbox, and waiting for one that starts.
 *
 * A stop ends the session.  A persistent sandbox leaves a snapshot then, of which the next
 * session is made; of any other nothing is left but the name.  Starting one of those would
 * give an empty sandbox where the caller expects his files, so it is refused.
 */
#include <string.h>

#include "providers/vercel.h"

#define VERCEL_POWER_TIMEOUT_MS  (120 * 1000)
#define VERCEL_POWER_EXCHANGE_MS (75 * 1000)

static SbxStep vercel_ready_look;
static SbxStep vercel_ready_looked;
static SbxStep vercel_start_look;
static SbxStep vercel_start_looked;
static SbxStep vercel_start_answered;
static SbxStep vercel_stop_start;
static SbxStep vercel_stop_look;
static SbxStep vercel_stop_looked;
static SbxStep vercel_stop_answered;

static SbxOp *
vercel_make_power_op(const SbxAccount *account, const char *operation,
                     SbxStep *first_step, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = sbx_vercel_make_op(
	    account, operation, first_step, sizeof(SbxVercelState), VERCEL_ARENA_SMALL,
	    timeout_ms > 0 ? timeout_ms : VERCEL_POWER_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_vercel_set_target(op, target);
	return sbx_steps_made(op);
}

/*
 * What a look says: its state, with the facts and the session for what comes next.  False =
 * there is nothing to go on with, and *want is how it ends or is asked again.
 */
static bool
vercel_power_looked(SbxOp *op, SbxStep *look, SbxSandboxState *found,
                    bool *is_persistent, SbxOpWant *want)
{
	SbxVercelState *state = op->state;
	const json_t *sandbox;
	json_t *answer;
	bool usable;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		*want = sbx_steps_wait(op, look);
		return false;
	}
	*want = SBX_OP_WANT_NOTHING;
	answer = sbx_vercel_take_ours(op);
	if (answer == NULL)
		return false;

	/* What went wrong before is not why it is not there yet. */
	memset(&state->steps.noted, 0, sizeof(state->steps.noted));
	sandbox = json_object_get(answer, "sandbox");
	*found = sbx_vercel_state(answer);
	*is_persistent = json_is_true(json_object_get(sandbox, "persistent"));
	state->facts = sbx_vercel_facts(op, sandbox, *found);
	usable = sbx_vercel_learn_session(op, answer);
	json_decref(answer);
	if (!usable)
		sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return usable && state->facts != NULL;
}

/* --- waiting until it takes commands --------------------------------------- */

SbxOp *
sbx_vercel_wait_ready(const SbxAccount *account, const SbxTarget *target,
                      int64_t timeout_ms)
{
	return vercel_make_power_op(account, "waitReady", vercel_ready_look, target,
	                            timeout_ms);
}

static SbxOpWant
vercel_ready_look(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_ready_looked);
}

/* Once it was seen, "not yet" can be the result. */
static SbxOpWant
vercel_ready_looked(SbxOp *op)
{
	SbxVercelState *state = op->state;
	SbxSandboxState found;
	bool is_persistent;
	SbxOpWant want;

	if (!vercel_power_looked(op, vercel_ready_look, &found, &is_persistent, &want))
		return want;
	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, state->facts);
		case SBX_STATE_STARTING:
			state->steps.result = state->facts;
			return sbx_steps_wait(op, sbx_vercel_await);
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		default:
			return sbx_steps_fail_response(op, "NOT_STARTED");
	}
}

/* --- start ---------------------------------------------------------------- */

SbxOp *
sbx_vercel_start(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	return vercel_make_power_op(account, "start", vercel_start_look, target,
	                            timeout_ms);
}

static SbxOpWant
vercel_start_look(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_start_looked);
}

/* A read by its method, but it starts a machine: it is delivered once. */
static SbxOpWant
vercel_start_send(SbxOp *op)
{
	SbxVercelState *state = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s&resume=true", state->sandbox_url);
	SbxOpWant want = sbx_vercel_send(op, "GET", url, NULL, vercel_start_answered);

	op->request.repeatable = false;
	op->request.timeout_ms = VERCEL_POWER_EXCHANGE_MS;
	return want;
}

static SbxOpWant
vercel_start_looked(SbxOp *op)
{
	SbxVercelState *state = op->state;
	SbxSandboxState found;
	bool is_persistent;
	SbxOpWant want;

	if (!vercel_power_looked(op, vercel_start_look, &found, &is_persistent, &want))
		return want;
	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, state->facts);
		case SBX_STATE_STARTING:
			return sbx_steps_wait(op, sbx_vercel_await);
		case SBX_STATE_STOPPING:
			return sbx_steps_wait(op, vercel_start_look);
		default:
			return is_persistent ? vercel_start_send(op)
			                     : sbx_steps_fail_response(op, "NOTHING_KEPT");
	}
}

static SbxOpWant
vercel_start_answered(SbxOp *op)
{
	SbxVercelState *state = op->state;
	SbxSandboxState found;
	bool is_persistent;
	SbxOpWant want;
	int status = op->response.status;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	if (status == 410)
		return sbx_steps_fail_response(op, "NOTHING_KEPT");

	/* A running sandbox takes a place, and there may be none. */
	if (status == 402 || (status == 429 && !sbx_vercel_is_throttled(op)))
		return sbx_steps_fail_response(op, "CAPACITY");
	if (status == 409 || status == 422)
	{
		sbx_steps_note(op, "BUSY");
		return sbx_steps_wait(op, vercel_start_look);
	}
	if (!vercel_power_looked(op, vercel_start_look, &found, &is_persistent, &want))
		return want;
	return found == SBX_STATE_STARTED ? sbx_op_succeed(op, state->facts)
	                                  : sbx_steps_wait(op, sbx_vercel_await);
}

/* --- stop ----------------------------------------------------------------- */

SbxOp *
sbx_vercel_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	return vercel_make_power_op(account, "stop", vercel_stop_start, target, timeout_ms);
}

static SbxOpWant
vercel_stop_start(SbxOp *op)
{
	SbxVercelState *state = op->state;

	return state->persistent ? vercel_stop_look(op)
	                         : sbx_steps_fail(op, SBX_PHASE_NONE, "STOP_WOULD_DESTROY");
}

static SbxOpWant
vercel_stop_look(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_stop_looked);
}

static SbxOpWant
vercel_stop_send(SbxOp *op)
{
	SbxOpWant want =
	    sbx_vercel_send_session(op, "POST", "/stop", NULL, vercel_stop_answered);

	op->request.timeout_ms = VERCEL_POWER_EXCHANGE_MS;
	return want;
}

/* The setting may have come after the sandbox: what it says itself counts. */
static SbxOpWant
vercel_stop_looked(SbxOp *op)
{
	SbxVercelState *state = op->state;
	SbxSandboxState found;
	bool is_persistent;
	SbxOpWant want;

	if (!vercel_power_looked(op, vercel_stop_look, &found, &is_persistent, &want))
		return want;
	if (found == SBX_STATE_STOPPED)
		return sbx_op_succeed(op, state->facts);
	if (found == SBX_STATE_FAILED)
		return sbx_steps_fail_response(op, "SANDBOX_FAILED");
	if (found == SBX_STATE_STOPPING)
		return sbx_steps_wait(op, vercel_stop_look);
	if (!is_persistent)
		return sbx_steps_fail(op, SBX_PHASE_NONE, "STOP_WOULD_DESTROY");
	return sbx_steps_ask(op, vercel_stop_look, vercel_stop_send);
}

/*
 * A session that is over or about to be answers 410 or 422, one that is gone 404: looking
 * tells.  Only one that still runs then is asked to stop once more.
 */
static SbxOpWant
vercel_stop_answered(SbxOp *op)
{
	SbxVercelState *state = op->state;
	int status = op->response.status;
	bool is_busy = status == 404 || status == 409 || status == 410 || status == 422;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	state->steps.accepted = sbx_steps_is_success(op);
	if (state->steps.accepted)
		return vercel_stop_look(op);
	if (!is_busy && !sbx_steps_is_passing(op))
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	sbx_steps_note(op, is_busy ? "BUSY" : sbx_steps_status_code(op));
	return sbx_steps_wait(op, vercel_stop_look);
}
