/*
 * steps.h
 *		The frame of an adapter's operations.
 *
 * An operation is a chain of steps: each looks at the answer the step before asked
 * for, and names the step that will look at the next one.  A step never keeps a
 * pointer into an answer; the driver frees it when the step returns.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_STEPS_H
#define SBX_STEPS_H

#include "net/json.h"
#include "net/op.h"
#include "providers/provider.h"

typedef SbxOpWant SbxStep(SbxOp *op);

/* Every operation's own state starts with this one. */
typedef struct SbxSteps
{
	SbxStep *step;            /* what the next advance() does */
	SbxAllocation allocation; /* what a failure now has to say; launch only */
	bool sent;                /* anything at all */
	bool acted;               /* the request that changes something went out */
	int64_t pause_ms;         /* length of the next pause */
	int64_t waited_ms;        /* sum of pauses: there is no clock here */
	int trouble;              /* in a row */
	bool unsendable;          /* a header of the request being written is none */
	bool accepted; /* a change was asked for, and was answered with success */
	int unmoved;   /* looks after which nothing had changed all the same */

	/* The last thing that went wrong; what a failure by timeout reports. */
	SbxFailure noted;
	const char *timeout_code; /* when nothing went wrong but the time is over */

	/* The outcome is known (result or noted); only tidying up is left. */
	bool tidying;
	void *result;

	/* Not to be ready in time is a result, too, once it was seen; waiting only. */
	bool unready_is_result;

	SbxDestroyResult destroyed; /* destroy only */
} SbxSteps;

/* The first and the last line of every maker; NULL = no memory. */
extern SbxOp *sbx_steps_make(const char *operation, SbxStep *first_step,
                             size_t state_size, size_t first_block, int64_t timeout_ms);
extern SbxOp *sbx_steps_made(SbxOp *op);

/* --- endings and pauses --------------------------------------------------- */

/* Input that this provider can never carry: nothing is sent. */
extern SbxStep sbx_steps_refuse;
extern SbxOpWant sbx_steps_fail(SbxOp *op, SbxPhase phase, const char *code);

/* The answer as a failure. */
extern SbxOpWant sbx_steps_fail_response(SbxOp *op, const char *code);

/* Remember the answer as a failure and go on; fail with it later. */
extern void sbx_steps_note(SbxOp *op, const char *code);
extern SbxOpWant sbx_steps_fail_noted(SbxOp *op, const char *code);

/* At least so long; longer if the answer was a refusal that asks for it (Retry-After). */
extern SbxOpWant sbx_steps_pause(SbxOp *op, int64_t ms, SbxStep *next);

/* The next pause of a wait for a sandbox: short at first, then ever longer. */
extern SbxOpWant sbx_steps_wait(SbxOp *op, SbxStep *next);

/*
 * A look of a wait has shown this sandbox: "not yet" can be the result from now on.  That it
 * was seen is all there is to it, so the first look's facts are kept: a wait may last a day,
 * and must not keep those of each look.
 */
extern void
sbx_steps_allow_unready(SbxOp *op, const json_t *sandbox,
                        SbxSandboxFacts *(*facts_of)(SbxOp *op, const json_t *sandbox));

/*
 * The patience of a destroy.  Again after a pause that grows, for a sandbox that is busy
 * or not found yet; and the same after trouble (an exchange that decided nothing), unless
 * there was too much of it in a row: then the operation fails with what was noted last.
 * A request that never left counts double: nobody is there, and nobody waits for long for
 * that.  What decides something sets steps->trouble to 0.
 */
extern SbxOpWant sbx_steps_retry(SbxOp *op, SbxStep *step);
extern SbxOpWant sbx_steps_retry_after_trouble(SbxOp *op, SbxStep *step);

/*
 * The answer to a look, before or after what changes something: to look again does no harm,
 * so trouble is met again, with the same patience.  "judge" sees the first answer that is no
 * trouble, or the trouble that was one too many.  What has used up the time of an exchange
 * has had its patience.
 */
extern SbxOpWant sbx_steps_looked(SbxOp *op, SbxStep *look, SbxStep *judge);

/*
 * A look has shown that a change is wanted still.  One that was accepted may take a moment
 * to be seen: so it is looked at with pauses that grow, and asked for again only after
 * some, and not for ever: then the operation fails with IN_VAIN.
 */
extern SbxOpWant sbx_steps_ask(SbxOp *op, SbxStep *look, SbxStep *ask);

