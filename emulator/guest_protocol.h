/*
 * guest_protocol.h
 *		What the server and the agent inside a sandbox say to each other.
 *
 * Frames over one stream socket, in host byte order (both ends are always on
 * the same machine).  A frame is this header and `length` bytes of payload.
 */
#ifndef EMU_GUEST_PROTOCOL_H
#define EMU_GUEST_PROTOCOL_H

#include <stdint.h>

/* The agent finds its end of the socket here. */
#define EMU_AGENT_SOCKET 3

/* Neither side sends more in one frame than this. */
#define EMU_FRAME_LIMIT (64 * 1024)

/* The private directory of the agent, for the files of session commands. */
#define EMU_AGENT_DIRECTORY "/run/sandbox"

typedef enum EmuFrameKind
{
	/* server to agent */
	EMU_FRAME_RUN = 1,  /* EmuRunHeader, then strings: start a process */
	EMU_FRAME_RUN_PART, /* a piece of the payload of the coming RUN or SOURCE */
	EMU_FRAME_SOURCE,   /* EmuSourceHeader, then text: run in a shell */
	EMU_FRAME_INPUT,    /* bytes for standard input */
	EMU_FRAME_INPUT_END,
	EMU_FRAME_KILL,         /* EmuKillHeader: end the process group */
	EMU_FRAME_SIGNAL,       /* int32_t: to this process alone */
	EMU_FRAME_SIGNAL_GROUP, /* int32_t: to it and what it left in its group */
	EMU_FRAME_FREEZE,       /* stop everything in the sandbox where it is */
	EMU_FRAME_THAW,

	/* agent to server */
	EMU_FRAME_HELLO,   /* the sandbox is up */
	EMU_FRAME_STARTED, /* int32_t: the process id inside the sandbox */
	EMU_FRAME_OUTPUT,  /* bytes of standard output */
	EMU_FRAME_ERRORS,  /* bytes of standard error */
	EMU_FRAME_EXIT,    /* EmuExitHeader: ended, output sent before */
	EMU_FRAME_FAILED,  /* int32_t: errno, then text: could not be started */
	EMU_FRAME_KILLED   /* the whole group is gone */
} EmuFrameKind;

typedef struct EmuFrame
{
	uint32_t length;
	uint32_t kind;
	uint32_t command; /* number chosen by the server */
} EmuFrame;

#define EMU_RUN_MERGE 1 /* standard error goes into standard output */
#define EMU_RUN_KEEP  2 /* remember the group until it is killed */
#define EMU_RUN_NULL  4 /* standard input is /dev/null */
#define EMU_RUN_AWAIT 8 /* it ends when nobody holds its output open any more */

/* Followed by cwd, argv and environment, each NUL-terminated. */
typedef struct EmuRunHeader
{
	uint32_t flags;
	uint32_t output_limit; /* bytes kept of each stream, the rest is dropped */
	uint32_t argument_count;
	uint32_t variable_count;
} EmuRunHeader;

typedef struct EmuSourceHeader
{
	uint32_t shell; /* command number of the session's shell */
	uint32_t output_limit;
} EmuSourceHeader;

typedef struct EmuKillHeader
{
	int32_t first_signal;
	uint32_t grace_ms; /* then SIGKILL */
} EmuKillHeader;

typedef struct EmuExitHeader
{
	int32_t code;   /* 0..255, or -1 */
	int32_t signal; /* 0, or what ended it */
} EmuExitHeader;

#endif
