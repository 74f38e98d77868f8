/*
 * daytona_sandbox.c
 *		States of a Daytona sandbox, its clocks, and how it is shown.
 */
#include "daytona.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"

/* One organization per emulator; only its form matters. */
#define ORGANIZATION_ID "0b7c9a52-1111-4222-8333-94e5a6b7c8d9"
#define RUNNER_ID       "7d2f6a10-aaaa-4bbb-8ccc-0d1e2f3a4b5c"

const char *const daytona_state_names[] = {
    [DAYTONA_CREATING] = "creating",     [DAYTONA_PENDING_BUILD] = "pending_build",
    [DAYTONA_STARTED] = "started",       [DAYTONA_STOPPING] = "stopping",
    [DAYTONA_STOPPED] = "stopped",       [DAYTONA_STARTING] = "starting",
    [DAYTONA_ERROR] = "error",           [DAYTONA_BUILD_FAILED] = "build_failed",
    [DAYTONA_DESTROYING] = "destroying",
};

DaytonaSandbox *
daytona_details(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

DaytonaState
daytona_listed_state(const DaytonaSandbox *details)
{
	return details->sandbox->alive ? details->state : details->state_before_end;
}

static const char *
desired_state(DaytonaState state)
{
	return state == DAYTONA_DESTROYING                             ? "destroyed"
	       : state == DAYTONA_STOPPED || state == DAYTONA_STOPPING ? "stopped"
	                                                               : "started";
}

/*
 * A deleted sandbox gives its name back by changing it.  A list that lags
 * does not know that yet.
 */
static void
write_name(EmuText *text, const EmuSandbox *sandbox, bool as_list_item)
{
	EmuText name = {0};

	if (sandbox->alive || as_list_item)
	{
		emu_json_member(text, "name", sandbox->name);
		return;
	}
	emu_text_format(&name, "DESTROYED_%s_%lld", sandbox->name,
	                (long long) sandbox->destroyed_ms);
	emu_json_member(text, "name", name.data);
	emu_text_free(&name);
}

static void
write_origin(EmuText *text, const DaytonaSandbox *details, bool as_list_item)
{
	if (details->snapshot != NULL)
		emu_json_member(text, "snapshot", details->snapshot);
	else if (!as_list_item)
	{
		emu_json_key(text, "buildInfo");
		emu_text_add(text, "{");
		emu_json_member(text, "dockerfileContent", details->dockerfile);
		emu_json_member_raw(text, "contextHashes", "[]");
		emu_text_add(text, "}");
	}
}

static void
write_environment(EmuText *text, const DaytonaSandbox *details)
{
	char *json = details->environment != NULL
	                 ? json_dumps(details->environment, JSON_COMPACT)
	                 : NULL;

	emu_json_member_raw(text, "env", json != NULL ? json : "{}");
	free(json);
}

static void
write_state(EmuText *text, const DaytonaSandbox *details, bool as_list_item)
{
	DaytonaState state = daytona_listed_state(details);

	if (!as_list_item)
		state = details->state;
	emu_json_member(text, "state", daytona_state_names[state]);
	emu_json_member(text, "desiredState", desired_state(state));
	if (details->error_reason != NULL)
		emu_json_member(text, "errorReason", details->error_reason);
	if (as_list_item)
		emu_json_member_raw(text, "recoverable", "false");
	emu_json_member_integer(text, "autoStopInterval", details->auto_stop);
	emu_json_member_integer(text, "autoArchiveInterval", details->auto_archive);
	emu_json_member_integer(text, "autoDeleteInterval", details->auto_delete);
	if (!as_list_item)
		emu_json_member_raw(text, "volumes", "[]");
	emu_json_member_time(text, "createdAt", details->sandbox->created_ms);
	emu_json_member_time(text, "updatedAt", details->updated_ms);
	emu_json_member_time(text, "lastActivityAt", details->activity_ms);
}

void
daytona_write(EmuText *text, EmuRequest *request, const EmuSandbox *sandbox,
              bool as_list_item)
{
	const DaytonaSandbox *details = daytona_details(sandbox);

	emu_text_add(text, "{");
	emu_json_member(text, "id", sandbox->id);
	emu_json_member(text, "organizationId", ORGANIZATION_ID);
	write_name(text, sandbox, as_list_item);
	write_origin(text, details, as_list_item);
	emu_json_member(text, "user", details->user);
	if (!as_list_item)
		write_environment(text, details);
	emu_json_member_raw(text, "labels", sandbox->labels);
	emu_json_member_raw(text, "public", details->is_public ? "true" : "false");
	emu_json_member_raw(text, "networkBlockAll",
	                    details->network_block_all ? "true" : "false");
	emu_json_member(text, "target", details->target);
	emu_json_member_number(text, "cpu", sandbox->resources.cpu);
	emu_json_member_raw(text, "gpu", "0");
	emu_json_member_number(text, "memory", sandbox->resources.memory);
	emu_json_member_number(text, "disk", sandbox->resources.disk);
	write_state(text, details, as_list_item);
	emu_json_member(text, "sandboxClass", "container");
	emu_json_member(text, "runnerId", RUNNER_ID);
	emu_json_member(text, "daemonVersion", "0.205.1");
	emu_json_member(text, "backupState", "None");
	emu_json_key(text, "toolboxProxyUrl");
	emu_text_add(text, "\"");
	emu_server_origin(request, text);
	emu_text_add(text, DAYTONA_TOOLBOX "\"}");
}

void
daytona_answer(EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText body = {0};

	daytona_write(&body, request, sandbox, false);
	emu_answer_json(request, 200, &body);
}

/*
 * Clocks
 */

static void
set_state(EmuSandbox *sandbox, DaytonaState state)
{
	daytona_details(sandbox)->state = state;
	daytona_details(sandbox)->updated_ms = emu_wall_ms();
}

void
daytona_touch(EmuSandbox *sandbox)
{
	daytona_details(sandbox)->activity_ms = emu_wall_ms();
}

/* Processes do not count, but a request to the toolbox that is still open does. */
static bool
is_in_use(const DaytonaSandbox *details)
{
	return details->open_jobs > 0 || daytona_sessions_busy(details);
}

/* Activity only notes the time; the clock looks at it when it strikes. */
static void
idle_struck(void *owner)
{
	EmuSandbox *sandbox = owner;
	DaytonaSandbox *details = daytona_details(sandbox);
	int64_t left;

	if (details->state == DAYTONA_STOPPED)
	{
		daytona_destroy(sandbox);
		return;
	}
	if (is_in_use(details))
		daytona_touch(sandbox);
	left = details->activity_ms + details->auto_stop * daytona_config.minute -
	       emu_wall_ms();
	if (left > 0)
		emu_timer_start(&details->idle, left, idle_struck, sandbox);
	else
		daytona_stop(sandbox);
}

void
daytona_start_idle_clock(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);
	int minutes =
	    details->state == DAYTONA_STOPPED ? details->auto_delete : details->auto_stop;

	emu_timer_stop(&details->idle);
	if (minutes > 0)
		emu_timer_start(&details->idle, minutes * daytona_config.minute, idle_struck,
		                sandbox);
}

