/*
 * jsonwrite.h
 *		Building jsonb documents member by member.
 *
 * A NULL key stands for "no key": a member of an array, or the document itself.
 */
#ifndef SBX_JSONWRITE_H
#define SBX_JSONWRITE_H

#include "compat.h"

#include "utils/jsonb.h"
#include "utils/numeric.h"

extern void sbx_push_begin(JsonbParseState **state, const char *key);
extern void sbx_push_end(JsonbParseState **state);
extern void sbx_push_begin_array(JsonbParseState **state, const char *key);
extern void sbx_push_end_array(JsonbParseState **state);

/* A NULL text is left out. */
extern void sbx_push_text(JsonbParseState **state, const char *key, const char *string);
extern void sbx_push_texts(JsonbParseState **state, const char *key,
                           char *const *strings, int count);
extern void sbx_push_int64(JsonbParseState **state, const char *key, int64 number);

/* With every digit that it takes to read the same number again, and no more; finite. */
extern Numeric sbx_double_numeric(double number);
extern void sbx_push_double(JsonbParseState **state, const char *key, double number);
extern void sbx_push_numeric(JsonbParseState **state, const char *key, Numeric number);
extern void sbx_push_bool(JsonbParseState **state, const char *key, bool boolean);
extern void
sbx_push_value(JsonbParseState **state, const char *key, const JsonbValue *value);
extern void sbx_push_jsonb(JsonbParseState **state, const char *key, Jsonb *jsonb);

/* Close the outermost object; the result. */
extern Jsonb *sbx_push_finish(JsonbParseState **state);

#endif /* SBX_JSONWRITE_H */
