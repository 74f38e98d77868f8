/*
 * steps.c
 *		The frame of an adapter's operations.
 */
#include "providers/steps.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Waiting for a sandbox: fast while it is likely, then ever slower. */
#define POLL_MS      100
#define POLL_FAST_MS (5 * 1000)
#define POLL_MAX_MS  1000

/*
 * Destroying what is perhaps still being made, which settles within seconds to a minute:
 * patient, but not slow to notice.  Given up after about 8 s of trouble.
 */
#define RETRY_MS     200
#define RETRY_MAX_MS 2000
#define TROUBLE_MAX  8

/* A provider may ask for a longer pause, but for half of the operation's time at most. */
#define ASKED_MAX_MS 20000

/* Looks at what has been asked for before it is asked for again, and how often that is. */
#define IN_VAIN_LOOKS 8
#define IN_VAIN_ASKED 3

static SbxStep steps_advance;
static SbxOpWant steps_fail_expired(SbxOp *op);

SbxOp *
sbx_steps_make(const char *operation, SbxStep *first_step, size_t state_size,
               size_t first_block, int64_t timeout_ms)
{
	SbxOp *op =
	    sbx_op_create(operation, steps_advance, state_size, first_block, timeout_ms);

	if (op != NULL)
		((SbxSteps *) op->state)->step = first_step;
	return op;
}

/* Some copies may have found no memory: no operation is better than half of one. */
SbxOp *
sbx_steps_made(SbxOp *op)
{
	if (!op->arena.out_of_memory)
		return op;
	sbx_op_free(op);
	return NULL;
}

/*
 * Runs one step and then applies the rules that hold in all of them, so that no
 * step has to think of lack of memory or time.
 */
static SbxOpWant
steps_advance(SbxOp *op)
{
	SbxSteps *steps = op->state;
	SbxOpWant want = steps->step(op);
	bool finished = want == SBX_OP_WANT_NOTHING;

	/* What a step built without memory must not be used. */
	if (op->arena.out_of_memory && !steps->tidying && (!finished || op->succeeded))
		return sbx_steps_fail(op, steps->sent ? SBX_PHASE_PROTOCOL : SBX_PHASE_NONE,
		                      NULL);

	/* Tidying up ends where there is no memory for an address; the outcome is known. */
	if (want == SBX_OP_WANT_HTTP && op->request.url == NULL)
		return steps->result != NULL
		           ? sbx_op_succeed(op, steps->result)
		           : sbx_steps_fail_noted(op, steps->noted.provider_code);

	/* The last step, too, may use an answer that came in time, but ask no more. */
	if (op->expired && !finished && steps->result != NULL)
		return sbx_op_succeed(op, steps->result);
	if (op->expired && !finished)
		return steps_fail_expired(op);
	if (op->expired && !op->succeeded && op->failure.http_status == 0 &&
	    op->failure.provider_code == NULL)
		op->failure.provider_code = steps->timeout_code;

	/* From here on nothing is proven, except by an answer. */
	if (want == SBX_OP_WANT_HTTP)
	{
		steps->sent = true;
		if (steps->allocation == SBX_ALLOCATION_NONE)
			steps->allocation = SBX_ALLOCATION_UNKNOWN;
	}
	return want;
}

/* --- endings and pauses --------------------------------------------------- */

SbxOpWant
sbx_steps_refuse(SbxOp *op)
{
	return sbx_op_fail(op, SBX_PHASE_NONE, NULL, SBX_ALLOCATION_NONE);
}

SbxOpWant
sbx_steps_fail(SbxOp *op, SbxPhase phase, const char *code)
{
	SbxSteps *steps = op->state;

	sbx_op_fail(op, phase, code, steps->allocation);
	op->failure.request_sent |= steps->acted;
	return SBX_OP_WANT_NOTHING;
}

SbxOpWant
sbx_steps_fail_response(SbxOp *op, const char *code)
{
	SbxSteps *steps = op->state;

	sbx_op_fail_response(op, code, steps->allocation);
	op->failure.request_sent |= steps->acted;
	return SBX_OP_WANT_NOTHING;
}

/*
 * An exchange that the end of the time cut short went no more wrong than that: what was
 * noted before is still the reason.
 */
