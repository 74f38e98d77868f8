/*
 * e2b_process.c
 *		process.Process: commands of a sandbox, with and without watchers.
 *
 * A process belongs to its sandbox and not to the request that started it.
 * Who watches sees what comes from then on; what nobody watches is lost, but
 * for the way it ended, which is kept for a while.
 */
#include "e2b.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Kept of the output of one command, per stream. */
#define OUTPUT_LIMIT (64u << 20)

#define KEEPALIVE_MS 90000

struct E2bProcess
{
	E2bProcess *next;
	E2bSandbox *details;
	EmuProcess *process; /* NULL once it has ended */
	int pid;             /* 0 before it runs */
	json_t *config;      /* the command line as it was given */
	char *tag;           /* NULL: none */
	bool has_input;
	bool overdue; /* its time was up while the sandbox was paused */
	bool ended;
	int code;
	int signal_number;
	E2bStream *streams;
	EmuTimer deadline;
	EmuTimer retention; /* how long its end is remembered */
};

static void
process_free(E2bProcess *process)
{
	E2bProcess **place = &process->details->processes;

	while (*place != process)
		place = &(*place)->next;
	*place = process->next;
	while (process->streams != NULL)
		e2b_stream_break(process->streams, process->details->sandbox->id);
	emu_timer_stop(&process->deadline);
	emu_timer_stop(&process->retention);
	json_decref(process->config);
	free(process->tag);
	free(process);
}

static void
retention_over(void *owner)
{
	process_free(owner);
}

/*
 * Events
 */

static void
process_started(void *owner, int pid)
{
	E2bProcess *process = owner;
	E2bStream *next;

	process->pid = pid;
	for (E2bStream *stream = process->streams; stream != NULL; stream = next)
	{
		next = stream->next;
		e2b_stream_begin(stream, pid);
	}
}

static void
process_output(void *owner, bool errors, const char *data, size_t length)
{
	E2bProcess *process = owner;

	for (E2bStream *stream = process->streams; stream != NULL; stream = stream->next)
		e2b_stream_data(stream, errors, data, length);
}

/* Before it ran: the client gets the reason instead of a start. */
static void
process_failed(E2bProcess *process, const EmuProcessEnd *end)
{
	bool lost = end->sandbox_gone && !end->never_started;

	while (!lost && process->streams != NULL)
		e2b_stream_finish(process->streams,
		                  end->never_started ? "internal" : "invalid_argument",
		                  end->failure);
	process_free(process);
}

static void
process_ended(void *owner, const EmuProcessEnd *end)
{
	E2bProcess *process = owner;

	process->process = NULL;
	if (end->failure != NULL)
	{
		process_failed(process, end);
		return;
	}
	emu_timer_stop(&process->deadline);
	process->ended = true;
	process->code = end->code;
	process->signal_number = end->signal;
	while (process->streams != NULL)
	{
		e2b_stream_exit(process->streams, end->code, end->signal);
		e2b_stream_finish(process->streams, NULL, NULL);
	}
	emu_timer_start(&process->retention, e2b_config.exit_retention, retention_over,
	                process);
}

/*
 * The process is killed and the answer ended at the same moment.  Whether the
 * client hears of an error or of a kill is a race there, and a setting here.
 */
static void
deadline_struck(void *owner)
{
	E2bProcess *process = owner;

	if (process->details->state != E2B_RUNNING)
	{
		process->overdue = true;
		return;
	}
	if (process->process != NULL)
		emu_process_signal(process->process, SIGKILL);
	while (process->streams != NULL)
	{
		if (e2b_config.deadline_as_end)
			e2b_stream_exit(process->streams, -1, SIGKILL);
		e2b_stream_finish(process->streams,
		                  e2b_config.deadline_as_end ? NULL : "deadline_exceeded",
		                  "context deadline exceeded");
	}
}

/* The connections to a paused sandbox end, its processes do not. */
void
e2b_processes_pause(E2bSandbox *details)
{
	for (E2bProcess *process = details->processes; process != NULL;
	     process = process->next)
		while (process->streams != NULL)
			e2b_stream_break(process->streams, details->sandbox->id);
}

void
e2b_processes_resume(E2bSandbox *details)
{
	for (E2bProcess *process = details->processes; process != NULL;
	     process = process->next)
		if (process->overdue && process->process != NULL)
			emu_process_signal(process->process, SIGKILL);
}

/* What still ran has heard of its end already: only the ended ones are left. */
void
e2b_processes_clear(E2bSandbox *details)
{
	while (details->processes != NULL)
		process_free(details->processes);
}

