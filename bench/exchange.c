/*
 * exchange.c
 *		The HTTP exchange of a call, by libcurl alone: what bench/provision.sh
 *		compares the call with.
 *
 *		exchange BASE TIMES [CA_FILE] <requests
 *
 * Each line of the input is one request: {"method", "path", "headers", "body"}, as
 * the emulator's request log shows it.  All of them are sent in order, TIMES times,
 * over one kept connection; the microseconds of each time are printed, one a line.
 *
 * Three marks in the input differ each time: @ID@ and @RUN@ are fresh, of the length
 * that they have in the extension, and @BOX@ is the id in the answer to the first
 * request.  What can be put together before the clock starts is.
 */
#include <curl/curl.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define MOST_REQUESTS 16

/* Connect's envelope: no flags, then the length, big-endian. */
#define ENVELOPE_BYTES 5

typedef struct Request
{
	/* As it was read, with marks. */
	const char *method;
	const char *path;
	json_t *headers;
	const char *body;
	bool enveloped; /* the body gets an envelope of Connect */
	bool chunked;

	/* As it is sent. */
	char *url;
	char *sent;
	size_t sent_length;
	size_t sent_offset;
	struct curl_slist *lines;
} Request;

static const char *base;
static Request requests[MOST_REQUESTS];
static int request_count;
static char id[64];
static char run[64];
static char box[256]; /* "" = not known yet */
static char answer[65536];
static size_t answer_length;

static void
fail(const char *what, const char *which)
{
	fprintf(stderr, "exchange: %s: %s\n", what, which);
	exit(1);
}

static void *
allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (memory == NULL)
		fail("calloc", "out of memory");
	return memory;
}

/*
 * Reading
 */

static void
read_request(const char *line)
{
	Request *request = &requests[request_count++];
	json_error_t error;
	json_t *json = json_loads(line, 0, &error);
	json_t *headers = json_object_get(json, "headers");
	const char *type = json_string_value(json_object_get(headers, "content-type"));

	request->method = json_string_value(json_object_get(json, "method"));
	request->path = json_string_value(json_object_get(json, "path"));
	request->body = json_string_value(json_object_get(json, "body"));
	request->headers = headers;
	if (request->method == NULL || request->path == NULL || request->body == NULL)
		fail("not a request", line);
	request->enveloped = type != NULL && strcmp(type, "application/connect+json") == 0;
	request->chunked = json_object_get(headers, "transfer-encoding") != NULL;
	if (strcmp(request->method, "GET") == 0)
		return;
	if (strcmp(request->method, "POST") != 0 && *request->body != '\0')
		fail("a body with this method", request->method);
}

static void
read_requests(void)
{
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, stdin) > 0)
	{
		if (request_count == MOST_REQUESTS)
			fail("too many requests", "on standard input");
		read_request(line);
	}
	free(line);
	if (request_count == 0)
		fail("no requests", "on standard input");
}

/*
 * Preparing
 */

/* A copy of the text with what the marks stand for now, after some bytes of room. */
static char *
without_marks(const char *text, size_t room)
{
	static const struct
	{
		const char *mark;
		const char *value;
	} marks[] = {{"@ID@", id}, {"@RUN@", run}, {"@BOX@", box}};
	char *copy = allocate(room + strlen(text) + MOST_REQUESTS * sizeof(box));
	char *end = copy + room;

	while (*text != '\0')
	{
		size_t i = 0;

		while (i < 3 && strncmp(text, marks[i].mark, strlen(marks[i].mark)) != 0)
			i++;
		if (i == 3)
			*end++ = *text++;
		else
		{
			end = stpcpy(end, marks[i].value);
			text += strlen(marks[i].mark);
		}
	}
	return copy;
}

/* libcurl makes these two itself. */
static bool
is_libcurls(const char *name)
{
	return strcasecmp(name, "host") == 0 || strcasecmp(name, "content-length") == 0;
}

static void
add_line(Request *request, const char *name, const char *value)
{
	char line[4096];
	struct curl_slist *longer;

	snprintf(line, sizeof(line), *value == '\0' ? "%s:" : "%s: %s", name, value);
	longer = curl_slist_append(request->lines, line);
	if (longer == NULL)
		fail("curl_slist_append", name);
	request->lines = longer;
}

static void
prepare(Request *request)
{
	size_t room = request->enveloped ? ENVELOPE_BYTES : 0;
	char *path = without_marks(request->path, 0);
	const char *name;
	json_t *value;

	request->url = allocate(strlen(base) + strlen(path) + 1);
	strcat(strcpy(request->url, base), path);
	free(path);
	request->sent = without_marks(request->body, room);
	request->sent_length = room + strlen(request->sent + room);
	request->sent_offset = 0;
	for (size_t i = 1; i < room; i++)
		request->sent[i] =
		    (char) ((request->sent_length - room) >> (8 * (room - 1 - i)));
	json_object_foreach (request->headers, name, value)
	{
		if (!is_libcurls(name))
			add_line(request, name, json_string_value(value));
	}
	if (json_object_get(request->headers, "content-type") == NULL)
		add_line(request, "Content-Type", "");
	add_line(request, "Expect", "");
}

