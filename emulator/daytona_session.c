/*
 * daytona_session.c
 *		Sessions: one shell each, in which commands run one after the other.
 *
 * A command is sourced in the session's shell, so that its cd and export
 * stay; the shell then reports the exit code.  A command that makes the
 * shell itself exit is therefore never reported as ended, and whoever waits
 * for it waits until the session is deleted.
 */
#include "daytona.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* How long a session's processes have after SIGTERM. */
#define KILL_GRACE_MS 500

/* From this version of the client on, answers carry both streams apart. */
#define SPLIT_VERSION_MINOR 167

typedef struct SessionCommand SessionCommand;

struct SessionCommand
{
	SessionCommand *next;
	DaytonaSession *session;
	char id[EMU_UUID_SIZE];
	char *text;
	size_t text_length;
	EmuProcess *process; /* NULL if there is none any more */
	bool ended;
	int exit_code;
	DaytonaLog log;
	EmuRequest *waiting; /* the synchronous call, or NULL */
};

struct DaytonaSession
{
	DaytonaSession *next;
	DaytonaSandbox *details;
	char *id;
	EmuProcess *shell;        /* NULL if it never ran or its sandbox is gone */
	char *failure;            /* why it never ran */
	SessionCommand *commands; /* oldest first */
	EmuRequest *deleting;     /* the call that waits for the end */
	bool closing;
};

/*
 * Shapes of an answer, chosen by the version the client declares
 */

static bool
client_wants_split(EmuRequest *request)
{
	const char *version = emu_request_header(request, "X-Daytona-SDK-Version");
	int major = 0;
	int minor = 0;

	if (version == NULL || sscanf(version, "%d.%d", &major, &minor) < 2)
		return false;
	return major > 0 || minor >= SPLIT_VERSION_MINOR;
}

static bool
client_wants_frames(EmuRequest *request)
{
	const char *split = emu_request_header(request, "X-Daytona-Split-Output");

	return split != NULL && strcmp(split, "true") == 0;
}

static void
write_output(EmuText *body, EmuRequest *request, const SessionCommand *command)
{
	EmuText output = {0};
	EmuText errors = {0};
	const EmuText *frames = &command->log.frames;

	if (client_wants_split(request))
	{
		daytona_log_split(frames, &output, &errors);
		emu_json_member_bytes(body, "output", frames->data, frames->length);
		emu_json_member_bytes(body, "stdout", output.data, output.length);
		emu_json_member_bytes(body, "stderr", errors.data, errors.length);
	}
	else if (client_wants_frames(request))
		emu_json_member_bytes(body, "output", frames->data, frames->length);
	else
	{
		daytona_log_split(frames, &output, &output);
		emu_json_member_bytes(body, "output", output.data, output.length);
	}
	emu_text_free(&output);
	emu_text_free(&errors);
}

static void
answer_executed(EmuRequest *request, const SessionCommand *command)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "cmdId", command->id);
	write_output(&body, request, command);
	emu_json_member_integer(&body, "exitCode", command->exit_code);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

static void
answer_accepted(EmuRequest *request, const SessionCommand *command)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "cmdId", command->id);
	emu_text_add(&body,
	             ",\"output\":null,\"stdout\":null,\"stderr\":null,\"exitCode\":null}");
	emu_answer_json(request, 202, &body);
}

/*
 * Events of a command
 */

static void
command_output(void *owner, bool errors, const char *data, size_t length)
{
	daytona_log_add(&((SessionCommand *) owner)->log, errors, data, length);
}

static void
command_ended(void *owner, const EmuProcessEnd *end)
{
	SessionCommand *command = owner;
	EmuRequest *waiting = command->waiting;

	command->waiting = NULL;
	if (end->failure == NULL)
	{
		daytona_log_complete(&command->log);
		command->ended = true;
		command->exit_code = end->code;
	}
	if (waiting == NULL)
		return;
	if (end->failure == NULL)
		answer_executed(waiting, command);
	else if (end->sandbox_gone && !end->never_started)
		emu_answer_empty(waiting, 502);
	else
		daytona_toolbox_refuse(waiting, end->never_started ? 502 : 400, NULL,
		                       end->failure);
	emu_request_finish(waiting);
}

