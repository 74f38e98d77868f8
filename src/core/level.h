/*
 * level.h
 *		How full is full: the words for a part of a limit that is used.
 */
#ifndef SBX_LEVEL_H
#define SBX_LEVEL_H

#include "compat.h"

/* The part of the limit from which on a level holds. */
#define SBX_LEVEL_WARNING  0.80
#define SBX_LEVEL_CRITICAL 0.95

/*
 * used / limit.  A limit that admits nothing (0 or less) is used up: 1.  NaN = not known:
 * used is not finite, or limit is NaN, which stands for none.
 */
extern double sbx_level_ratio(double used, double limit);
extern double sbx_level_percent(double used, double limit);

/* "ok", "warning", "critical"; "unknown" when the ratio is not known. */
extern const char *sbx_level_of(double used, double limit);

/* The worse one of two levels; any other is worse than "unknown". */
extern const char *sbx_level_worse(const char *one, const char *other);

#endif /* SBX_LEVEL_H */
