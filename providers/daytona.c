/*
 * daytona.c
 *		Daytona: sandboxes made from a snapshot or an image.
 *
 * Two HTTP planes share one key.  The control plane (apiUrl) makes, describes
 * and deletes sandboxes.  The toolbox runs commands in one; its address is
 * dictated by the control plane's answers, so it is checked before the key goes
 * there.
 *
 * An operation is a chain of steps: each looks at the answer the step before
 * asked for, and names the step that will look at the next one.  A step never
 * keeps a pointer into an answer; the driver frees it when the step returns.
 */
#include <limits.h>
#include <string.h>

#include "net/json.h"
#include "net/op.h"
#include "providers/provider.h"

#define DAYTONA_API_URL "https://app.daytona.io/api"

/* The label that says whose sandbox it is; its value is the unique name. */
#define DAYTONA_OWNER_LABEL "sbx-router-id"

/* The provider's own client gives creating and waiting together this long. */
#define DAYTONA_CREATE_TIMEOUT_MS (60 * 1000)

#define DAYTONA_GET_TIMEOUT_MS     (10 * 1000)
#define DAYTONA_RUN_TIMEOUT_MS     (30 * 60 * 1000)
#define DAYTONA_DESTROY_TIMEOUT_MS (60 * 1000)

/* No single exchange may eat the whole budget of an operation that can retry. */
#define DAYTONA_EXCHANGE_MS (10 * 1000)

/* A probe may use its 10 s in the sandbox; the rest is for the way there. */
#define DAYTONA_PROBE_MS       (15 * 1000)
#define DAYTONA_PROBE_PAUSE_MS 250
#define DAYTONA_PROBE_TRIES    3

/* Waiting for "started": fast while it is likely, then ever slower. */
#define DAYTONA_POLL_MS      100
#define DAYTONA_POLL_FAST_MS (5 * 1000)
#define DAYTONA_POLL_MAX_MS  1000

/* Between attempts to delete something that is still being made. */
#define DAYTONA_RETRY_MS     200
#define DAYTONA_RETRY_MAX_MS 2000

/* After the run's own time there must be enough left to kill it. */
#define DAYTONA_RUN_EXTRA_MS (60 * 1000)

/*
 * The kernel refuses a single argument of 128 KiB (MAX_ARG_STRLEN); a quarter is
 * left for what surrounds the script.  Longer scripts go through a file.
 */
#define DAYTONA_ARGUMENT_MAX ((size_t) 96 * 1024)

/*
 * First arena blocks.  A destroy may be prepared early and run in an abort
 * callback, so it must never need a second one: its state and two URLs.
 */
#define DAYTONA_ARENA_SMALL   4096
#define DAYTONA_ARENA_DESTROY (16 * 1024)

/* --- declarations ------------------------------------------------------- */

/* Indexes into the settings, in the order of daytona_settings. */
enum
{
	DAYTONA_SET_API_URL,
	DAYTONA_SET_SNAPSHOT,
	DAYTONA_SET_IMAGE,
	DAYTONA_SET_TARGET,
	DAYTONA_SET_HOME_DIR,
	DAYTONA_SET_AUTO_STOP,
	DAYTONA_SET_AUTO_ARCHIVE,
	DAYTONA_SET_AUTO_DELETE,
	DAYTONA_SET_CPU,
	DAYTONA_SET_MEMORY,
	DAYTONA_SET_DISK,
	DAYTONA_SET_PUBLIC,
	DAYTONA_SET_NETWORK_BLOCK_ALL,
	DAYTONA_SET_NETWORK_ALLOW_LIST,
	DAYTONA_SET_USER,
	DAYTONA_SET_CREATE_TIMEOUT
};

static const SbxField daytona_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the control plane, " DAYTONA_API_URL " by default"},
    {"snapshot", SBX_FIELD_TEXT, false, false, 0, 0,
     "snapshot to start from; not together with image"},
    {"image", SBX_FIELD_TEXT, false, false, 0, 0,
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

static const char *const daytona_operations[] = {"launch", "get", "runScript",
                                                 "destroy", NULL};

static const char *
daytona_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *image = &settings[DAYTONA_SET_IMAGE];

	if (image->is_set && settings[DAYTONA_SET_SNAPSHOT].is_set)
		return daytona_settings[DAYTONA_SET_IMAGE].name;

	/* It becomes the FROM line of a build file, where a blank has a meaning. */
	if (image->is_set && strchr(image->text, ' ') != NULL)
		return daytona_settings[DAYTONA_SET_IMAGE].name;

	/* A snapshot, the default one too, brings its own size: answered with 400. */
	for (int i = DAYTONA_SET_CPU; i <= DAYTONA_SET_DISK; i++)
	{
		if (settings[i].is_set && !image->is_set)
			return daytona_settings[i].name;
	}
	return NULL;
}

/* --- what all operations share ------------------------------------------ */

typedef SbxOpWant DaytonaStep(SbxOp *op);

typedef struct DaytonaState
{
	DaytonaStep *step;        /* what the next advance() does */
	const char *api_url;      /* without a trailing slash */
	const char *api_key;      /* the caller's, pinned until the op is freed */
	const char *sandbox_url;  /* "<api>/sandbox/<id or name>" */
	const char *toolbox_url;  /* "<toolboxProxyUrl>/<id>", checked, or NULL */
	SbxAllocation allocation; /* what a failure now has to say; launch only */
	bool sent;                /* anything at all */
	bool acted;               /* the request that changes something went out */
	int64_t pause_ms;         /* length of the next pause */
	int64_t waited_ms;        /* sum of pauses: there is no clock here */

	/* The last thing that went wrong; what a failure by timeout reports. */
	SbxFailure noted;
	const char *timeout_code; /* when nothing went wrong but the time is over */

	/* The outcome is known (result or noted); only tidying up is left. */
	bool tidying;
	void *result;
} DaytonaState;

static DaytonaStep daytona_advance;
static DaytonaStep daytona_refuse;
static SbxOpWant daytona_fail(SbxOp *op, SbxPhase phase, const char *code);
static SbxOpWant daytona_fail_expired(SbxOp *op);

/*
 * The frame of every operation.  The key is not copied: it would outlive a
 * `clear` in the session, and the caller keeps it until the operation is freed.
 */
static SbxOp *
daytona_make_op(const SbxAccount *account, const char *operation,
                DaytonaStep *first_step, size_t state_size, size_t first_block,
                int64_t timeout_ms)
{
	const SbxFieldValue *setting = &account->settings[DAYTONA_SET_API_URL];
	const char *api_url = setting->is_set ? setting->text : DAYTONA_API_URL;
	size_t length = strlen(api_url);
	SbxOp *op;
	DaytonaState *state;

	op = sbx_op_create(operation, daytona_advance, state_size, first_block, timeout_ms);
	if (op == NULL)
		return NULL;
	if (length > 0 && api_url[length - 1] == '/')
		length--;
	state = op->state;
	state->step = first_step;
	state->api_url = sbx_arena_strndup(&op->arena, api_url, length);
	state->api_key = account->credentials[DAYTONA_CREDENTIAL_API_KEY];
	if (state->api_key == NULL)
		state->step = daytona_refuse;
	return op;
}

/* The last line of every maker: no operation is better than half of one. */
static SbxOp *
daytona_made_op(SbxOp *op)
{
	if (!op->arena.out_of_memory)
		return op;
	sbx_op_free(op);
	return NULL;
}

/*
 * Runs one step and then applies the rules that hold in all of them, so that no
 * step has to think of lack of memory or time.
 */
