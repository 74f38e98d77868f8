/*
 * microsandbox_exec.c
 *		Commands: core.exec.request and what follows it.
 *
 * A command belongs to its socket, and is killed with its whole group when
 * that is lost.  It has ended when nobody holds its output open any more.
 */
#include "microsandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

/* Output is told of in pieces of at most this size. */
#define PIECE_SIZE 4096

/* What a command that a signal ended has instead of an exit code. */
#define CODE_OF_SIGNAL (-1)

typedef struct Exec
{
	MicrosandboxOperation operation; /* first */
	EmuProcess *process;
} Exec;

/*
 * How it ends
 */

static cbor_item_t *
payload_of_integer(const char *name, int64_t number)
{
	cbor_item_t *payload = emu_cbor_map(1);

	emu_cbor_put(payload, name, emu_cbor_new_integer(number));
	return payload;
}

static const char *
failure_kind(int error)
{
	switch (error)
	{
		case ENOENT:
			return "not_found";
		case ENOTDIR:
			return "bad_cwd";
		case EACCES:
		case EPERM:
			return "permission_denied";
		case ENOEXEC:
		case EISDIR:
		case ETXTBSY:
			return "not_executable";
		case E2BIG:
		case ELOOP:
		case ENAMETOOLONG:
			return "bad_args";
		case EMFILE:
		case ENFILE:
		case EAGAIN:
			return "resource_limit";
		case ENOMEM:
			return "out_of_memory";
		default:
			return "other";
	}
}

/* The program never ran. */
static cbor_item_t *
failure_payload(const char *kind, int error, const char *message, const char *stage)
{
	cbor_item_t *payload = emu_cbor_map(5);

	emu_cbor_put(payload, "kind", emu_cbor_new_text(kind));
	emu_cbor_put(payload, "errno",
	             error != 0 ? emu_cbor_new_integer(error) : emu_cbor_new_text(NULL));
	emu_cbor_put(payload, "errno_name",
	             emu_cbor_new_text(error != 0 ? strerrorname_np(error) : NULL));
	emu_cbor_put(payload, "message", emu_cbor_new_text(message));
	emu_cbor_put(payload, "stage", emu_cbor_new_text(stage));
	return payload;
}

static void
say_end(Exec *exec, const EmuProcessEnd *end)
{
	if (end->failure != NULL)
		microsandbox_say_last(&exec->operation, "core.exec.failed",
		                      failure_payload(failure_kind(end->error), end->error,
		                                      end->failure, "execvp"));
	else
		microsandbox_say_last(
		    &exec->operation, "core.exec.exited",
		    payload_of_integer("code", end->signal != 0 ? CODE_OF_SIGNAL : end->code));
}

static void
exec_ended(void *owner, const EmuProcessEnd *end)
{
	Exec *exec = owner;

	if (end->sandbox_gone && !end->never_started)
		microsandbox_operation_gone(&exec->operation);
	else if (exec->operation.agent != NULL)
		say_end(exec, end);
	free(exec);
}

/*
 * What it says
 */

static void
exec_started(void *owner, int pid)
{
	Exec *exec = owner;

	if (exec->operation.agent != NULL)
		microsandbox_say(&exec->operation, "core.exec.started",
		                 payload_of_integer("pid", pid));
}

static void
exec_output(void *owner, bool errors, const char *data, size_t length)
{
	Exec *exec = owner;
	size_t piece;

	if (exec->operation.agent != NULL)
		microsandbox_logs_add(microsandbox_details(exec->operation.agent->sandbox),
		                      errors, data, length);
	for (; length > 0 && exec->operation.agent != NULL; data += piece, length -= piece)
	{
		cbor_item_t *payload = emu_cbor_map(1);

		piece = length < PIECE_SIZE ? length : PIECE_SIZE;
		emu_cbor_put(payload, "data", emu_cbor_new_bytes(data, piece));
		microsandbox_say(&exec->operation,
		                 errors ? "core.exec.stderr" : "core.exec.stdout", payload);
	}
}

/*
 * What it is told
 */

static void
hear_input(Exec *exec, const cbor_item_t *payload)
{
	const char *data;
	size_t length;

	if (!emu_cbor_bytes(emu_cbor_member(payload, "data"), &data, &length))
		return;
	if (length > 0)
		emu_process_input(exec->process, data, length);
	else
		emu_process_input_end(exec->process);
}

static void
hear_signal(Exec *exec, const cbor_item_t *payload)
{
	int64_t number;

	if (emu_cbor_integer(emu_cbor_member(payload, "signal"), &number) && number > 0 &&
	    number < NSIG)
		emu_process_signal_group(exec->process, (int) number);
}

static void
exec_hear(MicrosandboxOperation *operation, const char *type,
          const cbor_item_t *payload)
{
	Exec *exec = (Exec *) operation;

	if (strcmp(type, "core.exec.stdin") == 0)
		hear_input(exec, payload);
	else if (strcmp(type, "core.exec.signal") == 0)
		hear_signal(exec, payload);
}

static void
exec_lost(MicrosandboxOperation *operation)
{
	emu_process_kill(((Exec *) operation)->process, 0);
}

/*
 * What is asked for
 */

typedef struct Request
{
	char *command;
	char **arguments; /* all, and NULL */
	size_t argument_count;
	EmuEnvironment environment;
	char *cwd;
	char *user;
} Request;

static void
request_free(Request *wanted)
{
	free(wanted->command);
	for (size_t i = 0; i < wanted->argument_count; i++)
		free(wanted->arguments[i]);
	free(wanted->arguments);
	emu_environment_free(&wanted->environment);
	free(wanted->cwd);
	free(wanted->user);
}