void
sbx_steps_note(SbxOp *op, const char *code)
{
	SbxSteps *steps = op->state;

	if (op->expired && op->response.status == 0 && steps->noted.phase != SBX_PHASE_NONE)
		return;
	sbx_steps_fail_response(op, code);
	steps->noted = op->failure;
}

/* Not with what tidying up met afterwards. */
SbxOpWant
sbx_steps_fail_noted(SbxOp *op, const char *code)
{
	SbxSteps *steps = op->state;

	sbx_op_fail(op, steps->noted.phase, code, steps->allocation);
	op->failure = steps->noted;
	op->failure.provider_code = code;
	op->failure.allocation = steps->allocation;
	op->failure.request_sent |= steps->acted;
	return SBX_OP_WANT_NOTHING;
}

/*
 * "Too late" alone helps nobody: if an attempt was refused before the time was
 * over, that refusal is the reason, and the flag says that time ended it.
 */
static SbxOpWant
steps_fail_expired(SbxOp *op)
{
	SbxSteps *steps = op->state;

	if (steps->noted.phase != SBX_PHASE_NONE)
		sbx_steps_fail_noted(op, steps->noted.provider_code);
	else
	{
		sbx_steps_fail(op, steps->sent ? SBX_PHASE_RECEIVE : SBX_PHASE_NONE,
		               steps->timeout_code);
		op->failure.http_status = 0;
	}
	op->failure.timed_out = true;
	return SBX_OP_WANT_NOTHING;
}

SbxOpWant
sbx_steps_pause(SbxOp *op, int64_t ms, SbxStep *next)
{
	SbxSteps *steps = op->state;
	int64_t asked_ms = sbx_op_retry_after(op) * INT64_C(1000);

	if (asked_ms > ASKED_MAX_MS)
		asked_ms = ASKED_MAX_MS;
	if (asked_ms > op->rest_ms / 2)
		asked_ms = op->rest_ms / 2;
	if (ms < asked_ms)
		ms = asked_ms;
	steps->waited_ms += ms;
	steps->step = next;
	return sbx_op_pause(op, ms);
}

/* The pauses so far stand for the time: a step has no clock. */
SbxOpWant
sbx_steps_wait(SbxOp *op, SbxStep *next)
{
	SbxSteps *steps = op->state;

	if (steps->pause_ms == 0)
		steps->pause_ms = POLL_MS;
	if (steps->waited_ms >= POLL_FAST_MS)
		steps->pause_ms += steps->pause_ms / 10;
	if (steps->pause_ms > POLL_MAX_MS)
		steps->pause_ms = POLL_MAX_MS;
	return sbx_steps_pause(op, steps->pause_ms, next);
}

void
sbx_steps_allow_unready(SbxOp *op, const json_t *sandbox,
                        SbxSandboxFacts *(*facts_of)(SbxOp *op, const json_t *sandbox))
{
	SbxSteps *steps = op->state;
	SbxSandboxFacts *facts;

	if (!steps->unready_is_result || steps->result != NULL)
		return;
	facts = facts_of(op, sandbox);
	if (facts != NULL)
		facts->state = SBX_STATE_STARTING;
	steps->result = facts;
}

SbxOpWant
sbx_steps_retry(SbxOp *op, SbxStep *step)
{
	SbxSteps *steps = op->state;
	int64_t pause_ms = steps->pause_ms > 0 ? steps->pause_ms : RETRY_MS;

	steps->pause_ms = pause_ms + pause_ms / 2;
	if (steps->pause_ms > RETRY_MAX_MS)
		steps->pause_ms = RETRY_MAX_MS;
	return sbx_steps_pause(op, pause_ms, step);
}

/* False = there was too much of it. */
static bool
steps_bear_trouble(SbxOp *op)
{
	SbxSteps *steps = op->state;

	steps->trouble += sbx_steps_may_have_arrived(op) ? 1 : 2;
	return steps->trouble < TROUBLE_MAX;
}

SbxOpWant
sbx_steps_retry_after_trouble(SbxOp *op, SbxStep *step)
{
	SbxSteps *steps = op->state;

	sbx_steps_note(op, sbx_steps_status_code(op));
	return steps_bear_trouble(op)
	           ? sbx_steps_retry(op, step)
	           : sbx_steps_fail_noted(op, steps->noted.provider_code);
}

