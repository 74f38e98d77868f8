/*
 * unit.c
 *		TAP output, canned answers, failing allocators.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

static int test_count;
static int failed_count;
static const char *section_name = "";

/* --- TAP ---------------------------------------------------------------- */

void
section(const char *name)
{
	section_name = name;
}

static bool
report(bool passed, const char *format, va_list arguments)
{
	test_count++;
	if (!passed)
		failed_count++;
	printf("%s %d - %s: ", passed ? "ok" : "not ok", test_count, section_name);
	vprintf(format, arguments);
	printf("\n");
	fflush(stdout);
	return passed;
}

bool
ok(bool condition, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(condition, format, arguments);
	va_end(arguments);
	return condition;
}

bool
is_text(const char *got, const char *expected, const char *format, ...)
{
	bool passed = (got == NULL || expected == NULL) ? got == expected
	                                                : strcmp(got, expected) == 0;
	va_list arguments;

	va_start(arguments, format);
	report(passed, format, arguments);
	va_end(arguments);
	if (!passed)
		printf("#      got: %s\n# expected: %s\n", got != NULL ? got : "(null)",
		       expected != NULL ? expected : "(null)");
	return passed;
}

bool
is_number(int64_t got, int64_t expected, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	report(got == expected, format, arguments);
	va_end(arguments);
	if (got != expected)
		printf("#      got: %lld\n# expected: %lld\n", (long long) got,
		       (long long) expected);
	return got == expected;
}

/* --- lack of memory ----------------------------------------------------- */

long unit_mallocs_left = -1;
size_t unit_arena_limit = 0;
size_t unit_arena_used = 0;

extern void *__real_malloc(size_t size);
extern void *__wrap_malloc(size_t size);
extern void *__real_calloc(size_t count, size_t size);
extern void *__wrap_calloc(size_t count, size_t size);
extern SbxOp *
__real_sbx_op_create(const char *operation, SbxOpWant (*advance)(SbxOp *),
                     size_t state_size, size_t first_block, int64_t timeout_ms);
extern SbxOp *
__wrap_sbx_op_create(const char *operation, SbxOpWant (*advance)(SbxOp *),
                     size_t state_size, size_t first_block, int64_t timeout_ms);
extern void __real_sbx_op_free(SbxOp *op);
extern void __wrap_sbx_op_free(SbxOp *op);

static bool
malloc_is_due(void)
{
	if (unit_mallocs_left < 0)
		return true;
	if (unit_mallocs_left == 0)
		return false;
	unit_mallocs_left--;
	return true;
}

void *
__wrap_malloc(size_t size)
{
	return malloc_is_due() ? __real_malloc(size) : NULL;
}

void *
__wrap_calloc(size_t count, size_t size)
{
	return malloc_is_due() ? __real_calloc(count, size) : NULL;
}

SbxOp *
__wrap_sbx_op_create(const char *operation, SbxOpWant (*advance)(SbxOp *),
                     size_t state_size, size_t first_block, int64_t timeout_ms)
{
	SbxOp *op =
	    __real_sbx_op_create(operation, advance, state_size, first_block, timeout_ms);

	if (op != NULL && unit_arena_limit > 0)
		op->arena.limit = unit_arena_limit;
	return op;
}

void
__wrap_sbx_op_free(SbxOp *op)
{
	if (op != NULL)
		unit_arena_used = op->arena.used;
	__real_sbx_op_free(op);
}

/* --- driving ------------------------------------------------------------ */

static void
drive_advance(Drive *drive)
{
	drive->steps++;
	drive->op->rest_ms = drive->op->timeout_ms - drive->op->elapsed_ms;
	drive->want = drive->op->advance(drive->op);

	/* A driver frees the answer now: whoever still points at it is found out. */
	free((char *) drive->op->response.body);
	free((char *) drive->op->response.headers);
	memset(&drive->op->response, 0, sizeof(drive->op->response));
}

void
drive_start(Drive *drive, SbxOp *op)
{
	memset(drive, 0, sizeof(*drive));
	drive->op = op;
	drive_advance(drive);
}

void
drive_answer_bytes(Drive *drive, int status, const char *body, size_t length)
{
	SbxHttpResponse *response = &drive->op->response;
	char *copy = __real_malloc(length + 1);

	memcpy(copy, body, length);
	copy[length] = '\0';
	response->status = status;
	response->body = copy;
	response->body_length = length;
	response->request_sent = true;
	drive_advance(drive);
}

void
drive_answer(Drive *drive, int status, const char *body)
{
	drive_answer_bytes(drive, status, body, strlen(body));
}

