/*
 * registry.h
 *		sbx_provider rows: read, written, validated.
 */
#ifndef SBX_REGISTRY_H
#define SBX_REGISTRY_H

#include "core/admission.h"
#include "core/route.h"
#include "providers/provider.h"

/*
 * Labels that the router puts on a sandbox beside the caller's: id, database, launch, and
 * the name of a request that has one.
 */
#define SBX_ROUTER_LABELS_ALWAYS 3
#define SBX_ROUTER_LABELS        (SBX_ROUTER_LABELS_ALWAYS + 1)

/* A registered pool, ready to use. */
typedef struct SbxProvider
{
	SbxPool pool; /* pool.enabled: and its registration may be used now */
	const SbxProviderKind *kind;
	SbxLaunchAbility launch;
	SbxFieldValue settings[SBX_MAX_SETTINGS];
	SbxCapacity capacity;
	bool enabled;
	Oid registered_by;
} SbxProvider;

/* All of them, in the order of their ids. */
typedef struct SbxRegistry
{
	SbxProvider *providers;
	int count;
	SbxDeclared *declared;
} SbxRegistry;

/* The columns of a row as written; NULL documents are SQL NULL. */
typedef struct SbxRegistration
{
	const char *id;
	const char *kind;
	bool enabled;
	Jsonb *settings;
	Jsonb *capabilities;
	Jsonb *signals;
	Jsonb *capacity;
	Oid registered_by;
} SbxRegistration;

/*
 * Validate a registration and turn it into a provider, in the current memory context.
 * Raises SB013 with the path.
 */
extern void sbx_registry_parse(const SbxRegistration *registration,
                               SbxDeclared *declared, SbxProvider *provider);

/*
 * All pools, parsed once per backend and again after a change.  Registrations behave
 * like catalogs: the newest committed state and one's own changes, whatever the
 * transaction's snapshot.  Valid until the current memory context is reset.
 */
extern const SbxRegistry *sbx_registry_get(void);

/* Which of them has that id; -1 when none has. */
extern int sbx_registry_index(const SbxRegistry *registry, const char *id);

/* One of them; NULL when there is none. */
extern const SbxProvider *sbx_registry_find(const char *id);

/* One row as it is, locked until the end of the transaction; NULL = there is none. */
extern SbxRegistration *sbx_registry_read_for_update(const char *id);

extern void sbx_registry_insert(const SbxRegistration *registration);
extern void sbx_registry_update(const SbxRegistration *registration);

/* false = there was none.  Raises SB013 when sandboxes still run there. */
extern bool sbx_registry_delete(const char *id);

/*
 * An endpoint override counts only while the role that wrote it is superuser:
 * checked when a row is written (raises 42501) and when it is used.
 */
extern void sbx_registry_check_written(const SbxProvider *provider);

/* Raises 42501 when it is not usable. */
extern void sbx_registry_check_usable(const SbxProvider *provider);
extern bool sbx_registry_is_usable(const SbxProvider *provider);

#endif /* SBX_REGISTRY_H */
