/*
 * admission.c
 *		Why an account cannot be measured, also of kinds that cannot be read.
 */
#include "compat.h"

#include "core/admission.h"
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
