/*
 * request.h
 *		One HTTP request on its way through the emulator, and its answer.
 */
#ifndef EMU_REQUEST_H
#define EMU_REQUEST_H

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reactor.h"
#include "text.h"

/* What a request is about, in the words of the fault rules. */
typedef enum EmuOperation
{
	EMU_OP_OTHER,
	EMU_OP_CREATE,
	EMU_OP_GET,
	EMU_OP_LIST,
	EMU_OP_DELETE,
	EMU_OP_RUN,
	EMU_OP_START,
	EMU_OP_STATUS,
	EMU_OP_LOGS,
	EMU_OP_UPLOAD,
	EMU_OP_DOWNLOAD,
	EMU_OP_STOP
} EmuOperation;

#define EMU_OPERATION_COUNT (EMU_OP_STOP + 1)

extern const char *const emu_operation_names[EMU_OPERATION_COUNT];

typedef struct EmuRequest EmuRequest;
typedef struct EmuProvider EmuProvider;
typedef struct EmuFault EmuFault;
typedef struct EmuWebSocket EmuWebSocket;

/* How the bytes of an answer leave; all but the first two are faults. */
typedef enum EmuDelivery
{
	EMU_DELIVER_PLAIN,
	EMU_DELIVER_STREAMED,    /* as they come, until emu_stream_end */
	EMU_DELIVER_TRUNCATED,   /* stops after delivery_bytes, then closes */
	EMU_DELIVER_STALLED,     /* headers only, the body never comes */
	EMU_DELIVER_SLOW,        /* delivery_bytes per second */
	EMU_DELIVER_ENDLESS,     /* the body is followed by 'a' for ever */
	EMU_DELIVER_HUGE_HEADER, /* one header of delivery_bytes */
	EMU_DELIVER_RESET,       /* the connection is reset instead */
	EMU_DELIVER_CLOSE        /* the connection is closed instead */
} EmuDelivery;

typedef struct EmuAnswer
{
	bool given;
	int status;
	const char *content_type; /* NULL: none */
	EmuText headers;          /* "Name: value\n" lines */
	EmuText body;
	int64_t hold_ms; /* to be sent only after this long */
	EmuDelivery delivery;
	int64_t delivery_bytes;
} EmuAnswer;

struct EmuRequest
{
	struct MHD_Connection *connection;
	uint64_t connection_number;
	unsigned connection_request; /* 1 for the first on its connection */
	const char *method;
	char *target;      /* as sent: path and query, still escaped */
	char *path;        /* escaped, without the query */
	const char *query; /* points into target; "" if none */
	EmuText body;
	bool body_too_large;

	const EmuProvider *provider;
	EmuOperation operation;
	EmuFault *fault;
	EmuAnswer answer;

	/* While the connection is suspended: who will answer, who watches. */
	bool suspended;
	bool abandoned; /* the client has gone, or must be let go */
	bool dispatched;
	EmuTimer timer;
	EmuWatch watch;
	EmuRequest *next_suspended;
	EmuRequest *previous_suspended;
	void (*forget)(void *owner); /* tells the owner: nobody waits */
	void *owner;

	/* Takes the answer of one that no connection waits for; NULL: it is sent. */
	void (*finished)(EmuRequest *request);

	/* Delivery in progress */
	int64_t read_pause_until;
	bool stream_waits; /* suspended because all there is has been sent */
	bool stream_ended;

	EmuWebSocket *websocket; /* while a handshake is answered, see websocket.h */
	bool handed_over;        /* the connection, to the WebSocket */
};

/* Reading; header values belong to the request. */
extern const char *emu_request_header(EmuRequest *request, const char *name);
extern const char *emu_request_scheme(EmuRequest *request);

/* The key of "Authorization: Bearer"; NULL without one. */
extern const char *emu_request_bearer(EmuRequest *request);

/*
 * The JSON object in the body, an empty one if there is no body.  NULL if it
 * is something else; then the problem says why.
 */
extern json_t *emu_request_object(EmuRequest *request, EmuText *problem);

/* A string that is one in C too: without a NUL. */
extern bool emu_is_plain_string(const json_t *value);

/* What follows the prefix and a slash, NULL if that is not there. */
extern const char *emu_path_below(const char *path, const char *prefix);

/*
 * Path segments after a prefix, unescaped, up to `limit`; returns how many
 * there are (more than limit if it is longer).
 */
#define EMU_PATH_SEGMENTS 8
typedef struct EmuPath
{
	size_t count;
	char *segments[EMU_PATH_SEGMENTS];
} EmuPath;

extern void emu_path_split(EmuPath *path, const char *escaped);
extern void emu_path_free(EmuPath *path);

/* Calls back for each parameter of the query, unescaped, in order. */
extern void emu_request_each_parameter(EmuRequest *request,
                                       void (*found)(void *context, const char *name,
                                                     const char *value),
                                       void *context);

/* First value of a parameter, to be freed; NULL if there is none. */
extern char *emu_request_parameter(EmuRequest *request, const char *name);

/*
 * Answering.  A handler either answers before it returns, or arranges with
 * emu_request_wait that somebody does it later with emu_request_finish.
 */
extern void
emu_answer(EmuRequest *request, int status, const char *content_type, EmuText *body);
extern void emu_answer_json(EmuRequest *request, int status, EmuText *body);
extern void emu_answer_empty(EmuRequest *request, int status);
extern void emu_answer_header(EmuRequest *request, const char *name, const char *value);

/*
 * An answer of which only the beginning is known.  `forget` is called if the
 * client goes away before the end; nothing may be added after that.
 */
extern void emu_answer_stream(EmuRequest *request, int status, const char *content_type,
                              void (*forget)(void *owner), void *owner);
extern void emu_stream_add(EmuRequest *request, const char *data, size_t length);
extern void emu_stream_end(EmuRequest *request);
extern void emu_stream_break(EmuRequest *request);

extern void
emu_request_wait(EmuRequest *request, void (*forget)(void *owner), void *owner);
extern void emu_request_finish(EmuRequest *request);

/* While it is still being handled, an answer is sent by whoever does that. */
extern void emu_request_finish_waiting(EmuRequest *request);

#endif
