/*
 * faults.c
 *		Rules that make chosen requests go wrong in chosen ways.
 */
#include "faults.h"

#include <fnmatch.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "provider.h"
#include "server.h"

typedef enum FaultAction
{
	ACTION_REFUSE,
	ACTION_HANG,
	ACTION_HANG_AFTER_HEADERS,
	ACTION_DELAY,
	ACTION_RESET_BEFORE_READ,
	ACTION_RESET_AFTER_WORK,
	ACTION_CLOSE_REUSED,
	ACTION_TRUNCATE,
	ACTION_SLOW,
	ACTION_SLOW_READ,
	ACTION_STATUS,
	ACTION_GARBAGE,
	ACTION_WRONG_TYPE,
	ACTION_DEEP,
	ACTION_HUGE,
	ACTION_HUGE_HEADER,
	ACTION_BAD_UTF8,
	ACTION_NUL,
	ACTION_DUPLICATE_KEYS,
	ACTION_REDIRECT,
	ACTION_PAUSE,
	ACTION_WRONG_ID,
	ACTION_PING
} FaultAction;

/* `works`: does the provider do what was asked before the answer is spoiled? */
static const struct
{
	const char *name;
	bool works;
	bool early;           /* takes effect before the body is read */
	EmuFrameAction frame; /* what it is to a frame, if anything */
	bool only_frame;
} actions[] = {
    [ACTION_REFUSE] = {"refuse", true, false},
    [ACTION_HANG] = {"hang", false, false, EMU_FRAME_HANG, false},
    [ACTION_HANG_AFTER_HEADERS] = {"hang-after-headers", true, false},
    [ACTION_DELAY] = {"delay", true, false, EMU_FRAME_DELAY, false},
    [ACTION_RESET_BEFORE_READ] = {"reset-before-read", false, true},
    [ACTION_RESET_AFTER_WORK] = {"reset-after-work", true, false, EMU_FRAME_RESET,
                                 false},
    [ACTION_CLOSE_REUSED] = {"close-reused", false, false},
    [ACTION_TRUNCATE] = {"truncate", true, false, EMU_FRAME_TRUNCATE, false},
    [ACTION_SLOW] = {"slow", true, false},
    [ACTION_SLOW_READ] = {"slow-read", true, true},
    [ACTION_STATUS] = {"status", false, false},
    [ACTION_GARBAGE] = {"garbage", true, false, EMU_FRAME_GARBAGE, false},
    [ACTION_WRONG_TYPE] = {"wrong-type", true, false, EMU_FRAME_WRONG_TYPE, false},
    [ACTION_DEEP] = {"deep", true, false},
    [ACTION_HUGE] = {"huge", true, false, EMU_FRAME_HUGE, false},
    [ACTION_HUGE_HEADER] = {"huge-header", true, false},
    [ACTION_BAD_UTF8] = {"bad-utf8", true, false},
    [ACTION_NUL] = {"nul", true, false},
    [ACTION_DUPLICATE_KEYS] = {"duplicate-keys", true, false},
    [ACTION_REDIRECT] = {"redirect", false, false},
    [ACTION_PAUSE] = {"pause", true, false, EMU_FRAME_PAUSE, true},
    [ACTION_WRONG_ID] = {"wrong-id", true, false, EMU_FRAME_WRONG_ID, true},
    [ACTION_PING] = {"ping", true, false, EMU_FRAME_PING, true},
};

#define ACTION_COUNT (sizeof(actions) / sizeof(actions[0]))

struct EmuFault
{
	EmuFault *next;
	unsigned references;         /* the list and each request it fired for */
	const EmuProvider *provider; /* NULL: any */
	int operation;               /* -1: any */
	char *path;                  /* pattern, NULL: any */
	char *frame;                 /* pattern, NULL: it is for requests */
	FaultAction action;
	bool works;
	int64_t after;
	int64_t times;
	int64_t seen;
	int64_t fired;
	int64_t ms;
	int64_t bytes; /* -1: not given */
	int64_t bytes_per_second;
	int64_t status; /* 0: not given */
	int64_t depth;
	int64_t request_on_connection;
	char *body; /* NULL: not given */
	size_t body_length;
	EmuText headers;
	bool has_content_type; /* among the headers */
};

