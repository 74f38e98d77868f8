/*
 * provider.c
 *		The providers that are emulated.
 */
#include "provider.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const EmuProvider *const emu_providers[] = {
    &emu_daytona,   &emu_e2b,          &emu_vercel, &emu_agent37,
    &emu_freestyle, &emu_microsandbox, NULL,
};

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
		for (size_t j = 0; j < EMU_PROVIDER_PREFIXES; j++)
		{
			const char *prefix = emu_providers[i]->prefixes[j];

			if (prefix != NULL && strncmp(path, prefix, strlen(prefix)) == 0)
				return emu_providers[i];
		}
	return NULL;
}

void
emu_refuse_format(EmuRequest *request, int status, const char *format, ...)
{
	char message[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	request->provider->refuse(request, status, message);
}
