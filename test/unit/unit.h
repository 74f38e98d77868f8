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
extern void test_exhaustion(void);

/* --- lack of memory ----------------------------------------------------- */

/* Allocations that still succeed; negative = all. */
extern long unit_mallocs_left;

/* Limit of the arenas of operations made from now on; 0 = as made. */
extern size_t unit_arena_limit;

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
extern void drive_response(Drive *drive, SbxHttpResponse response);
extern void drive_no_answer(Drive *drive, SbxPhase phase, bool sent, bool timed_out);
extern void drive_pause_over(Drive *drive);

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
	SbxFieldValue settings[SETTINGS_MAX];
	const char *credentials[1];
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

/* What the adapter sends for an input; the caller frees it. */
extern char *shell_wrapped(const SbxRunInput *input);

#endif /* SBX_UNIT_H */
