/*
 * admission.c
 *		How much room an account has, and whether a launch fits.
 */
#include "core/admission.h"

#include <float.h>
#include <math.h>

#include "core/classify.h"
#include "core/jsonlook.h"
#include "core/jsonwalk.h"
#include "utils/builtins.h"

const char *const sbx_dimension_names[SBX_DIMENSIONS] = {"cpu", "memory", "disk",
                                                         "sandboxes"};
const char *const sbx_dimension_units[SBX_DIMENSIONS] = {"vCPU", "MiB", "MiB",
                                                         "sandboxes"};
const char *const sbx_admission_names[] = {"ADMIT", "EXHAUSTED", "UNKNOWN"};

/* --- what a registration says --------------------------------------------------- */

static void
parse_dimensions(const SbxPath *path, const JsonbValue *object, double *amounts)
{
	JsonbValue member[SBX_DIMENSIONS];

	sbx_jsonb_members(path, object, sbx_dimension_names, SBX_DIMENSIONS, member, NULL);
	for (int i = 0; i < SBX_DIMENSIONS; i++)
		amounts[i] = sbx_jsonb_double(SBX_MEMBER(path, sbx_dimension_names[i]),
		                              &member[i], SBX_NOT_CONFIGURED);
}

void
sbx_capacity_parse(const SbxPath *pool, const JsonbValue *document,
                   SbxCapacity *capacity)
{
	static const char *const keys[] = {"limits", "demand", "reader"};
	const SbxPath *path = SBX_MEMBER(pool, "capacity");
	JsonbValue member[lengthof(keys)];

	sbx_jsonb_members(path, document, keys, lengthof(keys), member, NULL);
	parse_dimensions(SBX_MEMBER(path, keys[0]), &member[0], capacity->limits);
	parse_dimensions(SBX_MEMBER(path, keys[1]), &member[1], capacity->demand);
	if (capacity->demand[SBX_DIMENSION_SANDBOXES] == SBX_NOT_CONFIGURED)
		capacity->demand[SBX_DIMENSION_SANDBOXES] = 1;
	capacity->reader = sbx_jsonb_text(SBX_MEMBER(path, keys[2]), &member[2]);
}

/* --- measuring -------------------------------------------------------------------- */

void
sbx_admission_unknown(SbxMeasurement *measurement, const char *reason)
{
	memset(measurement, 0, sizeof(*measurement));
	measurement->unknown = reason;
}

const char *
sbx_admission_obstacle(const SbxCapacity *capacity, bool readable)
{
	bool limited = false;

	if (!readable)
		return SBX_UNKNOWN_NOT_SUPPORTED;
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (capacity->limits[i] == SBX_NOT_CONFIGURED)
			continue;
		limited = true;
		if (capacity->demand[i] == SBX_NOT_CONFIGURED)
			return SBX_UNKNOWN_DEMAND;
	}
	return limited ? NULL : SBX_UNKNOWN_LIMIT;
}

static void
report(SbxResource *resource, double used, double limit, double required)
{
	resource->reported = true;
	resource->used = used;
	resource->limit = limit;
	resource->headroom = limit - used;
	resource->required = required;
}

void
sbx_admission_measure(const SbxCapacity *capacity, const double used[SBX_DIMENSIONS],
                      SbxMeasurement *measurement)
{
	memset(measurement, 0, sizeof(*measurement));
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		if (capacity->limits[i] == SBX_NOT_CONFIGURED)
			continue;
		if (isnan(used[i]))
		{
			sbx_admission_unknown(measurement, SBX_UNKNOWN_NOT_SUPPORTED);
			return;
		}
		report(&measurement->resources[i], used[i], capacity->limits[i],
		       capacity->demand[i]);
	}
}

/* --- the answer of a custom reader -------------------------------------------------- */

static char *
text_of(JsonbContainer *object, const char *key)
{
	JsonbValue value;

	sbx_look_member(object, key, &value);
	return sbx_look_text(&value);
}

/* Absent leaves *amount as it is; false = there, and no number from minimum on. */
static bool
number_of(JsonbContainer *object, const char *key, double minimum, double *amount)
{
	JsonbValue value;

	sbx_look_member(object, key, &value);
	if (value.type == jbvNull)
		return true;
	if (value.type != jbvNumeric)
		return false;
	*amount = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow,
	                                             NumericGetDatum(value.val.numeric)));
	return isfinite(*amount) && *amount >= minimum;
}

int
sbx_dimension_find(const char *name)
{
	for (int i = 0; name != NULL && i < SBX_DIMENSIONS; i++)
	{
		if (strcmp(sbx_dimension_names[i], name) == 0)
			return i;
	}
	return -1;
}

/* Sums of fractions may differ in their last digits. */
static bool
is_about(double given, double computed, double scale)
{
	return fabs(given - computed) <= 1e-9 * Max(scale, 1);
}

