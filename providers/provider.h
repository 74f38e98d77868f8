/*
 * provider.h
 *		The port: what the router asks of a provider kind.
 *
 * A kind is a table of declarations (settings, credential fields, abilities)
 * and of functions that make operations (net/op.h).  An adapter knows its
 * provider's wire protocol and nothing else: no socket, no catalog, no ereport.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_PROVIDER_H
#define SBX_PROVIDER_H

#include "net/op.h"

#define SBX_MAX_SETTINGS    24
#define SBX_MAX_CREDENTIALS 4

/* --- declarations ------------------------------------------------------- */

typedef enum SbxFieldType
{
	SBX_FIELD_TEXT, /* non-empty, no control characters */
	SBX_FIELD_WORD, /* text without blanks */
	SBX_FIELD_HOST, /* a host name: lower-case letters, digits, dots and hyphens */
	SBX_FIELD_URL,  /* text that starts with https:// or http:// */
	SBX_FIELD_INTEGER,
	SBX_FIELD_BOOLEAN
} SbxFieldType;

/*
 * A setting or credential field.  A dot in the name means a member of a nested
 * object: "createParams.autoStopInterval".
 */
typedef struct SbxField
{
	const char *name; /* NULL ends a list */
	SbxFieldType type;
	bool required;
	bool needs_superuser; /* can point requests (and keys) elsewhere */
	int64_t minimum;      /* integers only */
	int64_t maximum;
	const char *description; /* one line, for sbx_provider_kinds() */
} SbxField;

/* A value given for a field; is_set false = absent. */
typedef struct SbxFieldValue
{
	bool is_set;
	const char *text;
	int64_t integer;
	bool boolean;
} SbxFieldValue;

/*
 * One registration, ready to use: values in the order of the kind's
 * declarations.  Valid while the operation is being made: adapters copy what
 * they need, except credentials, which the caller keeps alive (pinned) until
 * the operation is freed.
 */
typedef struct SbxAccount
{
	const SbxFieldValue *settings;
	const char *const *credentials; /* NULL for fields not given */
} SbxAccount;

typedef struct SbxPair
{
	const char *key;
	const char *value;
} SbxPair;

/* --- inputs and results ------------------------------------------------- */

typedef struct SbxLaunchInput
{
	const char *unique_name; /* the sbx id; the provider-side name */
	const SbxPair *labels;   /* the caller's and the router's own */
	int label_count;
	const SbxPair *env;
	int env_count;
	int64_t create_timeout_ms; /* 0 = the setting's or the kind's default */

	/*
	 * Do not wait until it is ready: done as soon as the provider's id is known.  Only
	 * for kinds that declare detached_launch.
	 */
	bool detached;

	/* What launch_token of SbxTarget says; NULL = this launch has no such label. */
	const char *launch_token;
} SbxLaunchInput;

/*
 * Labels by which a sandbox is known again: the router's own id, and the launch that
 * made it.
 */
#define SBX_LABEL_ID     "sbx-router-id"
#define SBX_LABEL_LAUNCH "sbx-router-launch"

/* What the caller called it, for people: left out where it is too long for a label. */
#define SBX_LABEL_NAME "sbx-router-name"

/* Which sandbox: by the provider's id, or (outcome unknown) by its unique name. */
typedef struct SbxTarget
{
	const char *sandbox_id;  /* NULL = not known */
	const char *unique_name; /* NULL = not known */

	/*
	 * The value of the label SBX_LABEL_LAUNCH that this launch put on it; NULL =
	 * it put none.  A name can be used again, by a later launch or by another
	 * database: what is looked up by name is only ours if this label agrees.
	 */
	const char *launch_token;
} SbxTarget;

typedef enum SbxSandboxState
{
	SBX_STATE_STARTING,
	SBX_STATE_STARTED,
	SBX_STATE_STOPPING,
	SBX_STATE_STOPPED,
	SBX_STATE_FAILED,
	SBX_STATE_GONE
} SbxSandboxState;

/* What a provider says about a sandbox. */
typedef struct SbxSandboxFacts
{
	const char *sandbox_id; /* NULL when it is gone */
	SbxSandboxState state;
	const char *name;       /* NULL when the provider gave none */
	const char *created_at; /* ISO 8601 as the provider wrote it, or NULL */
	const SbxPair *labels;
	int label_count;
} SbxSandboxFacts;

typedef struct SbxRunInput
{
	const char *run_id; /* unique per call, [A-Za-z0-9_-]: names what it makes */
	const char *command;
	size_t command_length;
	const SbxPair *env; /* names already match [A-Za-z_][A-Za-z0-9_]* */
	int env_count;
	const char *cwd;    /* absolute, or NULL */
	int64_t timeout_ms; /* lifetime of the command */
	size_t max_stream;  /* bytes kept of each stream */

	/*
	 * Working directory and exported variables that the last run of this name left
	 * are there again, and are kept for the next; [A-Za-z0-9_-], or NULL.
	 */
	const char *session;
} SbxRunInput;