SbxOpWant
sbx_steps_looked(SbxOp *op, SbxStep *look, SbxStep *judge)
{
	SbxSteps *steps = op->state;

	if (sbx_steps_is_passing(op) && !op->response.timed_out && !op->expired &&
	    steps_bear_trouble(op))
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_retry(op, look);
	}

	/* What went wrong before is no reason of what comes now. */
	memset(&steps->noted, 0, sizeof(steps->noted));
	steps->trouble = 0;
	steps->pause_ms = 0;
	return judge(op);
}

SbxOpWant
sbx_steps_ask(SbxOp *op, SbxStep *look, SbxStep *ask)
{
	SbxSteps *steps = op->state;

	if (!steps->accepted)
		return ask(op);
	steps->unmoved++;
	sbx_steps_note(op, "IN_VAIN");
	if (steps->unmoved % IN_VAIN_LOOKS != 0)
		return sbx_steps_retry(op, look);
	return steps->unmoved < IN_VAIN_LOOKS * IN_VAIN_ASKED
	           ? ask(op)
	           : sbx_steps_fail_noted(op, "IN_VAIN");
}

SbxOpWant
sbx_steps_destroyed(SbxOp *op, SbxDestroyResult result)
{
	SbxSteps *steps = op->state;

	steps->destroyed = result;
	return sbx_op_succeed(op, &steps->destroyed);
}

SbxOpWant
sbx_steps_nothing_left(SbxOp *op)
{
	SbxSteps *steps = op->state;

	return sbx_steps_destroyed(op,
	                           steps->acted ? SBX_DESTROY_DONE : SBX_DESTROY_WAS_GONE);
}

/* --- requests ------------------------------------------------------------- */

void
sbx_steps_request(SbxOp *op, const char *method, const char *url, int64_t timeout_ms)
{
	SbxSteps *steps = op->state;

	sbx_op_request(op, method, url, strcmp(method, "POST") != 0);
	op->request.timeout_ms = timeout_ms;
	steps->unsendable = false;
}

void
sbx_steps_header(SbxOp *op, const char *name, const char *prefix, const char *value)
{
	SbxSteps *steps = op->state;

	steps->unsendable |= !sbx_op_header(op, name, prefix, value);
}

/*
 * Where a header could not be written, nothing of the request leaves.  Of the first one
 * that is what we were given; of a later one it is what an answer gave.
 */
SbxOpWant
sbx_steps_send(SbxOp *op, const char *content_type, const char *bytes, size_t length,
               SbxStep *answer)
{
	SbxSteps *steps = op->state;

	sbx_steps_header(op, "User-Agent", "", "sbx_router/1.0");
	if (content_type != NULL)
		sbx_steps_header(op, "Content-Type", "", content_type);
	if (steps->unsendable)
		return steps->sent ? sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL)
		                   : sbx_steps_refuse(op);
	op->request.body = bytes;
	op->request.body_length = length;
	steps->step = answer;
	return SBX_OP_WANT_HTTP;
}

SbxOpWant
sbx_steps_send_json(SbxOp *op, const char *body, SbxStep *answer)
{
	sbx_steps_header(op, "Accept", "", "application/json");
	return sbx_steps_send(op, body == NULL ? NULL : "application/json", body,
	                      body == NULL ? 0 : strlen(body), answer);
}

/* --- launches ------------------------------------------------------------- */

int64_t
sbx_steps_create_ms(const SbxLaunchInput *input, const SbxFieldValue *seconds,
                    int64_t default_ms)
{
	if (input->create_timeout_ms > 0)
		return input->create_timeout_ms;
	return seconds->is_set ? seconds->integer * 1000 : default_ms;
}

const char *
sbx_steps_launch_body(SbxOp *op, json_t *body)
{
	SbxSteps *steps = op->state;
	const char *text = body == NULL ? NULL : sbx_json_print(&op->arena, body);

	steps->allocation = SBX_ALLOCATION_NONE;
	if (body == NULL)
		steps->step = sbx_steps_refuse;
	json_decref(body);
	return text;
}

/* --- answers -------------------------------------------------------------- */

bool
sbx_steps_may_have_arrived(const SbxOp *op)
{
	return op->response.request_sent || op->response.failed_phase == SBX_PHASE_NONE;
}

bool
sbx_steps_is_success(const SbxOp *op)
{
	return op->response.status >= 200 && op->response.status <= 299;
}

