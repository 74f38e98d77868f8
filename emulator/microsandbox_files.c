/*
 * microsandbox_files.c
 *		Files: core.fs.request, except what goes through handles.
 *
 * They are looked at and changed by scripts inside the sandbox, so what its
 * user may not do cannot be done here either.  A script that fails ends with
 * the number of the error.
 */
#include "microsandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define ARGUMENT_MAXIMUM 3

/* How an entry is printed: fields that end with NUL, in this order. */
typedef enum Field
{
	FIELD_PATH,
	FIELD_KIND,
	FIELD_SIZE,
	FIELD_MODE,
	FIELD_MODIFIED,
	FIELD_ACCESSED,
	FIELD_USER,
	FIELD_GROUP,
	FIELD_COUNT
} Field;

#define SHOW "stat --printf '%n\\0%F\\0%s\\0%a\\0%Y\\0%X\\0%u\\0%g\\0' "

#define NEED "[ -e \"$1\" ] || [ -L \"$1\" ] || exit 2; "

/* What an answer has beside that it went well. */
typedef enum Result
{
	RESULT_NOTHING,
	RESULT_STAT,
	RESULT_LIST,
	RESULT_PATH
} Result;

typedef struct Action
{
	const char *name;
	const char *arguments[ARGUMENT_MAXIMUM]; /* names of members, "$1" and so on */
	Result result;
	const char *script;
} Action;

/* A mode is octal here, a flag is true or empty. */
static const Action actions[] = {
    {"Mkdir",
     {"path", "mode"},
     RESULT_NOTHING,
     "[ -e \"$1\" ] && [ ! -d \"$1\" ] && exit 17; mkdir -p -- \"$1\" || exit 13; "
     "[ -z \"$2\" ] || chmod \"$2\" -- \"$1\""},
    {"Stat",
     {"path", "follow_symlink"},
     RESULT_STAT,
     "[ -e \"$1\" ] || { [ -z \"$2\" ] && [ -L \"$1\" ]; } || exit 2; " SHOW
     "${2:+-L} -- \"$1\""},
    {"List",
     {"path"},
     RESULT_LIST,
     "[ -e \"$1\" ] || exit 2; [ -d \"$1\" ] || exit 20; [ -r \"$1\" ] || exit 13; "
     "shopt -s dotglob nullglob; for e in \"${1%/}\"/*; do " SHOW "-- \"$e\"; done; "
     "true"},
    {"Remove",
     {"path"},
     RESULT_NOTHING,
     NEED "[ -d \"$1\" ] && [ ! -L \"$1\" ] && exit 21; rm -f -- \"$1\" || exit 13"},
    {"RemoveDir",
     {"path", "recursive"},
     RESULT_NOTHING,
     NEED "[ -d \"$1\" ] || exit 20; [ -z \"$2\" ] || exec rm -rf -- \"$1\"; "
          "rmdir -- \"$1\" || exit 39"},
    {"Copy",
     {"src", "dst"},
     RESULT_NOTHING,
     NEED "cp -a -T -- \"$1\" \"$2\" || exit 13"},
    {"Rename",
     {"src", "dst"},
     RESULT_NOTHING,
     NEED "mv -T -- \"$1\" \"$2\" || exit 13"},
    {"RealPath", {"path"}, RESULT_PATH, NEED "realpath -ez -- \"$1\" || exit 2"},
};

typedef struct Task
{
	MicrosandboxOperation operation; /* first */
	EmuProcess *process;
	const Action *action;
	EmuText output;
} Task;

/*
 * Answers
 */

static cbor_item_t *
response(const char *error, cbor_item_t *data)
{
	cbor_item_t *payload = emu_cbor_map(3);

	emu_cbor_put(payload, "ok", emu_cbor_new_boolean(error == NULL));
	emu_cbor_put(payload, "error", emu_cbor_new_text(error));
	emu_cbor_put(payload, "data", data != NULL ? data : emu_cbor_new_text(NULL));
	return payload;
}

void
microsandbox_files_answer(MicrosandboxAgent *agent, uint32_t id, const char *error,
                          cbor_item_t *data)
{
	microsandbox_agent_say(agent, id, MICROSANDBOX_TERMINAL, "core.fs.response",
	                       response(error, data));
}

