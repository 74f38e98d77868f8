/*
 * agent37_look.c
 *		Looking at one Agent37 instance.
 */
#include "providers/agent37.h"

#define AGENT37_GET_TIMEOUT_MS (10 * 1000)

static SbxStep agent37_get_start;
static SbxStep agent37_get_answered;

SbxOp *
sbx_agent37_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_agent37_make_op(account, "get", agent37_get_start, sizeof(SbxAgent37State),
	                        AGENT37_ARENA_SMALL, AGENT37_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_agent37_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_get_start(SbxOp *op)
{
	return sbx_agent37_look(op, agent37_get_answered);
}

static SbxOpWant
agent37_get_answered(SbxOp *op)
{
	json_t *instance;
	SbxSandboxFacts *facts;

	if (sbx_steps_is_absent(op))
		return sbx_steps_succeed_gone(op);
	instance = sbx_agent37_take_instance(op);
	if (instance == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_agent37_facts(op, instance);
	json_decref(instance);
	return sbx_op_succeed(op, facts);
}
