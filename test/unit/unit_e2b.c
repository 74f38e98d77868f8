/*
 * unit_e2b.c
 *		What the tests of the E2B adapter share.
 */
#include <stdio.h>
#include <stdlib.h>

#include "net/base64.h"
#include "unit.h"

const SbxTarget e2b_target = {.sandbox_id = E2B_ID};

const SbxAccount *
e2b_account(void)
{
	memset(&account, 0, sizeof(account));
	account.fields = sbx_kind_e2b.settings;
	account.credentials[0] = "api-key";
	account.account.settings = account.settings;
	account.account.credentials = account.credentials;
	return &account.account;
}

Drive
e2b_opened(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	drive_answer(&drive, 200, E2B_DTO("running"));
	return drive;
}

Drive
e2b_running(const SbxRunInput *input)
{
	Drive drive =
	    e2b_opened(sbx_kind_e2b.run_script(&account.account, &e2b_target, input));

	drive_answer(&drive, 204, "");
	return drive;
}

/* --- streams -------------------------------------------------------------- */

void
stream_add(Stream *stream, int flags, const char *json)
{
	size_t length = strlen(json);
	char *end;

	stream->bytes = realloc(stream->bytes, stream->length + length + 5);
	end = stream->bytes + stream->length;
	end[0] = (char) flags;
	for (int i = 0; i < 4; i++)
		end[1 + i] = (char) (length >> (24 - 8 * i));
	memcpy(end + 5, json, length);
	stream->length += length + 5;
}

void
stream_data(Stream *stream, const char *name, const char *bytes, size_t length)
{
	SbxArena arena;
	char *json;

	sbx_arena_init(&arena, 64, 8 * 1024 * 1024);
	json = sbx_arena_printf(&arena, "{\"event\": {\"data\": {\"%s\": \"%s\"}}}", name,
	                        sbx_base64_encode(&arena, bytes, length));
	stream_add(stream, 0, json);
	sbx_arena_free(&arena);
}

void
stream_free(Stream *stream)
{
	free(stream->bytes);
	memset(stream, 0, sizeof(*stream));
}

void
drive_stream(Drive *drive, Stream *stream, size_t piece)
{
	drive_feed(drive, stream->bytes, stream->length, piece);
	stream_free(stream);
	drive_answer(drive, 200, "");
}

void
drive_printed(Drive *drive, const char *text, int exit_code)
{
	Stream stream = {0};
	char end[100];

	snprintf(end, sizeof(end), "{\"event\":{\"end\":{\"exitCode\":%d}}}", exit_code);
	stream_add(&stream, 0, STREAM_START);
	if (*text != '\0')
		stream_data(&stream, "stdout", text, strlen(text));
	stream_add(&stream, 0, exit_code == 0 ? STREAM_END : end);
	stream_add(&stream, 2, "{}");
	drive_stream(drive, &stream, 1000);
}

/* --- secrets -------------------------------------------------------------- */

void
is_secret_kept(const Drive *drive, const char *name)
{
	const SbxHttpRequest *request = &drive->op->request;
	bool is_control = strncmp(request->url, E2B_API "/", strlen(E2B_API) + 1) == 0;
	const char *foreign = is_control ? "envd-token" : "api-key";
	bool leaks = strstr(request->url, foreign) != NULL;

	for (int i = 0; i < request->header_count; i++)
		leaks |= strstr(request->headers[i].value, foreign) != NULL;
	ok(!leaks, "%s: the other plane's secret stays at home", name);
	is_text(sent_header(drive->op, is_control ? "X-API-KEY" : "X-Access-Token"),
	        is_control ? "api-key" : "envd-token", "%s: its own goes along", name);
}
