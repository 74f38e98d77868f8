/*
 * test_microsandbox_exhaustion.c
 *		The operations of Microsandbox, with memory, answers and time ending everywhere.
 */
#include <stdlib.h>

#include "unit.h"

/* The agent is ready, and what it says of a command. */
#define GREETING                                                                       \
	"00000001000000050000001a0000000000a361760761746a636f72652e726561"                 \
	"6479617041a0"
#define EXITED                                                                         \
	"000000260000000101a3617607617470636f72652e657865632e657869746564"                 \
	"617047a164636f646500"
#define FAILED                                                                         \
	"000000260000000101a3617607617470636f72652e657865632e657869746564"                 \
	"617047a164636f646503"

/* "x", the mark and 17, on both streams. */
#define MARKED                                                                         \
	"000000310000000100a3617607617470636f72652e657865632e7374646f7574"                 \
	"617052a164646174614b780172756e2d313a313702000000300000000100a361"                 \
	"7607617470636f72652e657865632e737464657272617051a164646174614a01"                 \
	"72756e2d313a313702"

/* new, printed. */
#define NEW                                                                            \
	"0000002a0000000100a3617607617470636f72652e657865632e7374646f7574"                 \
	"61704ba16464617461446e65770a"

/* running, printed. */
#define RUNNING                                                                        \
	"0000002e0000000100a3617607617470636f72652e657865632e7374646f7574"                 \
	"61704fa164646174614872756e6e696e670a"

/* 3, printed. */
#define ENDED                                                                          \
	"000000280000000100a3617607617470636f72652e657865632e7374646f7574"                 \
	"617049a1646461746142330a"

/* log, printed. */
#define LOG                                                                            \
	"000000290000000100a3617607617470636f72652e657865632e7374646f7574"                 \
	"61704aa16464617461436c6f67"

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

	return sbx_kind_microsandbox.launch(micro_account(), &input);
}

static SbxOp *
make_get(void)
{
	return sbx_kind_microsandbox.get(micro_account(), &micro_target);
}

static SbxOp *
make_find(void)
{
	return sbx_kind_microsandbox.find(micro_account(), pairs, 2);
}

static SbxOp *
make_usage(void)
{
	return sbx_kind_microsandbox.usage(micro_account(), 0);
}

static SbxOp *
make_wait(void)
{
	return sbx_kind_microsandbox.wait_ready(micro_account(), &micro_target, 0);
}

static SbxOp *
make_start(void)
{
	return sbx_kind_microsandbox.start(micro_account(), &micro_target, 0);
}

static SbxOp *
make_stop(void)
{
	return sbx_kind_microsandbox.stop(micro_account(), &micro_target, 0);
}

static SbxOp *
make_run(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	input.env = pairs;
	input.env_count = 2;
	return micro_run(&input);
}

static SbxOp *
make_start_script(void)
{
	SbxRunInput input = plain_run("echo 'x'");

	return sbx_kind_microsandbox.start_script(micro_account(), &micro_target, &input);
}

static SbxOp *
make_status(void)
{
	return sbx_kind_microsandbox.script_status(micro_account(), &micro_target, &script);
}

static SbxOp *
make_logs(void)
{
	return sbx_kind_microsandbox.script_logs(micro_account(), &micro_target, &script);
}

static SbxOp *
make_upload(void)
{
	SbxUploadInput input = {.path = "/x", .bytes = "content", .length = 7};

	return sbx_kind_microsandbox.upload(micro_account(), &micro_target, &input);
}

static SbxOp *
make_download(void)
{
	return sbx_kind_microsandbox.download(micro_account(), &micro_target, "/x", 100);
}

static SbxOp *
make_destroy(void)
{
	SbxTarget target = {.unique_name = NAME};

	return sbx_kind_microsandbox.destroy(micro_account(), &target, 60000);
}

static const Answer launch_answers[] = {{200, MICRO_DTO("starting")},
                                        {200, MICRO_DTO("starting")},
                                        {503, ""},
                                        {200, MICRO_DTO("running")}};
static const Answer refused_answers[] = {
    {409, "{\"error\":{\"code\":\"name_already_exists\"}}"}};
static const Answer get_answers[] = {{200, MICRO_DTO("running")}};
static const Answer gone_answers[] = {{404, MICRO_GONE}};
static const Answer find_answers[] = {
    {503, ""},
    {200, "{\"data\":[" MICRO_DTO("running") "],\"next_cursor\":\"MQ==\"}"},
    {200, "{\"data\":[],\"next_cursor\":null}"}};
static const Answer usage_answers[] = {
    {200, "{\"data\":[{\"id\":\"" MICRO_ID "\",\"spec\":{\"resources\":{\"vcpus\":1,"
          "\"memory_mib\":2,\"disk_size_mib\":3}}}]}"}};
static const Answer wait_answers[] = {
    {200, MICRO_DTO("starting")}, {502, ""}, {200, MICRO_DTO("running")}};
static const Answer start_answers[] = {
    {429, ""}, {200, "{}"}, {200, MICRO_DTO("stopped")}, {200, MICRO_DTO("running")}};
static const Answer stop_answers[] = {{200, MICRO_DTO("running")},
                                      {409, "{\"code\":\"invalid_state_transition\"}"},
                                      {200, MICRO_DTO("running")},
                                      {200, "{}"},
                                      {200, MICRO_DTO("stopped")}};
static const Answer run_answers[] = {{101, GREETING MARKED}};
static const Answer killed_answers[] = {{101, GREETING}, {101, GREETING EXITED}};
static const Answer refused_run_answers[] = {{409, ""}};
static const Answer started_answers[] = {{101, GREETING NEW EXITED},
                                         {101, GREETING EXITED}};
static const Answer reconciled_answers[] = {
    {101, GREETING NEW EXITED}, {0, ""}, {101, GREETING RUNNING EXITED}};
static const Answer status_answers[] = {{101, GREETING ENDED EXITED}};
static const Answer logs_answers[] = {{101, GREETING LOG EXITED},
                                      {101, GREETING LOG EXITED}};
static const Answer unknown_answers[] = {{101, GREETING FAILED}};
static const Answer upload_answers[] = {{101, GREETING EXITED}};
static const Answer download_answers[] = {{101, GREETING LOG EXITED}};
static const Answer destroy_answers[] = {
    {404, MICRO_GONE}, {500, ""},   {200, MICRO_DTO("running")},
    {409, ""},         {200, "{}"}, {500, ""},
    {404, MICRO_GONE}};

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
    SCENARIO("run, refused", make_run, refused_run_answers),
    SCENARIO("start script", make_start_script, started_answers),
    SCENARIO("start script, reconciled", make_start_script, reconciled_answers),
    SCENARIO("script status", make_status, status_answers),
    SCENARIO("script logs", make_logs, logs_answers),
    SCENARIO("script logs, unknown", make_logs, unknown_answers),
    SCENARIO("upload", make_upload, upload_answers),
    SCENARIO("download", make_download, download_answers),
    SCENARIO("destroy", make_destroy, destroy_answers),
};

void
test_microsandbox_exhaustion(void)
{
	section("microsandbox, exhaustion");
	exhaust(scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
