/*
 * freestyle.c
 *		Freestyle: virtual machines that are paused, not stopped, and wake by themselves.
 *
 * One plane and one key.  A machine has an id of the provider's and a slug of ours, which
 * is unique in the account: by that a create whose answer was lost is found.  Any call can
 * be answered 202, "later": then its real answer is asked for.
 *
 * This is the interface whose paths begin with /v5.  The one before, /v1, has no unique
 * name and no labels: there a create whose answer was lost cannot be found.
 *
 * Here: what the kind declares.
 */
#include "providers/freestyle.h"

/* A year, which is as good as for ever. */
#define FREESTYLE_WINDOW_MAX (366 * 24 * 3600)

/* Name, type, required, needs a superuser, minimum, maximum, description. */
const SbxField sbx_freestyle_settings[] = {
    {"apiUrl", SBX_FIELD_URL, false, true, 0, 0,
     "base of the interface, https://api.freestyle.sh by default"},
    {"snapshot", SBX_FIELD_WORD, false, false, 0, 0,
     "snapshot to start from, which also says how large a machine is: an id (sh-...), "
     "a "
     "slug of the account's or owner/slug; freestyle/ubuntu by the provider's default"},
    {"internet", SBX_FIELD_BOOLEAN, false, false, 0, 0,
     "let it reach the internet, true by default; nothing reaches it from there"},
    {"idleTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, FREESTYLE_WINDOW_MAX,
     "pause it after so many seconds without traffic, whatever runs inside; never by "
     "default"},
    {"ttlSeconds", SBX_FIELD_INTEGER, false, false, 1, FREESTYLE_WINDOW_MAX,
     "delete it so many seconds after it was made, whatever it does; never by default"},
    {"autoDeleteSeconds", SBX_FIELD_INTEGER, false, false, 0, FREESTYLE_WINDOW_MAX,
     "delete it after so many seconds without running, 0 as soon as it stops; never, "
     "or "
     "when the plan says so, by default"},
    {"homeDir", SBX_FIELD_TEXT, false, false, 0, 0,
     "directory that relative paths of files count from, /home/ubuntu by default"},
    {"createTimeoutSeconds", SBX_FIELD_INTEGER, false, false, 1, 86400,
     "time for creating and waiting until ready, 120 by default"},
    {0}};

static const SbxField freestyle_credentials[] = {
    {"apiKey", SBX_FIELD_TEXT, true, false, 0, 0, "API key of the team"}, {0}};

static const char *const freestyle_operations[] = {
    "launch",    "get",    "find",     "waitReady", "start",    "stop",
    "runScript", "upload", "download", "destroy",   "capacity", NULL};

static const char *
freestyle_check_settings(const SbxFieldValue *settings)
{
	const SbxFieldValue *home = &settings[FREESTYLE_SET_HOME_DIR];

	return home->is_set && home->text[0] != '/'
	           ? sbx_freestyle_settings[FREESTYLE_SET_HOME_DIR].name
	           : NULL;
}

const SbxProviderKind sbx_kind_freestyle = {
    .name = "freestyle",
    .operations = freestyle_operations,
    .settings = sbx_freestyle_settings,
    .credentials = freestyle_credentials,

    /* A create that is answered early has no id. */
    .detached_launch = false,

    /* There is no such thing as an environment of a machine. */
    .max_launch_env = 0,
    .launch_create_timeout = true,
    .max_labels = 64,
    .carries_label = sbx_freestyle_carries_label,
    .max_script_ms = FREESTYLE_SCRIPT_MAX_MS,
    .check_settings = freestyle_check_settings,
    .launch = sbx_freestyle_launch,
    .get = sbx_freestyle_get,
    .wait_ready = sbx_freestyle_wait_ready,
    .find = sbx_freestyle_find,
    .usage = sbx_freestyle_usage,
    .start = sbx_freestyle_start,
    .stop = sbx_freestyle_stop,

    /* What a command leaves in the background is not promised to live on. */
    .run_script = sbx_freestyle_run_script,
    .upload = sbx_freestyle_upload,
    .download = sbx_freestyle_download,
    .destroy = sbx_freestyle_destroy,
};
