/*
 * isotime.c
 *		Reading times: those that providers write, and how long something may take.
 */
#include "core/isotime.h"

#include "utils/datetime.h"

/* Longest time that anything here may take: a day. */
#define MAX_INTERVAL_MS ((int64) 24 * 60 * 60 * 1000)

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Just so many digits, then the separator (0 = none): a number up to most. */
static bool
read_number(const char **text, int digits, char separator, int most, int *number)
{
	*number = 0;
	for (int i = 0; i < digits; i++)
	{
		if (!is_digit(**text))
			return false;
		*number = *number * 10 + (*(*text)++ - '0');
	}
	if (*number > most)
		return false;
	return separator == '\0' || *(*text)++ == separator;
}

/* A point and at least one digit, or nothing at all: microseconds. */
static bool
read_fraction(const char **text, int64 *microseconds)
{
	int64 unit = USECS_PER_SEC / 10;
	bool round_up;

	*microseconds = 0;
	if (**text != '.')
		return true;
	(*text)++;
	if (!is_digit(**text))
		return false;
	for (; is_digit(**text) && unit > 0; (*text)++)
	{
		*microseconds += (**text - '0') * unit;
		unit /= 10;
	}
	round_up = **text >= '5' && is_digit(**text);
	while (is_digit(**text))
		(*text)++;
	*microseconds += round_up ? 1 : 0;
	return true;
}

/* East of Greenwich is positive: seconds. */
static bool
read_zone(const char **text, int *offset)
{
	char sign = *(*text)++;
	int hours;
	int minutes;

	*offset = 0;
	if (sign == 'Z')
		return true;
	if (sign != '+' && sign != '-')
		return false;
	if (!read_number(text, 2, ':', 23, &hours) ||
	    !read_number(text, 2, '\0', 59, &minutes))
		return false;
	*offset = hours * SECS_PER_HOUR + minutes * SECS_PER_MINUTE;
	if (sign == '-')
		*offset = -*offset;
	return true;
}

/* Days since 2000-01-01. */
static bool
read_day(const char **text, int64 *day)
{
	int year;
	int month;
	int day_of_month;

	if (!read_number(text, 4, '-', 9999, &year) ||
	    !read_number(text, 2, '-', MONTHS_PER_YEAR, &month) ||
	    !read_number(text, 2, 'T', 31, &day_of_month))
		return false;
	if (year < 1 || month < 1 || day_of_month < 1 ||
	    day_of_month > day_tab[isleap(year)][month - 1])
		return false;
	*day = date2j(year, month, day_of_month) - POSTGRES_EPOCH_JDATE;
	return true;
}

/* No overflow is possible: there are four digits of a year. */
bool
sbx_isotime_parse(const char *text, TimestampTz *time)
{
	int64 day;
	int64 microseconds;
	int hour;
	int minute;
	int second;
	int offset;

	if (!read_day(&text, &day) || !read_number(&text, 2, ':', 23, &hour) ||
	    !read_number(&text, 2, ':', 59, &minute) ||
	    !read_number(&text, 2, '\0', 59, &second) ||
	    !read_fraction(&text, &microseconds) || !read_zone(&text, &offset))
		return false;
	if (*text != '\0')
		return false;
	*time = day * USECS_PER_DAY +
	        (hour * SECS_PER_HOUR + minute * SECS_PER_MINUTE + second - offset) *
	            USECS_PER_SEC +
	        microseconds;
	return true;
}

bool
sbx_isotime_interval_ms(const Interval *interval, int64 *ms)
{
	double value = interval->time / 1000.0 +
	               ((double) interval->month * DAYS_PER_MONTH + interval->day) *
	                   SECS_PER_DAY * 1000.0;

	if (!(value >= 1) || value > MAX_INTERVAL_MS)
		return false;
	*ms = (int64) value;
	return true;
}
