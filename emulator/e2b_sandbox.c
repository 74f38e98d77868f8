/*
 * e2b_sandbox.c
 *		States of an E2B sandbox, its lifetime, and how it is shown.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>

#define CLIENT_ID    "6532622b"
#define ENVD_VERSION "0.6.13"

E2bSandbox *
e2b_details(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

/* "i" and twenty letters or digits. */
void
e2b_make_id(char *buffer)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t words[2] = {emu_random(), emu_random()};

	buffer[0] = 'i';
	for (int i = 0; i < 20; i++)
	{
		buffer[i + 1] = letters[words[i / 10] % 36];
		words[i / 10] /= 36;
	}
	buffer[21] = '\0';
}

void
e2b_make_token(char *buffer)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = 0; i < E2B_TOKEN_SIZE - 1; i += 16)
	{
		uint64_t word = emu_random();

		for (int j = 0; j < 16; j++, word >>= 4)
			buffer[i + j] = hex[word & 15];
	}
	buffer[E2B_TOKEN_SIZE - 1] = '\0';
}

/*
 * Ids were followed by "-" and the client id once, and may still be.  What is
 * still being started is not there for anybody.
 */
EmuSandbox *
e2b_find(const EmuAccount *account, const char *id)
{
	char *plain = emu_strndup(id, strcspn(id, "-"));
	EmuSandbox *sandbox = emu_sandbox_by_id(account, plain);

	free(plain);
	if (sandbox == NULL || sandbox->account->provider != &emu_e2b)
		return NULL;
	return e2b_details(sandbox)->state != E2B_STARTING ? sandbox : NULL;
}

/*
 * Showing
 */

bool
e2b_shown_running(const EmuSandbox *sandbox)
{
	const E2bSandbox *details = e2b_details(sandbox);

	return (sandbox->alive ? details->state : details->state_before_end) == E2B_RUNNING;
}

static void
write_network(EmuText *text, const E2bSandbox *details)
{
	json_t *shown;
	json_t *proxy;
	char *json;

	if (details->network == NULL)
		return;
	shown = json_deep_copy(details->network);
	proxy = json_object_get(shown, "egressProxy");
	if (json_is_object(proxy))
		json_object_del(proxy, "password");
	json = json_dumps(shown, JSON_COMPACT);
	emu_json_member_raw(text, "network", json);
	free(json);
	json_decref(shown);
}

/* What a get has and a list has not. */
static void
write_more(EmuText *text, const E2bSandbox *details)
{
	emu_json_member(text, "envdAccessToken", details->token);
	emu_json_member(text, "domain", e2b_config.domain);
	write_network(text, details);
	if (details->internet >= 0)
		emu_json_member_raw(text, "allowInternetAccess",
		                    details->internet ? "true" : "false");
	emu_json_key(text, "lifecycle");
	emu_text_add(text, "{");
	emu_json_member_raw(text, "autoResume", details->auto_resume ? "true" : "false");
	emu_json_member(text, "onTimeout", details->auto_pause ? "pause" : "kill");
	emu_text_add(text, "}");
}

void
e2b_write(EmuText *text, const EmuSandbox *sandbox, bool as_list_item)
{
	const E2bSandbox *details = e2b_details(sandbox);

	emu_text_add(text, "{");
	emu_json_member(text, "templateID", details->template_id);
	emu_json_member(text, "alias", details->alias);
	emu_json_member(text, "sandboxID", sandbox->id);
	emu_json_member(text, "clientID", CLIENT_ID);
	emu_json_member_time(text, "startedAt", sandbox->created_ms);
	emu_json_member_time(text, "endAt", details->end_ms);
	emu_json_member_number(text, "cpuCount", sandbox->resources.cpu);
	emu_json_member_number(text, "memoryMB", sandbox->resources.memory);
	emu_json_member_number(text, "diskSizeMB", sandbox->resources.disk);
	if (strcmp(sandbox->labels, "{}") != 0)
		emu_json_member_raw(text, "metadata", sandbox->labels);
	emu_json_member(text, "state", e2b_shown_running(sandbox) ? "running" : "paused");
	emu_json_member(text, "envdVersion", ENVD_VERSION);
	if (!as_list_item)
		write_more(text, details);
	emu_text_add(text, "}");
}

/* The answer of create, connect and resume: how to reach the sandbox. */
void
e2b_answer_access(EmuRequest *request, const EmuSandbox *sandbox, int status)
{
	const E2bSandbox *details = e2b_details(sandbox);
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "templateID", details->template_id);
	emu_json_member(&body, "sandboxID", sandbox->id);
	emu_json_member(&body, "clientID", CLIENT_ID);
	emu_json_member(&body, "envdVersion", ENVD_VERSION);
	emu_json_member(&body, "envdAccessToken", details->token);
	emu_json_member(&body, "domain", e2b_config.domain);
	emu_json_member(&body, "trafficAccessToken",
	                *details->traffic_token != '\0' ? details->traffic_token : NULL);
	emu_json_member(&body, "alias", details->alias);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

