/*
 * tar.c
 *		One file as a compressed archive.
 */
#include "providers/tar.h"

#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#define TAR_BLOCK    512
#define TAR_NAME_MAX 100

/* zlib counts in less than size_t, and what it makes can be a little longer. */
#define TAR_FILE_MAX ((size_t) 1024 * 1024 * 1024)

/* Where the fields of a header are. */
enum
{
	TAR_NAME = 0,
	TAR_MODE = 100,
	TAR_USER = 108,
	TAR_GROUP = 116,
	TAR_SIZE = 124,
	TAR_TIME = 136,
	TAR_CHECKSUM = 148,
	TAR_TYPE = 156,
	TAR_MAGIC = 257,
	TAR_DEVICE_MAJOR = 329,
	TAR_DEVICE_MINOR = 337
};

#define TAR_FILE 0x30 /* '0' */
#define TAR_PAX  0x78 /* 'x' */

/* --- headers -------------------------------------------------------------- */

static void
tar_put_octal(unsigned char *field, int digits, uint64_t value)
{
	for (int i = digits - 1; i >= 0; i--, value >>= 3)
		field[i] = (unsigned char) ('0' + (value & 7));
	field[digits] = ' ';
}

/*
 * There is no clock here, so the time is 0; what an archive does not know it cannot keep.
 * The checksum counts its own field as blanks.
 */
static void
tar_fill_header(unsigned char *block, const char *name, char type, size_t size)
{
	size_t length = strlen(name);
	unsigned int sum = 0;

	memset(block, 0, TAR_BLOCK);
	memcpy(block + TAR_NAME, name, length < TAR_NAME_MAX ? length : TAR_NAME_MAX);
	tar_put_octal(block + TAR_MODE, 6, 0644);
	tar_put_octal(block + TAR_USER, 6, 0);
	tar_put_octal(block + TAR_GROUP, 6, 0);
	tar_put_octal(block + TAR_SIZE, 11, size);
	tar_put_octal(block + TAR_TIME, 11, 0);
	memset(block + TAR_CHECKSUM, ' ', 8);
	block[TAR_TYPE] = (unsigned char) type;
	memcpy(block + TAR_MAGIC, "ustar\00000", 8);
	tar_put_octal(block + TAR_DEVICE_MAJOR, 6, 0);
	tar_put_octal(block + TAR_DEVICE_MINOR, 6, 0);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += block[i];
	tar_put_octal(block + TAR_CHECKSUM, 6, sum);
	block[TAR_CHECKSUM + 7] = '\0';
}

/* A PAX record starts with its own length in bytes, those of that number included. */
static const char *
tar_path_record(SbxArena *arena, const char *name)
{
	size_t rest = strlen(" path=\n") + strlen(name);
	size_t length = rest;

	for (size_t digits = 1, limit = 10; digits < 20; digits++, limit *= 10)
	{
		length = rest + digits;
		if (length < limit)
			break;
	}
	return sbx_arena_printf(arena, "%zu path=%s\n", length, name);
}

/* --- compression ---------------------------------------------------------- */

/* In the arena everything is wiped in the end: files hold secrets. */
static void *
tar_allocate(void *arena, unsigned int items, unsigned int size)
{
	return sbx_arena_alloc(arena, (size_t) items * size);
}

static void
tar_release(void *arena, void *memory)
{
	(void) arena;
	(void) memory;
}

static bool
tar_write(z_stream *stream, const void *bytes, size_t length)
{
	stream->next_in = (z_const Bytef *) bytes;
	stream->avail_in = (uInt) length;
	return length == 0 ||
	       (deflate(stream, Z_NO_FLUSH) == Z_OK && stream->avail_in == 0);
}

static bool
tar_write_file(z_stream *stream, const char *name, char type, const char *bytes,
               size_t length)
{
	static const char zeros[TAR_BLOCK];
	unsigned char header[TAR_BLOCK];

	tar_fill_header(header, name, type, length);
	return tar_write(stream, header, TAR_BLOCK) && tar_write(stream, bytes, length) &&
	       tar_write(stream, zeros, (TAR_BLOCK - length % TAR_BLOCK) % TAR_BLOCK);
}

static bool
tar_write_archive(z_stream *stream, const char *name, const char *path_record,
                  const char *bytes, size_t length)
{
	static const char end[2 * TAR_BLOCK];

	if (path_record != NULL &&
	    !tar_write_file(stream, "PaxHeader", TAR_PAX, path_record, strlen(path_record)))
		return false;
	return tar_write_file(stream, path_record != NULL ? "PaxHeader" : name, TAR_FILE,
	                      bytes, length) &&
	       tar_write(stream, end, sizeof(end)) &&
	       deflate(stream, Z_FINISH) == Z_STREAM_END;
}

char *
sbx_tar_gzip(SbxArena *arena, const char *name, const char *bytes, size_t length,
             size_t *packed_length)
{
	z_stream stream = {.zalloc = tar_allocate, .zfree = tar_release, .opaque = arena};
	const char *path_record = NULL;
	char *packed = NULL;
	size_t room;

	if (length > TAR_FILE_MAX)
		return NULL;
	if (strlen(name) > TAR_NAME_MAX)
	{
		path_record = tar_path_record(arena, name);
		if (path_record == NULL)
			return NULL;
	}

	/* 16 more than the largest window: the format is gzip's. */
	if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, MAX_MEM_LEVEL,
	                 Z_DEFAULT_STRATEGY) != Z_OK)
		return NULL;
	room = deflateBound(&stream, length + 6 * TAR_BLOCK +
	                                 (path_record == NULL ? 0 : strlen(path_record)));
	packed = sbx_arena_alloc(arena, room);
	if (packed == NULL)
		return NULL;
	stream.next_out = (unsigned char *) packed;
	stream.avail_out = (uInt) room;
	if (!tar_write_archive(&stream, name, path_record, bytes, length))
		return NULL;
	*packed_length = room - stream.avail_out;
	deflateEnd(&stream);
	return packed;
}