/* The end of a destroy. */
extern SbxOpWant sbx_steps_destroyed(SbxOp *op, SbxDestroyResult result);

/* Nothing is there: of a delete that may have worked that is its success. */
extern SbxOpWant sbx_steps_nothing_left(SbxOp *op);

/* --- requests ------------------------------------------------------------- */

/*
 * A request is begun, gets the headers that are a kind's own, and is sent; answer is the
 * step that will look at what comes back.  Reads, deletes and writes to a place may be
 * delivered twice.  A POST may not, unless the caller says so afterwards.
 */
extern void
sbx_steps_request(SbxOp *op, const char *method, const char *url, int64_t timeout_ms);
extern void
sbx_steps_header(SbxOp *op, const char *name, const char *prefix, const char *value);

/* A content type of NULL says nothing of the body, of which there is none as a rule. */
extern SbxOpWant sbx_steps_send(SbxOp *op, const char *content_type, const char *bytes,
                                size_t length, SbxStep *answer);

/* To whom JSON is spoken both ways; NULL = no body. */
extern SbxOpWant sbx_steps_send_json(SbxOp *op, const char *body, SbxStep *answer);

/* --- launches ------------------------------------------------------------- */

/* How long a create may take: as the caller says, or the setting, or the kind. */
extern int64_t sbx_steps_create_ms(const SbxLaunchInput *input,
                                   const SbxFieldValue *seconds, int64_t default_ms);

/*
 * What a launch sends, as text; the body is freed.  Nothing is made before that.  Without a
 * body, which is input that the provider cannot carry, the launch is refused.
 */
extern const char *sbx_steps_launch_body(SbxOp *op, json_t *body);

/* --- answers -------------------------------------------------------------- */

/* Could the provider have got the request?  Only a reported failure says no. */
extern bool sbx_steps_may_have_arrived(const SbxOp *op);
extern bool sbx_steps_is_success(const SbxOp *op);

/* A definite no: what was asked for has not happened, and will not. */
extern bool sbx_steps_is_refusal(const SbxOp *op);

/*
 * May it have done what it was to do, so that "there is none" can be its work?  A refusal
 * has not, and what was throttled was not looked at.  Of what was sent twice the first may
 * have, whatever the second was answered.
 */
extern bool sbx_steps_may_have_worked(const SbxOp *op);

/*
 * Trouble that a later attempt may not meet.  An answer that is too long is none: it
 * will be as long the next time.
 */
extern bool sbx_steps_is_passing(const SbxOp *op);

/*
 * "There is none": 404 as an interface says it, in an object or without a word.  A web
 * server that knows nothing of the interface says it with a page, which proves nothing.
 */
extern bool sbx_steps_is_absent(const SbxOp *op);

/* "UNAUTHORIZED", "FORBIDDEN", "RATE_LIMITED": statuses that mean the same everywhere. */
extern const char *sbx_steps_status_code(const SbxOp *op);

/* The answer as a JSON object, or NULL; the caller owns it. */
extern json_t *sbx_steps_object(const SbxOp *op, bool allow_nul);

/* --- ids and labels ------------------------------------------------------- */

/* Bytes that need no encoding in a path, of which known ids and names consist. */
#define SBX_NAME_BYTES                                                                 \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

/*
 * May this become a path segment of a URL?  Only what needs no encoding there, and
 * not the dot names, which would mean another path.
 */
extern bool sbx_steps_valid_id(const char *id);

/* Of a text that is UTF-8. */
extern size_t sbx_steps_count_characters(const char *text);

/* NULL when a text is not UTF-8, or memory is short; the caller owns it. */
extern json_t *sbx_steps_json_pairs(const SbxPair *pairs, int count);

/*
 * The same of the labels of a launch, also NULL when one of them cannot be carried.  A name
 * that cannot is left out.
 */
extern json_t *
sbx_steps_json_labels(const SbxLaunchInput *input,
                      bool (*carries)(const char *key, const char *value));

/* Seconds since 1970 as ISO 8601; NULL = a year that nobody means, or no memory. */
extern const char *sbx_steps_time_text(SbxOp *op, int64_t seconds);

/* Whose is what was found under the unique name? */
typedef enum SbxOwner
{
	SBX_OWNER_OURS,    /* made by the very launch that is asked about */
	SBX_OWNER_ANOTHER, /* by another launch of that name, here or by another database */
	SBX_OWNER_STRANGER /* nothing says that a router made it */
} SbxOwner;

