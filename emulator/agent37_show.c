/*
 * agent37_show.c
 *		How an instance is shown.
 */
#include "agent37.h"

#include <stdlib.h>

#include "server.h"

#define IMAGE_REF "ghcr.io/agent37-platform/hermes:2026.07.02b"
#define IMAGE_DIGEST                                                                   \
	"sha256:4f8d0d9e9f3b3a5a9f4488fb33274de9f7b7450c6cf6d3573e68fd231d7c8891"

static const char *const state_names[] = {
    [AGENT37_PROVISIONING] = "provisioning",
    [AGENT37_RUNNING] = "running",
    [AGENT37_STOPPING] = "stopping",
    [AGENT37_STOPPED] = "stopped",
    [AGENT37_STARTING] = "starting",
    [AGENT37_RESTARTING] = "restarting",
    [AGENT37_SLEEPING] = "sleeping",
    [AGENT37_WAKING] = "waking",
    [AGENT37_FAILED] = "failed",
};

Agent37State
agent37_shown_state(const EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);

	return sandbox->alive ? details->state : details->state_before_end;
}

static void
write_reason(EmuText *text, const Agent37Details *details, Agent37State state)
{
	emu_json_key(text, "status_reason");
	if (state != AGENT37_FAILED)
	{
		emu_text_add(text, "null");
		return;
	}
	emu_text_add(text, "{");
	emu_json_member(text, "code", "provisioning_failed");
	emu_json_member(text, "message", "the instance did not come up");
	emu_json_member(text, "detail", details->failure);
	emu_json_member(text, "operation", "create");
	emu_json_member_integer(text, "at", details->changed_ms / 1000);
	emu_text_add(text, "}");
}

static void
write_resources(EmuText *text, const EmuResources *resources)
{
	emu_json_key(text, "resources");
	emu_text_add(text, "{");
	emu_json_member_number(text, "cpu", resources->cpu);
	emu_json_member_number(text, "memory", resources->memory);
	emu_json_member_number(text, "disk", resources->disk);
	emu_text_add(text, "}");
}

static void
write_url(EmuText *text, EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText url = {0};

	if (agent37_has_url(agent37_details(sandbox)))
	{
		emu_server_origin(request, &url);
		emu_text_format(&url, AGENT37_INSTANCE "/%s", sandbox->id);
	}
	emu_json_member(text, "url", url.data);
	emu_text_free(&url);
}

/* What the create has said, or a change since. */
static void
write_given(EmuText *text, const EmuSandbox *sandbox)
{
	const Agent37Details *details = agent37_details(sandbox);
	char *ports = json_dumps(details->public_ports, JSON_COMPACT);

	emu_json_member_raw(text, "public_ports", ports != NULL ? ports : "[]");
	emu_json_member(text, "user", details->user);
	emu_json_member(text, "name", details->name);
	emu_json_member_raw(text, "metadata",
	                    details->has_metadata ? sandbox->labels : "null");
	emu_json_member_raw(text, "auto_sleep", details->auto_sleep ? "true" : "false");
	emu_json_member_integer(text, "idle_timeout_seconds", details->idle_timeout);
	free(ports);
}

void
agent37_write(EmuText *text, EmuRequest *request, const EmuSandbox *sandbox,
              Agent37State state)
{
	const Agent37Details *details = agent37_details(sandbox);

	emu_text_add(text, "{");
	emu_json_member(text, "id", sandbox->id);
	emu_json_member(text, "status", state_names[state]);
	write_reason(text, details, state);
	emu_json_member(text, "template", details->template);
	emu_json_member_raw(text, "template_revision", "null");
	emu_json_member(text, "image_ref", IMAGE_REF);
	emu_json_member(text, "image_digest", IMAGE_DIGEST);
	write_resources(text, &sandbox->resources);
	write_url(text, request, sandbox);
	emu_json_member_raw(text, "domain_urls", "[]");
	write_given(text, sandbox);
	emu_json_member_raw(text, "past_due", agent37_config.past_due ? "true" : "false");
	emu_json_member_integer(text, "created", sandbox->created_ms / 1000);
	if (state == AGENT37_SLEEPING || state == AGENT37_WAKING)
		emu_json_member_integer(text, "slept_at", details->changed_ms / 1000);
	emu_text_add(text, "}");
}

/* The answer of what changes the state: nothing but that. */
void
agent37_answer_state(EmuRequest *request, const EmuSandbox *sandbox, Agent37State state)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "id", sandbox->id);
	emu_json_member(&body, "status", state_names[state]);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}
