/*
 * test_agent37_refusals.c
 *		What a refused create of an Agent37 instance proves about the allocation.
 *
 * The default is "unknown".  Each refusal that proves more stands here beside a
 * neighbour that looks alike and proves nothing.
 */
#include "unit.h"

#define NONE    SBX_ALLOCATION_NONE
#define UNKNOWN SBX_ALLOCATION_UNKNOWN

static Drive
creating(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	drive_start(&drive, sbx_kind_agent37.launch(agent37_account(), &input));
	return drive;
}

static const struct
{
	int status;
	const char *body;
	const char *code;
	SbxAllocation allocation;
} rows[] = {
    {400, AGENT37_ERROR("invalid_request"), "BAD_REQUEST", NONE},
    {400, "{}", NULL, UNKNOWN},
    {500, AGENT37_ERROR("invalid_request"), NULL, UNKNOWN},
    {401, AGENT37_ERROR("invalid_api_key"), "UNAUTHORIZED", NONE},
    {401, AGENT37_EDGE("invalid_api_key"), "UNAUTHORIZED", NONE},
    {401, "<html>", "UNAUTHORIZED", UNKNOWN},
    {402, AGENT37_ERROR("insufficient_balance"), "INSUFFICIENT_BALANCE", NONE},
    {402, "{}", NULL, UNKNOWN},
    {403, AGENT37_ERROR("ip_not_allowed"), "IP_NOT_ALLOWED", NONE},
    {403, AGENT37_ERROR("shared_unavailable"), "SHARED_UNAVAILABLE", NONE},
    {403, AGENT37_ERROR("tier_limit"), "TIER_LIMIT", NONE},
    {403, AGENT37_ERROR("another"), "FORBIDDEN", UNKNOWN},
    {404, AGENT37_ERROR("not_found"), "NOT_FOUND", NONE},
    {404, "", NULL, UNKNOWN},
    {409, AGENT37_ERROR("instance_limit_reached"), "CAPACITY", NONE},
    {409, AGENT37_ERROR("capacity_unavailable"), "CAPACITY", UNKNOWN},
    {409, AGENT37_ERROR("try_again"), "BUSY", UNKNOWN},
    {409, AGENT37_ERROR("file_exists"), NULL, UNKNOWN},
    {409, "{}", NULL, UNKNOWN},
    {429, AGENT37_ERROR("rate_limited"), "RATE_LIMITED", NONE},
    {429, "", "RATE_LIMITED", UNKNOWN},
    {503, AGENT37_ERROR("no_capacity"), "CAPACITY", NONE},
    {503, AGENT37_ERROR("no_capacity2"), NULL, UNKNOWN},
    {503, "{\"error\":{\"message\":\"no_capacity\"}}", NULL, UNKNOWN},
    {503, "{\"error\":{\"code\":[\"no_capacity\"]}}", NULL, UNKNOWN},
    {503, "no_capacity", NULL, UNKNOWN},
    {500, AGENT37_ERROR("no_capacity"), NULL, UNKNOWN},
    {409, AGENT37_ERROR("no_capacity"), NULL, UNKNOWN},
    {502, AGENT37_ERROR("provisioning_failed"), "PROVISIONING_FAILED", UNKNOWN},
    {500, AGENT37_ERROR("provisioning_failed"), "PROVISIONING_FAILED", UNKNOWN},
    {502, "", NULL, UNKNOWN},
    {504, AGENT37_EDGE("upstream_timeout"), NULL, UNKNOWN},
    {302, "", NULL, UNKNOWN},
};

void
test_agent37_refusals(void)
{
	Drive drive;

	section("Agent37 create, refused");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		drive = creating();
		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "%d %s", rows[i].status, rows[i].body);
		is_text(drive.op->sandbox_id, "", "no id");
		drive_end(&drive);
	}
	drive = creating();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, NONE, "must not fire: it never left");
	drive_end(&drive);
	drive = creating();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN, "must fire: no answer");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 201, "{\"id\":\"../x\",\"status\":\"running\"}");
	fails(&drive, SBX_PHASE_PROTOCOL, 201, NULL, UNKNOWN, "an id that is none");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 201, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 201, NULL, UNKNOWN, "no answer of the provider");
	drive_end(&drive);
}
