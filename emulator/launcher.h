/*
 * launcher.h
 *		A small process that starts the sandboxes' bubblewraps.
 *
 * It exists for two reasons.  A "die with the parent" order is bound to the
 * thread that forked, so the bubblewraps need a parent whose only thread
 * lives as long as the emulator.  And it outlives the emulator for a moment:
 * when the emulator ends, even by SIGKILL, the launcher notices, waits for
 * the sandboxes to end and removes their files.
 */
#ifndef EMU_LAUNCHER_H
#define EMU_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_HOME_SIZE 256

/*
 * To be called while the process has one thread and no sockets.  The agent
 * is the program that will be the first process of each sandbox.
 */
extern bool emu_launcher_start(const char *agent_path);

/* Closes the connection and waits until all is ended and removed. */
extern void emu_launcher_stop(void);

/*
 * Starts a bubblewrap for this sandbox; its agent gets agent_socket, which
 * stays open here.  Files of an earlier start of the same sandbox are kept.
 * What goes wrong later shows as end of file on the other end of the socket.
 */
extern bool emu_launcher_launch(uint64_t guest, const char *home, const char *user,
                                int agent_socket);

/* Ends a sandbox (its socket must be closed already), maybe with its files. */
extern void emu_launcher_end(uint64_t guest, bool remove_files);

/* What bubblewrap said on standard error when it could not start. */
extern char *emu_launcher_complaint(uint64_t guest);

#endif
