/*
 * vercel.c
 *		Vercel Sandbox: named sandboxes, each with one session at a time.
 *
 * A sandbox is known by its name, which is unique in a project and is the router's own.
 * What runs is a session of it, a virtual machine with an id of its own: commands and files
 * go there.  The next start is another session, so no operation keeps the id of one.
 *
 * Here: what the kind declares, and what all its operations share.
 */
#include "providers/vercel.h"

#include <string.h>

#define VERCEL_API_URL "https://vercel.com/api"
#define VERCEL_HOME    "/vercel/sandbox"

/* Only sandboxes with such a name are ever changed, or found. */
#define VERCEL_NAME_PREFIX "sbx_"
#define VERCEL_NAME_MAX    128

/* No single exchange may eat the whole budget of an operation that can retry. */
#define VERCEL_EXCHANGE_MS (15 * 1000)

/* --- declarations --------------------------------------------------------- */

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_vercel_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the interface, " VERCEL_API_URL " by default"},
    {"image", SBX_FIELD_WORD, false, false, 0, 0,
     "image to start from, the provider's universal one by default; not together with "
     "runtime"},
    {"runtime", SBX_FIELD_WORD, false, false, 0, 0,
     "one of the provider's older runtimes (node24, python3.13) instead of an image"},
    {"region", SBX_FIELD_WORD, false, false, 0, 0,
     "region, iad1 by the provider's default"},
    {"vcpus", SBX_FIELD_INTEGER, false, false, 1, 32,
     "vCPUs, 1 or an even number, each with 2 GiB of memory; 2 by the provider's "
     "default"},
    {"timeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "lifetime of a sandbox in seconds, 300 by default; nothing extends it"},
    {"persistent", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "keep its files when it is stopped, so that it can be started again; false by "
     "default"},
    {"networkPolicy", SBX_FIELD_WORD, false, false, 0, 0,
     "allow-all or deny-all; the first by the provider's default"},
    {"homeDir", SBX_FIELD_TEXT, false, false, 0, 0,
     "where relative paths of files start, " VERCEL_HOME " by default"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating and waiting until ready, 180 by default"},
    {0}};

enum
{
	VERCEL_CREDENTIAL_TOKEN,
	VERCEL_CREDENTIAL_TEAM_ID,
	VERCEL_CREDENTIAL_PROJECT_ID
};

static const SbxField vercel_credentials[] = {
    {"token", SBX_FIELD_TEXT, true, false, 0, 0,
     "access token or OIDC token; the team that the latter names counts"},
    {"teamId", SBX_FIELD_TEXT, true, false, 0, 0, "id of the team"},
    {"projectId", SBX_FIELD_TEXT, true, false, 0, 0, "id of the project"},
    {0}};

static const char *const vercel_operations[] = {
    "launch",    "get",    "find",     "waitReady", "start",    "stop",
    "runScript", "upload", "download", "destroy",   "capacity", NULL};

static const char *
vercel_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *vcpus = &settings[VERCEL_SET_VCPUS];
	const SbxFieldValue *policy = &settings[VERCEL_SET_NETWORK_POLICY];
	const SbxFieldValue *home = &settings[VERCEL_SET_HOME_DIR];

	if (settings[VERCEL_SET_IMAGE].is_set && settings[VERCEL_SET_RUNTIME].is_set)
		return sbx_vercel_settings[VERCEL_SET_RUNTIME].name;
	if (vcpus->is_set && vcpus->integer > 1 && vcpus->integer % 2 != 0)
		return sbx_vercel_settings[VERCEL_SET_VCPUS].name;
	if (policy->is_set && strcmp(policy->text, "allow-all") != 0 &&
	    strcmp(policy->text, "deny-all") != 0)
		return sbx_vercel_settings[VERCEL_SET_NETWORK_POLICY].name;
	if (home->is_set && home->text[0] != '/')
		return sbx_vercel_settings[VERCEL_SET_HOME_DIR].name;
	return NULL;
}

const SbxProviderKind sbx_kind_vercel = {
    .name = "vercel",
    .operations = vercel_operations,
    .settings = sbx_vercel_settings,
    .credentials = vercel_credentials,

    /* A create is answered when the sandbox runs, or nearly so. */
    .detached_launch = false,
    .max_launch_env = -1,
    .launch_create_timeout = true,
    .max_labels = 5,
    .carries_label = sbx_vercel_carries_label,
    .check_settings = vercel_check_settings,
    .launch = sbx_vercel_launch,
    .get = sbx_vercel_get,
    .wait_ready = sbx_vercel_wait_ready,
    .find = sbx_vercel_find,
    .usage = sbx_vercel_usage,
    .start = sbx_vercel_start,
    .stop = sbx_vercel_stop,
    .run_script = sbx_vercel_run_script,
    .upload = sbx_vercel_upload,
    .download = sbx_vercel_download,
    .destroy = sbx_vercel_destroy,
};

