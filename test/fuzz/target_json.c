/*
 * target_json.c
 *		Target: reading untrusted JSON, and printing it.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "net/json.h"

/* What is printed is the same document again. */
static void
check_printed(const json_t *document)
{
	SbxArena arena;
	char *text;
	json_t *again;

	sbx_arena_init(&arena, 4096, 64 << 20);
	text = sbx_json_print(&arena, document);
	fuzz_check(text != NULL, "a document cannot be printed");
	again = sbx_json_parse(text, strlen(text), true);
	fuzz_check(again != NULL && json_equal(document, again), "printed: %s", text);
	json_decref(again);
	sbx_arena_free(&arena);
}

static void
look_at(const json_t *document)
{
	const char *key;
	json_t *value;
	int64_t number;
	size_t length;

	json_object_foreach ((json_t *) (uintptr_t) document, key, value)
	{
		const char *text = sbx_json_string(document, key);

		fuzz_check((text != NULL) == json_is_string(value), "text of \"%s\"", key);
		fuzz_touch_text(text);
		text = sbx_json_string_length(document, key, &length);
		fuzz_touch(text, length);
		fuzz_check(sbx_json_integer(document, key, &number) == json_is_integer(value),
		           "number of \"%s\"", key);
	}
	fuzz_check(sbx_json_string(document, "no such key") == NULL, "an absent member");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FuzzInput input = {data, size};
	size_t length;
	char *bytes = fuzz_bytes(&input, size, &length);
	json_t *strict = sbx_json_parse(bytes, length, false);
	json_t *lax = sbx_json_parse(bytes, length, true);

	free(bytes);
	fuzz_check(strict == NULL || lax != NULL, "a NUL more is allowed, not less");
	if (lax != NULL)
	{
		look_at(lax);
		check_printed(lax);
	}
	json_decref(strict);
	json_decref(lax);
	return 0;
}
