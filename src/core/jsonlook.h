/*
 * jsonlook.h
 *		Looking into jsonb that need not be what it should be.
 *
 * What is not there, and what has another type, is as good as absent.  Documents that are
 * refused when they are wrong are read with jsonread.h.
 */
#ifndef SBX_JSONLOOK_H
#define SBX_JSONLOOK_H

#include "compat.h"

#include "utils/jsonb.h"

/* A document as an object, or NULL. */
extern JsonbContainer *sbx_look_root(Jsonb *document);

/*
 * A member of an object, which may be NULL.  False = there is none, and the value is a null;
 * true also for a null that is there.
 */
extern bool sbx_look_member(JsonbContainer *object, const char *key, JsonbValue *value);

/* A value as an object, or NULL. */
extern JsonbContainer *sbx_look_object(const JsonbValue *value);

/* A copy of a text, or NULL. */
extern char *sbx_look_text(const JsonbValue *value);

extern bool sbx_look_is_text(const JsonbValue *value, const char *text);

#endif /* SBX_JSONLOOK_H */
