/*
 * sandbox.h
 *		Accounts, sandboxes, names and quotas, common to all providers.
 *
 * Nothing is forgotten before a reset: the audit lists every sandbox ever
 * made.  To be used with the emulator's lock held.
 */
#ifndef EMU_SANDBOX_H
#define EMU_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest.h"
#include "reactor.h"
#include "table.h"
#include "text.h"

struct EmuProvider;
typedef struct EmuSandbox EmuSandbox;

typedef struct EmuResources
{
	double cpu;
	double memory; /* in the provider's own unit, as is disk */
	double disk;
} EmuResources;

/* Limits per account; negative means none. */
typedef struct EmuQuota
{
	double cpu;
	double memory;
	double disk;
	double sandboxes;
} EmuQuota;

#define EMU_NO_QUOTA                                                                   \
	{                                                                                  \
		-1, -1, -1, -1                                                                 \
	}

typedef struct EmuAccount
{
	const struct EmuProvider *provider;
	char digest[17];        /* names the account without its key */
	EmuTable names;         /* of EmuName */
	EmuSandbox *first_live; /* newest first */
	size_t live_count;
	EmuResources used;
	size_t slots_used;           /* sandboxes that hold a slot */
	EmuSandbox *first_lingering; /* deleted, but still in lagging lists */
} EmuAccount;

typedef struct EmuName
{
	unsigned creates;   /* create requests seen for it */
	EmuSandbox *holder; /* the live sandbox of that name, or NULL */
} EmuName;

struct EmuSandbox
{
	EmuAccount *account;
	uint64_t serial; /* order of creation */
	char *id;
	char *shown_id; /* what clients know it by, NULL: the id */
	char *name;
	EmuName *name_record;
	char *labels; /* JSON object */
	int64_t created_ms;
	int64_t destroyed_ms;
	int64_t expired_ms; /* nothing but its entry is left since then; 0: there is more */
	bool alive;
	EmuResources resources;
	EmuResources reserved; /* the part counted against the quota now */
	bool holds_slot;       /* for providers that count only some sandboxes */
	EmuGuest *guest;       /* NULL until something was to be run */
	void *details;         /* of the provider */
	bool keeps_entry;      /* lists show it even when it is destroyed */

	EmuSandbox *next_live;
	EmuSandbox *previous_live;
	EmuSandbox *next_lingering;
	EmuSandbox *next_ever;
};

extern EmuAccount *emu_account(const struct EmuProvider *provider, const char *key);
extern EmuAccount *
emu_account_if_known(const struct EmuProvider *provider, const char *key);

/* The status by which a key is refused that begins with bad-, denied- or limited-. */
#define EMU_KEY_ACCEPTED 0
extern int emu_key_refusal(const char *key);

extern EmuName *emu_account_name(EmuAccount *account, const char *name);

/*
 * The sandbox gets a random UUID as id, or what its provider makes instead,
 * and that as its name if name is NULL.
 */
extern EmuSandbox *
emu_sandbox_create(EmuAccount *account, const char *name, const char *labels,
                   const EmuResources *resources);

/*
 * What a list shows that lags by so much, newest first; an array to be freed.
 * New ones are not there yet then, and deleted ones still are: those that keep
 * their entry even without a lag, as their provider shows them until it is gone.
 */
extern EmuSandbox **
emu_account_listed(EmuAccount *account, int64_t lag_ms, size_t *count);

/* A live one; of any account if account is NULL. */
extern EmuSandbox *emu_sandbox_by_id(const EmuAccount *account, const char *id);
extern EmuSandbox *emu_sandbox_by_name(const EmuAccount *account, const char *name);

/* Changes what counts against the quota. */
extern void emu_sandbox_reserve(EmuSandbox *sandbox, const EmuResources *resources);
extern void emu_sandbox_hold_slot(EmuSandbox *sandbox, bool hold);

/*
 * From here on it is dead: its processes end and its files go.  With a delay
 * lists may still show it for that long.
 */
extern void emu_sandbox_destroy(EmuSandbox *sandbox, int64_t linger_ms);
extern EmuGuest *
emu_sandbox_guest(EmuSandbox *sandbox, const char *home, const char *user);

extern void emu_sandbox_audit(EmuText *text);
extern void emu_sandbox_reset(void);

#endif
