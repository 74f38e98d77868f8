/*
 * operations.c
 *		Every operation of a provider kind, made from an input, and its result looked at.
 */
#include "operations.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- account ------------------------------------------------------------ */

const SbxAccount *
fuzz_account(const SbxProviderKind *kind)
{
	static SbxFieldValue settings[SBX_MAX_SETTINGS];
	static const char *credentials[SBX_MAX_CREDENTIALS];
	static char addresses[SBX_MAX_SETTINGS][80];
	static SbxAccount account = {settings, credentials};

	memset(settings, 0, sizeof(settings));
	memset(credentials, 0, sizeof(credentials));
	for (int i = 0; kind->settings[i].name != NULL; i++)
	{
		const SbxField *field = &kind->settings[i];
		SbxFieldValue *value = &settings[i];

		value->is_set = field->required || field->type == SBX_FIELD_URL;
		value->integer = field->minimum;
		value->text = "text";
		if (field->type != SBX_FIELD_URL)
			continue;
		snprintf(addresses[i], sizeof(addresses[i]), "https://host%d" FUZZ_HOST "/base",
		         i);
		value->text = addresses[i];
	}
	/* The first one is the secret; others say whose it is. */
	for (int i = 0; kind->credentials[i].name != NULL; i++)
		credentials[i] = i == 0 ? FUZZ_KEY : "owner";
	return &account;
}

/* --- inputs --------------------------------------------------------------- */

static const SbxPair pairs[] = {
    {"sbx-router-id", FUZZ_NAME}, {"sbx-router-launch", "token"}, {"NAME", "value"}};

/* Known by its id (of one kind that is the name), by its name, or by both; with a token of its launch or without. */
static SbxTarget
read_target(const SbxProviderKind *kind, FuzzInput *input)
{
	uint8_t how = fuzz_byte(input);
	SbxTarget target = {kind == &sbx_kind_vercel ? FUZZ_NAME : FUZZ_ID, FUZZ_NAME,
	                    NULL};

	if ((how & 3) == 1)
		target.sandbox_id = NULL;
	if ((how & 3) == 2)
		target.unique_name = NULL;
	if (how & 4)
		target.launch_token = "token";
	return target;
}

static SbxRunInput
read_run(FuzzInput *input)
{
	uint8_t how = fuzz_byte(input);
	SbxRunInput run = {
	    .run_id = "run-1",
	    .command = FUZZ_SCRIPT,
	    .command_length = sizeof(FUZZ_SCRIPT) - 1,
	    .env = &pairs[2],
	    .env_count = how & 1,
	    .cwd = how & 2 ? "/tmp" : NULL,
	    .timeout_ms = 1000,
	    .max_stream = how & 4 ? 16 : 4096,
	    .session = how & 8 ? "work" : NULL,
	};

	return run;
}

static const SbxScriptTarget script = {"run-1", "0123456789abcdef", 4096};

/* --- makers --------------------------------------------------------------- */

