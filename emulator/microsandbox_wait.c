/*
 * microsandbox_wait.c
 *		Answers that are held until a sandbox runs: ?wait_for=running
 *
 * The sandbox starts whether or not somebody waits for it.  When the time is
 * over the answer is a success all the same, and says that it is starting.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_DEFAULT 30
#define SECONDS_MAXIMUM 90

struct MicrosandboxWaiter
{
	MicrosandboxWaiter *next;
	EmuSandbox *sandbox;
	EmuRequest *request;
	EmuTimer limit;
};

static int64_t waiting;

/* Answers 400 itself and returns false if the parameters are not right. */
bool
microsandbox_wait_read(EmuRequest *request, MicrosandboxWait *wait)
{
	char *wait_for = emu_request_parameter(request, "wait_for");
	char *timeout = emu_request_parameter(request, "wait_timeout");
	char *end = timeout;
	bool good = false;

	wait->wanted = wait_for != NULL;
	wait->seconds = timeout != NULL ? strtol(timeout, &end, 10) : SECONDS_DEFAULT;
	if (wait_for != NULL && strcmp(wait_for, "running") != 0)
		microsandbox_invalid(request, "wait_for must be running");
	else if (timeout != NULL && wait_for == NULL)
		microsandbox_invalid(request, "wait_timeout needs wait_for");
	else if (timeout != NULL && (*timeout == '\0' || *end != '\0' ||
	                             wait->seconds < 1 || wait->seconds > SECONDS_MAXIMUM))
		microsandbox_invalid(request, "wait_timeout must be between 1 and %d",
		                     SECONDS_MAXIMUM);
	else
		good = true;
	free(wait_for);
	free(timeout);
	return good;
}

static void
waiter_free(MicrosandboxWaiter *waiter)
{
	MicrosandboxWaiter **place = &microsandbox_details(waiter->sandbox)->waiters;

	while (*place != waiter)
		place = &(*place)->next;
	*place = waiter->next;
	waiting--;
	emu_timer_stop(&waiter->limit);
	free(waiter);
}

static void
waiter_answer(void *owner)
{
	MicrosandboxWaiter *waiter = owner;
	EmuRequest *request = waiter->request;

	if (waiter->sandbox->alive)
		microsandbox_answer(request, waiter->sandbox);
	else
		microsandbox_not_found(request);
	waiter_free(waiter);
	emu_request_finish(request);
}

static void
waiter_forget(void *owner)
{
	waiter_free(owner);
}

/* Answers, now or when it is not starting any more. */
void
microsandbox_wait_answer(EmuRequest *request, EmuSandbox *sandbox,
                         const MicrosandboxWait *wait)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	MicrosandboxWaiter *waiter;

	if (!wait->wanted || details->status != MICROSANDBOX_STARTING)
	{
		microsandbox_answer(request, sandbox);
		return;
	}
	if (microsandbox_config.wait_maximum >= 0 &&
	    waiting >= microsandbox_config.wait_maximum)
	{
		microsandbox_refuse(request, 429, "too many requests wait");
		return;
	}
	waiter = emu_alloc(sizeof(MicrosandboxWaiter));
	waiter->sandbox = sandbox;
	waiter->request = request;
	waiter->next = details->waiters;
	details->waiters = waiter;
	waiting++;
	emu_timer_start(&waiter->limit, wait->seconds * microsandbox_config.second,
	                waiter_answer, waiter);
	emu_request_wait(request, waiter_forget, waiter);
}

void
microsandbox_wait_over(EmuSandbox *sandbox)
{
	while (microsandbox_details(sandbox)->waiters != NULL)
		waiter_answer(microsandbox_details(sandbox)->waiters);
}
