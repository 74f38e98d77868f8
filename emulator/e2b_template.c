/*
 * e2b_template.c
 *		Templates: what a sandbox is made from, and how large it is then.
 *
 * Any name is known, except those that begin with "no-such-".
 */
#include "e2b.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* vCPUs, MiB, MiB.  What is not listed is as large as the first. */
static const struct
{
	const char *id; /* NULL: made from the name */
	const char *alias;
	EmuResources resources;
} templates[] = {
    {"rki5dems9wqfm4r03t7g", "base", {2, 512, 1024}},
    {NULL, "code-interpreter-v1", {2, 1024, 2048}},
    {NULL, "desktop", {8, 8192, 10240}},
};

#define TEMPLATE_COUNT (sizeof(templates) / sizeof(templates[0]))

/* Twenty letters and digits, the same for the same name. */
static void
make_template_id(char *id, const char *alias)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t hash = emu_hash(alias, strlen(alias));

	for (int i = 0; i < 20; i++)
	{
		if (hash == 0)
			hash = emu_hash(id, (size_t) i);
		id[i] = letters[hash % 36];
		hash /= 36;
	}
	id[20] = '\0';
}

/* namespace/name:tag, of which namespace and tag may be missing. */
static bool
reference_valid(const char *reference)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t length = strspn(reference, letters);

	if (length > 0 && reference[length] == '/')
	{
		reference += length + 1;
		length = strspn(reference, letters);
	}
	if (length == 0)
		return false;
	if (reference[length] == ':')
	{
		reference += length + 1;
		while (*reference != '\0' &&
		       (strchr(letters, *reference) != NULL || *reference == '.'))
			reference++;
		return *reference == '\0' && reference[-1] != ':';
	}
	return reference[length] == '\0';
}

static char *
reference_tidy(const char *reference)
{
	size_t length = strlen(reference);
	char *tidy;

	while (length > 0 && isspace((unsigned char) reference[length - 1]))
		length--;
	while (length > 0 && isspace((unsigned char) *reference))
	{
		reference++;
		length--;
	}
	tidy = emu_strndup(reference, length);
	for (char *place = tidy; *place != '\0'; place++)
		*place = (char) tolower((unsigned char) *place);
	return tidy;
}

static void
template_fill(E2bTemplate *found, const char *name)
{
	size_t place = 0;

	while (place < TEMPLATE_COUNT && strcmp(name, templates[place].alias) != 0 &&
	       (templates[place].id == NULL || strcmp(name, templates[place].id) != 0))
		place++;
	found->resources = templates[place < TEMPLATE_COUNT ? place : 0].resources;
	found->alias = emu_strdup(place < TEMPLATE_COUNT ? templates[place].alias : name);
	if (place < TEMPLATE_COUNT && templates[place].id != NULL)
		snprintf(found->id, sizeof(found->id), "%s", templates[place].id);
	else
		make_template_id(found->id, found->alias);
}

bool
e2b_template_find(EmuRequest *request, const char *reference, E2bTemplate *found)
{
	char *tidy = reference_tidy(reference);
	char *slash = strchr(tidy, '/');
	char *name = slash != NULL ? slash + 1 : tidy;
	bool valid = reference_valid(tidy);

	if (!valid)
		emu_refuse_format(request, 400, "Invalid template reference: %.200s", tidy);
	else if (strncmp(name, "no-such-", 8) == 0)
	{
		emu_refuse_format(request, 404, "template '%.200s' not found", tidy);
		valid = false;
	}
	else
	{
		name[strcspn(name, ":")] = '\0';
		template_fill(found, name);
	}
	free(tidy);
	return valid;
}
