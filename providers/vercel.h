/*
 * vercel.h
 *		What the files of the Vercel adapter share; nobody else includes it.
 */
#ifndef SBX_VERCEL_H
#define SBX_VERCEL_H

#include "providers/marks.h"
#include "providers/ndjson.h"
#include "providers/script.h"
#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define VERCEL_ARENA_SMALL 4096

/* --- declarations --------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_vercel_settings. */
enum
{
	VERCEL_SET_API_URL,
	VERCEL_SET_IMAGE,
	VERCEL_SET_RUNTIME,
	VERCEL_SET_REGION,
	VERCEL_SET_VCPUS,
	VERCEL_SET_TIMEOUT,
	VERCEL_SET_PERSISTENT,
	VERCEL_SET_NETWORK_POLICY,
	VERCEL_SET_HOME_DIR,
	VERCEL_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_vercel_settings[];

/* vercel_launch.c */
extern SbxOp *sbx_vercel_launch(const SbxAccount *account, const SbxLaunchInput *input);
extern bool sbx_vercel_carries_label(const char *key, const char *value);

/* vercel_look.c */
extern SbxOp *sbx_vercel_get(const SbxAccount *account, const SbxTarget *target);

/* vercel_list.c */
extern SbxOp *
sbx_vercel_find(const SbxAccount *account, const SbxPair *labels, int label_count);
extern SbxOp *sbx_vercel_usage(const SbxAccount *account, int64_t timeout_ms);

/* vercel_power.c */
extern SbxOp *sbx_vercel_wait_ready(const SbxAccount *account, const SbxTarget *target,
                                    int64_t timeout_ms);
extern SbxOp *sbx_vercel_start(const SbxAccount *account, const SbxTarget *target,
                               int64_t timeout_ms);
extern SbxOp *
sbx_vercel_stop(const SbxAccount *account, const SbxTarget *target, int64_t timeout_ms);

/* vercel_run.c */
extern SbxOp *sbx_vercel_run_script(const SbxAccount *account, const SbxTarget *target,
                                    const SbxRunInput *input);

/* vercel_files.c */
extern SbxOp *sbx_vercel_upload(const SbxAccount *account, const SbxTarget *target,
                                const SbxUploadInput *input);
extern SbxOp *sbx_vercel_download(const SbxAccount *account, const SbxTarget *target,
                                  const char *path, size_t max_bytes);

/* vercel_destroy.c */
extern SbxOp *sbx_vercel_destroy(const SbxAccount *account, const SbxTarget *target,
                                 int64_t timeout_ms);

/* --- the frame of an operation -------------------------------------------- */

/* Operations that remember more start their own state with this one. */
typedef struct SbxVercelState
{
	SbxSteps steps; /* first */
	const char *api_url;
	const char *token;         /* the caller's, pinned until the op is freed */
	const char *team_query;    /* "teamId=..." */
	const char *project;       /* as it is in a body */
	const char *project_query; /* the same encoded, for a URL */
	const char *home;
	bool persistent; /* by the setting */

	/* What the sandbox is known by; its id here is its name, in op->sandbox_id. */
	const char *unique_name;  /* NULL = not known */
	const char *launch_token; /* NULL = none */
	const char *sandbox_url;

	/* Of its session, once it was looked at. */
	char session_id[SBX_SANDBOX_ID_MAX + 1];
	SbxStep *opened;        /* what comes then */
	SbxSandboxFacts *facts; /* what is waited for, and becomes the result */
} SbxVercelState;

extern SbxOp *sbx_vercel_make_op(const SbxAccount *account, const char *operation,
                                 SbxStep *first_step, size_t state_size,
                                 size_t first_block, int64_t timeout_ms);

/*
 * The sandbox an operation is about.  One whose name does not start as the router's do is
 * refused: it is somebody else's.
 */
extern void sbx_vercel_set_target(SbxOp *op, const SbxTarget *target);
extern bool sbx_vercel_valid_name(const char *name);

/* --- the token (vercel_token.c) ------------------------------------------- */

/* The team that a token speaks for, in the arena; NULL = it does not say. */
extern const char *sbx_vercel_token_team(SbxArena *arena, const char *token);

/* --- requests ------------------------------------------------------------- */

/* "answer" names the step that goes on from there. */
extern SbxOpWant sbx_vercel_send(SbxOp *op, const char *method, const char *url,
                                 const char *body, SbxStep *answer);
extern SbxOpWant sbx_vercel_look(SbxOp *op, SbxStep *answer);

/* Begins one for another kind of body, which the caller sends (sbx_steps_send). */
extern void sbx_vercel_request(SbxOp *op, const char *method, const char *url);

/* To the session that the last look found; path is what follows its id, or "". */
extern const char *sbx_vercel_session_url(SbxOp *op, const char *path);
extern SbxOpWant
sbx_vercel_send_session(SbxOp *op, const char *method, const char *path,
                        const char *body, SbxStep *answer);

/* --- descriptions (vercel_session.c) --------------------------------------- */

/* A word for a state; what is not known is on its way to one of the others. */
extern SbxSandboxState sbx_vercel_state_of(const char *word);

/* Of an answer that has a sandbox and, as a rule, its session: the session knows better. */
extern SbxSandboxState sbx_vercel_state(const json_t *answer);

/* By the tags of a sandbox, and what the operation knows. */
extern SbxOwner sbx_vercel_owner(SbxOp *op, const json_t *sandbox);

extern SbxSandboxFacts *
sbx_vercel_facts(SbxOp *op, const json_t *sandbox, SbxSandboxState state);

/* Makes it the session of the operation; false = the answer has none. */
extern bool sbx_vercel_learn_session(SbxOp *op, const json_t *answer);

/*
 * The answer as a description of the sandbox that was asked about; the caller owns it.
 * NULL = it is none, or of one that another launch made, and the operation has failed.
 */
extern json_t *sbx_vercel_take(SbxOp *op);
extern json_t *sbx_vercel_take_ours(SbxOp *op);

/* "code" of an error, or a part of its text. */
extern bool sbx_vercel_error_is(const SbxOp *op, const char *code);
extern bool sbx_vercel_error_says(const SbxOp *op, const char *words);

/* A 429 for too many requests tells the limit.  Another one is for too many sandboxes. */
extern bool sbx_vercel_is_throttled(const SbxOp *op);

/* --- sessions (vercel_session.c) ------------------------------------------- */

/* Looks whether the sandbox runs, and for its session; then goes on. */
extern SbxOpWant sbx_vercel_open(SbxOp *op, SbxStep *opened);

/*
 * The end of an operation that was refused there.  A session that is over, or a sandbox
 * that is gone, is the better reason for some refusals: then it is looked at once more.
 */
extern SbxOpWant sbx_vercel_fail_in_session(SbxOp *op, const char *code);
extern SbxOpWant sbx_vercel_fail_noted_in_session(SbxOp *op);

/* Until the session runs; then the facts are the result. */
extern SbxStep sbx_vercel_await;

/* --- files (vercel_files.c) ----------------------------------------------- */

/*
 * An upload of one file, prepared before anything is sent.  The path is absolute.  False =
 * no memory.
 */
typedef struct SbxVercelArchive
{
	const char *bytes;
	size_t length;
} SbxVercelArchive;

extern bool sbx_vercel_pack(SbxOp *op, const char *path, const char *bytes,
                            size_t length, SbxVercelArchive *archive);
extern SbxOpWant
sbx_vercel_send_archive(SbxOp *op, const SbxVercelArchive *archive, SbxStep *answer);

/* --- commands (vercel_process.c) ------------------------------------------ */

/* What a stream has told so far.  Set up by sbx_vercel_execute. */
typedef struct SbxVercelProcess
{
	SbxNdjsonReader reader;
	SbxMarkedOutput marked;
	bool started;
	bool ended;
	int exit_code;
	bool has_error; /* the sandbox went away */
	bool garbled;
} SbxVercelProcess;

/* Every operation that runs commands starts its own state with this one. */
typedef struct SbxVercelCommand
{
	SbxVercelState state; /* first */
	SbxVercelProcess process;
} SbxVercelCommand;

/*
 * Run a text in a shell of its own.  timeout_ms is its lifetime; max_stream bytes of each
 * stream are kept.  With a mark, it counts as over once it has printed the mark on both
 * streams, whoever still holds them open.
 */
extern SbxOpWant
sbx_vercel_execute(SbxOp *op, const char *text, int64_t timeout_ms, size_t max_stream,
                   const char *mark, SbxStep *answer);

/* Once its stream is over: did it end by itself, so that the exit code counts? */
extern bool sbx_vercel_has_ended(SbxOp *op, int *exit_code);

/* The exit code of what was killed by SIGKILL, as at the end of a command's time. */
#define VERCEL_EXIT_KILLED 137

#endif /* SBX_VERCEL_H */