/*
 * Lifetime
 */

static void
lifetime_struck(void *owner)
{
	EmuSandbox *sandbox = owner;
	const E2bSandbox *details = e2b_details(sandbox);

	if (details->auto_pause)
		e2b_pause(sandbox, details->auto_pause_memory);
	else
		e2b_destroy(sandbox);
}

/*
 * From now on.  What is past the maximum age is silently cut; false if the
 * sandbox has reached that age already.
 */
bool
e2b_set_timeout(EmuSandbox *sandbox, int64_t timeout_ms)
{
	E2bSandbox *details = e2b_details(sandbox);
	int64_t now = emu_wall_ms();
	int64_t last = details->started_ms + e2b_config.maximum_age;

	if (now >= last)
		return false;
	if (timeout_ms < 0)
		timeout_ms = 0;
	if (timeout_ms > last - now)
		timeout_ms = last - now;
	details->end_ms = now + timeout_ms;
	emu_timer_start(&details->lifetime, timeout_ms, lifetime_struck, sandbox);
	return true;
}

/*
 * Changes of state
 */

static void
running(EmuSandbox *sandbox)
{
	E2bSandbox *details = e2b_details(sandbox);

	details->state = E2B_RUNNING;
	details->started_ms = emu_wall_ms();
	e2b_set_timeout(sandbox, details->timeout_ms);
	if (details->frozen && sandbox->guest != NULL)
		emu_guest_freeze(sandbox->guest, false);
	details->frozen = false;
	e2b_processes_resume(details);
}

static void
settled(void *owner)
{
	running(owner);
}

/* For the first time or again; with a delay it is in another state meanwhile. */
void
e2b_start(EmuSandbox *sandbox, int64_t timeout_ms, int64_t delay_ms, E2bState meanwhile)
{
	E2bSandbox *details = e2b_details(sandbox);

	emu_sandbox_hold_slot(sandbox, true);
	details->timeout_ms = timeout_ms;
	if (delay_ms > 0)
	{
		details->state = meanwhile;
		emu_timer_start(&details->settle, delay_ms, settled, sandbox);
	}
	else
		running(sandbox);
}

/* With its memory, processes go on later; without, only the files stay. */
void
e2b_pause(EmuSandbox *sandbox, bool memory)
{
	E2bSandbox *details = e2b_details(sandbox);

	emu_timer_stop(&details->lifetime);
	details->state = E2B_PAUSED;
	details->end_ms = emu_wall_ms();
	details->frozen = memory;
	e2b_processes_pause(details);
	if (sandbox->guest != NULL && memory)
		emu_guest_freeze(sandbox->guest, true);
	else if (sandbox->guest != NULL)
		emu_guest_stop(sandbox->guest);
	if (!memory)
	{
		e2b_processes_clear(details);
		details->envd_down = false;
	}
	emu_sandbox_hold_slot(sandbox, false);
}

static void
stop_clocks(E2bSandbox *details)
{
	emu_timer_stop(&details->lifetime);
	emu_timer_stop(&details->settle);
}

void
e2b_destroy(EmuSandbox *sandbox)
{
	E2bSandbox *details = e2b_details(sandbox);

	stop_clocks(details);
	details->state_before_end = details->state;
	emu_sandbox_destroy(sandbox, e2b_config.list_lag);
	e2b_processes_clear(details);
}

void
e2b_release(EmuSandbox *sandbox)
{
	E2bSandbox *details = e2b_details(sandbox);

	if (details == NULL)
		return;
	stop_clocks(details);
	e2b_processes_clear(details);
	free(details->template_id);
	free(details->alias);
	json_decref(details->environment);
	json_decref(details->network);
	free(details);
}

/* The limit is in the text and nowhere else, and nothing says when to retry. */
bool
e2b_within_quota(EmuRequest *request, const EmuAccount *account)
{
	EmuText message = {0};
	EmuText body = {0};

	if (e2b_quota.sandboxes < 0 ||
	    (double) account->slots_used + 1 <= e2b_quota.sandboxes)
		return true;
	emu_text_format(&message,
	                "you have reached the maximum number of concurrent E2B sandboxes "
	                "(%g); if you need more, please contact support",
	                e2b_quota.sandboxes);
	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "code", 429);
	emu_json_member(&body, "message", message.data);
	emu_text_add(&body, "}");
	emu_answer_json(request, 429, &body);
	emu_text_free(&message);
	return false;
}
