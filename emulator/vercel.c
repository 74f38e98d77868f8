/*
 * vercel.c
 *		The stand-in for Vercel Sandbox: its errors and its settings.
 *
 * A sandbox has a name, and under it one session after the other: each is one
 * run of the machine.  Commands and files belong to a session.
 */
#include "vercel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

void
vercel_refuse_format(EmuRequest *request, int status, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	vercel_refuse(request, status, message);
}

/* Answers 400 itself and returns NULL if there is no JSON object. */
json_t *
vercel_body(EmuRequest *request)
{
	json_error_t error;
	json_t *body;

	if (request->body.length == 0)
		return json_object();
	body = json_loadb(request->body.data, request->body.length, JSON_ALLOW_NUL, &error);
	if (json_is_object(body))
		return body;
	vercel_refuse_format(request, 400, "Invalid JSON: %s",
	                     body == NULL ? error.text : "the body is not an object");
	json_decref(body);
	return NULL;
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

static const struct
{
	const char *name;
	int64_t *number;
	bool *flag;
} settings[] = {
    {"delayMs", &vercel_config.hold_create, NULL},
    {"startDelayMs", &vercel_config.start_delay, NULL},
    {"stopDelayMs", &vercel_config.stop_delay, NULL},
    {"deleteDelayMs", &vercel_config.delete_delay, NULL},
    {"slowDestroyMs", &vercel_config.slow_destroy, NULL},
    {"listLagMs", &vercel_config.list_lag, NULL},
    {"maximumTimeoutMs", &vercel_config.maximum_timeout, NULL},
    {"startFails", NULL, &vercel_config.start_fails},
    {"hideSizes", NULL, &vercel_config.hide_sizes},
};

static bool
vercel_config_set(const char *name, const json_t *value)
{
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
	{
		if (strcmp(name, settings[i].name) != 0)
			continue;
		if (settings[i].flag != NULL && json_is_boolean(value))
			*settings[i].flag = json_is_true(value);
		else if (settings[i].number != NULL && json_is_integer(value) &&
		         json_integer_value(value) >= 0)
			*settings[i].number = json_integer_value(value);
		else
			return false;
		return true;
	}
	return false;
}

static void
vercel_config_reset(void)
{
	vercel_config = (VercelConfig){.maximum_timeout = DAY_MS};
}

static void
vercel_config_show(EmuText *text)
{
	emu_text_add(text, "{");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		if (settings[i].number != NULL)
			emu_json_member_integer(text, settings[i].name, *settings[i].number);
		else
			emu_json_member_raw(text, settings[i].name,
			                    *settings[i].flag ? "true" : "false");
	emu_text_add(text, "}");
}

const EmuProvider emu_vercel = {
    .name = "vercel",
    .prefixes = {VERCEL_API "/", NULL},
    .classify = vercel_classify,
    .handle = vercel_handle,
    .refuse = vercel_refuse,
    .release = vercel_release,
    .config_set = vercel_config_set,
    .config_reset = vercel_config_reset,
    .config_show = vercel_config_show,
    .quota = &vercel_quota,
};
