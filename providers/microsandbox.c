/*
 * microsandbox.c
 *		Hosted Microsandbox: sandboxes made from a container image.
 *
 * Two channels on one origin, with one key.  Requests make, describe, start, stop and
 * delete a sandbox; a WebSocket leads to the agent inside it, which runs commands.  A
 * sandbox has a name, which we choose and which is used again after it is gone, and a
 * UUID, which is never: everything but the look for a lost one goes by the UUID.
 *
 * Here: what the kind declares, and what all its operations share.
 */
#include "providers/microsandbox.h"

#include <string.h>

#define MICROSANDBOX_API "https://api.microsandbox.dev"

/* No single exchange may eat the whole budget of an operation that can retry. */
#define MICROSANDBOX_EXCHANGE_MS (10 * 1000)

/* Looking more often is asking for trouble. */
#define MICROSANDBOX_LOOK_MS 500

/* --- declarations --------------------------------------------------------- */

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_microsandbox_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the API, " MICROSANDBOX_API " by default"},
    {"image", SBX_FIELD_WORD, true, false, 0, 0, "container image to start from"},
    {"vcpus", SBX_FIELD_INTEGER, false, false, 1, 255, "vCPUs, 1 by default"},
    {"memoryMib", SBX_FIELD_INTEGER, false, false, 1, UINT32_MAX,
     "memory in MiB, 512 by default"},
    {"diskSizeMib", SBX_FIELD_INTEGER, false, false, 1, UINT32_MAX,
     "disk in MiB; without it the disk's share of capacity is not known"},
    {"workdir", SBX_FIELD_TEXT, false, false, 0, 0, "working directory of commands"},
    {"user", SBX_FIELD_WORD, false, false, 0, 0,
     "operating system user that commands run as"},
    {"pullPolicy", SBX_FIELD_WORD, false, false, 0, 0,
     "if_missing (by default), always or never"},
    {"ephemeral", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "whether it is gone once it stops"},
    {"maxDurationSeconds", SBX_FIELD_INTEGER, false, false, 1, UINT32_MAX,
     "seconds until it is stopped"},
    {"idleTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, UINT32_MAX,
     "seconds of idleness until it is stopped"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating and waiting until it runs, 120 by default"},
    {0}};

enum
{
	MICROSANDBOX_CREDENTIAL_API_KEY
};

static const SbxField microsandbox_credentials[] = {
    {"apiKey", SBX_FIELD_TEXT, true, false, 0, 0, "API key of the organization"}, {0}};

static const char *const microsandbox_operations[] = {
    "launch",      "launchDetached", "get",        "find",
    "waitReady",   "start",          "stop",       "runScript",
    "startScript", "scriptStatus",   "scriptLogs", "upload",
    "download",    "destroy",        "capacity",   NULL};

static const char *
microsandbox_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *policy = &settings[MICROSANDBOX_SET_PULL_POLICY];

	if (policy->is_set && strcmp(policy->text, "if_missing") != 0 &&
	    strcmp(policy->text, "always") != 0 && strcmp(policy->text, "never") != 0)
		return "pullPolicy";
	return NULL;
}

const SbxProviderKind sbx_kind_microsandbox = {
    .name = "microsandbox",
    .operations = microsandbox_operations,
    .settings = sbx_microsandbox_settings,
    .credentials = microsandbox_credentials,
    .check_settings = microsandbox_check_settings,
    .detached_launch = true,
    .max_launch_env = -1,
    .launch_create_timeout = true,
    .max_labels = -1,
    .carries_label = sbx_microsandbox_carries_label,
    .launch = sbx_microsandbox_launch,
    .get = sbx_microsandbox_get,
    .wait_ready = sbx_microsandbox_wait_ready,
    .find = sbx_microsandbox_find,
    .usage = sbx_microsandbox_usage,
    .start = sbx_microsandbox_start,
    .stop = sbx_microsandbox_stop,
    .run_script = sbx_microsandbox_run_script,
    .start_script = sbx_microsandbox_start_script,
    .script_status = sbx_microsandbox_script_status,
    .script_logs = sbx_microsandbox_script_logs,
    .upload = sbx_microsandbox_upload,
    .download = sbx_microsandbox_download,
    .destroy = sbx_microsandbox_destroy,
};

/* --- the frame of an operation -------------------------------------------- */

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_microsandbox_make_op(const SbxAccount *account, const char *operation,
                         SbxStep *first_step, size_t state_size, size_t first_block,
                         int64_t timeout_ms)
{
	const SbxFieldValue *url = &account->settings[MICROSANDBOX_SET_API_URL];
	SbxOp *op =
	    sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	SbxMicrosandboxState *state;
	const char *base;

	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_key = account->credentials[MICROSANDBOX_CREDENTIAL_API_KEY];
	base = url->is_set ? sbx_steps_base_url(op, url->text) : MICROSANDBOX_API;
	if (base != NULL)
		state->api_url = sbx_arena_printf(&op->arena, "%s/v1/sandboxes", base);
	if (state->api_key == NULL)
		state->steps.step = sbx_steps_refuse;
	return op;
}

bool
sbx_microsandbox_valid_id(const char *id)
{
	if (id == NULL || strlen(id) != 36)
		return false;
	for (int i = 0; i < 36; i++)
	{
		bool is_hyphen = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_hyphen ? id[i] != '-' : strchr("0123456789abcdef", id[i]) == NULL)
			return false;
	}
	return true;
}

