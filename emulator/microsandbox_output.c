/*
 * microsandbox_output.c
 *		How what an agent says leaves, and how tests have it cut.
 *
 * By itself a frame is a message of the WebSocket.
 */
#include "microsandbox.h"

#include <string.h>

#define SEGMENT_PAUSE_MS 1

/* The stream pauses after each so many bytes, so that they arrive by themselves. */
static void
break_into_segments(EmuWebSocket *socket, size_t length, size_t size)
{
	for (size_t place = size; place < length; place += size)
		emu_websocket_break(socket, length - place, EMU_WEBSOCKET_PAUSE,
		                    SEGMENT_PAUSE_MS);
}

static void
send_message(EmuWebSocket *socket, const char *data, size_t length)
{
	const MicrosandboxConfig *config = &microsandbox_config;

	if (config->ping)
		emu_websocket_ping(socket);
	if (config->fragment_bytes > 0)
		emu_websocket_send_in_pieces(socket, data, length,
		                             (size_t) config->fragment_bytes, config->ping);
	else
		emu_websocket_send(socket, true, data, length);
	if (config->segment_bytes > 0)
		break_into_segments(socket, length, (size_t) config->segment_bytes);
}

static void
send_all(MicrosandboxAgent *agent, const EmuText *text)
{
	size_t most = microsandbox_config.message_bytes > 0
	                  ? (size_t) microsandbox_config.message_bytes
	                  : text->length;

	for (size_t sent = 0; sent < text->length; sent += most)
	{
		size_t left = text->length - sent;

		send_message(agent->socket, text->data + sent, left < most ? left : most);
	}
}

void
microsandbox_output(MicrosandboxAgent *agent, const char *type, bool is_last,
                    const EmuText *frame)
{
	(void) type;
	emu_text_append(&agent->outbox, frame->data, frame->length);
	if (microsandbox_config.coalesce && !is_last)
		return;
	send_all(agent, &agent->outbox);
	emu_text_free(&agent->outbox);
}
