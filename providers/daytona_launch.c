/*
 * daytona_launch.c
 *		Making a Daytona sandbox, and what a refusal proves.
 *
 * Whatever ends a launch, the caller has to learn what that proves: nothing was
 * made, a sandbox exists, or nobody knows.  Saying "nothing" wrongly leaks a
 * sandbox that is paid for; so each step says only what its answer proves.
 */
#include <string.h>

#include "providers/daytona.h"

/* The provider's own client gives creating and waiting together this long. */
#define DAYTONA_CREATE_TIMEOUT_MS (60 * 1000)

/*
 * The answer to a create can be held back 30 s.  Who does not wait for the sandbox
 * does not want to wait for that either; what was made is then found by its name.
 */
#define DAYTONA_DETACHED_MS (15 * 1000)

/* --- creating ----------------------------------------------------------- */

typedef struct SbxDaytonaLaunch
{
	SbxDaytonaWait wait; /* first */
	const char *body;
	const char *unique_name;
	const char *launch_token; /* NULL = none */
	bool detached;
} SbxDaytonaLaunch;

static SbxStep daytona_launch_start;
static SbxStep daytona_launch_created;
static SbxStep daytona_launch_refused;
static SbxStep daytona_launch_look_up;
static SbxStep daytona_launch_looked_up;
static json_t *
daytona_create_body(const SbxFieldValue *settings, const SbxLaunchInput *input);

SbxOp *
sbx_daytona_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	int64_t timeout_ms =
	    sbx_steps_create_ms(input, &account->settings[DAYTONA_SET_CREATE_TIMEOUT],
	                        DAYTONA_CREATE_TIMEOUT_MS);
	SbxOp *op =
	    sbx_daytona_make_op(account, "launch", daytona_launch_start,
	                        sizeof(SbxDaytonaLaunch), DAYTONA_ARENA_SMALL, timeout_ms);
	SbxDaytonaLaunch *launch;

	if (op == NULL)
		return NULL;
	launch = op->state;
	launch->detached = input->detached;
	launch->body =
	    sbx_steps_launch_body(op, daytona_create_body(account->settings, input));
	if (sbx_steps_valid_id(input->unique_name))
		launch->unique_name = sbx_arena_strdup(&op->arena, input->unique_name);
	if (input->launch_token != NULL)
		launch->launch_token = sbx_arena_strdup(&op->arena, input->launch_token);
	if (launch->unique_name == NULL ||
	    sbx_daytona_check_settings(account->settings) != NULL)
		launch->wait.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

/* Who waits gives the answer, which may be held back, all the time there is. */
static SbxOpWant
daytona_launch_start(SbxOp *op)
{
	SbxDaytonaLaunch *launch = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/sandbox", launch->wait.state.api_url);
	SbxOpWant want =
	    sbx_daytona_send(op, "POST", url, launch->body, daytona_launch_created);

	op->request.timeout_ms = launch->detached ? DAYTONA_DETACHED_MS : 0;
	return want;
}

/* An answer may leave the name out, but not give another one. */
static bool
daytona_launch_is_ours(const SbxOp *op, const json_t *sandbox)
{
	const SbxDaytonaLaunch *launch = op->state;
	const char *name = sbx_json_string(sandbox, "name");

	return name == NULL || strcmp(name, launch->unique_name) == 0;
}

/* It exists, whatever happens now: its id is what cleaning up needs. */
static SbxOpWant
daytona_launch_made(SbxOp *op, const json_t *sandbox)
{
	SbxDaytonaLaunch *launch = op->state;
	SbxDaytonaState *state = op->state;

	state->steps.allocation = SBX_ALLOCATION_MADE;
	sbx_daytona_adopt(op, sandbox);
	if (!sbx_daytona_learn_toolbox(op, sandbox))
		return sbx_daytona_fail_toolbox(op);
	if (!launch->detached)
		return sbx_daytona_await_ready(op);
	switch (sbx_daytona_sandbox_state(sandbox))
	{
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_GONE:
			return sbx_steps_fail_response(op, "SANDBOX_GONE");
		default:
			break;
	}
	return sbx_op_succeed(op, sbx_daytona_facts(op, sandbox));
}

