/*
 * microsandbox_launch.c
 *		Making a Microsandbox sandbox, and what a refusal proves.
 *
 * The create is answered at once, and then we look until it runs: the provider can hold
 * the answer back until then, but whoever waits like that knows no id meanwhile, and is
 * told "too many" for the waiting, which says nothing about the sandbox.
 */
#include <string.h>

#include "providers/microsandbox.h"

#define MICROSANDBOX_CREATE_TIMEOUT_MS (120 * 1000)

#define MICROSANDBOX_NAME_MAX 128

typedef struct SbxMicrosandboxLaunch
{
	SbxMicrosandboxWait wait; /* first */
	const char *unique_name;
	const char *body;
	bool detached;
} SbxMicrosandboxLaunch;

static SbxStep microsandbox_launch_start;
static SbxStep microsandbox_launch_created;
static SbxOpWant microsandbox_launch_refused(SbxOp *op);

/* --- the request ------------------------------------------------------------ */

static json_t *
microsandbox_text(const SbxFieldValue *value)
{
	return value->is_set ? json_string(value->text) : json_null();
}

static json_t *
microsandbox_number(const SbxFieldValue *value)
{
	return value->is_set ? json_integer(value->integer) : json_null();
}

static json_t *
microsandbox_resources(const SbxFieldValue *settings)
{
	const SbxFieldValue *vcpus = &settings[MICROSANDBOX_SET_VCPUS];
	const SbxFieldValue *memory = &settings[MICROSANDBOX_SET_MEMORY];
	const SbxFieldValue *disk = &settings[MICROSANDBOX_SET_DISK];
	json_t *resources = json_pack(
	    "{s:I, s:I}", "vcpus", (json_int_t) (vcpus->is_set ? vcpus->integer : 1),
	    "memory_mib", (json_int_t) (memory->is_set ? memory->integer : 512));

	if (resources == NULL || !disk->is_set ||
	    json_object_set_new(resources, "disk_size_mib", json_integer(disk->integer)) ==
	        0)
		return resources;
	json_decref(resources);
	return NULL;
}

static json_t *
microsandbox_env(const SbxLaunchInput *input)
{
	json_t *env = json_array();

	for (int i = 0; i < input->env_count && env != NULL; i++)
	{
		json_t *pair = json_pack("{s:s, s:s}", "key", input->env[i].key, "value",
		                         input->env[i].value);

		if (json_array_append_new(env, pair) == 0)
			continue;
		json_decref(env);
		return NULL;
	}
	return env;
}

/* Every member that the provider's own client sends; NULL = a text is not UTF-8. */
static json_t *
microsandbox_create_body(const SbxFieldValue *settings, const SbxLaunchInput *input)
{
	const SbxFieldValue *policy = &settings[MICROSANDBOX_SET_PULL_POLICY];
	const SbxFieldValue *ephemeral = &settings[MICROSANDBOX_SET_EPHEMERAL];

	return json_pack("{s:s, s:{s:s, s:s}, s:o,"
	                 " s:{s:o, s:n, s:{}, s:n, s:n, s:o, s:n},"
	                 " s:o, s:o, s:[], s:[], s:[], s:{s:b}, s:n, s:s, s:s,"
	                 " s:{s:b, s:o, s:o}}",
	                 "name", input->unique_name, "image", "type", "oci", "reference",
	                 settings[MICROSANDBOX_SET_IMAGE].text, "resources",
	                 microsandbox_resources(settings), "runtime", "workdir",
	                 microsandbox_text(&settings[MICROSANDBOX_SET_WORKDIR]), "shell",
	                 "scripts", "entrypoint", "cmd", "user",
	                 microsandbox_text(&settings[MICROSANDBOX_SET_USER]), "log_level",
	                 "env", microsandbox_env(input), "labels",
	                 sbx_steps_json_labels(input, sbx_microsandbox_carries_label),
	                 "rlimits", "mounts", "patches", "network", "enabled", 1, "init",
	                 "pull_policy", policy->is_set ? policy->text : "if_missing",
	                 "security_profile", "default", "lifecycle", "ephemeral",
	                 ephemeral->is_set && ephemeral->boolean, "max_duration_secs",
	                 microsandbox_number(&settings[MICROSANDBOX_SET_MAX_DURATION]),
	                 "idle_timeout_secs",
	                 microsandbox_number(&settings[MICROSANDBOX_SET_IDLE_TIMEOUT]));
}

/* --- what can be asked for -------------------------------------------------- */

static bool
microsandbox_valid_name(const char *name)
{
	return name[strspn(name, SBX_NAME_BYTES)] == '\0' &&
	       strlen(name) <= MICROSANDBOX_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                    "0123456789") > 0;
}

/* Some beginnings of labels are the provider's own. */
bool
sbx_microsandbox_carries_label(const char *key, const char *value)
{
	static const char *const reserved[] = {"sandbox.", "microsandbox.", "service."};

	(void) value;
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
	{
		if (strncmp(key, reserved[i], strlen(reserved[i])) == 0)
			return false;
	}
	return *key != '\0';
}

