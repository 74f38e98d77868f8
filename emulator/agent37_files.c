/*
 * agent37_files.c
 *		The files of an instance, as its gateway serves them.
 *
 * They are written and read by commands inside the instance, so what its user
 * may not do, an upload cannot do either.  The scripts print an entry as
 * fields that end with NUL, in the order of the enumeration below.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"

typedef enum Field
{
	FIELD_PATH,
	FIELD_TYPE,
	FIELD_SIZE,
	FIELD_MODIFIED, /* seconds with three digits after the point */
	FIELD_COUNT
} Field;

#define LIST_LIMIT 1000

/* Exit codes of the scripts, beside those of reading. */
#define EXIT_EXISTS       42
#define EXIT_MODIFIED     46
#define EXIT_NO_DIRECTORY 47

#define SHOW                                                                           \
	"show() { local k=other; [ -f \"$1\" ] && k=file; [ -d \"$1\" ] && k=directory; "  \
	"printf '%s\\0%s\\0' \"$1\" $k; "                                                  \
	"stat -L --printf '%s\\0%.3Y\\0' -- \"$1\" 2>/dev/null || "                        \
	"stat --printf '%s\\0%.3Y\\0' -- \"$1\"; }; "

/* "$2": whether it may be there, "$3": when it must have been modified, or "" */
static const char write_script[] =
    SHOW "[ -d \"$1\" ] && exit 40; [ \"$2\" = false ] && [ -e \"$1\" ] && exit 42; "
         "[ -z \"$3\" ] || "
         "[ \"$(stat -L --printf %.3Y -- \"$1\" 2>/dev/null | tr -d .)\" = \"$3\" ] || "
         "exit 46; "
         "mkdir -p -- \"$(dirname -- \"$1\")\" && cat >\"$1\" && show \"$1\"";

static const char list_script[] = SHOW
    "[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] || exit 47; shopt -s dotglob nullglob; "
    "for e in \"${1%/}\"/*; do show \"$e\"; done";

static const char make_script[] = SHOW
    "[ -e \"$1\" ] && [ ! -d \"$1\" ] && exit 42; mkdir -p -- \"$1\" && show \"$1\"";

static const char delete_script[] =
    "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; rm -rf -- \"$1\"";

static void
invalid(EmuRequest *request, const char *message)
{
	agent37_gateway_fail(request, 400, "validation_error", message);
}

/*
 * Entries
 */

/* "1781049642.123" */
static int64_t
milliseconds(const char *modified)
{
	const char *point = strchr(modified, '.');

	return atoll(modified) * 1000 + (point != NULL ? atoll(point + 1) : 0);
}

static void
write_entry(EmuText *text, const char *const *fields)
{
	const char *slash = strrchr(fields[FIELD_PATH], '/');
	const char *name = slash != NULL ? slash + 1 : fields[FIELD_PATH];

	emu_text_add(text, "{");
	emu_json_member(text, "name", name);
	emu_json_member(text, "path", fields[FIELD_PATH]);
	emu_json_member(text, "type", fields[FIELD_TYPE]);
	emu_json_member_integer(text, "size", atoll(fields[FIELD_SIZE]));
	emu_json_member_integer(text, "modified", milliseconds(fields[FIELD_MODIFIED]));
	emu_json_member_raw(text, "hidden", *name == '.' ? "true" : "false");
	emu_text_add(text, "}");
}

/* Writes at most so many, separated by commas; returns how many there are. */
static size_t
write_entries(EmuText *text, const EmuText *output, size_t limit)
{
	const char *fields[FIELD_COUNT];
	const char *place = output->data;
	const char *end = output->data + output->length;
	size_t field = 0;
	size_t count = 0;

	while (place < end)
	{
		fields[field++] = place;
		place += strlen(place) + 1;
		if (field < FIELD_COUNT)
			continue;
		field = 0;
		if (count++ >= limit)
			continue;
		if (count > 1)
			emu_text_add(text, ",");
		write_entry(text, fields);
	}
	return count;
}

/*
 * How a script has ended
 */

/* True if there is nothing to answer with but an error, which is done here. */
static bool
answer_failure(EmuRequest *request, const EmuProcessEnd *end)
{
	if (end->failure != NULL)
		agent37_edge_fail(request, 502, "container_unavailable");
	else if (end->code == EMU_EXIT_MISSING)
		agent37_gateway_fail(request, 404, "file_not_found", "there is no such file");
	else if (end->code == EMU_EXIT_DIRECTORY)
		invalid(request, "path is a directory");
	else if (end->code == EXIT_NO_DIRECTORY)
		agent37_gateway_fail(request, 400, "not_a_directory", "path is a file");
	else if (end->code == EXIT_EXISTS)
		agent37_gateway_fail(request, 409, "file_exists", "there is a file already");
	else if (end->code == EXIT_MODIFIED)
		agent37_gateway_fail(request, 412, "modified", "the file is another one now");
	else if (end->code != 0)
		agent37_gateway_fail(request, 500, "io_error", "that could not be done");
	else
		return false;
	return true;
}

static void
entry_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};

	if (answer_failure(job->request, end))
		return;
	write_entries(&body, &job->output, 1);
	emu_answer_json(job->request, 200, &body);
}

static void
list_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};
	size_t count;

	if (answer_failure(job->request, end))
		return;
	emu_text_add(&body, "{");
	emu_json_member(&body, "path", job->state);
	emu_json_key(&body, "entries");
	emu_text_add(&body, "[");
	count = write_entries(&body, &job->output, LIST_LIMIT);
	emu_text_add(&body, "]");
	emu_json_member_raw(&body, "truncated", count > LIST_LIMIT ? "true" : "false");
	emu_text_add(&body, "}");
	emu_answer_json(job->request, 200, &body);
}

