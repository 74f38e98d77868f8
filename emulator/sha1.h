/*
 * sha1.h
 *		SHA-1 (FIPS 180-4), for the WebSocket handshake and nothing else.
 */
#ifndef EMU_SHA1_H
#define EMU_SHA1_H

#include <stddef.h>

#define EMU_SHA1_SIZE 20

extern void
emu_sha1(unsigned char digest[EMU_SHA1_SIZE], const char *data, size_t length);

#endif
