/*
 * test_vercel_settings.c
 *		Settings of Vercel that are right one by one and wrong together, and what is left out.
 */
#include <stdlib.h>

#include "unit.h"

static const char *
offender(void)
{
	return sbx_kind_vercel.check_settings(account.settings);
}

static void
checks(void)
{
	static const struct
	{
		const char *field;
		const char *text; /* NULL = the number */
		int64_t number;
		bool valid;
	} rows[] = {{"vcpus", NULL, 1, true},
	            {"vcpus", NULL, 2, true},
	            {"vcpus", NULL, 32, true},
	            {"vcpus", NULL, 3, false},
	            {"vcpus", NULL, 31, false},
	            {"networkPolicy", "allow-all", 0, true},
	            {"networkPolicy", "deny-all", 0, true},
	            {"networkPolicy", "deny", 0, false},
	            {"networkPolicy", "Deny-all", 0, false},
	            {"homeDir", "/home", 0, true},
	            {"homeDir", "/", 0, true},
	            {"homeDir", "home", 0, false},
	            {"homeDir", "~", 0, false},
	            {"image", "x", 0, true},
	            {"runtime", "node24", 0, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		vercel_account();
		if (rows[i].text != NULL)
			account_text(&account, rows[i].field, rows[i].text);
		else
			account_integer(&account, rows[i].field, rows[i].number);
		is_text(offender(), rows[i].valid ? NULL : rows[i].field, "%s: %s %s %d",
		        rows[i].valid ? "must not fire" : "must fire", rows[i].field,
		        rows[i].text != NULL ? rows[i].text : "", (int) rows[i].number);
	}
	vercel_account();
	is_text(offender(), NULL, "must not fire: none");
	account_text(&account, "image", "x");
	account_text(&account, "runtime", "node24");
	is_text(offender(), "runtime", "must fire: an image and a runtime");
}

/* Without one of its three parts a credential is none. */
static void
credentials(void)
{
	for (int i = 0; i < 3; i++)
	{
		Drive drive;

		vercel_account();
		account.credentials[i] = NULL;
		drive_start(&drive, sbx_kind_vercel.get(&account.account, &vercel_target));
		fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "without part %d",
		      i);
		drive_end(&drive);
	}
	for (int i = 0; i < 3; i++)
	{
		Drive drive;

		vercel_account();
		account.credentials[i] = "a\r\nX: y&z=?#";
		drive_start(&drive, sbx_kind_vercel.get(&account.account, &vercel_target));
		if (i == 0)
			fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
			      "must fire: a line break in a header");
		else
			ok(drive.want == SBX_OP_WANT_HTTP &&
			       strstr(drive.op->request.url, "a%0D%0AX%3A%20y%26z%3D%3F%23") !=
			           NULL,
			   "must not fire: part %d is encoded", i);
		drive_end(&drive);
	}
}

void
test_vercel_settings(void)
{
	section("Vercel settings");
	checks();
	section("Vercel credentials");
	credentials();
}
