/*
 * daytona_look.c
 *		Looking at one Daytona sandbox.
 */
#include "providers/daytona.h"

#define DAYTONA_GET_TIMEOUT_MS (10 * 1000)

static SbxStep daytona_get_start;
static SbxStep daytona_get_answered;

SbxOp *
sbx_daytona_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_daytona_make_op(account, "get", daytona_get_start, sizeof(SbxDaytonaState),
	                        DAYTONA_ARENA_SMALL, DAYTONA_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_daytona_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
daytona_get_start(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_get_answered);
}

static SbxOpWant
daytona_get_answered(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (sbx_steps_is_absent(op))
		return sbx_steps_succeed_gone(op);
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	sbx_daytona_adopt(op, sandbox);
	facts = sbx_daytona_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}
