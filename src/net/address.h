/*
 * address.h
 *		Which network addresses a request may go to.
 *
 * The check runs on the resolved address, after name resolution, so that a name
 * which changes its answer cannot get past it.  Plain C.
 */
#ifndef SBX_NET_ADDRESS_H
#define SBX_NET_ADDRESS_H

#include <sys/socket.h>

typedef enum SbxAddressClass
{
	SBX_ADDRESS_PUBLIC,
	SBX_ADDRESS_LOOPBACK,
	SBX_ADDRESS_PRIVATE /* private, link-local, shared, multicast, reserved, odd */
} SbxAddressClass;

extern SbxAddressClass sbx_address_classify(const struct sockaddr *address);

#endif /* SBX_NET_ADDRESS_H */