static SbxOpWant
daytona_advance(SbxOp *op)
{
	DaytonaState *state = op->state;
	SbxOpWant want = state->step(op);
	bool finished = want == SBX_OP_WANT_NOTHING;

	/* What a step built without memory must not be used. */
	if (op->arena.out_of_memory && !state->tidying && (!finished || op->succeeded))
		return daytona_fail(op, state->sent ? SBX_PHASE_PROTOCOL : SBX_PHASE_NONE,
		                    NULL);

	/* Also the last step may use an answer that came in time, but ask no more. */
	if (op->expired && !finished && state->result != NULL)
		return sbx_op_succeed(op, state->result);
	if (op->expired && !finished)
		return daytona_fail_expired(op);
	if (op->expired && !op->succeeded && op->failure.http_status == 0 &&
	    op->failure.provider_code == NULL)
		op->failure.provider_code = state->timeout_code;

	/* From here on nothing is proven, except by an answer. */
	if (want == SBX_OP_WANT_HTTP)
	{
		state->sent = true;
		if (state->allocation == SBX_ALLOCATION_NONE)
			state->allocation = SBX_ALLOCATION_UNKNOWN;
	}
	return want;
}

/* Input this provider can never carry: nothing is sent. */
static SbxOpWant
daytona_refuse(SbxOp *op)
{
	return sbx_op_fail(op, SBX_PHASE_NONE, NULL, SBX_ALLOCATION_NONE);
}

static SbxOpWant
daytona_fail(SbxOp *op, SbxPhase phase, const char *code)
{
	DaytonaState *state = op->state;

	sbx_op_fail(op, phase, code, state->allocation);
	op->failure.request_sent |= state->acted;
	return SBX_OP_WANT_NOTHING;
}

static SbxOpWant
daytona_fail_response(SbxOp *op, const char *code)
{
	DaytonaState *state = op->state;

	sbx_op_fail_response(op, code, state->allocation);
	op->failure.request_sent |= state->acted;
	return SBX_OP_WANT_NOTHING;
}

/* Remember what went wrong and go on. */
static void
daytona_note(SbxOp *op, const char *code)
{
	DaytonaState *state = op->state;

	daytona_fail_response(op, code);
	state->noted = op->failure;
}

/* Fail with what was remembered, not with what tidying up met afterwards. */
static SbxOpWant
daytona_fail_noted(SbxOp *op, const char *code)
{
	DaytonaState *state = op->state;

	sbx_op_fail(op, state->noted.phase, code, state->allocation);
	op->failure = state->noted;
	op->failure.provider_code = code;
	op->failure.allocation = state->allocation;
	op->failure.request_sent |= state->acted;
	return SBX_OP_WANT_NOTHING;
}

/*
 * "Too late" alone helps nobody: if an attempt was refused before the time was
 * over, that refusal is the reason, and the flag says that time ended it.
 */
static SbxOpWant
daytona_fail_expired(SbxOp *op)
{
	DaytonaState *state = op->state;

	if (state->noted.phase != SBX_PHASE_NONE)
		daytona_fail_noted(op, state->noted.provider_code);
	else
	{
		daytona_fail(op, state->sent ? SBX_PHASE_RECEIVE : SBX_PHASE_NONE,
		             state->timeout_code);
		op->failure.http_status = 0;
	}
	op->failure.timed_out = true;
	return SBX_OP_WANT_NOTHING;
}

/* --- requests ----------------------------------------------------------- */

/*
 * Ask for one exchange; answer is the step that will look at what comes back.
 * Reads and deletes may be delivered twice.  A POST may not, unless the caller
 * says so afterwards.
 */
static SbxOpWant
daytona_send(SbxOp *op, const char *method, const char *url, const char *body,
             DaytonaStep *answer)
{
	DaytonaState *state = op->state;

	sbx_op_request(op, method, url, strcmp(method, "POST") != 0);
	op->request.timeout_ms = DAYTONA_EXCHANGE_MS;

	/*
	 * The version is protocol negotiation: without it a session's output comes
	 * back in another shape.
	 */
	if (!sbx_op_header(op, "Authorization", "Bearer ", state->api_key) ||
	    !sbx_op_header(op, "Accept", "", "application/json") ||
	    !sbx_op_header(op, "User-Agent", "", "sbx_router/1.0") ||
	    !sbx_op_header(op, "X-Daytona-Source", "", "sbx_router") ||
	    !sbx_op_header(op, "X-Daytona-SDK-Version", "", "0.205.1") ||
	    (body != NULL && !sbx_op_header(op, "Content-Type", "", "application/json")))
		return state->sent ? daytona_fail(op, SBX_PHASE_NONE, NULL)
		                   : daytona_refuse(op);

	if (body != NULL)
	{
		op->request.body = body;
		op->request.body_length = strlen(body);
	}
	state->step = answer;
	return SBX_OP_WANT_HTTP;
}

static SbxOpWant
daytona_pause(SbxOp *op, int64_t ms, DaytonaStep *next)
{
	DaytonaState *state = op->state;

	state->waited_ms += ms;
	state->step = next;
	return sbx_op_pause(op, ms);
}

/*
 * Ids and names become path segments of URLs.  Only characters that need no
 * encoding there are accepted, which known ones consist of; the dot names would
 * mean another path.
 */
static bool
daytona_valid_id(const char *id)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
	                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	size_t length;

	if (id == NULL || *id == '\0' || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
		return false;
	length = strlen(id);
	return length <= SBX_SANDBOX_ID_MAX && strspn(id, allowed) == length;
}

static void
daytona_point_at(SbxOp *op, const char *id_or_name)
{
	DaytonaState *state = op->state;

	state->sandbox_url =
	    sbx_arena_printf(&op->arena, "%s/sandbox/%s", state->api_url, id_or_name);
}

/* The sandbox an operation is about, for those that only look at one. */
static void
daytona_set_target(SbxOp *op, const SbxTarget *target)
{
	DaytonaState *state = op->state;
	const char *id = target->sandbox_id;

	if (id == NULL)
		id = target->unique_name;
	if (!daytona_valid_id(id))
	{
		state->step = daytona_refuse;
		return;
	}
	if (target->sandbox_id != NULL)
		memcpy(op->sandbox_id, id, strlen(id) + 1);
	daytona_point_at(op, id);
}

/* --- answers ------------------------------------------------------------ */

/* Could the provider have got the request?  Only a reported failure says no. */
static bool
daytona_may_have_arrived(const SbxHttpResponse *response)
{
	return response->request_sent || response->failed_phase == SBX_PHASE_NONE;
}

/* Trouble that a later attempt may not meet. */
static bool
daytona_is_passing(const SbxHttpResponse *response)
{
	return (response->status == 0 && !response->too_large) || response->status == 408 ||
	       response->status == 429 || response->status >= 500;
}

/* Refusals that mean the same for every request. */
static const char *
daytona_status_code(const SbxHttpResponse *response)
{
	switch (response->status)
	{
		case 401:
			return "UNAUTHORIZED";
		case 403:
			return "FORBIDDEN";
		case 429:
			return "RATE_LIMITED";
	}
	return NULL;
}

/*
 * The answer as a JSON object, NULL when it is something else: a base URL
 * without "/api" answers everything with 200 and a web page.
 */
static json_t *
daytona_object(SbxOp *op, bool allow_nul)
{
	json_t *object;

	if (op->response.status == 0)
		return NULL;
	object = sbx_json_parse(op->response.body, op->response.body_length, allow_nul);
	if (object != NULL && !json_is_object(object))
	{
		json_decref(object);
		object = NULL;
	}
	return object;
}

/* The answer as a description of the sandbox we asked about, or NULL. */
static json_t *
daytona_sandbox(SbxOp *op)
{
	json_t *sandbox = daytona_object(op, false);
	const char *id = sbx_json_string(sandbox, "id");

	if (!daytona_valid_id(id) ||
	    (op->sandbox_id[0] != '\0' && strcmp(id, op->sandbox_id) != 0))
	{
		json_decref(sandbox);
		return NULL;
	}
	return sandbox;
}

