/*
 * microsandbox_frame.c
 *		Frames of the agent in a Microsandbox sandbox.
 */
#include "providers/microsandbox_frame.h"

#include <string.h>

#define RANGE_BYTES  8
#define LENGTH_BYTES 4

/* Id and flags, which the length counts. */
#define FIXED_BYTES 5

/* Neither side sends more. */
#define FRAME_MAX 4194304

static uint32_t
read_word(const unsigned char *bytes)
{
	return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 |
	       (uint32_t) bytes[2] << 8 | bytes[3];
}

static void
write_word(char *bytes, uint32_t word)
{
	for (int i = 0; i < 4; i++)
		bytes[i] = (char) (word >> (24 - 8 * i));
}

/* --- reading -------------------------------------------------------------- */

/* Could this word be the length of an agent's first frame? */
static bool
is_frame_length(uint32_t word)
{
	return word >= FIXED_BYTES && word <= FRAME_MAX;
}

/*
 * Agents before this protocol say one word and then a frame, so that what would be the
 * second word is the length of that.  Those are not spoken to.  The id 0 is the agent's
 * own, also where the range begins with it.
 */
static bool
take_range(SbxMicrosandboxReader *reader)
{
	uint32_t first = read_word(reader->head);
	uint32_t end = read_word(reader->head + 4);

	reader->has_range = true;
	reader->first_id = first == 0 ? 1 : first;
	reader->end_id = end;
	return reader->first_id < end && !(first == 0 && is_frame_length(end));
}

/* Room for the frame that the head announces. */
static bool
make_room(SbxOp *op, SbxMicrosandboxReader *reader)
{
	size_t needed = read_word(reader->head);
	size_t size = reader->frame_size == 0 ? 8192 : reader->frame_size;

	if (!is_frame_length((uint32_t) needed))
		return false;
	if (needed <= reader->frame_size)
		return true;
	while (size < needed)
		size *= 2;
	reader->frame = sbx_arena_alloc(&op->arena, size);
	reader->frame_size = reader->frame == NULL ? 0 : size;
	return reader->frame != NULL;
}

/* Move what is still needed; returns how much that was. */
static size_t
fill(void *to, size_t have, size_t needed, const char *from, size_t length)
{
	size_t part = needed - have < length ? needed - have : length;

	if (part > 0)
		memcpy((char *) to + have, from, part);
	return part;
}

/* The frame that is complete; false = it is none. */
static bool
parse_frame(const SbxMicrosandboxReader *reader, SbxMicrosandboxFrame *frame)
{
	SbxCborItem body;
	SbxCborItem version;
	SbxCborItem payload;

	frame->id = read_word((const unsigned char *) reader->frame);
	frame->flags = (unsigned char) reader->frame[4];
	return sbx_cbor_read(reader->frame + FIXED_BYTES,
	                     reader->frame_length - FIXED_BYTES, &body) &&
	       sbx_cbor_find(&body, "v", &version) &&
	       sbx_cbor_integer(&version, &frame->version) && frame->version >= 0 &&
	       sbx_cbor_find(&body, "t", &frame->type) &&
	       frame->type.type == SBX_CBOR_TEXT && sbx_cbor_find(&body, "p", &payload) &&
	       payload.type == SBX_CBOR_BYTES &&
	       sbx_cbor_read(payload.bytes, payload.length, &frame->payload);
}

/* A whole head is there: the range, or the length of a frame. */
static bool
take_head(SbxOp *op, SbxMicrosandboxReader *reader)
{
	if (reader->has_range)
		return make_room(op, reader);
	reader->head_length = 0;
	return take_range(reader);
}

bool
sbx_microsandbox_read(SbxOp *op, SbxMicrosandboxReader *reader, const char *bytes,
                      size_t length, SbxMicrosandboxTake *take)
{
	SbxMicrosandboxFrame frame;

	while (length > 0 && !reader->malformed)
	{
		size_t head_size = reader->has_range ? LENGTH_BYTES : RANGE_BYTES;
		bool was_range = !reader->has_range;
		size_t part;

		part = fill(reader->head, reader->head_length, head_size, bytes, length);
		bytes += part;
		length -= part;
		reader->head_length += part;
		if (reader->head_length < head_size)
			break;
		reader->malformed = !take_head(op, reader);
		if (reader->malformed || was_range)
			continue;
		part = fill(reader->frame, reader->frame_length, read_word(reader->head), bytes,
		            length);
		bytes += part;
		length -= part;
		reader->frame_length += part;
		if (reader->frame_length < read_word(reader->head))
			break;
		reader->malformed = !parse_frame(reader, &frame);
		reader->head_length = 0;
		reader->frame_length = 0;
		if (!reader->malformed && !take(op, &frame))
			return false;
	}
	return !reader->malformed;
}

/* --- writing -------------------------------------------------------------- */

char *
sbx_microsandbox_frame(SbxArena *arena, uint32_t id, unsigned flags, int64_t version,
                       const char *type, const SbxCborWriter *payload, size_t *length)
{
	SbxCborWriter frame = {.arena = arena};
	char head[LENGTH_BYTES + FIXED_BYTES] = {0};

	/* Behind its head, which is written when its length is known. */
	sbx_cbor_append(&frame, head, sizeof(head));
	sbx_cbor_write_map(&frame, 3);
	sbx_cbor_write_text(&frame, "v");
	sbx_cbor_write_unsigned(&frame, (uint64_t) version);
	sbx_cbor_write_text(&frame, "t");
	sbx_cbor_write_text(&frame, type);
	sbx_cbor_write_text(&frame, "p");
	sbx_cbor_write_bytes(&frame, payload->bytes, payload->length);
	if (arena->out_of_memory || frame.length > FRAME_MAX + LENGTH_BYTES)
		return NULL;
	write_word(frame.bytes, (uint32_t) (frame.length - LENGTH_BYTES));
	write_word(frame.bytes + LENGTH_BYTES, id);
	frame.bytes[LENGTH_BYTES + 4] = (char) flags;
	*length = frame.length;
	return frame.bytes;
}
