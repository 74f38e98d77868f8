/*
 * daytona_power.c
 *		Starting and stopping a Daytona sandbox, and waiting for one that starts.
 *
 * The control plane refuses what does not fit the state of a sandbox, with texts of
 * several kinds.  So the state is looked at first, what fits is asked for, and after
 * every doubtful answer the state is looked at again.
 */
#include <string.h>

#include "providers/daytona.h"

#define DAYTONA_POWER_TIMEOUT_MS (90 * 1000)

/* The answer can be held back 30 s. */
#define DAYTONA_POWER_EXCHANGE_MS (40 * 1000)

/* Trouble in a row after which it is given up: a few seconds of it. */
#define DAYTONA_TROUBLE_MAX 20

/* Refusals in a row, while the state looks right, that are a verdict. */
#define DAYTONA_REFUSALS_MAX 3

typedef struct SbxDaytonaPower
{
	SbxDaytonaWait wait;      /* first */
	const char *unique_name;  /* NULL = not known */
	const char *launch_token; /* NULL = none */
	bool by_name;             /* it is looked for under its name */
	int refusals;
	bool accepted; /* the stop was; the state shows it a moment later */
} SbxDaytonaPower;

static SbxStep daytona_start_look;
static SbxStep daytona_start_looked;
static SbxStep daytona_start_answered;
static SbxStep daytona_stop_look;
static SbxStep daytona_stop_looked;
static SbxStep daytona_stop_answered;

static SbxOp *
daytona_make_power_op(const SbxAccount *account, const char *operation,
                      SbxStep *first_step, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op = sbx_daytona_make_op(
	    account, operation, first_step, sizeof(SbxDaytonaPower), DAYTONA_ARENA_SMALL,
	    timeout_ms > 0 ? timeout_ms : DAYTONA_POWER_TIMEOUT_MS);
	SbxDaytonaPower *power;

	if (op == NULL)
		return NULL;
	power = op->state;
	power->wait.trouble_max = DAYTONA_TROUBLE_MAX;
	if (target->unique_name != NULL)
		power->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
	if (target->launch_token != NULL)
		power->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);
	sbx_daytona_set_target(op, target);
	return op;
}

/* --- waiting ------------------------------------------------------------ */

SbxOp *
sbx_daytona_wait_ready(const SbxAccount *account, const SbxTarget *target,
                       int64_t timeout_ms)
{
	SbxOp *op = daytona_make_power_op(account, "waitReady", sbx_daytona_await_ready,
	                                  target, timeout_ms);
	SbxDaytonaWait *wait;

	if (op == NULL)
		return NULL;
	wait = op->state;
	wait->stopped_ends_it = true;
	wait->state.steps.unready_is_result = true;
	return sbx_steps_made(op);
}

/* --- what both have in common ------------------------------------------- */

/*
 * The sandbox as it is now.  NULL = there is no such look, and *want is how to go on.
 */
static json_t *
daytona_power_take(SbxOp *op, SbxStep *look, SbxOpWant *want)
{
	json_t *sandbox;

	if (sbx_steps_is_passing(op))
	{
		*want = sbx_daytona_after_trouble(op, look);
		return NULL;
	}
	*want = SBX_OP_WANT_NOTHING;
	if (sbx_steps_is_absent(op))
	{
		sbx_steps_fail_response(op, "SANDBOX_GONE");
		return NULL;
	}
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return NULL;
	((SbxDaytonaWait *) op->state)->trouble = 0;
	sbx_daytona_adopt(op, sandbox);
	switch (sbx_daytona_sandbox_state(sandbox))
	{
		case SBX_STATE_FAILED:
			sbx_steps_fail_response(op, "SANDBOX_FAILED");
			break;
		case SBX_STATE_GONE:
			sbx_steps_fail_response(op, "SANDBOX_GONE");
			break;
		default:
			return sandbox;
	}
	json_decref(sandbox);
	return NULL;
}

/*
 * Nothing to do but to look again: it is changing.  What was refused before was refused
 * for a state that it is not in any more.
 */
static SbxOpWant
daytona_power_changing(SbxOp *op, SbxStep *look)
{
	SbxDaytonaPower *power = op->state;

	power->refusals = 0;
	memset(&power->wait.state.steps.noted, 0, sizeof(power->wait.state.steps.noted));
	return sbx_steps_wait(op, look);
}

static SbxOpWant
daytona_power_send(SbxOp *op, const char *what, SbxStep *answer)
{
	SbxDaytonaState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/%s", state->sandbox_url, what);
	SbxOpWant want = sbx_daytona_send(op, "POST", url, NULL, answer);

	op->request.timeout_ms = DAYTONA_POWER_EXCHANGE_MS;
	return want;
}

/*
 * Anything but a plain success.  A change in progress is waited for; what was refused
 * may have been refused for a state that is a moment old.
 */
static SbxOpWant
daytona_power_refused(SbxOp *op, SbxStep *look)
{
	SbxDaytonaPower *power = op->state;
	int status = op->response.status;

	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (sbx_steps_is_passing(op))
		return sbx_daytona_after_trouble(op, look);
	if (status == 409)
		sbx_steps_note(op, "BUSY");
	else if (status == 400 && ++power->refusals < DAYTONA_REFUSALS_MAX)
		sbx_steps_note(op, NULL);
	else
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	return sbx_steps_wait(op, look);
}

/* --- start -------------------------------------------------------------- */

