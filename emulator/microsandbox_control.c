/*
 * microsandbox_control.c
 *		What is asked of a sandbox over HTTP, by its name or its id.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

static void
wrong_state(EmuRequest *request)
{
	microsandbox_fail(request, 409, "invalid_state_transition",
	                  "the sandbox is not in a state for this");
}

static void
get(EmuRequest *request, EmuSandbox *sandbox)
{
	microsandbox_answer(request, sandbox);
}

/* In any state. */
static void
delete_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	microsandbox_destroy(sandbox);
	emu_text_add(&body, "{\"message\":\"sandbox destroyed\"}");
	emu_answer_json(request, 200, &body);
	request->answer.hold_ms = microsandbox_config.slow_destroy;
}

static void
start(EmuRequest *request, EmuSandbox *sandbox)
{
	MicrosandboxStatus status = microsandbox_details(sandbox)->status;
	MicrosandboxWait wait;

	if (!microsandbox_wait_read(request, &wait))
		return;
	if (status != MICROSANDBOX_CREATED && status != MICROSANDBOX_STOPPED &&
	    status != MICROSANDBOX_FAILED)
		wrong_state(request);
	else
	{
		microsandbox_start(sandbox);
		microsandbox_wait_answer(request, sandbox, &wait);
	}
}

/* The answer is of a sandbox that stops, even if that takes no time. */
static void
stop(EmuRequest *request, EmuSandbox *sandbox)
{
	MicrosandboxStatus status = microsandbox_details(sandbox)->status;

	if (status != MICROSANDBOX_RUNNING && status != MICROSANDBOX_STARTING)
	{
		wrong_state(request);
		return;
	}
	microsandbox_stop(sandbox);
	microsandbox_answer(request, sandbox);
	microsandbox_settle(sandbox);
}

/* Answers itself if it does not run. */
static bool
check_running(EmuRequest *request, const EmuSandbox *sandbox)
{
	if (microsandbox_details(sandbox)->status == MICROSANDBOX_RUNNING)
		return true;
	microsandbox_fail(request, 409, "invalid_state_transition",
	                  "the sandbox does not run");
	return false;
}

static void
agent(EmuRequest *request, EmuSandbox *sandbox)
{
	if (check_running(request, sandbox))
		microsandbox_agent_open(request, sandbox);
}

static void
logs(EmuRequest *request, EmuSandbox *sandbox)
{
	if (check_running(request, sandbox))
		microsandbox_logs(request, sandbox);
}

static void
rename_from(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	const json_t *name = json_object_get(body, "name");
	EmuSandbox *holder = NULL;

	if (!emu_is_plain_string(name) || json_object_size(body) != 1 ||
	    !microsandbox_name_valid(json_string_value(name)))
	{
		microsandbox_invalid(request, "only the name can be changed, to a valid one");
		return;
	}
	holder = microsandbox_find_name(sandbox->account, json_string_value(name));
	if (holder != NULL && holder != sandbox)
		microsandbox_fail(request, 409, "name_already_exists", "'name' already exists");
	else
	{
		microsandbox_take_name(sandbox, emu_strdup(json_string_value(name)));
		microsandbox_answer(request, sandbox);
	}
}

static void
rename_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = microsandbox_body(request);

	if (body != NULL)
		rename_from(request, sandbox, body);
	json_decref(body);
}

/*
 * Quotas: what the organization may have.  Capacity is no part of it, what
 * finds none waits.
 */

