/*
 * job.c
 *		A process that is run for one request, which gets its answer at the end.
 */
#include "job.h"

#include <stdlib.h>

#include "environment.h"

const char emu_script_read[] = "[ -e \"$1\" ] || exit 44; [ -d \"$1\" ] && exit 40; "
                               "[ -r \"$1\" ] || exit 43; exec cat -- \"$1\"";

static void
job_output(void *owner, bool errors, const char *data, size_t length)
{
	EmuJob *job = owner;

	emu_text_append(errors ? &job->errors : &job->output, data, length);
}

static void
job_left(EmuJob *job)
{
	if (job->open != NULL)
		(*job->open)--;
}

static void
job_ended(void *owner, const EmuProcessEnd *end)
{
	EmuJob *job = owner;

	emu_timer_stop(&job->deadline);
	if (job->request != NULL)
	{
		job_left(job);
		job->done(job, end);
		if (job->request->answer.given)
			emu_request_finish(job->request);
	}
	if (job->release != NULL)
		job->release(job->state);
	emu_text_free(&job->output);
	emu_text_free(&job->errors);
	free(job);
}

static void
job_forget(void *owner)
{
	EmuJob *job = owner;

	job->request = NULL;
	job_left(job);
}

static void
job_expired(void *owner)
{
	EmuJob *job = owner;

	job->timed_out = true;
	emu_process_kill(job->process, 0);
}

EmuJob *
emu_job_start(EmuRequest *request, EmuGuest *guest, const EmuCommandLine *line,
              const char *input, size_t input_length, int64_t timeout_ms,
              unsigned *open, void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	static const EmuProcessEvents events = {job_output, job_ended, NULL, NULL};
	EmuJob *job = emu_alloc(sizeof(EmuJob));

	job->request = request;
	job->open = open;
	if (open != NULL)
		(*open)++;
	job->done = done;
	job->process = emu_process_run(guest, line, &events, job);
	emu_process_input(job->process, input, input_length);
	emu_process_input_end(job->process);
	if (timeout_ms > 0)
		emu_timer_start(&job->deadline, timeout_ms, job_expired, job);
	emu_request_wait(request, job_forget, job);
	return job;
}

EmuJob *
emu_job_start_script(EmuRequest *request, EmuGuest *guest, const EmuScript *script,
                     void (*done)(EmuJob *job, const EmuProcessEnd *end))
{
	const char *arguments[] = {
	    "/bin/bash",          "-c",
	    script->text,         "bash",
	    script->arguments[0], script->arguments[1],
	    script->arguments[2], NULL,
	};
	EmuEnvironment environment = {0};
	EmuCommandLine line = {
	    .arguments = arguments,
	    .cwd = script->home,
	    .output_limit = UINT32_MAX,
	};
	EmuJob *job;

	emu_environment_set_basics(&environment, script->home, script->user);
	line.variables = (const char *const *) environment.variables;
	job = emu_job_start(request, guest, &line, script->input, script->input_length, 0,
	                    script->open, done);
	emu_environment_free(&environment);
	return job;
}