/* By its labels, an object of texts. */
extern SbxOwner sbx_steps_owner(const json_t *labels, const char *unique_name,
                                const char *launch_token);

/* Does an object of texts have all of these? */
extern bool
sbx_steps_has_labels(const json_t *object, const SbxPair *labels, int label_count);

/* A copy in the arena; NULL = no memory. */
extern SbxPair *sbx_steps_copy_pairs(SbxOp *op, const SbxPair *pairs, int count);

/* The labels as facts; false = no memory. */
extern bool
sbx_steps_take_labels(SbxOp *op, const json_t *labels, SbxSandboxFacts *facts);

/* A kind's words for states; the last row has no word. */
typedef struct SbxStateWord
{
	const char *word;
	SbxSandboxState state;
} SbxStateWord;

/*
 * All other words, known today or not, and none at all, are of a sandbox on its way:
 * starting, never ready and never gone.
 */
extern SbxSandboxState
sbx_steps_state(const SbxStateWord *words, const char *word, bool in_any_case);

/* "No such sandbox" is an answer to the question what it is like, not a failure. */
extern SbxOpWant sbx_steps_succeed_gone(SbxOp *op);

/* --- listings ------------------------------------------------------------- */

/* What the pages of a listing have shown so far; zeroed is none. */
typedef struct SbxFoundSandboxes
{
	SbxSandboxFacts *sandboxes;
	int count;
	int size; /* room */
} SbxFoundSandboxes;

/* Facts without an id, or none at all, are no sandbox: false. */
extern bool
sbx_steps_add_found(SbxOp *op, SbxFoundSandboxes *found, const SbxSandboxFacts *facts);

/* Each of them once, by id. */
extern void sbx_steps_settle_found(SbxFoundSandboxes *found, SbxFindResult *result);

/* Reading a listing page by page; an operation's own state has one. */
typedef struct SbxPages
{
	const char **cursors; /* of all pages but the first */
	int behind;           /* pages that have been read */
	int maximum;          /* more than so many are no listing */
	int tries;            /* at the page that is wanted now */

	SbxStep *page; /* asks for the page that is wanted */

	/*
	 * Takes the items of an answer, and the cursor of the next page, in the arena; NULL =
	 * this was the last one.  False = the answer is not what it has to be.
	 */
	bool (*take)(SbxOp *op, const char **cursor);
	const char *malformed_code; /* of the failure then */
	SbxStep *listed;            /* what comes after the last page */
} SbxPages;

/* maximum is at least 2. */
extern void
sbx_steps_pages(SbxOp *op, SbxPages *pages, int maximum, SbxStep *page,
                bool (*take)(SbxOp *op, const char **cursor), SbxStep *listed);

/* The cursor of the page that is wanted, encoded for a URL; NULL = it is the first. */
extern const char *sbx_steps_cursor(SbxOp *op, const SbxPages *pages);

/*
 * After an answer: trouble that may pass is met again after a pause, what cannot be read
 * to its end fails as a whole.  A list that silently lacks some would be taken for all
 * there is.
 */
extern SbxOpWant sbx_steps_page_answered(SbxOp *op, SbxPages *pages);

/* --- files ---------------------------------------------------------------- */

/* Can it be that of a file?  None has a part "..", and it does not end with a directory. */
extern bool sbx_steps_is_file_path(const char *path);

/* A copy of what is to be uploaded; NULL = no memory. */
extern const char *sbx_steps_copy_content(SbxOp *op, const SbxUploadInput *input);

/* The answer to this request has a file of so many bytes, or a refusal with its text. */
extern void sbx_steps_expect_file(SbxOp *op, size_t max_bytes);
extern bool sbx_steps_is_file_too_large(const SbxOp *op, size_t max_bytes);

/* The body of the answer is the result, SbxFileContent. */
extern SbxOpWant sbx_steps_succeed_with_file(SbxOp *op);

/* --- odds and ends --------------------------------------------------------- */

/* A base URL as it is put before paths, without the slash at its end; NULL = no memory. */
extern const char *sbx_steps_base_url(SbxOp *op, const char *url);

/* A copy of a text member, or NULL. */
extern const char *
sbx_steps_copy_string(SbxOp *op, const json_t *object, const char *key);

#endif /* SBX_STEPS_H */