/* A list of texts, which is handed over one by one; nothing is an empty list. */
static bool
read_texts(const cbor_item_t *list, void (*take)(Request *wanted, char *text),
           Request *wanted)
{
	cbor_item_t **items;

	if (list == NULL)
		return true;
	if (!cbor_isa_array(list))
		return false;
	items = cbor_array_handle(list);
	for (size_t i = 0; i < cbor_array_size(list); i++)
	{
		char *text = emu_cbor_text(items[i]);

		if (text == NULL)
			return false;
		take(wanted, text);
	}
	return true;
}

static void
take_argument(Request *wanted, char *text)
{
	wanted->arguments =
	    emu_realloc(wanted->arguments, (wanted->argument_count + 2) * sizeof(char *));
	wanted->arguments[wanted->argument_count++] = text;
	wanted->arguments[wanted->argument_count] = NULL;
}

/* What is no assignment is passed over, as by the agent itself. */
static void
take_variable(Request *wanted, char *text)
{
	char *equals = strchr(text, '=');

	if (equals != NULL && equals != text)
	{
		*equals = '\0';
		emu_environment_set(&wanted->environment, text, equals + 1);
	}
	free(text);
}

static void
set_environment(Request *wanted, const EmuSandbox *sandbox)
{
	const json_t *list = microsandbox_details(sandbox)->environment;
	size_t index;
	json_t *pair;

	emu_environment_set_basics(&wanted->environment, microsandbox_home(sandbox),
	                           MICROSANDBOX_USER);
	if (microsandbox_config.forget_environment)
		return;
	json_array_foreach (list, index, pair)
		emu_environment_set(&wanted->environment,
		                    json_string_value(json_object_get(pair, "key")),
		                    json_string_value(json_object_get(pair, "value")));
}

static bool
read_optional_text(const cbor_item_t *item, char **text)
{
	if (item == NULL || emu_cbor_is_null(item))
		return true;
	*text = emu_cbor_text(item);
	return *text != NULL;
}

static bool
request_read(Request *wanted, const EmuSandbox *sandbox, const cbor_item_t *payload)
{
	const char *workdir = microsandbox_details(sandbox)->workdir;

	set_environment(wanted, sandbox);
	wanted->command = emu_cbor_text(emu_cbor_member(payload, "cmd"));
	if (wanted->command == NULL)
		return false;
	take_argument(wanted, emu_strdup(wanted->command));
	if (!read_texts(emu_cbor_member(payload, "args"), take_argument, wanted) ||
	    !read_texts(emu_cbor_member(payload, "env"), take_variable, wanted) ||
	    !read_optional_text(emu_cbor_member(payload, "cwd"), &wanted->cwd) ||
	    !read_optional_text(emu_cbor_member(payload, "user"), &wanted->user))
		return false;
	if (wanted->cwd == NULL)
		wanted->cwd = emu_strdup(workdir != NULL ? workdir : "/");
	return true;
}

/* With --no-exec a command is over before it has begun. */
static void
nothing_runs(MicrosandboxAgent *agent, uint32_t id)
{
	microsandbox_agent_say(agent, id, 0, "core.exec.started",
	                       payload_of_integer("pid", 1));
	microsandbox_agent_say(agent, id, MICROSANDBOX_TERMINAL, "core.exec.exited",
	                       payload_of_integer("code", 0));
}

static void
run(MicrosandboxAgent *agent, uint32_t id, const Request *wanted)
{
	static const EmuProcessEvents events = {exec_output, exec_ended, NULL,
	                                        exec_started};
	EmuCommandLine line = {
	    .arguments = (const char *const *) wanted->arguments,
	    .variables = (const char *const *) wanted->environment.variables,
	    .cwd = wanted->cwd,
	    .await_streams = true,
	    .output_limit = UINT32_MAX,
	};
	Exec *exec = emu_alloc(sizeof(Exec));

	exec->operation.hear = exec_hear;
	exec->operation.lost = exec_lost;
	microsandbox_operation_begin(agent, &exec->operation, id);
	exec->process =
	    emu_process_run(microsandbox_guest(agent->sandbox), &line, &events, exec);
}

static void
refuse(MicrosandboxAgent *agent, uint32_t id, const char *kind, const char *message)
{
	microsandbox_agent_say(agent, id, MICROSANDBOX_TERMINAL, "core.exec.failed",
	                       failure_payload(kind, 0, message, NULL));
}

static bool
has_limits(const cbor_item_t *payload)
{
	const cbor_item_t *limits = emu_cbor_member(payload, "rlimits");

	return limits != NULL && cbor_isa_array(limits) && cbor_array_size(limits) > 0;
}

void
microsandbox_exec(MicrosandboxAgent *agent, uint32_t id, const cbor_item_t *payload)
{
	Request wanted = {0};

	if (!request_read(&wanted, agent->sandbox, payload))
		microsandbox_agent_complain(agent, id, "invalid_payload", "this is no command",
		                            "core.exec.request");
	else if (emu_cbor_is_true(emu_cbor_member(payload, "tty")))
		refuse(agent, id, "pty_setup_failed", "terminals are not emulated");
	else if (has_limits(payload))
		refuse(agent, id, "resource_limit", "rlimits are not emulated");
	else if (wanted.user != NULL && strncmp(wanted.user, "no-such-", 8) == 0)
		refuse(agent, id, "user_setup_failed", "no such user");
	else if (emu_no_exec)
		nothing_runs(agent, id);
	else
		run(agent, id, &wanted);
	request_free(&wanted);
}
