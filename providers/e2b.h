/*
 * e2b.h
 *		What the files of the E2B adapter share; nobody else includes it.
 */
#ifndef SBX_E2B_H
#define SBX_E2B_H

#include "providers/connect.h"
#include "providers/marks.h"
#include "providers/script.h"
#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define E2B_ARENA_SMALL 4096

/* --- declarations --------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_e2b_settings. */
enum
{
	E2B_SET_API_URL,
	E2B_SET_DOMAIN,
	E2B_SET_SANDBOX_URL,
	E2B_SET_TEMPLATE,
	E2B_SET_TIMEOUT,
	E2B_SET_ALLOW_INTERNET,
	E2B_SET_AUTO_PAUSE,
	E2B_SET_USER,
	E2B_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_e2b_settings[];

/* e2b_launch.c */
extern SbxOp *sbx_e2b_launch(const SbxAccount *account, const SbxLaunchInput *input);

/* e2b_look.c */
extern SbxOp *sbx_e2b_get(const SbxAccount *account, const SbxTarget *target);

/* e2b_list.c */
extern SbxOp *
sbx_e2b_find(const SbxAccount *account, const SbxPair *labels, int label_count);
extern SbxOp *sbx_e2b_usage(const SbxAccount *account, int64_t timeout_ms);

/* e2b_power.c */
extern SbxOp *sbx_e2b_wait_ready(const SbxAccount *account, const SbxTarget *target,
                                 int64_t timeout_ms);
extern SbxOp *
sbx_e2b_start(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms);
extern SbxOp *
sbx_e2b_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms);

/* e2b_run.c */
extern SbxOp *sbx_e2b_run_script(const SbxAccount *account, const SbxTarget *target,
                                 const SbxRunInput *input);

/* e2b_background.c */
extern SbxOp *sbx_e2b_start_script(const SbxAccount *account, const SbxTarget *target,
                                   const SbxRunInput *input);
extern SbxOp *sbx_e2b_script_status(const SbxAccount *account, const SbxTarget *target,
                                    const SbxScriptTarget *script);
extern SbxOp *sbx_e2b_script_logs(const SbxAccount *account, const SbxTarget *target,
                                  const SbxScriptTarget *script);

/* e2b_files.c */
extern SbxOp *sbx_e2b_upload(const SbxAccount *account, const SbxTarget *target,
                             const SbxUploadInput *input);
extern SbxOp *sbx_e2b_download(const SbxAccount *account, const SbxTarget *target,
                               const char *path, size_t max_bytes);

/* e2b_destroy.c */
extern SbxOp *
sbx_e2b_destroy(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms);

/* --- the frame of an operation -------------------------------------------- */

/* Operations that remember more start their own state with this one. */
typedef struct SbxE2bState
{
	SbxSteps steps; /* first */
	const char *api_url;
	const char *api_key;     /* the caller's, pinned until the op is freed */
	const char *domain;      /* the configured one */
	const char *fixed_url;   /* of every sandbox, if it is set */
	const char *user;        /* that commands run as; NULL = the template's */
	const char *control_url; /* "<api>/sandboxes/<id>" */
	int64_t lifetime_s;      /* of a sandbox, from the moment that it is set */

	/* Of the sandbox, once it was looked at. */
	const char *envd_url;
	const char *envd_token;
	SbxStep *opened; /* what comes then */
} SbxE2bState;

extern SbxOp *
sbx_e2b_make_op(const SbxAccount *account, const char *operation, SbxStep *first_step,
                size_t state_size, size_t first_block, int64_t timeout_ms);

/* The sandbox an operation is about; one without an id is refused. */
extern void sbx_e2b_set_target(SbxOp *op, const SbxTarget *target);
extern void sbx_e2b_point_at(SbxOp *op, const char *id);
extern bool sbx_e2b_valid_id(const char *id);

/* --- the control plane ---------------------------------------------------- */

/* "answer" names the step that goes on from there. */
extern SbxOpWant sbx_e2b_send(SbxOp *op, const char *method, const char *url,
                              const char *body, SbxStep *answer);
