/*
 * freestyle.h
 *		What the files of the Freestyle adapter share; nobody else includes it.
 */
#ifndef SBX_FREESTYLE_H
#define SBX_FREESTYLE_H

#include "providers/script.h"
#include "providers/steps.h"

/* First arena block of most operations: enough for the smaller ones. */
#define FREESTYLE_ARENA_SMALL 4096

/* A command of more is refused, and so is one whose own time is longer. */
#define FREESTYLE_COMMAND_MAX   ((size_t) 60 * 1024)
#define FREESTYLE_SCRIPT_MAX_MS (INT64_C(24) * 3600 * 1000)

/* --- declarations --------------------------------------------------------- */

/* Indexes into the settings, in the order of sbx_freestyle_settings. */
enum
{
	FREESTYLE_SET_API_URL,
	FREESTYLE_SET_SNAPSHOT,
	FREESTYLE_SET_INTERNET,
	FREESTYLE_SET_IDLE_TIMEOUT,
	FREESTYLE_SET_TTL,
	FREESTYLE_SET_AUTO_DELETE,
	FREESTYLE_SET_HOME_DIR,
	FREESTYLE_SET_CREATE_TIMEOUT
};

extern const SbxField sbx_freestyle_settings[];

/* freestyle_launch.c */
extern bool sbx_freestyle_carries_label(const char *key, const char *value);
extern SbxOp *
sbx_freestyle_launch(const SbxAccount *account, const SbxLaunchInput *input);

/* freestyle_look.c */
extern SbxOp *sbx_freestyle_get(const SbxAccount *account, const SbxTarget *target);

/* freestyle_list.c */
extern SbxOp *
sbx_freestyle_find(const SbxAccount *account, const SbxPair *labels, int label_count);
extern SbxOp *sbx_freestyle_usage(const SbxAccount *account, int64_t timeout_ms);

/* freestyle_power.c */
extern SbxOp *sbx_freestyle_wait_ready(const SbxAccount *account,
                                       const SbxTarget *target, int64_t timeout_ms);
extern SbxOp *sbx_freestyle_start(const SbxAccount *account, const SbxTarget *target,
                                  int64_t timeout_ms);
extern SbxOp *sbx_freestyle_stop(const SbxAccount *account, const SbxTarget *target,
                                 int64_t timeout_ms);

/* freestyle_run.c */
extern SbxOp *
sbx_freestyle_run_script(const SbxAccount *account, const SbxTarget *target,
                         const SbxRunInput *input);

/* freestyle_files.c */
extern SbxOp *sbx_freestyle_upload(const SbxAccount *account, const SbxTarget *target,
                                   const SbxUploadInput *input);
extern SbxOp *sbx_freestyle_download(const SbxAccount *account, const SbxTarget *target,
                                     const char *path, size_t max_bytes);

/* freestyle_destroy.c */
extern SbxOp *sbx_freestyle_destroy(const SbxAccount *account, const SbxTarget *target,
                                    int64_t timeout_ms);

/* --- the frame of an operation (freestyle_call.c) --------------------------- */

/* Operations that remember more start their own state with this one. */
typedef struct SbxFreestyleState
{
	SbxSteps steps;      /* first */
	const char *api_key; /* the caller's, pinned until the op is freed */
	const char *api_url;
	const char *vms_url; /* "<api>/v5/vms" */
	const char *vm_url;  /* the same and "/<id or slug>" */

	/* Of the call that is under way. */
	SbxStep *answer; /* looks at its answer, whenever that comes */
	const char *result_url;
	int64_t poll_ms;
	int64_t answer_by_ms; /* of the operation's time; 0 = as long as that lasts */
	const char *lost; /* why its answer will never be known; NULL = it is not lost */

	/* What a virtual machine is known by, beside its id in op->sandbox_id. */
	const char *unique_name;  /* NULL = not known */
	const char *launch_token; /* NULL = none */

	SbxStep *opened;        /* what comes once it was seen to run */
	SbxSandboxFacts *facts; /* what is waited for, and becomes the result */
} SbxFreestyleState;

extern SbxOp *sbx_freestyle_make_op(const SbxAccount *account, const char *operation,
                                    SbxStep *first_step, size_t state_size,
                                    size_t first_block, int64_t timeout_ms);

/* The machine an operation is about; one without an id is refused. */
extern void sbx_freestyle_set_target(SbxOp *op, const SbxTarget *target);
extern void sbx_freestyle_point_at(SbxOp *op, const char *id);