static void
forget(Request *request)
{
	free(request->url);
	free(request->sent);
	curl_slist_free_all(request->lines);
	request->url = request->sent = NULL;
	request->lines = NULL;
}

/*
 * Sending
 */

static size_t
read_callback(char *buffer, size_t size, size_t count, void *arg)
{
	Request *request = arg;
	size_t rest = request->sent_length - request->sent_offset;
	size_t length = size * count < rest ? size * count : rest;

	memcpy(buffer, request->sent + request->sent_offset, length);
	request->sent_offset += length;
	return length;
}

static size_t
write_callback(char *buffer, size_t size, size_t count, void *arg)
{
	size_t length = size * count;

	(void) arg;
	if (length >= sizeof(answer) - answer_length)
		return 0;
	memcpy(answer + answer_length, buffer, length);
	answer_length += length;
	return length;
}

static void
set_body(CURL *easy, Request *request)
{
	if (strcmp(request->method, "GET") == 0)
	{
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
		return;
	}
	if (strcmp(request->method, "POST") != 0)
	{
		curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
		curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
		return;
	}
	curl_easy_setopt(easy, CURLOPT_POST, 1L);
	if (request->chunked)
	{
		curl_easy_setopt(easy, CURLOPT_POSTFIELDS, NULL);
		curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, -1L);
		curl_easy_setopt(easy, CURLOPT_READDATA, request);
		return;
	}
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->sent);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long) request->sent_length);
}

static void
send_request(CURL *easy, Request *request)
{
	CURLcode code;
	long status = 0;

	if (request->url == NULL)
		prepare(request);
	answer_length = 0;
	curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, NULL);
	set_body(easy, request);
	curl_easy_setopt(easy, CURLOPT_URL, request->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->lines);
	code = curl_easy_perform(easy);
	if (code != CURLE_OK)
		fail(request->url, curl_easy_strerror(code));
	answer[answer_length] = '\0';
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 400)
		fail(request->url, answer);
}

/* The sandbox's id, as one provider or the other calls it. */
static void
take_box(void)
{
	const char *found = strstr(answer, "\"sandboxID\":\"");
	size_t length;

	if (found == NULL)
		found = strstr(answer, "\"id\":\"");
	if (found == NULL)
		return;
	found = strchr(found, ':') + 2;
	length = strcspn(found, "\"");
	if (length >= sizeof(box))
		fail("the id is too long", found);
	memcpy(box, found, length);
	box[length] = '\0';
}

static double
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e6 + (double) now.tv_nsec / 1e3;
}

/* The first process of a machine's day must not meet the names of the last one. */
static void
make_fresh(int number)
{
	static unsigned long long salt;

	if (salt == 0)
		salt = (unsigned long long) now_us() ^ (unsigned long long) getpid() << 48;
	snprintf(id, sizeof(id), "sbx_%016llx%016x", salt, number);
	snprintf(run, sizeof(run), "sbx-run-%08llx%08x", salt & 0xffffffff, number);
	box[0] = '\0';
}

static double
exchange(CURL *easy, int number)
{
	double start;
	double end;

	make_fresh(number);
	for (int i = 0; i < request_count; i++)
		if (strstr(requests[i].path, "@BOX@") == NULL)
			prepare(&requests[i]);
	start = now_us();
	for (int i = 0; i < request_count; i++)
	{
		send_request(easy, &requests[i]);
		if (i == 0)
			take_box();
	}
	end = now_us();
	for (int i = 0; i < request_count; i++)
		forget(&requests[i]);
	return end - start;
}

int
main(int count, char **arguments)
{
	CURL *easy;
	int times;

	if (count < 3)
		fail("usage", "exchange BASE TIMES [CA_FILE] <requests");
	base = arguments[1];
	times = atoi(arguments[2]);
	read_requests();
	curl_global_init(CURL_GLOBAL_DEFAULT);
	easy = curl_easy_init();
	if (easy == NULL)
		fail("curl_easy_init", "failed");
	if (count > 3)
		curl_easy_setopt(easy, CURLOPT_CAINFO, arguments[3]);
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_callback);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write_callback);
	for (int number = 1; number <= times; number++)
		printf("%.1f\n", exchange(easy, number));
	curl_easy_cleanup(easy);
	return 0;
}
