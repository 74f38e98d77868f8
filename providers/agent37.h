/*
 * agent37.h
 *		What the files of the Agent37 adapter share; nobody else includes it.
 */
#ifndef SBX_AGENT37_H
#define SBX_AGENT37_H

#include "providers/script.h"
#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define AGENT37_ARENA_SMALL 4096

/* So much of the 280 s after which the provider gives up on a command is the script's. */
#define AGENT37_SCRIPT_MAX_MS (270 * 1000)

/* --- declarations --------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_agent37_settings. */
enum
{
	AGENT37_SET_API_URL,
	AGENT37_SET_INSTANCE_URL,
	AGENT37_SET_TEMPLATE,
	AGENT37_SET_CPU,
	AGENT37_SET_MEMORY,
	AGENT37_SET_DISK,
	AGENT37_SET_TYPE,
	AGENT37_SET_AUTO_SLEEP,
	AGENT37_SET_IDLE_TIMEOUT,
	AGENT37_SET_HOME_DIR,
	AGENT37_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_agent37_settings[];

/* agent37_launch.c */
extern SbxOp *
sbx_agent37_launch(const SbxAccount *account, const SbxLaunchInput *input);
extern bool sbx_agent37_carries_variable(const char *name, const char *value);

/* agent37_look.c */
extern SbxOp *sbx_agent37_get(const SbxAccount *account, const SbxTarget *target);

/* agent37_list.c */
extern SbxOp *
sbx_agent37_find(const SbxAccount *account, const SbxPair *labels, int label_count);
extern SbxOp *sbx_agent37_usage(const SbxAccount *account, int64_t timeout_ms);

/* agent37_power.c */
extern SbxOp *sbx_agent37_wait_ready(const SbxAccount *account, const SbxTarget *target,
                                     int64_t timeout_ms);
extern SbxOp *sbx_agent37_start(const SbxAccount *account, const SbxTarget *target,
                                int64_t timeout_ms);
extern SbxOp *sbx_agent37_stop(const SbxAccount *account, const SbxTarget *target,
                               int64_t timeout_ms);

/* agent37_run.c */
extern SbxOp *sbx_agent37_run_script(const SbxAccount *account, const SbxTarget *target,
                                     const SbxRunInput *input);

/* agent37_files.c */
extern SbxOp *sbx_agent37_upload(const SbxAccount *account, const SbxTarget *target,
                                 const SbxUploadInput *input);
extern SbxOp *sbx_agent37_download(const SbxAccount *account, const SbxTarget *target,
                                   const char *path, size_t max_bytes);

/* agent37_destroy.c */
extern SbxOp *sbx_agent37_destroy(const SbxAccount *account, const SbxTarget *target,
                                  int64_t timeout_ms);

/* --- the frame of an operation (agent37_hosting.c) -------------------------- */

/* Operations that remember more start their own state with this one. */
typedef struct SbxAgent37State
{
	SbxSteps steps;            /* first */
	const char *api_key;       /* the caller's, pinned until the op is freed */
	const char *instances_url; /* "<api>/v1/instances" */
	const char *control_url;   /* "<api>/v1/instances/<id>" */
	const char *fixed_url;     /* what the address of an instance begins with, if set */

	/* Of the instance, once it was looked at and found right. */
	const char *instance_url;
	SbxStep *opened; /* what comes then */
} SbxAgent37State;

extern SbxOp *sbx_agent37_make_op(const SbxAccount *account, const char *operation,
                                  SbxStep *first_step, size_t state_size,
                                  size_t first_block, int64_t timeout_ms);

/* The instance an operation is about; one without an id is refused. */
extern void sbx_agent37_set_target(SbxOp *op, const SbxTarget *target);
extern void sbx_agent37_point_at(SbxOp *op, const char *id);

/* --- the hosting plane ---------------------------------------------------- */

/* "answer" names the step that goes on from there. */
extern SbxOpWant sbx_agent37_send(SbxOp *op, const char *method, const char *url,
                                  const char *body, SbxStep *answer);
extern SbxOpWant sbx_agent37_look(SbxOp *op, SbxStep *answer);
extern SbxOpWant sbx_agent37_list(SbxOp *op, SbxStep *answer);

/*
 * The body of an exec; NULL = the text is no UTF-8, or no memory.  Nothing ends a command
 * before its own end, so a text says itself how long it runs.
 */
extern const char *sbx_agent37_exec_body(SbxOp *op, const char *text);
extern SbxOpWant sbx_agent37_exec(SbxOp *op, const char *body, SbxStep *answer);

/*
 * The error code of an answer of either plane, in the arena; NULL = there is none.
 * "edge" is set when it comes from what stands in front of an instance.
 */
extern const char *sbx_agent37_error(SbxOp *op, bool *edge);

/* What it proves about a create, and what we call it; for one that says nothing, NULL. */
extern const char *sbx_agent37_error_code(SbxOp *op, SbxAllocation *allocation);

/* The answer as a failure of the hosting plane. */
extern SbxOpWant sbx_agent37_fail(SbxOp *op);

extern SbxSandboxState sbx_agent37_state(const json_t *instance);

extern SbxSandboxFacts *sbx_agent37_facts(SbxOp *op, const json_t *instance);

/*
 * The answer as a description of the instance that was asked about; the caller owns it.
 * NULL = it is none, and the operation has failed.
 */
extern json_t *sbx_agent37_take_instance(SbxOp *op);

/*
 * The answer as the list of all instances; the caller owns it.  NULL = it is none, or
 * says that it is not all.
 */
extern json_t *sbx_agent37_take_list(SbxOp *op);

/* --- waiting until it takes commands (agent37_ready.c) --------------------- */

/* Every operation that waits starts its own state with this one. */
typedef struct SbxAgent37Wait
{
	SbxAgent37State state; /* first */
	SbxSandboxFacts *facts;
	SbxStep *stopped; /* what to do about one that is; NULL = that is the end */
} SbxAgent37Wait;

extern SbxStep sbx_agent37_ready_look;

/* For one that is known to run. */
extern SbxStep sbx_agent37_ready_probe;

/* --- the instance plane (agent37_instance.c) ------------------------------- */

/* Looks whether the instance runs, and where; then goes on. */
extern SbxOpWant sbx_agent37_open(SbxOp *op, SbxStep *opened);

/* A request about the file of that absolute path.  No bytes: it is read. */
extern SbxOpWant sbx_agent37_send_file(SbxOp *op, const char *path, const char *bytes,
                                       size_t length, SbxStep *answer);

/* After an answer that is no success: once more with "again", or the end. */
extern SbxOpWant sbx_agent37_file_refused(SbxOp *op, SbxStep *again);

/* After a success: are so many bytes there?  Then goes on. */
extern SbxOpWant sbx_agent37_file_stored(SbxOp *op, size_t length, SbxStep *stored);

#endif /* SBX_AGENT37_H */