bool
sbx_steps_is_refusal(const SbxOp *op)
{
	int status = op->response.status;

	return !sbx_steps_may_have_arrived(op) ||
	       (status >= 400 && status < 500 && !sbx_steps_is_passing(op));
}

bool
sbx_steps_may_have_worked(const SbxOp *op)
{
	return op->response.resent ||
	       (!sbx_steps_is_refusal(op) && op->response.status != 429);
}

bool
sbx_steps_is_passing(const SbxOp *op)
{
	const SbxHttpResponse *response = &op->response;

	return (response->status == 0 && !response->too_large) || response->status == 408 ||
	       response->status == 429 || response->status >= 500;
}

bool
sbx_steps_is_absent(const SbxOp *op)
{
	json_t *answer = op->response.status == 404 ? sbx_steps_object(op, true) : NULL;
	bool says = answer != NULL;

	json_decref(answer);
	return says || (op->response.status == 404 && op->response.body_length == 0);
}

const char *
sbx_steps_status_code(const SbxOp *op)
{
	switch (op->response.status)
	{
		case 401:
			return SBX_CODE_UNAUTHORIZED;
		case 403:
			return "FORBIDDEN";
		case 429:
			return "RATE_LIMITED";
	}
	return NULL;
}

/*
 * NULL also for an answer that is something else: a wrong base URL may answer
 * everything with 200 and a web page.
 */
json_t *
sbx_steps_object(const SbxOp *op, bool allow_nul)
{
	json_t *object;

	if (op->response.status == 0)
		return NULL;
	object = sbx_json_parse(op->response.body, op->response.body_length, allow_nul);
	if (object != NULL && !json_is_object(object))
	{
		json_decref(object);
		object = NULL;
	}
	return object;
}

/* --- addresses, ids and labels -------------------------------------------- */

const char *
sbx_steps_base_url(SbxOp *op, const char *url)
{
	size_t length = strlen(url);

	if (length > 0 && url[length - 1] == '/')
		length--;
	return sbx_arena_strndup(&op->arena, url, length);
}

bool
sbx_steps_valid_id(const char *id)
{
	size_t length;

	if (id == NULL || *id == '\0' || strcmp(id, ".") == 0 || strcmp(id, "..") == 0)
		return false;
	length = strlen(id);
	return length <= SBX_SANDBOX_ID_MAX && strspn(id, SBX_NAME_BYTES) == length;
}

size_t
sbx_steps_count_characters(const char *text)
{
	size_t count = 0;

	for (; *text != '\0'; text++)
		count += ((unsigned char) *text & 0xC0) != 0x80;
	return count;
}

json_t *
sbx_steps_json_pairs(const SbxPair *pairs, int count)
{
	json_t *object = sbx_json_new_object();

	for (int i = 0; i < count && object != NULL; i++)
	{
		if (json_object_set_new(object, pairs[i].key, json_string(pairs[i].value)) == 0)
			continue;
		json_decref(object);
		return NULL;
	}
	return object;
}

json_t *
sbx_steps_json_labels(const SbxLaunchInput *input,
                      bool (*carries)(const char *key, const char *value))
{
	json_t *object = sbx_json_new_object();

	for (int i = 0; i < input->label_count && object != NULL; i++)
	{
		const SbxPair *label = &input->labels[i];
		bool carried = carries(label->key, label->value);

		if (!carried && strcmp(label->key, SBX_LABEL_NAME) == 0)
			continue;
		if (carried &&
		    json_object_set_new(object, label->key, json_string(label->value)) == 0)
			continue;
		json_decref(object);
		return NULL;
	}
	return object;
}

SbxOwner
sbx_steps_owner(const json_t *labels, const char *unique_name, const char *launch_token)
{
	const char *owner = sbx_json_string(labels, SBX_LABEL_ID);
	const char *token = sbx_json_string(labels, SBX_LABEL_LAUNCH);

	if (owner == NULL || strcmp(owner, unique_name) != 0)
		return SBX_OWNER_STRANGER;
	if (token == NULL && launch_token == NULL)
		return SBX_OWNER_OURS;
	return token != NULL && launch_token != NULL && strcmp(token, launch_token) == 0
	           ? SBX_OWNER_OURS
	           : SBX_OWNER_ANOTHER;
}

