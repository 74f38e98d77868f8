/*
 * options.h
 *		What was said on the command line and concerns more than one file.
 */
#ifndef EMU_OPTIONS_H
#define EMU_OPTIONS_H

#include <stdbool.h>

/* With --no-exec commands are answered without running anything. */
extern bool emu_no_exec;

#endif
