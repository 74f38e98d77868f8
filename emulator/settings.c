/*
 * settings.c
 *		Settings of a provider, as /_control/config reads and shows them.
 */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

static bool
setting_take(const EmuSetting *setting, const json_t *value)
{
	if (setting->number != NULL && json_is_integer(value) &&
	    json_integer_value(value) >= setting->least)
		*setting->number = json_integer_value(value);
	else if (setting->flag != NULL && json_is_boolean(value))
		*setting->flag = json_is_true(value);
	else if (setting->text != NULL && (json_is_string(value) || json_is_null(value)))
	{
		free(*setting->text);
		*setting->text =
		    json_is_string(value) ? emu_strdup(json_string_value(value)) : NULL;
	}
	else
		return false;
	return true;
}

bool
emu_settings_set(const EmuSetting *settings, size_t count, const char *name,
                 const json_t *value)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(settings[i].name, name) == 0)
			return setting_take(&settings[i], value);
	return false;
}

void
emu_settings_reset(const EmuSetting *settings, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		if (settings[i].number != NULL)
			*settings[i].number = settings[i].initial;
		if (settings[i].flag != NULL)
			*settings[i].flag = false;
		if (settings[i].text != NULL)
		{
			free(*settings[i].text);
			*settings[i].text = NULL;
		}
	}
}

void
emu_settings_show(EmuText *text, const char *provider, const EmuSetting *settings,
                  size_t count)
{
	emu_text_add(text, "{");
	emu_json_member(text, "provider", provider);
	for (size_t i = 0; i < count; i++)
		if (settings[i].number != NULL)
			emu_json_member_integer(text, settings[i].name, *settings[i].number);
		else if (settings[i].flag != NULL)
			emu_json_member_raw(text, settings[i].name,
			                    *settings[i].flag ? "true" : "false");
		else
			emu_json_member(text, settings[i].name, *settings[i].text);
	emu_text_add(text, "}");
}