void
sbx_microsandbox_point_at(SbxOp *op, const char *id)
{
	SbxMicrosandboxState *state = op->state;

	memmove(op->sandbox_id, id, strlen(id) + 1); /* it may be that very text */
	state->url = sbx_arena_printf(&op->arena, "%s/%s", state->api_url, op->sandbox_id);
}

void
sbx_microsandbox_set_target(SbxOp *op, const SbxTarget *target)
{
	if (sbx_microsandbox_valid_id(target->sandbox_id))
		sbx_microsandbox_point_at(op, target->sandbox_id);
	else
		((SbxMicrosandboxState *) op->state)->steps.step = sbx_steps_refuse;
}

/* --- the control plane ---------------------------------------------------- */

SbxOpWant
sbx_microsandbox_send(SbxOp *op, const char *method, const char *url, const char *body,
                      SbxStep *answer)
{
	SbxMicrosandboxState *state = op->state;

	sbx_steps_request(op, method, url, MICROSANDBOX_EXCHANGE_MS);
	sbx_steps_header(op, "Authorization", "Bearer ", state->api_key);
	return sbx_steps_send_json(op, body, answer);
}

SbxOpWant
sbx_microsandbox_look(SbxOp *op, SbxStep *answer)
{
	SbxMicrosandboxState *state = op->state;

	return sbx_microsandbox_send(op, "GET", state->url, NULL, answer);
}

/* {"error":{"code":...}}, or the same without the outer object. */
bool
sbx_microsandbox_has_code(const SbxOp *op, const char *code)
{
	json_t *answer = sbx_steps_object(op, false);
	const json_t *error = json_object_get(answer, "error");
	const char *found = sbx_json_string(error != NULL ? error : answer, "code");
	bool same = found != NULL && strcmp(found, code) == 0;

	json_decref(answer);
	return same;
}

bool
sbx_microsandbox_is_gone(const SbxOp *op)
{
	return op->response.status == 404 &&
	       sbx_microsandbox_has_code(op, "sandbox_not_found");
}

/* One that was never started is not on its way to anything. */
SbxSandboxState
sbx_microsandbox_sandbox_state(const json_t *sandbox)
{
	static const SbxStateWord words[] = {
	    {"created", SBX_STATE_STOPPED},   {"running", SBX_STATE_STARTED},
	    {"stopping", SBX_STATE_STOPPING}, {"stopped", SBX_STATE_STOPPED},
	    {"failed", SBX_STATE_FAILED},     {0}};

	return sbx_steps_state(words, sbx_json_string(sandbox, "status"), false);
}

/* What it was made from, labels included, is not there from the start. */
SbxSandboxFacts *
sbx_microsandbox_facts(SbxOp *op, const json_t *sandbox)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
	const json_t *spec = json_object_get(sandbox, "spec");

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, sandbox, "id");
	facts->name = sbx_steps_copy_string(op, sandbox, "name");
	facts->state = sbx_microsandbox_sandbox_state(sandbox);
	facts->created_at = sbx_steps_copy_string(op, sandbox, "created_at");
	return sbx_steps_take_labels(op, json_object_get(spec, "labels"), facts) ? facts
	                                                                         : NULL;
}

json_t *
sbx_microsandbox_take_sandbox(SbxOp *op)
{
	json_t *sandbox;
	const char *id;

	if (op->response.status != 200)
	{
		sbx_steps_fail_response(op, sbx_steps_status_code(op));
		return NULL;
	}
	sandbox = sbx_steps_object(op, false);
	id = sbx_json_string(sandbox, "id");
	if (id != NULL && strcmp(id, op->sandbox_id) == 0)
		return sandbox;
	json_decref(sandbox);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return NULL;
}

/* --- waiting until it runs -------------------------------------------------- */

static SbxStep microsandbox_awaited;

SbxOpWant
sbx_microsandbox_await(SbxOp *op)
{
	return sbx_microsandbox_look(op, microsandbox_awaited);
}

static SbxOpWant
microsandbox_judge(SbxOp *op, const json_t *sandbox)
{
	SbxMicrosandboxWait *wait = op->state;
	SbxSandboxState found = sbx_microsandbox_sandbox_state(sandbox);

	switch (found)
	{
		case SBX_STATE_STARTED:
			return sbx_op_succeed(op, sbx_microsandbox_facts(op, sandbox));
		case SBX_STATE_FAILED:
			return sbx_steps_fail_response(op, "SANDBOX_FAILED");
		case SBX_STATE_STOPPED:
		case SBX_STATE_STOPPING:
			if (wait->restart != NULL && found == SBX_STATE_STOPPED)
				return sbx_steps_wait(op, wait->restart);
			if (wait->restart == NULL && !wait->stopped_is_passing)
				return sbx_steps_fail_response(op, "NOT_STARTED");
			break;
		default:
			wait->stopped_is_passing = false;
			break;
	}
	sbx_steps_allow_unready(op, sandbox, sbx_microsandbox_facts);
	return sbx_steps_pause(op, MICROSANDBOX_LOOK_MS, sbx_microsandbox_await);
}

static SbxOpWant
microsandbox_awaited(SbxOp *op)
{
	SbxMicrosandboxWait *wait = op->state;
	json_t *sandbox;
	SbxOpWant want;

	if (sbx_steps_is_passing(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_pause(op, MICROSANDBOX_LOOK_MS, sbx_microsandbox_await);
	}
	if (sbx_microsandbox_is_gone(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_microsandbox_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;

	/* What went wrong before is not why it is not ready. */
	memset(&wait->state.steps.noted, 0, sizeof(wait->state.steps.noted));
	want = microsandbox_judge(op, sandbox);
	json_decref(sandbox);
	return want;
}