static EmuFault *rules;

/* The listener that redirects point to: whoever connects is counted. */
static int trap_listener = -1;
static int trap_port;
static unsigned trap_connections;
static EmuWatch trap_watch;

static void
fault_unreference(EmuFault *rule)
{
	if (--rule->references > 0)
		return;
	free(rule->path);
	free(rule->frame);
	free(rule->body);
	emu_text_free(&rule->headers);
	free(rule);
}

void
emu_fault_release(EmuRequest *request)
{
	if (request->fault != NULL)
		fault_unreference(request->fault);
	request->fault = NULL;
}

void
emu_faults_clear(void)
{
	EmuFault *next;

	for (EmuFault *rule = rules; rule != NULL; rule = next)
	{
		next = rule->next;
		fault_unreference(rule);
	}
	rules = NULL;
}

unsigned
emu_faults_redirects_followed(void)
{
	return trap_connections;
}

/*
 * Reading a rule
 */

static bool
read_number(const char *name, const json_t *value, int64_t low, int64_t *number,
            EmuText *problem)
{
	if (json_is_integer(value) && json_integer_value(value) >= low)
	{
		*number = json_integer_value(value);
		return true;
	}
	emu_text_format(problem, "\"%s\" must be an integer of at least %lld", name,
	                (long long) low);
	return false;
}

static bool
read_provider(EmuFault *rule, const json_t *value, EmuText *problem)
{
	rule->provider =
	    json_is_string(value) ? emu_provider_by_name(json_string_value(value)) : NULL;
	if (rule->provider == NULL)
		emu_text_add(problem, "\"provider\" must name an emulated provider");
	return rule->provider != NULL;
}

static bool
read_operation(EmuFault *rule, const json_t *value, EmuText *problem)
{
	for (int i = EMU_OP_CREATE; json_is_string(value) && i < EMU_OPERATION_COUNT; i++)
		if (strcmp(emu_operation_names[i], json_string_value(value)) == 0)
		{
			rule->operation = i;
			return true;
		}
	emu_text_add(problem,
	             "\"op\" must be one of create, get, list, delete, run, start, status, "
	             "logs, upload, download, stop");
	return false;
}

static bool
read_action(EmuFault *rule, const json_t *value, EmuText *problem)
{
	for (size_t i = 0; json_is_string(value) && i < ACTION_COUNT; i++)
		if (strcmp(actions[i].name, json_string_value(value)) == 0)
		{
			rule->action = (FaultAction) i;
			rule->works = actions[i].works;
			return true;
		}
	emu_text_add(problem, "\"action\" is missing or unknown");
	return false;
}

/* A body that is not a string is sent as the JSON it is. */
static bool
read_body(EmuFault *rule, const json_t *value)
{
	free(rule->body);
	if (json_is_string(value))
	{
		rule->body_length = json_string_length(value);
		rule->body = emu_alloc(rule->body_length + 1);
		memcpy(rule->body, json_string_value(value), rule->body_length);
	}
	else
	{
		rule->body = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		rule->body_length = rule->body != NULL ? strlen(rule->body) : 0;
	}
	return true;
}

static bool
read_headers(EmuFault *rule, const json_t *value, EmuText *problem)
{
	const char *name;
	json_t *text;

	if (!json_is_object(value))
	{
		emu_text_add(problem, "\"headers\" must be an object of strings");
		return false;
	}
	json_object_foreach ((json_t *) (uintptr_t) value, name, text)
	{
		if (!json_is_string(text) || strpbrk(json_string_value(text), "\r\n") != NULL)
		{
			emu_text_add(problem,
			             "\"headers\" must be an object of strings without line ends");
			return false;
		}
		emu_text_format(&rule->headers, "%s: %s\n", name, json_string_value(text));
		if (strcasecmp(name, "Content-Type") == 0)
			rule->has_content_type = true;
	}
	return true;
}

