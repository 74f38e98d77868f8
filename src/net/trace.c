/*
 * trace.c
 *		A line in the server log for each exchange.
 */
#include "net/trace.h"

#include <curl/curl.h>

/* Longest path that is shown whole; a provider may have a say in it. */
#define MAX_PATH_SHOWN 1000

/* A host name has 253 bytes at most, and a port six. */
#define MAX_HOST_SHOWN 260

typedef struct Place
{
	char host[MAX_HOST_SHOWN];
	char path[MAX_PATH_SHOWN];
} Place;

/* "?" for what is missing or cannot be read. */
static void
copy_part(CURLU *url, CURLUPart part, char *place, size_t size)
{
	char *value = NULL;

	if (curl_url_get(url, part, &value, 0) == CURLUE_OK)
		strlcpy(place, value, size);
	else
		strlcpy(place, "?", size);
	curl_free(value);
}

/*
 * Only the parts that are named here are taken, because a query can hold what a user
 * gave, and a name before the host a password.  libcurl accepts no control characters,
 * so that nobody can begin a line of the log.
 */
static void
find_place(const char *text, Place *place)
{
	CURLU *url = curl_url();
	char port[8];

	strlcpy(place->host, "?", sizeof(place->host));
	strlcpy(place->path, "?", sizeof(place->path));
	if (url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK)
	{
		copy_part(url, CURLUPART_HOST, place->host, sizeof(place->host) - sizeof(port));
		copy_part(url, CURLUPART_PORT, port, sizeof(port));
		if (strcmp(port, "?") != 0)
		{
			strlcat(place->host, ":", sizeof(place->host));
			strlcat(place->host, port, sizeof(place->host));
		}
		copy_part(url, CURLUPART_PATH, place->path, sizeof(place->path));
	}
	curl_url_cleanup(url);
}

/* Nothing is allocated here: a run that an ERROR ended is traced, too. */
#define MAX_TEXT 200

static void
write_outcome(char *text, const SbxTransfer *transfer, bool abandoned)
{
	const SbxHttpResponse *response = &transfer->op->response;

	if (abandoned)
		strlcpy(text, "failed=abandoned", MAX_TEXT);
	else if (response->status != 0)
		snprintf(text, MAX_TEXT, "status=%d", response->status);
	else if (response->denied)
		strlcpy(text, "failed=denied", MAX_TEXT);
	else if (response->too_large)
		strlcpy(text, "failed=too-large", MAX_TEXT);
	else
		snprintf(text, MAX_TEXT, "failed=%s%s", sbx_phase_name(response->failed_phase),
		         response->timed_out ? " timeout" : "");
}

/* When the answer began, in microseconds like libcurl's times; 0 = it did not. */
static curl_off_t
answer_time(const SbxTransfer *transfer)
{
	instr_time span = transfer->answered;

	if (INSTR_TIME_IS_ZERO(span))
		return 0;
	INSTR_TIME_SUBTRACT(span, transfer->started);
	return (curl_off_t) INSTR_TIME_GET_MICROSEC(span);
}

static curl_off_t
time_since(instr_time start)
{
	instr_time span;

	INSTR_TIME_SET_CURRENT(span);
	INSTR_TIME_SUBTRACT(span, start);
	return (curl_off_t) INSTR_TIME_GET_MICROSEC(span);
}

/* Milliseconds from one moment to another; 0 where the exchange did not get that far. */
static double
between(curl_off_t from, curl_off_t to)
{
	return to > from ? (double) (to - from) / 1000 : 0;
}

static void
write_times(char *text, const SbxTransfer *transfer)
{
	CURL *easy = transfer->easy;
	curl_off_t name = 0;
	curl_off_t connect = 0;
	curl_off_t tls = 0;
	curl_off_t ready = 0;
	curl_off_t answer = answer_time(transfer);
	curl_off_t total = 0;
	long connects = 0;

	curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &name);
	curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect);
	curl_easy_getinfo(easy, CURLINFO_APPCONNECT_TIME_T, &tls);
	curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready);
	curl_easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &total);
	curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);

	/* Of a WebSocket libcurl knows no more than the connection. */
	if (transfer->socket != NULL)
	{
		ready = Max(connect, tls);
		total = time_since(transfer->started);
	}

	/* Our clock starts a little earlier than libcurl's. */
	answer = Min(answer, total);
	snprintf(text, MAX_TEXT,
	         " connection=%s name=%.3f connect=%.3f tls=%.3f wait=%.3f"
	         " receive=%.3f total=%.3f ms",
	         connects > 0 ? "new" : "kept", between(0, name), between(name, connect),
	         between(connect, tls), between(ready, answer > 0 ? answer : total),
	         answer > 0 ? between(answer, total) : 0, between(0, total));
}

void
sbx_trace_exchange(const SbxTransfer *transfer, bool abandoned)
{
	const SbxOp *op = transfer->op;
	char outcome[MAX_TEXT];
	char times[MAX_TEXT] = "";
	Place place;

	if (!transfer->settings->trace)
		return;
	find_place(op->request.url, &place);
	write_outcome(outcome, transfer, abandoned);
	if (transfer->easy != NULL)
		write_times(times, transfer);

	/* Hosts are the operator's business, so nothing of this goes to the client. */
	ereport(
	    LOG_SERVER_ONLY,
	    (errmsg_internal("sandbox request: operation=%s method=%s host=%s path=%s %s%s",
	                     op->operation, op->request.method, place.host, place.path,
	                     outcome, times),
	     errhidestmt(true), errhidecontext(true)));
}
