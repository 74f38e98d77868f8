/*
 * freestyle_files.c
 *		The files of a VM, each request one operation below fs/.
 *
 * They are written and read by commands inside the VM, so what its user may
 * not do, an upload cannot do either.
 */
#include "freestyle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "options.h"

#define PATH_LIMIT 4096

/* Exit codes of the scripts, beside those of reading. */
#define EXIT_NO_PARENT    45
#define EXIT_OTHER_SUM    46
#define EXIT_NO_DIRECTORY 47

/*
 * "$2": the mode, or "" for that of the file there is; "$3": its SHA-256, or "".
 * Who reads meanwhile sees the old file, whole.
 */
static const char write_script[] =
    "[ -d \"$1\" ] && exit 40; d=$(dirname -- \"$1\"); "
    "[ -d \"$d\" ] || [ -z \"$STRICT\" ] || exit 45; "
    "mkdir -p -- \"$d\" && t=$(mktemp -- \"$d/.upload.XXXXXX\") || exit 43; "
    "trap 'rm -f -- \"$t\"' EXIT; cat >\"$t\" || exit 43; "
    "[ -z \"$3\" ] || [ \"$(sha256sum <\"$t\")\" = \"$3  -\" ] || exit 46; "
    "m=${2:-$(stat -L -c %a -- \"$1\" 2>/dev/null || echo 600)}; "
    "chmod -- \"$m\" \"$t\" && mv -fT -- \"$t\" \"$1\" || exit 43";

static const char make_script[] =
    "[ -d \"$1\" ] && exit 0; [ -e \"$1\" ] && exit 47; "
    "[ -d \"$(dirname -- \"$1\")\" ] || [ -z \"$2\" ] || exit 45; "
    "mkdir -p -- \"$1\" || exit 43";

static const char list_script[] =
    "[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] || exit 47; shopt -s dotglob nullglob; "
    "for e in \"${1%/}\"/*; do k=file; [ -d \"$e\" ] && k=directory; "
    "[ -L \"$e\" ] && k=symlink; printf '%s\\0%s\\0' \"${e##*/}\" $k; done";

static const char stat_script[] =
    "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; "
    "exec stat --printf '%s\\0%f\\0%U\\0%G\\0%.3Y\\0' -- \"$1\"";

static const char exists_script[] = "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44";

static const char remove_script[] =
    "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; rm -rf -- \"$1\" || exit 43";

/*
 * How a script has ended
 */

/* True if there is nothing to answer with but an error, which is done here. */
static bool
answer_failure(EmuRequest *request, const EmuProcessEnd *end)
{
	if (end->never_started)
		freestyle_refuse(request, 500, end->failure);
	else if (end->failure != NULL)
		freestyle_conflict(request, end->failure);
	else if (end->code == EMU_EXIT_MISSING)
		freestyle_refuse(request, 404, "no such file");
	else if (end->code == EXIT_NO_PARENT)
		freestyle_refuse(request, 404, "no such directory");
	else if (end->code == EMU_EXIT_DIRECTORY)
		freestyle_invalid(request, "path is a directory");
	else if (end->code == EXIT_NO_DIRECTORY)
		freestyle_invalid(request, "path is no directory");
	else if (end->code == EXIT_OTHER_SUM)
		freestyle_invalid(request, "the content has another sha256");
	else if (end->code != 0)
		freestyle_invalid(request, "this cannot be done to the file");
	return request->answer.given;
}

static void
answer_nothing(EmuJob *job, const EmuProcessEnd *end)
{
	if (!answer_failure(job->request, end))
		emu_answer_empty(job->request, 204);
}

static EmuJob *
run_script(EmuRequest *request, EmuSandbox *sandbox, const char *script,
           const char *const *arguments, const EmuText *input,
           void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	EmuScript all = {
	    .text = script,
	    .arguments = {arguments[0], arguments[1], arguments[2]},
	    .home = FREESTYLE_HOME,
	    .user = FREESTYLE_USER,
	    .input = input != NULL && input->length > 0 ? input->data : "",
	    .input_length = input != NULL ? input->length : 0,
	};

	return emu_job_start_script(request, freestyle_guest(sandbox), &all, done);
}

/* Answers itself and returns false. */
bool
freestyle_path_valid(EmuRequest *request, const char *path)
{
	size_t length = path != NULL ? strlen(path) : 0;

	if (length < 2 || *path != '/' || strstr(path, "/../") != NULL ||
	    (length >= 3 && strcmp(path + length - 3, "/..") == 0))
		freestyle_invalid(request, "path must be absolute, and without ..");
	else if (length > PATH_LIMIT)
		freestyle_invalid(request, "path is too long");
	else
		return true;
	return false;
}