/*
 * Start
 */

static const char *
member_problem(const json_t *config)
{
	const json_t *arguments = json_object_get(config, "args");
	const json_t *environment = json_object_get(config, "envs");
	const json_t *cwd = json_object_get(config, "cwd");
	size_t index;
	json_t *argument;

	if (!json_is_object(config) || !json_is_string(json_object_get(config, "cmd")) ||
	    json_string_length(json_object_get(config, "cmd")) == 0)
		return "process.cmd is required";
	if (arguments != NULL && !json_is_array(arguments) && !json_is_null(arguments))
		return "process.args must be an array";
	json_array_foreach ((json_t *) (uintptr_t) arguments, index, argument)
		if (!emu_is_plain_string(argument))
			return "process.args must be strings without NUL";
	if (environment != NULL && !json_is_object(environment) &&
	    !json_is_null(environment))
		return "process.envs must be an object";
	if (cwd != NULL && !json_is_string(cwd) && !json_is_null(cwd))
		return "process.cwd must be a string";
	return NULL;
}

/* Seconds of the header; false for what makes the daemon fall over. */
static bool
read_keepalive(EmuRequest *request, int64_t *keepalive_ms)
{
	const char *text = emu_request_header(request, "Keepalive-Ping-Interval");
	char *end;
	long seconds;

	*keepalive_ms = KEEPALIVE_MS;
	if (text == NULL)
		return true;
	seconds = strtol(text, &end, 10);
	if (*text == '\0' || *end != '\0')
		return true;
	*keepalive_ms = seconds * 1000;
	return seconds > 0;
}

static E2bProcess *
process_new(E2bSandbox *details, const json_t *message)
{
	E2bProcess *process = emu_alloc(sizeof(E2bProcess));
	const char *tag = json_string_value(json_object_get(message, "tag"));

	process->details = details;
	process->config = json_incref(json_object_get(message, "process"));
	process->tag = tag != NULL ? emu_strdup(tag) : NULL;

	/* What is left out means that there is an input. */
	process->has_input = !json_is_false(json_object_get(message, "stdin"));
	process->next = details->processes;
	details->processes = process;
	return process;
}

static void
process_run(E2bProcess *process, const EmuEnvironment *environment)
{
	static const EmuProcessEvents events = {process_output, process_ended, NULL,
	                                        process_started};
	const json_t *arguments = json_object_get(process->config, "args");
	const char *cwd = json_string_value(json_object_get(process->config, "cwd"));
	size_t count = json_array_size(arguments);
	const char **list = emu_alloc((count + 2) * sizeof(char *));
	char *directory = e2b_absolute_path(cwd != NULL ? cwd : "");
	EmuCommandLine line = {
	    .arguments = list,
	    .variables = (const char *const *) environment->variables,
	    .cwd = directory,
	    .no_input = !process->has_input,
	    .await_streams = true,
	    .output_limit = OUTPUT_LIMIT,
	};

	list[0] = json_string_value(json_object_get(process->config, "cmd"));
	for (size_t i = 0; i < count; i++)
		list[i + 1] = json_string_value(json_array_get(arguments, i));
	process->process =
	    emu_process_run(e2b_guest(process->details->sandbox), &line, &events, process);
	free(directory);
	free(list);
}

/* With --no-exec a command is over before it has begun. */
static void
answer_nothing_ran(EmuRequest *request, int64_t keepalive_ms)
{
	E2bStream *list = NULL;
	E2bStream *stream = e2b_stream_new(&list, request, keepalive_ms);

	stream->collected = true;
	e2b_stream_begin(stream, 1);
	if (list == NULL)
		return;
	e2b_stream_exit(stream, 0, 0);
	e2b_stream_finish(stream, NULL, NULL);
}

static void
start_process(EmuRequest *request, EmuSandbox *sandbox, const json_t *message,
              const EmuEnvironment *environment)
{
	E2bSandbox *details = e2b_details(sandbox);
	int64_t timeout_ms = e2b_stream_timeout(request);
	int64_t keepalive_ms;
	E2bProcess *process;

	if (!read_keepalive(request, &keepalive_ms))
	{
		/* Unchecked, the daemon makes a ticker of it, and that is its end. */
		details->envd_down = true;
		e2b_processes_pause(details);
		e2b_answer_gone(request, sandbox->id);
		return;
	}
	if (emu_no_exec)
	{
		answer_nothing_ran(request, keepalive_ms);
		return;
	}
	process = process_new(details, message);
	e2b_stream_new(&process->streams, request, keepalive_ms);
	process_run(process, environment);
	if (timeout_ms > 0)
		emu_timer_start(&process->deadline, timeout_ms, deadline_struck, process);
}

