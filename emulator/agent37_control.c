/*
 * agent37_control.c
 *		Agent37's hosting plane, except create and exec.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

#define TAIL_DEFAULT 500
#define TAIL_MAXIMUM 2000

static void
not_found(EmuRequest *request, const char *message)
{
	agent37_fail(request, 404, "not_found", message);
}

static void
try_again(EmuRequest *request)
{
	agent37_fail(request, 409, "try_again", "the instance is changing its state");
}

static void
list(EmuRequest *request, EmuAccount *account)
{
	size_t count;
	EmuSandbox **listed = emu_account_listed(account, agent37_config.list_lag, &count);
	EmuText body = {0};

	emu_text_add(&body, "{\"data\":[");
	for (size_t i = 0; i < count; i++)
	{
		if (i > 0)
			emu_text_add(&body, ",");
		agent37_write(&body, request, listed[i], agent37_shown_state(listed[i]));
	}
	emu_text_add(&body, "]}");
	emu_answer_json(request, 200, &body);
	free(listed);
}

static void
answer_instance(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	agent37_write(&body, request, sandbox, agent37_shown_state(sandbox));
	emu_answer_json(request, 200, &body);
}

static void
delete_instance(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	if (agent37_changing(agent37_details(sandbox)))
	{
		try_again(request);
		return;
	}
	emu_text_add(&body, "{");
	emu_json_member(&body, "id", sandbox->id);
	emu_json_member_raw(&body, "deleted", "true");
	emu_text_add(&body, "}");
	agent37_destroy(sandbox);
	emu_answer_json(request, 200, &body);
	request->answer.hold_ms = agent37_config.slow_destroy;
}

/*
 * Changes of state.  The answer has the state that will be.
 */

static void
start(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);

	if (agent37_changing(details))
		try_again(request);
	else if (details->state == AGENT37_FAILED)
		agent37_invalid(request, "an instance that failed cannot be started");
	else if (agent37_config.past_due)
		agent37_no_money(request);
	else if (details->state != AGENT37_RUNNING && !agent37_fits_again(sandbox))
		agent37_fail(request, 409, "capacity_unavailable",
		             "no host has room for this instance");
	else
	{
		if (details->state != AGENT37_RUNNING)
			agent37_power_on(sandbox);
		agent37_answer_state(request, sandbox, AGENT37_RUNNING);
	}
}

static void
stop(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);
	bool running = details->state == AGENT37_RUNNING;

	if (details->state == AGENT37_STOPPING ||
	    (running && emu_clock_ms() < details->checkpoint_until))
		try_again(request);
	else if (!running && details->state != AGENT37_SLEEPING &&
	         details->state != AGENT37_STOPPED)
		agent37_invalid(request, "the instance is not running");
	else
	{
		if (details->state != AGENT37_STOPPED)
			agent37_stop(sandbox);
		agent37_answer_state(request, sandbox, AGENT37_STOPPED);
	}
}

static void
restart(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);

	if (agent37_changing(details))
		try_again(request);
	else if (details->state != AGENT37_RUNNING)
		agent37_invalid(request, "the instance is not running");
	else
	{
		agent37_restart(sandbox);
		agent37_answer_state(request, sandbox, AGENT37_RESTARTING);
	}
}

/*
 * PATCH
 */

static void
change_text(char **place, const json_t *value)
{
	if (value == NULL)
		return;
	free(*place);
	*place = json_is_string(value) ? emu_strdup(json_string_value(value)) : NULL;
}

/* What was there before is gone, nothing is merged. */
static void
change_metadata(EmuSandbox *sandbox, const json_t *value)
{
	if (value == NULL)
		return;
	agent37_details(sandbox)->has_metadata = json_is_object(value);
	free(sandbox->labels);
	sandbox->labels =
	    json_is_object(value) ? json_dumps(value, JSON_COMPACT) : emu_strdup("{}");
}

static void
change_from(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	Agent37Details *details = agent37_details(sandbox);
	const json_t *auto_sleep = json_object_get(body, "auto_sleep");
	const json_t *idle = json_object_get(body, "idle_timeout_seconds");
	bool sleeps = auto_sleep != NULL ? json_is_true(auto_sleep) : details->auto_sleep;

	if (idle != NULL && !sleeps)
	{
		agent37_invalid(request, "idle_timeout_seconds needs auto_sleep");
		return;
	}
	change_text(&details->user, json_object_get(body, "user"));
	change_text(&details->name, json_object_get(body, "name"));
	change_metadata(sandbox, json_object_get(body, "metadata"));
	details->auto_sleep = sleeps;
	if (idle != NULL)
		details->idle_timeout = json_integer_value(idle);
	agent37_touch(sandbox);
	answer_instance(request, sandbox);
}

