/*
 * vercel_sandbox.c
 *		Sandboxes: their names, how they come and how they go.
 *
 * A name belongs to one sandbox of a project for as long as that has an
 * entry, whether or not it runs.
 */
#include "vercel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_TIMEOUT_MS 300000
#define DEFAULT_IMAGE      "vercel/sandbox/universal"

/* "account name" -> EmuSandbox, for those that have an entry */
static EmuTable names;

VercelSandbox *
vercel_details(const EmuSandbox *sandbox)
{
	return sandbox->details;
}

/* An account stays where it is until all sandboxes are forgotten. */
static char *
name_key(const EmuAccount *account, const char *name)
{
	EmuText key = {0};

	emu_text_format(&key, "%p %s", (const void *) account, name);
	return key.data;
}

EmuSandbox *
vercel_find(const EmuAccount *account, const char *name)
{
	char *key = name_key(account, name);
	EmuSandbox *sandbox = emu_table_get(&names, key);

	free(key);
	return sandbox;
}

static void
name_take(EmuSandbox *sandbox)
{
	char *key = name_key(sandbox->account, vercel_details(sandbox)->name);

	emu_table_put(&names, key, sandbox);
	free(key);
}

static void
name_give_back(EmuSandbox *sandbox)
{
	char *key = name_key(sandbox->account, vercel_details(sandbox)->name);

	emu_table_remove(&names, key);
	free(key);
}

/*
 * Making
 */

static char *
random_name(void)
{
	EmuText name = {0};

	emu_text_format(&name, "sandbox-%012llx",
	                (unsigned long long) emu_random() & 0xFFFFFFFFFFFFULL);
	return name.data;
}

/* The repository without a tag, and what stands for the digest of its image. */
static char *
image_with_digest(const char *reference)
{
	const char *slash = strrchr(reference, '/');
	size_t directory = slash != NULL ? (size_t) (slash - reference) : 0;
	size_t length = directory + strcspn(reference + directory, ":@");
	uint64_t hash = emu_hash(reference, strlen(reference));
	EmuText image = {0};

	emu_text_append(&image, reference, length);
	emu_text_format(&image, "@sha256:%016llx%016llx%016llx%016llx",
	                (unsigned long long) hash, (unsigned long long) ~hash,
	                (unsigned long long) hash * 31, (unsigned long long) hash * 37);
	return image.data;
}

static VercelSandbox *
details_from(const json_t *body, const char *owner)
{
	VercelSandbox *details = emu_alloc(sizeof(VercelSandbox));
	const char *name = json_string_value(json_object_get(body, "name"));
	const char *image = json_string_value(json_object_get(body, "image"));
	const char *runtime = json_string_value(json_object_get(body, "runtime"));
	const char *snapshot = json_string_value(
	    json_object_get(json_object_get(body, "source"), "snapshotId"));

	details->name = name != NULL ? emu_strdup(name) : random_name();
	details->owner = emu_strdup(owner);
	details->project =
	    emu_strdup(json_string_value(json_object_get(body, "projectId")));
	details->region = emu_strdup(VERCEL_REGION);
	if (runtime != NULL)
		details->runtime = emu_strdup(runtime);
	else
		details->image = image_with_digest(image != NULL ? image : DEFAULT_IMAGE);
	if (snapshot != NULL)
		snprintf(details->snapshot, sizeof(details->snapshot), "%s", snapshot);
	details->persistent = true;
	details->vcpus = VERCEL_VCPUS;
	details->timeout_ms = DEFAULT_TIMEOUT_MS;
	details->options = json_object();
	details->routes = emu_random();
	vercel_apply(details, body);
	return details;
}

void
vercel_set_tags(EmuSandbox *sandbox, const json_t *tags)
{
	char *labels = tags != NULL ? json_dumps(tags, JSON_COMPACT) : NULL;

	if (labels == NULL)
		return;
	free(sandbox->labels);
	sandbox->labels = emu_strdup(labels);
	free(labels);
}

/* `counted` is the name by which the audit knows it, NULL: that of the sandbox. */
EmuSandbox *
vercel_sandbox_new(EmuAccount *account, const char *owner, const char *counted,
                   const json_t *body)
{
	static const EmuResources nothing = {0, 0, 0};
	VercelSandbox *details = details_from(body, owner);
	EmuSandbox *sandbox = emu_sandbox_create(
	    account, counted != NULL ? counted : details->name, "{}", &nothing);

	if (counted == NULL)
		sandbox->name_record->creates++;
	sandbox->shown_id = emu_strdup(details->name);
	sandbox->details = details;
	sandbox->keeps_entry = true;
	details->sandbox = sandbox;
	details->updated_ms = details->status_ms = sandbox->created_ms;
	vercel_set_tags(sandbox, json_object_get(body, "tags"));
	name_take(sandbox);
	return sandbox;
}

/*
 * Going
 */

static void
removed(void *owner)
{
	EmuSandbox *sandbox = owner;

	sandbox->keeps_entry = false;
	name_give_back(sandbox);
}

/* Its machine goes at once; its entry is left to vercel_remove. */
void
vercel_destroy(EmuSandbox *sandbox)
{
	VercelSandbox *details = vercel_details(sandbox);
	int64_t lag = vercel_config.list_lag;
	int64_t delay = vercel_config.delete_delay;

	details->status_before_end = vercel_status(sandbox);
	details->deleting = true;
	emu_sandbox_destroy(sandbox, delay > lag ? delay : lag);
	vercel_session_end(details->current);
}

void
vercel_remove(EmuSandbox *sandbox)
{
	int64_t delay = vercel_config.delete_delay;

	if (delay > 0)
		emu_timer_start(&vercel_details(sandbox)->removal, delay, removed, sandbox);
	else
		removed(sandbox);
}

void
vercel_release(EmuSandbox *sandbox)
{
	VercelSandbox *details = vercel_details(sandbox);
	VercelSession *earlier;

	if (details == NULL)
		return;
	if (sandbox->keeps_entry)
		name_give_back(sandbox);
	emu_timer_stop(&details->removal);
	for (VercelSession *session = details->current; session != NULL; session = earlier)
	{
		earlier = session->earlier;
		vercel_session_free(session);
	}
	free(details->name);
	free(details->owner);
	free(details->project);
	free(details->region);
	free(details->image);
	free(details->runtime);
	json_decref(details->environment);
	json_decref(details->ports);
	json_decref(details->network_policy);
	json_decref(details->options);
	free(details);
}

/*
 * Quota
 */

/* What does not run does not count; and nothing says when to come again. */
bool
vercel_within_quota(EmuRequest *request, const EmuAccount *account, int vcpus)
{
	const EmuQuota *quota = &vercel_quota;
	double memory = (double) vcpus * VERCEL_MEMORY_PER_CPU;

	if ((quota->sandboxes < 0 ||
	     (double) account->slots_used + 1 <= quota->sandboxes) &&
	    (quota->cpu < 0 || account->used.cpu + vcpus <= quota->cpu) &&
	    (quota->memory < 0 || account->used.memory + memory <= quota->memory))
		return true;
	vercel_refuse_as(request, 429, "rate_limited",
	                 "The concurrency limit has been exceeded.");
	return false;
}
