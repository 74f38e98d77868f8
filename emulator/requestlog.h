/*
 * requestlog.h
 *		What clients sent, for assertions about the wire.
 */
#ifndef EMU_REQUESTLOG_H
#define EMU_REQUESTLOG_H

#include "request.h"

/* To be used with the emulator's lock held. */
extern void emu_requestlog_record(EmuRequest *request);
extern void emu_requestlog_show(EmuText *text, uint64_t since);
extern void emu_requestlog_clear(void);

#endif