void
drive_headed(Drive *drive, int status, const char *headers, const char *body)
{
	drive->op->response.headers = strdup(headers);
	drive_answer(drive, status, body);
}

bool
drive_feed(Drive *drive, const char *bytes, size_t length, size_t piece)
{
	SbxOp *op = drive->op;
	bool (*take)(SbxOp * op, const char *bytes, size_t length) =
	    op->request.talk != NULL ? op->request.talk : op->request.take_body;
	bool more = true;

	if (drive->want != SBX_OP_WANT_HTTP || take == NULL)
		return ok(false, "a stream is asked for");
	for (size_t at = 0; at < length && more; at += piece)
	{
		size_t part = length - at < piece ? length - at : piece;
		char *copy = __real_malloc(part);

		/* Exactly as long: who reads on is found out. */
		memcpy(copy, bytes + at, part);
		more = take(op, copy, part);
		free(copy);
	}
	return more;
}

void
drive_response(Drive *drive, SbxHttpResponse response)
{
	drive->op->response = response;
	drive_advance(drive);
}

void
drive_no_answer(Drive *drive, SbxPhase phase, bool sent, bool timed_out)
{
	drive->op->response.failed_phase = phase;
	drive->op->response.request_sent = sent;
	drive->op->response.timed_out = timed_out;
	if (timed_out)
		drive->op->elapsed_ms += drive->op->request.timeout_ms;
	drive_advance(drive);
}

void
drive_pause_over(Drive *drive)
{
	drive->op->elapsed_ms += drive->op->pause_ms;
	drive_advance(drive);
}

void
drive_answer_always(Drive *drive, int status, const char *body)
{
	do
	{
		if (drive->want == SBX_OP_WANT_PAUSE)
			drive_pause_over(drive);
		if (status == 0)
			drive_no_answer(drive, SBX_PHASE_CONNECT, false, false);
		else
			drive_answer(drive, status, body);
	} while (drive->want == SBX_OP_WANT_PAUSE && drive->steps < 1000);
}

void
drive_expire(Drive *drive)
{
	drive->op->expired = true;
	drive_advance(drive);
}

void
drive_end(Drive *drive)
{
	sbx_op_free(drive->op);
	drive->op = NULL;
}

bool
asks(const Drive *drive, const char *method, const char *url, const char *format, ...)
{
	const SbxHttpRequest *request = &drive->op->request;
	bool passed = drive->want == SBX_OP_WANT_HTTP &&
	              strcmp(request->method, method) == 0 &&
	              strcmp(request->url, url) == 0;
	va_list arguments;

	va_start(arguments, format);
	report(passed, format, arguments);
	va_end(arguments);
	if (!passed)
		printf("#      got: want %d %s %s (failure %s %d %s)\n# expected: %s %s\n",
		       drive->want, request->method, request->url,
		       sbx_phase_name(drive->op->failure.phase), drive->op->failure.http_status,
		       drive->op->failure.provider_code ? drive->op->failure.provider_code
		                                        : "-",
		       method, url);
	return passed;
}

bool
pauses(const Drive *drive, int64_t ms, const char *format, ...)
{
	bool passed = drive->want == SBX_OP_WANT_PAUSE && drive->op->pause_ms == ms;
	va_list arguments;

	va_start(arguments, format);
	report(passed, format, arguments);
	va_end(arguments);
	if (!passed)
		printf("#      got: want %d, pause %lld\n", drive->want,
		       (long long) drive->op->pause_ms);
	return passed;
}

bool
fails(const Drive *drive, SbxPhase phase, int status, const char *code,
      SbxAllocation allocation, const char *format, ...)
{
	const SbxFailure *failure = &drive->op->failure;
	bool same_code = code == NULL || failure->provider_code == NULL
	                     ? code == failure->provider_code
	                     : strcmp(code, failure->provider_code) == 0;
	bool passed = drive->want == SBX_OP_WANT_NOTHING && !drive->op->succeeded &&
	              failure->phase == phase && failure->http_status == status &&
	              failure->allocation == allocation && same_code;
	va_list arguments;

	va_start(arguments, format);
	report(passed, format, arguments);
	va_end(arguments);
	if (!passed)
		printf("#      got: want %d, succeeded %d, %s %d %s %s\n"
		       "# expected: %s %d %s %s\n",
		       drive->want, drive->op->succeeded, sbx_phase_name(failure->phase),
		       failure->http_status,
		       failure->provider_code ? failure->provider_code : "-",
		       sbx_allocation_name(failure->allocation), sbx_phase_name(phase), status,
		       code ? code : "-", sbx_allocation_name(allocation));
	return passed;
}

