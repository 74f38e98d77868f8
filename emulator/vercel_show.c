/*
 * vercel_show.c
 *		Sandboxes, sessions and routes as JSON.
 *
 * Times are milliseconds; memory is told in MB and means MiB.
 */
#include "vercel.h"

#include <stdlib.h>
#include <string.h>

static const char *const state_names[] = {
    [VERCEL_PENDING] = "pending",   [VERCEL_RUNNING] = "running",
    [VERCEL_STOPPING] = "stopping", [VERCEL_STOPPED] = "stopped",
    [VERCEL_FAILED] = "failed",
};

/* Of a sandbox, which knows fewer states than its sessions. */
const char *
vercel_status(const EmuSandbox *sandbox)
{
	const VercelSandbox *details = vercel_details(sandbox);

	if (!sandbox->keeps_entry)
		return details->status_before_end;
	if (details->deleting)
		return state_names[VERCEL_STOPPING];
	switch (details->current->state)
	{
		case VERCEL_PENDING:
		case VERCEL_RUNNING:
			return state_names[VERCEL_RUNNING];
		case VERCEL_FAILED:
			return state_names[VERCEL_STOPPED];
		default:
			return state_names[details->current->state];
	}
}

void
vercel_write_json(EmuText *text, const char *name, const json_t *value)
{
	char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	emu_json_member_raw(text, name, json);
	free(json);
}

static void
write_sizes(EmuText *text, int vcpus)
{
	emu_json_member_integer(text, "vcpus", vcpus);
	emu_json_member_integer(text, "memory", (int64_t) vcpus * VERCEL_MEMORY_PER_CPU);
}

/* In answers a policy has another form than in requests; rules are not shown. */
static json_t *
policy_as_shown(const json_t *policy)
{
	json_t *allow = json_object_get(policy, "allow");
	json_t *subnets = json_object_get(policy, "subnets");
	json_t *shown = json_object();
	json_t *domains = json_array();
	const char *name;
	json_t *rules;

	json_object_foreach (allow, name, rules)
		json_array_append_new(domains, json_string(name));
	if (json_is_array(allow))
		json_array_extend(domains, allow);
	json_object_set_new(shown, "mode", json_string("custom"));
	json_object_set_new(shown, "allowedDomains", domains);
	if (json_object_get(subnets, "allow") != NULL)
		json_object_set(shown, "allowedCIDRs", json_object_get(subnets, "allow"));
	if (json_object_get(subnets, "deny") != NULL)
		json_object_set(shown, "deniedCIDRs", json_object_get(subnets, "deny"));
	return shown;
}

static void
write_policy(EmuText *text, const json_t *policy)
{
	json_t *shown;

	if (policy == NULL)
		return;
	if (json_object_get(policy, "mode") != NULL)
	{
		vercel_write_json(text, "networkPolicy", policy);
		return;
	}
	shown = policy_as_shown(policy);
	vercel_write_json(text, "networkPolicy", shown);
	json_decref(shown);
}

static void
write_if_set(EmuText *text, const char *name, int64_t number)
{
	if (number != 0)
		emu_json_member_integer(text, name, number);
}

static void
write_options(EmuText *text, const VercelSandbox *details)
{
	const char *name;
	json_t *value;

	json_object_foreach (details->options, name, value)
		vercel_write_json(text, name, value);
}

void
vercel_write_sandbox(EmuText *text, const EmuSandbox *sandbox)
{
	const VercelSandbox *details = vercel_details(sandbox);
	const VercelSession *session = details->current;

	emu_text_add(text, "{");
	emu_json_member(text, "name", details->name);
	emu_json_member_raw(text, "persistent", details->persistent ? "true" : "false");
	emu_json_member(text, "region", details->region);
	if (!vercel_config.hide_sizes)
		write_sizes(text, details->vcpus);
	emu_json_member_integer(text, "timeout", details->timeout_ms);
	emu_json_member(text, details->runtime != NULL ? "runtime" : "image",
	                details->runtime != NULL ? details->runtime : details->image);
	emu_json_member_integer(text, "createdAt", sandbox->created_ms);
	emu_json_member_integer(text, "updatedAt", details->updated_ms);
	emu_json_member_integer(text, "statusUpdatedAt", details->status_ms);
	if (session->state == VERCEL_RUNNING)
		emu_json_member_integer(text, "expiresAt",
		                        session->started_ms + session->timeout_ms);
	emu_json_member(text, "currentSessionId", session->id);
	if (*details->snapshot != '\0')
		emu_json_member(text, "currentSnapshotId", details->snapshot);
	emu_json_member(text, "status", vercel_status(sandbox));
	emu_json_member(text, "cwd", VERCEL_CWD);
	emu_json_member_raw(text, "tags", sandbox->labels);
	write_policy(text, details->network_policy);
	write_options(text, details);
	emu_text_add(text, "}");
}

void
vercel_write_session(EmuText *text, const VercelSession *session)
{
	const VercelSandbox *details = vercel_details(session->sandbox);

	emu_text_add(text, "{");
	emu_json_member(text, "id", session->id);
	emu_json_member(text, "sourceSandboxName", details->name);
	emu_json_member(text, "projectId", details->project);
	write_sizes(text, session->vcpus);
	emu_json_member(text, "region", details->region);
	emu_json_member(text, "runtime",
	                details->runtime != NULL ? details->runtime : "universal");
	emu_json_member_integer(text, "timeout", session->timeout_ms);
	emu_json_member(text, "status",
	                details->deleting ? "stopping" : state_names[session->state]);
	emu_json_member_integer(text, "requestedAt", session->requested_ms);
	write_if_set(text, "startedAt", session->started_ms);
	write_if_set(text, "requestedStopAt", session->stop_requested_ms);
	write_if_set(text, "stoppedAt", session->stopped_ms);
	if (session->started_ms != 0 && session->stopped_ms != 0)
		emu_json_member_integer(text, "duration",
		                        session->stopped_ms - session->started_ms);
	if (*session->source_snapshot != '\0')
		emu_json_member(text, "sourceSnapshotId", session->source_snapshot);
	emu_json_member_integer(text, "createdAt", session->requested_ms);
	emu_json_member_integer(text, "updatedAt", session->updated_ms);
	emu_json_member(text, "cwd", VERCEL_CWD);
	write_policy(text, session->network_policy);
	emu_text_add(text, "}");
}

void
vercel_write_routes(EmuText *text, const EmuSandbox *sandbox)
{
	const VercelSandbox *details = vercel_details(sandbox);
	size_t index;
	json_t *port;

	emu_json_key(text, "routes");
	emu_text_add(text, "[");
	json_array_foreach (details->ports, index, port)
	{
		int number = (int) json_integer_value(port);
		unsigned long long subdomain =
		    (details->routes ^ (uint64_t) number) & 0xFFFFFFFFFFFFULL;

		emu_text_format(text,
		                "%s{\"url\":\"https://sb-%012llx.vercel.run\","
		                "\"subdomain\":\"sb-%012llx\",\"port\":%d}",
		                index > 0 ? "," : "", subdomain, subdomain, number);
	}
	emu_text_add(text, "]");
}
