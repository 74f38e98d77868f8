/*
 * test_daytona_streams.c
 *		What came out of a run: framed logs, joined and cut streams, exit codes.
 */
#include <stdio.h>

#include "unit.h"

static const SbxRunResult *
result_of(Drive *drive, size_t max_stream, const char *body)
{
	SbxTarget target = {.sandbox_id = ID};
	SbxRunInput input = plain_run("x");

	input.max_stream = max_stream;
	*drive =
	    opened(sbx_kind_daytona.run_script(account_reset(&account), &target, &input));
	drive_answer(drive, 201, "");
	drive_answer(drive, 200, body);
	drive_answer(drive, 204, "");
	return drive->op->succeeded ? drive->op->result : NULL;
}

static bool
is_stream(const char *bytes, size_t length, const char *expected)
{
	if (expected == NULL)
		return bytes == NULL && length == 0;
	return bytes != NULL && length == strlen(expected) &&
	       memcmp(bytes, expected, length) == 0 && bytes[length] == '\0';
}

static void
streams(size_t max_stream, const char *body, const char *out, const char *err,
        const char *both, bool truncated, const char *what)
{
	Drive drive;
	const SbxRunResult *result = result_of(&drive, max_stream, body);

	ok(result != NULL && is_stream(result->stdout_text, result->stdout_length, out) &&
	       is_stream(result->stderr_text, result->stderr_length, err) &&
	       is_stream(result->output, result->output_length, both) &&
	       result->truncated == truncated,
	   "%s", what);
	if (result != NULL && !is_stream(result->output, result->output_length, both))
		printf("# output: %s\n", result->output ? result->output : "(null)");
	drive_end(&drive);
}

#define M1 "\\u0001\\u0001\\u0001"
#define M2 "\\u0002\\u0002\\u0002"

static void
framing(void)
{
	section("framed log");
	streams(99, "{\"output\":\"" M1 "a\\n" M2 "b\\n" M1 "c\\n\"}", "a\nc\n", "b\n",
	        "a\nb\nc\n", false, "in the order they were written");
	streams(99, "{\"output\":\"lost" M1 "a\"}", "a", "", "a", false,
	        "what stands before the first marker is dropped");
	streams(99, "{\"output\":\"" M1 "\"}", "", "", "", false, "a marker at the end");
	streams(99, "{\"output\":\"" M1 M2 M1 "\"}", "", "", "", false, "only markers");
	streams(99, "{\"output\":\"" M2 "e" M1 "\"}", "", "e", "e", false,
	        "a marker at the start and one at the end");
	streams(99, "{\"output\":\"" M1 "a\\u0001\\u0001b\"}",
	        "a\x01\x01"
	        "b",
	        "",
	        "a\x01\x01"
	        "b",
	        false, "two bytes are no marker");
	streams(99, "{\"output\":\"" M1 "a\\u0001\\u0002\\u0001\\u0002\"}",
	        "a\x01\x02\x01\x02", "", "a\x01\x02\x01\x02", false,
	        "mixed bytes are none");
	streams(99, "{\"output\":\"" M1 "\\u0001x\"}", "\x01x", "", "\x01x", false,
	        "of four bytes the first three");
	streams(99, "{\"output\":\"" M1 "a\\u0003\\u0003\\u0003\"}", "a\x03\x03\x03", "",
	        "a\x03\x03\x03", false, "other bytes are none");
	streams(99, "{\"output\":\"plain\"}", NULL, NULL, "plain", false,
	        "without any marker it is the unframed shape, not nothing");
	streams(4, "{\"output\":\"plain\"}", NULL, NULL, "plai", true, "which is cut too");
	streams(99, "{\"output\":\"\"}", NULL, NULL, "", false, "empty");
	streams(99, "{\"output\":\"\\u0001\\u0001\"}", NULL, NULL, "\x01\x01", false,
	        "shorter than a marker");
	streams(99, "{\"output\":\"" M1 "f\",\"stdout\":\"own\",\"stderr\":\"\"}", "own",
	        "", "f", false, "the provider's own streams win");
	streams(99, "{\"output\":\"x\",\"stdout\":\"a\",\"stderr\":\"b\"}", "a", "b",
	        "a\nb", false,
	        "an unframed log beside streams is not trusted for their order");
}

