/*
 * daytona.h
 *		What the parts of the Daytona emulation share.
 */
#ifndef EMU_DAYTONA_H
#define EMU_DAYTONA_H

#include <jansson.h>

#include "environment.h"
#include "job.h"
#include "provider.h"

#define DAYTONA_API     "/daytona/api"
#define DAYTONA_TOOLBOX "/daytona/toolbox"
#define DAYTONA_HOME    "/home/daytona"
#define DAYTONA_USER    "daytona"

/* Output kept of a command, per stream. */
#define DAYTONA_OUTPUT_LIMIT (1 << 20)

typedef enum DaytonaState
{
	DAYTONA_CREATING,
	DAYTONA_PENDING_BUILD,
	DAYTONA_STARTED,
	DAYTONA_STOPPING,
	DAYTONA_STOPPED,
	DAYTONA_STARTING,
	DAYTONA_ERROR,
	DAYTONA_BUILD_FAILED,
	DAYTONA_DESTROYING
} DaytonaState;

typedef struct DaytonaSession DaytonaSession;

typedef struct DaytonaSandbox
{
	EmuSandbox *sandbox;
	char *snapshot;   /* NULL if made from an image */
	char *dockerfile; /* NULL if made from a snapshot */
	char *target;
	char *user;
	json_t *environment; /* object of strings, or NULL */
	bool is_public;
	bool network_block_all;
	DaytonaState state;
	DaytonaState state_before_end; /* what lists that lag go on showing */
	const char *error_reason;      /* NULL: none */
	int auto_stop;                 /* minutes, as are the next two */
	int auto_archive;
	int auto_delete; /* negative: never */
	int64_t updated_ms;
	int64_t activity_ms;
	int64_t conflict_until; /* on the monotonic clock */
	EmuTimer settle;        /* a state change in progress */
	EmuTimer idle;          /* stops it, or deletes it when stopped */
	EmuTimer lifetime;
	DaytonaSession *sessions;
	unsigned open_jobs; /* whose client still waits */
} DaytonaSandbox;

/* Milliseconds, 0 = at once, as set by /_control/config. */
typedef struct DaytonaConfig
{
	int64_t hold_create;
	int64_t start_delay;
	int64_t stop_delay;
	int64_t delete_conflict;
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t minute;    /* how long a minute of the intervals lasts */
	char *start_error; /* creates fail to start with this text */
} DaytonaConfig;

extern DaytonaConfig daytona_config;
extern EmuQuota daytona_quota;

/* daytona.c */
extern void daytona_refuse(EmuRequest *request, int status, const char *message);
extern json_t *daytona_body(EmuRequest *request);

/* daytona_sandbox.c */
extern const char *const daytona_state_names[];
extern DaytonaSandbox *daytona_details(const EmuSandbox *sandbox);
extern void daytona_write(EmuText *text, EmuRequest *request, const EmuSandbox *sandbox,
                          bool as_list_item);
extern void daytona_answer(EmuRequest *request, const EmuSandbox *sandbox);
extern DaytonaState daytona_listed_state(const DaytonaSandbox *details);
extern void daytona_touch(EmuSandbox *sandbox);
extern void daytona_start_idle_clock(EmuSandbox *sandbox);
extern void daytona_stop(EmuSandbox *sandbox);
extern void daytona_start(EmuSandbox *sandbox);
extern void daytona_destroy(EmuSandbox *sandbox);
extern void daytona_set_lifetime(EmuSandbox *sandbox, int minutes);
extern void daytona_settle_later(EmuSandbox *sandbox, int64_t ms);
extern bool daytona_within_quota(EmuRequest *request, const EmuAccount *account,
                                 const EmuResources *more, double sandboxes);
extern void daytona_release(EmuSandbox *sandbox);

/* daytona_control.c, daytona_create.c, daytona_list.c */
extern void daytona_control_handle(EmuRequest *request);
extern int daytona_archive_interval(int minutes);
extern void daytona_create(EmuRequest *request, EmuAccount *account);
extern void daytona_list(EmuRequest *request, EmuAccount *account);

/* daytona_toolbox.c */
extern void daytona_toolbox_handle(EmuRequest *request);
extern void daytona_toolbox_refuse(EmuRequest *request, int status, const char *code,
                                   const char *message);
extern EmuGuest *daytona_guest(EmuSandbox *sandbox);
extern bool daytona_environment(EmuEnvironment *environment, const EmuSandbox *sandbox,
                                const json_t *more);

/* A job in this sandbox; while its client waits, the sandbox counts as used. */
typedef EmuJob DaytonaJob;

extern DaytonaJob *
daytona_job_start(EmuRequest *request, EmuSandbox *sandbox, const EmuCommandLine *line,
                  const char *input, size_t input_length, int64_t timeout_ms,
                  void (*done)(DaytonaJob *job, const EmuProcessEnd *end));

/* daytona_log.c */
typedef struct DaytonaFollower DaytonaFollower;

typedef struct DaytonaLog
{
	EmuText frames;
	EmuText partial[2]; /* line not yet complete, per stream */
	bool complete;
	DaytonaFollower *followers;
} DaytonaLog;

extern void
daytona_log_add(DaytonaLog *log, bool errors, const char *data, size_t length);
extern void daytona_log_complete(DaytonaLog *log);
extern void daytona_log_follow(DaytonaLog *log, EmuRequest *request);
extern void daytona_log_split(const EmuText *frames, EmuText *output, EmuText *errors);
extern void daytona_log_free(DaytonaLog *log);

/* daytona_session.c */
extern void
daytona_session_route(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path);
extern bool daytona_sessions_busy(const DaytonaSandbox *details);
extern void daytona_sessions_clear(DaytonaSandbox *details);

/* daytona_files.c */
extern void
daytona_files_route(EmuRequest *request, EmuSandbox *sandbox, const char *what);

#endif
