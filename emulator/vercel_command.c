/*
 * vercel_command.c
 *		Commands of a session: started, watched, killed, asked about.
 *
 * A command belongs to its session and not to the request that started it.
 * What it has written is kept until the session ends.
 */
#include "vercel.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Kept of the output of one command, per stream. */
#define OUTPUT_LIMIT (16u << 20)

#define TIMEOUT_MINIMUM_MS 100
#define LAST_SIGNAL        64

struct VercelCommand
{
	VercelCommand *next; /* older */
	VercelSession *session;
	EmuProcess *process; /* NULL once it has ended */
	char id[VERCEL_ID_SIZE];
	char *name;
	char *arguments; /* JSON array, in ASCII */
	char *cwd;
	bool started; /* before, nobody knows of it but who asked for it */
	bool ended;
	int exit_code;
	int64_t started_ms;
	int64_t duration_ms;
	EmuText log;      /* lines of output, as they are streamed */
	EmuText rests[2]; /* of each stream, the start of a character */
	VercelWatcher *watchers;
	EmuTimer deadline;
};

EmuGuest *
vercel_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, VERCEL_CWD, VERCEL_USER);
}

char *
vercel_absolute_path(const char *path, const char *cwd)
{
	EmuText text = {0};

	if (*path == '/')
		return emu_strdup(path);
	if (cwd != NULL && *cwd == '/')
		emu_text_add(&text, cwd);
	else
	{
		emu_text_add(&text, VERCEL_CWD);
		if (cwd != NULL && *cwd != '\0')
			emu_text_format(&text, "/%s", cwd);
	}
	if (*path != '\0')
		emu_text_format(&text, "/%s", path);
	return text.data;
}

VercelCommand *
vercel_command_by_id(const VercelSession *session, const char *id)
{
	VercelCommand *command = session->commands;

	while (command != NULL && (!command->started || strcmp(command->id, id) != 0))
		command = command->next;
	return command;
}

/* In ASCII, as all that may become a line of a stream. */
static void
write_members(EmuText *text, const VercelCommand *command)
{
	emu_text_add(text, "{");
	emu_json_member(text, "id", command->id);
	emu_json_key(text, "name");
	emu_json_string_ascii(text, command->name, strlen(command->name));
	emu_json_member_raw(text, "args", command->arguments);
	emu_json_key(text, "cwd");
	emu_json_string_ascii(text, command->cwd, strlen(command->cwd));
	emu_json_member(text, "sessionId", command->session->id);
	if (command->ended)
		emu_json_member_integer(text, "exitCode", command->exit_code);
	else
		emu_json_member_raw(text, "exitCode", "null");
	emu_json_member_integer(text, "startedAt", command->started_ms);
	if (command->ended)
		emu_json_member_integer(text, "durationMs", command->duration_ms);
	emu_text_add(text, "}");
}

void
vercel_command_write(EmuText *text, const VercelCommand *command)
{
	emu_text_add(text, "{\"command\":");
	write_members(text, command);
	emu_text_add(text, "}");
}

static void
command_free(VercelCommand *command)
{
	VercelCommand **place = &command->session->commands;

	while (*place != command)
		place = &(*place)->next;
	*place = command->next;
	vercel_watchers_lose(command->watchers);
	emu_timer_stop(&command->deadline);
	emu_text_free(&command->log);
	emu_text_free(&command->rests[0]);
	emu_text_free(&command->rests[1]);
	free(command->name);
	free(command->arguments);
	free(command->cwd);
	free(command);
}

/* What still ran has heard of its end already. */
void
vercel_commands_clear(VercelSession *session)
{
	while (session->commands != NULL)
		command_free(session->commands);
}

/*
 * Events
 */

static void
command_started(void *owner, int pid)
{
	VercelCommand *command = owner;

	(void) pid;
	command->started = true;
	command->started_ms = emu_wall_ms();
	vercel_watchers_start(command->watchers, command);
}

static void
log_line(VercelCommand *command, bool errors, const char *data, size_t length)
{
	EmuText line = {0};

	if (length == 0)
		return;
	emu_text_add(&line, "{");
	emu_json_member(&line, "stream", errors ? "stderr" : "stdout");
	emu_json_key(&line, "data");
	emu_json_string_ascii(&line, data, length);
	emu_text_add(&line, "}\n");
	emu_text_append(&command->log, line.data, line.length);
	vercel_watchers_output(command->watchers, &line);
	emu_text_free(&line);
}

