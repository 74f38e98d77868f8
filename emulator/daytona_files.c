/*
 * daytona_files.c
 *		Uploads and downloads.
 *
 * Files are written and read by commands inside the sandbox, so what the
 * sandbox's user may not do, an upload cannot do either.
 */
#include "daytona.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "multipart.h"
#include "options.h"

/* The longest file that is read back; more than can be sent. */
#define DOWNLOAD_LIMIT (256 << 20)

#define BOUNDARY "DAYTONA-FILE-BOUNDARY"

static const char write_script[] =
    "mkdir -p -- \"$(dirname -- \"$1\")\" && cat >\"$1\"";

static void
run_script(EmuRequest *request, EmuSandbox *sandbox, const char *script,
           const char *argument, const char *option, const char *input,
           size_t input_length, void *state, void (*release)(void *state),
           void (*done)(DaytonaJob *job, const EmuProcessEnd *end))
{
	const char *arguments[] = {"/bin/sh", "-c", script, "sh", argument, option, NULL};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = arguments,
	    .cwd = DAYTONA_HOME,
	    .output_limit = DOWNLOAD_LIMIT,
	};
	DaytonaJob *job;

	daytona_environment(&environment, sandbox, NULL);
	line.variables = (const char *const *) environment.variables;
	job = daytona_job_start(request, sandbox, &line, input, input_length, 0, done);
	job->state = state;
	job->release = release;
	emu_environment_free(&environment);
}

/* True if the sandbox was lost on the way, which is answered here. */
static bool
answer_if_lost(EmuRequest *request, const EmuProcessEnd *end)
{
	if (end->failure == NULL)
		return false;
	if (end->sandbox_gone && !end->never_started)
		emu_answer_empty(request, 502);
	else
		daytona_toolbox_refuse(request, 502, NULL, end->failure);
	return true;
}

/*
 * POST /files/bulk-upload: parts files[n].path and files[n].file in turn
 */

typedef struct Upload
{
	EmuSandbox *sandbox;
	EmuMultipart parts; /* points into the request's body */
	size_t next;        /* index of the next .path part */
	EmuText written;    /* JSON array elements */
	EmuText problems;   /* the same */
} Upload;

static void
upload_free(void *state)
{
	Upload *upload = state;

	emu_multipart_free(&upload->parts);
	emu_text_free(&upload->written);
	emu_text_free(&upload->problems);
	free(upload);
}

static void
upload_answer(EmuRequest *request, Upload *upload)
{
	EmuText body = {0};
	bool failed = upload->problems.length > 0;

	emu_text_add(&body, "{");
	if (failed)
	{
		emu_text_add(&body, "\"errors\":[");
		emu_text_append(&body, upload->problems.data, upload->problems.length);
		emu_text_add(&body, "],");
	}
	emu_text_add(&body, "\"files\":[");
	emu_text_append(&body, upload->written.data, upload->written.length);
	emu_text_add(&body, "]}");
	emu_answer_json(request, failed ? 400 : 200, &body);
}

static void
upload_problem(Upload *upload, const char *path, const char *problem, size_t length)
{
	EmuText text = {0};

	emu_text_format(&text, "%s: %.*s", path, (int) length, problem);
	if (upload->problems.length > 0)
		emu_text_add(&upload->problems, ",");
	emu_json_string(&upload->problems, text.data, text.length);
	emu_text_free(&text);
}

static void upload_continue(EmuRequest *request, Upload *upload);

static char *
upload_path(const Upload *upload, size_t part)
{
	return emu_strndup(upload->parts.parts[part].data,
	                   upload->parts.parts[part].length);
}

static void
upload_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	Upload *upload = job->state;
	char *path;

	if (answer_if_lost(job->request, end))
		return;
	path = upload_path(upload, upload->next);
	if (end->code == 0)
	{
		emu_text_add(&upload->written, upload->written.length > 0 ? ",{" : "{");
		emu_json_member(&upload->written, "path", path);
		emu_json_member_integer(&upload->written, "bytes",
		                        (int64_t) upload->parts.parts[upload->next + 1].length);
		emu_text_add(&upload->written, "}");
	}
	else
		upload_problem(upload, path, job->errors.data != NULL ? job->errors.data : "",
		               job->errors.length);
	free(path);
	upload->next += 2;
	job->release = NULL; /* the state goes on to the next file */
	upload_continue(job->request, upload);
}

/* A .file part must follow its .path part at once. */
static bool
upload_pair_valid(const Upload *upload)
{
	const EmuPart *path = &upload->parts.parts[upload->next];
	const EmuPart *file = path + 1;
	const char *suffix = strrchr(path->name, '.');
	size_t stem = suffix != NULL ? (size_t) (suffix - path->name) : 0;

	return upload->next + 1 < upload->parts.count && suffix != NULL &&
	       strcmp(suffix, ".path") == 0 && path->length > 0 &&
	       memchr(path->data, '\0', path->length) == NULL &&
	       strncmp(path->name, file->name, stem) == 0 &&
	       strcmp(file->name + stem, ".file") == 0;
}

