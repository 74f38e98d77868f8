/*
 * agent37_gateway.c
 *		The way to what an instance serves at its URL.
 *
 * The edge looks at the key, wakes an instance that sleeps and holds the
 * request meanwhile.  Behind it is the gateway, which is there a little later
 * than the instance runs, or a program of the customer's.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

struct Agent37Waiter
{
	Agent37Waiter *next;
	EmuSandbox *sandbox;
	EmuRequest *request;
	EmuTimer limit;
};

/*
 * Behind the edge
 */

static void
answer_health(EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_raw(&body, "ok", "true");
	emu_json_member(&body, "template", agent37_details(sandbox)->template);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/* Whatever a customer's program may be, this is none of its addresses. */
static void
answer_custom(EmuRequest *request)
{
	EmuText page = {0};

	emu_text_add(&page, "404 page not found\n");
	emu_answer(request, 404, "text/plain; charset=utf-8", &page);
}

/* The path after the id: what the program in the instance sees. */
static const char *
inner_path(const EmuRequest *request)
{
	const char *slash = strchr(request->path + strlen(AGENT37_INSTANCE "/"), '/');

	return slash != NULL ? slash + 1 : "";
}

static void
pass_on(EmuRequest *request, EmuSandbox *sandbox)
{
	const char *path = inner_path(request);

	agent37_touch(sandbox);
	if (!agent37_has_gateway(agent37_details(sandbox)))
		answer_custom(request);
	else if (strcmp(path, "v1/health") == 0 && strcmp(request->method, "GET") == 0)
		answer_health(request, sandbox);
	else
		agent37_files_route(request, sandbox, path);
}

/*
 * Waiting for an instance that wakes
 */

static void
waiter_remove(Agent37Waiter *waiter)
{
	Agent37Waiter **place = &agent37_details(waiter->sandbox)->waiters;

	while (*place != waiter)
		place = &(*place)->next;
	*place = waiter->next;
	emu_timer_stop(&waiter->limit);
	free(waiter);
}

static void
waiter_forget(void *owner)
{
	waiter_remove(owner);
}

/* The instance goes on waking. */
static void
waiter_expired(void *owner)
{
	Agent37Waiter *waiter = owner;
	EmuRequest *request = waiter->request;

	waiter_remove(waiter);
	agent37_edge_fail(request, 503, "wake_timeout");
	emu_request_finish(request);
}

static void
wait_for(EmuRequest *request, EmuSandbox *sandbox)
{
	Agent37Details *details = agent37_details(sandbox);
	Agent37Waiter *waiter = emu_alloc(sizeof(Agent37Waiter));

	waiter->sandbox = sandbox;
	waiter->request = request;
	waiter->next = details->waiters;
	details->waiters = waiter;
	emu_timer_start(&waiter->limit, agent37_config.wake_limit, waiter_expired, waiter);
	emu_request_wait(request, waiter_forget, waiter);
}

void
agent37_gateway_awake(Agent37Details *details)
{
	while (details->waiters != NULL)
	{
		EmuRequest *request = details->waiters->request;

		waiter_remove(details->waiters);
		pass_on(request, details->sandbox);
		if (request->answer.given)
			emu_request_finish(request);
	}
}

/* It was deleted, or stopped, before it was awake. */
void
agent37_gateway_lost(Agent37Details *details)
{
	while (details->waiters != NULL)
	{
		EmuRequest *request = details->waiters->request;

		waiter_remove(details->waiters);
		agent37_edge_fail(request, 503, "wake_failed");
		emu_request_finish(request);
	}
}

static void
wake(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);

	if (!agent37_fits_again(sandbox))
	{
		agent37_edge_fail(request, 503, "wake_failed");
		return;
	}
	agent37_power_on(sandbox);
	if (details->state == AGENT37_RUNNING && !details->booting)
		pass_on(request, sandbox);
	else
		wait_for(request, sandbox);
}

/*
 * The edge
 */

static void
let_in(EmuRequest *request, EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);

	switch (details->state)
	{
		case AGENT37_SLEEPING:
			wake(request, sandbox);
			break;
		case AGENT37_WAKING:
			wait_for(request, sandbox);
			break;
		case AGENT37_RUNNING:
			if (!details->booting)
				pass_on(request, sandbox);
			else if (details->waiters != NULL)
				wait_for(request, sandbox);
			else
				agent37_edge_fail(request, 502, "container_unreachable");
			break;
		case AGENT37_PROVISIONING:
		case AGENT37_STARTING:
		case AGENT37_RESTARTING:
			agent37_edge_fail(request, 502, "container_unreachable");
			break;
		case AGENT37_STOPPING:
		case AGENT37_STOPPED:
		case AGENT37_FAILED:
			agent37_edge_fail(request, 502, "container_unavailable");
			break;
	}
}

/* The edge's own health needs no key, and says nothing about the instance. */
static void
answer_edge_health(EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText body = {0};

	if (sandbox == NULL || !agent37_has_url(agent37_details(sandbox)))
		agent37_edge_fail(request, 404, "not_found");
	else
	{
		emu_text_add(&body, "{\"status\":\"ok\"}");
		emu_answer_json(request, 200, &body);
	}
}

/* The old way to give the key still works, but not beside the new one. */
static const char *
given_key(EmuRequest *request)
{
	const char *key = emu_request_header(request, "X-Agent37-Key");

	return key != NULL ? key : emu_request_bearer(request);
}

void
agent37_gateway_handle(EmuRequest *request)
{
	const char *key = given_key(request);
	int refusal = key != NULL && *key != '\0' ? emu_key_refusal(key) : 401;
	EmuSandbox *sandbox;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(AGENT37_INSTANCE "/"));
	if (strcmp(inner_path(request), "health") == 0)
		answer_edge_health(
		    request, path.count > 0 ? agent37_find(NULL, path.segments[0]) : NULL);
	else if (refusal != EMU_KEY_ACCEPTED)
		agent37_refuse(request, refusal, "too many requests");
	else
	{
		sandbox = path.count > 0
		              ? agent37_find(emu_account(&emu_agent37, key), path.segments[0])
		              : NULL;
		if (sandbox == NULL || !agent37_has_url(agent37_details(sandbox)))
			agent37_edge_fail(request, 404, "not_found");
		else if (agent37_config.past_due)
			agent37_edge_fail(request, 402, "instance_suspended");
		else
			let_in(request, sandbox);
	}
	emu_path_free(&path);
}
