/*
 * test_exhaustion.c
 *		Every operation of Daytona's adapter, with memory ending at every allocation and with every
 *		answer cut short at every byte: it always ends, and never claims too much.
 */
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static const SbxPair pairs[] = {{"A", "x\ny"}, {"B", "it's"}};

static SbxOp *
make_launch(void)
{
	SbxLaunchInput input = {.unique_name = NAME,
	                        .labels = pairs,
	                        .label_count = 2,
	                        .env = pairs,
	                        .env_count = 2};

	account_reset(&account);
	account_text(&account, "image", "debian:12");
	return sbx_kind_daytona.launch(&account.account, &input);
}

static SbxOp *
make_get(void)
{
	SbxTarget target = {.sandbox_id = ID};

	return sbx_kind_daytona.get(account_reset(&account), &target);
}

static SbxOp *
make_run(void)
{
	SbxTarget target = {.unique_name = NAME};
	SbxRunInput input = {.run_id = "run-1",
	                     .command = "echo 'x'",
	                     .command_length = 8,
	                     .env = pairs,
	                     .env_count = 2,
	                     .cwd = "/tmp",
	                     .timeout_ms = 1000,
	                     .max_stream = 100};

	return sbx_kind_daytona.run_script(account_reset(&account), &target, &input);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.destroy(account_reset(&account), &target, 60000);
}

static SbxOp *
make_detached(void)
{
	SbxLaunchInput input = plain_input();

	input.detached = true;
	return sbx_kind_daytona.launch(account_reset(&account), &input);
}

static SbxOp *
make_wait(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.wait_ready(account_reset(&account), &target, 0);
}

static SbxOp *
make_find(void)
{
	return sbx_kind_daytona.find(account_reset(&account), pairs, 2);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_daytona.usage(account_reset(&account), 0);
}

static SbxOp *
make_inventory(void)
{
	return sbx_kind_daytona.inventory(account_reset(&account), 0);
}

static SbxOp *
make_start(void)
{
	SbxTarget target = {.sandbox_id = ID, .unique_name = NAME};

	return sbx_kind_daytona.start(account_reset(&account), &target, 0);
}

static SbxOp *
make_stop(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.stop(account_reset(&account), &target, 0);
}

static SbxOp *
make_start_script(void)
{
	SbxTarget target = {.unique_name = NAME};
	SbxRunInput input = plain_run("echo 'x'");

	input.env = pairs;
	input.env_count = 2;
	input.session = "s";
	return sbx_kind_daytona.start_script(account_reset(&account), &target, &input);
}

static const SbxScriptTarget script = {
    .session_id = "run-1", .command_id = "c1", .max_stream = 100};

static SbxOp *
make_status(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.script_status(account_reset(&account), &target, &script);
}

static SbxOp *
make_logs(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.script_logs(account_reset(&account), &target, &script);
}

static SbxOp *
make_upload(void)
{
	SbxTarget target = {.unique_name = NAME};
	SbxUploadInput input = {
	    .path = "d/it's", .bytes = "hello", .length = 5, .boundary = "xyz"};

	return sbx_kind_daytona.upload(account_reset(&account), &target, &input);
}

static SbxOp *
make_download(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_daytona.download(account_reset(&account), &target, "d/a", 100);
}

#define BARE "{\"id\":\"" ID "\",\"state\":\"started\"}"

static const Answer launch_answers[] = {
    {200, DTO("creating")}, {503, "{}"}, {200, BARE},
    {200, DTO("started")},  {502, "{}"}, {200, "{\"exitCode\":0}"}};
static const Answer located_answers[] = {{200, BARE},
                                         {200, BARE},
                                         {200, "{\"url\":\"" TOOLBOX "\"}"},
                                         {200, "{\"exitCode\":0}"}};
static const Answer refused_answers[] = {
    {400, "{\"message\":\"No available runners\"}"}};
static const Answer get_answers[] = {{200, DTO("started")}};
static const Answer gone_answers[] = {{404, "{}"}};
static const Answer run_answers[] = {
    {200, DTO("started")},
    {201, ""},
    {200, "{\"exitCode\":1,\"output\":\"\\u0001\\u0001\\u0001a\\u0002\\u0002\\u0002b\","
          "\"stdout\":\"a\",\"stderr\":\"b\"}"},
    {204, ""}};
static const Answer joined_answers[] = {
    {200, DTO("started")},
    {201, ""},
    {200, "{\"exitCode\":1,\"stdout\":\"a\",\"stderr\":\"b\"}"},
    {204, ""}};
static const Answer vanished_answers[] = {
    {200, DTO("started")}, {201, ""}, {401, "{}"}, {401, "{}"}, {404, "{}"}};
