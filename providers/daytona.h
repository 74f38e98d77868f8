/*
 * daytona.h
 *		What the files of the Daytona adapter share; nobody else includes it.
 */
#ifndef SBX_DAYTONA_H
#define SBX_DAYTONA_H

#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define DAYTONA_ARENA_SMALL 4096

/* --- declarations ------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_daytona_settings. */
enum
{
	DAYTONA_SET_API_URL,
	DAYTONA_SET_SNAPSHOT,
	DAYTONA_SET_IMAGE,
	DAYTONA_SET_TARGET,
	DAYTONA_SET_HOME_DIR,
	DAYTONA_SET_AUTO_STOP,
	DAYTONA_SET_AUTO_ARCHIVE,
	DAYTONA_SET_AUTO_DELETE,
	DAYTONA_SET_CPU,
	DAYTONA_SET_MEMORY,
	DAYTONA_SET_DISK,
	DAYTONA_SET_PUBLIC,
	DAYTONA_SET_NETWORK_BLOCK_ALL,
	DAYTONA_SET_NETWORK_ALLOW_LIST,
	DAYTONA_SET_USER,
	DAYTONA_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_daytona_settings[];
extern const char *sbx_daytona_check_settings(const SbxFieldValue *settings);

/* daytona_launch.c */
extern SbxOp *
sbx_daytona_launch(const SbxAccount *account, const SbxLaunchInput *input);

/* daytona_look.c */
extern SbxOp *sbx_daytona_get(const SbxAccount *account, const SbxTarget *target);

/* daytona_list.c */
extern SbxOp *
sbx_daytona_find(const SbxAccount *account, const SbxPair *labels, int label_count);
extern SbxOp *sbx_daytona_usage(const SbxAccount *account, int64_t timeout_ms);
extern SbxOp *sbx_daytona_inventory(const SbxAccount *account, int64_t timeout_ms);

/* daytona_power.c */
extern SbxOp *sbx_daytona_wait_ready(const SbxAccount *account, const SbxTarget *target,
                                     int64_t timeout_ms);
extern SbxOp *sbx_daytona_start(const SbxAccount *account, const SbxTarget *target,
                                int64_t timeout_ms);
extern SbxOp *sbx_daytona_stop(const SbxAccount *account, const SbxTarget *target,
                               int64_t timeout_ms);

/* daytona_run.c */
extern SbxOp *sbx_daytona_run_script(const SbxAccount *account, const SbxTarget *target,
                                     const SbxRunInput *input);

/* daytona_background.c */
extern SbxOp *
sbx_daytona_start_script(const SbxAccount *account, const SbxTarget *target,
                         const SbxRunInput *input);
extern SbxOp *
sbx_daytona_script_status(const SbxAccount *account, const SbxTarget *target,
                          const SbxScriptTarget *script);
extern SbxOp *
sbx_daytona_script_logs(const SbxAccount *account, const SbxTarget *target,
                        const SbxScriptTarget *script);

/* daytona_files.c */
extern SbxOp *sbx_daytona_upload(const SbxAccount *account, const SbxTarget *target,
                                 const SbxUploadInput *input);
extern SbxOp *sbx_daytona_download(const SbxAccount *account, const SbxTarget *target,
                                   const char *path, size_t max_bytes);

/* daytona_destroy.c */
extern SbxOp *sbx_daytona_destroy(const SbxAccount *account, const SbxTarget *target,
                                  int64_t timeout_ms);

/* --- the frame of an operation ------------------------------------------ */

/* Operations that remember more start their own state with this one. */
typedef struct SbxDaytonaState
{
	SbxSteps steps;          /* first */
	const char *api_url;     /* without a trailing slash */
	const char *api_key;     /* the caller's, pinned until the op is freed */
	const char *sandbox_url; /* "<api>/sandbox/<id or name>" */
	const char *toolbox_url; /* "<toolboxProxyUrl>/<id>", checked, or NULL */
	SbxStep *opened;         /* what comes once the toolbox is open */
} SbxDaytonaState;

/* The first line of every maker; NULL = no memory. */
extern SbxOp *sbx_daytona_make_op(const SbxAccount *account, const char *operation,
                                  SbxStep *first_step, size_t state_size,
                                  size_t first_block, int64_t timeout_ms);

/* --- requests ----------------------------------------------------------- */

extern void sbx_daytona_point_at(SbxOp *op, const char *id_or_name);
extern void sbx_daytona_set_target(SbxOp *op, const SbxTarget *target);

/* "answer" names the step that goes on from there. */
extern SbxOpWant sbx_daytona_send(SbxOp *op, const char *method, const char *url,
                                  const char *body, SbxStep *answer);
extern SbxOpWant sbx_daytona_send_bytes(SbxOp *op, const char *method, const char *url,
                                        const char *content_type, const char *bytes,
                                        size_t length, SbxStep *answer);
extern SbxOpWant sbx_daytona_look(SbxOp *op, SbxStep *answer);

/* --- answers ------------------------------------------------------------ */

extern bool sbx_daytona_message_has(const SbxOp *op, const char *text);

/* The caller owns what these return. */
extern json_t *sbx_daytona_sandbox(const SbxOp *op);
extern json_t *sbx_daytona_take_sandbox(SbxOp *op);

extern void sbx_daytona_adopt(SbxOp *op, const json_t *sandbox);
extern SbxSandboxState sbx_daytona_sandbox_state(const json_t *sandbox);
extern SbxSandboxFacts *sbx_daytona_facts(SbxOp *op, const json_t *sandbox);

/* --- sessions (daytona_run.c) --------------------------------------------- */

/*
 * A command for the shell of a session.  NULL when its text is no UTF-8 or memory is
 * short.
 */
extern const char *
sbx_daytona_session_body(SbxArena *arena, const char *command, bool in_background);

/* --- waiting until it is ready (daytona_ready.c) ------------------------- */

/* Operations that wait start their own state with this one. */
typedef struct SbxDaytonaWait
{
	SbxDaytonaState state; /* first */
	int probes;
	SbxSandboxFacts *facts; /* of the started sandbox: the result, if it is ready */

	int trouble;     /* in a row */
	int trouble_max; /* after which it is given up; 0 = when the time is over */

	/* Nobody is starting it: one that is stopped will never be ready. */
	bool stopped_ends_it;
} SbxDaytonaWait;

/* Succeeds with SbxSandboxFacts. */
extern SbxStep sbx_daytona_await_ready;

/* After a look that told nothing: pause and look again, or give it up. */
extern SbxOpWant sbx_daytona_after_trouble(SbxOp *op, SbxStep *look);

/* --- the toolbox (daytona_toolbox.c) ------------------------------------ */

extern bool sbx_daytona_learn_toolbox(SbxOp *op, const json_t *sandbox);
extern SbxOpWant sbx_daytona_fail_toolbox(SbxOp *op);
extern SbxOpWant sbx_daytona_ask_toolbox(SbxOp *op, SbxStep *answer);
extern bool sbx_daytona_take_toolbox(SbxOp *op);

/* Looks whether the sandbox is started, and where its toolbox is; then goes on. */
extern SbxOpWant sbx_daytona_open_toolbox(SbxOp *op, SbxStep *opened);

extern SbxOpWant
sbx_daytona_send_toolbox(SbxOp *op, const char *method, const char *path,
                         const char *body, SbxStep *answer);
extern bool sbx_daytona_toolbox_has_no_sandbox(const SbxOp *op);

/* The end of an operation whose toolbox request was refused, or was noted to be. */
extern SbxOpWant sbx_daytona_fail_in_toolbox(SbxOp *op, const char *code);
extern SbxOpWant sbx_daytona_fail_noted_in_toolbox(SbxOp *op);

/*
 * A command that the sandbox answers at once.  NULL when its text is no UTF-8 or
 * memory is short.
 */
extern const char *
sbx_daytona_command_body(SbxArena *arena, const char *command, int timeout_seconds);

#endif /* SBX_DAYTONA_H */