static void
lifetime_struck(void *owner)
{
	daytona_destroy(owner);
}

void
daytona_set_lifetime(EmuSandbox *sandbox, int minutes)
{
	EmuTimer *lifetime = &daytona_details(sandbox)->lifetime;

	emu_timer_stop(lifetime);
	if (minutes > 0)
		emu_timer_start(lifetime, minutes * daytona_config.minute, lifetime_struck,
		                sandbox);
}

/*
 * Changes of state
 */

static void
stopped(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);
	EmuResources disk_only = {0, 0, sandbox->resources.disk};

	set_state(sandbox, DAYTONA_STOPPED);
	emu_sandbox_reserve(sandbox, &disk_only);
	if (details->auto_delete == 0)
		daytona_destroy(sandbox);
	else
		daytona_start_idle_clock(sandbox);
}

static void
settled(void *owner)
{
	EmuSandbox *sandbox = owner;

	if (daytona_details(sandbox)->state == DAYTONA_STOPPING)
		stopped(sandbox);
	else
		set_state(sandbox, DAYTONA_STARTED);
}

void
daytona_settle_later(EmuSandbox *sandbox, int64_t ms)
{
	emu_timer_start(&daytona_details(sandbox)->settle, ms, settled, sandbox);
}

void
daytona_stop(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);

	if (sandbox->guest != NULL)
		emu_guest_stop(sandbox->guest);
	daytona_sessions_clear(details);
	emu_timer_stop(&details->idle);
	set_state(sandbox, DAYTONA_STOPPING);
	if (daytona_config.stop_delay > 0)
		daytona_settle_later(sandbox, daytona_config.stop_delay);
	else
		stopped(sandbox);
}

void
daytona_start(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);

	emu_sandbox_reserve(sandbox, &sandbox->resources);
	daytona_touch(sandbox);
	set_state(sandbox,
	          daytona_config.start_delay > 0 ? DAYTONA_STARTING : DAYTONA_STARTED);
	if (details->state == DAYTONA_STARTING)
		daytona_settle_later(sandbox, daytona_config.start_delay);
	daytona_start_idle_clock(sandbox);
}

static void
stop_clocks(DaytonaSandbox *details)
{
	emu_timer_stop(&details->settle);
	emu_timer_stop(&details->idle);
	emu_timer_stop(&details->lifetime);
}

void
daytona_destroy(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);

	stop_clocks(details);
	details->state_before_end = details->state;
	emu_sandbox_destroy(sandbox, daytona_config.list_lag);
	daytona_sessions_clear(details);
	set_state(sandbox, DAYTONA_DESTROYING);
}

void
daytona_release(EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);

	if (details == NULL)
		return;
	stop_clocks(details);
	daytona_sessions_clear(details);
	free(details->snapshot);
	free(details->dockerfile);
	free(details->target);
	free(details->user);
	json_decref(details->environment);
	free(details);
}

/* Answers 400 itself if the account has no room for this much more. */
bool
daytona_within_quota(EmuRequest *request, const EmuAccount *account,
                     const EmuResources *more, double sandboxes)
{
	static const char advice[] =
	    "\nTo increase concurrency limits, upgrade your organization's "
	    "Tier by visiting the dashboard.";

	if (daytona_quota.cpu >= 0 && account->used.cpu + more->cpu > daytona_quota.cpu)
		emu_refuse_format(request, 400,
		                  "Total CPU limit exceeded. Maximum allowed: %g.%s",
		                  daytona_quota.cpu, advice);
	else if (daytona_quota.memory >= 0 &&
	         account->used.memory + more->memory > daytona_quota.memory)
		emu_refuse_format(request, 400,
		                  "Total memory limit exceeded. Maximum allowed: %gGiB.%s",
		                  daytona_quota.memory, advice);
	else if (daytona_quota.disk >= 0 &&
	         account->used.disk + more->disk > daytona_quota.disk)
		emu_refuse_format(request, 400,
		                  "Total disk limit exceeded. Maximum allowed: %gGiB.%s",
		                  daytona_quota.disk, advice);
	else if (daytona_quota.sandboxes >= 0 &&
	         (double) account->live_count + sandboxes > daytona_quota.sandboxes)
		daytona_refuse(request, 400, "No available runners");
	else
		return true;
	return false;
}