static const Answer destroy_answers[] = {
    {404, "{}"}, {200, DTO("started")}, {409, "{}"},
    {500, "{}"}, {200, DTO("started")}, {200, DTO("destroying")}};

static const Answer lost_answers[] = {
    {0, ""}, {404, "{}"}, {503, ""}, {200, DTO("creating")}};
static const Answer wait_answers[] = {{200, DTO("creating")},
                                      {200, BARE},
                                      {200, "{\"url\":\"" TOOLBOX "\"}"},
                                      {502, ""},
                                      {401, "{}"},
                                      {200, DTO("destroying")}};
static const Answer waited_answers[] = {
    {200, DTO("creating")}, {200, DTO("started")}, {200, "{\"exitCode\":0}"}};
static const Answer find_answers[] = {
    {200, "{\"items\":[" BARE "," DTO("stopped") "],\"nextCursor\":\"c\"}"},
    {503, ""},
    {200, "{\"items\":[{\"id\":\"b\"},{\"id\":\"a\"}],\"nextCursor\":null}"}};
#define SIZED(id) "{\"id\":\"" id "\",\"cpu\":1,\"memory\":2,\"disk\":3.5}"
static const Answer usage_answers[] = {
    {200, "{\"items\":[" SIZED("b") "],\"nextCursor\":\"c\"}"},
    {503, ""},
    {200, "{\"items\":[" SIZED("b") "," SIZED("a") "],\"nextCursor\":null}"}};
static const Answer start_answers[] = {
    {200, DTO("stopped")}, {409, "{}"},           {200, DTO("stopped")},
    {200, DTO("started")}, {200, DTO("started")}, {200, "{\"exitCode\":0}"}};
static const Answer stop_answers[] = {{200, DTO("started")},
                                      {400, "{\"message\":\"x\"}"},
                                      {200, DTO("started")},
                                      {200, DTO("stopping")},
                                      {200, DTO("stopped")}};
#define PRINTS(text) "{\"exitCode\":0,\"result\":\"" text "\"}"

static const Answer started_answers[] = {{200, DTO("started")},
                                         {200, PRINTS("new\\n")},
                                         {201, ""},
                                         {202, "{\"cmdId\":\"c1\"}"}};
static const Answer reconciled_answers[] = {{200, DTO("started")},
                                            {200, PRINTS("claimed\\n")},
                                            {409, "{}"},
                                            {200, "{\"commands\":[]}"},
                                            {0, ""},
                                            {404, "{}"},
                                            {200, PRINTS("claimed\\n")},
                                            {200, PRINTS("running\\n")}};
static const Answer in_session_answers[] = {
    {200, DTO("started")},
    {200, PRINTS("new\\n")},
    {409, "{}"},
    {503, "{}"},
    {200, "{\"commands\":[{\"id\":\"c1\",\"command\":\"x\"}]}"}};
static const Answer status_answers[] = {
    {200, DTO("started")}, {200, PRINTS("3\\n")}, {204, ""}};
static const Answer not_begun_answers[] = {
    {200, DTO("started")}, {200, PRINTS("claimed\\n")}, {404, "{}"}};
static const Answer logs_answers[] = {
    {200, DTO("started")}, {200, PRINTS("out")}, {200, PRINTS("err")}};
static const Answer upload_answers[] = {{200, DTO("started")},
                                        {200, "{\"dir\":\"/home/x\"}"},
                                        {200, ""},
                                        {200, "{\"exitCode\":0,\"result\":\"\"}"}};
static const Answer full_answers[] = {{200, DTO("started")},
                                      {200, "{\"dir\":\"/home/x\"}"},
                                      {400, "{\"errors\":[\"full\"]}"}};
static const Answer download_answers[] = {
    {200, DTO("started")}, {200, "{\"dir\":\"/home/x\"}"}, {200, "content"}};
static const Answer missing_answers[] = {{200, DTO("started")},
                                         {200, "{\"dir\":\"/home/x\"}"},
                                         {404, "{\"code\":\"FILE_NOT_FOUND\"}"}};

