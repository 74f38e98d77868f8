/*
 * sha1.c
 *		SHA-1 (FIPS 180-4), for the handshake of WebSockets and nothing else.
 */
#include "net/sha1.h"

#include <stdint.h>
#include <string.h>

#define BLOCK_SIZE 64

static uint32_t
rotate(uint32_t word, unsigned bits)
{
	return word << bits | word >> (32 - bits);
}

/* The function and the constant of a round; there are 80. */
static uint32_t
mix(unsigned round, uint32_t b, uint32_t c, uint32_t d)
{
	if (round < 20)
		return ((b & c) | (~b & d)) + 0x5A827999;
	if (round < 40)
		return (b ^ c ^ d) + 0x6ED9EBA1;
	if (round < 60)
		return ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC;
	return (b ^ c ^ d) + 0xCA62C1D6;
}

static void
add_block(uint32_t state[5], const unsigned char *block)
{
	uint32_t words[80];
	uint32_t v[5];

	for (unsigned i = 0; i < 16; i++)
		words[i] = (uint32_t) block[i * 4] << 24 | (uint32_t) block[i * 4 + 1] << 16 |
		           (uint32_t) block[i * 4 + 2] << 8 | block[i * 4 + 3];
	for (unsigned i = 16; i < 80; i++)
		words[i] =
		    rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	memcpy(v, state, sizeof(v));
	for (unsigned i = 0; i < 80; i++)
	{
		uint32_t next = rotate(v[0], 5) + mix(i, v[1], v[2], v[3]) + v[4] + words[i];

		v[4] = v[3];
		v[3] = v[2];
		v[2] = rotate(v[1], 30);
		v[1] = v[0];
		v[0] = next;
	}
	for (unsigned i = 0; i < 5; i++)
		state[i] += v[i];
}

/* A one bit, zeros, and the length in bits fill the last one or two blocks. */
static void
add_end(uint32_t state[5], const unsigned char *rest, size_t count, uint64_t length)
{
	unsigned char last[2 * BLOCK_SIZE] = {0};
	size_t size = count + 9 <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;

	memcpy(last, rest, count);
	last[count] = 0x80;
	for (unsigned i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char) (length * 8 >> i * 8);
	for (size_t i = 0; i < size; i += BLOCK_SIZE)
		add_block(state, last + i);
}

void
sbx_sha1(unsigned char digest[SBX_SHA1_SIZE], const char *data, size_t length)
{
	uint32_t state[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
	const unsigned char *bytes = (const unsigned char *) data;
	size_t whole = length - length % BLOCK_SIZE;

	for (size_t i = 0; i < whole; i += BLOCK_SIZE)
		add_block(state, bytes + i);
	add_end(state, bytes + whole, length - whole, length);
	for (unsigned i = 0; i < SBX_SHA1_SIZE; i++)
		digest[i] = (unsigned char) (state[i / 4] >> (24 - i % 4 * 8));
}
