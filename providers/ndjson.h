/*
 * ndjson.h
 *		Streams of JSON, one value a line.
 *
 * Networks split and merge lines as they like, also inside a character.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_NDJSON_H
#define SBX_NDJSON_H

#include "net/op.h"

/* Takes one line, without its end and never empty; false = enough. */
typedef bool SbxNdjsonTake(SbxOp *op, const char *json, size_t length);

/* Zeroed is the start of a stream. */
typedef struct SbxNdjsonReader
{
	char *line;     /* that is not complete yet */
	size_t size;    /* room */
	size_t length;  /* so far */
	bool malformed; /* a line is too long, or there is no memory for it */
} SbxNdjsonReader;

/*
 * The next bytes of a stream; take sees each line that they complete.  False = take had
 * enough, or the stream is malformed.
 */
extern bool sbx_ndjson_read(SbxOp *op, SbxNdjsonReader *reader, const char *bytes,
                            size_t length, SbxNdjsonTake *take);

/* After the last byte: the last line may have no end. */
extern bool sbx_ndjson_finish(SbxOp *op, SbxNdjsonReader *reader, SbxNdjsonTake *take);

#endif /* SBX_NDJSON_H */
