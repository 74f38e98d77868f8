/*
 * microsandbox_agent.c
 *		The socket to the agent in a sandbox: its handshake, and its frames.
 *
 * What is said on it is one stream of bytes in each direction; where messages
 * of the WebSocket begin and end has no meaning.  The agent speaks first: a
 * range of numbers, from which the client takes one for each thing it asks
 * for, and that it is ready.  What is under way when the socket is lost ends.
 */
#include "microsandbox.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define CLIENT_MAXIMUM 128
#define RANGE_STEP     33554431u

#define GENERATION    7 /* of the protocol */
#define AGENT_VERSION "0.6.18"

#define LENGTH_SIZE 4
#define HEADER_SIZE 5 /* number and flags, which the length counts */

#define CLOSE_AWAY 1001

/*
 * Saying
 */

static void
append_number(EmuText *text, uint32_t number)
{
	uint32_t swapped = htonl(number);

	emu_text_append(text, (const char *) &swapped, sizeof(swapped));
}

static void
write_frame(EmuText *frame, uint32_t id, unsigned flags, const char *type,
            cbor_item_t *payload)
{
	char flag = (char) flags;
	cbor_item_t *envelope = emu_cbor_map(3);
	EmuText inner = {0};
	EmuText body = {0};

	emu_cbor_write(&inner, payload);
	emu_cbor_put(envelope, "v", emu_cbor_new_integer(GENERATION));
	emu_cbor_put(envelope, "t", emu_cbor_new_text(type));
	emu_cbor_put(envelope, "p", emu_cbor_new_bytes(inner.data, inner.length));
	emu_cbor_write(&body, envelope);
	append_number(frame, (uint32_t) (HEADER_SIZE + body.length));
	append_number(frame, id);
	emu_text_append(frame, &flag, 1);
	emu_text_append(frame, body.data, body.length);
	emu_text_free(&inner);
	emu_text_free(&body);
}

void
microsandbox_agent_say(MicrosandboxAgent *agent, uint32_t id, unsigned flags,
                       const char *type, cbor_item_t *payload)
{
	EmuText frame = {0};

	write_frame(&frame, id, flags, type, payload);
	microsandbox_output(agent, type, (flags & MICROSANDBOX_TERMINAL) != 0, &frame);
	emu_text_free(&frame);
}

void
microsandbox_agent_complain(MicrosandboxAgent *agent, uint32_t id, const char *kind,
                            const char *message, const char *offending_type)
{
	cbor_item_t *payload = emu_cbor_map(3);

	emu_cbor_put(payload, "kind", emu_cbor_new_text(kind));
	emu_cbor_put(payload, "message", emu_cbor_new_text(message));
	emu_cbor_put(payload, "offending_type", emu_cbor_new_text(offending_type));
	microsandbox_agent_say(agent, id, MICROSANDBOX_TERMINAL, "core.error", payload);
}

uint32_t
microsandbox_agent_end(const MicrosandboxAgent *agent)
{
	return (agent->slot + 1) * RANGE_STEP;
}

static void
say_ready(MicrosandboxAgent *agent)
{
	cbor_item_t *payload = emu_cbor_map(4);
	EmuText hello = {0};

	append_number(&hello, agent->slot * RANGE_STEP);
	append_number(&hello, microsandbox_agent_end(agent));
	emu_cbor_put(payload, "boot_time_ns", emu_cbor_new_integer(150000000));
	emu_cbor_put(payload, "init_time_ns", emu_cbor_new_integer(12000000));
	emu_cbor_put(payload, "ready_time_ns", emu_cbor_new_integer(180000000));
	emu_cbor_put(payload, "agent_version", emu_cbor_new_text(AGENT_VERSION));
	write_frame(&hello, 0, 0, "core.ready", payload);
	microsandbox_output(agent, "core.ready", true, &hello);
	emu_text_free(&hello);
}

/*
 * Operations
 */

