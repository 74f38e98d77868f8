/*
 * session.c
 *		What every SQL-callable function that may talk to a provider shares.
 */
#include "flow/session.h"

#include <unistd.h>

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "flow/cleanup.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "observe/error.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "net/json.h"

/* --- settings ------------------------------------------------------------- */

int sbx_abort_cleanup_timeout = 2000;
static int max_response_kb = 4096;
static int max_script_output_kb = 4096;
static int max_file_size_kb = 65536;
static bool allow_private_addresses = false;
static bool allow_http = false;
static char *ca_file = NULL;
static char *proxy = NULL;

typedef enum Trace
{
	TRACE_OFF,
	TRACE_REQUESTS
} Trace;

static const struct config_enum_entry trace_options[] = {
    {"off", TRACE_OFF, false}, {"requests", TRACE_REQUESTS, false}, {NULL, 0, false}};

static int trace = TRACE_OFF;

/* A gigabyte: the largest text there can be. */
#define MAX_SIZE_KB (1024 * 1024 - 1)

void
sbx_session_define_gucs(void)
{
	DefineCustomIntVariable("sbx_router.abort_cleanup_timeout",
	                        "Limits how long a rollback may take to destroy sandboxes.",
	                        "One budget for a whole rollback, savepoints included.",
	                        &sbx_abort_cleanup_timeout, 2000, 0, 60000, PGC_USERSET,
	                        GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("sbx_router.max_response",
	                        "Largest answer accepted from a provider's control plane.",
	                        NULL, &max_response_kb, 4096, 16, MAX_SIZE_KB, PGC_SUSET,
	                        GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable(
	    "sbx_router.max_script_output", "Bytes kept of each output stream of a script.",
	    "What is longer is cut, and marked as truncated.", &max_script_output_kb, 4096,
	    1, 64 * 1024, PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable(
	    "sbx_router.max_file_size", "Largest file that is uploaded or downloaded.",
	    "A file is held in memory more than once on its way.", &max_file_size_kb, 65536,
	    1, 128 * 1024, PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomBoolVariable("sbx_router.allow_private_addresses",
	                         "Allows requests to loopback and private addresses.",
	                         "For an emulator or a provider inside one's own network.",
	                         &allow_private_addresses, false, PGC_SUSET, 0, NULL, NULL,
	                         NULL);
	DefineCustomBoolVariable("sbx_router.allow_http",
	                         "Allows plain http to other hosts than loopback.",
	                         "Credentials then travel unencrypted.", &allow_http, false,
	                         PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable(
	    "sbx_router.ca_file", "File of CA certificates to verify providers with.",
	    "Empty means the system's own.", &ca_file, "", PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("sbx_router.proxy", "Proxy that requests go through.",
	                           "Empty means none; the environment is never asked.",
	                           &proxy, "", PGC_SUSET, GUC_SUPERUSER_ONLY, NULL, NULL,
	                           NULL);
	DefineCustomEnumVariable(
	    "sbx_router.trace", "Logs each request to a provider.",
	    "Method, host, path, status and times; no body, no header, "
	    "no credential.",
	    &trace, TRACE_OFF, trace_options, PGC_SUSET, 0, NULL, NULL, NULL);
}

size_t
sbx_session_max_script_output(void)
{
	return (size_t) max_script_output_kb * 1024;
}

size_t
sbx_session_max_file_size(void)
{
	return (size_t) max_file_size_kb * 1024;
}

const SbxEngineSettings *
sbx_session_settings(void)
{
	static SbxEngineSettings settings;

	settings.max_response = (size_t) max_response_kb * 1024;
	settings.allow_private_addresses = allow_private_addresses;
	settings.allow_http = allow_http;
	settings.ca_file = ca_file == NULL ? "" : ca_file;
	settings.proxy = proxy == NULL ? "" : proxy;
	settings.trace = trace == TRACE_REQUESTS;
	return &settings;
}

/* --- entry ------------------------------------------------------------------ */

/*
 * The statement may hold a key or a script, the context what PL/pgSQL made of it.
 * The client still gets its context: it wrote it.
 */
static void
hide_from_log(void *arg)
{
	errhidestmt(true);
	errhidecontext(true);
}

void
sbx_session_begin(SbxCall *call)
{
	sbx_cleanup_new_call();
	call->callback.callback = hide_from_log;
	call->callback.arg = NULL;
	call->callback.previous = error_context_stack;
	error_context_stack = &call->callback;
}

void
sbx_session_end(SbxCall *call)
{
	error_context_stack = call->callback.previous;
}

void
sbx_session_refuse_effects(const char *function)
{
	PreventCommandIfReadOnly(function);
	PreventCommandDuringRecovery(function);
	PreventCommandIfParallelMode(function);
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
		        (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
		         errmsg("cannot execute %s within a security-restricted operation",
		                function)));
}

/* --- engines ------------------------------------------------------------------ */

static SbxEngine *main_engine = NULL;
static SbxEngine *second_engine = NULL;

void
sbx_session_prepare_engines(void)
{
	sbx_json_init();
	if (main_engine == NULL)
		main_engine = sbx_engine_create();
	if (second_engine == NULL)
		second_engine = sbx_engine_create();
}

SbxEngine *
sbx_session_abort_engine(void)
{
	if (main_engine != NULL && !sbx_engine_is_busy(main_engine))
		return main_engine;
	return second_engine;
}

void
sbx_session_run(SbxOp *op)
{
	sbx_session_run_many(&op, 1, NULL, NULL);
}

typedef struct OpArray
{
	SbxOp **ops;
	SbxEngineReport *report;
	void *report_arg;
} OpArray;

static SbxOp *
next_of_array(void *arg, int index)
{
	return ((OpArray *) arg)->ops[index];
}

static void
report_of_array(void *arg, int finished, int failed)
{
	OpArray *array = arg;

	array->report(array->report_arg, finished, failed);
}

void
sbx_session_run_many(SbxOp **ops, int count, SbxEngineReport *report, void *report_arg)
{
	OpArray array = {ops, report, report_arg};

	sbx_session_run_work(&(SbxEngineWork){count, &array, next_of_array, NULL,
	                                      report == NULL ? NULL : report_of_array});
}

/*
 * A file that cannot be read is our own error, not the provider's: nothing can be
 * verified, so nothing is sent.
 */
static void
check_ca_file(void)
{
	if (ca_file == NULL || ca_file[0] == '\0' || access(ca_file, R_OK) == 0)
		return;
	ereport(ERROR, (errcode_for_file_access(),
	                errmsg("could not access CA file \"%s\": %m", ca_file),
	                errhint("The setting \"%s\" names it.", "sbx_router.ca_file")));
}

void
sbx_session_run_work(const SbxEngineWork *work)
{
	if (work->count == 0)
		return;
	check_ca_file();
	sbx_session_prepare_engines();
	sbx_engine_run(main_engine, work, sbx_session_settings());
}

/* --- access and operations ----------------------------------------------------- */

/*
 * A credential given for a pool that was registered anew with another kind since may
 * lack what this kind needs.
 */
static bool
is_complete(const SbxProviderKind *kind, const SbxCredential *credential)
{
	for (int i = 0; kind->credentials[i].name != NULL; i++)
	{
		if (kind->credentials[i].required &&
		    sbx_credential_values(credential)[i] == NULL)
			return false;
	}
	return true;
}

bool
sbx_session_has_access(const SbxProvider *provider, SbxAccess *access)
{
	access->provider = provider;
	access->credential = sbx_credential_find(provider->pool.id);
	if (access->credential == NULL ||
	    !is_complete(provider->kind, access->credential) ||
	    !sbx_registry_is_usable(provider))
		return false;
	access->account.settings = provider->settings;
	access->account.credentials = sbx_credential_values(access->credential);
	return true;
}

void
sbx_session_access(const SbxProvider *provider, SbxAccess *access)
{
	StringInfoData detail;

	if (sbx_session_has_access(provider, access))
		return;
	sbx_registry_check_usable(provider);
	sbx_detail_open(&detail);
	sbx_detail_text(&detail, "providerId", provider->pool.id);
	sbx_detail_close(&detail);
	ereport(ERROR, (errcode(SBX_ERRCODE_CREDENTIAL_MISSING),
	                errmsg("no credential for provider \"%s\" in this session",
	                       provider->pool.id),
	                errdetail_internal("%s", detail.data),
	                errhint("Use sbx_set_credential() as the role that needs it.")));
}

typedef struct HeldOp
{
	MemoryContextCallback callback;
	SbxOp *op;
	SbxCredential *credential;
} HeldOp;

static void
release_held(void *arg)
{
	HeldOp *held = arg;

	sbx_op_free(held->op);
	sbx_credential_unpin(held->credential);
}

SbxOp *
sbx_session_hold(SbxOp *op, SbxCredential *credential)
{
	HeldOp *held;

	if (op == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	held = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(HeldOp),
	                                  MCXT_ALLOC_NO_OOM);
	if (held == NULL)
	{
		sbx_op_free(op);
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	}
	held->op = op;
	held->credential = credential;
	sbx_credential_pin(credential);
	held->callback.func = release_held;
	held->callback.arg = held;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &held->callback);
	return op;
}

/* --- random ---------------------------------------------------------------------- */

char *
sbx_session_random_hex(int bytes)
{
	unsigned char random[16];
	char *hex = palloc(2 * sizeof(random) + 1);

	Assert(bytes <= (int) sizeof(random));
	if (!pg_strong_random(random, bytes))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
		                errmsg("could not generate random bytes")));
	for (int i = 0; i < bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", random[i]);
	return hex;
}

/* --- text ------------------------------------------------------------------------ */

char *
sbx_session_to_utf8(const char *string)
{
	return pg_server_to_any(string, strlen(string), PG_UTF8);
}

#define REPLACEMENT "\xEF\xBF\xBD"

/* Valid UTF-8 without NUL; each bad byte becomes one U+FFFD. */
static char *
clean_utf8(const char *bytes, size_t length, size_t *clean_length)
{
	/* Worst case: every byte is replaced by three. */
	char *clean = palloc_extended(length * 3 + 1, MCXT_ALLOC_HUGE);
	size_t used = 0;
	size_t i = 0;

	while (i < length)
	{
		int size = pg_utf_mblen((const unsigned char *) bytes + i);

		CHECK_FOR_INTERRUPTS();
		if (bytes[i] != '\0' && i + size <= length &&
		    pg_utf8_islegal((const unsigned char *) bytes + i, size))
		{
			memcpy(clean + used, bytes + i, size);
			used += size;
			i += size;
		}
		else
		{
			memcpy(clean + used, REPLACEMENT, 3);
			used += 3;
			i++;
		}
	}
	clean[used] = '\0';
	*clean_length = used;
	return clean;
}

/* One character at a time, because one that does not exist there raises. */
static text *
to_server_encoding(char *utf8, size_t length)
{
	Oid conversion = FindDefaultConversionProc(PG_UTF8, GetDatabaseEncoding());
	char *converted;
	size_t used = 0;
	size_t i = 0;

	if (!OidIsValid(conversion))
		return cstring_to_text_with_len(utf8, length);
	converted = palloc_extended(length * MAX_CONVERSION_GROWTH + 1, MCXT_ALLOC_HUGE);
	while (i < length)
	{
		int size = pg_utf_mblen((unsigned char *) utf8 + i);
		unsigned char one[MAX_CONVERSION_GROWTH * 4 + 1];
		int done;

		CHECK_FOR_INTERRUPTS();
		done = pg_do_encoding_conversion_buf(conversion, PG_UTF8, GetDatabaseEncoding(),
		                                     (unsigned char *) utf8 + i, size, one,
		                                     sizeof(one), true);
		if (done == size)
		{
			size_t bytes = strlen((char *) one);

			memcpy(converted + used, one, bytes);
			used += bytes;
		}
		else
			converted[used++] = '?';
		i += size;
	}
	return cstring_to_text_with_len(converted, used);
}

text *
sbx_session_output_text(const char *bytes, size_t length)
{
	size_t clean_length;
	char *clean = clean_utf8(bytes, length, &clean_length);

	if (GetDatabaseEncoding() == PG_UTF8 || GetDatabaseEncoding() == PG_SQL_ASCII)
		return cstring_to_text_with_len(clean, clean_length);
	return to_server_encoding(clean, clean_length);
}

text *
sbx_session_provider_text(const char *utf8)
{
	return sbx_session_output_text(utf8, strlen(utf8));
}

SbxPair *
sbx_session_wire_pairs(const SbxText *pairs, int count, int extra)
{
	SbxPair *wire = palloc(sizeof(SbxPair) * (count + extra + 1));

	for (int i = 0; i < count; i++)
	{
		wire[i].key = sbx_session_to_utf8(pairs[i].key);
		wire[i].value = sbx_session_to_utf8(pairs[i].value);
	}
	return wire;
}
