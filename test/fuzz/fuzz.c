/*
 * fuzz.c
 *		What the fuzz targets share.
 */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t
fuzz_byte(FuzzInput *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->data++;
}

char *
fuzz_bytes(FuzzInput *input, size_t wanted, size_t *length)
{
	char *bytes;

	*length = wanted < input->left ? wanted : input->left;
	bytes = malloc(*length + 1);
	if (bytes == NULL)
		abort();
	memcpy(bytes, input->data, *length);
	bytes[*length] = '\0';
	input->data += *length;
	input->left -= *length;
	return bytes;
}

void
fuzz_check(bool kept, const char *format, ...)
{
	va_list arguments;

	if (kept)
		return;
	fputs("rule broken: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputs("\n", stderr);
	abort();
}

void
fuzz_touch(const void *bytes, size_t length)
{
	const volatile unsigned char *byte = bytes;

	for (size_t i = 0; i < length; i++)
		(void) byte[i];
}

void
fuzz_touch_text(const char *text)
{
	if (text != NULL)
		fuzz_touch(text, strlen(text) + 1);
}
