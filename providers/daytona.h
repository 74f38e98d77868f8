/*
 * daytona.h
 *		What the files of the Daytona adapter share; nobody else includes it.
 *
 * An operation is a chain of steps: each looks at the answer the step before
 * asked for, and names the step that will look at the next one.  A step never
 * keeps a pointer into an answer; the driver frees it when the step returns.
 */
#ifndef SBX_DAYTONA_H
#define SBX_DAYTONA_H

#include "net/json.h"
#include "net/op.h"
#include "providers/provider.h"

/* First arena block of most operations: enough for the smaller ones. */
#define DAYTONA_ARENA_SMALL 4096

/* Ids become path segments and host names are compared: plain ASCII, unencoded. */
#define DAYTONA_NAME_BYTES                                                             \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

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
extern SbxOp *
sbx_daytona_find(const SbxAccount *account, const SbxPair *labels, int label_count);

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

typedef SbxOpWant SbxDaytonaStep(SbxOp *op);

/* Operations that remember more start their own state with this one. */
typedef struct SbxDaytonaState
{
	SbxDaytonaStep *step;     /* what the next advance() does */
	const char *api_url;      /* without a trailing slash */
	const char *api_key;      /* the caller's, pinned until the op is freed */
	const char *sandbox_url;  /* "<api>/sandbox/<id or name>" */
	const char *toolbox_url;  /* "<toolboxProxyUrl>/<id>", checked, or NULL */
	SbxDaytonaStep *opened;   /* what comes once the toolbox is open */
	SbxAllocation allocation; /* what a failure now has to say; launch only */
	bool sent;                /* anything at all */
	bool acted;               /* the request that changes something went out */
	int64_t pause_ms;         /* length of the next pause */
	int64_t waited_ms;        /* sum of pauses: there is no clock here */

	/* The last thing that went wrong; what a failure by timeout reports. */
	SbxFailure noted;
	const char *timeout_code; /* when nothing went wrong but the time is over */

	/* The outcome is known (result or noted); only tidying up is left. */
	bool tidying;
	void *result;
} SbxDaytonaState;

/* The first and the last line of every maker; NULL = no memory. */
extern SbxOp *sbx_daytona_make_op(const SbxAccount *account, const char *operation,
                                  SbxDaytonaStep *first_step, size_t state_size,
                                  size_t first_block, int64_t timeout_ms);
extern SbxOp *sbx_daytona_made_op(SbxOp *op);

/* Endings. */
extern SbxDaytonaStep sbx_daytona_refuse;
extern SbxOpWant sbx_daytona_fail(SbxOp *op, SbxPhase phase, const char *code);
extern SbxOpWant sbx_daytona_fail_response(SbxOp *op, const char *code);
extern SbxOpWant sbx_daytona_fail_noted(SbxOp *op, const char *code);
extern void sbx_daytona_note(SbxOp *op, const char *code);

/* --- requests ----------------------------------------------------------- */

extern bool sbx_daytona_valid_id(const char *id);
extern void sbx_daytona_point_at(SbxOp *op, const char *id_or_name);
extern void sbx_daytona_set_target(SbxOp *op, const SbxTarget *target);

/* "answer" and "next" name the step that goes on from there. */
extern SbxOpWant sbx_daytona_send(SbxOp *op, const char *method, const char *url,
                                  const char *body, SbxDaytonaStep *answer);
extern SbxOpWant sbx_daytona_send_bytes(SbxOp *op, const char *method, const char *url,
                                        const char *content_type, const char *bytes,
                                        size_t length, SbxDaytonaStep *answer);
extern json_t *sbx_daytona_pairs(const SbxPair *pairs, int count);
extern SbxOpWant sbx_daytona_look(SbxOp *op, SbxDaytonaStep *answer);
extern SbxOpWant sbx_daytona_pause(SbxOp *op, int64_t ms, SbxDaytonaStep *next);

/* --- answers ------------------------------------------------------------ */

extern bool sbx_daytona_may_have_arrived(const SbxOp *op);
extern bool sbx_daytona_is_success(const SbxOp *op);
extern bool sbx_daytona_is_passing(const SbxOp *op);
extern const char *sbx_daytona_status_code(const SbxOp *op);
extern bool sbx_daytona_message_has(const SbxOp *op, const char *text);

/* The caller owns what these return. */
extern json_t *sbx_daytona_object(const SbxOp *op, bool allow_nul);
extern json_t *sbx_daytona_sandbox(const SbxOp *op);
extern json_t *sbx_daytona_take_sandbox(SbxOp *op);

/* Whose is what was found under the unique name? */
typedef enum DaytonaOwner
{
	DAYTONA_OURS,    /* made by the very launch that is asked about */
	DAYTONA_ANOTHER, /* by another launch of that name, here or by another database */
	DAYTONA_STRANGER /* nothing says that a router made it */
} DaytonaOwner;

extern DaytonaOwner sbx_daytona_owner(const json_t *sandbox, const char *unique_name,
                                      const char *launch_token);

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

	/* Not to be ready in time is a result, too. */
	bool unready_is_result;
} SbxDaytonaWait;

/* Succeeds with SbxSandboxFacts. */
extern SbxDaytonaStep sbx_daytona_await_ready;

/* After a look that told nothing: pause and look again, or give it up. */
extern SbxOpWant sbx_daytona_after_trouble(SbxOp *op, SbxDaytonaStep *look);

/* The next pause of a wait: short at first, then ever longer. */
extern SbxOpWant sbx_daytona_wait_more(SbxOp *op, SbxDaytonaStep *next);

/* --- the toolbox (daytona_toolbox.c) ------------------------------------ */

extern bool sbx_daytona_learn_toolbox(SbxOp *op, const json_t *sandbox);
extern SbxOpWant sbx_daytona_fail_toolbox(SbxOp *op);
extern SbxOpWant sbx_daytona_ask_toolbox(SbxOp *op, SbxDaytonaStep *answer);
extern bool sbx_daytona_take_toolbox(SbxOp *op);

/* Looks whether the sandbox is started, and where its toolbox is; then goes on. */
extern SbxOpWant sbx_daytona_open_toolbox(SbxOp *op, SbxDaytonaStep *opened);

extern SbxOpWant
sbx_daytona_send_toolbox(SbxOp *op, const char *method, const char *path,
                         const char *body, SbxDaytonaStep *answer);
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
