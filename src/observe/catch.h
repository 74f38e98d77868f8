/*
 * catch.h
 *		Do something that may fail without failing with it.
 */
#ifndef SBX_CATCH_H
#define SBX_CATCH_H

#include "compat.h"

/*
 * Run body in a subtransaction of its own.  What it raises is undone with it and
 * returned, in the current memory context; NULL = it has raised nothing, and what it did
 * is part of the transaction.  Also catches what interrupts a statement: see
 * sbx_error_is_interrupt, and throw that again.
 */
extern ErrorData *sbx_catch(void (*body)(void *arg), void *arg);

#endif /* SBX_CATCH_H */
