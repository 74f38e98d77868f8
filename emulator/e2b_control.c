/*
 * e2b_control.c
 *		E2B's control plane, except create and list.
 */
#include "e2b.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a resume and a first-version create get that name no timeout. */
#define SHORT_TIMEOUT_MS   15000
#define CONNECT_TIMEOUT_MS 300000

static void
not_found(EmuRequest *request, const char *id)
{
	emu_refuse_format(request, 404,
	                  "Sandbox \"%.200s\" doesn't exist or you don't have access to it",
	                  id);
}

static void
no_such_path(EmuRequest *request)
{
	e2b_refuse(request, 404, "no matching operation was found");
}

/*
 * Seconds in the body, milliseconds here.  `otherwise` is what a missing one
 * means; negative: there must be one.
 */
bool
e2b_read_timeout(EmuRequest *request, const json_t *body, int64_t otherwise,
                 int64_t *timeout_ms)
{
	const json_t *timeout = json_object_get(body, "timeout");

	*timeout_ms = otherwise;
	if (timeout == NULL)
	{
		if (otherwise < 0)
			e2b_refuse(request, 400, "property \"timeout\" is missing");
		return otherwise >= 0;
	}
	if (!json_is_number(timeout) ||
	    floor(json_number_value(timeout)) != json_number_value(timeout) ||
	    fabs(json_number_value(timeout)) > 1e9)
	{
		e2b_refuse(request, 400, "property \"timeout\" must be an integer");
		return false;
	}
	*timeout_ms = (int64_t) json_number_value(timeout) * 1000;
	return true;
}

static void
get_sandbox(EmuRequest *request, EmuSandbox *sandbox, const json_t *nothing)
{
	EmuText body = {0};

	(void) nothing;
	e2b_write(&body, sandbox, false);
	emu_answer_json(request, 200, &body);
}

/* A paused one is killed too, but not while it is being resumed. */
static void
kill_sandbox(EmuRequest *request, EmuSandbox *sandbox, const json_t *nothing)
{
	(void) nothing;
	if (e2b_details(sandbox)->state == E2B_RESUMING)
	{
		e2b_refuse(request, 409, "the sandbox is being resumed");
		return;
	}
	e2b_destroy(sandbox);
	emu_answer_empty(request, 204);
	request->answer.hold_ms = e2b_config.slow_destroy;
}

/* To a paused sandbox this says that there is none. */
static void
set_timeout(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	E2bState state = e2b_details(sandbox)->state;
	int64_t timeout_ms;

	if (!e2b_read_timeout(request, body, -1, &timeout_ms))
		return;
	if (state == E2B_PAUSED)
		not_found(request, sandbox->id);
	else if (state != E2B_RUNNING)
		e2b_refuse(request, 409, "the sandbox is changing its state");
	else if (!e2b_set_timeout(sandbox, timeout_ms))
		e2b_refuse(request, 400, "the sandbox has reached its maximum age");
	else
		emu_answer_empty(request, 204);
}

static void
pause_sandbox(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	const json_t *memory = json_object_get(body, "memory");

	if (memory != NULL && !json_is_boolean(memory))
		e2b_refuse(request, 400, "property \"memory\" must be a boolean");
	else if (e2b_details(sandbox)->state != E2B_RUNNING)
		emu_refuse_format(request, 409, "Sandbox '%s' is already paused", sandbox->id);
	else
	{
		e2b_pause(sandbox, !json_is_false(memory));
		emu_answer_empty(request, 204);
	}
}

/* Answers 201, if the account has a slot for it. */
static void
resume(EmuRequest *request, EmuSandbox *sandbox, int64_t timeout_ms)
{
	if (!e2b_within_quota(request, sandbox->account))
		return;
	e2b_start(sandbox, timeout_ms, e2b_config.resume_delay, E2B_RESUMING);
	e2b_answer_access(request, sandbox, 201);
	request->answer.hold_ms = e2b_config.resume_delay;
}