/*
 * Writing
 */

void
freestyle_file_write(EmuRequest *request, EmuSandbox *sandbox, const char *path,
                     const char *sha256, int64_t mode, const EmuText *content)
{
	char octal[16] = "";
	const char *arguments[] = {path, octal, sha256 != NULL ? sha256 : ""};
	EmuText script = {0};

	if (mode != FREESTYLE_NO_MODE)
		snprintf(octal, sizeof(octal), "%o", (unsigned) mode);
	emu_text_format(&script, "STRICT=%s; %s",
	                freestyle_config.strict_parents ? "yes" : "", write_script);
	run_script(request, sandbox, script.data, arguments, content, answer_nothing);
	emu_text_free(&script);
}

/* Decimal; false if it is none. */
static bool
read_mode(const char *text, int64_t *mode)
{
	char *end = NULL;

	*mode = FREESTYLE_NO_MODE;
	if (text == NULL)
		return true;
	*mode = strtol(text, &end, 10);
	return *text != '\0' && *end == '\0' && *mode >= 0 && *mode <= 07777;
}

static void
write_file(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	char *mode_text = emu_request_parameter(request, "mode");
	char *sha256 = emu_request_parameter(request, "sha256");
	int64_t mode;

	if (!read_mode(mode_text, &mode))
		freestyle_invalid(request, "mode must be a decimal number of permissions");
	else
		freestyle_file_write(request, sandbox, path, sha256, mode, &request->body);
	free(mode_text);
	free(sha256);
}

/*
 * Reading
 */

typedef struct Range
{
	bool given;
	int64_t first;
	int64_t last; /* INT64_MAX: to the end */
} Range;

/* bytes=a-b or bytes=a-; anything else is as if it were not there. */
static void
range_read(Range *range, const char *header)
{
	long long first;
	long long last;
	int end = 0;

	if (header == NULL)
		return;
	if (sscanf(header, "bytes=%lld-%lld%n", &first, &last, &end) == 2 &&
	    header[end] == '\0')
		*range = (Range){true, first, last};
	else if (sscanf(header, "bytes=%lld-%n", &first, &end) == 1 && end > 0 &&
	         header[end] == '\0')
		*range = (Range){true, first, INT64_MAX};
	range->given = range->given && range->first >= 0 && range->last >= range->first;
}

static void
answer_range(EmuRequest *request, const EmuText *all, const Range *range)
{
	int64_t size = (int64_t) all->length;
	int64_t last = range->last < size ? range->last : size - 1;
	EmuText header = {0};
	EmuText part = {0};

	if (range->first >= size)
	{
		freestyle_fail(request, 416, "RANGE_NOT_SATISFIABLE",
		               "the file is shorter than that");
		return;
	}
	emu_text_append(&part, all->data + range->first,
	                (size_t) (last - range->first + 1));
	emu_text_format(&header, "bytes %lld-%lld/%lld", (long long) range->first,
	                (long long) last, (long long) size);
	emu_answer(request, 206, "application/octet-stream", &part);
	emu_answer_header(request, "Content-Range", header.data);
	emu_text_free(&header);
}

static void
read_done(EmuJob *job, const EmuProcessEnd *end)
{
	const Range *range = job->state;

	if (answer_failure(job->request, end))
		return;
	if (range->given)
		answer_range(job->request, &job->output, range);
	else
		emu_answer(job->request, 200, "application/octet-stream", &job->output);
}

static void
read_file(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, NULL, NULL};
	const char *header = freestyle_call_range(request);
	Range *range = emu_alloc(sizeof(Range));
	EmuJob *job;

	range_read(range, header);
	job = run_script(request, sandbox, emu_script_read, arguments, NULL, read_done);
	job->state = range;
	job->release = free;
}

/*
 * Directories
 */

static void
make_directory(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, freestyle_config.strict_parents ? "yes" : "",
	                           NULL};

	run_script(request, sandbox, make_script, arguments, NULL, answer_nothing);
}

static void
list_done(EmuJob *job, const EmuProcessEnd *end)
{
	const char *place = job->output.data;
	const char *last = place + job->output.length;
	EmuText body = {0};

	if (answer_failure(job->request, end))
		return;
	emu_text_add(&body, "{\"entries\":[");
	while (place < last)
	{
		const char *kind = place + strlen(place) + 1;

		emu_text_add(&body, place == job->output.data ? "{" : ",{");
		emu_json_member(&body, "name", place);
		emu_json_member(&body, "kind", kind);
		emu_text_add(&body, "}");
		place = kind + strlen(kind) + 1;
	}
	emu_text_add(&body, "]}");
	emu_answer_json(job->request, 200, &body);
}

