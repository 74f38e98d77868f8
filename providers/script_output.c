/*
 * script_output.c
 *		What comes back of a script: what its texts have printed, and its output.
 *
 * All of it is a sandbox's word, where everything can have been written by anybody: what
 * none of the texts prints means nothing, and of output the head is kept, whatever its
 * length.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "providers/script.h"

/* --- how it ended --------------------------------------------------------- */

bool
sbx_script_ran_out_of_time(SbxArena *arena, const SbxRunResult *result,
                           const char *run_id)
{
	const char *line = sbx_arena_printf(arena, SBX_SCRIPT_OUT_OF_TIME "%s\n", run_id);
	size_t length = line == NULL ? 0 : strlen(line);

	return line != NULL && result->has_exit_code &&
	       result->exit_code == SBX_SCRIPT_KILLED && result->stderr_length >= length &&
	       memcmp(result->stderr_text + result->stderr_length - length, line, length) ==
	           0;
}

/* One to three digits and a line break, at most 255; -1 = something else. */
static int
script_read_exit_code(const char *text)
{
	char *end;
	long code;

	if (*text < '0' || *text > '9')
		return -1;
	code = strtol(text, &end, 10);
	if (end - text > 3 || code > 255 || (*end != '\0' && strcmp(end, "\n") != 0))
		return -1;
	return (int) code;
}

static bool
script_is_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) == 0 &&
	       (text[length] == '\0' || strcmp(text + length, "\n") == 0);
}

/* A shell may have had to say something when it started. */
static const char *
script_last_line(const char *text)
{
	const char *line = text;

	for (; *text != '\0'; text++)
	{
		if (text[0] == '\n' && text[1] != '\0')
			line = text + 1;
	}
	return line;
}

SbxScriptWord
sbx_script_read_status(const char *printed, int *exit_code)
{
	static const struct
	{
		const char *word;
		SbxScriptWord meaning;
	} words[] = {
	    {SBX_SCRIPT_NEW, SBX_SCRIPT_IS_NEW},
	    {SBX_SCRIPT_NOTHING, SBX_SCRIPT_IS_NOTHING},
	    {SBX_SCRIPT_ANOTHER, SBX_SCRIPT_IS_ANOTHER},
	    {SBX_SCRIPT_CLAIMED, SBX_SCRIPT_IS_CLAIMED},
	    {SBX_SCRIPT_RUNNING, SBX_SCRIPT_IS_RUNNING},
	    {SBX_SCRIPT_LOST, SBX_SCRIPT_IS_LOST},
	};

	if (printed == NULL)
		return SBX_SCRIPT_GARBAGE;
	printed = script_last_line(printed);
	*exit_code = script_read_exit_code(printed);
	if (*exit_code >= 0)
		return SBX_SCRIPT_ENDED;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
	{
		if (script_is_word(printed, words[i].word))
			return words[i].meaning;
	}
	return SBX_SCRIPT_GARBAGE;
}

bool
sbx_script_has_begun(SbxScriptWord word)
{
	return word == SBX_SCRIPT_ENDED || word == SBX_SCRIPT_IS_RUNNING ||
	       word == SBX_SCRIPT_IS_LOST;
}

const char *
sbx_script_claim_code(SbxScriptWord word)
{
	if (word == SBX_SCRIPT_IS_ANOTHER)
		return "SESSION_IN_USE";
	return word == SBX_SCRIPT_IS_NOTHING ? "TMP_NOT_WRITABLE" : NULL;
}

const char *
sbx_script_status_code(SbxScriptWord word)
{
	if (word == SBX_SCRIPT_IS_LOST)
		return "SCRIPT_LOST";
	return word == SBX_SCRIPT_IS_NOTHING || word == SBX_SCRIPT_IS_ANOTHER
	           ? "SCRIPT_UNKNOWN"
	           : NULL;
}

/* --- the output --------------------------------------------------------- */

SbxScriptStream
sbx_script_open_stream(SbxArena *arena, size_t needed, size_t maximum)
{
	SbxScriptStream stream = {0};

	stream.maximum = needed < maximum ? needed : maximum;
	stream.bytes = sbx_arena_alloc(arena, stream.maximum + 1);
	stream.size = stream.maximum;
	return stream;
}

/*
 * A cut right at the start of a piece: the character may have begun at the end of what
 * is kept already.  It has four bytes at most; more than that is no text.
 */
