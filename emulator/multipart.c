/*
 * multipart.c
 *		Bodies of type multipart/form-data.
 */
#include "multipart.h"

#include <stdlib.h>
#include <string.h>

/* Value of a parameter like boundary=x or name="x", NULL if not there. */
static char *
parameter(const char *text, size_t length, const char *name)
{
	size_t name_length = strlen(name);

	for (size_t i = 0; i + name_length + 1 < length; i++)
	{
		const char *start = text + i + name_length + 1;
		const char *end;

		if (strncasecmp(text + i, name, name_length) != 0 ||
		    text[i + name_length] != '=' ||
		    (i > 0 && text[i - 1] != ' ' && text[i - 1] != ';'))
			continue;
		if (*start == '"')
		{
			end = memchr(start + 1, '"', length - (size_t) (start + 1 - text));
			return end != NULL ? emu_strndup(start + 1, (size_t) (end - start - 1))
			                   : NULL;
		}
		for (end = start; end < text + length && strchr("; \r\n", *end) == NULL; end++)
			;
		return emu_strndup(start, (size_t) (end - start));
	}
	return NULL;
}

/* One part, from after its boundary line to before the next boundary. */
static bool
part_add(EmuMultipart *multipart, const char *data, size_t length)
{
	const char *content = memmem(data, length, "\r\n\r\n", 4);
	EmuPart *part;

	if (content == NULL)
		return false;
	multipart->parts =
	    emu_realloc(multipart->parts, (multipart->count + 1) * sizeof(EmuPart));
	part = &multipart->parts[multipart->count++];
	part->name = parameter(data, (size_t) (content - data), "name");
	part->file_name = parameter(data, (size_t) (content - data), "filename");
	part->data = content + 4;
	part->length = length - (size_t) (part->data - data);
	return part->name != NULL;
}

static bool
parts_read(EmuMultipart *multipart, const EmuText *boundary, const EmuText *body)
{
	/* The boundary without the line end that precedes all but the first. */
	const char *place = body->data;
	const char *end = body->data + body->length;

	if (body->length < boundary->length ||
	    memcmp(place, boundary->data + 2, boundary->length - 2) != 0)
		return false;
	place += boundary->length - 2;
	for (;;)
	{
		const char *next;

		if (end - place >= 2 && memcmp(place, "--", 2) == 0)
			return true;
		if (end - place < 2 || memcmp(place, "\r\n", 2) != 0)
			return false;
		place += 2;
		next = memmem(place, (size_t) (end - place), boundary->data, boundary->length);
		if (next == NULL || !part_add(multipart, place, (size_t) (next - place)))
			return false;
		place = next + boundary->length;
	}
}

bool
emu_multipart_parse(EmuMultipart *multipart, const char *content_type,
                    const EmuText *body)
{
	char *name;
	EmuText boundary = {0};
	bool good;

	memset(multipart, 0, sizeof(*multipart));
	if (content_type == NULL ||
	    strncasecmp(content_type, "multipart/form-data", 19) != 0 || body->length == 0)
		return false;
	name = parameter(content_type, strlen(content_type), "boundary");
	if (name == NULL || *name == '\0')
	{
		free(name);
		return false;
	}
	emu_text_format(&boundary, "\r\n--%s", name);
	good = parts_read(multipart, &boundary, body);
	emu_text_free(&boundary);
	free(name);
	return good;
}

void
emu_multipart_free(EmuMultipart *multipart)
{
	for (size_t i = 0; i < multipart->count; i++)
	{
		free(multipart->parts[i].name);
		free(multipart->parts[i].file_name);
	}
	free(multipart->parts);
	memset(multipart, 0, sizeof(*multipart));
}
