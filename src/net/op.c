/*
 * op.c
 *		Arena, request building and endings of sans-I/O operations.
 *
 * Everything here runs where nothing may raise (transaction abort, callbacks of
 * libcurl), so running out of memory is a sticky flag and never an exit.
 */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/op.h"

/*
 * A runaway guard, not a budget: the largest legal operation holds a script
 * result of three 4 MB streams and a script of some MB in four forms (wrapped,
 * quoted, as JSON); a superuser may raise the stream size to 64 MB, of which twice as
 * much is taken while a stream grows.
 */
#define SBX_OP_ARENA_LIMIT ((size_t) 512 * 1024 * 1024)

/* Later blocks: a page together with malloc's and our own header. */
#define SBX_ARENA_BLOCK_SIZE ((size_t) 4000)

/* Of a pause that somebody may ask for: 11 days. */
#define RETRY_AFTER_DIGITS 6

struct SbxArenaBlock
{
	SbxArenaBlock *next;
	size_t size; /* capacity of bytes[] */
	size_t used;
	alignas(max_align_t) char bytes[];
};

/* --- arena -------------------------------------------------------------- */

static SbxArenaBlock *
arena_add_block(SbxArena *arena, size_t size)
{
	SbxArenaBlock *block = NULL;

	if (size <= SIZE_MAX - sizeof(SbxArenaBlock))
		block = malloc(sizeof(SbxArenaBlock) + size);
	if (block == NULL)
	{
		arena->out_of_memory = true;
		return NULL;
	}
	block->next = arena->blocks;
	block->size = size;
	block->used = 0;
	arena->blocks = block;
	return block;
}

void
sbx_arena_init(SbxArena *arena, size_t first_block, size_t limit)
{
	memset(arena, 0, sizeof(*arena));
	arena->limit = limit;
	if (first_block > 0)
		arena_add_block(arena, first_block);
}

/*
 * The memory is zeroed.  The limit counts bytes handed out, not blocks, so that
 * it bites at the same allocation whatever the size of the first block.
 */
void *
sbx_arena_alloc(SbxArena *arena, size_t size)
{
	const size_t alignment = alignof(max_align_t);
	SbxArenaBlock *block = arena->blocks;
	char *memory;

	if (size == 0)
		size = 1;
	if (arena->out_of_memory || size > arena->limit ||
	    arena->used > arena->limit - size || size > SIZE_MAX - alignment)
	{
		arena->out_of_memory = true;
		return NULL;
	}
	size = (size + alignment - 1) / alignment * alignment;
	if (block == NULL || block->size - block->used < size)
		block = arena_add_block(
		    arena, size > SBX_ARENA_BLOCK_SIZE ? size : SBX_ARENA_BLOCK_SIZE);
	if (block == NULL)
		return NULL;

	memory = block->bytes + block->used;
	memset(memory, 0, size);
	block->used += size;
	arena->used += size;
	return memory;
}

char *
sbx_arena_strdup(SbxArena *arena, const char *text)
{
	return sbx_arena_strndup(arena, text, strlen(text));
}

/* Bytes may hold NUL; the copy gets one more at its end. */
char *
sbx_arena_strndup(SbxArena *arena, const char *bytes, size_t length)
{
	char *copy = NULL;

	if (length < SIZE_MAX)
		copy = sbx_arena_alloc(arena, length + 1);
	else
		arena->out_of_memory = true;
	if (copy != NULL && length > 0)
		memcpy(copy, bytes, length);
	return copy;
}

char *
sbx_arena_printf(SbxArena *arena, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);

	if (length >= 0)
		text = sbx_arena_alloc(arena, (size_t) length + 1);
	else
		arena->out_of_memory = true;
	if (text == NULL)
		return NULL;

	va_start(arguments, format);
	vsnprintf(text, (size_t) length + 1, format, arguments);
	va_end(arguments);
	return text;
}

/* Requests hold scripts, env values and sometimes keys: wipe, then free. */
void
sbx_arena_free(SbxArena *arena)
{
	SbxArenaBlock *block = arena->blocks;

	while (block != NULL)
	{
		SbxArenaBlock *next = block->next;

		explicit_bzero(block, sizeof(SbxArenaBlock) + block->size);
		free(block);
		block = next;
	}
	arena->blocks = NULL;
	arena->used = 0;
}

/* --- operation ---------------------------------------------------------- */

