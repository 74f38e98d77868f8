/*
 * jsonwalk.c
 *		The members of a jsonb container, one after the other.
 *
 * A container is an array of entries followed by their data.  An object has all its
 * keys first, then all its values.  An entry says its length or where it ends.
 */
#include "core/jsonwalk.h"

static int
entry_count(const JsonbContainer *container)
{
	int members = JsonContainerSize(container);

	return JsonContainerIsObject(container) ? members * 2 : members;
}

static const char *
entry_data(const JsonbContainer *container)
{
	return (const char *) &container->children[entry_count(container)];
}

void
sbx_walk_start(SbxWalk *walk, JsonbContainer *container)
{
	walk->container = container;
	walk->count = JsonContainerSize(container);
	walk->next = 0;
	walk->data = entry_data(container);
	walk->key_offset = 0;
	walk->value_offset =
	    JsonContainerIsObject(container) ? getJsonbOffset(container, walk->count) : 0;
}

/* The value of an entry, which starts at *offset; that moves to its end. */
static void
read_entry(const SbxWalk *walk, int index, uint32 *offset, JsonbValue *value)
{
	JEntry entry = walk->container->children[index];
	uint32 start = *offset;

	JBE_ADVANCE_OFFSET(*offset, entry);
	if (JBE_ISSTRING(entry))
	{
		value->type = jbvString;
		value->val.string.val = unconstify(char *, walk->data + start);
		value->val.string.len = *offset - start;
	}
	else if (JBE_ISNUMERIC(entry))
	{
		value->type = jbvNumeric;
		value->val.numeric = (Numeric) (walk->data + INTALIGN(start));
	}
	else if (JBE_ISBOOL(entry))
	{
		value->type = jbvBool;
		value->val.boolean = JBE_ISBOOL_TRUE(entry);
	}
	else if (JBE_ISCONTAINER(entry))
	{
		value->type = jbvBinary;
		value->val.binary.data = (JsonbContainer *) (walk->data + INTALIGN(start));
		value->val.binary.len = *offset - INTALIGN(start);
	}
	else
		value->type = jbvNull;
}

bool
sbx_walk_element(SbxWalk *walk, JsonbValue *value)
{
	Assert(!JsonContainerIsObject(walk->container));
	if (walk->next == walk->count)
		return false;
	read_entry(walk, walk->next++, &walk->value_offset, value);
	return true;
}

bool
sbx_walk_member(SbxWalk *walk, JsonbValue *key, JsonbValue *value)
{
	Assert(JsonContainerIsObject(walk->container));
	if (walk->next == walk->count)
		return false;
	read_entry(walk, walk->next, &walk->key_offset, key);
	read_entry(walk, walk->count + walk->next++, &walk->value_offset, value);
	return true;
}

/*
 * This is asked about whole documents, so it looks at nothing but what leads to
 * containers.  The limit bounds the recursion.
 */
bool
sbx_walk_is_deeper(const JsonbContainer *container, int limit)
{
	int count = entry_count(container);
	const char *data = entry_data(container);
	uint32 offset = 0;

	if (limit == 0)
		return true;
	for (int i = 0; i < count; i++)
	{
		JEntry entry = container->children[i];

		if (JBE_ISCONTAINER(entry) &&
		    sbx_walk_is_deeper((const JsonbContainer *) (data + INTALIGN(offset)),
		                       limit - 1))
			return true;
		JBE_ADVANCE_OFFSET(offset, entry);
	}
	return false;
}
