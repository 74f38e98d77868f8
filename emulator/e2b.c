/*
 * e2b.c
 *		The stand-in for E2B: which request goes where, and its settings.
 *
 * E2B has two planes.  Below /e2b is the control plane, which makes and ends
 * sandboxes.  Below /e2b-envd is envd, the daemon inside each sandbox; which
 * sandbox is meant is told by a header, as at E2B's shared host name.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>

#define DAY_MS            (24 * 3600 * INT64_C(1000))
#define EXIT_RETENTION_MS 30000

E2bConfig e2b_config = {
    .maximum_age = DAY_MS,
    .exit_retention = EXIT_RETENTION_MS,
};
EmuQuota e2b_quota = EMU_NO_QUOTA;

/* A rate limit says when to come again; a quota, answered elsewhere, does not. */
static void
rate_headers(EmuRequest *request)
{
	static const char *const headers[][2] = {
	    {"RateLimit-Limit", "5"},
	    {"RateLimit-Remaining", "0"},
	    {"RateLimit-Reset", "1"},
	    {"Retry-After", "1"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		emu_answer_header(request, headers[i][0], headers[i][1]);
}

/* An error of the control plane, or of the proxy in front of the sandboxes. */
void
e2b_refuse(EmuRequest *request, int status, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	if (emu_path_below(request->path, E2B_ENVD) != NULL)
	{
		const char *id = emu_request_header(request, "E2b-Sandbox-Id");

		emu_json_member(&body, "sandboxId", id != NULL ? id : "");
	}
	emu_json_member_integer(&body, "code", status);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
	if (status == 429)
		rate_headers(request);
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
e2b_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		emu_refuse_format(request, 400, "Error when parsing request: %s", problem.data);
	emu_text_free(&problem);
	return body;
}

/*
 * Classification
 */

static EmuOperation
classify_action(const char *action)
{
	static const struct
	{
		const char *action;
		EmuOperation operation;
	} actions[] = {
	    {"connect", EMU_OP_START},
	    {"resume", EMU_OP_START},
	    {"pause", EMU_OP_STOP},
	};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(action, actions[i].action) == 0)
			return actions[i].operation;
	return EMU_OP_OTHER;
}

static EmuOperation
classify_control(const char *method, const char *path)
{
	EmuPath parts;
	EmuOperation operation = EMU_OP_OTHER;
	bool is_get = strcmp(method, "GET") == 0;
	bool is_post = strcmp(method, "POST") == 0;
	size_t first;

	emu_path_split(&parts, path);
	first = parts.count > 0 && strcmp(parts.segments[0], "v2") == 0 ? 1 : 0;
	if (parts.count > first && parts.count <= first + 3 &&
	    strcmp(parts.segments[first], "sandboxes") == 0)
		switch (parts.count - first)
		{
			case 1:
				operation = is_post  ? EMU_OP_CREATE
				            : is_get ? EMU_OP_LIST
				                     : EMU_OP_OTHER;
				break;
			case 2:
				operation = is_get                          ? EMU_OP_GET
				            : strcmp(method, "DELETE") == 0 ? EMU_OP_DELETE
				                                            : EMU_OP_OTHER;
				break;
			default:
				if (is_post)
					operation = classify_action(parts.segments[first + 2]);
		}
	emu_path_free(&parts);
	return operation;
}

/*
 * A start on the wire looks the same whether its client will stay for the
 * output or leave as soon as the process runs.  Who means to come back has
 * given the process a tag to find it by.
 */
static EmuOperation
classify_start(const EmuRequest *request)
{
	json_t *message = request->body.length > 5
	                      ? json_loadb(request->body.data + 5, request->body.length - 5,
	                                   JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL)
	                      : NULL;
	bool tagged = json_is_string(json_object_get(message, "tag"));

	json_decref(message);
	return tagged ? EMU_OP_START : EMU_OP_RUN;
}

static EmuOperation
classify_envd(EmuRequest *request, const char *path)
{
	static const struct
	{
		const char *path;
		EmuOperation operation;
	} paths[] = {
	    {"process.Process/List", EMU_OP_STATUS},
	    {"process.Process/Connect", EMU_OP_LOGS},
	    {"process.Process/SendSignal", EMU_OP_STOP},
	};

	if (strcmp(path, "process.Process/Start") == 0)
		return classify_start(request);
	if (strcmp(path, "files") == 0)
		return strcmp(request->method, "GET") == 0    ? EMU_OP_DOWNLOAD
		       : strcmp(request->method, "POST") == 0 ? EMU_OP_UPLOAD
		                                              : EMU_OP_OTHER;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (strcmp(path, paths[i].path) == 0)
			return paths[i].operation;
	return EMU_OP_OTHER;
}

static EmuOperation
e2b_classify(EmuRequest *request)
{
	const char *rest = emu_path_below(request->path, E2B_API);

	if (rest != NULL)
		return classify_control(request->method, rest);
	rest = emu_path_below(request->path, E2B_ENVD);
	return rest != NULL ? classify_envd(request, rest) : EMU_OP_OTHER;
}

static void
e2b_handle(EmuRequest *request)
{
	if (emu_path_below(request->path, E2B_ENVD) != NULL)
		e2b_envd_handle(request);
	else
		e2b_control_handle(request);
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &e2b_config.hold_create},
    {.name = "resumeDelayMs", .number = &e2b_config.resume_delay},
    {.name = "slowDestroyMs", .number = &e2b_config.slow_destroy},
    {.name = "listLagMs", .number = &e2b_config.list_lag},
    {.name = "maximumAgeMs", .number = &e2b_config.maximum_age, .initial = DAY_MS},
    {.name = "exitRetentionMs",
     .number = &e2b_config.exit_retention,
     .initial = EXIT_RETENTION_MS},
    {.name = "deadlineAsEnd", .flag = &e2b_config.deadline_as_end},
    {.name = "idempotency", .flag = &e2b_config.idempotency},
    {.name = "domain", .text = &e2b_config.domain},
};

const EmuProvider emu_e2b = {
    .name = "e2b",
    .prefixes = {E2B_API "/", E2B_ENVD "/"},
    .classify = e2b_classify,
    .handle = e2b_handle,
    .refuse = e2b_refuse,
    .make_id = e2b_make_id,
    .release = e2b_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .reset = e2b_idempotency_reset,
    .quota = &e2b_quota,
};
