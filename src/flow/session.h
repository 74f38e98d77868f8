/*
 * session.h
 *		What every SQL-callable function that may talk to a provider shares: entry
 *		checks, settings, the two engines, operations tied to memory contexts.
 */
#ifndef SBX_SESSION_H
#define SBX_SESSION_H

#include "compat.h"

#include "net/engine.h"
#include "store/credential.h"
#include "store/registry.h"

/* Called by _PG_init. */
extern void sbx_session_define_gucs(void);

/* Settings that others need as numbers. */
extern int sbx_abort_cleanup_timeout; /* ms */

/* Bytes kept of each output stream of a script. */
extern size_t sbx_session_max_script_output(void);

/* Bytes of the largest file that is uploaded or downloaded. */
extern size_t sbx_session_max_file_size(void);

typedef struct SbxCall
{
	ErrorContextCallback callback;
} SbxCall;

/*
 * Around the body of a function that handles requests or credentials: statement
 * and context stay out of the server log for whatever is reported in between.
 */
extern void sbx_session_begin(SbxCall *call);
extern void sbx_session_end(SbxCall *call);

/*
 * Refuse what can never work: effects outside the database from a read-only
 * transaction (25006), during recovery (25006), in parallel mode (25000) or
 * inside a security-restricted operation (42501).  function is e.g.
 * "sbx_provision()".
 */
extern void sbx_session_refuse_effects(const char *function);

extern const SbxEngineSettings *sbx_session_settings(void);

/*
 * Make both engines.  The second one serves abort cleanup when the first is
 * still in use, which it is when a backend is terminated in the middle of a run.
 */
extern void sbx_session_prepare_engines(void);

/* The engine that abort may use now; NULL when there is none. */
extern SbxEngine *sbx_session_abort_engine(void);

/* Run one operation to its end.  Raises only what the server raises. */
extern void sbx_session_run(SbxOp *op);

/* The same for any number at once; report may be NULL. */
extern void
sbx_session_run_many(SbxOp **ops, int count, SbxEngineReport *report, void *report_arg);

/* The same for operations that are made when their turn comes. */
extern void sbx_session_run_work(const SbxEngineWork *work);

/* A provider with its credential, ready for its operations. */
typedef struct SbxAccess
{
	const SbxProvider *provider;
	SbxCredential *credential;
	SbxAccount account;
} SbxAccess;

/*
 * Raises SB011 without a usable credential, 42501 when the registration's
 * endpoint override does not count any more.
 */
extern void sbx_session_access(const SbxProvider *provider, SbxAccess *access);

/* The same, but false in either case. */
extern bool sbx_session_has_access(const SbxProvider *provider, SbxAccess *access);

/*
 * Free an operation, and unpin its credential, when the current memory context
 * goes.  NULL means out of memory: raises 53200.  Returns op.
 */
extern SbxOp *sbx_session_hold(SbxOp *op, SbxCredential *credential);

/* So many bytes (at most 16) of the strong random source, as lower-case hex digits. */
extern char *sbx_session_random_hex(int bytes);

/* Text to and from the wire, which is UTF-8. */
extern char *sbx_session_to_utf8(const char *string);

/*
 * Provider bytes as text of the database: what is no valid UTF-8, U+0000 and
 * characters that the server encoding lacks become U+FFFD (or ? where the
 * encoding has no such character).
 */
extern text *sbx_session_output_text(const char *bytes, size_t length);

/* The same for what ends with a NUL. */
extern text *sbx_session_provider_text(const char *utf8);

/* Pairs as the wire has them, with room for so many more. */
extern SbxPair *sbx_session_wire_pairs(const SbxText *pairs, int count, int extra);

#endif /* SBX_SESSION_H */
