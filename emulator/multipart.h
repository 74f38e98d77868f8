/*
 * multipart.h
 *		Bodies of type multipart/form-data.
 */
#ifndef EMU_MULTIPART_H
#define EMU_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "text.h"

typedef struct EmuPart
{
	char *name;
	char *file_name;  /* NULL: a plain value */
	const char *data; /* points into the body */
	size_t length;
} EmuPart;

typedef struct EmuMultipart
{
	EmuPart *parts;
	size_t count;
} EmuMultipart;

/* False if the body is not complete or not of that form. */
extern bool emu_multipart_parse(EmuMultipart *multipart, const char *content_type,
                                const EmuText *body);
extern void emu_multipart_free(EmuMultipart *multipart);

#endif
