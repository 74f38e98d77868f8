/*
 * trace.h
 *		A line in the server log for each exchange, for whoever looks for lost time.
 *
 * Private to the engine.
 */
#ifndef SBX_NET_TRACE_H
#define SBX_NET_TRACE_H

#include "net/transfer.h"

/*
 * Log an exchange that has been recorded and not been released yet, where the settings
 * ask for it.  abandoned = the run ended before the exchange did.  The line goes to the
 * server log only and has method, host, path, status and times: never a query, a header,
 * a body or a credential.
 */
extern void sbx_trace_exchange(const SbxTransfer *transfer, bool abandoned);

#endif /* SBX_NET_TRACE_H */
