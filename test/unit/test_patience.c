/*
 * test_patience.c
 *		A wait may last a day, with a look each second: a look may cost the memory of an
 *		address, not that of a description.  When the time is over it tells "not yet".
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#define ADDRESS 100

static SbxOp *
wait_daytona(void)
{
	const SbxTarget target = {.sandbox_id = ID};

	return sbx_kind_daytona.wait_ready(account_reset(&account), &target, 0);
}

static SbxOp *
wait_e2b(void)
{
	return sbx_kind_e2b.wait_ready(e2b_account(), &e2b_target, 0);
}

static SbxOp *
wait_vercel(void)
{
	return sbx_kind_vercel.wait_ready(vercel_account(), &vercel_target, 0);
}

static SbxOp *
wait_agent37(void)
{
	return sbx_kind_agent37.wait_ready(agent37_account(), &agent37_target, 0);
}

static SbxOp *
wait_freestyle(void)
{
	return sbx_kind_freestyle.wait_ready(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
wait_microsandbox(void)
{
	return sbx_kind_microsandbox.wait_ready(micro_account(), &micro_target, 0);
}

static const struct
{
	const char *name;
	SbxOp *(*wait)(void);
	const char *starting;
} kinds[] = {
    {"daytona", wait_daytona, DTO("starting")},
    {"e2b", wait_e2b, E2B_DTO("resuming")},
    {"vercel", wait_vercel, VERCEL_DTO("pending")},
    {"agent37", wait_agent37, AGENT37_DTO("starting")},
    {"freestyle", wait_freestyle, FREESTYLE_DTO("starting")},
    {"microsandbox", wait_microsandbox, MICRO_DTO("starting")},
};

/* Bytes of memory that a wait of so many looks needs. */
static size_t
looks(size_t kind, int count)
{
	const SbxSandboxFacts *facts;
	Drive drive;

	drive_start(&drive, kinds[kind].wait());
	for (int i = 0; i < count; i++)
	{
		drive_answer(&drive, 200, kinds[kind].starting);
		if (drive.want == SBX_OP_WANT_PAUSE)
			drive_pause_over(&drive);
	}
	drive_expire(&drive);
	facts = drive.op->result;
	ok(drive.want == SBX_OP_WANT_NOTHING && drive.op->succeeded && facts != NULL &&
	       facts->state == SBX_STATE_STARTING,
	   "%s: not yet, after %d looks", kinds[kind].name, count);
	drive_end(&drive);
	return unit_arena_used;
}

void
test_patience(void)
{
	section("patience");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
	{
		size_t few = looks(i, 3);

		ok(looks(i, 303) - few < 300 * ADDRESS, "%s: what a look needs", kinds[i].name);
	}
}
