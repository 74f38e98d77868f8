/*
 * faults.h
 *		Rules that make chosen requests go wrong in chosen ways.
 *
 * To be used with the emulator's lock held.
 */
#ifndef EMU_FAULTS_H
#define EMU_FAULTS_H

#include <jansson.h>
#include <stdbool.h>

#include "request.h"

/* An answer that never comes. */
#define EMU_HOLD_FOREVER INT64_MAX

/* Adds a rule; on false `problem` says what is wrong with it. */
extern bool emu_faults_add(const json_t *rule, EmuText *problem);
extern void emu_faults_clear(void);

/* Once when the headers have been read, and once when the body has. */
extern void emu_faults_match_early(EmuRequest *request);
extern void emu_faults_match(EmuRequest *request);

/* When the headers have been read: to be reset at once? */
extern bool emu_fault_resets_before_read(const EmuRequest *request);

/* Bytes per second at which the body is to be read, 0 = as it comes. */
extern int64_t emu_fault_read_rate(const EmuRequest *request);

/* Gives the answer itself if the provider is not to see the request. */
extern void emu_fault_instead_of_work(EmuRequest *request);

/* Spoils an answer that has been given. */
extern void emu_fault_after_work(EmuRequest *request);

/*
 * What a rule with a pattern for frames does to one of a protocol inside of a
 * WebSocket: those rules hit frames, and no requests.
 */
typedef enum EmuFrameAction
{
	EMU_FRAME_AS_IT_IS,
	EMU_FRAME_DELAY,    /* it, and what follows, is so many ms late */
	EMU_FRAME_PAUSE,    /* the same after so many bytes of it */
	EMU_FRAME_HANG,     /* nothing comes any more, without it */
	EMU_FRAME_TRUNCATE, /* so many bytes of it, then the end of the connection */
	EMU_FRAME_RESET,    /* the connection is reset instead */
	EMU_FRAME_GARBAGE,  /* so many random bytes in the place of its body */
	EMU_FRAME_WRONG_TYPE,
	EMU_FRAME_HUGE, /* its length says so many bytes */
	EMU_FRAME_WRONG_ID,
	EMU_FRAME_PING /* in the middle of it */
} EmuFrameAction;

typedef struct EmuFrameFault
{
	EmuFrameAction action;
	int64_t ms;
	int64_t bytes; /* -1: not given */
} EmuFrameFault;

extern EmuFrameFault emu_faults_match_frame(const EmuProvider *provider,
                                            const char *path, const char *frame);

extern void emu_fault_release(EmuRequest *request);

/* Connections that followed a redirect; there must be none. */
extern unsigned emu_faults_redirects_followed(void);

#endif
