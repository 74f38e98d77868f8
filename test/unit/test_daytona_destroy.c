/*
 * test_daytona_destroy.c
 *		Destroy: by id, by name, and what only a second look decides.
 */
#include "unit.h"

static SbxOp *
make_destroy(const char *id, const char *name)
{
	SbxTarget target = {.sandbox_id = id, .unique_name = name};

	return sbx_kind_daytona.destroy(account_reset(&account), &target, 60000);
}

/* A destroy whose delete is out. */
static Drive
deleting(void)
{
	Drive drive;

	drive_start(&drive, make_destroy(ID, NULL));
	return drive;
}

/* One whose delete got no clear answer: the second look is out. */
static Drive
checking(int status)
{
	Drive drive = deleting();

	if (status != 0)
		drive_answer(&drive, status, "");
	else
		drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	return drive;
}

static void
destroyed(const Drive *drive, SbxDestroyResult expected, const char *what)
{
	ok(drive->want == SBX_OP_WANT_NOTHING && drive->op->succeeded &&
	       *(SbxDestroyResult *) drive->op->result == expected,
	   "%s: %s", what, expected == SBX_DESTROY_DONE ? "done" : "was gone");
}

/* How many pauses until it gives up; -1 = it never does. */
static int
pauses_before_giving_up(Drive *drive, int status, bool sent)
{
	for (int pauses = 0; pauses < 100; pauses++)
	{
		while (drive->want == SBX_OP_WANT_HTTP)
		{
			if (status != 0)
				drive_answer(drive, status, "");
			else
				drive_no_answer(drive, SBX_PHASE_CONNECT, sent, false);
		}
		if (drive->want == SBX_OP_WANT_NOTHING)
			return pauses;
		drive_pause_over(drive);
	}
	return -1;
}

static void
giving_up(void)
{
	Drive drive = deleting();

	section("destroy: trouble");
	is_number(pauses_before_giving_up(&drive, 0, false), 3, "nobody there: soon");
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_UNKNOWN, "nobody there");
	drive_end(&drive);
	drive = deleting();
	is_number(pauses_before_giving_up(&drive, 503, true), 7, "failing: later");
	drive_end(&drive);
	drive = deleting();
	is_number(pauses_before_giving_up(&drive, 409, true), -1, "busy: never");
	drive_end(&drive);
	drive_start(&drive, make_destroy(NULL, NAME));
	is_number(pauses_before_giving_up(&drive, 404, true), -1, "not found yet: never");
	drive_end(&drive);
	drive_start(&drive, make_destroy(NULL, NAME));
	is_number(pauses_before_giving_up(&drive, 0, false), 3, "nobody to look up");
	drive_end(&drive);
}

static void
sent_twice(void)
{
	Drive drive = deleting();

	section("destroy: sent twice");
	drive_response(&drive, (SbxHttpResponse){.status = 404,
	                                         .body = strdup("{}"),
	                                         .body_length = 2,
	                                         .request_sent = true,
	                                         .resent = true});
	destroyed(&drive, SBX_DESTROY_DONE, "the first delivery did it");
	drive_end(&drive);
	drive = deleting();
	drive_response(&drive, (SbxHttpResponse){.status = 404,
	                                         .body = strdup("{}"),
	                                         .body_length = 2,
	                                         .request_sent = true});
	destroyed(&drive, SBX_DESTROY_WAS_GONE, "sent once");
	drive_end(&drive);

	drive = deleting();
	drive_response(&drive, (SbxHttpResponse){.failed_phase = SBX_PHASE_RECEIVE,
	                                         .request_sent = true,
	                                         .too_large = true});
	asks(&drive, "GET", SANDBOX, "an endless answer: look");
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_DONE, "an endless answer");
	drive_end(&drive);
}

static void
recorded_answers(void)
{
	static const struct
	{
		const char *name;
		int status;
	} rows[] = {{"destroy", 200}, {"destroy_gone", 404}, {"destroy_conflict", 409}};

	section("destroy, recorded");
	for (size_t i = 0; i < 3; i++)
	{
		const json_t *recorded = golden(rows[i].name);
		char *body = json_dumps(json_object_get(recorded, "answer"), 0);
		Drive drive = deleting();

		asks(&drive, sbx_json_string(recorded, "method"), SANDBOX, "request");
		ok(strstr(drive.op->request.url, sbx_json_string(recorded, "path")) != NULL,
		   "recorded path");
		ok(drive.op->request.repeatable && drive.op->request.body == NULL,
		   "repeatable");
		is_number(drive.op->request.timeout_ms, 10000, "one exchange is bounded");
		drive_answer(&drive, rows[i].status, body);
		if (i == 2)
			pauses(&drive, 200, "conflict: later again");
		else
			destroyed(&drive, i == 0 ? SBX_DESTROY_DONE : SBX_DESTROY_WAS_GONE,
			          rows[i].name);
		drive_end(&drive);
		free(body);
	}
}