/* Bytes, not text: may hold invalid UTF-8 or NUL. */
typedef struct SbxRunResult
{
	const char *output; /* both streams, in the order they were written */
	size_t output_length;
	const char *stdout_text;
	size_t stdout_length;
	const char *stderr_text;
	size_t stderr_length;
	bool has_exit_code; /* false = the outcome is not known */
	int exit_code;
	bool truncated;
} SbxRunResult;

/* Result of find: every sandbox that has all of the labels, each one once. */
typedef struct SbxFindResult
{
	const SbxSandboxFacts *sandboxes;
	int count;
} SbxFindResult;

/* Result of usage: what the account uses, by its own listing. */
typedef struct SbxUsage
{
	double cpu; /* vCPU */
	double memory_mib;
	double disk_mib;
	int64_t sandboxes;

	/* The provider does not say it of all of them: the sum means nothing. */
	bool cpu_untold;
	bool memory_untold;
	bool disk_untold;
} SbxUsage;

/* Code of a failure for what an answer says and cannot be read. */
#define SBX_CODE_MALFORMED "MALFORMED"

/* Code of a failure for a key that the provider does not know. */
#define SBX_CODE_UNAUTHORIZED "UNAUTHORIZED"

/* Result of start_script.  The two ids name it for the functions below. */
typedef struct SbxStartedScript
{
	const char *session_id;
	const char *command_id;

	/* It was there already: an answer was lost, or the session is used again. */
	bool reconciled;
} SbxStartedScript;

/* A script that start_script started. */
typedef struct SbxScriptTarget
{
	const char *session_id;
	const char *command_id;
	size_t max_stream; /* bytes kept of each stream; for script_logs */
} SbxScriptTarget;

/* Result of script_status. */
typedef struct SbxScriptStatus
{
	bool has_ended;
	int exit_code; /* when it has */
} SbxScriptStatus;

typedef struct SbxUploadInput
{
	const char *path; /* of the file; relative = to the home directory */
	const char *bytes;
	size_t length;
	const char *boundary; /* [a-z0-9-], at random: so it is not in the bytes */
} SbxUploadInput;

/* Result of download. */
typedef struct SbxFileContent
{
	const char *bytes;
	size_t length;
} SbxFileContent;

/* Result of destroy. */
typedef enum SbxDestroyResult
{
	SBX_DESTROY_DONE,    /* the provider confirmed the deletion */
	SBX_DESTROY_WAS_GONE /* the provider says there is no such sandbox */
} SbxDestroyResult;

/* --- the kind ----------------------------------------------------------- */

/*
 * Operation makers.  They copy their input into the operation's arena and
 * return NULL only when out of memory.  Input that this kind can never carry
 * makes an operation that fails at its first step with phase NONE, nothing
 * sent and allocation none.
 */
