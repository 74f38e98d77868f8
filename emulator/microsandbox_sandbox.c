/*
 * microsandbox_sandbox.c
 *		Names and states of a sandbox, and what leads from one state to another.
 *
 * A start is never refused for want of room: the sandbox is there and waits
 * until there is some.  Only the disk outlives a stop.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

/* What is in an image of that name cannot be pulled. */
#define UNKNOWN_IMAGE "no-such-"

static EmuTable names; /* "account name" -> EmuSandbox */
static EmuTable slugs; /* those of all accounts */
static uint64_t last_ticket;
static size_t queued_count;

static void running(EmuSandbox *sandbox);

MicrosandboxDetails *
microsandbox_details(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

/*
 * Names.  They can be had again when their sandbox is gone; ids cannot.
 */

EmuSandbox *
microsandbox_find(const EmuAccount *account, const char *id)
{
	EmuSandbox *sandbox = emu_sandbox_by_id(account, id);

	return sandbox != NULL && sandbox->account->provider == &emu_microsandbox ? sandbox
	                                                                          : NULL;
}

/* An account stays where it is until all sandboxes are forgotten. */
static char *
name_key(const EmuAccount *account, const char *name)
{
	EmuText key = {0};

	emu_text_format(&key, "%p %s", (const void *) account, name);
	return key.data;
}

EmuSandbox *
microsandbox_find_name(const EmuAccount *account, const char *name)
{
	char *key = name_key(account, name);
	EmuSandbox *sandbox = emu_table_get(&names, key);

	free(key);
	return sandbox;
}

bool
microsandbox_slug_taken(const char *slug)
{
	return emu_table_get(&slugs, slug) != NULL;
}

static void
give_name_back(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	char *key = name_key(sandbox->account, details->name);

	if (emu_table_get(&names, key) == sandbox)
		emu_table_remove(&names, key);
	free(key);
}

/* The name that it has had before, if any, is free then. */
void
microsandbox_take_name(EmuSandbox *sandbox, char *name)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	char *key = name_key(sandbox->account, name);

	if (details->name != NULL)
		give_name_back(sandbox);
	free(details->name);
	details->name = name;
	emu_table_put(&names, key, sandbox);
	free(key);
}

void
microsandbox_take_slug(EmuSandbox *sandbox, char *slug)
{
	microsandbox_details(sandbox)->slug = slug;
	emu_table_put(&slugs, slug, sandbox);
}

static void
give_names_back(EmuSandbox *sandbox)
{
	const char *slug = microsandbox_details(sandbox)->slug;

	give_name_back(sandbox);
	if (emu_table_get(&slugs, slug) == sandbox)
		emu_table_remove(&slugs, slug);
}

/*
 * The inside.  Only its home and /tmp can be written to, so a working
 * directory elsewhere is made by being the home.
 */

static bool
is_below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 &&
	       (path[length] == '/' || path[length] == '\0');
}

const char *
microsandbox_home(const EmuSandbox *sandbox)
{
	const char *workdir = microsandbox_details(sandbox)->workdir;

	return workdir == NULL || strcmp(workdir, "/") == 0 || is_below(workdir, "/tmp") ||
	               is_below(workdir, MICROSANDBOX_HOME)
	           ? MICROSANDBOX_HOME
	           : workdir;
}

EmuGuest *
microsandbox_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, microsandbox_home(sandbox), MICROSANDBOX_USER);
}

/*
 * Room
 */

static bool
within(double limit, double used, double more)
{
	return limit < 0 || used + more <= limit;
}

static bool
fits(const EmuSandbox *sandbox)
{
	const EmuAccount *account = sandbox->account;
	const EmuResources *more = &sandbox->resources;

	return within(microsandbox_quota.cpu, account->used.cpu, more->cpu) &&
	       within(microsandbox_quota.memory, account->used.memory, more->memory) &&
	       within(microsandbox_quota.disk, account->used.disk, more->disk) &&
	       within(microsandbox_quota.sandboxes, (double) account->slots_used, 1);
}

static void
take_room(EmuSandbox *sandbox)
{
	emu_sandbox_reserve(sandbox, &sandbox->resources);
	emu_sandbox_hold_slot(sandbox, true);
}

static void
give_room_back(EmuSandbox *sandbox)
{
	EmuResources nothing = {0, 0, 0};

	emu_sandbox_reserve(sandbox, &nothing);
	emu_sandbox_hold_slot(sandbox, false);
}

static void
enqueue(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	details->queued = true;
	details->ticket = ++last_ticket;
	queued_count++;
}

static void
leave_queue(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	if (details->queued)
		queued_count--;
	details->queued = false;
}

static EmuSandbox *
first_in_queue(const EmuAccount *account)
{
	EmuSandbox *first = NULL;

	if (queued_count == 0)
		return NULL;
	for (EmuSandbox *sandbox = account->first_live; sandbox != NULL;
	     sandbox = sandbox->next_live)
	{
		const MicrosandboxDetails *details = microsandbox_details(sandbox);

		if (details->queued &&
		    (first == NULL || details->ticket < microsandbox_details(first)->ticket))
			first = sandbox;
	}
	return first;
}

