/*
 * e2b_launch.c
 *		Making an E2B sandbox, and what a refusal proves.
 */
#include <string.h>

#include "providers/e2b.h"

/* The provider works on a create for up to 70 s: who gives up earlier loses track. */
#define E2B_CREATE_TIMEOUT_MS (120 * 1000)

typedef struct SbxE2bLaunch
{
	SbxE2bState state; /* first */
	const char *body;
	SbxSandboxFacts *facts;
} SbxE2bLaunch;

static SbxStep e2b_launch_start;
static SbxStep e2b_launch_created;
static SbxOpWant e2b_launch_refused(SbxOp *op);
static json_t *e2b_create_body(const SbxE2bState *state, const SbxFieldValue *settings,
                               const SbxLaunchInput *input);

SbxOp *
sbx_e2b_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	int64_t timeout_ms = sbx_steps_create_ms(
	    input, &account->settings[E2B_SET_CREATE_TIMEOUT], E2B_CREATE_TIMEOUT_MS);
	SbxOp *op = sbx_e2b_make_op(account, "launch", e2b_launch_start,
	                            sizeof(SbxE2bLaunch), E2B_ARENA_SMALL, timeout_ms);
	SbxE2bLaunch *launch;

	if (op == NULL)
		return NULL;
	launch = op->state;
	launch->body = sbx_steps_launch_body(
	    op, e2b_create_body(&launch->state, account->settings, input));
	return sbx_steps_made(op);
}

/* There is no name to give: the label with our id is what finds it again. */
static json_t *
e2b_create_body(const SbxE2bState *state, const SbxFieldValue *settings,
                const SbxLaunchInput *input)
{
	const SbxFieldValue *template = &settings[E2B_SET_TEMPLATE];
	const SbxFieldValue *internet = &settings[E2B_SET_ALLOW_INTERNET];
	const SbxFieldValue *pause = &settings[E2B_SET_AUTO_PAUSE];
	json_t *body = sbx_json_new_object();
	int failed = 0;

	failed |= json_object_set_new(
	    body, "templateID", json_string(template->is_set ? template->text : "base"));
	failed |= json_object_set_new(body, "timeout", json_integer(state->lifetime_s));
	if (input->label_count > 0)
		failed |= json_object_set_new(
		    body, "metadata", sbx_steps_json_pairs(input->labels, input->label_count));
	if (input->env_count > 0)
		failed |= json_object_set_new(
		    body, "envVars", sbx_steps_json_pairs(input->env, input->env_count));
	if (internet->is_set)
		failed |= json_object_set_new(body, "allow_internet_access",
		                              json_boolean(internet->boolean));
	if (pause->is_set)
		failed |= json_object_set_new(body, "autoPause", json_boolean(pause->boolean));
	if (failed == 0)
		return body;
	json_decref(body);
	return NULL;
}

static SbxOpWant
e2b_launch_start(SbxOp *op)
{
	SbxE2bLaunch *launch = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/v2/sandboxes", launch->state.api_url);
	SbxOpWant want = sbx_e2b_send(op, "POST", url, launch->body, e2b_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

/* It is answered when the sandbox runs and takes commands. */
static SbxOpWant
e2b_launch_created(SbxOp *op)
{
	SbxE2bLaunch *launch = op->state;
	json_t *sandbox;
	const char *id;

	launch->state.steps.acted = sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return e2b_launch_refused(op);
	sandbox = sbx_steps_object(op, false);
	id = sbx_json_string(sandbox, "sandboxID");
	if (!sbx_e2b_valid_id(id))
	{
		/* Something was made that we cannot name: only its labels find it. */
		json_decref(sandbox);
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	}
	launch->state.steps.allocation = SBX_ALLOCATION_MADE;
	sbx_e2b_point_at(op, id);
	launch->facts = sbx_e2b_facts(op, sandbox);
	if (launch->facts != NULL)
		launch->facts->state = SBX_STATE_STARTED;
	json_decref(sandbox);
	return sbx_op_succeed(op, launch->facts);
}

/* --- what a refused create proves ----------------------------------------- */

/* What else an answer has to have for a row to count. */
typedef enum E2bEvidence
{
	E2B_ANY,
	E2B_RETRY_AFTER, /* a header that tells when to come back */
	E2B_ERROR_CODE   /* the row's own, in the body */
} E2bEvidence;

typedef struct SbxE2bRefusal
{
	int status;
	E2bEvidence evidence;
	const char *error_code;
	SbxAllocation allocation;
	const char *code;
} SbxE2bRefusal;

/* The first row that matches counts; what is not listed proves nothing. */
static const SbxE2bRefusal e2b_refusals[] = {
    /* All of these are checked before anything is reserved. */
    {400, E2B_ANY, NULL, SBX_ALLOCATION_NONE, "BAD_REQUEST"},
    {401, E2B_ANY, NULL, SBX_ALLOCATION_NONE, "UNAUTHORIZED"},
    {403, E2B_ANY, NULL, SBX_ALLOCATION_NONE, "FORBIDDEN"},
    {404, E2B_ANY, NULL, SBX_ALLOCATION_NONE, "TEMPLATE_NOT_FOUND"},

    /* Too many requests, or too many sandboxes; the second has no time to wait. */
    {429, E2B_RETRY_AFTER, NULL, SBX_ALLOCATION_NONE, "RATE_LIMITED"},
    {429, E2B_ANY, NULL, SBX_ALLOCATION_NONE, "CAPACITY"},

    /* No node took it.  Any other 503 may come from anywhere on the way. */
    {503, E2B_ERROR_CODE, "sandbox_capacity_unavailable", SBX_ALLOCATION_NONE,
     "CAPACITY"},
    {503, E2B_ERROR_CODE, "sandbox_no_compatible_node", SBX_ALLOCATION_NONE,
     "CAPACITY"},
};

static bool
e2b_refusal_matches(SbxOp *op, const SbxE2bRefusal *refusal, const char *error_code)
{
	if (refusal->status != op->response.status)
		return false;
	switch (refusal->evidence)
	{
		case E2B_ANY:
			return true;
		case E2B_RETRY_AFTER:
			return sbx_e2b_tells_when(op);
		case E2B_ERROR_CODE:
			return error_code != NULL && strcmp(error_code, refusal->error_code) == 0;
	}
	return false;
}

static SbxOpWant
e2b_launch_refused(SbxOp *op)
{
	SbxE2bState *state = op->state;
	json_t *answer = sbx_steps_object(op, false);
	const char *error_code = sbx_json_string(answer, "error_code");
	const char *code = NULL;

	if (!state->steps.acted)
		state->steps.allocation = SBX_ALLOCATION_NONE;
	for (size_t i = 0; i < sizeof(e2b_refusals) / sizeof(e2b_refusals[0]); i++)
	{
		if (!e2b_refusal_matches(op, &e2b_refusals[i], error_code))
			continue;
		state->steps.allocation = e2b_refusals[i].allocation;
		code = e2b_refusals[i].code;
		break;
	}
	json_decref(answer);
	return sbx_steps_fail_response(op, code);
}
