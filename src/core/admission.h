/*
 * admission.h
 *		How much room an account has, and whether a launch fits.
 *
 * A measurement is known or unknown; nothing in between is ever guessed.
 */
#ifndef SBX_ADMISSION_H
#define SBX_ADMISSION_H

#include "core/request.h"

/* What is measured, in the order in which it is reported. */
typedef enum SbxDimension
{
	SBX_DIMENSION_CPU,
	SBX_DIMENSION_MEMORY,
	SBX_DIMENSION_DISK,
	SBX_DIMENSION_SANDBOXES
} SbxDimension;

#define SBX_DIMENSIONS (SBX_DIMENSION_SANDBOXES + 1)

/* "cpu", ..., and "vCPU", "MiB", "MiB", "sandboxes". */
extern const char *const sbx_dimension_names[SBX_DIMENSIONS];
extern const char *const sbx_dimension_units[SBX_DIMENSIONS];

/* The dimension of a name; -1 = there is none, or no name. */
extern int sbx_dimension_find(const char *name);

/* An amount that is not configured. */
#define SBX_NOT_CONFIGURED (-1.0)

/* What a registration says about its account. */
typedef struct SbxCapacity
{
	double limits[SBX_DIMENSIONS]; /* of the account */
	double demand[SBX_DIMENSIONS]; /* of one sandbox; sandboxes: 1 where not given */
	char *reader;                  /* "schema.name"; NULL = the kind's own */
} SbxCapacity;

/*
 * Parse and validate a pool's document; an absent one (jbvNull) configures nothing.
 * path is the pool's own.  Raises SB013.  Allocates in the current context.
 */
extern void sbx_capacity_parse(const SbxPath *path, const JsonbValue *document,
                               SbxCapacity *capacity);

/* Why a measurement is unknown.  A custom reader may have reasons of its own. */
#define SBX_UNKNOWN_LIMIT         "LIMIT_NOT_CONFIGURED"
#define SBX_UNKNOWN_DEMAND        "DEMAND_NOT_CONFIGURED"
#define SBX_UNKNOWN_CREDENTIALS   "CREDENTIALS"
#define SBX_UNKNOWN_TIMEOUT       "READER_TIMEOUT"
#define SBX_UNKNOWN_FAILED        "READER_FAILED"
#define SBX_UNKNOWN_MALFORMED     "MALFORMED"
#define SBX_UNKNOWN_NOT_SUPPORTED "NOT_SUPPORTED"

typedef struct SbxResource
{
	bool reported;
	double used;
	double limit;
	double headroom; /* limit - used; may be negative */
	double required; /* of one more sandbox */
} SbxResource;

typedef struct SbxMeasurement
{
	const char *unknown; /* the reason; NULL = known, and at least one is reported */
	SbxResource resources[SBX_DIMENSIONS];
} SbxMeasurement;

/*
 * The reason for which no reading could be a measurement; NULL = read it.  readable: the
 * kind can read what an account uses.
 */
extern const char *sbx_admission_obstacle(const SbxCapacity *capacity, bool readable);

/*
 * What is used, against what is configured: the dimensions that have a limit.  There is no
 * obstacle.  NaN is what nobody tells: a limit of it makes all unknown.
 */
extern void
sbx_admission_measure(const SbxCapacity *capacity, const double used[SBX_DIMENSIONS],
                      SbxMeasurement *measurement);

/*
 * The answer of a custom reader: {"status":"known","resources":[{"resource","used",
 * "limit","unit","headroom","required"}]} or {"status":"unknown","reason"}.  resource and
 * used have to be there; limit and required may be left to the registration, unit and
 * headroom have to be right where they are given.  What is anything else is MALFORMED:
 * nothing is raised.  NULL is SQL NULL.
 */
extern void sbx_admission_read(const SbxCapacity *capacity, Jsonb *answer,
                               SbxMeasurement *measurement);

extern void sbx_admission_unknown(SbxMeasurement *measurement, const char *reason);

/*
 * How many more sandboxes fit in this dimension: at most SBX_MAX_LAUNCHES, and -1 when one
 * needs nothing of it.
 */
#define SBX_MAX_LAUNCHES INT64CONST(1000000000000000)
extern int64 sbx_admission_launches(const SbxResource *resource);

typedef enum SbxAdmission
{
	SBX_ADMIT,
	SBX_EXHAUSTED,
	SBX_UNKNOWN
} SbxAdmission;

/* "ADMIT", "EXHAUSTED", "UNKNOWN". */
extern const char *const sbx_admission_names[];

/*
 * Do so many sandboxes for this request fit?  Each needs the greater of what the pool
 * says and what the request asks for, in every dimension that is reported.
 */
extern SbxAdmission sbx_admission_decide(const SbxMeasurement *measurement,
                                         const SbxRequest *request, int count);

#endif /* SBX_ADMISSION_H */
