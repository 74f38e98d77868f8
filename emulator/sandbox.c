/*
 * sandbox.c
 *		Accounts, sandboxes, names and quotas, common to all providers.
 */
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

static EmuTable accounts;  /* "provider key" -> EmuAccount */
static EmuTable sandboxes; /* "id", only those that are alive */
static EmuSandbox *first_ever;
static EmuSandbox **last_ever = &first_ever;
static uint64_t last_serial;

static char *
account_key(const EmuProvider *provider, const char *key)
{
	EmuText text = {0};

	emu_text_add(&text, provider->name);
	emu_text_add(&text, " ");
	emu_text_add(&text, key);
	return text.data;
}

EmuAccount *
emu_account_if_known(const EmuProvider *provider, const char *key)
{
	char *full = account_key(provider, key);
	EmuAccount *account = emu_table_get(&accounts, full);

	free(full);
	return account;
}

EmuAccount *
emu_account(const EmuProvider *provider, const char *key)
{
	char *full = account_key(provider, key);
	EmuAccount *account = emu_table_get(&accounts, full);

	if (account == NULL)
	{
		account = emu_alloc(sizeof(EmuAccount));
		account->provider = provider;
		snprintf(account->digest, sizeof(account->digest), "%016llx",
		         (unsigned long long) emu_hash(full, strlen(full)));
		account->digest[8] = '\0';
		emu_table_put(&accounts, full, account);
	}
	free(full);
	return account;
}

int
emu_key_refusal(const char *key)
{
	static const struct
	{
		const char *beginning;
		int status;
	} refused[] = {{"bad-", 401}, {"denied-", 403}, {"limited-", 429}};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (strncmp(key, refused[i].beginning, strlen(refused[i].beginning)) == 0)
			return refused[i].status;
	return EMU_KEY_ACCEPTED;
}

EmuName *
emu_account_name(EmuAccount *account, const char *name)
{
	EmuName *record = emu_table_get(&account->names, name);

	if (record == NULL)
	{
		record = emu_alloc(sizeof(EmuName));
		emu_table_put(&account->names, name, record);
	}
	return record;
}

EmuSandbox *
emu_sandbox_create(EmuAccount *account, const char *name, const char *labels,
                   const EmuResources *resources)
{
	EmuSandbox *sandbox = emu_alloc(sizeof(EmuSandbox));
	char id[EMU_UUID_SIZE];

	if (account->provider->make_id != NULL)
		account->provider->make_id(id);
	else
		emu_uuid(id);
	sandbox->account = account;
	sandbox->serial = ++last_serial;
	sandbox->id = emu_strdup(id);
	sandbox->name = emu_strdup(name != NULL ? name : id);
	sandbox->name_record = emu_account_name(account, sandbox->name);
	sandbox->name_record->holder = sandbox;
	if (name == NULL)
		sandbox->name_record->creates++;
	sandbox->labels = emu_strdup(labels);
	sandbox->created_ms = emu_wall_ms();
	sandbox->alive = true;
	sandbox->resources = *resources;
	emu_sandbox_reserve(sandbox, resources);

	emu_table_put(&sandboxes, sandbox->id, sandbox);
	sandbox->next_live = account->first_live;
	if (sandbox->next_live != NULL)
		sandbox->next_live->previous_live = sandbox;
	account->first_live = sandbox;
	account->live_count++;
	*last_ever = sandbox;
	last_ever = &sandbox->next_ever;
	return sandbox;
}

EmuSandbox *
emu_sandbox_by_id(const EmuAccount *account, const char *id)
{
	EmuSandbox *sandbox = emu_table_get(&sandboxes, id);

	return sandbox != NULL && (account == NULL || sandbox->account == account) ? sandbox
	                                                                           : NULL;
}

EmuSandbox *
emu_sandbox_by_name(const EmuAccount *account, const char *name)
{
	EmuName *record = emu_table_get(&account->names, name);

	return record != NULL ? record->holder : NULL;
}

static int
newer_first(const void *left, const void *right)
{
	uint64_t one = (*(EmuSandbox *const *) left)->serial;
	uint64_t other = (*(EmuSandbox *const *) right)->serial;

	return one > other ? -1 : one < other;
}

/* Those whose time in lagging lists is over are let go. */
static size_t
lingering_drop_old(EmuAccount *account, int64_t horizon)
{
	EmuSandbox **place = &account->first_lingering;
	size_t left = 0;

	while (*place != NULL)
		if (!(*place)->keeps_entry && (*place)->destroyed_ms <= horizon)
			*place = (*place)->next_lingering;
		else
		{
			place = &(*place)->next_lingering;
			left++;
		}
	return left;
}