bool
sbx_steps_has_labels(const json_t *object, const SbxPair *labels, int label_count)
{
	for (int i = 0; i < label_count; i++)
	{
		const char *value = sbx_json_string(object, labels[i].key);

		if (value == NULL || strcmp(value, labels[i].value) != 0)
			return false;
	}
	return true;
}

SbxPair *
sbx_steps_copy_pairs(SbxOp *op, const SbxPair *pairs, int count)
{
	SbxPair *copies =
	    sbx_arena_alloc(&op->arena, ((size_t) count + 1) * sizeof(SbxPair));

	for (int i = 0; i < count && copies != NULL; i++)
	{
		copies[i].key = sbx_arena_strdup(&op->arena, pairs[i].key);
		copies[i].value = sbx_arena_strdup(&op->arena, pairs[i].value);
	}
	return op->arena.out_of_memory ? NULL : copies;
}

const char *
sbx_steps_copy_string(SbxOp *op, const json_t *object, const char *key)
{
	const char *text = sbx_json_string(object, key);

	return text != NULL ? sbx_arena_strdup(&op->arena, text) : NULL;
}

const char *
sbx_steps_time_text(SbxOp *op, int64_t seconds)
{
	time_t time = (time_t) seconds;
	struct tm parts;

	if (gmtime_r(&time, &parts) == NULL || parts.tm_year < 70 || parts.tm_year > 8099)
		return NULL;
	return sbx_arena_printf(&op->arena, "%04d-%02d-%02dT%02d:%02d:%02dZ",
	                        parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
	                        parts.tm_hour, parts.tm_min, parts.tm_sec);
}

/* A value that is no text is no label of ours; it is left out. */
bool
sbx_steps_take_labels(SbxOp *op, const json_t *labels, SbxSandboxFacts *facts)
{
	SbxPair *pairs =
	    sbx_arena_alloc(&op->arena, (json_object_size(labels) + 1) * sizeof(SbxPair));
	const char *key;
	json_t *value;

	if (pairs == NULL)
		return false;
	facts->labels = pairs;
	facts->label_count = 0;
	json_object_foreach ((json_t *) labels, key, value)
	{
		if (!json_is_string(value))
			continue;
		pairs[facts->label_count].key = sbx_arena_strdup(&op->arena, key);
		pairs[facts->label_count].value =
		    sbx_arena_strdup(&op->arena, json_string_value(value));
		facts->label_count++;
	}
	return true;
}

SbxSandboxState
sbx_steps_state(const SbxStateWord *words, const char *word, bool in_any_case)
{
	for (; word != NULL && words->word != NULL; words++)
	{
		if (in_any_case ? sbx_ascii_equal(words->word, word, strlen(words->word) + 1)
		                : strcmp(words->word, word) == 0)
			return words->state;
	}
	return SBX_STATE_STARTING;
}

SbxOpWant
sbx_steps_succeed_gone(SbxOp *op)
{
	SbxSandboxFacts *facts = sbx_arena_alloc(&op->arena, sizeof(*facts));

	if (facts != NULL)
		facts->state = SBX_STATE_GONE;
	return sbx_op_succeed(op, facts);
}

/* --- files ---------------------------------------------------------------- */

/* A refusal has its text, however small the file may be. */
#define REFUSAL_BYTES ((size_t) 64 * 1024)

bool
sbx_steps_is_file_path(const char *path)
{
	const char *name = path;
	size_t length = 0;
	bool is_name = false;

	for (; *name != '\0'; name += length)
	{
		name += strspn(name, "/");
		length = strcspn(name, "/");
		if (length == 2 && name[0] == '.' && name[1] == '.')
			return false;
		is_name = length > 0 && !(length == 1 && name[0] == '.');
	}
	return is_name;
}

const char *
sbx_steps_copy_content(SbxOp *op, const SbxUploadInput *input)
{
	char *bytes = sbx_arena_alloc(&op->arena, input->length + 1);

	if (bytes != NULL && input->length > 0)
		memcpy(bytes, input->bytes, input->length);
	return bytes;
}

void
sbx_steps_expect_file(SbxOp *op, size_t max_bytes)
{
	op->request.max_response = max_bytes > REFUSAL_BYTES ? max_bytes : REFUSAL_BYTES;
}

