/*
 * vercel_files.c
 *		fs/write, fs/read and fs/mkdir of a session.
 *
 * Files are written and read by commands inside the sandbox, so what the
 * sandbox's user may not do, an upload cannot do either.
 */
#include "vercel.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"

/* What an archive may unpack to. */
#define ARCHIVE_LIMIT ((size_t) 160 << 20)

/* Of the script that makes a directory. */
#define EXIT_EXISTS 42

/* Directories on the way to a file are made, as archives need not name them. */
static const char write_script[] =
    "mkdir -p -- \"$1\" && exec tar --extract --file=- --directory=\"$1\" "
    "--no-same-owner --preserve-permissions";

static const char make_script[] = "[ -e \"$1\" ] && exit 42; exec mkdir -- \"$1\"";

static const char make_all_script[] = "exec mkdir -p -- \"$1\"";

/* Runs a script whose $1 is `path`, which the job is given as its state. */
static void
run_script(EmuRequest *request, VercelSession *session, const char *text, char *path,
           const EmuText *input, void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	EmuScript script = {
	    .text = text,
	    .arguments = {path},
	    .home = VERCEL_CWD,
	    .user = VERCEL_USER,
	    .input = input != NULL ? input->data : "",
	    .input_length = input != NULL ? input->length : 0,
	};
	EmuJob *job =
	    emu_job_start_script(request, vercel_guest(session->sandbox), &script, done);

	job->state = path;
	job->release = free;
}

/* True if the session was lost on the way, which is answered here. */
static bool
answer_if_lost(EmuRequest *request, const EmuProcessEnd *end)
{
	if (end->failure == NULL)
		return false;
	if (end->sandbox_gone && !end->never_started)
		vercel_refuse(request, 410,
		              "Sandbox has stopped execution and is no longer available.");
	else
		vercel_refuse(request, 500, end->failure);
	return true;
}

static void
answer_nothing(EmuRequest *request)
{
	EmuText body = {0};

	emu_text_add(&body, "{}");
	emu_answer_json(request, 200, &body);
}

/* Answers itself and returns false with --no-exec. */
static bool
files_there(EmuRequest *request)
{
	if (emu_no_exec)
		vercel_refuse(request, 500, "files need a sandbox that runs");
	return !emu_no_exec;
}

/*
 * fs/write: an archive, packed
 */

static void
write_done(EmuJob *job, const EmuProcessEnd *end)
{
	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
		answer_nothing(job->request);
	else
		emu_refuse_format(job->request, 400, "The archive could not be unpacked: %s",
		                  job->errors.length > 0 ? job->errors.data : "");
}

/* Answers itself and returns false if the body is none. */
static bool
unpack(EmuRequest *request, EmuText *archive)
{
	const char *type = emu_request_header(request, "Content-Type");

	if (type == NULL || strcasecmp(type, "application/gzip") != 0)
		vercel_refuse(request, 400,
		              "Invalid request: the content type should be application/gzip.");
	else if (request->body.length < 2 ||
	         memcmp(request->body.data, "\x1F\x8B", 2) != 0 ||
	         !emu_text_gunzip(archive, request->body.data, request->body.length,
	                          ARCHIVE_LIMIT))
		vercel_refuse(request, 400, "Invalid request: the body should be gzip.");
	else
		return true;
	return false;
}

void
vercel_write_files(EmuRequest *request, VercelSession *session)
{
	const char *cwd = emu_request_header(request, "x-cwd");
	EmuText archive = {0};

	if (cwd == NULL)
		cwd = VERCEL_CWD;
	if (!files_there(request))
		return;
	if (*cwd != '/')
		vercel_refuse(request, 400, "Invalid request: `x-cwd` should be absolute.");
	else if (unpack(request, &archive))
		run_script(request, session, write_script, emu_strdup(cwd), &archive,
		           write_done);
	emu_text_free(&archive);
}

/*
 * fs/read and fs/mkdir: a path, and where it begins if it is relative
 */

/* To be freed; answers itself and returns NULL if there is none. */
static char *
path_of(EmuRequest *request, const json_t *body)
{
	const json_t *path = json_object_get(body, "path");
	const json_t *cwd = json_object_get(body, "cwd");

	if (body == NULL)
		return NULL;
	if (emu_is_plain_string(path) && json_string_length(path) > 0 &&
	    (cwd == NULL || json_is_string(cwd)))
		return vercel_absolute_path(json_string_value(path), json_string_value(cwd));
	vercel_refuse(request, 400,
	              "Invalid request: `path` should be a string that is not empty.");
	return NULL;
}

static void
refuse_path(EmuRequest *request, int exit_code)
{
	if (exit_code == EMU_EXIT_MISSING)
		vercel_refuse(request, 404, "File not found");
	else
		vercel_refuse(request, 400,
		              exit_code == EMU_EXIT_DIRECTORY ? "The path is a directory"
		              : exit_code == EXIT_EXISTS      ? "The path exists already"
		              : exit_code == EMU_EXIT_DENIED  ? "The file cannot be read"
		                                              : "The directory cannot be made");
}

static void
read_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuRequest *request = job->request;
	const char *name = strrchr(job->state, '/') + 1;
	EmuText disposition = {0};

	if (answer_if_lost(request, end))
		return;
	if (end->code != 0)
	{
		refuse_path(request, end->code);
		return;
	}
	emu_answer(request, 200, "application/octet-stream", &job->output);
	if (strpbrk(name, "\"\r\n") != NULL)
		return;
	emu_text_format(&disposition, "attachment; filename=\"%s\"", name);
	emu_answer_header(request, "Content-Disposition", disposition.data);
	emu_text_free(&disposition);
}

static void
make_done(EmuJob *job, const EmuProcessEnd *end)
{
	if (answer_if_lost(job->request, end))
		return;
	if (end->code == 0)
		answer_nothing(job->request);
	else
		refuse_path(job->request, end->code);
}

void
vercel_read_file(EmuRequest *request, VercelSession *session)
{
	json_t *body = files_there(request) ? vercel_body(request) : NULL;
	char *path = path_of(request, body);

	if (path != NULL)
		run_script(request, session, emu_script_read, path, NULL, read_done);
	json_decref(body);
}

/* Without `recursive` only the last part of the path may be new. */
void
vercel_make_directory(EmuRequest *request, VercelSession *session)
{
	json_t *body = files_there(request) ? vercel_body(request) : NULL;
	char *path = path_of(request, body);
	bool all = json_is_true(json_object_get(body, "recursive"));

	if (path != NULL)
		run_script(request, session, all ? make_all_script : make_script, path, NULL,
		           make_done);
	json_decref(body);
}
