/*
 * test_vercel_traps.c
 *		What is easily got wrong with Vercel, a test for each.
 */
#include <stdlib.h>

#include "unit.h"

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static void
listings(void)
{
	static const SbxPair label = {"k", "v"};
	Drive drive = begin(sbx_kind_vercel.find(vercel_account(), NULL, 0));

	asks(&drive, "GET",
	     VERCEL_API "/v2/sandboxes?teamId=team_1&project=prj_1&limit=50&sortBy=name"
	                "&sortOrder=asc&namePrefix=sbx_",
	     "a page has 50, a prefix needs the order by name, lists say project");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.find(vercel_account(), &label, 1));
	asks(&drive, "GET",
	     VERCEL_API "/v2/sandboxes?teamId=team_1&project=prj_1&limit=50"
	                "&sortBy=createdAt&sortOrder=asc&tags=k%3Av",
	     "one tag");
	drive_answer(
	    &drive, 200,
	    "{\"sandboxes\":[" VERCEL_ROW(
	        "running",
	        "") ",{\"name\":\"foreign\","
	            "\"tags\":{\"k\":\"v\"}},{\"name\":\"sbx_2\",\"tags\":{\"k\":\"w\"}}],"
	            "\"pagination\":{\"next\":null}}");
	is_number(((SbxFindResult *) drive.op->result)->count, 1,
	          "tags and names are looked at again");
	drive_end(&drive);
}

static void
usage(void)
{
	Drive drive = begin(sbx_kind_vercel.usage(vercel_account(), 5000));
	const SbxUsage *used;

	drive_answer(
	    &drive, 200,
	    "{\"sandboxes\":[" VERCEL_ROW(
	        "running",
	        ",\"vcpus\":2,\"memory\":4096") ",{\"name\":\"o\",\"status\":\"odd\","
	                                        "\"vcpus\":1,\"memory\":2048},"
	                                        "{\"name\":\"p\",\"status\":\"stopped\"}],"
	                                        "\"pagination\":{\"next\":null}}");
	ok(strstr(drive.op->request.url, "status=stopping") != NULL, "then what stops");
	drive_answer(
	    &drive, 200,
	    "{\"sandboxes\":[" VERCEL_ROW(
	        "stopping",
	        ",\"vcpus\":2,\"memory\":4096") "],\"pagination\":{\"next\":null}}");
	used = drive.op->result;
	ok(drive.op->succeeded && used->sandboxes == 2 && used->cpu == 3 &&
	       used->memory_mib == 6144 && used->disk_untold,
	   "each once; what is stopped does not count, an unknown state does; MiB");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.usage(vercel_account(), 5000));
	drive_answer(&drive, 200,
	             "{\"sandboxes\":[" VERCEL_ROW("running",
	                                           "") "],\"pagination\":{\"next\":null}}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, "MALFORMED", SBX_ALLOCATION_UNKNOWN,
	      "no size is never taken for the default");
	drive_end(&drive);
}

static void
stops(void)
{
	Drive drive = begin(sbx_kind_vercel.stop(vercel_account(), &vercel_target, 0));

	fails(&drive, SBX_PHASE_NONE, 0, "STOP_WOULD_DESTROY", SBX_ALLOCATION_UNKNOWN,
	      "must fire: a stop that keeps nothing, before anything is sent");
	drive_end(&drive);
	account_boolean(&account, "persistent", true);
	drive = vercel_opened(sbx_kind_vercel.stop(&account.account, &vercel_target, 0));
	asks(&drive, "POST", VERCEL_SESSION "/stop?teamId=team_1",
	     "must not fire: of a persistent one the session is stopped");
	drive_end(&drive);
}

