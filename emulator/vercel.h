/*
 * vercel.h
 *		What the parts of the Vercel Sandbox emulation share.
 */
#ifndef EMU_VERCEL_H
#define EMU_VERCEL_H

#include <jansson.h>

#include "environment.h"
#include "job.h"
#include "provider.h"

#define VERCEL_API    "/vercel"
#define VERCEL_CWD    "/vercel/sandbox"
#define VERCEL_USER   "ubuntu"
#define VERCEL_REGION "iad1"
#define VERCEL_VCPUS  2

#define VERCEL_MEMORY_PER_CPU 2048

/* A prefix, then letters and digits. */
#define VERCEL_ID_SIZE 40

typedef enum VercelState
{
	VERCEL_PENDING,
	VERCEL_RUNNING,
	VERCEL_STOPPING,
	VERCEL_STOPPED,
	VERCEL_FAILED
} VercelState;

typedef struct VercelCommand VercelCommand;
typedef struct VercelSession VercelSession;
typedef struct VercelWatcher VercelWatcher;

/* One run of a sandbox. */
struct VercelSession
{
	VercelSession *earlier; /* of the same sandbox */
	EmuSandbox *sandbox;
	char id[VERCEL_ID_SIZE];
	uint64_t serial; /* order of creation */
	VercelState state;
	int vcpus;
	int64_t timeout_ms;
	int64_t requested_ms;
	int64_t started_ms; /* 0 = not yet, as are the next two */
	int64_t stop_requested_ms;
	int64_t stopped_ms;
	int64_t updated_ms;
	char source_snapshot[VERCEL_ID_SIZE]; /* "" if it began with no files */
	json_t *network_policy;               /* as it was given, or NULL */
	EmuTimer lifetime;
	EmuTimer settle; /* a state change in progress */
	VercelCommand *commands;
};

/* What clients call a sandbox: a name, and the sessions under it. */
typedef struct VercelSandbox
{
	EmuSandbox *sandbox;
	char *name;
	char *owner; /* whose it is: token and team */
	char *project;
	char *region;
	char *image;   /* with its digest, or NULL */
	char *runtime; /* NULL if there is an image */
	bool persistent;
	int vcpus;
	int64_t timeout_ms;
	json_t *environment;           /* object of strings, or NULL, as are the next */
	json_t *ports;                 /* array of numbers */
	json_t *network_policy;        /* as it was given */
	json_t *options;               /* what is only shown again */
	uint64_t routes;               /* what the names of its ports are made of */
	char snapshot[VERCEL_ID_SIZE]; /* of the last stop, or "" */
	int64_t updated_ms;
	int64_t status_ms;
	VercelSession *current;        /* the last one */
	bool deleting;                 /* a delete was accepted, the entry is still there */
	const char *status_before_end; /* what lists that lag go on showing */
	EmuTimer removal;
} VercelSandbox;

/* As set by /_control/config; milliseconds unless said otherwise. */
typedef struct VercelConfig
{
	int64_t hold_create;
	int64_t start_delay;
	int64_t stop_delay;
	int64_t delete_delay;
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t maximum_timeout;
	bool start_fails; /* sessions end up as failed */
	bool hide_sizes;  /* sandboxes are shown without vcpus and memory */
} VercelConfig;

extern VercelConfig vercel_config;
extern EmuQuota vercel_quota;

/* vercel.c */
extern void vercel_refuse(EmuRequest *request, int status, const char *message);
extern void vercel_refuse_as(EmuRequest *request, int status, const char *code,
                             const char *message);
extern json_t *vercel_body(EmuRequest *request);
extern void vercel_make_id(char *buffer, const char *prefix);

/* vercel_route.c */
extern EmuOperation vercel_classify(EmuRequest *request);
extern void vercel_handle(EmuRequest *request);

/* vercel_control.c */
extern void
vercel_answer_all(EmuRequest *request, const EmuSandbox *sandbox, const char *resumed);
extern void vercel_get_sandbox(EmuRequest *request, EmuSandbox *sandbox);
extern void vercel_update_sandbox(EmuRequest *request, EmuSandbox *sandbox);
extern void vercel_delete_sandbox(EmuRequest *request, EmuSandbox *sandbox);
extern void vercel_get_session(EmuRequest *request, VercelSession *session);
extern void vercel_stop_session(EmuRequest *request, VercelSession *session);
extern void vercel_extend_timeout(EmuRequest *request, VercelSession *session);
extern void vercel_set_network_policy(EmuRequest *request, VercelSession *session);

/* vercel_fields.c: what a sandbox is told to be */