void
is_in_vain(Drive drive, const char *unmoved, const char *verb)
{
	int asked = 0;
	int looks = 0;

	while (drive.want != SBX_OP_WANT_NOTHING && asked + looks < 100)
	{
		bool asks_for_it = drive.want == SBX_OP_WANT_HTTP &&
		                   strcmp(drive.op->request.method, "POST") == 0;

		if (drive.want == SBX_OP_WANT_PAUSE)
		{
			drive_pause_over(&drive);
			continue;
		}
		asked += asks_for_it;
		looks += !asks_for_it;
		drive_answer(&drive, 200, asks_for_it ? "{}" : unmoved);
	}
	ok(asked == 3 && looks > 20, "must fire: %s is asked for %d times in %d looks",
	   verb, asked, looks);
	ok(drive.op->elapsed_ms > 10000 && drive.op->elapsed_ms < drive.op->timeout_ms,
	   "must fire: with pauses, and not for ever");
	fails(&drive, SBX_PHASE_REMOTE, 200, "IN_VAIN", SBX_ALLOCATION_UNKNOWN,
	      "and %s fails", verb);
	drive_end(&drive);
}

const char *
sent_header(const SbxOp *op, const char *name)
{
	static char line[4096];

	for (int i = 0; i < op->request.header_count; i++)
	{
		const SbxHeader *header = &op->request.headers[i];

		if (strcasecmp(header->name, name) != 0)
			continue;
		snprintf(line, sizeof(line), "%s%s", header->prefix, header->value);
		return line;
	}
	return NULL;
}

/* --- Daytona fixtures --------------------------------------------------- */

const SbxAccount *
account_reset(Account *given)
{
	memset(given, 0, sizeof(*given));
	given->fields = sbx_kind_daytona.settings;
	given->credentials[0] = "<credential>";
	given->account.settings = given->settings;
	given->account.credentials = given->credentials;
	account_text(given, "apiUrl", API);
	return &given->account;
}

static SbxFieldValue *
account_field(Account *given, const char *field)
{
	for (int i = 0; given->fields[i].name != NULL; i++)
	{
		if (strcmp(given->fields[i].name, field) != 0)
			continue;
		given->settings[i].is_set = true;
		return &given->settings[i];
	}
	printf("Bail out! no setting %s\n", field);
	exit(1);
}

void
account_text(Account *given, const char *field, const char *value)
{
	account_field(given, field)->text = value;
}

void
account_integer(Account *given, const char *field, int64_t value)
{
	account_field(given, field)->integer = value;
}

void
account_boolean(Account *given, const char *field, bool value)
{
	account_field(given, field)->boolean = value;
}

Account account;

static const SbxPair no_pairs[1];

SbxLaunchInput
plain_input(void)
{
	SbxLaunchInput input = {.unique_name = NAME, .labels = no_pairs, .env = no_pairs};

	return input;
}

SbxRunInput
plain_run(const char *command)
{
	SbxRunInput input = {.run_id = "run-1",
	                     .command = command,
	                     .command_length = strlen(command),
	                     .timeout_ms = 5000,
	                     .max_stream = 1000};

	return input;
}

Drive
launched(void)
{
	SbxLaunchInput input = plain_input();
	Drive drive;

	drive_start(&drive, sbx_kind_daytona.launch(account_reset(&account), &input));
	return drive;
}

Drive
created(void)
{
	Drive drive = launched();

	drive_answer(&drive, 200, DTO("creating"));
	return drive;
}