static void
upload_continue(EmuRequest *request, Upload *upload)
{
	char *path;

	if (upload->next < upload->parts.count && !upload_pair_valid(upload))
	{
		upload_problem(upload, upload->parts.parts[upload->next].name,
		               "a file needs its path before it",
		               strlen("a file needs its path before it"));
		upload->next = upload->parts.count;
	}
	if (upload->next >= upload->parts.count)
	{
		upload_answer(request, upload);
		upload_free(upload);
		return;
	}
	path = upload_path(upload, upload->next);
	run_script(request, upload->sandbox, write_script, path, NULL,
	           upload->parts.parts[upload->next + 1].data,
	           upload->parts.parts[upload->next + 1].length, upload, upload_free,
	           upload_done);
	free(path);
}

static void
bulk_upload(EmuRequest *request, EmuSandbox *sandbox)
{
	Upload *upload = emu_alloc(sizeof(Upload));

	upload->sandbox = sandbox;
	if (!emu_multipart_parse(&upload->parts,
	                         emu_request_header(request, "Content-Type"),
	                         &request->body))
	{
		daytona_toolbox_refuse(request, 400, NULL, "invalid multipart form");
		upload_free(upload);
	}
	else
		upload_continue(request, upload);
}

/*
 * POST /files/upload?path=: one part named file
 */

static void
single_upload_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
		emu_answer_empty(job->request, 200);
	else
		daytona_toolbox_refuse(job->request, 400, "FILE_WRITE_FAILED",
		                       job->errors.data != NULL ? job->errors.data : "");
}

static void
single_upload(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuMultipart parts;
	char *path = emu_request_parameter(request, "path");

	if (!emu_multipart_parse(&parts, emu_request_header(request, "Content-Type"),
	                         &request->body) ||
	    parts.count != 1 || strcmp(parts.parts[0].name, "file") != 0 || path == NULL ||
	    *path == '\0')
		daytona_toolbox_refuse(request, 400, NULL, "path and file are required");
	else
		run_script(request, sandbox, write_script, path, NULL, parts.parts[0].data,
		           parts.parts[0].length, NULL, NULL, single_upload_done);
	emu_multipart_free(&parts);
	free(path);
}

/*
 * Downloads
 */

static const char *
read_problem(int code, int *status)
{
	*status = code == EMU_EXIT_MISSING ? 404 : code == EMU_EXIT_DENIED ? 403 : 400;
	return code == EMU_EXIT_MISSING     ? "FILE_NOT_FOUND"
	       : code == EMU_EXIT_DENIED    ? "FILE_ACCESS_DENIED"
	       : code == EMU_EXIT_DIRECTORY ? "INVALID_FILE_PATH"
	                                    : "FILE_READ_FAILED";
}

static const char *
read_problem_text(int code)
{
	return code == EMU_EXIT_MISSING     ? "file not found"
	       : code == EMU_EXIT_DENIED    ? "file access denied"
	       : code == EMU_EXIT_DIRECTORY ? "path is a directory"
	                                    : "file could not be read";
}

static void
download_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	const char *code;
	int status;

	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
	{
		emu_answer(job->request, 200, "application/octet-stream", &job->output);
		return;
	}
	code = read_problem(end->code, &status);
	daytona_toolbox_refuse(job->request, status, code, read_problem_text(end->code));
}

static void
download(EmuRequest *request, EmuSandbox *sandbox)
{
	char *path = emu_request_parameter(request, "path");

	if (path == NULL || *path == '\0')
		daytona_toolbox_refuse(request, 400, NULL, "path is required");
	else
		run_script(request, sandbox, emu_script_read, path, NULL, NULL, 0, NULL, NULL,
		           download_done);
	free(path);
}

/*
 * POST /files/bulk-download: the answer is 200 even if every file failed
 */

typedef struct Download
{
	EmuSandbox *sandbox;
	json_t *paths;
	size_t next;
	EmuText body;
} Download;

static void
bulk_free(void *state)
{
	Download *bulk = state;

	json_decref(bulk->paths);
	emu_text_free(&bulk->body);
	free(bulk);
}

static bool
is_plain(const char *path)
{
	for (; *path != '\0'; path++)
		if (*path < ' ' || *path > '~' || *path == '"' || *path == '\\')
			return false;
	return true;
}

/*
 * The client wants to see the path it asked for.  It takes what is in quotes
 * for Latin-1 and as it is, so other paths have to be written as in RFC 5987.
 */