/* A character that is cut in two waits for its rest. */
static void
command_output(void *owner, bool errors, const char *data, size_t length)
{
	VercelCommand *command = owner;
	EmuText *rest = &command->rests[errors];
	EmuText all = *rest;
	size_t tail;

	memset(rest, 0, sizeof(*rest));
	emu_text_append(&all, data, length);
	tail = emu_utf8_tail(all.data, all.length);
	log_line(command, errors, all.data, all.length - tail);
	if (tail > 0)
		emu_text_append(rest, all.data + all.length - tail, tail);
	emu_text_free(&all);
}

/* Before it ran: who asked for it gets the reason, and there is no command. */
static void
command_failed(VercelCommand *command, const EmuProcessEnd *end)
{
	if (end->never_started)
		vercel_watchers_refuse(command->watchers, 500, end->failure);
	else if (!end->sandbox_gone)
		vercel_watchers_refuse(command->watchers, 400, end->failure);
	command_free(command);
}

static void
command_ended(void *owner, const EmuProcessEnd *end)
{
	VercelCommand *command = owner;

	command->process = NULL;
	if (end->failure != NULL)
	{
		command_failed(command, end);
		return;
	}
	emu_timer_stop(&command->deadline);
	for (int errors = 0; errors < 2; errors++)
		log_line(command, errors, command->rests[errors].data,
		         command->rests[errors].length);
	command->ended = true;
	command->exit_code = end->signal != 0 ? 128 + end->signal : end->code;
	command->duration_ms = emu_wall_ms() - command->started_ms;
	vercel_watchers_end(command->watchers, command);
}

/* With all it has started and not put into a group of its own. */
static void
deadline_struck(void *owner)
{
	VercelCommand *command = owner;

	if (command->process != NULL)
		emu_process_kill(command->process, 0);
}

/*
 * Starting one
 */

static bool
flag_or_nothing(const json_t *value)
{
	return value == NULL || json_is_boolean(value);
}

static const char *
run_problem(const json_t *body)
{
	const json_t *arguments = json_object_get(body, "args");
	const json_t *cwd = json_object_get(body, "cwd");
	const json_t *env = json_object_get(body, "env");
	const json_t *timeout = json_object_get(body, "timeout");
	size_t index;
	json_t *argument;

	if (!emu_is_plain_string(json_object_get(body, "command")) ||
	    json_string_length(json_object_get(body, "command")) == 0)
		return "`command` should be a string that is not empty";
	if (arguments != NULL && !json_is_array(arguments))
		return "`args` should be an array";
	json_array_foreach ((json_t *) (uintptr_t) arguments, index, argument)
		if (!emu_is_plain_string(argument))
			return "`args` should be strings without NUL";
	if (cwd != NULL && !emu_is_plain_string(cwd))
		return "`cwd` should be a string";
	if (env != NULL && vercel_strings_problem(env) != NULL)
		return "`env` should be an object of strings under names of variables";
	if (!flag_or_nothing(json_object_get(body, "sudo")) ||
	    !flag_or_nothing(json_object_get(body, "wait")) ||
	    !flag_or_nothing(json_object_get(body, "logs")))
		return "`sudo`, `wait` and `logs` should be booleans";
	if (timeout != NULL &&
	    (!json_is_integer(timeout) || json_integer_value(timeout) < TIMEOUT_MINIMUM_MS))
		return "`timeout` should be an integer of at least 100";
	return NULL;
}

static VercelCommand *
command_new(VercelSession *session, const json_t *body)
{
	VercelCommand *command = emu_alloc(sizeof(VercelCommand));
	const json_t *arguments = json_object_get(body, "args");
	const char *cwd = json_string_value(json_object_get(body, "cwd"));

	vercel_make_id(command->id, "cmd_");
	command->session = session;
	command->name = emu_strdup(json_string_value(json_object_get(body, "command")));
	command->arguments = arguments != NULL
	                         ? json_dumps(arguments, JSON_COMPACT | JSON_ENSURE_ASCII)
	                         : emu_strdup("[]");
	command->cwd = vercel_absolute_path("", cwd);
	command->next = session->commands;
	session->commands = command;
	return command;
}

/* With --no-exec a command is over before it has begun. */
static void
nothing_runs(VercelCommand *command)
{
	static const EmuProcessEnd end = {0};

	command_started(command, 0);
	command_ended(command, &end);
}

