/*
 * test_freestyle_exhaustion.c
 *		The operations of Freestyle, with memory, answers and time ending everywhere.
 */
#include <stdlib.h>

#include "unit.h"

static const SbxPair pairs[] = {{"A", "x"}, {"sbx-router-name", "n"}};

static SbxOp *
make_launch(void)
{
	SbxLaunchInput input = {
	    .unique_name = NAME, .labels = pairs, .label_count = 2, .env = pairs};

	freestyle_account();
	account_text(&account, "snapshot", "sh-1");
	return sbx_kind_freestyle.launch(&account.account, &input);
}

static SbxOp *
make_get(void)
{
	return sbx_kind_freestyle.get(freestyle_account(), &freestyle_target);
}

static SbxOp *
make_find(void)
{
	static const SbxPair label = {"k", "v"};

	return sbx_kind_freestyle.find(freestyle_account(), &label, 1);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_freestyle.usage(freestyle_account(), 0);
}

static SbxOp *
make_wait(void)
{
	return sbx_kind_freestyle.wait_ready(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_freestyle.start(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
make_stop(void)
{
	return sbx_kind_freestyle.stop(freestyle_account(), &freestyle_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	input.env = pairs;
	input.env_count = 1;
	return sbx_kind_freestyle.run_script(freestyle_account(), &freestyle_target,
	                                     &input);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {
	    .path = "d/it's", .bytes = "hello", .length = 5, .boundary = "xyz"};

	return sbx_kind_freestyle.upload(freestyle_account(), &freestyle_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_freestyle.download(freestyle_account(), &freestyle_target, "d/a",
	                                   100);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_freestyle.destroy(freestyle_account(), &target, 60000);
}

#define RUNS                                                                           \
	{                                                                                  \
		200, FREESTYLE_DTO("running")                                                  \
	}
#define GONE                                                                           \
	{                                                                                  \
		404, FREESTYLE_GONE                                                            \
	}
#define LATER                                                                          \
	{                                                                                  \
		202, FREESTYLE_LATER                                                           \
	}
#define LIST(total)                                                                    \
	FREESTYLE_LIST(FREESTYLE_DTO("running") "," FREESTYLE_ROW("vm-2", "paused", ""),   \
	               total)

static const Answer launch_answers[] = {
    LATER, LATER, {503, ""}, {201, FREESTYLE_DTO("starting")}, RUNS};
static const Answer refused_answers[] = {{409, FREESTYLE_ERROR("CONFLICT")}, GONE};
static const Answer lost_answers[] = {LATER, {404, FREESTYLE_GONE}};
static const Answer get_answers[] = {RUNS};
static const Answer list_answers[] = {
    {503, ""}, {200, LIST("3")}, {200, FREESTYLE_LIST("", "3")}, {200, LIST("2")}};
static const Answer wait_answers[] = {{200, FREESTYLE_DTO("starting")}, RUNS};
static const Answer start_answers[] = {{200, FREESTYLE_DTO("paused")},
                                       LATER,
                                       {200, FREESTYLE_DTO("starting")},
                                       {200, FREESTYLE_DTO("starting")},
                                       RUNS};
static const Answer stop_answers[] = {
    RUNS, {200, "{}"}, {200, FREESTYLE_DTO("pausing")}, {200, FREESTYLE_DTO("paused")}};
static const Answer run_answers[] = {
    RUNS, LATER, {200, "{\"statusCode\":2,\"stdout\":\"a\",\"stderr\":\"b\"}"}};
static const Answer killed_answers[] = {
    RUNS, {200, "{\"stdout\":\"a\"}"}, {200, "{\"statusCode\":0}"}};
static const Answer vanished_answers[] = {
    RUNS, {409, "{}"}, {200, FREESTYLE_DTO("paused")}};
static const Answer upload_answers[] = {
    RUNS, GONE, {200, "{\"statusCode\":0}"}, {204, ""}, {200, "{\"size\":5}"}};
static const Answer download_answers[] = {RUNS, {200, "bytes"}};
static const Answer missing_answers[] = {RUNS, GONE, RUNS};
static const Answer destroy_answers[] = {GONE,      {500, ""}, RUNS, LATER,
                                         {204, ""}, RUNS,      GONE};

static const Scenario scenarios[] = {
    SCENARIO("launch", make_launch, launch_answers),
    SCENARIO("launch, refused", make_launch, refused_answers),
    SCENARIO("launch, lost", make_launch, lost_answers),
    SCENARIO("get", make_get, get_answers),
    SCENARIO("find", make_find, list_answers),
    SCENARIO("usage", make_usage, list_answers),
    SCENARIO("wait", make_wait, wait_answers),
    SCENARIO("start", make_start, start_answers),
    SCENARIO("stop", make_stop, stop_answers),
    SCENARIO("run", make_run, run_answers),
    SCENARIO("run, killed", make_run, killed_answers),
    SCENARIO("run, vanished", make_run, vanished_answers),
    SCENARIO("upload", make_upload, upload_answers),
    SCENARIO("download", make_download, download_answers),
    SCENARIO("download, missing", make_download, missing_answers),
    SCENARIO("destroy", make_destroy, destroy_answers),
};

void
test_freestyle_exhaustion(void)
{
	section("Freestyle exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
