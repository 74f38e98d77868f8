/*
 * vercel_route.c
 *		Which request is which, who may make it, and where it is answered.
 */
#include "vercel.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* What a path is about, and how it says which project is meant. */
typedef enum Scope
{
	SCOPE_CREATE,  /* a new sandbox; in the body */
	SCOPE_PROJECT, /* lists; by the parameter "project" */
	SCOPE_SANDBOX, /* by the parameter "projectId" */
	SCOPE_SESSION, /* not at all: a session is known everywhere in its team */
	SCOPE_RUNNING, /* the same, but it must run */
	SCOPE_COMMAND, /* one of its commands */
	SCOPE_NOWHERE  /* what is not emulated */
} Scope;

/* Segments of a path, those after the third only if the third is "sessions". */
enum
{
	SEGMENT_VERSION,
	SEGMENT_SANDBOXES,
	SEGMENT_NAME,
	SEGMENT_SESSION,
	SEGMENT_ACTION,
	SEGMENT_COMMAND
};

static const char *
segment(const EmuPath *path, size_t place)
{
	return place < path->count ? path->segments[place] : "";
}

/*
 * Routes; the first that fits
 */

#define SANDBOXES "v2/sandboxes"
#define SESSIONS  "v2/sandboxes/sessions"

static const struct Route
{
	const char *method; /* pattern, as is the next */
	const char *path;
	EmuOperation operation;
	Scope scope;

	/* Of these the one that goes with the scope. */
	void (*project)(EmuRequest *request, EmuAccount *account);
	void (*sandbox)(EmuRequest *request, EmuSandbox *sandbox);
	void (*session)(EmuRequest *request, VercelSession *session);
	void (*command)(EmuRequest *request, VercelCommand *command);
} routes[] = {
    {"POST", "v3/sandboxes", EMU_OP_CREATE, .scope = SCOPE_CREATE},
    {"POST", SANDBOXES, EMU_OP_CREATE, .scope = SCOPE_CREATE},
    {"GET", SANDBOXES, EMU_OP_LIST, SCOPE_PROJECT, .project = vercel_list_sandboxes},
    {"GET", SESSIONS, EMU_OP_LIST, SCOPE_PROJECT, .project = vercel_list_sessions},

    {"GET", SESSIONS "/*", EMU_OP_GET, SCOPE_SESSION, .session = vercel_get_session},
    {"POST", SESSIONS "/*/stop", EMU_OP_STOP, SCOPE_SESSION,
     .session = vercel_stop_session},
    {"POST", SESSIONS "/*/extend-timeout", EMU_OP_OTHER, SCOPE_RUNNING,
     .session = vercel_extend_timeout},
    {"POST", SESSIONS "/*/network-policy", EMU_OP_OTHER, SCOPE_RUNNING,
     .session = vercel_set_network_policy},
    {"POST", SESSIONS "/*/cmd", EMU_OP_RUN, SCOPE_RUNNING, .session = vercel_run},
    {"GET", SESSIONS "/*/cmd", EMU_OP_STATUS, SCOPE_RUNNING,
     .session = vercel_list_commands},
    {"GET", SESSIONS "/*/cmd/*", EMU_OP_STATUS, SCOPE_COMMAND,
     .command = vercel_get_command},
    {"GET", SESSIONS "/*/cmd/*/logs", EMU_OP_LOGS, SCOPE_COMMAND,
     .command = vercel_get_logs},
    {"POST", SESSIONS "/*/cmd/*/kill", EMU_OP_STOP, SCOPE_COMMAND,
     .command = vercel_kill_command},
    {"POST", SESSIONS "/*/fs/write", EMU_OP_UPLOAD, SCOPE_RUNNING,
     .session = vercel_write_files},
    {"POST", SESSIONS "/*/fs/read", EMU_OP_DOWNLOAD, SCOPE_RUNNING,
     .session = vercel_read_file},
    {"POST", SESSIONS "/*/fs/mkdir", EMU_OP_OTHER, SCOPE_RUNNING,
     .session = vercel_make_directory},

    {"POST", SESSIONS "/*/snapshot", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"POST", SESSIONS "/*/interactive", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"*", SANDBOXES "/snapshots", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"*", SANDBOXES "/snapshots/*", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"*", SANDBOXES "/drives", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"*", SANDBOXES "/drives/*", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},
    {"POST", SANDBOXES "/*/fork", EMU_OP_OTHER, .scope = SCOPE_NOWHERE},

    {"GET", SANDBOXES "/*", EMU_OP_GET, SCOPE_SANDBOX, .sandbox = vercel_get_sandbox},
    {"DELETE", SANDBOXES "/*", EMU_OP_DELETE, SCOPE_SANDBOX,
     .sandbox = vercel_delete_sandbox},
    {"PATCH", SANDBOXES "/*", EMU_OP_OTHER, SCOPE_SANDBOX,
     .sandbox = vercel_update_sandbox},
};

static const struct Route *
route_of(const EmuRequest *request)
{
	const char *rest = emu_path_below(request->path, VERCEL_API);

	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (fnmatch(routes[i].path, rest, FNM_PATHNAME) == 0 &&
		    fnmatch(routes[i].method, request->method, 0) == 0)
			return &routes[i];
	return NULL;
}

/* Who does not wait for the end of a command means to come back for it. */
static bool
starts_only(const EmuRequest *request)
{
	json_t *body =
	    request->body.length > 0
	        ? json_loadb(request->body.data, request->body.length, JSON_ALLOW_NUL, NULL)
	        : NULL;
	bool leaves = body != NULL && !json_is_true(json_object_get(body, "wait"));

	json_decref(body);
	return leaves;
}

