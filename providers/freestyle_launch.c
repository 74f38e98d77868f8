/*
 * freestyle_launch.c
 *		Making a machine at Freestyle.
 *
 * It is sent once.  The slug is what keeps a second delivery from making another one, and
 * what finds the machine when the answer is lost.
 */
#include <string.h>

#include "providers/freestyle.h"

#define FREESTYLE_CREATE_TIMEOUT_MS (120 * 1000)

/* Characters of a label's key or value. */
#define FREESTYLE_LABEL_MAX 63

/* A window that is not set; to say nothing means what the account or the plan says. */
#define FREESTYLE_NEVER (-1)

typedef struct SbxFreestyleLaunch
{
	SbxFreestyleState state; /* first */
	const char *slug;
	const char *body;
	const SbxFreestyleRefusal *refusal; /* before what has the slug is looked at */
} SbxFreestyleLaunch;

static SbxStep freestyle_launch_start;
static SbxStep freestyle_launch_created;
static SbxStep freestyle_launch_looked_up;

/* --- what it is asked for --------------------------------------------------- */

/* Nobody says what becomes of an empty value, which elsewhere deletes a label. */
bool
sbx_freestyle_carries_label(const char *key, const char *value)
{
	return *key != '\0' && *value != '\0' &&
	       sbx_steps_count_characters(key) <= FREESTYLE_LABEL_MAX &&
	       sbx_steps_count_characters(value) <= FREESTYLE_LABEL_MAX;
}

/*
 * The way out, or none.  Nothing of the caller's may get in here: the provider looks at a
 * rule when the machine runs already.
 */
static json_t *
freestyle_firewall(const SbxFieldValue *internet)
{
	const char *rules = !internet->is_set || internet->boolean
	                        ? "{\"rules\":[{\"action\":\"allow\",\"source\":{},"
	                          "\"destination\":{\"public\":true}}]}"
	                        : "{\"rules\":[]}";

	return sbx_json_parse(rules, strlen(rules), false);
}

static int
freestyle_put_window(json_t *body, const char *key, const SbxFieldValue *value)
{
	return json_object_set_new(
	    body, key, json_integer(value->is_set ? value->integer : FREESTYLE_NEVER));
}

static const char *
freestyle_name(const SbxLaunchInput *input)
{
	for (int i = 0; i < input->label_count; i++)
	{
		if (strcmp(input->labels[i].key, SBX_LABEL_NAME) == 0)
			return input->labels[i].value;
	}
	return NULL;
}

/*
 * Members in the order in which the provider's own client sends them.  That it does not
 * start again after a crash is always said: it would come back without its memory, and look
 * as if nothing had happened.
 */
static json_t *
freestyle_create_body(const char *slug, const SbxFieldValue *settings,
                      const SbxLaunchInput *input)
{
	const SbxFieldValue *snapshot = &settings[FREESTYLE_SET_SNAPSHOT];
	const SbxFieldValue *ttl = &settings[FREESTYLE_SET_TTL];
	const SbxFieldValue *auto_delete = &settings[FREESTYLE_SET_AUTO_DELETE];
	const char *name = freestyle_name(input);
	json_t *body = sbx_json_new_object();
	int failed = json_object_set_new(body, "slug", json_string(slug));

	if (name != NULL)
		failed |= json_object_set_new(body, "displayName", json_string(name));
	if (snapshot->is_set)
		failed |= json_object_set_new(body, "snapshotId", json_string(snapshot->text));
	failed |= json_object_set_new(
	    body, "metadata", sbx_steps_json_labels(input, sbx_freestyle_carries_label));
	failed |= freestyle_put_window(body, "idleTimeoutSeconds",
	                               &settings[FREESTYLE_SET_IDLE_TIMEOUT]);
	if (auto_delete->is_set)
		failed |= freestyle_put_window(body, "autoDeleteSeconds", auto_delete);
	if (ttl->is_set)
		failed |= freestyle_put_window(body, "ttlSeconds", ttl);
	failed |= json_object_set_new(body, "automaticRestart", json_false());
	failed |= json_object_set_new(
	    body, "firewall", freestyle_firewall(&settings[FREESTYLE_SET_INTERNET]));
	if (failed == 0 && body != NULL)
		return body;
	json_decref(body);
	return NULL;
}

SbxOp *
sbx_freestyle_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	int64_t timeout_ms =
	    sbx_steps_create_ms(input, &account->settings[FREESTYLE_SET_CREATE_TIMEOUT],
	                        FREESTYLE_CREATE_TIMEOUT_MS);
	SbxOp *op = sbx_freestyle_make_op(account, "launch", freestyle_launch_start,
	                                  sizeof(SbxFreestyleLaunch), FREESTYLE_ARENA_SMALL,
	                                  timeout_ms);
	SbxFreestyleLaunch *launch;
	json_t *body = NULL;

	if (op == NULL)
		return NULL;
	launch = op->state;
	if (input->launch_token != NULL)
		launch->state.launch_token = sbx_arena_strdup(&op->arena, input->launch_token);
	launch->state.unique_name = sbx_arena_strdup(&op->arena, input->unique_name);
	launch->slug = sbx_freestyle_slug(&op->arena, input->unique_name);
	if (launch->slug != NULL && input->env_count <= sbx_kind_freestyle.max_launch_env &&
	    input->label_count <= sbx_kind_freestyle.max_labels)
		body = freestyle_create_body(launch->slug, account->settings, input);
	launch->body = sbx_steps_launch_body(op, body);
	return sbx_steps_made(op);
}

