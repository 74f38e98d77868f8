/*
 * freestyle.h
 *		What the parts of the Freestyle emulation share.
 */
#ifndef EMU_FREESTYLE_H
#define EMU_FREESTYLE_H

#include <jansson.h>

#include "job.h"
#include "provider.h"

#define FREESTYLE_API  "/freestyle"
#define FREESTYLE_HOME "/home/ubuntu"
#define FREESTYLE_USER "ubuntu"

#define FREESTYLE_RESULTS "/v5/background-requests/"

/* Carried by a call that may be answered later, and by its stored answer. */
#define FREESTYLE_AFTER_HEADER "X-Freestyle-Background-After-Secs"
#define FREESTYLE_ID_HEADER    "X-Freestyle-Background-Request-Id"

typedef enum FreestyleState
{
	FREESTYLE_STARTING,
	FREESTYLE_RUNNING,
	FREESTYLE_PAUSING,
	FREESTYLE_PAUSED,
	FREESTYLE_STOPPED
} FreestyleState;

#define FREESTYLE_STATE_COUNT (FREESTYLE_STOPPED + 1)

/* A window that is not set. */
#define FREESTYLE_NO_WINDOW (-1)

/* Seconds. */
typedef struct FreestyleWindows
{
	int64_t idle;
	int64_t auto_delete;
	int64_t ttl;
	int64_t max_run;
	int64_t max_run_total;
} FreestyleWindows;

typedef struct FreestyleWaiter FreestyleWaiter;
typedef struct FreestyleUpload FreestyleUpload;

typedef struct FreestyleVm
{
	EmuSandbox *sandbox;
	char *slug;         /* NULL: none, as is the next */
	char *display_name; /* a label, not unique */
	char *snapshot_id;
	char *snapshot_slug; /* NULL: it was named by its id */
	json_t *metadata;
	json_t *firewall_rules; /* as shown */
	FreestyleWindows windows;
	bool auto_delete_from_plan;
	bool automatic_restart;
	FreestyleState state;
	FreestyleState next_state;       /* once it has settled */
	FreestyleState state_before_end; /* what lists that lag go on showing */
	bool frozen;                     /* its processes are stopped where they are */
	int64_t run_since_ms;            /* of the run in progress */
	int64_t run_total_ms;            /* of those before it */
	int64_t updated_ms;
	EmuTimer settle; /* a state change in progress */
	EmuTimer idle;
	EmuTimer auto_delete;
	EmuTimer ttl;
	EmuTimer run_budget;
	FreestyleWaiter *waiters; /* calls that are held until it runs */
	FreestyleUpload *uploads;
} FreestyleVm;

/* As set by /_control/config; milliseconds unless said otherwise. */
typedef struct FreestyleConfig
{
	int64_t hold_create;
	int64_t start_delay;
	int64_t pause_delay;
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t surface_delay;
	int64_t create_status;
	int64_t page_size;
	int64_t default_idle;    /* seconds */
	int64_t auto_delete_cap; /* seconds */
	int64_t background_after;
	int64_t background_run;
	char *background_operations;
	char *locators;
	char *result_origin;
	bool hide_request_id;
	int64_t result_retention;
	int64_t stored_limit; /* bytes */
	int64_t stored_status;
	char *stored_code;
	bool allowance_spent;
	bool blocked;
	bool old_agent;
	bool late_rules;
	bool strict_parents;
} FreestyleConfig;

extern FreestyleConfig freestyle_config;
extern EmuQuota freestyle_quota;

