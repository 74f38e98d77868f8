/*
 * agent37.h
 *		What the parts of the Agent37 emulation share.
 */
#ifndef EMU_AGENT37_H
#define EMU_AGENT37_H

#include <jansson.h>

#include "job.h"
#include "provider.h"

#define AGENT37_API      "/agent37"
#define AGENT37_INSTANCE "/agent37-instance"
#define AGENT37_HOME     "/home/node"
#define AGENT37_USER     "node"

#define AGENT37_ID_LENGTH 10

typedef enum Agent37State
{
	AGENT37_PROVISIONING, /* a create that is held */
	AGENT37_RUNNING,
	AGENT37_STOPPING,
	AGENT37_STOPPED,
	AGENT37_STARTING,
	AGENT37_RESTARTING,
	AGENT37_SLEEPING,
	AGENT37_WAKING,
	AGENT37_FAILED
} Agent37State;

typedef struct Agent37Waiter Agent37Waiter;

typedef struct Agent37Details
{
	EmuSandbox *sandbox;
	char *template;
	char *user;           /* NULL: none, as is the next */
	char *name;           /* a label, not unique */
	bool has_metadata;    /* null and {} are shown as what they are */
	json_t *environment;  /* object of strings, or NULL */
	json_t *public_ports; /* as given, or NULL */
	bool auto_sleep;
	int64_t idle_timeout; /* seconds */
	Agent37State state;
	Agent37State next_state;       /* once it has settled */
	Agent37State state_before_end; /* what lists that lag go on showing */
	char *failure;                 /* what the console said, NULL: it has not failed */
	int64_t changed_ms;            /* when it failed, or fell asleep */
	int64_t checkpoint_until;      /* on the monotonic clock */
	bool booting;                  /* running, but nothing in it answers yet */
	unsigned restarts;
	unsigned open_requests; /* to its URL, not answered yet */
	EmuText console;
	EmuTimer settle; /* a state change in progress */
	EmuTimer boot;
	EmuTimer idle;
	Agent37Waiter *waiters; /* requests that are held while it wakes */
} Agent37Details;

/* As set by /_control/config; milliseconds unless said otherwise. */
typedef struct Agent37Config
{
	int64_t hold_create;
	int64_t boot_delay;
	int64_t start_delay;
	int64_t stop_delay;
	int64_t checkpoint; /* how long after a start no stop is possible */
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t exec_limit;
	int64_t wake_limit;
	int64_t idle_minimum; /* seconds */
	int64_t cpu_maximum;  /* of an instance, as the tier of the workspace allows */
	bool past_due;        /* there is no money left */
	char *start_error;    /* creates fail with this on the console */
} Agent37Config;

extern Agent37Config agent37_config;
extern EmuQuota agent37_quota;

/* agent37.c: errors, each plane has its own form */
extern void agent37_refuse(EmuRequest *request, int status, const char *message);
extern void
agent37_fail(EmuRequest *request, int status, const char *code, const char *message);
extern void agent37_invalid(EmuRequest *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern void agent37_edge_fail(EmuRequest *request, int status, const char *code);
extern void agent37_gateway_fail(EmuRequest *request, int status, const char *code,
                                 const char *message);
extern void agent37_no_money(EmuRequest *request);
extern void agent37_not_emulated(EmuRequest *request);
extern json_t *agent37_body(EmuRequest *request);

/* agent37_show.c */
extern void agent37_write(EmuText *text, EmuRequest *request, const EmuSandbox *sandbox,
                          Agent37State state);
extern void agent37_answer_state(EmuRequest *request, const EmuSandbox *sandbox,
                                 Agent37State state);
extern Agent37State agent37_shown_state(const EmuSandbox *sandbox);

/* agent37_instance.c */
extern Agent37Details *agent37_details(const EmuSandbox *sandbox);
extern EmuSandbox *agent37_find(const EmuAccount *account, const char *id);
extern void agent37_provision(EmuSandbox *sandbox, bool fails);
extern void agent37_power_on(EmuSandbox *sandbox);
extern void agent37_stop(EmuSandbox *sandbox);
extern void agent37_restart(EmuSandbox *sandbox);
extern void agent37_touch(EmuSandbox *sandbox);
extern void agent37_destroy(EmuSandbox *sandbox);
extern bool agent37_changing(const Agent37Details *details);
extern bool agent37_fits(const EmuAccount *account, const EmuResources *more);
extern bool agent37_fits_again(const EmuSandbox *sandbox);
extern EmuGuest *agent37_guest(EmuSandbox *sandbox);
extern void agent37_make_id(char *buffer);
extern void agent37_release(EmuSandbox *sandbox);

/* agent37_fields.c: what a create and a change may say; they answer themselves */
extern bool agent37_check_create(EmuRequest *request, const json_t *body);
extern bool agent37_check_change(EmuRequest *request, const json_t *body);
extern EmuResources agent37_resources(const json_t *body);

/* agent37_template.c */
extern const char agent37_default_template[];
extern bool agent37_template_valid(const char *reference);
extern bool agent37_template_known(const char *reference);
extern bool agent37_has_url(const Agent37Details *details);
extern bool agent37_has_gateway(const Agent37Details *details);

/* agent37_control.c, agent37_create.c, agent37_exec.c */
extern void agent37_control_handle(EmuRequest *request);
extern void agent37_create(EmuRequest *request, EmuAccount *account);
extern void agent37_exec(EmuRequest *request, EmuSandbox *sandbox);

/* agent37_gateway.c, agent37_files.c: the instance plane */
extern void agent37_gateway_handle(EmuRequest *request);
extern void agent37_gateway_awake(Agent37Details *details);
extern void agent37_gateway_lost(Agent37Details *details);
extern void
agent37_files_route(EmuRequest *request, EmuSandbox *sandbox, const char *path);

#endif