#define MAKER(name, ...)                                                               \
	static SbxOp *make_##name(const SbxProviderKind *kind, const SbxAccount *account,  \
	                          FuzzInput *input)                                        \
	{                                                                                  \
		SbxTarget target = read_target(kind, input);                                   \
		if (kind->name == NULL)                                                        \
			return NULL;                                                               \
		return kind->name(account, &target, ##__VA_ARGS__);                            \
	}

static SbxOp *
make_launch(const SbxProviderKind *kind, const SbxAccount *account, FuzzInput *input)
{
	uint8_t how = fuzz_byte(input);
	SbxLaunchInput launch = {
	    .unique_name = FUZZ_NAME,
	    .labels = pairs,
	    .label_count = how & 1 ? 2 : 1,
	    .env = &pairs[2],
	    .env_count = how & 2 && kind->max_launch_env != 0 ? 1 : 0,
	    .create_timeout_ms = how & 4 && kind->launch_create_timeout ? 1000 : 0,
	    .detached = how & 8 && kind->detached_launch,
	    .launch_token = how & 1 ? "token" : NULL,
	};

	return kind->launch(account, &launch);
}

static SbxOp *
make_find(const SbxProviderKind *kind, const SbxAccount *account, FuzzInput *input)
{
	return kind->find(account, pairs, fuzz_byte(input) % 3);
}

static SbxOp *
make_usage(const SbxProviderKind *kind, const SbxAccount *account, FuzzInput *input)
{
	(void) input;
	return kind->usage(account, 60000);
}

/* Not every kind has one. */
static SbxOp *
make_inventory(const SbxProviderKind *kind, const SbxAccount *account, FuzzInput *input)
{
	(void) input;
	return kind->inventory == NULL ? NULL : kind->inventory(account, 60000);
}

MAKER(get)
MAKER(wait_ready, 60000)
MAKER(start, 60000)
MAKER(stop, 60000)
MAKER(destroy, 60000)
MAKER(script_status, &script)
MAKER(script_logs, &script)
MAKER(download, "/tmp/file", 4096)

static SbxOp *
make_run_script(const SbxProviderKind *kind, const SbxAccount *account,
                FuzzInput *input)
{
	SbxTarget target = read_target(kind, input);
	SbxRunInput run = read_run(input);

	return kind->run_script == NULL ? NULL : kind->run_script(account, &target, &run);
}

static SbxOp *
make_start_script(const SbxProviderKind *kind, const SbxAccount *account,
                  FuzzInput *input)
{
	SbxTarget target = read_target(kind, input);
	SbxRunInput run = read_run(input);

	run.session = NULL;
	return kind->start_script == NULL ? NULL
	                                  : kind->start_script(account, &target, &run);
}

static SbxOp *
make_upload(const SbxProviderKind *kind, const SbxAccount *account, FuzzInput *input)
{
	SbxTarget target = read_target(kind, input);
	SbxUploadInput upload = {"/tmp/file", "content", 7, "boundary-4711"};

	return kind->upload == NULL ? NULL : kind->upload(account, &target, &upload);
}

/* --- results -------------------------------------------------------------- */

static void
look_at_facts(const void *result)
{
	const SbxSandboxFacts *facts = result;

	fuzz_check(facts->state <= SBX_STATE_GONE, "state %d", (int) facts->state);
	fuzz_touch_text(facts->sandbox_id);
	fuzz_touch_text(facts->name);
	fuzz_touch_text(facts->created_at);
	for (int i = 0; i < facts->label_count; i++)
	{
		fuzz_touch_text(facts->labels[i].key);
		fuzz_touch_text(facts->labels[i].value);
	}
}

static void
look_at_found(const void *result)
{
	const SbxFindResult *found = result;

	for (int i = 0; i < found->count; i++)
	{
		fuzz_check(found->sandboxes[i].sandbox_id != NULL, "found without an id");
		fuzz_check(i == 0 || strcmp(found->sandboxes[i - 1].sandbox_id,
		                            found->sandboxes[i].sandbox_id) != 0,
		           "found twice");
		look_at_facts(&found->sandboxes[i]);
	}
}

static void
look_at_run(const void *result)
{
	const SbxRunResult *run = result;

	fuzz_touch(run->output, run->output_length);
	fuzz_touch(run->stdout_text, run->stdout_length);
	fuzz_touch(run->stderr_text, run->stderr_length);
	fuzz_check(run->stdout_length <= 4096 && run->stderr_length <= 4096,
	           "more kept of a stream than asked for");
}

static void
look_at_started(const void *result)
{
	const SbxStartedScript *started = result;

	fuzz_touch_text(started->session_id);
	fuzz_touch_text(started->command_id);
	fuzz_check(started->session_id != NULL && started->command_id != NULL,
	           "a script without ids");
}

static void
look_at_status(const void *result)
{
	const SbxScriptStatus *status = result;

	fuzz_check(!status->has_ended ||
	               (status->exit_code >= 0 && status->exit_code <= 255),
	           "exit code %d", status->exit_code);
}

static void
look_at_content(const void *result)
{
	const SbxFileContent *content = result;

	fuzz_touch(content->bytes, content->length);
	fuzz_check(content->length <= 4096, "a file larger than asked for");
}

static void
look_at_usage(const void *result)
{
	const SbxUsage *usage = result;

	fuzz_check(isfinite(usage->cpu) && usage->cpu >= 0 && isfinite(usage->memory_mib) &&
	               usage->memory_mib >= 0 && isfinite(usage->disk_mib) &&
	               usage->disk_mib >= 0 && usage->sandboxes >= 0,
	           "a usage that is none");
}

static void
look_at_inventory(const void *result)
{
	const char *text = result;

	fuzz_touch(text, strlen(text));
	fuzz_check(*text == '[', "an inventory that is no array");
}

static void
look_at_destroyed(const void *result)
{
	fuzz_check(*(const SbxDestroyResult *) result <= SBX_DESTROY_WAS_GONE,
	           "destroyed?");
}

static void
look_at_nothing(const void *result)
{
	(void) result;
}

const FuzzOperation fuzz_operations[] = {
    {"launch", make_launch, look_at_facts, true, false},
    {"get", make_get, look_at_facts, false, false},
    {"wait_ready", make_wait_ready, look_at_facts, false, false},
    {"find", make_find, look_at_found, false, false},
    {"start", make_start, look_at_facts, false, false},
    {"stop", make_stop, look_at_facts, false, false},
    {"run_script", make_run_script, look_at_run, false, true},
    {"start_script", make_start_script, look_at_started, false, false},
    {"script_status", make_script_status, look_at_status, false, false},
    {"script_logs", make_script_logs, look_at_run, false, false},
    {"upload", make_upload, look_at_nothing, false, false},
    {"download", make_download, look_at_content, false, false},
    {"destroy", make_destroy, look_at_destroyed, false, false},
    {"usage", make_usage, look_at_usage, false, false},
    {"inventory", make_inventory, look_at_inventory, false, false},
};

const int fuzz_operation_count = sizeof(fuzz_operations) / sizeof(fuzz_operations[0]);
