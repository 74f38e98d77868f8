/*
 * microsandbox_logs.c
 *		GET /v1/sandboxes/{id}/logs: what commands write, as events, as it comes.
 *
 * Nothing is kept: who comes late has missed what was before.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

struct MicrosandboxFollower
{
	MicrosandboxFollower *next;
	MicrosandboxDetails *details;
	EmuRequest *request;
	bool wants[2]; /* output and errors */
};

static const char *const source_names[] = {"stdout", "stderr"};

static void
follower_free(MicrosandboxFollower *follower)
{
	MicrosandboxFollower **place = &follower->details->followers;

	while (*place != follower)
		place = &(*place)->next;
	*place = follower->next;
	free(follower);
}

static void
follower_left(void *owner)
{
	follower_free(owner);
}

/* The data of an event is one line: JSON has no others. */
static void
follower_tell(MicrosandboxFollower *follower, const char *event, const char *data)
{
	EmuText text = {0};

	emu_text_format(&text, "event: %s\ndata: %s\n\n", event, data);
	emu_stream_add(follower->request, text.data, text.length);
	emu_text_free(&text);
}

void
microsandbox_logs_add(MicrosandboxDetails *details, bool errors, const char *data,
                      size_t length)
{
	EmuText entry = {0};

	if (details->followers == NULL)
		return;
	emu_text_add(&entry, "{");
	emu_json_member(&entry, "source", source_names[errors]);
	emu_json_member_time(&entry, "ts", emu_wall_ms());
	emu_json_member_bytes(&entry, "text", data, length);
	emu_text_add(&entry, "}");
	for (MicrosandboxFollower *follower = details->followers; follower != NULL;
	     follower = follower->next)
		if (follower->wants[errors])
			follower_tell(follower, "log", entry.data);
	emu_text_free(&entry);
}

void
microsandbox_logs_end(MicrosandboxDetails *details)
{
	while (details->followers != NULL)
	{
		EmuRequest *request = details->followers->request;

		follower_tell(details->followers, "end", "{}");
		follower_free(details->followers);
		emu_stream_end(request);
	}
}

/* A list of words with commas between them; without one all are wanted. */
static bool
has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *place = list; place != NULL && *place != '\0';
	     place += strcspn(place, ","), place += *place == ',')
		if (strcspn(place, ",") == length && strncmp(place, word, length) == 0)
			return true;
	return list == NULL;
}

void
microsandbox_logs(EmuRequest *request, EmuSandbox *sandbox)
{
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	char *sources = emu_request_parameter(request, "sources");
	MicrosandboxFollower *follower = emu_alloc(sizeof(MicrosandboxFollower));

	follower->details = details;
	follower->request = request;
	for (int i = 0; i < 2; i++)
		follower->wants[i] = has_word(sources, source_names[i]);
	follower->next = details->followers;
	details->followers = follower;
	free(sources);
	emu_answer_stream(request, 200, "text/event-stream", follower_left, follower);
}
