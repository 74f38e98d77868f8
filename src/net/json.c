/*
 * json.c
 *		Reading untrusted JSON and building JSON, a thin layer over jansson.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "net/json.h"

/*
 * jansson's allocators belong to the whole process, and another library may use
 * the same shared object.  So blocks stay plain malloc() blocks, and the size to
 * wipe is asked from malloc instead of being kept in a header: whatever was
 * allocated before this was installed can still be freed by it.
 */
static void
json_wipe_and_free(void *memory)
{
	if (memory != NULL)
		explicit_bzero(memory, malloc_usable_size(memory));
	free(memory);
}

void
sbx_json_init(void)
{
	json_set_alloc_funcs(malloc, json_wipe_and_free);

	/* Reads /dev/urandom now, not at the first object in an abort callback. */
	json_object_seed(0);
}

/*
 * Does the text nest deeper than allowed?  Looked at before parsing, because the
 * parser recurses (jansson's own bound is 2048 frames of a backend's stack).
 * Malformed text may be counted wrongly; the parser refuses it anyway.
 */
static bool
json_too_deep(const char *bytes, size_t length)
{
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < length; i++)
	{
		char byte = bytes[i];

		if (in_string)
		{
			if (byte == '\\')
				i++;
			else if (byte == '"')
				in_string = false;
		}
		else if (byte == '"')
			in_string = true;
		else if (byte == '{' || byte == '[')
		{
			if (++depth > SBX_JSON_MAX_DEPTH)
				return true;
		}
		else if (byte == '}' || byte == ']')
			depth--;
	}
	return false;
}

json_t *
sbx_json_parse(const char *bytes, size_t length, bool allow_nul)
{
	size_t flags = JSON_REJECT_DUPLICATES;
	json_error_t error;

	if (bytes == NULL || json_too_deep(bytes, length))
		return NULL;
	if (allow_nul)
		flags |= JSON_ALLOW_NUL;
	return json_loadb(bytes, length, flags, &error);
}

const char *
sbx_json_string(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

const char *
sbx_json_string_length(const json_t *object, const char *key, size_t *length)
{
	const json_t *member = json_object_get(object, key);

	*length = json_string_length(member);
	return json_string_value(member);
}

bool
sbx_json_integer(const json_t *object, const char *key, int64_t *value)
{
	const json_t *member = json_object_get(object, key);

	if (!json_is_integer(member))
		return false;
	*value = json_integer_value(member);
	return true;
}

bool
sbx_json_is_text(const char *text)
{
	json_t *string = json_string(text);
	bool valid = string != NULL;

	json_decref(string);
	return valid;
}

json_t *
sbx_json_new_object(void)
{
	return json_pack("{}");
}

char *
sbx_json_print(SbxArena *arena, const json_t *value)
{
	const size_t flags = JSON_COMPACT;
	size_t length = json_dumpb(value, NULL, 0, flags);
	char *text;

	/* 0 = jansson could not allocate (or was given no document at all). */
	if (length == 0)
	{
		arena->out_of_memory = true;
		return NULL;
	}
	text = sbx_arena_alloc(arena, length + 1);
	if (text != NULL && json_dumpb(value, text, length, flags) != length)
	{
		arena->out_of_memory = true;
		return NULL;
	}
	return text;
}
