/*
 * progress.h
 *		How far a call for many sandboxes has got.
 */
#ifndef SBX_PROGRESS_H
#define SBX_PROGRESS_H

#include "compat.h"

#include "utils/timestamp.h"

typedef struct SbxProgress
{
	int total;
	int done;         /* before the present run of the engine */
	int failed;       /* of those */
	TimestampTz last; /* when it was told, at first when the call began */
} SbxProgress;

/* Called by _PG_init. */
extern void sbx_progress_define_gucs(void);

/*
 * A report of the engine, see sbx_session_run_many; the argument is an SbxProgress.  A
 * notice, where the setting asks for it, and at most one each second.
 */
extern void sbx_progress_tell(void *arg, int finished, int failed);

#endif /* SBX_PROGRESS_H */
