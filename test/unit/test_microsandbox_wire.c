/*
 * test_microsandbox_wire.c
 *		Our requests and frames beside those of Microsandbox's own client.
 *
 * Each recording of data/microsandbox.json is either made again and compared in every part,
 * or listed as nothing that we do.  Where we differ on purpose, the row says what we send and
 * why; one that no longer differs fails.  What was answered then is answered here.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/websocket.h"
#include "providers/microsandbox_frame.h"
#include "unit.h"

#define HOST    "https://api.microsandbox.dev"
#define UNKNOWN SBX_ALLOCATION_UNKNOWN
#define RUN     "run script: name lookup, then agent socket"

static Drive
begin(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	return drive;
}

/* --- what is sent --------------------------------------------------------------- */

static Drive
send_create(void)
{
	static const SbxPair labels[] = {{"requestedBy", "sbx"}, {"sbx.id", "abc"}};
	static const SbxPair env[] = {{"B", "x y"}, {"A", "1"}};
	SbxLaunchInput input = {.unique_name = "demo-1.x_Y",
	                        .labels = labels,
	                        .label_count = 2,
	                        .env = env,
	                        .env_count = 2};

	account_text(&account, "image", "python:3.12");
	account_integer(&account, "vcpus", 2);
	account_integer(&account, "memoryMib", 1024);
	account_text(&account, "workdir", "/app");
	account_integer(&account, "maxDurationSeconds", 3600);
	account_integer(&account, "idleTimeoutSeconds", 600);
	return begin(sbx_kind_microsandbox.launch(&account.account, &input));
}

static Drive
send_create_detached(void)
{
	static const SbxPair label = {"requestedBy", "sbx"};
	SbxLaunchInput input = {
	    .unique_name = "demo-2", .labels = &label, .label_count = 1, .detached = true};

	return begin(sbx_kind_microsandbox.launch(&account.account, &input));
}

static Drive
send_create_plain(const char *name)
{
	SbxLaunchInput input = {.unique_name = name};

	return begin(sbx_kind_microsandbox.launch(&account.account, &input));
}

static Drive
send_create_taken(void)
{
	return send_create_plain("demo-2");
}

static Drive
send_create_e1(void)
{
	return send_create_plain("e1");
}

static Drive
send_create_e2(void)
{
	return send_create_plain("e2");
}

static Drive
send_create_e3(void)
{
	return send_create_plain("e3");
}

static Drive
send_list(void)
{
	return begin(sbx_kind_microsandbox.find(&account.account, NULL, 0));
}

static Drive
send_list_labels(void)
{
	static const SbxPair label = {"requestedBy", "sbx"};

	return begin(sbx_kind_microsandbox.find(&account.account, &label, 1));
}

static Drive
send_list_next(void)
{
	Drive drive = send_list_labels();

	drive_micro(&drive, "list by labels, page 1");
	return drive;
}

static Drive
send_look_up(const char *name)
{
	SbxTarget target = {.unique_name = name};

	return begin(sbx_kind_microsandbox.destroy(&account.account, &target, 60000));
}

static Drive
send_look_up_demo(void)
{
	return send_look_up("demo-1.x_Y");
}

static Drive
send_look_up_missing(void)
{
	return send_look_up("nope");
}

static Drive
send_run(void)
{
	SbxRunInput input = plain_run("echo hi; echo e >&2; exit 3");

	return begin(
	    sbx_kind_microsandbox.run_script(&account.account, &micro_target, &input));
}

static Drive
send_run_stopped(void)
{
	static const SbxTarget target = {.sandbox_id =
	                                     "00000000-0000-4000-8000-000000000002"};
	SbxRunInput input = plain_run("x");

	return begin(sbx_kind_microsandbox.run_script(&account.account, &target, &input));
}

static Drive
send_upload(void)
{
	SbxUploadInput input = {
	    .path = "/app/data/a.txt", .bytes = "hello world", .length = 11};

	return begin(sbx_kind_microsandbox.upload(&account.account, &micro_target, &input));
}