static bool
resumes(EmuRequest *request)
{
	char *resume = emu_request_parameter(request, "resume");
	bool asked = resume != NULL && strcmp(resume, "true") == 0;

	free(resume);
	return asked;
}

EmuOperation
vercel_classify(EmuRequest *request)
{
	const struct Route *route = route_of(request);
	EmuOperation operation = route != NULL ? route->operation : EMU_OP_OTHER;

	if ((operation == EMU_OP_RUN && starts_only(request)) ||
	    (operation == EMU_OP_GET && route->scope == SCOPE_SANDBOX && resumes(request)))
		return EMU_OP_START;
	return operation;
}

/*
 * Access
 */

typedef struct Access
{
	const char *token;
	char *team;
	EmuText owner; /* token and team */
} Access;

/* Answers itself and returns NULL if there is none that is known. */
static EmuAccount *
account_of_project(EmuRequest *request, const Access *access, const char *project,
                   const char *parameter)
{
	EmuText key = {0};
	EmuAccount *account;

	if (project == NULL || *project == '\0')
	{
		emu_refuse_format(request, 400, "Invalid request: missing `%s`.", parameter);
		return NULL;
	}
	if (strncmp(project, "no-such-", 8) == 0)
	{
		vercel_refuse(request, 404, "Project not found");
		return NULL;
	}
	emu_text_format(&key, "%s %s", access->owner.data, project);
	account = emu_account(&emu_vercel, key.data);
	emu_text_free(&key);
	return account;
}

static void
handle_create(EmuRequest *request, const Access *access, const EmuPath *path)
{
	json_t *body = vercel_body(request);
	const char *project = json_string_value(json_object_get(body, "projectId"));
	EmuAccount *account;

	if (body == NULL)
		return;
	account = account_of_project(request, access, project, "projectId");
	if (account != NULL)
		vercel_create(request, account, access->owner.data, body,
		              strcmp(segment(path, SEGMENT_VERSION), "v2") == 0);
	json_decref(body);
}

static void
handle_project(EmuRequest *request, const Access *access, const struct Route *route)
{
	char *project = emu_request_parameter(request, "project");
	EmuAccount *account = account_of_project(request, access, project, "project");

	if (account != NULL)
		route->project(request, account);
	free(project);
}

static void
handle_sandbox(EmuRequest *request, const Access *access, const struct Route *route,
               const EmuPath *path)
{
	char *project = emu_request_parameter(request, "projectId");
	EmuAccount *account = account_of_project(request, access, project, "projectId");
	EmuSandbox *sandbox =
	    account != NULL ? vercel_find(account, segment(path, SEGMENT_NAME)) : NULL;

	if (sandbox != NULL)
		route->sandbox(request, sandbox);
	else if (account != NULL)
		vercel_refuse(request, 404, "Sandbox not found");
	free(project);
}

static void
handle_session(EmuRequest *request, const Access *access, const struct Route *route,
               const EmuPath *path)
{
	VercelSession *session =
	    vercel_session_by_id(access->owner.data, segment(path, SEGMENT_SESSION));

	VercelCommand *command;

	if (session == NULL)
		vercel_refuse(request, 404, "Session not found");
	else if (route->scope == SCOPE_SESSION)
		route->session(request, session);
	else if (!vercel_session_usable(request, session))
		return;
	else if (route->scope == SCOPE_RUNNING)
		route->session(request, session);
	else if ((command = vercel_command_by_id(session,
	                                         segment(path, SEGMENT_COMMAND))) == NULL)
		vercel_refuse(request, 404, "Command not found");
	else
		route->command(request, command);
}

static void
handle_route(EmuRequest *request, const Access *access, const EmuPath *path)
{
	const struct Route *route = route_of(request);
	Scope scope = route != NULL ? route->scope : SCOPE_NOWHERE;

	if (route == NULL)
		vercel_refuse(request, 404, "The requested endpoint does not exist.");
	else if (scope == SCOPE_CREATE)
		handle_create(request, access, path);
	else if (scope == SCOPE_PROJECT)
		handle_project(request, access, route);
	else if (scope == SCOPE_SANDBOX)
		handle_sandbox(request, access, route, path);
	else if (scope == SCOPE_NOWHERE)
		vercel_refuse(request, 501, "This is not emulated.");
	else
		handle_session(request, access, route, path);
}

/* The team of a request is in its query, whatever it is about. */
static void
handle_owner(EmuRequest *request, Access *access)
{
	EmuPath path;

	access->team = emu_request_parameter(request, "teamId");
	if (access->team == NULL || *access->team == '\0' ||
	    strncmp(access->team, "no-such-", 8) == 0)
	{
		vercel_refuse(request, 403, "Not authorized");
		return;
	}
	emu_text_format(&access->owner, "%s %s", access->token, access->team);
	emu_path_split(&path, emu_path_below(request->path, VERCEL_API));
	handle_route(request, access, &path);
	emu_path_free(&path);
}

static void
refuse_token(EmuRequest *request, int status)
{
	vercel_refuse(request, status,
	              status == 401   ? "The request is not authorized."
	              : status == 403 ? "Not authorized"
	                              : "Rate limit exceeded");
}

/*
 * Tokens that are to be refused are refused before anything else about the
 * request is looked at.
 */
void
vercel_handle(EmuRequest *request)
{
	Access access = {.token = emu_request_bearer(request)};
	int refusal = access.token != NULL ? emu_key_refusal(access.token) : 401;

	if (refusal != EMU_KEY_ACCEPTED)
		refuse_token(request, refusal);
	else
		handle_owner(request, &access);
	free(access.team);
	emu_text_free(&access.owner);
}