typedef struct SbxProviderKind
{
	const char *name;
	const char *const *operations; /* names, NULL-terminated, for people */
	const SbxField *settings;
	const SbxField *credentials;
	bool detached_launch;       /* can return before the sandbox is ready */
	bool launch_create_timeout; /* so can a time limit for the create */
	int max_launch_env;    /* variables at most; 0 = a launch has none, -1 = no limit */
	int max_labels;        /* on one sandbox, the router's included; -1 = no limit */
	int64_t max_script_ms; /* no script that is waited for lives longer; 0 = no limit */

	/*
	 * Can a launch carry this variable, or this label?  NULL = any.  Routing asks before
	 * anything is made, with texts in UTF-8; a launch that comes with another all the same
	 * sends nothing.
	 */
	bool (*carries_variable)(const char *name, const char *value);
	bool (*carries_label)(const char *key, const char *value);

	/*
	 * Settings that are right one by one can be wrong together.  Returns the
	 * name of the offending field, or NULL when they are fine.  May be NULL.
	 */
	const char *(*check_settings)(const SbxFieldValue *settings);

	/*
	 * Waits until the sandbox accepts commands, unless detached.  op->sandbox_id is
	 * set as soon as the provider's id is known, also when the operation fails
	 * later.  Result: SbxSandboxFacts.
	 */
	SbxOp *(*launch)(const SbxAccount *account, const SbxLaunchInput *input);

	/* Result: SbxSandboxFacts; "no such sandbox" is state SBX_STATE_GONE. */
	SbxOp *(*get)(const SbxAccount *account, const SbxTarget *target);

	/*
	 * Waits until the sandbox accepts commands.  Result: SbxSandboxFacts, state
	 * started, or starting when the time was over before that.  One that will never
	 * be ready by itself fails: SANDBOX_FAILED, SANDBOX_GONE, NOT_STARTED.
	 */
	SbxOp *(*wait_ready)(const SbxAccount *account, const SbxTarget *target,
	                     int64_t timeout_ms);

	/*
	 * Result: SbxFindResult.  No labels find every sandbox of the account.  A listing
	 * that cannot be read to its end fails: it never shrinks.
	 */
	SbxOp *(*find)(const SbxAccount *account, const SbxPair *labels, int label_count);

	/*
	 * Reads what the account uses, and changes nothing.  Result: SbxUsage.  Exact or
	 * none: a sandbox with a size that is missing, no number, negative or not finite
	 * fails with MALFORMED, a listing that cannot be read to its end fails.  May be
	 * NULL.
	 */
	SbxOp *(*usage)(const SbxAccount *account, int64_t timeout_ms);

	/*
	 * The same listing for people to look at.  Result: text, a JSON array of the
	 * sandboxes as the provider describes them, each once; no size is looked at.  May
	 * be NULL.
	 */
	SbxOp *(*inventory)(const SbxAccount *account, int64_t timeout_ms);

	/*
	 * Result: SbxSandboxFacts, state started and ready.  One that is started already
	 * is success.  op->sandbox_id may be another one afterwards: the caller keeps it.
	 */
	SbxOp *(*start)(const SbxAccount *account, const SbxTarget *target,
	                int64_t timeout_ms);

	/*
	 * Result: SbxSandboxFacts, state stopped.  One that is stopped already is
	 * success.  Where stopping would destroy it, fails with STOP_WOULD_DESTROY.
	 */
	SbxOp *(*stop)(const SbxAccount *account, const SbxTarget *target,
	               int64_t timeout_ms);

	/* Result: SbxRunResult.  A timeout fails with provider code "TIMEOUT". */
	SbxOp *(*run_script)(const SbxAccount *account, const SbxTarget *target,
	                     const SbxRunInput *input);

	/*
	 * Start a script and do not wait for it: input->run_id names its session, and
	 * input->timeout_ms bounds the start alone.  The same input once more finds what
	 * is there instead of starting it twice; another one in that session fails with
	 * SESSION_IN_USE.  Result: SbxStartedScript.
	 */
	SbxOp *(*start_script)(const SbxAccount *account, const SbxTarget *target,
	                       const SbxRunInput *input);

	/*
	 * Result: SbxScriptStatus.  A script that can never end any more, because the
	 * sandbox was stopped meanwhile, fails with SCRIPT_LOST; one that is not known
	 * there with SCRIPT_UNKNOWN.
	 */
	SbxOp *(*script_status)(const SbxAccount *account, const SbxTarget *target,
	                        const SbxScriptTarget *script);

	/* What it has written so far.  Result: SbxRunResult, without an exit code. */
	SbxOp *(*script_logs)(const SbxAccount *account, const SbxTarget *target,
	                      const SbxScriptTarget *script);

	/* Write a file, with the directories that lead there.  No result. */
	SbxOp *(*upload)(const SbxAccount *account, const SbxTarget *target,
	                 const SbxUploadInput *input);

	/*
	 * Result: SbxFileContent.  Fails with FILE_NOT_FOUND, FILE_ACCESS_DENIED,
	 * INVALID_FILE_PATH, or FILE_TOO_LARGE when it has more than max_bytes.
	 */
	SbxOp *(*download)(const SbxAccount *account, const SbxTarget *target,
	                   const char *path, size_t max_bytes);

	/*
	 * Result: pointer to SbxDestroyResult.  With a sandbox id (also one written
	 * to op->sandbox_id before the first step) that sandbox is deleted.  With a
	 * unique name only, it is looked up first and looked up again while the
	 * provider says it does not exist, until the time is over: a lost create can
	 * still be under way.  One that another launch made under that name is left
	 * alone: the result is "was gone".  Conflicts are retried until the time is over.
	 */
	SbxOp *(*destroy)(const SbxAccount *account, const SbxTarget *target,
	                  int64_t timeout_ms);
} SbxProviderKind;

/* All kinds, NULL-terminated (providers/kinds.c). */
extern const SbxProviderKind *const sbx_provider_kinds[];
extern const SbxProviderKind *sbx_provider_kind_find(const char *name);

extern const SbxProviderKind sbx_kind_daytona;
extern const SbxProviderKind sbx_kind_e2b;
extern const SbxProviderKind sbx_kind_vercel;
extern const SbxProviderKind sbx_kind_agent37;
extern const SbxProviderKind sbx_kind_freestyle;
extern const SbxProviderKind sbx_kind_microsandbox;

#endif /* SBX_PROVIDER_H */
