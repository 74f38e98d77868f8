/*
 * microsandbox_output.c
 *		How what an agent says leaves, and how tests have it cut and spoiled.
 *
 * By itself a frame is a message of the WebSocket.
 */
#include "microsandbox.h"

#include <arpa/inet.h>
#include <string.h>

#include "faults.h"

#define SEGMENT_PAUSE_MS 1

/* Of a frame: its length, its number, a byte of flags, and then its body. */
#define ID_PLACE    4
#define BODY_PLACE  9
#define READY_PLACE 8 /* of the first frame: behind the range of numbers */

#define GARBAGE_LENGTH 64

/*
 * Cutting
 */

/* The stream pauses after each so many bytes, so that they arrive by themselves. */
static void
break_into_segments(EmuWebSocket *socket, uint64_t start, uint64_t size)
{
	uint64_t end = emu_websocket_place(socket);

	for (uint64_t place = start + size; place < end; place += size)
		emu_websocket_break(socket, place, EMU_WEBSOCKET_PAUSE, SEGMENT_PAUSE_MS);
}

static void
send_message(EmuWebSocket *socket, const char *data, size_t length)
{
	const MicrosandboxConfig *config = &microsandbox_config;
	uint64_t start = emu_websocket_place(socket);

	if (config->ping)
		emu_websocket_ping(socket);
	if (config->fragment_bytes > 0)
		emu_websocket_send_in_pieces(socket, data, length,
		                             (size_t) config->fragment_bytes, config->ping);
	else
		emu_websocket_send(socket, true, data, length);
	if (config->segment_bytes > 0)
		break_into_segments(socket, start, (uint64_t) config->segment_bytes);
}

static void
send_all(MicrosandboxAgent *agent)
{
	const EmuText *outbox = &agent->outbox;
	size_t most = microsandbox_config.message_bytes > 0
	                  ? (size_t) microsandbox_config.message_bytes
	                  : outbox->length;

	for (size_t sent = 0; sent < outbox->length; sent += most)
	{
		size_t left = outbox->length - sent;

		send_message(agent->socket, outbox->data + sent, left < most ? left : most);
	}
	emu_text_free(&agent->outbox);
}

/*
 * Spoiling
 */

static void
put_number(char *place, uint32_t number)
{
	uint32_t swapped = htonl(number);

	memcpy(place, &swapped, sizeof(swapped));
}

/* The body is something else, and the length is right. */
static void
replace_body(EmuText *frame, size_t start, const EmuText *body)
{
	frame->length = start + BODY_PLACE;
	emu_text_append(frame, body->data, body->length);
	put_number(frame->data + start, (uint32_t) (frame->length - start - ID_PLACE));
}

static void
put_garbage(EmuText *frame, size_t start, int64_t bytes)
{
	int64_t length = bytes >= 0 ? bytes : GARBAGE_LENGTH;
	EmuText garbage = {0};

	emu_text_add(&garbage, "");
	for (int64_t i = 0; i < length; i++)
	{
		char byte = (char) emu_random();

		emu_text_append(&garbage, &byte, 1);
	}
	replace_body(frame, start, &garbage);
	emu_text_free(&garbage);
}

/* A map as it must be, with members of types that they must not have. */
static void
put_wrong_types(EmuText *frame, size_t start)
{
	cbor_item_t *envelope = emu_cbor_map(3);
	EmuText body = {0};

	emu_cbor_put(envelope, "v", emu_cbor_new_text("7"));
	emu_cbor_put(envelope, "t", emu_cbor_new_integer(7));
	emu_cbor_put(envelope, "p", emu_cbor_map(0));
	emu_cbor_write(&body, envelope);
	replace_body(frame, start, &body);
	emu_text_free(&body);
}

/* Changes the frame itself, which begins at `start`. */
static void
spoil_frame(MicrosandboxAgent *agent, EmuText *frame, size_t start,
            const EmuFrameFault *fault)
{
	switch (fault->action)
	{
		case EMU_FRAME_GARBAGE:
			put_garbage(frame, start, fault->bytes);
			break;
		case EMU_FRAME_WRONG_TYPE:
			put_wrong_types(frame, start);
			break;
		case EMU_FRAME_HUGE:
			put_number(frame->data + start,
			           fault->bytes >= 0 ? (uint32_t) fault->bytes
			                             : (uint32_t) MICROSANDBOX_FRAME_LIMIT + 1);
			break;
		case EMU_FRAME_WRONG_ID:
			put_number(frame->data + start + ID_PLACE, microsandbox_agent_end(agent));
			break;
		default:
			break;
	}
}

/* `start` is where its message begins; of the frame as such half, or what is told. */
static void
break_frame(EmuWebSocket *socket, uint64_t start, size_t length,
            const EmuFrameFault *fault)
{
	uint64_t body = emu_websocket_place(socket) - length;
	uint64_t middle = body + (fault->bytes < 0                 ? length / 2
	                          : (size_t) fault->bytes < length ? (size_t) fault->bytes
	                                                           : length);

	switch (fault->action)
	{
		case EMU_FRAME_DELAY:
			emu_websocket_break(socket, start, EMU_WEBSOCKET_PAUSE, fault->ms);
			break;
		case EMU_FRAME_PAUSE:
			emu_websocket_break(socket, middle, EMU_WEBSOCKET_PAUSE, fault->ms);
			break;
		case EMU_FRAME_HANG:
			emu_websocket_break(socket, start, EMU_WEBSOCKET_SILENCE, 0);
			break;
		case EMU_FRAME_TRUNCATE:
			emu_websocket_break(socket, middle, EMU_WEBSOCKET_END, 0);
			break;
		case EMU_FRAME_RESET:
			emu_websocket_break(socket, start, EMU_WEBSOCKET_RESET, 0);
			break;
		default:
			break;
	}
}

/* One that is to break is a message by itself, whatever the settings are. */
static void
send_spoiled(MicrosandboxAgent *agent, EmuText *frame, size_t start,
             const EmuFrameFault *fault)
{
	uint64_t place = emu_websocket_place(agent->socket);

	spoil_frame(agent, frame, start, fault);
	if (fault->action == EMU_FRAME_PING)
		emu_websocket_send_in_pieces(agent->socket, frame->data, frame->length,
		                             frame->length / 2, true);
	else
		emu_websocket_send(agent->socket, true, frame->data, frame->length);
	break_frame(agent->socket, place, frame->length, fault);
}

/* The first has the range of numbers in front of it. */
void
microsandbox_output(MicrosandboxAgent *agent, const char *type, bool is_last,
                    EmuText *frame)
{
	EmuFrameFault fault = emu_faults_match_frame(&emu_microsandbox, agent->path, type);

	if (fault.action == EMU_FRAME_AS_IT_IS)
		emu_text_append(&agent->outbox, frame->data, frame->length);
	if (fault.action != EMU_FRAME_AS_IT_IS || is_last || !microsandbox_config.coalesce)
		send_all(agent);
	if (fault.action != EMU_FRAME_AS_IT_IS)
		send_spoiled(agent, frame, strcmp(type, "core.ready") == 0 ? READY_PLACE : 0,
		             &fault);
}
