/*
 * mapping.h
 *		sbx_mapping rows: which sandbox our id stands for, and whose it is.
 */
#ifndef SBX_MAPPING_H
#define SBX_MAPPING_H

#include "compat.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

typedef struct SbxMapping
{
	const char *id;
	const char *provider_id;
	const char *provider_sandbox_id;
	const char *name; /* NULL = none */
	Jsonb *labels;
	const char *state;
	Jsonb *request;           /* without launch.env; only written */
	Jsonb *env;               /* only written, as a hash; NULL = none */
	const char *launch_token; /* NULL = the id was made for it, so no other has it */
	Oid owner;
	TimestampTz created_at; /* only read */
} SbxMapping;

/*
 * Take the lock of a sandbox id until the end of the transaction.  False when it
 * is taken: by another transaction or by an earlier call of this one.
 */
extern bool sbx_mapping_lock(const char *id);

/* Insert a row; raises what the table raises. */
extern void sbx_mapping_insert(const SbxMapping *mapping);

/* Is there a row by now, whoever owns it?  Newest snapshot. */
extern bool sbx_mapping_exists(const char *id);

/*
 * The row of a sandbox that the current user may use.  Raises SB010 when the id
 * is malformed, unknown or somebody else's, with the same words: there is no way
 * to find out what exists.
 */
extern SbxMapping *sbx_mapping_get(const char *id);

/* Keep another state, and the provider's own id.  A row that is gone by now is fine. */
extern void
sbx_mapping_update(const char *id, const char *state, const char *provider_sandbox_id);

extern void sbx_mapping_delete(const char *id);

/*
 * Which of a provider's sandboxes are ours: for each of its ids our own, or NULL where
 * there is no row that the current user may use.
 */
extern const char **
sbx_mapping_find(const char *provider_id, const char *const *sandbox_ids, int count);

/*
 * The label that marks every sandbox of this database at a provider:
 * "<installation id>-<database OID>-<system identifier>".
 */
extern char *sbx_mapping_database_label(void);

#endif /* SBX_MAPPING_H */