/* A log of 5 lines with the marker moved through every position. */
static void
every_position(void)
{
	static const char text[] = "abc\n\xc3\xa4\xe2\x82\xac\n";
	char body[200];
	int wrong = 0;

	section("framed log");
	for (size_t i = 0; i < sizeof(text); i++)
	{
		Drive drive;
		const SbxRunResult *result;

		/* Only between characters: JSON cannot carry half of one. */
		if (i < sizeof(text) - 1 && ((unsigned char) text[i] & 0xC0) == 0x80)
			continue;
		snprintf(body, sizeof(body), "{\"output\":\"" M1 "%.*s" M2 "%s\"}", (int) i,
		         text, text + i);
		for (char *byte = body; *byte != '\0'; byte++)
		{
			if (*byte == '\n')
				*byte = '|';
		}
		result = result_of(&drive, 99, body);
		if (result == NULL || result->stdout_length != i ||
		    result->stderr_length != sizeof(text) - 1 - i ||
		    result->output_length != sizeof(text) - 1)
			wrong++;
		drive_end(&drive);
	}
	is_number(wrong, 0, "a marker at every position");
}

static void
joining(void)
{
	section("joined streams");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"b\"}", "a", "b", "a\nb", false,
	        "a line break between them");
	streams(99, "{\"stdout\":\"a\\n\",\"stderr\":\"b\"}", "a\n", "b", "a\nb", false,
	        "unless the first ends with one");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"\\nb\"}", "a", "\nb", "a\nb", false,
	        "or the second begins with one");
	streams(99, "{\"stdout\":\"a\",\"stderr\":\"\"}", "a", "", "a", false,
	        "or there is no second");
	streams(99, "{\"stdout\":\"\",\"stderr\":\"b\"}", "", "b", "b", false, "or first");
	streams(99, "{\"stderr\":\"b\"}", NULL, "b", "b", false, "one of them is absent");
	streams(99, "{\"stdout\":null,\"stderr\":5}", NULL, NULL, NULL, false,
	        "absent or of another type");
	streams(99, "{}", NULL, NULL, NULL, false, "nothing at all");
}

static void
cutting(void)
{
	section("cut streams");
	streams(3, "{\"stdout\":\"abc\"}", "abc", NULL, "abc", false, "exactly full");
	streams(3, "{\"stdout\":\"abcd\"}", "abc", NULL, "abc", true, "one byte over");
	streams(3, "{\"stdout\":\"ab\xc3\xa4\"}", "ab", NULL, "ab", true,
	        "not within two bytes");
	streams(4,
	        "{\"stdout\":\"ab\xc3\xa4"
	        "c\"}",
	        "ab\xc3\xa4", NULL, "ab\xc3\xa4", true, "but behind them");
	streams(3, "{\"stdout\":\"\xf0\x9f\x98\x80\"}", "", NULL, "", true,
	        "not within four bytes");
	streams(0, "{\"stdout\":\"a\"}", "", NULL, "", true, "nothing is kept of it");
	streams(3, "{\"stdout\":\"abcd\",\"stderr\":\"e\"}", "abc", "e", "abc\ne", true,
	        "the other stream stays whole");
	streams(3, "{\"output\":\"" M1 "ab" M2 "x" M1 "cdef" M2 "y" M1 "gh\"}", "abc", "xy",
	        "abxcy", true, "in the log each stream has its own limit");
	streams(3, "{\"output\":\"" M1 "ab\xc3\xa4" M1 "c\"}", "ab", "", "ab", true,
	        "a cut stream does not go on behind the cut");
}

static void
exit_codes(void)
{
	Drive drive;
	const SbxRunResult *result;

	section("exit code");
	result = result_of(&drive, 9, "{\"stdout\":\"\"}");
	ok(result != NULL && !result->has_exit_code, "absent is not known, never 0");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":null}");
	ok(result != NULL && !result->has_exit_code, "null neither");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":-1}");
	ok(result != NULL && result->has_exit_code && result->exit_code == -1, "negative");
	drive_end(&drive);
	result = result_of(&drive, 9, "{\"exitCode\":0,\"stdout\":\"a\\u0000b\"}");
	ok(result != NULL && result->stdout_length == 3 && result->stdout_text[1] == '\0' &&
	       result->output_length == 3,
	   "a byte 0 in a stream is kept");
	drive_end(&drive);
}

void
test_daytona_streams(void)
{
	framing();
	every_position();
	joining();
	cutting();
	exit_codes();
}
