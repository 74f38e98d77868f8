/*
 * isotime.h
 *		Reading the times that providers write.
 */
#ifndef SBX_ISOTIME_H
#define SBX_ISOTIME_H

#include "compat.h"

#include "utils/timestamp.h"

/*
 * YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM), nothing else: the server's own
 * reader takes far more, by the session's settings, and raises.  A fraction is rounded
 * to microseconds.  False = malformed, no such day or time, or out of range.
 */
extern bool sbx_isotime_parse(const char *text, TimestampTz *time);

#endif /* SBX_ISOTIME_H */
