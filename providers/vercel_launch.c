/*
 * vercel_launch.c
 *		Making a Vercel sandbox, and what a refusal proves.
 */
#include <string.h>

#include "providers/vercel.h"

#define VERCEL_CREATE_TIMEOUT_MS (180 * 1000)

/* The provider's own default, said explicitly. */
#define VERCEL_LIFETIME_SECONDS 300

#define VERCEL_TAG_CHARACTERS 256

typedef struct SbxVercelLaunch
{
	SbxVercelState state; /* first */
	const char *url;
	const char *body;
} SbxVercelLaunch;

static SbxStep vercel_launch_start;
static SbxStep vercel_launch_created;
static SbxStep vercel_launch_looked_up;
static SbxOpWant vercel_launch_refused(SbxOp *op);
static json_t *
vercel_create_body(const SbxVercelState *state, const SbxFieldValue *settings,
                   const SbxLaunchInput *input);

SbxOp *
sbx_vercel_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	const SbxFieldValue *settings = account->settings;
	int64_t timeout_ms = sbx_steps_create_ms(
	    input, &settings[VERCEL_SET_CREATE_TIMEOUT], VERCEL_CREATE_TIMEOUT_MS);
	SbxTarget target = {NULL, input->unique_name, input->launch_token};
	SbxOp *op =
	    sbx_vercel_make_op(account, "launch", vercel_launch_start,
	                       sizeof(SbxVercelLaunch), VERCEL_ARENA_SMALL, timeout_ms);
	SbxVercelLaunch *launch;
	json_t *body = NULL;

	if (op == NULL)
		return NULL;
	launch = op->state;
	sbx_vercel_set_target(op, &target);

	/* Nobody has heard of it yet. */
	op->sandbox_id[0] = '\0';
	launch->url = sbx_arena_printf(
	    &op->arena, "%s/%s/sandboxes?%s", launch->state.api_url,
	    settings[VERCEL_SET_RUNTIME].is_set ? "v2" : "v3", launch->state.team_query);
	if (input->label_count <= sbx_kind_vercel.max_labels &&
	    launch->state.project != NULL)
		body = vercel_create_body(&launch->state, settings, input);
	launch->body = sbx_steps_launch_body(op, body);
	return sbx_steps_made(op);
}

/* --- the body ------------------------------------------------------------- */

/* A tag is looked for as "key:value", so a key has no colon. */
bool
sbx_vercel_carries_label(const char *key, const char *value)
{
	return *key != '\0' && strchr(key, ':') == NULL &&
	       sbx_steps_count_characters(value) <= VERCEL_TAG_CHARACTERS;
}

static int
vercel_put_text(json_t *body, const char *key, const SbxFieldValue *value)
{
	return value->is_set ? json_object_set_new(body, key, json_string(value->text)) : 0;
}

/* An object of one member; a NULL value makes it fail. */
static int
vercel_put_object(json_t *body, const char *key, const char *member, json_t *value)
{
	json_t *object = sbx_json_new_object();

	if (json_object_set_new(object, member, value) == 0)
		return json_object_set_new(body, key, object);
	json_decref(object);
	return -1;
}

/*
 * Members in the order in which the provider's own client sends them.  Whether it is kept
 * is always said: the provider's default is that a stopped sandbox is, and costs.
 */
static json_t *
vercel_create_body(const SbxVercelState *state, const SbxFieldValue *settings,
                   const SbxLaunchInput *input)
{
	const SbxFieldValue *lifetime = &settings[VERCEL_SET_TIMEOUT];
	const SbxFieldValue *vcpus = &settings[VERCEL_SET_VCPUS];
	const SbxFieldValue *policy = &settings[VERCEL_SET_NETWORK_POLICY];
	int64_t lifetime_s = lifetime->is_set ? lifetime->integer : VERCEL_LIFETIME_SECONDS;
	json_t *body = sbx_json_new_object();
	int failed = 0;

	failed |= json_object_set_new(body, "projectId", json_string(state->project));
	failed |= json_object_set_new(body, "ports", json_array());
	failed |= json_object_set_new(body, "timeout", json_integer(lifetime_s * 1000));
	if (vcpus->is_set)
		failed |=
		    vercel_put_object(body, "resources", "vcpus", json_integer(vcpus->integer));
	failed |= vercel_put_text(body, "image", &settings[VERCEL_SET_IMAGE]);
	failed |= vercel_put_text(body, "runtime", &settings[VERCEL_SET_RUNTIME]);
	failed |= vercel_put_text(body, "region", &settings[VERCEL_SET_REGION]);
	failed |= json_object_set_new(body, "name", json_string(input->unique_name));
	failed |= json_object_set_new(body, "persistent", json_boolean(state->persistent));
	if (policy->is_set)
		failed |=
		    vercel_put_object(body, "networkPolicy", "mode", json_string(policy->text));
	if (input->env_count > 0)
		failed |= json_object_set_new(
		    body, "env", sbx_steps_json_pairs(input->env, input->env_count));
	if (input->label_count > 0)
		failed |= json_object_set_new(
		    body, "tags", sbx_steps_json_labels(input, sbx_vercel_carries_label));
	if (failed == 0)
		return body;
	json_decref(body);
	return NULL;
}

/* --- making it ------------------------------------------------------------ */

