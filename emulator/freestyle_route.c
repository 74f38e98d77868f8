/*
 * freestyle_route.c
 *		Which request goes where, and what is done to a VM as a whole.
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

static void
delete_vm(EmuRequest *request, EmuSandbox *sandbox)
{
	freestyle_destroy(sandbox);
	emu_answer_empty(request, 204);
	request->answer.hold_ms = freestyle_config.slow_destroy;
}

static void
start(EmuRequest *request, EmuSandbox *sandbox)
{
	if (freestyle_start(request, sandbox))
		freestyle_answer_vm(request, sandbox);
}

static void
pause_vm(EmuRequest *request, EmuSandbox *sandbox)
{
	switch (freestyle_vm(sandbox)->state)
	{
		case FREESTYLE_STARTING:
			freestyle_conflict(request, "the VM is in transition");
			return;
		case FREESTYLE_STOPPED:
			freestyle_conflict(request, "the VM is stopped");
			return;
		case FREESTYLE_RUNNING:
			freestyle_pause(sandbox);
			break;
		case FREESTYLE_PAUSING:
		case FREESTYLE_PAUSED:
			break;
	}
	freestyle_answer_vm(request, sandbox);
}

/*
 * PATCH
 */

/* An empty value takes its key away; to be released. */
json_t *
freestyle_metadata_merged(const json_t *old, const json_t *change)
{
	json_t *merged =
	    old != NULL ? json_copy((json_t *) (uintptr_t) old) : json_object();
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) change, key, value)
		if (json_string_length(value) > 0)
			json_object_set(merged, key, value);
		else
			json_object_del(merged, key);
	return merged;
}

static void
update_metadata(EmuSandbox *sandbox, const json_t *change)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	json_t *merged = freestyle_metadata_merged(vm->metadata, change);

	json_decref(vm->metadata);
	vm->metadata = merged;
	free(sandbox->labels);
	sandbox->labels = json_dumps(merged, JSON_COMPACT);
}

static void
update_from(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	const char *slug = json_string_value(json_object_get(body, "slug"));
	const char *display_name = json_string_value(json_object_get(body, "displayName"));
	const json_t *restart = json_object_get(body, "automaticRestart");
	EmuSandbox *holder =
	    slug != NULL ? freestyle_slug_holder(sandbox->account, slug) : NULL;
	FreestyleWindows windows = vm->windows;

	if (holder != NULL && holder != sandbox &&
	    !json_is_true(json_object_get(body, "reassignSlug")))
	{
		freestyle_conflict(request, "slug in use");
		return;
	}
	if (slug != NULL)
		freestyle_set_slug(sandbox, *slug != '\0' ? slug : NULL);
	if (display_name != NULL)
	{
		free(vm->display_name);
		vm->display_name = *display_name != '\0' ? emu_strdup(display_name) : NULL;
	}
	if (restart != NULL)
		vm->automatic_restart = json_is_true(restart);
	update_metadata(sandbox, json_object_get(body, "metadata"));
	if (json_object_get(body, "autoDeleteSeconds") != NULL)
		vm->auto_delete_from_plan = false;
	freestyle_take_windows(&windows, body);
	vm->updated_ms = emu_wall_ms();
	freestyle_set_windows(sandbox, &windows);
	freestyle_answer_vm(request, sandbox);
}

static void
update(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = freestyle_body(request);

	if (body != NULL && freestyle_check_update(request, body))
		update_from(request, sandbox, body);
	json_decref(body);
}

/*
 * Resize: vCPU, MiB, MiB; nothing shrinks
 */

/* False if it is not a number that is at least what there is. */
static bool
grow(const json_t *body, const char *name, double *amount)
{
	const json_t *value = json_object_get(body, name);

	if (value == NULL)
		return true;
	if (!json_is_integer(value) || (double) json_integer_value(value) < *amount)
		return false;
	*amount = (double) json_integer_value(value);
	return true;
}

static size_t
count_given(const json_t *body)
{
	return (json_object_get(body, "cpu") != NULL) +
	       (json_object_get(body, "memory") != NULL) +
	       (json_object_get(body, "storage") != NULL);
}

static void
resize_from(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	EmuResources wanted = sandbox->resources;
	EmuResources held;
	const char *no_room;

	if (json_object_size(body) != count_given(body) ||
	    !grow(body, "cpu", &wanted.cpu) || !grow(body, "memory", &wanted.memory) ||
	    !grow(body, "storage", &wanted.disk))
	{
		freestyle_invalid(request, "cpu, memory and storage can only grow");
		return;
	}
	if (wanted.disk > sandbox->resources.disk && vm->state != FREESTYLE_RUNNING)
	{
		freestyle_conflict(request, "the disk grows only while the VM runs");
		return;
	}
	held = sandbox->holds_slot ? wanted : (EmuResources){0, 0, wanted.disk};
	no_room = sandbox->holds_slot ? freestyle_no_room(sandbox->account, sandbox, &held)
	                              : NULL;
	if (no_room != NULL)
	{
		freestyle_conflict(request, no_room);
		return;
	}
	sandbox->resources = wanted;
	emu_sandbox_reserve(sandbox, &held);
	vm->updated_ms = emu_wall_ms();
	freestyle_answer_vm(request, sandbox);
}

