/*
 * e2b_files.c
 *		POST /files and GET /files of envd.
 *
 * Files are written and read by commands inside the sandbox, so what the
 * sandbox's user may not do, an upload cannot do either.
 */
#include "e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "multipart.h"
#include "options.h"

/* Exit codes of the writing script, beside those of reading. */
#define EXIT_FULL 45

static const char write_script[] =
    "[ -d \"$1\" ] && exit 40; mkdir -p -- \"$(dirname -- \"$1\")\" || exit 41; "
    "problem=$({ cat >\"$1\"; } 2>&1) && exit; "
    "case $problem in *'No space'*) exit 45;; esac; exit 41";

/* Errors of envd itself, unlike those of the proxy, do not name the sandbox. */
static void
refuse(EmuRequest *request, int status, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "code", status);
	emu_json_member(&body, "message", message);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

static void
refuse_file(EmuRequest *request, int exit_code, const char *path)
{
	EmuText message = {0};
	int status = exit_code == EMU_EXIT_MISSING     ? 404
	             : exit_code == EMU_EXIT_DIRECTORY ? 400
	             : exit_code == EXIT_FULL          ? 507
	                                               : 500;

	emu_text_format(&message,
	                exit_code == EMU_EXIT_MISSING     ? "path '%s' does not exist"
	                : exit_code == EMU_EXIT_DIRECTORY ? "path '%s' is a directory"
	                : exit_code == EMU_EXIT_DENIED    ? "error opening file '%s'"
	                : exit_code == EXIT_FULL          ? "not enough disk space for '%s'"
	                                                  : "error writing file '%s'",
	                path);
	refuse(request, status, message.data);
	emu_text_free(&message);
}

/*
 * Uploads
 */

typedef struct Upload
{
	EmuSandbox *sandbox;
	EmuMultipart parts; /* points into the request's body */
	size_t next;
	char *path;      /* of the query; NULL: the file names of the parts */
	char *current;   /* the file that is being written */
	EmuText written; /* JSON array elements */
} Upload;

static void
upload_free(void *state)
{
	Upload *upload = state;

	emu_multipart_free(&upload->parts);
	emu_text_free(&upload->written);
	free(upload->path);
	free(upload->current);
	free(upload);
}

static void
upload_note(Upload *upload)
{
	const char *slash = strrchr(upload->current, '/');

	emu_text_add(&upload->written, upload->written.length > 0 ? ",{" : "{");
	emu_json_member(&upload->written, "path", upload->current);
	emu_json_member(&upload->written, "name",
	                slash != NULL ? slash + 1 : upload->current);
	emu_json_member(&upload->written, "type", "file");
	emu_text_add(&upload->written, "}");
}

static void upload_continue(EmuRequest *request, Upload *upload);

static void
upload_done(EmuJob *job, const EmuProcessEnd *end)
{
	Upload *upload = job->state;

	if (e2b_answer_if_lost(job->request, end))
		return;
	if (end->code != 0)
	{
		refuse_file(job->request, end->code, upload->current);
		return;
	}
	upload_note(upload);
	job->release = NULL; /* the state goes on to the next file */
	upload_continue(job->request, upload);
}

static void
upload_write(EmuRequest *request, Upload *upload, const char *path, const char *data,
             size_t length)
{
	EmuJob *job;

	free(upload->current);
	upload->current = e2b_absolute_path(path);
	job = e2b_run_script(request, upload->sandbox, write_script, upload->current, NULL,
	                     data, length, upload_done);
	job->state = upload;
	job->release = upload_free;
}

/* Parts with another name than "file" do not count. */
static void
upload_continue(EmuRequest *request, Upload *upload)
{
	EmuText body = {0};

	while (upload->next < upload->parts.count)
	{
		const EmuPart *part = &upload->parts.parts[upload->next++];

		if (strcmp(part->name, "file") != 0)
			continue;
		upload_write(request, upload,
		             upload->path != NULL ? upload->path : part->file_name, part->data,
		             part->length);
		return;
	}
	emu_text_add(&body, "[");
	emu_text_append(&body, upload->written.data, upload->written.length);
	emu_text_add(&body, "]");
	emu_answer_json(request, 200, &body);
	upload_free(upload);
}

/* What is wrong with the parts, NULL if nothing is. */
static const char *
parts_problem(const Upload *upload)
{
	size_t files = 0;

	for (size_t i = 0; i < upload->parts.count; i++)
	{
		const EmuPart *part = &upload->parts.parts[i];

		if (strcmp(part->name, "file") != 0)
			continue;
		files++;
		if (upload->path == NULL &&
		    (part->file_name == NULL || *part->file_name == '\0'))
			return "a file without a name needs a path";
	}
	if (upload->path != NULL && files > 1)
		return "you can only upload one file if the path is given";
	return NULL;
}

static void
upload_parts(EmuRequest *request, Upload *upload)
{
	const char *type = emu_request_header(request, "Content-Type");
	const char *problem =
	    emu_multipart_parse(&upload->parts, type, &request->body)
	        ? parts_problem(upload)
	        : "error parsing multipart form, or another content type than that and "
	          "application/octet-stream";

	if (problem == NULL)
		upload_continue(request, upload);
	else
	{
		refuse(request, 400, problem);
		upload_free(upload);
	}
}