/* Now the id is known: the one thing later cleaning up cannot do without. */
static void
daytona_adopt(SbxOp *op, const json_t *sandbox)
{
	const char *id = sbx_json_string(sandbox, "id");

	memcpy(op->sandbox_id, id, strlen(id) + 1);
	daytona_point_at(op, op->sandbox_id);
}

static bool
daytona_message_has(SbxOp *op, const char *text)
{
	json_t *object = daytona_object(op, false);
	const char *message = sbx_json_string(object, "message");
	bool found = message != NULL && strstr(message, text) != NULL;

	json_decref(object);
	return found;
}

/*
 * Words for states, compared without case.  All others, known today or not, are
 * on their way: never ready and never gone.
 */
static SbxSandboxState
daytona_state(const json_t *sandbox)
{
	static const struct
	{
		const char *word;
		SbxSandboxState state;
	} states[] = {
	    {"started", SBX_STATE_STARTED},     {"stopped", SBX_STATE_STOPPED},
	    {"archived", SBX_STATE_STOPPED},    {"paused", SBX_STATE_STOPPED},
	    {"stopping", SBX_STATE_STOPPING},   {"archiving", SBX_STATE_STOPPING},
	    {"pausing", SBX_STATE_STOPPING},    {"error", SBX_STATE_FAILED},
	    {"build_failed", SBX_STATE_FAILED}, {"destroyed", SBX_STATE_GONE},
	    {"destroying", SBX_STATE_GONE},
	};
	const char *word = sbx_json_string(sandbox, "state");

	for (size_t i = 0; word != NULL && i < sizeof(states) / sizeof(states[0]); i++)
	{
		if (sbx_ascii_equal(word, states[i].word, strlen(states[i].word) + 1))
			return states[i].state;
	}
	return SBX_STATE_STARTING;
}

static const char *
daytona_copy_string(SbxOp *op, const json_t *object, const char *key)
{
	const char *text = sbx_json_string(object, key);

	return text != NULL ? sbx_arena_strdup(&op->arena, text) : NULL;
}

static SbxSandboxFacts *
daytona_facts(SbxOp *op, const json_t *sandbox)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
	json_t *labels = json_object_get(sandbox, "labels");
	SbxPair *pairs =
	    sbx_arena_alloc(&op->arena, (json_object_size(labels) + 1) * sizeof(SbxPair));
	const char *key;
	json_t *value;

	if (facts == NULL || pairs == NULL)
		return NULL;
	facts->state = daytona_state(sandbox);
	facts->name = daytona_copy_string(op, sandbox, "name");
	facts->created_at = daytona_copy_string(op, sandbox, "createdAt");
	facts->labels = pairs;
	json_object_foreach (labels, key, value)
	{
		if (!json_is_string(value))
			continue;
		pairs->key = sbx_arena_strdup(&op->arena, key);
		pairs->value = sbx_arena_strdup(&op->arena, json_string_value(value));
		pairs++;
		facts->label_count++;
	}
	return facts;
}

/* --- where the toolbox is ----------------------------------------------- */

typedef struct DaytonaUrl
{
	bool https;
	const char *host;
	size_t host_length;
	int port;
} DaytonaUrl;

static bool daytona_same_host(const DaytonaUrl *left, const DaytonaUrl *right);
static bool daytona_same_domain(const DaytonaUrl *left, const DaytonaUrl *right);
static bool daytona_parse_url(const char *url, DaytonaUrl *parts);

/*
 * The key goes wherever this says yes, and the address comes out of an answer.
 * So it has to be encrypted as well as the control plane is, and to be on the
 * control plane's host or beside it in the same domain.  Unencrypted, a sibling
 * host must not even move the key to another port.
 */
static bool
daytona_toolbox_allowed(const char *api_url, const char *toolbox_url)
{
	DaytonaUrl api;
	DaytonaUrl toolbox;

	if (!daytona_parse_url(api_url, &api) || !daytona_parse_url(toolbox_url, &toolbox))
		return false;
	if (api.https && !toolbox.https)
		return false;
	if (daytona_same_host(&api, &toolbox))
		return true;
	return daytona_same_domain(&api, &toolbox) &&
	       (api.https || api.port == toolbox.port);
}

/* Learn the toolbox's address, if given; false when it is refused. */
static bool
daytona_learn_toolbox(SbxOp *op, const json_t *object, const char *key)
{
	DaytonaState *state = op->state;
	const char *url = sbx_json_string(object, key);
	size_t length;

	if (state->toolbox_url != NULL || url == NULL || *url == '\0')
		return true;
	if (!daytona_toolbox_allowed(state->api_url, url))
		return false;
	length = strlen(url);
	while (url[length - 1] == '/')
		length--;
	if (length > INT_MAX)
		return false;
	state->toolbox_url =
	    sbx_arena_printf(&op->arena, "%.*s/%s", (int) length, url, op->sandbox_id);
	return true;
}

/* Descriptions without the address: there is a resource of its own for it. */
static SbxOpWant
daytona_ask_toolbox(SbxOp *op, DaytonaStep *answer)
{
	DaytonaState *state = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/toolbox-proxy-url", state->sandbox_url);

	return daytona_send(op, "GET", url, NULL, answer);
}

static SbxOpWant
daytona_send_toolbox(SbxOp *op, const char *path, const char *body, DaytonaStep *answer)
{
	DaytonaState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s%s", state->toolbox_url, path);

	return daytona_send(op, "POST", url, body, answer);
}

static bool
daytona_same_host(const DaytonaUrl *left, const DaytonaUrl *right)
{
	return left->host_length == right->host_length &&
	       sbx_ascii_equal(left->host, right->host, left->host_length);
}

/*
 * The last two labels of a host name, or NULL when it has fewer, an empty one,
 * or is an address: a top-level domain never starts with a digit.
 */
static const char *
daytona_domain(const DaytonaUrl *url)
{
	const char *end = url->host + url->host_length;
	const char *label = end;
	int dots = 0;

	for (const char *here = end; here > url->host; here--)
	{
		if (here[-1] != '.')
			continue;
		if (here == label)
			return NULL;
		if (++dots == 2)
			return here;
		if (here[0] >= '0' && here[0] <= '9')
			return NULL;
		label = here - 1;
	}
	return dots == 1 && label > url->host ? url->host : NULL;
}

static bool
daytona_same_domain(const DaytonaUrl *left, const DaytonaUrl *right)
{
	const char *left_domain = daytona_domain(left);
	const char *right_domain = daytona_domain(right);
	size_t length;

	if (left_domain == NULL || right_domain == NULL)
		return false;
	length = (size_t) (left->host + left->host_length - left_domain);
	return length == (size_t) (right->host + right->host_length - right_domain) &&
	       sbx_ascii_equal(left_domain, right_domain, length);
}

/* ":port" or nothing, up to the path. */
static bool
daytona_parse_port(const char *text, size_t length, DaytonaUrl *parts)
{
	parts->port = parts->https ? 443 : 80;
	if (length == 0)
		return true;
	if (text[0] != ':' || length < 2 || length > 6)
		return false;
	parts->port = 0;
	for (size_t i = 1; i < length; i++)
	{
		if (text[i] < '0' || text[i] > '9')
			return false;
		parts->port = parts->port * 10 + (text[i] - '0');
	}
	return parts->port > 0 && parts->port <= 65535;
}

/*
 * A strict reading: whatever two parsers could understand differently (user
 * information, blanks, backslashes, non-ASCII, encoded hosts) is refused, and so
 * are a query and a fragment, because a path will be appended.
 */
