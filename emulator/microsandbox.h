/*
 * microsandbox.h
 *		What the parts of the Microsandbox emulation share.
 */
#ifndef EMU_MICROSANDBOX_H
#define EMU_MICROSANDBOX_H

#include <jansson.h>

#include "cbor.h"
#include "environment.h"
#include "provider.h"
#include "websocket.h"

#define MICROSANDBOX_API  "/microsandbox"
#define MICROSANDBOX_HOME "/root"
#define MICROSANDBOX_USER "root"

typedef enum MicrosandboxStatus
{
	MICROSANDBOX_CREATED, /* never started */
	MICROSANDBOX_STARTING,
	MICROSANDBOX_RUNNING,
	MICROSANDBOX_STOPPING,
	MICROSANDBOX_STOPPED,
	MICROSANDBOX_FAILED
} MicrosandboxStatus;

typedef struct MicrosandboxWaiter MicrosandboxWaiter;
typedef struct MicrosandboxAgent MicrosandboxAgent;
typedef struct MicrosandboxFollower MicrosandboxFollower;

typedef struct MicrosandboxDetails
{
	char *name;
	char *slug;
	char *image;
	char *workdir;       /* NULL: none was given */
	json_t *spec;        /* as shown */
	json_t *environment; /* a list of key and value */
	bool ephemeral;
	int64_t max_duration; /* seconds, 0 = none, as is the next */
	int64_t idle_timeout;
	MicrosandboxStatus status;
	MicrosandboxStatus status_before_end; /* what lists that lag go on showing */
	bool queued;        /* starting, and there is no place for it yet */
	uint64_t ticket;    /* its place in the queue */
	bool resolved;      /* has run once, so its spec is known */
	int64_t started_ms; /* 0: never, as is the next */
	int64_t stopped_ms;
	char *failure;   /* why the last start failed, or NULL */
	EmuTimer settle; /* a state change in progress */
	EmuTimer lifetime;
	EmuTimer idle;
	MicrosandboxWaiter *waiters;     /* requests that are held until it runs */
	MicrosandboxAgent *agents;       /* sockets to it */
	MicrosandboxFollower *followers; /* requests for what commands write */
} MicrosandboxDetails;

/* As set by /_control/config; milliseconds unless said otherwise. */
typedef struct MicrosandboxConfig
{
	int64_t hold_create;
	int64_t start_delay;
	int64_t stop_delay;
	int64_t slow_destroy;
	int64_t list_lag;
	int64_t second; /* how long one of the lifetimes lasts */
	int64_t sandbox_maximum;
	int64_t cpu_maximum;
	int64_t memory_maximum; /* MiB */
	int64_t disk_maximum;   /* MiB */
	int64_t wait_maximum;   /* how many requests may be held until something runs */
	bool hide_spec;
	bool forget_environment; /* that of the create does not reach commands */
	char *start_error;       /* starts fail with this */

	/* How what an agent says is cut; 0 as it comes. */
	int64_t message_bytes;  /* of what it says, in each message */
	int64_t fragment_bytes; /* of a message, in each frame of the WebSocket */
	int64_t segment_bytes;  /* of the stream, before a moment's pause */
	bool coalesce;          /* all there is to an operation in one go */
	bool ping;              /* in front of messages, and between their frames */
} MicrosandboxConfig;

extern MicrosandboxConfig microsandbox_config;
extern EmuQuota microsandbox_quota;

/* microsandbox.c: errors */
extern void microsandbox_refuse(EmuRequest *request, int status, const char *message);
extern void microsandbox_fail(EmuRequest *request, int status, const char *code,
                              const char *message);
