/*
 * background.h
 *		Scripts that nobody waits for: how one is started once, and asked about later.
 *
 * The sandbox keeps what a script writes, its exit code, and a link that says whose its
 * name is (providers/script.h).  A kind asks the sandbox and tells what it printed; what
 * follows from that is the same for all.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_BACKGROUND_H
#define SBX_BACKGROUND_H

#include "providers/script.h"
#include "providers/steps.h"

/* How a question ends to which there is no other answer; code NULL = no word at all. */
typedef SbxOpWant SbxBackgroundFail(SbxOp *op, const char *code);

/* A start; an operation's own state has one. */
typedef struct SbxBackground
{
	const char *text;        /* the script's */
	const char *claim_text;  /* claims the name for it */
	const char *status_text; /* looks what became of it */
	int looks;               /* for one whose answer was lost */
	SbxStartedScript started;

	/* What only the kind can do. */
	SbxStep *deliver; /* the name is ours: start it */
	SbxStep *look;    /* asks for the status */
	SbxStep *give_up; /* with what was noted when the answer was lost */
	SbxBackgroundFail *fail;
} SbxBackground;

/* The texts; false = it cannot be carried, or there is no memory. */
extern bool sbx_background_write(SbxArena *arena, SbxBackground *background,
                                 const SbxRunInput *input);

/* It was there before, by a start whose answer was lost or one at the same time. */
extern SbxOpWant sbx_background_found(SbxOp *op, SbxBackground *background);

/* What the claim printed. */
extern SbxOpWant
sbx_background_claimed(SbxOp *op, SbxBackground *background, SbxScriptWord word);

/* What the look printed, after an answer that was lost. */
extern SbxOpWant
sbx_background_looked(SbxOp *op, SbxBackground *background, SbxScriptWord word);

/* Can these ids be those of a script?  Only then are there texts that ask for it. */
extern bool sbx_background_valid_target(const SbxScriptTarget *script);

/* Prints one of its streams, one byte more than is kept: that shows a cut. */
extern const char *
sbx_background_log_text(SbxArena *arena, const SbxScriptTarget *script, bool of_errors);

/* Both streams were read: the end of asking for them. */
extern SbxOpWant sbx_background_logs_read(SbxOp *op, SbxScriptOutput *output);

#endif /* SBX_BACKGROUND_H */