static MicrosandboxOperation **
operation_place(MicrosandboxAgent *agent, uint32_t id)
{
	MicrosandboxOperation **place = &agent->operations;

	while (*place != NULL && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

void
microsandbox_operation_begin(MicrosandboxAgent *agent, MicrosandboxOperation *operation,
                             uint32_t id)
{
	operation->agent = agent;
	operation->id = id;
	operation->next = agent->operations;
	agent->operations = operation;
}

void
microsandbox_operation_end(MicrosandboxOperation *operation)
{
	if (operation->agent == NULL)
		return;
	*operation_place(operation->agent, operation->id) = operation->next;
	operation->agent = NULL;
}

void
microsandbox_say(MicrosandboxOperation *operation, const char *type,
                 cbor_item_t *payload)
{
	microsandbox_agent_say(operation->agent, operation->id, 0, type, payload);
}

void
microsandbox_say_last(MicrosandboxOperation *operation, const char *type,
                      cbor_item_t *payload)
{
	MicrosandboxAgent *agent = operation->agent;

	microsandbox_operation_end(operation);
	microsandbox_touch(agent->sandbox);
	microsandbox_agent_say(agent, operation->id, MICROSANDBOX_TERMINAL, type, payload);
}

bool
microsandbox_agents_busy(const MicrosandboxDetails *details)
{
	for (const MicrosandboxAgent *agent = details->agents; agent != NULL;
	     agent = agent->next)
		if (agent->operations != NULL)
			return true;
	return false;
}

/*
 * The end of the socket
 */

static void
agent_free(MicrosandboxAgent *agent)
{
	MicrosandboxAgent **place = &microsandbox_details(agent->sandbox)->agents;

	while (*place != agent)
		place = &(*place)->next;
	*place = agent->next;
	while (agent->operations != NULL)
	{
		MicrosandboxOperation *operation = agent->operations;

		microsandbox_operation_end(operation);
		operation->lost(operation);
	}
	microsandbox_handles_free(agent);
	emu_text_free(&agent->inbox);
	emu_text_free(&agent->outbox);
	free(agent->path);
	free(agent);
}

static void
socket_closed(void *owner)
{
	agent_free(owner);
}

/* The relay does not say why: the stream ends. */
void
microsandbox_agent_hang_up(MicrosandboxAgent *agent)
{
	emu_websocket_close(agent->socket, CLOSE_AWAY);
	agent_free(agent);
}

void
microsandbox_operation_gone(MicrosandboxOperation *operation)
{
	MicrosandboxAgent *agent = operation->agent;

	if (agent == NULL)
		return;
	microsandbox_operation_end(operation);
	microsandbox_agent_hang_up(agent);
}

void
microsandbox_agents_close(MicrosandboxDetails *details)
{
	while (details->agents != NULL)
		microsandbox_agent_hang_up(details->agents);
}

/*
 * Hearing
 */

static uint32_t
number_at(const char *data)
{
	uint32_t number;

	memcpy(&number, data, sizeof(number));
	return ntohl(number);
}

static void
begin(MicrosandboxAgent *agent, uint32_t id, const char *type,
      const cbor_item_t *payload)
{
	if (*operation_place(agent, id) != NULL)
		microsandbox_agent_complain(agent, id, "invalid_session",
		                            "this number is in use", type);
	else if (strcmp(type, "core.exec.request") == 0)
		microsandbox_exec(agent, id, payload);
	else if (strcmp(type, "core.fs.request") == 0)
		microsandbox_files(agent, id, payload);
	else
		microsandbox_agent_complain(agent, id, "unsupported_message_type",
		                            "nothing begins with this", type);
}

/* What belongs to something that has ended meanwhile is not looked at. */
static void
hear_message(MicrosandboxAgent *agent, uint32_t id, unsigned flags, const char *type,
             const cbor_item_t *payload)
{
	MicrosandboxOperation *operation = *operation_place(agent, id);

	microsandbox_touch(agent->sandbox);
	if (flags & MICROSANDBOX_START)
		begin(agent, id, type, payload);
	else if (strcmp(type, "core.exec.request") == 0 ||
	         strcmp(type, "core.fs.request") == 0)
		microsandbox_agent_complain(agent, id, "invalid_flags",
		                            "this begins something, and does not say so", type);
	else if (operation != NULL)
		operation->hear(operation, type, payload);
}

static void
hear_body(MicrosandboxAgent *agent, uint32_t id, unsigned flags, const char *data,
          size_t length)
{
	cbor_item_t *envelope = emu_cbor_read(data, length);
	char *type = emu_cbor_text(emu_cbor_member(envelope, "t"));
	cbor_item_t *payload = NULL;
	const char *inner;
	size_t inner_length;

	if (emu_cbor_bytes(emu_cbor_member(envelope, "p"), &inner, &inner_length))
		payload = emu_cbor_read(inner, inner_length);
	if (type == NULL)
		microsandbox_agent_complain(agent, id, "malformed_message",
		                            "this is no message", NULL);
	else if (payload == NULL)
		microsandbox_agent_complain(agent, id, "invalid_payload", "this is no payload",
		                            type);
	else
		hear_message(agent, id, flags, type, payload);
	emu_cbor_free(payload);
	emu_cbor_free(envelope);
	free(type);
}

static bool
is_in_range(const MicrosandboxAgent *agent, uint32_t id)
{
	return id > 0 && id / RANGE_STEP == agent->slot;
}

/* False if the stream cannot be made sense of any more. */
static bool
hear_frames(MicrosandboxAgent *agent)
{
	EmuText *inbox = &agent->inbox;
	size_t heard = 0;

	while (inbox->length - heard >= LENGTH_SIZE)
	{
		const char *frame = inbox->data + heard + LENGTH_SIZE;
		size_t length = number_at(inbox->data + heard);

		if (length < HEADER_SIZE || length > MICROSANDBOX_FRAME_LIMIT)
			return false;
		if (inbox->length - heard - LENGTH_SIZE < length)
			break;
		if (!is_in_range(agent, number_at(frame)))
			return false;
		hear_body(agent, number_at(frame), (unsigned char) frame[LENGTH_SIZE],
		          frame + HEADER_SIZE, length - HEADER_SIZE);
		heard += LENGTH_SIZE + length;
	}
	if (heard > 0)
		memmove(inbox->data, inbox->data + heard, inbox->length - heard);
	inbox->length -= heard;
	return true;
}

static void
socket_message(void *owner, bool binary, const char *data, size_t length)
{
	MicrosandboxAgent *agent = owner;

	if (!binary)
		return;
	emu_text_append(&agent->inbox, data, length);
	if (!hear_frames(agent))
		microsandbox_agent_hang_up(agent);
}

/*
 * Opening
 */

/* The first that nobody has; CLIENT_MAXIMUM if there is none. */
static unsigned
free_slot(const MicrosandboxDetails *details)
{
	bool taken[CLIENT_MAXIMUM] = {false};
	unsigned slot = 0;

	for (const MicrosandboxAgent *agent = details->agents; agent != NULL;
	     agent = agent->next)
		taken[agent->slot] = true;
	while (slot < CLIENT_MAXIMUM && taken[slot])
		slot++;
	return slot;
}

void
microsandbox_agent_open(EmuRequest *request, EmuSandbox *sandbox)
{
	static const EmuWebSocketEvents events = {socket_message, socket_closed};
	MicrosandboxDetails *details = microsandbox_details(sandbox);
	unsigned slot = free_slot(details);
	MicrosandboxAgent *agent = emu_alloc(sizeof(MicrosandboxAgent));

	agent->socket = emu_websocket_accept(request, &events, agent);
	if (agent->socket == NULL || slot == CLIENT_MAXIMUM)
	{
		if (agent->socket != NULL)
			emu_websocket_close(agent->socket, CLOSE_AWAY);
		free(agent);
		return;
	}
	agent->sandbox = sandbox;
	agent->path = emu_strdup(request->path);
	agent->slot = slot;
	agent->next = details->agents;
	details->agents = agent;
	microsandbox_touch(sandbox);
	say_ready(agent);
}
