/*
 * daytona.c
 *		The stand-in for Daytona: which request goes where, and its settings.
 *
 * Daytona has two planes.  Below /daytona/api is the control plane, which
 * makes and ends sandboxes; below /daytona/toolbox/<sandbox id> is the
 * toolbox, which runs commands inside one.
 */
#include "daytona.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS 60000

DaytonaConfig daytona_config = {.minute = MINUTE_MS};
EmuQuota daytona_quota = EMU_NO_QUOTA;

static const char *
status_name(int status)
{
	switch (status)
	{
		case 400:
			return "Bad Request";
		case 401:
			return "Unauthorized";
		case 403:
			return "Forbidden";
		case 404:
			return "Not Found";
		case 408:
			return "Request Timeout";
		case 409:
			return "Conflict";
		case 422:
			return "Unprocessable Entity";
		case 429:
			return "Too Many Requests";
		case 500:
			return "Internal Server Error";
		case 502:
			return "Bad Gateway";
		case 503:
			return "Service Unavailable";
		case 504:
			return "Gateway Timeout";
		default:
			return "Error";
	}
}

/* The throttler's headers carry the class of the request as a suffix. */
static void
throttle_headers(EmuRequest *request)
{
	const char *suffix = request->operation == EMU_OP_CREATE ? "sandbox-create"
	                     : request->operation == EMU_OP_DELETE ||
	                             request->operation == EMU_OP_START ||
	                             request->operation == EMU_OP_STOP
	                         ? "sandbox-lifecycle"
	                         : "authenticated";
	static const char *const headers[][2] = {
	    {"X-RateLimit-Limit", "300"},
	    {"X-RateLimit-Remaining", "0"},
	    {"X-RateLimit-Reset", "1"},
	    {"Retry-After", "1"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
	{
		char name[64];

		snprintf(name, sizeof(name), "%s-%s", headers[i][0], suffix);
		emu_answer_header(request, name, headers[i][1]);
	}
}

/* An error of either plane; the toolbox has a format of its own. */
void
daytona_refuse(EmuRequest *request, int status, const char *message)
{
	EmuText body = {0};

	if (strncmp(request->path, DAYTONA_TOOLBOX, strlen(DAYTONA_TOOLBOX)) == 0)
	{
		daytona_toolbox_refuse(request, status, NULL, message);
		return;
	}
	emu_text_add(&body, "{");
	emu_json_member(&body, "path", request->path + strlen("/daytona"));
	emu_json_member_time(&body, "timestamp", emu_wall_ms());
	emu_json_member_integer(&body, "statusCode", status);
	emu_json_member(&body, "error", status_name(status));
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
	if (status == 429)
		throttle_headers(request);
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
daytona_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		emu_refuse_format(request, 400, "the body is not a JSON object: %s",
		                  problem.data);
	emu_text_free(&problem);
	return body;
}

/*
 * Classification
 */

static EmuOperation
classify_control(const char *method, const char *path)
{
	EmuPath parts;
	EmuOperation operation = EMU_OP_OTHER;
	bool is_get = strcmp(method, "GET") == 0;
	bool is_post = strcmp(method, "POST") == 0;

	emu_path_split(&parts, path);
	if (parts.count >= 1 && strcmp(parts.segments[0], "sandbox") == 0)
	{
		if (parts.count == 1)
			operation = is_post ? EMU_OP_CREATE : is_get ? EMU_OP_LIST : EMU_OP_OTHER;
		else if (parts.count == 2)
			operation = is_get                          ? EMU_OP_GET
			            : strcmp(method, "DELETE") == 0 ? EMU_OP_DELETE
			                                            : EMU_OP_OTHER;
		else if (parts.count == 3 && is_post)
			operation = strcmp(parts.segments[2], "start") == 0  ? EMU_OP_START
			            : strcmp(parts.segments[2], "stop") == 0 ? EMU_OP_STOP
			                                                     : EMU_OP_OTHER;
	}
	emu_path_free(&parts);
	return operation;
}

static bool
body_asks_for_async(EmuRequest *request)
{
	json_t *body =
	    request->body.length > 0
	        ? json_loadb(request->body.data, request->body.length, JSON_ALLOW_NUL, NULL)
	        : NULL;
	bool is_async = json_is_true(json_object_get(body, "runAsync")) ||
	                json_is_true(json_object_get(body, "async"));

	json_decref(body);
	return is_async;
}

/* The last part of the path tells; the part before it may be any id. */
static EmuOperation
classify_toolbox(EmuRequest *request, const char *path)
{
	EmuPath parts;
	EmuOperation operation = EMU_OP_OTHER;
	const char *last;

	emu_path_split(&parts, path);
	last = parts.count > 0 && parts.count <= EMU_PATH_SEGMENTS
	           ? parts.segments[parts.count - 1]
	           : "";
	if (parts.count == 3 && strcmp(last, "execute") == 0)
		operation = EMU_OP_RUN;
	else if (parts.count == 5 && strcmp(last, "exec") == 0)
		operation = body_asks_for_async(request) ? EMU_OP_START : EMU_OP_RUN;
	else if (parts.count == 6 && strcmp(request->method, "GET") == 0)
		operation = EMU_OP_STATUS;
	else if (parts.count == 7 && strcmp(last, "logs") == 0)
		operation = EMU_OP_LOGS;
	else if (parts.count == 4 && strcmp(request->method, "DELETE") == 0)
		operation = EMU_OP_STOP;
	else if (parts.count == 3 && strstr(last, "upload") != NULL)
		operation = EMU_OP_UPLOAD;
	else if (parts.count == 3 && strstr(last, "download") != NULL)
		operation = EMU_OP_DOWNLOAD;
	emu_path_free(&parts);
	return operation;
}

static EmuOperation
daytona_classify(EmuRequest *request)
{
	const char *rest = emu_path_below(request->path, DAYTONA_API);

	if (rest != NULL)
		return classify_control(request->method, rest);
	rest = emu_path_below(request->path, DAYTONA_TOOLBOX);
	return rest != NULL ? classify_toolbox(request, rest) : EMU_OP_OTHER;
}

/* Unknown addresses get the dashboard, as a page and with status 200. */
static void
answer_dashboard(EmuRequest *request)
{
	EmuText page = {0};

	emu_text_add(&page, "<!doctype html><html><head><title>Daytona</title></head>"
	                    "<body><div id=\"root\"></div></body></html>\n");
	emu_answer(request, 200, "text/html; charset=utf-8", &page);
}

static void
daytona_handle(EmuRequest *request)
{
	if (emu_path_below(request->path, DAYTONA_API) != NULL)
		daytona_control_handle(request);
	else if (emu_path_below(request->path, DAYTONA_TOOLBOX) != NULL)
		daytona_toolbox_handle(request);
	else
		answer_dashboard(request);
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &daytona_config.hold_create},
    {.name = "startDelayMs", .number = &daytona_config.start_delay},
    {.name = "stopDelayMs", .number = &daytona_config.stop_delay},
    {.name = "deleteConflictMs", .number = &daytona_config.delete_conflict},
    {.name = "slowDestroyMs", .number = &daytona_config.slow_destroy},
    {.name = "listLagMs", .number = &daytona_config.list_lag},
    {.name = "minuteMs", .number = &daytona_config.minute, .initial = MINUTE_MS},
    {.name = "startError", .text = &daytona_config.start_error},
};

const EmuProvider emu_daytona = {
    .name = "daytona",
    .prefixes = {"/daytona/"},
    .classify = daytona_classify,
    .handle = daytona_handle,
    .refuse = daytona_refuse,
    .release = daytona_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .quota = &daytona_quota,
};