static SbxOpWant
daytona_launch_created(SbxOp *op)
{
	SbxDaytonaLaunch *launch = op->state;
	SbxDaytonaState *state = op->state;
	json_t *sandbox;
	SbxOpWant want;

	state->steps.acted = sbx_steps_may_have_arrived(op);
	if (op->response.status == 0 && state->steps.acted && launch->detached)
	{
		sbx_steps_note(op, NULL);
		return daytona_launch_look_up(op);
	}
	if (!sbx_steps_is_success(op))
		return daytona_launch_refused(op);

	/*
	 * Something was made that we cannot name: only the unique name finds it.  An answer
	 * about a sandbox of another name is none: what is adopted may be destroyed.
	 */
	sandbox = sbx_daytona_sandbox(op);
	if (sandbox == NULL || !daytona_launch_is_ours(op, sandbox))
		want = sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	else
		want = daytona_launch_made(op, sandbox);
	json_decref(sandbox);
	return want;
}

/* --- a detached create without an answer --------------------------------- */

static SbxOpWant
daytona_launch_look_up(SbxOp *op)
{
	SbxDaytonaLaunch *launch = op->state;

	sbx_daytona_point_at(op, launch->unique_name);
	return sbx_daytona_look(op, daytona_launch_looked_up);
}

/*
 * "Does not exist" is no proof here, and neither is trouble: the create may still be
 * on its way.  Only the end of time ends it, with the lost answer as the reason.
 */
static SbxOpWant
daytona_launch_looked_up(SbxOp *op)
{
	SbxDaytonaLaunch *launch = op->state;
	json_t *sandbox;
	SbxOpWant want;

	if (op->response.status == 404 || sbx_steps_is_passing(op))
		return sbx_steps_wait(op, daytona_launch_look_up);
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	if (sbx_steps_owner(json_object_get(sandbox, "labels"), launch->unique_name,
	                    launch->launch_token) == SBX_OWNER_OURS)
		want = daytona_launch_made(op, sandbox);
	else
		want = sbx_steps_fail_noted(op, "NAME_CONFLICT");
	json_decref(sandbox);
	return want;
}

/* --- what a refused create proves --------------------------------------- */

/*
 * The first row that matches counts.  The texts of one status are several things
 * (no capacity, a bad request, a sandbox that was made and failed), so what is not
 * listed proves nothing.
 */
typedef struct SbxDaytonaRefusal
{
	int status;           /* 0 = 400 or 403: quota texts moved from 403 to 400 */
	const char *prefix;   /* of the message, "" = any; or NULL = no message needed */
	const char *contains; /* somewhere in it, or NULL */
	SbxAllocation allocation;
	const char *code;
} SbxDaytonaRefusal;

static const SbxDaytonaRefusal daytona_refusals[] = {
    /* Must stay first: the reason behind the colon can be any other text. */
    {0, "", "Sandbox failed to start:", SBX_ALLOCATION_UNKNOWN, "START_FAILED"},

    {0, "Total CPU limit exceeded.", NULL, SBX_ALLOCATION_NONE, "CAPACITY"},
    {0, "Total memory limit exceeded.", NULL, SBX_ALLOCATION_NONE, "CAPACITY"},
    {0, "Total disk limit exceeded.", NULL, SBX_ALLOCATION_NONE, "CAPACITY"},
    {0, "Total GPU limit exceeded.", NULL, SBX_ALLOCATION_NONE, "CAPACITY"},
    {0, "No available runners", NULL, SBX_ALLOCATION_NONE, "CAPACITY"},

    {400, "", "exceeds maximum allowed per sandbox", SBX_ALLOCATION_NONE,
     "SIZE_NOT_ALLOWED"},
    {400, "", "Only ephemeral sandboxes are permitted", SBX_ALLOCATION_NONE,
     "EPHEMERAL_ONLY"},
    {400, "Snapshot ", " not found", SBX_ALLOCATION_NONE, "SNAPSHOT_NOT_FOUND"},
    {400, "Snapshot ", " is not available in region", SBX_ALLOCATION_NONE,
     "SNAPSHOT_NOT_IN_REGION"},

    /* Its state, when that is not the one to start from. */
    {400, "Snapshot ", " is ", SBX_ALLOCATION_NONE, "SNAPSHOT_NOT_READY"},
    {400, "", " does not have a default region", SBX_ALLOCATION_NONE,
     "NO_DEFAULT_REGION"},

    {404, "Region not found", NULL, SBX_ALLOCATION_NONE, "REGION_NOT_FOUND"},

    /* Nothing new was made, but the old one may be our own earlier attempt. */
    {409, "Sandbox with name ", " already exists", SBX_ALLOCATION_UNKNOWN,
     "NAME_CONFLICT"},

    /* These guards run before the handler, whatever they say. */
    {401, NULL, NULL, SBX_ALLOCATION_NONE, "UNAUTHORIZED"},
    {403, NULL, NULL, SBX_ALLOCATION_NONE, "FORBIDDEN"},
    {429, NULL, NULL, SBX_ALLOCATION_NONE, "RATE_LIMITED"},
};

