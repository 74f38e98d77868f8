/*
 * microsandbox.c
 *		The stand-in for hosted Microsandbox: which request goes where, errors,
 *		settings.
 *
 * Sandboxes come and go over HTTP.  Commands and files go over a WebSocket to
 * the agent inside, which has a protocol of its own.
 */
#include "microsandbox.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND_MS      1000
#define CPU_MAXIMUM    16
#define MEMORY_MAXIMUM 65536
#define DISK_MAXIMUM   262144

MicrosandboxConfig microsandbox_config = {
    .second = SECOND_MS,
    .sandbox_maximum = -1,
    .cpu_maximum = CPU_MAXIMUM,
    .memory_maximum = MEMORY_MAXIMUM,
    .disk_maximum = DISK_MAXIMUM,
    .wait_maximum = -1,
};
EmuQuota microsandbox_quota = EMU_NO_QUOTA;

/*
 * Errors
 */

void
microsandbox_fail(EmuRequest *request, int status, const char *code,
                  const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"error\":{");
	emu_json_member(&body, "code", code);
	emu_json_member(&body, "message", message);
	emu_json_member_raw(&body, "details", "null");
	emu_text_add(&body, "}}");
	emu_answer_json(request, status, &body);
}

void
microsandbox_invalid(EmuRequest *request, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	microsandbox_fail(request, 400, "invalid_request", message);
}

void
microsandbox_not_found(EmuRequest *request)
{
	microsandbox_fail(request, 404, "sandbox_not_found", "resource not found");
}

void
microsandbox_refuse(EmuRequest *request, int status, const char *message)
{
	static const struct
	{
		int status;
		const char *code;
	} codes[] = {
	    {400, "invalid_request"},
	    {401, "invalid_api_key"},
	    {403, "forbidden"},
	    {404, "sandbox_not_found"},
	    {409, "invalid_state_transition"},
	    {413, "invalid_request"},
	    {429, "rate_limited"},
	    {502, "orchestrator_unreachable"},
	};

	if (status == 409 && request->operation == EMU_OP_CREATE)
	{
		microsandbox_fail(request, status, "name_already_exists", message);
		return;
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
		{
			microsandbox_fail(request, status, codes[i].code, message);
			return;
		}
	microsandbox_fail(request, status, "internal_error", message);
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
microsandbox_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		microsandbox_invalid(request, "the body must be a JSON object: %s",
		                     problem.data);
	emu_text_free(&problem);
	return body;
}

/*
 * Classification
 */

static EmuOperation
classify_action(const char *method, const char *action)
{
	static const struct
	{
		const char *method;
		const char *action;
		EmuOperation operation;
	} actions[] = {
	    {"GET", "", EMU_OP_GET},         {"DELETE", "", EMU_OP_DELETE},
	    {"POST", "start", EMU_OP_START}, {"POST", "stop", EMU_OP_STOP},
	    {"GET", "agent", EMU_OP_RUN},    {"GET", "logs", EMU_OP_LOGS},
	};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(method, actions[i].method) == 0 &&
		    strcmp(action, actions[i].action) == 0)
			return actions[i].operation;
	return EMU_OP_OTHER;
}

static EmuOperation
classify_path(const char *method, const EmuPath *path)
{
	size_t names = path->count > 2 && strcmp(path->segments[2], "by-name") == 0 ? 4 : 3;

	if (path->count < 2 || path->count > names + 1 ||
	    strcmp(path->segments[0], "v1") != 0 ||
	    strcmp(path->segments[1], "sandboxes") != 0)
		return EMU_OP_OTHER;
	if (path->count == 2)
		return strcmp(method, "GET") == 0    ? EMU_OP_LIST
		       : strcmp(method, "POST") == 0 ? EMU_OP_CREATE
		                                     : EMU_OP_OTHER;
	if (path->count < names)
		return EMU_OP_OTHER;
	return classify_action(method, path->count > names ? path->segments[names] : "");
}

static EmuOperation
microsandbox_classify(EmuRequest *request)
{
	EmuOperation operation;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(MICROSANDBOX_API "/"));
	operation = classify_path(request->method, &path);
	emu_path_free(&path);
	return operation;
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &microsandbox_config.hold_create},
    {.name = "startDelayMs", .number = &microsandbox_config.start_delay},
    {.name = "stopDelayMs", .number = &microsandbox_config.stop_delay},
    {.name = "slowDestroyMs", .number = &microsandbox_config.slow_destroy},
    {.name = "listLagMs", .number = &microsandbox_config.list_lag},
    {.name = "secondMs",
     .number = &microsandbox_config.second,
     .initial = SECOND_MS,
     .least = 1},
    {.name = "sandboxMaximum",
     .number = &microsandbox_config.sandbox_maximum,
     .initial = -1,
     .least = -1},
    {.name = "cpuMaximum",
     .number = &microsandbox_config.cpu_maximum,
     .initial = CPU_MAXIMUM},
    {.name = "memoryMaximum",
     .number = &microsandbox_config.memory_maximum,
     .initial = MEMORY_MAXIMUM},
    {.name = "diskMaximum",
     .number = &microsandbox_config.disk_maximum,
     .initial = DISK_MAXIMUM},
    {.name = "waitMaximum",
     .number = &microsandbox_config.wait_maximum,
     .initial = -1,
     .least = -1},
    {.name = "hideSpec", .flag = &microsandbox_config.hide_spec},
    {.name = "forgetEnvironment", .flag = &microsandbox_config.forget_environment},
    {.name = "startError", .text = &microsandbox_config.start_error},
    {.name = "messageBytes", .number = &microsandbox_config.message_bytes},
    {.name = "fragmentBytes", .number = &microsandbox_config.fragment_bytes},
    {.name = "segmentBytes", .number = &microsandbox_config.segment_bytes},
    {.name = "coalesce", .flag = &microsandbox_config.coalesce},
    {.name = "ping", .flag = &microsandbox_config.ping},
};

const EmuProvider emu_microsandbox = {
    .name = "microsandbox",
    .prefixes = {MICROSANDBOX_API "/"},
    .classify = microsandbox_classify,
    .handle = microsandbox_control_handle,
    .refuse = microsandbox_refuse,
    .release = microsandbox_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .quota = &microsandbox_quota,
};