static void
quotas(EmuRequest *request, EmuAccount *account)
{
	int64_t running[2] = {0, 0}; /* persistent, ephemeral; or starting */
	EmuText body = {0};

	for (EmuSandbox *sandbox = account->first_live; sandbox != NULL;
	     sandbox = sandbox->next_live)
	{
		const MicrosandboxDetails *details = microsandbox_details(sandbox);

		if (details->status == MICROSANDBOX_RUNNING ||
		    details->status == MICROSANDBOX_STARTING)
			running[details->ephemeral]++;
	}
	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "total_sandboxes", (int64_t) account->live_count);
	if (microsandbox_config.sandbox_maximum >= 0)
		emu_json_member_integer(&body, "max_sandboxes",
		                        microsandbox_config.sandbox_maximum);
	else
		emu_json_member_raw(&body, "max_sandboxes", "null");
	emu_json_member_integer(&body, "concurrent_ephemeral_running", running[1]);
	emu_json_member_raw(&body, "max_concurrent_ephemeral_running", "null");
	emu_json_member_integer(&body, "concurrent_persistent_running", running[0]);
	emu_json_member_raw(&body, "max_concurrent_persistent_running", "null");
	emu_json_member_integer(&body, "max_vcpus_per_sandbox",
	                        microsandbox_config.cpu_maximum);
	emu_json_member_integer(&body, "max_memory_mib_per_sandbox",
	                        microsandbox_config.memory_maximum);
	emu_json_member_integer(&body, "max_disk_size_mib_per_sandbox",
	                        microsandbox_config.disk_maximum);
	emu_json_member_raw(&body, "max_uptime_minutes_per_sandbox", "null");
	emu_json_member_raw(&body, "hard_cap", "false");
	emu_json_member_raw(&body, "pool_exhausted", "false");
	emu_json_member_raw(&body, "is_suspended", "false");
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/*
 * Routing
 */

/* `action` is "" for the sandbox itself, which may not be there. */
static void
handle_sandbox(EmuRequest *request, EmuSandbox *sandbox, const char *action)
{
	static const struct
	{
		const char *method;
		const char *action;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	} routes[] = {
	    {"GET", "", get},
	    {"DELETE", "", delete_sandbox},
	    {"POST", "start", start},
	    {"POST", "stop", stop},
	    {"PATCH", "", rename_sandbox},
	    {"GET", "agent", agent},
	    {"GET", "logs", logs},
	};

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].method, request->method) == 0 &&
		    strcmp(routes[i].action, action) == 0)
		{
			if (sandbox == NULL)
				microsandbox_not_found(request);
			else
				routes[i].handle(request, sandbox);
			return;
		}
	microsandbox_fail(request, 404, "not_found", "no such path");
}

static void
route_sandbox(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	bool by_name = path->count > 3 && strcmp(path->segments[2], "by-name") == 0;
	size_t names = by_name ? 4 : 3;

	if (path->count > names + 1)
		microsandbox_fail(request, 404, "not_found", "no such path");
	else
		handle_sandbox(request,
		               by_name ? microsandbox_find_name(account, path->segments[3])
		                       : microsandbox_find(account, path->segments[2]),
		               path->count > names ? path->segments[names] : "");
}

static void
route(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	bool known = path->count >= 2 && strcmp(path->segments[0], "v1") == 0;

	microsandbox_serve_queue(account);
	if (request->operation == EMU_OP_CREATE)
		microsandbox_create(request, account);
	else if (request->operation == EMU_OP_LIST)
		microsandbox_list(request, account);
	else if (known && path->count == 2 && strcmp(path->segments[1], "quotas") == 0 &&
	         strcmp(request->method, "GET") == 0)
		quotas(request, account);
	else if (known && path->count > 2 && strcmp(path->segments[1], "sandboxes") == 0)
		route_sandbox(request, account, path);
	else
		microsandbox_fail(request, 404, "not_found", "no such path");
}

/*
 * Keys that are to be refused are refused before anything else about the
 * request is looked at.
 */
void
microsandbox_control_handle(EmuRequest *request)
{
	const char *key = emu_request_bearer(request);
	int refusal = key != NULL ? emu_key_refusal(key) : 401;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(MICROSANDBOX_API "/"));
	if (refusal == EMU_KEY_ACCEPTED)
		route(request, emu_account(&emu_microsandbox, key), &path);
	else
		microsandbox_refuse(request, refusal,
		                    refusal == 401   ? "the API key is missing or not valid"
		                    : refusal == 403 ? "this key may not do that"
		                                     : "too many requests");
	emu_path_free(&path);
}
