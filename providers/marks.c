/*
 * marks.c
 *		The output of a script that says itself when it is over.
 */
#include "providers/marks.h"

#include <string.h>

/* A mark is this, the run id, a colon, the exit code, and the last one. */
#define MARK_START '\001'
#define MARK_END   '\002'

void
sbx_marks_open(SbxMarkedOutput *marked, size_t max_stream, const char *mark)
{
	memset(marked, 0, sizeof(*marked));
	marked->mark = mark;
	marked->output.out.maximum = max_stream;
	marked->output.err.maximum = max_stream;
	marked->output.both.maximum = max_stream < SIZE_MAX / 2 ? 2 * max_stream : SIZE_MAX;
}

static void
marks_keep(SbxArena *arena, SbxMarkedOutput *marked, int stream, const char *bytes,
           size_t length)
{
	SbxScriptOutput *output = &marked->output;
	SbxScriptStream *kept = stream == 0 ? &output->out : &output->err;

	sbx_script_append(arena, &output->both, bytes,
	                  sbx_script_append(arena, kept, bytes, length));
}

/* The byte of the mark at that place; after the colon come digits. */
static bool
marks_goes_on(const SbxMarkedOutput *marked, int stream, char byte)
{
	size_t at = marked->matched[stream];
	size_t length = strlen(marked->mark);

	if (at == 0)
		return byte == MARK_START;
	if (at <= length)
		return byte == marked->mark[at - 1];
	if (at == length + 1)
		return byte == ':';
	return (byte >= '0' && byte <= '9' && at < length + 5) ||
	       (byte == MARK_END && at > length + 2);
}

/* What looked like a mark and is none belongs to the output after all. */
static void
marks_give_back(SbxArena *arena, SbxMarkedOutput *marked, int stream)
{
	size_t at = marked->matched[stream];
	size_t length = strlen(marked->mark);
	char start = MARK_START;
	char digits[4];
	int count = 0;

	marked->matched[stream] = 0;
	if (at == 0)
		return;
	marks_keep(arena, marked, stream, &start, 1);
	marks_keep(arena, marked, stream, marked->mark, at - 1 < length ? at - 1 : length);
	if (at > length + 1)
		marks_keep(arena, marked, stream, ":", 1);
	for (size_t i = length + 2; i < at && count < 4; i++)
		count++;
	for (int i = count, code = marked->code[stream]; i > 0; i--, code /= 10)
		digits[i - 1] = (char) ('0' + code % 10);
	marks_keep(arena, marked, stream, digits, (size_t) count);
}

static void
marks_take_byte(SbxArena *arena, SbxMarkedOutput *marked, int stream, char byte)
{
	size_t length = strlen(marked->mark);

	if (!marks_goes_on(marked, stream, byte))
	{
		marks_give_back(arena, marked, stream);
		if (byte != MARK_START)
		{
			marks_keep(arena, marked, stream, &byte, 1);
			return;
		}
	}
	if (byte == MARK_END && marked->matched[stream] > length + 2)
	{
		marked->has_mark[stream] = true;
		return;
	}
	if (marked->matched[stream] == 0)
		marked->code[stream] = 0;
	if (marked->matched[stream] >= length + 2)
		marked->code[stream] = marked->code[stream] * 10 + (byte - '0');
	marked->matched[stream]++;
}

/* After its mark a stream is somebody else's. */
void
sbx_marks_take(SbxArena *arena, SbxMarkedOutput *marked, int stream, const char *bytes,
               size_t length)
{
	if (marked->mark == NULL)
	{
		marks_keep(arena, marked, stream, bytes, length);
		return;
	}
	while (length > 0 && !marked->has_mark[stream])
	{
		const char *next =
		    marked->matched[stream] > 0 ? bytes : memchr(bytes, MARK_START, length);
		size_t plain = next == NULL ? length : (size_t) (next - bytes);

		marks_keep(arena, marked, stream, bytes, plain);
		bytes += plain;
		length -= plain;
		if (length > 0)
		{
			marks_take_byte(arena, marked, stream, *bytes);
			bytes++;
			length--;
		}
	}
}

bool
sbx_marks_complete(const SbxMarkedOutput *marked)
{
	return marked->has_mark[0] && marked->has_mark[1];
}

bool
sbx_marks_settle(SbxArena *arena, SbxMarkedOutput *marked, int *exit_code)
{
	for (int i = 0; i < 2; i++)
	{
		if (marked->mark != NULL && !marked->has_mark[i])
			marks_give_back(arena, marked, i);
	}
	if (!sbx_marks_complete(marked))
		return false;
	*exit_code = marked->code[0];
	return true;
}

SbxRunResult *
sbx_marks_result(SbxArena *arena, const SbxMarkedOutput *marked, int exit_code)
{
	SbxRunResult *result = sbx_arena_alloc(arena, sizeof(*result));

	if (result == NULL)
		return NULL;
	sbx_script_store(&marked->output, result);
	result->has_exit_code = true;
	result->exit_code = exit_code;
	return result;
}