static const Scenario scenarios[] = {
    SCENARIO("launch", make_launch, launch_answers),
    SCENARIO("launch, toolbox asked for", make_launch, located_answers),
    SCENARIO("launch, refused", make_launch, refused_answers),
    SCENARIO("get", make_get, get_answers),
    SCENARIO("get, gone", make_get, gone_answers),
    SCENARIO("run", make_run, run_answers),
    SCENARIO("run, streams joined", make_run, joined_answers),
    SCENARIO("run, vanished", make_run, vanished_answers),
    SCENARIO("destroy", make_destroy, destroy_answers),
    SCENARIO("detached launch, answer lost", make_detached, lost_answers),
    SCENARIO("detached launch", make_detached, get_answers),
    SCENARIO("wait", make_wait, waited_answers),
    SCENARIO("wait, vanished", make_wait, wait_answers),
    SCENARIO("find", make_find, find_answers),
    SCENARIO("usage", make_usage, usage_answers),
    SCENARIO("inventory", make_inventory, usage_answers),
    SCENARIO("start", make_start, start_answers),
    SCENARIO("stop", make_stop, stop_answers),
    SCENARIO("start script", make_start_script, started_answers),
    SCENARIO("start script, answer lost", make_start_script, reconciled_answers),
    SCENARIO("start script, in another's session", make_start_script,
             in_session_answers),
    SCENARIO("status", make_status, status_answers),
    SCENARIO("status, not begun", make_status, not_begun_answers),
    SCENARIO("logs", make_logs, logs_answers),
    SCENARIO("upload", make_upload, upload_answers),
    SCENARIO("upload, refused", make_upload, full_answers),
    SCENARIO("download", make_download, download_answers),
    SCENARIO("download, refused", make_download, missing_answers),
};

typedef struct Outcome
{
	bool made;
	bool ended;
	bool succeeded;
	bool lied; /* an allocation denied that may exist, a result that is not there */
	size_t used;
} Outcome;

static void
judge(const Drive *drive, bool sent, Outcome *outcome)
{
	const SbxOp *op = drive->op;
	SbxAllocation allocation = op->failure.allocation;

	/* A request without an address was asked for: no later end excuses that. */
	if (outcome->lied)
		return;
	outcome->succeeded = op->succeeded;
	outcome->used = op->arena.used;
	if (op->succeeded)
		outcome->lied =
		    (op->result == NULL && strcmp(op->operation, "upload") != 0) ||
		    (op->arena.out_of_memory && strcmp(op->operation, "scriptStatus") != 0);
	else if (strcmp(op->operation, "launch") == 0)
		outcome->lied =
		    (sent && allocation == SBX_ALLOCATION_NONE &&
		     op->failure.http_status < 400) ||
		    (op->sandbox_id[0] != '\0' && allocation != SBX_ALLOCATION_MADE) ||
		    (!sent && allocation != SBX_ALLOCATION_NONE);
}

/* A stream from its lines. */
static Stream
stream_of(const char *lines)
{
	Stream stream = {0};
	char line[1000];

	for (size_t length; *lines != '\0'; lines += length + (lines[length] == '\n'))
	{
		length = strcspn(lines, "\n");
		snprintf(line, sizeof(line), "%.*s", (int) length, lines);
		stream_add(&stream, line[0] == ' ' ? 2 : 0, line);
	}
	return stream;
}

static void
play_stream(Drive *drive, const char *lines, bool has_lines, bool is_cut,
            size_t cut_length)
{
	Stream stream = {0};

	if (has_lines)
		stream = (Stream){strdup(lines), strlen(lines)};
	else
		stream = stream_of(lines);

	if (is_cut && cut_length < stream.length)
		stream.length = cut_length;
	drive_feed(drive, stream.bytes, stream.length, 50);
	stream_free(&stream);
	drive_answer(drive, 200, "");
}

/* Over a WebSocket, in hex digits; one that is cut breaks off. */
static void
play_talk(Drive *drive, const char *digits, bool is_cut, size_t cut_length)
{
	Stream stream = micro_hex(digits);
	size_t length = is_cut ? cut_length / 2 : stream.length;

	if (length > 0)
		drive_feed(drive, stream.bytes, length, 7);
	stream_free(&stream);
	if (is_cut)
		drive_no_answer(drive, SBX_PHASE_RECEIVE, true, false);
	else
		drive_answer(drive, 101, "");
}

/*
 * Play a scenario.  Answers are used up by exchanges; after the last one there is
 * no answer any more, and after a while no time.
 */