static bool
daytona_parse_url(const char *url, DaytonaUrl *parts)
{
	static const char host_bytes[] = "abcdefghijklmnopqrstuvwxyz"
	                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
	size_t authority;

	for (const char *byte = url; *byte != '\0'; byte++)
	{
		if (*byte <= ' ' || *byte >= 0x7f || strchr("\\?#", *byte) != NULL)
			return false;
	}
	parts->https = sbx_ascii_equal(url, "https://", 8);
	if (!parts->https && !sbx_ascii_equal(url, "http://", 7))
		return false;
	url += parts->https ? 8 : 7;
	authority = strcspn(url, "/");

	parts->host = url;
	if (url[0] == '[')
	{
		parts->host_length = strspn(url + 1, "0123456789abcdefABCDEF:.") + 2;
		if (parts->host_length > authority || url[parts->host_length - 1] != ']')
			return false;
	}
	else
		parts->host_length = strspn(url, host_bytes);
	return parts->host_length > 0 &&
	       daytona_parse_port(url + parts->host_length, authority - parts->host_length,
	                          parts);
}

/* --- launch ------------------------------------------------------------- */

typedef struct DaytonaLaunch
{
	DaytonaState state;
	const char *body;
	int probes;
	SbxSandboxFacts *facts;
} DaytonaLaunch;

static DaytonaStep daytona_launch_start;
static DaytonaStep daytona_launch_created;
static DaytonaStep daytona_launch_refused;
static DaytonaStep daytona_launch_poll;
static DaytonaStep daytona_launch_polled;
static DaytonaStep daytona_launch_wait;
static DaytonaStep daytona_launch_started;
static DaytonaStep daytona_launch_located;
static DaytonaStep daytona_launch_probe;
static DaytonaStep daytona_launch_probed;
static json_t *
daytona_create_body(const SbxFieldValue *settings, const SbxLaunchInput *input);

static SbxOp *
daytona_launch(const SbxAccount *account, const SbxLaunchInput *input)
{
	const SbxFieldValue *limit = &account->settings[DAYTONA_SET_CREATE_TIMEOUT];
	int64_t timeout_ms = DAYTONA_CREATE_TIMEOUT_MS;
	json_t *body;
	SbxOp *op;
	DaytonaLaunch *launch;

	if (input->create_timeout_ms > 0)
		timeout_ms = input->create_timeout_ms;
	else if (limit->is_set)
		timeout_ms = limit->integer * 1000;
	op = daytona_make_op(account, "launch", daytona_launch_start, sizeof(DaytonaLaunch),
	                     DAYTONA_ARENA_SMALL, timeout_ms);
	if (op == NULL)
		return NULL;
	launch = op->state;
	launch->state.allocation = SBX_ALLOCATION_NONE;

	body = daytona_create_body(account->settings, input);
	if (body != NULL)
		launch->body = sbx_json_print(&op->arena, body);
	json_decref(body);
	if (body == NULL || !daytona_valid_id(input->unique_name) ||
	    daytona_check_settings(account->settings) != NULL)
		launch->state.step = daytona_refuse;
	return daytona_made_op(op);
}

/* The answer may be held back 30 s: it gets all the time there is. */
static SbxOpWant
daytona_launch_start(SbxOp *op)
{
	DaytonaLaunch *launch = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/sandbox", launch->state.api_url);
	SbxOpWant want =
	    daytona_send(op, "POST", url, launch->body, daytona_launch_created);

	op->request.timeout_ms = 0;
	return want;
}

static SbxOpWant
daytona_launch_created(SbxOp *op)
{
	DaytonaState *state = op->state;
	json_t *sandbox;
	bool allowed;

	state->acted = daytona_may_have_arrived(&op->response);
	if (op->response.status < 200 || op->response.status > 299)
		return daytona_launch_refused(op);

	/* Something was made that we cannot name: only the unique name finds it. */
	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);

	state->allocation = SBX_ALLOCATION_MADE;
	daytona_adopt(op, sandbox);
	allowed = daytona_learn_toolbox(op, sandbox, "toolboxProxyUrl");
	json_decref(sandbox);
	if (!allowed)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");

	/* The state in this answer is older than the answer: look again at once. */
	state->pause_ms = DAYTONA_POLL_MS;
	return daytona_launch_poll(op);
}

static SbxOpWant
daytona_launch_poll(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_launch_polled);
}

/*
 * From here on a sandbox exists, whatever happens.  A look that fails says
 * nothing about it, so only clear words of the provider end the wait.
 */
static SbxOpWant
daytona_launch_polled(SbxOp *op)
{
	DaytonaLaunch *launch = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool allowed;

	if (daytona_is_passing(&op->response))
	{
		daytona_note(op, daytona_status_code(&op->response));
		return daytona_launch_wait(op);
	}
	if (op->response.status == 404)
		return daytona_fail_response(op, "SANDBOX_GONE");
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));

	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	found = daytona_state(sandbox);
	allowed = daytona_learn_toolbox(op, sandbox, "toolboxProxyUrl");
	if (found == SBX_STATE_STARTED)
		launch->facts = daytona_facts(op, sandbox);
	json_decref(sandbox);

	if (!allowed)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
	if (found == SBX_STATE_FAILED)
		return daytona_fail_response(op, "SANDBOX_FAILED");
	if (found == SBX_STATE_GONE)
		return daytona_fail_response(op, "SANDBOX_GONE");
	memset(&launch->state.noted, 0, sizeof(launch->state.noted));
	return found == SBX_STATE_STARTED ? daytona_launch_started(op)
	                                  : daytona_launch_wait(op);
}

static SbxOpWant
daytona_launch_wait(SbxOp *op)
{
	DaytonaState *state = op->state;

	if (state->waited_ms >= DAYTONA_POLL_FAST_MS)
		state->pause_ms += state->pause_ms / 10;
	if (state->pause_ms > DAYTONA_POLL_MAX_MS)
		state->pause_ms = DAYTONA_POLL_MAX_MS;
	return daytona_pause(op, state->pause_ms, daytona_launch_poll);
}

static SbxOpWant
daytona_launch_started(SbxOp *op)
{
	DaytonaState *state = op->state;

	if (state->toolbox_url == NULL)
		return daytona_ask_toolbox(op, daytona_launch_located);
	return daytona_launch_probe(op);
}

static SbxOpWant
daytona_launch_located(SbxOp *op)
{
	DaytonaState *state = op->state;
	json_t *object;
	bool allowed;

	if (daytona_is_passing(&op->response))
	{
		daytona_note(op, daytona_status_code(&op->response));
		return daytona_launch_wait(op);
	}
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));
	object = daytona_object(op, false);
	allowed = daytona_learn_toolbox(op, object, "url");
	json_decref(object);
	if (!allowed)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
	if (state->toolbox_url == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return daytona_launch_probe(op);
}

/* A started sandbox may not take commands for another moment.  Try one. */
static SbxOpWant
daytona_launch_probe(SbxOp *op)
{
	static const char body[] = "{\"command\":\"true\",\"timeout\":10}";
	SbxOpWant want =
	    daytona_send_toolbox(op, "/process/execute", body, daytona_launch_probed);

	op->request.repeatable = true;
	op->request.timeout_ms = DAYTONA_PROBE_MS;
	return want;
}

/*
 * Only the known signs of "not yet" are worth another try.  A 401 here is no
 * verdict on the key: the toolbox says so of a sandbox it cannot reach, too.
 */
static SbxOpWant
daytona_launch_probed(SbxOp *op)
{
	DaytonaLaunch *launch = op->state;

	if (op->response.status == 200)
	{
		json_t *object = daytona_object(op, false);
		int64_t exit_code;
		bool valid = sbx_json_integer(object, "exitCode", &exit_code);

		json_decref(object);
		if (!valid)
			return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
		if (exit_code == 0)
			return sbx_op_succeed(op, launch->facts);
	}
	else if (!daytona_is_passing(&op->response) &&
	         !(op->response.status == 400 && daytona_message_has(op, "no IP address")))
		return daytona_fail_response(op, "NOT_READY");

	daytona_note(op, "NOT_READY");
	if (++launch->probes >= DAYTONA_PROBE_TRIES)
		return daytona_fail_response(op, "NOT_READY");
	return daytona_pause(op, DAYTONA_PROBE_PAUSE_MS, daytona_launch_probe);
}

