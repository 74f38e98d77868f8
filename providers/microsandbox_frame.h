/*
 * microsandbox_frame.h
 *		Frames of the agent in a Microsandbox sandbox.
 *
 * The agent speaks first: eight bytes, the range of ids that are ours (its end excluded).
 * Then come frames in both directions: four bytes of length (big-endian, from the id on),
 * an id, a byte of flags, and a CBOR map {v: version, t: type, p: bytes}, whose bytes are
 * the CBOR of the payload.  Networks split and merge them as they like.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_MICROSANDBOX_FRAME_H
#define SBX_MICROSANDBOX_FRAME_H

#include "providers/cbor.h"

#define MICROSANDBOX_TERMINAL 1 /* the last frame of its id */
#define MICROSANDBOX_START    2 /* the first one */

/* The generation of the protocol that is spoken here. */
#define MICROSANDBOX_VERSION 7

/* One frame that came, in place. */
typedef struct SbxMicrosandboxFrame
{
	uint32_t id;
	unsigned flags;
	int64_t version;
	SbxCborItem type;
	SbxCborItem payload;
} SbxMicrosandboxFrame;

/* Takes one frame; false = enough. */
typedef bool SbxMicrosandboxTake(SbxOp *op, const SbxMicrosandboxFrame *frame);

/* Zeroed is the start of a stream. */
typedef struct SbxMicrosandboxReader
{
	bool has_range;
	uint32_t first_id; /* of those that are ours */
	uint32_t end_id;
	unsigned char head[8];
	size_t head_length;
	char *frame;
	size_t frame_size;   /* room */
	size_t frame_length; /* so far */
	bool malformed;      /* what came is not this, or there is no memory for it */
} SbxMicrosandboxReader;

/*
 * The next bytes of a stream; take sees each frame that they complete.  False = take had
 * enough, or the stream is malformed.
 */
extern bool
sbx_microsandbox_read(SbxOp *op, SbxMicrosandboxReader *reader, const char *bytes,
                      size_t length, SbxMicrosandboxTake *take);

/* One frame in the arena, for sbx_op_say(); NULL = no memory. */
extern char *
sbx_microsandbox_frame(SbxArena *arena, uint32_t id, unsigned flags, int64_t version,
                       const char *type, const SbxCborWriter *payload, size_t *length);

#endif /* SBX_MICROSANDBOX_FRAME_H */