static void
start(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *message = e2b_stream_message(request);
	const json_t *config = json_object_get(message, "process");
	const char *problem = message != NULL ? member_problem(config) : NULL;
	const char *user = e2b_user(request);
	EmuEnvironment environment = {0};

	if (message == NULL)
		return;
	if (problem != NULL)
		e2b_stream_refuse(request, "invalid_argument", problem);
	else if (user == NULL)
		e2b_stream_refuse(request, "unauthenticated", "invalid username");
	else if (e2b_stream_timeout(request) < 0)
		e2b_stream_refuse(request, "invalid_argument",
		                  "parse timeout: it is not a number of at most 10 digits");
	else if (json_is_object(json_object_get(message, "pty")))
		e2b_stream_refuse(request, "unimplemented", "terminals are not emulated");
	else if (!e2b_environment(&environment, sandbox, user,
	                          json_object_get(config, "envs")))
		e2b_stream_refuse(request, "invalid_argument",
		                  "process.envs must be strings under usable names");
	else
		start_process(request, sandbox, message, &environment);
	emu_environment_free(&environment);
	json_decref(message);
}

/*
 * Finding a process again
 */

/* By number or by tag, the newest first; ended ones only if asked for. */
static E2bProcess *
process_find(const E2bSandbox *details, const json_t *message, bool even_ended)
{
	const json_t *selector = json_object_get(message, "process");
	const json_t *pid = json_object_get(selector, "pid");
	const char *tag = json_string_value(json_object_get(selector, "tag"));

	for (E2bProcess *process = details->processes; process != NULL;
	     process = process->next)
	{
		if (process->pid == 0 || (process->ended && !even_ended))
			continue;
		if (json_is_integer(pid)
		        ? json_integer_value(pid) == process->pid
		        : tag != NULL && process->tag != NULL && strcmp(tag, process->tag) == 0)
			return process;
	}
	return NULL;
}

static void
write_absence(EmuText *text, const json_t *message)
{
	const json_t *selector = json_object_get(message, "process");
	const json_t *pid = json_object_get(selector, "pid");
	const char *tag = json_string_value(json_object_get(selector, "tag"));

	if (json_is_integer(pid))
		emu_text_format(text, "process with pid %lld not found",
		                (long long) json_integer_value(pid));
	else
		emu_text_format(text, "process with tag %s not found", tag != NULL ? tag : "");
}

static void
watch_process(EmuRequest *request, E2bProcess *process, int64_t keepalive_ms)
{
	E2bStream *stream = e2b_stream_new(&process->streams, request, keepalive_ms);

	e2b_stream_begin(stream, process->pid);
	if (process->ended)
	{
		e2b_stream_exit(stream, process->code, process->signal_number);
		e2b_stream_finish(stream, NULL, NULL);
	}
	else
		e2b_stream_limit(stream, e2b_stream_timeout(request));
}

static void
watch(EmuRequest *request, EmuSandbox *sandbox)
{
	json_t *message = e2b_stream_message(request);
	E2bProcess *process;
	EmuText absence = {0};
	int64_t keepalive_ms;

	if (message == NULL)
		return;
	process = process_find(e2b_details(sandbox), message, true);
	if (e2b_stream_timeout(request) < 0)
		e2b_stream_refuse(request, "invalid_argument",
		                  "parse timeout: it is not a number of at most 10 digits");
	else if (process == NULL)
	{
		write_absence(&absence, message);
		e2b_stream_refuse(request, "not_found", absence.data);
		emu_text_free(&absence);
	}
	else
	{
		if (!read_keepalive(request, &keepalive_ms))
			keepalive_ms = KEEPALIVE_MS;
		watch_process(request, process, keepalive_ms);
	}
	json_decref(message);
}

/*
 * Calls with one answer
 */

/* Empty members are left out. */
static void
write_process(EmuText *text, const E2bProcess *process)
{
	static const char *const members[] = {"cmd", "args", "envs", "cwd"};
	json_t *config = json_object();
	char *json;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
	{
		json_t *value = json_object_get(process->config, members[i]);

		if (json_is_string(value) || json_array_size(value) > 0 ||
		    json_object_size(value) > 0)
			json_object_set(config, members[i], value);
	}
	json = json_dumps(config, JSON_COMPACT);
	emu_text_add(text, text->data[text->length - 1] == '[' ? "{" : ",{");
	emu_json_member_raw(text, "config", json);
	emu_json_member_integer(text, "pid", process->pid);
	if (process->tag != NULL)
		emu_json_member(text, "tag", process->tag);
	emu_text_add(text, "}");
	free(json);
	json_decref(config);
}