/* --- making it -------------------------------------------------------------- */

static SbxOpWant
freestyle_launch_start(SbxOp *op)
{
	SbxFreestyleLaunch *launch = op->state;
	SbxOpWant want = sbx_freestyle_call(op, "POST", launch->state.vms_url, launch->body,
	                                    freestyle_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

/* Is this about the machine that was asked for? */
static bool
freestyle_is_named(const SbxOp *op, const json_t *vm)
{
	const SbxFreestyleLaunch *launch = op->state;
	const char *slug = sbx_json_string(vm, "slug");

	return slug != NULL && strcmp(slug, launch->slug) == 0 &&
	       sbx_steps_valid_id(sbx_json_string(vm, "id"));
}

/*
 * The metadata of an answer, where it has any, is what was sent: what is taken for ours is
 * deleted one day.
 */
static bool
freestyle_may_be_ours(const SbxOp *op, const json_t *vm)
{
	const SbxFreestyleLaunch *launch = op->state;
	const json_t *metadata = json_object_get(vm, "metadata");

	return json_object_size(metadata) == 0 ||
	       sbx_steps_owner(metadata, launch->state.unique_name,
	                       launch->state.launch_token) == SBX_OWNER_OURS;
}

/* It is there, and as a rule it runs. */
static SbxOpWant
freestyle_launch_made(SbxOp *op, const json_t *vm)
{
	SbxFreestyleState *state = op->state;

	state->steps.allocation = SBX_ALLOCATION_MADE;
	sbx_freestyle_point_at(op, sbx_json_string(vm, "id"));
	return sbx_freestyle_await_from(op, vm);
}

/* --- what a refused create proves ------------------------------------------- */

static SbxOpWant
freestyle_launch_refused(SbxOp *op)
{
	SbxFreestyleLaunch *launch = op->state;
	SbxFreestyleState *state = &launch->state;
	const SbxFreestyleRefusal *refusal = sbx_freestyle_refusal(op);

	if (!sbx_steps_may_have_arrived(op))
		state->steps.allocation = SBX_ALLOCATION_NONE;
	if (!refusal->look)
	{
		if (refusal->allocation != SBX_ALLOCATION_UNKNOWN)
			state->steps.allocation = refusal->allocation;
		return sbx_steps_fail_response(op, sbx_freestyle_not_found(op)
		                                       ? "SNAPSHOT_NOT_FOUND"
		                                       : sbx_freestyle_code(op));
	}
	launch->refusal = refusal;
	sbx_steps_note(op, refusal->code);
	state->vm_url = sbx_arena_printf(&op->arena, "%s/%s", state->vms_url, launch->slug);
	return sbx_freestyle_look(op, freestyle_launch_looked_up);
}

static SbxOpWant
freestyle_launch_created(SbxOp *op)
{
	SbxSteps *steps = op->state;
	json_t *vm;
	SbxOpWant want;

	steps->acted |= sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return freestyle_launch_refused(op);
	vm = sbx_steps_object(op, false);

	/* Otherwise something may have been made, and only its slug finds it. */
	if (freestyle_is_named(op, vm) && freestyle_may_be_ours(op, vm))
		want = freestyle_launch_made(op, vm);
	else
		want = sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	json_decref(vm);
	return want;
}

/* One that was refused and is there all the same is not what was asked for. */
static SbxOpWant
freestyle_launch_found(SbxOp *op, const json_t *vm)
{
	SbxFreestyleLaunch *launch = op->state;
	SbxFreestyleState *state = &launch->state;

	switch (sbx_steps_owner(json_object_get(vm, "metadata"), state->unique_name,
	                        state->launch_token))
	{
		case SBX_OWNER_OURS:
			if (launch->refusal->allocation == SBX_ALLOCATION_UNKNOWN)
				return freestyle_launch_made(op, vm);
			state->steps.allocation = SBX_ALLOCATION_MADE;
			sbx_freestyle_point_at(op, sbx_json_string(vm, "id"));
			return sbx_steps_fail_noted(op, launch->refusal->code);
		default:
			state->steps.allocation = launch->refusal->allocation;
			return sbx_steps_fail_noted(op, "NAME_CONFLICT");
	}
}

static SbxOpWant
freestyle_launch_looked_up(SbxOp *op)
{
	SbxFreestyleLaunch *launch = op->state;
	SbxSteps *steps = op->state;
	const char *code = launch->refusal->code;
	json_t *vm = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	SbxOpWant want;

	if (freestyle_is_named(op, vm))
		want = freestyle_launch_found(op, vm);
	else if (sbx_freestyle_not_found(op))
	{
		/* A conflict with nothing that has the slug: there is no room. */
		steps->allocation = launch->refusal->allocation;
		want =
		    sbx_steps_fail_noted(op, strcmp(code, "CONFLICT") == 0 ? "CAPACITY" : code);
	}
	else
		want = sbx_steps_fail_noted(op, code);
	json_decref(vm);
	return want;
}