static Outcome
play(const Scenario *scenario, int cut_answer, size_t cut_length)
{
	Outcome outcome = {0};
	Drive drive = {0};
	bool sent = false;
	int next = 0;

	drive.op = scenario->make();
	if (drive.op == NULL)
		return outcome;
	outcome.made = true;
	drive_start(&drive, drive.op);
	while (drive.want != SBX_OP_WANT_NOTHING && drive.steps < 50)
	{
		if (drive.want == SBX_OP_WANT_PAUSE)
		{
			drive_pause_over(&drive);
			continue;
		}
		sent = true;
		if (drive.op->request.url == NULL)
			outcome.lied = true;
		if (next >= scenario->answer_count)
			drive_expire(&drive);
		else if (scenario->answers[next].status == 0)
			drive_no_answer(&drive, SBX_PHASE_RECEIVE, true, true);
		else if (drive.op->request.take_body != NULL &&
		         scenario->answers[next].status == 200)
			play_stream(&drive, scenario->answers[next].body, scenario->has_lines,
			            next == cut_answer, cut_length);
		else if (drive.op->request.talk != NULL &&
		         scenario->answers[next].status == 101)
			play_talk(&drive, scenario->answers[next].body, next == cut_answer,
			          cut_length);
		else if (next == cut_answer)
			drive_answer_bytes(&drive, scenario->answers[next].status,
			                   scenario->answers[next].body, cut_length);
		else
			drive_answer(&drive, scenario->answers[next].status,
			             scenario->answers[next].body);
		next++;
	}
	outcome.ended = drive.want == SBX_OP_WANT_NOTHING;
	judge(&drive, sent, &outcome);
	drive_end(&drive);
	return outcome;
}

static Outcome
play_within(const Scenario *scenario, size_t limit)
{
	Outcome outcome;

	unit_arena_limit = limit;
	outcome = play(scenario, -1, 0);
	unit_arena_limit = 0;
	return outcome;
}

/*
 * The least limit above this one with which another allocation is the first that is
 * refused; at most `end`.  An arena that has refused one refuses all that follow, so what
 * an operation does up to its end depends on which was the first, and that shows in how
 * much it had used by then.  With the limits between it would all be the same once more.
 */
static size_t
next_limit(const Scenario *scenario, size_t limit, size_t end)
{
	const size_t used = unit_arena_used;
	size_t same = limit;
	size_t step = 1;

	while (same + step < end)
	{
		play_within(scenario, same + step);
		if (unit_arena_used != used)
			break;
		same += step;
		step *= 2;
	}
	end = same + step < end ? same + step : end;
	while (end - same > 1)
	{
		size_t middle = same + (end - same) / 2;

		play_within(scenario, middle);
		if (unit_arena_used == used)
			same = middle;
		else
			end = middle;
	}
	return end;
}

static void
arena_ends_everywhere(const Scenario *scenario)
{
	Outcome whole = play(scenario, -1, 0);
	int wrong = 0;
	int failures = 0;

	for (size_t limit = 1; limit <= whole.used;)
	{
		Outcome outcome = play_within(scenario, limit);

		wrong += outcome.made && (!outcome.ended || outcome.lied);
		failures += !outcome.succeeded;
		limit = next_limit(scenario, limit, whole.used + 1);
	}
	is_number(wrong, 0, "%s: the arena ends at any of %zu bytes", scenario->name,
	          whole.used);
	if (whole.succeeded)
		ok(failures > 0, "%s: which did hurt", scenario->name);
}

static void
malloc_ends_everywhere(const Scenario *scenario)
{
	bool expected = play(scenario, -1, 0).succeeded;
	int wrong = 0;
	long left = 0;

	for (; left < 10000; left++)
	{
		Outcome outcome;
		bool all_used;

		unit_mallocs_left = left;
		outcome = play(scenario, -1, 0);
		all_used = unit_mallocs_left == 0;
		unit_mallocs_left = -1;
		wrong += outcome.made && (!outcome.ended || outcome.lied);
		if (outcome.succeeded == expected && !all_used)
			break;
	}
	ok(wrong == 0 && left < 10000, "%s: malloc fails after any of %ld calls",
	   scenario->name, left);
}

static void
answers_end_everywhere(const Scenario *scenario)
{
	int wrong = 0;
	int count = 0;

	for (int i = 0; i < scenario->answer_count; i++)
	{
		for (size_t length = 0; length < strlen(scenario->answers[i].body); length++)
		{
			Outcome outcome = play(scenario, i, length);

			wrong += !outcome.ended || outcome.lied;
			count++;
		}
	}
	is_number(wrong, 0, "%s: answers end at any of %d bytes", scenario->name, count);
}

/* Time ends at each step, with nothing to look at. */
static void
time_ends_everywhere(const Scenario *scenario)
{
	int wrong = 0;
	int steps = 0;

	for (int last = 0; last <= scenario->answer_count; last++)
	{
		Scenario shorter = *scenario;
		Outcome outcome;

		shorter.answer_count = last;
		outcome = play(&shorter, -1, 0);
		wrong += !outcome.ended || outcome.lied;
		steps++;
	}
	is_number(wrong, 0, "%s: time ends after any of %d exchanges", scenario->name,
	          steps);
}

void
exhaust(const Scenario *given, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		arena_ends_everywhere(&given[i]);
		malloc_ends_everywhere(&given[i]);
		answers_end_everywhere(&given[i]);
		time_ends_everywhere(&given[i]);
	}
}

void
test_exhaustion(void)
{
	section("exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
