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

extern void emu_websocket_ping(EmuWebSocket *socket);

/*
 * As one binary message in several frames of at most this size (and 4 KiB);
 * between two of them the client may be asked whether it is there.
 */
extern void emu_websocket_send_in_pieces(EmuWebSocket *socket, const char *data,
                                         size_t length, size_t size, bool ping);

/* The place in the stream at which what is sent next begins. */
extern uint64_t emu_websocket_place(const EmuWebSocket *socket);

/*
 * For tests: what the stream does at a place that it has not come to yet, and
 * that is behind those of all such breaks before.
 */
typedef enum EmuWebSocketBreak
{
	EMU_WEBSOCKET_PAUSE,   /* for so many ms */
	EMU_WEBSOCKET_SILENCE, /* for ever */
	EMU_WEBSOCKET_END,     /* of the connection, without a goodbye */
	EMU_WEBSOCKET_RESET    /* of the connection */
} EmuWebSocketBreak;

extern void emu_websocket_break(EmuWebSocket *socket, uint64_t place,
                                EmuWebSocketBreak kind, int64_t ms);

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
