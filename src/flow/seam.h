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

#endif /* SBX_SEAM_H */
