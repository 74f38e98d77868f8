/*
 * unit.h
 *		TAP output, and driving an operation with canned answers.
 */
#ifndef SBX_UNIT_H
#define SBX_UNIT_H

#include <string.h>

#include "net/json.h"
#include "net/op.h"
#include "providers/provider.h"

/* --- TAP ---------------------------------------------------------------- */

/* What the names of the following tests start with. */
extern void section(const char *name);
extern bool
ok(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
extern bool is_text(const char *got, const char *expected, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
extern bool is_number(int64_t got, int64_t expected, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

extern void test_op(void);
extern void test_json(void);
extern void test_daytona_wire(void);
extern void test_daytona_launch(void);
extern void test_daytona_detached(void);
extern void test_daytona_refusals(void);
extern void test_daytona_ready(void);
extern void test_daytona_toolbox(void);
extern void test_daytona_look(void);
extern void test_daytona_power(void);
extern void test_daytona_background(void);
extern void test_daytona_status(void);
extern void test_daytona_files(void);
extern void test_daytona_run(void);
extern void test_daytona_streams(void);
extern void test_daytona_shell(void);
extern void test_daytona_sessions(void);
extern void test_daytona_texts(void);
extern void test_daytona_traps(void);
extern void test_daytona_destroy(void);
extern void test_websocket(void);
extern void test_cbor(void);
extern void test_microsandbox(void);
extern void test_microsandbox_agent(void);
extern void test_microsandbox_wire(void);
extern void test_microsandbox_refusals(void);
extern void test_microsandbox_traps(void);
extern void test_microsandbox_exhaustion(void);
extern void test_connect(void);
extern void test_e2b_process(void);
extern void test_e2b_refusals(void);
extern void test_e2b_launch(void);
extern void test_e2b_look(void);
extern void test_e2b_power(void);
extern void test_e2b_run(void);
extern void test_e2b_background(void);
extern void test_e2b_files(void);
extern void test_e2b_destroy(void);
extern void test_e2b_planes(void);
extern void test_e2b_wire(void);
extern void test_e2b_traps(void);
extern void test_vercel_wire(void);
extern void test_vercel_launch(void);
extern void test_vercel_run(void);
extern void test_vercel_traps(void);
extern void test_vercel_exhaustion(void);
extern void test_agent37_shell(void);
extern void test_agent37_wire(void);
extern void test_agent37_refusals(void);
extern void test_agent37_launch(void);
extern void test_agent37_look(void);
extern void test_agent37_power(void);
extern void test_agent37_run(void);
extern void test_agent37_files(void);
extern void test_agent37_destroy(void);
extern void test_agent37_traps(void);
extern void test_agent37_exhaustion(void);
extern void test_absence(void);
extern void test_opening(void);
extern void test_vercel_destroy(void);
extern void test_vercel_list(void);
extern void test_vercel_files(void);
extern void test_ndjson(void);
extern void test_vercel_ready(void);
extern void test_vercel_settings(void);
extern void test_freestyle_wire(void);
extern void test_freestyle_refusals(void);
extern void test_freestyle_launch(void);
extern void test_freestyle_background(void);
extern void test_freestyle_look(void);
extern void test_freestyle_power(void);
extern void test_freestyle_run(void);
extern void test_freestyle_files(void);
extern void test_freestyle_destroy(void);
extern void test_freestyle_traps(void);
extern void test_freestyle_exhaustion(void);
extern void test_patience(void);
extern void test_usage(void);
extern void test_exhaustion(void);

/* --- lack of memory ----------------------------------------------------- */

/* Allocations that still succeed; negative = all. */
extern long unit_mallocs_left;

/* Limit of the arenas of operations made from now on; 0 = as made. */
extern size_t unit_arena_limit;

/* How many bytes of its arena the last operation had used when it was freed. */
extern size_t unit_arena_used;

/* --- driving ------------------------------------------------------------ */

typedef struct Drive
{
	SbxOp *op;
	SbxOpWant want;
	int steps;
} Drive;

extern void drive_start(Drive *drive, SbxOp *op);

/* Answers live in memory that is freed right after the step. */
extern void drive_answer(Drive *drive, int status, const char *body);
extern void
drive_answer_bytes(Drive *drive, int status, const char *body, size_t length);

/* With header lines, each with its line break. */
extern void
drive_headed(Drive *drive, int status, const char *headers, const char *body);

/*
 * Part of the body of a stream, or what a WebSocket brings, in pieces of that many bytes, before its answer; false =
 * the operation had enough.
 */
extern bool drive_feed(Drive *drive, const char *bytes, size_t length, size_t piece);
extern void drive_response(Drive *drive, SbxHttpResponse response);
extern void drive_no_answer(Drive *drive, SbxPhase phase, bool sent, bool timed_out);
extern void drive_pause_over(Drive *drive);

/* The same answer for as long as the operation waits and asks again; 0 = no connection. */
extern void drive_answer_always(Drive *drive, int status, const char *body);

/* The time is over: a last step without an answer. */
extern void drive_expire(Drive *drive);
extern void drive_end(Drive *drive);

/* One test: the operation asks for exactly this. */
extern bool asks(const Drive *drive, const char *method, const char *url,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
extern bool pauses(const Drive *drive, int64_t ms, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One test: the operation failed exactly so. */
extern bool fails(const Drive *drive, SbxPhase phase, int status, const char *code,
                  SbxAllocation allocation, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/*
 * A change that is answered with success, and changes nothing: looks go on with pauses, it is
 * asked for again some times, and then it fails.
 */
extern void is_in_vain(Drive drive, const char *unmoved, const char *verb);
extern const char *sent_header(const SbxOp *op, const char *name);

/* --- Daytona fixtures --------------------------------------------------- */

#define API         "https://api.recorder.invalid/api"
#define TOOLBOX     "https://toolbox.recorder.invalid/toolbox"
#define ID          "4f3c1d2e-8a77-4b3c-9d10-6f2f0c1a9b55"
#define SANDBOX     API "/sandbox/" ID
#define SANDBOX_BOX TOOLBOX "/" ID
#define NAME        "sbx_0123456789abcdef0123456789abcdef"

/* A description of the sandbox in a state, as the control plane writes it. */
#define DTO(state)                                                                     \
	"{\"id\":\"" ID "\",\"name\":\"" NAME "\",\"state\":\"" state                      \
	"\",\"labels\":{\"sbx-router-id\":\"" NAME "\",\"k\":\"v\"},"                      \
	"\"createdAt\":\"2026-12-01T10:00:00.000Z\",\"toolboxProxyUrl\":\"" TOOLBOX "\"}"

/* Indexes of settings by name, so that the tests do not repeat the order. */
#define SETTINGS_MAX 24

typedef struct Account
{
	const SbxField *fields; /* of the kind */
	SbxFieldValue settings[SETTINGS_MAX];
	const char *credentials[SBX_MAX_CREDENTIALS];
	SbxAccount account;
} Account;

extern const SbxAccount *account_reset(Account *account);
extern void account_text(Account *account, const char *field, const char *value);
extern void account_integer(Account *account, const char *field, int64_t value);
extern void account_boolean(Account *account, const char *field, bool value);

/* The one that all tests use: each resets it first. */
extern Account account;

/* A launch of NAME with nothing else, and a run of "run-1". */
extern SbxLaunchInput plain_input(void);
extern SbxRunInput plain_run(const char *command);

/* A launch whose create is out, whose first look is, and whose first probe is. */
extern Drive launched(void);
extern Drive created(void);
extern Drive started(void);

/* An operation whose look found the sandbox started: its toolbox is asked. */
extern Drive opened(SbxOp *op);

/* A member of data/daytona.json, and all of them. */
extern const json_t *golden(const char *name);
extern const json_t *golden_all(void);

/* Answers what was recorded. */
extern void drive_recorded(Drive *drive, const char *name);

/* --- E2B fixtures (unit_e2b.c) -------------------------------------------- */

#define E2B_API     "https://api.e2b.app"
#define E2B_ID      "i1a2b3c4d5e6f7g8h9j0k"
#define E2B_SANDBOX E2B_API "/sandboxes/" E2B_ID
#define E2B_ENVD    "https://sandbox.e2b.app"
#define E2B_START   E2B_ENVD "/process.Process/Start"

/* A description of the sandbox in a state, as the control plane writes it. */
#define E2B_DTO(state)                                                                 \
	"{\"sandboxID\":\"" E2B_ID "\",\"templateID\":\"base\",\"state\":\"" state         \
	"\",\"metadata\":{\"sbx-router-id\":\"" NAME "\",\"k\":\"v\"},"                    \
	"\"startedAt\":\"2026-12-01T10:00:00.5Z\",\"envdAccessToken\":\"envd-token\","     \
	"\"domain\":null}"

/* The account that all tests use, of this kind, with nothing but a key. */
extern const SbxAccount *e2b_account(void);
extern const SbxTarget e2b_target;

/* An operation whose look found the sandbox running. */
extern Drive e2b_opened(SbxOp *op);

/* The same for a run of a command, with its lifetime set: its stream is asked for. */
extern Drive e2b_running(const SbxRunInput *input);

/* A stream of messages; the flags of one that ends it are 2. */
typedef struct Stream
{
	char *bytes;
	size_t length;
} Stream;

extern void stream_add(Stream *stream, int flags, const char *json);
extern void
stream_data(Stream *stream, const char *name, const char *bytes, size_t length);
extern void stream_free(Stream *stream);

/* All of it and a 200; a stream is given in pieces of that many bytes. */
extern void drive_stream(Drive *drive, Stream *stream, size_t piece);

/* A command that printed this and ended. */
extern void drive_printed(Drive *drive, const char *text, int exit_code);

#define STREAM_START "{\"event\":{\"start\":{\"pid\":7}}}"
#define STREAM_ALIVE "{\"event\":{\"keepalive\":{}}}"
#define STREAM_END                                                                     \
	"{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}"
#define STREAM_KILLED                                                                  \
	"{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\"}}}"

/* Requests to each plane carry its own secret only: a test. */
extern void is_secret_kept(const Drive *drive, const char *name);

/* --- Vercel fixtures (unit_vercel.c) -------------------------------------- */

#define VERCEL_API     "https://vercel.com/api"
#define VERCEL_SCOPE   "?teamId=team_1&projectId=prj_1"
#define VERCEL_SANDBOX VERCEL_API "/v2/sandboxes/" NAME VERCEL_SCOPE
#define VERCEL_SESSION VERCEL_API "/v2/sandboxes/sessions/sbx_SESSION1"

/* A sandbox in a state with members of its own, and the answer about it. */
#define VERCEL_ROW(state, more)                                                        \
	"{\"name\":\"" NAME "\",\"persistent\":true,\"status\":\"" state                   \
	"\",\"currentSessionId\":\"sbx_SESSION1\",\"createdAt\":1790000000000,"            \
	"\"tags\":{\"sbx-router-id\":\"" NAME "\",\"k\":\"v\"}" more "}"
#define VERCEL_DTO_OF(row, state)                                                      \
	"{\"sandbox\":" row ",\"session\":{\"id\":\"sbx_SESSION1\",\"status\":\"" state    \
	"\"},\"routes\":[]}"
#define VERCEL_DTO(state) VERCEL_DTO_OF(VERCEL_ROW("running", ""), state)

extern const SbxAccount *vercel_account(void);
extern const SbxTarget vercel_target;

/* An operation whose look found the sandbox running. */
extern Drive vercel_opened(SbxOp *op);

/* A run of a command whose stream was given in pieces and ended so. */
extern Drive
vercel_ran(const SbxRunInput *input, const char *lines, size_t piece, int status);

#define VERCEL_BEGUN  "{\"command\":{\"id\":\"cmd_1\",\"exitCode\":null}}\n"
#define VERCEL_END(n) "{\"command\":{\"id\":\"cmd_1\",\"exitCode\":" n "}}\n"
#define VERCEL_OUT(s) "{\"stream\":\"stdout\",\"data\":\"" s "\"}\n"
#define VERCEL_ERR(s) "{\"stream\":\"stderr\",\"data\":\"" s "\"}\n"
#define VERCEL_MARKED(n)                                                               \
	VERCEL_OUT("\\u0001run-1:" n "\\u0002") VERCEL_ERR("\\u0001run-1:" n "\\u0002")

/* --- Agent37 fixtures (unit_agent37.c) ------------------------------------- */

#define AGENT37_API      "https://api.agent37.com"
#define AGENT37_ID       "ab12cd34ef"
#define AGENT37_LIST     AGENT37_API "/v1/instances"
#define AGENT37_INSTANCE AGENT37_LIST "/" AGENT37_ID
#define AGENT37_EXEC     AGENT37_INSTANCE "/exec"
#define AGENT37_URL      "https://" AGENT37_ID ".agent37.app"
#define AGENT37_FILES    AGENT37_URL "/v1/files/content?path="

/* A description of an instance in a state, as the hosting plane writes it. */
#define AGENT37_OBJECT(status, url)                                                    \
	"{\"id\":\"" AGENT37_ID "\",\"status\":\"" status                                  \
	"\",\"resources\":{\"cpu\":2,\"memory\":4,\"disk\":6},\"url\":" url                \
	",\"name\":\"n\",\"metadata\":{\"sbx-router-id\":\"" NAME                          \
	"\",\"k\":\"v\"},\"created\":1781222400}"
#define AGENT37_DTO(status) AGENT37_OBJECT(status, "\"" AGENT37_URL "\"")

#define AGENT37_ERROR(code)                                                            \
	"{\"error\":{\"code\":\"" code "\",\"message\":\"203.0.113.9 said\"}}"
#define AGENT37_EDGE(code) "{\"error\":\"" code "\"}"

/* The account that all tests use, of this kind, with nothing but a key. */
extern const SbxAccount *agent37_account(void);
extern const SbxTarget agent37_target;

/* An operation whose look found the instance running; a run whose exec is out. */
extern Drive agent37_opened(SbxOp *op);
extern Drive agent37_running(const SbxRunInput *input);

/* The key goes to its plane in that one's header only: tests. */
extern void is_agent37_key_kept(const Drive *drive, const char *name);

/* --- Freestyle fixtures (unit_freestyle.c) --------------------------------- */

#define FREESTYLE_API     "https://api.freestyle.sh"
#define FREESTYLE_ID      "vm-0123456789abcdef0123456789abcdef"
#define FREESTYLE_SLUG    "sbx-0123456789abcdef0123456789abcdef"
#define FREESTYLE_VMS     FREESTYLE_API "/v5/vms"
#define FREESTYLE_VM      FREESTYLE_VMS "/" FREESTYLE_ID
#define FREESTYLE_BY_SLUG FREESTYLE_VMS "/" FREESTYLE_SLUG
#define FREESTYLE_EXEC    FREESTYLE_VM "/exec-await"
#define FREESTYLE_RESULT  FREESTYLE_API "/v5/background-requests/ri-1"

/* A description of a machine in a state, with members of its own. */
#define FREESTYLE_ROW(id, state, more)                                                 \
	"{\"id\":\"" id "\",\"state\":\"" state "\",\"slug\":\"" FREESTYLE_SLUG            \
	"\",\"resources\":{\"cpu\":4,\"memory\":8192,\"storage\":32768},"                  \
	"\"metadata\":{\"sbx-router-id\":\"" NAME                                          \
	"\",\"k\":\"v\"},\"createdAt\":\"2026-09-20T10:00:00Z\"" more "}"
#define FREESTYLE_DTO(state)        FREESTYLE_ROW(FREESTYLE_ID, state, "")
#define FREESTYLE_LIST(rows, total) "{\"vms\":[" rows "],\"totalCount\":" total "}"

#define FREESTYLE_ERROR(code) "{\"code\":\"" code "\",\"message\":\"203.0.113.9 said\"}"
#define FREESTYLE_GONE        FREESTYLE_ERROR("NOT_FOUND")

/* "Later", and what says whose a real answer is. */
#define FREESTYLE_LATER                                                                \
	"{\"requestId\":\"ri-1\",\"resultUrl\":\"/v5/background-requests/ri-1\"}"
#define FREESTYLE_OF "X-Freestyle-Background-Request-Id: ri-1\r\n"

/* The account that all tests use, of this kind, with nothing but a key. */
extern const SbxAccount *freestyle_account(void);
extern const SbxTarget freestyle_target;

/* A launch whose create is out; an operation whose look found the machine running. */
extern Drive freestyle_creating(void);
extern Drive freestyle_opened(SbxOp *op);

/* A run whose command is out. */
extern Drive freestyle_running(const char *command);

/* The key goes to the provider, as a bearer: tests. */
extern void is_freestyle_key_kept(const Drive *drive, const char *name);

/* --- Microsandbox fixtures (unit_microsandbox.c) --------------------------- */

#define MICRO_API     "https://api.microsandbox.dev/v1/sandboxes"
#define MICRO_ID      "00000000-0000-4000-8000-000000000001"
#define MICRO_SANDBOX MICRO_API "/" MICRO_ID
#define MICRO_AGENT   MICRO_SANDBOX "/agent"
#define MICRO_GONE    "{\"error\":{\"code\":\"sandbox_not_found\"}}"

/* A description of the sandbox in a state. */
#define MICRO_DTO(status)                                                              \
	"{\"id\":\"" MICRO_ID "\",\"name\":\"" NAME "\",\"status\":\"" status              \
	"\",\"spec\":{\"labels\":{\"sbx-router-id\":\"" NAME                               \
	"\",\"k\":\"v\"},\"resources\":{\"vcpus\":2,\"memory_mib\":1024}},"                \
	"\"ephemeral\":false,\"created_at\":\"2026-08-22T10:00:00Z\"}"

/* The account that all tests use, of this kind, with an image and a key. */
extern const SbxAccount *micro_account(void);
extern const SbxTarget micro_target;
extern SbxOp *micro_run(const SbxRunInput *input);

/* Of data/microsandbox.json: all, one, what one side said; and its answer is given. */
extern const json_t *micro_recorded_all(void);
extern const json_t *micro_recorded(const char *name);
extern void micro_forget_recorded(void);
extern Stream micro_recorded_frames(const char *name, const char *from);
extern void drive_micro(Drive *drive, const char *name);

/* Bytes from hex digits. */
extern Stream micro_hex(const char *digits);

/* A frame of the agent for our command; the payload has one member at most. */
extern void micro_frame(Stream *stream, const char *type, unsigned flags,
                        const char *key, const char *bytes, size_t length);
extern void micro_exited(Stream *stream, int code);

/* The greeting of an agent, which is ready. */
extern Stream micro_greeting(void);

/* All of it and the end of the socket; the stream is given in pieces of that many bytes. */
extern void drive_talk(Drive *drive, Stream *stream, size_t piece);

/* A command that printed this and ended. */
extern void drive_talk_printed(Drive *drive, const char *text, int exit_code);

/* --- exhaustion (test_exhaustion.c) --------------------------------------- */

/* Of a stream the body is its messages, a line each; a blank starts the last one. */
typedef struct Answer
{
	int status; /* 0 = no answer */
	const char *body;
} Answer;

typedef struct Scenario
{
	const char *name;
	SbxOp *(*make)(void);
	const Answer *answers;
	int answer_count;
	bool has_lines; /* its streams are lines as they are */
} Scenario;

#define SCENARIO(name, make, answers)                                                  \
	{                                                                                  \
		name, make, answers, sizeof(answers) / sizeof(answers[0]), false               \
	}
#define SCENARIO_OF_LINES(name, make, answers)                                         \
	{                                                                                  \
		name, make, answers, sizeof(answers) / sizeof(answers[0]), true                \
	}

/* Plays it with everything ending everywhere. */
extern void exhaust(const Scenario *scenarios, size_t count);
extern void test_e2b_exhaustion(void);

/* --- real shells (unit_shell.c) ------------------------------------------ */

#define SHELLS 2

extern const char *const shells[SHELLS];
extern char shell_directory[];

typedef struct ShellRun
{
	bool noted; /* an exit code was noted: the shell had not ended */
	int exit_code;
	char out[4096];
	char err[4096];
} ShellRun;

/* The directory that they work in; the end of it is a test. */
extern void shell_begin(void);
extern void shell_end(void);
extern void shell_path(char *path, const char *name);

/* Source a text in a shell whose standard input has something to steal. */
extern ShellRun shell_source(const char *shell, const char *text);

/* The same as one command that is not in a session. */
extern ShellRun shell_piped(const char *shell, const char *text);

/* Where the texts find programs: everywhere, or where all but one of them are. */
extern const char *shell_programs;
extern const char *shell_without(const char *program);

/* A run whose files in /tmp no other process's tests have. */
extern char shell_run_id[];
extern SbxRunInput shell_input(const char *command);

/* Are all members of a group dead, though perhaps not reaped? */
extern bool shell_all_dead(pid_t group);

/* What the adapter sends for an input; the caller frees it. */
extern char *shell_wrapped(const SbxRunInput *input);

#endif /* SBX_UNIT_H */
