/*
 * jsonread.h
 *		Reading jsonb documents strictly: every value checked, every fault named
 *		by its path.
 */
#ifndef SBX_JSONREAD_H
#define SBX_JSONREAD_H

#include "observe/error.h"

#include "utils/jsonb.h"

/* Lists, labels and environments hold at most this many members. */
#define SBX_MAX_MEMBERS 64

/* A whole document in bytes. */
#define SBX_MAX_DOCUMENT (256 * 1024)

/* Containers inside containers. */
#define SBX_MAX_NESTING 16

/* Most keys that one object of ours knows. */
#define SBX_MAX_KEYS 24

typedef struct SbxText
{
	const char *key;
	const char *value;
} SbxText;

/* A jsonb as a value, after checking size and nesting; it must be an object. */
extern void sbx_jsonb_document(SbxDocument document, const char *path, Jsonb *jsonb,
                               JsonbValue *value);

/*
 * Split an object by its known keys: members[i] is the value of keys[i], of type
 * jbvNull when absent.  JSON null equals absence, unless present (may be NULL)
 * is asked: present[i] is true for both.  Unknown keys are refused.
 */
extern void sbx_jsonb_members(SbxDocument document, const char *path,
                              const JsonbValue *object, const char *const *keys,
                              int count, JsonbValue *members, bool *present);

/* path + "." + key */
extern char *sbx_jsonb_path(const char *path, const char *key);

/* Scalars; absent (jbvNull) gives NULL or the given default. */
extern char *
sbx_jsonb_text(SbxDocument document, const char *path, const JsonbValue *value);
extern double sbx_jsonb_double(SbxDocument document, const char *path,
                               const JsonbValue *value, double absent);
extern int64 sbx_jsonb_int64(SbxDocument document, const char *path,
                             const JsonbValue *value, int64 absent);
extern bool sbx_jsonb_bool(SbxDocument document, const char *path,
                           const JsonbValue *value, bool absent);

/* A whole number between two bounds, which may be negative; value is present. */
extern int64 sbx_jsonb_range(SbxDocument document, const char *path,
                             const JsonbValue *value, int64 minimum, int64 maximum);

/* Index of a word in a closed list; absent gives the default. */
extern int
sbx_jsonb_word(SbxDocument document, const char *path, const JsonbValue *value,
               const char *const *words, int count, int absent);

/* A list of distinct texts; absent gives NULL and *count 0. */
extern char **sbx_jsonb_texts(SbxDocument document, const char *path,
                              const JsonbValue *value, int *count);

/*
 * An object of texts; absent gives NULL and *count 0.  With free_values the values
 * may be empty and hold control characters.
 */
extern SbxText *sbx_jsonb_pairs(SbxDocument document, const char *path,
                                const JsonbValue *value, bool free_values, int *count);

/* Refuse what is empty or holds control characters. */
extern void sbx_check_text(SbxDocument document, const char *path, const char *string);

/* Is it [A-Za-z_][A-Za-z0-9_]* ?  The rule for environment names. */
extern bool sbx_is_environment_name(const char *name);

#endif /* SBX_JSONREAD_H */
