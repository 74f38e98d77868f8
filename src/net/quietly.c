/*
 * quietly.c
 *		Things whose failure must not be raised: in an abort, or on the way out of a run.
 */
#include "postgres.h"

#include "net/quietly.h"

#include "miscadmin.h"
#include "utils/memutils.h"

/*
 * An ERROR resets the holdoff counts, on which AbortTransaction relies, so they are put
 * back where one is dropped.
 */
bool
sbx_quietly(void (*action)(void *arg), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	uint32 interrupt_holdoff = InterruptHoldoffCount;
	uint32 cancel_holdoff = QueryCancelHoldoffCount;
	volatile bool succeeded = true;

	PG_TRY();
	{
		action(arg);
	}
	PG_CATCH();
	{
		succeeded = false;
		InterruptHoldoffCount = interrupt_holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
		MemoryContextSwitchTo(context);
		FlushErrorState();
	}
	PG_END_TRY();
	return succeeded;
}