extern void microsandbox_invalid(EmuRequest *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern void microsandbox_not_found(EmuRequest *request);
extern json_t *microsandbox_body(EmuRequest *request);

/* microsandbox_show.c */
extern void microsandbox_write(EmuText *text, const EmuSandbox *sandbox);
extern void microsandbox_answer(EmuRequest *request, const EmuSandbox *sandbox);

/* microsandbox_sandbox.c: names, states and what leads from one to another */
extern MicrosandboxDetails *microsandbox_details(const EmuSandbox *sandbox);
extern EmuSandbox *microsandbox_find(const EmuAccount *account, const char *id);
extern EmuSandbox *microsandbox_find_name(const EmuAccount *account, const char *name);
extern bool microsandbox_slug_taken(const char *slug);
extern void microsandbox_take_name(EmuSandbox *sandbox, char *name);
extern void microsandbox_take_slug(EmuSandbox *sandbox, char *slug);
extern void microsandbox_start(EmuSandbox *sandbox);
extern void microsandbox_stop(EmuSandbox *sandbox);
extern void microsandbox_settle(EmuSandbox *sandbox);
extern void microsandbox_destroy(EmuSandbox *sandbox);
extern void microsandbox_touch(EmuSandbox *sandbox);
extern void microsandbox_serve_queue(EmuAccount *account);
extern EmuGuest *microsandbox_guest(EmuSandbox *sandbox);
extern const char *microsandbox_home(const EmuSandbox *sandbox);
extern void microsandbox_release(EmuSandbox *sandbox);

/* microsandbox_wait.c: answers that are held until a sandbox runs */
typedef struct MicrosandboxWait
{
	bool wanted;
	int64_t seconds;
} MicrosandboxWait;

extern bool microsandbox_wait_read(EmuRequest *request, MicrosandboxWait *wait);
extern void microsandbox_wait_answer(EmuRequest *request, EmuSandbox *sandbox,
                                     const MicrosandboxWait *wait);
extern void microsandbox_wait_over(EmuSandbox *sandbox);

/* microsandbox_fields.c */
extern bool microsandbox_check_create(EmuRequest *request, const json_t *body);
extern bool microsandbox_name_valid(const char *name);

/* microsandbox_control.c, microsandbox_create.c, microsandbox_list.c */
extern void microsandbox_control_handle(EmuRequest *request);
extern void microsandbox_create(EmuRequest *request, EmuAccount *account);
extern void microsandbox_list(EmuRequest *request, EmuAccount *account);

/*
 * microsandbox_agent.c: the socket to the agent in a sandbox.  What is under
 * way on it has a number, and is told what the client says of it.
 */
typedef struct MicrosandboxOperation MicrosandboxOperation;
struct MicrosandboxOperation
{
	MicrosandboxOperation *next;
	MicrosandboxAgent *agent; /* NULL once the socket is gone */
	uint32_t id;
	void (*hear)(MicrosandboxOperation *operation, const char *type,
	             const cbor_item_t *payload);
	void (*lost)(MicrosandboxOperation *operation); /* the socket is gone */
};

typedef struct MicrosandboxHandle MicrosandboxHandle;
struct MicrosandboxAgent
{
	MicrosandboxAgent *next;
	EmuSandbox *sandbox;
	EmuWebSocket *socket;
	char *path; /* of the request that opened it */
	unsigned slot;
	EmuText inbox;  /* the start of a frame that is not whole yet */
	EmuText outbox; /* frames that wait for the end of their operation */
	MicrosandboxOperation *operations;
	MicrosandboxHandle *handles; /* files that are open */
	uint64_t last_handle;
};

#define MICROSANDBOX_TERMINAL 1 /* flag of a frame: the last of its operation */
#define MICROSANDBOX_START    2 /* the first */

/* The longest frame, without its length. */
#define MICROSANDBOX_FRAME_LIMIT ((size_t) 4 << 20)

extern void microsandbox_agent_open(EmuRequest *request, EmuSandbox *sandbox);
extern void microsandbox_agent_hang_up(MicrosandboxAgent *agent);
extern void microsandbox_agents_close(MicrosandboxDetails *details);
extern bool microsandbox_agents_busy(const MicrosandboxDetails *details);
extern void microsandbox_operation_begin(MicrosandboxAgent *agent,
                                         MicrosandboxOperation *operation, uint32_t id);

/* Without a word; the second because its sandbox has gone, and the socket with it. */
extern void microsandbox_operation_end(MicrosandboxOperation *operation);
extern void microsandbox_operation_gone(MicrosandboxOperation *operation);

/* Takes the payload; with the last frame the operation is none of the agent's. */
extern void microsandbox_say(MicrosandboxOperation *operation, const char *type,
                             cbor_item_t *payload);
extern void microsandbox_say_last(MicrosandboxOperation *operation, const char *type,
                                  cbor_item_t *payload);

/* The end of the range of its numbers. */
extern uint32_t microsandbox_agent_end(const MicrosandboxAgent *agent);

/* About something that is no operation. */
extern void
microsandbox_agent_say(MicrosandboxAgent *agent, uint32_t id, unsigned flags,
                       const char *type, cbor_item_t *payload);
extern void
microsandbox_agent_complain(MicrosandboxAgent *agent, uint32_t id, const char *kind,
                            const char *message, const char *offending_type);

/* microsandbox_output.c: how what an agent says leaves */
extern void microsandbox_output(MicrosandboxAgent *agent, const char *type,
                                bool is_last, EmuText *frame);

/* microsandbox_logs.c */
extern void microsandbox_logs(EmuRequest *request, EmuSandbox *sandbox);
extern void microsandbox_logs_add(MicrosandboxDetails *details, bool errors,
                                  const char *data, size_t length);
extern void microsandbox_logs_end(MicrosandboxDetails *details);

/* microsandbox_exec.c, microsandbox_files.c */
extern void
microsandbox_exec(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *payload);
extern void
microsandbox_files(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *payload);

/* What those of microsandbox_files.c share with microsandbox_transfer.c */
extern void microsandbox_files_answer(MicrosandboxAgent *agent, uint32_t id,
                                      const char *error, cbor_item_t *data);
extern const char *microsandbox_files_error(const EmuProcessEnd *end);
extern void
microsandbox_files_end(MicrosandboxOperation *operation, const EmuProcessEnd *end,
                       const char *error, cbor_item_t *data);
extern EmuProcess *microsandbox_files_run(MicrosandboxAgent *agent, const char *script,
                                          const char *const *words,
                                          const EmuProcessEvents *events, void *owner);
extern bool microsandbox_transfer(MicrosandboxAgent *agent, uint32_t id,
                                  const char *name, const cbor_item_t *members);
extern void microsandbox_handles_free(MicrosandboxAgent *agent);

#endif
