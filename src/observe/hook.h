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
 * The function of that name that takes a jsonb and returns one; InvalidOid = none, or in
 * a temporary schema.
 */
extern Oid sbx_hook_find(const char *schema, const char *name);

/*
 * Call function(argument) with the rights of a role, inside a security-restricted
 * operation, with the search_path pg_catalog, pg_temp.
 *
 * true: it returned; *result is allocated in the current context, or NULL for SQL NULL.
 * false: there is no such function or role, or it raised; whatever it did is rolled
 * back and what it said is nowhere.  Only a cancel, a timeout or a termination is raised
 * again.  Everything else in the session is as it was before, either way.
 */
extern bool
sbx_hook_call(const char *function, Oid role, Jsonb *argument, Jsonb **result);

#endif /* SBX_HOOK_H */
