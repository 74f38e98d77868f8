/*
 * agent37.c
 *		Agent37: instances made from a template, which live until they are deleted.
 *
 * Two planes with one key.  The hosting plane (apiUrl) makes, describes, stops and
 * deletes instances and runs commands in them; it takes the key as a bearer token.  Each
 * instance has an address of its own where its template's program listens, which on the
 * provider's templates serves files; the key goes there in a header of its own.  It is
 * root's to all files, so that address is checked first.
 *
 * A create is answered when the instance runs, after seconds or minutes, and cannot be
 * called off: it is known again by its metadata only, because names are not unique.  A
 * command cannot be called off either: what ends it is in its text.
 *
 * Here: what the kind declares.
 */
#include <string.h>

#include "providers/agent37.h"

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_agent37_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the hosting plane, https://api.agent37.com by default"},
    /* The key goes there. */
    {"instanceUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the addresses of all instances, each of which is this, a slash and its "
     "id; "
     "https://<id>.agent37.app by default"},
    {"template", SBX_FIELD_WORD, false, false, 0, 0,
     "template to start from, with @version where one is meant; the provider's own by "
     "default"},
    {"resources.cpu", SBX_FIELD_INTEGER, false, false, 2, 8,
     "vCPUs: 2, 4 or 8; only with memory"},
    {"resources.memory", SBX_FIELD_INTEGER, false, false, 4, 16,
     "memory in GiB: twice the vCPUs; only with cpu"},
    {"resources.disk", SBX_FIELD_INTEGER, false, false, 2, 40,
     "disk in GiB: 2 to 12, 20 or 40, by size; only with cpu and memory"},
    {"type", SBX_FIELD_WORD, false, false, 0, 0,
     "dedicated or shared; the provider's own by default"},
    {"autoSleep", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "put it to sleep when its addresses are idle, whatever runs inside"},
    {"idleTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 60, 86400,
     "idleness in seconds until it sleeps, 300 by default; only with autoSleep"},
    {"homeDir", SBX_FIELD_TEXT, false, false, 0, 0,
     "directory that relative paths of files count from, /home/node by default"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating, 300 by default: 13 s on a warm host, minutes on a cold one, "
     "and "
     "giving up earlier stops nothing"},
    {0}};

static const SbxField agent37_credentials[] = {
    {"apiKey", SBX_FIELD_TEXT, true, false, 0, 0, "API key of the workspace"}, {0}};

static const char *const agent37_operations[] = {
    "launch",    "get",    "find",     "waitReady", "start",    "stop",
    "runScript", "upload", "download", "destroy",   "capacity", NULL};

/* The sizes there are; others are refused with 400. */
static const struct
{
	int64_t cpu;
	int64_t memory;
	int64_t max_disk;
} agent37_sizes[] = {{2, 4, 12}, {4, 8, 20}, {8, 16, 40}};

static const char *
agent37_check_size(const SbxFieldValue *settings)
{
	const SbxFieldValue *cpu = &settings[AGENT37_SET_CPU];
	const SbxFieldValue *memory = &settings[AGENT37_SET_MEMORY];
	const SbxFieldValue *disk = &settings[AGENT37_SET_DISK];

	if (!cpu->is_set && !memory->is_set)
		return disk->is_set ? sbx_agent37_settings[AGENT37_SET_DISK].name : NULL;
	for (size_t i = 0; i < sizeof(agent37_sizes) / sizeof(agent37_sizes[0]); i++)
	{
		if (!cpu->is_set || cpu->integer != agent37_sizes[i].cpu)
			continue;
		if (!memory->is_set || memory->integer != agent37_sizes[i].memory)
			return sbx_agent37_settings[AGENT37_SET_MEMORY].name;
		return disk->is_set && disk->integer > agent37_sizes[i].max_disk
		           ? sbx_agent37_settings[AGENT37_SET_DISK].name
		           : NULL;
	}
	return sbx_agent37_settings[AGENT37_SET_CPU].name;
}

static const char *
agent37_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *type = &settings[AGENT37_SET_TYPE];
	const SbxFieldValue *sleep = &settings[AGENT37_SET_AUTO_SLEEP];
	const SbxFieldValue *home = &settings[AGENT37_SET_HOME_DIR];

	if (type->is_set && strcmp(type->text, "dedicated") != 0 &&
	    strcmp(type->text, "shared") != 0)
		return sbx_agent37_settings[AGENT37_SET_TYPE].name;
	if (settings[AGENT37_SET_IDLE_TIMEOUT].is_set && !(sleep->is_set && sleep->boolean))
		return sbx_agent37_settings[AGENT37_SET_IDLE_TIMEOUT].name;
	if (home->is_set && home->text[0] != '/')
		return sbx_agent37_settings[AGENT37_SET_HOME_DIR].name;
	return agent37_check_size(settings);
}

const SbxProviderKind sbx_kind_agent37 = {
    .name = "agent37",
    .operations = agent37_operations,
    .settings = sbx_agent37_settings,
    .credentials = agent37_credentials,

    /* A create is answered when the instance runs: there is no other way. */
    .detached_launch = false,
    .max_launch_env = 32,
    .carries_variable = sbx_agent37_carries_variable,

    /* Giving up a create stops nothing, and leaves an instance without an id. */
    .launch_create_timeout = false,
    .max_labels = -1,
    .max_script_ms = AGENT37_SCRIPT_MAX_MS,
    .check_settings = agent37_check_settings,
    .launch = sbx_agent37_launch,
    .get = sbx_agent37_get,
    .wait_ready = sbx_agent37_wait_ready,
    .find = sbx_agent37_find,
    .usage = sbx_agent37_usage,
    .start = sbx_agent37_start,
    .stop = sbx_agent37_stop,

    /* Nothing of the provider's tells what became of a command in the background. */
    .run_script = sbx_agent37_run_script,
    .upload = sbx_agent37_upload,
    .download = sbx_agent37_download,
    .destroy = sbx_agent37_destroy,
};