/*
 * What a refused create proves.  The first row that matches counts.  The texts
 * of one status are several things (no capacity, a bad request, a sandbox that
 * was made and failed), so what is not listed proves nothing.
 */
typedef struct DaytonaRefusal
{
	int status;           /* 0 = 400 or 403: quota texts moved from 403 to 400 */
	const char *prefix;   /* of the message, "" = any; or NULL = no message needed */
	const char *contains; /* somewhere in it, or NULL */
	SbxAllocation allocation;
	const char *code;
} DaytonaRefusal;

static const DaytonaRefusal daytona_refusals[] = {
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
daytona_refusal_matches(const DaytonaRefusal *refusal, int status, const char *message)
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
	DaytonaState *state = op->state;
	json_t *object = daytona_object(op, false);
	const char *message = sbx_json_string(object, "message");
	const char *code = NULL;

	if (!state->acted)
		state->allocation = SBX_ALLOCATION_NONE;
	for (size_t i = 0; i < sizeof(daytona_refusals) / sizeof(daytona_refusals[0]); i++)
	{
		const DaytonaRefusal *refusal = &daytona_refusals[i];

		if (daytona_refusal_matches(refusal, op->response.status, message))
		{
			state->allocation = refusal->allocation;
			code = refusal->code;
			break;
		}
	}
	json_decref(object);
	return daytona_fail_response(op, code);
}

/* Add a setting, if given, under the provider's name for it. */
static int
daytona_put_setting(json_t *body, const SbxFieldValue *settings, int index)
{
	const SbxField *field = &daytona_settings[index];
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

static json_t *
daytona_pairs(const SbxPair *pairs, int count)
{
	json_t *object = sbx_json_new_object();

	for (int i = 0; i < count && object != NULL; i++)
	{
		if (json_object_set_new(object, pairs[i].key, json_string(pairs[i].value)) == 0)
			continue;
		json_decref(object);
		return NULL;
	}
	return object;
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
	json_t *body = sbx_json_new_object();
	json_t *labels = daytona_pairs(input->labels, input->label_count);
	json_t *env = daytona_pairs(input->env, input->env_count);
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

/* --- get ---------------------------------------------------------------- */

static DaytonaStep daytona_get_start;
static DaytonaStep daytona_get_answered;

static SbxOp *
daytona_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op = daytona_make_op(account, "get", daytona_get_start, sizeof(DaytonaState),
	                            DAYTONA_ARENA_SMALL, DAYTONA_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	daytona_set_target(op, target);
	return daytona_made_op(op);
}

static SbxOpWant
daytona_get_start(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_get_answered);
}

/* "No such sandbox" is an answer to the question, not a failure to ask it. */
static SbxOpWant
daytona_get_answered(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (op->response.status == 404)
	{
		facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
		if (facts != NULL)
			facts->state = SBX_STATE_GONE;
		return sbx_op_succeed(op, facts);
	}
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));

	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	daytona_adopt(op, sandbox);
	facts = daytona_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}

/* --- run: the text given to the sandbox's shell ------------------------- */

/*
 * The toolbox sources a command in the session's own shell and notes the exit
 * code afterwards: a bare `exit`, `set -e` or a syntax error ends that shell, the
 * note is never written and the call hangs for ever.  So the user's text always
 * runs in a child shell, as one quoted argument, with an empty standard input.
 *
 * Texts are written twice: once to count (bytes is NULL), once for real.
 */
typedef struct DaytonaText
{
	char *bytes;
	size_t length;
} DaytonaText;

static void
daytona_add_bytes(DaytonaText *text, const char *bytes, size_t length)
{
	if (text->bytes != NULL && length > 0)
		memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
}

static void
daytona_add(DaytonaText *text, const char *bytes)
{
	daytona_add_bytes(text, bytes, strlen(bytes));
}

/*
 * The one quoting function.  Between single quotes a shell takes everything
 * literally, but the quote itself.  newline, if given, is written for each line
 * break, outside the quotes.
 */
static void
daytona_add_quoted(DaytonaText *text, const char *bytes, size_t length,
                   const char *newline)
{
	daytona_add(text, "'");
	for (size_t i = 0; i < length; i++)
	{
		if (bytes[i] == '\'')
			daytona_add(text, "'\\''");
		else if (bytes[i] == '\n' && newline != NULL)
		{
			daytona_add(text, "'");
			daytona_add(text, newline);
			daytona_add(text, "'");
		}
		else
			daytona_add_bytes(text, &bytes[i], 1);
	}
	daytona_add(text, "'");
}

static bool
daytona_has_newline(const SbxRunInput *input)
{
	for (int i = 0; i < input->env_count; i++)
	{
		if (strchr(input->env[i].value, '\n') != NULL)
			return true;
	}
	return input->cwd != NULL && strchr(input->cwd, '\n') != NULL;
}

/*
 * The child's text.  Everything before the user's first byte stays on one line,
 * so that line numbers in its messages are the user's; hence the detour for line
 * breaks in values.  A directory that cannot be entered ends the run.
 */
static void
daytona_write_inner(DaytonaText *text, const SbxRunInput *input)
{
	const char *newline = NULL;

	if (daytona_has_newline(input))
	{
		newline = "\"$sbx_newline\"";
		daytona_add(text,
		            "sbx_newline=$(printf '\\n_'); sbx_newline=${sbx_newline%_}; ");
	}
	for (int i = 0; i < input->env_count; i++)
	{
		const SbxPair *pair = &input->env[i];

		daytona_add(text, "export ");
		daytona_add(text, pair->key);
		daytona_add(text, "=");
		daytona_add_quoted(text, pair->value, strlen(pair->value), newline);
		daytona_add(text, "; ");
	}
	if (input->cwd != NULL)
	{
		daytona_add(text, "cd ");
		daytona_add_quoted(text, input->cwd, strlen(input->cwd), newline);
		daytona_add(text, " || exit $?; ");
	}
	if (newline != NULL)
		daytona_add(text, "unset sbx_newline; ");
	daytona_add_bytes(text, input->command, input->command_length);
}

/* What the session's shell sources: run the child, keep its exit code. */
static void
daytona_write_outer(DaytonaText *text, const DaytonaText *inner)
{
	DaytonaText quoted = {0};

	daytona_add_quoted(&quoted, inner->bytes, inner->length, NULL);
	daytona_add(text,
	            "sbx_shell=sh; command -v bash >/dev/null 2>&1 && sbx_shell=bash; ");
	if (quoted.length <= DAYTONA_ARGUMENT_MAX)
	{
		daytona_add(text, "\"$sbx_shell\" -c ");
		daytona_add_quoted(text, inner->bytes, inner->length, NULL);
		daytona_add(text, " </dev/null");
		return;
	}

	/* printf is built in: no limit on its arguments. */
	daytona_add(text, "sbx_file=$(mktemp) && printf %s ");
	daytona_add_quoted(text, inner->bytes, inner->length, NULL);
	daytona_add(text, " >\"$sbx_file\" && \"$sbx_shell\" \"$sbx_file\" </dev/null; "
	                  "sbx_code=$?; rm -f \"$sbx_file\"; (exit \"$sbx_code\")");
}

/* NULL when out of memory. */
static const char *
daytona_wrap(SbxArena *arena, const SbxRunInput *input)
{
	DaytonaText inner = {0};
	DaytonaText outer = {0};

	daytona_write_inner(&inner, input);
	inner.bytes = sbx_arena_alloc(arena, inner.length + 1);
	if (inner.bytes == NULL)
		return NULL;
	inner.length = 0;
	daytona_write_inner(&inner, input);

	daytona_write_outer(&outer, &inner);
	outer.bytes = sbx_arena_alloc(arena, outer.length + 1);
	if (outer.bytes == NULL)
		return NULL;
	outer.length = 0;
	daytona_write_outer(&outer, &inner);
	return outer.bytes;
}

