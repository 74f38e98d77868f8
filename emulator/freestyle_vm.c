/*
 * freestyle_vm.c
 *		VMs: ids and slugs, room for them, their end.
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

static EmuTable slugs; /* digest of the account, a slash, the slug -> EmuSandbox */

FreestyleVm *
freestyle_vm(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

void
freestyle_make_id(char *buffer)
{
	char uuid[EMU_UUID_SIZE];

	emu_uuid(uuid);
	memcpy(buffer, "vm-", 3);
	buffer += 3;
	for (const char *place = uuid; *place != '\0'; place++)
		if (*place != '-')
			*buffer++ = *place;
	*buffer = '\0';
}

/*
 * Slugs
 */

/* To be freed. */
static char *
slug_key(const EmuAccount *account, const char *slug)
{
	EmuText key = {0};

	emu_text_format(&key, "%s/%s", account->digest, slug);
	return key.data;
}

EmuSandbox *
freestyle_slug_holder(const EmuAccount *account, const char *slug)
{
	char *key = slug_key(account, slug);
	EmuSandbox *sandbox = emu_table_get(&slugs, key);

	free(key);
	return sandbox;
}

/* NULL takes it away; whoever held the new one before is left without. */
void
freestyle_set_slug(EmuSandbox *sandbox, const char *slug)
{
	FreestyleVm *vm = freestyle_vm(sandbox);
	EmuSandbox *holder =
	    slug != NULL ? freestyle_slug_holder(sandbox->account, slug) : NULL;
	char *key;

	if (holder != NULL && holder != sandbox)
		freestyle_set_slug(holder, NULL);
	if (vm->slug != NULL)
	{
		key = slug_key(sandbox->account, vm->slug);
		emu_table_remove(&slugs, key);
		free(key);
	}
	free(vm->slug);
	vm->slug = NULL;
	if (slug == NULL)
		return;
	vm->slug = emu_strdup(slug);
	key = slug_key(sandbox->account, slug);
	emu_table_put(&slugs, key, sandbox);
	free(key);
}

/* One that has not surfaced yet is there, but nobody finds it. */
EmuSandbox *
freestyle_find(const EmuAccount *account, const char *id_or_slug)
{
	EmuSandbox *sandbox = emu_sandbox_by_id(account, id_or_slug);

	if (sandbox == NULL)
		sandbox = freestyle_slug_holder(account, id_or_slug);
	if (sandbox != NULL &&
	    emu_wall_ms() < sandbox->created_ms + freestyle_config.surface_delay)
		sandbox = NULL;
	return sandbox;
}

EmuGuest *
freestyle_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, FREESTYLE_HOME, FREESTYLE_USER);
}

/*
 * Room
 */

static bool
within(double limit, double used, double more)
{
	return limit < 0 || used + more <= limit;
}

/*
 * Why another one, or one that starts again, has no room; NULL if it has.  What
 * starts has its disk already.
 */
const char *
freestyle_no_room(const EmuAccount *account, const EmuSandbox *start,
                  const EmuResources *resources)
{
	const EmuResources *used = &account->used;
	const EmuResources nothing = {0, 0, 0};
	const EmuResources *has = start != NULL ? &start->reserved : &nothing;
	bool slot = start == NULL || !start->holds_slot;

	if (within(freestyle_quota.sandboxes, (double) account->slots_used, slot) &&
	    within(freestyle_quota.cpu, used->cpu, resources->cpu - has->cpu) &&
	    within(freestyle_quota.memory, used->memory, resources->memory - has->memory) &&
	    within(freestyle_quota.disk, used->disk, resources->disk - has->disk))
		return NULL;
	return "no capacity for this VM";
}

/*
 * The end
 */

void
freestyle_destroy(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	freestyle_stop_clocks(vm);
	vm->state_before_end = vm->state;
	freestyle_set_slug(sandbox, NULL);
	emu_sandbox_destroy(sandbox, freestyle_config.list_lag);
	freestyle_waiters_lose(vm);
}

void
freestyle_release(EmuSandbox *sandbox)
{
	FreestyleVm *vm = freestyle_vm(sandbox);

	if (vm == NULL)
		return;
	freestyle_stop_clocks(vm);
	freestyle_set_slug(sandbox, NULL);
	freestyle_waiters_lose(vm);
	freestyle_uploads_clear(vm);
	json_decref(vm->metadata);
	json_decref(vm->firewall_rules);
	free(vm->display_name);
	free(vm->snapshot_id);
	free(vm->snapshot_slug);
	free(vm);
}