static void
conflicts(void)
{
	static const int64_t expected[] = {200, 300, 450, 675, 1012, 1518, 2000, 2000};
	Drive drive = deleting();

	section("destroy: conflict");
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
	{
		drive_answer(&drive, 409, "{\"message\":\"Sandbox state change in progress\"}");
		pauses(&drive, expected[i], "pause %zu", i);
		drive_pause_over(&drive);
		asks(&drive, "DELETE", SANDBOX, "deleted again");
	}
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_WAS_GONE, "no delete of ours got through");
	drive_end(&drive);

	drive = deleting();
	drive_answer(&drive, 409, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 409, "BUSY", SBX_ALLOCATION_UNKNOWN, "to the end");
	ok(drive.op->failure.timed_out, "of time");
	drive_end(&drive);
}

static void
second_looks(void)
{
	static const int statuses[] = {0, 500, 502, 408, 429};
	Drive drive;

	section("destroy: second look");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
	{
		bool throttled = statuses[i] == 429;

		drive = checking(statuses[i]);
		asks(&drive, "GET", SANDBOX, "after %d", statuses[i]);
		drive_answer(&drive, 404, "{}");
		destroyed(&drive, throttled ? SBX_DESTROY_WAS_GONE : SBX_DESTROY_DONE, "404");
		drive_end(&drive);
		drive = checking(statuses[i]);
		drive_answer(&drive, 200, DTO("destroying"));
		destroyed(&drive, SBX_DESTROY_DONE, "destroying");
		drive_end(&drive);
		drive = checking(statuses[i]);
		drive_answer(&drive, 200, DTO("started"));
		pauses(&drive, 200, "still there");
		drive_pause_over(&drive);
		asks(&drive, "DELETE", SANDBOX, "deleted again");
		drive_answer(&drive, 404, "{}");
		destroyed(&drive, throttled ? SBX_DESTROY_WAS_GONE : SBX_DESTROY_DONE,
		          "404 of the second delete");
		drive_end(&drive);
	}

	drive = deleting();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_WAS_GONE, "the delete never left");
	drive_end(&drive);

	drive = checking(500);
	drive_answer(&drive, 503, "");
	pauses(&drive, 200, "no clear answer either");
	drive_pause_over(&drive);
	asks(&drive, "DELETE", SANDBOX, "deleted again");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 503, NULL, SBX_ALLOCATION_UNKNOWN,
	      "time over: the trouble before is told, not that it was cut short");
	ok(drive.op->failure.timed_out && drive.op->failure.request_sent, "flags");
	drive_end(&drive);

	drive = checking(500);
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN, "401");
	drive_end(&drive);
	drive = checking(500);
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "web page");
	drive_end(&drive);

	drive = deleting();
	drive_answer(&drive, 200, "<html>");
	asks(&drive, "GET", SANDBOX, "a web page confirms nothing");
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN,
	      "a base URL without /api is no success");
	drive_end(&drive);
	drive = deleting();
	drive_answer(&drive, 204, "");
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_DONE, "success without a description");
	drive_end(&drive);
}

static void
refused(int status, const char *body, const char *code)
{
	Drive drive = deleting();

	drive_answer(&drive, status, body);
	fails(&drive, SBX_PHASE_REMOTE, status, code, SBX_ALLOCATION_UNKNOWN, "%d %s",
	      status, body);
	drive_end(&drive);
}

static void
refusals(void)
{
	Drive drive;

	section("destroy: refused");
	refused(400, "{\"message\":\"Sandbox has active fork children\"}", "HAS_FORKS");
	refused(400, "{\"message\":\"other\"}", NULL);
	refused(401, "{}", "UNAUTHORIZED");
	refused(403, "{}", "FORBIDDEN");
	refused(302, "", NULL);

	drive_start(&drive, make_destroy("a/../b", NULL));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "an id that is a path");
	drive_end(&drive);
	drive_start(&drive, make_destroy(NULL, "a b"));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "a name that is none");
	drive_end(&drive);
	drive_start(&drive, make_destroy(NULL, NULL));
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE, "no target");
	drive_end(&drive);

	account_reset(&account);
	account.credentials[0] = "a\nb";
	{
		SbxTarget target = {.sandbox_id = ID};

		drive_start(&drive, sbx_kind_daytona.destroy(&account.account, &target, 0));
	}
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
	      "line break in the key");
	is_number(drive.op->timeout_ms, 60000, "default time");
	drive_end(&drive);

	drive.op = make_destroy(ID, NULL);
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_UNKNOWN,
	      "no time at all: says nothing about the sandbox");
	drive_end(&drive);
}