/* freestyle.c: errors */
extern void freestyle_refuse(EmuRequest *request, int status, const char *message);
extern void
freestyle_fail(EmuRequest *request, int status, const char *code, const char *message);
extern void freestyle_invalid(EmuRequest *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern void freestyle_conflict(EmuRequest *request, const char *message);
extern void freestyle_not_emulated(EmuRequest *request);
extern json_t *freestyle_body(EmuRequest *request);

/* freestyle_call.c: calls that go on without their connection */
extern void freestyle_call(EmuRequest *request, void (*handle)(EmuRequest *work));
extern bool freestyle_call_backgrounds(const EmuRequest *work);
extern const char *freestyle_call_range(const EmuRequest *work);
extern void
freestyle_poll(EmuRequest *request, const EmuAccount *account, const char *id);
extern void freestyle_calls_clear(void);

/* freestyle_vm.c */
extern FreestyleVm *freestyle_vm(const EmuSandbox *sandbox);
extern void freestyle_make_id(char *buffer);
extern EmuSandbox *freestyle_find(const EmuAccount *account, const char *id_or_slug);
extern EmuSandbox *freestyle_slug_holder(const EmuAccount *account, const char *slug);
extern void freestyle_set_slug(EmuSandbox *sandbox, const char *slug);
extern const char *freestyle_no_room(const EmuAccount *account, const EmuSandbox *start,
                                     const EmuResources *resources);
extern EmuGuest *freestyle_guest(EmuSandbox *sandbox);
extern void freestyle_destroy(EmuSandbox *sandbox);
extern void freestyle_release(EmuSandbox *sandbox);

/* freestyle_run.c: states, and the windows that end them */
extern void freestyle_boot(EmuSandbox *sandbox, int64_t delay_ms);
extern void freestyle_pause(EmuSandbox *sandbox);
extern void freestyle_power_off(EmuSandbox *sandbox);
extern void freestyle_touch(EmuSandbox *sandbox);
extern void freestyle_set_windows(EmuSandbox *sandbox, const FreestyleWindows *windows);
extern int64_t freestyle_run_ms(const FreestyleVm *vm);
extern void freestyle_stop_clocks(FreestyleVm *vm);
extern bool freestyle_start(EmuRequest *request, EmuSandbox *sandbox);
extern void
freestyle_when_running(EmuRequest *request, EmuSandbox *sandbox,
                       void (*handle)(EmuRequest *request, EmuSandbox *sandbox));
extern void freestyle_waiters_lose(FreestyleVm *vm);

/* freestyle_fields.c: what a create and an update may say; they answer themselves */
extern bool freestyle_check_create(EmuRequest *request, const json_t *body);
extern bool freestyle_check_update(EmuRequest *request, const json_t *body);
extern void freestyle_take_windows(FreestyleWindows *windows, const json_t *body);
extern size_t freestyle_text_length(const char *text);

/* freestyle_firewall.c: what is wrong with it, NULL if nothing is */
extern const char *freestyle_firewall_problem(const json_t *firewall);
extern json_t *freestyle_firewall_shown(const json_t *firewall, const char *vm_id);

/* freestyle_show.c */
extern const char *const freestyle_state_names[FREESTYLE_STATE_COUNT];
extern FreestyleState freestyle_shown_state(const EmuSandbox *sandbox);
extern void freestyle_write(EmuText *text, const EmuSandbox *sandbox);
extern void freestyle_answer_vm(EmuRequest *request, EmuSandbox *sandbox);
extern void freestyle_answer_made(EmuRequest *request, const EmuSandbox *sandbox);

/* Operations */
extern void freestyle_create(EmuRequest *request, EmuAccount *account);
extern void freestyle_list(EmuRequest *request, EmuAccount *account);
extern void freestyle_route(EmuRequest *request);
extern json_t *freestyle_metadata_merged(const json_t *old, const json_t *change);
extern void freestyle_exec(EmuRequest *request, EmuSandbox *sandbox);

/* freestyle_files.c, freestyle_uploads.c: below fs/ */
extern void freestyle_files_route(EmuRequest *request, EmuSandbox *sandbox);
extern bool freestyle_path_valid(EmuRequest *request, const char *path);
extern void
freestyle_file_write(EmuRequest *request, EmuSandbox *sandbox, const char *path,
                     const char *sha256, int64_t mode, const EmuText *content);
extern void
freestyle_uploads_route(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path);
extern void freestyle_uploads_clear(FreestyleVm *vm);

#define FREESTYLE_NO_MODE (-1)

#endif
