/*
 * credential.h
 *		Provider credentials in the memory of the session, and nowhere else.
 *
 * Long-lived copies exist only in mappings that are left out of core dumps.
 * They are wiped when replaced, cleared, on DISCARD ALL / RESET ALL, when the
 * (sub)transaction that set them rolls back, at the end of the transaction when
 * set locally, and at backend exit.
 */
#ifndef SBX_CREDENTIAL_H
#define SBX_CREDENTIAL_H

#include "compat.h"

#include "providers/provider.h"

/* The text of one sbx_set_credential: larger than any token in use. */
#define SBX_MAX_CREDENTIAL 16384

typedef struct SbxCredential SbxCredential;

typedef enum SbxCredentialScope
{
	SBX_SCOPE_SESSION,
	SBX_SCOPE_LOCAL /* ends with the transaction */
} SbxCredentialScope;

/* Called by _PG_init. */
extern void sbx_credential_define_gucs(void);

/*
 * Remember a credential for a provider; values in the order of its kind's
 * fields, NULL = not given.  The caller wipes its own copies.
 */
extern void sbx_credential_set(const char *provider_id, const char *const *values,
                               SbxCredentialScope scope);

/* Forget one's own credential for a provider, or all of one's own (NULL). */
extern void sbx_credential_clear(const char *provider_id);

/*
 * The credential that the current user may use now, or NULL.  Bound to the
 * session user, the outer user and the role that set it.
 */
extern SbxCredential *sbx_credential_find(const char *provider_id);

/* Values in the order of the kind's fields. */
extern const char *const *sbx_credential_values(const SbxCredential *credential);

/*
 * A pinned credential stays readable, also when it is cleared meanwhile, until it
 * is unpinned.  Neither can fail.
 */
extern void sbx_credential_pin(SbxCredential *credential);
extern void sbx_credential_unpin(SbxCredential *credential);

/* Walk over the usable ones: start with NULL; NULL ends. */
extern SbxCredential *sbx_credential_next(SbxCredential *previous);
extern const char *sbx_credential_provider(const SbxCredential *credential);
extern SbxCredentialScope sbx_credential_scope(const SbxCredential *credential);

#endif /* SBX_CREDENTIAL_H */
