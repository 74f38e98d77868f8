/*
 * environment.h
 *		The environment of a command, as a list of NAME=value.
 */
#ifndef EMU_ENVIRONMENT_H
#define EMU_ENVIRONMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct EmuEnvironment
{
	char **variables; /* ends with NULL */
	size_t count;
} EmuEnvironment;

extern bool emu_environment_name_valid(const char *name);

/* A name that is there already gets the new value. */
extern void
emu_environment_set(EmuEnvironment *environment, const char *name, const char *value);

/* What every command finds: HOME, USER, PATH and the like. */
extern void emu_environment_set_basics(EmuEnvironment *environment, const char *home,
                                       const char *user);

/* An object of strings; false if there is an invalid name or value in it. */
extern bool emu_environment_set_json(EmuEnvironment *environment, const json_t *object);
extern void emu_environment_free(EmuEnvironment *environment);

#endif
