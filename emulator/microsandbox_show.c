/*
 * microsandbox_show.c
 *		How a sandbox is shown.
 */
#include "microsandbox.h"

#include <stdlib.h>

#define ORGANIZATION "11111111-1111-4111-8111-111111111111"

static const char *const status_names[] = {
    [MICROSANDBOX_CREATED] = "created", [MICROSANDBOX_STARTING] = "starting",
    [MICROSANDBOX_RUNNING] = "running", [MICROSANDBOX_STOPPING] = "stopping",
    [MICROSANDBOX_STOPPED] = "stopped", [MICROSANDBOX_FAILED] = "failed",
};

static void
write_time_or_null(EmuText *text, const char *name, int64_t wall_ms)
{
	if (wall_ms != 0)
		emu_json_member_time(text, name, wall_ms);
	else
		emu_json_member_raw(text, name, "null");
}

/* It is known when it has run. */
static void
write_spec(EmuText *text, const EmuSandbox *sandbox)
{
	const MicrosandboxDetails *details = microsandbox_details(sandbox);
	char *spec = details->resolved && !microsandbox_config.hide_spec
	                 ? json_dumps(details->spec, JSON_COMPACT)
	                 : NULL;

	emu_json_member_raw(text, "spec", spec != NULL ? spec : "null");
	free(spec);
}

void
microsandbox_write(EmuText *text, const EmuSandbox *sandbox)
{
	const MicrosandboxDetails *details = microsandbox_details(sandbox);
	MicrosandboxStatus status =
	    sandbox->alive ? details->status : details->status_before_end;

	emu_text_add(text, "{");
	emu_json_member(text, "id", sandbox->id);
	emu_json_member(text, "org_id", ORGANIZATION);
	emu_json_member(text, "name", details->name);
	emu_json_member(text, "slug", details->slug);
	emu_json_member(text, "status", status_names[status]);
	emu_json_member(text, "status_reason",
	                status != MICROSANDBOX_STARTING ? NULL
	                : details->queued               ? "insufficient_capacity"
	                                                : "scheduling");
	write_spec(text, sandbox);
	emu_json_member_raw(text, "ephemeral", details->ephemeral ? "true" : "false");
	emu_json_member_time(text, "created_at", sandbox->created_ms);
	write_time_or_null(text, "started_at", details->started_ms);
	write_time_or_null(text, "stopped_at", details->stopped_ms);
	emu_json_member(text, "last_failure_message", details->failure);
	emu_text_add(text, "}");
}

void
microsandbox_answer(EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText body = {0};

	microsandbox_write(&body, sandbox);
	emu_answer_json(request, 200, &body);
}
