/*
 * op.h
 *		The sans-I/O protocol between a provider adapter and whatever drives it.
 *
 * An operation (launch, run a script, destroy, ...) is a small step machine.
 * Its advance() looks at the last response and either asks for one thing (an
 * HTTP exchange, a pause) or finishes with a result or a failure.  It performs
 * no I/O, raises nothing and allocates only in its own arena, so that the same
 * code runs inside a backend, inside a transaction-abort callback, in a unit
 * test and in a fuzzer.
 *
 * This header is plain C: it compiles without PostgreSQL.
 */
#ifndef SBX_NET_OP_H
#define SBX_NET_OP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Longest provider-side sandbox id we keep.  Known ids are UUIDs (36) or names
 * of at most 128 bytes; more than this is refused as malformed.
 */
#define SBX_SANDBOX_ID_MAX 255

#define SBX_MAX_HEADERS 16

/*
 * Arena: malloc'ed blocks that live as long as the operation.  Running out of
 * memory (or over the limit) sets out_of_memory and returns NULL; it never
 * raises.  Everything is wiped when it is freed, because requests carry keys.
 */
typedef struct SbxArenaBlock SbxArenaBlock;

typedef struct SbxArena
{
	SbxArenaBlock *blocks;
	size_t used;        /* bytes in all blocks together */
	size_t limit;       /* no more than this many bytes in all */
	bool out_of_memory; /* sticky */
} SbxArena;

