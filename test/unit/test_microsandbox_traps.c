/*
 * test_microsandbox_traps.c
 *		What Microsandbox does that nobody expects; each is handled or refused.
 *
 * The details are in the tests of the operations.  Here every trap has its name.
 */
#include "unit.h"

#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define NONE    SBX_ALLOCATION_NONE
#define MADE    SBX_ALLOCATION_MADE

#define MICRO_ERROR(code) "{\"error\":{\"code\":\"" code "\",\"message\":\"m\"}}"

/* Pieces of frames. */
#define END_OF_INPUT "core.exec.stdin\x61p\x47\xa1\x64"
#define NO_VARIABLES "\x63\x65nv\x80"
#define NO_DIRECTORY                                                                   \
	"\x63"                                                                             \
	"cwd\xf6\x64user\xf6"

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

static Drive
launching(const SbxLaunchInput *input)
{
	return begin(sbx_kind_microsandbox.launch(micro_account(), input));
}

static Drive
creating(void)
{
	SbxLaunchInput input = plain_input();

	return launching(&input);
}

/* A run whose agent is ready: its command is said. */
static Drive
running(const char *command)
{
	SbxRunInput input = plain_run(command);
	Drive drive = begin(micro_run(&input));
	Stream stream = micro_greeting();

	drive_feed(&drive, stream.bytes, stream.length, 1000);
	stream_free(&stream);
	return drive;
}

static void
feed(Drive *drive, const char *type, unsigned flags, const char *key, const char *bytes)
{
	Stream stream = {0};

	micro_frame(&stream, type, flags, key, bytes, bytes == NULL ? 0 : strlen(bytes));
	drive_feed(drive, stream.bytes, stream.length, 1000);
	stream_free(&stream);
}

static bool
says(const Drive *drive, const char *bytes)
{
	for (const SbxMessage *message = drive->op->request.said; message != NULL;
	     message = message->next)
	{
		if (memmem(message->bytes, message->length, bytes, strlen(bytes)) != NULL)
			return true;
	}
	return false;
}

static bool
sends(const Drive *drive, const char *text)
{
	return drive->want == SBX_OP_WANT_HTTP && drive->op->request.body != NULL &&
	       strstr(drive->op->request.body, text) != NULL;
}

static Drive
destroying(const char *id, const char *name, const char *token)
{
	SbxTarget target = {.sandbox_id = id, .unique_name = name, .launch_token = token};

	return begin(sbx_kind_microsandbox.destroy(micro_account(), &target, 60000));
}

/* --- creates ------------------------------------------------------------------ */

static void
creates_are_200(void)
{
	Drive drive = creating();

	section("Microsandbox: a create is 200 whatever becomes of it");
	drive_answer(&drive, 200, MICRO_DTO("starting"));
	asks(&drive, "GET", MICRO_SANDBOX, "must fire: \"starting\" is looked at");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 200, MICRO_DTO("failed"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "SANDBOX_FAILED", MADE,
	      "must fire: \"failed\" is one that was made");
	is_text(drive.op->sandbox_id, MICRO_ID, "which can be deleted");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: \"running\"");
	drive_end(&drive);
}

static void
queued(void)
{
	static const char waits[] =
	    "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME
	    "\",\"status\":\"starting\",\"status_reason\":\"insufficient_capacity\","
	    "\"spec\":null}";
	Drive drive = creating();

	section("Microsandbox: \"insufficient capacity\" is a place in a queue");
	drive_answer(&drive, 200, waits);
	asks(&drive, "GET", MICRO_SANDBOX, "must not fire: no refusal");
	drive_answer(&drive, 200, waits);
	pauses(&drive, 500, "it is waited for");
	drive_expire(&drive);
	ok(drive.want == SBX_OP_WANT_NOTHING && !drive.op->succeeded &&
	       drive.op->failure.allocation == MADE && drive.op->failure.timed_out,
	   "must fire: when the time is over it is still there");
	is_text(drive.op->sandbox_id, MICRO_ID, "and can be deleted");
	drive_end(&drive);
}

static void
too_many(void)
{
	Drive drive = creating();

	section("Microsandbox: 429 may follow the admission");
	asks(&drive, "POST", MICRO_API "?start=true", "nobody waits in the create");
	drive_answer(&drive, 429, MICRO_ERROR("rate_limited"));
	fails(&drive, SBX_PHASE_REMOTE, 429, "RATE_LIMITED", UNKNOWN,
	      "must fire: it proves nothing");
	drive_end(&drive);
	drive = creating();
	drive_answer(&drive, 401, MICRO_ERROR("invalid_api_key"));
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", NONE,
	      "must not fire: this does");
	drive_end(&drive);
}

