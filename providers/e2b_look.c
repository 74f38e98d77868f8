/*
 * e2b_look.c
 *		Looking at E2B sandboxes: at one, or at all that have some labels.
 */
#include <string.h>

#include "providers/e2b.h"

#define E2B_GET_TIMEOUT_MS (10 * 1000)

/* For a listing from its first page to its last. */
#define E2B_FIND_TIMEOUT_MS (30 * 1000)

/* More pages than this are no listing: 100,000 sandboxes. */
#define E2B_MAX_PAGES 1000

/* Attempts to read one page. */
#define E2B_PAGE_TRIES    3
#define E2B_PAGE_PAUSE_MS 250

/* --- get ------------------------------------------------------------------ */

static SbxStep e2b_get_start;
static SbxStep e2b_get_answered;

SbxOp *
sbx_e2b_get(const SbxAccount *account, const SbxTarget *target)
{
	SbxOp *op = sbx_e2b_make_op(account, "get", e2b_get_start, sizeof(SbxE2bState),
	                            E2B_ARENA_SMALL, E2B_GET_TIMEOUT_MS);

	if (op == NULL)
		return NULL;
	sbx_e2b_set_target(op, target);
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_get_start(SbxOp *op)
{
	return sbx_e2b_look(op, e2b_get_answered);
}

/* "No such sandbox" is an answer to the question, not a failure to ask it. */
static SbxOpWant
e2b_get_answered(SbxOp *op)
{
	json_t *sandbox;
	SbxSandboxFacts *facts;

	if (op->response.status == 404)
	{
		facts = sbx_arena_alloc(&op->arena, sizeof(*facts));
		if (facts != NULL)
			facts->state = SBX_STATE_GONE;
		return sbx_op_succeed(op, facts);
	}
	sandbox = sbx_e2b_take_sandbox(op);
	if (sandbox == NULL)
		return SBX_OP_WANT_NOTHING;
	facts = sbx_e2b_facts(op, sandbox);
	json_decref(sandbox);
	return sbx_op_succeed(op, facts);
}

/* --- find ----------------------------------------------------------------- */

typedef struct SbxE2bFind
{
	SbxE2bState state; /* first */
	const char *url;   /* of the first page */
	const char **tokens;
	int pages;
	int tries; /* at the page that is wanted now */
	SbxFoundSandboxes found;
	SbxFindResult result;
} SbxE2bFind;

static SbxStep e2b_find_page;
static SbxStep e2b_find_listed;

SbxOp *
sbx_e2b_find(const SbxAccount *account, const SbxPair *labels, int label_count)
{
	SbxOp *op = sbx_e2b_make_op(account, "find", e2b_find_page, sizeof(SbxE2bFind),
	                            E2B_ARENA_SMALL, E2B_FIND_TIMEOUT_MS);
	SbxE2bFind *find;

	if (op == NULL)
		return NULL;
	find = op->state;
	find->url = sbx_e2b_list_url(op, labels, label_count);
	find->tokens = sbx_arena_alloc(&op->arena, E2B_MAX_PAGES * sizeof(const char *));
	if (find->url == NULL)
		find->state.steps.step = sbx_steps_refuse;
	return sbx_steps_made(op);
}

static SbxOpWant
e2b_find_page(SbxOp *op)
{
	SbxE2bFind *find = op->state;
	const char *url = find->url;

	if (find->pages > 0)
		url = sbx_arena_printf(
		    &op->arena, "%s&nextToken=%s", find->url,
		    sbx_arena_url_encode(&op->arena, find->tokens[find->pages - 1]));
	return sbx_e2b_send(op, "GET", url, NULL, e2b_find_listed);
}

/* The answer is an array, the token of the next page a header. */
static bool
e2b_find_take(SbxOp *op)
{
	SbxE2bFind *find = op->state;
	json_t *page = sbx_json_parse(op->response.body, op->response.body_length, false);
	bool valid = json_is_array(page);

	for (size_t i = 0; valid && i < json_array_size(page); i++)
	{
		const json_t *item = json_array_get(page, i);

		valid = sbx_e2b_valid_id(sbx_json_string(item, "sandboxID")) &&
		        sbx_steps_add_found(op, &find->found, sbx_e2b_facts(op, item));
	}
	json_decref(page);
	return valid;
}

static SbxOpWant
e2b_find_listed(SbxOp *op)
{
	SbxE2bFind *find = op->state;
	const char *token;

	if (sbx_steps_is_passing(op) && ++find->tries < E2B_PAGE_TRIES)
	{
		sbx_steps_note(op, sbx_steps_status_code(op));
		return sbx_steps_pause(op, E2B_PAGE_PAUSE_MS, e2b_find_page);
	}
	if (op->response.status != 200)
		return sbx_steps_fail_response(op, sbx_steps_status_code(op));
	find->tries = 0;
	memset(&find->state.steps.noted, 0, sizeof(find->state.steps.noted));
	if (!e2b_find_take(op))
		return sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
	token = sbx_op_response_header(op, "X-Next-Token");
	if (token == NULL || *token == '\0')
	{
		sbx_steps_settle_found(&find->found, &find->result);
		return sbx_op_succeed(op, &find->result);
	}
	return sbx_steps_next_page(op, find->tokens, &find->pages, E2B_MAX_PAGES - 1, token)
	           ? e2b_find_page(op)
	           : sbx_steps_fail(op, SBX_PHASE_PROTOCOL, NULL);
}
