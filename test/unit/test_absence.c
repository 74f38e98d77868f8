/*
 * test_absence.c
 *		"There is no such sandbox" ends a destroy of every kind, and with it all knowledge of
 *		the sandbox, and whoever hears it may make another one: a web server that lost its
 *		way, and says 404 with a page, must not.
 */
#include <stdlib.h>

#include "unit.h"

/* --- operations that say that it is gone ------------------------------------ */

typedef struct Kind
{
	const char *name;
	const SbxProviderKind *kind;
	const char *gone; /* as its interface says it */
} Kind;

static const Kind kinds_that_tell[] = {
    {"daytona", &sbx_kind_daytona, "{}"},
    {"e2b", &sbx_kind_e2b, "{\"code\":404,\"message\":\"x\"}"},
    {"vercel", &sbx_kind_vercel, "{\"error\":{\"code\":\"not_found\"}}"},
    {"agent37", &sbx_kind_agent37, "{\"error\":{\"code\":\"not_found\"}}"},
    {"freestyle", &sbx_kind_freestyle, "{\"code\":\"NOT_FOUND\"}"},
    {"microsandbox", &sbx_kind_microsandbox, MICRO_GONE}};

/* To the first of them any object says it. */
#define ANY_OBJECT 4

static const SbxAccount *
account_of(const Kind *kind)
{
	if (kind->kind == &sbx_kind_daytona)
		return account_reset(&account);
	if (kind->kind == &sbx_kind_e2b)
		return e2b_account();
	if (kind->kind == &sbx_kind_vercel)
	{
		/* Otherwise a stop would delete it, and is refused. */
		(void) vercel_account();
		account_boolean(&account, "persistent", true);
		return &account.account;
	}
	if (kind->kind == &sbx_kind_agent37)
		return agent37_account();
	return kind->kind == &sbx_kind_freestyle ? freestyle_account() : micro_account();
}

static const SbxTarget *
target_of(const Kind *kind)
{
	static const SbxTarget daytona = {.sandbox_id = ID};

	if (kind->kind == &sbx_kind_daytona)
		return &daytona;
	if (kind->kind == &sbx_kind_e2b)
		return &e2b_target;
	if (kind->kind == &sbx_kind_vercel)
		return &vercel_target;
	if (kind->kind == &sbx_kind_agent37)
		return &agent37_target;
	return kind->kind == &sbx_kind_freestyle ? &freestyle_target : &micro_target;
}

/* The operations of that number: get, wait_ready, start, stop. */
#define OPERATIONS 4

static const char *const operation_names[OPERATIONS] = {"get", "wait", "start", "stop"};

static Drive
asking(const Kind *kind, int operation)
{
	const SbxAccount *asked = account_of(kind);
	const SbxTarget *target = target_of(kind);
	Drive drive;

	if (operation == 0)
		drive_start(&drive, kind->kind->get(asked, target));
	else if (operation == 1)
		drive_start(&drive, kind->kind->wait_ready(asked, target, 60000));
	else if (operation == 2)
		drive_start(&drive, kind->kind->start(asked, target, 60000));
	else
		drive_start(&drive, kind->kind->stop(asked, target, 60000));
	return drive;
}

static bool
says_gone(const Drive *drive, int operation)
{
	if (operation == 0)
		return drive->op->succeeded &&
		       ((const SbxSandboxFacts *) drive->op->result)->state == SBX_STATE_GONE;
	return !drive->op->succeeded && drive->op->failure.provider_code != NULL &&
	       strcmp(drive->op->failure.provider_code, "SANDBOX_GONE") == 0;
}

static void
tell_gone(void)
{
	static const char *const pages[] = {"<html>404 Not Found</html>",
	                                    "default backend - 404", "[]"};

	section("404 of a look");
	for (size_t k = 0; k < sizeof(kinds_that_tell) / sizeof(kinds_that_tell[0]); k++)
	{
		const Kind *kind = &kinds_that_tell[k];

		for (int operation = 0; operation < OPERATIONS; operation++)
		{
			Drive drive = asking(kind, operation);

			drive_answer(&drive, 404, kind->gone);
			ok(says_gone(&drive, operation), "%s, %s: must not fire: %s", kind->name,
			   operation_names[operation], kind->gone);
			drive_end(&drive);
			for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
			{
				drive = asking(kind, operation);
				drive_answer(&drive, 404, pages[i]);
				ok(!says_gone(&drive, operation), "%s, %s: must fire: %s", kind->name,
				   operation_names[operation], pages[i]);
				drive_end(&drive);
			}
		}
	}
}

/* --- destroy ---------------------------------------------------------------- */

static Drive
destroying(const Kind *kind)
{
	Drive drive;

	drive_start(&drive, kind->kind->destroy(account_of(kind), target_of(kind), 0));
	return drive;
}

void
test_absence(void)
{
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
	for (size_t k = 0; k < ANY_OBJECT; k++)
	{
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		{
			Drive drive = destroying(&kinds_that_tell[k]);

			drive_answer(&drive, 404, rows[i].body);
			if (rows[i].gone)
				ok(drive.op->succeeded &&
				       *(const SbxDestroyResult *) drive.op->result ==
				           SBX_DESTROY_WAS_GONE,
				   "%s: must not fire: %s", kinds_that_tell[k].name, rows[i].body);
			else
				fails(&drive, SBX_PHASE_REMOTE, 404, NULL, SBX_ALLOCATION_UNKNOWN,
				      "%s: must fire: %s", kinds_that_tell[k].name, rows[i].body);
			drive_end(&drive);
		}
	}
	tell_gone();
}
