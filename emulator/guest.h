/*
 * guest.h
 *		The running side of a sandbox: one bubblewrap, and processes in it.
 *
 * To be used with the emulator's lock held; events arrive with it held, from
 * the reactor or from emu_guest_stop and emu_guest_destroy.  They must not
 * stop or destroy the guest they come from.
 */
#ifndef EMU_GUEST_H
#define EMU_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct EmuGuest EmuGuest;
typedef struct EmuProcess EmuProcess;

typedef struct EmuProcessEnd
{
	int code; /* 0..255, -1 if a signal ended it */
	int signal;
	const char *failure; /* why it never ran or was lost, else NULL */
	int error;           /* of the failure, if it has a number; else 0 */
	bool sandbox_gone;   /* the failure: stopped, destroyed or crashed */
	bool never_started;  /* as is this: bubblewrap could not run */
} EmuProcessEnd;

/*
 * With `ended` a process is gone, unless it was started to be kept: a kept
 * one may still have output, can still be killed together with what it left
 * in its group, and lives until emu_process_forget.
 */
typedef struct EmuProcessEvents
{
	void (*output)(void *owner, bool errors, const char *data, size_t length);
	void (*ended)(void *owner, const EmuProcessEnd *end);
	void (*killed)(void *owner);           /* may be NULL, as may the next */
	void (*started)(void *owner, int pid); /* its number inside the sandbox */
} EmuProcessEvents;

typedef struct EmuCommandLine
{
	const char *const *arguments; /* ends with NULL, as does the next */
	const char *const *variables; /* NAME=value */
	const char *cwd;
	bool merge_streams;
	bool keep;
	bool no_input;         /* /dev/null instead of a pipe */
	bool await_streams;    /* ended only when nobody holds its output open */
	uint32_t output_limit; /* bytes per stream */
} EmuCommandLine;

/* Nothing is started before the first process is. */
extern EmuGuest *emu_guest_create(const char *home, const char *user);

/* Stops all processes where they are, and lets them go on. */
extern void emu_guest_freeze(EmuGuest *guest, bool frozen);

/* Ends all processes, keeps the files. */
extern void emu_guest_stop(EmuGuest *guest);
extern void emu_guest_destroy(EmuGuest *guest);

extern EmuProcess *emu_process_run(EmuGuest *guest, const EmuCommandLine *line,
                                   const EmuProcessEvents *events, void *owner);

/*
 * Runs text in a kept shell, as if it had been written there; is kept itself.
 * NULL if the sandbox of the shell does not run any more.
 */
extern EmuProcess *
emu_process_source(EmuProcess *shell, const char *text, size_t length,
                   uint32_t output_limit, const EmuProcessEvents *events, void *owner);

extern void emu_process_input(EmuProcess *process, const char *data, size_t length);
extern void emu_process_input_end(EmuProcess *process);

/* To this process alone, not to what it has started. */
extern void emu_process_signal(EmuProcess *process, int signal_number);

/* To all that is in its group, for as long as its end has not been told. */
extern void emu_process_signal_group(EmuProcess *process, int signal_number);

/* SIGTERM, then SIGKILL to the whole group; with 0 SIGKILL at once. */
extern void emu_process_kill(EmuProcess *process, uint32_t grace_ms);
extern void emu_process_forget(EmuProcess *process);

#endif
