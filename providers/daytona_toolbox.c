/*
 * daytona_toolbox.c
 *		Daytona's toolbox, which runs commands: where it is, and may the key go there?
 *
 * Its address is data from an answer, and every request to it carries the key.
 * Whoever could choose the address would be sent the key.
 */
#include <limits.h>
#include <string.h>

#include "providers/daytona.h"

/* --- may the key go there? ---------------------------------------------- */

typedef struct SbxDaytonaUrl
{
	bool https;
	const char *host;
	size_t host_length;
	int port;
} SbxDaytonaUrl;

static bool daytona_same_host(const SbxDaytonaUrl *left, const SbxDaytonaUrl *right);
static bool daytona_same_domain(const SbxDaytonaUrl *left, const SbxDaytonaUrl *right);
static bool daytona_parse_url(const char *url, SbxDaytonaUrl *parts);

/*
 * The key goes wherever this says yes, and the address comes out of an answer.
 * So it has to be encrypted as well as the control plane is, and to be on the
 * control plane's host or beside it in the same domain.  Unencrypted, a sibling
 * host must not even move the key to another port.
 */
static bool
daytona_toolbox_allowed(const char *api_url, const char *toolbox_url)
{
	SbxDaytonaUrl api;
	SbxDaytonaUrl toolbox;

	if (!daytona_parse_url(api_url, &api) || !daytona_parse_url(toolbox_url, &toolbox))
		return false;
	if (api.https && !toolbox.https)
		return false;
	if (daytona_same_host(&api, &toolbox))
		return true;
	return daytona_same_domain(&api, &toolbox) &&
	       (api.https || api.port == toolbox.port);
}

static bool
daytona_same_host(const SbxDaytonaUrl *left, const SbxDaytonaUrl *right)
{
	return left->host_length == right->host_length &&
	       sbx_ascii_equal(left->host, right->host, left->host_length);
}

/*
 * The last two labels of a host name, or NULL when it has fewer, an empty one,
 * or is an address: a top-level domain never starts with a digit.
 */
static const char *
daytona_domain(const SbxDaytonaUrl *url)
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
daytona_same_domain(const SbxDaytonaUrl *left, const SbxDaytonaUrl *right)
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
daytona_parse_port(const char *text, size_t length, SbxDaytonaUrl *parts)
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
daytona_parse_url(const char *url, SbxDaytonaUrl *parts)
{
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
		/* An IPv6 address, brackets included. */
		parts->host_length = strspn(url + 1, "0123456789abcdefABCDEF:.") + 2;
		if (parts->host_length > authority || url[parts->host_length - 1] != ']')
			return false;
	}
	else
		parts->host_length = strspn(url, SBX_NAME_BYTES);
	return parts->host_length > 0 &&
	       daytona_parse_port(url + parts->host_length, authority - parts->host_length,
	                          parts);
}

/* --- learning the address ----------------------------------------------- */

/*
 * Learn the address, if given; false when it is refused.  The first one counts: a
 * later answer must not move an operation elsewhere.
 */
static bool
daytona_learn_url(SbxOp *op, const json_t *object, const char *key)
{
	SbxDaytonaState *state = op->state;
	const char *url = sbx_json_string(object, key);
	size_t length;

	if (state->toolbox_url != NULL || url == NULL || *url == '\0')
		return true;
	if (!daytona_toolbox_allowed(state->api_url, url))
		return false;
	length = strlen(url);
	while (url[length - 1] == '/')
		length--;

	/* A precision is an int. */
	if (length > INT_MAX)
		return false;
	state->toolbox_url =
	    sbx_arena_printf(&op->arena, "%.*s/%s", (int) length, url, op->sandbox_id);
	return true;
}

/* The same from a description of the sandbox, which may have the address. */
bool
sbx_daytona_learn_toolbox(SbxOp *op, const json_t *sandbox)
{
	return daytona_learn_url(op, sandbox, "toolboxProxyUrl");
}

SbxOpWant
sbx_daytona_fail_toolbox(SbxOp *op)
{
	return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, "TOOLBOX_HOST_REFUSED");
}

/* For descriptions without the address: there is a resource of its own for it. */
SbxOpWant
sbx_daytona_ask_toolbox(SbxOp *op, SbxStep *answer)
{
	SbxDaytonaState *state = op->state;
	const char *url =
	    sbx_arena_printf(&op->arena, "%s/toolbox-proxy-url", state->sandbox_url);

	return sbx_daytona_send(op, "GET", url, NULL, answer);
}

/* What was asked for there; false = the operation has failed. */
bool
sbx_daytona_take_toolbox(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	json_t *object;
	bool allowed;

	if (op->response.status != 200)
	{
		sbx_steps_fail_response(op, sbx_steps_status_code(op));
		return false;
	}
	object = sbx_steps_object(op, false);
	allowed = daytona_learn_url(op, object, "url");
	json_decref(object);
	if (!allowed)
		sbx_daytona_fail_toolbox(op);
	else if (state->toolbox_url == NULL)
		sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	return allowed && state->toolbox_url != NULL;
}

/* --- opening it --------------------------------------------------------- */