/* Variable names are written without quotes, so they are checked once more. */
static bool
daytona_valid_run(const SbxRunInput *input)
{
	static const char allowed[] = "0123456789_abcdefghijklmnopqrstuvwxyz"
	                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	for (int i = 0; i < input->env_count; i++)
	{
		const char *key = input->env[i].key;

		if (*key == '\0' || (*key >= '0' && *key <= '9') ||
		    key[strspn(key, allowed)] != '\0')
			return false;
	}
	return daytona_valid_id(input->run_id) &&
	       memchr(input->command, '\0', input->command_length) == NULL &&
	       (input->cwd == NULL || input->cwd[0] == '/');
}

/* --- run: what came out of it ------------------------------------------- */

/* A stream while it is taken over; the head is kept, cut between characters. */
typedef struct DaytonaStream
{
	char *bytes;
	size_t length;
	size_t maximum;
	bool cut;
} DaytonaStream;

static DaytonaStream
daytona_open_stream(SbxArena *arena, size_t needed, size_t maximum)
{
	DaytonaStream stream = {0};

	stream.maximum = needed < maximum ? needed : maximum;
	stream.bytes = sbx_arena_alloc(arena, stream.maximum + 1);
	return stream;
}

/* Append what still fits; returns how many bytes that were. */
static size_t
daytona_keep(DaytonaStream *stream, const char *bytes, size_t length)
{
	size_t kept = length;

	if (stream->bytes == NULL || stream->cut || length == 0)
		return 0;
	if (kept > stream->maximum - stream->length)
	{
		kept = stream->maximum - stream->length;
		while (kept > 0 && ((unsigned char) bytes[kept] & 0xC0) == 0x80)
			kept--;
		stream->cut = true;
	}
	memcpy(stream->bytes + stream->length, bytes, kept);
	stream->length += kept;
	return kept;
}

/* Which stream the marker at this place opens: 1, 2, or 0 for no marker. */
static int
daytona_marker(const char *bytes, size_t length)
{
	if (length < 3 || bytes[0] != bytes[1] || bytes[1] != bytes[2])
		return 0;
	return bytes[0] == 1 || bytes[0] == 2 ? bytes[0] : 0;
}

/*
 * Take a framed log apart.  Three bytes 01 or three bytes 02 mark what follows,
 * up to the next marker, as standard output or standard error; what stands before
 * the first marker belongs to neither.  `output` gets the kept parts of both in
 * their order.  False when there is no marker at all.
 */
static bool
daytona_demux(SbxArena *arena, const char *framed, size_t length, size_t maximum,
              SbxRunResult *result)
{
	DaytonaStream both = daytona_open_stream(arena, length, SIZE_MAX - 1);
	DaytonaStream streams[3] = {{0},
	                            daytona_open_stream(arena, length, maximum),
	                            daytona_open_stream(arena, length, maximum)};
	int current = 0;
	size_t start = 0;

	for (size_t here = 0; here <= length; here++)
	{
		int marker = daytona_marker(framed + here, length - here);

		if (marker == 0 && here < length)
			continue;
		if (current != 0)
		{
			size_t kept = daytona_keep(&streams[current], framed + start, here - start);

			daytona_keep(&both, framed + start, kept);
		}
		if (marker == 0)
			break;
		current = marker;
		start = here + 3;
		here += 2;
	}
	if (current == 0)
		return false;

	result->output = both.bytes;
	result->output_length = both.length;
	result->stdout_text = streams[1].bytes;
	result->stdout_length = streams[1].length;
	result->stderr_text = streams[2].bytes;
	result->stderr_length = streams[2].length;
	result->truncated = streams[1].cut || streams[2].cut;
	return true;
}

/* Copy one stream out of the answer; false when it is not there. */
static bool
daytona_take_stream(SbxOp *op, const json_t *answer, const char *key, size_t maximum,
                    const char **text, size_t *text_length, bool *truncated)
{
	size_t length;
	const char *bytes = sbx_json_string_length(answer, key, &length);
	DaytonaStream stream;

	if (bytes == NULL)
		return false;
	stream = daytona_open_stream(&op->arena, length, maximum);
	daytona_keep(&stream, bytes, length);
	*text = stream.bytes;
	*text_length = stream.length;
	*truncated |= stream.cut;
	return true;
}

/* Both streams without their order: on lines of their own. */
static void
daytona_join(SbxArena *arena, SbxRunResult *result)
{
	size_t first = result->stdout_length;
	size_t second = result->stderr_length;
	DaytonaStream both = daytona_open_stream(arena, first + second + 1, SIZE_MAX - 1);

	daytona_keep(&both, result->stdout_text, first);
	if (first > 0 && second > 0 && result->stdout_text[first - 1] != '\n' &&
	    result->stderr_text[0] != '\n')
		daytona_keep(&both, "\n", 1);
	daytona_keep(&both, result->stderr_text, second);
	result->output = both.bytes;
	result->output_length = both.length;
}

/* "exitCode": absent or null is an unknown outcome, another type no answer. */
static bool
daytona_take_exit_code(const json_t *answer, SbxRunResult *result)
{
	const json_t *member = json_object_get(answer, "exitCode");
	int64_t exit_code;

	if (member == NULL || json_is_null(member))
		return true;
	if (!sbx_json_integer(answer, "exitCode", &exit_code) || exit_code < INT_MIN ||
	    exit_code > INT_MAX)
		return false;
	result->has_exit_code = true;
	result->exit_code = (int) exit_code;
	return true;
}

/* NULL when the answer is malformed or memory is short. */
static SbxRunResult *
daytona_run_result(SbxOp *op, const json_t *answer, size_t maximum)
{
	SbxRunResult *result = sbx_arena_alloc(&op->arena, sizeof(*result));
	bool truncated = false;
	bool separate;
	bool ordered = false;
	size_t length;
	const char *log = sbx_json_string_length(answer, "output", &length);

	if (result == NULL || answer == NULL || !daytona_take_exit_code(answer, result))
		return NULL;
	if (log != NULL)
		ordered = daytona_demux(&op->arena, log, length, maximum, result);
	separate = daytona_take_stream(op, answer, "stdout", maximum, &result->stdout_text,
	                               &result->stdout_length, &truncated);
	separate |= daytona_take_stream(op, answer, "stderr", maximum, &result->stderr_text,
	                                &result->stderr_length, &truncated);

	/* A log without any marker is the older shape: both streams, unframed. */
	if (!ordered && !separate)
		daytona_take_stream(op, answer, "output", maximum, &result->output,
		                    &result->output_length, &truncated);
	else if (!ordered)
		daytona_join(&op->arena, result);
	result->truncated |= truncated;
	return op->arena.out_of_memory ? NULL : result;
}

/* --- run: the steps ----------------------------------------------------- */

typedef struct DaytonaRun
{
	DaytonaState state;
	const char *run_id;
	const char *session_body;
	const char *command_body;
	const char *session_url; /* built early: killing must not need memory */
	int64_t timeout_ms;
	size_t max_stream;
	bool timed_out;
} DaytonaRun;

static DaytonaStep daytona_run_start;
static DaytonaStep daytona_run_found;
static DaytonaStep daytona_run_located;
static DaytonaStep daytona_run_open;
static DaytonaStep daytona_run_opened;
static DaytonaStep daytona_run_execute;
static DaytonaStep daytona_run_executed;
static DaytonaStep daytona_run_close;
static DaytonaStep daytona_run_closed;
static DaytonaStep daytona_run_confirm;
static DaytonaStep daytona_run_confirmed;

