/*
 * vercel_control.c
 *		What can be asked about sandboxes and sessions, one by one.
 */
#include "vercel.h"

/*
 * Sandboxes
 */

static void
answer_sandbox(EmuRequest *request, const EmuSandbox *sandbox)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"sandbox\":");
	vercel_write_sandbox(&body, sandbox);
	vercel_write_routes(&body, sandbox);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/* The whole of it, as create answers; `resumed` is JSON, or NULL. */
void
vercel_answer_all(EmuRequest *request, const EmuSandbox *sandbox, const char *resumed)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"sandbox\":");
	vercel_write_sandbox(&body, sandbox);
	emu_json_key(&body, "session");
	vercel_write_session(&body, vercel_details(sandbox)->current);
	vercel_write_routes(&body, sandbox);
	if (resumed != NULL)
		emu_json_member_raw(&body, "resumed", resumed);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

void
vercel_get_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	VercelSandbox *details = vercel_details(sandbox);
	VercelSession *session = details->current;
	bool resume = request->operation == EMU_OP_START &&
	              (session->state == VERCEL_STOPPING || vercel_session_over(session));

	if (resume && details->deleting)
	{
		vercel_refuse(request, 422, "Sandbox is stopping");
		return;
	}
	if (resume)
	{
		vercel_session_end(session);
		if (!vercel_within_quota(request, sandbox->account, details->vcpus))
			return;
		session = vercel_session_new(sandbox);
	}
	vercel_answer_all(request, sandbox, resume ? "true" : "false");
	if (resume)
		vercel_session_start(session, 0);
}

/* The answer tells of the beginning of the end, also if that has come since. */
void
vercel_delete_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	bool first = !vercel_details(sandbox)->deleting;

	if (first)
		vercel_destroy(sandbox);
	answer_sandbox(request, sandbox);
	request->answer.hold_ms = vercel_config.slow_destroy;
	if (first)
		vercel_remove(sandbox);
}

/* A session that runs goes on as it is. */
void
vercel_update_sandbox(EmuRequest *request, EmuSandbox *sandbox)
{
	VercelSandbox *details = vercel_details(sandbox);
	json_t *body = vercel_body(request);
	const char *problem = body != NULL ? vercel_update_problem(body) : NULL;

	if (problem != NULL)
		vercel_refuse(request, 400, problem);
	else if (body != NULL)
	{
		vercel_apply(details, body);
		vercel_set_tags(sandbox, json_object_get(body, "tags"));
		details->updated_ms = emu_wall_ms();
		answer_sandbox(request, sandbox);
	}
	json_decref(body);
}

/*
 * Sessions
 */

static void
answer_session(EmuRequest *request, const VercelSession *session)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"session\":");
	vercel_write_session(&body, session);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

void
vercel_get_session(EmuRequest *request, VercelSession *session)
{
	EmuText body = {0};

	emu_text_add(&body, "{\"session\":");
	vercel_write_session(&body, session);
	vercel_write_routes(&body, session->sandbox);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
}

/* The answer tells of the beginning of the end; one that has ended stays so. */
void
vercel_stop_session(EmuRequest *request, VercelSession *session)
{
	bool stops = session->state == VERCEL_PENDING || session->state == VERCEL_RUNNING;
	EmuText body = {0};

	if (stops)
		vercel_session_stop(session);
	emu_text_add(&body, "{\"session\":");
	vercel_write_session(&body, session);
	emu_json_key(&body, "sandbox");
	vercel_write_sandbox(&body, session->sandbox);
	emu_text_add(&body, "}");
	emu_answer_json(request, 200, &body);
	if (stops)
		vercel_session_settle(session, vercel_config.stop_delay);
}

void
vercel_extend_timeout(EmuRequest *request, VercelSession *session)
{
	json_t *body = vercel_body(request);
	const json_t *duration;

	if (body == NULL)
		return;
	duration = json_object_get(body, "duration");
	if (!json_is_integer(duration) || json_integer_value(duration) < 1000)
		vercel_refuse(request, 400,
		              "Invalid request: `duration` should be an integer >= 1000.");
	else if (!vercel_session_extend(session, json_integer_value(duration)))
		vercel_refuse_as(request, 400, "sandbox_timeout_invalid",
		                 "The timeout is longer than the plan allows.");
	else
		answer_session(request, session);
	json_decref(body);
}

void
vercel_set_network_policy(EmuRequest *request, VercelSession *session)
{
	json_t *body = vercel_body(request);
	const char *problem;

	if (body == NULL)
		return;
	problem = vercel_network_policy_problem(body);
	if (problem != NULL)
		emu_refuse_format(request, 400, "Invalid request: the policy %s.", problem);
	else
	{
		json_decref(session->network_policy);
		session->network_policy = json_incref(body);
		answer_session(request, session);
	}
	json_decref(body);
}
