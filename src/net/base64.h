/*
 * base64.h
 *		Bytes as text.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_NET_BASE64_H
#define SBX_NET_BASE64_H

#include "net/op.h"

/*
 * Standard base64, padded, as every encoder writes it.  The result is no longer than the
 * text; false = it is none.
 */
extern bool
sbx_base64_decode(const char *text, size_t text_length, char *bytes, size_t *length);

/* NUL-terminated, in the arena; NULL = no memory. */
extern char *sbx_base64_encode(SbxArena *arena, const char *bytes, size_t length);

#endif /* SBX_NET_BASE64_H */
