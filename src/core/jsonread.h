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

/*
 * Where a value stands.  Paths live on the stack of whoever reads; they become text
 * only in an error, which most documents never see.
 */
typedef struct SbxPath
{
	SbxDocument document;
	const struct SbxPath *parent; /* NULL = this is the document itself */
	const char *key;
} SbxPath;

/* The path of a member, valid in the enclosing block. */
#define SBX_MEMBER(path, name) (&(const SbxPath){(path)->document, (path), (name)})

/* Refuse the value at a path; see sbx_error_document(). */
extern void sbx_refuse(const SbxPath *path, SbxReason reason, const char *hint)
    pg_attribute_noreturn();

typedef struct SbxText
{
	const char *key;
	const char *value;
} SbxText;

/* A jsonb as a value, after checking size and nesting; it must be an object. */
extern void sbx_jsonb_document(const SbxPath *path, Jsonb *jsonb, JsonbValue *value);

/*
 * Split an object by its known keys: members[i] is the value of keys[i], of type
 * jbvNull when absent.  JSON null equals absence, unless present (may be NULL) is
 * asked: present[i] is true for both.  Unknown keys are refused.
 */
extern void sbx_jsonb_members(const SbxPath *path, const JsonbValue *object,
                              const char *const *keys, int count, JsonbValue *members,
                              bool *present);

/* Scalars; absent (jbvNull) gives NULL or the given default. */
extern char *sbx_jsonb_text(const SbxPath *path, const JsonbValue *value);
extern double
sbx_jsonb_double(const SbxPath *path, const JsonbValue *value, double absent);
extern int64
sbx_jsonb_int64(const SbxPath *path, const JsonbValue *value, int64 absent);
extern bool sbx_jsonb_bool(const SbxPath *path, const JsonbValue *value, bool absent);

/* A whole number between two bounds, which may be negative; value is present. */
extern int64 sbx_jsonb_range(const SbxPath *path, const JsonbValue *value,
                             int64 minimum, int64 maximum);

/* Index of a word in a closed list; absent gives the default. */
extern int sbx_jsonb_word(const SbxPath *path, const JsonbValue *value,
                          const char *const *words, int count, int absent);

/* A list of distinct texts; absent gives NULL and *count 0. */
extern char **sbx_jsonb_texts(const SbxPath *path, const JsonbValue *value, int *count);

/*
 * An object of texts; absent gives NULL and *count 0.  With free_values the values
 * may be empty and hold control characters.
 */
extern SbxText *sbx_jsonb_pairs(const SbxPath *path, const JsonbValue *value,
                                bool free_values, int *count);

/* Check an object of any values: keys are texts, not too many; absent is fine. */
extern void sbx_jsonb_any_object(const SbxPath *path, const JsonbValue *value);

/* Refuse what is empty or holds control characters. */
extern void sbx_check_text(const SbxPath *path, const char *string);

/* Is it [A-Za-z_][A-Za-z0-9_]* ?  The rule for environment names. */
extern bool sbx_is_environment_name(const char *name);

#endif /* SBX_JSONREAD_H */
