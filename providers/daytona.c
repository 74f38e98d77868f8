/*
 * daytona.c
 *		Daytona: sandboxes made from a snapshot or an image.
 *
 * Two HTTP planes share one key.  The control plane (apiUrl) makes, describes
 * and deletes sandboxes.  The toolbox runs commands in one; its address is
 * dictated by the control plane's answers, so it is checked before the key goes
 * there (daytona_toolbox.c).
 *
 * Here: what the kind declares, and what all its operations share.
 */
#include <string.h>

#include "providers/daytona.h"

#define DAYTONA_API_URL "https://app.daytona.io/api"

/* No single exchange may eat the whole budget of an operation that can retry. */
#define DAYTONA_EXCHANGE_MS (10 * 1000)

/* --- declarations ------------------------------------------------------- */

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_daytona_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the control plane, " DAYTONA_API_URL " by default"},
    {"snapshot", SBX_FIELD_TEXT, false, false, 0, 0,
     "snapshot to start from; not together with image"},
    /* A word: it becomes the FROM line of a build file, where a blank has a meaning. */
    {"image", SBX_FIELD_WORD, false, false, 0, 0,
     "container image to build from; not together with snapshot"},
    {"target", SBX_FIELD_TEXT, false, false, 0, 0, "region name or id"},
    {"homeDir", SBX_FIELD_TEXT, false, false, 0, 0,
     "home directory when the provider does not tell it"},
    {"createParams.autoStopInterval", SBX_FIELD_INTEGER, false, false, 0, INT32_MAX,
     "minutes of idleness until it is stopped, 0 = never"},
    {"createParams.autoArchiveInterval", SBX_FIELD_INTEGER, false, false, 0, INT32_MAX,
     "minutes stopped until it is archived, 0 = the provider's maximum"},
    {"createParams.autoDeleteInterval", SBX_FIELD_INTEGER, false, false, -1, INT32_MAX,
     "minutes stopped until it is deleted, 0 = at once, -1 = never"},
    {"createParams.cpu", SBX_FIELD_INTEGER, false, false, 1, 4096,
     "vCPUs; only with image"},
    {"createParams.memory", SBX_FIELD_INTEGER, false, false, 1, INT32_MAX,
     "memory in GiB; only with image"},
    {"createParams.disk", SBX_FIELD_INTEGER, false, false, 1, INT32_MAX,
     "disk in GiB; only with image"},
    {"createParams.public", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "whether its ports are reachable without a token"},
    {"createParams.networkBlockAll", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "block all outbound traffic"},
    {"createParams.networkAllowList", SBX_FIELD_TEXT, false, false, 0, 0,
     "comma-separated CIDR blocks that stay reachable"},
    {"createParams.user", SBX_FIELD_TEXT, false, false, 0, 0,
     "operating system user inside the sandbox"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating and waiting until ready, 60 by default"},
    {0}};

enum
{
	DAYTONA_CREDENTIAL_API_KEY
};

static const SbxField daytona_credentials[] = {
    {"apiKey", SBX_FIELD_TEXT, true, false, 0, 0,
     "API key with write:sandboxes and delete:sandboxes"},
    {0}};

static const char *const daytona_operations[] = {
    "launch",      "launchDetached", "get",        "find",
    "waitReady",   "start",          "stop",       "runScript",
    "startScript", "scriptStatus",   "scriptLogs", "upload",
    "download",    "destroy",        "capacity",   NULL};

const char *
sbx_daytona_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *image = &settings[DAYTONA_SET_IMAGE];

	if (image->is_set && settings[DAYTONA_SET_SNAPSHOT].is_set)
		return sbx_daytona_settings[DAYTONA_SET_IMAGE].name;

	/* A snapshot, the default one too, brings its own size: answered with 400. */
	for (int i = DAYTONA_SET_CPU; i <= DAYTONA_SET_DISK; i++)
	{
		if (settings[i].is_set && !image->is_set)
			return sbx_daytona_settings[i].name;
	}
	return NULL;
}

const SbxProviderKind sbx_kind_daytona = {
    .name = "daytona",
    .operations = daytona_operations,
    .settings = sbx_daytona_settings,
    .credentials = daytona_credentials,
    .detached_launch = true,
    .max_launch_env = -1,
    .launch_create_timeout = true,
    .max_labels = -1,
    .check_settings = sbx_daytona_check_settings,
    .launch = sbx_daytona_launch,
    .get = sbx_daytona_get,
    .wait_ready = sbx_daytona_wait_ready,
    .find = sbx_daytona_find,
    .usage = sbx_daytona_usage,
    .inventory = sbx_daytona_inventory,
    .start = sbx_daytona_start,
    .stop = sbx_daytona_stop,
    .run_script = sbx_daytona_run_script,
    .start_script = sbx_daytona_start_script,
    .script_status = sbx_daytona_script_status,
    .script_logs = sbx_daytona_script_logs,
    .upload = sbx_daytona_upload,
    .download = sbx_daytona_download,
    .destroy = sbx_daytona_destroy,
};

/* --- the frame of an operation ------------------------------------------ */

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_daytona_make_op(const SbxAccount *account, const char *operation,
                    SbxStep *first_step, size_t state_size, size_t first_block,
                    int64_t timeout_ms)
{
	const SbxFieldValue *setting = &account->settings[DAYTONA_SET_API_URL];
	SbxOp *op;
	SbxDaytonaState *state;

	op = sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_url =
	    sbx_steps_base_url(op, setting->is_set ? setting->text : DAYTONA_API_URL);
	state->api_key = account->credentials[DAYTONA_CREDENTIAL_API_KEY];
	if (state->api_key == NULL)
		state->steps.step = sbx_steps_refuse;
	return op;
}

