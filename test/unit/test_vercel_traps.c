/*
 * test_vercel_traps.c
 *		What Vercel does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include <stdlib.h>

#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE

/* A page with these sandboxes, and no other after it. */
#define PAGE(rows) "{\"sandboxes\":[" rows "],\"pagination\":{\"next\":null}}"
#define LIST       VERCEL_API "/v2/sandboxes?teamId=team_1&project=prj_1&limit=50&"

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static Drive
launching(void)
{
	SbxLaunchInput input = plain_input();

	return begin(sbx_kind_vercel.launch(&account.account, &input));
}

static Drive
running(void)
{
	SbxRunInput input = plain_run("x");

	return vercel_opened(
	    sbx_kind_vercel.run_script(vercel_account(), &vercel_target, &input));
}

static bool
says(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

/* --- creates ------------------------------------------------------------------ */

static void
creates_and_commands_are_sent_once(void)
{
	static const int statuses[] = {429, 500, 502, 0};

	section("Vercel: its client sends creates and commands again");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
	{
		Drive drive;

		vercel_account();
		drive = launching();
		ok(!drive.op->request.repeatable, "a create is delivered once");
		if (statuses[i] == 0)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		else
			drive_answer(&drive, statuses[i], "{}");
		ok(drive.want == SBX_OP_WANT_NOTHING, "create, %d: not again", statuses[i]);
		drive_end(&drive);
		drive = running();
		ok(!drive.op->request.repeatable, "a command is delivered once");
		if (statuses[i] == 0)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
		else
			drive_answer(&drive, statuses[i], "{}");
		ok(drive.want == SBX_OP_WANT_NOTHING || says(&drive, "kill -9"),
		   "command, %d: not again", statuses[i]);
		drive_end(&drive);
	}
}

static void
persistence_is_said(void)
{
	Drive drive;

	section("Vercel: sandboxes are persistent unless it is said");
	vercel_account();
	drive = launching();
	ok(says(&drive, "\"persistent\":false"), "it is said");
	drive_end(&drive);
	account_boolean(&account, "persistent", true);
	drive = launching();
	ok(says(&drive, "\"persistent\":true"), "must not fire: it is asked for");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.stop(vercel_account(), &vercel_target, 0));
	fails(&drive, SBX_PHASE_NONE, 0, "STOP_WOULD_DESTROY", UNKNOWN,
	      "must fire: a stop that keeps nothing, before anything is sent");
	drive_end(&drive);
	account_boolean(&account, "persistent", true);
	drive = begin(sbx_kind_vercel.stop(&account.account, &vercel_target, 0));
	drive_answer(&drive, 200,
	             "{\"sandbox\":{\"name\":\"" NAME
	             "\",\"status\":\"running\",\"persistent\":false,\"currentSessionId\":"
	             "\"s\",\"tags\":{\"sbx-router-id\":\"" NAME "\"}}}");
	fails(&drive, SBX_PHASE_NONE, 200, "STOP_WOULD_DESTROY", UNKNOWN,
	      "must fire: what the sandbox itself says counts");
	drive_end(&drive);
	drive = vercel_opened(sbx_kind_vercel.stop(&account.account, &vercel_target, 0));
	asks(&drive, "POST", VERCEL_SESSION "/stop?teamId=team_1",
	     "must not fire: of a persistent one the session is stopped");
	drive_end(&drive);
}

static void
name_exists_is_400(void)
{
	Drive drive;

	section("Vercel: \"name exists\" and \"bad ports\" are the same 400");
	vercel_account();
	drive = launching();
	drive_answer(&drive, 400,
	             "{\"error\":{\"code\":\"bad_request\",\"message\":\"x already "
	             "exists\"}}");
	asks(&drive, "GET", VERCEL_SANDBOX, "must fire: what has the name is looked at");
	drive_end(&drive);
	drive = launching();
	drive_answer(&drive, 400,
	             "{\"error\":{\"code\":\"bad_request\",\"message\":\"bad ports\"}}");
	fails(&drive, SBX_PHASE_REMOTE, 400, "BAD_REQUEST", NONE, "must not fire");
	drive_end(&drive);
}

