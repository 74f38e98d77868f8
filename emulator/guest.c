/*
 * guest.c
 *		The running side of a sandbox: one bubblewrap, and processes in it.
 */
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest_protocol.h"
#include "launcher.h"
#include "reactor.h"
#include "text.h"

struct EmuProcess
{
	EmuGuest *guest;
	EmuProcess *next;
	uint32_t number;
	bool keep;
	bool ended;
	const EmuProcessEvents *events;
	void *owner;
};

struct EmuGuest
{
	uint64_t serial;
	char *home;
	char *user;
	bool launched; /* ever: there are files to remove */
	bool greeted;  /* the agent said hello after the last launch */
	int socket;    /* -1 while not running */
	EmuWatch watch;
	EmuText outbox; /* frames the socket did not take yet */
	EmuText inbox;  /* start of a frame not yet complete */
	uint32_t last_number;
	EmuProcess *processes;
};

static uint64_t last_serial;

static void guest_socket_ready(void *owner, uint32_t events);

EmuGuest *
emu_guest_create(const char *home, const char *user)
{
	EmuGuest *guest = emu_alloc(sizeof(EmuGuest));

	guest->serial = ++last_serial;
	guest->home = emu_strdup(home);
	guest->user = emu_strdup(user);
	guest->socket = -1;
	return guest;
}

static void
guest_disconnect(EmuGuest *guest)
{
	if (guest->socket < 0)
		return;
	emu_watch_stop(&guest->watch);
	close(guest->socket);
	guest->socket = -1;
	guest->greeted = false;
	emu_text_free(&guest->outbox);
	emu_text_free(&guest->inbox);
}

/*
 * Owners may forget other processes of theirs while they hear of the end of
 * one, so the list is looked at afresh after each.
 */
static void
guest_lose_processes(EmuGuest *guest, const char *failure, bool never_started)
{
	EmuProcessEnd end = {
	    .code = -1,
	    .failure = failure,
	    .sandbox_gone = true,
	    .never_started = never_started,
	};
	EmuProcess *process;

	while ((process = guest->processes) != NULL)
	{
		bool keep = process->keep;

		guest->processes = process->next;
		process->guest = NULL;
		if (!process->ended)
		{
			process->ended = true;
			process->events->ended(process->owner, &end);
		}
		if (!keep)
			free(process);
	}
}

void
emu_guest_stop(EmuGuest *guest)
{
	bool running = guest->socket >= 0;

	guest_disconnect(guest);
	if (running)
		emu_launcher_end(guest->serial, false);
	guest_lose_processes(guest, "the sandbox was stopped", false);
}

void
emu_guest_destroy(EmuGuest *guest)
{
	guest_disconnect(guest);
	if (guest->launched)
		emu_launcher_end(guest->serial, true);
	guest_lose_processes(guest, "the sandbox was destroyed", false);
	free(guest->home);
	free(guest->user);
	free(guest);
}

/* The bubblewrap could not start, or its agent has ended. */
static void
guest_crashed(EmuGuest *guest)
{
	EmuText failure = {0};
	bool never_started = !guest->greeted;
	char *complaint = emu_launcher_complaint(guest->serial);

	if (!never_started)
		emu_text_add(&failure, "the sandbox ended unexpectedly");
	else
		emu_text_format(&failure, "the sandbox could not be started by bubblewrap: %s",
		                complaint);
	free(complaint);
	guest_disconnect(guest);
	emu_launcher_end(guest->serial, false);
	guest_lose_processes(guest, failure.data, never_started);
	emu_text_free(&failure);
}

static void
guest_launch(EmuGuest *guest)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	guest->socket = ends[0];
	guest->launched = true;
	emu_watch_start(&guest->watch, guest->socket, EPOLLIN, guest_socket_ready, guest);

	/* If this fails, the closed end below is what the reactor will see. */
	emu_launcher_launch(guest->serial, guest->home, guest->user, ends[1]);
	close(ends[1]);
}

/* Sending */

