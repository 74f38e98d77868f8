/*
 * seam.h
 *		The functions of users that registrations and policies name.
 */
#ifndef SBX_SEAM_H
#define SBX_SEAM_H

#include "compat.h"

#include "observe/error.h"

/*
 * Refuse at that path (SB013) what is not the name of a function that takes one argument
 * of that type, returns a jsonb, and may be called by that role.
 *
 * restoring: this may be a dump, where privileges on schemas are not there yet; they are
 * looked at when it is called.
 */
extern void sbx_seam_check(SbxDocument document, const char *path, const char *function,
                           Oid argument_type, Oid role, bool restoring);

/*
 * Such a function runs with the rights of the role that answers for the row: nobody lends
 * his own to one that somebody else has chosen.  Refuses (SB013) a row that goes over to
 * another role and keeps its function; NULL = it has none.
 */
extern void
sbx_seam_refuse_lent(SbxDocument document, const char *path, const char *function,
                     Oid role, const char *former, Oid former_role);

#endif /* SBX_SEAM_H */
