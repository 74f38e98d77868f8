/*
 * agent37_instance.c
 *		States of an Agent37 instance, and what leads from one to another.
 *
 * Only the disk outlives a stop or a sleep: processes end, CPU and memory are
 * given back.  What is in between lasts no time unless a setting says so.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

Agent37Details *
agent37_details(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

/* Ids are a part of host names there. */
void
agent37_make_id(char *buffer)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t word = emu_random();

	for (int i = 0; i < AGENT37_ID_LENGTH; i++, word /= 36)
		buffer[i] = letters[word % 36];
	buffer[AGENT37_ID_LENGTH] = '\0';
}

EmuSandbox *
agent37_find(const EmuAccount *account, const char *id)
{
	EmuSandbox *sandbox = emu_sandbox_by_id(account, id);

	return sandbox != NULL && sandbox->account->provider == &emu_agent37 ? sandbox
	                                                                     : NULL;
}

EmuGuest *
agent37_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, AGENT37_HOME, AGENT37_USER);
}

/*
 * Quota
 */

static bool
within(double limit, double used, double more)
{
	return limit < 0 || used + more <= limit;
}

bool
agent37_fits(const EmuAccount *account, const EmuResources *more)
{
	const EmuResources *used = &account->used;

	return within(agent37_quota.cpu, used->cpu, more->cpu) &&
	       within(agent37_quota.memory, used->memory, more->memory) &&
	       within(agent37_quota.disk, used->disk, more->disk);
}

/* What a start needs that a stop has given back. */
bool
agent37_fits_again(const EmuSandbox *sandbox)
{
	EmuResources more = {
	    sandbox->resources.cpu - sandbox->reserved.cpu,
	    sandbox->resources.memory - sandbox->reserved.memory,
	    0,
	};

	return agent37_fits(sandbox->account, &more);
}

static void
reserve_disk_only(EmuSandbox *sandbox)
{
	EmuResources disk = {0, 0, sandbox->resources.disk};

	emu_sandbox_reserve(sandbox, &disk);
}

/*
 * Sleep
 */

static void
power_off(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);

	emu_timer_stop(&details->idle);
	emu_timer_stop(&details->boot);
	details->booting = false;
	agent37_gateway_lost(details);
	if (sandbox->guest != NULL)
		emu_guest_stop(sandbox->guest);
	reserve_disk_only(sandbox);
}

/* A command that runs does not keep it awake, a request to its URL does. */
static void
idle_struck(void *owner)
{
	EmuSandbox *sandbox = owner;
	Agent37Details *details = agent37_details(sandbox);

	if (details->open_requests > 0)
	{
		agent37_touch(sandbox);
		return;
	}
	details->state = AGENT37_SLEEPING;
	details->changed_ms = emu_wall_ms();
	power_off(sandbox);
}

/* Something went through its URL: from now on it is idle. */
void
agent37_touch(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);

	emu_timer_stop(&details->idle);
	if (details->auto_sleep && details->state == AGENT37_RUNNING)
		emu_timer_start(&details->idle, details->idle_timeout * 1000, idle_struck,
		                sandbox);
}

/*
 * Changes of state
 */

bool
agent37_changing(const Agent37Details *details)
{
	switch (details->state)
	{
		case AGENT37_PROVISIONING:
		case AGENT37_STOPPING:
		case AGENT37_STARTING:
		case AGENT37_RESTARTING:
		case AGENT37_WAKING:
			return true;
		default:
			return false;
	}
}

static void
booted(void *owner)
{
	Agent37Details *details = agent37_details(owner);

	details->booting = false;
	emu_text_time(&details->console, emu_wall_ms());
	emu_text_add(&details->console, " gateway is listening on 3737\n");
	agent37_gateway_awake(details);
}

static void
running(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);

	details->checkpoint_until = emu_clock_ms() + agent37_config.checkpoint;
	agent37_touch(sandbox);
	details->booting = agent37_config.boot_delay > 0;
	if (details->booting)
		emu_timer_start(&details->boot, agent37_config.boot_delay, booted, sandbox);
	else
		booted(sandbox);
}

static void
failed(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);
	EmuResources nothing = {0, 0, 0};

	details->changed_ms = emu_wall_ms();
	emu_text_format(&details->console, "%s\n", details->failure);
	emu_sandbox_reserve(sandbox, &nothing);
}

static void
settled(void *owner)
{
	EmuSandbox *sandbox = owner;
	Agent37Details *details = agent37_details(sandbox);

	details->state = details->next_state;
	if (details->state == AGENT37_RUNNING)
		running(sandbox);
	else if (details->state == AGENT37_FAILED)
		failed(sandbox);
}

static void
change(EmuSandbox *sandbox, Agent37State meanwhile, Agent37State next, int64_t delay_ms)
{
	Agent37Details *details = agent37_details(sandbox);

	details->state = meanwhile;
	details->next_state = next;
	if (delay_ms > 0)
		emu_timer_start(&details->settle, delay_ms, settled, sandbox);
	else
		settled(sandbox);
}

void
agent37_provision(EmuSandbox *sandbox, bool fails)
{
	change(sandbox, AGENT37_PROVISIONING, fails ? AGENT37_FAILED : AGENT37_RUNNING,
	       agent37_config.hold_create);
}

/* One that was stopped starts, one that sleeps wakes. */
void
agent37_power_on(EmuSandbox *sandbox)
{
	emu_sandbox_reserve(sandbox, &sandbox->resources);
	change(sandbox,
	       agent37_details(sandbox)->state == AGENT37_SLEEPING ? AGENT37_WAKING
	                                                           : AGENT37_STARTING,
	       AGENT37_RUNNING, agent37_config.start_delay);
}

void
agent37_stop(EmuSandbox *sandbox)
{
	bool sleeping = agent37_details(sandbox)->state == AGENT37_SLEEPING;

	power_off(sandbox);
	change(sandbox, AGENT37_STOPPING, AGENT37_STOPPED,
	       sleeping ? 0 : agent37_config.stop_delay);
}

void
agent37_restart(EmuSandbox *sandbox)
{
	agent37_details(sandbox)->restarts++;
	power_off(sandbox);
	emu_sandbox_reserve(sandbox, &sandbox->resources);
	change(sandbox, AGENT37_RESTARTING, AGENT37_RUNNING, agent37_config.start_delay);
}

static void
stop_clocks(Agent37Details *details)
{
	emu_timer_stop(&details->settle);
	emu_timer_stop(&details->boot);
	emu_timer_stop(&details->idle);
}

void
agent37_destroy(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);

	stop_clocks(details);
	details->state_before_end = details->state;
	emu_sandbox_destroy(sandbox, agent37_config.list_lag);
	agent37_gateway_lost(details);
}

void
agent37_release(EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);

	if (details == NULL)
		return;
	stop_clocks(details);
	agent37_gateway_lost(details);
	json_decref(details->environment);
	json_decref(details->public_ports);
	emu_text_free(&details->console);
	free(details->template);
	free(details->user);
	free(details->name);
	free(details->failure);
	free(details);
}
