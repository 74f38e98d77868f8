/*
 * e2b_filesystem.c
 *		filesystem.Filesystem: what the files of a sandbox are, and changes.
 *
 * Everything but the watching of directories.  The scripts print an entry as
 * fields that end with NUL, in the order of the enumeration below.
 */
#include "e2b.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "options.h"

typedef enum Field
{
	FIELD_PATH,
	FIELD_MODE, /* hexadecimal, as are the types in it */
	FIELD_SIZE,
	FIELD_USER,
	FIELD_GROUP,
	FIELD_TIME,   /* seconds with a fraction */
	FIELD_TARGET, /* of a link, else empty */
	FIELD_KIND,   /* what it is, or what the link points to: f, d or neither */
	FIELD_COUNT
} Field;

/* Exit codes of the scripts. */
#define EXIT_MISSING 44
#define EXIT_EXISTS  42
#define EXIT_KIND    40

#define SHOW                                                                           \
	"show() { local t= k=; [ -L \"$1\" ] && t=$(readlink -m -- \"$1\"); "              \
	"[ -f \"$1\" ] && k=f; [ -d \"$1\" ] && k=d; "                                     \
	"stat --printf '%n\\0%f\\0%s\\0%U\\0%G\\0%.9Y\\0' -- \"$1\" && "                   \
	"printf '%s\\0%s\\0' \"$t\" \"$k\"; }; "

static const char stat_script[] =
    SHOW "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; show \"$1\"";

static const char list_script[] = SHOW
    "walk() { local e; for e in \"$1\"/*; do [ -e \"$e\" ] || [ -L \"$e\" ] || "
    "continue; show \"$e\"; [ \"$2\" -gt 1 ] && [ -d \"$e\" ] && [ ! -L \"$e\" ] && "
    "walk \"$e\" $(($2 - 1)); done; return 0; }; shopt -s dotglob; "
    "[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] || exit 40; walk \"${1%/}\" \"$2\"";

static const char make_script[] =
    SHOW "[ -d \"$1\" ] && exit 42; [ -e \"$1\" ] && exit 40; mkdir -p -- \"$1\" && "
         "show \"$1\"";

static const char move_script[] = SHOW
    "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 44; "
    "mkdir -p -- \"$(dirname -- \"$2\")\" && mv -T -- \"$1\" \"$2\" && show \"$2\"";

static const char remove_script[] = "rm -rf -- \"$1\"";

/*
 * Entries
 */

static const char *
kind_name(const char *kind)
{
	return *kind == 'f'   ? "FILE_TYPE_FILE"
	       : *kind == 'd' ? "FILE_TYPE_DIRECTORY"
	                      : NULL;
}

/* -rwxr-xr-x */
static void
write_permissions(EmuText *text, unsigned long mode)
{
	static const char letters[] = "rwxrwxrwx";
	char shown[11];

	shown[0] = (mode & 0170000) == 0040000   ? 'd'
	           : (mode & 0170000) == 0120000 ? 'L'
	                                         : '-';
	for (int i = 0; i < 9; i++)
		shown[i + 1] = (mode & (0400ul >> i)) != 0 ? letters[i] : '-';
	shown[10] = '\0';
	emu_json_member(text, "permissions", shown);
}

