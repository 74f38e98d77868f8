/*
 * vercel.c
 *		The stand-in for Vercel Sandbox: its errors and its settings.
 *
 * A sandbox has a name, and under it one session after the other: each is one
 * run of the machine.  Commands and files belong to a session.
 */
#include "vercel.h"

#include <string.h>

#define DAY_MS (24 * 3600 * INT64_C(1000))

VercelConfig vercel_config = {.maximum_timeout = DAY_MS};
EmuQuota vercel_quota = EMU_NO_QUOTA;

/*
 * Errors
 */

static const char *
code_of_status(int status)
{
	static const struct
	{
		int status;
		const char *code;
	} codes[] = {
	    {400, "bad_request"},     {401, "unauthorized"},     {402, "payment_required"},
	    {403, "forbidden"},       {404, "not_found"},        {409, "conflict"},
	    {410, "sandbox_stopped"}, {422, "sandbox_stopping"}, {429, "rate_limited"},
	    {501, "not_implemented"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].status == status)
			return codes[i].code;
	return status >= 500 ? "internal_server_error" : "bad_request";
}

void
vercel_refuse_as(EmuRequest *request, int status, const char *code, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"error\":{");
	emu_json_member(&body, "code", code);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}}");
	emu_answer_json(request, status, &body);
}

/* A rate limit says when to come again; a quota, answered elsewhere, does not. */
void
vercel_refuse(EmuRequest *request, int status, const char *message)
{
	vercel_refuse_as(request, status, code_of_status(status), message);
	if (status == 429)
		emu_answer_header(request, "Retry-After", "1");
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
vercel_body(EmuRequest *request)
{
	EmuText problem = {0};
	json_t *body = emu_request_object(request, &problem);

	if (body == NULL)
		emu_refuse_format(request, 400, "Invalid JSON: %s", problem.data);
	emu_text_free(&problem);
	return body;
}

/* The prefix, and 28 letters or digits. */
void
vercel_make_id(char *buffer, const char *prefix)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t word = 0;
	size_t length = strlen(prefix);

	memcpy(buffer, prefix, length);
	for (int i = 0; i < 28; i++, word /= 62)
	{
		if (i % 10 == 0)
			word = emu_random();
		buffer[length++] = letters[word % 62];
	}
	buffer[length] = '\0';
}

/*
 * Settings
 */

static const EmuSetting settings[] = {
    {.name = "delayMs", .number = &vercel_config.hold_create},
    {.name = "startDelayMs", .number = &vercel_config.start_delay},
    {.name = "stopDelayMs", .number = &vercel_config.stop_delay},
    {.name = "deleteDelayMs", .number = &vercel_config.delete_delay},
    {.name = "slowDestroyMs", .number = &vercel_config.slow_destroy},
    {.name = "listLagMs", .number = &vercel_config.list_lag},
    {.name = "maximumTimeoutMs",
     .number = &vercel_config.maximum_timeout,
     .initial = DAY_MS},
    {.name = "startFails", .flag = &vercel_config.start_fails},
    {.name = "hideSizes", .flag = &vercel_config.hide_sizes},
};

const EmuProvider emu_vercel = {
    .name = "vercel",
    .prefixes = {VERCEL_API "/", NULL},
    .classify = vercel_classify,
    .handle = vercel_handle,
    .refuse = vercel_refuse,
    .release = vercel_release,
    .settings = settings,
    .setting_count = sizeof(settings) / sizeof(settings[0]),
    .quota = &vercel_quota,
};
