/*
 * daytonasummary.h
 *		How full a Daytona account is, for people to look at.
 *
 * Decides nothing: whatever the inventory holds is shown as well as can be.
 */
#ifndef SBX_DAYTONASUMMARY_H
#define SBX_DAYTONASUMMARY_H

#include "compat.h"

#include "utils/jsonb.h"
#include "utils/timestamp.h"

/*
 * inventory is all that "GET /sandbox" lists: an array, or {"items"}; anything else is
 * refused.  limits as for sbx_daytona_limits_read.  workspace, "key=value" or the value
 * of the label "workspace", names whose sandboxes are listed one by one; NULL or empty =
 * nobody's.
 */
extern Jsonb *sbx_daytona_summarize(Jsonb *inventory, Jsonb *limits,
                                    const char *workspace, TimestampTz now);

#endif /* SBX_DAYTONASUMMARY_H */
