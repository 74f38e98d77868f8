/*
 * freestyle_call.c
 *		Calls, and what becomes of them when they take longer than their client waits.
 *
 * A call is worked on apart from its connection.  One that takes longer than
 * the client's header allows is answered 202; its answer is stored at the end
 * and can be asked for.  Whatever becomes of the client, a call goes on.
 */
#include "freestyle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls without the header, or that no setting is about, stay with their client. */
#define NEVER (-1)

typedef struct FreestyleCall
{
	EmuRequest work;    /* what the handlers see; it must be the first */
	EmuRequest *client; /* NULL: it has its 202, or has gone */
	bool client_waits;
	bool done;
	char id[EMU_UUID_SIZE + 3]; /* "": not in the background */
	char account[17];           /* digest */
	bool backgrounds;           /* it may be answered 202 */
	char *range; /* its header of that name; the headers go with the connection */
	int64_t not_before; /* when it may be done, on the monotonic clock */
	EmuTimer window;    /* until it is answered 202 */
	EmuTimer held;      /* until a given answer counts as given */
	EmuTimer retention;
	struct FreestyleCall *next;
	struct FreestyleCall *previous;
} FreestyleCall;

static FreestyleCall *calls;

static void
call_free(FreestyleCall *call)
{
	if (call->previous != NULL)
		call->previous->next = call->next;
	else
		calls = call->next;
	if (call->next != NULL)
		call->next->previous = call->previous;
	emu_timer_stop(&call->window);
	emu_timer_stop(&call->held);
	emu_timer_stop(&call->retention);
	emu_text_free(&call->work.body);
	emu_text_free(&call->work.answer.body);
	emu_text_free(&call->work.answer.headers);
	free(call->range);
	free(call->work.target);
	free(call->work.path);
	free(call);
}

/*
 * The end
 */

static void
retention_over(void *owner)
{
	call_free(owner);
}

static void
store(FreestyleCall *call)
{
	EmuAnswer *answer = &call->work.answer;

	if (freestyle_config.stored_status > 0)
		freestyle_refuse(&call->work, (int) freestyle_config.stored_status,
		                 "set by a setting");
	else if ((int64_t) answer->body.length > freestyle_config.stored_limit)
		freestyle_fail(&call->work, 500, "BACKGROUND_RESULT_UNSTORABLE",
		               "the request was carried out, its answer is too large to store");
	if (freestyle_config.stored_status > 0 && freestyle_config.stored_code != NULL)
		freestyle_fail(&call->work, (int) freestyle_config.stored_status,
		               freestyle_config.stored_code, "set by a setting");
	emu_timer_start(&call->retention, freestyle_config.result_retention, retention_over,
	                call);
}

static void
deliver(FreestyleCall *call)
{
	EmuRequest *client = call->client;

	client->answer = call->work.answer;
	client->answer.hold_ms = 0;
	memset(&call->work.answer, 0, sizeof(call->work.answer));
	if (call->client_waits)
		emu_request_finish(client);
}

static void
call_done(void *owner)
{
	FreestyleCall *call = owner;
	int64_t rest = call->not_before - emu_clock_ms();

	if (rest > 0)
	{
		emu_timer_start(&call->held, rest, call_done, call);
		return;
	}
	call->done = true;
	if (*call->id != '\0')
	{
		store(call);
		return;
	}
	if (call->client != NULL)
		deliver(call);
	call_free(call);
}

/* An answer has been given; it may be held. */
static void
call_worked(EmuRequest *work)
{
	FreestyleCall *call = (FreestyleCall *) work;

	if (work->answer.hold_ms > 0)
		emu_timer_start(&call->held, work->answer.hold_ms, call_done, call);
	else
		call_done(call);
}

/*
 * 202
 */

static bool
names(const char *list, const char *name)
{
	size_t length = strlen(name);

	while (list != NULL)
	{
		if (strncmp(list, name, length) == 0 &&
		    (list[length] == ',' || list[length] == '\0'))
			return true;
		list = strchr(list, ',');
		if (list != NULL)
			list++;
	}
	return false;
}

static bool
has_locator(const char *name)
{
	return freestyle_config.locators == NULL || names(freestyle_config.locators, name);
}

static void
answer_accepted(EmuRequest *client, const char *id)
{
	const char *origin = freestyle_config.result_origin;
	EmuText body = {0};
	EmuText url = {0};

	emu_text_format(&url, "%s" FREESTYLE_RESULTS "%s", origin != NULL ? origin : "",
	                id);
	emu_text_add(&body, "{");
	if (has_locator("requestId"))
		emu_json_member(&body, "requestId", id);
	if (has_locator("resultUrl"))
		emu_json_member(&body, "resultUrl", url.data);
	emu_text_add(&body, "}");
	emu_answer_json(client, 202, &body);
	if (has_locator("header"))
		emu_answer_header(client, FREESTYLE_ID_HEADER, id);
	emu_text_free(&url);
}

