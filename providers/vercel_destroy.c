/*
 * vercel_destroy.c
 *		Deleting a Vercel sandbox, also one that may never have been made.
 *
 * Calling a failure success leaks a sandbox, and calling a success failure keeps a dead one
 * on the books.  A delete names nothing but the name, which somebody else can have by now,
 * so it is looked at before; and its answer may come while the sandbox still stops, so it
 * is looked at afterwards, until it is not there any more.
 */
#include <string.h>

#include "providers/vercel.h"

#define VERCEL_DESTROY_TIMEOUT_MS (120 * 1000)

/*
 * A destroy may be prepared early and run in an abort callback, so it must never need
 * a second arena block.  Its state and its URLs have to fit in here, beside what is read of
 * the token.
 */
#define VERCEL_ARENA_DESTROY (16 * 1024)

typedef struct SbxVercelDestroy
{
	SbxVercelState state; /* first */
	const char *delete_url;
	bool is_known;      /* the provider has told of it, once at least */
	bool was_seen;      /* by this operation */
	bool was_asked;     /* the delete was sent */
	int64_t created_at; /* then; a later one of that name is another */
} SbxVercelDestroy;

static SbxStep vercel_destroy_start;
static SbxStep vercel_destroy_look;
static SbxStep vercel_destroy_looked;
static SbxStep vercel_destroy_send;
static SbxStep vercel_destroy_deleted;

SbxOp *
sbx_vercel_destroy(const SbxAccount *account, const SbxTarget *target,
                   int64_t timeout_ms)
{
	const char *token = account->credentials[0];
	size_t token_length = token == NULL ? 0 : strlen(token);
	SbxVercelDestroy *destroy;
	SbxOp *op;

	op = sbx_vercel_make_op(account, "destroy", vercel_destroy_start,
	                        sizeof(SbxVercelDestroy),
	                        VERCEL_ARENA_DESTROY + 2 * token_length,
	                        timeout_ms > 0 ? timeout_ms : VERCEL_DESTROY_TIMEOUT_MS);
	if (op == NULL)
		return NULL;
	destroy = op->state;
	sbx_vercel_set_target(op, target);
	if (destroy->state.sandbox_url != NULL)
		destroy->delete_url = sbx_arena_printf(
		    &op->arena, "%s&deleteOrphanSnapshots=true", destroy->state.sandbox_url);
	destroy->is_known = target->sandbox_id != NULL;

	/* Set again by the caller, if its launch has told of the sandbox meanwhile. */
	if (!destroy->is_known)
		op->sandbox_id[0] = '\0';
	return sbx_steps_made(op);
}

static SbxOpWant
vercel_destroy_start(SbxOp *op)
{
	SbxVercelDestroy *destroy = op->state;
	const char *name = destroy->state.unique_name;

	if (op->sandbox_id[0] != '\0')
		destroy->is_known = true;
	else if (name != NULL)
		memcpy(op->sandbox_id, name, strlen(name) + 1);
	return destroy->delete_url == NULL ? sbx_steps_refuse(op) : vercel_destroy_look(op);
}

static SbxOpWant
vercel_destroy_look(SbxOp *op)
{
	return sbx_vercel_look(op, vercel_destroy_looked);
}

static SbxOpWant
vercel_destroy_send(SbxOp *op)
{
	SbxVercelDestroy *destroy = op->state;

	destroy->was_asked = true;
	return sbx_vercel_send(op, "DELETE", destroy->delete_url, NULL,
	                       vercel_destroy_deleted);
}

/*
 * Whose is what has the name now?  The tags of its launch say it, whenever it was made: a
 * create can be delivered twice behind our back.  One that was seen is the same while its
 * time of creation is, whether or not it still shows its tags.
 */
static SbxOwner
vercel_destroy_owner(SbxOp *op, const json_t *sandbox)
{
	SbxVercelDestroy *destroy = op->state;
	SbxOwner owner = sbx_vercel_owner(op, sandbox);
	int64_t created_at = 0;
	bool is_same;

	is_same = sbx_json_integer(sandbox, "createdAt", &created_at) &&
	          destroy->was_seen && created_at == destroy->created_at;
	if (is_same)
		return SBX_OWNER_OURS;
	if (owner != SBX_OWNER_OURS)
		return destroy->was_seen ? SBX_OWNER_ANOTHER : owner;
	if (destroy->was_seen && destroy->state.unique_name == NULL)
		return SBX_OWNER_ANOTHER;
	destroy->was_seen = true;
	destroy->created_at = created_at;
	return SBX_OWNER_OURS;
}

/*
 * One that is being made may not be there yet, so for one that nobody has told of its
 * absence is no proof: only the end of time ends it.  Names are unique: while another
 * launch has it, ours made nothing.
 */
static SbxOpWant
vercel_destroy_looked(SbxOp *op)
{
	SbxVercelDestroy *destroy = op->state;
	SbxSteps *steps = op->state;
	json_t *answer;
	SbxOwner owner;
	SbxSandboxState found;

	if (sbx_steps_is_passing(op))
		return sbx_steps_retry_after_trouble(op, vercel_destroy_look);
	if (!destroy->was_asked)
		steps->trouble = 0;
	if (sbx_steps_is_absent(op) && (destroy->is_known || destroy->was_seen))
		return sbx_steps_nothing_left(op);
	if (op->response.status == 404 && !destroy->is_known && !destroy->was_seen)
	{
		sbx_steps_note(op, "NOT_FOUND_YET");
		return sbx_steps_retry(op, vercel_destroy_look);
	}
	answer = sbx_vercel_take(op);
	if (answer == NULL)
		return SBX_OP_WANT_NOTHING;
	owner = vercel_destroy_owner(op, json_object_get(answer, "sandbox"));
	found = sbx_vercel_state_of(
	    sbx_json_string(json_object_get(answer, "sandbox"), "status"));
	json_decref(answer);
	if (owner == SBX_OWNER_STRANGER)
		return sbx_steps_fail_response(op, "NOT_OURS");
	if (owner == SBX_OWNER_ANOTHER)
		return sbx_steps_nothing_left(op);

	if (!destroy->was_asked)
		return vercel_destroy_send(op);

	/* A delete stops it first, which takes its time. */
	if (steps->trouble == 0)
		sbx_steps_note(op, "STILL_THERE");
	return sbx_steps_retry(op, found == SBX_STATE_STOPPING ? vercel_destroy_look
	                                                       : vercel_destroy_send);
}

/* The delete's own answer proves nothing but that it was heard. */
static SbxOpWant
vercel_destroy_deleted(SbxOp *op)
{
	SbxSteps *steps = op->state;
	int status = op->response.status;

	steps->acted |= sbx_steps_may_have_worked(op);
	if (sbx_steps_is_success(op) || status == 404 || status == 410)
	{
		steps->trouble = 0;
		return vercel_destroy_look(op);
	}
	if (status == 409 || status == 422)
	{
		steps->trouble = 0;
		sbx_steps_note(op, "BUSY");
		return sbx_steps_retry(op, vercel_destroy_look);
	}
	if (sbx_steps_is_passing(op) || op->response.too_large)
		return sbx_steps_retry_after_trouble(op, vercel_destroy_look);
	return sbx_steps_fail_response(op, sbx_steps_status_code(op));
}