/* --- the frame of an operation -------------------------------------------- */

static void
vercel_learn_account(SbxOp *op, const SbxAccount *account)
{
	SbxVercelState *state = op->state;
	const char *team = account->credentials[VERCEL_CREDENTIAL_TEAM_ID];
	const char *project = account->credentials[VERCEL_CREDENTIAL_PROJECT_ID];
	const char *token_team;

	state->token = account->credentials[VERCEL_CREDENTIAL_TOKEN];
	if (state->token == NULL || team == NULL || project == NULL)
	{
		state->steps.step = sbx_steps_refuse;
		return;
	}
	token_team = sbx_vercel_token_team(&op->arena, state->token);
	team = sbx_arena_url_encode(&op->arena, token_team != NULL ? token_team : team);
	if (team != NULL)
		state->team_query = sbx_arena_printf(&op->arena, "teamId=%s", team);
	state->project = sbx_arena_strdup(&op->arena, project);
	state->project_query = sbx_arena_url_encode(&op->arena, project);
}

/*
 * The frame of every operation.  The token is not copied: it would outlive a `clear` in
 * the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_vercel_make_op(const SbxAccount *account, const char *operation,
                   SbxStep *first_step, size_t state_size, size_t first_block,
                   int64_t timeout_ms)
{
	const SbxFieldValue *settings = account->settings;
	const SbxFieldValue *api_url = &settings[VERCEL_SET_API_URL];
	const SbxFieldValue *home = &settings[VERCEL_SET_HOME_DIR];
	SbxOp *op =
	    sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	SbxVercelState *state;

	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_url =
	    sbx_steps_base_url(op, api_url->is_set ? api_url->text : VERCEL_API_URL);
	state->home = home->is_set ? sbx_steps_base_url(op, home->text) : VERCEL_HOME;
	state->persistent = settings[VERCEL_SET_PERSISTENT].is_set &&
	                    settings[VERCEL_SET_PERSISTENT].boolean;
	vercel_learn_account(op, account);
	return op;
}

bool
sbx_vercel_valid_name(const char *name)
{
	return name != NULL &&
	       strncmp(name, VERCEL_NAME_PREFIX, strlen(VERCEL_NAME_PREFIX)) == 0 &&
	       strlen(name) <= VERCEL_NAME_MAX && sbx_script_valid_name(name);
}

void
sbx_vercel_set_target(SbxOp *op, const SbxTarget *target)
{
	SbxVercelState *state = op->state;
	const char *name =
	    target->sandbox_id != NULL ? target->sandbox_id : target->unique_name;

	if (!sbx_vercel_valid_name(name))
	{
		state->steps.step = sbx_steps_refuse;
		return;
	}
	memcpy(op->sandbox_id, name, strlen(name) + 1);
	if (target->unique_name != NULL)
		state->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);
	if (target->launch_token != NULL)
		state->launch_token = sbx_arena_strdup(&op->arena, target->launch_token);
	state->sandbox_url =
	    sbx_arena_printf(&op->arena, "%s/v2/sandboxes/%s?%s&projectId=%s",
	                     state->api_url, name, state->team_query, state->project_query);
}

/* --- requests ------------------------------------------------------------- */

void
sbx_vercel_request(SbxOp *op, const char *method, const char *url)
{
	SbxVercelState *state = op->state;

	sbx_steps_request(op, method, url, VERCEL_EXCHANGE_MS);
	sbx_steps_header(op, "Authorization", "Bearer ", state->token);
}

/* Every request says that it is JSON, as the provider's own client does. */
SbxOpWant
sbx_vercel_send(SbxOp *op, const char *method, const char *url, const char *body,
                SbxStep *answer)
{
	sbx_vercel_request(op, method, url);
	return sbx_steps_send(op, "application/json", body, body == NULL ? 0 : strlen(body),
	                      answer);
}

/* Without "resume" it starts nothing. */
SbxOpWant
sbx_vercel_look(SbxOp *op, SbxStep *answer)
{
	SbxVercelState *state = op->state;

	return sbx_vercel_send(op, "GET", state->sandbox_url, NULL, answer);
}

const char *
sbx_vercel_session_url(SbxOp *op, const char *path)
{
	SbxVercelState *state = op->state;

	return sbx_arena_printf(&op->arena, "%s/v2/sandboxes/sessions/%s%s?%s",
	                        state->api_url, state->session_id, path, state->team_query);
}

SbxOpWant
sbx_vercel_send_session(SbxOp *op, const char *method, const char *path,
                        const char *body, SbxStep *answer)
{
	return sbx_vercel_send(op, method, sbx_vercel_session_url(op, path), body, answer);
}
