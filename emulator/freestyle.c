/*
 * freestyle.c
 *		The stand-in for Freestyle's VMs (API v5): errors, operations, settings.
 */
#include "freestyle.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

#define PAGE_SIZE           100
#define RESULT_RETENTION_MS 600000
#define STORED_LIMIT        (16 << 20)
#define NOT_SET             (-1)

FreestyleConfig freestyle_config = {
    .create_status = 200,
    .page_size = PAGE_SIZE,
    .default_idle = NOT_SET,
    .auto_delete_cap = NOT_SET,
    .background_after = NOT_SET,
    .result_retention = RESULT_RETENTION_MS,
    .stored_limit = STORED_LIMIT,
};
EmuQuota freestyle_quota = EMU_NO_QUOTA;

/*
 * Errors
 */

void
freestyle_fail(EmuRequest *request, int status, const char *code, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "code", code);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

static const char *
code_of(int status)
{
	static const struct
	{
		int status;
		const char *code;
	} codes[] = {
	    {400, "BAD_REQUEST"},  {401, "INVALID_API_KEY"}, {403, "FORBIDDEN"},
	    {404, "NOT_FOUND"},    {409, "CONFLICT"},        {413, "PAYLOAD_TOO_LARGE"},
	    {429, "RATE_LIMITED"}, {503, "UNAVAILABLE"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status >= 500 ? "INTERNAL_ERROR" : "BAD_REQUEST";
}

/* A rate limit says when to come again; a spent allowance, answered elsewhere, not. */
void
freestyle_refuse(EmuRequest *request, int status, const char *message)
{
	freestyle_fail(request, status, code_of(status), message);
	if (status == 429)
		emu_answer_header(request, "Retry-After", "1");
}

void
freestyle_invalid(EmuRequest *request, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	freestyle_refuse(request, 400, message);
}

void
freestyle_conflict(EmuRequest *request, const char *message)
{
	freestyle_refuse(request, 409, message);
}

void
freestyle_not_emulated(EmuRequest *request)
{
	freestyle_fail(request, 501, "NOT_EMULATED",
	               "Freestyle has this, the emulator has not");
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
freestyle_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		freestyle_invalid(request, "the body must be a JSON object: %s", problem.data);
	emu_text_free(&problem);
	return body;
}

/*
 * Classification
 */

static EmuOperation
classify_path(const char *method, const char *rest)
{
	/* A star stands for one part of the path. */
	static const struct
	{
		const char *method;
		const char *parts[6];
		EmuOperation operation;
	} operations[] = {
	    {"POST", {"vms"}, EMU_OP_CREATE},
	    {"GET", {"vms"}, EMU_OP_LIST},
	    {"GET", {"vms", "*"}, EMU_OP_GET},
	    {"DELETE", {"vms", "*"}, EMU_OP_DELETE},
	    {"POST", {"vms", "*", "exec-await"}, EMU_OP_RUN},
	    {"POST", {"vms", "*", "start"}, EMU_OP_START},
	    {"POST", {"vms", "*", "pause"}, EMU_OP_STOP},
	    {"PUT", {"vms", "*", "fs", "write"}, EMU_OP_UPLOAD},
	    {"GET", {"vms", "*", "fs", "read"}, EMU_OP_DOWNLOAD},
	    {"POST", {"vms", "*", "fs", "uploads"}, EMU_OP_UPLOAD},
	    {"PUT", {"vms", "*", "fs", "uploads", "*"}, EMU_OP_UPLOAD},
	    {"GET", {"vms", "*", "fs", "uploads", "*"}, EMU_OP_UPLOAD},
	    {"DELETE", {"vms", "*", "fs", "uploads", "*"}, EMU_OP_UPLOAD},
	    {"POST", {"vms", "*", "fs", "uploads", "*", "commit"}, EMU_OP_UPLOAD},
	    {"GET", {"background-requests", "*"}, EMU_OP_STATUS},
	};
	EmuPath path;
	EmuOperation found = EMU_OP_OTHER;

	emu_path_split(&path, rest);
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
	{
		size_t part = 0;

		while (part < 6 && operations[i].parts[part] != NULL && part < path.count &&
		       (*operations[i].parts[part] == '*' ||
		        strcmp(operations[i].parts[part], path.segments[part]) == 0))
			part++;
		if (part == path.count && (part == 6 || operations[i].parts[part] == NULL) &&
		    strcmp(operations[i].method, method) == 0)
			found = operations[i].operation;
	}
	emu_path_free(&path);
	return found;
}

static EmuOperation
freestyle_classify(EmuRequest *request)
{
	const char *rest = emu_path_below(request->path, FREESTYLE_API "/v5");

	return rest != NULL ? classify_path(request->method, rest) : EMU_OP_OTHER;
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &freestyle_config.hold_create},
    {.name = "startDelayMs", .number = &freestyle_config.start_delay},
    {.name = "pauseDelayMs", .number = &freestyle_config.pause_delay},
    {.name = "slowDestroyMs", .number = &freestyle_config.slow_destroy},
    {.name = "listLagMs", .number = &freestyle_config.list_lag},
    {.name = "surfaceDelayMs", .number = &freestyle_config.surface_delay},
    {.name = "createStatus",
     .number = &freestyle_config.create_status,
     .initial = 200,
     .least = 200},
    {.name = "pageSize",
     .number = &freestyle_config.page_size,
     .initial = PAGE_SIZE,
     .least = 1},
    {.name = "defaultIdleSeconds",
     .number = &freestyle_config.default_idle,
     .initial = NOT_SET,
     .least = NOT_SET},
    {.name = "autoDeleteCapSeconds",
     .number = &freestyle_config.auto_delete_cap,
     .initial = NOT_SET,
     .least = NOT_SET},
    {.name = "backgroundAfterMs",
     .number = &freestyle_config.background_after,
     .initial = NOT_SET,
     .least = NOT_SET},
    {.name = "backgroundRunMs", .number = &freestyle_config.background_run},
    {.name = "backgroundOperations", .text = &freestyle_config.background_operations},
    {.name = "locators", .text = &freestyle_config.locators},
    {.name = "resultOrigin", .text = &freestyle_config.result_origin},
    {.name = "hideRequestId", .flag = &freestyle_config.hide_request_id},
    {.name = "resultRetentionMs",
     .number = &freestyle_config.result_retention,
     .initial = RESULT_RETENTION_MS},
    {.name = "storedLimitBytes",
     .number = &freestyle_config.stored_limit,
     .initial = STORED_LIMIT},
    {.name = "storedStatus", .number = &freestyle_config.stored_status},
    {.name = "storedCode", .text = &freestyle_config.stored_code},
    {.name = "allowanceSpent", .flag = &freestyle_config.allowance_spent},
    {.name = "blocked", .flag = &freestyle_config.blocked},
    {.name = "oldAgent", .flag = &freestyle_config.old_agent},
    {.name = "lateRules", .flag = &freestyle_config.late_rules},
    {.name = "strictParents", .flag = &freestyle_config.strict_parents},
};

const EmuProvider emu_freestyle = {
    .name = "freestyle",
    .prefixes = {FREESTYLE_API "/", NULL},
    .classify = freestyle_classify,
    .handle = freestyle_route,
    .refuse = freestyle_refuse,
    .make_id = freestyle_make_id,
    .release = freestyle_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .reset = freestyle_calls_clear,
    .quota = &freestyle_quota,
};
