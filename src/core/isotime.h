/*
 * isotime.h
 *		Reading times: those that providers write, and how long something may take.
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

/*
 * An interval as milliseconds; a month has 30 days, as everywhere in intervals.  False =
 * not from 1 ms to a day, the longest time that anything here may take.
 */
extern bool sbx_isotime_interval_ms(const Interval *interval, int64 *ms);

#endif /* SBX_ISOTIME_H */
