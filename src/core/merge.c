/*
 * merge.c
 *		A request over the defaults of a policy.
 */
#include "core/merge.h"

#include "miscadmin.h"

static bool
is_object(const JsonbValue *value)
{
	return value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data);
}

static JsonbValue *
member(JsonbContainer *object, const JsonbValue *key, JsonbValue *found)
{
	return getKeyJsonValueFromContainer(object, key->val.string.val,
	                                    key->val.string.len, found);
}

static JsonbValue *merge_objects(JsonbParseState **state, JsonbContainer *defaults,
                                 JsonbContainer *request);

/* What both have under one key. */
static void
merge_values(JsonbParseState **state, JsonbValue *by_default, JsonbValue *requested)
{
	if (is_object(by_default) && is_object(requested))
		(void) merge_objects(state, by_default->val.binary.data,
		                     requested->val.binary.data);
	else
		(void) pushJsonbValue(state, WJB_VALUE, requested);
}

static JsonbValue *
merge_objects(JsonbParseState **state, JsonbContainer *defaults,
              JsonbContainer *request)
{
	JsonbIterator *iterator;
	JsonbValue key;
	JsonbValue value;
	JsonbValue other;

	check_stack_depth();
	(void) pushJsonbValue(state, WJB_BEGIN_OBJECT, NULL);

	iterator = JsonbIteratorInit(defaults);
	(void) JsonbIteratorNext(&iterator, &key, true);
	while (JsonbIteratorNext(&iterator, &key, true) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&iterator, &value, true);
		(void) pushJsonbValue(state, WJB_KEY, &key);
		if (member(request, &key, &other) != NULL)
			merge_values(state, &value, &other);
		else
			(void) pushJsonbValue(state, WJB_VALUE, &value);
	}

	iterator = JsonbIteratorInit(request);
	(void) JsonbIteratorNext(&iterator, &key, true);
	while (JsonbIteratorNext(&iterator, &key, true) == WJB_KEY)
	{
		(void) JsonbIteratorNext(&iterator, &value, true);
		if (member(defaults, &key, &other) != NULL)
			continue;
		(void) pushJsonbValue(state, WJB_KEY, &key);
		(void) pushJsonbValue(state, WJB_VALUE, &value);
	}
	return pushJsonbValue(state, WJB_END_OBJECT, NULL);
}

Jsonb *
sbx_jsonb_merge(Jsonb *defaults, Jsonb *request)
{
	JsonbParseState *state = NULL;

	if (defaults == NULL || request == NULL)
		return request == NULL ? defaults : request;
	if (!JB_ROOT_IS_OBJECT(defaults) || !JB_ROOT_IS_OBJECT(request))
		return request;
	return JsonbValueToJsonb(merge_objects(&state, &defaults->root, &request->root));
}
