/*
 * unit_microsandbox.c
 *		What the tests of the Microsandbox adapter share.
 */
#include <stdio.h>
#include <stdlib.h>

#include "providers/microsandbox_frame.h"
#include "unit.h"

const SbxTarget micro_target = {.sandbox_id = MICRO_ID};

const SbxAccount *
micro_account(void)
{
	memset(&account, 0, sizeof(account));
	account.fields = sbx_kind_microsandbox.settings;
	account.credentials[0] = "msb_key";
	account.account.settings = account.settings;
	account.account.credentials = account.credentials;
	account_text(&account, "image", "python:3.12");
	return &account.account;
}

SbxOp *
micro_run(const SbxRunInput *input)
{
	return sbx_kind_microsandbox.run_script(micro_account(), &micro_target, input);
}

/* --- bytes ------------------------------------------------------------------ */

/* Not one of the allocations that are told to fail. */
Stream
micro_hex(const char *digits)
{
	Stream stream = {0};
	long left = unit_mallocs_left;

	unit_mallocs_left = -1;
	stream.bytes = malloc(strlen(digits) / 2 + 1);
	unit_mallocs_left = left;
	for (; digits[0] != '\0' && digits[1] != '\0'; digits += 2)
	{
		char pair[3] = {digits[0], digits[1], '\0'};

		stream.bytes[stream.length++] = (char) strtol(pair, NULL, 16);
	}
	return stream;
}

static void
append(Stream *stream, const char *bytes, size_t length)
{
	stream->bytes = realloc(stream->bytes, stream->length + length);
	memcpy(stream->bytes + stream->length, bytes, length);
	stream->length += length;
}

/* --- what was recorded ------------------------------------------------------ */

static json_t *recorded_file;

const json_t *
micro_recorded_all(void)
{
	char path[4096];

	if (recorded_file == NULL)
	{
		snprintf(path, sizeof(path), "%s/microsandbox.json", getenv("UNIT_DATA"));
		recorded_file = json_load_file(path, 0, NULL);
	}
	return recorded_file;
}

const json_t *
micro_recorded(const char *name)
{
	const json_t *entry = json_object_get(micro_recorded_all(), name);

	if (entry != NULL)
		return entry;
	printf("Bail out! no recording %s\n", name);
	exit(1);
}

void
micro_forget_recorded(void)
{
	json_decref(recorded_file);
	recorded_file = NULL;
}

void
drive_micro(Drive *drive, const char *name)
{
	char *body = json_dumps(json_object_get(micro_recorded(name), "answer"), 0);
	int64_t status = 0;

	sbx_json_integer(micro_recorded(name), "status", &status);
	drive_answer(drive, (int) status, body == NULL ? "" : body);
	free(body);
}

Stream
micro_recorded_frames(const char *name, const char *from)
{
	const json_t *frame;
	Stream all = {0};
	size_t index;

	json_array_foreach (json_object_get(micro_recorded(name), "frames"), index, frame)
	{
		Stream one;

		if (strcmp(sbx_json_string(frame, "from"), from) != 0)
			continue;
		one = micro_hex(sbx_json_string(frame, "hex"));
		append(&all, one.bytes, one.length);
		stream_free(&one);
	}
	return all;
}

/* --- what an agent says ----------------------------------------------------- */

static void
append_frame(Stream *stream, uint32_t id, unsigned flags, const char *type,
             const SbxCborWriter *payload)
{
	size_t length = 0;
	char *frame =
	    sbx_microsandbox_frame(payload->arena, id, flags, 7, type, payload, &length);

	append(stream, frame, length);
}

void
micro_frame(Stream *stream, const char *type, unsigned flags, const char *key,
            const char *bytes, size_t length)
{
	SbxArena arena;
	SbxCborWriter payload = {.arena = &arena};

	sbx_arena_init(&arena, 64, 16 * 1024 * 1024);
	sbx_cbor_write_map(&payload, key == NULL ? 0 : 1);
	if (key != NULL)
	{
		sbx_cbor_write_text(&payload, key);
		sbx_cbor_write_bytes(&payload, bytes, length);
	}
	append_frame(stream, 1, flags, type, &payload);
	sbx_arena_free(&arena);
}

void
micro_exited(Stream *stream, int code)
{
	SbxArena arena;
	SbxCborWriter payload = {.arena = &arena};

	sbx_arena_init(&arena, 64, 4096);
	sbx_cbor_write_map(&payload, 1);
	sbx_cbor_write_text(&payload, "code");
	sbx_cbor_write_unsigned(&payload, (uint64_t) code);
	append_frame(stream, 1, 1, "core.exec.exited", &payload);
	sbx_arena_free(&arena);
}

Stream
micro_greeting(void)
{
	Stream stream = {0};
	SbxArena arena;
	SbxCborWriter payload = {.arena = &arena};

	sbx_arena_init(&arena, 64, 4096);
	append(&stream, "\0\0\0\1\0\0\0\5", 8);
	sbx_cbor_write_map(&payload, 0);
	append_frame(&stream, 0, 0, "core.ready", &payload);
	sbx_arena_free(&arena);
	return stream;
}

void
drive_talk(Drive *drive, Stream *stream, size_t piece)
{
	drive_feed(drive, stream->bytes, stream->length, piece);
	stream_free(stream);
	drive_answer(drive, 101, "");
}

void
drive_talk_printed(Drive *drive, const char *text, int exit_code)
{
	Stream stream = micro_greeting();

	if (*text != '\0')
		micro_frame(&stream, "core.exec.stdout", 0, "data", text, strlen(text));
	micro_exited(&stream, exit_code);
	drive_talk(drive, &stream, 1000);
}
