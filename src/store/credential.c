/*
 * credential.c
 *		Provider credentials in the memory of the session, and nowhere else.
 *
 * Lifetime follows a number held in an internal setting.  Each credential takes
 * the next number and sets it, by SET or SET LOCAL; whatever takes the setting
 * back (ROLLBACK, the end of the transaction, RESET ALL, DISCARD ALL) calls the
 * assign hook with the number valid now, and credentials with higher numbers are
 * wiped.  So the server's own rules for settings decide, savepoints included.
 */
#include "store/credential.h"

#include <limits.h>
#include <sys/mman.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/guc.h"

#define GENERATION_GUC "sbx_router.credential_generation"

struct SbxCredential
{
	SbxCredential *next; /* all of them, newest first: generations descend */
	SbxCredential *previous;
	SbxCredential *next_in_bucket; /* newest first, too */
	int bucket;
	size_t size; /* of the mapping that holds all of it */
	int generation;
	int pins;
	bool forgotten; /* no longer found; waits for the last unpin */
	SbxCredentialScope scope;
	Oid session_user;
	Oid outer_user;
	Oid setting_role;
	const char *values[SBX_MAX_CREDENTIALS];
	char *provider_id;
	char bytes[FLEXIBLE_ARRAY_MEMBER];
};

static SbxCredential *credentials = NULL;

/* By provider id.  Fixed, because taking one out must not allocate. */
#define BUCKETS 4096
static SbxCredential *buckets[BUCKETS];

/* Settings. */
static int current_generation = 0;
static bool session_credentials = true;

/* True while we change the setting ourselves. */
static bool changing_generation = false;
static int last_generation = 0;

/* --- wiping: nothing here may fail or allocate ------------------------------ */

static void
wipe(SbxCredential *credential)
{
	size_t size = credential->size;

	explicit_bzero(credential, size);
	munmap(credential, size);
}

/* Take it out of the lists; its bytes go with the last pin. */
static void
forget(SbxCredential *credential)
{
	SbxCredential **link = &buckets[credential->bucket];

	while (*link != credential)
		link = &(*link)->next_in_bucket;
	*link = credential->next_in_bucket;
	if (credential->previous == NULL)
		credentials = credential->next;
	else
		credential->previous->next = credential->next;
	if (credential->next != NULL)
		credential->next->previous = credential->previous;
	credential->forgotten = true;
	if (credential->pins == 0)
		wipe(credential);
}

static void
assign_generation(int newval, void *extra)
{
	while (credentials != NULL && credentials->generation > newval)
		forget(credentials);
}

/*
 * Nobody but us sets it: a value from ALTER ROLE ... SET would be the reset value
 * and make DISCARD ALL keep the credentials.  Parallel workers repeat the
 * leader's value when they start; they hold no credentials.
 */
static bool
check_generation(int *newval, void **extra, GucSource source)
{
	if (*newval == 0 || changing_generation || InitializingParallelWorker)
		return true;
	GUC_check_errdetail("This setting cannot be changed.");
	return false;
}

static void
wipe_at_exit(int code, Datum arg)
{
	while (credentials != NULL)
		forget(credentials);
}

void
sbx_credential_define_gucs(void)
{
	DefineCustomIntVariable(GENERATION_GUC,
	                        "Ties credentials to the session's settings.", NULL,
	                        &current_generation, 0, 0, INT_MAX, PGC_USERSET,
	                        GUC_NO_SHOW_ALL | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
	                        check_generation, assign_generation, NULL);
	DefineCustomBoolVariable("sbx_router.session_credentials",
	                         "Allows credentials that live as long as the session.",
	                         "Turn this off where a transaction pooler shares sessions "
	                         "between clients.",
	                         &session_credentials, true, PGC_SUSET, 0, NULL, NULL,
	                         NULL);
}

/* --- storing ------------------------------------------------------------------ */

static SbxCredential *
allocate(size_t bytes)
{
	size_t size = offsetof(SbxCredential, bytes) + bytes;
	SbxCredential *credential;

	credential =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (credential == MAP_FAILED)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	(void) madvise(credential, size, MADV_DONTDUMP);
	(void) madvise(credential, size, MADV_DONTFORK);
	credential->size = size;
	return credential;
}

/* Copy a value to the end of the credential's bytes. */
static char *
store(SbxCredential *credential, size_t *used, const char *value)
{
	char *copy = credential->bytes + *used;
	size_t length = strlen(value) + 1;

	memcpy(copy, value, length);
	*used += length;
	return copy;
}

/* Take the next number and make it the setting's value in the scope asked for. */
static int
next_generation(SbxCredentialScope scope)
{
	char number[16];

	if (last_generation == INT_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		                errmsg("too many credentials were set in this session")));
	snprintf(number, sizeof(number), "%d", ++last_generation);
	changing_generation = true;
	PG_TRY();
	{
		(void) set_config_option(GENERATION_GUC, number, PGC_USERSET, PGC_S_SESSION,
		                         scope == SBX_SCOPE_LOCAL ? GUC_ACTION_LOCAL
		                                                  : GUC_ACTION_SET,
		                         true, 0, false);
	}
	PG_FINALLY();
	{
		changing_generation = false;
	}
	PG_END_TRY();
	return last_generation;
}

/*
 * A local credential ends with its transaction even where a later SET made the
 * setting's value outlive it.
 */
