/*
 * settings.h
 *		Settings of a provider, as /_control/config reads and shows them.
 */
#ifndef EMU_SETTINGS_H
#define EMU_SETTINGS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text.h"

/* One of number, flag and text says where the value is kept. */
typedef struct EmuSetting
{
	const char *name;
	int64_t *number; /* at least `least` */
	bool *flag;
	char **text;     /* NULL by default, allocated otherwise */
	int64_t initial; /* of a number; flags begin as false */
	int64_t least;
} EmuSetting;

/* False for a name that is not among them, or a value that does not fit. */
extern bool emu_settings_set(const EmuSetting *settings, size_t count, const char *name,
                             const json_t *value);
extern void emu_settings_reset(const EmuSetting *settings, size_t count);
extern void emu_settings_show(EmuText *text, const char *provider,
                              const EmuSetting *settings, size_t count);

#endif
