/*
 * websocket.h
 *		WebSockets: the handshake, and messages in both directions.
 *
 * To be used with the emulator's lock held; events arrive with it held.
 */
#ifndef EMU_WEBSOCKET_H
#define EMU_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "request.h"

typedef struct EmuWebSocketEvents
{
	/* A whole message of the client; may be NULL. */
	void (*message)(void *owner, bool binary, const char *data, size_t length);

	/* The client has left, or never took the handshake: do not use it again. */
	void (*closed)(void *owner);
} EmuWebSocketEvents;

/* Does the request ask for a WebSocket? */
extern bool emu_websocket_wanted(EmuRequest *request);

/*
 * Answers with the handshake; what is sent from then on waits until the
 * client has it.  If the handshake is not as it must be, refuses the request
 * and returns NULL.
 */
extern EmuWebSocket *
emu_websocket_accept(EmuRequest *request, const EmuWebSocketEvents *events,
                     void *owner);

extern void
emu_websocket_send(EmuWebSocket *socket, bool binary, const char *data, size_t length);

/*
 * Sends what is queued, then says goodbye with this code.  The owner hears no
 * more of it and must not use it again.
 */
extern void emu_websocket_close(EmuWebSocket *socket, uint16_t code);

/* For the server: the handshake of this socket as a response. */
extern struct MHD_Response *emu_websocket_response(EmuWebSocket *socket);

/* For the server: the request ends without the handshake having been sent. */
extern void emu_websocket_drop(EmuWebSocket *socket);

/* For the server, when it ends: none is open after this, nor will one be. */
extern void emu_websockets_end(void);

#endif