static void
command_forget(void *owner)
{
	((SessionCommand *) owner)->waiting = NULL;
}

static void
command_free(SessionCommand *command)
{
	EmuRequest *waiting = command->waiting;

	if (waiting != NULL)
	{
		daytona_toolbox_refuse(waiting, 400, NULL, "session cancelled");
		emu_request_finish(waiting);
	}
	if (command->process != NULL)
		emu_process_forget(command->process);
	daytona_log_free(&command->log);
	free(command->text);
	free(command);
}

static SessionCommand *
command_new(DaytonaSession *session, const json_t *text)
{
	static const EmuProcessEvents events = {command_output, command_ended, NULL, NULL};
	SessionCommand *command = emu_alloc(sizeof(SessionCommand));
	SessionCommand **place = &session->commands;

	emu_uuid(command->id);
	command->session = session;
	command->text_length = json_string_length(text);
	command->text = emu_alloc(command->text_length + 1);
	memcpy(command->text, json_string_value(text), command->text_length);
	while (*place != NULL)
		place = &(*place)->next;
	*place = command;
	if (emu_no_exec)
		command->ended = command->log.complete = true;
	else if (session->shell != NULL)
		command->process =
		    emu_process_source(session->shell, command->text, command->text_length,
		                       DAYTONA_OUTPUT_LIMIT, &events, command);
	return command;
}

/*
 * Sessions
 */

static void
session_free(DaytonaSession *session)
{
	DaytonaSession **place = &session->details->sessions;
	SessionCommand *next;

	while (*place != session)
		place = &(*place)->next;
	*place = session->next;
	for (SessionCommand *command = session->commands; command != NULL; command = next)
	{
		next = command->next;
		command_free(command);
	}
	if (session->deleting != NULL)
	{
		emu_answer_empty(session->deleting, 204);
		emu_request_finish(session->deleting);
	}
	if (session->shell != NULL)
		emu_process_forget(session->shell);
	free(session->failure);
	free(session->id);
	free(session);
}

/* Does a client wait for a command, or follow one? */
bool
daytona_sessions_busy(const DaytonaSandbox *details)
{
	for (DaytonaSession *session = details->sessions; session != NULL;
	     session = session->next)
		for (SessionCommand *command = session->commands; command != NULL;
		     command = command->next)
			if (command->waiting != NULL || command->log.followers != NULL)
				return true;
	return false;
}

void
daytona_sessions_clear(DaytonaSandbox *details)
{
	while (details->sessions != NULL)
		session_free(details->sessions);
}

static void
shell_output(void *owner, bool errors, const char *data, size_t length)
{
	/* Complaints of the shell itself belong to no command. */
	(void) owner;
	(void) errors;
	(void) data;
	(void) length;
}

/* A shell that has ended by itself leaves its session as it is. */
static void
shell_ended(void *owner, const EmuProcessEnd *end)
{
	DaytonaSession *session = owner;

	if (end->failure != NULL)
	{
		free(session->failure);
		session->failure = emu_strdup(end->failure);
	}
	if (end->sandbox_gone && session->closing)
		session_free(session);
}

static void
shell_killed(void *owner)
{
	session_free(owner);
}

static void
shell_start(DaytonaSession *session)
{
	static const EmuProcessEvents events = {shell_output, shell_ended, shell_killed,
	                                        NULL};
	static const char *const shell[] = {"/bin/bash", NULL};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = shell,
	    .cwd = DAYTONA_HOME,
	    .keep = true,
	};
	EmuSandbox *sandbox = session->details->sandbox;

	daytona_environment(&environment, sandbox, NULL);
	line.variables = (const char *const *) environment.variables;
	session->shell = emu_process_run(daytona_guest(sandbox), &line, &events, session);
	emu_environment_free(&environment);
}