static void
command_execute(VercelCommand *command, const json_t *body)
{
	static const EmuProcessEvents events = {command_output, command_ended, NULL,
	                                        command_started};
	EmuSandbox *sandbox = command->session->sandbox;
	const json_t *arguments = json_object_get(body, "args");
	size_t count = json_array_size(arguments);
	const char **list = emu_alloc((count + 2) * sizeof(char *));
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = list,
	    .cwd = command->cwd,
	    .no_input = true,
	    .output_limit = OUTPUT_LIMIT,
	};

	list[0] = command->name;
	for (size_t i = 0; i < count; i++)
		list[i + 1] = json_string_value(json_array_get(arguments, i));
	emu_environment_set_basics(&environment, VERCEL_CWD, VERCEL_USER);
	emu_environment_set_json(&environment, vercel_details(sandbox)->environment);
	emu_environment_set_json(&environment, json_object_get(body, "env"));
	line.variables = (const char *const *) environment.variables;
	command->process = emu_process_run(vercel_guest(sandbox), &line, &events, command);
	emu_environment_free(&environment);
	free(list);
}

static void
start(EmuRequest *request, VercelSession *session, const json_t *body)
{
	VercelCommand *command = command_new(session, body);
	json_int_t timeout = json_integer_value(json_object_get(body, "timeout"));
	bool wait = json_is_true(json_object_get(body, "wait"));
	bool logs = json_is_true(json_object_get(body, "logs"));

	vercel_watcher_new(&command->watchers, request,
	                   !wait  ? VERCEL_WATCH_START
	                   : logs ? VERCEL_WATCH_RUN
	                          : VERCEL_WATCH_QUIET);
	if (emu_no_exec)
	{
		nothing_runs(command);
		return;
	}
	command_execute(command, body);
	if (timeout > 0)
		emu_timer_start(&command->deadline, timeout, deadline_struck, command);
}

void
vercel_run(EmuRequest *request, VercelSession *session)
{
	json_t *body = vercel_body(request);
	const char *problem = body != NULL ? run_problem(body) : NULL;

	if (problem != NULL)
		emu_refuse_format(request, 400, "Invalid request: %s.", problem);
	else if (body != NULL)
		start(request, session, body);
	json_decref(body);
}

/*
 * Asking about one
 */

static void
answer_command(EmuRequest *request, const VercelCommand *command)
{
	EmuText body = {0};

	vercel_command_write(&body, command);
	emu_answer_json(request, 200, &body);
}

/* Newest first. */
void
vercel_list_commands(EmuRequest *request, VercelSession *session)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"commands\":[");
	for (VercelCommand *command = session->commands; command != NULL;
	     command = command->next)
	{
		if (!command->started)
			continue;
		if (body.data[body.length - 1] != '[')
			emu_text_add(&body, ",");
		write_members(&body, command);
	}
	emu_text_add(&body, "]}");
	emu_answer_json(request, 200, &body);
}

void
vercel_get_command(EmuRequest *request, VercelCommand *command)
{
	char *wait = emu_request_parameter(request, "wait");

	if (command->ended || wait == NULL || strcmp(wait, "true") != 0)
		answer_command(request, command);
	else
		vercel_watcher_new(&command->watchers, request, VERCEL_WATCH_END);
	free(wait);
}

/* From the beginning, and on until it ends. */
void
vercel_get_logs(EmuRequest *request, VercelCommand *command)
{
	VercelWatcher *alone = NULL;
	VercelWatcher **list = command->ended ? &alone : &command->watchers;
	VercelWatcher *watcher = vercel_watcher_new(list, request, VERCEL_WATCH_LOGS);

	vercel_watcher_begin(watcher, &command->log);
	if (command->ended)
		vercel_watchers_end(alone, command);
}

/* To the program alone, not to what it has started. */
void
vercel_kill_command(EmuRequest *request, VercelCommand *command)
{
	json_t *body = vercel_body(request);
	const json_t *number = json_object_get(body, "signal");

	if (body == NULL)
		return;
	if (!json_is_integer(number) || json_integer_value(number) < 1 ||
	    json_integer_value(number) > LAST_SIGNAL)
		vercel_refuse(request, 400,
		              "Invalid request: `signal` should be a number of a signal.");
	else
	{
		if (command->process != NULL)
			emu_process_signal(command->process, (int) json_integer_value(number));
		answer_command(request, command);
	}
	json_decref(body);
}
