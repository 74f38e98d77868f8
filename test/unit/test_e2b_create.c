/*
 * test_e2b_create.c
 *		Making an E2B sandbox: the request, and what each refusal proves.
 */
#include <stdio.h>

#include "unit.h"

static const SbxPair labels[] = {{"sbx-router-id", NAME}, {"team", "a b&c=d/\303\251"}};
static const SbxPair env[] = {{"A", "1"}};

static Drive
creating(void)
{
	SbxLaunchInput input = {.unique_name = NAME,
	                        .labels = labels,
	                        .label_count = 2,
	                        .env = env,
	                        .env_count = 1};
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.launch(e2b_account(), &input));
	return drive;
}

static void
request(void)
{
	Drive drive = creating();
	const SbxSandboxFacts *facts;

	section("E2B, create");
	asks(&drive, "POST", E2B_API "/v2/sandboxes", "create");
	is_secret_kept(&drive, "create");
	is_text(drive.op->request.body,
	        "{\"templateID\":\"base\",\"timeout\":300,\"metadata\":{\"sbx-router-id\":"
	        "\"" NAME "\",\"team\":\"a b&c=d/\303\251\"},\"envVars\":{\"A\":\"1\"}}",
	        "template, lifetime, labels, environment");
	ok(!drive.op->request.repeatable, "delivered at most once");
	drive_answer(&drive, 201,
	             "{\"sandboxID\":\"" E2B_ID "\",\"envdAccessToken\":\"t\"}");
	facts = drive.op->result;
	ok(drive.op->succeeded && facts->state == SBX_STATE_STARTED, "201: it runs");
	is_text(drive.op->sandbox_id, E2B_ID, "its id");
	drive_end(&drive);
}

typedef struct Refusal
{
	int status;
	const char *headers;
	const char *body;
	SbxAllocation allocation;
	const char *code;
} Refusal;

/* Each next to one that must not be taken for it. */
static const Refusal refusals[] = {
    {400, "", "{\"code\":400}", SBX_ALLOCATION_NONE, "BAD_REQUEST"},
    {408, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
    {401, "", "", SBX_ALLOCATION_NONE, "UNAUTHORIZED"},
    {402, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
    {403, "", "", SBX_ALLOCATION_NONE, "FORBIDDEN"},
    {404, "", "", SBX_ALLOCATION_NONE, "TEMPLATE_NOT_FOUND"},
    {409, "", "{\"error_code\":\"idempotency_in_progress\"}", SBX_ALLOCATION_UNKNOWN,
     NULL},
    {422, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
    {429, "Retry-After: 1\r\n", "", SBX_ALLOCATION_NONE, "RATE_LIMITED"},
    {429, "RateLimit-Reset: 1\r\n", "", SBX_ALLOCATION_NONE, "RATE_LIMITED"},
    {429, "X-Retry-After: 1\r\n", "", SBX_ALLOCATION_NONE, "CAPACITY"},
    {503, "", "{\"error_code\":\"sandbox_capacity_unavailable\"}", SBX_ALLOCATION_NONE,
     "CAPACITY"},
    {503, "", "{\"error_code\":\"sandbox_no_compatible_node\"}", SBX_ALLOCATION_NONE,
     "CAPACITY"},
    {503, "", "{\"error_code\":\"sandbox_capacity\"}", SBX_ALLOCATION_UNKNOWN, NULL},
    {503, "", "{\"message\":\"sandbox_capacity_unavailable\"}", SBX_ALLOCATION_UNKNOWN,
     NULL},
    {503, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
    {500, "", "{\"error_code\":\"sandbox_capacity_unavailable\"}",
     SBX_ALLOCATION_UNKNOWN, NULL},
    {500, "", "{\"error_code\":\"sandbox_create_failed\"}", SBX_ALLOCATION_UNKNOWN,
     NULL},
    {502, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
    {504, "", "{\"error_code\":\"sandbox_placement_timeout\"}", SBX_ALLOCATION_UNKNOWN,
     NULL},
    {302, "", "", SBX_ALLOCATION_UNKNOWN, NULL},
};

static void
refused(void)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		const Refusal *refusal = &refusals[i];
		Drive drive = creating();
		SbxHttpResponse response = {.status = refusal->status,
		                            .headers = strdup(refusal->headers),
		                            .body = strdup(refusal->body),
		                            .body_length = strlen(refusal->body),
		                            .request_sent = true};

		drive_response(&drive, response);
		fails(&drive, SBX_PHASE_REMOTE, refusal->status, refusal->code,
		      refusal->allocation, "%d %s%s", refusal->status, refusal->headers,
		      refusal->body);
		drive_end(&drive);
	}
}

/* Answers that name no sandbox, and no answers. */
static void
unclear(void)
{
	static const char *const bodies[] = {"",
	                                     "<html>",
	                                     "{}",
	                                     "{\"sandboxID\":\"\"}",
	                                     "{\"sandboxID\":7}",
	                                     "{\"sandboxID\":\"a/b\"}",
	                                     "{\"sandboxID\":\"A\"}",
	                                     "{\"sandboxID\":\"..\"}",
	                                     "{\"sandboxID\":\"a\",\"sandboxID\":\"b\"}"};
	Drive drive;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
	{
		drive = creating();
		drive_answer(&drive, 201, bodies[i]);
		ok(!drive.op->succeeded &&
		       drive.op->failure.allocation == SBX_ALLOCATION_UNKNOWN &&
		       drive.op->sandbox_id[0] == '\0',
		   "201 \"%s\": nobody knows", bodies[i]);
		drive_end(&drive);
	}
	drive = creating();
	drive_no_answer(&drive, SBX_PHASE_CONNECT, false, false);
	fails(&drive, SBX_PHASE_CONNECT, 0, NULL, SBX_ALLOCATION_NONE, "never sent");
	drive_end(&drive);
	drive = creating();
	drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
	fails(&drive, SBX_PHASE_RECEIVE, 0, NULL, SBX_ALLOCATION_UNKNOWN, "no answer");
	drive_end(&drive);
	drive = creating();
	drive_expire(&drive);
	ok(drive.op->failure.allocation == SBX_ALLOCATION_UNKNOWN, "the time is over");
	drive_end(&drive);
}

/* Each key and value is encoded twice, and the whole once more. */
static void
filter(void)
{
	static const SbxPair wanted[] = {{"app name", "a b&c=d/\303\251"}, {"k", "100%"}};
	Drive drive;

	drive_start(&drive, sbx_kind_e2b.find(e2b_account(), wanted, 2));
	asks(&drive, "GET",
	     E2B_API
	     "/v2/sandboxes?metadata=app%252520name%3Da%252520b%252526c%25253Dd%25252F"
	     "%2525C3%2525A9%26k%3D100%252525&state=running%2Cpaused&limit=100&order=asc",
	     "find: the recorded filter");
	drive_answer(&drive, 200, "[]");
	ok(drive.op->succeeded && ((SbxFindResult *) drive.op->result)->count == 0,
	   "find: none");
	drive_end(&drive);
}

void
test_e2b_create(void)
{
	request();
	refused();
	unclear();
	filter();
}