static void
few_tags(void)
{
	static const SbxPair tags[] = {{"a", "1"}, {"b", "2"}, {"c", "3"},
	                               {"d", "4"}, {"e", "5"}, {"f", "6"}};
	SbxLaunchInput input = plain_input();

	section("Vercel: five tags");
	input.labels = tags;
	for (input.label_count = 5; input.label_count <= 6; input.label_count++)
	{
		Drive drive = begin(sbx_kind_vercel.launch(vercel_account(), &input));

		if (input.label_count == 5)
			ok(drive.want == SBX_OP_WANT_HTTP, "must not fire: five");
		else
			fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: six");
		drive_end(&drive);
	}
	is_number(sbx_kind_vercel.max_labels, 5, "which routing knows");
}

static void
lifetimes(void)
{
	Drive drive;

	section("Vercel: a session dies after five minutes");
	vercel_account();
	drive = launching();
	ok(says(&drive, "\"timeout\":300000"), "its time is said");
	drive_end(&drive);
	account_integer(&account, "timeoutSeconds", 86400);
	drive = launching();
	ok(says(&drive, "\"timeout\":86400000"), "in milliseconds");
	drive_end(&drive);
}

static void
teams(void)
{
	Drive drive;

	section("Vercel: a token says its own team");
	vercel_account();
	account.credentials[0] = "h.eyJvd25lcl9pZCI6InRlYW1fVCIsInByb2plY3RfaWQiOiJwIn0.s";
	drive = begin(sbx_kind_vercel.get(&account.account, &vercel_target));
	asks(&drive, "GET",
	     VERCEL_API "/v2/sandboxes/" NAME "?teamId=team_T&projectId=prj_1",
	     "must fire: that counts, its project does not");
	drive_end(&drive);
	for (int i = 0; i < 6; i++)
	{
		static const char *const tokens[] = {"h.!!.s", "a.b",     "a.b.c.d",
		                                     "..",     "h.e30.s", "opaque"};

		account.credentials[0] = tokens[i];
		drive = begin(sbx_kind_vercel.get(&account.account, &vercel_target));
		asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: %s", tokens[i]);
		drive_end(&drive);
	}
}

/* --- listings ----------------------------------------------------------------- */

static void
listings(void)
{
	static const SbxPair labels[] = {{"k", "v"}, {"l", "w"}};
	Drive drive = begin(sbx_kind_vercel.find(vercel_account(), NULL, 0));

	section("Vercel: pages of 50, and a prefix only in the order by name");
	asks(&drive, "GET", LIST "sortBy=name&sortOrder=asc&namePrefix=sbx_", "so it is");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.find(vercel_account(), labels, 2));
	asks(&drive, "GET", LIST "sortBy=createdAt&sortOrder=asc&tags=k%3Av", "one tag");
	drive_end(&drive);
	section("Vercel: project and projectId");
	drive = begin(sbx_kind_vercel.find(vercel_account(), NULL, 0));
	ok(strstr(drive.op->request.url, "&project=prj_1&") != NULL, "lists: project");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.get(vercel_account(), &vercel_target));
	ok(strstr(drive.op->request.url, "&projectId=prj_1") != NULL, "one: projectId");
	drive_end(&drive);
	vercel_account();
	drive = launching();
	ok(strstr(drive.op->request.url, "project") == NULL &&
	       says(&drive, "\"projectId\":\"prj_1\""),
	   "a create: in its body");
	drive_end(&drive);
}

static const SbxUsage *
used_by(Drive *drive, const char *running, const char *stopping)
{
	*drive = begin(sbx_kind_vercel.usage(vercel_account(), 5000));
	ok(strstr(drive->op->request.url, "&status=running") != NULL, "what runs");
	drive_answer(drive, 200, running);
	ok(strstr(drive->op->request.url, "&status=stopping") != NULL, "then what stops");
	drive_answer(drive, 200, stopping);
	return drive->op->succeeded ? drive->op->result : NULL;
}