/* To a running sandbox this may give more time, but never takes any. */
static void
reach(EmuRequest *request, EmuSandbox *sandbox, int64_t timeout_ms)
{
	const E2bSandbox *details = e2b_details(sandbox);

	if (timeout_ms <= 0)
		e2b_refuse(request, 400, "Timeout must be greater than 0");
	else if (timeout_ms > e2b_config.maximum_age)
		emu_refuse_format(request, 400, "Timeout cannot be greater than %lld seconds",
		                  (long long) e2b_config.maximum_age / 1000);
	else if (details->state == E2B_RESUMING)
		e2b_refuse(request, 409, "the sandbox is already being resumed");
	else if (details->state == E2B_PAUSED)
		resume(request, sandbox, timeout_ms);
	else
	{
		if (emu_wall_ms() + timeout_ms > details->end_ms)
			e2b_set_timeout(sandbox, timeout_ms);
		e2b_answer_access(request, sandbox, 200);
	}
}

static void
connect_first_version(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	int64_t timeout_ms;

	if (e2b_read_timeout(request, body, -1, &timeout_ms))
		reach(request, sandbox, timeout_ms);
}

static void
connect_second_version(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	int64_t timeout_ms;

	if (e2b_read_timeout(request, body, CONNECT_TIMEOUT_MS, &timeout_ms))
		reach(request, sandbox, timeout_ms);
}

static void
resume_sandbox(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	int64_t timeout_ms;

	if (!e2b_read_timeout(request, body, SHORT_TIMEOUT_MS, &timeout_ms))
		return;
	if (e2b_details(sandbox)->state != E2B_PAUSED)
		emu_refuse_format(request, 409, "Sandbox '%s' is already running", sandbox->id);
	else
		reach(request, sandbox, timeout_ms);
}

/* `action` is "" for the sandbox itself. */
static void
handle_sandbox(EmuRequest *request, EmuAccount *account, bool second_version,
               const char *id, const char *action)
{
	static const struct
	{
		bool second_version;
		const char *method;
		const char *action;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox, const json_t *body);
	} routes[] = {
	    {false, "GET", "", get_sandbox},
	    {false, "DELETE", "", kill_sandbox},
	    {false, "POST", "timeout", set_timeout},
	    {false, "POST", "pause", pause_sandbox},
	    {false, "POST", "resume", resume_sandbox},
	    {false, "POST", "connect", connect_first_version},
	    {true, "POST", "connect", connect_second_version},
	};
	EmuSandbox *sandbox = e2b_find(account, id);
	json_t *body;

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
	{
		if (routes[i].second_version != second_version ||
		    strcmp(routes[i].method, request->method) != 0 ||
		    strcmp(routes[i].action, action) != 0)
			continue;
		body = e2b_body(request);
		if (body != NULL && sandbox == NULL)
			not_found(request, id);
		else if (body != NULL)
			routes[i].handle(request, sandbox, body);
		json_decref(body);
		return;
	}
	no_such_path(request);
}

static void
route(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	bool second_version = path->count > 0 && strcmp(path->segments[0], "v2") == 0;
	size_t first = second_version ? 1 : 0;
	size_t count = path->count - first;

	if (path->count > EMU_PATH_SEGMENTS || count < 1 || count > 3 ||
	    strcmp(path->segments[first], "sandboxes") != 0)
		no_such_path(request);
	else if (request->operation == EMU_OP_CREATE)
		e2b_create(request, account, second_version);
	else if (request->operation == EMU_OP_LIST)
		e2b_list(request, account, second_version);
	else if (count == 1)
		no_such_path(request);
	else
		handle_sandbox(request, account, second_version, path->segments[first + 1],
		               count == 3 ? path->segments[first + 2] : "");
}

/*
 * Keys that are to be refused are refused before anything else about the
 * request is looked at.
 */
void
e2b_control_handle(EmuRequest *request)
{
	const char *key = emu_request_header(request, "X-API-KEY");
	int refusal = key != NULL ? emu_key_refusal(key) : EMU_KEY_ACCEPTED;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(E2B_API "/"));
	if (key == NULL || *key == '\0')
		e2b_refuse(request, 401, "Invalid API key, the X-API-KEY header is missing");
	else if (refusal != EMU_KEY_ACCEPTED)
		e2b_refuse(request, refusal,
		           refusal == 401   ? "Invalid API key, please visit your dashboard"
		           : refusal == 403 ? "team is blocked"
		                            : "Rate limit exceeded, please try again later");
	else
		route(request, emu_account(&emu_e2b, key), &path);
	emu_path_free(&path);
}
