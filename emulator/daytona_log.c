/*
 * daytona_log.c
 *		What a session command has written: frames, and clients that follow.
 *
 * Each line is three bytes 01 (standard output) or 02 (standard error), the
 * line, and a line end, which is added if the last line has none.  A follower
 * first gets what is there, then what comes, until the command has ended.
 */
#include "daytona.h"

#include <stdlib.h>
#include <string.h>

#include "websocket.h"

/* What is there already comes in messages of this size, wherever that cuts. */
#define MESSAGE_SIZE 4096

/* Codes of the end of a WebSocket. */
#define CLOSE_NORMAL 1000
#define CLOSE_AWAY   1001

/* One of the two is not NULL. */
struct DaytonaFollower
{
	DaytonaFollower *next;
	DaytonaLog *log;
	EmuWebSocket *socket; /* gets frames */
	EmuRequest *request;  /* gets plain text */
};

/*
 * Reading
 */

/* Returns 1 or 2 if a marker is at this place, else 0. */
static int
marker_at(const EmuText *frames, size_t place)
{
	if (place + 3 > frames->length)
		return 0;
	if (memcmp(frames->data + place, "\1\1\1", 3) == 0)
		return 1;
	return memcmp(frames->data + place, "\2\2\2", 3) == 0 ? 2 : 0;
}

/* Both targets may be the same. */
void
daytona_log_split(const EmuText *frames, EmuText *output, EmuText *errors)
{
	EmuText *target = NULL;
	size_t start = 0;
	size_t place = 0;

	while (place < frames->length)
	{
		int marker = marker_at(frames, place);

		if (marker == 0)
		{
			place++;
			continue;
		}
		if (target != NULL)
			emu_text_append(target, frames->data + start, place - start);
		target = marker == 1 ? output : errors;
		place += 3;
		start = place;
	}
	if (target != NULL)
		emu_text_append(target, frames->data + start, place - start);
}

/*
 * Following
 */

/*
 * The official client joins a marker that was cut in two, but not one that is
 * the very end of a message; the provider itself does not send such ones.
 */
static size_t
message_length(const EmuText *news, size_t sent)
{
	size_t length = news->length - sent;

	if (length <= MESSAGE_SIZE)
		return length;
	return marker_at(news, sent + MESSAGE_SIZE - 3) != 0 ? MESSAGE_SIZE - 1
	                                                     : MESSAGE_SIZE;
}

static void
follower_feed(DaytonaFollower *follower, size_t start)
{
	EmuText news = {
	    .data = follower->log->frames.data + start,
	    .length = follower->log->frames.length - start,
	};
	EmuText plain = {0};
	size_t length;

	if (follower->socket != NULL)
	{
		for (size_t sent = 0; sent < news.length; sent += length)
		{
			length = message_length(&news, sent);
			emu_websocket_send(follower->socket, true, news.data + sent, length);
		}
		return;
	}
	daytona_log_split(&news, &plain, &plain);
	emu_stream_add(follower->request, plain.data, plain.length);
	emu_text_free(&plain);
}

static void
follower_end(DaytonaFollower *follower, uint16_t code)
{
	if (follower->socket != NULL)
		emu_websocket_close(follower->socket, code);
	else
		emu_stream_end(follower->request);
	free(follower);
}

static void
follower_left(void *owner)
{
	DaytonaFollower *follower = owner;
	DaytonaFollower **place = &follower->log->followers;

	while (*place != follower)
		place = &(*place)->next;
	*place = follower->next;
	free(follower);
}

static void
followers_end(DaytonaLog *log, uint16_t code)
{
	while (log->followers != NULL)
	{
		DaytonaFollower *follower = log->followers;

		log->followers = follower->next;
		follower_end(follower, code);
	}
}

/*
 * A WebSocket gets the frames, whoever does not ask for one plain text
 * without them.
 */
void
daytona_log_follow(DaytonaLog *log, EmuRequest *request)
{
	static const EmuWebSocketEvents events = {NULL, follower_left};
	DaytonaFollower *follower = emu_alloc(sizeof(DaytonaFollower));

	follower->log = log;
	if (emu_websocket_wanted(request))
		follower->socket = emu_websocket_accept(request, &events, follower);
	else
	{
		follower->request = request;
		emu_answer_stream(request, 200, "application/octet-stream", follower_left,
		                  follower);
	}
	if (follower->socket == NULL && follower->request == NULL)
	{
		free(follower);
		return;
	}
	if (log->frames.length > 0)
		follower_feed(follower, 0);
	if (log->complete)
	{
		follower_end(follower, CLOSE_NORMAL);
		return;
	}
	follower->next = log->followers;
	log->followers = follower;
}

/*
 * Writing
 */

static void
log_line(DaytonaLog *log, int stream, const EmuText *line)
{
	emu_text_append(&log->frames, stream == 0 ? "\1\1\1" : "\2\2\2", 3);
	emu_text_append(&log->frames, line->data, line->length);
	emu_text_append(&log->frames, "\n", 1);
}

static void
log_tell_news(DaytonaLog *log, size_t start)
{
	if (log->frames.length > start)
		for (DaytonaFollower *follower = log->followers; follower != NULL;
		     follower = follower->next)
			follower_feed(follower, start);
}

void
daytona_log_add(DaytonaLog *log, bool errors, const char *data, size_t length)
{
	EmuText *partial = &log->partial[errors ? 1 : 0];
	size_t start = log->frames.length;
	const char *end;

	while ((end = memchr(data, '\n', length)) != NULL)
	{
		size_t width = (size_t) (end - data);

		emu_text_append(partial, data, width);
		log_line(log, errors ? 1 : 0, partial);
		partial->length = 0;
		data += width + 1;
		length -= width + 1;
	}
	emu_text_append(partial, data, length);
	log_tell_news(log, start);
}

/* The last line of each stream, if its end is missing. */
static void
log_finish_lines(DaytonaLog *log)
{
	size_t start = log->frames.length;

	for (int stream = 0; stream < 2; stream++)
		if (log->partial[stream].length > 0)
		{
			log_line(log, stream, &log->partial[stream]);
			log->partial[stream].length = 0;
		}
	log_tell_news(log, start);
}

/* The command has ended; something in its background may still write. */
void
daytona_log_complete(DaytonaLog *log)
{
	log_finish_lines(log);
	log->complete = true;
	followers_end(log, CLOSE_NORMAL);
}

void
daytona_log_free(DaytonaLog *log)
{
	followers_end(log, CLOSE_AWAY);
	emu_text_free(&log->frames);
	emu_text_free(&log->partial[0]);
	emu_text_free(&log->partial[1]);
}
