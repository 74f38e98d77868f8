/*
 * script.h
 *		A script as text for a sandbox's shell, and what came out of it.
 *
 * How a text gets into a sandbox and its output out of it is each provider's own.
 * What the text has to say, and how much of the output is kept, is not: a script
 * must behave the same wherever it is routed to.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_SCRIPT_H
#define SBX_SCRIPT_H

#include "net/op.h"
#include "providers/provider.h"

/* --- the text ----------------------------------------------------------- */

/* Can this be written for a shell?  The run id is for the adapter to check. */
extern bool sbx_script_valid(const SbxRunInput *input);

/*
 * A text for any POSIX shell, whether it sources the text or runs it: sets env
 * and cwd, runs the command in a child and leaves its exit code in `$?`.  What it
 * leaves in the background outlives that shell.  The input has to be valid, and its
 * run id of letters, digits and hyphens.  NULL when out of memory.
 */
extern const char *sbx_script_text(SbxArena *arena, const SbxRunInput *input);

/*
 * The same for a script that nobody waits for: what it writes and its exit code go to
 * files in the sandbox, which the texts below read.
 */
extern const char *
sbx_script_background_text(SbxArena *arena, const SbxRunInput *input);

/* Removes what a background script of that run left. */
extern const char *sbx_script_clear_text(SbxArena *arena, const char *run_id);

/*
 * Prints what is known of the background script of that run: its exit code, or one of
 * these words.  Nothing is known of one whose shell has not got to it yet, either.
 */
#define SBX_SCRIPT_NOTHING "nothing"
#define SBX_SCRIPT_RUNNING "running"
#define SBX_SCRIPT_LOST    "lost" /* it will never have an exit code */

extern const char *sbx_script_status_text(SbxArena *arena, const char *run_id);

/* Prints the head of one of its streams. */
extern const char *sbx_script_log_text(SbxArena *arena, const char *run_id,
                                       bool of_errors, size_t maximum);

/* Succeeds if there is a file of that many bytes. */
extern const char *
sbx_script_count_text(SbxArena *arena, const char *path, size_t length);

/*
 * A text that kills the script of that run and all of its group, and succeeds only
 * if it did.  Without a group of its own there is nothing for it to find: the script
 * then dies with the shell that was given its text.
 */
extern const char *sbx_script_kill_text(SbxArena *arena, const char *run_id);

/* --- the output --------------------------------------------------------- */

/* A stream while it is taken over; the head is kept, cut between characters. */
typedef struct SbxScriptStream
{
	char *bytes; /* NULL = there was none, or no memory for it */
	size_t length;
	size_t maximum;
	bool cut;
} SbxScriptStream;

typedef struct SbxScriptOutput
{
	SbxScriptStream both; /* one log of the two */
	SbxScriptStream out;
	SbxScriptStream err;
} SbxScriptOutput;

/* An empty stream with room for what is needed, but for no more than maximum. */
extern SbxScriptStream
sbx_script_open_stream(SbxArena *arena, size_t needed, size_t maximum);

/* Append what still fits; returns how many bytes that were. */
extern size_t
sbx_script_keep(SbxScriptStream *stream, const char *bytes, size_t length);

/* Make the log of both when their order is not known. */
extern void sbx_script_join(SbxArena *arena, SbxScriptOutput *output);

extern void sbx_script_store(const SbxScriptOutput *output, SbxRunResult *result);

#endif /* SBX_SCRIPT_H */
