/*
 * hook.h
 *		Calling SQL functions of users: never with our rights, never with our errors.
 */
#ifndef SBX_HOOK_H
#define SBX_HOOK_H

#include "compat.h"

#include "utils/jsonb.h"

/*
 * Longest name of a function, with its NUL: two identifiers, each of which quoting can
 * make twice as long, in quotes, and a dot.
 */
#define SBX_MAX_HOOK_NAME (2 * (2 * NAMEDATALEN + 2) + 2)

/*
 * The parts of "schema.name", either of which may be quoted; false = it is not that, or
 * too long.
 */
extern bool sbx_hook_split(const char *function, char **schema, char **name);

/*
 * The function of that name that takes one argument of that type and returns a jsonb;
 * InvalidOid = none, or in a temporary schema.
 */
extern Oid sbx_hook_find(const char *schema, const char *name, Oid argument_type);

/* A function to call, and how. */
typedef struct SbxHook
{
	const char *function; /* "schema.name" */
	Oid argument_type;
	Oid role;         /* with whose rights */
	int64 timeout_ms; /* 0 = as long as the statement may take */
} SbxHook;

typedef enum SbxHookOutcome
{
	SBX_HOOK_RETURNED,
	SBX_HOOK_FAILED, /* there is no such function or role, or it raised */
	SBX_HOOK_TIMED_OUT
} SbxHookOutcome;

/*
 * Call function(argument) inside a security-restricted operation, with the search_path
 * pg_catalog, pg_temp.
 *
 * When it returned, *result is allocated in the current context, or NULL for SQL NULL.
 * Else whatever it did is rolled back and what it said is nowhere.  Only a cancel, a
 * timeout of the statement or a termination is raised again.  Everything else in the
 * session is as it was before, either way.
 */
extern SbxHookOutcome
sbx_hook_call(const SbxHook *hook, Datum argument, Jsonb **result);

#endif /* SBX_HOOK_H */
