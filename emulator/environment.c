/*
 * environment.c
 *		The environment of a command, as a list of NAME=value.
 */
#include "environment.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

bool
emu_environment_name_valid(const char *name)
{
	static const char letters[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name != '\0' && !(*name >= '0' && *name <= '9') &&
	       name[strspn(name, letters)] == '\0';
}

void
emu_environment_set(EmuEnvironment *environment, const char *name, const char *value)
{
	size_t length = strlen(name);
	EmuText variable = {0};
	size_t place = 0;

	emu_text_format(&variable, "%s=%s", name, value);
	while (place < environment->count &&
	       (strncmp(environment->variables[place], name, length) != 0 ||
	        environment->variables[place][length] != '='))
		place++;
	if (place == environment->count)
	{
		environment->variables =
		    emu_realloc(environment->variables, (place + 2) * sizeof(char *));
		environment->variables[place + 1] = NULL;
		environment->count++;
	}
	else
		free(environment->variables[place]);
	environment->variables[place] = variable.data;
}

void
emu_environment_set_basics(EmuEnvironment *environment, const char *home,
                           const char *user)
{
	emu_environment_set(environment, "HOME", home);
	emu_environment_set(environment, "USER", user);
	emu_environment_set(environment, "LOGNAME", user);
	emu_environment_set(environment, "PATH", "/usr/local/bin:/usr/bin:/bin");
	emu_environment_set(environment, "LANG", "C.UTF-8");
	emu_environment_set(environment, "SHELL", "/bin/bash");
}

bool
emu_environment_set_json(EmuEnvironment *environment, const json_t *object)
{
	const char *name;
	json_t *value;

	if (object == NULL || json_is_null(object))
		return true;
	if (!json_is_object(object))
		return false;
	json_object_foreach ((json_t *) (uintptr_t) object, name, value)
	{
		if (!emu_environment_name_valid(name) || !json_is_string(value) ||
		    strlen(json_string_value(value)) != json_string_length(value))
			return false;
		emu_environment_set(environment, name, json_string_value(value));
	}
	return true;
}

void
emu_environment_free(EmuEnvironment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		free(environment->variables[i]);
	free(environment->variables);
	memset(environment, 0, sizeof(*environment));
}
