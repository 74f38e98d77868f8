/*
 * agent37_ready.c
 *		Waiting until an Agent37 instance takes commands.
 *
 * "running" says that the instance was started, which a command sees a second later.  The
 * program at its address starts later still, and nothing here waits for that.
 */
#include <string.h>

#include "providers/agent37.h"

/* What the instance gets to do nothing; it takes milliseconds. */
#define AGENT37_PROBE_MS (15 * 1000)

static SbxStep agent37_ready_looked;
static SbxStep agent37_ready_probed;

SbxOpWant
sbx_agent37_ready_look(SbxOp *op)
{
	return sbx_agent37_look(op, agent37_ready_looked);
}

static SbxOpWant
agent37_ready_judge(SbxOp *op, SbxSandboxState found)
{
	SbxAgent37Wait *wait = op->state;

	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_agent37_ready_probe(op);
		case SBX_STATE_STOPPED:
			return wait->stopped != NULL ? wait->stopped(op)
			                             : sbx_steps_fail_response(op, "NOT_STARTED");
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_GONE:
			return sbx_steps_fail_response(op, "SANDBOX_GONE");
		default:
			return sbx_steps_wait(op, sbx_agent37_ready_look);
	}
}

static SbxOpWant
agent37_ready_looked(SbxOp *op)
{
	SbxAgent37Wait *wait = op->state;
	json_t *instance;
	SbxSandboxState found;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_wait(op, sbx_agent37_ready_look);
	}
	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	instance = sbx_agent37_take_instance(op);
	if (instance == NULL)
		return SBX_OP_WANT_NOTHING;

	/* What went wrong before is not why it is not ready. */
	memset(&wait->state.steps.noted, 0, sizeof(wait->state.steps.noted));
	found = sbx_agent37_state(instance);
	sbx_steps_allow_unready(op, instance, sbx_agent37_facts);
	if (found == SBX_STATE_STARTED)
		wait->facts = sbx_agent37_facts(op, instance);
	json_decref(instance);
	return agent37_ready_judge(op, found);
}

/* A command that does no harm when it is delivered twice. */
SbxOpWant
sbx_agent37_ready_probe(SbxOp *op)
{
	SbxOpWant want =
	    sbx_agent37_exec(op, "{\"command\":\"true\"}", agent37_ready_probed);

	op->request.repeatable = true;
	op->request.timeout_ms = AGENT37_PROBE_MS;
	return want;
}

/*
 * 400 is an instance that does not run, 404 none at all: looking tells.  An exit code
 * other than 0 is the container's, which cannot start anything yet.
 */
static SbxOpWant
agent37_ready_probed(SbxOp *op)
{
	SbxAgent37Wait *wait = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, true) : NULL;
	int64_t exit_code = -1;
	bool told = sbx_json_integer(answer, "exit_code", &exit_code);
	int status = op->response.status;

	json_decref(answer);
	if (told && exit_code == 0)
		return sbx_op_succeed(op, wait->facts);
	if (status == 200 && !told)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	if (status != 200 && status != 400 && status != 404 && status != 409 &&
	    !sbx_steps_is_passing(op))
		return sbx_agent37_fail(op);
	sbx_steps_note(op, "NOT_READY");
	return sbx_steps_wait(op, sbx_agent37_ready_look);
}
