/*
 * job.h
 *		A process that is run for one request, which gets its answer at the end.
 */
#ifndef EMU_JOB_H
#define EMU_JOB_H

#include "guest.h"
#include "reactor.h"
#include "request.h"
#include "text.h"

/*
 * `done` gives the answer, or starts the next job of the request and passes
 * the state on to it; it is not called if the client has gone meanwhile.
 */
typedef struct EmuJob EmuJob;
struct EmuJob
{
	EmuRequest *request;
	EmuProcess *process;
	EmuText output;
	EmuText errors;
	EmuTimer deadline;
	bool timed_out;
	unsigned *open; /* counts the jobs whose client still waits, may be NULL */
	void (*done)(EmuJob *job, const EmuProcessEnd *end);
	void (*release)(void *state); /* may be NULL */
	void *state;
};

/* With a timeout of 0 the process may take as long as it likes. */
extern EmuJob *
emu_job_start(EmuRequest *request, EmuGuest *guest, const EmuCommandLine *line,
              const char *input, size_t input_length, int64_t timeout_ms,
              unsigned *open, void (*done)(EmuJob *job, const EmuProcessEnd *end));

/* What a provider itself does in a sandbox, with files above all: for bash. */
typedef struct EmuScript
{
	const char *text;
	const char *arguments[3]; /* "$1" and so on, up to the first that is NULL */
	const char *home;
	const char *user;
	const char *input;
	size_t input_length;
	unsigned *open; /* as in a job */
} EmuScript;

/* Prints the file "$1", or ends with one of these codes. */
#define EMU_EXIT_DIRECTORY 40
#define EMU_EXIT_DENIED    43
#define EMU_EXIT_MISSING   44
extern const char emu_script_read[];

extern EmuJob *
emu_job_start_script(EmuRequest *request, EmuGuest *guest, const EmuScript *script,
                     void (*done)(EmuJob *job, const EmuProcessEnd *end));

#endif
