/*
 * freestyle_show.c
 *		How a VM is shown.
 */
#include "freestyle.h"

#include <stdlib.h>

const char *const freestyle_state_names[FREESTYLE_STATE_COUNT] = {
    [FREESTYLE_STARTING] = "starting", [FREESTYLE_RUNNING] = "running",
    [FREESTYLE_PAUSING] = "pausing",   [FREESTYLE_PAUSED] = "paused",
    [FREESTYLE_STOPPED] = "stopped",
};

FreestyleState
freestyle_shown_state(const EmuSandbox *sandbox)
{
	const FreestyleVm *vm = freestyle_vm(sandbox);

	return sandbox->alive ? vm->state : vm->state_before_end;
}

static void
write_resources(EmuText *text, const EmuResources *resources)
{
	emu_json_key(text, "resources");
	emu_text_add(text, "{");
	emu_json_member_number(text, "cpu", resources->cpu);
	emu_json_member_number(text, "memory", resources->memory);
	emu_json_member_number(text, "storage", resources->disk);
	emu_text_add(text, "}");
}

/* -1 goes in, nothing comes out. */
static void
write_window(EmuText *text, const char *name, int64_t seconds)
{
	if (seconds == FREESTYLE_NO_WINDOW)
		emu_json_member_raw(text, name, "null");
	else
		emu_json_member_integer(text, name, seconds);
}

static void
write_windows(EmuText *text, const FreestyleVm *vm)
{
	write_window(text, "idleTimeoutSeconds", vm->windows.idle);
	write_window(text, "autoDeleteSeconds", vm->windows.auto_delete);
	if (vm->auto_delete_from_plan)
		emu_json_member_raw(text, "autoDeleteFromPlan", "true");
	write_window(text, "ttlSeconds", vm->windows.ttl);
	write_window(text, "maxRunSeconds", vm->windows.max_run);
	write_window(text, "maxRunTotalSeconds", vm->windows.max_run_total);
	emu_json_member_integer(text, "totalRunSeconds", freestyle_run_ms(vm) / 1000);
}

/* Without the closing brace: a create has more to say. */
static void
write_members(EmuText *text, const EmuSandbox *sandbox)
{
	const FreestyleVm *vm = freestyle_vm(sandbox);

	emu_text_add(text, "{");
	emu_json_member(text, "id", sandbox->id);
	emu_json_member(text, "state",
	                freestyle_state_names[freestyle_shown_state(sandbox)]);
	emu_json_member(text, "slug", vm->slug);
	emu_json_member(text, "displayName", vm->display_name);
	write_resources(text, &sandbox->resources);
	emu_json_member(text, "snapshotId", vm->snapshot_id);
	if (vm->snapshot_slug != NULL)
	{
		emu_json_member(text, "sourceSnapshotSlugAtCreate", vm->snapshot_slug);
		emu_json_member(text, "sourceSnapshotSlug", vm->snapshot_slug);
	}
	write_windows(text, vm);
	emu_json_member_raw(text, "automaticRestart",
	                    vm->automatic_restart ? "true" : "false");
	emu_json_member_raw(text, "metadata", sandbox->labels);
	emu_json_member_raw(text, "vpcs", "[]");
	emu_json_member_raw(text, "networks", "[]");
	emu_json_member_time(text, "createdAt", sandbox->created_ms);
	emu_json_member_time(text, "updatedAt", vm->updated_ms);
}

void
freestyle_write(EmuText *text, const EmuSandbox *sandbox)
{
	write_members(text, sandbox);
	emu_text_add(text, "}");
}

void
freestyle_answer_vm(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	freestyle_write(&body, sandbox);
	emu_answer_json(request, 200, &body);
}

void
freestyle_answer_made(EmuRequest *request, const EmuSandbox *sandbox)
{
	char *rules = json_dumps(freestyle_vm(sandbox)->firewall_rules, JSON_COMPACT);
	EmuText body = {0};

	write_members(&body, sandbox);
	emu_json_member_raw(&body, "firewallRules", rules != NULL ? rules : "[]");
	emu_json_member_raw(&body, "tlsRules", "[]");
	emu_text_add(&body, "}");
	free(rules);
	emu_answer_json(request, (int) freestyle_config.create_status, &body);
}