static void
end_transaction(XactEvent event, void *arg)
{
	SbxCredential *credential = credentials;

	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE ||
	    event == XACT_EVENT_PARALLEL_PRE_COMMIT)
		return;
	while (credential != NULL)
	{
		SbxCredential *next = credential->next;

		if (credential->scope == SBX_SCOPE_LOCAL)
			forget(credential);
		credential = next;
	}
}

static void
register_callbacks(void)
{
	static bool registered = false;

	if (registered)
		return;
	RegisterXactCallback(end_transaction, NULL);

	/* on_proc_exit: abort cleanup, which needs the keys, runs before it. */
	on_proc_exit(wipe_at_exit, (Datum) 0);
	registered = true;
}

/* Bound to who was connected, who they became, and who called. */
static bool
is_own(const SbxCredential *credential)
{
	return credential->session_user == GetSessionUserId() &&
	       credential->outer_user == GetOuterUserId() &&
	       credential->setting_role == GetUserId();
}

static int
bucket_of(const char *provider_id)
{
	return hash_bytes((const unsigned char *) provider_id, strlen(provider_id)) %
	       BUCKETS;
}

/* One's own of a provider. */
static void
forget_own(const char *provider_id, bool one_scope, SbxCredentialScope scope)
{
	SbxCredential *credential = buckets[bucket_of(provider_id)];

	while (credential != NULL)
	{
		SbxCredential *next = credential->next_in_bucket;

		if (is_own(credential) && (!one_scope || credential->scope == scope) &&
		    strcmp(credential->provider_id, provider_id) == 0)
			forget(credential);
		credential = next;
	}
}

static void
forget_all_own(void)
{
	SbxCredential *credential = credentials;

	while (credential != NULL)
	{
		SbxCredential *next = credential->next;

		if (is_own(credential))
			forget(credential);
		credential = next;
	}
}

void
sbx_credential_clear(const char *provider_id)
{
	if (provider_id != NULL)
		forget_own(provider_id, false, SBX_SCOPE_SESSION);
	else
		forget_all_own();
}

/* Raises 42501 where session credentials are switched off. */
static void
check_scope(SbxCredentialScope scope)
{
	if (scope == SBX_SCOPE_SESSION && !session_credentials)
		ereport(
		    ERROR,
		    (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		     errmsg("session credentials are not allowed"),
		     errdetail("The setting \"%s\" is off.", "sbx_router.session_credentials"),
		     errhint("Use sbx_set_local_credential() inside the transaction.")));
}

void
sbx_credential_set(const char *provider_id, const char *const *values,
                   SbxCredentialScope scope)
{
	size_t size = strlen(provider_id) + 1;
	size_t used = 0;
	int generation;
	SbxCredential *credential;

	check_scope(scope);
	register_callbacks();
	for (int i = 0; i < SBX_MAX_CREDENTIALS; i++)
		size += values[i] == NULL ? 0 : strlen(values[i]) + 1;

	/* First what may raise, so that no key is left behind by an error. */
	generation = next_generation(scope);
	credential = allocate(size);
	credential->provider_id = store(credential, &used, provider_id);
	for (int i = 0; i < SBX_MAX_CREDENTIALS; i++)
	{
		if (values[i] != NULL)
			credential->values[i] = store(credential, &used, values[i]);
	}
	credential->scope = scope;
	credential->session_user = GetSessionUserId();
	credential->outer_user = GetOuterUserId();
	credential->setting_role = GetUserId();
	credential->generation = generation;

	/*
	 * It replaces one's own of the same scope, which is simply gone, also after
	 * ROLLBACK.  A local one hides a session's until the transaction ends, as with
	 * SET LOCAL: the newest comes first.
	 */
	forget_own(provider_id, true, scope);
	credential->bucket = bucket_of(provider_id);
	credential->next_in_bucket = buckets[credential->bucket];
	buckets[credential->bucket] = credential;
	credential->next = credentials;
	if (credentials != NULL)
		credentials->previous = credential;
	credentials = credential;
}

/* --- using -------------------------------------------------------------------- */

static bool
is_usable(const SbxCredential *credential)
{
	return is_own(credential) &&
	       (credential->scope == SBX_SCOPE_LOCAL || session_credentials);
}

SbxCredential *
sbx_credential_next(SbxCredential *previous)
{
	SbxCredential *credential = previous == NULL ? credentials : previous->next;

	while (credential != NULL && !is_usable(credential))
		credential = credential->next;
	return credential;
}

SbxCredential *
sbx_credential_find(const char *provider_id)
{
	SbxCredential *credential;

	if (credentials == NULL)
		return NULL;
	credential = buckets[bucket_of(provider_id)];
	while (credential != NULL && (!is_usable(credential) ||
	                              strcmp(credential->provider_id, provider_id) != 0))
		credential = credential->next_in_bucket;
	return credential;
}

const char *const *
sbx_credential_values(const SbxCredential *credential)
{
	return credential->values;
}

const char *
sbx_credential_provider(const SbxCredential *credential)
{
	return credential->provider_id;
}

SbxCredentialScope
sbx_credential_scope(const SbxCredential *credential)
{
	return credential->scope;
}

void
sbx_credential_pin(SbxCredential *credential)
{
	credential->pins++;
}

void
sbx_credential_unpin(SbxCredential *credential)
{
	if (--credential->pins == 0 && credential->forgotten)
		wipe(credential);
}
