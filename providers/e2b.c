/*
 * e2b.c
 *		E2B: sandboxes made from a template.
 *
 * Two planes with a secret each.  The control plane (apiUrl), which takes the API key,
 * makes, describes, pauses and ends sandboxes.  In each sandbox a daemon, envd, runs
 * commands and serves files; it takes a token of its own, which descriptions of the
 * sandbox hold.  Neither secret ever goes to the other plane.
 *
 * Here: what the kind declares, and what all its operations share.
 */
#include "providers/e2b.h"

#include <string.h>

#include "net/base64.h"

#define E2B_DOMAIN   "e2b.app"
#define E2B_TEMPLATE "base"

/* The port of envd inside a sandbox. */
#define E2B_ENVD_PORT "49983"

/* The provider's own default, said explicitly: another version has 15 s. */
#define E2B_LIFETIME_SECONDS 300

/* No single exchange may eat the whole budget of an operation that can retry. */
#define E2B_EXCHANGE_MS (10 * 1000)

/* --- declarations --------------------------------------------------------- */

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_e2b_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the control plane, https://api.<domain> by default"},
    /* The key goes to a host of this domain. */
    {"domain", SBX_FIELD_HOST, false, true, 0, 0,
     "domain of the deployment, " E2B_DOMAIN " by default"},
    {"sandboxUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of every sandbox; by default it follows from the domain"},
    {"template", SBX_FIELD_WORD, false, false, 0, 0,
     "template to start from, " E2B_TEMPLATE " by default"},
    {"timeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "lifetime of a sandbox in seconds, 300 by default; a script extends it"},
    {"allowInternetAccess", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "whether it reaches the internet"},
    {"autoPause", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "pause at the end of its lifetime instead of ending it"},
    {"user", SBX_FIELD_WORD, false, false, 0, 0,
     "operating system user that commands run as"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating, 120 by default"},
    {0}};

enum
{
	E2B_CREDENTIAL_API_KEY
};

static const SbxField e2b_credentials[] = {
    {"apiKey", SBX_FIELD_TEXT, true, false, 0, 0, "API key of the team"}, {0}};

static const char *const e2b_operations[] = {
    "launch", "get",       "find",        "waitReady",    "start",
    "stop",   "runScript", "startScript", "scriptStatus", "scriptLogs",
    "upload", "download",  "destroy",     "capacity",     NULL};

const SbxProviderKind sbx_kind_e2b = {
    .name = "e2b",
    .operations = e2b_operations,
    .settings = sbx_e2b_settings,
    .credentials = e2b_credentials,

    /* A create is answered when the sandbox runs: there is no other way. */
    .detached_launch = false,
    .max_launch_env = -1,
    .launch_create_timeout = true,
    .max_labels = -1,
    .launch = sbx_e2b_launch,
    .get = sbx_e2b_get,
    .wait_ready = sbx_e2b_wait_ready,
    .find = sbx_e2b_find,
    .usage = sbx_e2b_usage,
    .start = sbx_e2b_start,
    .stop = sbx_e2b_stop,
    .run_script = sbx_e2b_run_script,
    .start_script = sbx_e2b_start_script,
    .script_status = sbx_e2b_script_status,
    .script_logs = sbx_e2b_script_logs,
    .upload = sbx_e2b_upload,
    .download = sbx_e2b_download,
    .destroy = sbx_e2b_destroy,
};

/* --- the frame of an operation -------------------------------------------- */

static const char *
e2b_copy_text(SbxOp *op, const SbxFieldValue *value, const char *absent)
{
	return value->is_set ? sbx_arena_strdup(&op->arena, value->text) : absent;
}

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
SbxOp *
sbx_e2b_make_op(const SbxAccount *account, const char *operation, SbxStep *first_step,
                size_t state_size, size_t first_block, int64_t timeout_ms)
{
	const SbxFieldValue *settings = account->settings;
	SbxOp *op =
	    sbx_steps_make(operation, first_step, state_size, first_block, timeout_ms);
	SbxE2bState *state;

	if (op == NULL)
		return NULL;
	state = op->state;
	state->api_key = account->credentials[E2B_CREDENTIAL_API_KEY];
	state->domain = e2b_copy_text(op, &settings[E2B_SET_DOMAIN], E2B_DOMAIN);
	state->user = e2b_copy_text(op, &settings[E2B_SET_USER], NULL);
	state->lifetime_s = settings[E2B_SET_TIMEOUT].is_set
	                        ? settings[E2B_SET_TIMEOUT].integer
	                        : E2B_LIFETIME_SECONDS;
	if (settings[E2B_SET_SANDBOX_URL].is_set)
		state->fixed_url = sbx_steps_base_url(op, settings[E2B_SET_SANDBOX_URL].text);
	state->api_url =
	    settings[E2B_SET_API_URL].is_set
	        ? sbx_steps_base_url(op, settings[E2B_SET_API_URL].text)
	        : sbx_arena_printf(&op->arena, "https://api.%s", state->domain);
	if (state->api_key == NULL)
		state->steps.step = sbx_steps_refuse;
	return op;
}

/* Older ids have a second part behind a hyphen. */
bool
sbx_e2b_valid_id(const char *id)
{
	return id != NULL && *id != '\0' && *id != '-' &&
	       strlen(id) <= SBX_SANDBOX_ID_MAX &&
	       id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

void
sbx_e2b_point_at(SbxOp *op, const char *id)
{
	SbxE2bState *state = op->state;

	memmove(op->sandbox_id, id, strlen(id) + 1); /* it may be that very text */
	state->control_url =
	    sbx_arena_printf(&op->arena, "%s/sandboxes/%s", state->api_url, id);
}

void
sbx_e2b_set_target(SbxOp *op, const SbxTarget *target)
{
	if (sbx_e2b_valid_id(target->sandbox_id))
		sbx_e2b_point_at(op, target->sandbox_id);
	else
		((SbxE2bState *) op->state)->steps.step = sbx_steps_refuse;
}

/* --- the control plane ---------------------------------------------------- */

SbxOpWant
sbx_e2b_send(SbxOp *op, const char *method, const char *url, const char *body,
             SbxStep *answer)
{
	SbxE2bState *state = op->state;

	sbx_steps_request(op, method, url, E2B_EXCHANGE_MS);
	sbx_steps_header(op, "X-API-KEY", "", state->api_key);
	return sbx_steps_send_json(op, body, answer);
}

SbxOpWant
sbx_e2b_look(SbxOp *op, SbxStep *answer)
{
	SbxE2bState *state = op->state;

	return sbx_e2b_send(op, "GET", state->control_url, NULL, answer);
}

SbxOpWant
sbx_e2b_connect(SbxOp *op, int64_t seconds, SbxStep *answer)
{
	SbxE2bState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/v2/sandboxes/%s/connect",
	                                   state->api_url, op->sandbox_id);
	const char *body =
	    sbx_arena_printf(&op->arena, "{\"timeout\":%lld}", (long long) seconds);
	SbxOpWant want = sbx_e2b_send(op, "POST", url, body, answer);

	op->request.repeatable = true;
	return want;
}

bool
sbx_e2b_tells_when(SbxOp *op)
{
	return sbx_op_response_header(op, "Retry-After") != NULL ||
	       sbx_op_response_header(op, "RateLimit-Reset") != NULL;
}

SbxSandboxState
sbx_e2b_sandbox_state(const json_t *sandbox)
{
	static const SbxStateWord words[] = {
	    {"running", SBX_STATE_STARTED}, {"paused", SBX_STATE_STOPPED}, {0}};

	return sbx_steps_state(words, sbx_json_string(sandbox, "state"), false);
}

SbxSandboxFacts *
sbx_e2b_facts(SbxOp *op, const json_t *sandbox)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));

	if (facts == NULL)
		return NULL;
	facts->sandbox_id = sbx_steps_copy_string(op, sandbox, "sandboxID");
	facts->state = sbx_e2b_sandbox_state(sandbox);
	facts->created_at = sbx_steps_copy_string(op, sandbox, "startedAt");
	return sbx_steps_take_labels(op, json_object_get(sandbox, "metadata"), facts)
	           ? facts
	           : NULL;
}

