/*
 * freestyle_exec.c
 *		POST /v5/vms/{id}/exec-await
 */
#include "freestyle.h"

#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "options.h"

#define COMMAND_LIMIT      65536
#define STDIN_LIMIT        (1 << 20)
#define TIMEOUT_DEFAULT_MS 30000
#define TIMEOUT_INLINE_MS  300000 /* for more it must be able to go on without us */
#define TIMEOUT_LIMIT_MS   86400000

/* Of a command that a signal ended, as a shell says it. */
#define EXIT_OF_SIGNAL 128

typedef struct Exec
{
	const char *command;
	const char *user;
	const json_t *environment;
	int64_t timeout_ms;
	EmuText input;
} Exec;

/*
 * What was asked for
 */

static bool
is_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

static bool
environment_valid(const json_t *value)
{
	EmuEnvironment environment = {0};
	bool good = value == NULL || (json_is_object(value) &&
	                              emu_environment_set_json(&environment, value));

	emu_environment_free(&environment);
	return good;
}

static bool
read_input(Exec *exec, const json_t *value)
{
	if (value == NULL)
		return true;
	return is_text(value) &&
	       emu_text_unbase64(&exec->input, json_string_value(value),
	                         json_string_length(value)) &&
	       exec->input.length <= STDIN_LIMIT;
}

/* Answers itself and returns false if it cannot be as long. */
static bool
check_timeout(EmuRequest *request, const Exec *exec)
{
	if (exec->timeout_ms < 1 || exec->timeout_ms > TIMEOUT_LIMIT_MS)
		freestyle_invalid(request, "timeoutMs must be between 1 and %d",
		                  TIMEOUT_LIMIT_MS);
	else if (exec->timeout_ms > TIMEOUT_INLINE_MS && freestyle_config.old_agent)
		freestyle_fail(request, 400, "AGENT_UNSUPPORTED",
		               "the agent of this VM is too old for this timeout");
	else if (exec->timeout_ms > TIMEOUT_INLINE_MS &&
	         !freestyle_call_backgrounds(request))
		freestyle_invalid(request,
		                  "a timeoutMs of more than %d needs a background request",
		                  TIMEOUT_INLINE_MS);
	else
		return true;
	return false;
}

static bool
has_only_known(const json_t *body)
{
	static const char *const names[] = {"command", "timeoutMs", "env", "linuxUser",
	                                    "stdin"};
	size_t known = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		known += json_object_get(body, names[i]) != NULL;
	return known == json_object_size(body);
}

/* Answers itself and returns false if something is wrong. */
static bool
exec_read(Exec *exec, EmuRequest *request, const json_t *body)
{
	const json_t *command = json_object_get(body, "command");
	const json_t *timeout = json_object_get(body, "timeoutMs");
	const json_t *user = json_object_get(body, "linuxUser");

	exec->command = json_string_value(command);
	exec->user = user != NULL ? json_string_value(user) : FREESTYLE_USER;
	exec->environment = json_object_get(body, "env");
	exec->timeout_ms =
	    timeout != NULL ? json_integer_value(timeout) : TIMEOUT_DEFAULT_MS;
	if (!has_only_known(body))
		freestyle_invalid(request, "unknown field");
	else if (!is_text(command) || (timeout != NULL && !json_is_integer(timeout)) ||
	         (user != NULL && !is_text(user)))
		freestyle_invalid(request, "command, timeoutMs and linuxUser are a string, an "
		                           "integer and a string");
	else if (strlen(exec->command) > COMMAND_LIMIT)
		freestyle_invalid(request, "command cannot exceed 64 KiB");
	else if (!environment_valid(exec->environment))
		freestyle_invalid(request, "env must be strings under names of variables");
	else if (!read_input(exec, json_object_get(body, "stdin")))
		freestyle_invalid(request, "stdin must be base64 of at most 1 MiB");
	else if (strcmp(exec->user, FREESTYLE_USER) != 0 && strcmp(exec->user, "root") != 0)
		freestyle_refuse(request, 404, "no such Linux user");
	else
		return check_timeout(request, exec);
	return false;
}

/*
 * The end
 */

static void
answer(EmuRequest *request, const EmuText *output, const EmuText *errors,
       const int *status)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_bytes(&body, "stdout", output->length > 0 ? output->data : "",
	                      output->length);
	emu_json_member_bytes(&body, "stderr", errors->length > 0 ? errors->data : "",
	                      errors->length);
	if (status != NULL)
		emu_json_member_integer(&body, "statusCode", *status);
	else
		emu_json_member_raw(&body, "statusCode", "null");
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

static void
exec_done(EmuJob *job, const EmuProcessEnd *end)
{
	int status = end->signal != 0 ? EXIT_OF_SIGNAL + end->signal : end->code;

	if (end->never_started)
		freestyle_refuse(job->request, 500, end->failure);
	else if (end->failure != NULL)
		freestyle_conflict(job->request,
		                   end->sandbox_gone ? "the VM went away" : end->failure);
	else
		answer(job->request, &job->output, &job->errors,
		       job->timed_out ? NULL : &status);
}

/*
 * The beginning
 */

static void
run(EmuRequest *request, EmuSandbox *sandbox, const Exec *exec)
{
	const char *arguments[] = {"/bin/sh", "-c", exec->command, NULL};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = arguments,
	    .cwd = FREESTYLE_HOME,
	    .output_limit = UINT32_MAX,
	};

	emu_environment_set_basics(&environment, FREESTYLE_HOME, exec->user);
	emu_environment_set_json(&environment, exec->environment);
	line.variables = (const char *const *) environment.variables;
	emu_job_start(request, freestyle_guest(sandbox), &line,
	              exec->input.length > 0 ? exec->input.data : "", exec->input.length,
	              exec->timeout_ms, NULL, exec_done);
	emu_environment_free(&environment);
}

/* The only way to stop a VM; there is nobody left to say how it ended. */
static bool
powers_off(const char *command)
{
	return strcmp(command, "poweroff") == 0 || strcmp(command, "sudo poweroff") == 0;
}

void
freestyle_exec(EmuRequest *request, EmuSandbox *sandbox)
{
	static const EmuText nothing;
	static const int success;
	json_t *body = freestyle_body(request);
	Exec exec = {0};

	if (body == NULL || !exec_read(&exec, request, body))
		;
	else if (powers_off(exec.command))
	{
		freestyle_power_off(sandbox);
		freestyle_conflict(request, "the VM went away");
	}
	else if (emu_no_exec)
		answer(request, &nothing, &nothing, &success);
	else
		run(request, sandbox, &exec);
	emu_text_free(&exec.input);
	json_decref(body);
}
