/*
 * agent37_launch.c
 *		Making an Agent37 instance.
 */
#include <string.h>

#include "providers/agent37.h"

/*
 * Measured: 13 s on a warm host.  A cold one takes minutes, and who gives up earlier has
 * an instance without an id: the provider goes on.
 */
#define AGENT37_CREATE_TIMEOUT_MS (300 * 1000)

#define AGENT37_NAME_MAX      60
#define AGENT37_ENV_VALUE_MAX 4096

/* --- what it is asked for --------------------------------------------------- */

static bool
agent37_is_reserved(const char *name)
{
	static const char *const names[] = {
	    "AGENT37_INSTANCE_ID",   "AGENT37_RUNTIME_IMAGE_REF",
	    "AGENT37_AGENT_TYPE",    "AGENT37_GATEWAY_PORT",
	    "OPENCLAW_GATEWAY_PORT", "OPENCLAW_CONTROL_UI_INSTANCE_ORIGIN"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		if (strcmp(names[i], name) == 0)
			return true;
	}
	return false;
}

/* The provider refuses any other; a script may have them. */
bool
sbx_agent37_carries_variable(const char *name, const char *value)
{
	return *name >= 'A' && *name <= 'Z' &&
	       name[strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0' &&
	       !agent37_is_reserved(name) &&
	       sbx_steps_count_characters(value) <= AGENT37_ENV_VALUE_MAX;
}

static bool
agent37_carries_env(const SbxPair *env, int count)
{
	for (int i = 0; i < count; i++)
	{
		if (!sbx_agent37_carries_variable(env[i].key, env[i].value))
			return false;
	}
	return count <= sbx_kind_agent37.max_launch_env;
}

static int
agent37_set_size(json_t *body, const SbxFieldValue *settings)
{
	static const struct
	{
		int setting;
		const char *key;
	} sizes[] = {{AGENT37_SET_CPU, "cpu"},
	             {AGENT37_SET_MEMORY, "memory"},
	             {AGENT37_SET_DISK, "disk"}};
	json_t *resources = sbx_json_new_object();
	int failed = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		const SbxFieldValue *value = &settings[sizes[i].setting];

		if (value->is_set)
			failed |= json_object_set_new(resources, sizes[i].key,
			                              json_integer(value->integer));
	}
	if (json_object_size(resources) > 0)
		failed |= json_object_set(body, "resources", resources);
	json_decref(resources);
	return failed;
}

/* What is not configured is left out: null is no value there. */
static int
agent37_set_configured(json_t *body, const SbxFieldValue *settings)
{
	const SbxFieldValue *template = &settings[AGENT37_SET_TEMPLATE];
	const SbxFieldValue *type = &settings[AGENT37_SET_TYPE];
	const SbxFieldValue *sleep = &settings[AGENT37_SET_AUTO_SLEEP];
	const SbxFieldValue *idle = &settings[AGENT37_SET_IDLE_TIMEOUT];
	int failed = 0;

	if (template->is_set)
		failed |= json_object_set_new(body, "template", json_string(template->text));
	failed |= agent37_set_size(body, settings);
	if (type->is_set)
		failed |= json_object_set_new(body, "type", json_string(type->text));
	if (sleep->is_set)
		failed |= json_object_set_new(body, "auto_sleep", json_boolean(sleep->boolean));
	if (idle->is_set)
		failed |= json_object_set_new(body, "idle_timeout_seconds",
		                              json_integer(idle->integer));
	return failed;
}

/* The name is for people; the metadata with our id is what finds it again. */
static json_t *
agent37_create_body(const SbxFieldValue *settings, const SbxLaunchInput *input)
{
	json_t *body = sbx_json_new_object();
	int failed = agent37_set_configured(body, settings);

	if (input->unique_name != NULL && strlen(input->unique_name) <= AGENT37_NAME_MAX)
		failed |= json_object_set_new(body, "name", json_string(input->unique_name));
	if (input->label_count > 0)
		failed |= json_object_set_new(
		    body, "metadata", sbx_steps_json_pairs(input->labels, input->label_count));
	if (input->env_count > 0)
		failed |= json_object_set_new(
		    body, "env", sbx_steps_json_pairs(input->env, input->env_count));
	if (failed == 0 && body != NULL)
		return body;
	json_decref(body);
	return NULL;
}

/* --- the steps -------------------------------------------------------------- */

typedef struct SbxAgent37Launch
{
	SbxAgent37Wait wait; /* first */
	const char *unique_name;
	const char *body;
} SbxAgent37Launch;

static SbxStep agent37_launch_start;
static SbxStep agent37_launch_created;

SbxOp *
sbx_agent37_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	int64_t timeout_ms =
	    sbx_steps_create_ms(input, &account->settings[AGENT37_SET_CREATE_TIMEOUT],
	                        AGENT37_CREATE_TIMEOUT_MS);
	SbxOp *op =
	    sbx_agent37_make_op(account, "launch", agent37_launch_start,
	                        sizeof(SbxAgent37Launch), AGENT37_ARENA_SMALL, timeout_ms);
	SbxAgent37Launch *launch;

	if (op == NULL)
		return NULL;
	launch = op->state;
	if (input->unique_name != NULL)
		launch->unique_name = sbx_arena_strdup(&op->arena, input->unique_name);
	launch->body =
	    sbx_steps_launch_body(op, agent37_create_body(account->settings, input));
	if (input->create_timeout_ms > 0 ||
	    !agent37_carries_env(input->env, input->env_count))
		launch->wait.state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
agent37_launch_start(SbxOp *op)
{
	SbxAgent37Launch *launch = op->state;
	SbxOpWant want = sbx_agent37_send(op, "POST", launch->wait.state.instances_url,
	                                  launch->body, agent37_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

static SbxOpWant
agent37_launch_refused(SbxOp *op)
{
	SbxSteps *steps = op->state;
	const char *code = sbx_agent37_error_code(op, &steps->allocation);

	if (!steps->acted)
		steps->allocation = SBX_ALLOCATION_NONE;
	return sbx_steps_fail_response(op, code);
}

/*
 * An answer may leave the metadata out, but not have another's: what is taken for ours is
 * deleted one day.
 */
static bool
agent37_launch_is_ours(const SbxAgent37Launch *launch, const json_t *instance)
{
	const char *owner =
	    sbx_json_string(json_object_get(instance, "metadata"), SBX_LABEL_ID);

	return owner == NULL || launch->unique_name == NULL ||
	       strcmp(owner, launch->unique_name) == 0;
}

/* It runs when this is answered, and takes commands a moment later. */
static SbxOpWant
agent37_launch_created(SbxOp *op)
{
	SbxAgent37Launch *launch = op->state;
	SbxSteps *steps = op->state;
	json_t *instance;
	const char *id;
	bool runs;

	steps->acted = sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return agent37_launch_refused(op);
	instance = sbx_steps_object(op, false);
	id = sbx_json_string(instance, "id");
	if (!sbx_steps_valid_id(id) || !agent37_launch_is_ours(launch, instance))
	{
		/* Something was made that we cannot name: only its metadata finds it. */
		json_decref(instance);
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	}
	steps->allocation = SBX_ALLOCATION_MADE;
	sbx_agent37_point_at(op, id);
	runs = sbx_agent37_state(instance) == SBX_STATE_STARTED;
	launch->wait.facts = sbx_agent37_facts(op, instance);
	json_decref(instance);
	return runs ? sbx_agent37_ready_probe(op) : sbx_agent37_ready_look(op);
}
