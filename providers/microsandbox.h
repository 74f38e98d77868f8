/*
 * microsandbox.h
 *		What the files of the Microsandbox adapter share; nobody else includes it.
 */
#ifndef SBX_MICROSANDBOX_H
#define SBX_MICROSANDBOX_H

#include "providers/marks.h"
#include "providers/microsandbox_frame.h"
#include "providers/script.h"
#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define MICROSANDBOX_ARENA_SMALL 4096

/* --- declarations --------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_microsandbox_settings. */
enum
{
	MICROSANDBOX_SET_API_URL,
	MICROSANDBOX_SET_IMAGE,
	MICROSANDBOX_SET_VCPUS,
	MICROSANDBOX_SET_MEMORY,
	MICROSANDBOX_SET_DISK,
	MICROSANDBOX_SET_WORKDIR,
	MICROSANDBOX_SET_USER,
	MICROSANDBOX_SET_PULL_POLICY,
	MICROSANDBOX_SET_EPHEMERAL,
	MICROSANDBOX_SET_MAX_DURATION,
	MICROSANDBOX_SET_IDLE_TIMEOUT,
	MICROSANDBOX_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_microsandbox_settings[];

/* microsandbox_launch.c */
extern bool sbx_microsandbox_carries_label(const char *key, const char *value);
extern SbxOp *
sbx_microsandbox_launch(const SbxAccount *account, const SbxLaunchInput *input);

/* What the refusal of a create proves; the last row has the status 0. */
typedef struct SbxMicrosandboxRefusal
{
	int status;
	const char *error_code; /* in the body; NULL = any */
	SbxAllocation allocation;
	const char *code;
} SbxMicrosandboxRefusal;

extern const SbxMicrosandboxRefusal sbx_microsandbox_refusals[];

/* microsandbox_list.c */
extern SbxOp *sbx_microsandbox_find(const SbxAccount *account, const SbxPair *labels,
                                    int label_count);
extern SbxOp *sbx_microsandbox_usage(const SbxAccount *account, int64_t timeout_ms);

/* microsandbox_power.c */
extern SbxOp *sbx_microsandbox_get(const SbxAccount *account, const SbxTarget *target);
extern SbxOp *sbx_microsandbox_wait_ready(const SbxAccount *account,
                                          const SbxTarget *target, int64_t timeout_ms);
extern SbxOp *sbx_microsandbox_start(const SbxAccount *account, const SbxTarget *target,
                                     int64_t timeout_ms);
extern SbxOp *sbx_microsandbox_stop(const SbxAccount *account, const SbxTarget *target,
                                    int64_t timeout_ms);

/* microsandbox_run.c */
extern SbxOp *
sbx_microsandbox_run_script(const SbxAccount *account, const SbxTarget *target,
                            const SbxRunInput *input);

/* microsandbox_background.c */
extern SbxOp *
sbx_microsandbox_start_script(const SbxAccount *account, const SbxTarget *target,
                              const SbxRunInput *input);
extern SbxOp *
sbx_microsandbox_script_status(const SbxAccount *account, const SbxTarget *target,
                               const SbxScriptTarget *script);
extern SbxOp *
sbx_microsandbox_script_logs(const SbxAccount *account, const SbxTarget *target,
                             const SbxScriptTarget *script);

/* microsandbox_files.c */
extern SbxOp *
sbx_microsandbox_upload(const SbxAccount *account, const SbxTarget *target,
                        const SbxUploadInput *input);
extern SbxOp *
sbx_microsandbox_download(const SbxAccount *account, const SbxTarget *target,
                          const char *path, size_t max_bytes);

/* microsandbox_destroy.c */
extern SbxOp *sbx_microsandbox_destroy(const SbxAccount *account,
                                       const SbxTarget *target, int64_t timeout_ms);

/* --- the frame of an operation -------------------------------------------- */

/* Operations that remember more start their own state with this one. */
typedef struct SbxMicrosandboxState
{
	SbxSteps steps;      /* first */
	const char *api_url; /* "<api>/v1/sandboxes" */
	const char *api_key; /* the caller's, pinned until the op is freed */
	const char *url;     /* of the sandbox */
} SbxMicrosandboxState;

extern SbxOp *sbx_microsandbox_make_op(const SbxAccount *account, const char *operation,
                                       SbxStep *first_step, size_t state_size,
                                       size_t first_block, int64_t timeout_ms);

/* The sandbox an operation is about; one without an id is refused. */
extern void sbx_microsandbox_set_target(SbxOp *op, const SbxTarget *target);
extern void sbx_microsandbox_point_at(SbxOp *op, const char *id);

/* A UUID: names are used again, so that they name nothing for long. */
extern bool sbx_microsandbox_valid_id(const char *id);

/* --- the control plane ---------------------------------------------------- */

/* "answer" names the step that goes on from there. */
extern SbxOpWant sbx_microsandbox_send(SbxOp *op, const char *method, const char *url,
                                       const char *body, SbxStep *answer);
extern SbxOpWant sbx_microsandbox_look(SbxOp *op, SbxStep *answer);

/* Is this the code of the error in the answer? */
extern bool sbx_microsandbox_has_code(const SbxOp *op, const char *code);

/* "No such sandbox", in the provider's own words: any other 404 may be anybody's. */
extern bool sbx_microsandbox_is_gone(const SbxOp *op);

extern SbxSandboxState sbx_microsandbox_sandbox_state(const json_t *sandbox);
extern SbxSandboxFacts *sbx_microsandbox_facts(SbxOp *op, const json_t *sandbox);

/*
 * The answer as a description of the sandbox that was asked about; the caller owns it.
 * NULL = it is none, and the operation has failed.
 */
extern json_t *sbx_microsandbox_take_sandbox(SbxOp *op);

/*
 * Look until it runs, then succeed with it.  One that will not by itself fails.  With
 * SbxMicrosandboxWait as the start of the operation's own state.
 */
typedef struct SbxMicrosandboxWait
{
	SbxMicrosandboxState state; /* first */
	bool stopped_is_passing;    /* it was asked to start a moment ago */

	/* What one that has stopped is told; NULL = nothing, then it fails. */
	SbxStep *restart;
} SbxMicrosandboxWait;

extern SbxStep sbx_microsandbox_await;

/* --- commands (microsandbox_agent.c) --------------------------------------- */

/* A shell's text and what goes with it. */
typedef struct SbxMicrosandboxCommandLine
{
	const char *text;
	const char *argument; /* $1 of the text; NULL = none */
	const char *input;    /* what it can read; NULL = nothing */
	size_t input_length;
	int64_t timeout_ms;  /* from its start */
	size_t max_stream;   /* bytes kept of each stream */
	bool full_is_enough; /* more output than that is not waited for */

	/*
	 * It counts as over once it has printed this mark on both streams, whoever still
	 * holds them open; NULL = nothing marks the end.
	 */
	const char *mark;
} SbxMicrosandboxCommandLine;

/* What the agent has told of it so far. */
typedef struct SbxMicrosandboxExec
{
	SbxMicrosandboxCommandLine line;
	SbxMicrosandboxReader reader;
	uint32_t id;
	int64_t version;
	SbxMarkedOutput marked;
	bool asked; /* it may be running */
	bool started;
	bool exited;
	bool not_run; /* the agent said that it could not start it */
	bool timed_out;
	bool garbled;
	int exit_code;
} SbxMicrosandboxExec;

/* Every operation that runs commands starts its own state with this one. */
typedef struct SbxMicrosandboxCommand
{
	SbxMicrosandboxState state; /* first */
	SbxMicrosandboxExec exec;
} SbxMicrosandboxCommand;

/* Run a text in a shell of its own, over a socket of its own. */
extern SbxOpWant
sbx_microsandbox_execute(SbxOp *op, const SbxMicrosandboxCommandLine *line,
                         SbxStep *answer);

/*
 * A text that is too long for an argument goes through a file, named by the run, that
 * removes itself; the stored text runs it.
 */
extern bool sbx_microsandbox_is_long(const char *text);
extern SbxOpWant sbx_microsandbox_store(SbxOp *op, const char *run_id, const char *text,
                                        SbxStep *answer);
extern const char *sbx_microsandbox_stored_text(SbxOp *op, const char *run_id);

/* Once its socket is closed: did it end, so that the exit code counts? */
extern bool sbx_microsandbox_has_ended(SbxOp *op, int *exit_code);

/* What it printed, ended by a NUL; NULL = it did not run to its end. */
extern const char *sbx_microsandbox_printed(SbxOp *op, int *exit_code);

/* The end of an operation whose command came to nothing; code NULL = as the answer says. */
extern void sbx_microsandbox_note_exec(SbxOp *op, const char *code);
extern SbxOpWant sbx_microsandbox_fail_exec(SbxOp *op, const char *code);

#endif /* SBX_MICROSANDBOX_H */