static void
write_time(EmuText *text, const char *seconds)
{
	time_t whole = (time_t) atoll(seconds);
	const char *point = strchr(seconds, '.');
	struct tm utc;
	char stamp[32];
	EmuText time_text = {0};

	gmtime_r(&whole, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	emu_text_format(&time_text, "%s%sZ", stamp, point != NULL ? point : "");
	emu_json_member(text, "modifiedTime", time_text.data);
	emu_text_free(&time_text);
}

static void
write_entry(EmuText *text, const char *const *fields)
{
	const char *slash = strrchr(fields[FIELD_PATH], '/');
	unsigned long mode = strtoul(fields[FIELD_MODE], NULL, 16);

	emu_text_add(text, "{");
	emu_json_member(text, "name", slash != NULL ? slash + 1 : fields[FIELD_PATH]);
	if (kind_name(fields[FIELD_KIND]) != NULL)
		emu_json_member(text, "type", kind_name(fields[FIELD_KIND]));
	else if (*fields[FIELD_TARGET] != '\0')
		emu_json_member(text, "type", "FILE_TYPE_SYMLINK");
	emu_json_member(text, "path", fields[FIELD_PATH]);
	if (strcmp(fields[FIELD_SIZE], "0") != 0)
		emu_json_member(text, "size", fields[FIELD_SIZE]); /* 64 bits: as text */
	if ((mode & 07777) != 0)
		emu_json_member_integer(text, "mode", (int64_t) (mode & 07777));
	write_permissions(text, mode);
	emu_json_member(text, "owner", fields[FIELD_USER]);
	emu_json_member(text, "group", fields[FIELD_GROUP]);
	write_time(text, fields[FIELD_TIME]);
	if (*fields[FIELD_TARGET] != '\0')
		emu_json_member(text, "symlinkTarget", fields[FIELD_TARGET]);
	emu_text_add(text, "}");
}

/* Writes the entries that the script printed, separated by commas. */
static void
write_entries(EmuText *text, const EmuText *output)
{
	const char *fields[FIELD_COUNT];
	const char *place = output->data;
	const char *end = output->data + output->length;
	size_t field = 0;
	bool first = true;

	while (place < end)
	{
		fields[field++] = place;
		place += strlen(place) + 1;
		if (field < FIELD_COUNT)
			continue;
		if (!first)
			emu_text_add(text, ",");
		write_entry(text, fields);
		first = false;
		field = 0;
	}
}

/*
 * Calls
 */

static void
refuse_by_exit(EmuRequest *request, const EmuJob *job, int exit_code)
{
	if (exit_code == EXIT_MISSING)
		e2b_unary_refuse(request, "not_found", "file not found");
	else if (exit_code == EXIT_EXISTS)
		e2b_unary_refuse(request, "already_exists", "directory already exists");
	else if (exit_code == EXIT_KIND)
		e2b_unary_refuse(request, "invalid_argument", "path is not a directory");
	else
		e2b_unary_refuse_format(request, "internal", "%.*s", (int) job->errors.length,
		                        job->errors.length > 0 ? job->errors.data : "");
}

static void
entry_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};

	if (e2b_answer_if_lost(job->request, end))
		return;
	if (end->code != 0)
	{
		refuse_by_exit(job->request, job, end->code);
		return;
	}
	emu_text_add(&body, "{\"entry\":");
	write_entries(&body, &job->output);
	emu_text_add(&body, "}");
	e2b_unary_answer(job->request, &body);
}

static void
list_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};

	if (e2b_answer_if_lost(job->request, end))
		return;
	if (end->code != 0)
	{
		refuse_by_exit(job->request, job, end->code);
		return;
	}
	emu_text_add(&body, "{");
	if (job->output.length > 0)
	{
		emu_text_add(&body, "\"entries\":[");
		write_entries(&body, &job->output);
		emu_text_add(&body, "]");
	}
	emu_text_add(&body, "}");
	e2b_unary_answer(job->request, &body);
}

static void
remove_done(EmuJob *job, const EmuProcessEnd *end)
{
	EmuText body = {0};

	if (e2b_answer_if_lost(job->request, end))
		return;
	if (end->code != 0)
	{
		refuse_by_exit(job->request, job, end->code);
		return;
	}
	emu_text_add(&body, "{}");
	e2b_unary_answer(job->request, &body);
}

typedef struct Call
{
	const char *method;
	const char *script;
	const char *first; /* members of the message that are the arguments */
	const char *second;
	void (*done)(EmuJob *job, const EmuProcessEnd *end);
} Call;

static const Call calls[] = {
    {"Stat", stat_script, "path", NULL, entry_done},
    {"MakeDir", make_script, "path", NULL, entry_done},
    {"Move", move_script, "source", "destination", entry_done},
    {"ListDir", list_script, "path", "depth", list_done},
    {"Remove", remove_script, "path", NULL, remove_done},
};

/* A path, or the depth of a listing, of which the least is 1. */
static char *
argument(const json_t *message, const char *name)
{
	const json_t *value = json_object_get(message, name);
	EmuText number = {0};

	if (strcmp(name, "depth") != 0)
		return e2b_absolute_path(json_is_string(value) ? json_string_value(value) : "");
	emu_text_number(&number,
	                json_integer_value(value) > 0 ? json_integer_value(value) : 1);
	return number.data;
}

static void
handle(EmuRequest *request, EmuSandbox *sandbox, const Call *call,
       const json_t *message)
{
	char *first = argument(message, call->first);
	char *second = call->second != NULL ? argument(message, call->second) : NULL;

	if (e2b_user(request) == NULL)
		e2b_unary_refuse(request, "unauthenticated", "invalid username");
	else if (emu_no_exec)
		e2b_unary_refuse(request, "internal", "files need a sandbox that runs");
	else
		e2b_run_script(request, sandbox, call->script, first, second, NULL, 0,
		               call->done);
	free(first);
	free(second);
}

/* `method` is the part of the path after the service. */
void
e2b_filesystem_route(EmuRequest *request, EmuSandbox *sandbox, const char *method)
{
	json_t *message;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(calls[i].method, method) == 0)
		{
			message = e2b_unary_message(request);
			if (message != NULL)
				handle(request, sandbox, &calls[i], message);
			json_decref(message);
			return;
		}
	e2b_unary_refuse_format(request, "unimplemented", "%s is not emulated", method);
}
