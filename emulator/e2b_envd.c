/*
 * e2b_envd.c
 *		The way to envd, the daemon inside a sandbox: access and helpers.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"

/* All of them are the one user a sandbox has. */
static const char *const users[] = {E2B_USER, "root"};

/* How the proxy says that there is no sandbox, or that it is paused. */
void
e2b_answer_gone(EmuRequest *request, const char *id)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "sandboxId", id);
	emu_json_member(&body, "message", "The sandbox was not found");
	emu_json_member_integer(&body, "code", 502);
	emu_text_add(&body, "}");
	emu_answer_json(request, 502, &body);
}

static void
answer_closed_port(EmuRequest *request, const char *id, const char *port)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "sandboxId", id);
	emu_json_member(&body, "message", "The sandbox is running but port is not open");
	emu_json_member_integer(&body, "port", atoi(port));
	emu_json_member_integer(&body, "code", 502);
	emu_text_add(&body, "}");
	emu_answer_json(request, 502, &body);
}

bool
e2b_answer_if_lost(EmuRequest *request, const EmuProcessEnd *end)
{
	const char *id = emu_request_header(request, "E2b-Sandbox-Id");

	if (end->failure == NULL)
		return false;
	if (end->sandbox_gone && !end->never_started)
		e2b_answer_gone(request, id != NULL ? id : "");
	else
		e2b_refuse(request, 500, end->failure);
	return true;
}

/*
 * What is needed to run something
 */

EmuGuest *
e2b_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, E2B_HOME, E2B_USER);
}

/* "~" and what is relative begin at the home. */
char *
e2b_absolute_path(const char *path)
{
	EmuText text = {0};

	if (*path == '/')
		return emu_strdup(path);
	if (path[0] == '~' && (path[1] == '/' || path[1] == '\0'))
		path += path[1] == '/' ? 2 : 1;
	emu_text_add(&text, E2B_HOME);
	if (*path != '\0')
		emu_text_format(&text, "/%s", path);
	return text.data;
}

/* Any name will do that is one for the system. */
static bool
environment_add(EmuEnvironment *environment, const json_t *object)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) object, name, value)
	{
		if (*name == '\0' || strchr(name, '=') != NULL || !emu_is_plain_string(value))
			return false;
		emu_environment_set(environment, name, json_string_value(value));
	}
	return true;
}

/* False if `more` holds something that is no variable. */
bool
e2b_environment(EmuEnvironment *environment, const EmuSandbox *sandbox,
                const char *user, const json_t *more)
{
	emu_environment_set_basics(environment, E2B_HOME, user);
	environment_add(environment, e2b_details(sandbox)->environment);
	return environment_add(environment, more);
}

static const char *
known_user(const char *name)
{
	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++)
		if (strcmp(users[i], name) == 0)
			return users[i];
	return NULL;
}

const char *
e2b_user(EmuRequest *request)
{
	const char *given = emu_request_header(request, "Authorization");
	char *parameter = emu_request_parameter(request, "username");
	EmuText decoded = {0};
	const char *user = E2B_USER;

	if (given != NULL && strncasecmp(given, "Basic ", 6) == 0)
	{
		if (emu_text_unbase64(&decoded, given + 6, strlen(given + 6)) &&
		    decoded.length > 0)
			decoded.data[strcspn(decoded.data, ":")] = '\0';
		user = decoded.length > 0 ? known_user(decoded.data) : NULL;
	}
	else if (parameter != NULL)
		user = known_user(parameter);
	emu_text_free(&decoded);
	free(parameter);
	return user;
}

EmuJob *
e2b_run_script(EmuRequest *request, EmuSandbox *sandbox, const char *script,
               const char *first, const char *second, const char *input,
               size_t input_length, void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	EmuScript order = {
	    .text = script,
	    .arguments = {first, second},
	    .home = E2B_HOME,
	    .user = E2B_USER,
	    .input = input,
	    .input_length = input_length,
	};

	return emu_job_start_script(request, e2b_guest(sandbox), &order, done);
}

/*
 * Access
 */

static void
route(EmuRequest *request, EmuSandbox *sandbox, const char *path)
{
	static const char process[] = "process.Process/";
	static const char filesystem[] = "filesystem.Filesystem/";
	const char *token = emu_request_header(request, "X-Access-Token");
	EmuText body = {0};

	/* Whether it is there may be asked by anybody. */
	if (strcmp(path, "health") == 0)
		emu_answer_empty(request, 204);
	else if (token == NULL || strcmp(token, e2b_details(sandbox)->token) != 0)
	{
		emu_text_add(&body, "{\"code\":401,\"message\":\"unauthorized access, please "
		                    "provide a valid access token or method signing if "
		                    "supported\"}");
		emu_answer_json(request, 401, &body);
	}
	else if (strncmp(path, process, sizeof(process) - 1) == 0)
		e2b_process_route(request, sandbox, path + sizeof(process) - 1);
	else if (strncmp(path, filesystem, sizeof(filesystem) - 1) == 0)
		e2b_filesystem_route(request, sandbox, path + sizeof(filesystem) - 1);
	else if (strcmp(path, "files") == 0)
		e2b_files_handle(request, sandbox);
	else
	{
		emu_text_add(&body, "404 page not found\n");
		emu_answer(request, 404, "text/plain; charset=utf-8", &body);
	}
}

/* The two headers go together: they say which sandbox, and which port of it. */
void
e2b_envd_handle(EmuRequest *request)
{
	const char *id = emu_request_header(request, "E2b-Sandbox-Id");
	const char *port = emu_request_header(request, "E2b-Sandbox-Port");
	EmuSandbox *sandbox;

	if (id == NULL || port == NULL)
	{
		e2b_refuse(request, 400,
		           "the headers E2b-Sandbox-Id and E2b-Sandbox-Port are required");
		return;
	}
	sandbox = e2b_find(NULL, id);
	if (sandbox == NULL || e2b_details(sandbox)->state != E2B_RUNNING)
		e2b_answer_gone(request, id);
	else if (atoi(port) != E2B_ENVD_PORT || e2b_details(sandbox)->envd_down)
		answer_closed_port(request, id, port);
	else
		route(request, sandbox, request->path + strlen(E2B_ENVD "/"));
}
