/*
 * e2b_idempotency.c
 *		Idempotency-Key of POST /v2/sandboxes, for those who switch it on.
 *
 * The answer of the first request under a key is kept, whether it was good or
 * bad, and given again to the same request.  Nothing is forgotten before a
 * reset.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>

#define KEY_LIMIT 255

typedef struct Record
{
	uint64_t request; /* hash of the body */
	int64_t ready_at; /* on the monotonic clock: before, it is in progress */
	int status;
	EmuText answer;
} Record;

static EmuTable records; /* "account key" -> Record */

static bool
key_valid(const char *key)
{
	return *key != '\0' && strlen(key) <= KEY_LIMIT &&
	       key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789")] == '\0';
}

static char *
record_name(const EmuAccount *account, const char *key)
{
	EmuText name = {0};

	emu_text_format(&name, "%s %s", account->digest, key);
	return name.data;
}

static uint64_t
body_hash(const EmuRequest *request)
{
	return emu_hash(request->body.data != NULL ? request->body.data : "",
	                request->body.length);
}

static void
refuse(EmuRequest *request, const char *error_code, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member_integer(&body, "code", 409);
	emu_json_member(&body, "message", message);
	emu_json_member(&body, "error_code", error_code);
	emu_text_add(&body, "}");
	emu_answer_json(request, 409, &body);
}

/* The key that counts, NULL if there is none or nobody looks at it. */
static const char *
request_key(EmuRequest *request)
{
	return e2b_config.idempotency ? emu_request_header(request, "Idempotency-Key")
	                              : NULL;
}

/* True if the request has its answer, which may be that of an earlier one. */
bool
e2b_idempotency_answers(EmuRequest *request, const EmuAccount *account)
{
	const char *key = request_key(request);
	char *name;
	const Record *record;
	EmuText copy = {0};

	if (key == NULL)
		return false;
	if (!key_valid(key))
	{
		e2b_refuse(request, 400, "Idempotency-Key must be 1 to 255 of [a-z0-9]");
		return true;
	}
	name = record_name(account, key);
	record = emu_table_get(&records, name);
	free(name);
	if (record == NULL)
		return false;
	if (record->request != body_hash(request))
		refuse(request, "idempotency_request_mismatch",
		       "the key was used for another request");
	else if (emu_clock_ms() < record->ready_at)
		refuse(request, "idempotency_in_progress",
		       "the request with this key is still being worked on");
	else
	{
		emu_text_append(&copy, record->answer.data, record->answer.length);
		emu_answer_json(request, record->status, &copy);
	}
	return true;
}

/* The request has been answered for the first time. */
void
e2b_idempotency_record(EmuRequest *request, const EmuAccount *account)
{
	const char *key = request_key(request);
	Record *record;
	char *name;

	if (key == NULL)
		return;
	record = emu_alloc(sizeof(Record));
	record->request = body_hash(request);
	record->ready_at = emu_clock_ms() + request->answer.hold_ms;
	record->status = request->answer.status;
	emu_text_append(&record->answer, request->answer.body.data,
	                request->answer.body.length);
	name = record_name(account, key);
	emu_table_put(&records, name, record);
	free(name);
}

static void
record_free(void *value)
{
	Record *record = value;

	emu_text_free(&record->answer);
	free(record);
}

void
e2b_idempotency_reset(void)
{
	emu_table_clear(&records, record_free);
}