static void
same_statuses(void)
{
	static const struct
	{
		int status;
		const char *body;
		const char *code;
		SbxAllocation allocation;
	} rows[] = {{409, MICRO_ERROR("name_already_exists"), "NAME_CONFLICT", NONE},
	            {409, MICRO_ERROR("invalid_state_transition"), NULL, UNKNOWN},
	            {502, MICRO_ERROR("orchestrator_unreachable"), NULL, UNKNOWN},
	            {502, MICRO_ERROR("nomad_job_failed"), NULL, UNKNOWN},
	            {402, MICRO_ERROR("a_quota"), NULL, UNKNOWN},
	            {403, MICRO_ERROR("a_quota"), "FORBIDDEN", UNKNOWN},
	            {413, MICRO_ERROR("a_quota"), NULL, UNKNOWN}};

	section("Microsandbox: two 409, two 502, and a quota whose code nobody knows");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		Drive drive = creating();

		drive_answer(&drive, rows[i].status, rows[i].body);
		fails(&drive, SBX_PHASE_REMOTE, rows[i].status, rows[i].code,
		      rows[i].allocation, "%s: %d %s",
		      rows[i].allocation == NONE ? "must fire" : "must not fire",
		      rows[i].status, rows[i].body);
		drive_end(&drive);
	}
}

static void
names(void)
{
	char longest[130];
	const char *const bad[] = {longest, "a b", "a/b", "\xc3\xbc", "-a", ".a", "_a", ""};
	SbxLaunchInput input = {.unique_name = longest};
	Drive drive;

	section("Microsandbox: a name is 128 bytes of ASCII");
	memset(longest, 'a', sizeof(longest));
	longest[128] = '\0';
	drive = launching(&input);
	ok(drive.want == SBX_OP_WANT_HTTP, "must not fire: 128");
	drive_end(&drive);
	longest[128] = 'a';
	longest[129] = '\0';
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		input.unique_name = bad[i];
		drive = launching(&input);
		fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: \"%.20s\"", bad[i]);
		drive_end(&drive);
	}
	drive = creating();
	ok(drive.want == SBX_OP_WANT_HTTP, "must not fire: the router's own");
	drive_end(&drive);
}

/* --- what is written in two ways -------------------------------------------------- */

static void
shapes(void)
{
	static const SbxPair env = {"A", "b"};
	SbxLaunchInput input = plain_input();
	SbxRunInput run = plain_run("x");
	Stream stream = micro_greeting();
	Drive drive;

	section("Microsandbox: variables and images are written in two ways");
	input.env = &env;
	input.env_count = 1;
	drive = launching(&input);
	ok(sends(&drive, "\"env\":[{\"key\":\"A\",\"value\":\"b\"}]"),
	   "a create has pairs of variables");
	ok(sends(&drive, "\"image\":{\"type\":\"oci\",\"reference\":\"python:3.12\"}"),
	   "and an object as its image");
	drive_answer(
	    &drive, 200,
	    "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME
	    "\",\"status\":\"running\",\"spec\":{\"image\":\"python:3.12\",\"env\":"
	    "[{\"key\":\"A\",\"value\":\"b\"}]}}");
	ok(drive.op->succeeded, "must not fire: a description has a text as its image");
	drive_end(&drive);
	run.env = &env;
	run.env_count = 1;
	drive = begin(micro_run(&run));
	drive_feed(&drive, stream.bytes, stream.length, 1000);
	stream_free(&stream);
	ok(says(&drive, NO_VARIABLES) && says(&drive, "export A="),
	   "a command's are in its text, as everywhere");
	drive_end(&drive);
}

