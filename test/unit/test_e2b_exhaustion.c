/*
 * test_e2b_exhaustion.c
 *		The operations of E2B, with memory, answers and time ending everywhere.
 */
#include <stdlib.h>

#include "unit.h"

static const SbxPair pairs[] = {{"A", "x\ny"}, {"B", "it's"}};
static const SbxScriptTarget script = {
    .session_id = "run-1", .command_id = "c1", .max_stream = 100};

static SbxOp *
make_launch(void)
{
	SbxLaunchInput input = {.unique_name = NAME,
	                        .labels = pairs,
	                        .label_count = 2,
	                        .env = pairs,
	                        .env_count = 2};

	return sbx_kind_e2b.launch(e2b_account(), &input);
}

static SbxOp *
make_get(void)
{
	return sbx_kind_e2b.get(e2b_account(), &e2b_target);
}

static SbxOp *
make_find(void)
{
	return sbx_kind_e2b.find(e2b_account(), pairs, 2);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_e2b.usage(e2b_account(), 0);
}

static SbxOp *
make_wait(void)
{
	return sbx_kind_e2b.wait_ready(e2b_account(), &e2b_target, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_e2b.start(e2b_account(), &e2b_target, 0);
}

static SbxOp *
make_stop(void)
{
	return sbx_kind_e2b.stop(e2b_account(), &e2b_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	input.env = pairs;
	input.env_count = 2;
	e2b_account();
	account_text(&account, "user", "root");
	return sbx_kind_e2b.run_script(&account.account, &e2b_target, &input);
}

static SbxOp *
make_start_script(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	return sbx_kind_e2b.start_script(e2b_account(), &e2b_target, &input);
}

static SbxOp *
make_status(void)
{
	return sbx_kind_e2b.script_status(e2b_account(), &e2b_target, &script);
}

static SbxOp *
make_logs(void)
{
	return sbx_kind_e2b.script_logs(e2b_account(), &e2b_target, &script);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {
	    .path = "d/it's", .bytes = "hello", .length = 5, .boundary = "xyz"};

	return sbx_kind_e2b.upload(e2b_account(), &e2b_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_e2b.download(e2b_account(), &e2b_target, "d/a", 100);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_e2b.destroy(e2b_account(), &target, 60000);
}

/* What commands print, in base64. */
#define OUT(base64) "{\"event\":{\"data\":{\"stdout\":\"" base64 "\"}}}\n"
#define ERR(base64) "{\"event\":{\"data\":{\"stderr\":\"" base64 "\"}}}\n"
#define ENDED       STREAM_START "\n" STREAM_END "\n {}"
#define PRINTED(base64)                                                                \
	STREAM_START "\n" OUT(base64) STREAM_END "\n"                                      \
	                                         " {}"
#define OPENED                                                                         \
	{                                                                                  \
		200, E2B_DTO("running")                                                        \
	}
#define TIMED                                                                          \
	{                                                                                  \
		204, ""                                                                        \
	}

/* "x", the mark and 17, in pieces; the mark again. */
#define MARKED STREAM_START "\n" OUT("eAFydW4=") OUT("LTE6MTcC") ERR("AXJ1bi0xOjE3Ag==")

static const Answer launch_answers[] = {{201, E2B_DTO("running")}};
static const Answer refused_answers[] = {
    {503, "{\"error_code\":\"sandbox_no_compatible_node\"}"}};
static const Answer get_answers[] = {OPENED};
static const Answer gone_answers[] = {{404, "{}"}};
static const Answer find_answers[] = {
    {503, ""},
    {200, "[" E2B_DTO("running") "," E2B_DTO("paused") ",{\"sandboxID\":\"ia\"}]"}};
static const Answer usage_answers[] = {
    {503, ""},
    {200, "[{\"sandboxID\":\"ia\",\"cpuCount\":1,\"memoryMB\":2,\"diskSizeMB\":3}]"}};
static const Answer wait_answers[] = {
    {200, E2B_DTO("x")}, OPENED, {502, ""}, OPENED, {204, ""}};
static const Answer start_answers[] = {{409, ""}, {201, "{}"}, OPENED, {204, ""}};
static const Answer stop_answers[] = {
    OPENED, {409, ""}, OPENED, {204, ""}, {200, E2B_DTO("paused")}};
static const Answer run_answers[] = {OPENED, TIMED, {200, MARKED}};
static const Answer killed_answers[] = {
    OPENED, TIMED, {200, STREAM_START "\n" STREAM_KILLED}, {200, ENDED}};
static const Answer vanished_answers[] = {
    OPENED, TIMED, {502, ""}, {502, ""}, {404, "{}"}};
static const Answer started_answers[] = {
    OPENED, TIMED, {200, PRINTED("bmV3Cg==")}, {200, STREAM_START}};
static const Answer reconciled_answers[] = {
    OPENED, TIMED, {200, PRINTED("bmV3Cg==")}, {0, ""}, {200, PRINTED("cnVubmluZwo=")}};
static const Answer status_answers[] = {OPENED, {200, PRINTED("Mwo=")}};
static const Answer logs_answers[] = {
    OPENED, {200, PRINTED("b3V0")}, {200, PRINTED("ZXJy")}};
static const Answer upload_answers[] = {OPENED, {200, "[{\"path\":\"/a\"}]"}};
static const Answer full_answers[] = {OPENED, {507, ""}};
static const Answer download_answers[] = {OPENED, {200, "content"}};
static const Answer missing_answers[] = {OPENED, {502, ""}, {200, E2B_DTO("paused")}};
static const Answer destroy_answers[] = {
    {200, "[]"}, {500, ""}, {200, "[" E2B_DTO("running") "]"},
    {409, ""},   {500, ""}, {404, ""}};

static const Scenario scenarios[] = {
    SCENARIO("launch", make_launch, launch_answers),
    SCENARIO("launch, refused", make_launch, refused_answers),
    SCENARIO("get", make_get, get_answers),
    SCENARIO("get, gone", make_get, gone_answers),
    SCENARIO("find", make_find, find_answers),
    SCENARIO("usage", make_usage, usage_answers),
    SCENARIO("wait", make_wait, wait_answers),
    SCENARIO("start", make_start, start_answers),
    SCENARIO("stop", make_stop, stop_answers),
    SCENARIO("run", make_run, run_answers),
    SCENARIO("run, killed", make_run, killed_answers),
    SCENARIO("run, vanished", make_run, vanished_answers),
    SCENARIO("start script", make_start_script, started_answers),
    SCENARIO("start script, answer lost", make_start_script, reconciled_answers),
    SCENARIO("status", make_status, status_answers),
    SCENARIO("logs", make_logs, logs_answers),
    SCENARIO("upload", make_upload, upload_answers),
    SCENARIO("upload, refused", make_upload, full_answers),
    SCENARIO("download", make_download, download_answers),
    SCENARIO("download, vanished", make_download, missing_answers),
    SCENARIO("destroy", make_destroy, destroy_answers),
};

void
test_e2b_exhaustion(void)
{
	section("E2B exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