/* NULL when the text is not UTF-8 or memory is short. */
static const char *
daytona_command_body(SbxArena *arena, const SbxRunInput *input)
{
	const char *command = daytona_wrap(arena, input);
	json_t *body = sbx_json_new_object();
	const char *text = NULL;

	if (json_object_set_new(body, "command", json_string(command)) == 0 &&
	    json_object_set_new(body, "runAsync", json_false()) == 0)
		text = sbx_json_print(arena, body);
	json_decref(body);
	return text;
}

static SbxOp *
daytona_run_script(const SbxAccount *account, const SbxTarget *target,
                   const SbxRunInput *input)
{
	int64_t timeout_ms =
	    input->timeout_ms > 0 ? input->timeout_ms : DAYTONA_RUN_TIMEOUT_MS;
	SbxOp *op;
	DaytonaRun *run;

	if (timeout_ms > INT64_MAX - DAYTONA_RUN_EXTRA_MS)
		timeout_ms = INT64_MAX - DAYTONA_RUN_EXTRA_MS;
	op = daytona_make_op(account, "runScript", daytona_run_start, sizeof(DaytonaRun),
	                     DAYTONA_ARENA_SMALL, timeout_ms + DAYTONA_RUN_EXTRA_MS);
	if (op == NULL)
		return NULL;
	run = op->state;
	run->timeout_ms = timeout_ms;
	run->max_stream = input->max_stream;
	run->state.timeout_code = "TIMEOUT";
	daytona_set_target(op, target);
	if (daytona_valid_run(input))
	{
		run->run_id = sbx_arena_strdup(&op->arena, input->run_id);
		run->session_body =
		    sbx_arena_printf(&op->arena, "{\"sessionId\":\"%s\"}", input->run_id);
		run->command_body = daytona_command_body(&op->arena, input);
	}
	if (run->command_body == NULL)
		run->state.step = daytona_refuse;
	return daytona_made_op(op);
}

static SbxOpWant
daytona_run_start(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_run_found);
}

/*
 * The control plane is asked first because the toolbox's refusals are ambiguous,
 * and because only it knows where the toolbox of this sandbox is.
 */
static SbxOpWant
daytona_run_found(SbxOp *op)
{
	DaytonaState *state = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool allowed;

	if (op->response.status == 404)
		return daytona_fail_response(op, "SANDBOX_GONE");
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));
	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	daytona_adopt(op, sandbox);
	found = daytona_state(sandbox);
	allowed = daytona_learn_toolbox(op, sandbox, "toolboxProxyUrl");
	json_decref(sandbox);

	if (found == SBX_STATE_GONE)
		return daytona_fail_response(op, "SANDBOX_GONE");
	if (found != SBX_STATE_STARTED)
		return daytona_fail_response(op, "NOT_STARTED");
	if (!allowed)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
	if (state->toolbox_url == NULL)
		return daytona_ask_toolbox(op, daytona_run_located);
	return daytona_run_open(op);
}

static SbxOpWant
daytona_run_located(SbxOp *op)
{
	DaytonaState *state = op->state;
	json_t *object;
	bool allowed;

	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));
	object = daytona_object(op, false);
	allowed = daytona_learn_toolbox(op, object, "url");
	json_decref(object);
	if (!allowed)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
	if (state->toolbox_url == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return daytona_run_open(op);
}

/* A session of its own per run: the only kind of run that can be killed. */
static SbxOpWant
daytona_run_open(SbxOp *op)
{
	DaytonaRun *run = op->state;
	SbxOpWant want;

	run->session_url = sbx_arena_printf(&op->arena, "%s/process/session/%s",
	                                    run->state.toolbox_url, run->run_id);
	want = daytona_send_toolbox(op, "/process/session", run->session_body,
	                            daytona_run_opened);

	/* The name is ours alone, so a second delivery finds the first one's. */
	op->request.repeatable = true;
	return want;
}

/* The toolbox says nothing certain about a sandbox, except this. */
static const char *
daytona_toolbox_code(SbxOp *op)
{
	if (op->response.status == 400 && daytona_message_has(op, "no IP address"))
		return "NOT_STARTED";
	return NULL;
}

static SbxOpWant
daytona_run_opened(SbxOp *op)
{
	int status = op->response.status;

	if ((status >= 200 && status <= 299) || status == 409)
		return daytona_run_execute(op);
	daytona_note(op, daytona_toolbox_code(op));
	if (status == 401)
		return daytona_run_confirm(op);

	/* The session may have been made all the same: a shell that would stay. */
	if (daytona_is_passing(&op->response) && daytona_may_have_arrived(&op->response))
		return daytona_run_close(op);
	return daytona_fail_response(op, daytona_toolbox_code(op));
}

static SbxOpWant
daytona_run_execute(SbxOp *op)
{
	DaytonaRun *run = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s/exec", run->session_url);
	SbxOpWant want =
	    daytona_send(op, "POST", url, run->command_body, daytona_run_executed);

	op->request.timeout_ms = run->timeout_ms;

	/* The proxy in between replays a small body that has a Content-Length. */
	op->request.chunked = true;

	/* The framed log and both streams; in JSON a control byte takes six. */
	op->request.max_response = SIZE_MAX;
	if (run->max_stream < SIZE_MAX / 16)
		op->request.max_response = 8 * run->max_stream + 1024 * 1024;
	return want;
}

/*
 * Whatever came back, it is only noted here: the session is deleted first.  The
 * answer is gone by then, so the result is copied out of it now.
 */
static SbxOpWant
daytona_run_executed(SbxOp *op)
{
	DaytonaRun *run = op->state;
	DaytonaState *state = op->state;
	json_t *answer;

	state->acted = daytona_may_have_arrived(&op->response);
	run->timed_out =
	    op->response.status == 0 && (op->response.timed_out || op->expired);
	if (run->timed_out)
		daytona_note(op, "TIMEOUT_NOT_KILLED");
	else if (op->response.too_large)
		daytona_note(op, "OUTPUT_TOO_LARGE");
	else if (op->response.status != 200)
		daytona_note(op, daytona_toolbox_code(op));
	else
	{
		answer = daytona_object(op, true);
		state->result = daytona_run_result(op, answer, run->max_stream);
		json_decref(answer);
		if (state->result == NULL)
		{
			daytona_note(op, NULL);
			state->noted.phase = SBX_PHASE_PROTOCOL;
		}
	}
	return daytona_run_close(op);
}

/*
 * Deleting the session kills everything in it, so this is done however the
 * command ended, and it is all that makes a timeout true.
 */
static SbxOpWant
daytona_run_close(SbxOp *op)
{
	DaytonaRun *run = op->state;

	run->state.tidying = true;
	return daytona_send(op, "DELETE", run->session_url, NULL, daytona_run_closed);
}

/*
 * A result in hand is not spoilt by a failed clean-up.  A timeout is different:
 * unless the delete was confirmed, the command may still be running, and the
 * caller has to hear that.  (404 is no confirmation: a restarted toolbox has
 * forgotten the session, not necessarily its processes.)
 */
static SbxOpWant
daytona_run_closed(SbxOp *op)
{
	DaytonaRun *run = op->state;
	DaytonaState *state = op->state;

	if (state->result != NULL)
		return sbx_op_succeed(op, state->result);
	if (run->timed_out && op->response.status >= 200 && op->response.status <= 299)
		state->noted.provider_code = "TIMEOUT";
	if (state->noted.http_status == 401)
		return daytona_run_confirm(op);
	return daytona_fail_noted(op, state->noted.provider_code);
}

/* For a deleted sandbox the toolbox says 401, as for a bad key: ask again. */
static SbxOpWant
daytona_run_confirm(SbxOp *op)
{
	DaytonaState *state = op->state;

	state->tidying = true;
	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_run_confirmed);
}

static SbxOpWant
daytona_run_confirmed(SbxOp *op)
{
	bool gone = op->response.status == 404;
	json_t *sandbox;

	if (op->response.status == 200)
	{
		sandbox = daytona_sandbox(op);
		gone = sandbox != NULL && daytona_state(sandbox) == SBX_STATE_GONE;
		json_decref(sandbox);
	}
	return daytona_fail_noted(op, gone ? "SANDBOX_GONE" : NULL);
}