/* What it is called in the account; NULL = it cannot be called so. */
extern const char *sbx_freestyle_slug(SbxArena *arena, const char *unique_name);

/*
 * A request whose answer "answer" looks at.  If that is 202, it looks at the real one,
 * which is asked for until it is there.  What can never be known comes as no answer, to a
 * request that was sent.
 */
extern SbxOpWant sbx_freestyle_send(SbxOp *op, const char *method, const char *url,
                                    const char *body, SbxStep *answer);

/* The same for other bytes than JSON. */
extern SbxOpWant
sbx_freestyle_send_bytes(SbxOp *op, const char *method, const char *url,
                         const char *bytes, size_t length, SbxStep *answer);

/* The same as the first for what may take its time: the provider may answer 202. */
extern SbxOpWant sbx_freestyle_call(SbxOp *op, const char *method, const char *url,
                                    const char *body, SbxStep *answer);

extern SbxOpWant sbx_freestyle_look(SbxOp *op, SbxStep *answer);

/* The body of a command; NULL = the text is no UTF-8, or no memory. */
extern const char *
sbx_freestyle_exec_body(SbxOp *op, const char *text, int64_t command_ms);
extern SbxOpWant sbx_freestyle_exec(SbxOp *op, const char *body, SbxStep *answer);

/* --- refusals (freestyle_error.c) ------------------------------------------- */

typedef struct SbxFreestyleRefusal
{
	int status;               /* 0 = any */
	const char *error;        /* the provider's code; NULL = any, or none */
	SbxAllocation allocation; /* what it proves when a create is answered so */
	bool look;                /* and then only if nothing has the slug */
	const char *code;
} SbxFreestyleRefusal;

/* What an answer that is no success says; never NULL. */
extern const SbxFreestyleRefusal *sbx_freestyle_refusal(const SbxOp *op);

/* Its code, or why there is no answer. */
extern const char *sbx_freestyle_code(const SbxOp *op);

/* The answer as a failure. */
extern SbxOpWant sbx_freestyle_fail(SbxOp *op);

/* Only the provider says so, not whatever answers at a wrong address. */
extern bool sbx_freestyle_not_found(const SbxOp *op);

/* --- descriptions (freestyle_vm.c) ------------------------------------------ */

/* False = a word that is not known; then it counts as one on its way to another. */
extern bool sbx_freestyle_state(const json_t *vm, SbxSandboxState *found);

extern SbxSandboxFacts *sbx_freestyle_facts(SbxOp *op, const json_t *vm);

/*
 * The answer as a description of the machine that was asked about; the caller owns it.
 * NULL = it is none, and the operation has failed.
 */
extern json_t *sbx_freestyle_take(SbxOp *op);

/* Looks whether the machine runs; then goes on.  Nothing else wakes one. */
extern SbxOpWant sbx_freestyle_open(SbxOp *op, SbxStep *opened);

/* Until it runs; then the facts are the result. */
extern SbxStep sbx_freestyle_await;

/* The same for a machine that is described here. */
extern SbxOpWant sbx_freestyle_await_from(SbxOp *op, const json_t *vm);

/*
 * After a call to a machine that was refused: it may be gone, or not running, which is
 * the better reason.  The code is the one that counts otherwise.
 */
extern SbxOpWant sbx_freestyle_explain(SbxOp *op, const char *code);

/* --- files (freestyle_store.c) ----------------------------------------------- */

/* What is written where.  Copied nowhere: it has to live as long as the operation. */
typedef struct SbxFreestyleFile
{
	const char *path; /* absolute */
	const char *bytes;
	size_t length;
	const char *mode; /* decimal; NULL = as it is, or the provider's own */
	SbxStep *stored;  /* what comes once it is there, whole */

	const char *made_url; /* of an upload in pieces */
	size_t received;      /* bytes that have arrived */
	size_t sent;          /* more than those cannot have */
	int tries;            /* at one piece */
	bool parents_made;
} SbxFreestyleFile;

/* Every operation that writes a file starts its own state with this one. */
typedef struct SbxFreestyleWriter
{
	SbxFreestyleState state; /* first */
	SbxFreestyleFile file;
} SbxFreestyleWriter;

extern SbxStep sbx_freestyle_store;

/* "<machine>/fs/<verb>?path=<path>"; NULL = no memory. */
extern const char *
sbx_freestyle_file_url(SbxOp *op, const char *verb, const char *path);

/* After a refusal that has to do with a file. */
extern SbxOpWant sbx_freestyle_file_refused(SbxOp *op, bool missing_is_file);

#endif /* SBX_FREESTYLE_H */
