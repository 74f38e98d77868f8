/*
 * jsonlook.c
 *		Looking into jsonb that need not be what it should be.
 */
#include "core/jsonlook.h"

JsonbContainer *
sbx_look_root(Jsonb *document)
{
	return document != NULL && JB_ROOT_IS_OBJECT(document) ? &document->root : NULL;
}

bool
sbx_look_member(JsonbContainer *object, const char *key, JsonbValue *value)
{
	if (object != NULL &&
	    getKeyJsonValueFromContainer(object, key, strlen(key), value) != NULL)
		return true;
	value->type = jbvNull;
	return false;
}

JsonbContainer *
sbx_look_object(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data)
	           ? value->val.binary.data
	           : NULL;
}

char *
sbx_look_text(const JsonbValue *value)
{
	return value->type == jbvString
	           ? pnstrdup(value->val.string.val, value->val.string.len)
	           : NULL;
}

bool
sbx_look_is_text(const JsonbValue *value, const char *text)
{
	return value->type == jbvString && value->val.string.len == (int) strlen(text) &&
	       memcmp(value->val.string.val, text, value->val.string.len) == 0;
}
