/*
 * test_agent37_exhaustion.c
 *		The operations of Agent37, with memory, answers and time ending everywhere.
 */
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

	agent37_account();
	account_integer(&account, "resources.cpu", 2);
	return sbx_kind_agent37.launch(&account.account, &input);
}

static SbxOp *
make_get(void)
{
	return sbx_kind_agent37.get(agent37_account(), &agent37_target);
}

static SbxOp *
make_find(void)
{
	static const SbxPair label = {"k", "v"};

	return sbx_kind_agent37.find(agent37_account(), &label, 1);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_agent37.usage(agent37_account(), 0);
}

static SbxOp *
make_wait(void)
{
	return sbx_kind_agent37.wait_ready(agent37_account(), &agent37_target, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_agent37.start(agent37_account(), &agent37_target, 0);
}

static SbxOp *
make_stop(void)
{
	return sbx_kind_agent37.stop(agent37_account(), &agent37_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	input.env = pairs;
	input.env_count = 2;
	return sbx_kind_agent37.run_script(agent37_account(), &agent37_target, &input);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {
	    .path = "d/it's", .bytes = "hello", .length = 5, .boundary = "xyz"};

	return sbx_kind_agent37.upload(agent37_account(), &agent37_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_agent37.download(agent37_account(), &agent37_target, "d/a", 100);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_agent37.destroy(agent37_account(), &target, 60000);
}

#define RUNS                                                                           \
	{                                                                                  \
		200, AGENT37_DTO("running")                                                    \
	}
#define DID                                                                            \
	{                                                                                  \
		200, "{\"exit_code\":0}"                                                       \
	}
#define LIST "{\"data\":[" AGENT37_DTO("running") "," AGENT37_DTO("sleeping") "]}"

static const Answer launch_answers[] = {
    {201, AGENT37_DTO("running")}, {502, AGENT37_EDGE("x")}, RUNS, DID};
static const Answer refused_answers[] = {{503, AGENT37_ERROR("no_capacity")}};
static const Answer get_answers[] = {RUNS};
static const Answer list_answers[] = {{503, ""}, {200, LIST}};
static const Answer wait_answers[] = {{200, AGENT37_DTO("waking")}, RUNS, DID};
static const Answer start_answers[] = {{409, AGENT37_ERROR("try_again")},
                                       {200, "{}"},
                                       {200, AGENT37_DTO("stopped")},
                                       {200, "{}"},
                                       RUNS,
                                       DID};
static const Answer stop_answers[] = {
    {400, "{}"}, RUNS, {200, "{}"}, {200, AGENT37_DTO("stopped")}};
static const Answer run_answers[] = {
    {200, "{\"exit_code\":2,\"stdout\":\"a\",\"stderr\":\"b\",\"truncated\":true}"}};
static const Answer killed_answers[] = {{502, AGENT37_ERROR("provisioning_failed")},
                                        DID};
static const Answer vanished_answers[] = {{400, "{}"}, {200, AGENT37_DTO("sleeping")}};
static const Answer upload_answers[] = {RUNS, {502, ""}, {200, "{\"size\":5}"}};
static const Answer download_answers[] = {RUNS, {404, AGENT37_ERROR("file_not_found")}};
static const Answer destroy_answers[] = {
    {200, "{\"data\":[]}"}, {500, ""}, {200, LIST}, {409, ""}, {500, ""}, {404, ""}};

static const Scenario scenarios[] = {
    SCENARIO("launch", make_launch, launch_answers),
    SCENARIO("launch, refused", make_launch, refused_answers),
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
    SCENARIO("destroy", make_destroy, destroy_answers),
};

void
test_agent37_exhaustion(void)
{
	section("Agent37 exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