/* --- requests ----------------------------------------------------------- */

/*
 * The version is protocol negotiation: without it a session's output comes back in
 * another shape.
 */
static void
daytona_request(SbxOp *op, const char *method, const char *url)
{
	SbxDaytonaState *state = op->state;

	sbx_steps_request(op, method, url, DAYTONA_EXCHANGE_MS);
	sbx_steps_header(op, "Authorization", "Bearer ", state->api_key);
	sbx_steps_header(op, "X-Daytona-Source", "", "sbx_router");
	sbx_steps_header(op, "X-Daytona-SDK-Version", "", "0.205.1");
}

SbxOpWant
sbx_daytona_send(SbxOp *op, const char *method, const char *url, const char *body,
                 SbxStep *answer)
{
	daytona_request(op, method, url);
	return sbx_steps_send_json(op, body, answer);
}

/* The same for a body, or an answer, that is no JSON. */
SbxOpWant
sbx_daytona_send_bytes(SbxOp *op, const char *method, const char *url,
                       const char *content_type, const char *bytes, size_t length,
                       SbxStep *answer)
{
	daytona_request(op, method, url);
	sbx_steps_header(op, "Accept", "", "*/*");
	return sbx_steps_send(op, content_type, bytes, length, answer);
}

/* Ask the control plane what there is now. */
SbxOpWant
sbx_daytona_look(SbxOp *op, SbxStep *answer)
{
	SbxDaytonaState *state = op->state;

	return sbx_daytona_send(op, "GET", state->sandbox_url, NULL, answer);
}

void
sbx_daytona_point_at(SbxOp *op, const char *id_or_name)
{
	SbxDaytonaState *state = op->state;

	state->sandbox_url =
	    sbx_arena_printf(&op->arena, "%s/sandbox/%s", state->api_url, id_or_name);
}

/* The sandbox an operation is about, for those that only look at one. */
void
sbx_daytona_set_target(SbxOp *op, const SbxTarget *target)
{
	SbxDaytonaState *state = op->state;
	const char *id = target->sandbox_id;

	if (id == NULL)
		id = target->unique_name;
	if (!sbx_steps_valid_id(id))
	{
		state->steps.step = sbx_steps_refuse;
		return;
	}
	if (target->sandbox_id != NULL)
		memcpy(op->sandbox_id, id, strlen(id) + 1);
	sbx_daytona_point_at(op, id);
}

/* --- answers ------------------------------------------------------------ */

/*
 * The answer as a description of the sandbox we asked about, or NULL.  Once an id
 * is known, a description of another sandbox is as wrong as none.
 */
json_t *
sbx_daytona_sandbox(const SbxOp *op)
{
	json_t *sandbox = sbx_steps_object(op, false);
	const char *id = sbx_json_string(sandbox, "id");

	if (!sbx_steps_valid_id(id) ||
	    (op->sandbox_id[0] != '\0' && strcmp(id, op->sandbox_id) != 0))
	{
		json_decref(sandbox);
		return NULL;
	}
	return sandbox;
}

/*
 * The same of an answer that has to be one.  NULL = it is not, and the operation
 * has failed.
 */
json_t *
sbx_daytona_take_sandbox(SbxOp *op)
{
	json_t *sandbox;

	if (op->response.status != 200)
	{
		sbx_steps_fail_response(op, sbx_steps_status_code(op));
		return NULL;
	}
	sandbox = sbx_daytona_sandbox(op);
	if (sandbox == NULL)
		sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return sandbox;
}

/* Now the id is known: the one thing later cleaning up cannot do without. */
void
sbx_daytona_adopt(SbxOp *op, const json_t *sandbox)
{
	const char *id = sbx_json_string(sandbox, "id");

	memcpy(op->sandbox_id, id, strlen(id) + 1);
	sbx_daytona_point_at(op, op->sandbox_id);
}

/*
 * Some refusals differ in nothing but their text.  It is only compared and never
 * passed on: it is the provider's and can repeat what was sent.
 */
bool
sbx_daytona_message_has(const SbxOp *op, const char *text)
{
	json_t *object = sbx_steps_object(op, false);
	const char *message = sbx_json_string(object, "message");
	bool found = message != NULL && strstr(message, text) != NULL;

	json_decref(object);
	return found;
}

SbxSandboxState
sbx_daytona_sandbox_state(const json_t *sandbox)
{
	static const SbxStateWord words[] = {
	    {"started", SBX_STATE_STARTED},     {"stopped", SBX_STATE_STOPPED},
	    {"archived", SBX_STATE_STOPPED},    {"paused", SBX_STATE_STOPPED},
	    {"stopping", SBX_STATE_STOPPING},   {"archiving", SBX_STATE_STOPPING},
	    {"pausing", SBX_STATE_STOPPING},    {"error", SBX_STATE_FAILED},
	    {"build_failed", SBX_STATE_FAILED}, {"destroyed", SBX_STATE_GONE},
	    {"destroying", SBX_STATE_GONE},     {0}};

	return sbx_steps_state(words, sbx_json_string(sandbox, "state"), true);
}

SbxSandboxFacts *
sbx_daytona_facts(SbxOp *op, const json_t *sandbox)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, sandbox, "id");
	facts->state = sbx_daytona_sandbox_state(sandbox);
	facts->name = sbx_steps_copy_string(op, sandbox, "name");
	facts->created_at = sbx_steps_copy_string(op, sandbox, "createdAt");
	return sbx_steps_take_labels(op, json_object_get(sandbox, "labels"), facts) ? facts
	                                                                            : NULL;
}