static void
guest_flush(EmuGuest *guest)
{
	size_t sent = 0;

	while (sent < guest->outbox.length)
	{
		ssize_t count = send(guest->socket, guest->outbox.data + sent,
		                     guest->outbox.length - sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count <= 0)
			break;
		sent += (size_t) count;
	}
	if (sent == guest->outbox.length)
		emu_text_free(&guest->outbox);
	else if (sent > 0)
	{
		memmove(guest->outbox.data, guest->outbox.data + sent,
		        guest->outbox.length - sent);
		guest->outbox.length -= sent;
	}
	emu_watch_change(&guest->watch,
	                 guest->outbox.length > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void
guest_queue(EmuGuest *guest, EmuFrameKind kind, uint32_t number, const void *data,
            size_t length)
{
	EmuFrame frame = {(uint32_t) length, (uint32_t) kind, number};

	emu_text_append(&guest->outbox, (const char *) &frame, sizeof(frame));
	emu_text_append(&guest->outbox, data, length);
}

static void
guest_send(EmuGuest *guest, EmuFrameKind kind, uint32_t number, const void *data,
           size_t length)
{
	if (guest == NULL || guest->socket < 0)
		return;
	guest_queue(guest, kind, number, data, length);
	guest_flush(guest);
}

/* A payload of any size: all but its last piece travel as RUN_PART. */
static void
guest_send_large(EmuGuest *guest, EmuFrameKind kind, uint32_t number,
                 const EmuText *payload)
{
	size_t sent = 0;

	for (; payload->length - sent > EMU_FRAME_LIMIT; sent += EMU_FRAME_LIMIT)
		guest_queue(guest, EMU_FRAME_RUN_PART, number, payload->data + sent,
		            EMU_FRAME_LIMIT);
	guest_send(guest, kind, number, payload->data + sent, payload->length - sent);
}

void
emu_guest_freeze(EmuGuest *guest, bool frozen)
{
	guest_send(guest, frozen ? EMU_FRAME_FREEZE : EMU_FRAME_THAW, 0, NULL, 0);
}

/* Receiving */

static EmuProcess **
process_place(EmuGuest *guest, uint32_t number)
{
	EmuProcess **place = &guest->processes;

	while (*place != NULL && (*place)->number != number)
		place = &(*place)->next;
	return place;
}

static void
process_end(EmuProcess **place, const EmuProcessEnd *end)
{
	EmuProcess *process = *place;
	bool keep = process->keep;

	if (process->ended)
		return;
	process->ended = true;
	if (!keep)
		*place = process->next;
	process->events->ended(process->owner, end);
	if (!keep)
		free(process);
}

static void
guest_hear(EmuGuest *guest, const EmuFrame *frame, const char *payload)
{
	EmuProcess **place = process_place(guest, frame->command);
	EmuProcess *process = *place;
	EmuProcessEnd end = {.code = -1};
	EmuExitHeader status;
	int32_t pid;

	if (frame->kind == EMU_FRAME_HELLO)
		guest->greeted = true;
	if (process == NULL)
		return;
	switch (frame->kind)
	{
		case EMU_FRAME_STARTED:
			memcpy(&pid, payload, sizeof(pid));
			if (process->events->started != NULL)
				process->events->started(process->owner, pid);
			break;
		case EMU_FRAME_OUTPUT:
		case EMU_FRAME_ERRORS:
			process->events->output(process->owner, frame->kind == EMU_FRAME_ERRORS,
			                        payload, frame->length);
			break;
		case EMU_FRAME_EXIT:
			memcpy(&status, payload, sizeof(status));
			end.code = status.code;
			end.signal = status.signal;
			process_end(place, &end);
			break;
		case EMU_FRAME_FAILED:
		{
			char *failure =
			    emu_strndup(payload + sizeof(int32_t), frame->length - sizeof(int32_t));
			int32_t error;

			memcpy(&error, payload, sizeof(error));
			end.error = error;
			end.failure = failure;
			process_end(place, &end);
			free(failure);
			break;
		}
		case EMU_FRAME_KILLED:
			if (process->events->killed != NULL)
				process->events->killed(process->owner);
			break;
		default:
			break;
	}
}

/* Returns false if this is not the agent's language. */
static bool
guest_hear_all(EmuGuest *guest)
{
	EmuText *inbox = &guest->inbox;
	size_t heard = 0;
	EmuFrame frame;

	while (inbox->length - heard >= sizeof(frame))
	{
		memcpy(&frame, inbox->data + heard, sizeof(frame));
		if (frame.length > EMU_FRAME_LIMIT ||
		    (frame.kind == EMU_FRAME_EXIT && frame.length != sizeof(EmuExitHeader)) ||
		    (frame.kind == EMU_FRAME_STARTED && frame.length != sizeof(int32_t)) ||
		    (frame.kind == EMU_FRAME_FAILED && frame.length < sizeof(int32_t)))
			return false;
		if (inbox->length - heard < sizeof(frame) + frame.length)
			break;
		guest_hear(guest, &frame, inbox->data + heard + sizeof(frame));
		heard += sizeof(frame) + frame.length;
	}
	memmove(inbox->data, inbox->data + heard, inbox->length - heard);
	inbox->length -= heard;
	return true;
}

static void
guest_socket_ready(void *owner, uint32_t events)
{
	EmuGuest *guest = owner;
	char buffer[4 * EMU_FRAME_LIMIT];
	ssize_t count;

	if (events & EPOLLOUT)
		guest_flush(guest);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
		return;
	count = recv(guest->socket, buffer, sizeof(buffer), MSG_DONTWAIT);
	if (count > 0)
	{
		emu_text_append(&guest->inbox, buffer, (size_t) count);
		if (!guest_hear_all(guest))
			guest_crashed(guest);
	}
	else if (count == 0 || (errno != EAGAIN && errno != EINTR))
		guest_crashed(guest);
}

/* Processes */

static EmuProcess *
process_new(EmuGuest *guest, bool keep, const EmuProcessEvents *events, void *owner)
{
	EmuProcess *process = emu_alloc(sizeof(EmuProcess));

	process->guest = guest;
	process->number = ++guest->last_number;
	process->keep = keep;
	process->events = events;
	process->owner = owner;
	process->next = guest->processes;
	guest->processes = process;
	return process;
}

EmuProcess *
emu_process_run(EmuGuest *guest, const EmuCommandLine *line,
                const EmuProcessEvents *events, void *owner)
{
	EmuRunHeader header = {0};
	EmuText payload = {0};
	EmuProcess *process;

	if (guest->socket < 0)
		guest_launch(guest);
	process = process_new(guest, line->keep, events, owner);
	header.flags =
	    (line->merge_streams ? EMU_RUN_MERGE : 0) | (line->keep ? EMU_RUN_KEEP : 0) |
	    (line->no_input ? EMU_RUN_NULL : 0) | (line->await_streams ? EMU_RUN_AWAIT : 0);
	header.output_limit = line->output_limit;
	while (line->arguments[header.argument_count] != NULL)
		header.argument_count++;
	while (line->variables[header.variable_count] != NULL)
		header.variable_count++;
	emu_text_append(&payload, (const char *) &header, sizeof(header));
	emu_text_append(&payload, line->cwd, strlen(line->cwd) + 1);
	for (uint32_t i = 0; i < header.argument_count; i++)
		emu_text_append(&payload, line->arguments[i], strlen(line->arguments[i]) + 1);
	for (uint32_t i = 0; i < header.variable_count; i++)
		emu_text_append(&payload, line->variables[i], strlen(line->variables[i]) + 1);
	guest_send_large(guest, EMU_FRAME_RUN, process->number, &payload);
	emu_text_free(&payload);
	return process;
}

EmuProcess *
emu_process_source(EmuProcess *shell, const char *text, size_t length,
                   uint32_t output_limit, const EmuProcessEvents *events, void *owner)
{
	EmuSourceHeader header = {shell->number, output_limit};
	EmuText payload = {0};
	EmuProcess *process;

	if (shell->guest == NULL)
		return NULL;
	process = process_new(shell->guest, true, events, owner);
	emu_text_append(&payload, (const char *) &header, sizeof(header));
	emu_text_append(&payload, text, length);
	guest_send_large(shell->guest, EMU_FRAME_SOURCE, process->number, &payload);
	emu_text_free(&payload);
	return process;
}

void
emu_process_input(EmuProcess *process, const char *data, size_t length)
{
	if (process->guest == NULL || process->guest->socket < 0)
		return;
	for (size_t sent = 0; sent < length;)
	{
		size_t piece =
		    length - sent < EMU_FRAME_LIMIT ? length - sent : EMU_FRAME_LIMIT;

		guest_queue(process->guest, EMU_FRAME_INPUT, process->number, data + sent,
		            piece);
		sent += piece;
	}
	guest_flush(process->guest);
}

void
emu_process_input_end(EmuProcess *process)
{
	guest_send(process->guest, EMU_FRAME_INPUT_END, process->number, NULL, 0);
}

void
emu_process_signal(EmuProcess *process, int signal_number)
{
	int32_t number = signal_number;

	guest_send(process->guest, EMU_FRAME_SIGNAL, process->number, &number,
	           sizeof(number));
}

void
emu_process_signal_group(EmuProcess *process, int signal_number)
{
	int32_t number = signal_number;

	guest_send(process->guest, EMU_FRAME_SIGNAL_GROUP, process->number, &number,
	           sizeof(number));
}

void
emu_process_kill(EmuProcess *process, uint32_t grace_ms)
{
	EmuKillHeader order = {15, grace_ms}; /* SIGTERM */

	guest_send(process->guest, EMU_FRAME_KILL, process->number, &order, sizeof(order));
}

void
emu_process_forget(EmuProcess *process)
{
	if (process->guest != NULL)
		*process_place(process->guest, process->number) = process->next;
	free(process);
}
