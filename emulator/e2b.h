/*
 * e2b.h
 *		What the parts of the E2B emulation share.
 */
#ifndef EMU_E2B_H
#define EMU_E2B_H

#include <jansson.h>

#include "environment.h"
#include "job.h"
#include "provider.h"

#define E2B_API  "/e2b"
#define E2B_ENVD "/e2b-envd"
#define E2B_HOME "/home/user"
#define E2B_USER "user"

/* The port of the daemon inside a sandbox, as headers and host names give it. */
#define E2B_ENVD_PORT 49983

#define E2B_TOKEN_SIZE 65

typedef enum E2bState
{
	E2B_STARTING, /* a create that is held: not shown anywhere yet */
	E2B_RUNNING,
	E2B_PAUSED,
	E2B_RESUMING /* shown as paused */
} E2bState;

typedef struct E2bProcess E2bProcess;

typedef struct E2bSandbox
{
	EmuSandbox *sandbox;
	char *template_id;
	char *alias;
	char token[E2B_TOKEN_SIZE];
	char traffic_token[E2B_TOKEN_SIZE]; /* "" if its ports are public */
	json_t *environment;                /* object of strings, or NULL */
	json_t *network;                    /* as given, or NULL */
	int internet;                       /* allow_internet_access: -1 = not given */
	bool auto_pause;
	bool auto_pause_memory;
	bool auto_resume;
	E2bState state;
	E2bState state_before_end; /* what lists that lag go on showing */
	bool frozen;               /* paused with its processes where they were */
	bool envd_down;            /* its daemon has crashed, see e2b_process.c */
	int64_t timeout_ms;        /* of a create or resume that is held */
	int64_t started_ms;        /* the last create or resume: its age begins here */
	int64_t end_ms;            /* when its time is up, or when it was paused */
	EmuTimer lifetime;
	EmuTimer settle; /* a state change in progress */
	E2bProcess *processes;
} E2bSandbox;

/* As set by /_control/config; milliseconds unless said otherwise. */
typedef struct E2bConfig
{
	int64_t hold_create;
	int64_t resume_delay;
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t maximum_age; /* of a sandbox, since it was started or resumed */
	int64_t exit_retention;
	bool deadline_as_end; /* a command's deadline shows as a kill, not as an error */
	bool idempotency;     /* Idempotency-Key is looked at */
	char *domain;         /* of the answers, NULL as in the hosted service */
} E2bConfig;

extern E2bConfig e2b_config;
extern EmuQuota e2b_quota;

/* e2b.c */
extern void e2b_refuse(EmuRequest *request, int status, const char *message);
extern json_t *e2b_body(EmuRequest *request);

/* e2b_sandbox.c */
extern E2bSandbox *e2b_details(const EmuSandbox *sandbox);
extern EmuSandbox *e2b_find(const EmuAccount *account, const char *id);
extern bool e2b_shown_running(const EmuSandbox *sandbox);
extern void e2b_write(EmuText *text, const EmuSandbox *sandbox, bool as_list_item);
extern void
e2b_answer_access(EmuRequest *request, const EmuSandbox *sandbox, int status);
extern void e2b_start(EmuSandbox *sandbox, int64_t timeout_ms, int64_t delay_ms,
                      E2bState meanwhile);
extern bool e2b_set_timeout(EmuSandbox *sandbox, int64_t timeout_ms);
extern void e2b_pause(EmuSandbox *sandbox, bool memory);
extern void e2b_destroy(EmuSandbox *sandbox);
extern bool e2b_within_quota(EmuRequest *request, const EmuAccount *account);
extern void e2b_make_id(char *buffer);
extern void e2b_make_token(char *buffer);
extern void e2b_release(EmuSandbox *sandbox);

/* e2b_control.c, e2b_create.c, e2b_list.c, e2b_idempotency.c */
extern void e2b_control_handle(EmuRequest *request);
extern bool e2b_read_timeout(EmuRequest *request, const json_t *body, int64_t otherwise,
                             int64_t *timeout_ms);
extern void e2b_create(EmuRequest *request, EmuAccount *account, bool second_version);
extern void e2b_list(EmuRequest *request, EmuAccount *account, bool second_version);