static SbxOpWant
vercel_launch_start(SbxOp *op)
{
	SbxVercelLaunch *launch = op->state;
	SbxOpWant want =
	    sbx_vercel_send(op, "POST", launch->url, launch->body, vercel_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

/* It is there; whether it runs yet is the session's to say. */
static SbxOpWant
vercel_launch_made(SbxOp *op, const json_t *answer)
{
	SbxVercelLaunch *launch = op->state;
	SbxVercelState *state = &launch->state;
	SbxSandboxState found = sbx_vercel_state(answer);

	state->steps.allocation = SBX_ALLOCATION_MADE;
	memcpy(op->sandbox_id, state->unique_name, strlen(state->unique_name) + 1);
	state->facts = sbx_vercel_facts(op, json_object_get(answer, "sandbox"), found);
	if (!sbx_vercel_learn_session(op, answer) || state->facts == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, state->facts);
		case SBX_STATE_STARTING:
			return sbx_steps_wait(op, sbx_vercel_await);
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		default:
			return sbx_steps_fail_response(op, "NOT_STARTED");
	}
}

/* Is this about the sandbox that was asked for? */
static bool
vercel_launch_names(const SbxOp *op, const json_t *answer)
{
	const SbxVercelLaunch *launch = op->state;
	const char *name = sbx_json_string(json_object_get(answer, "sandbox"), "name");

	return name != NULL && strcmp(name, launch->state.unique_name) == 0;
}

static SbxOpWant
vercel_launch_created(SbxOp *op)
{
	SbxSteps *steps = op->state;
	json_t *answer;
	SbxOpWant want;

	steps->acted = sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return vercel_launch_refused(op);
	answer = sbx_steps_object(op, false);

	/* Otherwise something may have been made, and only its name finds it. */
	want = vercel_launch_names(op, answer)
	           ? vercel_launch_made(op, answer)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	json_decref(answer);
	return want;
}

/* --- what a refused create proves ----------------------------------------- */

/* What else an answer has to have for a row to count. */
typedef enum SbxVercelEvidence
{
	VERCEL_ANY,
	VERCEL_WORDS, /* the row's own, in the message */
	VERCEL_THROTTLED
} SbxVercelEvidence;

typedef struct SbxVercelRefusal
{
	int status;
	SbxVercelEvidence evidence;
	const char *words;
	bool look; /* nothing was made now, but what has the name may be ours */
	const char *code;
} SbxVercelRefusal;

/*
 * The first row that matches counts, and proves that this create has made nothing.  What
 * is not listed proves nothing.
 */
static const SbxVercelRefusal vercel_refusals[] = {
    /* Only its text tells this from any other bad request. */
    {400, VERCEL_WORDS, "already exists", true, "NAME_CONFLICT"},
    {409, VERCEL_ANY, NULL, true, "NAME_CONFLICT"},

    {400, VERCEL_ANY, NULL, false, "BAD_REQUEST"},
    {401, VERCEL_ANY, NULL, false, "UNAUTHORIZED"},
    {403, VERCEL_ANY, NULL, false, "FORBIDDEN"},
    {404, VERCEL_ANY, NULL, false, "PROJECT_NOT_FOUND"},
    {410, VERCEL_ANY, NULL, false, "SNAPSHOT_NOT_FOUND"},
    {422, VERCEL_ANY, NULL, false, "BAD_REQUEST"},

    /* What the plan pays for is used up. */
    {402, VERCEL_ANY, NULL, false, "CAPACITY"},

    /*
     * Too many requests; or too many sandboxes, or vCPUs asked for too fast: that is so
     * whether or not a header tells when to come back, and others may have room.
     */
    {429, VERCEL_THROTTLED, NULL, false, "RATE_LIMITED"},
    {429, VERCEL_ANY, NULL, false, "CAPACITY"},
};

static bool
vercel_refusal_matches(const SbxOp *op, const SbxVercelRefusal *refusal)
{
	if (refusal->status != op->response.status)
		return false;
	switch (refusal->evidence)
	{
		case VERCEL_ANY:
			return true;
		case VERCEL_WORDS:
			return sbx_vercel_error_says(op, refusal->words);
		case VERCEL_THROTTLED:
			return sbx_vercel_is_throttled(op);
	}
	return false;
}

static SbxOpWant
vercel_launch_refused(SbxOp *op)
{
	SbxVercelState *state = op->state;

	if (!state->steps.acted)
		state->steps.allocation = SBX_ALLOCATION_NONE;
	for (size_t i = 0; i < sizeof(vercel_refusals) / sizeof(vercel_refusals[0]); i++)
	{
		const SbxVercelRefusal *refusal = &vercel_refusals[i];

		if (!vercel_refusal_matches(op, refusal))
			continue;
		if (refusal->look)
		{
			sbx_steps_note(op, refusal->code);
			return sbx_vercel_look(op, vercel_launch_looked_up);
		}
		state->steps.allocation = SBX_ALLOCATION_NONE;
		return sbx_steps_fail_response(op, refusal->code);
	}
	return sbx_steps_fail_response(op, NULL);
}

/*
 * Names are the router's own and never the same, so a sandbox with the tags of this very
 * launch was made by an earlier delivery of the create.  While another one has the name,
 * ours is not there.  Any other answer leaves open what has it.
 */
static SbxOpWant
vercel_launch_looked_up(SbxOp *op)
{
	SbxVercelState *state = op->state;
	json_t *answer = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	bool is_there = vercel_launch_names(op, answer);
	SbxOpWant want;

	if (is_there &&
	    sbx_vercel_owner(op, json_object_get(answer, "sandbox")) == SBX_OWNER_OURS)
		want = vercel_launch_made(op, answer);
	else
	{
		state->steps.allocation =
		    is_there ? SBX_ALLOCATION_NONE : SBX_ALLOCATION_UNKNOWN;
		want = sbx_steps_fail_noted(op, state->steps.noted.provider_code);
	}
	json_decref(answer);
	return want;
}