static Drive
send_download(void)
{
	return begin(sbx_kind_microsandbox.download(&account.account, &micro_target,
	                                            "/app/data/a.txt", 100));
}

static Drive
send_stop_look(void)
{
	return begin(sbx_kind_microsandbox.stop(&account.account, &micro_target, 1000));
}

static Drive
send_stop(void)
{
	Drive drive = send_stop_look();

	drive_micro(&drive, "stop: refresh twice, request, poll every 100 ms (1 of 4)");
	return drive;
}

static Drive
send_stop_poll(void)
{
	Drive drive = send_stop();

	drive_micro(&drive, "stop: refresh twice, request, poll every 100 ms (3 of 4)");
	drive_pause_over(&drive);
	return drive;
}

static Drive
send_start(void)
{
	return begin(sbx_kind_microsandbox.start(&account.account, &micro_target, 1000));
}

static Drive
send_remove(void)
{
	return begin(sbx_kind_microsandbox.destroy(&account.account, &micro_target, 60000));
}

/* --- what is said over a socket --------------------------------------------------- */

static const SbxMessage *
first_said(const Drive *drive)
{
	return drive->op->request.said;
}

/* The greeting that was recorded once, and what else the agent said; still open. */
static void
hear(Drive *drive, const char *name, size_t piece)
{
	Stream greeting = micro_recorded_frames(RUN, "server");
	Stream rest = micro_recorded_frames(name, "server");

	/* The range, and the first frame with its length. */
	greeting.length = 8 + 4 + 0x67;
	drive_feed(drive, greeting.bytes, greeting.length, piece);
	drive_feed(drive, rest.bytes, rest.length, piece);
	stream_free(&greeting);
	stream_free(&rest);
}

/* A piece of a frame that was recorded, from or to some bytes. */
static const char *
place(const SbxCborItem *payload, const char *bytes)
{
	return memmem(payload->bytes, payload->length, bytes, strlen(bytes));
}

static bool
payload_of(const char *frame, size_t length, SbxCborItem *payload)
{
	SbxCborItem body;

	return length > 9 && sbx_cbor_read(frame + 9, length - 9, &body) &&
	       sbx_cbor_find(&body, "p", payload) && payload->type == SBX_CBOR_BYTES &&
	       payload->bytes + payload->length == frame + length;
}

/*
 * Byte for byte, but for the text of the shell, the variables, which are in that text, and
 * the directory, which is the sandbox's own.
 */
static void
is_request(const Stream *theirs, const SbxMessage *ours)
{
	static const char none[] = "\x63"
	                           "env\x80\x63"
	                           "cwd\xf6";
	SbxCborItem recorded;
	SbxCborItem sent;
	SbxCborItem text;
	const char *middle;
	const char *tail;
	size_t envelope;
	size_t head_length;
	size_t tail_length;

	if (!ok(payload_of(theirs->bytes, theirs->length, &recorded), "it was recorded") ||
	    !ok(ours != NULL && payload_of(ours->bytes, ours->length, &sent),
	        "a frame of one payload"))
		return;
	is_number((unsigned char) ours->bytes[2] << 8 | (unsigned char) ours->bytes[3],
	          (int64_t) ours->length - 4, "its length");
	envelope = (size_t) ((char *) memmem(theirs->bytes, theirs->length, "\x61p", 2) -
	                     theirs->bytes) +
	           2;
	ok(ours->length > envelope &&
	       memcmp(ours->bytes + 4, theirs->bytes + 4, envelope - 4) == 0,
	   "id, flags, version and type as recorded");
	head_length = (size_t) (place(&recorded, "\x62-c") - recorded.bytes) + 3;
	tail = place(&recorded, "\x64user");
	tail_length = (size_t) (recorded.bytes + recorded.length - tail);
	ok(sent.length > head_length &&
	       memcmp(sent.bytes, recorded.bytes, head_length) == 0,
	   "the shell as recorded");
	ok(sent.length > tail_length &&
	       memcmp(sent.bytes + sent.length - tail_length, tail, tail_length) == 0,
	   "user, terminal and limits as recorded");
	middle = place(&sent, none);
	ok(middle != NULL &&
	       middle + strlen(none) == sent.bytes + sent.length - tail_length,
	   "no variables, and no directory");
	ok(middle != NULL &&
	       sbx_cbor_read(sent.bytes + head_length,
	                     (size_t) (middle - sent.bytes) - head_length, &text) &&
	       text.type == SBX_CBOR_TEXT &&
	       memmem(text.bytes, text.length, "echo hi; echo e >&2; exit 3", 27) != NULL,
	   "between them one text with the command");
}