static void
list_processes(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	EmuText body = {0};
	EmuText list = {0};

	(void) message;
	emu_text_add(&list, "[");
	for (E2bProcess *process = e2b_details(sandbox)->processes; process != NULL;
	     process = process->next)
		if (process->pid != 0 && !process->ended)
			write_process(&list, process);
	emu_text_add(&list, "]");
	emu_text_add(&body, "{");
	if (list.length > 2)
		emu_json_member_raw(&body, "processes", list.data);
	emu_text_add(&body, "}");
	e2b_unary_answer(request, &body);
	emu_text_free(&list);
}

static void
answer_done(EmuRequest *request)
{
	EmuText body = {0};

	emu_text_add(&body, "{}");
	e2b_unary_answer(request, &body);
}

/* NULL once it is answered that there is none. */
static E2bProcess *
process_for(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	E2bProcess *process = process_find(e2b_details(sandbox), message, false);
	EmuText absence = {0};

	if (process == NULL)
	{
		write_absence(&absence, message);
		e2b_unary_refuse(request, "not_found", absence.data);
		emu_text_free(&absence);
	}
	return process;
}

static void
send_signal(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	const json_t *given = json_object_get(message, "signal");
	const char *name = json_is_string(given) ? json_string_value(given) : "";
	int number = strcmp(name, "SIGNAL_SIGKILL") == 0 ? SIGKILL
	             : strcmp(name, "SIGNAL_SIGTERM") == 0
	                 ? SIGTERM
	                 : (int) json_integer_value(given);
	E2bProcess *process = process_for(request, sandbox, message);

	if (process == NULL)
		return;
	if (number != SIGKILL && number != SIGTERM)
	{
		e2b_unary_refuse(request, "unimplemented", "invalid signal");
		return;
	}
	emu_process_signal(process->process, number);
	answer_done(request);
}

static void
send_input(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	const json_t *input = json_object_get(message, "input");
	const json_t *data = json_object_get(input, "stdin");
	E2bProcess *process = process_for(request, sandbox, message);
	EmuText bytes = {0};

	if (process == NULL)
		return;
	if (!json_is_string(data))
		e2b_unary_refuse(request, "unimplemented", "invalid input type");
	else if (json_string_length(data) > 0 &&
	         !emu_text_unbase64(&bytes, json_string_value(data),
	                            json_string_length(data)))
		e2b_unary_refuse(request, "invalid_argument", "input.stdin is not base64");
	else if (!process->has_input)
		e2b_unary_refuse(request, "internal",
		                 "error writing to stdin: stdin not enabled or closed");
	else
	{
		emu_process_input(process->process, bytes.data, bytes.length);
		answer_done(request);
	}
	emu_text_free(&bytes);
}

static void
close_input(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	E2bProcess *process = process_for(request, sandbox, message);

	if (process == NULL)
		return;
	if (!process->has_input)
	{
		e2b_unary_refuse(request, "internal",
		                 "error closing stdin: stdin not enabled or closed");
		return;
	}
	process->has_input = false;
	emu_process_input_end(process->process);
	answer_done(request);
}

static void
refuse_terminal(EmuRequest *request, EmuSandbox *sandbox, const json_t *message)
{
	(void) sandbox;
	(void) message;
	e2b_unary_refuse(request, "unimplemented", "terminals are not emulated");
}

/* `method` is the part of the path after the service. */
void
e2b_process_route(EmuRequest *request, EmuSandbox *sandbox, const char *method)
{
	static const struct
	{
		const char *method;
		void (*handle)(EmuRequest *request, EmuSandbox *sandbox, const json_t *message);
	} calls[] = {
	    {"List", list_processes},    {"SendSignal", send_signal},
	    {"SendInput", send_input},   {"CloseStdin", close_input},
	    {"Update", refuse_terminal},
	};
	json_t *message;

	if (strcmp(method, "Start") == 0)
		start(request, sandbox);
	else if (strcmp(method, "Connect") == 0)
		watch(request, sandbox);
	else
	{
		for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
			if (strcmp(calls[i].method, method) == 0)
			{
				message = e2b_unary_message(request);
				if (message != NULL)
					calls[i].handle(request, sandbox, message);
				json_decref(message);
				return;
			}
		e2b_unary_refuse_format(request, "unimplemented", "%s is not emulated", method);
	}
}
