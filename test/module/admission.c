/*
 * admission.c
 *		Why an account cannot be measured, also of kinds that cannot be read.
 */
#include "compat.h"

#include "core/admission.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"

/*
 * sbx_test_obstacle(capacity jsonb, readable boolean) returns text
 *		The reason why a registration with that document has no measurement; NULL =
 *		its account is read.
 */
PG_FUNCTION_INFO_V1(sbx_test_obstacle);
Datum
sbx_test_obstacle(PG_FUNCTION_ARGS)
{
	const SbxPath path = {SBX_DOCUMENT_PROVIDER, NULL, "provider"};
	JsonbValue document;
	SbxCapacity capacity;
	const char *obstacle;

	sbx_jsonb_document(&path, PG_GETARG_JSONB_P(0), &document);
	sbx_capacity_parse(&path, &document, &capacity);
	obstacle = sbx_admission_obstacle(&capacity, PG_GETARG_BOOL(1));
	if (obstacle == NULL)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(CStringGetTextDatum(obstacle));
}

/*
 * sbx_test_measure(capacity jsonb, used double precision[]) returns text
 *		What a registration with that document makes of a reading: cpu, memory, disk and
 *		sandboxes, NaN for what the provider does not tell.  The reason why it is unknown,
 *		or the headroom of all that have a limit.
 */
PG_FUNCTION_INFO_V1(sbx_test_measure);
Datum
sbx_test_measure(PG_FUNCTION_ARGS)
{
	const SbxPath path = {SBX_DOCUMENT_PROVIDER, NULL, "provider"};
	ArrayType *used = PG_GETARG_ARRAYTYPE_P(1);
	SbxMeasurement measurement;
	JsonbValue document;
	SbxCapacity capacity;
	StringInfoData text;

	if (ARR_NDIM(used) != 1 || ARR_DIMS(used)[0] != SBX_DIMENSIONS || ARR_HASNULL(used))
		elog(ERROR, "there are %d dimensions", SBX_DIMENSIONS);
	sbx_jsonb_document(&path, PG_GETARG_JSONB_P(0), &document);
	sbx_capacity_parse(&path, &document, &capacity);
	sbx_admission_measure(&capacity, (const double *) ARR_DATA_PTR(used), &measurement);
	if (measurement.unknown != NULL)
		PG_RETURN_DATUM(CStringGetTextDatum(measurement.unknown));
	initStringInfo(&text);
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (measurement.resources[i].reported)
			appendStringInfo(&text, "%s%s %g", text.len > 0 ? ", " : "",
			                 sbx_dimension_names[i], measurement.resources[i].headroom);
	}
	PG_RETURN_DATUM(CStringGetTextDatum(text.data));
}
