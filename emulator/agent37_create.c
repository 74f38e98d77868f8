/*
 * agent37_create.c
 *		POST /v1/instances
 *
 * The answer comes when the instance runs.  One that is still waited for is
 * listed as provisioning, and goes on if its client gives up.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_DEFAULT 300

/* By this the audit counts creates; labels that are not given have no value. */
static const char *
unique_name(const json_t *body)
{
	const char *name = json_string_value(
	    json_object_get(json_object_get(body, "metadata"), "sbx-router-id"));

	if (name == NULL || *name == '\0')
		name = json_string_value(json_object_get(body, "name"));
	return name != NULL && *name != '\0' ? name : NULL;
}

static char *
copy_text(const json_t *body, const char *name)
{
	const char *value = json_string_value(json_object_get(body, name));

	return value != NULL ? emu_strdup(value) : NULL;
}

static Agent37Details *
details_from(const json_t *body, EmuSandbox *sandbox)
{
	Agent37Details *details = emu_alloc(sizeof(Agent37Details));
	const json_t *idle = json_object_get(body, "idle_timeout_seconds");

	details->sandbox = sandbox;
	details->template = copy_text(body, "template");
	if (details->template == NULL)
		details->template = emu_strdup(agent37_default_template);
	details->user = copy_text(body, "user");
	details->name = copy_text(body, "name");
	details->has_metadata = json_object_get(body, "metadata") != NULL;
	details->environment = json_incref(json_object_get(body, "env"));
	details->public_ports = json_incref(json_object_get(body, "public_ports"));
	details->auto_sleep = json_is_true(json_object_get(body, "auto_sleep"));
	details->idle_timeout = idle != NULL ? json_integer_value(idle) : IDLE_DEFAULT;
	if (agent37_config.start_error != NULL)
		details->failure = emu_strdup(agent37_config.start_error);
	return details;
}

/* The money is given back, the instance is not gone. */
static void
answer_failure(EmuRequest *request, const Agent37Details *details)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"error\":{");
	emu_json_member(&body, "code", "provisioning_failed");
	emu_json_member(&body, "message", "the instance did not come up");
	emu_json_member(&body, "detail", details->failure);
	emu_text_add(&body, "}}");
	emu_answer_json(request, 502, &body);
}

static void
make(EmuRequest *request, EmuAccount *account, const json_t *body,
     const EmuResources *resources)
{
	char *labels = json_dumps(json_object_get(body, "metadata"), JSON_COMPACT);
	EmuSandbox *sandbox = emu_sandbox_create(account, unique_name(body),
	                                         labels != NULL ? labels : "{}", resources);
	Agent37Details *details = details_from(body, sandbox);
	EmuText answer = {0};

	free(labels);
	sandbox->details = details;
	agent37_provision(sandbox, details->failure != NULL);
	if (details->failure != NULL)
		answer_failure(request, details);
	else
	{
		agent37_write(&answer, request, sandbox, AGENT37_RUNNING);
		emu_answer_json(request, 201, &answer);
	}
	request->answer.hold_ms = agent37_config.hold_create;
}

/* All that can be wrong with the request comes before the quota. */
static void
create_from(EmuRequest *request, EmuAccount *account, const json_t *body)
{
	const char *name = unique_name(body);
	EmuResources resources;

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (name != NULL)
		emu_account_name(account, name)->creates++;
	if (!agent37_check_create(request, body))
		return;
	resources = agent37_resources(body);
	if (agent37_config.past_due)
		agent37_no_money(request);
	else if (resources.cpu > (double) agent37_config.cpu_maximum)
		agent37_fail(request, 403, "tier_limit",
		             "the tier of this workspace has no instance of this size");
	else if (agent37_quota.sandboxes >= 0 &&
	         (double) account->live_count + 1 > agent37_quota.sandboxes)
		agent37_fail(request, 409, "instance_limit_reached",
		             "this workspace has as many instances as it may have");
	else if (!agent37_fits(account, &resources))
		agent37_fail(request, 503, "no_capacity", "no host has room for this instance");
	else
		make(request, account, body, &resources);
}

void
agent37_create(EmuRequest *request, EmuAccount *account)
{
	json_t *body = agent37_body(request);

	if (body != NULL)
		create_from(request, account, body);
	json_decref(body);
}
