/*
 * test_daytona_refusals.c
 *		What a refused create proves about the allocation.
 *
 * The default is "unknown".  Each refusal that proves more stands here beside a
 * neighbour that looks alike and proves nothing.
 */
#include <stdlib.h>

#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN

typedef struct Refusal
{
	int status;
	const char *message;
	const char *code;
	SbxAllocation allocation;
} Refusal;

static void
refused(const Refusal *row)
{
	json_t *object =
	    json_pack("{s:i,s:s}", "statusCode", row->status, "message", row->message);
	char *body = json_dumps(object, 0);
	Drive drive = launched();

	drive_answer(&drive, row->status, body);
	fails(&drive, SBX_PHASE_REMOTE, row->status, row->code, row->allocation, "%d %s",
	      row->status, row->message);
	is_text(drive.op->sandbox_id, "", "no id");
	drive_end(&drive);
	free(body);
	json_decref(object);
}

static void
refused_all(const char *name, const Refusal *rows, size_t count)
{
	section(name);
	for (size_t i = 0; i < count; i++)
		refused(&rows[i]);
}

#define REFUSED(name, rows) refused_all(name, rows, sizeof(rows) / sizeof(rows[0]))

/* The only ones that another provider may do better at. */
static void
capacity(void)
{
	static const char *const texts[] = {
	    "Total CPU limit exceeded. Maximum allowed: 10.",
	    "Total memory limit exceeded.", "Total disk limit exceeded. x",
	    "Total GPU limit exceeded.", "No available runners"};
	static const Refusal alike[] = {
	    {400, "total cpu limit exceeded.", NULL, UNKNOWN},
	    {400, "Was: Total CPU limit exceeded.", NULL, UNKNOWN},
	    {400, "Total CPU limit", NULL, UNKNOWN},
	    {400, "Total CPU limit exceeded", NULL, UNKNOWN},
	    {400, "Total network limit exceeded.", NULL, UNKNOWN},
	    {400, "No available snapshot runners", NULL, UNKNOWN},
	    {403, "total cpu", "FORBIDDEN", NONE}};

	section("refused: capacity");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
	{
		static const int others[] = {404, 408, 409, 422, 500, 502, 503, 504};

		/* These texts moved from one status to the other. */
		refused(&(Refusal){400, texts[i], "CAPACITY", NONE});
		refused(&(Refusal){403, texts[i], "CAPACITY", NONE});
		for (size_t j = 0; j < sizeof(others) / sizeof(others[0]); j++)
			refused(&(Refusal){others[j], texts[i], NULL, UNKNOWN});
	}
	REFUSED("refused: not quite capacity", alike);
}

/* Refused before anything was made, and no reason to try elsewhere. */
static void
definitive(void)
{
	static const Refusal rows[] = {
	    {400, "CPU 9 exceeds maximum allowed per sandbox (4)", "SIZE_NOT_ALLOWED",
	     NONE},
	    {403, "CPU 9 exceeds maximum allowed per sandbox (4)", "FORBIDDEN", NONE},
	    {500, "CPU 9 exceeds maximum allowed per sandbox (4)", NULL, UNKNOWN},
	    {400, "CPU 9 exceeds maximum", NULL, UNKNOWN},
	    {400, "Only ephemeral sandboxes are permitted", "EPHEMERAL_ONLY", NONE},
	    {409, "Only ephemeral sandboxes are permitted", NULL, UNKNOWN},
	    {400, "Only ephemeral sandboxes", NULL, UNKNOWN},
	    {400, "Snapshot base-2cpu not found", "SNAPSHOT_NOT_FOUND", NONE},
	    {404, "Snapshot base-2cpu not found", NULL, UNKNOWN},
	    {400, "Volume base not found", NULL, UNKNOWN},
	    {400, "The Snapshot base not found", NULL, UNKNOWN},
	    {400, "Snapshot x is not available in region eu", "SNAPSHOT_NOT_IN_REGION",
	     NONE},
	    {500, "Snapshot x is not available in region eu", NULL, UNKNOWN},
	    {400, "Image x is not available in region eu", NULL, UNKNOWN},
	    {400, "Snapshot base-2cpu is pulling", "SNAPSHOT_NOT_READY", NONE},
	    {400, "Snapshot base-2cpu is build_failed", "SNAPSHOT_NOT_READY", NONE},
	    {500, "Snapshot base-2cpu is pulling", NULL, UNKNOWN},
	    {409, "Snapshot base-2cpu is pulling", NULL, UNKNOWN},
	    {400, "Volume base is pulling", NULL, UNKNOWN},
	    {400, "Snapshot base-2cpu was pulled", NULL, UNKNOWN},
	    {400, "Organization x does not have a default region", "NO_DEFAULT_REGION",
	     NONE},
	    {404, "Organization x does not have a default region", NULL, UNKNOWN},
	    {400, "Organization x does not have a region", NULL, UNKNOWN},
	    {404, "Region not found", "REGION_NOT_FOUND", NONE},
	    {400, "Region not found", NULL, UNKNOWN},
	    {404, "The Region not found", NULL, UNKNOWN},
	    {404, "Cannot POST /sandbox", NULL, UNKNOWN},
	    {404, "Not Found", NULL, UNKNOWN},
	};

	REFUSED("refused: definitive", rows);
}

