/*
 * freestyle_create.c
 *		POST /v5/vms
 *
 * Any snapshot is known, except those that begin with "no-such-".  A VM has the
 * size of its snapshot.
 */
#include "freestyle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB 1024

static const struct
{
	const char *slug;
	EmuResources resources; /* vCPU, MiB, MiB */
} bases[] = {
    {"freestyle/ubuntu", {4, 8192, 32768}},
    {"freestyle/ubuntu-sm", {2, 4096, 16384}},
    {"freestyle/ubuntu-lg", {8, 16384, 65536}},
    {"freestyle/ubuntu-xl", {16, 32768, 131072}},
    {"freestyle/ubuntu-2xl", {32, 65536, 131072}},
    {"freestyle/ubuntu-3xl", {64, 131072, 256 * GIB}},
    {"freestyle/busybox", {1, 128, GIB}},
};

static const EmuResources *
resources_of(const char *snapshot)
{
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		if (strcmp(bases[i].slug, snapshot) == 0)
			return &bases[i].resources;
	return &bases[0].resources;
}

static const char *
snapshot_of(const json_t *body)
{
	const char *snapshot = json_string_value(json_object_get(body, "snapshotId"));

	return snapshot != NULL ? snapshot : bases[0].slug;
}

/* By this the audit counts creates. */
static const char *
unique_name(const json_t *body)
{
	const char *name = json_string_value(
	    json_object_get(json_object_get(body, "metadata"), "sbx-router-id"));

	if (name == NULL || *name == '\0')
		name = json_string_value(json_object_get(body, "slug"));
	return name != NULL && *name != '\0' ? name : NULL;
}

/* What is named by its id is shown by it, what has a slug by an id made of that. */
static void
take_snapshot(FreestyleVm *vm, const char *snapshot)
{
	EmuText id = {0};

	if (strncmp(snapshot, "sh-", 3) == 0)
	{
		vm->snapshot_id = emu_strdup(snapshot);
		return;
	}
	emu_text_format(&id, "sh-%016llx%016llx",
	                (unsigned long long) emu_hash(snapshot, strlen(snapshot)), 0ULL);
	vm->snapshot_id = id.data;
	vm->snapshot_slug = emu_strdup(snapshot);
}

static void
plan_windows(FreestyleVm *vm, FreestyleWindows *windows)
{
	if (freestyle_config.auto_delete_cap < 0 ||
	    windows->auto_delete != FREESTYLE_NO_WINDOW)
		return;
	windows->auto_delete = freestyle_config.auto_delete_cap;
	vm->auto_delete_from_plan = true;
}

static FreestyleVm *
vm_from(const json_t *body, EmuSandbox *sandbox)
{
	FreestyleVm *vm = emu_alloc(sizeof(FreestyleVm));
	const char *display_name = json_string_value(json_object_get(body, "displayName"));

	vm->sandbox = sandbox;
	if (display_name != NULL)
		vm->display_name = emu_strdup(display_name);
	take_snapshot(vm, snapshot_of(body));
	vm->automatic_restart = !json_is_false(json_object_get(body, "automaticRestart"));
	vm->firewall_rules =
	    freestyle_firewall_shown(json_object_get(body, "firewall"), sandbox->id);
	vm->updated_ms = sandbox->created_ms;
	return vm;
}

static EmuSandbox *
make(EmuAccount *account, const json_t *body)
{
	json_t *metadata =
	    freestyle_metadata_merged(NULL, json_object_get(body, "metadata"));
	char *labels = json_dumps(metadata, JSON_COMPACT);
	EmuSandbox *sandbox = emu_sandbox_create(account, unique_name(body), labels,
	                                         resources_of(snapshot_of(body)));
	FreestyleVm *vm = vm_from(body, sandbox);
	FreestyleWindows windows = {
	    .idle = freestyle_config.default_idle,
	    .auto_delete = FREESTYLE_NO_WINDOW,
	    .ttl = FREESTYLE_NO_WINDOW,
	    .max_run = FREESTYLE_NO_WINDOW,
	    .max_run_total = FREESTYLE_NO_WINDOW,
	};

	free(labels);
	vm->metadata = metadata;
	sandbox->details = vm;
	freestyle_set_slug(sandbox, json_string_value(json_object_get(body, "slug")));
	freestyle_take_windows(&windows, body);
	plan_windows(vm, &windows);
	vm->windows = windows;
	freestyle_boot(sandbox,
	               freestyle_config.hold_create + freestyle_config.start_delay);
	freestyle_set_windows(sandbox, &windows);
	return sandbox;
}

/* The answer is about the time when it is given, which is when the hold ends. */
static void
answer(EmuRequest *request, EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	FreestyleState state = vm->state;

	if (freestyle_config.start_delay == 0)
		vm->state = FREESTYLE_RUNNING;
	freestyle_answer_made(request, sandbox);
	vm->state = state;
	request->answer.hold_ms = freestyle_config.hold_create;
}

/* All that can be wrong with the request comes before what is taken or full. */
static void
create_from(EmuRequest *request, EmuAccount *account, const json_t *body)
{
	const char *slug = json_string_value(json_object_get(body, "slug"));
	const char *snapshot = snapshot_of(body);
	const char *rules = freestyle_firewall_problem(json_object_get(body, "firewall"));
	bool reassign = json_is_true(json_object_get(body, "reassignSlug"));
	const char *no_room = freestyle_no_room(account, NULL, resources_of(snapshot));

	if (rules != NULL && !freestyle_config.late_rules)
		freestyle_refuse(request, 400, rules);
	else if (strncmp(snapshot, "no-such-", 8) == 0)
		freestyle_refuse(request, 404, "Snapshot not found.");
	else if (slug != NULL && !reassign && freestyle_slug_holder(account, slug) != NULL)
		freestyle_conflict(request, "slug in use");
	else if (freestyle_config.allowance_spent)
		freestyle_fail(request, 429, "LIMIT_EXCEEDED", "the allowance is used up");
	else if (no_room != NULL)
		freestyle_conflict(request, no_room);
	else if (rules != NULL)
	{
		make(account, body);
		freestyle_refuse(request, 400, rules);
	}
	else
		answer(request, make(account, body));
}

void
freestyle_create(EmuRequest *request, EmuAccount *account)
{
	json_t *body = freestyle_body(request);
	const char *name = body != NULL ? unique_name(body) : NULL;

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (name != NULL)
		emu_account_name(account, name)->creates++;
	if (body != NULL && freestyle_check_create(request, body))
		create_from(request, account, body);
	json_decref(body);
}
