/*
 * daytona_control.c
 *		Daytona's control plane, except create and list.
 */
#include "daytona.h"

#include <stdlib.h>
#include <string.h>

#include "server.h"

static bool
change_in_progress(const DaytonaSandbox *details)
{
	return details->settle.slot != 0 || emu_clock_ms() < details->conflict_until;
}

static void
delete_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	if (change_in_progress(daytona_details(sandbox)))
	{
		daytona_refuse(request, 409, "Sandbox state change in progress");
		return;
	}
	daytona_destroy(sandbox);
	daytona_answer(request, sandbox);
	request->answer.hold_ms = daytona_config.slow_destroy;
}

/* On an ephemeral sandbox this is a delete. */
static void
stop_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);

	if (change_in_progress(details))
		daytona_refuse(request, 409, "Sandbox state change in progress");
	else if (details->state != DAYTONA_STARTED)
		daytona_refuse(request, 400, "Sandbox is not started");
	else
	{
		daytona_stop(sandbox);
		daytona_answer(request, sandbox);
	}
}

static void
start_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);
	EmuResources more = {sandbox->resources.cpu, sandbox->resources.memory, 0};

	if (change_in_progress(details))
		daytona_refuse(request, 409, "Sandbox state change in progress");
	else if (details->state != DAYTONA_STOPPED)
		daytona_refuse(request, 400, "Sandbox is not in valid state");
	else if (daytona_within_quota(request, sandbox->account, &more, 0))
	{
		daytona_start(sandbox);
		daytona_answer(request, sandbox);
	}
}

static void
pause_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	(void) sandbox;
	daytona_refuse(request, 422, "Sandboxes of class container cannot be paused");
}

static void
refresh_activity(EmuRequest *request, EmuSandbox *sandbox)
{
	daytona_touch(sandbox);
	emu_answer_empty(request, 201);
}

static void
show_toolbox_url(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	(void) sandbox;
	emu_text_add(&body, "{\"url\":\"");
	emu_server_origin(request, &body);
	emu_text_add(&body, DAYTONA_TOOLBOX "\"}");
	emu_answer_json(request, 200, &body);
}

/* PUT labels: replaces all of them. */
static void
replace_labels(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = daytona_body(request);
	json_t *labels = json_object_get(body, "labels");
	bool good = json_is_object(labels);
	EmuText answer = {0};
	const char *name;
	json_t *value;

	if (body == NULL)
		return;
	json_object_foreach (labels, name, value)
		good = good && json_is_string(value);
	if (!good)
		daytona_refuse(request, 400, "labels must be an object of strings");
	else
	{
		free(sandbox->labels);
		sandbox->labels = json_dumps(labels, JSON_COMPACT);
		emu_text_add(&answer, "{");
		emu_json_member_raw(&answer, "labels", sandbox->labels);
		emu_text_add(&answer, "}");
		emu_answer_json(request, 200, &answer);
	}
	json_decref(body);
}

/* {what}/{number}: the intervals that can be set by a path. */
static void
set_interval(EmuRequest *request, EmuSandbox *sandbox, const char *what,
             const char *number)
{
	DaytonaSandbox *details = daytona_details(sandbox);
	char *end;
	long minutes = strtol(number, &end, 10);

	if (*number == '\0' || *end != '\0' || minutes > 1000000000 || minutes < -1)
		daytona_refuse(request, 400, "Validation failed (numeric string is expected)");
	else if (minutes < 0 && strcmp(what, "autodelete") != 0)
		emu_refuse_format(request, 400, "%s interval must be non-negative",
		                  strcmp(what, "autostop") == 0 ? "Auto-stop" : "The");
	else
	{
		if (strcmp(what, "autostop") == 0)
			details->auto_stop = (int) minutes;
		else if (strcmp(what, "autodelete") == 0)
			details->auto_delete = (int) minutes;
		else if (strcmp(what, "autoarchive") == 0)
			details->auto_archive = daytona_archive_interval((int) minutes);
		else
			daytona_set_lifetime(sandbox, (int) minutes);
		daytona_touch(sandbox);
		daytona_start_idle_clock(sandbox);
		daytona_answer(request, sandbox);
	}
}

static void
not_found(EmuRequest *request)
{
	emu_refuse_format(request, 404, "Cannot %s %s", request->method,
	                  request->path + strlen("/daytona"));
}

static void
handle_sandbox(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path)
{
	static const struct
	{
		const char *method;
		const char *name;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	} routes[] = {
	    {"POST", "stop", stop_sandbox},
	    {"POST", "start", start_sandbox},
	    {"POST", "pause", pause_sandbox},
	    {"PUT", "labels", replace_labels},
	    {"POST", "last-activity", refresh_activity},
	    {"GET", "toolbox-proxy-url", show_toolbox_url},
	};
	const char *what = path->count > 2 ? path->segments[2] : NULL;

	if (path->count == 2 && strcmp(request->method, "GET") == 0)
		daytona_answer(request, sandbox);
	else if (path->count == 2 && strcmp(request->method, "DELETE") == 0)
		delete_sandbox(request, sandbox);
	else if (path->count == 4 && strcmp(request->method, "POST") == 0 &&
	         (strcmp(what, "autostop") == 0 || strcmp(what, "autodelete") == 0 ||
	          strcmp(what, "autoarchive") == 0 || strcmp(what, "ttl") == 0))
		set_interval(request, sandbox, what, path->segments[3]);
	else if (path->count == 3)
	{
		for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
			if (strcmp(routes[i].name, what) == 0 &&
			    strcmp(routes[i].method, request->method) == 0)
			{
				routes[i].handle(request, sandbox);
				return;
			}
		not_found(request);
	}
	else
		not_found(request);
}

/* The id first, then the name, both within the account only. */
static EmuSandbox *
find_sandbox(const EmuAccount *account, const char *id_or_name)
{
	EmuSandbox *sandbox = emu_sandbox_by_id(account, id_or_name);

	return sandbox != NULL ? sandbox : emu_sandbox_by_name(account, id_or_name);
}

static void
route(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	EmuSandbox *sandbox;

	if (path->count == 0 || path->count > EMU_PATH_SEGMENTS ||
	    strcmp(path->segments[0], "sandbox") != 0)
		not_found(request);
	else if (request->operation == EMU_OP_CREATE)
		daytona_create(request, account);
	else if (request->operation == EMU_OP_LIST)
		daytona_list(request, account);
	else if (path->count == 1)
		not_found(request);
	else if ((sandbox = find_sandbox(account, path->segments[1])) != NULL)
		handle_sandbox(request, sandbox, path);
	else
		emu_refuse_format(request, 404, "Sandbox with ID or name %s not found",
		                  path->segments[1]);
}

/*
 * Keys that are to be refused are refused before anything else about the
 * request is looked at.
 */
void
daytona_control_handle(EmuRequest *request)
{
	const char *key = emu_request_bearer(request);
	int refusal = key != NULL ? emu_key_refusal(key) : 401;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(DAYTONA_API "/"));

	/* The event socket of the client is not offered: it polls instead. */
	if (path.count > 0 && strcmp(path.segments[0], "socket.io") == 0)
		not_found(request);
	else if (refusal != EMU_KEY_ACCEPTED)
		daytona_refuse(request, refusal,
		               refusal == 401   ? "Unauthorized"
		               : refusal == 403 ? "Access denied"
		                                : "ThrottlerException: Too Many Requests");
	else
		route(request, emu_account(&emu_daytona, key), &path);
	emu_path_free(&path);
}