/* One member of "resources"; the reason why there is no measurement, or NULL. */
static const char *
read_resource(const SbxCapacity *capacity, JsonbContainer *object,
              SbxResource *resources)
{
	int i = sbx_dimension_find(text_of(object, "resource"));
	JsonbValue unit;
	double used = -1;
	double limit;
	double required;
	double headroom;

	if (i < 0 || resources[i].reported)
		return SBX_UNKNOWN_MALFORMED;
	limit = capacity->limits[i];
	required = capacity->demand[i];
	if (!number_of(object, "used", 0, &used) || used < 0 ||
	    !number_of(object, "limit", 0, &limit) ||
	    !number_of(object, "required", 0, &required))
		return SBX_UNKNOWN_MALFORMED;
	if (limit == SBX_NOT_CONFIGURED)
		return SBX_UNKNOWN_LIMIT;
	if (required == SBX_NOT_CONFIGURED)
		return SBX_UNKNOWN_DEMAND;

	/* What the registration says that a sandbox needs is needed, whatever a reader says. */
	required = Max(required, capacity->demand[i]);
	headroom = limit - used;
	if (!number_of(object, "headroom", -DBL_MAX, &headroom) ||
	    !is_about(headroom, limit - used, limit))
		return SBX_UNKNOWN_MALFORMED;
	sbx_look_member(object, "unit", &unit);
	if (unit.type != jbvNull && !sbx_look_is_text(&unit, sbx_dimension_units[i]))
		return SBX_UNKNOWN_MALFORMED;
	report(&resources[i], used, limit, required);
	return NULL;
}

static const char *
read_resources(const SbxCapacity *capacity, JsonbContainer *answer,
               SbxResource *resources)
{
	JsonbValue list;
	JsonbValue item;
	SbxWalk walk;
	int count = 0;

	sbx_look_member(answer, "resources", &list);
	if (list.type != jbvBinary || !JsonContainerIsArray(list.val.binary.data) ||
	    JsonContainerIsScalar(list.val.binary.data))
		return SBX_UNKNOWN_MALFORMED;
	sbx_walk_start(&walk, list.val.binary.data);
	while (sbx_walk_element(&walk, &item))
	{
		const char *reason;

		if (sbx_look_object(&item) == NULL)
			return SBX_UNKNOWN_MALFORMED;
		reason = read_resource(capacity, sbx_look_object(&item), resources);
		if (reason != NULL)
			return reason;
		count++;
	}
	return count > 0 ? NULL : SBX_UNKNOWN_MALFORMED;
}

/* [A-Z][A-Z0-9_]{0,63}, the form of all codes. */
static const char *
check_reason(const char *reason)
{
	return reason != NULL && sbx_is_code(reason, strlen(reason))
	           ? reason
	           : SBX_UNKNOWN_MALFORMED;
}

static const char *
read_answer(const SbxCapacity *capacity, Jsonb *answer, SbxResource *resources)
{
	char *status;

	if (answer == NULL || !JB_ROOT_IS_OBJECT(answer))
		return SBX_UNKNOWN_MALFORMED;
	status = text_of(&answer->root, "status");
	if (status != NULL && strcmp(status, "unknown") == 0)
		return check_reason(text_of(&answer->root, "reason"));
	if (status == NULL || strcmp(status, "known") != 0)
		return SBX_UNKNOWN_MALFORMED;
	return read_resources(capacity, &answer->root, resources);
}

void
sbx_admission_read(const SbxCapacity *capacity, Jsonb *answer,
                   SbxMeasurement *measurement)
{
	const char *reason;

	memset(measurement, 0, sizeof(*measurement));
	reason = read_answer(capacity, answer, measurement->resources);
	if (reason != NULL)
		sbx_admission_unknown(measurement, reason);
}

int64
sbx_admission_launches(const SbxResource *resource)
{
	double launches;

	if (resource->required == 0)
		return -1;
	if (resource->required > resource->headroom)
		return 0;
	launches = floor(resource->headroom / resource->required);
	return launches < (double) SBX_MAX_LAUNCHES ? (int64) launches : SBX_MAX_LAUNCHES;
}

/* --- deciding ------------------------------------------------------------------------ */

/* What the request asks for, in the units of measurements. */
static double
requested(const SbxRequest *request, SbxDimension dimension)
{
	switch (dimension)
	{
		case SBX_DIMENSION_CPU:
			return request->resources.cpu;
		case SBX_DIMENSION_MEMORY:
			return (double) request->resources.memory_mb;
		case SBX_DIMENSION_DISK:
			return (double) request->resources.disk_mb;
		case SBX_DIMENSION_SANDBOXES:
			break;
	}
	return 0;
}

SbxAdmission
sbx_admission_decide(const SbxMeasurement *measurement, const SbxRequest *request,
                     int count)
{
	if (measurement->unknown != NULL)
		return SBX_UNKNOWN;
	for (int i = 0; i < SBX_DIMENSIONS; i++)
	{
		const SbxResource *resource = &measurement->resources[i];
		double needed = Max(resource->required, requested(request, i));

		if (resource->reported && needed * count > resource->headroom)
			return SBX_EXHAUSTED;
	}
	return SBX_ADMIT;
}