static void
labels(void)
{
	static const SbxPair own[] = {{SBX_LABEL_ID, NAME}, {SBX_LABEL_LAUNCH, "t"}};
	static const SbxPair reserved[] = {
	    {"sandbox.a", "b"}, {"microsandbox.a", "b"}, {"service.a", "b"}};
	SbxLaunchInput input = plain_input();
	Drive drive = begin(sbx_kind_microsandbox.find(micro_account(), own, 1));

	section("Microsandbox: a filter is JSON in the query, and some labels are its own");
	asks(&drive, "GET",
	     MICRO_API "?limit=100&labels=%7B%22sbx-router-id%22%3A%22" NAME "%22%7D",
	     "the filter");
	drive_end(&drive);
	drive = begin(sbx_kind_microsandbox.find(micro_account(), NULL, 0));
	asks(&drive, "GET", MICRO_API "?limit=100", "must not fire: no labels, no filter");
	drive_end(&drive);
	for (size_t i = 0; i < 3; i++)
	{
		input.labels = &reserved[i];
		input.label_count = 1;
		drive = launching(&input);
		fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: %s", reserved[i].key);
		drive_end(&drive);
	}
	input.labels = own;
	input.label_count = 2;
	drive = launching(&input);
	ok(sends(&drive, "\"sbx-router-id\":\"" NAME "\""),
	   "must not fire: the router's own");
	drive_end(&drive);
}

/* --- listings ----------------------------------------------------------------- */

static void
pages(void)
{
	Drive drive = begin(sbx_kind_microsandbox.usage(micro_account(), 1000));

	section("Microsandbox: pages of 20");
	asks(&drive, "GET", MICRO_API "?limit=100", "100 are asked for");
	drive_answer(&drive, 200,
	             "{\"data\":[{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":"
	             "{\"vcpus\":2,\"memory_mib\":512,\"disk_size_mib\":4096}}}],"
	             "\"has_more\":true,\"next_cursor\":\"n\"}");
	asks(&drive, "GET", MICRO_API "?limit=100&cursor=n", "must fire: and the rest");
	drive_answer(&drive, 200, "{\"data\":[],\"has_more\":false,\"next_cursor\":null}");
	ok(drive.op->succeeded && ((const SbxUsage *) drive.op->result)->sandboxes == 1,
	   "must not fire: the last one is the last");
	drive_end(&drive);
}

/* --- commands ----------------------------------------------------------------- */

static void
sockets(void)
{
	SbxUploadInput input = {.path = "/a", .bytes = "x", .length = 1};
	Drive drive = running("x");

	section("Microsandbox: commands and files go over a WebSocket, in frames of CBOR");
	asks(&drive, "GET", MICRO_AGENT, "a command");
	ok(drive.op->request.talk != NULL && says(&drive, "\x61v\x07\x61t\x71"
	                                                  "core.exec.request\x61p"),
	   "must fire: is said");
	drive_end(&drive);
	drive = begin(sbx_kind_microsandbox.upload(micro_account(), &micro_target, &input));
	asks(&drive, "GET", MICRO_AGENT, "a file");
	ok(drive.op->request.talk != NULL, "must fire: up");
	drive_end(&drive);
	drive =
	    begin(sbx_kind_microsandbox.download(micro_account(), &micro_target, "/a", 10));
	ok(drive.op->request.talk != NULL, "must fire: and down");
	drive_end(&drive);
	drive = begin(sbx_kind_microsandbox.get(micro_account(), &micro_target));
	ok(drive.op->request.talk == NULL, "must not fire: a look");
	drive_end(&drive);
}

static void
pipes(void)
{
	Drive drive = running("x");

	section("Microsandbox: standard input stays open");
	ok(says(&drive, END_OF_INPUT "data\x40"), "its end is said");
	drive_end(&drive);
	section("Microsandbox: who holds a pipe holds up the end");
	drive = running("x");
	feed(&drive, "core.exec.stdout", 0, "data", "a\001run-1:3\002");
	feed(&drive, "core.exec.stderr", 0, "data", "\001run-1:3\002");
	drive_answer(&drive, 101, "");
	ok(drive.op->succeeded && ((const SbxRunResult *) drive.op->result)->exit_code == 3,
	   "must fire: the marks on both streams are the end");
	drive_end(&drive);
	drive = running("x");
	feed(&drive, "core.exec.stdout", 0, "data", "\001run-1:3\002");
	drive_answer(&drive, 101, "");
	ok(!drive.op->succeeded, "must not fire: one of them is not");
	drive_end(&drive);
	section("Microsandbox: who leaves kills");
	drive = running("x");
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, false);
	asks(&drive, "GET", MICRO_AGENT, "what may be left is killed");
	drive_talk_printed(&drive, "", 0);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, UNKNOWN,
	      "must fire: what it did is not known");
	drive_end(&drive);
}

