/*
 * provider.h
 *		What the emulator needs to know of each provider it stands in for.
 */
#ifndef EMU_PROVIDER_H
#define EMU_PROVIDER_H

#include <stdbool.h>

#include "request.h"
#include "sandbox.h"
#include "settings.h"

/* A provider with two planes may have an address for each. */
#define EMU_PROVIDER_PREFIXES 2

struct EmuProvider
{
	const char *name;
	const char *prefixes[EMU_PROVIDER_PREFIXES]; /* "/daytona/"; may end with NULL */

	/*
	 * Which operation a request is.  Called once when only the headers have
	 * been read, and again when the body is complete.
	 */
	EmuOperation (*classify)(EmuRequest *request);
	void (*handle)(EmuRequest *request);

	/* Answers in the provider's own error format. */
	void (*refuse)(EmuRequest *request, int status, const char *message);

	/* An id of the provider's own form, of EMU_UUID_SIZE at most; NULL: a UUID. */
	void (*make_id)(char *buffer);

	/* Frees what the provider keeps with a sandbox; its guest is gone. */
	void (*release)(EmuSandbox *sandbox);

	/* Of /_control/config. */
	const EmuSetting *settings;
	size_t setting_count;

	/* Forgets what is kept beside sandboxes and settings; may be NULL. */
	void (*reset)(void);

	EmuQuota *quota;
};

extern const EmuProvider *const emu_providers[];

extern const EmuProvider *emu_provider_by_name(const char *name);
extern const EmuProvider *emu_provider_by_path(const char *path);

/* As the provider's own refuse. */
extern void emu_refuse_format(EmuRequest *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern const EmuProvider emu_agent37;
extern const EmuProvider emu_daytona;
extern const EmuProvider emu_e2b;
extern const EmuProvider emu_freestyle;
extern const EmuProvider emu_microsandbox;
extern const EmuProvider emu_vercel;

#endif
