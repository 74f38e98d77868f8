/*
 * daytonalimits.h
 *		What an operator says that a Daytona account may use.
 *
 * For display only: a value that cannot be used is no limit and is reported; nothing
 * here raises.
 */
#ifndef SBX_DAYTONALIMITS_H
#define SBX_DAYTONALIMITS_H

#include "core/admission.h"
#include "core/jsonread.h"

/* Where a limit, or its absence, comes from. */
typedef enum SbxProvenance
{
	SBX_PROVENANCE_UNSET,
	SBX_PROVENANCE_CONFIGURED,
	SBX_PROVENANCE_INVALID
} SbxProvenance;

extern const char *const sbx_provenance_names[];

typedef struct SbxDefect
{
	char *path;
	SbxReason reason;
} SbxDefect;

typedef struct SbxDaytonaLimits
{
	double limit[SBX_DIMENSIONS]; /* NaN unless configured */
	SbxProvenance provenance[SBX_DIMENSIONS];
	SbxDefect defects[SBX_MAX_MEMBERS];
	int defect_count;
} SbxDaytonaLimits;

/* From JSON text; NULL or blank = everything unset. */
extern void sbx_daytona_limits_parse(const char *text, SbxDaytonaLimits *limits);

/*
 * From a document: an object of limits, or what sbx_daytona_limits_document made, which
 * is known by its "provenance" and keeps it; NULL = everything unset.
 */
extern void sbx_daytona_limits_read(Jsonb *document, SbxDaytonaLimits *limits);

/* {"limits","provenance","defects"} */
extern Jsonb *sbx_daytona_limits_document(const SbxDaytonaLimits *limits);

#endif /* SBX_DAYTONALIMITS_H */