static void
call_accept(void *owner)
{
	FreestyleCall *call = owner;
	EmuRequest *client = call->client;
	char uuid[EMU_UUID_SIZE];

	emu_uuid(uuid);
	snprintf(call->id, sizeof(call->id), "ri-%s", uuid);
	call->not_before = emu_clock_ms() + freestyle_config.background_run;
	call->client = NULL;
	answer_accepted(client, call->id);
	if (call->client_waits)
		emu_request_finish(client);
}

/*
 * The beginning
 */

static void
client_left(void *owner)
{
	FreestyleCall *call = owner;

	call->client = NULL;
	emu_timer_stop(&call->window);
}

/* Milliseconds until it is answered 202. */
static int64_t
window_of(EmuRequest *request)
{
	const char *operations = freestyle_config.background_operations;
	const char *seconds = emu_request_header(request, FREESTYLE_AFTER_HEADER);
	char *end = NULL;
	long count = seconds != NULL ? strtol(seconds, &end, 10) : NEVER;

	if (freestyle_config.background_after >= 0 &&
	    (operations == NULL ||
	     names(operations, emu_operation_names[request->operation])))
		return freestyle_config.background_after;
	if (seconds == NULL || *seconds == '\0' || *end != '\0' || count < 0 ||
	    count > 86400)
		return NEVER;
	return (int64_t) count * 1000;
}

/* It gets the body; the connection stays with the client. */
static FreestyleCall *
call_new(EmuRequest *client)
{
	FreestyleCall *call = emu_alloc(sizeof(FreestyleCall));
	EmuRequest *work = &call->work;

	work->connection = client->connection;
	work->method = client->method;
	work->target = emu_strdup(client->target);
	work->path = emu_strdup(client->path);
	work->query = work->target + (client->query - client->target);
	if (*client->query == '\0')
		work->query = "";
	work->body = client->body;
	memset(&client->body, 0, sizeof(client->body));
	work->provider = client->provider;
	work->operation = client->operation;
	work->finished = call_worked;
	call->client = client;
	call->next = calls;
	if (calls != NULL)
		calls->previous = call;
	calls = call;
	return call;
}

void
freestyle_call(EmuRequest *request, void (*handle)(EmuRequest *work))
{
	int64_t window = window_of(request);
	const char *key = emu_request_bearer(request);
	const char *range = emu_request_header(request, "Range");
	FreestyleCall *call = call_new(request);

	snprintf(call->account, sizeof(call->account), "%s",
	         emu_account(&emu_freestyle, key)->digest);
	call->backgrounds = window != NEVER;
	if (range != NULL)
		call->range = emu_strdup(range);
	handle(&call->work);
	call->work.connection = NULL;
	if (window == 0)
		call_accept(call);
	if (call->work.answer.given)
		call_worked(&call->work);
	if (request->answer.given)
		return;
	call->client_waits = true;
	emu_request_wait(request, client_left, call);
	if (window > 0)
		emu_timer_start(&call->window, window, call_accept, call);
}

bool
freestyle_call_backgrounds(const EmuRequest *work)
{
	return ((const FreestyleCall *) work)->backgrounds;
}

/* NULL: the whole. */
const char *
freestyle_call_range(const EmuRequest *work)
{
	return ((const FreestyleCall *) work)->range;
}

/*
 * Asking
 */

static void
answer_stored(EmuRequest *request, const FreestyleCall *call)
{
	const EmuAnswer *stored = &call->work.answer;
	EmuText body = {0};

	emu_text_append(&body, stored->body.data, stored->body.length);
	emu_answer(request, stored->status, stored->content_type, &body);
	if (stored->headers.length > 0)
		emu_text_add(&request->answer.headers, stored->headers.data);
}

static void
answer_running(EmuRequest *request, const FreestyleCall *call)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "requestId", call->id);
	emu_text_add(&body, "}");
	emu_answer_json(request, 202, &body);
}

void
freestyle_poll(EmuRequest *request, const EmuAccount *account, const char *id)
{
	const FreestyleCall *call = calls;

	while (call != NULL && (*id == '\0' || strcmp(call->id, id) != 0 ||
	                        strcmp(call->account, account->digest) != 0))
		call = call->next;
	if (call == NULL)
	{
		freestyle_refuse(request, 404, "no such request");
		return;
	}
	if (call->done)
		answer_stored(request, call);
	else
		answer_running(request, call);
	if (!freestyle_config.hide_request_id)
		emu_answer_header(request, FREESTYLE_ID_HEADER, call->id);
}

/* Nothing works on them any more: their sandboxes are gone. */
void
freestyle_calls_clear(void)
{
	while (calls != NULL)
		call_free(calls);
}