static void
usage(void)
{
	Drive drive;
	const SbxUsage *used;

	section("Vercel: what is stopped takes no place");
	used = used_by(
	    &drive,
	    PAGE(VERCEL_ROW(
	        "running",
	        ",\"vcpus\":2,\"memory\":4096") ","
	                                        "{\"name\":\"o\",\"status\":\"odd\","
	                                        "\"vcpus\":1,"
	                                        "\"memory\":2048},{\"name\":\"p\","
	                                        "\"status\":\"stopped\"},"
	                                        "{\"name\":\"q\",\"status\":\"failed\"}"),
	    PAGE(VERCEL_ROW("stopping", ",\"vcpus\":2,\"memory\":4096")));
	ok(used != NULL && used->sandboxes == 2 && used->cpu == 3,
	   "each once, other people's too; a state that is not known does");
	section("Vercel: memory is MiB, and disks are not told");
	ok(used != NULL && used->memory_mib == 6144 && used->disk_untold, "so it is");
	drive_end(&drive);
	section("Vercel: sizes may be missing");
	drive = begin(sbx_kind_vercel.usage(vercel_account(), 5000));
	drive_answer(&drive, 200, PAGE(VERCEL_ROW("running", "")));
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", UNKNOWN,
	      "and are never taken for the default");
	drive_end(&drive);
}

static void
times(void)
{
	Drive drive = begin(sbx_kind_vercel.get(vercel_account(), &vercel_target));

	section("Vercel: times are milliseconds");
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	is_text(((const SbxSandboxFacts *) drive.op->result)->created_at,
	        "2026-09-21T14:13:20.000Z", "as everybody else writes them");
	drive_end(&drive);
}

/* --- sessions ----------------------------------------------------------------- */

static void
sessions(void)
{
	Drive drive = running();

	section("Vercel: commands and files need the session's id");
	asks(&drive, "POST", VERCEL_SESSION "/cmd?teamId=team_1", "a command");
	drive_end(&drive);
	drive = vercel_opened(
	    sbx_kind_vercel.download(vercel_account(), &vercel_target, "a", 10));
	asks(&drive, "POST", VERCEL_SESSION "/fs/read?teamId=team_1", "a file");
	drive_end(&drive);
	section("Vercel: looking can start a machine");
	drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));
	asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: a look resumes nothing");
	drive_answer(&drive, 200, VERCEL_DTO("stopped"));
	asks(&drive, "GET", VERCEL_SANDBOX "&resume=true", "must fire: a start does");
	ok(!drive.op->request.repeatable, "and is delivered once");
	drive_end(&drive);
	section("Vercel: a start of one that kept nothing is empty");
	drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));
	drive_answer(&drive, 200,
	             "{\"sandbox\":{\"name\":\"" NAME
	             "\",\"status\":\"stopped\",\"persistent\":false,\"currentSessionId\":"
	             "\"s\",\"tags\":{\"sbx-router-id\":\"" NAME "\"}}}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOTHING_KEPT", UNKNOWN, "refused");
	drive_end(&drive);
	section("Vercel: a command wakes what is stopped, says its client");
	drive = running();
	drive_answer(&drive, 410, "{\"error\":{\"code\":\"sandbox_stopped\"}}");
	fails(&drive, SBX_PHASE_REMOTE, 410, "NOT_STARTED", UNKNOWN, "nothing does here");
	drive_end(&drive);
}