static void
bulk_part_header(EmuText *body, const char *name, const char *path)
{
	emu_text_format(
	    body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"; ", name);
	if (is_plain(path))
		emu_text_format(body, "filename=\"%s\"\r\n", path);
	else
	{
		emu_text_add(body, "filename*=utf-8''");
		for (; *path != '\0'; path++)
			emu_text_format(body, "%%%02X", (unsigned char) *path);
		emu_text_add(body, "\r\n");
	}
}

static void
bulk_part_error(EmuText *body, const char *path, int exit_code)
{
	EmuText message = {0};
	int status;
	const char *code = read_problem(exit_code, &status);

	emu_text_format(&message, "%s: %s", read_problem_text(exit_code), path);
	bulk_part_header(body, "error", path);
	emu_text_add(body, "Content-Type: application/json; charset=utf-8\r\n\r\n{");
	emu_json_member_integer(body, "statusCode", status);
	emu_json_member(body, "source", "DAYTONA_DAEMON");
	emu_json_member(body, "message", message.data);
	emu_json_member(body, "code", code);
	emu_json_member_time(body, "timestamp", emu_wall_ms());
	emu_json_member(body, "path", path);
	emu_json_member(body, "method", "POST");
	emu_text_add(body, "}\r\n");
	emu_text_free(&message);
}

static void bulk_continue(EmuRequest *request, Download *bulk);

static void
bulk_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	Download *bulk = job->state;
	const char *path = json_string_value(json_array_get(bulk->paths, bulk->next));

	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
	{
		bulk_part_header(&bulk->body, "file", path);
		emu_text_format(&bulk->body,
		                "Content-Length: %zu\r\n"
		                "Content-Type: application/octet-stream\r\n\r\n",
		                job->output.length);
		emu_text_append(&bulk->body, job->output.data, job->output.length);
		emu_text_add(&bulk->body, "\r\n");
	}
	else
		bulk_part_error(&bulk->body, path, end->code);
	bulk->next++;
	job->release = NULL; /* the state goes on to the next file */
	bulk_continue(job->request, bulk);
}

static void
bulk_continue(EmuRequest *request, Download *bulk)
{
	const char *path = json_string_value(json_array_get(bulk->paths, bulk->next));

	if (path != NULL)
	{
		run_script(request, bulk->sandbox, emu_script_read, path, NULL, NULL, 0, bulk,
		           bulk_free, bulk_done);
		return;
	}
	emu_text_add(&bulk->body, "--" BOUNDARY "--\r\n");
	emu_answer(request, 200, "multipart/form-data; boundary=" BOUNDARY, &bulk->body);
	bulk_free(bulk);
}

static void
bulk_download(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *body = daytona_body(request);
	json_t *paths = json_object_get(body, "paths");
	Download *bulk;
	size_t index;
	json_t *path;
	bool good = json_array_size(paths) > 0;

	if (body == NULL)
		return;
	json_array_foreach (paths, index, path)
		good = good && emu_is_plain_string(path) && json_string_length(path) > 0;
	if (!good)
		daytona_toolbox_refuse(request, 400, NULL,
		                       "paths must be an array of file names");
	else
	{
		bulk = emu_alloc(sizeof(Download));
		bulk->sandbox = sandbox;
		bulk->paths = json_incref(paths);
		bulk_continue(request, bulk);
	}
	json_decref(body);
}

/*
 * POST /files/permissions?path=&mode=
 */

static void
permissions_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
		emu_answer_empty(job->request, 200);
	else
		daytona_toolbox_refuse(job->request, 400, NULL,
		                       "could not change the permissions");
}

static void
set_permissions(EmuRequest *request, EmuSandbox *sandbox)
{
	char *path = emu_request_parameter(request, "path");
	char *mode = emu_request_parameter(request, "mode");

	if (path == NULL || *path == '\0' || mode == NULL || *mode == '\0' ||
	    mode[strspn(mode, "01234567")] != '\0')
		daytona_toolbox_refuse(request, 400, NULL,
		                       "path and an octal mode are required");
	else
		run_script(request, sandbox, "exec chmod -- \"$2\" \"$1\"", path, mode, NULL, 0,
		           NULL, NULL, permissions_done);
	free(path);
	free(mode);
}

void
daytona_files_route(EmuRequest *request, EmuSandbox *sandbox, const char *what)
{
	static const struct
	{
		const char *method;
		const char *name;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox);
	} routes[] = {
	    {"POST", "bulk-upload", bulk_upload},
	    {"POST", "upload", single_upload},
	    {"POST", "upload-v2", single_upload},
	    {"GET", "download", download},
	    {"POST", "bulk-download", bulk_download},
	    {"POST", "permissions", set_permissions},
	};

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].name, what) == 0 &&
		    strcmp(routes[i].method, request->method) == 0)
		{
			if (emu_no_exec)
				daytona_toolbox_refuse(request, 502, NULL,
				                       "files need a sandbox that runs");
			else
				routes[i].handle(request, sandbox);
			return;
		}
	daytona_toolbox_refuse(request, 404, NULL, "page not found");
}
