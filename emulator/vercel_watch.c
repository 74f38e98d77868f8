/*
 * vercel_watch.c
 *		Requests that wait for what a command does: to run, to write, to end.
 *
 * Those that are answered by a stream get one JSON text per line, in ASCII:
 * the official client takes each piece that it reads for whole characters.
 * If a fault has been chosen for the request there must be something to
 * spoil, so its lines are collected and sent when the command has ended.
 */
#include "vercel.h"

#include <stdlib.h>
#include <string.h>

/* Exactly: the official client takes no parameters. */
#define STREAM_TYPE "application/x-ndjson"

struct VercelWatcher
{
	VercelWatcher *next;
	VercelWatcher **head; /* the list it is in */
	EmuRequest *request;
	VercelWatch kind;
	bool begun; /* the stream is on its way */
	bool collected;
	EmuText lines; /* collected so far */
};

static void
watcher_free(VercelWatcher *watcher)
{
	VercelWatcher **place = watcher->head;

	while (*place != watcher)
		place = &(*place)->next;
	*place = watcher->next;
	emu_text_free(&watcher->lines);
	free(watcher);
}

/* The client has gone: the command does not care. */
static void
watcher_forget(void *owner)
{
	watcher_free(owner);
}

VercelWatcher *
vercel_watcher_new(VercelWatcher **head, EmuRequest *request, VercelWatch kind)
{
	VercelWatcher *watcher = emu_alloc(sizeof(VercelWatcher));

	watcher->head = head;
	watcher->next = *head;
	*head = watcher;
	watcher->request = request;
	watcher->kind = kind;
	watcher->collected = request->fault != NULL;
	emu_request_wait(request, watcher_forget, watcher);
	return watcher;
}

/*
 * Answering
 */

static void
watcher_answer(VercelWatcher *watcher, const VercelCommand *command)
{
	EmuRequest *request = watcher->request;
	EmuText body = {0};

	vercel_command_write(&body, command);
	emu_answer_json(request, 200, &body);
	watcher_free(watcher);
	emu_request_finish_waiting(request);
}

static void
watcher_refuse(VercelWatcher *watcher, int status, const char *message)
{
	EmuRequest *request = watcher->request;

	vercel_refuse(request, status, message);
	watcher_free(watcher);
	emu_request_finish_waiting(request);
}

static void
watcher_add(VercelWatcher *watcher, const EmuText *lines)
{
	if (watcher->collected)
		emu_text_append(&watcher->lines, lines->data, lines->length);
	else
		emu_stream_add(watcher->request, lines->data, lines->length);
}

void
vercel_watcher_begin(VercelWatcher *watcher, const EmuText *lines)
{
	watcher->begun = true;
	if (!watcher->collected)
		emu_answer_stream(watcher->request, 200, STREAM_TYPE, watcher_forget, watcher);
	watcher_add(watcher, lines);
	if (!watcher->collected)
		emu_request_finish_waiting(watcher->request);
}

static void
watcher_finish(VercelWatcher *watcher)
{
	EmuRequest *request = watcher->request;
	bool collected = watcher->collected;

	if (collected)
		emu_answer(request, 200, STREAM_TYPE, &watcher->lines);
	watcher_free(watcher);
	if (collected)
		emu_request_finish_waiting(request);
	else
		emu_stream_end(request);
}

/*
 * Events; the next watcher is looked up before one may end
 */

static bool
shows_command(const VercelWatcher *watcher)
{
	return watcher->kind == VERCEL_WATCH_RUN || watcher->kind == VERCEL_WATCH_QUIET;
}

static bool
shows_output(const VercelWatcher *watcher)
{
	return watcher->kind == VERCEL_WATCH_RUN || watcher->kind == VERCEL_WATCH_LOGS;
}

static void
watcher_started(VercelWatcher *watcher, const VercelCommand *command,
                const EmuText *line)
{
	if (shows_command(watcher))
		vercel_watcher_begin(watcher, line);
	else if (watcher->kind == VERCEL_WATCH_START)
		watcher_answer(watcher, command);
}

static void
watcher_ended(VercelWatcher *watcher, const VercelCommand *command, const EmuText *line)
{
	if (shows_command(watcher))
		watcher_add(watcher, line);
	if (watcher->kind == VERCEL_WATCH_END)
		watcher_answer(watcher, command);
	else
		watcher_finish(watcher);
}

/* The line shows the command as it is now. */
static void
watchers_tell(VercelWatcher *list, const VercelCommand *command,
              void (*tell)(VercelWatcher *watcher, const VercelCommand *command,
                           const EmuText *line))
{
	EmuText line = {0};
	VercelWatcher *next;

	vercel_command_write(&line, command);
	emu_text_add(&line, "\n");
	for (VercelWatcher *watcher = list; watcher != NULL; watcher = next)
	{
		next = watcher->next;
		tell(watcher, command, &line);
	}
	emu_text_free(&line);
}

void
vercel_watchers_start(VercelWatcher *list, const VercelCommand *command)
{
	watchers_tell(list, command, watcher_started);
}

void
vercel_watchers_output(VercelWatcher *list, const EmuText *lines)
{
	for (VercelWatcher *watcher = list; watcher != NULL; watcher = watcher->next)
		if (shows_output(watcher))
			watcher_add(watcher, lines);
}

void
vercel_watchers_end(VercelWatcher *list, const VercelCommand *command)
{
	watchers_tell(list, command, watcher_ended);
}

void
vercel_watchers_refuse(VercelWatcher *list, int status, const char *message)
{
	VercelWatcher *next;

	for (VercelWatcher *watcher = list; watcher != NULL; watcher = next)
	{
		next = watcher->next;
		watcher_refuse(watcher, status, message);
	}
}

/* The session has ended under the command. */
void
vercel_watchers_lose(VercelWatcher *list)
{
	static const char line[] =
	    "{\"stream\":\"error\",\"data\":{\"code\":\"sandbox_stream_closed\","
	    "\"message\":"
	    "\"Sandbox stream was closed and is not accepting commands.\"}}\n";
	EmuText closed = {0};
	VercelWatcher *next;

	emu_text_add(&closed, line);
	for (VercelWatcher *watcher = list; watcher != NULL; watcher = next)
	{
		next = watcher->next;
		if (watcher->begun)
		{
			watcher_add(watcher, &closed);
			watcher_finish(watcher);
		}
		else
			watcher_refuse(watcher, 410,
			               "Sandbox has stopped execution and is no longer available.");
	}
	emu_text_free(&closed);
}