static void
talk_run(Drive *drive)
{
	Stream theirs = micro_recorded_frames(RUN, "client");
	Stream end = micro_hex("000000251000000000a361760761746f636f72652e657865632e737464"
	                       "696e617047a1646461746140");
	Stream server = micro_recorded_frames(RUN, "server");
	const SbxRunResult *result;

	drive_feed(drive, server.bytes, 8 + 4 + 0x67, 1);
	is_request(&theirs, first_said(drive));
	ok(first_said(drive) != NULL && first_said(drive)->next != NULL &&
	       first_said(drive)->next->next == NULL &&
	       first_said(drive)->next->length == end.length &&
	       memcmp(first_said(drive)->next->bytes, end.bytes, end.length) == 0,
	   "and then, which it does not do, the end of the input");
	drive_feed(drive, server.bytes + 8 + 4 + 0x67, server.length - 8 - 4 - 0x67, 7);
	drive_answer(drive, 101, "");
	result = drive->op->result;
	ok(drive->op->succeeded && result->exit_code == 3 && result->has_exit_code,
	   "the exit code");
	ok(drive->op->succeeded && result->stdout_length == 28 &&
	       memcmp(result->stdout_text, "out of echo hi; echo e >&2;\n", 28) == 0 &&
	       result->stderr_length == 4 && memcmp(result->stderr_text, "err\n", 4) == 0,
	   "both streams");
	stream_free(&theirs);
	stream_free(&end);
	stream_free(&server);
}

/* The agent kills what it started for a socket that is closed. */
static void
talk_time_over(Drive *drive)
{
	const SbxMessage *last;
	Stream started = micro_recorded_frames(RUN, "server");

	drive_feed(drive, started.bytes, 8 + 4 + 0x67, 1000);
	last = first_said(drive)->next;
	ok(!drive->op->request.talk(drive->op, NULL, 0) && last->next == NULL,
	   "no signal is said: the socket is closed");
	stream_free(&started);
	drive_answer(drive, 101, "");
	ok(drive->want == SBX_OP_WANT_HTTP, "and what it started is killed over another");
	hear(drive, "run script, timeout 300 ms", 11);
	drive_answer(drive, 101, "");
	fails(drive, SBX_PHASE_RECEIVE, 0, "TIMEOUT", UNKNOWN, "which is confirmed");
}

static void
talk_not_run(Drive *drive)
{
	hear(drive, "run script, program missing", 13);
	drive_answer(drive, 101, "");
	fails(drive, SBX_PHASE_PROTOCOL, 0, "NOT_RUN", UNKNOWN, "it did not run");
}

/* --- the rows ------------------------------------------------------------------- */

#define ONE      "/v1/sandboxes/00000000-0000-4000-8000-000000000001"
#define CREATE   "/v1/sandboxes?start=true"
#define AT_ONCE  "who waits for the answer knows no id meanwhile"
#define FILTER   "labels=%7B%22requestedBy%22%3A%22sbx%22%7D"
#define LARGE    "large pages"
#define BY_UUID  "names are used again, UUIDs are not"
#define NO_FILES "a shell moves files: the agent's errors name no reasons"

