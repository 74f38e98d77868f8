/*
 * request.c
 *		Reading the parts of a request, and giving its answer.
 */
#include "request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const emu_operation_names[EMU_OPERATION_COUNT] = {
    [EMU_OP_OTHER] = "other",   [EMU_OP_CREATE] = "create",     [EMU_OP_GET] = "get",
    [EMU_OP_LIST] = "list",     [EMU_OP_DELETE] = "delete",     [EMU_OP_RUN] = "run",
    [EMU_OP_START] = "start",   [EMU_OP_STATUS] = "status",     [EMU_OP_LOGS] = "logs",
    [EMU_OP_UPLOAD] = "upload", [EMU_OP_DOWNLOAD] = "download", [EMU_OP_STOP] = "stop",
};

const char *
emu_request_header(EmuRequest *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *
emu_request_bearer(EmuRequest *request)
{
	static const char scheme[] = "Bearer ";
	const char *value = emu_request_header(request, "Authorization");
	size_t length = sizeof(scheme) - 1;

	return value != NULL && strncasecmp(value, scheme, length) == 0 &&
	               value[length] != '\0'
	           ? value + length
	           : NULL;
}

json_t *
emu_request_object(EmuRequest *request, EmuText *problem)
{
	json_error_t error;
	json_t *body;

	if (request->body.length == 0)
		return json_object();
	body = json_loadb(request->body.data, request->body.length, JSON_ALLOW_NUL, &error);
	if (json_is_object(body))
		return body;
	emu_text_add(problem, body == NULL ? error.text : "the body is not an object");
	json_decref(body);
	return NULL;
}

bool
emu_is_plain_string(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

const char *
emu_path_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	return strncmp(path, prefix, length) == 0 && path[length] == '/' ? path + length + 1
	                                                                 : NULL;
}

/* An escaped slash stays inside its segment, so split first. */
void
emu_path_split(EmuPath *path, const char *escaped)
{
	memset(path, 0, sizeof(*path));
	while (*escaped != '\0')
	{
		size_t length = strcspn(escaped, "/");

		if (path->count < EMU_PATH_SEGMENTS)
		{
			EmuText segment = {0};

			emu_text_unescape_url(&segment, escaped, length, false);
			path->segments[path->count] = segment.data;
		}
		path->count++;
		escaped += length;
		if (*escaped == '/')
			escaped++;
	}
}

void
emu_path_free(EmuPath *path)
{
	for (size_t i = 0; i < EMU_PATH_SEGMENTS; i++)
		free(path->segments[i]);
}

void
emu_request_each_parameter(EmuRequest *request,
                           void (*found)(void *context, const char *name,
                                         const char *value),
                           void *context)
{
	const char *place = request->query;

	while (*place != '\0')
	{
		size_t length = strcspn(place, "&");
		const char *equals = memchr(place, '=', length);
		size_t name_length = equals != NULL ? (size_t) (equals - place) : length;
		EmuText name = {0};
		EmuText value = {0};

		emu_text_unescape_url(&name, place, name_length, true);
		if (equals != NULL)
			emu_text_unescape_url(&value, equals + 1, length - name_length - 1, true);
		else
			emu_text_add(&value, "");
		if (length > 0)
			found(context, name.data, value.data);
		emu_text_free(&name);
		emu_text_free(&value);
		place += length;
		if (*place == '&')
			place++;
	}
}

typedef struct ParameterSearch
{
	const char *name;
	char *value;
} ParameterSearch;

static void
parameter_check(void *context, const char *name, const char *value)
{
	ParameterSearch *search = context;

	if (search->value == NULL && strcmp(name, search->name) == 0)
		search->value = emu_strdup(value);
}

char *
emu_request_parameter(EmuRequest *request, const char *name)
{
	ParameterSearch search = {name, NULL};

	emu_request_each_parameter(request, parameter_check, &search);
	return search.value;
}

void
emu_answer(EmuRequest *request, int status, const char *content_type, EmuText *body)
{
	EmuAnswer *answer = &request->answer;

	emu_text_free(&answer->body);
	answer->given = true;
	answer->status = status;
	answer->content_type = content_type;
	answer->delivery = EMU_DELIVER_PLAIN;
	answer->body = *body;
	memset(body, 0, sizeof(*body));
}

void
emu_answer_json(EmuRequest *request, int status, EmuText *body)
{
	emu_answer(request, status, "application/json; charset=utf-8", body);
}

void
emu_answer_empty(EmuRequest *request, int status)
{
	EmuText nothing = {0};

	emu_answer(request, status, NULL, &nothing);
}

void
emu_answer_header(EmuRequest *request, const char *name, const char *value)
{
	emu_text_format(&request->answer.headers, "%s: %s\n", name, value);
}

void
emu_answer_stream(EmuRequest *request, int status, const char *content_type,
                  void (*forget)(void *owner), void *owner)
{
	EmuText nothing = {0};

	emu_answer(request, status, content_type, &nothing);
	request->answer.delivery = EMU_DELIVER_STREAMED;
	emu_request_wait(request, forget, owner);
}

void
emu_request_wait(EmuRequest *request, void (*forget)(void *owner), void *owner)
{
	request->forget = forget;
	request->owner = owner;
}