static void
delete_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};

	if (answer_failure(job->request, end))
		return;
	emu_text_add(&body, "{");
	emu_json_member(&body, "path", job->state);
	emu_json_member_raw(&body, "deleted", "true");
	emu_text_add(&body, "}");
	emu_answer_json(job->request, 200, &body);
}

static bool
wants_attachment(EmuRequest *request)
{
	char *disposition = emu_request_parameter(request, "disposition");
	bool wants = disposition != NULL && strcmp(disposition, "attachment") == 0;

	free(disposition);
	return wants;
}

static void
download_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuRequest *request = job->request;
	const char *name = strrchr(job->state, '/') + 1;
	EmuText disposition = {0};

	if (answer_failure(request, end))
		return;
	emu_answer(request, 200,
	           emu_text_is_plain(&job->output) ? "text/plain; charset=utf-8"
	                                           : "application/octet-stream",
	           &job->output);
	emu_text_add(&disposition, wants_attachment(request) ? "attachment" : "inline");
	if (strpbrk(name, "\"\r\n") == NULL)
		emu_text_format(&disposition, "; filename=\"%s\"", name);
	emu_answer_header(request, "Content-Disposition", disposition.data);
	emu_text_free(&disposition);
}

/*
 * Requests
 */

/* Absolute, or below the home; NULL for anything else. */
static char *
read_path(EmuRequest *request)
{
	char *given = emu_request_parameter(request, "path");
	EmuText path = {0};

	if (given != NULL && *given == '/')
		return given;
	if (given != NULL && given[0] == '~' && (given[1] == '/' || given[1] == '\0'))
		emu_text_format(&path, AGENT37_HOME "%s", given + 1);
	free(given);
	return path.data;
}

static void
run(EmuRequest *request, EmuSandbox *sandbox, EmuScript *script, char *path,
    void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	EmuJob *job;

	script->arguments[0] = path;
	script->home = AGENT37_HOME;
	script->user = AGENT37_USER;
	script->open = &agent37_details(sandbox)->open_requests;
	job = emu_job_start_script(request, agent37_guest(sandbox), script, done);
	job->state = path;
	job->release = free;
}

static bool
body_came_in_chunks(EmuRequest *request)
{
	const char *encoding = emu_request_header(request, "Transfer-Encoding");

	return encoding != NULL && strcasestr(encoding, "chunked") != NULL;
}

/* What comes in chunks is lost on the way, and nobody notices. */
static void
upload(EmuRequest *request, EmuSandbox *sandbox, char *path)
{
	char *overwrite = emu_request_parameter(request, "overwrite");
	const char *expected = emu_request_header(request, "X-Expected-Mtime");
	EmuScript script = {
	    .text = write_script,
	    .arguments = {NULL, overwrite != NULL ? overwrite : "true",
	                  expected != NULL ? expected : ""},
	    .input = request->body.data != NULL ? request->body.data : "",
	    .input_length = body_came_in_chunks(request) ? 0 : request->body.length,
	};

	if (expected != NULL &&
	    (*expected == '\0' || expected[strspn(expected, "0123456789")] != '\0'))
	{
		invalid(request, "X-Expected-Mtime must be a number of milliseconds");
		free(path);
	}
	else
		run(request, sandbox, &script, path, entry_done);
	free(overwrite);
}

static void
download(EmuRequest *request, EmuSandbox *sandbox, char *path)
{
	EmuScript script = {.text = emu_script_read};

	run(request, sandbox, &script, path, download_done);
}

static void
list(EmuRequest *request, EmuSandbox *sandbox, char *path)
{
	EmuScript script = {.text = list_script};

	run(request, sandbox, &script, path, list_done);
}

static void
make_directory(EmuRequest *request, EmuSandbox *sandbox, char *path)
{
	EmuScript script = {.text = make_script};

	run(request, sandbox, &script, path, entry_done);
}

static void delete (EmuRequest *request, EmuSandbox *sandbox, char *path)
{
	EmuScript script = {.text = delete_script};

	run(request, sandbox, &script, path, delete_done);
}

static void
handle(EmuRequest *request, EmuSandbox *sandbox,
       void (*handler)(EmuRequest *request, EmuSandbox *sandbox, char *path))
{
	char *path;

	if (handler == NULL)
		agent37_not_emulated(request);
	else if (emu_no_exec)
		agent37_gateway_fail(request, 500, "io_error",
		                     "files need an instance that runs");
	else if ((path = read_path(request)) == NULL)
		invalid(request, "path must be absolute, or begin with ~/");
	else
		handler(request, sandbox, path);
}

/* A handler owns the path that it is given. */
void
agent37_files_route(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	static const struct
	{
		const char *method;
		const char *path;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox, char *path);
	} routes[] = {
	    {"PUT", "v1/files/content", upload},
	    {"GET", "v1/files/content", download},
	    {"GET", "v1/files", list},
	    {"DELETE", "v1/files", delete},
	    {"POST", "v1/files/dir", make_directory},
	    {"PATCH", "v1/files", NULL},
	    {"GET", "v1/files/archive", NULL},
	};

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].method, request->method) == 0 &&
		    strcmp(routes[i].path, path) == 0)
		{
			handle(request, sandbox, routes[i].handle);
			return;
		}
	agent37_gateway_fail(request, 404, "not_found", "no such path");
}