static bool
daytona_refusal_matches(const SbxDaytonaRefusal *refusal, int status,
                        const char *message)
{
	if (refusal->status != status &&
	    !(refusal->status == 0 && (status == 400 || status == 403)))
		return false;
	if (refusal->prefix == NULL)
		return true;
	return message != NULL &&
	       strncmp(message, refusal->prefix, strlen(refusal->prefix)) == 0 &&
	       (refusal->contains == NULL || strstr(message, refusal->contains) != NULL);
}

static SbxOpWant
daytona_launch_refused(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	json_t *object = sbx_steps_object(op, false);
	const char *message = sbx_json_string(object, "message");
	const char *code = NULL;

	if (!state->steps.acted)
		state->steps.allocation = SBX_ALLOCATION_NONE;
	for (size_t i = 0; i < sizeof(daytona_refusals) / sizeof(daytona_refusals[0]); i++)
	{
		const SbxDaytonaRefusal *refusal = &daytona_refusals[i];

		if (daytona_refusal_matches(refusal, op->response.status, message))
		{
			state->steps.allocation = refusal->allocation;
			code = refusal->code;
			break;
		}
	}
	json_decref(object);
	return sbx_steps_fail_response(op, code);
}

/* --- the body of the create request ------------------------------------- */

/* Add a setting, if given, under the provider's name for it. */
static int
daytona_put_setting(json_t *body, const SbxFieldValue *settings, int index)
{
	const SbxField *field = &sbx_daytona_settings[index];
	const SbxFieldValue *value = &settings[index];
	const char *dot = strrchr(field->name, '.');
	const char *key = dot != NULL ? dot + 1 : field->name;

	if (!value->is_set)
		return 0;
	if (field->type == SBX_FIELD_INTEGER)
		return json_object_set_new(body, key, json_integer(value->integer));
	if (field->type == SBX_FIELD_BOOLEAN)
		return json_object_set_new(body, key, json_boolean(value->boolean));
	return json_object_set_new(body, key, json_string(value->text));
}

/* There is no image on the wire, only a build file. */
static int
daytona_put_image(json_t *body, const SbxFieldValue *image)
{
	json_t *build;

	if (!image->is_set)
		return 0;
	build = sbx_json_new_object();
	if (json_object_set_new(build, "dockerfileContent",
	                        json_sprintf("FROM %s\n", image->text)) != 0)
	{
		json_decref(build);
		return -1;
	}
	return json_object_set_new(body, "buildInfo", build);
}

/*
 * The body of the create request, with its members in the order in which the
 * provider's own client sends them.  NULL when the input is not UTF-8 or memory
 * is short.
 */
static json_t *
daytona_create_body(const SbxFieldValue *settings, const SbxLaunchInput *input)
{
	static const int after_image[] = {
	    DAYTONA_SET_CPU,
	    DAYTONA_SET_MEMORY,
	    DAYTONA_SET_DISK,
	    DAYTONA_SET_AUTO_STOP,
	    DAYTONA_SET_AUTO_ARCHIVE,
	    DAYTONA_SET_AUTO_DELETE,
	    DAYTONA_SET_NETWORK_BLOCK_ALL,
	    DAYTONA_SET_NETWORK_ALLOW_LIST,
	};
	/* Without memory these are NULL, which jansson's setters take as a failure. */
	json_t *body = sbx_json_new_object();
	json_t *labels = sbx_steps_json_pairs(input->labels, input->label_count);
	json_t *env = sbx_steps_json_pairs(input->env, input->env_count);
	int failed = 0;

	/* The client marks every sandbox so; kept for tools that look for it. */
	failed |=
	    json_object_set_new(labels, "code-toolbox-language", json_string("python"));

	failed |= json_object_set_new(body, "name", json_string(input->unique_name));
	failed |= daytona_put_setting(body, settings, DAYTONA_SET_SNAPSHOT);
	failed |= daytona_put_setting(body, settings, DAYTONA_SET_USER);
	failed |= json_object_set_new(body, "env", env);
	failed |= json_object_set_new(body, "labels", labels);
	failed |= daytona_put_setting(body, settings, DAYTONA_SET_PUBLIC);
	failed |= daytona_put_setting(body, settings, DAYTONA_SET_TARGET);
	failed |= daytona_put_image(body, &settings[DAYTONA_SET_IMAGE]);
	for (size_t i = 0; i < sizeof(after_image) / sizeof(after_image[0]); i++)
		failed |= daytona_put_setting(body, settings, after_image[i]);

	if (failed == 0)
		return body;
	json_decref(body);
	return NULL;
}