bool
sbx_steps_is_file_too_large(const SbxOp *op, size_t max_bytes)
{
	return op->response.too_large ||
	       (op->response.status == 200 && op->response.body_length > max_bytes);
}

SbxOpWant
sbx_steps_succeed_with_file(SbxOp *op)
{
	SbxFileContent *content = sbx_arena_alloc(&op->arena, sizeof(*content));
	char *bytes = sbx_arena_alloc(&op->arena, op->response.body_length + 1);

	if (content == NULL || bytes == NULL)
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	memcpy(bytes, op->response.body, op->response.body_length);
	content->bytes = bytes;
	content->length = op->response.body_length;
	return sbx_op_succeed(op, content);
}

/* --- listings ------------------------------------------------------------- */

bool
sbx_steps_add_found(SbxOp *op, SbxFoundSandboxes *found, const SbxSandboxFacts *facts)
{
	if (facts == NULL || facts->sandbox_id == NULL)
		return false;
	if (found->count == found->size)
	{
		int size = found->size == 0 ? 64 : found->size * 2;
		SbxSandboxFacts *bigger =
		    sbx_arena_alloc(&op->arena, (size_t) size * sizeof(SbxSandboxFacts));

		if (bigger == NULL)
			return false;
		if (found->count > 0)
			memcpy(bigger, found->sandboxes,
			       (size_t) found->count * sizeof(SbxSandboxFacts));
		found->sandboxes = bigger;
		found->size = size;
	}
	found->sandboxes[found->count++] = *facts;
	return true;
}

static int
compare_ids(const void *left, const void *right)
{
	return strcmp(((const SbxSandboxFacts *) left)->sandbox_id,
	              ((const SbxSandboxFacts *) right)->sandbox_id);
}

/* One can be on two pages, if something before it was deleted in between. */
void
sbx_steps_settle_found(SbxFoundSandboxes *found, SbxFindResult *result)
{
	int kept = 0;

	if (found->count > 0)
		qsort(found->sandboxes, (size_t) found->count, sizeof(SbxSandboxFacts),
		      compare_ids);
	for (int i = 0; i < found->count; i++)
	{
		if (kept == 0 ||
		    compare_ids(&found->sandboxes[kept - 1], &found->sandboxes[i]) != 0)
			found->sandboxes[kept++] = found->sandboxes[i];
	}
	result->sandboxes = found->sandboxes;
	result->count = kept;
}

/* --- pages ---------------------------------------------------------------- */

/* Attempts to read one page. */
#define PAGE_TRIES    3
#define PAGE_PAUSE_MS 250

void
sbx_steps_pages(SbxOp *op, SbxPages *pages, int maximum, SbxStep *page,
                bool (*take)(SbxOp *op, const char **cursor), SbxStep *listed)
{
	pages->cursors =
	    sbx_arena_alloc(&op->arena, (size_t) (maximum - 1) * sizeof(const char *));
	pages->maximum = maximum;
	pages->page = page;
	pages->take = take;
	pages->listed = listed;
}

const char *
sbx_steps_cursor(SbxOp *op, const SbxPages *pages)
{
	return pages->behind == 0
	           ? NULL
	           : sbx_arena_url_encode(&op->arena, pages->cursors[pages->behind - 1]);
}

/*
 * False = the cursor came before, so that reading would go round for ever, it is none, or
 * there are too many.
 */
static bool
is_next_page(const SbxPages *pages, const char *cursor)
{
	for (int i = 0; i < pages->behind; i++)
	{
		if (strcmp(pages->cursors[i], cursor) == 0)
			return false;
	}
	return *cursor != '\0' && pages->behind < pages->maximum - 1;
}

SbxOpWant
sbx_steps_page_answered(SbxOp *op, SbxPages *pages)
{
	SbxSteps *steps = op->state;
	const char *cursor = NULL;

	if (sbx_steps_is_passing(op) && ++pages->tries < PAGE_TRIES)
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_pause(op, PAGE_PAUSE_MS, pages->page);
	}
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	pages->tries = 0;
	memset(&steps->noted, 0, sizeof(steps->noted));
	if (!pages->take(op, &cursor))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, pages->malformed_code);
	if (cursor == NULL)
		return pages->listed(op);
	if (!is_next_page(pages, cursor))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	pages->cursors[pages->behind++] = cursor;
	return pages->page(op);
}
