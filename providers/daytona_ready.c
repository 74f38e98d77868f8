/*
 * daytona_ready.c
 *		Waiting until a Daytona sandbox takes commands.
 *
 * "Started" is the provider's word for a sandbox whose machine runs.  Its toolbox may
 * refuse for another moment, so the end of the wait is a command that worked.
 */
#include <string.h>

#include "providers/daytona.h"

/* A probe may use its 10 s in the sandbox; the rest is for the way there. */
#define DAYTONA_PROBE_MS       (15 * 1000)
#define DAYTONA_PROBE_PAUSE_MS 250
#define DAYTONA_PROBE_TRIES    3

static SbxStep daytona_ready_poll;
static SbxStep daytona_ready_polled;
static SbxStep daytona_ready_started;
static SbxStep daytona_ready_located;
static SbxStep daytona_ready_probe;
static SbxStep daytona_ready_probed;

/* The state in the answer to a create or start is older than the answer. */
SbxOpWant
sbx_daytona_await_ready(SbxOp *op)
{
	((SbxSteps *) op->state)->pause_ms = 0;
	return daytona_ready_poll(op);
}

/*
 * Trouble passes, mostly.  A request that never left counts more: nobody is there, and
 * nobody waits long for that.
 */
SbxOpWant
sbx_daytona_after_trouble(SbxOp *op, SbxStep *look)
{
	SbxDaytonaWait *wait = op->state;

	sbx_steps_note(op, sbx_steps_status_code(op));
	wait->trouble += sbx_steps_may_have_arrived(op) ? 1 : 5;
	if (wait->trouble_max > 0 && wait->trouble >= wait->trouble_max)
		return sbx_steps_fail_noted(op, wait->state.steps.noted.provider_code);
	return sbx_steps_wait(op, look);
}

static SbxOpWant
daytona_ready_poll(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_ready_polled);
}

/* What it is now; a failed end, or how to go on. */
static SbxOpWant
daytona_ready_judge(SbxOp *op, SbxSandboxState found)
{
	SbxDaytonaWait *wait = op->state;

	if (found == SBX_STATE_FAILED)
		return sbx_steps_fail_response(op, "SANDBOX_FAILED");
	if (found == SBX_STATE_GONE)
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (wait->stopped_ends_it &&
	    (found == SBX_STATE_STOPPED || found == SBX_STATE_STOPPING))
		return sbx_steps_fail_response(op, "NOT_STARTED");

	/* It can be seen: older trouble would be the wrong reason for a timeout. */
	memset(&wait->state.steps.noted, 0, sizeof(wait->state.steps.noted));
	return found == SBX_STATE_STARTED ? daytona_ready_started(op)
	                                  : sbx_steps_wait(op, daytona_ready_poll);
}

/*
 * A look that fails says nothing about the sandbox, so only clear words of the
 * provider end the wait.
 */
static SbxOpWant
daytona_ready_polled(SbxOp *op)
{
	SbxDaytonaWait *wait = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool allowed;

	if (sbx_steps_is_passing(op))
		return sbx_daytona_after_trouble(op, daytona_ready_poll);
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");

	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	wait->trouble = 0;
	if (op->sandbox_id[0] == '\0')
		sbx_daytona_adopt(op, sandbox);
	found = sbx_daytona_sandbox_state(sandbox);
	allowed = sbx_daytona_learn_toolbox(op, sandbox);
	sbx_steps_allow_unready(op, sandbox, sbx_daytona_facts);
	if (found == SBX_STATE_STARTED)
		wait->facts = sbx_daytona_facts(op, sandbox);
	json_decref(sandbox);
	return allowed ? daytona_ready_judge(op, found) : sbx_daytona_fail_toolbox(op);
}

/* --- is it really? ------------------------------------------------------- */

static SbxOpWant
daytona_ready_started(SbxOp *op)
{
	SbxDaytonaState *state = op->state;

	if (state->toolbox_url == NULL)
		return sbx_daytona_ask_toolbox(op, daytona_ready_located);
	return daytona_ready_probe(op);
}

static SbxOpWant
daytona_ready_located(SbxOp *op)
{
	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, daytona_ready_poll);
	}
	return sbx_daytona_take_toolbox(op) ? daytona_ready_probe(op) : SBX_OP_WANT_NOTHING;
}

/* A command that does no harm when it is delivered twice. */
static SbxOpWant
daytona_ready_probe(SbxOp *op)
{
	static const char body[] = "{\"command\":\"true\",\"timeout\":10}";
	SbxOpWant want = sbx_daytona_send_toolbox(op, "POST", "/process/execute", body,
	                                          daytona_ready_probed);

	op->request.repeatable = true;
	op->request.timeout_ms = DAYTONA_PROBE_MS;
	return want;
}

static SbxOpWant
daytona_ready_not_yet(SbxOp *op)
{
	SbxDaytonaWait *wait = op->state;

	sbx_steps_note(op, "NOT_READY");
	if (++wait->probes < DAYTONA_PROBE_TRIES)
		return sbx_steps_pause(op, DAYTONA_PROBE_PAUSE_MS, daytona_ready_probe);
	if (!wait->state.steps.unready_is_result)
		return sbx_steps_fail_response(op, "NOT_READY");
	wait->probes = 0;
	return sbx_steps_wait(op, daytona_ready_poll);
}

/* Only the known signs of "not yet" are worth another try. */
static SbxOpWant
daytona_ready_probed(SbxOp *op)
{
	SbxDaytonaWait *wait = op->state;
	json_t *object;
	int64_t exit_code;
	bool valid;

	if (op->response.status != 200)
		return sbx_steps_is_passing(op) || sbx_daytona_toolbox_has_no_sandbox(op)
		           ? daytona_ready_not_yet(op)
		           : sbx_daytona_fail_in_toolbox(op, "NOT_READY");
	object = sbx_steps_object(op, false);
	valid = sbx_json_integer(object, "exitCode", &exit_code);
	json_decref(object);
	if (!valid)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return exit_code == 0 ? sbx_op_succeed(op, wait->facts) : daytona_ready_not_yet(op);
}
