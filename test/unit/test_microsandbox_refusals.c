/*
 * test_microsandbox_refusals.c
 *		What the answer to the create of a Microsandbox sandbox proves about the allocation.
 *
 * The default is "unknown".  Each refusal that proves more stands here beside a
 * neighbour that looks alike and proves nothing, and each row of the adapter's own table
 * is met by one.
 */
#include "providers/microsandbox.h"
#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define MADE    SBX_ALLOCATION_MADE

#define MICRO_ERROR(code)                                                              \
	"{\"error\":{\"code\":\"" code "\",\"message\":\"203.0.113.9 said\"}}"

static Drive
creating(const char *name)
{
	SbxLaunchInput input = {.unique_name = name};
	Drive drive;

	drive_start(&drive, sbx_kind_microsandbox.launch(micro_account(), &input));
	return drive;
}

static const struct
{
	int status;
	const char *body;
	const char *code;
	SbxAllocation allocation;
} rows[] = {
    {400, MICRO_ERROR("invalid_request"), "BAD_REQUEST", NONE},
    {400, MICRO_ERROR("invalid_sandbox_config"), "BAD_REQUEST", NONE},
    {400, "{}", "BAD_REQUEST", NONE},
    {500, MICRO_ERROR("invalid_request"), NULL, UNKNOWN},
    {401, MICRO_ERROR("invalid_api_key"), "UNAUTHORIZED", NONE},
    {401, "<html>", "UNAUTHORIZED", NONE},
    {502, MICRO_ERROR("invalid_api_key"), NULL, UNKNOWN},
    {403, MICRO_ERROR("anything"), "FORBIDDEN", UNKNOWN},
    {402, MICRO_ERROR("anything"), NULL, UNKNOWN},
    {404, MICRO_ERROR("org_not_found"), NULL, UNKNOWN},
    {404, MICRO_GONE, NULL, UNKNOWN},
    {409, MICRO_ERROR("name_already_exists"), "NAME_CONFLICT", NONE},
    {409, "{\"code\":\"name_already_exists\"}", "NAME_CONFLICT", NONE},
    {409, MICRO_ERROR("invalid_state_transition"), NULL, UNKNOWN},
    {409, "{\"error\":{\"message\":\"name_already_exists\"}}", NULL, UNKNOWN},
    {409, "{\"error\":{\"code\":[\"name_already_exists\"]}}", NULL, UNKNOWN},
    {409, "name_already_exists", NULL, UNKNOWN},
    {500, MICRO_ERROR("name_already_exists"), NULL, UNKNOWN},
    {422, MICRO_ERROR("invalid_request"), "BAD_REQUEST", NONE},
    {418, MICRO_ERROR("invalid_request"), NULL, UNKNOWN},
    {429, MICRO_ERROR("rate_limited"), "RATE_LIMITED", UNKNOWN},
    {429, "", "RATE_LIMITED", UNKNOWN},
    {502, MICRO_ERROR("orchestrator_unreachable"), NULL, UNKNOWN},
    {502, MICRO_ERROR("nomad_job_failed"), NULL, UNKNOWN},
    {503, "<html>", NULL, UNKNOWN},
    {504, "", NULL, UNKNOWN},
    {302, "", NULL, UNKNOWN},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

static void
refused(void)
{
	for (size_t i = 0; i < ROWS; i++)
	{
		Drive drive = creating(NAME);

		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "%d %s", rows[i].status, rows[i].body);
		is_text(drive.op->sandbox_id, "", "no id");
		drive_end(&drive);
	}
}

/* --- the adapter's table -------------------------------------------------------- */

/* The row of the adapter's that an answer meets. */
static const SbxMicrosandboxRefusal *
met(int status, const char *body)
{
	json_t *answer = sbx_json_parse(body, strlen(body), false);
	const json_t *error = json_object_get(answer, "error");
	const char *code = sbx_json_string(error != NULL ? error : answer, "code");
	const SbxMicrosandboxRefusal *row = sbx_microsandbox_refusals;

	while (row->status != 0 && (row->status != status ||
	                            (row->error_code != NULL &&
	                             (code == NULL || strcmp(row->error_code, code) != 0))))
		row++;
	json_decref(answer);
	return row;
}

static void
all_are_met(void)
{
	for (const SbxMicrosandboxRefusal *row = sbx_microsandbox_refusals;
	     row->status != 0; row++)
	{
		bool is_met = false;

		for (size_t i = 0; i < ROWS; i++)
			is_met |= met(rows[i].status, rows[i].body) == row;
		ok(is_met, "%d %s: is met by a test", row->status,
		   row->error_code != NULL ? row->error_code : "");
	}
}

/* --- answers that are none ------------------------------------------------------ */

static void
no_refusal(void)
{
	Drive drive = creating(NAME);

	drive_answer(&drive, 200, "{\"id\":\"x/../y\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "must fire: no UUID");
	drive_end(&drive);
	drive = creating(NAME);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID
	             "\",\"name\":\"another\",\"status\":\"running\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
	      "must fire: somebody else's name");
	is_text(drive.op->sandbox_id, "", "whose sandbox is not ours to delete");
	drive_end(&drive);
	drive = creating(NAME);
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN, "no answer of the provider");
	drive_end(&drive);
	drive = creating("e3");
	drive_micro(&drive, "create, failed to start");
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", MADE, "made, and failed");
	drive_end(&drive);
	drive = creating(NAME);
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, NONE, "must not fire: it never left");
	drive_end(&drive);
	drive = creating(NAME);
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: no answer");
	drive_end(&drive);
}

void
test_microsandbox_refusals(void)
{
	section("microsandbox create, refused");
	refused();
	all_are_met();
	no_refusal();
}
