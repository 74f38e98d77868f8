/*
 * isotime.c
 *		The reader of providers' times.
 */
#include "compat.h"

#include "core/isotime.h"
#include "utils/builtins.h"

/*
 * sbx_test_isotime(iso8601 text) returns timestamptz
 *		NULL = malformed.
 */
PG_FUNCTION_INFO_V1(sbx_test_isotime);
Datum
sbx_test_isotime(PG_FUNCTION_ARGS)
{
	TimestampTz time;

	if (!sbx_isotime_parse(text_to_cstring(PG_GETARG_TEXT_PP(0)), &time))
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(time);
}