static const struct
{
	const char *recording;
	Drive (*send)(void); /* NULL = nothing that we do */
	const char *path;    /* ours, or NULL = as recorded */
	const char *why;
	const char *without; /* a member of "network" that we do not send */

	/* What becomes of the recorded answer: "done", "asks", "waits", or a code. */
	const char *end;

	void (*talk)(Drive *drive); /* compares and plays the frames */
	const char *no_frames;      /* or why they are none of ours */
} rows[] = {
    {"create, every option the router uses", send_create, CREATE, AT_ONCE, NULL, "done",
     NULL, NULL},
    {"create, detached(true): the same request", send_create_detached, CREATE, AT_ONCE,
     NULL, "done", NULL, NULL},
    {"create, name taken", send_create_taken, CREATE, AT_ONCE, NULL, "NAME_CONFLICT",
     NULL, NULL},
    {"create, bad key", send_create_e1, CREATE, AT_ONCE, NULL, "UNAUTHORIZED", NULL,
     NULL},
    {"create, readiness-wait capacity exhausted", send_create_e1, CREATE, AT_ONCE, NULL,
     "RATE_LIMITED", NULL, NULL},
    {"create, orchestrator unreachable", send_create_e1, CREATE, AT_ONCE, NULL,
     "no code", NULL, NULL},
    {"create, wait budget spent while queued", send_create_e2, CREATE, AT_ONCE, NULL,
     "asks", NULL, NULL},
    {"create, failed to start", send_create_e3, CREATE, AT_ONCE, NULL, "SANDBOX_FAILED",
     NULL, NULL},
    {"create, minimal (0.6.18)", send_create_detached, CREATE, AT_ONCE, "strict",
     "done", NULL, NULL},

    {"list by labels, page 1", send_list_labels, "/v1/sandboxes?limit=100&" FILTER,
     LARGE, NULL, "asks", NULL, NULL},
    {"list by labels, page 2", send_list_next,
     "/v1/sandboxes?limit=100&" FILTER "&cursor=MQ%3D%3D", LARGE, NULL, "done", NULL,
     NULL},
    {"list, no labels, limit 100", send_list, NULL, NULL, NULL, "done", NULL, NULL},
    {"list, defaults", send_list, "/v1/sandboxes?limit=100", LARGE, NULL, "done", NULL,
     NULL},
    {"get by name", send_look_up_demo, NULL, NULL, NULL, "NOT_OURS", NULL, NULL},
    {"get by name, missing", send_look_up_missing, NULL, NULL, NULL, "waits", NULL,
     NULL},

    {RUN, send_run, NULL, NULL, NULL, NULL, talk_run, NULL},
    {"run script, timeout 300 ms", send_run, NULL, NULL, NULL, NULL, talk_time_over,
     NULL},
    {"run script, program missing", send_run, NULL, NULL, NULL, NULL, talk_not_run,
     NULL},
    {"agent socket refused before the upgrade", send_run_stopped, NULL, NULL, NULL,
     "NOT_STARTED", NULL, NULL},
    {"upload file", send_upload, NULL, NULL, NULL, NULL, NULL, NO_FILES},
    {"download file", send_download, NULL, NULL, NULL, NULL, NULL, NO_FILES},

    {"stop: refresh twice, request, poll every 100 ms (1 of 4)", send_stop_look, ONE,
     BY_UUID, NULL, "asks", NULL, NULL},
    {"stop: refresh twice, request, poll every 100 ms (3 of 4)", send_stop, ONE "/stop",
     BY_UUID, NULL, "waits", NULL, NULL},
    {"stop: refresh twice, request, poll every 100 ms (4 of 4)", send_stop_poll, ONE,
     BY_UUID, NULL, "done", NULL, NULL},
    {"start (2 of 2)", send_start, ONE "/start", BY_UUID, NULL, "asks", NULL, NULL},
    {"remove", send_remove, ONE, BY_UUID, NULL, "done", NULL, NULL},
    {"remove, already gone", send_remove, ONE, BY_UUID, NULL, "done", NULL, NULL},
    {"stop (0.6.16 and later: by id)", send_stop, NULL, NULL, NULL, "waits", NULL,
     NULL},
    {"start (0.6.16 and later: by id) (2 of 2)", send_start, ONE "/start", AT_ONCE,
     NULL, "asks", NULL, NULL},
    {"remove (0.6.16 and later: by id)", send_remove, NULL, NULL, NULL, "done", NULL,
     NULL},
    {"remove, already gone (0.6.16 and later)", send_remove, NULL, NULL, NULL, "done",
     NULL, NULL},

    {"mkdir", NULL, NULL, "the upload's shell makes the directories", NULL, NULL, NULL,
     NO_FILES},
    {"stat, missing", NULL, NULL, "there is no such operation", NULL, NULL, NULL,
     NO_FILES},
    {"kill on the cloud backend: two reads, no write (1 of 2)", NULL, NULL,
     "there is no kill: what is not wanted is deleted", NULL, NULL, NULL, NULL},
    {"kill on the cloud backend: two reads, no write (2 of 2)", NULL, NULL,
     "there is no kill: what is not wanted is deleted", NULL, NULL, NULL, NULL},
    {"stop: refresh twice, request, poll every 100 ms (2 of 4)", NULL, NULL,
     "one look is enough", NULL, NULL, NULL, NULL},
    {"start (1 of 2)", NULL, NULL, "a start tells by itself what is not allowed", NULL,
     NULL, NULL, NULL},
    {"start (0.6.16 and later: by id) (1 of 2)", NULL, NULL,
     "a start tells by itself what is not allowed", NULL, NULL, NULL, NULL},
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* --- comparing -------------------------------------------------------------------- */

static void
compare_path(size_t row, const char *url, const char *recorded)
{
	const char *name = rows[row].recording;

	if (!ok(strncmp(url, HOST "/", strlen(HOST "/")) == 0, "%s: host", name))
		return;
	is_text(url + strlen(HOST), rows[row].path != NULL ? rows[row].path : recorded,
	        "%s: path and query", name);
	if (rows[row].path != NULL)
		ok(strcmp(rows[row].path, recorded) != 0, "%s: differ, because %s", name,
		   rows[row].why);
}

static void
compare_body(size_t row, const SbxHttpRequest *request, const json_t *recorded)
{
	json_t *theirs = json_deep_copy(recorded);
	json_t *ours = request->body == NULL
	                   ? NULL
	                   : sbx_json_parse(request->body, request->body_length, false);

	if (rows[row].without != NULL)
		is_number(
		    json_object_del(json_object_get(theirs, "network"), rows[row].without), 0,
		    "%s: has \"%s\", which only newer clients send", rows[row].recording,
		    rows[row].without);
	ok((theirs == NULL && request->body == NULL) || json_equal(ours, theirs),
	   "%s: body %s", rows[row].recording,
	   request->body != NULL ? request->body : "(none)");
	json_decref(theirs);
	json_decref(ours);
}

static bool
nothing(void *owner, const char *bytes, size_t length)
{
	(void) owner;
	(void) bytes;
	return length > 0;
}

static bool
zeros(void *owner, unsigned char *bytes, size_t length)
{
	(void) owner;
	memset(bytes, 0, length);
	return true;
}

/* The lines of what opens a socket come from below the adapter. */
static void
compare_upgrade(const char *name, const SbxOp *op, const json_t *headers)
{
	static const SbxWebSocketEvents events = {.take = nothing, .secret_bytes = zeros};
	SbxWebSocket *socket = sbx_websocket_create(&events, NULL);
	const char *header;
	const char *bytes = NULL;
	char *head = NULL;
	size_t length = 0;
	json_t *value;

	if (socket != NULL && sbx_websocket_ask(socket, op->request.url, ""))
		bytes = sbx_websocket_pending(socket, &length);
	if (bytes != NULL)
		head = strndup(bytes, length);
	json_object_foreach ((json_t *) headers, header, value)
	{
		char line[200];

		if (strcmp(header, "authorization") == 0)
			continue;
		snprintf(line, sizeof(line), "\r\n%s: %s", header, json_string_value(value));
		if (strcmp(header, "sec-websocket-key") == 0)
			strcpy(strchr(line, '<'), "AAAAAAAAAAAAAAAAAAAAAA==");
		ok(head != NULL && strcasestr(head, line) != NULL, "%s: %s", name, line + 2);
	}
	free(head);
	sbx_websocket_free(socket);
}

static void
compare_headers(const char *name, const SbxOp *op, const json_t *headers)
{
	is_text(sent_header(op, "authorization"), sbx_json_string(headers, "authorization"),
	        "%s: key", name);
	is_text(sent_header(op, "content-type"), sbx_json_string(headers, "content-type"),
	        "%s: media type", name);
	is_text(sent_header(op, "user-agent"), "sbx_router/1.0", "%s: says who we are",
	        name);
	is_number(op->request.talk != NULL, sbx_json_string(headers, "upgrade") != NULL,
	          "%s: becomes a socket where it did", name);
	if (op->request.talk != NULL)
		compare_upgrade(name, op, headers);
	else
		is_text(sent_header(op, "accept"), "application/json",
		        "%s: wants what it can read", name);
}

static const char *
end_of(const Drive *drive)
{
	const char *code = drive->op->failure.provider_code;

	switch (drive->want)
	{
		case SBX_OP_WANT_HTTP:
			return "asks";
		case SBX_OP_WANT_NOTHING:
			break;
		default:
			return "waits";
	}
	if (drive->op->succeeded)
		return "done";
	return code != NULL ? code : "no code";
}

static void
compare(size_t row, const json_t *recorded)
{
	const char *name = rows[row].recording;
	const SbxHttpRequest *request;
	Drive drive;

	micro_account();
	account.credentials[0] = "<credential>";
	account_text(&account, "image", "alpine");
	drive = rows[row].send();
	request = &drive.op->request;
	if (!ok(drive.want == SBX_OP_WANT_HTTP, "%s: is sent", name))
		return drive_end(&drive);
	is_text(request->method, sbx_json_string(recorded, "method"), "%s: method", name);
	compare_path(row, request->url, sbx_json_string(recorded, "path"));
	compare_body(row, request, json_object_get(recorded, "body"));
	compare_headers(name, drive.op, json_object_get(recorded, "headers"));
	if (rows[row].end != NULL)
	{
		drive_micro(&drive, name);
		is_text(end_of(&drive), rows[row].end, "%s: what becomes of it", name);
	}
	if (rows[row].talk != NULL)
		rows[row].talk(&drive);
	drive_end(&drive);
}

/* Each is compared in all its parts, or it says why not. */
static void
is_accounted_for(size_t row, const json_t *recorded)
{
	bool has_frames = json_object_get(recorded, "frames") != NULL;

	ok((rows[row].send != NULL && (rows[row].end != NULL || has_frames)) ||
	       (rows[row].send == NULL && rows[row].why != NULL),
	   "%s: is compared, or is not ours: %s", rows[row].recording,
	   rows[row].send == NULL ? rows[row].why : "it is");
	is_number((rows[row].talk != NULL) + (rows[row].no_frames != NULL), has_frames,
	          "%s: its frames are, too, if it has some", rows[row].recording);
}

static bool
is_listed(const char *name)
{
	int count = 0;

	for (size_t i = 0; i < ROWS; i++)
		count += strcmp(rows[i].recording, name) == 0;
	return count == 1;
}

void
test_microsandbox_wire(void)
{
	const char *name;
	json_t *entry;

	section("microsandbox wire");
	json_object_foreach ((json_t *) micro_recorded_all(), name, entry)
		ok(is_listed(name), "%s: is listed once", name);
	for (size_t i = 0; i < ROWS; i++)
	{
		const json_t *recorded =
		    json_object_get(micro_recorded_all(), rows[i].recording);

		if (!ok(recorded != NULL, "%s: is recorded", rows[i].recording))
			continue;
		is_accounted_for(i, recorded);
		if (rows[i].send != NULL)
			compare(i, recorded);
	}
}