SbxOp *
sbx_op_create(const char *operation, SbxOpWant (*advance)(SbxOp *), size_t state_size,
              size_t first_block, int64_t timeout_ms)
{
	SbxOp *op = calloc(1, sizeof(SbxOp));

	if (op == NULL)
		return NULL;
	op->operation = operation;
	op->advance = advance;
	op->timeout_ms = timeout_ms;
	sbx_arena_init(&op->arena, first_block, SBX_OP_ARENA_LIMIT);
	op->state = sbx_arena_alloc(&op->arena, state_size);
	if (op->state == NULL)
	{
		sbx_op_free(op);
		return NULL;
	}
	return op;
}

void
sbx_op_free(SbxOp *op)
{
	if (op == NULL)
		return;
	sbx_arena_free(&op->arena);
	explicit_bzero(op, sizeof(*op));
	free(op);
}

/* --- requests ----------------------------------------------------------- */

void
sbx_op_request(SbxOp *op, const char *method, const char *url, bool repeatable)
{
	memset(&op->request, 0, sizeof(op->request));
	op->request.method = method;
	op->request.url = url;
	op->request.repeatable = repeatable;
}

/* ASCII letters and digits, whatever the process's locale says. */
static bool
is_ascii_alphanumeric(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9');
}

static bool
is_header_name(const char *name)
{
	if (name == NULL || *name == '\0')
		return false;
	for (; *name != '\0'; name++)
	{
		if (!is_ascii_alphanumeric(*name) && strchr("!#$%&'*+-.^_`|~", *name) == NULL)
			return false;
	}
	return true;
}

/* A line break in a value would start a header of the value's author. */
static bool
is_header_value(const char *value)
{
	if (value == NULL)
		return false;
	for (; *value != '\0'; value++)
	{
		if ((unsigned char) *value < 0x20 || *value == 0x7f)
			return false;
	}
	return true;
}

bool
sbx_op_header(SbxOp *op, const char *name, const char *prefix, const char *value)
{
	SbxHttpRequest *request = &op->request;
	SbxHeader *header;

	if (request->header_count >= SBX_MAX_HEADERS || !is_header_name(name) ||
	    !is_header_value(prefix) || !is_header_value(value))
	{
		sbx_op_fail(op, SBX_PHASE_NONE, NULL, SBX_ALLOCATION_UNKNOWN);
		return false;
	}
	header = &request->headers[request->header_count++];
	header->name = name;
	header->prefix = prefix;
	header->value = value;
	return true;
}

void
sbx_op_say(SbxOp *op, const char *bytes, size_t length)
{
	SbxHttpRequest *request = &op->request;
	SbxMessage *message = sbx_arena_alloc(&op->arena, sizeof(*message));

	if (message == NULL)
		return;
	message->bytes = bytes;
	message->length = length;
	if (request->said == NULL)
		request->said = message;
	else
		request->said_last->next = message;
	request->said_last = message;
}

void
sbx_op_alarm(SbxOp *op, int64_t ms)
{
	op->request.alarm_ms = ms > 0 ? ms : 1;
}

/* --- endings ------------------------------------------------------------ */

SbxOpWant
sbx_op_succeed(SbxOp *op, void *result)
{
	memset(&op->failure, 0, sizeof(op->failure));
	op->succeeded = true;
	op->result = result;
	return SBX_OP_WANT_NOTHING;
}

SbxOpWant
sbx_op_fail(SbxOp *op, SbxPhase phase, const char *provider_code,
            SbxAllocation allocation)
{
	op->succeeded = false;
	op->result = NULL;
	op->failure.phase = phase;
	op->failure.request_sent = op->response.request_sent;
	op->failure.timed_out = op->response.timed_out || op->expired;
	op->failure.denied = op->response.denied;
	op->failure.http_status = op->response.status;
	op->failure.retry_after = sbx_op_retry_after(op);
	op->failure.provider_code = provider_code;
	op->failure.allocation = allocation;
	return SBX_OP_WANT_NOTHING;
}

SbxOpWant
sbx_op_fail_response(SbxOp *op, const char *provider_code, SbxAllocation allocation)
{
	SbxPhase phase = SBX_PHASE_REMOTE;

	/* A driver that cannot say where it failed has at least no answer. */
	if (op->response.status == 0)
		phase = op->response.failed_phase != SBX_PHASE_NONE ? op->response.failed_phase
		                                                    : SBX_PHASE_RECEIVE;
	return sbx_op_fail(op, phase, provider_code, allocation);
}