static void
list_directory(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, NULL, NULL};

	run_script(request, sandbox, list_script, arguments, NULL, list_done);
}

/*
 * What there is
 */

/* "1781049642.123" */
static int64_t
milliseconds(const char *modified)
{
	const char *point = strchr(modified, '.');

	return atoll(modified) * 1000 + (point != NULL ? atoll(point + 1) : 0);
}

static void
stat_done(EmuJob *job, const EmuProcessEnd *end)
{
	const char *fields[5]; /* size, mode, owner, group, modified */
	const char *place = job->output.data;
	unsigned long mode;
	EmuText body = {0};
	char permissions[16];

	if (answer_failure(job->request, end))
		return;
	for (size_t i = 0; i < 5; i++)
	{
		fields[i] = place;
		place += strlen(place) + 1;
	}
	mode = strtoul(fields[1], NULL, 16);
	snprintf(permissions, sizeof(permissions), "%04lo", mode & 07777);
	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "size", atoll(fields[0]));
	emu_json_member_raw(&body, "isFile", S_ISREG(mode) ? "true" : "false");
	emu_json_member_raw(&body, "isDirectory", S_ISDIR(mode) ? "true" : "false");
	emu_json_member_raw(&body, "isSymlink", S_ISLNK(mode) ? "true" : "false");
	emu_json_member(&body, "permissions", permissions);
	emu_json_member(&body, "owner", fields[2]);
	emu_json_member(&body, "group", fields[3]);
	emu_json_member_time(&body, "modified", milliseconds(fields[4]));
	emu_text_add(&body, "}");
	emu_answer_json(job->request, 200, &body);
}

static void
stat_file(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, NULL, NULL};

	run_script(request, sandbox, stat_script, arguments, NULL, stat_done);
}

static void
exists_done(EmuJob *job, const EmuProcessEnd *end)
{
	bool missing = end->failure == NULL && end->code == EMU_EXIT_MISSING;
	EmuText body = {0};

	if (!missing && answer_failure(job->request, end))
		return;
	emu_text_format(&body, "{\"exists\":%s}", missing ? "false" : "true");
	emu_answer_json(job->request, 200, &body);
}

static void
exists(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, NULL, NULL};

	run_script(request, sandbox, exists_script, arguments, NULL, exists_done);
}

static void
remove_file(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	const char *arguments[] = {path, NULL, NULL};

	run_script(request, sandbox, remove_script, arguments, NULL, answer_nothing);
}

/*
 * Routing
 */

static const struct
{
	const char *method;
	const char *name;
	bool in_body; /* the path is in a JSON body, not in the query */
	void (*handle)(EmuRequest *request, EmuSandbox *sandbox, const char *path);
} operations[] = {
    {"PUT", "write", false, write_file},      {"GET", "read", false, read_file},
    {"POST", "mkdir", true, make_directory},  {"GET", "dir", false, list_directory},
    {"GET", "stat", false, stat_file},        {"GET", "exists", false, exists},
    {"DELETE", "remove", false, remove_file},
};

/* To be freed; NULL if there is none, which may have been answered. */
static char *
path_of(EmuRequest *request, bool in_body)
{
	json_t *body;
	const json_t *path;
	char *copy = NULL;

	if (!in_body)
		return emu_request_parameter(request, "path");
	body = freestyle_body(request);
	path = json_object_get(body, "path");
	if (json_is_string(path) &&
	    strlen(json_string_value(path)) == json_string_length(path))
		copy = emu_strdup(json_string_value(path));
	json_decref(body);
	return copy;
}

static size_t
operation_of(const EmuRequest *request)
{
	const char *name = strrchr(request->path, '/') + 1;
	size_t i = 0;

	while (i < sizeof(operations) / sizeof(operations[0]) &&
	       (strcmp(operations[i].name, name) != 0 ||
	        strcmp(operations[i].method, request->method) != 0))
		i++;
	return i;
}

static void
operate(EmuRequest *request, EmuSandbox *sandbox)
{
	size_t which = operation_of(request);
	char *path = path_of(request, operations[which].in_body);

	if (!request->answer.given && freestyle_path_valid(request, path))
		operations[which].handle(request, sandbox, path);
	free(path);
}

void
freestyle_files_route(EmuRequest *request, EmuSandbox *sandbox)
{
	if (operation_of(request) == sizeof(operations) / sizeof(operations[0]))
		freestyle_fail(request, 404, "ROUTE_NOT_FOUND", "no such path");
	else if (emu_no_exec)
		freestyle_refuse(request, 500, "files need a VM that runs");
	else
		freestyle_when_running(request, sandbox, operate);
}
