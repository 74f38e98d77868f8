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

extern void emu_fault_release(EmuRequest *request);

/* Connections that followed a redirect; there must be none. */
extern unsigned emu_faults_redirects_followed(void);

#endif