static DaytonaSession *
session_find(EmuSandbox *sandbox, const char *id)
{
	DaytonaSession *session = daytona_details(sandbox)->sessions;

	while (session != NULL && (session->closing || strcmp(session->id, id) != 0))
		session = session->next;
	return session;
}

static void
session_create(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	const char *id = json_string_value(json_object_get(body, "sessionId"));
	DaytonaSession *session;

	if (id == NULL || *id == '\0')
		daytona_toolbox_refuse(request, 400, NULL, "sessionId is required");
	else if (strcmp(id, "entrypoint") == 0)
		daytona_toolbox_refuse(request, 400, NULL, "session id entrypoint is reserved");
	else if (session_find(sandbox, id) != NULL)
		daytona_toolbox_refuse(request, 409, NULL, "session already exists");
	else
	{
		session = emu_alloc(sizeof(DaytonaSession));
		session->details = daytona_details(sandbox);
		session->id = emu_strdup(id);
		session->next = session->details->sessions;
		session->details->sessions = session;
		if (!emu_no_exec)
			shell_start(session);
		emu_answer_empty(request, 201);
	}
}

static void
delete_forget(void *owner)
{
	((DaytonaSession *) owner)->deleting = NULL;
}

static void
session_delete(EmuRequest *request, DaytonaSession *session)
{
	session->closing = true;
	if (session->shell == NULL || session->failure != NULL)
	{
		session_free(session);
		emu_answer_empty(request, 204);
		return;
	}
	session->deleting = request;
	emu_request_wait(request, delete_forget, session);
	emu_process_kill(session->shell, KILL_GRACE_MS);
}

static void
session_execute(EmuRequest *request, DaytonaSession *session, const json_t *body)
{
	const json_t *text = json_object_get(body, "command");
	bool is_async = json_is_true(json_object_get(body, "runAsync")) ||
	                json_is_true(json_object_get(body, "async"));
	SessionCommand *command;

	if (!json_is_string(text) || json_string_length(text) == 0)
	{
		daytona_toolbox_refuse(request, 400, NULL, "command is required");
		return;
	}
	if (session->failure != NULL)
	{
		daytona_toolbox_refuse(request, 502, NULL, session->failure);
		return;
	}
	command = command_new(session, text);
	if (is_async)
		answer_accepted(request, command);
	else if (command->ended)
		answer_executed(request, command);
	else
	{
		command->waiting = request;
		emu_request_wait(request, command_forget, command);
	}
}

/*
 * Showing
 */

static void
write_command(EmuText *body, const SessionCommand *command)
{
	emu_text_add(body,
	             body->length > 0 && body->data[body->length - 1] == '}' ? ",{" : "{");
	emu_json_member(body, "id", command->id);
	emu_json_member_bytes(body, "command", command->text, command->text_length);
	if (command->ended)
		emu_json_member_integer(body, "exitCode", command->exit_code);
	emu_text_add(body, "}");
}

static void
write_session(EmuText *body, const DaytonaSession *session)
{
	emu_text_add(body,
	             body->length > 0 && body->data[body->length - 1] == '}' ? ",{" : "{");
	emu_json_member(body, "sessionId", session->id);
	emu_json_key(body, "commands");
	emu_text_add(body, "[");
	for (SessionCommand *command = session->commands; command != NULL;
	     command = command->next)
		write_command(body, command);
	emu_text_add(body, "]}");
}

static void
show_sessions(EmuRequest *request, EmuSandbox *sandbox)
{
	EmuText body = {0};

	emu_text_add(&body, "[");
	for (DaytonaSession *session = daytona_details(sandbox)->sessions; session != NULL;
	     session = session->next)
		write_session(&body, session);
	emu_text_add(&body, "]");
	emu_answer_json(request, 200, &body);
}

static void
show_session(EmuRequest *request, DaytonaSession *session)
{
	EmuText body = {0};

	write_session(&body, session);
	emu_answer_json(request, 200, &body);
}

static void
show_command(EmuRequest *request, SessionCommand *command)
{
	EmuText body = {0};

	write_command(&body, command);
	emu_answer_json(request, 200, &body);
}