/* NULL if all is well, else what is wrong, in a buffer that the next call reuses. */
extern const char *vercel_create_problem(const json_t *body, bool legacy);
extern const char *vercel_update_problem(const json_t *body);
extern const char *vercel_network_policy_problem(const json_t *policy);
extern const char *vercel_strings_problem(const json_t *object);

/* Takes over what the body has; what it has not stays. */
extern void vercel_apply(VercelSandbox *details, const json_t *body);

/* vercel_create.c */
extern void vercel_create(EmuRequest *request, EmuAccount *account, const char *owner,
                          const json_t *body, bool legacy);

/* vercel_list.c */
extern void vercel_list_sandboxes(EmuRequest *request, EmuAccount *account);
extern void vercel_list_sessions(EmuRequest *request, EmuAccount *account);

/* vercel_sandbox.c */
extern VercelSandbox *vercel_details(const EmuSandbox *sandbox);
extern EmuSandbox *vercel_sandbox_new(EmuAccount *account, const char *owner,
                                      const char *name, const json_t *body);
extern EmuSandbox *vercel_find(const EmuAccount *account, const char *name);
extern void vercel_destroy(EmuSandbox *sandbox);
extern void vercel_remove(EmuSandbox *sandbox);
extern void vercel_release(EmuSandbox *sandbox);
extern bool
vercel_within_quota(EmuRequest *request, const EmuAccount *account, int vcpus);
extern void vercel_set_tags(EmuSandbox *sandbox, const json_t *tags);

/* vercel_session.c */
extern VercelSession *vercel_session_new(EmuSandbox *sandbox);
extern VercelSession *vercel_session_by_id(const char *owner, const char *id);
extern bool vercel_session_over(const VercelSession *session);
extern bool vercel_session_usable(EmuRequest *request, const VercelSession *session);
extern void vercel_session_start(VercelSession *session, int64_t hold_ms);
extern void vercel_session_stop(VercelSession *session);
extern void vercel_session_settle(VercelSession *session, int64_t delay_ms);
extern bool vercel_session_extend(VercelSession *session, int64_t more_ms);
extern void vercel_session_end(VercelSession *session);
extern void vercel_session_free(VercelSession *session);

/* vercel_show.c */
extern const char *vercel_status(const EmuSandbox *sandbox);
extern void vercel_write_sandbox(EmuText *text, const EmuSandbox *sandbox);
extern void vercel_write_session(EmuText *text, const VercelSession *session);
extern void vercel_write_routes(EmuText *text, const EmuSandbox *sandbox);
extern void vercel_write_json(EmuText *text, const char *name, const json_t *value);

/* vercel_command.c */
extern void vercel_run(EmuRequest *request, VercelSession *session);
extern void vercel_list_commands(EmuRequest *request, VercelSession *session);
extern void vercel_get_command(EmuRequest *request, VercelCommand *command);
extern void vercel_get_logs(EmuRequest *request, VercelCommand *command);
extern void vercel_kill_command(EmuRequest *request, VercelCommand *command);
extern VercelCommand *
vercel_command_by_id(const VercelSession *session, const char *id);
extern void vercel_commands_clear(VercelSession *session);
extern void vercel_command_write(EmuText *text, const VercelCommand *command);
extern EmuGuest *vercel_guest(EmuSandbox *sandbox);

/* An absolute path; what is relative begins at `cwd`, or at the session's. */
extern char *vercel_absolute_path(const char *path, const char *cwd);

/* vercel_watch.c: requests that wait for what a command does */
typedef enum VercelWatch
{
	VERCEL_WATCH_START, /* answered as soon as it runs */
	VERCEL_WATCH_RUN,   /* a stream from its start to its end */
	VERCEL_WATCH_QUIET, /* the same without its output */
	VERCEL_WATCH_LOGS,  /* a stream of its output */
	VERCEL_WATCH_END    /* answered when it has ended */
} VercelWatch;

extern VercelWatcher *
vercel_watcher_new(VercelWatcher **head, EmuRequest *request, VercelWatch kind);

/* Of the logs, with what there is already. */
extern void vercel_watcher_begin(VercelWatcher *watcher, const EmuText *log);

/* Each may end the watchers of the list that were waiting for it. */
extern void vercel_watchers_start(VercelWatcher *list, const VercelCommand *command);
extern void vercel_watchers_output(VercelWatcher *list, const EmuText *lines);
extern void vercel_watchers_end(VercelWatcher *list, const VercelCommand *command);
extern void
vercel_watchers_refuse(VercelWatcher *list, int status, const char *message);
extern void vercel_watchers_lose(VercelWatcher *list);

/* vercel_files.c */
extern void vercel_write_files(EmuRequest *request, VercelSession *session);
extern void vercel_read_file(EmuRequest *request, VercelSession *session);
extern void vercel_make_directory(EmuRequest *request, VercelSession *session);

#endif