static void
resize(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = freestyle_body(request);

	if (body != NULL)
		resize_from(request, sandbox, body);
	json_decref(body);
}

/*
 * Routing
 */

static void
exec(EmuRequest *request, EmuSandbox *sandbox)
{
	freestyle_when_running(request, sandbox, freestyle_exec);
}

static void
not_emulated(EmuRequest *request, EmuSandbox *sandbox)
{
	(void) sandbox;
	freestyle_not_emulated(request);
}

static void
no_route(EmuRequest *request)
{
	freestyle_fail(request, 404, "ROUTE_NOT_FOUND", "no such path");
}

/* `action` is "" for the VM itself. */
static void
route_action(EmuRequest *request, EmuSandbox *sandbox, const char *action)
{
	static const struct
	{
		const char *method;
		const char *action;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	} routes[] = {
	    {"GET", "", freestyle_answer_vm},
	    {"DELETE", "", delete_vm},
	    {"PATCH", "", update},
	    {"POST", "exec-await", exec},
	    {"POST", "start", start},
	    {"POST", "pause", pause_vm},
	    {"POST", "resize", resize},
	    {"POST", "snapshot", not_emulated},
	    {"GET", "pty", not_emulated},
	};

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].method, request->method) == 0 &&
		    strcmp(routes[i].action, action) == 0)
		{
			routes[i].handle(request, sandbox);
			return;
		}
	no_route(request);
}

/* `path` begins with the id or the slug. */
static void
route_vm(EmuRequest *request, const EmuAccount *account, const EmuPath *path)
{
	EmuSandbox *sandbox = freestyle_find(account, path->segments[2]);
	const char *action = path->count > 3 ? path->segments[3] : "";

	if (sandbox == NULL)
		freestyle_refuse(request, 404, "VM not found");
	else if (path->count <= 4)
		route_action(request, sandbox, action);
	else if (strcmp(action, "fs") != 0)
		no_route(request);
	else if (strcmp(path->segments[4], "uploads") == 0)
		freestyle_uploads_route(request, sandbox, path);
	else if (path->count == 5)
		freestyle_files_route(request, sandbox);
	else
		no_route(request);
}

static bool
is_below(const EmuPath *path, const char *name)
{
	return path->count >= 2 && strcmp(path->segments[0], "v5") == 0 &&
	       strcmp(path->segments[1], name) == 0;
}

static void
route(EmuRequest *request, EmuAccount *account, const EmuPath *path)
{
	static const char *const absent[] = {"snapshots", "firewall", "tls",       "vpcs",
	                                     "domains",   "tunnels",  "identities"};
	bool changes = strcmp(request->method, "GET") != 0;

	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++)
		if (is_below(path, absent[i]))
		{
			freestyle_not_emulated(request);
			return;
		}
	if (freestyle_config.blocked && changes)
		freestyle_refuse(request, 403, "this account is blocked");
	else if (!is_below(path, "vms") || path->count > EMU_PATH_SEGMENTS)
		no_route(request);
	else if (request->operation == EMU_OP_CREATE)
		freestyle_create(request, account);
	else if (request->operation == EMU_OP_LIST)
		freestyle_list(request, account);
	else if (path->count == 2)
		no_route(request);
	else
		route_vm(request, account, path);
}

static void
handle_call(EmuRequest *request)
{
	EmuAccount *account = emu_account(&emu_freestyle, emu_request_bearer(request));
	EmuPath path;

	emu_path_split(&path, request->path + strlen(FREESTYLE_API "/"));
	route(request, account, &path);
	emu_path_free(&path);
}

static void
refuse_key(EmuRequest *request, const char *key, int status)
{
	if (key == NULL)
		freestyle_fail(request, 401, "MISSING_CREDENTIALS", "an API key is needed");
	else
		freestyle_refuse(request, status,
		                 status == 401   ? "Invalid API key"
		                 : status == 403 ? "forbidden"
		                                 : "slow down");
}

/*
 * Keys that are to be refused are refused before anything else about the
 * request is looked at.  Polling is no call of its own.
 */
void
freestyle_route(EmuRequest *request)
{
	const char *key = emu_request_bearer(request);
	int refusal = key != NULL ? emu_key_refusal(key) : 401;
	EmuPath path;

	if (refusal != EMU_KEY_ACCEPTED)
		refuse_key(request, key, refusal);
	else if (request->operation == EMU_OP_STATUS)
	{
		emu_path_split(&path, request->path + strlen(FREESTYLE_API "/"));
		freestyle_poll(request, emu_account(&emu_freestyle, key), path.segments[2]);
		emu_path_free(&path);
	}
	else
		freestyle_call(request, handle_call);
}