/*
 * Changes of state
 */

static void
settled(void *owner)
{
	running(owner);
}

static void
admit(EmuSandbox *sandbox)
{
	take_room(sandbox);
	if (microsandbox_config.start_delay > 0)
		emu_timer_start(&microsandbox_details(sandbox)->settle,
		                microsandbox_config.start_delay, settled, sandbox);
	else
		running(sandbox);
}

/* In the order in which they came: a large one is not overtaken. */
void
microsandbox_serve_queue(EmuAccount *account)
{
	EmuSandbox *sandbox;

	while ((sandbox = first_in_queue(account)) != NULL && fits(sandbox))
	{
		leave_queue(sandbox);
		admit(sandbox);
	}
}

void
microsandbox_start(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	details->status = MICROSANDBOX_STARTING;
	free(details->failure);
	details->failure = NULL;
	if (first_in_queue(sandbox->account) == NULL && fits(sandbox))
		admit(sandbox);
	else
		enqueue(sandbox);
}

static const char *
start_problem(const MicrosandboxDetails *details)
{
	if (microsandbox_config.start_error != NULL)
		return microsandbox_config.start_error;
	return strncmp(details->image, UNKNOWN_IMAGE, strlen(UNKNOWN_IMAGE)) == 0
	           ? "image pull failed"
	           : NULL;
}

static void
lifetime_struck(void *owner)
{
	microsandbox_stop(owner);
	microsandbox_settle(owner);
}

static void
idle_struck(void *owner)
{
	if (microsandbox_agents_busy(microsandbox_details(owner)))
		microsandbox_touch(owner);
	else
		lifetime_struck(owner);
}

/* Something was asked of its agent: from now on it is idle. */
void
microsandbox_touch(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	if (details->idle_timeout > 0 && details->status == MICROSANDBOX_RUNNING)
		emu_timer_start(&details->idle,
		                details->idle_timeout * microsandbox_config.second, idle_struck,
		                sandbox);
}

/* Or failed to. */
static void
running(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	const char *problem = start_problem(details);

	if (problem != NULL)
	{
		details->status = MICROSANDBOX_FAILED;
		details->failure = emu_strdup(problem);
		give_room_back(sandbox);
	}
	else
	{
		details->status = MICROSANDBOX_RUNNING;
		details->resolved = true;
		details->started_ms = emu_wall_ms();
		if (details->max_duration > 0)
			emu_timer_start(&details->lifetime,
			                details->max_duration * microsandbox_config.second,
			                lifetime_struck, sandbox);
		microsandbox_touch(sandbox);
	}
	microsandbox_wait_over(sandbox);
}

static void
stop_clocks(MicrosandboxDetails *details)
{
	emu_timer_stop(&details->settle);
	emu_timer_stop(&details->lifetime);
	emu_timer_stop(&details->idle);
}

static void
stopped(void *owner)
{
	EmuSandbox *sandbox = owner;
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	EmuAccount *account = sandbox->account;

	details->status = MICROSANDBOX_STOPPED;
	details->stopped_ms = emu_wall_ms();
	give_room_back(sandbox);
	if (details->ephemeral)
		microsandbox_destroy(sandbox);
	else
		microsandbox_serve_queue(account);
}

/* One that takes no time is over with microsandbox_settle. */
void
microsandbox_stop(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	stop_clocks(details);
	leave_queue(sandbox);
	details->status = MICROSANDBOX_STOPPING;
	microsandbox_agents_close(details);
	microsandbox_logs_end(details);
	if (sandbox->guest != NULL)
		emu_guest_stop(sandbox->guest);
	microsandbox_wait_over(sandbox);
	if (microsandbox_config.stop_delay > 0)
		emu_timer_start(&details->settle, microsandbox_config.stop_delay, stopped,
		                sandbox);
}

void
microsandbox_settle(EmuSandbox *sandbox)
{
	const MicrosandboxDetails *details = microsandbox_details(sandbox);

	if (details->status == MICROSANDBOX_STOPPING && details->settle.slot == 0)
		stopped(sandbox);
}

void
microsandbox_destroy(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	stop_clocks(details);
	leave_queue(sandbox);
	details->status_before_end = details->status;
	give_names_back(sandbox);
	microsandbox_agents_close(details);
	microsandbox_logs_end(details);
	emu_sandbox_destroy(sandbox, microsandbox_config.list_lag);
	microsandbox_wait_over(sandbox);
	microsandbox_serve_queue(sandbox->account);
}

void
microsandbox_release(EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);

	if (details == NULL)
		return;
	stop_clocks(details);
	leave_queue(sandbox);
	give_names_back(sandbox);
	microsandbox_agents_close(details);
	microsandbox_logs_end(details);
	json_decref(details->spec);
	json_decref(details->environment);
	free(details->name);
	free(details->slug);
	free(details->image);
	free(details->workdir);
	free(details->failure);
	free(details);
}
