/*
 * test_vercel_exhaustion.c
 *		The operations of Vercel, with memory, answers and time ending everywhere.
 */
#include <stdlib.h>

#include "unit.h"

static const SbxPair pairs[] = {{"sbx-router-id", NAME}, {"B", "it's"}};

static SbxOp *
make_launch(void)
{
	SbxLaunchInput input = {.unique_name = NAME,
	                        .labels = pairs,
	                        .label_count = 2,
	                        .env = pairs,
	                        .env_count = 2};

	return sbx_kind_vercel.launch(vercel_account(), &input);
}

static SbxOp *
make_get(void)
{
	return sbx_kind_vercel.get(vercel_account(), &vercel_target);
}

static SbxOp *
make_find(void)
{
	return sbx_kind_vercel.find(vercel_account(), pairs, 1);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_vercel.usage(vercel_account(), 0);
}

static SbxOp *
make_wait(void)
{
	return sbx_kind_vercel.wait_ready(vercel_account(), &vercel_target, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_vercel.start(vercel_account(), &vercel_target, 0);
}

static SbxOp *
make_stop(void)
{
	vercel_account();
	account_boolean(&account, "persistent", true);
	return sbx_kind_vercel.stop(&account.account, &vercel_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	return sbx_kind_vercel.run_script(vercel_account(), &vercel_target, &input);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {
	    .path = "d/it's", .bytes = "hello", .length = 5, .boundary = "xyz"};

	return sbx_kind_vercel.upload(vercel_account(), &vercel_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_vercel.download(vercel_account(), &vercel_target, "d/a", 100);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_vercel.destroy(vercel_account(), &target, 60000);
}

#define OPENED                                                                         \
	{                                                                                  \
		200, VERCEL_DTO("running")                                                     \
	}
#define PENDING                                                                        \
	{                                                                                  \
		200, VERCEL_DTO("pending")                                                     \
	}
#define AWAITED                                                                        \
	{                                                                                  \
		200, "{\"session\":{\"id\":\"sbx_SESSION1\",\"status\":\"running\"}}"          \
	}
#define PAGE(rows, next)                                                               \
	"{\"sandboxes\":[" rows "],\"pagination\":{\"count\":1,\"next\":" next "}}"
#define SIZED VERCEL_ROW("running", ",\"vcpus\":2,\"memory\":4096")

static const Answer launch_answers[] = {PENDING, {503, ""}, AWAITED};
static const Answer taken_answers[] = {
    {400, "{\"error\":{\"message\":\"x already exists\"}}"}, OPENED};
static const Answer refused_answers[] = {{429, "{\"error\":{\"limit\":{}}}"}};
static const Answer get_answers[] = {OPENED};
static const Answer gone_answers[] = {{404, "{}"}};
static const Answer find_answers[] = {{503, ""},
                                      {200, PAGE(SIZED, "\"c\"")},
                                      {200, PAGE("{\"name\":\"other\"}", "null")}};
static const Answer usage_answers[] = {
    {200, PAGE(SIZED, "null")}, {503, ""}, {200, PAGE(SIZED, "null")}};
static const Answer wait_answers[] = {{502, ""}, PENDING, AWAITED};
static const Answer start_answers[] = {{200, VERCEL_DTO("stopped")},
                                       {422, "{}"},
                                       {200, VERCEL_DTO("stopped")},
                                       PENDING,
                                       AWAITED};
static const Answer stop_answers[] = {
    OPENED, {200, "{}"}, {200, VERCEL_DTO("stopping")}, {200, VERCEL_DTO("stopped")}};
static const Answer run_answers[] = {
    OPENED, {200, VERCEL_BEGUN VERCEL_OUT("x") VERCEL_MARKED("17")}};
static const Answer killed_answers[] = {
    OPENED, {200, VERCEL_BEGUN VERCEL_END("137")}, {200, VERCEL_BEGUN VERCEL_END("0")}};
static const Answer vanished_answers[] = {OPENED, {404, "{}"}, {404, "{}"}};
static const Answer upload_answers[] = {OPENED, {200, "{}"}};
static const Answer download_answers[] = {OPENED, {200, "content"}};
static const Answer destroy_answers[] = {{404, "{}"}, OPENED, {500, ""},  OPENED,
                                         {200, "{}"}, OPENED, {404, "{}"}};

static const Scenario scenarios[] = {
    SCENARIO("launch", make_launch, launch_answers),
    SCENARIO("launch, name taken", make_launch, taken_answers),
    SCENARIO("launch, refused", make_launch, refused_answers),
    SCENARIO("get", make_get, get_answers),
    SCENARIO("get, gone", make_get, gone_answers),
    SCENARIO("find", make_find, find_answers),
    SCENARIO("usage", make_usage, usage_answers),
    SCENARIO("wait", make_wait, wait_answers),
    SCENARIO("start", make_start, start_answers),
    SCENARIO("stop", make_stop, stop_answers),
    SCENARIO_OF_LINES("run", make_run, run_answers),
    SCENARIO_OF_LINES("run, killed", make_run, killed_answers),
    SCENARIO_OF_LINES("run, vanished", make_run, vanished_answers),
    SCENARIO("upload", make_upload, upload_answers),
    SCENARIO("download", make_download, download_answers),
    SCENARIO("destroy", make_destroy, destroy_answers),
};

void
test_vercel_exhaustion(void)
{
	section("Vercel exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