static bool
read_member(EmuFault *rule, const char *name, const json_t *value, EmuText *problem)
{
	const struct
	{
		const char *name;
		int64_t low;
		int64_t *place;
	} numbers[] = {
	    {"after", 0, &rule->after},
	    {"times", 1, &rule->times},
	    {"ms", 0, &rule->ms},
	    {"bytes", 0, &rule->bytes},
	    {"bytesPerSecond", 1, &rule->bytes_per_second},
	    {"status", 200, &rule->status},
	    {"code", 200, &rule->status},
	    {"depth", 1, &rule->depth},
	    {"n", 1, &rule->request_on_connection},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (strcmp(name, numbers[i].name) == 0)
			return read_number(name, value, numbers[i].low, numbers[i].place, problem);
	if (strcmp(name, "provider") == 0)
		return read_provider(rule, value, problem);
	if (strcmp(name, "op") == 0)
		return read_operation(rule, value, problem);
	if (strcmp(name, "body") == 0)
		return read_body(rule, value);
	if (strcmp(name, "headers") == 0)
		return read_headers(rule, value, problem);
	if (strcmp(name, "action") == 0)
		return true; /* read first, see below */
	if (strcmp(name, "path") == 0 && json_is_string(value))
	{
		free(rule->path);
		rule->path = emu_strdup(json_string_value(value));
		return true;
	}
	if (strcmp(name, "frame") == 0 && json_is_string(value))
	{
		free(rule->frame);
		rule->frame = emu_strdup(json_string_value(value));
		return true;
	}
	if (strcmp(name, "work") == 0 && json_is_boolean(value))
	{
		rule->works = json_is_true(value);
		return true;
	}
	emu_text_format(problem, "unknown key \"%s\", or a value of the wrong type", name);
	return false;
}

static bool
check_frame(const EmuFault *rule, EmuText *problem)
{
	if (rule->frame != NULL && actions[rule->action].frame == EMU_FRAME_AS_IT_IS)
		emu_text_add(problem, "this action is not one for frames");
	else if (rule->frame == NULL && actions[rule->action].only_frame)
		emu_text_add(problem, "this action needs a \"frame\"");
	else if (rule->frame != NULL && rule->operation >= 0)
		emu_text_add(problem, "a frame has no \"op\"");
	else
		return true;
	return false;
}

static EmuFault *
rule_read(const json_t *object, EmuText *problem)
{
	EmuFault *rule = emu_alloc(sizeof(EmuFault));
	const char *name;
	json_t *value;
	bool good;

	rule->references = 1;
	rule->operation = -1;
	rule->times = 1;
	rule->bytes = -1;
	rule->bytes_per_second = 1024;
	rule->depth = 100000;
	rule->request_on_connection = 2;
	rule->ms = 1000;

	/* The action first: it decides the default of "work". */
	good = read_action(rule, json_object_get(object, "action"), problem);
	json_object_foreach ((json_t *) (uintptr_t) object, name, value)
		good = good && read_member(rule, name, value, problem);
	if (good && rule->status > 599)
	{
		emu_text_add(problem, "\"status\" must be between 200 and 599");
		good = false;
	}
	good = good && check_frame(rule, problem);
	if (good)
		return rule;
	fault_unreference(rule);
	return NULL;
}

bool
emu_faults_add(const json_t *object, EmuText *problem)
{
	EmuFault *rule;
	EmuFault **place = &rules;

	if (!json_is_object(object))
	{
		emu_text_add(problem, "a rule must be a JSON object");
		return false;
	}
	rule = rule_read(object, problem);
	if (rule == NULL)
		return false;

	/* No request reaches a closed listener, so this one does not wait for any. */
	if (rule->action == ACTION_REFUSE && rule->after == 0)
	{
		emu_server_refuse(rule->ms);
		fault_unreference(rule);
		return true;
	}
	while (*place != NULL)
		place = &(*place)->next;
	*place = rule;
	return true;
}

/*
 * Matching
 */

static bool
rule_matches(const EmuFault *rule, const EmuRequest *request)
{
	if (rule->frame != NULL)
		return false;
	if (rule->provider != NULL && rule->provider != request->provider)
		return false;
	if (rule->operation >= 0 && rule->operation != (int) request->operation)
		return false;
	if (rule->path != NULL && fnmatch(rule->path, request->path, 0) != 0)
		return false;
	return rule->action != ACTION_CLOSE_REUSED ||
	       request->connection_request >= rule->request_on_connection;
}

static void
remove_rule(EmuFault **place)
{
	EmuFault *rule = *place;

	*place = rule->next;
	fault_unreference(rule);
}

/* Every matching rule counts the request; the first that is due has it. */
static void
rules_apply(EmuRequest *request, bool early)
{
	EmuFault **place = &rules;

	while (*place != NULL)
	{
		EmuFault *rule = *place;

		/* A refusal after n requests is due with the n-th, for the next one. */
		int64_t let_through =
		    rule->action == ACTION_REFUSE ? rule->after - 1 : rule->after;

		if (request->fault == NULL && actions[rule->action].early == early &&
		    rule_matches(rule, request) && ++rule->seen > let_through)
		{
			request->fault = rule;
			rule->references++;
			if (++rule->fired >= rule->times)
				remove_rule(place);
			return;
		}
		place = &rule->next;
	}
}

void
emu_faults_match_early(EmuRequest *request)
{
	if (rules != NULL)
		rules_apply(request, true);
}

void
emu_faults_match(EmuRequest *request)
{
	if (rules != NULL)
		rules_apply(request, false);
}

static bool
rule_matches_frame(const EmuFault *rule, const EmuProvider *provider, const char *path,
                   const char *frame)
{
	return rule->frame != NULL && fnmatch(rule->frame, frame, 0) == 0 &&
	       (rule->provider == NULL || rule->provider == provider) &&
	       (rule->path == NULL || fnmatch(rule->path, path, 0) == 0);
}

EmuFrameFault
emu_faults_match_frame(const EmuProvider *provider, const char *path, const char *frame)
{
	EmuFrameFault fault = {EMU_FRAME_AS_IT_IS, 0, -1};

	for (EmuFault **place = &rules; *place != NULL; place = &(*place)->next)
	{
		EmuFault *rule = *place;

		if (!rule_matches_frame(rule, provider, path, frame) ||
		    ++rule->seen <= rule->after)
			continue;
		fault.action = actions[rule->action].frame;
		fault.ms = rule->ms;
		fault.bytes = rule->bytes;
		if (++rule->fired >= rule->times)
			remove_rule(place);
		break;
	}
	return fault;
}

bool
emu_fault_resets_before_read(const EmuRequest *request)
{
	return request->fault != NULL && request->fault->action == ACTION_RESET_BEFORE_READ;
}

int64_t
emu_fault_read_rate(const EmuRequest *request)
{
	return request->fault != NULL && request->fault->action == ACTION_SLOW_READ
	           ? request->fault->bytes_per_second
	           : 0;
}

/*
 * Spoiling
 */

static void
trap_connected(void *owner, uint32_t events)
{
	int client;

	(void) owner;
	(void) events;
	while ((client =
	            accept4(trap_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
	{
		trap_connections++;
		close(client);
	}
}

static void
trap_open(void)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(address);

	if (trap_listener >= 0)
		return;
	trap_listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (trap_listener < 0 ||
	    bind(trap_listener, (struct sockaddr *) &address, sizeof(address)) != 0 ||
	    listen(trap_listener, 16) != 0 ||
	    getsockname(trap_listener, (struct sockaddr *) &address, &length) != 0)
		return;
	trap_port = ntohs(address.sin_port);
	emu_watch_start(&trap_watch, trap_listener, EPOLLIN, trap_connected, NULL);
}

static void
spoil_redirect(EmuRequest *request, const EmuFault *rule)
{
	EmuText location = {0};

	trap_open();
	emu_text_format(&location, "%s://127.0.0.1:%d%s", emu_request_scheme(request),
	                trap_port, request->target);
	emu_answer_empty(request, rule->status > 0 ? (int) rule->status : 307);
	emu_answer_header(request, "Location", location.data);
	emu_text_free(&location);
}

static void
spoil_status(EmuRequest *request, const EmuFault *rule)
{
	EmuText body = {0};
	int status = rule->status > 0 ? (int) rule->status : 500;

	emu_text_free(&request->answer.headers);
	if (rule->body == NULL)
		request->provider->refuse(request, status, "injected by a fault rule");
	else
	{
		emu_text_append(&body, rule->body, rule->body_length);
		emu_answer_json(request, status, &body);
	}
	if (rule->headers.length > 0)
	{
		emu_text_free(&request->answer.headers);
		emu_text_add(&request->answer.headers, rule->headers.data);
	}
	if (rule->has_content_type)
		request->answer.content_type = NULL;
}

static void
spoil_garbage(EmuText *body, const EmuFault *rule)
{
	int64_t length = rule->bytes >= 0 ? rule->bytes : 512;

	emu_text_free(body);
	for (int64_t i = 0; i < length; i++)
	{
		char byte = (char) emu_random();

		emu_text_append(body, &byte, 1);
	}
}

/*
 * Each member of the answer gets a value of another type.  Of an answer that
 * is a JSON text per line that is done to the first, and there are no more.
 */
static void
spoil_types(EmuText *body)
{
	json_t *answer = json_loadb(body->data, body->length,
	                            JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);
	const char *name;
	json_t *value;

	emu_text_free(body);
	emu_text_add(body, "{");
	json_object_foreach (answer, name, value)
	{
		emu_json_key(body, name);
		emu_text_add(body, json_is_string(value)    ? "7"
		                   : json_is_number(value)  ? "\"7\""
		                   : json_is_boolean(value) ? "\"true\""
		                   : json_is_object(value)  ? "[]"
		                                            : "{}");
	}
	emu_text_add(body, "}");
	json_decref(answer);
}

static void
spoil_depth(EmuText *body, const EmuFault *rule)
{
	emu_text_free(body);
	emu_text_add(body, "{\"id\":");
	emu_text_fill(body, '[', (size_t) rule->depth);
	emu_text_fill(body, ']', (size_t) rule->depth);
	emu_text_add(body, "}");
}

/* Without a size it never ends; the delivery goes on with more of the same. */
static void
spoil_size(EmuRequest *request, const EmuFault *rule)
{
	EmuText *body = &request->answer.body;

	emu_text_free(body);
	emu_text_add(body, "{\"id\":\"");
	if (rule->bytes < 0)
		request->answer.delivery = EMU_DELIVER_ENDLESS;
	else
	{
		emu_text_fill(body, 'a', (size_t) rule->bytes);
		emu_text_add(body, "\"}");
	}
}

/* A frame of a Connect stream: a byte of flags, then its size in four. */
#define FRAME_HEADER 5

static bool
is_framed(const EmuAnswer *answer)
{
	return answer->content_type != NULL &&
	       strncmp(answer->content_type, "application/connect", 19) == 0;
}

/* Insert into the body; the frame that it belongs to, where there is one, grows. */
static void
spoil_insert(EmuAnswer *answer, size_t place, const char *bytes, size_t length)
{
	EmuText *body = &answer->body;
	size_t frame = 0;

	while (is_framed(answer) && frame + FRAME_HEADER <= place)
	{
		unsigned char *size = (unsigned char *) body->data + frame + 1;
		uint32_t count = (uint32_t) size[0] << 24 | (uint32_t) size[1] << 16 |
		                 (uint32_t) size[2] << 8 | size[3];

		if (place <= frame + FRAME_HEADER + count)
		{
			count += (uint32_t) length;
			for (int i = 0; i < 4; i++)
				size[i] = (unsigned char) (count >> (24 - 8 * i));
			break;
		}
		frame += FRAME_HEADER + count;
	}
	emu_text_insert(body, place, bytes, length);
}

/* The first place after these bytes; frames have NULs. */
static char *
find_after(const EmuText *body, const char *bytes)
{
	size_t length = strlen(bytes);
	char *place =
	    body->length > 0 ? memmem(body->data, body->length, bytes, length) : NULL;

	return place != NULL ? place + length : NULL;
}

/* Right at the start of the first string value; usually that is the id. */
static void
spoil_first_string(EmuAnswer *answer, const char *bytes, size_t length)
{
	char *value = find_after(&answer->body, ":\"");

	if (value != NULL)
		spoil_insert(answer, (size_t) (value - answer->body.data), bytes, length);
}

/* The first object has its first key twice; and what may matter in it, too. */
static void
spoil_keys(EmuAnswer *answer)
{
	char *key = find_after(&answer->body, "{\"");
	char *end = key != NULL ? strchr(key, '"') : NULL;
	EmuText twice = {0};

	if (end == NULL)
		return;
	emu_text_format(&twice,
	                "%.*s\":\"00000000-0000-4000-8000-000000000000\","
	                "\"state\":\"error\",\"exitCode\":77,\"",
	                (int) (end - key), key);
	spoil_insert(answer, (size_t) (key - answer->body.data), twice.data, twice.length);
	emu_text_free(&twice);
}

void
emu_fault_instead_of_work(EmuRequest *request)
{
	EmuText empty = {0};

	if (request->fault->works)
		return;

	/* Something to spoil; emu_fault_after_work does the rest. */
	emu_text_add(&empty, "{}");
	emu_answer_json(request, 200, &empty);
}

void
emu_fault_after_work(EmuRequest *request)
{
	const EmuFault *rule = request->fault;
	EmuAnswer *answer = &request->answer;

	answer->delivery_bytes = rule->bytes_per_second;
	switch (rule->action)
	{
		case ACTION_REFUSE:
			emu_server_refuse(rule->ms);
			break;
		case ACTION_HANG:
			answer->hold_ms = EMU_HOLD_FOREVER;
			break;
		case ACTION_DELAY:
			answer->hold_ms += rule->ms;
			break;
		case ACTION_HANG_AFTER_HEADERS:
			answer->delivery = EMU_DELIVER_STALLED;
			break;
		case ACTION_SLOW:
			answer->delivery = EMU_DELIVER_SLOW;
			break;
		case ACTION_TRUNCATE:
			answer->delivery = EMU_DELIVER_TRUNCATED;
			answer->delivery_bytes =
			    rule->bytes >= 0 ? rule->bytes : (int64_t) answer->body.length / 2;
			break;
		case ACTION_RESET_AFTER_WORK:
			answer->delivery = EMU_DELIVER_RESET;
			break;
		case ACTION_CLOSE_REUSED:
			answer->delivery = EMU_DELIVER_CLOSE;
			break;
		case ACTION_STATUS:
			spoil_status(request, rule);
			break;
		case ACTION_REDIRECT:
			spoil_redirect(request, rule);
			break;
		case ACTION_GARBAGE:
			spoil_garbage(&answer->body, rule);
			break;
		case ACTION_WRONG_TYPE:
			spoil_types(&answer->body);
			break;
		case ACTION_DEEP:
			spoil_depth(&answer->body, rule);
			break;
		case ACTION_HUGE:
			spoil_size(request, rule);
			break;
		case ACTION_HUGE_HEADER:
			answer->delivery = EMU_DELIVER_HUGE_HEADER;
			answer->delivery_bytes = rule->bytes >= 0 ? rule->bytes : 1 << 20;
			break;
		case ACTION_BAD_UTF8:
			spoil_first_string(answer, "\xFF\xC0\xAF\xED\xA0\x80", 6);
			break;
		case ACTION_NUL:
			spoil_first_string(answer, "\\u0000", 6);
			break;
		case ACTION_DUPLICATE_KEYS:
			spoil_keys(answer);
			break;
		case ACTION_RESET_BEFORE_READ:
		case ACTION_SLOW_READ:
		case ACTION_PAUSE:
		case ACTION_WRONG_ID:
		case ACTION_PING:
			break;
	}
}
