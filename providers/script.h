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

#include "net/json.h"
#include "net/op.h"
#include "providers/provider.h"

/* --- the text (script.c; what reads its answers: script_output.c) --------- */

/*
 * Files beside a script begin so, and go on with its run id.  The one without a suffix
 * names the script's process while it runs; ".sh" is a text too long for an argument.
 * What a script writes goes to ".out" and ".err", unless the provider takes it.  Those of
 * a background script alone are links, which are there with what they say or not at all: ".claim" to the
 * fingerprint of the script that has the run id, ".once" to the process that has begun
 * its text, ".exit" to the exit code.
 */
#define SBX_SCRIPT_FILE "/tmp/.sbx-run-"

/* Can this be written for a shell? */
extern bool sbx_script_valid(const SbxRunInput *input);

/* A run id or the name of a session: letters, digits, "_" and "-". */
extern bool sbx_script_valid_name(const char *name);

/*
 * A text for any POSIX shell, whether it sources the text or runs it: sets env
 * and cwd, runs the command in a child and leaves its exit code in `$?`.  What it
 * leaves in the background outlives that shell.  The input has to be valid.  NULL when
 * out of memory.
 */
extern const char *sbx_script_text(SbxArena *arena, const SbxRunInput *input);

/*
 * The same, and at its end it prints a mark on both streams: a byte 01, the run id, a
 * colon, the exit code, and a byte 02.
 */
extern const char *sbx_script_marked_text(SbxArena *arena, const SbxRunInput *input);

/*
 * The same for a provider that cannot end a command: when the input's time is over the
 * text kills the script and all of its group itself, and says so.  What the script leaves
 * in the background does not hold the streams open.
 */
extern const char *sbx_script_bounded_text(SbxArena *arena, const SbxRunInput *input);

/* How such a script ends then: with this code, and a line of its own. */
#define SBX_SCRIPT_KILLED      137
#define SBX_SCRIPT_OUT_OF_TIME "sbx-out-of-time:"

/* Is that what it says? */
extern bool sbx_script_ran_out_of_time(SbxArena *arena, const SbxRunResult *result,
                                       const char *run_id);

/*
 * A text that is too long for an argument goes through a file, which removes itself: the
 * path, what to write there, and the text that runs it.
 */
extern bool sbx_script_is_long(const char *text);
extern const char *sbx_script_stored_path(SbxArena *arena, const char *run_id);
extern const char *
sbx_script_stored_text(SbxArena *arena, const char *run_id, const char *text);
extern const char *sbx_script_source_text(SbxArena *arena, const char *run_id);

/*
 * The same as the first for a script that nobody waits for: what it writes and its exit
 * code go to files in the sandbox, which the texts below read.  Whoever has claimed the
 * run id may deliver it as often as it takes: it runs once.
 */
extern const char *
sbx_script_background_text(SbxArena *arena, const SbxRunInput *input);

/* Equal texts, equal fingerprints: 16 hex digits. */
extern const char *sbx_script_fingerprint(SbxArena *arena, const char *text);

/*
 * Prints what is known of the background script of that run and fingerprint: its exit
 * code, or one of these words.
 */
#define SBX_SCRIPT_NOTHING "nothing" /* nobody has claimed the run id */
#define SBX_SCRIPT_ANOTHER "another" /* a script of another fingerprint has */
#define SBX_SCRIPT_CLAIMED "claimed" /* this one has, and has not begun yet */
#define SBX_SCRIPT_RUNNING "running"
#define SBX_SCRIPT_LOST    "lost" /* it will never have an exit code */

extern const char *
sbx_script_status_text(SbxArena *arena, const char *run_id, const char *fingerprint);

/*
 * Claims the run id for a script of that fingerprint, for good.  Prints this word if
 * that was done now, otherwise the status.  "Nothing" says that it could not be done.
 */
#define SBX_SCRIPT_NEW "new"

extern const char *
sbx_script_claim_text(SbxArena *arena, const char *run_id, const char *fingerprint);

/*
 * What one of these texts printed.  SBX_SCRIPT_ENDED has an exit code; everything that
 * none of them prints, and NULL, is SBX_SCRIPT_GARBAGE.
 */
typedef enum SbxScriptWord
{
	SBX_SCRIPT_ENDED,
	SBX_SCRIPT_IS_NEW,
	SBX_SCRIPT_IS_NOTHING,
	SBX_SCRIPT_IS_ANOTHER,
	SBX_SCRIPT_IS_CLAIMED,
	SBX_SCRIPT_IS_RUNNING,
	SBX_SCRIPT_IS_LOST,
	SBX_SCRIPT_GARBAGE
} SbxScriptWord;

extern SbxScriptWord sbx_script_read_status(const char *printed, int *exit_code);

/* Has that script begun?  Then a start of it has nothing to do any more. */
extern bool sbx_script_has_begun(SbxScriptWord word);

/*
 * Why a claim, or a question for the status or the logs, has no better answer: a provider
 * code.  NULL = the word says nothing of the kind.
 */
extern const char *sbx_script_claim_code(SbxScriptWord word);
extern const char *sbx_script_status_code(SbxScriptWord word);

/* Looks for a script when the answer to its start was lost a moment ago. */
#define SBX_SCRIPT_LOOKS         3
#define SBX_SCRIPT_LOOK_PAUSE_MS 1000

/* Prints the head of one of its streams; fails if there is no such script. */
extern const char *
sbx_script_log_text(SbxArena *arena, const char *run_id, const char *fingerprint,
                    bool of_errors, size_t maximum);

/* Makes a directory, with those that lead there; one that is there is fine. */
extern const char *sbx_script_directory_text(SbxArena *arena, const char *path);

/* Succeeds if there is a file of that many bytes. */
extern const char *
sbx_script_count_text(SbxArena *arena, const char *path, size_t length);

/*
 * A text that kills the script of that run and all of its group, and succeeds only
 * if it did.  Without a group of its own there is nothing for it to find: the script
 * then dies with the shell that was given its text.
 */
extern const char *sbx_script_kill_text(SbxArena *arena, const char *run_id);

/* --- the output (script_output.c) --------------------------------------- */

/* A stream while it is taken over; the head is kept, cut between characters. */
typedef struct SbxScriptStream
{
	char *bytes; /* NULL = there was none, or no memory for it */
	size_t length;
	size_t size; /* room for bytes */
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

/*
 * The same for a stream of unknown length, of which only the maximum is set: its room
 * grows.
 */
extern size_t sbx_script_append(SbxArena *arena, SbxScriptStream *stream,
                                const char *bytes, size_t length);

/* Make the log of both when their order is not known. */
extern void sbx_script_join(SbxArena *arena, SbxScriptOutput *output);

extern void sbx_script_store(const SbxScriptOutput *output, SbxRunResult *result);

/* --- an answer that holds a result as JSON (script_output.c) ---------------- */

/*
 * Copy one stream out of it; false when it is not there.  If a part of it was cut off
 * before, that stays known.
 */
extern bool
sbx_script_take_stream(SbxArena *arena, const json_t *answer, const char *key,
                       size_t maximum, SbxScriptStream *stream);

/* Absent or null is an unknown outcome; false = it is of another type. */
extern bool
sbx_script_take_exit_code(const json_t *answer, const char *key, SbxRunResult *result);

#endif /* SBX_SCRIPT_H */
