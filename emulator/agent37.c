/*
 * agent37.c
 *		The stand-in for Agent37: which request goes where, errors, settings.
 *
 * Agent37 has two planes.  Below /agent37 is the hosting plane, which makes and
 * ends instances and runs commands.  Below /agent37-instance/<id> is what the
 * instance itself serves: an edge, which lets requests in and wakes sleepers,
 * and behind it the gateway, which has the files.
 */
#include "agent37.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXEC_LIMIT_MS        280000
#define WAKE_LIMIT_MS        180000
#define IDLE_MINIMUM_SECONDS 60
#define CPU_MAXIMUM          8

Agent37Config agent37_config = {
    .exec_limit = EXEC_LIMIT_MS,
    .wake_limit = WAKE_LIMIT_MS,
    .idle_minimum = IDLE_MINIMUM_SECONDS,
    .cpu_maximum = CPU_MAXIMUM,
};
EmuQuota agent37_quota = EMU_NO_QUOTA;

/*
 * Errors
 */

/* Of the hosting plane. */
void
agent37_fail(EmuRequest *request, int status, const char *code, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"error\":{");
	emu_json_member(&body, "code", code);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}}");
	emu_answer_json(request, status, &body);
	if (status == 429)
		emu_answer_header(request, "Retry-After", "1");
}

void
agent37_invalid(EmuRequest *request, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	agent37_fail(request, 400, "invalid_request", message);
}

/* Of the edge in front of an instance. */
void
agent37_edge_fail(EmuRequest *request, int status, const char *code)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "error", code);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

/* Of the gateway inside. */
void
agent37_gateway_fail(EmuRequest *request, int status, const char *code,
                     const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"error\":{");
	emu_json_member(&body, "code", code);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, ",\"param\":null,\"hint\":null,\"response_id\":null}}");
	emu_answer_json(request, status, &body);
	if (status == 429)
		emu_answer_header(request, "Retry-After", "1");
}

/* The code for each plane; of the instance plane "" where the edge has none. */
static const struct
{
	int status;
	const char *hosting;
	const char *edge;
	const char *gateway;
} codes[] = {
    {400, "invalid_request", "", "validation_error"},
    {401, "invalid_api_key", "invalid_api_key", ""},
    {402, "insufficient_balance", "instance_suspended", ""},
    {403, "ip_not_allowed", "ip_not_allowed", ""},
    {404, "not_found", "not_found", ""},
    {409, "try_again", "", "file_exists"},
    {412, "invalid_request", "", "modified"},
    {413, "payload_too_large", "", "payload_too_large"},
    {429, "rate_limited", "", "rate_limited"},
    {500, "provisioning_failed", "internal_error", ""},
    {502, "provisioning_failed", "container_unavailable", ""},
    {503, "no_capacity", "host_mesh_not_ready", ""},
    {504, "upstream_timeout", "upstream_timeout", ""},
};

void
agent37_refuse(EmuRequest *request, int status, const char *message)
{
	bool inside = emu_path_below(request->path, AGENT37_INSTANCE) != NULL;
	size_t i = 0;

	while (i < sizeof(codes) / sizeof(codes[0]) && codes[i].status != status)
		i++;
	if (i == sizeof(codes) / sizeof(codes[0]))
		agent37_fail(request, status, "internal_error", message);
	else if (inside && *codes[i].edge != '\0')
		agent37_edge_fail(request, status, codes[i].edge);
	else if (inside)
		agent37_gateway_fail(request, status, codes[i].gateway, message);
	else if (status == 409 && request->operation == EMU_OP_CREATE)
		agent37_fail(request, status, "instance_limit_reached", message);
	else
		agent37_fail(request, status, codes[i].hosting, message);
}

void
agent37_no_money(EmuRequest *request)
{
	agent37_fail(request, 402, "insufficient_balance", "the balance is below zero");
}