extern bool e2b_idempotency_answers(EmuRequest *request, const EmuAccount *account);
extern void e2b_idempotency_record(EmuRequest *request, const EmuAccount *account);
extern void e2b_idempotency_reset(void);

/* e2b_template.c */
typedef struct E2bTemplate
{
	char id[24];
	char *alias; /* to be freed */
	EmuResources resources;
} E2bTemplate;

/* Answers itself and returns false if there is no such template. */
extern bool
e2b_template_find(EmuRequest *request, const char *reference, E2bTemplate *found);

/* e2b_envd.c */
extern void e2b_envd_handle(EmuRequest *request);
extern EmuGuest *e2b_guest(EmuSandbox *sandbox);
extern char *e2b_absolute_path(const char *path);
extern bool e2b_environment(EmuEnvironment *environment, const EmuSandbox *sandbox,
                            const char *user, const json_t *more);

/* The user of the Authorization header; NULL for one there is not. */
extern const char *e2b_user(EmuRequest *request);
extern void e2b_answer_gone(EmuRequest *request, const char *id);
extern bool e2b_answer_if_lost(EmuRequest *request, const EmuProcessEnd *end);

/*
 * Runs a shell script in the sandbox, up to two arguments ("$1" and "$2") and
 * bytes on its standard input.
 */
extern EmuJob *e2b_run_script(EmuRequest *request, EmuSandbox *sandbox,
                              const char *script, const char *first, const char *second,
                              const char *input, size_t input_length,
                              void (*done)(EmuJob *job, const EmuProcessEnd *end));

/* e2b_connect.c: the Connect protocol, with JSON messages */
#define E2B_STREAM_TYPE "application/connect+json"
#define E2B_FRAME_END   2

extern void e2b_frame_add(EmuText *text, unsigned char flags, const EmuText *message);
extern void e2b_frame_end(EmuText *text, const char *code, const char *message);
extern json_t *e2b_stream_message(EmuRequest *request);
extern void
e2b_stream_refuse(EmuRequest *request, const char *code, const char *message);
extern json_t *e2b_unary_message(EmuRequest *request);
extern void e2b_unary_answer(EmuRequest *request, EmuText *message);
extern void
e2b_unary_refuse(EmuRequest *request, const char *code, const char *message);
extern void
e2b_unary_refuse_format(EmuRequest *request, const char *code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Milliseconds of the header, 0 without one, -1 if it is not valid. */
extern int64_t e2b_stream_timeout(EmuRequest *request);

/* e2b_stream.c: who is watching a process */
typedef struct E2bStream E2bStream;
struct E2bStream
{
	E2bStream *next;
	E2bStream **head; /* the list it is in */
	EmuRequest *request;
	bool begun;     /* the first frames are on their way */
	bool collected; /* a fault waits for the whole answer */
	EmuText frames; /* collected so far */
	EmuTimer keepalive;
	int64_t keepalive_ms;
	EmuTimer deadline; /* of a client that only watches */
};

extern E2bStream *
e2b_stream_new(E2bStream **head, EmuRequest *request, int64_t keepalive_ms);
extern void e2b_stream_limit(E2bStream *stream, int64_t timeout_ms);
extern void e2b_stream_begin(E2bStream *stream, int pid);
extern void
e2b_stream_data(E2bStream *stream, bool errors, const char *data, size_t length);
extern void e2b_stream_exit(E2bStream *stream, int code, int signal_number);
extern void
e2b_stream_finish(E2bStream *stream, const char *error_code, const char *message);
extern void e2b_stream_break(E2bStream *stream, const char *sandbox_id);

/* e2b_process.c */
extern void
e2b_process_route(EmuRequest *request, EmuSandbox *sandbox, const char *method);
extern void e2b_processes_pause(E2bSandbox *details);
extern void e2b_processes_resume(E2bSandbox *details);
extern void e2b_processes_clear(E2bSandbox *details);

/* e2b_files.c, e2b_filesystem.c */
extern void e2b_files_handle(EmuRequest *request, EmuSandbox *sandbox);
extern void
e2b_filesystem_route(EmuRequest *request, EmuSandbox *sandbox, const char *method);

#endif
