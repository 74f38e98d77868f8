/*
 * call.h
 *		Arguments and results of the functions that people call.
 */
#ifndef SBX_CALL_H
#define SBX_CALL_H

#include "compat.h"

#include "core/jsonread.h"
#include "store/registry.h"

/* The path of an argument, for core/jsonread.h. */
#define SBX_CALL_PATH(name) (&(const SbxPath){SBX_DOCUMENT_ARGUMENT, NULL, (name)})

/* SB001, DETAIL {"path","reason"}: the argument of that name is refused. */
extern void sbx_call_refuse(const char *name, SbxReason reason) pg_attribute_noreturn();

/*
 * An interval as milliseconds, from 1 ms to a day; a month has 30 days, as everywhere
 * in intervals.  NULL gives the default.
 */
extern int64
sbx_call_ms(FunctionCallInfo fcinfo, int n, const char *name, int64 absent);

/*
 * What becomes part of a path at the provider: one to `most` of [A-Za-z0-9_-].  NULL
 * gives NULL.
 */
extern char *
sbx_call_word(FunctionCallInfo fcinfo, int n, const char *name, size_t most);

/* The same for the name of a session: at most 64, and none that is the provider's. */
extern char *sbx_call_session_name(FunctionCallInfo fcinfo, int n, const char *name);

/*
 * The registered provider that an argument names; raises SB013 for NULL and for one that
 * is not registered.
 */
extern const SbxProvider *sbx_call_provider(FunctionCallInfo fcinfo, int n);

/* The same of a registry, for an argument of that name. */
extern const SbxProvider *
sbx_call_find_provider(const SbxRegistry *registry, const char *id, const char *name);

/* The one row of a function that returns a record. */
extern Datum sbx_call_row(FunctionCallInfo fcinfo, Datum *values, bool *nulls);

#endif /* SBX_CALL_H */
