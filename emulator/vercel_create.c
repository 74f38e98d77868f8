/*
 * vercel_create.c
 *		POST /v3/sandboxes, and POST /v2/sandboxes for those with a runtime.
 *
 * A create that is held has its sandbox at once, for all to see, with a
 * session that is pending; its answer tells of what will be then.
 */
#include "vercel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What begins like this is unknown. */
#define UNKNOWN_IMAGE    "no-such-"
#define UNKNOWN_SNAPSHOT "snap_no-such-"

static bool
begins(const char *text, const char *with)
{
	return text != NULL && strncmp(text, with, strlen(with)) == 0;
}

/* The name by which the audit counts creates. */
static const char *
audit_name(const json_t *body)
{
	const char *tag = json_string_value(
	    json_object_get(json_object_get(body, "tags"), "sbx-router-id"));

	return tag != NULL && *tag != '\0'
	           ? tag
	           : json_string_value(json_object_get(body, "name"));
}

static bool
sources_known(EmuRequest *request, const json_t *body)
{
	const char *image = json_string_value(json_object_get(body, "image"));
	const char *snapshot = json_string_value(
	    json_object_get(json_object_get(body, "source"), "snapshotId"));

	if (begins(image, UNKNOWN_IMAGE))
		vercel_refuse(request, 404, "Image not found");
	else if (begins(snapshot, UNKNOWN_SNAPSHOT))
		vercel_refuse_as(request, 410, "snapshot_not_found", "Snapshot not found");
	else
		return true;
	return false;
}

static bool
name_free(EmuRequest *request, const EmuAccount *account, const char *name)
{
	if (name == NULL || vercel_find(account, name) == NULL)
		return true;
	emu_refuse_format(request, 400,
	                  "A sandbox with the name '%s' already exists for this project.",
	                  name);
	return false;
}

static int
vcpus_wanted(const json_t *body)
{
	const json_t *vcpus = json_object_get(json_object_get(body, "resources"), "vcpus");

	return vcpus != NULL ? (int) json_integer_value(vcpus) : VERCEL_VCPUS;
}

static void
make(EmuRequest *request, EmuAccount *account, const char *owner, const json_t *body)
{
	EmuSandbox *sandbox = vercel_sandbox_new(account, owner, audit_name(body), body);
	VercelSession *session = vercel_session_new(sandbox);

	vercel_answer_all(request, sandbox, NULL);
	request->answer.hold_ms = vercel_config.hold_create;
	vercel_session_start(session, vercel_config.hold_create);
}

/* All that can be wrong with the request comes before the quota. */
void
vercel_create(EmuRequest *request, EmuAccount *account, const char *owner,
              const json_t *body, bool legacy)
{
	const char *problem = vercel_create_problem(body, legacy);
	const char *counted = audit_name(body);

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (counted != NULL)
		emu_account_name(account, counted)->creates++;
	if (problem != NULL)
		vercel_refuse(request, 400, problem);
	else if (sources_known(request, body) &&
	         name_free(request, account,
	                   json_string_value(json_object_get(body, "name"))) &&
	         vercel_within_quota(request, account, vcpus_wanted(body)))
		make(request, account, owner, body);
}