extern SbxOpWant sbx_e2b_look(SbxOp *op, SbxStep *answer);

/*
 * Has it run for at least so many seconds from now.  One that is paused is resumed; of
 * one that runs the end is moved, but never nearer.
 */
extern SbxOpWant sbx_e2b_connect(SbxOp *op, int64_t seconds, SbxStep *answer);

/* Of a 429: too many requests for now.  Without it there are too many sandboxes. */
extern bool sbx_e2b_tells_when(SbxOp *op);

/* "state" of a description of a sandbox. */
extern SbxSandboxState sbx_e2b_sandbox_state(const json_t *sandbox);
extern SbxSandboxFacts *sbx_e2b_facts(SbxOp *op, const json_t *sandbox);

/*
 * The answer as a description of the sandbox that was asked about; the caller owns it.
 * NULL = it is none, and the operation has failed.
 */
extern json_t *sbx_e2b_take_sandbox(SbxOp *op);

/*
 * The URL of a listing of those with all of these labels, running or paused; NULL = a
 * label is no UTF-8, or no memory.  A page more: append "&nextToken=<token>".
 */
extern const char *sbx_e2b_list_url(SbxOp *op, const SbxPair *labels, int label_count);

/* --- inside the sandbox --------------------------------------------------- */

/* Looks whether the sandbox runs, and where; then goes on. */
extern SbxOpWant sbx_e2b_open(SbxOp *op, SbxStep *opened);

/*
 * Gives it at least so many more seconds, and the configured lifetime; then goes on.  A
 * sandbox whose time is over takes its scripts with it.
 */
extern SbxOpWant sbx_e2b_extend(SbxOp *op, int64_t seconds, SbxStep *extended);

/* What a description says about that; false = it cannot be used. */
extern bool sbx_e2b_learn_envd(SbxOp *op, const json_t *sandbox);

extern SbxOpWant sbx_e2b_send_envd(SbxOp *op, const char *method, const char *path,
                                   const char *content_type, const char *bytes,
                                   size_t length, SbxStep *answer);

/* The end of an operation that was refused there. */
extern SbxOpWant sbx_e2b_fail_in_envd(SbxOp *op, const char *code);
extern SbxOpWant sbx_e2b_fail_noted_in_envd(SbxOp *op);

/* --- commands (e2b_process.c) --------------------------------------------- */

/* What a stream has told so far.  Set up by sbx_e2b_execute. */
typedef struct SbxE2bProcess
{
	SbxConnectReader reader;
	SbxMarkedOutput marked;
	bool keep_running; /* only the start is of interest */
	bool started;
	bool ended;
	bool killed; /* by a signal */
	int exit_code;
	bool has_error; /* the stream ended with one */
	bool too_late;  /* and that was the end of the command's time */
	bool garbled;
} SbxE2bProcess;

/* Every operation that runs commands starts its own state with this one. */
typedef struct SbxE2bCommand
{
	SbxE2bState state; /* first */
	SbxE2bProcess process;
} SbxE2bCommand;

/*
 * Run a text in a shell of its own.  timeout_ms is its lifetime, 0 = none; max_stream
 * bytes of each stream are kept.  With a mark, it counts as over once it has printed
 * the mark on both streams, whoever still holds them open.
 */
extern SbxOpWant sbx_e2b_execute(SbxOp *op, const char *text, int64_t timeout_ms,
                                 size_t max_stream, const char *mark, SbxStep *answer);

/* The same for one that goes on after its start was seen. */
extern SbxOpWant sbx_e2b_spawn(SbxOp *op, const char *text, SbxStep *answer);

/*
 * A text that is too long for an argument goes through a file, named by the run, that
 * removes itself; the stored text runs it.
 */
extern bool sbx_e2b_is_long(const char *text);
extern SbxOpWant
sbx_e2b_store(SbxOp *op, const char *run_id, const char *text, SbxStep *answer);
extern const char *sbx_e2b_stored_text(SbxOp *op, const char *run_id);

/* Once its stream is over: did it end, so that the exit code counts? */
extern bool sbx_e2b_has_ended(SbxOp *op, int *exit_code);

#endif /* SBX_E2B_H */