/* Their status alone says that the request never got to where sandboxes are made. */
static void
guards(void)
{
	static const Refusal rows[] = {
	    {401, "Unauthorized", "UNAUTHORIZED", NONE},
	    {401, "Total CPU limit exceeded.", "UNAUTHORIZED", NONE},
	    {403, "Access denied", "FORBIDDEN", NONE},
	    {403, "Invalid authentication context", "FORBIDDEN", NONE},
	    {403, "Organization is suspended", "FORBIDDEN", NONE},
	    {403, "Region eu is not available", "FORBIDDEN", NONE},
	    {429, "ThrottlerException: Too Many Requests", "RATE_LIMITED", NONE},
	    {402, "Payment required", NULL, UNKNOWN},
	    {405, "Method not allowed", NULL, UNKNOWN},
	    {428, "Too Many Requests", NULL, UNKNOWN},
	};

	REFUSED("refused: at the door", rows);
}

static void
nothing_proven(void)
{
	static const Refusal rows[] = {
	    /* Our own earlier attempt may have made it. */
	    {409, "Sandbox with name job-1 already exists", "NAME_CONFLICT", UNKNOWN},
	    {400, "Sandbox with name job-1 already exists", NULL, UNKNOWN},
	    {409, "Volume with name job-1 already exists", NULL, UNKNOWN},
	    {409, "Sandbox state change in progress", NULL, UNKNOWN},
	    {409, "Sandbox was modified by another operation", NULL, UNKNOWN},
	    {400, "", NULL, UNKNOWN},
	    {400, "name must be a string, cpu must be a number", NULL, UNKNOWN},
	    {400, "Bad Request", NULL, UNKNOWN},
	    {408, "", NULL, UNKNOWN},
	    {422, "", NULL, UNKNOWN},
	    {500, "Internal server error", NULL, UNKNOWN},
	    {502, "", NULL, UNKNOWN},
	    {503, "Unauthorized", NULL, UNKNOWN},
	    {504, "", NULL, UNKNOWN},
	    {302, "", NULL, UNKNOWN},
	    {100, "", NULL, UNKNOWN},
	};

	REFUSED("refused: proves nothing", rows);
}

/* It was made and then failed; the reason behind the colon can be any text. */
static void
failed_to_start(void)
{
	static const Refusal rows[] = {
	    {400, "Sandbox failed to start: image pull failed", "START_FAILED", UNKNOWN},
	    {400, "Sandbox failed to start: Total CPU limit exceeded.", "START_FAILED",
	     UNKNOWN},
	    {400, "Sandbox failed to start: No available runners", "START_FAILED", UNKNOWN},
	    {400, "Sandbox failed to start: Snapshot x not found", "START_FAILED", UNKNOWN},
	    {400, "Sandbox failed to start: Snapshot x is pulling", "START_FAILED",
	     UNKNOWN},
	    {400, "Total CPU limit exceeded. Sandbox failed to start: x", "START_FAILED",
	     UNKNOWN},
	    {400, "Snapshot Sandbox failed to start: x not found", "START_FAILED", UNKNOWN},
	    {403, "Sandbox failed to start: x", "START_FAILED", UNKNOWN},
	    {400, "Sandbox failed", NULL, UNKNOWN},
	    {500, "Sandbox failed to start: x", NULL, UNKNOWN},
	};

	REFUSED("refused: failed to start wins", rows);
}

static void
without_text(void)
{
	static const char *const bodies[] = {
	    "",
	    "<html>",
	    "{}",
	    "{\"message\":5}",
	    "{\"message\":[\"Total CPU limit exceeded.\"]}",
	    "[\"Total CPU limit exceeded.\"]",
	    "{\"error\":\"Total CPU limit exceeded.\"}",
	    "{\"message\":\"Total CPU limit exceeded.\""};

	section("refused without a message");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		Drive drive = launched();

		drive_answer(&drive, 400, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 400, NULL, UNKNOWN, "400 %s", bodies[i]);
		drive_end(&drive);
		drive = launched();
		drive_answer(&drive, 401, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE, "401 %s", bodies[i]);
		drive_end(&drive);
		drive = launched();
		drive_answer(&drive, 404, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 404, NULL, UNKNOWN, "404 %s", bodies[i]);
		drive_end(&drive);
	}
}

static void
recorded(void)
{
	static const struct
	{
		const char *name;
		const char *code;
		SbxAllocation allocation;
	} rows[] = {{"create_quota", "CAPACITY", NONE},
	            {"create_unauthorized", "UNAUTHORIZED", NONE},
	            {"create_name_conflict", "NAME_CONFLICT", UNKNOWN},
	            {"create_rate_limited", "RATE_LIMITED", NONE},
	            {"create_failed_to_start", "START_FAILED", UNKNOWN}};

	section("recorded refusal");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		int64_t status = 0;
		Drive drive = launched();

		sbx_json_integer(golden(rows[i].name), "status", &status);
		drive_recorded(&drive, rows[i].name);
		fails(&drive, SBX_PHASE_REMOTE, (int) status, rows[i].code, rows[i].allocation,
		      "%s", rows[i].name);
		drive_end(&drive);
	}
}

void
test_daytona_refusals(void)
{
	capacity();
	definitive();
	guards();
	nothing_proven();
	failed_to_start();
	without_text();
	recorded();
}
