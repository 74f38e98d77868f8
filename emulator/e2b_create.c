/*
 * e2b_create.c
 *		POST /sandboxes and POST /v2/sandboxes
 *
 * The two versions differ in the lifetime of a sandbox whose create names
 * none.  An answer of 201 means that the sandbox runs, so a create that is
 * held has a sandbox that nobody sees yet, but that is there all the same if
 * its client gives up.
 */
#include "e2b.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_TIMEOUT_MS  15000
#define SECOND_TIMEOUT_MS 300000

/* The member of the metadata by which the audit counts creates. */
static const char *const unique_labels[] = {"sbx-router-id", "name"};

static bool
check_strings(EmuRequest *request, const json_t *body, const char *name)
{
	json_t *object = json_object_get(body, name);
	const char *key;
	json_t *value;

	if (object == NULL || json_is_null(object))
		return true;
	if (!json_is_object(object))
	{
		emu_refuse_format(request, 400, "property \"%s\" must be an object", name);
		return false;
	}
	json_object_foreach (object, key, value)
		if (!json_is_string(value))
		{
			emu_refuse_format(
			    request, 400,
			    "each value of \"%s\" must be a string, \"%.100s\" is not", name, key);
			return false;
		}
	return true;
}

static bool
check_types(EmuRequest *request, const json_t *body)
{
	static const char *const flags[] = {"secure", "allow_internet_access", "autoPause",
	                                    "autoPauseMemory"};
	static const char *const objects[] = {"network", "autoResume"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
	{
		const json_t *value = json_object_get(body, flags[i]);

		if (value != NULL && !json_is_boolean(value) && !json_is_null(value))
		{
			emu_refuse_format(request, 400, "property \"%s\" must be a boolean",
			                  flags[i]);
			return false;
		}
	}
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
	{
		const json_t *value = json_object_get(body, objects[i]);

		if (value != NULL && !json_is_object(value) && !json_is_null(value))
		{
			emu_refuse_format(request, 400, "property \"%s\" must be an object",
			                  objects[i]);
			return false;
		}
	}
	return check_strings(request, body, "metadata") &&
	       check_strings(request, body, "envVars");
}

static bool
is_address(const char *text)
{
	return text[strspn(text, "0123456789abcdefABCDEF.:/")] == '\0';
}

/* Domains can only be let through where everything else is not. */
static bool
check_network(EmuRequest *request, const json_t *network)
{
	json_t *entry;
	size_t index;
	bool has_domain = false;
	bool denies_all = false;

	json_array_foreach (json_object_get(network, "allowOut"), index, entry)
		has_domain = has_domain || !json_is_string(entry) ||
		             !is_address(json_string_value(entry));
	json_array_foreach (json_object_get(network, "denyOut"), index, entry)
		denies_all = denies_all || (json_is_string(entry) &&
		                            strcmp(json_string_value(entry), "0.0.0.0/0") == 0);
	if (!has_domain || denies_all)
		return true;
	e2b_refuse(request, 400,
	           "When specifying allowed domains in allow out, you must include "
	           "'0.0.0.0/0' in deny out to block all other traffic.");
	return false;
}

static bool
check_pause(EmuRequest *request, const json_t *body)
{
	bool auto_resume =
	    json_is_true(json_object_get(json_object_get(body, "autoResume"), "enabled"));

	if (!json_is_false(json_object_get(body, "autoPauseMemory")) ||
	    (json_is_true(json_object_get(body, "autoPause")) && !auto_resume))
		return true;
	e2b_refuse(request, 400,
	           "autoPauseMemory=false needs autoPause, and excludes autoResume");
	return false;
}

static bool
check_timeout(EmuRequest *request, const json_t *body, bool second_version,
              int64_t *timeout_ms)
{
	if (!e2b_read_timeout(request, body,
	                      second_version ? SECOND_TIMEOUT_MS : FIRST_TIMEOUT_MS,
	                      timeout_ms))
		return false;
	if (*timeout_ms <= 0)
		e2b_refuse(request, 400, "Timeout must be greater than 0");
	else if (*timeout_ms > e2b_config.maximum_age)
		emu_refuse_format(request, 400, "Timeout cannot be greater than %lld seconds",
		                  (long long) e2b_config.maximum_age / 1000);
	else
		return true;
	return false;
}

static E2bSandbox *
details_from(const json_t *body, EmuSandbox *sandbox, E2bTemplate *template)
{
	E2bSandbox *details = emu_alloc(sizeof(E2bSandbox));
	const json_t *internet = json_object_get(body, "allow_internet_access");
	json_t *environment = json_object_get(body, "envVars");
	json_t *network = json_object_get(body, "network");

	details->sandbox = sandbox;
	details->template_id = emu_strdup(template->id);
	details->alias = template->alias;
	template->alias = NULL;
	e2b_make_token(details->token);
	if (json_is_false(json_object_get(network, "allowPublicTraffic")))
		e2b_make_token(details->traffic_token);
	if (json_object_size(environment) > 0)
		details->environment = json_incref(environment);
	if (json_is_object(network))
		details->network = json_incref(network);
	details->internet = json_is_boolean(internet) ? json_is_true(internet) : -1;
	details->auto_pause = json_is_true(json_object_get(body, "autoPause"));
	details->auto_pause_memory =
	    !json_is_false(json_object_get(body, "autoPauseMemory"));
	details->auto_resume =
	    json_is_true(json_object_get(json_object_get(body, "autoResume"), "enabled"));
	return details;
}

static const char *
unique_label(const json_t *metadata)
{
	for (size_t i = 0; i < sizeof(unique_labels) / sizeof(unique_labels[0]); i++)
	{
		const char *value =
		    json_string_value(json_object_get(metadata, unique_labels[i]));

		if (value != NULL && *value != '\0')
			return value;
	}
	return NULL;
}

static void
make(EmuRequest *request, EmuAccount *account, const json_t *body,
     E2bTemplate *template, int64_t timeout_ms)
{
	json_t *metadata = json_object_get(body, "metadata");
	char *labels =
	    json_object_size(metadata) > 0 ? json_dumps(metadata, JSON_COMPACT) : NULL;
	EmuSandbox *sandbox =
	    emu_sandbox_create(account, unique_label(metadata),
	                       labels != NULL ? labels : "{}", &template->resources);

	free(labels);
	sandbox->details = details_from(body, sandbox, template);
	e2b_start(sandbox, timeout_ms, e2b_config.hold_create, E2B_STARTING);
	e2b_answer_access(request, sandbox, 201);
	request->answer.hold_ms = e2b_config.hold_create;
}

/* All that can be wrong with the request comes before the quota. */
static void
create_from(EmuRequest *request, EmuAccount *account, const json_t *body,
            bool second_version)
{
	const char *name = unique_label(json_object_get(body, "metadata"));
	const json_t *reference = json_object_get(body, "templateID");
	E2bTemplate template = {.alias = NULL};
	int64_t timeout_ms;

	/* Counted even if it is refused: the audit tells a request sent twice. */
	if (name != NULL)
		emu_account_name(account, name)->creates++;
	if (!json_is_string(reference))
		e2b_refuse(request, 400, "property \"templateID\" is missing");
	else if (check_types(request, body) &&
	         check_timeout(request, body, second_version, &timeout_ms) &&
	         check_network(request, json_object_get(body, "network")) &&
	         check_pause(request, body) &&
	         e2b_template_find(request, json_string_value(reference), &template) &&
	         e2b_within_quota(request, account))
		make(request, account, body, &template, timeout_ms);
	free(template.alias);
}

void
e2b_create(EmuRequest *request, EmuAccount *account, bool second_version)
{
	json_t *body;

	if (second_version && e2b_idempotency_answers(request, account))
		return;
	body = e2b_body(request);
	if (body != NULL)
		create_from(request, account, body, second_version);
	if (second_version)
		e2b_idempotency_record(request, account);
	json_decref(body);
}
