/*
 * quietly.h
 *		Things whose failure must not be raised: in an abort, or on the way out of a run.
 */
#ifndef SBX_QUIETLY_H
#define SBX_QUIETLY_H

/* Calls action(arg).  False = it raised an ERROR, which is dropped. */
extern bool sbx_quietly(void (*action)(void *arg), void *arg);

#endif /* SBX_QUIETLY_H */