/* Nobody else looks at these names. */
static bool
microsandbox_valid_env(const SbxLaunchInput *input)
{
	for (int i = 0; i < input->env_count; i++)
	{
		const char *key = input->env[i].key;

		if (*key == '\0' || strchr(key, '=') != NULL)
			return false;
	}
	return true;
}

/* --- launch ----------------------------------------------------------------- */

SbxOp *
sbx_microsandbox_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	int64_t timeout_ms =
	    sbx_steps_create_ms(input, &account->settings[MICROSANDBOX_SET_CREATE_TIMEOUT],
	                        MICROSANDBOX_CREATE_TIMEOUT_MS);
	SbxOp *op = sbx_microsandbox_make_op(account, "launch", microsandbox_launch_start,
	                                     sizeof(SbxMicrosandboxLaunch),
	                                     MICROSANDBOX_ARENA_SMALL, timeout_ms);
	SbxMicrosandboxLaunch *launch;
	json_t *body = NULL;

	if (op == NULL)
		return NULL;
	launch = op->state;
	launch->detached = input->detached;
	launch->unique_name = sbx_arena_strdup(&op->arena, input->unique_name);
	if (microsandbox_valid_name(input->unique_name) && microsandbox_valid_env(input))
		body = microsandbox_create_body(account->settings, input);
	launch->body = sbx_steps_launch_body(op, body);
	return sbx_steps_made(op);
}

static SbxOpWant
microsandbox_launch_start(SbxOp *op)
{
	SbxMicrosandboxLaunch *launch = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s?start=true", launch->wait.state.api_url);
	SbxOpWant want = sbx_microsandbox_send(op, "POST", url, launch->body,
	                                       microsandbox_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

/* Is it the one that was asked for?  What has another name may be somebody's. */
static bool
microsandbox_is_wanted(const SbxMicrosandboxLaunch *launch, const json_t *sandbox)
{
	const char *name = sbx_json_string(sandbox, "name");

	return sbx_microsandbox_valid_id(sbx_json_string(sandbox, "id")) && name != NULL &&
	       strcmp(name, launch->unique_name) == 0;
}

/* "Starting" is also what one that waits for a free place says. */
static SbxOpWant
microsandbox_launch_created(SbxOp *op)
{
	SbxMicrosandboxLaunch *launch = op->state;
	SbxSandboxFacts *facts;
	json_t *sandbox;

	launch->wait.state.steps.acted = sbx_steps_may_have_arrived(op);
	if (!sbx_steps_is_success(op))
		return microsandbox_launch_refused(op);
	sandbox = sbx_steps_object(op, false);
	if (!microsandbox_is_wanted(launch, sandbox))
	{
		/* Something was made that we cannot name: only its own name finds it. */
		json_decref(sandbox);
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	}
	launch->wait.state.steps.allocation = SBX_ALLOCATION_MADE;
	sbx_microsandbox_point_at(op, sbx_json_string(sandbox, "id"));
	facts = sbx_microsandbox_facts(op, sandbox);
	json_decref(sandbox);
	if (facts == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	if (facts->state == SBX_STATE_FAILED)
		return sbx_steps_fail_response(op, "SANDBOX_FAILED");
	if (facts->state == SBX_STATE_STARTED || launch->detached)
		return sbx_op_succeed(op, facts);
	launch->wait.stopped_is_passing = true;
	return sbx_microsandbox_await(op);
}

/* --- what a refused create proves ------------------------------------------- */

/*
 * The first row that matches counts; what is not listed proves nothing.  What a quota
 * says is not known, so no other refusal is taken for one.
 */
const SbxMicrosandboxRefusal sbx_microsandbox_refusals[] = {
    {400, NULL, SBX_ALLOCATION_NONE, "BAD_REQUEST"},
    {401, NULL, SBX_ALLOCATION_NONE, "UNAUTHORIZED"},
    {403, NULL, SBX_ALLOCATION_UNKNOWN, "FORBIDDEN"},
    {409, "name_already_exists", SBX_ALLOCATION_NONE, "NAME_CONFLICT"},
    {422, NULL, SBX_ALLOCATION_NONE, "BAD_REQUEST"},
    {429, NULL, SBX_ALLOCATION_UNKNOWN, "RATE_LIMITED"},
    {0}};

static SbxOpWant
microsandbox_launch_refused(SbxOp *op)
{
	SbxSteps *steps = op->state;
	const char *code = NULL;

	if (!steps->acted)
		steps->allocation = SBX_ALLOCATION_NONE;
	for (const SbxMicrosandboxRefusal *refusal = sbx_microsandbox_refusals;
	     refusal->status != 0; refusal++)
	{
		if (refusal->status != op->response.status ||
		    (refusal->error_code != NULL &&
		     !sbx_microsandbox_has_code(op, refusal->error_code)))
			continue;
		steps->allocation = refusal->allocation;
		code = refusal->code;
		break;
	}
	return sbx_steps_fail_response(op, code);
}