static SbxStep daytona_toolbox_look;
static SbxStep daytona_toolbox_looked;
static SbxStep daytona_toolbox_found;
static SbxStep daytona_toolbox_ask;
static SbxStep daytona_toolbox_told;
static SbxStep daytona_toolbox_located;

/*
 * The control plane is asked first because the toolbox's refusals are ambiguous,
 * and because only it knows where the toolbox of this sandbox is.
 */
SbxOpWant
sbx_daytona_open_toolbox(SbxOp *op, SbxStep *opened)
{
	SbxDaytonaState *state = op->state;

	state->opened = opened;
	return daytona_toolbox_look(op);
}

static SbxOpWant
daytona_toolbox_look(SbxOp *op)
{
	return sbx_daytona_look(op, daytona_toolbox_looked);
}

static SbxOpWant
daytona_toolbox_looked(SbxOp *op)
{
	return sbx_steps_looked(op, daytona_toolbox_look, daytona_toolbox_found);
}

static SbxOpWant
daytona_toolbox_found(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	json_t *sandbox;
	SbxSandboxState found;
	bool allowed;

	if (op->response.status == 404)
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	sandbox = sbx_daytona_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	sbx_daytona_adopt(op, sandbox);
	found = sbx_daytona_sandbox_state(sandbox);
	allowed = sbx_daytona_learn_toolbox(op, sandbox);
	json_decref(sandbox);

	if (found == SBX_STATE_GONE)
		return sbx_steps_fail_response(op, "SANDBOX_GONE");
	if (found != SBX_STATE_STARTED)
		return sbx_steps_fail_response(op, "NOT_STARTED");
	if (!allowed)
		return sbx_daytona_fail_toolbox(op);
	if (state->toolbox_url == NULL)
		return daytona_toolbox_ask(op);
	return state->opened(op);
}

static SbxOpWant
daytona_toolbox_ask(SbxOp *op)
{
	return sbx_daytona_ask_toolbox(op, daytona_toolbox_told);
}

static SbxOpWant
daytona_toolbox_told(SbxOp *op)
{
	return sbx_steps_looked(op, daytona_toolbox_ask, daytona_toolbox_located);
}

static SbxOpWant
daytona_toolbox_located(SbxOp *op)
{
	SbxDaytonaState *state = op->state;

	return sbx_daytona_take_toolbox(op) ? state->opened(op) : SBX_OP_WANT_NOTHING;
}

/* --- using it ----------------------------------------------------------- */

SbxOpWant
sbx_daytona_send_toolbox(SbxOp *op, const char *method, const char *path,
                         const char *body, SbxStep *answer)
{
	SbxDaytonaState *state = op->state;
	const char *url = sbx_arena_printf(&op->arena, "%s%s", state->toolbox_url, path);

	return sbx_daytona_send(op, method, url, body, answer);
}

const char *
sbx_daytona_command_body(SbxArena *arena, const char *command, int timeout_seconds)
{
	json_t *body = sbx_json_new_object();
	const char *text = NULL;

	if (command != NULL &&
	    json_object_set_new(body, "command", json_string(command)) == 0 &&
	    json_object_set_new(body, "timeout", json_integer(timeout_seconds)) == 0)
		text = sbx_json_print(arena, body);
	json_decref(body);
	return text;
}

/*
 * There is nowhere to pass the request on to: the sandbox is not running (an archived
 * one has not even a container), or not yet.  The toolbox's other refusals say nothing
 * certain about a sandbox.
 */
bool
sbx_daytona_toolbox_has_no_sandbox(const SbxOp *op)
{
	if (op->response.status == 404)
		return sbx_daytona_message_has(op, "container not found");
	return op->response.status == 400 && sbx_daytona_message_has(op, "no IP address");
}

/* --- refusals ----------------------------------------------------------- */

static SbxStep daytona_toolbox_confirmed;

/* What the operation has to say of this answer; NULL leaves it to the status. */
SbxOpWant
sbx_daytona_fail_in_toolbox(SbxOp *op, const char *code)
{
	if (code == NULL && sbx_daytona_toolbox_has_no_sandbox(op))
		code = "NOT_STARTED";
	sbx_steps_note(op, code);
	return sbx_daytona_fail_noted_in_toolbox(op);
}

/*
 * For a deleted sandbox the toolbox says 401, as for a bad key.  The control plane
 * took the key a moment ago, so it is asked again.
 */
SbxOpWant
sbx_daytona_fail_noted_in_toolbox(SbxOp *op)
{
	SbxDaytonaState *state = op->state;

	if (state->steps.noted.http_status != 401)
		return sbx_steps_fail_noted(op, state->steps.noted.provider_code);
	state->steps.tidying = true;
	return sbx_daytona_look(op, daytona_toolbox_confirmed);
}

static SbxOpWant
daytona_toolbox_confirmed(SbxOp *op)
{
	SbxDaytonaState *state = op->state;
	bool gone = op->response.status == 404;

	if (op->response.status == 200)
	{
		json_t *sandbox = sbx_daytona_sandbox(op);

		gone = sandbox != NULL && sbx_daytona_sandbox_state(sandbox) == SBX_STATE_GONE;
		json_decref(sandbox);
	}
	return sbx_steps_fail_noted(op, gone ? "SANDBOX_GONE"
	                                     : state->steps.noted.provider_code);
}
