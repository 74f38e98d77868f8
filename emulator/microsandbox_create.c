/*
 * microsandbox_create.c
 *		POST /v1/sandboxes
 *
 * Without ?start=true it makes a record and nothing runs.
 */
#include "microsandbox.h"

#include <stdlib.h>
#include <string.h>

#define VCPUS_DEFAULT  1
#define MEMORY_DEFAULT 512

/* By this the audit counts creates. */
static const char *
unique_name(const json_t *body)
{
	const char *label = json_string_value(
	    json_object_get(json_object_get(body, "labels"), "sbx-router-id"));

	return label != NULL && *label != '\0'
	           ? label
	           : json_string_value(json_object_get(body, "name"));
}

static int64_t
resource(const json_t *body, const char *name, int64_t otherwise)
{
	const json_t *value = json_object_get(json_object_get(body, "resources"), name);

	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* A member as it was given, else a default; NULL = no such member either. */
static json_t *
given(const json_t *body, const char *name, const char *otherwise)
{
	json_t *value = json_object_get(body, name);

	return value != NULL ? json_deep_copy(value) : json_loads(otherwise, 0, NULL);
}

static json_t *
shown_resources(const json_t *body)
{
	json_t *shown = json_pack(
	    "{s:I, s:I}", "vcpus", (json_int_t) resource(body, "vcpus", VCPUS_DEFAULT),
	    "memory_mib", (json_int_t) resource(body, "memory_mib", MEMORY_DEFAULT));
	int64_t disk = resource(body, "disk_size_mib", 0);

	if (disk > 0)
		json_object_set_new(shown, "disk_size_mib", json_integer(disk));
	return shown;
}

/* Other than in a create the image is a string, and of a registry nothing is said. */
static json_t *
shown_spec(const json_t *body, const char *image)
{
	json_t *network = given(body, "network", "{\"enabled\":true}");

	json_object_set_new(network, "ports", json_array());
	json_object_set_new(network, "trust_host_cas", json_false());
	return json_pack(
	    "{s:s, s:o, s:o, s:o, s:o, s:[], s:o, s:[], s:o}", "image", image, "resources",
	    shown_resources(body), "runtime",
	    given(body, "runtime",
	          "{\"workdir\":null,\"shell\":null,\"scripts\":{},\"entrypoint\":null,"
	          "\"cmd\":null,\"user\":null,\"log_level\":null}"),
	    "env", given(body, "env", "[]"), "labels", given(body, "labels", "{}"),
	    "rlimits", "lifecycle",
	    given(body, "lifecycle",
	          "{\"ephemeral\":false,\"max_duration_secs\":null,"
	          "\"idle_timeout_secs\":null}"),
	    "mounts", "network", network);
}

static char *
slug_of(const json_t *body)
{
	const char *slug = json_string_value(json_object_get(body, "slug"));
	EmuText made = {0};

	if (slug != NULL)
		return emu_strdup(slug);
	do
	{
		made.length = 0;
		emu_text_format(&made, "brave-otter-%012llx",
		                (unsigned long long) emu_random() & 0xFFFFFFFFFFFFULL);
	} while (microsandbox_slug_taken(made.data));
	return made.data;
}

static MicrosandboxDetails *
details_from(const json_t *body)
{
	MicrosandboxDetails *details = emu_alloc(sizeof(MicrosandboxDetails));
	const json_t *lifecycle = json_object_get(body, "lifecycle");
	const char *workdir =
	    json_string_value(json_object_get(json_object_get(body, "runtime"), "workdir"));

	details->image = emu_strdup(json_string_value(
	    json_object_get(json_object_get(body, "image"), "reference")));
	details->workdir = workdir != NULL ? emu_strdup(workdir) : NULL;
	details->spec = shown_spec(body, details->image);
	details->environment = json_incref(json_object_get(body, "env"));
	details->ephemeral = json_is_true(json_object_get(lifecycle, "ephemeral"));
	details->max_duration =
	    json_integer_value(json_object_get(lifecycle, "max_duration_secs"));
	details->idle_timeout =
	    json_integer_value(json_object_get(lifecycle, "idle_timeout_secs"));
	return details;
}

static EmuSandbox *
make(EmuAccount *account, const json_t *body)
{
	static const EmuResources nothing = {0, 0, 0};
	char *labels = json_dumps(json_object_get(body, "labels"), JSON_COMPACT);
	EmuSandbox *sandbox = emu_sandbox_create(account, unique_name(body),
	                                         labels != NULL ? labels : "{}", &nothing);

	free(labels);
	sandbox->resources = (EmuResources){
	    (double) resource(body, "vcpus", VCPUS_DEFAULT),
	    (double) resource(body, "memory_mib", MEMORY_DEFAULT),
	    (double) resource(body, "disk_size_mib", 0),
	};
	sandbox->details = details_from(body);
	microsandbox_take_name(
	    sandbox, emu_strdup(json_string_value(json_object_get(body, "name"))));
	microsandbox_take_slug(sandbox, slug_of(body));
	return sandbox;
}

/* Answers itself if there may not be one more, or not with these names. */
static bool
check_room(EmuRequest *request, const EmuAccount *account, const json_t *body)
{
	const char *slug = json_string_value(json_object_get(body, "slug"));

	if (microsandbox_find_name(
	        account, json_string_value(json_object_get(body, "name"))) != NULL)
		microsandbox_fail(request, 409, "name_already_exists", "'name' already exists");
	else if (slug != NULL && microsandbox_slug_taken(slug))
		microsandbox_fail(request, 409, "name_already_exists", "'slug' already exists");
	else if (microsandbox_config.sandbox_maximum >= 0 &&
	         (int64_t) account->live_count >= microsandbox_config.sandbox_maximum)
		microsandbox_fail(request, 403, "quota_exceeded",
		                  "the organization has as many sandboxes as it may have");
	else
		return true;
	return false;
}

static bool
read_start(EmuRequest *request, const MicrosandboxWait *wait, bool *start)
{
	char *given_start = emu_request_parameter(request, "start");
	bool good = true;

	*start = given_start != NULL && strcmp(given_start, "true") == 0;
	if (given_start != NULL && !*start && strcmp(given_start, "false") != 0)
	{
		microsandbox_invalid(request, "start must be true or false");
		good = false;
	}
	else if (wait->wanted && !*start)
	{
		microsandbox_invalid(request, "wait_for needs start=true");
		good = false;
	}
	free(given_start);
	return good;
}

static void
create_from(EmuRequest *request, EmuAccount *account, const json_t *body)
{
	const char *name = unique_name(body);
	MicrosandboxWait wait;
	EmuSandbox *sandbox;
	bool start;

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (name != NULL)
		emu_account_name(account, name)->creates++;
	if (!microsandbox_wait_read(request, &wait) ||
	    !read_start(request, &wait, &start) ||
	    !microsandbox_check_create(request, body) ||
	    !check_room(request, account, body))
		return;
	sandbox = make(account, body);
	if (start)
		microsandbox_start(sandbox);
	microsandbox_wait_answer(request, sandbox, &wait);
	if (request->answer.given)
		request->answer.hold_ms = microsandbox_config.hold_create;
}

void
microsandbox_create(EmuRequest *request, EmuAccount *account)
{
	json_t *body = microsandbox_body(request);

	if (body != NULL)
		create_from(request, account, body);
	json_decref(body);
}