/* What a script says by its end: NULL if all is well; a program's own trouble is 1. */
const char *
microsandbox_files_error(const EmuProcessEnd *end)
{
	return end->failure != NULL ? end->failure
	       : end->signal != 0   ? "the operation was killed"
	       : end->code == 1     ? strerror(EIO)
	       : end->code != 0     ? strerror(end->code)
	                            : NULL;
}

void
microsandbox_files_end(MicrosandboxOperation *operation, const EmuProcessEnd *end,
                       const char *error, cbor_item_t *data)
{
	if (operation->agent == NULL || (end->sandbox_gone && !end->never_started))
	{
		microsandbox_operation_gone(operation);
		emu_cbor_free(data);
	}
	else
		microsandbox_say_last(operation, "core.fs.response", response(error, data));
}

static const char *
entry_kind(const char *name)
{
	return strncmp(name, "regular", 7) == 0     ? "file"
	       : strcmp(name, "directory") == 0     ? "dir"
	       : strcmp(name, "symbolic link") == 0 ? "symlink"
	                                            : "other";
}

static cbor_item_t *
entry(const char *const *fields)
{
	cbor_item_t *shown = emu_cbor_map(9);
	long long modified = atoll(fields[FIELD_MODIFIED]);

	emu_cbor_put(shown, "path", emu_cbor_new_text(fields[FIELD_PATH]));
	emu_cbor_put(shown, "kind", emu_cbor_new_text(entry_kind(fields[FIELD_KIND])));
	emu_cbor_put(shown, "size", emu_cbor_new_integer(atoll(fields[FIELD_SIZE])));
	emu_cbor_put(shown, "mode",
	             emu_cbor_new_integer(strtol(fields[FIELD_MODE], NULL, 8)));
	emu_cbor_put(shown, "modified", emu_cbor_new_integer(modified));
	emu_cbor_put(shown, "uid", emu_cbor_new_integer(atoll(fields[FIELD_USER])));
	emu_cbor_put(shown, "gid", emu_cbor_new_integer(atoll(fields[FIELD_GROUP])));
	emu_cbor_put(shown, "atime", emu_cbor_new_integer(atoll(fields[FIELD_ACCESSED])));
	emu_cbor_put(shown, "mtime", emu_cbor_new_integer(modified));
	return shown;
}

static size_t
count_fields(const EmuText *output)
{
	size_t count = 0;

	for (size_t i = 0; i < output->length; i++)
		count += output->data[i] == '\0';
	return count;
}

/* The entries that a script has printed; at most so many. */
static cbor_item_t *
entries(const EmuText *output, size_t most)
{
	size_t count = count_fields(output) / FIELD_COUNT;
	cbor_item_t *list = emu_cbor_list(count < most ? count : most);
	const char *place = output->data;

	for (size_t i = 0; i < count && i < most; i++)
	{
		const char *fields[FIELD_COUNT];

		for (int field = 0; field < FIELD_COUNT; field++)
		{
			fields[field] = place;
			place += strlen(place) + 1;
		}
		emu_cbor_add(list, entry(fields));
	}
	return list;
}

static cbor_item_t *
first_entry(const EmuText *output)
{
	cbor_item_t *list = entries(output, 1);
	cbor_item_t *first = cbor_array_get(list, 0);

	emu_cbor_free(list);
	return first;
}

static cbor_item_t *
result_data(const Task *task)
{
	switch (task->action->result)
	{
		case RESULT_STAT:
			return emu_cbor_variant("Stat", first_entry(&task->output));
		case RESULT_LIST:
			return emu_cbor_variant("List", entries(&task->output, SIZE_MAX));
		case RESULT_PATH:
			return emu_cbor_variant("Path", emu_cbor_new_text(task->output.data));
		case RESULT_NOTHING:
			break;
	}
	return NULL;
}

/*
 * Scripts
 */

