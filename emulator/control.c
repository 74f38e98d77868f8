/*
 * control.c
 *		The paths under /_control/, by which tests steer the emulator.
 */
#include "control.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "provider.h"
#include "requestlog.h"
#include "sandbox.h"
#include "server.h"

static void
control_refuse(EmuRequest *request, int status, const char *message)
{
	EmuText body = {0};

	emu_text_add(&body, "{");
	emu_json_member(&body, "error", message);
	emu_text_add(&body, "}");
	emu_answer_json(request, status, &body);
}

static void
control_agree(EmuRequest *request)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"ok\":true}");
	emu_answer_json(request, 200, &body);
}

static void
control_audit(EmuRequest *request)
{
	EmuText body = {0};

	emu_sandbox_audit(&body);
	emu_answer_json(request, 200, &body);
}

static void
control_requests(EmuRequest *request)
{
	EmuText body = {0};
	char *since = emu_request_parameter(request, "since");

	emu_requestlog_show(&body, since != NULL ? strtoull(since, NULL, 10) : 0);
	free(since);
	emu_answer_json(request, 200, &body);
}

static void
control_redirects(EmuRequest *request)
{
	EmuText body = {0};

	emu_text_format(&body, "{\"connections\":%u}", emu_faults_redirects_followed());
	emu_answer_json(request, 200, &body);
}

static json_t *
control_body(EmuRequest *request)
{
	json_error_t error;
	json_t *body = json_loadb(request->body.data != NULL ? request->body.data : "",
	                          request->body.length,
	                          JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	EmuText problem = {0};

	if (json_is_object(body))
		return body;
	emu_text_format(&problem, "the body must be a JSON object%s%s",
	                body == NULL ? ": " : "", body == NULL ? error.text : "");
	control_refuse(request, 400, problem.data);
	emu_text_free(&problem);
	json_decref(body);
	return NULL;
}

static void
control_add_fault(EmuRequest *request)
{
	json_t *body = control_body(request);
	EmuText problem = {0};

	if (body == NULL)
		return;
	if (emu_faults_add(body, &problem))
		control_agree(request);
	else
		control_refuse(request, 400, problem.data);
	emu_text_free(&problem);
	json_decref(body);
}

static void
control_clear_faults(EmuRequest *request)
{
	emu_faults_clear();
	control_agree(request);
}

static const EmuProvider *
control_provider(EmuRequest *request, const json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "provider"));
	const EmuProvider *provider = name != NULL ? emu_provider_by_name(name) : NULL;

	if (provider == NULL)
		control_refuse(request, 400, "\"provider\" must name an emulated provider");
	return provider;
}

/* A limit that is not mentioned, or null, is none. */
static bool
quota_read(EmuQuota *quota, const json_t *body)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *) (uintptr_t) body, name, value)
	{
		double *place = strcmp(name, "cpu") == 0         ? &quota->cpu
		                : strcmp(name, "memory") == 0    ? &quota->memory
		                : strcmp(name, "disk") == 0      ? &quota->disk
		                : strcmp(name, "sandboxes") == 0 ? &quota->sandboxes
		                                                 : NULL;

		if (strcmp(name, "provider") == 0 || (place != NULL && json_is_null(value)))
			continue;
		if (place == NULL || !json_is_number(value) || json_number_value(value) < 0)
			return false;
		*place = json_number_value(value);
	}
	return true;
}

static void
control_quota(EmuRequest *request)
{
	json_t *body = control_body(request);
	const EmuProvider *provider = body != NULL ? control_provider(request, body) : NULL;
	EmuQuota quota = EMU_NO_QUOTA;

	if (provider != NULL && quota_read(&quota, body))
	{
		*provider->quota = quota;
		control_agree(request);
	}
	else if (provider != NULL)
		control_refuse(request, 400,
		               "a quota has provider, cpu, memory, disk and sandboxes only, "
		               "the limits being numbers of at least 0");
	json_decref(body);
}

static void
control_config(EmuRequest *request)
{
	json_t *body = control_body(request);
	const EmuProvider *provider = body != NULL ? control_provider(request, body) : NULL;
	EmuText text = {0};
	const char *name;
	json_t *value;

	json_object_foreach (provider != NULL ? body : NULL, name, value)
	{
		if (strcmp(name, "provider") == 0 ||
		    emu_settings_set(provider->settings, provider->setting_count, name, value))
			continue;
		emu_text_format(&text,
		                "unknown setting \"%s\" of %s, or a value of the wrong type",
		                name, provider->name);
		control_refuse(request, 400, text.data);
		emu_text_free(&text);
		json_decref(body);
		return;
	}
	if (provider != NULL)
	{
		emu_settings_show(&text, provider->name, provider->settings,
		                  provider->setting_count);
		emu_answer_json(request, 200, &text);
	}
	json_decref(body);
}

/* As if just started; answers still held end without one. */
static void
control_reset(EmuRequest *request)
{
	emu_server_abandon_all(request);
	emu_faults_clear();
	emu_sandbox_reset();
	emu_requestlog_clear();
	for (size_t i = 0; emu_providers[i] != NULL; i++)
	{
		const EmuProvider *provider = emu_providers[i];

		*provider->quota = (EmuQuota) EMU_NO_QUOTA;
		emu_settings_reset(provider->settings, provider->setting_count);
		if (provider->reset != NULL)
			provider->reset();
	}
	control_agree(request);
}

static bool
peer_is_local(EmuRequest *request)
{
	const struct sockaddr *peer =
	    MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
	        ->client_addr;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *) peer;

	if (peer->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *) peer)->sin_addr.s_addr) >> 24 == 127;
	if (peer->sa_family != AF_INET6)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
	       (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127);
}

void
emu_control_handle(EmuRequest *request)
{
	static const struct
	{
		const char *method;
		const char *name;
		void (*handle)(EmuRequest *request);
	} routes[] = {
	    {"GET", "audit", control_audit},
	    {"GET", "requests", control_requests},
	    {"GET", "redirects", control_redirects},
	    {"POST", "faults", control_add_fault},
	    {"DELETE", "faults", control_clear_faults},
	    {"POST", "quota", control_quota},
	    {"POST", "config", control_config},
	    {"POST", "reset", control_reset},
	};
	const char *name = request->path + strlen(EMU_CONTROL_PREFIX);

	if (!peer_is_local(request))
	{
		control_refuse(request, 403, "only from this machine");
		return;
	}
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (strcmp(routes[i].name, name) == 0 &&
		    strcmp(routes[i].method, request->method) == 0)
		{
			routes[i].handle(request);
			return;
		}
	control_refuse(request, 404, "no such path or method under /_control/");
}
