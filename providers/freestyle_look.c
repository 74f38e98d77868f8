/*
 * freestyle_look.c
 *		Looking at one machine of Freestyle's.
 */
#include "providers/freestyle.h"

#define FREESTYLE_GET_TIMEOUT_MS (15 * 1000)

static SbxStep freestyle_get_start;
static SbxStep freestyle_get_answered;

SbxOp *
sbx_freestyle_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op = sbx_freestyle_make_op(account, "get", freestyle_get_start,
	                                  sizeof(SbxFreestyleState), FREESTYLE_ARENA_SMALL,
	                                  FREESTYLE_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_freestyle_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
freestyle_get_start(SbxOp *op)
{
	return sbx_freestyle_look(op, freestyle_get_answered);
}

static SbxOpWant
freestyle_get_answered(SbxOp *op)
{
	SbxSandboxFacts *facts;
	json_t *vm;

	if (sbx_freestyle_not_found(op))
		return sbx_steps_succeed_gone(op);
	vm = sbx_freestyle_take(op);
	if (vm == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_freestyle_facts(op, vm);
	json_decref(vm);
	return sbx_op_succeed(op, facts);
}