SbxOpWant
sbx_op_pause(SbxOp *op, int64_t ms)
{
	op->pause_ms = ms;
	return SBX_OP_WANT_PAUSE;
}

/* --- responses and encoding --------------------------------------------- */

bool
sbx_ascii_equal(const char *left, const char *right, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		char a = left[i];
		char b = right[i];

		if (a >= 'A' && a <= 'Z')
			a = (char) (a - 'A' + 'a');
		if (b >= 'A' && b <= 'Z')
			b = (char) (b - 'A' + 'a');
		if (a != b)
			return false;
		if (a == '\0')
			break;
	}
	return true;
}

/* What is between the colon and the end of the line, without the blanks around it. */
static const char *
header_value(const char *value, const char *end, size_t *length)
{
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*length = (size_t) (end - value);
	return value;
}

const char *
sbx_header_find(const char *lines, const char *name, size_t *value_length)
{
	size_t name_length = strlen(name);

	while (lines != NULL && *lines != '\0')
	{
		size_t length = strcspn(lines, "\r\n");

		if (length > name_length && lines[name_length] == ':' &&
		    sbx_ascii_equal(lines, name, name_length))
			return header_value(lines + name_length + 1, lines + length, value_length);
		lines += length;
		lines += strspn(lines, "\r\n");
	}
	return NULL;
}

char *
sbx_op_response_header(SbxOp *op, const char *name)
{
	size_t length;
	const char *value = sbx_header_find(op->response.headers, name, &length);

	return value == NULL ? NULL : sbx_arena_strndup(&op->arena, value, length);
}

/* "17" as a number; 0 for what is none, or no number of seconds that anybody waits. */
static int
read_seconds(const char *text, size_t length)
{
	int seconds = 0;

	for (size_t i = 0; i < length; i++)
	{
		if (text[i] < '0' || text[i] > '9' || i == RETRY_AFTER_DIGITS)
			return 0;
		seconds = seconds * 10 + (text[i] - '0');
	}
	return seconds;
}

int
sbx_op_retry_after(const SbxOp *op)
{
	static const char name[] = "Retry-After";
	const char *line = op->response.headers;
	int longest = 0;

	if (op->response.status < 400 || line == NULL)
		return 0;
	while (*line != '\0')
	{
		size_t length = strcspn(line, "\r\n");
		const char *colon = memchr(line, ':', length);

		if (colon != NULL && sbx_ascii_equal(line, name, sizeof(name) - 1) &&
		    (line[sizeof(name) - 1] == ':' || line[sizeof(name) - 1] == '-'))
		{
			size_t value_length;
			const char *value = header_value(colon + 1, line + length, &value_length);
			int seconds = read_seconds(value, value_length);

			longest = seconds > longest ? seconds : longest;
		}
		line += length;
		line += strspn(line, "\r\n");
	}
	return longest;
}

char *
sbx_arena_url_encode(SbxArena *arena, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	char *encoded = sbx_arena_alloc(arena, strlen(text) * 3 + 1);
	char *out = encoded;

	if (encoded == NULL)
		return NULL;
	for (; *text != '\0'; text++)
	{
		unsigned char byte = (unsigned char) *text;

		if (is_ascii_alphanumeric(*text) || strchr("-._~", *text) != NULL)
			*out++ = *text;
		else
		{
			*out++ = '%';
			*out++ = digits[byte >> 4];
			*out++ = digits[byte & 15];
		}
	}
	*out = '\0';
	return encoded;
}

/* --- names -------------------------------------------------------------- */

const char *
sbx_phase_name(SbxPhase phase)
{
	switch (phase)
	{
		case SBX_PHASE_NONE:
			return "none";
		case SBX_PHASE_CONNECT:
			return "connect";
		case SBX_PHASE_TLS:
			return "tls";
		case SBX_PHASE_SEND:
			return "send";
		case SBX_PHASE_RECEIVE:
			return "receive";
		case SBX_PHASE_PROTOCOL:
			return "protocol";
		case SBX_PHASE_REMOTE:
			return "remote";
	}
	return "unknown";
}

const char *
sbx_allocation_name(SbxAllocation allocation)
{
	switch (allocation)
	{
		case SBX_ALLOCATION_UNKNOWN:
			return "unknown";
		case SBX_ALLOCATION_NONE:
			return "none";
		case SBX_ALLOCATION_MADE:
			return "made";
	}
	return "unknown";
}
