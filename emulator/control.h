/*
 * control.h
 *		The paths under /_control/, by which tests steer the emulator.
 */
#ifndef EMU_CONTROL_H
#define EMU_CONTROL_H

#include "request.h"

#define EMU_CONTROL_PREFIX "/_control/"

/* To be called with the emulator's lock held. */
extern void emu_control_handle(EmuRequest *request);

#endif
