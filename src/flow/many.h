/*
 * many.h
 *		The same operation on many sandboxes at once.
 */
#ifndef SBX_MANY_H
#define SBX_MANY_H

#include "flow/sandbox.h"
#include "utils/array.h"

/* One of the sandboxes; when there is no error, op has succeeded. */
typedef struct SbxMember
{
	char *id; /* as it was given */
	SbxSandbox sandbox;
	const struct SbxManyWork *work;
	int number; /* its place among the ids, from 0 */
	SbxOp *op;
	MemoryContext context;  /* what is its own, "op" included */
	const char *error_code; /* SQLSTATE; NULL = no error */
	const char *error_message;
} SbxMember;

typedef struct SbxManyWork
{
	/* The operation for one; NULL means out of memory. */
	SbxOp *(*make)(SbxSandbox *sandbox, void *arg);

	/* Raises when this one cannot be asked for it; may be NULL. */
	void (*check)(const SbxSandbox *sandbox, void *arg);

	/* What came of it; everything of the member is gone afterwards. */
	void (*take)(SbxMember *member, void *arg);
	void *arg;

	/*
	 * Take each as soon as it has ended, in any order, instead of all in the order of
	 * the ids when the last has ended.  For results that are large.  "take" then must
	 * execute no SQL of others, because requests are under way.
	 */
	bool at_once;
} SbxManyWork;

/*
 * Do something with one, in a subtransaction of its own: what it raises becomes the
 * error of this one.  Cancels and their like are raised again.  For "take", too.
 */
extern void sbx_many_try(SbxMember *member, void (*body)(void *member));

/*
 * Do it with every id, a hundred of them at once.  What goes wrong with one is its own
 * error and does not touch the others.
 * Raises SB001 for a NULL among the ids, what the server raises (cancel, timeouts), and
 * what take raises: that ends the call for all.
 */
extern void sbx_many_run(ArrayType *ids, const SbxManyWork *work);

#endif /* SBX_MANY_H */
