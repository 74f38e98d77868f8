/*
 * connect.h
 *		Streams of the Connect protocol, JSON codec.
 *
 * A message is an envelope: one byte of flags, four bytes of length (big-endian), then
 * JSON.  The last one of an answer has the end-of-stream flag and may hold an error.
 * Networks split and merge envelopes as they like.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_CONNECT_H
#define SBX_CONNECT_H

#include "net/op.h"

#define SBX_CONNECT_END_OF_STREAM 0x02

/* One message in its envelope, in the arena; NULL = no memory. */
extern char *
sbx_connect_envelope(SbxArena *arena, const char *json, size_t *envelope_length);

/* Takes one message; false = enough. */
typedef bool SbxConnectTake(SbxOp *op, int flags, const char *json, size_t length);

/* Zeroed is the start of a stream. */
typedef struct SbxConnectReader
{
	unsigned char head[5];
	size_t head_length;
	char *message;
	size_t message_size;   /* room */
	size_t message_length; /* so far */
	bool malformed;        /* compressed, too long, or no memory for it */
} SbxConnectReader;

/*
 * The next bytes of a stream; take sees each message that they complete.  False =
 * take had enough, or the stream is malformed.
 */
extern bool sbx_connect_read(SbxOp *op, SbxConnectReader *reader, const char *bytes,
                             size_t length, SbxConnectTake *take);

#endif /* SBX_CONNECT_H */