extern void sbx_arena_init(SbxArena *arena, size_t first_block, size_t limit);
extern void *sbx_arena_alloc(SbxArena *arena, size_t size);
extern char *sbx_arena_strdup(SbxArena *arena, const char *text);
extern char *sbx_arena_strndup(SbxArena *arena, const char *bytes, size_t length);
extern char *sbx_arena_printf(SbxArena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
extern void sbx_arena_free(SbxArena *arena);

/* One request header.  The line sent is "<name>: <prefix><value>". */
typedef struct SbxHeader
{
	const char *name;
	const char *prefix; /* "" or e.g. "Bearer " */
	const char *value;  /* may point to a credential; never logged */
} SbxHeader;

typedef struct SbxOp SbxOp;

/* What waits to be said over a WebSocket: one binary message. */
typedef struct SbxMessage
{
	struct SbxMessage *next;
	const char *bytes;
	size_t length;
} SbxMessage;

typedef struct SbxHttpRequest
{
	const char *method; /* GET, POST, PUT, PATCH, DELETE */
	const char *url;    /* absolute, already encoded */
	SbxHeader headers[SBX_MAX_HEADERS];
	int header_count;
	const char *body; /* NULL = no body */
	size_t body_length;

	/*
	 * True only where a second delivery does no harm (reads, deletes).  The
	 * driver guarantees that every other request is delivered at most once.
	 */
	bool repeatable;

	/* Send the body without a Content-Length, so that no proxy can replay it. */
	bool chunked;

	int64_t timeout_ms;  /* for this exchange; 0 = what is left of the op's */
	size_t max_response; /* bytes of body accepted; 0 = the driver's limit */

	/*
	 * For streams: called with each piece of the body of a 200 as it comes, instead of
	 * collecting it.  False = enough: the exchange ends there, as if it were complete.
	 * Same rules as for advance(), and it must not change the request.  Never together
	 * with repeatable: what was taken cannot be given back.
	 */
	bool (*take_body)(SbxOp *op, const char *bytes, size_t length);

	/*
	 * For WebSockets: the URL (of http or https) is asked to become one.  Called with what
	 * binary messages bring, as one stream, whatever cuts it; and with no bytes when an
	 * alarm goes off.  Its answers are sbx_op_say() and sbx_op_alarm(), and false = enough:
	 * the exchange ends there.  Otherwise the rules for take_body hold.
	 */
	bool (*talk)(SbxOp *op, const char *bytes, size_t length);

	/* Filled by sbx_op_say() and sbx_op_alarm(), emptied by the driver. */
	SbxMessage *said;
	SbxMessage *said_last;
	int64_t alarm_ms; /* 0 = none has been set */
} SbxHttpRequest;

/* Where an exchange failed.  A closed set: user functions see these words. */
typedef enum SbxPhase
{
	SBX_PHASE_NONE = 0,
	SBX_PHASE_CONNECT, /* name resolution, refused, unreachable, address denied */
	SBX_PHASE_TLS,
	SBX_PHASE_SEND,
	SBX_PHASE_RECEIVE,  /* sent, but no complete answer (or too late, too long) */
	SBX_PHASE_PROTOCOL, /* an answer that is not what the contract says */
	SBX_PHASE_REMOTE    /* the provider answered with an error */
} SbxPhase;

/* What a failure proves about the resource the operation may have made. */
typedef enum SbxAllocation
{
	SBX_ALLOCATION_UNKNOWN = 0, /* the default: never assume less */
	SBX_ALLOCATION_NONE,        /* proven: nothing was allocated */
	SBX_ALLOCATION_MADE         /* proven: a sandbox exists */
} SbxAllocation;

/*
 * Of a WebSocket the status is 101 when the operation had enough or the other side said
 * goodbye.  A connection that ends without that is an answer that is not complete.  Any
 * other status is a refusal, of which no body is read.
 */
typedef struct SbxHttpResponse
{
	int status;          /* 0 = no (complete) answer */
	const char *headers; /* raw lines "Name: value\r\n"..., NUL-terminated */
	const char *body;    /* NUL-terminated after body_length bytes */
	size_t body_length;
	SbxPhase failed_phase; /* SBX_PHASE_NONE when status is valid */
	bool request_sent;     /* could the provider have acted on it? */
	bool timed_out;        /* the exchange's or the op's time was over */
	bool too_large;        /* cut off at max_response */
	bool denied;           /* the driver's own rules forbid the address */
	bool resent;           /* a repeatable request may have arrived twice */
	bool closed;           /* of a WebSocket: the other side said goodbye */
} SbxHttpResponse;

/* Sanitised facts: no provider text, no credential, ever. */
typedef struct SbxFailure
{
	SbxPhase phase;
	bool request_sent;
	bool timed_out;
	bool denied;
	int http_status;           /* 0 = none */
	int retry_after;           /* seconds, as the answer asks; 0 = it does not */
	const char *provider_code; /* a constant of the adapter's closed set, or NULL */
	SbxAllocation allocation;
} SbxFailure;

typedef enum SbxOpWant
{
	SBX_OP_WANT_HTTP,   /* op->request is filled in */
	SBX_OP_WANT_PAUSE,  /* op->pause_ms: advance again after that long */
	SBX_OP_WANT_NOTHING /* finished: op->succeeded, result or failure */
} SbxOpWant;

struct SbxOp
{
	SbxArena arena;
	SbxOpWant (*advance)(SbxOp *op);
	const char *operation; /* "launch", "runScript", ...: what errors name */
	int64_t timeout_ms;    /* budget of the whole operation, from its start */

	/*
	 * The provider's id of the sandbox this is about: given by the caller, or
	 * filled in by the operation the moment it learns it.  A fixed array, so
	 * that the abort path can copy it without allocating.
	 */
	char sandbox_id[SBX_SANDBOX_ID_MAX + 1];

	/* Filled by the driver before every advance() but the first. */
	SbxHttpResponse response;

	/*
	 * Since its start, and until its time is over, which may be sooner than it was made
	 * for; filled by the driver before every advance().
	 */
	int64_t elapsed_ms;
	int64_t rest_ms;

	/*
	 * Set by the driver when the op's time is over: this advance() is the last
	 * one and has to return SBX_OP_WANT_NOTHING.
	 */
	bool expired;

	/*
	 * Kept by the driver: may any request of this operation have reached the other
	 * side?  True while one is under way, also when the driver never returns.
	 */
	bool anything_sent;

	/* Filled by advance(). */
	SbxHttpRequest request;
	int64_t pause_ms;
	bool succeeded;
	SbxFailure failure;
	void *result; /* operation-specific, in the arena */
	void *state;  /* the adapter's own, in the arena */
};

/*
 * Make an operation with an arena of its own (first_block bytes are reserved at
 * once, so that later steps need not allocate).  NULL when out of memory.
 */
extern SbxOp *sbx_op_create(const char *operation, SbxOpWant (*advance)(SbxOp *),
                            size_t state_size, size_t first_block, int64_t timeout_ms);
extern void sbx_op_free(SbxOp *op);

/* Start a request: clears the previous one. */
extern void
sbx_op_request(SbxOp *op, const char *method, const char *url, bool repeatable);

/*
 * Add a header.  A name that is not an RFC 9110 token, or a prefix or value with
 * a control character, fails the operation (returns false) instead of being sent.
 */
extern bool
sbx_op_header(SbxOp *op, const char *name, const char *prefix, const char *value);

/*
 * Say a message over the WebSocket that was asked for, after those before it; before it is
 * open, or while it talks.  The bytes are not copied: they stay until the exchange is over.
 */
extern void sbx_op_say(SbxOp *op, const char *bytes, size_t length);

/*
 * Have talk called after so many milliseconds, instead of an alarm that was set before;
 * they count from the moment that the WebSocket is open, if it is not yet.
 */
extern void sbx_op_alarm(SbxOp *op, int64_t ms);

/* Ends of an operation; each returns SBX_OP_WANT_NOTHING. */
extern SbxOpWant sbx_op_succeed(SbxOp *op, void *result);
extern SbxOpWant sbx_op_fail(SbxOp *op, SbxPhase phase, const char *provider_code,
                             SbxAllocation allocation);
extern SbxOpWant sbx_op_pause(SbxOp *op, int64_t ms);

/*
 * The facts of op->response as a failure: transport trouble keeps its phase; an
 * answer with a status becomes SBX_PHASE_REMOTE.
 */
extern SbxOpWant
sbx_op_fail_response(SbxOp *op, const char *provider_code, SbxAllocation allocation);

/*
 * First value of a header (case-insensitive) among raw lines, in place and without the
 * blanks around it; NULL if absent.
 */
extern const char *
sbx_header_find(const char *lines, const char *name, size_t *value_length);

/* The same of the response, copied. */
extern char *sbx_op_response_header(SbxOp *op, const char *name);

/*
 * How many seconds a refusal asks to wait before the next try (RFC 9110, 10.2.3); 0 = it
 * does not say.  A date is not read: a step has no clock.  Some name the limit that was met
 * at the end of the header's name.
 */
extern int sbx_op_retry_after(const SbxOp *op);

/* Percent-encode one path segment or query value (RFC 3986 unreserved kept). */
extern char *sbx_arena_url_encode(SbxArena *arena, const char *text);

/*
 * Equal in their first length bytes (or up to a common NUL), ASCII letters
 * compared without case.  strncasecmp() would follow the process's locale.
 */
extern bool sbx_ascii_equal(const char *left, const char *right, size_t length);

extern const char *sbx_phase_name(SbxPhase phase);
extern const char *sbx_allocation_name(SbxAllocation allocation);

#endif /* SBX_NET_OP_H */