json_t *
sbx_e2b_take_sandbox(SbxOp *op)
{
	json_t *sandbox;
	const char *id;

	if (op->response.status != 200)
	{
		sbx_steps_fail_response(op, sbx_steps_status_code(op));
		return NULL;
	}
	sandbox = sbx_steps_object(op, false);
	id = sbx_json_string(sandbox, "sandboxID");
	if (id != NULL && strcmp(id, op->sandbox_id) == 0)
		return sandbox;
	json_decref(sandbox);
	sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return NULL;
}

/*
 * The filter is un-escaped three times: each key and value is encoded twice, then the
 * whole once more.
 */
static const char *
e2b_metadata_filter(SbxArena *arena, const SbxPair *labels, int label_count)
{
	const char *filter = "";

	for (int i = 0; i < label_count; i++)
	{
		const char *key = sbx_arena_url_encode(arena, labels[i].key);
		const char *value = sbx_arena_url_encode(arena, labels[i].value);

		if (key != NULL)
			key = sbx_arena_url_encode(arena, key);
		if (value != NULL)
			value = sbx_arena_url_encode(arena, value);
		if (key == NULL || value == NULL)
			return NULL;
		filter =
		    sbx_arena_printf(arena, "%s%s%s=%s", filter, i == 0 ? "" : "&", key, value);
		if (filter == NULL)
			return NULL;
	}
	return sbx_arena_url_encode(arena, filter);
}