/* --- by name ------------------------------------------------------------ */

static Drive
looking(void)
{
	Drive drive;

	drive_start(&drive, make_destroy(NULL, NAME));
	return drive;
}

static void
by_name(void)
{
	Drive drive = looking();

	section("destroy by name");
	asks(&drive, "GET", API "/sandbox/" NAME, "looked up first");
	drive_answer(&drive, 404, "{}");
	pauses(&drive, 200, "not there yet: a lost create may be under way");
	drive_pause_over(&drive);
	asks(&drive, "GET", API "/sandbox/" NAME, "looked up again");
	drive_answer(&drive, 503, "");
	pauses(&drive, 300, "no answer");
	drive_pause_over(&drive);
	drive_answer(&drive, 200, DTO("creating"));
	asks(&drive, "DELETE", SANDBOX, "there it is: deleted by id");
	is_text(drive.op->sandbox_id, ID, "the id is told");
	drive_answer(&drive, 200, DTO("destroying"));
	destroyed(&drive, SBX_DESTROY_DONE, "found");
	drive_end(&drive);

	drive = looking();
	for (int i = 0; i < 20; i++)
	{
		drive_answer(&drive, 404, "{}");
		drive_pause_over(&drive);
	}
	drive_answer(&drive, 404, "{}");
	drive_expire(&drive);
	fails(&drive, SBX_PHASE_REMOTE, 404, "NOT_FOUND_YET", SBX_ALLOCATION_UNKNOWN,
	      "never there: absence is not proven");
	ok(drive.op->failure.timed_out, "and time is over");
	drive_end(&drive);

	drive = looking();
	drive_answer(&drive, 200, DTO("destroying"));
	destroyed(&drive, SBX_DESTROY_DONE, "being destroyed already");
	drive_end(&drive);
	drive = looking();
	drive_answer(&drive, 200, DTO("started"));
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_WAS_GONE, "gone in between");
	drive_end(&drive);
}

static void
not_ours(void)
{
	static const char *const bodies[] = {
	    "{\"id\":\"" ID "\"}",
	    "{\"id\":\"" ID "\",\"labels\":{}}",
	    "{\"id\":\"" ID "\",\"labels\":[]}",
	    "{\"id\":\"" ID "\",\"labels\":{\"sbx-router-id\":\"" NAME "0\"}}",
	    "{\"id\":\"" ID "\",\"labels\":{\"sbx-router-id\":5}}",
	    "{\"id\":\"" ID "\",\"labels\":{\"SBX-router-id\":\"" NAME "\"}}",
	    "{\"id\":\"" ID "\",\"state\":\"destroying\"}",
	};
	Drive drive;

	section("destroy by name: not ours");
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		drive = looking();
		drive_answer(&drive, 200, bodies[i]);
		fails(&drive, SBX_PHASE_REMOTE, 200, "NOT_OURS", SBX_ALLOCATION_UNKNOWN,
		      "%s is left alone", bodies[i]);
		is_text(drive.op->sandbox_id, "", "its id is not taken");
		drive_end(&drive);
	}
	drive = looking();
	drive_answer(&drive, 200, "<html>");
	fails(&drive, SBX_PHASE_PROTOCOL, 200, NULL, SBX_ALLOCATION_UNKNOWN, "web page");
	drive_end(&drive);
	drive = looking();
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN, "401");
	drive_end(&drive);
}

/* A name can be used again; the launch's own token tells who did. */
static void
another_launch(void)
{
#define TOKEN(value)                                                                   \
	"{\"id\":\"" ID "\",\"state\":\"started\",\"labels\":{\"sbx-router-id\":\"" NAME   \
	"\"" value "}}"
	static const struct
	{
		const char *token;
		const char *body;
		bool ours;
	} rows[] = {{NULL, TOKEN(""), true},
	            {"t1", TOKEN(",\"sbx-router-launch\":\"t1\""), true},
	            {"t1", TOKEN(",\"sbx-router-launch\":\"t2\""), false},
	            {"t1", TOKEN(""), false},
	            {NULL, TOKEN(",\"sbx-router-launch\":\"t1\""), false}};

	section("destroy by name: another launch");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
	{
		SbxTarget target = {.unique_name = NAME, .launch_token = rows[i].token};
		Drive drive;

		drive_start(&drive,
		            sbx_kind_daytona.destroy(account_reset(&account), &target, 60000));
		drive_answer(&drive, 200, rows[i].body);
		if (rows[i].ours)
			asks(&drive, "DELETE", SANDBOX, "%zu: deleted", i);
		else
		{
			destroyed(&drive, SBX_DESTROY_WAS_GONE, "left alone");
			is_text(drive.op->sandbox_id, "", "%zu: its id is not taken", i);
		}
		drive_end(&drive);
	}
}

