/*
 * progress.c
 *		How far a call for many sandboxes has got.
 */
#include "flow/progress.h"

#include "utils/guc.h"

static bool report_progress = false;

void
sbx_progress_define_gucs(void)
{
	DefineCustomBoolVariable("sbx_router.progress",
	                         "Reports how far a call for many sandboxes has got.",
	                         "As notices, at most one each second.", &report_progress,
	                         false, PGC_USERSET, 0, NULL, NULL, NULL);
}

void
sbx_progress_tell(void *arg, int finished, int failed)
{
	SbxProgress *progress = arg;
	TimestampTz now = GetCurrentTimestamp();

	if (!report_progress || !TimestampDifferenceExceeds(progress->last, now, 1000))
		return;
	progress->last = now;
	ereport(NOTICE, (errmsg("%d of %d done, %d failed", progress->done + finished,
	                        progress->total, progress->failed + failed)));
}