static void
ends_of_commands(void)
{
	SbxRunInput input = plain_run("x");
	Drive drive =
	    vercel_ran(&input, VERCEL_BEGUN VERCEL_MARKED("137") VERCEL_END("137"), 9, 200);

	section("Vercel: out of time is 137 in a 200");
	ok(drive.op->succeeded &&
	       ((const SbxRunResult *) drive.op->result)->exit_code == 137,
	   "must not fire: a script that ends so");
	drive_end(&drive);
	drive = vercel_ran(&input, VERCEL_BEGUN VERCEL_END("137"), 9, 200);
	ok(says(&drive, "kill -9"), "must fire: what is left is killed");
	drive_feed(&drive, VERCEL_END("0"), strlen(VERCEL_END("0")), 9);
	drive_answer(&drive, 200, "");
	fails(&drive, SBX_PHASE_REMOTE, 200, "TIMEOUT", UNKNOWN, "and it is told");
	drive_end(&drive);
	section("Vercel: a stream that is cut is no result");
	drive = vercel_ran(&input, VERCEL_BEGUN VERCEL_OUT("x"), 9, 200);
	ok(says(&drive, "kill -9"), "must fire: no end was told");
	drive_end(&drive);
	section("Vercel: asking can block until the end");
	drive = running();
	ok(says(&drive, "\"wait\":true,\"logs\":true") &&
	       drive.op->request.timeout_ms > input.timeout_ms,
	   "only the command's own stream does, and has the time");
	drive_end(&drive);
}

/* --- files -------------------------------------------------------------------- */

static void
files(void)
{
	SbxUploadInput input = {.path = "/tmp/a", .bytes = "x", .length = 1};
	Drive drive = vercel_opened(
	    sbx_kind_vercel.download(vercel_account(), &vercel_target, "a", 10));

	section("Vercel: files come by POST");
	asks(&drive, "POST", VERCEL_SESSION "/fs/read?teamId=team_1", "so it is");
	is_text(drive.op->request.body, "{\"path\":\"/vercel/sandbox/a\"}", "from home");
	drive_headed(&drive, 200, "Content-Type: application/json\r\n", "{}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, UNKNOWN,
	      "another media type is no file");
	drive_end(&drive);
	section("Vercel: files go as an archive, extracted where a header says");
	drive =
	    vercel_opened(sbx_kind_vercel.upload(vercel_account(), &vercel_target, &input));
	is_text(sent_header(drive.op, "content-type"), "application/gzip", "gzip");
	is_text(sent_header(drive.op, "x-cwd"), "/", "at the root");
	drive_end(&drive);
	input.path = "/tmp/../etc/a";
	drive = begin(sbx_kind_vercel.upload(vercel_account(), &vercel_target, &input));
	fails(&drive, SBX_PHASE_NONE, 0, "INVALID_FILE_PATH", NONE, "must fire: and no ..");
	drive_end(&drive);
}

/* --- deletions ------------------------------------------------------------------ */

static void
deletions(void)
{
	Drive drive = begin(sbx_kind_vercel.destroy(vercel_account(), &vercel_target, 0));

	section("Vercel: a delete is answered before it is done");
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	asks(&drive, "DELETE", VERCEL_SANDBOX "&deleteOrphanSnapshots=true",
	     "with what it has kept");
	drive_answer(&drive, 200, VERCEL_DTO("stopping"));
	asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: 200 is no proof");
	drive_answer(&drive, 200, VERCEL_DTO_OF(VERCEL_ROW("stopping", ""), "stopping"));
	drive_pause_over(&drive);
	asks(&drive, "GET", VERCEL_SANDBOX, "it still stops: looked at again");
	drive_answer(&drive, 404, "{}");
	ok(drive.op->succeeded &&
	       *(const SbxDestroyResult *) drive.op->result == SBX_DESTROY_DONE,
	   "must fire: 404 is");
	drive_end(&drive);
	section("Vercel: a name can be anybody's");
	drive = begin(sbx_kind_vercel.destroy(vercel_account(), &vercel_target, 0));
	asks(&drive, "GET", VERCEL_SANDBOX, "whose it is comes first");
	drive_answer(&drive, 200, "{\"sandbox\":{\"name\":\"" NAME "\"}}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", UNKNOWN,
	      "a stranger's is left alone");
	drive_end(&drive);
}

void
test_vercel_traps(void)
{
	creates_and_commands_are_sent_once();
	persistence_is_said();
	name_exists_is_400();
	few_tags();
	lifetimes();
	teams();
	listings();
	usage();
	times();
	sessions();
	ends_of_commands();
	files();
	deletions();
}
