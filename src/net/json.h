/*
 * json.h
 *		Reading untrusted JSON and building JSON, a thin layer over jansson.
 *
 * Reading refuses what would be ambiguous or dangerous later: duplicate keys,
 * invalid UTF-8, nesting deeper than SBX_JSON_MAX_DEPTH, text after the value,
 * and (unless asked for) U+0000 in strings.  The accessors return "absent"
 * for a member of the wrong type, so that a caller which needs it fails.
 *
 * Plain C: compiles without PostgreSQL.
 */
#ifndef SBX_NET_JSON_H
#define SBX_NET_JSON_H

/*
 * The server exports a json_object() of its own, and inside a backend a call of
 * ours would reach that one.  So jansson's is hidden: use sbx_json_new_object().
 * (jansson's own calls are bound inside the library.)  Where server headers are
 * needed too, they come first.
 */
#define json_object sbx_hidden_json_object
#include <jansson.h>
#undef json_object

#include "net/op.h"

/* Provider answers nest 3-4 deep; 16 leaves room and bounds recursion. */
#define SBX_JSON_MAX_DEPTH 16

/*
 * Let jansson use allocators that wipe what they free.  Once per process,
 * before the first document; documents can hold credentials.
 */
extern void sbx_json_init(void);

/* NULL when refused.  The caller owns the result: json_decref(). */
extern json_t *sbx_json_parse(const char *bytes, size_t length, bool allow_nul);

/* Members of an object; NULL / false when absent or of another type. */
extern const char *sbx_json_string(const json_t *object, const char *key);
extern const char *
sbx_json_string_length(const json_t *object, const char *key, size_t *length);
extern bool sbx_json_integer(const json_t *object, const char *key, int64_t *value);

/* Is it UTF-8, so that it can be a text of JSON?  False also for want of memory. */
extern bool sbx_json_is_text(const char *text);

/* An empty object; NULL = no memory.  The caller owns it. */
extern json_t *sbx_json_new_object(void);

/* Serialise into the arena (compact, keys in insertion order); NULL = no memory. */
extern char *sbx_json_print(SbxArena *arena, const json_t *value);

#endif /* SBX_NET_JSON_H */