static void
change(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = agent37_body(request);

	if (body != NULL && agent37_check_change(request, body))
		change_from(request, sandbox, body);
	json_decref(body);
}

/*
 * The console of the container; what commands write does not go there
 */

/* Where the last so many lines begin. */
static const char *
last_lines(const EmuText *text, long count)
{
	const char *place = text->data + text->length;

	if (text->length == 0)
		return "";
	for (place--; place > text->data; place--)
		if (place[-1] == '\n' && --count == 0)
			break;
	return place;
}

static void
write_health(EmuText *text, const Agent37Details *details)
{
	bool running = details->state == AGENT37_RUNNING;

	emu_json_key(text, "health");
	if (details->state == AGENT37_PROVISIONING || details->state == AGENT37_FAILED)
	{
		emu_text_add(text, "null");
		return;
	}
	emu_text_add(text, "{");
	emu_json_member_raw(text, "running", running ? "true" : "false");
	emu_json_member_integer(text, "restart_count", details->restarts);
	emu_json_member_raw(text, "exit_code", running ? "null" : "0");
	emu_json_member_raw(text, "oom_suspected", "false");
	emu_json_member_raw(text, "resource_verdict",
	                    "{\"memory\":\"healthy\",\"cpu\":\"healthy\","
	                    "\"disk\":\"healthy\",\"overall\":\"healthy\"}");
	emu_text_add(text, "}");
}

static void
logs(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);
	char *given = emu_request_parameter(request, "tail");
	char *end = NULL;
	long tail = given != NULL ? strtol(given, &end, 10) : TAIL_DEFAULT;
	EmuText body = {0};

	if (given != NULL &&
	    (*given == '\0' || *end != '\0' || tail < 1 || tail > TAIL_MAXIMUM))
		agent37_invalid(request, "tail must be between 1 and %d", TAIL_MAXIMUM);
	else
	{
		emu_text_add(&body, "{");
		emu_json_member(&body, "logs", last_lines(&details->console, tail));
		emu_json_member_raw(&body, "truncated", "false");
		write_health(&body, details);
		emu_json_member_integer(&body, "fetched_at", emu_wall_ms() / 1000);
		emu_text_add(&body, "}");
		emu_answer_json(request, 200, &body);
	}
	free(given);
}

static void
not_emulated(EmuRequest *request, EmuSandbox *sandbox)
{
	(void) sandbox;
	agent37_not_emulated(request);
}

/*
 * Routing
 */

/* `action` is "" for the instance itself. */
static void
handle_instance(EmuRequest *request, EmuAccount *account, const char *id,
                const char *action)
{
	static const struct
	{
		const char *method;
		const char *action;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	} routes[] = {
	    {"GET", "", answer_instance},
	    {"DELETE", "", delete_instance},
	    {"PATCH", "", change},
	    {"POST", "exec", agent37_exec},
	    {"POST", "start", start},
	    {"POST", "stop", stop},
	    {"POST", "restart", restart},
	    {"GET", "logs", logs},
	    {"POST", "update", not_emulated},
	    {"POST", "resize", not_emulated},
	    {"POST", "signed-url", not_emulated},
	    {"POST", "public-ports", not_emulated},
	};
	EmuSandbox *sandbox = agent37_find(account, id);

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].method, request->method) == 0 &&
		    strcmp(routes[i].action, action) == 0)
		{
			if (sandbox == NULL)
				not_found(request, "no such instance");
			else
				routes[i].handle(request, sandbox);
			return;
		}
	not_found(request, "no such path");
}

static void
route(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	if (path->count < 2 || path->count > 4 || strcmp(path->segments[0], "v1") != 0 ||
	    strcmp(path->segments[1], "instances") != 0)
		not_found(request, "no such path");
	else if (request->operation == EMU_OP_CREATE)
		agent37_create(request, account);
	else if (request->operation == EMU_OP_LIST)
		list(request, account);
	else if (path->count == 2)
		not_found(request, "no such path");
	else
		handle_instance(request, account, path->segments[2],
		                path->count == 4 ? path->segments[3] : "");
}

/* A key that may only be used from elsewhere is told where it was used. */
static void
refuse_key(EmuRequest *request, int status)
{
	agent37_refuse(request, status,
	               status == 401   ? "the API key is missing or not valid"
	               : status == 403 ? "this key may not be used from 127.0.0.1"
	                               : "too many requests");
}

/*
 * Keys that are to be refused are refused before anything else about the
 * request is looked at.
 */
void
agent37_control_handle(EmuRequest *request)
{
	const char *key = emu_request_bearer(request);
	int refusal = key != NULL ? emu_key_refusal(key) : 401;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(AGENT37_API "/"));
	if (refusal != EMU_KEY_ACCEPTED)
		refuse_key(request, refusal);
	else
		route(request, emu_account(&emu_agent37, key), &path);
	emu_path_free(&path);
}