static void
script_drop_begun_character(SbxScriptStream *stream)
{
	size_t begun = 1;

	while (begun < 3 && begun < stream->length &&
	       ((unsigned char) stream->bytes[stream->length - begun] & 0xC0) == 0x80)
		begun++;
	if (begun <= stream->length &&
	    (unsigned char) stream->bytes[stream->length - begun] >= 0xC0)
		stream->length -= begun;
}

/*
 * Once cut, a stream stays closed: a later piece that would fit does not belong
 * right after the cut.
 */
size_t
sbx_script_keep(SbxScriptStream *stream, const char *bytes, size_t length)
{
	size_t kept = length;

	if (stream->bytes == NULL || stream->cut || length == 0)
		return 0;
	if (kept > stream->maximum - stream->length)
	{
		/* Back to where a UTF-8 character starts. */
		kept = stream->maximum - stream->length;
		while (kept > 0 && ((unsigned char) bytes[kept] & 0xC0) == 0x80)
			kept--;
		if (kept == 0 && ((unsigned char) bytes[0] & 0xC0) == 0x80)
			script_drop_begun_character(stream);
		stream->cut = true;
	}
	memcpy(stream->bytes + stream->length, bytes, kept);
	stream->length += kept;
	return kept;
}

size_t
sbx_script_append(SbxArena *arena, SbxScriptStream *stream, const char *bytes,
                  size_t length)
{
	size_t rest = stream->maximum - stream->length;
	size_t needed = stream->length + (length < rest ? length : rest);
	size_t size =
	    stream->size > stream->maximum / 2 ? stream->maximum : stream->size * 2;
	char *bigger;

	if (needed > stream->size || stream->bytes == NULL)
	{
		if (size < needed)
			size = needed;
		if (size < 4096 && size < stream->maximum)
			size = stream->maximum < 4096 ? stream->maximum : 4096;
		bigger = sbx_arena_alloc(arena, size + 1);
		if (bigger == NULL)
			return 0;
		if (stream->length > 0)
			memcpy(bigger, stream->bytes, stream->length);
		stream->bytes = bigger;
		stream->size = size;
	}
	return sbx_script_keep(stream, bytes, length);
}

/* Standard output first; the two do not share a line. */
void
sbx_script_join(SbxArena *arena, SbxScriptOutput *output)
{
	const SbxScriptStream *out = &output->out;
	const SbxScriptStream *err = &output->err;

	output->both =
	    sbx_script_open_stream(arena, out->length + err->length + 1, SIZE_MAX - 1);
	sbx_script_keep(&output->both, out->bytes, out->length);
	if (out->length > 0 && err->length > 0 && out->bytes[out->length - 1] != '\n' &&
	    err->bytes[0] != '\n')
		sbx_script_keep(&output->both, "\n", 1);
	sbx_script_keep(&output->both, err->bytes, err->length);
}

void
sbx_script_store(const SbxScriptOutput *output, SbxRunResult *result)
{
	result->output = output->both.bytes;
	result->output_length = output->both.length;
	result->stdout_text = output->out.bytes;
	result->stdout_length = output->out.length;
	result->stderr_text = output->err.bytes;
	result->stderr_length = output->err.length;
	result->truncated = output->both.cut || output->out.cut || output->err.cut;
}

/* --- an answer that holds a result as JSON --------------------------------- */

bool
sbx_script_take_stream(SbxArena *arena, const json_t *answer, const char *key,
                       size_t maximum, SbxScriptStream *stream)
{
	size_t length;
	const char *bytes = sbx_json_string_length(answer, key, &length);
	bool was_cut = stream->cut;

	if (bytes == NULL)
		return false;
	*stream = sbx_script_open_stream(arena, length, maximum);
	sbx_script_keep(stream, bytes, length);
	stream->cut |= was_cut;
	return true;
}

bool
sbx_script_take_exit_code(const json_t *answer, const char *key, SbxRunResult *result)
{
	const json_t *member = json_object_get(answer, key);
	int64_t exit_code;

	if (member == NULL || json_is_null(member))
		return true;
	if (!sbx_json_integer(answer, key, &exit_code) || exit_code < INT_MIN ||
	    exit_code > INT_MAX)
		return false;
	result->has_exit_code = true;
	result->exit_code = (int) exit_code;
	return true;
}