void
agent37_not_emulated(EmuRequest *request)
{
	agent37_fail(request, 501, "not_emulated",
	             "Agent37 has this, the emulator has not");
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
agent37_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		agent37_invalid(request, "the body must be a JSON object: %s", problem.data);
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
	    {"POST", "exec", EMU_OP_RUN},
	    {"POST", "start", EMU_OP_START},
	    {"POST", "stop", EMU_OP_STOP},
	    {"GET", "logs", EMU_OP_LOGS},
	};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(method, actions[i].method) == 0 &&
		    strcmp(action, actions[i].action) == 0)
			return actions[i].operation;
	return EMU_OP_OTHER;
}

static EmuOperation
classify_control(const char *method, const char *path)
{
	EmuPath parts;
	EmuOperation operation = EMU_OP_OTHER;
	bool is_get = strcmp(method, "GET") == 0;

	emu_path_split(&parts, path);
	if (parts.count >= 2 && parts.count <= 4 && strcmp(parts.segments[0], "v1") == 0 &&
	    strcmp(parts.segments[1], "instances") == 0)
	{
		if (parts.count == 2)
			operation = is_get                        ? EMU_OP_LIST
			            : strcmp(method, "POST") == 0 ? EMU_OP_CREATE
			                                          : EMU_OP_OTHER;
		else if (parts.count == 3)
			operation = is_get                          ? EMU_OP_GET
			            : strcmp(method, "DELETE") == 0 ? EMU_OP_DELETE
			                                            : EMU_OP_OTHER;
		else
			operation = classify_action(method, parts.segments[3]);
	}
	emu_path_free(&parts);
	return operation;
}

/* `path` begins with the id of the instance. */
static EmuOperation
classify_instance(const char *method, const char *path)
{
	const char *slash = strchr(path, '/');

	if (slash == NULL || strcmp(slash, "/v1/files/content") != 0)
		return EMU_OP_OTHER;
	return strcmp(method, "PUT") == 0   ? EMU_OP_UPLOAD
	       : strcmp(method, "GET") == 0 ? EMU_OP_DOWNLOAD
	                                    : EMU_OP_OTHER;
}

static EmuOperation
agent37_classify(EmuRequest *request)
{
	const char *rest = emu_path_below(request->path, AGENT37_API);

	if (rest != NULL)
		return classify_control(request->method, rest);
	rest = emu_path_below(request->path, AGENT37_INSTANCE);
	return rest != NULL ? classify_instance(request->method, rest) : EMU_OP_OTHER;
}

static void
agent37_handle(EmuRequest *request)
{
	if (emu_path_below(request->path, AGENT37_INSTANCE) != NULL)
		agent37_gateway_handle(request);
	else
		agent37_control_handle(request);
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &agent37_config.hold_create},
    {.name = "bootDelayMs", .number = &agent37_config.boot_delay},
    {.name = "startDelayMs", .number = &agent37_config.start_delay},
    {.name = "stopDelayMs", .number = &agent37_config.stop_delay},
    {.name = "checkpointMs", .number = &agent37_config.checkpoint},
    {.name = "slowDestroyMs", .number = &agent37_config.slow_destroy},
    {.name = "listLagMs", .number = &agent37_config.list_lag},
    {.name = "execLimitMs",
     .number = &agent37_config.exec_limit,
     .initial = EXEC_LIMIT_MS,
     .least = 1},
    {.name = "wakeLimitMs",
     .number = &agent37_config.wake_limit,
     .initial = WAKE_LIMIT_MS,
     .least = 1},
    {.name = "idleMinimumSeconds",
     .number = &agent37_config.idle_minimum,
     .initial = IDLE_MINIMUM_SECONDS,
     .least = 1},
    {.name = "cpuMaximum",
     .number = &agent37_config.cpu_maximum,
     .initial = CPU_MAXIMUM},
    {.name = "pastDue", .flag = &agent37_config.past_due},
    {.name = "startError", .text = &agent37_config.start_error},
};

const EmuProvider emu_agent37 = {
    .name = "agent37",
    .prefixes = {AGENT37_API "/", AGENT37_INSTANCE "/"},
    .classify = agent37_classify,
    .handle = agent37_handle,
    .refuse = agent37_refuse,
    .make_id = agent37_make_id,
    .release = agent37_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .quota = &agent37_quota,
};
