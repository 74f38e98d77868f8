/*
 * text.c
 *		Growing text, JSON output, and the few encodings the emulator needs.
 */
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

static void *
memory_or_exit(void *memory)
{
	if (memory == NULL)
	{
		fputs("sbx_emulator: out of memory\n", stderr);
		abort();
	}
	return memory;
}

void *
emu_alloc(size_t size)
{
	return memory_or_exit(calloc(1, size > 0 ? size : 1));
}

void *
emu_realloc(void *old, size_t size)
{
	return memory_or_exit(realloc(old, size > 0 ? size : 1));
}

char *
emu_strdup(const char *string)
{
	return memory_or_exit(strdup(string));
}

char *
emu_strndup(const char *string, size_t length)
{
	return memory_or_exit(strndup(string, length));
}

static void
text_reserve(EmuText *text, size_t more)
{
	size_t needed = text->length + more + 1;
	size_t capacity = text->capacity > 0 ? text->capacity : 1024;

	if (needed <= text->capacity)
		return;
	while (capacity < needed)
		capacity *= 2;
	text->data = emu_realloc(text->data, capacity);
	text->capacity = capacity;
}

void
emu_text_append(EmuText *text, const char *data, size_t length)
{
	text_reserve(text, length);
	if (length > 0)
		memcpy(text->data + text->length, data, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void
emu_text_add(EmuText *text, const char *string)
{
	emu_text_append(text, string, strlen(string));
}

void
emu_text_fill(EmuText *text, char byte, size_t count)
{
	text_reserve(text, count);
	memset(text->data + text->length, byte, count);
	text->length += count;
	text->data[text->length] = '\0';
}

/* By hand: printf is the most expensive thing on the create path. */
void
emu_text_number(EmuText *text, int64_t number)
{
	char digits[24];
	char *end = digits + sizeof(digits);
	char *start = end;
	uint64_t rest = number < 0 ? -(uint64_t) number : (uint64_t) number;

	do
	{
		*--start = (char) ('0' + rest % 10);
		rest /= 10;
	} while (rest > 0);
	if (number < 0)
		*--start = '-';
	emu_text_append(text, start, (size_t) (end - start));
}

void
emu_text_format(EmuText *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	text_reserve(text, (size_t) length);
	va_start(arguments, format);
	vsnprintf(text->data + text->length, (size_t) length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t) length;
}

void
emu_text_insert(EmuText *text, size_t position, const char *data, size_t length)
{
	text_reserve(text, length);
	memmove(text->data + position + length, text->data + position,
	        text->length - position);
	memcpy(text->data + position, data, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void
emu_text_free(EmuText *text)
{
	free(text->data);
	memset(text, 0, sizeof(*text));
}

char *
emu_text_steal(EmuText *text)
{
	char *data;

	text_reserve(text, 0);
	data = text->data;
	data[text->length] = '\0';
	memset(text, 0, sizeof(*text));
	return data;
}

/*
 * Length of the well-formed UTF-8 character at data, 0 if there is none:
 * overlong forms, surrogates and values above U+10FFFF are not well-formed.
 */
static size_t
utf8_length(const unsigned char *data, size_t available)
{
	unsigned char first = data[0];
	unsigned char low = 0x80;
	unsigned char high = 0xBF;
	size_t length;

	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4)
		return 0;
	length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
	if (first == 0xE0)
		low = 0xA0;
	else if (first == 0xED)
		high = 0x9F;
	else if (first == 0xF0)
		low = 0x90;
	else if (first == 0xF4)
		high = 0x8F;
	if (available < length || data[1] < low || data[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (data[i] < 0x80 || data[i] > 0xBF)
			return 0;
	return length;
}

static void
json_escape_byte(EmuText *text, unsigned char byte)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};

	switch (byte)
	{
		case '"':
			emu_text_append(text, "\\\"", 2);
			break;
		case '\\':
			emu_text_append(text, "\\\\", 2);
			break;
		case '\n':
			emu_text_append(text, "\\n", 2);
			break;
		case '\r':
			emu_text_append(text, "\\r", 2);
			break;
		case '\t':
			emu_text_append(text, "\\t", 2);
			break;
		default:
			emu_text_append(text, escape, sizeof(escape));
	}
}

/*
 * Any bytes as a JSON string.  Each byte that is not part of well-formed
 * UTF-8 becomes U+FFFD, as the providers' own encoders do.
 */
void
emu_json_string(EmuText *text, const char *data, size_t length)
{
	const unsigned char *bytes = (const unsigned char *) data;
	size_t plain = 0; /* start of the run not yet copied */
	size_t i = 0;

	emu_text_append(text, "\"", 1);
	while (i < length)
	{
		size_t width = utf8_length(bytes + i, length - i);

		if (width > 1 ||
		    (width == 1 && bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\'))
		{
			i += width;
			continue;
		}
		emu_text_append(text, data + plain, i - plain);
		if (width == 0)
			emu_text_append(text, "\xEF\xBF\xBD", 3);
		else
			json_escape_byte(text, bytes[i]);
		plain = ++i;
	}
	emu_text_append(text, data + plain, i - plain);
	emu_text_append(text, "\"", 1);
}

static void
json_escape_unit(EmuText *text, unsigned unit)
{
	emu_text_format(text, "\\u%04x", unit);
}

static void
json_escape_character(EmuText *text, const unsigned char *bytes, size_t width)
{
	static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
	unsigned code = bytes[0] & masks[width];

	for (size_t i = 1; i < width; i++)
		code = code << 6 | (bytes[i] & 0x3F);
	if (code < 0x10000)
	{
		json_escape_unit(text, code);
		return;
	}
	code -= 0x10000;
	json_escape_unit(text, 0xD800 | code >> 10);
	json_escape_unit(text, 0xDC00 | (code & 0x3FF));
}

/* The same, for clients that take what they read in pieces for whole characters. */
void
emu_json_string_ascii(EmuText *text, const char *data, size_t length)
{
	const unsigned char *bytes = (const unsigned char *) data;
	size_t plain = 0; /* start of the run not yet copied */
	size_t i = 0;

	emu_text_append(text, "\"", 1);
	while (i < length)
	{
		size_t width = utf8_length(bytes + i, length - i);

		if (width == 1 && bytes[i] >= 0x20 && bytes[i] != '"' && bytes[i] != '\\')
		{
			i++;
			continue;
		}
		emu_text_append(text, data + plain, i - plain);
		if (width == 0)
			json_escape_unit(text, 0xFFFD);
		else if (width == 1)
			json_escape_byte(text, bytes[i]);
		else
			json_escape_character(text, bytes + i, width);
		i += width > 0 ? width : 1;
		plain = i;
	}
	emu_text_append(text, data + plain, i - plain);
	emu_text_append(text, "\"", 1);
}

size_t
emu_utf8_tail(const char *data, size_t length)
{
	static const unsigned char filler[] = {0x80, 0x80, 0x80};

	for (size_t tail = 1; tail <= 3 && tail <= length; tail++)
	{
		unsigned char character[6];
		unsigned char first = (unsigned char) data[length - tail];

		if (first < 0x80)
			return 0;
		if (first < 0xC0)
			continue;

		/* E0 and F0 ask for more of what comes second than the filler has. */
		memcpy(character, data + length - tail, tail);
		memcpy(character + tail, filler, sizeof(filler));
		if (tail == 1 && (first == 0xE0 || first == 0xF0))
			character[1] = 0xA0;
		return utf8_length(character, tail) == 0 &&
		               utf8_length(character, sizeof(character)) > tail
		           ? tail
		           : 0;
	}
	return 0;
}

/* Member names are constants of ours and need no escaping. */
void
emu_json_key(EmuText *text, const char *name)
{
	char last = text->length > 0 ? text->data[text->length - 1] : '{';

	if (last != '{' && last != '[')
		emu_text_append(text, ",", 1);
	emu_text_append(text, "\"", 1);
	emu_text_add(text, name);
	emu_text_append(text, "\":", 2);
}

void
emu_json_member_bytes(EmuText *text, const char *name, const char *data, size_t length)
{
	emu_json_key(text, name);
	emu_json_string(text, data, length);
}

void
emu_json_member(EmuText *text, const char *name, const char *value)
{
	if (value == NULL)
		emu_json_member_raw(text, name, "null");
	else
		emu_json_member_bytes(text, name, value, strlen(value));
}

void
emu_json_member_raw(EmuText *text, const char *name, const char *json)
{
	emu_json_key(text, name);
	emu_text_add(text, json);
}

void
emu_json_member_number(EmuText *text, const char *name, double number)
{
	emu_json_key(text, name);
	if (number == (double) (int64_t) number)
		emu_text_number(text, (int64_t) number);
	else
		emu_text_format(text, "%.17g", number);
}

void
emu_json_member_integer(EmuText *text, const char *name, int64_t number)
{
	emu_json_key(text, name);
	emu_text_number(text, number);
}

void
emu_json_member_time(EmuText *text, const char *name, int64_t wall_ms)
{
	emu_json_key(text, name);
	emu_text_append(text, "\"", 1);
	emu_text_time(text, wall_ms);
	emu_text_append(text, "\"", 1);
}

static void
text_digits(char *place, int number, int width)
{
	while (width-- > 0)
	{
		place[width] = (char) ('0' + number % 10);
		number /= 10;
	}
}

/* ISO 8601 in UTC with milliseconds: 2026-12-01T10:00:00.000Z */
void
emu_text_time(EmuText *text, int64_t wall_ms)
{
	char stamp[25] = "0000-00-00T00:00:00.000Z";
	time_t seconds = (time_t) (wall_ms / 1000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	text_digits(stamp, utc.tm_year + 1900, 4);
	text_digits(stamp + 5, utc.tm_mon + 1, 2);
	text_digits(stamp + 8, utc.tm_mday, 2);
	text_digits(stamp + 11, utc.tm_hour, 2);
	text_digits(stamp + 14, utc.tm_min, 2);
	text_digits(stamp + 17, utc.tm_sec, 2);
	text_digits(stamp + 20, (int) (wall_ms % 1000), 3);
	emu_text_append(text, stamp, sizeof(stamp) - 1);
}

static const char base64_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
emu_text_base64(EmuText *text, const char *data, size_t length)
{
	const unsigned char *bytes = (const unsigned char *) data;

	for (size_t i = 0; i < length; i += 3)
	{
		size_t left = length - i;
		uint32_t group = (uint32_t) bytes[i] << 16 |
		                 (left > 1 ? (uint32_t) bytes[i + 1] << 8 : 0) |
		                 (left > 2 ? (uint32_t) bytes[i + 2] : 0);
		char letters[4] = {
		    base64_letters[group >> 18 & 63],
		    base64_letters[group >> 12 & 63],
		    left > 1 ? base64_letters[group >> 6 & 63] : '=',
		    left > 2 ? base64_letters[group & 63] : '=',
		};

		emu_text_append(text, letters, 4);
	}
}

bool
emu_text_unbase64(EmuText *text, const char *data, size_t length)
{
	uint32_t group = 0;
	int bits = 0;

	if (length == 0 || length % 4 != 0)
		return false;
	while (length > 0 && data[length - 1] == '=')
		length--;
	for (size_t i = 0; i < length; i++)
	{
		const char *letter = data[i] == '\0' ? NULL : strchr(base64_letters, data[i]);

		if (letter == NULL)
			return false;
		group = group << 6 | (uint32_t) (letter - base64_letters);
		bits += 6;
		if (bits >= 8)
		{
			char byte = (char) (group >> (bits - 8) & 0xFF);

			bits -= 8;
			emu_text_append(text, &byte, 1);
		}
	}
	return true;
}

static int
hex_value(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	letter |= 0x20;
	return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* A '%' that no two hexadecimal digits follow stands for itself. */
void
emu_text_unescape_url(EmuText *text, const char *data, size_t length,
                      bool plus_is_space)
{
	emu_text_append(text, "", 0);
	for (size_t i = 0; i < length; i++)
	{
		char byte = data[i];

		if (byte == '+' && plus_is_space)
			byte = ' ';
		else if (byte == '%' && i + 2 < length && hex_value(data[i + 1]) >= 0 &&
		         hex_value(data[i + 2]) >= 0)
		{
			byte = (char) (hex_value(data[i + 1]) << 4 | hex_value(data[i + 2]));
			i += 2;
		}
		emu_text_append(text, &byte, 1);
	}
}

void
emu_text_gzip(EmuText *text, const char *data, size_t length)
{
	z_stream stream = {0};
	char buffer[65536];
	int status = Z_OK;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		return;
	stream.next_in = (Bytef *) (uintptr_t) data;
	stream.avail_in = (uInt) length;
	while (status == Z_OK)
	{
		stream.next_out = (Bytef *) buffer;
		stream.avail_out = sizeof(buffer);
		status = deflate(&stream, Z_FINISH);
		emu_text_append(text, buffer, sizeof(buffer) - stream.avail_out);
	}
	deflateEnd(&stream);
}

/* The limit keeps a small compressed body from unpacking to gigabytes. */
bool
emu_text_gunzip(EmuText *text, const char *data, size_t length, size_t limit)
{
	z_stream stream = {0};
	char buffer[65536];
	int status = Z_OK;

	if (inflateInit2(&stream, 15 + 32) != Z_OK)
		return false;
	stream.next_in = (Bytef *) (uintptr_t) data;
	stream.avail_in = (uInt) length;
	while (status == Z_OK && text->length <= limit)
	{
		stream.next_out = (Bytef *) buffer;
		stream.avail_out = sizeof(buffer);
		status = inflate(&stream, Z_NO_FLUSH);
		if (status == Z_OK || status == Z_STREAM_END)
			emu_text_append(text, buffer, sizeof(buffer) - stream.avail_out);
	}
	inflateEnd(&stream);
	return status == Z_STREAM_END && text->length <= limit;
}

int64_t
emu_wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t
emu_clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t random_state;

void
emu_random_seed(uint64_t seed)
{
	__atomic_store_n(&random_state, seed, __ATOMIC_RELAXED);
}

/* SplitMix64: one atomic addition, so any thread may ask without a lock. */
uint64_t
emu_random(void)
{
	uint64_t mixed = __atomic_add_fetch(&random_state, UINT64_C(0x9E3779B97F4A7C15),
	                                    __ATOMIC_RELAXED);

	mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
	return mixed ^ (mixed >> 31);
}

void
emu_uuid(char *buffer)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t words[2] = {emu_random(), emu_random()};
	char *place = buffer;

	for (int i = 0; i < 32; i++)
	{
		unsigned digit = (unsigned) (words[i / 16] >> (4 * (i % 16)) & 15);

		if (i == 8 || i == 12 || i == 16 || i == 20)
			*place++ = '-';
		if (i == 12)
			digit = 4; /* version: random */
		else if (i == 16)
			digit = 8 | (digit & 3); /* variant of RFC 4122 */
		*place++ = hex[digit];
	}
	*place = '\0';
}
