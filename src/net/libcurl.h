/*
 * libcurl.h
 *		What holds for libcurl in the whole process.
 */
#ifndef SBX_NET_LIBCURL_H
#define SBX_NET_LIBCURL_H

#include "compat.h"

#include <signal.h>

/*
 * Initialize libcurl once, with allocators that wipe what they free.  Raises an ERROR
 * when the library that was loaded cannot be used.
 */
extern void sbx_libcurl_initialize(void);

/* Which library it is, without initializing it. */
typedef struct SbxLibcurlFacts
{
	const char *version;
	const char *tls;      /* NULL = none */
	const char *resolver; /* "threaded", "c-ares" or "synchronous" */
	const char *ca_file;  /* its own choice; NULL = none */
} SbxLibcurlFacts;

extern void sbx_libcurl_describe(SbxLibcurlFacts *facts);

/*
 * Around every call that may start a thread or a connection: a resolver thread
 * inherits the mask of the moment and must never run a server's signal handler.
 */
extern void sbx_libcurl_block_signals(sigset_t *saved);
extern void sbx_libcurl_restore_signals(const sigset_t *saved);

/* Milliseconds of a clock that nobody sets. */
extern int64 sbx_libcurl_now(void);

#endif /* SBX_NET_LIBCURL_H */
