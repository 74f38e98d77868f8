/*
 * test_json.c
 *		What is refused, what is read, what is written.
 */
#include "unit.h"

static bool
accepted(const char *text, bool allow_nul)
{
	json_t *value = sbx_json_parse(text, strlen(text), allow_nul);
	bool result = value != NULL;

	json_decref(value);
	return result;
}

static void
nested(char *text, int depth, char open, char close)
{
	memset(text, open, (size_t) depth);
	memset(text + depth, close, (size_t) depth);
	text[2 * depth] = '\0';
}

static void
refusals(void)
{
	static const char *const bad[] = {
	    "",
	    " ",
	    "{",
	    "{}x",
	    "{}{}",
	    "{\"a\":1,\"a\":2}",
	    "[{\"a\":1,\"a\":1}]",
	    "{\"a\":\"\\u0000\"}",
	    "{\"a\":\"\xff\"}",
	    "{\"a\":\"\xc0\x80\"}",
	    "{\"a\":\"\xed\xa0\x80\"}",
	    "{\"a\":\"\\ud800\"}",
	    "{\"a\":\"\n\"}",
	    "{\"a\":NaN}",
	    "{\"a\":1e999}",
	    "{\"a\":99999999999999999999}",
	    "{a:1}",
	    "{\"a\":1,}",
	    "<!doctype html><html></html>",
	    "\"text\"",
	    "1",
	    "null",
	};
	static const char *const good[] = {
	    "{}",
	    " {\"a\":[1,2.5,true,null,\"\xc3\xa4\"]} \n",
	    "[]",
	    "{\"a\":\"\\\\\\\"{[\"}",
	};
	char text[5000];

	section("json");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ok(!accepted(bad[i], false), "refused: case %zu", i);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ok(accepted(good[i], false), "accepted: %zu", i);
	ok(sbx_json_parse(NULL, 0, false) == NULL, "refused: no bytes");
	ok(sbx_json_parse("{}\0", 3, false) == NULL, "refused: a byte 0 after the value");
	ok(accepted("{\"a\":\"x\\u0000y\"}", true), "U+0000 when asked for");
	ok(!accepted("{\"a\\u0000\":1}", true), "but never in a key");

	nested(text, SBX_JSON_MAX_DEPTH, '[', ']');
	ok(accepted(text, false), "depth 16 passes");
	nested(text, SBX_JSON_MAX_DEPTH + 1, '[', ']');
	ok(!accepted(text, false), "depth 17 is refused");
	nested(text, 2000, '[', ']');
	ok(!accepted(text, false), "depth 2000, which jansson allows, is refused");
	ok(accepted("[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]", false),
	   "brackets in strings are not depth");
	ok(accepted("[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]", false),
	   "also behind an escaped quote");
	ok(!accepted("]]]]]]]]]]]]]]]]]]]]", false), "closing brackets do not buy depth");
}

static void
accessors(void)
{
	static const char text[] =
	    "{\"s\":\"x\\u0000y\",\"i\":-5,\"r\":2.5,\"o\":{},\"n\":null}";
	json_t *object = sbx_json_parse(text, strlen(text), true);
	int64_t integer = 77;
	size_t length;

	section("json members");
	ok(sbx_json_string_length(object, "s", &length) != NULL && length == 3,
	   "a string with its length");
	is_text(sbx_json_string(object, "i"), NULL, "a number is no string");
	is_text(sbx_json_string(object, "x"), NULL, "absent");
	is_text(sbx_json_string_length(object, "o", &length), NULL,
	        "an object is no string");
	is_number((int64_t) length, 0, "and has no length");
	ok(sbx_json_integer(object, "i", &integer) && integer == -5, "an integer");
	ok(!sbx_json_integer(object, "r", &integer) && integer == -5,
	   "a fraction is no integer");
	ok(!sbx_json_integer(object, "s", &integer), "a string is no integer");
	ok(sbx_json_string(NULL, "s") == NULL && !sbx_json_integer(NULL, "i", &integer),
	   "no object has no members");
	json_decref(object);
}

static void
printing(void)
{
	static const char text[] = "{\"z\":1,\"a\":\"\xc3\xa4\\u0001/\",\"m\":{}}";
	json_t *object = sbx_json_parse(text, strlen(text), false);
	SbxArena arena;

	section("json printing");
	sbx_arena_init(&arena, 0, 4096);
	is_text(sbx_json_print(&arena, object), text, "compact, in the order of insertion");
	ok(sbx_json_print(&arena, NULL) == NULL && arena.out_of_memory, "no document");
	sbx_arena_free(&arena);

	sbx_arena_init(&arena, 0, 8);
	ok(sbx_json_print(&arena, object) == NULL && arena.out_of_memory,
	   "no room in the arena");
	sbx_arena_free(&arena);
	json_decref(object);
}

void
test_json(void)
{
	refusals();
	accessors();
	printing();
}
