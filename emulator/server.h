/*
 * server.h
 *		The HTTP side: listening, reading requests, sending answers.
 */
#ifndef EMU_SERVER_H
#define EMU_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "request.h"

typedef struct EmuServerOptions
{
	const char *host;
	int port; /* 0: any free one */
	int threads;
	int64_t latency_ms;    /* added to every answer of a provider */
	char *tls_certificate; /* PEM text, NULL without TLS */
	char *tls_key;
} EmuServerOptions;

/* Returns the port, or -1 after a message on standard error. */
extern int emu_server_start(const EmuServerOptions *options);
extern void emu_server_stop(void);

/* With the lock held: closes the listener for a while. */
extern void emu_server_refuse(int64_t ms);

/*
 * With the lock held: the connections of all answers that are held end
 * without one, except that of `spare`.
 */
extern void emu_server_abandon_all(const EmuRequest *spare);

/* The part of an absolute URL before the path, as the client addressed us. */
extern void emu_server_origin(EmuRequest *request, EmuText *text);

#endif
