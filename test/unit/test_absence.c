/*
 * test_absence.c
 *		"There is no such sandbox" ends a destroy of every kind, and with it all knowledge of
 *		the sandbox: a web server that lost its way, and says 404 with a page, must not.
 */
#include <stdlib.h>

#include "unit.h"

static Drive
destroying(const char *kind)
{
	const SbxTarget daytona = {.sandbox_id = ID};
	Drive drive;
	SbxOp *op;

	if (strcmp(kind, "daytona") == 0)
		op = sbx_kind_daytona.destroy(account_reset(&account), &daytona, 0);
	else if (strcmp(kind, "e2b") == 0)
		op = sbx_kind_e2b.destroy(e2b_account(), &e2b_target, 0);
	else if (strcmp(kind, "vercel") == 0)
		op = sbx_kind_vercel.destroy(vercel_account(), &vercel_target, 0);
	else
		op = sbx_kind_agent37.destroy(agent37_account(), &agent37_target, 0);
	drive_start(&drive, op);
	return drive;
}

void
test_absence(void)
{
	static const char *const kinds[] = {"daytona", "e2b", "vercel", "agent37"};
	static const struct
	{
		const char *body;
		bool gone;
	} rows[] = {{"{}", true},
	            {"{\"error\":{\"code\":\"not_found\"}}", true},
	            {"", true},
	            {"<html>404 Not Found</html>", false},
	            {"default backend - 404", false},
	            {"[]", false}};

	section("404");
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		{
			Drive drive = destroying(kinds[k]);

			drive_answer(&drive, 404, rows[i].body);
			if (rows[i].gone)
				ok(drive.op->succeeded &&
				       *(const SbxDestroyResult *) drive.op->result ==
				           SBX_DESTROY_WAS_GONE,
				   "%s: must not fire: %s", kinds[k], rows[i].body);
			else
				fails(&drive, SBX_PHASE_REMOTE, 404, NULL, SBX_ALLOCATION_UNKNOWN,
				      "%s: must fire: %s", kinds[k], rows[i].body);
			drive_end(&drive);
		}
	}
}