/* Without the states both are listed, too; an empty filter is refused. */
const char *
sbx_e2b_list_url(SbxOp *op, const SbxPair *labels, int label_count)
{
	SbxE2bState *state = op->state;
	const char *filter;

	if (label_count == 0)
		return sbx_arena_printf(
		    &op->arena, "%s/v2/sandboxes?state=running%%2Cpaused&limit=100&order=asc",
		    state->api_url);
	filter = e2b_metadata_filter(&op->arena, labels, label_count);
	if (filter == NULL)
		return NULL;
	return sbx_arena_printf(
	    &op->arena,
	    "%s/v2/sandboxes?metadata=%s&state=running%%2Cpaused&limit=100&order=asc",
	    state->api_url, filter);
}

/* --- inside the sandbox --------------------------------------------------- */

static SbxStep e2b_open_look;
static SbxStep e2b_open_looked;
static SbxStep e2b_opened;
static SbxStep e2b_extended;
static SbxStep e2b_confirmed;

static bool
e2b_valid_host(const char *host)
{
	return *host != '\0' && *host != '.' && *host != '-' && strlen(host) < 200 &&
	       host[strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789.-")] == '\0';
}

/*
 * On the provider's own domains one host serves all sandboxes and tells them apart by
 * headers; elsewhere each has a host of its own.
 */
static const char *
e2b_envd_url(SbxOp *op, const char *domain)
{
	static const char *const shared[] = {"e2b.app", "e2b.dev", "e2b.pro",
	                                     "e2b-staging.dev"};

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
	{
		if (strcmp(domain, shared[i]) == 0)
			return sbx_arena_printf(&op->arena, "https://sandbox.%s", domain);
	}
	return sbx_arena_printf(&op->arena, "https://" E2B_ENVD_PORT "-%s.%s",
	                        op->sandbox_id, domain);
}

bool
sbx_e2b_learn_envd(SbxOp *op, const json_t *sandbox)
{
	SbxE2bState *state = op->state;
	const char *domain = sbx_json_string(sandbox, "domain");
	const char *token = sbx_json_string(sandbox, "envdAccessToken");

	if (domain == NULL || *domain == '\0')
		domain = state->domain;
	if (state->fixed_url == NULL && !e2b_valid_host(domain))
		return false;
	state->envd_url =
	    state->fixed_url != NULL ? state->fixed_url : e2b_envd_url(op, domain);
	state->envd_token = token == NULL ? NULL : sbx_arena_strdup(&op->arena, token);
	return true;
}

SbxOpWant
sbx_e2b_open(SbxOp *op, SbxStep *opened)
{
	SbxE2bState *state = op->state;

	state->opened = opened;
	return e2b_open_look(op);
}

static SbxOpWant
e2b_open_look(SbxOp *op)
{
	return sbx_e2b_look(op, e2b_open_looked);
}

static SbxOpWant
e2b_open_looked(SbxOp *op)
{
	return sbx_steps_looked(op, e2b_open_look, e2b_opened);
}

static SbxOpWant
e2b_opened(SbxOp *op)
{
	SbxE2bState *state = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool usable;

	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_e2b_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	found = sbx_e2b_sandbox_state(sandbox);
	usable = sbx_e2b_learn_envd(op, sandbox);
	json_decref(sandbox);
	if (found != SBX_STATE_STARTED)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	return usable ? state->opened(op) : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}

/*
 * The provider's way to set a lifetime counts from now, so it would cut the time of a
 * sandbox that has more; connecting does not.
 */
SbxOpWant
sbx_e2b_extend(SbxOp *op, int64_t seconds, SbxStep *extended)
{
	SbxE2bState *state = op->state;

	state->opened = extended;
	return sbx_e2b_connect(
	    op, seconds > state->lifetime_s ? seconds : state->lifetime_s, e2b_extended);
}

/* Nothing has been started yet. */
static SbxOpWant
e2b_extended(SbxOp *op)
{
	SbxE2bState *state = op->state;

	if (sbx_steps_is_success(op))
		return state->opened(op);
	return sbx_steps_fail_response(
	    op, sbx_steps_is_absent(op) ? "SANDBOX_GONE" : sbx_steps_status_code(op));
}

/* A user is named the way that HTTP names one, without a password. */
static void
e2b_user_header(SbxOp *op)
{
	SbxE2bState *state = op->state;
	const char *pair;

	if (state->user == NULL)
		return;
	pair = sbx_arena_printf(&op->arena, "%s:", state->user);
	if (pair != NULL)
		pair = sbx_base64_encode(&op->arena, pair, strlen(pair));
	sbx_steps_header(op, "Authorization", "Basic ", pair);
}

SbxOpWant
sbx_e2b_send_envd(SbxOp *op, const char *method, const char *path,
                  const char *content_type, const char *bytes, size_t length,
                  SbxStep *answer)
{
	SbxE2bState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s%s", state->envd_url, path);

	sbx_steps_request(op, method, url, E2B_EXCHANGE_MS);
	sbx_steps_header(op, "E2b-Sandbox-Id", "", op->sandbox_id);
	sbx_steps_header(op, "E2b-Sandbox-Port", "", E2B_ENVD_PORT);
	if (state->envd_token != NULL)
		sbx_steps_header(op, "X-Access-Token", "", state->envd_token);
	e2b_user_header(op);
	return sbx_steps_send(op, content_type, bytes, length, answer);
}

SbxOpWant
sbx_e2b_fail_in_envd(SbxOp *op, const char *code)
{
	sbx_steps_note(op, code);
	return sbx_e2b_fail_noted_in_envd(op);
}

/*
 * The proxy in front of the sandboxes says 502 for one that is gone, paused, or whose
 * envd is down: the control plane is asked which it is.
 */
SbxOpWant
sbx_e2b_fail_noted_in_envd(SbxOp *op)
{
	SbxE2bState *state = op->state;

	if (state->steps.noted.http_status != 502)
		return sbx_steps_fail_noted(op, state->steps.noted.provider_code);
	state->steps.tidying = true;
	return sbx_e2b_look(op, e2b_confirmed);
}

static SbxOpWant
e2b_confirmed(SbxOp *op)
{
	SbxE2bState *state = op->state;
	json_t *sandbox;
	bool stopped;

	if (sbx_steps_is_absent(op))
		return sbx_steps_fail_noted(op, "SANDBOX_GONE");
	sandbox = op->response.status == 200 ? sbx_steps_object(op, false) : NULL;
	stopped = sandbox != NULL && sbx_e2b_sandbox_state(sandbox) == SBX_STATE_STOPPED;
	json_decref(sandbox);
	return sbx_steps_fail_noted(op, stopped ? "NOT_STARTED"
	                                        : state->steps.noted.provider_code);
}
