/*
 * freestyle_uploads.c
 *		Files that are sent in chunks; there is no file before the commit.
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"

#define FILE_LIMIT ((int64_t) 256 << 20) /* of what is kept in memory here */

struct FreestyleUpload
{
	char id[EMU_UUID_SIZE];
	char *path;
	char *sha256; /* NULL: not given */
	int64_t mode;
	int64_t size;
	EmuText received;
	FreestyleUpload *next;
};

static void
upload_free(FreestyleUpload *upload)
{
	free(upload->path);
	free(upload->sha256);
	emu_text_free(&upload->received);
	free(upload);
}

void
freestyle_uploads_clear(FreestyleVm *vm)
{
	FreestyleUpload *next;

	for (FreestyleUpload *upload = vm->uploads; upload != NULL; upload = next)
	{
		next = upload->next;
		upload_free(upload);
	}
	vm->uploads = NULL;
}

/* Where the one of that id is linked; what is there is NULL if there is none. */
static FreestyleUpload **
upload_place(FreestyleVm *vm, const char *id)
{
	FreestyleUpload **place = &vm->uploads;

	while (*place != NULL && strcmp((*place)->id, id) != 0)
		place = &(*place)->next;
	return place;
}

static void
answer_status(EmuRequest *request, const FreestyleUpload *upload)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "uploadId", upload->id);
	emu_json_member(&body, "path", upload->path);
	emu_json_member_integer(&body, "size", upload->size);
	emu_json_member_integer(&body, "receivedBytes", (int64_t) upload->received.length);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/*
 * The beginning
 */

static bool
optional_integer(const json_t *value, int64_t most)
{
	return value == NULL || (json_is_integer(value) && json_integer_value(value) >= 0 &&
	                         json_integer_value(value) <= most);
}

static void
begin_from(EmuRequest *request, FreestyleVm *vm, const json_t *body)
{
	const char *path = json_string_value(json_object_get(body, "path"));
	const char *sha256 = json_string_value(json_object_get(body, "sha256"));
	const json_t *size = json_object_get(body, "size");
	const json_t *mode = json_object_get(body, "mode");
	FreestyleUpload *upload;

	if (!freestyle_path_valid(request, path))
		return;
	if (size == NULL || !optional_integer(size, FILE_LIMIT) ||
	    !optional_integer(mode, 07777))
	{
		freestyle_invalid(request, "size and mode must be numbers");
		return;
	}
	upload = emu_alloc(sizeof(FreestyleUpload));
	emu_uuid(upload->id);
	upload->path = emu_strdup(path);
	upload->sha256 = sha256 != NULL ? emu_strdup(sha256) : NULL;
	upload->mode = mode != NULL ? json_integer_value(mode) : FREESTYLE_NO_MODE;
	upload->size = json_integer_value(size);
	upload->next = vm->uploads;
	vm->uploads = upload;
	answer_status(request, upload);
}

static void
begin(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = freestyle_body(request);

	if (body != NULL)
		begin_from(request, freestyle_vm(sandbox), body);
	json_decref(body);
}

/*
 * What is done to one
 */

/* In order only: the place of a chunk is where the last one ended. */
static void
take_chunk(EmuRequest *request, FreestyleUpload *upload)
{
	char *text = emu_request_parameter(request, "offset");
	char *end = text;
	long long offset = text != NULL ? strtoll(text, &end, 10) : -1;
	int64_t received = (int64_t) upload->received.length;

	if (text == NULL || *text == '\0' || *end != '\0' || offset != received)
		freestyle_invalid(request, "offset must be %lld", (long long) received);
	else if (received + (int64_t) request->body.length > upload->size)
		freestyle_invalid(request, "this is more than was announced");
	else
	{
		if (request->body.length > 0)
			emu_text_append(&upload->received, request->body.data,
			                request->body.length);
		answer_status(request, upload);
	}
	free(text);
}

static void
commit(EmuRequest *request, EmuSandbox *sandbox, FreestyleUpload **place)
{
	FreestyleUpload *upload = *place;

	if ((int64_t) upload->received.length < upload->size)
	{
		freestyle_conflict(request, "the upload is not complete");
		return;
	}
	*place = upload->next;
	freestyle_file_write(request, sandbox, upload->path, upload->sha256, upload->mode,
	                     &upload->received);
	upload_free(upload);
}

static void
abort_upload(EmuRequest *request, FreestyleUpload **place)
{
	FreestyleUpload *upload = *place;

	*place = upload->next;
	upload_free(upload);
	emu_answer_empty(request, 204);
}

static void
route_one(EmuRequest *request, EmuSandbox *sandbox, const char *id, bool commits)
{
	FreestyleUpload **place = upload_place(freestyle_vm(sandbox), id);

	if (*place == NULL)
		freestyle_refuse(request, 404, "no such upload");
	else if (commits && strcmp(request->method, "POST") == 0)
		commit(request, sandbox, place);
	else if (!commits && strcmp(request->method, "PUT") == 0)
		take_chunk(request, *place);
	else if (!commits && strcmp(request->method, "GET") == 0)
		answer_status(request, *place);
	else if (!commits && strcmp(request->method, "DELETE") == 0)
		abort_upload(request, place);
	else
		freestyle_fail(request, 404, "ROUTE_NOT_FOUND", "no such path");
}

/* v5, vms, the VM, fs, uploads, then the upload and what is done to it */
static void
upload(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuPath path;

	emu_path_split(&path, request->path + strlen(FREESTYLE_API "/"));
	if (path.count == 5)
		begin(request, sandbox);
	else
		route_one(request, sandbox, path.segments[5], path.count == 7);
	emu_path_free(&path);
}

void
freestyle_uploads_route(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path)
{
	bool good = (path->count == 5 && strcmp(request->method, "POST") == 0) ||
	            path->count == 6 ||
	            (path->count == 7 && strcmp(path->segments[6], "commit") == 0);

	if (!good)
		freestyle_fail(request, 404, "ROUTE_NOT_FOUND", "no such path");
	else if (emu_no_exec)
		freestyle_refuse(request, 500, "files need a VM that runs");
	else
		freestyle_when_running(request, sandbox, upload);
}
