/*
 * requestlog.c
 *		What clients sent, for assertions about the wire.
 *
 * A ring: the newest entries stay, and no more than fit into the byte limit,
 * so that a benchmark does not fill the memory.
 */
#include "requestlog.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "provider.h"

#define LOG_ENTRIES 20000
#define LOG_BYTES   ((size_t) 128 << 20)

/* Scripts of 300 KB are to be seen whole, uploads of 9 MiB are not. */
#define LOG_BODY_LIMIT ((size_t) 1 << 20)

#define LOG_KEPT_CAPACITY 2048

static EmuText entries[LOG_ENTRIES]; /* entry n is at n % LOG_ENTRIES */
static uint64_t newest;              /* number of the last one, 0 = none yet */
static uint64_t oldest = 1;
static size_t bytes_held;

static bool
header_is_secret(const char *name)
{
	static const char *const parts[] = {"authorization", "cookie", "token", "key",
	                                    "secret"};

	if (strcasecmp(name, "idempotency-key") == 0)
		return false;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strcasestr(name, parts[i]) != NULL)
			return true;
	return false;
}

/*
 * A copy in which "***" stands for what follows each `mark`, up to one of the
 * bytes in `ends`.
 */
static void
copy_masked(EmuText *copy, const char *data, size_t length, const char *mark,
            const char *ends)
{
	const char *end = data + length;
	const char *found;

	while (length > 0 &&
	       (found = memmem(data, (size_t) (end - data), mark, strlen(mark))) != NULL)
	{
		found += strlen(mark);
		emu_text_append(copy, data, (size_t) (found - data));
		emu_text_add(copy, "***");
		for (data = found; data < end && strchr(ends, *data) == NULL; data++)
			;
	}
	emu_text_append(copy, data, (size_t) (end - data));
}

/* An address with a signature is as good as a token. */
static void
show_target(EmuText *entry, const EmuRequest *request)
{
	EmuText masked = {0};

	copy_masked(&masked, request->target, strlen(request->target), "signature=", "&");
	emu_json_member_bytes(entry, "path", masked.data, masked.length);
	emu_text_free(&masked);
}

/* Tokens come as answers, but a client may repeat them in what it sends. */
static void
show_body(EmuText *entry, const EmuRequest *request)
{
	const EmuText *body = &request->body;
	size_t length = body->length < LOG_BODY_LIMIT ? body->length : LOG_BODY_LIMIT;
	EmuText masked = {0};
	EmuText spaced = {0};

	emu_json_member_integer(entry, "bodyBytes", (int64_t) body->length);
	if (length == 0 || memmem(body->data, length, "AccessToken\"", 12) == NULL)
	{
		emu_json_member_bytes(entry, "body", body->data, length);
		return;
	}
	copy_masked(&masked, body->data, length, "AccessToken\":\"", "\"");
	copy_masked(&spaced, masked.data, masked.length, "AccessToken\": \"", "\"");
	emu_json_member_bytes(entry, "body", spaced.data, spaced.length);
	emu_text_free(&masked);
	emu_text_free(&spaced);
}

/*
 * The scheme before a credential ("Bearer") is worth asserting on.  In other
 * headers what precedes a space is a part of the credential.
 */
static void
header_show(EmuText *text, const char *name, const char *value)
{
	const char *space = strchr(value, ' ');
	EmuText masked = {0};
	char lower[128];
	size_t i;

	for (i = 0; i < sizeof(lower) - 1 && name[i] != '\0'; i++)
		lower[i] = (char) (name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
	lower[i] = '\0';
	emu_text_add(text, text->data[text->length - 1] == '{' ? "" : ",");
	emu_json_string(text, lower, i);
	emu_text_add(text, ":");
	if (header_is_secret(lower))
	{
		if (space != NULL && strcmp(lower, "authorization") == 0)
			emu_text_append(&masked, value, (size_t) (space - value) + 1);
		emu_text_add(&masked, "***");
		value = masked.data;
	}
	emu_json_string(text, value, strlen(value));
	emu_text_free(&masked);
}

static enum MHD_Result
header_visit(void *text, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void) kind;
	header_show(text, name, value != NULL ? value : "");
	return MHD_YES;
}

/* Memory of ordinary size is kept for the entry that comes to this place. */
static void
log_drop_oldest(void)
{
	EmuText *entry = &entries[oldest++ % LOG_ENTRIES];

	bytes_held -= entry->length;
	entry->length = 0;
	if (entry->capacity > LOG_KEPT_CAPACITY)
		emu_text_free(entry);
}

void
emu_requestlog_record(EmuRequest *request)
{
	EmuText *entry;

	if (newest + 1 - oldest >= LOG_ENTRIES)
		log_drop_oldest();
	entry = &entries[++newest % LOG_ENTRIES];
	emu_text_add(entry, "{");
	emu_json_member_integer(entry, "seq", (int64_t) newest);
	emu_json_member_integer(entry, "atMs", emu_wall_ms());
	emu_json_member(entry, "provider", request->provider->name);
	emu_json_member(entry, "op", emu_operation_names[request->operation]);
	emu_json_member_integer(entry, "connection", (int64_t) request->connection_number);
	emu_json_member_integer(entry, "connectionRequest", request->connection_request);
	emu_json_member(entry, "method", request->method);
	show_target(entry, request);
	emu_json_key(entry, "headers");
	emu_text_add(entry, "{");
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, header_visit,
	                          entry);
	emu_text_add(entry, "}");
	show_body(entry, request);
	emu_text_add(entry, "}");
	bytes_held += entry->length;
	while (bytes_held > LOG_BYTES && oldest < newest)
		log_drop_oldest();
}

void
emu_requestlog_show(EmuText *text, uint64_t since)
{
	uint64_t number = since + 1 > oldest ? since + 1 : oldest;

	emu_text_add(text, "{\"requests\":[");
	for (; number <= newest; number++)
	{
		const EmuText *entry = &entries[number % LOG_ENTRIES];

		emu_text_add(text, text->data[text->length - 1] == '[' ? "" : ",");
		emu_text_append(text, entry->data, entry->length);
	}
	emu_text_add(text, "]");
	emu_json_member_integer(text, "last", (int64_t) newest);
	emu_text_add(text, "}");
}

/* Numbers go on, so that a remembered "since" stays meaningful. */
void
emu_requestlog_clear(void)
{
	while (oldest <= newest)
		log_drop_oldest();
}