static void
directories(void)
{
	Drive drive = running("x");

	section(
	    "Microsandbox: the directory is / for its client, and the sandbox's for none");
	ok(says(&drive, NO_DIRECTORY), "none is said, and no user");
	drive_end(&drive);
	micro_account();
	account_text(&account, "workdir", "/app");
	account_text(&account, "user", "me");
	{
		SbxLaunchInput input = plain_input();

		drive = begin(sbx_kind_microsandbox.launch(&account.account, &input));
	}
	ok(sends(&drive, "\"workdir\":\"/app\"") && sends(&drive, "\"user\":\"me\""),
	   "the sandbox has them from its create");
	drive_end(&drive);
}

static void
stops_by_itself(void)
{
	SbxRunInput input = plain_run("x");
	Drive drive = begin(micro_run(&input));

	section("Microsandbox: a sandbox stops between two calls");
	drive_answer(&drive, 409, MICRO_ERROR("invalid_state_transition"));
	fails(&drive, SBX_PHASE_REMOTE, 409, "NOT_STARTED", UNKNOWN,
	      "must fire: there is no socket to it");
	ok(drive.want == SBX_OP_WANT_NOTHING, "and nothing to kill");
	drive_end(&drive);
	drive =
	    begin(sbx_kind_microsandbox.wait_ready(micro_account(), &micro_target, 1000));
	drive_answer(&drive, 200, MICRO_DTO("stopped"));
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_STARTED", UNKNOWN,
	      "must fire: nobody waits for it");
	drive_end(&drive);
	drive =
	    begin(sbx_kind_microsandbox.wait_ready(micro_account(), &micro_target, 1000));
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded, "must not fire: this one runs");
	drive_end(&drive);
}

static void
not_run(void)
{
	SbxRunInput input = plain_run("x");
	Drive drive = running("x");

	section("Microsandbox: what could not be started has no exit code");
	feed(&drive, "core.exec.failed", 1, NULL, NULL);
	drive_answer(&drive, 101, "");
	fails(&drive, SBX_PHASE_PROTOCOL, 0, "NOT_RUN", UNKNOWN,
	      "must fire: none is made up");
	drive_end(&drive);
	drive = begin(micro_run(&input));
	drive_talk_printed(&drive, "", 127);
	ok(drive.op->succeeded &&
	       ((const SbxRunResult *) drive.op->result)->exit_code == 127,
	   "must not fire: a command that ends so");
	drive_end(&drive);
}

/* --- deletions ------------------------------------------------------------------ */

static void
deletions(void)
{
	Drive drive = destroying(MICRO_ID, NAME, NULL);

	section("Microsandbox: there is no kill");
	asks(&drive, "DELETE", MICRO_SANDBOX, "one that runs is deleted as it is");
	drive_answer(&drive, 200, "{\"message\":\"sandbox destroyed\"}");
	ok(drive.op->succeeded, "must not fire: it need not be stopped");
	drive_end(&drive);
	drive = destroying(MICRO_ID, NAME, NULL);
	drive_answer(&drive, 409, MICRO_ERROR("invalid_state_transition"));
	asks(&drive, "POST", MICRO_SANDBOX "/stop", "must fire: unless it says so");
	drive_end(&drive);
}

static void
names_come_again(void)
{
	Drive drive = destroying(NULL, NAME, NULL);

	section("Microsandbox: names come again, UUIDs do not");
	asks(&drive, "GET", MICRO_API "/by-name/" NAME, "whose it is comes first");
	drive_answer(&drive, 200, MICRO_DTO("running"));
	asks(&drive, "DELETE", MICRO_SANDBOX, "must fire: ours, by its UUID");
	drive_end(&drive);
	drive = destroying(NULL, NAME, "another-launch");
	drive_answer(&drive, 200, MICRO_DTO("running"));
	ok(drive.op->succeeded &&
	       *(const SbxDestroyResult *) drive.op->result == SBX_DESTROY_WAS_GONE,
	   "must not fire: what another launch made");
	drive_end(&drive);
	drive = destroying(NULL, NAME, NULL);
	drive_answer(&drive, 200,
	             "{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME
	             "\",\"spec\":{\"labels\":{}}}");
	fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", UNKNOWN,
	      "must not fire: a stranger's");
	drive_end(&drive);
	drive = destroying(NAME, NULL, NULL);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, NONE, "must fire: a name is no id");
	drive_end(&drive);
}

void
test_microsandbox_traps(void)
{
	sockets();
	creates_are_200();
	queued();
	too_many();
	deletions();
	names_come_again();
	pipes();
	shapes();
	labels();
	pages();
	directories();
	stops_by_itself();
	same_statuses();
	names();
	not_run();
}
