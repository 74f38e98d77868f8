/*
 * provider.c
 *		The providers that are emulated.
 */
#include "provider.h"

#include <string.h>

const EmuProvider *const emu_providers[] = {&emu_daytona, NULL};

const EmuProvider *
emu_provider_by_name(const char *name)
{
	for (size_t i = 0; emu_providers[i] != NULL; i++)
		if (strcmp(emu_providers[i]->name, name) == 0)
			return emu_providers[i];
	return NULL;
}

const EmuProvider *
emu_provider_by_path(const char *path)
{
	for (size_t i = 0; emu_providers[i] != NULL; i++)
		if (strncmp(path, emu_providers[i]->prefix, strlen(emu_providers[i]->prefix)) ==
		    0)
			return emu_providers[i];
	return NULL;
}