static void
starts(void)
{
	static const char brief[] =
	    "{\"sandbox\":{\"name\":\"" NAME
	    "\",\"status\":\"stopped\",\"persistent\":false,"
	    "\"currentSessionId\":\"s\",\"tags\":{\"sbx-router-id\":\"" NAME "\"}}}";
	Drive drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));

	asks(&drive, "GET", VERCEL_SANDBOX, "a look resumes nothing");
	drive_answer(&drive, 200, VERCEL_DTO("stopped"));
	asks(&drive, "GET", VERCEL_SANDBOX "&resume=true", "a start does");
	ok(!drive.op->request.repeatable, "and is delivered once");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.start(vercel_account(), &vercel_target, 0));
	drive_answer(&drive, 200, brief);
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOTHING_KEPT", SBX_ALLOCATION_UNKNOWN,
	      "one of which nothing was kept is not started empty");
	drive_end(&drive);
}

static void
downloads(void)
{
	Drive drive = vercel_opened(
	    sbx_kind_vercel.download(vercel_account(), &vercel_target, "a", 10));

	asks(&drive, "POST", VERCEL_SESSION "/fs/read?teamId=team_1", "by POST");
	is_text(drive.op->request.body, "{\"path\":\"/vercel/sandbox/a\"}", "from home");
	drive_headed(&drive, 200, "Content-Type: application/octet-stream; x=y\r\n", "abc");
	ok(drive.op->succeeded, "a parameter of the media type says nothing");
	drive_end(&drive);
	drive = vercel_opened(
	    sbx_kind_vercel.download(vercel_account(), &vercel_target, "/a", 10));
	drive_headed(&drive, 200, "Content-Type: application/json\r\n", "{}");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "another is no file");
	drive_end(&drive);
	drive =
	    begin(sbx_kind_vercel.download(vercel_account(), &vercel_target, "../a", 10));
	fails(&drive, SBX_PHASE_NONE, 0, "INVALID_FILE_PATH", SBX_ALLOCATION_NONE, "no ..");
	drive_end(&drive);
}

static void
deletions(void)
{
	Drive drive = begin(sbx_kind_vercel.destroy(vercel_account(), &vercel_target, 0));

	asks(&drive, "GET", VERCEL_SANDBOX, "whose it is comes first");
	drive_answer(&drive, 200, VERCEL_DTO("running"));
	asks(&drive, "DELETE", VERCEL_SANDBOX "&deleteOrphanSnapshots=true", "deleted");
	drive_answer(&drive, 200, VERCEL_DTO("stopping"));
	asks(&drive, "GET", VERCEL_SANDBOX, "200 is no proof");
	drive_answer(&drive, 200, VERCEL_DTO_OF(VERCEL_ROW("stopping", ""), "stopping"));
	drive_pause_over(&drive);
	asks(&drive, "GET", VERCEL_SANDBOX, "it still stops: looked at again");
	drive_answer(&drive, 404, "{}");
	ok(drive.op->succeeded &&
	       *(SbxDestroyResult *) drive.op->result == SBX_DESTROY_DONE,
	   "404 is");
	drive_end(&drive);
	drive = begin(sbx_kind_vercel.destroy(vercel_account(), &vercel_target, 0));
	drive_answer(&drive, 200, "{\"sandbox\":{\"name\":\"" NAME "\"}}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", SBX_ALLOCATION_UNKNOWN,
	      "must not fire: a stranger's is left alone");
	drive_end(&drive);
}

static void
teams(void)
{
	Drive drive;

	vercel_account();
	account.credentials[0] = "h.eyJvd25lcl9pZCI6InRlYW1fVCIsInByb2plY3RfaWQiOiJwIn0.s";
	drive = begin(sbx_kind_vercel.get(&account.account, &vercel_target));
	asks(&drive, "GET",
	     VERCEL_API "/v2/sandboxes/" NAME "?teamId=team_T&projectId=prj_1",
	     "a token's own team counts, its project does not");
	drive_end(&drive);
	account.credentials[0] = "h.!!.s";
	drive = begin(sbx_kind_vercel.get(&account.account, &vercel_target));
	asks(&drive, "GET", VERCEL_SANDBOX, "must not fire: one that cannot be read");
	drive_end(&drive);
}

void
test_vercel_traps(void)
{
	section("Vercel traps");
	listings();
	usage();
	stops();
	starts();
	downloads();
	deletions();
	teams();
}