EmuSandbox **
emu_account_listed(EmuAccount *account, int64_t lag_ms, size_t *count)
{
	int64_t horizon = emu_wall_ms() - lag_ms;
	size_t lingering = lingering_drop_old(account, horizon);
	EmuSandbox **list =
	    emu_alloc((account->live_count + lingering + 1) * sizeof(EmuSandbox *));

	*count = 0;
	for (EmuSandbox *sandbox = account->first_live; sandbox != NULL;
	     sandbox = sandbox->next_live)
		if (lag_ms == 0 || sandbox->created_ms <= horizon)
			list[(*count)++] = sandbox;
	for (EmuSandbox *sandbox = account->first_lingering; sandbox != NULL;
	     sandbox = sandbox->next_lingering)
		if (lag_ms == 0 || sandbox->created_ms <= horizon)
			list[(*count)++] = sandbox;
	if (lingering > 0)
		qsort(list, *count, sizeof(EmuSandbox *), newer_first);
	return list;
}

void
emu_sandbox_reserve(EmuSandbox *sandbox, const EmuResources *resources)
{
	EmuResources *used = &sandbox->account->used;

	used->cpu += resources->cpu - sandbox->reserved.cpu;
	used->memory += resources->memory - sandbox->reserved.memory;
	used->disk += resources->disk - sandbox->reserved.disk;
	sandbox->reserved = *resources;
}

void
emu_sandbox_hold_slot(EmuSandbox *sandbox, bool hold)
{
	if (hold && !sandbox->holds_slot)
		sandbox->account->slots_used++;
	else if (!hold && sandbox->holds_slot)
		sandbox->account->slots_used--;
	sandbox->holds_slot = hold;
}

EmuGuest *
emu_sandbox_guest(EmuSandbox *sandbox, const char *home, const char *user)
{
	if (sandbox->guest == NULL)
		sandbox->guest = emu_guest_create(home, user);
	return sandbox->guest;
}

/* Lists that lag look here; entries whose time is over are dropped then. */
static void
sandbox_linger(EmuSandbox *sandbox)
{
	sandbox->next_lingering = sandbox->account->first_lingering;
	sandbox->account->first_lingering = sandbox;
}

void
emu_sandbox_destroy(EmuSandbox *sandbox, int64_t linger_ms)
{
	EmuAccount *account = sandbox->account;
	EmuResources nothing = {0, 0, 0};

	if (!sandbox->alive)
		return;
	sandbox->alive = false;
	sandbox->destroyed_ms = emu_wall_ms();
	if (sandbox->guest != NULL)
		emu_guest_destroy(sandbox->guest);
	sandbox->guest = NULL;
	emu_sandbox_reserve(sandbox, &nothing);
	emu_sandbox_hold_slot(sandbox, false);
	if (sandbox->name_record->holder == sandbox)
		sandbox->name_record->holder = NULL;
	emu_table_remove(&sandboxes, sandbox->id);
	if (sandbox->previous_live != NULL)
		sandbox->previous_live->next_live = sandbox->next_live;
	else
		account->first_live = sandbox->next_live;
	if (sandbox->next_live != NULL)
		sandbox->next_live->previous_live = sandbox->previous_live;
	account->live_count--;
	if (linger_ms > 0)
		sandbox_linger(sandbox);
}

static void
sandbox_audit_one(EmuText *text, const EmuSandbox *sandbox)
{
	bool alive = sandbox->alive && sandbox->expired_ms == 0;
	int64_t end_ms =
	    sandbox->expired_ms != 0 ? sandbox->expired_ms : sandbox->destroyed_ms;

	emu_text_add(text, text->data[text->length - 1] == '[' ? "{" : ",{");
	emu_json_member(text, "provider", sandbox->account->provider->name);
	emu_json_member(text, "account", sandbox->account->digest);
	emu_json_member(text, "id",
	                sandbox->shown_id != NULL ? sandbox->shown_id : sandbox->id);
	emu_json_member(text, "name", sandbox->name);
	emu_json_member_raw(text, "labels", sandbox->labels);
	emu_json_member_integer(text, "createdAtMs", sandbox->created_ms);
	if (alive)
		emu_json_member_raw(text, "destroyedAtMs", "null");
	else
		emu_json_member_integer(text, "destroyedAtMs", end_ms);
	emu_json_member_raw(text, "alive", alive ? "true" : "false");
	emu_json_member_integer(text, "creates", sandbox->name_record->creates);
	emu_text_add(text, "}");
}

void
emu_sandbox_audit(EmuText *text)
{
	emu_text_add(text, "{\"sandboxes\":[");
	for (EmuSandbox *sandbox = first_ever; sandbox != NULL;
	     sandbox = sandbox->next_ever)
		sandbox_audit_one(text, sandbox);
	emu_text_add(text, "]}");
}

static void
account_release(void *value)
{
	EmuAccount *account = value;

	emu_table_clear(&account->names, free);
	free(account);
}

void
emu_sandbox_reset(void)
{
	EmuSandbox *next;

	for (EmuSandbox *sandbox = first_ever; sandbox != NULL; sandbox = next)
	{
		next = sandbox->next_ever;
		emu_sandbox_destroy(sandbox, 0);
		sandbox->account->provider->release(sandbox);
		free(sandbox->id);
		free(sandbox->shown_id);
		free(sandbox->name);
		free(sandbox->labels);
		free(sandbox);
	}
	first_ever = NULL;
	last_ever = &first_ever;
	emu_table_clear(&sandboxes, NULL);
	emu_table_clear(&accounts, account_release);
}
