/*
 * daytona_toolbox.c
 *		Daytona's toolbox: access, one-shot commands, directories.
 */
#include "daytona.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"

/* The path as the daemon inside the sandbox sees it: after the sandbox id. */
static const char *
inner_path(const EmuRequest *request)
{
	const char *slash = strchr(request->path + strlen(DAYTONA_TOOLBOX "/"), '/');

	return slash != NULL ? slash : "/";
}

static const char *
default_code(int status)
{
	switch (status)
	{
		case 400:
			return "BAD_REQUEST";
		case 401:
			return "UNAUTHORIZED";
		case 404:
			return "NOT_FOUND";
		case 408:
			return "REQUEST_TIMEOUT";
		case 409:
			return "CONFLICT";
		default:
			return "INTERNAL_SERVER_ERROR";
	}
}

void
daytona_toolbox_refuse(EmuRequest *request, int status, const char *code,
                       const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "statusCode", status);
	emu_json_member(&body, "source",
	                status == 401 ? "DAYTONA_PROXY" : "DAYTONA_DAEMON");
	emu_json_member(&body, "message", message);
	emu_json_member(&body, "code", code != NULL ? code : default_code(status));
	emu_json_member_time(&body, "timestamp", emu_wall_ms());
	emu_json_member(&body, "path", inner_path(request));
	emu_json_member(&body, "method", request->method);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

EmuGuest *
daytona_guest(EmuSandbox *sandbox)
{
	return emu_sandbox_guest(sandbox, DAYTONA_HOME, DAYTONA_USER);
}

/* False if `more` holds something that is no valid variable. */
bool
daytona_environment(EmuEnvironment *environment, const EmuSandbox *sandbox,
                    const json_t *more)
{
	emu_environment_set_basics(environment, DAYTONA_HOME, DAYTONA_USER);

	/* Names that no shell could use are the sandbox's, not this request's. */
	emu_environment_set_json(environment, daytona_details(sandbox)->environment);
	return emu_environment_set_json(environment, more);
}

DaytonaJob *
daytona_job_start(EmuRequest *request, EmuSandbox *sandbox, const EmuCommandLine *line,
                  const char *input, size_t input_length, int64_t timeout_ms,
                  void (*done)(DaytonaJob *job, const EmuProcessEnd *end))
{
	return emu_job_start(request, daytona_guest(sandbox), line, input, input_length,
	                     timeout_ms, &daytona_details(sandbox)->open_jobs, done);
}

/*
 * POST /process/execute
 */

static void
answer_result(EmuRequest *request, int code, const char *result, size_t length)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "exitCode", code);
	emu_json_member_bytes(&body, "result", result, length);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

static void
execute_done(DaytonaJob *job, const EmuProcessEnd *end)
{
	if (job->timed_out)
		daytona_toolbox_refuse(job->request, 408, "PROCESS_EXECUTION_TIMEOUT",
		                       "command execution timeout");
	else if (end->sandbox_gone && !end->never_started)
		emu_answer_empty(job->request, 502);
	else if (end->failure != NULL)
		answer_result(job->request, -1, end->failure, strlen(end->failure));
	else
		answer_result(job->request, end->code, job->output.data, job->output.length);
}

/* The script goes to the shell's standard input, so its size is no matter. */
static void
execute(EmuRequest *request, EmuSandbox *sandbox, const json_t *body)
{
	static const char *const shell[] = {"/bin/bash", NULL};
	const json_t *command = json_object_get(body, "command");
	const json_t *timeout = json_object_get(body, "timeout");
	const char *cwd = json_string_value(json_object_get(body, "cwd"));
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = shell,
	    .cwd = cwd != NULL && *cwd != '\0' ? cwd : DAYTONA_HOME,
	    .merge_streams = true,
	    .output_limit = DAYTONA_OUTPUT_LIMIT,
	};
	EmuText script = {0};

	if (!json_is_string(command) || json_string_length(command) == 0)
		daytona_toolbox_refuse(request, 400, NULL, "command is required");
	else if (timeout != NULL && !json_is_null(timeout) && !json_is_integer(timeout))
		daytona_toolbox_refuse(request, 400, NULL, "timeout must be an integer");
	else if (!daytona_environment(&environment, sandbox, json_object_get(body, "envs")))
		daytona_toolbox_refuse(request, 400, NULL, "invalid environment variable name");
	else if (emu_no_exec)
		answer_result(request, 0, "", 0);
	else
	{
		line.variables = (const char *const *) environment.variables;
		emu_text_append(&script, json_string_value(command),
		                json_string_length(command));
		emu_text_add(&script, "\n");
		daytona_job_start(request, sandbox, &line, script.data, script.length,
		                  json_integer_value(timeout) * 1000, execute_done);
	}
	emu_text_free(&script);
	emu_environment_free(&environment);
}

static void
answer_directory(EmuRequest *request)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"dir\":\"" DAYTONA_HOME "\"}");
	emu_answer_json(request, 200, &body);
}

/* Path segments: sandbox id, then what. */
static void
toolbox_route(EmuRequest *request, EmuSandbox *sandbox, const EmuPath *path)
{
	bool is_get = strcmp(request->method, "GET") == 0;
	const char *what = path->count > 1 ? path->segments[1] : "";
	const char *which = path->count > 2 ? path->segments[2] : "";

	if (path->count == 2 && is_get &&
	    (strcmp(what, "user-home-dir") == 0 || strcmp(what, "work-dir") == 0))
		answer_directory(request);
	else if (path->count == 3 && strcmp(what, "files") == 0)
		daytona_files_route(request, sandbox, which);
	else if (strcmp(what, "process") == 0 && strcmp(which, "session") == 0)
		daytona_session_route(request, sandbox, path);
	else if (path->count == 3 && strcmp(what, "process") == 0 &&
	         strcmp(which, "execute") == 0 && strcmp(request->method, "POST") == 0)
	{
		json_t *body = daytona_body(request);

		if (body != NULL)
			execute(request, sandbox, body);
		json_decref(body);
	}
	else
		daytona_toolbox_refuse(request, 404, NULL, "page not found");
}

/*
 * The proxy checks access by itself: for a sandbox that is gone, or not of
 * this key, it says 401 and not 404.
 */
void
daytona_toolbox_handle(EmuRequest *request)
{
	const char *key = emu_request_bearer(request);
	EmuAccount *account = key != NULL ? emu_account_if_known(&emu_daytona, key) : NULL;
	EmuSandbox *sandbox = NULL;
	EmuPath path;

	emu_path_split(&path, request->path + strlen(DAYTONA_TOOLBOX "/"));
	if (account != NULL && path.count > 0)
		sandbox = emu_sandbox_by_id(account, path.segments[0]);
	if (sandbox == NULL)
		daytona_toolbox_refuse(request, 401, NULL, "unauthorized");
	else if (daytona_details(sandbox)->state != DAYTONA_STARTED)
		daytona_toolbox_refuse(
		    request, 400, NULL,
		    "bad request: no IP address found. Is the Sandbox started?");
	else
	{
		if (emu_request_header(request, "X-Daytona-Skip-Last-Activity-Update") == NULL)
			daytona_touch(sandbox);
		toolbox_route(request, sandbox, &path);
	}
	emu_path_free(&path);
}