/* --- destroy ------------------------------------------------------------ */

typedef struct DaytonaDestroy
{
	DaytonaState state;
	const char *unique_name;
	SbxDestroyResult result;
} DaytonaDestroy;

static DaytonaStep daytona_destroy_start;
static DaytonaStep daytona_destroy_look_up;
static DaytonaStep daytona_destroy_looked_up;
static DaytonaStep daytona_destroy_delete;
static DaytonaStep daytona_destroy_deleted;
static DaytonaStep daytona_destroy_check;
static DaytonaStep daytona_destroy_checked;

static SbxOp *
daytona_destroy(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms)
{
	SbxOp *op;
	DaytonaDestroy *destroy;

	if (timeout_ms <= 0)
		timeout_ms = DAYTONA_DESTROY_TIMEOUT_MS;
	op = daytona_make_op(account, "destroy", daytona_destroy_start,
	                     sizeof(DaytonaDestroy), DAYTONA_ARENA_DESTROY, timeout_ms);
	if (op == NULL)
		return NULL;
	destroy = op->state;
	destroy->state.pause_ms = DAYTONA_RETRY_MS;
	if (target->unique_name != NULL)
		destroy->unique_name = sbx_arena_strdup(&op->arena, target->unique_name);

	/* An id too long to keep cannot be one of ours. */
	if (target->sandbox_id != NULL && !daytona_valid_id(target->sandbox_id))
		destroy->state.step = daytona_refuse;
	else if (target->sandbox_id != NULL)
		memcpy(op->sandbox_id, target->sandbox_id, strlen(target->sandbox_id) + 1);
	return daytona_made_op(op);
}

/* The id may have been written to the operation after it was made. */
static SbxOpWant
daytona_destroy_start(SbxOp *op)
{
	DaytonaDestroy *destroy = op->state;
	const char *id = op->sandbox_id[0] != '\0' ? op->sandbox_id : destroy->unique_name;

	if (!daytona_valid_id(id))
		return daytona_refuse(op);
	daytona_point_at(op, id);
	return id == op->sandbox_id ? daytona_destroy_delete(op)
	                            : daytona_destroy_look_up(op);
}

/* Creating settles within seconds to a minute: patient, but not slow to notice. */
static SbxOpWant
daytona_destroy_again(SbxOp *op, DaytonaStep *step)
{
	DaytonaState *state = op->state;
	int64_t pause_ms = state->pause_ms;

	state->pause_ms += state->pause_ms / 2;
	if (state->pause_ms > DAYTONA_RETRY_MAX_MS)
		state->pause_ms = DAYTONA_RETRY_MAX_MS;
	return daytona_pause(op, pause_ms, step);
}

static SbxOpWant
daytona_destroy_done(SbxOp *op, SbxDestroyResult result)
{
	DaytonaDestroy *destroy = op->state;

	destroy->result = result;
	return sbx_op_succeed(op, &destroy->result);
}

static SbxOpWant
daytona_destroy_look_up(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_destroy_looked_up);
}

/*
 * "Does not exist" is no proof here: the create whose outcome is unknown may
 * still be on its way, and look-ups are cached.  Only the end of time ends it.
 */
static SbxOpWant
daytona_destroy_looked_up(SbxOp *op)
{
	DaytonaDestroy *destroy = op->state;
	json_t *sandbox;
	const char *owner;
	SbxSandboxState found;
	bool ours;

	if (op->response.status == 404 || daytona_is_passing(&op->response))
	{
		daytona_note(op, op->response.status == 404
		                     ? "NOT_FOUND_YET"
		                     : daytona_status_code(&op->response));
		return daytona_destroy_again(op, daytona_destroy_look_up);
	}
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));
	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);

	owner = sbx_json_string(json_object_get(sandbox, "labels"), DAYTONA_OWNER_LABEL);
	ours = owner != NULL && strcmp(owner, destroy->unique_name) == 0;
	found = daytona_state(sandbox);
	if (ours)
		daytona_adopt(op, sandbox);
	json_decref(sandbox);
	if (!ours)
		return daytona_fail_response(op, "NOT_OURS");
	if (found == SBX_STATE_GONE)
		return daytona_destroy_done(op, SBX_DESTROY_DONE);
	return daytona_destroy_delete(op);
}

static SbxOpWant
daytona_destroy_delete(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "DELETE", state->sandbox_url, NULL,
	                    daytona_destroy_deleted);
}

/*
 * Calling a failure success leaks a sandbox, and calling a success failure keeps
 * a dead one on the books.  So only an answer about this sandbox counts.
 */
static SbxOpWant
daytona_destroy_deleted(SbxOp *op)
{
	DaytonaState *state = op->state;
	int status = op->response.status;
	bool was_acted = state->acted;

	if (status == 404)
		return daytona_destroy_done(op, was_acted ? SBX_DESTROY_DONE
		                                          : SBX_DESTROY_WAS_GONE);
	if (status >= 200 && status <= 299)
	{
		json_t *sandbox = daytona_sandbox(op);
		bool confirmed = sandbox != NULL;

		json_decref(sandbox);
		state->acted = true;
		return confirmed ? daytona_destroy_done(op, SBX_DESTROY_DONE)
		                 : daytona_destroy_check(op);
	}

	/* Still being made or changed by somebody: nothing was deleted, yet. */
	if (status == 409)
	{
		daytona_note(op, "BUSY");
		return daytona_destroy_again(op, daytona_destroy_delete);
	}
	if (daytona_is_passing(&op->response))
	{
		/* A throttled request was not looked at; all others may have worked. */
		if (status != 429 && daytona_may_have_arrived(&op->response))
			state->acted = true;
		daytona_note(op, daytona_status_code(&op->response));
		return daytona_destroy_check(op);
	}
	if (status == 400 && daytona_message_has(op, "fork"))
		return daytona_fail_response(op, "HAS_FORKS");
	return daytona_fail_response(op, daytona_status_code(&op->response));
}

/* The delete's own answer decides nothing: ask what is there now. */
static SbxOpWant
daytona_destroy_check(SbxOp *op)
{
	DaytonaState *state = op->state;

	return daytona_send(op, "GET", state->sandbox_url, NULL, daytona_destroy_checked);
}

static SbxOpWant
daytona_destroy_checked(SbxOp *op)
{
	DaytonaState *state = op->state;
	json_t *sandbox;
	SbxSandboxState found;

	if (op->response.status == 404)
		return daytona_destroy_done(op, state->acted ? SBX_DESTROY_DONE
		                                             : SBX_DESTROY_WAS_GONE);
	if (daytona_is_passing(&op->response))
	{
		daytona_note(op, daytona_status_code(&op->response));
		return daytona_destroy_again(op, daytona_destroy_delete);
	}
	if (op->response.status != 200)
		return daytona_fail_response(op, daytona_status_code(&op->response));
	sandbox = daytona_sandbox(op);
	if (sandbox == NULL)
		return daytona_fail(op, SBX_PHASE_PROTOCOL, NULL);
	found = daytona_state(sandbox);
	json_decref(sandbox);
	if (found == SBX_STATE_GONE)
		return daytona_destroy_done(op, SBX_DESTROY_DONE);
	return daytona_destroy_again(op, daytona_destroy_delete);
}

/* --- the kind ----------------------------------------------------------- */

const SbxProviderKind sbx_kind_daytona = {
    .name = "daytona",
    .operations = daytona_operations,
    .settings = daytona_settings,
    .credentials = daytona_credentials,

    /* The wire can do it; there is no operation for it yet. */
    .detached_launch = false,
    .check_settings = daytona_check_settings,
    .launch = daytona_launch,
    .get = daytona_get,
    .run_script = daytona_run_script,
    .destroy = daytona_destroy,
};