static void
show_logs(EmuRequest *request, SessionCommand *command)
{
	const EmuText *frames = &command->log.frames;
	EmuText body = {0};
	char *follow = emu_request_parameter(request, "follow");

	if (follow != NULL && strcmp(follow, "true") == 0)
		daytona_log_follow(&command->log, request);
	else if (client_wants_split(request))
	{
		emu_text_add(&body, "{");
		write_output(&body, request, command);
		emu_text_add(&body, "}");
		emu_answer_json(request, 200, &body);
	}
	else
	{
		if (client_wants_frames(request))
			emu_text_append(&body, frames->data, frames->length);
		else
			daytona_log_split(frames, &body, &body);
		emu_answer(request, 200, "text/plain; charset=utf-8", &body);
	}
	free(follow);
}

static void
send_input(EmuRequest *request, SessionCommand *command)
{
	json_t *body = daytona_body(request);
	const json_t *data = json_object_get(body, "data");

	if (body == NULL)
		return;
	if (!json_is_string(data))
		daytona_toolbox_refuse(request, 400, NULL, "data is required");
	else if (command->ended)
		daytona_toolbox_refuse(request, 410, "COMMAND_ALREADY_COMPLETED",
		                       "command has already ended");
	else
	{
		if (command->process != NULL)
			emu_process_input(command->process, json_string_value(data),
			                  json_string_length(data));
		emu_answer_empty(request, 204);
	}
	json_decref(body);
}

/*
 * Routing.  Path segments: sandbox id, "process", "session", session id,
 * "exec" or "command", command id, "logs" or "input".
 */

static void
route_command(EmuRequest *request, DaytonaSession *session, const EmuPath *path)
{
	SessionCommand *command = session->commands;
	bool is_get = strcmp(request->method, "GET") == 0;

	while (command != NULL && strcmp(command->id, path->segments[5]) != 0)
		command = command->next;
	if (command == NULL)
		daytona_toolbox_refuse(request, 404, NULL, "command not found");
	else if (path->count == 6 && is_get)
		show_command(request, command);
	else if (path->count == 7 && is_get && strcmp(path->segments[6], "logs") == 0)
		show_logs(request, command);
	else if (path->count == 7 && strcmp(request->method, "POST") == 0 &&
	         strcmp(path->segments[6], "input") == 0)
		send_input(request, command);
	else
		daytona_toolbox_refuse(request, 404, NULL, "page not found");
}

static void
route_session(EmuRequest *request, DaytonaSession *session, const EmuPath *path)
{
	json_t *body;

	if (path->count == 4 && strcmp(request->method, "GET") == 0)
		show_session(request, session);
	else if (path->count == 4 && strcmp(request->method, "DELETE") == 0)
		session_delete(request, session);
	else if (path->count == 5 && strcmp(path->segments[4], "exec") == 0 &&
	         strcmp(request->method, "POST") == 0)
	{
		body = daytona_body(request);
		if (body != NULL)
			session_execute(request, session, body);
		json_decref(body);
	}
	else if ((path->count == 6 || path->count == 7) &&
	         strcmp(path->segments[4], "command") == 0)
		route_command(request, session, path);
	else
		daytona_toolbox_refuse(request, 404, NULL, "page not found");
}

void
daytona_session_route(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path)
{
	DaytonaSession *session;
	json_t *body;

	if (path->count == 3 && strcmp(request->method, "POST") == 0)
	{
		body = daytona_body(request);
		if (body != NULL)
			session_create(request, sandbox, body);
		json_decref(body);
	}
	else if (path->count == 3 && strcmp(request->method, "GET") == 0)
		show_sessions(request, sandbox);
	else if (path->count < 4)
		daytona_toolbox_refuse(request, 404, NULL, "page not found");
	else if ((session = session_find(sandbox, path->segments[3])) != NULL)
		route_session(request, session, path);
	else
		daytona_toolbox_refuse(request, 404, NULL, "session not found");
}
