/*
 * sha1.h
 *		SHA-1 (FIPS 180-4), for the handshake of WebSockets and nothing else.
 */
#ifndef SBX_NET_SHA1_H
#define SBX_NET_SHA1_H

#include <stddef.h>

#define SBX_SHA1_SIZE 20

extern void
sbx_sha1(unsigned char digest[SBX_SHA1_SIZE], const char *data, size_t length);

#endif
