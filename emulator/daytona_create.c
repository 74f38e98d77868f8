/*
 * daytona_create.c
 *		POST /sandbox
 *
 * The row is inserted first and the wait for the start comes after, so a
 * client that gives up while it waits has a sandbox all the same.
 */
#include "daytona.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a create without a snapshot gets, and the sizes of any snapshot. */
#define DEFAULT_SNAPSHOT "daytona-small"
#define DEFAULT_CPU      1
#define DEFAULT_MEMORY   1
#define DEFAULT_DISK     3

/* An archive interval of 0 means the server's maximum: thirty days. */
#define ARCHIVE_MAXIMUM 43200

/* Everything that is a fault of the body, before anything is looked up. */
static bool
check_types(EmuRequest *request, const json_t *body)
{
	static const char *const strings[] = {"name", "snapshot", "user", "target",
	                                      "networkAllowList"};
	static const char *const integers[] = {
	    "cpu",
	    "gpu",
	    "memory",
	    "disk",
	    "autoStopInterval",
	    "autoArchiveInterval",
	    "autoDeleteInterval",
	    "ttlMinutes",
	};
	static const char *const objects[] = {"env", "labels"};
	const char *name;
	json_t *value;

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
	{
		value = json_object_get(body, strings[i]);
		if (value != NULL && !json_is_null(value) && !emu_is_plain_string(value))
		{
			emu_refuse_format(request, 400, "%s must be a string", strings[i]);
			return false;
		}
	}
	for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
	{
		value = json_object_get(body, integers[i]);
		if (value != NULL && !json_is_null(value) &&
		    (!json_is_number(value) ||
		     floor(json_number_value(value)) != json_number_value(value) ||
		     fabs(json_number_value(value)) > 1e9))
		{
			emu_refuse_format(request, 400, "%s must be an integer number",
			                  integers[i]);
			return false;
		}
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
	{
		json_t *object = json_object_get(body, objects[i]);

		if (object != NULL && !json_is_null(object) && !json_is_object(object))
		{
			emu_refuse_format(request, 400, "%s must be an object", objects[i]);
			return false;
		}
		json_object_foreach (object, name, value)
			if (!json_is_string(value))
			{
				emu_refuse_format(request, 400, "each value in %s must be a string",
				                  objects[i]);
				return false;
			}
	}
	return true;
}

static int
integer_member(const json_t *body, const char *name, int otherwise)
{
	const json_t *value = json_object_get(body, name);

	return json_is_number(value) ? (int) json_number_value(value) : otherwise;
}

static const char *
string_member(const json_t *body, const char *name)
{
	const char *value = json_string_value(json_object_get(body, name));

	return value != NULL && *value != '\0' ? value : NULL;
}

static bool
sizes_given(const json_t *body)
{
	return integer_member(body, "cpu", 0) != 0 || integer_member(body, "gpu", 0) != 0 ||
	       integer_member(body, "memory", 0) != 0 ||
	       integer_member(body, "disk", 0) != 0;
}

/* What is wrong with the values, and combinations that are not allowed. */
static bool
check_values(EmuRequest *request, const json_t *body)
{
	const json_t *build = json_object_get(body, "buildInfo");
	const char *snapshot = string_member(body, "snapshot");
	const char *target = string_member(body, "target");

	if (build != NULL && !json_is_null(build) &&
	    string_member(build, "dockerfileContent") == NULL)
		daytona_refuse(request, 400, "buildInfo.dockerfileContent must be a string");
	else if (json_is_object(build) && snapshot != NULL)
		daytona_refuse(request, 400,
		               "Cannot specify a snapshot when using a build info entry");
	else if (!json_is_object(build) && sizes_given(body))
		daytona_refuse(request, 400,
		               "Cannot specify Sandbox resources when using a snapshot");
	else if (integer_member(body, "autoStopInterval", 0) < 0)
		daytona_refuse(request, 400, "Auto-stop interval must be non-negative");
	else if (integer_member(body, "autoArchiveInterval", 0) < 0)
		daytona_refuse(request, 400, "Auto-archive interval must be non-negative");
	else if (integer_member(body, "ttlMinutes", 0) < 0)
		daytona_refuse(request, 400, "TTL must be non-negative");
	else if (integer_member(body, "cpu", 1) < 1 ||
	         integer_member(body, "memory", 1) < 1 ||
	         integer_member(body, "disk", 1) < 1)
		daytona_refuse(request, 400, "cpu, memory and disk must not be less than 1");
	else if (target != NULL && strncmp(target, "no-such-", 8) == 0)
		daytona_refuse(request, 404, "Region not found");
	else if (snapshot != NULL && (strncmp(snapshot, "no-such-", 8) == 0 ||
	                              strncmp(snapshot, "snap_no-such-", 13) == 0))
		emu_refuse_format(request, 400, "Snapshot %s not found", snapshot);
	else
		return true;
	return false;
}

static bool
image_is_unknown(const char *dockerfile)
{
	return strncmp(dockerfile, "FROM no-such-", 13) == 0;
}

int
daytona_archive_interval(int minutes)
{
	return minutes == 0 || minutes > ARCHIVE_MAXIMUM ? ARCHIVE_MAXIMUM : minutes;
}

static DaytonaSandbox *
details_from(const json_t *body, EmuSandbox *sandbox)
{
	DaytonaSandbox *details = emu_alloc(sizeof(DaytonaSandbox));
	const char *dockerfile =
	    string_member(json_object_get(body, "buildInfo"), "dockerfileContent");
	const char *snapshot = string_member(body, "snapshot");
	const char *target = string_member(body, "target");
	const char *user = string_member(body, "user");
	json_t *environment = json_object_get(body, "env");

	details->sandbox = sandbox;
	if (dockerfile != NULL)
		details->dockerfile = emu_strdup(dockerfile);
	else
		details->snapshot = emu_strdup(snapshot != NULL ? snapshot : DEFAULT_SNAPSHOT);
	details->target = emu_strdup(target != NULL ? target : "us");
	details->user = emu_strdup(user != NULL ? user : DAYTONA_USER);
	if (json_object_size(environment) > 0)
		details->environment = json_incref(environment);
	details->is_public = json_is_true(json_object_get(body, "public"));
	details->network_block_all = json_is_true(json_object_get(body, "networkBlockAll"));
	details->auto_stop = integer_member(body, "autoStopInterval", 15);
	details->auto_archive =
	    daytona_archive_interval(integer_member(body, "autoArchiveInterval", 10080));
	details->auto_delete = integer_member(body, "autoDeleteInterval", -1);
	details->updated_ms = details->activity_ms = sandbox->created_ms;
	details->conflict_until = daytona_config.delete_conflict > 0
	                              ? emu_clock_ms() + daytona_config.delete_conflict
	                              : 0;
	return details;
}

/*
 * From here on the sandbox exists.  A held create answers with the state of
 * before the wait, although the sandbox has started when the answer leaves.
 * Images have to be built first, so for those it does not wait.
 */
static void
begin(EmuRequest *request, EmuSandbox *sandbox)
{
	DaytonaSandbox *details = daytona_details(sandbox);
	bool has_image = details->dockerfile != NULL;
	int64_t start_ms = daytona_config.start_delay > 0 ? daytona_config.start_delay
	                                                  : daytona_config.hold_create;

	if (daytona_config.start_error != NULL)
	{
		details->state = DAYTONA_ERROR;
		details->error_reason = "the sandbox failed to start";
		emu_refuse_format(request, 400, "Sandbox failed to start: %s",
		                  daytona_config.start_error);
	}
	else
	{
		details->state = DAYTONA_STARTED;
		if (has_image && image_is_unknown(details->dockerfile))
		{
			details->state = DAYTONA_BUILD_FAILED;
			details->error_reason = "failed to build the image: not found";
		}
		else if (start_ms > 0)
		{
			details->state = has_image ? DAYTONA_PENDING_BUILD : DAYTONA_CREATING;
			daytona_settle_later(sandbox, start_ms);
		}
		daytona_start_idle_clock(sandbox);
		daytona_answer(request, sandbox);
	}
	request->answer.hold_ms = has_image ? 0 : daytona_config.hold_create;
}

static void
create_from(EmuRequest *request, EmuAccount *account, const json_t *body)
{
	const char *name = string_member(body, "name");
	json_t *labels = json_object_get(body, "labels");
	EmuResources resources = {
	    integer_member(body, "cpu", DEFAULT_CPU),
	    integer_member(body, "memory", DEFAULT_MEMORY),
	    integer_member(body, "disk", DEFAULT_DISK),
	};
	EmuSandbox *sandbox;
	char *labels_text;

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (name != NULL)
		emu_account_name(account, name)->creates++;
	if (!check_types(request, body) || !check_values(request, body) ||
	    !daytona_within_quota(request, account, &resources, 1))
		return;
	if (name != NULL && emu_sandbox_by_name(account, name) != NULL)
	{
		emu_refuse_format(request, 409, "Sandbox with name %s already exists", name);
		return;
	}
	labels_text =
	    json_object_size(labels) > 0 ? json_dumps(labels, JSON_COMPACT) : NULL;
	sandbox = emu_sandbox_create(account, name,
	                             labels_text != NULL ? labels_text : "{}", &resources);
	free(labels_text);
	sandbox->details = details_from(body, sandbox);
	daytona_set_lifetime(sandbox, integer_member(body, "ttlMinutes", 0));
	begin(request, sandbox);
}

void
daytona_create(EmuRequest *request, EmuAccount *account)
{
	json_t *body = daytona_body(request);

	if (body != NULL)
		create_from(request, account, body);
	json_decref(body);
}