#define OTHER "other-1"

/* An id that is unknown there: it may have been started under another one. */
static void
moved(void)
{
	static const char *const strangers[] = {
	    "{\"id\":\"" OTHER "\",\"state\":\"started\",\"labels\":{}}",
	    "{\"id\":\"" OTHER "\",\"state\":\"started\",\"labels\":{\"sbx-router-id\":"
	    "\"" NAME "\",\"sbx-router-launch\":\"t\"}}",
	    "{\"id\":\"" OTHER "\",\"state\":\"destroyed\",\"labels\":{\"sbx-router-id\":"
	    "\"" NAME "\"}}"};
	Drive drive;

	section("destroy: started under another id");
	drive_start(&drive, make_destroy(ID, NAME));
	drive_answer(&drive, 404, "{}");
	asks(&drive, "GET", API "/sandbox/" NAME, "its name is looked for");
	drive_answer(&drive, 503, "");
	pauses(&drive, 200, "until it is known");
	drive_pause_over(&drive);
	drive_answer(&drive, 200,
	             "{\"id\":\"" OTHER "\",\"state\":\"started\",\"labels\":{"
	             "\"sbx-router-id\":\"" NAME "\"}}");
	asks(&drive, "DELETE", API "/sandbox/" OTHER, "that one is deleted");
	drive_answer(&drive, 200, "{\"id\":\"" OTHER "\",\"state\":\"destroying\"}");
	destroyed(&drive, SBX_DESTROY_DONE, "moved");
	drive_end(&drive);
	drive_start(&drive, make_destroy(ID, NAME));
	drive_answer(&drive, 404, "{}");
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_WAS_GONE, "nor its name");
	drive_end(&drive);

	/* A delete whose answer was lost proves nothing about the other one. */
	drive_start(&drive, make_destroy(ID, NAME));
	drive_answer(&drive, 502, "");
	drive_answer(&drive, 404, "{}");
	asks(&drive, "GET", API "/sandbox/" NAME, "its name is looked for here, too");
	drive_answer(&drive, 404, "{}");
	destroyed(&drive, SBX_DESTROY_DONE, "the delete did it");
	drive_end(&drive);
	for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++)
	{
		drive_start(&drive, make_destroy(ID, NAME));
		drive_answer(&drive, 404, "{}");
		drive_answer(&drive, 200, strangers[i]);
		destroyed(&drive, SBX_DESTROY_WAS_GONE, "another's is left alone");
		drive_end(&drive);
	}
	drive_start(&drive, make_destroy(ID, NAME));
	drive_answer(&drive, 404, "{}");
	drive_answer(&drive, 401, "{}");
	fails(&drive, SBX_PHASE_REMOTE, 401, "UNAUTHORIZED", SBX_ALLOCATION_UNKNOWN,
	      "what is not known is not called gone");
	drive_end(&drive);
}

/* Prepared before the launch, used in an abort callback. */
static void
prepared(void)
{
	SbxOp *op = make_destroy(NULL, NAME);
	Drive drive;
	const void *block = op->arena.blocks;

	section("destroy prepared early");
	memcpy(op->sandbox_id, ID, sizeof(ID));
	drive_start(&drive, op);
	asks(&drive, "DELETE", SANDBOX, "an id written later wins over the name");
	for (int i = 0; i < 200; i++)
	{
		drive_answer(&drive, i % 2 ? 409 : 500, "{}");
		if (i % 2 == 0)
			drive_answer(&drive, 500, "");
		drive_pause_over(&drive);
	}
	ok(op->arena.blocks == block, "however long it takes, one block is enough");
	drive_answer(&drive, 200, DTO("destroying"));
	destroyed(&drive, SBX_DESTROY_DONE, "at last");
	drive_end(&drive);

	drive = looking();
	block = drive.op->arena.blocks;
	for (int i = 0; i < 200; i++)
	{
		drive_answer(&drive, 404, "{}");
		drive_pause_over(&drive);
	}
	ok(drive.op->arena.blocks == block, "also when looking up");
	drive_end(&drive);

	op = make_destroy(NULL, NAME);
	memcpy(op->sandbox_id, "a/b", 4);
	drive_start(&drive, op);
	fails(&drive, SBX_PHASE_NONE, 0, NULL, SBX_ALLOCATION_NONE,
	      "an id written later is checked as well");
	drive_end(&drive);
}

void
test_daytona_destroy(void)
{
	recorded_answers();
	giving_up();
	sent_twice();
	conflicts();
	second_looks();
	refusals();
	by_name();
	not_ours();
	another_launch();
	prepared();
	moved();
}
