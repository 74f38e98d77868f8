/*
 * e2b_look.c
 *		Looking at one E2B sandbox.
 */
#include "providers/e2b.h"

#define E2B_GET_TIMEOUT_MS (10 * 1000)

static SbxStep e2b_get_start;
static SbxStep e2b_get_answered;

SbxOp *
sbx_e2b_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op = sbx_e2b_make_op(account, "get", e2b_get_start, sizeof(SbxE2bState),
	                            E2B_ARENA_SMALL, E2B_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_e2b_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_get_start(SbxOp *op)
{
	return sbx_e2b_look(op, e2b_get_answered);
}

static SbxOpWant
e2b_get_answered(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (sbx_steps_is_absent(op))
		return sbx_steps_succeed_gone(op);
	sandbox = sbx_e2b_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_e2b_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}