SbxOp *
sbx_daytona_start(const SbxAccount *account, const SbxTarget *target,
                  int64_t timeout_ms)
{
	SbxOp *op =
	    daytona_make_power_op(account, "start", daytona_start_look, target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
daytona_start_look(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_start_looked);
}

static bool
daytona_start_is_ours(const SbxOp *op, const json_t *sandbox)
{
	const SbxDaytonaPower *power = op->state;

	return power->unique_name != NULL &&
	       sbx_steps_owner(json_object_get(sandbox, "labels"), power->unique_name,
	                       power->launch_token) == SBX_OWNER_OURS;
}

/* A description, but not that of our sandbox. */
static bool
daytona_start_is_anothers(const SbxOp *op)
{
	json_t *sandbox = op->response.status == 200 ? sbx_daytona_sandbox(op) : NULL;
	bool is_anothers = sandbox != NULL && !daytona_start_is_ours(op, sandbox);

	json_decref(sandbox);
	return is_anothers;
}

/*
 * No such sandbox: an earlier start may have made it anew, under an id that nobody heard
 * of.  Its name has stayed.
 */
static SbxOpWant
daytona_start_look_by_name(SbxOp *op)
{
	SbxDaytonaPower *power = op->state;

	power->by_name = true;
	op->sandbox_id[0] = '\0';
	sbx_daytona_point_at(op, power->unique_name);
	return daytona_start_look(op);
}

static SbxOpWant
daytona_start_looked(SbxOp *op)
{
	SbxDaytonaPower *power = op->state;
	SbxOpWant want;
	json_t *sandbox;
	SbxSandboxState found;

	if (op->response.status == 404 && !power->by_name &&
	    sbx_steps_valid_id(power->unique_name))
		return daytona_start_look_by_name(op);
	if (power->by_name && op->sandbox_id[0] == '\0' && daytona_start_is_anothers(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = daytona_power_take(op, daytona_start_look, &want);
	if (sandbox == NULL)
		return want;
	found = sbx_daytona_sandbox_state(sandbox);
	json_decref(sandbox);
	if (found == SBX_STATE_STOPPED)
		return daytona_power_send(op, "start", daytona_start_answered);
	if (found == SBX_STATE_STOPPING)
		return daytona_power_changing(op, daytona_start_look);
	return sbx_daytona_await_ready(op);
}

/* Room is asked for again at each start, and refused with these texts. */
static bool
daytona_lacks_capacity(const SbxOp *op)
{
	return (op->response.status == 400 || op->response.status == 403) &&
	       (sbx_daytona_message_has(op, " limit exceeded.") ||
	        sbx_daytona_message_has(op, "No available runners"));
}

static SbxOpWant
daytona_start_answered(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	json_t *sandbox;

	state->steps.acted |= sbx_steps_may_have_arrived(op);
	if (daytona_lacks_capacity(op))
		return sbx_steps_fail_response(op, "CAPACITY");
	if (!sbx_steps_is_success(op))
		return daytona_power_refused(op, daytona_start_look);

	/* Perhaps made anew: what is ours, whatever its id is by now, is the sandbox. */
	sandbox = sbx_steps_object(op, false);
	if (sbx_steps_valid_id(sbx_json_string(sandbox, "id")) &&
	    daytona_start_is_ours(op, sandbox))
		sbx_daytona_adopt(op, sandbox);
	json_decref(sandbox);
	return sbx_daytona_await_ready(op);
}

/* --- stop --------------------------------------------------------------- */

SbxOp *
sbx_daytona_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op =
	    daytona_make_power_op(account, "stop", daytona_stop_look, target, timeout_ms);

	return op == NULL ? NULL : sbx_steps_made(op);
}

static SbxOpWant
daytona_stop_look(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_stop_looked);
}

/* With 0 the provider deletes it at the moment of stopping. */
static bool
daytona_stop_would_destroy(const json_t *sandbox)
{
	int64_t minutes;

	return sbx_json_integer(sandbox, "autoDeleteInterval", &minutes) && minutes == 0;
}

static SbxOpWant
daytona_stop_looked(SbxOp *op)
{
	SbxOpWant want;
	json_t *sandbox = daytona_power_take(op, daytona_stop_look, &want);
	SbxSandboxState found;
	SbxSandboxFacts *facts = NULL;
	bool would_destroy;

	if (sandbox == NULL)
		return want;
	found = sbx_daytona_sandbox_state(sandbox);
	would_destroy = daytona_stop_would_destroy(sandbox);
	if (found == SBX_STATE_STOPPED)
		facts = sbx_daytona_facts(op, sandbox);
	json_decref(sandbox);

	if (found == SBX_STATE_STOPPED)
		return sbx_op_succeed(op, facts);
	if (found != SBX_STATE_STARTED || ((SbxDaytonaPower *) op->state)->accepted)
		return daytona_power_changing(op, daytona_stop_look);
	if (would_destroy)
		return sbx_steps_fail(op, SBX_PHASE_NONE, "STOP_WOULD_DESTROY");
	return daytona_power_send(op, "stop?force=false", daytona_stop_answered);
}

/* Accepted is not stopped yet. */
static SbxOpWant
daytona_stop_answered(SbxOp *op)
{
	SbxDaytonaPower *power = op->state;

	power->wait.state.steps.acted |= sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return daytona_power_refused(op, daytona_stop_look);
	power->accepted = true;
	return daytona_stop_look(op);
}