Drive
started(void)
{
	Drive drive = created();

	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

Drive
opened(SbxOp *op)
{
	Drive drive;

	drive_start(&drive, op);
	drive_answer(&drive, 200, DTO("started"));
	return drive;
}

/* --- recordings --------------------------------------------------------- */

static json_t *golden_file;

const json_t *
golden_all(void)
{
	char path[4096];

	if (golden_file == NULL)
	{
		snprintf(path, sizeof(path), "%s/daytona.json", getenv("UNIT_DATA"));
		golden_file = json_load_file(path, 0, NULL);
	}
	return golden_file;
}

const json_t *
golden(const char *name)
{
	const json_t *entry = json_object_get(golden_all(), name);

	if (entry != NULL)
		return entry;
	printf("Bail out! no recording %s\n", name);
	exit(1);
}

void
drive_recorded(Drive *drive, const char *name)
{
	const json_t *recorded = golden(name);
	const json_t *answer = json_object_get(recorded, "answer");
	int64_t status = 0;
	char *body;

	sbx_json_integer(recorded, "status", &status);
	body = json_is_object(answer) ? json_dumps(answer, 0) : strdup("");
	drive_answer(drive, (int) status, body);
	free(body);
}

/* Part of a test's name in UNIT_ONLY leaves out all others. */
static const struct
{
	const char *name;
	void (*run)(void);
} tests[] = {
    {"op", test_op},
    {"json", test_json},
    {"daytona_wire", test_daytona_wire},
    {"daytona_launch", test_daytona_launch},
    {"daytona_detached", test_daytona_detached},
    {"daytona_refusals", test_daytona_refusals},
    {"daytona_ready", test_daytona_ready},
    {"daytona_toolbox", test_daytona_toolbox},
    {"daytona_look", test_daytona_look},
    {"daytona_power", test_daytona_power},
    {"daytona_background", test_daytona_background},
    {"daytona_status", test_daytona_status},
    {"daytona_files", test_daytona_files},
    {"daytona_run", test_daytona_run},
    {"daytona_streams", test_daytona_streams},
    {"daytona_shell", test_daytona_shell},
    {"daytona_sessions", test_daytona_sessions},
    {"daytona_texts", test_daytona_texts},
    {"daytona_destroy", test_daytona_destroy},
    {"daytona_traps", test_daytona_traps},
    {"e2b_process", test_e2b_process},
    {"e2b_refusals", test_e2b_refusals},
    {"e2b_launch", test_e2b_launch},
    {"e2b_look", test_e2b_look},
    {"e2b_power", test_e2b_power},
    {"e2b_run", test_e2b_run},
    {"e2b_background", test_e2b_background},
    {"e2b_files", test_e2b_files},
    {"e2b_destroy", test_e2b_destroy},
    {"e2b_planes", test_e2b_planes},
    {"e2b_wire", test_e2b_wire},
    {"e2b_traps", test_e2b_traps},
    {"vercel_wire", test_vercel_wire},
    {"vercel_launch", test_vercel_launch},
    {"vercel_run", test_vercel_run},
    {"vercel_traps", test_vercel_traps},
    {"vercel_exhaustion", test_vercel_exhaustion},
    {"agent37_shell", test_agent37_shell},
    {"agent37_wire", test_agent37_wire},
    {"agent37_refusals", test_agent37_refusals},
    {"agent37_launch", test_agent37_launch},
    {"agent37_look", test_agent37_look},
    {"agent37_power", test_agent37_power},
    {"agent37_run", test_agent37_run},
    {"agent37_files", test_agent37_files},
    {"agent37_destroy", test_agent37_destroy},
    {"agent37_traps", test_agent37_traps},
    {"agent37_exhaustion", test_agent37_exhaustion},
    {"absence", test_absence},
    {"opening", test_opening},
    {"patience", test_patience},
    {"vercel_destroy", test_vercel_destroy},
    {"vercel_list", test_vercel_list},
    {"vercel_files", test_vercel_files},
    {"ndjson", test_ndjson},
    {"vercel_ready", test_vercel_ready},
    {"vercel_settings", test_vercel_settings},
    {"freestyle_wire", test_freestyle_wire},
    {"freestyle_refusals", test_freestyle_refusals},
    {"freestyle_launch", test_freestyle_launch},
    {"freestyle_background", test_freestyle_background},
    {"freestyle_look", test_freestyle_look},
    {"freestyle_power", test_freestyle_power},
    {"freestyle_run", test_freestyle_run},
    {"freestyle_files", test_freestyle_files},
    {"freestyle_destroy", test_freestyle_destroy},
    {"freestyle_traps", test_freestyle_traps},
    {"freestyle_exhaustion", test_freestyle_exhaustion},
    {"usage", test_usage},
    {"websocket", test_websocket},
    {"cbor", test_cbor},
    {"microsandbox", test_microsandbox},
    {"microsandbox_agent", test_microsandbox_agent},
    {"microsandbox_wire", test_microsandbox_wire},
    {"microsandbox_refusals", test_microsandbox_refusals},
    {"microsandbox_traps", test_microsandbox_traps},
    {"microsandbox_exhaustion", test_microsandbox_exhaustion},
    {"connect", test_connect},
    {"e2b_exhaustion", test_e2b_exhaustion},
    {"exhaustion", test_exhaustion},
};

int
main(void)
{
	const char *only = getenv("UNIT_ONLY");

	/* A shell's background job ignores them, and a shell cannot undo that for its own. */
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	sbx_json_init();
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
	{
		if (only == NULL || strstr(tests[i].name, only) != NULL)
			tests[i].run();
	}
	json_decref(golden_file);
	micro_forget_recorded();
	printf("1..%d\n", test_count);
	if (failed_count > 0)
		printf("# %d of %d tests failed\n", failed_count, test_count);
	return failed_count > 0 ? 1 : 0;
}
