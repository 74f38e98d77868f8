/*
 * base64.c
 *		Bytes as text.
 */
#include "net/base64.h"

#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int
base64_value(char digit)
{
	const char *found = digit == '\0' ? NULL : strchr(base64_digits, digit);

	return found == NULL ? -1 : (int) (found - base64_digits);
}

bool
sbx_base64_decode(const char *text, size_t text_length, char *bytes, size_t *length)
{
	size_t padding = 0;

	*length = 0;
	if (text_length % 4 != 0)
		return false;
	while (padding < 2 && padding < text_length &&
	       text[text_length - 1 - padding] == '=')
		padding++;
	for (size_t i = 0; i < text_length; i += 4)
	{
		bool is_last = i + 4 == text_length;
		uint32_t group = 0;

		for (size_t j = 0; j < 4; j++)
		{
			bool padded = is_last && j >= 4 - padding;
			int value = padded ? 0 : base64_value(text[i + j]);

			if (value < 0)
				return false;
			group = group << 6 | (uint32_t) value;
		}

		/* Bits that nothing says must be zero: there is one way to write some bytes. */
		if (is_last && (group & ((1u << 8 * padding) - 1)) != 0)
			return false;
		for (size_t j = 0; j < (is_last ? 3 - padding : 3); j++)
			bytes[(*length)++] = (char) (group >> (16 - 8 * j));
	}
	return true;
}

char *
sbx_base64_encode(SbxArena *arena, const char *bytes, size_t length)
{
	char *text = sbx_arena_alloc(arena, (length + 2) / 3 * 4 + 1);
	char *end = text;

	if (text == NULL)
		return NULL;
	for (size_t i = 0; i < length; i += 3)
	{
		size_t left = length - i;
		uint32_t group = (uint32_t) (unsigned char) bytes[i] << 16;

		if (left > 1)
			group |= (uint32_t) (unsigned char) bytes[i + 1] << 8;
		if (left > 2)
			group |= (uint32_t) (unsigned char) bytes[i + 2];
		*end++ = base64_digits[group >> 18 & 63];
		*end++ = base64_digits[group >> 12 & 63];
		*end++ = left > 1 ? base64_digits[group >> 6 & 63] : '=';
		*end++ = left > 2 ? base64_digits[group & 63] : '=';
	}
	*end = '\0';
	return text;
}
