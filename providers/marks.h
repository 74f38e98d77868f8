/*
 * marks.h
 *		The output of a script that says itself when it is over.
 *
 * A stream of output ends when nobody holds it open any more.  What a script leaves in the
 * background would keep it open for as long as that lives, so the script's text prints a
 * mark with the exit code on both streams (sbx_script_marked_text) when it is over.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_MARKS_H
#define SBX_MARKS_H

#include "providers/script.h"

/* Both streams while they are read; [0] is standard output, [1] is standard error. */
typedef struct SbxMarkedOutput
{
	SbxScriptOutput output;
	const char *mark;  /* the run id in it; NULL = nothing marks the end */
	size_t matched[2]; /* bytes of the mark that have been seen */
	int code[2];       /* the exit code in it; valid when has_mark */
	bool has_mark[2];
} SbxMarkedOutput;

/* The start: max_stream bytes of each stream are kept. */
extern void
sbx_marks_open(SbxMarkedOutput *marked, size_t max_stream, const char *mark);

/* The next bytes of a stream; in pieces of any size. */
extern void sbx_marks_take(SbxArena *arena, SbxMarkedOutput *marked, int stream,
                           const char *bytes, size_t length);

/* Have both streams told that it is over?  Nothing more is wanted then. */
extern bool sbx_marks_complete(const SbxMarkedOutput *marked);

/*
 * After the last byte: what looked like the start of a mark is output.  True = it is over,
 * with this exit code.
 */
extern bool sbx_marks_settle(SbxArena *arena, SbxMarkedOutput *marked, int *exit_code);

/* What a script has printed until then, and its exit code; NULL = no memory. */
extern SbxRunResult *
sbx_marks_result(SbxArena *arena, const SbxMarkedOutput *marked, int exit_code);

#endif /* SBX_MARKS_H */
