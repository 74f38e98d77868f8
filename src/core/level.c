/*
 * level.c
 *		How full is full: the words for a part of a limit that is used.
 */
#include "core/level.h"

#include <math.h>

static const char *const levels[] = {"unknown", "ok", "warning", "critical"};

double
sbx_level_ratio(double used, double limit)
{
	if (!isfinite(used) || isnan(limit))
		return NAN;
	return limit <= 0 ? 1 : used / limit;
}

/* 11 of 10 are 110 percent, where a hundred times the ratio is a little more. */
double
sbx_level_percent(double used, double limit)
{
	double percent = 100 * used / limit;

	return limit > 0 && isfinite(percent) ? percent
	                                      : 100 * sbx_level_ratio(used, limit);
}

const char *
sbx_level_of(double used, double limit)
{
	double ratio = sbx_level_ratio(used, limit);

	if (isnan(ratio))
		return levels[0];
	if (ratio >= SBX_LEVEL_CRITICAL)
		return levels[3];
	return ratio >= SBX_LEVEL_WARNING ? levels[2] : levels[1];
}

static int
rank(const char *level)
{
	int i = lengthof(levels) - 1;

	while (i > 0 && strcmp(levels[i], level) != 0)
		i--;
	return i;
}

const char *
sbx_level_worse(const char *one, const char *other)
{
	return rank(other) > rank(one) ? other : one;
}
