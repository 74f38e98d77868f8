/*
 * agent37_exec.c
 *		POST /v1/instances/{id}/exec
 *
 * A command belongs to its instance.  Neither a client that goes away nor the
 * limit on how long an answer is waited for ends it.
 */
#include "agent37.h"

#include <stdlib.h>
#include <string.h>

#include "environment.h"
#include "options.h"

/* What an answer has of each stream; of more than that the middle is left out. */
#define OUTPUT_LIMIT 524288
#define OUTPUT_HALF  (OUTPUT_LIMIT / 2)

/* Of a command that a signal ended, as a container says it. */
#define EXIT_OF_SIGNAL 128

#define EXIT_NOT_RUN 126

static const char cut_mark[] = "\n[output truncated]\n";

typedef struct Stream
{
	EmuText begin; /* up to the limit */
	EmuText end;   /* the last of what came then: half the limit, at times more */
	bool cut;
} Stream;

typedef struct Exec
{
	EmuRequest *request; /* NULL once nobody waits for it */
	Stream streams[2];   /* output and errors */
	EmuTimer limit;
} Exec;

/*
 * Output
 */

static void
stream_add(Stream *stream, const char *data, size_t length)
{
	size_t room = OUTPUT_LIMIT - stream->begin.length;
	size_t fits = length < room ? length : room;

	emu_text_append(&stream->begin, data, fits);
	if (fits == length)
		return;
	stream->cut = true;
	emu_text_append(&stream->end, data + fits, length - fits);
	if (stream->end.length > OUTPUT_LIMIT)
	{
		memmove(stream->end.data, stream->end.data + stream->end.length - OUTPUT_HALF,
		        OUTPUT_HALF);
		stream->end.length = OUTPUT_HALF;
	}
}

static void
write_stream(EmuText *body, const char *name, const Stream *stream)
{
	size_t kept = OUTPUT_HALF - (sizeof(cut_mark) - 1);
	size_t of_end = stream->end.length < kept ? stream->end.length : kept;
	size_t of_begin = kept - of_end; /* what came last is there as well */
	EmuText shown = {0};

	if (!stream->cut)
	{
		emu_json_member_bytes(body, name,
		                      stream->begin.length > 0 ? stream->begin.data : "",
		                      stream->begin.length);
		return;
	}
	emu_text_append(&shown, stream->begin.data, OUTPUT_HALF);
	emu_text_add(&shown, cut_mark);
	emu_text_append(&shown, stream->begin.data + stream->begin.length - of_begin,
	                of_begin);
	emu_text_append(&shown, stream->end.data + stream->end.length - of_end, of_end);
	emu_json_member_bytes(body, name, shown.data, shown.length);
	emu_text_free(&shown);
}

static void
exec_output(void *owner, bool errors, const char *data, size_t length)
{
	Exec *exec = owner;

	if (exec->request != NULL)
		stream_add(&exec->streams[errors], data, length);
}

/*
 * The end
 */

static void
answer(EmuRequest *request, int exit_code, const Stream *streams)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "exit_code", exit_code);
	write_stream(&body, "stdout", &streams[0]);
	write_stream(&body, "stderr", &streams[1]);
	emu_json_member_raw(&body, "truncated",
	                    streams[0].cut || streams[1].cut ? "true" : "false");
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

static void
answer_end(Exec *exec, const EmuProcessEnd *end)
{
	if (end->sandbox_gone || end->never_started)
	{
		agent37_fail(exec->request, 502, "provisioning_failed", end->failure);
		return;
	}
	if (end->failure != NULL)
		stream_add(&exec->streams[1], end->failure, strlen(end->failure));
	answer(exec->request,
	       end->failure != NULL ? EXIT_NOT_RUN
	       : end->signal != 0   ? EXIT_OF_SIGNAL + end->signal
	                            : end->code,
	       exec->streams);
}

static void
exec_ended(void *owner, const EmuProcessEnd *end)
{
	Exec *exec = owner;
	EmuRequest *request = exec->request;

	emu_timer_stop(&exec->limit);
	if (request != NULL)
	{
		answer_end(exec, end);
		emu_request_finish(request);
	}
	for (int i = 0; i < 2; i++)
	{
		emu_text_free(&exec->streams[i].begin);
		emu_text_free(&exec->streams[i].end);
	}
	free(exec);
}

static void
exec_forget(void *owner)
{
	Exec *exec = owner;

	exec->request = NULL;
	emu_timer_stop(&exec->limit);
}

static void
limit_struck(void *owner)
{
	Exec *exec = owner;
	EmuRequest *request = exec->request;

	exec->request = NULL;
	agent37_fail(request, 502, "provisioning_failed", "the command took too long");
	emu_request_finish(request);
}

/*
 * The beginning
 */

static void
run(EmuRequest *request, EmuSandbox *sandbox, const char *command)
{
	static const EmuProcessEvents events = {exec_output, exec_ended, NULL, NULL};
	const char *arguments[] = {"/bin/sh", "-c", command, NULL};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = arguments,
	    .cwd = "/",
	    .no_input = true,
	    .output_limit = UINT32_MAX,
	};
	Exec *exec = emu_alloc(sizeof(Exec));

	emu_environment_set_basics(&environment, AGENT37_HOME, AGENT37_USER);
	emu_environment_set_json(&environment, agent37_details(sandbox)->environment);
	line.variables = (const char *const *) environment.variables;
	exec->request = request;
	emu_process_run(agent37_guest(sandbox), &line, &events, exec);
	emu_environment_free(&environment);
	emu_timer_start(&exec->limit, agent37_config.exec_limit, limit_struck, exec);
	emu_request_wait(request, exec_forget, exec);
}

/* The command of a body that has nothing else; NULL once refused. */
static const char *
command_of(EmuRequest *request, const json_t *body)
{
	const json_t *command = json_object_get(body, "command");

	if (!json_is_string(command) || json_object_size(body) != 1)
		agent37_invalid(request, "the body must have a command, and nothing else");
	else if (strlen(json_string_value(command)) != json_string_length(command))
		agent37_invalid(request, "command must not have a NUL");
	else
		return json_string_value(command);
	return NULL;
}

void
agent37_exec(EmuRequest *request, EmuSandbox *sandbox)
{
	static const Stream nothing[2];
	const Agent37Details *details = agent37_details(sandbox);
	json_t *body = agent37_body(request);
	const char *command = body != NULL ? command_of(request, body) : NULL;

	if (command == NULL)
	{
		json_decref(body);
		return;
	}
	if (details->state != AGENT37_RUNNING)
		agent37_invalid(request, "the instance is not running");
	else if (details->booting)
		agent37_edge_fail(request, 502, "container_unreachable");
	else if (emu_no_exec)
		answer(request, 0, nothing);
	else
		run(request, sandbox, command);
	json_decref(body);
}