static void
upload(EmuRequest *request, EmuSandbox *sandbox)
{
	static const char raw[] = "application/octet-stream";
	Upload *state = emu_alloc(sizeof(Upload));
	const char *type = emu_request_header(request, "Content-Type");

	state->sandbox = sandbox;
	state->path = emu_request_parameter(request, "path");
	if (state->path != NULL && *state->path == '\0')
	{
		free(state->path);
		state->path = NULL;
	}
	if (type == NULL || strncasecmp(type, raw, sizeof(raw) - 1) != 0)
		upload_parts(request, state);
	else if (state->path == NULL)
	{
		refuse(request, 400, "the path is required");
		upload_free(state);
	}
	else
		upload_write(request, state, state->path,
		             request->body.data != NULL ? request->body.data : "",
		             request->body.length);
}

/*
 * Downloads
 */

static bool
wants_gzip(EmuRequest *request)
{
	const char *accepted = emu_request_header(request, "Accept-Encoding");

	return accepted != NULL && strstr(accepted, "gzip") != NULL &&
	       strstr(accepted, "gzip;q=0") == NULL;
}

/*
 * bytes=first-last, bytes=first- or bytes=-count.  Returns 0 if there is none
 * that is understood, 1 if there is, and -1 if it is beyond the end.
 */
static int
read_range(EmuRequest *request, size_t length, size_t *first, size_t *last)
{
	const char *range = emu_request_header(request, "Range");
	unsigned long long from;
	unsigned long long to;

	if (range == NULL || length == 0)
		return 0;
	*last = length - 1;
	if (sscanf(range, "bytes=-%llu", &to) == 1)
		*first = to < length ? length - (size_t) to : 0;
	else if (sscanf(range, "bytes=%llu-%llu", &from, &to) == 2 && to >= from)
	{
		*first = (size_t) from;
		*last = to < length ? (size_t) to : length - 1;
	}
	else if (sscanf(range, "bytes=%llu-", &from) == 1)
		*first = (size_t) from;
	else
		return 0;
	return *first < length ? 1 : -1;
}

static void
answer_part(EmuRequest *request, const EmuText *body, const char *type)
{
	size_t first = 0;
	size_t last = 0;
	int found = read_range(request, body->length, &first, &last);
	EmuText part = {0};
	char place[80];

	if (found < 0)
	{
		snprintf(place, sizeof(place), "bytes */%zu", body->length);
		refuse(request, 416, "invalid range: failed to overlap");
		emu_answer_header(request, "Content-Range", place);
		return;
	}
	if (found > 0)
		emu_text_append(&part, body->data + first, last - first + 1);
	else
		emu_text_append(&part, body->data, body->length);
	emu_answer(request, found > 0 ? 206 : 200, type, &part);
	emu_answer_header(request, "Accept-Ranges", "bytes");
	if (found > 0)
	{
		snprintf(place, sizeof(place), "bytes %zu-%zu/%zu", first, last, body->length);
		emu_answer_header(request, "Content-Range", place);
	}
}

static void
download_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuRequest *request = job->request;
	const char *path = job->state;
	const char *slash = strrchr(path, '/');
	const char *type = emu_text_is_plain(&job->output) ? "text/plain; charset=utf-8"
	                                                   : "application/octet-stream";
	EmuText packed = {0};
	EmuText disposition = {0};

	if (e2b_answer_if_lost(request, end))
		return;
	if (end->code != 0)
	{
		refuse_file(request, end->code, path);
		return;
	}
	if (wants_gzip(request))
	{
		emu_text_gzip(&packed, job->output.data, job->output.length);
		emu_answer(request, 200, type, &packed);
		emu_answer_header(request, "Content-Encoding", "gzip");
	}
	else
		answer_part(request, &job->output, type);
	if (strpbrk(slash, "\"\r\n") == NULL)
	{
		emu_text_format(&disposition, "inline; filename=\"%s\"", slash + 1);
		emu_answer_header(request, "Content-Disposition", disposition.data);
	}
	emu_answer_header(request, "Vary", "Accept-Encoding");
	emu_text_free(&disposition);
}

static void
download(EmuRequest *request, EmuSandbox *sandbox)
{
	char *path = emu_request_parameter(request, "path");
	char *absolute = e2b_absolute_path(path != NULL ? path : "");
	EmuJob *job = e2b_run_script(request, sandbox, emu_script_read, absolute, NULL,
	                             NULL, 0, download_done);

	job->state = absolute;
	job->release = free;
	free(path);
}

void
e2b_files_handle(EmuRequest *request, EmuSandbox *sandbox)
{
	if (emu_no_exec)
		refuse(request, 500, "files need a sandbox that runs");
	else if (e2b_user(request) == NULL)
		refuse(request, 401, "invalid username");
	else if (strcmp(request->method, "POST") == 0)
		upload(request, sandbox);
	else if (strcmp(request->method, "GET") == 0)
		download(request, sandbox);
	else
		emu_answer_empty(request, 405);
}