EmuProcess *
microsandbox_files_run(MicrosandboxAgent *agent, const char *script,
                       const char *const *words, const EmuProcessEvents *events,
                       void *owner)
{
	const char *arguments[] = {"/bin/bash", "-c",     script,   "bash",
	                           words[0],    words[1], words[2], NULL};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = arguments, .cwd = "/", .output_limit = UINT32_MAX};
	EmuProcess *process;

	emu_environment_set_basics(&environment, microsandbox_home(agent->sandbox),
	                           MICROSANDBOX_USER);
	line.variables = (const char *const *) environment.variables;
	process = emu_process_run(microsandbox_guest(agent->sandbox), &line, events, owner);
	emu_environment_free(&environment);
	return process;
}

static void
task_output(void *owner, bool errors, const char *data, size_t length)
{
	Task *task = owner;

	if (!errors)
		emu_text_append(&task->output, data, length);
}

static void
task_ended(void *owner, const EmuProcessEnd *end)
{
	Task *task = owner;
	const char *error = microsandbox_files_error(end);

	microsandbox_files_end(&task->operation, end, error,
	                       error == NULL ? result_data(task) : NULL);
	emu_text_free(&task->output);
	free(task);
}

static void
task_hear(MicrosandboxOperation *operation, const char *type,
          const cbor_item_t *payload)
{
	(void) operation;
	(void) type;
	(void) payload;
}

/* It is left to its end, as by the agent itself. */
static void
task_lost(MicrosandboxOperation *operation)
{
	(void) operation;
}

/*
 * Requests
 */

/* As the scripts take it; NULL if it is no such member. */
static char *
argument_text(const char *name, const cbor_item_t *value)
{
	EmuText octal = {0};
	int64_t mode;

	if (strcmp(name, "mode") == 0)
	{
		if (emu_cbor_integer(value, &mode))
			emu_text_format(&octal, "%llo", (unsigned long long) mode & 07777);
		return octal.data != NULL ? octal.data : emu_strdup("");
	}
	if (strcmp(name, "recursive") == 0 || strcmp(name, "follow_symlink") == 0)
		return emu_strdup(emu_cbor_is_true(value) ? "true" : "");
	return emu_cbor_text(value);
}

static void
act(MicrosandboxAgent *agent, uint32_t id, const Action *action,
    const cbor_item_t *members)
{
	static const EmuProcessEvents events = {task_output, task_ended, NULL, NULL};
	char *words[ARGUMENT_MAXIMUM] = {NULL};
	bool good = true;

	for (int i = 0; i < ARGUMENT_MAXIMUM && action->arguments[i] != NULL; i++)
	{
		words[i] = argument_text(action->arguments[i],
		                         emu_cbor_member(members, action->arguments[i]));
		good = good && words[i] != NULL;
	}
	if (good)
	{
		Task *task = emu_alloc(sizeof(Task));

		task->action = action;
		task->operation.hear = task_hear;
		task->operation.lost = task_lost;
		microsandbox_operation_begin(agent, &task->operation, id);
		task->process = microsandbox_files_run(
		    agent, action->script, (const char *const *) words, &events, task);
	}
	else
		microsandbox_agent_complain(agent, id, "invalid_payload",
		                            "an argument is missing", "core.fs.request");
	for (int i = 0; i < ARGUMENT_MAXIMUM; i++)
		free(words[i]);
}

static void
dispatch(MicrosandboxAgent *agent, uint32_t id, const char *name,
         const cbor_item_t *members)
{
	if (microsandbox_transfer(agent, id, name, members))
		return;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(actions[i].name, name) == 0)
		{
			act(agent, id, &actions[i], members);
			return;
		}
	microsandbox_files_answer(agent, id, "this operation is not emulated", NULL);
}

/* The operation is a map of one member: its name, and what it needs. */
void
microsandbox_files(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *payload)
{
	const cbor_item_t *operation = emu_cbor_member(payload, "op");
	bool is_one =
	    operation != NULL && cbor_isa_map(operation) && cbor_map_size(operation) == 1;
	char *name = is_one ? emu_cbor_text(cbor_map_handle(operation)[0].key) : NULL;

	if (name == NULL)
		microsandbox_agent_complain(agent, id, "invalid_payload",
		                            "this is no operation", "core.fs.request");
	else if (emu_no_exec)
		microsandbox_files_answer(agent, id, "files need a sandbox that runs", NULL);
	else
		dispatch(agent, id, name, cbor_map_handle(operation)[0].value);
	free(name);
}
