/*
 * vercel_look.c
 *		Looking at one Vercel sandbox.
 */
#include "providers/vercel.h"

#define VERCEL_GET_TIMEOUT_MS (15 * 1000)

static SbxStep vercel_get_start;
static SbxStep vercel_get_answered;

SbxOp *
sbx_vercel_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op =
	    sbx_vercel_make_op(account, "get", vercel_get_start, sizeof(SbxVercelState),
	                       VERCEL_ARENA_SMALL, VERCEL_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_vercel_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
vercel_get_start(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_get_answered);
}

/*
 * "No such sandbox" is an answer to the question, not a failure to ask it; so is one of
 * that name that another launch made.
 */
static SbxOpWant
vercel_get_answered(SbxOp *op)
{
	SbxSandboxFacts *facts = NULL;
	const json_t *sandbox;
	json_t *answer = NULL;
	SbxOwner owner = SBX_OWNER_ANOTHER;

	if (!sbx_steps_is_absent(op))
	{
		answer = sbx_vercel_take(op);
		if (answer == NULL)
			return SBX_OP_WANT_NOTHING;
		sandbox = json_object_get(answer, "sandbox");
		owner = sbx_vercel_owner(op, sandbox);
		if (owner == SBX_OWNER_OURS)
			facts = sbx_vercel_facts(op, sandbox, sbx_vercel_state(answer));
		json_decref(answer);
	}
	if (owner == SBX_OWNER_STRANGER)
		return sbx_steps_fail_response(op, "NOT_OURS");
	return owner == SBX_OWNER_ANOTHER ? sbx_steps_succeed_gone(op)
	                                  : sbx_op_succeed(op, facts);
}
