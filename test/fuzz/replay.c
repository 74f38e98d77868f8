/*
 * replay.c
 *		Runs a target once over each file of some folders, without a fuzzer; as TAP.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static int inputs;

static void
replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t size = 0;
	size_t room = 0;

	if (file == NULL)
	{
		perror(path);
		exit(1);
	}
	for (;;)
	{
		size_t count;

		if (size == room)
		{
			room = room * 2 + 4096;
			data = realloc(data, room);
			if (data == NULL)
				abort();
		}
		count = fread(data + size, 1, room - size, file);
		if (count == 0)
			break;
		size += count;
	}
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	inputs++;
}

static void
replay_folder(const char *folder)
{
	DIR *directory = opendir(folder);
	struct dirent *entry;
	char path[4096];

	if (directory == NULL)
	{
		perror(folder);
		exit(1);
	}
	while ((entry = readdir(directory)) != NULL)
	{
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		replay_file(path);
	}
	closedir(directory);
}

/* replay TARGET FOLDER: the first argument is for people. */
int
main(int count, char **arguments)
{
	if (count < 3)
	{
		fprintf(stderr, "usage: %s TARGET FOLDER...\n", arguments[0]);
		return 2;
	}
	for (int i = 2; i < count; i++)
		replay_folder(arguments[i]);
	printf("%s 1 - %s: %d inputs\n", inputs > 0 ? "ok" : "not ok", arguments[1],
	       inputs);
	return inputs > 0 ? 0 : 1;
}
