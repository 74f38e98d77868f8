/*
 * address.c
 *		Which network addresses a request may go to.
 */
#include "net/address.h"

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Ipv4Range
{
	uint32_t first; /* host byte order */
	int prefix_length;
} Ipv4Range;

/* IANA special-purpose IPv4 blocks that are not reachable as public hosts. */
static const Ipv4Range ipv4_private[] = {
    {0x00000000, 8},  /* "this network" */
    {0x0A000000, 8},  /* private */
    {0x64400000, 10}, /* carrier-grade NAT */
    {0xA9FE0000, 16}, /* link-local, where cloud metadata lives */
    {0xAC100000, 12}, /* private */
    {0xC0000000, 24}, /* protocol assignments */
    {0xC0000200, 24}, /* documentation */
    {0xC0586300, 24}, /* 6to4 relays */
    {0xC0A80000, 16}, /* private */
    {0xC6120000, 15}, /* benchmarking */
    {0xC6336400, 24}, /* documentation */
    {0xCB007100, 24}, /* documentation */
    {0xE0000000, 4},  /* multicast */
    {0xF0000000, 4},  /* reserved and broadcast */
};

static SbxAddressClass
classify_ipv4(uint32_t address)
{
	if ((address >> 24) == 127)
		return SBX_ADDRESS_LOOPBACK;
	for (size_t i = 0; i < sizeof(ipv4_private) / sizeof(ipv4_private[0]); i++)
	{
		int shift = 32 - ipv4_private[i].prefix_length;

		if ((address >> shift) == (ipv4_private[i].first >> shift))
			return SBX_ADDRESS_PRIVATE;
	}
	return SBX_ADDRESS_PUBLIC;
}

static uint32_t
read_uint32(const uint8_t *bytes)
{
	return ((uint32_t) bytes[0] << 24) | ((uint32_t) bytes[1] << 16) |
	       ((uint32_t) bytes[2] << 8) | (uint32_t) bytes[3];
}

static SbxAddressClass
classify_ipv6(const uint8_t *bytes)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
	static const uint8_t loopback[16] = {[15] = 1};

	if (memcmp(bytes, loopback, 16) == 0)
		return SBX_ADDRESS_LOOPBACK;

	/* An IPv4 address in disguise is what it stands for. */
	if (memcmp(bytes, mapped, 12) == 0 || memcmp(bytes, nat64, 12) == 0)
		return classify_ipv4(read_uint32(bytes + 12));
	if (bytes[0] == 0x20 && bytes[1] == 0x02) /* 6to4 */
		return classify_ipv4(read_uint32(bytes + 2));

	/* Global unicast is 2000::/3; all else is local, multicast or reserved. */
	if ((bytes[0] & 0xe0) != 0x20)
		return SBX_ADDRESS_PRIVATE;
	if (bytes[0] == 0x20 && bytes[1] == 0x01 &&
	    ((bytes[2] & 0xfe) == 0x00 || (bytes[2] == 0x0d && bytes[3] == 0xb8)))
		return SBX_ADDRESS_PRIVATE; /* protocol assignments, Teredo, documentation */
	return SBX_ADDRESS_PUBLIC;
}

SbxAddressClass
sbx_address_classify(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return classify_ipv4(
		    ntohl(((const struct sockaddr_in *) address)->sin_addr.s_addr));
	if (address->sa_family == AF_INET6)
		return classify_ipv6(
		    ((const struct sockaddr_in6 *) address)->sin6_addr.s6_addr);

	/* Anything else, a unix socket for one, is never a provider. */
	return SBX_ADDRESS_PRIVATE;
}
